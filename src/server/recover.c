/* From the journal to the state: the last snapshot that can be used, the records behind it, and
 * what cannot be applied.
 *
 * A record that does not fit is passed over and set aside in the journal, with the reason. So each
 * later start gives the same state. One that came half of the way has spoiled the state: it is made
 * anew from the snapshot, without that record. This is so at the start and while the controller
 * runs.
 *
 * Invariants:
 *  1. the state after a record that was passed over is that of a journal without it;
 *  2. records are set aside after the request that they belong to was applied whole, all of them
 *     together. A start never sees the members of an array without its first;
 *  3. what is no fault of the record (memory, a policy that is missing, a newer version) sets
 *     nothing aside. The controller ends, or does not start.
 */
#include <inttypes.h>
#include <string.h>

#include "base/now.h"
#include "base/number.h"
#include "server/devices.h"
#include "server/events.h"
#include "server/past.h"
#include "server/recover.h"
#include "server/snapshots.h"
#include "server/state.h"
#include "server/views.h"
#include "server/world.h"

#define NUMBERS_GAP UINT64_C(100000) /* where nothing tells which were given out */
#define BAD_MAX 100000u		     /* then something else is wrong */

static int pass_over(struct sw_server *server, uint64_t seq, const struct sw_err *why)
{
	struct sw_journal_bad *bad = server->recovery.bad.count < BAD_MAX ? sw_vec_push(&server->recovery.bad) : NULL;
	if (bad == NULL)
		return SW_ENOMEM;
	bad->seq = seq;
	snprintf(bad->reason, sizeof bad->reason, "%.100s%s%.130s", why->fact, why->detail[0] != '\0' ? ": " : "", why->detail);
	return 0;
}

struct replay {
	struct sw_server *server;
	uint64_t until; /* the last record */
	size_t next;	/* of the records that are passed over */
	bool starts;	/* watchers and figures are told */
	bool again;	/* the state was spoiled: once more, without the record that did it */
	struct sw_err err;
};

static bool is_passed_over(struct replay *replay, uint64_t seq)
{
	const struct sw_recovery *recovery = &replay->server->recovery;
	while (replay->next < recovery->bad.count && recovery->bad.items[replay->next].seq < seq)
		replay->next++;
	return replay->next < recovery->bad.count && recovery->bad.items[replay->next].seq == seq;
}

/* 0: applied or passed over. */
static int replay_one(struct replay *replay, uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size, uint64_t *ret_job)
{
	struct sw_server *server = replay->server;
	struct sw_err err = {0};
	if (is_passed_over(replay, seq)) {
		sw_brain_pass_over(server->brain, (enum sw_record_kind)kind, bytes, size);
		return 0;
	}
	int r = sw_brain_apply(server->brain, at_ns, (enum sw_record_kind)kind, bytes, size, ret_job, &err);
	if (r == 0)
		return 0;
	if (r != SW_EINPUT && r != SW_EBUG) {
		sw_err_set(&replay->err, r, "record %" PRIu64 " of the journal cannot be applied", seq);
		sw_err_detail(&replay->err, "%s%s%s", err.fact, err.detail[0] != '\0' ? ": " : "", err.detail);
		sw_err_hint(&replay->err, "%s", err.hint[0] != '\0' ? err.hint : "It may have been written by a newer version.");
		return r;
	}
	if (pass_over(server, seq, &err) < 0)
		return sw_err_set(&replay->err, SW_ELIMIT, "too many records of the journal cannot be applied");
	replay->again = r == SW_EBUG;
	return r == SW_EBUG ? r : 0;
}

static int replay_record(void *user, uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size)
{
	struct replay *replay = user;
	struct sw_server *server = replay->server;
	uint64_t job = 0;
	if (seq > replay->until)
		return 1; /* enough */
	int r = replay_one(replay, seq, at_ns, kind, bytes, size, &job);
	if (r < 0 || !replay->starts)
		return r;
	if (is_passed_over(replay, seq))
		kind = SW_RECORD_WAKE; /* for watchers, which count the records */
	if (seq + server->events.size > sw_journal_last_seq(server->journal))
		sw_events_note(server, seq, at_ns, (enum sw_record_kind)kind, bytes, size, job);
	server->clock.last_ns = at_ns;
	server->batch.applied_seq = seq;
	server->snapshots.bytes_since += size;
	server->replayed++;
	return 0;
}

static const char *name_user(void *context, uint32_t uid)
{
	return sw_user_name(context, uid);
}

static struct sw_brain_config brain_config(struct sw_server *server)
{
	const struct sw_controller_options *options = server->options;
	return (struct sw_brain_config){
		.policy = options->policy != NULL ? options->policy : "sharewell",
		.placement = options->placement != NULL ? options->placement : "pack",
		.plugin = options->plugin,
		.seed = options->seed,
		.silence_ns = options->silence_ns > 0 ? options->silence_ns : 30 * SW_NS_PER_S,
		.silence_margin_ns = 5 * SW_NS_PER_S,
		.restarts = {options->restarts[0], options->restarts[1], options->restarts[2]},
		.retry_backoff_ns = options->retry_backoff_ns > 0 ? options->retry_backoff_ns : 30 * SW_NS_PER_S,
		.failures = server->failures,
		.profiles = server->profiles,
		.forgets = true,
		.keep_jobs = options->keep_jobs > 0 ? options->keep_jobs : SW_KEEP_JOBS,
		.keep_for_ns = options->keep_for_ns > 0 ? options->keep_for_ns : SW_KEEP_FOR_NS,
		.find_fate = sw_past_fate,
		.find_context = server,
		.load_text = sw_past_load_text,
		.load_context = server,
		.user_name = name_user,
		.user_context = server,
	};
}

/* Makes the brain of the records up to `until`. Ends: each round passes over one record more,
 * and they have a bound. */
static int rebuild(struct sw_server *server, uint64_t until, bool starts, struct sw_err *err)
{
	const struct sw_brain_config config = brain_config(server);
	for (;;) {
		struct replay replay = {.server = server, .until = until, .starts = starts};
		if (server->brain != NULL)
			sw_brain_free(server->brain);
		server->brain = NULL;
		server->replayed = starts ? 0 : server->replayed;
		int r = sw_snapshots_load(server, &config, err);
		if (r == 0 && starts) {
			server->batch.applied_seq = server->snapshots.seq;
			server->clock.last_ns = sw_brain_now(server->brain);
			r = sw_snapshots_recall(server, err);
		}
		if (r == 0)
			r = sw_journal_replay(server->journal, server->snapshots.seq + 1, replay_record, &replay, err);
		if (r >= 0)
			return 0;
		if (!replay.again) {
			if (err != NULL && replay.err.code != 0)
				*err = replay.err;
			return r;
		}
	}
}

/* A record of the start itself, before any client can ask. */
static int add_record(struct sw_server *server, enum sw_record_kind kind, const char *body, size_t size, struct sw_err *err)
{
	uint64_t seq;
	int64_t at_ns = sw_server_now(server);
	sw_journal_append(server->journal, at_ns, (int)kind, body, size, &seq);
	int r = sw_journal_commit(server->journal, err);
	if (r == 0)
		r = sw_brain_apply(server->brain, at_ns, kind, body, size, NULL, err);
	if (r < 0)
		return r;
	server->batch.applied_seq = sw_journal_last_seq(server->journal);
	sw_events_note(server, server->batch.applied_seq, at_ns, kind, body, size, 0);
	return 0;
}

/* Where that cannot be stored, the cluster goes on under the terms that it had. */
static void begin_world(struct sw_server *server)
{
	sw_records records = {0};
	struct sw_err err = {0};
	int r = sw_server_begin_world(server, &records, &err);
	if (r == 0 && records.count > 0)
		r = add_record(server, SW_RECORD_WORLD, records.items[0].body, records.items[0].size, &err);
	if (r < 0)
		sw_server_note(server, "the world is not in force: %s%s%s", err.fact, err.detail[0] != '\0' ? ": " : "", err.detail);
	sw_records_clear(&records);
}

/* Numbers that may have been given out and are not known here are not given again. That happens
 * where the journal was restored, repaired, or lost its mark. */
static int skip_numbers(struct sw_server *server, struct sw_err *err)
{
	uint64_t last = sw_brain_job_count(server->brain), above = sw_journal_floor(server->journal);
	bool unsure = sw_journal_is_unsure(server->journal);
	if (unsure && above < (last / NUMBERS_GAP + 1) * NUMBERS_GAP)
		above = (last / NUMBERS_GAP + 1) * NUMBERS_GAP;
	if (above > last) {
		char body[64];
		int size = snprintf(body, sizeof body, "{\"above\":%" PRIu64 "}", above);
		int r = add_record(server, SW_RECORD_NUMBERS, body, (size_t)size, err);
		if (r < 0)
			return r;
		sw_server_note(server, "job numbers go on above %" PRIu64 ", so that none is used twice", above);
	}
	return unsure ? sw_journal_set_numbers(server->journal, 0, false, err) : 0;
}

int sw_recover_start(struct sw_server *server, struct sw_err *err)
{
	const char *news = sw_journal_news(server->journal);
	if (news[0] != '\0')
		sw_server_note(server, "%s", news);
	int mark_error = sw_journal_mark_error(server->journal);
	if (mark_error != 0)
		sw_server_note(server, "the mark '%s.mark' cannot be written: %s; until it can be, a loss of records could go unnoticed",
			       server->options->journal_path, strerror(mark_error));
	int r = rebuild(server, UINT64_MAX, true, err);
	if (r < 0)
		return r;
	/* Records of nothing but those that were set aside have no time of their own. */
	if (server->batch.applied_seq < sw_journal_last_seq(server->journal))
		server->batch.applied_seq = sw_journal_last_seq(server->journal);
	sw_recover_set_aside(server);
	/* Before any record of its own: a time that cannot be must not get into the journal. */
	sw_clock_start(&server->clock, sw_now_boot_ns(), sw_now_real_ns(), server->clock.last_ns);
	server->started_at_ns = server->clock.last_ns;
	r = skip_numbers(server, err);
	if (r < 0)
		return r;
	begin_world(server);
	if (sw_journal_aside_count(server->journal) > 0)
		sw_server_note(server, "%" PRIu64 " records of the journal are set aside: 'sharewell journal check' lists them",
			       sw_journal_aside_count(server->journal));
	sw_brain_assume_answers(server->brain, sw_server_now(server));
	sw_machines_recall_all(&server->machines, server->brain);
	return 0;
}

void sw_recover_stop(struct sw_server *server)
{
	sw_vec_free(&server->recovery.bad);
}

bool sw_recover_from(struct sw_server *server, uint64_t seq, int code, const struct sw_err *why)
{
	struct sw_err err = {0};
	if (code != SW_EINPUT && code != SW_EBUG)
		return false;
	if (pass_over(server, seq, why) < 0)
		return false;
	if (code == SW_EINPUT)
		return true;
	server->figures.rebuilds++;
	if (rebuild(server, seq, false, &err) < 0) {
		sw_server_note(server, "the state could not be made anew: %s: %s", err.fact, err.detail);
		return false;
	}
	sw_brain_assume_answers(server->brain, sw_server_now(server));
	return true;
}

void sw_recover_set_aside(struct sw_server *server)
{
	struct sw_recovery *recovery = &server->recovery;
	struct sw_err err = {0};
	if (recovery->bad.count == 0)
		return;
	size_t shown = recovery->bad.count < 10 ? recovery->bad.count : 10;
	for (size_t i = 0; i < shown; i++)
		sw_server_note(server, "record %" PRIu64 " cannot be applied, and is set aside: %s", recovery->bad.items[i].seq,
			       recovery->bad.items[i].reason);
	if (recovery->bad.count > shown)
		sw_server_note(server, "and %zu more", recovery->bad.count - shown);
	/* Where this fails, the next start passes over the same records. */
	if (sw_journal_set_aside(server->journal, recovery->bad.items, recovery->bad.count, &err) < 0)
		sw_server_note(server, "%s: %s", err.fact, err.detail);
	recovery->bad.count = 0;
}
