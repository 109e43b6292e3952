#include "sim/cluster.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/number.h"
#include "base/yaml.h"
#include "sim/cluster_build.h"

#define CSV_LIMIT 65536

static int no_memory(struct sw_err *err)
{
	return sw_err_set(err, SW_ENOMEM, "cannot describe the cluster: out of memory");
}

/* Building, shared by all three notations. */

int sw_cluster_build_new(const char *origin, struct sw_cluster_spec **ret_spec, struct sw_err *err)
{
	SW_CLEANUP(sw_cluster_freep) struct sw_cluster_spec *spec = calloc(1, sizeof *spec);
	if (spec == NULL || (spec->origin = strdup(origin)) == NULL)
		return no_memory(err);
	*ret_spec = SW_TAKE(spec);
	return 0;
}

int sw_cluster_build_type(struct sw_cluster_spec *spec, const char *name, uint32_t *ret_type, struct sw_err *err)
{
	for (size_t i = 0; i < spec->gpu_types.count; i++) {
		if (strcmp(spec->gpu_types.items[i], name) == 0) {
			*ret_type = (uint32_t)i;
			return 0;
		}
	}
	char **slot = sw_vec_push(&spec->gpu_types);
	if (slot == NULL || (*slot = strdup(name)) == NULL)
		return no_memory(err);
	*ret_type = (uint32_t)spec->gpu_types.count - 1;
	return 0;
}

int sw_cluster_build_shape(struct sw_cluster_spec *spec, const struct sw_cluster_shape *shape, uint32_t *ret_shape, struct sw_err *err)
{
	assert(shape->gpus >= 1 && shape->gpus <= SW_NODE_GPUS_MAX && shape->link_group >= 1 && shape->link_group <= shape->gpus);
	struct sw_cluster_shape *slot = sw_vec_push(&spec->shapes);
	if (slot == NULL)
		return no_memory(err);
	*slot = *shape;
	*ret_shape = (uint32_t)spec->shapes.count - 1;
	return 0;
}

/* `racks` racks with `per_rack` nodes each, in one run; 0 racks adds to the rack that is open. The
 * caller has checked the sums. */
int sw_cluster_build_run(struct sw_cluster_spec *spec, uint64_t racks, uint64_t per_rack, uint32_t shape, struct sw_err *err)
{
	uint64_t nodes = (racks > 0 ? racks : 1) * per_rack;
	assert(spec->nodes + nodes <= SW_CLUSTER_NODES_MAX && (racks > 0 || spec->racks > 0));
	struct sw_cluster_run *run = sw_vec_push(&spec->runs);
	if (run == NULL)
		return no_memory(err);
	*run = (struct sw_cluster_run){
		.first_node = spec->nodes,
		.nodes = (uint32_t)nodes,
		.first_rack = racks > 0 ? spec->racks : spec->racks - 1,
		.nodes_per_rack = (uint32_t)per_rack,
		.shape = shape,
	};
	spec->nodes += (uint32_t)nodes;
	spec->gpus += (uint32_t)nodes * spec->shapes.items[shape].gpus;
	spec->racks += (uint32_t)racks;
	return 0;
}

/* What is wrong with so many racks of so many nodes of so many GPUs; NULL: nothing. */
static const char *too_large(uint64_t racks, uint64_t nodes, uint64_t gpus)
{
	/* Each factor is bounded before the product, so that nothing can wrap. */
	if (racks == 0 || nodes == 0 || gpus == 0)
		return "every count must be at least 1";
	if (gpus > SW_NODE_GPUS_MAX)
		return "a node has at most 64 GPUs";
	if (racks > SW_CLUSTER_NODES_MAX || nodes > SW_CLUSTER_NODES_MAX || racks * nodes > SW_CLUSTER_NODES_MAX)
		return "a cluster has at most 1,000,000 nodes";
	if (racks * nodes * gpus > SW_CLUSTER_GPUS_MAX)
		return "a cluster has at most 1,000,000 GPUs";
	return NULL;
}

static int build_uniform(const char *origin, uint64_t racks, uint64_t per_rack, struct sw_cluster_shape shape,
			 struct sw_cluster_spec **ret_spec, struct sw_err *err)
{
	SW_CLEANUP(sw_cluster_freep) struct sw_cluster_spec *spec = NULL;
	uint32_t index = 0;
	int r = sw_cluster_build_new(origin, &spec, err);
	if (r < 0)
		return r;
	assert(spec != NULL);
	r = sw_cluster_build_type(spec, SW_CLUSTER_GPU_TYPE, &shape.gpu_type, err);
	if (r == 0)
		r = sw_cluster_build_shape(spec, &shape, &index, err);
	if (r == 0)
		r = sw_cluster_build_run(spec, racks, per_rack, index, err);
	if (r < 0)
		return r;
	*ret_spec = SW_TAKE(spec);
	return 0;
}

/* "8x8" and "2x16x8". */

static bool is_counts(const char *text)
{
	return text[0] >= '0' && text[0] <= '9' && text[strspn(text, "0123456789xX-+. ")] == '\0';
}

static int refuse_counts(const char *text, const char *why, struct sw_err *err)
{
	sw_err_set(err, SW_EINPUT, "cannot use the cluster '%.100s'", text);
	sw_err_detail(err, "%s", why);
	sw_err_hint(err, "Write nodes x GPUs (8x8), racks x nodes x GPUs (2x16x8), or the path of a cluster file.");
	return SW_EINPUT;
}

static int parse_counts(const char *text, struct sw_cluster_spec **ret_spec, struct sw_err *err)
{
	uint64_t counts[3] = {0};
	size_t count = 0;
	for (const char *at = text;; at++) {
		size_t size = strcspn(at, "xX");
		if (count == 3)
			return refuse_counts(text, "there are more than three numbers", err);
		if (size > 12 || sw_parse_u64(at, size, &counts[count]) < 0)
			return refuse_counts(text, "one of its numbers is not a whole number, or far too large", err);
		count++;
		at += size;
		if (*at == '\0')
			break;
	}
	if (count == 1)
		return refuse_counts(text, "it is a single number", err);
	uint64_t racks = count == 3 ? counts[0] : 1, nodes = counts[count - 2], gpus = counts[count - 1];
	const char *why = too_large(racks, nodes, gpus);
	if (why != NULL)
		return refuse_counts(text, why, err);
	struct sw_cluster_shape shape = {
		.gpus = (uint32_t)gpus,
		.link_group = (uint32_t)gpus,
		.cpus = SW_CLUSTER_CPUS,
		.mem_bytes = SW_CLUSTER_MEM_BYTES,
		.gpu_mem_bytes = SW_CLUSTER_GPU_MEM_BYTES,
	};
	return build_uniform(text, racks, nodes, shape, ret_spec, err);
}

/* The CSV of Tiresias and Muri: a line of names and a line of numbers. */

static const char *const csv_columns[] = {"num_switch", "num_node_p_switch", "num_gpu_p_node", "num_cpu_p_node", "mem_p_node"};
#define CSV_COLUMNS SW_YAML_COUNT(csv_columns)

__attribute__((format(printf, 4, 5))) static int refuse_csv(const char *name, unsigned line, struct sw_err *err, const char *fmt, ...)
{
	char why[256];
	va_list args;
	va_start(args, fmt);
	vsnprintf(why, sizeof why, fmt, args);
	va_end(args);
	sw_err_set(err, SW_EINPUT, "cannot read cluster '%.200s'", name);
	sw_err_detail(err, "line %u: %s", line, why);
	sw_err_hint(err,
		    "The file has a line num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node and one line of numbers.");
	return SW_EINPUT;
}

/* Length of the line at `at`, without its end; *ret_next is behind that. */
static size_t take_line(const char *at, const char *end, const char **ret_next)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));
	size_t size = (size_t)((newline != NULL ? newline : end) - at);
	*ret_next = newline != NULL ? newline + 1 : end;
	while (size > 0 && (at[size - 1] == '\r' || at[size - 1] == ' '))
		size--;
	return size;
}

/* Splits a line into exactly CSV_COLUMNS fields; returns how many there are. */
static size_t split_line(const char *line, size_t size, const char *fields[CSV_COLUMNS], size_t sizes[CSV_COLUMNS])
{
	size_t count = 0;
	for (const char *end = line + size;; line++) {
		const char *comma = memchr(line, ',', (size_t)(end - line));
		const char *stop = comma != NULL ? comma : end;
		if (count < CSV_COLUMNS) {
			fields[count] = line;
			sizes[count] = (size_t)(stop - line);
		}
		count++;
		if (comma == NULL)
			return count;
		line = comma;
	}
}

static int read_csv_numbers(const char *name, const char *line, size_t size, uint64_t numbers[CSV_COLUMNS], struct sw_err *err)
{
	const char *fields[CSV_COLUMNS];
	size_t sizes[CSV_COLUMNS];
	size_t count = split_line(line, size, fields, sizes);
	if (count != CSV_COLUMNS)
		return refuse_csv(name, 2, err, "%zu columns, expected %zu", count, CSV_COLUMNS);
	for (size_t i = 0; i < CSV_COLUMNS; i++)
		if (sizes[i] > 12 || sw_parse_u64(fields[i], sizes[i], &numbers[i]) < 0)
			return refuse_csv(name, 2, err, "%s is '%.*s', expected a whole number", csv_columns[i],
					  (int)(sizes[i] < 40 ? sizes[i] : 40), fields[i]);
	return 0;
}

static int parse_csv(const char *name, const char *text, size_t size, struct sw_cluster_spec **ret_spec, struct sw_err *err)
{
	const char *end = text + size, *at = text;
	const char *fields[CSV_COLUMNS];
	size_t sizes[CSV_COLUMNS];
	size_t length = take_line(at, end, &at);
	if (split_line(text, length, fields, sizes) != CSV_COLUMNS)
		return refuse_csv(name, 1, err, "the names of the columns are not the expected ones");
	for (size_t i = 0; i < CSV_COLUMNS; i++)
		if (sizes[i] != strlen(csv_columns[i]) || memcmp(fields[i], csv_columns[i], sizes[i]) != 0)
			return refuse_csv(name, 1, err, "column %zu is '%.*s', expected %s", i + 1, (int)(sizes[i] < 40 ? sizes[i] : 40),
					  fields[i], csv_columns[i]);
	const char *numbers_line = at;
	length = take_line(at, end, &at);
	uint64_t numbers[CSV_COLUMNS] = {0};
	int r = read_csv_numbers(name, numbers_line, length, numbers, err);
	if (r < 0)
		return r;
	for (unsigned line = 3; at < end; line++)
		if (take_line(at, end, &at) > 0)
			return refuse_csv(name, line, err, "a second line of numbers; one describes the whole cluster");
	const char *why = too_large(numbers[0], numbers[1], numbers[2]);
	if (why == NULL && (numbers[3] > 1000000 || numbers[4] > 1000000000))
		why = "so many cores or so much memory in one node cannot be meant";
	if (why != NULL)
		return refuse_csv(name, 2, err, "%s", why);
	struct sw_cluster_shape shape = {
		.gpus = (uint32_t)numbers[2],
		.link_group = (uint32_t)numbers[2],
		.cpus = (uint32_t)numbers[3],
		.mem_bytes = numbers[4] << 30,
		.gpu_mem_bytes = SW_CLUSTER_GPU_MEM_BYTES,
	};
	return build_uniform(name, numbers[0], numbers[1], shape, ret_spec, err);
}

int sw_cluster_parse(const char *name, const char *text, size_t size, struct sw_cluster_spec **ret_spec, struct sw_err *err)
{
	static const char mark[] = "num_switch";
	if (size >= sizeof mark - 1 && memcmp(text, mark, sizeof mark - 1) == 0) {
		if (size > CSV_LIMIT)
			return refuse_csv(name, 1, err, "longer than %d bytes", CSV_LIMIT);
		return parse_csv(name, text, size, ret_spec, err);
	}
	return sw_cluster_parse_yaml(name, text, size, ret_spec, err);
}

int sw_cluster_load(const char *shape_or_path, struct sw_cluster_spec **ret_spec, struct sw_err *err)
{
	if (is_counts(shape_or_path))
		return parse_counts(shape_or_path, ret_spec, err);
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size = 0;
	int r = sw_file_read(shape_or_path, SW_YAML_MAX_BYTES, &text, &size, err);
	if (r < 0) {
		sw_err_hint(err, "A cluster is nodes x GPUs (8x8), racks x nodes x GPUs (2x16x8), or the path of a cluster file.");
		return r;
	}
	return sw_cluster_parse(shape_or_path, text, size, ret_spec, err);
}

void sw_cluster_free(struct sw_cluster_spec *spec)
{
	if (spec == NULL)
		return;
	for (size_t i = 0; i < spec->gpu_types.count; i++)
		free(spec->gpu_types.items[i]);
	sw_vec_free(&spec->gpu_types);
	sw_vec_free(&spec->shapes);
	sw_vec_free(&spec->runs);
	free(spec->origin);
	free(spec);
}

/* Reading a finished spec. */

struct node {
	uint32_t rack;
	const struct sw_cluster_shape *shape;
};

static struct node node_of_run(const struct sw_cluster_spec *spec, const struct sw_cluster_run *run, uint32_t index)
{
	return (struct node){
		.rack = run->first_rack + (index - run->first_node) / run->nodes_per_rack,
		.shape = &spec->shapes.items[run->shape],
	};
}

char *sw_cluster_describe(const struct sw_cluster_spec *spec, char buffer[96])
{
	const struct sw_cluster_run *run = &spec->runs.items[0];
	uint32_t gpus = spec->shapes.items[run->shape].gpus;
	if (spec->runs.count == 1 && spec->racks == 1)
		snprintf(buffer, 96, "%u node%s x %u GPU%s", spec->nodes, spec->nodes == 1 ? "" : "s", gpus, gpus == 1 ? "" : "s");
	else if (spec->runs.count == 1)
		snprintf(buffer, 96, "%u racks x %u node%s x %u GPU%s", spec->racks, run->nodes_per_rack,
			 run->nodes_per_rack == 1 ? "" : "s", gpus, gpus == 1 ? "" : "s");
	else
		snprintf(buffer, 96, "%u nodes, %u GPUs, %u rack%s", spec->nodes, spec->gpus, spec->racks, spec->racks == 1 ? "" : "s");
	return buffer;
}

int sw_cluster_topology(const struct sw_cluster_spec *spec, struct sw_topology **ret_topology, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) struct sw_topology_node *nodes = calloc(spec->nodes, sizeof *nodes);
	if (nodes == NULL)
		return no_memory(err);
	for (size_t i = 0; i < spec->runs.count; i++) {
		const struct sw_cluster_run *run = &spec->runs.items[i];
		for (uint32_t n = run->first_node; n < run->first_node + run->nodes; n++) {
			struct node node = node_of_run(spec, run, n);
			nodes[n] = (struct sw_topology_node){
				.rack = node.rack,
				.gpus = node.shape->gpus,
				.link_group = node.shape->link_group,
				.cpus = node.shape->cpus,
				.gpu_type = node.shape->gpu_type,
				.memory_bytes = node.shape->mem_bytes,
				.gpu_memory_bytes = node.shape->gpu_mem_bytes,
			};
		}
	}
	return sw_topology_new(nodes, spec->nodes, ret_topology, err);
}
