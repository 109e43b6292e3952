/* Words between agents and controllers from any bytes: the first byte picks the decoder, the rest is its text. What is accepted can be written, read
 * again, and is then written the same. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/sync.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(type, decode, encode, release)                                            \
	static void check_##type(const char *text, size_t size)                         \
	{                                                                               \
		struct type *first = NULL, *second = NULL;                              \
		struct sw_err err = {0};                                                \
		if (decode(text, size, &first, &err) < 0) {                             \
			assert(first == NULL && err.code < 0 && err.detail[0] != 0);    \
			return;                                                         \
		}                                                                       \
		assert(err.code == 0);                                                  \
		char *once = NULL, *twice = NULL;                                       \
		size_t once_size, twice_size;                                           \
		assert(encode(first, &once, &once_size, NULL) == 0);                    \
		assert(decode(once, once_size, &second, NULL) == 0);                    \
		assert(encode(second, &twice, &twice_size, NULL) == 0);                 \
		assert(once_size == twice_size && memcmp(once, twice, once_size) == 0); \
		release(first);                                                         \
		release(second);                                                        \
		free(once);                                                             \
		free(twice);                                                            \
	}
CHECK(sw_sync, sw_sync_decode, sw_sync_encode, sw_sync_free)
CHECK(sw_answer_message, sw_answer_decode, sw_answer_encode, sw_answer_free)
CHECK(sw_run_order, sw_run_order_decode, sw_run_order_encode, sw_run_order_free)
CHECK(sw_run_account, sw_run_account_decode, sw_run_account_encode, sw_run_account_free)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	/* A copy of its own size, so that reading past the end is seen. */
	char *text = malloc(size);
	if (text == NULL)
		return 0;
	memcpy(text, data + 1, size - 1);
	switch (data[0] % 4) {
	case 0:
		check_sw_sync(text, size - 1);
		break;
	case 1:
		check_sw_answer_message(text, size - 1);
		break;
	case 2:
		check_sw_run_order(text, size - 1);
		break;
	default:
		check_sw_run_account(text, size - 1);
		break;
	}
	free(text);
	return 0;
}
