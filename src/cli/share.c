/* sharewell share: a program under the GPU runtime, on a machine that needs no cluster.
 *
 * The page of each such program lies in a folder of the user's own, under the share's name. There
 * --list, --suspend, --resume, --limit and --profile find it. The file goes when the program ends;
 * one that was left behind is removed by the next --list.
 */
#include <stdio.h>
#include <string.h>

#include "api/job.h"
#include "base/number.h"
#include "cli/command.h"
#include "cli/message.h"
#include "cli/share_deep.h"
#include "cli/share_places.h"
#include "cli/share_profile.h"
#include "cli/share_run.h"
#include "share/folder.h"
#include "share/node.h"

#define WISH_NS INT64_C(60000000000)

struct values {
	struct sw_cli_texts words;
	const char *memory, *host_memory, *all_host_memory, *name, *class, *throttle;
	uint64_t compute, slice, seconds;
	const char *suspend, *resume, *limit, *gpu, *profile;
	bool list, json, deep;
};

/* What is asked for, one at a time. */
enum wish { RUNS, LISTS, SUSPENDS, RESUMES, LIMITS, PROFILES, WISHES };
static const char *const wish_words[WISHES] = {"a program to run", "--list", "--suspend", "--resume", "--limit", "--profile"};

static const char *class_word(size_t index)
{
	static const char *const words[] = {[SW_CLASS_GUARANTEED] = "guaranteed", [SW_CLASS_OPPORTUNISTIC] = "opportunistic"};
	return index < SW_CLI_COUNT_OF(words) ? words[index] : NULL;
}

static const struct sw_cli_words class_words = {.at = class_word};

/* Less than the driver needs for itself would never be enough. */
static int parse_memory(const char *text, uint64_t *ret_bytes, struct sw_err *err)
{
	uint64_t bytes = 0;
	char least[32];
	int r = sw_cli_share_size("memory", text, &bytes, err);
	if (r == 0 && bytes < SW_LIMIT_LEAST_BYTES) {
		sw_err_set(err, SW_EINPUT, "--memory cannot be '%.60s'", text);
		sw_err_detail(err, "the driver alone needs %s", sw_format_bytes(SW_LIMIT_LEAST_BYTES, least));
		return SW_EINPUT;
	}
	if (r == 0)
		*ret_bytes = bytes;
	return r;
}

/* ---- terms */

/* What the options say; what they do not say stays. */
static int take_options(const struct values *values, struct sw_share_terms *terms, struct sw_err *err)
{
	int r = 0;
	if (values->memory != NULL && strcmp(values->memory, "none") == 0)
		terms->asked_bytes = SW_PAGE_NO_LIMIT;
	else if (values->memory != NULL)
		r = parse_memory(values->memory, &terms->asked_bytes, err);
	if (values->compute > 0)
		terms->asked_milli = values->compute < 100 ? (uint32_t)values->compute * 10 : 0;
	if (values->class != NULL)
		terms->class =
			strcmp(values->class, class_word(SW_CLASS_OPPORTUNISTIC)) == 0 ? SW_CLASS_OPPORTUNISTIC : SW_CLASS_GUARANTEED;
	if (values->throttle != NULL)
		terms->throttle = sw_throttle_find(values->throttle);
	if (values->slice > 0)
		terms->slice_s = (uint8_t)values->slice;
	return r;
}

/* No other process decides about it, or changes it, meanwhile. */
static int change_terms(struct sw_share_page *page, enum wish change, const struct values *values, uint32_t *ret_wish, struct sw_err *err)
{
	char folder[PATH_MAX];
	struct sw_share_terms terms;
	int r = sw_cli_share_folder(folder, err);
	if (r < 0)
		return r;
	int lock = sw_share_folder_lock(folder, true);
	(void)sw_share_page_refresh(page);
	sw_share_terms_get(page, &terms);
	if (change == LIMITS)
		take_options(values, &terms, NULL);
	else
		terms.held = change == SUSPENDS;
	*ret_wish = sw_share_terms_change(page, &terms);
	sw_share_folder_unlock(lock);
	return 0;
}

/* ---- wishes */

static int state_wish(const struct values *values, bool suspend, struct sw_err *err)
{
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = NULL;
	const char *name = suspend ? values->suspend : values->resume;
	uint32_t wish = 0;
	int r = sw_cli_share_open(name, true, &page, err); /* it may be taken off its GPUs, or be off */
	if (r == 0 && !suspend)
		r = sw_cli_share_bring_back(name, page, values->gpu, err);
	r = r < 0 ? r : change_terms(page, suspend ? SUSPENDS : RESUMES, NULL, &wish, err);
	if (r < 0)
		return r;
	bool met = sw_share_page_wait(page, wish, WISH_NS);
	struct sw_share_figures figures;
	sw_share_page_look(page, &figures);
	if (met && figures.processes == 0)
		printf("%s has no process on a GPU now; it will %s\n", name, suspend ? "wait before its first work" : "run");
	else if (met && !suspend && figures.suspended == figures.processes)
		printf("%s waits for its turn\n", name);
	else if (met)
		printf("%s %s: %.2f GiB in %.0f ms\n", name, suspend ? "suspended" : "runs again", (double)figures.moved_bytes / (1 << 30),
		       (double)figures.move_ns / 1e6);
	if (met)
		return suspend && values->deep && figures.processes > 0 ? sw_cli_share_take_off(name, page, err) : 0;
	sw_err_set(err, SW_EIO, "%s did not %s within %d s", name, suspend ? "suspend" : "resume", (int)(WISH_NS / 1000000000));
	sw_err_detail(err, "%s", sw_share_trouble(figures.trouble));
	return SW_EIO;
}

/* A limit may be lower than what stays on the GPU in any case; then it keeps the rest off. */
static void say_what_stays(const char *name, const struct sw_share_figures *figures, uint64_t limit_bytes)
{
	char fixed[32], place[32] = "its GPU";
	for (uint32_t i = 0; i < figures->gpu_count; i++) {
		if (figures->gpus[i].fixed_bytes <= limit_bytes)
			continue;
		if (figures->gpu_count > 1)
			snprintf(place, sizeof place, "GPU %u", i);
		sw_cli_print_note("%s cannot go below %s on %s: the driver keeps that there for its processes until they end", name,
				  sw_format_bytes(figures->gpus[i].fixed_bytes, fixed), place);
	}
}

static int state_limit(const struct values *values, struct sw_err *err)
{
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = NULL;
	struct sw_share_terms terms = {0};
	uint32_t wish = 0;
	if (values->memory == NULL && values->compute == 0 && values->class == NULL && values->throttle == NULL && values->slice == 0)
		return sw_err_set(err, SW_EINPUT, "--limit needs --memory, --compute, --class, --throttle or --slice");
	int r = take_options(values, &terms, err);
	r = r < 0 ? r : sw_cli_share_open(values->limit, false, &page, err);
	r = r < 0 ? r : change_terms(page, LIMITS, values, &wish, err);
	if (r < 0)
		return r;
	bool met = sw_share_page_wait(page, wish, WISH_NS);
	struct sw_share_figures figures;
	sw_share_page_look(page, &figures);
	if (met) {
		uint64_t charged = 0, host = 0;
		for (uint32_t i = 0; i < figures.gpu_count; i++) {
			charged += figures.gpus[i].charged_bytes;
			host += figures.gpus[i].host_bytes;
		}
		printf("%s: %.2f GiB on its GPUs, %.2f GiB in host memory\n", values->limit, (double)charged / (1 << 30),
		       (double)host / (1 << 30));
		if (values->memory != NULL)
			say_what_stays(values->limit, &figures, terms.asked_bytes);
		return 0;
	}
	sw_err_set(err, SW_EIO, "%s is not under its new limit", values->limit);
	sw_err_detail(err, "%s", sw_share_trouble(figures.trouble));
	return SW_EIO;
}

static int bound_all(const char *text, struct sw_err *err)
{
	uint64_t bytes = 0;
	int r = sw_cli_share_size("all-host-memory", text, &bytes, err);
	if (r < 0 || sw_share_node_limit(bytes))
		return r;
	sw_err_set(err, SW_EIO, "cannot bound the host memory of all programs together");
	sw_err_detail(err, "'%s' cannot be used", sw_share_node_path());
	return SW_EIO;
}

static int run_program(const struct values *values, struct sw_err *err)
{
	struct sw_share_terms terms = {.asked_bytes = SW_PAGE_NO_LIMIT, .throttle = sw_throttle_at(0)};
	uint64_t host_bytes = 0;
	int r = take_options(values, &terms, err);
	if (r == 0 && values->host_memory != NULL)
		r = sw_cli_share_size("host-memory", values->host_memory, &host_bytes, err);
	if (r == 0 && values->all_host_memory != NULL)
		r = bound_all(values->all_host_memory, err);
	return r < 0 ? r : sw_cli_share_run(values->name, &values->words, &terms, host_bytes, err);
}

/* ---- the command */

static int find_wish(const struct values *values, enum wish *ret_wish, struct sw_err *err)
{
	const bool asked[WISHES] = {
		[RUNS] = values->words.count > 0,   [LISTS] = values->list,	      [SUSPENDS] = values->suspend != NULL,
		[RESUMES] = values->resume != NULL, [LIMITS] = values->limit != NULL, [PROFILES] = values->profile != NULL,
	};
	enum wish found = WISHES;
	for (enum wish wish = 0; wish < WISHES; wish++) {
		if (asked[wish] && found != WISHES)
			return sw_err_set(err, SW_EINPUT,
					  "one thing at a time: --list, --suspend, --resume, --limit, --profile, or a program to run");
		found = asked[wish] ? wish : found;
	}
	*ret_wish = found != WISHES ? found : RUNS;
	return 0;
}

/* What would be passed over is refused: a user that limits while suspending
 * believes that both were done. */
static int check_options(const struct values *values, enum wish wish, struct sw_err *err)
{
	enum { TERMS = 1 << RUNS | 1 << LIMITS };
	const struct {
		const char *name;
		bool given;
		unsigned wishes; /* that it goes with */
	} rules[] = {
		{"memory", values->memory != NULL, TERMS},
		{"compute", values->compute > 0, TERMS},
		{"class", values->class != NULL, TERMS},
		{"throttle", values->throttle != NULL, TERMS},
		{"slice", values->slice > 0, TERMS},
		{"host-memory", values->host_memory != NULL, 1 << RUNS},
		{"all-host-memory", values->all_host_memory != NULL, 1 << RUNS},
		{"name", values->name != NULL, 1 << RUNS},
		{"deep", values->deep, 1 << SUSPENDS},
		{"gpu", values->gpu != NULL, 1 << RESUMES},
		{"seconds", values->seconds > 0, 1 << PROFILES},
		{"json", values->json, 1 << LISTS | 1 << PROFILES},
	};
	for (size_t i = 0; i < SW_CLI_COUNT_OF(rules); i++) {
		if (!rules[i].given || (rules[i].wishes & 1u << wish) != 0)
			continue;
		char with[80] = "";
		for (enum wish other = 0; other < WISHES; other++)
			if ((rules[i].wishes & 1u << other) != 0)
				snprintf(with + strlen(with), sizeof with - strlen(with), "%s%s", with[0] != '\0' ? " and " : "",
					 wish_words[other]);
		return sw_err_set(err, SW_EINPUT, "--%s goes with %s, not with %s", rules[i].name, with, wish_words[wish]);
	}
	return 0;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	enum wish wish = RUNS;
	int r = find_wish(values, &wish, err);
	r = r < 0 ? r : check_options(values, wish, err);
	if (r < 0)
		return r;
	if (wish == LISTS)
		return sw_cli_share_list(values->json, err);
	if (wish == SUSPENDS || wish == RESUMES)
		return state_wish(values, wish == SUSPENDS, err);
	if (wish == LIMITS)
		return state_limit(values, err);
	if (wish == PROFILES)
		return sw_cli_share_profile(values->profile, values->seconds > 0 ? values->seconds : 10, values->json, err);
	if (values->words.count == 0) {
		sw_err_set(err, SW_EINPUT, "no program to run");
		sw_err_hint(err, "As in: sharewell share --memory 20G -- python train.py");
		return SW_EINPUT;
	}
	return run_program(values, err);
}

static const struct sw_cli_option options[] = {
	{"memory", 'm', .kind = SW_CLI_TEXT, .argument = "SIZE",
	 .about = "GPU memory that it may use on each GPU, at least 16M; what is over it goes to host memory",
	 .offset = offsetof(struct values, memory)},
	{"compute", 'c', .kind = SW_CLI_COUNT, .argument = "PERCENT", .least = 1, .most = 100,
	 .about = "part of the GPU's time that each of its processes may take", .offset = offsetof(struct values, compute)},
	{"class", .kind = SW_CLI_WORD, .argument = "CLASS", .words = &class_words,
	 .about = "guaranteed (if nothing is said), or opportunistic: it uses what guaranteed programs leave",
	 .offset = offsetof(struct values, class)},
	{"throttle", .kind = SW_CLI_WORD, .argument = "RULE", .words = &sw_cli_throttle_words,
	 .about = "how an opportunistic program keeps out of the way of guaranteed ones (yield)",
	 .offset = offsetof(struct values, throttle)},
	{"slice", .kind = SW_CLI_COUNT, .argument = "SECONDS", .least = 1, .most = 255,
	 .about = "length of turns, where not all programs fit on the GPU (60; the shortest that any of them names)",
	 .offset = offsetof(struct values, slice)},
	{"host-memory", .kind = SW_CLI_TEXT, .argument = "SIZE", .about = "host memory that its contents may take (half of what is free)",
	 .offset = offsetof(struct values, host_memory)},
	{"all-host-memory", .kind = SW_CLI_TEXT, .argument = "SIZE",
	 .about = "the same for all your programs on this machine together, from now on (half of what it has)",
	 .offset = offsetof(struct values, all_host_memory)},
	{"name", .kind = SW_CLI_TEXT, .argument = "NAME", .about = "how to call it later (the number of this process)",
	 .offset = offsetof(struct values, name)},
	{"list", 'l', .about = "show what runs this way", .offset = offsetof(struct values, list)},
	{"suspend", .kind = SW_CLI_TEXT, .argument = "NAME", .about = "stop it and free its GPU memory",
	 .offset = offsetof(struct values, suspend)},
	{"deep",
	 .about = "with --suspend: let the driver take its processes off the GPU whole, contexts included; slower, and needs driver 570",
	 .offset = offsetof(struct values, deep)},
	{"resume", .kind = SW_CLI_TEXT, .argument = "NAME", .about = "bring it back and let it go on",
	 .offset = offsetof(struct values, resume)},
	{"gpu", .kind = SW_CLI_TEXT, .argument = "GPU",
	 .about = "with --resume, after --suspend --deep: go on with this GPU, by number or UUID; it must be of the same kind (driver 580)",
	 .offset = offsetof(struct values, gpu)},
	{"limit", .kind = SW_CLI_TEXT, .argument = "NAME",
	 .about = "change what --memory ('none': no limit), --compute, --class, --throttle and --slice say, while it runs",
	 .offset = offsetof(struct values, limit)},
	{"profile", .kind = SW_CLI_TEXT, .argument = "NAME",
	 .about = "measure what it launches, for how long, and what it copies; it is a little slower meanwhile",
	 .offset = offsetof(struct values, profile)},
	{"seconds", .kind = SW_CLI_COUNT, .argument = "SECONDS", .least = 1, .most = 3600, .about = "with --profile: for how long (10)",
	 .offset = offsetof(struct values, seconds)},
	{"json", .about = "with --list and --profile: print JSON", .offset = offsetof(struct values, json)},
};

static const struct sw_cli_option operands[] = {
	{"COMMAND", .kind = SW_CLI_TEXTS, .is_path = true, .about = "the program and its arguments",
	 .offset = offsetof(struct values, words)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell share --memory 20G --name big -- python train.py", "train with at most 20 GiB of each GPU"},
	{"sharewell share --suspend big", "stop it where it is and free its GPU memory; --resume lets it go on"},
	{"sharewell share --suspend big --deep",
	 "leave nothing of it on the GPU; 'sharewell share --resume big --gpu 1' brings it to another one"},
	{"sharewell share --limit big --memory 10G", "take half of its GPU memory away while it trains"},
	{"sharewell share --class opportunistic -- python sweep.py", "use what guaranteed programs leave of the GPU's memory and time"},
};

const struct sw_cli_command sw_cli_share = {
	.name = "share",
	.about = "run a program so that it can share a GPU; no cluster needed",
	.text = "The program is not changed and need not know: a library is put between it and the CUDA driver. Its GPU memory can be "
		"limited while it runs. It can be suspended, which copies its memory to the host and frees the GPU. It is resumed bit for "
		"bit, at the same addresses.\n\nSeveral "
		"programs of one user share the GPUs by themselves. Guaranteed ones have their memory and their time; opportunistic ones "
		"work in what is left. They make room when a guaranteed one needs more memory, and keep out of its way by a rule. 'yield' "
		"works only in its idle times; 'antman' and 'tgs' take as much time as does not slow it down. Programs of one class that "
		"do "
		"not fit into the GPU's memory take turns.\n\nIt "
		"is a promise between programs of good will, not a wall: a program that insists can go around it.",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
