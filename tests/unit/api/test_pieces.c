/* JSON objects in pieces: each member and element once, as it stands; what is no object is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "api/pieces.h"

static const char *const lists[] = {"l", "m", NULL};

/* What it is made of, in one line: "a=1 l[ l[0]=2 l[1]={} .". */
static int describe(const char *text, char *line, size_t room, struct sw_err *err)
{
	struct sw_pieces pieces = {.what = "cannot read it", .text = text, .size = strlen(text), .lists = lists, .parts_most = 1000};
	struct sw_piece piece = {0};
	size_t used = 0;
	line[0] = '\0';
	while (piece.kind != SW_PIECE_END) {
		int r = sw_pieces_next(&pieces, &piece, err);
		if (r < 0)
			return r;
		if (piece.kind == SW_PIECE_MEMBER)
			used += (size_t)snprintf(line + used, room - used, "%s=%.*s ", piece.name, (int)piece.size, piece.text);
		else if (piece.kind == SW_PIECE_LIST)
			used += (size_t)snprintf(line + used, room - used, "%s[ ", piece.name);
		else if (piece.kind == SW_PIECE_ELEMENT)
			used += (size_t)snprintf(line + used, room - used, "%s[%zu]=%.*s ", piece.name, piece.index, (int)piece.size,
						 piece.text);
	}
	snprintf(line + used, room - used, ".");
	return 0;
}

/* Objects are cut where their pieces begin and end. */
static void test_pieces(void **state)
{
	(void)state;
	static const struct {
		const char *text, *line;
	} cases[] = {
		{"{}", "."},
		{" \t\r\n{ } \n", "."},
		{"{\"a\":1}", "a=1 ."},
		{"{\"a\" : -1.5e3 , \"b\":\"x\\\"]}\", \"c\":null}", "a=-1.5e3 b=\"x\\\"]}\" c=null ."},
		{"{\"l\":[]}", "l[ ."},
		{"{\"l\":[ 1 , [2,3], {\"l\":[4]}, \"5\" ],\"b\":[6,7]}", "l[ l[0]=1 l[1]=[2,3] l[2]={\"l\":[4]} l[3]=\"5\" b=[6,7] ."},
		{"{\"l\":{\"m\":[1]},\"m\":[true]}", "l={\"m\":[1]} m[ m[0]=true ."},
		{"{\"\\u006c\":[1]}", "l[ l[0]=1 ."},
		{"{\"\":1,\"a\\\\\":\"\\\\\"}", "=1 a\\=\"\\\\\" ."},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char line[200];
		struct sw_err err = {0};
		assert_int_equal(describe(cases[i].text, line, sizeof line, &err), 0);
		assert_string_equal(line, cases[i].line);
	}
}

/* What is no object, or ends too soon, is refused with its place. */
static void test_refused(void **state)
{
	(void)state;
	static const char *const cases[] = {
		"",
		" ",
		"null",
		"[]",
		"{",
		"{\"a\"",
		"{\"a\":",
		"{\"a\":}",
		"{\"a\":1",
		"{\"a\":1,",
		"{\"a\":1,}",
		"{,}",
		"{1:2}",
		"{\"a\" 1}",
		"{\"a\":1}}",
		"{}{}",
		"{\"a\":1 2}",
		"{\"a",
		"{\"a\\",
		"{\"a\":\"\\",
		"{\"l\":[",
		"{\"l\":[,]}",
		"{\"l\":[1,]}",
		"{\"l\":[1 2]}",
		"{\"l\":[1}",
		"{\"l\":[1]",
		"{\"a\":[}",
		"{\"a\":1:2}",
		"{\"\\x\":1}",
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char line[200];
		struct sw_err err = {0};
		assert_int_equal(describe(cases[i], line, sizeof line, &err), SW_EINPUT);
		assert_non_null(strstr(err.detail, "it is not JSON: line 1, column "));
	}
}

/* Every beginning of an object is refused, and never read beyond. */
static void test_cut(void **state)
{
	(void)state;
	static const char whole[] = "{\"a\":\"x\\\\\",\"l\":[{\"b\":[1,\"]\"]},2.5,\"\\\"\"],\"c\":{\"l\":[1]}}";
	for (size_t size = 0; size < sizeof whole - 1; size++) {
		char *copy = malloc(size + 1), line[200];
		struct sw_err err = {0};
		assert_non_null(copy);
		memcpy(copy, whole, size);
		copy[size] = '\0';
		assert_int_equal(describe(copy, line, sizeof line, &err), SW_EINPUT);
		free(copy);
	}
}

/* More parts than may be are refused, wherever they are. */
static void test_parts(void **state)
{
	(void)state;
	char text[4000], line[20];
	for (int where = 0; where < 3; where++) {
		struct sw_err err = {0};
		size_t used = (size_t)sprintf(text, where == 0 ? "{\"a\":[" : where == 1 ? "{\"l\":[[" : "{\"a\":{\"b\":[");
		for (int i = 0; i < 1001; i++)
			used += (size_t)sprintf(text + used, "1,");
		assert_int_equal(describe(text, line, sizeof line, &err), SW_ELIMIT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_parts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
