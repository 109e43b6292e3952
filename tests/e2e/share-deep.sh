#!/bin/sh
# `sharewell share --suspend --deep` on the emulated driver: nothing of a program stays on its GPU, it comes back bit for bit, there or on another GPU, and what cannot be done is said.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-live.sh"
. "$(dirname "$0")/lib-emu.sh"
emulate 2 512M
compile gpu_load tests/e2e/gpu_load.c
pids=''
trap 'kill $pids 2>/dev/null; finish' EXIT

# uses <of the first GPU> <of the second>, in MiB
uses() { [ "$(used)" = "$1 $2" ]; }
# listed <words of python about s, the first share, and g, its GPUs>
listed() { "$SHAREWELL" share --list --json | python3 -c "import json, sys; s = json.load(sys.stdin)[0]; g = s['gpus']; sys.exit(not ($1))"; }
"$scratch/gpu_load" --rounds 400 --memory 12M >plain

# It changes its memory in 400 rounds, and then keeps it until it is told to end.
"$SHAREWELL" share --name big --memory 100M -- "$scratch/gpu_load" --rounds 400 --kernels 1 --kernel-us 20000 --memory 12M --end enough >disturbed 2>disturbed.err &
share=$! pids=$!
holds 'a program works' until_holds 60 listed "s['launches'] > 100"
holds 'and has its memory' uses 28 0
works 'it is suspended' 'big suspended' share --suspend big
holds 'which leaves its context' uses 16 0
refuses 2 'nor can it go elsewhere from there' 'big is on its GPU' share --resume big --gpu 1
works 'it is taken off' 'big is off its GPUs' share --suspend big --deep
holds 'nothing of it is left' uses 0 0
holds 'as is shown' listed "s['state'] == 'off' and g[0]['used_bytes'] == 0 and g[0]['fixed_bytes'] == 0 and g[0]['host_bytes'] == 12 << 20"
works 'also in words' ' off ' share --list
works 'twice makes no difference' 'big is off its GPUs' share --suspend big --deep
works 'a limit is heard meanwhile' 'GiB in host memory' share --limit big --memory 90M
works 'it comes back' 'big is back on its GPUs' share --resume big
holds 'with all that it had' until_holds 60 uses 28 0
holds 'and runs' listed "s['state'] == 'running' and g[0]['limit_bytes'] == 90 << 20"
works 'from where it works it is taken off too' 'big is off its GPUs' share --suspend big --deep
holds 'whole' uses 0 0

# To the other GPU.
refuses 2 'a GPU that is not there' "there is no GPU '2'" share --resume big --gpu 2
refuses 2 'nor by name' "there is no GPU 'best'" share --resume big --gpu best
first=$("$SHAREWELL" share --list --json | python3 -c "import json, sys; print(json.load(sys.stdin)[0]['gpus'][0]['uuid'])")
works 'it goes on elsewhere' 'big runs again' share --resume big --gpu 1
holds 'with all that it had' until_holds 60 uses 0 28
holds 'and is known there' listed "s['state'] == 'running' and g[0]['uuid'] != '$first' and g[1]['uuid'] == '$first' and g[0]['used_bytes'] == 28 << 20 and g[1]['used_bytes'] == 0"
works 'where it is suspended as usual' 'big suspended' share --suspend big
holds 'but for its context' uses 0 16
works 'and resumed' 'big runs again' share --resume big
works 'and limited' 'GiB on its GPUs' share --limit big --memory 20M
holds 'by that GPU' until_holds 60 listed "g[0]['used_bytes'] <= 20 << 20 and g[0]['host_bytes'] > 0"
works 'and not' 'GiB on its GPUs' share --limit big --memory none
works 'it is taken off from there' 'big is off its GPUs' share --suspend big --deep
works 'and back by its UUID' 'big runs again' share --resume big --gpu "$first"
holds 'to where it began' until_holds 60 uses 28 0

# What cannot be.
works 'once more' 'big is off its GPUs' share --suspend big --deep
"$scratch/gpu_load" --memory 490M --rounds 0 --end filled >filler 2>&1 &
filler=$! pids="$pids $!"
holds 'another program takes the GPU' until_holds 60 uses 506 0
refuses 1 'while it does there is no way back' "others hold the GPU's memory" share --resume big
holds 'it stays off' listed "s['state'] == 'off'"
touch filled && wait $filler
works 'when it is gone there is' 'big runs again' share --resume big
SHAREWELL_EMU_FAULTS='cuCheckpointProcessLock:error=800' run share --suspend big --deep
[ "$status" -ne 0 ] && err_has 'right to trace' && err_has 'It is suspended all the same'
said $? 'without the right to it the driver refuses, which is said'
holds 'and it is suspended as usual' listed "s['state'] == 'suspended'"
SHAREWELL_EMU_FAULTS='cuCheckpointProcessCheckpoint:error=801' run share --suspend big --deep
[ "$status" -ne 0 ] && err_has 'cannot be taken off a GPU'
said $? 'so is what the driver cannot do'
works 'it goes on' 'big runs again' share --resume big
mkdir old && echo 'int cuInit(unsigned flags) { return 0 * flags; }' >old.c && ${CC:-cc} -shared -fPIC -o old/libcuda.so.1 old.c
LD_LIBRARY_PATH=$PWD/old:$LD_LIBRARY_PATH run share --suspend big --deep
[ "$status" -eq 2 ] && err_has 'the NVIDIA driver is too old' && err_has cuCheckpointProcessLock
said $? 'and an old driver'
works 'it goes on' 'big runs again' share --resume big
touch enough
wait $share
[ $? -eq 0 ] && grep -q hash plain && cmp -s disturbed plain && [ ! -s disturbed.err ]
said $? 'after all that it has computed the same, bit for bit' work/disturbed work/disturbed.err

# Two processes of one job, one of which dies while they are off.
"$SHAREWELL" share --name pair -- sh -c '"$0" --memory 8M --rounds 0 --end no & echo $! >one; "$0" --memory 8M --rounds 0 --end no & echo $! >two; wait' "$scratch/gpu_load" >pair.out 2>&1 &
share=$! pids="$pids $!"
holds 'a job of two processes' until_holds 60 uses 48 0
works 'is taken off' 'pair is off its GPUs' share --suspend pair --deep
holds 'both of them' uses 0 0
refuses 2 'which go nowhere else' 'a program of 2 processes cannot go to another GPU' share --resume pair --gpu 1
kill -KILL "$(cat one)"
holds 'one dies' until_holds 60 listed "s['processes'] == 1"
works 'the other one comes back' 'pair runs again' share --resume pair
holds 'with what it had' until_holds 60 uses 24 0
works 'and is taken off again' 'pair is off its GPUs' share --suspend pair --deep
kill -KILL $share && wait $share 2>/dev/null
holds 'off, its keeper is killed: it is listed all the same' listed "s['state'] == 'off' and s['processes'] == 1"
refuses 2 'its name is not for another one' "there is a share 'pair' already" share --name pair -- true
works 'and comes back' 'pair runs again' share --resume pair
holds 'with what it had' until_holds 60 uses 24 0
"$SHAREWELL" share --list --json >after
[ "$(python3 -c 'import json; print(json.load(open("after")))')" = '[]' ]
said $? 'from then on it goes on alone' work/after
kill -KILL "$(cat two)"
holds 'and nothing is left' until_holds 60 uses 0 0
refuses 2 'wrong use' '--deep goes with --suspend' share --deep -- true
refuses 2 'of both' '--gpu goes with --resume' share --gpu 1 -- true
end
