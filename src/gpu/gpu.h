/* The GPUs of this machine: which there are, and what they are doing.
 *
 * They come from one of three sources, which the rest of the program does not tell apart. These are
 * NVIDIA's management library, a description file of GPUs that do not exist (see
 * examples/gpus.yaml), or nowhere.
 *
 * Invariants:
 *  1. What sw_gpu_source_open() found stays: same GPUs in the same order until
 *     sw_gpu_source_close(). A GPU that fails later fails its samples.
 *  2. No two GPUs have the same UUID.
 *  3. GPUs of one link group stand side by side, and groups are numbered 0, 1, 2, ... in that
 *     order.
 *
 * Calls into a driver take milliseconds, and longer when a GPU is sick. Not thread-safe.
 */
#ifndef SW_GPU_GPU_H
#define SW_GPU_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

#define SW_GPU_UUID_MAX 48
#define SW_GPUS_MAX 64
#define SW_GPU_PROCESSES_MAX 256 /* that a sample lists */

struct sw_gpu_info {
	char uuid[SW_GPU_UUID_MAX]; /* "GPU-0a1b2c3d-...", as CUDA_VISIBLE_DEVICES takes it */
	char name[96];
	char bus_id[24];       /* "0000:3b:00.0"; empty when it has none */
	uint64_t memory_bytes; /* 0: not known */
	uint32_t link_group;   /* GPUs with the same number reach each other over fast links */
	int32_t numa_node;     /* -1: not known */
	uint32_t number;       /* as the driver counts, and nvidia-smi shows */
	bool partitioned;      /* in MIG mode: the UUID of the whole GPU gives a job only its first part */
};

/* What a sample knows; the rest of its fields are zero. */
enum {
	SW_GPU_KNOWS_UTILISATION = 1 << 0, /* both kinds */
	SW_GPU_KNOWS_MEMORY = 1 << 1,
	SW_GPU_KNOWS_POWER = 1 << 2,
	SW_GPU_KNOWS_ENERGY = 1 << 3,
	SW_GPU_KNOWS_TEMPERATURE = 1 << 4,
	SW_GPU_KNOWS_SM_CLOCK = 1 << 5,
	SW_GPU_KNOWS_MEMORY_CLOCK = 1 << 6,
	SW_GPU_KNOWS_ECC = 1 << 7,
	SW_GPU_KNOWS_PROCESSES = 1 << 8,
};

struct sw_gpu_process {
	uint32_t pid;	       /* as the driver counts: in a container not necessarily as we do */
	uint64_t memory_bytes; /* 0: not known */
	bool draws;	       /* it is listed among those that draw, maybe beside those that compute */
};

struct sw_gpu_sample {
	uint32_t known;			   /* SW_GPU_KNOWS_... */
	uint32_t utilisation_milli;	   /* thousandths of the last moments in which a kernel ran */
	uint32_t memory_utilisation_milli; /* ... in which its memory was read or written */
	uint64_t memory_total_bytes;
	uint64_t memory_used_bytes;	/* by processes; with old drivers also what is reserved */
	uint64_t memory_reserved_bytes; /* by the driver; the rest is free */
	uint32_t power_mw;
	uint64_t energy_mj; /* since the driver was loaded */
	int32_t temperature_c;
	uint32_t sm_clock_mhz;
	uint32_t memory_clock_mhz;
	uint64_t ecc_corrected; /* errors since the driver was loaded */
	uint64_t ecc_uncorrected;
	uint32_t process_total; /* all that compute on it; of very many none is listed */
	uint32_t process_count; /* those listed: each once, those that draw too */
	struct sw_gpu_process processes[SW_GPU_PROCESSES_MAX];
};

struct sw_gpu_source;

/* For drivers that may never answer; all may be zero. */
struct sw_gpu_source_care {
	uint64_t skip; /* mask of GPUs, as the driver counts, that are not asked at all */
	/* while the driver is asked about one GPU: 1 + its number; 0: about none.
	 * NULL: it is not watched */
	_Atomic int *asking;
};

/* `source` is "auto" (NVML; without library or driver: no GPUs), "nvml" (an error without them),
 * "none", or the path of a description file. That there are no GPUs is no error. */
int sw_gpu_source_open(const char *source, struct sw_gpu_source **ret_gpus, struct sw_err *err);
int sw_gpu_source_open_with(const char *source, const struct sw_gpu_source_care *care, struct sw_gpu_source **ret_gpus, struct sw_err *err);
void sw_gpu_source_close(struct sw_gpu_source *gpus);
SW_DEFINE_FREEP(struct sw_gpu_source, sw_gpu_source_close)

uint32_t sw_gpu_source_count(const struct sw_gpu_source *gpus);
/* Lives as long as `gpus`. */
const struct sw_gpu_info *sw_gpu_source_info(const struct sw_gpu_source *gpus, uint32_t index);
/* One line for people: where the GPUs come from, or why there are none. */
const char *sw_gpu_source_about(const struct sw_gpu_source *gpus);
/* GPUs that the driver has and that do not answer it, or were not asked. */
uint32_t sw_gpu_source_missing(const struct sw_gpu_source *gpus);
/* Whether there are none because the driver is not there or does not answer, which may pass. */
bool sw_gpu_source_are_silent(const struct sw_gpu_source *gpus);

/* What GPU `index` does now. An error when it cannot be asked at all, say
 * because it fell off the bus. */
int sw_gpu_source_sample(struct sw_gpu_source *gpus, uint32_t index, struct sw_gpu_sample *ret_sample, struct sw_err *err);

#endif
