/* Measured profiles: which one is a job's. */
#ifndef SW_SERVER_MODELS_H
#define SW_SERVER_MODELS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "api/job.h"
#include "base/error.h"
#include "brain/brain.h"

struct sw_server;

struct sw_profiles;
struct sw_store;
struct sw_models {
	struct sw_profiles *profiles; /* the built-in ones with those of the file over them */
	struct sw_store *store;	      /* NULL: none could be read yet */
	bool looked;
	struct timespec changed_at; /* of the file, at the last look */
	uint64_t size, number;
};
/* Before what needs profiles. */
int sw_models_start(struct sw_server *server, struct sw_err *err);
/* Reads the file if it is another one than at the last look. */
void sw_models_look(struct sw_server *server);
/* Says in the request which profile is the job's, and what follows from it, where it does not
 * say so itself. */
void sw_models_fill(struct sw_server *server, struct sw_job_request *job);
/* A record of that profile, where the brain does not know it as it is now. */
int sw_models_propose(struct sw_server *server, const struct sw_job_request *job, sw_records *records, struct sw_err *err);
void sw_models_release(struct sw_models *models);

#endif
