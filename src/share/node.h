/* The host memory that contents of GPUs may take on this machine, all programs together: its ledger (struct sw_host_ledger), which the GPU runtime of each process keeps.
 *
 * It belongs to nobody: whoever needs it first makes it, in memory, for all users. Where it cannot be had, programs go without: then only what the machine has available
 * bounds them.
 */
#ifndef SW_SHARE_NODE_H
#define SW_SHARE_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "share/page.h"

#define SW_SHARE_NODE_ENV "SHAREWELL_HOST_LEDGER" /* its path, if it is not the usual one */

/* Where it is, or would be. */
const char *sw_share_node_path(void);
/* Makes it if it is not there, and tells the job of this page where it is. Before the job's first process starts. */
void sw_share_node_join(struct sw_share_page *page);
/* States the bound; 0: half of what the machine, or the container, has. False: there is no ledger. */
bool sw_share_node_limit(uint64_t most_bytes);
/* What all hold and the bound. Also strikes out processes that are gone. False: there is no ledger. */
bool sw_share_node_look(uint64_t *ret_used, uint64_t *ret_most);

#endif
