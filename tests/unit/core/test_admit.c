/* What happens at the door: a policy accepts, downgrades, quotes another deadline or refuses; and
 * what it hears of runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scripted.h"

static struct sw_admission verdict;
static struct sw_sample heard;
static uint32_t submits;
static bool sets_alarms;

static void on_admit(struct sw_view *view, const struct sw_job *job, struct sw_admission *admission)
{
	uint32_t *own = sw_job_state(view, job);
	assert_int_equal(*own, 0);
	*own = 7;
	assert_int_equal(admission->verdict, SW_ACCEPT);
	*admission = verdict;
	if (sets_alarms)
		sw_alarm_set(view, job, 10 * SW_NS_PER_S, 0);
}

static void on_submit(struct sw_view *view, const struct sw_job *job)
{
	assert_int_equal(*(uint32_t *)sw_job_state(view, job), 7);
	submits++;
}

static void on_sampled(struct sw_view *view, const struct sw_job *job, const struct sw_sample *sample)
{
	(void)view;
	assert_int_equal(job->state, SW_JOB_RUNNING);
	heard = *sample;
}

static const struct sw_policy choosy = {.abi = SW_POLICY_ABI,
					.name = "choosy",
					.about = "as the test says",
					.job_state_size = sizeof(uint32_t),
					.admit = on_admit,
					.submit = on_submit,
					.sampled = on_sampled,
					.decide = scripted_decide};

static void open_choosy(struct rig *rig)
{
	script = NULL;
	submits = 0;
	sets_alarms = false;
	verdict = (struct sw_admission){0};
	heard = (struct sw_sample){0};
	rig_open(rig, two_by_two, 2, (struct sw_engine_config){.policy = &choosy, .misuse_limit = 1000}, NULL);
}

static void submit_with(struct rig *rig, uint8_t what, sw_ns deadline_at, const char *reason)
{
	struct sw_job_spec spec = rig_spec(1, 100);
	spec.deadline_at = 50 * SW_NS_PER_S;
	verdict.verdict = what;
	verdict.deadline_at = deadline_at;
	snprintf(verdict.reason, sizeof verdict.reason, "%s", reason);
	rig_submit(rig, 0, &spec);
}

/* Aim: an accepted job is as it asked to be, and no command tells of it. */
static void test_accept(void **state)
{
	(void)state;
	struct rig rig;
	open_choosy(&rig);
	submit_with(&rig, SW_ACCEPT, 0, "");
	assert_int_equal(rig_commands(&rig), 0);
	assert_int_equal(submits, 1);
	assert_int_equal(rig_job(&rig, 0)->deadline_at, 50 * SW_NS_PER_S);
	rig_close(&rig);
}

/* Aim: a downgraded job is opportunistic from the start, and the driver hears why. */
static void test_downgrade(void **state)
{
	(void)state;
	struct rig rig;
	open_choosy(&rig);
	submit_with(&rig, SW_DOWNGRADE, 0, "too late for a guarantee");
	assert_int_equal(rig_commands(&rig), 1);
	assert_string_equal(rig_command(&rig, SW_CMD_ADMIT, 0)->text, "too late for a guarantee");
	assert_int_equal(rig_job(&rig, 0)->job_class, SW_CLASS_OPPORTUNISTIC);
	assert_int_equal(rig_job(&rig, 0)->asked_class, SW_CLASS_OPPORTUNISTIC);
	assert_int_equal(rig_state(&rig, 0), SW_JOB_WAITING);
	rig_close(&rig);
}

/* Aim: any job whose owner allows a stop is downgraded, also one that is only to be suspended where
 * that frees its GPUs. */
static void test_downgrade_by_rule(void **state)
{
	(void)state;
	struct rig rig;
	open_choosy(&rig);
	verdict.verdict = SW_DOWNGRADE;
	for (uint8_t rule = SW_STOP_AS_WORLD; rule <= SW_STOP_IF_FREE; rule++) {
		struct sw_job_spec spec = rig_spec(1, 100);
		spec.stop_rule = rule;
		uint32_t id = rig_submit(&rig, 0, &spec);
		enum sw_job_class is = rule == SW_STOP_NEVER ? SW_CLASS_GUARANTEED : SW_CLASS_OPPORTUNISTIC;
		assert_int_equal(rig_job(&rig, id)->job_class, is);
		assert_int_equal(rig_job(&rig, id)->stop_rule, rule == SW_STOP_IF_FREE ? SW_STOP_SUSPEND : rule);
	}
	rig_close(&rig);
}

/* Aim: a job that is let in and has no place is refused for that, without the policy's words. */
static void test_admitted_without_place(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_job_spec spec = rig_spec(1, 100);
	open_choosy(&rig);
	spec.gpu_memory_bytes = 500 * RIG_GIB; /* of a GPU that is not there */
	verdict.verdict = SW_DOWNGRADE;
	snprintf(verdict.reason, sizeof verdict.reason, "too late for a guarantee");
	rig_submit(&rig, 0, &spec);
	const struct sw_command *refusal = rig_command(&rig, SW_CMD_REFUSE, 0);
	assert_non_null(refusal);
	assert_int_equal(refusal->reason, SW_REASON_NO_SUCH_PLACE);
	assert_null(refusal->text);
	rig_close(&rig);
}

/* Aim: a quoted deadline takes the place of the one that was asked for. */
static void test_quote(void **state)
{
	(void)state;
	struct rig rig;
	open_choosy(&rig);
	submit_with(&rig, SW_QUOTE, 90 * SW_NS_PER_S, "ready by then");
	assert_string_equal(rig_command(&rig, SW_CMD_ADMIT, 0)->text, "ready by then");
	assert_int_equal(rig_job(&rig, 0)->deadline_at, 90 * SW_NS_PER_S);
	rig_close(&rig);
}

/* Aim: a refused job ends at once with the policy's reason, is never submitted to it, and leaves
 * nothing of its bytes. */
static void test_refuse(void **state)
{
	(void)state;
	struct rig rig;
	open_choosy(&rig);
	submit_with(&rig, SW_REFUSE, 0, "its deadline cannot be met");
	const struct sw_command *refusal = rig_command(&rig, SW_CMD_REFUSE, 0);
	assert_non_null(refusal);
	assert_int_equal(refusal->reason, SW_REASON_NOT_ADMITTED);
	assert_string_equal(refusal->text, "its deadline cannot be met");
	assert_int_equal(rig_state(&rig, 0), SW_JOB_REFUSED);
	assert_int_equal(submits, 0);
	assert_int_equal(*(uint32_t *)sw_job_state((struct sw_view *)(uintptr_t)sw_engine_view(rig.engine), rig_job(&rig, 0)), 0);
	rig_close(&rig);
}

/* Aim: an alarm that the policy sets at the door is gone with a job that it refuses, and rings for
 * one that it accepts. */
static void test_alarm_at_the_door(void **state)
{
	(void)state;
	for (int refuses = 0; refuses < 2; refuses++) {
		struct rig rig;
		open_choosy(&rig);
		sets_alarms = true;
		submit_with(&rig, refuses ? SW_REFUSE : SW_ACCEPT, 0, "");
		assert_int_equal(rig.step.wake_at, refuses ? SW_TIME_NEVER : 10 * SW_NS_PER_S);
		rig_tick(&rig, 10);
		assert_int_equal(rig.step.wake_at, SW_TIME_NEVER);
		rig_close(&rig);
	}
}

/* Aim: a verdict that makes no sense (none that is known, an earlier deadline, a downgrade of a job
 * that may not be stopped) is misuse, and the job is accepted as it is. */
static void test_nonsense(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_job_spec spec = rig_spec(1, 100);
	open_choosy(&rig);
	submit_with(&rig, SW_REFUSE + 1, 0, "what");
	submit_with(&rig, SW_QUOTE, 40 * SW_NS_PER_S, "sooner");
	verdict.verdict = SW_DOWNGRADE;
	spec.stop_rule = SW_STOP_NEVER;
	rig_submit(&rig, 0, &spec);
	assert_int_equal(rig_commands(&rig), 0);
	for (uint32_t id = 0; id < 3; id++) {
		assert_int_equal(rig_state(&rig, id), SW_JOB_WAITING);
		assert_int_equal(rig_job(&rig, id)->job_class, SW_CLASS_GUARANTEED);
	}
	assert_int_equal(rig_job(&rig, 1)->deadline_at, 50 * SW_NS_PER_S);
	rig_close(&rig);
}

/* Aim: what is measured of a run reaches the policy; of a run that is over, it does not. */
static void test_sampled(void **state)
{
	(void)state;
	const struct sw_sample sample = {.progress_ppm = 250000, .speed_milli = 900, .loss_micro = -3, .noise_micro = INT64_MIN};
	struct rig rig;
	open_choosy(&rig);
	submit_with(&rig, SW_ACCEPT, 0, "");
	run_script(&rig, 1, start_first);
	struct sw_event event = rig_answer(&rig, SW_EV_SAMPLE, 0);
	event.sample = &sample;
	event.epoch++;
	rig_event(&rig, 2, event);
	assert_int_equal(heard.progress_ppm, 0);
	event.epoch--;
	rig_event(&rig, 3, event);
	assert_int_equal(heard.progress_ppm, 250000);
	assert_int_equal(heard.loss_micro, -3);
	struct sw_err err = {0};
	event.sample = NULL;
	assert_true(sw_engine_step(rig.engine, 4 * SW_NS_PER_S, &event, 1, &rig.step, &err) < 0);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_downgrade_by_rule),
		cmocka_unit_test(test_admitted_without_place),
		cmocka_unit_test(test_accept),
		cmocka_unit_test(test_downgrade),
		cmocka_unit_test(test_quote),
		cmocka_unit_test(test_refuse),
		cmocka_unit_test(test_alarm_at_the_door),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_sampled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
