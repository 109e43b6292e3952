#!/bin/sh
# Outages stop no job: Sharewell stopped and started again, controller and agent standing still, a node that does not answer, a controller that cannot start, clocks that jump. Every job
# goes on, runs once, and its exit code arrives; only a job that chose a lease is stopped at its end, with its own signal and grace.
# OUTAGES=full: each at the length that the docs promise (make outages).
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"

if [ "${OUTAGES:-}" = full ]; then
	down_s=600 still_s=300 kept_s=600
else
	# The first is longer than the 30 s after which version 0.1 killed its jobs.
	down_s=40 still_s=10 kept_s=5
fi
cc -shared -fPIC -O1 -o "$scratch/wrong_clock.so" "$SW_SOURCE_DIR/tests/e2e/wrong_clock.c" || exit 1
echo 0 >"$scratch/clock"
export WRONG_CLOCK="$scratch/clock"

# With a clock that this script moves.
start() {
	interruptible "$(command -v env)" ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" LD_PRELOAD="$scratch/wrong_clock.so" \
		"$SHAREWELL" up --gpus "$gpus" --port none --node here --world "$world" --unreachable-after 2s >"$scratch/up.out" 2>&1 &
	up_pid=$!
	until_holds 60 sh -c '"$0" nodes --noheader | grep -q "^here  *\(idle\|mix\|alloc\|drain\|drng\) "' "$SHAREWELL" || {
		cat "$scratch/up.out"
		echo 'Bail out! the cluster does not start'
		exit 1
	}
}
stop() {
	kill -INT "$up_pid"
	wait "$up_pid" 2>/dev/null
	up_pid=''
}

# counts <name> <exit code> <options...>: a job that counts its own tenths of a second in a file, and notes every start, until it is told to end.
counts() {
	name=$1 code=$2
	shift 2
	submit -J "$name" "$@" -- sh -c 'echo $$ >>"$0/$1.starts"; trap "echo signal >>$0/$1.signals" USR1; until [ -e "$0/$1.end" ]; do echo x >>"$0/$1.count"; sleep 0.1; done; exit "$2"' "$scratch" "$name" "$code"
}
count_of() { wc -l <"$scratch/$1.count"; }
# counts_on <name>: it is at work.
counts_on() {
	before=$(count_of "$1")
	until_holds 20 sh -c '[ "$(wc -l <"$1")" -gt "$0" ]' "$before" "$scratch/$1.count"
}
runs_on() { [ "$(wc -l <"$scratch/$1.starts")" -eq 1 ] && [ ! -e "$scratch/$1.signals" ] && counts_on "$1"; }
# go_on <aim>: both jobs do, under their first run, and the controller says so.
go_on() {
	holds "$1: the first job goes on" runs_on one
	holds "$1: the second job goes on" runs_on two
	holds "$1: the first job is known to run" until_holds 60 is_state 1 R
	holds "$1: the second job is known to run" until_holds 60 is_state 2 R
	works "$1: the first job has had one run" '1, restarts 0' show 1
	works "$1: the second job has had one run" '1, restarts 0' show 2
}

start
counts one 7 --signal USR1
counts two 8 --signal USR1 -t 2:00:00
holds 'two jobs run' until_holds 30 sh -c '"$0" ps --noheader | grep -c " R " | grep -qx 2' "$SHAREWELL"

# What the screen promises.
holds 'up says that jobs go on' grep -qF "Ctrl-C stops Sharewell; jobs that run go on, and are found again at the next 'sharewell up'." "$scratch/up.out"
holds 'the README says how long' sh -c 'tr "\n" " " <"$0" | grep -qF "Jobs go on while Sharewell is stopped, killed or cut off, for a minute or a week"' "$SW_SOURCE_DIR/README.md"
holds 'and so do the docs' grep -qF "Ctrl-C stops Sharewell; jobs that run go on, and are found again at the next 'sharewell up'." "$SW_SOURCE_DIR/docs/quickstart.md"
counts_on one
begun=$(count_of one)
stop
holds 'it is down' sh -c '! "$0" ps' "$SHAREWELL"
sleep "$down_s"
# Half of what it can count at best: a busy machine sleeps longer.
holds 'the jobs worked on meanwhile' [ "$(count_of one)" -gt $((begun + down_s * 2)) ]
start
go_on 'after Sharewell was down'

# Both stand still: neither is there to miss the other.
controller=$(child controller) agent=$(child agent)
kill -STOP "$controller" "$agent"
sleep "$still_s"
kill -CONT "$agent" "$controller"
go_on 'after controller and agent stood still'

# The agent alone: the node does not answer, and that is said. A job with a lease is stopped in its own way and waits for another node; one without goes on.
submit -J leased --signal USR2 --grace 5s --on-lost restart --lease 3s -- sh -c 'echo begun >>"$0/leased"; trap "echo signal >>$0/leased; sleep 1; echo grace >>$0/leased; exit 0" USR2; while :; do sleep 0.1; done' "$scratch"
leased=$job
counts three 9 --signal USR1
cancelled=$job
holds 'four jobs run' until_holds 30 sh -c '"$0" ps --noheader | grep -c " R " | grep -qx 4' "$SHAREWELL"
kill -STOP "$agent"
holds 'the node counts as unreachable' until_holds 60 sh -c '"$0" nodes --noheader | grep -q "^here  *unreachable "' "$SHAREWELL"
holds 'its jobs do' until_holds 60 is_state 1 UN
works 'why says so' 'node here has not answered since' why 1
works 'show says so' 'Unreachable node here has not answered since' show 1
holds 'show --json says so' sh -c '"$0" show --json 1 | python3 -c "import json, sys; job = json.load(sys.stdin); assert job[\"state_long\"] == \"UNREACHABLE\" and job[\"unreachable\"] == \"here\" and job[\"unreachable_since\"]"' "$SHAREWELL"
submit -- true
later=$job
works 'a job that is unreachable can be cancelled' 'Cancelled' cancel "$cancelled"
works 'and why says when that happens' 'stopped when the node is back' why "$cancelled"
refuses 2 'a node that is not there cannot be removed' "there is no node 'there'" nodes remove there
sleep "$still_s"
holds 'the job with a lease was stopped with its signal, and had its grace' until_holds 60 grep -qx grace "$scratch/leased"
holds 'and waits for a node' until_holds 60 is_state "$leased" PD
holds 'a new job starts nowhere' is_state "$later" PD
kill -CONT "$agent"
go_on 'after the agent stood still'
holds 'the cancelled job has ended' until_holds 60 is_state "$cancelled" CA
holds 'the job with a lease runs again' until_holds 60 is_state "$leased" R
holds 'and never ran twice at a time' sh -c '[ "$(tr "\n" " " <"$0")" = "begun signal grace begun " ]' "$scratch/leased"
ends 'the new job runs' "$later" 0
"$SHAREWELL" cancel "$leased" >/dev/null

# The controller cannot start: its journal is locked. All that is left are the jobs.
stop
python3 -c 'import fcntl, sys, time
lock = open(sys.argv[1], "r+")
fcntl.lockf(lock, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(100000)' "$SHAREWELL_STATE/journal.db.lock" >"$scratch/locked" &
locker=$!
holds 'the journal is locked' until_holds 20 grep -q locked "$scratch/locked"
run up --gpus "$gpus" --port none --node here
[ "$status" -ne 0 ]
said $? 'a controller that cannot start says so'
sleep "$kept_s"
kill "$locker"
wait "$locker" 2>/dev/null
start
go_on 'after the controller was kept from starting'

# Clocks: a day ahead, a day behind, far beyond what is sensible, and none at all; live, with a new agent, and over a restart.
day=86400
for wrong in $day -$day 4000000000 -$(date +%s) 0; do
	echo "$wrong" >"$scratch/clock"
	go_on "clock wrong by $wrong s"
	kill -KILL "$(child agent)"
	submit -- sh -c 'exit 3'
	ends "clock wrong by $wrong s: a new job runs under a new agent" "$job" 3
	go_on "clock wrong by $wrong s, new agent"
	stop
	start
	go_on "clock wrong by $wrong s, after a restart"
done

# All exit codes arrive, also of a job that ends while neither is there.
: >"$scratch/one.end"
ends 'the first job ends with its own code' 1 7
stop
: >"$scratch/two.end"
sleep 1
start
ends 'the second job ends with its own code, while neither was there' 2 8
holds 'each had one run' sh -c '[ "$(cat "$0/one.starts" "$0/two.starts" "$0/three.starts" | wc -l)" -eq 3 ]' "$scratch"
end
