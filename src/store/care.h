/* Taking care of a journal that no process has open: checking, repairing, copying and putting back.
 *
 * Invariants:
 *  1. Checking changes nothing, not even the write-ahead log of a damaged file.
 *  2. A repair and a restore keep the old files under another name, and put the new one in place at
 *     one stroke (swap.c). Killed at any moment, they leave the old journal or the new one, and a
 *     disk that is full leaves the old one.
 *  3. What is lost is said. Records that cannot be read are set aside under their numbers; nothing
 *     is taken to be there that is not.
 *  4. Numbers that were given out are not given again: the new file knows those of the mark, or
 *     that it does not know them.
 */
#ifndef SW_STORE_CARE_H
#define SW_STORE_CARE_H

#include "store/journal.h"

#define SW_JOURNAL_SHOWN 20u

struct sw_journal_report {
	uint64_t bytes;				     /* of the file and its log */
	uint64_t first, last;			     /* numbers of the records; 0: there is none */
	uint64_t records;			     /* that can be read */
	uint64_t bad_count;			     /* that cannot be, or do not match their checksum */
	struct sw_journal_bad bad[SW_JOURNAL_SHOWN]; /* the first of them */
	uint64_t lost;				     /* behind the last one: the mark knows of them */
	uint64_t aside;				     /* were set aside before */
	uint32_t snapshots, snapshots_bad;
	uint64_t snapshot; /* the last record that the last good one covers; 0: none */
	bool usable;	   /* all that is needed for a start is there, or can be repaired */
	char damage[240];  /* of the file itself; "" */
	char mark[120];	   /* what is amiss with it; "" */
	bool sound;	   /* nothing is amiss */
	char kept[512];	   /* where a repair or a restore keeps the old file; "" */
	uint64_t floor;	   /* numbers go on above this one; 0: as they were */
	bool unsure;	   /* numbers go on with a gap, since nothing tells which were given out */
};

/* Called now and then. False: stop (SW_ESTOPPED). */
typedef bool sw_journal_progress_fn(void *user, uint64_t done, uint64_t total);
struct sw_journal_care {
	sw_journal_progress_fn *progress; /* NULL: it is not watched */
	void *user;
};

/* SW_ENOTFOUND: there is none. SW_EINPUT: it is no journal, or nothing of it can be read. */
int sw_journal_check(const char *path, const struct sw_journal_care *care, struct sw_journal_report *ret_report, struct sw_err *err);
/* Writes a new file of all that can be read. Where nothing is amiss, nothing is done. */
int sw_journal_repair(const char *path, const struct sw_journal_care *care, struct sw_journal_report *ret_report, struct sw_err *err);
/* A copy that can be put back, under a name that does not exist yet. Of a
 * damaged journal: SW_EINPUT. */
int sw_journal_copy(const char *path, const char *to, const struct sw_journal_care *care, struct sw_err *err);
/* Puts a copy in place of the journal. Where there is one already: SW_EINPUT, unless `force`. */
int sw_journal_restore(const char *copy, const char *path, bool force, const struct sw_journal_care *care,
		       struct sw_journal_report *ret_report, struct sw_err *err);

#endif
