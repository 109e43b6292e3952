#include "api/bounds.h"

#include "api/when.h"

#define AT(member) .offset = offsetof(struct sw_job_request, member)

const struct sw_bound sw_job_bounds[] = {
	{"name", SW_BOUND_LINE, AT(name), .most = SW_JOB_NAME_MAX, .order = "name"},
	{"tenant", SW_BOUND_LINE, AT(tenant), .most = SW_JOB_TENANT_MAX},
	{"model", SW_BOUND_LINE, AT(model), .most = SW_JOB_MODEL_MAX},
	{"comment", SW_BOUND_LINE, AT(comment), .most = SW_JOB_COMMENT_MAX},
	{"workdir", SW_BOUND_TEXT, AT(workdir), .most = SW_JOB_PATH_MAX, .order = "workdir"},
	{"stdout", SW_BOUND_TEXT, AT(stdout_path), .most = SW_JOB_PATH_MAX, .order = "stdout"},
	{"stderr", SW_BOUND_TEXT, AT(stderr_path), .most = SW_JOB_PATH_MAX, .order = "stderr"},
	{"command", SW_BOUND_TEXTS, AT(argv), .most = SW_JOB_STRING_MAX, .count = SW_JOB_ARGS_MAX,
	 .count_offset = offsetof(struct sw_job_request, argc), .order = "argv"},
	{"env", SW_BOUND_TEXTS, AT(env), .most = SW_JOB_STRING_MAX, .count = SW_JOB_ENV_MAX,
	 .count_offset = offsetof(struct sw_job_request, env_count), .order = "env"},
	{"gpu_memory", SW_BOUND_U64, AT(gpu_memory_bytes), .most = SW_JOB_BYTES_MAX, .order = "gpu_memory_bytes"},
	{"gpu_use", SW_BOUND_U32, AT(gpu_use_milli), .most = 1000},
	{"cpus", SW_BOUND_U32, AT(cpus), .most = SW_JOB_CPUS_MAX, .order = "cpus"},
	{"memory", SW_BOUND_U64, AT(memory_bytes), .most = SW_JOB_BYTES_MAX, .order = "memory_bytes"},
	{"weight", SW_BOUND_U32, AT(weight_milli), .least = 1, .most = SW_JOB_WEIGHT_MILLI_MAX},
	{"retries", SW_BOUND_U32, AT(retries), .most = SW_JOB_RETRIES_MAX},
	{"signal", SW_BOUND_U32, AT(signal), .most = SW_JOB_SIGNAL_MAX, .order = "stop_signal"},
	{"umask", SW_BOUND_U32, AT(umask), .most = SW_JOB_UMASK_MAX, .order = "umask"},
	{"grace", SW_BOUND_I64, AT(grace_ns), .least = 1, .most = SW_JOB_DURATION_MAX_NS, .order = "grace_ms"},
	{"lease", SW_BOUND_I64, AT(lease_ns), .most = SW_JOB_LEASE_MAX_NS, .order = "lease_ms"},
	{"time_limit", SW_BOUND_I64, AT(time_limit_ns), .most = SW_JOB_DURATION_MAX_NS, .order = "time_limit_ms"},
	/* It becomes the time limit of the pre-run. */
	{"prerun", SW_BOUND_I64, AT(prerun_ns), .most = SW_JOB_DURATION_MAX_NS, .order = "time_limit_ms"},
	{"expected", SW_BOUND_I64, AT(expected_ns), .most = SW_JOB_DURATION_MAX_NS},
	{"deadline", SW_BOUND_I64, AT(deadline_at_ns), .most = SW_WHEN_MAX_NS},
	{"class", SW_BOUND_WORD, AT(kind), .most = SW_KIND_AUTO},
	{"on_lost", SW_BOUND_WORD, AT(on_lost), .most = SW_ON_LOST_RESTART},
	{"preempt", SW_BOUND_WORD, AT(preempt_by), .most = SW_PREEMPT_UNSAID},
};
const size_t sw_job_bound_count = sizeof sw_job_bounds / sizeof sw_job_bounds[0];
