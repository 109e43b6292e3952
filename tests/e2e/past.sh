#!/bin/sh
# Jobs that have ended leave the controller's memory; what people ask about them is answered all the same, also after restarts and kills.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"

keep='--keep-jobs 20 --keep-for 1h --keep-history 1000'
# shellcheck disable=SC2086
up $keep

left() { [ "$("$SHAREWELL" show --json "$1" | tr -d ' \n' | grep -o '"past":[a-z]*' | head -n 1)" = '"past":true' ]; }
stop_up() { { kill "$1" "$up_pid" && wait "$up_pid"; } 2>/dev/null; up_pid=''; }
counted() { [ "$("$SHAREWELL" ps --all --noheader | wc -l)" -eq "$1" ]; }

submit -J first -- sh -c 'echo the first speaks'
first=$job
ends 'the first ends well' "$first" 0
submit -J bad -- sh -c 'exit 3'
bad=$job
run wait "$bad"
# A job that lives through all of it, and one that waits for it and for the first.
submit -J stays --hold -- true
stays=$job
submit -J waits --dependency "afterok:$first,afterany:$stays" -- true
waits=$job
submit -J array --array 0-295%4 -- true
array=$job
run wait "$array"
until_holds 120 counted 300
said $? 'ps --all lists 300 jobs, in memory and on disk'
until_holds 60 sh -c '! "$0" ps --noheader | grep -q array' "$SHAREWELL"
said $? 'the array ends, though members left while others waited'
until_holds 60 left "$bad"
said $? 'a job that has ended leaves'
! left "$first" && ! left "$stays" && ! left "$waits"
said $? 'one that another waits for stays, and those that wait'

run ps --all --noheader
[ "$(awk '{print $1}' "$scratch/out" | sort -n | uniq | wc -l)" -eq 300 ]
said $? 'no job is listed twice, none is missing'
run history --noheader
[ "$(wc -l <"$scratch/out")" -eq 298 ] && grep -q "^ *$bad .*FAILED.*3:0" "$scratch/out"
said $? 'history tells how they ended'
run show "$bad"
[ "$status" -eq 0 ] && out_has 'exit 3'
said $? 'show knows its command'
run why "$bad"
[ "$status" -eq 0 ] && [ -s "$scratch/out" ]
said $? 'why has an answer'
run cancel "$bad"
cat "$scratch/out" "$scratch/err" | grep -qi 'ended'
said $? 'cancel says that it has ended'
run cancel 9999
[ "$status" -ne 0 ]
said $? 'a number of no job is an error'

# What became of jobs that have left is known to those that depend on them.
submit -J after-bad --dependency "afternotok:$bad" -- true
ends 'afternotok of a job that has left and failed: it runs' "$job" 0
submit -J never --dependency "afterok:$bad" -- true
run wait "$job"
[ "$status" -ne 0 ] && until_holds 10 is_state "$job" CA
said $? 'afterok of a job that has left and failed: it ends'

"$SHAREWELL" release "$stays" >/dev/null
ends 'the job that waited for both runs' "$waits" 0
for _ in 1 2 3 4 5; do
	submit --array 0-4 -- true
	run wait "$job"
done
until_holds 60 left "$first"
said $? 'then the first leaves too'
run logs "$first"
[ "$(cat "$scratch/out")" = 'the first speaks' ]
said $? 'logs of a job that has left'

before=$("$SHAREWELL" ps --all --noheader | awk '{print $1, $3, $5}' | sort -n)
stop_up -TERM
# shellcheck disable=SC2086
up $keep
[ "$("$SHAREWELL" ps --all --noheader | awk '{print $1, $3, $5}' | sort -n)" = "$before" ]
said $? 'after a restart all are as they were'
run logs "$first"
[ "$(cat "$scratch/out")" = 'the first speaks' ]
said $? 'and so are the logs'

for round in 1 2 3; do
	submit --array 0-30 -- true
	kill -KILL "$(child controller)"
	{ kill "$up_pid" && wait "$up_pid"; } 2>/dev/null
	# shellcheck disable=SC2086
	up $keep
	until_holds 60 sh -c '[ -z "$("$0" ps --noheader)" ]' "$SHAREWELL"
	said $? "round $round: killed in between, all that was acknowledged ends"
done
"$SHAREWELL" ps --all --noheader | awk '{print $1}' | sort -n >"$scratch/numbers"
[ "$(sort -n "$scratch/numbers" | uniq -d | wc -l)" -eq 0 ] && [ "$(tail -n 1 "$scratch/numbers")" -eq "$(wc -l <"$scratch/numbers")" ]
said $? 'no row is lost, none is double'

submit -J pauses --hold -- true
pauses=$job
sleep 1
"$SHAREWELL" hold "$pauses" >/dev/null
"$SHAREWELL" release "$pauses" >/dev/null
ends 'a job that was on hold runs' "$pauses" 0
# A resume that finds nothing to do is in the journal all the same. It is no end of a hold.
submit -J goes-on -- sleep 1
until_holds 20 sh -c '"$0" show --json "$1" | grep -q "\"started_at\": *\"2"' "$SHAREWELL" "$job"
"$SHAREWELL" resume "$job" >/dev/null 2>&1
ends 'a job that runs is resumed and goes on' "$job" 0
run sim --journal --policy fifo --jobs-out "$scratch/jobs.csv"
[ "$status" -eq 0 ] && out_has "2 times on hold are replayed by the journal's events" && ! out_has 'alone'
said $? 'sim --journal replays times on hold by events, also of jobs that have left, and says so'
python3 -c '
import csv, sys
job = {int(row["job_id"]): row for row in csv.DictReader(open(sys.argv[1]))}[int(sys.argv[2])]
sys.exit(float(job["start_time"]) - float(job["submit_time"]) < 1)' "$scratch/jobs.csv" "$pauses"
said $? 'a job that was submitted on hold, and held again, waits from its submit on'
# An old controller tells holds and releases alone.
python3 "$SW_SOURCE_DIR/tests/e2e/old_controller.py" "$SHAREWELL_STATE/controller.sock" "$scratch/old.sock" '/v1/journal/events?all' &
old=$!
until_holds 20 test -S "$scratch/old.sock"
run sim --journal --policy fifo --controller "unix:$scratch/old.sock"
kill "$old"
[ "$status" -eq 0 ] && out_has "2 times on hold are replayed by the journal's events" && ! out_has 'alone'
said $? 'and those that an old controller tells'

stop_up -TERM
up --keep-jobs 5 --keep-history 50
# The newest array stays, since more of it could come.
submit -- true
run wait "$job"
until_holds 60 sh -c '[ "$("$0" ps --all --noheader | wc -l)" -le 60 ]' "$SHAREWELL"
said $? 'rows beyond --keep-history go'
run show "$bad"
[ "$status" -ne 0 ] && err_has 'older than what is kept'
said $? 'and show says so'

# Events that go: what happened to earlier jobs is then known by their rows alone. The last 8192 stay for watchers.
stop_up -TERM
up --keep-events 100
submit --hold -- true
"$SHAREWELL" release "$job" >/dev/null
ends 'one more job that was on hold runs' "$job" 0
run submit -J many --hold --array 1-9000 -- true
for _ in 1 2; do
	submit -- true
	run wait "$job"
	stop_up -TERM
	up --keep-events 100
done
run sim --journal --policy fifo
[ "$status" -eq 0 ] && out_has 'came before the first event that is kept, and are known by their rows on disk alone' && ! out_has 'on hold'
said $? 'beyond --keep-events it goes by rows, and says so'
run cancel --name many
[ "$status" -eq 0 ]
said $? 'all of an array are cancelled by name'
end
