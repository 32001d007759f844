// What passes may know about a target: plain data, one row per target in backend/targets.def. No
// pass asks for an architecture by name or number; it asks for one of these facts.
#ifndef FUSE_IR_TARGET_DESC_H
#define FUSE_IR_TARGET_DESC_H

#include <stdbool.h>
#include <stdint.h>

typedef enum TargetFamily { TARGET_NVPTX, TARGET_CPU, TARGET_SIM } TargetFamily;

enum {                          // matrix units that `dot` may use
    UNIT_M16N8K8_F16 = 1 << 0,  // f16, bf16
    UNIT_M16N8K16_F16 = 1 << 1, // f16, bf16
    UNIT_M16N8K8_TF32 = 1 << 2,
    UNIT_M16N8K32_I8 = 1 << 3,
    UNIT_M16N8K32_F8 = 1 << 4,
    UNIT_M8N8K4_F64 = 1 << 5,
    UNIT_WGMMA = 1 << 6,
};

typedef struct TargetDesc {
    const char *name;   // sm_80, sm_90a, cpu, cpu-aarch64, sim-sm_80, ...
    const char *models; // sim: the architecture that it simulates; cpu-*: cpu; else its own name
    TargetFamily family;
    int sm;           // 80, 90, ...; 0 on the host
    int lanes;        // lanes of a warp; cpu: f32 lanes of a vector
    int max_warps;    // of a program
    int max_regs;     // 32-bit registers of a thread (cpu: vector registers)
    int shared_bytes; // most dynamic shared memory of a program
    int vec_bytes;    // widest access of one lane (cpu: of the vector)
    bool lane_first;  // registers come after lanes along the contiguous axis
    uint32_t units;   // UNIT_x
    bool has_cp_async, has_tma, has_ldmatrix, has_stmatrix;
    int sms;                        // programs that fit at once, for cost models
    const char *triple, *processor; // cpu: the machine, as LLVM names it; NULL: this one
} TargetDesc;

// NULL when there is no such target. `target_at(i)` lists them, NULL at the end.
// (backend/targets.c)
const TargetDesc *target_find(const char *name);
const TargetDesc *target_at(int i);

#endif
