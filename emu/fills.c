/* Memory set to a value. */
#include <stdlib.h>

#include "capture.h"
#include "copies.h"
#include "memory.h"
#include "streams.h"

CUresult emu_set_work(const CUmemsetNode *set, struct emu_work **ret_work)
{
	int gpu = EMU_HOST;
	if (set->destination == 0 || (set->element_bytes != 1 && set->element_bytes != 2 && set->element_bytes != 4))
		return CUDA_ERROR_INVALID_VALUE;
	if (set->destination % set->element_bytes != 0 || (set->height > 1 && set->pitch < set->width * set->element_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!emu_whose(set->destination, &gpu))
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_work *work = emu_work_new(EMU_WORK_SET);
	if (work == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	work->set.address = set->destination;
	work->set.pitch = set->pitch;
	work->set.width = set->width;
	work->set.height = set->height;
	work->set.value = set->value;
	work->set.element = set->element_bytes;
	*ret_work = work;
	return CUDA_SUCCESS;
}

static CUresult fill(const char *entry, CUmemsetNode set, CUstream handle, enum emu_flavour flavour, bool wait)
{
	CUresult result = emu_enter(entry, wait ? EMU_UNSAFE : EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_stream *stream = NULL;
	struct emu_work *work = NULL;
	result = emu_stream_of(handle, flavour, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (set.width > 0 && set.height > 0) {
		/* Fills of device memory do not wait for their end, also the plain ones. */
		result = emu_set_work(&set, &work);
		if (result == CUDA_SUCCESS)
			result = emu_submit(stream, work, NULL);
	}
	emu_put(&stream->object);
	return result;
}

#define ROW(value_, bytes_) ((CUmemsetNode){.destination = dst, .value = value_, .element_bytes = bytes_, .width = count, .height = 1})
#define BLOCK(value_, bytes_) \
	((CUmemsetNode){.destination = dst, .pitch = pitch, .value = value_, .element_bytes = bytes_, .width = width, .height = height})

TWINS(cuMemsetD8_v2, _ptds, fill(__func__, ROW(value, 1), NULL, flavour, true), CUdeviceptr dst, unsigned char value, size_t count)
TWINS(cuMemsetD16_v2, _ptds, fill(__func__, ROW(value, 2), NULL, flavour, true), CUdeviceptr dst, unsigned short value, size_t count)
TWINS(cuMemsetD32_v2, _ptds, fill(__func__, ROW(value, 4), NULL, flavour, true), CUdeviceptr dst, unsigned value, size_t count)
TWINS(cuMemsetD8Async, _ptsz, fill(__func__, ROW(value, 1), stream, flavour, false), CUdeviceptr dst, unsigned char value, size_t count,
      CUstream stream)
TWINS(cuMemsetD16Async, _ptsz, fill(__func__, ROW(value, 2), stream, flavour, false), CUdeviceptr dst, unsigned short value, size_t count,
      CUstream stream)
TWINS(cuMemsetD32Async, _ptsz, fill(__func__, ROW(value, 4), stream, flavour, false), CUdeviceptr dst, unsigned value, size_t count,
      CUstream stream)
TWINS(cuMemsetD2D8_v2, _ptds, fill(__func__, BLOCK(value, 1), NULL, flavour, true), CUdeviceptr dst, size_t pitch, unsigned char value,
      size_t width, size_t height)
TWINS(cuMemsetD2D16_v2, _ptds, fill(__func__, BLOCK(value, 2), NULL, flavour, true), CUdeviceptr dst, size_t pitch, unsigned short value,
      size_t width, size_t height)
TWINS(cuMemsetD2D32_v2, _ptds, fill(__func__, BLOCK(value, 4), NULL, flavour, true), CUdeviceptr dst, size_t pitch, unsigned value,
      size_t width, size_t height)
TWINS(cuMemsetD2D8Async, _ptsz, fill(__func__, BLOCK(value, 1), stream, flavour, false), CUdeviceptr dst, size_t pitch, unsigned char value,
      size_t width, size_t height, CUstream stream)
TWINS(cuMemsetD2D16Async, _ptsz, fill(__func__, BLOCK(value, 2), stream, flavour, false), CUdeviceptr dst, size_t pitch,
      unsigned short value, size_t width, size_t height, CUstream stream)
TWINS(cuMemsetD2D32Async, _ptsz, fill(__func__, BLOCK(value, 4), stream, flavour, false), CUdeviceptr dst, size_t pitch, unsigned value,
      size_t width, size_t height, CUstream stream)
