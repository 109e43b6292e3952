#include "agent/sampler.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "agent/cgroup.h"
#include "agent/fitness.h"
#include "agent/folder.h"
#include "agent/lodgers.h"
#include "agent/own_gpus.h"
#include "agent/processes.h"
#include "api/json.h"
#include "api/sync.h"
#include "base/cleanup.h"
#include "base/now.h"
#include "base/number.h"
#include "base/text.h"
#include "base/vec.h"
#include "gpu/gpu.h"
#include "share/node.h"
#include "share/outside.h"
#include "share/page.h"
#include "share/terms.h"

enum { STOP_TRIES = 20 };
/* Runs that share a GPU are coordinated by what is seen, so often at least. */
enum { SHARED_MS = 1000 };

/* A run that lives, and what its processes used when they were looked at last. */
struct watched {
	struct sw_run_id id;
	pid_t supervisor;
	uint64_t cpu_ticks;
	int64_t at_ns;
	bool seen;
	char name[SW_FOLDER_NAME_MAX]; /* of its folder */
	struct sw_own_gpus own;
	uint32_t outside[SW_PAGE_GPUS]; /* memory of sw_outside_steady() */
	uint64_t listed;		/* GPUs on which processes of it are listed, at this look */
	uint64_t astray, astray_before; /* of these, the ones that are none of its own, at this look and the one before */
	uint64_t charged[SW_GPUS_MAX];	/* what its page says, where it has one */
	bool has_page;
};

/* A process of a run on a GPU. */
struct lodger {
	struct sw_run_id run;
	uint32_t gpu;
	struct sw_gpu_process process;
};

/* What was seen on a GPU, at this look. */
struct on_gpu {
	char silent[200]; /* why it does not answer; "": it does */
	bool knows_memory;
	uint64_t used_bytes, reserved_bytes;
	struct sw_lodger_view lodgers[SW_GPU_PROCESSES_MAX];
	size_t lodger_count;
};

struct sampler {
	int pipe;
	int runs;     /* folder */
	bool runtime; /* jobs have the GPU runtime */
	struct sw_gpu_source *gpus;
	struct sw_processes processes;
	SW_VEC(struct watched) watched;
	SW_VEC(struct sw_sync_sample) samples;
	SW_VEC(struct lodger) lodgers;
	const struct sw_sampler_options *options;
	char group[4096];  /* with the runs' control groups; "": none */
	uint64_t excluded; /* GPUs, by their place in the list */
	struct on_gpu seen[SW_GPUS_MAX];
	struct sw_fitness fitness;
	struct sw_lodgers known;
	bool told; /* the inventory */
};

/* ---- sending */

static void put(int fd, const void *bytes, size_t size)
{
	const char *at = bytes;
	while (size > 0) {
		ssize_t n = write(fd, at, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0); /* the agent is gone */
		at += n;
		size -= (size_t)n;
	}
}

static void send_sync(struct sampler *sampler, const struct sw_sync *sync)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size;
	if (sw_sync_encode(sync, &text, &size, NULL) < 0)
		return;
	put(sampler->pipe, text, size);
	put(sampler->pipe, "\n", 1);
}

static uint64_t memory_of_machine(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

static uint32_t cpus_of_machine(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set) == 0)
		return (uint32_t)CPU_COUNT(&set);
	long count = sysconf(_SC_NPROCESSORS_ONLN);
	return count > 0 ? (uint32_t)count : 1;
}

static const struct sw_sync_inventory *make_inventory(struct sampler *sampler)
{
	static struct sw_sync_gpu list[SW_GPUS_MAX];
	static struct sw_sync_inventory inventory;
	uint32_t count = sw_gpu_source_count(sampler->gpus);
	for (uint32_t i = 0; i < count; i++) {
		const struct sw_gpu_info *info = sw_gpu_source_info(sampler->gpus, i);
		list[i] = (struct sw_sync_gpu){info->uuid, info->name, info->memory_bytes, info->link_group};
	}
	inventory = (struct sw_sync_inventory){
		.gpus = list,
		.gpu_count = count,
		.cpus = cpus_of_machine(),
		.memory_bytes = memory_of_machine(),
	};
	return &inventory;
}

/* ---- runs */

static void watch(struct sampler *sampler, struct sw_run_id id, pid_t supervisor, int folder)
{
	for (size_t i = 0; i < sampler->watched.count; i++)
		if (sw_run_id_compare(sampler->watched.items[i].id, id) == 0) {
			sampler->watched.items[i].seen = true;
			sw_own_gpus_follow(sampler->gpus, folder, &sampler->watched.items[i].own);
			return;
		}
	struct watched *slot = sampler->watched.count < SW_SYNC_RUNS_MAX ? sw_vec_push(&sampler->watched) : NULL;
	if (slot == NULL)
		return;
	*slot = (struct watched){.id = id, .supervisor = supervisor, .seen = true};
	sw_folder_name(id, slot->name);
	sw_own_gpus_read(sampler->gpus, folder, &slot->own);
	sw_own_gpus_follow(sampler->gpus, folder, &slot->own);
}

/* The supervisors that live, by their pid files. */
static void find_runs(struct sampler *sampler)
{
	for (size_t i = 0; i < sampler->watched.count; i++)
		sampler->watched.items[i].seen = false;
	DIR *stream = fdopendir(openat(sampler->runs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	for (const struct dirent *entry; stream != NULL && (entry = readdir(stream)) != NULL;) {
		struct sw_run_id id;
		int folder;
		if (!sw_folder_parse(entry->d_name, &id) || sw_folder_open(sampler->runs, entry->d_name, &folder, NULL) < 0)
			continue;
		SW_CLEANUP(sw_freep) char *text = NULL;
		size_t size;
		long pid;
		unsigned long long started;
		struct sw_process process;
		if (!sw_folder_has(folder, "exit.json") && sw_folder_read(folder, "pid", &text, &size, NULL) == 0 &&
		    sscanf(text, "%ld %llu", &pid, &started) == 2 && sw_process_read((pid_t)pid, &process) && process.started == started)
			watch(sampler, id, (pid_t)pid, folder);
		close(folder);
	}
	if (stream != NULL)
		closedir(stream);
	size_t kept = 0;
	for (size_t i = 0; i < sampler->watched.count; i++)
		if (sampler->watched.items[i].seen)
			sampler->watched.items[kept++] = sampler->watched.items[i];
	sampler->watched.count = kept;
}

static struct sw_sync_sample *add(struct sampler *sampler, int64_t at_ns)
{
	if (sampler->samples.count >= SW_SYNC_SAMPLES_MAX)
		return NULL;
	struct sw_sync_sample *sample = sw_vec_push(&sampler->samples);
	if (sample != NULL)
		sample->at_ns = at_ns;
	return sample;
}

/* Memory and processors of one run; its processes stay chosen. */
static void sample_run(struct sampler *sampler, struct watched *run, int64_t at_ns)
{
	sw_processes_choose_tree(&sampler->processes, run->supervisor, NULL);
	uint64_t ticks = 0, pages = 0;
	uint32_t count = 0;
	for (size_t i = 0; i < sampler->processes.list.count; i++) {
		const struct sw_process *process = &sampler->processes.list.items[i];
		if (!process->chosen)
			continue;
		ticks += process->cpu_ticks;
		pages += process->rss_pages;
		count++;
	}
	struct sw_sync_sample *sample = add(sampler, at_ns);
	if (sample == NULL)
		return;
	sample->has_run = true;
	sample->run = run->id;
	sample->memory_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	sample->processes = count;
	/* Processes that ended since took their ticks with them: never below zero. */
	int64_t passed_ms = (at_ns - run->at_ns) / SW_NS_PER_MS;
	if (run->at_ns != 0 && passed_ms > 0 && ticks > run->cpu_ticks)
		sample->busy_milli = (uint32_t)((ticks - run->cpu_ticks) * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK) / (uint64_t)passed_ms);
	run->cpu_ticks = ticks;
	run->at_ns = at_ns;
}

/* ---- GPUs */

/* Which run a process belongs to; NULL: none. */
static struct watched *run_of(const struct sampler *sampler, uint32_t pid)
{
	struct sw_process process;
	for (int depth = 0; depth < 100 && pid > 1 && sw_process_read((pid_t)pid, &process); depth++) {
		for (size_t i = 0; i < sampler->watched.count; i++)
			if (sampler->watched.items[i].supervisor == process.parent)
				return &sampler->watched.items[i];
		pid = (uint32_t)process.parent;
	}
	return NULL;
}

/* The sample of a run on a GPU, made if there is none; NULL: there are too many. */
static struct sw_sync_sample *sample_of(struct sampler *sampler, struct sw_run_id run, const char *uuid, int64_t at_ns)
{
	for (size_t i = 0; i < sampler->samples.count; i++) {
		struct sw_sync_sample *sample = &sampler->samples.items[i];
		if (sample->has_run && sample->gpu == uuid && sw_run_id_compare(sample->run, run) == 0)
			return sample;
	}
	struct sw_sync_sample *sample = add(sampler, at_ns);
	if (sample == NULL)
		return NULL;
	sample->has_run = true;
	sample->run = run;
	sample->gpu = uuid;
	return sample;
}

/* A process of a run on a GPU. One that is on a GPU of others only now may be on its way. */
static void add_share(struct sampler *sampler, struct watched *run, const struct sw_gpu_process *process, uint32_t gpu, int64_t at_ns)
{
	uint64_t bit = UINT64_C(1) << gpu;
	struct lodger *lodger = sw_vec_push(&sampler->lodgers);
	if (lodger != NULL)
		*lodger = (struct lodger){run->id, gpu, *process};
	run->listed |= bit;
	if (run->own.count > 0 && !run->own.moving && !sw_own_gpus_has(&run->own, gpu))
		run->astray |= bit;
	struct sw_sync_sample *sample = sample_of(sampler, run->id, sw_gpu_source_info(sampler->gpus, gpu)->uuid, at_ns);
	if (sample == NULL)
		return;
	sample->memory_bytes += process->memory_bytes;
	sample->processes++;
	sample->trespass = (run->astray & run->astray_before & bit) != 0;
}

/* What a process on a GPU is: a run's, a stranger, or one whose number means nothing here. */
static void add_lodger(struct sampler *sampler, const struct sw_gpu_process *process, uint32_t gpu, int64_t at_ns)
{
	struct on_gpu *seen = &sampler->seen[gpu];
	struct sw_lodger_view *lodger = &seen->lodgers[seen->lodger_count++];
	sw_lodgers_look(&sampler->known, process->pid, lodger);
	lodger->memory_bytes = process->memory_bytes;
	lodger->is_light |= process->draws;
	if (lodger->kind == SW_LODGER_HIDDEN)
		return;
	struct watched *run = run_of(sampler, process->pid);
	if (run != NULL || (pid_t)process->pid == getpid() || (pid_t)process->pid == getppid() ||
	    sw_lodger_is_in_group(process->pid, sampler->group))
		lodger->kind = SW_LODGER_OURS;
	if (run != NULL)
		add_share(sampler, run, process, gpu, at_ns);
}

/* How many of its processes use that GPU of its page outside the runtime; those that do so
 * only now may be ending. */
static uint32_t count_outside(const struct sampler *sampler, struct watched *run, uint32_t gpu, struct sw_share_page *page,
			      const char *path)
{
	struct sw_outside outside = {0};
	for (size_t i = 0; i < sampler->lodgers.count; i++) {
		const struct lodger *lodger = &sampler->lodgers.items[i];
		pid_t pid = (pid_t)lodger->process.pid;
		if (lodger->gpu == run->own.places[gpu] && sw_run_id_compare(lodger->run, run->id) == 0 &&
		    sw_outside_is_of(pid, run->supervisor, path))
			sw_outside_add(page, gpu, pid, lodger->process.memory_bytes, &outside);
	}
	return sw_outside_steady(&run->outside[gpu], outside.processes);
}

/* What a run's page says of one of its GPUs. The driver's word on memory counts for
 * more, where there is one. */
static void note_page(struct sw_sync_sample *sample, const struct sw_share_figures *figures, const struct sw_share_gpu *gpu,
		      const struct sw_share_orders *orders)
{
	if (sample->memory_bytes == 0)
		sample->memory_bytes = gpu->charged_bytes;
	if (sample->processes == 0)
		sample->processes = figures->processes;
	sample->limit_bytes = gpu->limit_bytes != SW_PAGE_NO_LIMIT ? gpu->limit_bytes : 0;
	sample->host_bytes = gpu->host_bytes;
	sample->iteration_ns = (uint64_t)figures->iteration_ns;
	sample->runtime = figures->processes > 0;
	sample->suspended = figures->running == 0;
	sample->moving = figures->running + figures->suspended < figures->processes;
	sample->charged_bytes = gpu->charged_bytes;
	sample->fixed_bytes = gpu->fixed_bytes;
	sample->wanted_bytes = gpu->wanted_bytes;
	sample->peak_bytes = gpu->peak_bytes;
	sample->floor_bytes = figures->floor_bytes;
	sample->iterations = figures->iterations;
	sample->launches = figures->launches;
	sample->share_milli = orders->share_milli;
	sample->yields = orders->neighbour_count > 0;
	sample->watched = orders->watched;
}

/* What the GPU runtime knows of a run: its page. */
static void sample_page(struct sampler *sampler, struct watched *run, int64_t at_ns)
{
	char path[64], real[PATH_MAX];
	struct sw_share_figures figures;
	struct sw_share_orders orders;
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = NULL;
	snprintf(path, sizeof path, "/proc/self/fd/%d/%s/gpu", sampler->runs, run->name);
	if (run->own.count == 0 || realpath(path, real) == NULL || sw_share_page_open(real, &page, NULL) < 0)
		return;
	sw_share_page_look(page, &figures);
	sw_share_orders_get(page, &orders);
	run->has_page = true;
	for (uint32_t i = 0; i < run->own.count && i < figures.gpu_count && i < SW_PAGE_GPUS; i++) {
		run->charged[i] = figures.gpus[i].charged_bytes;
		uint32_t outside = count_outside(sampler, run, i, page, real);
		if (figures.processes == 0 && outside == 0)
			continue;
		struct sw_sync_sample *sample =
			run->own.places[i] < sw_gpu_source_count(sampler->gpus)
				? sample_of(sampler, run->id, sw_gpu_source_info(sampler->gpus, run->own.places[i])->uuid, at_ns)
				: NULL;
		if (sample == NULL)
			continue;
		note_page(sample, &figures, &figures.gpus[i], &orders);
		sample->outside = outside;
	}
}

static void sample_gpu(struct sampler *sampler, uint32_t index, int64_t at_ns)
{
	static struct sw_gpu_sample figures;
	struct on_gpu *seen = &sampler->seen[index];
	struct sw_err err = {0};
	seen->silent[0] = '\0';
	seen->knows_memory = false;
	seen->lodger_count = 0;
	if (sw_gpu_source_sample(sampler->gpus, index, &figures, &err) < 0) {
		snprintf(seen->silent, sizeof seen->silent, "%.199s", err.detail[0] != '\0' ? err.detail : "no answer");
		return;
	}
	seen->knows_memory = (figures.known & SW_GPU_KNOWS_MEMORY) != 0;
	seen->used_bytes = figures.memory_used_bytes;
	seen->reserved_bytes = figures.memory_reserved_bytes;
	struct sw_sync_sample *sample = add(sampler, at_ns);
	if (sample != NULL) {
		sample->gpu = sw_gpu_source_info(sampler->gpus, index)->uuid;
		sample->memory_bytes = figures.memory_used_bytes;
		sample->busy_milli = figures.utilisation_milli;
		sample->power_mw = figures.power_mw;
		sample->temperature_c = figures.temperature_c;
		sample->processes = figures.process_total;
	}
	for (uint32_t i = 0; i < figures.process_count; i++)
		add_lodger(sampler, &figures.processes[i], index, at_ns);
}

/* What runs of ours hold on the GPU whose processes the driver does not list, or lists by
 * numbers of another namespace. */
static void add_unseen(const struct sampler *sampler, uint32_t gpu, struct sw_fitness_look *look)
{
	for (size_t i = 0; i < sampler->watched.count; i++) {
		const struct watched *run = &sampler->watched.items[i];
		for (uint32_t g = 0; g < run->own.count; g++) {
			if (run->own.places[g] != gpu || (run->listed >> gpu & 1) != 0)
				continue;
			look->has_unseen = true;
			look->unseen_unknown |= !run->has_page;
			look->unseen_bytes += run->charged[g];
		}
	}
}

/* Which GPUs may be given out. */
static void judge(struct sampler *sampler, int64_t at_ns)
{
	for (uint32_t g = 0; g < sw_gpu_source_count(sampler->gpus); g++) {
		const struct on_gpu *seen = &sampler->seen[g];
		struct sw_fitness_look look = {
			.silent = seen->silent[0] != '\0' ? seen->silent : NULL,
			.excluded = (sampler->excluded >> g & 1) != 0,
			.knows_memory = seen->knows_memory,
			.used_bytes = seen->used_bytes,
			.reserved_bytes = seen->reserved_bytes,
			.lodgers = seen->lodgers,
			.lodger_count = seen->lodger_count,
		};
		add_unseen(sampler, g, &look);
		sw_fitness_note(&sampler->fitness, g, sw_now_boot_ns(), at_ns, &look);
	}
}

/* The host memory that contents of GPUs take, all programs of the machine together. */
static void sample_node(struct sampler *sampler, int64_t at_ns)
{
	uint64_t used, most;
	struct sw_sync_sample *sample = sw_share_node_balance(&used, &most) ? add(sampler, at_ns) : NULL;
	if (sample == NULL)
		return;
	sample->host_bytes = used;
	sample->limit_bytes = most;
}

/* ---- life */

static void look(struct sampler *sampler)
{
	int64_t at_ns = sw_now_real_ns(), began_ns = sw_now_boot_ns();
	sampler->samples.count = 0;
	sampler->lodgers.count = 0;
	find_runs(sampler);
	for (size_t i = 0; i < sampler->watched.count; i++) {
		struct watched *run = &sampler->watched.items[i];
		run->astray_before = run->astray;
		run->astray = run->listed = 0;
		run->has_page = false;
	}
	if (sampler->watched.count > 0 && sw_processes_read(&sampler->processes) == 0)
		for (size_t i = 0; i < sampler->watched.count; i++)
			sample_run(sampler, &sampler->watched.items[i], at_ns);
	for (uint32_t i = 0; i < sw_gpu_source_count(sampler->gpus); i++)
		sample_gpu(sampler, i, at_ns);
	for (size_t i = 0; i < sampler->watched.count; i++)
		sample_page(sampler, &sampler->watched.items[i], at_ns);
	if (sampler->runtime && sw_gpu_source_count(sampler->gpus) > 0)
		sample_node(sampler, at_ns);
	judge(sampler, at_ns);
	struct sw_sync sync = {.node = "-",
			       .instance = "-",
			       .number = 1,
			       .inventory = sampler->told ? NULL : make_inventory(sampler),
			       .samples = sampler->samples.items,
			       .sample_count = sampler->samples.count,
			       .look_ns = sw_now_boot_ns() - began_ns};
	if (!sampler->told) {
		sync.missing = sw_gpu_source_missing(sampler->gpus);
		sync.silent = sw_gpu_source_are_silent(sampler->gpus);
		sync.about = sw_gpu_source_about(sampler->gpus);
	}
	sw_fitness_tell(&sampler->fitness, sampler->gpus, &sync);
	send_sync(sampler, &sync);
	sampler->told = true;
}

static bool any_is_shared(const struct sampler *sampler)
{
	uint32_t users[SW_GPUS_MAX] = {0};
	for (size_t i = 0; i < sampler->watched.count; i++) {
		const struct watched *run = &sampler->watched.items[i];
		for (uint32_t g = 0; g < run->own.count; g++)
			if (run->own.places[g] < SW_GPUS_MAX && users[run->own.places[g]]++ > 0)
				return true;
	}
	return false;
}

/* ---- GPUs that are kept back */

/* The GPU that goes by this number or UUID, or by the beginning of its UUID;
 * the number of GPUs: none. */
static uint32_t find_named(const struct sampler *sampler, const char *name, size_t size)
{
	uint32_t count = sw_gpu_source_count(sampler->gpus);
	char number[16];
	for (uint32_t g = 0; g < count; g++) {
		const struct sw_gpu_info *info = sw_gpu_source_info(sampler->gpus, g);
		snprintf(number, sizeof number, "%u", info->number);
		if ((strlen(number) == size && memcmp(number, name, size) == 0) || (size >= 8 && strncmp(info->uuid, name, size) == 0))
			return g;
	}
	return count;
}

static int exclude(struct sampler *sampler, const char *list, struct sw_err *err)
{
	const char *word;
	size_t size;
	while (list != NULL && sw_text_next(&list, &word, &size)) {
		uint32_t gpu = find_named(sampler, word, size);
		bool is_complete = sw_gpu_source_missing(sampler->gpus) == 0 && !sw_gpu_source_are_silent(sampler->gpus);
		bool must_be_there = sampler->options->exclude_all && is_complete; /* it may be among those that do not answer */
		if (gpu < sw_gpu_source_count(sampler->gpus)) {
			sampler->excluded |= UINT64_C(1) << gpu;
		} else if (size > 0 && must_be_there) {
			sw_err_set(err, SW_EINPUT, "there is no GPU '%.*s' to keep back", (int)(size < 60 ? size : 60), word);
			sw_err_detail(err, "the machine has %u GPUs", sw_gpu_source_count(sampler->gpus));
			sw_err_hint(err, "GPUs go by their numbers or UUIDs, as 'nvidia-smi -L' lists them, with commas between them.");
			return SW_EINPUT;
		}
	}
	return 0;
}

/* The first line. */
static void greet(const struct sampler *sampler, int result, const struct sw_err *err)
{
	struct sw_json json = {0};
	sw_json_object(&json);
	sw_json_key_i64(&json, "result", result);
	sw_json_key_string(&json, "about", result == 0 ? sw_gpu_source_about(sampler->gpus) : "");
	sw_json_key_string(&json, "fact", err->fact);
	sw_json_key_string(&json, "detail", err->detail);
	sw_json_key_string(&json, "hint", err->hint);
	sw_json_end_object(&json);
	size_t size;
	SW_CLEANUP(sw_freep) char *text = sw_json_take(&json, &size);
	if (text == NULL)
		_exit(1);
	put(sampler->pipe, text, size);
	put(sampler->pipe, "\n", 1);
}

static _Noreturn void serve(const struct sw_sampler_options *options, struct sw_sampler_page *page, int pipe, pid_t agent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "sw:sampler");
	if (getppid() != agent)
		_exit(0);
	/* The agent's lock must end with the agent. */
	dup2(pipe, 3);
	pipe = 3;
	close_range(4, UINT_MAX, 0);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	static struct sampler sampler;
	sampler.pipe = pipe;
	sampler.runtime = options->runtime;
	sampler.options = options;
	sampler.fitness.rule = options->strangers;
	sampler.fitness.small_bytes = options->small_bytes;
	if (options->cgroup[0] == '\0' || sw_cgroup_group(options->cgroup, sampler.group, sizeof sampler.group) != 0)
		sampler.group[0] = '\0';
	struct sw_err err = {0};
	char runs[PATH_MAX];
	snprintf(runs, sizeof runs, "%s/runs", options->state);
	sampler.runs = open(runs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = sw_gpu_source_open_with(options->gpus, &(struct sw_gpu_source_care){options->skip, &page->asking}, &sampler.gpus, &err);
	r = r < 0 ? r : exclude(&sampler, options->exclude, &err);
	greet(&sampler, r, &err);
	if (r < 0)
		_exit(1);
	for (;;) {
		look(&sampler);
		bool soon = options->every_ms > SHARED_MS && any_is_shared(&sampler);
		poll(&(struct pollfd){.fd = pipe}, 1, soon ? SHARED_MS : (int)options->every_ms);
	}
}

int sw_sampler_start(const struct sw_sampler_options *options, struct sw_sampler *ret_sampler, struct sw_err *err)
{
	int ends[2] = {-1, -1};
	pid_t agent = getpid();
	void *page = mmap(NULL, sizeof(struct sw_sampler_page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = page != MAP_FAILED && pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
	if (pid == 0) {
		close(ends[0]);
		serve(options, page, ends[1], agent);
	}
	if (pid < 0) {
		sw_err_set(err, SW_EIO, "cannot start looking at GPUs: %s", strerror(errno));
		for (int i = 0; i < 2 && ends[i] >= 0; i++)
			close(ends[i]);
		if (page != MAP_FAILED)
			munmap(page, sizeof(struct sw_sampler_page));
		return SW_EIO;
	}
	close(ends[1]);
	*ret_sampler = (struct sw_sampler){.pipe = ends[0], .pid = pid, .page = page};
	return 0;
}

/* The first line, without its end; false: none came. */
static bool read_line(int pipe, int64_t timeout_ms, char *line, size_t size)
{
	/* Byte by byte: what follows belongs to another user. */
	for (size_t used = 0; used < size; used++) {
		struct pollfd wait = {.fd = pipe, .events = POLLIN};
		if (poll(&wait, 1, (int)timeout_ms) <= 0 || read(pipe, &line[used], 1) != 1)
			return false;
		if (line[used] == '\n') {
			line[used] = '\0';
			return true;
		}
	}
	return false;
}

int sw_sampler_greet(const struct sw_sampler *sampler, int64_t timeout_ms, char about[400], struct sw_err *err)
{
	char line[8192];
	json_int_t result = SW_EIO;
	const char *words = "", *fact = "cannot look at GPUs", *detail = "the driver does not answer", *hint = "";
	json_t *root = read_line(sampler->pipe, timeout_ms, line, sizeof line) ? json_loads(line, 0, NULL) : NULL;
	if (root != NULL)
		(void)json_unpack(root, "{s:I, s:s, s:s, s:s, s:s}", "result", &result, "about", &words, "fact", &fact, "detail", &detail,
				  "hint", &hint);
	snprintf(about, 400, "%s", words);
	if (result < 0) {
		sw_err_set(err, (int)result, "%s", fact);
		sw_err_detail(err, "%s", detail);
		sw_err_hint(err, "%s", hint);
	}
	json_decref(root);
	return (int)result;
}

pid_t sw_sampler_stop(struct sw_sampler *sampler)
{
	if (sampler->pid <= 0)
		return 0;
	pid_t pid = sampler->pid;
	close(sampler->pipe);
	kill(pid, SIGKILL);
	munmap(sampler->page, sizeof *sampler->page);
	sampler->pid = 0;
	/* One that hangs in its driver cannot be waited for; any other takes a moment to go. */
	for (int tries = 0; tries < STOP_TRIES; tries++) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return 0;
		nanosleep(&(struct timespec){.tv_nsec = SW_NS_PER_MS}, NULL);
	}
	return pid;
}
