/* Leases: a run until a moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/state.h"
#include "scripted.h"

static uint32_t expired_count;
static sw_ns expired_at;
static uint32_t changes;

static void on_expired(struct sw_view *view, const struct sw_job *job)
{
	assert_int_equal(job->state, SW_JOB_RUNNING);
	expired_count++;
	expired_at = sw_view_now(view);
}

static sw_ns leasing_decide(struct sw_plan *plan)
{
	changes = sw_view_changes(sw_plan_view(plan));
	return scripted_decide(plan);
}

static const struct sw_policy leasing = {
	.abi = SW_POLICY_ABI, .name = "leasing", .about = "leases", .expired = on_expired, .decide = leasing_decide};

static void open_leasing(struct rig *rig, sw_ns quantum_ns)
{
	expired_count = 0;
	script = NULL;
	rig_open(rig, two_by_two, 2,
		 (struct sw_engine_config){.policy = &leasing, .terms = {.keeps_state = true, .quantum_ns = quantum_ns}}, NULL);
}

static void start_for_ten(struct sw_plan *plan)
{
	const struct sw_job *job = job_of(plan, 0);
	sw_ns now = sw_view_now(sw_plan_view(plan));
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.until = now)), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.until = -1)), SW_MISUSE);
	assert_int_equal(sw_plan_run(plan, job, SW_WISH(.until = now + 10 * SW_NS_PER_S)), SW_YES);
	assert_int_equal(job->until, now + 10 * SW_NS_PER_S);
}

static void stop_too_soon(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_TOO_SOON);
}

static void stop_first(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_stop(plan, job_of(plan, 0), SW_PREEMPT), SW_YES);
}

/* Aim: the engine wakes at the end of a lease, the policy hears of it once, and the run, which goes
 * on, may be stopped then though many preemptions protect it for longer. */
static void test_lease_ends(void **state)
{
	(void)state;
	struct rig rig;
	open_leasing(&rig, 0);
	struct sw_terms terms = *sw_engine_terms(rig.engine);
	terms.preemption_cost_ns = 1000 * SW_NS_PER_S;
	assert_int_equal(sw_engine_set_terms(rig.engine, &terms, NULL), 0);
	rig_submit_plain(&rig, 0, 1, 500);
	rig.engine->jobs.items[0].seen.preemptions = SW_PREEMPTIONS_PER_STEP;
	run_script(&rig, 1, start_for_ten);
	assert_int_equal(rig.step.wake_at, 11 * SW_NS_PER_S);
	run_script(&rig, 5, stop_too_soon);
	assert_int_equal(expired_count, 0);
	run_script(&rig, 11, stop_first);
	assert_int_equal(expired_count, 1);
	assert_int_equal(expired_at, 11 * SW_NS_PER_S);
	assert_true((changes & SW_CHANGE_LEASES) != 0);
	assert_false(rig_runs(&rig, 0));
	assert_int_equal(rig_job(&rig, 0)->until, SW_TIME_NEVER);
	rig_tick(&rig, 20);
	assert_int_equal(expired_count, 1);
	rig_close(&rig);
}

/* Aim: the minimum run time is the operator's: a lease that ends before it does not undercut it,
 * and the engine wakes when it is over. */
static void test_lease_does_not_undercut_the_quantum(void **state)
{
	(void)state;
	struct rig rig;
	open_leasing(&rig, 60 * SW_NS_PER_S);
	rig_submit_plain(&rig, 0, 1, 500);
	run_script(&rig, 1, start_for_ten);
	run_script(&rig, 11, stop_too_soon);
	assert_int_equal(expired_count, 1);
	assert_int_equal(rig.step.wake_at, 61 * SW_NS_PER_S);
	run_script(&rig, 61, stop_first);
	assert_false(rig_runs(&rig, 0));
	rig_close(&rig);
}

static void renew(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.until = 30 * SW_NS_PER_S)), SW_YES);
}

static void move_away(struct sw_plan *plan)
{
	assert_int_equal(sw_plan_run(plan, job_of(plan, 0), SW_WISH(.where = sw_on((struct sw_node_id){1}))), SW_YES);
}

/* Aim: a lease is renewed without a command, lasts through a move, and ends with the run. */
static void test_lease_is_renewed(void **state)
{
	(void)state;
	struct rig rig;
	open_leasing(&rig, 0);
	rig_submit_plain(&rig, 0, 1, 500);
	run_script(&rig, 1, start_for_ten);
	run_script(&rig, 5, renew);
	assert_int_equal(rig_commands(&rig), 0);
	assert_int_equal(rig.step.wake_at, 30 * SW_NS_PER_S);
	run_script(&rig, 6, move_away);
	assert_string_equal(rig_place(&rig, 0), "1:1");
	assert_int_equal(rig_job(&rig, 0)->until, 30 * SW_NS_PER_S);
	rig_tick(&rig, 11);
	assert_int_equal(expired_count, 0);
	rig_event(&rig, 20, rig_answer(&rig, SW_EV_FINISH, 0));
	assert_int_equal(rig.step.wake_at, SW_TIME_NEVER);
	rig_tick(&rig, 40);
	assert_int_equal(expired_count, 0);
	rig_close(&rig);
}

static void start_and_stop(struct sw_plan *plan)
{
	start_for_ten(plan);
	stop_first(plan);
}

/* Aim: a start that is taken back in the same decision leaves no lease. */
static void test_no_lease_without_a_run(void **state)
{
	(void)state;
	struct rig rig;
	open_leasing(&rig, 0);
	rig_submit_plain(&rig, 0, 1, 500);
	run_script(&rig, 1, start_and_stop);
	assert_int_equal(rig_job(&rig, 0)->until, SW_TIME_NEVER);
	assert_int_equal(rig.step.wake_at, SW_TIME_NEVER);
	rig_close(&rig);
}

/* Aim: a lease is saved and loaded, and ends at its moment all the same. */
static void test_saved(void **state)
{
	(void)state;
	struct sw_err err = {0};
	struct sw_pack bytes = {0};
	struct rig rig;
	bool adopted;
	open_leasing(&rig, 0);
	rig_submit_plain(&rig, 0, 1, 500);
	run_script(&rig, 1, start_for_ten);
	sw_engine_save(rig.engine, &bytes);
	struct sw_engine *loaded = NULL;
	const struct sw_engine_config config = {
		.policy = &leasing, .params = rig.params, .placement = &sw_placement_count, .terms = {.keeps_state = true}};
	rig_must(sw_engine_load(&config, bytes.bytes, bytes.size, &loaded, &adopted, &err), &err);
	assert_false(adopted);
	sw_engine_free(rig.engine);
	rig.engine = loaded;
	rig_tick(&rig, 2);
	assert_int_equal(rig.step.wake_at, 11 * SW_NS_PER_S);
	rig_tick(&rig, 11);
	assert_int_equal(expired_count, 1);
	sw_pack_release(&bytes);
	rig_close(&rig);
}

static sw_ns ordering_decide(struct sw_plan *plan)
{
	(void)scripted_decide(plan);
	sw_plan_by_order(plan);
	return SW_TIME_NEVER;
}

static int64_t by_number(struct sw_view *view, const struct sw_job *job)
{
	(void)view;
	return job->id.v;
}

static const struct sw_order preemptive = {.preemptive = true};
static const struct sw_policy ordering = {.abi = SW_POLICY_ABI,
					  .name = "ordering",
					  .about = "leases in an order",
					  .order = &preemptive,
					  .key = by_number,
					  .decide = ordering_decide};

/* Aim: a lease lasts where all running jobs are laid out anew, and is renewed there. */
static void test_lease_is_kept_by_order(void **state)
{
	(void)state;
	struct rig rig;
	script = NULL;
	rig_open(&rig, two_by_two, 2,
		 (struct sw_engine_config){.policy = &ordering,
					   .placement = &sw_placement_yarn,
					   .terms = {.keeps_state = true, .replace_is_free = true, .moves = SW_MOVES_FREELY}},
		 NULL);
	rig_submit_plain(&rig, 0, 1, 500);
	assert_true(rig_runs(&rig, 0));
	run_script(&rig, 5, renew);
	assert_int_equal(rig_job(&rig, 0)->until, 30 * SW_NS_PER_S);
	assert_int_equal(rig.step.wake_at, 30 * SW_NS_PER_S);
	rig_submit_plain(&rig, 6, 2, 500);
	assert_true(rig_runs(&rig, 1));
	assert_int_equal(rig_job(&rig, 0)->until, 30 * SW_NS_PER_S);
	assert_int_equal(rig.step.wake_at, 30 * SW_NS_PER_S);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lease_ends),
		cmocka_unit_test(test_lease_does_not_undercut_the_quantum),
		cmocka_unit_test(test_lease_is_renewed),
		cmocka_unit_test(test_no_lease_without_a_run),
		cmocka_unit_test(test_saved),
		cmocka_unit_test(test_lease_is_kept_by_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
