/* A request of the API, decoded: from method, target and body to plain values. Pure, and fuzzed.
 *
 * In two steps, since the caller and how much may come are known from the head alone:
 *	sw_request_open()	method and target: the route and its parameters
 *	sw_request_read()	the body
 */
#ifndef SW_API_REQUEST_H
#define SW_API_REQUEST_H

#include "api/job.h"
#include "api/routes.h"
#include "api/sync.h"
#include "base/vec.h"

#define SW_REQUEST_JOBS_MAX 10000u
#define SW_REQUEST_STEP_BYTES ((size_t)64 << 10) /* of a list of jobs, that one step reads at least */
#define SW_REQUEST_CHANGES_MAX 100000u
#define SW_LIST_MAX 1000u
#define SW_LIST_USUAL 100u
#define SW_SETTINGS_MAX 64u

/* States as people filter by them; a job is in one of them. */
#define SW_STATES 12u
struct sw_state_name {
	const char *brief, *full;
	bool ended;
};
extern const struct sw_state_name sw_state_names[SW_STATES];
/* The position of the short name; SW_STATES when it is none. */
unsigned sw_state_find(const char *brief);

struct sw_request_job {
	struct sw_job_request *job;
};

struct sw_request {
	const struct sw_route *route;
	uint64_t job; /* {id}, or the `job` of events; 0: none */

	struct {
		uint32_t states; /* a bit for each of sw_state_names; all of them by default */
		char *user;	 /* NULL: any */
		char *name;	 /* NULL: any */
		bool name_is_prefix;
		uint32_t limit;
		uint64_t cursor; /* 0: from the start */
		bool descending;
		bool asked;		    /* with what the jobs asked for */
		int64_t since_ns, until_ns; /* that existed at some time between */
	} list;
	struct {
		int64_t offset;
		uint64_t limit; /* UINT64_MAX: none */
		uint32_t run;	/* 0: the last */
		bool follow;
	} logs;
	uint64_t after; /* events behind this one */
	bool has_after;
	bool all_events; /* of the journal: not holds and releases alone */
	bool deep;	 /* how to suspend it */
	bool force;	 /* though it loses its run */
	struct {
		enum sw_route_id verb; /* that for one job does the same */
		bool skips_ended;
		SW_VEC(uint64_t) jobs;
	} change; /* of many */

	SW_VEC(struct sw_request_job) jobs;
	uint64_t job_total;   /* jobs that these stand for */
	bool jobs_are_listed; /* a list was sent, not one job */
	size_t read_at;	      /* how far the list has been read */
	char *key;	      /* that makes it one to be carried out once; NULL: none */
	uint64_t digest;      /* of the body of a submit */
	char *policy;
	char *world, *world_text;
	char *settings[SW_SETTINGS_MAX]; /* "name=value" */
	size_t setting_count;
	char *tenant;
	uint32_t quota_gpus; /* UINT32_MAX: lifted */
	char *node, *reason; /* that is closed, opened or removed */
	bool closed, removed;
	struct sw_job_limit limit;
	uint64_t gpu_mask;	       /* where it is to go; 0: anywhere */
	struct sw_sync_reader *reader; /* of a sync that is not read to its end; it points into the body */
	struct sw_sync *sync;
};

int sw_request_open(enum sw_method method, const char *target, struct sw_request **ret_request, int *ret_status, struct sw_err *err);
/* Reads the body, a long list of jobs or a long sync in steps: *ret_more, call
 * again with the same body. */
int sw_request_read_some(struct sw_request *request, const char *body, size_t size, bool *ret_more, int *ret_status, struct sw_err *err);
int sw_request_read(struct sw_request *request, const char *body, size_t size, int *ret_status, struct sw_err *err);
void sw_request_free(struct sw_request *request);
SW_DEFINE_FREEP(struct sw_request, sw_request_free)

/* The HTTP status that goes with an error code. */
int sw_status_of(int code);

#endif
