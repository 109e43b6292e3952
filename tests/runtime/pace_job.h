/* Jobs whose time on the GPU is looked at, and neighbours that there are only on paper. */
#ifndef TEST_RUNTIME_PACE_JOB_H
#define TEST_RUNTIME_PACE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/job.h"

/* Any wish makes the processes look again. */
void hear_again(void);
/* Whether there is something to hear. */
bool heard(int socket);
void rest(int64_t for_ns);
/* In a job: kernels of 1 ms, one after the other, until it hears something. */
void spin(int socket);
/* Until nothing is done on the GPU any more: what was given before may still run. */
uint64_t wait_for_silence(void);
/* The place of a job's process in its page. */
const struct sw_page_slot *slot_of(const struct sw_page *shared, const struct job *job);
/* To which the job yields from now on: what it says of itself is the test's to write. */
struct sw_page_slot *make_neighbour(const char *name, struct sw_share_page **ret_page);

#endif
