/* What a soak runs on: small, so that thousands fit into minutes, and as
 * different as the SDK allows. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "placement/registry.h"
#include "policy/registry.h"
#include "soak.h"

#define GIB (UINT64_C(1) << 30)
#define NODES_MAX 10u
#define PICK(rng, ...) pick((rng), (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

uint64_t sw_soak_between(struct sw_rng *rng, uint64_t low, uint64_t high)
{
	return low + sw_rng_below(rng, high - low + 1);
}

bool sw_soak_chance(struct sw_rng *rng, uint32_t percent)
{
	return sw_rng_below(rng, 100) < percent;
}

static uint64_t pick(struct sw_rng *rng, const uint64_t *values, size_t count)
{
	return values[sw_rng_below(rng, count)];
}

/* Each thing that is drawn has its own stream: a change to one does not change all others. */
static struct sw_rng stream(uint64_t seed, uint64_t number)
{
	struct sw_rng rng;
	sw_rng_seed(&rng, seed * 16 + number);
	return rng;
}

/* ---- the cluster ---- */

static struct sw_topology_node draw_node(struct sw_rng *rng)
{
	return (struct sw_topology_node){
		.gpus = (uint32_t)PICK(rng, 1, 2, 2, 4, 4, 8, 8, 3, 16),
		.link_group = (uint32_t)PICK(rng, 0, 0, 1, 2, 4),
		.cpus = (uint32_t)PICK(rng, 8, 32, 128, 128),
		.gpu_type = (uint32_t)sw_rng_below(rng, 3),
		.memory_bytes = PICK(rng, 32, 256, 1024) * GIB,
		.gpu_memory_bytes = PICK(rng, 16, 40, 80, 80) * GIB,
	};
}

struct sw_topology *sw_soak_topology(struct sw_rng *rng)
{
	struct sw_topology_node nodes[NODES_MAX];
	uint32_t count = (uint32_t)sw_soak_between(rng, 1, NODES_MAX), rack = 0;
	bool alike = sw_soak_chance(rng, 50), racks = sw_soak_chance(rng, 50);
	struct sw_topology_node shape = draw_node(rng);
	for (uint32_t n = 0; n < count; n++) {
		nodes[n] = alike ? shape : draw_node(rng);
		nodes[n].rack = rack += racks && n > 0 && sw_soak_chance(rng, 40);
	}
	struct sw_topology *topology = NULL;
	int r = sw_topology_new(nodes, count, &topology, NULL);
	assert(r == 0);
	(void)r;
	return topology;
}

/* ---- the jobs ---- */

static const char *const models[] = {"", "", "resnet50", "vgg16", "bert", "gpt2", "a2c", "dqn", "never-heard-of", "alexnet", "dlrm"};

static void draw_job(struct sw_rng *rng, struct sw_trace *trace, uint32_t cluster_gpus, int64_t submit_ns)
{
	struct sw_trace_job *job = sw_trace_add(trace);
	assert(job != NULL);
	uint64_t most = sw_soak_chance(rng, 5) ? 2 * cluster_gpus : cluster_gpus;
	job->id = (int64_t)trace->jobs.count;
	job->submit_ns = submit_ns;
	job->gpus = (uint32_t)(sw_soak_chance(rng, 60) ? sw_soak_between(rng, 1, most < 4 ? most : 4) : sw_soak_between(rng, 1, most));
	job->min_gpus = job->max_gpus = job->gpus;
	if (sw_soak_chance(rng, 25)) {
		job->min_gpus = (uint32_t)sw_soak_between(rng, 1, job->gpus);
		job->max_gpus = (uint32_t)sw_soak_between(rng, job->gpus, 2 * job->gpus);
	}
	job->duration_ns = (int64_t)sw_soak_between(rng, 1, PICK(rng, 3, 60, 600, 1200)) * SW_NS_PER_S;
	if (sw_soak_chance(rng, 30))
		job->duration_ns += (int64_t)sw_rng_below(rng, (uint64_t)SW_NS_PER_S);
	if (sw_soak_chance(rng, 3))
		job->duration_ns = (int64_t)sw_rng_below(rng, 3); /* gone before it came */
	if (sw_soak_chance(rng, 30)) {
		job->iterations = (int64_t)sw_soak_between(rng, 1, 1000);
		job->iteration_ns = job->duration_ns / job->iterations + 1;
	}
	if (sw_soak_chance(rng, 25)) {
		job->deadline_kind = (uint8_t)sw_soak_between(rng, SW_TRACE_STRICT, SW_TRACE_SOFT);
		job->deadline_ns = submit_ns + (int64_t)sw_rng_below(rng, 4) * job->duration_ns;
	}
	job->job_class = sw_soak_chance(rng, 25) ? SW_CLASS_OPPORTUNISTIC : SW_CLASS_GUARANTEED;
	job->weight_milli = (uint32_t)PICK(rng, 1000, 1000, 1, 500, 100000);
	const char *model = models[sw_rng_below(rng, sizeof models / sizeof models[0])];
	char tenant[16];
	snprintf(tenant, sizeof tenant, "t%u", (unsigned)sw_rng_below(rng, 4));
	if (sw_trace_intern(trace, model, strlen(model), &job->model) < 0 ||
	    sw_trace_intern(trace, tenant, strlen(tenant), &job->tenant) < 0)
		assert(false);
}

static struct sw_trace *draw_trace(struct sw_rng *rng, uint32_t cluster_gpus)
{
	struct sw_trace *trace = NULL;
	int64_t now = 0;
	int r = sw_trace_new("soak", "soak", &trace);
	assert(r == 0);
	(void)r;
	uint64_t count = sw_soak_between(rng, 1, sw_soak_chance(rng, 20) ? 60 : 25), spread_s = PICK(rng, 1, 30, 300);
	for (uint64_t j = 0; j < count; j++) {
		draw_job(rng, trace, cluster_gpus, now);
		if (!sw_soak_chance(rng, 40)) /* the others come together */
			now += (int64_t)sw_rng_below(rng, spread_s) * SW_NS_PER_S +
			       (int64_t)(sw_soak_chance(rng, 20) ? sw_rng_below(rng, 1000000000) : 0);
	}
	return trace;
}

/* ---- the world ---- */

static struct sw_transfer_cost draw_cost(struct sw_rng *rng)
{
	return (struct sw_transfer_cost){(int64_t)PICK(rng, 0, 5, 1500, 20000) * SW_NS_PER_MS,
					 PICK(rng, 0, 1, 10, 55) * UINT64_C(1000000000)};
}

/* Another mix of assumptions than those of any file. */
static void vary(struct sw_rng *rng, struct sw_world *world)
{
	/* A quantum brings events, and events may cost every job more than a quantum gives it. */
	world->quantum_ns = world->event_overhead ? 0 : (int64_t)PICK(rng, 0, 0, 10, 60, 600) * SW_NS_PER_S;
	world->replace_is_free = sw_soak_chance(rng, 40);
	world->preempt = (enum sw_preempt_mode)PICK(rng, SW_PREEMPT_FREE, SW_PREEMPT_SUSPEND, SW_PREEMPT_RESTART);
	world->start_ns = (int64_t)PICK(rng, 0, 1, 13) * SW_NS_PER_S;
	world->restart_ns = (int64_t)PICK(rng, 0, 5, 30) * SW_NS_PER_S;
	world->suspend = draw_cost(rng);
	world->resume = draw_cost(rng);
	world->migrate = draw_cost(rng);
	world->placement_slowdown = sw_soak_chance(rng, 50);
	world->sharing_slowdown = sw_soak_chance(rng, 50);
	world->host_cpus_per_gpu = (int64_t)PICK(rng, 0, 0, 1, 4);
	world->host_mem_per_gpu_bytes = PICK(rng, 0, 0, 4, 16) * GIB;
}

/* From a stream of its own: what was drawn before stays as it was. */
static void vary_sharing(struct sw_rng *rng, struct sw_world *world)
{
	world->split_milli = (int64_t)PICK(rng, 0, 1000, 1100, 3000);
	if (world->sharing_by == SW_SHARING_BY_PROFILES && sw_soak_chance(rng, 40))
		world->sharing_by = SW_SHARING_BY_SLICES;
}

static void break_things(struct sw_rng *rng, struct sw_world *world)
{
	world->node_mtbf_ns = (int64_t)PICK(rng, 0, 10, 40) * 3600 * SW_NS_PER_S;
	world->node_repair_ns = (int64_t)PICK(rng, 1, 60, 1800, 14400) * SW_NS_PER_S;
	world->job_failure_ppm = (int64_t)PICK(rng, 0, 10000, 200000, 900000);
	world->retries = (int64_t)PICK(rng, 0, 1, 3);
}

static struct sw_world *draw_world(struct sw_rng *rng)
{
	static const char *const names[] = {"ideal", "muri", "measured"};
	struct sw_world *world = NULL;
	int r = sw_world_load(names[sw_rng_below(rng, 3)], &world, NULL);
	assert(r == 0);
	(void)r;
	if (sw_soak_chance(rng, 60))
		vary(rng, world);
	if (sw_soak_chance(rng, 50))
		break_things(rng, world);
	return world;
}

/* ---- parameters ---- */

static void set(struct sw_params *params, const char *name, const char *text)
{
	struct sw_err err = {0};
	const struct sw_param *param = sw_params_find(params->policy, name, &err);
	if (param == NULL || sw_params_set(params, param, text, strlen(text), &err) < 0) {
		fprintf(stderr, "%s\n", err.fact);
		assert(false);
	}
}

static void set_number(struct sw_params *params, const char *name, uint64_t number, const char *unit)
{
	char text[64];
	snprintf(text, sizeof text, "%llu%s", (unsigned long long)number, unit);
	set(params, name, text);
}

/* Queues small enough that jobs of a soak pass through them. */
static void draw_queues(struct sw_rng *rng, struct sw_params *params, bool patient)
{
	static const char *const thresholds[] = {"3250,7200", "60", "10,100,1000", "1,2,3,4,5,6,7", ""};
	set(params, "thresholds", thresholds[patient ? 0 : sw_rng_below(rng, 5)]);
}

static void draw_las(struct sw_rng *rng, struct sw_params *params, bool patient)
{
	static const char *const knobs[] = {"0", "0.5", "1", "8", "0.001"};
	draw_queues(rng, params, patient);
	set(params, "promote", knobs[sw_rng_below(rng, patient ? 4 : 5)]);
	set(params, "count-gpus", sw_soak_chance(rng, 70) ? "on" : "off");
	set_number(params, "tick", PICK(rng, 30, 60, 300), "s");
}

static void draw_gittins(struct sw_rng *rng, struct sw_params *params, bool patient)
{
	static const char *const samples[] = {"", "4\n8\n12\n", "gpu_time\n5\n5\n60\n600\n7000\n", "0\n"};
	draw_queues(rng, params, patient);
	set(params, "samples", samples[sw_rng_below(rng, 4)]);
	set_number(params, "delta", PICK(rng, 1, 4, 3250), "");
	set(params, "compat", sw_soak_chance(rng, 30) ? "on" : "off");
	set_number(params, "tick", PICK(rng, 30, 60, 300), "s");
}

static void draw_gandiva(struct sw_rng *rng, struct sw_params *params, bool patient)
{
	set_number(params, "quantum", patient ? 600 : PICK(rng, 5, 30, 60, 600), "s");
	set_number(params, "introspect", patient ? 600 : PICK(rng, 30, 60, 600), "s");
	set_number(params, "height", PICK(rng, 1, 2, 4, 8, 100), "");
	set(params, "pack", sw_soak_chance(rng, 80) ? "on" : "off");
	set(params, "busy", sw_soak_chance(rng, 70) ? "0.95" : "0.5");
	set_number(params, "idle", PICK(rng, 0, 60, 600), "s");
}

static void draw_philly(struct sw_rng *rng, struct sw_params *params, bool patient)
{
	set_number(params, "acquire", patient ? 1800 : PICK(rng, 1, 30, 150, 1800), "s");
	set_number(params, "backoff", patient ? 120 : PICK(rng, 0, 1, 120, 1800), "s");
	set_number(params, "relax-after", PICK(rng, 1, 2, 10), "");
	set(params, "relax", sw_soak_chance(rng, 80) ? "on" : "off");
	set(params, "occupancy", sw_soak_chance(rng, 50) ? "0.9" : "0");
}

static void draw_sharewell(struct sw_rng *rng, struct sw_params *params, bool patient)
{
	static const char *const slows[] = {"1", "1.1", "1.5", "8"};
	set_number(params, "first", patient ? 3600 : PICK(rng, 1, 60, 3600), "s");
	set(params, "ratio", sw_soak_chance(rng, 50) ? "1.1" : "4");
	set_number(params, "patience", patient ? 21600 : PICK(rng, 1, 600, 21600), "s");
	set_number(params, "locality", PICK(rng, 0, 60, 600), "s");
	set(params, "worth", sw_soak_chance(rng, 50) ? "1" : "1.3");
	set(params, "slow", slows[sw_rng_below(rng, 4)]);
}

static void draw_bigbrain(struct sw_rng *rng, struct sw_params *params)
{
	static const char *const contexts[] = {"0", "1.2", "8"};
	set_number(params, "k", PICK(rng, 1, 2, 4, 8), "");
	set_number(params, "slots", PICK(rng, 0, 1, 1, 4), "");
	set(params, "context", contexts[sw_rng_below(rng, 3)]);
	set(params, "skip", sw_soak_chance(rng, 50) ? "on" : "off");
	set(params, "gain", sw_soak_chance(rng, 50) ? "0" : "0.05");
	set_number(params, "restart", PICK(rng, 0, 60, 600), "s");
}

static void draw_salus(struct sw_rng *rng, struct sw_params *params, bool patient)
{
	static const char *const orders[] = {"fair", "fifo", "srtf", "pack"};
	set(params, "order", orders[sw_rng_below(rng, 4)]);
	set_number(params, "lanes", PICK(rng, 1, 2, 3, 8), "");
	set_number(params, "turn", patient ? 600 : PICK(rng, 5, 30, 60, 600), "s");
	set_number(params, "patience", PICK(rng, 0, 600, 21600), "s");
}

struct sw_params *sw_soak_params(struct sw_rng *rng, const struct sw_policy *policy, bool patient)
{
	struct sw_params *params = NULL;
	int r = sw_params_new(policy, &params, NULL);
	assert(r == 0);
	(void)r;
	if (policy == &sw_policy_las) {
		draw_las(rng, params, patient);
	} else if (policy == &sw_policy_gittins) {
		draw_gittins(rng, params, patient);
	} else if (policy == &sw_policy_gandiva) {
		draw_gandiva(rng, params, patient);
	} else if (policy == &sw_policy_philly) {
		draw_philly(rng, params, patient);
	} else if (policy == &sw_policy_sharewell) {
		draw_sharewell(rng, params, patient);
	} else if (policy == &sw_policy_bigbrain) {
		draw_bigbrain(rng, params);
	} else if (policy == &sw_policy_salus) {
		draw_salus(rng, params, patient);
	} else if (policy == &sw_policy_chaos) {
		set_number(params, "manners", PICK(rng, 0, 50, 90, 99, 100), "");
		set_number(params, "sloth", PICK(rng, 0, 10, 50, 100), "");
	}
	return params;
}

/* Whether changing jobs costs so much that a policy which changes every few seconds would
 * never get anything done. */
static bool needs_patience(const struct sw_world *world)
{
	return world->event_overhead || world->start_ns > 0 || world->restart_ns > 0 ||
	       (world->preempt == SW_PREEMPT_SUSPEND && (world->suspend.fixed_ns > SW_NS_PER_S || world->resume.fixed_ns > SW_NS_PER_S));
}

/* ---- all of it ---- */

void sw_soak_draw(uint64_t seed, const struct sw_policy *policy, struct sw_soak_case *ret_case)
{
	struct sw_rng cluster = stream(seed, 0), jobs = stream(seed, 1), world = stream(seed, 2), placement = stream(seed, 3),
		      params = stream(seed, 4), sharing = stream(seed, 5);
	size_t rules = 0;
	while (sw_placements[rules] != NULL)
		rules++;
	ret_case->topology = sw_soak_topology(&cluster);
	ret_case->trace = draw_trace(&jobs, ret_case->topology->gpu_count);
	ret_case->world = draw_world(&world);
	vary_sharing(&sharing, ret_case->world);
	ret_case->placement = sw_placements[sw_rng_below(&placement, rules)];
	ret_case->params = sw_soak_params(&params, policy, needs_patience(ret_case->world));
}

void sw_soak_release(struct sw_soak_case *drawn)
{
	sw_topology_free(drawn->topology);
	sw_trace_free(drawn->trace);
	sw_world_free(drawn->world);
	sw_params_free(drawn->params);
}

static void describe_params(const struct sw_params *params, FILE *out)
{
	for (size_t p = 0; p < params->policy->param_count; p++) {
		const struct sw_value *value = &params->values[p];
		fprintf(out, "  %s.%s", params->policy->name, params->policy->params[p].name);
		if (params->policy->params[p].kind != SW_PARAM_NUMBERS && params->policy->params[p].kind != SW_PARAM_FILE_OF_NUMBERS)
			fprintf(out, " %lld", (long long)value->number);
		for (size_t i = 0; i < value->count; i++)
			fprintf(out, "%c%lld", i == 0 ? ' ' : ',', (long long)value->list[i]);
		fprintf(out, "\n");
	}
}

void sw_soak_describe(uint64_t seed, const struct sw_policy *policy, FILE *out)
{
	struct sw_soak_case drawn;
	sw_soak_draw(seed, policy, &drawn);
	fprintf(out, "seed %llu: placement %s\n", (unsigned long long)seed, drawn.placement->name);
	for (uint32_t n = 0; n < drawn.topology->node_count; n++) {
		const struct sw_topology_node *node = &drawn.topology->nodes[n];
		fprintf(out, "  node %u: rack %u, %u GPUs of %llu GiB in groups of %u, %u CPUs, %llu GiB\n", n, node->rack, node->gpus,
			(unsigned long long)(node->gpu_memory_bytes / GIB), node->link_group, node->cpus,
			(unsigned long long)(node->memory_bytes / GIB));
	}
	for (size_t j = 0; j < drawn.trace->jobs.count; j++) {
		const struct sw_trace_job *job = &drawn.trace->jobs.items[j];
		fprintf(out, "  job %zu: at %lld ns, %lld ns on %u GPUs (%u to %u), model '%s'%s\n", j, (long long)job->submit_ns,
			(long long)job->duration_ns, job->gpus, job->min_gpus, job->max_gpus, sw_trace_string(drawn.trace, job->model),
			job->job_class == SW_CLASS_OPPORTUNISTIC ? ", opportunistic" : "");
	}
	char *world = sw_world_describe(drawn.world);
	fprintf(out, "%s", world == NULL ? "" : world);
	free(world);
	describe_params(drawn.params, out);
	sw_soak_release(&drawn);
}
