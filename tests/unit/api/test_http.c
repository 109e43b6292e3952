/* Heads of HTTP requests. That malformed ones are refused over real sockets is tested with the
 * server; here is what is understood. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/http.h"

static int parse(const char *text, struct sw_http_head *ret_head, int *ret_status)
{
	struct sw_err err = {0};
	return sw_http_parse_head(text, strlen(text), ret_head, ret_status, &err);
}

/* The parts that matter are found, in any case and with any space around them. */
static void test_parts(void **state)
{
	(void)state;
	struct sw_http_head head;
	int status = 0;
	const char *text = "POST /v1/jobs?a=b HTTP/1.1\r\nhOST: x\r\nCONTENT-length: \t12 \r\nauthorization: bearer abc.def\r\nExpect: "
			   "100-Continue\r\n"
			   "Last-Event-ID: 77\r\nX-Other:\r\n\r\n{\"a\": 1}";
	assert_int_equal(parse(text, &head, &status), 1);
	assert_int_equal(head.method, SW_POST);
	assert_string_equal(head.target, "/v1/jobs?a=b");
	assert_int_equal(head.body_size, 12);
	assert_true(head.keep_alive && head.expects_continue && head.has_last_event_id && !head.is_old);
	assert_string_equal(head.token, "abc.def");
	assert_int_equal(head.last_event_id, 77);
	assert_int_equal(head.size, strlen(text) - 8);
	assert_int_equal(parse("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", &head, &status), 1);
	assert_false(head.keep_alive);
	assert_string_equal(head.token, "");
	assert_int_equal(head.body_size, 0);
	assert_int_equal(parse("GET / HTTP/1.0\r\n\r\n", &head, &status), 1);
	assert_true(!head.keep_alive && head.is_old);
	assert_int_equal(parse("PATCH / HTTP/1.1\r\n\r\n", &head, &status), 1);
	assert_int_equal(head.method, SW_OTHER_METHOD);
}

/* A head that comes in pieces is waited for at every byte, and understood at the last. */
static void test_pieces(void **state)
{
	(void)state;
	const char *text = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
	struct sw_http_head head;
	int status = 0;
	for (size_t size = 0; size < strlen(text); size++) {
		/* Exact, so that a read beyond is seen. */
		char *piece = malloc(size + 1);
		memcpy(piece, text, size);
		assert_int_equal(sw_http_parse_head(piece, size, &head, &status, NULL), 0);
		free(piece);
	}
	assert_int_equal(parse(text, &head, &status), 1);
}

/* An authorization of another kind, or one too long, is none. */
static void test_other_authorization(void **state)
{
	(void)state;
	struct sw_http_head head;
	int status = 0;
	assert_int_equal(parse("GET / HTTP/1.1\r\nAuthorization: Basic abc\r\n\r\n", &head, &status), 1);
	assert_string_equal(head.token, "");
	char text[1024] = "GET / HTTP/1.1\r\nAuthorization: Bearer ";
	memset(text + strlen(text), 'x', SW_HTTP_TOKEN_MAX + 1);
	strcat(text, "\r\n\r\n");
	assert_int_equal(parse(text, &head, &status), 1);
	assert_string_equal(head.token, "");
	status = 0;
	assert_int_equal(parse("GET / HTTP/1.1\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", &head, &status), SW_EINPUT);
	assert_int_equal(status, 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_pieces),
					   cmocka_unit_test(test_other_authorization)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
