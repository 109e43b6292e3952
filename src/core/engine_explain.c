/* Why a job waits, in one sentence: what the engine knows first, then what the policy says. */
#include <stdio.h>
#include <string.h>

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
	else if (job->gpus > engine->ledger.gpus_up)
		snprintf(text, size, "it needs %u GPU%s and only %u %s up", SW_COUNTED(job->gpus), SW_COUNTED_ARE(engine->ledger.gpus_up));
	else if (job->gpus > open_gpus(engine))
		snprintf(text, size, "it needs %u GPU%s and only %u %s open to jobs", SW_COUNTED(job->gpus),
			 SW_COUNTED_ARE(open_gpus(engine)));
	else if (engine->policy->explain != NULL)
		engine->policy->explain(&engine->view, job, text, size);
	else if (job->gpus > engine->ledger.gpus_free)
		snprintf(text, size, "it needs %u GPU%s and %u %s free", SW_COUNTED(job->gpus), SW_COUNTED_ARE(engine->ledger.gpus_free));
	else
		snprintf(text, size, "it needs %u GPU%s; %u %s free, but not where placement '%s' wants them, or others are ahead",
			 SW_COUNTED(job->gpus), SW_COUNTED_ARE(engine->ledger.gpus_free), engine->config.placement->name);
}
