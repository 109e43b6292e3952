/* What the files job*.c and request.c share. */
#ifndef SW_API_JOB_PRIVATE_H
#define SW_API_JOB_PRIVATE_H

#include "api/job.h"

/* "afterok:12,afterany:13": SW_EINPUT or SW_ELIMIT, without words. */
int sw_job_depends_parse(const char *text, struct sw_job_request *request);
/* "0-9:2%4". */
int sw_job_array_parse(const char *text, struct sw_job_request *request);

/* in the order of the enums; NULL behind the last */
extern const char *const sw_job_preempt_names[]; /* from SW_PREEMPT_BY_REQUEUE on */
extern const char *const sw_job_on_lost_names[]; /* from SW_ON_LOST_WAIT on */
extern const char *const sw_job_depend_names[];

#endif
