/* A brain and the agent of its one node, which has a few GPUs of 80 GiB; shortest job first. For
 * the tests of runs that stand still or move. After each test the journal is applied to a new
 * brain, which must give the same state. */
#ifndef SW_TEST_BENCH_H
#define SW_TEST_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"
#include "brain/brain.h"

#define NO_WISH ((enum sw_want_kind)99)

static const struct sw_brain_config config = {
	.policy = "srtf",
	.placement = "pack",
	.silence_ns = 30 * SW_NS_PER_S,
	.silence_margin_ns = 5 * SW_NS_PER_S,
	.retry_backoff_ns = 10 * SW_NS_PER_S,
};
static const struct sw_user alice = {.uid = 1000, .gid = 1000};

struct bench {
	const struct sw_brain_config *config;
	uint32_t gpus; /* of the node */
	struct sw_brain *brain;
	SW_VEC(struct kept {
		sw_ns at;
		struct sw_record record;
	})
	journal;
	sw_ns now;
	uint64_t number, have;
	struct sw_sync_run runs[8];
	size_t run_count;
	bool frees;			  /* runs leave their GPUs' memory to others while they are suspended */
	struct sw_answer_message *answer; /* the last one */
};

static inline void apply_all(struct bench *bench, sw_records *records, uint64_t *ret_job)
{
	struct sw_err err = {0};
	for (size_t r = 0; r < records->count; r++) {
		if (sw_brain_apply_record(bench->brain, bench->now, &records->items[r], ret_job, &err) < 0)
			fail_msg("%s: %s", err.fact, err.detail);
		*sw_vec_push(&bench->journal) = (struct kept){bench->now, records->items[r]};
	}
	sw_vec_free(records);
	if (sw_brain_validate(bench->brain, &err) < 0)
		fail_msg("%s", err.fact);
}

/* What the agent says of its runs reaches the controller; what it hears back is in
 * bench->answer. */
static inline void sync_now(struct bench *bench)
{
	struct sw_sync_gpu gpus[] = {{.uuid = "GPU-0", .name = "g", .memory_bytes = UINT64_C(80) << 30},
				     {.uuid = "GPU-1", .name = "g", .memory_bytes = UINT64_C(80) << 30},
				     {.uuid = "GPU-2", .name = "g", .memory_bytes = UINT64_C(80) << 30},
				     {.uuid = "GPU-3", .name = "g", .memory_bytes = UINT64_C(80) << 30}};
	const struct sw_sync_inventory inventory = {gpus, bench->gpus, 16, UINT64_C(64) << 30};
	const struct sw_sync sync = {.node = "n",
				     .instance = "a1",
				     .number = ++bench->number,
				     .have = bench->have,
				     .leases = true,
				     .inventory = &inventory,
				     .runs = bench->runs,
				     .run_count = bench->run_count};
	sw_records records = {0};
	assert_int_equal(sw_brain_hear(bench->brain, bench->now, &sync, &records, NULL), 0);
	apply_all(bench, &records, NULL);
	if (bench->answer != NULL)
		sw_brain_answer_free(bench->answer);
	bench->answer = NULL;
	assert_int_equal(sw_brain_answer(bench->brain, bench->now, &sync, &bench->answer, NULL), 0);
	bench->have = bench->answer->version;
}

static inline enum sw_want_kind wish(const struct bench *bench, uint64_t job, uint32_t epoch)
{
	for (size_t w = 0; w < bench->answer->want_count; w++)
		if (bench->answer->wants[w].id.job == job && bench->answer->wants[w].id.epoch == epoch)
			return bench->answer->wants[w].want;
	return NO_WISH;
}

/* The agent's account of a run; the first time, it gets the run. */
static inline void tell(struct bench *bench, uint64_t job, uint32_t epoch, enum sw_run_state state, uint32_t signal, const char *reason)
{
	size_t r = 0;
	while (r < bench->run_count && (bench->runs[r].id.job != job || bench->runs[r].id.epoch != epoch))
		r++;
	assert_true(r < sizeof bench->runs / sizeof bench->runs[0]);
	bench->run_count = r == bench->run_count ? r + 1 : bench->run_count;
	bench->runs[r] =
		(struct sw_sync_run){.id = {job, epoch}, .state = state, .signal = signal, .reason = reason, .frees = bench->frees};
	sync_now(bench);
}

static inline void runs(struct bench *bench, uint64_t job, uint32_t epoch)
{
	tell(bench, job, epoch, SW_RUN_RUNNING, 0, "");
}

static inline uint64_t submit(struct bench *bench, unsigned expected_s, const char *more)
{
	char json[300];
	snprintf(json, sizeof json, "{\"command\": [\"job\"], \"expected\": %u%s}", expected_s, more);
	struct sw_job_request *asked = NULL;
	struct sw_err err = {0};
	if (sw_job_request_decode("test", json, strlen(json), &asked, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	sw_records records = {0};
	uint64_t job = 0;
	assert_int_equal(sw_brain_propose_submit(bench->brain, &alice, asked, &records, NULL), 0);
	sw_job_request_free(asked);
	apply_all(bench, &records, &job);
	return job;
}

static inline void change(struct bench *bench, enum sw_record_kind kind, uint64_t job)
{
	sw_records records = {0};
	assert_int_equal(sw_brain_propose_change(bench->brain, &alice, kind, "change", job, &records, NULL), 0);
	apply_all(bench, &records, NULL);
	sync_now(bench);
}

static inline struct sw_job_view look(const struct bench *bench, uint64_t job)
{
	struct sw_job_view view;
	assert_true(sw_brain_job(bench->brain, bench->now, job, &view));
	return view;
}

#define STATE(job, expected) assert_string_equal(look(bench, (job)).state, (expected))
#define WISH(job, epoch, expected) assert_int_equal(wish(bench, (job), (epoch)), (expected))
#define WITH(gib) ", \"gpus\": 2, \"preempt\": \"suspend\", \"gpu_memory\": \"" #gib "GiB\""

static inline int set_up_with(void **state, const struct sw_brain_config *chosen, uint32_t gpus)
{
	struct bench *bench = calloc(1, sizeof *bench);
	assert_non_null(bench);
	bench->now = 1000 * SW_NS_PER_S;
	bench->config = chosen;
	bench->gpus = gpus;
	assert_int_equal(sw_brain_new(chosen, &bench->brain, NULL), 0);
	sync_now(bench);
	*state = bench;
	return 0;
}

static inline int set_up(void **state)
{
	return set_up_with(state, &config, 2);
}

/* At the end of each test: the journal alone gives the same state again. */
static inline int tear_down(void **state)
{
	struct bench *bench = *state;
	struct sw_brain *again = NULL;
	assert_int_equal(sw_brain_new(bench->config, &again, NULL), 0);
	for (size_t r = 0; r < bench->journal.count; r++) {
		struct kept *kept = &bench->journal.items[r];
		assert_int_equal(sw_brain_apply(again, kept->at, kept->record.kind, kept->record.body, kept->record.size, NULL, NULL), 0);
	}
	assert_true(sw_brain_log_hash(again) == sw_brain_log_hash(bench->brain));
	assert_int_equal(sw_brain_job_count(again), sw_brain_job_count(bench->brain));
	assert_int_equal(sw_brain_known_count(again), sw_brain_known_count(bench->brain));
	for (uint64_t job = sw_brain_next_job(again, 1); job != 0; job = sw_brain_next_job(again, job + 1)) {
		struct sw_job_view view;
		assert_true(sw_brain_job(again, bench->now, job, &view));
		assert_string_equal(view.state, look(bench, job).state);
		assert_string_equal(view.reason, look(bench, job).reason);
		assert_int_equal(view.epoch, look(bench, job).epoch);
	}
	sw_brain_free(again);
	sw_brain_answer_free(bench->answer);
	sw_brain_free(bench->brain);
	for (size_t r = 0; r < bench->journal.count; r++)
		free(bench->journal.items[r].record.body);
	sw_vec_free(&bench->journal);
	free(bench);
	return 0;
}

#endif
