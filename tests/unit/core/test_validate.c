/* The validator must find what is wrong: each test breaks one promise behind the engine's back and
 * expects to hear its number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/state.h"
#include "rig.h"

static const struct sw_topology_node two_by_two[] = {RIG_NODE(0, 2), RIG_NODE(0, 2)};

/* Jobs 0 (3 GPUs) and 1 (1 GPU) run, job 2 waits, job 3 has ended. */
static void open_busy(struct rig *rig, const struct sw_policy *policy)
{
	rig_open(rig, two_by_two, 2, (struct sw_engine_config){.policy = policy}, NULL);
	rig_submit_plain(rig, 0, 3, 100);
	rig_submit_plain(rig, 0, 1, 100);
	rig_submit_plain(rig, 0, 4, 1000);
	rig_submit_plain(rig, 0, 4, 1000);
	rig_event(rig, 1, (struct sw_event){.kind = SW_EV_CANCEL, .job = {3}});
	assert_true(rig_runs(rig, 0) && rig_runs(rig, 1) && rig_state(rig, 2) == SW_JOB_WAITING);
}

static struct sw_core_job *job_at(struct rig *rig, uint32_t id)
{
	return &rig->engine->jobs.items[id];
}

/* Broken now; whole again once `mend` is done. */
static void expect_broken(struct rig *rig, const char *words)
{
	struct sw_err err = {0};
	assert_int_equal(sw_engine_validate(rig->engine, &err), SW_EBUG);
	if (strstr(err.fact, words) == NULL)
		fail_msg("'%s' does not say '%s'", err.fact, words);
}

static void expect_whole(struct rig *rig)
{
	struct sw_err err = {0};
	rig_must(sw_engine_validate(rig->engine, &err), &err);
}

/* Aim: invariant 1: a running job holds what it was started with, and no other holds anything. */
static void test_holdings_of_jobs(void **state)
{
	(void)state;
	struct rig rig;
	open_busy(&rig, &sw_policy_srtf);
	job_at(&rig, 0)->seen.gpus_held = 2;
	expect_broken(&rig, "invariant 1");
	job_at(&rig, 0)->seen.gpus_held = 3;
	job_at(&rig, 0)->seen.max_gpus = 2;
	expect_broken(&rig, "invariant 1");
	job_at(&rig, 0)->seen.max_gpus = 3;
	job_at(&rig, 2)->seen.gpus_held = 1;
	expect_broken(&rig, "invariant 1");
	job_at(&rig, 2)->seen.gpus_held = 0;
	job_at(&rig, 3)->parts = job_at(&rig, 0)->parts;
	expect_broken(&rig, "invariant 1");
	job_at(&rig, 3)->parts = SW_NO_PART;
	expect_whole(&rig);
	rig_close(&rig);
}

/* Aim: invariant 2: two jobs do not hold the same, and the ledger says what
 * the holdings add up to. */
static void test_ledger(void **state)
{
	(void)state;
	struct rig rig;
	open_busy(&rig, &sw_policy_srtf);
	struct sw_ledger *ledger = &rig.engine->ledger;
	uint64_t *mask = &ledger->parts[job_at(&rig, 1)->parts].mask, kept = *mask;
	*mask = 1; /* where job 0 is */
	expect_broken(&rig, "");
	*mask = kept;
	expect_whole(&rig);
	ledger->gpus[0].memory_held_bytes--;
	expect_broken(&rig, "does not match its holdings");
	ledger->gpus[0].memory_held_bytes++;
	ledger->gpus[0].residents++;
	expect_broken(&rig, "does not match its holdings");
	ledger->gpus[0].residents--;
	ledger->nodes[0].cpus_free--;
	expect_broken(&rig, "node 0 does not match");
	ledger->nodes[0].cpus_free++;
	ledger->nodes[1].free ^= 2;
	expect_broken(&rig, "node 1 does not match");
	ledger->nodes[1].free ^= 2;
	ledger->gpus_free++;
	expect_broken(&rig, "totals");
	ledger->gpus_free--;
	ledger->gpus_up--;
	expect_broken(&rig, "totals");
	ledger->gpus_up++;
	sw_bitmap_add(&ledger->buckets[1], 0);
	expect_broken(&rig, "wrong bucket");
	sw_bitmap_remove(&ledger->buckets[1], 0);
	expect_whole(&rig);
	rig_close(&rig);
}

/* Aim: invariant 3: no job runs on a node that is down. */
static void test_dead_nodes(void **state)
{
	(void)state;
	struct rig rig;
	open_busy(&rig, &sw_policy_srtf);
	sw_ledger_set_up(&rig.engine->ledger, 1, false);
	expect_broken(&rig, "invariant 3");
	sw_ledger_set_up(&rig.engine->ledger, 1, true);
	expect_whole(&rig);
	rig_close(&rig);
}

/* Aim: invariant 4: the lists of waiting and running jobs are those of their states. */
static void test_lists(void **state)
{
	(void)state;
	struct rig rig;
	open_busy(&rig, &sw_policy_srtf);
	sw_bitmap_remove(&rig.engine->running, 0);
	expect_broken(&rig, "invariant 4");
	sw_bitmap_add(&rig.engine->running, 0);
	sw_bitmap_add(&rig.engine->waiting, 3);
	expect_broken(&rig, "invariant 4");
	sw_bitmap_remove(&rig.engine->waiting, 3);
	job_at(&rig, 2)->seen.state = SW_JOB_HELD;
	expect_broken(&rig, "invariant 4");
	job_at(&rig, 2)->seen.state = SW_JOB_WAITING;
	expect_whole(&rig);
	rig_close(&rig);
}

/* Aim: invariant 5: a tenant's account is what its jobs hold. */
static void test_accounts(void **state)
{
	(void)state;
	struct rig rig;
	open_busy(&rig, &sw_policy_srtf);
	rig.engine->tenants.items[0].held++;
	expect_broken(&rig, "invariant 5");
	rig.engine->tenants.items[0].held--;
	expect_whole(&rig);
	rig_close(&rig);
}

/* Aim: invariant 6: nothing began in the future, no alarm is left in the past or wakes
 * none, no plan is left open. */
static void test_time(void **state)
{
	(void)state;
	struct rig rig;
	open_busy(&rig, &sw_policy_srtf);
	sw_ns since = job_at(&rig, 0)->seen.since;
	job_at(&rig, 0)->seen.since = rig.engine->now + 1;
	expect_broken(&rig, "invariant 6");
	job_at(&rig, 0)->seen.since = since;
	sw_alarm_put(rig.engine, job_at(&rig, 0), rig.engine->now, 0);
	expect_broken(&rig, "invariant 6");
	sw_alarm_put(rig.engine, job_at(&rig, 0), rig.engine->now + 1, 5);
	expect_whole(&rig);
	sw_heap_set(&rig.engine->latest, 0, rig.engine->now + 7);
	expect_broken(&rig, "invariant 6");
	sw_heap_remove(&rig.engine->latest, 0);
	expect_broken(&rig, "invariant 6");
	sw_alarm_drop(rig.engine, 0);
	job_at(&rig, 0)->plan_slot = 0;
	expect_broken(&rig, "invariant 6");
	job_at(&rig, 0)->plan_slot = SW_NO_SLOT;
	expect_whole(&rig);
	rig_close(&rig);
}

/* Aim: invariant 7: the order lists each job that competes, once, sorted, and marked as what it
 * is. */
static void test_order(void **state)
{
	(void)state;
	struct rig rig;
	open_busy(&rig, &sw_policy_srtf);
	struct sw_order_book *book = &rig.engine->order;
	struct sw_lane *lane = &book->lanes.items[job_at(&rig, 2)->lane];
	int64_t key = book->links.items[2].key, stamp = book->links.items[2].stamp;
	sw_oset_remove(&lane->waiting, &book->links, 2);
	expect_broken(&rig, "invariant 7");
	sw_oset_insert(&lane->waiting, &book->links, 2, key, stamp);
	expect_whole(&rig);
	sw_oset_mark(&book->links, 2, SW_MARK_FRESH);
	expect_broken(&rig, "invariant 7");
	sw_oset_mark(&book->links, 2, 0);
	expect_whole(&rig);
	uint32_t other = rig_submit_plain(&rig, 2, 4, 2000); /* behind job 2 */
	book->links.items[other].key = key - 1;
	expect_broken(&rig, "not sorted");
	rig_close(&rig);
}

/* Job 0 is suspended on GPU 0. Jobs 1 and 2 run on GPUs 1 and 2; job 1 is on its way to GPU 3. */
static void open_live(struct rig *rig)
{
	static const struct sw_topology_node four_gpus[] = {RIG_NODE(0, 4)};
	struct sw_job_spec spec = rig_spec(1, 1000);
	struct sw_event keeps, move;
	spec.prefers_home = true;
	spec.stop_rule = SW_STOP_SUSPEND;
	rig_open(rig, four_gpus, 1,
		 (struct sw_engine_config){.policy = &sw_policy_srtf, .placement = &sw_placement_pack, .terms.moves = SW_MOVES_RESTART},
		 NULL);
	for (uint32_t id = 0; id < 3; id++) {
		rig_submit(rig, 0, &spec);
		rig_event(rig, 0, rig_answer(rig, SW_EV_BEGUN, id));
	}
	keeps = rig_answer(rig, SW_EV_KEEPS, 0);
	keeps.gpus = 1;
	keeps.frees = true;
	rig_event(rig, 1, keeps);
	rig_event(rig, 2, (struct sw_event){.kind = SW_EV_HOLD, .job = {0}});
	move = rig_answer(rig, SW_EV_MOVE, 1);
	move.mask = 8;
	rig_event(rig, 3, move);
	assert_int_equal(job_at(rig, 0)->stands, job_at(rig, 0)->home);
	assert_int_equal(job_at(rig, 1)->leaves, 2);
}

/* Aim: invariant 8: only a job that is off its GPUs and prefers them has a home, which the ledger
 * marks. */
static void test_homes(void **state)
{
	(void)state;
	struct rig rig;
	open_live(&rig);
	job_at(&rig, 0)->prefers_home = false;
	expect_broken(&rig, "invariant 8");
	job_at(&rig, 0)->prefers_home = true;
	job_at(&rig, 2)->home = job_at(&rig, 2)->parts;
	expect_broken(&rig, "invariant 8");
	job_at(&rig, 2)->home = SW_NO_PART;
	sw_ledger_mark_home(&rig.engine->ledger, job_at(&rig, 0)->home, false);
	expect_broken(&rig, "is the home of others");
	sw_ledger_mark_home(&rig.engine->ledger, job_at(&rig, 0)->home, true);
	expect_whole(&rig);
	rig_close(&rig);
}

/* Aim: invariant 9: a run stands at its home where its owner lets it, and nowhere else, and the
 * ledger and the counts say so. */
static void test_standing(void **state)
{
	(void)state;
	struct rig rig;
	open_live(&rig);
	uint32_t stands = job_at(&rig, 0)->stands;
	job_at(&rig, 0)->stands = SW_NO_PART;
	expect_broken(&rig, "invariant 9");
	job_at(&rig, 0)->stands = stands;
	job_at(&rig, 0)->seen.stop_rule = SW_STOP_RESTART;
	expect_broken(&rig, "invariant 9");
	job_at(&rig, 0)->seen.stop_rule = SW_STOP_SUSPEND;
	sw_ledger_stand(&rig.engine->ledger, stands, sw_engine_standing_share(job_at(&rig, 0)), false);
	expect_broken(&rig, "");
	sw_ledger_stand(&rig.engine->ledger, stands, sw_engine_standing_share(job_at(&rig, 0)), true);
	uint32_t *const counts[] = {&rig.engine->standers, &rig.engine->ruled};
	for (size_t c = 0; c < 2; c++) {
		--*counts[c];
		expect_broken(&rig, "invariant 9");
		++*counts[c];
	}
	expect_whole(&rig);
	rig_close(&rig);
}

/* Aim: invariant 10: a run that is on its way has begun, leaves as many other GPUs as it holds, and
 * its driver was told; such runs are counted. */
static void test_moves(void **state)
{
	(void)state;
	struct rig rig;
	open_live(&rig);
	static const uint64_t wrong[] = {8, 5, 16}; /* where it is, two, none of the node's */
	for (size_t w = 0; w < 3; w++) {
		job_at(&rig, 1)->leaves = wrong[w];
		expect_broken(&rig, "invariant 10");
	}
	job_at(&rig, 1)->leaves = 2;
	job_at(&rig, 1)->begun = false;
	expect_broken(&rig, "invariant 10");
	job_at(&rig, 1)->begun = true;
	job_at(&rig, 1)->told_at = job_at(&rig, 1)->move_at - 1;
	expect_broken(&rig, "invariant 10");
	job_at(&rig, 1)->told_at = job_at(&rig, 1)->move_at;
	job_at(&rig, 2)->told_at = 1;
	expect_broken(&rig, "invariant 10");
	job_at(&rig, 2)->told_at = 0;
	rig.engine->leavers++;
	expect_broken(&rig, "invariant 10");
	rig.engine->leavers--;
	expect_whole(&rig);
	rig_close(&rig);
}

static void list_job(struct sw_view *view, const struct sw_job *job)
{
	sw_list_append(view, 0, job);
}

static sw_ns decide_nothing(struct sw_plan *plan)
{
	(void)plan;
	return SW_TIME_NEVER;
}

static const struct sw_policy listing = {.abi = SW_POLICY_ABI,
					 .name = "listing",
					 .about = "keeps a list and starts nothing",
					 .list_count = 1,
					 .submit = list_job,
					 .decide = decide_nothing};

/* Aim: invariant 11: a policy's list leads from its first job to its last and back, and has none
 * that has ended. */
static void test_policy_lists(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, two_by_two, 2, (struct sw_engine_config){.policy = &listing}, NULL);
	for (int j = 0; j < 3; j++)
		rig_submit_plain(&rig, 0, 1, 100);
	/* The first and the last of the list; before and after each job; by numbers from 1 on. */
	uint32_t *ends = rig.engine->policy_state, *links = (uint32_t *)(void *)rig.engine->job_states;
	const struct {
		uint32_t *at, value;
	} breaks[] = {{&ends[0], 2}, {&ends[1], 2}, {&links[1], 3}, {&links[2], 0}, {&links[5], 1}};
	for (size_t b = 0; b < sizeof breaks / sizeof *breaks; b++) {
		uint32_t kept = *breaks[b].at;
		*breaks[b].at = breaks[b].value;
		expect_broken(&rig, "invariant 11");
		*breaks[b].at = kept;
		expect_whole(&rig);
	}
	rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_CANCEL, .job = {2}});
	expect_whole(&rig);
	ends[1] = links[3] = 3;
	links[4] = 2;
	expect_broken(&rig, "invariant 11");
	rig_close(&rig);
}

/* Aim: jobs that keep off a node are counted: a cluster that shrinks looks for as many. */
static void test_avoiders(void **state)
{
	(void)state;
	struct rig rig;
	open_busy(&rig, &sw_policy_srtf);
	uint32_t job = rig_submit_plain(&rig, 2, 1, 1000);
	rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_CHANGE, .job = {job}, .avoid = 1});
	assert_int_equal(rig.engine->avoiders, 1);
	rig.engine->avoiders--;
	expect_broken(&rig, "invariant 7");
	rig.engine->avoiders++;
	expect_whole(&rig);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_holdings_of_jobs),
		cmocka_unit_test(test_ledger),
		cmocka_unit_test(test_dead_nodes),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_accounts),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_homes),
		cmocka_unit_test(test_standing),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_policy_lists),
		cmocka_unit_test(test_avoiders),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
