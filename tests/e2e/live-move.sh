#!/bin/sh
# `sharewell move` on the emulated driver: a job that trains goes on on another GPU in the same process, nothing of it stays on the old one, and where it cannot be moved it goes on where it was.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-emu.sh"
emulate 3 512M
load="$scratch/gpu_load"
compile gpu_load tests/e2e/gpu_load.c

# uses <MiB of each GPU>
uses() { [ "$(used)" = "$1" ]; }
# knows <job> <python about j>: what the cluster knows of it.
knows() { "$SHAREWELL" show --json "$1" | python3 -c "import json, sys; j = json.load(sys.stdin); sys.exit(not ($2))"; }
# on <job> <GPUs as python>: it runs there, and is not on its way.
on() { knows "$1" "j['state'] == 'R' and not j['moving'] and j['gpu_indexes'] == $2"; }
# The supervisors look for the driver in this folder first, so that there can be another one for a while.
mkdir "$scratch/front"
export LD_LIBRARY_PATH="$scratch/front:$LD_LIBRARY_PATH"
driver() { echo "$1" >driver.c && ${CC:-cc} -shared -fPIC -o "$scratch/new.so" driver.c && mv "$scratch/new.so" "$scratch/front/libcuda.so.1"; }
usual() { rm -f "$scratch/front/libcuda.so.1"; }

"$load" --rounds 100 --memory 12M >plain
gpus=auto
up

# It changes its memory in 100 rounds, and then keeps it until it is told to end.
submit_here -J trains --gpu-memory 100M -o "$scratch/disturbed" -- sh -c 'echo $$ >>"$0/pids"; exec "$0/gpu_load" --rounds 100 --kernels 1 --kernel-us 20000 --memory 12M --end "$0/enough"' "$scratch"
moved=$job
holds 'a job has its memory on the first GPU' until_holds 60 uses '28 0 0'
holds 'as is known' until_holds 60 on "$moved" '[0]'
works 'it is moved' "Job $moved is on gpu 1 of" move "$moved" --gpu 1
holds 'the old GPU is empty, the new one has it all' until_holds 60 uses '0 28 0'
holds 'as is known' on "$moved" '[1]'
works 'also to people' 'here:1' ps --noheader -j "$moved"
works 'it is moved anywhere' "Job $moved is on gpu 0 of" move "$moved"
holds 'and is there' until_holds 60 uses '28 0 0'

# Others come where it was, and it comes where others were.
works 'it leaves' '' move "$moved" --gpu 2
submit_here -J greedy -G 2 -- "$load" --rounds 0 --memory 490M --end "$scratch/filled"
greedy=$job
holds 'another job has what it left, all of it' until_holds 60 uses '506 0 28'
refuses 2 'it cannot go where others are' 'others hold one of these GPUs' move "$moved" --gpu 0
refuses 2 'nor where nothing is' 'its node has 3 GPUs' move "$moved" --gpu 7
refuses 2 'nor to another number of GPUs' 'as many other GPUs of its node' move "$moved" --gpu 1,2
refuses 2 'nor where it is' 'it is there' move "$moved" --gpu 2
refuses 2 'a GPU is a number' "--gpu cannot be 'x'" move "$moved" --gpu x
touch "$scratch/filled"
ends 'the other one ends' "$greedy" 0

# An answer that is lost on its way: what has become of the move is looked for, and said.
# lossy [request]: opens a way that loses the answer, or what is asked for.
lossy() {
	[ -z "$way" ] || kill "$way" 2>/dev/null
	rm -f "$scratch/lossy.sock"
	python3 "$SW_SOURCE_DIR/tests/e2e/lose_answer.py" "$SHAREWELL_STATE/controller.sock" "$scratch/lossy.sock" "$@" &
	way=$!
	until_holds 20 test -S "$scratch/lossy.sock"
}
way=''
lossy request
run move "$moved" --gpu 1 --controller "unix:$scratch/lossy.sock"
[ "$status" -eq 1 ] && err_has 'broke off; looking whether' && err_has "job $moved was not moved: the controller did not come to it; the job is on gpu 2 of here"
said $? 'a move that the controller never heard of was not made'
lossy
run move "$moved" --gpu 1 --controller "unix:$scratch/lossy.sock"
[ "$status" -eq 0 ] && err_has 'broke off; looking whether' && out_has "Job $moved is on gpu 1 of here"
said $? 'one that it took is waited for'
lossy request
refuses 1 'of other changes it is said that it is not known, and what tells' 'Whether it did what it was asked to is not known' limit "$moved" --compute 50 --controller "unix:$scratch/lossy.sock"
kill "$way"
works 'it goes back' "Job $moved is on gpu 2 of" move "$moved" --gpu 2

# What the driver cannot do.
driver 'int cuInit(unsigned flags) { return 0 * flags; }'
refuses 1 'with an old driver it stays' 'the NVIDIA driver is too old' move "$moved" --gpu 0
holds 'where it was' until_holds 60 on "$moved" '[2]'
holds 'with all that it had' until_holds 60 uses '0 0 28'
works 'why is known' 'the NVIDIA driver is too old' show "$moved"
driver "#include <dlfcn.h>
typedef int call(int, void *);
static int forward(const char *name, int pid, void *args) { return ((call *)dlsym(dlopen(\"$SW_BUILD_DIR/emu/libcuda.so.1\", RTLD_NOW), name))(pid, args); }
int cuInit(unsigned flags) { return ((int (*)(unsigned))dlsym(dlopen(\"$SW_BUILD_DIR/emu/libcuda.so.1\", RTLD_NOW), \"cuInit\"))(flags); }
int cuCheckpointProcessLock(int pid, void *args) { return forward(\"cuCheckpointProcessLock\", pid, args); }
int cuCheckpointProcessCheckpoint(int pid, void *args) { return forward(\"cuCheckpointProcessCheckpoint\", pid, args); }
int cuCheckpointProcessRestore(int pid, void *args) { return args != 0 ? 801 : forward(\"cuCheckpointProcessRestore\", pid, args); }
int cuCheckpointProcessUnlock(int pid, void *args) { return forward(\"cuCheckpointProcessUnlock\", pid, args); }"
refuses 1 'a driver that only restores in place' 'cannot be taken off a GPU' move "$moved" --gpu 0
holds 'brings it back where it was' until_holds 60 uses '0 0 28'
holds 'as is known' until_holds 60 on "$moved" '[2]'
usual

# Killed in the middle. This driver waits before it does anything, until there is a file.
slow() {
	rm -f "$scratch/go" "$scratch/at"
	driver "#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
typedef int call(int, void *);
static int forward(const char *name, int pid, void *args) { return ((call *)dlsym(dlopen(\"$SW_BUILD_DIR/emu/libcuda.so.1\", RTLD_NOW), name))(pid, args); }
int cuInit(unsigned flags) { return ((int (*)(unsigned))dlsym(dlopen(\"$SW_BUILD_DIR/emu/libcuda.so.1\", RTLD_NOW), \"cuInit\"))(flags); }
int cuCheckpointProcessLock(int pid, void *args) {
	close(creat(\"$scratch/at\", 0600));
	while (access(\"$scratch/go\", F_OK) != 0) usleep(10000);
	return $1 != 0 ? $1 : forward(\"cuCheckpointProcessLock\", pid, args);
}
int cuCheckpointProcessCheckpoint(int pid, void *args) { return forward(\"cuCheckpointProcessCheckpoint\", pid, args); }
int cuCheckpointProcessRestore(int pid, void *args) { return forward(\"cuCheckpointProcessRestore\", pid, args); }
int cuCheckpointProcessUnlock(int pid, void *args) { return forward(\"cuCheckpointProcessUnlock\", pid, args); }"
}
supervisor() { head -c 20 "$(folder "$1")/pid" | cut -d' ' -f1; }
# helper <job>: the process that moves it; it has a child that has the driver.
helper() { for child in $(pgrep -P "$(supervisor "$1")"); do ! pgrep -P "$child" >/dev/null || echo "$child"; done; }
# begin <aim> <GPU> <what the driver will say>
begin() { slow "$3" && works "$1: it is on its way" "goes to gpu $2 of" move "$moved" --gpu "$2" --no-wait && holds 'with the driver' until_holds 60 test -e "$scratch/at"; }
slow 0
timeout 300 "$SHAREWELL" move "$moved" --gpu 0 >"$scratch/mover.out" 2>"$scratch/mover.err" &
mover=$!
holds 'the controller is killed: it is on its way' until_holds 60 test -e "$scratch/at"
kill -KILL "$(child controller)"
holds 'the next one knows' until_holds 60 knows "$moved" "j['moving']"
refuses 2 'there is one move at a time' 'it is on its way to other GPUs already' move "$moved" --gpu 1
lossy request
refuses 1 'a command that sees it on its way is not told that it was by a request that was lost' "job $moved was not moved" move "$moved" --gpu 1 --no-wait --controller "unix:$scratch/lossy.sock"
kill "$way"
touch "$scratch/go"
wait "$mover" && grep -q "Job $moved is on gpu 0 of" "$scratch/mover.out"
said $? 'it comes there, and the command that moved it hears so' mover.out mover.err
holds 'as is known' until_holds 60 on "$moved" '[0]'
holds 'with all that it had' until_holds 60 uses '28 0 0'
begin 'controller and agent are killed' 1 0
kill -KILL "$(child controller)" "$(child agent)" 2>/dev/null
touch "$scratch/go"
holds 'it comes there' until_holds 60 on "$moved" '[1]'
holds 'with all that it had' until_holds 60 uses '0 28 0'

begin 'the process that moves it is killed' 0 0
kill -KILL "$(helper "$moved")" && touch "$scratch/go"
holds 'it stays' until_holds 60 on "$moved" '[1]'
holds 'with all that it had' until_holds 60 uses '0 28 0'
works 'and why is known' 'the process that asked the driver for it was killed' show "$moved"
# This one waits when it has brought it there.
rm -f "$scratch/go" "$scratch/at"
driver "#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
typedef int call(int, void *);
static int forward(const char *name, int pid, void *args) { return ((call *)dlsym(dlopen(\"$SW_BUILD_DIR/emu/libcuda.so.1\", RTLD_NOW), name))(pid, args); }
int cuInit(unsigned flags) { return ((int (*)(unsigned))dlsym(dlopen(\"$SW_BUILD_DIR/emu/libcuda.so.1\", RTLD_NOW), \"cuInit\"))(flags); }
int cuCheckpointProcessLock(int pid, void *args) { return forward(\"cuCheckpointProcessLock\", pid, args); }
int cuCheckpointProcessCheckpoint(int pid, void *args) { return forward(\"cuCheckpointProcessCheckpoint\", pid, args); }
int cuCheckpointProcessRestore(int pid, void *args) {
	int result = forward(\"cuCheckpointProcessRestore\", pid, args);
	close(creat(\"$scratch/at\", 0600));
	while (args != 0 && access(\"$scratch/go\", F_OK) != 0) usleep(10000);
	return result;
}
int cuCheckpointProcessUnlock(int pid, void *args) { return forward(\"cuCheckpointProcessUnlock\", pid, args); }"
works 'it is on its way' 'goes to gpu 0 of' move "$moved" --gpu 0 --no-wait
holds 'and there' until_holds 60 test -e "$scratch/at"
kill -KILL "$(pgrep -P "$(helper "$moved")")"
holds 'the process that asked the driver is killed, and it is there all the same' until_holds 60 on "$moved" '[0]'
holds 'with all that it had' until_holds 60 uses '28 0 0'
usual
works 'it is moved on' '' move "$moved" --gpu 1

# A job that came to where it was waits again if it stays.
begin 'it will not go' 2 801
submit_here -J next -G 2 --env LD_LIBRARY_PATH="$SW_BUILD_DIR/emu" -- "$load" --rounds 0 --memory 100M --end "$scratch/next"
next=$job
holds 'another one was given its GPU' until_holds 60 knows "$next" "1 in j['gpu_indexes']"
touch "$scratch/go"
holds 'it stays' until_holds 60 on "$moved" '[1]'
holds 'the other one runs elsewhere' until_holds 60 on "$next" '[0, 2]'
holds 'as the driver sees' until_holds 60 uses '116 28 0'
usual
touch "$scratch/next"
ends 'it ends' "$next" 0
[ "$(wc -l <"$scratch/pids")" -eq 1 ]
said $? 'all that was one process' pids pids
touch "$scratch/enough"
ends 'it ends' "$moved" 0
grep -q hash plain && cmp -s "$scratch/disturbed" plain
said $? 'and has computed the same, bit for bit' disturbed

# Programs that a job starts after it was moved find the GPU that it has by then.
submit_here -J twice --gpu-memory 100M -- sh -c '"$0/gpu_load" --rounds 0 --memory 12M --end "$0/one"; exec "$0/gpu_load" --rounds 0 --memory 24M --end "$0/two"' "$scratch"
twice=$job
holds 'the first program of a job runs' until_holds 60 uses '28 0 0'
holds 'as is known' until_holds 60 on "$twice" '[0]'
works 'is moved' '' move "$twice" --gpu 2
holds 'and is there' until_holds 60 uses '0 0 28'
touch "$scratch/one"
holds 'the second one begins there' until_holds 60 uses '0 0 40'
touch "$scratch/two"
ends 'and ends' "$twice" 0

# A second process that is about to use the GPU is not left behind on it: the process that moves the job waits for it.
submit_here -J pair --gpu-memory 200M -- sh -c '"$0/gpu_load" --rounds 0 --memory 12M --end "$0/pair" &
until [ -e "$0/second" ]; do sleep 0.05; done
SHAREWELL_EMU_FAULTS="cuInit:hold=$0/held" "$0/gpu_load" --rounds 0 --memory 12M --end "$0/pair"; wait' "$scratch"
holds 'the first process of a job runs' until_holds 60 uses '28 0 0'
holds 'as is known' until_holds 60 on "$job" '[0]'
touch "$scratch/second"
holds 'the second one initialises the driver' until_holds 60 test -e "$scratch/held"
timeout 300 "$SHAREWELL" move "$job" --gpu 1 >"$scratch/mover.out" 2>"$scratch/mover.err" &
mover=$!
holds 'it is to move' until_holds 60 told "$job" '"moving"'
rm -f "$scratch/held"
wait "$mover"
[ $? -eq 1 ] && grep -q 'a program of 2 processes cannot go to another GPU' "$scratch/mover.err"
said $? 'it does not, and why is said' mover.out mover.err
holds 'both are where they were' until_holds 60 uses '56 0 0'
touch "$scratch/pair"
ends 'and end' "$job" 0

# One that begins while the job is on its way begins where that has gone.
submit_here -J late --gpu-memory 200M --env LD_LIBRARY_PATH="$SW_BUILD_DIR/emu" -- sh -c '"$0/gpu_load" --rounds 0 --memory 12M --end "$0/late" &
until [ -e "$0/come" ]; do sleep 0.05; done
touch "$0/came"; "$0/gpu_load" --rounds 0 --memory 24M --end "$0/late"; wait' "$scratch"
holds 'the first process of a job runs' until_holds 60 uses '28 0 0'
holds 'as is known' until_holds 60 on "$job" '[0]'
slow 0
works 'it is on its way' 'goes to gpu 2 of' move "$job" --gpu 2 --no-wait
holds 'with the driver' until_holds 60 test -e "$scratch/at"
touch "$scratch/come"
holds 'the second one comes' until_holds 60 test -e "$scratch/came"
touch "$scratch/go"
holds 'both are there' until_holds 60 uses '0 0 68'
usual
touch "$scratch/late"
ends 'and end' "$job" 0

# A job that ends on its way is nowhere.
submit_here -J short --gpu-memory 100M -- "$load" --rounds 0 --memory 12M --end "$scratch/short"
holds 'a job runs' until_holds 60 uses '28 0 0'
holds 'as is known' until_holds 60 on "$job" '[0]'
slow 0
timeout 300 "$SHAREWELL" move "$job" --gpu 1 >"$scratch/mover.out" 2>"$scratch/mover.err" &
mover=$!
holds 'it is on its way' until_holds 60 test -e "$scratch/at"
works 'and cancelled' '' cancel "$job"
touch "$scratch/go"
wait "$mover"
[ $? -eq 1 ] && grep -q 'does not run any more' "$scratch/mover.err"
said $? 'the command that moved it hears of it' mover.out mover.err
usual

# Jobs that cannot be moved.
submit -J bare --gpu-memory 100M --gpu-runtime off -- sleep 1000
holds 'a job does without the runtime' until_holds 60 is_state "$job" R
refuses 2 'it stays' 'it was submitted with --gpu-runtime off' move "$job"
works 'it is cancelled' '' cancel "$job"
refuses 2 'a job that has ended is not moved' 'it has ended' move "$job"
submit -J held --hold -- sleep 1000
refuses 2 'nor one that does not run' 'it does not run' move "$job"
end
