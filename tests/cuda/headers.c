/* Whether the CUDA device's own declarations (csrc/cuda/driver.h) are those of NVIDIA's cuda.h: compiled, never run.
 * test_headers.py does so where the package nvidia-cuda-runtime is installed. */
#include <cuda.h>
#include <library_types.h>
#include <stddef.h>

/* Both call it so; ours comes second. */
enum { NVIDIA_SUCCESS = CUDA_SUCCESS };
#define CUDA_SUCCESS OURS_SUCCESS
#include "../../csrc/cuda/driver.h"
#undef CUDA_SUCCESS

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #ours)
#define SAME_SIZE(ours, theirs) SAME(sizeof(ours), sizeof(theirs))
#define SAME_PLACE(ours, field, theirs, other) SAME(offsetof(ours, field), offsetof(theirs, other))

SAME(OURS_SUCCESS, NVIDIA_SUCCESS);
SAME(CUDA_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(CUDA_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(CUDA_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(CUDA_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(CUDA_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED);
SAME(CUDA_MAX_THREADS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CUDA_MAX_SHARED_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SAME(CUDA_WARP_SIZE, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME(CUDA_MAX_REGISTERS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
SAME(CUDA_CLOCK_KHZ, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME(CUDA_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CUDA_MEMORY_CLOCK_KHZ, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME(CUDA_MEMORY_BUS_BITS, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME(CUDA_L2_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(CUDA_MAX_THREADS_PER_MULTIPROCESSOR, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SAME(CUDA_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CUDA_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CUDA_MAX_SHARED_PER_MULTIPROCESSOR, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME(CUDA_MAX_SHARED_PER_BLOCK_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(CUDA_POOLS_SUPPORTED, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME(CUDA_FUNCTION_MAX_THREADS, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CUDA_FUNCTION_SHARED_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(CUDA_FUNCTION_LOCAL_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME(CUDA_FUNCTION_REGISTERS, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(CUDA_FUNCTION_MAX_DYNAMIC_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CUDA_POINTER_CONTEXT, CU_POINTER_ATTRIBUTE_CONTEXT);
SAME(CUDA_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(CUDA_POINTER_DEVICE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(CUDA_MEMORY_HOST, CU_MEMORYTYPE_HOST);
SAME(CUDA_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME(CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(CUDA_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(CUDA_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME(CUDA_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(CUDA_POOL_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);

SAME_SIZE(cuda_pool_properties, CUmemPoolProps);
SAME_PLACE(cuda_pool_properties, allocation, CUmemPoolProps, allocType);
SAME_PLACE(cuda_pool_properties, handles, CUmemPoolProps, handleTypes);
SAME_PLACE(cuda_pool_properties, location_type, CUmemPoolProps, location);
SAME_PLACE(cuda_pool_properties, security, CUmemPoolProps, win32SecurityAttributes);
SAME_PLACE(cuda_pool_properties, most, CUmemPoolProps, maxSize);
SAME_PLACE(cuda_pool_properties, usage, CUmemPoolProps, usage);
SAME_SIZE(cuda_kernel_node, CUDA_KERNEL_NODE_PARAMS);
SAME_PLACE(cuda_kernel_node, function, CUDA_KERNEL_NODE_PARAMS, func);
SAME_PLACE(cuda_kernel_node, grid, CUDA_KERNEL_NODE_PARAMS, gridDimX);
SAME_PLACE(cuda_kernel_node, block, CUDA_KERNEL_NODE_PARAMS, blockDimX);
SAME_PLACE(cuda_kernel_node, shared_bytes, CUDA_KERNEL_NODE_PARAMS, sharedMemBytes);
SAME_PLACE(cuda_kernel_node, parameters, CUDA_KERNEL_NODE_PARAMS, kernelParams);
SAME_PLACE(cuda_kernel_node, kernel, CUDA_KERNEL_NODE_PARAMS, kern);
SAME_PLACE(cuda_kernel_node, context, CUDA_KERNEL_NODE_PARAMS, ctx);
#if CUDA_VERSION >= 12040
SAME(CUDA_NODE_CONDITION, CU_GRAPH_NODE_TYPE_CONDITIONAL);
SAME(CUDA_CONDITION_INITIAL, CU_GRAPH_COND_ASSIGN_DEFAULT);
SAME_SIZE(cuda_node_parameters, CUgraphNodeParams);
SAME_PLACE(cuda_node_parameters, type, CUgraphNodeParams, type);
SAME_PLACE(cuda_node_parameters, as.condition.handle, CUgraphNodeParams, conditional.handle);
SAME_PLACE(cuda_node_parameters, as.condition.type, CUgraphNodeParams, conditional.type);
SAME_PLACE(cuda_node_parameters, as.condition.size, CUgraphNodeParams, conditional.size);
SAME_PLACE(cuda_node_parameters, as.condition.graphs, CUgraphNodeParams, conditional.phGraph_out);
SAME_PLACE(cuda_node_parameters, as.condition.context, CUgraphNodeParams, conditional.ctx);
#endif
SAME_SIZE(cuda_copy_rows, CUDA_MEMCPY2D);
SAME_PLACE(cuda_copy_rows, from.memory, CUDA_MEMCPY2D, srcMemoryType);
SAME_PLACE(cuda_copy_rows, from.device, CUDA_MEMCPY2D, srcDevice);
SAME_PLACE(cuda_copy_rows, from.pitch, CUDA_MEMCPY2D, srcPitch);
SAME_PLACE(cuda_copy_rows, to.x, CUDA_MEMCPY2D, dstXInBytes);
SAME_PLACE(cuda_copy_rows, to.device, CUDA_MEMCPY2D, dstDevice);
SAME_PLACE(cuda_copy_rows, to.pitch, CUDA_MEMCPY2D, dstPitch);
SAME_PLACE(cuda_copy_rows, bytes, CUDA_MEMCPY2D, WidthInBytes);
SAME_PLACE(cuda_copy_rows, rows, CUDA_MEMCPY2D, Height);
SAME_SIZE(cuda_copy_node, CUDA_MEMCPY3D);
SAME_PLACE(cuda_copy_node, from.memory, CUDA_MEMCPY3D, srcMemoryType);
SAME_PLACE(cuda_copy_node, from.host, CUDA_MEMCPY3D, srcHost);
SAME_PLACE(cuda_copy_node, from.device, CUDA_MEMCPY3D, srcDevice);
SAME_PLACE(cuda_copy_node, from.array, CUDA_MEMCPY3D, srcArray);
SAME_PLACE(cuda_copy_node, from.pitch, CUDA_MEMCPY3D, srcPitch);
SAME_PLACE(cuda_copy_node, from.height, CUDA_MEMCPY3D, srcHeight);
SAME_PLACE(cuda_copy_node, to.x, CUDA_MEMCPY3D, dstXInBytes);
SAME_PLACE(cuda_copy_node, to.device, CUDA_MEMCPY3D, dstDevice);
SAME_PLACE(cuda_copy_node, to.pitch, CUDA_MEMCPY3D, dstPitch);
SAME_PLACE(cuda_copy_node, bytes, CUDA_MEMCPY3D, WidthInBytes);
SAME_PLACE(cuda_copy_node, height, CUDA_MEMCPY3D, Height);
SAME_PLACE(cuda_copy_node, depth, CUDA_MEMCPY3D, Depth);
