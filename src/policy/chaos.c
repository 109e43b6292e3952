/* A policy that misbehaves on purpose: it does everything the SDK allows at random, and a good deal
 * that it does not. No invariant of the core may break, and once it has misused the plan too often
 * the engine must throw it out. For tests; it also shows every verb. */
#include <string.h>

#include <sharewell/policy.h>

#define LISTS 2u
#define SHELVES 2u
#define MORE_LISTS 3u /* shelves of nodes, and a number that is none */

enum { MANNERS, SLOTH };

static const struct sw_param params[] = {
	[MANNERS] = {"manners", SW_PARAM_INTEGER, "50", "percent of its wishes that at least make sense", 0, 100},
	[SLOTH] = {"sloth", SW_PARAM_INTEGER, "10", "percent of its decisions in which it does nothing", 0, 100},
};

/* Its own bytes: scribbled over at will, they are no other's. */
struct scribble {
	uint64_t words[4];
	uint32_t expired;   /* the job whose lease ended last */
	uint16_t paired[2]; /* as an answer said */
};

static bool chance(struct sw_view *view, int64_t percent)
{
	return (int64_t)sw_view_random(view, 100) < percent;
}

/* A job by chance: any at all, in whatever state. */
static const struct sw_job *any_job(struct sw_view *view)
{
	const struct sw_job *job = chance(view, 50) ? sw_view_next_waiting(view, NULL) : sw_view_next_running(view, NULL);
	for (uint64_t skip = sw_view_random(view, 8); job != NULL && skip > 0; skip--) {
		const struct sw_job *next = sw_job_is_waiting(job) ? sw_view_next_waiting(view, job) : sw_view_next_running(view, job);
		if (next == NULL)
			break;
		job = next;
	}
	return job;
}

static bool anywhere(const struct sw_view *view, const struct sw_job *job, uint32_t gpus, struct sw_spot *spot)
{
	(void)job;
	return sw_spot_fill(view, spot, gpus);
}

static const struct sw_placement scatter = {.abi = SW_POLICY_ABI, .name = "scatter", .about = "anywhere", .place = anywhere};

#define VERTICES 8u

/* A path. */
struct graph {
	struct sw_matching head;
	struct sw_matching_edge edges[VERTICES - 1];
};

/* What one decision needs. */
struct scratch {
	struct sw_gpus where[8];
	struct sw_split split;
	struct graph graph;
};

static uint32_t any_size(struct sw_view *view, const struct sw_job *job)
{
	return job->min_gpus + (uint32_t)sw_view_random(view, job->max_gpus - job->min_gpus + 1);
}

/* One too many. */
static struct sw_node_id any_node(struct sw_view *view)
{
	return (struct sw_node_id){(uint32_t)sw_view_random(view, sw_view_nodes(view) + 1)};
}

/* Beside others, over others, by a rule of its own, or in another class than it asked for. */
static void crowd(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	struct scratch *scratch = sw_plan_scratch(plan);
	uint8_t as = chance(view, 50) ? SW_AS_GUARANTEED : SW_AS_OPPORTUNISTIC;
	size_t count;
	switch (sw_view_random(view, 7)) {
	case 6:
		if (job->asked_class == SW_CLASS_GUARANTEED)
			(void)sw_plan_run(plan, job, SW_WISH(.evict = SW_EVICT_OPPORTUNISTIC, .where = sw_on(any_node(view))));
		break;
	case 5:
		if (job->asked_class == SW_CLASS_GUARANTEED)
			(void)sw_plan_run(plan, job,
					  SW_WISH(.gpus = any_size(view, job), .evict = SW_EVICT_OPPORTUNISTIC,
						  .where = sw_by(sw_view_policy(view)->context)));
		break;
	case 4:
		if (job->gpu_memory_bytes > 0)
			(void)sw_plan_run(plan, job, SW_WISH(.as = as, .promise = SW_REST, .where = sw_by(NULL)));
		break;
	case 2:
		(void)sw_plan_run(plan, job, SW_WISH(.gpus = any_size(view, job), .as = as, .where = sw_by(sw_view_policy(view)->context)));
		break;
	case 0:
		count = sw_gpus_least_used(view, job, (uint32_t)sw_view_random(view, 1500), scratch->where, 8);
		if (count > 0)
			(void)sw_plan_run(plan, job, SW_WISH(.as = as, .where = sw_at(scratch->where, count)));
		break;
	case 1:
		if (job->asked_class == SW_CLASS_GUARANTEED)
			(void)sw_plan_run(plan, job, SW_WISH(.evict = SW_EVICT_OPPORTUNISTIC));
		break;
	default:
		(void)sw_plan_run(plan, job, SW_WISH(.as = as));
		break;
	}
}

/* In parts over a node by chance, as the splitter says, or nearly. */
static void cut_up(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	struct sw_split_device devices[8];
	struct sw_node_id node = any_node(view);
	struct sw_split *split = &((struct scratch *)sw_plan_scratch(plan))->split;
	for (uint32_t g = 0; g < 8; g++)
		devices[g] = (struct sw_split_device){node, g, 1 + (uint32_t)sw_view_random(view, 1000), sw_gpu_memory_free(view, node, g)};
	if (!sw_view_split(view, job, devices, 8, split))
		return;
	split->parts[0].memory_bytes += sw_view_random(view, 2);
	(void)sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_in_parts(split)));
}

/* Beside others on one GPU by chance. */
static void squeeze_in(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	struct sw_gpus where = {.node = any_node(view)};
	struct sw_node node = {0};
	if (where.node.v < sw_view_nodes(view))
		sw_view_node(view, where.node, &node);
	if (node.gpus == 0 || job->gpu_memory_bytes == 0 || job->min_gpus > 1)
		return;
	where.mask = UINT64_C(1) << sw_view_random(view, node.gpus);
	(void)sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_at(&where, 1)));
}

/* For a while that has to end. */
static void lease(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	(void)sw_plan_run(plan, job, SW_WISH(.until = sw_view_now(view) + 1 + (sw_ns)sw_view_random(view, 60000000000)));
}

/* Set up otherwise than it asked, or than it is. */
static void set_up(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	struct sw_config config = *sw_job_config(view, job);
	if (chance(view, 50))
		config.batch = 1 + (uint32_t)sw_view_random(view, 512);
	if (chance(view, 30))
		config.accumulation = 1 + (uint32_t)sw_view_random(view, 8);
	if (chance(view, 30))
		config.workers = config.servers = 1 + (uint32_t)sw_view_random(view, 4);
	if (chance(view, 40))
		config.cpus = 1 + (uint32_t)sw_view_random(view, 16);
	if (chance(view, 40))
		config.host_memory_bytes = (1 + sw_view_random(view, 64)) << 30;
	(void)sw_plan_run(plan, job, SW_WISH(.config = config));
}

/* GPUs for a job that waits, now or later; or none any more. */
static void hold(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	struct scratch *scratch = sw_plan_scratch(plan);
	struct sw_wish wish = {.gpus = 1 + (uint32_t)sw_view_random(view, job->max_gpus)};
	sw_ns from = chance(view, 50) ? sw_view_now(view) + (sw_ns)sw_view_random(view, 60000000000) : 0;
	sw_ns begin = from > sw_view_now(view) ? from : sw_view_now(view);
	sw_ns to = begin + 1 + (sw_ns)sw_view_random(view, 60000000000);
	struct sw_hold held;
	if (sw_job_hold(view, job, &held) && held.gpus >= wish.gpus)
		to = 0;
	switch (sw_view_random(view, 6)) {
	case 0:
		to = 0;
		break;
	case 1:
		wish.where = sw_on(any_node(view));
		break;
	case 2:
		wish.gpus = 0;
		scratch->where[0] = (struct sw_gpus){{0}, 1};
		wish.where = sw_at(scratch->where, 1);
		break;
	case 3:
		wish.where = sw_by(sw_view_policy(view)->context);
		break;
	default:
		break;
	}
	(void)sw_plan_hold(plan, job, &wish, from, to);
}

/* Chance is asked once per statement: compilers differ in which argument of a
 * call they look at first. */
static void polite(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	uint64_t bytes;
	if (sw_job_is_waiting(job)) {
		if (chance(view, 15)) {
			cut_up(plan, job);
			return;
		}
		if (chance(view, 10)) {
			squeeze_in(plan, job);
			return;
		}
		if (chance(view, 30)) {
			crowd(plan, job);
			return;
		}
		if (chance(view, 20)) {
			lease(plan, job);
			return;
		}
		if (chance(view, 15)) {
			set_up(plan, job);
			return;
		}
		if (chance(view, 20)) {
			hold(plan, job);
			return;
		}
		const struct sw_job *with = sw_view_next_running(view, NULL);
		if (with != NULL && job->gpu_memory_bytes > 0 && with->gpu_memory_bytes > 0 && with->gpus_held >= job->min_gpus &&
		    with->gpus_held <= job->max_gpus && chance(view, 30))
			(void)sw_plan_run(plan, job, SW_WISH(.where = sw_beside(with)));
		else
			(void)sw_plan_run(plan, job, SW_WISH(.gpus = any_size(view, job)));
		return;
	}
	if (job->paused) {
		(void)sw_plan_run(plan, job, NULL);
		return;
	}
	switch (sw_view_random(view, 8)) {
	case 7:
		set_up(plan, job);
		break;
	case 6:
		lease(plan, job);
		break;
	case 0:
		(void)sw_plan_stop(plan, job, SW_PREEMPT);
		break;
	case 4:
		(void)sw_plan_stop(plan, job, SW_PAUSE);
		break;
	case 3:
		if (job->job_class == SW_CLASS_OPPORTUNISTIC)
			(void)sw_plan_run(plan, job, SW_WISH(.as = SW_AS_GUARANTEED, .evict = SW_EVICT_OPPORTUNISTIC));
		break;
	case 1:
		(void)sw_plan_run(plan, job, SW_WISH(.where = sw_by(NULL)));
		break;
	case 2:
		(void)sw_plan_run(plan, job, SW_WISH(.gpus = any_size(view, job)));
		break;
	default:
		bytes = 1 + sw_view_random(view, UINT64_C(1) << 36);
		/* A job that does not say what it needs does not share, whatever it is told. */
		if (job->gpu_memory_bytes > 0)
			(void)sw_plan_limit(plan, job, bytes, 1 + (uint32_t)sw_view_random(view, 1000));
		break;
	}
}

/* On, one that is off; off, one that is not. */
static void switch_node(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct sw_node_id id = any_node(view);
	struct sw_node node;
	if (id.v >= sw_view_nodes(view))
		return;
	sw_view_node(view, id, &node);
	if (node.power == SW_POWER_OFF)
		(void)sw_plan_node(plan, id, true);
	else if (node.power == SW_POWER_ON && chance(view, 30))
		(void)sw_plan_node(plan, id, false);
}

/* To a node by chance, or beside another without a promise. */
static void push(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	const struct sw_job *with = sw_view_next_running(view, NULL);
	struct sw_node_id node = any_node(view);
	uint32_t gpus = any_size(view, job);
	if (job->state == SW_JOB_RUNNING && !job->paused)
		(void)sw_plan_run(plan, job, SW_WISH(.gpus = gpus, .where = sw_on(node)));
	else if (job->state == SW_JOB_RUNNING)
		(void)sw_plan_stop(plan, job, SW_PREEMPT);
	else if (with != NULL && chance(view, 50))
		(void)sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_beside(with)));
	else
		(void)sw_plan_run(plan, job, SW_WISH(.gpus = gpus, .where = sw_on(node)));
}

/* Every field by chance, whether they go together or not, and now and then what no enumeration
 * has. */
static void dream(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	struct scratch *scratch = sw_plan_scratch(plan);
	struct sw_wish wish = {0};
	wish.where.kind = (uint32_t)sw_view_random(view, SW_WHERE_PARTS + 2);
	wish.where.node = any_node(view);
	if (wish.where.kind == SW_WHERE_RULE) {
		wish.where.rule = chance(view, 50) ? &scatter : NULL;
	} else if (wish.where.kind == SW_WHERE_GPUS) {
		scratch->where[0].node = any_node(view);
		scratch->where[0].mask = UINT64_C(1) << sw_view_random(view, 9);
		wish.where.gpus = scratch->where;
		wish.where.count = sw_view_random(view, 2);
	} else if (wish.where.kind == SW_WHERE_BESIDE) {
		wish.where.beside = any_job(view);
	} else if (wish.where.kind == SW_WHERE_PARTS) {
		scratch->split = (struct sw_split){.count = 2, .step_milli = 1, .alone_milli = 1};
		wish.where.parts = &scratch->split;
	}
	wish.gpus = chance(view, 50) ? (uint32_t)sw_view_random(view, 9) : 0;
	wish.as = (uint8_t)sw_view_random(view, SW_AS_OPPORTUNISTIC + 2);
	wish.promise = (uint8_t)sw_view_random(view, SW_REST + 2);
	wish.evict = (uint8_t)sw_view_random(view, SW_EVICT_SPARING + 2);
	if (chance(view, 50))
		wish.until = sw_view_now(view) - 1 + (sw_ns)sw_view_random(view, 1000000000);
	if (chance(view, 30))
		wish.config.cpus = (uint32_t)sw_view_random(view, 4 * SW_CONFIG_CPUS_MOST);
	if (chance(view, 30))
		wish.config.batch = (uint32_t)sw_view_random(view, UINT32_MAX);
	struct sw_run_forecast found;
	(void)sw_predict_run(view, job, &wish, &found);
	struct sw_gpu_type type;
	uint32_t number = (uint32_t)sw_view_random(view, sw_view_gpu_types(view) + 2);
	(void)sw_view_gpu_type(view, number, &type);
	(void)sw_job_type_speed_milli(view, job, number);
	if (chance(view, 80)) {
		(void)sw_plan_run(plan, job, &wish);
		return;
	}
	sw_ns from = sw_view_now(view) - 1 + (sw_ns)sw_view_random(view, 1000000000);
	sw_ns to = sw_view_now(view) - 1 + (sw_ns)sw_view_random(view, 1000000000);
	(void)sw_plan_hold(plan, job, &wish, from, to);
}

static void admit(struct sw_view *view, const struct sw_job *job, struct sw_admission *admission)
{
	if (chance(view, 90))
		return;
	admission->verdict = (uint8_t)sw_view_random(view, SW_REFUSE + 1);
	if (admission->verdict == SW_DOWNGRADE && job->stop_rule >= SW_STOP_NEVER)
		admission->verdict = SW_ACCEPT;
	if (admission->verdict == SW_QUOTE && job->deadline_at == SW_TIME_NEVER)
		admission->verdict = SW_REFUSE;
	admission->deadline_at = SW_TIME_NEVER;
	if (!chance(view, sw_view_param(view, MANNERS)->number))
		admission->verdict = SW_REFUSE + 1;
	for (size_t i = 0; i < sizeof admission->reason; i++) /* without an end */
		admission->reason[i] = "chaos "[i % 6];
}

static void sampled(struct sw_view *view, const struct sw_job *job, const struct sw_sample *sample)
{
	struct scribble *scribble = sw_view_state(view);
	scribble->words[job->id.v % 4] ^= (uint64_t)sample->loss_micro + sample->progress_ppm;
}

static void expired(struct sw_view *view, const struct sw_job *job)
{
	struct scribble *scribble = sw_view_state(view);
	scribble->expired = job->id.v;
}

/* Which neighbours on a path go together; or what is no question at all. */
static void ask(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct graph *graph = &((struct scratch *)sw_plan_scratch(plan))->graph;
	struct sw_question question = {.kind = SW_SOLVE_MATCHING, .bytes = graph, .size = sizeof *graph};
	graph->head = (struct sw_matching){.vertices = VERTICES, .edges = VERTICES - 1};
	for (uint16_t v = 0; v < VERTICES - 1; v++)
		graph->edges[v] = (struct sw_matching_edge){v, (uint16_t)(v + 1), (uint32_t)sw_view_random(view, 1000)};
	question.limit = 1 + (uint32_t)sw_view_random(view, 100);
	question.tag = sw_view_random(view, UINT64_MAX);
	if (!chance(view, sw_view_param(view, MANNERS)->number)) {
		graph->edges[sw_view_random(view, VERTICES - 1)].b = (uint16_t)sw_view_random(view, UINT16_MAX);
		question.kind = (uint32_t)sw_view_random(view, SW_SOLVER_KINDS + 1);
		question.limit = (uint32_t)sw_view_random(view, 2) * UINT32_MAX;
		question.size = sw_view_random(view, 2 * sizeof *graph);
		question.bytes = chance(view, 90) ? graph : NULL;
	}
	(void)sw_plan_ask(plan, &question, NULL);
}

static void answered(struct sw_view *view, const struct sw_solution *solution)
{
	struct scribble *scribble = sw_view_state(view);
	scribble->words[solution->number % 4] ^= solution->tag + solution->status;
	if (solution->size > sizeof(struct sw_matching_found))
		memcpy(scribble->paired, (const char *)solution->bytes + sizeof(struct sw_matching_found), sizeof scribble->paired);
}

/* The jobs that have these numbers now, one beside the other, and once. */
static void pair_up(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct scribble *scribble = sw_view_state(view);
	const struct sw_job *job = sw_view_job(view, (struct sw_job_id){scribble->paired[0]});
	const struct sw_job *with = sw_view_job(view, (struct sw_job_id){scribble->paired[1]});
	if (job != NULL && with != NULL && sw_job_is_waiting(job) && with->state == SW_JOB_RUNNING && job->gpu_memory_bytes > 0 &&
	    with->gpu_memory_bytes > 0 && with->gpus_held >= job->min_gpus && with->gpus_held <= job->max_gpus)
		(void)sw_plan_run(plan, job, SW_WISH(.where = sw_beside(with)));
}

/* On and off lists and shelves, one of which does not exist. */
static void list(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	uint32_t which = (uint32_t)sw_view_random(view, LISTS + SHELVES + MORE_LISTS);
	which = which == LISTS + SHELVES + MORE_LISTS - 1 ? SW_NO_LIST : which;
	const struct sw_job *after = sw_list_next(view, which, sw_list_has(view, which, job) ? job : NULL);
	switch (sw_view_random(view, 5)) {
	case 0:
		sw_list_append(view, which, job);
		break;
	case 1:
		sw_list_insert(view, which, job);
		break;
	case 2:
		sw_list_put(view, which, job, sw_list_length(view, which) > 1 ? after : NULL);
		break;
	case 3:
		sw_list_remove(view, sw_list_shelf(view, job), job);
		break;
	default:
		sw_list_remove(view, which, after);
		break;
	}
}

static void rude(struct sw_plan *plan, const struct sw_job *job)
{
	struct sw_view *view = sw_plan_view(plan);
	struct sw_node_id node;
	sw_ns due;
	static const struct sw_gpus nowhere = {{3}, UINT64_C(1) << 63};
	static const struct sw_job nobody = {.gpus = 1, .min_gpus = 1, .max_gpus = 1};
	static const struct sw_split nonsense = {.parts = {{{0}, 0, 1}, {{0}, 0, 1}}, .count = 2, .step_milli = 1, .alone_milli = 1};
	switch (sw_view_random(view, 21)) {
	case 20:
		node = any_node(view);
		(void)sw_plan_node(plan, node, chance(view, 50));
		break;
	case 13:
	case 14:
	case 15:
	case 16:
	case 17:
	case 18:
		dream(plan, job);
		break;
	case 10:
		(void)sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_in_parts(&nonsense)));
		break;
	case 11:
		(void)sw_plan_run(plan, job, SW_WISH(.promise = SW_REST, .where = sw_at(&nowhere, 1)));
		break;
	case 12:
		(void)(job->paused ? sw_plan_stop(plan, job, SW_PAUSE) : sw_plan_run(plan, job, NULL));
		break;
	case 8:
		(void)sw_plan_run(plan, job, SW_WISH(.as = SW_AS_GUARANTEED, .evict = SW_EVICT_OPPORTUNISTIC));
		break;
	case 9:
		(void)sw_plan_run(plan, job, SW_WISH(.as = SW_AS_OPPORTUNISTIC, .where = sw_at(&nowhere, 1)));
		break;
	case 0:
		(void)sw_plan_run(plan, &nobody, NULL);
		break;
	case 1:
		(void)sw_plan_run(plan, job, NULL);
		break;
	case 2:
		(void)sw_plan_run(plan, job, SW_WISH(.gpus = job->max_gpus + 1 + (uint32_t)sw_view_random(view, UINT32_MAX / 2)));
		break;
	case 3:
		(void)sw_plan_stop(plan, job, SW_PREEMPT);
		break;
	case 4:
		(void)sw_plan_run(plan, job, SW_WISH(.where = sw_beside(job)));
		break;
	case 5:
		(void)sw_plan_limit(plan, job, 0, 5000);
		break;
	case 6:
		(void)sw_plan_run(plan, job, SW_WISH(.gpus = 0));
		break;
	default:
		due = sw_view_now(view) - 1 + (sw_ns)sw_view_random(view, 1000000000);
		sw_alarm_set(view, job, due, (sw_ns)sw_view_random(view, 3));
		break;
	}
}

static sw_ns decide(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	struct scribble *scribble = sw_view_state(view);
	uint64_t word = sw_view_random(view, 4);
	scribble->words[word] ^= sw_view_random(view, UINT64_MAX) + sw_view_changes(view);
	if (chance(view, 2))
		sw_plan_again(plan);
	if (chance(view, sw_view_param(view, SLOTH)->number))
		return SW_TIME_NEVER;
	const struct sw_job *late = sw_view_job(view, (struct sw_job_id){scribble->expired});
	if ((sw_view_changes(view) & SW_CHANGE_LEASES) != 0 && late != NULL && late->state == SW_JOB_RUNNING)
		(void)sw_plan_stop(plan, late, SW_PREEMPT);
	if ((sw_view_changes(view) & SW_CHANGE_ANSWERS) != 0)
		pair_up(plan);
	if (chance(view, 5))
		ask(plan);
	for (uint64_t wishes = sw_view_random(view, 12); wishes > 0; wishes--) {
		const struct sw_job *job = any_job(view);
		if (job == NULL)
			break;
		list(plan, job);
		if (chance(view, 5))
			switch_node(plan);
		if (!chance(view, sw_view_param(view, MANNERS)->number))
			rude(plan, job);
		else if (chance(view, 20))
			push(plan, job);
		else
			polite(plan, job);
	}
	return sw_view_now(view) + (chance(view, 98) ? 1 + (sw_ns)sw_view_random(view, 60000000000) : -5);
}

const struct sw_policy sw_policy_chaos = {
	.abi = SW_POLICY_ABI,
	.name = "chaos",
	.about = "misbehaves on purpose, to test the core",
	.params = params,
	.param_count = sizeof params / sizeof params[0],
	.state_size = sizeof(struct scribble),
	.job_state_size = 5, /* not aligned */
	.list_count = LISTS,
	.shelf_count = SHELVES,
	.node_shelf_count = 1,
	.scratch_size = sizeof(struct scratch),
	.question_size = sizeof(struct graph),
	.context = &scatter,
	.pauses = true,
	.admit = admit,
	.sampled = sampled,
	.expired = expired,
	.answered = answered,
	.decide = decide,
};
