/* Words that a job keeps on the GPU, and finds as they must be. */
#ifndef TEST_RUNTIME_WORDS_JOB_H
#define TEST_RUNTIME_WORDS_JOB_H

#include "runtime/job.h"

enum { WORDS = 1 << 14 };

/* In a job: that these lie there. */
void check_words(CUdeviceptr x, const uint32_t *wanted);
/* A job of 200 MiB. Says 'r'; told 'g' it works on its words, also where most of them are in host
 * memory, and says 'd'; told 'e' it looks at them once more and ends. */
void live_on_words(int socket);

#endif
