#include "sim/trace/generate.h"

#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "sim/trace/philly_figures.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum { SIZES = COUNT_OF(philly_sizes), WEEK_HOURS = 7 * 24 };

/* Models of the public traces: batch size and time of an iteration, in round figures, for
 * the number of iterations. */
static const struct {
	struct sw_trace_mix mix;
	uint32_t batch_size;
	uint32_t iteration_ms;
} models[] = {
	{{"resnet50", 20}, 64, 150},  {{"bert", 20}, 64, 170},	    {{"gpt2", 15}, 128, 140},
	{{"vgg16", 10}, 64, 200},     {{"resnet18", 10}, 128, 800}, {{"deepspeech2", 10}, 32, 330},
	{{"inception3", 5}, 64, 210}, {{"yolov3", 5}, 8, 250},	    {{"shufflenet_v2_x1_0", 5}, 128, 800},
};

/* A list of weights to draw from: cumulative[i] is the sum of the weights up to and with i. */
struct lottery {
	uint64_t *cumulative;
	size_t count;
};

struct burst {
	uint64_t start; /* where between first and last moment, as a fraction of 2^64 of the submits in between */
	uint32_t jobs;
};

struct generator {
	const struct sw_trace_recipe *recipe;
	struct sw_trace *trace;
	struct sw_rng shape;  /* arrivals, sizes, durations, tenants, models */
	struct sw_rng extras; /* what a recipe may switch on: doing so changes nothing else */
	struct lottery sizes, tenants, mix;
	uint32_t *tenant_names, *model_names; /* indices of strings */
	SW_VEC(struct burst) bursts;
	uint64_t week[WEEK_HOURS + 1]; /* submits before each hour of the week, in some unit */
};

struct sw_trace_recipe sw_trace_recipe_default(void)
{
	return (struct sw_trace_recipe){
		.jobs = 10000, .seed = 1, .gpus = 1000, .load_milli = 900, .tenants = PHILLY_TENANTS, .soft_milli = 300};
}

static int wrong(struct sw_err *err, const char *what)
{
	int r = sw_err_set(err, SW_EINPUT, "cannot generate a trace");
	sw_err_detail(err, "%s", what);
	return r;
}

static int validate(const struct sw_trace_recipe *recipe, struct sw_err *err)
{
	if (recipe->jobs < 1 || recipe->jobs > SW_TRACE_MAX_JOBS)
		return wrong(err, "the number of jobs must be from 1 to 20000000");
	if (recipe->gpus < 1 || recipe->gpus > 1000 * 1000 * 1000)
		return wrong(err, "the number of GPUs must be from 1 to 1000000000");
	if (recipe->load_milli < 1 || recipe->load_milli > 100 * 1000)
		return wrong(err, "the load must be from 0.001 to 100 times the cluster");
	if (recipe->tenants < 1 || recipe->tenants > 100 * 1000)
		return wrong(err, "the number of tenants must be from 1 to 100000");
	if (recipe->opportunistic_milli > 1000 || recipe->deadline_milli > 1000 || recipe->elastic_milli > 1000 ||
	    recipe->soft_milli > 1000)
		return wrong(err, "a share of jobs cannot be more than all of them");
	uint64_t weights = 0;
	for (size_t i = 0; i < recipe->mix_count; i++) {
		if (recipe->mix[i].model == NULL || recipe->mix[i].model[0] == '\0' || strlen(recipe->mix[i].model) > SW_TRACE_MAX_NAME)
			return wrong(err, "a model of the mix has no usable name");
		weights += recipe->mix[i].weight;
	}
	if (recipe->mix != NULL && weights == 0)
		return wrong(err, "the weights of the mix of models are all zero");
	return 0;
}

static int lottery_init(struct lottery *lottery, size_t count)
{
	lottery->cumulative = calloc(count, sizeof *lottery->cumulative);
	lottery->count = 0;
	return lottery->cumulative == NULL ? SW_ENOMEM : 0;
}

static void lottery_add(struct lottery *lottery, uint64_t weight)
{
	uint64_t sum = lottery->count > 0 ? lottery->cumulative[lottery->count - 1] : 0;
	lottery->cumulative[lottery->count++] = sum + weight;
}

/* The first entry whose cumulative weight exceeds `ticket`. */
static size_t find_above(const uint64_t *cumulative, size_t count, uint64_t ticket)
{
	size_t low = 0, high = count - 1;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (cumulative[middle] > ticket)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static size_t lottery_draw(const struct lottery *lottery, struct sw_rng *rng)
{
	return find_above(lottery->cumulative, lottery->count, sw_rng_below(rng, lottery->cumulative[lottery->count - 1]));
}

/* The quantile at `at` of 2^32, by a table's points (in ten-thousandths, rising, from 0 to 10000)
 * and values; rounded to the nearest. */
static uint32_t quantile(const uint32_t *points, const uint32_t *values, size_t count, uint32_t at)
{
	/* In units of 1/2^16 of a ten-thousandth, to lose little of `at`. */
	uint64_t place = ((uint64_t)at * 10000) >> 16;
	size_t low = 0, high = count - 1;
	while (high - low > 1) {
		size_t middle = (low + high) / 2;
		if ((uint64_t)points[middle] << 16 <= place)
			low = middle;
		else
			high = middle;
	}
	uint64_t width = (uint64_t)(points[high] - points[low]) << 16, into = place - ((uint64_t)points[low] << 16);
	return values[low] + (uint32_t)(((values[high] - values[low]) * into + width / 2) / width);
}

static uint32_t draw_quantile(struct sw_rng *rng, const uint32_t *points, const uint32_t *values, size_t count)
{
	return quantile(points, values, count, (uint32_t)(sw_rng_next(rng) >> 32));
}

/* Bursts never make up most of a short trace. */
static uint32_t burst_limit(const struct sw_trace_recipe *recipe)
{
	uint64_t limit = recipe->jobs / 50;
	return limit < 1 ? 1 : limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
}

static uint32_t burst_jobs(const struct generator *generator, size_t burst_class, uint32_t at)
{
	uint32_t jobs = quantile(philly_burst_points, philly_burst_jobs[burst_class], PHILLY_BURST_POINTS, at);
	uint32_t limit = burst_limit(generator->recipe);
	return jobs < limit ? jobs : limit;
}

/* A burst has one size. So that jobs have Philly's mix of sizes, bursts are drawn by the jobs of
 * that size over the mean length of such bursts. */
static int prepare_sizes(struct generator *generator)
{
	enum { STEPS = 4096 };
	uint64_t total[COUNT_OF(philly_burst_jobs)] = {0};
	for (uint32_t i = 0; i < STEPS; i++)
		for (size_t class = 0; class < COUNT_OF(philly_burst_jobs); class ++)
			total[class] += burst_jobs(generator, class, UINT32_MAX / STEPS * i);
	if (lottery_init(&generator->sizes, SIZES) < 0)
		return SW_ENOMEM;
	for (size_t i = 0; i < SIZES; i++)
		lottery_add(&generator->sizes, (uint64_t)philly_sizes[i].jobs * STEPS * 1000 / total[philly_sizes[i].burst_class]);
	return 0;
}

/* Tenants share the jobs as Philly's fifteen do; with another number of them, each gets its
 * part of the same curve. */
static int prepare_tenants(struct generator *generator)
{
	uint64_t count = generator->recipe->tenants;
	generator->tenant_names = calloc(count, sizeof *generator->tenant_names);
	if (generator->tenant_names == NULL || lottery_init(&generator->tenants, count) < 0)
		return SW_ENOMEM;
	int digits = snprintf(NULL, 0, "%llu", (unsigned long long)count);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t from = i * PHILLY_TENANTS, to = (i + 1) * PHILLY_TENANTS, weight = 0;
		for (uint64_t k = from / count; k < PHILLY_TENANTS && k * count < to; k++) {
			uint64_t start = k * count > from ? k * count : from, end = (k + 1) * count < to ? (k + 1) * count : to;
			weight += (end - start) * philly_tenants[k];
		}
		lottery_add(&generator->tenants, weight);
		char name[40];
		unsigned long long number = i + 1;
		int size = snprintf(name, sizeof name, "tenant%0*llu", digits, number);
		if (sw_trace_intern(generator->trace, name, (size_t)size, &generator->tenant_names[i]) < 0)
			return SW_ENOMEM;
	}
	return 0;
}

static struct sw_trace_mix mix_at(const struct sw_trace_recipe *recipe, size_t index)
{
	return recipe->mix != NULL ? recipe->mix[index] : models[index].mix;
}

static int prepare_mix(struct generator *generator)
{
	size_t count = generator->recipe->mix != NULL ? generator->recipe->mix_count : COUNT_OF(models);
	generator->model_names = calloc(count, sizeof *generator->model_names);
	if (generator->model_names == NULL || lottery_init(&generator->mix, count) < 0)
		return SW_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct sw_trace_mix entry = mix_at(generator->recipe, i);
		lottery_add(&generator->mix, entry.weight);
		if (sw_trace_intern(generator->trace, entry.model, strlen(entry.model), &generator->model_names[i]) < 0)
			return SW_ENOMEM;
	}
	return 0;
}

static void prepare_week(struct generator *generator)
{
	for (size_t hour = 0; hour < WEEK_HOURS; hour++)
		generator->week[hour + 1] = generator->week[hour] + (uint64_t)philly_hours[hour % 24] * philly_weekdays[hour / 24];
}

/* The largest of Philly's sizes that this recipe allows, or the size itself. */
static size_t allowed_size(const struct sw_trace_recipe *recipe, size_t index)
{
	uint64_t most = recipe->max_job_gpus > 0 && recipe->max_job_gpus < recipe->gpus ? recipe->max_job_gpus : recipe->gpus;
	while (index > 0 && philly_sizes[index].gpus > most)
		index--;
	return index;
}

static void set_iterations(struct sw_trace_job *job, const char *model)
{
	for (size_t i = 0; i < COUNT_OF(models); i++)
		if (strcmp(models[i].mix.model, model) == 0) {
			int64_t iteration_ns = models[i].iteration_ms * SW_NS_PER_MS;
			job->iteration_ns = iteration_ns;
			job->iterations = (job->duration_ns + iteration_ns / 2) / iteration_ns;
			job->batch_size = models[i].batch_size;
		}
}

/* Always draws as many numbers, so that each switch is independent of the others. */
static void add_extras(struct generator *generator, struct sw_trace_job *job)
{
	const struct sw_trace_recipe *recipe = generator->recipe;
	struct sw_rng *rng = &generator->extras;
	uint64_t class_draw = sw_rng_below(rng, 1000), deadline_draw = sw_rng_below(rng, 1000), elastic_draw = sw_rng_below(rng, 1000);
	uint64_t soft_draw = sw_rng_below(rng, 1000), slack_milli = 1100 + sw_rng_below(rng, 1901);
	if (class_draw < recipe->opportunistic_milli)
		job->job_class = SW_CLASS_OPPORTUNISTIC;
	if (deadline_draw < recipe->deadline_milli) {
		/* Relative until the submit time is known. Whole seconds, rounded up. */
		int64_t allowed_ms = job->duration_ns / SW_NS_PER_S * (int64_t)slack_milli;
		job->deadline_ns = (allowed_ms + 999) / 1000 * SW_NS_PER_S;
		job->deadline_kind = soft_draw < recipe->soft_milli ? SW_TRACE_SOFT : SW_TRACE_STRICT;
	}
	if (elastic_draw < recipe->elastic_milli) {
		uint64_t most = recipe->max_job_gpus > 0 && recipe->max_job_gpus < recipe->gpus ? recipe->max_job_gpus : recipe->gpus;
		job->min_gpus = job->gpus > 1 ? job->gpus / 2 : 1;
		job->max_gpus = job->gpus * 2 <= most ? job->gpus * 2 : job->gpus;
	}
}

/* One burst: jobs of one tenant, size and model. Submit times are relative to its start for now. */
static int add_burst(struct generator *generator, uint64_t *gpu_s)
{
	struct sw_rng *rng = &generator->shape;
	struct sw_trace *trace = generator->trace;
	uint64_t start = sw_rng_next(rng);
	size_t drawn = lottery_draw(&generator->sizes, rng), size = allowed_size(generator->recipe, drawn);
	size_t tenant = lottery_draw(&generator->tenants, rng), model = lottery_draw(&generator->mix, rng);
	uint64_t left = generator->recipe->jobs - trace->jobs.count;
	uint32_t count = burst_jobs(generator, philly_sizes[drawn].burst_class, (uint32_t)(sw_rng_next(rng) >> 32));
	count = count < left ? count : (uint32_t)left;
	struct burst *burst = sw_vec_push(&generator->bursts);
	if (burst == NULL)
		return SW_ENOMEM;
	*burst = (struct burst){start, count};
	int64_t offset_s = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct sw_trace_job *job = sw_trace_add(trace);
		if (job == NULL)
			return SW_ENOMEM;
		uint32_t duration_s = draw_quantile(rng, philly_duration_points, philly_durations_s[philly_sizes[drawn].duration_class],
						    PHILLY_DURATION_POINTS);
		job->submit_ns = offset_s * SW_NS_PER_S;
		job->duration_ns = duration_s * SW_NS_PER_S;
		job->gpus = job->min_gpus = job->max_gpus = philly_sizes[size].gpus;
		job->tenant = generator->tenant_names[tenant];
		job->model = generator->model_names[model];
		set_iterations(job, mix_at(generator->recipe, model).model);
		add_extras(generator, job);
		*gpu_s += (uint64_t)duration_s * job->gpus;
		offset_s += draw_quantile(rng, philly_gap_points, philly_gaps_s, PHILLY_GAP_POINTS);
	}
	return 0;
}

/* Submits (in the unit of `week`) in the first `s` seconds. */
static uint64_t submits_before(const struct generator *generator, uint64_t s)
{
	uint64_t hour = s / 3600, of_week = hour % WEEK_HOURS;
	uint64_t in_hour = generator->week[of_week + 1] - generator->week[of_week];
	return hour / WEEK_HOURS * generator->week[WEEK_HOURS] + generator->week[of_week] + in_hour * (s % 3600) / 3600;
}

/* The second before which `submits` happen: the inverse of the above. */
static uint64_t second_of(const struct generator *generator, uint64_t submits)
{
	uint64_t weeks = submits / generator->week[WEEK_HOURS], rest = submits % generator->week[WEEK_HOURS];
	size_t hour = find_above(generator->week + 1, WEEK_HOURS, rest);
	uint64_t in_hour = generator->week[hour + 1] - generator->week[hour];
	return (weeks * WEEK_HOURS + hour) * 3600 + (rest - generator->week[hour]) * 3600 / in_hour;
}

/* Puts the bursts where the hours and weekdays want them. What runs over the end goes on at the
 * beginning. The first and the last job are moved to the very ends, so that the load is what was
 * asked for. */
static int place(struct generator *generator, uint64_t span_s)
{
	struct sw_trace *trace = generator->trace;
	uint64_t all = submits_before(generator, span_s);
	size_t at = 0;
	for (size_t b = 0; b < generator->bursts.count; b++) {
		const struct burst *burst = &generator->bursts.items[b];
		uint64_t start_s = second_of(generator, (uint64_t)(((unsigned __int128)burst->start * all) >> 64));
		for (uint32_t i = 0; i < burst->jobs; i++) {
			struct sw_trace_job *job = &trace->jobs.items[at++];
			uint64_t submit_s = start_s + (uint64_t)(job->submit_ns / SW_NS_PER_S);
			job->submit_ns = (int64_t)(span_s > 0 ? submit_s % span_s : 0) * SW_NS_PER_S;
		}
	}
	if (sw_trace_sort(trace) < 0)
		return SW_ENOMEM;
	trace->jobs.items[trace->jobs.count - 1].submit_ns = (int64_t)span_s * SW_NS_PER_S;
	trace->jobs.items[0].submit_ns = 0;
	for (size_t i = 0; i < trace->jobs.count; i++) {
		struct sw_trace_job *job = &trace->jobs.items[i];
		job->id = (int64_t)i;
		if (job->deadline_ns != SW_NEVER)
			job->deadline_ns += job->submit_ns;
	}
	return 0;
}

static int generate(struct generator *generator, struct sw_err *err)
{
	const struct sw_trace_recipe *recipe = generator->recipe;
	if (prepare_sizes(generator) < 0 || prepare_tenants(generator) < 0 || prepare_mix(generator) < 0)
		return SW_ENOMEM;
	prepare_week(generator);
	sw_rng_seed(&generator->shape, recipe->seed);
	sw_rng_seed(&generator->extras, recipe->seed ^ UINT64_C(0x65787472617321));
	uint64_t gpu_s = 0;
	while (generator->trace->jobs.count < recipe->jobs)
		if (add_burst(generator, &gpu_s) < 0)
			return SW_ENOMEM;
	unsigned __int128 span_s = (unsigned __int128)gpu_s * 1000 / ((unsigned __int128)recipe->gpus * recipe->load_milli);
	/* Below the bound for any moment, so that deadlines fit too. */
	if (span_s > (uint64_t)(SW_TRACE_MAX_NS / SW_NS_PER_S / 10 * 9))
		return wrong(err, "so many jobs at so low a load on so few GPUs would take more than 90 years to submit");
	return place(generator, recipe->jobs == 1 ? 0 : (uint64_t)span_s);
}

int sw_trace_generate(const struct sw_trace_recipe *recipe, struct sw_trace **ret_trace, struct sw_err *err)
{
	int r = validate(recipe, err);
	if (r < 0)
		return r;
	struct generator generator = {.recipe = recipe};
	r = sw_trace_new("generated", "generated", &generator.trace);
	if (r == 0)
		r = generate(&generator, err);
	if (r == 0)
		*ret_trace = SW_TAKE(generator.trace);
	else if (r == SW_ENOMEM)
		sw_err_set(err, r, "cannot generate a trace: out of memory");
	sw_trace_free(generator.trace);
	sw_vec_free(&generator.bursts);
	free(generator.sizes.cumulative);
	free(generator.tenants.cumulative);
	free(generator.mix.cumulative);
	free(generator.tenant_names);
	free(generator.model_names);
	return r;
}
