// The CUDA driver behind a table of functions, opened at run time: nothing of CUDA is needed to
// build.
//
// Declares in our own words the few types, numbers and functions that are used (CUDA driver API
// manual). Tests fill the table with a driver of their own that records what it is asked.
#ifndef FUSE_RUNTIME_CUDA_DRIVER_H
#define FUSE_RUNTIME_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "include/fuse_rt.h"

typedef int CudaResult;
typedef int CudaDevice;
typedef unsigned long long CudaPointer;
typedef struct CudaContext CudaContext;
typedef struct CudaModule CudaModule;
typedef struct CudaFunction CudaFunction;
typedef struct CudaStream CudaStream;
typedef struct CudaEvent CudaEvent;

enum { // CUresult
    CUDA_OK = 0,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_STUB_LIBRARY = 34,
    CUDA_NO_DEVICE = 100,
    CUDA_NO_BINARY_FOR_GPU = 209,
    CUDA_INVALID_PTX = 218,
    CUDA_UNSUPPORTED_PTX_VERSION = 222,
};
enum { // CUdevice_attribute
    CUDA_MULTIPROCESSOR_COUNT = 16,
    CUDA_CAPABILITY_MAJOR = 75,
    CUDA_CAPABILITY_MINOR = 76,
    CUDA_SHARED_PER_BLOCK_OPTIN = 97,
};
enum {                    // CUfunction_attribute
    CUDA_LOCAL_BYTES = 3, // of a thread
    CUDA_REGISTERS = 4,   // of a thread
    CUDA_MAX_DYNAMIC_SHARED = 8,
};
enum { // CUtensorMapDataType
    CUDA_MAP_U8 = 0,
    CUDA_MAP_U16 = 1,
    CUDA_MAP_U32 = 2,
    CUDA_MAP_U64 = 4,
    CUDA_MAP_F16 = 6,
    CUDA_MAP_F32 = 7,
    CUDA_MAP_F64 = 8,
    CUDA_MAP_BF16 = 9,
};
enum { CUDA_MAP_PROMOTE_256 = 3 };     // CUtensorMapL2promotion
enum { CUDA_STREAM_NON_BLOCKING = 1 }; // CUstream_flags
enum {                                 // CUjit_option
    CUDA_JIT_ERROR_LOG = 5,
    CUDA_JIT_ERROR_LOG_SIZE = 6,
};
enum { // CUlaunchAttributeID
    CUDA_LAUNCH_CLUSTER = 4,
    CUDA_LAUNCH_PROGRAMMATIC = 6,
};

typedef struct CudaLaunchAttribute { // CUlaunchAttribute
    int id;
    char pad[4];
    union {
        char bytes[64];
        struct {
            unsigned x, y, z;
        } cluster;
        int programmatic;
    } value;
} CudaLaunchAttribute;

typedef struct CudaLaunchConfig { // CUlaunchConfig
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    CudaStream *stream;
    CudaLaunchAttribute *attributes;
    unsigned nattributes;
} CudaLaunchConfig;

typedef struct CudaDriver {
#define CUDA(field, symbol, params)          CudaResult(*field) params;
#define CUDA_OPTIONAL(field, symbol, params) CudaResult(*field) params;
#include "runtime/cuda_driver.def"
#undef CUDA
#undef CUDA_OPTIONAL
} CudaDriver;

// Opens libcuda.so.1, which then stays open. FUSE_RT_NO_DEVICE with a message where it is missing
// or too old.
FuseRtStatus cuda_driver_open(CudaDriver *out);

// Sets the message "<call>: CUDA_ERROR_X: text" and returns the status that belongs to the result;
// FUSE_RT_OK for CUDA_OK.
FuseRtStatus cuda_check(const CudaDriver *driver, CudaResult result, const char *call);

#endif
