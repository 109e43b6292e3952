/* How runs are set up. The configuration of a wish holds for one run, and the job's own CPUs and
 * host memory count again once that is over.
 *
 * Invariant: while no decision is made, a job that neither runs nor stands has none.
 */
#include "core/state.h"

bool sw_config_is_sensible(const struct sw_config *config)
{
	return config->batch <= SW_CONFIG_BATCH_MOST && config->accumulation <= SW_CONFIG_MOST && config->workers <= SW_CONFIG_MOST &&
	       config->servers <= SW_CONFIG_MOST && config->cpus <= SW_CONFIG_CPUS_MOST &&
	       config->host_memory_bytes <= SW_CONFIG_MEMORY_MOST;
}

bool sw_config_is_same(const struct sw_config *a, const struct sw_config *b)
{
	return a->batch == b->batch && a->accumulation == b->accumulation && a->workers == b->workers && a->servers == b->servers &&
	       a->cpus == b->cpus && a->host_memory_bytes == b->host_memory_bytes;
}

struct sw_config sw_config_with(struct sw_config config, const struct sw_config *wished)
{
	config.batch = wished->batch != 0 ? wished->batch : config.batch;
	config.accumulation = wished->accumulation != 0 ? wished->accumulation : config.accumulation;
	config.workers = wished->workers != 0 ? wished->workers : config.workers;
	config.servers = wished->servers != 0 ? wished->servers : config.servers;
	config.cpus = wished->cpus != 0 ? wished->cpus : config.cpus;
	config.host_memory_bytes = wished->host_memory_bytes != 0 ? wished->host_memory_bytes : config.host_memory_bytes;
	return config;
}

void sw_config_put(struct sw_core_job *job, const struct sw_config *config)
{
	job->config = *config;
	job->seen.cpus = config->cpus != 0 ? config->cpus : job->asked_cpus;
	job->seen.host_memory_bytes = config->host_memory_bytes != 0 ? config->host_memory_bytes : job->asked_host_bytes;
}

void sw_config_drop(struct sw_core_job *job)
{
	static const struct sw_config own = {0};
	if (job->stands == SW_NO_PART)
		sw_config_put(job, &own);
}

uint32_t sw_config_parts(struct sw_engine *engine, const struct sw_core_job *job, uint32_t parts)
{
	struct sw_spot spot;
	sw_spot_begin(&spot, &engine->ledger, sw_share_of(&job->seen));
	for (uint32_t p = parts; p != SW_NO_PART; p = engine->ledger.parts[p].next) {
		struct sw_part part = engine->ledger.parts[p];
		uint32_t gpus = (uint32_t)__builtin_popcountll(part.mask);
		/* On GPUs that a policy named nothing is counted beside them. */
		if (part.cpus != 0 && job->config.cpus != 0)
			part.cpus = gpus * job->config.cpus;
		if (part.memory_bytes != 0 && job->config.host_memory_bytes != 0)
			part.memory_bytes = gpus * job->config.host_memory_bytes;
		if (!sw_spot_put(&spot, &part)) {
			sw_spot_discard(&spot);
			return SW_NO_PART;
		}
	}
	return spot.head;
}

const struct sw_config *sw_job_config(const struct sw_view *view, const struct sw_job *job)
{
	static const struct sw_config none = {0};
	const struct sw_core_job *own = sw_engine_own(view->engine, job);
	return own != NULL ? &own->config : &none;
}

struct sw_config sw_engine_job_config(const struct sw_engine *engine, struct sw_job_id id)
{
	return sw_engine_knows(engine, id.v) ? engine->jobs.items[id.v].config : (struct sw_config){0};
}
