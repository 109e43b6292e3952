/* A forecast: when will the jobs that wait start? A copy of the engine is run ahead from the
 * present. It has the policy in charge, its settings, the terms of the cluster's world, quotas, and
 * the GPUs that take jobs. Jobs that run end when their time is up, as far as that is known
 * (lengths.h). No job comes, fails or is cancelled meanwhile, so a start is an estimate, and says
 * what it rests on.
 *
 * What this is not: it changes nothing, and no record comes of it. It has no clock: the caller
 * bounds its time by `goes_on`.
 *
 * Invariants:
 *  1. the same state and the same `now` give the same forecast, whichever user asks;
 *  2. a start that is not known is never made up: its row says why;
 *  3. its work is bounded: by steps of the engine, jobs, a year, and `goes_on`. What was found
 *     until then stays.
 */
#ifndef SW_BRAIN_FORECAST_H
#define SW_BRAIN_FORECAST_H

#include "brain/brain.h"
#include "brain/lengths.h"

#define SW_FORECAST_JOBS_MAX 500000u /* that live */
#define SW_FORECAST_STEPS_MAX 300000u

/* Why there is no start. Numbers go to files between processes of one program only. */
enum sw_forecast_why {
	SW_FORECAST_STARTS = 0, /* there is one */
	SW_FORECAST_HELD,	/* a person holds the job back */
	SW_FORECAST_IF_FAILED,	/* it runs only if another fails, which is never foreseen */
	SW_FORECAST_STRANDED,	/* its last run may be alive on a node that does not answer */
	SW_FORECAST_AWAITS,	/* a job that it waits for does not end as far as is known */
	SW_FORECAST_LENGTH,	/* jobs ahead of it run for a time that is not known */
	SW_FORECAST_QUOTA,	/* its tenant may not hold so many GPUs */
	SW_FORECAST_NO_ROOM,	/* all that runs has ended, and it still has no place */
	SW_FORECAST_NO_NODE,	/* no node takes jobs */
	SW_FORECAST_FAR,	/* beyond what the forecast looked at */
	SW_FORECAST_OVER,	/* it has ended */
	SW_FORECAST_REFUSED,	/* the scheduler does not take it */
	SW_FORECAST_WHYS,
};

struct sw_forecast_row {
	uint64_t job;		  /* as people count */
	sw_ns starts_at;	  /* SW_TIME_NEVER: see `why` */
	uint32_t ended[SW_BASES]; /* jobs that end until then, by what their lengths rest on */
	uint32_t why;		  /* enum sw_forecast_why */
};
struct sw_forecast {
	SW_VEC(struct sw_forecast_row) rows; /* by job */
	uint32_t gpus_shut;		     /* take no jobs, it is not known until when */
};

struct sw_forecast_config {
	sw_ns now; /* the present; not before the last record */
	/* The jobs that matter, as people count: rows are of these alone, but for pre-runs, and
	 * nothing is done beyond their starts. `last` 0: all that wait or are held. */
	uint64_t first, last;
	uint32_t steps_max;	     /* 0: SW_FORECAST_STEPS_MAX */
	bool (*goes_on)(void *user); /* asked now and then; NULL: always */
	void *user;
};

/* `brain` is changed in nothing that counts. SW_ELIMIT: too many jobs. */
int sw_brain_forecast(struct sw_brain *brain, const struct sw_forecast_config *config, struct sw_forecast *ret_forecast,
		      struct sw_err *err);
void sw_forecast_release(struct sw_forecast *forecast);
/* Why the start is not known, as half a sentence. Returns `text`. */
char *sw_forecast_say(enum sw_forecast_why why, uint32_t gpus_shut, char *text, size_t size);

#endif
