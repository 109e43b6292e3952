#!/bin/sh
# What people hear of a live cluster besides results: that nobody answers, what their job waits for, when something was.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
up

# A controller that stands still.
submit -- true
controller=$(child controller)
kill -STOP "$controller"
for command in ps "logs $job"; do
	refuses 1 "$command is not left waiting by a controller that stands still" 'controller.sock does not answer: nothing came within' $command
	err_has "'sharewell down' and 'sharewell up' start it anew"
	said $? 'and what to do is said'
done
timeout 120 "$SHAREWELL" submit --parsable -- true >"$scratch/one" 2>"$scratch/one.err" &
submitter=$!
holds 'who changes something hears that it is waited for' until_holds 60 grep -q 'does not answer; waiting for up to' "$scratch/one.err"
kill -CONT "$controller"
wait "$submitter" && [ "$(cat "$scratch/one")" -eq $((job + 1)) ]
said $? 'and is served once' one one.err
end
