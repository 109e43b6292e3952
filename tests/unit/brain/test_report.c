/* Records of reports: written and read by one table, and the same text as ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "brain/record.h"
#include "brain/report.h"

/* A report of each state comes back from its record as it was. */
static void test_round_trip(void **state)
{
	(void)state;
	for (unsigned said = SW_REPORT_STARTING; said <= SW_REPORT_UNMOVED; said++) {
		const struct sw_report report = {.node = "n\xc3\xa9",
						 .job = SW_SYNC_JOB_MAX,
						 .epoch = UINT32_MAX,
						 .state = (enum sw_report_state)said,
						 .code = 255,
						 .signal = 64,
						 .reason = "\"why\"\n"};
		sw_records records = {0};
		struct sw_report back;
		assert_int_equal(sw_report_record(&report, &records, NULL), 0);
		json_t *body = sw_record_parse(records.items[0].body, records.items[0].size, NULL);
		assert_int_equal(sw_report_read(body, &back, NULL), 0);
		assert_string_equal(back.node, report.node);
		assert_string_equal(back.reason, report.reason);
		assert_true(back.job == report.job && back.epoch == report.epoch && back.state == report.state &&
			    back.code == report.code && back.signal == report.signal && back.failure == NULL);
		json_decref(body);
		sw_records_clear(&records);
	}
}

/* Journals that are out in the world have this text: it is written so, and is read. */
static void test_text(void **state)
{
	(void)state;
	static const char text[] = "{\"code\":1,\"epoch\":2,\"failure\":{\"class\":\"c\",\"free\":false},\"job\":7,\"node\":\"n1\","
				   "\"reason\":\"\",\"signal\":9,\"state\":\"exited\"}";
	sw_records records = {0};
	struct sw_report report;
	json_t *body = json_loads(text, 0, NULL);
	assert_int_equal(sw_report_read(body, &report, NULL), 0);
	assert_true(report.job == 7 && report.epoch == 2 && report.code == 1 && report.signal == 9 && report.state == SW_REPORT_EXITED);
	assert_int_equal(sw_report_record(&report, &records, NULL), 0);
	assert_string_equal(records.items[0].body, text);
	json_decref(body);
	sw_records_clear(&records);
}

/* A record that lacks a field, or has a word that is none, is refused by name. */
static void test_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *name;
	} cases[] = {{"{\"code\":0,\"epoch\":1,\"job\":1,\"node\":\"n\",\"reason\":\"\",\"signal\":0}", "'state'"},
		     {"{\"code\":0,\"epoch\":1,\"job\":1,\"node\":\"n\",\"reason\":\"\",\"signal\":0,\"state\":\"asleep\"}", "'state'"},
		     {"{\"code\":0,\"epoch\":-1,\"job\":1,\"node\":\"n\",\"reason\":\"\",\"signal\":0,\"state\":\"off\"}", "'epoch'"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct sw_err err = {0};
		struct sw_report report;
		json_t *body = json_loads(cases[i].text, 0, NULL);
		assert_int_equal(sw_report_read(body, &report, &err), SW_EINPUT);
		assert_non_null(strstr(err.detail, cases[i].name));
		json_decref(body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_text), cmocka_unit_test(test_refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
