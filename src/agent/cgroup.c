#include "agent/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* 0 or an errno. */
static int put(int folder, const char *name, const char *text)
{
	int fd = openat(folder, name, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	int error = write(fd, text, strlen(text)) < 0 ? errno : 0;
	close(fd);
	return error;
}

static void add_note(char *note, size_t size, const char *text)
{
	size_t used = strlen(note);
	snprintf(note + used, size - used, "%s%s", used > 0 ? "; " : "", text);
}

static bool is_below(const char *path, const char *folder)
{
	size_t size = strlen(folder);
	return strncmp(path, folder, size) == 0 && path[size] == '/';
}

/* Where version 2 is mounted; of several places the first, or the one that `folder` is in if it is
 * not NULL. 0 or an errno. */
static int find_mount(const char *folder, char *path, size_t size)
{
	SW_CLEANUP(sw_fclosep) FILE *file = fopen("/proc/self/mounts", "re");
	if (file == NULL)
		return errno;
	char line[4096], place[2048], kind[64];
	while (fgets(line, sizeof line, file) != NULL)
		if (sscanf(line, "%*s %2047s %63s", place, kind) == 2 && strcmp(kind, "cgroup2") == 0 &&
		    (folder == NULL || is_below(folder, place))) {
			snprintf(path, size, "%s", place);
			return 0;
		}
	return ENOENT;
}

/* The group of this process, below the mount; 0 or an errno. */
static int find_own(char *path, size_t size)
{
	SW_CLEANUP(sw_fclosep) FILE *file = fopen("/proc/self/cgroup", "re");
	if (file == NULL)
		return errno;
	char line[4096];
	while (fgets(line, sizeof line, file) != NULL)
		if (strncmp(line, "0::", 3) == 0) {
			line[strcspn(line, "\n")] = '\0';
			const char *own = strcmp(line + 3, "/") == 0 ? "" : line + 3;
			return (size_t)snprintf(path, size, "%s", own) < size ? 0 : ENAMETOOLONG;
		}
	return ENOENT;
}

int sw_cgroup_group(const char *folder, char *group, size_t size)
{
	char whole[PATH_MAX], mount[2048];
	if (realpath(folder, whole) == NULL)
		return errno;
	int error = find_mount(whole, mount, sizeof mount);
	if (error != 0)
		return error;
	return (size_t)snprintf(group, size, "%s", whole + strlen(mount)) < size ? 0 : ENAMETOOLONG;
}

static int enable_both(int folder)
{
	int error = put(folder, "cgroup.subtree_control", "+memory");
	return error != 0 ? error : put(folder, "cgroup.subtree_control", "+cpu");
}

/* Lets the groups below have limits. Processes may not be where that is switched on, so the agent
 * first moves into a group of its own. */
static int enable(int folder)
{
	int error = enable_both(folder);
	if (error != EBUSY)
		return error;
	if (mkdirat(folder, "agent", 0755) != 0 && errno != EEXIST)
		return errno;
	error = put(folder, "agent/cgroup.procs", "0");
	return error != 0 ? error : enable_both(folder);
}

int sw_cgroup_prepare(const char *name, char *path, size_t size, char *note, size_t note_size)
{
	note[0] = '\0';
	char mount[2048], own[2048];
	int error = find_mount(NULL, mount, sizeof mount);
	if (error == 0)
		error = find_own(own, sizeof own);
	if (error != 0)
		return error;
	/* The agent of an earlier start may have moved us. */
	char *slash = strrchr(own, '/');
	if (slash != NULL && strcmp(slash, "/agent") == 0)
		*slash = '\0';
	char whole[4200];
	snprintf(whole, sizeof whole, "%s%s", mount, own);
	int folder = open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return errno;
	error = faccessat(folder, "cgroup.procs", W_OK, AT_EACCESS) != 0 ? errno : 0;
	if (error == 0 && mkdirat(folder, name, 0755) != 0 && errno != EEXIST)
		error = errno;
	int runs = error == 0 ? openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (error == 0 && (enable(folder) != 0 || enable_both(runs) != 0))
		add_note(note, note_size, "limits of memory and processor cannot be set here");
	if (runs >= 0)
		close(runs);
	close(folder);
	if (error == 0 && (size_t)snprintf(path, size, "%s/%s", whole, name) >= size)
		error = ENAMETOOLONG;
	return error;
}

int sw_cgroup_open(struct sw_cgroup *group, const char *base, const char *name, uint32_t cpus, uint64_t memory_bytes, char *note,
		   size_t note_size)
{
	*group = (struct sw_cgroup){.folder = -1, .parent = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	if (group->parent < 0)
		return errno;
	snprintf(group->name, sizeof group->name, "%s", name);
	int error = mkdirat(group->parent, name, 0755) != 0 && errno != EEXIST ? errno : 0;
	if (error == 0)
		group->folder = openat(group->parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (error == 0 && group->folder < 0)
		error = errno;
	if (error != 0) {
		close(group->parent);
		return error;
	}
	char text[64];
	snprintf(text, sizeof text, "%" PRIu64, memory_bytes);
	if (memory_bytes > 0) {
		group->limits_memory = put(group->folder, "memory.max", text) == 0;
		if (!group->limits_memory)
			add_note(note, note_size, "its memory is not limited");
	}
	snprintf(text, sizeof text, "%" PRIu64 " 100000", (uint64_t)cpus * 100000);
	if (cpus > 0 && put(group->folder, "cpu.max", text) != 0)
		add_note(note, note_size, "its processor time is not limited");
	return 0;
}

int sw_cgroup_procs(const struct sw_cgroup *group)
{
	return group->folder < 0 ? -1 : openat(group->folder, "cgroup.procs", O_WRONLY | O_CLOEXEC);
}

bool sw_cgroup_kill(const struct sw_cgroup *group)
{
	return group->folder >= 0 && put(group->folder, "cgroup.kill", "1") == 0;
}

bool sw_cgroup_ran_out(const struct sw_cgroup *group)
{
	int fd = group->folder >= 0 && group->limits_memory ? openat(group->folder, "memory.events", O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return false;
	char text[512];
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *kills = strstr(text, "oom_kill ");
	return kills != NULL && strtoull(kills + strlen("oom_kill "), NULL, 10) > 0;
}

void sw_cgroup_close(struct sw_cgroup *group)
{
	if (group->folder < 0)
		return;
	close(group->folder);
	unlinkat(group->parent, group->name, AT_REMOVEDIR);
	close(group->parent);
	group->folder = -1;
}
