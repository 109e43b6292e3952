/* The sockets that clients connect to. A UNIX socket tells which user connects; on TCP a token
 * must, and beyond this machine it travels encrypted. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/now.h"
#include "base/number.h"
#include "base/often.h"
#include "server/connection.h"
#include "server/listen.h"
#include "server/state.h"

#define BACKLOG 512
/* Connections taken at one go: between two goes those that are there are heard, so a flood of
 * new ones cannot push them out unheard. */
#define ACCEPTS_MAX 32
/* After an accept that failed for want of files or memory. */
#define AGAIN_MS 100
#define SAY_EVERY_NS (30 * SW_NS_PER_S)

/* One listening socket. */
struct listener {
	struct sw_server *server;
	struct event *ready; /* NULL: it is not there */
	struct event *again; /* after a pause */
	int fd;
	bool is_tcp;
	struct sw_often complaint;
};

struct sw_listeners {
	struct listener local, tcp;
	char *path; /* of the UNIX socket that is ours; NULL: none */
	char address[64];
};

union address {
	struct sockaddr any;
	struct sockaddr_un local;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static int refuse(struct sw_err *err, int code, const char *where, const char *detail)
{
	sw_err_set(err, code, "cannot listen on '%s'", where);
	sw_err_detail(err, "%s", detail);
	return code;
}

/* ---- the user that connects */

static bool is_listed(const struct sw_controller_options *options, uid_t uid)
{
	for (size_t i = 0; i < options->operator_count; i++)
		if (options->operators[i] == uid)
			return true;
	return false;
}

/* The caller and the peer of a connection to the UNIX socket. False: the kernel does not say. */
static bool know_local(struct sw_server *server, int fd, struct sw_peer *peer, struct sw_caller_key *key)
{
	struct ucred credentials;
	socklen_t length = sizeof credentials;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0)
		return false;
	*peer = (struct sw_peer){.roles = SW_ROLE_USER, .user = {.uid = credentials.uid, .gid = credentials.gid}};
	/* Root and the controller's own user could do all this anyway. */
	bool own = credentials.uid == 0 || credentials.uid == geteuid();
	peer->user.is_operator = own || is_listed(server->options, credentials.uid);
	peer->roles |= (peer->user.is_operator ? SW_ROLE_OPERATOR : 0u) | (own ? SW_ROLE_AGENT : 0u);
	*key = (struct sw_caller_key){peer->user.is_operator ? SW_CALLER_OWN : SW_CALLER_USER, credentials.uid};
	return true;
}

/* Until a token says more, an address is all that is known of a caller on TCP. Of IPv6, the half
 * that a network gives out. */
static struct sw_caller_key key_of_address(const union address *address)
{
	uint64_t id = 0;
	if (address->any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr))
		memcpy(&id, &address->v6.sin6_addr.s6_addr[12], 4);
	else if (address->any.sa_family == AF_INET6)
		memcpy(&id, &address->v6.sin6_addr, sizeof id);
	else
		id = ntohl(address->v4.sin_addr.s_addr);
	return (struct sw_caller_key){SW_CALLER_STRANGER, id};
}

static void take(struct listener *listener, int fd, const union address *address)
{
	struct sw_peer peer = {0};
	struct sw_caller_key key = {0};
	int on = 1;
	bool known = true;
	if (listener->is_tcp) {
		/* Answers are written whole: waiting to fill a packet only adds delay. */
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		key = key_of_address(address);
	} else {
		known = know_local(listener->server, fd, &peer, &key);
	}
	if (!known || sw_conn_new(listener->server, fd, listener->is_tcp, &peer, &key) < 0)
		close(fd);
}

/* Out of files or memory: connections that wait go on waiting, and are looked for again after a
 * pause. */
static void pause_listener(struct listener *listener, int error)
{
	struct sw_server *server = listener->server;
	uint64_t missed = 0;
	server->figures.accepts_failed++;
	if (sw_often_may(&listener->complaint, sw_now_boot_ns(), SAY_EVERY_NS, &missed))
		sw_server_note(server, "cannot take connections on %s: %s (%llu times more since this was said last)",
			       listener->is_tcp ? "TCP" : "the socket", strerror(error), (unsigned long long)missed);
	struct timeval wait = {.tv_usec = AGAIN_MS * 1000};
	event_del(listener->ready);
	evtimer_add(listener->again, &wait);
}

static void on_ready(evutil_socket_t listening, short what, void *user)
{
	(void)what;
	struct listener *listener = user;
	SW_HOLDS_LOOP(listener->server);
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		union address address = {0};
		socklen_t size = sizeof address;
		int fd = accept4(listening, &address.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			take(listener, fd, &address);
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR && errno != ECONNABORTED && errno != EPROTO) {
			pause_listener(listener, errno);
			return;
		}
	}
}

static void on_again(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct listener *listener = user;
	SW_HOLDS_LOOP(listener->server);
	event_add(listener->ready, NULL);
}

/* Takes the descriptor, also when it fails. */
static int open_listener(struct listener *listener, struct sw_server *server, int fd, bool is_tcp, struct sw_err *err)
{
	*listener = (struct listener){.server = server, .fd = fd, .is_tcp = is_tcp};
	listener->ready = event_new(server->base, fd, EV_READ | EV_PERSIST, on_ready, listener);
	listener->again = evtimer_new(server->base, on_again, listener);
	if (listener->ready != NULL && listener->again != NULL && event_add(listener->ready, NULL) == 0)
		return 0;
	if (listener->ready == NULL)
		close(fd);
	return sw_err_set(err, SW_ENOMEM, "out of memory");
}

static void close_listener(struct listener *listener)
{
	if (listener->again != NULL)
		event_free(listener->again);
	if (listener->ready == NULL)
		return;
	event_free(listener->ready);
	close(listener->fd);
}

/* ---- the UNIX socket */

/* The folders above the socket, which no other user may enter. */
static int make_folders(const char *path, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *copy = strdup(path);
	if (copy == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	for (char *slash = strchr(copy + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0700) < 0 && errno != EEXIST)
			return refuse(err, SW_EIO, path, strerror(errno));
		*slash = '/';
	}
	return 0;
}

/* A socket on which no process listens any more is in the way; any other file
 * is not ours to remove. */
static int clear_place(const char *path, const struct sockaddr_un *address, struct sw_err *err)
{
	struct stat info;
	if (lstat(path, &info) < 0)
		return errno == ENOENT ? 0 : refuse(err, SW_EIO, path, strerror(errno));
	if (!S_ISSOCK(info.st_mode))
		return refuse(err, SW_EINPUT, path, "there is a file of that name, and it is not a socket");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return refuse(err, SW_EIO, path, strerror(errno));
	int failed = connect(fd, (const struct sockaddr *)address, sizeof *address) < 0 ? errno : 0;
	close(fd);
	if (failed == 0 || failed == EAGAIN) {
		refuse(err, SW_EINPUT, path, "another controller listens there");
		sw_err_hint(err, "Stop it, or give this one another place.");
		return SW_EINPUT;
	}
	if (unlink(path) < 0 && errno != ENOENT)
		return refuse(err, SW_EIO, path, strerror(errno));
	return 0;
}

static int bind_local(const char *path, const struct sockaddr_un *address, bool for_all, struct sw_err *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return refuse(err, SW_EIO, path, strerror(errno));
	/* The socket must not be open to others for even a moment. */
	mode_t before = umask(for_all ? 0111 : 0177);
	int r = bind(fd, (const struct sockaddr *)address, sizeof *address);
	int failed = errno;
	umask(before);
	if (r < 0 || listen(fd, BACKLOG) < 0) {
		failed = r < 0 ? failed : errno;
		close(fd);
		return refuse(err, SW_EIO, path, strerror(failed));
	}
	return fd;
}

static int listen_local(struct sw_server *server, struct sw_listeners *listeners, struct sw_err *err)
{
	const char *path = server->options->socket_path;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (path[0] == '\0' || strlen(path) >= sizeof address.sun_path) {
		refuse(err, SW_EINPUT, path, "the path of a socket has 1 to 107 bytes");
		sw_err_hint(err, "Choose a shorter folder for the state.");
		return SW_EINPUT;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	int r = make_folders(path, err);
	r = r < 0 ? r : clear_place(path, &address, err);
	int fd = r < 0 ? r : bind_local(path, &address, server->options->socket_for_all, err);
	if (fd < 0)
		return fd;
	listeners->path = strdup(path);
	if (listeners->path == NULL) {
		close(fd);
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	return open_listener(&listeners->local, server, fd, false, err);
}

/* ---- TCP */

/* "127.0.0.1:7411" or "[::1]:7411"; "localhost" is the first. */
static int parse_address(const char *text, bool with_tls, union address *ret_address, socklen_t *ret_size, struct sw_err *err)
{
	const char *colon = strrchr(text, ':');
	char host[64];
	uint64_t port;
	if (colon == NULL || (size_t)(colon - text) >= sizeof host || sw_parse_u64(colon + 1, strlen(colon + 1), &port) < 0 ||
	    port > 65535) {
		refuse(err, SW_EINPUT, text, "it is not of the form address:port");
		sw_err_hint(err, "Write 127.0.0.1:7411 or [::1]:7411.");
		return SW_EINPUT;
	}
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = '\0';
	union address address = {0};
	bool loopback = false;
	size_t size = strlen(host);
	if (host[0] == '[' && host[size - 1] == ']') {
		host[size - 1] = '\0';
		address.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
		if (inet_pton(AF_INET6, host + 1, &address.v6.sin6_addr) != 1)
			return refuse(err, SW_EINPUT, text, "this is no IPv6 address");
		loopback = IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr);
		*ret_size = sizeof address.v6;
	} else {
		address.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
		if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &address.v4.sin_addr) != 1)
			return refuse(err, SW_EINPUT, text, "this is no IPv4 address");
		loopback = ntohl(address.v4.sin_addr.s_addr) >> 24 == 127;
		*ret_size = sizeof address.v4;
	}
	if (!loopback && !with_tls) {
		refuse(err, SW_EDENIED, text, "tokens must not travel a network in the clear: addresses beyond loopback need TLS");
		sw_err_hint(err, "Give it a certificate with --tls-cert and --tls-key, or have one made with --tls-self-signed.");
		return SW_EDENIED;
	}
	*ret_address = address;
	return 0;
}

int sw_listen_check(const char *text, bool with_tls, struct sw_err *err)
{
	union address address = {0};
	socklen_t size = 0;
	return parse_address(text, with_tls, &address, &size, err);
}

/* The port may have been chosen by the system. */
static int name_address(int fd, struct sw_listeners *listeners)
{
	union address address = {0};
	socklen_t size = sizeof address;
	char host[INET6_ADDRSTRLEN];
	if (getsockname(fd, &address.any, &size) < 0)
		return -1;
	bool v6 = address.any.sa_family == AF_INET6;
	const void *number = v6 ? (const void *)&address.v6.sin6_addr : (const void *)&address.v4.sin_addr;
	if (inet_ntop(address.any.sa_family, number, host, sizeof host) == NULL)
		return -1;
	snprintf(listeners->address, sizeof listeners->address, v6 ? "[%s]:%u" : "%s:%u", host,
		 (unsigned)ntohs(v6 ? address.v6.sin6_port : address.v4.sin_port));
	return 0;
}

static int listen_tcp(struct sw_server *server, struct sw_listeners *listeners, struct sw_err *err)
{
	const char *text = server->options->listen;
	union address address = {0};
	socklen_t size = 0;
	if (server->tokens == NULL) {
		refuse(err, SW_EDENIED, text, "TCP needs tokens, and no file of them was given");
		return SW_EDENIED;
	}
	int r = parse_address(text, server->tls != NULL, &address, &size, err);
	if (r < 0)
		return r;
	int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;
	if (fd < 0)
		return refuse(err, SW_EIO, text, strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 || bind(fd, &address.any, size) < 0 || listen(fd, BACKLOG) < 0 ||
	    name_address(fd, listeners) < 0) {
		int failed = errno;
		close(fd);
		return refuse(err, SW_EIO, text, strerror(failed));
	}
	return open_listener(&listeners->tcp, server, fd, true, err);
}

int sw_listen(struct sw_server *server, struct sw_listeners **ret_listeners, struct sw_err *err)
{
	struct sw_listeners *listeners = calloc(1, sizeof *listeners);
	if (listeners == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = server->options->listen != NULL ? listen_tcp(server, listeners, err) : 0;
	if (r == 0 && server->options->socket_path != NULL)
		r = listen_local(server, listeners, err);
	if (r < 0) {
		sw_listeners_free(listeners);
		return r;
	}
	*ret_listeners = listeners;
	return 0;
}

const char *sw_listeners_address(const struct sw_listeners *listeners)
{
	return listeners->tcp.ready != NULL ? listeners->address : NULL;
}

void sw_listeners_free(struct sw_listeners *listeners)
{
	if (listeners->local.ready != NULL)
		unlink(listeners->path);
	close_listener(&listeners->local);
	close_listener(&listeners->tcp);
	free(listeners->path);
	free(listeners);
}
