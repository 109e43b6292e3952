#!/bin/sh
# Turns in place on a live cluster: under the policy salus two trainings in one lane of the only GPU take turns without leaving it, and each computes what it computes alone.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-emu.sh"
emulate 1 512M
prepare_training
# start <name> [options]: the number of the job is $job.
start() {
	name=$1
	shift
	submit_here -J "$name" --gpu-memory 300M --gpu-floor 200M "$@" -- "$scratch/repeat.sh" "$scratch" "$name"
}
# is <job> <words of python about it>
is() { "$SHAREWELL" show --json "$1" | python3 -c "import json, sys; job = json.load(sys.stdin); sys.exit(not ($2))"; }
paused() { is "$1" 'job["state"] == "R" and job["paused"]'; }
# Its page says so.
stands() { is "$1" 'job["paused"] and job["gpu"] is not None and job["gpu"]["compute"] == 0'; }
works_now() { is "$1" 'job["state"] == "R" and not job["paused"]'; }

gpus=auto
up
works 'one lane, turns of two seconds' '' policy salus --set lanes=1 --set turn=2s
refuses 2 'a floor above the memory' 'gpu_floor' submit --gpu-memory 1G --gpu-floor 2G -- true
start first
first=$job
holds 'the first works' until_holds 60 works_now "$first"
start second
second=$job
holds 'the second comes to the same GPU, though both together want more than there is' until_holds 60 is "$second" 'job["state"] == "R"'
for name in first second; do
	eval "number=\$$name"
	holds "the $name stands still while the other has its turn" until_holds 120 paused "$number"
	holds "its processes are let nothing do on the GPU meanwhile" until_holds 120 stands "$number"
	holds "the $name has its turn" until_holds 120 works_now "$number"
	holds "the $name computes" until_holds 240 computed "$name"
done
until_holds 120 sh -c '"$0" why "$1" | grep -q "it is paused on node .*, where another job has the GPUs now"' "$SHAREWELL" "$second"
said $? 'why says that it waits for its turn'
start third
third=$job
until_holds 60 sh -c '"$0" why "$1" | grep -q "no others have room beside their lanes for the 200 MiB that it keeps"' "$SHAREWELL" "$third"
said $? 'a third finds no room for what it keeps, and says so'
touch "$scratch/first.end"
ends 'the first ends well' "$first" 0
holds 'the third takes its place' until_holds 60 is "$third" 'job["state"] == "R"'
touch "$scratch/second.end" "$scratch/third.end"
ends 'the second ends well' "$second" 0
ends 'the third ends well' "$third" 0
for number in "$first" "$second" "$third"; do
	holds "job $number never left its GPU" is "$number" 'job["epoch"] == 1 and job["preemptions"] == 0'
done
for name in first second third; do
	[ "$(hash_of "$scratch/$name")" = "$(hash_of plain)" ] && [ "$(wc -l <"$scratch/$name.pids")" -eq 1 ]
	said $? "the $name computed in one process what it computes undisturbed, bit for bit"
done
end
