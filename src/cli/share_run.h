/* The program of a share: started, kept, and coordinated with the user's others
 * (src/share/folder.h) until it ends. */
#ifndef SW_CLI_SHARE_RUN_H
#define SW_CLI_SHARE_RUN_H

#include "cli/command.h"
#include "share/terms.h"

/* Returns its exit status. `host_bytes`: that its contents may take; 0: half of
 * what the machine has free. */
int sw_cli_share_run(const char *name, const struct sw_cli_texts *words, const struct sw_share_terms *terms, uint64_t host_bytes,
		     struct sw_err *err);
/* What runs this way, as a table or as JSON. */
int sw_cli_share_list(bool as_json, struct sw_err *err);

#endif
