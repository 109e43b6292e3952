/* Nodes that a policy switches off and on: which are off, and when those that were switched on are
 * up. A node that is off may break, which is noticed once it is switched on.
 */
#ifndef SW_SIM_BOOTS_H
#define SW_SIM_BOOTS_H

#include <stdbool.h>
#include <stdint.h>

struct sw_boots;

int sw_boots_new(uint32_t nodes, int64_t boot_ns, struct sw_boots **ret_boots);
void sw_boots_free(struct sw_boots *boots);

void sw_boots_switch(struct sw_boots *boots, uint32_t node, bool on, int64_t now);
/* A node breaks, or is repaired (`up`). Whether that is seen from outside. */
bool sw_boots_passes_fault(struct sw_boots *boots, uint32_t node, bool up);
/* When the next node is up; INT64_MAX: none boots. */
int64_t sw_boots_next(const struct sw_boots *boots);
/* A node that is up at or before `now`; false when there is no more. Call until then. */
bool sw_boots_take(struct sw_boots *boots, int64_t now, uint32_t *ret_node);

#endif
