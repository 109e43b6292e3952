/* A run's GPU page, as its supervisor keeps it. */
#ifndef SW_AGENT_SUPERVISOR_GPU_H
#define SW_AGENT_SUPERVISOR_GPU_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct sw_supervisor;

/* What was asked of the processes that use GPUs, and not seen to be done yet. */
enum sw_gpu_wish {
	SW_GPU_WISH_NONE,
	SW_GPU_WISH_AWAY, /* their memory out of the GPUs */
	SW_GPU_WISH_BACK,
};

/* The run's GPU page (src/share): `gpu` in its folder, or where that points. */
struct sw_supervisor_gpu {
	struct sw_share_page *page; /* NULL: it runs without the GPU runtime */
	char path[PATH_MAX];
	uint64_t host_bytes;  /* that contents of its GPUs may take */
	uint64_t limit_bytes; /* of each GPU's memory, as it was told last */
	enum sw_gpu_wish wish;
	uint32_t number; /* of that wish */
	int64_t asked_at_ns;
	int64_t until_ns;   /* it is waited for */
	int64_t waited_ns;  /* before that, for wishes to leave that were taken back; since it left last */
	int64_t look_at_ns; /* SW_NEVER: nothing to look for */
	char detail[256];   /* why its GPU memory is not where it should be; "": it is */
	char moved[100];    /* how the last move went, for people */
};

/* Makes the page, before the first process of the job. Where that cannot be, the run
 * goes without and says so. */
void sw_supervisor_gpu_open(struct sw_supervisor *supervisor);
void sw_supervisor_gpu_close(struct sw_supervisor *supervisor);
/* The page of a run whose supervisor died. */
void sw_supervisor_gpu_remove(int folder);
/* Asks for its memory to leave the GPUs, or to come back. */
void sw_supervisor_gpu_leave(struct sw_supervisor *supervisor, int64_t now_ns);
void sw_supervisor_gpu_return(struct sw_supervisor *supervisor, int64_t now_ns);
/* Whether the processes may be stopped: their memory is away, or will not go. */
bool sw_supervisor_gpu_has_left(struct sw_supervisor *supervisor, int64_t now_ns);
void sw_supervisor_gpu_tick(struct sw_supervisor *supervisor, int64_t now_ns);
/* Why its GPU memory is not where it should be; "": it is. */
void sw_supervisor_gpu_say(struct sw_supervisor *supervisor, const char *detail);

/* "BYTES MILLI WATCHED RUN...": see control.h. */
void sw_supervisor_gpu_terms(struct sw_supervisor *supervisor, const char *words);

#endif
