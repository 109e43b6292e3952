/* A program that runs once more, under Nsight Compute, which reads the GPU's counters. */
#ifndef SW_CLI_PROFILE_COUNTERS_H
#define SW_CLI_PROFILE_COUNTERS_H

#include <limits.h>

#include "cli/profile_run.h"

/* How long that may take, unless the user says otherwise: it starts slowly, and runs
 * each kernel many times. */
#define SW_CLI_COUNTERS_S 180

/* Where it is: in PATH, else where CUDA puts it. SW_ENOTFOUND, with what to do. */
int sw_cli_find_ncu(char path[PATH_MAX], struct sw_err *err);
/* Puts what the counters say of the kernels of one iteration, times the part of the time in which
 * the GPU is busy, into run->measured. To be called after sw_cli_profile_run(), which finds out the
 * latter. `folder` is for a file that is gone afterwards. On failure run->measured is as it was. */
int sw_cli_profile_count(struct sw_cli_profile_run *run, const char *ncu, const char *folder, struct sw_err *err);

#endif
