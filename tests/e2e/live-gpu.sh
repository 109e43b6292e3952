#!/bin/sh
# Jobs of a live cluster under the GPU runtime, on the emulated driver: suspended they free their GPUs, limited they stay within, and they compute the same.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-emu.sh"
emulate 2 512M
train="$scratch/train"
compile train examples/gpu/train.c

# uses <least> <most>: the GPUs hold between so many MiB.
uses() {
	now=$(used_of_all) && [ "$now" -ge "$1" ] && [ "$now" -le "$2" ]
}
long='--steps 1000000 --memory 6M --step-us 5000'

"$train" --steps 800 --memory 6M >plain
"$train" --steps 60 --memory 40M >large
gpus=auto
up --host-memory 4G
works 'the GPUs of the emulated driver are found' 'here idle     2    2' nodes

# Its environment.
submit -J prints --env LD_PRELOAD=libm.so.6 -- sh -c 'echo "$LD_PRELOAD"; stat -c "%a %u %s" "$SHAREWELL_GPU"'
ends 'a job runs under the runtime' "$job" 0
run logs "$job"
[ "$(sed -n 1p "$scratch/out")" = "$SW_BUILD_DIR/libsharewell-gpu.so:libm.so.6" ]
said $? 'the library comes before those that its user wants'
sed -n 2p "$scratch/out" | grep -q "^600 $(id -u) [1-9]"
said $? 'its page is there, and its own'
submit --gpu-runtime off --env LD_PRELOAD="$SW_BUILD_DIR/libsharewell-gpu.so:libm.so.6" --env SHAREWELL_GPU=/other -- sh -c 'echo "$LD_PRELOAD,$SHAREWELL_GPU,"'
ends 'a job that wants none' "$job" 0
run logs "$job"
[ "$(cat "$scratch/out")" = 'libm.so.6,,' ]
said $? 'has none'
works 'which is shown' 'gpu_runtime="off"' show "$job"
printf 'command: echo "$SHAREWELL_GPU,"\ngpu_runtime: off\n' >bare.yaml
submit bare.yaml
ends 'nor does one whose file says so' "$job" 0
works 'as its output tells' ',' logs "$job"
refuses 2 'another word is refused' 'gpu-runtime' submit --gpu-runtime maybe -- true

# Suspended, also across the death of the agent, and resumed.
submit_here -J train --preempt suspend --gpu-memory 100M -o "$scratch/disturbed" -- "$train" --steps 800 --memory 6M --step-us 10000
holds 'a training has its memory on the GPU' until_holds 60 uses 24 40
holds 'as the runtime knows' test -f "$(folder "$job")/gpu"
works 'it is suspended' '' suspend "$job"
holds 'and stands' until_holds 60 is_state "$job" S
holds 'its GPU is free but for its context' until_holds 60 uses 16 18
# host <words of python about n, the node>
host() { "$SHAREWELL" nodes --json | python3 -c "import json, sys; n = json.load(sys.stdin)['nodes'][0]; sys.exit(not ($1))"; }
holds 'what its contents take of the node is known' until_holds 60 host "n['gpu_host_limit_bytes'] == 4 << 30 and n['gpu_host_bytes'] >= 6 << 20"
works 'and shown' 'of 4.0 GiB of host memory for GPU contents taken' top --once
holds 'how long that took is told' until_holds 30 told "$job" 'GiB moved out of its GPUs'
kill -KILL "$(child agent)"
holds 'a new agent comes' until_holds 60 sh -c '[ -n "$(pgrep -P "$0" -f "sharewell agent")" ]' "$up_pid"
holds 'it still stands' is_state "$job" S
holds 'its GPU is still free' uses 16 18
holds 'and its contents count as before' until_holds 60 host "n['gpu_host_bytes'] >= 6 << 20"
works 'it is resumed' '' resume "$job"
holds 'goes on' until_holds 60 is_state "$job" R
holds 'and has its memory back' until_holds 60 uses 24 40
works 'a second time it is suspended' '' suspend "$job"
holds 'and stands again' until_holds 60 is_state "$job" S
holds 'and is away' until_holds 60 uses 16 18
works 'and resumed' '' resume "$job"
ends 'it ends' "$job" 0
[ "$(hash_of "$scratch/disturbed")" = "$(hash_of plain)" ]
said $? 'and has computed what an undisturbed one does, bit for bit' disturbed
holds 'its memory is the next one'\''s' until_holds 30 uses 0 0

# Ends while suspended.
submit_here -J long --preempt suspend --gpu-memory 100M -- "$train" $long
holds 'another runs' until_holds 60 uses 24 40
works 'is suspended' '' suspend "$job"
holds 'stands' until_holds 60 is_state "$job" S
process=$(pgrep -f "$train --steps 1000000" | head -n 1)
works 'and cancelled' '' cancel "$job"
holds 'it is gone' until_holds 60 sh -c '! kill -0 "$0"' "$process"
holds 'with all that it held' until_holds 30 uses 0 0
holds 'in host memory, too' until_holds 60 host "n['gpu_host_bytes'] == 0"

# A limit. Whether contexts count against it is the runtime's affair: the figures below hold either way.
# says <words of python about g, what the cluster knows of its GPU memory in MiB>
says() {
	"$SHAREWELL" show --json "$job" | python3 -c "
import json, sys
g = {name: (value or 0) >> 20 for name, value in json.load(sys.stdin)['gpu'].items() if name.endswith('_bytes')}
sys.exit(not ($1))"
}
submit_here -J limited --gpu-memory 30M -o "$scratch/limited" -- "$train" --steps 60 --memory 40M
ends 'a job whose limit is below what it takes ends well' "$job" 0
[ "$(hash_of "$scratch/limited")" = "$(hash_of large)" ]
said $? 'and computes the same' limited
submit_here -J limited --gpu-memory 30M -- "$train" --steps 1000000 --memory 40M --step-us 5000
holds 'one that runs on has the rest in host memory, as the cluster knows' until_holds 60 says "g['limit_bytes'] == 30 and g['host_bytes'] >= 10"
holds 'and the driver' uses 18 46
works 'it is cancelled' '' cancel "$job"
holds 'and gone' until_holds 60 uses 0 0

# A limit that changes while the job runs.
submit_here -J measured -- "$train" --steps 1000000 --memory 40M --step-us 5000
holds 'what a job holds is known to the cluster' until_holds 60 says "g['memory_bytes'] >= 56 and g['limit_bytes'] == 0 and g['host_bytes'] == 0"
works 'it is limited' '' limit "$job" --gpu-memory 30M
holds 'and moves the rest to the host' until_holds 60 says "g['memory_bytes'] <= 46 and g['limit_bytes'] == 30 and g['host_bytes'] >= 10"
holds 'so says the driver' uses 18 46
kill -KILL "$(child agent)"
works 'another limit while the agent is dead' '' limit "$job" --gpu-memory 34M
holds 'is heard by the next one' until_holds 60 says "g['limit_bytes'] == 34"
works 'the limit is taken away' '' limit "$job" --gpu-memory none
holds 'its memory comes back' until_holds 60 uses 56 64
works 'it is cancelled' '' cancel "$job"
holds 'and gone' until_holds 60 uses 0 0

# What cannot leave: the job is stopped all the same, and why is told.
submit -J spoils --preempt suspend --gpu-memory 100M -- sh -c 'truncate -s 0 "$SHAREWELL_GPU"; touch "$0"; while :; do sleep 0.1; done' "$scratch/spoilt"
holds 'a job cuts off its own page' until_holds 60 test -e "$scratch/spoilt"
works 'is suspended' '' suspend "$job"
holds 'and stands' until_holds 60 is_state "$job" S
holds 'its supervisor says why its memory may be there' until_holds 60 told "$job" 'its GPU memory is still held: '
works 'resumed' '' resume "$job"
holds 'it goes on' until_holds 60 is_state "$job" R
works 'and cancelled' '' cancel "$job"
run wait "$job"
out_has CANCELLED
said $? 'it ends as others do'
end
