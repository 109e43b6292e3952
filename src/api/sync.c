/* The tables of every struct that agent and controller exchange. A field is added here and in sync.h, nowhere else. */
#include "api/sync.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/bounds.h"
#include "api/fields.h"
#include "api/pieces.h"

#define DETAIL_MAX 1000
#define UNREAD_CODE 125 /* as of a run that could not be started */
/* Commas and brackets of all runs and samples of a node, with all of their fields and some to come. */
#define SYNC_PARTS_MOST ((size_t)40 * (SW_SYNC_RUNS_MAX + SW_SYNC_SAMPLES_MAX))
/* Bytes of text that are parsed at one go: of a member of a list or a field, of an inventory. Those at all their bounds, every byte escaped, have less. */
#define PIECE_BYTES_MAX ((size_t)64 << 10)
#define INVENTORY_BYTES_MAX ((size_t)512 << 10)

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

const char *sw_want_name(enum sw_want_kind want)
{
	return want_names[want];
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
	{"gpus", SW_FIELD_TEXT, AT(gpus), .max = SW_SYNC_PLACES_MAX - 1, .brief = true},
	{"moving", SW_FIELD_TEXT, AT(moving), .max = SW_SYNC_PLACES_MAX - 1, .brief = true},
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

#define DECODE(fields, object, target) sw_decode_fields(decoder, object, fields, SW_FIELD_COUNT(fields), target)
#define ENCODE(fields, source) sw_encode_fields(json, fields, SW_FIELD_COUNT(fields), source)

/* ------------------------------------------------------------------------------------------------ decoding */

/* Opens a document and allocates the struct that is made of it; on failure everything is freed. */
static int begin(struct sw_decoder *decoder, const char *text, size_t size, size_t limit, size_t struct_size, void **ret_struct)
{
	decoder->decoded = calloc(1, sizeof *decoder->decoded);
	if (decoder->decoded == NULL)
		return sw_decoder_out_of_memory(decoder);
	int r = sw_decoder_open(decoder, text, size, limit);
	void *made = r == 0 ? sw_decoded_alloc(decoder->decoded, 1, struct_size) : NULL;
	if (r == 0 && made == NULL)
		r = sw_decoder_out_of_memory(decoder);
	if (r < 0) {
		sw_decoded_free(decoder->decoded);
		return r;
	}
	*ret_struct = made;
	return 0;
}

/* What could not be read of a list of runs or wishes. */
struct spoiled {
	struct sw_unread *items;
	size_t count, room;
};

static int note_unread(struct sw_decoder *decoder, struct spoiled *spoiled, const struct sw_unread *unread)
{
	if (spoiled->count == spoiled->room) {
		size_t room = spoiled->room > 0 ? spoiled->room * 2 : 8;
		struct sw_unread *grown = sw_decoded_alloc(decoder->decoded, room, sizeof *grown);
		if (grown == NULL)
			return sw_decoder_out_of_memory(decoder);
		if (spoiled->count > 0)
			memcpy(grown, spoiled->items, spoiled->count * sizeof *grown);
		spoiled->items = grown;
		spoiled->room = room;
	}
	spoiled->items[spoiled->count++] = *unread;
	return 0;
}

static int spoil(struct sw_decoder *decoder, json_t *value, const char *why, void *context)
{
	struct sw_unread unread = {.why = why};
	struct sw_err *outer = decoder->err;
	decoder->err = NULL;
	unread.has_id = value != NULL && DECODE(id_fields, value, &unread) == 0;
	decoder->err = outer;
	if (!unread.has_id)
		unread.id = (struct sw_run_id){0};
	return note_unread(decoder, context, &unread);
}

/* A place in a list, by the run that stands there. */
struct placed {
	struct sw_run_id id;
	size_t place;
};

static int compare_placed(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	int order = sw_run_id_compare(x->id, y->id);
	return order != 0 ? order : x->place < y->place ? -1 : x->place > y->place;
}

/* A run stands in a list once. Of several the first is taken; the others count as not readable. The members, `size` bytes each, start with the run's id. */
static int drop_twins(struct sw_decoder *decoder, const char *name, void *items, size_t *count, size_t size, struct spoiled *spoiled)
{
	struct placed *order = sw_decoded_alloc(decoder->decoded, *count, sizeof *order);
	bool *twin = sw_decoded_alloc(decoder->decoded, *count, sizeof *twin);
	if (order == NULL || twin == NULL)
		return sw_decoder_out_of_memory(decoder);
	for (size_t i = 0; i < *count; i++) {
		memcpy(&order[i].id, (const char *)items + i * size, sizeof order[i].id);
		order[i].place = i;
	}
	if (*count > 1)
		qsort(order, *count, sizeof *order, compare_placed);
	int r = 0;
	for (size_t i = 1; r == 0 && i < *count; i++) {
		if (sw_run_id_compare(order[i - 1].id, order[i].id) != 0)
			continue;
		twin[order[i].place] = true;
		char *why = sw_decoded_alloc(decoder->decoded, 100, 1);
		if (why == NULL)
			return sw_decoder_out_of_memory(decoder);
		snprintf(why, 100, "'%s' has job %llu, epoch %u twice", name, (unsigned long long)order[i].id.job, order[i].id.epoch);
		r = note_unread(decoder, spoiled, &(struct sw_unread){.id = order[i].id, .has_id = true, .why = why});
	}
	size_t kept = 0;
	for (size_t i = 0; r == 0 && i < *count; i++) {
		if (twin[i])
			continue;
		if (kept != i)
			memcpy((char *)items + kept * size, (const char *)items + i * size, size);
		kept++;
	}
	*count = r == 0 ? kept : *count;
	return r;
}
_Static_assert(offsetof(struct sw_sync_run, id) == 0 && offsetof(struct sw_want, id) == 0, "drop_twins() finds the id first");

/* A list of runs or wishes, each read by itself; at most `most`. */
static int decode_runs(struct sw_decoder *decoder, const char *name, size_t most, size_t size, sw_decode_member *member,
		       struct spoiled *spoiled, void **ret_items, size_t *ret_count)
{
	json_t *root = decoder->decoded->root;
	int r = sw_decode_each(decoder, root, name, most, size, member, spoil, spoiled, ret_items, ret_count);
	return r < 0 ? r : drop_twins(decoder, name, *ret_items, ret_count, size, spoiled);
}

static int decode_gpu(struct sw_decoder *decoder, json_t *value, void *target)
{
	struct sw_sync_gpu *gpu = target;
	gpu->name = "";
	int r = DECODE(gpu_fields, value, gpu);
	/* Lists of GPUs have commas between them, and no GPU has a name that takes more room as JSON than as text. */
	for (const char *at = r == 0 ? gpu->uuid : ""; *at != '\0'; at++)
		if (*at <= ' ' || *at > '~' || strchr(",\"\\", *at) != NULL)
			return sw_decoder_refuse(decoder, "uuid", json_object_get(value, "uuid"),
						 "printable characters without commas or quotes");
	return r;
}

static int decode_inventory(struct sw_decoder *decoder, json_t *value, void *target)
{
	struct sw_sync *sync = target;
	struct sw_sync_inventory *inventory = sw_decoded_alloc(decoder->decoded, 1, sizeof *inventory);
	if (inventory == NULL)
		return sw_decoder_out_of_memory(decoder);
	size_t mark = sw_decoder_enter(decoder, "inventory", -1);
	int r = DECODE(inventory_fields, value, inventory);
	void *gpus = NULL;
	if (r == 0)
		r = sw_decode_list(decoder, value, "gpus", SW_SYNC_GPUS_MAX, sizeof(struct sw_sync_gpu), decode_gpu, &gpus,
				   &inventory->gpu_count);
	inventory->gpus = gpus;
	sw_decoder_leave(decoder, mark);
	if (r == 0)
		sync->inventory = inventory;
	return r;
}

/* What the node has. One that cannot be read is the node's own trouble: its runs are heard all the same. */
static int decode_readable_inventory(struct sw_decoder *decoder, json_t *value, struct sw_sync *sync)
{
	struct sw_err *outer = decoder->err, err = {0};
	decoder->err = &err;
	int r = decode_inventory(decoder, value, sync);
	decoder->err = outer;
	decoder->place[0] = '\0';
	if (r == SW_ENOMEM)
		return sw_decoder_out_of_memory(decoder);
	if (r == 0)
		return 0;
	char *why = sw_decoded_alloc(decoder->decoded, sizeof err.detail, 1);
	if (why == NULL)
		return sw_decoder_out_of_memory(decoder);
	memcpy(why, err.detail, sizeof err.detail);
	sync->inventory_unread = why;
	return 0;
}

static int decode_run(struct sw_decoder *decoder, json_t *value, void *target)
{
	struct sw_sync_run *run = target;
	bool vital = false;
	run->reason = "";
	int r = sw_decode_readable(decoder, value, run_fields, SW_FIELD_COUNT(run_fields), run, &run->unread, &vital);
	/* That it is over counts, whatever else could not be read. It must not look like a good end. */
	if (r == 0 && vital && run->state == SW_RUN_EXITED) {
		run->code = UNREAD_CODE;
		run->signal = 0;
		run->reason = SW_REASON_REPORT;
		run->detail = run->unread;
	}
	return r;
}

static int decode_sample(struct sw_decoder *decoder, json_t *value, void *target)
{
	struct sw_sync_sample *sample = target;
	int r = DECODE(sample_fields, value, sample);
	json_t *job = json_object_get(value, "job");
	if (r < 0 || job == NULL || json_is_null(job))
		return r;
	sample->has_run = true;
	return DECODE(sample_run_fields, value, sample);
}

static int decode_shut(struct sw_decoder *decoder, json_t *value, void *target)
{
	return DECODE(shut_fields, value, target);
}

static int decode_stranger(struct sw_decoder *decoder, json_t *value, void *target)
{
	return DECODE(stranger_fields, value, target);
}

/* ---- a sync, piece by piece */

/* A list of a sync, as far as it has been read. */
struct listed {
	const char *name;
	size_t most, size; /* members; bytes of one as a struct */
	sw_decode_member *member;
	sw_decode_spoiled *spoiled; /* NULL: those that cannot be read are dropped */
	bool is_there;
	char *items;
	size_t count, room;
	size_t total; /* members of the list, readable or not */
};
enum { RUNS = 0, SAMPLES, SHUT, STRANGERS, LISTS };

struct sw_sync_reader {
	struct sw_decoder decoder;
	struct sw_pieces pieces;
	struct listed lists[LISTS];
	struct spoiled spoiled;
	struct sw_sync *sync; /* owns what was decoded, as decoder.decoded */
	json_t *head;	      /* the fields of the sync itself */
	bool has_inventory;
};

static const char *const list_names[LISTS + 1] = {"jobs", "samples", "shut", "strangers", NULL};

void sw_sync_reader_free(struct sw_sync_reader *reader)
{
	if (reader == NULL)
		return;
	if (reader->decoder.decoded != NULL)
		sw_decoded_free(reader->decoder.decoded);
	json_decref(reader->head);
	free(reader);
}

int sw_sync_reader_new(const char *text, size_t size, struct sw_sync_reader **ret_reader, struct sw_err *err)
{
	static const char what[] = "cannot read the sync";
	if (size > SW_SYNC_BYTES_MAX) {
		sw_err_set(err, SW_ELIMIT, "%s", what);
		sw_err_detail(err, "it has %zu bytes, expected at most %zu", size, SW_SYNC_BYTES_MAX);
		return SW_ELIMIT;
	}
	SW_CLEANUP(sw_sync_reader_freep) struct sw_sync_reader *reader = calloc(1, sizeof *reader);
	if (reader != NULL) {
		reader->decoder = (struct sw_decoder){.what = what, .copies = true, .decoded = calloc(1, sizeof *reader->decoder.decoded)};
		reader->pieces =
			(struct sw_pieces){.what = what, .text = text, .size = size, .lists = list_names, .parts_most = SYNC_PARTS_MOST};
		reader->head = json_object();
	}
	if (reader != NULL && reader->decoder.decoded != NULL)
		reader->sync = sw_decoded_alloc(reader->decoder.decoded, 1, sizeof *reader->sync);
	if (reader == NULL || reader->sync == NULL || reader->head == NULL) {
		sw_err_set(err, SW_ENOMEM, "%s", what);
		sw_err_detail(err, "out of memory");
		return SW_ENOMEM;
	}
	struct listed *lists = reader->lists;
	lists[RUNS] = (struct listed){.most = SW_SYNC_RUNS_MAX, .size = sizeof(struct sw_sync_run), .member = decode_run, .spoiled = spoil};
	lists[SAMPLES] = (struct listed){.most = SW_SYNC_SAMPLES_MAX, .size = sizeof(struct sw_sync_sample), .member = decode_sample};
	lists[SHUT] = (struct listed){.most = SW_SYNC_GPUS_MAX, .size = sizeof(struct sw_sync_shut), .member = decode_shut};
	lists[STRANGERS] =
		(struct listed){.most = SW_SYNC_STRANGERS_MAX, .size = sizeof(struct sw_sync_stranger), .member = decode_stranger};
	for (size_t l = 0; l < LISTS; l++)
		lists[l].name = list_names[l];
	*ret_reader = SW_TAKE(reader);
	return 0;
}

static struct listed *find_list(struct sw_sync_reader *reader, const char *name)
{
	for (size_t l = 0; l < LISTS; l++)
		if (strcmp(reader->lists[l].name, name) == 0)
			return &reader->lists[l];
	return NULL;
}

/* The piece as JSON. It is refused as a whole where it is none. */
static int parse_piece(struct sw_decoder *decoder, const struct sw_piece *piece, json_t **ret_value)
{
	json_error_t error;
	json_t *value = json_loadb(piece->text, piece->size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	if (value != NULL) {
		*ret_value = value;
		return 0;
	}
	if (json_error_code(&error) == json_error_out_of_memory)
		return sw_decoder_out_of_memory(decoder);
	sw_err_set(decoder->err, SW_EINPUT, "%s", decoder->what);
	if (piece->kind == SW_PIECE_ELEMENT)
		sw_err_detail(decoder->err, "it is not JSON: '%s[%zu]', line %d of that, column %d: %s", piece->name, piece->index,
			      error.line, error.column, error.text);
	else
		sw_err_detail(decoder->err, "it is not JSON: '%s', line %d of that, column %d: %s", piece->name, error.line, error.column,
			      error.text);
	return SW_EINPUT;
}

/* "'jobs[3]' has 70000 bytes, expected at most 65536", kept; NULL: out of memory. */
static const char *say_long(struct sw_decoder *decoder, const char *name, long index, size_t size, size_t most)
{
	char *why = sw_decoded_alloc(decoder->decoded, 120, 1);
	char place[24] = "";
	if (index >= 0)
		snprintf(place, sizeof place, "[%ld]", index);
	if (why != NULL)
		snprintf(why, 120, "'%.40s%s' has %zu bytes, expected at most %zu", name, place, size, most);
	return why;
}

static int grow(struct sw_decoder *decoder, struct listed *list)
{
	size_t room = list->room > 0 ? list->room * 2 : 16;
	if (room > list->most)
		room = list->most;
	char *grown = sw_decoded_alloc(decoder->decoded, room, list->size);
	if (grown == NULL)
		return sw_decoder_out_of_memory(decoder);
	if (list->count > 0)
		memcpy(grown, list->items, list->count * list->size);
	list->items = grown;
	list->room = room;
	return 0;
}

static int read_element(struct sw_sync_reader *reader, const struct sw_piece *piece)
{
	struct sw_decoder *decoder = &reader->decoder;
	struct listed *list = find_list(reader, piece->name);
	assert(list != NULL);
	if (list->total++ >= list->most)
		return 0;
	if (piece->size > PIECE_BYTES_MAX) {
		const char *why = say_long(decoder, list->name, (long)piece->index, piece->size, PIECE_BYTES_MAX);
		if (why == NULL)
			return sw_decoder_out_of_memory(decoder);
		return list->spoiled != NULL ? list->spoiled(decoder, NULL, why, &reader->spoiled) : 0;
	}
	json_t *value = NULL;
	bool is_good = false;
	int r = list->count == list->room ? grow(decoder, list) : 0;
	if (r == 0)
		r = parse_piece(decoder, piece, &value);
	if (r == 0)
		r = sw_decode_member_at(decoder, value, list->name, (long)piece->index, list->items + list->count * list->size, list->size,
					list->member, list->spoiled, &reader->spoiled, &is_good);
	json_decref(value);
	list->count += is_good;
	return r;
}

static int refuse_twice(struct sw_decoder *decoder, const char *name)
{
	sw_err_set(decoder->err, SW_EINPUT, "%s", decoder->what);
	sw_err_detail(decoder->err, "it is not JSON: it has '%s' twice", name);
	return SW_EINPUT;
}

static int begin_list(struct sw_sync_reader *reader, const char *name)
{
	struct listed *list = find_list(reader, name);
	assert(list != NULL);
	if (list->is_there || json_object_get(reader->head, name) != NULL)
		return refuse_twice(&reader->decoder, name);
	list->is_there = true;
	return 0;
}

static int read_inventory(struct sw_sync_reader *reader, const struct sw_piece *piece)
{
	struct sw_decoder *decoder = &reader->decoder;
	if (reader->has_inventory)
		return refuse_twice(decoder, piece->name);
	reader->has_inventory = true;
	if (piece->size > INVENTORY_BYTES_MAX) {
		reader->sync->inventory_unread = say_long(decoder, piece->name, -1, piece->size, INVENTORY_BYTES_MAX);
		return reader->sync->inventory_unread != NULL ? 0 : sw_decoder_out_of_memory(decoder);
	}
	json_t *value = NULL;
	int r = parse_piece(decoder, piece, &value);
	if (r == 0 && !json_is_null(value))
		r = decode_readable_inventory(decoder, value, reader->sync);
	json_decref(value);
	return r;
}

/* A field of the sync itself, kept until all are there. A list of another kind than a list is refused; what no table has is not looked at. */
static int read_field(struct sw_sync_reader *reader, const struct sw_piece *piece)
{
	struct sw_decoder *decoder = &reader->decoder;
	bool is_list = find_list(reader, piece->name) != NULL, is_field = false;
	for (size_t f = 0; f < SW_FIELD_COUNT(sync_fields); f++)
		is_field = is_field || strcmp(sync_fields[f].name, piece->name) == 0;
	if (!is_list && !is_field)
		return 0;
	if (json_object_get(reader->head, piece->name) != NULL || (is_list && find_list(reader, piece->name)->is_there))
		return refuse_twice(decoder, piece->name);
	if (piece->size > PIECE_BYTES_MAX) {
		const char *why = say_long(decoder, piece->name, -1, piece->size, PIECE_BYTES_MAX);
		if (why == NULL)
			return sw_decoder_out_of_memory(decoder);
		sw_err_set(decoder->err, SW_EINPUT, "%s", decoder->what);
		sw_err_detail(decoder->err, "%s", why);
		return SW_EINPUT;
	}
	json_t *value = NULL;
	int r = parse_piece(decoder, piece, &value);
	if (r < 0)
		return r;
	if (is_list && !json_is_null(value)) {
		r = sw_decoder_refuse(decoder, piece->name, value, "a list");
		json_decref(value);
		return r;
	}
	return json_object_set_new(reader->head, piece->name, value) == 0 ? 0 : sw_decoder_out_of_memory(decoder);
}

/* All pieces have come. */
static int complete(struct sw_sync_reader *reader)
{
	struct sw_decoder *decoder = &reader->decoder;
	struct sw_sync *sync = reader->sync;
	struct listed *runs = &reader->lists[RUNS], *shut = &reader->lists[SHUT], *strangers = &reader->lists[STRANGERS];
	int r = DECODE(sync_fields, reader->head, sync);
	if (r == 0 && runs->total > runs->most) {
		char *why = sw_decoded_alloc(decoder->decoded, 120, 1);
		if (why == NULL)
			return sw_decoder_out_of_memory(decoder);
		snprintf(why, 120, "'%s' is a list of %zu, expected at most %zu", runs->name, runs->total, runs->most);
		r = spoil(decoder, NULL, why, &reader->spoiled);
	}
	if (r == 0)
		r = drop_twins(decoder, runs->name, runs->items, &runs->count, runs->size, &reader->spoiled);
	if (r < 0)
		return r;
	sync->runs = (struct sw_sync_run *)(void *)runs->items;
	sync->run_count = runs->count;
	sync->unread = reader->spoiled.items;
	sync->unread_count = reader->spoiled.count;
	sync->samples = (struct sw_sync_sample *)(void *)reader->lists[SAMPLES].items;
	sync->sample_count = reader->lists[SAMPLES].count;
	/* Which GPUs take no jobs, where the agent knows. */
	sync->looked = shut->is_there;
	if (sync->looked) {
		sync->shut = (struct sw_sync_shut *)(void *)shut->items;
		sync->shut_count = shut->count;
		sync->strangers = (struct sw_sync_stranger *)(void *)strangers->items;
		sync->stranger_count = strangers->count;
	}
	sync->owner = decoder->decoded;
	return 0;
}

int sw_sync_reader_step(struct sw_sync_reader *reader, struct sw_sync **ret_sync, struct sw_err *err)
{
	struct sw_piece piece;
	reader->decoder.err = err;
	int r = sw_pieces_next(&reader->pieces, &piece, err);
	if (r < 0)
		return r;
	switch (piece.kind) {
	case SW_PIECE_NONE:
		return 0;
	case SW_PIECE_LIST:
		return begin_list(reader, piece.name);
	case SW_PIECE_ELEMENT:
		return read_element(reader, &piece);
	case SW_PIECE_MEMBER:
		return strcmp(piece.name, "inventory") == 0 ? read_inventory(reader, &piece) : read_field(reader, &piece);
	case SW_PIECE_END:
		break;
	}
	r = complete(reader);
	if (r < 0)
		return r;
	reader->decoder.decoded = NULL; /* the sync owns it */
	*ret_sync = SW_TAKE(reader->sync);
	return 0;
}

size_t sw_sync_reader_at(const struct sw_sync_reader *reader)
{
	return reader->pieces.at;
}

int sw_sync_decode(const char *text, size_t size, struct sw_sync **ret_sync, struct sw_err *err)
{
	SW_CLEANUP(sw_sync_reader_freep) struct sw_sync_reader *reader = NULL;
	struct sw_sync *sync = NULL;
	int r = sw_sync_reader_new(text, size, &reader, err);
	while (r == 0 && sync == NULL)
		r = sw_sync_reader_step(reader, &sync, err);
	if (r == 0)
		*ret_sync = sync;
	return r;
}

void sw_sync_free(struct sw_sync *sync)
{
	if (sync != NULL)
		sw_decoded_free(sync->owner);
}

void sw_run_spec_defaults(struct sw_run_spec *spec)
{
	memset(spec, 0, sizeof *spec);
	spec->umask = 022;
	spec->log_limit_bytes = UINT64_C(64) << 20;
	spec->stop_signal = 15; /* SIGTERM, on every Linux */
	spec->grace_ms = 30000;
}

static size_t texts_size(const struct sw_texts *texts)
{
	size_t size = 0;
	for (size_t i = 0; i < texts->count; i++)
		size += sw_json_string_size(texts->items[i]) + 1;
	return size;
}

size_t sw_run_spec_size(const struct sw_run_spec *spec)
{
	const char *const texts[] = {spec->name, spec->workdir, spec->stdout_path, spec->stderr_path};
	size_t size = texts_size(&spec->argv) + texts_size(&spec->env);
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		size += texts[i] != NULL ? sw_json_string_size(texts[i]) : 0;
	/* Every other field is a number or a word. */
	for (size_t i = 0; i < SW_FIELD_COUNT(spec_fields); i++)
		size += strlen(spec_fields[i].name) + 32;
	return size;
}

static int decode_spec(struct sw_decoder *decoder, json_t *value, struct sw_run_spec *spec)
{
	sw_run_spec_defaults(spec);
	int r = DECODE(spec_fields, value, spec);
	if (r < 0)
		return r;
	if (spec->argv.items[0][0] == '\0')
		return sw_decoder_refuse(decoder, "argv", json_object_get(value, "argv"), "a command as its first text");
	for (size_t i = 0; i < spec->env.count; i++) {
		const char *equals = strchr(spec->env.items[i], '=');
		if (equals == NULL || equals == spec->env.items[i]) {
			size_t mark = sw_decoder_enter(decoder, "env", (long)i);
			r = sw_decoder_refuse(decoder, NULL, json_array_get(json_object_get(value, "env"), i), "NAME=VALUE");
			sw_decoder_leave(decoder, mark);
			return r;
		}
	}
	return 0;
}

static int decode_want(struct sw_decoder *decoder, json_t *value, void *target)
{
	struct sw_want *want = target;
	want->grace_ms = -1;
	const char *why = NULL;
	bool vital = false;
	int r = DECODE(want_head_fields, value, want);
	/* What is only for people spoils no order. */
	if (r == 0)
		r = sw_decode_readable(decoder, value, want_words_fields, SW_FIELD_COUNT(want_words_fields), want, &why, &vital);
	if (r < 0)
		return r;
	/* To stop or to forget a run, no more is needed than to know which: a field that cannot be read has its default. */
	if (want->want == SW_WANT_STOP || want->want == SW_WANT_FORGET)
		return sw_decode_readable(decoder, value, want_fields, SW_FIELD_COUNT(want_fields), want, &why, &vital);
	r = DECODE(want_fields, value, want);
	json_t *body = r == 0 ? json_object_get(value, "spec") : NULL;
	if (body == NULL || json_is_null(body))
		return r;
	struct sw_run_spec *spec = sw_decoded_alloc(decoder->decoded, 1, sizeof *spec);
	if (spec == NULL)
		return sw_decoder_out_of_memory(decoder);
	size_t mark = sw_decoder_enter(decoder, "spec", -1);
	r = decode_spec(decoder, body, spec);
	sw_decoder_leave(decoder, mark);
	want->spec = spec;
	return r;
}

int sw_answer_decode(const char *text, size_t size, struct sw_answer_message **ret_answer, struct sw_err *err)
{
	struct sw_decoder context = {.what = "cannot read the controller's answer", .err = err}, *decoder = &context;
	void *made = NULL;
	int r = begin(decoder, text, size, SW_ANSWER_BYTES_MAX, sizeof(struct sw_answer_message), &made);
	if (r < 0)
		return r;
	struct sw_answer_message *answer = made;
	assert(answer != NULL);
	answer->owner = decoder->decoded;
	void *wants = NULL;
	struct spoiled spoiled = {0};
	r = DECODE(answer_fields, decoder->decoded->root, answer);
	/* No list at all is no word that nothing is wanted. */
	if (r == 0 && !json_is_array(json_object_get(decoder->decoded->root, "wants")))
		r = sw_decoder_refuse(decoder, "wants", json_object_get(decoder->decoded->root, "wants"), "a list");
	if (r == 0)
		r = decode_runs(decoder, "wants", SW_SYNC_WANTS_MAX, sizeof *answer->wants, decode_want, &spoiled, &wants,
				&answer->want_count);
	if (r < 0) {
		sw_answer_free(answer);
		return r;
	}
	answer->wants = wants;
	answer->unread = spoiled.items;
	answer->unread_count = spoiled.count;
	*ret_answer = answer;
	return 0;
}

void sw_answer_free(struct sw_answer_message *answer)
{
	if (answer != NULL)
		sw_decoded_free(answer->owner);
}

int sw_run_order_decode(const char *text, size_t size, struct sw_run_order **ret_order, struct sw_err *err)
{
	struct sw_decoder context = {.what = "cannot read the order of a run", .err = err}, *decoder = &context;
	void *made = NULL;
	int r = begin(decoder, text, size, SW_SYNC_BYTES_MAX, sizeof(struct sw_run_order), &made);
	if (r < 0)
		return r;
	struct sw_run_order *order = made;
	assert(order != NULL);
	order->owner = decoder->decoded;
	json_t *root = decoder->decoded->root;
	r = DECODE(order_fields, root, order);
	if (r == 0)
		r = decode_want(decoder, root, &order->want);
	if (r == 0 && order->want.spec == NULL)
		r = sw_decoder_refuse(decoder, "spec", NULL, "an object");
	if (r < 0) {
		sw_run_order_free(order);
		return r;
	}
	*ret_order = order;
	return 0;
}

void sw_run_order_free(struct sw_run_order *order)
{
	if (order != NULL)
		sw_decoded_free(order->owner);
}

int sw_run_account_decode(const char *text, size_t size, struct sw_run_account **ret_account, struct sw_err *err)
{
	struct sw_decoder context = {.what = "cannot read the account of a run", .err = err}, *decoder = &context;
	void *made = NULL;
	int r = begin(decoder, text, size, SW_SYNC_BYTES_MAX, sizeof(struct sw_run_account), &made);
	if (r < 0)
		return r;
	struct sw_run_account *account = made;
	assert(account != NULL);
	account->owner = decoder->decoded;
	r = decode_run(decoder, decoder->decoded->root, &account->run);
	if (r == 0)
		r = DECODE(account_fields, decoder->decoded->root, account);
	if (r < 0) {
		sw_run_account_free(account);
		return r;
	}
	*ret_account = account;
	return 0;
}

void sw_run_account_free(struct sw_run_account *account)
{
	if (account != NULL)
		sw_decoded_free(account->owner);
}

/* ------------------------------------------------------------------------------------------------ encoding */

static void encode_object(struct sw_json *json, const struct sw_field *fields, size_t count, const void *source)
{
	sw_json_object(json);
	sw_encode_fields(json, fields, count, source);
	sw_json_end_object(json);
}
#define OBJECT(fields, source) encode_object(json, fields, SW_FIELD_COUNT(fields), source)

static void encode_inventory(struct sw_json *json, const struct sw_sync_inventory *inventory)
{
	sw_json_key(json, "inventory");
	sw_json_object(json);
	ENCODE(inventory_fields, inventory);
	sw_json_key(json, "gpus");
	sw_json_array(json);
	for (size_t i = 0; i < inventory->gpu_count; i++)
		OBJECT(gpu_fields, &inventory->gpus[i]);
	sw_json_end_array(json);
	sw_json_end_object(json);
}

static void encode_samples(struct sw_json *json, const struct sw_sync *sync)
{
	sw_json_key(json, "samples");
	sw_json_array(json);
	for (size_t i = 0; i < sync->sample_count; i++) {
		sw_json_object(json);
		ENCODE(sample_fields, &sync->samples[i]);
		if (sync->samples[i].has_run)
			ENCODE(sample_run_fields, &sync->samples[i]);
		sw_json_end_object(json);
	}
	sw_json_end_array(json);
}

static void encode_doors(struct sw_json *json, const struct sw_sync *sync)
{
	sw_json_key(json, "shut");
	sw_json_array(json);
	for (size_t i = 0; i < sync->shut_count; i++)
		OBJECT(shut_fields, &sync->shut[i]);
	sw_json_end_array(json);
	if (sync->stranger_count == 0)
		return;
	sw_json_key(json, "strangers");
	sw_json_array(json);
	for (size_t i = 0; i < sync->stranger_count; i++)
		OBJECT(stranger_fields, &sync->strangers[i]);
	sw_json_end_array(json);
}

/* What a sync can do without when it would be too long: figures, then words for people. */
enum luxury { SYNC_ALL, SYNC_WITHOUT_SAMPLES, SYNC_BARE, LUXURIES };

static void encode_run(struct sw_json *json, const struct sw_sync_run *run, enum luxury luxury)
{
	struct sw_sync_run bare = *run;
	if (luxury == SYNC_BARE)
		bare.detail = bare.unmoved = bare.failure_line = bare.failure_path = NULL;
	OBJECT(run_fields, &bare);
}

static void encode_sync(struct sw_json *json, const struct sw_sync *sync, enum luxury luxury)
{
	sw_json_object(json);
	ENCODE(sync_fields, sync);
	if (sync->inventory != NULL)
		encode_inventory(json, sync->inventory);
	sw_json_key(json, "jobs");
	sw_json_array(json);
	for (size_t i = 0; i < sync->run_count; i++)
		encode_run(json, &sync->runs[i], luxury);
	sw_json_end_array(json);
	if (sync->sample_count > 0 && luxury == SYNC_ALL)
		encode_samples(json, sync);
	if (sync->looked)
		encode_doors(json, sync);
	sw_json_end_object(json);
}

int sw_sync_encode(const struct sw_sync *sync, char **ret_text, size_t *ret_size, struct sw_err *err)
{
	struct sw_json json = {0};
	for (enum luxury luxury = SYNC_ALL; luxury < LUXURIES; luxury++) {
		sw_json_release(&json);
		encode_sync(&json, sync, luxury);
		if (json.failed || json.size <= SW_SYNC_BYTES_MAX)
			break;
	}
	return sw_encode_finish(&json, "cannot write the sync", SW_SYNC_BYTES_MAX, ret_text, ret_size, err);
}

static void encode_want(struct sw_json *json, const struct sw_want *want)
{
	ENCODE(want_head_fields, want);
	ENCODE(want_words_fields, want);
	ENCODE(want_fields, want);
	if (want->spec == NULL)
		return;
	sw_json_key(json, "spec");
	OBJECT(spec_fields, want->spec);
}

int sw_answer_encode(const struct sw_answer_message *answer, char **ret_text, size_t *ret_size, struct sw_err *err)
{
	struct sw_json buffer = {0}, *json = &buffer;
	sw_json_object(json);
	ENCODE(answer_fields, answer);
	sw_json_key(json, "wants");
	sw_json_array(json);
	for (size_t i = 0; i < answer->want_count; i++) {
		sw_json_object(json);
		encode_want(json, &answer->wants[i]);
		sw_json_end_object(json);
	}
	sw_json_end_array(json);
	sw_json_end_object(json);
	return sw_encode_finish(json, "cannot write the answer to an agent", SW_ANSWER_BYTES_MAX, ret_text, ret_size, err);
}

int sw_run_order_encode(const struct sw_run_order *order, char **ret_text, size_t *ret_size, struct sw_err *err)
{
	struct sw_json buffer = {0}, *json = &buffer;
	sw_json_object(json);
	ENCODE(order_fields, order);
	encode_want(json, &order->want);
	sw_json_end_object(json);
	return sw_encode_finish(json, "cannot write the order of a run", SW_SYNC_BYTES_MAX, ret_text, ret_size, err);
}

int sw_run_account_encode(const struct sw_run_account *account, char **ret_text, size_t *ret_size, struct sw_err *err)
{
	struct sw_json buffer = {0}, *json = &buffer;
	sw_json_object(json);
	ENCODE(run_fields, &account->run);
	ENCODE(account_fields, account);
	sw_json_end_object(json);
	return sw_encode_finish(json, "cannot write the account of a run", SW_SYNC_BYTES_MAX, ret_text, ret_size, err);
}
