#include "split/cut.h"

/* The part that `first` holds where both are filled alike, so that neither
 * gets more than it has. */
static uint64_t part_of_first(uint64_t bytes, uint64_t first, uint64_t second)
{
	uint64_t part = (uint64_t)((unsigned __int128)bytes * first / ((unsigned __int128)first + second));
	uint64_t least = bytes > second ? bytes - second : 0; /* what was rounded off may not fit the other */
	part = part > least ? part : least;
	return part > 0 ? part : 1;
}

/* A step whose parts take their turns at these speeds, without the price. */
static uint64_t step_milli(const struct sw_split_device *a, const struct sw_split_device *b, uint64_t first, uint64_t bytes)
{
	unsigned __int128 step =
		(unsigned __int128)first * 1000000 / a->speed_milli + (unsigned __int128)(bytes - first) * 1000000 / b->speed_milli;
	step /= bytes;
	return step < UINT32_MAX ? (uint64_t)step : UINT32_MAX;
}

static bool suits(const struct sw_split_device *a, const struct sw_split_device *b, uint64_t bytes)
{
	return a->node.v == b->node.v && a->gpu != b->gpu && a->speed_milli > 0 && b->speed_milli > 0 && a->memory_bytes > 0 &&
	       b->memory_bytes > 0 && (a->memory_bytes >= bytes || b->memory_bytes >= bytes - a->memory_bytes);
}

static bool cut(const struct sw_splitter *splitter, const struct sw_job *job, const struct sw_split_device *devices, size_t count,
		struct sw_split *ret_split)
{
	const struct sw_cut *self = (const struct sw_cut *)splitter;
	uint64_t bytes = job->gpu_memory_bytes, best = UINT64_MAX;
	count = count < SW_CUT_DEVICES_MAX ? count : SW_CUT_DEVICES_MAX;
	for (size_t i = 0; bytes > 1 && i < count; i++) {
		for (size_t j = i + 1; j < count; j++) {
			if (!suits(&devices[i], &devices[j], bytes))
				continue;
			uint64_t first = part_of_first(bytes, devices[i].memory_bytes, devices[j].memory_bytes);
			uint64_t step = step_milli(&devices[i], &devices[j], first, bytes) * self->price_milli / 1000;
			if (step >= best)
				continue;
			best = step;
			*ret_split = (struct sw_split){
				.parts = {{devices[i].node, devices[i].gpu, first}, {devices[j].node, devices[j].gpu, bytes - first}},
				.count = 2,
				.step_milli = step < UINT32_MAX ? (uint32_t)step : UINT32_MAX,
				.alone_milli = self->price_milli,
			};
		}
	}
	return best != UINT64_MAX;
}

struct sw_cut sw_cut_make(uint32_t price_milli)
{
	return (struct sw_cut){.splitter = {.name = "cut", .split = cut}, .price_milli = price_milli};
}
