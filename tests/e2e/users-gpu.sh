#!/bin/sh
# Jobs of two users on one GPU, on the emulated driver: whatever the one does to the files of the GPU runtime that it can reach, it harms its own job alone. Needs root, to be two users.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-emu.sh"
alice=65531 bob=65532
as() {
	user=$1
	shift
	timeout 60 setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
}
if [ "$(id -u)" -ne 0 ] || ! as $alice test -r "$SW_BUILD_DIR/emu/libcuda.so.1" 2>/dev/null; then
	echo '1..0 # SKIP needs root, to be two users that can read the emulated driver'
	exit 77
fi
emulate 1 512M
compile load tests/e2e/gpu_load.c
mkdir "$scratch/door" "$scratch/theirs" "$scratch/hers"
chmod 755 "$scratch" "$scratch/work" "$scratch/door"
chown $bob "$scratch/theirs" && chown $alice "$scratch/hers"
cp "$SW_SOURCE_DIR/tests/e2e/page_attack.py" "$scratch/attack.py"
cp "$SHAREWELL" "$scratch/sharewell" && chmod 755 "$scratch/sharewell" "$scratch/attack.py"
door="$scratch/door/controller.sock"
export SHAREWELL_CONTROLLER="unix:$door"

# A policy of a few lines: an opportunistic job goes beside a guaranteed one.
cat >beside.c <<'END_OF_C'
#include <sharewell/policy.h>
static sw_ns decide(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	for (const struct sw_job *job = sw_view_next_waiting(view, NULL), *next; job != NULL; job = next) {
		next = sw_view_next_waiting(view, job);
		const struct sw_job *with = job->job_class == SW_CLASS_OPPORTUNISTIC ? sw_view_next_running(view, NULL) : NULL;
		if (job->job_class != SW_CLASS_OPPORTUNISTIC)
			(void)sw_plan_run(plan, job, NULL);
		else if (with != NULL)
			(void)sw_plan_run(plan, job, SW_WISH(.where = sw_beside(with)));
	}
	return SW_TIME_NEVER;
}
static const struct sw_policy beside = {.abi = SW_POLICY_ABI, .name = "beside", .about = "opportunistic jobs beside guaranteed ones", .decide = decide};
SW_EXPORT_POLICY(beside);
END_OF_C
${CC:-cc} -shared -fPIC -I "$SW_SOURCE_DIR/include" -o beside.so beside.c || exit 1

large='--rounds 8 --memory 64M'
"$scratch/load" $large >right || exit 1
chmod 666 "$scratch"/emu.*
gpus=auto
up --all-users --state "$SHAREWELL_STATE" --socket "$door" --plugin ./beside.so
works 'a policy that shares GPUs is put in charge' 'beside' policy beside
agent=$(child agent)

# submit_as <user> <options...>: the number of the new job is $job.
submit_as() {
	user=$1
	shift
	job=$(as "$user" "$scratch/sharewell" submit --parsable -D / --env SHAREWELL_EMU="$SHAREWELL_EMU" --env SHAREWELL_EMU_STATE="$SHAREWELL_EMU_STATE" \
		--env LD_LIBRARY_PATH="$LD_LIBRARY_PATH" "$@")
}
uses() { [ "$(used_of_all)" = "$1" ]; }
attacked() { grep -qx "$1" "$scratch/theirs/attack.out"; }

# Hers has one process, and a second one that begins after the attack.
submit_as $alice -J high --preempt suspend --gpu-memory 200M -o "$scratch/hers/high" -- sh -c '
"$0/load" '"$large"' --kernels 2 --kernel-us 2000 --end "$0/hers/end" >"$0/hers/first" &
until [ -e "$0/hers/go" ]; do sleep 0.05; done
"$0/load" '"$large"' --kernels 2 --kernel-us 2000 --end "$0/hers/end" && wait $! && cat "$0/hers/first"' "$scratch"
high=$job
holds 'a guaranteed job has its memory' until_holds 60 uses 80
submit_as $bob -J low --class opportunistic --gpu-memory 100M -- sh -c '
"$0/load" --rounds 1000 --memory 32M --kernels 1 --kernel-us 1000 --end "$0/theirs/end" & exec python3 "$0/attack.py" "$0/theirs" '$alice "$scratch"
low=$job
holds "one of another user's gives way to it" until_holds 60 is_state "$low" R
holds 'and attacks' until_holds 120 attacked over
attacked locks-told
said $? 'it reads when the other works, and may lock that' theirs/attack.out
cp "$scratch/theirs/attack.out" "$scratch/out"
[ "$(grep -vxc 'over\|locks-told' "$scratch/out")" -eq 0 ]
said $? 'and can do nothing else with files that are not its own'
[ "$(stat -c %a /run/sharewell/gpu)" = 711 ] && [ "$(stat -c %u /run/sharewell/gpu)" = 0 ]
said $? 'the folder is as it was'

# All goes on: the second process has its place in the page, and both leave the GPU.
touch "$scratch/hers/go"
inside() { "$SHAREWELL" show --json "$high" | python3 -c "import json, sys; g = json.load(sys.stdin)['gpu'] or {}; sys.exit(g.get('memory_bytes', 0) < 160 << 20 or g['outside_processes'] != 0)"; }
holds 'the second process of the guaranteed job begins, and is in the runtime' until_holds 120 inside
touch "$scratch/theirs/attack.end" "$scratch/theirs/end"
run cancel "$low"
run wait "$low"
holds 'the other one is gone' until_holds 60 uses 160
works 'it is suspended' '' suspend "$high"
holds 'with all its processes: nothing of them but their contexts is on the GPU' until_holds 60 uses 32
works 'and resumed' '' resume "$high"
holds 'with all that it had' until_holds 60 uses 160
[ "$(child agent)" = "$agent" ]
said $? 'by the agent that was there all the time' up.out
touch "$scratch/hers/end"
ends 'it ends' "$high" 0
[ "$(sort -u "$scratch/hers/high")" = "$(sort -u right)" ]
said $? 'and has computed what it does alone' hers/high

# The next job of the attacker has a ledger again, and is suspended like any other.
rm -f "$scratch/theirs/end"
submit_as $bob -J next --preempt suspend --gpu-memory 100M -- "$scratch/load" --rounds 8 --memory 32M --kernels 1 --kernel-us 1000 --end "$scratch/theirs/end"
holds "the attacker's next job has its memory" until_holds 60 uses 48
works 'is suspended' '' suspend "$job"
holds 'and leaves the GPU' until_holds 60 uses 16
works 'resumed' '' resume "$job"
touch "$scratch/theirs/end"
ends 'and ends' "$job" 0
end
