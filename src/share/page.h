/* A job's page as its coordinator sees it: wishes in, figures out.
 *
 *	sw_share_page_new(path, uuids, count, &page, &err);	before the job's first process
 *	sw_share_page_limit(...); sw_share_page_want(...); sw_share_page_wait(...)
 *	sw_share_page_look(page, &figures);
 *	sw_share_page_close(page);				the file stays until it is removed
 */
#ifndef SW_SHARE_PAGE_H
#define SW_SHARE_PAGE_H

#include <limits.h>
#include <sharewell/runtime.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"

struct sw_share_page;

struct sw_share_gpu {
	uint64_t limit_bytes; /* SW_PAGE_NO_LIMIT */
	uint64_t charged_bytes, fixed_bytes, host_bytes;
	uint64_t wanted_bytes; /* for contexts that are waited with, since the GPU is full */
	uint64_t peak_bytes;   /* the sum of the processes' own peaks */
	/* Outside the runtime (outside.h). */
	uint32_t outside_processes;
	int32_t outside_pid;
	uint64_t outside_bytes;
};

struct sw_share_figures {
	uint32_t processes;
	uint32_t suspended; /* of them */
	uint32_t giving;    /* of those: still give host memory back that they do not need, and should not be stopped before */
	uint32_t off;	    /* of the suspended: taken off their GPUs by the driver, with all that they held there */
	uint32_t running;   /* of them; the rest is on its way */
	uint32_t gpu_count;
	uint32_t trouble; /* the worst of theirs: enum sw_page_trouble */
	bool wants_suspend;
	uint64_t launches, waits;
	uint64_t moved_bytes; /* by the last moves, all processes together */
	int64_t move_ns;      /* the longest of them */
	uint64_t iterations;  /* of the process that has the longest ones; 0: none is found */
	int64_t iteration_ns, iteration_jitter_ns;
	uint64_t floor_bytes; /* within their last iterations, on all GPUs; 0: not known */
	struct sw_share_gpu gpus[SW_PAGE_GPUS];
};

/* `uuids` as NVML writes them ("GPU-0a1b..."). Refused where the file exists. */
int sw_share_page_new(const char *path, const char *const *uuids, size_t count, struct sw_share_page **ret_page, struct sw_err *err);
/* Works on a copy and on the file by reading and writing. A job that shortens its page, which would
 * kill a process that has it mapped, hurts itself alone. What is read is as old as the last call
 * that brought it up to date. */
int sw_share_page_open(const char *path, struct sw_share_page **ret_page, struct sw_err *err);
/* Maps it: for a process that may die of the job, and that must change what a process of the job
 * changes too (deep.h). */
int sw_share_page_open_mapped(const char *path, struct sw_share_page **ret_page, struct sw_err *err);
/* The file beside a page by which a job tells jobs of other users when it works (SW_PAGE_TOLD):
 * makes it, for that user alone. */
int sw_share_page_new_told(const char *path, uid_t uid, gid_t gid, struct sw_err *err);
/* Its path; false: too long. */
bool sw_share_page_told(const char *path, char told[PATH_MAX]);
/* Says that its coordinator lives, until this page is closed; false: another one does. */
bool sw_share_page_keep(struct sw_share_page *page);
/* Brings the copy up to date; false: the job has spoilt its page. The calls
 * below do so by themselves. */
bool sw_share_page_refresh(struct sw_share_page *page);
void sw_share_page_close(struct sw_share_page *page);
SW_DEFINE_FREEP(struct sw_share_page, sw_share_page_close)

/* Limits act at once on new allocations; what is over them is moved out when the processes hear of
 * it. All state a wish, whose number they return. */
uint32_t sw_share_page_limit(struct sw_share_page *page, uint32_t gpu, uint64_t bytes);
uint32_t sw_share_page_host_budget(struct sw_share_page *page, uint64_t bytes);
uint32_t sw_share_page_want(struct sw_share_page *page, enum sw_page_want want);
/* Whether wishes from now on are met at once, and not when a process holds
 * least memory. Is no wish. */
void sw_share_page_hurry(struct sw_share_page *page, bool urgent);
/* Thousandths of the GPU's time that each process may take; 0: all; SW_PAGE_NO_SHARE: none. */
uint32_t sw_share_page_share(struct sw_share_page *page, uint32_t milli);
/* Whether it must say when it works: beside a job that yields. */
uint32_t sw_share_page_watch(struct sw_share_page *page, bool watched);
/* It works only while the jobs of these pages do not (at most SW_PAGE_NEIGHBOURS, of fewer than
 * SW_PAGE_PATH bytes); none: it yields no more. */
uint32_t sw_share_page_yield(struct sw_share_page *page, const char *const *paths, size_t count);
/* The number of that GPU in the page; -1: it is not there. */
int sw_share_page_gpu(struct sw_share_page *page, const char *uuid);
bool sw_share_page_is_met(struct sw_share_page *page, uint32_t wish);
/* The page itself, or the copy, for terms.c: a field that was stored there reaches the file by
 * sw_share_page_put(), and is told by sw_share_page_tell(). */
struct sw_page *sw_share_page_shared(struct sw_share_page *page);
void sw_share_page_put(struct sw_share_page *page, const void *field, size_t size);
/* Its file, which stays the page's. */
int sw_share_page_fd(const struct sw_share_page *page);
uint32_t sw_share_page_tell(struct sw_share_page *page);
/* Whether its coordinator lives: another process holds the lock that says so. */
bool sw_share_page_is_kept(const struct sw_share_page *page);
/* Until every process has met the wish; false: not within the time. No process at all counts as
 * met. */
bool sw_share_page_wait(struct sw_share_page *page, uint32_t wish, int64_t timeout_ns);
/* From here on no process begins to use the job's GPUs, so that it can go to others; one that would
 * waits. False: a process was about to all the time. */
bool sw_share_page_shut(struct sw_share_page *page, int64_t timeout_ns);
void sw_share_page_admit(struct sw_share_page *page);
/* Also strikes out processes that are gone. */
void sw_share_page_look(struct sw_share_page *page, struct sw_share_figures *ret_figures);

/* The UUID of a GPU as NVML writes it, as bytes. */
bool sw_share_uuid(const char *text, uint8_t ret_bytes[16]);

/* In words, for people. */
const char *sw_share_trouble(uint32_t trouble);

#endif
