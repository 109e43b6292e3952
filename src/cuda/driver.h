/* The part of the CUDA driver interface that Sharewell uses: our own minimal declarations, so that
 * everything builds without CUDA.
 *
 * Names, numbers and layouts are the driver's; what is not needed is left out. Shared by the
 * preloaded library (src/runtime) and the emulated driver (emu). A structure or a number is added
 * here when one of them needs it. tests/runtime/entry_points checks it against a real cuda.h, where
 * one is installed.
 */
#ifndef SW_CUDA_DRIVER_H
#define SW_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemHandle; /* the driver calls it a generic allocation handle */

typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef void (*CUhostFn)(void *data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *data);

typedef struct {
	unsigned char bytes[16];
} CUuuid;

enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_DEINITIALIZED = 4,
	CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_INVALID_IMAGE = 200,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	CUDA_ERROR_ALREADY_MAPPED = 208,
	CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
	CUDA_ERROR_NOT_MAPPED = 211,
	CUDA_ERROR_UNSUPPORTED_LIMIT = 215,
	CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
	CUDA_ERROR_INVALID_PTX = 218,
	CUDA_ERROR_FILE_NOT_FOUND = 301,
	CUDA_ERROR_OPERATING_SYSTEM = 304,
	CUDA_ERROR_INVALID_HANDLE = 400,
	CUDA_ERROR_ILLEGAL_STATE = 401,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_ILLEGAL_ADDRESS = 700,
	CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
	CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
	CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
	CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
	CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
	CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
	CUDA_ERROR_LAUNCH_FAILED = 719,
	CUDA_ERROR_NOT_PERMITTED = 800,
	CUDA_ERROR_NOT_SUPPORTED = 801,
	CUDA_ERROR_SYSTEM_NOT_READY = 802,
	CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
	CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
	CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
	CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
	CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
	CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
	CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
	CUDA_ERROR_CAPTURED_EVENT = 907,
	CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
	CUDA_ERROR_TIMEOUT = 909,
	CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910,
	CUDA_ERROR_GRAPH_RECAPTURE_FAILURE = 918,
	CUDA_ERROR_UNKNOWN = 999,
};

/* ---- memory that is mapped by hand */

enum {
	CU_MEM_LOCATION_INVALID = 0,
	CU_MEM_LOCATION_DEVICE = 1,
	CU_MEM_LOCATION_HOST = 2,
	CU_MEM_LOCATION_HOST_NUMA = 3,
	CU_MEM_LOCATION_HOST_NUMA_CURRENT = 4
};

typedef struct {
	int type;
	int id;
} CUmemLocation;

enum { CU_MEM_ALLOCATION_PINNED = 1 };
enum { CU_MEM_HANDLE_NONE = 0, CU_MEM_HANDLE_FILE_DESCRIPTOR = 1, CU_MEM_HANDLE_FABRIC = 8 };

typedef struct {
	int type;
	int requested_handle_types;
	CUmemLocation location;
	void *win32;
	unsigned char compression;
	unsigned char rdma_capable;
	unsigned short usage;
	unsigned char reserved[4];
} CUmemAllocationProp;

enum { CU_MEM_ACCESS_NONE = 0, CU_MEM_ACCESS_READ = 1, CU_MEM_ACCESS_READWRITE = 3 };

typedef struct {
	CUmemLocation location;
	int flags;
} CUmemAccessDesc;

enum { CU_MEM_GRANULARITY_MINIMUM = 0, CU_MEM_GRANULARITY_RECOMMENDED = 1 };

/* ---- pools */

typedef struct {
	int type;
	int handle_types;
	CUmemLocation location;
	void *win32;
	size_t max_size;
	unsigned short usage;
	unsigned char reserved[54];
} CUmemPoolProps;

enum {
	CU_MEMPOOL_RELEASE_THRESHOLD = 4,
	CU_MEMPOOL_RESERVED_CURRENT = 5,
	CU_MEMPOOL_RESERVED_HIGH = 6,
	CU_MEMPOOL_USED_CURRENT = 7,
	CU_MEMPOOL_USED_HIGH = 8,
};

enum { CU_GRAPH_MEM_RESERVED_CURRENT = 2 };

/* ---- arrays and copies */

typedef struct {
	size_t width, height;
	int format;
	unsigned channels;
} CUarrayShape;

typedef struct {
	size_t width, height, depth;
	int format;
	unsigned channels;
	unsigned flags;
} CUarray3dShape;

enum { CU_MEMORY_HOST = 1, CU_MEMORY_DEVICE = 2, CU_MEMORY_ARRAY = 3, CU_MEMORY_UNIFIED = 4 };

typedef struct {
	size_t src_x, src_y;
	int src_type;
	const void *src_host;
	CUdeviceptr src_device;
	CUarray src_array;
	size_t src_pitch;
	size_t dst_x, dst_y;
	int dst_type;
	void *dst_host;
	CUdeviceptr dst_device;
	CUarray dst_array;
	size_t dst_pitch;
	size_t width, height;
} CUcopy2d;

/* The contexts are those of a copy between GPUs and reserved in all others. */
typedef struct {
	size_t src_x, src_y, src_z, src_level;
	int src_type;
	const void *src_host;
	CUdeviceptr src_device;
	CUarray src_array;
	CUcontext src_context;
	size_t src_pitch, src_height;
	size_t dst_x, dst_y, dst_z, dst_level;
	int dst_type;
	void *dst_host;
	CUdeviceptr dst_device;
	CUarray dst_array;
	CUcontext dst_context;
	size_t dst_pitch, dst_height;
	size_t width, height, depth;
} CUcopy3d;

/* One end of a copy of a batch. */
enum { CU_COPY_END_POINTER = 1, CU_COPY_END_ARRAY = 2 };
typedef struct {
	int type;
	union {
		struct {
			CUdeviceptr address;
			size_t row_length, layer_height;
			CUmemLocation hint;
		};
		struct {
			CUarray array;
			size_t x, y, z;
		};
	};
} CUcopyEnd;

typedef struct {
	CUcopyEnd from, to;
	size_t width, height, depth;
	int order;
	unsigned flags;
} CUcopyBox;

enum { CU_HOST_PORTABLE = 1, CU_HOST_DEVICEMAP = 2, CU_HOST_WRITECOMBINED = 4 };
enum { CU_IPC_HANDLE_BYTES = 64 };
typedef struct {
	char bytes[CU_IPC_HANDLE_BYTES];
} CUipcHandle;

/* ---- launches and graphs */

typedef struct {
	unsigned grid[3];
	unsigned block[3];
	unsigned shared_bytes;
	CUstream stream;
	void *attributes;
	unsigned attribute_count;
} CUlaunchConfig;

typedef struct {
	CUfunction function;
	unsigned grid[3];
	unsigned block[3];
	unsigned shared_bytes;
	void **params;
	void **extra;
	void *kernel;
	CUcontext context;
} CUkernelNode;

typedef struct {
	CUmemPoolProps pool;
	const CUmemAccessDesc *access;
	size_t access_count;
	size_t bytes;
	CUdeviceptr address;
} CUallocNode;

typedef struct {
	CUdeviceptr destination;
	size_t pitch;
	unsigned value;
	unsigned element_bytes;
	size_t width, height;
} CUmemsetNode;

typedef struct {
	CUhostFn function;
	void *data;
} CUhostNode;

/* What is said of an edge beyond its ends; the emulator knows none but the plain one, all zero. */
typedef struct {
	unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;

typedef struct {
	uint64_t flags;
	CUstream upload_stream;
	CUgraphNode error_node;
	int result;
} CUinstantiateParams;

typedef struct {
	int result;
	CUgraphNode error_node, error_from_node;
} CUexecUpdateResult;

enum {
	CU_GRAPH_NODE_KERNEL = 0,
	CU_GRAPH_NODE_MEMCPY = 1,
	CU_GRAPH_NODE_MEMSET = 2,
	CU_GRAPH_NODE_HOST = 3,
	CU_GRAPH_NODE_GRAPH = 4,
	CU_GRAPH_NODE_EMPTY = 5,
	CU_GRAPH_NODE_WAIT_EVENT = 6,
	CU_GRAPH_NODE_RECORD_EVENT = 7,
	CU_GRAPH_NODE_MEM_ALLOC = 10,
	CU_GRAPH_NODE_MEM_FREE = 11
};

/* How a graph is instantiated. */
enum {
	CU_GRAPH_AUTO_FREE_ON_LAUNCH = 1,
	CU_GRAPH_UPLOAD = 2,
	CU_GRAPH_DEVICE_LAUNCH = 4,
	CU_GRAPH_NODE_PRIORITY = 8,
	CU_GRAPH_FLAGS_ALL = 15
};

enum { CU_CAPTURE_MODE_GLOBAL = 0, CU_CAPTURE_MODE_THREAD_LOCAL = 1, CU_CAPTURE_MODE_RELAXED = 2 };
enum { CU_CAPTURE_NONE = 0, CU_CAPTURE_ACTIVE = 1, CU_CAPTURE_INVALIDATED = 2 };

#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)
enum { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };
enum { CU_EVENT_DEFAULT = 0, CU_EVENT_BLOCKING_SYNC = 1, CU_EVENT_DISABLE_TIMING = 2 };

/* ---- attributes */

enum {
	CU_POINTER_CONTEXT = 1,
	CU_POINTER_MEMORY_TYPE = 2,
	CU_POINTER_DEVICE_POINTER = 3,
	CU_POINTER_HOST_POINTER = 4,
	CU_POINTER_SYNC_MEMOPS = 6,
	CU_POINTER_BUFFER_ID = 7,
	CU_POINTER_IS_MANAGED = 8,
	CU_POINTER_DEVICE_ORDINAL = 9,
	CU_POINTER_IS_LEGACY_IPC_CAPABLE = 10,
	CU_POINTER_RANGE_START = 11,
	CU_POINTER_RANGE_SIZE = 12,
	CU_POINTER_MAPPED = 13,
	CU_POINTER_POOL = 17,
};

enum {
	CU_DEVICE_MULTIPROCESSORS = 16,
	CU_DEVICE_PCI_BUS = 33,
	CU_DEVICE_PCI_DEVICE = 34,
	CU_DEVICE_UNIFIED_ADDRESSING = 41,
	CU_DEVICE_PCI_DOMAIN = 50,
	CU_DEVICE_CAPABILITY_MAJOR = 75,
	CU_DEVICE_CAPABILITY_MINOR = 76,
	CU_DEVICE_VMM_SUPPORTED = 102,
	CU_DEVICE_POOLS_SUPPORTED = 115,
	CU_DEVICE_HOST_NUMA_ID = 134,
};

/* ---- checkpoints of other processes */

enum { CU_PROCESS_RUNNING = 0, CU_PROCESS_LOCKED = 1, CU_PROCESS_CHECKPOINTED = 2, CU_PROCESS_FAILED = 3 };

typedef struct {
	unsigned timeout_ms;
	unsigned reserved0;
	uint64_t reserved1[7];
} CUcheckpointLockArgs;

typedef struct {
	CUuuid from, to;
} CUcheckpointGpuPair;

/* Where a process goes that was on other GPUs; if there are pairs, every GPU
 * that it knows is in one. */
typedef struct {
	CUcheckpointGpuPair *pairs;
	unsigned pair_count;
	char reserved[52];
} CUcheckpointRestoreArgs;
_Static_assert(sizeof(CUcheckpointLockArgs) == 64 && sizeof(CUcheckpointRestoreArgs) == 64, "as the driver has them");

enum { CU_GETPROC_LEGACY_STREAM = 1, CU_GETPROC_PER_THREAD_STREAM = 2 };
enum { CU_GETPROC_FOUND = 0, CU_GETPROC_NOT_FOUND = 1, CU_GETPROC_VERSION_TOO_LOW = 2 };

#endif
