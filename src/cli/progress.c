#include "cli/progress.h"

#include <string.h>

#include "base/now.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/terminal.h"

enum { BAR_MAX = 40, BAR_MIN = 10, WIDTH_PRESET = 80, WIDTH_MAX = 200 };

void sw_cli_progress_start(struct sw_cli_progress *progress, uint64_t total)
{
	struct sw_cli_terminal terminal = sw_cli_terminal(stderr);
	*progress = (struct sw_cli_progress){.out = stderr, .utf8 = terminal.utf8, .total = total, .began_ns = sw_now_monotonic_ns()};
	progress->width = terminal.width == 0 ? WIDTH_PRESET : terminal.width > WIDTH_MAX ? WIDTH_MAX : terminal.width;
}

/* Eighths of a block where the terminal has them. */
static size_t put_bar(const struct sw_cli_progress *progress, double share, unsigned cells, char *text)
{
	static const char *const eighths[] = {
		"", "\xE2\x96\x8F", "\xE2\x96\x8E", "\xE2\x96\x8D", "\xE2\x96\x8C", "\xE2\x96\x8B", "\xE2\x96\x8A", "\xE2\x96\x89"};
	unsigned full = (unsigned)(share * cells * 8);
	size_t used = 0;
	for (unsigned cell = 0; cell < cells; cell++) {
		const char *piece = cell < full / 8 ? "#" : ".";
		if (progress->utf8 && cell < full / 8)
			piece = "\xE2\x96\x88";
		else if (progress->utf8)
			piece = cell == full / 8 && full % 8 > 0 ? eighths[full % 8] : "\xC2\xB7";
		size_t size = strlen(piece);
		memcpy(text + used, piece, size);
		used += size;
	}
	text[used] = '\0';
	return used;
}

void sw_cli_progress_format(const struct sw_cli_progress *progress, uint64_t done, int64_t elapsed_ns, const char *label, char *text,
			    size_t size)
{
	char count[SW_TEXT_SIZE], total[SW_TEXT_SIZE], speed[SW_TEXT_SIZE], left[SW_TEXT_SIZE], figures[256], bar[BAR_MAX * 4];
	done = done > progress->total ? progress->total : done;
	double share = progress->total > 0 ? (double)done / (double)progress->total : 1;
	double rate = elapsed_ns > 0 ? (double)done * SW_NS_PER_S / (double)elapsed_ns : 0;
	snprintf(figures, sizeof figures, " %3u %%  %s of %s %s", (unsigned)(share * 100), sw_text_count(done, count),
		 sw_text_count(progress->total, total), progress->unit != NULL ? progress->unit : "jobs");
	if (rate >= 1) {
		size_t used = strlen(figures);
		/* Whole seconds: what is left of the last one flickers. */
		double seconds = (double)(int64_t)((double)(progress->total - done) / rate + 0.5);
		snprintf(figures + used, sizeof figures - used, "  %s/s  %s left", sw_text_count((uint64_t)rate, speed),
			 sw_text_duration(seconds, left));
	}
	size_t taken = strlen(figures) + 3; /* two brackets, and the last column stays free so that no terminal wraps */
	unsigned room = progress->width > taken ? progress->width - (unsigned)taken : 0;
	unsigned cells = room > BAR_MAX ? BAR_MAX : room;
	if (cells < BAR_MIN) {
		snprintf(text, size, "%.*s", (int)(progress->width > 1 ? progress->width - 1 : 0), figures + 1);
		return;
	}
	put_bar(progress, share, cells, bar);
	room -= cells;
	int written = snprintf(text, size, "[%s]%s", bar, figures);
	if (label != NULL && written > 0 && (size_t)written < size && strlen(label) + 2 <= room)
		snprintf(text + written, size - (size_t)written, "  %s", label);
}

void sw_cli_progress_draw(struct sw_cli_progress *progress, uint64_t done, const char *label)
{
	char text[WIDTH_MAX * 4];
	sw_cli_progress_format(progress, done, sw_now_monotonic_ns() - progress->began_ns, label, text, sizeof text);
	fprintf(progress->out, "\r%s\033[K", text);
	fflush(progress->out);
	progress->drawn = true;
}

void sw_cli_progress_end(struct sw_cli_progress *progress)
{
	if (progress->drawn)
		fputs("\r\033[K", progress->out);
	fflush(progress->out);
}
