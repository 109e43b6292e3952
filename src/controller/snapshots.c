/* Snapshots: the state beside the journal, so that a start need not apply every record there ever was, and old records can go.
 *
 * The brain is copied into bytes at one go, between two turns; the bytes go into the journal in steps, each short, whenever nothing else is ready. The journal keeps the
 * snapshot before as well, in case that the last one is damaged. Records that both cover are removed in steps, except the last ones, which watchers that come back may ask for.
 *
 * Invariants:
 *  1. a snapshot is of the state after exactly the records up to its number, and never of one in the middle of a request;
 *  2. no record goes before two snapshots that cover it are committed;
 *  3. when a snapshot cannot be stored nothing is lost: the journal still has every record since the last one, and it is tried again later.
 */
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "controller/server_state.h"

#define RECORDS_LEAST 10000u		 /* between two snapshots */
#define BYTES_LEAST ((uint64_t)64 << 20) /* or so many bytes of them */
#define PAUSE_US 1000			 /* between two steps, for whoever waits */
#define RETRY_NS (60 * SW_NS_PER_S)	 /* after one that failed */

/* A snapshot costs as much as the state is large, so larger ones are taken less often: together they cost no more than the records do. */
static bool is_due(const struct sw_server *server)
{
	const struct sw_snapshots *snapshots = &server->snapshots;
	uint64_t records = server->turn.applied_seq - snapshots->seq;
	uint64_t least = server->options->snapshot_records > 0 ? server->options->snapshot_records : RECORDS_LEAST;
	uint64_t jobs = sw_brain_job_count(server->brain) / 2;
	uint64_t bytes = snapshots->size / 2 > BYTES_LEAST ? snapshots->size / 2 : BYTES_LEAST;
	return records > 0 && (records >= (jobs > least ? jobs : least) || snapshots->bytes_since >= bytes);
}

static void failed(struct sw_server *server, const struct sw_err *err)
{
	struct sw_snapshots *snapshots = &server->snapshots;
	snapshots->stage = SW_SNAPSHOT_NONE;
	snapshots->retry_ns = sw_clock_boot_ns() + RETRY_NS;
	sw_server_note(server, "%s: %s; it is tried again, and nothing is lost", err->fact, err->detail);
}

/* Copies the state and hands it to the journal. */
static int begin(struct sw_server *server, struct sw_err *err)
{
	struct sw_snapshots *snapshots = &server->snapshots;
	int64_t start_ns = sw_clock_boot_ns();
	struct sw_pack pack = {.capacity = 0};
	sw_pack_reserve(&pack, snapshots->size + snapshots->size / 8);
	sw_brain_save(server->brain, &pack);
	size_t size = 0;
	unsigned char *bytes = sw_pack_take(&pack, &size);
	sw_pack_release(&pack);
	if (bytes == NULL)
		return sw_err_set(err, SW_ENOMEM, "no memory for a snapshot");
	int64_t took_ns = sw_clock_boot_ns() - start_ns;
	if (took_ns > server->figures.snapshot_longest_ns)
		server->figures.snapshot_longest_ns = took_ns;
	snapshots->size = size;
	snapshots->taking_seq = server->turn.applied_seq;
	snapshots->bytes_since = 0;
	int r = sw_journal_snapshot_begin(server->journal, snapshots->taking_seq, bytes, size, err);
	if (r == 0)
		snapshots->stage = SW_SNAPSHOT_WRITES;
	return r;
}

/* The first record that is kept. */
static uint64_t kept_from(const struct sw_server *server)
{
	uint64_t last = server->turn.applied_seq, size = server->events.size;
	uint64_t watched = last > size ? last - size + 1 : 1, covered = sw_journal_older_snapshot(server->journal);
	return watched < covered + 1 ? watched : covered + 1;
}

static int step(struct sw_server *server, struct sw_err *err)
{
	struct sw_snapshots *snapshots = &server->snapshots;
	bool more = false;
	int r;
	if (snapshots->stage == SW_SNAPSHOT_WRITES) {
		r = sw_journal_snapshot_step(server->journal, &more, err);
		if (r < 0 || more)
			return r;
		snapshots->seq = snapshots->taking_seq;
		snapshots->stage = SW_SNAPSHOT_PRUNES;
		server->figures.snapshots++;
		return 0;
	}
	r = sw_journal_prune(server->journal, kept_from(server), &more, err);
	if (r == 0 && !more)
		snapshots->stage = SW_SNAPSHOT_NONE;
	return r;
}

static void schedule(struct sw_server *server)
{
	const struct timeval pause = {.tv_usec = PAUSE_US};
	evtimer_add(server->snapshots.step, &pause);
}

static void on_step(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	struct sw_err err = {0};
	/* The journal has one transaction at a time. */
	if (!TAILQ_EMPTY(&server->turn.storing)) {
		schedule(server);
		return;
	}
	int64_t start_ns = sw_clock_boot_ns();
	int r = step(server, &err);
	int64_t took_ns = sw_clock_boot_ns() - start_ns;
	if (took_ns > server->figures.snapshot_longest_ns)
		server->figures.snapshot_longest_ns = took_ns;
	if (r < 0)
		failed(server, &err);
	else if (server->snapshots.stage != SW_SNAPSHOT_NONE)
		schedule(server);
}

void sw_snapshots_consider(struct sw_server *server)
{
	struct sw_snapshots *snapshots = &server->snapshots;
	struct sw_err err = {0};
	if (snapshots->stage != SW_SNAPSHOT_NONE || server->turn.failing || !TAILQ_EMPTY(&server->turn.storing) ||
	    !TAILQ_EMPTY(&server->turn.stored) || !is_due(server) || sw_clock_boot_ns() < snapshots->retry_ns)
		return;
	if (begin(server, &err) < 0)
		failed(server, &err);
	else
		schedule(server);
}

void sw_snapshots_finish(struct sw_server *server)
{
	struct sw_err err = {0};
	if (server->turn.applied_seq == server->snapshots.seq)
		return;
	int r = begin(server, &err);
	while (r == 0 && server->snapshots.stage != SW_SNAPSHOT_NONE)
		r = step(server, &err);
	if (r < 0)
		sw_server_note(server, "%s: %s; the next start takes longer, and nothing is lost", err.fact, err.detail);
}

int sw_snapshots_start(struct sw_server *server, struct sw_err *err)
{
	server->snapshots.step = evtimer_new(server->base, on_step, server);
	if (server->snapshots.step == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	event_priority_set(server->snapshots.step, SW_LAST);
	return 0;
}

void sw_snapshots_stop(struct sw_server *server)
{
	if (server->snapshots.step != NULL)
		event_free(server->snapshots.step);
}

/* ------------------------------------------------------------------------------------------------ start */

/* The last snapshot of the journal, as a brain; a new one where there is none. */
static int load_last(struct sw_server *server, const struct sw_brain_config *config, struct sw_err *err)
{
	struct sw_snapshots *snapshots = &server->snapshots;
	SW_CLEANUP(sw_freep) void *bytes = NULL;
	bool adopted = false;
	int r = sw_journal_snapshot_read(server->journal, &snapshots->seq, &bytes, &snapshots->size, err);
	if (r < 0)
		return r;
	if (bytes == NULL)
		return sw_brain_new(config, &server->brain, err);
	struct sw_err inner = {0};
	r = sw_brain_load(config, bytes, snapshots->size, &server->brain, &adopted, &inner);
	if (r < 0) {
		sw_err_set(err, r, "the snapshot in the journal '%s' cannot be used", server->options->journal_path);
		sw_err_detail(err, "%s%s%s", inner.fact, inner.detail[0] != '\0' ? ": " : "", inner.detail);
		if (inner.hint[0] != '\0')
			sw_err_hint(err, "%s", inner.hint);
		sw_err_hint(err,
			    "If a newer version wrote it, run that one. Otherwise put a backup in its place: 'sharewell journal restore'.");
		return r;
	}
	if (adopted)
		sw_server_note(server, "the state is of another version or configuration: policy '%s' takes over the jobs that are there",
			       sw_brain_policy(server->brain));
	return 0;
}

/* A snapshot that is damaged costs time only: the one before takes its place, and the records since then are still there. */
int sw_snapshots_load(struct sw_server *server, const struct sw_brain_config *config, struct sw_err *err)
{
	for (;;) {
		struct sw_err words = {0}, gone = {0};
		int r = load_last(server, config, &words);
		if (r == 0)
			return 0;
		if (r == SW_EINPUT && sw_journal_snapshot_fall_back(server->journal, &gone) == 0) {
			server->figures.snapshots_damaged++;
			sw_server_note(server,
				       "%s: %s; the start goes on from the one before and the records since then, and nothing is lost",
				       words.fact, words.detail);
			continue;
		}
		if (gone.code != 0)
			sw_err_detail(&words, "%s", gone.detail);
		if (err != NULL && err->code == 0)
			*err = words;
		return r;
	}
}

/* Records before the snapshot that are still there, for watchers who come back. Jobs are numbered as they were submitted, so the last submit before the snapshot made
 * the last job in it. */
struct recall {
	struct sw_server *server;
	uint64_t submits; /* not seen yet */
	bool counts;
};

static int recall_record(void *user, uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size)
{
	struct recall *recall = user;
	struct sw_server *server = recall->server;
	if (seq > server->snapshots.seq)
		return 1; /* enough */
	bool submits = kind == SW_RECORD_SUBMIT;
	if (recall->counts) {
		recall->submits += submits;
		return 0;
	}
	uint64_t job = submits ? sw_brain_job_count(server->brain) - recall->submits + 1 : 0;
	recall->submits -= submits;
	sw_events_note(server, seq, at_ns, (enum sw_record_kind)kind, bytes, size, job);
	return 0;
}

int sw_snapshots_recall(struct sw_server *server, struct sw_err *err)
{
	struct recall recall = {.server = server, .counts = true};
	uint64_t last = sw_journal_last_seq(server->journal), size = server->events.size;
	uint64_t from = last > size ? last - size + 1 : 1;
	if (from > server->snapshots.seq)
		return 0;
	for (int pass = 0; pass < 2; pass++) {
		int r = sw_journal_replay(server->journal, from, recall_record, &recall, err);
		if (r < 0)
			return r;
		recall.counts = false;
	}
	return 0;
}
