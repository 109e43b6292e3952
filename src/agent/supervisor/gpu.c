/* The GPU runtime of a run: its page, and memory that leaves the GPUs while it is suspended.
 *
 * Invariants:
 *  1. the runtime is never the reason why a run fails: what cannot be had is
 *     gone without, and said;
 *  2. the job can spoil its page; it cannot make the supervisor wait longer than LEAVE_NS, in one
 *     piece or in many, nor die;
 *  3. processes are stopped all the same when their memory does not leave: then `detail` says why
 *     the GPUs are not free.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/folder.h"
#include "agent/supervisor/account.h"
#include "agent/supervisor/gpu.h"
#include "agent/supervisor/state.h"
#include "share/host.h"
#include "share/node.h"

#define LEAVE_NS (60 * SW_NS_PER_S)
/* After this trouble it gets no better soon. */
#define HOPELESS_NS (5 * SW_NS_PER_S)
#define RETURN_LOOK_NS (250 * SW_NS_PER_MS)
#define LINK "gpu"
/* For the jobs of an agent that has jobs of many users. They cannot enter the run's folder, nor
 * those of each other's runs when they look which one works. */
#define PLACE "/run/sharewell"
#define PLACE_OF_PAGES PLACE "/gpu"

/* ---- the page */

/* Of a job with a limit of its own not more than that again, since it is raised by as much. */
static uint64_t host_budget(const struct sw_run_spec *spec)
{
	uint64_t bytes = sw_share_host_budget();
	return spec->memory_bytes > 0 && spec->memory_bytes < bytes ? spec->memory_bytes : bytes;
}

static uint64_t limit_of(const struct sw_run_spec *spec)
{
	return spec->gpu_memory_bytes > 0 ? spec->gpu_memory_bytes : SW_PAGE_NO_LIMIT;
}

/* Whatever the umask is. What is there stays as it is. */
static void make_folder(const char *path, mode_t mode)
{
	if (mkdir(path, mode) == 0)
		(void)chmod(path, mode);
}

static int fail(struct sw_err *err, const char *path)
{
	sw_err_set(err, SW_EIO, "cannot use '%.200s'", path);
	sw_err_detail(err, "%s", strerror(errno));
	return SW_EIO;
}

/* Where the page goes: into the run's folder, or behind a link in it. */
static int choose_place(struct sw_supervisor *supervisor, struct sw_err *err)
{
	char *path = supervisor->gpu.path;
	char here[PATH_MAX - sizeof "/" LINK];
	if (geteuid() == 0) {
		make_folder(PLACE, 0755);
		make_folder(PLACE_OF_PAGES, 0711);
	}
	/* Root's own can do without that place. */
	if (geteuid() != 0 || (supervisor->spec->uid == 0 && access(PLACE_OF_PAGES, W_OK | X_OK) != 0)) {
		if (getcwd(here, sizeof here) == NULL)
			return fail(err, ".");
		snprintf(path, sizeof supervisor->gpu.path, "%s/" LINK, here);
		return 0;
	}
	/* It cannot be guessed. */
	snprintf(path, sizeof supervisor->gpu.path, PLACE_OF_PAGES "/%s", supervisor->token);
	return symlinkat(path, supervisor->folder, LINK) != 0 ? fail(err, LINK) : 0;
}

static int make_page(struct sw_supervisor *supervisor, struct sw_err *err)
{
	const struct sw_texts *gpus = &supervisor->order->want.gpus;
	const struct sw_run_spec *spec = supervisor->spec;
	struct sw_supervisor_gpu *gpu = &supervisor->gpu;
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = NULL;
	int r = choose_place(supervisor, err);
	r = r < 0 ? r : sw_share_page_new(gpu->path, gpus->items, gpus->count, &page, err);
	if (r < 0)
		return r;
	sw_share_node_join(page, spec->uid, spec->gid);
	gpu->host_bytes = host_budget(spec);
	sw_share_page_host_budget(page, gpu->host_bytes);
	gpu->limit_bytes = limit_of(spec);
	for (uint32_t i = 0; i < gpus->count; i++)
		sw_share_page_limit(page, i, gpu->limit_bytes);
	/* From here on the job can write it. */
	if (spec->uid != geteuid() && chown(gpu->path, spec->uid, spec->gid) != 0)
		return fail(err, gpu->path);
	r = geteuid() == 0 ? sw_share_page_new_told(gpu->path, spec->uid, spec->gid, err) : 0;
	r = r < 0 ? r : sw_share_page_open(gpu->path, &gpu->page, err);
	if (r == 0)
		(void)sw_share_page_keep(gpu->page);
	supervisor->account.run.movable = r == 0;
	return r;
}

void sw_supervisor_gpu_open(struct sw_supervisor *supervisor)
{
	const struct sw_run_order *order = supervisor->order;
	supervisor->gpu.look_at_ns = SW_NEVER;
	if (order->gpu_library == NULL || supervisor->spec->bare_gpu || order->want.gpus.count == 0)
		return;
	struct sw_err err = {0};
	if (make_page(supervisor, &err) == 0)
		return;
	char note[sizeof supervisor->note];
	snprintf(note, sizeof note, "it runs without the GPU runtime: %.150s%s%.80s", err.fact, err.detail[0] != '\0' ? ": " : "",
		 err.detail);
	sw_supervisor_add_note(supervisor, note);
	sw_supervisor_gpu_remove(supervisor->folder);
}

void sw_supervisor_gpu_remove(int folder)
{
	char path[sizeof PLACE_OF_PAGES + 64], told[PATH_MAX];
	ssize_t size = readlinkat(folder, LINK, path, sizeof path - 1);
	if (size > 0) {
		path[size] = '\0';
		if (strncmp(path, PLACE_OF_PAGES "/", strlen(PLACE_OF_PAGES "/")) == 0) {
			unlink(path);
			if (sw_share_page_told(path, told))
				unlink(told);
		}
	}
	unlinkat(folder, LINK, 0);
	unlinkat(folder, LINK SW_PAGE_TOLD, 0);
}

void sw_supervisor_gpu_close(struct sw_supervisor *supervisor)
{
	struct sw_supervisor_gpu *gpu = &supervisor->gpu;
	if (gpu->page == NULL)
		return;
	/* What watches it shall see that no process is left. */
	struct sw_share_figures figures;
	sw_share_page_look(gpu->page, &figures);
	sw_share_page_close(gpu->page);
	gpu->page = NULL;
	sw_supervisor_gpu_remove(supervisor->folder);
}

/* ---- moves */

void sw_supervisor_gpu_say(struct sw_supervisor *supervisor, const char *detail)
{
	struct sw_supervisor_gpu *gpu = &supervisor->gpu;
	struct sw_sync_run *run = &supervisor->account.run;
	if (strcmp(gpu->detail, detail) == 0)
		return;
	snprintf(gpu->detail, sizeof gpu->detail, "%s", detail);
	/* How it ends, if that is being told, is more important. */
	if (run->detail == NULL || run->detail == gpu->detail)
		run->detail = gpu->detail[0] != '\0' ? gpu->detail : NULL;
}

static void state_wish(struct sw_supervisor *supervisor, enum sw_gpu_wish wish, int64_t now_ns)
{
	struct sw_supervisor_gpu *gpu = &supervisor->gpu;
	if (gpu->page == NULL)
		return;
	/* Turns may be shorter than the time that it is waited for. A process that does
	 * not leave in many of them would else keep its GPUs for ever, and the other
	 * one never had its turn. */
	if (gpu->wish == SW_GPU_WISH_AWAY)
		gpu->waited_ns += now_ns - gpu->asked_at_ns;
	gpu->asked_at_ns = now_ns;
	gpu->wish = wish;
	supervisor->account.run.held = false;
	sw_share_page_hurry(gpu->page, false);
	gpu->number = sw_share_page_want(gpu->page, wish == SW_GPU_WISH_AWAY ? SW_PAGE_SUSPEND : SW_PAGE_RUN);
	gpu->until_ns = wish == SW_GPU_WISH_AWAY ? now_ns + LEAVE_NS - gpu->waited_ns : SW_NEVER;
	gpu->look_at_ns = wish == SW_GPU_WISH_AWAY ? SW_NEVER : now_ns + RETURN_LOOK_NS;
	sw_supervisor_gpu_say(supervisor, "");
}

void sw_supervisor_gpu_leave(struct sw_supervisor *supervisor, int64_t now_ns)
{
	state_wish(supervisor, SW_GPU_WISH_AWAY, now_ns);
}

void sw_supervisor_gpu_return(struct sw_supervisor *supervisor, int64_t now_ns)
{
	state_wish(supervisor, SW_GPU_WISH_BACK, now_ns);
}

static void note_move(struct sw_supervisor *supervisor, const struct sw_share_figures *figures)
{
	struct sw_supervisor_gpu *gpu = &supervisor->gpu;
	snprintf(gpu->moved, sizeof gpu->moved, "%.2f GiB moved %s its GPUs in %lld ms", (double)figures->moved_bytes / (1 << 30),
		 gpu->wish == SW_GPU_WISH_AWAY ? "out of" : "back to", (long long)(figures->move_ns / SW_NS_PER_MS));
	supervisor->account.gpu = figures->processes > 0 ? gpu->moved : NULL;
}

bool sw_supervisor_gpu_has_left(struct sw_supervisor *supervisor, int64_t now_ns)
{
	struct sw_supervisor_gpu *gpu = &supervisor->gpu;
	if (gpu->page == NULL || gpu->wish != SW_GPU_WISH_AWAY)
		return true;
	bool spoilt = !sw_share_page_refresh(gpu->page);
	bool met = sw_share_page_is_met(gpu->page, gpu->number);
	struct sw_share_figures figures;
	sw_share_page_look(gpu->page, &figures);
	bool hopeless = figures.trouble == SW_PAGE_NO_HOST_MEMORY || figures.trouble == SW_PAGE_DRIVER_ERROR;
	if (hopeless && gpu->until_ns > now_ns + HOPELESS_NS)
		gpu->until_ns = now_ns + HOPELESS_NS;
	/* Stopped, it would keep from others what it does not need. */
	bool gone = met && figures.giving == 0;
	if (!gone && !spoilt && now_ns < gpu->until_ns)
		return false;
	char detail[sizeof gpu->detail] = "";
	if (!met)
		snprintf(detail, sizeof detail, "it stands still, but its GPU memory is still held: %s",
			 spoilt				   ? "it has spoilt its GPU page"
			 : figures.trouble != SW_PAGE_FINE ? sw_share_trouble(figures.trouble)
							   : "one of its processes did not answer");
	else
		note_move(supervisor, &figures);
	sw_supervisor_gpu_say(supervisor, detail);
	supervisor->account.run.held = !met;
	gpu->wish = SW_GPU_WISH_NONE;
	gpu->waited_ns = 0;
	return true;
}

/* Coming back may take as long as others hold the GPUs. */
void sw_supervisor_gpu_tick(struct sw_supervisor *supervisor, int64_t now_ns)
{
	struct sw_supervisor_gpu *gpu = &supervisor->gpu;
	if (gpu->page == NULL || now_ns < gpu->look_at_ns)
		return;
	gpu->look_at_ns = SW_NEVER;
	if (gpu->wish != SW_GPU_WISH_BACK)
		return;
	bool met = sw_share_page_is_met(gpu->page, gpu->number);
	struct sw_share_figures figures;
	sw_share_page_look(gpu->page, &figures);
	if (met) {
		note_move(supervisor, &figures);
		gpu->wish = SW_GPU_WISH_NONE;
	} else {
		gpu->look_at_ns = now_ns + RETURN_LOOK_NS;
	}
	char detail[sizeof gpu->detail] = "", before[sizeof gpu->detail];
	snprintf(before, sizeof before, "%s", gpu->detail);
	if (!met && figures.trouble != SW_PAGE_FINE)
		snprintf(detail, sizeof detail, "its memory is not back on the GPU yet: %s", sw_share_trouble(figures.trouble));
	sw_supervisor_gpu_say(supervisor, detail);
	if (met || strcmp(before, gpu->detail) != 0)
		sw_supervisor_enter(supervisor, supervisor->account.run.state);
}

/* ---- terms */

/* Where another run tells when it works; false: nowhere, or nowhere that a page can name. One
 * that version 0.1 started has it in its page, and so have all runs of one user's agent. */
static bool find_told_of(const char *name, char path[SW_PAGE_PATH])
{
	char here[PATH_MAX], link[PATH_MAX + SW_FOLDER_NAME_MAX + 8], told[PATH_MAX];
	struct sw_run_id id;
	if (!sw_folder_parse(name, &id) || getcwd(here, sizeof here) == NULL)
		return false;
	*strrchr(here, '/') = '\0';
	snprintf(link, sizeof link, "%s/%s/" LINK, here, name);
	ssize_t size = readlink(link, path, SW_PAGE_PATH - 1);
	if (size > 0)
		path[size] = '\0';
	else
		size = snprintf(path, SW_PAGE_PATH, "%s", link);
	if (size >= (ssize_t)SW_PAGE_PATH - (ssize_t)sizeof SW_PAGE_TOLD || access(path, F_OK) != 0)
		return false;
	if (sw_share_page_told(path, told) && access(told, F_OK) == 0)
		memcpy(path, told, strlen(told) + 1);
	return true;
}

static void give_way(struct sw_share_page *page, const char *names)
{
	char paths[SW_PAGE_NEIGHBOURS][SW_PAGE_PATH];
	const char *list[SW_PAGE_NEIGHBOURS];
	size_t count = 0;
	while (count < SW_PAGE_NEIGHBOURS) {
		char name[SW_FOLDER_NAME_MAX];
		int used = 0;
		if (sscanf(names, " %39s%n", name, &used) != 1)
			break;
		names += used;
		list[count] = paths[count];
		count += find_told_of(name, paths[count]);
	}
	sw_share_page_yield(page, list, count);
}

void sw_supervisor_gpu_terms(struct sw_supervisor *supervisor, const char *words)
{
	struct sw_share_page *page = supervisor->gpu.page;
	unsigned long long limit;
	unsigned share, watched;
	int used = 0;
	if (page == NULL || sscanf(words, "%llu %u %u%n", &limit, &share, &watched, &used) != 3)
		return;
	if (limit == 0)
		limit = limit_of(supervisor->spec);
	/* Memory that is taken from one is wanted by another now. */
	sw_share_page_hurry(page, limit < supervisor->gpu.limit_bytes);
	supervisor->gpu.limit_bytes = limit;
	for (uint32_t i = 0; i < supervisor->order->want.gpus.count; i++)
		sw_share_page_limit(page, i, limit);
	sw_share_page_share(page, share < 1000 || share == SW_PAGE_NO_SHARE ? share : 0);
	/* Jobs that give way look there, and may be others'. They must know its name,
	 * which cannot be guessed. */
	char told[PATH_MAX];
	if (geteuid() == 0 && sw_share_page_told(supervisor->gpu.path, told))
		(void)chmod(told, watched != 0 ? 0644 : 0600);
	sw_share_page_watch(page, watched != 0);
	give_way(page, words + used);
}
