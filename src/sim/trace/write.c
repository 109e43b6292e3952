#include "sim/trace/write.h"

#include <assert.h>
#include <string.h>

#include "base/civil.h"
#include "base/suggest.h"

/* What a job may carry beyond submit time, duration and GPUs, which every format has. */
enum field {
	ID,
	NAME,
	TENANT,
	MODEL,
	BATCH_SIZE,
	ITERATIONS,
	ITERATION_TIME,
	STAGES,
	DEADLINE,
	DEADLINE_KIND,
	CLASS,
	WEIGHT,
	ELASTIC,
	USER,
	GPU_MEMORY,
	FATE,
	FIELDS
};

static const char *const field_names[FIELDS] = {
	"id",	    "name",	     "tenant", "model",	 "batch size",	  "iterations", "iteration time", "stage times",
	"deadline", "deadline kind", "class",  "weight", "elastic range", "user",	"GPU memory",	  "what became of it"};

/* One line being made. Four names of the greatest length, quoted, and all numbers fit. */
struct line {
	char text[4 * (2 * 1024 + 3) + 1024];
	size_t size;
};

struct writer {
	const char *name;
	const char *header;
	unsigned holds;	       /* bits of enum field */
	int64_t time_unit_ns;  /* of submit time, duration and deadline */
	const char *time_unit; /* in words; NULL: nothing is rounded */
	void (*put)(struct line *line, const struct sw_trace *trace, size_t index);
};

static void put_bytes(struct line *line, const char *text, size_t size)
{
	assert(size <= sizeof line->text - line->size);
	memcpy(line->text + line->size, text, size);
	line->size += size;
}

static void put_char(struct line *line, char c)
{
	put_bytes(line, &c, 1);
}

static void put_number(struct line *line, int64_t value)
{
	assert(value >= 0);
	char digits[24];
	size_t at = sizeof digits;
	do
		digits[--at] = (char)('0' + value % 10);
	while ((value /= 10) > 0);
	put_bytes(line, digits + at, sizeof digits - at);
}

/* value / unit as a decimal without trailing zeros; `unit` is a power of ten. Exact. */
static void put_decimal(struct line *line, int64_t value, int64_t unit)
{
	put_number(line, value / unit);
	int64_t rest = value % unit;
	if (rest == 0)
		return;
	put_char(line, '.');
	while (rest > 0) {
		unit /= 10;
		put_char(line, (char)('0' + rest / unit));
		rest %= unit;
	}
}

static int64_t rounded(int64_t value, int64_t unit)
{
	return value / unit + (value % unit >= unit - unit / 2);
}

/* Quoted where a reader would otherwise take it apart, trim it, or take the line for a comment. */
static void put_text(struct line *line, const char *text)
{
	size_t size = strlen(text);
	bool spaced = size > 0 && (strchr(" \t", text[0]) != NULL || strchr(" \t", text[size - 1]) != NULL);
	if (!spaced && text[0] != '#' && strpbrk(text, ",\"") == NULL) {
		put_bytes(line, text, size);
		return;
	}
	put_char(line, '"');
	for (; *text != '\0'; text++) {
		if (*text == '"')
			put_char(line, '"');
		put_char(line, *text);
	}
	put_char(line, '"');
}

/* A number where it is known, nothing where not. */
static void put_known(struct line *line, int64_t value, int64_t unit)
{
	if (value > 0)
		put_decimal(line, value, unit);
}

static void put_string(struct line *line, const struct sw_trace *trace, uint32_t index)
{
	put_text(line, sw_trace_string(trace, index));
}

/* Time to the next job, which Tiresias and Muri want. */
static int64_t interval_ns(const struct sw_trace *trace, size_t index)
{
	if (index + 1 == trace->jobs.count)
		return 0;
	return trace->jobs.items[index + 1].submit_ns - trace->jobs.items[index].submit_ns;
}

static void put_sharewell(struct line *line, const struct sw_trace *trace, size_t index)
{
	const struct sw_trace_job *job = &trace->jobs.items[index];
	static const char *const kinds[] = {"", "strict", "soft"};
	put_number(line, job->id);
	put_char(line, ',');
	put_string(line, trace, job->name);
	put_char(line, ',');
	put_decimal(line, job->submit_ns, SW_NS_PER_S);
	put_char(line, ',');
	put_decimal(line, job->duration_ns, SW_NS_PER_S);
	const uint32_t sizes[] = {job->gpus, job->min_gpus, job->max_gpus};
	for (size_t i = 0; i < 3; i++) {
		put_char(line, ',');
		put_number(line, sizes[i]);
	}
	put_char(line, ',');
	put_text(line, job->job_class == SW_CLASS_OPPORTUNISTIC ? "opportunistic" : "guaranteed");
	put_char(line, ',');
	if (job->deadline_ns != SW_NEVER)
		put_decimal(line, job->deadline_ns, SW_NS_PER_S);
	put_char(line, ',');
	put_text(line, kinds[job->deadline_kind]);
	put_char(line, ',');
	put_decimal(line, job->weight_milli, 1000);
	put_char(line, ',');
	put_string(line, trace, job->tenant);
	put_char(line, ',');
	put_string(line, trace, job->model);
	put_char(line, ',');
	put_known(line, job->batch_size, 1);
	put_char(line, ',');
	put_known(line, job->iterations, 1);
	put_char(line, ',');
	put_known(line, job->iteration_ns, SW_NS_PER_MS);
	for (size_t i = 0; i < 3; i++) {
		put_char(line, ',');
		put_known(line, job->stage_us[i], 1000);
	}
}

/* The columns that only recorded traces have. */
#define RECORDED ",user,gpu_memory_mib,started_s,ended_s,preemptions,outcome"

static void put_recorded(struct line *line, const struct sw_trace *trace, size_t index)
{
	const struct sw_trace_job *job = &trace->jobs.items[index];
	put_sharewell(line, trace, index);
	put_char(line, ',');
	put_string(line, trace, job->user);
	put_char(line, ',');
	put_known(line, job->gpu_memory_mib, 1);
	const struct sw_trace_fate *fate = job->fate != 0 ? &trace->fates.items[job->fate - 1] : NULL;
	const int64_t moments[] = {fate != NULL ? fate->started_ns : SW_NEVER, fate != NULL ? fate->ended_ns : SW_NEVER};
	for (size_t i = 0; i < 2; i++) {
		put_char(line, ',');
		if (moments[i] != SW_NEVER)
			put_decimal(line, moments[i], SW_NS_PER_S);
	}
	put_char(line, ',');
	if (fate != NULL)
		put_number(line, fate->preemptions);
	put_char(line, ',');
	put_text(line, sw_trace_end_names[fate != NULL ? fate->end : SW_TRACE_END_UNKNOWN]);
}

static void put_tiresias(struct line *line, const struct sw_trace *trace, size_t index)
{
	const struct sw_trace_job *job = &trace->jobs.items[index];
	const int64_t before[] = {job->id, job->gpus, rounded(job->submit_ns, SW_NS_PER_S), job->iterations};
	for (size_t i = 0; i < 4; i++) {
		put_number(line, before[i]);
		put_char(line, ',');
	}
	put_string(line, trace, job->model);
	put_char(line, ',');
	put_number(line, rounded(job->duration_ns, SW_NS_PER_S));
	put_char(line, ',');
	put_number(line, rounded(interval_ns(trace, index), SW_NS_PER_S));
}

/* Muri runs iterations. A job that has none becomes one iteration as long as the job. One without
 * iteration time gets what its duration leaves for each. */
static void put_muri(struct line *line, const struct sw_trace *trace, size_t index)
{
	const struct sw_trace_job *job = &trace->jobs.items[index];
	int64_t iterations = job->iterations > 0 ? job->iterations : 1;
	int64_t iteration_ns = job->iteration_ns > 0 && job->iterations > 0 ? job->iteration_ns : job->duration_ns / iterations;
	const int64_t before[] = {job->id, job->gpus, rounded(job->submit_ns, SW_NS_PER_MS), iterations};
	for (size_t i = 0; i < 4; i++) {
		put_number(line, before[i]);
		put_char(line, ',');
	}
	put_string(line, trace, job->model);
	const int64_t middle[] = {job->batch_size, rounded(job->duration_ns, SW_NS_PER_MS),
				  rounded(interval_ns(trace, index), SW_NS_PER_MS)};
	for (size_t i = 0; i < 3; i++) {
		put_char(line, ',');
		put_number(line, middle[i]);
	}
	put_char(line, ',');
	put_decimal(line, iteration_ns, SW_NS_PER_MS);
	for (size_t i = 0; i < 3; i++) {
		put_char(line, ',');
		put_decimal(line, job->stage_us[i], 1000);
	}
	put_char(line, ',');
	put_number(line, job->job_class == SW_CLASS_OPPORTUNISTIC);
}

/* Time zero is 1970-01-01, for want of a date. */
static void put_philly(struct line *line, const struct sw_trace *trace, size_t index)
{
	const struct sw_trace_job *job = &trace->jobs.items[index];
	char date[20];
	put_text(line, sw_civil_format(rounded(job->submit_ns, SW_NS_PER_S), date));
	put_char(line, ',');
	put_decimal(line, job->duration_ns, SW_NS_PER_S);
	put_char(line, ',');
	put_number(line, job->gpus);
	put_char(line, ',');
	put_number(line, rounded(job->duration_ns, SW_NS_PER_S) * job->gpus);
	put_char(line, ',');
	put_string(line, trace, job->tenant);
}

static void put_elasticflow(struct line *line, const struct sw_trace *trace, size_t index)
{
	const struct sw_trace_job *job = &trace->jobs.items[index];
	if (trace->named)
		put_string(line, trace, job->name);
	else
		put_number(line, job->id);
	put_char(line, ',');
	put_number(line, rounded(job->submit_ns, SW_NS_PER_S));
	put_char(line, ',');
	put_number(line, job->iterations);
	put_char(line, ',');
	put_string(line, trace, job->model);
	put_char(line, ',');
	if (job->deadline_ns != SW_NEVER)
		put_number(line, rounded(job->deadline_ns, SW_NS_PER_S));
	const int64_t after[] = {job->batch_size, job->gpus, rounded(job->duration_ns, SW_NS_PER_S),
				 job->job_class == SW_CLASS_OPPORTUNISTIC};
	for (size_t i = 0; i < 4; i++) {
		put_char(line, ',');
		put_number(line, after[i]);
	}
}

#define BIT(field) (1u << (field))

static const struct writer writers[] = {
	{"sharewell",
	 "id,name,submit_s,duration_s,gpus,min_gpus,max_gpus,class,deadline_s,deadline_kind,weight,tenant,model,batch_size,iterations,"
	 "iteration_ms,data_ms,"
	 "gpu_ms,network_ms",
	 ~0u, 1, NULL, put_sharewell},
	{"tiresias", "job_id,num_gpu,submit_time,iterations,model_name,duration,interval", BIT(ID) | BIT(MODEL) | BIT(ITERATIONS),
	 SW_NS_PER_S, "rounded to whole seconds", put_tiresias},
	{"muri",
	 "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,resource_time_0,resource_time_1,"
	 "resource_time_2,"
	 "priority",
	 BIT(ID) | BIT(MODEL) | BIT(BATCH_SIZE) | BIT(ITERATIONS) | BIT(ITERATION_TIME) | BIT(STAGES) | BIT(CLASS), SW_NS_PER_MS,
	 "rounded to whole milliseconds", put_muri},
	{"philly", "timestamp,duration,num_gpus,gpu_time,cluster", BIT(TENANT), SW_NS_PER_S, "rounded to whole seconds", put_philly},
	{"elasticflow", "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration,best_effort",
	 BIT(ID) | BIT(MODEL) | BIT(BATCH_SIZE) | BIT(ITERATIONS) | BIT(DEADLINE) | BIT(CLASS), SW_NS_PER_S, "rounded to whole seconds",
	 put_elasticflow},
};

enum { WRITERS = sizeof writers / sizeof *writers };

const char *sw_trace_write_formats(size_t index)
{
	return index < WRITERS ? writers[index].name : NULL;
}

static const struct writer *find_writer(const char *format, struct sw_err *err)
{
	for (size_t i = 0; i < WRITERS; i++)
		if (strcmp(writers[i].name, format) == 0)
			return &writers[i];
	sw_err_set(err, SW_ENOTFOUND, "cannot write traces in the format '%.60s'", format);
	const char *near = sw_suggest(format, writers, WRITERS, sizeof *writers);
	if (near != NULL)
		sw_err_hint(err, "Did you mean '%s'?", near);
	else
		sw_err_hint(err, "Formats that can be written: sharewell, tiresias, muri, philly, elasticflow.");
	return NULL;
}

/* Which fields of a job say something. */
static unsigned fields_of(const struct sw_trace *trace, const struct writer *writer, size_t index)
{
	const struct sw_trace_job *job = &trace->jobs.items[index];
	bool stages = job->stage_us[0] != 0 || job->stage_us[1] != 0 || job->stage_us[2] != 0;
	bool id_holds_name = trace->named && strcmp(writer->name, "elasticflow") == 0;
	return (job->id != (int64_t)index && !trace->named) << ID | (job->name != 0 && !id_holds_name) << NAME |
	       (job->tenant != 0) << TENANT | (job->model != 0) << MODEL | (job->batch_size != 0) << BATCH_SIZE |
	       (job->iterations != 0) << ITERATIONS | (job->iteration_ns != 0) << ITERATION_TIME | stages << STAGES |
	       (job->deadline_ns != SW_NEVER) << DEADLINE | (job->deadline_kind == SW_TRACE_SOFT) << DEADLINE_KIND |
	       (job->job_class != SW_CLASS_GUARANTEED) << CLASS | (job->weight_milli != 1000) << WEIGHT |
	       (job->min_gpus != job->max_gpus) << ELASTIC | (job->user != 0) << USER | (job->gpu_memory_mib != 0) << GPU_MEMORY |
	       (job->fate != 0) << FATE;
}

static void add_loss(struct sw_trace_losses *losses, const char *field, const char *how, uint64_t jobs)
{
	if (jobs == 0)
		return;
	assert(losses->count < SW_TRACE_LOSSES_MAX);
	losses->items[losses->count].field = field;
	losses->items[losses->count].how = how;
	losses->items[losses->count].jobs = jobs;
	losses->count++;
}

static void find_losses(const struct sw_trace *trace, const struct writer *writer, struct sw_trace_losses *losses)
{
	uint64_t set[FIELDS] = {0}, submits = 0, durations = 0, deadlines = 0, unknown = 0, best_effort = 0, uncounted = 0;
	bool is_philly = strcmp(writer->name, "philly") == 0;
	for (size_t i = 0; i < trace->jobs.count; i++) {
		const struct sw_trace_job *job = &trace->jobs.items[i];
		unsigned fields = fields_of(trace, writer, i);
		for (size_t f = 0; f < FIELDS; f++)
			set[f] += (fields >> f) & 1;
		submits += job->submit_ns % writer->time_unit_ns != 0;
		durations += job->duration_ns % writer->time_unit_ns != 0 && !is_philly;
		deadlines += job->deadline_ns != SW_NEVER && job->deadline_ns % writer->time_unit_ns != 0;
		unknown += job->duration_ns == 0;
		uncounted += job->iterations == 0 && strcmp(writer->name, "muri") == 0;
		best_effort += job->deadline_ns != SW_NEVER && job->job_class == SW_CLASS_OPPORTUNISTIC;
	}
	losses->count = 0;
	if (writer->time_unit == NULL)
		return;
	for (size_t f = 0; f < FIELDS; f++)
		if ((writer->holds & BIT(f)) == 0)
			add_loss(losses, field_names[f], "left out", set[f]);
	add_loss(losses, "submit time", writer->time_unit, submits);
	add_loss(losses, "duration", writer->time_unit, durations);
	add_loss(losses, "duration", "not known, written as 0", unknown);
	add_loss(losses, "iterations", "not known, written as one as long as the job", uncounted);
	if ((writer->holds & BIT(DEADLINE)) != 0) {
		add_loss(losses, "deadline", writer->time_unit, deadlines);
		add_loss(losses, "deadline", "left out for opportunistic jobs", best_effort);
	}
	if (is_philly && trace->jobs.count > 0 && trace->jobs.items[0].submit_ns != 0)
		add_loss(losses, "submit time", "read back as counted from the first job", trace->jobs.count);
}

static bool is_recorded(const struct sw_trace *trace)
{
	for (size_t i = 0; i < trace->jobs.count; i++) {
		const struct sw_trace_job *job = &trace->jobs.items[i];
		if (job->user != 0 || job->gpu_memory_mib != 0 || job->fate != 0)
			return true;
	}
	return false;
}

int sw_trace_write(const struct sw_trace *trace, const char *format, FILE *out, struct sw_trace_losses *ret_losses, struct sw_err *err)
{
	const struct writer *writer = find_writer(format, err);
	if (writer == NULL)
		return SW_ENOTFOUND;
	struct line line;
	bool recorded = writer->put == put_sharewell && is_recorded(trace);
	bool good = fprintf(out, "%s%s\n", writer->header, recorded ? RECORDED : "") > 0;
	for (size_t i = 0; i < trace->jobs.count && good; i++) {
		line.size = 0;
		(recorded ? put_recorded : writer->put)(&line, trace, i);
		put_char(&line, '\n');
		good = fwrite(line.text, 1, line.size, out) == line.size;
	}
	if (!good || fflush(out) != 0)
		return sw_err_set(err, SW_EIO, "cannot write the trace");
	if (ret_losses != NULL)
		find_losses(trace, writer, ret_losses);
	return 0;
}
