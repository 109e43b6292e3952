#!/bin/sh
# What an operator may say of GPUs and of what else is on them: kept back, shared, not looked at; drivers that do not name processes; jobs on GPUs that are none of theirs.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-emu.sh"
emulate 2 8G
compile train examples/gpu/train.c
train="$scratch/train"
gpus=auto
settings=$SHAREWELL_EMU
strangers=''
stranger() {
	CUDA_VISIBLE_DEVICES=$1 "$train" --steps 100000000 --memory "${2:-6M}" --step-us 20000 >/dev/null 2>&1 &
	stranger=$!
	strangers="$strangers $stranger"
}
leave() { kill -KILL "$1" 2>/dev/null && wait "$1" 2>/dev/null; }
end_all() {
	for pid in $strangers; do leave "$pid"; done
	finish
}
trap end_all EXIT
# again <settings of the emulated driver> <options of up>: another cluster.
again() {
	if [ -n "$up_pid" ]; then
		"$SHAREWELL" ps --noheader | while read -r job _; do "$SHAREWELL" cancel "$job" >/dev/null 2>&1; done
		kill "$up_pid" && wait "$up_pid" 2>/dev/null
		rm -rf "$SHAREWELL_STATE"
	fi
	export SHAREWELL_EMU="$settings$1"
	shift
	up --host-memory 4G "$@"
}
node() { "$SHAREWELL" nodes --json | python3 -c "import json, sys; n = json.load(sys.stdin)['nodes'][0]; d = n['devices']; sys.exit(not ($1))"; }
gpu_of() { "$SHAREWELL" show "$1" --json | python3 -c "import json, sys; print(*json.load(sys.stdin)['gpu_indexes'])"; }
job_gpu_is() { [ "$(gpu_of "$1")" = "$2" ]; }
why_says() { "$SHAREWELL" why "$1" >"$scratch/why" 2>&1 && grep -qF -- "$2" "$scratch/why"; }
shows() { "$SHAREWELL" show "$1" >"$scratch/shown" 2>&1 && grep -qF -- "$2" "$scratch/shown"; }

# Kept back.
again '' --exclude-gpus 0
holds 'a GPU that is kept back is said' node "d[0]['shut'] == 'excluded' and d[1]['shut'] is None and n['gpus_free'] == 1"
works 'in the list of nodes' 'gpu0 excluded' nodes
submit_here -- "$train" --steps 60 --memory 6M
ends 'a job runs' "$job" 0
holds 'on the other one' job_gpu_is "$job" 1
submit_here -- sleep 60
busy=$job
holds 'one that runs there' until_holds 60 is_state "$busy" R
submit_here -- true
holds 'keeps the next one waiting, which says why' until_holds 20 why_says "$job" '1 of 2 GPUs is kept back by the operator: on here gpu0'
uuid=$("$SHAREWELL" nodes --json | python3 -c "import json, sys; print(json.load(sys.stdin)['nodes'][0]['devices'][1]['uuid'])")
again '' --exclude-gpus "$uuid"
holds 'the UUID does as well' node "d[1]['shut'] == 'excluded' and d[0]['shut'] is None"
timeout 60 "$SHAREWELL" agent --controller "unix:$SHAREWELL_STATE/controller.sock" --state "$scratch/other" --node other --exclude-gpus 0,7 >"$scratch/out" 2>"$scratch/err"
status=$?
[ "$status" -ne 0 ] && grep -qF "there is no GPU '7' to keep back" "$scratch/err"
said $? 'one that is not there is refused'

# Shared, and not looked at.
stranger 0
again '' --strangers share
holds 'with share a stranger is said' until_holds 60 node "[s['pid'] for s in d[0]['strangers']] == [$stranger] and d[0]['shut'] is None"
submit_here -- "$train" --steps 60 --memory 6M
ends 'and a job runs all the same' "$job" 0
holds 'beside it' job_gpu_is "$job" 0
again '' --strangers ignore
submit_here -- "$train" --steps 60 --memory 6M
ends 'with ignore a job runs beside it' "$job" 0
holds 'and nothing is said' node "d[0]['strangers'] == [] and d[0]['shut'] is None"
leave "$stranger"

# Drivers that name processes by other numbers, or not at all: then memory is the evidence.
for pids in foreign none; do
	stranger 0 3G
	again ";pids=$pids"
	holds "a stranger without a number ($pids) is seen by its memory" until_holds 60 node "d[0]['shut'] == 'stranger' and d[0]['strangers'][0]['pid'] is None and d[0]['strangers'][0]['memory_bytes'] > 3 << 30 and d[1]['shut'] is None"
	submit_here -- "$train" --steps 100000000 --memory 3G --step-us 20000
	holds 'a job has the other GPU' until_holds 60 is_state "$job" R
	leave "$stranger"
	holds 'which opens again' until_holds 60 node "d[0]['shut'] is None"
	holds 'and the job is no stranger' node "d[1]['shut'] is None and d[1]['memory_used_bytes'] > 3 << 30"
	run cancel "$job"
	holds 'it ends' until_holds 60 is_state "$job" CA
done

# Jobs on GPUs that are none of theirs.
again '' --trespass say
submit_here -- env -u CUDA_VISIBLE_DEVICES CUDA_VISIBLE_DEVICES=1 "$train" --steps 100000000 --memory 6M --step-us 20000
holds 'a job on a GPU that is not its own is said' until_holds 60 shows "$job" 'a process of it uses a GPU that it was not given'
holds 'also where it is asked why' why_says "$job" 'uses a GPU that it was not given'
holds 'and it goes on' is_state "$job" R
holds 'it is no stranger' node "d[1]['strangers'] == []"
grep -qF "job $job uses GPU" "$scratch/up.out"
said $? 'the agent says so once' up.out
[ "$(grep -cF "job $job uses GPU" "$scratch/up.out")" -eq 1 ]
said $? 'and not again' up.out
run cancel "$job"
again '' --trespass stop
submit_here -- env CUDA_VISIBLE_DEVICES=1 "$train" --steps 100000000 --memory 6M --step-us 20000
run wait "$job"
holds 'with stop it is stopped' is_state "$job" F
holds 'for that' why_says "$job" 'it used a GPU that it was not given'
submit_here -- "$train" --steps 60 --memory 6M
ends 'others are not' "$job" 0

# What keeps jobs to their GPUs is said by the agent of root, and can be turned off.
if [ "$(id -u)" -eq 0 ]; then
	again '' --device-rules off
	holds 'the agent says that the kernel keeps no job to its GPUs' grep -qF 'device rules: none, jobs are kept to their GPUs by their environment alone (--device-rules off)' "$scratch/up.out"
	again ''
	holds 'or what does, unless it is turned off' grep -qE 'device rules: (the kernel keeps jobs to their GPUs|none, .*(control groups|the kernel takes no rule))' "$scratch/up.out"
	submit_here -- "$train" --steps 60 --memory 6M
	ends 'a job runs' "$job" 0
fi
refuses 2 'another word is refused' "device-rules" up --device-rules maybe
end
