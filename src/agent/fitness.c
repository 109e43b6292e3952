#include "agent/fitness.h"

#include <stdio.h>
#include <string.h>

#define MS INT64_C(1000000)
#define FREE_NS (5000 * MS)
#define ENDING_NS (10000 * MS)
#define GIB (UINT64_C(1) << 30)

enum { FAILURES = 2, HIDDEN_LOOKS = 3 };

/* As the kernel cuts them off, at 15 bytes. */
static const char *const services[] = {"nvidia-persiste", "nvidia-cuda-mps", "nvidia-smi",   "nv-hostengine",
				       "nvidia-powerd",	  "nvtop",	     "dcgm-exporter"};

bool sw_fitness_is_service(const char *program)
{
	for (size_t i = 0; i < sizeof services / sizeof services[0]; i++)
		if (strcmp(services[i], program) == 0)
			return true;
	return false;
}

/* ---- what is on it */

/* The one that was seen last the longest ago. */
static struct sw_fitness_stranger *stalest(struct sw_fitness_gpu *gpu)
{
	struct sw_fitness_stranger *found = &gpu->strangers[0];
	for (uint32_t s = 1; s < gpu->stranger_count; s++)
		if (gpu->strangers[s].last_ns < found->last_ns)
			found = &gpu->strangers[s];
	return found;
}

/* Its place, made if it is new; NULL: there are too many at this look, and one
 * more makes no difference. */
static struct sw_fitness_stranger *see(struct sw_fitness_gpu *gpu, const struct sw_lodger_view *is, int64_t now_ns, int64_t at_ns)
{
	struct sw_fitness_stranger *seen = NULL;
	for (uint32_t s = 0; s < gpu->stranger_count; s++)
		if (gpu->strangers[s].is.pid == is->pid)
			seen = &gpu->strangers[s];
	if (seen == NULL) {
		seen = gpu->stranger_count < SW_FITNESS_STRANGERS ? &gpu->strangers[gpu->stranger_count++] : stalest(gpu);
		if (seen->last_ns == now_ns)
			return NULL;
		*seen = (struct sw_fitness_stranger){.first_ns = now_ns, .since_ns = at_ns};
	}
	/* One that is ending is remembered as what it was. */
	if (is->kind != SW_LODGER_ENDING || seen->is.pid == 0)
		seen->is = *is;
	seen->is.memory_bytes = is->memory_bytes;
	seen->last_ns = now_ns;
	return seen;
}

static void note_lodgers(struct sw_fitness *fitness, struct sw_fitness_gpu *gpu, int64_t now_ns, int64_t at_ns,
			 const struct sw_fitness_look *look)
{
	for (size_t l = 0; l < look->lodger_count; l++) {
		const struct sw_lodger_view *lodger = &look->lodgers[l];
		bool is_small = lodger->is_light && lodger->memory_bytes < fitness->small_bytes;
		if ((lodger->kind != SW_LODGER_STRANGER && lodger->kind != SW_LODGER_ENDING) || is_small)
			continue;
		struct sw_fitness_stranger *seen = see(gpu, lodger, now_ns, at_ns);
		if (seen != NULL)
			seen->counts |= lodger->kind == SW_LODGER_STRANGER || now_ns - seen->first_ns >= ENDING_NS;
	}
}

/* What processes hold that the driver lists by numbers of another namespace, where no run of
 * ours can be among them. */
static uint64_t foreign_bytes(const struct sw_fitness *fitness, const struct sw_fitness_look *look)
{
	uint64_t bytes = 0;
	for (size_t l = 0; l < look->lodger_count && !look->has_unseen; l++) {
		const struct sw_lodger_view *lodger = &look->lodgers[l];
		if (lodger->kind == SW_LODGER_HIDDEN && (!lodger->is_light || lodger->memory_bytes >= fitness->small_bytes))
			bytes += lodger->memory_bytes > 0 ? lodger->memory_bytes : 1;
	}
	return bytes;
}

/* Memory in use that nothing here accounts for; 0: none, or it cannot be told. */
static uint64_t hidden_bytes(const struct sw_fitness *fitness, const struct sw_fitness_look *look)
{
	uint64_t listed = 0, foreign = foreign_bytes(fitness, look);
	if (!look->knows_memory || look->unseen_unknown)
		return foreign;
	for (size_t l = 0; l < look->lodger_count; l++) {
		if (look->lodgers[l].kind == SW_LODGER_HIDDEN)
			continue;
		if (look->lodgers[l].memory_bytes == 0)
			return foreign; /* it holds some of it */
		listed += look->lodgers[l].memory_bytes;
	}
	/* Contexts and modules are not in what runs say they hold, and older drivers count
	 * their own share as used. */
	uint64_t allowed = listed + look->unseen_bytes / 4 * 5 + (look->has_unseen ? GIB : 0) + fitness->small_bytes +
			   (look->reserved_bytes == 0 ? GIB : 0);
	uint64_t beyond = look->used_bytes > allowed ? look->used_bytes - listed - look->unseen_bytes : 0;
	return beyond > foreign ? beyond : foreign;
}

static void note_hidden(struct sw_fitness *fitness, struct sw_fitness_gpu *gpu, int64_t now_ns, int64_t at_ns,
			const struct sw_fitness_look *look)
{
	struct sw_lodger_view hidden = {.kind = SW_LODGER_HIDDEN, .memory_bytes = hidden_bytes(fitness, look)};
	gpu->hidden_looks = hidden.memory_bytes > 0 ? gpu->hidden_looks + 1 : 0;
	/* At the first look there is no run that has just ended. */
	bool is_sure = gpu->hidden_looks >= HIDDEN_LOOKS || (gpu->hidden_looks > 0 && gpu->looks == 0 && !look->has_unseen);
	struct sw_fitness_stranger *seen = is_sure ? see(gpu, &hidden, now_ns, at_ns) : NULL;
	if (seen != NULL)
		seen->counts = true;
}

static void forget_gone(struct sw_fitness_gpu *gpu, int64_t now_ns)
{
	uint32_t kept = 0;
	for (uint32_t s = 0; s < gpu->stranger_count; s++)
		if (now_ns - gpu->strangers[s].last_ns < FREE_NS)
			gpu->strangers[kept++] = gpu->strangers[s];
	gpu->stranger_count = kept;
}

/* ---- whether it answers */

static void note_answer(struct sw_fitness_gpu *gpu, int64_t now_ns, int64_t at_ns, const char *silent)
{
	gpu->failures = silent != NULL ? gpu->failures + 1 : 0;
	if (gpu->failures >= FAILURES || (gpu->failures > 0 && gpu->looks == 0)) {
		if (!gpu->dead)
			gpu->dead_since_ns = at_ns;
		gpu->dead = true;
		gpu->dead_last_ns = now_ns;
		snprintf(gpu->why, sizeof gpu->why, "%s", silent);
	} else if (gpu->dead && now_ns - gpu->dead_last_ns >= FREE_NS) {
		gpu->dead = false;
	}
}

void sw_fitness_note(struct sw_fitness *fitness, uint32_t index, int64_t now_ns, int64_t at_ns, const struct sw_fitness_look *look)
{
	struct sw_fitness_gpu *gpu = &fitness->gpus[index];
	if (look->excluded && !gpu->excluded)
		gpu->excluded_since_ns = at_ns;
	gpu->excluded = look->excluded;
	note_answer(gpu, now_ns, at_ns, look->silent);
	if (look->silent == NULL && fitness->rule != SW_STRANGERS_IGNORE) {
		note_lodgers(fitness, gpu, now_ns, at_ns, look);
		note_hidden(fitness, gpu, now_ns, at_ns, look);
		forget_gone(gpu, now_ns);
	}
	gpu->looks += gpu->looks < UINT32_MAX;
}

/* ---- telling */

static void tell_strangers(struct sw_fitness *fitness, const struct sw_fitness_gpu *gpu, const char *uuid, struct sw_sync_shut *shut)
{
	for (uint32_t s = 0; s < gpu->stranger_count; s++) {
		const struct sw_fitness_stranger *seen = &gpu->strangers[s];
		if (!seen->counts)
			continue;
		if (shut->gpu == NULL || seen->since_ns < shut->since_ns)
			*shut = (struct sw_sync_shut){.gpu = uuid, .why = SW_SHUT_STRANGER, .since_ns = seen->since_ns};
		struct sw_sync_stranger *told = fitness->told.count < SW_SYNC_STRANGERS_MAX ? sw_vec_push(&fitness->told) : NULL;
		if (told != NULL)
			*told = (struct sw_sync_stranger){
				.gpu = uuid,
				.pid = seen->is.pid,
				.user = seen->is.user[0] != '\0' ? seen->is.user : NULL,
				.program = seen->is.program[0] != '\0' ? seen->is.program : NULL,
				.memory_bytes = seen->is.memory_bytes,
				.since_ns = seen->since_ns,
			};
	}
}

void sw_fitness_tell(struct sw_fitness *fitness, const struct sw_gpu_source *gpus, struct sw_sync *sync)
{
	fitness->shut.count = fitness->told.count = 0;
	for (uint32_t g = 0; g < sw_gpu_source_count(gpus); g++) {
		const struct sw_fitness_gpu *gpu = &fitness->gpus[g];
		const char *uuid = sw_gpu_source_info(gpus, g)->uuid;
		struct sw_sync_shut shut = {0};
		tell_strangers(fitness, gpu, uuid, &shut);
		if (fitness->rule == SW_STRANGERS_SHARE)
			shut.gpu = NULL;
		if (gpu->excluded)
			shut = (struct sw_sync_shut){uuid, SW_SHUT_EXCLUDED, gpu->excluded_since_ns, NULL};
		else if (gpu->dead)
			shut = (struct sw_sync_shut){uuid, SW_SHUT_DEAD, gpu->dead_since_ns, gpu->why};
		struct sw_sync_shut *slot = shut.gpu != NULL ? sw_vec_push(&fitness->shut) : NULL;
		if (slot != NULL)
			*slot = shut;
	}
	sync->looked = true;
	sync->shut = fitness->shut.items;
	sync->shut_count = fitness->shut.count;
	sync->strangers = fitness->told.items;
	sync->stranger_count = fitness->told.count;
}
