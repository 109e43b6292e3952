/* Maximum-weight matching.
 *
 * Every vertex has a price (dual), at first half of the greatest weight (doubled here, so that all
 * stays whole). An edge is tight when the prices of its ends add up to its weight. Trees of tight
 * edges, in turn unmatched and matched, grow from all unmatched vertices at once. Vertices at an
 * even distance from a root are OUTER, at an odd one INNER, those in no tree FREE. A tight edge
 * from an outer vertex
 *	to a free one      makes a tree larger, by that vertex and its mate;
 *	to another tree    ends the phase: along the path between both roots matched and
 *	                   unmatched edges change roles;
 *	within its tree    closes an odd circle, which becomes a blossom:
 *	                   from then on it is one outer vertex.
 * When there is no such edge, prices of outer vertices fall and of inner ones rise until something
 * happens. There is one, or an inner blossom's own price is used up and it opens again. Or
 * unmatched vertices have the price 0: then no matching is heavier.
 *
 * Invariants between phases:
 *  1. no edge is worth more than its ends' prices and the prices of the blossoms that hold both;
 *     matched edges exactly that.
 *  2. all unmatched vertices have the same price, the lowest of all.
 *  3. a blossom has an odd number of petals. Petal 0 holds its base, the only vertex whose mate may
 *     be outside. 1 and 2, 3 and 4, ... are matched to each other.
 *
 * By these, a search that stops early has the heaviest of all matchings of as many pairs.
 *
 * Ids: 1 to n are vertices, above that blossoms; 0 is none.
 */
#include "solve/matching.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

enum side { FREE, OUTER, INNER };

/* From a vertex inside one id to a vertex inside another. */
struct edge {
	uint16_t from, to; /* 0: there is none */
};

struct node {
	int64_t price;
	uint16_t whole;	  /* the outermost blossom that holds it, or itself; 0: this id is not in use */
	uint16_t mate;	  /* the vertex at the other end of its matched edge; 0: none */
	uint16_t parent;  /* the vertex from which its tree grew to it */
	uint16_t nearest; /* the outer vertex from which the cheapest edge comes; 0: none */
	uint32_t visited;
	enum side side;
	uint32_t petal_count;
};

struct matcher {
	const uint32_t *weights;
	uint32_t count; /* of vertices */
	uint32_t ids;	/* one more than the highest id possible */
	uint32_t top;	/* the highest id that was in use */
	uint32_t visit;
	struct node *nodes;
	struct edge *edges; /* [ids][ids]: the cheapest between two ids */
	uint16_t *petals;   /* [ids][count]: the ids that a blossom is made of, around the circle */
	uint16_t *petal_of; /* [ids][count + 1]: which petal of a blossom holds a vertex; of a vertex, itself */
	uint16_t *queue;    /* outer vertices whose edges were not looked at yet */
	uint32_t queued, done;
	uint32_t iterations, limit;
	bool stopped; /* at the limit */
};

static struct edge *edge_at(const struct matcher *m, uint32_t a, uint32_t b)
{
	return &m->edges[(size_t)a * m->ids + b];
}

static uint16_t *petals_of(const struct matcher *m, uint32_t blossom)
{
	return &m->petals[(size_t)blossom * m->count];
}

static uint16_t *petal_holding(const struct matcher *m, uint32_t blossom, uint32_t vertex)
{
	return &m->petal_of[(size_t)blossom * (m->count + 1) + vertex];
}

static bool is_vertex(const struct matcher *m, uint32_t id)
{
	return id <= m->count;
}

static bool is_outermost(const struct matcher *m, uint32_t id)
{
	return m->nodes[id].whole == id;
}

static uint32_t whole(const struct matcher *m, uint32_t id)
{
	return m->nodes[id].whole;
}

/* How far an edge is from being tight. */
static int64_t slack(const struct matcher *m, const struct edge *edge)
{
	int64_t weight = m->weights[(size_t)(edge->from - 1) * m->count + (edge->to - 1)];
	return m->nodes[edge->from].price + m->nodes[edge->to].price - 2 * weight;
}

static bool is_cheaper(const struct matcher *m, const struct edge *edge, const struct edge *than)
{
	return edge->from != 0 && (than->from == 0 || slack(m, edge) < slack(m, than));
}

static void offer(struct matcher *m, uint32_t vertex, uint32_t id)
{
	uint32_t nearest = m->nodes[id].nearest;
	if (nearest == 0 || is_cheaper(m, edge_at(m, vertex, id), edge_at(m, nearest, id)))
		m->nodes[id].nearest = (uint16_t)vertex;
}

static void find_nearest(struct matcher *m, uint32_t id)
{
	m->nodes[id].nearest = 0;
	for (uint32_t v = 1; v <= m->count; v++)
		if (edge_at(m, v, id)->from != 0 && whole(m, v) != id && m->nodes[whole(m, v)].side == OUTER)
			offer(m, v, id);
}

static void enqueue(struct matcher *m, uint32_t id)
{
	if (is_vertex(m, id)) {
		assert(m->queued < m->count);
		m->queue[m->queued++] = (uint16_t)id;
		return;
	}
	for (uint32_t i = 0; i < m->nodes[id].petal_count; i++)
		enqueue(m, petals_of(m, id)[i]);
}

static void put_into(struct matcher *m, uint32_t id, uint32_t outermost)
{
	m->nodes[id].whole = (uint16_t)outermost;
	for (uint32_t i = 0; i < m->nodes[id].petal_count; i++)
		put_into(m, petals_of(m, id)[i], outermost);
}

/* Lists of petals */

static void reverse(uint16_t *items, uint32_t count)
{
	for (uint32_t i = 0; i < count / 2; i++) {
		uint16_t item = items[i];
		items[i] = items[count - 1 - i];
		items[count - 1 - i] = item;
	}
}

/* Where the petal stands, counted in the direction in which that is an even number
 * of steps from the base. */
static uint32_t even_place(struct matcher *m, uint32_t blossom, uint32_t petal)
{
	uint16_t *petals = petals_of(m, blossom);
	uint32_t count = m->nodes[blossom].petal_count, place = 0;
	while (petals[place] != petal)
		place++;
	if (place % 2 == 0)
		return place;
	reverse(petals + 1, count - 1);
	return count - place;
}

/* Petal `place` becomes petal 0. */
static void turn(struct matcher *m, uint32_t blossom, uint32_t place)
{
	uint16_t *petals = petals_of(m, blossom);
	uint32_t count = m->nodes[blossom].petal_count;
	reverse(petals, place);
	reverse(petals + place, count - place);
	reverse(petals, count);
}

/* Matching along paths */

/* Matches `id` to `other` by the cheapest edge between them; within a blossom, its base moves to
 * where that edge enters. */
static void marry(struct matcher *m, uint32_t id, uint32_t other)
{
	struct edge edge = *edge_at(m, id, other);
	m->nodes[id].mate = edge.to;
	if (is_vertex(m, id))
		return;
	uint32_t petal = *petal_holding(m, id, edge.from), place = even_place(m, id, petal);
	for (uint32_t i = 0; i < place; i++)
		marry(m, petals_of(m, id)[i], petals_of(m, id)[i ^ 1]);
	marry(m, petal, other);
	turn(m, id, place);
}

/* From `id` up to its root, with `other` as its new partner. */
static void augment(struct matcher *m, uint32_t id, uint32_t other)
{
	while (true) {
		uint32_t before = whole(m, m->nodes[id].mate);
		marry(m, id, other);
		if (before == 0)
			return;
		uint32_t above = whole(m, m->nodes[before].parent);
		marry(m, before, above);
		id = above;
		other = before;
	}
}

/* The outer id in which the paths to the roots meet, or 0. */
static uint32_t meeting_point(struct matcher *m, uint32_t a, uint32_t b)
{
	m->visit++;
	while (a != 0 || b != 0) {
		if (a != 0) {
			if (m->nodes[a].visited == m->visit)
				return a;
			m->nodes[a].visited = m->visit;
			a = whole(m, m->nodes[a].mate);
			a = a != 0 ? whole(m, m->nodes[a].parent) : 0;
		}
		uint32_t swap = a;
		a = b;
		b = swap;
	}
	return 0;
}

/* Blossoms */

static void add_petal(struct matcher *m, uint32_t blossom, uint32_t petal)
{
	petals_of(m, blossom)[m->nodes[blossom].petal_count++] = (uint16_t)petal;
}

/* The path from `id` up to `base`, without the base. */
static void add_path(struct matcher *m, uint32_t blossom, uint32_t id, uint32_t base)
{
	while (id != base) {
		uint32_t inner = whole(m, m->nodes[id].mate);
		add_petal(m, blossom, id);
		add_petal(m, blossom, inner);
		enqueue(m, inner);
		id = whole(m, m->nodes[inner].parent);
	}
}

/* The cheapest edges of a blossom are the cheapest of its petals' edges. */
static void gather_edges(struct matcher *m, uint32_t blossom)
{
	for (uint32_t x = 1; x <= m->top; x++)
		*edge_at(m, blossom, x) = *edge_at(m, x, blossom) = (struct edge){0, 0};
	memset(petal_holding(m, blossom, 0), 0, (m->count + 1) * sizeof *m->petal_of);
	for (uint32_t i = 0; i < m->nodes[blossom].petal_count; i++) {
		uint32_t petal = petals_of(m, blossom)[i];
		for (uint32_t x = 1; x <= m->top; x++)
			if (is_cheaper(m, edge_at(m, petal, x), edge_at(m, blossom, x))) {
				*edge_at(m, blossom, x) = *edge_at(m, petal, x);
				*edge_at(m, x, blossom) = *edge_at(m, x, petal);
			}
		for (uint32_t v = 1; v <= m->count; v++)
			if (*petal_holding(m, petal, v) != 0)
				*petal_holding(m, blossom, v) = (uint16_t)petal;
	}
}

static void close_blossom(struct matcher *m, uint32_t a, uint32_t base, uint32_t b)
{
	uint32_t blossom = m->count + 1;
	while (blossom <= m->top && whole(m, blossom) != 0)
		blossom++;
	m->top = blossom > m->top ? blossom : m->top;
	assert(m->top < m->ids);
	struct node *node = &m->nodes[blossom];
	*node = (struct node){.side = OUTER, .mate = m->nodes[base].mate, .parent = m->nodes[base].parent};
	add_petal(m, blossom, base);
	add_path(m, blossom, a, base);
	reverse(petals_of(m, blossom) + 1, node->petal_count - 1);
	add_path(m, blossom, b, base);
	put_into(m, blossom, blossom);
	gather_edges(m, blossom);
	find_nearest(m, blossom);
}

/* An inner blossom without a price: the petals on the even way from where its tree enters to its
 * base stay in the tree. */
static void open_blossom(struct matcher *m, uint32_t blossom)
{
	struct node *node = &m->nodes[blossom];
	uint16_t *petals = petals_of(m, blossom);
	for (uint32_t i = 0; i < node->petal_count; i++)
		put_into(m, petals[i], petals[i]);
	uint32_t entry = *petal_holding(m, blossom, edge_at(m, blossom, node->parent)->from), place = even_place(m, blossom, entry);
	for (uint32_t i = 0; i < place; i += 2) {
		uint32_t inner = petals[i], outer = petals[i + 1];
		m->nodes[inner].parent = edge_at(m, outer, inner)->from;
		m->nodes[inner].side = INNER;
		m->nodes[inner].nearest = 0;
		m->nodes[outer].side = OUTER;
		find_nearest(m, outer);
		enqueue(m, outer);
	}
	m->nodes[entry].side = INNER;
	m->nodes[entry].parent = node->parent;
	m->nodes[entry].nearest = 0;
	for (uint32_t i = place + 1; i < node->petal_count; i++) {
		m->nodes[petals[i]].side = FREE;
		find_nearest(m, petals[i]);
	}
	node->whole = 0;
	node->petal_count = 0;
}

/* Phases */

/* Follows a tight edge from an outer vertex; true when two more vertices are matched. */
static bool follow(struct matcher *m, struct edge edge)
{
	uint32_t a = whole(m, edge.from), b = whole(m, edge.to);
	if (m->nodes[b].side == FREE) {
		uint32_t mate = whole(m, m->nodes[b].mate);
		m->nodes[b].parent = edge.from;
		m->nodes[b].side = INNER;
		m->nodes[mate].side = OUTER;
		m->nodes[b].nearest = m->nodes[mate].nearest = 0;
		enqueue(m, mate);
	} else if (m->nodes[b].side == OUTER) {
		uint32_t base = meeting_point(m, a, b);
		if (base == 0) {
			augment(m, a, b);
			augment(m, b, a);
			return true;
		}
		close_blossom(m, a, base, b);
	}
	return false;
}

static bool look_around(struct matcher *m, uint32_t vertex)
{
	for (uint32_t v = 1; v <= m->count; v++) {
		const struct edge *edge = edge_at(m, vertex, v);
		if (edge->from == 0 || whole(m, vertex) == whole(m, v))
			continue;
		if (slack(m, edge) > 0)
			offer(m, vertex, whole(m, v));
		else if (follow(m, *edge))
			return true;
	}
	return false;
}

/* By how much prices can change until an edge is tight or a blossom opens. */
static int64_t next_change(const struct matcher *m)
{
	int64_t change = INT64_MAX;
	for (uint32_t id = 1; id <= m->top; id++) {
		const struct node *node = &m->nodes[id];
		int64_t reach = INT64_MAX;
		if (!is_outermost(m, id))
			continue;
		if (node->side == INNER && !is_vertex(m, id))
			reach = node->price / 2;
		else if (node->side != INNER && node->nearest != 0)
			reach = slack(m, edge_at(m, node->nearest, id)) / (node->side == OUTER ? 2 : 1);
		change = reach < change ? reach : change;
	}
	return change;
}

/* False, and nothing changes, when that would bring prices to 0. */
static bool change_prices(struct matcher *m, int64_t change)
{
	for (uint32_t v = 1; v <= m->count; v++)
		if (m->nodes[whole(m, v)].side == OUTER && m->nodes[v].price <= change)
			return false;
	for (uint32_t v = 1; v <= m->count; v++) {
		enum side side = m->nodes[whole(m, v)].side;
		m->nodes[v].price += side == OUTER ? -change : side == INNER ? change : 0;
	}
	for (uint32_t b = m->count + 1; b <= m->top; b++)
		if (is_outermost(m, b))
			m->nodes[b].price += m->nodes[b].side == OUTER ? 2 * change : m->nodes[b].side == INNER ? -2 * change : 0;
	return true;
}

static bool plant_trees(struct matcher *m)
{
	m->queued = m->done = 0;
	for (uint32_t id = 1; id <= m->top; id++) {
		m->nodes[id].side = FREE;
		m->nodes[id].nearest = 0;
	}
	for (uint32_t id = 1; id <= m->top; id++)
		if (is_outermost(m, id) && m->nodes[id].mate == 0) {
			m->nodes[id].parent = 0;
			m->nodes[id].side = OUTER;
			enqueue(m, id);
		}
	return m->queued > 0;
}

static bool may_go_on(struct matcher *m)
{
	m->stopped = m->iterations == m->limit;
	m->iterations += !m->stopped;
	return !m->stopped;
}

/* True when it matched two more vertices; false when the matching is the best, or at the limit. */
static bool grow_matching(struct matcher *m)
{
	if (!plant_trees(m))
		return false;
	while (true) {
		while (m->done < m->queued) {
			if (!may_go_on(m))
				return false;
			if (look_around(m, m->queue[m->done++]))
				return true;
		}
		if (!may_go_on(m) || !change_prices(m, next_change(m)))
			return false;
		for (uint32_t id = 1; id <= m->top; id++) {
			uint32_t nearest = m->nodes[id].nearest;
			if (!is_outermost(m, id) || nearest == 0 || whole(m, nearest) == id || slack(m, edge_at(m, nearest, id)) > 0)
				continue;
			if (follow(m, *edge_at(m, nearest, id)))
				return true;
		}
		for (uint32_t b = m->count + 1; b <= m->top; b++)
			if (is_outermost(m, b) && m->nodes[b].side == INNER && m->nodes[b].price == 0)
				open_blossom(m, b);
	}
}

static void begin(struct matcher *m)
{
	int64_t heaviest = 0;
	for (uint32_t a = 1; a <= m->count; a++)
		for (uint32_t b = 1; b <= m->count; b++) {
			uint32_t weight = m->weights[(size_t)(a - 1) * m->count + (b - 1)];
			if (a == b || weight == 0)
				continue;
			*edge_at(m, a, b) = (struct edge){(uint16_t)a, (uint16_t)b};
			heaviest = weight > heaviest ? weight : heaviest;
		}
	for (uint32_t v = 1; v <= m->count; v++) {
		m->nodes[v].price = heaviest;
		m->nodes[v].whole = (uint16_t)v;
		*petal_holding(m, v, v) = (uint16_t)v;
	}
}

int sw_match(const uint32_t *weights, size_t count, uint32_t limit, uint32_t *ret_mates, uint32_t *ret_iterations, bool *ret_whole)
{
	if (count > SW_MATCH_MAX)
		return SW_ELIMIT;
	/* Blossoms of three or more, one inside the other or apart: never more than
	 * half as many as vertices. */
	uint32_t n = (uint32_t)count, ids = n + n / 2 + 1;
	SW_CLEANUP(sw_freep) struct node *nodes = calloc(ids, sizeof *nodes);
	SW_CLEANUP(sw_freep) struct edge *edges = calloc((size_t)ids * ids, sizeof *edges);
	SW_CLEANUP(sw_freep) uint16_t *petals = calloc((size_t)ids * n + 1, sizeof *petals);
	SW_CLEANUP(sw_freep) uint16_t *petal_of = calloc((size_t)ids * (n + 1), sizeof *petal_of);
	SW_CLEANUP(sw_freep) uint16_t *queue = calloc((size_t)n + 1, sizeof *queue);
	if (nodes == NULL || edges == NULL || petals == NULL || petal_of == NULL || queue == NULL)
		return SW_ENOMEM;
	struct matcher m = {.weights = weights,
			    .limit = limit,
			    .count = n,
			    .ids = ids,
			    .top = n,
			    .nodes = nodes,
			    .edges = edges,
			    .petals = petals,
			    .petal_of = petal_of,
			    .queue = queue};
	begin(&m);
	while (grow_matching(&m))
		;
	for (uint32_t v = 1; v <= n; v++)
		ret_mates[v - 1] = nodes[v].mate != 0 ? nodes[v].mate - 1u : SW_MATCH_ALONE;
	*ret_iterations = m.iterations;
	*ret_whole = !m.stopped;
	return 0;
}
