/* Why a job waits, in one sentence: what the engine knows first, then what the policy says. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "core/state.h"

/* Those that take jobs, of nodes that are up and do so too. */
static uint32_t open_gpus(const struct sw_engine *engine)
{
	const struct sw_ledger *ledger = &engine->ledger;
	uint32_t gpus = ledger->gpus_up;
	for (uint32_t n = 0; ledger->nodes_closed + ledger->gpus_shut > 0 && n < engine->topology->node_count; n++)
		if (ledger->nodes[n].up)
			gpus -= ledger->nodes[n].closed ? engine->topology->nodes[n].gpus
							: (uint32_t)__builtin_popcountll(ledger->nodes[n].shut);
	return gpus;
}

/* GPUs that are free but for a hold of another job. */
static uint32_t free_but_held(const struct sw_engine *engine, const struct sw_hold_row *row)
{
	const struct sw_ledger *ledger = &engine->ledger;
	uint32_t gpus = 0;
	for (uint32_t p = row->in_force ? row->parts : SW_NO_PART; p != SW_NO_PART; p = ledger->parts[p].next)
		for (uint64_t rest = ledger->parts[p].mask; rest != 0; rest &= rest - 1)
			gpus += ledger->gpus[ledger->nodes[ledger->parts[p].node].first_gpu + (uint32_t)__builtin_ctzll(rest)].residents ==
				0;
	return gpus;
}

/* The hold of others with the most of such GPUs, where the job would have enough with all that are
 * held. NULL: that is not why it waits. */
static const struct sw_hold_row *hold_in_the_way(const struct sw_engine *engine, const struct sw_job *job, uint32_t *ret_gpus)
{
	const struct sw_hold_row *most = NULL;
	uint32_t held = 0;
	for (size_t h = 0; h < engine->holds.count; h++) {
		const struct sw_hold_row *row = &engine->holds.items[h];
		uint32_t gpus = free_but_held(engine, row);
		held += gpus;
		if (row->job == job->id.v || gpus == 0 || (most != NULL && gpus <= *ret_gpus))
			continue;
		most = row;
		*ret_gpus = gpus;
	}
	return job->gpus > engine->ledger.gpus_free && job->gpus <= engine->ledger.gpus_free + held ? most : NULL;
}

static void explain_hold(const struct sw_engine *engine, const struct sw_job *job, const struct sw_hold_row *hold, uint32_t gpus,
			 char *text, size_t size)
{
	sw_ns left_s = hold->to == SW_TIME_NEVER ? 0 : (hold->to - engine->now + SW_NS_PER_S - 1) / SW_NS_PER_S;
	int used = snprintf(text, size, "it needs %u GPU%s and %u %s free; %u more %s held for job %u", SW_COUNTED(job->gpus),
			    SW_COUNTED_ARE(engine->ledger.gpus_free), SW_COUNTED_ARE(gpus), hold->job);
	if (used < 0 || (size_t)used >= size)
		return;
	if (hold->to == SW_TIME_NEVER)
		snprintf(text + used, size - (size_t)used, " until that starts");
	else
		snprintf(text + used, size - (size_t)used, " for %lld s at most", (long long)left_s);
}

/* A quota is not all there is to say: a policy may start jobs beyond it. */
static void explain_quota(struct sw_engine *engine, const struct sw_job *job, char *text, size_t size)
{
	int used = snprintf(text, size, "its tenant holds %u of a quota of %u GPU%s and the job needs %u more",
			    sw_view_tenant_held(&engine->view, job->tenant), SW_COUNTED(sw_view_tenant_quota(&engine->view, job->tenant)),
			    job->gpus);
	if (engine->policy->explain == NULL || used < 0 || (size_t)used + 3 > size)
		return;
	memcpy(text + used, "; ", 3);
	engine->policy->explain(&engine->view, job, text + used + 2, size - (size_t)used - 2);
}

void sw_engine_explain(struct sw_engine *engine, struct sw_job_id id, char *text, size_t size)
{
	const struct sw_job *job = sw_engine_job(engine, id);
	const struct sw_hold_row *hold;
	uint32_t held = 0;
	if (size == 0)
		return;
	if (job == NULL)
		snprintf(text, size, "there is no job %u", id.v);
	else if (job->state == SW_JOB_HELD)
		snprintf(text, size, "it is held");
	else if (!sw_job_is_waiting(job))
		snprintf(text, size, "it does not wait");
	else if (!sw_engine_quota_allows(engine, job, job->gpus))
		explain_quota(engine, job, text, size);
	else if (job->gpus > engine->ledger.gpus_up && engine->gpus_off > 0)
		snprintf(text, size, "it needs %u GPU%s and only %u %s up; %u more %s on nodes that are switched off",
			 SW_COUNTED(job->gpus), SW_COUNTED_ARE(engine->ledger.gpus_up), SW_COUNTED_ARE(engine->gpus_off));
	else if (job->gpus > engine->ledger.gpus_up)
		snprintf(text, size, "it needs %u GPU%s and only %u %s up", SW_COUNTED(job->gpus), SW_COUNTED_ARE(engine->ledger.gpus_up));
	else if (job->gpus > open_gpus(engine))
		snprintf(text, size, "it needs %u GPU%s and only %u %s open to jobs", SW_COUNTED(job->gpus),
			 SW_COUNTED_ARE(open_gpus(engine)));
	else if ((hold = hold_in_the_way(engine, job, &held)) != NULL)
		explain_hold(engine, job, hold, held, text, size);
	else if (engine->policy->explain != NULL)
		engine->policy->explain(&engine->view, job, text, size);
	else if (job->gpus > engine->ledger.gpus_free)
		snprintf(text, size, "it needs %u GPU%s and %u %s free", SW_COUNTED(job->gpus), SW_COUNTED_ARE(engine->ledger.gpus_free));
	else
		snprintf(text, size, "it needs %u GPU%s; %u %s free, but not where placement '%s' wants them, or others are ahead",
			 SW_COUNTED(job->gpus), SW_COUNTED_ARE(engine->ledger.gpus_free), engine->config.placement->name);
}
