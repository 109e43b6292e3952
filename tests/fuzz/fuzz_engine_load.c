/* An engine from any bytes: the first byte picks the policy. What is accepted keeps every
 * invariant, can go on, and can be saved and loaded again. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine.h"
#include "placement/registry.h"
#include "policy/registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void go_on(struct sw_engine *engine)
{
	struct sw_step step;
	struct sw_err err = {0};
	sw_ns now = sw_view_now(sw_engine_view(engine));
	const struct sw_job_spec spec = {.gpus = 1, .min_gpus = 1, .max_gpus = 1, .deadline_at = SW_TIME_NEVER};
	const struct sw_event events[] = {
		{.kind = SW_EV_SUBMIT, .spec = &spec},
		{.kind = SW_EV_NODE_DOWN, .node = {0}},
		{.kind = SW_EV_CANCEL, .job = {0}},
		{.kind = SW_EV_NODE_UP, .node = {0}},
	};
	for (size_t e = 0; e < sizeof events / sizeof events[0]; e++) {
		int r = sw_engine_step(engine, now + (sw_ns)e * 1000000000, &events[e], 1, &step, &err);
		assert(r == 0 && sw_engine_validate(engine, &err) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t policies = 0;
	while (sw_policies[policies] != NULL)
		policies++;
	if (size == 0)
		return 0;
	const struct sw_engine_config config = {.policy = sw_policies[data[0] % policies],
						.fallback = &sw_policy_fifo,
						.placement = &sw_placement_pack,
						.terms.moves = SW_MOVES_NEVER,
						.terms.nodes_switch = true,
						.terms.may_grow = true};
	struct sw_engine *engine = NULL, *again = NULL;
	struct sw_err err = {0};
	bool adopted;
	if (sw_engine_load(&config, data + 1, size - 1, &engine, &adopted, &err) < 0) {
		assert(engine == NULL && err.code < 0 && err.fact[0] != '\0');
		return 0;
	}
	assert(sw_engine_validate(engine, NULL) == 0);
	if (sw_view_now(sw_engine_view(engine)) > INT64_MAX / 4) { /* so near to the end of time it may not be loaded again */
		sw_engine_free(engine);
		return 0;
	}
	go_on(engine);
	struct sw_pack pack = {0};
	sw_engine_save(engine, &pack);
	int r = sw_engine_load(&config, pack.bytes, pack.size, &again, &adopted, &err);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", err.fact, err.detail);
	assert(pack.failed == 0 && r == 0 && !adopted);
	assert(sw_engine_log_hash(engine) == sw_engine_log_hash(again));
	sw_pack_release(&pack);
	sw_engine_free(engine);
	sw_engine_free(again);
	return 0;
}
