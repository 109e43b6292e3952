/* Directives of job scripts: "#SHAREWELL -G 2 -t 2h", and the common ones of "#SBATCH".
 *
 *  1. Only what stands before the first command counts.
 *  2. What is not understood is left out with a warning, never an error: scripts are
 *     shared between clusters.
 *  3. Words of #SBATCH become our own options before anything else looks at them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "cli/job_options.h"
#include "cli/parse.h"

#define LINES_MAX 1000u
#define WORDS_MAX 256u /* of one line */

typedef SW_VEC(char *) word_list;

struct reader {
	const struct sw_cli_command *command;
	struct sw_cli_script *script;
	word_list *all;
	unsigned line;
};

static void clear(word_list *words)
{
	for (size_t i = 0; i < words->count; i++)
		free(words->items[i]);
	sw_vec_free(words);
}

static int add(word_list *words, char *word)
{
	char **slot = word != NULL ? sw_vec_push(words) : NULL;
	if (slot == NULL) {
		free(word);
		return SW_ENOMEM;
	}
	*slot = word;
	return 0;
}

/* ---- a line into words, with quotes as a shell has them */

static int take_word(const char **at, const char *end, char **ret_word)
{
	char *word = malloc((size_t)(end - *at) + 1);
	size_t size = 0;
	char quote = '\0';
	if (word == NULL)
		return SW_ENOMEM;
	for (; *at < end; (*at)++) {
		char c = **at;
		if (quote == '\0' && (c == ' ' || c == '\t'))
			break;
		if (quote == '\0' && (c == '"' || c == '\''))
			quote = c;
		else if (c == quote && quote != '\0')
			quote = '\0';
		else if (c == '\\' && quote != '\'' && *at + 1 < end)
			word[size++] = *++*at;
		else
			word[size++] = c;
	}
	word[size] = '\0';
	if (quote != '\0') {
		free(word);
		return SW_EINPUT;
	}
	*ret_word = word;
	return 0;
}

static int split(const char *at, const char *end, word_list *words)
{
	for (;;) {
		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
		if (at == end || *at == '#')
			return 0;
		char *word;
		int r = words->count < WORDS_MAX ? take_word(&at, end, &word) : SW_EINPUT;
		r = r < 0 ? r : add(words, word);
		if (r < 0)
			return r;
	}
}

/* ---- #SBATCH in our words */

enum fate {
	SAME = 0, /* `ours` takes the same value */
	QUIET,	  /* means nothing here, or what is done anyway */
	LEFT_OUT, /* means something that there is not */
};

static const struct translation {
	const char *name;
	char letter;
	bool takes; /* a value */
	enum fate fate;
	const char *ours;
} translations[] = {
	{"account", 'A', true, SAME, "tenant"},	     {"workdir", '\0', true, SAME, "chdir"}, {"cpus-per-task", 'c', true, SAME, "cpus"},
	{"open-mode", '\0', true, QUIET, NULL},	     {"mail-type", '\0', true, QUIET, NULL}, {"mail-user", '\0', true, QUIET, NULL},
	{"verbose", 'v', false, QUIET, NULL},	     {"qos", 'q', true, LEFT_OUT, NULL},     {"constraint", 'C', true, LEFT_OUT, NULL},
	{"nodelist", 'w', true, LEFT_OUT, NULL},     {"exclude", 'x', true, LEFT_OUT, NULL}, {"exclusive", '\0', false, LEFT_OUT, NULL},
	{"mem-per-cpu", '\0', true, LEFT_OUT, NULL}, {"begin", 'b', true, LEFT_OUT, NULL},   {"reservation", '\0', true, LEFT_OUT, NULL},
};

static const struct translation *find_translation(const char *word)
{
	for (size_t i = 0; i < SW_CLI_COUNT_OF(translations); i++) {
		const struct translation *known = &translations[i];
		size_t size = strlen(known->name);
		bool by_name = strncmp(word, "--", 2) == 0 && strncmp(word + 2, known->name, size) == 0 &&
			       (word[2 + size] == '\0' || word[2 + size] == '=');
		if (by_name || (known->letter != '\0' && word[0] == '-' && word[1] == known->letter))
			return known;
	}
	return NULL;
}

static void warn(const struct reader *reader, const char *fmt, const char *what)
{
	char text[200];
	snprintf(text, sizeof text, "%s'%.120s'", fmt, what);
	if (reader->script->warn != NULL)
		reader->script->warn(reader->line, text);
}

static int translate_one(const struct reader *reader, const struct translation *known, const char *word, const char *value, word_list *ours)
{
	char *made = NULL;
	if (known->fate == LEFT_OUT)
		warn(reader, "there is no such thing here, left out: ", word);
	if (known->fate != SAME)
		return 0;
	if (asprintf(&made, "--%s=%s", known->ours, value) < 0)
		return SW_ENOMEM;
	return add(ours, made);
}

static int translate(const struct reader *reader, const word_list *words, word_list *ours)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < words->count; i++) {
		const char *word = words->items[i];
		const struct translation *known = find_translation(word);
		if (known == NULL) {
			r = add(ours, strdup(word));
			continue;
		}
		const char *value = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : word[2] != '\0' ? word + 1 : NULL;
		if (value != NULL)
			value++;
		else if (known->takes && i + 1 < words->count)
			value = words->items[++i];
		r = translate_one(reader, known, word, value != NULL ? value : "", ours);
	}
	return r;
}

/* ---- one directive */

/* Whether our parser takes these words; they are copied, since it may reorder them. */
static int try_words(const struct reader *reader, const word_list *words, struct sw_err *err)
{
	char *argv[WORDS_MAX + 2];
	char name[] = "directive";
	int argc = 0;
	bool help = false;
	SW_CLEANUP(sw_freep) void *values = calloc(1, reader->command->values_size);
	if (values == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	argv[argc++] = name;
	for (size_t i = 0; i < words->count && i < WORDS_MAX; i++)
		argv[argc++] = words->items[i];
	argv[argc] = NULL;
	int r = sw_cli_parse(reader->command, argc, argv, values, &help, err);
	if (r < 0)
		return r;
	sw_cli_release(reader->command, values);
	return help ? sw_err_set(err, SW_EINPUT, "help is for the command line") : 0;
}

static int take_directive(struct reader *reader, const char *at, const char *end, bool is_slurm)
{
	word_list words = {0}, ours = {0};
	struct sw_err err = {0};
	int r = split(at, end, &words);
	if (r == SW_EINPUT)
		warn(reader, "cannot be taken apart, left out: ", at);
	word_list *chosen = is_slurm ? &ours : &words;
	if (r == 0 && is_slurm)
		r = translate(reader, &words, &ours);
	/* Operands have no place in a directive: they would end the options. */
	if (r == 0 && (try_words(reader, chosen, &err) < 0 || (chosen->count > 0 && chosen->items[0][0] != '-'))) {
		char line[160];
		snprintf(line, sizeof line, "%.*s", (int)(end - at), at);
		warn(reader, err.fact[0] != '\0' ? "not understood, left out: " : "not an option, left out: ", line + strspn(line, " \t"));
		r = SW_EINPUT;
	}
	for (size_t i = 0; r == 0 && i < chosen->count; i++) {
		r = add(reader->all, chosen->items[i]);
		chosen->items[i] = NULL;
	}
	clear(&words);
	clear(&ours);
	return r == SW_EINPUT ? 0 : r;
}

/* "#SBATCH " and the like at the beginning of the line. */
static bool begins(const char *line, const char *end, const char *word)
{
	size_t size = strlen(word);
	return (size_t)(end - line) > size && memcmp(line, word, size) == 0 && (line[size] == ' ' || line[size] == '\t');
}

int sw_cli_script_parse(const char *name, const char *text, size_t size, const struct sw_cli_command *command, struct sw_cli_script *script,
			struct sw_err *err)
{
	word_list all = {0};
	struct reader reader = {.command = command, .script = script, .all = &all};
	int r = 0;
	if (memchr(text, '\0', size) != NULL) {
		sw_err_set(err, SW_EINPUT, "cannot read script '%.200s'", name);
		sw_err_detail(err, "it holds NUL bytes: it is no script");
		return SW_EINPUT;
	}
	const char *stop = text + size;
	for (const char *line = text, *next; r == 0 && line < stop && reader.line < LINES_MAX; line = next) {
		const char *end = memchr(line, '\n', (size_t)(stop - line));
		next = end != NULL ? end + 1 : stop;
		end = end != NULL ? end : stop;
		end -= end > line && end[-1] == '\r';
		reader.line++;
		if (reader.line == 1 && end - line > 2 && memcmp(line, "#!", 2) == 0)
			script->interpreter = strndup(line + 2, (size_t)(end - line) - 2);
		if (begins(line, end, "#SHAREWELL"))
			r = take_directive(&reader, line + 10, end, false);
		else if (begins(line, end, "#SBATCH"))
			r = take_directive(&reader, line + 7, end, true);
		line += strspn(line, " \t");
		if (line < end && *line != '#')
			break;
	}
	script->text = strndup(text, size);
	script->words = all.items;
	script->word_count = all.count;
	if (r == 0 && script->text != NULL)
		return 0;
	sw_cli_script_release(script);
	return sw_err_set(err, SW_ENOMEM, "out of memory");
}

void sw_cli_script_release(struct sw_cli_script *script)
{
	for (size_t i = 0; i < script->word_count; i++)
		free(script->words[i]);
	free(script->words);
	free(script->text);
	free(script->interpreter);
	script->words = NULL;
	script->text = script->interpreter = NULL;
	script->word_count = 0;
}
