/* Any bytes as a description of GPUs: nothing crashes, every refusal has words, and what is
 * accepted keeps the invariants of gpu.h. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/backend.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sw_err err = {0};
	SW_CLEANUP(sw_gpu_source_closep) struct sw_gpu_source *gpus = NULL;
	int r = sw_gpu_description_parse("fuzz", (const char *)data, size, &gpus, &err);
	must((r == 0) == (gpus != NULL));
	must(r == 0 || (err.code == r && err.fact[0] != '\0'));
	if (r < 0)
		return 0;
	must(sw_gpu_source_count(gpus) >= 1 && sw_gpu_source_count(gpus) <= SW_GPUS_MAX && sw_gpu_source_about(gpus)[0] != '\0');
	uint32_t group = 0;
	for (uint32_t i = 0; i < sw_gpu_source_count(gpus); i++) {
		const struct sw_gpu_info *info = sw_gpu_source_info(gpus, i);
		must(strlen(info->uuid) == 40 && info->name[0] != '\0' && info->memory_bytes >= 1 << 20 && info->numa_node >= -1);
		must(i == 0 || strcmp(info->uuid, sw_gpu_source_info(gpus, i - 1)->uuid) > 0);
		must(i == 0 ? info->link_group == 0 : info->link_group == group || info->link_group == group + 1);
		group = info->link_group;
		struct sw_gpu_sample sample;
		must(sw_gpu_source_sample(gpus, i, &sample, &err) == 0 && sample.memory_total_bytes == info->memory_bytes);
	}
	return 0;
}
