/* Which epochs were seen of which jobs: what keeps a run from being started twice
 * after its folder is gone. */
#include <string.h>

#include "agent/brain/seen.h"
#include "agent/brain/state.h"

/* The place of the job, or where it would be. */
static size_t place_of(const struct sw_agent_brain *brain, uint64_t job)
{
	size_t low = 0, high = brain->seen.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (brain->seen.items[middle].job < job)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct sw_agent_seen *find(const struct sw_agent_brain *brain, uint64_t job)
{
	size_t place = place_of(brain, job);
	return place < brain->seen.count && brain->seen.items[place].job == job ? &brain->seen.items[place] : NULL;
}

static bool has_run(const struct sw_agent_brain *brain, uint64_t job)
{
	for (size_t i = 0; i < brain->runs.count; i++)
		if (brain->runs.items[i].run->id.job == job)
			return true;
	return false;
}

/* Forgets the job that was seen longest ago and has no run here. There is one: more jobs are
 * remembered than there can be runs. */
static void drop_oldest(struct sw_agent_brain *brain)
{
	size_t oldest = SIZE_MAX;
	for (size_t i = 0; i < brain->seen.count; i++)
		if ((oldest == SIZE_MAX || brain->seen.items[i].stamp < brain->seen.items[oldest].stamp) &&
		    !has_run(brain, brain->seen.items[i].job))
			oldest = i;
	if (oldest == SIZE_MAX)
		return;
	brain->seen.count--;
	memmove(&brain->seen.items[oldest], &brain->seen.items[oldest + 1], (brain->seen.count - oldest) * sizeof *brain->seen.items);
}

int sw_agent_see(struct sw_agent_brain *brain, struct sw_run_id id, bool used)
{
	struct sw_agent_seen *known = find(brain, id.job);
	if (known == NULL) {
		if (brain->seen.count >= SW_AGENT_SEEN_MAX)
			drop_oldest(brain);
		if (sw_vec_push(&brain->seen) == NULL)
			return SW_ENOMEM;
		brain->seen.count--;
		size_t place = place_of(brain, id.job);
		known = &brain->seen.items[place];
		memmove(known + 1, known, (brain->seen.count - place) * sizeof *known);
		brain->seen.count++;
		*known = (struct sw_agent_seen){.job = id.job, .epoch = id.epoch};
	}
	known->stamp = ++brain->stamp;
	if (known->epoch < id.epoch) {
		known->epoch = id.epoch;
		known->used = false;
	}
	if (known->epoch == id.epoch)
		known->used |= used;
	return 0;
}

bool sw_agent_is_stale(const struct sw_agent_brain *brain, struct sw_run_id id)
{
	const struct sw_agent_seen *known = find(brain, id.job);
	return known != NULL && (known->epoch > id.epoch || (known->epoch == id.epoch && known->used));
}

void sw_agent_use(struct sw_agent_brain *brain, struct sw_run_id id)
{
	struct sw_agent_seen *known = find(brain, id.job);
	if (known != NULL && known->epoch == id.epoch)
		known->used = true;
}

int sw_agent_brain_seen(struct sw_agent_brain *brain, struct sw_run_id id)
{
	return sw_agent_see(brain, id, true);
}
