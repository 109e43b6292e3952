/* The head of an HTTP/1.1 request from bytes, and the first line of an answer. Pure; the
 * sockets are the controller's.
 *
 * Strict where leniency lets two readers of one stream disagree. Lines end with CR LF, and header
 * names stand directly before their colon. A length is one plain number, and a body comes with its
 * length (no transfer codings). What is not needed is checked for form and skipped.
 */
#ifndef SW_API_HTTP_H
#define SW_API_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SW_HTTP_HEAD_MAX ((size_t)16 << 10)
#define SW_HTTP_TARGET_MAX 4096u
#define SW_HTTP_HEADERS_MAX 64u
#define SW_HTTP_TOKEN_LEAST 32u /* characters */
#define SW_HTTP_TOKEN_MAX 512u
#define SW_HTTP_KEY_MAX 128u

enum sw_method {
	SW_GET = 0,
	SW_POST,
	SW_OTHER_METHOD,
};

struct sw_http_head {
	enum sw_method method;
	char target[SW_HTTP_TARGET_MAX + 1]; /* as it stands in the request: starts with '/', percent escapes and all */
	uint64_t body_size;
	bool keep_alive;
	bool is_old; /* HTTP/1.0 */
	bool expects_continue;
	char token[SW_HTTP_TOKEN_MAX + 1]; /* of "Authorization: Bearer ..."; "" without one */
	char key[SW_HTTP_KEY_MAX + 1];	   /* of "Idempotency-Key: ...": visible characters; "" without one */
	uint64_t last_event_id;		   /* 0: none */
	bool has_last_event_id;
	size_t size; /* of the head, with the empty line */
};

/* 1: the head is complete. 0: more bytes are needed. Negative: it is no request that can be
 * answered but with *ret_status (400, 414, 431, 501, 505) and a closed connection. */
int sw_http_parse_head(const char *bytes, size_t size, struct sw_http_head *ret_head, int *ret_status, struct sw_err *err);

/* "Not Found"; "Unknown" for a number without a name. */
const char *sw_http_reason(int status);

#endif
