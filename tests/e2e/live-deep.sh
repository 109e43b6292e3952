#!/bin/sh
# `sharewell suspend --deep` on the emulated driver: nothing of a job stays on its GPUs, others have all of their memory, it goes on in the same process, and what cannot be done is said.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-emu.sh"
emulate 2 512M
load="$scratch/gpu_load"
compile gpu_load tests/e2e/gpu_load.c

# uses <MiB>: on all GPUs together.
uses() { [ "$(used_of_all)" = "$1" ]; }
# depth <job> <word of python>: as the cluster knows.
depth() { "$SHAREWELL" show --json "$1" | python3 -c "import json, sys; j = json.load(sys.stdin); sys.exit(j['state'] != 'S' or j['deep'] != $2)"; }
off() { depth "$1" "'off'"; }
refused() { depth "$1" "'refused'"; }
# in_state <job> <word>: what its supervisor said last.
in_state() { told "$1" "\"state\":\"$2\""; }
# The supervisors look for the driver in this folder first, so that there can be another one for a while.
mkdir "$scratch/front"
export LD_LIBRARY_PATH="$scratch/front:$LD_LIBRARY_PATH"
# driver <source>: from here on that one answers the helper that takes jobs off.
driver() { echo "$1" >driver.c && ${CC:-cc} -shared -fPIC -o "$scratch/new.so" driver.c && mv "$scratch/new.so" "$scratch/front/libcuda.so.1"; }
# usual: the emulated one again.
usual() { rm -f "$scratch/front/libcuda.so.1"; }
back() { works "$1: it is resumed" '' resume "$big" && holds 'and goes on' until_holds 60 is_state "$big" R && holds 'with all that it had' until_holds 60 uses 28; }

"$load" --rounds 100 --memory 12M >plain
gpus=auto
# Where we can be another user, there is one.
other='' door="$scratch/door/controller.sock"
as_other() { timeout 60 setpriv --reuid 65531 --regid 65531 --clear-groups "$@"; }
if [ "$(id -u)" -eq 0 ] && as_other test -r "$SW_BUILD_DIR/emu/libcuda.so.1" 2>/dev/null; then
	other=1
	mkdir "$scratch/door"
	chmod 755 "$scratch" "$scratch/work" "$scratch/door"
	chmod 666 "$scratch"/emu.*
	export SHAREWELL_CONTROLLER="unix:$door"
fi
up --strangers share ${other:+--all-users --state "$SHAREWELL_STATE" --socket "$door"}

# It changes its memory in 100 rounds, and then keeps it until it is told to end.
submit_here -J big --preempt suspend --gpu-memory 100M -o "$scratch/disturbed" -- sh -c 'echo $$ >>"$0/pids"; exec "$0/gpu_load" --rounds 100 --kernels 1 --kernel-us 20000 --memory 12M --end "$0/enough"' "$scratch"
big=$job
holds 'a job has its memory on the GPU' until_holds 60 uses 28
works 'it is taken off' "Suspended job $big" suspend --deep "$big"
holds 'which is known when it is done' until_holds 60 off "$big"
holds 'nothing of it is left' uses 0
works 'the list says so' "suspended by user $(id -un), off its GPUs whole" ps --noheader -j "$big"
works 'and why' "off its GPUs whole, until 'sharewell resume $big'" why "$big"
works 'and show' 'off its GPUs whole' show "$big"
works 'once more makes no difference' '' suspend --deep "$big"
holds 'it is off' off "$big"

# Others have all of the memory, agents come and go.
submit_here -J greedy -G 2 -- "$load" --rounds 0 --memory 490M --end "$scratch/filled"
greedy=$job
holds 'another job takes all of its GPU' until_holds 60 uses 506
holds 'it stays' off "$big"
kill -KILL "$(child controller)" "$(child agent)" 2>/dev/null
holds 'after a crash of controller and agent it still does' until_holds 60 off "$big"
works 'it may go on' '' resume "$big"
holds 'and waits, off' is_state "$big" S
touch "$scratch/filled"
ends 'when the other one ends' "$greedy" 0
holds 'it does' until_holds 60 is_state "$big" R
holds 'with all that it had' until_holds 60 uses 28

# From where it stands still, and when it is called back on its way.
works 'it is suspended as usual' '' suspend "$big"
holds 'which leaves its context' until_holds 60 uses 16
holds 'and nothing says otherwise' depth "$big" None
works 'from there it is taken off too' '' suspend --deep "$big"
holds 'whole' until_holds 60 off "$big"
holds 'and leaves nothing' uses 0
back 'from there'
works 'it is taken off' '' suspend --deep "$big"
back 'before the supervisor has looked'
works 'it is suspended' '' suspend "$big"
kill -KILL "$(child agent)"
works 'while there is no agent it is to be taken off' '' suspend --deep "$big"
holds 'the next one does it' until_holds 60 off "$big"
holds 'whole' uses 0
back 'after that'

# What the driver cannot do.
driver 'int cuInit(unsigned flags) { return 0 * flags; }'
works 'with an old driver' '' suspend --deep "$big"
holds 'it cannot be' until_holds 60 refused "$big"
holds 'but is suspended as usual' uses 16
works 'as is said' 'the NVIDIA driver is too old' show "$big"
works 'also by why' 'it has no cuCheckpointProcessLock' why "$big"
usual
back 'all the same'
driver 'int cuInit(unsigned flags) { return 0 * flags; }
int cuCheckpointProcessLock(int pid, void *args) { return 801; }
int cuCheckpointProcessCheckpoint(int pid, void *args) { return 0; }
int cuCheckpointProcessRestore(int pid, void *args) { return 0; }
int cuCheckpointProcessUnlock(int pid, void *args) { return 0; }'
works 'with a driver that refuses' '' suspend --deep "$big"
holds 'it cannot be either' until_holds 60 refused "$big"
works 'and why is said' 'cannot be taken off a GPU' ps --noheader -j "$big" -o reason
usual
works 'it is tried again' '' suspend --deep "$big"
holds 'with success' until_holds 60 off "$big"

# Others hold the GPUs when it is to come back: strangers, of which the cluster does not know.
strangers=''
for gpu in 0 1; do
	CUDA_VISIBLE_DEVICES=$gpu "$load" --memory 490M --rounds 0 --end strange >/dev/null 2>&1 &
	strangers="$strangers $!"
done
holds 'strangers take the GPUs' until_holds 60 uses 1012
works 'it is resumed' '' resume "$big"
holds 'and is not back' until_holds 60 told "$big" "it is not back on its GPUs yet: "
holds 'as the driver says' told "$big" "others hold the GPU's memory"
touch strange && wait $strangers
holds 'when they are gone it is' until_holds 60 uses 28

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
	return forward(\"cuCheckpointProcessLock\", pid, args);
}
int cuCheckpointProcessCheckpoint(int pid, void *args) { return forward(\"cuCheckpointProcessCheckpoint\", pid, args); }
int cuCheckpointProcessRestore(int pid, void *args) { return forward(\"cuCheckpointProcessRestore\", pid, args); }
int cuCheckpointProcessUnlock(int pid, void *args) { return forward(\"cuCheckpointProcessUnlock\", pid, args); }"
}
supervisor() { head -c 20 "$(folder "$1")/pid" | cut -d' ' -f1; }
# helper <job>: the process that takes it off; it has a child that has the driver.
helper() { for child in $(pgrep -P "$(supervisor "$1")"); do ! pgrep -P "$child" >/dev/null || echo "$child"; done; }
# begin <aim>: it is on its way off.
begin() {
	slow
	works "$1: it is to be taken off" '' suspend --deep "$big" && holds 'and on its way' until_holds 60 test -e "$scratch/at"
}
begin 'the agent is killed'
works 'which is known' 'on its way off its GPUs whole' show "$big"
kill -KILL "$(child agent)"
touch "$scratch/go"
holds 'it is off all the same' until_holds 60 off "$big"
holds 'whole' uses 0
back 'under another agent'
begin 'it is called back'
works 'meanwhile' '' resume "$big"
touch "$scratch/go"
holds 'it has been off' until_holds 60 in_state "$big" running
holds 'and goes on' until_holds 60 uses 28
begin 'the process that takes it off is killed'
kill -KILL "$(helper "$big")"
touch "$scratch/go"
holds 'it is not known what has become of it' until_holds 60 refused "$big"
works 'as is said' 'the process that asked the driver for it was killed' show "$big"
back 'all the same'
begin 'the one with the driver is killed'
kill -KILL "$(pgrep -P "$(helper "$big")")"
touch "$scratch/go"
holds 'it is suspended as usual' until_holds 60 refused "$big"
holds 'and leaves its context' uses 16
back 'from there'
[ "$(wc -l <"$scratch/pids")" -eq 1 ]
said $? 'all that was one process' pids pids
touch "$scratch/enough"
ends 'it ends' "$big" 0
grep -q hash plain && cmp -s "$scratch/disturbed" plain
said $? 'and has computed the same, bit for bit' disturbed

# Others end it in the middle.
usual
keeps="exec \"\$0/gpu_load\" --rounds 0 --memory 12M --end never"
submit_here -J big --preempt suspend --gpu-memory 100M -- sh -c "$keeps" "$scratch"
big=$job
holds 'another one runs' until_holds 60 uses 28
begin 'its supervisor is killed'
kill -KILL "$(supervisor "$big")"
touch "$scratch/go"
holds 'it is lost' until_holds 60 uses 0
usual
works 'when it is let go' '' resume "$big"
holds 'it runs anew' until_holds 60 uses 28
works 'as its second run' 'Runs        2, ' show "$big"
begin 'it is cancelled'
works 'meanwhile' '' cancel "$big"
holds 'and is gone' until_holds 60 uses 0
touch "$scratch/go"
usual
submit_here -J big --preempt suspend --gpu-memory 100M -- sh -c "$keeps" "$scratch"
big=$job
holds 'another one runs' until_holds 60 uses 28
works 'is taken off' '' suspend --deep "$big"
holds 'whole' until_holds 60 off "$big"
works 'and cancelled there' '' cancel "$big"
run wait "$big"
out_has CANCELLED
said $? 'which ends it'

# A job of another user: the process that takes it off has that user's rights, and its page lies where that user can reach it.
if [ -n "$other" ]; then
	job=$(as_other "$SHAREWELL" submit --parsable --env SHAREWELL_EMU="$SHAREWELL_EMU" --env SHAREWELL_EMU_STATE="$SHAREWELL_EMU_STATE" --preempt suspend --gpu-memory 100M -- "$load" --rounds 0 --memory 12M --end never)
	holds 'a job of another user runs' until_holds 60 uses 28
	as_other "$SHAREWELL" suspend --deep "$job" >"$scratch/out" 2>"$scratch/err"
	said $? 'which takes it off'
	holds 'whole' until_holds 60 off "$job"
	holds 'and nothing is left' uses 0
	works 'root lets it go on' '' resume "$job"
	holds 'with all that it had' until_holds 60 uses 28
	works 'and cancels it' '' cancel "$job"
	holds 'it is gone' until_holds 60 uses 0
fi

# Jobs that cannot be taken off.
submit_here -J outside --preempt suspend --gpu-memory 100M -- sh -c "unset LD_PRELOAD; $keeps" "$scratch"
holds 'a job leaves the runtime' until_holds 60 uses 28
works 'is to be taken off' '' suspend --deep "$job"
holds 'and cannot be' until_holds 60 refused "$job"
works 'as is said' 'uses a GPU outside the runtime' show "$job"
works 'it is cancelled' '' cancel "$job"
submit -J bare --preempt suspend --gpu-memory 100M --gpu-runtime off -- sleep 1000
holds 'another one does without' until_holds 60 is_state "$job" R
refuses 2 'it cannot be either' 'it was submitted with --gpu-runtime off' suspend --deep "$job"
works 'it is cancelled' '' cancel "$job"
submit -J plain --preempt requeue -- sleep 1000
holds 'one that would start anew' until_holds 60 is_state "$job" R
refuses 2 'neither' 'it was submitted with --preempt requeue' suspend --deep "$job"
works 'nor is it when it' '' cancel "$job"
refuses 2 'has ended' 'it has ended' suspend --deep "$job"
submit -J held --hold --preempt suspend --gpu-memory 100M -- sleep 1000
refuses 2 'or never ran' 'it does not run' suspend --deep "$job"
refuses 2 'there is no other use' "unknown option '--deep'" resume --deep "$job"
end
