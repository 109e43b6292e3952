/* The reader of base/yaml.h: libyaml's events become a tree of nodes. Decoding is in yaml_decode.c.
 *
 * 1. Nothing is recursive and nothing is unbounded: depth, keys of a map, nodes and bytes have
 *    limits that are checked before anything is stored.
 * 2. Every node is on the document's list of all nodes, which owns it.
 */
#include "base/yaml.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"

struct owned {
	struct sw_yaml_node node;
	struct owned *older;
	char bytes[]; /* the key and the text, each with its terminator */
};

struct sw_yaml {
	char *what;
	char *name;
	struct owned *newest;
	const struct sw_yaml_node *root;
	uint32_t nodes;
};

/* One open map or list. */
struct level {
	struct sw_yaml_node *node;
	struct sw_yaml_node *last; /* member */
	char *key;		   /* read, its value still to come */
	uint32_t key_line;
};

struct reader {
	struct sw_yaml *doc;
	struct sw_err *err;
	struct level levels[SW_YAML_MAX_DEPTH];
	unsigned depth;
};

__attribute__((format(printf, 5, 0))) static int fail_at(const struct sw_yaml *doc, struct sw_err *err, int code, size_t line,
							 const char *fmt, va_list args)
{
	char why[512];
	vsnprintf(why, sizeof why, fmt, args);
	sw_err_set(err, code, "cannot read %s '%.200s'", doc->what, doc->name);
	sw_err_detail(err, "line %zu: %s", line, why);
	return code;
}

__attribute__((format(printf, 4, 5))) static int refuse(struct reader *reader, int code, size_t line, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int r = fail_at(reader->doc, reader->err, code, line, fmt, args);
	va_end(args);
	return r;
}

int sw_yaml_fail(const struct sw_yaml_node *node, struct sw_err *err, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int r = fail_at(node->doc, err, SW_EINPUT, node->line, fmt, args);
	va_end(args);
	return r;
}

static int no_memory(struct reader *reader)
{
	return sw_err_set(reader->err, SW_ENOMEM, "cannot read %s '%.200s': out of memory", reader->doc->what, reader->doc->name);
}

/* Hangs a new node under the open map or list; at the root it becomes the document. */
static int add_node(struct reader *reader, enum sw_yaml_kind kind, const yaml_event_t *event, const char *text, size_t size,
		    struct sw_yaml_node **ret_node)
{
	size_t line = event->start_mark.line + 1;
	struct sw_yaml *doc = reader->doc;
	if (doc->nodes >= SW_YAML_MAX_NODES)
		return refuse(reader, SW_ELIMIT, line, "more than %d values", SW_YAML_MAX_NODES);
	struct level *level = reader->depth > 0 ? &reader->levels[reader->depth - 1] : NULL;
	size_t key_size = level != NULL && level->key != NULL ? strlen(level->key) : 0;
	struct owned *owned = calloc(1, sizeof *owned + key_size + size + 2);
	if (owned == NULL)
		return no_memory(reader);
	owned->older = doc->newest;
	doc->newest = owned;
	doc->nodes++;

	struct sw_yaml_node *node = &owned->node;
	node->doc = doc;
	node->kind = kind;
	node->line = (uint32_t)line;
	if (kind == SW_YAML_IS_SCALAR) {
		memcpy(owned->bytes + key_size + 1, text, size);
		node->text = owned->bytes + key_size + 1;
		node->size = size;
	}
	if (level == NULL) {
		doc->root = node;
	} else {
		if (level->key != NULL) {
			memcpy(owned->bytes, level->key, key_size);
			node->key = owned->bytes;
			node->line = level->key_line;
			free(SW_TAKE(level->key));
		}
		if (level->last != NULL)
			level->last->next = node;
		else
			level->node->first = node;
		level->last = node;
		level->node->count++;
	}
	*ret_node = node;
	return 0;
}

static int read_key(struct reader *reader, struct level *level, const yaml_event_t *event)
{
	size_t line = event->start_mark.line + 1;
	if (event->type != YAML_SCALAR_EVENT)
		return refuse(reader, SW_EINPUT, line, "a key must be a plain word");
	const char *text = (const char *)event->data.scalar.value;
	size_t size = event->data.scalar.length;
	if (size == 0 || size > 100 || memchr(text, '\0', size) != NULL)
		return refuse(reader, SW_EINPUT, line, "a key must be a plain word of 1 to 100 bytes");
	if (level->node->count >= SW_YAML_MAX_KEYS)
		return refuse(reader, SW_ELIMIT, line, "more than %d keys in one map", SW_YAML_MAX_KEYS);
	for (const struct sw_yaml_node *other = level->node->first; other != NULL; other = other->next)
		if (strcmp(other->key, text) == 0)
			return refuse(reader, SW_EINPUT, line, "'%s' is given twice, first in line %u", text, other->line);
	level->key = strdup(text);
	if (level->key == NULL)
		return no_memory(reader);
	level->key_line = (uint32_t)line;
	return 0;
}

/* Tags and anchors change what a value is behind the reader's back, and aliases can multiply a
 * small file into a huge one. */
static int check_plain(struct reader *reader, const yaml_event_t *event, const yaml_char_t *anchor, const yaml_char_t *tag)
{
	if (anchor != NULL)
		return refuse(reader, SW_EINPUT, event->start_mark.line + 1, "anchors ('&%.60s') are not understood", (const char *)anchor);
	if (tag != NULL)
		return refuse(reader, SW_EINPUT, event->start_mark.line + 1, "tags ('%.60s') are not understood", (const char *)tag);
	return 0;
}

static int read_scalar(struct reader *reader, const yaml_event_t *event)
{
	int r = check_plain(reader, event, event->data.scalar.anchor, event->data.scalar.tag);
	if (r < 0)
		return r;
	const char *text = (const char *)event->data.scalar.value;
	size_t size = event->data.scalar.length;
	if (memchr(text, '\0', size) != NULL)
		return refuse(reader, SW_EINPUT, event->start_mark.line + 1, "a value contains a NUL byte");
	struct sw_yaml_node *node = NULL;
	r = add_node(reader, SW_YAML_IS_SCALAR, event, text, size, &node);
	if (r < 0)
		return r;
	node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	return 0;
}

static int open_level(struct reader *reader, const yaml_event_t *event)
{
	bool map = event->type == YAML_MAPPING_START_EVENT;
	int r = check_plain(reader, event, map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor,
			    map ? event->data.mapping_start.tag : event->data.sequence_start.tag);
	if (r < 0)
		return r;
	if (reader->depth == SW_YAML_MAX_DEPTH)
		return refuse(reader, SW_ELIMIT, event->start_mark.line + 1, "nested deeper than %d levels", SW_YAML_MAX_DEPTH);
	struct sw_yaml_node *node = NULL;
	r = add_node(reader, map ? SW_YAML_IS_MAP : SW_YAML_IS_LIST, event, NULL, 0, &node);
	if (r < 0)
		return r;
	reader->levels[reader->depth++] = (struct level){.node = node};
	return 0;
}

/* Takes one event; *ret_done says that the stream has ended. */
static int take_event(struct reader *reader, const yaml_event_t *event, bool *ret_done)
{
	struct level *level = reader->depth > 0 ? &reader->levels[reader->depth - 1] : NULL;
	assert(level == NULL || level->node != NULL);
	bool wants_key = level != NULL && level->node->kind == SW_YAML_IS_MAP && level->key == NULL;
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (reader->doc->root != NULL)
			return refuse(reader, SW_EINPUT, event->start_mark.line + 1, "a second document begins; only one is read");
		return 0;
	case YAML_ALIAS_EVENT:
		return refuse(reader, SW_EINPUT, event->start_mark.line + 1, "aliases ('*%.60s') are not understood",
			      (const char *)event->data.alias.anchor);
	case YAML_SCALAR_EVENT:
		if (!wants_key)
			return read_scalar(reader, event);
		int r = check_plain(reader, event, event->data.scalar.anchor, event->data.scalar.tag);
		return r < 0 ? r : read_key(reader, level, event);
	case YAML_MAPPING_START_EVENT:
	case YAML_SEQUENCE_START_EVENT:
		return wants_key ? read_key(reader, level, event) : open_level(reader, event);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		reader->depth--;
		return 0;
	case YAML_STREAM_END_EVENT:
		*ret_done = true;
		return 0;
	default:
		return 0;
	}
}

/* Is there a tab among the blanks that open line `line` (from 0)? Nearly every
 * unreadable file has one. */
static bool line_opens_with_tab(const char *text, size_t size, size_t line)
{
	const char *end = text + size;
	for (; line > 0 && text < end; line--) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		if (newline == NULL)
			return false;
		text = newline + 1;
	}
	while (text < end && *text == ' ')
		text++;
	return text < end && *text == '\t';
}

static int report_syntax(struct reader *reader, const yaml_parser_t *parser, const char *text, size_t size)
{
	if (parser->error == YAML_MEMORY_ERROR)
		return no_memory(reader);
	const char *problem = parser->problem != NULL ? parser->problem : "not YAML";
	if (parser->error == YAML_READER_ERROR)
		return refuse(reader, SW_EINPUT, parser->mark.line + 1, "not text in UTF-8 (%s)", problem);
	size_t line = parser->problem_mark.line;
	int r = refuse(reader, SW_EINPUT, line + 1, "%s, column %zu", problem, parser->problem_mark.column + 1);
	if (line_opens_with_tab(text, size, line))
		sw_err_hint(reader->err, "Indent with spaces; YAML does not allow tabs.");
	return r;
}

static int read_events(struct reader *reader, yaml_parser_t *parser, const char *text, size_t size)
{
	bool done = false;
	while (!done) {
		yaml_event_t event;
		if (!yaml_parser_parse(parser, &event))
			return report_syntax(reader, parser, text, size);
		int r = take_event(reader, &event, &done);
		yaml_event_delete(&event);
		if (r < 0)
			return r;
	}
	if (reader->doc->root == NULL || (reader->doc->root->kind == SW_YAML_IS_SCALAR && reader->doc->root->size == 0))
		return refuse(reader, SW_EINPUT, 1, "there is nothing in it");
	return 0;
}

int sw_yaml_parse(const char *what, const char *name, const char *text, size_t size, struct sw_yaml **ret_doc, struct sw_err *err)
{
	SW_CLEANUP(sw_yaml_freep) struct sw_yaml *doc = calloc(1, sizeof *doc);
	if (doc == NULL || (doc->what = strdup(what)) == NULL || (doc->name = strdup(name)) == NULL)
		return sw_err_set(err, SW_ENOMEM, "cannot read %s '%.200s': out of memory", what, name);
	struct reader reader = {.doc = doc, .err = err};
	if (size > SW_YAML_MAX_BYTES)
		return refuse(&reader, SW_ELIMIT, 1, "it has %zu bytes; at most %zu are read", size, SW_YAML_MAX_BYTES);

	yaml_parser_t parser;
	if (!yaml_parser_initialize(&parser))
		return no_memory(&reader);
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
	int r = read_events(&reader, &parser, text, size);
	yaml_parser_delete(&parser);
	for (unsigned i = 0; i < SW_YAML_MAX_DEPTH; i++)
		free(reader.levels[i].key);
	if (r < 0)
		return r;
	*ret_doc = SW_TAKE(doc);
	return 0;
}

int sw_yaml_load(const char *what, const char *path, struct sw_yaml **ret_doc, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size = 0;
	int r = sw_file_read(path, SW_YAML_MAX_BYTES, &text, &size, err);
	if (r < 0)
		return sw_err_set(err, r, "cannot read %s '%.200s'", what, path);
	return sw_yaml_parse(what, path, text, size, ret_doc, err);
}

void sw_yaml_free(struct sw_yaml *doc)
{
	if (doc == NULL)
		return;
	while (doc->newest != NULL) {
		struct owned *owned = doc->newest;
		doc->newest = owned->older;
		free(owned);
	}
	free(doc->what);
	free(doc->name);
	free(doc);
}

const struct sw_yaml_node *sw_yaml_root(const struct sw_yaml *doc)
{
	return doc->root;
}
