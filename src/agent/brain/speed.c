/* How runs get on: what an iteration takes now, and what it took alone.
 *
 * The GPU runtime finds iterations and smooths how long they take (src/runtime). That figure lags
 * behind. After another run came to its GPUs, left them, or the run itself was suspended, it tells
 * of the new circumstances only after a while. So a figure here always belongs to one set of
 * neighbours, and is none until enough iterations have ended beside them. A run that hardly gets on
 * at all is judged by the time that passes.
 *
 * What an iteration takes alone is the least that was seen while no other run used any of its GPUs
 * and nothing held it back. Where that becomes more, it follows slowly. A run that never was alone
 * has none: the controller may know it from an earlier run of the job. A run that is paused stands
 * still by order: it is not slow, and no run's neighbour.
 *
 * What is told is bounded. It is told anew when it differs by more than 3 %, and then every 5 s at
 * most. Only when it is no longer true is it told at once.
 *
 * Not seen: other users of the GPU than our runs. */
#include <string.h>

#include "agent/brain/gpu.h"
#include "agent/brain/speed.h"
#include "agent/brain/state.h"

/* So many iterations after a change, hardly anything of what was before is left
 * in the runtime's figure. */
enum { SETTLED = 32, SAMPLES = 3, DIFFERS_MILLI = 30 };
/* A run that has not ended so many after this is judged by the time that has passed. So is one that
 * ended none for this long. */
#define PATIENCE_NS (20 * SW_NS_PER_S)
#define SPACING_NS (5 * SW_NS_PER_S)

static struct sw_sync_jobs find_beside(const struct sw_agent_brain *brain, const struct sw_agent_run *run)
{
	struct sw_sync_jobs jobs = {0};
	for (size_t i = 0; i < brain->runs.count && jobs.count < SW_SYNC_JOBS_LISTED; i++) {
		const struct sw_agent_run *other = brain->runs.items[i].run;
		if (other != run && sw_agent_is_active(other) && !other->paused && sw_agent_meet(run, other))
			jobs.items[jobs.count++] = other->id.job;
	}
	return jobs;
}

static bool are_same(const struct sw_sync_jobs *a, const struct sw_sync_jobs *b)
{
	return a->count == b->count && memcmp(a->items, b->items, a->count * sizeof a->items[0]) == 0;
}

/* Its page, as it was seen; NULL: it was not, or the run does not go on right now. */
static const struct sw_coordinate_job *find_page(const struct sw_agent_run *run)
{
	const struct sw_coordinate_job *page = run->gpu_count > 0 ? &run->seen[0] : NULL;
	bool goes_on = run->wish == SW_WISH_RUN && !run->paused && sw_agent_is_active(run) && run->said.state == SW_RUN_RUNNING;
	return page != NULL && page->id != 0 && goes_on && !page->suspended && !page->moving && page->iterations > 0 ? page : NULL;
}

/* Whether nothing but the run itself decides how long its iterations take. */
static bool is_free(const struct sw_agent_run *run)
{
	bool whole = true;
	for (size_t i = 0; i < run->gpu_count; i++)
		whole = whole && run->seen[i].host_bytes == 0;
	return whole && run->speed.now.beside.count == 0 && run->terms.share_milli == 0 && run->share_milli == 0;
}

static void begin(struct sw_agent_speed *speed, const struct sw_sync_jobs *beside, uint64_t iterations, int64_t now_ns)
{
	*speed = (struct sw_agent_speed){
		.now = {.alone_ns = speed->now.alone_ns, .iterations = iterations, .beside = *beside},
		.since_ns = now_ns,
		.began_iterations = iterations,
		.advanced_ns = now_ns,
		.told = speed->told,
		.told_ns = speed->told_ns,
	};
}

/* What an iteration takes, by this look; 0: it says nothing. *ret_settled: by
 * the runtime's own figure. */
static int64_t take_sample(struct sw_agent_speed *speed, const struct sw_coordinate_job *page, int64_t now_ns, bool *ret_settled)
{
	bool advanced = page->iterations > speed->now.iterations;
	uint64_t ended = page->iterations - speed->began_iterations;
	speed->now.iterations = page->iterations;
	speed->advanced_ns = advanced ? now_ns : speed->advanced_ns;
	*ret_settled = ended >= SETTLED && advanced;
	if (*ret_settled)
		return page->iteration_ns;
	/* A run alone that ends none pauses by itself. */
	if (speed->now.beside.count == 0 || now_ns - speed->since_ns < PATIENCE_NS)
		return 0;
	if (ended < SETTLED)
		return (now_ns - speed->since_ns) / (int64_t)(ended > 0 ? ended : 1);
	return now_ns - speed->advanced_ns >= PATIENCE_NS ? now_ns - speed->advanced_ns : 0;
}

static void note_alone(struct sw_agent_speed *speed)
{
	int64_t took = speed->now.iteration_ns, *alone = &speed->now.alone_ns;
	if (*alone == 0 || took < *alone)
		*alone = took;
	else
		*alone += (took - *alone) / 8;
}

static void follow(const struct sw_agent_brain *brain, struct sw_agent_run *run, int64_t now_ns)
{
	struct sw_agent_speed *speed = &run->speed;
	const struct sw_coordinate_job *page = find_page(run);
	const struct sw_sync_jobs beside = find_beside(brain, run);
	if (page == NULL) {
		begin(speed, &beside, 0, 0);
		return;
	}
	if (speed->since_ns == 0 || page->iterations < speed->now.iterations || !are_same(&beside, &speed->now.beside)) {
		begin(speed, &beside, page->iterations, now_ns);
		return;
	}
	bool settled = false;
	int64_t took = take_sample(speed, page, now_ns, &settled), *smooth = &speed->now.iteration_ns;
	if (took <= 0)
		return;
	/* The first ones weigh the same; after that the last four or so count. */
	*smooth += (took - *smooth) / (int64_t)(speed->samples < 3 ? speed->samples + 1 : 4);
	speed->samples += speed->samples < SAMPLES;
	if (settled && speed->samples >= SAMPLES && is_free(run))
		note_alone(speed);
}

static bool differ(int64_t a, int64_t b)
{
	int64_t distance = a > b ? a - b : b - a;
	return (a == 0) != (b == 0) || distance > b / 1000 * DIFFERS_MILLI;
}

static bool tell(struct sw_agent_speed *speed, int64_t now_ns)
{
	struct sw_sync_speed news = speed->now;
	if (speed->samples < SAMPLES)
		news.iteration_ns = 0;
	bool over = news.iteration_ns == 0 && speed->told.iteration_ns != 0;
	bool news_enough = differ(news.iteration_ns, speed->told.iteration_ns) || differ(news.alone_ns, speed->told.alone_ns);
	if (!over && (!news_enough || (speed->told_ns != 0 && now_ns - speed->told_ns < SPACING_NS)))
		return false;
	speed->told = news;
	speed->told_ns = now_ns;
	return true;
}

bool sw_agent_follow_speeds(struct sw_agent_brain *brain, int64_t now_ns)
{
	bool told = false;
	for (size_t i = 0; i < brain->runs.count; i++) {
		struct sw_agent_run *run = brain->runs.items[i].run;
		if (!run->hears_terms)
			continue;
		follow(brain, run, now_ns);
		told = tell(&run->speed, now_ns) || told;
	}
	return told;
}
