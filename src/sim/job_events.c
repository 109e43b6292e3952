#include "sim/job_events.h"

static int append(struct sw_result *result, const struct sw_trace *trace, int64_t at_ns, uint32_t job, enum sw_job_event_kind kind)
{
	struct sw_job_event *slot = sw_vec_push(&result->job_events);
	if (slot == NULL)
		return SW_ENOMEM;
	*slot = (struct sw_job_event){.at_ns = at_ns, .job = trace->jobs.items[job].id, .kind = (uint8_t)kind};
	return 0;
}

static int note_command(struct sw_result *result, const struct sw_trace *trace, int64_t at_ns, const struct sw_command *command)
{
	switch (command->kind) {
	case SW_CMD_START:
		return append(result, trace, at_ns, command->job, command->resume || command->goes_on ? SW_JOB_RESUMED : SW_JOB_STARTED);
	case SW_CMD_STOP:
	case SW_CMD_KILL:
		return append(result, trace, at_ns, command->job, SW_JOB_STOPPED);
	case SW_CMD_MOVE:
		return append(result, trace, at_ns, command->job, SW_JOB_MOVED);
	case SW_CMD_REFUSE:
		return append(result, trace, at_ns, command->job, SW_JOB_WAS_REFUSED);
	default:
		return 0; /* it stays where it is */
	}
}

int sw_job_events_note(struct sw_result *result, const struct sw_trace *trace, int64_t at_ns, const struct sw_event *events, size_t count,
		       const struct sw_step *step)
{
	int r = 0;
	for (size_t e = 0; e < count && r == 0; e++)
		if (events[e].kind == SW_EV_FINISH || events[e].kind == SW_EV_FAIL)
			r = append(result, trace, at_ns, events[e].job.v, events[e].kind == SW_EV_FINISH ? SW_JOB_ENDED : SW_JOB_BROKE);
	for (size_t c = 0; c < step->command_count && r == 0; c++)
		r = note_command(result, trace, at_ns, &step->commands[c]);
	return r;
}
