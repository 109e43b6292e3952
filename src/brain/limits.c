/* Limits: what a job may have of its GPUs, as a user set it while the cluster runs.
 *
 * A limit lasts for the job's life and goes with each of its runs. It binds the job, not the
 * scheduler. What the ledger keeps for the job stays kept, since the job may be given it back at
 * any time. What a run hears is the least of what a user set and of what the engine gave the job.
 */
#include <inttypes.h>

#include "base/number.h"
#include "brain/asked.h"
#include "brain/forget.h"
#include "brain/limits.h"
#include "brain/record.h"
#include "brain/runs.h"
#include "brain/state.h"

/* The memory of a GPU that it could have: the least of those it has now, else the largest
 * there is. 0: not known. */
static uint64_t gpu_memory_of(const struct sw_brain *brain, const struct sw_live *live)
{
	uint64_t bytes = 0;
	for (uint32_t r = 0; r < live->run_count; r++) {
		uint64_t here = brain->nodes.items[live->runs[r].node].shape.gpu_memory_bytes;
		bytes = r == 0 || here < bytes ? here : bytes;
	}
	for (size_t n = 0; live->run_count == 0 && n < brain->nodes.count; n++)
		if (brain->nodes.items[n].shape.gpu_memory_bytes > bytes)
			bytes = brain->nodes.items[n].shape.gpu_memory_bytes;
	return bytes;
}

static int check_memory(const struct sw_brain *brain, uint64_t job, uint64_t bytes, struct sw_err *err)
{
	const struct sw_live *live = &brain->jobs.items[job - 1];
	uint64_t all = gpu_memory_of(brain, live);
	uint64_t given = sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)(job - 1)})->gpu_memory_bytes;
	char asked[32], there[32];
	sw_format_bytes(bytes, asked);
	if (bytes > 0 && bytes < SW_LIMIT_LEAST_BYTES) {
		sw_err_set(err, SW_EINPUT, "cannot limit job %" PRIu64 " to %s of GPU memory", job, asked);
		sw_err_detail(err, "the driver alone needs %s", sw_format_bytes(SW_LIMIT_LEAST_BYTES, there));
	} else if (all > 0 && bytes > all) {
		sw_err_set(err, SW_EINPUT, "cannot limit job %" PRIu64 " to %s of GPU memory", job, asked);
		sw_err_detail(err, live->run_count > 0 ? "its GPU has %s" : "the largest GPU here has %s", sw_format_bytes(all, there));
	} else if (given > 0 && bytes > given) {
		sw_err_set(err, SW_EINPUT, "cannot limit job %" PRIu64 " to %s of GPU memory", job, asked);
		sw_err_detail(err, "it gets %s on each GPU, and others may use the rest", sw_format_bytes(given, there));
	} else {
		return 0;
	}
	sw_err_hint(err, "'none' lifts the limit.");
	return SW_EINPUT;
}

/* Only the GPU runtime holds a job to a limit. */
static int check_runtime(uint64_t job, const struct sw_live *live, struct sw_err *err)
{
	SW_CLEANUP(sw_job_request_freep) struct sw_job_request *request = NULL;
	int r = sw_asked_decode(live, &request, err);
	if (r < 0 || !request->bare_gpu)
		return r;
	sw_err_set(err, SW_EINPUT, "cannot limit job %" PRIu64, job);
	sw_err_detail(err, "it was submitted with --gpu-runtime off, and nothing else would hold it to a limit");
	sw_err_hint(err, "Submit it again without that option.");
	return SW_EINPUT;
}

int sw_brain_propose_limit(struct sw_brain *brain, const struct sw_user *user, uint64_t job, const struct sw_job_limit *limit,
			   sw_records *records, struct sw_err *err)
{
	const struct sw_live *live = sw_brain_live(brain, job);
	if (live == NULL)
		return sw_err_set(err, SW_ENOTFOUND, "there is no job %" PRIu64, job);
	if (!sw_brain_may_change(user, live))
		return sw_err_set(err, SW_EDENIED, "job %" PRIu64 " belongs to another user", job);
	if (live->ended_at != SW_TIME_NEVER) {
		sw_err_set(err, SW_EINPUT, "cannot limit job %" PRIu64, job);
		sw_err_detail(err, "it has ended");
		return SW_EINPUT;
	}
	int r = check_runtime(job, live, err);
	if (r == 0 && limit->sets_memory)
		r = check_memory(brain, job, limit->memory_bytes, err);
	if (r < 0)
		return r;
	json_t *body = json_pack("{s:I, s:i}", "job", (json_int_t)job, "by", (int)user->uid);
	if ((limit->sets_memory && json_object_set_new(body, "memory_bytes", json_integer((json_int_t)limit->memory_bytes)) != 0) ||
	    (limit->sets_share && json_object_set_new(body, "share_milli", json_integer(limit->share_milli % 1000)) != 0)) {
		json_decref(body);
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	return sw_record_push(records, SW_RECORD_LIMIT, body, err);
}

int sw_brain_apply_limit(struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	json_int_t job, memory = -1, share = -1;
	if (json_unpack(body, "{s:I, s?I, s?I}", "job", &job, "memory_bytes", &memory, "share_milli", &share) != 0)
		return sw_err_set(err, SW_EBUG, "a limit record lacks its job");
	struct sw_live *live = sw_brain_live(brain, (uint64_t)job);
	if (sw_brain_has_left(brain, job))
		return 0; /* in the meantime */
	if (live == NULL || memory > (json_int_t)SW_JOB_BYTES_MAX || share >= 1000)
		return sw_err_set(err, SW_EBUG, "a limit record names job %lld, which is not there, or cannot have it", (long long)job);
	if (live->ended_at != SW_TIME_NEVER)
		return 0; /* in the meantime */
	if (memory >= 0)
		live->limit_bytes = (uint64_t)memory;
	if (share >= 0)
		live->limit_milli = (uint32_t)share;
	sw_brain_touch(brain, live);
	return 0;
}

void sw_brain_limit(const struct sw_brain *brain, uint32_t id, struct sw_want *want)
{
	const struct sw_live *live = &brain->jobs.items[id];
	const struct sw_job *job = sw_engine_job(brain->engine, (struct sw_job_id){id});
	uint64_t bytes = job->paused ? sw_job_floor(job) : job->gpu_memory_bytes;
	uint32_t milli = job->compute_milli < 1000 ? job->compute_milli : 0;
	want->gpu_limit_bytes = live->limit_bytes > 0 && (bytes == 0 || live->limit_bytes < bytes) ? live->limit_bytes : bytes;
	want->paused = job->paused;
	want->upgraded = job->job_class == SW_CLASS_GUARANTEED && job->promotions > 0;
	want->gpu_share_milli = live->limit_milli > 0 && (milli == 0 || live->limit_milli < milli) ? live->limit_milli : milli;
}
