/* A learner as bytes: its measurements. What follows from them, the regression, is made anew, and
 * comes out the same to the last bit (invariant 3 of learn.h). */
#include "contention/learn_state.h"

static void pack_set(struct sw_pack *pack, struct sw_learn_set *set)
{
	uint8_t kind = (uint8_t)set->kind;
	sw_pack_u8(pack, &kind);
	sw_pack_u32(pack, &set->count);
	if (kind >= KIND_COUNT || set->count < 2 || set->count > SW_LEARN_JOBS_MAX)
		sw_pack_fail(pack);
	if (pack->failed != 0)
		return;
	set->kind = (enum kind)kind;
	for (uint32_t i = 0; i < set->count; i++) {
		sw_pack_chars(pack, set->names[i], sizeof set->names[i]);
		if (pack->failed == 0 && sw_learn_is_odd(set->names[i]))
			sw_pack_fail(pack);
	}
}

static void pack_observation(struct sw_pack *pack, struct sw_learn_observation *seen, uint64_t clock)
{
	pack_set(pack, &seen->set);
	sw_pack_u32(pack, &seen->times);
	sw_pack_u64(pack, &seen->last);
	seen->kept = seen->times < SW_LEARN_REPEATS_MAX ? seen->times : SW_LEARN_REPEATS_MAX;
	for (uint32_t i = 0; i < seen->kept; i++) {
		sw_pack_u32(pack, &seen->slow_milli[i]);
		sw_pack_u32(pack, &seen->samples[i]);
		if (seen->samples[i] == 0 || seen->slow_milli[i] < SW_LEARN_LEAST_MILLI || seen->slow_milli[i] > SW_PREDICT_SLOWEST_MILLI)
			sw_pack_fail(pack);
	}
	if (seen->kept == 0 || seen->last > clock)
		sw_pack_fail(pack);
}

void sw_learn_pack(struct sw_pack *pack, struct sw_learn *learn)
{
	size_t count = learn->count;
	sw_pack_u64(pack, &learn->clock);
	sw_pack_count(pack, &count);
	if (count > SW_LEARN_SETS_MAX)
		sw_pack_fail(pack);
	for (uint32_t i = 0; i < count && pack->failed == 0; i++) {
		pack_observation(pack, &learn->seen[i], learn->clock);
		if (i > 0 && pack->failed == 0 && sw_learn_compare(&learn->seen[i - 1].set, &learn->seen[i].set) >= 0)
			sw_pack_fail(pack);
	}
	if (!pack->reads)
		return; /* one that cannot be written is as it was */
	learn->count = pack->failed == 0 ? (uint32_t)count : 0;
	sw_learn_refresh(learn);
}
