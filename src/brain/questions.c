/* Answers to the policy's questions, as records: number and fingerprint of the question, what came
 * of it, and the bytes as hexadecimal digits. The policy hears what the record says, so a replay
 * needs no solver. What is open is the engine's affair, and is in its snapshot.
 *
 * Invariant: no policy hears bytes that do not have the layout of an answer to its question.
 */
#include "brain/questions.h"

#include <stdlib.h>
#include <string.h>

#include "api/fields.h"
#include "api/json.h"
#include "brain/fold.h"
#include "brain/record.h"
#include "solve/solve.h"

struct answer {
	uint64_t number, print;
	enum sw_solved status;
	const char *bytes;
};

static const char *const status_words[] = {
	[SW_SOLVED] = "solved", [SW_SOLVED_TO_LIMIT] = "limit", [SW_SOLVE_NO_PROBLEM] = "no_problem", [SW_SOLVE_FAILED] = "failed", NULL};

#define AT(member) .offset = offsetof(struct answer, member)
/* In the order of the names, as records have their keys. */
static const struct sw_field fields[] = {
	{"bytes", SW_FIELD_TEXT, AT(bytes), .max = INT64_C(2) * SW_SOLUTION_BYTES_MAX, .required = true},
	{"number", SW_FIELD_U64, AT(number), .max = INT64_MAX, .required = true},
	{"print", SW_FIELD_U64, AT(print), .max = INT64_MAX, .required = true},
	{"status", SW_FIELD_WORD, AT(status), .words = status_words, .required = true},
};
#undef AT

static char *to_digits(const unsigned char *bytes, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	char *text = malloc(2 * size + 1);
	if (text == NULL)
		return NULL;
	for (size_t b = 0; b < size; b++) {
		text[2 * b] = digits[bytes[b] >> 4];
		text[2 * b + 1] = digits[bytes[b] & 15];
	}
	text[2 * size] = '\0';
	return text;
}

/* -1: it is none. */
static int digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 0, SW_ENOMEM, or SW_EINPUT: these are no digits. The caller frees. */
static int from_digits(const char *text, unsigned char **ret_bytes, size_t *ret_size)
{
	size_t length = strlen(text), size = length / 2;
	unsigned char *bytes = length % 2 == 0 ? malloc(size + 1) : NULL;
	if (bytes == NULL)
		return length % 2 == 0 ? SW_ENOMEM : SW_EINPUT;
	for (size_t b = 0; b < size; b++) {
		int high = digit_of(text[2 * b]), low = digit_of(text[2 * b + 1]);
		if (high < 0 || low < 0) {
			free(bytes);
			return SW_EINPUT;
		}
		bytes[b] = (unsigned char)(high << 4 | low);
	}
	*ret_bytes = bytes;
	*ret_size = size;
	return 0;
}

static int read_answer(json_t *body, struct sw_reply *ret_reply, unsigned char **ret_bytes, struct sw_err *err)
{
	struct sw_decoder decoder = {.what = "an answer record cannot be read", .err = err};
	struct answer answer = {.bytes = ""};
	size_t size = 0;
	int r = sw_decode_fields(&decoder, body, fields, SW_FIELD_COUNT(fields), &answer);
	if (r == 0) {
		r = from_digits(answer.bytes, ret_bytes, &size);
		if (r < 0)
			return sw_err_set(err, r, r == SW_ENOMEM ? "out of memory" : "the bytes of an answer are no hexadecimal digits");
		*ret_reply = (struct sw_reply){answer.number, answer.print, (uint8_t)answer.status, *ret_bytes, size};
	}
	return r;
}

/* To a question that is not open any more it may be what it wants: nothing comes of it. */
int sw_brain_check_answer(const struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	struct sw_reply reply;
	struct sw_engine_question question;
	SW_CLEANUP(sw_freep) unsigned char *bytes = NULL;
	int r = read_answer(body, &reply, &bytes, err);
	if (r < 0 || reply.number == 0 || !sw_engine_next_question(brain->engine, reply.number - 1, &question) ||
	    question.number != reply.number || question.print != reply.print)
		return r;
	if (sw_solve_fits(&question.asked, reply.status, reply.bytes, reply.size))
		return 0;
	return sw_err_set(err, SW_EINPUT, "an answer record is no answer to question %llu", (unsigned long long)reply.number);
}

int sw_brain_apply_answer(struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	struct sw_reply reply;
	SW_CLEANUP(sw_freep) unsigned char *bytes = NULL;
	int r = read_answer(body, &reply, &bytes, err);
	if (r < 0)
		return r;
	const struct sw_event event = {.kind = SW_EV_ANSWER, .reply = &reply};
	return sw_brain_step(brain, &event, 1, err);
}

int sw_brain_propose_answer(const struct sw_reply *reply, sw_records *records, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *digits = to_digits(reply->bytes, reply->size);
	if (digits == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	const struct answer answer = {reply->number, reply->print, (enum sw_solved)reply->status, digits};
	struct sw_json json = {0};
	size_t size = 0;
	sw_json_object(&json);
	sw_encode_fields(&json, fields, SW_FIELD_COUNT(fields), &answer);
	sw_json_end_object(&json);
	char *text = sw_json_take(&json, &size);
	return sw_record_push_text(records, SW_RECORD_ANSWER, text, size, err);
}

bool sw_brain_next_question(const struct sw_brain *brain, uint64_t after, struct sw_engine_question *ret_question)
{
	return sw_engine_next_question(brain->engine, after, ret_question);
}
