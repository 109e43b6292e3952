#include "cli/trace_write.h"

#include "base/text.h"
#include "cli/message.h"
#include "cli/output.h"
#include "sim/trace/write.h"

struct job {
	const struct sw_trace *trace;
	const char *format;
	struct sw_trace_losses *losses;
};

static int write_trace(FILE *stream, const void *what, struct sw_err *err)
{
	const struct job *job = what;
	return sw_trace_write(job->trace, job->format, stream, job->losses, err);
}

int sw_cli_write_trace(const struct sw_trace *trace, const char *format, const char *path, struct sw_err *err)
{
	struct sw_trace_losses losses = {0};
	int r = sw_cli_output_write(path, write_trace, &(struct job){trace, format, &losses}, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < losses.count; i++) {
		char jobs[SW_TEXT_SIZE];
		sw_cli_print_note("%s: %s (%s)", losses.items[i].field, losses.items[i].how,
				  sw_text_plural(losses.items[i].jobs, "job", "jobs", jobs));
	}
	return 0;
}
