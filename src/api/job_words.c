/* The small languages inside a job's fields: signals, dependencies, arrays. */
#include <string.h>
#include <strings.h>

#include "api/job_private.h"
#include "base/number.h"

const char *const sw_job_class_names[] = {"guaranteed", "opportunistic", "auto", NULL};
const char *const sw_job_preempt_names[] = {"requeue", "suspend", "never", NULL};
const char *const sw_job_on_lost_names[] = {"wait", "restart", NULL};
const char *const sw_job_depend_names[] = {"afterok", "afterany", "afternotok", NULL};

/* As Linux numbers them on the machines that have GPUs. */
static const char *const signals[] = {NULL,   "HUP",  "INT",  "QUIT", "ILL",	"TRAP",	  "ABRT",  "BUS",  "FPE",  "KILL", "USR1",
				      "SEGV", "USR2", "PIPE", "ALRM", "TERM",	"STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN",
				      "TTOU", "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",	  "WINCH", "IO",   "PWR",  "SYS"};
#define SIGNALS (sizeof signals / sizeof signals[0])

uint32_t sw_job_signal(const char *name)
{
	uint64_t number;
	if (sw_parse_u64(name, strlen(name), &number) == 0)
		return number <= 64 ? (uint32_t)number : 0;
	if (strncasecmp(name, "SIG", 3) == 0)
		name += 3;
	for (uint32_t i = 1; i < SIGNALS; i++)
		if (strcasecmp(name, signals[i]) == 0)
			return i;
	return 0;
}

const char *sw_job_signal_name(uint32_t number)
{
	return number < SIGNALS ? signals[number] : NULL;
}

/* A plain decimal number at most `most`, up to a byte of `ends` or the end of the text; returns
 * where it ended, or NULL. */
static const char *parse_number(const char *text, const char *ends, uint64_t most, uint64_t *ret_number)
{
	size_t size = strcspn(text, ends);
	uint64_t number;
	if (size == 0 || strspn(text, "0123456789") < size || sw_parse_u64(text, size, &number) < 0 || number > most)
		return NULL;
	*ret_number = number;
	return text + size;
}

/* "afterok:12:13" up to the comma or the end; returns where it ended, or NULL. */
static const char *parse_depend(const char *text, struct sw_job_request *request, int *ret_code)
{
	size_t size = strcspn(text, ":,");
	uint32_t kind = 0;
	while (sw_job_depend_names[kind] != NULL &&
	       (strlen(sw_job_depend_names[kind]) != size || strncmp(text, sw_job_depend_names[kind], size) != 0))
		kind++;
	if (sw_job_depend_names[kind] == NULL || text[size] != ':')
		return NULL;
	text += size;
	while (*text == ':') {
		uint64_t job;
		text = parse_number(text + 1, ":,", SW_JOB_ID_MAX, &job);
		if (text == NULL || job == 0)
			return NULL;
		if (request->depend_count == SW_JOB_DEPENDS_MAX) {
			*ret_code = SW_ELIMIT;
			return NULL;
		}
		request->depends[request->depend_count++] = (struct sw_depend){.kind = (enum sw_depend_kind)kind, .job = job};
	}
	return text;
}

int sw_job_depends_parse(const char *text, struct sw_job_request *request)
{
	int code = SW_EINPUT;
	request->depend_count = 0;
	if (text[0] == '\0')
		return 0;
	for (;;) {
		text = parse_depend(text, request, &code);
		if (text == NULL)
			return code;
		if (*text == '\0')
			return 0;
		text++;
	}
}

int sw_job_array_parse(const char *text, struct sw_job_request *request)
{
	uint64_t first, last, step = 1, limit = 0;
	text = parse_number(text, "-:%", SW_JOB_ARRAY_INDEX_MAX, &first);
	if (text == NULL)
		return SW_EINPUT;
	last = first;
	if (*text == '-')
		text = parse_number(text + 1, ":%", SW_JOB_ARRAY_INDEX_MAX, &last);
	if (text != NULL && *text == ':')
		text = parse_number(text + 1, "%", SW_JOB_ARRAY_INDEX_MAX, &step);
	bool limited = text != NULL && *text == '%';
	if (limited)
		text = parse_number(text + 1, "", SW_JOB_ARRAY_MAX, &limit);
	if (text == NULL || *text != '\0' || last < first || step == 0 || (limited && limit == 0))
		return SW_EINPUT;
	request->is_array = true;
	request->array_first = (uint32_t)first;
	request->array_last = (uint32_t)last;
	request->array_step = (uint32_t)step;
	request->array_limit = (uint32_t)limit;
	return 0;
}
