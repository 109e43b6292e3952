#include "share/host.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GROUPS "/sys/fs/cgroup"

/* 0: the kernel does not say. */
static uint64_t available_bytes(void)
{
	char line[128];
	unsigned long long kib = 0;
	FILE *file = fopen("/proc/meminfo", "re");
	while (file != NULL && fgets(line, sizeof line, file) != NULL && sscanf(line, "MemAvailable: %llu kB", &kib) != 1)
		;
	if (file != NULL)
		fclose(file);
	return (uint64_t)kib << 10;
}

/* The number after `key` in a file of a group, or the first one there is; false: there
 * is none, as with "max". */
static bool read_number(const char *folder, const char *name, const char *key, uint64_t *ret_number)
{
	char path[PATH_MAX], line[128];
	unsigned long long number = 0;
	bool found = false;
	if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
		return false;
	FILE *file = fopen(path, "re");
	size_t length = strlen(key);
	while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
		found = strncmp(line, key, length) == 0 && sscanf(line + length, "%llu", &number) == 1;
	if (file != NULL)
		fclose(file);
	*ret_number = number;
	return found;
}

uint64_t sw_share_host_room(const char *groups, const char *own)
{
	char folder[PATH_MAX];
	uint64_t room = UINT64_MAX, most, used;
	size_t root = strlen(groups);
	if ((size_t)snprintf(folder, sizeof folder, "%s%s", groups, own) >= sizeof folder)
		return room;
	for (char *end = folder + strlen(folder); end != NULL; end = strrchr(folder, '/')) {
		*end = '\0';
		if (strlen(folder) < root)
			break;
		if (!read_number(folder, "memory.max", "", &most) || !read_number(folder, "memory.current", "", &used))
			continue;
		/* What files left there is given up for it. */
		uint64_t cache = 0;
		(void)read_number(folder, "memory.stat", "inactive_file ", &cache);
		used = used > cache ? used - cache : 0;
		uint64_t left = most > used ? most - used : 0;
		room = left < room ? left : room;
	}
	return room;
}

uint64_t sw_share_host_total(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	uint64_t bytes = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0, most;
	return read_number(GROUPS, "memory.max", "", &most) && most < bytes ? most : bytes;
}

/* Where we are in the tree of groups; an empty text: not known. */
static void own_group(char group[PATH_MAX])
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	group[0] = '\0';
	while (file != NULL && fgets(group, PATH_MAX, file) != NULL) {
		if (strncmp(group, "0::/", 4) == 0) {
			memmove(group, group + 3, strlen(group + 3) + 1);
			group[strcspn(group, "\n")] = '\0';
			break;
		}
		group[0] = '\0';
	}
	if (file != NULL)
		fclose(file);
}

uint64_t sw_share_host_budget(void)
{
	char group[PATH_MAX];
	uint64_t bytes = available_bytes();
	long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	if (bytes == 0 && pages > 0 && size > 0)
		bytes = (uint64_t)pages * (uint64_t)size;
	own_group(group);
	uint64_t room = sw_share_host_room(GROUPS, group);
	return (bytes < room ? bytes : room) / 2;
}
