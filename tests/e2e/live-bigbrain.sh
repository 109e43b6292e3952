#!/bin/sh
# Big Brain on a live cluster: two whole jobs on each of two GPUs, the next one waits and says why, and each computes what it computes alone.
# (Jobs are split in the simulator only.)
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-emu.sh"
emulate 2 512M
prepare_training
# start <name> <memory>: the number of the job is $job.
start() { submit_here -J "$1" --gpu-memory "$2" -- "$scratch/repeat.sh" "$scratch" "$1"; }

gpus=auto
up
works 'the policy is put in charge' '' policy bigbrain --set k=2 --set context=0.02
for name in first second third fourth; do
	start "$name" 100M
	eval "$name=\$job"
	holds "the $name runs" until_holds 60 is_state "$job" R
done
"$SHAREWELL" ps --json | python3 -c '
import json, sys
sys.exit(sorted(gpu for job in json.load(sys.stdin)["jobs"] for gpu in job["gpu_indexes"]) != [0, 0, 1, 1])'
said $? 'two of them are on each GPU'
start fifth 100M
fifth=$job
until_holds 60 sh -c '"$0" why "$1" | grep -q "no GPU with room for its 100 MiB runs fewer than 2 whole jobs, and it cannot be split"' \
	"$SHAREWELL" "$fifth"
said $? 'the fifth waits, and says why'
for name in first second third fourth; do
	holds "the $name computes" until_holds 120 computed "$name"
done
# shellcheck disable=SC2154
{
	touch "$scratch/second.end"
	ends 'the second ends well' "$second" 0
	holds 'the fifth comes in its place' until_holds 60 is_state "$fifth" R
	touch "$scratch/first.end" "$scratch/third.end" "$scratch/fourth.end" "$scratch/fifth.end"
	for name in first third fourth fifth; do
		eval "number=\$$name"
		ends "the $name ends well" "$number" 0
	done
}
for name in first second third fourth; do
	[ "$(hash_of "$scratch/$name")" = "$(hash_of plain)" ]
	said $? "the $name computed what it computes undisturbed, bit for bit"
done
end
