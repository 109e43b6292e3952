/* Jobs as callers see them. */
#ifndef SW_SERVER_VIEWS_H
#define SW_SERVER_VIEWS_H

#include <stdbool.h>
#include <stdint.h>

#include "api/json.h"
#include "api/request.h"
#include "brain/brain.h"

struct sw_server;
struct sw_peer;

bool sw_may_see(const struct sw_peer *peer, const struct sw_job_view *view);
/* What is said beside how the job stands: what was asked for; whether a change found anything to
 * do. */
enum sw_job_extra { SW_WITHOUT_REQUEST = 0, SW_WITH_REQUEST, SW_WITH_ASKED, SW_CHANGED, SW_UNCHANGED };
void sw_write_job(struct sw_server *server, struct sw_json *json, const struct sw_job_view *view, bool in_full, enum sw_job_extra extra);
/* "stop": the last stop of the job. */
void sw_write_stop(struct sw_server *server, struct sw_json *json, uint64_t job);
void sw_write_time(struct sw_json *json, const char *key, int64_t ns); /* null for never */
const char *sw_user_name(struct sw_server *server, uint32_t uid);
/* Jobs in each state; where there are very many, as they were a second or so ago. */
void sw_count_jobs(struct sw_server *server, uint64_t counts[SW_STATES]);

struct sw_user_name {
	uint32_t uid;
	char name[64];
};

/* The parts of the above, for rows of the past. */
void sw_write_job_brief(struct sw_server *server, struct sw_json *json, const struct sw_job_view *view, bool past);
void sw_write_job_details(struct sw_server *server, struct sw_json *json, const struct sw_job_view *view);
void sw_write_job_asked(struct sw_json *json, const struct sw_job_view *view); /* the value */

#endif
