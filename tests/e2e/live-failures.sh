#!/bin/sh
# Jobs that fail on purpose, and what is said and done about them; nodes that are drained.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
up

# What only the user can mend is told in words and not tried again.
submit --retries 3 -- sh -c 'echo starting; echo "Traceback (most recent call last):" >&2; echo "ModuleNotFoundError: No module named '"'frobnicate'"'" >&2; exit 1'
ends 'a job with an import error fails at once' "$job" 1
works 'show says what went wrong' 'a module or library that it needs is not there (import-error, user)' show "$job"
out_has "ModuleNotFoundError: No module named 'frobnicate'"
said $? 'and the line that gave it away'
out_has 'not tried again: trying again would not help' && out_has 'Install it'
said $? 'what was done, and what to do'
works 'why says it in one sentence' "No module named 'frobnicate'" why "$job"
works 'ps names the class' 'import-error' ps -t all -j "$job"
works 'for programs, too' '"class":"import-error"' show --json "$job"
submit -o out.txt -e errors.txt -- sh -c 'echo "FileNotFoundError: [Errno 2] No such file or directory: '"'/data/none.json'"'" >&2; exit 1'
ends 'output in files of its own' "$job" 1
works 'is looked at as well' 'incorrect-input' show "$job"
submit -- sh -c 'kill -SEGV $$'
"$SHAREWELL" wait "$job" >/dev/null
works 'a crash is one' 'it crashed (core-dump, user)' show "$job"
submit -- no-such-command-anywhere
"$SHAREWELL" wait "$job" >/dev/null
works 'a command that is not there' 'command-not-found' show "$job"

# What trying again can help is tried again, later.
waits_again() { "$SHAREWELL" show "$1" | grep -q "Done .*it is tried again in .* s"; }
submit -- sh -c 'echo "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error" >&2; exit 1'
holds 'a failure of the framework is tried again' until_holds 20 waits_again "$job"
works 'and show says when' '(1 of 3)' show "$job"
works 'so does why' 'collective communication' why "$job"
! out_has 'at any moment' && out_has 'expected to start in about'
said $? 'and expects it when that is due'
"$SHAREWELL" cancel "$job"
submit --gpu-memory 4G -- sh -c 'echo "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB" >&2; exit 1'
holds 'GPU memory that ran out is answered' until_holds 20 waits_again "$job"
works 'with half as much again' 'with 6.0 GiB on each GPU' show "$job"
"$SHAREWELL" cancel "$job"
submit -- sh -c 'echo "RuntimeError: CUDA out of memory." >&2; exit 1'
ends 'a job with whole GPUs is not tried again' "$job" 1
works 'and hears why' 'it had whole GPUs already' show "$job"
submit --retries 0 -- sh -c 'echo "Connection timed out" >&2; exit 1'
ends 'nor is one that does not want to be' "$job" 1

# Inputs that others failed on.
for i in 1 2; do
	submit -- sh -c 'echo "FileNotFoundError: [Errno 2] No such file or directory: '"'/data/set-7'"'" >&2; exit '$i
	"$SHAREWELL" wait "$job" >/dev/null
done
run submit -H --parsable -- cat /data/set-7/labels
[ "$status" -eq 0 ] && err_has "'/data/set-7' was missing or damaged for 2 jobs lately"
said $? 'a submit that names a bad input is warned'
job=$(cat "$scratch/out")
works 'and taken all the same' "Warning     '/data/set-7'" show "$job"
"$SHAREWELL" cancel "$job"

# Pre-runs.
submit -G 4 -J big --prerun 1m -- sh -c 'test -z "$SHAREWELL_PRERUN" || { sleep 1; echo "ImportError: cannot import name x" >&2; exit 1; }; echo all of it'
run wait "$job"
[ "$status" -eq 1 ] && out_has FAILED
said $? 'a pre-run that fails ends its gang'
works 'in its words' 'ImportError: cannot import name x' show "$job"
out_has 'its pre-run on one GPU failed' && out_has 'Runs        0'
said $? 'and the gang never ran'
submit -G 4 --prerun 1m -- sh -c 'echo "pre-run: $SHAREWELL_PRERUN, $(echo "$CUDA_VISIBLE_DEVICES" | tr , "\n" | wc -l)"'
ends 'a pre-run that passes lets it start' "$job" 0
works 'on all of its GPUs' 'pre-run: , 4' logs "$job"
works 'after one' 'pre-run: 1, 1' logs "$((job - 1))"
submit -G 2 --prerun 1s --grace 1s -- sh -c 'test -z "$SHAREWELL_PRERUN" || exec sleep 60; echo went on'
ends 'the end of its time is no failure' "$job" 0
works 'and is shown as passed' 'COMPLETED, passed' show "$((job - 1))"
refuses 2 'one GPU needs no pre-run' 'more than one GPU' submit --prerun 1m -- true

# Nodes.
submit -- sleep 30
holds 'a job runs' until_holds 20 is_state "$job" R
works 'its node is drained' 'takes no more jobs' nodes drain here --reason 'new fans'
works 'which is shown' 'new fans' nodes
out_has ' drng '
said $? 'with its state'
second=$job
submit -- true
sleep 0.5
is_state "$job" PD && is_state "$second" R
said $? 'jobs that run go on, others wait'
works 'and hear why' 'Drained: here (new fans)' why "$job"
out_has 'no estimate of its start: no node takes jobs at present'
said $? 'and that it is not known for how long'
works 'in the list too' '(Drained: here (new fans))' ps --noheader -j "$job"
works 'it is opened again' 'takes jobs' nodes resume here
ends 'and takes jobs' "$job" 0
"$SHAREWELL" cancel "$second"
refuses 2 'a node that is not there' 'no node' nodes drain nowhere
refuses 2 'an action that is not there' 'drain, resume or remove' nodes paint here
refuses 2 'a drain without a node' 'name of a node' nodes drain

end
