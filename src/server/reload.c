/* What an operator changes in files while the controller runs: tokens, and the certificate.
 *
 *  1. A change of the tokens counts from the next request on. For a client that reads a stream or
 *     waits for an answer it counts within a second.
 *  2. A file that cannot be used changes nothing, and the operator is told.
 */
#include <string.h>
#include <sys/stat.h>

#include "api/when.h"
#include "base/now.h"
#include "base/number.h"
#include "server/connection.h"
#include "server/reload.h"
#include "server/state.h"

/* So that a change counts within a second, also where the loop has much to do. */
#define LOOK_MS 200
#define SOON_S (30 * 86400) /* for a certificate to end */

/* ---- tokens */

/* Whether the file is another one than at the last look. */
static bool has_changed(struct sw_reload *reload, const char *path)
{
	struct stat info;
	if (stat(path, &info) < 0)
		memset(&info, 0, sizeof info);
	bool same = info.st_ino == reload->number && info.st_size == reload->size && info.st_mtim.tv_sec == reload->changed_at.tv_sec &&
		    info.st_mtim.tv_nsec == reload->changed_at.tv_nsec && info.st_mode == reload->mode;
	reload->number = info.st_ino;
	reload->size = info.st_size;
	reload->changed_at = info.st_mtim;
	reload->mode = info.st_mode;
	return !same;
}

static void read_tokens(struct sw_server *server)
{
	struct sw_tokens *tokens = NULL;
	struct sw_err err = {0};
	if (sw_tokens_read(server->options->tokens_path, &tokens, &err) < 0) {
		sw_server_note(server, "%s: %s; the tokens read before stay", err.fact, err.detail);
		return;
	}
	sw_tokens_free(server->tokens);
	server->tokens = tokens;
	server->reload.sweep = true;
	sw_server_note(server, "read the tokens again");
}

void sw_reload_tokens(struct sw_server *server)
{
	if (server->tokens == NULL || !has_changed(&server->reload, server->options->tokens_path))
		return;
	read_tokens(server);
	/* The caller is in the middle of a connection: those whose token has
	 * gone are shown out later. */
	if (server->reload.timer != NULL)
		event_active(server->reload.timer, EV_TIMEOUT, 0);
}

static void sweep(struct sw_server *server)
{
	if (server->reload.sweep)
		sw_conns_close_revoked(server);
	server->reload.sweep = false;
}

static void on_look(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	sw_reload_tokens(server);
	int64_t now_s = sw_now_real_ns() / SW_NS_PER_S;
	if (sw_tokens_ended(server->tokens, server->reload.looked_at_s, now_s))
		server->reload.sweep = true;
	server->reload.looked_at_s = now_s;
	sweep(server);
}

/* ---- the certificate */

/* A certificate is not looked at until it has ended. */
void sw_reload_tell_end(struct sw_server *server)
{
	char day[SW_WHEN_SIZE];
	if (server->tls == NULL)
		return;
	int64_t ends_at_s = sw_tls_ends_at_s(server->tls), left_s = ends_at_s - sw_now_real_ns() / SW_NS_PER_S;
	sw_when_format_seconds(ends_at_s, day);
	if (left_s < 0)
		sw_server_note(server, "the certificate has ended (%.10s): clients refuse it", day);
	else if (left_s < SOON_S)
		sw_server_note(server, "the certificate ends in %lld days (%.10s)", (long long)(left_s / 86400), day);
}

static void read_certificate(struct sw_server *server)
{
	struct sw_tls *tls = NULL;
	struct sw_err err = {0};
	if (sw_tls_open(server->options->tls_certificate, server->options->tls_key, &tls, &err) < 0) {
		sw_server_note(server, "%s: %s; the certificate read before stays", err.fact, err.detail);
		return;
	}
	sw_tls_free(server->tls);
	server->tls = tls;
	sw_server_note(server, "read the certificate again");
	sw_reload_tell_end(server);
}

/* ---- all of it */

void sw_reload_all(struct sw_server *server)
{
	if (server->tokens != NULL) {
		has_changed(&server->reload, server->options->tokens_path);
		read_tokens(server);
		sweep(server);
	}
	if (server->tls != NULL)
		read_certificate(server);
}

int sw_reload_start(struct sw_server *server, struct sw_err *err)
{
	struct timeval each = {.tv_usec = LOOK_MS * 1000};
	if (server->tokens == NULL)
		return 0;
	has_changed(&server->reload, server->options->tokens_path);
	server->reload.timer = event_new(server->base, -1, EV_PERSIST, on_look, server);
	if (server->reload.timer == NULL || event_add(server->reload.timer, &each) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	return 0;
}

void sw_reload_stop(struct sw_server *server)
{
	if (server->reload.timer != NULL)
		event_free(server->reload.timer);
}
