#include "policy/bigbrain.h"

#define RESIDENTS_MAX 8u /* the core's */
#define NODE_GPUS_MAX 64u
#define GIB (UINT64_C(1) << 30)

/* One GPU, and what is left of it for one more process. */
struct gpu {
	uint32_t gpu;
	uint32_t residents;
	uint32_t whole;	     /* of them, jobs that are not split */
	uint32_t use_milli;  /* what the residents use of it, all together */
	uint64_t room_bytes; /* for one more, head-room taken off */
};

static uint64_t param(const struct sw_view *view, size_t index)
{
	return (uint64_t)sw_view_param(view, index)->number;
}

/* What this job uses of a GPU: half where it is not known. */
static uint32_t use_of(const struct sw_job *job)
{
	return job->use_milli != 0 ? job->use_milli : 500;
}

sw_ns sw_bigbrain_left(const struct sw_view *view, const struct sw_job *job)
{
	sw_ns left = sw_job_remaining(view, job);
	return left != SW_TIME_NEVER ? left : sw_job_ran(view, job);
}

sw_ns sw_bigbrain_takes(sw_ns left, uint64_t step_milli)
{
	__int128 takes = (__int128)left * (__int128)step_milli / 1000;
	return left == SW_TIME_NEVER || takes >= SW_TIME_NEVER ? SW_TIME_NEVER : (sw_ns)takes;
}

/* ---- one GPU */

/* Memory for one more beside so many, where `free` is not held: each process has its context, and a
 * part of the GPU stays free. */
static uint64_t room(const struct sw_view *view, const struct sw_node *node, uint64_t free, uint32_t residents)
{
	uint64_t held_back = (residents + 1) * (param(view, SW_BIGBRAIN_CONTEXT) * GIB / 1000) +
			     node->gpu_memory_bytes / 1000 * param(view, SW_BIGBRAIN_RESERVE);
	return free > held_back ? free - held_back : 0;
}

/* The same for a whole job: an idle GPU is its own, without head-room, or one that
 * fills it would never run. */
static uint64_t room_whole(const struct sw_view *view, const struct sw_node *node, uint64_t free, uint32_t residents)
{
	return residents == 0 ? node->gpu_memory_bytes : room(view, node, free, residents);
}

/* As if `without` were not there. What it holds counts as held, unless it is alone. */
static struct gpu look(const struct sw_view *view, const struct sw_node *node, uint32_t gpu, const struct sw_job *without)
{
	struct gpu seen = {.gpu = gpu};
	const struct sw_job *job;
	for (uint32_t r = 0; (job = sw_gpu_resident(view, node->id, gpu, r)) != NULL; r++) {
		if (job == without)
			continue;
		seen.residents++;
		seen.whole += sw_job_split_milli(view, job) == 0;
		seen.use_milli += use_of(job);
	}
	seen.room_bytes = room_whole(view, node, sw_gpu_memory_free(view, node->id, gpu), seen.residents);
	return seen;
}

/* What the residents get done together, of what each would alone, with one more that uses
 * `more_milli` (0: without). */
static uint64_t throughput_milli(const struct sw_view *view, struct sw_node_id node, const struct gpu *gpu, const struct sw_job *without,
				 uint32_t more_milli)
{
	uint64_t use = gpu->use_milli + more_milli, sum = more_milli > 0 ? 1000000 / (1000 + gpu->use_milli) : 0;
	const struct sw_job *job;
	for (uint32_t r = 0; (job = sw_gpu_resident(view, node, gpu->gpu, r)) != NULL; r++)
		if (job != without)
			sum += 1000000 / (1000 + use - use_of(job));
	return sum;
}

/* Whether one more is worth it. */
static bool gains(const struct sw_view *view, struct sw_node_id node, const struct gpu *gpu, const struct sw_job *job)
{
	uint64_t gain = param(view, SW_BIGBRAIN_GAIN);
	if (gain == 0 || gpu->residents == 0)
		return true;
	return throughput_milli(view, node, gpu, job, use_of(job)) * 1000 >= throughput_milli(view, node, gpu, job, 0) * (1000 + gain);
}

/* ---- all of them */

static bool is_better(const struct gpu *a, const struct gpu *b)
{
	return a->residents != b->residents ? a->residents < b->residents : a->room_bytes > b->room_bytes;
}

/* The best GPUs of one node for a job that asks for so many; false where it has too few. */
static bool find_on_node(const struct sw_view *view, const struct sw_job *job, const struct sw_node *node, struct sw_bigbrain_place *place)
{
	struct gpu best[NODE_GPUS_MAX];
	uint32_t count = 0;
	for (uint32_t g = 0; node->open && job->gpus <= node->gpus && g < node->gpus && g < NODE_GPUS_MAX; g++) {
		struct gpu gpu = look(view, node, g, job);
		if (gpu.residents >= RESIDENTS_MAX || gpu.whole >= param(view, SW_BIGBRAIN_K) || gpu.room_bytes < job->gpu_memory_bytes ||
		    !gains(view, node->id, &gpu, job))
			continue;
		uint32_t at = count < job->gpus ? count++ : count;
		for (; at > 0 && is_better(&gpu, &best[at - 1]); at--)
			if (at < job->gpus)
				best[at] = best[at - 1];
		if (at < job->gpus)
			best[at] = gpu;
	}
	*place = (struct sw_bigbrain_place){.where.node = node->id};
	for (uint32_t i = 0; i < count; i++) {
		place->where.mask |= UINT64_C(1) << best[i].gpu;
		place->residents += best[i].residents;
		place->room_bytes += best[i].room_bytes;
		place->use_milli = best[i].use_milli > place->use_milli ? best[i].use_milli : place->use_milli;
	}
	return count == job->gpus;
}

bool sw_bigbrain_find_whole(const struct sw_view *view, const struct sw_job *job, struct sw_bigbrain_place *ret_place)
{
	struct sw_bigbrain_place best = {.residents = UINT32_MAX}, place;
	for (uint32_t n = 0; n < sw_view_nodes(view); n++) {
		struct sw_node node;
		sw_view_node(view, (struct sw_node_id){n}, &node);
		/* Nothing is better than idle GPUs but larger ones: most nodes need no second
		 * look. */
		if (best.residents == 0 && (node.gpus_free < job->gpus || node.gpu_memory_bytes * job->gpus <= best.room_bytes))
			continue;
		if (find_on_node(view, job, &node, &place) &&
		    (place.residents != best.residents ? place.residents < best.residents : place.room_bytes > best.room_bytes))
			best = place;
	}
	if (best.residents == UINT32_MAX)
		return false;
	*ret_place = best;
	return true;
}

bool sw_bigbrain_find_split(const struct sw_view *view, const struct sw_job *job, struct sw_split *ret_split)
{
	uint32_t best = UINT32_MAX;
	uint64_t slots = param(view, SW_BIGBRAIN_SLOTS);
	for (uint32_t n = 0; slots > 0 && n < sw_view_nodes(view); n++) {
		struct sw_split_device devices[NODE_GPUS_MAX];
		size_t count = 0;
		struct sw_node node;
		struct sw_split split;
		sw_view_node(view, (struct sw_node_id){n}, &node);
		for (uint32_t g = 0; node.open && g < node.gpus && count < NODE_GPUS_MAX; g++) {
			struct gpu gpu = look(view, &node, g, NULL);
			uint64_t bytes = room(view, &node, sw_gpu_memory_free(view, node.id, g), gpu.residents);
			if (gpu.residents < RESIDENTS_MAX && gpu.residents - gpu.whole < slots && bytes > 0)
				devices[count++] = (struct sw_split_device){node.id, g, 1000000 / (1000 + gpu.use_milli), bytes};
		}
		if (count > 1 && sw_view_split(view, job, devices, count, &split) && split.step_milli < best) {
			best = split.step_milli;
			*ret_split = split;
		}
	}
	return best != UINT32_MAX;
}

/* When this resident will be done, from now; by its speed where that is measured. */
static sw_ns ends_in(const struct sw_view *view, const struct gpu *gpu, const struct sw_job *resident)
{
	uint32_t speed = sw_job_speed_milli(view, resident);
	uint64_t step = speed > 0 ? UINT64_C(1000000) / speed : 1000 + gpu->use_milli - use_of(resident);
	return sw_bigbrain_takes(sw_job_remaining(view, resident), step);
}

/* When the job would be done in the place of one of the residents of this GPU, if that is
 * sooner than `soonest`. */
static sw_ns in_place_of_one(const struct sw_view *view, const struct sw_job *job, const struct sw_node *node, uint32_t g, sw_ns soonest,
			     sw_ns *ret_wait)
{
	struct gpu gpu = look(view, node, g, NULL);
	uint64_t free = sw_gpu_memory_free(view, node->id, g);
	const struct sw_job *resident;
	for (uint32_t r = 0; (resident = sw_gpu_resident(view, node->id, g, r)) != NULL; r++) {
		if (sw_job_split_milli(view, resident) != 0 || gpu.whole > param(view, SW_BIGBRAIN_K) ||
		    room_whole(view, node, free + resident->gpu_memory_bytes, gpu.residents - 1) < job->gpu_memory_bytes)
			continue;
		sw_ns wait = ends_in(view, &gpu, resident);
		sw_ns takes = sw_bigbrain_takes(sw_bigbrain_left(view, job), 1000 + gpu.use_milli - use_of(resident));
		if (wait == SW_TIME_NEVER || takes > SW_TIME_NEVER - wait || wait + takes >= soonest)
			continue;
		soonest = wait + takes;
		*ret_wait = wait;
	}
	return soonest;
}

sw_ns sw_bigbrain_if_it_waits(const struct sw_view *view, const struct sw_job *job, sw_ns *ret_wait)
{
	sw_ns soonest = SW_TIME_NEVER;
	for (uint32_t n = 0; n < sw_view_nodes(view); n++) {
		struct sw_node node;
		sw_view_node(view, (struct sw_node_id){n}, &node);
		for (uint32_t g = 0; node.open && g < node.gpus; g++)
			soonest = in_place_of_one(view, job, &node, g, soonest, ret_wait);
	}
	return soonest;
}
