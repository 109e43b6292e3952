/* Every struct that travels has one table of its fields. From the table come its decoder, its
 * encoder, its bounds, and its description in OpenAPI and docs/api.md. Of a job, so do the keys of
 * a job file and the options of the command line.
 *
 * A new field is a line of its table and the code that uses it.
 *
 * A field that the JSON does not have, or has as null, leaves the struct as it was: defaults are
 * written before. A decoder of structs from programs ignores a field that the table does not have.
 * One of structs from people refuses it.
 */
#ifndef SW_API_FIELDS_H
#define SW_API_FIELDS_H

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
	SW_FIELD_BOOL,	/* bool; with `words`, the first stands for false and the second for true */
	SW_FIELD_TEXT,	/* const char *; min and max are lengths in bytes */
	SW_FIELD_TEXTS, /* struct sw_texts; max is the longest member, `most` their number */
	/* const char *, members with commas between them, `max` bytes at most: on the wire a
	 * list. The text that agents of version 0.1 send in its place is read, too */
	SW_FIELD_COMMAS,
	SW_FIELD_JOBS, /* struct sw_sync_jobs, of up to SW_SYNC_JOBS_LISTED */
	SW_FIELD_WORD, /* an enum: `min` and the position in `words` */
	/* As people write them. */
	SW_FIELD_BYTES,	 /* uint64_t: bytes, or "20G" */
	SW_FIELD_SPAN,	 /* int64_t, nanoseconds: seconds, or "2h" */
	SW_FIELD_MILLI,	 /* uint32_t, thousandths: a decimal number */
	SW_FIELD_MOMENT, /* int64_t, nanoseconds since the epoch: RFC 3339 */
	/* char **, owned, as many as the size_t at `count_offset` says; max is the longest
	 * member, `most` their number */
	SW_FIELD_LIST,
	SW_FIELD_OWN, /* `size` bytes that `read` and `write` alone know */
};

struct sw_field;
struct sw_decoder;
/* `target` and `source` are the whole struct. */
typedef int sw_field_read(struct sw_decoder *decoder, const struct sw_field *field, json_t *value, void *target);
/* key and value, or nothing */
typedef void sw_field_write(struct sw_json *json, const struct sw_field *field, const void *source);

/* How the command line asks for a field. */
struct sw_field_option {
	const char *name;     /* without dashes */
	char letter;	      /* '\0': none */
	const char *argument; /* what help calls the value; NULL: a flag */
	const char *about;    /* NULL: the field's */
	bool many;	      /* may be given several times */
};
/* of a field that the command line does not ask for */
extern const struct sw_field_option sw_no_option;

struct sw_field {
	const char *name;
	enum sw_field_kind kind;
	bool required;
	/* left out of the text when it is zero, false, NULL or empty, which its bounds then
	 * allow */
	bool brief;
	bool null;  /* written as null when it is empty; with `said`, when that is false */
	bool vital; /* see sw_decode_readable() */
	bool line;  /* a text without control characters */
	size_t offset;
	int64_t min, max;
	size_t most;
	size_t count_offset;
	size_t said; /* of a bool beside it: the field was there; 0: there is none */
	size_t size;
	const char *const *words; /* ends with NULL */
	sw_field_read *read;	  /* NULL: as its kind is read */
	sw_field_write *write;	  /* NULL: as its kind is written */
	/* For people. */
	const char *about; /* "": the struct's header says it */
	/* as in struct sw_api_field; NULL: that of its kind */
	const char *type;
	/* what complaints ask for; NULL: what its kind and bounds say */
	const char *expected;
	const char *hint;		      /* of these complaints */
	const struct sw_field_option *option; /* of a struct that people write; else NULL */
};
#define SW_FIELD_COUNT(fields) (sizeof(fields) / sizeof((fields)[0]))

struct sw_table {
	const char *name;
	const struct sw_field *fields;
	size_t count;
	size_t size; /* of the struct */
};

/* The type of the field in descriptions: "integer|string". */
const char *sw_field_type(const struct sw_field *field);
/* What its values are, in words: "a whole number from 0 to 255". Returns `text`, or a constant. */
const char *sw_field_expected(const struct sw_field *field, char *text, size_t size);
/* A table in the order of the names; NULL: there is none of this name. */
const struct sw_field *sw_field_find(const struct sw_field *fields, size_t count, const char *name);

/* Everything that a decoded struct points to. */
struct sw_decoded {
	json_t *root;
	struct sw_block *blocks;
};
/* zeroed; NULL: out of memory */
void *sw_decoded_alloc(struct sw_decoded *decoded, size_t count, size_t size);
void sw_decoded_free(struct sw_decoded *decoded);

struct sw_decoder {
	const char *what; /* opens every complaint: "cannot read the sync" */
	struct sw_decoded *decoded;
	struct sw_err *err;
	bool copies; /* texts are copied, so that the JSON they are from may go */
	/* numbers may be text; texts are the struct's own, to be freed by free(), and
	 * sw_fields_check() looks at their lengths */
	bool by_people;
	char place[200]; /* where it is now: "jobs[3]"; "" at the top */
};

/* Parses; the root is an object, owned by decoder->decoded. */
int sw_decoder_open(struct sw_decoder *decoder, const char *text, size_t size, size_t limit);
/* Names the place and what was expected there; SW_EINPUT. */
int sw_decoder_refuse(struct sw_decoder *decoder, const char *name, const json_t *value, const char *expected);
int sw_decoder_refuse_field(struct sw_decoder *decoder, const struct sw_field *field, const json_t *value);
int sw_decoder_out_of_memory(struct sw_decoder *decoder);
int sw_decode_field(struct sw_decoder *decoder, json_t *value, const struct sw_field *field, void *target);
int sw_decode_fields(struct sw_decoder *decoder, json_t *object, const struct sw_field *fields, size_t count, void *target);
/* The same, but a field that is not required and cannot be read is as if it were not there.
 * *ret_why is the first such complaint, owned by
 * decoder->decoded, or NULL; *ret_vital says whether a vital field was among them. */
int sw_decode_readable(struct sw_decoder *decoder, json_t *object, const struct sw_field *fields, size_t count, void *target,
		       const char **ret_why, bool *ret_vital);
/* All members of the object are fields of the table, which is in the order of the names. */
int sw_decode_strictly(struct sw_decoder *decoder, json_t *object, const struct sw_field *fields, size_t count, void *target);

/* Members of the list `name` of `object`, each decoded by `member` into `size` bytes of a new
 * array. Absent: none. */
typedef int sw_decode_member(struct sw_decoder *decoder, json_t *value, void *target);
int sw_decode_list(struct sw_decoder *decoder, json_t *object, const char *name, size_t most, size_t size, sw_decode_member *member,
		   void **ret_items, size_t *ret_count);
/* The same, member by member: one that cannot be read is not in the array, and its fate is no
 * other's. Those beyond `most` count as not readable,
 * too. `spoiled` is called for each such member, with its value (NULL: of all those beyond) and
 * the complaint, which decoder->decoded owns; NULL:
 * they are dropped. */
typedef int sw_decode_spoiled(struct sw_decoder *decoder, json_t *value, const char *why, void *context);
struct sw_members {
	const char *name;  /* of the list */
	size_t most, size; /* members; bytes of one as a struct */
	sw_decode_member *member;
	sw_decode_spoiled *spoiled;
	void *context; /* of `spoiled` */
};
int sw_decode_each(struct sw_decoder *decoder, json_t *object, const struct sw_members *members, void **ret_items, size_t *ret_count);
/* The member `index` of such a list, into the `size` bytes of `target`. *ret_good: it could be
 * read. */
int sw_decode_member_at(struct sw_decoder *decoder, json_t *value, const struct sw_members *members, long index, void *target,
			bool *ret_good);
/* Steps into `name` (and its member `index`, if not negative) and back to what it was. */
size_t sw_decoder_enter(struct sw_decoder *decoder, const char *name, long index);
void sw_decoder_leave(struct sw_decoder *decoder, size_t mark);

/* Writes the fields as members of the object that is open. */
void sw_encode_fields(struct sw_json *json, const struct sw_field *fields, size_t count, const void *source);
/* Moves the text out, or says what went wrong. */
int sw_encode_finish(struct sw_json *json, const char *what, size_t limit, char **ret_text, size_t *ret_size, struct sw_err *err);

/* Whether a struct made by hand keeps to the bounds; the detail of `err` says what is wrong, its
 * fact is `what`. SW_EINPUT or SW_ELIMIT. */
int sw_fields_check(const char *what, const struct sw_field *fields, size_t count, const void *source, struct sw_err *err);
/* Makes texts keep the bounds of their fields that are lines: control characters become '?', and
 * what is too long is cut. */
void sw_fields_mend_lines(const struct sw_field *fields, size_t count, void *target);
/* Of a struct that owns its texts: gives `target`, which is a copy of the bytes, texts of its own.
 * False: out of memory; what it has then may be freed. */
bool sw_fields_copy(const struct sw_field *fields, size_t count, void *target);
/* Of a struct that owns its texts: frees what the fields point to. */
void sw_fields_free(const struct sw_field *fields, size_t count, void *target);
/* Whether the text holds what a terminal would obey. */
bool sw_has_control(const char *text, size_t size);

#endif
