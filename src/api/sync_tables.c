/* The tables of every struct that agent and controller exchange. A field is added here and in
 * sync.h, nowhere else. */
#include "api/sync_tables.h"

#include <string.h>

#include "api/bounds.h"
#include "api/sync.h"

#define DETAIL_MAX 1000

static const char *const state_names[] = {"starting", "running", "suspended", "exited", NULL};
static const char *const depth_names[] = {"usual", "leaving", "off", "refused", NULL};
static const char *const want_names[] = {"run", "suspend", "stop", "forget", NULL};
static const char *const suspend_names[] = {"sigstop", "none", NULL};
static const char *const shut_names[] = {"stranger", "excluded", "dead", "silent", NULL};
_Static_assert(sizeof shut_names / sizeof shut_names[0] == SW_SHUT_KINDS + 1, "one name for each");

const char *sw_run_state_name(enum sw_run_state state)
{
	return state_names[state];
}

const char *sw_shut_name(enum sw_shut why)
{
	return shut_names[why];
}

bool sw_shut_parse(const char *name, enum sw_shut *ret_why)
{
	for (unsigned i = 0; shut_names[i] != NULL; i++)
		if (strcmp(shut_names[i], name) == 0) {
			*ret_why = (enum sw_shut)i;
			return true;
		}
	return false;
}

#define AT(member) .offset = offsetof(THIS, member)

#define THIS struct sw_sync_gpu
static const struct sw_field gpu_fields[] = {
	{"uuid", SW_FIELD_TEXT, AT(uuid), .min = 1, .max = SW_SYNC_UUID_MAX, .required = true},
	{"name", SW_FIELD_TEXT, AT(name), .max = SW_SYNC_NAME_MAX},
	{"memory_bytes", SW_FIELD_U64, AT(memory_bytes), .max = INT64_MAX},
	{"link_group", SW_FIELD_U32, AT(link_group), .max = UINT32_MAX},
};
#undef THIS

#define THIS struct sw_sync_inventory
static const struct sw_field inventory_fields[] = {
	{"cpus", SW_FIELD_U32, AT(cpus), .max = 1 << 20},
	{"memory_bytes", SW_FIELD_U64, AT(memory_bytes), .max = INT64_MAX},
};
#undef THIS

#define THIS struct sw_sync_run
static const struct sw_field run_fields[] = {
	{"job", SW_FIELD_U64, AT(id.job), .max = SW_SYNC_JOB_MAX, .required = true},
	{"epoch", SW_FIELD_U32, AT(id.epoch), .max = UINT32_MAX, .required = true},
	{"state", SW_FIELD_WORD, AT(state), .words = state_names, .required = true},
	{"depth", SW_FIELD_WORD, AT(depth), .words = depth_names, .brief = true},
	{"code", SW_FIELD_U32, AT(code), .max = 255, .vital = true},
	{"signal", SW_FIELD_U32, AT(signal), .max = SW_SPEC_SIGNAL_MAX, .vital = true},
	{"pid", SW_FIELD_U32, AT(pid), .max = INT32_MAX, .brief = true},
	{"started_at_ns", SW_FIELD_I64, AT(started_at_ns), .max = INT64_MAX},
	{"ended_at_ns", SW_FIELD_I64, AT(ended_at_ns), .max = INT64_MAX},
	{"reason", SW_FIELD_TEXT, AT(reason), .max = 64, .vital = true},
	{"detail", SW_FIELD_TEXT, AT(detail), .max = DETAIL_MAX, .brief = true},
	{"gpus", SW_FIELD_COMMAS, AT(gpus), .min = 1, .max = SW_SYNC_PLACES_MAX - 1, .brief = true},
	{"moving", SW_FIELD_COMMAS, AT(moving), .min = 1, .max = SW_SYNC_PLACES_MAX - 1, .brief = true},
	{"unmoved", SW_FIELD_TEXT, AT(unmoved), .max = DETAIL_MAX, .brief = true},
	{"movable", SW_FIELD_BOOL, AT(movable), .brief = true},
	{"frees", SW_FIELD_BOOL, AT(frees), .brief = true},
	{"held", SW_FIELD_BOOL, AT(held), .brief = true},
	{"failure", SW_FIELD_TEXT, AT(failure), .max = 64, .brief = true},
	{"failure_line", SW_FIELD_TEXT, AT(failure_line), .max = DETAIL_MAX, .brief = true},
	{"failure_path", SW_FIELD_TEXT, AT(failure_path), .max = DETAIL_MAX, .brief = true},
	{"log_bytes", SW_FIELD_U64, AT(log_bytes), .max = INT64_MAX},
	{"max_rss_bytes", SW_FIELD_U64, AT(max_rss_bytes), .max = INT64_MAX, .brief = true},
	{"cpu_ns", SW_FIELD_U64, AT(cpu_ns), .max = INT64_MAX, .brief = true},
	{"iteration_ns", SW_FIELD_I64, AT(speed.iteration_ns), .max = INT64_MAX, .brief = true},
	{"alone_ns", SW_FIELD_I64, AT(speed.alone_ns), .max = INT64_MAX, .brief = true},
	{"iterations", SW_FIELD_U64, AT(speed.iterations), .max = INT64_MAX, .brief = true},
	{"beside", SW_FIELD_JOBS, AT(speed.beside), .brief = true},
};
#undef THIS

#define THIS struct sw_sync_sample
static const struct sw_field sample_fields[] = {
	{"at_ns", SW_FIELD_I64, AT(at_ns), .max = INT64_MAX},
	{"gpu", SW_FIELD_TEXT, AT(gpu), .min = 1, .max = SW_SYNC_NAME_MAX, .brief = true},
	{"memory_bytes", SW_FIELD_U64, AT(memory_bytes), .max = INT64_MAX},
	{"busy_milli", SW_FIELD_U32, AT(busy_milli), .max = UINT32_MAX},
	{"power_mw", SW_FIELD_U32, AT(power_mw), .max = UINT32_MAX, .brief = true},
	{"temperature_c", SW_FIELD_I32, AT(temperature_c), .min = -300, .max = 10000, .brief = true},
	{"processes", SW_FIELD_U32, AT(processes), .max = UINT32_MAX, .brief = true},
	{"limit_bytes", SW_FIELD_U64, AT(limit_bytes), .max = INT64_MAX, .brief = true},
	{"host_bytes", SW_FIELD_U64, AT(host_bytes), .max = INT64_MAX, .brief = true},
	{"iteration_ns", SW_FIELD_U64, AT(iteration_ns), .max = INT64_MAX, .brief = true},
	{"outside", SW_FIELD_U32, AT(outside), .max = UINT32_MAX, .brief = true},
	{"trespass", SW_FIELD_BOOL, AT(trespass), .brief = true},
	{"runtime", SW_FIELD_BOOL, AT(runtime), .brief = true},
	{"suspended", SW_FIELD_BOOL, AT(suspended), .brief = true},
	{"moving", SW_FIELD_BOOL, AT(moving), .brief = true},
	{"charged_bytes", SW_FIELD_U64, AT(charged_bytes), .max = INT64_MAX, .brief = true},
	{"fixed_bytes", SW_FIELD_U64, AT(fixed_bytes), .max = INT64_MAX, .brief = true},
	{"wanted_bytes", SW_FIELD_U64, AT(wanted_bytes), .max = INT64_MAX, .brief = true},
	{"peak_bytes", SW_FIELD_U64, AT(peak_bytes), .max = INT64_MAX, .brief = true},
	{"floor_bytes", SW_FIELD_U64, AT(floor_bytes), .max = INT64_MAX, .brief = true},
	{"iterations", SW_FIELD_U64, AT(iterations), .max = INT64_MAX, .brief = true},
	{"launches", SW_FIELD_U64, AT(launches), .max = INT64_MAX, .brief = true},
	{"share_milli", SW_FIELD_U32, AT(share_milli), .max = 1000, .brief = true},
	{"yields", SW_FIELD_BOOL, AT(yields), .brief = true},
	{"watched", SW_FIELD_BOOL, AT(watched), .brief = true},
};
static const struct sw_field sample_run_fields[] = {
	{"job", SW_FIELD_U64, AT(run.job), .max = SW_SYNC_JOB_MAX, .required = true},
	{"epoch", SW_FIELD_U32, AT(run.epoch), .max = UINT32_MAX, .required = true},
};
#undef THIS

#define THIS struct sw_sync_shut
static const struct sw_field shut_fields[] = {
	{"gpu", SW_FIELD_TEXT, AT(gpu), .min = 1, .max = SW_SYNC_NAME_MAX, .required = true},
	{"why", SW_FIELD_WORD, AT(why), .words = shut_names, .required = true},
	{"since_ns", SW_FIELD_I64, AT(since_ns), .max = INT64_MAX},
	{"detail", SW_FIELD_TEXT, AT(detail), .max = DETAIL_MAX, .brief = true},
};
#undef THIS

#define THIS struct sw_sync_stranger
static const struct sw_field stranger_fields[] = {
	{"gpu", SW_FIELD_TEXT, AT(gpu), .min = 1, .max = SW_SYNC_NAME_MAX, .required = true},
	{"pid", SW_FIELD_U32, AT(pid), .max = UINT32_MAX, .brief = true},
	{"user", SW_FIELD_TEXT, AT(user), .max = SW_SYNC_NAME_MAX, .brief = true},
	{"program", SW_FIELD_TEXT, AT(program), .max = SW_SYNC_NAME_MAX, .brief = true},
	{"memory_bytes", SW_FIELD_U64, AT(memory_bytes), .max = INT64_MAX, .brief = true},
	{"since_ns", SW_FIELD_I64, AT(since_ns), .max = INT64_MAX},
};
#undef THIS

#define THIS struct sw_sync
static const struct sw_field sync_fields[] = {
	{"node", SW_FIELD_TEXT, AT(node), .min = 1, .max = SW_SYNC_NAME_MAX, .required = true},
	{"home", SW_FIELD_TEXT, AT(home), .min = 1, .max = SW_SYNC_HOME_MAX, .brief = true},
	{"start", SW_FIELD_U64, AT(start), .max = INT64_MAX, .brief = true},
	{"instance", SW_FIELD_TEXT, AT(instance), .min = 1, .max = 64, .required = true},
	{"number", SW_FIELD_U64, AT(number), .min = 1, .max = INT64_MAX, .required = true},
	{"have", SW_FIELD_U64, AT(have), .max = INT64_MAX},
	{"leases", SW_FIELD_BOOL, AT(leases), .brief = true},
	{"look_ns", SW_FIELD_I64, AT(look_ns), .max = INT64_MAX, .brief = true},
	{"missing", SW_FIELD_U32, AT(missing), .max = SW_SYNC_GPUS_MAX, .brief = true},
	{"silent", SW_FIELD_BOOL, AT(silent), .brief = true},
	{"about", SW_FIELD_TEXT, AT(about), .max = DETAIL_MAX, .brief = true},
};
#undef THIS

#define THIS struct sw_run_spec
/* Bounds are those of a request, and what is added on the way (bounds.h). */
static const struct sw_field spec_fields[] = {
	{"name", SW_FIELD_TEXT, AT(name), .max = SW_JOB_NAME_MAX, .brief = true},
	{"argv", SW_FIELD_TEXTS, AT(argv), .min = 1, .max = SW_JOB_STRING_MAX, .most = SW_JOB_ARGS_MAX, .required = true},
	{"env", SW_FIELD_TEXTS, AT(env), .max = SW_JOB_STRING_MAX, .most = SW_SPEC_ENV_MAX, .brief = true},
	{"workdir", SW_FIELD_TEXT, AT(workdir), .min = 1, .max = SW_JOB_PATH_MAX, .required = true},
	{"uid", SW_FIELD_U32, AT(uid), .max = UINT32_MAX - 1, .required = true},
	{"gid", SW_FIELD_U32, AT(gid), .max = UINT32_MAX - 1, .required = true},
	{"umask", SW_FIELD_U32, AT(umask), .max = 0777},
	{"stdout", SW_FIELD_TEXT, AT(stdout_path), .min = 1, .max = SW_SYNC_PATH_MAX, .brief = true},
	{"stderr", SW_FIELD_TEXT, AT(stderr_path), .min = 1, .max = SW_SYNC_PATH_MAX, .brief = true},
	{"append", SW_FIELD_BOOL, AT(append), .brief = true},
	{"log_limit_bytes", SW_FIELD_U64, AT(log_limit_bytes), .min = 4096, .max = INT64_C(1) << 50},
	{"time_limit_ms", SW_FIELD_I64, AT(time_limit_ms), .max = SW_SPEC_DURATION_MAX_MS, .brief = true},
	{"stop_signal", SW_FIELD_U32, AT(stop_signal), .min = 1, .max = SW_SPEC_SIGNAL_MAX},
	{"grace_ms", SW_FIELD_I64, AT(grace_ms), .max = SW_SPEC_DURATION_MAX_MS},
	{"lease_ms", SW_FIELD_I64, AT(lease_ms), .max = SW_SPEC_DURATION_MAX_MS, .brief = true},
	{"warn_signal", SW_FIELD_U32, AT(warn_signal), .max = SW_SPEC_SIGNAL_MAX, .brief = true},
	{"warn_ms", SW_FIELD_I64, AT(warn_ms), .max = SW_SPEC_DURATION_MAX_MS, .brief = true},
	{"suspend", SW_FIELD_WORD, AT(suspend), .words = suspend_names, .brief = true},
	{"cpus", SW_FIELD_U32, AT(cpus), .max = SW_SPEC_CPUS_MAX, .brief = true},
	{"memory_bytes", SW_FIELD_U64, AT(memory_bytes), .max = INT64_MAX, .brief = true},
	{"open_files", SW_FIELD_U64, AT(open_files), .max = INT64_C(1) << 30, .brief = true},
	{"core_bytes", SW_FIELD_U64, AT(core_bytes), .max = INT64_MAX, .brief = true},
	{"slurm_env", SW_FIELD_BOOL, AT(slurm_env), .brief = true},
	{"gpu_memory_bytes", SW_FIELD_U64, AT(gpu_memory_bytes), .max = INT64_MAX, .brief = true},
	{"opportunistic", SW_FIELD_BOOL, AT(opportunistic), .brief = true},
	{"bare_gpu", SW_FIELD_BOOL, AT(bare_gpu), .brief = true},
};
#undef THIS

#define THIS struct sw_unread
static const struct sw_field id_fields[] = {
	{"job", SW_FIELD_U64, AT(id.job), .max = SW_SYNC_JOB_MAX, .required = true},
	{"epoch", SW_FIELD_U32, AT(id.epoch), .max = UINT32_MAX, .required = true},
};
#undef THIS

#define THIS struct sw_want
static const struct sw_field want_head_fields[] = {
	{"job", SW_FIELD_U64, AT(id.job), .max = SW_SYNC_JOB_MAX, .required = true},
	{"epoch", SW_FIELD_U32, AT(id.epoch), .max = UINT32_MAX, .required = true},
	{"want", SW_FIELD_WORD, AT(want), .words = want_names, .required = true},
};
static const struct sw_field want_words_fields[] = {
	{"why", SW_FIELD_TEXT, AT(why), .max = SW_SYNC_WHY_MAX, .brief = true},
};
static const struct sw_field want_fields[] = {
	{"gpus", SW_FIELD_TEXTS, AT(gpus), .max = SW_SYNC_NAME_MAX, .most = SW_SYNC_GPUS_MAX, .brief = true},
	{"grace_ms", SW_FIELD_I64, AT(grace_ms), .min = -1, .max = SW_SPEC_DURATION_MAX_MS},
	{"signal", SW_FIELD_U32, AT(signal), .max = SW_SPEC_SIGNAL_MAX, .brief = true},
	{"gpu_limit_bytes", SW_FIELD_U64, AT(gpu_limit_bytes), .max = INT64_MAX, .brief = true},
	{"gpu_share_milli", SW_FIELD_U32, AT(gpu_share_milli), .max = 1000, .brief = true},
	{"upgraded", SW_FIELD_BOOL, AT(upgraded), .brief = true},
	{"paused", SW_FIELD_BOOL, AT(paused), .brief = true},
	{"deep", SW_FIELD_BOOL, AT(deep), .brief = true},
	{"held", SW_FIELD_BOOL, AT(held), .brief = true},
	{"unfit", SW_FIELD_TEXT, AT(unfit), .max = DETAIL_MAX, .brief = true},
};
#undef THIS

#define THIS struct sw_answer_message
static const struct sw_field answer_fields[] = {
	{"version", SW_FIELD_U64, AT(version), .min = 1, .max = INT64_MAX, .required = true},
	{"lease_ms", SW_FIELD_I64, AT(lease_ms), .min = 1, .max = SW_LEASE_MS_MAX, .required = true},
	{"retry_ms", SW_FIELD_I64, AT(retry_ms), .max = SW_LEASE_MS_MAX},
};
#undef THIS

#define THIS struct sw_run_order
static const struct sw_field order_fields[] = {
	{"node", SW_FIELD_TEXT, AT(node), .min = 1, .max = SW_SYNC_NAME_MAX, .required = true},
	{"lease_boot_ns", SW_FIELD_I64, AT(lease_boot_ns), .max = INT64_MAX, .required = true},
	{"cgroup", SW_FIELD_TEXT, AT(cgroup), .min = 1, .max = SW_SYNC_PATH_MAX, .brief = true},
	{"no_device_rule", SW_FIELD_BOOL, AT(no_device_rule), .brief = true},
	{"gpu_library", SW_FIELD_TEXT, AT(gpu_library), .min = 1, .max = SW_SYNC_PATH_MAX, .brief = true},
};
#undef THIS

#define THIS struct sw_run_account
static const struct sw_field account_fields[] = {
	{"supervisor", SW_FIELD_U32, AT(supervisor), .max = INT32_MAX, .brief = true},
	{"order", SW_FIELD_U64, AT(order), .max = INT64_MAX, .brief = true},
	{"note", SW_FIELD_TEXT, AT(note), .max = DETAIL_MAX, .brief = true},
	{"gpu", SW_FIELD_TEXT, AT(gpu), .max = DETAIL_MAX, .brief = true},
};
#undef THIS

#define TABLE(name, type) \
	const struct sw_table sw_##name##_table = {#name, name##_fields, SW_FIELD_COUNT(name##_fields), sizeof(struct type)}
TABLE(gpu, sw_sync_gpu);
TABLE(inventory, sw_sync_inventory);
TABLE(run, sw_sync_run);
TABLE(sample, sw_sync_sample);
TABLE(sample_run, sw_sync_sample);
TABLE(shut, sw_sync_shut);
TABLE(stranger, sw_sync_stranger);
TABLE(sync, sw_sync);
TABLE(spec, sw_run_spec);
TABLE(id, sw_unread);
TABLE(want_head, sw_want);
TABLE(want_words, sw_want);
TABLE(want, sw_want);
TABLE(answer, sw_answer_message);
TABLE(order, sw_run_order);
TABLE(account, sw_run_account);

const struct sw_table *const sw_sync_tables[] = {
	&sw_gpu_table,	 &sw_inventory_table, &sw_run_table, &sw_sample_table,	  &sw_sample_run_table, &sw_shut_table, &sw_stranger_table,
	&sw_sync_table,	 &sw_spec_table,      &sw_id_table,  &sw_want_head_table, &sw_want_words_table, &sw_want_table, &sw_answer_table,
	&sw_order_table, &sw_account_table,   NULL};
