/* One owner for a file: an advisory lock on a small file beside it, which the kernel
 * drops when the owner dies.
 *
 * The lock file stays after release; removing it could give two processes a lock on two
 * files of the same name.
 */
#ifndef SW_STORE_LOCK_H
#define SW_STORE_LOCK_H

#include "base/error.h"

/* Takes the lock at `path`, made with mode 0600, or fails naming the process that has it. Waits, a
 * second at most, only for a holder that is already dead. Its memory may still be on its way out,
 * or a child of it between fork and exec. The close() of *ret_fd gives the lock back. */
int sw_lock_take(const char *path, int *ret_fd, struct sw_err *err);

#endif
