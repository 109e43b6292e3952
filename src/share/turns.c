#include "share/turns.h"

#include <string.h>

#define AWAY_NS INT64_C(30000000000)

static struct sw_turns_record *find(struct sw_turns *kept, uint64_t id)
{
	for (uint32_t i = 0; i < kept->count; i++)
		if (kept->entries[i].id == id)
			return &kept->entries[i];
	return NULL;
}

static void count_time(struct sw_turns *kept, int64_t now_ns)
{
	int64_t passed = kept->seen_ns == 0 || now_ns < kept->seen_ns ? 0 : now_ns - kept->seen_ns;
	for (uint32_t i = 0; i < kept->count; i++)
		if (kept->entries[i].runs && !kept->entries[i].absent && !kept->entries[i].away)
			kept->entries[i].had_ns += passed;
	kept->seen_ns = now_ns;
}

static void drop_gone(struct sw_turns *kept, const struct sw_turns_member *members, size_t count)
{
	for (uint32_t i = 0; i < kept->count; i++) {
		bool there = false;
		for (size_t j = 0; j < count && !there; j++)
			there = members[j].id == kept->entries[i].id;
		if (!there)
			kept->entries[i--] = kept->entries[--kept->count];
	}
}

/* A job that comes later, or again, has had as much as the one that had least. Otherwise it would
 * have the GPU until it caught up. */
static void add_new(struct sw_turns *kept, const struct sw_turns_member *members, size_t count)
{
	int64_t least = INT64_MAX;
	for (uint32_t i = 0; i < kept->count; i++)
		if (!kept->entries[i].absent)
			least = kept->entries[i].had_ns < least ? kept->entries[i].had_ns : least;
	for (uint32_t i = 0; i < kept->count; i++)
		if (kept->entries[i].absent && least != INT64_MAX && kept->entries[i].had_ns < least)
			kept->entries[i].had_ns = least;
	for (size_t i = 0; i < count && kept->count < SW_TURNS_MEMBERS; i++)
		if (find(kept, members[i].id) == NULL)
			kept->entries[kept->count++] =
				(struct sw_turns_record){.id = members[i].id, .had_ns = least == INT64_MAX ? 0 : least};
}

static uint64_t size_of(const struct sw_turns_member *member, uint64_t room)
{
	return member->size < room ? member->size : room;
}

struct table {
	struct sw_turns *kept;
	const struct sw_turns_member *members;
	size_t count;
	uint64_t room, used;
	int64_t quantum_ns;
	bool *runs;
};

static bool is_waiting(const struct table *table, size_t member)
{
	return !table->runs[member] && !table->members[member].absent && find(table->kept, table->members[member].id) != NULL;
}

static bool is_before(const struct table *table, const struct sw_turns_member *a, const struct sw_turns_member *b)
{
	const struct sw_turns_record *one = find(table->kept, a->id), *other = find(table->kept, b->id);
	if (one->ended_ns != other->ended_ns)
		return one->ended_ns < other->ended_ns;
	return a->arrival != b->arrival ? a->arrival < b->arrival : a->id < b->id;
}

/* The first of those that wait; NULL: none does. Turns are never quite as long as a quantum: less
 * than half of one is no reason to come before others. */
static const struct sw_turns_member *next_in_line(const struct table *table)
{
	const struct sw_turns_member *first = NULL;
	int64_t least_ns = INT64_MAX;
	for (size_t i = 0; i < table->count; i++)
		if (is_waiting(table, i) && find(table->kept, table->members[i].id)->had_ns < least_ns)
			least_ns = find(table->kept, table->members[i].id)->had_ns;
	for (size_t i = 0; i < table->count; i++) {
		const struct sw_turns_member *member = &table->members[i];
		if (!is_waiting(table, i) || find(table->kept, member->id)->had_ns - least_ns > table->quantum_ns / 2)
			continue;
		if (first == NULL || is_before(table, member, first))
			first = member;
	}
	return first;
}

static bool all_fit(const struct table *table)
{
	uint64_t sum = 0, wanted = 0;
	for (size_t i = 0; i < table->count; i++) {
		wanted += !table->members[i].absent;
		if (!table->members[i].absent && __builtin_add_overflow(sum, table->members[i].size, &sum))
			return false;
	}
	return (sum <= table->room || wanted == 1) && table->count <= SW_TURNS_MEMBERS;
}

static void let_run(struct table *table, const struct sw_turns_member *member, int64_t until_ns, int64_t now_ns)
{
	struct sw_turns_record *turn = find(table->kept, member->id);
	if (turn->until_ns == 0) {
		turn->until_ns = until_ns;
		turn->given_ns = now_ns;
	}
	table->runs[member - table->members] = true;
	table->used += size_of(member, table->room);
}

/* Those whose turn is not over go on, if they still fit. A job that cannot come back has been
 * waited for at some time. */
static void keep_running(struct table *table, int64_t now_ns)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct sw_turns_member *member = &table->members[i];
		struct sw_turns_record *turn = find(table->kept, member->id);
		if (turn == NULL || turn->until_ns == 0)
			continue;
		if (member->away && now_ns - turn->given_ns < table->quantum_ns + AWAY_NS)
			turn->until_ns = now_ns + table->quantum_ns;
		bool over = member->absent || now_ns >= turn->until_ns || table->used + size_of(member, table->room) > table->room;
		if (!over) {
			let_run(table, member, 0, now_ns);
			continue;
		}
		turn->until_ns = 0;
		turn->ended_ns = now_ns;
		/* It had its chance. */
		if (member->away)
			turn->had_ns += table->quantum_ns;
	}
}

static bool are_alike(const struct table *table)
{
	for (size_t i = 1; i < table->count; i++)
		if (table->members[i].size != table->members[0].size)
			return false;
	return true;
}

/* Where any of them can take the place of any other, turns that begin together end one by one.
 * Those that wait get in one by one too, and none waits for long. Where they differ, the room that
 * one leaves may be of no use until others leave too. */
static void fill(struct table *table, int64_t now_ns)
{
	const struct sw_turns_member *next;
	const struct sw_turns_member *begin[SW_TURNS_MEMBERS];
	uint32_t begins = 0;
	bool fresh = table->used == 0 && are_alike(table);
	while ((next = next_in_line(table)) != NULL && table->used + size_of(next, table->room) <= table->room) {
		begin[begins++] = next;
		let_run(table, next, now_ns + table->quantum_ns, now_ns);
	}
	for (uint32_t i = 0; fresh && i < begins; i++)
		find(table->kept, begin[i]->id)->until_ns = now_ns + table->quantum_ns * (int64_t)(i + 1) / (int64_t)begins;
}

void sw_turns(struct sw_turns *kept, const struct sw_turns_member *members, size_t count, uint64_t room, int64_t quantum_ns, int64_t now_ns,
	      bool *ret_runs)
{
	struct table table = {.kept = kept, .members = members, .count = count, .room = room, .quantum_ns = quantum_ns, .runs = ret_runs};
	count_time(kept, now_ns);
	drop_gone(kept, members, count);
	add_new(kept, members, count);
	memset(ret_runs, 0, count * sizeof *ret_runs);
	if (all_fit(&table)) {
		for (size_t i = 0; i < count; i++) {
			ret_runs[i] = !members[i].absent;
			find(kept, members[i].id)->until_ns = 0;
		}
	} else {
		keep_running(&table, now_ns);
		fill(&table, now_ns);
	}
	for (size_t i = 0; i < count; i++) {
		struct sw_turns_record *turn = find(kept, members[i].id);
		if (turn != NULL) {
			turn->runs = ret_runs[i];
			turn->absent = members[i].absent;
			turn->away = members[i].away;
		}
	}
}
