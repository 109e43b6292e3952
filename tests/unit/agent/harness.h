/* Real supervisors for tests: a folder of its own, supervisors started through a nursery,
 * and what they say. The test program itself is the supervisor's program: its main()
 * begins with harness_main(). */
#ifndef SW_TEST_AGENT_HARNESS_H
#define SW_TEST_AGENT_HARNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/sync.h"

/* Becomes a supervisor, nursery or agent if the command line says so, and does not return then. */
void harness_main(int argc, char **argv);

struct harness {
	char state[64]; /* folder; runs are below */
	int runs;	/* folder */
	int nursery;
	uint64_t next_job;
	const char *gpu_library; /* of the runs that are made from now on; NULL: none */
};
/* For cmocka: *state is a struct harness. The tear-down kills whatever the case has started, also
 * what a failed one left. */
int harness_set_up(void **state);
int harness_tear_down(void **state);

struct run {
	struct harness *harness;
	struct sw_run_id id;
	char path[128]; /* of its folder */
	int link;
	char *text; /* what came and was not read */
	size_t size;
};

/* A spec that runs `sh -c SCRIPT` in the harness' folder, as this user. In static
 * storage until the next call. */
struct sw_run_spec *harness_spec(struct harness *harness, const char *script);
#define HARNESS_NO_LEASE INT64_MIN
/* Makes the folder only. The lease lasts for `lease_ms`. */
void harness_create(struct harness *harness, const struct sw_run_spec *spec, int64_t lease_ms, struct run *ret_run);
/* Starts a supervisor for the folder. */
void harness_spawn(struct run *run);
/* Both, with a long lease. */
void harness_start(struct harness *harness, const struct sw_run_spec *spec, struct run *ret_run);
__attribute__((format(printf, 2, 3))) void harness_tell(struct run *run, const char *fmt, ...);
/* Waits until the run says that it is in this state; the account must be freed. */
struct sw_run_account *harness_wait(struct run *run, enum sw_run_state state);
/* The next account, whatever its state; NULL: the link has ended. */
struct sw_run_account *harness_next(struct run *run);
/* Waits until the link has ended; true: it said that the run exited before. */
bool harness_ends(struct run *run);
void harness_close(struct run *run);
/* Waits until it has ended, closes it, and returns its last account, which exit.json
 * confirms; it must be freed. */
struct sw_run_account *harness_finish(struct run *run);
/* The same, and it must have ended so. */
void harness_expect(struct run *run, unsigned code, unsigned signal, const char *reason);

/* Reads a file of the harness' folder ("" if there is none); in static storage until
 * the next call but three. */
const char *harness_read(const struct harness *harness, const char *name);
/* Waits until a file of the harness' folder holds something; returns it. */
const char *harness_await(const struct harness *harness, const char *name);
/* A file of the run's folder. */
const char *harness_run_file(const struct run *run, const char *name);
/* Whether it has ended, now. A zombie has; its parent may be slow to notice. */
bool harness_has_ended(pid_t pid);
/* Waits until a process has ended; false: it is still there after ten seconds. */
bool harness_is_gone(pid_t pid);
void harness_sleep_ms(int ms);
int64_t harness_now_ns(void);

#endif
