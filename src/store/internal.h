/* What the files of this folder share; no other file includes it. */
#ifndef SW_STORE_INTERNAL_H
#define SW_STORE_INTERNAL_H

#include <sqlite3.h>

#include "store/journal.h"
#include "store/mark.h"

/* "SWJL": tells our files from other SQLite databases. */
#define SW_JOURNAL_APPLICATION 0x53574a4c

/* Statements that are prepared once and kept; their text is in sql.c. */
enum sw_sql {
	SW_SQL_BEGIN,
	SW_SQL_COMMIT,
	SW_SQL_ROLLBACK,
	SW_SQL_APPEND,
	SW_SQL_REPLAY,
	SW_SQL_WHEN,
	SW_SQL_PRUNE,
	SW_SQL_BOUNDS,
	SW_SQL_SNAPSHOT_PART,
	SW_SQL_SNAPSHOT_SWITCH,
	SW_SQL_SNAPSHOT_DROP,
	SW_SQL_SNAPSHOT_STALE,
	SW_SQL_SNAPSHOT_HEAD,
	SW_SQL_SNAPSHOT_BODY,
	SW_SQL_SNAPSHOT_FALL_BACK,
	SW_SQL_ASIDE_PUT,
	SW_SQL_ASIDE_TAKE_OUT,
	SW_SQL_ASIDE_COUNT,
	SW_SQL_ASIDE_LIST,
	SW_SQL_ASIDE_FORGET,
	SW_SQL_META_SET,
	SW_SQL_PAST_PUT,
	SW_SQL_PAST_COUNT,
	SW_SQL_PAST_COUNTS,
	SW_SQL_PAST_FIND,
	SW_SQL_PAST_UP,
	SW_SQL_PAST_DOWN,
	SW_SQL_PAST_UP_USER,
	SW_SQL_PAST_DOWN_USER,
	SW_SQL_PAST_SINCE,
	SW_SQL_PAST_OLDEST,
	SW_SQL_PAST_REMOVE,
	SW_SQL_BLOB_PUT,
	SW_SQL_BLOB_GET,
	SW_SQL_BLOB_LIST,
	SW_SQL_BLOB_REMOVE,
	SW_SQL_COUNT,
};

/* A snapshot on its way into the journal. */
struct sw_snapshot_writer {
	unsigned char *bytes;
	size_t size;
	size_t done;
	uint64_t seq;
	int64_t id;
	int64_t part;
	bool active;
};

struct sw_journal {
	sqlite3 *db;
	sqlite3_stmt *sql[SW_SQL_COUNT];
	char *path;
	int lock_fd;
	struct sw_mark mark;
	uint64_t id; /* which journal it is */
	/* Of what is committed. */
	uint64_t first_seq;
	uint64_t last_seq;
	uint64_t snapshot_seq;
	int64_t snapshot_id;	  /* 0: none */
	uint64_t older_seq;	  /* of the snapshot before */
	int64_t older_id;	  /* 0: none */
	int64_t last_snapshot_id; /* also of those that were given up */
	uint64_t asides;
	uint64_t floor; /* no number up to this one may be given again */
	bool unsure;	/* numbers above all that is known here may have been given */
	/* The batch. A doomed one is rolled back already and only counts what is lost with it. */
	uint64_t pending;
	bool in_batch;
	struct sw_err doom; /* code 0: not doomed */
	char news[480];	    /* what the operator must hear about the opening; "" */
	bool replaying;
	struct sw_snapshot_writer writer;
};

/* Prepares all statements; SQLITE_OK or SQLite's extended code. */
int sw_sql_prepare(struct sw_journal *journal);
/* Runs one that gives no rows, then forgets its arguments; SQLITE_DONE or
 * SQLite's extended code. */
int sw_sql_run(struct sw_journal *journal, enum sw_sql which);
/* Ends a transaction that failed with `rc`, so that nothing of it comes back, not even after a
 * crash. False where the disk does not let it promise that. */
bool sw_sql_roll_back(struct sw_journal *journal, int rc);

/* Sets the fact, and as detail and hint what SQLite's extended code means here: the disk is full,
 * the file is damaged, ...; returns our code. */
int sw_journal_fail(const struct sw_journal *journal, int rc, struct sw_err *err, const char *fact_fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The journal contradicts itself; the words say how. */
int sw_journal_damaged(const struct sw_journal *journal, struct sw_err *err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* SW_EBUG, with the words, when a batch or a replay is under way; 0 otherwise. `verb` is what
 * cannot be done meanwhile. */
int sw_journal_must_rest(const struct sw_journal *journal, const char *verb, struct sw_err *err);

/* Begins a batch where there is none; its code where that is doomed. */
int sw_journal_open_batch(struct sw_journal *journal);
/* Rolls the batch back and remembers why, for the commit that will come; returns our code. */
int sw_journal_doom(struct sw_journal *journal, int rc);

/* The statements that make a file what this program writes, from a new one (`from_format` 0) or an
 * older format on; SQLITE_OK or SQLite's code. */
int sw_journal_upgrade(sqlite3 *db, int64_t from_format);
/* "<journal><suffix>"; NULL: out of memory. */
char *sw_journal_beside(const struct sw_journal *journal, const char *suffix);
/* Where a repair or a restore was cut short after its new file was complete: puts that file in
 * place. Under the lock. */
int sw_journal_finish_swap(const struct sw_journal *journal, struct sw_err *err);

/* Learns the ids and numbers of the last two snapshots, and the size of the last. */
int sw_snapshot_find(struct sw_journal *journal, size_t *ret_size, struct sw_err *err);
/* Whether each of these records was set aside, so that none of them is missing. */
bool sw_aside_covers(struct sw_journal *journal, uint64_t from_seq, uint64_t to_seq);
/* Forgets the snapshot that is on its way. */
void sw_snapshot_give_up(struct sw_journal *journal);

#endif
