/* Launches. */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "modules.h"
#include "streams.h"

/* The marks in the list of `extra`. */
#define EXTRA_END ((void *)0)
#define EXTRA_BUFFER ((void *)1)
#define EXTRA_SIZE ((void *)2)

static CUresult copy_extra(const struct emu_kernel *kernel, void **extra, unsigned char *arguments)
{
	const void *buffer = NULL;
	size_t bytes = 0;
	for (int i = 0; extra[i] != EXTRA_END; i += 2) {
		if (extra[i] == EXTRA_BUFFER)
			buffer = extra[i + 1];
		else if (extra[i] == EXTRA_SIZE)
			bytes = *(const size_t *)extra[i + 1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (buffer == NULL || bytes < kernel->argument_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(arguments, buffer, kernel->argument_bytes);
	return CUDA_SUCCESS;
}

static CUresult copy_arguments(const struct emu_kernel *kernel, const CUkernelNode *launch, unsigned char *arguments)
{
	if (launch->params != NULL && launch->extra != NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (launch->extra != NULL)
		return copy_extra(kernel, launch->extra, arguments);
	if (launch->params == NULL && kernel->parameter_count > 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < kernel->parameter_count; i++)
		memcpy(arguments + kernel->parameters[i].offset, launch->params[i], kernel->parameters[i].bytes);
	return CUDA_SUCCESS;
}

CUresult emu_launch_work(const CUkernelNode *launch, struct emu_work **ret_work)
{
	uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
	for (int i = 0; i < 3; i++)
		if (launch->grid[i] == 0 || launch->block[i] == 0 || launch->block[i] > 1024)
			return CUDA_ERROR_INVALID_VALUE;
	if (threads > 1024 || launch->shared_bytes > 232448)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_function *function = emu_function_of(launch->function);
	if (function == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	struct emu_work *work = emu_work_new(EMU_WORK_KERNEL);
	CUresult result = work != NULL ? copy_arguments(&function->kernel, launch, work->kernel.arguments) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS) {
		emu_put(&function->object);
		free(work);
		return result;
	}
	work->kernel.function = function;
	memcpy(work->kernel.grid, launch->grid, sizeof launch->grid);
	memcpy(work->kernel.block, launch->block, sizeof launch->block);
	work->kernel.shared_bytes = launch->shared_bytes;
	*ret_work = work;
	return CUDA_SUCCESS;
}

static CUresult launch(const char *entry, const CUkernelNode *node, CUstream handle, enum emu_flavour flavour)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_stream *stream = NULL;
	struct emu_work *work = NULL;
	result = emu_stream_of(handle, flavour, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = emu_context_state(stream->context);
	if (result == CUDA_SUCCESS)
		result = emu_launch_work(node, &work);
	if (result == CUDA_SUCCESS)
		result = emu_submit(stream, work, NULL);
	emu_put(&stream->object);
	return result;
}

static CUresult launch_plain(const char *entry, CUfunction function, const unsigned *grid, const unsigned *block, unsigned shared_bytes,
			     CUstream stream, void **params, void **extra, enum emu_flavour flavour)
{
	CUkernelNode node = {.function = function, .shared_bytes = shared_bytes, .params = params, .extra = extra};
	memcpy(node.grid, grid, sizeof node.grid);
	memcpy(node.block, block, sizeof node.block);
	return launch(entry, &node, stream, flavour);
}

#define SHAPE(a, b, c) ((const unsigned[3]){a, b, c})

TWINS(cuLaunchKernel, _ptsz,
      launch_plain(__func__, function, SHAPE(gx, gy, gz), SHAPE(bx, by, bz), shared_bytes, stream, params, extra, flavour),
      CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared_bytes,
      CUstream stream, void **params, void **extra)

TWINS(cuLaunchCooperativeKernel, _ptsz,
      launch_plain(__func__, function, SHAPE(gx, gy, gz), SHAPE(bx, by, bz), shared_bytes, stream, params, NULL, flavour),
      CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared_bytes,
      CUstream stream, void **params)

static CUresult launch_config(const char *entry, const CUlaunchConfig *config, CUfunction function, void **params, void **extra,
			      enum emu_flavour flavour)
{
	if (config == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	return launch_plain(entry, function, config->grid, config->block, config->shared_bytes, config->stream, params, extra, flavour);
}

TWINS(cuLaunchKernelEx, _ptsz, launch_config(__func__, config, function, params, extra, flavour), const CUlaunchConfig *config,
      CUfunction function, void **params, void **extra)
