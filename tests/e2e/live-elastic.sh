#!/bin/sh
# Elastic jobs under a policy of one's own: they shrink for others, grow again, and see how many GPUs they have.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
cc=${CC:-cc}

# A job that waits gets what is free; if that is too little, elastic jobs shrink to half; what no job wants goes to those that can grow.
cat >even.c <<'END'
#include <sharewell/policy.h>

static bool squeeze(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	for (const struct sw_job *job = sw_view_next_running(view, NULL); job != NULL; job = sw_view_next_running(view, job))
		if (job->gpus_held / 2 >= job->min_gpus && sw_plan_run(plan, job, SW_WISH(.gpus = job->gpus_held / 2)) == SW_YES)
			return true;
	return false;
}

static sw_ns decide(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct sw_job *job, *next;
	for (job = sw_view_next_waiting(view, NULL); job != NULL; job = next) {
		next = sw_view_next_waiting(view, job);
		if (sw_view_gpus_free(view) < job->min_gpus)
			squeeze(plan);
		uint32_t free = sw_view_gpus_free(view);
		if (free >= job->min_gpus)
			(void)sw_plan_run(plan, job, SW_WISH(.gpus = free < job->max_gpus ? free : job->max_gpus));
	}
	for (job = sw_view_next_running(view, NULL); job != NULL && sw_view_waiting(view) == 0; job = sw_view_next_running(view, job)) {
		uint32_t more = job->gpus_held + sw_view_gpus_free(view);
		(void)sw_plan_run(plan, job, SW_WISH(.gpus = more < job->max_gpus ? more : job->max_gpus));
	}
	return SW_TIME_NEVER;
}

static const struct sw_policy even = {.abi = SW_POLICY_ABI, .name = "even", .about = "halves and grows", .decide = decide};
SW_EXPORT_POLICY(even);
END
$cc -shared -fPIC -Wall -Wextra -Werror -I"$SW_SOURCE_DIR/include" -o even.so even.c || exit 1
sed 's/"even", .about/"las", .about/' even.c >las.c
$cc -shared -fPIC -I"$SW_SOURCE_DIR/include" -o las.so las.c || exit 1
refuses 2 'a policy with the name of a built-in one is refused' 'its name is that of a policy that is built in' controller --port none --plugin ./las.so

cat >"$scratch/work.sh" <<'END'
#!/bin/sh
trap 'exit 0' TERM
echo "$SHAREWELL_EPOCH: $SHAREWELL_GPUS $(echo "$CUDA_VISIBLE_DEVICES" | tr , '\n' | wc -l)" >>"$1"
while [ ! -e "$1.end" ]; do sleep 0.02; done
END
chmod +x "$scratch/work.sh"
# sees <file> <line>: the last start of the job wrote this.
sees() { [ "$(tail -n 1 "$scratch/$1" 2>/dev/null)" = "$2" ]; }

up --plugin ./even.so
works 'it is listed with the others' 'halves and grows' policy
works 'and put in charge' 'In charge: even' policy even
submit -J elastic -G 1-4 --preempt requeue -- "$scratch/work.sh" "$scratch/a"
elastic=$job
holds 'an elastic job starts on all GPUs, and sees them' until_holds 20 sees a '1: 4 4'
submit -J rigid -G 2 -- "$scratch/work.sh" "$scratch/b"
rigid=$job
holds 'for another it shrinks: it is started anew on half of them' until_holds 20 sees a '2: 2 2'
holds 'and the other has the rest' until_holds 20 sees b '1: 2 2'
works 'both run' ' R ' ps --noheader -j "$elastic"
touch "$scratch/b.end"
ends 'the other ends' "$rigid" 0
holds 'the elastic one grows again' until_holds 20 sees a '3: 4 4'
kill -KILL "$(child controller)"
holds 'after a crash of the controller it still runs' until_holds 40 is_state "$elastic" R
touch "$scratch/a.end"
ends 'and ends once' "$elastic" 0
[ "$(wc -l <"$scratch/a")" -eq 3 ]
said $? 'having started three times in all' work/none
kill "$up_pid" && wait "$up_pid"
up_pid=''
refuses 2 'without the plugin the controller says what it lacks' 'controller with --plugin' controller --port none
end
