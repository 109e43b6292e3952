#include "runtime/overhead.h"

#include <time.h>

#include "runtime/account.h"

/* Contexts take some hundred MiB. What is far from that is something else that happened
 * meanwhile. */
#define LEAST (UINT64_C(1) << 20)
#define MOST (UINT64_C(4) << 30)
#define USUAL (UINT64_C(512) << 20)
#define PATIENCE_NS INT64_C(10000000000)

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

/* By what the process has now. Where that is not told (as in a container with processes of its
 * own), it is by what the GPU has. No other process of the job may make a context meanwhile. */
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

bool sw_overhead_may_try_again(const struct sw_overhead *overhead, int64_t *waited_ns)
{
	if (overhead->gpu < 0 || *waited_ns > PATIENCE_NS || !sw_account_is_coordinated())
		return false;
	uint64_t known = atomic_load(&sw_page->gpus[overhead->gpu].context_bytes);
	atomic_store(&sw_slot->wanted_gpu, (uint32_t)overhead->gpu);
	atomic_store(&sw_slot->wanted_bytes, known > 0 ? known : USUAL);
	/* The longer it has waited, the less a try is worth what it costs. */
	int64_t nap_ns = 20000000 + *waited_ns / 16;
	nanosleep(&(struct timespec){.tv_nsec = nap_ns}, NULL);
	*waited_ns += nap_ns;
	return true;
}

void sw_overhead_stop_trying(int64_t waited_ns)
{
	if (waited_ns > 0 && sw_slot != NULL)
		atomic_store(&sw_slot->wanted_bytes, 0);
}
