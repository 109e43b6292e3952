/* The same terms: what the simulator and a controller that was started tell their engines of one
 * world, field by field, and what their predictors say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <ftw.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "brain/fold.h"
#include "core/spec.h"
#include "core/state.h"
#include "placement/registry.h"
#include "server/server.h"
#include "server/tokens.h"
#include "sim/cluster.h"
#include "sim/model.h"
#include "sim/simulator.h"
#include "world/world.h"

enum { MODELS = 4, CLASSES = 4, SPREADS = 4 };

static const char *const models_there[MODELS] = {"resnet50", "bert", "dlrm", "mobilenetv2"};
static uint32_t numbers[MODELS];

/* What a driver configured, and what its predictor says of each pair of models in each pair of
 * classes; 0: it does not know. The controller is a process of its own. */
struct sight {
	bool told;
	struct sw_engine_config config;
	uint32_t speed_milli[MODELS][MODELS][CLASSES][2];
	uint32_t slow_milli[MODELS][SPREADS];
};
static struct sight *seen;

static void ask(const struct sw_predictor *predictor, struct sight *sight)
{
	memset(sight->speed_milli, 0, sizeof sight->speed_milli);
	for (uint32_t m = 0; predictor->speeds != NULL && m < MODELS * MODELS * CLASSES; m++) {
		uint32_t one = m / MODELS / CLASSES, other = m / CLASSES % MODELS, classes = m % CLASSES;
		const uint32_t models[] = {numbers[one], numbers[other]};
		const bool guaranteed[] = {classes & 1, classes & 2};
		uint32_t *speeds = sight->speed_milli[one][other][classes];
		if (!predictor->speeds(predictor->context, models, guaranteed, 2, speeds))
			speeds[0] = speeds[1] = 0;
	}
}

/* What the scaler says of four GPUs, at each distance. */
static void ask_scaler(const struct sw_scaler *scaler, struct sight *sight)
{
	for (uint32_t m = 0; m < MODELS; m++) {
		for (uint32_t spread = 0; spread < SPREADS; spread++) {
			const struct sw_run_shape shape = {
				.model = numbers[m], .gpus_asked = 4, .gpus = 4, .gpu_types = 1, .distance = (uint8_t)spread};
			assert_non_null(scaler->slow);
			assert_true(scaler->slow(scaler->context, &shape, &sight->slow_milli[m][spread]));
		}
	}
}

/* A policy is told the view of its engine: here that is a way to see what its driver configured. */
static sw_ns look(struct sw_plan *plan)
{
	seen->config = sw_plan_view(plan)->engine->config;
	ask(&seen->config.predictor, seen);
	ask_scaler(&seen->config.scaler, seen);
	seen->told = true;
	sw_plan_by_order(plan);
	return SW_TIME_NEVER;
}

static int64_t by_arrival(struct sw_view *view, const struct sw_job *job)
{
	(void)view;
	return job->submit_at;
}

static const struct sw_order order = {.head_blocks = true};
static const struct sw_policy looking = {
	.abi = SW_POLICY_ABI, .name = "looking", .about = "fifo that looks", .order = &order, .key = by_arrival, .decide = look};

static void must(int r, const struct sw_err *err)
{
	if (r < 0)
		fail_msg("%s: %s", err->fact, err->detail);
}

static void simulate(const struct sw_world *world, const struct sw_profiles *profiles)
{
	static const char trace[] = "job_id,num_gpu,submit_time,iterations,model_name,duration\n1,1,0,1,resnet50,10\n";
	struct sw_err err = {0};
	SW_CLEANUP(sw_trace_freep) struct sw_trace *jobs = NULL;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	SW_CLEANUP(sw_result_freep) struct sw_result *result = NULL;
	const struct sw_topology_node node = {
		.gpus = 2, .cpus = 16, .memory_bytes = UINT64_C(1) << 37, .gpu_memory_bytes = UINT64_C(1) << 36};
	must(sw_trace_parse("jobs", trace, sizeof trace - 1, NULL, &jobs, &err), &err);
	must(sw_topology_new(&node, 1, &topology, &err), &err);
	const struct sw_sim_config config = {.trace = jobs,
					     .topology = topology,
					     .profiles = profiles,
					     .world = world,
					     .policy = &looking,
					     .placement = sw_placements[0],
					     .cluster = "1x2"};
	seen->told = false;
	must(sw_simulate(&config, &result, &err), &err);
}

static int remove_file(const char *path, const struct stat *stat, int kind, struct FTW *at)
{
	(void)stat;
	(void)kind;
	(void)at;
	return remove(path);
}

static void stop_soon(void *user, const struct sw_controller_place *place)
{
	(void)user;
	(void)place;
	raise(SIGTERM);
}

/* A controller as it is started, up to the moment at which it is ready. */
static void start_controller(const struct sw_world *world)
{
	char folder[] = "/tmp/sharewell-test-XXXXXX", journal[64], door[64], tokens[64], runs[64], logs[64];
	assert_non_null(mkdtemp(folder));
	snprintf(journal, sizeof journal, "%s/journal.db", folder);
	snprintf(door, sizeof door, "%s/socket", folder);
	snprintf(tokens, sizeof tokens, "%s/tokens", folder);
	snprintf(runs, sizeof runs, "%s/runs", folder);
	snprintf(logs, sizeof logs, "%s/logs", folder);
	assert_int_equal(sw_tokens_make(tokens, NULL), 0);
	const struct sw_controller_options options = {
		.journal_path = journal,
		.socket_path = door,
		.tokens_path = tokens,
		.runs_folder = runs,
		.logs_folder = logs,
		.policy = "looking",
		.placement = sw_placements[0]->name,
		.plugin = &looking,
		.world = world,
		.on_ready = stop_soon,
	};
	seen->told = false;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		struct sw_err err = {0};
		int r = sw_controller_run(&options, &err);
		if (r < 0)
			fprintf(stderr, "%s: %s\n", err.fact, err.detail);
		_exit(r < 0 ? 3 : 0);
	}
	int status = -1;
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	assert_int_equal(status, 0);
	assert_int_equal(nftw(folder, remove_file, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* All members, in their order, and none of them zero: one that is added and not named here does not
 * compile, and one that is named here and not compared below is found. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wmissing-field-initializers"
static bool no_speeds(void *context, const uint32_t *models, const bool *guaranteed, size_t count, uint32_t *ret_speed_milli)
{
	(void)context, (void)models, (void)guaranteed, (void)count, (void)ret_speed_milli;
	return false;
}
static bool no_scale(void *context, const struct sw_run_shape *shape, uint32_t *ret_slow_milli)
{
	(void)context, (void)shape, (void)ret_slow_milli;
	return false;
}
static const struct sw_gpu_types types_there;
static const char any[] = "any";
static const struct sw_topology topology_there;
static const struct sw_splitter splitter_there;
static const struct sw_engine_config all_members = {
	&topology_there,
	&looking,
	&looking,
	(const void *)any,
	(const void *)any,
	1,
	{1, 1, true, true, true, true, true, true, 1, 1, 1, 1, true, 1, 1},
	{(void *)(uintptr_t)any, no_speeds},
	{(void *)(uintptr_t)any, no_scale},
	&types_there,
	&splitter_there,
	1,
};
#pragma GCC diagnostic pop

/* Cluster, seed and the parameters of the policy are what is simulated. */
static const struct member {
	const char *name;
	size_t offset, size;
	bool may_differ;
} members[] = {
#define MEMBER(name) #name, offsetof(struct sw_engine_config, name), sizeof(((struct sw_engine_config *)0)->name)
	{MEMBER(topology), true},
	{MEMBER(policy), false},
	{MEMBER(fallback), false},
	{MEMBER(placement), false},
	{MEMBER(params), true},
	{MEMBER(seed), true},
	{MEMBER(terms), false},		   /* row by row, too */
	{MEMBER(predictor.context), true}, /* by what it answers */
	{MEMBER(predictor.speeds), false},
	{MEMBER(scaler.context), true},
	{MEMBER(scaler.slow), false},
	{MEMBER(gpu_types), true}, /* of the GPUs that are there */
	{MEMBER(splitter), false},
	{MEMBER(misuse_limit), false},
#undef MEMBER
};

/* Aim: a new member of the configuration is compared on both sides, or this says why not. */
static void test_every_member_is_named(void **state)
{
	(void)state;
	unsigned char left[sizeof all_members];
	memcpy(left, &all_members, sizeof left);
	for (size_t m = 0; m < sizeof members / sizeof *members; m++) {
		unsigned char sum = 0;
		for (size_t b = 0; b < members[m].size; b++) {
			sum |= left[members[m].offset + b];
			left[members[m].offset + b] = 0;
		}
		assert_int_not_equal(sum, 0);
	}
	for (size_t b = 0; b < sizeof left; b++)
		if (left[b] != 0)
			fail_msg("byte %zu of the configuration is of no member that is named here", b);
}

static void compare(const struct sight *one, const struct sight *other)
{
	assert_true(one->told);
	if (!other->told)
		fail_msg("the controller asked no policy");
	const struct sw_term_row *row = sw_terms_differ(&one->config.terms, &other->config.terms);
	if (row != NULL)
		fail_msg("'%s' is another live", row->name);
	for (size_t m = 0; m < sizeof members / sizeof *members; m++)
		if (!members[m].may_differ && strcmp(members[m].name, "terms") != 0 &&
		    memcmp((const char *)&one->config + members[m].offset, (const char *)&other->config + members[m].offset,
			   members[m].size) != 0)
			fail_msg("'%s' is another live", members[m].name);
	assert_memory_equal(one->speed_milli, other->speed_milli, sizeof one->speed_milli);
	assert_memory_equal(one->slow_milli, other->slow_milli, sizeof one->slow_milli);
}

/* Aim: one world gives one configuration on both sides, and predictors that say the same. */
static void test_same(void **state)
{
	(void)state;
	struct sw_err err = {0};
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = NULL;
	must(sw_profiles_load_default(&profiles, &err), &err);
	for (size_t m = 0; m < MODELS; m++)
		numbers[m] = sw_profiles_find(profiles, models_there[m])->number;
	static const char *const changes[] = {"",
					      "quantum: 5s\n",
					      "suspend: {fixed: 2s}\n",
					      "stops: {guaranteed: requeue}\n",
					      "moves: never\n",
					      "gate: 1.5\n",
					      "stops: {opportunistic: requeue}\n",
					      "placement_slowdown: false\n"};
	struct sight *one = calloc(1, sizeof *one), *first = calloc(1, sizeof *first);
	for (size_t c = 0; c < sizeof changes / sizeof *changes; c++) {
		char text[200];
		SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
		snprintf(text, sizeof text, "base: live\nname: other\n%s", changes[c]);
		must(sw_world_parse("other", text, strlen(text), &world, &err), &err);
		simulate(world, profiles);
		*one = *seen;
		if (c == 0)
			*first = *seen;
		start_controller(world);
		compare(one, seen);
		/* The comparison sees the gate, and places. */
		if (strncmp(changes[c], "placement", 9) == 0)
			assert_memory_not_equal(one->slow_milli, first->slow_milli, sizeof first->slow_milli);
		if (strncmp(changes[c], "gate", 4) == 0)
			assert_memory_not_equal(one->speed_milli, first->speed_milli, sizeof first->speed_milli);
	}
	free(one);
	free(first);
}

/* What the simulator tells of a job and a controller does not, since a trace says so or a profile,
 * and the words by which the world says that it is not modelled. */
static const struct {
	const char *row, *words;
} told_by_traces[] = {
	{"knowledge", "run time"},
	{"gpu_memory_bytes", "GPU memory of a known model"},
	{"gpu_floor_bytes", "GPU memory of a known model"},
	{"use_milli", "use of a GPU"},
	{"skew_milli", "largest tensor"},
};

static const char *find_words(const struct sw_spec_row *row)
{
	for (size_t t = 0; t < sizeof told_by_traces / sizeof *told_by_traces; t++)
		if (strcmp(told_by_traces[t].row, row->name) == 0)
			return told_by_traces[t].words;
	return NULL;
}

static void compare_specs(const struct sw_job_spec *simulated, const struct sw_job_spec *live, const struct sw_world *world)
{
	for (size_t r = 0; r < sw_spec_row_count; r++) {
		const struct sw_spec_row *row = &sw_spec_rows[r];
		const char *words = find_words(row);
		bool same = sw_spec_get(simulated, row) == sw_spec_get(live, row);
		if (words == NULL && !same)
			fail_msg("'%s' of a job is another live: %llu and not %llu", row->name, (unsigned long long)sw_spec_get(live, row),
				 (unsigned long long)sw_spec_get(simulated, row));
		if (words != NULL && same)
			fail_msg("'%s' of a job is the same live, and is named as another", row->name);
		if (words != NULL && strstr(world->not_modelled, words) == NULL)
			fail_msg("the world does not say that '%s' is told in simulations alone ('%s')", row->name, words);
	}
	assert_int_equal(simulated->model, live->model);
	assert_int_equal(simulated->deadline_at, live->deadline_at);
}

static const struct {
	const char *line;
	uint8_t job_class;
	const char *request;
} jobs_there[] = {
	{"1,2,0,1,resnet50,100", SW_CLASS_GUARANTEED, "{\"command\": [\"x\"], \"gpus\": 2, \"model\": \"resnet50\", \"expected\": 100}"},
	{"1,1,0,1,bert,50", SW_CLASS_OPPORTUNISTIC,
	 "{\"command\": [\"x\"], \"gpus\": 1, \"model\": \"bert\", \"class\": \"opportunistic\", \"expected\": 50}"},
};

/* Aim: the engine is told the same of a job on both sides, row by row, but for what the world says
 * that a trace alone tells. */
static void test_same_jobs(void **state)
{
	(void)state;
	struct sw_err err = {0};
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = NULL;
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	SW_CLEANUP(sw_topology_freep) struct sw_topology *topology = NULL;
	SW_CLEANUP(sw_brain_freep) struct sw_brain *brain = NULL;
	const struct sw_topology_node node = {
		.gpus = 2, .cpus = 16, .memory_bytes = UINT64_C(1) << 37, .gpu_memory_bytes = UINT64_C(1) << 36};
	must(sw_profiles_load_default(&profiles, &err), &err);
	must(sw_world_load(SW_WORLD_LIVE, &world, &err), &err);
	must(sw_topology_new(&node, 1, &topology, &err), &err);
	const struct sw_brain_config config = {.policy = "fifo", .placement = "pack", .profiles = profiles};
	must(sw_brain_new(&config, &brain, &err), &err);
	brain->terms = sw_world_terms(world);
	for (size_t j = 0; j < sizeof jobs_there / sizeof *jobs_there; j++) {
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
		SW_CLEANUP(sw_world_model_freep) struct sw_world_model *model = NULL;
		SW_CLEANUP(sw_job_request_freep) struct sw_job_request *request = NULL;
		struct sw_job_spec simulated, live;
		char text[200];
		snprintf(text, sizeof text, "job_id,num_gpu,submit_time,iterations,model_name,duration\n%s\n", jobs_there[j].line);
		must(sw_trace_parse("jobs", text, strlen(text), NULL, &trace, &err), &err);
		trace->jobs.items[0].job_class = jobs_there[j].job_class;
		must(sw_world_model_new(world, profiles, trace, topology, 0, &model, &err), &err);
		sw_world_model_spec(model, 0, &simulated);
		must(sw_job_request_decode("test", jobs_there[j].request, strlen(jobs_there[j].request), &request, &err), &err);
		live = sw_brain_spec(brain, request, 0, false);
		compare_specs(&simulated, &live, world);
	}
}

static int make_seen(void **state)
{
	(void)state;
	seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return seen == MAP_FAILED ? -1 : 0;
}

static int free_seen(void **state)
{
	(void)state;
	return munmap(seen, sizeof *seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_member_is_named),
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_same_jobs),
	};
	return cmocka_run_group_tests(tests, make_seen, free_seen);
}
