/* What this process holds on each GPU, in its slot of the job's page, against the job's limit. */
#ifndef SW_RUNTIME_ACCOUNT_H
#define SW_RUNTIME_ACCOUNT_H

#include <sharewell/runtime.h>
#include <stdbool.h>
#include <stddef.h>

#include "cuda/driver.h"

extern struct sw_page *sw_page;	     /* NULL: no coordinator, nothing is limited or moved */
extern struct sw_page_slot *sw_slot; /* ours in it */
extern struct sw_page_slot *sw_told; /* where we tell others when we work: in a file of its own (SW_PAGE_TOLD), or in our slot */

/* Maps the page that the environment names and takes a slot; false: there is
 * none, or no slot is left. */
bool sw_account_open(void);
/* After fork(): the page is the parent's. */
void sw_account_forget(void);

/* Whether there is a coordinator that says that it lives. Also whether there was one, and is none
 * any more. One that never said so is not missed. */
bool sw_account_is_coordinated(void);
bool sw_account_is_deserted(void);

/* Number of the device's GPU in the page; -1: it is not one of the job's, and is not counted. */
int sw_account_gpu(CUdevice device);
/* Whose figures a process without a slot may read too: before cuInit(), or one that never uses the
 * driver. NULL: there is no page. */
const struct sw_page *sw_account_peek(void);
/* What all processes of the job hold there. */
uint64_t sw_account_held(const struct sw_page *page, uint32_t gpu);
/* Where the page lies; false: not known. */
bool sw_account_path(char *path, size_t size);
/* For a measurement that no other process of the job disturbs; false: one is at it. */
bool sw_account_lock(void);
void sw_account_unlock(void);
/* The limit of the job there less what all of its processes hold; SW_PAGE_NO_LIMIT. */
uint64_t sw_account_room(int gpu);
uint64_t sw_account_limit(int gpu);
/* Takes the bytes if the limit allows it, counting all processes of the job; `fixed`: they cannot
 * be moved. No peak yet: what they are for may fail. */
bool sw_account_take(int gpu, size_t bytes, bool fixed);
/* Takes them in any case: they are there already. */
void sw_account_note(int gpu, size_t bytes, bool fixed);
void sw_account_give(int gpu, size_t bytes, bool fixed);
/* What is held now is held. Called by the thread that has got memory, at the end of its call, or
 * has moved it, before the gate is opened. */
void sw_account_raise_peaks(void);
/* Host memory for contents, against the job's budget. */
bool sw_account_take_host(int gpu, size_t bytes);
void sw_account_give_host(int gpu, size_t bytes);
uint64_t sw_account_host_room(void);

#endif
