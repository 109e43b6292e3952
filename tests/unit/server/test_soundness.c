/* --validate-every: a state that is not sound is said, and one that is, is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "brain/state.h"
#include "server/soundness.h"
#include "server/state.h"

static char said[1200];
static int notes;

static void hear(void *user, const char *line)
{
	(void)user;
	notes++;
	snprintf(said, sizeof said, "%s", line);
}

/* Aim: after every so many records the state is derived anew; what is wrong is said with the number
 * of the record, each time. */
static void test_is_said(void **state)
{
	(void)state;
	const struct sw_brain_config config = {.policy = "fifo", .placement = "pack"};
	struct sw_controller_options options = {.on_note = hear, .validate_every = 3};
	struct sw_server server = {.options = &options};
	const char node[] = "{\"name\": \"n\", \"cpus\": 4, \"memory_bytes\": 1000, \"gpu_memory_bytes\": 1000, \"gpus\": [\"a\"]}";
	const char job[] = "{\"uid\": 1, \"gid\": 1, \"request\": {\"command\": [\"x\"], \"tenant\": \"t\"}}";
	uint64_t id;
	assert_int_equal(sw_brain_new(&config, &server.brain, NULL), 0);
	assert_int_equal(sw_brain_apply(server.brain, 1, SW_RECORD_NODE, node, strlen(node), NULL, NULL), 0);
	assert_int_equal(sw_brain_apply(server.brain, 2, SW_RECORD_SUBMIT, job, strlen(job), &id, NULL), 0);
	for (uint64_t seq = 1; seq <= 9; seq++)
		sw_server_validate_after(&server, seq);
	assert_int_equal(notes, 0);
	server.brain->jobs.items[0].epoch++;
	for (uint64_t seq = 10; seq <= 16; seq++)
		sw_server_validate_after(&server, seq);
	assert_int_equal(notes, 2);
	assert_non_null(strstr(said, SW_UNSOUND " after record 15"));
	assert_non_null(strstr(said, "job 1"));
	options.validate_every = 0;
	sw_server_validate_after(&server, 17);
	assert_int_equal(notes, 2);
	sw_brain_free(server.brain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_is_said)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
