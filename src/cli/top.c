/* sharewell top: GPUs and jobs on one screen, drawn again every second. */
#include <curses.h>
#include <inttypes.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/text.h"
#include "cli/connect.h"
#include "cli/interrupt.h"
#include "cli/live.h"

#define EVERY_MS 1000
#define LINES_MAX 5000u
#define SHOWN_JOBS 1000

struct values {
	const char *controller;
	bool once;
};

/* The screen before it is drawn: lines of text. */
struct picture {
	SW_VEC(char *) lines;
	size_t first_job; /* line from which scrolling counts */
};

static void release(struct picture *picture)
{
	for (size_t i = 0; i < picture->lines.count; i++)
		free(picture->lines.items[i]);
	sw_vec_free(&picture->lines);
}

__attribute__((format(printf, 2, 3))) static void add(struct picture *picture, const char *fmt, ...)
{
	char text[512];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	char *clean = picture->lines.count < LINES_MAX ? sw_text_clean(text) : NULL;
	char **slot = clean != NULL ? sw_vec_push(&picture->lines) : NULL;
	if (slot != NULL)
		*slot = clean;
	else
		free(clean);
}

static const char *bar(double share, char buffer[24])
{
	int full = (int)(share * 20 + 0.5);
	full = full < 0 ? 0 : full > 20 ? 20 : full;
	for (int i = 0; i < 20; i++)
		buffer[i] = i < full ? '|' : ' ';
	buffer[20] = '\0';
	return buffer;
}

/* What contents of GPUs take of the node's host memory, and may. */
static const char *host_memory_of(const json_t *node, char text[96])
{
	char used[32], most[32];
	int64_t limit = sw_cli_number(node, "gpu_host_limit_bytes", 0);
	text[0] = '\0';
	if (limit > 0)
		snprintf(text, 96, ", %s of %s of host memory for GPU contents taken",
			 sw_format_bytes((uint64_t)sw_cli_number(node, "gpu_host_bytes", 0), used), sw_format_bytes((uint64_t)limit, most));
	return text;
}

/* The GPU takes no jobs, and why; or which processes use it beside the jobs. */
static void add_shut(struct picture *picture, const json_t *gpu)
{
	char words[300];
	if (sw_cli_device_shut(gpu, words, sizeof words)[0] != '\0')
		add(picture, "     %s", words);
}

static void add_gpu(struct picture *picture, const json_t *gpu)
{
	double used = sw_cli_real(gpu, "memory_used_bytes", 0), all = sw_cli_real(gpu, "memory_bytes", 0);
	char busy_bar[24], filled_bar[24], busy[32], filled[32], power[32], heat[32];
	add(picture, "  %2" PRId64 " %-20.20s util [%s] %4s  mem [%s] %4s  %5s %4s", sw_cli_number(gpu, "index", 0),
	    sw_cli_text(gpu, "name", "GPU"), bar(sw_cli_real(gpu, "busy", 0), busy_bar), sw_cli_device_busy(gpu, busy, sizeof busy),
	    bar(all > 0 ? used / all : 0, filled_bar), sw_cli_device_filled(gpu, filled, sizeof filled),
	    sw_cli_device_power(gpu, power, sizeof power), sw_cli_device_heat(gpu, heat, sizeof heat));
}

static void add_gpus(struct picture *picture, const json_t *nodes)
{
	size_t i, g;
	json_t *node, *gpu;
	json_array_foreach(nodes, i, node)
	{
		char host[96];
		int64_t shut = sw_cli_number(node, "gpus_shut", 0);
		char closed[64] = "";
		if (shut > 0)
			snprintf(closed, sizeof closed, ", %" PRId64 " take%s no jobs", shut, shut == 1 ? "s" : "");
		add(picture, "%s%s: %" PRId64 " of %" PRId64 " GPUs free%s%s", sw_cli_text(node, "name", "?"),
		    json_is_true(json_object_get(node, "unreachable")) ? " (unreachable)"
		    : json_is_true(json_object_get(node, "up"))	       ? ""
								       : " (down)",
		    sw_cli_number(node, "gpus_free", 0), sw_cli_number(node, "gpus", 0), closed, host_memory_of(node, host));
		json_array_foreach(json_object_get(node, "devices"), g, gpu)
		{
			add_gpu(picture, gpu);
			add_shut(picture, gpu);
		}
	}
}

/* "9.5GiB/10.0GiB+1.2GiB": on its GPUs, at most, and in host memory. */
static const char *memory_of(const json_t *job, char text[64])
{
	const json_t *gpu = json_object_get(job, "gpu");
	int64_t limit = sw_cli_number(gpu, "limit_bytes", 0), host = sw_cli_number(gpu, "host_bytes", 0);
	char held[32], may[32], moved[32];
	snprintf(text, 64, "-");
	if (!json_is_object(gpu))
		return text;
	snprintf(text, 64, "%s%s%s%s%s", sw_format_bytes((uint64_t)sw_cli_number(gpu, "memory_bytes", 0), held), limit > 0 ? "/" : "",
		 limit > 0 ? sw_format_bytes((uint64_t)limit, may) : "", host > 0 ? "+" : "",
		 host > 0 ? sw_format_bytes((uint64_t)host, moved) : "");
	char *to = text;
	for (const char *from = text; *from != '\0'; from++)
		if (*from != ' ')
			*to++ = *from;
	*to = '\0';
	return text;
}

static void add_jobs(struct picture *picture, const json_t *jobs)
{
	size_t i;
	json_t *job;
	char time[32], memory[64], iteration[40];
	add(picture, "%8s %-24s %-10s %-3s %10s %4s %-24s %-10s %s", "JOBID", "NAME", "USER", "ST", "TIME", "GPUS", "GPUMEM/LIMIT+HOST",
	    "ITERATION", "NODE(REASON)");
	picture->first_job = picture->lines.count;
	json_array_foreach(jobs, i, job)
	{
		const char *state = sw_cli_text(job, "state", "");
		bool waits = strcmp(state, "PD") == 0 || strcmp(state, "CF") == 0;
		const char *reason = sw_cli_text(job, "reason", "");
		reason = reason[0] != '\0' ? reason : strcmp(state, "CF") == 0 ? "starting" : "Resources";
		add(picture, "%8" PRId64 " %-24.24s %-10.10s %-3s %10s %4" PRId64 " %-24s %-10s %s%s%s", sw_cli_number(job, "id", 0),
		    sw_cli_text(job, "name", "-"), sw_cli_text(job, "user", "-"), sw_cli_text(job, "state", "?"),
		    sw_cli_elapsed((int64_t)sw_cli_real(job, "ran_s", 0), time), sw_cli_number(job, "gpus", 0), memory_of(job, memory),
		    sw_cli_iteration(job, iteration, sizeof iteration)[0] != '\0' ? iteration : "-", waits ? "(" : "",
		    waits ? reason : sw_cli_text(job, "node", ""), waits ? ")" : "");
	}
}

static int paint(struct sw_client *client, struct picture *picture, struct sw_err *err)
{
	SW_JSON *cluster = NULL, *nodes = NULL, *jobs = NULL;
	char path[64], time[32];
	snprintf(path, sizeof path, "/v1/jobs?state=active&limit=%d", SHOWN_JOBS);
	int r = sw_client_get(client, "/v1/cluster", &cluster, err);
	r = r < 0 ? r : sw_client_get(client, "/v1/nodes", &nodes, err);
	r = r < 0 ? r : sw_client_get(client, path, &jobs, err);
	if (r < 0)
		return r;
	const json_t *counts = json_object_get(cluster, "jobs");
	add(picture, "Sharewell  %s  policy %s  GPUs %" PRId64 " of %" PRId64 " free  jobs: %" PRId64 " running, %" PRId64 " waiting",
	    sw_cli_local_time(sw_cli_text(cluster, "now", NULL), time), sw_cli_text(cluster, "policy", "?"),
	    sw_cli_number(cluster, "gpus_free", 0), sw_cli_number(cluster, "gpus", 0), sw_cli_number(counts, "R", 0),
	    sw_cli_number(counts, "PD", 0));
	add_gpus(picture, json_object_get(nodes, "nodes"));
	add(picture, "%s", "");
	add_jobs(picture, json_object_get(jobs, "jobs"));
	return 0;
}

/* ---- the terminal */

static void draw(const struct picture *picture, size_t scroll, const char *problem)
{
	erase();
	int rows = LINES - 1;
	for (int y = 0; y < rows; y++) {
		size_t line = (size_t)y < picture->first_job ? (size_t)y : (size_t)y + scroll;
		if (line < picture->lines.count)
			mvaddnstr(y, 0, picture->lines.items[line], COLS);
	}
	attron(A_REVERSE);
	mvprintw(LINES - 1, 0, "%.*s", COLS - 1, problem[0] != '\0' ? problem : "q: quit   j, k: down, up   g: to the top");
	attroff(A_REVERSE);
	refresh();
}

static size_t move_by(int key, size_t scroll, const struct picture *picture)
{
	size_t most = picture->lines.count > picture->first_job ? picture->lines.count - picture->first_job - 1 : 0;
	if (key == 'j' || key == KEY_DOWN)
		scroll++;
	else if ((key == 'k' || key == KEY_UP) && scroll > 0)
		scroll--;
	else if (key == KEY_NPAGE || key == ' ')
		scroll += 20;
	else if (key == KEY_PPAGE)
		scroll = scroll > 20 ? scroll - 20 : 0;
	else if (key == 'g' || key == KEY_HOME)
		scroll = 0;
	return scroll < most ? scroll : most;
}

static int live(struct sw_client *client, struct sw_err *err)
{
	struct picture picture = {0};
	size_t scroll = 0;
	/* What is wrong from the start is said on a normal screen. */
	int r = paint(client, &picture, err);
	if (r < 0)
		return r;
	setlocale(LC_CTYPE, "");
	sw_cli_catch_interrupts();
	if (initscr() == NULL) {
		release(&picture);
		return sw_err_set(err, SW_EIO, "this terminal cannot show a full screen");
	}
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	timeout(EVERY_MS);
	struct sw_err problem = {0};
	for (int key = ERR; key != 'q' && sw_cli_interrupted() == 0;) {
		draw(&picture, scroll, problem.fact);
		key = getch();
		scroll = move_by(key, scroll, &picture);
		if (key != ERR)
			continue;
		struct picture next = {0};
		sw_err_clear(&problem);
		if (paint(client, &next, &problem) == 0) {
			release(&picture);
			picture = next;
			scroll = move_by(ERR, scroll, &picture);
		} else {
			release(&next);
		}
	}
	endwin();
	release(&picture);
	return 0;
}

static int once(struct sw_client *client, struct sw_err *err)
{
	struct picture picture = {0};
	int r = paint(client, &picture, err);
	for (size_t i = 0; r == 0 && i < picture.lines.count; i++)
		puts(picture.lines.items[i]);
	release(&picture);
	return r;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	int r = sw_cli_connect(values->controller, &client, err);
	if (r < 0)
		return r;
	return values->once || !isatty(STDOUT_FILENO) ? once(client, err) : live(client, err);
}

static const struct sw_cli_option options[] = {
	{"once", '1', .about = "print it once, as plain text", .offset = offsetof(struct values, once)},
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_example examples[] = {
	{"sharewell top", "watch GPUs and jobs"},
	{"sharewell top --once", "print them once"},
};

const struct sw_cli_command sw_cli_top = {
	.name = "top",
	.about = "watch GPUs and jobs on a full screen",
	.text = "Keys: q quits, j and k scroll the jobs, g goes back to the top.",
	SW_CLI_OPTIONS(options),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
