/* The OpenAPI document, written from the table of routes and the schemas. */
#include <stdio.h>
#include <string.h>

#include "api/json.h"
#include "api/routes.h"

static void write_reference(struct sw_json *json, const char *name, size_t size)
{
	char text[96];
	snprintf(text, sizeof text, "#/components/schemas/%.*s", (int)size, name);
	sw_json_object(json);
	sw_json_key_string(json, "$ref", text);
	sw_json_end_object(json);
}

/* One of the kinds of routes.h; "[]" behind it makes a list. */
static void write_simple_type(struct sw_json *json, const char *type, size_t size)
{
	bool is_list = size > 2 && memcmp(type + size - 2, "[]", 2) == 0;
	if (is_list) {
		size -= 2;
		sw_json_object(json);
		sw_json_key_string(json, "type", "array");
		sw_json_key(json, "items");
	}
	if (type[0] == '#') {
		write_reference(json, type + 1, size - 1);
	} else {
		sw_json_object(json);
		sw_json_key(json, "type");
		sw_json_string_n(json, type, size);
		sw_json_end_object(json);
	}
	if (is_list)
		sw_json_end_object(json);
}

static void write_type(struct sw_json *json, const char *type)
{
	size_t size = strcspn(type, "|");
	if (type[size] == '\0') {
		write_simple_type(json, type, size);
		return;
	}
	sw_json_object(json);
	sw_json_key(json, "oneOf");
	sw_json_array(json);
	for (;; size = strcspn(type, "|")) {
		write_simple_type(json, type, size);
		if (type[size] == '\0')
			break;
		type += size + 1;
	}
	sw_json_end_array(json);
	sw_json_end_object(json);
}

/* What its table says of the values: the words, or the least and the most. */
static void write_bounds(struct sw_json *json, const struct sw_field *field)
{
	switch (field->kind) {
	case SW_FIELD_BOOL:
	case SW_FIELD_WORD:
		if (field->words == NULL)
			break;
		sw_json_key(json, "enum");
		sw_json_array(json);
		for (size_t i = 0; field->words[i] != NULL; i++)
			sw_json_string(json, field->words[i]);
		sw_json_null(json);
		sw_json_end_array(json);
		break;
	case SW_FIELD_TEXT:
		sw_json_key_i64(json, "maxLength", field->max);
		break;
	case SW_FIELD_TEXTS:
	case SW_FIELD_LIST:
		sw_json_key_u64(json, "maxItems", field->most);
		break;
	case SW_FIELD_U32:
	case SW_FIELD_U64:
	case SW_FIELD_I32:
	case SW_FIELD_I64:
		sw_json_key_i64(json, "minimum", field->min);
		sw_json_key_i64(json, "maximum", field->max);
		break;
	default:
		break;
	}
}

/* JSON Schema wants words beside a type, and a reference may have no neighbours: it is wrapped. */
static void write_field(struct sw_json *json, const struct sw_api_field *field, const struct sw_field *bounds)
{
	sw_json_key(json, field->name);
	sw_json_object(json);
	if (field->about[0] != '\0')
		sw_json_key_string(json, "description", field->about);
	sw_json_key(json, "allOf");
	sw_json_array(json);
	write_type(json, field->type);
	sw_json_end_array(json);
	if (bounds != NULL)
		write_bounds(json, bounds);
	sw_json_key_bool(json, "nullable", true);
	sw_json_end_object(json);
}

static void write_schema(struct sw_json *json, const struct sw_schema *schema)
{
	const struct sw_field *bounds;
	struct sw_api_field field;
	sw_json_key(json, schema->name);
	sw_json_object(json);
	sw_json_key_string(json, "description", schema->about);
	sw_json_key_string(json, "type", "object");
	sw_json_key(json, "properties");
	sw_json_object(json);
	for (size_t i = 0; sw_schema_field(schema, i, &field, &bounds); i++)
		write_field(json, &field, bounds);
	sw_json_end_object(json);
	sw_json_end_object(json);
}

static void write_parameter(struct sw_json *json, const char *name, const char *in, const char *type, const char *about)
{
	sw_json_object(json);
	sw_json_key_string(json, "name", name);
	sw_json_key_string(json, "in", in);
	if (strcmp(in, "path") == 0)
		sw_json_key_bool(json, "required", true);
	sw_json_key_string(json, "description", about);
	sw_json_key(json, "schema");
	write_type(json, type);
	sw_json_end_object(json);
}

static void write_parameters(struct sw_json *json, const struct sw_route *route)
{
	sw_json_key(json, "parameters");
	sw_json_array(json);
	if (strstr(route->path, "{id}") != NULL)
		write_parameter(json, "id", "path", "integer", "the job");
	if (route->id == SW_ROUTE_SUBMIT)
		write_parameter(json, "Idempotency-Key", "header", "string",
				"1 to 128 visible characters of your choice: the same user, key and body within a day give the same jobs");
	for (const struct sw_api_field *field = route->parameters; field != NULL && field->name != NULL; field++)
		write_parameter(json, field->name, "query", field->type, field->about);
	sw_json_end_array(json);
}

static void write_content(struct sw_json *json, const char *media, const char *schema)
{
	sw_json_key(json, "content");
	sw_json_object(json);
	sw_json_key(json, media);
	sw_json_object(json);
	sw_json_key(json, "schema");
	write_type(json, schema != NULL ? schema : "string");
	sw_json_end_object(json);
	sw_json_end_object(json);
}

static void write_responses(struct sw_json *json, const struct sw_route *route)
{
	char status[8];
	snprintf(status, sizeof status, "%d", route->status);
	sw_json_key(json, "responses");
	sw_json_object(json);
	sw_json_key(json, status);
	sw_json_object(json);
	sw_json_key_string(json, "description", "all is well");
	write_content(json, route->media, route->response);
	sw_json_end_object(json);
	sw_json_key(json, "default");
	sw_json_object(json);
	sw_json_key_string(json, "description", "what went wrong");
	write_content(json, "application/json", "#Error");
	sw_json_end_object(json);
	sw_json_end_object(json);
}

static void write_operation(struct sw_json *json, const struct sw_route *route)
{
	sw_json_key(json, route->method == SW_GET ? "get" : "post");
	sw_json_object(json);
	sw_json_key_string(json, "operationId", route->name);
	sw_json_key_string(json, "summary", route->about);
	write_parameters(json, route);
	if (route->request != NULL) {
		sw_json_key(json, "requestBody");
		sw_json_object(json);
		sw_json_key_bool(json, "required", true);
		write_content(json, "application/json", route->request);
		sw_json_end_object(json);
	}
	write_responses(json, route);
	if (route->roles == SW_ROLE_NOBODY) {
		sw_json_key(json, "security");
		sw_json_array(json);
		sw_json_end_array(json);
	}
	sw_json_end_object(json);
}

/* Routes of one path are one entry, which stands where the first of them does. */
static void write_paths(struct sw_json *json)
{
	sw_json_key(json, "paths");
	sw_json_object(json);
	for (size_t i = 0; i < SW_ROUTES; i++) {
		bool is_first = true;
		for (size_t j = 0; j < i; j++)
			is_first = is_first && strcmp(sw_routes[j].path, sw_routes[i].path) != 0;
		if (!is_first)
			continue;
		sw_json_key(json, sw_routes[i].path);
		sw_json_object(json);
		for (size_t j = i; j < SW_ROUTES; j++)
			if (strcmp(sw_routes[j].path, sw_routes[i].path) == 0)
				write_operation(json, &sw_routes[j]);
		sw_json_end_object(json);
	}
	sw_json_end_object(json);
}

static void write_components(struct sw_json *json)
{
	sw_json_key(json, "components");
	sw_json_object(json);
	sw_json_key(json, "schemas");
	sw_json_object(json);
	for (const struct sw_schema *schema = sw_schemas; schema->name != NULL; schema++)
		write_schema(json, schema);
	sw_json_end_object(json);
	sw_json_key(json, "securitySchemes");
	sw_json_object(json);
	sw_json_key(json, "token");
	sw_json_object(json);
	sw_json_key_string(json, "type", "http");
	sw_json_key_string(json, "scheme", "bearer");
	sw_json_end_object(json);
	sw_json_end_object(json);
	sw_json_end_object(json);
}

char *sw_openapi_encode(void)
{
	struct sw_json json = {0};
	sw_json_object(&json);
	sw_json_key_string(&json, "openapi", "3.0.3");
	sw_json_key(&json, "info");
	sw_json_object(&json);
	sw_json_key_string(&json, "title", "Sharewell");
	sw_json_key_string(&json, "version", SW_VERSION);
	sw_json_end_object(&json);
	write_paths(&json);
	write_components(&json);
	sw_json_key(&json, "security");
	sw_json_array(&json);
	sw_json_object(&json);
	sw_json_key(&json, "token");
	sw_json_array(&json);
	sw_json_end_array(&json);
	sw_json_end_object(&json);
	sw_json_end_array(&json);
	sw_json_end_object(&json);
	return sw_json_take(&json, NULL);
}
