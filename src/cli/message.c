#include "cli/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/interrupt.h"

#define STAMP "%Y-%m-%dT%H:%M:%S "

static bool stamps;

void sw_cli_stamp_messages(void)
{
	stamps = true;
	/* A line at a time: other processes write into the same log. */
	setvbuf(stderr, NULL, _IOLBF, BUFSIZ);
}

bool sw_cli_stamps_messages(void)
{
	return stamps;
}

const char *sw_cli_unstamped(const char *line)
{
	struct tm parts = {0};
	const char *rest = strptime(line, STAMP, &parts);
	return rest != NULL ? rest : line;
}

static void begin_line(const char *word)
{
	char moment[32] = "";
	time_t now = time(NULL);
	struct tm parts;
	if (stamps && localtime_r(&now, &parts) != NULL)
		strftime(moment, sizeof moment, STAMP, &parts);
	fprintf(stderr, "%s%s: ", moment, word);
}

/* Foreign text may hold anything; newlines would forge a second message. */
static void put_clean(const char *text)
{
	SW_CLEANUP(sw_freep) char *clean = sw_text_clean(text);
	for (const char *c = clean; c != NULL && *c != '\0'; c++)
		fputc(*c == '\n' || *c == '\t' ? ' ' : *c, stderr);
}

void sw_cli_print_error(const struct sw_err *err)
{
	begin_line("sharewell");
	put_clean(err->fact[0] != '\0' ? err->fact : "unknown error");
	if (err->detail[0] != '\0') {
		fputs(": ", stderr);
		put_clean(err->detail);
	}
	fputc('\n', stderr);
	if (err->hint[0] != '\0') {
		begin_line("hint");
		put_clean(err->hint);
		fputc('\n', stderr);
	}
}

__attribute__((format(printf, 2, 0))) static void print_line(const char *word, const char *fmt, va_list args)
{
	char text[1024];
	vsnprintf(text, sizeof text, fmt, args);
	begin_line(word);
	put_clean(text);
	fputc('\n', stderr);
}

void sw_cli_print_note(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	print_line("sharewell: note", fmt, args);
	va_end(args);
}

void sw_cli_print_news(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	print_line("sharewell", fmt, args);
	va_end(args);
}

int sw_cli_exit_status(int code)
{
	switch (code) {
	case SW_OK:
		return 0;
	case SW_EINPUT:
	case SW_ENOTFOUND:
	case SW_ELIMIT:
		return SW_CLI_BAD_INPUT;
	case SW_ESTOPPED:
		/* As the shell reports a program that the signal ended. */
		return 128 + sw_cli_interrupted();
	default:
		return SW_CLI_FAILED;
	}
}
