/* Journal records as JSON. */
#include <stdlib.h>
#include <string.h>

#include "brain/record.h"
#include "brain/state.h"

int sw_record_push(sw_records *records, enum sw_record_kind kind, json_t *body, struct sw_err *err)
{
	char *text = body != NULL ? json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(body);
	return sw_record_push_text(records, kind, text, text != NULL ? strlen(text) : 0, err);
}

int sw_record_push_text(sw_records *records, enum sw_record_kind kind, char *text, size_t size, struct sw_err *err)
{
	struct sw_record *record = text != NULL ? sw_vec_push(records) : NULL;
	if (record == NULL) {
		free(text);
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	*record = (struct sw_record){.kind = kind, .body = text, .size = size};
	return 0;
}

json_t *sw_record_parse(const char *body, size_t size, struct sw_err *err)
{
	json_error_t problem;
	json_t *json = json_loadb(body, size, 0, &problem);
	if (json == NULL) {
		sw_err_set(err, SW_EBUG, "a journal record cannot be read");
		sw_err_detail(err, "%s at byte %d", problem.text, problem.position);
	}
	return json;
}

void sw_said_free(struct sw_said *said)
{
	if (said == NULL)
		return;
	json_decref(said->rest);
	sw_job_request_free(said->request);
	free(said->text);
	free(said);
}

void sw_records_clear(sw_records *records)
{
	for (size_t r = 0; r < records->count; r++) {
		free(records->items[r].body);
		sw_said_free(records->items[r].said);
		for (int b = 0; b < SW_BULKS; b++)
			free(records->items[r].texts[b].bytes);
	}
	sw_vec_free(records);
}
