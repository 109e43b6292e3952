/* The tables of the structs of sync.h: for its decoders and encoders, for descriptions, and for the
 * tests that go over every field. */
#ifndef SW_API_SYNC_TABLES_H
#define SW_API_SYNC_TABLES_H

#include "api/fields.h"

extern const struct sw_table sw_gpu_table, sw_inventory_table, sw_run_table, sw_sample_table, sw_sample_run_table, sw_shut_table,
	sw_stranger_table, sw_sync_table, sw_spec_table, sw_id_table, sw_want_head_table, sw_want_words_table, sw_want_table,
	sw_answer_table, sw_order_table, sw_account_table;
extern const struct sw_table *const sw_sync_tables[]; /* all of them; NULL behind the last */

#endif
