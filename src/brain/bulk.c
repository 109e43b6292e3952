/* Large parts of what jobs ask for: environments and commands (scripts travel as an argument).
 * Each is a text of its own, known by its digest; equal ones are one. The driver stores the
 * texts beside the records and gives them back when an order is made: records, state and
 * snapshots hold the digests alone.
 *
 * What stays in the request: of the environment nothing, of the command its first
 * characters, for people.
 *
 * Invariant: `uses` counts, for each digest, the requests that are known and need its text.
 */
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/utf8.h"
#include "brain/asked.h"
#include "brain/bulk.h"
#include "brain/state.h"

#define LARGE SW_BULK_LEAST /* bytes; smaller ones stay where they are */
#define HEAD 120u	    /* bytes of an argument that stay */

/* ---- digests in use */

static struct sw_bulk_use *find_slot(const struct sw_bulk_uses *uses, const unsigned char *digest)
{
	uint64_t at;
	memcpy(&at, digest, sizeof at); /* a digest is as good as any hash */
	for (at &= uses->room - 1;; at = (at + 1) & (uses->room - 1))
		if (uses->items[at].count == 0 || memcmp(uses->items[at].digest, digest, SW_BULK_DIGEST) == 0)
			return &uses->items[at];
}

static int grow(struct sw_bulk_uses *uses)
{
	struct sw_bulk_uses more = {.room = uses->room == 0 ? 64 : uses->room * 2};
	more.items = calloc(more.room, sizeof *more.items);
	if (more.items == NULL)
		return SW_ENOMEM;
	for (size_t i = 0; i < uses->room; i++)
		if (uses->items[i].count > 0) {
			*find_slot(&more, uses->items[i].digest) = uses->items[i];
			more.used++;
		}
	free(uses->items);
	*uses = more;
	return 0;
}

int sw_bulk_use(struct sw_bulk_uses *uses, const unsigned char *digest)
{
	if (uses->used * 2 >= uses->room && grow(uses) < 0)
		return SW_ENOMEM;
	struct sw_bulk_use *use = find_slot(uses, digest);
	uses->used += use->count == 0;
	memcpy(use->digest, digest, SW_BULK_DIGEST);
	use->count++;
	return 0;
}

/* Those behind it in its chain move up. */
static void remove_slot(struct sw_bulk_uses *uses, struct sw_bulk_use *gone)
{
	size_t hole = (size_t)(gone - uses->items);
	uses->used--;
	for (size_t at = (hole + 1) & (uses->room - 1); uses->items[at].count > 0; at = (at + 1) & (uses->room - 1)) {
		struct sw_bulk_use moved = uses->items[at];
		uses->items[at].count = 0;
		*find_slot(uses, moved.digest) = moved;
	}
}

void sw_bulk_drop(struct sw_bulk_uses *uses, const unsigned char *digest)
{
	struct sw_bulk_use *use = uses->room > 0 ? find_slot(uses, digest) : NULL;
	if (use != NULL && use->count > 0 && --use->count == 0)
		remove_slot(uses, use);
}

bool sw_brain_needs_text(const struct sw_brain *brain, const unsigned char digest[SW_BULK_DIGEST])
{
	return brain->uses.room > 0 && find_slot(&brain->uses, digest)->count > 0;
}

/* ---- out of a request */

static char *encode_list(char *const *items, size_t count, size_t *ret_size)
{
	struct sw_json json = {0};
	sw_json_array(&json);
	for (size_t i = 0; i < count; i++)
		sw_json_string(&json, items[i]);
	sw_json_end_array(&json);
	return sw_json_take(&json, ret_size);
}

static size_t size_of(char *const *items, size_t count)
{
	size_t size = 0;
	for (size_t i = 0; i < count; i++)
		size += strlen(items[i]) + 3;
	return size;
}

static int take_text(char *const *items, size_t count, struct sw_record_text *ret_text)
{
	unsigned size = 0;
	struct sw_record_text text = {0};
	text.bytes = encode_list(items, count, &text.size);
	if (text.bytes == NULL || EVP_Digest(text.bytes, text.size, text.digest, &size, EVP_sha256(), NULL) != 1) {
		free(text.bytes);
		return SW_ENOMEM;
	}
	*ret_text = text;
	return 0;
}

/* The first bytes of it, whole characters. */
static char *cut(const char *text)
{
	return strndup(text, sw_utf8_start(text, HEAD));
}

int sw_bulk_take(const struct sw_brain *brain, struct sw_job_request *request, struct sw_record_text texts[SW_BULKS])
{
	if (brain->config.load_text == NULL)
		return 0;
	int r = 0;
	if (size_of(request->env, request->env_count) >= LARGE) {
		r = take_text(request->env, request->env_count, &texts[SW_BULK_ENV]);
		for (size_t i = 0; r == 0 && i < request->env_count; i++)
			free(request->env[i]);
		if (r == 0)
			request->env_count = 0;
	}
	if (r == 0 && size_of(request->argv, request->argc) >= LARGE) {
		r = take_text(request->argv, request->argc, &texts[SW_BULK_COMMAND]);
		for (size_t i = 0; r == 0 && i < request->argc; i++) {
			char *head = cut(request->argv[i]);
			if (head == NULL)
				return SW_ENOMEM;
			free(request->argv[i]);
			request->argv[i] = head;
		}
	}
	return r;
}

/* ---- and back */

static int decode_list(const char *bytes, size_t size, char ***ret_items, size_t *ret_count)
{
	json_t *list = json_loadb(bytes, size, 0, NULL);
	size_t count = json_array_size(list);
	char **items = calloc(count + 1, sizeof *items);
	bool good = json_is_array(list) && items != NULL;
	for (size_t i = 0; good && i < count; i++) {
		const char *text = json_string_value(json_array_get(list, i));
		items[i] = text != NULL ? strdup(text) : NULL;
		good = items[i] != NULL;
	}
	json_decref(list);
	if (!good) {
		for (size_t i = 0; items != NULL && i < count; i++)
			free(items[i]);
		free(items);
		return SW_ENOMEM;
	}
	*ret_items = items;
	*ret_count = count;
	return 0;
}

static int load(const struct sw_brain *brain, const struct sw_bulk *bulk, char ***ret_items, size_t *ret_count, struct sw_err *err)
{
	const struct sw_brain_config *config = &brain->config;
	SW_CLEANUP(sw_freep) char *bytes = NULL;
	size_t size = 0;
	if (config->load_text == NULL)
		return sw_err_set(err, SW_ENOTFOUND, "its environment or command is not kept here");
	int r = config->load_text(config->load_context, bulk->digest, &bytes, &size, err);
	return r < 0 ? r : decode_list(bytes, size, ret_items, ret_count);
}

static void free_list(char **items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(items[i]);
	free(items);
}

int sw_bulk_fill(const struct sw_brain *brain, const struct sw_asked *asked, struct sw_job_request *request, struct sw_err *err)
{
	char **items = NULL;
	size_t count = 0;
	if (asked->bulk[SW_BULK_COMMAND].size > 0) {
		int r = load(brain, &asked->bulk[SW_BULK_COMMAND], &items, &count, err);
		if (r < 0)
			return r;
		free_list(request->argv, request->argc);
		request->argv = items;
		request->argc = count;
	}
	if (asked->bulk[SW_BULK_ENV].size == 0)
		return 0;
	int r = load(brain, &asked->bulk[SW_BULK_ENV], &items, &count, err);
	if (r < 0)
		return r;
	free_list(request->env, request->env_count);
	request->env = items;
	request->env_count = count;
	return 0;
}

char *sw_brain_whole_request(const struct sw_brain *brain, uint64_t job, struct sw_err *err)
{
	const struct sw_live *live = sw_brain_live(brain, job);
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *request = NULL;
	int r = live != NULL ? sw_asked_decode(live, &request, err) : SW_ENOTFOUND;
	r = r < 0 ? r : sw_bulk_fill(brain, live->asked, request, err);
	return r < 0 ? NULL : sw_job_request_encode(request);
}

/* ---- in records */

static const char *const names[SW_BULKS] = {"env", "argv"};

void sw_bulk_write(struct sw_json *json, const struct sw_record_text texts[SW_BULKS])
{
	for (int b = 0; b < SW_BULKS; b++) {
		char hex[2 * SW_BULK_DIGEST + 1];
		if (texts[b].bytes == NULL)
			continue;
		for (size_t i = 0; i < SW_BULK_DIGEST; i++)
			snprintf(hex + 2 * i, 3, "%02x", texts[b].digest[i]);
		sw_json_key(json, names[b]);
		sw_json_object(json);
		sw_json_key_string(json, "digest", hex);
		sw_json_key_u64(json, "size", texts[b].size);
		sw_json_end_object(json);
	}
}

static bool read_hex(const char *hex, unsigned char digest[SW_BULK_DIGEST])
{
	if (hex == NULL || strlen(hex) != (size_t)2 * SW_BULK_DIGEST || strspn(hex, "0123456789abcdef") != (size_t)2 * SW_BULK_DIGEST)
		return false;
	for (size_t i = 0; i < SW_BULK_DIGEST; i++) {
		const char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
		digest[i] = (unsigned char)strtoul(pair, NULL, 16);
	}
	return true;
}

int sw_bulk_read(struct sw_brain *brain, json_t *body, struct sw_asked *asked, struct sw_err *err)
{
	for (int b = 0; b < SW_BULKS; b++) {
		json_t *bulk = json_object_get(body, names[b]);
		json_int_t size = json_integer_value(json_object_get(bulk, "size"));
		if (bulk == NULL)
			continue;
		struct sw_bulk said = {.size = size > 0 && size <= UINT32_MAX ? (uint32_t)size : 0};
		if (said.size == 0 || !read_hex(json_string_value(json_object_get(bulk, "digest")), said.digest))
			return sw_err_set(err, SW_EINPUT, "a submit record has a digest that is none");
		if (sw_asked_add_bulk(brain, asked, b, &said) < 0)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	return 0;
}
