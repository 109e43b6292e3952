/* docs/api.md and the OpenAPI document say what the tables say.
 *
 * The part of docs/api.md behind its marker is written from the tables. When they change, let
 * this test write it anew:
 *	SHAREWELL_WRITE_DOCS=1 ctest --test-dir build/dev -R unit/api/reference
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "api/routes.h"
#include "base/cleanup.h"
#include "base/file.h"

#define PAGE SW_SOURCE_DIR "/docs/api.md"
#define MARKER "<!-- From here on written from the tables of src/api; see tests/unit/api/test_reference.c. -->\n"

static const char *roles_of(const struct sw_route *route)
{
	if (route->roles == SW_ROLE_NOBODY)
		return "nothing";
	if ((route->roles & SW_ROLE_USER) != 0)
		return (route->roles & SW_ROLE_AGENT) != 0 ? "all roles" : "user";
	return route->roles == SW_ROLE_AGENT ? "agent" : "operator";
}

/* "#Job[]" as people say it, with a link; a bar would end the cell. */
static void write_type(FILE *out, const char *type)
{
	while (*type != '\0') {
		size_t size = strcspn(type, "|");
		bool is_list = size > 2 && type[size - 1] == ']';
		size_t word = is_list ? size - 2 : size;
		if (is_list)
			fputs("list of ", out);
		if (type[0] == '#') {
			fprintf(out, "[%.*s](#", (int)word - 1, type + 1);
			for (size_t i = 1; i < word; i++)
				fputc(type[i] | 0x20, out);
			fputc(')', out);
		} else {
			fprintf(out, "%.*s", (int)word, type);
		}
		type += size;
		if (*type == '|') {
			fputs(" or ", out);
			type++;
		}
	}
}

/* Where there are no words, the bounds tell something. */
static void write_field(FILE *out, const struct sw_api_field *field, const struct sw_field *bounds)
{
	char expected[200];
	const char *about = field->about;
	if (about[0] == '\0' && bounds != NULL)
		about = sw_field_expected(bounds, expected, sizeof expected);
	fprintf(out, "| `%s` | ", field->name);
	write_type(out, field->type);
	fprintf(out, " | %s |\n", about);
}

static void write_parameters(FILE *out, const struct sw_api_field *fields)
{
	fputs("| parameter | type | |\n|---|---|---|\n", out);
	for (const struct sw_api_field *field = fields; field->name != NULL; field++)
		write_field(out, field, NULL);
	fputc('\n', out);
}

static void write_schema(FILE *out, const struct sw_schema *schema)
{
	const struct sw_field *bounds;
	struct sw_api_field field;
	fprintf(out, "### %s\n\n%s.\n\n", schema->name, schema->about);
	for (size_t i = 0; sw_schema_field(schema, i, &field, &bounds); i++) {
		if (i == 0)
			fputs("| field | type | |\n|---|---|---|\n", out);
		write_field(out, &field, bounds);
	}
	if (sw_schema_field(schema, 0, &field, &bounds))
		fputc('\n', out);
}

static void write_route(FILE *out, const struct sw_route *route)
{
	fprintf(out, "### %s %s\n\n%s. Needs: %s.", route->method == SW_GET ? "GET" : "POST", route->path, route->about, roles_of(route));
	if (route->request != NULL) {
		fputs(" Takes ", out);
		write_type(out, route->request);
		fputc('.', out);
	}
	fprintf(out, " Gives %d and ", route->status);
	if (route->response != NULL)
		write_type(out, route->response);
	else
		fprintf(out, "`%s`", route->media);
	fputs(".\n\n", out);
	if (route->parameters != NULL)
		write_parameters(out, route->parameters);
}

static char *write_reference(void)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	fputs(MARKER, out);
	fputs("\n## Requests\n\n", out);
	for (size_t i = 0; i < SW_ROUTES; i++)
		write_route(out, &sw_routes[i]);
	fputs("## What they are made of\n\n", out);
	for (const struct sw_schema *schema = sw_schemas; schema->name != NULL; schema++)
		write_schema(out, schema);
	/* The last section ends with a line, not with two. */
	fflush(out);
	fclose(out);
	while (size > 1 && text[size - 1] == '\n' && text[size - 2] == '\n')
		text[--size] = '\0';
	return text;
}

/* The reference in docs/api.md is the one that the tables give. */
static void test_page(void **state)
{
	(void)state;
	SW_CLEANUP(sw_freep) char *page = NULL, *reference = write_reference();
	size_t size;
	assert_int_equal(sw_file_read(PAGE, 1 << 20, &page, &size, NULL), 0);
	char *marker = strstr(page, MARKER);
	assert_non_null(marker);
	if (getenv("SHAREWELL_WRITE_DOCS") != NULL) {
		FILE *out = fopen(PAGE, "w");
		assert_non_null(out);
		fprintf(out, "%.*s%s", (int)(marker - page), page, reference);
		assert_int_equal(fclose(out), 0);
		print_message("wrote %s\n", PAGE);
	} else if (strcmp(marker, reference) != 0) {
		fail_msg("docs/api.md is not what the tables say; SHAREWELL_WRITE_DOCS=1 and this test write it anew");
	}
}

/* Every reference in the OpenAPI document leads somewhere inside it. */
static void check_references(const json_t *root, const json_t *value)
{
	const char *key;
	json_t *member;
	size_t i;
	const char *reference = json_string_value(json_object_get(value, "$ref"));
	if (reference != NULL) {
		static const char prefix[] = "#/components/schemas/";
		assert_memory_equal(reference, prefix, sizeof prefix - 1);
		json_t *schemas = json_object_get(json_object_get(root, "components"), "schemas");
		if (json_object_get(schemas, reference + sizeof prefix - 1) == NULL)
			fail_msg("%s is not there", reference);
	}
	json_object_foreach((json_t *)(uintptr_t)value, key, member)
	{
		check_references(root, member);
	}
	json_array_foreach(value, i, member)
	{
		check_references(root, member);
	}
}

/* The OpenAPI document is JSON, has every route with its method, and nothing that leads nowhere. */
static void test_openapi(void **state)
{
	(void)state;
	SW_CLEANUP(sw_freep) char *text = sw_openapi_encode();
	assert_non_null(text);
	json_error_t error;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (root == NULL)
		fail_msg("line %d: %s", error.line, error.text);
	json_t *paths = json_object_get(root, "paths");
	size_t operations = 0;
	for (size_t i = 0; i < SW_ROUTES; i++) {
		const struct sw_route *route = &sw_routes[i];
		json_t *operation = json_object_get(json_object_get(paths, route->path), route->method == SW_GET ? "get" : "post");
		assert_string_equal(json_string_value(json_object_get(operation, "operationId")), route->name);
		char status[8];
		snprintf(status, sizeof status, "%d", route->status);
		assert_non_null(json_object_get(json_object_get(operation, "responses"), status));
		assert_int_equal(json_object_get(operation, "requestBody") != NULL, route->request != NULL);
	}
	const char *path;
	json_t *methods;
	json_object_foreach(paths, path, methods)
	{
		operations += json_object_size(methods);
	}
	assert_int_equal(operations, SW_ROUTES);
	check_references(root, root);
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_page), cmocka_unit_test(test_openapi)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
