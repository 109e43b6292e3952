/* A controller's state from any bytes. What is accepted keeps every invariant, answers questions
 * and agents, and can be saved and loaded again. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "brain/brain.h"
#include "failure/failure.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sw_brain_config config = {
	.policy = "las",
	.placement = "pack",
	.silence_ns = INT64_C(30000000000),
	.silence_margin_ns = INT64_C(5000000000),
	.retry_backoff_ns = INT64_C(10000000000),
};

static void look(struct sw_brain *brain)
{
	sw_ns now = sw_brain_now(brain);
	struct sw_job_view job;
	struct sw_node_view node;
	char why[300];
	for (uint64_t id = 1; sw_brain_job(brain, now, id, &job); id++)
		sw_brain_explain(brain, now, id, why, sizeof why);
	for (uint32_t n = 0; sw_brain_node(brain, n, &node); n++) {
		const struct sw_sync sync = {.node = (char *)(uintptr_t)node.name, .instance = "a", .number = 1};
		struct sw_answer_message *answer = NULL;
		sw_records records = {0};
		/* A name that is no text cannot be written down, a request that is none cannot be
		 * sent; everything else can. */
		(void)sw_brain_hear(brain, now, &sync, &records, NULL);
		sw_records_clear(&records);
		if (sw_brain_answer(brain, now, &sync, &answer, NULL) == 0)
			sw_brain_answer_free(answer);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sw_brain *brain = NULL, *again = NULL;
	struct sw_err err = {0};
	bool adopted;
	/* Once for all inputs. */
	static struct sw_failure_table *failures;
	if (failures == NULL && sw_failure_load(NULL, &failures, NULL) < 0)
		return 0;
	config.failures = failures;
	if (sw_brain_load(&config, data, size, &brain, &adopted, &err) < 0) {
		assert(brain == NULL && err.code < 0 && err.fact[0] != '\0');
		return 0;
	}
	look(brain);
	struct sw_pack pack = {0};
	sw_brain_save(brain, &pack);
	assert(pack.failed == 0 && sw_brain_load(&config, pack.bytes, pack.size, &again, &adopted, NULL) == 0);
	sw_pack_release(&pack);
	sw_brain_free(brain);
	sw_brain_free(again);
	return 0;
}
