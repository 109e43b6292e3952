/* From the bytes of a question to pairs, and back to bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "solve/matching.h"
#include "solve/solvers.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the layouts have the lowest byte first, and are copied as they are");
_Static_assert(sizeof(struct sw_matching) == 8 && sizeof(struct sw_matching_edge) == 8, "no padding in a question");
_Static_assert(sizeof(struct sw_matching_found) == 16 && sizeof(struct sw_matching_pair) == 4, "no padding in an answer");
_Static_assert(SW_MATCHING_VERTICES_MAX <= SW_MATCH_MAX, "what may be asked can be solved");
_Static_assert(sizeof(struct sw_matching) +
			       SW_MATCHING_VERTICES_MAX * (SW_MATCHING_VERTICES_MAX - 1) / 2 * sizeof(struct sw_matching_edge) <=
		       SW_QUESTION_BYTES_MAX,
	       "the largest graph that is complete fits into a question");

/* The weights as a matrix; false: this is no graph. */
static bool read_edges(const struct sw_question *question, const struct sw_matching *head, uint32_t *weights)
{
	const unsigned char *at = (const unsigned char *)question->bytes + sizeof *head;
	uint32_t n = head->vertices;
	for (uint32_t e = 0; e < head->edges; e++, at += sizeof(struct sw_matching_edge)) {
		struct sw_matching_edge edge;
		memcpy(&edge, at, sizeof edge);
		if (edge.a >= n || edge.b >= n || edge.a == edge.b || weights[edge.a * n + edge.b] != 0)
			return false;
		weights[edge.a * n + edge.b] = weights[edge.b * n + edge.a] = edge.weight;
	}
	return true;
}

static void write_pairs(struct sw_pack *answer, const uint32_t *weights, const uint32_t *mates, uint32_t n)
{
	struct sw_matching_found found = {0};
	for (uint32_t v = 0; v < n; v++) {
		if (mates[v] == SW_MATCH_ALONE || mates[v] < v)
			continue;
		found.pairs++;
		found.weight += weights[v * n + mates[v]];
	}
	sw_pack_raw(answer, &found, sizeof found);
	for (uint32_t v = 0; v < n; v++) {
		struct sw_matching_pair pair = {(uint16_t)v, (uint16_t)mates[v]};
		if (mates[v] != SW_MATCH_ALONE && mates[v] > v)
			sw_pack_raw(answer, &pair, sizeof pair);
	}
}

int sw_solve_matching(const struct sw_question *question, struct sw_pack *answer, struct sw_solve_outcome *ret_outcome)
{
	struct sw_matching head;
	if (question->size < sizeof head)
		return 0;
	memcpy(&head, question->bytes, sizeof head);
	size_t left = question->size - sizeof head;
	if (head.vertices > SW_MATCHING_VERTICES_MAX || left % sizeof(struct sw_matching_edge) != 0 ||
	    head.edges != left / sizeof(struct sw_matching_edge))
		return 0;
	SW_CLEANUP(sw_freep) uint32_t *weights = calloc((size_t)head.vertices * head.vertices + 1, sizeof *weights);
	SW_CLEANUP(sw_freep) uint32_t *mates = calloc((size_t)head.vertices + 1, sizeof *mates);
	bool whole = false;
	if (weights == NULL || mates == NULL)
		return SW_ENOMEM;
	if (!read_edges(question, &head, weights))
		return 0;
	int r = sw_match(weights, head.vertices, question->limit, mates, &ret_outcome->iterations, &whole);
	if (r < 0)
		return r;
	ret_outcome->status = whole ? SW_SOLVED : SW_SOLVED_TO_LIMIT;
	write_pairs(answer, weights, mates, head.vertices);
	return 0;
}

bool sw_solve_matching_fits(const struct sw_question *question, const void *bytes, size_t size)
{
	struct sw_matching head;
	struct sw_matching_found found;
	bool taken[SW_MATCHING_VERTICES_MAX] = {false};
	if (question->size < sizeof head || size < sizeof found)
		return false;
	memcpy(&head, question->bytes, sizeof head);
	memcpy(&found, bytes, sizeof found);
	size_t left = size - sizeof found;
	if (head.vertices > SW_MATCHING_VERTICES_MAX || found.zero != 0 || left % sizeof(struct sw_matching_pair) != 0 ||
	    found.pairs != left / sizeof(struct sw_matching_pair))
		return false;
	for (uint32_t p = 0, last = 0; p < found.pairs; p++) {
		struct sw_matching_pair pair;
		memcpy(&pair, (const unsigned char *)bytes + sizeof found + p * sizeof pair, sizeof pair);
		if (pair.a >= pair.b || pair.b >= head.vertices || taken[pair.a] || taken[pair.b] || (p > 0 && pair.a <= last))
			return false;
		taken[pair.a] = taken[pair.b] = true;
		last = pair.a;
	}
	return true;
}
