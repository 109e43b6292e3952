/* How jobs do on their GPUs. */
#ifndef SW_SERVER_USES_H
#define SW_SERVER_USES_H

#include <stdbool.h>
#include <stdint.h>

#include "api/sync.h"
#include "brain/brain.h"
#include "server/devices.h"

void sw_uses_hear(struct sw_machine *machine, const struct sw_sync *sync);
/* Whether the job's run of today is what it is about. */
bool sw_use_is_current(const struct sw_brain *brain, const struct sw_machine *machine, const struct sw_use *use);
/* All uses of a job's present run together: sums, the longest iteration, the least share, the
 * latest moment. The limit is there only where each GPU has one. False: there is none. */
bool sw_uses_sum(const sw_machines *machines, const struct sw_brain *brain, uint64_t job, struct sw_use *ret_sum);

#endif
