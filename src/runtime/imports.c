/* Memory of other processes that came by a ticket (ipc.h): mapped here for as long as it is open.
 * It is charged where it was made, and does not move. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/driver.h"
#include "runtime/gate.h"
#include "runtime/hooks.h"
#include "runtime/ipc.h"
#include "runtime/memory.h"
#include "runtime/move.h"
#include "runtime/start.h"

/* How long an answer may take, not counting the time in which this process is suspended: then the
 * other one may be, too. */
enum { TRIES = 30, CONTEXTS = 8 };

struct import {
	struct import *next;
	uint64_t server, range;
	CUdeviceptr address;
	size_t bytes;
	unsigned opened;	      /* how often; 0: closed during a capture, when no thread could wait for the work with it */
	bool waited;		      /* each that closed it did: else the thread that drops it does */
	CUcontext contexts[CONTEXTS]; /* that opened it */
};
static struct import *imports;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* never held while another process is waited for */

/* ---- the other process */

/* Its next chunk; false: there is none. */
static bool receive(int from, struct sw_ticket_chunk *ret_chunk, int *ret_fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {ret_chunk, sizeof *ret_chunk};
	for (unsigned tries = 0; tries < TRIES; tries++) {
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
		ssize_t got = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
		const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
		bool has_fd = got >= 0 && head != NULL && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(int));
		if (has_fd)
			memcpy(ret_fd, CMSG_DATA(head), sizeof *ret_fd);
		if (got >= 0 && (!has_fd || got == (ssize_t)sizeof *ret_chunk))
			return has_fd;
		if (has_fd)
			close(*ret_fd);
		if (got >= 0 || (errno != EAGAIN && errno != EINTR))
			return false;
		sw_gate_leave(sw_gate_enter());
	}
	return false;
}

static int connect_to(const struct sw_ticket *ticket)
{
	struct sockaddr_un address;
	socklen_t length = sw_ticket_address(ticket->server, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, length) == 0 && sw_ticket_peer(fd, 1) &&
	    send(fd, ticket, sizeof *ticket, MSG_NOSIGNAL) == (ssize_t)sizeof *ticket)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* ---- its memory */

static CUresult map_chunk(CUdeviceptr address, size_t bytes, int fd)
{
	CUmemHandle handle = 0;
	struct sw_gate_thread *self = sw_gate_enter();
	CUresult result = sw_driver.import_handle(&handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_FILE_DESCRIPTOR);
	if (result == CUDA_SUCCESS) {
		result = sw_driver.map(address, bytes, 0, handle, 0);
		/* The mapping keeps it. */
		sw_driver.release(handle);
	}
	sw_gate_leave(self);
	return result;
}

static void unmap(CUdeviceptr address, size_t mapped, size_t bytes)
{
	if (mapped > 0)
		sw_driver.unmap(address, mapped);
	sw_driver.unreserve(address, bytes);
}

static CUresult fetch(const struct sw_ticket *ticket, CUdeviceptr *ret_address)
{
	CUdeviceptr address = 0;
	struct sw_ticket_chunk chunk = {0};
	size_t mapped = 0;
	int server = connect_to(ticket), fd = -1;
	if (server < 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = sw_driver.reserve(&address, ticket->bytes, 0, 0, 0);
	bool reserved = result == CUDA_SUCCESS;
	while (result == CUDA_SUCCESS && mapped < ticket->bytes) {
		if (!receive(server, &chunk, &fd)) {
			result = CUDA_ERROR_INVALID_VALUE;
			break;
		}
		result = chunk.bytes > ticket->bytes - mapped ? CUDA_ERROR_INVALID_VALUE : map_chunk(address + mapped, chunk.bytes, fd);
		mapped += result == CUDA_SUCCESS ? chunk.bytes : 0;
		close(fd);
	}
	close(server);
	if (result == CUDA_SUCCESS)
		*ret_address = address;
	else if (reserved)
		unmap(address, mapped, ticket->bytes);
	return result;
}

/* Under the lock. */
static struct import **find(uint64_t server, uint64_t range)
{
	struct import **link = &imports;
	while (*link != NULL && ((*link)->server != server || (*link)->range != range))
		link = &(*link)->next;
	return link;
}

/* False: too many have opened it. */
static bool note_context(struct import *import, CUcontext context)
{
	CUcontext *empty = NULL;
	for (CUcontext *known = import->contexts; known < import->contexts + CONTEXTS; known++) {
		if (*known == context)
			return true;
		empty = *known == NULL && empty == NULL ? known : empty;
	}
	if (empty != NULL)
		*empty = context;
	return empty != NULL;
}

void sw_import_forget_context(CUcontext context)
{
	pthread_mutex_lock(&lock);
	for (struct import *import = imports; import != NULL; import = import->next)
		for (unsigned i = 0; i < CONTEXTS; i++)
			if (import->contexts[i] == context)
				import->contexts[i] = NULL;
	pthread_mutex_unlock(&lock);
}

/* For the current context and its device; under the lock. */
static CUresult let_use(struct import *import, CUdevice device)
{
	CUmemAccessDesc access = {{CU_MEM_LOCATION_DEVICE, device}, CU_MEM_ACCESS_READWRITE};
	CUcontext context = NULL;
	CUresult result = sw_driver.context_current(&context);
	if (result == CUDA_SUCCESS)
		result = sw_driver.set_access(import->address, import->bytes, &access, 1);
	if (result == CUDA_SUCCESS && !note_context(import, context))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	import->opened += result == CUDA_SUCCESS;
	return result;
}

/* Notes what was fetched. Where another thread was faster, its mapping counts and ours goes. */
static CUresult add(const struct sw_ticket *ticket, CUdevice device, CUdeviceptr fetched, CUdeviceptr *ret_address)
{
	struct import *unused = malloc(sizeof *unused);
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	struct import **link = find(ticket->server, ticket->range);
	if (*link == NULL && unused != NULL) {
		*unused = (struct import){
			.server = ticket->server, .range = ticket->range, .address = fetched, .bytes = ticket->bytes, .waited = true};
		result = let_use(unused, device);
		if (result == CUDA_SUCCESS) {
			*link = unused;
			unused = NULL;
			*ret_address = fetched;
			fetched = 0;
		}
	} else if (*link != NULL) {
		result = let_use(*link, device);
		*ret_address = (*link)->address;
	}
	pthread_mutex_unlock(&lock);
	if (fetched != 0)
		unmap(fetched, ticket->bytes, ticket->bytes);
	free(unused);
	return result;
}

/* False: it is not open yet. */
static bool open_again(const struct sw_ticket *ticket, CUdevice device, CUresult *ret_result, CUdeviceptr *ret_address)
{
	pthread_mutex_lock(&lock);
	struct import *import = *find(ticket->server, ticket->range);
	if (import != NULL) {
		*ret_result = let_use(import, device);
		*ret_address = import->address;
	}
	pthread_mutex_unlock(&lock);
	return import != NULL;
}

static CUresult open_ticket(const struct sw_ticket *ticket, CUdeviceptr *ret_address)
{
	CUdevice device;
	CUdeviceptr fetched = 0, base = 0;
	CUresult result = sw_driver.context_device(&device);
	if (result != CUDA_SUCCESS)
		return result;
	if (ticket->bytes == 0 || ticket->bytes % SW_UNIT_BYTES != 0 || ticket->offset >= ticket->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	/* As the driver has it: no process opens what is its own. */
	if (ticket->server == sw_export_server())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!open_again(ticket, device, &result, &base)) {
		result = fetch(ticket, &fetched);
		if (result == CUDA_SUCCESS)
			result = add(ticket, device, fetched, &base);
	}
	if (result == CUDA_SUCCESS)
		*ret_address = base + ticket->offset;
	return result;
}

#define OPENS(symbol)                                                                                                             \
	CUresult hook_##symbol(P ret, H handle, U flags)                                                                          \
	{                                                                                                                         \
		struct sw_ticket ticket;                                                                                          \
		memcpy(&ticket, &handle, sizeof ticket);                                                                          \
		if (SW_MISSING(symbol))                                                                                           \
			return CUDA_ERROR_NOT_INITIALIZED;                                                                        \
		return sw_moves && ret != NULL && ticket.magic == SW_TICKET_MAGIC ? open_ticket(&ticket, ret)                     \
										  : SW_REAL(symbol, P, H, U)(ret, handle, flags); \
	}
OPENS(cuIpcOpenMemHandle)
OPENS(cuIpcOpenMemHandle_v2)

/* Under the lock. */
static struct import **holding(CUdeviceptr address)
{
	struct import **link = &imports;
	while (*link != NULL && address - (*link)->address >= (*link)->bytes)
		link = &(*link)->next;
	return link;
}

/* The contexts that opened what lies there; false: nothing that is open. */
static bool find_contexts(CUdeviceptr address, CUcontext ret_contexts[CONTEXTS])
{
	pthread_mutex_lock(&lock);
	const struct import *import = *holding(address);
	bool found = import != NULL && import->opened > 0;
	if (found)
		memcpy(ret_contexts, import->contexts, sizeof import->contexts);
	pthread_mutex_unlock(&lock);
	return found;
}

/* For the work of the current context, and of those. */
static CUresult await_work(CUcontext contexts[CONTEXTS])
{
	CUcontext current = NULL, popped;
	CUresult result = sw_driver.context_synchronize();
	sw_driver.context_current(&current);
	for (unsigned i = 0; i < CONTEXTS && result == CUDA_SUCCESS; i++) {
		if (contexts[i] == NULL || contexts[i] == current)
			continue;
		/* One that is gone has no work any more. */
		if (sw_driver.context_push(contexts[i]) != CUDA_SUCCESS)
			continue;
		result = sw_driver.context_synchronize();
		sw_driver.context_pop(&popped);
	}
	return result;
}

/* False: another thread was faster. */
static bool close_once(CUdeviceptr address, bool waited)
{
	pthread_mutex_lock(&lock);
	struct import *import = *holding(address);
	bool found = import != NULL && import->opened > 0;
	if (found) {
		import->opened--;
		import->waited = import->waited && waited; /* another may have closed it without waiting */
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static struct import *take_closed(void)
{
	pthread_mutex_lock(&lock);
	struct import **link = &imports;
	while (*link != NULL && (*link)->opened > 0)
		link = &(*link)->next;
	struct import *closed = *link;
	if (closed != NULL)
		*link = closed->next;
	pthread_mutex_unlock(&lock);
	return closed;
}

/* What is open no more goes, also what was closed during captures before this. */
static void drop_closed(void)
{
	for (struct import *closed; (closed = take_closed()) != NULL;) {
		if (!closed->waited && await_work(closed->contexts) != CUDA_SUCCESS) {
			pthread_mutex_lock(&lock);
			closed->next = imports;
			imports = closed;
			pthread_mutex_unlock(&lock);
			return;
		}
		struct sw_gate_thread *self = sw_gate_enter();
		unmap(closed->address, closed->bytes, closed->bytes);
		sw_gate_leave(self);
		free(closed);
	}
}

/* As with memory that is freed: work with it must be over, and is waited for before the gate.
 * While something is captured no thread may wait: then it stays until something else is
 * closed, or opened again. */
static CUresult close_ours(CUdeviceptr address, CUcontext contexts[CONTEXTS])
{
	bool captured = atomic_load(&sw_captures) > 0;
	CUresult result = captured ? CUDA_SUCCESS : await_work(contexts);
	/* One may have begun meanwhile. */
	captured = captured || (result != CUDA_SUCCESS && atomic_load(&sw_captures) > 0);
	if (result != CUDA_SUCCESS && !captured)
		return result;
	bool closed = close_once(address, !captured);
	if (!captured)
		drop_closed();
	return closed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult hook_cuIpcCloseMemHandle(Z address)
{
	CUcontext contexts[CONTEXTS];
	if (SW_MISSING(cuIpcCloseMemHandle))
		return CUDA_ERROR_NOT_INITIALIZED;
	if (sw_moves && find_contexts(address, contexts))
		return close_ours(address, contexts);
	struct sw_gate_thread *self = sw_gate_enter();
	CUresult result = SW_REAL(cuIpcCloseMemHandle, Z)(address);
	sw_gate_leave(self);
	return result;
}
