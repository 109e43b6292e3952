/* cuGetProcAddress: the newest symbol of a name that a program of that version may call, for its
 * kind of default stream. */
#include <stdbool.h>
#include <string.h>

#include "entry.h"
#include "names.h"

static const struct emu_name *find(const char *name, int version, uint64_t flags, int *ret_status)
{
	const struct emu_name *best = NULL;
	bool known = false;
	for (size_t i = 0; i < emu_name_count; i++) {
		const struct emu_name *entry = &emu_names[i];
		if (strcmp(entry->name, name) != 0)
			continue;
		known = true;
		if (entry->since > version || (entry->kind == EMU_NAME_PER_THREAD && (flags & CU_GETPROC_PER_THREAD_STREAM) == 0))
			continue;
		if (best == NULL || entry->since >= best->since)
			best = entry;
	}
	*ret_status = best != NULL ? CU_GETPROC_FOUND : known ? CU_GETPROC_VERSION_TOO_LOW : CU_GETPROC_NOT_FOUND;
	return best;
}

static CUresult resolve(const char *name, void **ret_address, int version, uint64_t flags, int *ret_status)
{
	if (name == NULL || ret_address == NULL || version > EMU_VERSION || flags > 3)
		return CUDA_ERROR_INVALID_VALUE;
	int status = CU_GETPROC_NOT_FOUND;
	const struct emu_name *entry = find(name, version, flags, &status);
	*ret_address = entry != NULL ? (void *)entry->address : NULL;
	if (ret_status != NULL)
		*ret_status = status;
	return entry != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* The first of the two has no status, and a name it does not find is an error. */
ENTRY(cuGetProcAddress, const char *name, void **ret_address, int version, uint64_t flags)
{
	return resolve(name, ret_address, version, flags, NULL);
}

ENTRY(cuGetProcAddress_v2, const char *name, void **ret_address, int version, uint64_t flags, int *ret_status)
{
	CUresult result = resolve(name, ret_address, version, flags, ret_status);
	return result == CUDA_ERROR_NOT_FOUND ? CUDA_SUCCESS : result;
}

/* Private tables of the driver. */
ENTRY(cuGetExportTable, const void **ret_table, const CUuuid *id)
{
	(void)id;
	if (ret_table == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}
