#!/bin/sh
# Programs that share an emulated GPU by themselves: a guaranteed one is not disturbed, gets memory when it needs more, a share of time is kept, and those that do not fit take turns.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-live.sh"
. "$(dirname "$0")/lib-emu.sh"
emulate 1 512M
compile load tests/e2e/gpu_load.c

pids=''
trap 'kill $pids 2>/dev/null; finish' EXIT

# begin <name> <words of share...> -- <words of the load...>: runs in the background; its output is in the file <name>, its process in $pid.
begin() {
	begun=$1
	"$SHAREWELL" share --name "$@" >"$begun" 2>"$begun.err" &
	pid=$!
	pids="$pids $pid"
}
# ends_well <aim> <pid> <name> <file of the right result>
ends_well() {
	wait "$2"
	[ $? -eq 0 ] && cmp -s "$3" "$4" && [ ! -s "$3.err" ]
	said $? "$1" "work/$3" "work/$3.err"
}
# listed <words of python about the shares by name>: what --list says of them.
listed() { "$SHAREWELL" share --list --json | python3 -c "import json, sys; s = {x['name']: x for x in json.load(sys.stdin)}; sys.exit(not ($1))" 2>/dev/null; }
# becomes <aim> <words of python>: it will be so.
becomes() {
	held=1 patience=$(($(date +%s) + 120))
	while [ $held -ne 0 ] && [ "$(date +%s)" -lt $patience ]; do
		listed "$2"
		held=$?
	done
	[ $held -eq 0 ] || "$SHAREWELL" share --list --json >"$scratch/out" 2>"$scratch/err"
	said $held "$1"
}
load="$scratch/load"

# What each computes alone.
"$load" --rounds 8 --memory 32M >guaranteed.right
"$load" --rounds 6 --memory 72M >large.right
"$load" --rounds 12 --memory 128M --grow 128M --grow-at 3 >burst.right
"$load" --rounds 20 --memory 230M >opportunistic.right

# Time: beside a guaranteed program whose work leaves no gaps, an opportunistic one that always has some takes next to nothing.
begin low --class opportunistic -- "$load" --rounds 20 --memory 230M --kernels 4 --kernel-us 5000 --end low.end --log low.log
low=$pid
becomes 'an opportunistic program alone has all of the time' "s['low']['launches'] > 20 and s['low']['share_milli'] == 1000 and not s['low']['yields']"
holds 'its class is listed' listed "s['low']['class'] == 'opportunistic' and s['low']['throttle'] == 'yield'"
begin high -- "$load" --rounds 8 --memory 32M --kernels 100 --kernel-us 10000 --start high.start --log high.log
high=$pid
becomes 'beside a guaranteed one it works in its idle times' "s['low']['yields'] and s['low']['share_milli'] == 1000 and s['high']['class'] == 'guaranteed'"
works 'and is listed so' 'idle times' share --list
touch high.start
ends_well 'the guaranteed program computes the same' $high high guaranteed.right
cat >judge.py <<'END'
# GPU time of the one while the other had its rounds, against the other's: by their own logs.
high = [float(line.split()[1]) for line in open("high.log")]
low = [float(line.split()[1]) for line in open("low.log")]
inside = sum(1 for at in low if high[1] < at < high[-1])
ratio = inside * 4 * 5 / ((len(high) - 2) * 100 * 10)
print(f"the opportunistic one had {ratio:.3f} of the guaranteed one's GPU time")
raise SystemExit(ratio > 0.3)
END
holds 'it was hardly disturbed' python3 judge.py
sed 's/^/# /' "$scratch/held.out"
becomes 'afterwards the other has all of the time again' "not s['low']['yields'] and s['low']['gpus'][0]['host_bytes'] == 0"

# Memory: a guaranteed program that needs more than is free gets it from the opportunistic one.
begin burst -- "$load" --rounds 12 --memory 128M --grow 128M --grow-at 3 --kernels 1 --kernel-us 2000 --start burst.start --end burst.end
burst=$pid
becomes 'a guaranteed program beside it has all of its memory' "s['burst']['gpus'][0]['used_bytes'] >= 128 << 20 and s['burst']['gpus'][0]['host_bytes'] == 0"
touch burst.start
becomes 'it bursts, and has its memory on the GPU' "s['burst']['gpus'][0]['used_bytes'] >= 256 << 20 and s['burst']['gpus'][0]['host_bytes'] == 0"
holds 'of which the opportunistic one has made room' listed "s['low']['gpus'][0]['host_bytes'] > 0 and s['low']['gpus'][0]['used_bytes'] < 230 << 20 and s['low']['gpus'][0]['limit_bytes'] is not None"
touch burst.end
ends_well 'it computes the same' $burst burst burst.right
becomes 'and the opportunistic one gets its memory back' "s['low']['gpus'][0]['host_bytes'] == 0"

# What a user changes while it runs.
works 'a share of time set while it runs' 'GiB on its GPUs' share --limit low --compute 40
holds 'is listed' listed "s['low']['compute_milli'] == 400 and s['low']['share_milli'] == 400"
works 'it becomes guaranteed' 'GiB on its GPUs' share --limit low --class guaranteed --compute 100
becomes 'at the next look' "s['low']['class'] == 'guaranteed' and s['low']['share_milli'] == 1000 and s['low']['gpus'][0]['limit_bytes'] is None"
touch low.end
ends_well 'after all that it has computed the same' $low low opportunistic.right

# The other rules hold the opportunistic program back by a share. How much they let it have then depends on how steady the machine is.
for rule in antman tgs; do
	rm -f $rule.end
	begin $rule --class opportunistic --throttle $rule -- "$load" --rounds 1 --memory 16M --kernels 2 --kernel-us 2000 --end $rule.end
	first=$pid
	becomes "$rule: alone it has all of the time" "s['$rule']['launches'] > 5 and s['$rule']['share_milli'] == 1000"
	begin beside -- "$load" --rounds 1 --memory 16M --kernels 2 --kernel-us 2000 --end beside.end
	second=$pid
	becomes "$rule: beside a guaranteed one it is held back" "s['$rule']['share_milli'] < 1000 and not s['$rule']['yields'] and s['beside']['launches'] > 0"
	touch beside.end
	wait $second
	said $? "$rule: the guaranteed one ends well"
	becomes "$rule: then it has all of the time again" "s['$rule']['share_milli'] == 1000"
	touch $rule.end
	wait $first
	said $? "$rule: and so does it"
	rm -f beside.end
done

# Turns. On a smaller GPU: what is moved from and to it costs the machine real time.
everything=$SHAREWELL_EMU
export SHAREWELL_EMU='gpus=1;memory=128M;context=8M;launch_us=0;copy_latency_us=0' SHAREWELL_EMU_STATE="$scratch/small"
begin one --slice 4 -- "$load" --rounds 6 --memory 72M --kernels 1 --kernel-us 2000 --end turns.end
one=$pid
becomes 'one of two large programs' "s['one']['launches'] > 5"
begin two -- "$load" --rounds 6 --memory 72M --kernels 1 --kernel-us 2000 --end turns.end
two=$pid
for round in 1 2; do
	becomes "they take turns ($round): the first waits" "s['one']['state'] == 'waits' and s['two']['state'] == 'running' and s['two']['gpus'][0]['host_bytes'] == 0"
	becomes "and the second ($round)" "s['two']['state'] == 'waits' and s['one']['state'] == 'running' and s['one']['gpus'][0]['host_bytes'] == 0"
done
works 'one that is suspended by its user' 'suspended' share --suspend two
becomes 'takes no turn' "s['two']['state'] == 'suspended' and s['one']['state'] == 'running'"
works 'until it is resumed' 'two' share --resume two
touch turns.end
ends_well 'the first computes the same' $one one large.right
ends_well 'and so does the second' $two two large.right
# Not even a context of the second fits beside the first.
"$load" --rounds 6 --memory 116M >full.right
rm turns.end
begin one --slice 4 -- "$load" --rounds 6 --memory 116M --kernels 1 --kernel-us 2000 --end turns.end
one=$pid
becomes 'one that fills the GPU' "s['one']['launches'] > 5"
begin two -- "$load" --rounds 8 --memory 32M --kernels 1 --kernel-us 2000 --end turns.end
two=$pid
becomes 'makes room for another' "s['two']['launches'] > 5"
becomes 'and gets its turn again, but for what the other cannot give' "s['two']['state'] == 'waits' and s['one']['state'] == 'running' and s['one']['gpus'][0]['used_bytes'] > 64 << 20 and s['one']['gpus'][0]['host_bytes'] > 0"
touch turns.end
ends_well 'the one that fills the GPU computes the same' $one one full.right
ends_well 'and so does the other' $two two guaranteed.right
export SHAREWELL_EMU="$everything" SHAREWELL_EMU_STATE="$scratch/emu"

# The process that decides is killed.
begin leader -- "$load" --rounds 1 --memory 16M --end leader.end
leader=$pid
becomes 'one that decides for the others' "s['leader']['launches'] > 0"
begin follower -- "$load" --rounds 1 --memory 16M --end follower.end
follower=$pid
becomes 'one that does not' "s['follower']['launches'] > 0"
kill -KILL $leader
wait $leader 2>/dev/null
begin late --class opportunistic -- "$load" --rounds 1 --memory 16M --end follower.end
late=$pid
becomes 'another decides when it was killed' "s['late']['yields']"
touch leader.end follower.end
wait $late && wait $follower
said $? 'and all end well'

# A share of the GPU's time, by the GPU's own count.
cat >share.py <<'END'
import ctypes, sys, time
nvml, device, energy = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p(), ctypes.c_ulonglong()
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0

def busy_ms():
    """What the work of all processes so far took: the emulated energy, less that of an idle GPU."""
    now = time.monotonic_ns() // 1000000
    assert nvml.nvmlDeviceGetTotalEnergyConsumption(device, ctypes.byref(energy)) == 0
    return (energy.value - now * 60) / 500, now

wanted = int(sys.argv[1])
before, begun = busy_ms()
time.sleep(3)
after, ended = busy_ms()
got = 100 * (after - before) / (ended - begun)
print(f"{wanted} % wanted, {got:.1f} % taken")
raise SystemExit(not 1 < got < wanted + 6)
END
for percent in 20 50 80; do
	rm -f paced.end
	begin paced --compute $percent -- "$load" --rounds 1 --kernels 4 --kernel-us 2000 --end paced.end
	becomes "$percent %: the program runs" "s['paced']['launches'] > 30"
	holds "$percent % of the time is not passed" python3 share.py $percent
	sed 's/^/# /' "$scratch/held.out"
	touch paced.end
	wait $pid
	said $? "$percent %: it ends well"
done

# Wrong use.
refuses 2 'no class' 'guaranteed' share --class best -- true
refuses 2 'no rule' 'antman' share --throttle hope -- true
refuses 2 'too much time' 'compute' share --compute 101 -- true
refuses 2 'none at all' 'compute' share --compute 0 -- true
refuses 2 'nothing to change' '--limit needs --memory, --compute' share --limit absent
end
