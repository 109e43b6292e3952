/* sharewell trace generate [FILE] */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/vec.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/trace_options.h"
#include "cli/trace_write.h"
#include "sim/trace/generate.h"

struct values {
	const char *file, *output, *to, *models;
	uint64_t jobs, gpus, load_milli, seed, tenants, max_job_gpus, opportunistic_milli, deadline_milli, soft_milli, elastic_milli;
};

typedef SW_VEC(struct sw_trace_mix) mix;

/* "resnet50:3,vgg16" into names and weights; the names lie in `text`, which is cut up. */
static int parse_models(char *text, mix *models, struct sw_err *err)
{
	char *rest = NULL;
	for (char *name = strtok_r(text, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
		uint64_t weight = 1;
		char *colon = strrchr(name, ':');
		if (colon != NULL) {
			*colon = '\0';
			if (sw_parse_u64(colon + 1, strlen(colon + 1), &weight) < 0 || weight < 1 || weight > 1000000) {
				sw_err_set(err, SW_EINPUT, "--models cannot give '%.60s' the weight '%.60s'", name, colon + 1);
				sw_err_detail(err, "it is a whole number from 1 to 1000000");
				return SW_EINPUT;
			}
		}
		struct sw_trace_mix *slot = sw_vec_push(models);
		if (slot == NULL)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
		*slot = (struct sw_trace_mix){name, (uint32_t)weight};
	}
	return models->count > 0 ? 0 : sw_err_set(err, SW_EINPUT, "--models names no model");
}

static struct sw_trace_recipe recipe_of(const struct values *values)
{
	struct sw_trace_recipe recipe = sw_trace_recipe_default();
	recipe.jobs = values->jobs;
	recipe.seed = values->seed;
	recipe.gpus = values->gpus;
	recipe.load_milli = (uint32_t)values->load_milli;
	recipe.max_job_gpus = (uint32_t)values->max_job_gpus;
	recipe.tenants = (uint32_t)values->tenants;
	recipe.opportunistic_milli = (uint32_t)values->opportunistic_milli;
	recipe.deadline_milli = (uint32_t)values->deadline_milli;
	recipe.soft_milli = (uint32_t)values->soft_milli;
	recipe.elastic_milli = (uint32_t)values->elastic_milli;
	return recipe;
}

static int generate(const struct values *values, const char *path, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *models = values->models != NULL ? strdup(values->models) : NULL;
	SW_CLEANUP(sw_trace_freep) struct sw_trace *trace = NULL;
	struct sw_trace_recipe recipe = recipe_of(values);
	mix mixed = {0};
	if (values->models != NULL && models == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = models != NULL ? parse_models(models, &mixed, err) : 0;
	if (r == 0) {
		recipe.mix = mixed.items;
		recipe.mix_count = mixed.count;
		r = sw_trace_generate(&recipe, &trace, err);
	}
	if (r == 0)
		r = sw_cli_write_trace(trace, values->to, path, err);
	sw_vec_free(&mixed);
	return r;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	if (values->file != NULL && values->output != NULL) {
		sw_err_set(err, SW_EINPUT, "two places to write to: '%.60s' and '%.60s'", values->file, values->output);
		sw_err_hint(err, "Give FILE or --output, not both.");
		return SW_EINPUT;
	}
	const char *path = values->file != NULL ? values->file : values->output != NULL ? values->output : "-";
	int r = sw_cli_output_check("trace", path, (const char *const[]){NULL}, err);
	return r < 0 ? r : generate(values, path, err);
}

#define AT(member) .offset = offsetof(struct values, member)
/* What makes no sense is the generator's to say; the bounds here only keep the
 * numbers in their types. */
static const struct sw_cli_option options[] = {
	{"jobs", 'n', .kind = SW_CLI_COUNT, "N", "10000", "how many jobs", .most = UINT32_MAX, AT(jobs)},
	{"gpus", 'g', .kind = SW_CLI_COUNT, "N", "1000", "GPUs of the cluster that it is meant for; no job asks for more",
	 .most = UINT32_MAX, AT(gpus)},
	{"load", 'l', .kind = SW_CLI_MILLI, "X", "0.9", "GPU time of all jobs over what those GPUs have between first and last submit",
	 .most = UINT32_MAX, AT(load_milli)},
	{"seed", 's', .kind = SW_CLI_COUNT, "N", "1", "same seed, same trace", .most = UINT64_MAX, AT(seed)},
	{"tenants", .kind = SW_CLI_COUNT, .argument = "N", .preset = "15", .about = "how many tenants submit, unevenly", .most = UINT32_MAX,
	 AT(tenants)},
	{"max-job-gpus", .kind = SW_CLI_COUNT, .argument = "N", .preset = "0", .about = "no job asks for more than N GPUs; 0: than --gpus",
	 .most = 1000000, AT(max_job_gpus)},
	{"opportunistic", .kind = SW_CLI_MILLI, .argument = "X", .preset = "0", .about = "share of jobs that take what is left, 0 to 1",
	 .most = 1000, AT(opportunistic_milli)},
	{"elastic", .kind = SW_CLI_MILLI, .argument = "X", .preset = "0",
	 .about = "share of jobs that run on half to twice their GPUs, 0 to 1", .most = 1000, AT(elastic_milli)},
	{"deadlines", .kind = SW_CLI_MILLI, .argument = "X", .preset = "0", .about = "share of jobs with a deadline, 0 to 1", .most = 1000,
	 AT(deadline_milli)},
	{"soft", .kind = SW_CLI_MILLI, .argument = "X", .preset = "0.3", .about = "share of the deadlines that are soft, 0 to 1",
	 .most = 1000, AT(soft_milli)},
	{"models", 'm', .kind = SW_CLI_TEXT, "NAMES", .about = "models to choose from, each with a weight if you like: resnet50:3,vgg16",
	 AT(models)},
	{"to", 't', .kind = SW_CLI_WORD, "FORMAT", "sharewell", "the format to write", &sw_cli_write_format_words, AT(to)},
	{"output", 'o', .kind = SW_CLI_TEXT, "FILE", .about = "where to write, the same as FILE", .is_path = true, AT(output)},
};

static const struct sw_cli_option operands[] = {
	{"FILE", .kind = SW_CLI_TEXT, .is_path = true,
	 .about = "where to write, standard output if not given; a name that ends in .gz, .xz or .zst is compressed", AT(file)},
};
#undef AT

static const struct sw_cli_example examples[] = {
	{"sharewell trace generate jobs.csv --jobs 2000 --gpus 64", "make 2,000 jobs that keep 64 GPUs busy to 90 %"},
	{"sharewell trace generate -o rush.csv.zst --jobs 100000 --gpus 2496 --load 1.3 --seed 7", "make an overloaded Philly"},
	{"sharewell trace generate slo.csv --gpus 128 --deadlines 0.5 --soft 0.2 --opportunistic 0.1", "make jobs with deadlines"},
};

const struct sw_cli_command sw_cli_trace_generate = {
	.name = "trace generate",
	.about = "make a new trace whose arrivals, durations and sizes follow Philly's",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
