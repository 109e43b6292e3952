/* Runs that share a GPU, coordinated by the agent's brain, on a model of the GPU: the brain sees
 * them once a second, and they obey the terms that it gives. A guaranteed run has the time and
 * the memory that it needs; an opportunistic one makes room and gets it back; an agent that
 * starts anew hurts none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "unit/share/gpu_model.h"

#define MIB (UINT64_C(1) << 20)
#define ALL (1024 * MIB) /* of a GPU of the fixture */

enum { HIGH, LOW, RUNS = 3 };

/* Jobs 1 to 3 are those of the model. */
static struct {
	struct model model; /* first: decide() gets it */
	struct sw_agent_brain *brain;
	const struct sw_throttle *throttle;
	struct sw_run_spec specs[RUNS];
	struct sw_want wants[RUNS];
	bool spoilt[RUNS]; /* its page cannot be read */
	size_t count;
	uint64_t version;
	uint32_t told, started; /* terms and starts, so far */
} world;

static struct sw_agent_brain *new_brain(const char *instance)
{
	struct sw_agent_brain_config config = {.node = "node", .instance = instance, .seed = 1, .throttle = world.throttle};
	struct sw_sync_gpu gpus[2] = {{fixture_uuids[0], "test", ALL, 0}, {fixture_uuids[1], "test", ALL, 0}};
	struct sw_sync_inventory inventory = {gpus, 2, 8, 1 << 30};
	struct sw_agent_brain *brain = NULL;
	assert_int_equal(sw_agent_brain_new(&config, &brain, NULL), 0);
	assert_int_equal(sw_agent_brain_inventory(brain, &inventory), 0);
	return brain;
}

static int64_t now(void)
{
	return START_NS + (int64_t)(world.model.now_ms * 1e6);
}

static struct model_job *job_of(size_t i)
{
	return &world.model.jobs[i];
}

/* As the supervisor writes it into the page, and the runtime obeys. */
static void obey(const struct sw_agent_action *action)
{
	const struct sw_agent_terms *terms = action->terms;
	size_t i = action->id.job - 1;
	world.told++;
	job_of(i)->order = (struct sw_coordinate_order){
		.limit_bytes = terms->limit_bytes > 0 ? terms->limit_bytes : world.specs[i].gpu_memory_bytes,
		.share_milli = terms->share_milli == SW_AGENT_NO_SHARE ? 0
			       : terms->share_milli == 0	       ? 1000
								       : terms->share_milli,
		.yields = terms->neighbour_count > 0,
		.watched = terms->watched,
	};
}

static void act(void)
{
	struct sw_agent_action actions[4];
	struct sw_err err = {0};
	for (size_t count; (count = sw_agent_brain_act(world.brain, now(), actions, 4)) > 0;)
		for (size_t i = 0; i < count; i++) {
			if (actions[i].act == SW_ACT_TERMS)
				obey(&actions[i]);
			world.started += actions[i].act == SW_ACT_START;
			assert_true(actions[i].act == SW_ACT_TERMS || actions[i].act == SW_ACT_START || actions[i].act == SW_ACT_LEASE);
		}
	if (sw_agent_brain_validate(world.brain, &err) < 0)
		fail_msg("%s", err.fact);
}

/* Time passes without a look. */
static void only_act(struct model *model)
{
	(void)model;
	act();
}

/* What the sampler sees. */
static void look(struct model *model)
{
	struct sw_sync_sample samples[RUNS + 1] = {{.gpu = fixture_uuids[0], .memory_bytes = model->gpu.foreign_bytes}};
	size_t count = 1;
	for (size_t i = 0; i < world.count; i++) {
		const struct sw_coordinate_job *seen = &model->jobs[i].seen;
		if (!model->jobs[i].present)
			continue;
		samples[0].memory_bytes += seen->charged_bytes;
		if (world.spoilt[i])
			continue;
		samples[count++] = (struct sw_sync_sample){.gpu = fixture_uuids[0],
							   .has_run = true,
							   .run = {i + 1, 1},
							   .runtime = true,
							   .watched = model->jobs[i].order.watched,
							   .charged_bytes = seen->charged_bytes,
							   .fixed_bytes = seen->fixed_bytes,
							   .host_bytes = seen->host_bytes,
							   .peak_bytes = seen->peak_bytes,
							   .floor_bytes = seen->floor_bytes,
							   .iterations = seen->iterations,
							   .iteration_ns = (uint64_t)seen->iteration_ns,
							   .launches = seen->launches};
	}
	sw_agent_brain_look(world.brain, now(), samples, count);
	act();
}

static void answer(void)
{
	/* Syncs keep a distance. */
	model_run(&world.model, 10);
	sw_agent_brain_nudge(world.brain);
	fixture_answer(world.brain, now(), ++world.version, world.wants, world.count);
	act();
}

/* A new agent that finds the runs of the one before it. */
static void restart(const char *instance)
{
	struct sw_texts gpus = fixture_gpus(1);
	sw_agent_brain_free(world.brain);
	world.brain = new_brain(instance);
	for (size_t i = 0; i < world.count; i++) {
		struct sw_sync_run run = {.id = {i + 1, 1}, .state = SW_RUN_RUNNING, .reason = ""};
		assert_int_equal(sw_agent_brain_found(world.brain, &run, &gpus), 0);
		sw_agent_brain_spec(world.brain, run.id, &world.specs[i]);
		fixture_link(world.brain, i + 1, 1, true);
		fixture_said_early(world.brain, i + 1, 1, SW_RUN_RUNNING);
	}
}

static void begin(const struct sw_throttle *throttle)
{
	if (world.brain != NULL)
		sw_agent_brain_free(world.brain);
	memset(&world, 0, sizeof world);
	world.model = model_new(ALL);
	world.model.tick_ms = 1000;
	world.model.decide = look;
	world.throttle = throttle;
	world.brain = new_brain("a");
}

static struct model_job *wish(enum sw_job_class class, double work_ms, double idle_ms, uint64_t asked_bytes)
{
	size_t i = world.count++;
	struct model_job *job = model_add(&world.model, class, work_ms, idle_ms, 0);
	assert_ptr_equal(job, job_of(i));
	job->order.limit_bytes = asked_bytes;
	world.specs[i] = *fixture_spec();
	world.specs[i].gpu_memory_bytes = asked_bytes;
	world.specs[i].opportunistic = class == SW_CLASS_OPPORTUNISTIC;
	world.wants[i] = fixture_want(i + 1, 1, SW_WANT_RUN, 1);
	world.wants[i].spec = &world.specs[i];
	world.spoilt[i] = true;
	answer();
	return job;
}

/* A run that asked for so much, and takes so much. */
static struct model_job *add(enum sw_job_class class, double work_ms, double idle_ms, uint64_t asked_bytes, uint64_t bytes)
{
	uint64_t number = world.count + 1;
	struct model_job *job = wish(class, work_ms, idle_ms, asked_bytes);
	assert_int_equal(world.started, number);
	fixture_link(world.brain, number, 1, true);
	fixture_said_early(world.brain, number, 1, SW_RUN_RUNNING);
	act();
	world.spoilt[number - 1] = false;
	model_get(&world.model, job, bytes);
	return job;
}

static void end(size_t i)
{
	job_of(i)->present = false;
	fixture_said_early(world.brain, i + 1, 1, SW_RUN_EXITED);
	act();
}

static int tear_down(void **state)
{
	(void)state;
	sw_agent_brain_free(world.brain);
	world.brain = NULL;
	return 0;
}

/* ---- memory */

/* A burst of half as much again, beyond what the guaranteed run asked for: nothing fails, the
 * opportunistic one makes room within two looks, and has it back afterwards. */
static void test_burst(void **state)
{
	(void)state;
	begin(NULL);
	struct model_job *high = add(SW_CLASS_GUARANTEED, 40, 60, 400 * MIB, 400 * MIB),
			 *low = add(SW_CLASS_OPPORTUNISTIC, 50, 0, 600 * MIB, 560 * MIB);
	model_run(&world.model, 5000);
	assert_int_equal(low->order.limit_bytes, 600 * MIB);
	assert_int_equal(high->seen.host_bytes + low->seen.host_bytes, 0);
	model_get(&world.model, high, 200 * MIB);
	assert_int_equal(high->seen.host_bytes, 200 * MIB);
	model_run(&world.model, 2200);
	assert_int_equal(high->order.limit_bytes, 600 * MIB);
	assert_int_equal(high->seen.host_bytes, 0);
	assert_int_equal(low->order.limit_bytes, ALL - 600 * MIB);
	assert_int_equal(low->seen.host_bytes, 560 * MIB - (ALL - 600 * MIB));
	model_put(high, 200 * MIB);
	model_run(&world.model, 2200);
	assert_int_equal(high->order.limit_bytes, 400 * MIB);
	assert_int_equal(low->order.limit_bytes, 600 * MIB);
	assert_int_equal(low->seen.host_bytes, 0);
	assert_int_equal(high->ooms + low->ooms, 0);
	/* Nothing changes: nothing is told. */
	uint32_t told = world.told;
	model_run(&world.model, 10000);
	assert_int_equal(world.told, told);
}

/* Whose neighbour ends in the middle of its burst keeps what it needs, until it needs no
 * more than it asked for. */
static void test_neighbour_ends(void **state)
{
	(void)state;
	begin(NULL);
	struct model_job *high = add(SW_CLASS_GUARANTEED, 40, 60, 400 * MIB, 600 * MIB);
	add(SW_CLASS_OPPORTUNISTIC, 50, 0, 600 * MIB, 560 * MIB);
	model_run(&world.model, 3000);
	assert_int_equal(high->order.limit_bytes, 600 * MIB);
	end(LOW);
	model_run(&world.model, 3000);
	assert_int_equal(high->order.limit_bytes, 600 * MIB);
	assert_int_equal(high->seen.host_bytes, 0);
	assert_false(high->order.watched);
	model_put(high, 300 * MIB);
	model_run(&world.model, 3000);
	assert_int_equal(high->order.limit_bytes, 400 * MIB);
}

/* A guaranteed run that ends: the other has all of its terms back at once, not at the next look. */
static void test_guaranteed_ends(void **state)
{
	(void)state;
	begin(&sw_throttle_antman);
	add(SW_CLASS_GUARANTEED, 80, 20, 400 * MIB, 600 * MIB);
	struct model_job *low = add(SW_CLASS_OPPORTUNISTIC, 50, 0, 600 * MIB, 560 * MIB);
	model_run(&world.model, 3000);
	assert_true(low->order.limit_bytes < 600 * MIB);
	assert_int_equal(low->order.share_milli, 0);
	end(HIGH);
	assert_int_equal(low->order.limit_bytes, 600 * MIB);
	assert_int_equal(low->order.share_milli, 1000);
}

/* A run that is to start where a burst has taken the memory waits until the opportunistic run has
 * made room for it, and does not wait for ever when there is no look. */
static void newcomer(enum sw_job_class class, bool blind)
{
	begin(NULL);
	struct model_job *high = add(SW_CLASS_GUARANTEED, 40, 60, 300 * MIB, 500 * MIB),
			 *low = add(SW_CLASS_OPPORTUNISTIC, 50, 0, 600 * MIB, 600 * MIB);
	model_run(&world.model, 3000);
	assert_int_equal(high->seen.charged_bytes + low->seen.charged_bytes, ALL);
	wish(class, 50, 0, 100 * MIB);
	assert_int_equal(world.started, 2);
	world.model.decide = blind ? only_act : look;
	for (int i = 0; i < 90 && world.started == 2; i++) {
		model_run(&world.model, 990);
		answer();
	}
	assert_int_equal(world.started, 3);
	if (!blind)
		assert_true(high->seen.charged_bytes + low->seen.charged_bytes <= ALL - 50 * MIB);
	assert_int_equal(high->seen.host_bytes, 0);
}

static void test_newcomer(void **state)
{
	(void)state;
	newcomer(SW_CLASS_GUARANTEED, false);
	newcomer(SW_CLASS_OPPORTUNISTIC, false);
	newcomer(SW_CLASS_GUARANTEED, true);
}

/* A run on two GPUs takes the strictest of what it may on each. */
static void test_several_gpus(void **state)
{
	(void)state;
	begin(NULL);
	struct model_job *wide = add(SW_CLASS_OPPORTUNISTIC, 50, 0, 600 * MIB, 100 * MIB);
	sw_agent_brain_free(world.brain);
	world.brain = new_brain("b");
	for (size_t i = 0; i < 3; i++) {
		world.specs[i] = *fixture_spec();
		world.specs[i].gpu_memory_bytes = i == 0 ? 600 * MIB : 400 * MIB;
		world.specs[i].opportunistic = i == 0;
		world.wants[i] = fixture_want(i + 1, 1, SW_WANT_RUN, i == 0 ? 3 : (unsigned)i);
		world.wants[i].spec = &world.specs[i];
	}
	world.count = 3;
	answer();
	for (uint64_t job = 1; job <= 3; job++) {
		fixture_link(world.brain, job, 1, true);
		fixture_said_early(world.brain, job, 1, SW_RUN_RUNNING);
	}
	struct sw_sync_sample samples[] = {
		{.gpu = fixture_uuids[0], .has_run = true, .run = {1, 1}, .runtime = true, .charged_bytes = 500 * MIB},
		{.gpu = fixture_uuids[1], .has_run = true, .run = {1, 1}, .runtime = true, .charged_bytes = 500 * MIB},
		{.gpu = fixture_uuids[0], .has_run = true, .run = {2, 1}, .runtime = true, .charged_bytes = 300 * MIB},
		{.gpu = fixture_uuids[1],
		 .has_run = true,
		 .run = {3, 1},
		 .runtime = true,
		 .charged_bytes = 400 * MIB,
		 .host_bytes = 200 * MIB}};
	for (int i = 0; i < 3; i++) {
		model_run(&world.model, 400);
		sw_agent_brain_look(world.brain, now(), samples, 4);
		act();
	}
	assert_int_equal(wide->order.limit_bytes, ALL - 600 * MIB);
	assert_true(wide->order.yields);
}

/* A run that waits for room for its context gets it, from one of its own class too. */
static void test_context_without_room(void **state)
{
	(void)state;
	begin(NULL);
	struct model_job *full = add(SW_CLASS_OPPORTUNISTIC, 50, 0, ALL, 1000 * MIB);
	add(SW_CLASS_OPPORTUNISTIC, 50, 0, 300 * MIB, 0);
	const struct sw_sync_sample samples[] = {
		{.gpu = fixture_uuids[0], .memory_bytes = 1000 * MIB},
		{.gpu = fixture_uuids[0], .has_run = true, .run = {1, 1}, .runtime = true, .charged_bytes = 1000 * MIB},
		{.gpu = fixture_uuids[0], .has_run = true, .run = {2, 1}, .runtime = true, .wanted_bytes = 100 * MIB}};
	model_run(&world.model, 400);
	sw_agent_brain_look(world.brain, now(), samples, 3);
	act();
	assert_int_equal(full->order.limit_bytes, ALL - 100 * MIB);
}

/* What another guaranteed run asked for is not lent, nor does a run get more that was limited;
 * a limit counts at once. */
static void test_bounds_of_a_burst(void **state)
{
	(void)state;
	begin(NULL);
	struct model_job *high = add(SW_CLASS_GUARANTEED, 40, 60, 300 * MIB, 900 * MIB);
	add(SW_CLASS_OPPORTUNISTIC, 50, 0, 200 * MIB, 100 * MIB);
	struct model_job *other = add(SW_CLASS_GUARANTEED, 10, 60, 500 * MIB, 50 * MIB);
	model_run(&world.model, 4000);
	assert_int_equal(high->order.limit_bytes, ALL - 500 * MIB);
	assert_int_equal(other->order.limit_bytes, 500 * MIB);
	world.wants[HIGH].gpu_limit_bytes = 250 * MIB;
	answer();
	assert_int_equal(high->order.limit_bytes, 250 * MIB);
	model_run(&world.model, 3000);
	assert_int_equal(high->order.limit_bytes, 250 * MIB);
	world.wants[HIGH].gpu_limit_bytes = 0;
	answer();
	model_run(&world.model, 3000);
	assert_int_equal(high->order.limit_bytes, ALL - 500 * MIB);
}

/* Memory that strangers hold is taken from the opportunistic run; where next to nothing is left, it
 * stands still with its memory in the host, and is not suspended: see act(). */
static void test_strangers(void **state)
{
	(void)state;
	begin(NULL);
	add(SW_CLASS_GUARANTEED, 40, 60, 400 * MIB, 380 * MIB);
	struct model_job *low = add(SW_CLASS_OPPORTUNISTIC, 50, 0, 600 * MIB, 560 * MIB);
	low->seen.fixed_bytes = 16 * MIB;
	model_run(&world.model, 3000);
	model_put(low, 200 * MIB);
	world.model.gpu.foreign_bytes = 200 * MIB;
	model_run(&world.model, 4000);
	assert_int_equal(low->order.limit_bytes, ALL - 400 * MIB - 200 * MIB);
	assert_int_equal(low->order.share_milli, 1000);
	model_put(low, 300 * MIB);
	world.model.gpu.foreign_bytes = 580 * MIB;
	model_get(&world.model, low, 500 * MIB);
	model_run(&world.model, 4000);
	assert_int_equal(low->order.limit_bytes, 16 * MIB);
	assert_int_equal(low->order.share_milli, 0);
	world.model.gpu.foreign_bytes = 0;
	model_run(&world.model, 4000);
	assert_int_equal(low->order.limit_bytes, 600 * MIB);
	assert_int_equal(low->order.share_milli, 1000);
}

/* A page that vanishes: what its run asked for is kept for it, and none is told
 * to do anything strange. */
static void test_a_page_vanishes(void **state)
{
	(void)state;
	begin(NULL);
	struct model_job *high = add(SW_CLASS_GUARANTEED, 40, 60, 400 * MIB, 600 * MIB),
			 *low = add(SW_CLASS_OPPORTUNISTIC, 50, 0, 600 * MIB, 560 * MIB);
	model_run(&world.model, 3000);
	world.spoilt[HIGH] = world.spoilt[LOW] = true;
	model_run(&world.model, 3000);
	assert_int_equal(high->order.limit_bytes, 400 * MIB);
	assert_true(low->order.limit_bytes <= 600 * MIB && low->order.limit_bytes > 0);
	assert_true(low->order.yields);
	world.spoilt[HIGH] = world.spoilt[LOW] = false;
	model_run(&world.model, 5000);
	assert_int_equal(high->seen.host_bytes, 0);
}

/* ---- time */

/* Slowdown of a guaranteed run of 80 ms of work and 20 ms of its own waiting beside one that always
 * computes, from a minute on. */
static double slowdown(const struct sw_throttle *throttle)
{
	begin(throttle);
	struct model_job *high = add(SW_CLASS_GUARANTEED, 80, 20, 400 * MIB, 300 * MIB),
			 *low = add(SW_CLASS_OPPORTUNISTIC, 50, 0, 600 * MIB, 300 * MIB);
	model_run(&world.model, 60000);
	uint32_t first = high->iterations;
	double worked = low->worked_ms;
	model_run(&world.model, 120000);
	double mean = model_mean(high, first) / 100;
	print_message("%s: slowdown %.3f, the other has %.3f of the GPU\n", throttle->name, mean, (low->worked_ms - worked) / 120000);
	assert_true(low->worked_ms > worked);
	return mean;
}

/* By each rule the guaranteed run is slowed down by 5 % at most, and the other gets something. */
static void test_throttle(void **state)
{
	(void)state;
	for (size_t i = 0; i < sw_throttle_count(); i++)
		assert_true(slowdown(sw_throttle_at(i)) <= 1.05);
}

/* A guaranteed run that comes finds the other at a standstill until its baseline is known;
 * then that is let grow. */
static void test_standstill(void **state)
{
	(void)state;
	begin(&sw_throttle_antman);
	struct model_job *low = add(SW_CLASS_OPPORTUNISTIC, 50, 0, 600 * MIB, 300 * MIB);
	model_run(&world.model, 3000);
	assert_int_equal(low->order.share_milli, 1000);
	add(SW_CLASS_GUARANTEED, 40, 60, 400 * MIB, 300 * MIB);
	assert_int_equal(low->order.share_milli, 0);
	model_run(&world.model, 4000);
	assert_int_equal(low->order.share_milli, 0);
	model_run(&world.model, 60000);
	assert_true(low->order.share_milli > 0 && low->order.share_milli < 1000);
	assert_false(low->order.yields);
}

/* One that yields does so from the first moment, and the guaranteed one says when it works. */
static void test_yield(void **state)
{
	(void)state;
	begin(NULL);
	struct model_job *high = add(SW_CLASS_GUARANTEED, 40, 60, 400 * MIB, 300 * MIB),
			 *low = add(SW_CLASS_OPPORTUNISTIC, 50, 0, 600 * MIB, 300 * MIB);
	assert_true(low->order.yields && high->order.watched);
	uint32_t told = world.told;
	model_run(&world.model, 5000);
	assert_true(low->order.yields && high->order.watched);
	assert_int_equal(low->order.share_milli, 1000);
	/* It did not stand still in between, nor does it when an agent starts anew. */
	assert_int_equal(world.told, told);
	restart("b");
	answer();
	for (int i = 0; i < 40; i++) {
		model_run(&world.model, 100);
		assert_true(low->order.yields && high->order.watched && low->order.share_milli == 1000);
	}
}

/* A share that was set stays, and a change of it counts at once. */
static void test_wished_share(void **state)
{
	(void)state;
	begin(NULL);
	add(SW_CLASS_GUARANTEED, 40, 60, 400 * MIB, 300 * MIB);
	struct model_job *low = add(SW_CLASS_OPPORTUNISTIC, 50, 0, 600 * MIB, 300 * MIB);
	world.wants[LOW].gpu_share_milli = 300;
	model_run(&world.model, 4000);
	answer();
	assert_int_equal(low->order.share_milli, 300);
	model_run(&world.model, 4000);
	assert_int_equal(low->order.share_milli, 300);
	world.wants[LOW].gpu_share_milli = 0;
	answer();
	model_run(&world.model, 4000);
	assert_int_equal(low->order.share_milli, 1000);
}

/* ---- an agent that starts anew */

/* In the middle of a burst: nothing changes until the controller has answered and the runs were
 * seen, whichever comes first; then memory is as it was all the time, the opportunistic run is
 * measured against anew, and the guaranteed one does not notice. */
static void restart_amid(bool looks_first)
{
	begin(&sw_throttle_antman);
	struct model_job *high = add(SW_CLASS_GUARANTEED, 80, 20, 400 * MIB, 600 * MIB),
			 *low = add(SW_CLASS_OPPORTUNISTIC, 50, 0, 600 * MIB, 560 * MIB);
	model_run(&world.model, 30500);
	struct sw_coordinate_order before[] = {high->order, low->order};
	restart("b");
	uint32_t told = world.told, first = high->iterations;
	model_run(&world.model, looks_first ? 5000 : 100);
	assert_int_equal(world.told, told);
	answer();
	for (int i = 0; i < 50; i++) {
		model_run(&world.model, 100);
		assert_int_equal(high->order.limit_bytes, before[0].limit_bytes);
		assert_int_equal(low->order.limit_bytes, before[1].limit_bytes);
		assert_int_equal(high->seen.host_bytes, 0);
	}
	assert_int_equal(low->order.share_milli, 0);
	model_run(&world.model, 60000);
	assert_true(low->order.share_milli > 0);
	assert_true(model_mean(high, first) <= 105);
	assert_int_equal(high->ooms + low->ooms, 0);
}

static void test_restart(void **state)
{
	(void)state;
	restart_amid(true);
	restart_amid(false);
}

/* A new agent whose sampler sees nothing tells what is wished after a while. */
static void test_blind_restart(void **state)
{
	(void)state;
	begin(NULL);
	struct model_job *high = add(SW_CLASS_GUARANTEED, 80, 20, 400 * MIB, 300 * MIB);
	restart("b");
	world.model.decide = only_act;
	world.wants[HIGH].gpu_limit_bytes = 200 * MIB;
	answer();
	model_run(&world.model, 5000);
	assert_int_equal(high->order.limit_bytes, 400 * MIB);
	model_run(&world.model, 6000);
	assert_int_equal(high->order.limit_bytes, 200 * MIB);
}

/* One that does not know the rest of the machine's runs, samples that name no run or GPU of ours,
 * and none at all: nothing happens. */
static void test_strange_samples(void **state)
{
	(void)state;
	begin(NULL);
	struct model_job *high = add(SW_CLASS_GUARANTEED, 40, 60, 400 * MIB, 300 * MIB),
			 *low = add(SW_CLASS_OPPORTUNISTIC, 50, 0, 600 * MIB, 300 * MIB);
	model_run(&world.model, 3000);
	struct sw_sync_sample samples[] = {
		{.gpu = "GPU-unknown", .memory_bytes = 5 * MIB},
		{.gpu = "GPU-unknown", .has_run = true, .run = {1, 1}, .runtime = true, .charged_bytes = INT64_MAX},
		{.gpu = fixture_uuids[0], .has_run = true, .run = {99, 1}, .runtime = true, .charged_bytes = INT64_MAX},
		{.has_run = true, .run = {1, 1}, .memory_bytes = 5 * MIB}};
	sw_agent_brain_look(world.brain, now(), samples, 4);
	act();
	sw_agent_brain_look(world.brain, now(), NULL, 0);
	act();
	assert_int_equal(high->order.limit_bytes, 400 * MIB);
	assert_int_equal(low->order.limit_bytes, 600 * MIB);
	assert_true(low->order.yields);
}

#define TEST(function) cmocka_unit_test_teardown(function, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_burst),	       TEST(test_neighbour_ends),
					   TEST(test_guaranteed_ends), TEST(test_bounds_of_a_burst),
					   TEST(test_newcomer),	       TEST(test_context_without_room),
					   TEST(test_several_gpus),    TEST(test_strangers),
					   TEST(test_a_page_vanishes), TEST(test_throttle),
					   TEST(test_standstill),      TEST(test_yield),
					   TEST(test_wished_share),    TEST(test_restart),
					   TEST(test_blind_restart),   TEST(test_strange_samples)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
