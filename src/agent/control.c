#include "agent/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

/* So often is one client read before others get their turn. */
enum { TURNS_MAX = 256 };

static void drop(struct sw_control *control, int client)
{
	close(control->clients[client].fd);
	control->clients[client].fd = -1;
}

static void add(struct sw_control *control, int fd)
{
	for (int i = 0; i < SW_CONTROL_CLIENTS; i++)
		if (control->clients[i].fd < 0) {
			control->clients[i].fd = fd;
			control->clients[i].used = 0;
			return;
		}
	close(fd);
}

void sw_control_open(struct sw_control *control, int link)
{
	control->listener = -1;
	for (int i = 0; i < SW_CONTROL_CLIENTS; i++)
		control->clients[i].fd = -1;
	if (link >= 0)
		add(control, link);
}

bool sw_control_has_clients(const struct sw_control *control)
{
	for (int i = 0; i < SW_CONTROL_CLIENTS; i++)
		if (control->clients[i].fd >= 0)
			return true;
	return false;
}

/* Its path may be too long for a socket, so it goes through /proc. */
int sw_control_connect(int folder, int *ret_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/" SW_CONTROL_SOCKET, folder);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
		int error = errno;
		if (fd >= 0)
			close(fd);
		return error;
	}
	*ret_fd = fd;
	return 0;
}

int sw_control_listen(struct sw_control *control)
{
	control->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (control->listener < 0)
		return errno;
	/* The name is relative: paths of sockets are short. */
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SW_CONTROL_SOCKET};
	unlink(SW_CONTROL_SOCKET);
	if (bind(control->listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
	    listen(control->listener, SW_CONTROL_CLIENTS) != 0) {
		int error = errno;
		close(control->listener);
		control->listener = -1;
		return error;
	}
	return 0;
}

void sw_control_close(struct sw_control *control)
{
	for (int i = 0; i < SW_CONTROL_CLIENTS; i++)
		if (control->clients[i].fd >= 0)
			drop(control, i);
	if (control->listener < 0)
		return;
	close(control->listener);
	unlink(SW_CONTROL_SOCKET);
}

void sw_control_polls(const struct sw_control *control, struct pollfd *polls)
{
	for (int i = 0; i < SW_CONTROL_CLIENTS; i++)
		polls[i] = (struct pollfd){.fd = control->clients[i].fd, .events = POLLIN};
	polls[SW_CONTROL_CLIENTS] = (struct pollfd){.fd = control->listener, .events = POLLIN};
}

static void accept_one(struct sw_control *control)
{
	int fd = accept4(control->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	struct ucred peer;
	socklen_t size = sizeof peer;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || (peer.uid != 0 && peer.uid != geteuid()))
		close(fd);
	else
		add(control, fd);
}

/* Hands out the whole lines that have come; a request may end the conversation. */
static void hand_out(struct sw_control *control, int client, sw_control_request *request, void *context)
{
	char *line = control->clients[client].line;
	size_t *used = &control->clients[client].used;
	for (char *end; control->clients[client].fd >= 0 && (end = memchr(line, '\n', *used)) != NULL;) {
		*end = '\0';
		char copy[sizeof control->clients[client].line];
		memcpy(copy, line, (size_t)(end + 1 - line));
		*used -= (size_t)(end + 1 - line);
		memmove(line, end + 1, *used);
		request(context, client, copy);
	}
}

/* Reads all that is there. */
static void read_client(struct sw_control *control, int client, sw_control_request *request, void *context)
{
	size_t *used = &control->clients[client].used;
	const size_t size = sizeof control->clients[client].line;
	for (int turn = 0; turn < TURNS_MAX && control->clients[client].fd >= 0; turn++) {
		if (*used == size) {
			drop(control, client);
			return;
		}
		ssize_t n = recv(control->clients[client].fd, control->clients[client].line + *used, size - *used, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			drop(control, client);
			return;
		}
		*used += (size_t)n;
		hand_out(control, client, request, context);
	}
}

void sw_control_handle(struct sw_control *control, const struct pollfd *polls, sw_control_request *request, void *context)
{
	/* All connected clients are heard out before a new one is let in: what a dead agent said
	 * comes before what its successor says. */
	for (int i = 0; i < SW_CONTROL_CLIENTS; i++)
		if (control->clients[i].fd >= 0)
			read_client(control, i, request, context);
	if (polls[SW_CONTROL_CLIENTS].revents != 0)
		accept_one(control);
}

void sw_control_say(struct sw_control *control, int client, const char *text, size_t size)
{
	char newline = '\n';
	struct iovec parts[2] = {{.iov_base = (void *)(uintptr_t)text, .iov_len = size}, {.iov_base = &newline, .iov_len = 1}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
	for (int i = 0; i < SW_CONTROL_CLIENTS; i++) {
		if (control->clients[i].fd < 0 || (client >= 0 && client != i))
			continue;
		if (sendmsg(control->clients[i].fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)(size + 1))
			drop(control, i);
	}
}
