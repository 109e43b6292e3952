/* Syncs, answers, orders and accounts of runs as JSON. */
#include <assert.h>

#include "api/sync.h"
#include "api/sync_tables.h"

static void encode(struct sw_json *json, const struct sw_table *table, const void *source)
{
	sw_encode_fields(json, table->fields, table->count, source);
}

static void encode_object(struct sw_json *json, const struct sw_table *table, const void *source)
{
	sw_json_object(json);
	encode(json, table, source);
	sw_json_end_object(json);
}

static void encode_inventory(struct sw_json *json, const struct sw_sync_inventory *inventory)
{
	sw_json_key(json, "inventory");
	sw_json_object(json);
	encode(json, &sw_inventory_table, inventory);
	sw_json_key(json, "gpus");
	sw_json_array(json);
	for (size_t i = 0; i < inventory->gpu_count; i++)
		encode_object(json, &sw_gpu_table, &inventory->gpus[i]);
	sw_json_end_array(json);
	sw_json_end_object(json);
}

static void encode_samples(struct sw_json *json, const struct sw_sync *sync)
{
	sw_json_key(json, "samples");
	sw_json_array(json);
	for (size_t i = 0; i < sync->sample_count; i++) {
		sw_json_object(json);
		encode(json, &sw_sample_table, &sync->samples[i]);
		if (sync->samples[i].has_run)
			encode(json, &sw_sample_run_table, &sync->samples[i]);
		sw_json_end_object(json);
	}
	sw_json_end_array(json);
}

static void encode_doors(struct sw_json *json, const struct sw_sync *sync)
{
	sw_json_key(json, "shut");
	sw_json_array(json);
	for (size_t i = 0; i < sync->shut_count; i++)
		encode_object(json, &sw_shut_table, &sync->shut[i]);
	sw_json_end_array(json);
	if (sync->stranger_count == 0)
		return;
	sw_json_key(json, "strangers");
	sw_json_array(json);
	for (size_t i = 0; i < sync->stranger_count; i++)
		encode_object(json, &sw_stranger_table, &sync->strangers[i]);
	sw_json_end_array(json);
}

/* What a sync can do without when it would be too long: figures, then words for people. */
enum luxury { SYNC_ALL, SYNC_WITHOUT_SAMPLES, SYNC_BARE, LUXURIES };

static void encode_run(struct sw_json *json, const struct sw_sync_run *run, enum luxury luxury)
{
	struct sw_sync_run bare = *run;
	if (luxury == SYNC_BARE)
		bare.detail = bare.unmoved = bare.failure_line = bare.failure_path = NULL;
	encode_object(json, &sw_run_table, &bare);
}

static void encode_sync(struct sw_json *json, const struct sw_sync *sync, enum luxury luxury)
{
	sw_json_object(json);
	encode(json, &sw_sync_table, sync);
	if (sync->inventory != NULL)
		encode_inventory(json, sync->inventory);
	sw_json_key(json, "jobs");
	sw_json_array(json);
	for (size_t i = 0; i < sync->run_count; i++)
		encode_run(json, &sync->runs[i], luxury);
	sw_json_end_array(json);
	if (sync->sample_count > 0 && luxury == SYNC_ALL)
		encode_samples(json, sync);
	if (sync->looked)
		encode_doors(json, sync);
	sw_json_end_object(json);
}

int sw_sync_encode(const struct sw_sync *sync, char **ret_text, size_t *ret_size, struct sw_err *err)
{
	struct sw_json json = {0};
	for (enum luxury luxury = SYNC_ALL; luxury < LUXURIES; luxury++) {
		sw_json_release(&json);
		encode_sync(&json, sync, luxury);
		if (json.failed || json.size <= SW_SYNC_BYTES_MAX)
			break;
	}
	return sw_encode_finish(&json, "cannot write the sync", SW_SYNC_BYTES_MAX, ret_text, ret_size, err);
}

static void encode_want(struct sw_json *json, const struct sw_want *want)
{
	encode(json, &sw_want_head_table, want);
	encode(json, &sw_want_words_table, want);
	encode(json, &sw_want_table, want);
	if (want->spec == NULL)
		return;
	sw_json_key(json, "spec");
	encode_object(json, &sw_spec_table, want->spec);
}

int sw_answer_encode(const struct sw_answer_message *answer, char **ret_text, size_t *ret_size, struct sw_err *err)
{
	struct sw_json buffer = {0}, *json = &buffer;
	sw_json_object(json);
	encode(json, &sw_answer_table, answer);
	sw_json_key(json, "wants");
	sw_json_array(json);
	for (size_t i = 0; i < answer->want_count; i++) {
		sw_json_object(json);
		encode_want(json, &answer->wants[i]);
		sw_json_end_object(json);
	}
	sw_json_end_array(json);
	sw_json_end_object(json);
	return sw_encode_finish(json, "cannot write the answer to an agent", SW_ANSWER_BYTES_MAX, ret_text, ret_size, err);
}

int sw_run_order_encode(const struct sw_run_order *order, char **ret_text, size_t *ret_size, struct sw_err *err)
{
	struct sw_json buffer = {0}, *json = &buffer;
	sw_json_object(json);
	encode(json, &sw_order_table, order);
	encode_want(json, &order->want);
	sw_json_end_object(json);
	return sw_encode_finish(json, "cannot write the order of a run", SW_SYNC_BYTES_MAX, ret_text, ret_size, err);
}

int sw_run_account_encode(const struct sw_run_account *account, char **ret_text, size_t *ret_size, struct sw_err *err)
{
	struct sw_json buffer = {0}, *json = &buffer;
	sw_json_object(json);
	encode(json, &sw_run_table, &account->run);
	encode(json, &sw_account_table, account);
	sw_json_end_object(json);
	return sw_encode_finish(json, "cannot write the account of a run", SW_SYNC_BYTES_MAX, ret_text, ret_size, err);
}
