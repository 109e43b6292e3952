/* Control groups (version 2) for runs, where the system lets us have them. They give limits of
 * memory and processor, and one call that kills all of it. */
#ifndef SW_AGENT_CGROUP_H
#define SW_AGENT_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For the agent: the folder `name` below its own group, made ready to hold groups of runs; 0 or an
 * errno. No other agent may have the same name. `note` says what will be missing. */
int sw_cgroup_prepare(const char *name, char *path, size_t size, char *note, size_t note_size);

/* The group of a folder as /proc/<pid>/cgroup names it; 0 or an errno. */
int sw_cgroup_group(const char *folder, char *group, size_t size);

struct sw_cgroup {
	int folder; /* -1: there is none */
	int parent;
	char name[48];
	bool limits_memory;
};

/* Makes the group `name` below `base` with the limits (0: none). What could not be done is said in
 * `note`. 0 or an errno. */
int sw_cgroup_open(struct sw_cgroup *group, const char *base, const char *name, uint32_t cpus, uint64_t memory_bytes, char *note,
		   size_t note_size);
/* To be written "0" by the process that enters; -1. */
int sw_cgroup_procs(const struct sw_cgroup *group);
/* Kills everything in it; false: not possible. */
bool sw_cgroup_kill(const struct sw_cgroup *group);
/* Whether the kernel killed something in it for want of memory. */
bool sw_cgroup_ran_out(const struct sw_cgroup *group);
/* Removes it; it must be empty. */
void sw_cgroup_close(struct sw_cgroup *group);

#endif
