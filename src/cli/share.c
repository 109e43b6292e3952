/* sharewell share: a program under the GPU runtime, on a machine that needs no cluster.
 *
 * The page of each such program lies in a folder of the user's own, under the share's name; --list, --suspend, --resume and --limit find it there. The file goes
 * when the program ends; one that was left behind is removed by whoever lists next.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/live.h"
#include "cli/message.h"
#include "cli/places.h"
#include "gpu/gpu.h"
#include "share/page.h"
#include "share/preload.h"

#define WISH_NS INT64_C(60000000000)

struct values {
	struct sw_cli_texts words;
	const char *memory, *host_memory, *name;
	const char *suspend, *resume, *limit;
	bool list, json;
};

/* ---- names and places */

static int find_folder(char folder[PATH_MAX], struct sw_err *err)
{
	struct sw_cli_places places;
	int r = sw_cli_places(NULL, false, &places, err);
	r = r < 0 ? r : sw_cli_places_make(&places, false, err);
	if (r < 0)
		return r;
	if (snprintf(folder, PATH_MAX, "%s/shares", places.state) >= PATH_MAX)
		return sw_err_set(err, SW_ELIMIT, "the path of the state folder is too long");
	if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
		sw_err_set(err, SW_EIO, "cannot make folder '%s'", folder);
		sw_err_detail(err, "%s", strerror(errno));
		return SW_EIO;
	}
	return 0;
}

static int find_page(const char *name, char path[PATH_MAX], struct sw_err *err)
{
	char folder[PATH_MAX];
	size_t length = strlen(name);
	if (length == 0 || length > 64 || strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != length ||
	    name[0] == '.') {
		sw_err_set(err, SW_EINPUT, "'%.70s' cannot be the name of a share", name);
		sw_err_hint(err, "Up to 64 letters, digits, dots, dashes and underscores; a dot not first.");
		return SW_EINPUT;
	}
	int r = find_folder(folder, err);
	if (r < 0)
		return r;
	return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX ? 0
									  : sw_err_set(err, SW_ELIMIT, "the name of the share is too long");
}

/* Whoever makes or removes pages holds this lock: a page that its program does not hold yet would be taken for one that was left behind. */
static int lock_folder(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		flock(fd, LOCK_EX);
	return fd;
}

static void unlock_folder(int fd)
{
	if (fd >= 0)
		close(fd);
}

static int open_share(const char *name, struct sw_share_page **ret_page, struct sw_err *err)
{
	char path[PATH_MAX];
	int r = find_page(name, path, err);
	if (r < 0)
		return r;
	if (access(path, F_OK) != 0) {
		sw_err_set(err, SW_ENOTFOUND, "there is no share '%s'", name);
		sw_err_hint(err, "'sharewell share --list' shows those that there are.");
		return SW_ENOTFOUND;
	}
	return sw_share_page_open(path, ret_page, err);
}

static int parse_size(const char *option, const char *text, uint64_t *ret_bytes, struct sw_err *err)
{
	if (sw_parse_bytes(text, strlen(text), ret_bytes) == 0 && *ret_bytes > 0)
		return 0;
	sw_err_set(err, SW_EINPUT, "'%.60s' is not a size for --%s", text, option);
	sw_err_hint(err, "Write it as 20G or 1500M.");
	return SW_EINPUT;
}

/* ---- wishes */

static int state_wish(const char *name, enum sw_page_want want, struct sw_err *err)
{
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = NULL;
	int r = open_share(name, &page, err);
	if (r < 0)
		return r;
	bool met = sw_share_page_wait(page, sw_share_page_want(page, want), WISH_NS);
	struct sw_share_figures figures;
	sw_share_page_look(page, &figures);
	if (met && figures.processes == 0)
		printf("%s has no process on a GPU now; it will %s\n", name,
		       want == SW_PAGE_SUSPEND ? "wait before its first work" : "run");
	else if (met)
		printf("%s %s: %.2f GiB in %.0f ms\n", name, want == SW_PAGE_SUSPEND ? "suspended" : "runs again",
		       (double)figures.moved_bytes / (1 << 30), (double)figures.move_ns / 1e6);
	if (met)
		return 0;
	sw_err_set(err, SW_EIO, "%s did not %s within %d s", name, want == SW_PAGE_SUSPEND ? "suspend" : "resume",
		   (int)(WISH_NS / 1000000000));
	sw_err_detail(err, "%s", sw_share_trouble(figures.trouble));
	return SW_EIO;
}

static int state_limit(const struct values *values, struct sw_err *err)
{
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = NULL;
	uint64_t bytes = SW_PAGE_NO_LIMIT;
	if (values->memory == NULL)
		return sw_err_set(err, SW_EINPUT, "--limit needs --memory");
	int r = strcmp(values->memory, "none") == 0 ? 0 : parse_size("memory", values->memory, &bytes, err);
	r = r < 0 ? r : open_share(values->limit, &page, err);
	if (r < 0)
		return r;
	struct sw_share_figures figures;
	sw_share_page_look(page, &figures);
	uint32_t wish = 0;
	for (uint32_t i = 0; i < figures.gpu_count; i++)
		wish = sw_share_page_limit(page, i, bytes);
	bool met = sw_share_page_wait(page, wish, WISH_NS);
	sw_share_page_look(page, &figures);
	if (met) {
		uint64_t charged = 0, host = 0;
		for (uint32_t i = 0; i < figures.gpu_count; i++) {
			charged += figures.gpus[i].charged_bytes;
			host += figures.gpus[i].host_bytes;
		}
		printf("%s: %.2f GiB on its GPUs, %.2f GiB in host memory\n", values->limit, (double)charged / (1 << 30),
		       (double)host / (1 << 30));
		return 0;
	}
	sw_err_set(err, SW_EIO, "%s is not under its new limit", values->limit);
	sw_err_detail(err, "%s", sw_share_trouble(figures.trouble));
	return SW_EIO;
}

/* ---- the list */

static void add_to_list(json_t *list, const char *name, const struct sw_share_figures *figures)
{
	json_t *gpus = json_array();
	for (uint32_t i = 0; i < figures->gpu_count; i++) {
		const struct sw_share_gpu *gpu = &figures->gpus[i];
		json_array_append_new(
			gpus, json_pack("{s:o, s:I, s:I, s:I, s:I}", "limit_bytes",
					gpu->limit_bytes == SW_PAGE_NO_LIMIT ? json_null() : json_integer((json_int_t)gpu->limit_bytes),
					"used_bytes", (json_int_t)gpu->charged_bytes, "fixed_bytes", (json_int_t)gpu->fixed_bytes,
					"host_bytes", (json_int_t)gpu->host_bytes, "peak_bytes", (json_int_t)gpu->peak_bytes));
	}
	const char *state = figures->processes > 0 && figures->suspended == figures->processes ? "suspended"
			    : figures->wants_suspend					       ? "suspending"
											       : "running";
	json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:o}", "name", name, "state", state, "processes",
					      (json_int_t)figures->processes, "launches", (json_int_t)figures->launches, "iterations",
					      (json_int_t)figures->iterations, "iteration_ns", (json_int_t)figures->iteration_ns,
					      "iteration_jitter_ns", (json_int_t)figures->iteration_jitter_ns, "trouble",
					      sw_share_trouble(figures->trouble), "gpus", gpus));
}

/* Whether the program of this share is still there: it holds a lock on the first byte. */
static bool is_alive(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	int fd = open(path, O_RDWR | O_CLOEXEC);
	bool alive = fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	if (fd >= 0)
		close(fd);
	return alive;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int collect(json_t *list, struct sw_err *err)
{
	char folder[PATH_MAX], path[PATH_MAX + NAME_MAX + 2];
	struct dirent **names = NULL;
	int r = find_folder(folder, err);
	if (r < 0)
		return r;
	int lock = lock_folder(folder), count = scandir(folder, &names, NULL, by_name);
	for (int i = 0; i < count; i++) {
		SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = NULL;
		struct sw_share_figures figures;
		snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
		if (names[i]->d_name[0] != '.' && !is_alive(path))
			unlink(path);
		else if (names[i]->d_name[0] != '.' && sw_share_page_open(path, &page, NULL) == 0) {
			sw_share_page_look(page, &figures);
			add_to_list(list, names[i]->d_name, &figures);
		}
		free(names[i]);
	}
	free(names);
	unlock_folder(lock);
	return 0;
}

static int print_list(bool as_json, struct sw_err *err)
{
	SW_JSON *list = json_array();
	int r = collect(list, err);
	if (r < 0)
		return r;
	if (as_json)
		return sw_cli_print_json(list, err);
	printf("%-20s %-10s %5s %10s %10s %10s %10s\n", "NAME", "STATE", "PROCS", "GPU_GIB", "LIMIT_GIB", "HOST_GIB", "STEP_MS");
	size_t index;
	json_t *share;
	json_array_foreach(list, index, share)
	{
		json_t *gpu, *gpus = json_object_get(share, "gpus");
		size_t g;
		double used = 0, host = 0, limit = 0;
		bool limited = json_array_size(gpus) > 0;
		json_array_foreach(gpus, g, gpu)
		{
			used += (double)sw_cli_number(gpu, "used_bytes", 0);
			host += (double)sw_cli_number(gpu, "host_bytes", 0);
			limit += (double)sw_cli_number(gpu, "limit_bytes", 0);
			limited = limited && json_is_integer(json_object_get(gpu, "limit_bytes"));
		}
		char text[32] = "-", step[32] = "-";
		int64_t iteration_ns = sw_cli_number(share, "iteration_ns", 0);
		if (limited)
			snprintf(text, sizeof text, "%.2f", limit / (1 << 30));
		if (iteration_ns > 0)
			snprintf(step, sizeof step, "%.2f", (double)iteration_ns / 1e6);
		printf("%-20s %-10s %5" PRId64 " %10.2f %10s %10.2f %10s\n", sw_cli_text(share, "name", "?"),
		       sw_cli_text(share, "state", "?"), sw_cli_number(share, "processes", 0), used / (1 << 30), text, host / (1 << 30),
		       step);
	}
	return 0;
}

/* ---- the program */

/* Half of what the machine has to spare: the other half stays for everybody else. */
static uint64_t preset_host_budget(void)
{
	long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 2 : (uint64_t)4 << 30;
}

/* Held for as long as this process lives: it tells that the share does. */
static int hold(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		fcntl(fd, F_OFD_SETLK, &lock);
	return fd;
}

/* `*ret_alive`: the file that says so, or -1. */
static int claim_name(const char *name, const char *path, const char *const *uuids, uint32_t count, struct sw_share_page **ret_page,
		      int *ret_alive, struct sw_err *err)
{
	char folder[PATH_MAX];
	int r = find_folder(folder, err);
	if (r < 0)
		return r;
	int lock = lock_folder(folder);
	if (is_alive(path)) {
		r = sw_err_set(err, SW_EINPUT, "there is a share '%s' already", name);
		sw_err_hint(err, "Give this one another --name.");
	} else {
		unlink(path);
		r = sw_share_page_new(path, uuids, count, ret_page, err);
	}
	if (r == 0)
		*ret_alive = hold(path);
	unlock_folder(lock);
	return r;
}

static int make_page(const struct values *values, const char *name, const char *path, struct sw_share_page **ret_page, int *ret_alive,
		     struct sw_err *err)
{
	SW_CLEANUP(sw_gpus_closep) struct sw_gpus *gpus = NULL;
	const char *uuids[SW_PAGE_GPUS];
	uint64_t memory = SW_PAGE_NO_LIMIT, host = preset_host_budget();
	int r = values->memory == NULL ? 0 : parse_size("memory", values->memory, &memory, err);
	if (r == 0 && values->host_memory != NULL)
		r = parse_size("host-memory", values->host_memory, &host, err);
	r = r < 0 ? r : sw_gpus_open("nvml", &gpus, err);
	if (r < 0)
		return r;
	uint32_t count = sw_gpus_count(gpus) < SW_PAGE_GPUS ? sw_gpus_count(gpus) : SW_PAGE_GPUS;
	for (uint32_t i = 0; i < count; i++)
		uuids[i] = sw_gpus_info(gpus, i)->uuid;
	r = claim_name(name, path, uuids, count, ret_page, ret_alive, err);
	if (r < 0)
		return r;
	sw_share_page_host_budget(*ret_page, host);
	for (uint32_t i = 0; i < count; i++)
		sw_share_page_limit(*ret_page, i, memory);
	return 0;
}

static int set_environment(const char *path, struct sw_err *err)
{
	char library[PATH_MAX], value[2 * PATH_MAX];
	int r = sw_share_find_library(library, sizeof library, err);
	r = r < 0 ? r : sw_share_preload_value(library, getenv("LD_PRELOAD"), value, sizeof value, err);
	if (r < 0)
		return r;
	if (setenv("LD_PRELOAD", value, 1) != 0 || setenv(SW_PAGE_ENV, path, 1) != 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	return 0;
}

static pid_t child;

/* What a terminal sends, it sends to the program as well. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
	(void)context;
	if (child > 0 && info->si_code <= 0)
		kill(child, signal);
}

static int wait_for_child(void)
{
	int status;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* In the child. */
static void become(const struct sw_cli_texts *words)
{
	char **argv = calloc(words->count + 1, sizeof *argv);
	for (size_t i = 0; argv != NULL && i < words->count; i++)
		argv[i] = strdup(words->items[i]);
	if (argv != NULL)
		execvp(words->items[0], argv);
	fprintf(stderr, "sharewell: cannot run '%s': %s\n", words->items[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static int start_child(const struct values *values, struct sw_err *err)
{
	fflush(NULL);
	child = fork();
	if (child == 0)
		become(&values->words);
	return child > 0 ? 0 : sw_err_set(err, SW_EIO, "cannot start another process: %s", strerror(errno));
}

static int run_program(const struct values *values, struct sw_err *err)
{
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = NULL;
	char path[PATH_MAX], own[32];
	int alive = -1;
	snprintf(own, sizeof own, "%d", (int)getpid());
	const char *name = values->name != NULL ? values->name : own;
	int r = find_page(name, path, err);
	r = r < 0 ? r : make_page(values, name, path, &page, &alive, err);
	if (r < 0)
		return r;
	r = set_environment(path, err);
	if (r == 0) {
		const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
		for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
			sigaction(passed[i], &(struct sigaction){.sa_sigaction = pass_on, .sa_flags = SA_RESTART | SA_SIGINFO}, NULL);
		r = start_child(values, err);
	}
	if (r == 0)
		r = wait_for_child();
	unlink(path);
	if (alive >= 0)
		close(alive);
	return r;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	unsigned wishes = (values->suspend != NULL) + (values->resume != NULL) + (values->limit != NULL) + values->list;
	if (wishes > 1 || (wishes == 1 && values->words.count > 0))
		return sw_err_set(err, SW_EINPUT, "one thing at a time: --list, --suspend, --resume, --limit, or a program to run");
	if (values->list)
		return print_list(values->json, err);
	if (values->suspend != NULL)
		return state_wish(values->suspend, SW_PAGE_SUSPEND, err);
	if (values->resume != NULL)
		return state_wish(values->resume, SW_PAGE_RUN, err);
	if (values->limit != NULL)
		return state_limit(values, err);
	if (values->words.count == 0) {
		sw_err_set(err, SW_EINPUT, "no program to run");
		sw_err_hint(err, "As in: sharewell share --memory 20G -- python train.py");
		return SW_EINPUT;
	}
	return run_program(values, err);
}

static const struct sw_cli_option options[] = {
	{"memory", 'm', .kind = SW_CLI_TEXT, .argument = "SIZE",
	 .about = "GPU memory that it may use on each GPU; what is over it goes to host memory", .offset = offsetof(struct values, memory)},
	{"host-memory", .kind = SW_CLI_TEXT, .argument = "SIZE", .about = "host memory that its contents may take (half of what is free)",
	 .offset = offsetof(struct values, host_memory)},
	{"name", .kind = SW_CLI_TEXT, .argument = "NAME", .about = "how to call it later (the number of this process)",
	 .offset = offsetof(struct values, name)},
	{"list", 'l', .about = "show what runs this way", .offset = offsetof(struct values, list)},
	{"suspend", .kind = SW_CLI_TEXT, .argument = "NAME", .about = "stop it and free its GPU memory",
	 .offset = offsetof(struct values, suspend)},
	{"resume", .kind = SW_CLI_TEXT, .argument = "NAME", .about = "bring it back and let it go on",
	 .offset = offsetof(struct values, resume)},
	{"limit", .kind = SW_CLI_TEXT, .argument = "NAME",
	 .about = "give it the limit that --memory says, while it runs ('none' for no limit)", .offset = offsetof(struct values, limit)},
	{"json", .about = "with --list: print JSON", .offset = offsetof(struct values, json)},
};

static const struct sw_cli_option operands[] = {
	{"COMMAND", .kind = SW_CLI_TEXTS, .is_path = true, .about = "the program and its arguments",
	 .offset = offsetof(struct values, words)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell share --memory 20G --name big -- python train.py", "train with at most 20 GiB of each GPU"},
	{"sharewell share --suspend big", "stop it where it is and free its GPU memory; --resume lets it go on"},
	{"sharewell share --limit big --memory 10G", "take half of its GPU memory away while it trains"},
};

const struct sw_cli_command sw_cli_share = {
	.name = "share",
	.about = "run a program so that it can share a GPU; no cluster needed",
	.text = "The program is not changed and need not know: a library is put between it and the CUDA driver. Its GPU memory can be "
		"limited while it runs, "
		"and it can be suspended, which copies its memory to the host and frees the GPU, and resumed, bit for bit, at the same "
		"addresses.\n\n"
		"It is a promise between programs of good will, not a wall: a program that insists can go around it.",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
