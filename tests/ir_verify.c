// The verifier: the worked examples pass, each broken rule is named.
#include "ir/ir.h"

#include "ir_examples.h"

#include <criterion/criterion.h>
#include <string.h>

static void verify_text(const char *text, const char *rule) {
    Arena *arena = arena_new("test");
    const char *error = NULL;
    Module *m = ir_parse(arena, interner_new(arena), text, strlen(text), &error);
    cr_assert(m, "%s in\n%s", error, text);
    bool ok = ir_verify(arena, m, &error);
    if (!rule)
        cr_expect(ok, "%s in\n%s", error, text);
    else if (ok)
        cr_expect(false, "no error, but `%s` is expected in\n%s", rule, text);
    else
        cr_expect(strstr(error, rule), "`%s`, but `%s` is expected in\n%s", error, rule, text);
    arena_free(arena);
}

// `body` in a kernel at a stage; `rule` NULL: it is right.
static void verify_body(const char *stage, const char *body, const char *rule) {
    Arena *arena = arena_new("test");
    verify_text(
        arena_printf(arena,
                     "tir %s sm_80\nlayout #r = reg(m:1) lane(m:2)\n"
                     "kernel k(dim M, dim N, %%c: f32, in @x: f32[%%M, %%N], "
                     "inout @y: f32[%%M, %%N]) {\naxis m of M by 4; axis n of N by 4\n%s\n}\n",
                     stage, body),
        rule);
    arena_free(arena);
}

static void tensor(const char *body, const char *rule) {
    verify_body("tensor", body, rule);
}

Test(ir_verify, worked_examples) {
    for (int i = 0; i < EXAMPLES; i++)
        verify_text(examples[i], NULL);
}

Test(ir_verify, sort_topk_histogram) {
#define LOAD "axis j in 0..2\n%a = load @x[M, N] : f32[M, N]\n"
    tensor(LOAD "%v, %i = sort[N] %a : f32[M, N], index[M, N]", NULL);
    tensor(LOAD "%v, %i = topk[N, j] %a : f32[M, j], index[M, j]", NULL);
    tensor(LOAD "%b = cast %a : i8[M, N]\n%h = histogram[N, j] %b : index[M, j]", NULL);
    tensor(LOAD "%v = sort[N] %a : f32[M, N]", "2 results are expected");
    tensor(LOAD "%v, %i = sort[N] %a : f32[M, N], i32[M, N]", "the result is index");
    tensor(LOAD "%v, %i = sort[j] %a : f32[M, N], index[M, N]", "not those of the operand");
    tensor(LOAD "%v, %i = sort[M, N] %a : f32[M, N], index[M, N]", "one axis");
    tensor(LOAD "%v, %i = topk[N] %a : f32[M], index[M]", "two axes");
    tensor(LOAD "%v, %i = topk[N, M] %a : f32[M], index[M]", "has the new axis already");
    tensor(LOAD "%v, %i = topk[N, j] %a : f32[M, N], index[M, j]", "other axes");
    tensor(LOAD "%v, %i = topk[N, m] %a : f32[M, m], index[M, m]", "not bound here");
    tensor(LOAD "%h = histogram[N, j] %a : index[M, j]", "bins are of integers");
#undef LOAD
}

Test(ir_verify, names_kernel_op_and_rule) {
    Arena *arena = arena_new("test");
    const char *error,
        *text = "tir tensor sm_80\nkernel k(dim M) {\n%a = add %M, 1:i32 : index\n}\n";
    Module *m = ir_parse(arena, interner_new(arena), text, strlen(text), &error);
    cr_assert(m);
    cr_expect_not(ir_verify(arena, m, &error));
    cr_expect_str_eq(error,
                     "kernel k: `%a = add %M, 1:i32 : index`: operands have different types");
    arena_free(arena);
}

Test(ir_verify, dominance) {
    tensor("if true {\n%a = add %c, %c : f32\n}\n%b = neg %a : f32", "%a is not defined in front");
    tensor("if true {\n%a = add %c, %c : f32\n} {\n%b = neg %a : f32\n}",
           "%a is not defined in front");
    tensor("if true {\n@t = temp : f32[%M]\n}\nstore @t[M], 0.0:f32", "@t is not defined in front");
    tensor("if true {\naxis j in 0..4\n}\n%a = neg j : index[j]", "axis j is not bound here");
    tensor("for %i in 0..4 {\n}\n%b = neg %i : index", "%i is not defined in front");
}

Test(ir_verify, axes) {
    tensor("%a = neg m : index[m]", "axis m is not bound here");
    tensor("%a = load @x[m, N] : f32[m, N]", "axis m is not bound here");
    tensor("parallel m in 0..%M {\n%a = load @x[m, n] : f32[m, n]\n}", "axis n is not bound here");
    tensor("parallel m in 0..%M {\nfor m in 0..%M {\n}\n}", "axis m is bound around it");
    tensor("parallel m in 0..%M, m in 0..%M {\n}", "axis m is bound twice");
    tensor("parallel M in 0..%M {\n}", "axis M has a window of its own");
    tensor("axis j in 0..4 by 4\n%a = neg j : index[j]", NULL);
    tensor("axis j of M like m\nparallel m in 0..%M {\n%a = neg j : index[j]\n}", NULL);
    tensor("axis j of M like m\n%a = neg j : index[j]", "axis j is not bound here");
    tensor("%b = begin m : index", "axis m is not bound here");
    tensor("%a = inside n : bool[n]", "axis n is not bound here");
    tensor("axis j in 0..M by 4", "a bound is not a scalar integer");
    tensor("parallel m in 0..%c {\n}", "a bound is not a scalar integer");
    tensor("parallel m in 0..4:i32 {\n}", "bounds have different types");
}

Test(ir_verify, types) {
    tensor("%a = add %c, 1.0:f32 : f64", "the result is f32");
    tensor("%a = add M, N : index[M]", "the result has other axes");
    tensor("%a = add %c : f32", "2 operands are expected");
    tensor("%a = select %c, %c, %c : f32", "the condition is not a bool");
    tensor("%a = cmp.lt %c, %c : f32", "the result is bool");
    tensor("%a = shl %M, 1:i32 : index", NULL);
    tensor("%a = shl %c, 1:i32 : f32", "shifts are of integers");
    tensor("%a = cast M : f32[N]", "the result has other axes");
    tensor("%v = load @x[M, N] : f32[M, N]\n%a = reduce.sum[M] %v : f32[M, N]",
           "the result has other axes");
    tensor("%v = load @x[M, 0] : f32[M]\n%a = reduce.sum[N] %v : f32[M]",
           "the axes are not those of the operand");
    tensor("%a = reduce.any[M] M : index", "any and all take a bool");
    tensor("%v = load @x[M, N] : f32[M, N]\n%a = dot[M] %v, %c : f32[N]",
           "a contracted axis is not in both");
    tensor("%v = load @x[M, N] : f32[M, N]\n%a = dot[M] %v, %v, %v : f32[N]",
           "the accumulator has a contracted axis");
    tensor("%v = load @x[M, N] : f32[M, N]\n%a = dot[M] %v, %v : f32[N]", NULL);
    tensor("%v = load @x[M, N] : f32[M, N]\n%a, %b = argreduce.max[M, N] %v : index, index", NULL);
    tensor("%v = load @x[M, N] : f32[M, N]\n%a = argreduce.max[M, N] %v : index",
           "2 results are expected");
    tensor("%v = load @x[M, N] : f32[M, N]\n%a = take %v, M = %c : f32[N]",
           "an index is not an integer");
    tensor("%a = begin M : f32", "the result is index");
    tensor("require M", "operand 0 is not a scalar");
    tensor("require %c", "the condition is not a bool");
    tensor("%a = neg %c : async f32", "the result is f32");
}

Test(ir_verify, memory) {
    tensor("%a = load @x[M] : f32[M]", "@x has 2 dims");
    tensor("%a = load @x[%c, 0] : f32", "an index of @x is not an integer");
    tensor("%a = load @x[M, N] else 0 : f32[M, N]", "the fill has another type");
    tensor("store @y[M, 0], N", "@y holds f32");
    tensor("%v = load @x[M, N] : f32[M, N]\nstore @y[M, 0], %v",
           "the value has an axis that no index has");
    tensor("%v = load @x[M, N] : f32[M, N]\natomic.add @y[0, 0], %v", NULL);
    tensor("store @x[0, 0], %c", "@x is only read");
    tensor("%a = extent @x {dim = 2} : index", "@x has 2 dims");
    tensor("store @y[0, 0], %c {check = [2]}", "`check`: the tensor has 2 dims");
    tensor("parallel %i in 0..4 {\nstore @y[%i, 0], %c\n}", "a store without a race proof");
    tensor("store @y[0, 0], %c {det = [_]}", "`det` has one name for each dim");
    tensor("store @y[0, 0], %c {det = [_, q]}", "nothing has the name `q`");
    tensor("@t = temp : f32[M]", "a dim is not a scalar integer");
}

Test(ir_verify, control) {
    tensor("yield", "`yield` is not at the end");
    tensor("if %c {\n}", "the condition is not a scalar bool");
    tensor("%r = if true : f32 {\nyield %c\n}", "does not end in `yield`");
    tensor("%r = if true : f32 {\nyield %c\n} {\nyield 1\n}", "value 0: another type is carried");
    tensor("%r = if true : f32 {\nyield %c, %c\n} {\nyield %c\n}", "1 values are expected");
    tensor("if true {\nyield stop true\n}", "`stop` outside of a loop");
    tensor("while {\n}", "nothing stops the loop");
    tensor("while {\nyield stop 1\n}", "the stop condition is not a scalar bool");
    tensor("%r = for %i in 0..4 carry (%a = 0 : f32) : f32 {\nyield %a\n}",
           "init 0: another type is carried");
    tensor("%r = for %i in 0..4 carry (%a = %c : f32) : f32[M] {\nyield %a\n}",
           "have different types");
    tensor("%r = for %i in 0..4 carry (%a = 0.0:f32 : f32[M]) : f32[M] {\nyield %a\n}", NULL);
    tensor("for %i in 0..4 {\nyield %i\n}", "0 values are expected");
}

Test(ir_verify, functions) {
#define FOLD(values, ids, type, body)                                                              \
    "%v = load @x[M, N] : f32[M, N]\n%r = fold[N] " values " else " ids                            \
    " args(%a: f32, %b: f32) : " type " {\n" body "\n}"
    tensor(FOLD("%v", "0.0:f32", "f32[M]", "%s = add %a, %b : f32\nyield %s"), NULL);
    tensor(FOLD("%v", "0.0:f32", "f32[M]", "yield 1.0:f32"), NULL);
    tensor(FOLD("%v", "0.0:f32", "f32[M, N]", "yield %a"), "the result has other axes");
    tensor(FOLD("%v", "0", "f32[M]", "yield %a"),
           "an identity is not a scalar of its value's type");
    tensor(FOLD("%v", "%v", "f32[M]", "yield %a"), "an identity is not a scalar");
    tensor(FOLD("%v", "0.0:f32, 1.0:f32", "f32[M]", "yield %a"), "each value needs an identity");
    tensor(FOLD("%c", "0.0:f32", "f32", "yield %a"), "the axes are not those of the operands");
    tensor(FOLD("%v", "%c", "f32[M]", "yield %a"), NULL);
    tensor(FOLD("%v", "0.0:f32", "f32[M]", "yield %c"), "uses a value from outside");
    tensor(FOLD("%v", "0.0:f32", "f32[M]", "%s = add %a, %c : f32\nyield %s"),
           "uses a value from outside");
    tensor(FOLD("%v", "0.0:f32", "f32[M]", "%s = load @x[0, 0] : f32\nyield %s"),
           "a function of elements has elementwise ops only");
    tensor(FOLD("%v", "0.0:f32", "f32[M]", "yield 1"), "another type is carried");
    tensor(FOLD("%v", "0.0:f32", "f32[M]", "yield %a, %b"), "1 values are expected");
    tensor(FOLD("%v", "0.0:f32", "f32[M]", "%s = add %a, %b : f32"), "does not end in `yield`");
    tensor("%v = load @x[M, N] : f32[M, N]\n%r = fold[N] %v else 0.0:f32 args(%a: f32, %b: i32) : "
           "f32[M] {\nyield %a\n}",
           "argument 1 is not an element of its value");
    tensor("%r, %q = scanfn[M, N] M, N args(%a: index, %b: index, %d: index, %e: index) : "
           "index[M, N], index[M, N] {\nyield %a, %b\n}",
           "no operand has all axes");
    tensor("%r = scanfn[M] M args(%a: index, %b: index) : index[M] {\nyield %b\n}\n"
           "%q = neg %a : index",
           "%a is not defined in front");
}

Test(ir_verify, stages) {
    verify_body("nests", "%a = load @x[M, N] : f32[M, N]", "`load` is outside of a parallel");
    verify_body("nests", "%a = neg M : index[M]", "a tile outside of a parallel");
    verify_body("nests", "parallel m in 0..%M {\nparallel n in 0..%N {\n}\n}",
                "a grid inside of a grid");
    verify_body("nests", "launch %p in 0..4 {\n}", "`launch` is not an op of stage nests");
    verify_body("tensor", "@b = buf.shared : f32[m]", "`buf` is not an op of stage tensor");
    verify_body("placed", "parallel m in 0..%M {\n}", "`parallel` is not an op of stage placed");
    verify_body("scheduled", "axis j of M\nparallel j in 0..%M {\n}", "axis j has no size");
    verify_body("scheduled", "parallel m in 0..%M {\n%a = load @x[m, N] : f32[m, N]\n}",
                "axis N has no size");
    verify_body("placed",
                "launch %p in 0..4 args(%M) {\nwith m in 0..%M {\n%a = neg m : index[m]\n}\n}",
                "a tile has no layout");
    verify_body("placed", "launch %p in 0..4 args() {\n%a = add %p, %M : index\n}",
                "%M is used inside and is not among `args`");
    verify_body("placed", "launch %p in 0..4 args(%M) {\n%a = load @x[0, %M] : f32\n}",
                "@x is used inside and is not among `args`");
    verify_body("placed", "launch %p in 0..4 args(%M; @x) {\n%a = load @x[0, %M] : f32\n}", NULL);
    verify_body("placed",
                "launch %p in 0..4 args(%M) {\nwith m in 0..%M {\n%a = neg m : index[m]#r\n}\n}",
                NULL);
}

Test(ir_verify, staging) {
#define BUFS                                                                                       \
    "parallel m in 0..%M, n in 0..%N {\n@b = buf.shared {stages = 2} : f32[m, n]\n@c = chan @b\n"
    verify_body("scheduled", BUFS "copy @x[m, n] to @b(0:i32) signal @c\nwait @c(0:i32)\n}", NULL);
    verify_body("scheduled", BUFS "wait @c\n}", "a position is expected");
    verify_body("scheduled", BUFS "wait @b(0:i32)\n}", "a channel is expected");
    verify_body("scheduled", BUFS "copy @x[m, n] to @y[m, n]\n}", "between a tensor and a buffer");
    verify_body("scheduled", BUFS "copy @b(0) to @x[m, n]\n}", "@x is only read");
    verify_body("scheduled", BUFS "%a = get @b(0) : f32[m]\n}", "the result has other axes");
    verify_body("scheduled", BUFS "put @b(0), 1\n}", "@b holds another type");
    verify_body("scheduled", BUFS "%a = get @b(%c) : f32[m, n]\n}",
                "a position is not a scalar integer");
    verify_body("scheduled", BUFS "axis k of M by 8\n%a = get @b(0)[m = k] : f32[k, n]\n}",
                "axis k is not bound here");
    verify_body("scheduled",
                "axis k of M by 8\n" BUFS
                "with k in 0..4 {\n%a = get @b(0)[m = k] : f32[n, k]\n}\n}",
                "axes m and k have different sizes");
}
