/* How long the machine runs already (CLOCK_MONOTONIC): for spans and deadlines, whatever is done to
 * the clock on the wall. */
#ifndef SW_CLI_UPTIME_H
#define SW_CLI_UPTIME_H

#include <stdint.h>

int64_t sw_cli_uptime_ns(void);
int64_t sw_cli_uptime_ms(void);

#endif
