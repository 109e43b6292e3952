#include "agent/kept_logs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/folder.h"
#include "base/number.h"

#define SUFFIX ".log"

static char *name_of(struct sw_run_id id, char name[SW_FOLDER_NAME_MAX + 8])
{
	char run[SW_FOLDER_NAME_MAX];
	snprintf(name, SW_FOLDER_NAME_MAX + 8, "%s" SUFFIX, sw_folder_name(id, run));
	return name;
}

static bool parse(const char *name, struct sw_run_id *ret_id)
{
	char run[SW_FOLDER_NAME_MAX];
	size_t length = strlen(name), suffix = strlen(SUFFIX);
	if (length <= suffix || length - suffix >= sizeof run || strcmp(name + length - suffix, SUFFIX) != 0)
		return false;
	memcpy(run, name, length - suffix);
	run[length - suffix] = '\0';
	return sw_folder_parse(run, ret_id);
}

static int compare(const void *a, const void *b)
{
	const struct sw_kept_log *left = a, *right = b;
	if (left->at_ns != right->at_ns)
		return left->at_ns < right->at_ns ? -1 : 1;
	return sw_run_id_compare(left->id, right->id);
}

/* False: it cannot be remembered. */
static bool add(struct sw_kept_logs *logs, struct sw_run_id id, const struct stat *info)
{
	struct sw_kept_log *log = sw_vec_push(&logs->list);
	if (log == NULL)
		return false;
	/* What it takes on the disk, but at least something, so that empty ones count too. */
	*log = (struct sw_kept_log){id, (uint64_t)info->st_blocks * 512 + 512,
				    (int64_t)info->st_mtim.tv_sec * SW_NS_PER_S + info->st_mtim.tv_nsec};
	logs->bytes += log->bytes;
	return true;
}

static void drop_oldest(struct sw_kept_logs *logs)
{
	size_t gone = 0;
	char name[SW_FOLDER_NAME_MAX + 8];
	while (gone < logs->list.count && (logs->bytes > logs->limit_bytes || logs->list.count - gone > SW_KEPT_LOGS_MAX)) {
		unlinkat(logs->folder, name_of(logs->list.items[gone].id, name), 0);
		logs->bytes -= logs->list.items[gone++].bytes;
	}
	if (gone == 0)
		return;
	logs->list.count -= gone;
	memmove(logs->list.items, logs->list.items + gone, logs->list.count * sizeof *logs->list.items);
}

int sw_kept_logs_open(struct sw_kept_logs *logs, int state, uint64_t limit_bytes)
{
	*logs = (struct sw_kept_logs){.folder = -1, .limit_bytes = limit_bytes};
	if (limit_bytes == 0)
		return 0;
	if (mkdirat(state, "logs", 0700) != 0 && errno != EEXIST)
		return SW_EIO;
	logs->folder = openat(state, "logs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int again = logs->folder >= 0 ? openat(logs->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	DIR *stream = again >= 0 ? fdopendir(again) : NULL;
	if (stream == NULL)
		return SW_EIO;
	int r = 0;
	for (const struct dirent *entry; r == 0 && (entry = readdir(stream)) != NULL;) {
		struct sw_run_id id;
		struct stat info;
		if (parse(entry->d_name, &id) && fstatat(logs->folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
		    !add(logs, id, &info))
			r = SW_ENOMEM;
	}
	closedir(stream);
	if (logs->list.count > 1)
		qsort(logs->list.items, logs->list.count, sizeof *logs->list.items, compare);
	drop_oldest(logs);
	return r;
}

void sw_kept_logs_keep(struct sw_kept_logs *logs, int run_folder, struct sw_run_id id)
{
	char name[SW_FOLDER_NAME_MAX + 8];
	struct stat info;
	if (logs->folder < 0 || fstatat(run_folder, "out.log", &info, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	if (renameat(run_folder, "out.log", logs->folder, name_of(id, name)) != 0)
		return;
	if (!add(logs, id, &info))
		unlinkat(logs->folder, name, 0);
	drop_oldest(logs);
}

void sw_kept_logs_close(struct sw_kept_logs *logs)
{
	if (logs->folder >= 0)
		close(logs->folder);
	logs->folder = -1;
	sw_vec_free(&logs->list);
}
