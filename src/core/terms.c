#include "core/terms.h"

#include <assert.h>

const char *const sw_moves_words[] = {[SW_MOVES_FREELY] = "freely", [SW_MOVES_RESTART] = "restart", [SW_MOVES_NEVER] = "never", NULL};

const char *const sw_stop_rule_words[] = {
	[SW_STOP_AS_WORLD] = "world", [SW_STOP_SUSPEND] = "suspend",	     [SW_STOP_RESTART] = "requeue",
	[SW_STOP_NEVER] = "never",    [SW_STOP_IF_FREE] = "suspend_if_free", NULL};

const char *const sw_sharing_words[] = {[SW_SHARING_NONE] = "none",
					[SW_SHARING_BY_PROFILES] = "profiles",
					[SW_SHARING_BY_STAGES] = "stages",
					[SW_SHARING_BY_SLICES] = "slices",
					NULL};

#define MILLI_MAX 100000

#define AT(member) .offset = offsetof(struct sw_terms, member)
const struct sw_term_row sw_term_rows[] = {
	{"quantum", AT(quantum_ns), SW_TERM_TIME, .about = "a job runs at least this long before it may be preempted"},
	{"preemption_cost", AT(preemption_cost_ns), SW_TERM_TIME,
	 .about = "what a stop and a start cost; jobs that were preempted often are protected longer"},
	{"keeps_state", AT(keeps_state), SW_TERM_FLAG, .about = "a preempted job can go on anywhere"},
	{"replace_is_free", AT(replace_is_free), SW_TERM_FLAG, .about = "every decision may lay out all running jobs anew"},
	{"nodes_join", AT(may_grow), SW_TERM_FLAG, .about = "a job that is too large for the cluster waits for more nodes"},
	{"nodes_switch", AT(nodes_switch), SW_TERM_FLAG, .about = "a policy may switch nodes off and on"},
	{"tells_speed", AT(tells_speed), SW_TERM_FLAG, .about = "the speed of a job is known at once"},
	{"exact_ties", AT(exact_ties), SW_TERM_FLAG, .about = "jobs with equal keys keep the places of a list that is sorted stably"},
	{"moves", AT(moves), SW_TERM_CHOICE, .choices = sw_moves_words, .about = "how a running job comes to other GPUs"},
	{"guaranteed_stop", AT(guaranteed_stop), SW_TERM_CHOICE, .choices = sw_stop_rule_words,
	 .about = "how a guaranteed job may be stopped whose owner said nothing"},
	{"opportunistic_stop", AT(opportunistic_stop), SW_TERM_CHOICE, .choices = sw_stop_rule_words,
	 .about = "the same of an opportunistic one"},
	{"sharing", AT(sharing), SW_TERM_CHOICE, .choices = sw_sharing_words,
	 .about = "what tells how jobs on one GPU slow each other down"},
	{"gate", AT(gate_milli), SW_TERM_MILLI, .about = "time of a guaranteed job beside opportunistic ones, of that alone; 0: no gate"},
	{"placement_slowdown", AT(placement), SW_TERM_FLAG, .about = "jobs slow down with the distance between their GPUs"},
	{"split", AT(split_milli), SW_TERM_MILLI, .about = "step time of a job in two parts, of that whole; 0: nothing is split"},
};
#undef AT
const size_t sw_term_count = sizeof sw_term_rows / sizeof *sw_term_rows;

const struct sw_terms sw_terms_unsaid = {.may_grow = true,
					 .moves = SW_MOVES_RESTART,
					 .guaranteed_stop = SW_STOP_IF_FREE,
					 .opportunistic_stop = SW_STOP_SUSPEND,
					 .sharing = SW_SHARING_BY_SLICES,
					 .gate_milli = 1020};

int64_t sw_term_get(const struct sw_terms *terms, const struct sw_term_row *row)
{
	const char *at = (const char *)terms + row->offset;
	switch (row->kind) {
	case SW_TERM_TIME:
	case SW_TERM_MILLI:
		return *(const int64_t *)(const void *)at;
	case SW_TERM_FLAG:
		return *(const bool *)at;
	default:
		return *(const uint8_t *)at;
	}
}

static bool takes(const struct sw_term_row *row, int64_t value)
{
	int64_t end = row->kind == SW_TERM_TIME ? SW_TERMS_TIME_MAX + 1 : row->kind == SW_TERM_MILLI ? MILLI_MAX + 1 : 2;
	if (row->kind == SW_TERM_MILLI && value != 0 && value < 1000)
		return false;
	if (row->kind == SW_TERM_CHOICE)
		for (end = 0; row->choices[end] != NULL;)
			end++;
	return value >= 0 && value < end;
}

int sw_term_set(struct sw_terms *terms, const struct sw_term_row *row, int64_t value)
{
	char *at = (char *)terms + row->offset;
	if (!takes(row, value))
		return SW_EINPUT;
	if (row->kind == SW_TERM_TIME || row->kind == SW_TERM_MILLI)
		*(int64_t *)(void *)at = value;
	else if (row->kind == SW_TERM_FLAG)
		*(bool *)at = value != 0;
	else
		*(uint8_t *)at = (uint8_t)value;
	return 0;
}

const struct sw_term_row *sw_terms_differ(const struct sw_terms *a, const struct sw_terms *b)
{
	for (size_t r = 0; r < sw_term_count; r++)
		if (sw_term_get(a, &sw_term_rows[r]) != sw_term_get(b, &sw_term_rows[r]))
			return &sw_term_rows[r];
	return NULL;
}

int sw_terms_check(const struct sw_terms *terms, struct sw_err *err)
{
	for (size_t r = 0; r < sw_term_count; r++)
		if (!takes(&sw_term_rows[r], sw_term_get(terms, &sw_term_rows[r])))
			return sw_err_set(err, SW_EINPUT, "the world's '%s' is out of its bounds", sw_term_rows[r].name);
	return 0;
}
