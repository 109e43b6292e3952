#!/bin/sh
# Classes of a live cluster: under the policy antman a second guaranteed training runs beside the first on the only GPU, gives way to it, and is promoted in place when
# that ends; and each computes what it computes alone.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-emu.sh"
emulate 1 512M
prepare_training
# start <name> [options]: the number of the job is $job.
start() {
	name=$1
	shift
	submit_here -J "$name" --gpu-memory 100M "$@" -- "$scratch/repeat.sh" "$scratch" "$name"
}
# is <job> <words of python about it>
is() { "$SHAREWELL" show --json "$1" | python3 -c "import json, sys; job = json.load(sys.stdin); sys.exit(not ($2))"; }

gpus=auto
up
works 'the policy is put in charge' '' policy antman
start first
first=$job
holds 'a guaranteed job runs by right' until_holds 60 is "$first" 'job["state"] == "R" and job["class"] == "guaranteed"'
start second --preempt requeue
second=$job
holds 'the next one runs as an opportunistic one beside it' until_holds 60 is "$second" 'job["state"] == "R" and job["class"] == "opportunistic"'
start third --class opportunistic
third=$job
until_holds 60 sh -c '"$0" why "$1" | grep -q "no GPUs that are used little enough have room for it beside others"' "$SHAREWELL" "$third"
said $? 'a third finds the GPU in use, and says so'
holds 'the first computes' until_holds 120 computed first
touch "$scratch/first.end"
ends 'the first ends well' "$first" 0
holds 'the second is promoted where it is' until_holds 60 is "$second" 'job["state"] == "R" and job["class"] == "guaranteed" and job["epoch"] == 1'
holds 'and the third comes beside it' until_holds 60 is "$third" 'job["state"] == "R" and job["class"] == "opportunistic"'
touch "$scratch/second.end" "$scratch/third.end"
ends 'the second ends well' "$second" 0
ends 'the third ends well' "$third" 0
for name in first second third; do
	[ "$(hash_of "$scratch/$name")" = "$(hash_of plain)" ] && [ "$(wc -l <"$scratch/$name.pids")" -eq 1 ]
	said $? "the $name computed in one process what it computes undisturbed, bit for bit"
done
end
