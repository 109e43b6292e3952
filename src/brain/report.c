/* What was heard of a run, as a record. */
#include "brain/report.h"

#include <stdlib.h>
#include <string.h>

#include "api/fields.h"
#include "api/json.h"
#include "api/sync.h"
#include "brain/record.h"

static const char *const state_names[] = {"starting", "running", "exited", "gone",  "off",     "refused",
					  "frees",    "stays",	 "held",   "moved", "unmoved", NULL};
_Static_assert(sizeof state_names / sizeof state_names[0] == SW_REPORT_UNMOVED + 2, "one name for each");

static int read_failure(struct sw_decoder *decoder, const struct sw_field *field, json_t *value, void *target)
{
	(void)decoder;
	(void)field;
	((struct sw_report *)target)->failure = value;
	return 0;
}

static void write_failure(struct sw_json *json, const struct sw_field *field, const void *source)
{
	const json_t *failure = ((const struct sw_report *)source)->failure;
	char *text = failure != NULL ? json_dumps(failure, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json->failed = json->failed || (failure != NULL && text == NULL);
	if (text != NULL) {
		sw_json_key(json, field->name);
		sw_json_raw(json, text, strlen(text));
	}
	free(text);
}

#define AT(member) .offset = offsetof(struct sw_report, member)

/* In the order of the names, as records have their keys. */
static const struct sw_field fields[] = {
	{"code", SW_FIELD_I32, AT(code), .min = INT32_MIN, .max = INT32_MAX, .required = true},
	{"epoch", SW_FIELD_U32, AT(epoch), .max = UINT32_MAX, .required = true},
	{"failure", SW_FIELD_OWN, AT(failure), .size = sizeof(json_t *), .read = read_failure, .write = write_failure},
	{"job", SW_FIELD_U64, AT(job), .max = INT64_MAX, .required = true},
	{"node", SW_FIELD_TEXT, AT(node), .max = INT32_MAX, .required = true},
	{"ran", SW_FIELD_I64, .brief = true, AT(ran_ns), .max = INT64_MAX},
	{"reason", SW_FIELD_TEXT, AT(reason), .max = INT32_MAX, .required = true},
	{"signal", SW_FIELD_I32, AT(signal), .min = INT32_MIN, .max = INT32_MAX, .required = true},
	{"since", SW_FIELD_I64, .brief = true, AT(since_ns), .max = INT64_MAX},
	{"state", SW_FIELD_WORD, AT(state), .words = state_names, .required = true},
	{"stops", SW_FIELD_U32, .brief = true, AT(stops), .max = UINT32_MAX},
	{"uid", SW_FIELD_U32, .brief = true, AT(uid), .max = UINT32_MAX},
};
const struct sw_table sw_report_fields = {"report", fields, SW_FIELD_COUNT(fields), sizeof(struct sw_report)};

void sw_report_note_job(struct sw_report *report, const struct sw_brain *brain, uint64_t job)
{
	const struct sw_job_id id = {(uint32_t)(job - 1)};
	const struct sw_job *own = sw_engine_job(brain->engine, id);
	report->ran_ns = sw_engine_clock(brain->engine, id)->ran_ns;
	report->since_ns = own->state == SW_JOB_RUNNING && !own->paused ? own->since : 0;
	report->stops = own->preemptions;
	report->uid = sw_brain_live(brain, job)->uid;
}

int sw_report_record(const struct sw_report *report, sw_records *records, struct sw_err *err)
{
	struct sw_json json = {0};
	size_t size = 0;
	sw_json_object(&json);
	sw_encode_fields(&json, fields, SW_FIELD_COUNT(fields), report);
	sw_json_end_object(&json);
	char *text = sw_json_take(&json, &size);
	return sw_record_push_text(records, SW_RECORD_REPORT, text, size, err);
}

int sw_report_read(json_t *body, struct sw_report *ret_report, struct sw_err *err)
{
	struct sw_decoder decoder = {.what = "a report record cannot be read", .err = err};
	struct sw_report report = {0};
	int r = sw_decode_fields(&decoder, body, fields, SW_FIELD_COUNT(fields), &report);
	if (r == 0)
		*ret_report = report;
	return r;
}
