#include "sim/neighbours.h"

#include <stdlib.h>

#include "base/error.h"

struct seat {
	uint32_t residents[SW_GPU_RESIDENTS_MAX];
	uint32_t count;
};

struct sitting {
	uint32_t *gpus;
	uint32_t count;
	uint32_t capacity;
};

struct sw_neighbours {
	struct seat *seats; /* by GPU */
	struct sitting *jobs;
	uint32_t job_count;
};

struct sw_neighbours *sw_neighbours_new(uint32_t gpus, uint32_t jobs)
{
	struct sw_neighbours *neighbours = calloc(1, sizeof *neighbours);
	if (neighbours == NULL)
		return NULL;
	neighbours->seats = calloc(gpus + 1, sizeof *neighbours->seats);
	neighbours->jobs = calloc(jobs + 1, sizeof *neighbours->jobs);
	neighbours->job_count = jobs;
	if (neighbours->seats == NULL || neighbours->jobs == NULL) {
		sw_neighbours_free(neighbours);
		return NULL;
	}
	return neighbours;
}

void sw_neighbours_free(struct sw_neighbours *neighbours)
{
	for (uint32_t j = 0; neighbours->jobs != NULL && j < neighbours->job_count; j++)
		free(neighbours->jobs[j].gpus);
	free(neighbours->jobs);
	free(neighbours->seats);
	free(neighbours);
}

int sw_neighbours_enter(struct sw_neighbours *neighbours, const struct sw_ledger *ledger, uint32_t job, uint32_t parts)
{
	struct sitting *sitting = &neighbours->jobs[job];
	uint32_t wanted = sw_ledger_count_gpus(ledger, parts);
	if (wanted > sitting->capacity) {
		uint32_t *grown = realloc(sitting->gpus, wanted * sizeof *grown);
		if (grown == NULL)
			return SW_ENOMEM;
		sitting->gpus = grown;
		sitting->capacity = wanted;
	}
	for (uint32_t p = parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		for (uint64_t rest = ledger->parts[p].mask; rest != 0; rest &= rest - 1) {
			uint32_t gpu = ledger->nodes[ledger->parts[p].node].first_gpu + (uint32_t)__builtin_ctzll(rest);
			struct seat *seat = &neighbours->seats[gpu];
			if (seat->count == SW_GPU_RESIDENTS_MAX)
				continue; /* the ledger does not let this happen */
			seat->residents[seat->count++] = job;
			sitting->gpus[sitting->count++] = gpu;
		}
	}
	return 0;
}

void sw_neighbours_leave(struct sw_neighbours *neighbours, uint32_t job)
{
	struct sitting *sitting = &neighbours->jobs[job];
	for (uint32_t g = 0; g < sitting->count; g++) {
		struct seat *seat = &neighbours->seats[sitting->gpus[g]];
		uint32_t kept = 0;
		for (uint32_t r = 0; r < seat->count; r++)
			if (seat->residents[r] != job)
				seat->residents[kept++] = seat->residents[r];
		seat->count = kept;
	}
	sitting->count = 0;
}

bool sw_neighbours_at(const struct sw_neighbours *neighbours, uint32_t job, uint32_t index, const uint32_t **ret_residents,
		      uint32_t *ret_count)
{
	const struct sitting *sitting = &neighbours->jobs[job];
	if (index >= sitting->count)
		return false;
	*ret_residents = neighbours->seats[sitting->gpus[index]].residents;
	*ret_count = neighbours->seats[sitting->gpus[index]].count;
	return true;
}
