/* Arrays and mipmapped arrays: their rows lie one after the other. */
#include "arrays.h"

#include <stdlib.h>

#include "allocations.h"
#include "context.h"

enum { LEVELS = 16, ROW_ALIGNMENT = 512 };

struct emu_array {
	struct emu_object object;
	CUarray3dShape shape;
	uint64_t address;
	struct emu_side side;
};

struct emu_mipmap {
	struct emu_object object;
	unsigned count;
	struct emu_array *levels[LEVELS];
};

static unsigned format_bytes(int format)
{
	switch (format) {
	case 0x01:
	case 0x08:
		return 1;
	case 0x02:
	case 0x09:
	case 0x10:
		return 2;
	case 0x03:
	case 0x0a:
	case 0x20:
		return 4;
	default:
		return 0;
	}
}

static void destroy_array(struct emu_object *object)
{
	struct emu_array *array = (struct emu_array *)object;
	emu_deallocate(array->address);
	free(array);
}

static CUresult new_array(struct emu_context *context, const CUarray3dShape *shape, struct emu_array **ret_array)
{
	unsigned element = format_bytes(shape->format) * shape->channels;
	if (element == 0 || shape->width == 0 || (shape->channels != 1 && shape->channels != 2 && shape->channels != 4))
		return CUDA_ERROR_INVALID_VALUE;
	if (shape->width > 1U << 20 || shape->height > 1U << 20 || shape->depth > 1U << 14)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_array *array = calloc(1, sizeof *array);
	if (array == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t height = shape->height != 0 ? shape->height : 1, depth = shape->depth != 0 ? shape->depth : 1;
	array->shape = *shape;
	array->side.pitch = (shape->width * element + ROW_ALIGNMENT - 1) / ROW_ALIGNMENT * ROW_ALIGNMENT;
	array->side.slice = array->side.pitch * height;
	CUresult result = emu_allocate(context, array->side.slice * depth, &array->address);
	if (result != CUDA_SUCCESS) {
		free(array);
		return result;
	}
	array->side.address = array->address;
	emu_publish(&array->object, EMU_ARRAY, destroy_array);
	*ret_array = array;
	return CUDA_SUCCESS;
}

CUresult emu_array_side(CUarray handle, struct emu_side *ret_side)
{
	struct emu_array *array = emu_get(handle, EMU_ARRAY);
	if (array == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_side = array->side;
	emu_put(&array->object);
	return CUDA_SUCCESS;
}

static CUresult create(const char *entry, CUarray *ret_array, const CUarray3dShape *shape)
{
	struct emu_context *context = NULL;
	struct emu_array *array = NULL;
	CUresult result = emu_enter(entry, EMU_UNSAFE, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_array == NULL || shape == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = new_array(context, shape, &array);
	if (result == CUDA_SUCCESS)
		*ret_array = (CUarray)array;
	return result;
}

ENTRY(cuArrayCreate_v2, CUarray *ret_array, const CUarrayShape *shape)
{
	if (shape == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUarray3dShape three = {.width = shape->width, .height = shape->height, .format = shape->format, .channels = shape->channels};
	return create(__func__, ret_array, &three);
}

ENTRY(cuArray3DCreate_v2, CUarray *ret_array, const CUarray3dShape *shape)
{
	return create(__func__, ret_array, shape);
}

ENTRY(cuArrayDestroy, CUarray handle)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, EMU_UNSAFE, &context);
	if (result != CUDA_SUCCESS)
		return result;
	emu_context_wait(context);
	return emu_retire(handle, EMU_ARRAY) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult get_shape(const char *entry, CUarray handle, CUarray3dShape *ret_shape)
{
	CUresult result = emu_enter(entry, 0, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_array *array = emu_get(handle, EMU_ARRAY);
	if (array == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_shape = array->shape;
	emu_put(&array->object);
	return CUDA_SUCCESS;
}

ENTRY(cuArray3DGetDescriptor_v2, CUarray3dShape *ret_shape, CUarray array)
{
	return ret_shape != NULL ? get_shape(__func__, array, ret_shape) : CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuArrayGetDescriptor_v2, CUarrayShape *ret_shape, CUarray array)
{
	CUarray3dShape shape;
	CUresult result = ret_shape != NULL ? get_shape(__func__, array, &shape) : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*ret_shape =
			(CUarrayShape){.width = shape.width, .height = shape.height, .format = shape.format, .channels = shape.channels};
	return result;
}

static void destroy_mipmap(struct emu_object *object)
{
	struct emu_mipmap *mipmap = (struct emu_mipmap *)object;
	for (unsigned i = 0; i < mipmap->count; i++)
		emu_retire(mipmap->levels[i], EMU_ARRAY);
	free(mipmap);
}

static size_t half(size_t length)
{
	return length > 1 ? length / 2 : length;
}

ENTRY(cuMipmappedArrayCreate, CUmipmappedArray *ret_mipmap, const CUarray3dShape *shape, unsigned levels)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, EMU_UNSAFE, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_mipmap == NULL || shape == NULL || levels == 0)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_mipmap *mipmap = calloc(1, sizeof *mipmap);
	if (mipmap == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	emu_publish(&mipmap->object, EMU_MIPMAP, destroy_mipmap);
	CUarray3dShape level = *shape;
	while (result == CUDA_SUCCESS && mipmap->count < levels && mipmap->count < LEVELS) {
		result = new_array(context, &level, &mipmap->levels[mipmap->count]);
		if (result == CUDA_SUCCESS)
			mipmap->count++;
		if (level.width <= 1 && level.height <= 1 && level.depth <= 1)
			break;
		level.width = half(level.width);
		level.height = half(level.height);
		level.depth = half(level.depth);
	}
	if (result != CUDA_SUCCESS) {
		emu_retire(mipmap, EMU_MIPMAP);
		return result;
	}
	*ret_mipmap = (CUmipmappedArray)mipmap;
	return CUDA_SUCCESS;
}

ENTRY(cuMipmappedArrayGetLevel, CUarray *ret_array, CUmipmappedArray handle, unsigned level)
{
	CUresult result = emu_enter(__func__, 0, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_mipmap *mipmap = emu_get(handle, EMU_MIPMAP);
	if (mipmap == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	if (ret_array == NULL || level >= mipmap->count)
		result = CUDA_ERROR_INVALID_VALUE;
	else
		*ret_array = (CUarray)mipmap->levels[level];
	emu_put(&mipmap->object);
	return result;
}

ENTRY(cuMipmappedArrayDestroy, CUmipmappedArray handle)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(__func__, EMU_UNSAFE, &context);
	if (result != CUDA_SUCCESS)
		return result;
	emu_context_wait(context);
	return emu_retire(handle, EMU_MIPMAP) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
