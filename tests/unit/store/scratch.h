/* A folder for one test, and records whose bytes follow from their number, so that what comes back
 * can be checked without keeping a copy. */
#ifndef TEST_STORE_SCRATCH_H
#define TEST_STORE_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

#include "store/internal.h"
#include "store/journal.h"

struct scratch {
	char folder[64];
	char path[96]; /* of the journal in it */
};

/* cmocka's setup and teardown. */
int scratch_setup(void **state);
int scratch_teardown(void **state);
/* An empty folder; the caller removes it. */
void scratch_make(struct scratch *scratch);
void scratch_remove(const struct scratch *scratch);
/* Copies the journal, its log and its mark, as they are on disk now. */
void scratch_copy(const struct scratch *from, const struct scratch *to);
/* Copies a file there, as the journal. */
void scratch_bring(const struct scratch *scratch, const char *path);

/* The record with this number: 0 to 3000 bytes, now and then 60,000. The caller frees. */
unsigned char *record_new(uint64_t seq, size_t *ret_size);
int64_t record_at(uint64_t seq);
uint32_t record_kind(uint64_t seq);

struct sw_journal *must_open(const char *path);
/* Appends `count` records behind the last; 0 or the first error. */
int append(struct sw_journal *journal, uint64_t count);
void must_commit(struct sw_journal *journal);
/* Snapshots are the record of their seq, `repeat` times. */
int write_snapshot(struct sw_journal *journal, uint64_t seq, size_t repeat, struct sw_err *err);
/* Everything in the journal is what append() and write_snapshot() wrote, and the replay
 * agrees with first and last. */
void must_be_whole(struct sw_journal *journal);
void assert_contains(const char *text, const char *part);

#endif
