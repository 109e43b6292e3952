#include "controller/tokens.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/http.h"
#include "api/routes.h"
#include "base/file.h"
#include "base/number.h"
#include "base/vec.h"

#define FILE_MAX ((size_t)4 << 20)
#define FRESH_BYTES 32

struct entry {
	char *token;
	struct sw_token_owner owner;
};

struct sw_tokens {
	SW_VEC(struct entry) entries;
};

static const struct {
	const char *name;
	unsigned role;
} roles[] = {{"user", SW_ROLE_USER}, {"operator", SW_ROLE_OPERATOR}, {"agent", SW_ROLE_AGENT}};
#define ROLES (sizeof roles / sizeof roles[0])

void sw_tokens_free(struct sw_tokens *tokens)
{
	if (tokens == NULL)
		return;
	for (size_t i = 0; i < tokens->entries.count; i++) {
		explicit_bzero(tokens->entries.items[i].token, strlen(tokens->entries.items[i].token));
		free(tokens->entries.items[i].token);
	}
	sw_vec_free(&tokens->entries);
	free(tokens);
}

static int refuse_line(const char *path, unsigned line, const char *detail, struct sw_err *err)
{
	sw_err_set(err, SW_EINPUT, "cannot use the tokens of '%s'", path);
	sw_err_detail(err, "line %u: %s", line, detail);
	sw_err_hint(err, "A line is 'role token [uid[:gid]]', with the roles user, operator and agent.");
	return SW_EINPUT;
}

/* "1000" or "1000:1000"; the group is the user's number unless told. */
static bool parse_owner(const char *text, struct sw_token_owner *owner)
{
	size_t size = strcspn(text, ":");
	uint64_t uid, gid;
	if (sw_parse_u64(text, size, &uid) < 0 || uid >= UINT32_MAX)
		return false;
	gid = uid;
	if (text[size] == ':' && (sw_parse_u64(text + size + 1, strlen(text + size + 1), &gid) < 0 || gid >= UINT32_MAX))
		return false;
	owner->uid = (uint32_t)uid;
	owner->gid = (uint32_t)gid;
	return true;
}

static int add_line(struct sw_tokens *tokens, const char *path, unsigned number, char *line, struct sw_err *err)
{
	char *rest = line, *words[4] = {NULL};
	size_t count = 0;
	for (char *word; (word = strsep(&rest, " \t\r")) != NULL;) {
		if (*word == '\0')
			continue;
		if (*word == '#')
			break;
		if (count == 4)
			return refuse_line(path, number, "it has too many words", err);
		words[count++] = word;
	}
	if (count == 0)
		return 0;
	unsigned role = 0;
	for (size_t i = 0; i < ROLES; i++)
		if (strcmp(words[0], roles[i].name) == 0)
			role = roles[i].role;
	if (role == 0)
		return refuse_line(path, number, "it does not begin with a role", err);
	if (count < 2 || count > 3 || strlen(words[1]) < SW_TOKEN_LEAST || strlen(words[1]) > SW_HTTP_TOKEN_MAX)
		return refuse_line(path, number, "its token is missing, or not of 32 to 512 characters", err);
	struct sw_token_owner owner = {.role = role, .uid = geteuid(), .gid = getegid()};
	if (count == 3 ? !parse_owner(words[2], &owner) : role == SW_ROLE_USER)
		return refuse_line(path, number, "it does not name a user by number", err);
	if (tokens->entries.count == SW_TOKENS_MAX)
		return refuse_line(path, number, "there are too many tokens", err);
	char *token = strdup(words[1]);
	struct entry *entry = token != NULL ? sw_vec_push(&tokens->entries) : NULL;
	if (entry == NULL) {
		free(token);
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	*entry = (struct entry){token, owner};
	return 0;
}

static int check_file(const char *path, struct sw_err *err)
{
	struct stat info;
	if (stat(path, &info) < 0) {
		int code = errno == ENOENT ? SW_ENOTFOUND : SW_EIO;
		sw_err_set(err, code, "cannot read the tokens of '%s'", path);
		sw_err_detail(err, "%s", strerror(errno));
		return code;
	}
	if ((info.st_mode & 077) == 0 && (info.st_uid == geteuid() || info.st_uid == 0))
		return 0;
	sw_err_set(err, SW_EDENIED, "cannot use the tokens of '%s'", path);
	sw_err_detail(err, "others can read it, or it belongs to somebody else");
	sw_err_hint(err, "chmod 600 it, and make new tokens if they may have been read.");
	return SW_EDENIED;
}

int sw_tokens_read(const char *path, struct sw_tokens **ret_tokens, struct sw_err *err)
{
	int r = check_file(path, err);
	if (r < 0)
		return r;
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size = 0;
	r = sw_file_read(path, FILE_MAX, &text, &size, err);
	if (r < 0)
		return r;
	assert(text != NULL);
	SW_CLEANUP(sw_tokens_freep) struct sw_tokens *tokens = calloc(1, sizeof *tokens);
	if (tokens == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	char *rest = text, *line;
	for (unsigned number = 1; r == 0 && (line = strsep(&rest, "\n")) != NULL; number++)
		r = add_line(tokens, path, number, line, err);
	explicit_bzero(text, size);
	if (r < 0)
		return r;
	*ret_tokens = SW_TAKE(tokens);
	return 0;
}

/* All of both is looked at, whatever differs first. */
static bool same(const char *secret, const char *given)
{
	size_t secret_size = strlen(secret), given_size = strlen(given);
	unsigned difference = secret_size != given_size;
	for (size_t i = 0; i < given_size; i++)
		difference |= (unsigned char)secret[secret_size > 0 ? i % secret_size : 0] ^ (unsigned)(unsigned char)given[i];
	return difference == 0;
}

bool sw_tokens_find(const struct sw_tokens *tokens, const char *token, struct sw_token_owner *ret_owner)
{
	const struct entry *found = NULL;
	for (size_t i = 0; i < tokens->entries.count; i++)
		if (same(tokens->entries.items[i].token, token))
			found = &tokens->entries.items[i];
	if (found == NULL)
		return false;
	*ret_owner = found->owner;
	return true;
}

static int make_token(char text[2 * FRESH_BYTES + 1])
{
	unsigned char bytes[FRESH_BYTES];
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return -1;
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static int write_file(int fd, struct sw_err *err)
{
	char user[2 * FRESH_BYTES + 1], operator[2 * FRESH_BYTES + 1], agent[2 * FRESH_BYTES + 1];
	if (make_token(user) < 0 || make_token(operator) < 0 || make_token(agent) < 0)
		return sw_err_set(err, SW_EIO, "the system gives no random numbers");
	int size = dprintf(fd,
			   "# Tokens of Sharewell: role token [uid[:gid]]. The roles are user, operator and agent.\n"
			   "operator %s\nagent %s\nuser %s %u:%u\n",
			   operator, agent, user, geteuid(), getegid());
	return size > 0 && fsync(fd) == 0 ? 0 : SW_EIO;
}

int sw_tokens_make(const char *path, struct sw_err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST)
		return 0;
	int r = fd >= 0 ? write_file(fd, err) : SW_EIO;
	if (r < 0) {
		sw_err_set(err, r, "cannot make the tokens in '%s'", path);
		sw_err_detail(err, "%s", strerror(errno));
	}
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && r < 0)
		unlink(path);
	return r;
}

int sw_tokens_first(const char *path, unsigned role, char **ret_token, struct sw_err *err)
{
	SW_CLEANUP(sw_tokens_freep) struct sw_tokens *tokens = NULL;
	int r = sw_tokens_read(path, &tokens, err);
	if (r < 0)
		return r;
	assert(tokens != NULL);
	for (size_t i = 0; i < tokens->entries.count; i++) {
		if (tokens->entries.items[i].owner.role != role)
			continue;
		char *token = strdup(tokens->entries.items[i].token);
		if (token == NULL)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
		*ret_token = token;
		return 0;
	}
	return sw_err_set(err, SW_ENOTFOUND, "there is no token of this role in '%s'", path);
}
