/* The world of a controller that starts, and the one that an operator chose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "unit/server/served.h"

#define NOTES_SIZE 4096u

static struct served served;
static char *notes; /* of all controllers so far */

static int set_up(void **state)
{
	(void)state;
	served_make(&served);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	served_remove(&served);
	return 0;
}

/* In the controller's process. */
static void keep_note(void *user, const char *line)
{
	(void)user;
	strncat(notes, line, NOTES_SIZE - strlen(notes) - 1);
}

/* Aim: a world that is named at a start while an operator's is in force stays out of force, and
 * that is said; without a name, or with that same world, there is nothing to say. */
static void test_named_and_not_in_force(void **state)
{
	(void)state;
	SW_CLEANUP(sw_world_freep) struct sw_world *live = NULL, *patient = NULL;
	static const char text[] = "base: live\nname: patient\nquantum: 10m\n";
	assert_int_equal(sw_controller_load_world(NULL, &live, NULL), 0);
	assert_int_equal(sw_world_parse("patient", text, strlen(text), &patient, NULL), 0);
	served.options.world = live;
	served.options.on_note = keep_note;
	served_start(&served);
	json_t *answer = ask_json(&served, "POST", "/v1/world",
				  "{\"name\": \"patient\", \"text\": \"base: live\\nname: patient\\nquantum: 10m\\n\"}", 200);
	json_decref(answer);
	served_stop(&served);
	served_start(&served);
	served_stop(&served);
	served.options.world_named = true;
	served.options.world = patient;
	served_start(&served);
	served_stop(&served);
	assert_string_equal(notes, "");
	served.options.world = live;
	served_start(&served);
	assert_string_equal(notes,
			    "the world 'live' is not in force: an operator chose 'patient', which stays; 'sharewell world' changes it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_named_and_not_in_force, set_up, tear_down)};
	notes = mmap(NULL, NOTES_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (notes == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
