#include "cli/lost.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "cli/job_options.h"
#include "server/server.h"

#define AFTER_LEAST_NS SW_NS_PER_S
#define AFTER_MOST_NS (INT64_C(86400) * SW_NS_PER_S)

static int wrong(struct sw_err *err, const char *option, const char *value, const char *expected)
{
	sw_err_set(err, SW_EINPUT, "--%s cannot be '%.60s'", option, value);
	sw_err_detail(err, "it takes %s", expected);
	return SW_EINPUT;
}

static int read_classes(const char *classes, struct sw_controller_options *options, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *copy = strdup(classes);
	if (copy == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	char *rest = copy;
	for (const char *word; (word = strsep(&rest, ",")) != NULL;) {
		size_t kind = 0;
		const char *name;
		while ((name = sw_job_class_names[kind]) != NULL && strcmp(name, word) != 0)
			kind++;
		if (name == NULL)
			return wrong(err, "on-lost-restart", word, "classes with commas between: guaranteed, opportunistic, auto");
		options->restarts[kind] = true;
	}
	return 0;
}

int sw_cli_lost_read(const struct sw_cli_lost *lost, struct sw_controller_options *options, struct sw_err *err)
{
	if (lost->after != NULL) {
		sw_ns after_ns = 0;
		if (sw_parse_duration(lost->after, strlen(lost->after), &after_ns) < 0 || after_ns < AFTER_LEAST_NS ||
		    after_ns > AFTER_MOST_NS)
			return wrong(err, "unreachable-after", lost->after, "a time from 1s to 24h");
		options->silence_ns = after_ns;
	}
	return lost->classes != NULL ? read_classes(lost->classes, options, err) : 0;
}
