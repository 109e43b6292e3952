#include "agent/supervisor/nursery.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

int sw_nursery_ask(int socket, const char *path, int link)
{
	union control control = {0};
	char copy[PATH_MAX];
	size_t size = strlen(path) + 1;
	if (size > sizeof copy)
		return ENAMETOOLONG;
	memcpy(copy, path, size);
	struct iovec part = {.iov_base = copy, .iov_len = size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof link);
	memcpy(CMSG_DATA(header), &link, sizeof link);
	return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* The next folder, and its link; 0: the end, -1: again. */
static ssize_t receive(int socket, char *path, size_t size, int *ret_link)
{
	union control control = {0};
	struct iovec part = {.iov_base = path, .iov_len = size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
	*ret_link = -1;
	path[0] = '\0';
	ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return n == 0 || errno != EINTR ? 0 : -1;
	const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		memcpy(ret_link, CMSG_DATA(header), sizeof *ret_link);
	/* A message is a whole path, terminator included. */
	return path[n - 1] == '\0' ? n : -1;
}

int sw_nursery(int socket, struct sw_err *err)
{
	int kind = 0;
	socklen_t size = sizeof kind;
	if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &kind, &size) != 0 || kind != SOCK_SEQPACKET) {
		sw_err_set(err, SW_EINPUT, "cannot serve: standard input is not the socket of an agent");
		sw_err_hint(err, "The agent starts this by itself; for one run give its folder instead of '-'.");
		return SW_EINPUT;
	}
	prctl(PR_SET_NAME, "sw:nursery");
	signal(SIGCHLD, SIG_IGN); /* no process waits for supervisors once they are born */
	signal(SIGINT, SIG_IGN);
	char path[PATH_MAX];
	int link;
	for (ssize_t n; (n = receive(socket, path, sizeof path, &link)) != 0;) {
		pid_t pid = n > 0 ? fork() : -1;
		if (pid == 0) {
			close(socket);
			(void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
			_exit(sw_supervise_folder(path, link, NULL) < 0 ? 1 : 0);
		}
		/* If it could not be born the agent sees its link end. */
		if (link >= 0)
			close(link);
	}
	/* Nothing is left to tidy. What checks for leaks at an exit would stop this process from a
	 * child of its own, and wait for it. That cannot be while children are not waited for. */
	_exit(0);
}
