// The default pipeline: data for the pass manager.
#ifndef FUSE_IR_PIPELINE_H
#define FUSE_IR_PIPELINE_H

#include "ir/pass.h"

typedef struct PipelineStep {
    PassId pass;
    Stage until;     // a module that is past this stage skips the step
    Stage after;     // stage that the module has reached after it
    const char *why; // why it stands here
} PipelineStep;

const PipelineStep *pipeline_steps(int *n);

#endif
