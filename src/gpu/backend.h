/* What a source of GPUs provides. Of this folder and its tests only. */
#ifndef SW_GPU_BACKEND_H
#define SW_GPU_BACKEND_H

#include <stddef.h>

#include "gpu/gpu.h"

struct sw_gpu_backend {
	/* Fills `sample`, which is zeroed. */
	int (*sample)(struct sw_gpu_source *gpus, uint32_t index, struct sw_gpu_sample *sample, struct sw_err *err);
	void (*close)(struct sw_gpu_source *gpus); /* releases `state`; NULL: nothing to do */
};

struct sw_gpu_source {
	const struct sw_gpu_backend *backend;
	void *state;
	uint32_t count;
	struct sw_gpu_info infos[SW_GPUS_MAX];
	uint32_t missing; /* that the driver has and that do not answer it */
	bool silent;	  /* there are none, since the driver is not there or does not answer */
	struct sw_gpu_source_care care;
	char about[400];
};

#define SW_GPU_NVML_LIBRARY "libnvidia-ml.so.1"

/* NVIDIA's management library; `library` is what dlopen() takes. SW_ENOTFOUND, with the reason as
 * detail, when the library or the driver is not there. */
int sw_gpu_nvml_open(const char *library, const struct sw_gpu_source_care *care, struct sw_gpu_source **ret_gpus, struct sw_err *err);
/* A description file; `name` is for messages. */
int sw_gpu_description_parse(const char *name, const char *text, size_t size, struct sw_gpu_source **ret_gpus, struct sw_err *err);

#endif
