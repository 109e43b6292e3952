/* How jobs do on their GPUs, as their agents saw it last. Volatile: figures for
 * people, nothing that decides.
 *
 * A sync names every run that its agent knows. So a use goes with the first sync that does not name
 * its run, or says that it has ended. A run that was moved to other GPUs goes on. Its use of one
 * that it has left goes with the first newer samples of it among which that GPU is not.
 */
#include <stdlib.h>
#include <string.h>

#include "server/devices.h"
#include "server/state.h"
#include "server/uses.h"

#define USES_MAX 1024u /* of one machine */

/* Samples of runs on GPUs that are alive, sorted by run, GPU and place in the sync. */
struct seen {
	const struct sw_sync_sample *sample;
	int64_t newest_ns; /* of its run; of the first of a run only */
};

static int compare_keys(struct sw_run_id run, const char *gpu, struct sw_run_id other, const char *other_gpu)
{
	int order = sw_run_id_compare(run, other);
	return order != 0 ? order : strcmp(gpu, other_gpu);
}

static int compare_seen(const void *left, const void *right)
{
	const struct sw_sync_sample *a = ((const struct seen *)left)->sample, *b = ((const struct seen *)right)->sample;
	int order = compare_keys(a->run, a->gpu, b->run, b->gpu);
	return order != 0 ? order : (a > b) - (a < b);
}

static int compare_uses(const void *left, const void *right)
{
	const struct sw_use *a = left, *b = right;
	return compare_keys(a->run, a->gpu, b->run, b->gpu);
}

/* How many there are; NULL: out of memory. */
static struct seen *sort_samples(const struct sw_sync *sync, const struct sw_told *told, size_t *ret_count)
{
	struct seen *seen = calloc(sync->sample_count + 1, sizeof *seen);
	size_t count = 0;
	for (size_t s = 0; seen != NULL && s < sync->sample_count; s++) {
		const struct sw_sync_sample *sample = &sync->samples[s];
		if (sample->gpu == NULL || !sample->has_run || strlen(sample->gpu) >= sizeof((struct sw_use *)NULL)->gpu)
			continue;
		const struct sw_told_run *said = sw_told_find(told, sample->run);
		if (said != NULL && said->run != NULL && said->run->state != SW_RUN_EXITED)
			seen[count++] = (struct seen){.sample = sample};
	}
	if (count > 1)
		qsort(seen, count, sizeof *seen, compare_seen);
	for (size_t s = 0, first = 0; s < count; s++) {
		if (sw_run_id_compare(seen[s].sample->run, seen[first].sample->run) != 0)
			first = s;
		if (s == first || seen[s].sample->at_ns > seen[first].newest_ns)
			seen[first].newest_ns = seen[s].sample->at_ns;
	}
	*ret_count = count;
	return seen;
}

/* The first of these that is not before the key. */
static size_t lower_bound(const struct seen *seen, size_t count, struct sw_run_id run, const char *gpu)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare_keys(seen[middle].sample->run, seen[middle].sample->gpu, run, gpu) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool has_left(const struct seen *seen, size_t count, const struct sw_use *use)
{
	size_t first = lower_bound(seen, count, use->run, ""), here = lower_bound(seen, count, use->run, use->gpu);
	if (first == count || sw_run_id_compare(seen[first].sample->run, use->run) != 0)
		return false;
	bool is_here = here < count && compare_keys(seen[here].sample->run, seen[here].sample->gpu, use->run, use->gpu) == 0;
	return !is_here && seen[first].newest_ns > use->sampled_at_ns;
}

static void note(struct sw_use *use, const struct sw_sync_sample *sample)
{
	if (use->sampled_at_ns > sample->at_ns)
		return;
	use->sampled_at_ns = sample->at_ns;
	use->memory_bytes = sample->memory_bytes;
	use->host_bytes = sample->host_bytes;
	use->limit_bytes = sample->limit_bytes;
	use->iteration_ns = sample->iteration_ns;
	use->outside = sample->outside;
	use->has_share = sample->runtime;
	use->share_milli = sample->share_milli;
	use->yields = sample->yields;
	use->trespass = sample->trespass;
}

/* Those that are known are sorted; new ones come behind them. */
static void note_all(struct sw_machine *machine, const struct seen *seen, size_t count)
{
	size_t known = machine->uses.count;
	for (size_t s = 0; s < count;) {
		const struct sw_sync_sample *first = seen[s].sample;
		struct sw_use key = {.run = first->run};
		memcpy(key.gpu, first->gpu, strlen(first->gpu) + 1);
		struct sw_use *use = known > 0 ? bsearch(&key, machine->uses.items, known, sizeof key, compare_uses) : NULL;
		if (use == NULL && machine->uses.count < USES_MAX && (use = sw_vec_push(&machine->uses)) != NULL)
			*use = key;
		for (; s < count && compare_keys(seen[s].sample->run, seen[s].sample->gpu, first->run, first->gpu) == 0; s++)
			if (use != NULL)
				note(use, seen[s].sample);
	}
}

void sw_uses_hear(struct sw_machine *machine, const struct sw_sync *sync)
{
	SW_CLEANUP(sw_told_release) struct sw_told told = {0};
	size_t count = 0;
	struct seen *seen = sw_told_make(sync, &told) == 0 ? sort_samples(sync, &told, &count) : NULL;
	if (seen == NULL)
		return;
	for (size_t u = machine->uses.count; u-- > 0;) {
		const struct sw_told_run *said = sw_told_find(&told, machine->uses.items[u].run);
		bool is_alive = said != NULL && said->run != NULL && said->run->state != SW_RUN_EXITED;
		if (!is_alive || has_left(seen, count, &machine->uses.items[u]))
			machine->uses.items[u] = machine->uses.items[--machine->uses.count];
	}
	if (machine->uses.count > 1)
		qsort(machine->uses.items, machine->uses.count, sizeof machine->uses.items[0], compare_uses);
	note_all(machine, seen, count);
	free(seen);
}

bool sw_use_is_current(const struct sw_brain *brain, const struct sw_machine *machine, const struct sw_use *use)
{
	struct sw_part_view part;
	for (uint32_t p = 0; sw_brain_part(brain, use->run.job, p, &part); p++)
		if (part.epoch == use->run.epoch && strcmp(part.node, machine->name) == 0)
			return true;
	return false;
}

static void add(struct sw_use *sum, const struct sw_use *use, bool *limited)
{
	*limited = *limited && use->limit_bytes > 0;
	sum->memory_bytes += use->memory_bytes;
	sum->host_bytes += use->host_bytes;
	sum->limit_bytes += use->limit_bytes;
	sum->outside += use->outside;
	if (use->iteration_ns > sum->iteration_ns)
		sum->iteration_ns = use->iteration_ns;
	if (use->has_share && (!sum->has_share || use->share_milli < sum->share_milli))
		sum->share_milli = use->share_milli;
	sum->has_share = sum->has_share || use->has_share;
	sum->yields = sum->yields || use->yields;
	sum->trespass = sum->trespass || use->trespass;
	if (use->sampled_at_ns > sum->sampled_at_ns)
		sum->sampled_at_ns = use->sampled_at_ns;
}

bool sw_uses_sum(const sw_machines *machines, const struct sw_brain *brain, uint64_t job, struct sw_use *ret_sum)
{
	struct sw_use sum = {0};
	struct sw_part_view part;
	bool found = false, limited = true;
	for (uint32_t p = 0; sw_brain_part(brain, job, p, &part); p++) {
		const struct sw_machine *machine = sw_machines_find(machines, part.node);
		const struct sw_run_id run = {job, part.epoch};
		for (size_t u = 0; machine != NULL && u < machine->uses.count; u++)
			if (sw_run_id_compare(machine->uses.items[u].run, run) == 0) {
				add(&sum, &machine->uses.items[u], &limited);
				found = true;
			}
	}
	if (!limited)
		sum.limit_bytes = 0;
	if (found)
		*ret_sum = sum;
	return found;
}
