/* Directives of job scripts become options; what is not understood is left out with a warning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/job_options.h"

static char warnings[2000];

static void warn(unsigned line, const char *what)
{
	size_t used = strlen(warnings);
	snprintf(warnings + used, sizeof warnings - used, "%u: %s\n", line, what);
}

/* All words, joined by spaces. */
static void parse(const char *text, char *joined, size_t size)
{
	struct sw_cli_script script = {.warn = warn};
	struct sw_err err = {0};
	warnings[0] = '\0';
	joined[0] = '\0';
	assert_int_equal(sw_cli_script_parse("test.sh", text, strlen(text), &sw_cli_submit, &script, &err), 0);
	assert_string_equal(script.text, text);
	for (size_t i = 0; i < script.word_count; i++) {
		size_t used = strlen(joined);
		snprintf(joined + used, size - used, "%s%s", i > 0 ? " " : "", script.words[i]);
	}
	sw_cli_script_release(&script);
}

#define ASSERT_WORDS(text, expected)                   \
	do {                                           \
		char joined[2000];                     \
		parse(text, joined, sizeof joined);    \
		assert_string_equal(joined, expected); \
	} while (0)

/* Our own directives are options as they stand, with quotes as a shell has them. */
static void test_own(void **state)
{
	(void)state;
	ASSERT_WORDS("#!/bin/sh\n#SHAREWELL -G 2 --job-name='a b' # why\n\n# words\n#SHAREWELL --comment \"x\\\"y\"\necho\n",
		     "-G 2 --job-name=a b --comment x\"y");
	assert_string_equal(warnings, "");
}

/* Directives count up to the first command, and not behind it. */
static void test_end(void **state)
{
	(void)state;
	ASSERT_WORDS("#SHAREWELL -G 2\n  echo\n#SHAREWELL -G 3\n", "-G 2");
	ASSERT_WORDS("echo\n#SHAREWELL -G 3\n", "");
	ASSERT_WORDS("", "");
	ASSERT_WORDS("#SHAREWELL -G 2", "-G 2");
	ASSERT_WORDS("#SHAREWELL -G 2\r\n", "-G 2");
	ASSERT_WORDS("#SHAREWELLER -G 2\n##SBATCH -G 3\n #SBATCH -G 4\n", "");
}

/* Common words of Slurm become ours. */
static void test_slurm(void **state)
{
	(void)state;
	ASSERT_WORDS("#SBATCH --account=vision\n#SBATCH --gres=gpu:a100:4 -J x\n", "--tenant=vision --gres=gpu:a100:4 -J x");
	ASSERT_WORDS("#SBATCH --gpus-per-node=2\n#SBATCH -G h100:3\n", "--gpus-per-node=2 -G h100:3");
	ASSERT_WORDS("#SBATCH -c8 --cpus-per-task 4\n", "--cpus=8 --cpus=4");
	ASSERT_WORDS("#SBATCH --signal=B:USR1@120\n#SBATCH -N2 -n 1 -p x --nice --requeue --open-mode=append\n",
		     "--signal=B:USR1@120 -N2 -n 1 -p x --nice --requeue");
	assert_string_equal(warnings, "");
}

/* What means nothing here is named with its line, and the rest of its line counts. */
static void test_left_out(void **state)
{
	(void)state;
	ASSERT_WORDS("#!/bin/bash\n#SBATCH -q high --mem=3G\n#SBATCH --exclusive\n", "--mem=3G");
	assert_non_null(strstr(warnings, "2: "));
	assert_non_null(strstr(warnings, "'-q'"));
	assert_non_null(strstr(warnings, "3: "));
}

/* Unknown options, words that are none, open quotes, and help are no errors. */
static void test_unknown(void **state)
{
	(void)state;
	const char *const lines[] = {"#SHAREWELL --colour=red\n", "#SBATCH --switches=1\n", "#SHAREWELL python train.py\n",
				     "#SHAREWELL -J 'open\n",	  "#SHAREWELL --help\n",    "#SHAREWELL --gpus\n"};
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		ASSERT_WORDS(lines[i], "");
		assert_non_null(strstr(warnings, "1: "));
	}
}

/* The interpreter is that of the first line, and only of the first. */
static void test_interpreter(void **state)
{
	(void)state;
	struct sw_cli_script script = {0};
	struct sw_err err = {0};
	const char *text = "#!/bin/bash -l\necho\n";
	assert_int_equal(sw_cli_script_parse("x", text, strlen(text), &sw_cli_submit, &script, &err), 0);
	assert_string_equal(script.interpreter, "/bin/bash -l");
	sw_cli_script_release(&script);
	assert_int_equal(sw_cli_script_parse("x", "\n#!/bin/sh\n", 11, &sw_cli_submit, &script, &err), 0);
	assert_null(script.interpreter);
	sw_cli_script_release(&script);
	assert_int_equal(sw_cli_script_parse("x",
					     "\x7f"
					     "ELF\0\0",
					     6, &sw_cli_submit, &script, &err),
			 SW_EINPUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),	 cmocka_unit_test(test_end),	 cmocka_unit_test(test_slurm),
		cmocka_unit_test(test_left_out), cmocka_unit_test(test_unknown), cmocka_unit_test(test_interpreter),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
