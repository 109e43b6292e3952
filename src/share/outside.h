/* Processes of a job that use a GPU outside the runtime. The driver lists them, and the job's page
 * does not, or only with a small part of what they hold.
 *
 * A program can get at the driver past the preloaded library. It can do so with RTLD_DEEPBIND, in a
 * namespace of the linker of its own, or linked without one. It can also take LD_PRELOAD out of its
 * environment. Then no limit holds for it and it is not suspended. That cannot be prevented here,
 * but it can be seen, and said.
 */
#ifndef SW_SHARE_OUTSIDE_H
#define SW_SHARE_OUTSIDE_H

#include <sys/types.h>

#include "share/page.h"

/* Of one job on one GPU. */
struct sw_outside {
	uint32_t processes;
	uint64_t bytes; /* that they hold there; 0: the driver does not say */
	pid_t pid;	/* of one of them */
};

/* Whether a process is one of the job with this page: its environment names the page or, where it
 * names none, it descends from `root`. */
bool sw_outside_is_of(pid_t pid, pid_t root, const char *page_path);
/* One process that the driver lists on that GPU of the page, with what it holds there (0: not
 * known). It is added if it is outside the runtime. */
void sw_outside_add(struct sw_share_page *page, uint32_t gpu, pid_t pid, uint64_t bytes, struct sw_outside *outside);

/* Of the counts of two looks in a row the lower one: a process that is outside only now may be
 * ending. The first count holds as it is, so that a new sampler does not report 0 at its first
 * look. `memory` is 0 before. */
uint32_t sw_outside_steady(uint32_t *memory, uint32_t count);

/* What was found, in the page, for lists of jobs. A caller that looks twice before it calls this
 * reports no process that is just ending. */
void sw_outside_note(struct sw_share_page *page, uint32_t gpu, const struct sw_outside *outside);

#endif
