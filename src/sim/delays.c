#include "sim/delays.h"

#include <stdlib.h>

struct share {
	struct sw_sim_quota quota;
	uint32_t room;	  /* GPUs below the quota, since `as_of` */
	sw_ns *with_room; /* how long there was room for exactly so many, 0 to quota.gpus, up to `as_of` */
};

struct wait {
	sw_ns waited;	/* for the share, in waits that are over */
	sw_ns at_begin; /* the sum when the present wait began */
	bool waits;
};

struct sw_delays {
	struct share *shares;
	size_t share_count;
	struct wait *jobs;
	uint32_t job_count, arrived;
	sw_ns as_of;
};

struct sw_delays *sw_delays_new(const struct sw_sim_quota *quotas, size_t count, uint32_t jobs)
{
	SW_CLEANUP(sw_delays_freep) struct sw_delays *delays = calloc(1, sizeof *delays);
	if (delays == NULL)
		return NULL;
	delays->shares = calloc(count + 1, sizeof *delays->shares);
	delays->jobs = calloc(jobs + UINT64_C(1), sizeof *delays->jobs);
	if (delays->shares == NULL || delays->jobs == NULL)
		return NULL;
	delays->job_count = jobs;
	for (; delays->share_count < count; delays->share_count++) {
		struct share *share = &delays->shares[delays->share_count];
		*share = (struct share){.quota = quotas[delays->share_count], .room = quotas[delays->share_count].gpus};
		share->with_room = calloc(share->quota.gpus + UINT64_C(1), sizeof *share->with_room);
		if (share->with_room == NULL)
			return NULL;
	}
	return SW_TAKE(delays);
}

void sw_delays_free(struct sw_delays *delays)
{
	for (size_t s = 0; s < delays->share_count; s++)
		free(delays->shares[s].with_room);
	free(delays->shares);
	free(delays->jobs);
	free(delays);
}

/* How long, up to now, a job of the tenant and so many GPUs would have exceeded the share. */
static sw_ns sum(const struct sw_delays *delays, uint32_t tenant, uint32_t gpus)
{
	sw_ns total = 0;
	for (size_t s = 0; s < delays->share_count; s++) {
		const struct share *share = &delays->shares[s];
		for (uint32_t room = 0; share->quota.tenant == tenant && room < gpus && room <= share->quota.gpus; room++)
			total += share->with_room[room];
	}
	return total;
}

static void note_job(struct sw_delays *delays, const struct sw_job *job)
{
	bool waits = job != NULL && sw_job_is_waiting(job);
	if (job == NULL || job->id.v >= delays->job_count || waits == delays->jobs[job->id.v].waits)
		return;
	struct wait *wait = &delays->jobs[job->id.v];
	sw_ns now = sum(delays, job->tenant, job->gpus);
	if (waits)
		wait->at_begin = now;
	else
		wait->waited += now - wait->at_begin;
	wait->waits = waits;
}

void sw_delays_note(struct sw_delays *delays, struct sw_engine *engine, const struct sw_event *events, size_t count,
		    const struct sw_step *step, uint32_t arrived)
{
	const struct sw_view *view = sw_engine_view(engine);
	sw_ns now = sw_view_now(view);
	for (size_t s = 0; s < delays->share_count; s++) {
		struct share *share = &delays->shares[s];
		uint64_t used =
			(uint64_t)sw_view_tenant_held(view, share->quota.tenant) + sw_view_tenant_borrowed(view, share->quota.tenant);
		share->with_room[share->room] += now - delays->as_of;
		share->room = used < share->quota.gpus ? (uint32_t)(share->quota.gpus - used) : 0;
	}
	delays->as_of = now;
	for (; delays->arrived < arrived; delays->arrived++)
		note_job(delays, sw_engine_job(engine, (struct sw_job_id){delays->arrived}));
	bool lost = false;
	for (size_t e = 0; e < count; e++) {
		lost |= events[e].kind == SW_EV_NODE_DOWN;
		if (events[e].kind == SW_EV_FAIL || events[e].kind == SW_EV_CANCEL)
			note_job(delays, sw_engine_job(engine, events[e].job));
	}
	for (size_t c = 0; c < step->command_count; c++)
		if (step->commands[c].kind < SW_CMD_NODE_OFF)
			note_job(delays, sw_engine_job(engine, (struct sw_job_id){step->commands[c].job}));
	/* Of jobs that went down with their node nothing is told. */
	for (const struct sw_job *job = lost ? sw_view_next_waiting(view, NULL) : NULL; job != NULL; job = sw_view_next_waiting(view, job))
		note_job(delays, job);
}

sw_ns sw_delays_of(const struct sw_delays *delays, uint32_t job)
{
	return job < delays->job_count ? delays->jobs[job].waited : 0;
}
