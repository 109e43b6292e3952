/* What is known about a model before it runs: how long an iteration takes and what it needs. Also
 * how much it minds its neighbours and a scattered placement.
 *
 * Profiles are data (data/profiles.yaml, also inside the program), each with its source. A name
 * without a profile gets the file's default, and the profile says so. Everything is an integer:
 * nanoseconds, bytes, thousandths.
 *
 * Invariants of a loaded profile:
 *  1. use_milli[] <= 1000; 1 <= busy_milli <= 1000; placement_milli[] >= 1000 and does not fall
 *     with distance; largest_tensor_bytes <= model_bytes.
 *  2. scaling[] and totals[] ascend in gpus and batch; scaling starts at 2 GPUs (one GPU
 *     is 1000 by definition).
 *  3. names and aliases are unique among all profiles, case ignored.
 */
#ifndef SW_CONTENTION_PROFILE_H
#define SW_CONTENTION_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

/* What a job uses of a GPU and of the share of the host that goes with one
 * GPU, as part of the whole. */
enum sw_profile_use {
	SW_USE_SM,
	SW_USE_MEM_PIPE,
	SW_USE_L2,
	SW_USE_DRAM_READ,
	SW_USE_DRAM_WRITE,
	SW_USE_PCIE,
	SW_USE_HOST_CPU,
	SW_USE_HOST_MEM, /* a capacity, unlike the others, which are rates */
	SW_USE_COUNT,
};

/* How far apart a job's GPUs are: the smallest thing that holds all of them. */
enum sw_profile_spread {
	SW_SPREAD_GROUP,   /* one NVLink or PCIe group; also a job of one GPU */
	SW_SPREAD_NODE,	   /* one node */
	SW_SPREAD_RACK,	   /* one rack, that is, one InfiniBand domain */
	SW_SPREAD_CLUSTER, /* several racks */
	SW_SPREAD_COUNT,
};

#define SW_PROFILE_SCALING_MAX 12
#define SW_PROFILE_TOTALS_MAX 12
/* What GPUs that jobs hold are busy on average, in time, as nvidia-smi counts:
 * Microsoft's Philly, 75 days. */
#define SW_PROFILE_BUSY_MILLI 520u

struct sw_profile {
	const char *name;
	const char *source;
	uint32_t number;	       /* 1 to 2^31 - 1, from the name alone: the same in every file and version. 0: the default's */
	bool is_default;	       /* this model has no profile */
	bool is_own;		       /* put over the others, not built in */
	bool estimated;		       /* the use vector comes from the model's family, not from a measurement of this model */
	int64_t iteration_ns;	       /* on one GPU, alone */
	uint64_t mem_persistent_bytes; /* of the GPU: context, weights, gradients, optimizer state */
	uint64_t mem_ephemeral_bytes;  /* of the GPU: what an iteration allocates on top and gives back */
	uint64_t model_bytes;	       /* parameters; where the source lists only large tensors, the sum of those */
	uint64_t largest_tensor_bytes;
	uint16_t use_milli[SW_USE_COUNT];
	uint16_t
		/* of the time alone, in which the GPU has work of this job; SW_PROFILE_BUSY_MILLI
		 * or more where it was not measured */
		busy_milli;
	bool busy_known;			   /* it was measured, of this model or of one that it is like */
	uint32_t placement_milli[SW_SPREAD_COUNT]; /* run time relative to the best placement */
	struct sw_profile_scaling {
		uint32_t gpus;
		uint32_t speed_milli; /* progress relative to one GPU */
	} scaling[SW_PROFILE_SCALING_MAX];
	uint32_t scaling_count;
	struct sw_profile_total {
		uint32_t batch;
		int64_t total_ns; /* from start to finish on one GPU with this global batch */
	} totals[SW_PROFILE_TOTALS_MAX];
	uint32_t totals_count; /* 0: how much work such a job is, only its trace knows */
};

struct sw_profiles;

/* `name` is used in messages; the text is copied. */
int sw_profiles_parse(const char *name, const char *text, size_t size, struct sw_profiles **ret_profiles, struct sw_err *err);
/* The profiles inside the program. */
int sw_profiles_load_default(struct sw_profiles **ret_profiles, struct sw_err *err);
void sw_profiles_free(struct sw_profiles *profiles);
SW_DEFINE_FREEP(struct sw_profiles, sw_profiles_free)

/* One more profile, over those that are there. Its name and `alias` (NULL: none) find it from now
 * on. So does its number, which follows from its name. One that was put under the same name before,
 * or is built in under it, is replaced. All of it is copied; what was found before is no longer
 * valid. */
int sw_profiles_put(struct sw_profiles *profiles, const struct sw_profile *profile, const char *alias, struct sw_err *err);

/* A copy, to put others over. `base` outlives it. */
int sw_profiles_copy(const struct sw_profiles *base, struct sw_profiles **ret_profiles, struct sw_err *err);
/* Makes it the copy of `base` again, with those over it that were put there by their names and that
 * `keeps` wants. On error all is as it was. */
int sw_profiles_restore(struct sw_profiles *profiles, const struct sw_profiles *base,
			bool (*keeps)(void *user, const struct sw_profile *profile), void *user, struct sw_err *err);

/* The profile of a model by its name or an alias, case ignored; the default (is_default) for
 * all others. Never NULL. A binary search: callers with many jobs still do best to ask once
 * for each distinct name. */
const struct sw_profile *sw_profiles_find(const struct sw_profiles *profiles, const char *model);

/* The same for a job that also states its batch size. It is the profile of "MODEL (batch size N)"
 * where there is one, as Gavel names its job types. Else, and for batch 0, that of the model. */
const struct sw_profile *sw_profiles_find_batch(const struct sw_profiles *profiles, const char *model, uint32_t batch);

/* In the order of the file; NULL behind the last. The default is not among them. */
const struct sw_profile *sw_profiles_at(const struct sw_profiles *profiles, size_t index);

/* The profile of this number; the default where no profile has it. A walk over all. */
const struct sw_profile *sw_profiles_by_number(const struct sw_profiles *profiles, uint32_t number);

/* The skew of Tiresias: how much of the model is its largest tensor. */
uint32_t sw_profile_skew_milli(const struct sw_profile *profile);

/* How busy it keeps a GPU, alone: the rate of it that it uses most. */
uint32_t sw_profile_gpu_use_milli(const struct sw_profile *profile);

/* Progress on `gpus` GPUs in the best placement, relative to one GPU; between known sizes on a
 * straight line, beyond the last one flat. */
uint64_t sw_profile_speed_milli(const struct sw_profile *profile, uint32_t gpus);

/* Run time with the GPUs spread like `spread` relative to the run time that a trace states, >=
 * 1000. `best` is the closest that this cluster can hold so many GPUs. What a trace says about a
 * job of 16 GPUs on nodes of 8 already contains the way between two nodes. */
uint32_t sw_profile_placement_milli(const struct sw_profile *profile, enum sw_profile_spread spread, enum sw_profile_spread best);

/* How long a job takes whose trace gives no duration. It is known from its iterations (0: unknown),
 * else from the total of its model and global batch (0: unknown, the first total). SW_ENOTFOUND
 * when neither is known, SW_ELIMIT when the result does not fit an int64. */
int sw_profile_duration(const struct sw_profile *profile, int64_t iterations, uint32_t batch, uint32_t gpus, int64_t *ret_ns);

#endif
