/* Waiting for jobs and for what they write, through restarts of the controller. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/now.h"
#include "cli/interrupt.h"
#include "cli/live.h"
#include "cli/message.h"

/* A controller that does not come back within this is given up. */
#define PATIENCE_MS 600000
#define TELL_AFTER_MS 2000
#define PAUSE_FIRST_MS 50
#define PAUSE_MOST_MS 2000
#define LOOK_MS 200

struct patience {
	int64_t since_ms; /* 0: the controller answers */
	int64_t pause_ms;
	bool told;
};

static void pause_ms(int64_t ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&time, NULL);
}

/* After a failure: whether to ask again, after a pause. The error is cleared then. */
static bool try_again(struct patience *patience, struct sw_client *client, struct sw_err *err)
{
	if (sw_cli_interrupted() != 0 || !sw_client_is_away(client))
		return false;
	int64_t now = sw_now_monotonic_ms();
	if (patience->since_ms == 0)
		*patience = (struct patience){.since_ms = now, .pause_ms = PAUSE_FIRST_MS};
	if (now - patience->since_ms > PATIENCE_MS)
		return false;
	if (!patience->told && now - patience->since_ms > TELL_AFTER_MS) {
		sw_cli_print_note("the controller at %s does not answer; waiting for it", sw_client_place(client));
		patience->told = true;
	}
	pause_ms(patience->pause_ms);
	patience->pause_ms = 2 * patience->pause_ms < PAUSE_MOST_MS ? 2 * patience->pause_ms : PAUSE_MOST_MS;
	sw_err_clear(err);
	return sw_cli_interrupted() == 0;
}

/* ---- events */

struct watch {
	uint64_t job;
	char *line;
	size_t size;
	bool changed; /* look anew */
};

/* "data: {...}" of server-sent events, each on one line. */
static void take_line(struct watch *watch)
{
	if (watch->size < 5 || strncmp(watch->line, "data:", 5) != 0)
		return;
	SW_JSON *event = json_loadb(watch->line + 5, watch->size - 5, 0, NULL);
	const json_t *job = json_object_get(event, "job");
	bool mine = (uint64_t)sw_cli_number(job, "id", 0) == watch->job;
	watch->changed = watch->changed || (mine && sw_cli_job_ended(job)) || strcmp(sw_cli_text(event, "kind", ""), "reset") == 0;
}

static bool take_events(void *user, const char *bytes, size_t size)
{
	struct watch *watch = user;
	while (size > 0) {
		const char *end = memchr(bytes, '\n', size);
		size_t part = end != NULL ? (size_t)(end - bytes) : size;
		char *grown = watch->size + part < ((size_t)1 << 20) ? realloc(watch->line, watch->size + part + 1) : NULL;
		if (grown == NULL) {
			watch->changed = true;
			return false;
		}
		memcpy(grown + watch->size, bytes, part);
		watch->line = grown;
		watch->size += part;
		if (end != NULL) {
			take_line(watch);
			watch->size = 0;
			part++;
		}
		bytes += part;
		size -= part;
	}
	return !watch->changed;
}

/* One look, and if the job has not ended, a wait for something to happen to it. */
static int look_and_watch(struct sw_client *client, uint64_t id, json_t **ret_job, struct sw_err *err)
{
	SW_JSON *cluster = NULL, *job = NULL;
	/* The number first: nothing that happens behind it is missed. */
	int r = sw_client_get(client, "/v1/cluster", &cluster, err);
	if (r == 0)
		r = sw_cli_get_job(client, id, &job, err);
	if (r < 0)
		return r;
	if (sw_cli_job_ended(job)) {
		*ret_job = SW_TAKE(job);
		return 0;
	}
	char path[96];
	snprintf(path, sizeof path, "/v1/events?job=%" PRIu64 "&after=%" PRId64, id, sw_cli_number(cluster, "seq", 0));
	struct watch watch = {.job = id};
	r = sw_client_stream(client, path, take_events, &watch, err);
	free(watch.line);
	return r;
}

int sw_cli_wait_job(struct sw_client *client, uint64_t id, json_t **ret_job, struct sw_err *err)
{
	struct patience patience = {0};
	json_t *job = NULL;
	sw_cli_catch_interrupts();
	while (job == NULL) {
		int r = look_and_watch(client, id, &job, err);
		if (sw_cli_interrupted() != 0) {
			json_decref(job);
			sw_err_clear(err);
			return sw_err_set(err, SW_ESTOPPED, "interrupted");
		}
		if (r == 0)
			patience = (struct patience){0};
		else if (!try_again(&patience, client, err))
			return r;
	}
	*ret_job = job;
	return 0;
}

/* ---- moves */

int sw_cli_await_job(struct sw_client *client, uint64_t id, json_t **ret_job, struct sw_err *err)
{
	struct patience patience = {0};
	SW_JSON *job = NULL;
	sw_cli_catch_interrupts();
	while (job == NULL) {
		int r = sw_cli_get_job(client, id, &job, err);
		if (sw_cli_interrupted() != 0) {
			sw_err_clear(err);
			return sw_err_set(err, SW_ESTOPPED, "interrupted");
		}
		if (r < 0 && !try_again(&patience, client, err))
			return r;
	}
	*ret_job = SW_TAKE(job);
	return 0;
}

int sw_cli_wait_move(struct sw_client *client, uint64_t id, json_t **job, struct sw_err *err)
{
	while (json_is_true(json_object_get(*job, "moving"))) {
		json_t *now = NULL;
		pause_ms(LOOK_MS);
		int r = sw_cli_await_job(client, id, &now, err);
		if (r < 0)
			return r;
		json_decref(*job);
		*job = now;
	}
	return 0;
}

/* ---- logs */

static bool take_log(void *user, const char *bytes, size_t size)
{
	int64_t *offset = user;
	*offset += (int64_t)size;
	return fwrite(bytes, 1, size, stdout) == size && fflush(stdout) == 0;
}

int sw_cli_copy_log(struct sw_client *client, uint64_t id, const char *query, bool follow, int64_t *offset, struct sw_err *err)
{
	struct patience patience = {0};
	sw_cli_catch_interrupts();
	for (;;) {
		char path[256];
		int64_t before = *offset;
		snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/logs?%soffset=%" PRId64 "%s", id, query, *offset,
			 follow ? "&follow=true" : "");
		int r = sw_client_stream(client, path, take_log, offset, err);
		if (sw_cli_interrupted() != 0) {
			sw_err_clear(err);
			return sw_err_set(err, SW_ESTOPPED, "interrupted");
		}
		if (r == 0)
			return 0;
		if (*offset != before)
			patience = (struct patience){0};
		if (!follow || !try_again(&patience, client, err))
			return r;
	}
}
