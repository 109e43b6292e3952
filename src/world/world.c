#include "world/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/embed.h"
#include "base/file.h"
#include "base/number.h"
#include "base/suggest.h"
#include "base/yaml.h"

#define TEN_YEARS_NS (INT64_C(3650) * 86400 * SW_NS_PER_S)
#define PPM INT64_C(1000000)
#define MAX_WORLDS 64

/* The file as it stands: plain values land in the world itself, the rest is looked at
 * afterwards. */
struct file {
	const char *base, *name, *about, *learned;
	const struct sw_yaml_node *suspend, *resume, *migrate, *solve, *work, *event_overhead, *host, *nodes, *faults, *gpu_types;
	const struct sw_yaml_node *not_modelled;
	int64_t quantum_ns, start_ns, restart_ns, switch_ns;
	const struct sw_yaml_node *stops;
	bool replace_is_free, placement_slowdown, sharing_slowdown, nodes_join, tells_speed;
	int moves;
	int64_t gate_milli, split_milli;
	int preempt, sharing_by;
};

static const char *const preempt_modes[] = {[SW_PREEMPT_FREE] = "free",
					    [SW_PREEMPT_SUSPEND] = "suspend",
					    [SW_PREEMPT_RESTART] = "restart",
					    [SW_PREEMPT_IN_PLACE] = "in_place",
					    NULL};

#define AT(member) .offset = offsetof(struct file, member)
static const struct sw_yaml_field file_fields[] = {
	{"base", SW_YAML_STRING, AT(base)},
	{"name", SW_YAML_STRING, AT(name), .required = true, .max = 60},
	{"about", SW_YAML_STRING, AT(about)},
	{"quantum", SW_YAML_DURATION, AT(quantum_ns)},
	{"replace_is_free", SW_YAML_BOOL, AT(replace_is_free)},
	{"preempt", SW_YAML_CHOICE, AT(preempt), .choices = preempt_modes},
	{"moves", SW_YAML_CHOICE, AT(moves), .choices = sw_moves_words},
	{"stops", SW_YAML_MAP, AT(stops)},
	{"nodes_join", SW_YAML_BOOL, AT(nodes_join)},
	{"tells_speed", SW_YAML_BOOL, AT(tells_speed)},
	{"start", SW_YAML_DURATION, AT(start_ns)},
	{"restart", SW_YAML_DURATION, AT(restart_ns)},
	{"switch", SW_YAML_DURATION, AT(switch_ns)},
	{"suspend", SW_YAML_MAP, AT(suspend)},
	{"resume", SW_YAML_MAP, AT(resume)},
	{"migrate", SW_YAML_MAP, AT(migrate)},
	{"solve", SW_YAML_MAP, AT(solve)},
	{"work", SW_YAML_MAP, AT(work)},
	{"event_overhead", SW_YAML_MAP, AT(event_overhead)},
	{"placement_slowdown", SW_YAML_BOOL, AT(placement_slowdown)},
	{"sharing_slowdown", SW_YAML_BOOL, AT(sharing_slowdown)},
	{"sharing_by", SW_YAML_CHOICE, AT(sharing_by), .choices = sw_sharing_words + SW_SHARING_BY_PROFILES},
	{"gate", SW_YAML_MILLI, AT(gate_milli), .min = 1000, .max = 100000},
	{"split", SW_YAML_MILLI, AT(split_milli), .min = 1000, .max = 100000},
	{"learned", SW_YAML_STRING, AT(learned)},
	{"host", SW_YAML_MAP, AT(host)},
	{"nodes", SW_YAML_MAP, AT(nodes)},
	{"faults", SW_YAML_MAP, AT(faults)},
	{"gpu_types", SW_YAML_MAP, AT(gpu_types), .max = SW_GPU_RULES_MAX},
	{"not_modelled", SW_YAML_LIST, AT(not_modelled), .max = 32},
};
#undef AT

static int no_memory(struct sw_err *err)
{
	return sw_err_set(err, SW_ENOMEM, "cannot read world: out of memory");
}

/* Puts a copy of `text` where *slot points. */
static int replace_text(char **slot, const char *text, struct sw_err *err)
{
	char *copy = strdup(text);
	if (copy == NULL)
		return no_memory(err);
	free(*slot);
	*slot = copy;
	return 0;
}

static int read_transfer(const struct sw_yaml_node *node, struct sw_transfer_cost *cost, struct sw_err *err)
{
	static const struct sw_yaml_field fields[] = {
		{"fixed", SW_YAML_DURATION, .offset = offsetof(struct sw_transfer_cost, fixed_ns)},
		{"copy", SW_YAML_RATE, .offset = offsetof(struct sw_transfer_cost, bytes_per_s), .min = 1,
		 .max = INT64_C(1000000000000000)},
	};
	if (node == NULL)
		return 0;
	*cost = (struct sw_transfer_cost){0};
	return sw_yaml_decode(node, "the cost of a transfer", fields, SW_YAML_COUNT(fields), cost, err);
}

static int read_solve(const struct sw_yaml_node *node, struct sw_world *world, struct sw_err *err)
{
	static const struct sw_yaml_field fields[] = {
		{"start", SW_YAML_DURATION, .offset = offsetof(struct sw_world, solve_start_ns)},
		{"iteration", SW_YAML_DURATION, .offset = offsetof(struct sw_world, solve_iteration_ns)},
	};
	return node == NULL ? 0 : sw_yaml_decode(node, "the time of a solver", fields, SW_YAML_COUNT(fields), world, err);
}

static int read_work(const struct sw_yaml_node *node, struct sw_world *world, struct sw_err *err)
{
	static const char *const sources[] = {"duration", "iterations", NULL};
	struct work {
		int from;
		int64_t scale_ppm;
	} work = {world->work_from_iterations, world->iteration_scale_ppm};
	static const struct sw_yaml_field fields[] = {
		{"from", SW_YAML_CHOICE, true, offsetof(struct work, from), .choices = sources},
		{"iteration_scale", SW_YAML_PPM, false, offsetof(struct work, scale_ppm), .min = 1, .max = 1000 * PPM},
	};
	if (node == NULL)
		return 0;
	int r = sw_yaml_decode(node, "where work comes from", fields, SW_YAML_COUNT(fields), &work, err);
	if (r < 0)
		return r;
	if (work.from == 0 && work.scale_ppm != PPM)
		return sw_yaml_fail(node, err, "'iteration_scale' means nothing where work comes from the trace's durations");
	world->work_from_iterations = work.from != 0;
	world->iteration_scale_ppm = work.scale_ppm;
	return 0;
}

static int read_host(const struct sw_yaml_node *node, struct sw_world *world, struct sw_err *err)
{
	static const struct sw_yaml_field fields[] = {
		{"cpus_per_gpu", SW_YAML_INTEGER, .offset = offsetof(struct sw_world, host_cpus_per_gpu), .max = 4096},
		{"memory_per_gpu", SW_YAML_BYTES, .offset = offsetof(struct sw_world, host_mem_per_gpu_bytes), .max = INT64_C(1) << 46},
	};
	return node == NULL ? 0 : sw_yaml_decode(node, "a demand on the host", fields, SW_YAML_COUNT(fields), world, err);
}

static int read_stops(const struct sw_yaml_node *node, struct sw_world *world, struct sw_err *err)
{
	static const struct sw_yaml_field fields[] = {
		{"guaranteed", SW_YAML_CHOICE, .offset = offsetof(struct sw_world, guaranteed_stop), .choices = sw_stop_rule_words},
		{"opportunistic", SW_YAML_CHOICE, .offset = offsetof(struct sw_world, opportunistic_stop), .choices = sw_stop_rule_words},
	};
	if (node == NULL)
		return 0;
	int r = sw_yaml_decode(node, "rules for stops", fields, SW_YAML_COUNT(fields), world, err);
	if (r == 0 && (world->opportunistic_stop == SW_STOP_NEVER || world->opportunistic_stop == SW_STOP_IF_FREE))
		return sw_yaml_fail(node, err,
				    "'opportunistic' cannot be '%s': an opportunistic job makes way for others ('suspend' or 'requeue')",
				    sw_stop_rule_words[world->opportunistic_stop]);
	return r;
}

static int read_nodes(const struct sw_yaml_node *node, struct sw_world *world, struct sw_err *err)
{
	static const struct sw_yaml_field fields[] = {
		{"switch", SW_YAML_BOOL, .offset = offsetof(struct sw_world, nodes_switch)},
		{"boot", SW_YAML_DURATION, .offset = offsetof(struct sw_world, boot_ns)},
	};
	if (node == NULL)
		return 0;
	world->nodes_switch = false;
	world->boot_ns = 0;
	int r = sw_yaml_decode(node, "the power of nodes", fields, SW_YAML_COUNT(fields), world, err);
	if (r == 0 && !world->nodes_switch && world->boot_ns > 0)
		return sw_yaml_fail(node, err, "'boot' means nothing where no node is switched off ('switch: true')");
	return r;
}

static int read_faults(const struct sw_yaml_node *node, struct sw_world *world, struct sw_err *err)
{
	static const struct sw_yaml_field fields[] = {
		{"node_mtbf", SW_YAML_DURATION, .offset = offsetof(struct sw_world, node_mtbf_ns)},
		{"node_repair", SW_YAML_DURATION, .offset = offsetof(struct sw_world, node_repair_ns)},
		{"checkpoint", SW_YAML_DURATION, .offset = offsetof(struct sw_world, checkpoint_ns)},
		{"job_failure", SW_YAML_PPM, .offset = offsetof(struct sw_world, job_failure_ppm), .max = PPM},
		{"retries", SW_YAML_INTEGER, .offset = offsetof(struct sw_world, retries), .max = 1000},
	};
	if (node == NULL)
		return 0;
	int r = sw_yaml_decode(node, "a fault model", fields, SW_YAML_COUNT(fields), world, err);
	if (r < 0)
		return r;
	/* Shorter than this, a cluster would do nothing but fail, and a
	 * simulation would never end. */
	if (world->node_mtbf_ns > 0 && world->node_mtbf_ns < 60 * SW_NS_PER_S)
		return sw_yaml_fail(node, err, "'node_mtbf' is below a minute; 0 turns failures of nodes off");
	if (world->node_mtbf_ns > 0 && world->node_repair_ns == 0)
		return sw_yaml_fail(node, err, "'node_repair' must be above 0 where nodes fail");
	return 0;
}

static int add_overhead(struct sw_world *world, const struct sw_yaml_node *model, const struct sw_yaml_node *row, struct sw_err *err)
{
	static const struct sw_yaml_field field = {NULL, SW_YAML_DURATION, .max = 86400 * SW_NS_PER_S};
	int64_t gpus = 0, ns = 0;
	if (sw_parse_i64(row->key, strlen(row->key), &gpus) < 0 || gpus < 1 || gpus > 1000000)
		return sw_yaml_fail(row, err, "the key '%s' must be a number of GPUs", row->key);
	int r = sw_yaml_value(row, &field, &ns, err);
	if (r < 0)
		return r;
	struct sw_event_overhead *overhead = sw_vec_push(&world->overheads);
	if (overhead == NULL)
		return no_memory(err);
	*overhead = (struct sw_event_overhead){.model = strdup(model->key), .gpus = (uint32_t)gpus, .ns = ns};
	return overhead->model != NULL ? 0 : no_memory(err);
}

static void drop_overheads(struct sw_world *world)
{
	for (size_t i = 0; i < world->overheads.count; i++)
		free(world->overheads.items[i].model);
	sw_vec_free(&world->overheads);
}

static int read_overhead(const struct sw_yaml_node *node, struct sw_world *world, struct sw_err *err)
{
	struct overhead {
		int64_t preset_ns;
		int64_t merge_ends_ppb;
		const struct sw_yaml_node *models;
	} overhead = {0};
	static const struct sw_yaml_field fields[] = {
		{"default", SW_YAML_DURATION, true, offsetof(struct overhead, preset_ns), .max = 86400 * SW_NS_PER_S},
		{"merge_ends", SW_YAML_INTEGER, false, offsetof(struct overhead, merge_ends_ppb), .max = 1000000},
		{"models", SW_YAML_MAP, false, offsetof(struct overhead, models), .min = 0},
	};
	static const struct sw_yaml_field row_field = {NULL, SW_YAML_MAP, .max = 64};
	if (node == NULL)
		return 0;
	int r = sw_yaml_decode(node, "an overhead", fields, SW_YAML_COUNT(fields), &overhead, err);
	if (r < 0)
		return r;
	drop_overheads(world);
	world->event_overhead = true;
	world->overhead_default_ns = overhead.preset_ns;
	world->merge_ends_ppb = overhead.merge_ends_ppb;
	const struct sw_yaml_node *model = overhead.models != NULL ? overhead.models->first : NULL;
	for (; model != NULL; model = model->next) {
		const struct sw_yaml_node *rows = NULL;
		r = sw_yaml_value(model, &row_field, &rows, err);
		for (const struct sw_yaml_node *row = r == 0 ? rows->first : NULL; row != NULL && r == 0; row = row->next)
			r = add_overhead(world, model, row, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_not_modelled(const struct sw_yaml_node *node, struct sw_world *world, struct sw_err *err)
{
	static const struct sw_yaml_field line_field = {NULL, SW_YAML_STRING, .max = 300};
	if (node == NULL)
		return 0;
	char text[8192] = "";
	size_t used = 0;
	for (const struct sw_yaml_node *member = node->first; member != NULL; member = member->next) {
		const char *line = NULL;
		int r = sw_yaml_value(member, &line_field, &line, err);
		if (r < 0)
			return r;
		used += (size_t)snprintf(text + used, sizeof text - used, "%s\n", line);
		if (used >= sizeof text)
			return sw_yaml_fail(member, err, "'not_modelled' is longer than %zu bytes", sizeof text - 1);
	}
	return replace_text(&world->not_modelled, text, err);
}

static int find_builtin(const char *name, const char **ret_text, size_t *ret_size)
{
	char path[128];
	int length = snprintf(path, sizeof path, "worlds/%s.yaml", name);
	if (length < 0 || (size_t)length >= sizeof path || strchr(name, '/') != NULL)
		return SW_ENOTFOUND;
	*ret_text = sw_embedded(path, ret_size);
	return *ret_text != NULL ? 0 : SW_ENOTFOUND;
}

static int read_file(const struct sw_yaml *doc, struct sw_world *world, struct sw_err *err);

/* The world that a user's file starts from. Built-in worlds have no base themselves, so
 * this goes one step only. */
static int read_base(const struct sw_yaml_node *root, const char *name, struct sw_world *world, struct sw_err *err)
{
	const char *text = NULL;
	size_t size = 0;
	if (find_builtin(name, &text, &size) < 0) {
		char names[200];
		sw_world_names(names, sizeof names);
		return sw_yaml_fail(root, err, "'base' names '%.60s', which is not a built-in world (%s)", name, names);
	}
	SW_CLEANUP(sw_yaml_freep) struct sw_yaml *doc = NULL;
	int r = sw_yaml_parse("world", name, text, size, &doc, err);
	return r < 0 ? r : read_file(doc, world, err);
}

/* The `base` of a file before anything else of it is read. */
static const char *base_of(const struct sw_yaml_node *root)
{
	const struct sw_yaml_node *member = root->kind == SW_YAML_IS_MAP ? root->first : NULL;
	while (member != NULL && strcmp(member->key, "base") != 0)
		member = member->next;
	return member != NULL && member->kind == SW_YAML_IS_SCALAR ? member->text : NULL;
}

static void take_plain(const struct file *file, struct sw_world *world)
{
	world->quantum_ns = file->quantum_ns;
	world->replace_is_free = file->replace_is_free;
	world->preempt = (enum sw_preempt_mode)file->preempt;
	world->moves = file->moves;
	world->nodes_join = file->nodes_join;
	world->tells_speed = file->tells_speed;
	world->start_ns = file->start_ns;
	world->restart_ns = file->restart_ns;
	world->switch_ns = file->switch_ns;
	world->placement_slowdown = file->placement_slowdown;
	world->sharing_slowdown = file->sharing_slowdown;
	world->sharing_by = (enum sw_sharing)(SW_SHARING_BY_PROFILES + file->sharing_by);
	world->gate_milli = file->gate_milli;
	world->split_milli = file->split_milli;
}

static int read_parts(const struct file *file, struct sw_world *world, struct sw_err *err)
{
	int r = replace_text(&world->name, file->name, err);
	if (r == 0 && file->about != NULL)
		r = replace_text(&world->about, file->about, err);
	if (r == 0)
		r = file->learned != NULL ? replace_text(&world->learned, file->learned, err) : 0;
	if (r == 0)
		r = read_transfer(file->suspend, &world->suspend, err);
	if (r == 0)
		r = read_transfer(file->resume, &world->resume, err);
	if (r == 0)
		r = read_transfer(file->migrate, &world->migrate, err);
	if (r == 0)
		r = read_solve(file->solve, world, err);
	if (r == 0)
		r = read_work(file->work, world, err);
	if (r == 0)
		r = read_overhead(file->event_overhead, world, err);
	if (r == 0)
		r = read_host(file->host, world, err);
	if (r == 0)
		r = read_stops(file->stops, world, err);
	if (r == 0)
		r = read_nodes(file->nodes, world, err);
	if (r == 0)
		r = read_faults(file->faults, world, err);
	if (r == 0)
		r = sw_gpu_rules_read(file->gpu_types, &world->gpu_types, err);
	return r < 0 ? r : read_not_modelled(file->not_modelled, world, err);
}

/* What is lost at a stop cannot go on where it was. */
static int check_stops(const struct sw_yaml_node *root, const struct sw_world *world, struct sw_err *err)
{
	const int rules[] = {world->guaranteed_stop, world->opportunistic_stop};
	for (size_t i = 0; i < 2 && world->preempt == SW_PREEMPT_RESTART; i++)
		if (rules[i] == SW_STOP_SUSPEND || rules[i] == SW_STOP_IF_FREE)
			return sw_yaml_fail(root, err,
					    "'stops' cannot be '%s': no run stands where it was with 'preempt: restart' ('world', "
					    "'requeue' or 'never')",
					    sw_stop_rule_words[rules[i]]);
	return 0;
}

static int read_file(const struct sw_yaml *doc, struct sw_world *world, struct sw_err *err)
{
	const struct sw_yaml_node *root = sw_yaml_root(doc);
	const char *base = base_of(root);
	if (base != NULL) {
		int r = read_base(root, base, world, err);
		if (r < 0)
			return r;
	}
	struct file file = {
		.quantum_ns = world->quantum_ns,
		.start_ns = world->start_ns,
		.restart_ns = world->restart_ns,
		.switch_ns = world->switch_ns,
		.replace_is_free = world->replace_is_free,
		.moves = world->moves,
		.nodes_join = world->nodes_join,
		.tells_speed = world->tells_speed,
		.placement_slowdown = world->placement_slowdown,
		.sharing_slowdown = world->sharing_slowdown,
		.gate_milli = world->gate_milli,
		.split_milli = world->split_milli,
		.preempt = (int)world->preempt,
		.sharing_by = (int)(world->sharing_by - SW_SHARING_BY_PROFILES),
	};
	int r = sw_yaml_decode(root, "a world", file_fields, SW_YAML_COUNT(file_fields), &file, err);
	if (r < 0)
		return r;
	take_plain(&file, world);
	bool predicts = world->sharing_slowdown && world->sharing_by != SW_SHARING_BY_STAGES;
	if (file.learned != NULL && file.learned[0] != '\0' && !predicts)
		return sw_yaml_fail(root, err,
				    "'learned' needs 'sharing_slowdown: true', and 'sharing_by: profiles' or 'slices': it corrects these");
	r = read_parts(&file, world, err);
	return r < 0 ? r : check_stops(root, world, err);
}

static int from_doc(const struct sw_yaml *doc, const char *text, size_t size, struct sw_world **ret_world, struct sw_err *err)
{
	SW_CLEANUP(sw_world_freep) struct sw_world *world = calloc(1, sizeof *world);
	if (world == NULL || (world->about = strdup("")) == NULL || (world->not_modelled = strdup("")) == NULL ||
	    (world->text = strndup(text, size)) == NULL)
		return no_memory(err);
	world->iteration_scale_ppm = PPM;
	world->tells_speed = true;
	world->sharing_by = SW_SHARING_BY_PROFILES;
	int r = read_file(doc, world, err);
	if (r < 0)
		return r;
	*ret_world = SW_TAKE(world);
	return 0;
}

int sw_world_parse(const char *name, const char *text, size_t size, struct sw_world **ret_world, struct sw_err *err)
{
	SW_CLEANUP(sw_yaml_freep) struct sw_yaml *doc = NULL;
	if (size > SW_WORLD_TEXT_MAX)
		return sw_err_set(err, SW_ELIMIT, "world '%.100s' is larger than %u KiB", name, SW_WORLD_TEXT_MAX >> 10);
	int r = sw_yaml_parse("world", name, text, size, &doc, err);
	return r < 0 ? r : from_doc(doc, text, size, ret_world, err);
}

/* The built-in names, in ascending order; returns how many. */
static size_t list_builtin(char names[MAX_WORLDS][64])
{
	size_t count = 0;
	const char *path;
	for (size_t i = 0; (path = sw_embedded_name(i)) != NULL && count < MAX_WORLDS; i++) {
		int length = 0;
		if (sscanf(path, "worlds/%63[^./].yaml%n", names[count], &length) == 1 && length > 0 && path[length] == '\0')
			count++;
	}
	return count;
}

void sw_world_names(char *buffer, size_t size)
{
	char names[MAX_WORLDS][64];
	size_t count = list_builtin(names), used = 0;
	if (size > 0)
		buffer[0] = '\0';
	for (size_t i = 0; i < count && used < size; i++)
		used += (size_t)snprintf(buffer + used, size - used, "%s%s", i > 0 ? ", " : "", names[i]);
}

static int refuse_name(const char *name, struct sw_err *err)
{
	char names[MAX_WORLDS][64], all[200];
	const char *list[MAX_WORLDS];
	size_t count = list_builtin(names);
	for (size_t i = 0; i < count; i++)
		list[i] = names[i];
	const char *near = sw_suggest(name, list, count, sizeof *list);
	sw_world_names(all, sizeof all);
	sw_err_set(err, SW_ENOTFOUND, "there is no world '%.100s'", name);
	if (near != NULL)
		sw_err_detail(err, "did you mean '%s'?", near);
	sw_err_hint(err, "Worlds: %s; or the path of a file of your own, ending in .yaml", all);
	return SW_ENOTFOUND;
}

static bool looks_like_path(const char *name)
{
	const char *dot = strrchr(name, '.');
	return strchr(name, '/') != NULL || strcmp(name, "-") == 0 ||
	       (dot != NULL && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0));
}

int sw_world_load(const char *name_or_path, struct sw_world **ret_world, struct sw_err *err)
{
	const char *text = NULL;
	size_t size = 0;
	if (find_builtin(name_or_path, &text, &size) == 0)
		return sw_world_parse(name_or_path, text, size, ret_world, err);
	if (!looks_like_path(name_or_path))
		return refuse_name(name_or_path, err);
	SW_CLEANUP(sw_freep) char *own = NULL;
	int r = sw_file_read(name_or_path, SW_WORLD_TEXT_MAX, &own, &size, err);
	return r < 0 ? sw_err_set(err, r, "cannot read world '%.200s'", name_or_path)
		     : sw_world_parse(name_or_path, own, size, ret_world, err);
}

void sw_world_free(struct sw_world *world)
{
	if (world == NULL)
		return;
	drop_overheads(world);
	sw_gpu_rules_release(&world->gpu_types);
	free(world->text);
	free(world->name);
	free(world->about);
	free(world->learned);
	free(world->not_modelled);
	free(world);
}

int64_t sw_transfer_ns(const struct sw_transfer_cost *cost, uint64_t bytes)
{
	unsigned __int128 ns = (unsigned __int128)cost->fixed_ns;
	if (cost->bytes_per_s > 0)
		ns += ((unsigned __int128)bytes * SW_NS_PER_S + cost->bytes_per_s - 1) / cost->bytes_per_s;
	return ns < TEN_YEARS_NS ? (int64_t)ns : TEN_YEARS_NS;
}

int sw_world_record(struct sw_world *world, struct sw_err *err)
{
	world->recorded = true;
	world->start_ns = world->switch_ns = 0;
	world->node_mtbf_ns = world->node_repair_ns = 0;
	world->nodes_switch = false; /* they came and went as they did */
	world->boot_ns = 0;
	world->job_failure_ppm = 0;
	return replace_text(&world->not_modelled,
			    "another place or other neighbours than a job really had\n"
			    "other jobs, or other times of submits, under another policy\n"
			    "jobs that never ran, in the queue; limits of arrays; changes of policy, world or GPUs\n"
			    "cancels by people, moves and memory limits by hand: the jobs run for as long as they really did\n"
			    "what the journal's events do not tell any more\n",
			    err);
}

/* Of a large job: one whose state fills a GPU. */
static sw_ns preemption_cost(const struct sw_world *world)
{
	const uint64_t bytes = UINT64_C(80) << 30;
	switch (world->preempt) {
	case SW_PREEMPT_SUSPEND:
	case SW_PREEMPT_IN_PLACE:
		return sw_transfer_ns(&world->suspend, bytes) + sw_transfer_ns(&world->resume, bytes);
	case SW_PREEMPT_RESTART:
		return world->restart_ns;
	default:
		return 0;
	}
}

struct sw_terms sw_world_terms(const struct sw_world *world)
{
	return (struct sw_terms){
		.quantum_ns = world->quantum_ns,
		.preemption_cost_ns = preemption_cost(world),
		.keeps_state = world->preempt == SW_PREEMPT_FREE || world->preempt == SW_PREEMPT_SUSPEND,
		.replace_is_free = world->replace_is_free,
		.nodes_switch = world->nodes_switch,
		.may_grow = world->nodes_join,
		.tells_speed = world->tells_speed,
		.exact_ties = world->event_overhead,
		.moves = (uint8_t)world->moves,
		.guaranteed_stop = (uint8_t)world->guaranteed_stop,
		.opportunistic_stop = (uint8_t)world->opportunistic_stop,
		.sharing = (uint8_t)(world->sharing_slowdown ? world->sharing_by : SW_SHARING_NONE),
		.gate_milli = world->gate_milli,
		.placement = world->placement_slowdown,
		.split_milli = world->split_milli,
	};
}

struct sw_crowd_rule sw_terms_crowd_rule(const struct sw_terms *terms)
{
	struct sw_crowd_rule rule = {.model = sw_predict_default,
				     .among = terms->sharing == SW_SHARING_BY_SLICES ? SW_WAY_SLICES : SW_WAY_MPS,
				     .gated = terms->gate_milli > 0};
	if (rule.gated)
		rule.model.gate_cost_milli = (uint32_t)(terms->gate_milli - 1000);
	return rule;
}

int64_t sw_world_solve_ns(const struct sw_world *world, uint32_t iterations)
{
	__int128 ns = world->solve_start_ns + (__int128)world->solve_iteration_ns * iterations;
	return ns < 1 ? 1 : ns < TEN_YEARS_NS ? (int64_t)ns : TEN_YEARS_NS;
}

int64_t sw_world_event_overhead_ns(const struct sw_world *world, const char *model, uint32_t gpus)
{
	for (size_t i = 0; i < world->overheads.count; i++) {
		const struct sw_event_overhead *overhead = &world->overheads.items[i];
		if (overhead->gpus == gpus && strcmp(overhead->model, model) == 0)
			return overhead->ns;
	}
	return world->overhead_default_ns;
}

int sw_world_work_ns(const struct sw_world *world, int64_t iterations, int64_t iteration_ns, int64_t *ret_ns)
{
	if (iterations < 0 || iteration_ns < 0)
		return SW_EINPUT;
	/* Two factors of 63 bits, then one of 30: the first product must leave room for the
	 * second. */
	unsigned __int128 unscaled = (unsigned __int128)iterations * (unsigned __int128)iteration_ns;
	if (unscaled > INT64_MAX)
		return SW_ELIMIT;
	unsigned __int128 ns = (unscaled * (unsigned __int128)world->iteration_scale_ppm + PPM / 2) / PPM;
	if (ns >= INT64_MAX)
		return SW_ELIMIT;
	*ret_ns = (int64_t)ns;
	return 0;
}
