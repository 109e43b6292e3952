/* Why a job does not run, told on standard error to the user that follows it: once for each reason.
 *
 *	sw_cli_waiting_tell(client, controller, id, &waiting, err);	before copying or waiting
 *	sw_cli_waiting_release(&waiting);				after that
 *
 * Where nothing but the end of a job is waited for, sw_cli_waiting_wait() is all of this.
 */
#ifndef SW_CLI_WAITING_H
#define SW_CLI_WAITING_H

#include "client/client.h"

struct sw_cli_waiting {
	struct sw_client *busy;	  /* with what lasts */
	struct sw_client *client; /* its own */
	uint64_t id;
	int64_t next_ms;
	/* what tells the last reason from others; it stays while the job runs, since one that
	 * takes turns waits often */
	char told[512];
	bool says_runs; /* when it does: that it waits was told last */
};

/* `controller` is where the client came from. `waiting` stays where it is until it is released. */
int sw_cli_waiting_tell(struct sw_client *client, const char *controller, uint64_t id, struct sw_cli_waiting *waiting, struct sw_err *err);
void sw_cli_waiting_release(struct sw_cli_waiting *waiting);

/* Waits until the job has ended, as sw_cli_wait_job() does, and tells meanwhile. */
int sw_cli_waiting_wait(struct sw_client *client, const char *controller, uint64_t id, json_t **ret_job, struct sw_err *err);

#endif
