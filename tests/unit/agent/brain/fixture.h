/* What the tests of the agent's brain share: a brain with a few GPUs, and
 * short ways to talk to it. */
#ifndef SW_TEST_AGENT_FIXTURE_H
#define SW_TEST_AGENT_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/brain/brain.h"
#include "base/number.h"

#define MS SW_NS_PER_MS
#define LEASE_MS 30000
#define START_NS (1000 * SW_NS_PER_S) /* the tests begin then */

/* "GPU-0" to "GPU-3". */
extern const char *fixture_uuids[4];

struct sw_agent_brain *fixture_brain(const char *instance, uint64_t seed);
/* The same in two steps: a brain that knows no GPUs yet, and its inventory. */
struct sw_agent_brain *fixture_blank(const char *instance, uint64_t seed);
void fixture_inventory(struct sw_agent_brain *brain);
/* cmocka's set-up and tear-down of one case, whose state is such a brain. */
int fixture_up(void **state);
int fixture_down(void **state);
/* A spec that can be pointed to. */
const struct sw_run_spec *fixture_spec(void);
/* GPUs of a bit mask, in static storage that the next 64 calls leave alone. */
struct sw_texts fixture_gpus(unsigned mask);
struct sw_want fixture_want(uint64_t job, uint32_t epoch, enum sw_want_kind kind, unsigned gpus);

/* Sends the next sync, which must be due, and answers it with these wishes.
 * Returns the sync's number. */
uint64_t fixture_answer(struct sw_agent_brain *brain, int64_t now_ns, uint64_t version, const struct sw_want *wants, size_t count);
/* All actions that follow, as text: "start 1.1; stop 2.1 0 -1; lease 3.1". Leases are left out
 * unless `leases`, and terms of GPUs always. */
const char *fixture_act(struct sw_agent_brain *brain, int64_t now_ns, bool leases);
void fixture_link(struct sw_agent_brain *brain, uint64_t job, uint32_t epoch, bool up);
/* As fixture_act() writes it. */
const char *act_name(enum sw_agent_act act);
/* What the supervisor says after it has carried out the last order of fixture_act() for it. */
void fixture_said(struct sw_agent_brain *brain, uint64_t job, uint32_t epoch, enum sw_run_state state);
/* What it says before it has. */
void fixture_said_early(struct sw_agent_brain *brain, uint64_t job, uint32_t epoch, enum sw_run_state state);
/* Starts a run and lets it say that it runs. */
void fixture_start(struct sw_agent_brain *brain, int64_t now_ns, uint64_t version, uint64_t job, uint32_t epoch, unsigned gpus);
/* The runs of the brain as text: "1.1 running; 2.1 exited (lease)". */
const char *fixture_runs(struct sw_agent_brain *brain);

/* Short words for what the tests say most, of `brain` at the moment `now`. */
#define ANSWER(now, version, ...)                                                              \
	do {                                                                                   \
		const struct sw_want wants_[] = {__VA_ARGS__};                                 \
		fixture_answer(brain, now, version, wants_, sizeof wants_ / sizeof wants_[0]); \
	} while (0)
#define RUN(job, epoch, gpus) fixture_want(job, epoch, SW_WANT_RUN, gpus)
#define SUSPEND(job, epoch) fixture_want(job, epoch, SW_WANT_SUSPEND, 0)
#define STOP(job, epoch) fixture_want(job, epoch, SW_WANT_STOP, 0)
#define FORGET(job, epoch) fixture_want(job, epoch, SW_WANT_FORGET, 0)
#define ACTS(expected) assert_string_equal(fixture_act(brain, now, false), expected)
#define RUNS(expected) assert_string_equal(fixture_runs(brain), expected)

#endif
