#include "failure/decide.h"

#include <string.h>

#include "base/hash.h"

enum { DOUBLINGS_MAX = 10 };

static struct sw_failure_decision stop(const char *why)
{
	return (struct sw_failure_decision){.verdict = SW_VERDICT_STOP, .why = why};
}

struct sw_failure_decision sw_failure_decide(const struct sw_failure_case *failure)
{
	if (failure->action == SW_ACTION_NONE)
		return stop("trying again would not help");
	if (failure->action == SW_ACTION_MEMORY && !failure->can_have_more_memory)
		return stop("it had whole GPUs already");
	if (failure->tried >= failure->budget)
		return stop("it was tried again as often as failures of this kind are");
	struct sw_failure_decision again = {
		.verdict = failure->free ? SW_VERDICT_RETRY_FREE : SW_VERDICT_RETRY,
		.elsewhere = failure->action == SW_ACTION_ELSEWHERE,
		.more_memory = failure->action == SW_ACTION_MEMORY,
		.why = "",
	};
	if (failure->free)
		return again;
	if (failure->layer == SW_LAYER_UNKNOWN && !failure->asked)
		return stop("its job asked for no retries");
	if (failure->retries_left == 0)
		return stop(failure->asked ? "its retries are used up" : "it was tried again often enough");
	if (failure->action != SW_ACTION_MEMORY && failure->same_elsewhere)
		return stop("the very same failure on two nodes is the job's own");
	if (failure->action == SW_ACTION_RETRY && failure->ended_others)
		return stop("this command ended another job of yours in the same way");
	return again;
}

int64_t sw_failure_backoff_ns(int64_t base_ns, uint32_t n)
{
	return base_ns << (n < DOUBLINGS_MAX ? n : DOUBLINGS_MAX);
}

uint64_t sw_failure_signature(const char *name, const char *line)
{
	uint64_t hash = sw_hash_bytes(SW_HASH_START, name, strlen(name));
	bool in_number = false;
	for (const char *c = line; *c != '\0'; c++) {
		/* A number, an address or a part of one: a word that begins with a digit. */
		bool digit = *c >= '0' && *c <= '9';
		bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
		in_number = digit || (in_number && (letter || *c == '.' || *c == ':'));
		if (!in_number)
			hash = sw_hash_bytes(hash, c, 1);
	}
	return hash;
}
