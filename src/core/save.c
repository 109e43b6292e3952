/* The engine as bytes, and back.
 *
 * Two parts. The *facts* are what any scheduler would have to know: the cluster, jobs, what they
 * hold, what they got so far, quotas. The *conduct* is what makes the next decision fall exactly as
 * it would have. It is the order with its stamps, alarms, the generator, open questions, the
 * policy's own bytes. Another version of this program may keep other things for its conduct. It
 * then reads the facts alone and lets the policy take over, as if it had just been chosen.
 *
 * A new field goes into one walk, which both writes and reads it. In the facts (save_facts.c),
 * raise SW_SAVE_FACTS_FORMAT and read the field only `if (pack->format >= n)`: journals of earlier
 * versions hold nothing else. In the conduct (save_conduct.c), or when a policy changes what it
 * keeps, raise CONDUCT_FORMAT.
 *
 * Invariants:
 *  1. an engine that was loaded with its conduct has the same hashes for ever after as
 *     the one that was saved;
 *  2. bytes that are cut short or changed are an error. Everything that is read is checked before
 *     it is used, and the whole engine at the end.
 */
#include "core/save.h"

#define MAGIC UINT64_C(0x31656e69676e6573) /* "sengine1" */

void sw_engine_save(const struct sw_engine *engine, struct sw_pack *out)
{
	uint64_t magic = MAGIC;
	uint32_t format = SW_SAVE_FACTS_FORMAT;
	/* The walks take what they read or write by the same pointers; a writer changes nothing. */
	struct sw_engine *unchanged = (struct sw_engine *)(uintptr_t)engine;
	sw_pack_word(out, &magic);
	sw_pack_u32(out, &format);
	sw_engine_save_facts(out, unchanged);
	sw_engine_save_conduct(out, unchanged);
}

int sw_engine_load(const struct sw_engine_config *config, const void *bytes, size_t size, struct sw_engine **ret_engine, bool *ret_adopted,
		   struct sw_err *err)
{
	SW_CLEANUP(sw_engine_freep) struct sw_engine *engine = NULL;
	struct sw_pack pack = sw_pack_reader(bytes, size);
	struct sw_err inner = {0};
	bool adopted = false;
	uint64_t magic = 0;
	sw_pack_word(&pack, &magic);
	sw_pack_u32(&pack, &pack.format);
	if (pack.failed == 0 && magic == MAGIC && pack.format > SW_SAVE_FACTS_FORMAT)
		return sw_err_set(err, SW_ELIMIT, "the scheduler's state was written by a newer version (format %u)", pack.format);
	int r = pack.failed == 0 && magic == MAGIC && pack.format > 0 ? 0 : SW_EINPUT;
	if (r == 0)
		r = sw_engine_load_facts(&pack, config, &engine, &inner);
	if (r == 0)
		r = sw_engine_load_conduct(&pack, engine, &adopted, &inner);
	if (r == 0)
		r = sw_engine_validate(engine, &inner);
	if (r == SW_EBUG) /* what it breaks is our promise, but the bytes broke it */
		r = SW_EINPUT;
	if (r < 0) {
		sw_err_set(err, r, r == SW_ENOMEM ? "out of memory for the scheduler's state" : "the scheduler's state is damaged");
		sw_err_detail(err, "%s", inner.code != 0 ? inner.fact : "byte by byte it does not add up");
		return r;
	}
	*ret_engine = SW_TAKE(engine);
	*ret_adopted = adopted;
	return 0;
}
