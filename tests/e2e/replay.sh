#!/bin/sh
# The history of a live cluster, replayed under the policy that made it: the same jobs start in the same order, are stopped as often, and take as long, where jobs share GPUs, nodes are
# closed and tenants have quotas. What really happened is recorded, so a busy machine changes both alike.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"

# Works for so many tenths of a second.
cat >"$scratch/work.sh" <<'END_OF_WORK'
#!/bin/sh
i=0
while [ $i -lt "$1" ]; do
	i=$((i + 1))
	sleep 0.1
done
END_OF_WORK
chmod +x "$scratch/work.sh"

cat >"$scratch/compare.py" <<'END_OF_COMPARE'
"""Compares what really happened and the replay of it, job by job."""
import csv, datetime, json, sys

def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()

real = {job["id"]: job for job in json.load(open(sys.argv[1]))["jobs"]}
replayed = {int(row["job_id"]): row for row in csv.DictReader(open(sys.argv[2]))}
jobs = sorted(set(real) & set(replayed))
begin = min(seconds(real[job]["submitted_at"]) for job in jobs)
took = {job: seconds(real[job]["ended_at"]) - seconds(real[job]["submitted_at"]) for job in jobs}
simulated = {job: float(replayed[job]["JCT"]) for job in jobs}
for job in jobs:
    print(f"job {job}: ended {seconds(real[job]['ended_at']) - begin:.3f} really and {float(replayed[job]['end_time']):.3f} replayed, "
          f"stopped {real[job]['preemptions']} and {replayed[job]['preempt']} times")
wrong = []
if len(jobs) != len(real) or not jobs:
    wrong.append("jobs are missing")
if sorted(jobs, key=lambda job: seconds(real[job]["ended_at"])) != sorted(jobs, key=lambda job: float(replayed[job]["end_time"])):
    wrong.append("they end in another order")
if any(real[job]["preemptions"] != int(replayed[job]["preempt"]) for job in jobs):
    wrong.append("they are stopped more or less often")
off = sum(simulated.values()) / sum(took.values()) - 1
print(f"average off by {100 * off:.2f} %")
if abs(off) > 0.03:
    wrong.append("they take another time")
print(", ".join(wrong) or "alike")
sys.exit(1 if wrong else 0)
END_OF_COMPARE

# alike <policy>: the last cluster's history and its replay.
alike() {
	"$SHAREWELL" history --json >"$scratch/history.json"
	works "the history is replayed under $1" '' sim --journal --policy "$1" --quiet --validate --jobs-out "$scratch/jobs.csv"
	python3 "$scratch/compare.py" "$scratch/history.json" "$scratch/jobs.csv" >"$scratch/compared" 2>&1
	said $? "and is as it was, job by job, under $1" compared compared
}

# A world with a short quantum, so that jobs are stopped.
world=$scratch/quick.yaml
printf "base: live\nname: quick\nquantum: 1s\n" >"$world"
submits() {
	jobs=
	# GPUs, tenths of a second, options
	while read -r wants tenths options; do
		# shellcheck disable=SC2086
		submit -G "$wants" --expected "${tenths}00ms" --preempt suspend $options -- "$scratch/work.sh" "$tenths"
		jobs="$jobs $job"
	done
}
down() {
	"$SHAREWELL" down >/dev/null
	wait "$up_pid" 2>/dev/null
	SHAREWELL_STATE=$SHAREWELL_STATE-next
	export SHAREWELL_STATE
}

for policy in antman sharewell srtf fjf+pack; do
	up --policy "$policy"
	submits <<'END_OF_JOBS'
2 25 --gpu-memory 20G --model resnet50
1 15 --gpu-memory 20G --model bert --class auto
4 8
1 6 --gpu-memory 20G --model dlrm --class opportunistic
2 12
1 9 --gpu-memory 10G --model mobilenetv2 --class auto
1 4 --gpu-memory 30G --model dlrm
4 3
END_OF_JOBS
	for number in $jobs; do
		ends "job $number ends under $policy" "$number" 0
	done
	alike "$policy"
	down
done

# What an operator did to the cluster.
up --policy fjf
works 'a tenant has a quota' '' quota "$(id -un)s" 1
submits <<END_OF_JOBS
1 8 --tenant $(id -un)s
1 8 --tenant $(id -un)s
1 5
END_OF_JOBS
node=$("$SHAREWELL" nodes --noheader | awk 'NR == 1 { print $1 }')
works 'the node is closed' '' nodes drain "$node"
submits <<'END_OF_JOBS'
1 5
1 3
END_OF_JOBS
last=$job
sleep 1
works 'and opened again' '' nodes resume "$node"
ends 'the last one ends' "$last" 0
run wait 1 2 3 4 5
alike fjf
cat >"$scratch/check.py" <<'END_OF_CHECK'
import csv, sys
jobs = {int(row["job_id"]): row for row in csv.DictReader(open(sys.argv[1]))}
start = {job: float(row["start_time"]) for job, row in jobs.items()}
end = {job: float(row["end_time"]) for job, row in jobs.items()}
print(start, end)
assert start[2] >= end[1], "the quota is replayed"
assert start[4] - float(jobs[4]["submit_time"]) >= 0.9, "the closed node is replayed"
END_OF_CHECK
python3 "$scratch/check.py" "$scratch/jobs.csv" >"$scratch/compared" 2>&1
said $? 'the quota and the closed node are in the replay' compared compared

# Another world has other terms, and the same past.
works 'the history is replayed in another world' '' sim --journal --policy fjf --world ideal --quiet --validate --jobs-out "$scratch/jobs.csv"
python3 "$scratch/check.py" "$scratch/jobs.csv" >"$scratch/compared" 2>&1
said $? 'with the quota and the closed node' compared compared
end
