/* A job as a person asks for it: the one description that job files, the command line, the HTTP API
 * and the journal share.
 *
 * Its text form is JSON; sw_job_request_encode() writes it in one canonical way, so that equal
 * requests are equal bytes. Decoding is strict: unknown fields are errors that
 * name the field and the nearest known one; everything has a bound.
 *
 * Invariants of a decoded request (sw_job_request_check() looks at them all):
 *  1. argc >= 1; 1 <= min_gpus <= gpus <= max_gpus <= SW_JOB_GPUS_MAX;
 *  2. strings are valid UTF-8 without NUL; name, model, tenant and comment hold no control
 *    characters; paths of workdir are absolute;
 *  3. the environment is sorted by name, each name stands there once;
 *  4. durations >= 0, and grace_ns > 0; lease_ns > 0 exactly where a lost run is restarted. An
 *     opportunistic job can be made to give way, and one that is not requeued is not preempted that
 *     way;
 *  5. its canonical text has at most SW_JOB_TEXT_MAX bytes: what was decoded can be encoded and
 *    decoded again, and is the same.
 */
#ifndef SW_API_JOB_H
#define SW_API_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sharewell/job_class.h>

#include "api/fields.h"
#include "base/cleanup.h"
#include "base/error.h"

#define SW_JOB_ARGS_MAX 4096u
#define SW_JOB_ENV_MAX 4096u
#define SW_JOB_TEXT_MAX (256u * 1024u)	      /* of the whole JSON */
#define SW_JOB_STRING_MAX (128u * 1024u - 1u) /* one argument or variable, as the kernel takes it */
#define SW_JOB_PATH_MAX 4095u
#define SW_JOB_NAME_MAX 255u
#define SW_JOB_TENANT_MAX 64u
#define SW_JOB_COMMENT_MAX 4096u
#define SW_JOB_MODEL_MAX 80u
#define SW_JOB_DEPENDS_MAX 64u
#define SW_JOB_ARRAY_MAX 10000u
#define SW_JOB_ARRAY_INDEX_MAX 4000000u
#define SW_JOB_GPUS_MAX 65536u
#define SW_JOB_CPUS_MAX 65536u
#define SW_JOB_RETRIES_MAX 1000u
#define SW_JOB_UMASK_MAX 0777u
#define SW_JOB_SIGNAL_MAX 64u
#define SW_JOB_BYTES_MAX (UINT64_C(1) << 60)
#define SW_JOB_ID_MAX UINT64_C(4294967295)
#define SW_JOB_WEIGHT_MILLI_MAX 1000000000u
#define SW_JOB_DURATION_MAX_NS INT64_C(3155760000000000000) /* a hundred years */
#define SW_JOB_GRACE_NS INT64_C(30000000000)		    /* unless it says otherwise */
#define SW_JOB_LEASE_NS INT64_C(600000000000)		    /* unless it says otherwise */
#define SW_JOB_LEASE_MIN_NS INT64_C(1000000000)
#define SW_JOB_LEASE_MAX_NS INT64_C(31536000000000000) /* a year */

extern const char *const sw_job_class_names[]; /* in the order of the enum; NULL behind the last */

enum sw_depend_kind {
	SW_AFTER_OK = 0,
	SW_AFTER_ANY,
	SW_AFTER_NOT_OK,
	/* The controller's own: not in requests. */
	SW_AFTER_PRERUN,
	SW_AFTER_SLOT, /* `job` is how many of its array may be under way */
};

struct sw_depend {
	enum sw_depend_kind kind;
	uint64_t job; /* as people see it: counted from 1 */
};

/* How the job may be made to give its GPUs to others. */
enum sw_preempt_by {
	SW_PREEMPT_UNSAID = 0, /* as the world's terms have it for its class */
	/* signal, grace, kill; it starts anew and goes on from its own checkpoint */
	SW_PREEMPT_BY_REQUEUE,
	SW_PREEMPT_BY_SUSPEND, /* its processes are stopped and continued */
	SW_PREEMPT_NEVER,      /* not at all: it runs to its end */
};

/* What happens to a run whose node does not answer any more. */
enum sw_on_lost {
	SW_ON_LOST_UNSAID = 0, /* as the operator chose for its class, else to wait */
	SW_ON_LOST_WAIT,       /* it runs on, and the job waits for the node */
	/* it holds a lease; when that is over the run is stopped where it is, then the job
	 * starts anew elsewhere */
	SW_ON_LOST_RESTART,
};

struct sw_job_request {
	char *name;
	char **argv; /* argc of them, then NULL */
	size_t argc;
	char **env; /* "KEY=value", env_count of them, then NULL; NULL: none */
	size_t env_count;
	char *workdir;			 /* NULL: the run's own folder */
	char *stdout_path, *stderr_path; /* NULL: kept with the run */
	char *tenant;			 /* "": the user's own */
	char *comment;			 /* "": none */
	uint32_t gpus, min_gpus, max_gpus;
	uint64_t gpu_memory_bytes; /* per GPU; 0: unknown */
	char *model;		   /* the name of its profile; NULL: none */
	uint32_t gpu_use_milli;	   /* what it uses of each GPU's compute when alone; 0: unknown */
	uint64_t gpu_floor_bytes;  /* of these, what it keeps between iterations; 0: unknown */
	uint32_t cpus;		   /* per GPU; 0: unknown */
	uint64_t memory_bytes;	   /* of the host, per GPU; 0: unknown */
	uint32_t weight_milli;
	uint32_t retries;
	bool retries_said; /* else: as failures of their kind are */
	uint32_t umask;	   /* of its processes, and whether it was said; else 022 */
	bool umask_said;
	uint32_t signal;  /* sent before the job is stopped; 0: SIGTERM */
	int64_t grace_ns; /* between that and SIGKILL */
	/* with SW_ON_LOST_RESTART: how long it may go on without a word from the controller;
	 * else 0 */
	int64_t lease_ns;
	int64_t time_limit_ns;	/* 0: none */
	int64_t prerun_ns;	/* a run on one GPU goes before, for so long at most; 0: none */
	int64_t expected_ns;	/* how long the user thinks it runs; 0: no idea */
	int64_t deadline_at_ns; /* since the epoch; 0: none */
	enum sw_job_class kind;
	enum sw_preempt_by preempt_by;
	enum sw_on_lost on_lost;
	bool no_requeue; /* it is never started a second time, whatever ended its run */
	bool held;	 /* submitted on hold */
	bool slurm_env;	 /* SLURM_* beside SHAREWELL_* in its environment */
	bool bare_gpu;	 /* without the GPU runtime: nothing stands between it and the driver */
	bool is_array;
	/* limit 0: all at once; a step of 0 is one of 1 */
	uint32_t array_first, array_last, array_step, array_limit;
	uint32_t array_index;
	bool is_member; /* of the array: this request is for the one job `array_index` of it */
	size_t depend_count;
	struct sw_depend depends[SW_JOB_DEPENDS_MAX];
};

#define SW_JOB_FIELDS_MAX 64u
extern const struct sw_field sw_job_fields[]; /* job_fields.c, in the order of the names */
extern const size_t sw_job_field_count;
extern const struct sw_table sw_job_table; /* of these */

/* What a job may have of each of its GPUs, from now on and for its life. */
#define SW_LIMIT_LEAST_BYTES (UINT64_C(16) << 20) /* less would not hold the driver's own */
struct sw_job_limit {
	bool sets_memory, sets_share; /* else: as it was */
	uint64_t memory_bytes;	      /* 0: no limit */
	uint32_t share_milli;	      /* of its time; 0: all of it */
};

/* Fills what the user may leave out: NULL and 0 become what they stand for. False: out of memory. A
 * request made by hand starts as zeroes, has argv, and is
 * complete after this. */
bool sw_job_request_defaults(struct sw_job_request *request);
/* Whether a request made by hand keeps the invariants above; SW_EINPUT or SW_ELIMIT and what is
 * wrong. `what` as below. */
int sw_job_request_check(const char *what, const struct sw_job_request *request, struct sw_err *err);
/* The source of jobs that were taken once, maybe by an earlier version with other bounds
 * ("journal"). Their names, tenants, models and comments are cleaned and cut instead of refused. */
extern const char sw_job_stored[];
/* `what` names the source in messages ("job.yaml", "request"). */
int sw_job_request_decode(const char *what, const char *json, size_t size, struct sw_job_request **ret_request, struct sw_err *err);
/* As sw_job_request_decode(), from a value of jansson's that was parsed; nothing of it is
 * changed. */
int sw_job_request_from_json(const char *what, json_t *root, struct sw_job_request **ret_request, struct sw_err *err);
/* Canonical JSON; NULL: out of memory. The caller frees. */
char *sw_job_request_encode(const struct sw_job_request *request);
/* NULL: out of memory. */
struct sw_job_request *sw_job_request_copy(const struct sw_job_request *request);
void sw_job_request_free(struct sw_job_request *request);
SW_DEFINE_FREEP(struct sw_job_request, sw_job_request_free)

/* How many jobs it stands for: 1, or the members of the array. */
uint32_t sw_job_request_count(const struct sw_job_request *request);

/* 1 to 64 for "USR1", "SIGUSR1" or "10"; 0 when it is none of them. */
uint32_t sw_job_signal(const char *name);
/* "USR1"; NULL for a number without a name. */
const char *sw_job_signal_name(uint32_t number);

#endif
