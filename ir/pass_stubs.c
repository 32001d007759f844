// Passes that are not written yet: they change nothing. The build defines FUSE_PASS_<name> for each
// one that exists.
#include "ir/pass.h"

#define STUB(name)                                                                                 \
    bool pass_##name(PassCtx *ctx, Kernel *kernel) {                                               \
        (void)ctx;                                                                                 \
        (void)kernel;                                                                              \
        return true;                                                                               \
    }

#ifndef FUSE_PASS_simplify
STUB(simplify)
#endif
#ifndef FUSE_PASS_fuse
STUB(fuse)
#endif
#ifndef FUSE_PASS_variants
STUB(variants)
#endif
#ifndef FUSE_PASS_schedule
STUB(schedule)
#endif
#ifndef FUSE_PASS_stream
STUB(stream)
#endif
#ifndef FUSE_PASS_bounds
STUB(bounds)
#endif
#ifndef FUSE_PASS_stage
STUB(stage)
#endif
#ifndef FUSE_PASS_pipeline
STUB(pipeline)
#endif
#ifndef FUSE_PASS_expand_math
STUB(expand_math)
#endif
#ifndef FUSE_PASS_layouts
STUB(layouts)
#endif
#ifndef FUSE_PASS_sync
STUB(sync)
#endif
#ifndef FUSE_PASS_place
STUB(place)
#endif
#ifndef FUSE_PASS_protocol
STUB(protocol)
#endif
