/* Submits of jobs. */
#ifndef SW_SERVER_SUBMIT_H
#define SW_SERVER_SUBMIT_H

#include "api/job.h"
#include "base/error.h"
#include "brain/brain.h"

struct sw_server;
struct sw_conn;

/* The records that a submit of this job makes, under the key (NULL: none). */
int sw_submit_propose(struct sw_server *server, const struct sw_user *user, struct sw_job_request *job, const struct sw_submit_key *key,
		      sw_records *records, struct sw_err *err);

void sw_handle_submit(struct sw_server *server, struct sw_conn *conn);

#endif
