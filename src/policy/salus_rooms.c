/* Of the policy salus: which job is in which room and lane, and whether one more has room.
 *
 * A lane is as large as the largest ephemeral memory of its members. So it shrinks when that member
 * leaves, and is gone with the last. Lanes are sums, not places: that the free memory is one piece
 * is the affair of the GPU runtime, which maps it anew.
 *
 * Invariants: `used` and `lanes` of a room follow from its members. `used` is at most `capacity`,
 * unless another policy brought the members together. Lanes are numbered from 0 without gaps. A
 * room is in the open list while it could take one more.
 */
#include "policy/salus.h"

void sw_salus_mark(struct sw_view *view, uint32_t link)
{
	sw_list_append(view, DUE, linked(view, link));
}

uint32_t sw_salus_next_due(struct sw_view *view)
{
	const struct sw_job *keeper = sw_list_next(view, DUE, NULL);
	sw_list_remove(view, DUE, keeper);
	return link_of(keeper);
}

/* ---- memory */

/* How large each lane is; returns what members keep. */
static uint64_t measure(struct sw_view *view, const struct salus_room *room, uint64_t sizes[MEMBERS_MAX])
{
	uint64_t kept = 0;
	for (uint32_t l = 0; l < MEMBERS_MAX; l++)
		sizes[l] = 0;
	for (uint32_t m = 0; m < room->count; m++) {
		const struct sw_job *job = linked(view, room->members[m]);
		uint64_t needed = ephemeral(job), *size = &sizes[room->lane[m]];
		*size = needed > *size ? needed : *size;
		kept += shares(job) ? sw_job_floor(job) : room->capacity;
	}
	return kept;
}

/* Brings the sums up to date, and the list that follows from them. */
static void count(struct sw_view *view, uint32_t link)
{
	struct salus_room *room = room_of(view, link);
	uint64_t sizes[MEMBERS_MAX];
	room->used = measure(view, room, sizes);
	room->lanes = 0;
	for (uint32_t l = 0; l < MEMBERS_MAX; l++)
		room->used += sizes[l];
	for (uint32_t m = 0; m < room->count; m++)
		room->lanes = room->lane[m] >= room->lanes ? (uint8_t)(room->lane[m] + 1) : room->lanes;
	if (room->count < MEMBERS_MAX && room->used < room->capacity)
		sw_list_append(view, shelf_of(room->gpus), linked(view, link));
	else
		sw_list_remove(view, shelf_of(room->gpus), linked(view, link));
}

/* ---- coming and going */

static uint64_t capacity_of(struct sw_view *view, const struct sw_job *job)
{
	uint64_t least = UINT64_MAX;
	struct sw_node_id id;
	for (uint32_t i = 0; (id = sw_job_node(view, job, i, NULL)).v != SW_NO_NODE.v; i++) {
		struct sw_node node;
		sw_view_node(view, id, &node);
		least = node.gpu_memory_bytes < least ? node.gpu_memory_bytes : least;
	}
	return least;
}

void sw_salus_found(struct sw_view *view, const struct sw_job *job)
{
	struct card *card = card_of(view, job);
	card->room = job->id.v + 1;
	card->own = (struct salus_room){.members = {card->room}, .count = 1, .gpus = job->gpus_held, .capacity = capacity_of(view, job)};
	count(view, card->room);
	sw_salus_mark(view, card->room);
}

void sw_salus_enter(struct sw_view *view, const struct sw_job *job, uint32_t link, uint8_t lane)
{
	struct salus_room *room = room_of(view, link);
	uint32_t own = job->id.v + 1, at = room->count++;
	for (; at > 0 && room->members[at - 1] > own; at--) {
		room->members[at] = room->members[at - 1];
		room->lane[at] = room->lane[at - 1];
	}
	room->members[at] = own;
	room->lane[at] = lane;
	card_of(view, job)->room = link;
	count(view, link);
	sw_salus_mark(view, link);
}

/* Lanes after one that is empty now move up. */
static void close_gap(struct salus_room *room, uint8_t lane)
{
	for (uint32_t m = 0; m < room->count; m++)
		if (room->lane[m] == lane)
			return;
	for (uint32_t m = 0; m < room->count; m++)
		room->lane[m] = (uint8_t)(room->lane[m] - (room->lane[m] > lane));
}

/* Its keeper leaves: the room moves into the bytes of another, which takes its place on lists. */
static void hand_over(struct sw_view *view, const struct sw_job *from, const struct sw_job *to)
{
	const struct salus_room *room = &card_of(view, to)->own;
	card_of(view, to)->own = card_of(view, from)->own;
	sw_list_put(view, DUE, to, from);
	sw_list_put(view, shelf_of(room->gpus), to, from);
	for (uint32_t m = 0; m < room->count; m++)
		card_of(view, linked(view, room->members[m]))->room = link_of(to);
}

static void delist(struct sw_view *view, const struct sw_job *keeper)
{
	sw_list_remove(view, DUE, keeper);
	sw_list_remove(view, sw_list_shelf(view, keeper), keeper);
}

void sw_salus_leave(struct sw_view *view, const struct sw_job *job)
{
	struct card *card = card_of(view, job);
	uint32_t own = job->id.v + 1, link = card->room, at = 0;
	struct salus_room *room = room_of(view, link);
	if (room == NULL)
		return;
	card->room = 0;
	if (room->count == 1) {
		delist(view, job);
		return;
	}
	while (room->members[at] != own)
		at++;
	uint8_t lane = room->lane[at];
	for (room->count--; at < room->count; at++) {
		room->members[at] = room->members[at + 1];
		room->lane[at] = room->lane[at + 1];
	}
	close_gap(room, lane);
	if (link == own) {
		hand_over(view, job, linked(view, link = room->members[0]));
		delist(view, job);
	}
	count(view, link);
	sw_salus_mark(view, link);
}

uint32_t sw_salus_find(struct sw_view *view, const struct sw_job *job)
{
	for (const struct sw_job *keeper = NULL; (keeper = sw_list_next(view, shelf_of(job->gpus_held), keeper)) != NULL;) {
		const struct salus_room *room = &card_of(view, keeper)->own;
		if (room->gpus == job->gpus_held && sw_jobs_meet(view, linked(view, room->members[0]), job))
			return link_of(keeper);
	}
	return 0;
}

/* ---- seats */

static bool is_better(const struct seat *a, const struct seat *b)
{
	return b->room == 0 || a->rule < b->rule || (a->rule == b->rule && a->slack < b->slack);
}

struct seat sw_salus_seat(struct sw_view *view, const struct sw_job *job, uint32_t link, uint32_t lanes)
{
	const struct salus_room *room = room_of(view, link);
	uint64_t floor = sw_job_floor(job), needed = ephemeral(job), sizes[MEMBERS_MAX];
	struct seat best = {0};
	/* Whatever the lane, it keeps its floor. */
	if (!shares(job) || room->count == MEMBERS_MAX || room->used > room->capacity || room->capacity - room->used < floor ||
	    room->gpus != job->gpus)
		return best;
	uint64_t left = room->capacity - room->used - floor;
	if (room->lanes < lanes && needed <= left)
		return (struct seat){.room = link, .lane = room->lanes, .rule = 1};
	(void)measure(view, room, sizes);
	for (uint8_t l = 0; l < room->lanes; l++) {
		bool grows = needed > sizes[l];
		struct seat seat = {link, l, grows ? 3 : 2, grows ? needed - sizes[l] : sizes[l] - needed};
		if ((!grows || seat.slack <= left) && is_better(&seat, &best))
			best = seat;
	}
	return best;
}

struct seat sw_salus_seat_anywhere(struct sw_view *view, const struct sw_job *job, uint32_t lanes)
{
	uint32_t fewest = UINT32_MAX;
	struct seat best = {0};
	for (const struct sw_job *keeper = NULL; (keeper = sw_list_next(view, shelf_of(job->gpus), keeper)) != NULL;) {
		uint32_t members = card_of(view, keeper)->own.count;
		/* A lane of its own before turns, few to take turns with before
		 * many, and then the rules. */
		if (best.room != 0 && best.rule == 1 && members >= fewest)
			continue;
		struct seat seat = sw_salus_seat(view, job, link_of(keeper), lanes);
		if (seat.room == 0 || (best.rule == 1 && seat.rule > 1))
			continue;
		bool alone = seat.rule == 1 && best.rule > 1;
		if (best.room == 0 || alone || members < fewest || (members == fewest && is_better(&seat, &best))) {
			best = seat;
			fewest = members;
		}
	}
	return best;
}

/* Whether another job is in the member's lane. */
static bool has_company(const struct salus_room *room, uint32_t member)
{
	for (uint32_t m = 0; m < room->count; m++)
		if (m != member && room->lane[m] == room->lane[member])
			return true;
	return false;
}

void sw_salus_spread(struct sw_view *view, uint32_t link, uint32_t lanes)
{
	struct salus_room *room = room_of(view, link);
	for (uint32_t m = 0; m < room->count && room->lanes < lanes; m++) {
		uint8_t lane = room->lane[m];
		if (!linked(view, room->members[m])->paused || !has_company(room, m))
			continue;
		room->lane[m] = room->lanes;
		count(view, link);
		if (room->used <= room->capacity)
			continue;
		room->lane[m] = lane;
		count(view, link);
	}
}
