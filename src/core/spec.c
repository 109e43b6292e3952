#include "core/spec.h"

#include <string.h>

#include "base/error.h"

#define ROW(name, member)                                                                                  \
	{                                                                                                  \
		name, offsetof(struct sw_job_spec, member), sizeof((struct sw_job_spec *)0)->member, false \
	}
#define FLAG(name, member)                                          \
	{                                                           \
		name, offsetof(struct sw_job_spec, member), 1, true \
	}
const struct sw_spec_row sw_spec_rows[] = {
	ROW("gpus", gpus),
	ROW("min_gpus", min_gpus),
	ROW("max_gpus", max_gpus),
	ROW("weight_milli", weight_milli),
	ROW("compute_milli", compute_milli),
	ROW("gpu_memory_bytes", gpu_memory_bytes),
	ROW("gpu_floor_bytes", gpu_floor_bytes),
	ROW("host_memory_bytes", host_memory_bytes),
	ROW("cpus", cpus),
	ROW("skew_milli", skew_milli),
	ROW("use_milli", use_milli),
	ROW("retries", retries),
	ROW("class", job_class),
	ROW("knowledge", knowledge),
	FLAG("auto", is_auto),
	FLAG("held", held),
	FLAG("cannot_pause", cannot_pause),
	FLAG("prefers_home", prefers_home),
	ROW("stop_rule", stop_rule),
	FLAG("no_restart", no_restart),
	ROW("work_ns", work_ns),
};
#undef ROW
#undef FLAG
const size_t sw_spec_row_count = sizeof sw_spec_rows / sizeof *sw_spec_rows;

uint64_t sw_spec_get(const struct sw_job_spec *spec, const struct sw_spec_row *row)
{
	const char *at = (const char *)spec + row->offset;
	uint64_t wide;
	uint32_t word;
	uint16_t half;
	switch (row->size) {
	case sizeof wide:
		memcpy(&wide, at, sizeof wide);
		return wide;
	case sizeof word:
		memcpy(&word, at, sizeof word);
		return word;
	case sizeof half:
		memcpy(&half, at, sizeof half);
		return half;
	default:
		return row->is_flag ? *(const bool *)at : *(const uint8_t *)at;
	}
}

int sw_spec_set(struct sw_job_spec *spec, const struct sw_spec_row *row, uint64_t value)
{
	char *at = (char *)spec + row->offset;
	uint32_t word = (uint32_t)value;
	uint16_t half = (uint16_t)value;
	/* Times are signed. */
	uint64_t most = row->is_flag ? 1 : row->size == sizeof value ? INT64_MAX : (UINT64_C(1) << 8 * row->size) - 1;
	if (value > most)
		return SW_EINPUT;
	switch (row->size) {
	case sizeof value:
		memcpy(at, &value, sizeof value);
		break;
	case sizeof word:
		memcpy(at, &word, sizeof word);
		break;
	case sizeof half:
		memcpy(at, &half, sizeof half);
		break;
	default:
		if (row->is_flag)
			*(bool *)at = value != 0;
		else
			*(uint8_t *)at = (uint8_t)value;
	}
	return 0;
}
