/* GPUs that take no jobs: processes outside the queue use them, the operator keeps them back,
 * or they do not answer.
 *
 * Which they are is the agent's to say, a record, and the engine's to obey. What is on them changes
 * by the second: that is kept for people alone, and is in no record. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "brain/fold.h"
#include "brain/record.h"
#include "brain/shut.h"
#include "brain/state.h"
#include "core/ledger.h"

enum { STRANGERS_NAMED = 2, GPUS_NAMED = 4 };

__attribute__((format(printf, 3, 4))) static void add(char *text, size_t size, const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list args;
	va_start(args, fmt);
	vsnprintf(text + used, size - used, fmt, args);
	va_end(args);
}

/* ---- words */

/* One process outside the queue, in words. */
static void describe(const struct sw_sync_stranger *stranger, char *text, size_t size)
{
	char user[64] = "", program[64] = "a process", bytes[32];
	/* Agents may send anything. */
	if (stranger->user != NULL)
		sw_failure_clean(stranger->user, strlen(stranger->user), user, sizeof user);
	if (stranger->program != NULL)
		sw_failure_clean(stranger->program, strlen(stranger->program), program, sizeof program);
	snprintf(text, size, "%s%s%s", user, user[0] == '\0' ? "" : stranger->program != NULL ? "'s " : ": ", program);
	if (stranger->pid != 0)
		add(text, size, " (pid %" PRIu32 ", %s)", stranger->pid, sw_format_bytes(stranger->memory_bytes, bytes));
	else
		add(text, size, " (%s)", sw_format_bytes(stranger->memory_bytes, bytes));
}

static void describe_strangers(const struct sw_sync *sync, const char *uuid, char *text, size_t size)
{
	uint32_t count = 0;
	text[0] = '\0';
	for (size_t s = 0; s < sync->stranger_count; s++) {
		char one[160];
		if (strcmp(sync->strangers[s].gpu, uuid) != 0 || count++ >= STRANGERS_NAMED)
			continue;
		describe(&sync->strangers[s], one, sizeof one);
		add(text, size, "%s%s", text[0] != '\0' ? ", " : "", one);
	}
	if (count > STRANGERS_NAMED)
		add(text, size, " and %u more", count - STRANGERS_NAMED);
}

/* ---- hearing */

static const struct sw_sync_shut *find(const struct sw_sync *sync, const char *uuid)
{
	for (size_t s = 0; s < sync->shut_count; s++)
		if (strcmp(sync->shut[s].gpu, uuid) == 0)
			return &sync->shut[s];
	return NULL;
}

json_t *sw_brain_list_shut(const struct sw_sync *sync, bool always)
{
	if (!sync->looked || (sync->shut_count == 0 && !always))
		return NULL;
	json_t *list = json_array();
	for (size_t s = 0; s < sync->shut_count && s < SW_NODE_GPUS_MAX; s++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "gpu", sync->shut[s].gpu, "why", sw_shut_name(sync->shut[s].why),
						      "since", (json_int_t)sync->shut[s].since_ns));
	return list;
}

int sw_brain_hear_shut(struct sw_brain_node *node, const struct sw_sync *sync, sw_records *records, struct sw_err *err)
{
	bool differs = false;
	for (uint32_t g = 0; sync->looked && g < node->shape.gpus; g++) {
		struct sw_brain_gpu *gpu = &node->gpus[g];
		const struct sw_sync_shut *shut = find(sync, gpu->uuid);
		const char *detail = shut != NULL && shut->detail != NULL ? shut->detail : "";
		differs |= gpu->shut != (shut != NULL ? (uint8_t)shut->why + 1 : 0);
		if (shut != NULL && shut->why == SW_SHUT_STRANGER)
			describe_strangers(sync, gpu->uuid, gpu->shut_by, sizeof gpu->shut_by);
		else
			sw_failure_clean(detail, strlen(detail), gpu->shut_by, sizeof gpu->shut_by);
	}
	if (!differs)
		return 0;
	return sw_record_push(records, SW_RECORD_GPUS, json_pack("{s:s, s:o}", "name", node->name, "shut", sw_brain_list_shut(sync, true)),
			      err);
}

/* ---- applying */

void sw_brain_take_shut(struct sw_brain_gpu *gpus, uint32_t count, const json_t *list)
{
	for (uint32_t g = 0; g < count; g++) {
		gpus[g].shut = 0;
		size_t i;
		json_t *entry;
		json_array_foreach(list, i, entry)
		{
			const char *uuid = json_string_value(json_object_get(entry, "gpu"));
			const char *word = json_string_value(json_object_get(entry, "why"));
			enum sw_shut why;
			/* Of one that stands twice, the first word counts, as in what was heard. */
			if (gpus[g].shut != 0 || uuid == NULL || word == NULL || strcmp(uuid, gpus[g].uuid) != 0 ||
			    !sw_shut_parse(word, &why))
				continue;
			gpus[g].shut = (uint8_t)(why + 1);
			gpus[g].shut_since = json_integer_value(json_object_get(entry, "since"));
		}
	}
}

uint64_t sw_brain_shut_mask(const struct sw_brain_gpu *gpus, uint32_t count)
{
	uint64_t mask = 0;
	for (uint32_t g = 0; g < count && g < SW_NODE_GPUS_MAX; g++)
		mask |= gpus[g].shut != 0 ? UINT64_C(1) << g : 0;
	return mask;
}

int sw_brain_apply_shut(struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	const char *name;
	json_t *list;
	struct sw_brain_node *node =
		json_unpack(body, "{s:s, s:o}", "name", &name, "shut", &list) == 0 ? sw_brain_find_node(brain, name) : NULL;
	if (node == NULL)
		return sw_err_set(err, SW_EBUG, "a record names a node that is not there");
	sw_brain_take_shut(node->gpus, node->shape.gpus, list);
	struct sw_event event = {.kind = SW_EV_GPUS_SHUT,
				 .node = {(uint32_t)(node - brain->nodes.items)},
				 .mask = sw_brain_shut_mask(node->gpus, node->shape.gpus)};
	return sw_brain_step(brain, &event, 1, err);
}

/* ---- looking */

bool sw_brain_gpu_shut(const struct sw_brain *brain, uint32_t node, uint32_t gpu, struct sw_shut_view *ret_view)
{
	const struct sw_brain_gpu *it = &brain->nodes.items[node].gpus[gpu];
	if (it->shut == 0)
		return false;
	*ret_view = (struct sw_shut_view){(enum sw_shut)(it->shut - 1), it->shut_since, it->shut_by};
	return true;
}

static void add_named(const struct sw_brain *brain, uint8_t kind, char *text, size_t size)
{
	uint32_t named = 0;
	for (size_t n = 0; n < brain->nodes.count; n++) {
		const struct sw_brain_node *node = &brain->nodes.items[n];
		for (uint32_t g = 0; node->up && node->closed == SW_OPEN && g < node->shape.gpus; g++) {
			if (node->gpus[g].shut != kind || named++ >= GPUS_NAMED)
				continue;
			const char *by = node->gpus[g].shut_by;
			add(text, size, "%s%s%son %s gpu%u", named > 1 ? ", " : ": ", by, by[0] != '\0' ? " " : "", node->name, g);
		}
	}
	if (named > GPUS_NAMED)
		add(text, size, " and %u more", named - GPUS_NAMED);
}

void sw_brain_describe_shut(const struct sw_brain *brain, char *text, size_t size)
{
	static const char *const words[SW_SHUT_KINDS][2] = {
		{"is used by processes outside the queue", "are used by processes outside the queue"},
		{"is kept back by the operator", "are kept back by the operator"},
		{"does not answer its driver", "do not answer their driver"},
		{"is on a node whose driver does not answer", "are on nodes whose driver does not answer"},
	};
	uint32_t counts[SW_SHUT_KINDS + 1] = {0}, gpus = 0;
	text[0] = '\0';
	for (size_t n = 0; n < brain->nodes.count; n++) {
		const struct sw_brain_node *node = &brain->nodes.items[n];
		gpus += node->up ? node->shape.gpus : 0;
		for (uint32_t g = 0; node->up && node->closed == SW_OPEN && g < node->shape.gpus; g++)
			counts[node->gpus[g].shut]++;
	}
	for (uint8_t kind = 1; kind <= SW_SHUT_KINDS; kind++) {
		if (counts[kind] == 0)
			continue;
		add(text, size, "%s%u of %u GPUs %s", text[0] != '\0' ? "; " : "", counts[kind], gpus, words[kind - 1][counts[kind] > 1]);
		add_named(brain, kind, text, size);
	}
}

void sw_brain_add_company(const struct sw_brain *brain, uint64_t id, char *text, size_t size)
{
	const struct sw_live *live = &brain->jobs.items[id - 1];
	for (uint32_t r = 0; r < live->run_count; r++) {
		const struct sw_brain_node *node = &brain->nodes.items[live->runs[r].node];
		for (uint64_t rest = live->runs[r].mask; rest != 0; rest &= rest - 1) {
			uint32_t g = (uint32_t)__builtin_ctzll(rest);
			const struct sw_brain_gpu *gpu = &node->gpus[g];
			if (gpu->shut == SW_SHUT_STRANGER + 1)
				add(text, size, "; its gpu%u is also used from outside the queue%s%s", g,
				    gpu->shut_by[0] != '\0' ? ": " : "", gpu->shut_by);
			else if (gpu->shut == SW_SHUT_DEAD + 1)
				add(text, size, "; its gpu%u does not answer the driver%s%s", g, gpu->shut_by[0] != '\0' ? ": " : "",
				    gpu->shut_by);
		}
	}
}
