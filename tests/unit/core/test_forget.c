/* Jobs that have ended and are forgotten: the engine decides as if they were still there, and
 * needs no memory for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/rng.h"
#include "core/state.h"
#include "rig.h"

static const struct sw_topology_node nodes[] = {RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(1, 8)};

static struct sw_engine_config config_of(const struct sw_policy *policy)
{
	return (struct sw_engine_config){.policy = policy,
					 .fallback = &sw_policy_fifo,
					 .placement = &sw_placement_pack,
					 .seed = 5,
					 .terms.quantum_ns = 30 * SW_NS_PER_S};
}

/* The same happens to both; one of them forgets. */
static void step_both(struct rig *a, struct rig *b, int64_t at_s, struct sw_event event)
{
	rig_event(a, at_s, event);
	rig_event(b, at_s, event);
	assert_true(sw_engine_log_hash(a->engine) == sw_engine_log_hash(b->engine));
}

static void forget_some(struct rig *rig, struct sw_rng *rng)
{
	struct sw_err err = {0};
	for (uint32_t id = sw_engine_next_job(rig->engine, 0); id != UINT32_MAX; id = sw_engine_next_job(rig->engine, id + 1)) {
		const struct sw_job *job = rig_job(rig, id);
		bool over = job->state > SW_JOB_RUNNING && job->fresh == 0;
		if (sw_rng_below(rng, 3) > 0 || !over)
			continue;
		assert_true(sw_engine_forget(rig->engine, (struct sw_job_id){id}));
		assert_null(sw_engine_job(rig->engine, (struct sw_job_id){id}));
		assert_false(sw_engine_forget(rig->engine, (struct sw_job_id){id}));
	}
	rig_must(sw_engine_validate(rig->engine, &err), &err);
}

/* Through bytes and back. */
static void reload(struct rig *rig, const struct sw_policy *policy)
{
	struct sw_engine_config config = config_of(policy);
	struct sw_engine *loaded = NULL;
	struct sw_err err = {0};
	struct sw_pack pack = {0};
	bool adopted = true;
	size_t size;
	config.params = rig->params;
	sw_engine_save(rig->engine, &pack);
	unsigned char *bytes = sw_pack_take(&pack, &size);
	rig_must(sw_engine_load(&config, bytes, size, &loaded, &adopted, &err), &err);
	assert_false(adopted);
	assert_int_equal(sw_engine_job_count(loaded), sw_engine_job_count(rig->engine));
	assert_int_equal(sw_engine_known_count(loaded), sw_engine_known_count(rig->engine));
	free(bytes);
	sw_engine_free(rig->engine);
	rig->engine = loaded;
}

static void live(const struct sw_policy *policy, uint64_t seed)
{
	struct rig a, b;
	struct sw_rng rng;
	sw_rng_seed(&rng, seed);
	rig_open(&a, nodes, RIG_COUNT(nodes), config_of(policy), NULL);
	rig_open(&b, nodes, RIG_COUNT(nodes), config_of(policy), NULL);
	for (int64_t at = 1; at < 600; at++) {
		struct sw_job_spec spec = rig_spec(1 + (uint32_t)sw_rng_below(&rng, 6), 1 + (int64_t)sw_rng_below(&rng, 300));
		uint32_t count = sw_engine_job_count(a.engine), id = count > 0 ? (uint32_t)sw_rng_below(&rng, count) : 0;
		spec.tenant = (uint32_t)sw_rng_below(&rng, 3);
		spec.gpu_memory_bytes = (1 + sw_rng_below(&rng, 3)) * RIG_GIB;
		bool known = count > 0 && sw_engine_job(b.engine, (struct sw_job_id){id}) != NULL;
		uint64_t dice = sw_rng_below(&rng, 10);
		if (dice < 5 || !known)
			step_both(&a, &b, at, (struct sw_event){.kind = SW_EV_SUBMIT, .spec = &spec});
		else if (dice < 8)
			step_both(&a, &b, at, rig_answer(&a, SW_EV_FINISH, id));
		else
			step_both(&a, &b, at, (struct sw_event){.kind = dice < 9 ? SW_EV_CANCEL : SW_EV_HOLD, .job = {id}});
		if (at % 50 == 0)
			forget_some(&b, &rng);
		if (at % 130 == 0)
			reload(&b, policy);
		if (at % 200 == 0)
			step_both(&a, &b, at, rig_node_event(at % 400 == 0 ? SW_EV_NODE_UP : SW_EV_NODE_DOWN, 1));
	}
	assert_true(sw_engine_known_count(b.engine) < sw_engine_job_count(b.engine));
	assert_int_equal(sw_engine_known_count(a.engine), sw_engine_job_count(a.engine));
	rig_close(&a);
	rig_close(&b);
}

/* Aim: under every policy an engine that forgets decides like one that does not, also after
 * it was saved and loaded. */
static void test_decides_alike(void **state)
{
	(void)state;
	for (size_t p = 0; sw_policies[p] != NULL; p++)
		live(sw_policies[p], 17 + p);
}

/* Aim: a job that lives is not forgotten, nor one that is not there; a late word about a
 * forgotten one does nothing. */
static void test_refuses(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, nodes, RIG_COUNT(nodes), config_of(&sw_policy_fifo), NULL);
	uint32_t runs = rig_submit_plain(&rig, 1, 16, 50), waits = rig_submit_plain(&rig, 2, 16, 50);
	assert_false(sw_engine_forget(rig.engine, (struct sw_job_id){runs}));
	assert_false(sw_engine_forget(rig.engine, (struct sw_job_id){waits}));
	assert_false(sw_engine_forget(rig.engine, (struct sw_job_id){77}));
	struct sw_event late = rig_answer(&rig, SW_EV_FINISH, runs);
	rig_event(&rig, 3, late);
	assert_true(sw_engine_forget(rig.engine, (struct sw_job_id){runs}));
	rig_event(&rig, 4, late);
	rig_event(&rig, 5, (struct sw_event){.kind = SW_EV_CANCEL, .job = {runs}});
	rig_event(&rig, 6, (struct sw_event){.kind = SW_EV_HOLD, .job = {runs}});
	rig_event(&rig, 7, (struct sw_event){.kind = SW_EV_CHANGE, .job = {runs}, .avoid = UINT32_MAX});
	assert_true(rig_runs(&rig, waits));
	assert_int_equal(sw_engine_known_count(rig.engine), 1);
	rig_close(&rig);
}

/* Aim: numbers can be skipped; those between were never there. */
static void test_skips(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, nodes, RIG_COUNT(nodes), config_of(&sw_policy_las), NULL);
	rig_submit_plain(&rig, 1, 1, 50);
	assert_int_equal(sw_engine_skip(rig.engine, 500000), 0);
	assert_int_equal(sw_engine_skip(rig.engine, 7), 0); /* never back */
	assert_int_equal(rig_submit_plain(&rig, 2, 1, 50), 500000);
	assert_null(sw_engine_job(rig.engine, (struct sw_job_id){1}));
	assert_int_equal(sw_engine_next_job(rig.engine, 1), 500000);
	reload(&rig, &sw_policy_las);
	assert_int_equal(rig_submit_plain(&rig, 3, 1, 50), 500001);
	assert_int_equal(sw_engine_skip(rig.engine, UINT32_MAX), SW_ELIMIT);
	rig_close(&rig);
}

/* Aim: what an engine saves follows the jobs that it knows. */
static void test_saves_what_it_knows(void **state)
{
	(void)state;
	struct rig rig;
	rig_open(&rig, nodes, RIG_COUNT(nodes), config_of(&sw_policy_las), NULL);
	size_t sizes[2];
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3000; i++) {
			uint32_t id = sw_engine_job_count(rig.engine);
			struct sw_job_spec spec = rig_spec(1, 5);
			struct sw_event event = {.kind = SW_EV_SUBMIT, .spec = &spec};
			struct sw_err err = {0};
			rig_must(sw_engine_step(rig.engine, i * SW_NS_PER_S, &event, 1, &rig.step, &err), &err);
			event = rig_answer(&rig, SW_EV_FINISH, id);
			rig_must(sw_engine_step(rig.engine, i * SW_NS_PER_S, &event, 1, &rig.step, &err), &err);
			assert_true(sw_engine_forget(rig.engine, (struct sw_job_id){id}));
		}
		struct sw_pack pack = {0};
		sw_engine_save(rig.engine, &pack);
		free(sw_pack_take(&pack, &sizes[round]));
	}
	assert_true(sizes[1] <= sizes[0] + 16);
	reload(&rig, &sw_policy_las);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decides_alike),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_skips),
		cmocka_unit_test(test_saves_what_it_knows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
