/* Each format: recognised by its first line, every column in its place and unit, and clear words
 * when a header does not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sim/trace/formats.h"
#include "unit/sim/trace/support.h"

#define S SW_NS_PER_S
#define MS SW_NS_PER_MS

static void assert_string(const struct sw_trace *trace, uint32_t index, const char *expected)
{
	assert_string_equal(sw_trace_string(trace, index), expected);
}

/* What readers leave alone when a file says nothing about it. */
static void assert_ordinary(const struct sw_trace_job *job)
{
	assert_int_equal(job->min_gpus, job->gpus);
	assert_int_equal(job->max_gpus, job->gpus);
	assert_int_equal(job->weight_milli, 1000);
	assert_int_equal(job->job_class, SW_CLASS_GUARANTEED);
	assert_true(job->deadline_ns == SW_NEVER);
	assert_int_equal(job->deadline_kind, SW_TRACE_NO_DEADLINE);
}

static void test_tiresias(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *trace = must_parse("job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
					    "7,8,30,133,vgg11,147.5,23\n"
					    "9,2,53,157,inception4,127,26\n",
					    NULL);
	assert_string_equal(trace->format, "tiresias");
	assert_string_equal(trace->origin, "test.csv");
	assert_false(trace->named);
	assert_int_equal(trace->jobs.count, 2);
	const struct sw_trace_job *job = &trace->jobs.items[0];
	assert_int_equal(job->id, 7);
	assert_int_equal(job->gpus, 8);
	assert_int_equal(job->submit_ns, 30 * S);
	assert_int_equal(job->duration_ns, 147 * S + S / 2);
	assert_int_equal(job->iterations, 133);
	assert_string(trace, job->model, "vgg11");
	assert_ordinary(job);
}

static void test_muri(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *trace = must_parse("job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,"
					    "resource_time_0,resource_time_1,resource_time_2,priority\r\n"
					    "0,4,1456000,1005573,resnet18,128,926133000,1456000,921.25,0.6,113,73,1\r\n",
					    NULL);
	assert_string_equal(trace->format, "muri");
	const struct sw_trace_job *job = &trace->jobs.items[0];
	assert_int_equal(job->submit_ns, 1456000 * MS);
	assert_int_equal(job->duration_ns, 926133000 * MS);
	assert_int_equal(job->iterations, 1005573);
	assert_int_equal(job->iteration_ns, 921250000);
	assert_int_equal(job->batch_size, 128);
	assert_int_equal(job->stage_us[0], 600);
	assert_int_equal(job->stage_us[1], 113000);
	assert_int_equal(job->stage_us[2], 73000);
	assert_int_equal(job->job_class, SW_CLASS_OPPORTUNISTIC);
}

static void test_philly(void **state)
{
	(void)state;
	/* Out of order, over a leap day, and with equal times, which keep the order of the file. */
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *trace = must_parse("timestamp,duration,num_gpus,gpu_time,cluster\n"
					    "2016-03-01 00:00:10,66.0,1,66.0,11cb48\n"
					    "2016-02-28 23:59:59,2951.0,8,2951.0,6214e9\n"
					    "2016-03-01 00:00:10,5.5,2,11,11cb48\n"
					    "\n",
					    NULL);
	assert_string_equal(trace->format, "philly");
	assert_int_equal(trace->jobs.count, 3);
	assert_int_equal(trace->rows_skipped, 1);
	const struct sw_trace_job *jobs = trace->jobs.items;
	assert_int_equal(jobs[0].id, 1);
	assert_int_equal(jobs[0].submit_ns, 0);
	assert_int_equal(jobs[0].gpus, 8);
	assert_string(trace, jobs[0].tenant, "6214e9");
	assert_int_equal(jobs[1].id, 0);
	assert_int_equal(jobs[1].submit_ns, (86400 + 11) * S);
	assert_int_equal(jobs[2].id, 2);
	assert_int_equal(jobs[2].submit_ns, (86400 + 11) * S);
	assert_int_equal(jobs[2].duration_ns, 5 * S + S / 2);
	assert_int_equal(jobs[1].tenant, jobs[2].tenant);
	assert_ordinary(&jobs[2]);
}

static void test_chronus(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *trace =
		must_parse("job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,"
			   "best_effort,job_type\n"
			   "0,vc_a,1,10,5049,vgg16,747,14,1105,10,0,strict\n"
			   "1,vc_b,4,20,3495,mobilenet_v2,26,14,102-142-182-242,10-8-5-2,0,soft\n"
			   "2,vc_a,1,30,3621,alexnet,30,17,14341,10,1,best\n"
			   "3,vc_a,0,40,3621,alexnet,30,17,99,10,0,strict\n",
			   NULL);
	assert_string_equal(trace->format, "chronus");
	assert_int_equal(trace->jobs.count, 3);
	assert_int_equal(trace->rows_skipped, 1);
	const struct sw_trace_job *jobs = trace->jobs.items;
	assert_int_equal(jobs[0].submit_ns, 600 * S);
	assert_int_equal(jobs[0].duration_ns, 747 * 60 * S);
	assert_int_equal(jobs[0].deadline_ns, (10 + 1105) * 60 * S);
	assert_int_equal(jobs[0].deadline_kind, SW_TRACE_STRICT);
	assert_string(trace, jobs[0].tenant, "vc_a");
	assert_int_equal(jobs[1].deadline_ns, (20 + 102) * 60 * S);
	assert_int_equal(jobs[1].deadline_kind, SW_TRACE_SOFT);
	assert_int_equal(jobs[2].job_class, SW_CLASS_OPPORTUNISTIC);
	assert_true(jobs[2].deadline_ns == SW_NEVER);
	assert_int_equal(jobs[2].deadline_kind, SW_TRACE_NO_DEADLINE);
}

static void test_elasticflow(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *trace = must_parse(
		"job_id,submit_time,real_iteration,model_name,ddl,batch_size,num_gpu,real_duration,duration,iteration,best_effort\n"
		"5,219316,1,vgg16,2065619,64,4,2,1792395,26446831,0\n"
		"6,219317,1,bert,2065619,64,4,2,1792395,26446831,1\n",
		NULL);
	assert_string_equal(trace->format, "elasticflow");
	const struct sw_trace_job *jobs = trace->jobs.items;
	assert_int_equal(jobs[0].id, 5);
	assert_int_equal(jobs[0].submit_ns, 219316 * S);
	assert_int_equal(jobs[0].iterations, 26446831);
	assert_int_equal(jobs[0].duration_ns, 1792395 * S);
	assert_int_equal(jobs[0].deadline_ns, 2065619 * S);
	assert_int_equal(jobs[0].deadline_kind, SW_TRACE_STRICT);
	assert_int_equal(jobs[0].batch_size, 64);
	assert_int_equal(jobs[1].job_class, SW_CLASS_OPPORTUNISTIC);
	assert_true(jobs[1].deadline_ns == SW_NEVER);
}

static void test_itp(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *raw = must_parse("job_id,submission_time,duration,num_gpu\n"
					  "6b2d9ccc-6279-403c,16566,3890,4\n"
					  "17,16567,1,1\n",
					  NULL);
	assert_string_equal(raw->format, "elasticflow");
	assert_true(raw->named);
	assert_int_equal(raw->jobs.items[0].id, 0);
	assert_string(raw, raw->jobs.items[0].name, "6b2d9ccc-6279-403c");
	/* The first id was text, so this one is too. */
	assert_int_equal(raw->jobs.items[1].id, 1);
	assert_string(raw, raw->jobs.items[1].name, "17");
	assert_ordinary(&raw->jobs.items[0]);
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *trace = must_parse("job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n"
					    "6b2d9ccc,16566,40285,bert,21347,64,4,3890\n",
					    NULL);
	assert_string_equal(trace->format, "elasticflow");
	assert_int_equal(trace->jobs.items[0].iterations, 40285);
	assert_int_equal(trace->jobs.items[0].deadline_ns, 21347 * S);
}

static void test_gavel(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *trace = must_parse(
		"ResNet-50 (batch size 64)\tpython3 main.py -a \"x\" %s\timage\t--num_minibatches\t1\t2931\t2\t1.5\t-1.000000\t17.5\n"
		"A3C\tpython3 a3c.py\trl\t--max-steps\t0\t100\t1\t1\t2.0\t18\n",
		NULL);
	assert_string_equal(trace->format, "gavel");
	const struct sw_trace_job *jobs = trace->jobs.items;
	assert_int_equal(jobs[0].id, 0);
	assert_string(trace, jobs[0].model, "ResNet-50");
	assert_int_equal(jobs[0].batch_size, 64);
	assert_int_equal(jobs[0].iterations, 2931);
	assert_int_equal(jobs[0].gpus, 2);
	assert_int_equal(jobs[0].weight_milli, 1500);
	assert_int_equal(jobs[0].submit_ns, 17 * S + S / 2);
	assert_int_equal(jobs[0].duration_ns, 0);
	assert_int_equal(jobs[1].id, 1);
	assert_string(trace, jobs[1].model, "A3C");
	assert_int_equal(jobs[1].batch_size, 0);
	assert_ordinary(&jobs[1]);

	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *old = must_parse("LM (batch size 5)\tcd %s && python3\t-step\t1\t95121\t6.000000\t4\n", NULL);
	assert_string_equal(old->format, "gavel");
	assert_int_equal(old->jobs.items[0].iterations, 95121);
	assert_int_equal(old->jobs.items[0].submit_ns, 6 * S);
	assert_int_equal(old->jobs.items[0].gpus, 4);
}

static void test_shockwave(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *trace = must_parse("LM (batch size 10)\tpython3 main.py\tlm\t--steps\t1\t134583\t1\tgns\t1\t-1.000000\t1418\t5\n"
					    "LM (batch size 10)\tpython3 main.py\tlm\t--steps\t1\t134583\t1\tstatic\t2\t1.5\t1000\t100\n",
					    NULL);
	assert_string_equal(trace->format, "shockwave");
	const struct sw_trace_job *jobs = trace->jobs.items;
	assert_int_equal(jobs[0].duration_ns, 1418 * S);
	assert_int_equal(jobs[0].submit_ns, 5 * S);
	assert_ordinary(&jobs[0]);
	assert_int_equal(jobs[1].deadline_ns, 1600 * S);
	assert_int_equal(jobs[1].deadline_kind, SW_TRACE_STRICT);
	assert_int_equal(jobs[1].weight_milli, 2000);
}

static void test_pollux(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *trace = must_parse("name,time,application,num_replicas,batch_size\n"
					    "cifar10-0,107,cifar10,6,2048\n",
					    NULL);
	assert_string_equal(trace->format, "pollux");
	assert_true(trace->named);
	const struct sw_trace_job *job = &trace->jobs.items[0];
	assert_string(trace, job->name, "cifar10-0");
	assert_string(trace, job->model, "cifar10");
	assert_int_equal(job->gpus, 6);
	assert_int_equal(job->batch_size, 2048);
	assert_int_equal(job->submit_ns, 107 * S);
	assert_int_equal(job->duration_ns, 0);
}

static void test_sharewell(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *trace = must_parse(
		"# written by hand\n"
		"id,name,submit_s,duration_s,gpus,min_gpus,max_gpus,class,deadline_s,deadline_kind,weight,tenant,model,batch_size,"
		"iterations,iteration_ms,data_ms,gpu_ms,network_ms\n"
		"3,\"a \"\"b\"\", c\",1.000000001,60,4,2,8,opportunistic,99.5,soft,0.25, t ,m,32,100,600.000001,0.5,1,2.125\n",
		NULL);
	assert_string_equal(trace->format, "sharewell");
	const struct sw_trace_job *job = &trace->jobs.items[0];
	assert_int_equal(job->id, 3);
	assert_string(trace, job->name, "a \"b\", c");
	assert_int_equal(job->submit_ns, S + 1);
	assert_int_equal(job->duration_ns, 60 * S);
	assert_int_equal(job->min_gpus, 2);
	assert_int_equal(job->max_gpus, 8);
	assert_int_equal(job->job_class, SW_CLASS_OPPORTUNISTIC);
	assert_int_equal(job->deadline_ns, 99 * S + S / 2);
	assert_int_equal(job->deadline_kind, SW_TRACE_SOFT);
	assert_int_equal(job->weight_milli, 250);
	assert_string(trace, job->tenant, "t");
	assert_int_equal(job->iterations, 100);
	assert_int_equal(job->iteration_ns, 600000001);
	assert_int_equal(job->stage_us[2], 2125);

	SW_CLEANUP(sw_trace_freep) struct sw_trace *least = must_parse("submit_s,duration_s,gpus\n5,6,1\n1,2,3\n", NULL);
	assert_int_equal(least->jobs.items[0].id, 1);
	assert_int_equal(least->jobs.items[0].gpus, 3);
	assert_ordinary(&least->jobs.items[0]);
}

static void test_columns_in_any_order_with_others_between(void **state)
{
	(void)state;
	SW_CLEANUP(sw_trace_freep)
	struct sw_trace *trace = must_parse("colour, Duration ,\"num_gpu\",submit_time,job_id,mood\n"
					    "red,10,2,5,77,good\n",
					    NULL);
	assert_string_equal(trace->format, "tiresias");
	assert_int_equal(trace->jobs.items[0].id, 77);
	assert_int_equal(trace->jobs.items[0].duration_ns, 10 * S);
	assert_int_equal(trace->jobs.items[0].gpus, 2);
	assert_int_equal(trace->jobs.items[0].submit_ns, 5 * S);
}

static void test_a_named_format_wins_over_detection(void **state)
{
	(void)state;
	const char *text = "job_id,num_gpu,submit_time,iterations,duration,iteration_time\n0,1,1000,1,1000,1000\n";
	SW_CLEANUP(sw_trace_freep) struct sw_trace *muri = must_parse(text, "auto");
	SW_CLEANUP(sw_trace_freep) struct sw_trace *tiresias = must_parse(text, "tiresias");
	assert_int_equal(muri->jobs.items[0].submit_ns, S);
	assert_int_equal(tiresias->jobs.items[0].submit_ns, 1000 * S);
}

static void refuse(const char *text, const char *format, int code, const char *first, const char *second)
{
	struct sw_trace *trace = NULL;
	struct sw_err err = {0};
	int r = sw_trace_parse("bad.csv", text, strlen(text), format, &trace, &err);
	if (r != code)
		fail_msg("expected code %d for '%s', got %d: %s", code, text, r, words(&err));
	assert_null(trace);
	assert_int_equal(err.code, code);
	assert_says(&err, first);
	assert_says(&err, second);
}

static void test_headers_that_do_not_fit(void **state)
{
	(void)state;
	refuse("job_id,gpus,submit_time,duration\n", "tiresias", SW_EINPUT, "cannot read trace 'bad.csv' as tiresias",
	       "line 1 has no column num_gpu; columns found: job_id, gpus, submit_time, duration");
	refuse("job_id,time,duration,num_gpu\n", "elasticflow", SW_EINPUT, "no column submit_time or submission_time", "job_id, time");
	refuse("job_id,num_gpu,num_gpu,submit_time,duration\n", NULL, SW_EINPUT, "two columns num_gpu", "line 1");
	refuse("\n# x\na,b,c\n", NULL, SW_EINPUT, "line 3 is no known format's first line; columns found: a, b, c", "--format");
	refuse("job_id,num_gpu,submit_time\n1,1,1\n", NULL, SW_EINPUT, "The format 'tiresias' is near", "needs a column duration");
	refuse("a\tb\tc\n", NULL, SW_EINPUT, "columns found: a, b, c", "no known format");
	refuse("a\tb\tc\n", "gavel", SW_EINPUT, "has 3 columns separated by tabs, expected 10", "as gavel");
	refuse("\"job_id\n", "tiresias", SW_EINPUT, "line 1: a quoted field is not closed", "bad.csv");
	refuse("\n\n# nothing\n", NULL, SW_EINPUT, "nothing in it but empty lines and comments", "bad.csv");
	refuse("submit_s,duration_s,gpus\n", NULL, SW_EINPUT, "there are no jobs in it", "bad.csv");
}

static void test_unknown_format_suggests(void **state)
{
	(void)state;
	refuse("a,b\n", "tirezias", SW_ENOTFOUND, "unknown trace format 'tirezias'", "Did you mean 'tiresias'?");
	refuse("a,b\n", "xyzzyxyzzy", SW_ENOTFOUND, "Known formats: sharewell, ", "or auto");
}

static void test_the_list_of_formats(void **state)
{
	(void)state;
	size_t count = 0;
	for (; sw_trace_formats(count) != NULL; count++) {
		const struct sw_trace_format_info *info = sw_trace_formats(count);
		assert_true(strlen(info->about) > 10);
		for (size_t i = 0; i < count; i++)
			assert_string_not_equal(info->name, sw_trace_formats(i)->name);
		/* Known by name: what it is refused for is the text. */
		struct sw_trace *trace = NULL;
		struct sw_err err = {0};
		assert_int_equal(sw_trace_parse("x", "y", 1, info->name, &trace, &err), SW_EINPUT);
	}
	assert_int_equal(count, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tiresias),
		cmocka_unit_test(test_muri),
		cmocka_unit_test(test_philly),
		cmocka_unit_test(test_chronus),
		cmocka_unit_test(test_elasticflow),
		cmocka_unit_test(test_itp),
		cmocka_unit_test(test_gavel),
		cmocka_unit_test(test_shockwave),
		cmocka_unit_test(test_pollux),
		cmocka_unit_test(test_sharewell),
		cmocka_unit_test(test_columns_in_any_order_with_others_between),
		cmocka_unit_test(test_a_named_format_wins_over_detection),
		cmocka_unit_test(test_headers_that_do_not_fit),
		cmocka_unit_test(test_unknown_format_suggests),
		cmocka_unit_test(test_the_list_of_formats),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
