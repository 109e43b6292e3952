/* The socket of a supervisor, and the clients that are connected to it. Requests are lines:
 *
 *	status                       says the account of the run
 *	why TEXT                     of the next stop, suspend or move: its cause, for the
 *	                             job's log; may be empty
 *	stop ORDER SIGNAL GRACE_MS   0 and -1 mean those of the spec
 *	suspend ORDER [deep]         deep: off its GPUs whole, if that can be
 *	resume ORDER
 *	move ORDER UUID,UUID...      goes on on these GPUs, as many as it has, if that can be
 *	trespass UUID                it is on a GPU that it was not given, and must end
 *	lease BOOT_NS                it may go on until then at least (CLOCK_BOOTTIME)
 *	gpu BYTES MILLI WATCHED RUN...
 *	                             what it may have of its GPUs (0: as the spec says, all of the
 *	                             time; 4294967295: no time at all), whether other runs give way
 *	                             to it, and the runs ("12.1") to which it gives way
 *
 * What it says are lines too: the account as JSON, on request and after every order and change. The
 * account names the last order that was carried out, so that the agent that gave it knows what the
 * account says of it. Only its own user and root are heard.
 */
#ifndef SW_AGENT_CONTROL_H
#define SW_AGENT_CONTROL_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#define SW_CONTROL_CLIENTS 8
#define SW_CONTROL_POLLS (SW_CONTROL_CLIENTS + 1)
#define SW_CONTROL_SOCKET "supervisor.sock"

struct sw_control {
	int listener; /* -1: no client can connect yet */
	struct {
		int fd; /* -1: free */
		size_t used;
		char line[2048];
	} clients[SW_CONTROL_CLIENTS];
};

/* `link` is a client from the beginning (-1: none). */
void sw_control_open(struct sw_control *control, int link);
void sw_control_close(struct sw_control *control);
/* Listens in the current folder. 0 or an errno. */
int sw_control_listen(struct sw_control *control);
/* Connects to the socket of the supervisor of a folder. 0 or an errno. */
int sw_control_connect(int folder, int *ret_fd);
bool sw_control_has_clients(const struct sw_control *control);

/* What to wait for; SW_CONTROL_POLLS of them. */
void sw_control_polls(const struct sw_control *control, struct pollfd *polls);
/* `request` is called for every whole line, with the client's number. */
typedef void sw_control_request(void *context, int client, const char *line);
void sw_control_handle(struct sw_control *control, const struct pollfd *polls, sw_control_request *request, void *context);

/* Says a line to one client, or to all (-1). A client that does not listen is dropped. */
void sw_control_say(struct sw_control *control, int client, const char *text, size_t size);

#endif
