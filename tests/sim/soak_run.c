/* One simulation of the soak, and what must be true of its outcome whatever the policy did. */
#include <assert.h>
#include <string.h>

#include "policy/registry.h"
#include "sim/simulator.h"
#include "soak.h"

static const struct sw_profiles *profiles(void)
{
	static struct sw_profiles *loaded; /* for the life of the process */
	if (loaded == NULL && sw_profiles_load_default(&loaded, NULL) < 0)
		assert(false);
	return loaded;
}

/* ---- what must be true of one job ---- */

/* Nothing in this world makes a job faster or slower than its trace says, or takes work from it. */
static bool keeps_time(const struct sw_world *world)
{
	return world->start_ns == 0 && world->restart_ns == 0 && !world->placement_slowdown && !world->sharing_slowdown &&
	       !world->event_overhead && !world->work_from_iterations && world->node_mtbf_ns == 0 && world->job_failure_ppm == 0 &&
	       world->split_milli == 0;
}

static int check_times(const struct sw_outcome *outcome, struct sw_err *err)
{
	bool ran = outcome->start_ns != SW_TIME_NEVER;
	if (outcome->run_ns < 0 || outcome->wait_ns < 0)
		return sw_err_set(err, SW_EBUG, "job %lld ran %lld ns and waited %lld ns", (long long)outcome->id,
				  (long long)outcome->run_ns, (long long)outcome->wait_ns);
	if (outcome->state == SW_OUTCOME_REFUSED)
		return ran ? sw_err_set(err, SW_EBUG, "job %lld was refused and ran", (long long)outcome->id) : 0;
	if (!ran || outcome->start_ns < outcome->submit_ns || outcome->end_ns < outcome->start_ns)
		return sw_err_set(err, SW_EBUG, "job %lld was submitted at %lld, started at %lld and ended at %lld", (long long)outcome->id,
				  (long long)outcome->submit_ns, (long long)outcome->start_ns, (long long)outcome->end_ns);
	if (outcome->run_ns + outcome->wait_ns != outcome->end_ns - outcome->submit_ns)
		return sw_err_set(err, SW_EBUG, "job %lld ran %lld ns and waited %lld ns, which is not its life", (long long)outcome->id,
				  (long long)outcome->run_ns, (long long)outcome->wait_ns);
	return 0;
}

/* A job that finished has done its work: exactly, where nothing disturbs it; at least, where
 * things only get slower. */
static int check_work(const struct sw_soak_case *drawn, const struct sw_trace_job *job, const struct sw_outcome *outcome,
		      struct sw_err *err)
{
	const struct sw_world *world = drawn->world;
	if (outcome->state != SW_OUTCOME_FINISHED || world->work_from_iterations || job->duration_ns == 0)
		return 0;
	bool rigid = job->min_gpus == job->max_gpus;
	bool exact =
		rigid && keeps_time(world) && world->preempt == SW_PREEMPT_FREE && (outcome->migrations == 0 || world->replace_is_free);
	/* An elastic job is faster at most by its GPUs; speed is counted in thousandths. */
	__int128 least = (__int128)job->duration_ns * job->gpus / job->max_gpus * 997 / 1000 - 1000;
	if (world->placement_slowdown && !rigid)
		least = 0;
	if (exact ? outcome->run_ns != job->duration_ns : outcome->run_ns < (rigid ? job->duration_ns : least))
		return sw_err_set(err, SW_EBUG, "job %lld is %lld ns of work and finished after %lld ns", (long long)outcome->id,
				  (long long)job->duration_ns, (long long)outcome->run_ns);
	return 0;
}

static int check_state(const struct sw_soak_case *drawn, const struct sw_policy *policy, const struct sw_trace_job *job,
		       const struct sw_outcome *outcome, struct sw_err *err)
{
	if (outcome->state == SW_OUTCOME_UNFINISHED)
		return sw_err_set(err, SW_EBUG, "job %lld never ended", (long long)outcome->id);
	if (outcome->state == SW_OUTCOME_FAILED && drawn->world->job_failure_ppm == 0)
		return sw_err_set(err, SW_EBUG, "job %lld failed in a world without failures", (long long)outcome->id);
	if (outcome->state != SW_OUTCOME_REFUSED && job->gpus > drawn->topology->gpu_count)
		return sw_err_set(err, SW_EBUG, "job %lld ended well on a cluster too small for it", (long long)outcome->id);
	/* Where only the number of GPUs counts and the policy admits all jobs, only that can be a
	 * reason to refuse. */
	if (outcome->state == SW_OUTCOME_REFUSED && job->gpus <= drawn->topology->gpu_count && drawn->placement->counts_only &&
	    !drawn->world->sharing_slowdown && policy->admit == NULL)
		return sw_err_set(err, SW_EBUG, "job %lld was refused for no reason", (long long)outcome->id);
	return 0;
}

/* ---- what must be true of all of them ---- */

static bool breaks(const struct sw_world *world)
{
	return world->node_mtbf_ns > 0 || world->job_failure_ppm > 0;
}

static int check_fifo(const struct sw_soak_case *drawn, const struct sw_policy *policy, const struct sw_result *result, struct sw_err *err)
{
	sw_ns latest = 0;
	if ((policy == &sw_policy_fifo || policy == &sw_policy_fjf) && result->summary.preemptions > 0)
		return sw_err_set(err, SW_EBUG, "%s preempted", policy->name);
	for (size_t j = 0; policy == &sw_policy_fifo && !breaks(drawn->world) && j < result->outcomes.count; j++) {
		const struct sw_outcome *outcome = &result->outcomes.items[j];
		if (outcome->state == SW_OUTCOME_REFUSED)
			continue;
		if (outcome->start_ns < latest)
			return sw_err_set(err, SW_EBUG, "job %lld overtook another under fifo", (long long)outcome->id);
		latest = outcome->start_ns;
	}
	return 0;
}

static int check_totals(const struct sw_soak_case *drawn, const struct sw_policy *policy, const struct sw_result *result,
			struct sw_err *err)
{
	const struct sw_summary *summary = &result->summary;
	__int128 used = 0;
	int64_t last = 0;
	for (size_t j = 0; j < result->outcomes.count; j++) {
		const struct sw_outcome *outcome = &result->outcomes.items[j];
		used += (__int128)outcome->run_ns * outcome->gpus;
		if (outcome->state != SW_OUTCOME_REFUSED && outcome->end_ns > last)
			last = outcome->end_ns;
	}
	/* Policies that are an order do not resize jobs or let them share. */
	if (policy->decide == NULL && used > (__int128)last * drawn->topology->gpu_count)
		return sw_err_set(err, SW_EBUG, "jobs used more GPU time than there was");
	if (summary->finished + summary->failed + summary->refused != result->outcomes.count)
		return sw_err_set(err, SW_EBUG, "%llu finished, %llu failed and %llu refused jobs are not all %zu",
				  (unsigned long long)summary->finished, (unsigned long long)summary->failed,
				  (unsigned long long)summary->refused, result->outcomes.count);
	if (policy != &sw_policy_chaos && result->notes[0] != '\0')
		return sw_err_set(err, SW_EBUG, "%s", result->notes);
	return check_fifo(drawn, policy, result, err);
}

static int judge(const struct sw_soak_case *drawn, const struct sw_policy *policy, const struct sw_result *result, struct sw_err *err)
{
	for (size_t j = 0; j < result->outcomes.count; j++) {
		const struct sw_trace_job *job = &drawn->trace->jobs.items[j];
		const struct sw_outcome *outcome = &result->outcomes.items[j];
		int r = check_state(drawn, policy, job, outcome, err);
		r = r < 0 ? r : check_times(outcome, err);
		r = r < 0 ? r : check_work(drawn, job, outcome, err);
		if (r < 0)
			return r;
	}
	return check_totals(drawn, policy, result, err);
}

/* Twice the same: nothing may depend on addresses, leftovers, whether it is looked at, or whether
 * the engine was saved and loaded on the way. */
static int compare(const struct sw_result *a, const struct sw_result *b, struct sw_err *err)
{
	if (a->log_hash != b->log_hash || a->command_hash != b->command_hash || a->events != b->events || a->decisions != b->decisions)
		return sw_err_set(err, SW_EBUG, "the same seed gave log %016llx and then %016llx", (unsigned long long)a->log_hash,
				  (unsigned long long)b->log_hash);
	for (size_t j = 0; j < a->outcomes.count; j++)
		if (a->outcomes.items[j].end_ns != b->outcomes.items[j].end_ns ||
		    a->outcomes.items[j].run_ns != b->outcomes.items[j].run_ns)
			return sw_err_set(err, SW_EBUG, "the same seed ended job %lld at another time", (long long)a->outcomes.items[j].id);
	return 0;
}

int sw_soak_simulate(uint64_t seed, const struct sw_policy *policy, const atomic_bool *stop, struct sw_err *err)
{
	struct sw_soak_case drawn;
	struct sw_result *first = NULL, *again = NULL;
	sw_soak_draw(seed, policy, &drawn);
	struct sw_sim_config config = {
		.trace = drawn.trace,
		.topology = drawn.topology,
		.profiles = profiles(),
		.world = drawn.world,
		.policy = policy,
		.params = drawn.params,
		.placement = drawn.placement,
		.seed = seed,
		.cluster = "soak",
		.validate = true,
		.stop = stop,
	};
	int r = sw_simulate(&config, &first, err);
	if (r == 0)
		r = judge(&drawn, policy, first, err);
	config.validate = false;
	config.reload_milli = 100;
	if (r == 0)
		r = sw_simulate(&config, &again, err);
	if (r == 0)
		r = compare(first, again, err);
	if (first != NULL)
		sw_result_free(first);
	if (again != NULL)
		sw_result_free(again);
	sw_soak_release(&drawn);
	return r;
}
