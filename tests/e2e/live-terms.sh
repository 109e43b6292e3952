#!/bin/sh
# One world, live and simulated: a long job is not stopped before its quantum and loses nothing, and the simulator has the same jobs start and end in the same order.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"

world=$scratch/five.yaml
cat >"$world" <<'END'
base: live
name: five
about: "a quantum of five seconds, and nothing costs anything"
quantum: 5s
start: 0s
restart: 0s
suspend: {fixed: 0s}
resume: {fixed: 0s}
placement_slowdown: false
sharing_slowdown: true
faults: {node_mtbf: 0s, node_repair: 0s, job_failure: 0}
END

# Works for so many tenths of a second of its own.
cat >"$scratch/work.sh" <<'END'
#!/bin/sh
i=0
while [ $i -lt "$1" ]; do
	i=$((i + 1))
	sleep 0.1
done
echo "worked $i"
END
chmod +x "$scratch/work.sh"

refuses 2 'a world that is not there' "there is no world 'liv'" up --gpus "$gpus" --world liv
refuses 2 'a world that no live cluster can have' "a live cluster cannot run the world 'measured'" up --gpus "$gpus" --world measured
err_has "a run that is stopped can go on where it was, and nowhere else ('preempt: in_place')"
err_has "Begin a file of your own with 'base: live'"

up --policy srtf
shorts=
works 'the world is in force' 'World: five' world
out_has 'quantum: 5s'
submit -J long -G 4 --gpu-memory 20G --expected 20s --preempt suspend -- "$scratch/work.sh" 100
long=$job
holds 'the long job runs' until_holds 20 is_state "$long" R
# The longest of the short ones comes first. All of them wait for the quantum's end, then the shortest goes first.
for tenths in 16 9 2; do
	submit -J "short$tenths" -G 4 --gpu-memory 20G --expected "${tenths}00ms" --preempt suspend -- "$scratch/work.sh" "$tenths"
	shorts="$shorts $job"
done
for short in $shorts; do
	ends 'a short one ends' "$short" 0
done
ends 'and the long one' "$long" 0
works 'in one run, which lost nothing' 'worked 100' logs "$long"
[ "$("$SHAREWELL" logs "$long" | grep -c '^worked')" -eq 1 ]
said $? 'and which was never begun again' up.out up.out

"$SHAREWELL" history --json >"$scratch/history.json"
works 'its history is a trace' '' history --export "$scratch/history.csv"
works 'the simulator takes the same world' '' sim --trace "$scratch/history.csv" --cluster 1x4 --policy srtf --placement pack --world "$world" --quiet --validate --jobs-out "$scratch/jobs.csv"
cat >"$scratch/compare.py" <<'END'
import csv, datetime, json, sys

def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()

def events(rows):
    """What started and ended, in order, and how often each was stopped. Ends and starts of one decision are one moment."""
    times = sorted([(start, 1, "start", job) for job, start, end, stops in rows] + [(end, 0, "end", job) for job, start, end, stops in rows])
    return [f"{what} {job}" for _, _, what, job in times], {job: stops for job, _, _, stops in rows}

history = json.load(open(sys.argv[1]))
live = [(row["id"], seconds(row["started_at"]), seconds(row["ended_at"]), row["preemptions"]) for row in history["jobs"]]
simulated = [(int(row["job_id"]), float(row["start_time"]), float(row["end_time"]), int(row["preempt"])) for row in csv.DictReader(open(sys.argv[2]))]
# A start in the history is when the run was heard to have begun, which may be late: the quantum began at the submit of the first job, or after that.
began = min(seconds(row["submitted_at"]) for row in history["jobs"])
early = [job for job, start, _, _ in live if job != 1 and start - began < 5]
print("live:", *events(live))
print("simulated:", *events(simulated))
sys.exit(0 if events(live) == events(simulated) and not early and events(live)[1][1] > 0 else 1)
END
python3 "$scratch/compare.py" "$scratch/history.json" "$scratch/jobs.csv" >"$scratch/compared" 2>&1
said $? 'the same starts and ends in the same order, and as many stops' compared compared

# While the cluster runs.
sed 's/^quantum: 5s/quantum: 1h/' "$world" >"$scratch/hour.yaml"
works 'an operator changes the world' 'quantum: 1:00:00' world "$scratch/hour.yaml"
refuses 2 'not to one that cannot be' 'a live cluster cannot run the world' world ideal
"$SHAREWELL" down >/dev/null
wait "$up_pid" 2>/dev/null
up --policy srtf
works 'a restart keeps what an operator chose' 'set by an operator' world
out_has 'quantum: 1:00:00'
submit -J long -G 4 --gpu-memory 20G --expected 9s --preempt suspend -- "$scratch/work.sh" 80
long=$job
holds 'another long job runs' until_holds 20 is_state "$long" R
submit -J short -G 4 --gpu-memory 20G --expected 1s -- "$scratch/work.sh" 1
ends 'the short one ends' "$job" 0
[ "$("$SHAREWELL" history --json | python3 -c 'import json, sys; print(next(row["preemptions"] for row in json.load(sys.stdin)["jobs"] if row["id"] == int(sys.argv[1])))' "$long")" -eq 0 ]
said $? 'and the long one was not stopped for it' up.out up.out
end
