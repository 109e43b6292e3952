/* The query of a request: "state=PD,R&limit=10", taken apart. */
#ifndef SW_API_QUERY_H
#define SW_API_QUERY_H

#include <stddef.h>

#include "base/error.h"

#define SW_QUERY_MAX 16u /* parameters */

struct sw_query {
	struct sw_query_item {
		const char *name, *value;
	} items[SW_QUERY_MAX];
	size_t count;
	char text[4200]; /* what the items point into */
};

/* Fills `query`. Percent escapes and '+' become what they stand for. Refused: escapes that are
 * none, NUL, what is not UTF-8, too many. */
int sw_query_parse(const char *text, struct sw_query *query, struct sw_err *err);

#endif
