// The reference for --compare where running all of it would take minutes: the kernel as nests (so
// that its programs can be told apart), evaluated for a few programs of each, the first and last
// included. Input: source, a binding. Output: the binding's output tensors, and a map of what was
// written.
#include "tools/run_eval.h"

#include <string.h>

enum { SAMPLED_PROGRAMS = 6, SAMPLED_WINDOW = 16, MOST_NAMES = 32 };

double run_eval_work(const RunBinding *binding) {
    const char *seen[MOST_NAMES];
    int count = 0;
    double work = 1;
    for (int i = 0; i < binding->count; i++) {
        const RunArgument *argument = &binding->arguments[i];
        for (int d = 0; d < argument->tensor.rank; d++) {
            const char *name = argument->param->dims[d].name;
            bool is_new = name && count < MOST_NAMES;
            for (int s = 0; s < count && is_new; s++)
                is_new = strcmp(seen[s], name) != 0;
            if (is_new) {
                seen[count++] = name;
                work *= (double)argument->tensor.dims[d];
            }
        }
    }
    return work;
}

// The kernel's parameters without its dims are those of the binding, in the same order.
static EvalArg *make_arguments(Arena *arena, const RunBinding *binding, const Kernel *kernel) {
    EvalArg *out = ARENA_ARRAY(arena, EvalArg, (size_t)binding->count + 1);
    int at = 0;
    for (int i = 0; i < kernel->nparam && at < binding->count; i++) {
        const Param *param = &kernel->param[i];
        if (param->kind == PARAM_DIM)
            continue;
        const RunArgument *argument = &binding->arguments[at];
        if (argument->tensor.data) {
            EvalTensor *tensor = ARENA_NEW(arena, EvalTensor);
            const HostTensor *host = &argument->tensor;
            *tensor = eval_tensor(host->data, host->dtype, host->rank, host->dims);
            out[at].tensor = tensor;
        } else if (param->kind == PARAM_SCALAR) {
            DType dtype = param->value->type.dtype;
            out[at].scalar = argument->is_given      ? argument->scalar
                             : dtype_is_float(dtype) ? scalar_float(dtype, param->dflt->u.f)
                                                     : scalar_int(dtype, param->dflt->u.i);
        }
        at++;
    }
    return out;
}

static Module *parse_nests(Arena *arena, const FuseResult *result, ToolError *error) {
    size_t length;
    const char *text = fuse_result_output(result, &length), *why = NULL;
    Module *module = ir_parse(arena, interner_new(arena), text, length, &why);
    if (!module)
        tool_fail(error, "the tile IR does not read back: %s", why);
    return module;
}

Module *run_eval_nests(Arena *arena, const FuseOptions *options, const char *source, size_t length,
                       ToolError *error) {
    FuseOptions to_nests = *options;
    to_nests.emit = FUSE_EMIT_TILE;
    to_nests.stop_after = "fuse";
    to_nests.message = NULL; // said once already
    FuseResult *result = fuse_compile(&to_nests, "source", source, length);
    bool ok = result && fuse_result_ok(result);
    if (!ok)
        tool_fail(error, "the reference does not compile to nests");
    Module *module = ok ? parse_nests(arena, result, error) : NULL;
    fuse_result_free(result);
    return module;
}

const Kernel *run_eval_find(const Module *nests, const RunBinding *binding, ToolError *error) {
    const Kernel *kernel = ir_find_kernel(nests, fuse_rt_kernel_name(binding->kernel));
    if (!kernel && nests->nkernel == 1)
        kernel = nests->kernel[0];
    if (!kernel)
        tool_fail(error, "the tile IR has no kernel '%s'", fuse_rt_kernel_name(binding->kernel));
    return kernel;
}

bool run_eval_kernel(Arena *arena, const Module *nests, const RunBinding *binding,
                     EvalOptions options, ToolError *error) {
    const Kernel *kernel = run_eval_find(nests, binding, error);
    if (!kernel)
        return false;
    EvalDim *dims = ARENA_ARRAY(arena, EvalDim, (size_t)binding->size_count + 1);
    for (int i = 0; i < binding->size_count; i++)
        dims[i] = (EvalDim){binding->sizes[i].name, binding->sizes[i].i};
    options.ndims = binding->size_count;
    options.dims = dims;
    const char *why = NULL;
    return eval_kernel(arena, nests, kernel, binding->count, make_arguments(arena, binding, kernel),
                       &options, &why) ||
           tool_fail(error, "evaluator: %s", why);
}

bool run_eval_sample(Arena *arena, const FuseOptions *options, const char *source, size_t length,
                     const RunBinding *binding, EvalReport *report, ToolError *error) {
    Module *nests = run_eval_nests(arena, options, source, length, error);
    return nests && run_eval_kernel(arena, nests, binding,
                                    (EvalOptions){.max_programs = SAMPLED_PROGRAMS,
                                                  .window = SAMPLED_WINDOW,
                                                  .report = report},
                                    error);
}

static void add_precision(void *user, Op *op) {
    double *most = user;
    const char *word = op->kind == OP_DOT ? op_attr_str(op, ATTR_precision) : NULL;
    if (!word)
        return;
    double cost = strcmp(word, "tf32") == 0     ? 0x1p-9
                  : strcmp(word, "tf32x3") == 0 ? 0x1p-18
                  : strcmp(word, "fast") == 0   ? 0x1p-8
                                                : 0;
    *most = cost > *most ? cost : *most;
}

double run_precision_tolerance(const Kernel *kernel) {
    double most = 0;
    ir_walk(kernel->body, add_precision, &most);
    return most;
}
