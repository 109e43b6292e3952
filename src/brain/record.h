/* Records as JSON: they are built and read. The builders steal `body` and fail with
 * SW_ENOMEM. See record.c. */
#ifndef SW_BRAIN_RECORD_H
#define SW_BRAIN_RECORD_H

#include "brain/state.h"

/* What a submit says, as values. Such a submit has no large parts, and waits for no jobs. */
struct sw_said {
	json_t *rest; /* all of the body but the request, for which an empty object stands */
	struct sw_job_request *request;
	char *text; /* of the request */
};
void sw_said_free(struct sw_said *said);
SW_DEFINE_FREEP(struct sw_said, sw_said_free)

int sw_record_push(sw_records *records, enum sw_record_kind kind, json_t *body, struct sw_err *err);
/* As JSON already. Steals `text`; NULL is one that could not be written. */
int sw_record_push_text(sw_records *records, enum sw_record_kind kind, char *text, size_t size, struct sw_err *err);
json_t *sw_record_parse(const char *body, size_t size, struct sw_err *err);

#endif
