/* A program that runs to be measured: alone, under the GPU runtime where there is one. */
#ifndef SW_CLI_PROFILE_RUN_H
#define SW_CLI_PROFILE_RUN_H

#include "cli/command.h"
#include "contention/store.h"

struct sw_cli_profile_run {
	const struct sw_cli_texts *words;
	uint64_t seconds;		       /* after which it is told to end; 0: it runs for as long as it likes */
	uint64_t patience_s;		       /* for the second run, under Nsight Compute; 0: as usual */
	bool keeps_stdout;		       /* what it prints goes to standard error: our own result stands on standard output */
	bool was_ended;			       /* after `seconds` */
	char no_gpu[400];		       /* why nothing was measured on a GPU; "": it was */
	uint64_t launches, iteration_launches; /* of kernels: all that were seen, and of one iteration; 0: not known */
	struct sw_measured measured;
};

/* Its exit status, or a negative code. */
int sw_cli_profile_run(struct sw_cli_profile_run *run, struct sw_err *err);

#endif
