/* One progress bar for work that several threads do: how much of all is done, how fast,
 * how long it will take. */
#ifndef SW_CLI_PROGRESS_H
#define SW_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct sw_cli_progress {
	FILE *out;
	bool utf8;
	unsigned width;
	uint64_t total;
	const char *unit; /* what is counted; NULL: jobs */
	int64_t began_ns;
	bool drawn;
};

/* On standard error. `total` may be 0. */
void sw_cli_progress_start(struct sw_cli_progress *progress, uint64_t total);
/* Draws over what was drawn before; `label` is shown where there is room. */
void sw_cli_progress_draw(struct sw_cli_progress *progress, uint64_t done, const char *label);
/* Wipes it away. */
void sw_cli_progress_end(struct sw_cli_progress *progress);

/* One line into `text`, at most `width` columns, without control characters: the
 * drawing without the terminal. */
void sw_cli_progress_format(const struct sw_cli_progress *progress, uint64_t done, int64_t elapsed_ns, const char *label, char *text,
			    size_t size);

#endif
