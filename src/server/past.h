/* Jobs that have left the state: rows answer for them. */
#ifndef SW_SERVER_PAST_H
#define SW_SERVER_PAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/request.h"
#include "base/error.h"
#include "base/number.h"
#include "brain/brain.h"
#include "brain/lengths.h"
#include "server/views.h"
#include "store/past.h"

struct sw_server;
struct event;

/* A job as the brain knows it, or as its row tells. Of a row, the view has what all may see, its
 * name, node, epoch and request. */
struct sw_found_job {
	struct sw_job_view view;
	bool is_past;
	const char *texts[SW_PAST_TEXTS]; /* of the row */
	char *own;
};
/* False: there is no such job, or no longer. Release what was found. */
bool sw_find_job(struct sw_server *server, uint64_t job, struct sw_found_job *ret_seen);
void sw_found_release(struct sw_found_job *seen);
void sw_found_write(struct sw_server *server, struct sw_json *json, const struct sw_found_job *seen, bool in_full, enum sw_job_extra extra);
/* Why it ended, of a row. */
const char *sw_found_why(const struct sw_found_job *seen);
/* A walk over jobs by number, those of the brain and rows. */
struct sw_job_walk {
	struct sw_server *server;
	bool descending, by_user;
	uint32_t uid;
	uint64_t at;	   /* the next number that is looked at; 0: the walk is over */
	uint64_t stops_at; /* rows below this one are of no interest */
	int64_t now_ns;
	/* False: it takes no more. NULL: a job that is gone. */
	bool (*give)(struct sw_job_walk *walk, const struct sw_found_job *seen);
};
/* False: it was not taken all. */
bool sw_past_walk(struct sw_job_walk *walk, uint32_t wanted_states, int64_t since_ns, struct sw_err *err);
/* Rows of the jobs that the record lets go, into the batch that it is in. */
void sw_past_keep(struct sw_server *server, const struct sw_record *record);
bool sw_past_fate(void *server, uint64_t job, struct sw_fate *ret_fate);
/* A text that a record named, and the texts of a record into the batch that it is in. */
int sw_past_load_text(void *server, const unsigned char *digest, char **ret_bytes, size_t *ret_size, struct sw_err *err);
void sw_past_keep_texts(struct sw_server *server, const struct sw_record *record);
/* How long the job of the row ran; false: it says nothing about lengths. */
bool sw_past_length(const struct sw_past_row *row, struct sw_length *ret_length);
void sw_past_add_counts(struct sw_server *server, uint64_t counts[SW_STATES]);
int sw_past_start(struct sw_server *server, struct sw_err *err);
void sw_past_stop(struct sw_server *server);
struct sw_pasts {
	struct event *step; /* that removes rows and texts */
	int64_t cursor;	    /* texts up to this one were looked at */
	bool sweeps;	    /* some may be of no use any more */
	unsigned put_off;   /* how often the next step was */
};
/* What is kept unless the options say otherwise. */
#define SW_KEEP_JOBS 10000u
#define SW_KEEP_FOR_NS (INT64_C(86400) * SW_NS_PER_S)
#define SW_KEEP_HISTORY 1000000u
#define SW_KEEP_EVENTS 200000u /* records */

#endif
