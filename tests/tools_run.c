// tools/run_args.c and run_generics.c: what `fusec run` was asked, and which types that means.
#include <criterion/criterion.h>

#include "tools/run_args.h"
#include "tools/run_generics.h"

#include <math.h>
#include <string.h>

enum { MOST_WORDS = 16 };

// Parses "fusec run WORDS..." split at spaces; the text must outlive the result.
static bool parse(char *text, OptParse *opts, RunArgs *args, ToolError *error) {
    char *words[MOST_WORDS] = {"fusec", "run"};
    int count = 2;
    for (char *word = strtok(text, " "); word && count < MOST_WORDS; word = strtok(NULL, " "))
        words[count++] = word;
    cr_assert(opts_parse(opts, count, words), "%s", opts->error);
    return run_args_parse(args, opts, error);
}

Test(tools_run, operands) {
    char text[] = "a.b/k.fk:gelu x=x.npy w=m.safetensors:layer.0.weight b=b.safetensors s=0.5 n=-3 "
                  "h=0x10 t=true i=-inf --shape=y=256,50 --shape=z= --random=M=4,N=1000 --repeat=3";
    OptParse opts;
    RunArgs args;
    ToolError error;
    cr_assert(parse(text, &opts, &args, &error), "%s", error.text);
    cr_expect_str_eq(args.source, "a.b/k.fk");
    cr_expect_str_eq(args.kernel, "gelu");
    const RunValue *v = run_args_value(&args, "x");
    cr_expect(v && v->kind == RUN_NPY && strcmp(v->path, "x.npy") == 0);
    v = run_args_value(&args, "w");
    cr_expect(v && v->kind == RUN_SAFETENSORS && strcmp(v->path, "m.safetensors") == 0 &&
              strcmp(v->key, "layer.0.weight") == 0);
    v = run_args_value(&args, "b");
    cr_expect(v && strcmp(v->path, "b.safetensors") == 0 && strcmp(v->key, "b") == 0);
    v = run_args_value(&args, "s");
    cr_expect(v && v->kind == RUN_FLOAT && v->real == 0.5);
    v = run_args_value(&args, "n");
    cr_expect(v && v->kind == RUN_INTEGER && v->integer == -3 && v->real == -3);
    v = run_args_value(&args, "h");
    cr_expect(v && v->integer == 16);
    v = run_args_value(&args, "t");
    cr_expect(v && v->kind == RUN_INTEGER && v->integer == 1);
    v = run_args_value(&args, "i");
    cr_expect(v && v->kind == RUN_FLOAT && isinf(v->real));
    const RunShape *shape = run_args_shape(&args, "y");
    cr_expect(shape && shape->rank == 2 && shape->dims[0] == 256 && shape->dims[1] == 50);
    shape = run_args_shape(&args, "z");
    cr_expect(shape && shape->rank == 0);
    cr_expect(args.is_random && args.dim_count == 2 && run_args_dim(&args, "N")->size == 1000);
    cr_expect(args.seed == 1 && args.repeat == 3 && args.tolerance < 0);
    run_args_free(&args);
    opts_free(&opts);
}

Test(tools_run, wrong_operands) {
    static const char *const rows[][2] = {
        {"", "no input file"},
        {"k.fk:", "not FILE.fk:KERNEL"},
        {"k.fk:a-b", "not FILE.fk:KERNEL"},
        {"k.fk x.npy", "'x.npy' is not NAME=VALUE"},
        {"k.fk 1x=3", "not NAME=VALUE"},
        {"k.fk x=", "neither a number"},
        {"k.fk x=3z", "neither a number"},
        {"k.fk x=x.npz", "neither a number"},
        {"k.fk x=1 x=2", "'x' is given twice"},
        {"k.fk x=m.safetensors:", "no tensor after the colon"},
        {"k.fk --shape=y", "--shape takes"},
        {"k.fk --shape=y=1,", "--shape takes"},
        {"k.fk --shape=y=-1", "--shape takes"},
        {"k.fk --shape=y=99999999999999999999", "--shape takes"},
        {"k.fk --shape=y=1,1,1,1,1,1,1,1,1", "more than 8"},
        {"k.fk --shape=y=1 --shape=y=2", "given twice"},
        {"k.fk --random=M", "--random takes"},
        {"k.fk --random=M=4,", "--random takes"},
        {"k.fk --random=M=4,M=5", "given twice"},
        {"k.fk --seed=x", "--seed takes"},
        {"k.fk --repeat=0", "--repeat takes"},
        {"k.fk --tolerance=-1", "--tolerance takes"},
        {"k.fk --tolerance=nan", "--tolerance takes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s", rows[i][0]);
        OptParse opts;
        RunArgs args;
        ToolError error = {"(accepted)"};
        bool ok = parse(text, &opts, &args, &error);
        cr_expect(!ok && strstr(error.text, rows[i][1]), "%s: expected '%s', got '%s'", rows[i][0],
                  rows[i][1], error.text);
        run_args_free(&args);
        opts_free(&opts);
    }
}

// The files "given": name and type, for run_kernel_find.
typedef struct Given {
    const char *name;
    DType dtype;
} Given;

static DType given_dtype(void *user, const char *parameter) {
    for (const Given *g = user; g->name; g++)
        if (strcmp(g->name, parameter) == 0)
            return g->dtype;
    return DT_NONE;
}

static const char source[] =
    "kernel a<T: float, D: i32 = 4, U: integer>(x: T[M], i: U[M]) -> (y: T[M], inout z: U[M]) {\n"
    "    y = x;\n}\n"
    "kernel b(x: f32[M]) -> (y: f32[M]) { y = x; }\n";

static void check_kernel(const char *wanted, const char *const *defines, bool assume, Given *given,
                         const char *const *expect) {
    Arena *arena = arena_new("test");
    RunKernel kernel;
    ToolError error;
    cr_assert(run_kernel_find(arena, source, sizeof source - 1, wanted, defines, assume,
                              given_dtype, given, &kernel, &error),
              "%s", error.text);
    cr_expect_str_eq(kernel.name, wanted);
    size_t n = 0;
    for (; kernel.defines[n] && expect[n]; n++)
        cr_expect_str_eq(kernel.defines[n], expect[n]);
    cr_expect(!kernel.defines[n] && !expect[n], "%zu defines", n);
    arena_free(arena);
}

#define LIST(...)  ((const char *const[]){__VA_ARGS__, NULL})
#define GIVEN(...) ((Given[]){__VA_ARGS__, {NULL, DT_NONE}})

Test(tools_run, types_come_from_files) {
    const char *const none[] = {NULL};
    check_kernel("a", NULL, false, GIVEN({"x", DT_BF16}, {"i", DT_I64}), LIST("T=bf16", "U=i64"));
    check_kernel("a", NULL, false, GIVEN({"x", DT_F64}), LIST("T=f32"));
    check_kernel("a", LIST("T=f16"), false, GIVEN({"x", DT_F32}), LIST("T=f16"));
    check_kernel("a", LIST("a.T=f16"), false, GIVEN({"x", DT_F32}), LIST("a.T=f16"));
    check_kernel("a", LIST("b.T=f16"), false, GIVEN({"x", DT_F32}), LIST("b.T=f16", "T=f32"));
    // An old file where an output goes says nothing; one that is read does.
    check_kernel("a", NULL, false, GIVEN({"y", DT_BF16}), none);
    check_kernel("a", NULL, false, GIVEN({"z", DT_I8}), LIST("U=i8"));
    check_kernel("a", NULL, true, GIVEN({"q", DT_I8}), LIST("T=f32", "U=i32"));
    check_kernel("b", NULL, true, GIVEN({"x", DT_F32}), none);
}

static void check_no_kernel(const char *text, const char *wanted, const char *expect) {
    Arena *arena = arena_new("test");
    RunKernel kernel;
    ToolError error = {"(found)"};
    bool ok = run_kernel_find(arena, text, strlen(text), wanted, NULL, false, given_dtype,
                              GIVEN({"x", DT_F32}), &kernel, &error);
    cr_expect(!ok && strstr(error.text, expect), "expected '%s', got '%s'", expect, error.text);
    arena_free(arena);
}

Test(tools_run, which_kernel) {
    check_no_kernel(source, NULL, "FILE.fk:NAME chooses one of a, b");
    check_no_kernel(source, "c", "no kernel 'c'; there are a, b");
    check_no_kernel("const A: f32 = 1.0;\n", NULL, "has no kernel");
    Arena *arena = arena_new("test");
    RunKernel kernel;
    ToolError error;
    cr_expect(run_kernel_find(arena, "kernel (", 8, NULL, NULL, false, given_dtype,
                              GIVEN({"x", DT_F32}), &kernel, &error),
              "what is wrong with a text is the compiler's to say");
    cr_expect_null(kernel.name);
    arena_free(arena);
}
