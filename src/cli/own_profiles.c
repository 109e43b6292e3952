#include "cli/own_profiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "cli/places.h"

#define PATIENCE 100 /* tenths of a second: the process that has the lock reads and writes one small file */

int sw_cli_own_profiles_path(const char *state, bool for_all, char path[PATH_MAX], struct sw_err *err)
{
	struct sw_cli_places places;
	int r = sw_cli_places(state, for_all, &places, err);
	if (r < 0)
		return r;
	int size = snprintf(path, PATH_MAX, "%s/profiles.yaml", places.state);
	return size < PATH_MAX ? 0 : sw_err_set(err, SW_EINPUT, "the path of the state folder is too long");
}

int sw_cli_own_profiles_load(const char *path, bool is_named, struct sw_profiles **ret_profiles, struct sw_err *err)
{
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = NULL;
	SW_CLEANUP(sw_store_freep) struct sw_store *store = NULL;
	if (is_named && access(path, F_OK) != 0) {
		sw_err_set(err, SW_ENOTFOUND, "cannot read measured profiles '%.200s'", path);
		sw_err_detail(err, "%s", strerror(errno));
		sw_err_hint(err, "'sharewell profile -- COMMAND' measures some; 'sharewell profile --list' says where they are.");
		return SW_ENOTFOUND;
	}
	int r = sw_profiles_load_default(&profiles, err);
	if (r == 0 && path != NULL)
		r = sw_store_load(path, &store, err);
	if (r == 0 && path != NULL)
		r = sw_store_apply(store, profiles, err);
	if (r == 0)
		*ret_profiles = SW_TAKE(profiles);
	return r;
}

/* On a file beside it, for the store itself is replaced. */
static int lock(const char *path, int *ret_fd, struct sw_err *err)
{
	char name[PATH_MAX + 8];
	snprintf(name, sizeof name, "%s.lock", path);
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (int i = 0; fd >= 0 && i < PATIENCE; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
			*ret_fd = fd;
			return 0;
		}
		nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	}
	sw_err_set(err, SW_EIO, "cannot change measured profiles '%.200s'", path);
	sw_err_detail(err, "%s", fd < 0 ? strerror(errno) : "another program has been changing them for 10 s");
	if (fd >= 0)
		close(fd);
	return SW_EIO;
}

int sw_cli_own_profiles_change(const char *path, sw_cli_own_profiles_fn *change, void *user, struct sw_err *err)
{
	SW_CLEANUP(sw_store_freep) struct sw_store *store = NULL;
	int fd = -1, r = lock(path, &fd, err);
	r = r < 0 ? r : sw_store_load(path, &store, err);
	r = r < 0 ? r : change(user, store, err);
	r = r < 0 ? r : sw_store_save(store, path, err);
	if (fd >= 0)
		close(fd);
	return r;
}
