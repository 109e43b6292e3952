/* Writing and reading again: nothing is lost in Sharewell's own format, and elsewhere what
 * is lost was announced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/rng.h"
#include "sim/trace/write.h"
#include "unit/sim/trace/support.h"

static char *written(const struct sw_trace *trace, const char *format, struct sw_trace_losses *losses)
{
	char *text = NULL;
	size_t size;
	struct sw_err err = {0};
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	if (sw_trace_write(trace, format, out, losses, &err) < 0)
		fail_msg("%s", words(&err));
	fclose(out);
	return text;
}

static struct sw_trace *through(const struct sw_trace *trace, const char *format, struct sw_trace_losses *losses)
{
	SW_CLEANUP(sw_freep) char *text = written(trace, format, losses);
	return must_parse(text, format);
}

static void assert_same_strings(const struct sw_trace *a, uint32_t x, const struct sw_trace *b, uint32_t y)
{
	assert_string_equal(sw_trace_string(a, x), sw_trace_string(b, y));
}

static void assert_same_job(const struct sw_trace *a, const struct sw_trace *b, size_t index)
{
	struct sw_trace_job x = a->jobs.items[index], y = b->jobs.items[index];
	assert_same_strings(a, x.name, b, y.name);
	assert_same_strings(a, x.model, b, y.model);
	assert_same_strings(a, x.tenant, b, y.tenant);
	assert_same_strings(a, x.user, b, y.user);
	x.name = x.model = x.tenant = y.name = y.model = y.tenant = 0;
	assert_int_equal(x.gpu_memory_mib, y.gpu_memory_mib);
	assert_int_equal(x.fate != 0, y.fate != 0);
	if (x.fate != 0) {
		const struct sw_trace_fate *one = &a->fates.items[x.fate - 1], *other = &b->fates.items[y.fate - 1];
		assert_int_equal(one->started_ns, other->started_ns);
		assert_int_equal(one->ended_ns, other->ended_ns);
		assert_int_equal(one->preemptions, other->preemptions);
		assert_int_equal(one->end, other->end);
	}
	assert_int_equal(x.id, y.id);
	assert_int_equal(x.submit_ns, y.submit_ns);
	assert_int_equal(x.duration_ns, y.duration_ns);
	assert_int_equal(x.iterations, y.iterations);
	assert_int_equal(x.iteration_ns, y.iteration_ns);
	assert_int_equal(x.deadline_ns, y.deadline_ns);
	assert_int_equal(x.gpus, y.gpus);
	assert_int_equal(x.min_gpus, y.min_gpus);
	assert_int_equal(x.max_gpus, y.max_gpus);
	assert_int_equal(x.batch_size, y.batch_size);
	assert_int_equal(x.weight_milli, y.weight_milli);
	assert_memory_equal(x.stage_us, y.stage_us, sizeof x.stage_us);
	assert_int_equal(x.job_class, y.job_class);
	assert_int_equal(x.deadline_kind, y.deadline_kind);
}

static uint32_t random_name(struct sw_trace *trace, struct sw_rng *rng)
{
	static const char *const names[] = {"",	  "plain", "with, comma", "with \"quotes\"",   " spaces ",
					    "\"", ",",	   "tab\tinside", "\xc3\xa9t\xc3\xa9", "#5",
					    "\t", "x\"\"y"};
	const char *name = names[sw_rng_below(rng, sizeof names / sizeof *names)];
	uint32_t index;
	assert_int_equal(sw_trace_intern(trace, name, strlen(name), &index), 0);
	return index;
}

/* A trace in which every field takes odd values. */
static struct sw_trace *random_trace(uint64_t seed, size_t jobs)
{
	struct sw_trace *trace;
	struct sw_rng rng;
	sw_rng_seed(&rng, seed);
	assert_int_equal(sw_trace_new("random", "test", &trace), 0);
	int64_t now = (int64_t)sw_rng_below(&rng, 3) * SW_NS_PER_S;
	for (size_t i = 0; i < jobs; i++) {
		struct sw_trace_job *job = sw_trace_add(trace);
		job->id = (int64_t)(sw_rng_next(&rng) >> sw_rng_below(&rng, 63) >> 1);
		job->submit_ns = now;
		job->duration_ns = (int64_t)sw_rng_below(&rng, UINT64_C(1) << sw_rng_below(&rng, 61));
		job->gpus = 1 + (uint32_t)sw_rng_below(&rng, 999999);
		job->min_gpus = 1 + (uint32_t)sw_rng_below(&rng, job->gpus);
		job->max_gpus = job->gpus + (uint32_t)sw_rng_below(&rng, 1000001 - job->gpus);
		job->iterations = (int64_t)(sw_rng_below(&rng, 2) * sw_rng_below(&rng, SW_TRACE_MAX_ITERATIONS));
		job->iteration_ns = (int64_t)(sw_rng_below(&rng, 2) * sw_rng_below(&rng, 1000 * SW_NS_PER_S));
		if (sw_rng_below(&rng, 2) == 0) {
			job->deadline_ns = (int64_t)sw_rng_below(&rng, (uint64_t)SW_TRACE_MAX_NS);
			job->deadline_kind = sw_rng_below(&rng, 2) == 0 ? SW_TRACE_SOFT : SW_TRACE_STRICT;
		}
		job->batch_size = (uint32_t)(sw_rng_below(&rng, 2) * sw_rng_below(&rng, SW_TRACE_MAX_BATCH));
		job->weight_milli = 1 + (uint32_t)sw_rng_below(&rng, 1000000000);
		job->job_class = (uint8_t)sw_rng_below(&rng, 2);
		for (size_t s = 0; s < 3; s++)
			job->stage_us[s] = (uint32_t)sw_rng_below(&rng, 3600000000);
		job->name = random_name(trace, &rng);
		job->model = random_name(trace, &rng);
		job->tenant = random_name(trace, &rng);
		if (seed % 2 == 1) {
			job->user = random_name(trace, &rng);
			job->gpu_memory_mib = (uint32_t)sw_rng_below(&rng, 200000);
		}
		if (seed % 2 == 1 && sw_rng_below(&rng, 3) > 0) {
			struct sw_trace_fate *fate = sw_trace_fate_of(trace, job);
			if (sw_rng_below(&rng, 4) > 0)
				fate->started_ns = (int64_t)sw_rng_below(&rng, (uint64_t)SW_TRACE_MAX_NS);
			if (sw_rng_below(&rng, 4) > 0)
				fate->ended_ns = (int64_t)sw_rng_below(&rng, (uint64_t)SW_TRACE_MAX_NS);
			fate->preemptions = (uint32_t)sw_rng_next(&rng);
			fate->end = (uint8_t)sw_rng_below(&rng, SW_TRACE_ENDS);
		}
		now += (int64_t)sw_rng_below(&rng, UINT64_C(1) << sw_rng_below(&rng, 50));
	}
	return trace;
}

static void test_own_format_loses_nothing(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 100; seed++) {
		SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = random_trace(seed, 40);
		struct sw_trace_losses losses = {.count = 7};
		SW_CLEANUP(sw_trace_freep) struct sw_trace *back = through(trace, "sharewell", &losses);
		assert_int_equal(losses.count, 0);
		assert_int_equal(back->jobs.count, trace->jobs.count);
		for (size_t i = 0; i < trace->jobs.count; i++)
			assert_same_job(trace, back, i);
	}
}

static bool lost(const struct sw_trace_losses *losses, const char *field, uint64_t *ret_jobs)
{
	*ret_jobs = 0;
	for (size_t i = 0; i < losses->count; i++)
		if (strcmp(losses->items[i].field, field) == 0)
			*ret_jobs += losses->items[i].jobs;
	return *ret_jobs > 0;
}

/* Any difference after a round trip must have been announced under the field's name. */
static void assert_losses_are_honest(const struct sw_trace *a, const struct sw_trace *b, const struct sw_trace_losses *losses)
{
	uint64_t jobs;
	for (size_t i = 0; i < a->jobs.count; i++) {
		const struct sw_trace_job *x = &a->jobs.items[i], *y = &b->jobs.items[i];
#define HONEST(field, same)                                                                        \
	do {                                                                                       \
		if (!(same) && !lost(losses, field, &jobs))                                        \
			fail_msg("job %zu lost its %s in %s without a word", i, field, b->format); \
	} while (0)
		HONEST("id", x->id == y->id);
		HONEST("submit time", x->submit_ns == y->submit_ns);
		HONEST("duration", x->duration_ns == y->duration_ns);
		HONEST("iterations", x->iterations == y->iterations || x->iterations == 0);
		HONEST("iteration time", x->iteration_ns == y->iteration_ns || x->iteration_ns == 0 || lost(losses, "iterations", &jobs));
		HONEST("deadline", x->deadline_ns == y->deadline_ns);
		HONEST("deadline kind", x->deadline_kind == y->deadline_kind || y->deadline_kind == SW_TRACE_NO_DEADLINE);
		HONEST("elastic range", x->min_gpus == y->min_gpus && x->max_gpus == y->max_gpus);
		HONEST("batch size", x->batch_size == y->batch_size);
		HONEST("weight", x->weight_milli == y->weight_milli);
		HONEST("class", x->job_class == y->job_class);
		HONEST("stage times", memcmp(x->stage_us, y->stage_us, sizeof x->stage_us) == 0);
		HONEST("name", strcmp(sw_trace_string(a, x->name), sw_trace_string(b, y->name)) == 0);
		HONEST("model", strcmp(sw_trace_string(a, x->model), sw_trace_string(b, y->model)) == 0);
		HONEST("tenant", strcmp(sw_trace_string(a, x->tenant), sw_trace_string(b, y->tenant)) == 0);
#undef HONEST
		assert_int_equal(x->gpus, y->gpus);
	}
}

static void test_other_formats_name_what_they_lose(void **state)
{
	(void)state;
	for (size_t f = 0; sw_trace_write_formats(f) != NULL; f++)
		for (uint64_t seed = 0; seed < 60; seed++) {
			SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = random_trace(seed, 1 + seed % 5);
			/* Rounded times could change places; here they are apart. */
			for (size_t i = 0; i < trace->jobs.count; i++)
				trace->jobs.items[i].submit_ns += (int64_t)i * 2 * SW_NS_PER_S;
			struct sw_trace_losses losses;
			SW_CLEANUP(sw_trace_freep) struct sw_trace *back = through(trace, sw_trace_write_formats(f), &losses);
			assert_int_equal(back->jobs.count, trace->jobs.count);
			assert_losses_are_honest(trace, back, &losses);
		}
}

static void test_nothing_is_announced_that_is_kept(void **state)
{
	(void)state;
	struct sw_trace_losses losses;
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *plain = must_parse("job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
					    "4,8,30,133,vgg11,147,23\n9,2,53,157,inception4,127,0\n",
					    NULL);
	SW_CLEANUP(sw_freep) char *tiresias = written(plain, "tiresias", &losses);
	assert_int_equal(losses.count, 0);
	assert_string_equal(tiresias, "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
				      "4,8,30,133,vgg11,147,23\n9,2,53,157,inception4,127,0\n");
	SW_CLEANUP(sw_freep) char *philly = written(plain, "philly", &losses);
	uint64_t jobs;
	assert_true(lost(&losses, "model", &jobs));
	assert_int_equal(jobs, 2);
	assert_true(lost(&losses, "id", &jobs));
	assert_false(lost(&losses, "tenant", &jobs));
	assert_string_equal(philly, "timestamp,duration,num_gpus,gpu_time,cluster\n"
				    "1970-01-01 00:00:30,147,8,1176,\n1970-01-01 00:00:53,127,2,254,\n");
}

static void test_muri_gets_iterations(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *trace = must_parse("submit_s,duration_s,gpus,iterations,iteration_ms\n"
					    "0,100,1,,\n1,100,1,8,\n2,100,1,200,499.5\n",
					    NULL);
	SW_CLEANUP(sw_trace_freep) struct sw_trace *muri = through(trace, "muri", NULL);
	assert_int_equal(muri->jobs.items[0].iterations, 1);
	assert_int_equal(muri->jobs.items[0].iteration_ns, 100 * SW_NS_PER_S);
	assert_int_equal(muri->jobs.items[1].iterations, 8);
	assert_int_equal(muri->jobs.items[1].iteration_ns, 12500 * SW_NS_PER_MS);
	assert_int_equal(muri->jobs.items[2].iteration_ns, 499500000);
	assert_int_equal(muri->jobs.items[2].duration_ns, 100 * SW_NS_PER_S);
}

static void test_elasticflow_keeps_names_and_best_effort(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *trace =
		must_parse("job_id,submit_time,duration,num_gpu,ddl,best_effort\nab-1,5,6,1,,0\n\"#2\",6,6,1,99,0\nef-3,7,6,1,,1\n", NULL);
	struct sw_trace_losses losses;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *back = through(trace, "elasticflow", &losses);
	assert_int_equal(losses.count, 0);
	for (size_t i = 0; i < 3; i++)
		assert_same_job(trace, back, i);
	assert_true(back->jobs.items[0].deadline_ns == SW_NEVER);
}

static void test_unknown_format(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = must_parse("submit_s,duration_s,gpus\n0,1,1\n", NULL);
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct sw_err err = {0};
	assert_int_equal(sw_trace_write(trace, "gavel", out, NULL, &err), SW_ENOTFOUND);
	assert_says(&err, "cannot write traces in the format 'gavel'");
	sw_err_clear(&err);
	assert_int_equal(sw_trace_write(trace, "philiy", out, NULL, &err), SW_ENOTFOUND);
	assert_says(&err, "Did you mean 'philly'?");
	fclose(out);
	assert_int_equal(size, 0);
}

static void test_a_full_disk_is_noticed(void **state)
{
	(void)state;
	FILE *full = fopen("/dev/full", "w");
	if (full == NULL)
		skip();
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = must_parse("submit_s,duration_s,gpus\n0,1,1\n", NULL);
	struct sw_err err = {0};
	assert_int_equal(sw_trace_write(trace, "sharewell", full, NULL, &err), SW_EIO);
	assert_says(&err, "cannot write the trace");
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_format_loses_nothing),
		cmocka_unit_test(test_other_formats_name_what_they_lose),
		cmocka_unit_test(test_nothing_is_announced_that_is_kept),
		cmocka_unit_test(test_muri_gets_iterations),
		cmocka_unit_test(test_elasticflow_keeps_names_and_best_effort),
		cmocka_unit_test(test_unknown_format),
		cmocka_unit_test(test_a_full_disk_is_noticed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
