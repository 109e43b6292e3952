/* What the cluster has learned of jobs that share a GPU (slowdowns.c), in a file beside the journal
 * for people to ask: `sharewell contention --learned`. It is written at most once a minute and at
 * the end, and never read: the journal has all of it. */
#include <stdio.h>

#include "base/file.h"
#include "server/learned.h"
#include "server/state.h"

#define SAVE_S 60

static int write_file(const char *path, const char *text, struct sw_err *err)
{
	SW_CLEANUP(sw_output_discardp) struct sw_output *output = NULL;
	int r = sw_output_open(path, &output, err);
	if (r < 0)
		return r;
	fputs(text, sw_output_stream(output));
	return sw_output_commit(SW_TAKE(output), err);
}

static void save(struct sw_server *server)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	struct sw_err err = {0};
	const struct sw_learn *learn = sw_brain_learned(server->brain);
	if (server->options->slowdowns_path == NULL || sw_learn_total(learn) == server->learned.written)
		return;
	int r = sw_learn_write(learn, &text, &err);
	if (r == 0)
		r = write_file(server->options->slowdowns_path, text, &err);
	if (r < 0)
		sw_server_note(server, "measured slowdowns are not written: %s%s%s", err.fact, err.detail[0] != '\0' ? ": " : "",
			       err.detail);
	server->learned.written = sw_learn_total(learn);
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	save(server);
}

int sw_learned_start(struct sw_server *server, struct sw_err *err)
{
	server->learned.timer = event_new(server->base, -1, EV_PERSIST, on_timer, server);
	if (server->learned.timer == NULL || event_add(server->learned.timer, &(struct timeval){.tv_sec = SAVE_S}) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	return 0;
}

void sw_learned_stop(struct sw_server *server)
{
	if (server->learned.timer == NULL)
		return;
	save(server);
	event_free(server->learned.timer);
}
