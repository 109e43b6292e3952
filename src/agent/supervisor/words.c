/* What the job's own log says of its stops: one line for each, written by the log writer
 * between the job's own lines.
 *
 * Which file that is, and that a file which a job fills with other things than text gets none, is
 * the log writer's affair (logger.h).
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/supervisor/begin.h"
#include "agent/supervisor/state.h"
#include "agent/supervisor/words.h"

/* One write of this size is whole or not at all. */
enum { LINE_SIZE = SW_SYNC_WHY_MAX + SW_SYNC_PLACES_MAX + 200 };
_Static_assert((int)LINE_SIZE <= PIPE_BUF, "a line is one write");

/* "sharewell: 2026-11-18 04:12:05 ...". A log writer that takes nothing gets nothing. */
__attribute__((format(printf, 2, 3))) static void say(struct sw_supervisor *supervisor, const char *fmt, ...)
{
	char line[LINE_SIZE];
	struct tm parts;
	time_t now = time(NULL);
	if (supervisor->notes < 0 || localtime_r(&now, &parts) == NULL)
		return;
	size_t used = strftime(line, sizeof line, "sharewell: %F %T ", &parts);
	va_list args;
	va_start(args, fmt);
	vsnprintf(line + used, sizeof line - used - 1, fmt, args);
	va_end(args);
	used = strlen(line);
	line[used++] = '\n';
	(void)!write(supervisor->notes, line, used);
	/* A job that has written nothing has no log writer yet. */
	if (sw_supervisor_unread(supervisor) >= 0)
		sw_supervisor_on_output(supervisor);
}

/* What was told with the order that is carried out: " by user ann", or "". */
static const char *reason_of(const struct sw_supervisor *supervisor, char text[SW_SYNC_WHY_MAX + 2])
{
	snprintf(text, SW_SYNC_WHY_MAX + 2, "%s%s", supervisor->why[0] != '\0' ? " " : "", supervisor->why);
	return text;
}

void sw_supervisor_hear_why(struct sw_supervisor *supervisor, const char *why)
{
	snprintf(supervisor->why, sizeof supervisor->why, "%s", why);
}

void sw_supervisor_log_suspend(struct sw_supervisor *supervisor, int64_t now_ns)
{
	char why[SW_SYNC_WHY_MAX + 2];
	if (supervisor->stands_since_ns != 0)
		return; /* it leaves its GPUs whole now, and stood still before */
	supervisor->stands_since_ns = now_ns;
	say(supervisor, "suspended%s", reason_of(supervisor, why));
}

void sw_supervisor_log_resume(struct sw_supervisor *supervisor, int64_t now_ns)
{
	char span[32];
	if (supervisor->stands_since_ns != 0 && !supervisor->stopping)
		say(supervisor, "goes on, after standing still for %s", sw_format_duration(now_ns - supervisor->stands_since_ns, span));
	supervisor->stands_since_ns = 0;
}

void sw_supervisor_log_move(struct sw_supervisor *supervisor)
{
	char why[SW_SYNC_WHY_MAX + 2];
	say(supervisor, "moved to %s%s", supervisor->move.gpus, reason_of(supervisor, why));
}

void sw_supervisor_log_stop(struct sw_supervisor *supervisor, const char *reason)
{
	char why[SW_SYNC_WHY_MAX + 2], span[32];
	if (strcmp(reason, SW_REASON_STOPPED) == 0)
		say(supervisor, "stopped%s", reason_of(supervisor, why));
	else if (strcmp(reason, SW_REASON_TIME_LIMIT) == 0)
		say(supervisor, "stopped: its time limit of %s is over",
		    sw_format_duration(supervisor->spec->time_limit_ms * SW_NS_PER_MS, span));
	else if (strcmp(reason, SW_REASON_SHUTDOWN) == 0)
		say(supervisor, "stopped: its supervisor was told to end, as by a machine that shuts down");
	else
		say(supervisor, "stopped: %s", supervisor->account.run.detail != NULL ? supervisor->account.run.detail : reason);
}
