/* Words between agents and controllers from any bytes: the first byte picks the decoder, the rest
 * is its text. What is accepted can be written, read again, and is then written the same. Of lists
 * of runs and wishes, what cannot be read is named, and what can be read is there once. */
#include <assert.h>
#include <stdbool.h>
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

/* What could not be read says why, and names a run or none. */
static void check_unread(const struct sw_unread *unread, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert(unread[i].why != NULL && unread[i].why[0] != 0 &&
		       (unread[i].has_id || (unread[i].id.job == 0 && unread[i].id.epoch == 0)));
}

static void check_lists(const char *text, size_t size, bool is_answer)
{
	struct sw_sync *sync = NULL;
	struct sw_answer_message *answer = NULL;
	if (is_answer && sw_answer_decode(text, size, &answer, NULL) == 0) {
		check_unread(answer->unread, answer->unread_count);
		for (size_t i = 0; i < answer->want_count; i++) {
			const struct sw_run_spec *spec = answer->wants[i].spec;
			assert(spec == NULL || (spec->argv.count > 0 && spec->workdir != NULL && spec->stop_signal > 0));
			for (size_t k = 0; k < i && i < 64; k++)
				assert(sw_run_id_compare(answer->wants[i].id, answer->wants[k].id) != 0);
		}
		sw_answer_free(answer);
	} else if (!is_answer && sw_sync_decode(text, size, &sync, NULL) == 0) {
		check_unread(sync->unread, sync->unread_count);
		assert(sync->inventory == NULL || sync->inventory_unread == NULL);
		for (size_t i = 0; i < sync->run_count; i++) {
			/* An end that could not be read whole is never a good one. */
			assert(sync->runs[i].reason != NULL);
			for (size_t k = 0; k < i && i < 64; k++)
				assert(sw_run_id_compare(sync->runs[i].id, sync->runs[k].id) != 0);
		}
		sw_sync_free(sync);
	}
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
		check_lists(text, size - 1, false);
		break;
	case 1:
		check_sw_answer_message(text, size - 1);
		check_lists(text, size - 1, true);
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
