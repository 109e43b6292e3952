/* The emulated driver as the tests call it: loaded at run time, with settings and shared
 * state of the test's own. */
#ifndef TEST_EMU_DRIVER_H
#define TEST_EMU_DRIVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cuda/driver.h"

#define DRIVER(X)                                                                                                                         \
	X(cuInit, (unsigned))                                                                                                             \
	X(cuDeviceGetCount, (int *))                                                                                                      \
	X(cuDeviceGetAttribute, (int *, int, CUdevice))                                                                                   \
	X(cuDeviceGetUuid_v2, (CUuuid *, CUdevice))                                                                                       \
	X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                                                              \
	X(cuDevicePrimaryCtxRelease_v2, (CUdevice))                                                                                       \
	X(cuDevicePrimaryCtxReset_v2, (CUdevice))                                                                                         \
	X(cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice))                                                                              \
	X(cuCtxDestroy_v2, (CUcontext))                                                                                                   \
	X(cuCtxSetCurrent, (CUcontext))                                                                                                   \
	X(cuCtxGetCurrent, (CUcontext *))                                                                                                 \
	X(cuCtxPushCurrent_v2, (CUcontext))                                                                                               \
	X(cuCtxPopCurrent_v2, (CUcontext *))                                                                                              \
	X(cuCtxSynchronize, (void))                                                                                                       \
	X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                                                         \
	X(cuMemAllocPitch_v2, (CUdeviceptr *, size_t *, size_t, size_t, unsigned))                                                        \
	X(cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned))                                                                           \
	X(cuMemFree_v2, (CUdeviceptr))                                                                                                    \
	X(cuMemGetInfo_v2, (size_t *, size_t *))                                                                                          \
	X(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr))                                                                \
	X(cuMemHostAlloc, (void **, size_t, unsigned))                                                                                    \
	X(cuMemFreeHost, (void *))                                                                                                        \
	X(cuMemHostRegister_v2, (void *, size_t, unsigned))                                                                               \
	X(cuMemHostUnregister, (void *))                                                                                                  \
	X(cuMemHostGetDevicePointer_v2, (CUdeviceptr *, void *, unsigned))                                                                \
	X(cuMemAddressReserve, (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long))                                          \
	X(cuMemAddressFree, (CUdeviceptr, size_t))                                                                                        \
	X(cuMemCreate, (CUmemHandle *, size_t, const CUmemAllocationProp *, unsigned long long))                                          \
	X(cuMemRelease, (CUmemHandle))                                                                                                    \
	X(cuMemMap, (CUdeviceptr, size_t, size_t, CUmemHandle, unsigned long long))                                                       \
	X(cuMemUnmap, (CUdeviceptr, size_t))                                                                                              \
	X(cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t))                                                         \
	X(cuMemGetAccess, (unsigned long long *, const CUmemLocation *, CUdeviceptr))                                                     \
	X(cuMemGetAllocationGranularity, (size_t *, const CUmemAllocationProp *, int))                                                    \
	X(cuMemRetainAllocationHandle, (CUmemHandle *, void *))                                                                           \
	X(cuMemExportToShareableHandle, (void *, CUmemHandle, int, unsigned long long))                                                   \
	X(cuMemImportFromShareableHandle, (CUmemHandle *, void *, int))                                                                   \
	X(cuIpcGetMemHandle, (CUipcHandle *, CUdeviceptr))                                                                                \
	X(cuIpcOpenMemHandle_v2, (CUdeviceptr *, CUipcHandle, unsigned))                                                                  \
	X(cuIpcCloseMemHandle, (CUdeviceptr))                                                                                             \
	X(cuPointerGetAttribute, (void *, int, CUdeviceptr))                                                                              \
	X(cuPointerGetAttributes, (unsigned, int *, void **, CUdeviceptr))                                                                \
	X(cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream))                                                                             \
	X(cuMemFreeAsync, (CUdeviceptr, CUstream))                                                                                        \
	X(cuMemAllocFromPoolAsync, (CUdeviceptr *, size_t, CUmemoryPool, CUstream))                                                       \
	X(cuMemPoolCreate, (CUmemoryPool *, const CUmemPoolProps *))                                                                      \
	X(cuMemPoolDestroy, (CUmemoryPool))                                                                                               \
	X(cuMemPoolTrimTo, (CUmemoryPool, size_t))                                                                                        \
	X(cuMemPoolGetAttribute, (CUmemoryPool, int, void *))                                                                             \
	X(cuMemPoolSetAttribute, (CUmemoryPool, int, void *))                                                                             \
	X(cuDeviceGetDefaultMemPool, (CUmemoryPool *, CUdevice))                                                                          \
	X(cuArrayCreate_v2, (CUarray *, const CUarrayShape *))                                                                            \
	X(cuArrayDestroy, (CUarray))                                                                                                      \
	X(cuMipmappedArrayCreate, (CUmipmappedArray *, const CUarray3dShape *, unsigned))                                                 \
	X(cuMipmappedArrayDestroy, (CUmipmappedArray))                                                                                    \
	X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                                                                           \
	X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                                                                 \
	X(cuMemcpyDtoD_v2, (CUdeviceptr, CUdeviceptr, size_t))                                                                            \
	X(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream))                                                            \
	X(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream))                                                                  \
	X(cuMemcpyAsync, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                                                                    \
	X(cuMemcpyBatchAsync, (CUdeviceptr *, CUdeviceptr *, size_t *, size_t, void *, size_t *, size_t, size_t *, CUstream))             \
	X(cuMemcpy2D_v2, (const CUcopy2d *))                                                                                              \
	X(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t))                                                                            \
	X(cuMemsetD32_v2, (CUdeviceptr, unsigned, size_t))                                                                                \
	X(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))                                                                \
	X(cuMemsetD32Async, (CUdeviceptr, unsigned, size_t, CUstream))                                                                    \
	X(cuMemsetD2D8_v2, (CUdeviceptr, size_t, unsigned char, size_t, size_t))                                                          \
	X(cuStreamCreate, (CUstream *, unsigned))                                                                                         \
	X(cuStreamCreateWithPriority, (CUstream *, unsigned, int))                                                                        \
	X(cuStreamDestroy_v2, (CUstream))                                                                                                 \
	X(cuStreamQuery, (CUstream))                                                                                                      \
	X(cuStreamSynchronize, (CUstream))                                                                                                \
	X(cuStreamSynchronize_ptsz, (CUstream))                                                                                           \
	X(cuStreamWaitEvent, (CUstream, CUevent, unsigned))                                                                               \
	X(cuLaunchHostFunc, (CUstream, CUhostFn, void *))                                                                                 \
	X(cuEventCreate, (CUevent *, unsigned))                                                                                           \
	X(cuEventDestroy_v2, (CUevent))                                                                                                   \
	X(cuEventRecord, (CUevent, CUstream))                                                                                             \
	X(cuEventQuery, (CUevent))                                                                                                        \
	X(cuEventSynchronize, (CUevent))                                                                                                  \
	X(cuEventElapsedTime, (float *, CUevent, CUevent))                                                                                \
	X(cuModuleLoadData, (CUmodule *, const void *))                                                                                   \
	X(cuModuleUnload, (CUmodule))                                                                                                     \
	X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                                                                    \
	X(cuModuleGetGlobal_v2, (CUdeviceptr *, size_t *, CUmodule, const char *))                                                        \
	X(cuFuncGetParamInfo, (CUfunction, size_t, size_t *, size_t *))                                                                   \
	X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **)) \
	X(cuLaunchKernel_ptsz,                                                                                                            \
	  (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **))                 \
	X(cuLaunchKernelEx, (const CUlaunchConfig *, CUfunction, void **, void **))                                                       \
	X(cuStreamBeginCapture_v2, (CUstream, int))                                                                                       \
	X(cuStreamEndCapture, (CUstream, CUgraph *))                                                                                      \
	X(cuStreamIsCapturing, (CUstream, int *))                                                                                         \
	X(cuThreadExchangeStreamCaptureMode, (int *))                                                                                     \
	X(cuGraphCreate, (CUgraph *, unsigned))                                                                                           \
	X(cuGraphDestroy, (CUgraph))                                                                                                      \
	X(cuGraphClone, (CUgraph *, CUgraph))                                                                                             \
	X(cuGraphAddKernelNode_v2, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUkernelNode *))                           \
	X(cuGraphAddMemsetNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUmemsetNode *, CUcontext))                   \
	X(cuGraphAddMemcpyNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUcopy3d *, CUcontext))                       \
	X(cuGraphAddMemAllocNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUallocNode *))                                   \
	X(cuGraphAddMemFreeNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUdeviceptr))                                      \
	X(cuGraphAddDependencies, (CUgraph, const CUgraphNode *, const CUgraphNode *, size_t))                                            \
	X(cuGraphKernelNodeGetParams_v2, (CUgraphNode, CUkernelNode *))                                                                   \
	X(cuGraphNodeGetType, (CUgraphNode, int *))                                                                                       \
	X(cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *))                                                                            \
	X(cuGraphGetEdges, (CUgraph, CUgraphNode *, CUgraphNode *, size_t *))                                                             \
	X(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))                                                      \
	X(cuGraphExecKernelNodeSetParams_v2, (CUgraphExec, CUgraphNode, const CUkernelNode *))                                            \
	X(cuGraphNodeSetEnabled, (CUgraphExec, CUgraphNode, unsigned))                                                                    \
	X(cuGraphExecDestroy, (CUgraphExec))                                                                                              \
	X(cuGraphLaunch, (CUgraphExec, CUstream))                                                                                         \
	X(cuGetProcAddress, (const char *, void **, int, uint64_t))                                                                       \
	X(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *))                                                             \
	X(cuCheckpointProcessGetState, (int, int *))                                                                                      \
	X(cuCheckpointProcessLock, (int, CUcheckpointLockArgs *))                                                                         \
	X(cuCheckpointProcessCheckpoint, (int, void *))                                                                                   \
	X(cuCheckpointProcessRestore, (int, CUcheckpointRestoreArgs *))                                                                   \
	X(cuCheckpointProcessUnlock, (int, void *))

#define X(name, arguments) extern CUresult(*name) arguments;
DRIVER(X)
#undef X

#define MiB (1ULL << 20)
#define PAGE (2 * MiB)

/* One GPU of 1 GiB, quick, unless the test says otherwise. */
#define SETTINGS "gpus=2;memory=1G;context=16M;h2d=500;d2h=500;copy_latency_us=0;launch_us=0;checkpoint=10"

#define assert_cuda(call) assert_int_equal(call, CUDA_SUCCESS)

/* Settings and a shared file of this program's own; before the driver is loaded. */
void driver_settings(const char *settings);
/* The file of the shared state goes when the program does. */
void driver_clean_up(void);

/* The library that was built with the sanitizers of this program, or the plain one. */
const char *driver_library(bool plain);

/* Loads and initialises, with the primary context of device 0 current. */
void driver_open(bool plain);
CUcontext driver_context(void);

/* A kernel of a small module with one of each operation: "fill", "stir" and so on; "slow" is a
 * spin. */
CUfunction driver_kernel(const char *name);
CUresult driver_launch(const char *name, CUstream stream, void **arguments);
CUresult driver_spin(CUstream stream, uint64_t ns);
/* n words at x stirred once, as the kernel does it. */
CUresult driver_stir(CUstream stream, CUdeviceptr x, uint64_t n);
void stir_here(uint32_t *x, uint64_t n);

size_t driver_free_bytes(void);
CUmemAllocationProp driver_memory_of(int type, int id);
void driver_allow(CUdeviceptr address, size_t bytes);

#endif
