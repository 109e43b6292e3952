/* Changing the file of tokens. What is written becomes the file when it is complete; a process that
 * changes it holds a lock on its folder. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "api/http.h"
#include "api/routes.h"
#include "base/file.h"
#include "server/tokens.h"

#define FILE_MAX ((size_t)4 << 20)
#define FRESH_BYTES ((SW_TOKEN_SIZE - 1) / 2)

static int fail(struct sw_err *err, const char *path, int error)
{
	sw_err_set(err, SW_EIO, "cannot change the tokens in '%s'", path);
	sw_err_detail(err, "%s", strerror(error));
	return SW_EIO;
}

static int make_token(char text[SW_TOKEN_SIZE], struct sw_err *err)
{
	unsigned char bytes[FRESH_BYTES];
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return sw_err_set(err, SW_EIO, "the system gives no random numbers");
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* "sha256:..." */
static const char *hash_of(const char *token, char text[80])
{
	unsigned char digest[SW_TOKEN_DIGEST];
	sw_token_digest(token, digest);
	int used = snprintf(text, 80, "sha256:");
	for (size_t i = 0; i < sizeof digest; i++)
		used += snprintf(text + used, 80 - (size_t)used, "%02x", digest[i]);
	return text;
}

/* ---- files */

static int write_file(const char *path, const char *text, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *temporary = NULL;
	if (asprintf(&temporary, "%s.new", path) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	unlink(temporary);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	size_t size = strlen(text);
	bool good = fd >= 0 && write(fd, text, size) == (ssize_t)size && fsync(fd) == 0 && rename(temporary, path) == 0;
	int error = errno;
	if (fd >= 0)
		close(fd);
	if (good)
		return 0;
	unlink(temporary);
	return fail(err, path, error);
}

/* The folder of the file, locked; the lock ends when it is closed. */
static int lock_folder(const char *path, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *folder = strdup(path);
	if (folder == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	char *slash = strrchr(folder, '/');
	if (slash != NULL)
		*slash = '\0';
	int fd = open(slash != NULL ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX) == 0)
		return fd;
	int error = errno;
	if (fd >= 0)
		close(fd);
	return fail(err, path, error);
}

/* ---- changes */

static int make_files(const char *path, struct sw_err *err)
{
	char user[SW_TOKEN_SIZE], operator[SW_TOKEN_SIZE], agent[SW_TOKEN_SIZE], hashes[3][80];
	int r = make_token(user, err);
	r = r < 0 ? r : make_token(operator, err);
	r = r < 0 ? r : make_token(agent, err);
	if (r < 0)
		return r;
	SW_CLEANUP(sw_freep) char *text = NULL, *own = NULL, *own_path = NULL;
	if (asprintf(&text,
		     "# Tokens of Sharewell: role secret [uid[:gid] [name [key=value...]]]. 'sharewell token' changes this.\n"
		     "operator %s\nagent %s\nuser %s %u:%u\n",
		     hash_of(operator, hashes[0]), hash_of(agent, hashes[1]), hash_of(user, hashes[2]), geteuid(), getegid()) < 0 ||
	    asprintf(&own,
		     "# For programs beside the controller, and for no others.\n"
		     "operator %s\nagent %s\nuser %s %u:%u\n",
		     operator, agent, user, geteuid(), getegid()) < 0 ||
	    asprintf(&own_path, "%s.own", path) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	/* The list last: as long as it is not there, all of this is done again. */
	r = write_file(own_path, own, err);
	return r < 0 ? r : write_file(path, text, err);
}

int sw_tokens_make(const char *path, struct sw_err *err)
{
	int lock = lock_folder(path, err);
	if (lock < 0)
		return lock;
	int r = access(path, F_OK) == 0 ? 0 : make_files(path, err);
	close(lock);
	return r;
}

static bool is_name(const char *name)
{
	for (const char *at = name; *at != '\0'; at++)
		if (*at <= ' ' || *at >= 0x7F || *at == '#')
			return false;
	return strlen(name) <= SW_TOKEN_NAME_MAX && strcmp(name, "-") != 0;
}

/* By its id or name a token is taken back: another one must not answer to it. */
static int check_new(const struct sw_tokens *tokens, const char *name, struct sw_err *err)
{
	for (size_t i = 0; name[0] != '\0' && i < sw_tokens_count(tokens); i++) {
		struct sw_token_view view;
		sw_tokens_view(tokens, i, &view);
		if (strcmp(view.name, name) != 0 && strcmp(view.id, name) != 0)
			continue;
		sw_err_set(err, SW_EINPUT, "there is a token '%.100s' already", name);
		sw_err_hint(err, "Choose another name, or take the old one back first: sharewell token revoke %.100s", name);
		return SW_EINPUT;
	}
	if (sw_tokens_count(tokens) >= SW_TOKENS_MAX)
		return sw_err_set(err, SW_ELIMIT, "there are %u tokens already", SW_TOKENS_MAX);
	return 0;
}

static int add_line(const char *path, const struct sw_token_owner *owner, const char *name, char token[SW_TOKEN_SIZE], struct sw_err *err)
{
	/* What is there must be right, before and after. */
	SW_CLEANUP(sw_tokens_freep) struct sw_tokens *tokens = NULL;
	SW_CLEANUP(sw_freep) char *text = NULL, *longer = NULL;
	size_t size = 0;
	char hash[80];
	int r = sw_tokens_read(path, &tokens, err);
	r = r < 0 ? r : check_new(tokens, name, err);
	r = r < 0 ? r : sw_file_read(path, FILE_MAX, &text, &size, err);
	r = r < 0 ? r : make_token(token, err);
	if (r < 0)
		return r;
	char expires[40] = "";
	if (owner->expires_at_s != 0)
		snprintf(expires, sizeof expires, " expires=%lld", (long long)owner->expires_at_s);
	if (asprintf(&longer, "%.*s%s%s %s %u:%u %s%s%s%s\n", (int)size, text, size > 0 && text[size - 1] != '\n' ? "\n" : "",
		     sw_role_name(owner->role), hash_of(token, hash), owner->uid, owner->gid, name[0] != '\0' ? name : "-", expires,
		     owner->nodes[0] != '\0' ? " nodes=" : "", owner->nodes) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	return write_file(path, longer, err);
}

int sw_tokens_add(const char *path, const struct sw_token_owner *owner, const char *name, char ret_token[SW_TOKEN_SIZE], struct sw_err *err)
{
	char token[SW_TOKEN_SIZE];
	if (!is_name(name)) {
		sw_err_set(err, SW_EINPUT, "a token cannot be called '%.100s'", name);
		sw_err_detail(err, "names have at most %u visible characters, no '#', and are not '-'", SW_TOKEN_NAME_MAX);
		return SW_EINPUT;
	}
	int lock = lock_folder(path, err);
	if (lock < 0)
		return lock;
	int r = add_line(path, owner, name, token, err);
	close(lock);
	if (r == 0)
		memcpy(ret_token, token, sizeof token);
	return r;
}

/* The number of the only token of this id or name. */
static int find(const struct sw_tokens *tokens, const char *which, size_t *ret_index, struct sw_err *err)
{
	size_t found = 0;
	for (size_t i = 0; i < sw_tokens_count(tokens); i++) {
		struct sw_token_view view;
		sw_tokens_view(tokens, i, &view);
		if (strcmp(view.id, which) != 0 && (view.name[0] == '\0' || strcmp(view.name, which) != 0))
			continue;
		*ret_index = i;
		found++;
	}
	if (found == 1)
		return 0;
	sw_err_set(err, found == 0 ? SW_ENOTFOUND : SW_EINPUT,
		   found == 0 ? "there is no token '%.100s'" : "several tokens are called '%.100s'", which);
	sw_err_hint(err, "'sharewell token list' tells their ids.");
	return found == 0 ? SW_ENOTFOUND : SW_EINPUT;
}

/* Whether a line has a token, as sw_tokens_read() counts them. */
static bool has_token(const char *line)
{
	line += strspn(line, " \t\r");
	return *line != '\0' && *line != '\n' && *line != '#';
}

static int remove_line(const char *path, const char *which, struct sw_err *err)
{
	SW_CLEANUP(sw_tokens_freep) struct sw_tokens *tokens = NULL;
	SW_CLEANUP(sw_freep) char *text = NULL, *shorter = NULL;
	size_t size = 0, index = 0, used = 0, seen = 0;
	int r = sw_tokens_read(path, &tokens, err);
	r = r < 0 ? r : find(tokens, which, &index, err);
	r = r < 0 ? r : sw_file_read(path, FILE_MAX, &text, &size, err);
	if (r < 0)
		return r;
	shorter = calloc(1, size + 2);
	if (shorter == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		bool is_it = has_token(line) && seen++ == index;
		if (!is_it && (rest != NULL || *line != '\0'))
			used += (size_t)sprintf(shorter + used, "%s\n", line);
	}
	return write_file(path, shorter, err);
}

int sw_tokens_remove(const char *path, const char *which, struct sw_err *err)
{
	int lock = lock_folder(path, err);
	if (lock < 0)
		return lock;
	int r = remove_line(path, which, err);
	close(lock);
	return r;
}
