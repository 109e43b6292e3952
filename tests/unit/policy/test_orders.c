/* The policies that are nothing but an order: which job goes first, and which must go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "unit/core/rig.h"

static const struct sw_topology_node four_gpus[] = {RIG_NODE(0, 4)};

static uint32_t running(const struct rig *rig)
{
	uint32_t bits = 0;
	for (uint32_t id = 0; id < sw_engine_job_count(rig->engine); id++)
		bits |= (uint32_t)rig_runs(rig, id) << id;
	return bits;
}

/* Aim: on one queue each policy of this table lets run what its name promises. */
static void test_who_runs(void **state)
{
	(void)state;
	/* GPUs and seconds: 0 (3, 40), 1 (2, 30), 2 (1, 100), 3 (4, 5), 4 (2, 20); job 0 comes
	 * first, the others together after 10 s. */
	static const struct {
		const struct sw_policy *policy;
		uint32_t runs;
	} cases[] = {
		{&sw_policy_fifo, 0x01}, /* 1 does not fit beside 0 and holds up 2 */
		{&sw_policy_fjf, 0x05},	 /* 2 fits beside 0 */
		{&sw_policy_sjf, 0x06},	 /* 2 has one GPU, 1 came before 4 */
		{&sw_policy_srtf, 0x08}, /* 3 is the shortest and takes all */
		{&sw_policy_srsf, 0x08}, /* 20 GPU-seconds */
		{&sw_policy_las, 0x05},	 /* all in the first queue: a running job stays, 2 fits beside */
		{&sw_policy_gittins, 0x05},
	};
	for (size_t c = 0; c < RIG_COUNT(cases); c++) {
		struct rig rig;
		rig_open(&rig, four_gpus, 1, (struct sw_engine_config){.policy = cases[c].policy}, NULL);
		rig_submit_plain(&rig, 0, 3, 40);
		const struct sw_job_spec specs[] = {rig_spec(2, 30), rig_spec(1, 100), rig_spec(4, 5), rig_spec(2, 20)};
		struct sw_event arrivals[4];
		for (int j = 0; j < 4; j++)
			arrivals[j] = (struct sw_event){.kind = SW_EV_SUBMIT, .spec = &specs[j]};
		rig_step(&rig, 10, arrivals, 4);
		if (running(&rig) != cases[c].runs)
			fail_msg("%s: jobs %x run, not %x", cases[c].policy->name, running(&rig), cases[c].runs);
		rig_close(&rig);
	}
}

/* Aim: time and service are not the same: the short wide job goes first by time, the long
 * narrow one by service. */
static void test_time_against_service(void **state)
{
	(void)state;
	for (int service = 0; service < 2; service++) {
		struct rig rig;
		rig_open(&rig, four_gpus, 1, (struct sw_engine_config){.policy = service ? &sw_policy_srsf : &sw_policy_srtf}, NULL);
		uint32_t wide = rig_submit_plain(&rig, 0, 4, 10), narrow = rig_submit_plain(&rig, 0, 1, 39);
		assert_int_equal(rig_runs(&rig, wide), !service);
		assert_int_equal(rig_runs(&rig, narrow), service);
		rig_close(&rig);
	}
}

/* Aim: where it is not known how long a job takes, it comes last for policies that go by time. */
static void test_unknown_comes_last(void **state)
{
	(void)state;
	static const struct sw_policy *const by_time[] = {&sw_policy_srtf, &sw_policy_srsf};
	for (size_t p = 0; p < 2; p++) {
		struct rig rig;
		struct sw_job_spec unknown = rig_spec(4, 1);
		unknown.knowledge = SW_UNKNOWN;
		rig_open(&rig, four_gpus, 1, (struct sw_engine_config){.policy = by_time[p]}, NULL);
		uint32_t first = rig_submit(&rig, 0, &unknown);
		assert_true(rig_runs(&rig, first));
		uint32_t known = rig_submit_plain(&rig, 50, 4, 1000000);
		assert_true(rig_runs(&rig, known));
		uint32_t second = rig_submit(&rig, 60, &unknown);
		rig_finish(&rig, 70, known);
		assert_int_equal(rig_runs(&rig, first) + rig_runs(&rig, second), 1);
		rig_close(&rig);
	}
}

/* Aim: what the world says about a job's remaining work moves it in the order at once. */
static void test_news_reorder(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, four_gpus, 1, (struct sw_engine_config){.policy = &sw_policy_srtf}, NULL);
	uint32_t a = rig_submit_plain(&rig, 0, 4, 100), b = rig_submit_plain(&rig, 0, 4, 110);
	assert_true(rig_runs(&rig, a));
	struct sw_event news = rig_answer(&rig, SW_EV_PROGRESS, a);
	news.left_ns = 200 * SW_NS_PER_S;
	news.as_of = 10 * SW_NS_PER_S;
	news.ends_at = 210 * SW_NS_PER_S;
	rig_event(&rig, 10, news);
	assert_true(rig_runs(&rig, b));
	rig_close(&rig);
}

/* Aim: every policy and rule in the tables has a name of its own, a line about itself, and
 * presets that it accepts. */
static void test_tables(void **state)
{
	(void)state;
	for (size_t p = 0; sw_policies[p] != NULL; p++) {
		const struct sw_policy *policy = sw_policies[p];
		assert_int_equal(policy->abi, SW_POLICY_ABI);
		assert_true(strlen(policy->name) > 0 && strlen(policy->about) > 0);
		assert_int_equal(strspn(policy->name, "abcdefghijklmnopqrstuvwxyz-"), strlen(policy->name));
		assert_true(policy->decide != NULL || policy->order != NULL);
		for (size_t q = 0; q < p; q++)
			assert_string_not_equal(policy->name, sw_policies[q]->name);
		struct rig rig;
		rig_open(&rig, four_gpus, 1, (struct sw_engine_config){.policy = policy}, NULL);
		rig_close(&rig);
	}
	for (size_t r = 0; sw_placements[r] != NULL; r++) {
		assert_int_equal(sw_placements[r]->abi, SW_POLICY_ABI);
		assert_true(strlen(sw_placements[r]->name) > 0 && strlen(sw_placements[r]->about) > 0);
		for (size_t q = 0; q < r; q++)
			assert_string_not_equal(sw_placements[r]->name, sw_placements[q]->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_runs),
		cmocka_unit_test(test_time_against_service),
		cmocka_unit_test(test_unknown_comes_last),
		cmocka_unit_test(test_news_reorder),
		cmocka_unit_test(test_tables),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
