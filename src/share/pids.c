#include "share/pids.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Whether the process has that file open; what may not be looked at counts as `unknown`. */
static bool has_open(pid_t pid, const struct stat *wanted, bool unknown)
{
	char path[64];
	struct stat about;
	bool found = false;
	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	DIR *folder = opendir(path);
	if (folder == NULL)
		return errno == EACCES && unknown;
	for (const struct dirent *entry; !found && (entry = readdir(folder)) != NULL;)
		found = fstatat(dirfd(folder), entry->d_name, &about, 0) == 0 && about.st_dev == wanted->st_dev &&
			about.st_ino == wanted->st_ino;
	closedir(folder);
	return found;
}

/* Its number in its innermost namespace; 0: it is gone. */
static pid_t own_number(pid_t pid)
{
	char path[64], line[256];
	pid_t number = 0;
	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");
	while (file != NULL && fgets(line, sizeof line, file) != NULL) {
		const char *last = strrchr(line, '\t');
		if (strncmp(line, "NSpid:", 6) == 0 && last != NULL)
			number = (pid_t)strtol(last, NULL, 10);
	}
	if (file != NULL)
		fclose(file);
	return number;
}

pid_t sw_share_pid(struct sw_share_page *page, pid_t pid)
{
	struct stat file;
	if (fstat(sw_share_page_fd(page), &file) != 0 || has_open(pid, &file, true))
		return pid;
	pid_t found = 0;
	DIR *all = opendir("/proc");
	for (const struct dirent *entry; all != NULL && found == 0 && (entry = readdir(all)) != NULL;) {
		pid_t other = (pid_t)strtol(entry->d_name, NULL, 10);
		if (other > 0 && own_number(other) == pid && has_open(other, &file, false))
			found = other;
	}
	if (all != NULL)
		closedir(all);
	return found;
}
