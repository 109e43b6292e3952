#include "share/node.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "share/host.h"

#define USUAL "/dev/shm/sharewell-host"
/* What figures can be at most: anybody can write them. */
#define MOST (UINT64_C(1) << 50)

const char *sw_share_node_path(void)
{
	const char *named = getenv(SW_SHARE_NODE_ENV);
	return named != NULL && named[0] != '\0' ? named : USUAL;
}

static uint64_t usual_bound(void)
{
	return sw_share_host_total() / 2;
}

/* A whole one under another name, linked then: nobody sees a part of it. */
static void make(const char *path)
{
	char name[PATH_MAX];
	if (snprintf(name, sizeof name, "%s.XXXXXX", path) >= (int)sizeof name)
		return;
	const struct sw_host_ledger_head head = {
		.magic = SW_HOST_LEDGER_MAGIC,
		.format = SW_HOST_LEDGER_FORMAT,
		.most_bytes = usual_bound(),
		.reserve_bytes = sw_share_host_total() / SW_HOST_LEDGER_RESERVE,
	};
	int fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return;
	if (posix_fallocate(fd, 0, sizeof(struct sw_host_ledger)) == 0 && pwrite(fd, &head, sizeof head, 0) == (ssize_t)sizeof head &&
	    fchmod(fd, 0666) == 0)
		(void)!link(name, path);
	unlink(name);
	close(fd);
}

/* -1: there is none. It may be anything: who is first can put there what he likes. */
static int open_ledger(struct sw_host_ledger_head *ret_head)
{
	struct stat status;
	const char *path = sw_share_node_path();
	for (unsigned i = 0; i < 2; i++) {
		int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0 && errno == ENOENT && i == 0) {
			make(path);
			continue;
		}
		if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
		    status.st_size >= (off_t)sizeof(struct sw_host_ledger) &&
		    pread(fd, ret_head, sizeof *ret_head, 0) == (ssize_t)sizeof *ret_head && ret_head->magic == SW_HOST_LEDGER_MAGIC &&
		    ret_head->format == SW_HOST_LEDGER_FORMAT)
			return fd;
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return -1;
}

void sw_share_node_join(struct sw_share_page *page)
{
	struct sw_host_ledger_head head;
	char *place = sw_share_page_shared(page)->host_ledger;
	const char *path = sw_share_node_path();
	int fd = strlen(path) < SW_PAGE_PATH ? open_ledger(&head) : -1;
	if (fd < 0)
		return;
	memcpy(place, path, strlen(path) + 1);
	close(fd);
}

bool sw_share_node_limit(uint64_t most_bytes)
{
	struct sw_host_ledger_head head;
	int fd = open_ledger(&head);
	if (fd < 0)
		return false;
	uint64_t bytes = most_bytes > 0 ? most_bytes : usual_bound();
	bool written = pwrite(fd, &bytes, sizeof bytes, offsetof(struct sw_host_ledger, head.most_bytes)) == (ssize_t)sizeof bytes;
	close(fd);
	return written;
}

/* Whether the process of this slot is gone: its lock is free. Then the slot is cleared. */
static bool strike_out(int fd, unsigned slot)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)slot, .l_len = 1};
	const uint64_t none = 0;
	if (fcntl(fd, F_OFD_SETLK, &lock) != 0)
		return false;
	(void)!pwrite(fd, &none, sizeof none, (off_t)(offsetof(struct sw_host_ledger, slots) + slot * sizeof none));
	lock.l_type = F_UNLCK;
	fcntl(fd, F_OFD_SETLK, &lock);
	return true;
}

bool sw_share_node_look(uint64_t *ret_used, uint64_t *ret_most)
{
	struct sw_host_ledger ledger;
	int fd = open_ledger(&ledger.head);
	if (fd < 0)
		return false;
	bool whole = pread(fd, &ledger, sizeof ledger, 0) == (ssize_t)sizeof ledger;
	uint64_t used = 0;
	for (unsigned i = 0; whole && i < SW_HOST_LEDGER_SLOTS; i++)
		if (ledger.slots[i] > 0 && !strike_out(fd, i))
			used = used + ledger.slots[i] < MOST && ledger.slots[i] < MOST ? used + ledger.slots[i] : MOST;
	close(fd);
	if (!whole)
		return false;
	*ret_used = used;
	*ret_most = ledger.head.most_bytes < MOST ? ledger.head.most_bytes : MOST;
	return true;
}
