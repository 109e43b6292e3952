/* An engine as bytes, and back. That a loaded engine decides like the one that was saved is the
 * soak's part (tests/sim). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/state.h"
#include "rig.h"

static const struct sw_topology_node nodes[] = {RIG_NODE(0, 4), RIG_NODE(0, 4), RIG_NODE(1, 8)};

static struct sw_engine_config config_of(const struct sw_policy *policy)
{
	return (struct sw_engine_config){.policy = policy, .fallback = &sw_policy_fifo, .placement = &sw_placement_pack, .seed = 5};
}

/* Jobs in every state, a gang, a quota, a node that is down, one that is closed, a job
 * that keeps off a node. */
static void make_busy(struct rig *rig, const struct sw_policy *policy)
{
	rig_open(rig, nodes, RIG_COUNT(nodes), config_of(policy), NULL);
	struct sw_job_spec held = rig_spec(1, 10), opportunist = rig_spec(2, 100);
	held.held = true;
	opportunist.job_class = SW_CLASS_OPPORTUNISTIC;
	opportunist.gpu_memory_bytes = 3 * RIG_GIB;
	opportunist.tenant = 3;
	uint32_t first = rig_submit_plain(rig, 1, 1, 50);
	rig_submit_plain(rig, 2, 12, 5000);
	rig_submit(rig, 3, &opportunist);
	rig_submit(rig, 4, &held);
	for (int i = 0; i < 6; i++)
		rig_submit_plain(rig, 5 + i, 2, 1000);
	rig_event(rig, 20, (struct sw_event){.kind = SW_EV_QUOTA, .tenant = 2, .gpus = 4});
	rig_submit_plain(rig, 21, 400, 10); /* refused */
	rig_event(rig, 30, rig_answer(rig, SW_EV_FINISH, first)); /* chaos may not have it run */
	rig_event(rig, 31, rig_node_event(SW_EV_NODE_DOWN, 1));
	rig_event(rig, 32, (struct sw_event){.kind = SW_EV_CHANGE, .job = {3}, .avoid = 0});
	rig_event(rig, 33, rig_node_event(SW_EV_NODE_CLOSE, 2));
	rig_event(rig, 34, (struct sw_event){.kind = SW_EV_GPUS_SHUT, .node = {0}, .mask = 0x5});
	rig_tick(rig, 4000);
}

static unsigned char *save(const struct rig *rig, size_t *ret_size)
{
	struct sw_pack pack = {0};
	sw_engine_save(rig->engine, &pack);
	unsigned char *bytes = sw_pack_take(&pack, ret_size);
	assert_non_null(bytes);
	return bytes;
}

static int load(const struct rig *rig, const struct sw_policy *policy, const void *bytes, size_t size, struct sw_engine **ret_engine,
		bool *ret_adopted, struct sw_err *err)
{
	struct sw_engine_config config = config_of(policy);
	config.params = rig->params;
	return sw_engine_load(&config, bytes, size, ret_engine, ret_adopted, err);
}

/* Aim: what is loaded is what was saved, to the last byte, and saving changed nothing. */
static void test_there_and_back(void **state)
{
	(void)state;
	for (size_t p = 0; sw_policies[p] != NULL; p++) {
		struct rig rig;
		struct sw_engine *loaded = NULL;
		struct sw_err err = {0};
		bool adopted = true;
		size_t size, again_size;
		make_busy(&rig, sw_policies[p]);
		unsigned char *bytes = save(&rig, &size);
		rig_must(load(&rig, sw_policies[p], bytes, size, &loaded, &adopted, &err), &err);
		assert_false(adopted);
		assert_true(sw_engine_log_hash(loaded) == sw_engine_log_hash(rig.engine));
		assert_true(sw_engine_command_hash(loaded) == sw_engine_command_hash(rig.engine));
		assert_string_equal(sw_engine_notes(loaded), sw_engine_notes(rig.engine));
		assert_string_equal(sw_engine_policy(loaded), sw_engine_policy(rig.engine));
		sw_engine_free(rig.engine);
		rig.engine = loaded;
		unsigned char *again = save(&rig, &again_size);
		assert_int_equal(size, again_size);
		assert_memory_equal(bytes, again, size);
		free(bytes);
		free(again);
		rig_close(&rig);
	}
}

/* Aim: bytes cut short anywhere are an error that says so, and nothing else happens. */
static void test_cut_short(void **state)
{
	(void)state;
	struct rig rig;
	size_t size;
	make_busy(&rig, &sw_policy_las);
	unsigned char *bytes = save(&rig, &size);
	for (size_t cut = 0; cut < size; cut++) {
		struct sw_engine *loaded = NULL;
		struct sw_err err = {0};
		bool adopted;
		unsigned char *exact = malloc(cut + 1);
		memcpy(exact, bytes, cut);
		assert_int_equal(load(&rig, &sw_policy_las, exact, cut, &loaded, &adopted, &err), SW_EINPUT);
		assert_null(loaded);
		assert_string_equal(err.fact, "the scheduler's state is damaged");
		free(exact);
	}
	free(bytes);
	rig_close(&rig);
}

/* Aim: a byte that was changed is an error, or gives an engine that keeps its
 * promises; never anything worse. */
static void test_changed(void **state)
{
	(void)state;
	struct rig rig;
	size_t size, refused = 0;
	make_busy(&rig, &sw_policy_las);
	unsigned char *bytes = save(&rig, &size);
	for (size_t at = 0; at < size; at++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			struct sw_engine *loaded = NULL;
			struct sw_err err = {0};
			bool adopted;
			bytes[at] ^= (unsigned char)(1u << bit);
			if (load(&rig, &sw_policy_las, bytes, size, &loaded, &adopted, &err) < 0) {
				refused++;
			} else {
				struct sw_step step;
				const struct sw_event gone = rig_node_event(SW_EV_NODE_DOWN, 2);
				sw_ns later = sw_view_now(sw_engine_view(loaded)) / 2 + 5000 * SW_NS_PER_S;
				rig_must(sw_engine_step(loaded, later, &gone, 1, &step, &err), &err);
				rig_must(sw_engine_validate(loaded, &err), &err);
				sw_engine_free(loaded);
			}
			bytes[at] ^= (unsigned char)(1u << bit);
		}
	}
	assert_true(refused > size); /* most of them */
	free(bytes);
	rig_close(&rig);
}

/* Aim: a program whose policy keeps other things goes on with the jobs, what they hold and what
 * they got, under that policy. */
static void test_adopted_by_another_version(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_engine *loaded = NULL;
	struct sw_err err = {0};
	bool adopted = false;
	size_t size;
	uint32_t fast = 0;
	struct sw_policy later = sw_policy_las;
	later.job_state_size += 8;
	make_busy(&rig, &sw_policy_las);
	for (uint32_t id = 0; id < sw_engine_job_count(rig.engine); id++) {
		struct sw_event news = rig_answer(&rig, SW_EV_SPEED, id);
		news.speed_milli = 700 + id;
		rig_event(&rig, 4000, news);
	}
	unsigned char *bytes = save(&rig, &size);
	rig_must(load(&rig, &later, bytes, size, &loaded, &adopted, &err), &err);
	assert_true(adopted);
	assert_int_equal(sw_engine_job_count(loaded), sw_engine_job_count(rig.engine));
	for (uint32_t id = 0; id < sw_engine_job_count(loaded); id++) {
		const struct sw_job *then = rig_job(&rig, id), *now = sw_engine_job(loaded, (struct sw_job_id){id});
		assert_int_equal(then->state, now->state);
		assert_int_equal(sw_job_ran(sw_engine_view(rig.engine), then), sw_job_ran(sw_engine_view(loaded), now));
		assert_int_equal(sw_job_gpu_time(sw_engine_view(rig.engine), then), sw_job_gpu_time(sw_engine_view(loaded), now));
		assert_int_equal(sw_engine_epoch(rig.engine, then->id), sw_engine_epoch(loaded, then->id));
		uint32_t speed = sw_job_speed_milli(sw_engine_view(loaded), now);
		assert_int_equal(sw_job_speed_milli(sw_engine_view(rig.engine), then), speed);
		fast += speed > 0;
		char place[256];
		snprintf(place, sizeof place, "%s", rig_place(&rig, id));
		assert_string_equal(place, rig_place(&(struct rig){.engine = loaded}, id));
	}
	assert_true(fast > 0);
	assert_string_equal(sw_engine_policy(loaded), "las");
	/* It is in charge: it goes on deciding. */
	struct sw_step step;
	rig_must(sw_engine_step(loaded, rig.now + SW_NS_PER_S, &(struct sw_event){.kind = SW_EV_NODE_UP, .node = {1}}, 1, &step, &err),
		 &err);
	rig_must(sw_engine_validate(loaded, &err), &err);
	assert_true(step.command_count > 0);
	sw_engine_free(loaded);
	free(bytes);
	rig_close(&rig);
}

/* Aim: the same holds for another policy, and for another placement rule: what was in mind for the
 * one is nothing to the other. */
static void test_adopted_by_another_policy(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_err err = {0};
	size_t size;
	make_busy(&rig, &sw_policy_las);
	unsigned char *bytes = save(&rig, &size);
	struct sw_engine_config config = config_of(&sw_policy_srtf);
	for (int rule = 0; rule < 2; rule++) {
		struct sw_engine *loaded = NULL;
		bool adopted = false;
		if (rule == 1) {
			config = config_of(&sw_policy_las);
			config.placement = &sw_placement_spread;
		}
		rig_must(sw_engine_load(&config, bytes, size, &loaded, &adopted, &err), &err);
		assert_true(adopted);
		assert_string_equal(sw_engine_policy(loaded), config.policy->name);
		sw_engine_free(loaded);
	}
	free(bytes);
	rig_close(&rig);
}

/* Aim: a policy that was thrown out stays out. */
static void test_fallback_stays_in_charge(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_engine *loaded = NULL;
	struct sw_err err = {0};
	bool adopted = true;
	size_t size;
	make_busy(&rig, &sw_policy_chaos);
	/* Without any manners. */
	rig_must(sw_params_set(rig.params, sw_params_find(&sw_policy_chaos, "manners", &err), "0", 1, &err), &err);
	for (int i = 0; i < 3000 && strcmp(sw_engine_policy(rig.engine), "fifo") != 0; i++)
		rig_tick(&rig, 4001 + i);
	assert_string_equal(sw_engine_policy(rig.engine), "fifo");
	unsigned char *bytes = save(&rig, &size);
	rig_must(load(&rig, &sw_policy_chaos, bytes, size, &loaded, &adopted, &err), &err);
	assert_false(adopted);
	assert_string_equal(sw_engine_policy(loaded), "fifo");
	assert_string_equal(sw_engine_notes(loaded), sw_engine_notes(rig.engine));
	sw_engine_free(loaded);
	free(bytes);
	rig_close(&rig);
}

/* Aim: bytes of a newer version are refused as that, not as damage. */
static void test_newer_format(void **state)
{
	(void)state;
	struct rig rig;
	struct sw_engine *loaded = NULL;
	struct sw_err err = {0};
	bool adopted;
	size_t size;
	make_busy(&rig, &sw_policy_fifo);
	unsigned char *bytes = save(&rig, &size);
	bytes[8] = 100;
	assert_int_equal(load(&rig, &sw_policy_fifo, bytes, size, &loaded, &adopted, &err), SW_ELIMIT);
	assert_non_null(strstr(err.fact, "newer version"));
	free(bytes);
	rig_close(&rig);
}

/* Aim: a job that has ended costs little. */
static void test_ended_jobs_are_small(void **state)
{
	(void)state;
	struct rig rig;
	size_t before, after;
	make_busy(&rig, &sw_policy_las);
	free(save(&rig, &before));
	for (int i = 0; i < 100; i++) {
		uint32_t id = rig_submit_plain(&rig, 5000 + 10 * i, 1, 5);
		rig_event(&rig, 5001 + 10 * i, (struct sw_event){.kind = SW_EV_CANCEL, .job = {id}});
	}
	free(save(&rig, &after));
	assert_in_range((after - before) / 100, 1, 80);
	rig_close(&rig);
}

/* Aim: a change that adds a field to the engine's state is reminded to save it: put it into a walk
 * of save.c (or know that it lives within one step only), then correct the number here. */
static void test_no_field_is_forgotten(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct sw_job), 144);
	assert_int_equal(sizeof(struct sw_core_job), 344);
	assert_int_equal(sizeof(struct sw_lane), 96);
	assert_int_equal(sizeof(struct sw_order_book), 256);
	assert_int_equal(sizeof(struct sw_tenant), 12);
	assert_int_equal(sizeof(struct sw_hold_row), 32);
	assert_int_equal(sizeof(struct sw_part), 40);
	assert_int_equal(sizeof(struct sw_topology_node), 40);
	assert_int_equal(sizeof(struct sw_engine_config), 152);
	assert_int_equal(sizeof(struct sw_engine), 6216);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_adopted_by_another_version),
		cmocka_unit_test(test_adopted_by_another_policy),
		cmocka_unit_test(test_fallback_stays_in_charge),
		cmocka_unit_test(test_newer_format),
		cmocka_unit_test(test_ended_jobs_are_small),
		cmocka_unit_test(test_no_field_is_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
