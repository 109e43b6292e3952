/* The one table of the HTTP API: what can be asked, by which callers, with which
 * parameters and bodies. Requests are matched and decoded by it, the OpenAPI document and
 * docs/api.md are written from it. */
#ifndef SW_API_ROUTES_H
#define SW_API_ROUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/fields.h"
#include "api/http.h"

enum sw_route_id {
	SW_ROUTE_SUBMIT = 0,
	SW_ROUTE_LIST,
	SW_ROUTE_JOB,
	SW_ROUTE_CANCEL,
	SW_ROUTE_HOLD,
	SW_ROUTE_RELEASE,
	SW_ROUTE_REQUEUE,
	SW_ROUTE_SUSPEND,
	SW_ROUTE_RESUME,
	SW_ROUTE_LIMIT,
	SW_ROUTE_MOVE,
	SW_ROUTE_CHANGE,
	SW_ROUTE_WHY,
	SW_ROUTE_FORECAST,
	SW_ROUTE_TRY,
	SW_ROUTE_LOGS,
	SW_ROUTE_NODES,
	SW_ROUTE_NODE_DOOR,
	SW_ROUTE_CLUSTER,
	SW_ROUTE_GET_POLICY,
	SW_ROUTE_SET_POLICY,
	SW_ROUTE_GET_WORLD,
	SW_ROUTE_SET_WORLD,
	SW_ROUTE_GET_QUOTA,
	SW_ROUTE_QUOTA,
	SW_ROUTE_EVENTS,
	SW_ROUTE_SYNC,
	SW_ROUTE_BACKUP,
	SW_ROUTE_KEPT,
	SW_ROUTE_METRICS,
	SW_ROUTE_HEALTH,
	SW_ROUTE_OPENAPI,
	SW_ROUTES
};

/* Which callers may ask; several can be set. Operators may do what users may. */
enum sw_role {
	SW_ROLE_USER = 1,
	SW_ROLE_OPERATOR = 2,
	SW_ROLE_AGENT = 4,
};
#define SW_ROLE_NOBODY 0u /* needed: no name at all */

/* The role of a name, "user"; 0: none. And the name of one role. */
unsigned sw_role_find(const char *name);
const char *sw_role_name(unsigned role);

/* A parameter of the query, or a field of a schema. */
struct sw_api_field {
	const char *name; /* NULL behind the last */
	const char *
		/* "string", "integer", "number", "boolean", "object", "#Job" (a schema), "string[]"
		 * (a list), "integer|string" (either) */
		type;
	const char *about;
};

struct sw_route {
	enum sw_route_id id;
	enum sw_method method;
	const char *path;  /* "{id}" stands for the number of a job */
	const char *name;  /* of the operation: "submitJobs" */
	const char *about; /* one line */
	const struct sw_api_field *parameters;
	const char *request;  /* type of the body, as in struct sw_api_field; NULL: none */
	const char *response; /* type of what comes back; NULL: text */
	const char *media;    /* of what comes back */
	size_t body_max;
	unsigned roles; /* one of them is needed; SW_ROLE_NOBODY: open to all */
	int status;	/* when all is well */
};
extern const struct sw_route sw_routes[SW_ROUTES]; /* in the order of the ids */

struct sw_schema {
	const char *name; /* NULL behind the last */
	const char *about;
	const struct sw_api_field *fields; /* what no table has; NULL: nothing */
	const struct sw_table *tables[3];  /* whose fields come before those */
};
extern const struct sw_schema sw_schemas[];
const struct sw_schema *sw_schema_find(const char *name);
/* The field of a schema with its number; *ret_bounds: its line in the table, or NULL.
 * False: there are fewer. */
bool sw_schema_field(const struct sw_schema *schema, size_t index, struct sw_api_field *ret_field, const struct sw_field **ret_bounds);

/* The route of a path without query. *ret_status: 404, or 405 with what would be
 * allowed in the error's hint. */
int sw_route_find(enum sw_method method, const char *path, size_t size, const struct sw_route **ret_route, uint64_t *ret_job,
		  int *ret_status, struct sw_err *err);

/* The OpenAPI 3.0 document; NULL: out of memory. The caller frees. */
char *sw_openapi_encode(void);

#endif
