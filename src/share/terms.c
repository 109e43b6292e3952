#include "share/terms.h"

#include <string.h>

static uint8_t number_of(const struct sw_throttle *throttle)
{
	for (size_t i = 0; i < sw_throttle_count(); i++)
		if (sw_throttle_at(i) == throttle)
			return (uint8_t)i;
	return 0;
}

/* ---- fields; true: it was another value */

static bool set_u8(struct sw_share_page *page, _Atomic uint8_t *field, uint8_t value)
{
	bool changed = atomic_exchange(field, value) != value;
	if (changed)
		sw_share_page_put(page, field, sizeof *field);
	return changed;
}

static bool set_u32(struct sw_share_page *page, _Atomic uint32_t *field, uint32_t value)
{
	bool changed = atomic_exchange(field, value) != value;
	if (changed)
		sw_share_page_put(page, field, sizeof *field);
	return changed;
}

static bool set_u64(struct sw_share_page *page, _Atomic uint64_t *field, uint64_t value)
{
	bool changed = atomic_exchange(field, value) != value;
	if (changed)
		sw_share_page_put(page, field, sizeof *field);
	return changed;
}

/* ---- terms */

void sw_share_terms_get(struct sw_share_page *page, struct sw_share_terms *ret_terms)
{
	const struct sw_page *shared = sw_share_page_shared(page);
	uint64_t bytes = atomic_load(&shared->gpus[0].asked_bytes);
	uint32_t milli = atomic_load(&shared->asked_milli);
	*ret_terms = (struct sw_share_terms){
		.class = atomic_load(&shared->job_class) == SW_CLASS_OPPORTUNISTIC ? SW_CLASS_OPPORTUNISTIC : SW_CLASS_GUARANTEED,
		.throttle = sw_throttle_at(atomic_load(&shared->throttle)),
		.asked_bytes = bytes > 0 ? bytes : SW_PAGE_NO_LIMIT,
		.asked_milli = milli < 1000 ? milli : 0,
		.held = atomic_load(&shared->held) != 0,
		.slice_s = atomic_load(&shared->slice_s),
		.arrived_ns = atomic_load(&shared->arrived_ns),
	};
}

void sw_share_terms_set(struct sw_share_page *page, const struct sw_share_terms *terms)
{
	struct sw_page *shared = sw_share_page_shared(page);
	for (uint32_t i = 0; i < SW_PAGE_GPUS; i++)
		set_u64(page, &shared->gpus[i].asked_bytes, terms->asked_bytes == SW_PAGE_NO_LIMIT ? 0 : terms->asked_bytes);
	set_u8(page, &shared->throttle, number_of(terms->throttle));
	set_u32(page, &shared->asked_milli, terms->asked_milli);
	set_u8(page, &shared->held, terms->held);
	set_u8(page, &shared->slice_s, terms->slice_s);
	atomic_store(&shared->arrived_ns, terms->arrived_ns);
	sw_share_page_put(page, &shared->arrived_ns, sizeof shared->arrived_ns);
	set_u8(page, &shared->job_class, (uint8_t)terms->class);
}

void sw_share_orders_alone(const struct sw_share_terms *terms, struct sw_share_orders *ret_orders)
{
	*ret_orders = (struct sw_share_orders){.share_milli = terms->asked_milli > 0 ? terms->asked_milli : SW_THROTTLE_ALL,
					       .suspend = terms->held};
	for (uint32_t i = 0; i < SW_PAGE_GPUS; i++)
		ret_orders->limit_bytes[i] = terms->asked_bytes;
}

/* In the words of the page, where 0 is all. */
static uint32_t share_in_page(uint32_t milli)
{
	return milli == 0 ? SW_PAGE_NO_SHARE : milli >= SW_THROTTLE_ALL ? 0 : milli;
}

uint32_t sw_share_terms_change(struct sw_share_page *page, const struct sw_share_terms *terms)
{
	struct sw_page *shared = sw_share_page_shared(page);
	bool guaranteed = terms->class == SW_CLASS_GUARANTEED, was_held = atomic_load(&shared->held) != 0;
	sw_share_terms_set(page, terms);
	/* Less is less for every class; which of them may have more, and of what,
	 * depends on the neighbours. */
	for (uint32_t i = 0; i < SW_PAGE_GPUS; i++)
		if (guaranteed || terms->asked_bytes < atomic_load(&shared->gpus[i].limit_bytes))
			set_u64(page, &shared->gpus[i].limit_bytes, terms->asked_bytes);
	uint32_t share = atomic_load(&shared->share_milli);
	if (guaranteed || (share != SW_PAGE_NO_SHARE && terms->asked_milli > 0 && (share == 0 || terms->asked_milli < share)))
		set_u32(page, &shared->share_milli, terms->asked_milli);
	if (terms->held || was_held)
		set_u32(page, &shared->want, terms->held ? SW_PAGE_SUSPEND : SW_PAGE_RUN);
	return sw_share_page_tell(page);
}

void sw_share_orders_get(struct sw_share_page *page, struct sw_share_orders *ret_orders)
{
	const struct sw_page *shared = sw_share_page_shared(page);
	uint32_t share = atomic_load(&shared->share_milli);
	*ret_orders = (struct sw_share_orders){
		.share_milli = share == SW_PAGE_NO_SHARE	       ? 0
			       : share == 0 || share > SW_THROTTLE_ALL ? SW_THROTTLE_ALL
								       : share,
		.watched = atomic_load(&shared->watched) != 0,
		.suspend = atomic_load(&shared->want) == SW_PAGE_SUSPEND,
	};
	for (uint32_t i = 0; i < SW_PAGE_GPUS; i++)
		ret_orders->limit_bytes[i] = atomic_load(&shared->gpus[i].limit_bytes);
	while (atomic_load(&shared->yields) != 0 && ret_orders->neighbour_count < SW_PAGE_NEIGHBOURS &&
	       shared->neighbours[ret_orders->neighbour_count][0] != '\0')
		ret_orders->neighbour_count++;
}

static bool name_neighbours(struct sw_share_page *page, const struct sw_share_orders *orders)
{
	struct sw_page *shared = sw_share_page_shared(page);
	char wanted[SW_PAGE_NEIGHBOURS][SW_PAGE_PATH] = {0};
	size_t used = 0;
	for (size_t i = 0; i < orders->neighbour_count && used < SW_PAGE_NEIGHBOURS; i++)
		if (strlen(orders->neighbours[i]) < SW_PAGE_PATH)
			memcpy(wanted[used++], orders->neighbours[i], strlen(orders->neighbours[i]));
	bool changed = memcmp(wanted, shared->neighbours, sizeof wanted) != 0;
	if (changed) {
		memcpy(shared->neighbours, wanted, sizeof wanted);
		sw_share_page_put(page, shared->neighbours, sizeof wanted);
	}
	/* After the names: a reader that sees that it yields sees also to which runs. */
	return set_u32(page, &shared->yields, used > 0) || changed;
}

bool sw_share_orders_give(struct sw_share_page *page, const struct sw_share_orders *orders)
{
	struct sw_page *shared = sw_share_page_shared(page);
	bool changed = name_neighbours(page, orders), shrinks = false;
	for (uint32_t i = 0; i < SW_PAGE_GPUS; i++) {
		uint64_t before = atomic_load(&shared->gpus[i].limit_bytes);
		changed = set_u64(page, &shared->gpus[i].limit_bytes, orders->limit_bytes[i]) || changed;
		shrinks = shrinks || before > orders->limit_bytes[i];
	}
	/* Memory that is taken from one is wanted by another now; a turn that ends may
	 * wait for a good moment. */
	if (changed)
		sw_share_page_hurry(page, shrinks);
	changed = set_u32(page, &shared->share_milli, share_in_page(orders->share_milli)) || changed;
	changed = set_u32(page, &shared->watched, orders->watched) || changed;
	uint32_t want = orders->suspend || atomic_load(&shared->held) != 0 ? SW_PAGE_SUSPEND : SW_PAGE_RUN;
	changed = set_u32(page, &shared->want, want) || changed;
	if (changed)
		sw_share_page_tell(page);
	return changed;
}
