/* Copies: all of them become blocks of rows. What the host gave in pageable memory is read, and
 * written, before the call returns. */
#include "copies.h"

#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "capture.h"
#include "memory.h"
#include "streams.h"

/* Pageable memory up to this size is staged; a larger copy makes the call wait. */
enum { STAGED_BYTES = 64 << 10 };

static CUresult find_side(int type, const void *host, CUdeviceptr device, CUarray array, size_t pitch, size_t height,
			  struct emu_side *ret_side)
{
	switch (type) {
	case CU_MEMORY_HOST:
		*ret_side = (struct emu_side){(uint64_t)(uintptr_t)host, pitch, pitch * height};
		return host != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_MEMORY_DEVICE:
	case CU_MEMORY_UNIFIED:
		*ret_side = (struct emu_side){device, pitch, pitch * height};
		return device != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_MEMORY_ARRAY:
		return emu_array_side(array, ret_side);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Addresses that the driver cannot know are refused at the call; those it knows but finds unmapped
 * when it gets there are an illegal address. */
static bool plausible(int type, uint64_t address)
{
	int gpu = EMU_HOST;
	return type != CU_MEMORY_DEVICE || emu_whose(address, &gpu);
}

CUresult emu_copy_work(const CUcopy3d *copy, struct emu_work **ret_work)
{
	struct emu_side from, to;
	size_t src_height = copy->src_height != 0 ? copy->src_height : copy->height;
	size_t dst_height = copy->dst_height != 0 ? copy->dst_height : copy->height;
	size_t src_pitch = copy->src_pitch != 0 ? copy->src_pitch : copy->width + copy->src_x;
	size_t dst_pitch = copy->dst_pitch != 0 ? copy->dst_pitch : copy->width + copy->dst_x;
	CUresult result = find_side(copy->src_type, copy->src_host, copy->src_device, copy->src_array, src_pitch, src_height, &from);
	if (result == CUDA_SUCCESS)
		result = find_side(copy->dst_type, copy->dst_host, copy->dst_device, copy->dst_array, dst_pitch, dst_height, &to);
	if (result != CUDA_SUCCESS)
		return result;
	bool rows = copy->height > 1 || copy->depth > 1;
	if (rows && (from.pitch < copy->width + copy->src_x || to.pitch < copy->width + copy->dst_x))
		return CUDA_ERROR_INVALID_VALUE;
	if (!plausible(copy->src_type, from.address) || !plausible(copy->dst_type, to.address))
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_work *work = emu_work_new(EMU_WORK_COPY);
	if (work == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	from.address += copy->src_x + copy->src_y * from.pitch + copy->src_z * from.slice;
	to.address += copy->dst_x + copy->dst_y * to.pitch + copy->dst_z * to.slice;
	work->copy.from = from;
	work->copy.to = to;
	work->copy.width = copy->width;
	work->copy.height = copy->height;
	work->copy.depth = copy->depth;
	*ret_work = work;
	return CUDA_SUCCESS;
}

static bool is_pageable(uint64_t address)
{
	int gpu = EMU_HOST;
	return !emu_whose(address, &gpu);
}

/* `*wait`: the call must not return before the copy is done. */
static CUresult stage(struct emu_work *work, bool *wait)
{
	bool one_row = work->copy.height == 1 && work->copy.depth == 1;
	if (is_pageable(work->copy.to.address)) {
		*wait = true;
	} else if (is_pageable(work->copy.from.address)) {
		if (!one_row || work->copy.width > STAGED_BYTES) {
			*wait = true;
			return CUDA_SUCCESS;
		}
		work->copy.staged = malloc(work->copy.width);
		if (work->copy.staged == NULL)
			return CUDA_ERROR_OUT_OF_MEMORY;
		memcpy(work->copy.staged, (const void *)(uintptr_t)work->copy.from.address, work->copy.width);
	}
	return CUDA_SUCCESS;
}

static CUresult put(struct emu_stream *stream, struct emu_work *work, bool wait)
{
	uint64_t number = 0;
	bool capturing = emu_capturing(stream);
	if (!capturing && !wait) {
		CUresult result = stage(work, &wait);
		if (result != CUDA_SUCCESS) {
			emu_work_free(work);
			return result;
		}
	}
	CUresult result = emu_submit(stream, work, &number);
	if (result == CUDA_SUCCESS && wait && !capturing) {
		emu_stream_wait(stream, number);
		result = emu_context_state(stream->context);
	}
	return result;
}

static CUresult copy(const char *entry, const CUcopy3d *what, CUstream handle, enum emu_flavour flavour, bool wait)
{
	CUresult result = emu_enter(entry, wait ? EMU_UNSAFE : EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_stream *stream = NULL;
	result = emu_stream_of(handle, flavour, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_work *work = NULL;
	if (what->width > 0 && what->height > 0 && what->depth > 0) {
		result = emu_copy_work(what, &work);
		if (result == CUDA_SUCCESS)
			result = put(stream, work, wait);
	}
	emu_put(&stream->object);
	return result;
}

static CUcopy3d line(int src_type, uint64_t src, int dst_type, uint64_t dst, size_t bytes)
{
	return (CUcopy3d){
		.src_type = src_type,
		.src_host = (const void *)(uintptr_t)src,
		.src_device = src,
		.dst_type = dst_type,
		.dst_host = (void *)(uintptr_t)dst,
		.dst_device = dst,
		.width = bytes,
		.height = 1,
		.depth = 1,
	};
}

#define PTR(p) ((uint64_t)(uintptr_t)(p))
#define H2D(dst, src, bytes) (&(CUcopy3d[1]){line(CU_MEMORY_HOST, PTR(src), CU_MEMORY_DEVICE, dst, bytes)}[0])
#define D2H(dst, src, bytes) (&(CUcopy3d[1]){line(CU_MEMORY_DEVICE, src, CU_MEMORY_HOST, PTR(dst), bytes)}[0])
#define D2D(dst, src, bytes) (&(CUcopy3d[1]){line(CU_MEMORY_DEVICE, src, CU_MEMORY_DEVICE, dst, bytes)}[0])
#define ANY(dst, src, bytes) (&(CUcopy3d[1]){line(CU_MEMORY_UNIFIED, src, CU_MEMORY_UNIFIED, dst, bytes)}[0])

TWINS(cuMemcpyHtoD_v2, _ptds, copy(__func__, H2D(dst, src, bytes), NULL, flavour, true), CUdeviceptr dst, const void *src, size_t bytes)
TWINS(cuMemcpyDtoH_v2, _ptds, copy(__func__, D2H(dst, src, bytes), NULL, flavour, true), void *dst, CUdeviceptr src, size_t bytes)
TWINS(cuMemcpyDtoD_v2, _ptds, copy(__func__, D2D(dst, src, bytes), NULL, flavour, true), CUdeviceptr dst, CUdeviceptr src, size_t bytes)
TWINS(cuMemcpy, _ptds, copy(__func__, ANY(dst, src, bytes), NULL, flavour, true), CUdeviceptr dst, CUdeviceptr src, size_t bytes)
TWINS(cuMemcpyHtoDAsync_v2, _ptsz, copy(__func__, H2D(dst, src, bytes), stream, flavour, false), CUdeviceptr dst, const void *src,
      size_t bytes, CUstream stream)
TWINS(cuMemcpyDtoHAsync_v2, _ptsz, copy(__func__, D2H(dst, src, bytes), stream, flavour, false), void *dst, CUdeviceptr src, size_t bytes,
      CUstream stream)
TWINS(cuMemcpyDtoDAsync_v2, _ptsz, copy(__func__, D2D(dst, src, bytes), stream, flavour, false), CUdeviceptr dst, CUdeviceptr src,
      size_t bytes, CUstream stream)
TWINS(cuMemcpyAsync, _ptsz, copy(__func__, ANY(dst, src, bytes), stream, flavour, false), CUdeviceptr dst, CUdeviceptr src, size_t bytes,
      CUstream stream)
TWINS(cuMemcpyPeer, _ptds, ((void)dst_context, (void)src_context, copy(__func__, D2D(dst, src, bytes), NULL, flavour, true)),
      CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes)
TWINS(cuMemcpyPeerAsync, _ptsz, ((void)dst_context, (void)src_context, copy(__func__, D2D(dst, src, bytes), stream, flavour, false)),
      CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes, CUstream stream)

/* One after the other; the first that is refused ends it. */
static CUresult copy_batch(const char *entry, const CUdeviceptr *dst, const CUdeviceptr *src, const size_t *bytes, size_t count,
			   size_t *ret_failed, CUstream stream, enum emu_flavour flavour)
{
	if (ret_failed != NULL)
		*ret_failed = SIZE_MAX;
	if (dst == NULL || src == NULL || bytes == NULL || count == 0 || (stream == NULL && flavour == EMU_LEGACY))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		CUresult result = copy(entry, ANY(dst[i], src[i], bytes[i]), stream, flavour, false);
		if (result != CUDA_SUCCESS && ret_failed != NULL)
			*ret_failed = i;
		if (result != CUDA_SUCCESS)
			return result;
	}
	return CUDA_SUCCESS;
}

TWINS(cuMemcpyBatchAsync, _ptsz,
      ((void)attributes, (void)first, (void)attribute_count, copy_batch(__func__, dst, src, bytes, count, ret_failed, stream, flavour)),
      CUdeviceptr *dst, CUdeviceptr *src, size_t *bytes, size_t count, void *attributes, size_t *first, size_t attribute_count,
      size_t *ret_failed, CUstream stream)
TWINS(cuMemcpyBatchAsync_v2, _ptsz,
      ((void)attributes, (void)first, (void)attribute_count, copy_batch(__func__, dst, src, bytes, count, NULL, stream, flavour)),
      const CUdeviceptr *dst, const CUdeviceptr *src, const size_t *bytes, size_t count, void *attributes, size_t *first,
      size_t attribute_count, CUstream stream)

static CUcopy3d flat(const CUcopy2d *two)
{
	return (CUcopy3d){
		.src_x = two->src_x,
		.src_y = two->src_y,
		.src_type = two->src_type,
		.src_host = two->src_host,
		.src_device = two->src_device,
		.src_array = two->src_array,
		.src_pitch = two->src_pitch,
		.dst_x = two->dst_x,
		.dst_y = two->dst_y,
		.dst_type = two->dst_type,
		.dst_host = two->dst_host,
		.dst_device = two->dst_device,
		.dst_array = two->dst_array,
		.dst_pitch = two->dst_pitch,
		.width = two->width,
		.height = two->height,
		.depth = 1,
	};
}

static CUresult copy_2d(const char *entry, const CUcopy2d *two, CUstream stream, enum emu_flavour flavour, bool wait)
{
	if (two == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUcopy3d three = flat(two);
	return copy(entry, &three, stream, flavour, wait);
}

TWINS(cuMemcpy2D_v2, _ptds, copy_2d(__func__, what, NULL, flavour, true), const CUcopy2d *what)
TWINS(cuMemcpy2DUnaligned_v2, _ptds, copy_2d(__func__, what, NULL, flavour, true), const CUcopy2d *what)
TWINS(cuMemcpy2DAsync_v2, _ptsz, copy_2d(__func__, what, stream, flavour, false), const CUcopy2d *what, CUstream stream)

static CUresult copy_3d(const char *entry, const CUcopy3d *three, CUstream stream, enum emu_flavour flavour, bool wait)
{
	return three != NULL ? copy(entry, three, stream, flavour, wait) : CUDA_ERROR_INVALID_VALUE;
}

TWINS(cuMemcpy3D_v2, _ptds, copy_3d(__func__, what, NULL, flavour, true), const CUcopy3d *what)
TWINS(cuMemcpy3DAsync_v2, _ptsz, copy_3d(__func__, what, stream, flavour, false), const CUcopy3d *what, CUstream stream)
TWINS(cuMemcpy3DPeer, _ptds, copy_3d(__func__, what, NULL, flavour, true), const CUcopy3d *what)
TWINS(cuMemcpy3DPeerAsync, _ptsz, copy_3d(__func__, what, stream, flavour, false), const CUcopy3d *what, CUstream stream)

/* From and to arrays, a line at a time. */
static CUcopy3d array_line(CUarray src_array, size_t src_x, uint64_t src, CUarray dst_array, size_t dst_x, uint64_t dst, int other,
			   size_t bytes)
{
	CUcopy3d what = line(other, src, other, dst, bytes);
	if (src_array != NULL) {
		what.src_type = CU_MEMORY_ARRAY;
		what.src_array = src_array;
		what.src_x = src_x;
	}
	if (dst_array != NULL) {
		what.dst_type = CU_MEMORY_ARRAY;
		what.dst_array = dst_array;
		what.dst_x = dst_x;
	}
	return what;
}

#define ARRAY(sa, sx, s, da, dx, d, other, bytes) (&(CUcopy3d[1]){array_line(sa, sx, s, da, dx, d, other, bytes)}[0])

TWINS(cuMemcpyDtoA_v2, _ptds, copy(__func__, ARRAY(NULL, 0, src, dst, dst_x, 0, CU_MEMORY_DEVICE, bytes), NULL, flavour, true), CUarray dst,
      size_t dst_x, CUdeviceptr src, size_t bytes)
TWINS(cuMemcpyAtoD_v2, _ptds, copy(__func__, ARRAY(src, src_x, 0, NULL, 0, dst, CU_MEMORY_DEVICE, bytes), NULL, flavour, true),
      CUdeviceptr dst, CUarray src, size_t src_x, size_t bytes)
TWINS(cuMemcpyHtoA_v2, _ptds, copy(__func__, ARRAY(NULL, 0, PTR(src), dst, dst_x, 0, CU_MEMORY_HOST, bytes), NULL, flavour, true),
      CUarray dst, size_t dst_x, const void *src, size_t bytes)
TWINS(cuMemcpyAtoH_v2, _ptds, copy(__func__, ARRAY(src, src_x, 0, NULL, 0, PTR(dst), CU_MEMORY_HOST, bytes), NULL, flavour, true),
      void *dst, CUarray src, size_t src_x, size_t bytes)
TWINS(cuMemcpyAtoA_v2, _ptds, copy(__func__, ARRAY(src, src_x, 0, dst, dst_x, 0, CU_MEMORY_DEVICE, bytes), NULL, flavour, true),
      CUarray dst, size_t dst_x, CUarray src, size_t src_x, size_t bytes)
TWINS(cuMemcpyHtoAAsync_v2, _ptsz, copy(__func__, ARRAY(NULL, 0, PTR(src), dst, dst_x, 0, CU_MEMORY_HOST, bytes), stream, flavour, false),
      CUarray dst, size_t dst_x, const void *src, size_t bytes, CUstream stream)
TWINS(cuMemcpyAtoHAsync_v2, _ptsz, copy(__func__, ARRAY(src, src_x, 0, NULL, 0, PTR(dst), CU_MEMORY_HOST, bytes), stream, flavour, false),
      void *dst, CUarray src, size_t src_x, size_t bytes, CUstream stream)
