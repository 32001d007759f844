// Textual IR: reading, printing, round trips, messages.
#include "ir/ir.h"

#include "ir_examples.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Fixture {
    Arena *arena;
    Interner *interner;
    const char *error;
} Fixture;

static Fixture fixture_new(void) {
    Fixture f = {.arena = arena_new("test")};
    f.interner = interner_new(f.arena);
    return f;
}

static Module *read_text(Fixture *f, const char *text) {
    return ir_parse(f->arena, f->interner, text, strlen(text), &f->error);
}

static const char *reprint(Fixture *f, const char *text, IrPrintOptions opts) {
    Module *m = read_text(f, text);
    cr_assert(m, "%s in\n%s", f->error, text);
    return ir_print(f->arena, m, opts).data;
}

static void expect_same(const char *body) {
    Fixture f = fixture_new();
    const char *text =
        arena_printf(f.arena,
                     "tir tensor sm_80\n"
                     "kernel k(dim M, dim N, %%c: f32, in @x: f32[%%M, %%N], inout @y: "
                     "f32[%%M, %%N]) {\n%s}\n",
                     body);
    cr_expect_str_eq(reprint(&f, text, (IrPrintOptions){0}), text);
    arena_free(f.arena);
}

static void expect_error(const char *text, const char *error) {
    Fixture f = fixture_new();
    cr_expect_null(read_text(&f, text));
    cr_expect_str_eq(f.error ? f.error : "", error);
    arena_free(f.arena);
}

Test(ir_text, worked_examples) {
    for (int i = 0; i < EXAMPLES; i++) {
        Fixture f = fixture_new();
        const char *once = reprint(&f, examples[i], (IrPrintOptions){0});
        cr_expect_str_eq(reprint(&f, once, (IrPrintOptions){0}), once);
        arena_free(f.arena);
    }
}

Test(ir_text, generic_reads_back) {
    for (int i = 0; i < EXAMPLES; i++) {
        Fixture f = fixture_new();
        const char *once = reprint(&f, examples[i], (IrPrintOptions){0});
        const char *generic = reprint(&f, once, (IrPrintOptions){.generic = true});
        cr_expect(strstr(generic, "\"dot\""));
        cr_expect_str_eq(reprint(&f, generic, (IrPrintOptions){0}), once);
        arena_free(f.arena);
    }
}

Test(ir_text, known_text) {
    Fixture f = fixture_new();
    const char *text = reprint(&f, example_linear_gelu_nests, (IrPrintOptions){0});
    cr_expect(strstr(text, "  axis m of M\n  axis n of N\n"));
    cr_expect(
        strstr(text, "    %d = for k in 0..%K carry (%acc = 0.0:f32 : f32[m, n]) : f32[m, n] {\n"));
    cr_expect(
        strstr(text, "      %a = dot[k] %xv, %wv, %acc : f32[m, n]\n      yield %a\n    }\n"));
    cr_expect(strstr(text, "    store @y[m, n], %r {det = [m, n]}\n"));
    text = reprint(&f, example_linear_mma_placed, (IrPrintOptions){0});
    cr_expect(strstr(text, "\nlayout #as = off("));
    cr_expect(
        strstr(text, "copy @x[m, kp] to @a(%f.1)[k = kp] {engine = cp_async, check = [0, 1]}\n"));
    cr_expect(strstr(
        text,
        "args(%M, %K, %N, %nn; @x, @w, @y) {entry = \"linear_0\", warps = 4, smem = 49152} {\n"));
    cr_expect(strstr(text, "%xv = get @a(%p) : bf16[m, k]#xa\n"));
    arena_free(f.arena);
}

Test(ir_text, plan_without_regions) {
    Fixture f = fixture_new();
    const char *plan = reprint(&f, example_linear_mma_placed, (IrPrintOptions){.plan = true});
    cr_expect_null(strstr(plan, "copy @x"));
    cr_expect_null(strstr(plan, "layout"));
    cr_expect(strstr(plan, "smem = 49152}\n}\n"));
    cr_expect_str_eq(reprint(&f, plan, (IrPrintOptions){.plan = true}), plan);
    arena_free(f.arena);
}

Test(ir_text, constants) {
    expect_same("  %a = add %c, 0.1:f32 : f32\n");
    expect_same("  %a = add %c, 0.70710677:f32 : f32\n");
    expect_same("  %a = max %c, -inf:f32 : f32\n  %b = max %a, inf:f32 : f32\n  %d = max %b, "
                "nan:f32 : f32\n");
    expect_same("  %a = add %c, -1e30:f32 : f32\n  %b = add %a, 1e-30:f32 : f32\n");
    expect_same("  %a = add %c, 100.0:f32 : f32\n  %b = add %a, -0.0:f32 : f32\n");
    expect_same(
        "  %a = cast %c : f64\n  %b = add %a, 0.1:f64 : f64\n  %d = add %b, 1e6:f64 : f64\n");
    expect_same("  %a = cast %c : bf16\n  %b = add %a, 0.1:bf16 : bf16\n");
    expect_same("  %a = cast %c : i32\n  %b = add %a, -2147483648:i32 : i32\n");
    expect_same("  %a = cast %c : u64\n  %b = add %a, 18446744073709551615:u64 : u64\n");
    expect_same("  %a = add %M, -9223372036854775808 : index\n  %b = select true, %a, 0 : index\n");
}

Test(ir_text, float_constants_read_back) {
    Fixture f = fixture_new();
    Module *m = ir_module_new(f.arena, f.interner, "sm_80");
    Kernel *k = ir_kernel_new(m, "k", (Span){0});
    Builder b = ir_builder_at_end(k, k->body);
    static const DType types[] = {DT_F64, DT_F32, DT_F16, DT_BF16, DT_E4M3, DT_E5M2};
    double x = 0x1.23456789abcdp-30;
    for (int i = 0; i < 120; i++, x *= -1.7)
        ir_unary(&b, OP_NEG, ir_float(k, types[i % 6], x), NULL);
    IrText text = ir_print(f.arena, m, (IrPrintOptions){0});
    Module *back = ir_parse(f.arena, f.interner, text.data, text.len, &f.error);
    cr_assert(back, "%s", f.error);
    const Op *q = back->kernel[0]->body->first;
    for (const Op *p = k->body->first; p; p = p->next, q = q->next)
        cr_expect_eq(p->in[0]->u.f, q->in[0]->u.f);
    cr_expect_null(q);
    arena_free(f.arena);
}

static const char folds[] =
    "  %v = load @x[M, N] : f32[M, N]\n"
    "  %s, %i = fold[M, N] %v, N else 0.0:f32, -1 args(%a: f32, %j: index, %b: f32, %k: index) : "
    "f32, index {\n"
    "    %t = add %a, %b : f32\n"
    "    yield %t, %k\n"
    "  }\n"
    "  %p = scanfn[N] %v args(%d: f32, %e: f32) : f32[M, N] {\n"
    "    yield %e\n"
    "  }\n";

Test(ir_text, folds) {
    expect_same(folds);
    Fixture f = fixture_new();
    const char *text = arena_printf(f.arena,
                                    "tir tensor sm_80\nkernel k(dim M, dim N, %%c: f32, in @x: "
                                    "f32[%%M, %%N]) {\n%s}\n",
                                    folds);
    const char *generic = reprint(&f, text, (IrPrintOptions){.generic = true});
    cr_expect(strstr(generic, "\"fold\"(%v, N, else 0.0:f32, -1) <M, N> args(%a: f32"));
    cr_expect_str_eq(reprint(&f, generic, (IrPrintOptions){0}), text);
    arena_free(f.arena);
    expect_error("tir tensor sm_80\nkernel k(dim M) {\n%a = scanfn[M] M args(%b: index) : "
                 "index[M] {\nyield %b\n}\n}\n",
                 "3:6: 1 arguments and 1 results");
    expect_error("tir tensor sm_80\nkernel k(dim M) {\n%a = scanfn[M] M : index[M] {\n}\n}\n",
                 "3:18: `args` is expected");
}

Test(ir_text, forms) {
    expect_same("  require true {msg = \"a \\\"b\\\"\\n\\x01\"}\n");
    expect_same("  @t = temp {zero = true} : f32[%M, 4]\n  store @t[M, 0], 1.0:f32\n");
    expect_same("  axis i in 0..%M by 16\n  axis j of M like i by 16\n  axis a of i\n");
    expect_same("  %v = load @x[M, N] else 1.0:f32 : f32[M, N]\n"
                "  %t = take %v, M = N, N = 3 else 0.0:f32 : f32[N]\n"
                "  %r = reduce.max[M, N] %v : f32\n"
                "  %s = scan.sum[N] %v : f32[M, N]\n"
                "  %i = argreduce.min[N] %v : index[M]\n"
                "  %q = inside M : bool[M]\n"
                "  %w = inside @x[M, 5] : bool[M]\n"
                "  %e = stride @x {dim = 1} : index\n"
                "  %p = present @x : bool\n"
                "  %b = cmp.lt M, N : bool[M, N]\n"
                "  atomic.add @y[M, N], %v\n"
                "  %was = atomic.cas @y[M, N], 0.0:f32, %v : f32[M, N]\n"
                "  print %v, M {msg = \"{} {{}}\"}\n"
                "  print {msg = \"here\"}\n"
                "  %a = asm %v, %c {msg = \"add.f32 $0, $1, $2;\"} : f32[M, N]\n"
                "  %old = atomic.max @y[0, 0], %c : f32\n"
                "  assert %p {msg = \"no\"}\n");
    expect_same(
        "  %r, %q = for %i in 0..%M step 2, M in 0..%M carry (%a = %c : f32, %n = 0:i32 : i32) "
        ": f32, i32 {\n    yield %a, %n stop true\n  }\n");
}

Test(ir_text, forms_of_control) {
    expect_same("  %b = cmp.gt %M, 3 : bool\n"
                "  %r = if %b : f32 {\n    yield %c\n  } {\n    yield 0.0:f32\n  }\n"
                "  if %b {\n  }\n"
                "  if %b {\n  } {\n    require %b\n  }\n"
                "  %w = while carry (%s = %M : index) : index {\n    yield %s stop %b\n  }\n"
                "  parallel %i in 0..%M, N in 0..%N {order = grouped, group = 8} {\n  }\n");
}

Test(ir_text, names_are_kept) {
    expect_same("  %s = add %c, %c : f32\n  %s.1 = add %s, %c : f32\n  %s.7 = add %s.1, %c : f32\n"
                "  %0 = add %s.7, %c : f32\n");
}

Test(ir_text, spans) {
    Fixture f = fixture_new();
    const char *text = "tir tensor sm_80\nkernel k(dim M) !1+20 {\n  %a = add %M, 1 : index !7+3\n"
                       "  parallel %i in 0..%a {\n  } !9+1\n}\n";
    cr_expect_str_eq(reprint(&f, text, (IrPrintOptions){.spans = true}), text);
    arena_free(f.arena);
}

Test(ir_text, kernels_and_variants) {
    Fixture f = fixture_new();
    const char *text =
        "tir placed sim-sm_90a\n"
        "kernel axpy.v0(dim D = 128, %a: f32 = 2.0:f32, in opt @x: f32[128] {align = 16, "
        "inner = 0, sdiv = 8, fits32 = true, absent = true}) of axpy {\n}\n"
        "kernel axpy(dim D = 128) {\n}\n"
        "kernel \"odd name\"() {\n}\n";
    cr_expect_str_eq(reprint(&f, text, (IrPrintOptions){0}), text);
    Module *m = read_text(&f, text);
    cr_expect_eq(m->kernel[0]->variant_of, m->kernel[1]);
    cr_expect_str_eq(m->target, "sim-sm_90a");
    cr_expect(value_is_int(m->kernel[0]->param[0].value, 128));
    arena_free(f.arena);
}

#define HEAD "tir tensor sm_80\nkernel k(dim M, in @x: f32[%M]) {\n"

Test(ir_text, messages) {
    expect_error("", "1:1: `tir` is expected");
    expect_error("tir soft sm_80\n", "1:5: `soft` is not a stage");
    expect_error(HEAD "  %a = add %b, 1 : index\n}\n", "3:12: no value has the name `%b`");
    expect_error(HEAD "  %a = plus 1, 1 : index\n}\n", "3:8: no op has the name `plus`");
    expect_error(HEAD "  %a = reduce.avg[M] M : index\n}\n",
                 "3:8: no op has the name `reduce.avg`");
    expect_error(HEAD "  %a = add 1, 1 {fast = true} : index\n}\n",
                 "3:18: `add` has no attribute `fast`");
    expect_error(HEAD "  %a = add 1, 1\n}\n", "3:8: 1 results and 0 types");
    expect_error(HEAD "  %a = load @z[M] : f32[M]\n}\n", "3:13: no memory has the name `@z`");
    expect_error(HEAD "  %a = load @x[m] : f32[M]\n}\n", "3:16: no axis has the name `m`");
    expect_error(HEAD "  %M = add 1, 1 : index\n}\n", "3:8: `%M` is defined twice");
    expect_error(HEAD "  axis M\n}\n", "3:8: axis `M` is declared twice");
    expect_error(HEAD "  %a = add 1.5, 1 : index\n}\n",
                 "3:12: a number with a fraction needs a float type");
    expect_error(HEAD "  %a = add 1, 99999999999999999999 : index\n}\n",
                 "3:15: the number does not fit in 64 bits");
    expect_error(HEAD "  %a = neg M : f33[M]\n}\n", "3:16: `f33` is not a type");
    expect_error(HEAD "  %a = neg M : index[M]#q\n}\n", "3:24: no layout has the name `#q`");
    expect_error(HEAD "  require true {msg = \"x\n", "3:23: a string without an end");
    expect_error(HEAD "  barrier ?\n}\n", "3:11: a character that no token starts with");
    expect_error(HEAD "  barrier\n", "4:1: `}` is expected");
    expect_error(HEAD "  @a = add 1, 1 : index\n}\n", "3:8: `add` does not define a memory");
    expect_error(HEAD "  temp : f32[%M]\n}\n", "3:3: `temp` defines a memory");
    expect_error(HEAD "}\nkernel k() {\n}\n", "4:8: kernel `k` is defined twice");
    expect_error(HEAD "  launch M in 0..1 {\n  }\n}\n", "3:3: a launch has one scalar binder");
}

// Every prefix and every text with one byte changed is read or refused, never more than that.
Test(ir_text, damaged_text) {
    const char *text = example_linear_mma_placed;
    size_t len = strlen(text);
    char *copy = strdup(text);
    static const char bytes[] = "{}[]()%@#:=,.;\n\"-0m \\";
    for (size_t i = 0; i < len; i += 7) {
        Fixture f = fixture_new();
        cr_expect(ir_parse(f.arena, f.interner, text, i, &f.error) || f.error);
        copy[i] = bytes[i % (sizeof bytes - 1)];
        Module *m = ir_parse(f.arena, f.interner, copy, len, &f.error);
        if (m) {
            const char *error;
            ir_print(f.arena, m, (IrPrintOptions){0});
            ir_verify(f.arena, m, &error);
        }
        copy[i] = text[i];
        arena_free(f.arena);
    }
    free(copy);
}

// Types and layouts follow the declarations in the text, not the order in which a pass made the
// axes.
Test(ir_text, axes_in_order_of_the_text) {
    Fixture f = fixture_new();
    Module *m = ir_module_new(f.arena, f.interner, "sm_80");
    m->stage = STAGE_SCHEDULED;
    Kernel *k = ir_kernel_new(m, "k", (Span){0});
    Builder b = ir_builder_at_end(k, k->body);
    Value *zero = ir_index(k, 0), *four = ir_index(k, 4);
    Axis *late = ir_axis_window(&b, "late", NULL, zero, four, 4);
    Builder front = ir_builder_before(k, k->body->first);
    Axis *early = ir_axis_window(&front, "early", NULL, zero, four, 4);
    Layout draft = {.naxes = 2, .axis = {late->id, early->id}, .bits = {2, 2}};
    draft.nin[IN_OFF] = 4;
    for (int i = 0; i < 4; i++)
        draft.col[IN_OFF][i] = 1u << i;
    draft.col[IN_OFF][2] |= 1;
    AxisSet axes = axes_of(late);
    axes_add(&axes, early->id);
    Mem *buf = ir_buf(&b, BUF_SHARED, "b", DT_F32, axes, 1);
    buf->layout = layout_intern(m->layouts, &draft);
    ir_layout_name(k, buf->layout, "sw");
    const char *want = "tir scheduled sm_80\n"
                       "layout #sw = off(late:1, late:2, early:1^late:1, early:2)\n"
                       "kernel k() {\n"
                       "  axis early in 0..4 by 4\n"
                       "  axis late in 0..4 by 4\n"
                       "  @b = buf.shared : f32[early, late]#sw\n"
                       "}\n";
    const char *text = ir_print(f.arena, m, (IrPrintOptions){0}).data;
    cr_expect_str_eq(text, want);
    cr_expect_str_eq(reprint(&f, text, (IrPrintOptions){0}), want);
    arena_free(f.arena);
}
