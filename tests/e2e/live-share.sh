#!/bin/sh
# Jobs of a live cluster that share a GPU, on the emulated driver: the guaranteed one has its time and its memory, also more than it asked for; the opportunistic one makes room and gets it back,
# whichever process is killed meanwhile; and both compute the same as alone.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-emu.sh"
emulate 1 512M
load="$scratch/load"
compile load tests/e2e/gpu_load.c

# A policy of a few lines: guaranteed jobs have GPUs of their own, an opportunistic one goes beside one that runs.
cat >beside.c <<'END_OF_C'
#include <sharewell/policy.h>
static sw_ns decide(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	for (const struct sw_job *job = sw_view_next_waiting(view, NULL), *next; job != NULL; job = next) {
		next = sw_view_next_waiting(view, job);
		if (job->job_class != SW_CLASS_OPPORTUNISTIC) {
			(void)sw_plan_run(plan, job, NULL);
			continue;
		}
		for (const struct sw_job *with = sw_view_next_running(view, NULL); with != NULL; with = sw_view_next_running(view, with))
			if (with->job_class == SW_CLASS_GUARANTEED && with->gpus_held == job->gpus &&
			    sw_plan_run(plan, job, SW_WISH(.where = sw_beside(with))) == SW_YES)
				break;
	}
	return SW_TIME_NEVER;
}
static const struct sw_policy beside = {.abi = SW_POLICY_ABI, .name = "beside", .about = "opportunistic jobs beside guaranteed ones", .decide = decide};
SW_EXPORT_POLICY(beside);
END_OF_C
${CC:-cc} -shared -fPIC -I "$SW_SOURCE_DIR/include" -o beside.so beside.c || exit 1

# so <words of python about h and l, what the cluster knows of the two jobs on their GPU: bytes in MiB>
so() {
	{ "$SHAREWELL" show --json "$high" && "$SHAREWELL" show --json "$low"; } | python3 -c "
import json, sys
h, l = ({name: (value or 0) >> 20 if name.endswith('_bytes') else value for name, value in (json.loads(line)['gpu'] or {}).items()} for line in sys.stdin)
sys.exit(not ($1))"
}
# becomes <aim> <words of python>
becomes() {
	until_holds 120 so "$2"
	held=$?
	[ $held -eq 0 ] || { "$SHAREWELL" show --json "$high" && "$SHAREWELL" show --json "$low"; } | sed 's/"request".*//' >"$scratch/out"
	said $held "$1"
}

# What each computes alone. The guaranteed one is two processes, of which the second bursts: it takes half of what its job asked for on top.
large='--rounds 8 --memory 128M' burst='--rounds 4 --grow 80M --grow-at 0' filler='--rounds 20 --memory 320M'
"$load" $burst >high.right && "$load" $large >>high.right && "$load" $filler >low.right || exit 1
cat >high.sh <<END_OF_SCRIPT
"$load" $large --kernels 5 --kernel-us 4000 --end "$scratch/high.end" >"$scratch/large" &
"$load" $burst --kernels 1 --kernel-us 1000 --start "$scratch/burst.start" --end "$scratch/burst.end" && wait \$! && cat "$scratch/large"
END_OF_SCRIPT

gpus=auto
up --plugin ./beside.so
works 'a policy that shares GPUs is put in charge' 'beside' policy beside
submit_here -J high --gpu-memory 160M -o "$scratch/high" -- sh high.sh
high=$job
holds 'a guaranteed job runs' until_holds 60 is_state "$high" R
submit_here -J low --class opportunistic --gpu-memory 350M -o "$scratch/low" -- "$load" $filler --kernels 4 --kernel-us 2000 --end "$scratch/low.end"
low=$job
becomes 'an opportunistic one runs beside it, and both have their memory' \
	"h['memory_bytes'] >= 160 and l['memory_bytes'] >= 336 and h['host_bytes'] == l['host_bytes'] == 0 and l['limit_bytes'] == 350"
works 'why says which job it shares with' "with job $high: no profile: not predicted" why "$low"
becomes 'it gives way to the guaranteed one, and works when it may' "l['yields'] and l['compute'] == 100 and not h['yields'] and h['compute'] == 100"
works 'as show tells' 'GPU time    while guaranteed jobs on its GPUs do not work' show "$low"
works 'its user limits its time' '50 % of each GPU' limit "$low" --compute 50
becomes 'to which it is kept' "l['yields'] and l['compute'] == 50"
works 'and lifts that' 'all that it got' limit "$low" --compute none
becomes 'so that it may do as before' "l['yields'] and l['compute'] == 100"

# Memory.
touch "$scratch/burst.start"
becomes 'the guaranteed job needs half as much again, and has it on the GPU' "h['memory_bytes'] >= 240 and h['host_bytes'] == 0 and h['limit_bytes'] == 240"
becomes 'for which the opportunistic one has made room' "l['limit_bytes'] == 272 and l['memory_bytes'] <= 272 and l['host_bytes'] >= 64"

# Whichever process dies.
kill -KILL "$(child agent)"
holds 'the agent is killed, and a new one comes' until_holds 60 sh -c '[ -n "$(pgrep -P "$0" -f "sharewell agent")" ]' "$up_pid"
agent_since=$(date -u -d '1 second' +%Y-%m-%dT%H:%M:%S)
becomes 'it finds both as they were' \
	"h['sampled_at'] > '$agent_since' and h['host_bytes'] == 0 and h['limit_bytes'] == 240 and l['limit_bytes'] == 272 and l['yields'] and l['compute'] == 100"
kill "$up_pid" && wait "$up_pid"
up --plugin ./beside.so --throttle antman
becomes 'a cluster with another rule holds the opportunistic job back by a share' "not l['yields'] and l['compute'] < 100"
becomes 'and keeps to the memory' "h['host_bytes'] == 0 and h['limit_bytes'] == 240 and l['limit_bytes'] == 272"

touch "$scratch/burst.end"
becomes 'the burst ends, and the opportunistic job has its memory back' "h['limit_bytes'] == 160 and l['limit_bytes'] == 350 and l['host_bytes'] == 0"
touch "$scratch/high.end"
ends 'the guaranteed job ends' "$high" 0
cmp -s "$scratch/high" high.right
said $? 'and has computed what it does alone' high
becomes 'the other has all of the time' "l['compute'] == 100 and not l['yields']"
touch "$scratch/low.end"
ends 'and ends' "$low" 0
cmp -s "$scratch/low" low.right
said $? 'with the right result too' low
end
