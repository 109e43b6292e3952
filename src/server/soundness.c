/* Checks of the state while the controller runs. A pass over the whole state: for tests and for
 * finding a fault, not for a large cluster at work.
 *
 * A state that is not sound is said and not repaired. The controller goes on, since its jobs do,
 * and the journal holds what led to it.
 */
#include "server/soundness.h"

#include <inttypes.h>

#include "server/state.h"

void sw_server_validate_after(struct sw_server *server, uint64_t seq)
{
	struct sw_err err = {0};
	if (server->options->validate_every == 0 || ++server->applied_since_validated < server->options->validate_every)
		return;
	server->applied_since_validated = 0;
	if (sw_brain_validate(server->brain, &err) == 0)
		return;
	sw_server_note(server,
		       SW_UNSOUND " after record %" PRIu64
				  " of the journal: %s%s%s. Jobs are not touched by this. Keep a copy of the journal "
				  "('sharewell journal backup') and report it.",
		       seq, err.fact, err.detail[0] != '\0' ? ": " : "", err.detail);
}
