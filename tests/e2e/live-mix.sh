#!/bin/sh
# A mix of ten jobs on two emulated GPUs under each of the policies that share: all of them end, no guaranteed job is slowed down by more than 5 % by what the runtime measured, and what was
# predicted is told beside what was measured.
#
# Guaranteed jobs have input every 50 ms and work on it for 30 ms: so a machine that is busy with other things does not change how long their iterations take, while a neighbour that took its turns
# on the GPU as an equal would, to about 58 ms. Each goes on until it was measured; nothing here depends on how fast anything is. The jobs bear names of models so that something is predicted of them,
# and are none: how far off the predictions are is only shown.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-emu.sh"
policies='gandiva antman sharewell'
emulate 2 1G
compile load tests/e2e/gpu_load.c

# start <name> <class> <words for the load...>: one more of the mix, which goes on until there is a file $scratch/<policy>.<n>.end.
start() {
	name=$1 class=$2
	mixed=$((mixed + 1))
	shift 2
	submit_here -J "$name" --class "$class" --gpu-memory 100M --preempt suspend --env END="$scratch/$policy.$mixed.end" -- "$scratch/run.sh" "$scratch/load" "$@"
	echo "$job $class $scratch/$policy.$mixed.end" >>"$scratch/$policy.mix"
}
printf '#!/bin/sh\nexec "$@" --end "$END"\n' >"$scratch/run.sh"
chmod +x "$scratch/run.sh"
guaranteed() { start "$1" guaranteed --rounds 1 --kernels 2 --kernel-us 15000 --period-us 50000 --memory 1M; }
opportunistic() { start "$1" opportunistic --rounds 100 --kernels 2 --kernel-us 2000 --period-us 1 --memory 1M; }

# Follows the mix until all have ended, and lets each job go when it was measured, or will not be; then prints the table, and fails where it is not as it should be.
cat >"$scratch/watch.py" <<'END'
import json, os, subprocess, sys, time

program, policy, mix, patience_s = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
shares = policy == "antman"  # live, jobs of gandiva take turns, and sharewell puts guaranteed ones only beside those that they are predicted not to feel
jobs = {}
for line in open(mix):
    number, kind, end = line.split()
    jobs[int(number)] = {"class": kind, "end": end, "measured": {}, "predicted": {}, "state": "?", "name": "?", "since": None}
ended = ("CD", "F", "CA", "TO", "NF", "OOM")

def look():
    shown = json.loads(subprocess.run([program, "ps", "--json", "--all"], capture_output=True, check=True, timeout=300).stdout)
    for job in shown["jobs"] if isinstance(shown, dict) else shown:
        known = jobs.get(job["id"])
        if known is None:
            continue
        known["name"], known["state"], known["reason"] = job["name"], job["state"], job["reason"]
        if job["state"] != "R" or job["class"] != known["class"]:
            continue
        known["since"] = known["since"] or time.monotonic()
        speed, sharing = job["speed"], job["sharing"]
        beside = tuple(other["job"] for other in sharing["with"]) if sharing else ()
        if sharing and sharing["predicted"]:
            known["predicted"].setdefault(beside, sharing["predicted"])
        # What was measured beside jobs that have left may be of another class of the job.
        if speed and speed["slowdown"] and tuple(speed["beside"]) == beside:
            into = known["measured"].setdefault(beside, [])
            if not into or into[-1] != (speed["slowdown"], speed["iteration_s"]):
                into.append((speed["slowdown"], speed["iteration_s"]))

# As it was measured last: a guaranteed one goes on while it looks slow. A machine that was busy for a moment is not, a neighbour that is in the way is so for as long as it is there.
def looks_slow(job):
    return job["class"] == "guaranteed" and any(rows[-1][0] > 1.05 for rows in job["measured"].values())

# It was measured as it should be; or it runs for so long that no job will come to its GPU, or that it stands still.
def is_done(job):
    if looks_slow(job):
        return False
    beside = any(job["measured"])
    alone = () in job["measured"]
    if not shares:
        return alone or job["class"] == "opportunistic"
    return beside or (job["since"] is not None and time.monotonic() - job["since"] > 60)

started = time.monotonic()
while not all(job["state"] in ended for job in jobs.values()) and time.monotonic() - started < 2 * patience_s:
    look()
    for job in jobs.values():
        if is_done(job) or time.monotonic() - started > patience_s:
            open(job["end"], "a").close()
    time.sleep(0.3)

def cell(value, scale=1):
    return "-" if value is None else "%.2f" % (value * scale)

complaints, beside_others = [], 0
print("%4s %-10s %-14s %-6s %9s %9s %9s  %s" % ("JOB", "MODEL", "CLASS", "STATE", "MS/IT", "PREDICTED", "MEASURED", "BESIDE"))
for number, job in sorted(jobs.items()):
    for beside, rows in sorted(job["measured"].items()) or [((), [])]:
        slowdown, iteration_s = rows[-1] if rows else (None, None)
        print("%4d %-10s %-14s %-6s %9s %9s %9s  %s" % (number, job["name"], job["class"], job["state"], cell(iteration_s, 1000),
              cell(job["predicted"].get(beside)), cell(slowdown), ", ".join(map(str, beside)) or "none"))
        beside_others += job["class"] == "guaranteed" and len(beside) > 0
        if job["class"] == "guaranteed" and (slowdown is None or slowdown > 1.05):
            complaints.append("guaranteed job %d: %s" % (number, "never measured" if slowdown is None else "%.3f times as long as alone" % slowdown))
    if job["state"] != "CD":
        complaints.append("job %d did not end well: %s %s" % (number, job["state"], job.get("reason")))
if shares and beside_others == 0:
    complaints.append("no guaranteed job was measured beside another")
print("\n".join(complaints), file=sys.stderr)
sys.exit(len(complaints) > 0)
END

# is_alone <job>: what its iterations take alone is known.
is_alone() { "$SHAREWELL" show --json "$1" | python3 -c 'import json, sys; sys.exit(not (json.load(sys.stdin)["speed"] or {}).get("alone_s"))'; }
# says <job> <words>: why says so.
says() { "$SHAREWELL" why "$1" | grep -q "$2"; }

gpus=auto
up
for policy in $policies; do
	mixed=0
	works "$policy is put in charge" '' policy "$policy"
	[ "$policy" != gandiva ] || works 'with turns of ten seconds' '' policy gandiva --set quantum=10s
	[ "$policy" != sharewell ] || works 'whose guaranteed jobs feel next to nothing of each other' '' policy sharewell --set slow=1.05
	guaranteed resnet50
	first=$job
	opportunistic dlrm
	holds "$policy: a guaranteed job is measured alone" until_holds 120 is_alone "$first"
	holds "$policy: an opportunistic one too" until_holds 120 is_alone "$job"
	guaranteed dlrm
	guaranteed vgg16
	guaranteed resnet50
	for name in deepfm dlrm vgg16 deepfm mine; do
		opportunistic "$name"
	done
	if [ "$policy" = antman ]; then
		holds "$policy: why tells what was predicted and measured beside another" \
			until_holds 180 says "$first" 'shares gpu[01] with job [0-9]*: predicted [0-9.]*x\( (learned)\)*, measured [0-9.]*x; job [0-9]*: predicted'
	fi
	python3 "$scratch/watch.py" "$SHAREWELL" "$policy" "$scratch/$policy.mix" 150 >"$scratch/out" 2>"$scratch/err"
	said $? "$policy: all ten end, and no guaranteed job takes more than 5 % longer than alone"
	sed 's/^/# /' "$scratch/out"
done
run down
until_holds 60 [ -e "$SHAREWELL_STATE/slowdowns.json" ]
works 'what was learned is kept, and says how wrong it is' 'Each predicted from the others: wrong by' contention --learned "$SHAREWELL_STATE/slowdowns.json" resnet50 dlrm
sed 's/^/# /' "$scratch/out"
end
