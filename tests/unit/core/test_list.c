/* Lists of jobs whose links the core keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "scripted.h"

enum { QUEUE, SORTED, LISTS, SHELF = LISTS, OTHER, FIRST_NODE, SECOND_NODE, END };

static const struct sw_policy listing = {.abi = SW_POLICY_ABI,
					 .name = "listing",
					 .about = "has lists",
					 .state_size = 3,
					 .job_state_size = 5,
					 .node_state_size = 3,
					 .list_count = LISTS,
					 .shelf_count = FIRST_NODE - SHELF,
					 .node_shelf_count = 1,
					 .decide = scripted_decide};

static void open_listing(struct rig *rig, uint32_t jobs)
{
	script = NULL;
	rig_open(rig, two_by_two, 2, (struct sw_engine_config){.policy = &listing}, NULL);
	for (uint32_t i = 0; i < jobs; i++)
		rig_submit_plain(rig, 0, 1, 100);
}

/* The ids on the list, one digit each. */
static const char *ids(const struct sw_view *view, uint32_t list)
{
	static char text[16];
	size_t length = 0;
	for (const struct sw_job *job = sw_list_next(view, list, NULL); job != NULL; job = sw_list_next(view, list, job))
		text[length++] = (char)('0' + job->id.v);
	text[length] = '\0';
	return text;
}

static void fill(struct sw_plan *plan)
{
	static const uint32_t order[] = {2, 0, 3, 1, 0};
	struct sw_view *view = sw_plan_view(plan);
	for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
		sw_list_append(view, QUEUE, job_of(plan, order[i]));
		sw_list_insert(view, SORTED, job_of(plan, order[i]));
	}
	assert_string_equal(ids(view, QUEUE), "2031");
	assert_string_equal(ids(view, SORTED), "0123");
	sw_list_append(view, OTHER, job_of(plan, 3));
	sw_list_append(view, OTHER, job_of(plan, 1));
	sw_list_append(view, SECOND_NODE, job_of(plan, 2));
	for (uint32_t node = 0; node < 2; node++)
		memset(sw_node_state(view, (struct sw_node_id){node}), 0xff, listing.node_state_size);
	memset(sw_view_state(view), 0xff, listing.state_size);
	for (uint32_t id = 0; id < 4; id++)
		memset(sw_job_state(view, job_of(plan, id)), 0xff, listing.job_state_size);
	assert_string_equal(ids(view, QUEUE), "2031");
	assert_string_equal(ids(view, OTHER), "31");
	assert_string_equal(ids(view, SECOND_NODE), "2");
}

static void take_off(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	sw_list_remove(view, QUEUE, job_of(plan, 2));
	sw_list_remove(view, QUEUE, job_of(plan, 1));
	sw_list_remove(view, QUEUE, job_of(plan, 1));
	assert_string_equal(ids(view, QUEUE), "03");
	assert_false(sw_list_has(view, QUEUE, job_of(plan, 1)));
	assert_true(sw_list_has(view, SORTED, job_of(plan, 1)));
	sw_list_append(view, QUEUE, job_of(plan, 1));
	assert_string_equal(ids(view, QUEUE), "031");
	/* What is not so does nothing. */
	sw_list_append(view, END, job_of(plan, 2));
	sw_list_append(view, QUEUE, &made_up);
	sw_list_append(view, QUEUE, NULL);
	sw_list_remove(view, END, job_of(plan, 0));
	sw_list_remove(view, QUEUE, &made_up);
	assert_null(sw_list_next(view, END, NULL));
	assert_null(sw_list_next(view, QUEUE, job_of(plan, 2)));
	assert_string_equal(ids(view, QUEUE), "031");
}

/* Aim: jobs are appended and inserted once, in their order, taken off wherever they are, and the
 * policy's own bytes and the links do not touch. */
static void test_lists(void **state)
{
	(void)state;
	struct rig rig;
	open_listing(&rig, 4);
	run_script(&rig, 1, fill);
	run_script(&rig, 2, take_off);
	rig_close(&rig);
}

static void move_between_shelves(struct sw_plan *plan)
{
	struct sw_view *view = sw_plan_view(plan);
	for (uint32_t id = 0; id < 4; id++)
		sw_list_append(view, SHELF, job_of(plan, id));
	assert_string_equal(ids(view, SHELF), "0123");
	assert_int_equal(sw_list_shelf(view, job_of(plan, 2)), SHELF);
	/* It leaves one for another. */
	sw_list_insert(view, SECOND_NODE, job_of(plan, 2));
	assert_string_equal(ids(view, SHELF), "013");
	assert_string_equal(ids(view, SECOND_NODE), "2");
	assert_int_equal(sw_list_shelf(view, job_of(plan, 2)), SECOND_NODE);
	sw_list_put(view, SECOND_NODE, job_of(plan, 3), NULL);
	sw_list_put(view, SECOND_NODE, job_of(plan, 0), job_of(plan, 3));
	assert_string_equal(ids(view, SECOND_NODE), "302");
	assert_int_equal(sw_list_length(view, SECOND_NODE), 3);
	assert_int_equal(sw_list_length(view, SHELF), 1);
	/* Lists are another matter. */
	sw_list_append(view, QUEUE, job_of(plan, 0));
	assert_int_equal(sw_list_shelf(view, job_of(plan, 0)), SECOND_NODE);
	/* It is there already; the one to stand behind is elsewhere; there is no such shelf. */
	sw_list_put(view, SECOND_NODE, job_of(plan, 2), NULL);
	sw_list_put(view, SECOND_NODE, job_of(plan, 1), &made_up);
	sw_list_put(view, FIRST_NODE, job_of(plan, 1), job_of(plan, 3));
	sw_list_append(view, END, job_of(plan, 1));
	sw_list_append(view, SW_NO_LIST, job_of(plan, 1));
	assert_string_equal(ids(view, SECOND_NODE), "302");
	assert_string_equal(ids(view, SHELF), "1");
	sw_list_remove(view, OTHER, job_of(plan, 1));
	assert_int_equal(sw_list_shelf(view, job_of(plan, 1)), SHELF);
	sw_list_remove(view, SHELF, job_of(plan, 1));
	sw_list_remove(view, sw_list_shelf(view, job_of(plan, 1)), job_of(plan, 1));
	assert_int_equal(sw_list_shelf(view, job_of(plan, 1)), SW_NO_LIST);
	assert_int_equal(sw_list_shelf(view, &made_up), SW_NO_LIST);
	assert_false(sw_list_has(view, SW_NO_LIST, job_of(plan, 1)));
	assert_null(sw_list_next(view, SW_NO_LIST, job_of(plan, 1)));
	assert_int_equal(sw_list_length(view, END), 0);
	assert_int_equal(sw_list_length(view, SW_NO_LIST), 0);
}

/* Aim: a job is on one shelf at most, of the policy or of a node, and shelves are lists like others
 * but for that. */
static void test_shelves(void **state)
{
	(void)state;
	struct rig rig;
	open_listing(&rig, 4);
	run_script(&rig, 1, move_between_shelves);
	rig_close(&rig);
}

/* Aim: a job that ends is taken off every list, and no list takes it any more. */
static void test_ended(void **state)
{
	(void)state;
	struct rig rig;
	open_listing(&rig, 4);
	run_script(&rig, 1, fill);
	struct sw_view *view = (struct sw_view *)(uintptr_t)sw_engine_view(rig.engine);
	rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_CANCEL, .job = {0}});
	assert_string_equal(ids(view, QUEUE), "231");
	assert_string_equal(ids(view, SORTED), "123");
	rig_event(&rig, 2, (struct sw_event){.kind = SW_EV_CANCEL, .job = {3}});
	assert_string_equal(ids(view, OTHER), "1");
	sw_list_append(view, QUEUE, rig_job(&rig, 0));
	sw_list_append(view, OTHER, rig_job(&rig, 0));
	assert_string_equal(ids(view, QUEUE), "21");
	assert_string_equal(ids(view, OTHER), "1");
	rig_close(&rig);
}

/* Aim: lists are saved and loaded with the policy's bytes. */
static void test_saved(void **state)
{
	(void)state;
	struct sw_err err = {0};
	struct sw_pack bytes = {0};
	struct sw_engine *loaded = NULL;
	struct rig rig;
	bool adopted = true;
	open_listing(&rig, 4);
	run_script(&rig, 1, fill);
	sw_engine_save(rig.engine, &bytes);
	const struct sw_engine_config config = {.policy = &listing, .params = rig.params, .placement = &sw_placement_count};
	rig_must(sw_engine_load(&config, bytes.bytes, bytes.size, &loaded, &adopted, &err), &err);
	assert_false(adopted);
	assert_string_equal(ids(sw_engine_view(loaded), QUEUE), "2031");
	assert_string_equal(ids(sw_engine_view(loaded), SORTED), "0123");
	assert_string_equal(ids(sw_engine_view(loaded), OTHER), "31");
	assert_string_equal(ids(sw_engine_view(loaded), SECOND_NODE), "2");
	sw_engine_free(loaded);
	sw_pack_release(&bytes);
	rig_close(&rig);
}

/* Aim: a list whose links lead nowhere, to a job that is not there or in a circle, is noticed, also
 * in bytes that are loaded. */
static void test_damaged(void **state)
{
	(void)state;
	/* The ends of lists lie behind the bytes of the policy or of a node: first, last and how
	 * many. Links lie behind those of a job: before and after, and which shelf. */
	enum whose { POLICY, NODE, JOB };
	enum { SHELF_ENDS = 3 * OTHER, PLACE = 2 * LISTS };
	static const struct {
		enum whose whose;
		uint32_t id, field, value;
	} damages[] = {
		{POLICY, 0, 0, 4000000000},
		{POLICY, 0, 0, 0},
		{POLICY, 0, 1, 4},
		{POLICY, 0, 2, 3},
		{JOB, 0, 1, 9},
		{JOB, 0, 0, 77},
		{JOB, 1, 1, UINT32_MAX},
		{JOB, 1, 1, 3},
		{JOB, 1, 0, 0},
		{POLICY, 0, SHELF_ENDS, 2},
		{POLICY, 0, SHELF_ENDS, 0},
		{POLICY, 0, SHELF_ENDS + 2, 1},
		{NODE, 1, 0, 2},
		{NODE, 1, 1, 0},
		{NODE, 0, 0, 3},
		{JOB, 0, PLACE, 2},
		{JOB, 0, PLACE + 2, 9},
		{JOB, 0, PLACE + 2, OTHER + 1},
		{JOB, 3, PLACE + 2, SHELF + 1},
		{JOB, 3, PLACE + 2, 0},
		{JOB, 1, PLACE + 1, 4},
	};
	for (size_t d = 0; d < sizeof damages / sizeof *damages; d++) {
		struct sw_err err = {0};
		struct sw_pack bytes = {0};
		struct sw_engine *loaded = NULL;
		struct rig rig;
		bool adopted;
		open_listing(&rig, 4);
		run_script(&rig, 1, fill);
		struct sw_view *view = (struct sw_view *)(uintptr_t)sw_engine_view(rig.engine);
		char *own = damages[d].whose == POLICY ? sw_view_state(view)
			    : damages[d].whose == NODE ? sw_node_state(view, (struct sw_node_id){damages[d].id})
						       : sw_job_state(view, rig_job(&rig, damages[d].id));
		memcpy(own + 8 + 4 * (size_t)damages[d].field, &damages[d].value, sizeof damages[d].value);
		assert_int_equal(sw_engine_validate(rig.engine, &err), SW_EBUG);
		sw_engine_save(rig.engine, &bytes);
		const struct sw_engine_config config = {.policy = &listing, .params = rig.params, .placement = &sw_placement_count};
		assert_int_equal(sw_engine_load(&config, bytes.bytes, bytes.size, &loaded, &adopted, &err), SW_EINPUT);
		sw_pack_release(&bytes);
		rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),	cmocka_unit_test(test_shelves), cmocka_unit_test(test_ended),
		cmocka_unit_test(test_damaged), cmocka_unit_test(test_saved),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
