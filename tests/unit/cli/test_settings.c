/* --set: taken apart, and put where it belongs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/settings.h"
#include "policy/registry.h"

static struct sw_err err;

static int parse(const char *text, struct sw_cli_setting *setting)
{
	err = (struct sw_err){0};
	return sw_cli_setting_parse(text, setting, &err);
}

/* The first dot and the first equals sign divide; the value may contain anything, or nothing. */
static void test_parse(void **state)
{
	(void)state;
	static const struct {
		const char *text, *owner, *key, *value;
	} cases[] = {
		{"las.thresholds=3250,7200", "las", "thresholds", "3250,7200"},
		{"las.thresholds=", "las", "thresholds", ""},
		{"gittins.samples=/tmp/a=b.csv", "gittins", "samples", "/tmp/a=b.csv"},
		{"my-policy.a.b=1.5", "my-policy", "a.b", "1.5"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct sw_cli_setting setting;
		assert_int_equal(parse(cases[i].text, &setting), 0);
		assert_string_equal(setting.owner, cases[i].owner);
		assert_string_equal(setting.key, cases[i].key);
		assert_string_equal(setting.value, cases[i].value);
	}
}

/* What cannot be taken apart is refused, however long it is. */
static void test_parse_refuses(void **state)
{
	(void)state;
	static const char *const cases[] = {"", "las", "las.tick", "=", "tick=1", ".tick=1", "las.=1", "=las.tick"};
	struct sw_cli_setting setting;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(parse(cases[i], &setting), SW_EINPUT);
		assert_non_null(strstr(err.hint, "--set las.thresholds="));
	}
	char text[400];
	memset(text, 'x', sizeof text);
	memcpy(text + 200, ".y=1", 5);
	assert_int_equal(parse(text, &setting), SW_EINPUT);
}

static int set_world(struct sw_world *world, const char *text)
{
	struct sw_cli_setting setting;
	assert_int_equal(parse(text, &setting), 0);
	assert_true(sw_cli_setting_is_world(&setting));
	return sw_cli_setting_world(&setting, world, &err);
}

/* Each value of the world lands where it belongs, and the world's name tells. */
static void test_world(void **state)
{
	(void)state;
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	assert_int_equal(sw_world_load("ideal", &world, &err), 0);
	assert_int_equal(set_world(world, "world.quantum=1s"), 0);
	assert_int_equal(world->quantum_ns, 1000000000);
	assert_string_equal(world->name, "ideal, quantum=1s");
	assert_int_equal(set_world(world, "core.quantum=2m"), 0);
	assert_int_equal(world->quantum_ns, 120000000000);
	assert_int_equal(set_world(world, "world.replace_is_free=off"), 0);
	assert_false(world->replace_is_free);
	assert_int_equal(set_world(world, "world.placement_slowdown=yes"), 0);
	assert_true(world->placement_slowdown);
	assert_int_equal(set_world(world, "world.job_failure=0.25"), 0);
	assert_int_equal(world->job_failure_ppm, 250000);
	assert_int_equal(set_world(world, "world.retries=5"), 0);
	assert_int_equal(world->retries, 5);
	assert_int_equal(sw_cli_check_world(world, &err), 0);
}

/* Wrong names and values are refused and change nothing; nor may the parts
 * contradict each other. */
static void test_world_refuses(void **state)
{
	(void)state;
	static const char *const cases[] = {
		"world.quantm=1s",    "world.quantum=-1s",	"world.quantum=", "world.quantum=11000d",   "world.replace_is_free=maybe",
		"world.retries=1001", "world.job_failure=1.01", "core.retries=1", "world.job_failure=-0.1",
	};
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	assert_int_equal(sw_world_load("ideal", &world, &err), 0);
	struct sw_world before = *world;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(set_world(world, cases[i]), SW_EINPUT);
	assert_memory_equal(world, &before, sizeof before);
	assert_int_equal(set_world(world, "world.node_mtbf=1d"), 0);
	assert_int_equal(sw_cli_check_world(world, &err), SW_EINPUT);
	assert_int_equal(set_world(world, "world.node_repair=1h"), 0);
	err = (struct sw_err){0};
	assert_int_equal(sw_cli_check_world(world, &err), 0);
	assert_int_equal(set_world(world, "world.node_mtbf=1s"), 0);
	assert_int_equal(sw_cli_check_world(world, &err), SW_EINPUT);
}

static int set_policy(struct sw_params *params, const char *text)
{
	struct sw_cli_setting setting;
	assert_int_equal(parse(text, &setting), 0);
	assert_false(sw_cli_setting_is_world(&setting));
	return sw_cli_setting_policy(&setting, params, true, &err);
}

/* The index of a parameter. */
static size_t place_of(const struct sw_policy *policy, const char *name)
{
	const struct sw_param *param = sw_params_find(policy, name, NULL);
	assert_non_null(param);
	return (size_t)(param - policy->params);
}

/* A parameter is set by its name; a list keeps its commas; the nearest name is
 * suggested for a wrong one. */
static void test_policy(void **state)
{
	(void)state;
	SW_CLEANUP(sw_params_freep) struct sw_params *params = NULL;
	assert_int_equal(sw_params_new(&sw_policy_las, &params, &err), 0);
	assert_int_equal(set_policy(params, "las.thresholds=10,20,30"), 0);
	const struct sw_value *thresholds = &params->values[place_of(&sw_policy_las, "thresholds")];
	assert_int_equal(thresholds->count, 3);
	assert_int_equal(thresholds->list[2], 30);
	assert_int_equal(set_policy(params, "las.tresholds=1"), SW_EINPUT);
	assert_string_equal(err.hint, "Did you mean 'las.thresholds'?");
}

/* A parameter that is a file is read; one that cannot be read or understood is named. */
static void test_policy_file(void **state)
{
	(void)state;
	char path[] = "/tmp/sw-test-settings-XXXXXX", text[100];
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "size\n30\n10\n", 11), 11);
	close(fd);
	SW_CLEANUP(sw_params_freep) struct sw_params *params = NULL;
	assert_int_equal(sw_params_new(&sw_policy_gittins, &params, &err), 0);
	snprintf(text, sizeof text, "gittins.samples=%s", path);
	assert_int_equal(set_policy(params, text), 0);
	const struct sw_value *samples = &params->values[place_of(&sw_policy_gittins, "samples")];
	assert_int_equal(samples->count, 2);
	assert_int_equal(samples->list[0], 10);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs("1\nfox\n", file);
	fclose(file);
	assert_int_equal(set_policy(params, text), SW_EINPUT);
	assert_non_null(strstr(err.detail, path));
	unlink(path);
	assert_int_equal(set_policy(params, text), SW_ENOTFOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),	      cmocka_unit_test(test_parse_refuses), cmocka_unit_test(test_world),
		cmocka_unit_test(test_world_refuses), cmocka_unit_test(test_policy),	    cmocka_unit_test(test_policy_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
