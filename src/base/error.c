#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int sw_err_set(struct sw_err *err, int code, const char *fact_fmt, ...)
{
	if (err == NULL || err->code != 0)
		return code;
	va_list args;
	va_start(args, fact_fmt);
	vsnprintf(err->fact, sizeof err->fact, fact_fmt, args);
	va_end(args);
	err->code = code;
	return code;
}

__attribute__((format(printf, 4, 0))) static void add_once(struct sw_err *err, char *field, size_t size, const char *fmt, va_list args)
{
	if (err->code != 0 && field[0] == '\0')
		vsnprintf(field, size, fmt, args);
}

void sw_err_detail(struct sw_err *err, const char *fmt, ...)
{
	if (err == NULL)
		return;
	va_list args;
	va_start(args, fmt);
	add_once(err, err->detail, sizeof err->detail, fmt, args);
	va_end(args);
}

void sw_err_hint(struct sw_err *err, const char *fmt, ...)
{
	if (err == NULL)
		return;
	va_list args;
	va_start(args, fmt);
	add_once(err, err->hint, sizeof err->hint, fmt, args);
	va_end(args);
}

void sw_err_clear(struct sw_err *err)
{
	if (err != NULL)
		memset(err, 0, sizeof *err);
}

void sw_err_format(const struct sw_err *err, char *buffer, unsigned long size)
{
	snprintf(buffer, size, "%s%s%s%s%s", err->fact, err->detail[0] ? ": " : "", err->detail, err->hint[0] ? ". " : "", err->hint);
}
