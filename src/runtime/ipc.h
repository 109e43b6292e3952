/* Memory for other processes by CUDA's IPC handles. The driver makes such handles of plain memory
 * only, so those of memory that can move are made here. A ticket names the process that has the
 * memory and where it listens. A process that opens it is given a descriptor of the driver's for
 * each chunk (exports.c, imports.c).
 *
 * Both processes are under the runtime, of one user, and in one network namespace. What was
 * exported stays where it is.
 */
#ifndef SW_RUNTIME_IPC_H
#define SW_RUNTIME_IPC_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cuda/driver.h"

#define SW_TICKET_MAGIC UINT64_C(0x6b63695470775368)

/* What the 64 bytes of a handle say; the rest of them is zero. */
struct sw_ticket {
	uint64_t magic;
	uint64_t server; /* a number that cannot be guessed: where it listens */
	uint64_t range;	 /* a number for each range that was exported */
	uint64_t offset; /* where the allocation begins in it */
	uint64_t bytes;	 /* of the range */
};
_Static_assert(sizeof(struct sw_ticket) <= CU_IPC_HANDLE_BYTES, "a ticket fits into a handle");

/* What is sent with each descriptor: chunks come in order. */
struct sw_ticket_chunk {
	uint64_t bytes;
};

/* The number under which this process listens; 0: it does not. */
uint64_t sw_export_server(void);

static inline socklen_t sw_ticket_address(uint64_t server, struct sockaddr_un *ret_address)
{
	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* A name that is in no folder: it goes with its process. */
	int length =
		snprintf(ret_address->sun_path + 1, sizeof ret_address->sun_path - 1, "sharewell-gpu-%016llx", (unsigned long long)server);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Whether the other end is of our user; then waiting for it ends after `seconds`. */
static inline bool sw_ticket_peer(int fd, unsigned seconds)
{
	struct ucred who = {0};
	socklen_t size = sizeof who;
	struct timeval patience = {.tv_sec = seconds};
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid() &&
	       setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
	       setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0;
}

#endif
