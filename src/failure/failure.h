/* Why a run failed, told by what it left behind: the end of its log, its exit code, its signal, and
 * what its supervisor says.
 *
 * A table of classes (data/failures.yaml, and rules of the operator's own ahead of it). It says for
 * each kind of failure how it is recognised, and whether the user or the operator can do something
 * about it. It also says whether trying again can help, and what to tell people. Pure: text in, a
 * class out. What follows for a job is decide.h's.
 *
 * How a class is found, in this order; within each step the table's order decides:
 *  1. by the supervisor's reason, which is certain (a run that could not be launched is first
 *     looked for by the supervisor's own words);
 *  2. by the last SW_FAILURE_NEAR bytes of the log, then by all of it, leaving out classes that are
 *     symptoms. These follow when another process of the job fails;
 *  3. by the whole log, symptoms only;
 *  4. by signal and exit code (128 + n counts as signal n, as shells have it);
 *  5. the class without any signature: unknown.
 *
 * Every pattern holds some plain text that must be there, which is searched first. A log of 64 KiB
 * takes a few milliseconds, whatever is in it.
 */
#ifndef SW_FAILURE_FAILURE_H
#define SW_FAILURE_FAILURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

#define SW_FAILURE_TAIL ((size_t)64 << 10) /* of a log, so much is looked at */
#define SW_FAILURE_NEAR ((size_t)6 << 10)
#define SW_FAILURE_NAME_MAX 31u
#define SW_FAILURE_LINE_MAX 240u /* bytes of a matched line that are kept */
#define SW_FAILURE_PATH_MAX 255u

enum sw_failure_layer {
	SW_LAYER_USER = 0,
	SW_LAYER_FRAMEWORK,
	SW_LAYER_INFRASTRUCTURE,
	SW_LAYER_UNKNOWN,
};

enum sw_failure_action {
	SW_ACTION_NONE = 0,
	SW_ACTION_RETRY,
	SW_ACTION_ELSEWHERE, /* on another node */
	SW_ACTION_MEMORY,    /* with more GPU memory */
};

struct sw_failure_class {
	const char *name;
	const char *says; /* what went wrong, in plain words */
	const char *hint; /* what to do about it; "" */
	enum sw_failure_layer layer;
	enum sw_failure_action action;
	uint32_t budget; /* retries of one job for this class */
	bool free;	 /* they cost the job none of its own */
	bool symptom;
	uint32_t rank;	     /* its place in the table: of several failures of one run the first is the cause */
	uint32_t signatures; /* how many there are */
};

struct sw_failure_evidence {
	const char *log; /* the end of it; may hold anything */
	size_t log_size;
	const char *detail; /* the supervisor's words; may be NULL */
	const char *reason; /* the supervisor's; "" or NULL: none */
	int code, signal;
};

struct sw_failure_found {
	const struct sw_failure_class *failure; /* never NULL */
	char line[SW_FAILURE_LINE_MAX + 1];	/* that gave it away, clean text; "" */
	char path[SW_FAILURE_PATH_MAX + 1];	/* of the input that was at fault, where the signature says it; "" */
};

struct sw_failure_table;

/* `more` is a file whose rules go first; NULL: the built-in table alone. */
int sw_failure_load(const char *more, struct sw_failure_table **ret_table, struct sw_err *err);
void sw_failure_free(struct sw_failure_table *table);
SW_DEFINE_FREEP(struct sw_failure_table, sw_failure_free)

void sw_failure_classify(const struct sw_failure_table *table, const struct sw_failure_evidence *evidence,
			 struct sw_failure_found *ret_found);

uint32_t sw_failure_count(const struct sw_failure_table *table);
const struct sw_failure_class *sw_failure_at(const struct sw_failure_table *table, uint32_t index);
/* NULL: there is none of this name. */
const struct sw_failure_class *sw_failure_find(const struct sw_failure_table *table, const char *name);

const char *sw_failure_layer_name(enum sw_failure_layer layer);
const char *sw_failure_action_name(enum sw_failure_action action);
/* True and the value for a name that one of the two above gives. */
bool sw_failure_layer_find(const char *name, enum sw_failure_layer *ret_layer);
bool sw_failure_action_find(const char *name, enum sw_failure_action *ret_action);

/* A copy of at most `size` - 1 bytes without control bytes, broken UTF-8 and
 * white space at its ends. */
void sw_failure_clean(const char *text, size_t length, char *ret_text, size_t size);

#endif
