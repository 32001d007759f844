// Builder, attributes, traversal, substitution, copies.
#include "ir/abi.h"
#include "ir/ir.h"

#include "ir_examples.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Fixture {
    Arena *arena;
    Module *module;
    Kernel *kernel;
    Builder b;
    Axis *M, *N;
    Mem *x, *y;
} Fixture;

static Fixture fixture_new(void) {
    Fixture f = {.arena = arena_new("test")};
    f.module = ir_module_new(f.arena, interner_new(f.arena), "sm_80");
    f.kernel = ir_kernel_new(f.module, "k", (Span){0});
    f.M = ir_param_dim(f.kernel, "M");
    f.N = ir_param_dim(f.kernel, "N");
    Value *dims[] = {f.M->extent, f.N->extent};
    f.x = ir_param_tensor(f.kernel, "x", MODE_IN, false, DT_F32, 2, dims);
    f.y = ir_param_tensor(f.kernel, "y", MODE_INOUT, false, DT_F32, 2, dims);
    f.b = ir_builder_at_end(f.kernel, f.kernel->body);
    return f;
}

static const char *text_of(Fixture *f) {
    return ir_print(f->arena, f->module, (IrPrintOptions){.kernel_only = true}).data;
}

static void expect_body(Fixture *f, const char *body) {
    const char *want =
        arena_printf(f->arena,
                     "kernel k(dim M, dim N, in @x: f32[%%M, %%N], inout @y: f32[%%M, "
                     "%%N]) {\n%s}\n",
                     body);
    cr_expect_str_eq(text_of(f), want);
    const char *error;
    cr_expect(ir_verify(f->arena, f->module, &error), "%s", error);
}

static Value *load_all(Fixture *f, const char *hint) {
    Value *index[] = {f->M->iota, f->N->iota};
    return ir_load(&f->b, f->x, index, NULL, hint);
}

// fold[N] of a value and the iota: the later of two where it is greater.
static Op *build_fold(Fixture *f, Value *v) {
    Value *in[] = {v, f->N->iota};
    Value *id[] = {ir_float(f->kernel, DT_F32, 0), ir_index(f->kernel, -1)};
    Op *op = ir_fold(&f->b, 2, in, id, 1, &f->N, (const char *const[]){"v", "i"});
    Value **arg = op->region[0]->arg;
    Builder in_f = ir_builder_at_end(f->kernel, op->region[0]);
    Value *c = ir_cmp(&in_f, CMP_GT, arg[2], arg[0], "c");
    Value *out[] = {ir_select(&in_f, c, arg[2], arg[0], "p"),
                    ir_select(&in_f, c, arg[3], arg[1], "q")};
    ir_yield(&in_f, 2, out, NULL);
    return op;
}

Test(ir_build, functions_of_elements) {
    Fixture f = fixture_new();
    Op *op = build_fold(&f, load_all(&f, "x"));
    Value *x[] = {op->res[0], op->res[1]}, *y[] = {ir_float(f.kernel, DT_F32, 2), f.N->iota};
    Value *out[2];
    ir_inline_function(&f.b, f.arena, op, x, y, out);
    cr_expect(axes_equal(out[0]->type.axes, axes_of(f.M)) && out[1]->type.axes.n == 2);
    expect_body(&f, "  %x = load @x[M, N] : f32[M, N]\n"
                    "  %v, %i = fold[N] %x, N else 0.0:f32, -1 args(%a: f32, %a.1: index, %b: f32, "
                    "%b.1: index) : f32[M], index[M] {\n"
                    "    %c = cmp.gt %b, %a : bool\n"
                    "    %p = select %c, %b, %a : f32\n"
                    "    %q = select %c, %b.1, %a.1 : index\n"
                    "    yield %p, %q\n"
                    "  }\n"
                    "  %c.1 = cmp.gt 2.0:f32, %v : bool[M]\n"
                    "  %p.1 = select %c.1, 2.0:f32, %v : f32[M]\n"
                    "  %q.1 = select %c.1, N, %i : index[M, N]\n");
    arena_free(f.arena);
}

Test(ir_rewrite, clone_of_a_function_is_closed) {
    Fixture f = fixture_new();
    Op *op = build_fold(&f, load_all(&f, "x"));
    IrMap map = ir_map_new(f.arena, f.kernel);
    Op *copy = ir_clone(&f.b, op, &map);
    for (const Op *e = copy->region[0]->first; e; e = e->next)
        for (int i = 0; i < e->nin; i++)
            cr_expect(e->in[i]->kind == VALUE_ARG ? e->in[i]->region == copy->region[0]
                                                  : e->in[i]->def->parent == copy->region[0]);
    const char *error;
    cr_expect(ir_verify(f.arena, f.module, &error), "%s", error);
    arena_free(f.arena);
}

Test(ir_build, infers_types_and_makes_names_unique) {
    Fixture f = fixture_new();
    Value *v = load_all(&f, "v");
    Value *r = ir_reduce(&f.b, RED_MAX, v, axes_of(f.N), NULL);
    Value *d = ir_binary(&f.b, OP_SUB, v, r, "v");
    ir_cast(&f.b, DT_F32, d, "same");
    Value *c = ir_cmp(&f.b, CMP_LT, f.M->iota, f.N->iota, NULL);
    Value *s = ir_select(&f.b, c, d, ir_float(f.kernel, DT_F32, -INFINITY), "v");
    Value *w = ir_dot(&f.b, s, v, NULL, axes_of(f.M), "w");
    Value *t = ir_take(&f.b, w, 1, &f.N, &f.M->iota, NULL, "t");
    ir_store(&f.b, f.y, (Value *[]){f.M->iota, ir_index(f.kernel, 0)}, t);
    expect_body(&f, "  %v = load @x[M, N] : f32[M, N]\n"
                    "  %max = reduce.max[N] %v : f32[M]\n"
                    "  %v.1 = sub %v, %max : f32[M, N]\n"
                    "  %lt = cmp.lt M, N : bool[M, N]\n"
                    "  %v.2 = select %lt, %v.1, -inf:f32 : f32[M, N]\n"
                    "  %w = dot[M] %v.2, %v : f32[N]\n"
                    "  %t = take %w, N = M : f32[M]\n"
                    "  store @y[M, 0], %t\n");
    arena_free(f.arena);
}

Test(ir_build, regions) {
    Fixture f = fixture_new();
    Axis *m = ir_axis(&f.b, "m", f.M, 16);
    Op *par =
        ir_parallel(&f.b, 2,
                    (BinderInit[]){{.name = "i", .lo = ir_index(f.kernel, 0), .hi = f.N->extent},
                                   {.axis = m, .lo = ir_index(f.kernel, 0), .hi = f.M->extent}});
    Builder in = ir_builder_at_end(f.kernel, par->region[0]);
    Value *zero = ir_float(f.kernel, DT_F32, 0.0);
    Type tile = type_tile(DT_F32, axes_of(m));
    BinderInit twice = {.name = "j", .lo = ir_index(f.kernel, 0), .hi = ir_index(f.kernel, 2)};
    const char *acc = "acc";
    Op *loop = ir_for_typed(&in, 1, &twice, 1, &zero, &tile, &acc);
    cr_expect_eq(op_carry_init(loop, 0), zero);
    cr_expect_eq(op_carry_arg(loop, 0)->region, loop->region[0]);
    cr_expect_eq(loop->binder[0].var, loop->region[0]->arg[0]);
    cr_expect_eq(op_binder_hi(par, 1), f.M->extent);
    Builder body = ir_builder_at_end(f.kernel, loop->region[0]);
    Value *v = ir_load(&body, f.x, (Value *[]){m->iota, loop->binder[0].var}, NULL, "v");
    Value *sum = ir_binary(&body, OP_ADD, op_carry_arg(loop, 0), v, "s");
    ir_yield(&body, 1, &sum, NULL);
    cr_expect(region_yield(loop->region[0])->kind == OP_YIELD);
    Op *store = ir_store(&in, f.y, (Value *[]){m->iota, par->binder[0].var}, loop->res[0]);
    op_set_names(f.kernel, store, ATTR_det, 2, (Str[]){"m", "i"});
    cr_expect(op_is_in(v->def, par->region[0]));
    cr_expect_not(op_is_in(store, loop->region[0]));
    expect_body(&f, "  axis m of M by 16\n"
                    "  parallel %i in 0..%N, m in 0..%M {\n"
                    "    %acc.1 = for %j in 0..2 carry (%acc = 0.0:f32 : f32[m]) : f32[m] {\n"
                    "      %v = load @x[m, %j] : f32[m]\n"
                    "      %s = add %acc, %v : f32[m]\n"
                    "      yield %s\n"
                    "    }\n"
                    "    store @y[m, %i], %acc.1 {det = [m, i]}\n"
                    "  }\n");
    arena_free(f.arena);
}

Test(ir_build, constants_are_interned_and_rounded) {
    Fixture f = fixture_new();
    Kernel *k = f.kernel;
    cr_expect_eq(ir_int(k, DT_I32, 7), ir_int(k, DT_I32, 7 + (1ll << 32)));
    cr_expect_neq(ir_int(k, DT_I32, 7), ir_int(k, DT_I64, 7));
    cr_expect_neq(ir_float(k, DT_F32, 0.0), ir_float(k, DT_F32, -0.0));
    cr_expect_eq(ir_float(k, DT_F32, NAN), ir_float(k, DT_F32, -NAN));
    cr_expect_eq(ir_wrap(DT_I8, 200), -56);
    cr_expect_eq(ir_wrap(DT_U8, -1), 255);
    cr_expect_eq(ir_wrap(DT_I4, 9), -7);
    cr_expect_eq(ir_round(DT_BF16, 1.00390625), 1.0);      // a tie, to even
    cr_expect_eq(ir_round(DT_BF16, 1.01171875), 1.015625); // a tie, to even
    cr_expect_eq(ir_round(DT_F16, 65519.0), 65504.0);
    cr_expect_eq(ir_round(DT_F16, 65520.0), (double)INFINITY);
    cr_expect_eq(ir_round(DT_F16, 0x1p-25), 0.0); // half of the smallest, to even
    cr_expect_eq(ir_round(DT_F16, 0x1.8p-25), 0x1p-24);
    cr_expect_eq(ir_round(DT_E4M3, 1e9), 448.0);
    cr_expect_eq(ir_round(DT_E5M2, -1e9), -57344.0);
    for (int i = 0; i < 100; i++)
        ir_index(k, i);
    cr_expect(value_is_int(ir_index(k, 42), 42));
    arena_free(f.arena);
}

Test(ir_build, attributes) {
    Fixture f = fixture_new();
    Value *v = load_all(&f, "v");
    Op *op = v->def;
    int64_t dims[] = {0, 1};
    op_set_ints(f.kernel, op, ATTR_check, 2, dims);
    op_set_axes(f.kernel, op, ATTR_guard, 1, &f.N);
    op_set_str(f.kernel, op, ATTR_form, "box");
    cr_expect(op_attr_has_int(op, ATTR_check, 1));
    cr_expect_not(op_attr_has_int(op, ATTR_check, 2));
    cr_expect(axes_equal(op_attr_axes(op, ATTR_guard), axes_of(f.N)));
    cr_expect_str_eq(op_attr_str(op, ATTR_form), "box");
    expect_body(&f, "  %v = load @x[M, N] {check = [0, 1], guard = [N], form = box} : f32[M, N]\n");
    op_set_ints(f.kernel, op, ATTR_check, 0, NULL);
    op_clear_attr(op, ATTR_form);
    op_clear_attr(op, ATTR_guard);
    cr_expect_null(op_attr(op, ATTR_check));
    cr_expect_eq(op->nattr, 0);
    op_set_int(f.kernel, op, ATTR_at, -1);
    cr_expect_eq(op->nattr, 0, "a default is not stored");
    cr_expect_eq(op_attr_int(op, ATTR_at), -1);
    arena_free(f.arena);
}

static void unlink_negations(void *user, Op *op) {
    ++*(int *)user;
    if (op->kind == OP_NEG)
        ir_op_unlink(op);
}

Test(ir_rewrite, walk_unlink_move) {
    Fixture f = fixture_new();
    Value *a = ir_unary(&f.b, OP_NEG, f.M->extent, "a");
    Op *branch = ir_if(&f.b, ir_bool(f.kernel, true), 0, NULL);
    Builder in = ir_builder_at_end(f.kernel, branch->region[0]);
    ir_unary(&in, OP_NEG, f.M->extent, "b");
    Value *c = ir_unary(&in, OP_ABS, f.M->extent, "c");
    Value *d = ir_unary(&f.b, OP_ABS, f.M->extent, "d");
    ir_op_move_before(d->def, a->def);
    ir_op_move_end(c->def, f.kernel->body);
    int seen = 0;
    ir_walk(f.kernel->body, unlink_negations, &seen);
    cr_expect_eq(seen, 5);
    expect_body(&f, "  %d = abs %M : index\n  if true {\n  }\n  %c = abs %M : index\n");
    arena_free(f.arena);
}

Test(ir_rewrite, substitutes_values_axes_memories) {
    Fixture f = fixture_new();
    Axis *m = ir_axis(&f.b, "m", f.M, 8);
    Axis *k = ir_axis(&f.b, "k", f.M, 8);
    BinderInit grid = {.axis = m, .lo = ir_index(f.kernel, 0), .hi = f.M->extent};
    Op *par = ir_parallel(&f.b, 1, &grid);
    Builder in = ir_builder_at_end(f.kernel, par->region[0]);
    Mem *buf = ir_buf(&in, BUF_SHARED, "b", DT_F32, axes_of(m), 2);
    Mem *chan = ir_chan(&in, "c", "block", 2, 1, &buf);
    Value *zero = ir_index(f.kernel, 0);
    Value *v = ir_load(&in, f.x, (Value *[]){m->iota, zero}, NULL, "v");
    Value *w = ir_reduce(&in, RED_SUM, v, axes_of(m), "w");
    Op *store = ir_store(&in, f.y, (Value *[]){m->iota, f.N->extent}, v);
    op_set_names(f.kernel, store, ATTR_det, 2, (Str[]){"m", "_"});
    op_set_axes(f.kernel, store, ATTR_guard, 1, &m);
    (void)chan;
    (void)w;
    f.module->stage = STAGE_SCHEDULED;
    IrMap map = ir_map_new(f.arena, f.kernel);
    ir_map_axis(&map, m, k);
    ir_map_value(&map, f.N->extent, zero);
    ir_map_value(&map, zero, f.N->extent); // one simultaneous step
    ir_map_mem(&map, f.x, f.y);
    ir_substitute(f.kernel->body, &map);
    expect_body(&f, "  axis m of M by 8\n  axis k of M by 8\n"
                    "  parallel k in %N..%M {\n"
                    "    @b = buf.shared {stages = 2} : f32[k]\n"
                    "    @c = chan @b {mode = block, stages = 2}\n"
                    "    %v = load @y[k, %N] : f32[k]\n"
                    "    %w = reduce.sum[k] %v : f32\n"
                    "    store @y[k, 0], %v {det = [k, _], guard = [k]}\n"
                    "  }\n");
    cr_expect(axes_equal(buf->axes, axes_of(k)));
    arena_free(f.arena);
}

Test(ir_rewrite, clones_with_fresh_names) {
    Fixture f = fixture_new();
    Value *v = load_all(&f, "v");
    BinderInit loop_binder = {.name = "i", .lo = ir_index(f.kernel, 0), .hi = f.M->extent};
    const char *acc = "acc";
    Op *loop = ir_for(&f.b, 1, &loop_binder, 1, &v, &acc);
    Builder in = ir_builder_at_end(f.kernel, loop->region[0]);
    Value *dim = f.N->extent;
    Mem *t = ir_temp(&in, "t", DT_F32, 1, &dim);
    Axis *j = ir_axis_window(&in, "j", NULL, loop->binder[0].var, f.M->extent, 4);
    Value *s = ir_load(&in, t, &j->iota, NULL, "s");
    Value *r = ir_reduce(&in, RED_SUM, s, axes_of(j), "r");
    Value *next = ir_binary(&in, OP_ADD, op_carry_arg(loop, 0), r, "next");
    ir_yield(&in, 1, &next, NULL);
    IrMap map = ir_map_new(f.arena, f.kernel);
    Value *z = ir_unary(&f.b, OP_NEG, v, "z");
    ir_map_value(&map, v, z);
    Op *copy = ir_clone(&f.b, loop, &map);
    cr_expect_eq(ir_mapped(&map, loop->res[0]), copy->res[0]);
    cr_expect_eq(copy->binder[0].var, copy->region[0]->arg[0]);
    expect_body(&f, "  %v = load @x[M, N] : f32[M, N]\n"
                    "  %acc.1 = for %i in 0..%M carry (%acc = %v : f32[M, N]) : f32[M, N] {\n"
                    "    @t = temp : f32[%N]\n"
                    "    axis j in %i..%M by 4\n"
                    "    %s = load @t[j] : f32[j]\n"
                    "    %r = reduce.sum[j] %s : f32\n"
                    "    %next = add %acc, %r : f32[M, N]\n"
                    "    yield %next\n"
                    "  }\n"
                    "  %z = neg %v : f32[M, N]\n"
                    "  %acc.3 = for %i.1 in 0..%M carry (%acc.2 = %z : f32[M, N]) : f32[M, N] {\n"
                    "    @t.1 = temp : f32[%N]\n"
                    "    axis j.1 in %i.1..%M by 4\n"
                    "    %s.1 = load @t.1[j.1] : f32[j.1]\n"
                    "    %r.1 = reduce.sum[j.1] %s.1 : f32\n"
                    "    %next.1 = add %acc.2, %r.1 : f32[M, N]\n"
                    "    yield %next.1\n"
                    "  }\n");
    cr_expect_eq(t->def->parent, loop->region[0]);
    arena_free(f.arena);
}

Test(ir_rewrite, clones_region_ops_without_yield) {
    Fixture f = fixture_new();
    Type type = type_scalar(DT_INDEX);
    Op *branch = ir_if(&f.b, ir_bool(f.kernel, true), 1, &type);
    for (int i = 0; i < 2; i++) {
        Builder in = ir_builder_at_end(f.kernel, branch->region[i]);
        Value *a = ir_unary(&in, OP_NEG, f.M->extent, "a");
        ir_yield(&in, 1, &a, NULL);
    }
    IrMap map = ir_map_new(f.arena, f.kernel);
    Builder at = ir_builder_before(f.kernel, branch);
    ir_clone_region_ops(&at, branch->region[0], &map);
    cr_expect_str_eq(f.kernel->body->first->res[0]->name, "a.2");
    cr_expect_eq(f.kernel->body->first->next, branch);
    cr_expect_eq(ir_mapped(&map, branch->region[0]->first->res[0]), f.kernel->body->first->res[0]);
    arena_free(f.arena);
}

// A copy of every worked example, in its own module and in another, prints the same.
Test(ir_rewrite, clones_kernels) {
    for (int i = 0; i < EXAMPLES; i++) {
        Arena *arena = arena_new("test");
        Interner *interner = interner_new(arena);
        const char *error, *text = examples[i];
        Module *m = ir_parse(arena, interner, text, strlen(text), &error);
        cr_assert(m, "%s", error);
        Module *other = ir_module_new(arena, interner, m->target);
        other->stage = m->stage;
        ir_clone_kernel(other, m->kernel[0], m->kernel[0]->name);
        const char *before = ir_print(arena, m, (IrPrintOptions){0}).data;
        cr_expect_str_eq(ir_print(arena, other, (IrPrintOptions){0}).data, before);
        cr_expect(ir_verify(arena, other, &error), "%s", error);
        ir_clone_kernel(m, m->kernel[0], "copy");
        cr_expect(ir_verify(arena, m, &error), "%s", error);
        cr_expect_eq(m->nkernel, 2);
        arena_free(arena);
    }
}

Test(ir_rewrite, counts_uses) {
    Fixture f = fixture_new();
    Value *v = load_all(&f, "v");
    Value *s = ir_binary(&f.b, OP_ADD, v, v, "s");
    const uint32_t *uses = ir_count_uses(f.arena, f.kernel);
    cr_expect_eq(uses[v->id], 2);
    cr_expect_eq(uses[s->id], 0);
    cr_expect_eq(uses[f.M->extent->id], 2); // dims of the tensors
    cr_expect_eq(uses[f.M->iota->id], 1);
    arena_free(f.arena);
}

Test(ir_abi, launch_parameters) {
    Arena *arena = arena_new("test");
    const char *error,
        *text = "tir placed sm_80\n"
                "kernel k(dim M, dim N, %c: bf16, in @x: f32[%M, %N] {inner = 1}, out "
                "@y: f32[%M]) {\n  launch %p in 0..%M args(%M, %N, %c, true; @x, @y)\n}\n";
    Module *m = ir_parse(arena, interner_new(arena), text, strlen(text), &error);
    cr_assert(m, "%s", error);
    int n;
    const AbiParam *p = abi_launch_params(arena, m->kernel[0]->body->first, &n);
    static const AbiKind kinds[] = {ABI_POINTER, ABI_STRIDE, ABI_POINTER, ABI_STRIDE,
                                    ABI_SCALAR,  ABI_SCALAR, ABI_SCALAR,  ABI_SCALAR};
    static const int bytes[] = {8, 8, 8, 8, 8, 8, 2, 1};
    cr_assert_eq(n, 8);
    for (int i = 0; i < n; i++) {
        cr_expect_eq(p[i].kind, kinds[i]);
        cr_expect_eq(p[i].bytes, bytes[i]);
    }
    cr_expect_eq(p[1].dim, 0);
    cr_expect_str_eq(p[6].value->name, "c");
    arena_free(arena);
}
