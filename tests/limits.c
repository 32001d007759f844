// What is too deep, too long, too many or too large is refused with a message, in bounded time and
// memory; what is merely unusual compiles.
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "include/fusec.h"

// A sanitizer makes the compiler some twenty times slower: less of the same.
#ifdef __SANITIZE_ADDRESS__
enum { DEEP = 5000, MANY = 5000, LONG = 256 << 10 };
static const bool has_time = false;
#else
enum { DEEP = 100000, MANY = 70000, LONG = 10 << 20 };
static const bool has_time = true;
#endif

// A text that grows.
typedef struct Text {
    char *data;
    size_t len, cap;
} Text;

static void add_bytes(Text *t, const char *s, size_t n) {
    while (t->len + n + 1 > t->cap) {
        t->cap = t->cap ? t->cap * 2 : 4096;
        t->data = realloc(t->data, t->cap);
        cr_assert(t->data);
    }
    memcpy(t->data + t->len, s, n);
    t->len += n;
    t->data[t->len] = 0;
}

static void add(Text *t, const char *s) {
    add_bytes(t, s, strlen(s));
}

static void repeat(Text *t, const char *s, int n) {
    size_t len = strlen(s);
    for (int i = 0; i < n; i++)
        add_bytes(t, s, len);
}

// `format` takes the number and the number before it.
__attribute__((format(printf, 4, 0))) static void each(Text *t, int from, int n,
                                                       const char *format) {
    for (int i = from; i < n; i++) {
        char line[256];
        snprintf(line, sizeof line, format, i, i - 1, i - 1);
        add(t, line);
    }
}

static const char head[] = "kernel k(x: f32[N]) -> (y: f32[N]) {\n";

// Compiles through all passes; `id` is in the messages, or there are no errors when it is NULL.
// Frees the text.
static void expect(const char *what, Text *t, const char *id) {
    FuseOptions o = {.target = "sm_80", .emit = FUSE_EMIT_TILE, .stop_after = "protocol"};
    FuseResult *r = fuse_compile(&o, "t.fk", t->data, t->len);
    const char *messages = fuse_result_messages(r);
    cr_expect_not(fuse_result_internal(r), "%s: %.500s", what, messages);
    if (id) {
        char text[64];
        snprintf(text, sizeof text, "error[%s]", id);
        cr_expect(strstr(messages, text), "%s: %s is expected: %.500s", what, id, messages);
    } else {
        cr_expect(fuse_result_ok(r), "%s: %.500s", what, messages);
    }
    fuse_result_free(r);
    free(t->data);
    *t = (Text){0};
}

// --- depth ---

static void nested(const char *what, const char *before, const char *open, const char *middle,
                   const char *close) {
    Text t = {0};
    add(&t, head);
    add(&t, before);
    repeat(&t, open, DEEP);
    add(&t, middle);
    repeat(&t, close, DEEP);
    add(&t, "\n}\n");
    expect(what, &t, "too-deep");
}

Test(limits, nesting) {
    nested("parentheses", "", "(", "x", ")");
    nested("parentheses of a value", "y = ", "(", "x", ");");
    nested("minus", "y = ", "-", "x;", "");
    nested("blocks", "", "{", "y = x;", "}");
    nested("else if", "", "if N > 1 {} else ", "{}", "");
    nested("calls", "y = ", "exp(", "x", ")");
    nested("conditions", "y = ", "x > 0 ? 1.0 : ", "x;", "");
    nested("indices", "y = ", "x[", "0", "]");
    Text t = {0};
    add(&t, "kernel k(x: f32[");
    repeat(&t, "(", 5000);
    add(&t, "N");
    repeat(&t, ")", 5000);
    add(&t, "]) -> (y: f32[N]) { y = x; }");
    expect("types", &t, "too-deep");
    add(&t, head);
    add(&t, "y = x");
    repeat(&t, " + x", DEEP);
    add(&t, ";}");
    expect("a chain of sums", &t, "too-deep");
    add(&t, "fn g0(x) = x;\n");
    each(&t, 1, 3000, "fn g%d(x) = g%d(x);\n");
    add(&t, head);
    add(&t, "y = g2999(x); }");
    expect("a chain of calls", &t, "too-deep");
}

// Passes do not walk the body of a loop twice as often for each loop around it.
Test(limits, nested_loops) {
    static const char *const innermost[] = {"v = v * 2;", "z[n] = v; v = v + z[n];"};
    for (size_t i = 0; i < sizeof innermost / sizeof *innermost; i++) {
        Text t = {0};
        add(&t, head);
        add(&t, "temp z: f32[N];\nparallel n in tiles(N) { var v: f32[n] = x[n]; z[n] = v;\n");
        each(&t, 0, 60, "for a%d in 0..2 { v = v * 2;\n");
        add(&t, innermost[i]);
        repeat(&t, "}", 60);
        add(&t, "\ny[n] = v + z[n]; } }\n");
        expect("nested loops", &t, NULL);
    }
}

// --- doubling ---

static void doubling(const char *what, const char *first, const char *format, const char *last,
                     const char *id) {
    Text t = {0};
    add(&t, first);
    each(&t, 1, 41, format);
    add(&t, head);
    add(&t, last);
    add(&t, "}\n");
    expect(what, &t, id);
}

Test(limits, doubling) {
    doubling("calls", "fn g0(x) = x + 1;\n", "fn g%d(x) = g%d(x) + g%d(x);\n", "y = g40(x);",
             "too-many");
    doubling("tuples", "fn g0(x) = (x, x);\n",
             "fn g%d(x) { let (a, b) = g%d(x); return ((a, b), (a, b)); }\n",
             "let (a, b) = g40(x); y = x;", "too-many");
    if (!has_time)
        return;
    doubling("calls of constants", "fn g0(x) = x + 1;\n", "fn g%d(x) = g%d(x) + g%d(x);\n",
             "y = x + g40(1);", "too-many");
    doubling("constants", "const c0: f32 = 1.0;\n", "const c%d: f32 = c%d + c%d;\n", "y = x + c40;",
             "too-many");
    doubling("unused values", "fn g0(x) = x;\n", "fn g%d(x) { let a = g%d(x); return g%d(x); }\n",
             "y = g40(x);", "too-many");
    doubling("defaults", "fn g0(x, y = 1) = x;\n", "fn g%d(x, y = g%d(1)) = g%d(x);\n",
             "y = g40(x);", "too-many");
}

// --- many ---

static void listed(const char *what, const char *before, const char *format, const char *after,
                   const char *id) {
    Text t = {0};
    add(&t, before);
    each(&t, 0, MANY, format);
    add(&t, after);
    expect(what, &t, id);
}

Test(limits, lists) {
    listed("parameters", "kernel k(", "x%d: f32[N], ", "z: f32[N]) -> (y: f32[N]) { y = x0; }",
           "too-many");
    listed("dims", "kernel k(x: f32[", "N%d, ", "M]) -> (y: f32[N0]) { y = 1.0; }", "too-many");
    listed("binders", "kernel k(x: f32[N]) -> (y: f32[N]) { parallel ", "a%d in 0..4, ",
           "b in 0..3 {} y = x; }", "too-many");
    listed("values", "kernel k(x: f32[N]) -> (y: f32[N]) {", "let a%d = x;\n", "y = x; }",
           "too-many");
    listed("variables", "kernel k(x: f32[N]) -> (y: f32[N]) {", "var a%d = 1;\n", "y = x; }",
           "too-many");
    listed("axes", "kernel k(x: f32[N]) -> (y: f32[N]) {", "axis a%d in 4;\n", "y = x; }",
           "too-many");
    listed("temps", "kernel k(x: f32[N]) -> (y: f32[N]) {", "temp a%d: f32[N] = x;\n", "y = x; }",
           "too-many");
    listed("kernels", "", "kernel k%d(x: f32[N]) -> (y: f32[N]) { y = x; }\n", "", "too-many");
    listed("functions", "", "fn g%d(x) = x;\n", "kernel k(x: f32[N]) -> (y: f32[N]) { y = g7(x); }",
           NULL);
    listed("a module's name", "import a", ".a%d", ";", "too-many");
    listed("imports", "", "import std.nn; // %d\n", "kernel k(x: f32[N]) -> (y: f32[N]) { y = x; }",
           NULL);
}

// --- long ---

static void filled(const char *what, const char *before, const char *unit, int n, const char *after,
                   const char *id) {
    Text t = {0};
    add(&t, before);
    repeat(&t, unit, n);
    add(&t, after);
    expect(what, &t, id);
}

Test(limits, long_texts) {
    const char *open = head, *close = "y = x; }";
    filled("a comment", "/*", "*", LONG, "*/ kernel k(x: f32[N]) -> (y: f32[N]) { y = x; }", NULL);
    filled("a comment without an end", "/* ", "a ", LONG / 2, "", "bad-comment");
    filled("a line", open, " ", LONG, close, NULL);
    filled("an integer", "kernel k(x: f32[N]) -> (y: f32[N]) { y = x * ", "1", LONG, "; }",
           "number-range");
    filled("a string", "kernel k(x: f32[N]) -> (y: f32[N]) { assert(true, \"", "a", LONG,
           "\"); y = x; }", NULL);
    filled("a name", "kernel k(x: f32[N]) -> (y: f32[N]) { let ", "a", LONG, " = x; y = x; }",
           NULL);
    if (has_time)
        filled("statements", open, "y = x;\n", 1000000, "}", "too-many");
    filled("bytes that are no text", "", "\xff", LONG, "", "bad-utf8");
    filled("control characters", "", "\x01", LONG / 8, "", "bad-char");
    filled("closing brackets", "", ")", LONG / 8, "", "syntax");
    filled("opening brackets", "", "(", LONG / 8, "", "syntax");
    Text t = {0};
    for (int i = 0; i < LONG / 8; i++)
        add_bytes(&t, "", 1);
    expect("NUL bytes", &t, "bad-char");
    add_bytes(&t, "kernel k(x: f32[N]) -> (y: f32[N]) { y = x\0; }", 47);
    expect("a NUL", &t, "bad-char");
}

// --- large ---

static void one(const char *text, const char *id) {
    Text t = {0};
    add(&t, text);
    expect(text, &t, id);
}

static void body(const char *text, const char *id) {
    Text t = {0};
    add(&t, head);
    add(&t, text);
    add(&t, "}");
    expect(text, &t, id);
}

Test(limits, sizes) {
    body("axis a in 1<<62; y = x + sum[a](a as f32);", NULL);
    body("axis a in 1<<63; y = x + sum[a](a as f32);", NULL);
    body("axis a in -5; y = x + sum[a](a as f32);", NULL);
    body("parallel n in tiles(N, 1<<40) { y[n] = x[n]; }", "not-constant");
    body("parallel n in tiles(N, 4294967296) { y[n] = x[n]; }", "not-constant");
    body("parallel n in tiles(N, 0) { y[n] = x[n]; }", "not-constant");
    body("parallel n in tiles(N, -4) { y[n] = x[n]; }", "not-constant");
    body("parallel n in tiles(N, 3) { y[n] = x[n]; }", NULL);
    one("kernel k(x: f32[M, N]) -> (y: f32[M, N]) {"
        "parallel m in tiles(M, 1<<20), n in tiles(N, 1<<20) { y[m, n] = x[m, n]; } }",
        "too-large");
    one("kernel k(x: f32[B, C, M, N]) -> (y: f32[B, C, M, N]) {"
        "parallel b in tiles(B, 1<<20), c in tiles(C, 1<<20), m in tiles(M, 1<<20), "
        "n in tiles(N, 1<<20) { y[b, c, m, n] = x[b, c, m, n]; } }",
        "too-large");
    body("temp t: f32[1<<33]; axis i in 1<<33; t[i] = 1.0; y = x + t[0];", NULL);
    body("temp t: f32[1<<40, 1<<40]; axis i in 4, j in 4; t[i, j] = 1.0; y = x + t[0, 0];", NULL);
    body("parallel n in tiles(N) { var a: f32[n] = 0; for i in 0..(1<<60) { a += x[n]; } y[n] = a; "
         "}",
         NULL);
    body("parallel i in 0..(1<<60) { } y = x;", NULL);
    body("let a = (-9223372036854775807 - 1) / -1; let b = (-9223372036854775807 - 1) % -1;"
         "let c = cdiv(-9223372036854775807 - 1, -1); y = x + (a + b + c) as f32;",
         NULL);
    body(
        "let a = 1 << 64; let b = 1 << -1; let c = 1 >> 100; let d = 5 % 0; y = x + (a + b + c + d)"
        " as f32;",
        NULL);
    one("kernel k(x: f32[1<<62]) -> (y: f32[4]) { axis i in 4; y[i] = x[i]; }", NULL);
    one("kernel k(x: f32[4611686018427387904, 4611686018427387904]) -> (y: f32[4])"
        "{ axis i in 4; y[i] = x[0, i]; }",
        NULL);
}

Test(limits, schedules) {
    static const char *const wrong[] = {
        "n = -1",          "n = 0",        "n = 1073741824", "n = 2147483648",  "n = 4294967296",
        "warps = 1000000", "warps = 0",    "warps = 3",      "stages = 100000", "stages = 0",
        "stages = -1",     "split(n) = 0", "m = 4"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "kernel k(x: f32[N]) -> (y: f32[N]) schedule { %s; } { parallel n in tiles(N) { "
                 "y[n] = x[n]; } }",
                 wrong[i]);
        one(text, "bad-schedule");
    }
    one("kernel k(x: f32[N]) -> (y: f32[N]) schedule { n = 99999999999999999999; } { y = x; }",
        "number-range");
}

// --- textual IR ---

Test(limits, tile_ir) {
    filled("regions", "tir nests sm_80\nkernel k(dim N) {\n", "if true {\n", 100000, "}", "bad-ir");
    filled("garbage", "tir ", "x ", LONG / 2, "", "bad-ir");
    if (!has_time)
        return;
    listed("axes", "tir nests sm_80\nkernel k(dim N) {\n", "axis a%d of N; ", "}\n", "bad-ir");
    listed("dims", "tir nests sm_80\nkernel k(", "dim N%d, ", "dim M) {\n}\n", "bad-ir");
    listed("kernels", "tir nests sm_80\n", "kernel k%d(dim N) {\n}\n", "", "bad-ir");
}

// Code that LLVM would need minutes for: 64 elements for each thread, and many operations on each.
static void unrolled(const char *target, FuseEmit emit, const char *most) {
    Text t = {0};
    add(&t, "kernel k(x: f32[N]) -> (y: f32[N]) schedule { n = 8192; } {\n"
            "parallel n in tiles(N) { var a: f32[n] = x[n];\n");
    repeat(&t, "a = a * a + 1.5;\n", 2500);
    add(&t, "y[n] = a; } }\n");
    FuseOptions o = {.target = target, .emit = emit, .opt_level = 2};
    FuseResult *r = fuse_compile(&o, "t.fk", t.data, t.len);
    cr_expect(strstr(fuse_result_messages(r), "error[too-large]"), "%s", fuse_result_messages(r));
    cr_expect(strstr(fuse_result_messages(r), most), "%s", fuse_result_messages(r));
    fuse_result_free(r);
    free(t.data);
}

Test(limits, code) {
    if (!has_time)
        return;
    unrolled("sm_80", FUSE_EMIT_PTX, "more than 200000");
    unrolled("sim-sm_80", FUSE_EMIT_HOST, "more than 200000");
}

// The largest of the above in 1 GiB (a sanitizer reserves more).
Test(limits, memory) {
    struct rlimit before;
    getrlimit(RLIMIT_AS, &before);
    struct rlimit most = {(rlim_t)1 << 30, before.rlim_max};
    if (!has_time)
        return;
    setrlimit(RLIMIT_AS, &most);
    doubling("calls", "fn g0(x) = x + 1;\n", "fn g%d(x) = g%d(x) + g%d(x);\n", "y = g40(x);",
             "too-many");
    filled("statements", head, "y = x;\n", 1000000, "}", "too-many");
    filled("a line", head, " ", LONG, "y = x; }", NULL);
}
