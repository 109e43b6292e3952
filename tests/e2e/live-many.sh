#!/bin/sh
# One word to many jobs: all of them or none, in one request; jobs that have ended do not keep others from being cancelled; an old controller is asked for one at a time.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
# Thousands of jobs end in one request here: not every step is checked.
up --validate-every 100
held() { "$SHAREWELL" show --json "$1" | grep -q '"held":true'; }
# What was printed, without what changes from one moment to the next.
plain() { sed 's/"[a-z_]*_at":[^,]*,//g' "$scratch/out"; }
# asked <operation>: how often, so far.
asked() {
	python3 -c '
import socket, sys
c = socket.socket(socket.AF_UNIX)
c.connect(sys.argv[1])
c.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
sys.stdout.write(c.makefile().read())' "$scratch/state/controller.sock" | sed -n "s/^sharewell_http_requests_total{operation=\"$1\"} \([0-9]*\).*/\1/p"
}

submit --array 1-5 -H -- sleep 1000
a=$job b=$((job + 1)) c=$((job + 2)) d=$((job + 3)) e=$((job + 4))
works 'many are held' 'Held 5 jobs' hold "$a-$e"
[ "$(asked changeJobs)" = 1 ] && [ "$(asked holdJob)" = 0 ]
said $? 'with one request'
works 'and resumed, each that is named twice once' 'Resumed 2 jobs' resume "$a" "$b" "$a"
run resume "$b" "$a"
[ "$status" -eq 0 ] && [ "$(cat "$scratch/out")" = "Nothing to resume: job $b is not held by any user
Nothing to resume: job $a is not held by any user" ]
said $? 'which is told of each where there was nothing to do'
works 'and for the others' 'Resumed 1 job' resume "$a" "$c"
works 'they are held again' 'Held 3 jobs' hold "$a" "$b" "$c"
held "$a" && held "$c"
said $? 'and stay so'

refuses 2 'there is a most' 'makes it more than 100000 jobs' hold "$a" 1-100000
refuses 2 'one that is not there keeps the others as they are' 'there is no job 999' resume "$a" 999 "$b"
err_has 'None of the 3 jobs was changed.' && [ ! -s "$scratch/out" ] && held "$a" && held "$b"
said $? 'which is said'
works 'one is cancelled' "Cancelled job $e" cancel "$e"
refuses 2 'one that has ended does so too' "cannot resume job $e: it has ended" resume "$a" "$e" "$b"
err_has 'None of the 3 jobs was changed.' && held "$a" && held "$b"
said $? 'but where they are cancelled'
run cancel "$e" "$d" "$e"
[ "$status" -eq 2 ] && err_has "cannot cancel job $e: it has ended" && ! err_has None && [ "$(cat "$scratch/out")" = 'Cancelled 1 job' ] && is_state "$d" CA
said $? 'it does not keep others'

works 'runs of jobs that are held end only by a requeue' '' requeue "$a" "$b"
until_holds 20 is_state "$a" PD && until_holds 20 is_state "$b" PD
said $? 'and then they wait'
run hold --json "$a"
plain >"$scratch/alone"
run hold --json "$a" "$b"
[ "$status" -eq 0 ] && [ "$(wc -l <"$scratch/out")" -eq 2 ] && plain | head -n 1 | cmp - "$scratch/alone"
said $? 'for a machine many are told as one is, a line for each'
run resume --json "$c" "$a" "$c"
[ "$(sed 's/.*"id":\([0-9]*\).*"changed":\([a-z]*\)}/\1 \2/' "$scratch/out" | tr '\n' ' ')" = "$c true $a true " ]
said $? 'in the order in which they were named'

works 'all are gone' '' cancel "$a-$c"
submit -J turns -H -G 4 --array 1-3 -- sleep 1000
works 'by name they are let go' 'Released 3 jobs' release --name turns
until_holds 20 is_state "$job" R
said $? 'in their own order: the first of them runs first'
works 'and go too' 'Cancelled 3 jobs' cancel --name turns
submit --array 1-3 -H --preempt suspend -- sleep 1000
a=$job b=$((job + 1)) c=$((job + 2))

# An old controller: the same words by other means.
python3 "$SW_SOURCE_DIR/tests/e2e/old_controller.py" "$scratch/state/controller.sock" "$scratch/old.sock" /v1/jobs/change &
old=$!
until_holds 20 test -S "$scratch/old.sock"
for verb in hold suspend resume requeue; do
	"$SHAREWELL" release "$a-$c" >/dev/null
	[ $verb != resume ] || "$SHAREWELL" hold "$a" "$c" >/dev/null
	run $verb "$a-$c" --controller "unix:$scratch/old.sock"
	cp "$scratch/out" "$scratch/before"
	[ "$status" -eq 0 ] && [ -s "$scratch/before" ]
	said $? "an old controller is asked to $verb one at a time"
	"$SHAREWELL" release "$a-$c" >/dev/null
	[ $verb != resume ] || "$SHAREWELL" hold "$a" "$c" >/dev/null
	run $verb "$a-$c"
	cmp "$scratch/before" "$scratch/out" && [ "$status" -eq 0 ]
	said $? 'and it reads the same'
done
works 'it cancels so as well' 'Cancelled 3 jobs' cancel "$a-$c" --controller "unix:$scratch/old.sock"
kill "$old"
wait "$old" 2>/dev/null

# A crowd.
submit -J crowd --array 1-3000 -- sleep 1000
works 'thousands, by name' 'Cancelled 3,000 jobs' cancel --name crowd
none_left() { "$SHAREWELL" ps --noheader >"$scratch/out" && [ ! -s "$scratch/out" ]; }
until_holds 20 none_left
said $? 'and none is left, once those that ran are gone'
end
