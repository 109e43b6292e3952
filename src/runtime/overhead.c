#include "runtime/overhead.h"

#include "runtime/account.h"

/* Contexts take some hundred MiB. What is far from that is something else that happened meanwhile. */
#define LEAST (UINT64_C(1) << 20)
#define MOST (UINT64_C(4) << 30)

void sw_overhead_before(struct sw_overhead *overhead, CUdevice device)
{
	*overhead = (struct sw_overhead){.gpu = sw_page == NULL ? -1 : sw_account_gpu(device)};
	if (overhead->gpu < 0 || atomic_load(&sw_page->gpus[overhead->gpu].context_bytes) != 0)
		return;
	overhead->alone = sw_account_lock();
	overhead->asked = sw_nvml_use(sw_page->gpus[overhead->gpu].uuid, &overhead->before);
}

static bool is_likely(uint64_t before, uint64_t after)
{
	return after > before && after - before >= LEAST && after - before <= MOST;
}

/* By what the process has now, or, where that is not told (as in a container with processes of its own), by what the GPU has, if no other process of the job
 * makes a context meanwhile. */
static uint64_t find_out(const struct sw_overhead *overhead)
{
	struct sw_nvml_use after;
	const struct sw_nvml_use *before = &overhead->before;
	if (!sw_nvml_use(sw_page->gpus[overhead->gpu].uuid, &after))
		return 0;
	if (before->own_known && after.own_known && is_likely(before->own, after.own))
		return after.own - before->own;
	return overhead->alone && is_likely(before->all, after.all) ? after.all - before->all : 0;
}

uint64_t sw_overhead_after(struct sw_overhead *overhead, bool made)
{
	if (overhead->gpu < 0)
		return 0;
	_Atomic uint64_t *known = &sw_page->gpus[overhead->gpu].context_bytes;
	uint64_t found = made && overhead->asked ? find_out(overhead) : 0, none = 0;
	if (found > 0)
		atomic_compare_exchange_strong(known, &none, found);
	if (overhead->alone)
		sw_account_unlock();
	/* What was found here is this context's own; else it is about as large as others. */
	return found > 0 ? found : atomic_load(known);
}
