/* Snapshots: the state beside the journal, so that a start need not apply every record there ever
 * was, and old records can go.
 *
 * Between two batches a child process is forked, which has the state as it is in that moment. It
 * writes the state as bytes into a file in memory and ends, while the controller goes on. The bytes
 * are read from there and go into the journal in steps, each short, with a pause after each. Where
 * no child can be had, after one that failed, and at the end, the controller makes the bytes
 * itself. The journal keeps the snapshot before as well, in case that the last one is damaged.
 * Records that both cover are removed in steps, except the last ones. Watchers that come back may
 * ask for them, and so may queries of the past (kept.c).
 *
 * Invariants:
 *  1. a snapshot is of the state after exactly the records up to its number, and never of one in
 *     the middle of a request;
 *  2. no record goes before two snapshots that cover it are committed;
 *  3. when a snapshot cannot be stored nothing is lost: the journal still has every record since
 *     the last one, and it is tried again later.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/now.h"
#include "base/number.h"
#include "server/events.h"
#include "server/loop.h"
#include "server/snapshots.h"
#include "server/state.h"

#define RECORDS_LEAST 10000u		 /* between two snapshots */
#define BYTES_LEAST ((uint64_t)64 << 20) /* or so many bytes of them */
#define PAUSE_US 1000			 /* between two steps, for requests that wait */
#define RETRY_NS (60 * SW_NS_PER_S)	 /* after one that failed */
#define READ_STEP ((size_t)2 << 20)	 /* bytes of a child's, at one go */
#define CHILD_S 600			 /* more than this, a child does not take */

/* A snapshot costs as much as the state is large, so larger ones are taken less often. Together
 * they cost no more than the records do. Jobs that have left are no part of the state. A start
 * after a kill applies as many records after the millionth job as after the first. */
static bool is_due(const struct sw_server *server)
{
	const struct sw_snapshots *snapshots = &server->snapshots;
	uint64_t records = server->batch.applied_seq - snapshots->seq;
	uint64_t least = server->options->snapshot_records > 0 ? server->options->snapshot_records : RECORDS_LEAST;
	uint64_t jobs = sw_brain_known_count(server->brain) / 2;
	uint64_t bytes = snapshots->size / 2 > BYTES_LEAST ? snapshots->size / 2 : BYTES_LEAST;
	return records > 0 && (records >= (jobs > least ? jobs : least) || snapshots->bytes_since >= bytes);
}

static bool end_child(struct sw_snapshots *snapshots);
static void drop_bytes(struct sw_snapshots *snapshots);

static void failed(struct sw_server *server, const struct sw_err *err)
{
	struct sw_snapshots *snapshots = &server->snapshots;
	snapshots->stage = SW_SNAPSHOT_NONE;
	end_child(snapshots);
	drop_bytes(snapshots);
	if (!snapshots->next_here)
		snapshots->retry_ns = sw_now_boot_ns() + RETRY_NS;
	sw_server_note(server, "%s: %s; it is tried again, and nothing is lost", err->fact, err->detail);
}

/* The state as bytes; NULL: out of memory. */
static unsigned char *encode(const struct sw_server *server, size_t *ret_size)
{
	struct sw_pack pack = {.capacity = 0};
	sw_pack_reserve(&pack, server->snapshots.size + server->snapshots.size / 8);
	sw_brain_save(server->brain, &pack);
	unsigned char *bytes = sw_pack_take(&pack, ret_size);
	sw_pack_release(&pack);
	return bytes;
}

/* Hands the state to the journal. Takes the bytes. */
static int hand_over(struct sw_server *server, unsigned char *bytes, size_t size, struct sw_err *err)
{
	struct sw_snapshots *snapshots = &server->snapshots;
	if (bytes == NULL)
		return sw_err_set(err, SW_ENOMEM, "no memory for a snapshot");
	snapshots->size = size;
	int r = sw_journal_snapshot_begin(server->journal, snapshots->taking_seq, bytes, size, err);
	if (r == 0)
		snapshots->stage = SW_SNAPSHOT_WRITES;
	return r;
}

static void mark_begun(struct sw_server *server)
{
	server->snapshots.taking_seq = server->batch.applied_seq;
	server->snapshots.bytes_since = 0;
}

/* All at one go, in this process. */
static int begin_here(struct sw_server *server, struct sw_err *err)
{
	size_t size = 0;
	mark_begun(server);
	unsigned char *bytes = encode(server, &size);
	return hand_over(server, bytes, size, err);
}

/* ---- the child */

/* Never comes back. It has no business with the journal, the clients or the
 * signals of its parent. */
static void be_child(struct sw_server *server, int file, pid_t parent)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGALRM};
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		signal(numbers[i], SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || dup2(file, STDIN_FILENO) < 0)
		_exit(1);
	/* A connection that the controller closes must not stay open here. */
	closefrom(STDIN_FILENO + 1);
	alarm(CHILD_S);
	size_t size = 0, written = 0;
	unsigned char *bytes = encode(server, &size);
	while (bytes != NULL && written < size) {
		ssize_t got = write(STDIN_FILENO, bytes + written, size - written);
		if (got <= 0)
			_exit(1);
		written += (size_t)got;
	}
	_exit(bytes != NULL ? 0 : 1);
}

/* Ends the child, if there is one. True: it had done its work. */
static bool end_child(struct sw_snapshots *snapshots)
{
	int status = 1;
	if (snapshots->child == 0)
		return false;
	pid_t child = snapshots->child;
	snapshots->child = 0;
	kill(child, SIGKILL); /* of no effect where it has ended */
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void drop_bytes(struct sw_snapshots *snapshots)
{
	if (snapshots->file > 0)
		close(snapshots->file);
	snapshots->file = 0;
	free(snapshots->bytes);
	snapshots->bytes = NULL;
	snapshots->bytes_size = snapshots->bytes_read = 0;
}

/* False: there is none to be had. */
static bool begin_child(struct sw_server *server)
{
	struct sw_snapshots *snapshots = &server->snapshots;
	pid_t parent = getpid();
	int file = memfd_create("sharewell-snapshot", MFD_CLOEXEC);
	pid_t child = file > 0 ? fork() : -1;
	if (child == 0)
		be_child(server, file, parent);
	if (child < 0) {
		if (file >= 0)
			close(file);
		return false;
	}
	mark_begun(server);
	snapshots->file = file;
	snapshots->child = child;
	snapshots->stage = SW_SNAPSHOT_COPIES;
	return true;
}

/* Looks whether the child is done, and then reads its bytes in steps. */
static int copy_step(struct sw_server *server, struct sw_err *err)
{
	struct sw_snapshots *snapshots = &server->snapshots;
	siginfo_t info = {0};
	struct stat file;
	if (snapshots->child != 0) {
		if (waitid(P_PID, (id_t)snapshots->child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0)
			return 0;
		if (!end_child(snapshots) || fstat(snapshots->file, &file) < 0) {
			snapshots->next_here = true;
			return sw_err_set(err, SW_EIO, "the process that copies the state for a snapshot failed");
		}
		snapshots->bytes_size = (size_t)file.st_size;
		snapshots->bytes = malloc(snapshots->bytes_size > 0 ? snapshots->bytes_size : 1);
		if (snapshots->bytes == NULL)
			return sw_err_set(err, SW_ENOMEM, "no memory for a snapshot");
	}
	size_t left = snapshots->bytes_size - snapshots->bytes_read;
	ssize_t got = pread(snapshots->file, snapshots->bytes + snapshots->bytes_read, left < READ_STEP ? left : READ_STEP,
			    (off_t)snapshots->bytes_read);
	if (got < 0 || (got == 0 && left > 0))
		return sw_err_set(err, SW_EIO, "cannot read the copy of the state for a snapshot");
	snapshots->bytes_read += (size_t)got;
	if (snapshots->bytes_read < snapshots->bytes_size)
		return 0;
	size_t size = snapshots->bytes_size;
	unsigned char *bytes = snapshots->bytes;
	snapshots->bytes = NULL;
	drop_bytes(snapshots);
	return hand_over(server, bytes, size, err);
}

/* ---- steps */

/* The first record that a query of the past may want. */
static int wanted_from(struct sw_server *server, uint64_t *ret_seq, struct sw_err *err)
{
	const struct sw_controller_options *options = server->options;
	uint64_t last = server->batch.applied_seq, keep = options->keep_events, young = 1;
	if (keep == 0)
		keep = options->keep_events_ns > 0 ? last : SW_KEEP_EVENTS;
	int r = 0;
	if (options->keep_events_ns > 0)
		r = sw_journal_first_since(server->journal, sw_server_now(server) - options->keep_events_ns, &young, err);
	uint64_t counted = last > keep ? last - keep + 1 : 1;
	*ret_seq = young > counted ? young : counted;
	return r;
}

/* The first record that is kept. */
static int kept_from(struct sw_server *server, uint64_t *ret_seq, struct sw_err *err)
{
	uint64_t last = server->batch.applied_seq, size = server->events.size, wanted = 1;
	uint64_t watched = last > size ? last - size + 1 : 1, covered = sw_journal_older_snapshot(server->journal);
	int r = wanted_from(server, &wanted, err);
	uint64_t from = watched < covered + 1 ? watched : covered + 1;
	*ret_seq = wanted < from ? wanted : from;
	return r;
}

static int step(struct sw_server *server, struct sw_err *err)
{
	struct sw_snapshots *snapshots = &server->snapshots;
	bool more = false;
	int r;
	if (snapshots->stage == SW_SNAPSHOT_COPIES)
		return copy_step(server, err);
	if (snapshots->stage == SW_SNAPSHOT_WRITES) {
		r = sw_journal_snapshot_step(server->journal, &more, err);
		if (r < 0 || more)
			return r;
		snapshots->seq = snapshots->taking_seq;
		snapshots->stage = SW_SNAPSHOT_PRUNES;
		server->figures.snapshots++;
		return 0;
	}
	uint64_t from = 0;
	r = kept_from(server, &from, err);
	r = r < 0 ? r : sw_journal_prune(server->journal, from, &more, err);
	if (r == 0 && !more)
		snapshots->stage = SW_SNAPSHOT_NONE;
	return r;
}

static void schedule(struct sw_server *server)
{
	/* A child takes its time. */
	const struct timeval pause = {.tv_usec = server->snapshots.child != 0 ? 10 * PAUSE_US : PAUSE_US};
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
	bool is_taken = server->snapshots.stage != SW_SNAPSHOT_COPIES && !TAILQ_EMPTY(&server->batch.storing);
	if (is_taken || sw_loop_puts_off(server, &server->snapshots.put_off)) {
		schedule(server);
		return;
	}
	int64_t start_ns = sw_now_boot_ns();
	int r = step(server, &err);
	int64_t took_ns = sw_now_boot_ns() - start_ns;
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
	if (snapshots->stage != SW_SNAPSHOT_NONE || server->batch.failing || !TAILQ_EMPTY(&server->batch.storing) ||
	    !TAILQ_EMPTY(&server->batch.stored) || !is_due(server) || sw_now_boot_ns() < snapshots->retry_ns)
		return;
	int64_t start_ns = sw_now_boot_ns();
	bool here = snapshots->next_here;
	snapshots->next_here = false;
	int r = !here && begin_child(server) ? 0 : begin_here(server, &err);
	int64_t took_ns = sw_now_boot_ns() - start_ns;
	if (took_ns > server->figures.snapshot_longest_ns)
		server->figures.snapshot_longest_ns = took_ns;
	if (r < 0)
		failed(server, &err);
	else
		schedule(server);
}

void sw_snapshots_finish(struct sw_server *server)
{
	struct sw_err err = {0};
	if (server->batch.applied_seq == server->snapshots.seq)
		return;
	/* The one that a child is at is not of the end. */
	end_child(&server->snapshots);
	drop_bytes(&server->snapshots);
	int r = begin_here(server, &err);
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
	return 0;
}

void sw_snapshots_stop(struct sw_server *server)
{
	end_child(&server->snapshots);
	drop_bytes(&server->snapshots);
	if (server->snapshots.step != NULL)
		event_free(server->snapshots.step);
}

/* ---- start */

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

/* A snapshot that is damaged costs time only: the one before takes its place, and the records
 * since then are still there. */
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

/* Records before the snapshot that are still there, for watchers that come back. Jobs are numbered
 * as they were submitted, so the last submit before the snapshot made the last job in it. */
struct recall {
	struct sw_server *server;
	uint64_t submits; /* not seen yet */
	/* the last record that let numbers go on with a gap: what was submitted before
	 * is not counted; 0: none */
	uint64_t numbers;
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
		recall->submits = kind == SW_RECORD_NUMBERS ? 0 : recall->submits + submits;
		recall->numbers = kind == SW_RECORD_NUMBERS ? seq : recall->numbers;
		return 0;
	}
	submits = submits && seq > recall->numbers;
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
