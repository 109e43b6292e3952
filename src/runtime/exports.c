/* What this process lets others have of its memory by CUDA's IPC handles (ipc.h). A thread gives
 * descriptors to a process that shows a ticket; it begins with the first ticket. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/book.h"
#include "runtime/driver.h"
#include "runtime/gate.h"
#include "runtime/hooks.h"
#include "runtime/ipc.h"
#include "runtime/start.h"
#include "runtime/tools.h"

#define PAUSE_NS 10000000
enum { QUEUE = 64, PATIENCE_S = 10 };

static uint64_t server;
static int listener = -1;
static struct sockaddr_un listens_at;
static socklen_t address_bytes;
static pthread_mutex_t server_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_export; /* under sw_memory_lock */

uint64_t sw_export_server(void)
{
	pthread_mutex_lock(&server_lock);
	uint64_t number = server;
	pthread_mutex_unlock(&server_lock);
	return number;
}

/* ---- the process that shows a ticket */

/* A descriptor of one chunk; false: there is no such chunk. Waits at the gate while the process is
 * suspended, as every call does. */
static bool export_chunk(uint64_t range_number, uint32_t index, int *ret_fd, struct sw_ticket_chunk *ret_chunk)
{
	CUresult result = CUDA_ERROR_NOT_FOUND;
	struct sw_gate_thread *self = sw_gate_enter();
	pthread_mutex_lock(&sw_memory_lock);
	for (const struct sw_range *range = sw_ranges; range != NULL; range = range->next) {
		if (range->exported != range_number || index >= range->chunk_count)
			continue;
		result = sw_driver.export_handle(ret_fd, range->chunks[index].handle, CU_MEM_HANDLE_FILE_DESCRIPTOR, 0);
		ret_chunk->bytes = range->chunks[index].bytes;
	}
	pthread_mutex_unlock(&sw_memory_lock);
	sw_gate_leave(self);
	return result == CUDA_SUCCESS;
}

static bool send_chunk(int to, struct sw_ticket_chunk *chunk, int fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec part = {chunk, sizeof *chunk};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
	return sendmsg(to, &message, MSG_NOSIGNAL) == (ssize_t)sizeof *chunk;
}

static void answer(int client)
{
	struct sw_ticket ticket;
	if (!sw_ticket_peer(client, PATIENCE_S) || recv(client, &ticket, sizeof ticket, 0) != (ssize_t)sizeof ticket ||
	    ticket.magic != SW_TICKET_MAGIC || ticket.server != sw_export_server() || ticket.range == 0)
		return;
	struct sw_ticket_chunk chunk;
	bool sent = true;
	int fd = -1;
	for (uint32_t i = 0; sent && export_chunk(ticket.range, i, &fd, &chunk); i++) {
		sent = send_chunk(client, &chunk, fd);
		close(fd);
	}
}

static void *serve(void *argument)
{
	int door = (int)(intptr_t)argument;
	prctl(PR_SET_NAME, "sharewell-ipc");
	sw_capture_relax();
	for (;;) {
		int client = accept4(door, NULL, NULL, SOCK_CLOEXEC);
		if (client < 0) {
			nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
			continue;
		}
		answer(client);
		close(client);
	}
	return NULL;
}

/* Under its lock. */
static int listen_at(uint64_t number)
{
	address_bytes = sw_ticket_address(number, &listens_at);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&listens_at, address_bytes) == 0 && listen(fd, QUEUE) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Under its lock. */
static bool start_server(void)
{
	uint64_t number = 0;
	pthread_t thread;
	sigset_t all, before;
	if (server != 0)
		return true;
	if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number || number == 0)
		return false;
	int door = listen_at(number);
	if (door < 0)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool started = pthread_create(&thread, NULL, serve, (void *)(intptr_t)door) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (started) {
		pthread_detach(thread);
		server = number;
		listener = door;
	} else {
		close(door);
	}
	return started;
}

/* No thread serves in the child; as long as it kept the listener, others would wait for answers
 * when its parent is gone. What the program has closed, and opened anew, is not ours to close. */
void sw_export_forget(void)
{
	struct sockaddr_un there = {0};
	socklen_t size = sizeof there;
	if (server != 0 && getsockname(listener, (struct sockaddr *)&there, &size) == 0 && size == address_bytes &&
	    memcmp(&listens_at, &there, size) == 0)
		close(listener);
	server = 0;
}

/* ---- the process that asks for one */

/* Whether each chunk can be given away; under sw_memory_lock. */
static bool can_export(const struct sw_range *range)
{
	for (uint32_t i = 0; i < range->chunk_count; i++) {
		int fd = -1;
		if (range->chunks[i].place != SW_ON_GPU ||
		    sw_driver.export_handle(&fd, range->chunks[i].handle, CU_MEM_HANDLE_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS)
			return false;
		close(fd);
	}
	return true;
}

/* False: it is none of ours, or cannot be given away. */
static bool make_ticket(CUdeviceptr address, struct sw_ticket *ret_ticket)
{
	struct sw_allocation entry;
	struct sw_gate_thread *self = sw_gate_enter();
	pthread_mutex_lock(&sw_memory_lock);
	bool made = sw_book_find(address, &entry) && can_export(entry.range);
	if (made) {
		sw_range_pin(entry.range);
		if (entry.range->exported == 0)
			entry.range->exported = ++last_export;
		*ret_ticket = (struct sw_ticket){.magic = SW_TICKET_MAGIC,
						 .range = entry.range->exported,
						 .offset = entry.address - entry.range->address,
						 .bytes = entry.range->bytes};
	}
	pthread_mutex_unlock(&sw_memory_lock);
	sw_gate_leave(self);
	return made;
}

/* What was got before the first one must be got anew for that, from memory that can be exported. */
static bool export(CUdeviceptr address, CUipcHandle *ret_handle)
{
	CUdeviceptr base;
	size_t bytes;
	CUcontext context;
	struct sw_ticket ticket;
	if (!sw_moves || ret_handle == NULL || sw_driver.export_handle == NULL || !sw_memory_find(address, &base, &bytes, &context))
		return false;
	if (!make_ticket(address, &ticket) && !(sw_attendant_renew() && make_ticket(address, &ticket)))
		return false;
	pthread_mutex_lock(&server_lock);
	bool started = start_server();
	ticket.server = server;
	pthread_mutex_unlock(&server_lock);
	if (!started)
		return false;
	memset(ret_handle, 0, sizeof *ret_handle);
	memcpy(ret_handle, &ticket, sizeof ticket);
	return true;
}

CUresult hook_cuIpcGetMemHandle(P ret, Z address)
{
	if (SW_MISSING(cuIpcGetMemHandle))
		return CUDA_ERROR_NOT_INITIALIZED;
	/* Where we cannot, the driver says what it says to memory that it cannot export. */
	return export(address, ret) ? CUDA_SUCCESS : SW_REAL(cuIpcGetMemHandle, P, Z)(ret, address);
}
