#!/bin/sh
# What a job may have of its GPUs is limited while it runs, and how it does there is shown.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"

# field <job> <python expression over the job j>
field() { "$SHAREWELL" show --json "$1" | python3 -c 'import json, sys; j = json.load(sys.stdin); sys.exit(not eval(sys.argv[1]))' "$2"; }

up

submit -G 2 -- sleep 1000
holds 'a job runs' until_holds 30 is_state "$job" R
holds 'without a limit' field "$job" 'j["limit"] is None'
works 'its memory is limited' "Job $job may have 10.0 GiB of each GPU" limit "$job" --gpu-memory 10G
works 'and its time, which leaves the memory as it is' "Job $job may have 10.0 GiB of each GPU and 30 % of its time" limit "$job" --compute 30%
works 'both are shown' 'Limit       10.0 GiB of each GPU and 30 % of its time' show "$job"
run show "$job"
! out_has ExitCode
said $? 'and no exit code, as it runs'
works 'as JSON too' '"limit":{"gpu_memory":10737418240,"compute":30}' limit "$job" --compute 30 --json
kill -KILL "$(child controller)"
holds 'limits outlast a crash' until_holds 30 field "$job" 'j["limit"] == {"gpu_memory": 10 << 30, "compute": 30}'
works 'and the run' "Requeued job $job" requeue "$job"
holds 'it runs again' until_holds 60 field "$job" 'j["state"] == "R" and j["epoch"] == 2'
holds 'as limited as before' field "$job" 'j["limit"] == {"gpu_memory": 10 << 30, "compute": 30}'
works 'one limit is lifted' "Job $job may have 30 % of each GPU's time" limit "$job" --gpu-memory none
works 'then the other' "Job $job may have all that it got of its GPUs" limit "$job" --compute none

refuses 2 'no limit' 'needs a limit' limit "$job"
refuses 2 'a size that is none' 'a size such as 10G' limit "$job" --gpu-memory much
refuses 2 'too little for the driver' '16.0 MiB' limit "$job" --gpu-memory 1M
refuses 2 'no time at all' 'from 1 to 100' limit "$job" --compute 0
refuses 2 'more time than there is' 'from 1 to 100' limit "$job" --compute 101
refuses 2 'a share with a point' 'from 1 to 100' limit "$job" --compute 30.5
refuses 2 'more than the GPU has' 'its GPU has' limit "$job" --gpu-memory 900G
refuses 2 'a job that is not there' 'there is no job 999' limit 999 --compute 30
works 'cancelled' "Cancelled job $job" cancel "$job"
holds 'it is gone' until_holds 30 is_state "$job" CA
refuses 2 'a job that has ended' "cannot limit job $job: it has ended" limit "$job" --compute 30
run limit "$job" 999 --compute 30
[ "$status" -eq 2 ] && err_has 'it has ended' && err_has 'there is no job 999'
said $? 'each of several jobs is told of'

# A node of our own making, on whose large GPU a job does well.
number=0
# ask.py <socket> <path> [body]: prints the answer of the controller.
cat >"$scratch/ask.py" <<'END_OF_PYTHON'
import http.client, socket, sys
connection = http.client.HTTPConnection("localhost", timeout=60)
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect(sys.argv[1])
connection.request("POST" if len(sys.argv) > 3 else "GET", *sys.argv[2:], headers={"Content-Type": "application/json"})
answer = connection.getresponse()
print(answer.read().decode())
sys.exit(answer.status != 200)
END_OF_PYTHON
ask() { python3 "$scratch/ask.py" "$SHAREWELL_STATE/controller.sock" "$@"; }
# say <fields of the sync>
say() {
	number=$((number + 1))
	ask /v1/agents/sync "{\"node\": \"there\", \"instance\": \"a\", \"number\": $number, \"have\": 0, $1}" >"$scratch/answer"
}
holds 'a second node comes' say '"inventory": {"cpus": 8, "memory_bytes": 100000000000, "gpus": [{"uuid": "GPU-there", "name": "Large", "memory_bytes": 300000000000}]}'
submit --gpu-memory 200G -- train
holds 'and gets a job' until_holds 20 is_state "$job" CF
runs="\"jobs\": [{\"job\": $job, \"epoch\": 1, \"state\": \"running\"}]"
holds 'whose figures it tells' say "$runs, \"samples\": [{\"at_ns\": $(date +%s)000000000, \"gpu\": \"GPU-there\", \"job\": $job, \"epoch\": 1,
	\"memory_bytes\": 10200547328, \"limit_bytes\": 10737418240, \"host_bytes\": 2147483648, \"iteration_ns\": 312000000}]"
# Each word keeps its lease, however slow the machine is.
works 'its memory is shown' 'GPU memory  9.5 GiB of 10.0 GiB, 2.0 GiB more in host memory' show "$job"
say "$runs"
works 'and how long an iteration takes' 'Iteration   312 ms/it' show "$job"
say "$runs"
works 'top shows them' '9.5GiB/10.0GiB+2.0GiB    312 ms/it' top --once
say "$runs"
ask /metrics >"$scratch/out"
grep -q "^sharewell_job_iteration_seconds{job=\"$job\",.*} 0.312000000$" "$scratch/out"
said $? 'metrics tell' out
say "$runs"
works 'its node hears of a limit' 'may have 50.0 GiB' limit "$job" --gpu-memory 50G --compute 25
holds 'with the next word' say "$runs"
grep -q '"gpu_limit_bytes":53687091200,"gpu_share_milli":250' "$scratch/answer"
said $? 'as it was set' answer answer
holds 'the job ends' say "\"jobs\": [{\"job\": $job, \"epoch\": 1, \"state\": \"exited\", \"code\": 0, \"reason\": \"\"}]"
holds 'and its figures with it' field "$job" 'j["gpu"] is None and j["state"] == "CD"'
end
