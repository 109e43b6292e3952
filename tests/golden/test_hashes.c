/* Same seed, same decisions: the fingerprint of every event and command under every policy, two
 * placement rules and four worlds, as kept in hashes.txt. The same file is compared in every build,
 * whatever the compiler, its options and the sanitizers.
 *
 * UPDATE_GOLDEN=1 writes the file anew, for changes that are meant to change decisions. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "placement/registry.h"
#include "policy/registry.h"
#include "sim/cluster.h"
#include "sim/simulator.h"
#include "sim/trace/generate.h"

#define PATH SW_SOURCE_DIR "/tests/golden/hashes.txt"
#define CLUSTER "2x4x8"

static const struct sw_placement *const placements[] = {&sw_placement_yarn, &sw_placement_pack};

/* The trace, as a command that makes the same one. */
#define RECIPE "--jobs 1500 --gpus 64 --load 3 --seed 11 --tenants 5 --opportunistic 0.1 --elastic 0.2 --deadlines 0.2"

static const struct world {
	const char *label;
	const char *name;
	const char *settings; /* as in the command that replays it */
	int64_t node_mtbf_ns;
	int64_t job_failure_ppm;
} worlds[] = {
	{"ideal", "ideal", "", -1, -1},
	{"measured", "measured", "", -1, -1},
	{"muri", "muri", "", -1, -1},
	{"faults", "measured", " --set world.node_mtbf=3d --set world.job_failure=0.1", 3 * 86400 * SW_NS_PER_S, 100000},
};

struct fixture {
	struct sw_trace *trace;
	struct sw_topology *topology;
	struct sw_profiles *profiles;
	char *golden;
	FILE *update; /* NULL: compare */
};

static int set_up(void **state)
{
	static struct fixture fixture;
	struct sw_trace_recipe recipe = sw_trace_recipe_default();
	SW_CLEANUP(sw_cluster_freep) struct sw_cluster_spec *cluster = NULL;
	struct sw_err err = {0};
	size_t size;
	recipe.jobs = 1500;
	recipe.gpus = 64;
	recipe.load_milli = 3000;
	recipe.seed = 11;
	recipe.tenants = 5;
	recipe.opportunistic_milli = 100;
	recipe.elastic_milli = 200;
	recipe.deadline_milli = 200;
	if (sw_trace_generate(&recipe, &fixture.trace, &err) < 0 || sw_cluster_load(CLUSTER, &cluster, &err) < 0 ||
	    sw_cluster_topology(cluster, &fixture.topology, &err) < 0 || sw_profiles_load_default(&fixture.profiles, &err) < 0)
		return -1;
	if (getenv("UPDATE_GOLDEN") != NULL)
		fixture.update = fopen(PATH, "w");
	else if (sw_file_read(PATH, 1 << 20, &fixture.golden, &size, &err) < 0)
		return -1;
	*state = &fixture;
	return fixture.update != NULL || fixture.golden != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	sw_trace_free(fixture->trace);
	sw_topology_free(fixture->topology);
	sw_profiles_free(fixture->profiles);
	free(fixture->golden);
	return fixture->update != NULL ? fclose(fixture->update) : 0;
}

/* "las pack ideal 53ea8c58aeb2a2d7": found as a whole line, newline included. */
static bool is_golden(const struct fixture *fixture, const char *line)
{
	for (const char *at = fixture->golden; (at = strstr(at, line)) != NULL; at++)
		if (at == fixture->golden || at[-1] == '\n')
			return true;
	return false;
}

/* Whether this run left the fingerprint that the file has. */
static bool compare(const struct fixture *fixture, const struct world *which, const struct sw_world *world, const struct sw_policy *policy,
		    const struct sw_placement *placement)
{
	struct sw_sim_config config = {
		.trace = fixture->trace,
		.topology = fixture->topology,
		.profiles = fixture->profiles,
		.world = world,
		.policy = policy,
		.placement = placement,
		.seed = 3,
		.cluster = CLUSTER,
	};
	SW_CLEANUP(sw_result_freep) struct sw_result *result = NULL;
	struct sw_err err = {0};
	if (sw_simulate(&config, &result, &err) < 0) {
		print_error("%s %s %s: %s: %s\n", policy->name, placement->name, which->label, err.fact, err.detail);
		return false;
	}
	char line[160];
	snprintf(line, sizeof line, "%s %s %s %016" PRIx64 "\n", policy->name, placement->name, which->label, result->log_hash);
	if (fixture->update != NULL)
		return fputs(line, fixture->update) >= 0;
	if (is_golden(fixture, line))
		return true;
	print_error("not in hashes.txt: %sreplay: sharewell trace generate g.csv " RECIPE " && sharewell sim -t g.csv -c " CLUSTER
		    " -p %s -P %s -w %s%s --seed 3 --json\n",
		    line, policy->name, placement->name, which->name, which->settings);
	return false;
}

static void check_world(void **state, const char *label)
{
	const struct fixture *fixture = *state;
	const struct world *which = worlds;
	while (strcmp(which->label, label) != 0)
		which++;
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	size_t different = 0;
	assert_int_equal(sw_world_load(which->name, &world, NULL), 0);
	if (which->node_mtbf_ns >= 0)
		world->node_mtbf_ns = which->node_mtbf_ns;
	if (which->job_failure_ppm >= 0)
		world->job_failure_ppm = which->job_failure_ppm;
	for (size_t p = 0; sw_policies[p] != NULL; p++)
		for (size_t r = 0; r < sizeof placements / sizeof placements[0]; r++)
			different += !compare(fixture, which, world, sw_policies[p], placements[r]);
	for (size_t r = 0; r < sizeof placements / sizeof placements[0]; r++)
		different += !compare(fixture, which, world, sw_policy_find("las+pack"), placements[r]);
	assert_int_equal(different, 0);
}

/* Nothing costs anything. */
static void test_ideal(void **state)
{
	check_world(state, "ideal");
}

/* Everything costs what it was measured to cost. */
static void test_measured(void **state)
{
	check_world(state, "measured");
}

/* Every event costs every running job. */
static void test_muri(void **state)
{
	check_world(state, "muri");
}

/* Nodes and jobs fail often. */
static void test_faults(void **state)
{
	check_world(state, "faults");
}

/* The file holds exactly one line for each run, so that none is compared with a
 * line that was left behind. */
static void test_file_is_complete(void **state)
{
	const struct fixture *fixture = *state;
	size_t lines = 0, policies = 0, packed = 1;
	if (fixture->update != NULL)
		skip();
	while (sw_policies[policies] != NULL)
		policies++;
	for (const char *c = fixture->golden; *c != '\0'; c++)
		lines += *c == '\n';
	assert_int_equal(lines, (policies + packed) * sizeof placements / sizeof placements[0] * sizeof worlds / sizeof worlds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ideal),  cmocka_unit_test(test_measured),		cmocka_unit_test(test_muri),
		cmocka_unit_test(test_faults), cmocka_unit_test(test_file_is_complete),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
