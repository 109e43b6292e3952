#!/bin/sh
# Jobs that stand still for others and go on where they were: the same processes, the same numbers.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"

# Counts in its own file, and so does a child that has left its process group and its parent. A signal to stop is written down, as a checkpoint would be.
cat >"$scratch/count.sh" <<'END'
#!/bin/sh
trap 'echo stopped at $i >>"$1.stops"; exit 0' TERM
(setsid sh -c 'while sleep 0.02; do n=$((n + 1)); echo $n >"$0.child.new"; mv "$0.child.new" "$0.child"; done' "$1" &)
echo $$ >>"$1.pids"
i=0
while [ ! -e "$1.end" ]; do
	i=$((i + 1))
	echo $i >"$1.new" && mv "$1.new" "$1"
	sleep 0.02
done
END
chmod +x "$scratch/count.sh"
counter() { cat "$scratch/$1" 2>/dev/null || echo 0; }
# beyond <counter> <number>
beyond() { [ "$(counter "$1")" -gt "$2" ]; }
# stands <counter>: it and its child do not move while another counter counts on.
stands() {
	before="$(counter "$1") $(counter "$1.child")"
	other=$(counter "$2")
	until_holds 20 beyond "$2" $((other + 10)) && [ "$before" = "$(counter "$1") $(counter "$1.child")" ]
}
# moves <counter>: it and its child do.
moves() {
	until_holds 20 beyond "$1" "$(counter "$1")" && until_holds 20 beyond "$1.child" "$(counter "$1.child")"
}

up --policy srtf

# By the policy: a shorter job comes.
submit -J long -G 4 --gpu-memory 20G --expected 5h --preempt suspend -- "$scratch/count.sh" "$scratch/a"
long=$job
holds 'a long job runs' until_holds 20 beyond a 5
submit -J short -G 4 --gpu-memory 20G --expected 1h -- "$scratch/count.sh" "$scratch/b"
short=$job
holds 'a shorter one takes its GPUs' until_holds 20 beyond b 5
holds 'the long one is suspended' is_state "$long" S
holds 'none of its processes moves' stands a b
works 'why says for which job' "goes on when job $short" why "$long"
works 'with its user, and when' "for job $short (guaranteed, user $(id -un)), stands still" why "$long"
works 'show says for which job, and when it goes on' "suspended for job $short (guaranteed, user $(id -un)); it goes on when job $short ends or makes way" show "$long"
works 'and the job its log' "suspended for job $short (guaranteed, user $(id -un)): it goes on when job $short ends or makes way" logs "$long"
works 'and so does the list' "suspended in place for job $short" ps --noheader -j "$long"
stood=$(counter a)
touch "$scratch/b.end"
ends 'the shorter one ends' "$short" 0
holds 'the long one is back' until_holds 20 is_state "$long" R
holds 'and counts on from where it was' until_holds 20 beyond a "$stood"
[ "$(wc -l <"$scratch/a.pids")" -eq 1 ] && kill -0 "$(cat "$scratch/a.pids")" && [ ! -e "$scratch/a.stops" ]
said $? 'in the same process, which was never told to stop' a.pids a.pids
holds 'its child too' moves a

# By its user, and across a restart of the controller and the agent.
works 'a user suspends it' '' suspend "$long"
holds 'it is suspended' until_holds 20 is_state "$long" S
works 'which user did it is said' "suspended by user $(id -un)" ps --noheader -j "$long"
works 'in its log too, behind that it had gone on' "suspended by user $(id -un): it goes on after 'sharewell resume $long'" logs "$long"
out_has 'goes on, after standing still for '
said $? 'which says for how long it stood still' out err
works 'and how it goes on' "sharewell resume $long" why "$long"
submit -J guest -G 4 --gpu-memory 20G --expected 1h -- "$scratch/count.sh" "$scratch/c"
holds 'others use its GPUs' until_holds 20 beyond c 5
holds 'beside its memory' stands a c
kill -KILL "$(child controller)" "$(child agent)" 2>/dev/null
holds 'after a crash of controller and agent it still stands' until_holds 40 stands a c
holds 'the controller is back' until_holds 60 "$SHAREWELL" ps
works 'it is let go again' '' resume "$long"
touch "$scratch/c.end"
ends 'the guest ends' "$job" 0
holds 'it goes on' moves a
works 'and once is enough' "Nothing to resume: job $long is not held by any user" resume "$long"
[ "$(wc -l <"$scratch/a.pids")" -eq 1 ]
said $? 'in the same process still' a.pids a.pids

# A job that does not say what memory it needs takes all of it. Nothing is stopped for it where memory would stay on the GPUs.
submit -J greedy -G 4 --expected 1m -- "$scratch/count.sh" "$scratch/d"
greedy=$job
holds 'a job that needs whole GPUs waits' is_state "$greedy" PD
holds 'the one beside whose memory it does not fit runs on' moves a
works 'suspended by its user, it' '' suspend "$long"
holds 'stands still' until_holds 20 is_state "$long" S
holds 'and keeps its memory: the other waits' is_state "$greedy" PD
[ ! -e "$scratch/a.stops" ] && [ "$(wc -l <"$scratch/a.pids")" -eq 1 ]
said $? 'it was never stopped' a.pids a.pids
works 'and goes on' '' resume "$long"
holds 'where it was' moves a
works 'in its first run' 'Runs        1, ' show "$long"
works 'the greedy one is cancelled' '' cancel "$greedy"

# Cancelled while it stands still.
holds 'it runs' until_holds 20 is_state "$long" R
works 'suspended' '' suspend "$long"
holds 'it stands' until_holds 20 is_state "$long" S
works 'and cancelled' '' cancel "$long"
holds 'it is gone with all its processes' until_holds 20 sh -c '! kill -0 "$(tail -n 1 "$0")"' "$scratch/a.pids"
run wait "$long"
out_has CANCELLED
said $? 'and has ended once'

# An end that was asked for while it stood still comes when it goes on, with its own code.
submit --preempt suspend -t 1h -- sh -c 'echo begun; kill -STOP $$; exit 9'
holds 'a job runs' until_holds 20 sh -c '"$0" logs "$1" | grep -q begun' "$SHAREWELL" "$job"
works 'is suspended' '' suspend "$job"
holds 'stands' until_holds 20 is_state "$job" S
works 'is resumed' '' resume "$job"
ends 'and ends as it would have' "$job" 9

refuses 2 'another way to be preempted is refused' 'preempt' submit --preempt sleep -- true
end
