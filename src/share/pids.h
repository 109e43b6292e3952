/* The numbers of a job's processes as the caller knows them: each writes its own into the page
 * as its namespace has it. */
#ifndef SW_SHARE_PIDS_H
#define SW_SHARE_PIDS_H

#include <sys/types.h>

#include "share/page.h"

/* Of the process that calls itself `pid` and has the page open; 0: there is none that can be seen
 * from here. One that may not be looked at is believed. */
pid_t sw_share_pid(struct sw_share_page *page, pid_t pid);

#endif
