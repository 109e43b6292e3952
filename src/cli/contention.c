/* sharewell contention MODEL... */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/live.h"
#include "cli/own_profiles.h"
#include "contention/learn.h"

#define LARGEST_FILE ((size_t)4 << 20)

struct values {
	struct sw_cli_texts models;
	const char *way, *learned, *profiles;
	bool json;
};

static const struct sw_cli_words way_words = {.at = sw_predict_way_name};

/* One question: these models, this way. */
struct question {
	const struct sw_profiles *profiles;
	struct sw_learn *learn;
	const struct sw_cli_texts *models;
	enum sw_predict_way way;
	struct sw_learn_answer answers[SW_LEARN_JOBS_MAX];
	uint32_t worth_milli;
};

static void ask(struct question *question)
{
	size_t count = question->models->count;
	for (size_t i = 0; i < count; i++)
		sw_learn_ask(question->learn, &(struct sw_learn_case){question->way, question->models->items, count, i},
			     &question->answers[i]);
	uint64_t worth_ppb = 0; /* rounded once, at the end */
	for (size_t i = 0; i < count; i++)
		worth_ppb += UINT64_C(1000000000000) / (question->answers[i].slow_milli > 0 ? question->answers[i].slow_milli : 1);
	question->worth_milli = (uint32_t)((worth_ppb + 500000) / 1000000);
}

/* How sure it is. */
static const char *source_of(const struct question *question, size_t i, char buffer[64])
{
	const struct sw_learn_answer *answer = &question->answers[i];
	if (answer->times > 0)
		snprintf(buffer, 64, "measured %u times, %llu steps", answer->times, (unsigned long long)answer->samples);
	else if (answer->known > 0)
		snprintf(buffer, 64, "other measured sets: %u", answer->known);
	else if (sw_profiles_find(question->profiles, question->models->items[i])->is_default)
		return "the default profile: this model was not measured";
	else if (sw_profiles_find(question->profiles, question->models->items[i])->is_own)
		return "a profile that was measured here";
	else
		return "the profiles";
	return buffer;
}

static int add_rows(struct sw_cli_rows *rows, const struct question *question)
{
	int r = 0;
	for (size_t i = 0; i < question->models->count && r == 0; i++) {
		const struct sw_learn_answer *answer = &question->answers[i];
		char buffer[64];
		r = sw_cli_rows_add(rows, sw_predict_way_name(question->way));
		if (r == 0)
			r = sw_cli_rows_add(rows, question->models->items[i]);
		if (r == 0 && answer->slow_milli >= SW_PREDICT_SLOWEST_MILLI)
			r = sw_cli_rows_add(rows, "stands still");
		else if (r == 0)
			r = sw_cli_rows_addf(rows, "%.2f", answer->slow_milli / 1000.0);
		if (r == 0)
			r = sw_cli_rows_addf(rows, "%.2f", question->worth_milli / 1000.0);
		if (r == 0)
			r = sw_cli_rows_add(rows, sw_predict_bound_name(answer->bound));
		if (r == 0)
			r = sw_cli_rows_add(rows, source_of(question, i, buffer));
	}
	return r;
}

/* NULL: out of memory, or a name that is not UTF-8. */
static json_t *question_json(const struct question *question)
{
	json_t *jobs = json_array();
	for (size_t i = 0; i < question->models->count; i++) {
		const struct sw_learn_answer *answer = &question->answers[i];
		const struct sw_profile *profile = sw_profiles_find(question->profiles, question->models->items[i]);
		json_t *job = json_pack("{s:s, s:b, s:f, s:f, s:b, s:s, s:i, s:I, s:i}", "model", question->models->items[i], "has_profile",
					!profile->is_default, "slowdown", answer->slow_milli / 1000.0, "slowdown_by_profile",
					answer->prior_milli / 1000.0, "stands_still", answer->slow_milli >= SW_PREDICT_SLOWEST_MILLI,
					"waits_for", sw_predict_bound_name(answer->bound), "measured_times", (int)answer->times,
					"measured_steps", (json_int_t)answer->samples, "learned_from_sets", (int)answer->known);
		if (json_array_append_new(jobs, job) < 0) {
			json_decref(jobs);
			return NULL;
		}
	}
	struct sw_learn_error error;
	sw_learn_error_of(question->learn, question->way, &error);
	json_t *wrong = json_pack("{s:i, s:f, s:f, s:s, s:f, s:f}", "sets", (int)error.count, "median", error.median_milli / 1000.0,
				  "worst", error.worst_milli / 1000.0, "worst_set", error.worst, "median_by_profile",
				  error.prior_median_milli / 1000.0, "worst_by_profile", error.prior_worst_milli / 1000.0);
	return json_pack("{s:s, s:f, s:o, s:o}", "way", sw_predict_way_name(question->way), "together", question->worth_milli / 1000.0,
			 "jobs", jobs, "error", wrong);
}

/* What the answers are worth, by what they were learned from. */
static void print_error(struct sw_learn *learn)
{
	struct sw_learn_error error;
	sw_learn_error(learn, &error);
	if (error.count == 0)
		return;
	SW_CLEANUP(sw_freep) char *worst = sw_text_clean(error.worst);
	printf("\nMeasured sets: %u. Each predicted from the others: wrong by %.1f %% in the median, by %.1f %% at worst (%s).\n",
	       error.count, error.median_milli / 10.0, error.worst_milli / 10.0, worst != NULL ? worst : "?");
	printf("By the profiles alone: %.1f %% and %.1f %%.\n", error.prior_median_milli / 10.0, error.prior_worst_milli / 10.0);
}

static int load(const struct values *values, struct sw_profiles **ret_profiles, struct sw_learn **ret_learn, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size = 0;
	char own[PATH_MAX];
	/* Where there is no place for a state there are no profiles. */
	bool has_own = values->profiles == NULL && sw_cli_own_profiles_path(NULL, false, own, NULL) == 0;
	int r = sw_cli_own_profiles_load(has_own ? own : values->profiles, values->profiles != NULL, ret_profiles, err);
	if (r == 0)
		r = sw_learn_new(*ret_profiles, &sw_predict_default, ret_learn, err);
	if (r == 0 && values->learned != NULL)
		r = sw_file_read(values->learned, LARGEST_FILE, &text, &size, err);
	if (r == 0 && values->learned != NULL)
		r = sw_learn_read(*ret_learn, values->learned, text, size, err);
	return r;
}

static int answer(const struct values *values, struct question *question, struct sw_err *err)
{
	static const struct sw_cli_column columns[] = {
		{.name = "WAY"},       {.name = "MODEL"},     {.name = "SLOWDOWN", .right = true}, {.name = "TOGETHER", .right = true},
		{.name = "WAITS FOR"}, {.name = "KNOWN FROM"}};
	struct sw_cli_rows rows = {.columns = columns, .column_count = SW_CLI_COUNT_OF(columns)};
	SW_JSON *list = json_array();
	int r = 0;
	for (size_t way = 0; way < SW_WAY_COUNT && r == 0; way++) {
		if (values->way != NULL && strcmp(values->way, sw_predict_way_name(way)) != 0)
			continue;
		question->way = (enum sw_predict_way)way;
		ask(question);
		r = add_rows(&rows, question);
		if (r == 0 && values->json && json_array_append_new(list, question_json(question)) < 0)
			r = sw_err_set(err, SW_EINPUT, "cannot print this as JSON: a name is not UTF-8");
	}
	if (r == 0 && values->json) {
		json_dumpf(list, stdout, JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12));
		putchar('\n');
	} else if (r == 0) {
		sw_cli_rows_print(&rows, stdout, true);
		print_error(question->learn);
	}
	sw_cli_rows_release(&rows);
	return r;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = NULL;
	SW_CLEANUP(sw_learn_freep) struct sw_learn *learn = NULL;
	if (values->models.count > SW_LEARN_JOBS_MAX) {
		sw_err_set(err, SW_EINPUT, "cannot predict how %zu jobs slow each other down", values->models.count);
		sw_err_detail(err, "at most %u jobs on one GPU are predicted", SW_LEARN_JOBS_MAX);
		return SW_EINPUT;
	}
	int r = load(values, &profiles, &learn, err);
	struct question question = {.profiles = profiles, .learn = learn, .models = &values->models};
	return r < 0 ? r : answer(values, &question, err);
}

static const struct sw_cli_option options[] = {
	{"way", 'w', .kind = SW_CLI_WORD, .argument = "WAY", .words = &way_words, .about = "only this way of sharing",
	 .offset = offsetof(struct values, way)},
	{"learned", .kind = SW_CLI_TEXT, .is_path = true, .argument = "FILE", .about = "measured slowdowns, which correct the predictions",
	 .offset = offsetof(struct values, learned)},
	{"profiles", .kind = SW_CLI_TEXT, .is_path = true, .argument = "FILE",
	 .about = "measured profiles, instead of those of 'sharewell profile' here", .offset = offsetof(struct values, profiles)},
	{"json", .about = "print JSON instead", .offset = offsetof(struct values, json)},
};

static const struct sw_cli_option operands[] = {
	{"MODEL", .kind = SW_CLI_TEXTS, .required = true, .about = "what the jobs train, such as resnet50; the same may be given again",
	 .offset = offsetof(struct values, models)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell contention resnet50 deepfm", "see how much both slow down, in time slices, under MPS and under the gate"},
	{"sharewell contention dlrm transformer bert --way mps --json", "three of them, for a program"},
};

const struct sw_cli_command sw_cli_contention = {
	.name = "contention",
	.about = "tell how jobs slow each other down when they share a GPU",
	.text = "SLOWDOWN is the run time relative to that alone. TOGETHER is the work that all of them do on the GPU, as a multiple of "
		"what one job alone does. Above 1, sharing beats one after the other.\n\nWays: "
		"'slices', the driver's time slices. 'mps', at the same time under NVIDIA's MPS. 'gate', the first job guaranteed and the "
		"others giving way to it.",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
