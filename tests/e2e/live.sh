#!/bin/sh
# A life of jobs on one machine: submitted, seen, read, ended, as people do it.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"

refuses 1 'without a controller, the message says so and what to do' 'no controller answers at' ps
err_has "start one with 'sharewell up'"
said $? 'which is to start one'

up
works 'it says where it listens and how to submit' '' nodes
grep -q 'Listening on .*controller.sock and http://127.0.0.1:' "$scratch/up.out" && grep -q 'sharewell submit -- ' "$scratch/up.out"
said $? 'with a line to copy' up.out up.out
refuses 2 'a second one in the same place is refused' 'Sharewell is up already' up --gpus none
refuses 1 'and so is a second controller on the same journal' 'Only one controller can use it' controller --port none
works 'nodes are listed' 'here idle' nodes
works 'and their GPUs' 'Emulated A100' nodes --gpus

# One job.
works 'a job is submitted' 'Submitted batch job 1' submit -J first -- sh -c 'echo out; echo err >&2; echo $SHAREWELL_JOB_ID $CUDA_VISIBLE_DEVICES'
ends 'it ends well' 1 0
works 'its output is kept' 'out' logs 1
out_has 'err' && out_has '1 GPU-e3000000'
said $? 'with its errors, its number, and the UUID of its GPU'
refuses 2 'that of a run that never was is not' 'it has no run 7; its last is 1' logs 1 --run 7
works 'it is in the history with code and signal' 'COMPLETED 0:0' history
works 'and is shown in full' 'ExitCode    0:0' show 1
out_has 'Command     sh -c ' && out_has 'State       COMPLETED'
said $? 'with its command and state'
works 'why tells how it ended' 'job 1 (CD): it ended well at 2' why 1
works 'the queue is empty but for its headings' 'JOBID NAME' ps
works 'all jobs are one' ' first ' ps --all --noheader

# Exit codes.
run run -- sh -c 'echo hello; exit 7'
[ "$status" -eq 7 ] && out_has hello && err_has 'FAILED with exit code 7'
said $? 'run passes output and exit code'
run run -- sh -c 'kill -USR1 $$'
[ "$status" -eq 138 ]
said $? 'run ends with 128 and the signal'
run run -- /no/such/program
[ "$status" -eq 127 ] && err_has 'is not there (command-not-found)'
said $? 'a program that is not there is 127, as in a shell, and said to be that'
run submit --wait -- sh -c 'exit 5'
[ "$status" -eq 5 ]
said $? 'submit --wait ends as the job does'
submit -- sh -c 'exit 3'
first=$job
submit -- true
run wait "$first" "$job"
[ "$status" -eq 3 ] && out_has "$first FAILED 3:0" && out_has "$job COMPLETED 0:0"
said $? 'wait tells all of them, and ends with the worst'

# More jobs than GPUs.
submit -G 4 -- sleep 60
long=$job
holds 'a job takes all GPUs' until_holds 20 is_state "$long" R
submit -- sleep 60
waiting=$job
works 'the next one waits' '(' ps -t PD --noheader
works 'and why is said in a sentence' "job $waiting (PD): " why "$waiting"
works 'cancelled, it never ran' "Cancelled job $waiting" cancel "$waiting"
run wait "$waiting"
[ "$status" -ne 0 ] && out_has CANCELLED
said $? 'and its state says so'
works 'a running job is cancelled' '' cancel "$long"
run wait "$long"
[ "$status" -ne 0 ] && out_has CANCELLED
said $? 'its state says so, too'
holds 'and its GPUs are free' until_holds 20 sh -c '"$0" nodes --noheader | grep -q "idle *4 *4 "' "$SHAREWELL"

# A job that does not heed its signal: it is over when it is gone, and its GPUs are given on only then.
submit -G 4 --grace 600 -- sh -c 'trap "" TERM; echo deaf $$; while :; do sleep 1; done'
deaf=$job
holds 'a deaf job runs' until_holds 60 sh -c '"$0" logs "$1" | grep -q deaf' "$SHAREWELL" "$deaf"
submit -G 4 -- sleep 60
heir=$job
works 'the deaf job is cancelled' '' cancel "$deaf"
works 'and is completing' 'CG' ps --noheader -j "$deaf"
works 'the next one waits for its GPUs' 'its GPUs are being freed' ps --noheader -t CF -j "$heir"
works 'and says for which job' "job $deaf is still stopping there" why "$heir"
kill -KILL "$("$SHAREWELL" logs "$deaf" | sed -n 's/^deaf //p')"
run wait "$deaf"
[ "$status" -ne 0 ] && out_has CANCELLED
said $? 'it is over when it is gone'
holds 'and the next one runs' until_holds 60 is_state "$heir" R
"$SHAREWELL" cancel "$heir"

# Following.
interruptible "$SHAREWELL" run -- sh -c 'echo begun; sleep 30' >"$scratch/followed" 2>"$scratch/notes" &
follower=$!
holds 'what a job writes is seen while it runs' until_holds 20 grep -q begun "$scratch/followed"
kill -INT "$follower"
wait "$follower"
[ "$?" -eq 130 ] && grep -q 'goes on' "$scratch/notes" && grep -q 'sharewell logs -f' "$scratch/notes"
said $? 'Ctrl-C detaches, and says how to get back' followed notes
job=$(sed -n 's/.*job \([0-9]*\) goes on.*/\1/p' "$scratch/notes")
holds 'the job goes on' until_holds 20 is_state "$job" R
"$SHAREWELL" cancel "$job"
submit -- sh -c 'for i in 1 2 3 4 5; do echo line $i; sleep 0.1; done'
works 'logs -f stays until the end' 'line 5' logs -f "$job"

# Suspend, resume, requeue, hold.
submit -- sh -c 'sleep 60'
holds 'a job runs' until_holds 20 is_state "$job" R
refuses 2 'it is not suspended: it would lose its run' "would lose its run" suspend "$job"
holds 'and runs on' is_state "$job" R
works 'by force it is stopped' "Suspended job $job" suspend --force "$job"
holds 'and shown as such' until_holds 20 is_state "$job" PD
works 'with what lets it go' "sharewell resume $job" why "$job"
works 'it is resumed' "Resumed job $job" resume "$job"
holds 'and runs again' until_holds 20 is_state "$job" R
works 'it is requeued' "Requeued job $job" requeue "$job"
holds 'and starts anew' until_holds 20 sh -c '"$0" show "$1" | grep -q "Runs  *[2-9]"' "$SHAREWELL" "$job"
"$SHAREWELL" cancel "$job"
submit -H -- true
works 'a held job waits' 'PD' ps --noheader -j "$job"
works 'until it is let go' '' resume "$job"
ends 'and then it runs' "$job" 0

# The policy while it runs; figures.
works 'the policy is shown' 'In charge: sharewell' policy
works 'one is set up' 'In charge: las' policy las --set promote=2.5
works 'and what was set is shown' ' promote=2.5' policy
works 'and changed' 'In charge: fifo' policy fifo
works 'a quota is set' 'tenant uid0 may hold 2 GPUs' quota uid0 2
works 'and what tenants hold is listed' 'TENANT' quota
works 'the screen as text' 'GPUs 4 of 4 free' top --once
works 'the history is a trace' 'jobs in trace.csv' history --export trace.csv
works 'that the simulator replays' 'fifo' sim --trace trace.csv --cluster 1x4 --policy fifo

# Bad input.
refuses 2 'a job that is not there' 'no job 999999' show 999999
refuses 2 'what is no number' "'x' is not the number of a job" cancel x
refuses 2 'more GPUs than there are is refused at once' 'GPU' submit -G 9 -- true
refuses 2 'an unknown policy' "'sharewell policy' lists those that there are" policy nonesuch
refuses 2 'no command' 'needs a command' submit
refuses 2 'a place that is none' 'is no place of a controller' ps --controller ftp://x
refuses 1 'a place where no controller is' 'no controller answers at http://127.0.0.1:1' ps --controller http://127.0.0.1:1

# Over TCP a token is needed.
url=$(sed -n 's/.* and \(http:.*\)/\1/p' "$scratch/up.out" | head -n 1)
works 'over TCP, with the token of the state folder' 'JOBID' ps --controller "$url"
run ps --controller "$url"
SHAREWELL_STATE=$scratch/elsewhere timeout 60 "$SHAREWELL" ps --controller "$url" >"$scratch/out" 2>"$scratch/err"
[ $? -eq 1 ] && err_has 'token'
said $? 'without a token it is refused'

works 'JSON everywhere' '"jobs":' ps --all --json
holds 'which others can read' sh -c '"$0" ps --all --json | python3 -m json.tool' "$SHAREWELL"
holds 'for nodes, too' sh -c '"$0" nodes --json | python3 -m json.tool' "$SHAREWELL"

# The end.
kill -INT "$up_pid"
wait "$up_pid"
said $? 'Ctrl-C stops it' up.out up.out
grep -q 'jobs that run go on' "$scratch/up.out"
said $? 'and it says what becomes of jobs' up.out up.out
up_pid=''
end
