/* Checks of the state while the controller runs: --validate-every. */
#ifndef SW_SERVER_SOUNDNESS_H
#define SW_SERVER_SOUNDNESS_H

#include <stdint.h>

struct sw_server;

/* What a note about a state that is not sound begins with. */
#define SW_UNSOUND "THE STATE IS NOT SOUND"

/* A record was applied, under this number. After every so many as the options say, everything that
 * the brain and its engine keep is derived anew and compared. The operator is told what is
 * wrong. */
void sw_server_validate_after(struct sw_server *server, uint64_t seq);

#endif
