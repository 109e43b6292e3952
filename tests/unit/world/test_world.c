/* Worlds: the three that ship, files of the user's own, and the words that a
 * report prints about them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/embed.h"
#include "base/number.h"
#include "world/world.h"

#define S SW_NS_PER_S

static struct sw_world *load(const char *name)
{
	struct sw_err err = {0};
	struct sw_world *world = NULL;
	if (sw_world_load(name, &world, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return world;
}

static struct sw_world *parse(const char *text)
{
	struct sw_err err = {0};
	struct sw_world *world = NULL;
	if (sw_world_parse("mine.yaml", text, strlen(text), &world, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return world;
}

static void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("'%s' does not contain '%s'", text, part);
}

/* In the ideal world nothing costs anything and nothing fails. */
static void test_ideal(void **state)
{
	(void)state;
	SW_CLEANUP(sw_world_freep) struct sw_world *world = load("ideal");
	assert_string_equal(world->name, "ideal");
	assert_int_equal(world->preempt, SW_PREEMPT_FREE);
	assert_true(sw_world_terms(world).keeps_state);
	assert_true(world->replace_is_free);
	assert_int_equal(world->quantum_ns + world->start_ns + world->restart_ns, 0);
	assert_int_equal(sw_transfer_ns(&world->suspend, 1 << 30) + sw_transfer_ns(&world->resume, 1 << 30) +
				 sw_transfer_ns(&world->migrate, 1 << 30),
			 0);
	assert_false(world->event_overhead || world->work_from_iterations || world->placement_slowdown || world->sharing_slowdown);
	assert_int_equal(sw_world_event_overhead_ns(world, "vgg16", 1), 0);
	assert_int_equal(world->node_mtbf_ns + world->job_failure_ppm, 0);
}

/* Muri's overheads are its table, to the cell; what is not in the table costs ten seconds. */
static void test_muri_overheads(void **state)
{
	(void)state;
	static const char *const models[] = {"vgg16", "vgg19", "resnet18", "shufflenet_v2_x1_0", "bert", "gpt2", "a2c", "dqn"};
	static const struct {
		uint32_t gpus;
		int seconds[8];
	} rows[] = {
		{1, {7, 7, 4, 4, 10, 10, 38, 5}}, {2, {7, 7, 5, 4, 10, 10, 39, 5}},   {4, {8, 8, 5, 5, 10, 10, 39, 6}},
		{8, {9, 9, 7, 5, 10, 10, 46, 6}}, {16, {9, 10, 7, 7, 10, 10, 46, 8}}, {32, {10, 10, 7, 8, 10, 10, 46, 8}},
	};
	SW_CLEANUP(sw_world_freep) struct sw_world *world = load("muri");
	assert_true(world->event_overhead);
	for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
		for (size_t m = 0; m < 8; m++)
			assert_int_equal(sw_world_event_overhead_ns(world, models[m], rows[r].gpus), rows[r].seconds[m] * S);
	assert_int_equal(sw_world_event_overhead_ns(world, "alexnet", 1), 10 * S);
	assert_int_equal(sw_world_event_overhead_ns(world, "vgg16", 3), 10 * S);
	assert_int_equal(sw_world_event_overhead_ns(world, "vgg16", 64), 10 * S);
	assert_int_equal(sw_world_event_overhead_ns(world, "", 1), 10 * S);
}

/* Muri's work is iterations x iteration time x 1.015, exact to the nanosecond; what
 * does not fit is refused. */
static void test_muri_work(void **state)
{
	(void)state;
	SW_CLEANUP(sw_world_freep) struct sw_world *world = load("muri");
	int64_t ns = -1;
	assert_true(world->work_from_iterations);
	assert_int_equal(sw_world_work_ns(world, 10956, 437 * SW_NS_PER_MS, &ns), 0);
	assert_int_equal(ns, INT64_C(10956) * 443555000);
	assert_int_equal(sw_world_work_ns(world, 0, 437, &ns), 0);
	assert_int_equal(ns, 0);
	assert_int_equal(sw_world_work_ns(world, INT64_MAX, 2, &ns), SW_ELIMIT);
	assert_int_equal(sw_world_work_ns(world, INT64_MAX, 1, &ns), SW_ELIMIT); /* only the factor makes it too large */
	assert_int_equal(sw_world_work_ns(world, -1, 1, &ns), SW_EINPUT);
	assert_int_equal(ns, 0);
}

/* The default world charges what was measured: 6.67 GiB suspended in about 135 ms. */
static void test_measured(void **state)
{
	(void)state;
	SW_CLEANUP(sw_world_freep) struct sw_world *world = load(SW_WORLD_DEFAULT);
	assert_string_equal(world->name, "measured");
	assert_int_equal(world->preempt, SW_PREEMPT_SUSPEND);
	assert_false(world->replace_is_free);
	uint64_t bytes = (uint64_t)(6.67 * (double)(1 << 30));
	assert_in_range(sw_transfer_ns(&world->suspend, bytes), 130 * SW_NS_PER_MS, 140 * SW_NS_PER_MS);
	assert_in_range(sw_transfer_ns(&world->resume, bytes), 130 * SW_NS_PER_MS, 140 * SW_NS_PER_MS);
	assert_true(world->placement_slowdown && world->sharing_slowdown);
	assert_true(world->sharing_by == SW_SHARING_BY_PROFILES && world->gate_milli == 1020);
	assert_true(world->start_ns > 0 && world->restart_ns > world->start_ns);
	assert_true(world->node_mtbf_ns > 0 && world->node_repair_ns > 0);
	assert_false(world->work_from_iterations);
	assert_int_equal(world->iteration_scale_ppm, 1000000);
}

/* A copy is rounded up, adds the fixed part, and cannot overflow. */
static void test_transfer(void **state)
{
	(void)state;
	assert_int_equal(sw_transfer_ns(&(struct sw_transfer_cost){5, 3000000000}, 1), 6);
	assert_int_equal(sw_transfer_ns(&(struct sw_transfer_cost){5, 1000000000}, 100), 105);
	assert_int_equal(sw_transfer_ns(&(struct sw_transfer_cost){5, 0}, UINT64_MAX), 5);
	assert_true(sw_transfer_ns(&(struct sw_transfer_cost){5, 1}, UINT64_MAX) > 0);
}

/* Every world inside the program loads under its own name, has none beneath it, and
 * says what it leaves out. */
static void test_builtin(void **state)
{
	(void)state;
	int count = 0;
	const char *path;
	for (size_t i = 0; (path = sw_embedded_name(i)) != NULL; i++) {
		char name[64];
		if (sscanf(path, "worlds/%63[^.].yaml", name) != 1)
			continue;
		SW_CLEANUP(sw_world_freep) struct sw_world *world = load(name);
		assert_string_equal(world->name, name);
		assert_true(strlen(world->about) > 20);
		assert_true(strlen(world->not_modelled) > 20);
		assert_null(strstr(sw_embedded(path, NULL), "\nbase:"));
		count++;
	}
	assert_int_equal(count, 4);
	char names[64];
	sw_world_names(names, sizeof names);
	assert_string_equal(names, "ideal, live, measured, muri");
	char little[8];
	sw_world_names(little, sizeof little);
	assert_string_equal(little, "ideal, ");
}

/* A file with a base changes what it names and keeps the rest; without one,
 * what is not said is free. */
static void test_base(void **state)
{
	(void)state;
	SW_CLEANUP(sw_world_freep)
	struct sw_world *mine = parse("name: mine\nbase: measured\nquantum: 5m\nfaults: {node_mtbf: 0s}\nsuspend: {fixed: 1s}\n");
	SW_CLEANUP(sw_world_freep) struct sw_world *measured = load("measured");
	assert_string_equal(mine->name, "mine");
	assert_string_equal(mine->about, measured->about);
	assert_int_equal(mine->quantum_ns, 300 * S);
	assert_int_equal(mine->start_ns, measured->start_ns);
	assert_int_equal(mine->node_mtbf_ns, 0);
	assert_int_equal(mine->retries, measured->retries);
	assert_int_equal(mine->resume.bytes_per_s, measured->resume.bytes_per_s);
	assert_int_equal(mine->suspend.bytes_per_s, 0); /* a cost is given as a whole */
	assert_true(mine->sharing_slowdown && mine->gate_milli == measured->gate_milli);
	assert_true(measured->split_milli == 1100 && mine->split_milli == 1100);

	SW_CLEANUP(sw_world_freep) struct sw_world *slices = parse("name: s\nbase: measured\nsharing_by: slices\nsplit: 1.25\n");
	assert_true(slices->sharing_by == SW_SHARING_BY_SLICES && slices->split_milli == 1250);
	SW_CLEANUP(sw_freep) char *text = sw_world_describe(slices);
	assert_has(text, "jobs on one GPU take turns");
	assert_has(text, "a step of a job in two parts takes 1.250 times as long as whole");

	SW_CLEANUP(sw_world_freep) struct sw_world *bare = parse("name: bare\n");
	assert_int_equal(bare->split_milli, 0);
	assert_int_equal(bare->preempt, SW_PREEMPT_FREE);
	assert_int_equal(bare->iteration_scale_ppm, 1000000);
	assert_string_equal(bare->not_modelled, "");

	SW_CLEANUP(sw_world_freep) struct sw_world *other = parse("name: o\nbase: muri\nevent_overhead: {default: 3s}\n");
	assert_int_equal(sw_world_event_overhead_ns(other, "vgg16", 1), 3 * S);
	assert_true(other->work_from_iterations);
}

/* Unknown names are answered with the nearest one and the list. */
static void test_unknown_name(void **state)
{
	(void)state;
	struct sw_err err = {0};
	struct sw_world *world = NULL;
	assert_int_equal(sw_world_load("mesured", &world, &err), SW_ENOTFOUND);
	assert_string_equal(err.fact, "there is no world 'mesured'");
	assert_string_equal(err.detail, "did you mean 'measured'?");
	assert_has(err.hint, "ideal, live, measured, muri");
	sw_err_clear(&err);
	assert_int_equal(sw_world_load("utopia", &world, &err), SW_ENOTFOUND);
	assert_string_equal(err.detail, "");
	sw_err_clear(&err);
	assert_int_equal(sw_world_load("", &world, &err), SW_ENOTFOUND);
	sw_err_clear(&err);
	assert_int_equal(sw_world_load("../profiles", &world, &err), SW_ENOTFOUND);
	sw_err_clear(&err);
	assert_int_equal(sw_world_load("./nowhere.yaml", &world, &err), SW_ENOTFOUND);
	assert_has(err.fact, "./nowhere.yaml");
	assert_null(world);
}

/* A path leads to the file of that name, also to a copy of a built-in one. */
static void test_path(void **state)
{
	(void)state;
	SW_CLEANUP(sw_world_freep) struct sw_world *world = load(SW_SOURCE_DIR "/data/worlds/ideal.yaml");
	assert_string_equal(world->name, "ideal");
}

/* Slips and contradictions are refused with file, line and reason. */
static void test_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *detail;
	} cases[] = {
		{"quantum: 1s\n", "line 1: a world needs 'name'"},
		{"name: a\nquantm: 1s\n", "line 2: 'quantm' is not a key of a world; did you mean 'quantum'?"},
		{"name: a\nquantum: -1s\n", "line 2: 'quantum' is '-1s', expected a duration"},
		{"name: a\nquantum: 100000d\n", "line 2: 'quantum' is 100000d, expected 0 s to"},
		{"name: a\npreempt: never\n", "line 2: 'preempt' is 'never', expected one of free, suspend, restart"},
		{"name: a\nbase: heaven\n", "'base' names 'heaven', which is not a built-in world (ideal, live, measured, muri)"},
		{"name: a\nsharing_by: luck\n", "line 2: 'sharing_by' is 'luck', expected one of profiles, stages, slices"},
		{"name: a\nlearned: slowdowns.json\n", "'learned' needs 'sharing_slowdown: true'"},
		{"name: a\nsplit: 0.9\n", "line 2: 'split' is 0.9, expected 1.000 to"},
		{"name: a\nsuspend: {copy: 0}\n", "line 2: 'copy' is 0, expected 1 to"},
		{"name: a\nsuspend: {speed: 3}\n", "'speed' is not a key of the cost of a transfer"},
		{"name: a\nwork: {from: hearsay}\n", "'from' is 'hearsay', expected one of duration, iterations"},
		{"name: a\nwork: {from: duration, iteration_scale: 1.1}\n", "'iteration_scale' means nothing"},
		{"name: a\nwork: {from: iterations, iteration_scale: 0}\n", "'iteration_scale' is 0, expected 0.000001 to"},
		{"name: a\nfaults:\n  node_mtbf: 10s\n  node_repair: 1s\n", "line 2: 'node_mtbf' is below a minute"},
		{"name: a\nfaults: {node_mtbf: 10d}\n", "'node_repair' must be above 0"},
		{"name: a\nnodes: {boot: 5m}\n", "line 2: 'boot' means nothing where no node is switched off"},
		{"name: a\nnodes: {switch: false, boot: 1s}\n", "'boot' means nothing"},
		{"name: a\nnodes: {switch: true, boot: -1s}\n", "'boot' is '-1s', expected a duration"},
		{"name: a\nnodes: {on: true}\n", "'on' is not a key of the power of nodes"},
		{"name: a\nnodes: true\n", "'nodes' is 'true', expected a map"},
		{"name: a\nstops:\n  opportunistic: never\n", "an opportunistic job makes way for others"},
		{"name: a\nstops: {opportunistic: suspend_if_free}\n", "an opportunistic job makes way for others"},
		{"base: live\nname: a\npreempt: restart\n", "no run stands where it was with 'preempt: restart'"},
		{"name: a\npreempt: restart\nstops: {guaranteed: suspend}\n", "'stops' cannot be 'suspend'"},
		{"name: a\npreempt: restart\nstops: {opportunistic: suspend}\n", "'stops' cannot be 'suspend'"},
		{"name: a\nfaults: {job_failure: 1.5}\n", "'job_failure' is 1.5, expected 0.000000 to 1.000000"},
		{"name: a\nfaults: {retries: -1}\n", "'retries' is -1, expected 0 to 1000"},
		{"name: a\nevent_overhead: {models: {vgg16: {1: 1s}}}\n", "an overhead needs 'default'"},
		{"name: a\nevent_overhead: {default: 1s, models: {vgg16: {one: 1s}}}\n", "the key 'one' must be a number of GPUs"},
		{"name: a\nevent_overhead: {default: 1s, models: {vgg16: 1s}}\n", "'vgg16' is '1s', expected a map"},
		{"name: a\nnot_modelled: [\"a\\nb\"]\n", "must be one line"},
		{"- name: a\n", "expected a world, that is, a map"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct sw_world *world = NULL;
		struct sw_err err = {0};
		int r = sw_world_parse("mine.yaml", cases[i].text, strlen(cases[i].text), &world, &err);
		if (r == 0)
			fail_msg("accepted: %s", cases[i].text);
		assert_null(world);
		assert_string_equal(err.fact, "cannot read world 'mine.yaml'");
		assert_has(err.detail, cases[i].detail);
	}
}

/* The text for reports names the world, what it charges and what it leaves out, and nothing
 * that it does not charge. */
static void test_describe(void **state)
{
	(void)state;
	SW_CLEANUP(sw_world_freep) struct sw_world *muri = load("muri");
	SW_CLEANUP(sw_freep) char *text = sw_world_describe(muri);
	assert_has(text, "World 'muri': ");
	assert_has(text, "iterations x iteration time x 1.015000");
	assert_has(text, "10.0 s");
	assert_has(text, "faults: none");
	assert_has(text, "not modelled: failures of nodes and jobs");
	assert_int_equal(text[strlen(text) - 1], '\n');

	SW_CLEANUP(sw_world_freep) struct sw_world *measured = load("measured");
	SW_CLEANUP(sw_freep) char *other = sw_world_describe(measured);
	assert_has(other, "not before a job ran 0:01:00");
	assert_has(other, "55.0 GB/s");
	assert_has(other, "a node fails every 150d 00:00:00");
	assert_null(strstr(other, "overhead"));
	assert_null(strstr(other, "free of cost"));
}

/* Whether nodes are switched, and how long one boots, comes from the file to the terms and the
 * report; only a world that says so has it. */
static void test_power(void **state)
{
	(void)state;
	SW_CLEANUP(sw_world_freep) struct sw_world *mine = parse("name: mine\nbase: live\nnodes: {switch: true, boot: 90s}\n");
	assert_true(mine->nodes_switch && sw_world_terms(mine).nodes_switch);
	assert_int_equal(mine->boot_ns, 90 * S);
	SW_CLEANUP(sw_freep) char *text = sw_world_describe(mine);
	assert_has(text, "one that is switched on again is up after 0:01:30");
	SW_CLEANUP(sw_world_freep) struct sw_world *not_mine = parse("name: n\nbase: measured\nnodes: {switch: false}\n");
	assert_false(sw_world_terms(not_mine).nodes_switch);
	assert_int_equal(not_mine->boot_ns, 0);
	SW_CLEANUP(sw_freep) char *other = sw_world_describe(not_mine);
	assert_null(strstr(other, "switched on"));
	const char *const names[] = {"live", "muri"};
	for (size_t n = 0; n < 2; n++) {
		SW_CLEANUP(sw_world_freep) struct sw_world *world = load(names[n]);
		assert_false(sw_world_terms(world).nodes_switch);
	}
	SW_CLEANUP(sw_world_freep) struct sw_world *measured = load("measured");
	assert_true(sw_world_terms(measured).nodes_switch && measured->boot_ns > 0);
	assert_int_equal(sw_world_record(measured, NULL), 0);
	assert_false(sw_world_terms(measured).nodes_switch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ideal),	 cmocka_unit_test(test_muri_overheads), cmocka_unit_test(test_muri_work),
		cmocka_unit_test(test_measured), cmocka_unit_test(test_transfer),	cmocka_unit_test(test_builtin),
		cmocka_unit_test(test_base),	 cmocka_unit_test(test_unknown_name),	cmocka_unit_test(test_path),
		cmocka_unit_test(test_refused),	 cmocka_unit_test(test_describe),	cmocka_unit_test(test_power),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
