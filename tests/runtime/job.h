/* What the tests of the GPU runtime share: a job, which is a process under the runtime on the
 * emulated driver, and its coordinator, which is the test.
 *
 * The runtime acts once in a process, so each case is a child of its own. The driver's functions
 * are bound by the linker: preloaded, the runtime stands before them.
 */
#ifndef TEST_RUNTIME_JOB_H
#define TEST_RUNTIME_JOB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "cuda/driver.h"
#include "share/page.h"

#define DRIVER(X)                                                                                                                         \
	X(cuInit, (unsigned))                                                                                                             \
	X(cuDeviceTotalMem_v2, (size_t *, CUdevice))                                                                                      \
	X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                                                              \
	X(cuDevicePrimaryCtxRelease_v2, (CUdevice))                                                                                       \
	X(cuDevicePrimaryCtxReset_v2, (CUdevice))                                                                                         \
	X(cuDevicePrimaryCtxGetState, (CUdevice, unsigned *, int *))                                                                      \
	X(cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice))                                                                              \
	X(cuCtxDestroy_v2, (CUcontext))                                                                                                   \
	X(cuCtxEnablePeerAccess, (CUcontext, unsigned))                                                                                   \
	X(cuCtxSetCurrent, (CUcontext))                                                                                                   \
	X(cuCtxGetCurrent, (CUcontext *))                                                                                                 \
	X(cuCtxSynchronize, (void))                                                                                                       \
	X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                                                         \
	X(cuMemAllocPitch_v2, (CUdeviceptr *, size_t *, size_t, size_t, unsigned))                                                        \
	X(cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned))                                                                           \
	X(cuMemFree_v2, (CUdeviceptr))                                                                                                    \
	X(cuMemGetInfo_v2, (size_t *, size_t *))                                                                                          \
	X(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr))                                                                \
	X(cuPointerGetAttribute, (void *, int, CUdeviceptr))                                                                              \
	X(cuPointerGetAttributes, (unsigned, int *, void **, CUdeviceptr))                                                                \
	X(cuPointerSetAttribute, (const void *, int, CUdeviceptr))                                                                        \
	X(cuMemAddressReserve, (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long))                                          \
	X(cuMemAddressFree, (CUdeviceptr, size_t))                                                                                        \
	X(cuMemCreate, (CUmemHandle *, size_t, const CUmemAllocationProp *, unsigned long long))                                          \
	X(cuMemRelease, (CUmemHandle))                                                                                                    \
	X(cuMemMap, (CUdeviceptr, size_t, size_t, CUmemHandle, unsigned long long))                                                       \
	X(cuMemUnmap, (CUdeviceptr, size_t))                                                                                              \
	X(cuMemGetAccess, (unsigned long long *, const CUmemLocation *, CUdeviceptr))                                                     \
	X(cuMemGetAllocationPropertiesFromHandle, (CUmemAllocationProp *, CUmemHandle))                                                   \
	X(cuMemExportToShareableHandle, (void *, CUmemHandle, int, unsigned long long))                                                   \
	X(cuMemImportFromShareableHandle, (CUmemHandle *, void *, int))                                                                   \
	X(cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t))                                                         \
	X(cuMemRetainAllocationHandle, (CUmemHandle *, void *))                                                                           \
	X(cuIpcGetMemHandle, (CUipcHandle *, CUdeviceptr))                                                                                \
	X(cuIpcOpenMemHandle_v2, (CUdeviceptr *, CUipcHandle, unsigned))                                                                  \
	X(cuIpcCloseMemHandle, (CUdeviceptr))                                                                                             \
	X(cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream))                                                                             \
	X(cuMemFreeAsync, (CUdeviceptr, CUstream))                                                                                        \
	X(cuMemAllocFromPoolAsync, (CUdeviceptr *, size_t, CUmemoryPool, CUstream))                                                       \
	X(cuMemPoolCreate, (CUmemoryPool *, const CUmemPoolProps *))                                                                      \
	X(cuMemPoolDestroy, (CUmemoryPool))                                                                                               \
	X(cuMemPoolTrimTo, (CUmemoryPool, size_t))                                                                                        \
	X(cuMemPoolSetAttribute, (CUmemoryPool, int, void *))                                                                             \
	X(cuMemPoolGetAttribute, (CUmemoryPool, int, void *))                                                                             \
	X(cuMemAllocAsync_ptsz, (CUdeviceptr *, size_t, CUstream))                                                                        \
	X(cuMemFreeAsync_ptsz, (CUdeviceptr, CUstream))                                                                                   \
	X(cuMemsetD8Async_ptsz, (CUdeviceptr, unsigned char, size_t, CUstream))                                                           \
	X(cuDeviceGetDefaultMemPool, (CUmemoryPool *, CUdevice))                                                                          \
	X(cuMemPoolSetAccess, (CUmemoryPool, const CUmemAccessDesc *, size_t))                                                            \
	X(cuDeviceSetMemPool, (CUdevice, CUmemoryPool))                                                                                   \
	X(cuLaunchHostFunc, (CUstream, CUhostFn, void *))                                                                                 \
	X(cuStreamSynchronize_ptsz, (CUstream))                                                                                           \
	X(cuStreamIsCapturing, (CUstream, int *))                                                                                         \
	X(cuEventDestroy_v2, (CUevent))                                                                                                   \
	X(cuEventSynchronize, (CUevent))                                                                                                  \
	X(cuStreamQuery, (CUstream))                                                                                                      \
	X(cuArrayCreate_v2, (CUarray *, const CUarrayShape *))                                                                            \
	X(cuArray3DCreate_v2, (CUarray *, const CUarray3dShape *))                                                                        \
	X(cuArrayDestroy, (CUarray))                                                                                                      \
	X(cuMipmappedArrayCreate, (CUmipmappedArray *, const CUarray3dShape *, unsigned))                                                 \
	X(cuMipmappedArrayDestroy, (CUmipmappedArray))                                                                                    \
	X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                                                                           \
	X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                                                                 \
	X(cuMemcpyDtoD_v2, (CUdeviceptr, CUdeviceptr, size_t))                                                                            \
	X(cuMemcpy, (CUdeviceptr, CUdeviceptr, size_t))                                                                                   \
	X(cuMemcpyAsync, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                                                                    \
	X(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream))                                                            \
	X(cuMemcpyBatchAsync_v2, (const CUdeviceptr *, const CUdeviceptr *, const size_t *, size_t, void *, size_t *, size_t, CUstream))  \
	X(cuMemcpyPeer, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t))                                                         \
	X(cuMemcpyPeerAsync, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream))                                          \
	X(cuMemcpy2D_v2, (const CUcopy2d *))                                                                                              \
	X(cuMemcpy2DUnaligned_v2, (const CUcopy2d *))                                                                                     \
	X(cuMemcpy2DAsync_v2, (const CUcopy2d *, CUstream))                                                                               \
	X(cuMemcpy3D_v2, (const CUcopy3d *))                                                                                              \
	X(cuMemcpy3DAsync_v2, (const CUcopy3d *, CUstream))                                                                               \
	X(cuMemcpy3DPeer, (const CUcopy3d *))                                                                                             \
	X(cuMemcpy3DPeerAsync, (const CUcopy3d *, CUstream))                                                                              \
	X(cuMemcpyDtoA_v2, (CUarray, size_t, CUdeviceptr, size_t))                                                                        \
	X(cuMemcpyAtoD_v2, (CUdeviceptr, CUarray, size_t, size_t))                                                                        \
	X(cuMemcpyAtoA_v2, (CUarray, size_t, CUarray, size_t, size_t))                                                                    \
	X(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t))                                                                            \
	X(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))                                                                \
	X(cuStreamCreate, (CUstream *, unsigned))                                                                                         \
	X(cuStreamCreateWithPriority, (CUstream *, unsigned, int))                                                                        \
	X(cuStreamGetPriority, (CUstream, int *))                                                                                         \
	X(cuCtxGetStreamPriorityRange, (int *, int *))                                                                                    \
	X(cuStreamDestroy_v2, (CUstream))                                                                                                 \
	X(cuStreamSynchronize, (CUstream))                                                                                                \
	X(cuStreamBeginCapture_v2, (CUstream, int))                                                                                       \
	X(cuStreamEndCapture, (CUstream, CUgraph *))                                                                                      \
	X(cuStreamWaitEvent, (CUstream, CUevent, unsigned))                                                                               \
	X(cuEventCreate, (CUevent *, unsigned))                                                                                           \
	X(cuEventRecord, (CUevent, CUstream))                                                                                             \
	X(cuModuleLoadData, (CUmodule *, const void *))                                                                                   \
	X(cuLibraryLoadData, (CUlibrary *, const void *, int *, void **, unsigned, int *, void **, unsigned))                             \
	X(cuLibraryGetKernel, (CUkernel *, CUlibrary, const char *))                                                                      \
	X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                                                                    \
	X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **)) \
	X(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))                                                      \
	X(cuGraphExecDestroy, (CUgraphExec))                                                                                              \
	X(cuGraphDestroy, (CUgraph))                                                                                                      \
	X(cuGraphLaunch, (CUgraphExec, CUstream))                                                                                         \
	X(cuGetProcAddress, (const char *, void **, int, uint64_t))                                                                       \
	X(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *))

#define X(name, arguments) CUresult name arguments;
DRIVER(X)
#undef X

#define MiB (1ULL << 20)
#define UNIT (2 * MiB)
#define SECOND INT64_C(1000000000)
#define CONTEXT_BYTES (16 * MiB)
#define PATIENCE (60 * SECOND) /* for what must happen; a busy machine may need it */

#define assert_cuda(call) assert_int_equal(call, CUDA_SUCCESS)

/* ---- of the test */

/* cmocka's set-up and tear-down of one case: a machine with one GPU of 512 MiB and a job's page,
 * without limit, with 1 GiB of host memory, of which the machine has plenty. */
int machine_up(void **state);
int machine_down(void **state);
/* Before any process uses the driver: more settings of the emulated one ("memory=1G"). */
void machine_setting(const char *setting);
/* Faults of the emulated driver ("cuMemMap:error=2") from now on: for the first time
 * before any process uses it. */
void machine_faults(const char *faults);
/* What contents may take on this machine, and what it must have left then; what they and memory
 * made ahead for them take. */
void machine_host_memory(uint64_t most_bytes, uint64_t reserve_bytes);
uint64_t host_used(void);

/* The job's page, open; its path; a path of one's own beside it. */
struct sw_share_page *page(void);
const char *page_path(void);
const char *beside(const char *name);
struct sw_share_figures look(void);
/* States the wish and waits until it is met. */
void suspend(void);
void resume(void);
void limit(uint64_t bytes);
void host_budget(uint64_t bytes);
/* The same page as the runtime sees it. */
struct sw_page *raw_page(const char *path);

/* What the processes that live have taken of the emulated GPU, by its own books. */
uint64_t gpu_used(void);
/* For how long it has worked, by its own clock. */
uint64_t gpu_busy_ns(void);

/* Waits until it holds; fails with its text if it never does. */
#define eventually(condition)                                      \
	do {                                                       \
		int64_t until_ = now_ns() + PATIENCE;              \
		while (!(condition)) {                             \
			if (now_ns() > until_)                     \
				fail_msg("never: %s", #condition); \
			doze();                                    \
		}                                                  \
	} while (0)
int64_t now_ns(void);
void doze(void);

/* ---- the job */

struct job {
	pid_t pid;
	int socket;
};
/* A process of the job; its assertions end it with status 1. */
struct job start(void (*run)(int socket));
void tell(int socket, char word);
void hear(int socket, char wanted);
/* Waits for its end, which must be a good one. */
void end(struct job *job);
void kill_job(struct job *job);
/* Runs it to its end. */
void run_job(void (*run)(int socket));

/* In a job: initialises, with the primary context of device 0 current and the kernels loaded. */
void open_driver(void);
CUcontext primary(void);
CUresult launch_stir(CUstream stream, CUdeviceptr x, uint64_t words);
CUresult launch_spin(CUstream stream, uint64_t ns);
/* Launches with different grids are different launches. */
CUresult launch_spin_on(CUstream stream, uint64_t ns, unsigned grid);
void stir_here(uint32_t *x, uint64_t words);

#endif
