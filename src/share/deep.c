#include "share/deep.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "share/checkpoint.h"
#include "share/pids.h"

#define HEARD_NS INT64_C(10000000000)
#define UNMET_NS INT64_C(1000000000)
#define LOOK_NS 5000000

/* A process that has heard this lets us, and our child, trace it. If it is marked it is in no call
 * of the driver. One that is off and is to run does not say that it heard. */
static void announce(struct sw_share_page *page)
{
	struct sw_page *shared = sw_share_page_shared(page);
	atomic_store(&shared->checkpointer, (int32_t)getpid());
	int64_t patience = atomic_load(&shared->want) == SW_PAGE_SUSPEND ? HEARD_NS : UNMET_NS;
	(void)sw_share_page_wait(page, sw_share_page_tell(page), patience);
}

/* Its processes in one of two states, and where they stand in the page. */
struct gang {
	size_t count;
	struct sw_checkpoint_process processes[SW_PAGE_SLOTS];
	struct sw_page_slot *slots[SW_PAGE_SLOTS];
	pid_t names[SW_PAGE_SLOTS]; /* as they number themselves */
};
_Static_assert(SW_PAGE_SLOTS <= SW_CHECKPOINT_PROCESSES && SW_PAGE_GPUS <= SW_CHECKPOINT_PAIRS, "a checkpoint takes a whole job");

static int gather(struct sw_share_page *page, enum sw_page_state state, struct gang *gang, struct sw_err *err)
{
	struct sw_share_figures figures;
	struct sw_page *shared = sw_share_page_shared(page);
	/* Strikes out those that are gone. */
	sw_share_page_look(page, &figures);
	gang->count = 0;
	for (uint32_t i = 0; i < SW_PAGE_SLOTS; i++) {
		struct sw_page_slot *slot = &shared->slots[i];
		pid_t pid = atomic_load(&slot->pid);
		if (pid <= 0 || atomic_load(&slot->state) != state)
			continue;
		/* The driver is asked about processes as we number them. */
		pid_t here = sw_share_pid(page, pid);
		if (here == 0)
			sw_share_page_look(page, &figures);
		if (here == 0 && atomic_load(&slot->pid) != pid)
			continue; /* it has ended since */
		if (here == 0) {
			sw_err_set(err, SW_ENOTFOUND, "cannot see the process that calls itself %d", (int)pid);
			sw_err_detail(err, "it is in another namespace of process numbers, which is not below the caller's");
			return SW_ENOTFOUND;
		}
		gang->slots[gang->count] = slot;
		gang->names[gang->count] = pid;
		gang->processes[gang->count++] = (struct sw_checkpoint_process){here, state == SW_PAGE_CHECKPOINTED};
	}
	return 0;
}

/* A slot that another process has by now, or whose process is on its way back,
 * stays as it is; false then. */
static bool mark(const struct gang *gang, size_t i, bool off)
{
	uint32_t before = off ? SW_PAGE_SUSPENDED : SW_PAGE_CHECKPOINTED;
	return atomic_load(&gang->slots[i]->pid) == gang->names[i] &&
	       atomic_compare_exchange_strong(&gang->slots[i]->state, &before, off ? SW_PAGE_CHECKPOINTED : SW_PAGE_SUSPENDED);
}

/* Once they are off they can give nothing: first they give back what host
 * memory they do not need. */
static void let_give(struct sw_share_page *page)
{
	struct sw_share_figures figures;
	for (int64_t left = HEARD_NS; left > 0; left -= LOOK_NS) {
		sw_share_page_look(page, &figures);
		if (figures.giving == 0)
			return;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
}

int sw_deep_out(struct sw_share_page *page, struct sw_err *err)
{
	static struct gang gang; /* too large for the stack */
	let_give(page);
	int r = gather(page, SW_PAGE_SUSPENDED, &gang, err);
	if (r < 0)
		return r;
	/* Before it is so: if we are killed in between, the process that brings it back tries. */
	size_t marked = 0;
	for (size_t i = 0; i < gang.count; i++) {
		if (!mark(&gang, i, true))
			continue;
		gang.slots[marked] = gang.slots[i];
		gang.names[marked] = gang.names[i];
		gang.processes[marked++] = gang.processes[i];
	}
	gang.count = marked;
	announce(page);
	r = gang.count > 0 ? sw_checkpoint_out(gang.processes, gang.count, err) : 0;
	for (size_t i = 0; i < gang.count; i++)
		if (!gang.processes[i].off)
			(void)mark(&gang, i, false);
	return r;
}

/* Of several, one could be there already when another one finds no room. */
static int refuse_many(uint32_t processes, struct sw_err *err)
{
	return sw_err_set(err, SW_EINPUT, "a program of %u processes cannot go to another GPU", processes);
}

int sw_deep_may_move(struct sw_share_page *page, struct sw_err *err)
{
	struct sw_share_figures figures;
	sw_share_page_look(page, &figures);
	if (figures.processes == 0)
		return sw_err_set(err, SW_EINPUT, "none of its processes uses a GPU yet");
	return figures.processes > 1 ? refuse_many(figures.processes, err) : 0;
}

static void note(struct sw_share_page *page, const struct sw_checkpoint_pair *pairs, size_t count)
{
	struct sw_page *shared = sw_share_page_shared(page);
	for (uint32_t gpu = 0; gpu < shared->gpu_count && gpu < SW_PAGE_GPUS; gpu++)
		for (size_t i = 0; i < count; i++)
			if (memcmp(shared->gpus[gpu].uuid, pairs[i].from, sizeof pairs[i].from) == 0) {
				memcpy(shared->gpus[gpu].uuid, pairs[i].to, sizeof pairs[i].to);
				break;
			}
}

int sw_deep_back(struct sw_share_page *page, const struct sw_checkpoint_pair *pairs, size_t count, struct sw_err *err)
{
	static struct gang gang; /* too large for the stack */
	/* Also one that came after it was taken off. */
	int r = count > 0 ? sw_deep_may_move(page, err) : 0;
	r = r < 0 ? r : gather(page, SW_PAGE_CHECKPOINTED, &gang, err);
	if (r < 0)
		return r;
	announce(page);
	r = gang.count > 0 ? sw_checkpoint_back(gang.processes, gang.count, pairs, count, err) : 0;
	/* Before its processes may look. */
	if (r == 0)
		note(page, pairs, count);
	for (size_t i = 0; i < gang.count; i++)
		if (!gang.processes[i].off)
			(void)mark(&gang, i, false);
	return r;
}
