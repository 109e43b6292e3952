#include "store/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

#define PLACE 512			 /* bytes: a sector, so that a power cut tears one place at most */
#define MAGIC UINT64_C(0x314b52414d5753) /* "SWMARK1" */

/* One place, as it lies in the file. */
struct place {
	uint64_t magic, turn, id, seq, high, flags, sum;
};

static uint64_t checksum(const struct place *place)
{
	return sw_hash_bytes(SW_HASH_START, place, offsetof(struct place, sum));
}

static bool is_sound(const struct place *place)
{
	return place->magic == MAGIC && place->sum == checksum(place);
}

enum sw_mark_found sw_mark_read(const char *path, struct sw_mark *ret_mark)
{
	*ret_mark = (struct sw_mark){.fd = -1};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? SW_MARK_MISSING : SW_MARK_DAMAGED;
	bool found = false;
	for (int i = 0; i < 2; i++) {
		struct place place;
		if (pread(fd, &place, sizeof place, (off_t)i * PLACE) != (ssize_t)sizeof place || !is_sound(&place) ||
		    (found && place.turn < ret_mark->turn))
			continue;
		found = true;
		ret_mark->id = place.id;
		ret_mark->seq = place.seq;
		ret_mark->high = place.high;
		ret_mark->open = (place.flags & 1) != 0;
		ret_mark->turn = place.turn;
	}
	close(fd);
	return found ? SW_MARK_FOUND : SW_MARK_DAMAGED;
}

void sw_mark_open(const char *path, struct sw_mark *mark)
{
	static const char nothing[2 * PLACE];
	struct stat info;
	mark->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0600);
	mark->error = mark->fd < 0 ? errno : 0;
	if (mark->fd < 0 || fstat(mark->fd, &info) != 0 || info.st_size >= (off_t)sizeof nothing)
		return;
	/* Both places are there from the beginning. */
	if (pwrite(mark->fd, nothing, sizeof nothing, 0) != (ssize_t)sizeof nothing)
		mark->error = errno != 0 ? errno : ENOSPC;
}

int sw_mark_write(struct sw_mark *mark)
{
	if (mark->fd < 0)
		return -1;
	mark->turn++;
	struct place place = {
		.magic = MAGIC, .turn = mark->turn, .id = mark->id, .seq = mark->seq, .high = mark->high, .flags = mark->open ? 1 : 0};
	place.sum = checksum(&place);
	ssize_t size = pwrite(mark->fd, &place, sizeof place, (off_t)(mark->turn % 2) * PLACE);
	mark->error = size == (ssize_t)sizeof place ? 0 : size < 0 ? errno : ENOSPC;
	return mark->error == 0 ? 0 : -1;
}

void sw_mark_sync(struct sw_mark *mark)
{
	if (mark->fd >= 0)
		fdatasync(mark->fd);
}

void sw_mark_close(struct sw_mark *mark)
{
	if (mark->fd >= 0)
		close(mark->fd);
	mark->fd = -1;
}
