// The order of passes, and the reason for each place. Nothing else knows order.
#include "ir/pipeline.h"

#define STEP(name, until, after, why)                                                              \
    { PASS_##name, STAGE_##until, STAGE_##after, why }

static const PipelineStep steps[] = {
    STEP(simplify, PLACED, TENSOR,
         "fusion compares index expressions: equal ones must be one value"),
    STEP(
        inline_take, TENSOR, TENSOR,
        "before fusion: what stands between a product and its use at other positions must be gone"),
    STEP(simplify, PLACED, TENSOR, "what was computed at all positions has no use any more"),
    STEP(fuse, TENSOR, NESTS, "needs whole statements; everything after it works on nests"),
    STEP(split, NESTS, NESTS, "needs the loops of products; its nests are as good as any others"),
    STEP(simplify, PLACED, NESTS,
         "whole axes that fusion has put into loops must not count as held"),
    STEP(variants, NESTS, NESTS,
         "guards are facts for all later passes; before sizes, which depend on them"),
    STEP(schedule, NESTS, NESTS, "sizes decide what is held and what is streamed"),
    STEP(stream, NESTS, SCHEDULED, "needs sizes; makes the last loops"),
    STEP(roll, SCHEDULED, SCHEDULED, "sizes are final; what its loops read alone is dropped next"),
    STEP(simplify, PLACED, SCHEDULED, "new loops have invariant code"),
    STEP(pack, SCHEDULED, SCHEDULED, "sizes and loops are final; its copies need bounds"),
    STEP(bounds, SCHEDULED, SCHEDULED, "after all reshaping of loops: windows are final"),
    STEP(whole, SCHEDULED, SCHEDULED, "drops masks that bounds has made"),
    STEP(stage, SCHEDULED, SCHEDULED, "bounds gives the `check` that a copy takes over"),
    STEP(pipeline, SCHEDULED, SCHEDULED, "needs the copies that stage has made"),
    STEP(simplify, PLACED, SCHEDULED, "loads became gets; the last change of integer ops"),
    STEP(layouts, SCHEDULED, SCHEDULED, "everything above is fixed: no new tile after it"),
    STEP(sync, SCHEDULED, SCHEDULED, "layouts tell which thread touches which element"),
    STEP(place, SCHEDULED, PLACED, "buffers need their layouts"),
    STEP(simplify, PLACED, PLACED, "program ids and windows share their arithmetic"),
    STEP(protocol, PLACED, PLACED, "verifies the result; changes nothing"),
};

const PipelineStep *pipeline_steps(int *n) {
    *n = (int)(sizeof steps / sizeof *steps);
    return steps;
}
