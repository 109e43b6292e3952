#include "agent/epochs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/folder.h"
#include "base/cleanup.h"

#define CURRENT "epochs"
#define ASIDE "epochs.old"

/* Reads it up to its end, or to a line that a crash cut off; *ret_good is where that is. */
static int read_file(int state, const char *name, sw_epochs_seen *seen, void *context, off_t *ret_good)
{
	*ret_good = 0;
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size;
	int r = sw_folder_read(state, name, &text, &size, NULL);
	if (r == SW_ENOTFOUND)
		return 0;
	if (r < 0)
		return r;
	for (const char *line = text; line < text + size;) {
		uint64_t job;
		uint32_t epoch;
		int length = 0;
		if (sscanf(line, "%" SCNu64 " %" SCNu32 "%n", &job, &epoch, &length) != 2 || line[length] != '\n')
			return 0;
		r = seen(context, (struct sw_run_id){job, epoch});
		if (r < 0)
			return r;
		line += length + 1;
		*ret_good = line - text;
	}
	return 0;
}

/* What comes after `good` is cut off, so that the next line begins a line. */
static int open_current(struct sw_epochs *epochs, off_t good)
{
	epochs->fd = openat(epochs->state, CURRENT, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	epochs->bytes = (uint64_t)good;
	return epochs->fd >= 0 && ftruncate(epochs->fd, good) == 0 ? 0 : SW_EIO;
}

int sw_epochs_open(struct sw_epochs *epochs, int state, sw_epochs_seen *seen, void *context)
{
	*epochs = (struct sw_epochs){.state = state, .fd = -1};
	off_t good;
	int r = read_file(state, ASIDE, seen, context, &good);
	if (r == 0)
		r = read_file(state, CURRENT, seen, context, &good);
	return r < 0 ? r : open_current(epochs, good);
}

int sw_epochs_add(struct sw_epochs *epochs, struct sw_run_id id)
{
	char line[48];
	int size = snprintf(line, sizeof line, "%" PRIu64 " %" PRIu32 "\n", id.job, id.epoch);
	if (epochs->bytes + (uint64_t)size > SW_EPOCHS_BYTES_MAX) {
		if (renameat(epochs->state, CURRENT, epochs->state, ASIDE) != 0)
			return SW_EIO;
		close(epochs->fd);
		if (open_current(epochs, 0) < 0)
			return SW_EIO;
	}
	if (write(epochs->fd, line, (size_t)size) != size)
		return SW_EIO;
	epochs->bytes += (uint64_t)size;
	return 0;
}

void sw_epochs_close(struct sw_epochs *epochs)
{
	if (epochs->fd >= 0)
		close(epochs->fd);
	epochs->fd = -1;
}
