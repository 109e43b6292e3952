/* The agent's brain in a world that loses, repeats and reorders what it is told, kills its
 * supervisors and restarts it, against what must never happen there. A failure prints its seed;
 * SW_TEST_SEED=N runs that one alone.
 *
 * The world: folders that outlive the brain, supervisors that do what they are told some time
 * later, a controller that changes its mind and sometimes wishes nonsense (old epochs, one GPU
 * twice), and bags of messages from which any may be taken next.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "fixture.h"

enum { JOBS = 6, EPOCHS = 40, ORDERS = 64, BAG = 64, STEPS = 3000, SEEDS = 300 };

/* One run as the world has it; it is there from START to DELETE. */
struct folder {
	bool exists;
	bool started; /* ever, in the life of the world */
	bool alive;   /* its supervisor */
	bool over;    /* exit recorded */
	bool began;   /* its command */
	bool linked;
	unsigned gpus;
	enum sw_run_state state; /* true state of its processes */
	const char *reason;
	int64_t lease_ns;
	struct sw_agent_action orders[ORDERS]; /* told, not yet done */
	size_t order_count;
	uint64_t done; /* number of the last order */
};

struct wish {
	bool listed;
	enum sw_want_kind kind;
	unsigned gpus;
	int64_t grace_ms;
};

/* What travels: a sync to the controller, or an answer back. */
struct message {
	bool is_answer;
	uint64_t instance, number, version;
	int64_t sent_ns; /* of the sync */
	size_t want_count;
	struct sw_want wants[JOBS * EPOCHS];
};

struct world {
	struct sw_rng rng;
	uint64_t seed;
	int64_t now;
	struct sw_agent_brain *brain;
	uint64_t instance;
	struct folder folders[JOBS][EPOCHS];
	struct wish wishes[JOBS][EPOCHS];
	uint32_t highest_told[JOBS]; /* epoch that this instance was told of */
	uint64_t version;
	struct message *bag[BAG];
	size_t bag_count;
	uint64_t asked;	     /* the last sync; 0: it was answered */
	int64_t promised_ns; /* the longest lease that any answer gave; so long, too, an answer is fresh */
	uint64_t starts, begins, restarts, exits;
};

static struct world *current; /* for messages */

#define MUST(condition, ...)                                                            \
	do {                                                                            \
		if (!(condition)) {                                                     \
			char what_[400];                                                \
			snprintf(what_, sizeof what_, __VA_ARGS__);                     \
			fail_msg("SW_TEST_SEED=%" PRIu64 ": %s", current->seed, what_); \
		}                                                                       \
	} while (0)

static uint64_t below(struct world *world, uint64_t bound)
{
	return sw_rng_below(&world->rng, bound);
}

static bool chance(struct world *world, unsigned percent)
{
	return below(world, 100) < percent;
}

static struct folder *folder_of(struct world *world, struct sw_run_id id)
{
	assert_true(id.job >= 1 && id.job <= JOBS && id.epoch < EPOCHS);
	return &world->folders[id.job - 1][id.epoch];
}

/* ---- what must never happen */

static bool is_running(const struct folder *folder)
{
	return folder->exists && !folder->over && folder->state != SW_RUN_SUSPENDED && folder->state != SW_RUN_EXITED;
}

static void check_world(struct world *world)
{
	unsigned used = 0;
	for (unsigned job = 0; job < JOBS; job++) {
		int lives = 0;
		for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
			const struct folder *folder = &world->folders[job][epoch];
			lives += folder->exists && !folder->over;
			if (!is_running(folder))
				continue;
			MUST((used & folder->gpus) == 0, "job %u.%u uses a GPU of another run", job + 1, epoch);
			used |= folder->gpus;
		}
		MUST(lives <= 1, "job %u lives twice", job + 1);
	}
	struct sw_err err = {0};
	MUST(sw_agent_brain_validate(world->brain, &err) == 0, "%s", err.fact);
}

/* The sync tells every folder, as far as it is known. */
static void check_sync(struct world *world, const struct sw_sync *sync)
{
	size_t known = 0;
	for (size_t i = 0; i < sync->run_count; i++) {
		const struct folder *folder = folder_of(world, sync->runs[i].id);
		known += folder->exists;
		MUST(!folder->exists || sync->runs[i].state != SW_RUN_EXITED || folder->over, "an exit was made up");
	}
	size_t there = 0;
	for (unsigned job = 0; job < JOBS; job++)
		for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
			there += world->folders[job][epoch].exists;
	MUST(known == there, "the sync tells %zu of %zu folders", known, there);
}

/* ---- the driver */

/* Half of the jobs hold a lease. */
static bool is_leased(struct sw_run_id id)
{
	return id.job % 2 == 1;
}

static const struct sw_run_spec *spec_of(struct sw_run_id id)
{
	static struct sw_run_spec leased;
	leased = *fixture_spec();
	leased.lease_ms = LEASE_MS;
	return is_leased(id) ? &leased : fixture_spec();
}

/* Some supervisors die before they begin. */
static void bear(struct world *world, struct folder *folder, struct sw_run_id id)
{
	folder->alive = folder->linked = folder->began = !chance(world, 10);
	sw_agent_brain_link(world->brain, id, true);
	if (!folder->alive) {
		sw_agent_brain_link(world->brain, id, false);
		sw_agent_brain_lost(world->brain, id, false);
	}
}

static void carry_out(struct world *world, const struct sw_agent_action *action)
{
	struct folder *folder = folder_of(world, action->id);
	switch (action->act) {
	case SW_ACT_START:
		MUST(!folder->started, "job %" PRIu64 ".%" PRIu32 " is started twice", action->id.job, action->id.epoch);
		MUST(action->id.epoch >= world->highest_told[action->id.job - 1], "an epoch is started after a later one was told");
		MUST(world->now < world->promised_ns, "a start long after the last answer");
		MUST(is_leased(action->id) ? world->now < action->lease_boot_ns && action->lease_boot_ns <= world->promised_ns
					   : action->lease_boot_ns == 0,
		     "a start outside the lease");
		*folder = (struct folder){.exists = true,
					  .started = true,
					  .lease_ns = is_leased(action->id) ? action->lease_boot_ns : INT64_MAX,
					  .reason = ""};
		for (size_t i = 0; i < action->want->gpus.count; i++)
			folder->gpus |= 1u << (action->want->gpus.items[i][4] - '0');
		world->starts++;
		bear(world, folder, action->id);
		break;
	case SW_ACT_BEGIN:
		MUST(folder->exists && !folder->alive && !folder->over && !folder->began, "a run that has begun is begun again");
		MUST(!is_leased(action->id) && world->now < world->promised_ns, "a run begins late that may be elsewhere");
		bear(world, folder, action->id);
		world->begins++;
		break;
	case SW_ACT_RECOVER:
		MUST(folder->exists && !folder->alive, "a supervisor that lives is to be cleaned up after");
		folder->over = true;
		folder->state = SW_RUN_EXITED;
		folder->reason = SW_REASON_SUPERVISOR_LOST;
		break;
	case SW_ACT_DELETE:
		MUST(folder->exists && folder->over, "a run that is not over is deleted");
		folder->exists = false;
		break;
	default:
		MUST(folder->exists && folder->linked, "a run is told something that is not there");
		MUST(action->act != SW_ACT_LEASE || !is_leased(action->id) || action->lease_boot_ns <= world->promised_ns,
		     "a lease that was not given");
		MUST(folder->order_count < ORDERS, "the same thing is told again and again");
		folder->orders[folder->order_count++] = *action;
		break;
	}
}

static void act(struct world *world)
{
	struct sw_agent_action actions[5];
	for (size_t count; (count = sw_agent_brain_act(world->brain, world->now, actions, 5)) > 0;)
		for (size_t i = 0; i < count; i++)
			carry_out(world, &actions[i]);
	check_world(world);
}

static struct message *put(struct world *world)
{
	if (world->bag_count == BAG) {
		size_t lost = below(world, BAG);
		free(world->bag[lost]);
		world->bag[lost] = world->bag[--world->bag_count];
	}
	struct message *message = calloc(1, sizeof *message);
	assert_non_null(message);
	world->bag[world->bag_count++] = message;
	return message;
}

static void sync_if_due(struct world *world)
{
	struct sw_sync sync;
	if (!sw_agent_brain_sync(world->brain, world->now, &sync))
		return;
	check_sync(world, &sync);
	struct message *message = put(world);
	message->instance = world->instance;
	message->number = world->asked = sync.number;
	message->sent_ns = world->now;
	/* What the controller learns at once, for simplicity: late news only
	 * makes its wishes stranger. */
	for (size_t i = 0; i < sync.run_count; i++) {
		struct wish *wish = &world->wishes[sync.runs[i].id.job - 1][sync.runs[i].id.epoch];
		if (sync.runs[i].state == SW_RUN_EXITED && chance(world, 30)) {
			*wish = (struct wish){.listed = true, .kind = SW_WANT_FORGET, .grace_ms = -1};
			world->version++;
		}
	}
}

static void restart(struct world *world)
{
	sw_agent_brain_free(world->brain);
	world->restarts++;
	world->instance++;
	memset(world->highest_told, 0, sizeof world->highest_told);
	char name[32];
	snprintf(name, sizeof name, "%" PRIu64, world->instance);
	world->brain = fixture_brain(name, world->instance);
	for (unsigned job = 0; job < JOBS; job++)
		for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
			struct folder *folder = &world->folders[job][epoch];
			/* What was written to a socket whose owner is gone will still be read. */
			folder->linked = false;
			if (!folder->exists) {
				if (folder->started)
					assert_int_equal(sw_agent_brain_seen(world->brain, (struct sw_run_id){job + 1, epoch}), 0);
				continue;
			}
			struct sw_sync_run run = {.id = {job + 1, epoch}, .state = folder->state, .reason = ""};
			struct sw_texts gpus = fixture_gpus(folder->gpus);
			assert_int_equal(sw_agent_brain_found(world->brain, &run, &gpus), 0);
			sw_agent_brain_spec(world->brain, run.id, spec_of(run.id));
		}
}

/* ---- supervisors */

static void say(struct world *world, unsigned job, unsigned epoch)
{
	const struct folder *folder = &world->folders[job][epoch];
	if (!folder->linked)
		return;
	sw_agent_brain_said(world->brain, &(struct sw_sync_run){.id = {job + 1, epoch}, .state = folder->state, .reason = folder->reason},
			    folder->done);
}

static void end_run(struct world *world, unsigned job, unsigned epoch, const char *reason)
{
	struct folder *folder = &world->folders[job][epoch];
	folder->over = true;
	folder->alive = false;
	folder->state = SW_RUN_EXITED;
	folder->reason = reason;
	folder->order_count = 0;
	world->exits++;
	say(world, job, epoch);
	folder->linked = false;
}

static void obey(struct world *world, unsigned job, unsigned epoch)
{
	struct folder *folder = &world->folders[job][epoch];
	struct sw_agent_action order = folder->orders[0];
	if (order.order != 0)
		folder->done = order.order;
	folder->order_count--;
	memmove(folder->orders, folder->orders + 1, folder->order_count * sizeof *folder->orders);
	switch (order.act) {
	case SW_ACT_LEASE:
		if (order.lease_boot_ns > folder->lease_ns)
			folder->lease_ns = order.lease_boot_ns;
		break;
	case SW_ACT_TERMS:
		break;
	case SW_ACT_SUSPEND:
		if (folder->state == SW_RUN_RUNNING)
			folder->state = SW_RUN_SUSPENDED;
		say(world, job, epoch);
		break;
	case SW_ACT_RESUME:
		if (folder->state == SW_RUN_SUSPENDED)
			folder->state = SW_RUN_RUNNING;
		say(world, job, epoch);
		break;
	default:
		/* A stop with grace wakes it up for its last words. */
		if (order.grace_ms != 0 && folder->state == SW_RUN_SUSPENDED) {
			folder->state = SW_RUN_RUNNING;
			say(world, job, epoch);
			check_world(world);
		}
		end_run(world, job, epoch, SW_REASON_STOPPED);
		break;
	}
}

/* What the driver does when it finds a supervisor that lives, or one that does not. */
static void look_at(struct world *world, unsigned job, unsigned epoch)
{
	struct folder *folder = &world->folders[job][epoch];
	struct sw_run_id id = {job + 1, epoch};
	if (!folder->exists || folder->linked)
		return;
	if (folder->over) {
		sw_agent_brain_said(world->brain, &(struct sw_sync_run){.id = id, .state = SW_RUN_EXITED, .reason = folder->reason},
				    folder->done);
	} else if (folder->alive) {
		/* A supervisor reads what the agents before said before it listens to the next. */
		while (folder->order_count > 0)
			obey(world, job, epoch);
		if (folder->over) {
			look_at(world, job, epoch);
			return;
		}
		folder->linked = true;
		sw_agent_brain_link(world->brain, id, true);
		sw_agent_brain_said(world->brain, &(struct sw_sync_run){.id = id, .state = folder->state, .reason = ""}, folder->done);
	} else {
		sw_agent_brain_lost(world->brain, id, folder->began);
	}
}

static void live(struct world *world, unsigned job, unsigned epoch)
{
	struct folder *folder = &world->folders[job][epoch];
	if (!folder->exists || folder->over)
		return;
	if (!folder->alive || !folder->linked) {
		if (chance(world, 50))
			look_at(world, job, epoch);
		if (!folder->alive)
			return;
	}
	if (world->now >= folder->lease_ns)
		end_run(world, job, epoch, SW_REASON_LEASE);
	else if (folder->state == SW_RUN_STARTING && chance(world, 50)) {
		folder->state = SW_RUN_RUNNING;
		say(world, job, epoch);
	} else if (folder->order_count > 0 && chance(world, 60))
		obey(world, job, epoch);
	else if (folder->state == SW_RUN_RUNNING && chance(world, 3))
		end_run(world, job, epoch, "");
	else if (chance(world, 1)) {
		/* Killed: its job dies with it. Orders are lost. */
		folder->alive = folder->linked = false;
		folder->order_count = 0;
		sw_agent_brain_link(world->brain, (struct sw_run_id){job + 1, epoch}, false);
	} else if (folder->linked && chance(world, 1)) {
		folder->linked = false;
		sw_agent_brain_link(world->brain, (struct sw_run_id){job + 1, epoch}, false);
	}
}

/* ---- the controller */

static void change_mind(struct world *world)
{
	unsigned job = (unsigned)below(world, JOBS);
	unsigned epoch = (unsigned)below(world, EPOCHS);
	struct wish *wish = &world->wishes[job][epoch];
	world->version++;
	if (chance(world, 40)) {
		/* Another run of the job, with an epoch that is mostly new. */
		unsigned next = 0;
		for (unsigned i = 0; i < EPOCHS; i++)
			if (world->wishes[job][i].listed || world->folders[job][i].started)
				next = i + 1;
		if (chance(world, 10))
			next = epoch;
		if (next < EPOCHS)
			world->wishes[job][next] =
				(struct wish){.listed = true, .kind = SW_WANT_RUN, .gpus = (unsigned)below(world, 16), .grace_ms = -1};
		return;
	}
	for (unsigned i = 0; i < EPOCHS && !wish->listed; i++)
		wish = &world->wishes[job][(epoch + i) % EPOCHS];
	if (!wish->listed)
		return;
	if (chance(world, 10))
		wish->listed = false;
	else if (wish->kind == SW_WANT_FORGET)
		wish->listed = chance(world, 50);
	else
		wish->kind = (enum sw_want_kind)below(world, chance(world, 10) ? 4 : 3);
	wish->grace_ms = chance(world, 50) ? -1 : (int64_t)below(world, 2) * 1000;
}

static void answer(struct world *world, const struct message *sync)
{
	struct message *message = put(world);
	*message = (struct message){
		.is_answer = true, .instance = sync->instance, .number = sync->number, .sent_ns = sync->sent_ns, .version = world->version};
	for (unsigned job = 0; job < JOBS; job++)
		for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
			const struct wish *wish = &world->wishes[job][epoch];
			if (!wish->listed)
				continue;
			struct sw_want *want = &message->wants[message->want_count++];
			*want = fixture_want(job + 1, epoch, wish->kind, 0);
			/* The mask travels, the list is made when it arrives. */
			want->gpus.count = wish->gpus;
			want->grace_ms = wish->grace_ms;
			if (want->spec != NULL)
				want->spec = spec_of(want->id);
			if (chance(world, 5))
				want->spec = NULL;
		}
	if (sync->sent_ns + LEASE_MS * MS > world->promised_ns)
		world->promised_ns = sync->sent_ns + LEASE_MS * MS;
}

static void hear(struct world *world, struct message *message)
{
	/* The driver knows which question an answer belongs to. */
	if (message->instance != world->instance)
		return;
	static const char *lists[JOBS * EPOCHS][5];
	for (size_t i = 0; i < message->want_count; i++) {
		struct sw_texts gpus = fixture_gpus((unsigned)message->wants[i].gpus.count);
		memcpy(lists[i], gpus.items, sizeof lists[i]);
		message->wants[i].gpus = (struct sw_texts){lists[i], gpus.count};
	}
	struct sw_answer_message words = {.version = message->version + 1,
					  .lease_ms = SW_LEASE_OF_OLD_MS,
					  .retry_ms = 100,
					  .wants = message->wants,
					  .want_count = message->want_count};
	assert_int_equal(sw_agent_brain_answer(world->brain, world->now, message->number, &words), 0);
	if (message->number != world->asked)
		return; /* it was not listened to: it told nothing */
	world->asked = 0;
	for (size_t i = 0; i < message->want_count; i++) {
		const struct sw_want *want = &message->wants[i];
		uint32_t *highest = &world->highest_told[want->id.job - 1];
		if (want->want == SW_WANT_RUN && want->spec != NULL && want->id.epoch > *highest)
			*highest = want->id.epoch;
	}
}

static void deliver(struct world *world)
{
	if (world->bag_count == 0)
		return;
	size_t pick = below(world, world->bag_count);
	struct message *message = world->bag[pick];
	bool again = chance(world, 15), lost = chance(world, 15);
	if (!again)
		world->bag[pick] = world->bag[--world->bag_count];
	struct message copy = *message;
	if (!again)
		free(message);
	if (lost)
		return;
	if (copy.is_answer)
		hear(world, &copy);
	else
		answer(world, &copy);
}

/* ---- one life of the world */

static void step(struct world *world)
{
	switch (below(world, 8)) {
	case 0:
		world->now += (int64_t)below(world, chance(world, 2) ? 40000 : 200) * MS;
		break;
	case 1:
		change_mind(world);
		break;
	case 2:
		if (chance(world, 4))
			restart(world);
		break;
	case 3:
		if (world->bag_count > 0 && chance(world, 5)) {
			sw_agent_brain_failed(world->brain, world->now, world->bag[0]->number);
			if (world->asked == world->bag[0]->number)
				world->asked = 0;
		}
		break;
	case 4:
		deliver(world);
		break;
	default:
		live(world, (unsigned)below(world, JOBS), 0);
		for (unsigned job = 0; job < JOBS; job++)
			for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
				if (chance(world, 20))
					live(world, job, epoch);
		break;
	}
	check_world(world);
	act(world);
	sync_if_due(world);
}

/* With a network that works and wishes that make sense, what is wished for comes to be. */
static void settle(struct world *world)
{
	for (unsigned job = 0; job < JOBS; job++)
		for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
			world->wishes[job][epoch].listed = false;
	struct sw_want want = fixture_want(1, EPOCHS + 1, SW_WANT_RUN, 15);
	world->version += 100;
	for (int i = 0; i < 200; i++) {
		struct sw_sync sync;
		world->now += 500 * MS;
		world->promised_ns = world->now + LEASE_MS * MS;
		if (sw_agent_brain_sync(world->brain, world->now, &sync)) {
			check_sync(world, &sync);
			struct sw_want wants[JOBS * EPOCHS];
			size_t count = 0;
			for (size_t k = 0; k < sync.run_count; k++)
				if (sync.runs[k].state == SW_RUN_EXITED)
					wants[count++] = (struct sw_want){.id = sync.runs[k].id, .want = SW_WANT_FORGET, .grace_ms = -1};
			struct sw_answer_message words = {
				.version = world->version, .lease_ms = SW_LEASE_OF_OLD_MS, .wants = wants, .want_count = count};
			assert_int_equal(sw_agent_brain_answer(world->brain, world->now, sync.number, &words), 0);
		}
		act(world);
		for (unsigned job = 0; job < JOBS; job++)
			for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
				look_at(world, job, epoch);
				live(world, job, epoch);
			}
		act(world);
	}
	const struct sw_sync_run *runs;
	MUST(sw_agent_brain_runs(world->brain, &runs) == 0, "a run is left that is not wanted");
	/* All GPUs are free: a run that wants them all starts at once. */
	fixture_answer(world->brain, world->now += 1000 * MS, world->version + 1, &want, 1);
	MUST(strcmp(fixture_act(world->brain, world->now, false), "start 1.41") == 0, "a GPU is held by none");
}

static uint64_t run_world(uint64_t seed, uint64_t *begins)
{
	struct world *world = calloc(1, sizeof *world);
	assert_non_null(world);
	current = world;
	world->seed = seed;
	sw_rng_seed(&world->rng, seed);
	world->now = START_NS;
	world->instance = 1;
	world->brain = fixture_brain("1", seed);
	for (int i = 0; i < STEPS; i++)
		step(world);
	settle(world);
	uint64_t starts = world->starts;
	*begins += world->begins;
	sw_agent_brain_free(world->brain);
	for (size_t i = 0; i < world->bag_count; i++)
		free(world->bag[i]);
	free(world);
	return starts;
}

/* Random worlds: no run starts twice, no GPU has two users, no exit is forgotten, no lease is made
 * up, and all settles in the end. */
static void test_random_worlds(void **state)
{
	(void)state;
	const char *chosen = getenv("SW_TEST_SEED");
	uint64_t begins = 0;
	if (chosen != NULL) {
		run_world(strtoull(chosen, NULL, 10), &begins);
		return;
	}
	uint64_t starts = 0;
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		starts += run_world(seed, &begins);
	/* A world in which nothing happens proves nothing. */
	assert_true(starts > 10 * SEEDS && begins > SEEDS / 10);
	print_message("%" PRIu64 " starts and %" PRIu64 " late ones in %d worlds\n", starts, begins, SEEDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_worlds)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
