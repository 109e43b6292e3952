/* Choosing sets. Worths of pairs are kept by class: jobs with the same profile are of one class,
 * numbered as they first occur. */
#include "contention/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "contention/match.h"

#define NOBODY SW_MATCH_ALONE
#define PASSES_MAX 8

struct packer {
	const struct sw_pack_rule *rule;
	const struct sw_profile *const *jobs;
	uint32_t count, classes;
	uint32_t *class_of;		   /* of a job */
	const struct sw_profile **profile; /* of a class */
	uint32_t *worth;		   /* [classes][classes], 0: may not share */
	uint32_t *mates;
};

struct sw_pack_rule sw_pack_rule_of(uint64_t gpu_mem_bytes)
{
	return (struct sw_pack_rule){.least_worth_milli = 1300, .most_slow_milli = 1500, .set_max = 2, .gpu_mem_bytes = gpu_mem_bytes};
}

static void ask_profiles(void *context, const struct sw_profile *const *jobs, size_t count, uint32_t *ret_slow_milli)
{
	(void)context;
	struct sw_prediction predictions[SW_PACK_SET_MAX];
	sw_predict_set(&sw_predict_default, SW_WAY_MPS, jobs, count, predictions);
	for (size_t i = 0; i < count; i++)
		ret_slow_milli[i] = predictions[i].slow_milli;
}

uint32_t sw_pack_worth(const struct sw_pack_rule *rule, const struct sw_profile *const *jobs, size_t count)
{
	uint32_t slow_milli[SW_PACK_SET_MAX];
	uint64_t worth_ppb = 0; /* rounded once, at the end */
	if (count > SW_PACK_SET_MAX || !sw_predict_fits(jobs, count, rule->gpu_mem_bytes))
		return 0;
	(rule->ask != NULL ? rule->ask : ask_profiles)(rule->context, jobs, count, slow_milli);
	for (size_t i = 0; i < count; i++) {
		if (slow_milli[i] > rule->most_slow_milli)
			return 0;
		worth_ppb += UINT64_C(1000000000000) / (slow_milli[i] > 0 ? slow_milli[i] : 1);
	}
	uint32_t worth_milli = (uint32_t)((worth_ppb + 500000) / 1000000);
	return worth_milli >= rule->least_worth_milli ? worth_milli : 0;
}

static void release(struct packer *p)
{
	free(p->class_of);
	free(p->profile);
	free(p->worth);
	free(p->mates);
}

static int prepare(struct packer *p)
{
	p->class_of = calloc(p->count + 1, sizeof *p->class_of);
	p->profile = calloc(p->count + 1, sizeof(void *));
	p->mates = calloc(p->count + 1, sizeof *p->mates);
	if (p->class_of == NULL || p->profile == NULL || p->mates == NULL)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < p->count; i++) {
		uint32_t c = 0;
		while (c < p->classes && p->profile[c] != p->jobs[i])
			c++;
		p->profile[c] = p->jobs[i];
		p->classes += c == p->classes;
		p->class_of[i] = c;
		p->mates[i] = NOBODY;
	}
	p->worth = calloc((size_t)p->classes * p->classes + 1, sizeof *p->worth);
	if (p->worth == NULL)
		return SW_ENOMEM;
	for (uint32_t a = 0; a < p->classes; a++)
		for (uint32_t b = 0; b <= a; b++) {
			const struct sw_profile *pair[] = {p->profile[b], p->profile[a]};
			uint32_t worth = sw_pack_worth(p->rule, pair, 2);
			p->worth[(size_t)a * p->classes + b] = p->worth[(size_t)b * p->classes + a] = worth;
		}
	return 0;
}

static uint32_t worth_of(const struct packer *p, uint32_t a, uint32_t b)
{
	return p->worth[(size_t)p->class_of[a] * p->classes + p->class_of[b]];
}

static int pair_exactly(struct packer *p)
{
	uint32_t *weights = calloc((size_t)p->count * p->count + 1, sizeof *weights);
	if (weights == NULL)
		return SW_ENOMEM;
	for (uint32_t a = 0; a < p->count; a++)
		for (uint32_t b = 0; b < p->count; b++)
			weights[(size_t)a * p->count + b] = a != b ? worth_of(p, a, b) : 0;
	int r = sw_match(weights, p->count, p->mates);
	free(weights);
	return r;
}

/* Heuristically: in numbers of pairs of classes, since it does not matter
 * which job of a class it is. */

struct option {
	uint32_t worth, a, b; /* b >= a */
};

static int compare_options(const void *left, const void *right)
{
	const struct option *x = left, *y = right;
	if (x->worth != y->worth)
		return x->worth < y->worth ? 1 : -1;
	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	return (x->b > y->b) - (x->b < y->b);
}

/* So many pairs of a job of class `a` and one of class `b`. */
struct couples {
	uint32_t a, b, pairs;
};

struct heuristic {
	const struct packer *p;
	uint32_t count; /* of lists, some of which may be empty */
	struct couples *list;
	uint32_t *alone; /* jobs of a class without a partner */
};

static uint32_t class_worth(const struct packer *p, uint32_t a, uint32_t b)
{
	return p->worth[(size_t)a * p->classes + b];
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* No two lists are of the same classes, and empty ones are used again: there are never
 * more than pairs, of which there are half as many as jobs, and the two that an exchange
 * is about to take from. */
static void add_couples(struct heuristic *h, uint32_t a, uint32_t b, uint32_t pairs)
{
	uint32_t slot = h->count;
	for (uint32_t i = 0; i < h->count; i++) {
		struct couples *couples = &h->list[i];
		if (couples->pairs > 0 && ((couples->a == a && couples->b == b) || (couples->a == b && couples->b == a))) {
			couples->pairs += pairs;
			return;
		}
		slot = couples->pairs == 0 && slot == h->count ? i : slot;
	}
	h->list[slot] = (struct couples){a, b, pairs};
	h->count += slot == h->count;
}

/* The classes that go best together first. */
static int pair_greedily(struct heuristic *h)
{
	const struct packer *p = h->p;
	size_t count = 0;
	SW_CLEANUP(sw_freep) struct option *options = calloc((size_t)p->classes * (p->classes + 1) / 2 + 1, sizeof *options);
	if (options == NULL)
		return SW_ENOMEM;
	for (uint32_t a = 0; a < p->classes; a++)
		for (uint32_t b = a; b < p->classes; b++)
			if (class_worth(p, a, b) > 0)
				options[count++] = (struct option){class_worth(p, a, b), a, b};
	qsort(options, count, sizeof *options, compare_options);
	for (size_t i = 0; i < count; i++) {
		uint32_t a = options[i].a, b = options[i].b, pairs = a == b ? h->alone[a] / 2 : smaller(h->alone[a], h->alone[b]);
		if (pairs == 0)
			continue;
		add_couples(h, a, b, pairs);
		h->alone[a] -= pairs;
		h->alone[b] -= pairs;
	}
	return 0;
}

/* Pairs exchange partners where both new ones may share and are worth more together; the same list
 * twice: two pairs of it do. */
static bool exchange(struct heuristic *h, uint32_t first, uint32_t second)
{
	struct couples one = h->list[first], other = h->list[second];
	uint32_t pairs = first == second ? one.pairs / 2 : smaller(one.pairs, other.pairs);
	uint32_t now = class_worth(h->p, one.a, one.b) + class_worth(h->p, other.a, other.b);
	for (int crossed = 0; crossed < 2 && pairs > 0; crossed++) {
		uint32_t c = crossed ? other.b : other.a, d = crossed ? other.a : other.b;
		uint32_t ac = class_worth(h->p, one.a, c), bd = class_worth(h->p, one.b, d);
		if (ac == 0 || bd == 0 || ac + bd <= now)
			continue;
		h->list[first].pairs -= pairs;
		h->list[second].pairs -= pairs;
		add_couples(h, one.a, c, pairs);
		add_couples(h, one.b, d, pairs);
		return true;
	}
	return false;
}

/* The class that goes best with `a` among those with a job alone, one of `except` not counted. */
static uint32_t best_alone(const struct heuristic *h, uint32_t a, uint32_t except)
{
	uint32_t best = NOBODY;
	for (uint32_t c = 0; c < h->p->classes; c++)
		if (h->alone[c] > (c == except ? 1 : 0) && class_worth(h->p, a, c) > (best != NOBODY ? class_worth(h->p, a, best) : 0))
			best = c;
	return best;
}

/* Jobs that are alone break pairs of `a` and `b`: two pairs for one, or a better one for it. */
static bool break_up(struct heuristic *h, uint32_t at, uint32_t a, uint32_t b)
{
	uint32_t for_a = best_alone(h, a, NOBODY), for_b = best_alone(h, b, for_a), pairs = h->list[at].pairs;
	if (for_a == NOBODY || pairs == 0 || (for_b == NOBODY && class_worth(h->p, a, for_a) <= class_worth(h->p, a, b)))
		return false;
	pairs = smaller(pairs, for_a == for_b ? h->alone[for_a] / 2 : h->alone[for_a]);
	if (for_b != NOBODY)
		pairs = smaller(pairs, for_a == for_b ? pairs : h->alone[for_b]);
	h->list[at].pairs -= pairs;
	h->alone[for_a] -= pairs;
	add_couples(h, a, for_a, pairs);
	if (for_b != NOBODY) {
		h->alone[for_b] -= pairs;
		add_couples(h, b, for_b, pairs);
	} else {
		h->alone[b] += pairs;
	}
	return true;
}

static bool improve(struct heuristic *h)
{
	bool better = false;
	for (uint32_t i = 0; i < h->count; i++)
		for (uint32_t j = 0; j <= i; j++)
			better = exchange(h, i, j) || better;
	for (uint32_t i = 0; i < h->count; i++) {
		better = break_up(h, i, h->list[i].a, h->list[i].b) || better;
		better = break_up(h, i, h->list[i].b, h->list[i].a) || better;
	}
	return better;
}

/* Numbers become jobs: of each class in their order. */
static void hand_out(const struct heuristic *h, struct packer *p, uint32_t *next)
{
	for (uint32_t i = 0; i < h->count; i++)
		for (uint32_t pair = 0; pair < h->list[i].pairs; pair++) {
			uint32_t who[2] = {h->list[i].a, h->list[i].b};
			for (int side = 0; side < 2; side++) {
				uint32_t *job = &next[who[side]];
				while (p->class_of[*job] != who[side])
					++*job;
				who[side] = (*job)++;
			}
			p->mates[who[0]] = who[1];
			p->mates[who[1]] = who[0];
		}
}

static int pair_heuristically(struct packer *p)
{
	SW_CLEANUP(sw_freep) struct couples *list = calloc(p->count / 2 + 3, sizeof *list);
	SW_CLEANUP(sw_freep) uint32_t *alone = calloc(p->classes + 1, sizeof *alone);
	SW_CLEANUP(sw_freep) uint32_t *next = calloc(p->classes + 1, sizeof *next);
	struct heuristic h = {.p = p, .list = list, .alone = alone};
	if (list == NULL || alone == NULL || next == NULL)
		return SW_ENOMEM;
	for (uint32_t i = 0; i < p->count; i++)
		alone[p->class_of[i]]++;
	int r = pair_greedily(&h);
	for (int pass = 0; r == 0 && pass < PASSES_MAX && improve(&h); pass++)
		;
	hand_out(&h, p, next);
	return r;
}

/* Sets of more than two. */

static uint32_t worth_together(const struct packer *p, const struct sw_pack_set *a, const struct sw_pack_set *b)
{
	const struct sw_profile *jobs[SW_PACK_SET_MAX];
	size_t count = 0;
	for (uint32_t i = 0; i < a->count; i++)
		jobs[count++] = p->jobs[a->jobs[i]];
	for (uint32_t i = 0; i < b->count; i++)
		jobs[count++] = p->jobs[b->jobs[i]];
	return sw_pack_worth(p->rule, jobs, count);
}

static int compare_u32(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	return (a > b) - (a < b);
}

static void unite(struct sw_pack_set *into, struct sw_pack_set *gone, uint32_t worth)
{
	memcpy(into->jobs + into->count, gone->jobs, gone->count * sizeof gone->jobs[0]);
	into->count += gone->count;
	into->worth_milli = worth;
	qsort(into->jobs, into->count, sizeof into->jobs[0], compare_u32);
	gone->count = 0;
}

/* One step: every set unites with one other at most, the best first. */
static int grow_once(const struct packer *p, struct sw_pack_set *sets, size_t count, bool *ret_grown)
{
	struct option *options = calloc(count * count / 2 + 1, sizeof *options);
	uint8_t *done = calloc(count + 1, 1);
	size_t found = 0;
	bool there = options != NULL && done != NULL;
	uint32_t step = p->rule->least_worth_milli > 1000 ? p->rule->least_worth_milli - 1000 : 0;
	for (uint32_t a = 0; there && a < count; a++)
		for (uint32_t b = a + 1; b < count; b++) {
			uint32_t jobs = sets[a].count + sets[b].count;
			uint32_t before = sets[a].worth_milli > sets[b].worth_milli ? sets[a].worth_milli : sets[b].worth_milli;
			if (sets[a].count == 0 || sets[b].count == 0 || jobs < 3 || jobs > p->rule->set_max)
				continue;
			uint32_t worth = worth_together(p, &sets[a], &sets[b]);
			if (worth >= before + step)
				options[found++] = (struct option){worth, a, b};
		}
	if (there)
		qsort(options, found, sizeof *options, compare_options);
	for (size_t i = 0; i < found; i++)
		if (!done[options[i].a] && !done[options[i].b]) {
			unite(&sets[options[i].a], &sets[options[i].b], options[i].worth);
			done[options[i].a] = done[options[i].b] = 1;
		}
	*ret_grown = found > 0;
	free(options);
	free(done);
	return there ? 0 : SW_ENOMEM;
}

static int form_sets(const struct packer *p, struct sw_pack_set *sets, size_t *ret_count)
{
	size_t count = 0, left = 0;
	int r = 0;
	for (uint32_t a = 0; a < p->count; a++) {
		uint32_t b = p->mates[a];
		if (b == NOBODY)
			sets[count++] = (struct sw_pack_set){{a}, 1, 1000};
		else if (a < b)
			sets[count++] = (struct sw_pack_set){{a, b}, 2, worth_of(p, a, b)};
	}
	bool grown = p->rule->set_max > 2;
	for (uint32_t pass = 2; grown && pass < SW_PACK_SET_MAX && r == 0; pass++)
		r = grow_once(p, sets, count, &grown);
	for (size_t i = 0; i < count; i++)
		if (sets[i].count > 0)
			sets[left++] = sets[i];
	*ret_count = left;
	return r;
}

int sw_pack(const struct sw_pack_rule *rule, const struct sw_profile *const *jobs, size_t count, struct sw_pack_set *ret_sets,
	    size_t *ret_set_count)
{
	if (count > SW_PACK_JOBS_MAX)
		return SW_ELIMIT;
	struct packer packer = {.rule = rule, .jobs = jobs, .count = (uint32_t)count};
	int r = prepare(&packer);
	if (r == 0)
		r = count <= SW_PACK_EXACT_MAX ? pair_exactly(&packer) : pair_heuristically(&packer);
	if (r == 0)
		r = form_sets(&packer, ret_sets, ret_set_count);
	release(&packer);
	return r;
}

bool sw_pack_is_worse(struct sw_pack_watch *watch, uint32_t predicted_milli, uint32_t measured_milli)
{
	bool over = measured_milli > predicted_milli && measured_milli - predicted_milli > SW_PACK_TOLERATED_MILLI;
	watch->strikes = over ? watch->strikes + 1 : 0;
	return watch->strikes >= SW_PACK_STRIKES;
}
