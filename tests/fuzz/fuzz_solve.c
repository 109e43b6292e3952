/* Questions of any bytes: a byte for the kind, two for the limit, the rest is the question. What is
 * solved once is solved alike again. */
#include <stdlib.h>
#include <string.h>

#include "solve/solve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sw_solve_outcome first, second;
	struct sw_pack answer = {0}, again = {0};
	if (size < 3)
		return 0;
	const struct sw_question question = {
		.kind = data[0], .limit = (uint32_t)data[1] | (uint32_t)data[2] << 8, .bytes = data + 3, .size = size - 3};
	if (sw_solve(&question, &answer, &first) < 0 || sw_solve(&question, &again, &second) < 0)
		abort();
	if (first.status != second.status || first.iterations != second.iterations || answer.size != again.size ||
	    (answer.size > 0 && memcmp(answer.bytes, again.bytes, answer.size) != 0))
		abort();
	if (!sw_solve_fits(&question, first.status, answer.bytes, answer.size))
		abort();
	/* And the other way round: any bytes as an answer. */
	(void)sw_solve_fits(&question, SW_SOLVED, question.bytes, question.size);
	sw_pack_release(&answer);
	sw_pack_release(&again);
	return 0;
}
