#include "unit/share/gpu_model.h"

#include <string.h>

static const double look_ms = 100, kernel_ms = 2, host_slowdown = 8;

struct model model_new(uint64_t capacity_bytes)
{
	return (struct model){.tick_ms = 100, .gpu = {.capacity_bytes = capacity_bytes}, .now_ms = 1000, .noise = 7};
}

static double noise(struct model *model)
{
	model->noise = model->noise * 6364136223846793005u + 1442695040888963407u;
	return 0.995 + 0.01 * (double)(model->noise >> 40) / (double)(1 << 24);
}

static uint64_t free_bytes(const struct model *model)
{
	uint64_t used = model->gpu.foreign_bytes;
	for (unsigned i = 0; i < MODEL_JOBS; i++)
		used += model->jobs[i].present ? model->jobs[i].seen.charged_bytes : 0;
	return model->gpu.capacity_bytes - used;
}

struct model_job *model_add(struct model *model, enum sw_job_class class, double work_ms, double idle_ms, uint64_t bytes)
{
	static uint64_t ids = 10;
	unsigned i = 0;
	while (model->jobs[i].present)
		i++;
	struct model_job *job = &model->jobs[i];
	*job = (struct model_job){.present = true,
				  .states_iterations = true,
				  .work_ms = work_ms,
				  .idle_ms = idle_ms,
				  .left_ms = work_ms,
				  .begun_ms = model->now_ms,
				  .budget_bytes = UINT64_MAX,
				  .order = {.limit_bytes = SW_COORDINATE_NO_LIMIT, .share_milli = SW_THROTTLE_ALL},
				  .seen = {.id = ids, .arrival = ids, .class = class, .asked_bytes = SW_COORDINATE_NO_LIMIT}};
	ids++;
	model_get(model, job, bytes);
	return job;
}

void model_get(struct model *model, struct model_job *job, uint64_t bytes)
{
	uint64_t free = free_bytes(model), held = job->seen.charged_bytes, limit = job->order.limit_bytes;
	uint64_t room = limit > held ? limit - held : 0, on_gpu = bytes < free ? bytes : free;
	on_gpu = on_gpu < room ? on_gpu : room;
	if (bytes - on_gpu > job->budget_bytes - job->seen.host_bytes) {
		job->ooms++;
		return;
	}
	job->seen.charged_bytes += on_gpu;
	job->seen.host_bytes += bytes - on_gpu;
	job->seen.peak_bytes = job->seen.charged_bytes > job->seen.peak_bytes ? job->seen.charged_bytes : job->seen.peak_bytes;
}

void model_put(struct model_job *job, uint64_t bytes)
{
	uint64_t from_host = bytes < job->seen.host_bytes ? bytes : job->seen.host_bytes;
	job->seen.host_bytes -= from_host;
	job->seen.charged_bytes -= bytes - from_host;
}

/* What the runtime's attendant does at a look. */
static void look(struct model *model, struct model_job *job)
{
	struct sw_coordinate_job *seen = &job->seen;
	uint64_t limit = job->order.suspend ? seen->fixed_bytes : job->order.limit_bytes;
	if (seen->charged_bytes > limit) {
		seen->host_bytes += seen->charged_bytes - limit;
		seen->charged_bytes = limit;
	} else if (seen->host_bytes > 0 && !job->order.suspend) {
		uint64_t back = limit - seen->charged_bytes, free = free_bytes(model);
		back = back < free ? back : free;
		back = back < seen->host_bytes ? back : seen->host_bytes;
		seen->charged_bytes += back;
		seen->host_bytes -= back;
		seen->peak_bytes = seen->charged_bytes > seen->peak_bytes ? seen->charged_bytes : seen->peak_bytes;
	}
	seen->suspended = job->order.suspend;
}

static bool can_work(const struct model_job *job)
{
	return job->present && !job->seen.suspended && !job->idle;
}

/* One that yields starts a kernel only while no guaranteed job computes; what
 * it has started, it ends. */
static double wish_of(const struct model *model, struct model_job *job)
{
	if (!can_work(job))
		return 0;
	if (!job->order.yields)
		return job->order.share_milli / 1000.0;
	bool busy = false;
	for (unsigned i = 0; i < MODEL_JOBS; i++)
		busy = busy || (model->jobs[i].seen.class == SW_CLASS_GUARANTEED && can_work(&model->jobs[i]));
	if (job->kernel_ms <= 0 && !busy && job->order.share_milli > 0)
		job->kernel_ms = kernel_ms;
	return job->kernel_ms > 0 ? 1 : 0;
}

static void end_iteration(struct model *model, struct model_job *job)
{
	double took = model->now_ms - job->begun_ms;
	if (job->iterations < MODEL_ITERATIONS)
		job->last_ms[job->iterations] = took;
	job->iterations++;
	job->smooth_ms = job->smooth_ms <= 0 ? took : job->smooth_ms * 0.75 + took * 0.25;
	job->begun_ms = model->now_ms;
	if (job->states_iterations) {
		job->seen.iterations = job->iterations;
		job->seen.iteration_ns = (int64_t)(job->smooth_ms * 1e6);
	}
}

static void advance(struct model *model, struct model_job *job, double rate)
{
	if (!job->present || job->seen.suspended)
		return;
	double demand = (double)(job->seen.charged_bytes + job->seen.host_bytes);
	double speed = job->seen.host_bytes == 0 ? 1 : 1 / (1 + (host_slowdown - 1) * (double)job->seen.host_bytes / demand);
	job->left_ms -= job->idle ? 1 : rate * speed;
	if (!job->idle) {
		job->worked_ms += rate;
		job->progress_ms += rate * speed;
		job->seen.launches = (uint64_t)(job->progress_ms * 4);
		job->kernel_ms -= rate;
	}
	if (job->left_ms > 0)
		return;
	if (job->idle || job->idle_ms <= 0)
		end_iteration(model, job);
	job->idle = !job->idle && job->idle_ms > 0;
	job->left_ms += (job->idle ? job->idle_ms : job->work_ms) * noise(model);
}

/* Jobs that compute at the same time divide the GPU by what each may take. */
static void step(struct model *model)
{
	double wishes[MODEL_JOBS], sum = 0;
	for (unsigned i = 0; i < MODEL_JOBS; i++) {
		wishes[i] = wish_of(model, &model->jobs[i]);
		sum += wishes[i];
	}
	model->now_ms += 1;
	for (unsigned i = 0; i < MODEL_JOBS; i++)
		advance(model, &model->jobs[i], sum > 1 ? wishes[i] / sum : wishes[i]);
}

static void coordinate(struct model *model)
{
	struct sw_coordinate_job jobs[MODEL_JOBS];
	struct sw_coordinate_order orders[MODEL_JOBS];
	unsigned places[MODEL_JOBS], count = 0;
	for (unsigned i = 0; i < MODEL_JOBS; i++)
		if (model->jobs[i].present) {
			places[count] = i;
			jobs[count++] = model->jobs[i].seen;
		}
	sw_coordinate(&model->kept, &model->gpu, jobs, count, (int64_t)(model->now_ms * 1e6), orders);
	for (unsigned i = 0; i < count; i++)
		model->jobs[places[i]].order = orders[i];
}

void model_run(struct model *model, double for_ms)
{
	for (double end = model->now_ms + for_ms; model->now_ms < end;) {
		if ((uint64_t)model->now_ms % (uint64_t)model->tick_ms == 0)
			(model->decide != NULL ? model->decide : coordinate)(model);
		/* Looks are not in step with the coordinator, nor with each other. */
		for (unsigned i = 0; i < MODEL_JOBS; i++)
			if (model->jobs[i].present && ((uint64_t)model->now_ms + i * 13) % (uint64_t)look_ms == 50)
				look(model, &model->jobs[i]);
		step(model);
	}
}

double model_mean(const struct model_job *job, uint32_t first)
{
	double sum = 0;
	uint32_t end = job->iterations < MODEL_ITERATIONS ? job->iterations : MODEL_ITERATIONS;
	for (uint32_t i = first; i < end; i++)
		sum += job->last_ms[i];
	return end > first ? sum / (end - first) : 0;
}
