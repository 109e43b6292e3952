/* A process that works something out for the controller: a fork of it. It has the state as it is in
 * that moment, and leaves its result in a file in memory. See child.c for what binds it. */
#ifndef SW_SERVER_CHILD_H
#define SW_SERVER_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Runs in the child; writes with sw_child_write(). False: it failed. */
typedef bool sw_child_fn(void *work);

struct sw_child_task {
	const char *name; /* of the process, up to 15 bytes; and what for, for people: "a forecast" */
	const char *purpose;
	sw_child_fn *run;
	void *work;
	unsigned cpu_s, alarm_s; /* of processor time, and of any time: then it is ended */
	uint64_t more_bytes;	 /* so much more memory may it take than the controller has when it begins */
};

struct sw_child {
	pid_t pid; /* 0: there is none */
	int file;
	int end; /* becomes readable when the process has ended */
};

/* SW_EIO: there is no process or no file to be had. */
int sw_child_start(const struct sw_child_task *task, struct sw_child *ret_child, struct sw_err *err);
bool sw_child_write(const void *bytes, size_t size);

/* Ends the process if it has not ended. 0, with what it wrote, mapped: the caller unmaps it. Or
 * SW_EIO: it failed, and how; or it wrote nothing. NULL: its result is not wanted. */
struct sw_child_result {
	void *map;
	size_t size;
};
int sw_child_end(struct sw_child *child, struct sw_child_result *ret_result, struct sw_err *err);

#endif
