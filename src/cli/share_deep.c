#include "cli/share_deep.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/now.h"
#include "base/number.h"
#include "cli/share_places.h"
#include "gpu/gpu.h"
#include "share/deep.h"
#include "share/folder.h"

#define DOOR_NS (60 * SW_NS_PER_S)

int sw_cli_share_take_off(const char *name, struct sw_share_page *page, struct sw_err *err)
{
	int64_t begun = sw_now_monotonic_ms();
	int r = sw_deep_out(page, err);
	if (r < 0) {
		sw_err_hint(err, "It is suspended all the same; 'sharewell share --resume %s' lets it go on.", name);
		return r;
	}
	printf("%s is off its GPUs: the driver took %" PRId64 " ms for the rest\n", name, sw_now_monotonic_ms() - begun);
	return 0;
}

/* ---- where to */

static int find_gpu(struct sw_share_page *page, const char *text, uint32_t *ret_gpu, struct sw_err *err)
{
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = NULL;
	int64_t number = -1;
	const char *uuid = text;
	int r = sw_gpu_source_open("nvml", &gpus, err);
	if (r < 0)
		return r;
	if (sw_parse_i64(text, strlen(text), &number) == 0 && number >= 0 && number < (int64_t)sw_gpu_source_count(gpus))
		uuid = sw_gpu_source_info(gpus, (uint32_t)number)->uuid;
	int found = sw_share_page_gpu(page, uuid);
	if (found < 0) {
		sw_err_set(err, SW_EINPUT, "there is no GPU '%.60s'", text);
		sw_err_hint(err, "There are %u, from 0 on.", sw_gpu_source_count(gpus));
		return SW_EINPUT;
	}
	*ret_gpu = (uint32_t)found;
	return 0;
}

/* The one GPU that it uses. */
static int find_own(const char *name, struct sw_share_page *page, uint32_t *ret_gpu, struct sw_err *err)
{
	const struct sw_page *shared = sw_share_page_shared(page);
	uint32_t count = 0;
	for (uint32_t gpu = 0; gpu < SW_PAGE_GPUS && gpu < shared->gpu_count; gpu++) {
		uint64_t bytes = 0;
		for (uint32_t i = 0; i < SW_PAGE_SLOTS; i++)
			bytes += atomic_load(&shared->slots[i].gpus[gpu].charged_bytes) +
				 atomic_load(&shared->slots[i].gpus[gpu].host_bytes);
		if (bytes > 0)
			*ret_gpu = gpu;
		count += bytes > 0;
	}
	if (count == 1)
		return 0;
	sw_err_set(err, SW_EINPUT, "%s uses %u GPUs", name, count);
	sw_err_hint(err, "Only a program with one GPU can go to another one.");
	return SW_EINPUT;
}

/* The two change places. */
static size_t pair_up(struct sw_share_page *page, uint32_t from, uint32_t to, struct sw_checkpoint_pair *pairs)
{
	const struct sw_page *shared = sw_share_page_shared(page);
	size_t count = 0;
	for (uint32_t i = 0; from != to && i < shared->gpu_count && i < SW_PAGE_GPUS; i++, count++) {
		memcpy(pairs[i].from, shared->gpus[i].uuid, sizeof pairs[i].from);
		memcpy(pairs[i].to, shared->gpus[i == from ? to : i == to ? from : i].uuid, sizeof pairs[i].to);
	}
	return count;
}

static int move(const char *name, struct sw_share_page *page, const char *gpu, struct sw_err *err)
{
	char folder[PATH_MAX];
	uint32_t from = 0, to = 0;
	int r = find_gpu(page, gpu, &to, err);
	r = r < 0 ? r : find_own(name, page, &from, err);
	r = r < 0 ? r : sw_cli_share_folder(folder, err);
	if (r < 0)
		return r;
	if (!sw_share_page_shut(page, DOOR_NS))
		return sw_err_set(err, SW_EINPUT, "a process of %s is about to use its GPU", name);
	/* No coordinator decides about GPUs that change their places. */
	int lock = sw_share_folder_lock(folder, true);
	struct sw_checkpoint_pair pairs[SW_PAGE_GPUS];
	r = sw_deep_back(page, pairs, pair_up(page, from, to, pairs), err);
	sw_share_folder_unlock(lock);
	sw_share_page_admit(page);
	return r;
}

int sw_cli_share_bring_back(const char *name, struct sw_share_page *page, const char *gpu, struct sw_err *err)
{
	struct sw_share_figures figures;
	int64_t begun = sw_now_monotonic_ms();
	sw_share_page_look(page, &figures);
	if (figures.off == 0 && gpu == NULL)
		return 0;
	if (figures.off == 0) {
		sw_err_set(err, SW_EINPUT, "%s is on its GPU", name);
		sw_err_hint(err, "Take it off first: sharewell share --suspend %s --deep", name);
		return SW_EINPUT;
	}
	int r = gpu != NULL ? move(name, page, gpu, err) : sw_deep_back(page, NULL, 0, err);
	if (r < 0) {
		sw_err_hint(err, "It is still suspended, off its GPUs.");
		return r;
	}
	printf("%s is back on its GPUs: the driver took %" PRId64 " ms\n", name, sw_now_monotonic_ms() - begun);
	return 0;
}
