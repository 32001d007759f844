// Fuzzer of the textual IR: reader, verifier, printer, passes, evaluator.
//
// Input: one byte that picks the target, then a text. What must hold: no crash, leak or hang;
// valid IR prints and reads back as itself; no pass makes invalid IR of valid one. What an
// evaluation says does not matter, only that it ends.
#include <stdlib.h>

#include "ir/eval.h"
#include "tests/fuzz/fuzz.h"

enum { EXTENT = 3, ELEMENTS_MAX = 4096, ARGS_MAX = 64 };

static int64_t dim_extent(const Value *v) {
    bool small = value_is_const(v) && v->u.i >= 0 && v->u.i <= ELEMENTS_MAX;
    return small ? v->u.i : EXTENT;
}

// A dense tensor of zeros; extents of dims are EXTENT.
static bool make_tensor(Fuzz *f, const Mem *mem, EvalTensor *out) {
    int64_t dims[RANK_MAX], count = 1;
    for (int d = 0; d < mem->rank; d++) {
        dims[d] = dim_extent(mem->dim[d]);
        count *= dims[d];
        if (count > ELEMENTS_MAX)
            return false;
    }
    void *data = arena_alloc(f->arena, (size_t)dtype_bytes(mem->dtype, (uint64_t)count) + 1);
    *out = eval_tensor(data, mem->dtype, mem->rank, dims);
    return true;
}

static void evaluate(Fuzz *f, const Kernel *k) {
    EvalArg args[ARGS_MAX] = {0};
    EvalTensor tensors[ARGS_MAX];
    EvalDim dims[ARGS_MAX];
    int n = 0, ndim = 0;
    for (int i = 0; i < k->nparam; i++) {
        const Param *p = &k->param[i];
        if (n == ARGS_MAX || ndim == ARGS_MAX)
            return;
        if (p->kind == PARAM_DIM) {
            dims[ndim++] = (EvalDim){p->name, dim_extent(p->value)};
            continue;
        }
        args[n].scalar = (Scalar){.dtype = DT_I64, .u.i = 2};
        if (p->kind == PARAM_TENSOR) {
            if (!make_tensor(f, p->mem, &tensors[n]))
                return;
            args[n].tensor = &tensors[n];
        }
        n++;
    }
    const char *error = NULL;
    EvalOptions options = {
        .max_steps = 2000, .max_cells = 1 << 20, .window = 4, .ndims = ndim, .dims = dims};
    eval_kernel(f->scratch, f->module, k, n, args, &options, &error);
    arena_reset(f->scratch);
}

static void evaluate_all(Fuzz *f) {
    for (int i = 0; i < f->module->nkernel && i < 4; i++)
        evaluate(f, f->module->kernel[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    Fuzz f = fuzz_begin(data[0]);
    const char *error = NULL;
    f.module = ir_parse(f.arena, f.interner, (const char *)data + 1, size - 1, &error);
    if (f.module && ir_verify(f.scratch, f.module, &error)) {
        arena_reset(f.scratch);
        fuzz_check_module(&f);
        evaluate_all(&f);
        f.module->target = intern_cstr(f.interner, f.target->name);
        if (fuzz_passes(&f, false))
            evaluate_all(&f);
    }
    fuzz_end(&f);
    return 0;
}
