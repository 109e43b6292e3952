/* The naive model itself: small lives computed by hand, and what others published, job by job. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "naive.h"
#include "published.h"
#include "sim/trace/trace.h"

#define NEVER (-1)
#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* ---- lives in whole seconds ---- */

struct job {
	int64_t submit_s;
	int64_t work_s;
	uint32_t gpus;
	int64_t overhead_s;
};

struct life {
	int64_t start_s;
	int64_t end_s;
	uint32_t preemptions;
	uint32_t promotions;
};

static const struct sw_naive_cluster one_node = {1, 1, 4, 128, 256};
static const struct sw_naive_cluster eight_gpus = {1, 1, 8, 128, 256};

static int64_t to_ns(int64_t seconds)
{
	return seconds == NEVER ? SW_NAIVE_NEVER : seconds * SW_NS_PER_S;
}

static void expect_lives(const struct sw_naive_cluster *cluster, const struct sw_naive_rules *rules, const struct job *jobs,
			 const struct life *lives, size_t count)
{
	struct sw_naive_job naive[8];
	struct sw_naive_fate fates[8];
	assert_true(count <= COUNT_OF(naive));
	for (size_t i = 0; i < count; i++)
		naive[i] = (struct sw_naive_job){to_ns(jobs[i].submit_s), to_ns(jobs[i].work_s), to_ns(jobs[i].overhead_s), jobs[i].gpus};
	assert_int_equal(sw_naive_run(naive, count, cluster, rules, fates), 0);
	for (size_t i = 0; i < count; i++) {
		if (fates[i].start_ns != to_ns(lives[i].start_s) || fates[i].end_ns != to_ns(lives[i].end_s) ||
		    fates[i].preemptions != lives[i].preemptions || fates[i].promotions != lives[i].promotions)
			fail_msg("job %zu: started %" PRId64 " ns, ended %" PRId64 " ns, %u preemptions, %u promotions", i,
				 fates[i].start_ns, fates[i].end_ns, fates[i].preemptions, fates[i].promotions);
	}
}

/* Aim: fifo lets none pass a job that does not fit; fjf lets every one that fits. */
static void test_arrival_order(void **state)
{
	(void)state;
	const struct job jobs[] = {{0, 10, 3, 0}, {1, 10, 4, 0}, {2, 1, 1, 0}};
	struct sw_naive_rules rules = sw_naive_rules(SW_NAIVE_FIFO, SW_NAIVE_COUNT);
	expect_lives(&one_node, &rules, jobs, (struct life[]){{0, 10, 0, 0}, {10, 20, 0, 0}, {20, 21, 0, 0}}, 3);
	rules.policy = SW_NAIVE_FJF;
	expect_lives(&one_node, &rules, jobs, (struct life[]){{0, 10, 0, 0}, {10, 20, 0, 0}, {2, 3, 0, 0}}, 3);
}

/* Aim: an end and an arrival at one moment are one event, so that the GPUs of a job that leaves
 * go to the first in line. */
static void test_end_meets_arrival(void **state)
{
	(void)state;
	const struct job jobs[] = {{0, 5, 4, 0}, {3, 5, 4, 0}, {5, 1, 4, 0}};
	struct sw_naive_rules rules = sw_naive_rules(SW_NAIVE_FIFO, SW_NAIVE_COUNT);
	expect_lives(&one_node, &rules, jobs, (struct life[]){{0, 5, 0, 0}, {5, 10, 0, 0}, {10, 11, 0, 0}}, 3);
	rules.policy = SW_NAIVE_SRTF;
	expect_lives(&one_node, &rules, jobs, (struct life[]){{0, 5, 0, 0}, {6, 11, 0, 0}, {5, 6, 0, 0}}, 3);
}

/* Aim: sjf, srtf and srsf preempt by their own measure, and what was done is not lost. */
static void test_ranks(void **state)
{
	(void)state;
	const struct job jobs[] = {{0, 10, 4, 0}, {2, 20, 1, 0}, {3, 6, 2, 0}};
	struct sw_naive_rules rules = sw_naive_rules(SW_NAIVE_SJF, SW_NAIVE_COUNT);
	expect_lives(&one_node, &rules, jobs, (struct life[]){{0, 30, 1, 0}, {2, 22, 0, 0}, {3, 9, 0, 0}}, 3);
	/* At 3 the second has 20 s left, the first 7 s, the third 6 s: 3 GPUs are
	 * too few for the first. */
	rules.policy = SW_NAIVE_SRTF;
	expect_lives(&one_node, &rules, jobs, (struct life[]){{0, 16, 1, 0}, {3, 30, 1, 0}, {3, 9, 0, 0}}, 3);
	/* At 2 the second has 20 GPU seconds left, the first 32; at 3 they have
	 * 19 and 32, the third 12. */
	rules.policy = SW_NAIVE_SRSF;
	expect_lives(&one_node, &rules, jobs, (struct life[]){{0, 30, 1, 0}, {2, 22, 0, 0}, {3, 9, 0, 0}}, 3);
}

/* Aim: one that ties with a newcomer keeps its place; a newcomer that is shorter
 * by any bit does not tie. */
static void test_ties(void **state)
{
	(void)state;
	struct sw_naive_rules rules = sw_naive_rules(SW_NAIVE_SRTF, SW_NAIVE_COUNT);
	expect_lives(&one_node, &rules, (struct job[]){{0, 10, 4, 0}, {4, 6, 4, 0}}, (struct life[]){{0, 10, 0, 0}, {10, 16, 0, 0}}, 2);
	expect_lives(&one_node, &rules, (struct job[]){{0, 10, 4, 0}, {4, 5, 4, 0}}, (struct life[]){{0, 15, 1, 0}, {4, 9, 0, 0}}, 2);
	/* At 4 the first and the third have 6 s left each; the third stood before the first while
	 * it was the shorter one, and still does. */
	expect_lives(&one_node, &rules, (struct job[]){{0, 10, 2, 0}, {0, 4, 2, 0}, {0, 6, 4, 0}},
		     (struct life[]){{0, 16, 1, 0}, {0, 4, 0, 0}, {4, 10, 0, 0}}, 3);
}

/* Aim: the published example of least remaining GPU time on two GPUs averages 9.33. */
static void test_worked_example(void **state)
{
	(void)state;
	const struct sw_naive_cluster cluster = {1, 1, 2, 128, 256};
	struct sw_naive_rules rules = sw_naive_rules(SW_NAIVE_SRSF, SW_NAIVE_COUNT);
	expect_lives(&cluster, &rules, (struct job[]){{0, 2, 2, 0}, {0, 8, 1, 0}, {0, 6, 2, 0}},
		     (struct life[]){{0, 2, 0, 0}, {2, 10, 0, 0}, {10, 16, 0, 0}}, 3);
}

/* Aim: on 8 GPUs 3250 GPU seconds are full after 406.25 s, noticed at 407; each queue goes on with
 * the one that left it first. */
static void test_las_demotion(void **state)
{
	(void)state;
	struct sw_naive_rules rules = sw_naive_rules(SW_NAIVE_LAS, SW_NAIVE_COUNT);
	expect_lives(&eight_gpus, &rules, (struct job[]){{0, 2000, 8, 0}, {0, 2000, 8, 0}},
		     (struct life[]){{0, 2900, 2, 0}, {407, 4000, 2, 0}}, 2);
	/* At 406 it is too early. */
	expect_lives(&eight_gpus, &rules, (struct job[]){{0, 450, 8, 0}, {406, 10, 8, 0}},
		     (struct life[]){{0, 460, 1, 0}, {407, 417, 0, 0}}, 2);
	/* A finer grain looks at 406.25 s. */
	rules.grain_ns = SW_NS_PER_S / 4;
	struct sw_naive_fate fates[2];
	const struct sw_naive_job jobs[] = {{0, to_ns(450), 0, 8}, {to_ns(406), to_ns(10), 0, 8}};
	assert_int_equal(sw_naive_run(jobs, 2, &eight_gpus, &rules, fates), 0);
	assert_int_equal(fates[1].end_ns, 416 * SW_NS_PER_S + SW_NS_PER_S / 4);
	/* The finest one: 10 GPU nanoseconds of 3 GPUs are full after 4 ns. */
	const struct sw_naive_job tiny[] = {{0, 8, 0, 3}, {0, 8, 0, 3}};
	rules = (struct sw_naive_rules){.policy = SW_NAIVE_LAS, .limits = 1, .limit_ns = {10}, .grain_ns = 1};
	assert_int_equal(sw_naive_run(tiny, 2, &one_node, &rules, fates), 0);
	assert_int_equal(fates[0].end_ns, 12);
	assert_int_equal(fates[1].start_ns, 4);
}

/* Aim: a job that waited as long as it was served goes back to the first
 * queue, with fresh counters. */
static void test_las_promotion(void **state)
{
	(void)state;
	struct sw_naive_rules rules = sw_naive_rules(SW_NAIVE_LAS, SW_NAIVE_COUNT);
	rules.promote_milli = 1000;
	expect_lives(&eight_gpus, &rules, (struct job[]){{0, 2000, 8, 0}, {0, 2000, 8, 0}},
		     (struct life[]){{0, 3628, 4, 4}, {407, 4000, 4, 3}}, 2);
	/* Half of 407 s is taken as 203 s. */
	rules.promote_milli = 500;
	expect_lives(&eight_gpus, &rules, (struct job[]){{0, 2000, 8, 0}, {0, 203, 8, 0}},
		     (struct life[]){{0, 2203, 1, 1}, {407, 610, 0, 0}}, 2);
}

/* Aim: within a queue running jobs stand before waiting ones, so that a job that was let past is
 * not preempted by the one it passed. */
static void test_las_backfill(void **state)
{
	(void)state;
	struct sw_naive_rules rules = sw_naive_rules(SW_NAIVE_LAS, SW_NAIVE_COUNT);
	expect_lives(&one_node, &rules, (struct job[]){{0, 5, 3, 0}, {0, 5, 4, 0}, {0, 10, 1, 0}},
		     (struct life[]){{0, 5, 0, 0}, {10, 15, 0, 0}, {0, 10, 0, 0}}, 3);
}

/* Aim: las takes what is free by number, whatever the placement rule says of nodes. */
static void test_las_ignores_placement(void **state)
{
	(void)state;
	const struct sw_naive_cluster cluster = {2, 1, 4, 128, 256};
	struct sw_naive_rules rules = sw_naive_rules(SW_NAIVE_LAS, SW_NAIVE_YARN);
	expect_lives(&cluster, &rules, (struct job[]){{0, 5, 6, 0}}, (struct life[]){{0, 5, 0, 0}}, 1);
}

/* Aim: yarn wants one node for a small job and one rack for a large one, and never spills. */
static void test_yarn_shape(void **state)
{
	(void)state;
	const struct sw_naive_cluster two_nodes = {1, 2, 4, 128, 256}, two_racks = {2, 1, 4, 128, 256}, four_nodes = {2, 2, 4, 128, 256};
	struct sw_naive_rules rules = sw_naive_rules(SW_NAIVE_FJF, SW_NAIVE_YARN);
	/* One GPU is free on each node: two in all, but not together. */
	const struct job split[] = {{0, 10, 3, 0}, {0, 20, 3, 0}, {0, 5, 2, 0}, {0, 5, 1, 0}};
	expect_lives(&two_nodes, &rules, split, (struct life[]){{0, 10, 0, 0}, {0, 20, 0, 0}, {10, 15, 0, 0}, {0, 5, 0, 0}}, 4);
	rules.placement = SW_NAIVE_COUNT;
	expect_lives(&two_nodes, &rules, split, (struct life[]){{0, 10, 0, 0}, {0, 20, 0, 0}, {0, 5, 0, 0}, {5, 10, 0, 0}}, 4);

	rules.placement = SW_NAIVE_YARN;
	expect_lives(&two_racks, &rules, (struct job[]){{0, 5, 6, 0}, {0, 5, 4, 0}}, (struct life[]){{NEVER, NEVER, 0, 0}, {0, 5, 0, 0}},
		     2);
	/* 1 on node 0; 6 take node 1 whole and 2 of node 0; the next 6 go to the other rack; then 1
	 * is free on node 0 and 2 on node 3. */
	const struct job across[] = {{0, 9, 1, 0}, {0, 9, 6, 0}, {0, 9, 6, 0}, {0, 3, 2, 0}, {0, 4, 1, 0}, {0, 1, 2, 0}};
	expect_lives(&four_nodes, &rules, across,
		     (struct life[]){{0, 9, 0, 0}, {0, 9, 0, 0}, {0, 9, 0, 0}, {0, 3, 0, 0}, {0, 4, 0, 0}, {3, 4, 0, 0}}, 6);
}

/* Aim: yarn asks for 2 CPUs for a GPU alone and 6 per GPU otherwise, for 5 GB on one node and (11 +
 * GPUs / 10) GB per GPU across nodes. */
static void test_yarn_cpus_and_memory(void **state)
{
	(void)state;
	struct sw_naive_rules rules = sw_naive_rules(SW_NAIVE_FJF, SW_NAIVE_YARN);
	const struct sw_naive_cluster few_cpus = {1, 1, 4, 16, 256}, little_memory = {1, 1, 4, 128, 14};
	expect_lives(&few_cpus, &rules, (struct job[]){{0, 5, 2, 0}, {0, 5, 2, 0}, {0, 3, 1, 0}, {0, 3, 1, 0}},
		     (struct life[]){{0, 5, 0, 0}, {5, 10, 0, 0}, {0, 3, 0, 0}, {0, 3, 0, 0}}, 4);
	expect_lives(&little_memory, &rules, (struct job[]){{0, 5, 1, 0}, {0, 5, 1, 0}, {0, 3, 1, 0}},
		     (struct life[]){{0, 5, 0, 0}, {0, 5, 0, 0}, {5, 8, 0, 0}}, 3);
	/* 8 GPUs across two nodes ask for 47.2 GB on each. */
	struct sw_naive_cluster pair = {1, 2, 4, 128, 47};
	expect_lives(&pair, &rules, (struct job[]){{0, 5, 8, 0}}, (struct life[]){{NEVER, NEVER, 0, 0}}, 1);
	pair.mem_gb_per_node = 48;
	expect_lives(&pair, &rules, (struct job[]){{0, 5, 8, 0}}, (struct life[]){{0, 5, 0, 0}}, 1);
}

/* Aim: every event costs every running job its overhead, at most the time since the last event;
 * the last stretch is free. */
static void test_overhead(void **state)
{
	(void)state;
	struct sw_naive_rules rules = sw_naive_rules(SW_NAIVE_SRTF, SW_NAIVE_COUNT);
	/* The first advances 40 s until 50, nothing until 55, and ends 60 s later. The second
	 * advances nothing, then 50 s, and so on. */
	expect_lives(&one_node, &rules, (struct job[]){{0, 100, 1, 10}, {50, 500, 1, 10}, {55, 900, 1, 10}},
		     (struct life[]){{0, 115, 0, 0}, {50, 565, 0, 0}, {55, 975, 0, 0}}, 3);
}

/* Aim: ends within the tolerance are one event at the end of the first in order; others are not. */
static void test_merged_ends(void **state)
{
	(void)state;
	const int64_t far_s = 2000;
	const struct sw_naive_job jobs[] = {{0, to_ns(far_s) + 2000, 0, 1}, {0, to_ns(far_s), 0, 2}, {0, to_ns(far_s) + 2001, 0, 1}};
	struct sw_naive_fate fates[3];
	struct sw_naive_rules rules = sw_naive_rules(SW_NAIVE_SRTF, SW_NAIVE_COUNT);
	rules.merge_ppb = 1;
	assert_int_equal(sw_naive_run(jobs, 3, &one_node, &rules, fates), 0);
	assert_int_equal(fates[0].end_ns, to_ns(far_s));
	assert_int_equal(fates[1].end_ns, to_ns(far_s));
	assert_int_equal(fates[2].end_ns, to_ns(far_s) + 2001);
	/* By GPU time the first two stand before the one with two GPUs, so that it waits
	 * for the first of them. */
	rules.policy = SW_NAIVE_SRSF;
	assert_int_equal(sw_naive_run(jobs, 3, &one_node, &rules, fates), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(fates[i].end_ns, to_ns(far_s) + 2000);
	/* One that is close to two others joins the first of them in the order. */
	const struct sw_naive_job between[] = {{0, to_ns(far_s), 0, 1}, {0, to_ns(far_s) + 1500, 0, 2}, {0, to_ns(far_s) + 3000, 0, 1}};
	assert_int_equal(sw_naive_run(between, 3, &one_node, &rules, fates), 0);
	assert_int_equal(fates[1].end_ns, to_ns(far_s));
	assert_int_equal(fates[2].end_ns, to_ns(far_s) + 3000);
	rules.merge_ppb = 0;
	assert_int_equal(sw_naive_run(jobs, 3, &one_node, &rules, fates), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(fates[i].end_ns, jobs[i].work_ns);
}

/* ---- what others published ---- */

enum world { SIXTY, OCTOBER, MURI };

static const struct {
	const char *trace;
	struct sw_naive_cluster cluster;
	int64_t tolerance_ns; /* muri adds up binary fractions of seconds */
} worlds[] = {
	[SIXTY] = {"tiresias/60_job.csv", {1, 4, 4, 128, 256}, 0},
	[OCTOBER] = {"philly/philly-oct3d-24n8g.csv", {1, 24, 8, 128, 1024}, 0},
	[MURI] = {"muri/trace3.csv.xz", {1, 8, 8, 92, 520}, SW_NS_PER_US},
};

static const struct baseline {
	const char *log;
	const char *average; /* NULL: not in the printed table */
	enum world world;
	enum sw_naive_policy policy;
	enum sw_naive_placement placement;
	int preemptions; /* all jobs together; -1: not printed */
	int64_t promote_milli;
} baselines[] = {
	{"60_n4g4_count_fifo", "200.82", SIXTY, SW_NAIVE_FIFO, SW_NAIVE_COUNT, 0, 0},
	{"60_n4g4_count_fjf", "190.68", SIXTY, SW_NAIVE_FJF, SW_NAIVE_COUNT, 0, 0},
	{"60_n4g4_count_sjf", "198.20", SIXTY, SW_NAIVE_SJF, SW_NAIVE_COUNT, 8, 0},
	{"60_n4g4_count_shortest", "192.12", SIXTY, SW_NAIVE_SRTF, SW_NAIVE_COUNT, 4, 0},
	{"60_n4g4_count_shortest-gpu", "195.90", SIXTY, SW_NAIVE_SRSF, SW_NAIVE_COUNT, 7, 0},
	{"60_n4g4_count_dlas-gpu", "190.68", SIXTY, SW_NAIVE_LAS, SW_NAIVE_COUNT, 0, 0},
	{"60_n4g4_count_dlas-gpu-1", NULL, SIXTY, SW_NAIVE_LAS, SW_NAIVE_COUNT, -1, 1000},
	{"60_n4g4_yarn_fifo", "219.18", SIXTY, SW_NAIVE_FIFO, SW_NAIVE_YARN, -1, 0},
	{"60_n4g4_yarn_fjf", "219.18", SIXTY, SW_NAIVE_FJF, SW_NAIVE_YARN, -1, 0},
	{"60_n4g4_yarn_sjf", "198.20", SIXTY, SW_NAIVE_SJF, SW_NAIVE_YARN, -1, 0},
	{"60_n4g4_yarn_shortest", "192.12", SIXTY, SW_NAIVE_SRTF, SW_NAIVE_YARN, -1, 0},
	{"60_n4g4_yarn_shortest-gpu", "195.90", SIXTY, SW_NAIVE_SRSF, SW_NAIVE_YARN, -1, 0},
	{"60_n4g4_yarn_dlas-gpu", "190.68", SIXTY, SW_NAIVE_LAS, SW_NAIVE_YARN, -1, 0},
	{"60_n4g4_yarn_dlas-gpu-1", NULL, SIXTY, SW_NAIVE_LAS, SW_NAIVE_YARN, -1, 1000},
	{"philly_oct3d_n24g8_count_fifo", "26395.55", OCTOBER, SW_NAIVE_FIFO, SW_NAIVE_COUNT, 0, 0},
	{"philly_oct3d_n24g8_count_fjf", "15007.51", OCTOBER, SW_NAIVE_FJF, SW_NAIVE_COUNT, 0, 0},
	{"philly_oct3d_n24g8_count_sjf", "8069.26", OCTOBER, SW_NAIVE_SJF, SW_NAIVE_COUNT, 82, 0},
	{"philly_oct3d_n24g8_count_shortest", "7986.61", OCTOBER, SW_NAIVE_SRTF, SW_NAIVE_COUNT, 1330, 0},
	{"philly_oct3d_n24g8_count_shortest-gpu", "7326.43", OCTOBER, SW_NAIVE_SRSF, SW_NAIVE_COUNT, 399, 0},
	{"philly_oct3d_n24g8_yarn_fifo", "29813.85", OCTOBER, SW_NAIVE_FIFO, SW_NAIVE_YARN, -1, 0},
	{"philly_oct3d_n24g8_yarn_shortest", "7986.61", OCTOBER, SW_NAIVE_SRTF, SW_NAIVE_YARN, -1, 0},
	{"muri_trace3_n8g8_yarn_shortest", "193081.796", MURI, SW_NAIVE_SRTF, SW_NAIVE_YARN, -1, 0},
	{"muri_trace3_n8g8_yarn_shortest-gpu", "185021.880", MURI, SW_NAIVE_SRSF, SW_NAIVE_YARN, -1, 0},
	{"muri_trace3_n8g8_yarn_dlas-gpu", "347213.248", MURI, SW_NAIVE_LAS, SW_NAIVE_YARN, -1, 0},
};

static struct sw_trace *load(const char *folder, enum world world)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/traces/%s", folder, worlds[world].trace);
	struct sw_trace *trace = NULL;
	struct sw_err err = {0};
	if (sw_trace_load(path, NULL, &trace, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return trace;
}

static struct sw_naive_fate *live(const struct sw_trace *trace, enum world world, const struct sw_naive_rules *rules)
{
	SW_CLEANUP(sw_freep) struct sw_naive_job *jobs = sw_published_jobs(trace);
	struct sw_naive_fate *fates = calloc(trace->jobs.count, sizeof fates[0]);
	assert_non_null(jobs);
	assert_non_null(fates);
	assert_int_equal(sw_naive_run(jobs, trace->jobs.count, &worlds[world].cluster, rules, fates), 0);
	return fates;
}

static double average_jct_s(const struct sw_trace *trace, const struct sw_naive_fate *fates)
{
	__int128 sum_ns = 0;
	for (size_t i = 0; i < trace->jobs.count; i++)
		sum_ns += fates[i].end_ns - trace->jobs.items[i].submit_ns;
	return (double)sum_ns / 1e9 / (double)trace->jobs.count;
}

static size_t index_of(const struct sw_trace *trace, int64_t id)
{
	for (size_t i = 0; i < trace->jobs.count; i++)
		if (trace->jobs.items[i].id == id)
			return i;
	fail_msg("the trace has no job %" PRId64, id);
	return 0;
}

static void expect_log(const struct baseline *baseline, const struct sw_trace *trace, const struct sw_naive_fate *fates)
{
	SW_CLEANUP(sw_freep) struct sw_published_life *lives = NULL;
	size_t count = 0;
	struct sw_err err = {0};
	if (sw_published_lives(sw_published_folder(), baseline->log, &lives, &count, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	assert_int_equal(count, trace->jobs.count);
	int64_t tolerance_ns = worlds[baseline->world].tolerance_ns;
	for (size_t i = 0; i < count; i++) {
		const struct sw_naive_fate *fate = &fates[index_of(trace, lives[i].id)];
		if (llabs(fate->start_ns - lives[i].start_ns) > tolerance_ns || llabs(fate->end_ns - lives[i].end_ns) > tolerance_ns)
			fail_msg("%s: job %" PRId64 " ran from %" PRId64 " to %" PRId64 " ns, published %" PRId64 " to %" PRId64,
				 baseline->log, lives[i].id, fate->start_ns, fate->end_ns, lives[i].start_ns, lives[i].end_ns);
		if (baseline->world != MURI && (fate->preemptions != lives[i].preemptions || fate->promotions != lives[i].promotions))
			fail_msg("%s: job %" PRId64 " had %u preemptions and %u promotions, published %" PRId64 " and %" PRId64,
				 baseline->log, lives[i].id, fate->preemptions, fate->promotions, lives[i].preemptions,
				 lives[i].promotions);
	}
}

static void expect_table(const struct baseline *baseline, const struct sw_trace *trace, const struct sw_naive_fate *fates)
{
	if (baseline->average != NULL) {
		char average[64];
		snprintf(average, sizeof average, baseline->world == MURI ? "%.3f" : "%.2f", average_jct_s(trace, fates));
		if (strcmp(average, baseline->average) != 0)
			fail_msg("%s: average %s, published %s", baseline->log, average, baseline->average);
	}
	int preemptions = 0;
	for (size_t i = 0; i < trace->jobs.count; i++)
		preemptions += (int)fates[i].preemptions;
	if (baseline->preemptions >= 0)
		assert_int_equal(preemptions, baseline->preemptions);
}

/* Aim: every job of every published log starts and ends when it was published to, and the averages
 * agree to the printed digit. */
static void test_published(void **state)
{
	(void)state;
	const char *folder = sw_published_folder();
	if (folder == NULL)
		skip();
	for (size_t i = 0; i < COUNT_OF(baselines); i++) {
		const struct baseline *baseline = &baselines[i];
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = load(folder, baseline->world);
		struct sw_naive_rules rules = sw_naive_rules(baseline->policy, baseline->placement);
		rules.promote_milli = baseline->promote_milli;
		rules.merge_ppb = baseline->world == MURI ? 1 : 0;
		SW_CLEANUP(sw_freep) struct sw_naive_fate *fates = live(trace, baseline->world, &rules);
		expect_log(baseline, trace, fates);
		expect_table(baseline, trace, fates);
	}
}

/* Aim: las on the three October days is within 2 % of a simulator that demotes late by mistake. */
static void test_published_las(void **state)
{
	(void)state;
	const char *folder = sw_published_folder();
	if (folder == NULL)
		skip();
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = load(folder, OCTOBER);
	struct sw_naive_rules rules = sw_naive_rules(SW_NAIVE_LAS, SW_NAIVE_COUNT);
	SW_CLEANUP(sw_freep) struct sw_naive_fate *fates = live(trace, OCTOBER, &rules);
	double average_s = average_jct_s(trace, fates);
	if (average_s < 7889.74 * 0.98 || average_s > 7889.74 * 1.02)
		fail_msg("average %.2f, published 7889.74", average_s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arrival_order),
		cmocka_unit_test(test_end_meets_arrival),
		cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_ties),
		cmocka_unit_test(test_worked_example),
		cmocka_unit_test(test_las_demotion),
		cmocka_unit_test(test_las_promotion),
		cmocka_unit_test(test_las_backfill),
		cmocka_unit_test(test_las_ignores_placement),
		cmocka_unit_test(test_yarn_shape),
		cmocka_unit_test(test_yarn_cpus_and_memory),
		cmocka_unit_test(test_overhead),
		cmocka_unit_test(test_merged_ends),
		cmocka_unit_test(test_published),
		cmocka_unit_test(test_published_las),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
