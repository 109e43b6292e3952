#include "share/node.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/now.h"
#include "base/number.h"
#include "share/host.h"

#define PLACE "/run/sharewell"
#define PLACE_OF_LEDGERS PLACE "/host"
/* What figures can be at most: their user can write them. */
#define MOST (UINT64_C(1) << 50)
#define MOST_FILE_BYTES ((off_t)4 * (off_t)sizeof(struct sw_host_ledger))
/* So long after a refusal the other users hear of it. */
#define REFUSED_NS INT64_C(4000000000)
enum { USERS = 1024 };

/* ---- where */

static bool is_folder(const char *path)
{
	struct stat status;
	return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

/* Root's alone, whatever the umask is. */
static bool make_place(void)
{
	if (mkdir(PLACE, 0755) == 0)
		(void)chmod(PLACE, 0755);
	if (mkdir(PLACE_OF_LEDGERS, 0711) == 0)
		(void)chmod(PLACE_OF_LEDGERS, 0711);
	return is_folder(PLACE_OF_LEDGERS) && access(PLACE_OF_LEDGERS, W_OK | X_OK) == 0;
}

const char *sw_share_node_path(void)
{
	static char path[64];
	struct stat status;
	const char *named = getenv(SW_SHARE_NODE_ENV);
	if (named != NULL && named[0] != '\0')
		return named;
	if (geteuid() == 0 && make_place())
		return PLACE_OF_LEDGERS "/ledger";
	unsigned uid = geteuid();
	snprintf(path, sizeof path, "/dev/shm/sharewell-host-%u", uid);
	/* Another user may have taken the name. */
	if (lstat(path, &status) == 0 && status.st_uid != uid) {
		snprintf(path, sizeof path, "/run/user/%u", uid);
		if (is_folder(path))
			snprintf(path, sizeof path, "/run/user/%u/sharewell-host", uid);
	}
	return path;
}

static bool path_of(uid_t uid, char path[PATH_MAX])
{
	const char *own = sw_share_node_path();
	int size = uid == geteuid() ? snprintf(path, PATH_MAX, "%s", own) : snprintf(path, PATH_MAX, "%s-%u", own, (unsigned)uid);
	return size < PATH_MAX;
}

/* ---- life */

static uint64_t usual_bound(void)
{
	return sw_share_host_total() / 2;
}

/* A whole one under another name, linked then: no process sees a part of it. */
static void make(const char *path, uid_t uid, gid_t gid)
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
	    fchmod(fd, 0600) == 0 && (uid == geteuid() || fchown(fd, uid, gid) == 0))
		(void)!link(name, path);
	unlink(name);
	close(fd);
}

/* -1: there is none that is that user's own. It may be anything: that user can write what he
 * likes. */
static int open_ledger(const char *path, uid_t uid, struct sw_host_ledger_head *ret_head)
{
	struct stat status;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == uid &&
	    status.st_size >= (off_t)sizeof(struct sw_host_ledger) &&
	    pread(fd, ret_head, sizeof *ret_head, 0) == (ssize_t)sizeof *ret_head && ret_head->magic == SW_HOST_LEDGER_MAGIC &&
	    ret_head->format == SW_HOST_LEDGER_FORMAT)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static int open_own(struct sw_host_ledger_head *ret_head)
{
	const char *path = sw_share_node_path();
	if (access(path, F_OK) != 0 && errno == ENOENT)
		make(path, geteuid(), getegid());
	return open_ledger(path, geteuid(), ret_head);
}

void sw_share_node_join(struct sw_share_page *page, uid_t uid, gid_t gid)
{
	struct sw_host_ledger_head head;
	char path[PATH_MAX], *place = sw_share_page_shared(page)->host_ledger;
	if (!path_of(uid, path) || strlen(path) >= SW_PAGE_PATH)
		return;
	/* A spoilt one harms its own user alone: he gets another. */
	if (geteuid() == 0 && uid != 0) {
		int fd = open_ledger(path, uid, &head);
		if (fd < 0)
			unlink(path);
		else
			close(fd);
	}
	if (access(path, F_OK) != 0 && errno == ENOENT)
		make(path, uid, gid);
	int fd = open_ledger(path, uid, &head);
	if (fd < 0)
		return;
	memcpy(place, path, strlen(path) + 1);
	sw_share_page_put(page, place, SW_PAGE_PATH);
	close(fd);
}

bool sw_share_node_limit(uint64_t most_bytes)
{
	struct sw_host_ledger_head head;
	int fd = open_own(&head);
	if (fd < 0)
		return false;
	uint64_t bytes = most_bytes > 0 ? most_bytes : usual_bound();
	bool written = pwrite(fd, &bytes, sizeof bytes, offsetof(struct sw_host_ledger, head.most_bytes)) == (ssize_t)sizeof bytes;
	close(fd);
	return written;
}

/* ---- figures */

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

static uint64_t bounded_sum(uint64_t a, uint64_t b)
{
	return a < MOST && b < MOST && a + b < MOST ? a + b : MOST;
}

/* False: it has been shortened. */
static bool sum_up(int fd, uint64_t *ret_used)
{
	struct sw_host_ledger ledger;
	if (pread(fd, &ledger, sizeof ledger, 0) != (ssize_t)sizeof ledger)
		return false;
	uint64_t used = 0;
	for (unsigned i = 0; i < SW_HOST_LEDGER_SLOTS; i++)
		if (ledger.slots[i] > 0 && !strike_out(fd, i))
			used = bounded_sum(used, ledger.slots[i]);
	*ret_used = used;
	return true;
}

bool sw_share_node_look(uint64_t *ret_used, uint64_t *ret_most)
{
	struct sw_host_ledger_head head;
	int fd = open_own(&head);
	bool whole = fd >= 0 && sum_up(fd, ret_used);
	if (whole)
		*ret_most = head.most_bytes < MOST ? head.most_bytes : MOST;
	if (fd >= 0)
		close(fd);
	return whole;
}

/* ---- several users */

struct user {
	uint64_t used;
	uid_t uid;
	bool refused; /* it says that it lacked some just now */
};

/* False: it is no ledger, or one that cannot be read. */
static bool meet(uid_t uid, int64_t now, struct user *ret_user)
{
	struct sw_host_ledger_head head;
	struct stat status;
	char path[PATH_MAX];
	int fd = path_of(uid, path) ? open_ledger(path, uid, &head) : -1;
	if (fd < 0)
		return false;
	/* It would fill the file system that all ledgers lie in. */
	if (fstat(fd, &status) == 0 && status.st_size > MOST_FILE_BYTES)
		(void)!ftruncate(fd, MOST_FILE_BYTES);
	*ret_user = (struct user){.uid = uid, .refused = head.refused_ns <= now && head.refused_ns > now - REFUSED_NS};
	bool whole = sum_up(fd, &ret_user->used);
	close(fd);
	return whole;
}

/* The users whose ledgers lie beside ours, and ourselves. */
static size_t meet_all(int64_t now, struct user users[USERS])
{
	char folder[PATH_MAX], prefix[NAME_MAX + 1];
	const char *own = sw_share_node_path(), *base = strrchr(own, '/');
	size_t count = meet(geteuid(), now, &users[0]);
	if (base == NULL || base[1] == '\0' || snprintf(folder, sizeof folder, "%.*s", (int)(base - own) + 1, own) >= (int)sizeof folder ||
	    snprintf(prefix, sizeof prefix, "%s-", base + 1) >= (int)sizeof prefix)
		return count;
	size_t length = strlen(prefix);
	DIR *dir = opendir(folder);
	for (struct dirent *entry; dir != NULL && count < USERS && (entry = readdir(dir)) != NULL;) {
		int64_t uid;
		const char *name = entry->d_name;
		if (strncmp(name, prefix, length) == 0 && sw_parse_i64(name + length, strlen(name + length), &uid) == 0 && uid > 0 &&
		    uid < UINT32_MAX)
			count += meet((uid_t)uid, now, &users[count]);
	}
	if (dir != NULL)
		closedir(dir);
	return count;
}

static void write_words(int fd, const uint64_t words[2], size_t place)
{
	(void)!pwrite(fd, words, 2 * sizeof words[0], (off_t)place);
}

/* Only what is beyond an equal part of the bound can be said to be taken by others. So no lie of
 * theirs takes that part. */
static void inform(const struct user *users, size_t count, size_t own, const struct sw_host_ledger_head *bounds, uint64_t part, int64_t now)
{
	struct sw_host_ledger_head head;
	char path[PATH_MAX];
	uint64_t others = 0;
	bool refused = false;
	for (size_t i = 0; i < count; i++) {
		others = i != own ? bounded_sum(others, users[i].used) : others;
		refused = refused || (i != own && users[i].refused && users[i].used < part && users[own].used > part);
	}
	others = others < bounds->most_bytes - part ? others : bounds->most_bytes - part;
	int fd = path_of(users[own].uid, path) ? open_ledger(path, users[own].uid, &head) : -1;
	if (fd < 0)
		return;
	if (users[own].uid != geteuid())
		write_words(fd, (const uint64_t[2]){bounds->most_bytes, bounds->reserve_bytes},
			    offsetof(struct sw_host_ledger, head.most_bytes));
	write_words(fd, (const uint64_t[2]){others, (uint64_t)now}, offsetof(struct sw_host_ledger, head.others_bytes));
	if (refused)
		(void)!pwrite(fd, &now, sizeof now, offsetof(struct sw_host_ledger, head.refused_ns));
	close(fd);
}

bool sw_share_node_balance(uint64_t *ret_used, uint64_t *ret_most)
{
	static struct user users[USERS]; /* too large for the stack */
	struct sw_host_ledger_head head;
	if (geteuid() != 0)
		return sw_share_node_look(ret_used, ret_most);
	int fd = open_own(&head);
	if (fd < 0)
		return false;
	close(fd);
	int64_t now = sw_now_monotonic_ns();
	uint64_t used = 0, parts = 0;
	size_t count = meet_all(now, users);
	for (size_t i = 0; i < count; i++) {
		used = bounded_sum(used, users[i].used);
		parts += users[i].used > 0 || users[i].refused;
	}
	head.most_bytes = head.most_bytes < MOST ? head.most_bytes : MOST;
	for (size_t i = 0; i < count; i++) {
		/* One that has nothing yet is counted for itself. */
		uint64_t mine = parts + (users[i].used == 0 && !users[i].refused);
		inform(users, count, i, &head, head.most_bytes / mine, now);
	}
	*ret_used = used;
	*ret_most = head.most_bytes;
	return true;
}
