#!/bin/sh
# The cluster's own history: as a trace, replayed beside what really happened; forecasts of starts; columns; many jobs at once.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-live.sh"

# member <path of keys>: of the JSON in $scratch/out.
member() { python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]:
    value = value[int(key) if key.isdigit() else key]
print(value)' "$scratch/out" "$@"; }

up
refuses 2 'a cluster without history has nothing to replay' 'no history yet' sim --journal --policy fifo
refuses 2 'nor to export' 'no job to export' history --export none.csv

# Some jobs of all kinds.
submit -J short -a 1-4 -- sleep 0.2
submit -J wide -G 4 -- sleep 0.3
wide=$job
submit -J fails -- sh -c 'sleep 0.1; exit 3'
failed_job=$job
submit -J after -d "afterok:$wide" --gpu-memory 2G -- sleep 0.1
run wait "$job" "$((job - 1))"
submit -H -J never -- true

# Export: the trace is sound, and holds what matters.
works 'the history is exported' '7 jobs in history.csv, 1 that never ran left out' history --export history.csv
works 'the trace is sound' '0 errors, 0 warnings, 0 notes' trace check history.csv
works 'to standard output, too' 'outcome' history --export -
cp "$scratch/out" again.csv
holds 'and it is the same' cmp history.csv again.csv
holds 'it says how jobs ended' sh -c 'grep -c ",completed$" history.csv | grep -qx 6 && grep -q "fails,.*,failed$" history.csv'
holds 'and what they asked for' grep -q 'after,.*,2048,' history.csv
holds 'a job that waited for another counts from its end' python3 -c '
import csv
rows = {row["name"]: row for row in csv.DictReader(open("history.csv"))}
assert float(rows["after"]["submit_s"]) >= float(rows["wide"]["ended_s"]), rows
assert 0.1 <= float(rows["after"]["duration_s"]) < 30, rows'
refuses 2 'of a time in which nothing was' 'no job to export' history --export later.csv -E 2001-01-01

# Replay.
works 'the history is replayed beside what really happened' 'really (sharewell)' sim --journal --policy fifo,srtf
holds 'on the shape of the cluster' grep -q 'Cluster  *1 node x 4 GPUs' "$scratch/out"
holds 'and how it was taken is said' grep -q 'jobs run as long as they really did, however they ended (1 did not end well); 1 that never ran is left out' "$scratch/out"
holds 'under every policy that was named' sh -c 'grep -c "^│ \(fifo\|srtf\|really\)" "$0" | grep -qx 3' "$scratch/out"
run sim --journal --policy sharewell
[ "$status" -eq 0 ] && ! out_has Setting
said $? 'presets are not told as settings'
works 'for a script' '"recorded": true' sim --journal --policy fifo --json
holds 'the real figures are those of the journal' python3 -c '
import json, sys
real, fifo = [json.loads(line) for line in open(sys.argv[1])]
assert real["policy"] == "really (sharewell)" and real["jobs"] == fifo["jobs"] == 7 and real["finished"] == 7, real
assert 0 < real["jct_avg_s"] < 60 and 0 < real["gpu_utilization"] <= 1, real' "$scratch/out"
python3 "$SW_SOURCE_DIR/tests/e2e/old_controller.py" "$SHAREWELL_STATE/controller.sock" "$scratch/rowless.sock" /v1/jobs &
rowless=$!
until_holds 20 test -S "$scratch/rowless.sock"
run sim --journal --policy fifo --json --controller "unix:$scratch/rowless.sock"
kill "$rowless"
[ "$status" -eq 0 ] && cp "$scratch/out" "$scratch/rowless.json"
said $? 'it is the journal that is replayed: no row of a job is asked for'
holds 'and all of it is there' python3 -c '
import json, sys
real, fifo = [json.loads(line) for line in open(sys.argv[1])]
assert real["jobs"] == fifo["jobs"] == 7 and real["finished"] == 7 and 0 < real["jct_avg_s"] < 60, real' "$scratch/rowless.json"
works 'an exported history, on another cluster' 'really' sim --journal history.csv --cluster 1x8 --policy fifo
refuses 2 'which must be told' 'needs --cluster' sim --journal history.csv --policy fifo
refuses 2 'a state folder is refused with a way out' 'sharewell up --state' sim --journal "$SHAREWELL_STATE" --policy fifo
printf 'submit_s,duration_s,gpus\n0,1,1\n' >plain.csv
refuses 2 'a trace that does not say what happened' 'does not tell what really happened' sim --journal plain.csv --cluster 8x8 --policy fifo
refuses 2 'a trace beside the journal' 'do not go together' sim --journal --trace history.csv
refuses 2 'a file without --journal' 'has no place here' sim history.csv --policy fifo --trace history.csv --cluster 1x4

# Forecasts.
submit -J held -G 4 -t 10m -- sleep 600
first=$job
holds 'a job runs' until_holds 20 is_state "$first" R
submit -J waits -G 2 -t 5m -- sleep 600
waits=$job
submit -J behind -G 4 -- sleep 600
works 'why says when a job will start, and on what that rests' 'in about 10 min' why "$waits"
holds 'its limit' grep -q 'if the job that ends before runs as long as its limit allows' "$scratch/out"
run why --json "$waits"
holds 'for a script' sh -c 'grep -q "\"estimated_start_at\":\"20" "$0" && grep -q "\"limits\":1" "$0" && grep -q "\"at\":\"20" "$0"' "$scratch/out"
works 'one behind it starts later' 'in about 15 min' why "$job"
submit -d "afternotok:$first" -- true
works 'it is not foreseen that a job fails' 'it runs only if a job fails that has not ended yet' why "$job"
"$SHAREWELL" cancel "$job"
works 'a job on hold has none' 'on hold' why "$((first - 1))"
! grep -q 'start' "$scratch/out"
said $? 'and there is no guess'
works 'a job that is not submitted is tried' 'in about 15 min' submit --test-only -G 4 -- true
last=$("$SHAREWELL" ps --noheader -o jobid --sort -jobid | head -n 1 | tr -d ' ')
works 'for a script' '"id":null,"estimated_start_at":"20' submit --test-only --json -G 4 -- true
[ "$("$SHAREWELL" ps --noheader -o jobid --sort -jobid | head -n 1 | tr -d ' ')" = "$last" ]
said $? 'and makes no job'
works 'members of an array are counted' '10 jobs could be submitted' submit --test-only -a 1-10 -- true
holds 'and the estimate is of the first' grep -q 'the first of its 10 jobs: expected to start' "$scratch/out"
works 'one that a failed job forbids is taken, and ends at once' '1 job could be submitted' submit --test-only -d "afterok:$failed_job" -- true
holds 'as is said' grep -q 'it would end at once' "$scratch/out"
works 'the list of starts' 'START_TIME' ps --start
holds 'has the jobs that wait, with a moment each' sh -c 'grep "waits" "$0" | grep -q "20[0-9][0-9]-.*T"' "$scratch/out"
holds 'but not those that run' sh -c '! grep -q "^ *$1 " "$0"' "$scratch/out" "$first"
holds 'and no moment for the one on hold' sh -c 'grep "never" "$0" | grep -q "N/A"' "$scratch/out"

# A controller of a time before forecasts.
python3 "$SW_SOURCE_DIR/tests/e2e/old_controller.py" "$scratch/state/controller.sock" "$scratch/old.sock" /v1/forecast "/v1/forecast?job=$waits" "/v1/forecast?limit=1000&cursor=0" &
old=$!
until_holds 20 test -S "$scratch/old.sock"
works 'an older controller still says why a job waits' 'no estimate: the controller is older' why --controller "unix:$scratch/old.sock" "$waits"
holds 'in full' grep -q "^job $waits (PD): ..*" "$scratch/out"
works 'and to a script' '"no_estimate":"the controller is older' why --json --controller "unix:$scratch/old.sock" "$waits"
run ps --start --controller "unix:$scratch/old.sock"
[ "$status" -eq 0 ] && grep -q 'waits .*N/A' "$scratch/out"
said $? 'it lists jobs without estimates'
err_has 'no start can be estimated: the controller is older'
said $? 'and says why'
refuses 2 'and it cannot try jobs' 'is older than this command' submit --test-only --controller "unix:$scratch/old.sock" -- true
kill "$old"

# Columns.
works 'columns of choice' 'JOBID STATE   TIME_LIMIT' ps -o jobid,state,timelimit
works "squeue's letters" 'JOBID NAME   ST' ps -o '%.18i %.9j %t'
run ps -h -O name --sort -jobid -t R,PD
holds 'in an order of choice' sh -c 'head -n 1 "$0" | grep -qx behind' "$scratch/out"
refuses 2 'a column that is none' "Did you mean 'jobid'" ps -o jobidd

# Quotas.
works 'quotas are listed' '' quota "$(id -un)x" 3
works 'with what tenants hold' 'QUOTA GPUS' quota
holds 'a quota without jobs' grep -q "x  *3  *0" "$scratch/out"

# Many at once.
submit -J sweep -a 1-5 -- sleep 600
works 'jobs are held by name' 'Held 5 jobs' hold --name 'swee*'
works 'and released' 'Released 5 jobs' release --name sweep
works 'those that wait are cancelled by name and state' 'Cancelled 5 jobs' cancel --name sweep --state PD
works 'none is left' 'Cancelled 0 jobs' cancel --name sweep
refuses 2 'numbers and a choice together' 'either numbers of jobs or a choice' cancel 1 --name sweep
refuses 2 'neither of them' 'either numbers of jobs or a choice' cancel
submit -J behind -d "afterok:$waits" -- true
works 'all the rest, by user, with one that depends on another' 'Cancelled 5 jobs' cancel -u "$(id -un)"
end
