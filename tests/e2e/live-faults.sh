#!/bin/sh
# Controller and agent are killed; jobs survive, none is lost, and every exit code is told.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"

up
# Longer than a lease: it lives only if leases are renewed all the time.
submit -- sh -c 'sleep 40; exit 8'
longest=$job
submit -- sh -c 'echo begun; until [ -e "$0" ]; do sleep 0.1; done; echo done; exit 9' "$scratch/go"
holds 'a job runs' until_holds 20 is_state "$job" R
"$SHAREWELL" wait "$job" >"$scratch/waited" 2>"$scratch/waited.err" &
waiter=$!

kill -KILL "$(child controller)"
holds 'the killed controller comes back' until_holds 20 "$SHAREWELL" ps
holds 'and knows the job' is_state "$job" R
kill -KILL "$(child agent)"
holds 'the killed agent comes back' until_holds 20 sh -c '"$0" nodes --noheader | grep -q "mix"' "$SHAREWELL"
holds 'and its job still runs' is_state "$job" R
: >"$scratch/go"
submit -- sh -c 'exit 4'
ends 'new jobs run' "$job" 4
wait "$waiter"
[ $? -eq 9 ] && grep -q 'FAILED 9:0' "$scratch/waited"
said $? 'the command that waited heard the true exit code' waited waited.err
works 'it ran once' '1, restarts 0' show 2
works 'and its output is whole' 'done' logs 2

# All at once, with the parent: nothing is left but the jobs.
submit -- sh -c 'sleep 3; exit 6'
holds 'another job runs' until_holds 20 is_state "$job" R
controller=$(child controller) agent=$(child agent)
kill -KILL "$up_pid" "$controller" "$agent"
wait "$up_pid" 2>/dev/null
# A process that is dying may still take a connection.
holds 'all are gone' until_holds 20 sh -c '"$0" ps 2>&1 | grep -q "no controller answers"' "$SHAREWELL"
up
holds 'and the next one finds the job' sh -c '"$0" ps --all --noheader -j "$1" | grep -qE " (R|F) "' "$SHAREWELL" "$job"
ends 'and its exit code' "$job" 6
works 'it ran once' '1, restarts 0' show "$job"

ends 'a job longer than a lease ends by itself' "$longest" 8

# In the background.
kill "$up_pid" && wait "$up_pid"
up_pid=''
run up --detach --gpus "$gpus" --port 0 --node here
[ "$status" -eq 0 ] && out_has 'Listening on' && out_has 'sharewell down'
said $? 'it goes to the background when asked'
works 'jobs run there' '' submit --wait -- true
refuses 2 'a second one is refused' 'Sharewell is up already' up --detach --gpus none
kill -KILL "$(pgrep -P "$(cat "$SHAREWELL_STATE/up.pid")" -f 'sharewell controller')"
holds 'what ended is told in the log' until_holds 20 grep -q 'the controller was ended by signal 9' "$SHAREWELL_STATE/up.log"
holds 'and that there is another' until_holds 20 grep -q 'controller ready' "$SHAREWELL_STATE/up.log"
holds 'and every line says when' sh -c '! grep -vE "^20[0-9]{2}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2} " "$SHAREWELL_STATE/up.log"'
run up --detach --gpus "$gpus" --port none --state "$scratch/new"
[ "$status" -eq 0 ] && SHAREWELL_STATE=$scratch/new "$SHAREWELL" submit --test-only -G 4 -- true | grep -q 'the cluster has 4 GPUs'
said $? 'a new cluster has its GPUs when it says that it is up'
run down --state "$scratch/new"
works 'and it is stopped by a word' 'Sharewell is down' down
refuses 2 'once' 'nothing is up' down
end
