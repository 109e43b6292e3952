#include "cli/message.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/interrupt.h"
#include "sim/report/text.h"

/* Foreign text may hold anything; newlines would forge a second message. */
static void put_clean(const char *text)
{
	SW_CLEANUP(sw_freep) char *clean = sw_text_clean(text);
	for (const char *c = clean; c != NULL && *c != '\0'; c++)
		fputc(*c == '\n' || *c == '\t' ? ' ' : *c, stderr);
}

void sw_cli_print_error(const struct sw_err *err)
{
	fputs("sharewell: ", stderr);
	put_clean(err->fact[0] != '\0' ? err->fact : "something failed that has no name");
	if (err->detail[0] != '\0') {
		fputs(": ", stderr);
		put_clean(err->detail);
	}
	fputc('\n', stderr);
	if (err->hint[0] != '\0') {
		fputs("hint: ", stderr);
		put_clean(err->hint);
		fputc('\n', stderr);
	}
}

void sw_cli_print_note(const char *fmt, ...)
{
	char text[1024];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	fputs("sharewell: note: ", stderr);
	put_clean(text);
	fputc('\n', stderr);
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
