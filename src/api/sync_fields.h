/* Structs from JSON and back by one table of fields; private to sync*.c.
 *
 * A field that the JSON does not have, or has as null, leaves the struct as it was: defaults are written before. A field that the table does
 * not have is ignored.
 */
#ifndef SW_API_SYNC_FIELDS_H
#define SW_API_SYNC_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "api/json.h"
#include "base/error.h"

enum sw_field_kind {
	SW_FIELD_U64,	/* uint64_t; `max` is at most INT64_MAX, as JSON's readers have it */
	SW_FIELD_I64,	/* int64_t */
	SW_FIELD_U32,	/* uint32_t */
	SW_FIELD_I32,	/* int32_t */
	SW_FIELD_BOOL,	/* bool */
	SW_FIELD_TEXT,	/* const char *; min and max are lengths in bytes */
	SW_FIELD_TEXTS, /* struct sw_texts; max is the longest member, `most` their number */
	SW_FIELD_JOBS,	/* struct sw_sync_jobs, of up to SW_SYNC_JOBS_LISTED */
	SW_FIELD_WORD,	/* an enum: the position in `words` */
};

struct sw_field {
	const char *name;
	enum sw_field_kind kind;
	bool required;
	bool brief; /* left out of the text when it is zero, false, NULL or empty */
	bool vital; /* see sw_decode_readable() */
	size_t offset;
	int64_t min, max;
	size_t most;
	const char *const *words; /* ends with NULL */
};
#define SW_FIELD_COUNT(fields) (sizeof(fields) / sizeof((fields)[0]))

/* Everything that a decoded struct points to. */
struct sw_decoded {
	json_t *root;
	struct sw_block *blocks;
};
void *sw_decoded_alloc(struct sw_decoded *decoded, size_t count, size_t size); /* zeroed; NULL: out of memory */
void sw_decoded_free(struct sw_decoded *decoded);

struct sw_decoder {
	const char *what; /* opens every complaint: "cannot read the sync" */
	struct sw_decoded *decoded;
	struct sw_err *err;
	bool copies;	 /* texts are copied, so that the JSON they are from may go */
	char place[200]; /* where it is now: "jobs[3]"; "" at the top */
};

/* Parses; the root is an object, owned by decoder->decoded. */
int sw_decoder_open(struct sw_decoder *decoder, const char *text, size_t size, size_t limit);
/* Names the place and what was expected there; SW_EINPUT. */
int sw_decoder_refuse(struct sw_decoder *decoder, const char *name, const json_t *value, const char *expected);
int sw_decoder_out_of_memory(struct sw_decoder *decoder);
int sw_decode_fields(struct sw_decoder *decoder, json_t *object, const struct sw_field *fields, size_t count, void *target);
/* The same, but a field that is not required and cannot be read is as if it were not there. *ret_why is the first such complaint, owned by
 * decoder->decoded, or NULL; *ret_vital says whether a vital field was among them. */
int sw_decode_readable(struct sw_decoder *decoder, json_t *object, const struct sw_field *fields, size_t count, void *target,
		       const char **ret_why, bool *ret_vital);

/* Members of the list `name` of `object`, each decoded by `member` into `size` bytes of a new array. Absent: none. */
typedef int sw_decode_member(struct sw_decoder *decoder, json_t *value, void *target);
int sw_decode_list(struct sw_decoder *decoder, json_t *object, const char *name, size_t most, size_t size, sw_decode_member *member,
		   void **ret_items, size_t *ret_count);
/* The same, member by member: one that cannot be read is not in the array, and its fate is no other's. Those beyond `most` count as not readable,
 * too. `spoiled` is called for each such member, with its value (NULL: of all those beyond) and the complaint, which decoder->decoded owns; NULL:
 * they are dropped. */
typedef int sw_decode_spoiled(struct sw_decoder *decoder, json_t *value, const char *why, void *context);
int sw_decode_each(struct sw_decoder *decoder, json_t *object, const char *name, size_t most, size_t size, sw_decode_member *member,
		   sw_decode_spoiled *spoiled, void *context, void **ret_items, size_t *ret_count);
/* One member of such a list, into the `size` bytes of `target`. *ret_good: it could be read. */
int sw_decode_member_at(struct sw_decoder *decoder, json_t *value, const char *name, long index, void *target, size_t size,
			sw_decode_member *member, sw_decode_spoiled *spoiled, void *context, bool *ret_good);
/* Steps into `name` (and its member `index`, if not negative) and back to what it was. */
size_t sw_decoder_enter(struct sw_decoder *decoder, const char *name, long index);
void sw_decoder_leave(struct sw_decoder *decoder, size_t mark);

/* Writes the fields as members of the object that is open. */
void sw_encode_fields(struct sw_json *json, const struct sw_field *fields, size_t count, const void *source);
/* Moves the text out, or says what went wrong. */
int sw_encode_finish(struct sw_json *json, const char *what, size_t limit, char **ret_text, size_t *ret_size, struct sw_err *err);

#endif
