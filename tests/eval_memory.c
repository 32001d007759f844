// Tensors: nothing outside exists, check and guard, poison at memory and addresses, atomics, facts,
// sampling.
#include "eval_support.h"

#define F(...)                                                                                     \
    sizeof((double[]){__VA_ARGS__}) / sizeof(double), (const double[]) {                           \
        __VA_ARGS__                                                                                \
    }
#define I(...)                                                                                     \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]) {                        \
        __VA_ARGS__                                                                                \
    }

Test(eval_memory, outside_at_tensor) {
    static const char text[] =
        "tir tensor sm_80\nkernel k(dim N, in @x: i32[%N], in @i: i64[%N], out @y: i32[%N], out "
        "@z: i32[%N]) {\n"
        "  %i = load @i[N] : i64[N]; %x = load @x[%i] else -5:i32 : i32[N]; store @y[N], %x\n"
        "  scatter @z[%i], 9:i32; %b = inside @x[%i] : bool[N] }\n";
    Data x = data_ints(DT_I32, I(10, 20, 30)), i = data_ints(DT_I64, I(2, -1, 3)),
         y = data_new(DT_I32, 1, 3);
    Data z = data_new(DT_I32, 1, 3);
    assert_runs(text, ARGS(arg_of(&x), arg_of(&i), arg_of(&y), arg_of(&z)));
    cr_assert(data_int(&y, 0) == 30 && data_int(&y, 1) == -5 && data_int(&y, 2) == -5);
    cr_assert(data_int(&z, 0) == 0 && data_int(&z, 1) == 0 && data_int(&z, 2) == 9);
    data_free(&x), data_free(&i), data_free(&y), data_free(&z);
}

Test(eval_memory, absent_tensor) {
    static const char text[] = "tir tensor sm_80\nkernel k(dim N, in opt @b: f32[%N], in opt @s: "
                               "f32[1], out opt @o: f32[%N], out @y: f32[%N], "
                               "out @e: index[3]) {\n"
                               "  %b = load @b[N] : f32[N]; %s = load @s[0] else 3.0:f32 : f32; %t "
                               "= add %b, %s : f32[N]; store @o[N], %t\n"
                               "  store @y[N], %t; %p = present @b : bool; %q = cast %p : index; "
                               "%x = extent @b {dim = 0} : index\n"
                               "  store @e[0], %q; store @e[1], %x; %st = stride @y {dim = 0} : "
                               "index; store @e[2], %st }\n";
    Data b = data_floats(DT_F32, F(1, 2)), s = data_new(DT_F32, 1, 1), o = data_new(DT_F32, 1, 2);
    Data y = data_new(DT_F32, 1, 2), e = data_new(DT_INDEX, 1, 3);
    data_fill(&s, 10);
    assert_runs(text, ARGS(arg_of(&b), arg_of(&s), arg_of(&o), arg_of(&y), arg_of(&e)));
    cr_assert(data_at(&y, 1) == 12 && data_at(&o, 1) == 12 && data_int(&e, 0) == 1 &&
              data_int(&e, 1) == 2);
    assert_runs(text, ARGS(arg_of(NULL), arg_of(NULL), arg_of(NULL), arg_of(&y), arg_of(&e)));
    cr_assert(data_at(&y, 0) == 3 && data_at(&y, 1) == 3 && data_int(&e, 0) == 0 &&
              data_int(&e, 1) == 0);
    cr_assert(data_int(&e, 2) == 1);
    assert_fails("no argument for @y", text,
                 ARGS(arg_of(NULL), arg_of(NULL), arg_of(NULL), arg_of(NULL), arg_of(&e)));
    data_free(&b), data_free(&s), data_free(&o), data_free(&y), data_free(&e);
}

Test(eval_memory, strides_and_packed) {
    static const char text[] =
        "tir tensor sm_80\nkernel k(dim M, dim N, in @x: i4[%M, %N], out @y: u4[%M, %N]) {\n"
        "  %x = load @x[M, N] : i4[M, N]; %y = cast %x : u4[M, N]; store @y[M, N], %y }\n";
    Data x = data_new(DT_I4, 2, 3, 5), y = data_new(DT_U4, 2, 5, 3);
    for (int i = 0; i < 15; i++)
        scalar_store(x.t.data, i, scalar_int(DT_I4, i - 8));
    y.t.dims[0] = 3, y.t.dims[1] = 5, y.t.strides[0] = 1, y.t.strides[1] = 3; // column-major
    assert_runs(text, ARGS(arg_of(&x), arg_of(&y)));
    for (int i = 0; i < 15; i++)
        cr_assert(data_int(&y, i % 5 * 3 + i / 5) == ((i - 8) & 15));
    data_free(&x), data_free(&y);
}

Test(eval_memory, arguments) {
    static const char text[] = "tir tensor sm_80\nkernel k(dim M, dim S, in @x: f32[%M, 4], in @w: "
                               "f32[%M], %c: i32) {\n}\n";
    Data x = data_new(DT_F32, 2, 2, 4), w = data_new(DT_F32, 1, 3), v = data_new(DT_F32, 1, 2),
         bad = data_new(DT_F32, 2, 2, 5);
    EvalDim s = {"S", 5};
    EvalOptions opts = {.ndims = 1, .dims = &s};
    cr_assert(!*run_with(text, &opts, ARGS(arg_of(&x), arg_of(&v), arg_int(1))));
    assert_fails("no argument carries the dim S", text, ARGS(arg_of(&x), arg_of(&v), arg_int(1)));
    assert_fails("dim 0 of @w is 3, but M is 2", text, ARGS(arg_of(&x), arg_of(&w), arg_int(1)));
    assert_fails("dim 1 of @x is 5", text, ARGS(arg_of(&bad), arg_of(&v), arg_int(1)));
    assert_fails("takes 3 arguments, got 2", text, ARGS(arg_of(&x), arg_of(&v)));
    assert_fails("must be a scalar", text, ARGS(arg_of(&x), arg_of(&v), arg_of(&v)));
    assert_fails("rank 1", text, ARGS(arg_of(&v), arg_of(&v), arg_int(1)));
    data_free(&x), data_free(&w), data_free(&v), data_free(&bad);
}

Test(eval_memory, guards_of_variants) {
    static const char text[] =
        "tir tensor sm_80\nkernel k(dim M, dim N, in opt @x: f32[%M, %N] {align = 16, inner = 1, "
        "sdiv = 4}, in @w: f32[%M, %N]) {\n}\n";
    Data x = data_new(DT_F32, 2, 2, 8), y = data_new(DT_F32, 2, 2, 6);
    EvalReport report;
    EvalOptions opts = {.check_guards = true, .report = &report};
    cr_assert(!*run_with(text, &opts, ARGS(arg_of(&x), arg_of(&x))) && !report.no_variant);
    cr_assert(strstr(run_with(text, &opts, ARGS(arg_of(&y), arg_of(&y))), "sdiv") &&
              report.no_variant);
    cr_assert(!*run_with(text, NULL, ARGS(arg_of(&y), arg_of(&y))));
    data_free(&x), data_free(&y);
}

Test(eval_memory, atomics) {
    static const char text[] = "tir tensor sm_80\nkernel k(dim N, dim V, in @i: i32[%N], in @x: "
                               "f32[%N], inout @s: f32[%V], inout @m: f32[1], inout @o: i32[1]) {\n"
                               "  %i = load @i[N] : i32[N]; %x = load @x[N] : f32[N]; atomic.add "
                               "@s[%i], %x; atomic.max @m[0], %x\n"
                               "  %old = atomic.add @o[0], 5:i32 : i32; %new = atomic.xchg @o[0], "
                               "%old : i32; atomic.or @o[0], %new }\n";
    Data i = data_ints(DT_I32, I(1, 0, 1, 7)), x = data_floats(DT_F32, F(1, 2, 4, 8)),
         s = data_new(DT_F32, 1, 2);
    Data m = data_new(DT_F32, 1, 1), o = data_new(DT_I32, 1, 1);
    data_fill(&s, 100), data_fill(&m, 3), data_fill(&o, 2);
    assert_runs(text, ARGS(arg_of(&i), arg_of(&x), arg_of(&s), arg_of(&m), arg_of(&o)));
    cr_assert(data_at(&s, 0) == 102 && data_at(&s, 1) == 105 && data_at(&m, 0) == 8);
    cr_assert(data_int(&o, 0) == (2 | 7));
    data_free(&i), data_free(&x), data_free(&s), data_free(&m), data_free(&o);
}

// NaN wins in `max` and `min` and stays; a compare-and-swap compares bits, so that NaN is itself
// and -0 is not 0.
Test(eval_memory, atomics_of_nan) {
    static const char text[] =
        "tir tensor sm_80\nkernel k(dim N, in @x: f32[%N], inout @m: f32[2], inout @c: f32[3], in "
        "@w: f32[3], out @o: f32[3]) {\n"
        "  axis j in 0..3\n"
        "  %x = load @x[N] : f32[N]; atomic.max @m[0], %x; atomic.min @m[1], %x\n"
        "  atomic.max @m[0], 9.0:f32; %w = load @w[j] : f32[j]\n"
        "  %old = atomic.cas @c[j], %w, 7.0:f32 : f32[j]; store @o[j], %old }\n";
    static const double held[] = {NAN, 0, 2};
    Data x = data_floats(DT_F32, F(1, NAN, 5)), m = data_new(DT_F32, 1, 2),
         c = data_floats(DT_F32, 3, held), w = data_floats(DT_F32, F(NAN, -0.0, 2)),
         o = data_new(DT_F32, 1, 3);
    assert_runs(text, ARGS(arg_of(&x), arg_of(&m), arg_of(&c), arg_of(&w), arg_of(&o)));
    cr_expect(isnan(data_at(&m, 0)) && isnan(data_at(&m, 1)));
    cr_expect(data_at(&c, 0) == 7 && data_at(&c, 1) == 0 && data_at(&c, 2) == 7);
    cr_expect(isnan(data_at(&o, 0)) && data_at(&o, 1) == 0 && data_at(&o, 2) == 2);
    data_free(&x), data_free(&m), data_free(&c), data_free(&w), data_free(&o);
}

// At `scheduled`: one program of 8 positions over 5 elements of a tensor of 20.
static const char *window(const char *body) {
    static char text[1024];
    snprintf(text, sizeof text,
             "tir scheduled sm_80\nkernel k(dim N, dim Z, in @x: i32[%%N], inout @y: i32[%%N], "
             "inout @z: i32[%%Z]) {\n"
             "  axis n of N by 8; parallel %%p in 0..1 {\n with n in 2..7 {\n    %s\n} } }\n",
             body);
    return text;
}

Test(eval_memory, scheduled_accesses) {
    static const struct {
        const char *body, *says;
    } c[] = {
        {"%x = load @x[n] : i32[n]; store @y[n], %x {guard = [n]}", ""},
        {"%x = load @x[n] : i32[n]; store @y[n], %x", "stores the padding position n = 7 to @y"},
        {"store @y[n], 1:i32", "stores the padding position"},
        {"%x = load @x[n] {guard = [n]} : i32[n]; atomic.add @z[0], %x", ""},
        {"%x = load @x[n] : i32[n]; atomic.add @z[0], %x", "poison"},
        {"%x = load @x[n] : i32[n]; atomic.add @z[0], %x {guard = [n]}", ""},
        {"%x = load @x[n] : i32[n]; %i = mul %x, 0:i32 : i32[n]; %w = load @x[%i] : i32[n]",
         "poison reaches the address"},
        {"%x = load @x[n] : i32[n]; %i = mul %x, 0:i32 : i32[n]; %w = load @x[%i] {check = [0]} : "
         "i32[n]; "
         "store @y[n], %w {guard = [n]}",
         ""},
        {"%x = load @x[n] : i32[n]; scatter @y[%x], %x {guard = [n]}", "without a check"},
        {"%q = add n, 15 : index[n]; %x = load @x[%q] : i32[n]", "outside its extent 20"},
        {"%q = add n, 13 : index[n]; %x = load @x[%q] : i32[n]",
         "index 0 of @x is 20, outside its extent 20"},
        {"%q = add n, 13 : index[n]; %x = load @x[%q] {guard = [n]} : i32[n]", ""},
        {"%q = add n, 13 : index[n]; %x = load @x[%q] {check = [0]} : i32[n]", ""},
        {"%q = sub n, 3 : index[n]; store @y[%q], 1:i32 {guard = [n]}", "is -1, outside"},
        {"%q = sub n, 3 : index[n]; store @y[%q], 1:i32 {check = [0], guard = [n]}", ""},
        {"%i = inside n : bool[n]; %x = load @x[n] : i32[n]; %c = cmp.ge %x, 0:i32 : bool[n]; %d = "
         "and %i, %c : bool[n]; "
         "%s = select %d, %x, 1:i32 : i32[n]; %r = reduce.sum[n] %s : i32",
         ""},
    };
    Data x = data_new(DT_I32, 1, 20), y = data_new(DT_I32, 1, 20), z = data_new(DT_I32, 1, 1);
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        random_fill(x.t.data, DT_I32, 20, (RandomSpec){RANDOM_UNIFORM, 30, 40}, 1);
        data_fill(&y, 0);
        const char *said = run(window(c[i].body), ARGS(arg_of(&x), arg_of(&y), arg_of(&z)));
        cr_assert(*c[i].says ? strstr(said, c[i].says) != NULL : !*said, "%s\nsaid `%s`, not `%s`",
                  c[i].body, said, c[i].says);
    }
    data_free(&x), data_free(&y), data_free(&z);
}

Test(eval_memory, assert_only_inside) {
    Data x = data_new(DT_I32, 1, 20), y = data_new(DT_I32, 1, 20), z = data_new(DT_I32, 1, 1);
    EvalArg args[] = {arg_of(&x), arg_of(&y), arg_of(&z)};
    assert_runs(window("%c = cmp.lt n, 7 : bool[n]; assert %c {msg = \"m\"}"), 3, args);
    assert_fails("assert: too far, at n = 6",
                 window("%c = cmp.lt n, 6 : bool[n]; assert %c {msg = \"too far\"}"), 3, args);
    data_free(&x), data_free(&y), data_free(&z);
}

Test(eval_memory, temp) {
    static const char text[] =
        "tir nests sm_80\nkernel k(dim N, in @x: i32[%%N], out @y: i32[%%N]) {\n"
        "  axis n of N; axis m of N; @t = temp%s : i32[%%N]; parallel n in 0..%s {\n"
        "    %%x = load @x[n] : i32[n]; store @t[n], %%x {det = [n]} }\n"
        "  parallel m in 0..%%N {\n %%t = load @t[m] : i32[m]; store @y[m], %%t {det = [m]} } }\n";
    char with[1024];
    Data x = data_ints(DT_I32, I(1, 2, 3)), y = data_new(DT_I32, 1, 3);
    snprintf(with, sizeof with, text, "", "%N");
    assert_runs(with, ARGS(arg_of(&x), arg_of(&y)));
    cr_assert(data_int(&y, 2) == 3);
    snprintf(with, sizeof with, text, "", "2");
    assert_fails("store: stores poison to @y at m = 2", with, ARGS(arg_of(&x), arg_of(&y)));
    snprintf(with, sizeof with, text, " {zero = true}", "2");
    assert_runs(with, ARGS(arg_of(&x), arg_of(&y)));
    cr_assert(data_int(&y, 1) == 2 && data_int(&y, 2) == 0);
    data_free(&x), data_free(&y);
}

Test(eval_memory, require_and_when) {
    static const char text[] =
        "tir tensor sm_80\nkernel k(%%n: i32) {\n %%c = cmp.gt %%n, 3:i32 : bool; %s }\n";
    char with[256];
    snprintf(with, sizeof with, text, "require %c {msg = \"n > 3\"}");
    assert_runs(with, ARGS(arg_int(4)));
    assert_fails("require: n > 3", with, ARGS(arg_int(3)));
    snprintf(with, sizeof with, text, "when %c");
    EvalReport report;
    EvalOptions opts = {.report = &report};
    cr_assert(strstr(run_with(with, &opts, ARGS(arg_int(3))), "variant does not apply") &&
              report.no_variant);
    cr_assert(!*run_with(with, &opts, ARGS(arg_int(4))) && !report.no_variant);
}
