/* Questions as bytes: what is a problem and what is none, and that the same question has the same
 * answer. That the pairs are the best is test_matching's part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "solve/solve.h"

#define EDGES_MAX 200

struct graph {
	struct sw_matching head;
	struct sw_matching_edge edges[EDGES_MAX];
};

static size_t size_of(const struct graph *graph)
{
	return sizeof graph->head + graph->head.edges * sizeof graph->edges[0];
}

static void join(struct graph *graph, uint16_t a, uint16_t b, uint32_t weight)
{
	graph->edges[graph->head.edges++] = (struct sw_matching_edge){a, b, weight};
}

static struct sw_question question_of(const struct graph *graph)
{
	return (struct sw_question){.kind = SW_SOLVE_MATCHING, .limit = 1000000, .bytes = graph, .size = size_of(graph)};
}

/* Its status; the pairs go to `ret_found`. */
static uint8_t ask(const struct sw_question *question, struct sw_matching_found *ret_head, struct sw_matching_pair *ret_pairs)
{
	struct sw_pack pack = {0};
	struct sw_solve_outcome outcome;
	assert_int_equal(sw_solve(question, &pack, &outcome), 0);
	if (outcome.status == SW_SOLVE_NO_PROBLEM) {
		assert_int_equal(pack.size, 0);
	} else {
		memcpy(ret_head, pack.bytes, sizeof *ret_head);
		assert_int_equal(pack.size, sizeof *ret_head + ret_head->pairs * sizeof *ret_pairs);
		memcpy(ret_pairs, pack.bytes + sizeof *ret_head, ret_head->pairs * sizeof *ret_pairs);
	}
	sw_pack_release(&pack);
	return outcome.status;
}

static bool is_problem(const struct sw_question *question)
{
	struct sw_matching_found found;
	struct sw_matching_pair pairs[EDGES_MAX];
	return ask(question, &found, pairs) != SW_SOLVE_NO_PROBLEM;
}

/* Aim: a path of four vertices with a heavy middle is answered by the middle alone, and with a
 * light one by its two ends, in order. */
static void test_path(void **state)
{
	(void)state;
	for (int heavy = 0; heavy < 2; heavy++) {
		struct graph graph = {.head = {.vertices = 4}};
		struct sw_matching_found found;
		struct sw_matching_pair pairs[EDGES_MAX];
		join(&graph, 3, 2, 5);
		join(&graph, 1, 2, heavy ? 11 : 9);
		join(&graph, 0, 1, 5);
		const struct sw_question question = question_of(&graph);
		assert_int_equal(ask(&question, &found, pairs), SW_SOLVED);
		assert_int_equal(found.weight, heavy ? 11 : 10);
		assert_int_equal(found.pairs, heavy ? 1 : 2);
		assert_int_equal(pairs[0].a, heavy ? 1 : 0);
		assert_int_equal(pairs[0].b, heavy ? 2 : 1);
		if (!heavy)
			assert_int_equal(pairs[1].a, 2);
	}
}

/* Aim: at a limit of one iteration there is an answer, it says so, and it is not more than that. */
static void test_limit(void **state)
{
	(void)state;
	struct graph graph = {.head = {.vertices = 20}};
	struct sw_matching_found found;
	struct sw_matching_pair pairs[EDGES_MAX];
	for (uint16_t v = 0; v < 20; v++)
		for (uint16_t w = 0; w < v; w++)
			join(&graph, v, w, 10u + v);
	struct sw_question question = question_of(&graph);
	question.limit = 1;
	assert_int_equal(ask(&question, &found, pairs), SW_SOLVED_TO_LIMIT);
	question.limit = 1000000;
	assert_int_equal(ask(&question, &found, pairs), SW_SOLVED);
	assert_int_equal(found.pairs, 10);
}

/* Aim: graphs without vertices and without edges are problems, with nothing in their answers. */
static void test_empty(void **state)
{
	(void)state;
	for (uint32_t vertices = 0; vertices <= SW_MATCHING_VERTICES_MAX; vertices += SW_MATCHING_VERTICES_MAX) {
		const struct graph graph = {.head = {.vertices = vertices}};
		struct sw_matching_found found = {.pairs = 7};
		struct sw_matching_pair pairs[EDGES_MAX];
		const struct sw_question question = question_of(&graph);
		assert_int_equal(ask(&question, &found, pairs), SW_SOLVED);
		assert_int_equal(found.pairs, 0);
		assert_int_equal(found.weight, 0);
	}
}

/* Aim: what is not a graph (cut short, too long, a vertex that is not there, an edge to itself or
 * twice, too many vertices), or a kind that is not known, is no problem, and nothing is read
 * beyond its end. */
static void test_no_problem(void **state)
{
	(void)state;
	struct graph graph = {.head = {.vertices = 3}};
	join(&graph, 0, 1, 4);
	join(&graph, 1, 2, 4);
	struct sw_question question = question_of(&graph);
	assert_true(is_problem(&question));
	for (size_t size = 0; size < size_of(&graph); size++) {
		question.size = size;
		assert_false(is_problem(&question));
	}
	question.size = size_of(&graph) + sizeof graph.edges[0];
	assert_false(is_problem(&question));
	question = question_of(&graph);
	for (uint32_t kind = 0; kind < 100; kind++) {
		question.kind = kind;
		assert_int_equal(is_problem(&question), kind == SW_SOLVE_MATCHING);
	}
	question = question_of(&graph);
	question.limit = 0;
	assert_false(is_problem(&question));
	static const struct sw_matching_edge wrong[] = {{3, 0, 1}, {0, 3, 1}, {1, 1, 1}, {1, 0, 9}, {65535, 65535, 0}};
	for (size_t w = 0; w < sizeof wrong / sizeof wrong[0]; w++) {
		graph.edges[1] = wrong[w];
		question = question_of(&graph);
		assert_false(is_problem(&question));
	}
	graph = (struct graph){.head = {.vertices = SW_MATCHING_VERTICES_MAX + 1}};
	question = question_of(&graph);
	assert_false(is_problem(&question));
	graph.head = (struct sw_matching){.vertices = UINT32_MAX, .edges = UINT32_MAX};
	question.size = sizeof graph.head;
	assert_false(is_problem(&question));
}

/* Aim: the same question has the same bytes as its answer, at every limit. */
static void test_again(void **state)
{
	(void)state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 7);
	struct graph graph = {.head = {.vertices = 16}};
	for (uint16_t v = 0; v < 16; v++)
		for (uint16_t w = 0; w < v; w++)
			join(&graph, v, w, 1 + (uint32_t)sw_rng_below(&rng, 4));
	for (uint32_t limit = 1; limit < 120; limit += 7) {
		struct sw_question question = question_of(&graph);
		struct sw_pack first = {0}, second = {0};
		struct sw_solve_outcome one, two;
		question.limit = limit;
		assert_int_equal(sw_solve(&question, &first, &one), 0);
		assert_int_equal(sw_solve(&question, &second, &two), 0);
		assert_int_equal(one.iterations, two.iterations);
		assert_true(one.iterations <= limit);
		assert_int_equal(first.size, second.size);
		assert_memory_equal(first.bytes, second.bytes, first.size);
		sw_pack_release(&first);
		sw_pack_release(&second);
	}
}

static bool fits(const struct sw_question *question, uint32_t count, const struct sw_matching_pair *pairs, size_t size)
{
	struct {
		struct sw_matching_found head;
		struct sw_matching_pair pairs[8];
	} answer = {.head.pairs = count};
	memcpy(answer.pairs, pairs, count * sizeof *pairs);
	return sw_solve_fits(question, SW_SOLVED, &answer, size);
}

/* Aim: of the bytes that come as an answer, those fit that have its layout and name vertices of
 * the question, each once and in order; all others do not, and nothing is read beyond their end. */
static void test_fits(void **state)
{
	(void)state;
	static const struct sw_matching_pair good[] = {{0, 3}, {1, 2}}, wrong[][2] = {{{0, 3}, {1, 4}}, {{0, 3}, {3, 2}}, {{1, 2}, {0, 3}},
										      {{0, 3}, {1, 3}}, {{0, 0}, {1, 2}}, {{0, 3}, {0, 2}}};
	struct graph graph = {.head = {.vertices = 4}};
	const struct sw_question question = question_of(&graph);
	size_t whole = sizeof(struct sw_matching_found) + sizeof good;
	assert_true(fits(&question, 2, good, whole));
	for (size_t size = 0; size < whole; size++)
		assert_false(fits(&question, 2, good, size));
	for (size_t w = 0; w < sizeof wrong / sizeof wrong[0]; w++)
		assert_false(fits(&question, 2, wrong[w], whole));
	assert_true(sw_solve_fits(&question, SW_SOLVE_FAILED, NULL, 0));
	assert_false(sw_solve_fits(&question, SW_SOLVE_FAILED, good, 1));
	assert_false(sw_solve_fits(&question, SW_SOLVED, NULL, 0));
	assert_false(sw_solve_fits(&question, SW_SOLVE_FAILED + 1, NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path),	   cmocka_unit_test(test_limit), cmocka_unit_test(test_empty),
		cmocka_unit_test(test_no_problem), cmocka_unit_test(test_again), cmocka_unit_test(test_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
