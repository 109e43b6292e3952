/* From the journal to the state, and records that cannot be applied. */
#ifndef SW_SERVER_RECOVER_H
#define SW_SERVER_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "store/journal.h"

struct sw_server;

struct sw_recovery {
	SW_VEC(struct sw_journal_bad) bad; /* records that were passed over and are not set aside in the journal yet, in order */
};
/* The state of the journal: the last snapshot, and the records behind it. */
int sw_recover_start(struct sw_server *server, struct sw_err *err);
void sw_recover_stop(struct sw_server *server);
/* Record `seq` could not be applied: `code` is what sw_brain_apply() returned, `why` says the
 * reason. True: the state is sound again, as if the record had not been there. */
bool sw_recover_from(struct sw_server *server, uint64_t seq, int code, const struct sw_err *why);
/* Sets aside in the journal what was passed over. Not in the middle of a request. */
void sw_recover_set_aside(struct sw_server *server);

#endif
