/* Runs that share a GPU: which run may start beside which, what each is told, and that it is told
 * when something changes and not again and again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

#define GIB (UINT64_C(1) << 30)

static struct sw_run_spec specs[3]; /* guaranteed, opportunistic, one that takes whole GPUs */
enum { GUARANTEED, OPPORTUNISTIC, WHOLE };
static struct sw_want wants[8];
static size_t want_count;
static uint64_t version;
static int64_t now;

static int set_up(void **state)
{
	for (int i = 0; i < 3; i++)
		specs[i] = *fixture_spec();
	specs[GUARANTEED].gpu_memory_bytes = specs[OPPORTUNISTIC].gpu_memory_bytes = 10 * GIB;
	specs[OPPORTUNISTIC].opportunistic = true;
	now = START_NS;
	version = 0;
	want_count = 0;
	*state = fixture_brain("a", 1);
	return 0;
}

static int tear_down(void **state)
{
	sw_agent_brain_free(*state);
	return 0;
}

static struct sw_want *wish(uint64_t job, int kind, unsigned gpus)
{
	wants[want_count] = fixture_want(job, 1, SW_WANT_RUN, gpus);
	wants[want_count].spec = &specs[kind];
	return &wants[want_count++];
}

/* What follows, as text; the content of terms included. */
static const char *act(struct sw_agent_brain *brain)
{
	static char text[1000];
	struct sw_agent_action actions[4];
	struct sw_err err = {0};
	text[0] = '\0';
	for (size_t count; (count = sw_agent_brain_act(brain, now, actions, 4)) > 0;)
		for (size_t i = 0; i < count; i++) {
			const struct sw_agent_action *action = &actions[i];
			size_t used = strlen(text);
			if (action->act == SW_ACT_LEASE)
				continue;
			used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %d", used > 0 ? "; " : "", act_name(action->act),
						 (int)action->id.job);
			if (action->act != SW_ACT_TERMS)
				continue;
			const struct sw_agent_terms *terms = action->terms;
			used += (size_t)snprintf(text + used, sizeof text - used, " %d %d%s", (int)(terms->limit_bytes / GIB),
						 (int)terms->share_milli, terms->watched ? " watched" : "");
			for (uint32_t n = 0; n < terms->neighbour_count; n++)
				used += (size_t)snprintf(text + used, sizeof text - used, " <%d", (int)terms->neighbours[n].job);
		}
	if (sw_agent_brain_validate(brain, &err) < 0)
		fail_msg("%s", err.fact);
	return text;
}

static const char *answer(struct sw_agent_brain *brain)
{
	now += 1000 * MS;
	sw_agent_brain_nudge(brain);
	fixture_answer(brain, now, ++version, wants, want_count);
	return act(brain);
}

static const char *runs(struct sw_agent_brain *brain, uint64_t job)
{
	fixture_link(brain, job, 1, true);
	fixture_said_early(brain, job, 1, SW_RUN_RUNNING);
	return act(brain);
}

/* Runs that say what memory they need share a GPU when all are wished to run; others have it
 * alone. */
static void test_who_starts_beside_whom(void **state)
{
	struct sw_agent_brain *brain = *state;
	wish(1, GUARANTEED, 1);
	wish(2, GUARANTEED, 1);
	wish(3, WHOLE, 1);
	wish(4, WHOLE, 2);
	assert_string_equal(answer(brain), "start 1; start 2; start 4");
	wish(5, GUARANTEED, 2);
	wish(6, GUARANTEED, 3);
	assert_string_equal(answer(brain), "");
	/* One that is to go lets none in before it is gone. */
	wants[0].want = SW_WANT_STOP;
	wish(7, GUARANTEED, 1);
	runs(brain, 1);
	runs(brain, 2);
	runs(brain, 4);
	assert_string_equal(answer(brain), "stop 1");
	fixture_said_early(brain, 1, 1, SW_RUN_EXITED);
	assert_string_equal(act(brain), "start 7");
}

/* The opportunistic one learns to which runs it gives way, the others that they are watched; a run
 * that is alone hears nothing. */
static void test_giving_way(void **state)
{
	struct sw_agent_brain *brain = *state;
	wish(1, GUARANTEED, 1);
	wish(2, GUARANTEED, 2);
	wish(3, OPPORTUNISTIC, 3);
	wish(4, GUARANTEED, 4);
	assert_string_equal(answer(brain), "start 1; start 2; start 3; start 4");
	assert_string_equal(runs(brain, 1), "terms 1 0 0 watched");
	assert_string_equal(runs(brain, 2), "terms 2 0 0 watched");
	assert_string_equal(runs(brain, 3), "terms 3 0 0 <1 <2");
	assert_string_equal(runs(brain, 4), "");
	assert_string_equal(answer(brain), "");
	/* One that stands still is in no run's way. */
	wants[0].want = SW_WANT_SUSPEND;
	now += 1000 * MS;
	sw_agent_brain_nudge(brain);
	fixture_answer(brain, now, ++version, wants, want_count);
	assert_string_equal(fixture_act(brain, now, false), "suspend 1.1");
	fixture_said(brain, 1, 1, SW_RUN_SUSPENDED);
	assert_string_equal(act(brain), "terms 3 0 0 <2");
	wants[0].want = SW_WANT_RUN;
	assert_string_equal(answer(brain), "resume 1; terms 3 0 0 <1 <2");
	fixture_said_early(brain, 2, 1, SW_RUN_EXITED);
	assert_string_equal(act(brain), "terms 3 0 0 <1");
	fixture_said_early(brain, 3, 1, SW_RUN_EXITED);
	assert_string_equal(act(brain), "terms 1 0 0");
}

/* One that runs already gives way to a guaranteed one that starts later, from when that one's
 * supervisor says that it runs: only then its page is there for sure. */
static void test_giving_way_later(void **state)
{
	struct sw_agent_brain *brain = *state;
	wish(1, OPPORTUNISTIC, 1);
	assert_string_equal(answer(brain), "start 1");
	assert_string_equal(runs(brain, 1), "");
	wish(2, GUARANTEED, 1);
	assert_string_equal(answer(brain), "start 2");
	fixture_link(brain, 2, 1, true);
	assert_string_equal(act(brain), "terms 2 0 0 watched");
	fixture_said_early(brain, 2, 1, SW_RUN_STARTING);
	assert_string_equal(act(brain), "");
	fixture_said_early(brain, 2, 1, SW_RUN_RUNNING);
	assert_string_equal(act(brain), "terms 1 0 0 <2");
	/* A link that breaks says nothing about the run. */
	fixture_link(brain, 2, 1, false);
	assert_string_equal(act(brain), "");
}

/* A run that was upgraded gives way no more, and the other neighbours give way to it. */
static void test_upgraded(void **state)
{
	struct sw_agent_brain *brain = *state;
	wish(1, GUARANTEED, 1);
	struct sw_want *two = wish(2, OPPORTUNISTIC, 1);
	assert_string_equal(answer(brain), "start 1; start 2");
	assert_string_equal(runs(brain, 1), "terms 1 0 0 watched");
	assert_string_equal(runs(brain, 2), "terms 2 0 0 <1");
	two->upgraded = true;
	assert_string_equal(answer(brain), "terms 1 0 0; terms 2 0 0");
}

/* A run that is paused stands still whatever it would have, and goes on with that. */
static void test_paused(void **state)
{
	struct sw_agent_brain *brain = *state;
	wish(1, GUARANTEED, 1);
	struct sw_want *two = wish(2, GUARANTEED, 1);
	two->paused = true;
	two->gpu_limit_bytes = 2 * GIB;
	assert_string_equal(answer(brain), "start 1; start 2");
	assert_string_equal(runs(brain, 1), "");
	assert_string_equal(runs(brain, 2), "terms 2 2 -1");
	wants[0].paused = true;
	two->paused = false;
	two->gpu_limit_bytes = 0;
	assert_string_equal(answer(brain), "terms 1 0 -1; terms 2 0 0");
}

/* A limit that is wished is told once, and its end too; a link that broke is told again. */
static void test_limits(void **state)
{
	struct sw_agent_brain *brain = *state;
	struct sw_want *one = wish(1, WHOLE, 1);
	assert_string_equal(answer(brain), "start 1");
	assert_string_equal(runs(brain, 1), "");
	one->gpu_limit_bytes = 5 * GIB;
	one->gpu_share_milli = 250;
	assert_string_equal(answer(brain), "terms 1 5 250");
	assert_string_equal(answer(brain), "");
	fixture_link(brain, 1, 1, false);
	assert_string_equal(act(brain), "");
	assert_string_equal(runs(brain, 1), "terms 1 5 250");
	one->gpu_limit_bytes = 0;
	one->gpu_share_milli = 0;
	assert_string_equal(answer(brain), "terms 1 0 0");
	assert_string_equal(answer(brain), "");
}

/* A new agent tells what holds now, whatever the one before it told, but nothing before it knows
 * that: limits stay meanwhile. Runs without the GPU runtime and without GPUs hear nothing. */
static void test_restart(void **state)
{
	struct sw_agent_brain *brain = *state;
	struct sw_texts gpus = fixture_gpus(1), none = fixture_gpus(0);
	struct sw_run_spec bare = specs[GUARANTEED];
	bare.bare_gpu = true;
	const struct sw_run_spec *found[] = {&specs[GUARANTEED], &specs[OPPORTUNISTIC], &bare, &specs[GUARANTEED]};
	for (uint64_t job = 1; job <= 4; job++) {
		struct sw_sync_run run = {.id = {job, 1}, .state = SW_RUN_RUNNING, .reason = ""};
		assert_int_equal(sw_agent_brain_found(brain, &run, job < 4 ? &gpus : &none), 0);
		sw_agent_brain_spec(brain, run.id, found[job - 1]);
	}
	sw_agent_brain_spec(brain, (struct sw_run_id){99, 1}, &bare);
	for (uint64_t job = 1; job <= 4; job++)
		assert_string_equal(runs(brain, job), "");
	wish(1, GUARANTEED, 1)->gpu_limit_bytes = 5 * GIB;
	wish(2, OPPORTUNISTIC, 1)->gpu_share_milli = 250;
	wish(3, GUARANTEED, 1);
	wish(4, GUARANTEED, 0);
	/* It may need more than is wished: first it is seen. */
	assert_string_equal(answer(brain), "");
	struct sw_sync_sample seen = {.gpu = fixture_uuids[0], .has_run = true, .run = {1, 1}, .runtime = true, .watched = true};
	sw_agent_brain_look(brain, now, &seen, 1);
	assert_string_equal(act(brain), "terms 1 5 0 watched; terms 2 0 250 <1");
	assert_string_equal(answer(brain), "");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_who_starts_beside_whom),
					   TEST(test_giving_way),
					   TEST(test_giving_way_later),
					   TEST(test_upgraded),
					   TEST(test_paused),
					   TEST(test_limits),
					   TEST(test_restart)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
