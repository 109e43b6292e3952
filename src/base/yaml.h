/* YAML as this project reads it: a strict, bounded subset, and a table-driven decoder that names
 * file, line and key in every complaint.
 *
 * The subset: one document of maps, lists and scalars. Refused: anchors, aliases, tags, several
 * documents, keys that are not plain words, the same key twice in one map. So are more than
 * SW_YAML_MAX_DEPTH levels, more than SW_YAML_MAX_NODES values, and more than SW_YAML_MAX_BYTES of
 * text. Scalars stay text until they are decoded, so `1:30:00` is a duration and `no` is never
 * silently a truth value.
 *
 * A decoder is a table of fields:
 *
 *	static const struct sw_yaml_field fields[] = {
 *		{"gpus", SW_YAML_INTEGER, .offset = offsetof(struct shape, gpus), .required = true,
 *		 .min = 1, .max = 64},
 *		{"memory", SW_YAML_BYTES, .offset = offsetof(struct shape, mem_bytes)},
 *	};
 *	r = sw_yaml_decode(node, "a node", fields, SW_YAML_COUNT(fields), &shape, err);
 *
 * Fields that the map does not have are left as they were, so defaults are written before decoding.
 * Unknown keys are errors that suggest the nearest known one.
 */
#ifndef SW_BASE_YAML_H
#define SW_BASE_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

#define SW_YAML_MAX_BYTES ((size_t)4 << 20)
#define SW_YAML_MAX_DEPTH 16
#define SW_YAML_MAX_NODES 200000
#define SW_YAML_MAX_KEYS 512 /* in one map */
#define SW_YAML_COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum sw_yaml_kind {
	SW_YAML_IS_SCALAR,
	SW_YAML_IS_LIST,
	SW_YAML_IS_MAP,
};

struct sw_yaml;

/* Read-only; lives as long as its document. Members of a list and values of a map are chained in
 * the order of the file. */
struct sw_yaml_node {
	const struct sw_yaml *doc;
	const char *key;  /* in the map above; NULL in a list and at the root */
	const char *text; /* of a scalar, NUL-terminated, without NULs inside; NULL otherwise */
	size_t size;
	const struct sw_yaml_node *first;
	const struct sw_yaml_node *next;
	uint32_t count; /* of members */
	uint32_t line;	/* from 1 */
	enum sw_yaml_kind kind;
	bool quoted;
};

/* What a field is, and the C type that the decoder writes at its offset. */
enum sw_yaml_type {
	SW_YAML_DURATION, /* int64_t, nanoseconds; at most ten years */
	SW_YAML_BYTES,	  /* uint64_t; K, M, G, T are powers of 1024 */
	SW_YAML_RATE,	  /* uint64_t, bytes a second: "55 GB/s"; k, M, G, T are powers of 1000, as links are counted */
	SW_YAML_WATTS,	  /* int64_t: 300, "300 W" or "1.2 kW" */
	SW_YAML_INTEGER,  /* int64_t */
	SW_YAML_MILLI,	  /* int64_t, thousandths: 1.25 is 1250 */
	SW_YAML_PPM,	  /* int64_t, millionths */
	SW_YAML_BOOL,	  /* bool: true or false, nothing else */
	SW_YAML_STRING,	  /* const char *, one line, owned by the document; min and max are lengths (default 1 to 400) */
	SW_YAML_CHOICE,	  /* int: the position in `choices` */
	SW_YAML_LIST,	  /* const struct sw_yaml_node *; min and max are counts */
	SW_YAML_MAP,	  /* const struct sw_yaml_node * */
};

struct sw_yaml_field {
	const char *key; /* first, so that sw_suggest() can walk a table */
	enum sw_yaml_type type;
	bool required;
	size_t offset;
	/* bounds of the decoded number; max 0 is no bound beyond the type's own.
	 * Numbers are never negative */
	int64_t min;
	int64_t max;
	const char *const *choices; /* ends with NULL */
};

/* `what` and `name` open every complaint: "cannot read cluster 'big.yaml'". */
int sw_yaml_parse(const char *what, const char *name, const char *text, size_t size, struct sw_yaml **ret_doc, struct sw_err *err);
int sw_yaml_load(const char *what, const char *path, struct sw_yaml **ret_doc, struct sw_err *err);
void sw_yaml_free(struct sw_yaml *doc);
SW_DEFINE_FREEP(struct sw_yaml, sw_yaml_free)

const struct sw_yaml_node *sw_yaml_root(const struct sw_yaml *doc);

/* Decodes the map `node` into the struct at `target`; `thing` is what the map describes, with its
 * article ("a node"). On failure the struct may be partly written. */
int sw_yaml_decode(const struct sw_yaml_node *node, const char *thing, const struct sw_yaml_field *fields, size_t count, void *target,
		   struct sw_err *err);

/* Decodes one value, say a member of a list; `field` is used without its key and offset. */
int sw_yaml_value(const struct sw_yaml_node *node, const struct sw_yaml_field *field, void *target, struct sw_err *err);

/* Complains about `node` in the words of the caller: "cannot read cluster 'big.yaml': line 12:
 * ...". Returns SW_EINPUT. */
int sw_yaml_fail(const struct sw_yaml_node *node, struct sw_err *err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
