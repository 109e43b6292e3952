/* The real driver's functions: those that the runtime itself calls, with their types, and the
 * ones behind the hooks. */
#ifndef SW_RUNTIME_DRIVER_H
#define SW_RUNTIME_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/entry_points.h"

/* field, symbol, parameters. Those that an old driver lacks are NULL; sw_driver_can_move() tells
 * whether all for moving memory are there. */
#define SW_DRIVER_CALLS(X)                                                                                                         \
	X(init, cuInit, (unsigned flags))                                                                                          \
	X(get_proc_address, cuGetProcAddress, (const char *name, void **ret, int version, uint64_t flags))                         \
	X(get_proc_address_v2, cuGetProcAddress_v2, (const char *name, void **ret, int version, uint64_t flags, int *found))       \
	X(device_count, cuDeviceGetCount, (int *ret))                                                                              \
	X(device_uuid, cuDeviceGetUuid_v2, (CUuuid * ret, CUdevice device))                                                        \
	X(device_uuid_v1, cuDeviceGetUuid, (CUuuid * ret, CUdevice device))                                                        \
	X(device_attribute, cuDeviceGetAttribute, (int *ret, int attribute, CUdevice device))                                      \
	X(device_memory, cuDeviceTotalMem_v2, (size_t * ret, CUdevice device))                                                     \
	X(default_pool, cuDeviceGetDefaultMemPool, (CUmemoryPool * ret, CUdevice device))                                          \
	X(current_pool, cuDeviceGetMemPool, (CUmemoryPool * ret, CUdevice device))                                                 \
	X(graph_memory, cuDeviceGetGraphMemAttribute, (CUdevice device, int attribute, void *ret))                                 \
	X(pool_attribute, cuMemPoolGetAttribute, (CUmemoryPool pool, int attribute, void *ret))                                    \
	X(pool_trim, cuMemPoolTrimTo, (CUmemoryPool pool, size_t keep))                                                            \
	X(context_current, cuCtxGetCurrent, (CUcontext * ret))                                                                     \
	X(context_device, cuCtxGetDevice, (CUdevice * ret))                                                                        \
	X(context_push, cuCtxPushCurrent_v2, (CUcontext context))                                                                  \
	X(context_pop, cuCtxPopCurrent_v2, (CUcontext * ret))                                                                      \
	X(context_version, cuCtxGetApiVersion, (CUcontext context, unsigned *ret))                                                 \
	X(context_synchronize, cuCtxSynchronize, (void))                                                                           \
	X(primary_retain, cuDevicePrimaryCtxRetain, (CUcontext * ret, CUdevice device))                                            \
	X(primary_release, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                                        \
	X(primary_state, cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *ret_flags, int *ret_active))                      \
	X(enable_peer, cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags))                                                    \
	X(capture_mode, cuThreadExchangeStreamCaptureMode, (int *mode))                                                            \
	X(event_create, cuEventCreate, (CUevent * ret, unsigned flags))                                                            \
	X(event_destroy, cuEventDestroy_v2, (CUevent event))                                                                       \
	X(event_record, cuEventRecord, (CUevent event, CUstream stream))                                                           \
	X(event_query, cuEventQuery, (CUevent event))                                                                              \
	X(event_elapsed, cuEventElapsedTime, (float *ret_ms, CUevent begin, CUevent end))                                          \
	X(event_elapsed_v2, cuEventElapsedTime_v2, (float *ret_ms, CUevent begin, CUevent end))                                    \
	X(function_name, cuFuncGetName, (const char **ret, CUfunction function))                                                   \
	X(kernel_name, cuKernelGetName, (const char **ret, void *kernel))                                                          \
	X(priority_range, cuCtxGetStreamPriorityRange, (int *ret_least, int *ret_greatest))                                        \
	X(stream_create, cuStreamCreate, (CUstream * ret, unsigned flags))                                                         \
	X(stream_context, cuStreamGetCtx, (CUstream stream, CUcontext * ret))                                                      \
	X(stream_capturing, cuStreamIsCapturing, (CUstream stream, int *ret))                                                      \
	X(stream_synchronize, cuStreamSynchronize, (CUstream stream))                                                              \
	X(memory_info, cuMemGetInfo_v2, (size_t * ret_free, size_t * ret_total))                                                   \
	X(alloc, cuMemAlloc_v2, (CUdeviceptr * ret, size_t bytes))                                                                 \
	X(alloc_pitch, cuMemAllocPitch_v2, (CUdeviceptr * ret, size_t * ret_pitch, size_t width, size_t height, unsigned element)) \
	X(alloc_managed, cuMemAllocManaged, (CUdeviceptr * ret, size_t bytes, unsigned flags))                                     \
	X(free, cuMemFree_v2, (CUdeviceptr address))                                                                               \
	X(granularity, cuMemGetAllocationGranularity, (size_t * ret, const CUmemAllocationProp *prop, int kind))                   \
	X(reserve, cuMemAddressReserve, (CUdeviceptr * ret, size_t bytes, size_t align, CUdeviceptr wish, uint64_t flags))         \
	X(unreserve, cuMemAddressFree, (CUdeviceptr address, size_t bytes))                                                        \
	X(create, cuMemCreate, (CUmemHandle * ret, size_t bytes, const CUmemAllocationProp *prop, uint64_t flags))                 \
	X(release, cuMemRelease, (CUmemHandle handle))                                                                             \
	X(map, cuMemMap, (CUdeviceptr address, size_t bytes, size_t offset, CUmemHandle handle, uint64_t flags))                   \
	X(unmap, cuMemUnmap, (CUdeviceptr address, size_t bytes))                                                                  \
	X(set_access, cuMemSetAccess, (CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count))            \
	X(import_handle, cuMemImportFromShareableHandle, (CUmemHandle * ret, void *handle, int type))                              \
	X(export_handle, cuMemExportToShareableHandle, (void *ret, CUmemHandle handle, int type, uint64_t flags))                  \
	X(handle_prop, cuMemGetAllocationPropertiesFromHandle, (CUmemAllocationProp * ret, CUmemHandle handle))                    \
	X(address_range, cuMemGetAddressRange_v2, (CUdeviceptr * ret, size_t * ret_bytes, CUdeviceptr address))                    \
	X(pointer_attribute, cuPointerGetAttribute, (void *ret, int attribute, CUdeviceptr address))                               \
	X(pointer_attributes, cuPointerGetAttributes, (unsigned count, int *attributes, void **ret, CUdeviceptr address))          \
	X(host_register, cuMemHostRegister_v2, (void *address, size_t bytes, unsigned flags))                                      \
	X(host_unregister, cuMemHostUnregister, (void *address))                                                                   \
	X(copy_to_host, cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))                         \
	X(copy_to_device, cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                 \
	X(copy_within, cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                    \
	X(fill_bytes, cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream))

struct sw_driver {
#define SW_FIELD(field, symbol, params) CUresult(*field) params;
	SW_DRIVER_CALLS(SW_FIELD)
#undef SW_FIELD
};
extern struct sw_driver sw_driver;

enum sw_entry {
#define SW_NUMBER(symbol, ...) SW_ENTRY_##symbol,
	SW_ENTRY_POINTS(SW_NUMBER, SW_NUMBER, SW_NUMBER, SW_NUMBER)
#undef SW_NUMBER
		SW_ENTRY_COUNT
};

typedef void (*sw_function)(void);
extern _Atomic(sw_function) sw_real[SW_ENTRY_COUNT]; /* filled once; profile.c puts others in their places, and back */

/* The real function behind a hook, with its type; and whether there is none. */
#define SW_REAL(symbol, ...) ((CUresult(*)(__VA_ARGS__))sw_real[SW_ENTRY_##symbol])
#define SW_MISSING(symbol) (!sw_driver_ready() || sw_real[SW_ENTRY_##symbol] == NULL)

/* Loads the real driver once; false: there is none. Every hook that may be the first
 * call goes through here. */
bool sw_driver_load(void);
extern _Atomic int sw_driver_loaded; /* 1 yes, -1 no, 0 not tried */
static inline bool sw_driver_ready(void)
{
	int loaded = atomic_load_explicit(&sw_driver_loaded, memory_order_acquire);
	return __builtin_expect(loaded == 1, 1) || (loaded == 0 && sw_driver_load());
}
/* Whether it knows how to map memory by hand, on the devices of this process. */
bool sw_driver_can_move(void);

/* The hook that stands for the real function at this address, or NULL. */
sw_function sw_hook_of(const void *real);

/* The real dlsym(). */
extern void *(*sw_real_dlsym)(void *handle, const char *name);
void sw_find_dlsym(void);

#endif
