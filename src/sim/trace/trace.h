/* A trace: the jobs that people submitted, in submit order, whatever file they came from.
 *
 * Invariants of a loaded trace:
 *  1. jobs are ordered by submit_ns; equal times keep the order of the file; the first job's submit
 *     time may be any number >= 0.
 *  2. gpus >= 1, duration_ns >= 0, submit_ns >= 0, submit_ns + duration_ns does not overflow.
 *  3. min_gpus <= gpus <= max_gpus; a job that is not elastic has all three equal.
 *  4. name, model, tenant and user are indices into `strings`; index 0 is the empty string.
 *  5. fate is 0, or the number of one of `fates`, counted from 1; no two jobs share one.
 *  6. hold is 0, or the number of one of `holds`, which names the next of the same job. Those of
 *     one job do not overlap; the last in time comes first. They are in no file.
 *  7. told is 0, or the number of one of `told`, which no two jobs share; `wakes` are in the order
 *     of their times. Neither these nor `events` are in any file.
 */
#ifndef SW_SIM_TRACE_TRACE_H
#define SW_SIM_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sharewell/job_class.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/number.h"
#include "base/vec.h"
#include "core/event.h"

/* How strictly a deadline binds. */
enum sw_trace_deadline {
	SW_TRACE_NO_DEADLINE = 0,
	SW_TRACE_STRICT = 1,
	SW_TRACE_SOFT = 2,
};

/* How a job ended where the trace was recorded. */
enum sw_trace_end {
	SW_TRACE_END_UNKNOWN = 0,
	SW_TRACE_COMPLETED,
	SW_TRACE_FAILED,
	SW_TRACE_CANCELLED,
	SW_TRACE_TIMED_OUT,
	SW_TRACE_UNFINISHED, /* it ran or waited when the trace was written; its duration is what it ran until then */
	SW_TRACE_ENDS
};
/* "completed", as in files; "" for SW_TRACE_END_UNKNOWN. */
extern const char *const sw_trace_end_names[SW_TRACE_ENDS];

/* What became of a job where the trace was recorded. Most traces do not say, so it
 * stands beside the jobs. */
struct sw_trace_fate {
	int64_t started_ns; /* its first run; SW_NEVER: the trace does not say */
	int64_t ended_ns;   /* the same; of an unfinished job, when the trace was written */
	uint32_t preemptions;
	uint8_t end; /* enum sw_trace_end */
};

/* A time during which its owner kept a job from running. */
struct sw_trace_hold {
	int64_t from_ns, to_ns; /* from_ns at most the submit time: held when it came */
	uint32_t next;		/* number of the one before; 0: none */
	bool leaves;		/* a run that was under way went on */
};

/* What the scheduler was told of a job where the trace was recorded. */
struct sw_trace_told {
	struct sw_job_spec spec; /* but for tenant, model, hold and deadline, which the job has */
	int64_t begins_after_ns; /* from its start until its run was heard to have begun; -1: not known */
	bool frees;		 /* its GPU memory leaves its GPUs while it is suspended */
};

/* What happened there: to a quota, to a node, or to a job by a requeue. The tenant of a quota is
 * told by its number in the trace, a job by its place there. */
struct sw_trace_event {
	int64_t at_ns;
	struct sw_event event;
};

struct sw_trace_job {
	int64_t id;	      /* the file's own number; the row number where the file has none */
	int64_t submit_ns;    /* since the trace's time zero */
	int64_t duration_ns;  /* run time on `gpus` GPUs, alone; 0 when only iterations are known (see sw_profiles) */
	int64_t iterations;   /* 0 when unknown */
	int64_t iteration_ns; /* time of one iteration as the file gives it; 0 when it does not */
	int64_t deadline_ns;  /* absolute; SW_NEVER for none */
	uint32_t gpus;
	uint32_t min_gpus;
	uint32_t max_gpus;
	uint32_t batch_size;   /* 0 when unknown */
	uint32_t weight_milli; /* 1000 is the ordinary job */
	uint32_t name;	       /* where the file names jobs by text */
	uint32_t model;
	uint32_t tenant;
	uint32_t user;
	uint32_t gpu_memory_mib; /* on each GPU; 0 when unknown */
	uint32_t fate;		 /* number of its fate; 0: the trace does not say */
	uint32_t hold;		 /* number of its last hold; 0: none that is known */
	uint32_t told;		 /* number of what the scheduler was told of it; 0: the trace does not say */
	uint32_t stage_us[3];	 /* per iteration: data loading, GPU, network (Muri); 0 when unknown */
	uint8_t job_class;	 /* enum sw_job_class */
	uint8_t deadline_kind;	 /* enum sw_trace_deadline */
};

struct sw_trace {
	SW_VEC(struct sw_trace_job) jobs;
	SW_VEC(struct sw_trace_fate) fates;
	SW_VEC(struct sw_trace_hold) holds;
	SW_VEC(struct sw_trace_told) told;
	SW_VEC(struct sw_trace_event) events;
	SW_VEC(int64_t) wakes;	/* when the scheduler was woken, as it had asked to be */
	int64_t clock_ns;	/* what the clock of the scheduler showed at time zero, where the trace is a history; else 0 */
	SW_VEC(char *) strings; /* interned; freed with the trace */
	char *origin;		/* the path it was read from, or "generated" */
	const char *format;	/* name of the reader */
	bool named;		/* the file tells jobs apart by name; their ids are row numbers */
	int64_t rows_skipped;	/* rows that carry no job (comments, empty lines) */
	char *warning;		/* what a person should hear although the trace was read, in one sentence; NULL for nothing */
	void *intern;		/* private to trace.c: finds a string again */
};

void sw_trace_free(struct sw_trace *trace);
SW_DEFINE_FREEP(struct sw_trace, sw_trace_free)

const char *sw_trace_string(const struct sw_trace *trace, uint32_t index);

/* Bounds that readers enforce, so that a wrong column is noticed and sums of times and GPUs
 * stay far from overflow. */
#define SW_TRACE_MAX_GPUS INT64_C(1000000)			   /* of one job */
#define SW_TRACE_MAX_NS (INT64_C(100) * 365 * 86400 * SW_NS_PER_S) /* 100 years: of any moment or length of time */
#define SW_TRACE_MAX_ITERATIONS INT64_C(1000000000000000)
#define SW_TRACE_MAX_BATCH INT64_C(1000000000)
#define SW_TRACE_MAX_JOBS ((size_t)20 * 1000 * 1000)
#define SW_TRACE_MAX_NAME ((size_t)1024) /* bytes of one name */

/* Reads `path` ("-" is standard input). `format` is a reader's name or NULL / "auto": recognised
 * from the header line and the shape of the first rows. Compressed files (.xz, .gz, .zst: by
 * content, not by name) are read as they are decompressed. In a tar archive a member is named
 * behind a colon ("raw-traces.tar.xz:cluster04.csv"). Without one, an archive of one file is read
 * and one of several is an error that lists them. The first wrong row ends the reading with file,
 * line and column in the error. */
int sw_trace_load(const char *path, const char *format, struct sw_trace **ret_trace, struct sw_err *err);

/* The same from memory; `name` is used in messages. For tests and fuzzers. */
int sw_trace_parse(const char *name, const void *bytes, size_t size, const char *format, struct sw_trace **ret_trace, struct sw_err *err);

/* For building one by hand. `format` must outlive the trace; `origin` is copied. */
int sw_trace_new(const char *origin, const char *format, struct sw_trace **ret_trace);
/* Adds a job without deadline, of weight 1, all else zero; NULL when out of memory. The caller
 * keeps to the invariants, or calls sw_trace_sort() for 1. */
struct sw_trace_job *sw_trace_add(struct sw_trace *trace);
/* The fate of a job, to be filled: a new one (nothing known, SW_NEVER) unless it has one.
 * NULL when out of memory. */
struct sw_trace_fate *sw_trace_fate_of(struct sw_trace *trace, struct sw_trace_job *job);
/* One more hold, later than those that the job has. 0 or SW_ENOMEM. */
int sw_trace_add_hold(struct sw_trace *trace, struct sw_trace_job *job, int64_t from_ns, int64_t to_ns, bool leaves);
/* The index of a string, the same for equal strings. 0 or SW_ENOMEM. */
int sw_trace_intern(struct sw_trace *trace, const char *text, size_t size, uint32_t *ret_index);
/* Orders the jobs by submit time, equal times as they stand. 0 or SW_ENOMEM. */
int sw_trace_sort(struct sw_trace *trace);

#endif
