/* Profiles of one's own: what was measured of programs when they ran, in one file, and the
 * profiles that follow from it.
 *
 * The file is YAML, written as a whole and replaced at once; people may read and edit it:
 *
 *	profiles:
 *	  - name: "train"
 *	    command: "python train.py"
 *	    runs:
 *	      - {wall: 61s, cores: 1.2, host_memory: 2G, iteration_time: 52ms, busy: 0.81,
 *	         floor: 900M, peak: 6G, pcie: 0.02, sm: 0.31, mem_pipe: 0.4, l2: 0.2,
 *	         dram_read: 0.25, dram_write: 0.1}
 *
 * What a run does not name was not measured in it. A figure of the profile is the median of the
 * runs that have it. What no run has is that of the built-in profile of the same name, else of the
 * default. Unless counters were read in some run, the profile is marked as estimated.
 *
 * Invariants:
 *  1. names differ, case ignored; every entry has 1 to SW_STORE_RUNS runs, the oldest first;
 *  2. of every run: wall > 0, floor <= peak, busy, pcie and what counters say <= 1, no iteration
 *     is longer than the run;
 *  3. what cannot be read is an error and is never overwritten.
 */
#ifndef SW_CONTENTION_STORE_H
#define SW_CONTENTION_STORE_H

#include "contention/profile.h"

#define SW_STORE_ENTRIES 1000u
#define SW_STORE_RUNS 9u /* of one program; the oldest go */
#define SW_STORE_NAME 80u
#define SW_STORE_COMMAND 240u

/* One run, or what several come to. 0: not measured. */
struct sw_measured {
	int64_t wall_ns;
	uint64_t cores_milli; /* of the host, on average */
	uint64_t host_bytes;  /* of its largest process, at most */
	int64_t iteration_ns; /* alone */
	uint64_t busy_milli;  /* of the time, in which the GPU had work of it */
	uint64_t floor_bytes; /* of GPU memory, in every iteration */
	uint64_t peak_bytes;  /* of GPU memory */
	uint64_t pcie_milli;  /* of what the bus carries, SW_STORE_PCIE_BYTES in a second */
	/* Of what the GPU can do at most, over all the time, by its counters: all of them, or
	 * none. */
	uint64_t sm_milli, mem_pipe_milli, l2_milli, dram_read_milli, dram_write_milli;
};
#define SW_STORE_PCIE_BYTES UINT64_C(55000000000) /* as measured on an H200, each way */

struct sw_store_entry {
	const char *name;
	const char *command; /* "": not known */
	uint32_t run_count;
	struct sw_measured runs[SW_STORE_RUNS];
};

struct sw_store;

/* A file that is not there is an empty store. */
int sw_store_load(const char *path, struct sw_store **ret_store, struct sw_err *err);
int sw_store_parse(const char *name, const char *text, size_t size, struct sw_store **ret_store, struct sw_err *err);
/* The file has all of it, or is as it was. */
int sw_store_save(const struct sw_store *store, const char *path, struct sw_err *err);
void sw_store_free(struct sw_store *store);
SW_DEFINE_FREEP(struct sw_store, sw_store_free)

/* In the order in which they came; NULL behind the last. Valid until the store changes. */
const struct sw_store_entry *sw_store_at(const struct sw_store *store, size_t index);
/* By name, case ignored, else by command; NULL: it was not measured. Either may be NULL. */
const struct sw_store_entry *sw_store_find(const struct sw_store *store, const char *name, const char *command);

/* One more run of the program of that name. Refused where its figures cannot
 * be: SW_EINPUT, and why. */
int sw_store_add(struct sw_store *store, const char *name, const char *command, const struct sw_measured *run, struct sw_err *err);
int sw_store_remove(struct sw_store *store, const char *name, struct sw_err *err);

/* The medians of its runs. */
struct sw_measured sw_store_median(const struct sw_store_entry *entry);
/* Puts the profiles of all entries over those that are there. */
int sw_store_apply(const struct sw_store *store, struct sw_profiles *profiles, struct sw_err *err);

/* How a command line is written in the store: its words with spaces between. What is not printable
 * is a '?', and it is cut off where it is too long. */
const char *sw_store_command(const char *const *words, size_t count, char text[SW_STORE_COMMAND + 1]);

#endif
