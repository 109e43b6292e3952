/* The journal: an append-only sequence of opaque records in one SQLite file, and snapshots of the
 * state that they fold into.
 *
 *	sw_journal_open(path, &journal, &err);
 *	sw_journal_snapshot_read(...);				start from what is there
 *	sw_journal_replay(journal, snapshot_seq + 1, ...);
 *	sw_journal_append(...); sw_journal_append(...);
 *	sw_journal_commit(journal, &err);			then answer the clients
 *	sw_journal_close(journal);
 *
 * What this is not: it does not know what a record means, and it has no reader beside its one
 * owner.
 *
 * Invariants:
 *  1. What a successful commit covered survives the death of the process and of the machine. What a
 *     failed or missing commit covered is not there at all: a batch is stored whole or not.
 *  2. Records are numbered 1, 2, 3, ... without gaps; pruning removes from the low end only. A
 *     record that was set aside is in no replay, and not missing either.
 *  3. A snapshot at `seq` is the state after the records up to and including `seq`. The last two
 *     are kept, and every record above the older one.
 *  4. Each record carries a checksum; one that does not match is an error that names
 *     the record, never data.
 *  5. What was acknowledged and is not there any more is noticed when the journal is opened, also
 *     where its write-ahead log was removed (mark.h).
 *  6. One process at a time holds a journal, from open to close or death. After fork() the child
 *     must exec or exit without touching it.
 *
 * Calls block for as long as the disk takes. Not thread-safe.
 */
#ifndef SW_STORE_JOURNAL_H
#define SW_STORE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

#define SW_JOURNAL_FORMAT 2 /* the newest that this program reads, and the one that it writes */
#define SW_JOURNAL_RECORD_MAX ((size_t)64 << 20)
#define SW_JOURNAL_SNAPSHOT_MAX ((size_t)1 << 30)
#define SW_JOURNAL_SNAPSHOT_STEP ((size_t)1 << 20)
#define SW_JOURNAL_PRUNE_STEP 8192 /* records */

struct sw_journal;

/* Opens, or makes (missing folders with mode 0700, files with mode 0600). Refused: a journal that
 * another process holds, one of a newer format, a damaged one, one that lacks records which it had.
 * So is a file that is something else. After a shutdown that was not orderly, what a start stands
 * on is checked first: snapshots, and the records since the older of them. */
int sw_journal_open(const char *path, struct sw_journal **ret_journal, struct sw_err *err);
/* What was appended and not committed is dropped. */
void sw_journal_close(struct sw_journal *journal);
SW_DEFINE_FREEP(struct sw_journal, sw_journal_close)

/* What the operator must hear about the opening, a sentence without a full stop; "" mostly. */
const char *sw_journal_news(const struct sw_journal *journal);

/* Adds a record to the batch, and starts one if need be. The number is final once the batch
 * is committed; after a failed commit numbers are given again. A failure other than
 * SW_ELIMIT (the record is too large; nothing else happened) dooms the batch:
 * sw_journal_commit() will fail and say why. */
int sw_journal_append(struct sw_journal *journal, int64_t at_ns, uint32_t kind, const void *bytes, size_t size, uint64_t *ret_seq);

/* Stores the batch with one fsync for all of it; an empty batch costs nothing. On failure (disk
 * full, I/O error) nothing of the batch is in the journal. The error says how many records were not
 * stored and why. The journal can be used on: append them again later. */
int sw_journal_commit(struct sw_journal *journal, struct sw_err *err);

/* Of the committed records: the number of the oldest one that is still there (one above the last
 * when there is none). And that of the last ever (0: none). */
uint64_t sw_journal_first_seq(const struct sw_journal *journal);
uint64_t sw_journal_last_seq(const struct sw_journal *journal);

/* The number of the first record that is there and was stored at this moment or later, one
 * above the last when there is none. Times must not fall with the numbers. Costs a few reads,
 * however many there are. */
int sw_journal_first_since(struct sw_journal *journal, int64_t at_ns, uint64_t *ret_seq, struct sw_err *err);

/* Called for each record; the bytes live until it returns. It must not use the journal. Other than
 * 0 ends the replay and is its result. */
typedef int sw_journal_replay_fn(void *user, uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size);
/* Calls `fn` for the committed records from `from_seq` on, in order. Not while a batch is open. */
int sw_journal_replay(struct sw_journal *journal, uint64_t from_seq, sw_journal_replay_fn *fn, void *user, struct sw_err *err);

/* Stores a snapshot in place of the one before, in steps, so that the caller is not held up for
 * long. Each call of sw_journal_snapshot_step() stores SW_JOURNAL_SNAPSHOT_STEP bytes. Call it
 * while *ret_more, between batches. Until the last step, and when a step fails, the snapshot before
 * is the one that counts; a failed one is given up. `seq` is at least that of the one before and at
 * most the last record. The journal takes `bytes`, which came from malloc(), also when it fails. */
int sw_journal_snapshot_begin(struct sw_journal *journal, uint64_t seq, void *bytes, size_t size, struct sw_err *err);
int sw_journal_snapshot_step(struct sw_journal *journal, bool *ret_more, struct sw_err *err);
/* The last snapshot; seq 0 and NULL when there is none. The caller frees *ret_bytes. */
int sw_journal_snapshot_read(struct sw_journal *journal, uint64_t *ret_seq, void **ret_bytes, size_t *ret_size, struct sw_err *err);

/* The last record that the snapshot before the last one covers; 0: there is none. */
uint64_t sw_journal_older_snapshot(const struct sw_journal *journal);
/* The last snapshot is of no use: the one before takes its place, or none, and the
 * replay begins with the records behind it. SW_ENOTFOUND: these are not there any more,
 * and nothing has changed. */
int sw_journal_snapshot_fall_back(struct sw_journal *journal, struct sw_err *err);

/* Removes records below `before_seq`, the oldest first, at most SW_JOURNAL_PRUNE_STEP of them: call
 * again while *ret_more. Refused beyond the snapshot before the last: what that does not cover is
 * needed where the last one is damaged. Not while a batch is open. */
int sw_journal_prune(struct sw_journal *journal, uint64_t before_seq, bool *ret_more, struct sw_err *err);

/* A record that cannot be used. */
struct sw_journal_bad {
	uint64_t seq;
	char reason[240];
};
/* Takes records out of the sequence for good, all of them or none: they are kept with the reason,
 * and no replay sees them. Not while a batch is open. */
int sw_journal_set_aside(struct sw_journal *journal, const struct sw_journal_bad *bad, size_t count, struct sw_err *err);
uint64_t sw_journal_aside_count(const struct sw_journal *journal);
struct sw_journal_aside {
	uint64_t seq;
	int64_t at_ns;
	uint32_t kind;
	const void *bytes; /* NULL: they could not be read */
	size_t size;
	const char *reason;
	int64_t set_at_s; /* since 1970 */
};
/* The last ones first, at most `most` of them. Other than 0 of `fn` ends it and is its result. */
typedef int sw_journal_aside_fn(void *user, const struct sw_journal_aside *aside);
int sw_journal_asides(struct sw_journal *journal, uint32_t most, sw_journal_aside_fn *fn, void *user, struct sw_err *err);

/* Numbers that the owner gives out and must never give twice, whatever becomes of the records. It
 * says so before any caller hears a number; the mark remembers the highest. */
void sw_journal_gave_out(struct sw_journal *journal, uint64_t number);
/* No number up to this one may be given again. */
uint64_t sw_journal_floor(const struct sw_journal *journal);
/* Numbers above all that the journal and its mark know may have been given: it was
 * restored without its mark. */
bool sw_journal_is_unsure(const struct sw_journal *journal);
int sw_journal_set_numbers(struct sw_journal *journal, uint64_t floor, bool unsure, struct sw_err *err);

/* errno of the last try to write the mark; 0: it is as it should be. Until then a
 * loss could go unnoticed. */
int sw_journal_mark_error(const struct sw_journal *journal);

/* A copy into the empty file `to`, while the owner goes on: call sw_journal_backup_step() while
 * *ret_more, between batches. The copy is the journal as it is at the last step; it is not synced.
 * Freed before the journal is closed. */
struct sw_journal_backup;
int sw_journal_backup_begin(struct sw_journal *journal, const char *to, struct sw_journal_backup **ret_backup, struct sw_err *err);
int sw_journal_backup_step(struct sw_journal_backup *backup, bool *ret_more, struct sw_err *err);
void sw_journal_backup_free(struct sw_journal_backup *backup);
SW_DEFINE_FREEP(struct sw_journal_backup, sw_journal_backup_free)

#endif
