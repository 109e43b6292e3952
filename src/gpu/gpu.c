/* The sources of GPUs behind one interface. */
#include "gpu/gpu.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/yaml.h"
#include "gpu/backend.h"

uint32_t sw_gpu_source_count(const struct sw_gpu_source *gpus)
{
	return gpus->count;
}

const struct sw_gpu_info *sw_gpu_source_info(const struct sw_gpu_source *gpus, uint32_t index)
{
	assert(index < gpus->count);
	return &gpus->infos[index];
}

const char *sw_gpu_source_about(const struct sw_gpu_source *gpus)
{
	return gpus->about;
}

uint32_t sw_gpu_source_missing(const struct sw_gpu_source *gpus)
{
	return gpus->missing;
}

bool sw_gpu_source_are_silent(const struct sw_gpu_source *gpus)
{
	return gpus->silent;
}

int sw_gpu_source_sample(struct sw_gpu_source *gpus, uint32_t index, struct sw_gpu_sample *ret_sample, struct sw_err *err)
{
	assert(index < gpus->count);
	struct sw_gpu_sample sample = {0};
	int r = gpus->backend->sample(gpus, index, &sample, err);
	if (r == 0)
		*ret_sample = sample;
	return r;
}

void sw_gpu_source_close(struct sw_gpu_source *gpus)
{
	if (gpus->backend != NULL && gpus->backend->close != NULL)
		gpus->backend->close(gpus);
	free(gpus);
}

static int open_none(const char *why, bool silent, struct sw_gpu_source **ret_gpus, struct sw_err *err)
{
	struct sw_gpu_source *gpus = calloc(1, sizeof *gpus);
	if (gpus == NULL)
		return sw_err_set(err, SW_ENOMEM, "no memory for the list of GPUs");
	gpus->silent = silent;
	snprintf(gpus->about, sizeof gpus->about, "no GPUs: %.380s", why);
	*ret_gpus = gpus;
	return 0;
}

static int open_auto(const struct sw_gpu_source_care *care, struct sw_gpu_source **ret_gpus, struct sw_err *err)
{
	struct sw_err why = {0};
	int r = sw_gpu_nvml_open(SW_GPU_NVML_LIBRARY, care, ret_gpus, &why);
	if (r == SW_ENOTFOUND)
		return open_none(why.detail, true, ret_gpus, err);
	if (r < 0 && err != NULL && err->code == 0)
		*err = why;
	return r;
}

static int open_description(const char *path, struct sw_gpu_source **ret_gpus, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size;
	int r = sw_file_read(path, SW_YAML_MAX_BYTES, &text, &size, err);
	if (r < 0) {
		sw_err_hint(err, "GPUs come from 'auto', 'nvml', 'none', or the path of a description file.");
		return r;
	}
	return sw_gpu_description_parse(path, text, size, ret_gpus, err);
}

int sw_gpu_source_open(const char *source, struct sw_gpu_source **ret_gpus, struct sw_err *err)
{
	return sw_gpu_source_open_with(source, &(struct sw_gpu_source_care){0}, ret_gpus, err);
}

int sw_gpu_source_open_with(const char *source, const struct sw_gpu_source_care *care, struct sw_gpu_source **ret_gpus, struct sw_err *err)
{
	if (strcmp(source, "auto") == 0)
		return open_auto(care, ret_gpus, err);
	if (strcmp(source, "nvml") == 0)
		return sw_gpu_nvml_open(SW_GPU_NVML_LIBRARY, care, ret_gpus, err);
	if (strcmp(source, "none") == 0)
		return open_none("none were asked for", false, ret_gpus, err);
	return open_description(source, ret_gpus, err);
}
