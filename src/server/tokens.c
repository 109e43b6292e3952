#include "server/tokens.h"

#include <assert.h>
#include <errno.h>
#include <fnmatch.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/http.h"
#include "api/routes.h"
#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "base/vec.h"

#define FILE_MAX ((size_t)4 << 20)
#define WORDS_MAX 8u

struct entry {
	unsigned char digest[SW_TOKEN_DIGEST];
	struct sw_token_owner owner;
	char name[SW_TOKEN_NAME_MAX + 1];
};

struct sw_tokens {
	SW_VEC(struct entry) entries;
};

void sw_tokens_free(struct sw_tokens *tokens)
{
	if (tokens == NULL)
		return;
	sw_vec_free(&tokens->entries);
	free(tokens);
}

static int refuse_line(const char *path, unsigned line, const char *detail, struct sw_err *err)
{
	sw_err_set(err, SW_EINPUT, "cannot use the tokens of '%s'", path);
	sw_err_detail(err, "line %u: %s", line, detail);
	sw_err_hint(err, "A line is 'role secret [uid[:gid] [name [key=value...]]]', with the roles user, operator and agent.");
	return SW_EINPUT;
}

/* "1000" or "1000:1000"; the group is the user's number by default. */
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

/* A token's hash, or "sha256:" and that in hexadecimal. */
static bool parse_secret(const char *word, unsigned char digest[SW_TOKEN_DIGEST])
{
	static const char scheme[] = "sha256:";
	size_t size = strlen(word);
	if (strncmp(word, scheme, sizeof scheme - 1) != 0) {
		sw_token_digest(word, digest);
		return size >= SW_HTTP_TOKEN_LEAST && size <= SW_HTTP_TOKEN_MAX;
	}
	word += sizeof scheme - 1;
	for (size_t i = 0; i < SW_TOKEN_DIGEST; i++) {
		unsigned byte;
		if (strspn(word + 2 * i, "0123456789abcdef") < 2 || sscanf(word + 2 * i, "%2x", &byte) != 1)
			return false;
		digest[i] = (unsigned char)byte;
	}
	return word[2 * SW_TOKEN_DIGEST] == '\0';
}

bool sw_token_nodes_are_good(const char *nodes)
{
	size_t size = strlen(nodes);
	for (size_t i = 0; i < size; i++)
		if (nodes[i] <= ' ' || nodes[i] > '~' || strchr("#[]\\", nodes[i]) != NULL)
			return false;
	return size > 0 && size <= SW_TOKEN_NODES_MAX && nodes[0] != ',' && nodes[size - 1] != ',' && strstr(nodes, ",,") == NULL;
}

bool sw_token_nodes_match(const char *nodes, const char *name)
{
	char pattern[SW_TOKEN_NODES_MAX + 1];
	const char *word;
	size_t size;
	while (sw_text_next(&nodes, &word, &size)) {
		snprintf(pattern, sizeof pattern, "%.*s", (int)size, word);
		if (fnmatch(pattern, name, 0) == 0)
			return true;
	}
	return false;
}

/* "expires=1795000000", "nodes=gpu1,gpu2". */
static bool parse_option(const char *word, struct sw_token_owner *owner)
{
	static const char expires[] = "expires=", nodes[] = "nodes=";
	uint64_t at;
	if (strncmp(word, nodes, sizeof nodes - 1) == 0) {
		word += sizeof nodes - 1;
		if (owner->role != SW_ROLE_AGENT || owner->nodes[0] != '\0' || !sw_token_nodes_are_good(word))
			return false;
		snprintf(owner->nodes, sizeof owner->nodes, "%s", word);
		return true;
	}
	if (strncmp(word, expires, sizeof expires - 1) != 0 || owner->expires_at_s != 0)
		return false;
	word += sizeof expires - 1;
	if (sw_parse_u64(word, strlen(word), &at) < 0 || at == 0 || at > INT64_MAX / SW_NS_PER_S)
		return false;
	owner->expires_at_s = (int64_t)at;
	return true;
}

static int add_line(struct sw_tokens *tokens, const char *path, unsigned number, char *line, struct sw_err *err)
{
	char *rest = line, *words[WORDS_MAX] = {NULL};
	size_t count = 0;
	for (char *word; (word = strsep(&rest, " \t\r")) != NULL;) {
		if (*word == '\0')
			continue;
		if (*word == '#')
			break;
		if (count == WORDS_MAX)
			return refuse_line(path, number, "it has too many words", err);
		words[count++] = word;
	}
	if (count == 0)
		return 0;
	struct entry entry = {.owner = {.role = sw_role_find(words[0]), .uid = geteuid(), .gid = getegid()}};
	if (entry.owner.role == 0)
		return refuse_line(path, number, "it does not begin with a role", err);
	if (count < 2 || !parse_secret(words[1], entry.digest))
		return refuse_line(path, number, "its token is missing, or neither of 32 to 512 characters nor a hash", err);
	if (count > 2 ? !parse_owner(words[2], &entry.owner) : entry.owner.role == SW_ROLE_USER)
		return refuse_line(path, number, "it does not name a user by number", err);
	if (count > 3 && strlen(words[3]) > SW_TOKEN_NAME_MAX)
		return refuse_line(path, number, "its name is too long", err);
	for (size_t i = 4; i < count; i++)
		if (!parse_option(words[i], &entry.owner))
			return refuse_line(path, number, "it has an option that is not known, or a wrong or second value of one", err);
	if (tokens->entries.count == SW_TOKENS_MAX)
		return refuse_line(path, number, "there are too many tokens", err);
	snprintf(entry.name, sizeof entry.name, "%s", count > 3 && strcmp(words[3], "-") != 0 ? words[3] : "");
	struct entry *slot = sw_vec_push(&tokens->entries);
	if (slot == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	*slot = entry;
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
	sw_err_detail(err, "others can read it, or it belongs to another user");
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

/* ---- asking */

void sw_token_digest(const char *token, unsigned char ret_digest[SW_TOKEN_DIGEST])
{
	unsigned size = 0;
	int done = EVP_Digest(token, strlen(token), ret_digest, &size, EVP_sha256(), NULL);
	assert(done == 1 && size == SW_TOKEN_DIGEST);
}

bool sw_tokens_find(const struct sw_tokens *tokens, const unsigned char digest[SW_TOKEN_DIGEST], int64_t now_s,
		    struct sw_token_owner *ret_owner)
{
	const struct entry *found = NULL;
	for (size_t i = 0; i < tokens->entries.count; i++)
		if (CRYPTO_memcmp(tokens->entries.items[i].digest, digest, SW_TOKEN_DIGEST) == 0)
			found = &tokens->entries.items[i];
	if (found == NULL || (found->owner.expires_at_s != 0 && found->owner.expires_at_s <= now_s))
		return false;
	*ret_owner = found->owner;
	return true;
}

void sw_token_id(const unsigned char digest[SW_TOKEN_DIGEST], char ret_id[SW_TOKEN_ID_SIZE])
{
	for (size_t i = 0; i < (SW_TOKEN_ID_SIZE - 1) / 2; i++)
		snprintf(ret_id + 2 * i, 3, "%02x", digest[i]);
}

bool sw_tokens_has(const struct sw_tokens *tokens, const char *id, int64_t now_s)
{
	for (size_t i = 0; i < tokens->entries.count; i++) {
		const struct entry *entry = &tokens->entries.items[i];
		char other[SW_TOKEN_ID_SIZE];
		sw_token_id(entry->digest, other);
		if (strcmp(other, id) == 0)
			return entry->owner.expires_at_s == 0 || entry->owner.expires_at_s > now_s;
	}
	return false;
}

bool sw_tokens_ended(const struct sw_tokens *tokens, int64_t from_s, int64_t to_s)
{
	for (size_t i = 0; i < tokens->entries.count; i++) {
		int64_t at_s = tokens->entries.items[i].owner.expires_at_s;
		if (at_s != 0 && at_s > from_s && at_s <= to_s)
			return true;
	}
	return false;
}

size_t sw_tokens_count(const struct sw_tokens *tokens)
{
	return tokens->entries.count;
}

void sw_tokens_view(const struct sw_tokens *tokens, size_t index, struct sw_token_view *ret_view)
{
	const struct entry *entry = &tokens->entries.items[index];
	*ret_view = (struct sw_token_view){.owner = entry->owner, .role = "", .name = entry->name};
	sw_token_id(entry->digest, ret_view->id);
	ret_view->role = sw_role_name(entry->owner.role);
}
