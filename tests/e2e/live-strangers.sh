#!/bin/sh
# Processes outside the queue on GPUs of a live cluster, on the emulated driver: their GPUs are not given out while they stay, and it is said.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-emu.sh"
emulate 3 4G
control="$scratch/control"
SHAREWELL_EMU="$SHAREWELL_EMU;control=$control"
: >"$control"
compile train examples/gpu/train.c
compile gpu_load tests/e2e/gpu_load.c
train="$scratch/train"
gpus=auto

# stranger <GPU> [<options of train>]: a program of ours that the queue knows nothing of; its process is $stranger.
strangers=''
stranger() {
	gpu=$1
	shift
	CUDA_VISIBLE_DEVICES=$gpu "$train" --steps 100000000 --memory 6M --step-us 20000 "$@" >/dev/null 2>&1 &
	stranger=$!
	strangers="$strangers $stranger"
}
leave() { kill -KILL "$1" 2>/dev/null && wait "$1" 2>/dev/null; }
end_all() {
	for pid in $strangers; do leave "$pid"; done
	finish
}
trap end_all EXIT

# node <words of python about n, the node, and d, its GPUs>
node() { "$SHAREWELL" nodes --json | python3 -c "import json, sys; n = json.load(sys.stdin)['nodes'][0]; d = n['devices']; sys.exit(not ($1))"; }
gpu_of() { "$SHAREWELL" show "$1" --json | python3 -c "import json, sys; j = json.load(sys.stdin); print(*j['gpu_indexes'])"; }
why_says() { "$SHAREWELL" why "$1" >"$scratch/why" 2>&1 && grep -qF -- "$2" "$scratch/why"; }
job_gpu_is() { [ "$(gpu_of "$1")" = "$2" ]; }
metric() { curl -s --max-time 20 --unix-socket "$SHAREWELL_STATE/controller.sock" http://localhost/metrics | grep -qF -- "$1"; }

# One that was there first.
stranger 0
first=$stranger
holds 'a program outside the queue is on GPU 0' until_holds 60 sh -c 'set -- $(timeout 60 python3 "$0"); [ "$1" -ge 16 ]' "$SW_SOURCE_DIR/tests/e2e/used.py"
up --host-memory 4G --strangers avoid --driver-patience 4s
submit_here -o "$scratch/one" -- "$train" --steps 100000000 --memory 6M --step-us 20000
one=$job
holds 'a job starts' until_holds 60 is_state "$one" R
holds 'and not on the GPU that is taken' job_gpu_is "$one" 1
holds 'which the node says' node "d[0]['shut'] == 'stranger' and n['gpus_shut'] == 1 and n['gpus_free'] == 1"
holds 'with the process, its program, its memory and since when' node "[(s['pid'], s['program'], s['memory_bytes'] > 0, s['since'][:2]) for s in d[0]['strangers']] == [($first, 'train', True, '20')]"
works 'in the list of nodes too' "gpu0 stranger: $(id -un)'s train (pid $first, " nodes
works 'and in that of GPUs' "stranger: $(id -un)'s train" nodes --gpus
submit_here -- "$train" --steps 100000000 --memory 6M --step-us 20000
two=$job
holds 'a second job has the last GPU' until_holds 60 is_state "$two" R
submit_here -o "$scratch/three" -- "$train" --steps 60 --memory 6M
three=$job
holds 'a third one waits' until_holds 20 why_says "$three" "1 of 3 GPUs is used by processes outside the queue: $(id -un)'s train (pid $first, "
holds 'for the stranger' is_state "$three" PD
run why "$three"
! grep -q "at any moment" "$scratch/out"
said $? 'it is not expected at any moment' out err
submit_here -G 3 -- true
works 'the start of one that needs the GPU cannot be estimated' 'no estimate of its start: 1 GPU takes no jobs now' why "$job"
run cancel "$job"
works 'top says which GPU takes no jobs' 'here: 0 of 3 GPUs free, 1 takes no jobs' top --once
works 'and which process uses it' "     stranger: $(id -un)'s train (pid $first, " top --once
holds 'which the metrics count' metric 'sharewell_gpus_shut{why="stranger"} 1'
holds 'with its memory' metric 'sharewell_gpu_stranger_bytes{gpu="0"'
holds 'and how long a look takes' metric 'sharewell_node_look_seconds{Hostname="here"} 0.'
leave "$first"
ends 'it leaves, and the job runs' "$three" 0
holds 'on its GPU' job_gpu_is "$three" 0
holds 'our own jobs were never taken for strangers' node "all(g['shut'] is None and g['strangers'] == [] for g in d)"

# One that comes to a job.
stranger 1
holds 'a stranger that comes to the GPU of a job is seen' until_holds 60 node "d[1]['shut'] == 'stranger'"
holds 'the job goes on' is_state "$one" R
holds 'and says so' why_says "$one" "its gpu1 is also used from outside the queue: $(id -un)'s train (pid $stranger, "
run cancel "$one" "$two"
holds 'the jobs end' until_holds 60 is_state "$one" CA
for i in 1 2 3; do
	submit_here -- "$train" --steps 60 --memory 6M
	run wait "$job"
	[ "$status" -eq 0 ] && ! job_gpu_is "$job" 1
	said $? "job $i keeps off that GPU"
done
leave "$stranger"
holds 'it opens after the stranger' until_holds 60 node "d[1]['shut'] is None"

# A GPU whose driver does not answer closes alone, whether the call fails or hangs.
submit_here -- "$train" --steps 100000000 --memory 6M --step-us 20000
on_dead=$job
holds 'a job runs on GPU 0' until_holds 60 is_state "$on_dead" R
echo 'nvml.0:error=15:count=1000000000' >"$control"
holds 'a GPU that is lost closes' until_holds 60 node "d[0]['shut'] == 'dead' and 'lost' in d[0]['shut_by'] and [g['shut'] for g in d[1:]] == [None, None] and n['up']"
holds 'its job goes on' is_state "$on_dead" R
submit_here -- "$train" --steps 60 --memory 6M
ends 'another one runs' "$job" 0
echo ' ' >"$control"
holds 'it opens when the driver answers' until_holds 60 node "d[0]['shut'] is None"
echo "nvml.0:hold=$scratch/hangs:count=1000000000" >"$control"
holds 'a GPU in whose calls the driver hangs closes' until_holds 60 node "d[0]['shut'] == 'dead' and [g['shut'] for g in d[1:]] == [None, None] and n['gpus'] == 3"
holds 'its job goes on too' is_state "$on_dead" R
submit_here -- "$train" --steps 60 --memory 6M
ends 'and others run elsewhere' "$job" 0
echo "nvml:hold=$scratch/hangs:count=1000000000" >"$control"
holds 'a driver that hangs as a whole closes all GPUs' until_holds 120 node "[g['shut'] for g in d] == ['silent'] * 3 and n['up'] and n['gpus'] == 3"
works 'which the node says' 'shut' nodes
submit_here -- true
holds 'a new job waits and says why' until_holds 20 why_says "$job" '3 of 3 GPUs are on nodes whose driver does not answer'
holds 'the job that runs goes on' is_state "$on_dead" R
kill -KILL "$(child agent)"
holds 'an agent that starts then keeps its GPUs' until_holds 120 sh -c '"$0" nodes --json | grep -q "\"silent\"" && pgrep -P "$1" -f "sharewell agent" >/dev/null' "$SHAREWELL" "$up_pid"
holds 'and its job' is_state "$on_dead" R
echo ' ' >"$control"
rm -f "$scratch/hangs"
ends 'when the driver answers the job runs' "$job" 0
holds 'all GPUs are open' until_holds 60 node "all(g['shut'] is None for g in d)"
echo 'xid.1:error=31 xid.2:error=79' >"$control"
holds 'a GPU that reports an error of its own closes, and one with an error of a program does not' until_holds 60 node "d[2]['shut'] == 'dead' and 'Xid 79' in d[2]['shut_by'] and [g['shut'] for g in d[:2]] == [None, None]"
echo ' ' >"$control"
run cancel "$on_dead"
holds 'the last job ends' until_holds 60 is_state "$on_dead" CA

end
