// The DLPack tensor: how a strided array crosses from one library to another.
//
// The structures have the memory layout of DLPack 1.0 (github.com/dmlc/dlpack), of which only what
// fuse_rt needs is declared. The include guard is that of DLPack's own header: include that one
// first and this one steps aside.
//
// Ownership: a DLTensor owns nothing; `shape` and `strides` are arrays of `ndim` numbers that live
// as long as their owner says.
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    kDLCPU = 1,
    kDLCUDA = 2,
    kDLCUDAHost = 3,     // page-locked host memory
    kDLCUDAManaged = 13, // moves between host and GPU by itself
} DLDeviceType;

typedef struct {
    DLDeviceType device_type;
    int32_t device_id; // GPU number; 0 for the host
} DLDevice;

typedef enum {
    kDLInt = 0,
    kDLUInt = 1,
    kDLFloat = 2,
    kDLOpaqueHandle = 3,
    kDLBfloat = 4,
    kDLComplex = 5,
    kDLBool = 6,
    kDLFloat8_e3m4 = 7,
    kDLFloat8_e4m3 = 8,
    kDLFloat8_e4m3b11fnuz = 9,
    kDLFloat8_e4m3fn = 10,
    kDLFloat8_e4m3fnuz = 11,
    kDLFloat8_e5m2 = 12,
} DLDataTypeCode;

typedef struct {
    uint8_t code;   // DLDataTypeCode
    uint8_t bits;   // of one lane
    uint16_t lanes; // 1, except for short vectors
} DLDataType;

typedef struct {
    void *data; // device address; NULL for an empty or absent tensor
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;     // in elements; NULL: dense, the last dim fastest
    uint64_t byte_offset; // added to `data`
} DLTensor;

#ifdef __cplusplus
}
#endif
#endif
