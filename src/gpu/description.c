/* GPUs that do not exist, as a file describes them: see examples/gpus.yaml. They do nothing: their
 * samples know the memory alone.
 *
 * The UUIDs follow from the prefix and the place in the file, so that the same file gives the same
 * GPUs on every start. They have the form of real ones, since programs take those apart.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml.h"
#include "gpu/backend.h"

#define DEFAULT_PREFIX "GPU-e3000000"
#define PREFIX_SIZE (sizeof DEFAULT_PREFIX - 1)

/* A kind of GPU as the file has it. */
struct kind {
	const char *name;
	int64_t count, link_group, numa_node;
	uint64_t memory_bytes;
};

#define AT(member) .offset = offsetof(struct kind, member)
static const struct sw_yaml_field kind_fields[] = {
	{"name", SW_YAML_STRING, AT(name), .max = sizeof((struct sw_gpu_info *)0)->name - 1},
	{"count", SW_YAML_INTEGER, AT(count), .min = 1, .max = SW_GPUS_MAX},
	{"memory", SW_YAML_BYTES, AT(memory_bytes), .required = true, .min = 1 << 20, .max = INT64_C(1) << 46},
	{"link_group", SW_YAML_INTEGER, AT(link_group), .min = 1, .max = SW_GPUS_MAX},
	{"numa_node", SW_YAML_INTEGER, AT(numa_node), .min = 0, .max = 1023},
};
#undef AT

static int sample(struct sw_gpu_source *gpus, uint32_t index, struct sw_gpu_sample *sample, struct sw_err *err)
{
	(void)err;
	sample->known = SW_GPU_KNOWS_MEMORY | SW_GPU_KNOWS_PROCESSES;
	sample->memory_total_bytes = gpus->infos[index].memory_bytes;
	return 0;
}

static const struct sw_gpu_backend description = {.sample = sample};

/* "GPU-" and eight hexadecimal digits, as the UUID of a GPU begins. */
static bool is_prefix(const char *text)
{
	return strlen(text) == PREFIX_SIZE && memcmp(text, "GPU-", 4) == 0 && strspn(text + 4, "0123456789abcdef") == PREFIX_SIZE - 4;
}

static int add_kind(const struct sw_yaml_node *node, const char *prefix, struct sw_gpu_source *gpus, struct sw_err *err)
{
	struct kind kind = {.name = "Emulated GPU", .count = 1, .numa_node = -1};
	int r = sw_yaml_decode(node, "a kind of GPU", kind_fields, SW_YAML_COUNT(kind_fields), &kind, err);
	if (r < 0)
		return r;
	if (kind.link_group == 0)
		kind.link_group = kind.count;
	if (kind.link_group > kind.count)
		return sw_yaml_fail(node, err, "'link_group' is %" PRId64 ", but there are %" PRId64 " GPUs of this kind", kind.link_group,
				    kind.count);
	if (gpus->count + kind.count > SW_GPUS_MAX)
		return sw_yaml_fail(node, err, "with these there are more than %d GPUs", SW_GPUS_MAX);
	uint32_t first_group = gpus->count == 0 ? 0 : gpus->infos[gpus->count - 1].link_group + 1;
	for (int64_t i = 0; i < kind.count; i++) {
		struct sw_gpu_info *info = &gpus->infos[gpus->count];
		snprintf(info->uuid, sizeof info->uuid, "%.12s-0000-0000-0000-%012" PRIx32, prefix, gpus->count);
		snprintf(info->name, sizeof info->name, "%s", kind.name);
		info->memory_bytes = kind.memory_bytes;
		info->link_group = first_group + (uint32_t)(i / kind.link_group);
		info->numa_node = (int32_t)kind.numa_node;
		info->number = gpus->count;
		gpus->count++;
	}
	return 0;
}

static int read_root(const struct sw_yaml_node *root, struct sw_gpu_source *gpus, struct sw_err *err)
{
	struct top {
		const char *prefix;
		const struct sw_yaml_node *kinds;
	} top = {.prefix = DEFAULT_PREFIX};
	static const struct sw_yaml_field fields[] = {
		{"uuid_prefix", SW_YAML_STRING, false, offsetof(struct top, prefix), .min = 0},
		{"gpus", SW_YAML_LIST, true, offsetof(struct top, kinds), .max = SW_GPUS_MAX},
	};
	int r = sw_yaml_decode(root, "a description of GPUs", fields, SW_YAML_COUNT(fields), &top, err);
	if (r < 0)
		return r;
	if (!is_prefix(top.prefix))
		return sw_yaml_fail(root, err, "'uuid_prefix' is '%.60s', expected 'GPU-' and eight digits of 0 to 9 and a to f",
				    top.prefix);
	for (const struct sw_yaml_node *node = top.kinds->first; node != NULL && r == 0; node = node->next)
		r = add_kind(node, top.prefix, gpus, err);
	return r;
}

int sw_gpu_description_parse(const char *name, const char *text, size_t size, struct sw_gpu_source **ret_gpus, struct sw_err *err)
{
	SW_CLEANUP(sw_yaml_freep) struct sw_yaml *doc = NULL;
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = calloc(1, sizeof *gpus);
	if (gpus == NULL)
		return sw_err_set(err, SW_ENOMEM, "no memory for the list of GPUs");
	gpus->backend = &description;
	int r = sw_yaml_parse("GPU description", name, text, size, &doc, err);
	if (r == 0)
		r = read_root(sw_yaml_root(doc), gpus, err);
	if (r < 0)
		return r;
	snprintf(gpus->about, sizeof gpus->about, "%u emulated GPU%s from '%.300s'", gpus->count, gpus->count == 1 ? "" : "s", name);
	*ret_gpus = SW_TAKE(gpus);
	return 0;
}
