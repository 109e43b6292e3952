/* The page that a job's processes share with their coordinator: wishes in, figures
 * out. One file per job.
 *
 * The starter of the job makes the file (sw_page in src/agent) and hands its path over as
 * SHAREWELL_GPU; libsharewell-gpu.so, preloaded into each process, maps it. There is no message and
 * no daemon that must be alive. A wish is a store and a futex wake, and the kernel shows a death by
 * dropping a lock. The right to touch a job is the right to open its file.
 *
 * Locks are open file description locks on bytes of the file. Byte 0 is held by the coordinator
 * while it lives, and byte 1 + n by the process in slot n. The byte after those is held by a
 * process that measures something on a GPU, which no process waits for. The last one is held
 * together by processes that are about to use the job's GPUs. A coordinator that moves the job to
 * others holds it alone.
 *
 * Invariants:
 *  1. a slot is written by its process only, while it holds the slot's lock. After that, by a
 *     process that finds the lock free and clears the slot. But for `state` between
 *     SW_PAGE_SUSPENDED and SW_PAGE_CHECKPOINTED, which its coordinator writes;
 *  2. what a job holds on a GPU is the sum over its slots. A process raises its own figure first
 *     and looks at the sum then, so that the limit is never passed;
 *  3. every field is read and written with atomic operations, or before it is shared. UUIDs change
 *     only while all processes of the job are SW_PAGE_CHECKPOINTED and no other is about to use its
 *     GPUs. Then the job has moved, and what is known of each of its GPUs is true of another one;
 *  4. no other user opens a page: a process that can only read a file can lock it too. What
 *     jobs of other users must know stands in a second file (SW_PAGE_TOLD), which no process locks.
 */
#ifndef SHAREWELL_RUNTIME_H
#define SHAREWELL_RUNTIME_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <sharewell/job_class.h>

#define SW_PAGE_MAGIC 0x6567615077536877u
#define SW_PAGE_FORMAT 3u
#define SW_PAGE_GPUS 16u
#define SW_PAGE_SLOTS 1024u
#define SW_PAGE_NEIGHBOURS 8u
#define SW_PAGE_PATH 256u
#define SW_PAGE_GAPS 16u
#define SW_PAGE_DOOR (SW_PAGE_SLOTS + 2u) /* the byte of that last lock */
#define SW_PAGE_NO_LIMIT UINT64_MAX
#define SW_PAGE_NO_SHARE UINT32_MAX
#define SW_PAGE_ENV "SHAREWELL_GPU"
#define SW_PAGE_PLACES_ENV "SHAREWELL_GPU_PLACES" /* UUIDs of the job's GPUs when the process was started, in the order of the page */
/* Added to the page's path: where the job tells jobs of other users when it works. A file of the
 * shape of a page, in which only `pid`, `state` and what a watched process says of its idle times
 * stand. Where there is none, that stands in the page. */
#define SW_PAGE_TOLD "+told"
#define SW_PAGE_MOVES_ENV "SHAREWELL_GPU_MOVES" /* "no": the process's memory is counted, and stays where it is */

/* What the coordinator wants of the job. */
enum sw_page_want {
	SW_PAGE_RUN = 0,
	SW_PAGE_SUSPEND, /* stop at the next chance and free the GPU */
};

/* Where a process is. */
enum sw_page_state {
	SW_PAGE_UNUSED = 0,
	SW_PAGE_RUNNING,
	SW_PAGE_SUSPENDING,
	SW_PAGE_SUSPENDED,
	SW_PAGE_RESUMING,
	/* suspended, and taken off its GPUs by the driver: it makes no call into the driver until
	 * it is SW_PAGE_SUSPENDED again */
	SW_PAGE_CHECKPOINTED,
};

/* Why a wish could not be met; the process goes on as it was. */
enum sw_page_trouble {
	SW_PAGE_FINE = 0,
	SW_PAGE_NOT_DRAINED,	/* work on the GPU did not end in time, or a thread stayed inside the driver */
	SW_PAGE_CAPTURING,	/* a stream was being captured all the time */
	SW_PAGE_NO_HOST_MEMORY, /* nowhere to put the contents */
	SW_PAGE_NO_GPU_MEMORY,	/* others hold the GPU: stays suspended, or spilled */
	SW_PAGE_DRIVER_ERROR,
};

struct sw_page_gpu {
	uint8_t uuid[16];
	_Atomic uint64_t limit_bytes;	/* of the job on this GPU; SW_PAGE_NO_LIMIT */
	_Atomic uint64_t context_bytes; /* what a context takes there, as one of the processes found out; 0: not known */
	_Atomic uint64_t asked_bytes;	/* what its user allows at most, for coordinators; 0: no limit */
	/* What uses it past the runtime, as coordinators found out (src/share/outside.h). */
	_Atomic uint64_t outside_bytes;
	_Atomic uint32_t outside_processes;
	_Atomic int32_t outside_pid; /* of one of them */
	uint64_t reserved;
};

/* Of one process on one GPU. */
struct sw_page_use {
	_Atomic uint64_t charged_bytes; /* what counts against the limit: mapped there, plus context and pools */
	_Atomic uint64_t fixed_bytes;	/* the part of it that cannot be moved */
	_Atomic uint64_t host_bytes;	/* contents that are in host memory for now */
	_Atomic uint64_t peak_bytes;
};

struct sw_page_slot {
	_Atomic int32_t pid; /* in its own namespace */
	_Atomic uint32_t state;
	_Atomic uint32_t trouble;
	_Atomic uint32_t done_serial; /* the last wish that it has dealt with */
	_Atomic uint64_t launches;
	_Atomic uint64_t copies;
	_Atomic uint64_t waits;	      /* calls that found the gate closed */
	_Atomic uint64_t moved_bytes; /* in the last move */
	_Atomic int64_t drain_ns;     /* of the last suspend: until the GPU was idle */
	_Atomic int64_t move_ns;      /* of the last suspend or resume: copies and mapping */
	_Atomic uint64_t suspends, resumes;
	/* Of a watched process, by CLOCK_MONOTONIC. */
	_Atomic uint32_t busy;	       /* it has work on the GPU, or is about to */
	_Atomic uint32_t gaps;	       /* idle times that it had so far */
	_Atomic int64_t idle_since_ns; /* while not busy */
	/* Iterations, found in the sequence of launches; all 0 while none is. */
	_Atomic uint64_t iterations;	     /* how many ended so far */
	_Atomic int64_t iteration_ns;	     /* smoothed */
	_Atomic int64_t iteration_jitter_ns; /* mean distance from it */
	_Atomic uint64_t iteration_launches;
	_Atomic uint64_t iteration_peak_bytes, iteration_floor_bytes; /* on all GPUs, within the last one */
	_Atomic uint64_t wanted_bytes; /* for a context that it waits to make, since its GPU is full; 0: does not wait */
	_Atomic uint32_t wanted_gpu;
	/* It is suspended, and still gives host memory back that it does not need: a process that
	 * stops it now keeps that from others. */
	_Atomic uint32_t giving;
	uint64_t reserved[2];
	_Atomic int64_t gap_ns[SW_PAGE_GAPS]; /* how long the last of them were */
	struct sw_page_use gpus[SW_PAGE_GPUS];
};

struct sw_page {
	uint64_t magic;
	uint32_t format;
	uint32_t gpu_count;
	_Atomic uint32_t serial; /* a futex: counts wishes */
	_Atomic uint32_t want;
	_Atomic uint64_t host_budget_bytes; /* for contents in host memory, all processes together */
	_Atomic uint32_t changes;	    /* a futex: counts changes in the slots */
	_Atomic uint32_t share_milli;	    /* of the GPU's time that each process may take; 0: all; SW_PAGE_NO_SHARE: it stands still */
	_Atomic uint32_t yields;	    /* opportunistic: works only while none of its neighbours does */
	_Atomic uint32_t watched;	    /* guaranteed, beside a job that yields: it must say when it works */
	/* What its user asked for: for coordinators, of which there may be one after the other. */
	_Atomic uint8_t job_class;    /* enum sw_job_class; its processes look at it when they make streams */
	_Atomic uint8_t throttle;     /* number of the rule by which it keeps out of the way (src/share/throttle.h) */
	_Atomic uint8_t held;	      /* a person suspended it, so no coordinator resumes it */
	_Atomic uint8_t slice_s;      /* length of its turns where not all fit at once, in seconds; 0: the default */
	_Atomic uint32_t asked_milli; /* of the GPU's time; 0: all */
	_Atomic int64_t arrived_ns;   /* by CLOCK_MONOTONIC */
	_Atomic uint16_t urgent;      /* a wish is met at once, and not when the process holds least memory */
	_Atomic uint16_t profiled;    /* it is measured what it launches and copies (src/runtime/profile.h) */
	/* a process that will take the job's off their GPUs: let it, and its
	 * children, trace them; 0: none */
	_Atomic int32_t checkpointer;
	/* The pages of guaranteed jobs on the same GPUs, for one that yields. Written before
	 * `yields`; an empty path ends the list. */
	char neighbours[SW_PAGE_NEIGHBOURS][SW_PAGE_PATH];
	/* Where the machine's struct sw_host_ledger lies; empty: there is none. Written
	 * before the job starts. */
	char host_ledger[SW_PAGE_PATH];
	struct sw_page_gpu gpus[SW_PAGE_GPUS];
	struct sw_page_slot slots[SW_PAGE_SLOTS];
};

/* Both are as version 0.1 has them. Its jobs may outlive its agent, and a process of such a job
 * gets the library that is there when it starts. */
_Static_assert(sizeof(struct sw_page_slot) == 816, "format 3");
_Static_assert(offsetof(struct sw_page, format) == 8 && offsetof(struct sw_page, serial) == 16 && offsetof(struct sw_page, want) == 20,
	       "format 3");
_Static_assert(offsetof(struct sw_page, host_budget_bytes) == 24 && offsetof(struct sw_page, changes) == 32, "format 3");
_Static_assert(offsetof(struct sw_page, share_milli) == 36 && offsetof(struct sw_page, yields) == 40, "format 3");
_Static_assert(offsetof(struct sw_page, watched) == 44 && offsetof(struct sw_page, job_class) == 48, "format 3");
_Static_assert(offsetof(struct sw_page, throttle) == 49 && offsetof(struct sw_page, held) == 50, "format 3");
_Static_assert(offsetof(struct sw_page, slice_s) == 51 && offsetof(struct sw_page, asked_milli) == 52, "format 3");
_Static_assert(offsetof(struct sw_page, arrived_ns) == 56 && offsetof(struct sw_page, urgent) == 64, "format 3");
_Static_assert(offsetof(struct sw_page, profiled) == 66 && offsetof(struct sw_page, checkpointer) == 68, "format 3");
_Static_assert(offsetof(struct sw_page_gpu, limit_bytes) == 16 && offsetof(struct sw_page_gpu, asked_bytes) == 32, "format 3");
_Static_assert(offsetof(struct sw_page_gpu, outside_bytes) == 40 && sizeof(struct sw_page_use) == 32, "format 3");
_Static_assert(offsetof(struct sw_page_slot, done_serial) == 12 && offsetof(struct sw_page_slot, launches) == 16, "format 3");
_Static_assert(offsetof(struct sw_page_slot, suspends) == 64 && offsetof(struct sw_page_slot, iterations) == 96, "format 3");
_Static_assert(offsetof(struct sw_page_slot, wanted_bytes) == 144 && offsetof(struct sw_page_slot, giving) == 156, "format 3");
_Static_assert(offsetof(struct sw_page_slot, busy) == 80 && offsetof(struct sw_page_slot, gap_ns) == 176, "format 3");
_Static_assert(offsetof(struct sw_page_slot, gpus) == 304 && sizeof(struct sw_page_gpu) == 64, "format 3");
_Static_assert(offsetof(struct sw_page, neighbours) == 72 && offsetof(struct sw_page, host_ledger) == 2120, "format 3");
_Static_assert(offsetof(struct sw_page, gpus) == 2376 && offsetof(struct sw_page, slots) == 3400, "format 3");
_Static_assert(sizeof(struct sw_page) == 838984, "format 3");

/* The host memory that contents of GPUs take on this machine, of the programs of one user: one
 * file, which that user alone can open. What lies there and what is made ahead for it counts,
 * in bytes that the machine has really given. What those of other users take is written into it by
 * the agent, where one has jobs of several users (src/share/node.h).
 *
 * No process maps it: a program could shorten it, and a mapping would kill a process that looks at
 * it. Words are read and written one by one, as the kernel does in one piece. Byte n of it is
 * locked (open file description lock) by the process in slot n, for as long as that lives. A
 * process that finds the lock free may clear the slot. A process raises its own figure first and
 * looks at the sum then, so that `most_bytes` is never passed. Byte SW_HOST_LEDGER_SLOTS is locked,
 * to be read, by those that make some just now. While the driver pins memory, calls of every
 * program on the machine wait for it. */
#define SW_HOST_LEDGER_MAGIC 0x72676477536877u
#define SW_HOST_LEDGER_FORMAT 1u
#define SW_HOST_LEDGER_SLOTS 4096u
#define SW_HOST_LEDGER_RESERVE 16u /* a part of the machine's memory in so many is left to everything else, whatever the bound */

struct sw_host_ledger {
	struct sw_host_ledger_head {
		uint64_t magic, format;
		uint64_t most_bytes;	/* of all together */
		uint64_t reserve_bytes; /* that the machine must still have available when some is taken */
		/* when a process was last refused what it needs, by CLOCK_MONOTONIC: what
		 * is made ahead goes then */
		int64_t refused_ns;
		uint64_t others_bytes; /* that programs of other users hold, as far as it counts */
		int64_t others_ns;     /* when that was said, by CLOCK_MONOTONIC; 0: never */
		uint64_t reserved;
	} head;
	uint64_t slots[SW_HOST_LEDGER_SLOTS];
};
_Static_assert(sizeof(struct sw_host_ledger_head) == 64, "format 1");

#endif
