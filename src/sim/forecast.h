/* A forecast: when will the jobs that wait start? The engine with the policy in force is
 * run forward from the present; running jobs end when their time is up, as far as somebody
 * knows it. Nothing is submitted, cancelled or broken meanwhile, so it is an estimate and
 * says what it rests on.
 *
 * An engine cannot be given a present. It is led there: every job that has run before runs again
 * for as long, alone or beside those that run now, and then the waiting ones are let in. So
 * attained service and queues of a policy come out right. What does not: on which nodes the running
 * jobs are, and how often somebody was preempted.
 */
#ifndef SW_SIM_FORECAST_H
#define SW_SIM_FORECAST_H

#include "base/vec.h"
#include "core/engine.h"

#define SW_FORECAST_JOBS_MAX 20000u

/* ---- how long jobs run */

/* By what somebody thinks to know it, the best first. */
enum sw_basis {
	SW_BASIS_EXPECTED = 0, /* its owner said so */
	SW_BASIS_LIMIT,	       /* its time limit: it may well end sooner */
	SW_BASIS_ALIKE,	       /* the median of earlier jobs of its kind */
	SW_BASIS_ALL,	       /* the median of all earlier jobs */
	SW_BASIS_AGAIN,	       /* it runs longer than any of them did: as long again as until now */
	SW_BASES,
};

/* Jobs that have ended: what they were (any number that is equal for jobs of a kind)
 * and how long they ran. */
struct sw_forecast_sample {
	uint64_t kind;
	sw_ns ran_ns;
};
struct sw_forecast_history {
	SW_VEC(struct sw_forecast_sample) samples;
	SW_VEC(sw_ns) all;
};
/* 0 or SW_ENOMEM. */
int sw_forecast_note(struct sw_forecast_history *history, uint64_t kind, sw_ns ran_ns);
/* After the last note, before the first question. */
void sw_forecast_sort(struct sw_forecast_history *history);
void sw_forecast_forget(struct sw_forecast_history *history);
/* How long a job that ran for `ran_ns` will still run; `expected_ns` and `limit_ns` are 0 where
 * nobody said. SW_TIME_NEVER: nobody knows. *ret_basis is written unless that. Of earlier jobs only
 * those count that ran longer than this one has already. */
sw_ns sw_forecast_left(const struct sw_forecast_history *history, uint64_t kind, sw_ns expected_ns, sw_ns limit_ns, sw_ns ran_ns,
		       enum sw_basis *ret_basis);

/* ---- who starts when */

enum sw_forecast_state {
	SW_FORECAST_WAITS = 0,
	SW_FORECAST_RUNS,
	SW_FORECAST_HELD, /* nobody knows until when */
	SW_FORECAST_AWAY, /* it runs where no other will start, on a node that is closed: only its end matters */
};

struct sw_forecast_job {
	struct sw_job_spec spec; /* as the live engine has it; the deadline counts from now */
	uint8_t state;		 /* enum sw_forecast_state */
	uint8_t basis;		 /* enum sw_basis, of left_ns */
	sw_ns ran_ns;
	sw_ns left_ns;		 /* SW_TIME_NEVER: nobody knows */
	sw_ns not_before_ns;	 /* it competes only so long from now, as after a failure; 0: at once */
	const uint32_t *depends; /* jobs of this list, by index, that must end before it competes */
	uint32_t depend_count;
};

struct sw_forecast_quota {
	uint32_t tenant, gpus;
};

struct sw_forecast_config {
	const struct sw_topology *topology; /* the nodes that take jobs */
	const uint64_t *shut;		    /* of each of them, a mask of GPUs that take none, nobody knows until when; NULL: all do */
	const struct sw_policy *policy;
	const struct sw_params *params; /* NULL: presets */
	const struct sw_placement *placement;
	const struct sw_forecast_job *jobs; /* in submit order: that breaks ties */
	uint32_t count;
	const struct sw_forecast_quota *quotas;
	uint32_t quota_count;
	uint32_t target; /* the job that matters: nothing is done beyond its start. UINT32_MAX: all of them */
};

struct sw_forecast_start {
	sw_ns in_ns;		  /* from now; SW_TIME_NEVER: not as far as anybody can see */
	uint32_t ended[SW_BASES]; /* jobs that end until then, by how their time is known: what the estimate rests on */
};

/* Fills `ret_starts`, `count` of them; those of jobs that do not wait are SW_TIME_NEVER. SW_ELIMIT:
 * there are too many jobs, or it takes too long. */
int sw_forecast(const struct sw_forecast_config *config, struct sw_forecast_start *ret_starts, struct sw_err *err);

#endif
