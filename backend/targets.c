// The table of targets: rows of targets.def as TargetDesc.
//
// Input: a target's name. Output: its facts, which live for ever. Invariant: names are unique.
#include "ir/target_desc.h"

#include <stddef.h>
#include <string.h>

static const TargetDesc targets[] = {
#define TARGET(NAME, MODELS, FAMILY, SM, LANES, WARPS, REGS, SHARED, VEC, LANE_FIRST, UNITS,       \
               CP_ASYNC, TMA, LDMATRIX, STMATRIX, SMS, TRIPLE, PROCESSOR)                          \
    {                                                                                              \
        .name = NAME,                                                                              \
        .models = MODELS,                                                                          \
        .family = TARGET_##FAMILY,                                                                 \
        .sm = SM,                                                                                  \
        .lanes = LANES,                                                                            \
        .max_warps = WARPS,                                                                        \
        .max_regs = REGS,                                                                          \
        .shared_bytes = SHARED,                                                                    \
        .vec_bytes = VEC,                                                                          \
        .lane_first = LANE_FIRST,                                                                  \
        .units = UNITS,                                                                            \
        .has_cp_async = CP_ASYNC,                                                                  \
        .has_tma = TMA,                                                                            \
        .has_ldmatrix = LDMATRIX,                                                                  \
        .has_stmatrix = STMATRIX,                                                                  \
        .sms = SMS,                                                                                \
        .triple = TRIPLE,                                                                          \
        .processor = PROCESSOR,                                                                    \
    },
#include "backend/targets.def"
#undef TARGET
};

enum { TARGETS = sizeof targets / sizeof targets[0] };

const TargetDesc *target_at(int i) {
    return i >= 0 && i < TARGETS ? &targets[i] : NULL;
}

const TargetDesc *target_find(const char *name) {
    for (int i = 0; name && i < TARGETS; i++) {
        if (strcmp(targets[i].name, name) == 0)
            return &targets[i];
    }
    return NULL;
}
