/* Books that the storm keeps beside the engine, from its commands alone: which job runs, where,
 * since when. They share no code with the ledger. */
#ifndef SW_TESTS_SIM_SOAK_BOOKS_H
#define SW_TESTS_SIM_SOAK_BOOKS_H

#include "core/engine.h"

#define SW_SOAK_JOBS_MAX 200u
#define SW_SOAK_NODES_MAX 16u
#define SW_SOAK_TENANTS_MAX 6u

struct sw_soak_seat {
	uint32_t node;
	uint64_t mask;
	uint64_t split_bytes;
};

struct sw_soak_entry {
	bool runs, held, ended, refused;
	uint32_t epoch;
	uint32_t gpus;
	sw_ns since;
	sw_ns until; /* when the lease of its run ends, as of the last step */
	uint32_t retries;
	uint32_t tenant;
	bool guaranteed;	    /* its last run, or as it asked */
	bool prefers_home, at_home; /* at_home: stopped there, and its run may still end */
	bool home_moved;	    /* to other GPUs of its node, maybe */
	uint8_t stop_rule;	    /* enum sw_stop_rule */
	uint8_t keeps;		    /* of its run: 0 not known, 1 yes, 2 no */
	bool frees;		    /* its GPU memory leaves the GPUs while it stands there */
	bool started;		    /* in this step */
	bool came;		    /* the same, and its run does not go on where it stood */
	bool stood;		    /* at the beginning of this step */
	bool no_restart, held_next;
	bool kept;	 /* its state, wherever it goes on */
	bool begun;	 /* its run has */
	bool anew;	 /* it was stopped in this step to begin anew where it is */
	uint64_t leaves; /* GPUs that its run still has, on its way to others */
	struct sw_soak_seat seats[SW_SOAK_NODES_MAX];
	uint32_t seat_count;
};

struct sw_soak_books {
	const struct sw_engine_config *config;
	struct sw_soak_entry jobs[SW_SOAK_JOBS_MAX];
	uint32_t count;
	uint32_t nodes;
	bool down[SW_SOAK_NODES_MAX];
	bool off[SW_SOAK_NODES_MAX], was_off[SW_SOAK_NODES_MAX]; /* by the policy; at the beginning of this step */
	bool boots[SW_SOAK_NODES_MAX];				 /* it was switched on, and is not up yet */
	bool closed[SW_SOAK_NODES_MAX];
	uint64_t shut[SW_SOAK_NODES_MAX];    /* GPUs that take no job */
	uint32_t quota[SW_SOAK_TENANTS_MAX]; /* UINT32_MAX: none */
	sw_ns now;
	/* Commands that the events of a step must bring, in this order. */
	struct {
		uint8_t kind;
		uint8_t reason;
		uint32_t job;
	} due[SW_SOAK_JOBS_MAX * 4];
	uint32_t due_count, due_next;
	uint64_t asked;	      /* questions that commands told of */
	uint64_t answered[8]; /* those that were answered in this step, with what they were about */
	uint32_t answered_count;
	bool bounces;	 /* a run may send newcomers away in this step */
	bool turns_back; /* or begin anew where it is */
};

void sw_soak_books_open(struct sw_soak_books *books, const struct sw_engine_config *config);
/* Before a step: what these events must do. */
void sw_soak_books_foresee(struct sw_soak_books *books, sw_ns at, const struct sw_event *events, size_t count);
/* After it: whether the commands make sense, and whether engine and books agree. */
int sw_soak_books_check(struct sw_soak_books *books, const struct sw_engine *engine, const struct sw_step *step, struct sw_err *err);

#endif
