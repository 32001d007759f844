// The reference for --compare where running all of it would take minutes: a sample of the programs.
#ifndef FUSE_TOOLS_RUN_EVAL_H
#define FUSE_TOOLS_RUN_EVAL_H

#include "include/fusec.h"
#include "ir/eval.h"
#include "tools/run_bind.h"

// An estimate of the evaluator's work: the product of all sizes that the arguments have.
double run_eval_work(const RunBinding *binding);

// Compiles `source` for the kernel of `binding` up to its nests and evaluates a few programs of
// each nest on the binding's own tensors; `report` says which elements of the outputs were written.
// All of it lives in `arena`.
bool run_eval_sample(Arena *arena, const FuseOptions *options, const char *source, size_t length,
                     const RunBinding *binding, EvalReport *report, ToolError *error);

// What the precision that products ask for may cost: 0 where they compute in IEEE. 10 bits of
// mantissa of both operands are 2^-11 each.
double run_precision_tolerance(const Kernel *kernel);

// The source up to its nests, where loops bind the axes of tiles.
Module *run_eval_nests(Arena *arena, const FuseOptions *options, const char *source, size_t length,
                       ToolError *error);
// The kernel in it that the binding is for, or NULL with the error set.
const Kernel *run_eval_find(const Module *nests, const RunBinding *binding, ToolError *error);
// Evaluates it on the binding's own tensors.
bool run_eval_kernel(Arena *arena, const Module *nests, const RunBinding *binding,
                     EvalOptions options, ToolError *error);

#endif
