/* A small model of one GPU and the jobs on it, for the coordinator's tests: they obey its orders as
 * the runtime does, with its delays.
 *
 * Time goes in steps of 1 ms. A job computes for a while and is idle for a while, again and
 * again; computing takes longer while others compute, and while part of its memory is in host
 * memory. A limit is heard by a job at its next look, 100 ms later at most; memory that was
 * spilled comes back at a look too.
 */
#ifndef TEST_SHARE_GPU_MODEL_H
#define TEST_SHARE_GPU_MODEL_H

#include "share/coordinate.h"

enum { MODEL_JOBS = 8, MODEL_ITERATIONS = 4096 };

struct model_job {
	struct sw_coordinate_job seen; /* as the coordinator is told */
	bool present, states_iterations;
	double work_ms, idle_ms;	  /* of an iteration, alone */
	uint64_t budget_bytes;		  /* of host memory */
	struct sw_coordinate_order order; /* the last one */
	double left_ms;			  /* of what it does now */
	bool idle;			  /* ... which is waiting for its own input */
	double kernel_ms;		  /* of one that yields: left of the kernel that it has started */
	double begun_ms, smooth_ms;
	double last_ms[MODEL_ITERATIONS];
	uint32_t iterations, ooms;
	double worked_ms, progress_ms; /* GPU time that it had, and what that was worth */
};

struct model {
	void (*decide)(
		struct model *model); /* gives the jobs their orders, every tick_ms; NULL: sw_coordinate(), with `kept`, every 100 ms */
	double tick_ms;
	struct sw_coordinate_gpu gpu;
	struct sw_coordination kept;
	struct model_job jobs[MODEL_JOBS];
	double now_ms;
	uint64_t noise;
};

struct model model_new(uint64_t capacity_bytes);
/* Returns its place. */
struct model_job *model_add(struct model *model, enum sw_job_class class, double work_ms, double idle_ms, uint64_t bytes);
/* More memory, which goes to the host where the GPU has none; what finds no place at
 * all is counted as OOM. */
void model_get(struct model *model, struct model_job *job, uint64_t bytes);
void model_put(struct model_job *job, uint64_t bytes);
void model_run(struct model *model, double for_ms);
/* Mean time of an iteration from number `first` on. */
double model_mean(const struct model_job *job, uint32_t first);

#endif
