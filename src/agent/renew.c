#include "agent/renew.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/control.h"
#include "agent/folder.h"
#include "base/cleanup.h"
#include "base/now.h"
#include "base/number.h"

enum { PATIENCE_MS = 10000, STEP_MS = 20 };
#define FOR_EVER_NS (INT64_C(100) * 365 * 86400 * SW_NS_PER_S)

/* A supervisor that has just begun does not listen yet; one that ends does not listen any more, and
 * then nothing has its lock. */
static bool reach(int folder, int *ret_fd)
{
	for (int waited = 0; waited < PATIENCE_MS && sw_folder_is_locked(folder, "spec.json"); waited += STEP_MS) {
		if (sw_control_connect(folder, ret_fd) == 0)
			return true;
		nanosleep(&(struct timespec){.tv_nsec = STEP_MS * SW_NS_PER_MS}, NULL);
	}
	return false;
}

/* A supervisor reads its lines in their order: one that has said its account
 * has heard of the lease. */
static bool tell(int folder)
{
	char lines[64], answer[512];
	int fd = -1;
	if (!reach(folder, &fd))
		return false;
	int size = snprintf(lines, sizeof lines, "lease %" PRId64 "\nstatus\n", sw_now_boot_ns() + FOR_EVER_NS);
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	bool heard = send(fd, lines, (size_t)size, MSG_NOSIGNAL) == size && poll(&wait, 1, PATIENCE_MS) == 1 &&
		     read(fd, answer, sizeof answer) > 0;
	close(fd);
	return heard;
}

static void renew(int runs, const char *name, uint64_t job, struct sw_renewed *renewed)
{
	SW_CLEANUP(sw_run_order_freep) struct sw_run_order *order = NULL;
	int folder = -1;
	if (sw_folder_open(runs, name, &folder, NULL) < 0)
		return;
	if (sw_folder_is_locked(folder, "spec.json") && !sw_folder_has(folder, "exit.json")) {
		bool known = sw_folder_order(folder, &order, NULL) == 0 && order->want.spec != NULL;
		if (!known) {
			if (renewed->unreadable++ == 0)
				renewed->unreadable_job = job;
		} else if (order->want.spec->lease_ms > 0) {
			renewed->leased++;
		} else if (tell(folder)) {
			renewed->told++;
		} else {
			renewed->deaf++;
		}
	}
	close(folder);
}

int sw_agent_renew(const char *state, struct sw_renewed *ret_renewed, struct sw_err *err)
{
	struct sw_renewed renewed = {0};
	SW_CLEANUP(sw_freep) char *path = NULL;
	if (asprintf(&path, "%s/runs", state) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int runs = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int again = runs >= 0 ? openat(runs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	DIR *stream = again >= 0 ? fdopendir(again) : NULL;
	if (stream == NULL) {
		sw_err_set(err, SW_ENOTFOUND, "there are no runs in '%.200s'", state);
		sw_err_detail(err, "%s", strerror(errno));
		if (runs >= 0)
			close(runs);
		return SW_ENOTFOUND;
	}
	struct sw_run_id id;
	for (const struct dirent *entry; (entry = readdir(stream)) != NULL;)
		if (sw_folder_parse(entry->d_name, &id))
			renew(runs, entry->d_name, id.job, &renewed);
	closedir(stream);
	close(runs);
	*ret_renewed = renewed;
	return 0;
}
