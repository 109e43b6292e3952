/* Number parsers on any bytes: no crash, nothing written on refusal, and what they
 * accept agrees among them. */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_integers(const char *text, size_t size)
{
	int64_t number = -77, decimal = -77;
	uint64_t whole = 77;
	bool is_signed = sw_parse_i64(text, size, &number) == 0;
	bool is_unsigned = sw_parse_u64(text, size, &whole) == 0;
	bool is_decimal = sw_parse_decimal(text, size, 1, &decimal) == 0;
	assert(is_signed || number == -77);
	assert(is_unsigned || whole == 77);
	assert(is_decimal || decimal == -77);
	/* Every integer is a decimal, and the same one; so is an unsigned one that fits. */
	assert(!is_signed || (is_decimal && number == decimal));
	assert(!is_signed || is_unsigned == (number >= 0));
	assert(!(is_signed && is_unsigned) || (uint64_t)number == whole);
	if (is_signed && memchr(text, '.', size) == NULL && size < 64) {
		char copy[64] = {0};
		memcpy(copy, text, size);
		assert(strtoll(copy, NULL, 10) == number);
	}
}

static void check_quantities(const char *text, size_t size)
{
	int64_t thousandths = -77, ns = -77;
	uint64_t bytes = 77;
	bool is_scaled = sw_parse_decimal(text, size, 1000, &thousandths) == 0;
	bool is_duration = sw_parse_duration(text, size, &ns) == 0;
	bool is_bytes = sw_parse_bytes(text, size, &bytes) == 0;
	assert(is_scaled || thousandths == -77);
	assert(is_duration ? ns >= 0 : ns == -77);
	assert(is_bytes || bytes == 77);
	char buffer[32];
	if (is_duration)
		assert(strlen(sw_format_duration(ns, buffer)) < sizeof buffer);
	if (is_bytes) {
		/* What is shown can be read again. */
		uint64_t again;
		sw_format_bytes(bytes, buffer);
		assert(strchr(buffer, 'E') != NULL || sw_parse_bytes(buffer, strlen(buffer), &again) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	check_integers(text, size);
	check_quantities(text, size);
	return 0;
}
