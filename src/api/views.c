/* The tables of rows. */
#include "api/views.h"

#include "api/job.h"
#include "api/when.h"
#include "base/number.h"

static void write_moment(struct sw_json *json, const struct sw_field *field, const void *source)
{
	char text[SW_WHEN_SIZE];
	int64_t ns = *(const int64_t *)((const char *)source + field->offset);
	sw_json_key(json, field->name);
	if (ns < field->min || ns > SW_WHEN_MAX_NS)
		sw_json_null(json);
	else
		sw_json_string(json, sw_when_format(ns, text));
}

/* Nanoseconds as seconds. */
static void write_seconds(struct sw_json *json, const struct sw_field *field, const void *source)
{
	int64_t ns = *(const int64_t *)((const char *)source + field->offset);
	sw_json_key(json, field->name);
	if (field->null && ns <= 0)
		sw_json_null(json);
	else
		sw_json_decimal(json, ns, SW_NS_PER_S);
}

static void write_thousandths(struct sw_json *json, const struct sw_field *field, const void *source)
{
	sw_json_key(json, field->name);
	sw_json_decimal(json, *(const uint32_t *)((const char *)source + field->offset), 1000);
}

static void write_mask(struct sw_json *json, const struct sw_field *field, const void *source)
{
	sw_json_key(json, field->name);
	sw_json_array(json);
	for (uint64_t mask = *(const uint64_t *)((const char *)source + field->offset); mask != 0; mask &= mask - 1)
		sw_json_u64(json, (uint64_t)__builtin_ctzll(mask));
	sw_json_end_array(json);
}

static void write_depends(struct sw_json *json, const struct sw_field *field, const void *source)
{
	const struct sw_job_request *request = source;
	sw_json_key(json, field->name);
	sw_json_array(json);
	/* Of the second list, those after whose failure it runs. */
	for (size_t i = 0; i < request->depend_count; i++)
		if (field->min == 0 || request->depends[i].kind == SW_AFTER_NOT_OK)
			sw_json_u64(json, request->depends[i].job);
	sw_json_end_array(json);
}

void sw_encode_row(struct sw_json *json, const struct sw_table *table, const void *row)
{
	sw_encode_fields(json, table->fields, table->count, row);
}

#define AT(member) .offset = offsetof(THIS, member)

#define THIS struct sw_job_row
static const struct sw_field job_brief_fields[] = {
	{"id", SW_FIELD_U64, AT(id), .max = INT64_MAX, .about = "counted from 1"},
	{"state", SW_FIELD_TEXT, AT(state), .max = INT32_MAX,
	 .about = "short, as Slurm's: PD CF R S CG CD F CA TO NF OOM; UN: see `unreachable`"},
	{"state_long", SW_FIELD_TEXT, AT(state_long), .max = INT32_MAX,
	 .about =
		 "PENDING CONFIGURING RUNNING SUSPENDED COMPLETING COMPLETED FAILED CANCELLED TIMEOUT NODE_FAIL OUT_OF_MEMORY UNREACHABLE"},
	{"user", SW_FIELD_TEXT, AT(user), .max = INT32_MAX, .about = "the user that submitted it"},
	{"uid", SW_FIELD_U32, AT(uid), .max = UINT32_MAX, .about = "the user that submitted it"},
	{"gpus", SW_FIELD_U32, AT(gpus), .max = UINT32_MAX, .about = "it holds, or asks for"},
	{"submitted_at", SW_FIELD_MOMENT, AT(submitted_at_ns), .write = write_moment, .about = "RFC 3339"},
	{"started_at", SW_FIELD_MOMENT, AT(started_at_ns), .write = write_moment, .about = "its first run; null: not yet"},
	{"ended_at", SW_FIELD_MOMENT, AT(ended_at_ns), .write = write_moment, .about = "null: not yet"},
	{"past", SW_FIELD_BOOL, AT(past),
	 .about = "it has left the controller's memory: what is told of it comes from a row on disk, which holds all but its environment"},
};

static const struct sw_field job_details_fields[] = {
	{"name", SW_FIELD_TEXT, AT(name), .max = INT32_MAX, .about = "this and all that follows: only for its owner and for operators"},
	{"tenant", SW_FIELD_TEXT, AT(tenant), .max = INT32_MAX, .about = "on whose quota"},
	{"reason", SW_FIELD_TEXT, AT(reason), .max = INT32_MAX, .about = "why it waits or ended, short"},
	{"held", SW_FIELD_BOOL, AT(held), .about = "a user holds it back"},
	{"deep", SW_FIELD_TEXT, AT(deep), .min = 1, .max = INT32_MAX, .null = true,
	 .about = "of one that is suspended in place; null: it was not asked for. `off`: nothing of it is on its GPUs. `leaving`: on its "
		  "way there. `refused`: that cannot be, as `reason` says"},
	{"moving", SW_FIELD_BOOL, AT(moving), .about = "it is on its way to its GPUs from others of the node"},
	{"unmoved", SW_FIELD_TEXT, AT(unmoved), .min = 1, .max = INT32_MAX, .null = true,
	 .about = "why it could not go to other GPUs when that was wished last; null: it could, or that was not wished"},
	{"unreachable", SW_FIELD_TEXT, AT(unreachable), .min = 1, .max = INT32_MAX, .null = true,
	 .about = "the node that does not answer, where a run of it may be alive; null: there is none. The run goes on there, as far as is "
		  "known"},
	{"unreachable_since", SW_FIELD_MOMENT, AT(unreachable_since_ns), .write = write_moment,
	 .about = "when that node was heard last; null"},
	{"node", SW_FIELD_TEXT, AT(node), .min = 1, .max = INT32_MAX, .null = true,
	 .about = "where it runs or ran last; null: nowhere yet"},
	{"gpu_indexes", SW_FIELD_U64, AT(gpu_mask), .write = write_mask, .type = "integer[]", .about = "its GPUs there"},
	{"ran_s", SW_FIELD_SPAN, AT(ran_ns), .write = write_seconds, .type = "number",
	 .about = "seconds it has run, all runs together; of one that is unreachable, until its node was heard last"},
	{"retry_at", SW_FIELD_MOMENT, AT(retry_at_ns), .write = write_moment,
	 .about = "when it is tried again after a failure; null: it does not wait for that"},
	{"epoch", SW_FIELD_U32, AT(epoch), .max = UINT32_MAX, .about = "number of its present or last run"},
	{"restarts", SW_FIELD_U32, AT(restarts), .max = UINT32_MAX, .about = "runs that started anew"},
	{"preemptions", SW_FIELD_U32, AT(preemptions), .max = UINT32_MAX, .about = "times it had to make room"},
	{"class", SW_FIELD_WORD, AT(job_class), .words = sw_job_class_names,
	 .about = "`guaranteed` or `opportunistic`: what it runs as now, or will"},
	{"paused", SW_FIELD_BOOL, AT(paused), .about = "it runs, and stands still on its GPUs: another has the turn there"},
	{"code", SW_FIELD_I32, AT(code), .min = INT32_MIN, .max = INT32_MAX, .about = "exit code of the last run that ended"},
	{"signal", SW_FIELD_I32, AT(signal), .min = INT32_MIN, .max = INT32_MAX, .about = "that ended it; 0: none"},
	{"gpu_memory_bytes", SW_FIELD_U64, AT(gpu_memory_bytes), .max = INT64_MAX,
	 .about = "it gets on each GPU; 0: whole GPUs. More than it asked for after it ran out"},
	{"warning", SW_FIELD_TEXT, AT(warning), .max = INT32_MAX,
	 .about = "about an input that others failed on, a model without a profile, or what the policy made of the job; else empty"},
};
#undef THIS

#define THIS struct sw_job_request
static const struct sw_field asked_fields[] = {
	{"gpus", SW_FIELD_U32, AT(gpus), .max = SW_JOB_GPUS_MAX, .about = "how many GPUs"},
	{"min_gpus", SW_FIELD_U32, AT(min_gpus), .max = SW_JOB_GPUS_MAX, .about = "may shrink to this many GPUs"},
	{"max_gpus", SW_FIELD_U32, AT(max_gpus), .max = SW_JOB_GPUS_MAX, .about = "may grow to this many"},
	{"gpu_memory_bytes", SW_FIELD_U64, AT(gpu_memory_bytes), .max = SW_JOB_BYTES_MAX, .about = "on each GPU; 0: not said"},
	{"cpus", SW_FIELD_U32, AT(cpus), .max = SW_JOB_CPUS_MAX, .about = "for each GPU; 0: not said"},
	{"memory_bytes", SW_FIELD_U64, AT(memory_bytes), .max = SW_JOB_BYTES_MAX, .about = "of the host, for each GPU; 0: not said"},
	{"class", SW_FIELD_WORD, AT(kind), .words = sw_job_class_names, .about = "`guaranteed`, `opportunistic` or `auto`"},
	{"weight", SW_FIELD_MILLI, AT(weight_milli), .write = write_thousandths, .type = "number", .about = "1 is the ordinary job"},
	{"time_limit_s", SW_FIELD_SPAN, AT(time_limit_ns), .null = true, .write = write_seconds, .type = "number", .about = "null: none"},
	{"expected_s", SW_FIELD_SPAN, AT(expected_ns), .null = true, .write = write_seconds, .type = "number",
	 .about = "how long it will probably run; null: not said"},
	{"deadline", SW_FIELD_MOMENT, AT(deadline_at_ns), .min = 1, .write = write_moment, .about = "RFC 3339; null: none"},
	{"depends", SW_FIELD_OWN, AT(depends), .write = write_depends, .type = "integer[]", .about = "jobs that it waits or waited for"},
	{"depends_on_failure", SW_FIELD_OWN, AT(depends), .min = 1, .write = write_depends, .type = "integer[]",
	 .about = "those of them after whose failure it runs"},
};
#undef THIS

#define THIS struct sw_node_row
static const struct sw_field node_fields[] = {
	{"name", SW_FIELD_TEXT, AT(name), .max = INT32_MAX, .about = "as its agent calls it"},
	{"up", SW_FIELD_BOOL, AT(up), .about = "it takes part"},
	{"unreachable", SW_FIELD_BOOL, AT(unreachable),
	 .about = "its agent was not heard in time; its jobs go on there, as far as is known"},
	{"closed", SW_FIELD_BOOL, AT(closed), .about = "it takes no new jobs: an operator said so, or too much failed there"},
	{"in_use", SW_FIELD_BOOL, AT(in_use), .about = "jobs run there"},
	{"reason", SW_FIELD_TEXT, AT(reason), .max = INT32_MAX, .about = "why it is closed; else empty"},
	{"gpus", SW_FIELD_U32, AT(gpus), .max = UINT32_MAX, .about = "in all"},
	{"gpus_free", SW_FIELD_U32, AT(gpus_free), .max = UINT32_MAX, .about = "that jobs may get"},
	{"gpus_shut", SW_FIELD_U32, AT(gpus_shut), .max = UINT32_MAX, .about = "that take no jobs, whatever runs on them; see devices"},
	{"cpus", SW_FIELD_U32, AT(cpus), .max = UINT32_MAX, .about = "in all"},
	{"memory_bytes", SW_FIELD_U64, AT(memory_bytes), .max = INT64_MAX, .about = "of the host, in all"},
	{"heard_at", SW_FIELD_MOMENT, AT(heard_at_ns), .write = write_moment,
	 .about = "when its agent spoke last; null: not since the controller started"},
	{"gpu_host_bytes", SW_FIELD_U64, AT(gpu_host_bytes), .said = offsetof(THIS, knows_host), .null = true, .max = INT64_MAX,
	 .about = "host memory that contents of GPUs take there, with what is made ahead for them; null: not known"},
	{"gpu_host_limit_bytes", SW_FIELD_U64, AT(gpu_host_limit_bytes), .said = offsetof(THIS, knows_host), .null = true, .max = INT64_MAX,
	 .about = "that they may take, all programs together; null: not known"},
};
#undef THIS

#define TABLE(name, type) const struct sw_table sw_##name##_table = {#name, name##_fields, SW_FIELD_COUNT(name##_fields), sizeof(type)}
TABLE(job_brief, struct sw_job_row);
TABLE(job_details, struct sw_job_row);
TABLE(asked, struct sw_job_request);
TABLE(node, struct sw_node_row);
