// Builds code through the host target's own functions, without lowering: what a test's callback
// adds between kernel_begin and kernel_end.
#ifndef FUSE_TESTS_HOST_BUILD_H
#define FUSE_TESTS_HOST_BUILD_H

#include <criterion/criterion.h>

#include "backend/host/host_code.h"
#include "backend/target.h"
#include "ir/ir.h"

enum { BUILD_PARAMS_MAX = 20 };

typedef struct Build {
    Target t;
    Uni value[BUILD_PARAMS_MAX]; // pointers
    Uni program;
    void *user;
} Build;

typedef struct Built {
    Arena *arena;
    HostCode *code;
    void *entry;
} Built;

// A kernel `f` with `n` pointer parameters, as LLVM text or an object.
static inline BackendOutput build_output(Arena *arena, Diags *diags, BackendEmit emit,
                                         const char *target, int opt_level, int n, int64_t smem,
                                         void (*body)(Build *b), void *user) {
    Interner *names = interner_new(arena);
    Module *m = ir_module_new(arena, names, intern_cstr(names, target));
    Kernel *k = ir_kernel_new(m, "k", (Span){0, 0});
    Builder ib = ir_builder_at_end(k, k->body);
    Op *launch = ir_launch(&ib, "pid", ir_index(k, 1));
    if (smem)
        op_set_int(k, launch, ATTR_smem, smem);
    BackendOptions options = {.emit = emit, .opt_level = opt_level, .native = true};
    Build b = {.user = user};
    Target *t = &b.t;
    *t = (Target){.ops = target_ops_host(),
                  .desc = target_find(target),
                  .options = &options,
                  .arena = arena,
                  .diags = diags,
                  .ir = m,
                  .launch = launch,
                  .op = launch,
                  .warps = 1};
    t->llvm = LLVMContextCreate();
    t->builder = LLVMCreateBuilderInContext(t->llvm);
    cr_assert(t->ops->module_begin(t), "%s", diags_text(diags, arena));
    AbiParam params[BUILD_PARAMS_MAX] = {0};
    for (int i = 0; i < n; i++)
        params[i] = (AbiParam){.kind = ABI_POINTER, .dtype = DT_INDEX, .bytes = 8};
    t->ops->kernel_begin(t, launch, "f", n, params, b.value, &b.program);
    body(&b);
    t->ops->kernel_end(t);
    BackendOutput object = {0};
    bool ok = t->ops->module_end(t, &object);
    LLVMDisposeBuilder(t->builder);
    LLVMDisposeModule(t->module);
    LLVMContextDispose(t->llvm);
    cr_assert(ok, "%s", diags_text(diags, arena));
    return object;
}

static inline Built build_kernel(const char *target, int opt_level, int n, int64_t smem,
                                 void (*body)(Build *b), void *user) {
    Built out = {.arena = arena_new("host test")};
    Arena *arena = out.arena;
    Diags *diags = diags_new(arena, source_map_new(arena), NULL);
    BackendOutput object =
        build_output(arena, diags, BACKEND_OBJECT, target, opt_level, n, smem, body, user);
    out.code = host_code_load(arena, object.data, object.len, diags);
    cr_assert_not_null(out.code, "%s", diags_text(diags, arena));
    const char *error = NULL;
    out.entry = host_code_find(out.code, "f", &error);
    cr_assert_not_null(out.entry, "%s", error);
    return out;
}

static inline void built_free(Built *b) {
    host_code_free(b->code);
    arena_free(b->arena);
}

// Element program * lanes + lane of parameter i.
static inline Ptr build_lane_ptr(Build *b, int i, int bytes) {
    Target *t = &b->t;
    Uni first = uni_mul(t, b->program, uni_int(t, 64, (int64_t)bytes * t->desc->lanes));
    Lane lane = t->ops->lane_id(t), wide;
    t->ops->cast(t, DT_I32, DT_I64, 1, &lane, &wide);
    Lane off = lane_op2(t, OP_MUL, DT_I64, wide, lane_int(t, DT_I64, bytes));
    off = lane_op2(t, OP_ADD, DT_I64, t->ops->splat(t, first), off);
    return (Ptr){.base = b->value[i], .offset = off};
}

#endif
