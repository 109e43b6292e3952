/* The one list of driver calls that are hooked, and how.
 *
 *	LAUNCH(symbol, types...)       gives the GPU work of unknown length: passes the gate, is
 *	                               counted and may be paced (launches.c)
 *	COPY(symbol, where, types...)  fills or copies memory: passes the gate, and may be paced
 *	                               where it stays within one GPU (copies.c)
 *	WORK(symbol, types...)         gives the GPU other work, or touches memory:
 *	                               passes the gate (gated.c)
 *	OWN(symbol, types...)          has a function of its own, hook_<symbol>, in
 *	                               allocate.c, pool_calls.c, mapped.c, inform.c,
 *	                               exports.c, imports.c, contexts.c, launches.c,
 *	                               streams.c, kernels.c, waits.c, start.c or doors.c
 *
 * Where a copy goes:
 *	GPU           its name says that it stays there: a fill, or from device memory and arrays to
 *	              device memory and arrays
 *	HOST          its name says that one end is the host's
 *	LINE, PEER    its two addresses say, or those of each of LINES
 *	PLANE, BOX    the description that it is given says, a CUcopy2d or a CUcopy3d
 *	PART          the same of a CUcopyBox, or of each of PARTS
 *
 * Types are what matters to a caller. P is a pointer, U a number of up to 32 bits, Z one of 64
 * bits, H a handle for other processes. "Touches memory" is also what the driver looks up by its
 * address, as when a copy is put into a graph. There must be memory then. Entry points of the
 * driver that are not here pass untouched, each for a reason. The list
 * tests/runtime/entry_points.txt names them all, and tests/runtime/entry_points checks that, also
 * with a real cuda.h.
 */
#ifndef SW_RUNTIME_ENTRY_POINTS_H
#define SW_RUNTIME_ENTRY_POINTS_H

#include <stddef.h>

#include "cuda/driver.h"

typedef void *P;
typedef unsigned U;
typedef size_t Z;
typedef CUipcHandle H;

/* clang-format off */
#define SW_ENTRY_POINTS(LAUNCH, COPY, WORK, OWN) \
	LAUNCH(cuGraphLaunch, P, P) \
	LAUNCH(cuGraphLaunch_ptsz, P, P) \
	LAUNCH(cuLaunch, P) \
	LAUNCH(cuLaunchCooperativeKernel, P, U, U, U, U, U, U, U, P, P) \
	LAUNCH(cuLaunchCooperativeKernelMultiDevice, P, U, U) \
	LAUNCH(cuLaunchCooperativeKernel_ptsz, P, U, U, U, U, U, U, U, P, P) \
	LAUNCH(cuLaunchGrid, P, U, U) \
	LAUNCH(cuLaunchGridAsync, P, U, U, P) \
	LAUNCH(cuLaunchKernel, P, U, U, U, U, U, U, U, P, P, P) \
	LAUNCH(cuLaunchKernelEx, P, P, P, P) \
	LAUNCH(cuLaunchKernelEx_ptsz, P, P, P, P) \
	LAUNCH(cuLaunchKernel_ptsz, P, U, U, U, U, U, U, U, P, P, P) \
	COPY(cuMemBatchDecompressAsync, GPU, P, Z, U, P, P) \
	COPY(cuMemBatchDecompressAsync_ptsz, GPU, P, Z, U, P, P) \
	COPY(cuMemcpy, LINE, Z, Z, Z) \
	COPY(cuMemcpy2DAsync_v2, PLANE, P, P) \
	COPY(cuMemcpy2DAsync_v2_ptsz, PLANE, P, P) \
	COPY(cuMemcpy2DUnaligned_v2, PLANE, P) \
	COPY(cuMemcpy2DUnaligned_v2_ptds, PLANE, P) \
	COPY(cuMemcpy2D_v2, PLANE, P) \
	COPY(cuMemcpy2D_v2_ptds, PLANE, P) \
	COPY(cuMemcpy3DAsync_v2, BOX, P, P) \
	COPY(cuMemcpy3DAsync_v2_ptsz, BOX, P, P) \
	COPY(cuMemcpy3DBatchAsync, PARTS, Z, P, P, Z, P) \
	COPY(cuMemcpy3DBatchAsync_ptsz, PARTS, Z, P, P, Z, P) \
	COPY(cuMemcpy3DBatchAsync_v2, PARTS, Z, P, Z, P) \
	COPY(cuMemcpy3DBatchAsync_v2_ptsz, PARTS, Z, P, Z, P) \
	COPY(cuMemcpy3DPeer, BOX, P) \
	COPY(cuMemcpy3DPeerAsync, BOX, P, P) \
	COPY(cuMemcpy3DPeerAsync_ptsz, BOX, P, P) \
	COPY(cuMemcpy3DPeer_ptds, BOX, P) \
	COPY(cuMemcpy3DWithAttributesAsync, PART, P, Z, P) \
	COPY(cuMemcpy3DWithAttributesAsync_ptsz, PART, P, Z, P) \
	COPY(cuMemcpy3D_v2, BOX, P) \
	COPY(cuMemcpy3D_v2_ptds, BOX, P) \
	COPY(cuMemcpyAsync, LINE, Z, Z, Z, P) \
	COPY(cuMemcpyAsync_ptsz, LINE, Z, Z, Z, P) \
	COPY(cuMemcpyAtoA_v2, GPU, P, Z, P, Z, Z) \
	COPY(cuMemcpyAtoA_v2_ptds, GPU, P, Z, P, Z, Z) \
	COPY(cuMemcpyAtoD_v2, GPU, Z, P, Z, Z) \
	COPY(cuMemcpyAtoD_v2_ptds, GPU, Z, P, Z, Z) \
	COPY(cuMemcpyAtoHAsync_v2, HOST, P, P, Z, Z, P) \
	COPY(cuMemcpyAtoHAsync_v2_ptsz, HOST, P, P, Z, Z, P) \
	COPY(cuMemcpyAtoH_v2, HOST, P, P, Z, Z) \
	COPY(cuMemcpyAtoH_v2_ptds, HOST, P, P, Z, Z) \
	COPY(cuMemcpyBatchAsync, LINES, P, P, P, Z, P, P, Z, P, P) \
	COPY(cuMemcpyBatchAsync_ptsz, LINES, P, P, P, Z, P, P, Z, P, P) \
	COPY(cuMemcpyBatchAsync_v2, LINES, P, P, P, Z, P, P, Z, P) \
	COPY(cuMemcpyBatchAsync_v2_ptsz, LINES, P, P, P, Z, P, P, Z, P) \
	COPY(cuMemcpyDtoA_v2, GPU, P, Z, Z, Z) \
	COPY(cuMemcpyDtoA_v2_ptds, GPU, P, Z, Z, Z) \
	COPY(cuMemcpyDtoDAsync_v2, GPU, Z, Z, Z, P) \
	COPY(cuMemcpyDtoDAsync_v2_ptsz, GPU, Z, Z, Z, P) \
	COPY(cuMemcpyDtoD_v2, GPU, Z, Z, Z) \
	COPY(cuMemcpyDtoD_v2_ptds, GPU, Z, Z, Z) \
	COPY(cuMemcpyDtoHAsync_v2, HOST, P, Z, Z, P) \
	COPY(cuMemcpyDtoHAsync_v2_ptsz, HOST, P, Z, Z, P) \
	COPY(cuMemcpyDtoH_v2, HOST, P, Z, Z) \
	COPY(cuMemcpyDtoH_v2_ptds, HOST, P, Z, Z) \
	COPY(cuMemcpyHtoAAsync_v2, HOST, P, Z, P, Z, P) \
	COPY(cuMemcpyHtoAAsync_v2_ptsz, HOST, P, Z, P, Z, P) \
	COPY(cuMemcpyHtoA_v2, HOST, P, Z, P, Z) \
	COPY(cuMemcpyHtoA_v2_ptds, HOST, P, Z, P, Z) \
	COPY(cuMemcpyHtoDAsync_v2, HOST, Z, P, Z, P) \
	COPY(cuMemcpyHtoDAsync_v2_ptsz, HOST, Z, P, Z, P) \
	COPY(cuMemcpyHtoD_v2, HOST, Z, P, Z) \
	COPY(cuMemcpyHtoD_v2_ptds, HOST, Z, P, Z) \
	COPY(cuMemcpyPeer, PEER, Z, P, Z, P, Z) \
	COPY(cuMemcpyPeerAsync, PEER, Z, P, Z, P, Z, P) \
	COPY(cuMemcpyPeerAsync_ptsz, PEER, Z, P, Z, P, Z, P) \
	COPY(cuMemcpyPeer_ptds, PEER, Z, P, Z, P, Z) \
	COPY(cuMemcpyWithAttributesAsync, LINE, Z, Z, Z, P, P) \
	COPY(cuMemcpyWithAttributesAsync_ptsz, LINE, Z, Z, Z, P, P) \
	COPY(cuMemcpy_ptds, LINE, Z, Z, Z) \
	COPY(cuMemsetD16Async, GPU, Z, U, Z, P) \
	COPY(cuMemsetD16Async_ptsz, GPU, Z, U, Z, P) \
	COPY(cuMemsetD16_v2, GPU, Z, U, Z) \
	COPY(cuMemsetD16_v2_ptds, GPU, Z, U, Z) \
	COPY(cuMemsetD2D16Async, GPU, Z, Z, U, Z, Z, P) \
	COPY(cuMemsetD2D16Async_ptsz, GPU, Z, Z, U, Z, Z, P) \
	COPY(cuMemsetD2D16_v2, GPU, Z, Z, U, Z, Z) \
	COPY(cuMemsetD2D16_v2_ptds, GPU, Z, Z, U, Z, Z) \
	COPY(cuMemsetD2D32Async, GPU, Z, Z, U, Z, Z, P) \
	COPY(cuMemsetD2D32Async_ptsz, GPU, Z, Z, U, Z, Z, P) \
	COPY(cuMemsetD2D32_v2, GPU, Z, Z, U, Z, Z) \
	COPY(cuMemsetD2D32_v2_ptds, GPU, Z, Z, U, Z, Z) \
	COPY(cuMemsetD2D8Async, GPU, Z, Z, U, Z, Z, P) \
	COPY(cuMemsetD2D8Async_ptsz, GPU, Z, Z, U, Z, Z, P) \
	COPY(cuMemsetD2D8_v2, GPU, Z, Z, U, Z, Z) \
	COPY(cuMemsetD2D8_v2_ptds, GPU, Z, Z, U, Z, Z) \
	COPY(cuMemsetD32Async, GPU, Z, U, Z, P) \
	COPY(cuMemsetD32Async_ptsz, GPU, Z, U, Z, P) \
	COPY(cuMemsetD32_v2, GPU, Z, U, Z) \
	COPY(cuMemsetD32_v2_ptds, GPU, Z, U, Z) \
	COPY(cuMemsetD8Async, GPU, Z, U, Z, P) \
	COPY(cuMemsetD8Async_ptsz, GPU, Z, U, Z, P) \
	COPY(cuMemsetD8_v2, GPU, Z, U, Z) \
	COPY(cuMemsetD8_v2_ptds, GPU, Z, U, Z) \
	WORK(cuGraphAddBatchMemOpNode, P, P, P, Z, P) \
	WORK(cuGraphAddMemcpyNode, P, P, P, Z, P, P) \
	WORK(cuGraphAddMemsetNode, P, P, P, Z, P, P) \
	WORK(cuGraphAddNode, P, P, P, Z, P) \
	WORK(cuGraphAddNode_v2, P, P, P, P, Z, P) \
	WORK(cuGraphBatchMemOpNodeSetParams, P, P) \
	WORK(cuGraphExecBatchMemOpNodeSetParams, P, P, P) \
	WORK(cuGraphExecChildGraphNodeSetParams, P, P, P) \
	WORK(cuGraphExecDestroy, P) \
	WORK(cuGraphExecKernelNodeSetParams, P, P, P) \
	WORK(cuGraphExecKernelNodeSetParams_v2, P, P, P) \
	WORK(cuGraphExecMemcpyNodeSetParams, P, P, P, P) \
	WORK(cuGraphExecMemsetNodeSetParams, P, P, P, P) \
	WORK(cuGraphExecNodeSetParams, P, P, P) \
	WORK(cuGraphExecUpdate, P, P, P, P) \
	WORK(cuGraphExecUpdate_v2, P, P, P) \
	WORK(cuGraphInstantiate, P, P, P, P, Z) \
	WORK(cuGraphInstantiateWithFlags, P, P, Z) \
	WORK(cuGraphInstantiateWithParams, P, P, P) \
	WORK(cuGraphInstantiateWithParams_ptsz, P, P, P) \
	WORK(cuGraphInstantiate_v2, P, P, P, P, Z) \
	WORK(cuGraphMemcpyNodeSetParams, P, P) \
	WORK(cuGraphMemsetNodeSetParams, P, P) \
	WORK(cuGraphNodeSetParams, P, P) \
	WORK(cuGraphUpload, P, P) \
	WORK(cuGraphUpload_ptsz, P, P) \
	WORK(cuGraphicsMapResources, U, P, P) \
	WORK(cuGraphicsMapResources_ptsz, U, P, P) \
	WORK(cuGraphicsUnmapResources, U, P, P) \
	WORK(cuGraphicsUnmapResources_ptsz, U, P, P) \
	WORK(cuLaunchHostFunc, P, P, P) \
	WORK(cuLaunchHostFunc_ptsz, P, P, P) \
	WORK(cuLaunchHostFunc_v2, P, P, P, U) \
	WORK(cuLaunchHostFunc_v2_ptsz, P, P, P, U) \
	WORK(cuLibraryLoadData, P, P, P, P, U, P, P, U) \
	WORK(cuLibraryLoadFromFile, P, P, P, P, U, P, P, U) \
	WORK(cuLibraryUnload, P) \
	WORK(cuMemDiscardAndPrefetchBatchAsync, P, P, Z, P, P, Z, Z, P) \
	WORK(cuMemDiscardAndPrefetchBatchAsync_ptsz, P, P, Z, P, P, Z, Z, P) \
	WORK(cuMemDiscardBatchAsync, P, P, Z, Z, P) \
	WORK(cuMemDiscardBatchAsync_ptsz, P, P, Z, Z, P) \
	WORK(cuMemMapArrayAsync, P, U, P) \
	WORK(cuMemMapArrayAsync_ptsz, P, U, P) \
	WORK(cuMemPrefetchAsync, Z, Z, U, P) \
	WORK(cuMemPrefetchAsync_ptsz, Z, Z, U, P) \
	WORK(cuMemPrefetchAsync_v2, Z, Z, Z, U, P) \
	WORK(cuMemPrefetchAsync_v2_ptsz, Z, Z, Z, U, P) \
	WORK(cuMemPrefetchBatchAsync, P, P, Z, P, P, Z, Z, P) \
	WORK(cuMemPrefetchBatchAsync_ptsz, P, P, Z, P, P, Z, Z, P) \
	WORK(cuModuleLoad, P, P) \
	WORK(cuModuleLoadData, P, P) \
	WORK(cuModuleLoadDataEx, P, P, U, P, P) \
	WORK(cuModuleLoadFatBinary, P, P) \
	WORK(cuModuleUnload, P) \
	WORK(cuSignalExternalSemaphoresAsync, P, P, U, P) \
	WORK(cuSignalExternalSemaphoresAsync_ptsz, P, P, U, P) \
	WORK(cuStreamAddCallback, P, P, P, U) \
	WORK(cuStreamAddCallback_ptsz, P, P, P, U) \
	WORK(cuStreamAttachMemAsync, P, Z, Z, U) \
	WORK(cuStreamAttachMemAsync_ptsz, P, Z, Z, U) \
	WORK(cuStreamBatchMemOp, P, U, P, U) \
	WORK(cuStreamBatchMemOp_ptsz, P, U, P, U) \
	WORK(cuStreamBatchMemOp_v2, P, U, P, U) \
	WORK(cuStreamBatchMemOp_v2_ptsz, P, U, P, U) \
	WORK(cuStreamWaitValue32, P, Z, U, U) \
	WORK(cuStreamWaitValue32_ptsz, P, Z, U, U) \
	WORK(cuStreamWaitValue32_v2, P, Z, U, U) \
	WORK(cuStreamWaitValue32_v2_ptsz, P, Z, U, U) \
	WORK(cuStreamWaitValue64, P, Z, Z, U) \
	WORK(cuStreamWaitValue64_ptsz, P, Z, Z, U) \
	WORK(cuStreamWaitValue64_v2, P, Z, Z, U) \
	WORK(cuStreamWaitValue64_v2_ptsz, P, Z, Z, U) \
	WORK(cuStreamWriteValue32, P, Z, U, U) \
	WORK(cuStreamWriteValue32_ptsz, P, Z, U, U) \
	WORK(cuStreamWriteValue32_v2, P, Z, U, U) \
	WORK(cuStreamWriteValue32_v2_ptsz, P, Z, U, U) \
	WORK(cuStreamWriteValue64, P, Z, Z, U) \
	WORK(cuStreamWriteValue64_ptsz, P, Z, Z, U) \
	WORK(cuStreamWriteValue64_v2, P, Z, Z, U) \
	WORK(cuStreamWriteValue64_v2_ptsz, P, Z, Z, U) \
	WORK(cuTexObjectCreate, P, P, P, P) \
	WORK(cuTexRefSetAddress2D_v3, P, P, Z, Z) \
	WORK(cuTexRefSetAddress_v2, P, P, Z, Z) \
	WORK(cuWaitExternalSemaphoresAsync, P, P, U, P) \
	WORK(cuWaitExternalSemaphoresAsync_ptsz, P, P, U, P) \
	OWN(cuMemAlloc_v2, P, Z) \
	OWN(cuMemAllocPitch_v2, P, P, Z, Z, U) \
	OWN(cuMemFree_v2, Z) \
	OWN(cuMemAllocManaged, P, Z, U) \
	OWN(cuMemCreate, P, Z, P, Z) \
	OWN(cuMemRelease, Z) \
	OWN(cuMemMap, Z, Z, Z, Z, Z) \
	OWN(cuMemUnmap, Z, Z) \
	OWN(cuMemSetAccess, Z, Z, P, Z) \
	OWN(cuMemGetAccess, P, P, Z) \
	OWN(cuMemExportToShareableHandle, P, Z, U, Z) \
	OWN(cuMemGetAllocationPropertiesFromHandle, P, Z) \
	OWN(cuMemImportFromShareableHandle, P, P, U) \
	OWN(cuArrayCreate_v2, P, P) \
	OWN(cuArray3DCreate_v2, P, P) \
	OWN(cuArrayDestroy, P) \
	OWN(cuMipmappedArrayCreate, P, P, U) \
	OWN(cuMipmappedArrayDestroy, P) \
	OWN(cuMemAllocAsync, P, Z, P) \
	OWN(cuMemAllocAsync_ptsz, P, Z, P) \
	OWN(cuMemAllocFromPoolAsync, P, Z, P, P) \
	OWN(cuMemAllocFromPoolAsync_ptsz, P, Z, P, P) \
	OWN(cuMemFreeAsync, Z, P) \
	OWN(cuMemFreeAsync_ptsz, Z, P) \
	OWN(cuMemPoolCreate, P, P) \
	OWN(cuMemPoolGetAttribute, P, U, P) \
	OWN(cuMemPoolSetAttribute, P, U, P) \
	OWN(cuMemPoolSetAccess, P, P, Z) \
	OWN(cuMemPoolTrimTo, P, Z) \
	OWN(cuMemPoolDestroy, P) \
	OWN(cuDeviceGraphMemTrim, U) \
	OWN(cuMemGetInfo_v2, P, P) \
	OWN(cuMemGetAddressRange_v2, P, P, Z) \
	OWN(cuPointerGetAttribute, P, U, Z) \
	OWN(cuPointerGetAttributes, U, P, P, Z) \
	OWN(cuDeviceTotalMem_v2, P, U) \
	OWN(cuIpcGetMemHandle, P, Z) \
	OWN(cuIpcOpenMemHandle, P, H, U) \
	OWN(cuIpcOpenMemHandle_v2, P, H, U) \
	OWN(cuIpcCloseMemHandle, Z) \
	OWN(cuMemRetainAllocationHandle, P, P) \
	OWN(cuMemGetHandleForAddressRange, P, Z, Z, U, Z) \
	OWN(cuMulticastBindAddr, Z, Z, Z, Z, Z) \
	OWN(cuMulticastBindAddr_v2, Z, U, Z, Z, Z, Z) \
	OWN(cuMulticastBindMem, Z, Z, Z, Z, Z, Z) \
	OWN(cuMulticastBindMem_v2, Z, U, Z, Z, Z, Z, Z) \
	OWN(cuMulticastCreate, P, P) \
	OWN(cuLogicalEndpointBindAddr, U, U, Z, P, Z, Z) \
	OWN(cuLogicalEndpointBindMem, U, U, Z, Z, Z, Z, Z) \
	OWN(cuPointerSetAttribute, P, U, Z) \
	OWN(cuStreamBeginCapture, P) \
	OWN(cuStreamBeginCapture_ptsz, P) \
	OWN(cuStreamBeginCapture_v2, P, U) \
	OWN(cuStreamBeginCapture_v2_ptsz, P, U) \
	OWN(cuStreamBeginCaptureToGraph, P, P, P, P, Z, U) \
	OWN(cuStreamBeginCaptureToGraph_ptsz, P, P, P, P, Z, U) \
	OWN(cuStreamBeginRecaptureToGraph, P, U, P, P, P) \
	OWN(cuStreamBeginRecaptureToGraph_ptsz, P, U, P, P, P) \
	OWN(cuStreamBeginCaptureToCig, P, P) \
	OWN(cuStreamBeginCaptureToCig_ptsz, P, P) \
	OWN(cuStreamEndCaptureToCig, P) \
	OWN(cuStreamEndCaptureToCig_ptsz, P) \
	OWN(cuStreamEndCapture, P, P) \
	OWN(cuStreamEndCapture_ptsz, P, P) \
	OWN(cuStreamCreateWithPriority, P, U, U) \
	OWN(cuGreenCtxStreamCreate, P, P, U, U) \
	OWN(cuStreamDestroy, P) \
	OWN(cuStreamDestroy_v2, P) \
	OWN(cuInit, U) \
	OWN(cuCtxCreate, P, U, U) \
	OWN(cuCtxCreate_v2, P, U, U) \
	OWN(cuCtxCreate_v3, P, P, U, U, U) \
	OWN(cuCtxCreate_v4, P, P, U, U) \
	OWN(cuDevicePrimaryCtxRetain, P, U) \
	OWN(cuCtxDestroy, P) \
	OWN(cuCtxDestroy_v2, P) \
	OWN(cuCtxDetach, P) \
	OWN(cuDevicePrimaryCtxReset, U) \
	OWN(cuDevicePrimaryCtxReset_v2, U) \
	OWN(cuDevicePrimaryCtxRelease, U) \
	OWN(cuDevicePrimaryCtxRelease_v2, U) \
	OWN(cuCtxEnablePeerAccess, P, U) \
	OWN(cuCtxSynchronize) \
	OWN(cuCtxSynchronize_v2, P) \
	OWN(cuEventSynchronize, P) \
	OWN(cuStreamSynchronize, P) \
	OWN(cuStreamSynchronize_ptsz, P) \
	OWN(cuLibraryGetKernel, P, P, P) \
	OWN(cuLibraryEnumerateKernels, P, U, P) \
	OWN(cuModuleGetFunction, P, P, P) \
	OWN(cuKernelGetFunction, P, P) \
	OWN(cuGetProcAddress, P, P, U, Z) \
	OWN(cuGetProcAddress_v2, P, P, U, Z, P) \
	/* the end */
/* clang-format on */

/* PARAMS(P, Z) is "P a1, Z a2" and NAMES(P, Z) is "a1, a2". */
#define SW_COUNT_(_0, _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, n, ...) n
#define SW_COUNT(...) SW_COUNT_(0 __VA_OPT__(, ) __VA_ARGS__, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define SW_GLUE_(a, b) a##b
#define SW_GLUE(a, b) SW_GLUE_(a, b)
#define SW_P0() void
#define SW_P1(t) t a1
#define SW_P2(t, ...) t a2, SW_P1(__VA_ARGS__)
#define SW_P3(t, ...) t a3, SW_P2(__VA_ARGS__)
#define SW_P4(t, ...) t a4, SW_P3(__VA_ARGS__)
#define SW_P5(t, ...) t a5, SW_P4(__VA_ARGS__)
#define SW_P6(t, ...) t a6, SW_P5(__VA_ARGS__)
#define SW_P7(t, ...) t a7, SW_P6(__VA_ARGS__)
#define SW_P8(t, ...) t a8, SW_P7(__VA_ARGS__)
#define SW_P9(t, ...) t a9, SW_P8(__VA_ARGS__)
#define SW_P10(t, ...) t a10, SW_P9(__VA_ARGS__)
#define SW_P11(t, ...) t a11, SW_P10(__VA_ARGS__)
#define SW_N0
#define SW_N1 a1
#define SW_N2 a2, SW_N1
#define SW_N3 a3, SW_N2
#define SW_N4 a4, SW_N3
#define SW_N5 a5, SW_N4
#define SW_N6 a6, SW_N5
#define SW_N7 a7, SW_N6
#define SW_N8 a8, SW_N7
#define SW_N9 a9, SW_N8
#define SW_N10 a10, SW_N9
#define SW_N11 a11, SW_N10
#define SW_PARAMS(...) SW_GLUE(SW_P, SW_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define SW_NAMES(...) SW_GLUE(SW_N, SW_COUNT(__VA_ARGS__))

#endif
