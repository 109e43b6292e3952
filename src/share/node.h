/* The host memory that contents of GPUs may take on this machine. There are ledgers (struct
 * sw_host_ledger), one per user, which the GPU runtime of each process keeps.
 *
 * A user's ledger is that user's alone: no other one can open it. Where it cannot be had, programs
 * go without: then only what the machine has available bounds them.
 * Programs of several users: what the machine has available bounds them too. An agent that has jobs
 * of several users makes their ledgers, and says in each of them what the others hold
 * (sw_share_node_balance()).
 *
 * Whatever a user writes into his own ledger, an equal part of the bound is left for each of the
 * others.
 */
#ifndef SW_SHARE_NODE_H
#define SW_SHARE_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "share/page.h"

/* Path of one's own, if it is not the usual one. Ledgers of other users that an agent makes are
 * beside it, with "-" and the user's number behind the name. */
#define SW_SHARE_NODE_ENV "SHAREWELL_HOST_LEDGER"

/* Where our own is, or would be. */
const char *sw_share_node_path(void);
/* Makes that user's ledger if it is not there, and tells the job of this page where it is.
 * Before the job's first process starts. */
void sw_share_node_join(struct sw_share_page *page, uid_t uid, gid_t gid);
/* States the bound in our own; 0: half of what the machine, or the container, has. False: there
 * is no ledger. */
bool sw_share_node_limit(uint64_t most_bytes);
/* What our own programs hold and the bound. Also strikes out processes that are gone. False:
 * there is no ledger. */
bool sw_share_node_look(uint64_t *ret_used, uint64_t *ret_most);
/* As root, the same for the programs of all users that have a ledger beside ours. It says in each
 * of them the bound, and what the others hold of it. For others as sw_share_node_look(). */
bool sw_share_node_balance(uint64_t *ret_used, uint64_t *ret_most);

#endif
