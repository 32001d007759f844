// `fusec run --check=tiles`: does a kernel mean the same for every tile size?
#ifndef FUSE_TOOLS_RUN_TILES_H
#define FUSE_TOOLS_RUN_TILES_H

#include "tools/run_eval.h"

typedef struct TilesRequest {
    const FuseOptions *options; // as for fuse_compile
    const char *source;
    size_t length;
    uint64_t seed;    // of the orders and of the mixed sizes
    double tolerance; // negative: by the output's type
} TilesRequest;

typedef struct TilesResult {
    int runs;
    const char *axes; // "m, n, k": whose sizes were changed; "" when there is none
    // What made a difference and where, "n = 3 changes ..."; NULL: nothing did. In the arena.
    const char *difference;
} TilesResult;

// Evaluates the kernel on the binding's inputs, with whole axes: that is the result which the
// binding gets. Then with each axis of tiles in small and odd sizes, mixed sizes, sizes larger than
// the axis, and the iterations in other orders, and compares. A size that the text gives is not
// changed. False where a run fails.
bool run_tiles(Arena *arena, const TilesRequest *request, RunBinding *binding, TilesResult *out,
               ToolError *error);

#endif
