/* A disk that fails on demand and can lose its power: a layer under SQLite, over the real files.
 *
 * Operations are the writes, syncs and truncations of the journal and its log, counted
 * from 1 since disk_reset().
 */
#ifndef TEST_STORE_DISK_H
#define TEST_STORE_DISK_H

#include <stdbool.h>

#include "base/rng.h"
#include "unit/store/scratch.h"

enum disk_fault {
	DISK_FULL,    /* half of a write arrives, the rest does not fit */
	DISK_EIO,     /* half of a write arrives; a sync fails and leaves open what arrived */
	DISK_NO_SYNC, /* only syncs fail */
};

/* Puts the layer under every journal that is opened from now on. */
void disk_install(void);
/* No faults, nothing watched or remembered. */
void disk_reset(void);
/* The fault happens at operation `at`, or at the first one behind it that it can hit; if it
 * lasts, until disk_repair(). */
void disk_break(enum disk_fault fault, unsigned at, bool lasts);
void disk_repair(void);
/* Whether the fault has happened. */
bool disk_has_failed(void);

/* Called before each operation on the watched journal. */
typedef void disk_hook_fn(unsigned operation);
/* Remembers what is synced and what is not of the journal there, which does not exist yet. */
void disk_watch(const struct scratch *scratch, disk_hook_fn *hook);
/* Writes into `to` what the disk could hold after a power cut at this moment: all that was synced,
 * and of the rest any sectors. */
void disk_cut_power(const struct scratch *to, struct sw_rng *rng);

#endif
