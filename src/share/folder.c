#include "share/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "share/terms.h"

#define LOCK_NAME ".coordinator"
enum { MEMBERS = 256 };

/* A page that is open. */
struct member {
	char path[SW_PAGE_PATH];
	dev_t device;
	ino_t inode;
	struct sw_share_page *page;
	bool seen; /* in this tick */
	struct sw_share_terms terms;
	struct sw_share_figures figures;
	struct sw_share_orders orders;
};

struct sw_share_folder {
	char path[PATH_MAX];
	int lock;
	bool leads;
	size_t count;
	struct member members[MEMBERS];
	struct sw_coordination kept[SW_PAGE_GPUS];
	uint64_t foreign_bytes[SW_PAGE_GPUS][2]; /* at the last two fresh figures */
};

/* ---- life */

int sw_share_folder_lock(const char *path, bool wait)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = -1;
	do
		r = fd < 0 ? -1 : flock(fd, wait ? LOCK_EX : LOCK_EX | LOCK_NB);
	while (r != 0 && fd >= 0 && wait && errno == EINTR);
	if (r == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

void sw_share_folder_unlock(int lock)
{
	if (lock >= 0)
		close(lock);
}

int sw_share_folder_new(const char *path, struct sw_share_folder **ret_folder, struct sw_err *err)
{
	struct sw_share_folder *folder = calloc(1, sizeof *folder);
	char name[PATH_MAX + sizeof LOCK_NAME + 1];
	if (folder == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	if (strlen(path) >= sizeof folder->path) {
		free(folder);
		return sw_err_set(err, SW_ELIMIT, "the path of the folder of shares is too long");
	}
	memcpy(folder->path, path, strlen(path));
	snprintf(name, sizeof name, "%s/%s", path, LOCK_NAME);
	folder->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (folder->lock < 0) {
		sw_err_set(err, SW_EIO, "cannot open '%s'", name);
		sw_err_detail(err, "%s", strerror(errno));
		free(folder);
		return SW_EIO;
	}
	*ret_folder = folder;
	return 0;
}

static void forget(struct sw_share_folder *folder, size_t index)
{
	sw_share_page_close(folder->members[index].page);
	folder->members[index] = folder->members[--folder->count];
}

void sw_share_folder_free(struct sw_share_folder *folder)
{
	if (folder == NULL)
		return;
	while (folder->count > 0)
		forget(folder, folder->count - 1);
	close(folder->lock);
	free(folder);
}

bool sw_share_folder_leads(struct sw_share_folder *folder)
{
	if (!folder->leads && flock(folder->lock, LOCK_EX | LOCK_NB) == 0) {
		folder->leads = true;
		memset(folder->kept, 0, sizeof folder->kept);
		memset(folder->foreign_bytes, 0, sizeof folder->foreign_bytes);
	}
	return folder->leads;
}

void sw_share_folder_stand_back(struct sw_share_folder *folder)
{
	while (folder->count > 0)
		forget(folder, folder->count - 1);
	if (folder->leads)
		flock(folder->lock, LOCK_UN);
	folder->leads = false;
}

/* ---- which programs are there */

static void meet(struct sw_share_folder *folder, const char *name)
{
	char path[SW_PAGE_PATH];
	struct stat status;
	int length = snprintf(path, sizeof path, "%s/%s", folder->path, name);
	if (length < 0 || (size_t)length >= sizeof path || stat(path, &status) != 0 || !S_ISREG(status.st_mode))
		return;
	for (size_t i = 0; i < folder->count; i++)
		if (folder->members[i].inode == status.st_ino && folder->members[i].device == status.st_dev) {
			folder->members[i].seen = true;
			return;
		}
	struct member *fresh = &folder->members[folder->count];
	if (folder->count == MEMBERS || sw_share_page_open(path, &fresh->page, NULL) < 0)
		return;
	memcpy(fresh->path, path, sizeof path);
	fresh->device = status.st_dev;
	fresh->inode = status.st_ino;
	fresh->seen = true;
	folder->count++;
}

static void meet_all(struct sw_share_folder *folder)
{
	for (size_t i = 0; i < folder->count; i++)
		folder->members[i].seen = false;
	DIR *dir = opendir(folder->path);
	for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
		if (entry->d_name[0] != '.')
			meet(folder, entry->d_name);
	if (dir != NULL)
		closedir(dir);
	for (size_t i = 0; i < folder->count; i++)
		if (!folder->members[i].seen || !sw_share_page_is_kept(folder->members[i].page))
			forget(folder, i--);
	for (size_t i = 0; i < folder->count; i++) {
		struct member *member = &folder->members[i];
		sw_share_page_look(member->page, &member->figures);
		sw_share_terms_get(member->page, &member->terms);
		sw_share_orders_alone(&member->terms, &member->orders);
	}
}

/* ---- one GPU */

/* Its number among the GPUs of that page; -1: it is not there. */
static int find_gpu(struct sw_share_page *page, const uint8_t uuid[16])
{
	const struct sw_page *shared = sw_share_page_shared(page);
	for (uint32_t i = 0; i < shared->gpu_count && i < SW_PAGE_GPUS; i++)
		if (memcmp(shared->gpus[i].uuid, uuid, 16) == 0)
			return (int)i;
	return -1;
}

struct seat {
	struct member *member;
	int gpu;   /* in its page */
	bool uses; /* has memory there */
};

static struct sw_coordinate_job describe(const struct seat *seat)
{
	const struct member *member = seat->member;
	const struct sw_share_figures *figures = &member->figures;
	const struct sw_share_gpu *use = &figures->gpus[seat->gpu];
	return (struct sw_coordinate_job){
		.id = (uint64_t)member->inode,
		.arrival = (uint64_t)member->terms.arrived_ns,
		.class = member->terms.class,
		.throttle = member->terms.throttle,
		.asked_bytes = member->terms.asked_bytes,
		.asked_milli = member->terms.asked_milli,
		.held = member->terms.held,
		.suspended = figures->processes > 0 && figures->running == 0,
		.moving = figures->running + figures->suspended < figures->processes,
		.charged_bytes = use->charged_bytes,
		.fixed_bytes = use->fixed_bytes,
		.host_bytes = use->host_bytes + use->wanted_bytes, /* both would be on the GPU if there were room */
		.peak_bytes = use->peak_bytes,
		.floor_bytes = figures->floor_bytes,
		.iterations = figures->iterations,
		.iteration_ns = figures->iteration_ns,
		.launches = figures->launches,
	};
}

/* A program that has memory there; then opportunistic ones that may want some soon: their
 * limits count even now. */
static size_t seat_all(struct sw_share_folder *folder, const uint8_t uuid[16], struct seat *seats)
{
	size_t count = 0;
	for (unsigned pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < folder->count && count < SW_COORDINATE_JOBS; i++) {
			struct member *member = &folder->members[i];
			int gpu = find_gpu(member->page, uuid);
			if (gpu < 0)
				continue;
			const struct sw_share_gpu *use = &member->figures.gpus[gpu];
			bool uses = use->charged_bytes + use->host_bytes + use->wanted_bytes > 0;
			if (uses == (pass == 0) && (uses || member->terms.class == SW_CLASS_OPPORTUNISTIC))
				seats[count++] = (struct seat){member, gpu, uses};
		}
	return count;
}

/* A job works only where it may on every GPU that it uses. */
static void take_order(const struct seat *seats, size_t count, size_t own, const struct sw_coordinate_order *order)
{
	struct sw_share_orders *orders = &seats[own].member->orders;
	orders->limit_bytes[seats[own].gpu] = order->limit_bytes;
	if (!seats[own].uses)
		return;
	orders->share_milli = order->share_milli < orders->share_milli ? order->share_milli : orders->share_milli;
	orders->watched = orders->watched || order->watched;
	orders->suspend = orders->suspend || order->suspend;
	for (size_t i = 0; order->yields && i < count; i++) {
		const struct member *other = seats[i].member;
		bool named = false;
		for (size_t j = 0; j < orders->neighbour_count; j++)
			named = named || orders->neighbours[j] == other->path;
		if (other->terms.class == SW_CLASS_GUARANTEED && !named && orders->neighbour_count < SW_PAGE_NEIGHBOURS)
			orders->neighbours[orders->neighbour_count++] = other->path;
	}
}

/* What programs hold that are none of ours. What is on its way in or out may be counted twice for a
 * moment, so only what stays counts. */
static uint64_t find_foreign(struct sw_share_folder *folder, uint32_t gpu, const struct sw_share_memory *memory,
			     const struct sw_coordinate_job *jobs, size_t count)
{
	uint64_t ours = 0, *last = folder->foreign_bytes[gpu];
	for (size_t i = 0; i < count; i++)
		ours += jobs[i].charged_bytes;
	if (memory->fresh) {
		last[1] = last[0];
		last[0] = memory->used_bytes > ours ? memory->used_bytes - ours : 0;
	}
	return last[0] < last[1] ? last[0] : last[1];
}

/* The shortest that any program there asked for; 0: the default. */
static int64_t find_quantum(const struct seat *seats, size_t count)
{
	uint8_t slice_s = 0;
	for (size_t i = 0; i < count; i++) {
		uint8_t asked = seats[i].member->terms.slice_s;
		slice_s = asked > 0 && (slice_s == 0 || asked < slice_s) ? asked : slice_s;
	}
	return slice_s * INT64_C(1000000000);
}

static void decide(struct sw_share_folder *folder, uint32_t gpu, const struct sw_share_memory *memory, int64_t now_ns)
{
	struct seat seats[SW_COORDINATE_JOBS];
	struct sw_coordinate_job jobs[SW_COORDINATE_JOBS];
	struct sw_coordinate_order orders[SW_COORDINATE_JOBS];
	size_t count = seat_all(folder, memory->uuid, seats);
	for (size_t i = 0; i < count; i++)
		jobs[i] = describe(&seats[i]);
	const struct sw_coordinate_gpu room = {
		.capacity_bytes = memory->capacity_bytes,
		.foreign_bytes = find_foreign(folder, gpu, memory, jobs, count),
		.quantum_ns = find_quantum(seats, count),
	};
	sw_coordinate(&folder->kept[gpu], &room, jobs, count, now_ns, orders);
	for (size_t i = 0; i < count; i++)
		take_order(seats, count, i, &orders[i]);
}

void sw_share_folder_tick(struct sw_share_folder *folder, const struct sw_share_memory *memories, size_t count, int64_t now_ns)
{
	if (!sw_share_folder_leads(folder))
		return;
	int lock = sw_share_folder_lock(folder->path, false);
	if (lock < 0)
		return;
	meet_all(folder);
	for (uint32_t i = 0; i < count && i < SW_PAGE_GPUS; i++)
		if (memories[i].capacity_bytes > 0)
			decide(folder, i, &memories[i], now_ns);
	for (size_t i = 0; i < folder->count; i++)
		sw_share_orders_give(folder->members[i].page, &folder->members[i].orders);
	sw_share_folder_unlock(lock);
}
