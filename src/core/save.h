/* The two parts of a saved engine; for save*.c alone. */
#ifndef SW_CORE_SAVE_H
#define SW_CORE_SAVE_H

#include "core/state.h"

#define SW_SAVE_FACTS_FORMAT 11u

/* ---- facts (save_facts.c) */
void sw_engine_save_facts(struct sw_pack *pack, struct sw_engine *engine);
/* An engine that knows all the facts, with no policy in charge. */
int sw_engine_load_facts(struct sw_pack *pack, const struct sw_engine_config *config, struct sw_engine **ret_engine, struct sw_err *err);

/* A list of parts. What was read into the spot is real; whether it is free is not asked. */
void sw_engine_save_parts(struct sw_pack *pack, struct sw_ledger *ledger, uint32_t parts);
void sw_engine_load_parts(struct sw_pack *pack, struct sw_engine *engine, struct sw_spot *spot);

/* ---- conduct (save_conduct.c) */
void sw_engine_save_conduct(struct sw_pack *pack, struct sw_engine *engine);
/* Puts the policy in charge that was, with its own bytes where these can be read, else
 * as one that takes over. */
int sw_engine_load_conduct(struct sw_pack *pack, struct sw_engine *engine, bool *ret_adopted, struct sw_err *err);

#endif
