/* Packing on top of an order, by hand: which job shares with which, which with none, what the order
 * may still do, and what is learned from a bad pair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "contention/crowd.h"
#include "unit/contention/models.h"
#include "unit/core/rig.h"

static const struct sw_topology_node one[] = {RIG_NODE(0, 1)};
static const struct sw_topology_node two[] = {RIG_NODE(0, 2)};
static const struct sw_topology_node four[] = {RIG_NODE(0, 4)};
static struct sw_crowd *crowd;

static void open_packed(struct rig *rig, const struct sw_topology_node *nodes, const char *policy, const char *const *words)
{
	const struct sw_engine_config config = {.policy = sw_policy_find(policy),
						.terms.keeps_state = true,
						.terms.tells_speed = true,
						.predictor = {crowd, sw_crowd_speeds}};
	assert_non_null(config.policy);
	rig_open(rig, nodes, 1, config, words);
}

static uint32_t submit(struct rig *rig, int64_t at_s, uint32_t gpus, const char *name, int64_t work_s)
{
	struct sw_job_spec spec = rig_spec(gpus, work_s);
	spec.gpu_memory_bytes = 10 * RIG_GIB;
	spec.model = name[0] != '\0' ? model(name)->number : 0;
	return rig_submit(rig, at_s, &spec);
}

static bool meet(const struct rig *rig, uint32_t a, uint32_t b)
{
	return rig_runs(rig, a) && rig_runs(rig, b) && sw_jobs_meet(sw_engine_view(rig->engine), rig_job(rig, a), rig_job(rig, b));
}

static const struct {
	const char *first, *second;
	bool share;
} pairs[] = {
	{"resnet50", "mobilenet_v2", true},
	{"data2vec", "deepfm", true},
	{"dlrm", "transformer", true},
	{"data2vec", "mobilenet_v2", true},
	{"dlrm", "deepfm", false},
	{"deepfm", "dlrm", false},
	{"deepfm", "transformer", false},
	{"dlrm", "mobilenet_v2", false},
	{"resnet50", "dlrm", false},
	{"resnet50", "", false},
	{"", "resnet50", false},
};

/* Aim: of the six models of the profiling study, those that go well together share a GPU, DLRM and
 * DeepFM never do, and none shares with a model without a profile. */
static void test_pairs(void **state)
{
	(void)state;
	for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++) {
		struct rig rig;
		open_packed(&rig, one, "fifo+pack", NULL);
		submit(&rig, 0, 1, pairs[p].first, 1000);
		submit(&rig, 0, 1, pairs[p].second, 1000);
		assert_true(rig_runs(&rig, 0));
		assert_int_equal(meet(&rig, 0, 1), pairs[p].share);
		rig_close(&rig);
	}
}

/* Aim: a job has the choice of the best partner that is left, among those with as many GPUs. */
static void test_best_partner(void **state)
{
	(void)state;
	struct rig rig;
	open_packed(&rig, four, "fifo+pack", NULL);
	submit(&rig, 0, 1, "transformer", 1000); /* beside it a MobileNet takes 1.32 times as long */
	submit(&rig, 0, 1, "resnet50", 1000);	 /* 1.09 */
	submit(&rig, 0, 2, "data2vec", 1000);	 /* 1.00, but on two GPUs */
	submit(&rig, 1, 1, "mobilenet_v2", 1000);
	assert_true(meet(&rig, 1, 3));
	submit(&rig, 2, 1, "mobilenet_v2", 1000); /* two on one GPU are enough */
	assert_true(meet(&rig, 0, 4));
	submit(&rig, 3, 2, "mobilenet_v2", 1000);
	assert_true(meet(&rig, 2, 5));
	submit(&rig, 4, 1, "data2vec", 1000);
	assert_false(rig_runs(&rig, 6));
	rig_close(&rig);
}

/* Aim: with pack.set=3 a third joins where all three do well, and with pack.set=1, or a worth that
 * none reaches, none shares. */
static void test_parameters(void **state)
{
	(void)state;
	static const struct {
		const char *word;
		uint32_t running;
	} cases[] = {{"pack.set=3", 3}, {"pack.set=2", 2}, {"pack.set=1", 1}, {"pack.worth=2.1", 1}};
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		struct rig rig;
		open_packed(&rig, one, "fifo+pack", (const char *const[]){cases[c].word, NULL});
		for (int i = 0; i < 3; i++)
			submit(&rig, i, 1, "data2vec", 1000);
		assert_int_equal(sw_view_running(sw_engine_view(rig.engine)), cases[c].running);
		rig_close(&rig);
	}
}

/* Aim: where memory is short, a job does not say how much it needs, or its tenant has used its
 * quota, it shares with none. */
static void test_no_room(void **state)
{
	(void)state;
	for (int c = 0; c < 4; c++) {
		struct rig rig;
		open_packed(&rig, one, "fifo+pack", NULL);
		if (c == 3)
			rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 0, .gpus = 1});
		submit(&rig, 0, 1, "data2vec", 1000);
		struct sw_job_spec spec = rig_spec(1, 1000);
		spec.model = model("mobilenet_v2")->number;
		spec.gpu_memory_bytes = c == 0 ? 70 * RIG_GIB : c == 1 ? 71 * RIG_GIB : c == 2 ? 0 : RIG_GIB;
		rig_submit(&rig, 0, &spec);
		assert_int_equal(meet(&rig, 0, 1), c == 0);
		rig_close(&rig);
	}
}

/* Aim: a job that was refused for its tenant's quota shares as soon as the quota allows it,
 * though nothing else happens. */
static void test_quota_grows(void **state)
{
	(void)state;
	struct rig rig;
	open_packed(&rig, one, "fifo+pack", NULL);
	rig_event(&rig, 0, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 0, .gpus = 1});
	submit(&rig, 0, 1, "data2vec", 1000);
	submit(&rig, 1, 1, "mobilenet_v2", 1000);
	rig_tick(&rig, 5);
	assert_false(rig_runs(&rig, 1));
	rig_event(&rig, 10, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 0, .gpus = 2});
	assert_true(meet(&rig, 0, 1));
	rig_close(&rig);
}

/* Aim: a host on a node that takes no jobs hides neither others that are alike from a waiting job,
 * nor those of another size. */
static void test_closed_node(void **state)
{
	(void)state;
	for (int gang = 0; gang < 2; gang++) {
		struct rig rig;
		const struct sw_topology_node nodes[] = {RIG_NODE(0, gang ? 2 : 1), RIG_NODE(0, 1)};
		rig_open(&rig, nodes, 2,
			 (struct sw_engine_config){.policy = sw_policy_find("srtf+pack"), .predictor = {crowd, sw_crowd_speeds}}, NULL);
		submit(&rig, 0, gang ? 2 : 1, "data2vec", 1000);
		rig_event(&rig, 1, (struct sw_event){.kind = SW_EV_NODE_CLOSE, .node = {0}});
		if (gang)
			submit(&rig, 1, 2, "mobilenet_v2", 1000); /* has no place */
		uint32_t host = submit(&rig, 2, 1, "data2vec", 1000);
		assert_true(rig_place(&rig, 0)[0] == '0' && rig_runs(&rig, host));
		uint32_t guest = submit(&rig, 3, 1, "mobilenet_v2", 1000);
		assert_true(meet(&rig, host, guest));
		assert_true(!gang || !rig_runs(&rig, 1));
		rig_close(&rig);
	}
}

/* Aim: a job that is left alone on a GPU by its host can have a guest itself. */
static void test_left_alone(void **state)
{
	(void)state;
	struct rig rig;
	open_packed(&rig, one, "fifo+pack", NULL);
	for (int i = 0; i < 3; i++)
		submit(&rig, 0, 1, "data2vec", 1000);
	assert_true(meet(&rig, 0, 1) && !rig_runs(&rig, 2));
	rig_event(&rig, 10, rig_answer(&rig, SW_EV_FINISH, 0));
	assert_true(meet(&rig, 1, 2));
	rig_event(&rig, 20, rig_answer(&rig, SW_EV_FINISH, 2));
	submit(&rig, 30, 1, "mobilenet_v2", 1000);
	assert_true(meet(&rig, 1, 3));
	rig_close(&rig);
}

/* Aim: the order goes before packing. A job that is ahead of two that share gets their GPUs, and
 * one that is ahead of the guest only leaves both where they are. */
static void test_order_first(void **state)
{
	(void)state;
	struct rig rig;
	open_packed(&rig, two, "srtf+pack", NULL);
	submit(&rig, 0, 2, "data2vec", 1000);
	submit(&rig, 0, 2, "data2vec", 2000);
	assert_true(meet(&rig, 0, 1));
	uint32_t epoch = sw_engine_epoch(rig.engine, (struct sw_job_id){1});
	submit(&rig, 1, 2, "", 1500); /* ahead of job 1, behind job 0 */
	assert_true(meet(&rig, 0, 1) && !rig_runs(&rig, 2));
	assert_int_equal(sw_engine_epoch(rig.engine, (struct sw_job_id){1}), epoch);
	assert_int_equal(rig_job(&rig, 1)->preemptions, 0);
	submit(&rig, 2, 1, "", 100); /* ahead of both, and shares with none */
	assert_true(rig_runs(&rig, 3) && !rig_runs(&rig, 0) && !rig_runs(&rig, 1));
	rig_event(&rig, 3, rig_answer(&rig, SW_EV_FINISH, 3));
	assert_int_equal(rig.step.wake_at, 4 * SW_NS_PER_S);
	rig_tick(&rig, 4);
	assert_true(meet(&rig, 0, 1) && !rig_runs(&rig, 2));
	rig_close(&rig);
}

/* Aim: a guest that is slow beside its host moves to a GPU of its own when one is idle and no job
 * waits; one that is not stays. */
static void test_spread(void **state)
{
	(void)state;
	for (int slow = 0; slow < 2; slow++) {
		struct rig rig;
		open_packed(&rig, two, "srtf+pack", NULL);
		submit(&rig, 0, 1, slow ? "deepfm" : "data2vec", 1000);
		submit(&rig, 0, 1, "", 1000);
		submit(&rig, 0, 1, "mobilenet_v2", 2000);
		assert_true(meet(&rig, 0, 2));
		rig_event(&rig, 10, rig_answer(&rig, SW_EV_FINISH, 1));
		assert_true(rig_runs(&rig, 2));
		assert_int_equal(meet(&rig, 0, 2), !slow);
		assert_int_equal(rig_job(&rig, 2)->migrations, slow);
		rig_close(&rig);
	}
}

/* The job has half of its work left and needs `takes_s` for it from now on. */
static struct sw_event goes_on(const struct rig *rig, uint32_t id, int64_t at_s, int64_t takes_s)
{
	struct sw_event event = rig_answer(rig, SW_EV_PROGRESS, id);
	event.left_ns = 5000 * SW_NS_PER_S;
	event.as_of = at_s * SW_NS_PER_S;
	event.ends_at = (at_s + takes_s) * SW_NS_PER_S;
	return event;
}

/* Aim: a pair that is slower than predicted by more than a fifth at two looks in a row is taken
 * apart, and jobs of these models do not meet again; one slow look is not enough. */
static void test_feedback(void **state)
{
	(void)state;
	for (int slow_looks = 1; slow_looks <= 2; slow_looks++) {
		struct rig rig;
		open_packed(&rig, one, "fifo+pack", NULL);
		submit(&rig, 0, 1, "data2vec", 10000);
		submit(&rig, 0, 1, "mobilenet_v2", 10000);
		assert_true(meet(&rig, 0, 1));
		assert_int_equal(rig.step.wake_at, 120 * SW_NS_PER_S);
		rig_event(&rig, 100, goes_on(&rig, 1, 100, 7000)); /* 0.71, predicted was 1.00 */
		assert_true(meet(&rig, 0, 1));
		rig_tick(&rig, 120);
		assert_true(meet(&rig, 0, 1));
		if (slow_looks == 1)
			rig_event(&rig, 130, goes_on(&rig, 1, 130, 6000)); /* 0.83 */
		rig_tick(&rig, 240);
		assert_int_equal(meet(&rig, 0, 1), slow_looks == 1);
		rig_tick(&rig, 360);
		rig_tick(&rig, 480);
		assert_int_equal(meet(&rig, 0, 1), slow_looks == 1);
		if (slow_looks == 2) {
			submit(&rig, 500, 1, "resnet50", 10000); /* another pair may be better */
			assert_true(meet(&rig, 0, 2) && !rig_runs(&rig, 1));
		}
		rig_close(&rig);
	}
}

/* Aim: a waiting job is told why it does not share either. */
static void test_why(void **state)
{
	(void)state;
	struct rig rig;
	char text[256];
	open_packed(&rig, one, "fifo+pack", NULL);
	submit(&rig, 0, 1, "dlrm", 1000);
	submit(&rig, 0, 1, "deepfm", 1000);
	submit(&rig, 0, 1, "", 1000);
	sw_engine_explain(rig.engine, (struct sw_job_id){1}, text, sizeof text);
	assert_non_null(strstr(text, "no running job on as many GPUs"));
	sw_engine_explain(rig.engine, (struct sw_job_id){2}, text, sizeof text);
	assert_non_null(strstr(text, "its model has no profile yet"));
	rig_close(&rig);
}

/* Aim: every policy that is an order can be packed onto, with its parameters and ours; those that
 * share by themselves cannot. */
static void test_composition(void **state)
{
	(void)state;
	uint32_t orders = 0, packed = 0;
	for (size_t p = 0; sw_policies[p] != NULL; p++) {
		char name[80];
		snprintf(name, sizeof name, "%s+pack", sw_policies[p]->name);
		const struct sw_policy *policy = sw_policy_find(name);
		bool is_order = sw_policies[p]->order != NULL && sw_policies[p]->decide == NULL;
		orders += is_order;
		assert_int_equal(policy != NULL, is_order);
		if (policy == NULL)
			continue;
		assert_string_equal(policy->name, name);
		assert_int_equal(policy->param_count, sw_policies[p]->param_count + 3);
		assert_non_null(sw_params_find(policy, "pack.worth", NULL));
	}
	while (sw_policies_packed(packed) != NULL)
		packed++;
	assert_int_equal(packed, orders);
	assert_true(orders >= 7);
	assert_null(sw_policy_find("antman+pack"));
	assert_null(sw_policy_find("+pack"));
	assert_null(sw_policy_find("las+pack+pack"));
}

static int set_up(void **state)
{
	const struct sw_crowd_rule rule = {.model = sw_predict_default, .among = SW_WAY_MPS, .gated = true};
	return load_profiles(state) < 0 ? -1 : sw_crowd_new(profiles, &rule, &crowd, NULL);
}

static int tear_down(void **state)
{
	sw_crowd_free(crowd);
	return unload_profiles(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs),	    cmocka_unit_test(test_best_partner), cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_no_room),	    cmocka_unit_test(test_left_alone),	 cmocka_unit_test(test_order_first),
		cmocka_unit_test(test_spread),	    cmocka_unit_test(test_feedback),	 cmocka_unit_test(test_why),
		cmocka_unit_test(test_composition), cmocka_unit_test(test_quota_grows),	 cmocka_unit_test(test_closed_node),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
