#include "brain/lengths.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "brain/state.h"

uint64_t sw_length_kind(uint32_t uid, const char *name)
{
	return sw_hash_bytes(sw_hash_u64(SW_HASH_START, uid), name, strlen(name));
}

int sw_lengths_note(struct sw_lengths *lengths, const struct sw_length *length)
{
	struct sw_length *slot = sw_vec_push(&lengths->alike);
	if (slot == NULL)
		return SW_ENOMEM;
	*slot = *length;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	sw_ns x = *(const sw_ns *)a, y = *(const sw_ns *)b;
	return (x > y) - (x < y);
}

static int by_kind(const void *a, const void *b)
{
	const struct sw_length *x = a, *y = b;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	int order = by_time(&x->ran_ns, &y->ran_ns);
	return order != 0 ? order : (x->job > y->job) - (x->job < y->job);
}

int sw_lengths_sort(struct sw_lengths *lengths)
{
	size_t count = lengths->alike.count, kept = 0;
	if (count == 0)
		return 0;
	struct sw_length *items = lengths->alike.items;
	qsort(items, count, sizeof *items, by_kind);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || by_kind(&items[kept - 1], &items[i]) != 0)
			items[kept++] = items[i];
	lengths->alike.count = kept;
	lengths->all.count = 0;
	sw_ns *all = sw_vec_push_n(&lengths->all, kept);
	if (all == NULL)
		return SW_ENOMEM;
	for (size_t i = 0; i < kept; i++)
		all[i] = items[i].ran_ns;
	qsort(all, kept, sizeof *all, by_time);
	return 0;
}

void sw_lengths_release(struct sw_lengths *lengths)
{
	sw_vec_free(&lengths->alike);
	sw_vec_free(&lengths->all);
}

/* The first of the kind, or behind it, that ran longer. */
static size_t first_longer(const struct sw_lengths *lengths, uint64_t kind, sw_ns ran_ns)
{
	size_t low = 0, high = lengths->alike.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct sw_length *length = &lengths->alike.items[middle];
		if (length->kind < kind || (length->kind == kind && length->ran_ns <= ran_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static size_t first_longer_of_all(const struct sw_lengths *lengths, sw_ns ran_ns)
{
	size_t low = 0, high = lengths->all.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (lengths->all.items[middle] <= ran_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

sw_ns sw_lengths_left(const struct sw_lengths *lengths, const struct sw_length_question *question, enum sw_basis *ret_basis)
{
	sw_ns ran_ns = question->ran_ns, limit_ns = question->limit_ns, expected_ns = question->expected_ns;
	if (expected_ns > ran_ns && (limit_ns <= 0 || expected_ns <= limit_ns)) {
		*ret_basis = SW_BASIS_EXPECTED;
		return expected_ns - ran_ns;
	}
	if (limit_ns > 0) {
		*ret_basis = SW_BASIS_LIMIT;
		return limit_ns > ran_ns ? limit_ns - ran_ns : 0; /* it is being ended */
	}
	size_t from = first_longer(lengths, question->kind, ran_ns), to = first_longer(lengths, question->kind, INT64_MAX);
	if (to > from) {
		*ret_basis = SW_BASIS_ALIKE;
		return lengths->alike.items[from + (to - from) / 2].ran_ns - ran_ns;
	}
	/* None of its kind ran so long: others say nothing about it. */
	bool of_a_kind = first_longer(lengths, question->kind, -1) < to;
	size_t longer = first_longer_of_all(lengths, ran_ns);
	if (!of_a_kind && longer < lengths->all.count) {
		*ret_basis = SW_BASIS_ALL;
		return lengths->all.items[longer + (lengths->all.count - longer) / 2] - ran_ns;
	}
	if (lengths->all.count == 0 || ran_ns <= 0)
		return SW_TIME_NEVER;
	*ret_basis = SW_BASIS_AGAIN;
	return ran_ns;
}

/* ---- of a cluster */

bool sw_brain_length(const struct sw_brain *brain, uint32_t job, struct sw_length *ret_length)
{
	const struct sw_live *live = sw_brain_live(brain, job);
	const struct sw_job *seen = sw_engine_job(brain->engine, (struct sw_job_id){job - 1});
	sw_ns ran_ns = sw_engine_clock(brain->engine, seen->id)->ran_ns;
	if (!live->is_over || ran_ns <= 0 || (seen->state != SW_JOB_FINISHED && !live->timed_out))
		return false;
	*ret_length = (struct sw_length){job, sw_length_kind(live->uid, live->name), ran_ns};
	return true;
}

int sw_brain_recall_length(struct sw_brain *brain, const struct sw_length *length)
{
	struct sw_length *slot;
	if (brain->lengths.items.count < SW_LENGTHS_KEPT)
		slot = sw_vec_push(&brain->lengths.items);
	else
		slot = &brain->lengths.items.items[brain->lengths.next++ % SW_LENGTHS_KEPT];
	if (slot == NULL)
		return SW_ENOMEM;
	*slot = *length;
	return 0;
}

int sw_brain_lengths(const struct sw_brain *brain, struct sw_lengths *ret_lengths)
{
	struct sw_lengths lengths = {0};
	struct sw_length length;
	int r = 0;
	for (size_t i = 0; r == 0 && i < brain->lengths.items.count; i++)
		r = sw_lengths_note(&lengths, &brain->lengths.items.items[i]);
	for (size_t i = brain->past.start; r == 0 && i < brain->past.jobs.count; i++)
		if (sw_brain_live(brain, brain->past.jobs.items[i]) != NULL && sw_brain_length(brain, brain->past.jobs.items[i], &length))
			r = sw_lengths_note(&lengths, &length);
	r = r < 0 ? r : sw_lengths_sort(&lengths);
	if (r < 0)
		sw_lengths_release(&lengths);
	else
		*ret_lengths = lengths;
	return r;
}
