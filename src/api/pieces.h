/* A JSON object in pieces: its members, and the elements of some of its lists, one at a time. So
 * megabytes of them need not be parsed at one go.
 *
 * It finds where each piece begins and ends. It does not check what is inside: the caller parses
 * the pieces that it wants, and what it does not want is never parsed.
 */
#ifndef SW_API_PIECES_H
#define SW_API_PIECES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define SW_PIECE_NAME_MAX 63u

enum sw_piece_kind {
	SW_PIECE_NONE = 0, /* not found yet: call again */
	SW_PIECE_MEMBER,   /* `text` is its value */
	SW_PIECE_LIST,	   /* a list whose elements follow */
	SW_PIECE_ELEMENT,  /* number `index` of it */
	SW_PIECE_END,	   /* of the object */
};

struct sw_piece {
	enum sw_piece_kind kind;
	const char *name; /* of the member; "": longer than any that is known */
	size_t index;
	const char *text; /* not NUL-terminated */
	size_t size;
};

struct sw_pieces {
	const char *what; /* opens every complaint: "cannot read the sync" */
	const char *text;
	size_t size;
	const char *const *lists; /* names of the lists that are given element by element; ends with NULL */
	size_t parts_most;	  /* commas and brackets; more are refused */

	/* Its own: */
	int phase;
	size_t at, begin, index, parts;
	unsigned long depth;
	bool in_text;
	char name[SW_PIECE_NAME_MAX + 1];
};

/* The next piece, or SW_PIECE_NONE after some 16 KiB without one. SW_EINPUT: it is no object;
 * SW_ELIMIT: it has too many parts. */
int sw_pieces_next(struct sw_pieces *pieces, struct sw_piece *ret_piece, struct sw_err *err);

#endif
