#include "client/token.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/http.h"
#include "api/routes.h"
#include "base/cleanup.h"
#include "base/file.h"

#define FILE_MAX ((size_t)4 << 20)

/* The first token of the role among these lines that is no hash; NULL: none. */
static char *first_of(char *text, unsigned role)
{
	char *rest = text, *found = NULL;
	for (char *line; found == NULL && (line = strsep(&rest, "\n")) != NULL;) {
		char *words = line, *first = strsep(&words, " \t\r"), *second = words != NULL ? strsep(&words, " \t\r") : NULL;
		bool alone = (second == NULL || *second == '\0') && strlen(first) >= SW_HTTP_TOKEN_LEAST && *first != '#';
		if (alone)
			found = first;
		else if (second != NULL && sw_role_find(first) == role && strlen(second) >= SW_HTTP_TOKEN_LEAST &&
			 strncmp(second, "sha256:", 7) != 0)
			found = second;
	}
	return found != NULL ? strdup(found) : NULL;
}

static int check_private(const char *path, struct sw_err *err)
{
	struct stat info;
	if (stat(path, &info) == 0 && (info.st_mode & 077) != 0) {
		sw_err_set(err, SW_EDENIED, "cannot use the tokens of '%s'", path);
		sw_err_detail(err, "others can read it");
		sw_err_hint(err, "chmod 600 it, and make new tokens if they may have been read.");
		return SW_EDENIED;
	}
	return 0;
}

static int read_first(const char *path, unsigned role, char **ret_token, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size = 0;
	int r = check_private(path, err);
	r = r < 0 ? r : sw_file_read(path, FILE_MAX, &text, &size, err);
	if (r < 0)
		return r;
	assert(text != NULL);
	char *token = first_of(text, role);
	explicit_bzero(text, size);
	if (token == NULL)
		return sw_err_set(err, SW_ENOTFOUND, "there is no token of this role in '%s'", path);
	*ret_token = token;
	return 0;
}

int sw_token_first(const char *path, unsigned role, char **ret_token, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *own = NULL;
	struct sw_err ignored = {0};
	if (asprintf(&own, "%s.own", path) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	if (read_first(own, role, ret_token, &ignored) == 0)
		return 0;
	return read_first(path, role, ret_token, err);
}
