#!/bin/sh
# `sharewell share` on the emulated driver: a program under limits, suspended and resumed, and what is said when something is wrong.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-live.sh"
. "$(dirname "$0")/lib-emu.sh"
compile train examples/gpu/train.c

# What a script left behind must not outlive it.
trap 'kill $shared_pid $orphan 2>/dev/null; finish' EXIT
shared_pid='' orphan=''

# Without a driver.
refuses 2 'without a driver the program is not started' 'libnvidia-ml.so.1' share -- touch started
holds 'nor was anything made' test ! -e started

emulate 1 512M
"$scratch/train" --steps 20 --memory 64M >plain && "$scratch/train" --steps 1000 --memory 12M >long-plain
holds 'the sample trains on the emulated driver' grep -q hash plain

# Limits.
works 'under a limit the program computes the same' "hash $(hash_of plain)" share --memory 32M -- "$scratch/train" --steps 20 --memory 64M
works 'and without one' "hash $(hash_of plain)" share -- "$scratch/train" --steps 20 --memory 64M
run share --memory 32M --host-memory 8M -- "$scratch/train" --steps 20 --memory 64M
[ "$status" -eq 1 ] && err_has 'CUDA_ERROR_OUT_OF_MEMORY'
said $? 'what fits neither on the GPU nor into the host memory that it may use is refused as the driver does'

# Its end is that of the program.
run share -- sh -c 'exit 7'
[ "$status" -eq 7 ]
said $? 'the exit status is passed on'
run share -- "$scratch/there-is-none"
[ "$status" -eq 127 ] && err_has 'cannot run'
said $? 'a program that is not there'
run share -- "$scratch"
[ "$status" -eq 126 ]
said $? 'a program that is none'
printf 'ready() { touch signal; exit 3; }\ntrap ready TERM\ntouch trapped\nwhile :; do sleep 0.05; done\n' >trap.sh
"$SHAREWELL" share --name trapped -- sh trap.sh &
shared_pid=$!
until_holds 30 test -e trapped
kill -TERM $shared_pid
wait $shared_pid
[ $? -eq 3 ] && [ -e signal ]
said $? 'signals are passed on'
${CC:-cc} -shared -fPIC -o "$scratch/early.so" "$SW_SOURCE_DIR/tests/e2e/early_signal.c" -ldl || exit 1
ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD="$scratch/early.so" timeout 60 "$SHAREWELL" share --name early -- sleep 1000
[ $? -eq 143 ]
said $? 'also one that comes while the program is being started'
EARLY=terminal ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD="$scratch/early.so" timeout 60 "$SHAREWELL" share --name early -- sleep 1000
[ $? -eq 130 ]
said $? 'and what a terminal sent before that'
"$SHAREWELL" share --name killed -- sh -c 'kill -KILL $$'
[ $? -eq 137 ]
said $? 'a program that was killed'
works 'programs that ended are not listed' 'NAME' share --list
holds 'and their pages are gone' sh -c '! ls "$SHAREWELL_STATE"/shares | grep .'

# While it runs.
"$SHAREWELL" share --name big --memory 100M -- "$scratch/train" --steps 1000 --memory 12M --step-us 6000 >long 2>long.err &
shared_pid=$!
# listed <words of python about s, the share>: what --list says of it.
listed() { "$SHAREWELL" share --list --json | python3 -c "import json, sys; s = json.load(sys.stdin)[0]; sys.exit(not ($1))"; }
until_holds 30 listed "s['launches'] > 100"
holds 'it is listed with what it holds' listed "s['name'] == 'big' and s['state'] == 'running' and s['gpus'][0]['used_bytes'] == 30 << 20 and s['gpus'][0]['fixed_bytes'] == 16 << 20 and s['gpus'][0]['limit_bytes'] == 100 << 20"
works 'and in words' 'running' share -l
until_holds 30 listed "s['iteration_ns'] >= 6000000 and s['iterations'] > 0"
holds 'how long its steps take is found out' listed "s['iteration_ns'] >= 6000000"
refuses 2 'its name is taken' "there is a share 'big' already" share --name big -- true
works 'suspended' 'big suspended: 0.01 GiB' share --suspend big
holds 'it holds nothing of the GPU but its context' listed "s['state'] == 'suspended' and s['gpus'][0]['used_bytes'] == 16 << 20 and s['gpus'][0]['host_bytes'] == 14 << 20"
works 'twice makes no difference' 'big suspended' share --suspend big
works 'resumed' 'big runs again: 0.01 GiB' share --resume big
holds 'it has its memory back' listed "s['state'] == 'running' and s['gpus'][0]['host_bytes'] == 0"
works 'limited while it runs' 'GiB in host memory' share --limit big --memory 20M
holds 'it is under its limit' listed "s['gpus'][0]['used_bytes'] == 18 << 20 and s['gpus'][0]['host_bytes'] == 12 << 20"
works 'suspended where it is over its limit' 'big suspended' share --suspend big
works 'and resumed' 'big runs again' share --resume big
works 'the limit taken away' '0.00 GiB in host memory' share --limit big --memory none
wait $shared_pid
[ $? -eq 0 ] && [ "$(hash_of long)" = "$(hash_of long-plain)" ] && [ ! -s long.err ]
said $? 'after all that it has computed the same, bit for bit'

# Measured, for as long as it takes.
"$SHAREWELL" share --name measured -- "$scratch/train" --steps 1000000 --memory 12M --step-us 6000 >measured 2>&1 &
shared_pid=$!
until_holds 60 listed "s['launches'] > 100"
# profiled <words of python about p, its profile, and f, its functions by name>
profiled() { "$SHAREWELL" share --profile measured --seconds 1 --json | python3 -c "import json, sys; p = json.load(sys.stdin)[0]; f = {x['name']: x for x in p['functions']}; sys.exit(not ($1))"; }
holds 'what it launches is measured' profiled "f['spin']['launches'] >= 1 and f['forward']['launches'] >= f['spin']['launches'] and f['spin']['time_ns'] >= 5900000 * f['spin']['launches']"
works 'and shown' 'backward_input' share --profile measured --seconds 1
echo 'sharewell-profile 1' >"$SHAREWELL_STATE/shares/.measured.profile.1"
processes() { "$SHAREWELL" share --profile measured --seconds 1 --json | python3 -c "import json, sys; print(len(json.load(sys.stdin)))"; }
holds 'without what an earlier one has left' test "$(processes)" = 1
works 'suspended' 'measured suspended' share --suspend measured
refuses 1 'it is not measured' 'measured was not measured' share --profile measured --seconds 1
echo 'sharewell-profile 1' >"$SHAREWELL_STATE/shares/.measured.profile.1"
kill -TERM $shared_pid
wait $shared_pid
holds 'nothing is left of it' sh -c '! ls -A "$SHAREWELL_STATE"/shares | grep measured'

# One whose context takes more than it is to have.
SHAREWELL_EMU='gpus=1;memory=512M;context=48M' SHAREWELL_EMU_STATE="$scratch/emu-large" "$SHAREWELL" share --name large -- "$scratch/train" --steps 1000000 --memory 12M --step-us 6000 >large 2>&1 &
shared_pid=$!
until_holds 60 listed "s['launches'] > 100"
works 'a limit that can be held is set without a word' '0.01 GiB in host memory' share --limit large --memory 50M
run share --limit large --memory 20M
[ "$status" -eq 0 ] && out_has '0.05 GiB on its GPUs' && err_has 'large cannot go below 48.0 MiB on its GPU: the driver keeps that there'
said $? 'with one below what cannot leave the GPU, what it cannot go below is said'
kill -TERM $shared_pid
wait $shared_pid

# One bound for the host memory of all programs of the machine.
compile load tests/e2e/gpu_load.c
"$scratch/load" --rounds 3 --memory 14M >load-plain
# both <words of python about s, the shares by name>
both() { "$SHAREWELL" share --list --json | python3 -c "import json, sys; s = {x['name']: x for x in json.load(sys.stdin)}; sys.exit(not ($1))"; }
"$SHAREWELL" share --name one --all-host-memory 20M -- "$scratch/load" --rounds 3 --memory 14M --end ended >one 2>&1 &
shared_pid=$!
until_holds 60 both "'one' in s"
"$SHAREWELL" share --name two -- "$scratch/load" --rounds 3 --memory 14M --end ended >two 2>&1 &
two_pid=$!
orphan=$two_pid
until_holds 60 both "all(s[n]['gpus'][0]['used_bytes'] == 30 << 20 for n in ('one', 'two'))"
works 'one of two programs is suspended' 'one suspended' share --suspend one
"$SHAREWELL" share --suspend two >suspend.out 2>&1 &
wish=$!
holds 'there is no host memory for the other, which says so' until_holds 60 both "s['two']['trouble'] == 'there is no host memory for its contents'"
holds 'and keeps its memory' both "s['two']['gpus'][0]['used_bytes'] == 30 << 20 and s['two']['gpus'][0]['host_bytes'] == 0"
works 'how much is taken is shown' 'of 0.02 GiB' share --list
works 'when the first is back' 'one runs again' share --resume one
wait $wish && grep -q 'two suspended: 0.01 GiB' suspend.out
said $? 'the other is suspended'
works 'and resumed' 'two runs again' share --resume two
touch ended
wait $shared_pid && wait $two_pid && cmp one load-plain && cmp two load-plain
said $? 'both have computed what they do alone'
refuses 2 'a bound that is none' "is not a size for --all-host-memory" share --all-host-memory 0 -- true

# One whose keeper was killed.
"$SHAREWELL" share --name orphan -- sh -c 'echo $$ >pid; exec sleep 60' &
shared_pid=$!
until_holds 30 test -s pid
orphan=$(cat pid)
kill -KILL $shared_pid
wait $shared_pid 2>/dev/null
kill "$orphan"
works 'a page that was left behind is not listed' '' share --list
holds 'and removed' test ! -e "$SHAREWELL_STATE/shares/orphan"
: >"$SHAREWELL_STATE/shares/broken"
works 'something else in the folder does no harm' 'NAME' share --list

# Wrong use.
for name in '' . .. .hidden a/b ../big 'a b' "$(printf '%065d' 0)"; do
	refuses 2 "'$name' is no name" 'cannot be the name of a share' share --suspend "$name"
done
refuses 2 'a share that is not there' "there is no share 'absent'" share --suspend absent
refuses 2 'nor to be resumed' "there is no share 'absent'" share --resume absent
refuses 2 'nor to be measured' "there is no share 'absent'" share --profile absent
refuses 2 'nor to be limited' "there is no share 'absent'" share --limit absent --memory 1G
refuses 2 'a time without a profile' '--seconds goes with --profile' share --list --seconds 3
refuses 2 'a limit while suspending' '--memory goes with a program to run and --limit, not with --suspend' share --suspend absent --memory 1G
refuses 2 'while listing' '--memory goes with a program to run and --limit, not with --list' share --list --memory 1G
refuses 2 'a share of time while resuming' '--compute goes with' share --resume absent --compute 30
refuses 2 'a name for what has one' '--name goes with a program to run, not with --limit' share --limit absent --name other --memory 1G
refuses 2 'host memory for what runs' '--host-memory goes with a program to run, not with --profile' share --profile absent --host-memory 1G
refuses 2 'JSON where there is none' '--json goes with --list and --profile, not with --suspend' share --suspend absent --json
refuses 2 'a limit without a size' '--limit needs --memory' share --limit absent
refuses 2 'a size that is none' "is not a size for --memory" share --memory much -- true
refuses 2 'of nothing' "is not a size for --memory" share --memory 0 -- true
refuses 2 'less than the driver needs' 'the driver alone needs 16.0 MiB' share --memory 15M -- true
refuses 2 'also while it runs' 'the driver alone needs 16.0 MiB' share --limit absent --memory 1M
refuses 2 'and of the host' "is not a size for --host-memory" share --host-memory -5 -- true
refuses 2 'nothing to do' 'no program to run' share
refuses 2 'two things at once' 'one thing at a time' share --list --suspend x
refuses 2 'a wish and a program' 'one thing at a time' share --suspend x -- true
cp "$SW_BUILD_DIR/libsharewell-gpu.so" "$scratch/a library.so"
export SHAREWELL_GPU_LIBRARY="$scratch/a library.so"
refuses 2 'a library that cannot be preloaded' 'its path has a space or a colon' share -- true
end
