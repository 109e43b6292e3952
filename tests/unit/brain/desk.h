/* A controller's brain without surroundings, for the tests of it: keeps every
 * record, as a journal would. */
#ifndef SW_TEST_DESK_H
#define SW_TEST_DESK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/number.h"
#include "brain/state.h"
#include "contention/profile.h"

extern struct sw_brain_config desk_config; /* fifo, and the built-in profiles once they are loaded */
extern const struct sw_user alice, bob, root;

struct desk {
	struct sw_brain *brain;
	SW_VEC(struct kept {
		sw_ns at;
		struct sw_record record;
	})
	journal;
	sw_ns now;
	uint64_t number; /* of syncs */
	struct sw_sync_run runs[8];
	size_t run_count;
	struct sw_unread unread[2]; /* what else it says */
	size_t unread_count;
	uint64_t have;
	bool old_agent;				   /* of version 0.1 */
	const char *instance;			   /* of the agent; NULL: "a1" */
	const struct sw_sync_inventory *inventory; /* NULL: two GPUs */
	bool looked;				   /* the agent knows which of them take no jobs */
	struct sw_sync_shut shut[8];
	size_t shut_count;
	struct sw_sync_stranger strangers[8];
	size_t stranger_count;
};

/* cmocka's set-up and tear-down, of all cases and of one. After each the journal is applied to a
 * new brain, which must give the same state. */
int desk_load_profiles(void **state);
int desk_unload_profiles(void **state);
int desk_up(void **state);
int desk_down(void **state);
#define DESK_TEST(name) cmocka_unit_test_setup_teardown(name, desk_up, desk_down)

/* Applies the records, keeps them, and leaves the list empty; `ret_job` may be NULL. */
void desk_apply(struct desk *desk, sw_records *records, uint64_t *ret_job);
/* The caller frees. */
struct sw_job_request *desk_request(const char *json);
/* As alice. */
uint64_t desk_submit(struct desk *desk, const char *json);

/* The agent of node "n", which has two GPUs of 80 GiB unless the desk says otherwise, says what it
 * has and hears what is wanted; the caller frees the answer. */
struct sw_answer_message *desk_sync_with(struct desk *desk, uint64_t number);
struct sw_answer_message *desk_sync(struct desk *desk);
void desk_sync_and_drop(struct desk *desk);
/* 99: nothing is wanted of this run. */
enum sw_want_kind desk_wanted(const struct sw_answer_message *answer, uint64_t job, uint32_t epoch);
/* What it says next: of this run alone. */
void desk_say(struct desk *desk, uint64_t job, uint32_t epoch, enum sw_run_state state, uint32_t code);

const char *desk_state(const struct desk *desk, uint64_t job);
/* That the reasons of the job have these words. */
void desk_expect_why(const struct desk *desk, uint64_t job, const char *words);
void desk_pass_time(struct desk *desk, sw_ns by);

#endif
