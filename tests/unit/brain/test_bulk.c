/* Large environments and commands: outside records and state, once for equal
 * ones, whole in orders. */
#include "unit/brain/bench.h"

#include "brain/state.h"

/* What the driver keeps beside the records. */
static struct sw_record_text kept[64];
static size_t kept_count;

static int load_text(void *context, const unsigned char digest[SW_BULK_DIGEST], char **ret_bytes, size_t *ret_size, struct sw_err *err)
{
	(void)context;
	for (size_t i = 0; i < kept_count; i++)
		if (memcmp(kept[i].digest, digest, SW_BULK_DIGEST) == 0) {
			*ret_bytes = strdup(kept[i].bytes);
			*ret_size = kept[i].size;
			return *ret_bytes != NULL ? 0 : SW_ENOMEM;
		}
	return sw_err_set(err, SW_ENOTFOUND, "a text is lost");
}

static const struct sw_brain_config bulky = {
	.policy = "srtf",
	.placement = "pack",
	.silence_ns = 3000 * SW_NS_PER_S,
	.silence_margin_ns = 5 * SW_NS_PER_S,
	.retry_backoff_ns = 10 * SW_NS_PER_S,
	.load_text = load_text,
};

static int set_up_bulky(void **state)
{
	return set_up_with(state, &bulky, 2);
}

static int tear_down_bulky(void **state)
{
	int r = tear_down(state);
	while (kept_count > 0)
		free(kept[--kept_count].bytes);
	return r;
}

static char *ask(const char *script, const char *variable, char fill, size_t size)
{
	char *text = malloc(2 * size + 500), *value = malloc(size + 1);
	assert_true(text != NULL && value != NULL);
	memset(value, fill, size);
	value[size] = '\0';
	sprintf(text, "{\"command\": [\"sh\", \"-c\", \"%s%s\"], \"env\": {\"A\": \"1\", \"%s\": \"%s\"}}", script,
		script[0] != '\0' ? value : "x", variable, value);
	free(value);
	return text;
}

/* As the driver does it: texts first, then the record. */
static uint64_t submit_text(struct bench *bench, char *json)
{
	struct sw_job_request *asked = NULL;
	sw_records records = {0};
	uint64_t job = 0;
	assert_int_equal(sw_job_request_decode("test", json, strlen(json), &asked, NULL), 0);
	assert_int_equal(sw_brain_propose_submit(bench->brain, &alice, asked, &records, NULL), 0);
	sw_job_request_free(asked);
	for (size_t r = 0; r < records.count; r++) {
		assert_true(records.items[r].size < 1500);
		for (int b = 0; b < SW_BULKS; b++)
			if (records.items[r].texts[b].bytes != NULL) {
				kept[kept_count++] = records.items[r].texts[b];
				records.items[r].texts[b].bytes = NULL;
			}
	}
	apply_all(bench, &records, &job);
	free(json);
	return job;
}

static const struct sw_run_spec *order_of(const struct bench *bench, uint64_t job)
{
	for (size_t w = 0; w < bench->answer->want_count; w++)
		if (bench->answer->wants[w].id.job == job)
			return bench->answer->wants[w].spec;
	return NULL;
}

/* Aim: record and state hold the digest alone; the order has the whole environment
 * and the whole command. */
static void test_orders_are_whole(void **state)
{
	struct bench *bench = *state;
	uint64_t job = submit_text(bench, ask("echo ", "BIG", 'v', 50000));
	assert_int_equal(kept_count, 2);
	struct sw_job_view view = look(bench, job);
	assert_true(view.bulky && strlen(view.request) < 1200 && view.request_size > 100000);
	sync_now(bench);
	const struct sw_run_spec *spec = order_of(bench, job);
	assert_non_null(spec);
	assert_int_equal(spec->argv.count, 3);
	assert_int_equal(strlen(spec->argv.items[2]), 50005);
	bool found = false;
	for (size_t i = 0; i < spec->env.count; i++)
		found = found || (strncmp(spec->env.items[i], "BIG=v", 5) == 0 && strlen(spec->env.items[i]) == 50004);
	assert_true(found);
	SW_CLEANUP(sw_freep) char *whole = sw_brain_whole_request(bench->brain, job, NULL);
	assert_true(whole != NULL && strlen(whole) > 100000);
}

/* Aim: equal environments have one digest, whatever else the requests ask for; a text is needed as
 * long as a job is known that has it. */
static void test_equal_ones_are_one(void **state)
{
	struct bench *bench = *state;
	submit_text(bench, ask("", "BIG", 'v', 5000));
	submit_text(bench, ask("", "BIG", 'v', 5000));
	submit_text(bench, ask("", "BIG", 'w', 5000));
	assert_int_equal(kept_count, 3);
	assert_memory_equal(kept[0].digest, kept[1].digest, SW_BULK_DIGEST);
	assert_memory_not_equal(kept[0].digest, kept[2].digest, SW_BULK_DIGEST);
	assert_true(sw_brain_needs_text(bench->brain, kept[0].digest) && sw_brain_needs_text(bench->brain, kept[2].digest));
	for (uint64_t job = 1; job <= 3; job++)
		change(bench, SW_RECORD_CANCEL, job);
	submit(bench, 5, "");
	submit(bench, 5, "");
	static const char *const bodies[] = {"{\"jobs\": [1]}", "{\"jobs\": [2, 3]}"};
	for (int i = 0; i < 2; i++) {
		sw_records records = {0};
		*sw_vec_push(&records) = (struct sw_record){.kind = SW_RECORD_FORGET, .body = strdup(bodies[i]), .size = strlen(bodies[i])};
		apply_all(bench, &records, NULL);
		assert_int_equal(sw_brain_needs_text(bench->brain, kept[0].digest), i == 0);
		assert_int_equal(sw_brain_needs_text(bench->brain, kept[2].digest), i == 0);
	}
}

/* Aim: through bytes and back; a text that is lost is the job's own trouble, and others go on. */
static void test_saved_and_lost(void **state)
{
	struct bench *bench = *state;
	uint64_t job = submit_text(bench, ask("", "BIG", 'v', 5000));
	uint64_t other = submit(bench, 5, "");
	struct sw_pack pack = {0};
	sw_brain_save(bench->brain, &pack);
	size_t size;
	unsigned char *bytes = sw_pack_take(&pack, &size);
	assert_true(size < 5000);
	struct sw_brain *loaded = NULL;
	bool adopted;
	assert_int_equal(sw_brain_load(&bulky, bytes, size, &loaded, &adopted, NULL), 0);
	free(bytes);
	assert_true(sw_brain_needs_text(loaded, kept[0].digest));
	sw_brain_free(bench->brain);
	bench->brain = loaded;
	kept[0].digest[5] ^= 1;
	sync_now(bench);
	assert_null(order_of(bench, job));
	assert_non_null(order_of(bench, other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_orders_are_whole, set_up_bulky, tear_down_bulky),
		cmocka_unit_test_setup_teardown(test_equal_ones_are_one, set_up_bulky, tear_down_bulky),
		cmocka_unit_test_setup_teardown(test_saved_and_lost, set_up_bulky, tear_down_bulky),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
