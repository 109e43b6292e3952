/* Learning slowdowns: nothing seen, a world that the profiles do not describe, noise and strays,
 * bad input, the text form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/rng.h"
#include "contention/learn.h"
#include "unit/contention/models.h"
#include "unit/contention/slowdown.h"

static const char *const models[] = {"resnet50", "data2vec", "deepfm", "dlrm", "transformer", "mobilenet_v2"};
#define MODELS (sizeof models / sizeof models[0])

static struct sw_learn *learner(void)
{
	struct sw_learn *learn = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_learn_new(profiles, &sw_predict_default, &learn, &err), 0);
	return learn;
}

static struct sw_learn_answer ask(struct sw_learn *learn, enum sw_predict_way way, const char *job, const char *other)
{
	const char *names[] = {job, other};
	struct sw_learn_answer answer;
	sw_learn_ask(learn, &(struct sw_learn_case){way, names, 2, 0}, &answer);
	return answer;
}

static void add(struct sw_learn *learn, enum sw_predict_way way, const char *job, const char *other, int64_t slow_milli)
{
	const char *names[] = {job, other};
	struct sw_err err = {0};
	if (sw_learn_add(learn, &(struct sw_learn_case){way, names, 2, 0}, slow_milli, 60, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
}

/* Before anything was measured, and under ways that were not, the answers are the
 * predictor's to the last digit: for pairs, for a set of three, on both sides of the gate,
 * and for sets too large to learn. */
static void test_nothing_seen(void **state)
{
	(void)state;
	SW_CLEANUP(sw_learn_freep) struct sw_learn *learn = learner();
	add(learn, SW_WAY_MPS, "deepfm", "deepfm", 5000);
	static const char *const sets[][9] = {
		{"dlrm", "deepfm"}, {"dlrm", "deepfm", "resnet50"}, {"a2c", "a2c", "a2c", "a2c", "a2c", "a2c", "a2c", "a2c", "a2c"}};
	static const size_t counts[] = {2, 3, 9};
	for (size_t s = 0; s < 3; s++) {
		const struct sw_profile *jobs[9];
		struct sw_prediction found[9];
		for (size_t i = 0; i < counts[s]; i++)
			jobs[i] = sw_profiles_find(profiles, sets[s][i]);
		for (size_t way = 0; way < SW_WAY_COUNT; way++) {
			if (way == SW_WAY_MPS && counts[s] < 9)
				continue;
			sw_predict_set(&sw_predict_default, (enum sw_predict_way)way, jobs, counts[s], found);
			for (size_t i = 0; i < counts[s]; i++) {
				struct sw_learn_answer answer;
				sw_learn_ask(learn, &(struct sw_learn_case){(enum sw_predict_way)way, sets[s], counts[s], i}, &answer);
				assert_int_equal(answer.slow_milli, found[i].slow_milli);
				assert_int_equal(answer.prior_milli, found[i].slow_milli);
				assert_int_equal(answer.bound, found[i].bound);
				assert_int_equal(answer.known, 0);
			}
		}
	}
}

/* A GPU on which things are not as in the study: sharing costs 10 %, contention hurts
 * half as much again, every model suffers and hurts in its own measure, and a
 * measurement is off by up to 4 %. */
static uint32_t truth(size_t job, size_t other, struct sw_rng *noise)
{
	static const uint32_t suffers[MODELS] = {1000, 1150, 900, 1300, 1050, 950}, hurts[MODELS] = {1200, 950, 1100, 900, 1000, 1250};
	const struct sw_profile *beside = sw_profiles_find(profiles, models[other]);
	uint64_t slow = slowdown_milli(&sw_predict_default, sw_profiles_find(profiles, models[job]), &beside, 1);
	slow = 1100 + (slow - 1000) * 3 / 2;
	slow = slow * suffers[job] / 1000 * hurts[other] / 1000;
	return (uint32_t)(noise != NULL ? slow * (960 + sw_rng_below(noise, 81)) / 1000 : slow);
}

/* From a random half of all pairs the other half is predicted with a median error of at most 10
 * %, where the profiles alone are wrong by more than 15 %; over 20 ways to halve them. Each
 * pair was measured once. */
static void test_held_out(void **state)
{
	(void)state;
	uint32_t good = 0;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		SW_CLEANUP(sw_learn_freep) struct sw_learn *learn = learner();
		struct sw_rng rng;
		sw_rng_seed(&rng, seed);
		bool seen[MODELS][MODELS] = {{false}};
		for (size_t a = 0; a < MODELS; a++)
			for (size_t b = a; b < MODELS; b++)
				if (sw_rng_below(&rng, 2) == 0) {
					seen[a][b] = seen[b][a] = true;
					add(learn, SW_WAY_MPS, models[a], models[b], truth(a, b, &rng));
					if (a != b)
						add(learn, SW_WAY_MPS, models[b], models[a], truth(b, a, &rng));
				}
		uint32_t held = 0, within = 0, prior_within = 0;
		for (size_t a = 0; a < MODELS; a++)
			for (size_t b = 0; b < MODELS; b++) {
				if (seen[a][b])
					continue;
				struct sw_learn_answer answer = ask(learn, SW_WAY_MPS, models[a], models[b]);
				uint32_t right = truth(a, b, NULL);
				held++;
				within += answer.slow_milli * 10 >= right * 9 && answer.slow_milli * 10 <= right * 11;
				prior_within += answer.prior_milli * 100 >= right * 85 && answer.prior_milli * 100 <= right * 115;
			}
		assert_true(2 * prior_within < held);
		good += 2 * within >= held;
	}
	assert_int_equal(good, 20);
}

/* What is measured again and again is believed, also where it contradicts the profiles, and the
 * answer says from how much. */
static void test_repeated(void **state)
{
	(void)state;
	SW_CLEANUP(sw_learn_freep) struct sw_learn *learn = learner();
	for (int i = 0; i < 5; i++)
		add(learn, SW_WAY_SLICES, "data2vec", "mobilenet_v2", 1480 + i * 10);
	struct sw_learn_answer answer = ask(learn, SW_WAY_SLICES, "Data2Vec", "MobileNet-V2");
	assert_in_range(answer.slow_milli, 1450, 1590);
	assert_int_equal(answer.times, 5);
	assert_int_equal(answer.samples, 300);
	assert_int_equal(answer.known, 1);
	assert_int_equal(ask(learn, SW_WAY_SLICES, "mobilenet_v2", "data2vec").times, 0);
}

/* A value that is wrong by a factor of ten, measured once, changes the answer for its
 * pair by at most a quarter and for others by less; among repeats of the same pair it
 * changes next to nothing. */
static void test_stray(void **state)
{
	(void)state;
	SW_CLEANUP(sw_learn_freep) struct sw_learn *learn = learner();
	for (size_t a = 0; a < MODELS; a++)
		for (size_t b = 0; b < MODELS; b++)
			if (a != b && !(a == 1 && b == 5))
				add(learn, SW_WAY_MPS, models[a], models[b], truth(a, b, NULL));
	uint32_t before = ask(learn, SW_WAY_MPS, "data2vec", "mobilenet_v2").slow_milli;
	uint32_t other = ask(learn, SW_WAY_MPS, "data2vec", "resnet50").slow_milli;
	add(learn, SW_WAY_MPS, "data2vec", "mobilenet_v2", before * 10);
	assert_in_range(ask(learn, SW_WAY_MPS, "data2vec", "mobilenet_v2").slow_milli, before, before + before / 4);
	assert_in_range(ask(learn, SW_WAY_MPS, "data2vec", "resnet50").slow_milli, other - other / 10, other + other / 10);

	for (int i = 0; i < 4; i++)
		add(learn, SW_WAY_MPS, "dlrm", "transformer", 1100);
	before = ask(learn, SW_WAY_MPS, "dlrm", "transformer").slow_milli;
	add(learn, SW_WAY_MPS, "dlrm", "transformer", 11000);
	assert_in_range(ask(learn, SW_WAY_MPS, "dlrm", "transformer").slow_milli, before - before / 50, before + before / 50);
}

/* The very first measurement, wrong by a factor of ten, does not turn the answer either. */
static void test_first_stray(void **state)
{
	(void)state;
	SW_CLEANUP(sw_learn_freep) struct sw_learn *learn = learner();
	add(learn, SW_WAY_MPS, "data2vec", "mobilenet_v2", 10000);
	assert_in_range(ask(learn, SW_WAY_MPS, "data2vec", "mobilenet_v2").slow_milli, 1001, 1222);
	add(learn, SW_WAY_MPS, "data2vec", "mobilenet_v2", 10000);
	add(learn, SW_WAY_MPS, "data2vec", "mobilenet_v2", 10000);
	assert_true(ask(learn, SW_WAY_MPS, "data2vec", "mobilenet_v2").slow_milli > 5000);
}

/* The error figure counts what was seen, falls as more of the world is known, and names
 * the pair that fits worst. */
static void test_error(void **state)
{
	(void)state;
	SW_CLEANUP(sw_learn_freep) struct sw_learn *learn = learner();
	struct sw_learn_error error;
	sw_learn_error(learn, &error);
	assert_int_equal(error.count, 0);
	for (size_t a = 0; a < MODELS; a++)
		for (size_t b = 0; b < MODELS; b++)
			add(learn, SW_WAY_MPS, models[a], models[b], truth(a, b, NULL));
	sw_learn_error(learn, &error);
	assert_int_equal(error.count, MODELS * MODELS);
	assert_true(error.prior_median_milli > 100);
	assert_in_range(error.median_milli, 0, 60);
	for (int i = 0; i < 3; i++)
		add(learn, SW_WAY_MPS, "data2vec", "resnet50", 9000);
	add(learn, SW_WAY_GATE, "resnet50", "dlrm", 1010);
	sw_learn_error_of(learn, SW_WAY_MPS, &error);
	assert_int_equal(error.count, MODELS * MODELS);
	assert_string_equal(error.worst, "data2vec beside resnet50 (mps)");
	assert_true(error.worst_milli > 500);
	sw_learn_error_of(learn, SW_WAY_GATE, &error);
	assert_int_equal(error.count, 1);
	assert_int_equal(error.median_milli, error.prior_median_milli);
	assert_string_equal(error.worst, "resnet50 beside dlrm (gate, guaranteed)");
}

/* What cannot be a measurement is refused with the reason, and changes no answer. */
static void test_refused(void **state)
{
	(void)state;
	SW_CLEANUP(sw_learn_freep) struct sw_learn *learn = learner();
	char longest[SW_LEARN_NAME_MAX + 2];
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	const struct {
		const char *job;
		size_t count, which;
		int64_t slow_milli;
		uint32_t samples;
		const char *detail;
	} cases[] = {
		{"dlrm", 2, 0, 0, 10, "0.000 is not one: expected 0.5 to 1000"},
		{"dlrm", 2, 0, -1200, 10, "-1.200 is not one"},
		{"dlrm", 2, 0, 499, 10, "0.499 is not one"},
		{"dlrm", 2, 0, 1000001, 10, "1000.001 is not one"},
		{"dlrm", 2, 0, INT64_MIN, 10, "is not one"},
		{"dlrm", 2, 0, 1200, 0, "it was measured on no steps"},
		{"dlrm", 1, 0, 1200, 10, "a job alone is not slowed down"},
		{"dlrm", 0, 0, 1200, 10, "it takes 2 to 8 jobs"},
		{"dlrm", 9, 0, 1200, 10, "it takes 2 to 8 jobs"},
		{"dlrm", 2, 2, 1200, 10, "one of which was measured"},
		{"", 2, 0, 1200, 10, "its name must have 1 to 80 bytes"},
		{longest, 2, 0, 1200, 10, "its name must have 1 to 80 bytes"},
		{"a\"b", 2, 0, 1200, 10, "without quotes"},
		{"a\nb", 2, 0, 1200, 10, "control characters"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const char *names[9] = {cases[i].job, "a", "b", "c", "d", "e", "f", "g", "h"};
		struct sw_learn_case about = {SW_WAY_MPS, names, cases[i].count, cases[i].which};
		struct sw_err err = {0};
		assert_int_equal(sw_learn_add(learn, &about, cases[i].slow_milli, cases[i].samples, &err), SW_EINPUT);
		if (strstr(err.detail, cases[i].detail) == NULL)
			fail_msg("'%s' does not contain '%s'", err.detail, cases[i].detail);
	}
	assert_int_equal(ask(learn, SW_WAY_MPS, "dlrm", "a").known, 0);
}

/* Jobs without a profile have the default's vector, are learned under their own
 * names, and are not mixed up. */
static void test_without_profile(void **state)
{
	(void)state;
	SW_CLEANUP(sw_learn_freep) struct sw_learn *learn = learner();
	uint32_t prior = ask(learn, SW_WAY_MPS, "alice", "bob").slow_milli;
	for (int i = 0; i < 4; i++)
		add(learn, SW_WAY_MPS, "alice", "bob", 2500);
	assert_true(ask(learn, SW_WAY_MPS, "alice", "bob").slow_milli > 2200);
	assert_true(ask(learn, SW_WAY_MPS, "alice", "bob").slow_milli > ask(learn, SW_WAY_MPS, "carol", "dave").slow_milli);
	assert_true(ask(learn, SW_WAY_MPS, "carol", "dave").slow_milli >= prior);
	assert_int_equal(ask(learn, SW_WAY_MPS, "carol", "dave").times, 0);
}

/* The order of jobs in a set does not matter, but for which is guaranteed. */
static void test_spelling(void **state)
{
	(void)state;
	SW_CLEANUP(sw_learn_freep) struct sw_learn *learn = learner();
	const char *one[] = {"dqn", "dlrm", "a2c"}, *two[] = {"a2c", "dqn", "dlrm"};
	struct sw_err err = {0};
	struct sw_learn_answer answer;
	assert_int_equal(sw_learn_add(learn, &(struct sw_learn_case){SW_WAY_MPS, one, 3, 1}, 1500, 20, &err), 0);
	sw_learn_ask(learn, &(struct sw_learn_case){SW_WAY_MPS, two, 3, 2}, &answer);
	assert_int_equal(answer.times, 1);
	assert_int_equal(sw_learn_add(learn, &(struct sw_learn_case){SW_WAY_GATE, one, 3, 1}, 1500, 20, &err), 0);
	sw_learn_ask(learn, &(struct sw_learn_case){SW_WAY_GATE, two, 3, 2}, &answer);
	assert_int_equal(answer.times, 0);
	const char *three[] = {"dqn", "a2c", "dlrm"};
	sw_learn_ask(learn, &(struct sw_learn_case){SW_WAY_GATE, three, 3, 2}, &answer);
	assert_int_equal(answer.times, 1);
}

/* More sets than there is room for: the one not measured for longest is forgotten, and all of
 * it stays within bounds. */
static void test_bounded(void **state)
{
	(void)state;
	SW_CLEANUP(sw_learn_freep) struct sw_learn *learn = learner();
	char name[32];
	for (unsigned i = 0; i < SW_LEARN_SETS_MAX + 10; i++) {
		snprintf(name, sizeof name, "job %u", i * 7919 % 1000);
		add(learn, SW_WAY_MPS, name, "resnet50", 1300);
		add(learn, SW_WAY_MPS, "job 0", "resnet50", 1300);
	}
	struct sw_learn_error error;
	sw_learn_error(learn, &error);
	assert_int_equal(error.count, SW_LEARN_SETS_MAX);
	assert_int_equal(ask(learn, SW_WAY_MPS, "job 0", "resnet50").times, SW_LEARN_SETS_MAX + 11);
	assert_int_equal(ask(learn, SW_WAY_MPS, "job 919", "resnet50").times, 0); /* the second that came */
	assert_int_equal(ask(learn, SW_WAY_MPS, name, "resnet50").times, 1);
}

static uint64_t fingerprint(struct sw_learn *learn)
{
	uint64_t hash = SW_HASH_START;
	for (size_t way = 0; way < SW_WAY_COUNT; way++)
		for (size_t a = 0; a < MODELS; a++)
			for (size_t b = 0; b < MODELS; b++)
				hash = sw_hash_u64(hash, ask(learn, (enum sw_predict_way)way, models[a], models[b]).slow_milli);
	return hash;
}

/* Written and read again it answers the same and writes the same; so does one that saw the
 * sets in another order; and the answers are the same ones whatever compiler and
 * optimisation made the program. */
static void test_text(void **state)
{
	(void)state;
	SW_CLEANUP(sw_learn_freep) struct sw_learn *learn = learner(), *again = learner(), *backwards = learner();
	struct sw_rng rng;
	sw_rng_seed(&rng, 7);
	for (size_t i = 0; i < 400; i++) {
		size_t a = sw_rng_below(&rng, MODELS), b = sw_rng_below(&rng, MODELS);
		add(learn, (enum sw_predict_way)sw_rng_below(&rng, SW_WAY_COUNT), models[a], models[b], truth(a, b, &rng));
	}
	SW_CLEANUP(sw_freep) char *text = NULL, *second = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_learn_write(learn, &text, &err), 0);
	if (sw_learn_read(again, "kept.json", text, strlen(text), &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	assert_int_equal(sw_learn_write(again, &second, &err), 0);
	assert_string_equal(text, second);
	assert_int_equal(fingerprint(learn), fingerprint(again));
	for (size_t a = MODELS; a-- > 0;)
		for (size_t b = MODELS; b-- > 0;)
			add(backwards, SW_WAY_MPS, models[a], models[b], truth(a, b, NULL));
	struct sw_learn *forwards = again;
	assert_int_equal(sw_learn_read(forwards, "none", "{\"format\": 1}", 13, &err), 0);
	for (size_t a = 0; a < MODELS; a++)
		for (size_t b = 0; b < MODELS; b++)
			add(forwards, SW_WAY_MPS, models[a], models[b], truth(a, b, NULL));
	assert_int_equal(fingerprint(forwards), fingerprint(backwards));
	assert_int_equal(fingerprint(forwards), UINT64_C(0xaa7df7a8a43b254a));
}

/* Text that is not what was written is refused by line, and what was known stays. */
static void test_text_refused(void **state)
{
	(void)state;
#define SET(rest) "{\"format\": 1, \"observations\": [\n{\"way\": \"mps\", \"jobs\": [\"a\", \"b\"], " rest "]}"
	static const struct {
		const char *text, *detail;
	} cases[] = {
		{"{\"format\": 2}", "'format' is 2, expected 1 to 1"},
		{"{}", "needs 'format'"},
		{SET("\"which\": 0, \"slowdowns\": [nan], \"samples\": [1]}"), "line 2: this value is 'nan', expected a decimal number"},
		{SET("\"which\": 0, \"slowdowns\": [-1.5], \"samples\": [1]}"), "is -1.5, expected 0.500 to 1000.000"},
		{SET("\"which\": 0, \"slowdowns\": [0], \"samples\": [1]}"), "is 0, expected 0.500 to 1000.000"},
		{SET("\"which\": 0, \"slowdowns\": [1.5], \"samples\": [0]}"), "is 0, expected 1 to"},
		{SET("\"which\": 0, \"slowdowns\": [1.5, 2], \"samples\": [1]}"), "there are 2 slowdowns and 1 samples"},
		{SET("\"which\": 2, \"slowdowns\": [1.5], \"samples\": [1]}"), "'which' is 2 of 2 jobs"},
		{SET("\"which\": 0, \"slowdowns\": [1.5], \"samples\": [1]}, {\"way\": \"mps\", \"jobs\": [\"a\", \"b\"], \"which\": 0, "
		     "\"slowdowns\": [1.5], \"samples\": [1]}"),
		 "this set is there already"},
		{"[1]", "expected a file of measured slowdowns"},
	};
#undef SET
	SW_CLEANUP(sw_learn_freep) struct sw_learn *learn = learner();
	add(learn, SW_WAY_MPS, "dlrm", "dlrm", 3000);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct sw_err err = {0};
		assert_true(sw_learn_read(learn, "kept.json", cases[i].text, strlen(cases[i].text), &err) < 0);
		if (strstr(err.detail, cases[i].detail) == NULL)
			fail_msg("'%s' does not contain '%s'", err.detail, cases[i].detail);
	}
	assert_int_equal(ask(learn, SW_WAY_MPS, "dlrm", "dlrm").times, 1);
}

/* Aim: a learner that was written as bytes and read answers and goes on as the one it was, and
 * bytes that are cut short or changed are an error or a learner that keeps its bounds. */
static void test_bytes(void **state)
{
	(void)state;
	SW_CLEANUP(sw_learn_freep) struct sw_learn *learn = learner(), *other = learner();
	struct sw_rng rng;
	sw_rng_seed(&rng, 5);
	for (int i = 0; i < 100; i++)
		add(learn, (enum sw_predict_way)sw_rng_below(&rng, SW_WAY_COUNT), models[sw_rng_below(&rng, MODELS)],
		    models[sw_rng_below(&rng, MODELS)], 1000 + (int64_t)sw_rng_below(&rng, 2000));
	struct sw_pack out = {0}, in, full = {.failed = SW_ENOMEM};
	sw_learn_pack(&full, learn); /* writes nothing, and takes nothing away */
	sw_learn_pack(&out, learn);
	in = sw_pack_reader(out.bytes, out.size);
	sw_learn_pack(&in, other);
	assert_int_equal(in.failed, 0);
	assert_int_equal(sw_pack_left(&in), 0);
	struct sw_learn_error error;
	sw_learn_error(other, &error);
	assert_true(error.count > 20);
	for (int round = 0; round < 2; round++) {
		for (size_t way = 0; way < SW_WAY_COUNT; way++)
			for (size_t a = 0; a < MODELS; a++)
				for (size_t b = 0; b < MODELS; b++) {
					struct sw_learn_answer one = ask(learn, (enum sw_predict_way)way, models[a], models[b]);
					struct sw_learn_answer two = ask(other, (enum sw_predict_way)way, models[a], models[b]);
					assert_memory_equal(&one, &two, sizeof one);
				}
		add(learn, SW_WAY_GATE, "dlrm", "a2c", 1400);
		add(other, SW_WAY_GATE, "dlrm", "a2c", 1400);
		assert_true(sw_learn_total(learn) == sw_learn_total(other));
	}
	for (size_t at = 0; at < out.size; at += 7) {
		SW_CLEANUP(sw_learn_freep) struct sw_learn *damaged = learner();
		unsigned char was = out.bytes[at];
		in = sw_pack_reader(out.bytes, at);
		sw_learn_pack(&in, damaged);
		assert_int_equal(in.failed, SW_EINPUT);
		out.bytes[at] = (unsigned char)~was;
		SW_CLEANUP(sw_learn_freep) struct sw_learn *changed = learner();
		in = sw_pack_reader(out.bytes, out.size);
		sw_learn_pack(&in, changed);
		if (in.failed == 0)
			(void)ask(changed, SW_WAY_MPS, models[0], models[1]);
		out.bytes[at] = was;
	}
	sw_pack_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_seen), cmocka_unit_test(test_held_out),
		cmocka_unit_test(test_repeated),     cmocka_unit_test(test_stray),
		cmocka_unit_test(test_first_stray),  cmocka_unit_test(test_error),
		cmocka_unit_test(test_refused),	     cmocka_unit_test(test_without_profile),
		cmocka_unit_test(test_spelling),     cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_text),	     cmocka_unit_test(test_text_refused),
		cmocka_unit_test(test_bytes),
	};
	return cmocka_run_group_tests(tests, load_profiles, unload_profiles);
}
