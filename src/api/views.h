/* What people are told of jobs and nodes, as rows with tables: written by them, and described by
 * them.
 *
 * Nothing is read here. What is an object of its own (the last stop, figures of GPUs) is written
 * beside the row, and has its schema in schemas.c. */
#ifndef SW_API_VIEWS_H
#define SW_API_VIEWS_H

#include <sharewell/job_class.h>

#include "api/fields.h"

/* Moments that are negative, or beyond what can be written, are null. */
struct sw_job_row {
	uint64_t id;
	const char *state, *state_long, *user;
	uint32_t uid, gpus;
	int64_t submitted_at_ns, started_at_ns, ended_at_ns;
	bool past;
	/* For its owner and for operators. */
	const char *name, *tenant, *reason;
	bool held;
	const char *deep; /* NULL: nothing of the kind; and so on */
	bool moving;
	const char *unmoved, *unreachable;
	int64_t unreachable_since_ns;
	const char *node;
	uint64_t gpu_mask;
	int64_t ran_ns, retry_at_ns;
	uint32_t epoch, restarts, preemptions;
	enum sw_job_class job_class;
	bool paused;
	int32_t code, signal;
	uint64_t gpu_memory_bytes;
	const char *warning;
};
extern const struct sw_table sw_job_brief_table, sw_job_details_table; /* what all users see, and the rest */

/* The request in short: of struct sw_job_request. */
extern const struct sw_table sw_asked_table;

struct sw_node_row {
	const char *name;
	bool up, unreachable, closed, in_use;
	const char *reason;
	uint32_t gpus, gpus_free, gpus_shut, cpus;
	uint64_t memory_bytes;
	int64_t heard_at_ns;
	bool knows_host; /* the two below */
	uint64_t gpu_host_bytes, gpu_host_limit_bytes;
};
extern const struct sw_table sw_node_table;

/* As members of the object that is open. */
void sw_encode_row(struct sw_json *json, const struct sw_table *table, const void *row);

#endif
