/* Pairs of the greatest total weight: exact maximum-weight matching in any graph.
 *
 * Edmonds' primal-dual method with blossoms, O(n^3) time, O(n^2) memory, integers only. No vertex
 * has to be matched: a vertex stays alone where that is better for the sum. Of several best
 * matchings the same one is found on every machine.
 */
#ifndef SW_SOLVE_MATCHING_H
#define SW_SOLVE_MATCHING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SW_MATCH_MAX 512u
#define SW_MATCH_ALONE UINT32_MAX

/* `weights` is a symmetric matrix of count x count; 0 is no edge, and the diagonal does not matter.
 * Writes to each vertex its partner or SW_MATCH_ALONE, and how many iterations it took. Where these
 * would be more than `limit`, it stops there, and *ret_whole is false. The matching is then the
 * heaviest of as many pairs as it has. SW_ELIMIT above SW_MATCH_MAX vertices, SW_ENOMEM. */
int sw_match(const uint32_t *weights, size_t count, uint32_t limit, uint32_t *ret_mates, uint32_t *ret_iterations, bool *ret_whole);

#endif
