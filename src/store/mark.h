/* The mark: a small file beside the journal that remembers how far the journal had come.
 *
 * SQLite takes a write-ahead log that is missing or damaged for one that is short, and goes on
 * without the records in it. The mark lies in a file of its own. Whatever becomes of the database
 * or its log, the next start can tell that records are missing.
 *
 * Invariants:
 *  1. The mark is never ahead of what is durable: it is written after the commit that it speaks of.
 *  2. After the death of the process it is exact. After a power cut it may be behind, by what the
 *     system had not written yet: no sync is paid for with each commit.
 *  3. It has two places that are written in turn, each with a checksum: a torn write
 *     leaves the one before.
 *  4. Its space is taken when it is made: a disk that is full later does not stop it.
 */
#ifndef SW_STORE_MARK_H
#define SW_STORE_MARK_H

#include <stdbool.h>
#include <stdint.h>

struct sw_mark {
	uint64_t id;   /* of the journal */
	uint64_t seq;  /* of its last record */
	uint64_t high; /* the highest number that its owner gave out */
	bool open;     /* a process has it open, or died so */
	/* Of the file. */
	uint64_t turn; /* how often it was written */
	int fd;	       /* -1: it cannot be written */
	int error;     /* errno of the last try that failed; 0: none did */
};

enum sw_mark_found {
	SW_MARK_FOUND = 0,
	SW_MARK_MISSING,
	SW_MARK_DAMAGED,
};

/* Reads the mark at `path`. `fd` stays closed. */
enum sw_mark_found sw_mark_read(const char *path, struct sw_mark *ret_mark);
/* Opens the file for writing and makes it where it is missing; `mark->error` says
 * why where it cannot be. */
void sw_mark_open(const char *path, struct sw_mark *mark);
/* Writes what the struct says. 0, or `mark->error` is set. */
int sw_mark_write(struct sw_mark *mark);
void sw_mark_sync(struct sw_mark *mark);
void sw_mark_close(struct sw_mark *mark);

#endif
