#include "fixture.h"

#include <assert.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const char *fixture_uuids[4] = {"GPU-0", "GPU-1", "GPU-2", "GPU-3"};

struct sw_agent_brain *fixture_blank(const char *instance, uint64_t seed)
{
	struct sw_agent_brain *brain = NULL;
	assert_int_equal(
		sw_agent_brain_new(&(struct sw_agent_brain_config){.node = "node", .instance = instance, .seed = seed}, &brain, NULL), 0);
	return brain;
}

void fixture_inventory(struct sw_agent_brain *brain)
{
	struct sw_sync_gpu gpus[4];
	for (int i = 0; i < 4; i++)
		gpus[i] = (struct sw_sync_gpu){fixture_uuids[i], "test", 1 << 30, 0};
	struct sw_sync_inventory inventory = {gpus, 4, 8, 1 << 30};
	assert_int_equal(sw_agent_brain_inventory(brain, &inventory), 0);
}

struct sw_agent_brain *fixture_brain(const char *instance, uint64_t seed)
{
	struct sw_agent_brain *brain = fixture_blank(instance, seed);
	fixture_inventory(brain);
	return brain;
}

const struct sw_run_spec *fixture_spec(void)
{
	static const char *argv[] = {"true", NULL};
	static struct sw_run_spec spec;
	sw_run_spec_defaults(&spec);
	spec.argv = (struct sw_texts){argv, 1};
	spec.workdir = "/";
	return &spec;
}

struct sw_texts fixture_gpus(unsigned mask)
{
	static const char *lists[64][5];
	static unsigned next;
	const char **list = lists[next++ % 64];
	size_t count = 0;
	for (unsigned i = 0; i < 4; i++)
		if (mask >> i & 1)
			list[count++] = fixture_uuids[i];
	list[count] = NULL;
	return (struct sw_texts){list, count};
}

struct sw_want fixture_want(uint64_t job, uint32_t epoch, enum sw_want_kind kind, unsigned gpus)
{
	return (struct sw_want){.id = {job, epoch},
				.want = kind,
				.gpus = fixture_gpus(gpus),
				.spec = kind == SW_WANT_RUN ? fixture_spec() : NULL,
				.grace_ms = -1};
}

uint64_t fixture_answer(struct sw_agent_brain *brain, int64_t now_ns, uint64_t version, const struct sw_want *wants, size_t count)
{
	struct sw_sync sync;
	assert_true(sw_agent_brain_sync(brain, now_ns, &sync));
	struct sw_want copies[64];
	assert_true(count <= 64);
	if (count > 0)
		memcpy(copies, wants, count * sizeof *copies);
	struct sw_answer_message answer = {
		.version = version, .lease_ms = SW_LEASE_OF_OLD_MS, .retry_ms = 1000, .wants = copies, .want_count = count};
	assert_int_equal(sw_agent_brain_answer(brain, now_ns, sync.number, &answer), 0);
	return sync.number;
}

static char text[8192];
static uint64_t orders[16]; /* the last one for each job */

__attribute__((format(printf, 1, 2))) static void add(const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list args;
	va_start(args, fmt);
	vsnprintf(text + used, sizeof text - used, fmt, args);
	va_end(args);
}

const char *act_name(enum sw_agent_act act)
{
	static const char *const names[] = {"start", "begin", "stop", "suspend", "resume", "lease", "terms", "recover", "delete", "move"};
	return names[act];
}

const char *fixture_act(struct sw_agent_brain *brain, int64_t now_ns, bool leases)
{
	text[0] = '\0';
	struct sw_agent_action actions[3];
	struct sw_err err = {0};
	for (size_t count; (count = sw_agent_brain_act(brain, now_ns, actions, 3)) > 0;)
		for (size_t i = 0; i < count; i++) {
			if (actions[i].order != 0 && actions[i].id.job < 16)
				orders[actions[i].id.job] = actions[i].order;
			if ((actions[i].act == SW_ACT_LEASE && !leases) || actions[i].act == SW_ACT_TERMS)
				continue;
			add("%s%s %" PRIu64 ".%" PRIu32, text[0] != '\0' ? "; " : "", act_name(actions[i].act), actions[i].id.job,
			    actions[i].id.epoch);
			if (actions[i].act == SW_ACT_STOP)
				add(" %" PRIu32 " %" PRId64, actions[i].signal, actions[i].grace_ms);
		}
	if (sw_agent_brain_validate(brain, &err) < 0)
		fail_msg("%s", err.fact);
	return text;
}

void fixture_link(struct sw_agent_brain *brain, uint64_t job, uint32_t epoch, bool up)
{
	sw_agent_brain_link(brain, (struct sw_run_id){job, epoch}, up);
	orders[job] = 0;
}

void fixture_said(struct sw_agent_brain *brain, uint64_t job, uint32_t epoch, enum sw_run_state state)
{
	sw_agent_brain_said(brain, &(struct sw_sync_run){.id = {job, epoch}, .state = state, .reason = ""}, orders[job]);
}

void fixture_said_early(struct sw_agent_brain *brain, uint64_t job, uint32_t epoch, enum sw_run_state state)
{
	sw_agent_brain_said(brain, &(struct sw_sync_run){.id = {job, epoch}, .state = state, .reason = ""}, 0);
}

const char *fixture_runs(struct sw_agent_brain *brain)
{
	text[0] = '\0';
	const struct sw_sync_run *runs;
	size_t count = sw_agent_brain_runs(brain, &runs);
	for (size_t i = 0; i < count; i++) {
		add("%s%" PRIu64 ".%" PRIu32 " %s", i > 0 ? "; " : "", runs[i].id.job, runs[i].id.epoch, sw_run_state_name(runs[i].state));
		if (runs[i].reason[0] != '\0')
			add(" (%s)", runs[i].reason);
	}
	return text;
}

int fixture_up(void **state)
{
	*state = fixture_brain("aa", 1);
	return 0;
}

int fixture_down(void **state)
{
	sw_agent_brain_free(*state);
	return 0;
}

void fixture_start(struct sw_agent_brain *brain, int64_t now_ns, uint64_t version, uint64_t job, uint32_t epoch, unsigned gpus)
{
	struct sw_want want = RUN(job, epoch, gpus);
	fixture_answer(brain, now_ns, version, &want, 1);
	fixture_act(brain, now_ns, false);
	fixture_link(brain, job, epoch, true);
	fixture_said(brain, job, epoch, SW_RUN_RUNNING);
	fixture_act(brain, now_ns, false);
}
