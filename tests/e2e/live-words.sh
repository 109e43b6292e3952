#!/bin/sh
# What people hear of a live cluster besides results: that no controller answers, what their job waits for, when something was.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
up

works 'of what a GPU does nothing is said that is not known' ' 80.0 GiB ' nodes --gpus
! grep -qE ' 0W| 0C' "$scratch/out"
said $? 'such as that it draws nothing'
works 'also on the screen' ' util [' top --once
! grep -qE ' 0W| 0C' "$scratch/out" && grep -qE ' - +-$' "$scratch/out"
said $? 'which has a dash'

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
holds 'a command that changes something hears that it is waited for' until_holds 60 grep -q 'does not answer; waiting for up to' "$scratch/one.err"
kill -CONT "$controller"
wait "$submitter" && [ "$(cat "$scratch/one")" -eq $((job + 1)) ]
said $? 'and is served once' one one.err

# A port that takes no connections: its queue of those that are not accepted yet is full.
python3 -c 'import socket, time
door = socket.socket()
door.bind(("127.0.0.1", 0))
door.listen(0)
callers = [socket.socket() for _ in range(4)]
for caller in callers:
    caller.setblocking(False)
    caller.connect_ex(door.getsockname())
print(door.getsockname()[1], flush=True)
time.sleep(300)' >"$scratch/port" &
door=$!
until_holds 20 test -s "$scratch/port"
refuses 1 'a controller that is not reached is not waited for' 'no controller answers at' submit --controller "http://127.0.0.1:$(cat "$scratch/port")" -- true
! err_has 'waiting for'
said $? 'nor is that said'
kill "$door"

# Moments are local time for people, and UTC for programs.
ends 'a job ends' "$job" 0
export TZ=UTC-9
ended=$("$SHAREWELL" show "$job" | sed -n 's/^  Ended *//p')
works 'why and show name the same moment' "it ended well at $ended, after" why "$job"
works 'also in the sentence that show has of it' "Why         it ended well at $ended, after" show "$job"
export TZ=UTC
ended=$("$SHAREWELL" show "$job" | sed -n 's/^  Ended *//p')
works 'for programs it is UTC wherever they are' "it ended well at ${ended}Z, after" why --json "$job"
unset TZ
submit -- sh -c 'echo "ImportError: at 2026-10-04T15:00:00Z" >&2; exit 1'
"$SHAREWELL" wait -q "$job"
TZ=UTC-9 "$SHAREWELL" why "$job" >"$scratch/out" 2>"$scratch/err"
out_has "'ImportError: at 2026-10-04T15:00:00Z'"
said $? 'what a job wrote stays as it wrote it'

# A job that is followed while it waits: why goes to standard error, once, and nothing else to what a script reads.
submit -G 3 -- sleep 600
first=$job
holds 'a job takes all GPUs but one' until_holds 60 is_state "$first" R
timeout 300 "$SHAREWELL" run -G 2 -- echo begun >"$scratch/followed" 2>"$scratch/notes" &
follower=$!
holds 'the command that runs another hears why it waits' until_holds 60 grep -q 'note: job [0-9]* waits: .*GPU' "$scratch/notes"
submit -- sleep 600
holds 'the last GPU goes to a third job' until_holds 60 is_state "$job" R
sleep 3
"$SHAREWELL" cancel "$job"
sleep 5
[ ! -s "$scratch/followed" ] && [ "$(grep -c ' waits: ' "$scratch/notes")" -eq 1 ]
said $? 'once, and not where a script reads what it writes' followed notes
"$SHAREWELL" cancel "$first"
wait "$follower" && [ "$(cat "$scratch/followed")" = begun ]
said $? 'and then what it writes' followed notes
timeout 300 "$SHAREWELL" run -- sh -c 'echo "RuntimeError: NCCL error in: x.cpp:1, unhandled system error" >&2; exit 1' >"$scratch/followed" 2>"$scratch/notes" &
follower=$!
holds 'the command that follows a job that failed hears that it is tried again' until_holds 60 grep -q 'note: job [0-9]* waits: .* is tried again in' "$scratch/notes"
"$SHAREWELL" cancel "$(sed -n 's/.*note: job \([0-9]*\)$/\1/p' "$scratch/notes")"
wait "$follower"
submit -H -- true
timeout 300 "$SHAREWELL" logs -f "$job" >"$scratch/followed" 2>"$scratch/notes" &
follower=$!
holds 'a command that reads along hears it, too' until_holds 60 grep -q "note: job $job waits: it is on hold" "$scratch/notes"
"$SHAREWELL" resume "$job"
wait "$follower"
said $? 'until the end' followed notes

# A command that waits for the end alone hears as much, unless nothing is to be said.
waiters=''
submit -H -- true
held=$job
submit -H -- true
for options in '' -q --json; do
	timeout 300 "$SHAREWELL" wait $options "$held" "$job" >"$scratch/waited$options" 2>"$scratch/notes$options" &
	waiters="$waiters $!"
done
timeout 300 "$SHAREWELL" submit --wait -H -- true >"$scratch/waited-submit" 2>"$scratch/notes-submit" &
waiters="$waiters $!"
holds 'a command that waits for a job hears why it does not run' until_holds 60 grep -q "note: job $held waits: it is on hold" "$scratch/notes"
holds 'also where it was submitted by the same command' until_holds 60 grep -q 'note: job [0-9]* waits: it is on hold' "$scratch/notes-submit"
"$SHAREWELL" resume "$held"
holds 'and then of the next one' until_holds 60 grep -q "note: job $job waits: it is on hold" "$scratch/notes"
"$SHAREWELL" resume "$job" "$(sed -n 's/.* job \([0-9]*\)$/\1/p' "$scratch/waited-submit")"
wait $waiters
said $? 'until all have ended' notes notes-submit
[ "$(cat "$scratch/waited")" = "$held COMPLETED 0:0
$job COMPLETED 0:0" ] && [ "$(wc -l <"$scratch/waited-submit")" -eq 1 ]
said $? 'where a script reads there is nothing but what it asked for' waited waited-submit
[ ! -s "$scratch/notes-q" ] && [ ! -s "$scratch/notes--json" ] && [ ! -s "$scratch/waited-q" ]
said $? 'and nothing at all is said with --quiet, or besides --json' notes-q notes--json waited-q

# One that takes turns waits often. What a controller says of it, and when, is written down here.
# story <aim> <what logs -f is to say on standard error>: of the lines on standard input.
story() {
	cat >"$scratch/story"
	python3 "$SW_SOURCE_DIR/tests/e2e/tell_story.py" "$scratch/story" "$scratch/story.sock" &
	teller=$!
	until_holds 20 test -S "$scratch/story.sock"
	run logs -f 7 --controller "unix:$scratch/story.sock"
	kill "$teller"
	wait "$teller" 2>/dev/null
	rm "$scratch/story.sock"
	[ "$status" -eq 0 ] && [ "$(cat "$scratch/err")" = "$2" ]
	said $? "$1"
}
story 'a reason is told again only after another one' 'sharewell: note: job 7 waits: it needs 4 GPUs and 1 is free
sharewell: note: job 7 runs
sharewell: note: job 7 waits: it is on hold
sharewell: note: job 7 runs' <<END
PD PD it needs 4 GPUs and 1 is free
PD PD it needs 4 GPUs and 2 are free
R R it runs
S S it needs 4 GPUs and 3 are free
R R it runs
PD PD it is on hold
R R it runs
END
export TZ=UTC-9
story 'what is said of one that has just started is no reason, and moments are local time' \
	'sharewell: note: job 7 waits: it may start at 2026-10-05T00:00:00' <<END
PD R it runs since 2026-10-04T14:00:00Z
PD PD it may start at 2026-10-04T15:00:00Z
END
end
