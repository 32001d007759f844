// fold and scanfn on the evaluator, against plain loops in double.
#include "eval_support.h"

// (a, x) then (b, y) = (a b, b x + y), as scan and as fold.
static const char recurrence[] =
    "tir tensor sm_80\n"
    "kernel k(dim M, dim N, in @a: f32[%M, %N], in @x: f32[%M, %N], out @h: f32[%M, %N], out @l: "
    "f32[%M]) {\n"
    "  %a = load @a[M, N] : f32[M, N]; %x = load @x[M, N] : f32[M, N]\n"
    "  %p, %y = scanfn[N] %a, %x args(%a1: f32, %x1: f32, %a2: f32, %x2: f32) : f32[M, N], f32[M, "
    "N] {\n"
    "    %ab = mul %a1, %a2 : f32; %bx = mul %a2, %x1 : f32; %s = add %bx, %x2 : f32; yield %ab, "
    "%s\n"
    "  }\n"
    "  %q, %z = fold[N] %a, %x else 1.0:f32, 0.0:f32 args(%b1: f32, %z1: f32, %b2: f32, %z2: f32) "
    ": f32[M], f32[M] {\n"
    "    %bb = mul %b1, %b2 : f32; %bz = mul %b2, %z1 : f32; %t = add %bz, %z2 : f32; yield %bb, "
    "%t\n"
    "  }\n"
    "  store @h[M, N], %y; store @l[M], %z }\n";

Test(eval_fold, recurrence) {
    static const int sizes[] = {0, 1, 7, 100};
    for (int i = 0; i < 4; i++) {
        int M = 3, N = sizes[i];
        Data a = data_random(1, DT_F32, 2, M, N, 0, 0), x = data_random(2, DT_F32, 2, M, N, 0, 0);
        Data h = data_new(DT_F32, 2, M, N), l = data_new(DT_F32, 1, M);
        data_fill(&l, 5);
        assert_runs(recurrence, ARGS(arg_of(&a), arg_of(&x), arg_of(&h), arg_of(&l)));
        for (int m = 0; m < M; m++) {
            double s = 0;
            for (int n = 0; n < N; n++) {
                s = data_at(&a, m * N + n) * s + data_at(&x, m * N + n);
                cr_assert(fabs(data_at(&h, m * N + n) - s) < 1e-5 * (1 + fabs(s)));
            }
            cr_assert(fabs(data_at(&l, m) - s) < 1e-5 * (1 + fabs(s)));
        }
        data_free(&a), data_free(&x), data_free(&h), data_free(&l);
    }
}

// Lexicographic order over two axes, the last bracket axis fastest: `the later of two` gives the
// last element, `the earlier` the first; in 16 bits, where nothing may round.
Test(eval_fold, order) {
    static const char text[] =
        "tir tensor sm_80\n"
        "kernel k(dim M, dim N, in @x: f16[%M, %N], out @y: f16[4], out @z: f16[%M, %N]) {\n"
        "  %x = load @x[M, N] : f16[M, N]\n"
        "  %a, %b, %u = fold[M, N] %x, %x, true else 0.0:f16, 0.0:f16, false args(%a1: f16, %b1: "
        "f16, %u1: bool, %a2: f16, %b2: f16, %u2: bool) : f16, f16, bool {\n"
        "    %p = select %u1, %a1, %a2 : f16; %q = select %u2, %b2, %b1 : f16; %o = or %u1, %u2 : "
        "bool; yield %p, %q, %o\n"
        "  }\n"
        "  store @y[0], %a; store @y[1], %b\n"
        "  %s = scanfn[N, M] %x args(%s1: f16, %s2: f16) : f16[M, N] {\n"
        "    %c = cmp.gt %s2, 1.0:f16 : bool; %r = select %c, %s2, %s1 : f16; yield %r\n"
        "  }\n"
        "  store @z[M, N], %s }\n";
    enum { M = 4, N = 5 };
    Data x = data_new(DT_F16, 2, M, N), y = data_new(DT_F16, 1, 4), z = data_new(DT_F16, 2, M, N);
    for (int i = 0; i < M * N; i++)
        scalar_store(x.t.data, i, scalar_float(DT_F16, i * 7 % 5 == 3 ? i + 2 : 0.25 * i / M / N));
    assert_runs(text, ARGS(arg_of(&x), arg_of(&y), arg_of(&z)));
    cr_assert(data_at(&y, 0) == data_at(&x, 0) && data_at(&y, 1) == data_at(&x, M * N - 1));
    double last = data_at(&x, 0);
    for (int n = 0; n < N; n++)
        for (int m = 0; m < M; m++) {
            double v = data_at(&x, m * N + n);
            last = v > 1 ? v : last;
            cr_assert(data_at(&z, m * N + n) == last);
        }
    data_free(&x), data_free(&y), data_free(&z);
}

// Values of fewer axes take part everywhere; nothing gives the identity.
Test(eval_fold, broadcast_and_nothing) {
    static const char text[] =
        "tir tensor sm_80\n"
        "kernel k(dim M, dim N, in @x: f32[%N], in @w: f32[%M, %N], out @y: f32[%M], out @i: "
        "index[%M]) {\n"
        "  %x = load @x[N] : f32[N]; %w = load @w[M, N] : f32[M, N]\n"
        "  %a, %b, %c = fold[N] %x, %w, N else 0.0:f32, 0.0:f32, -1 args(%a1: f32, %b1: f32, %c1: "
        "index, %a2: f32, %b2: f32, %c2: index) : f32[M], f32[M], index[M] {\n"
        "    %p = add %a1, %a2 : f32; %q = add %b1, %b2 : f32; %r = max %c1, %c2 : index; yield "
        "%p, %q, %r\n"
        "  }\n"
        "  %s = sub %a, %b : f32[M]; store @y[M], %s; store @i[M], %c }\n";
    for (int N = 0; N < 6; N += 5) {
        int M = 2;
        Data x = data_new(DT_F32, 1, N), w = data_new(DT_F32, 2, M, N), y = data_new(DT_F32, 1, M),
             i = data_new(DT_INDEX, 1, M);
        data_fill(&x, 3), data_fill(&w, 2), data_fill(&y, 9), data_fill(&i, 9);
        assert_runs(text, ARGS(arg_of(&x), arg_of(&w), arg_of(&y), arg_of(&i)));
        for (int m = 0; m < M; m++)
            cr_assert(data_at(&y, m) == N && data_int(&i, m) == N - 1);
        data_free(&x), data_free(&w), data_free(&y), data_free(&i);
    }
}

// Poison in the padding is an error unless the function selects it away.
Test(eval_fold, padding) {
    static const char text[] =
        "tir scheduled sm_80\nkernel k(dim N, in @x: f32[%%N], out @z: f32[1]) {\n"
        "  axis n of N by 8; parallel %%p in 0..1 {\n with n in 2..5 {\n"
        "      %%x = load @x[n] {check = [0]} : f32[n]; %%i = inside n : bool[n]\n"
        "      %%s = select %%i, %%x, 0.0:f32 : f32[n]\n"
        "      %%u, %%r = fold[n] %%i, %s else false, 0.0:f32 args(%%v1: bool, %%a: f32, %%v2: "
        "bool, %%b: f32) : bool, f32 {\n"
        "        %%v = or %%v1, %%v2 : bool; %%t = add %%a, %%b : f32; %s; yield %%v, %%w }\n"
        "      store @z[%%p], %%r {det = [p]} } } }\n";
    static const struct {
        const char *value, *body;
        bool ok;
    } c[] = {{"%s", "%w = add %t, 0.0:f32 : f32", true},
             {"%x", "%w = add %t, 0.0:f32 : f32", false},
             {"%x", "%w = select %v2, %t, %a : f32", true}};
    Data x = data_new(DT_F32, 1, 100), z = data_new(DT_F32, 1, 1);
    data_fill(&x, 1);
    for (int i = 0; i < 3; i++) {
        char with[2048];
        snprintf(with, sizeof with, text, c[i].value, c[i].body);
        const char *said = run(with, ARGS(arg_of(&x), arg_of(&z)));
        cr_assert(c[i].ok ? !*said : strstr(said, "poison") != NULL, "%d: %s", i, said);
        if (c[i].ok)
            cr_assert(data_at(&z, 0) == 3);
    }
    data_free(&x), data_free(&z);
}
