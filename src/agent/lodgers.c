#include "agent/lodgers.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/processes.h"

enum { STEP = 1 << 14, MAPS_MAX = 1 << 24, OVERLAP = 16 };

/* Names of processes are bytes of their own choice. */
static void clean(const char *text, size_t length, char *ret_text, size_t size)
{
	size_t used = 0;
	for (size_t i = 0; i < length && text[i] != '\0' && text[i] != '\n' && used + 1 < size; i++)
		ret_text[used++] = text[i] > ' ' && text[i] < 0x7f ? text[i] : '?';
	ret_text[used] = '\0';
}

enum use { USE_NONE, USE_ENDING, USE_DRIVER };

/* Whether something of the driver lies in its memory; one without any memory is ending. */
static enum use find_driver(uint32_t pid)
{
	char path[40], text[OVERLAP + STEP + 1];
	snprintf(path, sizeof path, "/proc/%u/maps", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ESRCH ? USE_ENDING : USE_DRIVER; /* another user's: the driver is believed */
	enum use use = USE_ENDING;
	size_t kept = 0, total = 0;
	for (ssize_t n; total < MAPS_MAX && (n = read(fd, text + kept, STEP)) > 0; total += (size_t)n) {
		size_t size = kept + (size_t)n;
		use = USE_NONE;
		if (memmem(text, size, "nvidia", 6) != NULL || memmem(text, size, "libcuda.", 8) != NULL) {
			use = USE_DRIVER;
			break;
		}
		kept = size < OVERLAP ? size : OVERLAP;
		memmove(text, text + size - kept, kept);
	}
	/* Where its memory may not be looked at, some systems let the file be
	 * opened and not be read. */
	if (use == USE_ENDING && total == 0 && read(fd, text, 1) < 0)
		use = USE_DRIVER;
	close(fd);
	return use;
}

static enum use find_driver_once(struct sw_lodgers *lodgers, const struct sw_process *process)
{
	const size_t count = sizeof lodgers->drivers / sizeof lodgers->drivers[0];
	for (size_t i = 0; i < count; i++)
		if (lodgers->drivers[i].pid == (uint32_t)process->pid && lodgers->drivers[i].started == process->started)
			return USE_DRIVER;
	enum use use = find_driver((uint32_t)process->pid);
	if (use == USE_DRIVER) {
		lodgers->drivers[lodgers->next].pid = (uint32_t)process->pid;
		lodgers->drivers[lodgers->next].started = process->started;
		lodgers->next = (lodgers->next + 1) % count;
	}
	return use;
}

static void name_user(struct sw_lodgers *lodgers, uid_t uid, char *ret_name, size_t size)
{
	const size_t count = sizeof lodgers->users / sizeof lodgers->users[0];
	for (size_t i = 0; i < count; i++)
		if (lodgers->users[i].name[0] != '\0' && lodgers->users[i].uid == uid) {
			snprintf(ret_name, size, "%s", lodgers->users[i].name);
			return;
		}
	char buffer[4096];
	struct passwd entry, *found = NULL;
	if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) == 0 && found != NULL)
		clean(found->pw_name, strlen(found->pw_name), ret_name, size);
	else
		snprintf(ret_name, size, "user %u", (unsigned)uid);
	lodgers->users[lodgers->next_user].uid = uid;
	snprintf(lodgers->users[lodgers->next_user].name, sizeof lodgers->users[0].name, "%s", ret_name);
	lodgers->next_user = (lodgers->next_user + 1) % count;
}

static void name_program(uint32_t pid, char *ret_name, size_t size)
{
	char path[40], text[64];
	snprintf(path, sizeof path, "/proc/%u/comm", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;
	if (fd >= 0)
		close(fd);
	clean(text, n > 0 ? (size_t)n : 0, ret_name, size);
}

void sw_lodgers_look(struct sw_lodgers *lodgers, uint32_t pid, struct sw_lodger_view *ret_lodger)
{
	struct sw_process process;
	struct stat about;
	char path[40];
	*ret_lodger = (struct sw_lodger_view){.pid = pid, .kind = SW_LODGER_HIDDEN};
	if (pid == 0 || pid > INT32_MAX || !sw_process_read((pid_t)pid, &process))
		return;
	enum use use = process.state == 'Z' || process.state == 'X' ? USE_ENDING : find_driver_once(lodgers, &process);
	ret_lodger->kind = use == USE_DRIVER ? SW_LODGER_STRANGER : use == USE_ENDING ? SW_LODGER_ENDING : SW_LODGER_HIDDEN;
	if (use == USE_NONE)
		return;
	snprintf(path, sizeof path, "/proc/%u", pid);
	if (stat(path, &about) == 0)
		name_user(lodgers, about.st_uid, ret_lodger->user, sizeof ret_lodger->user);
	name_program(pid, ret_lodger->program, sizeof ret_lodger->program);
	ret_lodger->is_light = sw_fitness_is_service(ret_lodger->program);
}

bool sw_lodger_line_is_below(const char *line, const char *group)
{
	size_t size = strlen(group);
	return size > 0 && strncmp(line, "0::", 3) == 0 && strncmp(line + 3, group, size) == 0 && line[3 + size] == '/';
}

bool sw_lodger_is_in_group(uint32_t pid, const char *group)
{
	char path[40], line[4096];
	snprintf(path, sizeof path, "/proc/%u/cgroup", pid);
	FILE *file = group[0] != '\0' ? fopen(path, "re") : NULL;
	bool is_in = false;
	while (file != NULL && !is_in && fgets(line, sizeof line, file) != NULL)
		is_in = sw_lodger_line_is_below(line, group);
	if (file != NULL)
		fclose(file);
	return is_in;
}
