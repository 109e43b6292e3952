/* AntMan in the semantics of Muri's simulator, so that its published figures come out. No job is
 * preempted, promoted or moved, and there are no quotas.
 *
 * Guaranteed jobs in submit order. On one node they take the first that has enough GPUs without a
 * guaranteed job. On several nodes they take empty ones and one more for the rest. A job that does
 * not find all of them reserves what there is (on the node with most of them). It adds to it as
 * more come free. Opportunistic jobs then, in submit order: all of their GPUs or none, those with
 * the least load below 0.8, wherever they are.
 *
 * Load is a figure of that simulator: 0.1 for a guaranteed job (0.09 while it only reserves), 0.9
 * for an opportunistic one. It adds and subtracts these as binary fractions, and what such sums
 * leave behind decides between GPUs that are equally loaded. So this file has floating-point
 * numbers, unlike every other policy: additions of them are the same on every machine.
 */
#include "policy/published/antman.h"

#define NODES_MAX 256u

static const double guaranteed_load = 0.1, started_load = 0.01, opportunistic_load = 0.9, busy_load = 0.8;

struct rack {
	struct sw_plan *plan;
	struct sw_view *view;
	struct sw_antman_muri *muri;
	struct {
		uint32_t first, gpus; /* in the arrays of muri */
		bool up;
	} nodes[NODES_MAX];
	uint32_t node_count, node_gpus;
	uint32_t unowned; /* GPUs that guaranteed jobs could have */
};

/* ---- what is */

static void look(struct rack *rack)
{
	uint32_t first = 0;
	for (uint32_t n = 0; n < sw_view_nodes(rack->view) && n < NODES_MAX; n++) {
		struct sw_node node;
		sw_view_node(rack->view, (struct sw_node_id){n}, &node);
		if (first + node.gpus > SW_ANTMAN_MURI_GPUS)
			break;
		rack->nodes[n].first = first;
		rack->nodes[n].gpus = node.gpus;
		rack->nodes[n].up = node.up;
		rack->node_gpus = node.gpus > rack->node_gpus ? node.gpus : rack->node_gpus;
		rack->node_count = n + 1;
		first += node.gpus;
	}
}

/* Takes off the books what has left. */
static void sweep(struct rack *rack)
{
	struct sw_antman_muri *muri = rack->muri;
	for (uint32_t n = 0; n < rack->node_count; n++) {
		for (uint32_t g = rack->nodes[n].first; g < rack->nodes[n].first + rack->nodes[n].gpus; g++) {
			const struct sw_job *owner = sw_view_job(rack->view, (struct sw_job_id){muri->owner[g] - 1});
			const struct sw_job *guest = sw_view_job(rack->view, (struct sw_job_id){muri->guest[g] - 1});
			if (muri->owner[g] != 0 && owner->state != SW_JOB_RUNNING && !sw_job_is_waiting(owner)) {
				muri->load[g] -= owner->first_start_at == SW_TIME_NEVER ? guaranteed_load - started_load : guaranteed_load;
				muri->owner[g] = 0;
			}
			if (muri->guest[g] != 0 && guest->state != SW_JOB_RUNNING) {
				muri->load[g] -= opportunistic_load;
				muri->guest[g] = 0;
			}
			rack->unowned += rack->nodes[n].up && muri->owner[g] == 0;
		}
	}
}

static uint32_t unowned_of(const struct rack *rack, uint32_t node)
{
	uint32_t count = 0;
	for (uint32_t g = 0; rack->nodes[node].up && g < rack->nodes[node].gpus; g++)
		count += rack->muri->owner[rack->nodes[node].first + g] == 0;
	return count;
}

/* Starts the job on the GPUs that the book has for it. */
static bool start(struct rack *rack, const struct sw_job *job, const uint32_t *book, double load)
{
	struct sw_gpus where[NODES_MAX] = {0};
	size_t count = 0;
	for (uint32_t n = 0; n < rack->node_count; n++) {
		uint64_t mask = 0;
		for (uint32_t g = 0; g < rack->nodes[n].gpus; g++)
			mask |= (uint64_t)(book[rack->nodes[n].first + g] == job->id.v + 1) << g;
		if (mask != 0)
			where[count++] = (struct sw_gpus){{n}, mask};
	}
	if (sw_plan_run(rack->plan, job, SW_WISH(.where = sw_at(where, count))) != SW_YES)
		return false;
	for (size_t i = 0; i < count; i++)
		for (uint64_t rest = where[i].mask; rest != 0; rest &= rest - 1)
			rack->muri->load[rack->nodes[where[i].node.v].first + (uint32_t)__builtin_ctzll(rest)] += load;
	return true;
}

/* ---- guaranteed jobs */

/* Up to `wanted` GPUs of the node. */
static void reserve(struct rack *rack, const struct sw_job *job, struct sw_antman_muri_job *mine, uint32_t node, uint32_t wanted)
{
	struct sw_antman_muri *muri = rack->muri;
	for (uint32_t g = rack->nodes[node].first;
	     rack->nodes[node].up && wanted > 0 && g < rack->nodes[node].first + rack->nodes[node].gpus; g++) {
		if (muri->owner[g] != 0)
			continue;
		muri->owner[g] = job->id.v + 1;
		muri->load[g] += guaranteed_load - started_load;
		mine->held++;
		rack->unowned--;
		wanted--;
	}
}

/* GPUs of one node: the first that has enough, else the one with most; once some are reserved,
 * there. Nodes that are to be filled whole are passed over. */
static void reserve_rest(struct rack *rack, const struct sw_job *job, struct sw_antman_muri_job *mine, uint32_t wanted, uint32_t full)
{
	uint32_t best = rack->node_count, most = 0;
	for (uint32_t n = 0; mine->rest_node == 0 && n < rack->node_count; n++) {
		uint32_t count = unowned_of(rack, n);
		if (full > 0 && count >= rack->node_gpus) {
			full--;
			continue;
		}
		if (count > most && most < wanted) {
			most = count;
			best = n;
		}
	}
	if (best < rack->node_count)
		mine->rest_node = best + 1;
	if (mine->rest_node != 0)
		reserve(rack, job, mine, mine->rest_node - 1, wanted);
}

static void place_guaranteed(struct rack *rack, const struct sw_job *job, struct sw_antman_muri_job *mine)
{
	uint32_t missing = job->gpus - mine->held, full = missing / rack->node_gpus, rest = missing % rack->node_gpus;
	if (job->gpus <= rack->node_gpus) {
		reserve_rest(rack, job, mine, missing, 0);
	} else {
		if (rest > 0)
			reserve_rest(rack, job, mine, rest, full);
		for (uint32_t n = 0; full > 0 && n < rack->node_count; n++) {
			if (unowned_of(rack, n) < rack->node_gpus)
				continue;
			reserve(rack, job, mine, n, rack->node_gpus);
			full--;
		}
	}
	if (mine->held == job->gpus)
		(void)start(rack, job, rack->muri->owner, started_load);
}

/* ---- opportunistic jobs */

static bool is_candidate(const struct rack *rack, uint32_t node, uint32_t gpu, uint32_t taker)
{
	return rack->nodes[node].up && rack->muri->load[gpu] < busy_load && rack->muri->guest[gpu] != taker;
}

/* The GPU with the least load that the taker has not got yet; SW_ANTMAN_MURI_GPUS: none. */
static uint32_t least_loaded(const struct rack *rack, uint32_t taker)
{
	uint32_t best = SW_ANTMAN_MURI_GPUS;
	for (uint32_t n = 0; n < rack->node_count; n++)
		for (uint32_t g = rack->nodes[n].first; g < rack->nodes[n].first + rack->nodes[n].gpus; g++)
			if (is_candidate(rack, n, g, taker) &&
			    (best == SW_ANTMAN_MURI_GPUS || rack->muri->load[g] < rack->muri->load[best]))
				best = g;
	return best;
}

/* False: there is not a single GPU for any. */
static bool place_opportunistic(struct rack *rack, const struct sw_job *job)
{
	uint32_t taken[SW_ANTMAN_MURI_GPUS], count = 0;
	while (count < job->gpus && count < SW_ANTMAN_MURI_GPUS) {
		uint32_t gpu = least_loaded(rack, job->id.v + 1);
		if (gpu == SW_ANTMAN_MURI_GPUS)
			break;
		rack->muri->guest[gpu] = job->id.v + 1;
		taken[count++] = gpu;
	}
	bool any = count > 0;
	if (count < job->gpus || !start(rack, job, rack->muri->guest, opportunistic_load))
		while (count > 0)
			rack->muri->guest[taken[--count]] = 0;
	return any;
}

void sw_antman_muri_decide(struct sw_plan *plan, struct sw_antman_muri *muri,
			   struct sw_antman_muri_job *(*job_state)(struct sw_view *view, const struct sw_job *job))
{
	struct rack rack = {.plan = plan, .view = sw_plan_view(plan), .muri = muri};
	look(&rack);
	sweep(&rack);
	for (const struct sw_job *job = sw_view_next_waiting(rack.view, NULL); job != NULL && rack.node_gpus > 0;
	     job = sw_view_next_waiting(rack.view, job)) {
		struct sw_antman_muri_job *mine = job_state(rack.view, job);
		if (job->asked_class == SW_CLASS_GUARANTEED && (rack.unowned > 0 || mine->held == job->gpus))
			place_guaranteed(&rack, job, mine);
	}
	bool room = true;
	for (const struct sw_job *job = sw_view_next_waiting(rack.view, NULL); job != NULL && room;
	     job = sw_view_next_waiting(rack.view, job))
		if (job->asked_class == SW_CLASS_OPPORTUNISTIC)
			room = place_opportunistic(&rack, job);
}
