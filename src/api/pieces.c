#include "api/pieces.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define STEP_BYTES ((size_t)16 << 10)

/* What is expected next. */
enum { OBJECT = 0, FIRST_NAME, NAME, IN_NAME, COLON, VALUE, IN_VALUE, FIRST_ELEMENT, ELEMENT, IN_ELEMENT, ELEMENT_END, MEMBER_END, REST };

static int malformed(const struct sw_pieces *pieces, const char *why, struct sw_err *err)
{
	size_t line = 1, line_at = 0, end = pieces->at < pieces->size ? pieces->at : pieces->size;
	for (size_t i = 0; i < end; i++)
		if (pieces->text[i] == '\n') {
			line++;
			line_at = i + 1;
		}
	sw_err_set(err, SW_EINPUT, "%s", pieces->what);
	sw_err_detail(err, "it is not JSON: line %zu, column %zu: %s", line, end - line_at + 1, why);
	return SW_EINPUT;
}

static bool is_space(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static void begin_value(struct sw_pieces *pieces, int phase)
{
	pieces->begin = pieces->at;
	pieces->depth = 0;
	pieces->in_text = false;
	pieces->phase = phase;
}

/* Goes on to the end of the value that is begun, up to `until`. True: it is behind it. */
static bool skip_value(struct sw_pieces *pieces, size_t until)
{
	const char *text = pieces->text;
	for (; pieces->at < until; pieces->at++) {
		char byte = text[pieces->at];
		if (pieces->in_text) {
			if (byte == '\\')
				pieces->at++;
			pieces->in_text = byte != '"';
		} else if (byte == '"') {
			pieces->in_text = true;
		} else if (byte == '[' || byte == '{') {
			pieces->depth++;
			pieces->parts++;
		} else if (byte == ']' || byte == '}') {
			/* The end of what this is in, behind a number or a word. */
			if (pieces->depth == 0)
				return true;
			pieces->depth--;
		} else if (pieces->depth == 0 && (byte == ',' || byte == ':' || is_space(byte))) {
			return true;
		} else {
			pieces->parts += byte == ',';
			continue;
		}
		if (pieces->depth == 0 && !pieces->in_text) {
			pieces->at++;
			return true;
		}
	}
	return false;
}

static bool is_listed(const struct sw_pieces *pieces)
{
	for (const char *const *name = pieces->lists; *name != NULL; name++)
		if (strcmp(*name, pieces->name) == 0)
			return true;
	return false;
}

/* The name between pieces->begin and pieces->at; one that is too long is none that is known. */
static int take_name(struct sw_pieces *pieces, struct sw_err *err)
{
	size_t size = pieces->at - pieces->begin;
	pieces->name[0] = '\0';
	if (size > (size_t)6 * SW_PIECE_NAME_MAX)
		return 0;
	json_t *value = json_loadb(pieces->text + pieces->begin, size, JSON_DECODE_ANY, NULL);
	if (!json_is_string(value)) {
		json_decref(value);
		return malformed(pieces, "this is no name", err);
	}
	if (json_string_length(value) <= SW_PIECE_NAME_MAX)
		memcpy(pieces->name, json_string_value(value), json_string_length(value) + 1);
	json_decref(value);
	return 0;
}

static void give(struct sw_pieces *pieces, enum sw_piece_kind kind, struct sw_piece *ret_piece)
{
	*ret_piece = (struct sw_piece){
		.kind = kind,
		.name = pieces->name,
		.index = pieces->index,
		.text = pieces->text + pieces->begin,
		.size = pieces->at - pieces->begin,
	};
}

/* One character that stands between values. */
static int take_sign(struct sw_pieces *pieces, char byte, struct sw_piece *ret_piece, struct sw_err *err)
{
	bool opens = byte == '{' && pieces->phase == OBJECT;
	bool closes = byte == '}' && (pieces->phase == FIRST_NAME || pieces->phase == MEMBER_END);
	bool ends_list = byte == ']' && (pieces->phase == FIRST_ELEMENT || pieces->phase == ELEMENT_END);
	switch (pieces->phase) {
	case FIRST_NAME:
	case NAME:
		if (byte == '"') {
			begin_value(pieces, IN_NAME);
			return 0;
		}
		break;
	case VALUE:
		if (byte == '[' && is_listed(pieces)) {
			pieces->begin = pieces->at++;
			pieces->index = 0;
			pieces->phase = FIRST_ELEMENT;
			give(pieces, SW_PIECE_LIST, ret_piece);
			return 0;
		}
		begin_value(pieces, IN_VALUE);
		return 0;
	case FIRST_ELEMENT:
	case ELEMENT:
		if (!ends_list) {
			begin_value(pieces, IN_ELEMENT);
			return 0;
		}
		break;
	default:
		break;
	}
	if (opens)
		pieces->phase = FIRST_NAME;
	else if (closes)
		pieces->phase = REST;
	else if (ends_list)
		pieces->phase = MEMBER_END;
	else if (byte == ':' && pieces->phase == COLON)
		pieces->phase = VALUE;
	else if (byte == ',' && pieces->phase == MEMBER_END)
		pieces->phase = NAME;
	else if (byte == ',' && pieces->phase == ELEMENT_END)
		pieces->phase = ELEMENT;
	else
		return malformed(pieces,
				 pieces->phase != OBJECT ? "this does not belong here"
				 : byte == '['		 ? "it is a list, expected an object"
							 : "expected an object",
				 err);
	pieces->parts++;
	pieces->at++;
	return 0;
}

static bool is_within(const struct sw_pieces *pieces)
{
	return pieces->phase == IN_NAME || pieces->phase == IN_VALUE || pieces->phase == IN_ELEMENT;
}

/* A name or value has come to its end. */
static int end_value(struct sw_pieces *pieces, struct sw_piece *ret_piece, struct sw_err *err)
{
	if (pieces->at > pieces->size || pieces->at == pieces->begin)
		return malformed(pieces, pieces->at > pieces->size ? "it ends too soon" : "a value is missing", err);
	int phase = pieces->phase;
	pieces->phase = phase == IN_NAME ? COLON : phase == IN_VALUE ? MEMBER_END : ELEMENT_END;
	if (phase == IN_NAME)
		return take_name(pieces, err);
	give(pieces, phase == IN_VALUE ? SW_PIECE_MEMBER : SW_PIECE_ELEMENT, ret_piece);
	pieces->index += phase == IN_ELEMENT;
	return 0;
}

int sw_pieces_next(struct sw_pieces *pieces, struct sw_piece *ret_piece, struct sw_err *err)
{
	size_t until = pieces->size - pieces->at > STEP_BYTES ? pieces->at + STEP_BYTES : pieces->size;
	*ret_piece = (struct sw_piece){.name = ""};
	int r = 0;
	while (r == 0 && ret_piece->kind == SW_PIECE_NONE && pieces->at < until) {
		if (is_within(pieces))
			r = skip_value(pieces, until) ? end_value(pieces, ret_piece, err) : 0;
		else if (is_space(pieces->text[pieces->at]))
			pieces->at++;
		else
			r = take_sign(pieces, pieces->text[pieces->at], ret_piece, err);
	}
	if (r == 0 && pieces->parts > pieces->parts_most) {
		sw_err_set(err, SW_ELIMIT, "%s", pieces->what);
		sw_err_detail(err, "it has more parts than %zu", pieces->parts_most);
		return SW_ELIMIT;
	}
	if (r < 0 || ret_piece->kind != SW_PIECE_NONE || pieces->at < pieces->size)
		return r;
	if (pieces->phase != REST || pieces->at > pieces->size)
		return malformed(pieces, "it ends too soon", err);
	ret_piece->kind = SW_PIECE_END;
	return 0;
}
