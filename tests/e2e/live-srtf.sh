#!/bin/sh
# Five short trainings come while a long one runs, on emulated GPUs under srtf: the long one is not stopped before its quantum, loses nothing, and the cluster starts, stops and resumes jobs in the
# order in which 'sim' does it under the same world. All times are a sixth of those that the case is told with: a minute for the long one, a second for each short one.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-emu.sh"
emulate 4 512M
compile train examples/gpu/train.c

# The quantum, 20 s by the same measure, ends before the long training does.
world=$scratch/sixth.yaml
cat >"$world" <<'END'
base: live
name: sixth
about: "the live world, with a quantum that is shorter than the long training"
quantum: 3400ms
END

# train_here <name> <steps of 5 ms> <options...>: $job trains.
train_here() {
	name=$1 steps=$2
	shift 2
	submit_here -J "$name" -G 4 --gpu-memory 100M --preempt suspend "$@" -- sh -c 'echo $$ >>"$0.pids"; exec "$1" --steps "$2" --memory 6M --step-us 5000' \
		"$scratch/$name" "$scratch/train" "$steps"
}
# resumed <times>: the long training went on so often, as far as the watcher knows.
resumed() { [ "$(grep -c "^resume $long\$" "$scratch/live")" -eq "$1" ]; }

gpus=auto
up --policy srtf
python3 "$SW_SOURCE_DIR/tests/e2e/watch.py" "$SHAREWELL_STATE/controller.sock" "$scratch/live" &
watch=$!
holds 'what happens is watched' until_holds 30 test -e "$scratch/live"
train_here long 2000 --expected 10s
long=$job
holds 'the long training runs' until_holds 60 is_state "$long" R
# In one request, so that they come at one moment.
train_here short 33 --expected 160ms --array 1-5
holds 'it goes on after the five' until_holds 240 resumed 1
# And once more, in the next quantum.
train_here late 33 --expected 160ms --array 1-2
holds 'and after two more' until_holds 240 resumed 2
ends 'the long training ends' "$long" 0
holds 'and that is heard' until_holds 30 grep -q "^end $long\$" "$scratch/live"
kill "$watch"

"$SHAREWELL" logs "$long" >"$scratch/long.log"
"$scratch/train" --steps 2000 --memory 6M >"$scratch/plain"
[ "$(hash_of "$scratch/long.log")" = "$(hash_of "$scratch/plain")" ] && [ "$(wc -l <"$scratch/long.pids")" -eq 1 ]
said $? 'it computed in one process what it computes alone, bit for bit' long.log long.pids

# The jobs for the simulator, when they came and as long as they took. Of those that are alike to their owner the first comes first: how long each really took must not tell them apart.
"$SHAREWELL" history --json >"$scratch/history.json"
cat >"$scratch/trace.py" <<'END'
import datetime, json, sys
moment = lambda text: datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
jobs = sorted(json.load(open(sys.argv[1]))["jobs"], key=lambda job: job["id"])
zero, least = moment(jobs[0]["submitted_at"]), min(job["ran_s"] for job in jobs)
print("job_id,num_gpu,submit_time,duration")
for job in jobs:
    print(f'{job["id"]},{job["gpus"]},{moment(job["submitted_at"]) - zero:.6f},{job["ran_s"] if job is jobs[0] else least:.6f}')
early = [job["id"] for job in jobs[1:] if moment(job["started_at"]) - zero < 3.4]
if len(jobs) != 8 or early:
    sys.exit(f"{len(jobs)} jobs, of which these started early: {early}")
END
python3 "$scratch/trace.py" "$scratch/history.json" >"$scratch/trace.csv" 2>"$scratch/early"
said $? 'no other job started before its quantum was over' trace.csv early

# simulate <world> <aim> <options...>: the same starts, stops, resumes and ends in the same order. Ends come before the starts that follow from them, and so do stops.
simulate() {
	named=$1 aim=$2
	shift 2
	works "$aim" '' sim --trace "$scratch/trace.csv" --cluster 1x4 --policy srtf --world "$named" "$@" --quiet --validate --events-out "$scratch/events.csv"
	sed 1d "$scratch/events.csv" | awk -F, '{ print $3, $2 }' >"$scratch/simulated"
	cmp -s "$scratch/live" "$scratch/simulated"
	said $? 'and has the same starts, stops, resumes and ends in the same order' live simulated
}
# What a start costs is in the times that jobs ran.
simulate live 'the simulator takes the live world' --set world.quantum=3400ms --set world.start=0s
simulate "$world" 'and the one that the cluster is in' --set world.start=0s
for what in start stop resume end; do grep -c "^$what" "$scratch/simulated"; done | tr '\n' ' ' >"$scratch/counts"
holds 'in which the long one is stopped twice, and goes on twice' grep -qx '8 2 2 8 ' "$scratch/counts"
end
