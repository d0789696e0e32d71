/* The CUDA driver, its compiler, its products of matrices and its collectives, found when a program first wants them:
 * xlac is built without CUDA, and these declarations are our own, of the libraries' published interface. The table of
 * entry points is driver.def.
 *
 * Where XLAC_CUDA_DRIVER names a library, that one is taken for libcuda, and NVRTC's entry points are looked for in it
 * first: so programs run on a driver that simulates (tests/cuda/driver). */
#ifndef XLAC_CUDA_DRIVER_H
#define XLAC_CUDA_DRIVER_H

#include "../base/memory.h"
#include "../base/status.h"

typedef int cuda_result;         /* CUresult; 0: success */
typedef int cuda_compile_result; /* nvrtcResult; 0: success */
typedef int cuda_ordinal;        /* CUdevice */
typedef uint64_t cuda_address;   /* CUdeviceptr */
typedef struct CUctx_st *cuda_context;
typedef struct CUstream_st *cuda_stream;
typedef struct CUevent_st *cuda_event;
typedef struct CUmod_st *cuda_module;
typedef struct CUfunc_st *cuda_function;
typedef struct CUmemPoolHandle_st *cuda_pool;
typedef struct CUgraph_st *cuda_graph;
typedef struct CUgraphExec_st *cuda_graph_exec;
typedef struct CUgraphNode_st *cuda_graph_node;
typedef struct _nvrtcProgram *cuda_source_handle;
typedef int cuda_blas_result; /* cublasStatus_t; 0: success */
typedef struct cublasLtContext *cuda_blas_handle;
typedef struct cuda_blas_opaque *cuda_blas_object; /* of a matmul, a matrix's layout, a preference */
typedef int cuda_nccl_result;                      /* ncclResult_t; 0: success */
typedef struct ncclComm *cuda_nccl;
/* ncclUniqueId, by which the ranks of a communicator find one another. */
typedef struct cuda_nccl_id {
  char bytes[128];
} cuda_nccl_id;
/* ncclConfig_t of version 2.14, the first that has it. */
typedef struct cuda_nccl_config {
  size_t bytes;
  unsigned magic, version;
  int blocking, unused;
} cuda_nccl_config;
enum { CUDA_NCCL_VERSION = 21400 };
#define CUDA_NCCL_MAGIC 0xcafebeefu

/* Those of CUresult that are told apart. */
enum {
  CUDA_SUCCESS = 0,
  CUDA_INVALID_VALUE = 1,
  CUDA_OUT_OF_MEMORY = 2,
  CUDA_NOT_INITIALISED = 3,
  CUDA_NO_DEVICE = 100,
  CUDA_NO_BINARY_FOR_GPU = 209,
  CUDA_NOT_FOUND = 500,
  CUDA_NOT_READY = 600,
  CUDA_ILLEGAL_ADDRESS = 700,
  CUDA_LAUNCH_FAILED = 719
};

/* CUdevice_attribute */
typedef enum cuda_attribute {
  CUDA_MAX_THREADS_PER_BLOCK = 1,
  CUDA_MAX_SHARED_PER_BLOCK = 8,
  CUDA_WARP_SIZE = 10,
  CUDA_MAX_REGISTERS_PER_BLOCK = 12,
  CUDA_CLOCK_KHZ = 13,
  CUDA_MULTIPROCESSORS = 16,
  CUDA_MEMORY_CLOCK_KHZ = 36,
  CUDA_MEMORY_BUS_BITS = 37,
  CUDA_L2_BYTES = 38,
  CUDA_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  CUDA_CAPABILITY_MAJOR = 75,
  CUDA_CAPABILITY_MINOR = 76,
  CUDA_MAX_SHARED_PER_MULTIPROCESSOR = 81,
  CUDA_MAX_SHARED_PER_BLOCK_OPTIN = 97,
  CUDA_POOLS_SUPPORTED = 115
} cuda_attribute;

/* CUfunction_attribute */
typedef enum cuda_function_attribute {
  CUDA_FUNCTION_MAX_THREADS = 0,
  CUDA_FUNCTION_SHARED_BYTES = 1,
  CUDA_FUNCTION_LOCAL_BYTES = 3,
  CUDA_FUNCTION_REGISTERS = 4,
  CUDA_FUNCTION_MAX_DYNAMIC_SHARED = 8
} cuda_function_attribute;

/* CUpointer_attribute; CUmemorytype */
typedef enum cuda_pointer_attribute {
  CUDA_POINTER_CONTEXT = 1,
  CUDA_POINTER_MEMORY_TYPE = 2,
  CUDA_POINTER_DEVICE = 9
} cuda_pointer_attribute;
enum { CUDA_MEMORY_HOST = 1, CUDA_MEMORY_DEVICE = 2 };

/* Flags. */
enum {
  CUDA_STREAM_NON_BLOCKING = 1, /* of cuStreamCreate: doesn't wait for the stream of number 0 */
  CUDA_EVENT_NO_TIMING = 2,     /* of cuEventCreate */
  CUDA_HOST_PORTABLE = 1,       /* of cuMemHostAlloc: pinned for all contexts */
  CUDA_CAPTURE_RELAXED = 2      /* of cuStreamBeginCapture: whatever else is called meanwhile */
};

/* CUmemPool_attribute: bytes that stay with the pool when streams are waited for, an uint64_t. */
typedef enum cuda_pool_attribute { CUDA_POOL_RELEASE_THRESHOLD = 4 } cuda_pool_attribute;

/* CUmemPoolProps */
typedef struct cuda_pool_properties {
  int allocation;    /* 1: pinned, the only one that there is */
  int handles;       /* 0: not shared with processes */
  int location_type; /* 1: a device */
  int location;      /* its ordinal */
  void *security;
  size_t most; /* 0: the system's limit */
  unsigned short usage;
  unsigned char reserved[54];
} cuda_pool_properties;

/* CUDA_KERNEL_NODE_PARAMS_v2 */
typedef struct cuda_kernel_node {
  cuda_function function;
  unsigned grid[3], block[3], shared_bytes;
  void **parameters, **extra;
  void *kernel;         /* instead of the function: unused */
  cuda_context context; /* NULL: the current one */
} cuda_kernel_node;

/* CUDA_CONDITIONAL_NODE_PARAMS, and CUgraphNodeParams with it. */
typedef struct cuda_condition_node {
  uint64_t handle;
  int type;           /* 0: if, 1: while */
  unsigned size;      /* 1 */
  cuda_graph *graphs; /* the driver's answer: one that is empty, for what is to be run */
  cuda_context context;
} cuda_condition_node;
typedef struct cuda_node_parameters {
  int type, reserved[3]; /* CUDA_NODE_CONDITION */
  union {
    cuda_condition_node condition;
    int64_t room[29];
  } as;
  int64_t more;
} cuda_node_parameters;
enum { CUDA_NODE_CONDITION = 13, CUDA_CONDITION_INITIAL = 1 /* a flag of handles: their first value counts */ };

/* One side of a copy, and CUDA_MEMCPY3D. */
typedef struct cuda_copy_side {
  size_t x, y, z, level;
  int memory; /* CUDA_MEMORY_DEVICE */
  const void *host;
  cuda_address device;
  void *array, *reserved;
  size_t pitch, height;
} cuda_copy_side;
typedef struct cuda_copy_node {
  cuda_copy_side from, to;
  size_t bytes, height, depth;
} cuda_copy_node;

/* CUDA_MEMCPY2D: the side that is read, and that is written. */
typedef struct cuda_rows_side {
  size_t x, y;
  int memory; /* CUDA_MEMORY_DEVICE */
  void *host;
  cuda_address device;
  void *array;
  size_t pitch;
} cuda_rows_side;
typedef struct cuda_copy_rows {
  cuda_rows_side from, to;
  size_t bytes, rows;
} cuda_copy_rows;

/* cublasLtMatmulHeuristicResult_t */
typedef struct cuda_blas_choice {
  uint64_t algorithm[8];
  size_t workspace_bytes;
  int state; /* 0: it can be used */
  float waves;
  int reserved[4];
} cuda_blas_choice;

/* A library that may be missing. */
typedef struct cuda_library {
  void *handle;
  char path[512];     /* where it was found; "": nowhere */
  char missing[1024]; /* where it was looked for */
} cuda_library;

/* The entry points, which are those of one library for all devices of a process. Immutable once opened,
 * but for blas and nccl, which their device's lock guards until they are there. */
typedef struct cuda_driver {
  void *driver_library;
  cuda_library compiler, blas, nccl; /* NVRTC, cuBLASLt, NCCL */
  /* In the order of the table, those of a library one behind the other. */
#define CUDA_CALL(result, name, parameters) result(*name) parameters;
#define CUDA_NEWER(result, name, parameters) result(*name) parameters;
#define CUDA_COMPILER(result, name, parameters) result(*name) parameters;
#define CUDA_BLAS(result, name, parameters) result(*name) parameters;
#define CUDA_NCCL(result, name, parameters) result(*name) parameters;
#include "driver.def"
  bool conditions;                    /* graphs can have nodes that are run by conditions */
  int version;                        /* of the driver: 1000 * major + 10 * minor */
  int compiler_major, compiler_minor; /* of NVRTC; 0: there is none */
} cuda_driver;

/* Loads the driver and begins it. Other libraries may be missing: NVRTC where a program has no kernels, cuBLASLt
 * everywhere. Opened libraries
 * stay in the process. DEVICE where there is no driver, too old a driver or none that works, with the paths that were
 * tried. */
XLAC_MUST_USE int cuda_driver_open(cuda_driver *out, xlac_error *err);
/* The driver alone, for whoever asks it something. */
XLAC_MUST_USE int cuda_driver_begin(cuda_driver *out, xlac_error *err);
/* Looks for cuBLASLt, which is large and which few programs need; once. */
void cuda_driver_find_blas(cuda_driver *d);
/* Likewise NCCL, which programs on several GPUs want. */
void cuda_driver_find_nccl(cuda_driver *d);
/* The driver's own name and text of its error, after what was being done: DEVICE, or OUT_OF_MEMORY. 0: no error. */
XLAC_MUST_USE int cuda_check(const cuda_driver *d, cuda_result result, const char *doing, xlac_error *err);

#endif
