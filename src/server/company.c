/* Jobs that share GPUs, for people: what was predicted of each and what was measured. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "server/company.h"
#include "server/state.h"

/* More are not told of. */
#define TOLD_MAX 3u
/* Slower than that is as good as not at all. */
#define STILL_MILLI UINT32_C(1000000)

/* One of them. */
struct figures {
	struct sw_neighbour_view neighbours[SW_SYNC_JOBS_LISTED];
	size_t neighbour_count;
	uint64_t others[SW_SYNC_JOBS_LISTED]; /* of these, those that work */
	size_t count;
	struct sw_speed_view speed; /* zeroes: nothing was measured */
	bool current;		    /* beside those that are there now */
	struct sw_learn_answer predicted;
	const char *unpredicted; /* NULL, or why it is not */
};

static bool is_beside(const struct figures *figures)
{
	const struct sw_sync_jobs *beside = &figures->speed.beside;
	return beside->count == figures->count && memcmp(beside->items, figures->others, beside->count * sizeof beside->items[0]) == 0;
}

/* False: it does not run, or alone. */
static bool look(struct sw_server *server, uint64_t id, struct figures *ret_figures)
{
	struct figures figures = {0};
	size_t all = sw_brain_neighbours(server->brain, id, figures.neighbours, SW_SYNC_JOBS_LISTED);
	if (all == 0)
		return false;
	figures.neighbour_count = all < SW_SYNC_JOBS_LISTED ? all : SW_SYNC_JOBS_LISTED;
	for (size_t i = 0; i < figures.neighbour_count; i++)
		if (!figures.neighbours[i].paused)
			figures.others[figures.count++] = figures.neighbours[i].job;
	figures.current = sw_brain_speed(server->brain, id, &figures.speed) && figures.speed.iteration_ns > 0 && is_beside(&figures);
	figures.unpredicted = sw_brain_predict(server->brain, id, figures.others, figures.count, &figures.predicted);
	*ret_figures = figures;
	return true;
}

/* Whether what was measured of these models, or of others, has changed what is predicted. */
static bool is_learned(const struct figures *figures)
{
	return figures->unpredicted == NULL && figures->predicted.slow_milli != figures->predicted.prior_milli;
}

/* ---- in words */

__attribute__((format(printf, 3, 4))) static void add(char *text, size_t size, const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list args;
	va_start(args, fmt);
	vsnprintf(text + used, size - used, fmt, args);
	va_end(args);
}

static void add_slowdown(char *text, size_t size, const char *what, uint32_t milli)
{
	if (milli >= STILL_MILLI)
		add(text, size, "%s to stand still", what);
	else
		add(text, size, "%s %u.%02ux", what, (milli + 5) / 1000, (milli + 5) / 10 % 100);
}

static void add_figures(const struct figures *figures, char *text, size_t size)
{
	if (figures->unpredicted == NULL)
		add_slowdown(text, size, "predicted", figures->predicted.slow_milli);
	else
		add(text, size, "%s", figures->unpredicted);
	if (is_learned(figures))
		add(text, size, " (learned)");
	if (figures->current && figures->speed.slow_milli > 0)
		add_slowdown(text, size, ", measured", figures->speed.slow_milli);
	else
		add(text, size, figures->current ? ", not measured alone" : ", not measured yet");
}

void sw_company_say(struct sw_server *server, uint64_t id, char *text, size_t size)
{
	struct figures own, other;
	if (!look(server, id, &own))
		return;
	add(text, size, ": ");
	add_figures(&own, text, size);
	for (size_t i = 0; i < own.neighbour_count && i < TOLD_MAX; i++)
		if (look(server, own.neighbours[i].job, &other)) {
			add(text, size, "; job %llu: ", (unsigned long long)own.neighbours[i].job);
			add_figures(&other, text, size);
		}
}

/* ---- as JSON */

static void write_milli(struct sw_json *json, const char *key, uint32_t milli)
{
	sw_json_key(json, key);
	if (milli > 0)
		sw_json_decimal(json, milli, 1000);
	else
		sw_json_null(json);
}

static void write_figures(struct sw_json *json, const struct figures *figures)
{
	write_milli(json, "predicted", figures->unpredicted == NULL ? figures->predicted.slow_milli : 0);
	sw_json_key_bool(json, "learned", is_learned(figures));
	write_milli(json, "measured", figures->current ? figures->speed.slow_milli : 0);
}

static void write_neighbour(struct sw_server *server, struct sw_json *json, const struct sw_neighbour_view *neighbour)
{
	struct figures figures;
	sw_json_object(json);
	sw_json_key_u64(json, "job", neighbour->job);
	sw_json_key_string(json, "node", neighbour->node);
	sw_json_key(json, "gpu_indexes");
	sw_json_array(json);
	for (uint64_t mask = neighbour->mask; mask != 0; mask &= mask - 1)
		sw_json_u64(json, (uint64_t)__builtin_ctzll(mask));
	sw_json_end_array(json);
	if (look(server, neighbour->job, &figures))
		write_figures(json, &figures);
	sw_json_end_object(json);
}

void sw_company_write(struct sw_server *server, struct sw_json *json, uint64_t id)
{
	struct figures figures;
	sw_json_key(json, "sharing");
	if (!look(server, id, &figures)) {
		sw_json_null(json);
		return;
	}
	sw_json_object(json);
	write_figures(json, &figures);
	sw_json_key(json, "unpredicted");
	if (figures.unpredicted != NULL)
		sw_json_string(json, figures.unpredicted);
	else
		sw_json_null(json);
	sw_json_key(json, "with");
	sw_json_array(json);
	for (size_t i = 0; i < figures.neighbour_count; i++)
		write_neighbour(server, json, &figures.neighbours[i]);
	sw_json_end_array(json);
	sw_json_end_object(json);
}

static void write_seconds(struct sw_json *json, const char *key, int64_t ns)
{
	sw_json_key(json, key);
	if (ns > 0)
		sw_json_decimal(json, ns, SW_NS_PER_S);
	else
		sw_json_null(json);
}

void sw_company_write_speed(struct sw_server *server, struct sw_json *json, uint64_t id)
{
	struct sw_speed_view speed;
	sw_json_key(json, "speed");
	if (!sw_brain_speed(server->brain, id, &speed)) {
		sw_json_null(json);
		return;
	}
	sw_json_object(json);
	write_seconds(json, "iteration_s", speed.iteration_ns);
	write_seconds(json, "alone_s", speed.alone_ns);
	write_milli(json, "slowdown", speed.slow_milli);
	sw_json_key_u64(json, "iterations", speed.iterations);
	sw_json_key(json, "beside");
	sw_json_array(json);
	for (uint32_t i = 0; i < speed.beside.count; i++)
		sw_json_u64(json, speed.beside.items[i]);
	sw_json_end_array(json);
	sw_json_end_object(json);
}
