/* The shares of one user on one machine: the pages in a folder, coordinated without a daemon.
 *
 * A process that keeps a share calls sw_share_folder_tick() every now and then. One of them decides
 * for all: the one that holds the folder's lock, which the kernel gives to another when it is gone.
 * It looks at every page, asks sw_coordinate() for each GPU, and writes the orders into the pages.
 *
 * Invariants:
 *  1. one decides at a time; what it has learnt is lost with it, what it has
 *     ordered stands in the pages;
 *  2. pages whose keeper is gone are left alone: their jobs go on as they were last told;
 *  3. whatever a program does to its page, the others are coordinated.
 */
#ifndef SW_SHARE_FOLDER_H
#define SW_SHARE_FOLDER_H

#include "base/cleanup.h"
#include "base/error.h"
#include "share/page.h"

#define SW_SHARE_TICK_NS INT64_C(100000000)

/* Held by the process that makes, changes or removes shares, and while decisions are made: so that
 * these are about what is there. -1: it cannot be had. */
int sw_share_folder_lock(const char *path, bool wait);
void sw_share_folder_unlock(int lock);

struct sw_share_folder;

/* Memory of a GPU, as its driver says. */
struct sw_share_memory {
	uint8_t uuid[16];
	uint64_t capacity_bytes; /* 0: not known, and not coordinated */
	uint64_t used_bytes;	 /* by any process */
	bool fresh;		 /* it was asked just now; else the last answer is given again */
};

int sw_share_folder_new(const char *path, struct sw_share_folder **ret_folder, struct sw_err *err);
void sw_share_folder_free(struct sw_share_folder *folder);
SW_DEFINE_FREEP(struct sw_share_folder, sw_share_folder_free)

/* Whether this one decides; tries to become the one. */
bool sw_share_folder_leads(struct sw_share_folder *folder);
/* Lets another decide: before standing still for long. */
void sw_share_folder_stand_back(struct sw_share_folder *folder);
/* Decides about these GPUs (at most SW_PAGE_GPUS, always in the same order). It does so if this is
 * the one and no other process makes or changes shares just now. */
void sw_share_folder_tick(struct sw_share_folder *folder, const struct sw_share_memory *memories, size_t count, int64_t now_ns);

#endif
