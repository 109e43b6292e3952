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
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
