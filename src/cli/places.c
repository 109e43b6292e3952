#include "cli/places.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char *setting(const char *name)
{
	const char *value = getenv(name);
	return value != NULL && value[0] != '\0' ? value : NULL;
}

__attribute__((format(printf, 3, 4))) static int put(char path[PATH_MAX], struct sw_err *err, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int size = vsnprintf(path, PATH_MAX, fmt, args);
	va_end(args);
	return size >= 0 && size < PATH_MAX ? 0 : sw_err_set(err, SW_EINPUT, "the path of the state folder is too long");
}

static int find_state(const char *state, bool for_all, char path[PATH_MAX], struct sw_err *err)
{
	state = state != NULL ? state : for_all ? SW_CLI_STATE_FOR_ALL : setting("SHAREWELL_STATE");
	if (state != NULL && state[0] == '/')
		return put(path, err, "%s", state);
	if (state != NULL) {
		char here[PATH_MAX];
		if (getcwd(here, sizeof here) == NULL)
			return sw_err_set(err, SW_EIO, "cannot find the current folder");
		return put(path, err, "%s/%s", here, state);
	}
	/* A relative path in these is to be ignored: the specification of the
	 * XDG directories says so. */
	const char *base = setting("XDG_STATE_HOME"), *home = setting("HOME");
	if (base != NULL && base[0] == '/')
		return put(path, err, "%s/sharewell", base);
	if (home != NULL && home[0] == '/')
		return put(path, err, "%s/.local/state/sharewell", home);
	sw_err_set(err, SW_EINPUT, "there is no place for the state of the cluster");
	sw_err_detail(err, "neither HOME nor XDG_STATE_HOME is set");
	sw_err_hint(err, "Name a folder with --state.");
	return SW_EINPUT;
}

static bool is_own_folder(const char *path)
{
	struct stat status;
	return path != NULL && path[0] == '/' && stat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

static int find_socket(const char *named, bool for_all, struct sw_cli_places *places, struct sw_err *err)
{
	const char *runtime = setting("XDG_RUNTIME_DIR");
	bool is_named = named != NULL || setting("SHAREWELL_STATE") != NULL;
	int r;
	if (for_all && named == NULL)
		r = put(places->socket, err, "%s", SW_CLI_SOCKET_FOR_ALL);
	else if (!is_named && is_own_folder(runtime))
		r = put(places->socket, err, "%s/sharewell/controller.sock", runtime);
	else
		r = put(places->socket, err, "%s/controller.sock", places->state);
	if (r == 0 && strlen(places->socket) >= sizeof((struct sockaddr_un *)0)->sun_path) {
		sw_err_set(err, SW_EINPUT, "the path of the socket '%.200s' is too long", places->socket);
		sw_err_hint(err, "The kernel takes at most %zu bytes; name a shorter folder with --state.",
			    sizeof((struct sockaddr_un *)0)->sun_path - 1);
		return SW_EINPUT;
	}
	return r;
}

int sw_cli_places(const char *state, bool for_all, struct sw_cli_places *ret_places, struct sw_err *err)
{
	struct sw_cli_places places;
	int r = find_state(state, for_all, places.state, err);
	r = r < 0 ? r : put(places.journal, err, "%s/journal.db", places.state);
	r = r < 0 ? r : put(places.runs, err, "%s/runs", places.state);
	r = r < 0 ? r : put(places.tokens, err, "%s/tokens", places.state);
	r = r < 0 ? r : find_socket(state, for_all, &places, err);
	if (r == 0)
		*ret_places = places;
	return r;
}

/* The folder and those above it. */
static int make_folder(const char *path, mode_t mode, struct sw_err *err)
{
	char part[PATH_MAX];
	snprintf(part, sizeof part, "%s", path);
	for (char *slash = strchr(part + 1, '/');; slash = strchr(slash + 1, '/')) {
		if (slash != NULL)
			*slash = '\0';
		struct stat status;
		bool there = stat(part, &status) == 0 && S_ISDIR(status.st_mode);
		if (!there && mkdir(part, mode) != 0 && errno != EEXIST) {
			sw_err_set(err, SW_EIO, "cannot make folder '%s'", part);
			sw_err_detail(err, "%s", strerror(errno));
			return SW_EIO;
		}
		/* Whatever the umask is: a folder that is for all would be of no use to them. */
		if (!there)
			chmod(part, mode);
		if (slash == NULL)
			return 0;
		*slash = '/';
	}
}

int sw_cli_places_make(const struct sw_cli_places *places, bool for_all, struct sw_err *err)
{
	char folder[PATH_MAX];
	snprintf(folder, sizeof folder, "%s", places->socket);
	*strrchr(folder, '/') = '\0';
	int r = make_folder(places->state, 0700, err);
	r = r < 0 ? r : make_folder(places->runs, 0700, err);
	return r < 0 ? r : make_folder(folder, for_all ? 0755 : 0700, err);
}
