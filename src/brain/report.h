/* The record of what was heard of a run, by one table of its fields. See report.c. */
#ifndef SW_BRAIN_REPORT_H
#define SW_BRAIN_REPORT_H

#include "brain/state.h"

/* What became of the run. Numbers stay in memory: records have the words. */
enum sw_report_state {
	SW_REPORT_STARTING = 0,
	SW_REPORT_RUNNING, /* also of one that is suspended; the reason says whether it frees its GPUs */
	SW_REPORT_EXITED,
	SW_REPORT_GONE,	   /* an earlier run of the job, which was not wished for any more */
	SW_REPORT_OFF,	   /* suspended, and off its GPUs whole */
	SW_REPORT_REFUSED, /* it cannot be taken off its GPUs whole; the reason says why */
	SW_REPORT_FREES,   /* suspended, it leaves its GPUs' memory to others */
	SW_REPORT_STAYS,   /* suspended, it does not */
	SW_REPORT_HELD,	   /* suspended, and its GPUs' memory could not leave */
	SW_REPORT_MOVED,
	SW_REPORT_UNMOVED, /* the reason says why */
};

struct sw_report {
	const char *node;
	uint64_t job;
	uint32_t epoch;
	enum sw_report_state state;
	int32_t code, signal;
	const char *reason;
	json_t *failure; /* why it failed (trouble.c); borrowed; NULL: it did not */
	/* Of an end, for the history: what its job had got by then. */
	int64_t ran_ns, since_ns; /* time on GPUs until `since`, from which on it ran; 0: it did not run */
	uint32_t stops, uid;	  /* how often it was preempted; its owner */
};

extern const struct sw_table sw_report_fields;

/* What the job has got by now: the last four above. */
void sw_report_note_job(struct sw_report *report, const struct sw_brain *brain, uint64_t job);

int sw_report_record(const struct sw_report *report, sw_records *records, struct sw_err *err);
/* What it points to is the body's. */
int sw_report_read(json_t *body, struct sw_report *ret_report, struct sw_err *err);

#endif
