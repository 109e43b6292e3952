/* Which GPUs are fit to be given out, by what is seen on them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/fitness.h"
#include "base/rng.h"
#include "gpu/backend.h"

#define S INT64_C(1000000000)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

struct bench {
	struct sw_fitness fitness;
	struct sw_gpu_source *gpus;
	int64_t now_ns;
	struct sw_sync sync;
};

static int set_up(void **state)
{
	static const char text[] = "gpus: [{memory: 16G, count: 2}]";
	struct bench *bench = calloc(1, sizeof *bench);
	bench->fitness.small_bytes = SW_FITNESS_SMALL_BYTES;
	assert_int_equal(sw_gpu_description_parse("test", text, sizeof text - 1, &bench->gpus, NULL), 0);
	bench->now_ns = 100 * S;
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;
	sw_vec_free(&bench->fitness.shut);
	sw_vec_free(&bench->fitness.told);
	sw_gpu_source_close(bench->gpus);
	free(bench);
	return 0;
}

static const struct sw_fitness_look idle = {.knows_memory = true, .reserved_bytes = 300 * MIB};

/* One look at GPU 0, two seconds after the last; why it is shut, -1: it is not. */
static int look(struct bench *bench, struct sw_fitness_look at)
{
	bench->now_ns += 2 * S;
	sw_fitness_note(&bench->fitness, 0, bench->now_ns, bench->now_ns + 1, &at);
	sw_fitness_note(&bench->fitness, 1, bench->now_ns, bench->now_ns + 1, &idle);
	sw_fitness_tell(&bench->fitness, bench->gpus, &bench->sync);
	assert_true(bench->sync.looked && bench->sync.shut_count <= 1);
	if (bench->sync.shut_count == 0)
		return -1;
	assert_string_equal(bench->sync.shut[0].gpu, sw_gpu_source_info(bench->gpus, 0)->uuid);
	return (int)bench->sync.shut[0].why;
}

static int look_with(struct bench *bench, struct sw_lodger_view lodger)
{
	struct sw_fitness_look at = idle;
	at.used_bytes = lodger.memory_bytes;
	at.lodgers = &lodger;
	at.lodger_count = 1;
	return look(bench, at);
}

static const struct sw_lodger_view alice = {
	.pid = 7, .kind = SW_LODGER_STRANGER, .memory_bytes = 20 * MIB, .user = "alice", .program = "python"};

/* Aim: a GPU is shut at the first look at a stranger, however little it holds, and opens some
 * seconds after it has left, not before. */
static void test_stranger(void **state)
{
	struct bench *bench = *state;
	assert_int_equal(look(bench, idle), -1);
	assert_int_equal(look_with(bench, alice), SW_SHUT_STRANGER);
	int64_t since = bench->sync.shut[0].since_ns;
	assert_true(since == bench->now_ns + 1 && bench->sync.stranger_count == 1 && bench->sync.strangers[0].pid == 7);
	assert_string_equal(bench->sync.strangers[0].user, "alice");
	assert_int_equal(look_with(bench, alice), SW_SHUT_STRANGER);
	assert_true(bench->sync.shut[0].since_ns == since);
	assert_int_equal(look(bench, idle), SW_SHUT_STRANGER);
	assert_int_equal(look(bench, idle), SW_SHUT_STRANGER);
	assert_int_equal(look(bench, idle), -1);
	assert_int_equal(bench->sync.stranger_count, 0);
}

/* Aim: with 'share' it is told of and the GPU stays open; with 'ignore' it is not looked for. */
static void test_rules(void **state)
{
	struct bench *bench = *state;
	bench->fitness.rule = SW_STRANGERS_SHARE;
	assert_int_equal(look_with(bench, alice), -1);
	assert_int_equal(bench->sync.stranger_count, 1);
	memset(bench->fitness.gpus, 0, sizeof bench->fitness.gpus);
	bench->fitness.rule = SW_STRANGERS_IGNORE;
	for (int i = 0; i < 4; i++)
		assert_int_equal(look_with(bench, alice), -1);
}

/* Aim: a run of ours is none, whatever it holds; a screen and a service of the driver are
 * none while they are small. */
static void test_who_is_none(void **state)
{
	struct bench *bench = *state;
	assert_int_equal(look_with(bench, (struct sw_lodger_view){.pid = 8, .kind = SW_LODGER_OURS, .memory_bytes = 15 * GIB}), -1);
	struct sw_lodger_view screen = {
		.pid = 9, .kind = SW_LODGER_STRANGER, .is_light = true, .memory_bytes = 511 * MIB, .program = "Xorg"};
	assert_int_equal(look_with(bench, screen), -1);
	screen.memory_bytes = 512 * MIB;
	assert_int_equal(look_with(bench, screen), SW_SHUT_STRANGER);
	assert_true(sw_fitness_is_service("nvidia-persiste") && sw_fitness_is_service("nvidia-cuda-mps") &&
		    !sw_fitness_is_service("python"));
}

/* Aim: a process that is ending counts only when it does not end. */
static void test_ending(void **state)
{
	struct bench *bench = *state;
	struct sw_lodger_view ending = alice;
	ending.kind = SW_LODGER_ENDING;
	for (int i = 0; i < 5; i++)
		assert_int_equal(look_with(bench, ending), -1);
	assert_int_equal(look_with(bench, ending), SW_SHUT_STRANGER);
}

/* Aim: where the driver names no process, memory beyond what runs of ours hold is the evidence: at
 * once where the agent has just come, later only when it stays. */
static void test_hidden_memory(void **state)
{
	struct bench *bench = *state;
	struct sw_fitness_look at = idle;
	at.used_bytes = 600 * MIB;
	assert_int_equal(look(bench, at), SW_SHUT_STRANGER);
	assert_int_equal(bench->sync.strangers[0].pid, 0);
	assert_true(bench->sync.strangers[0].memory_bytes == 600 * MIB);
	at.used_bytes = 500 * MIB;
	for (int i = 0; i < 3; i++)
		look(bench, at);
	assert_int_equal(look(bench, at), -1);
	/* A run of ours: what it says it holds, a quarter more, and a context. */
	at.has_unseen = true;
	at.unseen_bytes = 4 * GIB;
	at.used_bytes = 6 * GIB;
	for (int i = 0; i < 5; i++)
		assert_int_equal(look(bench, at), -1);
	at.used_bytes = 8 * GIB;
	assert_int_equal(look(bench, at), -1);
	assert_int_equal(look(bench, at), -1);
	assert_int_equal(look(bench, at), SW_SHUT_STRANGER);
	/* A run that does not say how much it holds is no evidence of anything. */
	at.unseen_unknown = true;
	for (int i = 0; i < 3; i++)
		look(bench, at);
	assert_int_equal(look(bench, at), -1);
	/* It ends, and its memory goes a moment later. */
	at = idle;
	at.used_bytes = 8 * GIB;
	assert_int_equal(look(bench, at), -1);
	assert_int_equal(look(bench, at), -1);
	assert_int_equal(look(bench, idle), -1);
}

/* Aim: an older driver counts its own share as used. */
static void test_hidden_memory_of_old_drivers(void **state)
{
	struct bench *bench = *state;
	assert_int_equal(look(bench, (struct sw_fitness_look){.knows_memory = true, .used_bytes = 1200 * MIB}), -1);
	assert_int_equal(look(bench, (struct sw_fitness_look){.used_bytes = 10 * GIB}), -1);
	struct sw_fitness_look at = {.knows_memory = true, .used_bytes = 2 * GIB};
	assert_int_equal(look(bench, at), -1);
	assert_int_equal(look(bench, at), -1);
	assert_int_equal(look(bench, at), SW_SHUT_STRANGER);
}

/* Aim: processes by numbers of another namespace are strangers where no run of
 * ours can be among them. */
static void test_foreign_numbers(void **state)
{
	struct bench *bench = *state;
	const struct sw_lodger_view foreign = {.pid = 1 << 24, .kind = SW_LODGER_HIDDEN, .memory_bytes = 20 * MIB};
	assert_int_equal(look_with(bench, foreign), SW_SHUT_STRANGER);
	struct sw_fitness_look at = idle;
	at.used_bytes = 20 * MIB;
	at.lodgers = &foreign;
	at.lodger_count = 1;
	at.has_unseen = true;
	for (int i = 0; i < 4; i++)
		look(bench, at);
	assert_int_equal(look(bench, at), -1);
}

/* Aim: a GPU that does not answer twice is shut with the reason, and opens some seconds after it
 * answers; one that is kept back stays so. */
static void test_dead_and_excluded(void **state)
{
	struct bench *bench = *state;
	struct sw_fitness_look dead = {.silent = "GPU is lost"};
	assert_int_equal(look(bench, idle), -1);
	assert_int_equal(look(bench, dead), -1);
	assert_int_equal(look(bench, idle), -1);
	assert_int_equal(look(bench, dead), -1);
	assert_int_equal(look(bench, dead), SW_SHUT_DEAD);
	assert_string_equal(bench->sync.shut[0].detail, "GPU is lost");
	assert_int_equal(look(bench, idle), SW_SHUT_DEAD);
	assert_int_equal(look(bench, idle), SW_SHUT_DEAD);
	assert_int_equal(look(bench, idle), -1);
	struct sw_fitness_look excluded = idle;
	excluded.excluded = true;
	for (int i = 0; i < 5; i++)
		assert_int_equal(look(bench, excluded), SW_SHUT_EXCLUDED);
}

/* Aim: whatever comes and goes, a GPU is shut exactly while a stranger that counts was seen in the
 * last five seconds, and nothing grows. */
static void test_random_mixes(void **state)
{
	struct bench *bench = *state;
	struct sw_rng rng;
	sw_rng_seed(&rng, 20261118);
	int64_t last_ns = -100 * S;
	for (int round = 0; round < 20000; round++) {
		struct sw_lodger_view lodgers[40];
		struct sw_fitness_look at = idle;
		at.lodgers = lodgers;
		at.lodger_count = sw_rng_below(&rng, 4) == 0 ? sw_rng_below(&rng, 40) : 0;
		bool any = false;
		for (size_t l = 0; l < at.lodger_count; l++) {
			lodgers[l] = (struct sw_lodger_view){
				.pid = 1 + (uint32_t)sw_rng_below(&rng, 60),
				.kind = sw_rng_below(&rng, 3) == 0 ? SW_LODGER_STRANGER : SW_LODGER_OURS,
				.is_light = sw_rng_below(&rng, 2) == 0,
				.memory_bytes = (1 + sw_rng_below(&rng, 1000)) * MIB,
			};
			at.used_bytes += lodgers[l].memory_bytes;
			any |= lodgers[l].kind == SW_LODGER_STRANGER &&
			       (!lodgers[l].is_light || lodgers[l].memory_bytes >= SW_FITNESS_SMALL_BYTES);
		}
		int shut = look(bench, at);
		if (any)
			last_ns = bench->now_ns;
		assert_int_equal(shut, bench->now_ns - last_ns < 5 * S ? SW_SHUT_STRANGER : -1);
		assert_true(bench->sync.stranger_count <= SW_FITNESS_STRANGERS);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_stranger),	    CASE(test_rules),
		CASE(test_who_is_none),	    CASE(test_ending),
		CASE(test_hidden_memory),   CASE(test_hidden_memory_of_old_drivers),
		CASE(test_foreign_numbers), CASE(test_dead_and_excluded),
		CASE(test_random_mixes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
