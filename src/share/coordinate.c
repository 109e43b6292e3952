#include "share/coordinate.h"

#include "share/divide.h"
#include "share/fare.h"

/* So long after a guaranteed job was told to say when it works, one that yields relies on it. */
#define HEARD_NS INT64_C(300000000)
/* Head-room of a guaranteed job: this part of the GPU's memory. */
enum { HEADROOM_PART = 16 };
/* A burst is over when so long nothing was added. */
#define QUIET_NS INT64_C(1000000000)
/* Opportunistic jobs work together as long as each has this much of its memory on the GPU, and take
 * turns when not. One that is alone is suspended when it has less than the second. */
enum { TOGETHER_PERCENT = 75, ALONE_PERCENT = 25 };

/* One call. */
struct call {
	struct sw_coordination *kept;
	const struct sw_coordinate_gpu *gpu;
	const struct sw_coordinate_job *jobs;
	size_t count;
	int64_t now_ns;
	struct sw_coordinate_order *orders;
	uint64_t opportunistic_bytes; /* for those, all together */
	bool measuring;
};

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* ---- what is kept of each job */

static struct sw_coordinated *find(const struct call *call, uint64_t id)
{
	for (uint32_t i = 0; i < call->kept->count; i++)
		if (call->kept->jobs[i].id == id)
			return &call->kept->jobs[i];
	return NULL;
}

static void drop_gone(const struct call *call)
{
	struct sw_coordination *kept = call->kept;
	for (uint32_t i = 0; i < kept->count; i++) {
		bool there = false;
		for (size_t j = 0; j < call->count && !there; j++)
			there = call->jobs[j].id == kept->jobs[i].id;
		if (!there)
			kept->jobs[i--] = kept->jobs[--kept->count];
	}
}

static const struct sw_throttle *rule_of(const struct sw_coordinate_job *job)
{
	return job->throttle != NULL ? job->throttle : sw_throttle_at(0);
}

/* A job that changed its class or rule starts anew: a job that was promoted is
 * measured like a new one. */
static void add_new(const struct call *call)
{
	struct sw_coordination *kept = call->kept;
	for (size_t i = 0; i < call->count; i++) {
		const struct sw_coordinate_job *job = &call->jobs[i];
		struct sw_coordinated *known = find(call, job->id);
		bool changed = known != NULL && (known->class != job->class || known->rule != rule_of(job));
		if (known == NULL && kept->count < SW_COORDINATE_JOBS)
			known = &kept->jobs[kept->count++];
		else if (!changed)
			continue;
		*known = (struct sw_coordinated){
			.id = job->id, .class = job->class, .rule = rule_of(job), .demand_bytes = changed ? known->demand_bytes : 0};
	}
}

static void note_demands(const struct call *call)
{
	for (size_t i = 0; i < call->count; i++) {
		struct sw_coordinated *known = find(call, call->jobs[i].id);
		if (known != NULL && (!call->jobs[i].moving || known->demand_bytes == 0))
			known->demand_bytes = call->jobs[i].charged_bytes + call->jobs[i].host_bytes;
	}
}

/* What it would have on the GPU if it could. */
static uint64_t demand_of(const struct call *call, const struct sw_coordinate_job *job)
{
	const struct sw_coordinated *known = find(call, job->id);
	return least(known != NULL ? known->demand_bytes : 0, most(job->asked_bytes, job->fixed_bytes));
}

static void note_needs(const struct call *call)
{
	for (size_t i = 0; i < call->count; i++) {
		struct sw_coordinated *known = find(call, call->jobs[i].id);
		if (known == NULL)
			continue;
		uint64_t need = most(call->jobs[i].peak_bytes, known->demand_bytes);
		if (need > known->need_bytes)
			known->rose_ns = call->now_ns;
		known->need_bytes = need;
		if (need < known->quiet_bytes || call->now_ns - known->rose_ns >= QUIET_NS)
			known->quiet_bytes = need;
	}
}

/* What is kept free for a guaranteed job. In the midst of a burst its head-room is there to be
 * used. An opportunistic job that goes makes host memory, and while the driver does that, the
 * guaranteed one's own calls wait. */
static uint64_t reserve_of(const struct call *call, const struct sw_coordinate_job *job)
{
	const struct sw_coordinated *known = find(call, job->id);
	uint64_t headroom = call->gpu->capacity_bytes / HEADROOM_PART, need = known != NULL ? known->need_bytes : job->peak_bytes;
	uint64_t reserve =
		known == NULL || known->quiet_bytes == 0 ? need + headroom : most(known->quiet_bytes + headroom, need + headroom / 4);
	return least(reserve, job->asked_bytes);
}

/* ---- which jobs run */

/* What those of one class hold on the GPU even while they are suspended. */
static uint64_t sum_fixed(const struct call *call, enum sw_job_class class)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < call->count; i++)
		sum += call->jobs[i].class == class ? call->jobs[i].fixed_bytes : 0;
	return sum;
}

/* Those of one class: all that fit into the room together, or some of them in turns. */
static void take_turns(const struct call *call, struct sw_turns *turns, enum sw_job_class class, uint64_t room_bytes)
{
	struct sw_turns_member members[SW_COORDINATE_JOBS] = {0};
	size_t index[SW_COORDINATE_JOBS], count = 0;
	bool runs[SW_COORDINATE_JOBS];
	for (size_t i = 0; i < call->count && count < SW_COORDINATE_JOBS; i++) {
		const struct sw_coordinate_job *job = &call->jobs[i];
		if (job->class != class)
			continue;
		index[count] = i;
		members[count++] = (struct sw_turns_member){.id = job->id,
							    .arrival = job->arrival,
							    .size = minus(demand_of(call, job), job->fixed_bytes),
							    .absent = job->held,
							    .away = job->suspended};
	}
	int64_t quantum_ns = call->gpu->quantum_ns > 0 ? call->gpu->quantum_ns : SW_TURNS_QUANTUM_NS;
	sw_turns(turns, members, count, minus(room_bytes, sum_fixed(call, class)), quantum_ns, call->now_ns, runs);
	for (size_t i = 0; i < count; i++)
		call->orders[index[i]].suspend = !runs[i];
}

static uint64_t sum_demand(const struct call *call, enum sw_job_class class)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < call->count; i++)
		if (call->jobs[i].class == class)
			sum += call->jobs[i].held ? call->jobs[i].fixed_bytes : demand_of(call, &call->jobs[i]);
	return sum;
}

/* Opportunistic jobs may be short of memory by a part, which is in host memory then. Turns begin
 * where it would be more, and end where all fit. */
static void place_opportunistic(struct call *call)
{
	struct sw_coordination *kept = call->kept;
	uint64_t demand = sum_demand(call, SW_CLASS_OPPORTUNISTIC), room = call->opportunistic_bytes;
	kept->sliced = kept->sliced ? demand > room : demand / 100 * TOGETHER_PERCENT > room;
	take_turns(call, &kept->opportunistic, SW_CLASS_OPPORTUNISTIC, kept->sliced ? room : UINT64_MAX);
	for (size_t i = 0; i < call->count; i++) {
		const struct sw_coordinate_job *job = &call->jobs[i];
		if (job->class == SW_CLASS_OPPORTUNISTIC && demand_of(call, job) / 100 * ALONE_PERCENT > room)
			call->orders[i].suspend = true;
	}
}

/* A job that comes waits until those that go have gone: else it would find no room,
 * and try again and again. */
static void hand_over(const struct call *call, uint64_t room_bytes)
{
	uint64_t held = 0, leaving = 0;
	for (size_t i = 0; i < call->count; i++) {
		held += call->jobs[i].charged_bytes;
		leaving += call->orders[i].suspend ? minus(call->jobs[i].charged_bytes, call->jobs[i].fixed_bytes) : 0;
	}
	for (size_t i = 0; i < call->count && leaving > 0; i++) {
		const struct sw_coordinate_job *job = &call->jobs[i];
		if (!call->orders[i].suspend && job->suspended && !job->moving && held + job->host_bytes > room_bytes)
			call->orders[i].suspend = true;
	}
}

static void place(struct call *call)
{
	uint64_t room = minus(call->gpu->capacity_bytes, call->gpu->foreign_bytes), reserved = 0;
	uint64_t guaranteed_room = call->gpu->placed ? UINT64_MAX : minus(room, sum_fixed(call, SW_CLASS_OPPORTUNISTIC));
	take_turns(call, &call->kept->guaranteed, SW_CLASS_GUARANTEED, guaranteed_room);
	for (size_t i = 0; i < call->count; i++)
		if (call->jobs[i].class == SW_CLASS_GUARANTEED)
			reserved += call->orders[i].suspend ? call->jobs[i].fixed_bytes : reserve_of(call, &call->jobs[i]);
	call->opportunistic_bytes = minus(room, reserved);
	place_opportunistic(call);
	hand_over(call, room);
}

/* ---- memory */

/* A guaranteed job that starts finds those that stand still at what they need, not
 * at what they could use. */
static struct sw_divide_part part_of(const struct call *call, const struct sw_coordinate_job *job)
{
	uint64_t demand = demand_of(call, job);
	if (!call->measuring || rule_of(job)->yields)
		return (struct sw_divide_part){.least_bytes = job->fixed_bytes, .want_bytes = demand, .most_bytes = job->asked_bytes};
	uint64_t stable = job->floor_bytes > 0 ? least(demand, job->floor_bytes) : demand;
	return (struct sw_divide_part){.least_bytes = job->fixed_bytes, .want_bytes = stable, .most_bytes = stable};
}

static void divide_memory(const struct call *call)
{
	struct sw_divide_part parts[SW_COORDINATE_JOBS];
	size_t index[SW_COORDINATE_JOBS], count = 0;
	uint64_t room = call->opportunistic_bytes;
	for (size_t i = 0; i < call->count && count < SW_COORDINATE_JOBS; i++) {
		const struct sw_coordinate_job *job = &call->jobs[i];
		if (job->class != SW_CLASS_OPPORTUNISTIC)
			continue;
		if (call->orders[i].suspend) {
			room = minus(room, job->fixed_bytes);
			continue;
		}
		index[count] = i;
		parts[count++] = part_of(call, job);
	}
	/* In the order of arrival: what cannot be divided goes to the first. */
	for (size_t i = 1; i < count; i++)
		for (size_t j = i; j > 0 && call->jobs[index[j]].arrival < call->jobs[index[j - 1]].arrival; j--) {
			struct sw_divide_part part = parts[j];
			size_t place = index[j];
			parts[j] = parts[j - 1];
			index[j] = index[j - 1];
			parts[j - 1] = part;
			index[j - 1] = place;
		}
	sw_divide(parts, count, room);
	for (size_t i = 0; i < count; i++)
		call->orders[index[i]].limit_bytes = least(parts[i].got_bytes, call->jobs[index[i]].asked_bytes);
}

/* ---- the GPU's time */

static bool has_running(const struct call *call, enum sw_job_class class)
{
	for (size_t i = 0; i < call->count; i++)
		if (call->jobs[i].class == class && !call->orders[i].suspend)
			return true;
	return false;
}

/* How the guaranteed jobs fare, the worst of them. */
static void look_at_guaranteed(struct call *call, struct sw_throttle_view *ret_view)
{
	*ret_view = (struct sw_throttle_view){.now_ns = call->now_ns};
	for (size_t i = 0; i < call->count; i++) {
		struct sw_coordinated *known = find(call, call->jobs[i].id);
		if (call->jobs[i].class != SW_CLASS_GUARANTEED || known == NULL)
			continue;
		struct sw_fare *fare = &known->fare;
		sw_fare_look(fare, &call->jobs[i], call->kept->standstill, call->now_ns);
		ret_view->measuring = ret_view->measuring || fare->phase == SW_FARE_MEASURED;
		if (fare->phase != SW_FARE_KNOWN)
			continue;
		uint32_t rate = sw_fare_rate_milli(fare);
		ret_view->time_milli = (uint32_t)most(ret_view->time_milli, fare->time_milli);
		ret_view->rate_milli = rate > 0 && (ret_view->rate_milli == 0 || rate < ret_view->rate_milli) ? rate : ret_view->rate_milli;
		ret_view->windows += fare->windows;
	}
	call->measuring = ret_view->measuring;
}

/* Whether all guaranteed jobs have been told to say when they work, and have had time to hear
 * it. */
static bool all_tell(const struct call *call)
{
	for (size_t i = 0; i < call->count; i++) {
		const struct sw_coordinated *known = find(call, call->jobs[i].id);
		if (call->jobs[i].class == SW_CLASS_GUARANTEED && !call->orders[i].suspend &&
		    (known == NULL || known->watched_ns == 0 || call->now_ns - known->watched_ns < HEARD_NS))
			return false;
	}
	return true;
}

static uint32_t throttle(struct sw_coordinated *known, const struct sw_throttle_view *view, bool tell)
{
	const struct sw_throttle *rule = known->rule;
	struct sw_throttle_kept *kept = &known->throttle;
	if (rule->yields)
		return tell ? SW_THROTTLE_ALL : 0;
	if (view->measuring || !kept->started) {
		*kept = (struct sw_throttle_kept){.started = true, .share_milli = rule->start_milli, .window = view->windows};
		return 0;
	}
	rule->look(kept, view);
	return kept->share_milli;
}

static void pace(struct call *call, const struct sw_throttle_view *view)
{
	bool beside = has_running(call, SW_CLASS_GUARANTEED), watched = false;
	for (size_t i = 0; i < call->count; i++)
		watched = watched || (call->jobs[i].class == SW_CLASS_OPPORTUNISTIC && rule_of(&call->jobs[i])->yields);
	for (size_t i = 0; i < call->count; i++) {
		struct sw_coordinated *known = find(call, call->jobs[i].id);
		call->orders[i].watched = watched && call->jobs[i].class == SW_CLASS_GUARANTEED;
		if (known != NULL && known->watched_ns == 0)
			known->watched_ns = call->jobs[i].watched ? call->now_ns - HEARD_NS : call->now_ns;
		if (known != NULL && !call->orders[i].watched)
			known->watched_ns = 0;
	}
	bool tell = all_tell(call), standstill = true;
	for (size_t i = 0; i < call->count; i++) {
		const struct sw_coordinate_job *job = &call->jobs[i];
		struct sw_coordinate_order *order = &call->orders[i];
		struct sw_coordinated *known = find(call, job->id);
		uint32_t share = SW_THROTTLE_ALL;
		if (known == NULL)
			share = 0;
		else if (beside && job->class == SW_CLASS_OPPORTUNISTIC)
			share = throttle(known, view, tell);
		else
			known->throttle.started = false;
		order->share_milli = job->asked_milli > 0 && job->asked_milli < share ? job->asked_milli : share;
		order->yields = beside && job->class == SW_CLASS_OPPORTUNISTIC && rule_of(job)->yields;
		if (job->class == SW_CLASS_OPPORTUNISTIC && !order->suspend && !order->yields && order->share_milli > 0)
			standstill = false;
	}
	call->kept->standstill = standstill;
}

void sw_coordinate(struct sw_coordination *kept, const struct sw_coordinate_gpu *gpu, const struct sw_coordinate_job *jobs, size_t count,
		   int64_t now_ns, struct sw_coordinate_order *ret_orders)
{
	struct call call = {.kept = kept, .gpu = gpu, .jobs = jobs, .count = count, .now_ns = now_ns, .orders = ret_orders};
	struct sw_throttle_view view;
	for (size_t i = 0; i < count; i++)
		ret_orders[i] = (struct sw_coordinate_order){.limit_bytes = jobs[i].asked_bytes, .suspend = true};
	drop_gone(&call);
	add_new(&call);
	note_demands(&call);
	note_needs(&call);
	look_at_guaranteed(&call, &view);
	place(&call);
	divide_memory(&call);
	pace(&call, &view);
}
