/* A submit that was proposed in this process is applied from the values that came with the
 * request: nothing that was written is read. */
#include "unit/brain/desk.h"

#include <stdlib.h>
#include <string.h>

#include "brain/record.h"

/* The text of the record is made unreadable before it is applied. */
static void test_nothing_is_read(void **state)
{
	(void)state;
	struct desk desk = {.now = SW_NS_PER_S};
	struct sw_err err = {0};
	sw_records records = {0};
	uint64_t job = 0;
	assert_int_equal(sw_brain_new(&desk_config, &desk.brain, &err), 0);
	struct sw_job_request *asked = desk_request("{\"command\": [\"true\"], \"env\": {\"A\": \"1\"}, \"name\": \"said\"}");
	const struct sw_submit_key key = {.text = "key", .digest = 7, .count = 1};
	assert_int_equal(sw_brain_propose_keyed_submit(desk.brain, &alice, asked, &key, &records, &err), 0);
	sw_job_request_free(asked);
	assert_int_equal(records.count, 1);
	assert_non_null(records.items[0].said);
	memset(records.items[0].body, '!', records.items[0].size);
	assert_int_equal(sw_brain_apply_record(desk.brain, desk.now, &records.items[0], &job, &err), 0);
	assert_int_equal(job, 1);
	assert_null(records.items[0].said);

	struct sw_job_view view;
	struct sw_submit_key known;
	uint64_t first = 0;
	assert_true(sw_brain_job(desk.brain, desk.now, job, &view));
	assert_string_equal(view.name, "said");
	assert_int_equal(view.uid, alice.uid);
	assert_non_null(strstr(view.request, "\"env\":{\"A\":\"1\"}"));
	assert_true(sw_brain_find_key(desk.brain, desk.now, &alice, "key", &known, &first));
	assert_true(first == 1 && known.digest == 7);
	assert_int_equal(sw_brain_validate(desk.brain, &err), 0);
	sw_records_clear(&records);
	sw_brain_free(desk.brain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_is_read)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
