#!/bin/sh
# The journal is looked after: a backup while the cluster runs, a log that is removed, a repair, a restore; no job number is used twice, and nothing is lost without a word.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"

journal="$SHAREWELL_STATE/journal.db"
down() {
	kill "$up_pid" && wait "$up_pid"
	up_pid=''
}
held() { submit --hold -- true; }
# field <name>: of the JSON that the last command printed.
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$scratch/json" "$1"; }

up
held
held
run journal check
[ "$status" -ne 0 ]
said $? 'the journal of a running controller is in use'
run journal backup "$scratch/first.db"
[ "$status" -eq 0 ] && [ -s "$scratch/first.db" ]
said $? 'a backup is made while the cluster runs'
run journal backup "$scratch/first.db"
[ "$status" -ne 0 ]
said $? 'no backup takes the place of another'
ls "$SHAREWELL_STATE" | grep -q 'backup-'
[ $? -ne 0 ]
said $? 'nothing is left beside the journal'
"$SHAREWELL" journal check "$scratch/first.db" --json >"$scratch/json" 2>/dev/null
[ "$(field unreadable)" -eq 0 ] && [ "$(field usable)" = True ]
said $? 'and it is whole'
held
held
[ "$job" -eq 4 ]
said $? 'two jobs more'

# The controller is killed, and its log removed.
down
up
held
kill -STOP "$up_pid"
kill -KILL "$(child controller)"
rm -f "$journal-wal"
kill -CONT "$up_pid"
kill "$up_pid"
wait "$up_pid"
up_pid=''
timeout 60 "$SHAREWELL" controller --state "$SHAREWELL_STATE" >"$scratch/refused" 2>&1
[ $? -ne 0 ] && grep -q 'of the journal' "$scratch/refused" && grep -q 'missing' "$scratch/refused"
said $? 'a controller does not start with a journal that lacks records'
run journal check
[ "$status" -eq 1 ]
said $? 'check tells of it by its exit status'
"$SHAREWELL" journal repair --json >"$scratch/json"
[ $? -eq 0 ] && [ "$(field missing)" -ge 1 ] && [ -f "$(field kept)" ]
said $? 'repair says how many records are missing, and keeps the old file'
run journal check
[ "$status" -eq 0 ]
said $? 'then it is sound'
up
holds 'the jobs before are there' sh -c '"$0" ps --noheader -j 4 | grep -q .' "$SHAREWELL"
held
[ "$job" -gt 1000 ]
said $? 'the number of the lost job is not used again'
repaired=$job

# Back to the first backup.
down
run journal restore "$scratch/first.db"
[ "$status" -ne 0 ]
said $? 'restore does not take the place of a journal unasked'
"$SHAREWELL" journal restore "$scratch/first.db" --force --json >"$scratch/json"
[ $? -eq 0 ] && [ -f "$(field kept)" ]
said $? 'with --force it does, and keeps the old file'
up
holds 'the first jobs are there' sh -c '"$0" ps --noheader -j 2 | grep -q .' "$SHAREWELL"
held
[ "$job" -gt "$repaired" ]
said $? 'no number is used twice after a restore'
last=$job

# On another machine nothing tells which numbers were given out.
down
rm -f "$journal" "$journal.mark" "$journal-wal"
run journal restore "$scratch/first.db"
[ "$status" -eq 0 ]
said $? 'a backup is restored where nothing is'
up
held
[ "$job" -gt 100000 ]
said $? 'numbers go on far above all that may have been given out'
down
run journal check
[ "$status" -eq 0 ]
said $? 'the journal is sound at the end'
end
