// Every elementwise operation of the language on every element type that it takes: on cpu and on
// the simulator as the evaluator, and as PTX that ptxas takes, where there is one. For each type
// one kernel is written that has an output for every row of the table.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/command.h"
#include "lang/base/dtype.h"

// Types a row takes.
enum { FLOATS = 1, INTEGERS = 2, BOOLS = 4, NUMBERS = FLOATS | INTEGERS, ANY = 7 };
// The type that it gives: the operands', that of a computation, bool, or its own.
typedef enum Gives { SAME, WIDE, TRUTH, INT } Gives;

static const struct {
    const char *name, *text;
    int takes;
    Gives gives;
} rows[] = {
    {"sqrt", "sqrt(a)", FLOATS, WIDE},
    {"rsqrt", "rsqrt(a)", FLOATS, WIDE},
    {"rcp", "rcp(a)", FLOATS, WIDE},
    {"exp", "exp(a)", FLOATS, WIDE},
    {"exp2", "exp2(a)", FLOATS, WIDE},
    {"log", "log(a)", FLOATS, WIDE},
    {"log2", "log2(a)", FLOATS, WIDE},
    {"sin", "sin(a)", FLOATS, WIDE},
    {"cos", "cos(a)", FLOATS, WIDE},
    {"tanh", "tanh(a)", FLOATS, WIDE},
    {"erf", "erf(a)", FLOATS, WIDE},
    {"pow", "pow(abs(a), b)", FLOATS, WIDE},
    {"floor", "floor(a)", FLOATS, WIDE},
    {"ceil", "ceil(a)", FLOATS, WIDE},
    {"trunc", "trunc(a)", FLOATS, WIDE},
    {"round", "round(a)", FLOATS, WIDE},
    {"fma", "fma(a, b, c)", FLOATS, WIDE},
    {"quotient", "a / b", FLOATS, WIDE},
    {"neg", "-a", NUMBERS, SAME},
    {"abs", "abs(a)", NUMBERS, SAME},
    {"min", "min(a, b)", NUMBERS, SAME},
    {"max", "max(a, b)", NUMBERS, SAME},
    {"fmin", "fmin(a, b)", NUMBERS, SAME},
    {"fmax", "fmax(a, b)", NUMBERS, SAME},
    {"add", "a + b", NUMBERS, WIDE},
    {"sub", "a - b", NUMBERS, WIDE},
    {"mul", "a * b", NUMBERS, WIDE},
    {"div", "a / max(b, 1)", INTEGERS, WIDE},
    {"rem", "a % max(b, 1)", INTEGERS, WIDE},
    {"cdiv", "cdiv(a, max(b, 1))", INTEGERS, WIDE},
    {"floordiv", "floordiv(a, max(b, 1))", INTEGERS, WIDE},
    {"mod", "mod(a, max(b, 1))", INTEGERS, WIDE},
    {"shl", "a << (b & 3)", INTEGERS, WIDE},
    {"shr", "a >> (b & 3)", INTEGERS, WIDE},
    {"inv", "~a", INTEGERS, WIDE},
    {"bitand", "a & b", INTEGERS, WIDE},
    {"bitor", "a | b", INTEGERS, WIDE},
    {"bitxor", "a ^ b", INTEGERS, WIDE},
    {"popcount", "popcount(a)", INTEGERS, WIDE},
    {"clz", "clz(a)", INTEGERS, WIDE},
    {"log2i", "log2i(max(a, 1)) as i32", INTEGERS, INT},
    {"not", "!a", BOOLS, SAME},
    {"both", "a && b", BOOLS, SAME},
    {"either", "a || b", BOOLS, SAME},
    {"eq", "a == b", ANY, TRUTH},
    {"ne", "a != b", ANY, TRUTH},
    {"lt", "a < b", NUMBERS, TRUTH},
    {"le", "a <= b", NUMBERS, TRUTH},
    {"gt", "a > b", NUMBERS, TRUTH},
    {"ge", "a >= b", NUMBERS, TRUTH},
    {"select", "a == b ? a : c", ANY, SAME},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static bool has_tensors(DType t) {
    return t != DT_NONE && t != DT_INDEX;
}

static int class_of(DType t) {
    return t == DT_BOOL ? BOOLS : dtype_is_float(t) ? FLOATS : INTEGERS;
}

static const char *given(DType t, Gives gives) {
    switch (gives) {
    case SAME:
        return dtype_name(t);
    case WIDE:
        return dtype_bits(t) >= 32 ? dtype_name(t) : dtype_is_float(t) ? "f32" : "i32";
    case TRUTH:
        return "bool";
    case INT:
        return "i32";
    }
    return NULL;
}

// The kernel of a type, with a cast to every type and a bitcast to those of its width.
static void write_kernel(FILE *to, DType t) {
    const char *name = dtype_name(t);
    fprintf(to, "kernel k(x: %s[N], z: %s[N], w: %s[N]) -> (", name, name, name);
    for (int i = 0; i < ROWS; i++)
        if (rows[i].takes & class_of(t))
            fprintf(to, "\n    o_%s: %s[N],", rows[i].name, given(t, rows[i].gives));
    const char *between = "";
    for (int u = 0; u < DT_COUNT_; u++)
        if (has_tensors((DType)u)) {
            fprintf(to, "%s\n    to_%s: %s[N]", between, dtype_name((DType)u),
                    dtype_name((DType)u));
            between = ",";
        }
    fputs(")\n{\n    parallel n in tiles(N) {\n        let a = x[n], b = z[n], c = w[n];\n", to);
    for (int i = 0; i < ROWS; i++)
        if (rows[i].takes & class_of(t))
            fprintf(to, "        o_%s[n] = %s;\n", rows[i].name, rows[i].text);
    for (int u = 0; u < DT_COUNT_; u++)
        if (has_tensors((DType)u))
            fprintf(to, "        to_%s[n] = a as %s;\n", dtype_name((DType)u),
                    dtype_name((DType)u));
    fputs("    }\n}\n", to);
}

static void execute(const char *command) {
    char *text;
    int code = run_command(command, &text);
    cr_expect(code == 0, "%s\n%s", command, text);
    free(text);
}

// `arguments` has the file's name for its %s.
static void each_type(int classes, const char *arguments) {
    char path[] = "/tmp/fuse_dtypes_XXXXXX", rest[256], command[1024];
    int file = mkstemp(path);
    cr_assert(file >= 0);
    close(file);
    for (int t = 0; t < DT_COUNT_; t++) {
        if (!has_tensors((DType)t) || !(class_of((DType)t) & classes))
            continue;
        FILE *to = fopen(path, "w");
        cr_assert(to);
        write_kernel(to, (DType)t);
        fclose(to);
        snprintf(rest, sizeof rest, arguments, path);
        snprintf(command, sizeof command, FUSEC_PROGRAM " %s -O1 -Wno-perf 2>&1 # %s", rest,
                 dtype_name((DType)t));
        execute(command);
    }
    unlink(path);
}

Test(dtype_table, floats_cpu, .timeout = 600) {
    each_type(FLOATS, "run %s --random N=77 --compare --device=cpu");
}
Test(dtype_table, floats_sim, .timeout = 600) {
    each_type(FLOATS, "run %s --random N=77 --compare --device=sim");
}
Test(dtype_table, integers_cpu, .timeout = 600) {
    each_type(INTEGERS | BOOLS, "run %s --random N=77 --compare --device=cpu");
}
Test(dtype_table, integers_sim, .timeout = 600) {
    each_type(INTEGERS | BOOLS, "run %s --random N=77 --compare --device=sim");
}
Test(dtype_table, ptx, .timeout = 600) {
    bool has_ptxas = access("/usr/local/cuda/bin/ptxas", X_OK) == 0;
    each_type(ANY, has_ptxas ? "%s --target=sm_90a --emit=cubin -o /dev/null"
                             : "%s --target=sm_90a --emit=ptx -o /dev/null");
}
