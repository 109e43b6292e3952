#!/bin/sh
# Nothing is lost by a default: what hold, suspend, requeue, a policy and its patience do to jobs that count their own work.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"

# Counts from 0 at each start; what it has done is in its file, each of its starts in the other.
cat >"$scratch/count.sh" <<'END'
#!/bin/sh
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
beyond() { [ "$(counter "$1")" -gt "$2" ]; }
# once <counter>: it was started once, and goes on from what it had.
once() { [ "$(wc -l <"$scratch/$1.pids")" -eq 1 ] && until_holds 60 beyond "$1" "$(counter "$1")"; }

up --policy srtf

# Hold leaves a run alone.
submit -J kept -G 4 --expected 5h --preempt never -- "$scratch/count.sh" "$scratch/a"
kept=$job
holds 'a job runs' until_holds 60 beyond a 5
works 'it is held' '' hold "$kept"
holds 'and runs on' once a
works 'as why says' 'it is held once this run is over' why "$kept"
works 'the hold is taken back' '' release "$kept"

# Suspend says what would be lost, before it is.
refuses 2 'suspend refuses' "would lose its run" suspend "$kept"
refuses 2 'and says how' "suspend --force $kept" suspend "$kept"
holds 'it runs on' once a

# A policy does not stop it, however much shorter the next job is.
submit -J short -G 4 --expected 1m --preempt never -- "$scratch/count.sh" "$scratch/b"
short=$job
holds 'a shorter job waits' is_state "$short" PD
holds 'the long one runs on' once a
works 'which is said' 'it is not stopped for others' why "$kept"
touch "$scratch/a.end"
ends 'it ends' "$kept" 0
holds 'then the other one runs' until_holds 60 beyond b 5

# One whose owner allows it is stopped, and so is one that is forced.
submit -J yields -G 4 --expected 10s --preempt requeue -- "$scratch/count.sh" "$scratch/c"
holds 'not even for a shorter one' once b
works 'by force it is stopped' '' suspend --force "$short"
holds 'and its GPUs are used' until_holds 60 beyond c 5
works 'requeue is consent' '' requeue "$job"
holds 'it starts anew' until_holds 60 sh -c '[ "$(wc -l <"$0")" -ge 2 ]' "$scratch/c.pids"
touch "$scratch/c.end" "$scratch/b.end"
works 'the other one goes on' '' resume "$short"
ends 'and ends' "$short" 0

# --no-requeue: once and no more.
submit --no-requeue -- false
run wait "$job"
works 'one that is not requeued ends with its run' 'no-requeue' why "$job"
works 'and was started once' 'Runs        1, ' show "$job"
refuses 2 'what contradicts itself is refused' "forbids a second start" submit --no-requeue --preempt requeue -- true
refuses 2 'so is an opportunistic job that is never stopped' 'works in what others leave' submit --class opportunistic --preempt never -- true
printf '#!/bin/sh\n#SBATCH --no-requeue\nfalse\n' >job.sh
works 'a script says it too' '' submit job.sh

# What the rule means is said where it may surprise: to scripts only for jobs that ask for lent GPUs and never get them, to people at a terminal also for plain ones.
run submit --class auto --hold -- true
[ "$status" -eq 0 ] && err_has 'never on lent ones'
said $? 'a job that would run on lent GPUs, and may not be stopped, hears that it never does' out err
works 'one that may be stopped hears nothing' '' submit --class auto --preempt suspend --hold -- true
works 'nor do programs that read JSON' '' submit --json --class auto --hold -- true
works 'nor does a script, for a plain job' '' submit --hold -- true
at_terminal() { python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' "$SHAREWELL" "$@" >"$scratch/out" 2>"$scratch/err"; }
holds 'a person who submits one' at_terminal submit --hold -- true
out_has 'note: it may be suspended for others, and goes on later'
said $? 'hears what its rule means' out err
holds 'one that says its rule' at_terminal submit --preempt suspend --hold -- true
! out_has 'note:'
said $? 'hears nothing' out err
# That of a job that says none is the world's.
cat >rules.yaml <<'YAML'
base: live
name: rules
stops: {guaranteed: requeue, opportunistic: requeue}
YAML
works 'a world in which jobs are stopped and start anew' '' world rules.yaml
for class in guaranteed opportunistic; do
	holds "a person who submits a plain $class job" at_terminal submit --class "$class" --hold -- true
	out_has 'note: it may be stopped for others and starts anew then'
	said $? 'hears that its work would be lost' out err
done
run submit --class auto --hold -- true
[ "$status" -eq 0 ] && ! err_has 'never on lent ones'
said $? 'one that would run on lent GPUs does, and hears nothing' out err
sed -i 's/guaranteed: requeue/guaranteed: never/' rules.yaml
works 'a world in which guaranteed jobs run to their end' '' world rules.yaml
holds 'a person who submits one' at_terminal submit --hold -- true
! out_has 'note:'
said $? 'hears nothing' out err
works 'back to the usual world' '' world live
works 'under a policy that stops no job' '' policy fifo
holds 'a plain one' at_terminal submit --hold -- true
! out_has 'note:'
said $? 'hears nothing, too' out err
end
