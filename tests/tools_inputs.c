// What users type and have on disk: odd values of -D, files that are no files, odd environments,
// modules without end. Each gives the exit code and the message of a plain error, in time, and
// takes nothing along.
#include <criterion/criterion.h>

#include "tests/command.h"
#include "tools/opts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Prepared in a folder of its own for each test.
static const char prepare[] =
    "cat >k.fk <<'E'\n"
    "kernel half(x: f32[N]) -> (y: f32[N]) { y = x * 0.5; }\n"
    "E\n"
    "cat >d.fk <<'E'\n"
    "fn twice(x) = 2 * x;\n"
    "kernel a<T: float>(x: T[N]) -> (y: T[N]) { y = 2 * x; }\n"
    "kernel mm<D: i32, B: bool = false>(x: f32[M, D], w: f32[D, N]) -> (y: f32[M, N])\n"
    "    schedule { M = 16; warps = 4; persistent = true; order = row; precision = ieee; }\n"
    "{ y = dot[D](x, w) * (B ? 2 : 1); }\n"
    "kernel f<act: fn, F: f32 = 1.5, U: u8 = 3>(x: f32[N]) -> (y: f32[N]) { y = act(x) * F * (U as "
    "f32); "
    "}\n"
    "E\n";

static char *folder_new(void) {
    char *path = folder_make(), command[2048];
    snprintf(command, sizeof command, "cd %s && %s", path, prepare);
    cr_assert_eq(system(command), 0);
    return path;
}

// Runs a shell line in the folder, where $F is fusec with a limit of time; the exit code is that of
// the line, and `expect` is in what it printed.
static void check_line(const char *folder, const char *line, int code, const char *expect) {
    char *command = NULL, *text;
    cr_assert(asprintf(&command, "cd %s && exec 2>&1; F='timeout 60 " FUSEC_PROGRAM "'; %s", folder,
                       line) > 0);
    int got = run_command(command, &text);
    cr_expect(got == code && strstr(text, expect), "%s\ngave %d, expected %d with '%s':\n%.4000s",
              line, got, code, expect, text);
    free(text);
    free(command);
}

typedef struct Row {
    const char *line;
    int code;
    const char *expect;
} Row;

#define CHECK_ROWS(...)                                                                            \
    check_rows((const Row[]){__VA_ARGS__}, sizeof((const Row[]){__VA_ARGS__}) / sizeof(Row))

static void check_rows(const Row *rows, size_t n) {
    char *folder = folder_new();
    for (size_t i = 0; i < n; i++)
        check_line(folder, rows[i].line, rows[i].code, rows[i].expect);
    folder_free(folder);
}

// --- text of the IR ---

// What a hand has made wrong is said with its line, and is no error of the compiler.
Test(tools_inputs, wrong_ir) {
    CHECK_ROWS({"printf 'tir nests cpu\\nkernel k(dim N) {\\n  axis n of N by 4\\n  yield\\n"
                "  require true\\n}\\n' > w.tir && $F w.tir --target=cpu -o w.o",
                EXIT_INPUT,
                "error[bad-ir]: w.tir:4:3: kernel k: `yield`: `yield` is not at the end of a "
                "region"},
               {"printf 'tir placed sm_80\\nlayout #b = off(m:1, m:2)\\nkernel k(dim M) {\\n"
                "  axis m of M by 4\\n  launch %%pid in 0..1 args(%%M) {warps = 1, smem = 32} {\\n"
                "    @a = buf.shared {at = 0} : f32[m]#b\\n"
                "    @b = buf.shared {at = 8} : f32[m]#b\\n  }\\n}\\n' > w.tir && "
                "$F w.tir --target=sm_80 -o w.ptx",
                EXIT_INPUT,
                "error[bad-ir]: w.tir:7:5: protocol rule R2: shares bytes with what was placed "
                "before (buf @b in kernel k)"});
}

// --- -D ---

// "KERNEL DEFINES", and what is said; an empty text: nothing is wrong.
static void check_defines(const char *const (*rows)[2], size_t n) {
    char *folder = folder_new(), line[512];
    for (size_t i = 0; i < n; i++) {
        snprintf(line, sizeof line, "$F d.fk --emit=tile -o out.tir --kernel=%s", rows[i][0]);
        check_line(folder, line, *rows[i][1] ? EXIT_INPUT : EXIT_OK, rows[i][1]);
    }
    folder_free(folder);
}

Test(tools_inputs, defines_of_values) {
    static const char *const rows[][2] = {
        {"mm -D D=64", ""},
        {"mm -D D=0x40", ""},
        {"mm -D D=0", ""},
        {"mm -D mm.D=4 -D D=5", ""},
        {"mm -D D=5 -D D=5", ""},
        {"mm -D D=64 -D D=65", "are two values for one name"},
        {"mm", "error[unbound-generic]"},
        {"mm -D D=-5", "error[not-a-dim]: a dim is never negative, and this one is -5"},
        {"mm -D D=2147483647", ""},
        {"mm -D D=2147483648", "-D D=2147483648: not a value of i32"},
        {"mm -D D=-2147483649", "not a value of i32"},
        {"mm -D D=99999999999999999999", "not a value of i32"},
        {"mm -D D=010", "not a value of i32"},
        {"mm -D D=1.5", "not a value of i32"},
        {"mm -D D=1e3", "not a value of i32"},
        {"mm -D D=true", "not a value of i32"},
        {"mm -D 'D= 64'", "not a value of i32"},
        {"mm -D 'D=64 '", "not a value of i32"},
        {"mm -D D=--3", "not a value of i32"},
        {"mm -D D=0x", "not a value of i32"},
        {"mm -D \"D=$(printf '\\377')\"", "not a value of i32"},
        {"mm -D D=64 -D B=1", ""},
        {"mm -D D=64 -D B=2", "-D B=2: not a value of bool"},
        {"f -D act=twice -D U=255", ""},
        {"f -D act=twice -D U=256", "not a value of u8"},
        {"f -D act=twice -D U=-1", "not a value of u8"},
        {"f -D act=twice -D F=-1e30", ""},
        {"f -D act=twice -D F=nan", ""},
        {"f -D act=twice -D F=-inf", ""},
        {"f -D act=twice -D F=1e39", "not a value of f32"},
        {"f -D act=twice -D F=1e999", "not a value of f32"},
        {"f -D act=twice -D F=0x10", "not a value of f32"},
        {"f -D act=twice -D F=infinity", "not a value of f32"},
        {"f -D act=twice -D F=1,5", "not a value of f32"},
        {"f -D act=exp", ""},
        {"f -D act=sum", "nor a built-in one"},
        {"f -D act=nothing", "not a fn of this file or its imports"},
        {"f -D act=3", "not a fn of this file or its imports"},
        {"f -D act=f", "not a fn of this file or its imports"},
    };
    check_defines(rows, sizeof rows / sizeof *rows);
}

Test(tools_inputs, defines_of_types_and_schedules) {
    static const char *const rows[][2] = {
        {"a -D T=f64", ""},
        {"a -D T=i32", "not a type of the class `float`"},
        {"a -D T=float", "not a type of the class `float`"},
        {"a -D a.T=f16 -D D=3", ""}, // of another kernel
        {"a -D U=3 -D none.T=f16", "the file has no kernel `none`"},
        {"a -D a.=3", "gives no name a value"},
        {"a -D a.T.x=3", "no generic or schedule entry `T.x`"},
        {"a -D Q=3", "no kernel has a generic or schedule entry `Q`"},
        {"mm -D D=64 -D M=32", ""},
        {"mm -D D=64 -D M=33", "error[bad-schedule]"},
        {"mm -D D=64 -D M=-1", "must be at least 1"},
        {"mm -D D=64 -D M=99999999999", "a tile has at most"},
        {"mm -D D=64 -D M=x", "write a number"},
        {"mm -D D=64 -D warps=64", "at most 32 warps"},
        {"mm -D D=64 -D warps=010", "write a number"},
        {"mm -D D=64 -D persistent=false", ""},
        {"mm -D D=64 -D persistent=maybe", "write `true` or `false`"},
        {"mm -D D=64 -D order=row", "only a `schedule` clause chooses it"},
        {"mm -D D=64 -D precision=tf32", "only a `schedule` clause chooses it"},
    };
    check_defines(rows, sizeof rows / sizeof *rows);
    CHECK_ROWS({"$F d.fk -D T=", EXIT_USAGE, "-D takes NAME=VALUE"},
               {"$F d.fk -D =3", EXIT_USAGE, "-D takes NAME=VALUE"},
               {"$F d.fk -D .=3", EXIT_USAGE, "-D takes NAME=VALUE"});
}

Test(tools_inputs, conditions) {
    CHECK_ROWS({"cat >w.fk <<'E'\n"
                "kernel a(x: f32[N], k: i32) -> (y: f32[S]) where S == N / k { y = 1; }\n"
                "kernel b(x: f32[N], k: i64) -> (y: f32[N]) where T == N * k { temp t: f32[T] = 1; "
                "y = x * sum[T](t); }\n"
                "E\n"
                "$F run w.fk:a --device=eval --random N=6 k=2",
                EXIT_OK, "y: f32[3] = 1 1 1"},
               {"$F run w.fk:a --device=eval --random N=6 k=0", EXIT_INPUT,
                "a: with these arguments `S == N / k` divides by zero\n"},
               {"$F run w.fk:a --device=cpu --random N=6 k=0", EXIT_INPUT, "divides by zero\n"},
               {"$F run w.fk:a --device=cpu --random N=6 k=-2", EXIT_INPUT,
                "no size of the dim `S` meets the condition `S == N / k`\n"},
               {"$F run w.fk:b --device=cpu --random N=2 k=1", EXIT_OK, "y: f32[2] ="},
               {"$F run w.fk:b --device=cpu --random N=2 k=-1", EXIT_INPUT,
                "do not meet the condition `N * k >= 0`"},
               {"$F run w.fk:b --device=cpu --random N=4 k=4611686018427387905", EXIT_INPUT,
                "`N * k >= 0` leaves 64 bits"},
               {"$F run w.fk:b --device=eval --random N=4 k=4611686018427387905", EXIT_INPUT,
                "`N * k >= 0` leaves 64 bits"});
}

// --- files ---

Test(tools_inputs, sources) {
    CHECK_ROWS(
        {"mkfifo p; cat k.fk >p & $F p --emit=ast", EXIT_OK, "kernel half"},
        {"$F . --emit=ast", EXIT_IO, "Is a directory"},
        {"$F gone.fk --emit=ast", EXIT_IO, "No such file"},
        {"$F /dev/null --emit=tile", EXIT_INPUT, "no-kernel"},
        {"$F k.fk/x --emit=ast", EXIT_IO, "Not a directory"},
        {"ln -s loop loop; $F loop --emit=ast", EXIT_IO, "Too many levels"},
        // root may read everything
        {"touch u; chmod 0 u; test -r u && echo 'Permission denied' || $F u --emit=ast || true",
         EXIT_OK, "Permission denied"},
        {"printf 'kernel k(\\0' >nul.fk; $F nul.fk --emit=ast", EXIT_INPUT, "error[bad-char]"},
        {"printf 'kernel k(\\377' >utf.fk; $F utf.fk --emit=ast", EXIT_INPUT, "error[bad-utf8]"},
        {"head -c 1000000 /dev/zero | tr '\\0' '(' >big.fk; $F big.fk --emit=ast", EXIT_INPUT,
         "error[syntax]"},
        {"(head -c 2000000 /dev/zero | tr '\\0' ' '; cat k.fk) >big.fk; $F big.fk --emit=ast",
         EXIT_OK, "kernel half"});
}

// What was there stays as it was where there is nothing better; no temporary file stays.
Test(tools_inputs, outputs) {
    CHECK_ROWS(
        {"echo old >out; echo 'kernel k(' >bad.fk; $F bad.fk -o out; cat out", EXIT_OK, "old"},
        {"$F k.fk --target=sm_80 -o .", EXIT_IO, ".: is a directory"},
        {"$F k.fk --target=sm_80 -o /dev/full", EXIT_IO, "/dev/full: No space left"},
        {"$F k.fk --target=sm_80 -o gone/out", EXIT_IO, "No such file"},
        {"$F k.fk --target=sm_80 -o /dev/null", EXIT_OK, ""},
        {"(ulimit -f 0; $F k.fk --target=sm_80 -o out); cat out; ls -A", EXIT_OK,
         "old\nbad.fk\nd.fk\nk.fk\nout\n"},
        {"(ulimit -f 0; $F k.fk --target=sm_80 -o out | cat)", EXIT_OK, "out: File too large"},
        // The file behind a link is written, not the link.
        {"ln -s out link; $F k.fk --target=sm_80 -o link; test -L link && head -c 7 out", EXIT_OK,
         "//! fus"},
        {"chmod 444 out; test -w out && echo 'Permission denied' || $F k.fk -o out || true",
         EXIT_OK, "Permission denied"},
        {"chmod 644 out", EXIT_OK, ""},
        {"$F k.fk --target=sm_80 >/dev/full", EXIT_IO, "No space left"},
        {"$F k.fk --target=sm_80 >&-", EXIT_IO, "Bad file descriptor"},
        // Messages do not end in the file that takes the place of a closed stream.
        {"$F d.fk --kernel=mm -D D=8 --target=sm_80 -o new <&- >&- 2>&-; head -c 7 new", EXIT_OK,
         "//! fus"},
        {"$F k.fk --target=sm_80 >&- 2>&-", EXIT_IO, ""}, {"$F bad.fk 2>&-", EXIT_INPUT, ""});
}

Test(tools_inputs, arguments_of_run) {
    CHECK_ROWS(
        {"ln -s /dev/zero z.npy; $F run k.fk --device=eval x=z.npy", EXIT_IO, "z.npy: "},
        {"ln -s /dev/zero z.safetensors; $F run k.fk --device=eval x=z.safetensors", EXIT_IO,
         "z.safet"},
        {"mkdir e.npy; $F run k.fk --device=eval x=e.npy", EXIT_IO, "e.npy: "},
        {"printf '\\223NUMPY\\1\\0v\\0' >t.npy; $F run k.fk --device=eval x=t.npy", EXIT_IO,
         "t.npy: "},
        {"$F run k.fk --device=eval --random N=3 y=gone/y.npy", EXIT_IO, "No such file"},
        {"ln -s /dev/full f.npy; $F run k.fk --device=eval --random N=3 y=f.npy", EXIT_IO,
         "No space"},
        {"$F run k.fk --device=eval --random N=-1", EXIT_USAGE, "DIM=SIZE"},
        {"$F run k.fk --device=eval --random N=99999999999999999999", EXIT_USAGE, "DIM=SIZE"},
        {"$F run k.fk --device=eval --random N=9223372036854775807", EXIT_INPUT, "error"},
        {"$F run k.fk --device=eval --random N=3 x=1e999", EXIT_USAGE, "neither a number"});
}

// --- environments ---

Test(tools_inputs, environments) {
    CHECK_ROWS(
        {"env -i $(echo $F | cut -d' ' -f3) k.fk --emit=ast", EXIT_OK, "kernel half"},
        {"HOME= LC_ALL=xx_YY.none LANG=? TERM= COLUMNS=-1 $F k.fk --emit=ast", EXIT_OK,
         "kernel half"},
        {"TMPDIR=/nowhere $F k.fk --target=sm_80 -o k.ptx", EXIT_OK, ""},
        {"TMPDIR=/proc $F run k.fk --device=cpu --random N=3", EXIT_OK, "half"},
        {"printf '#!/bin/sh\\n' >ptxas; chmod +x ptxas; PATH=.:$PATH TMPDIR=/nowhere $F k.fk "
         "--target=sm_80 --emit=cubin -o k.cubin",
         EXIT_IO, "no temporary folder for ptxas in /nowhere: No such file"});
}

// --- imports ---

static const char importer[] = "import %s; kernel k(x: f32[N]) -> (y: f32[N]) { y = f(x); }\n";

static void check_import(const char *folder, const char *module, int code, const char *expect) {
    char path[128], line[256];
    snprintf(path, sizeof path, "%s/main.fk", folder);
    FILE *file = fopen(path, "w");
    cr_assert(file);
    fprintf(file, importer, module);
    fclose(file);
    snprintf(line, sizeof line, "$F main.fk -I lib --emit=tile");
    check_line(folder, line, code, expect);
}

Test(tools_inputs, imports_of_what_is_no_file) {
    char *folder = folder_new();
    check_line(folder,
               "mkdir lib lib/dir.fk && cd lib && mkfifo fifo.fk && ln -s /dev/zero zero.fk && ln "
               "-s l.fk l.fk\n"
               "head -c 16777217 /dev/zero >big.fk; echo >x; touch empty.fk\n"
               "printf 'fn f(x) = \\0x;' >nul.fk; printf 'fn f(x) = \\377x;' >utf.fk; printf 'fn "
               "f(' >part.fk",
               0, "");
    check_import(folder, "fifo", EXIT_INPUT,
                 "cannot be read from lib/fifo.fk: it is not a regular file");
    check_import(folder, "zero", EXIT_INPUT,
                 "cannot be read from lib/zero.fk: it is not a regular file");
    check_import(folder, "dir", EXIT_INPUT, "cannot be read from lib/dir.fk: it is a directory");
    check_import(folder, "l", EXIT_INPUT, "cannot be read from lib/l.fk: Too many levels");
    check_import(folder, "big", EXIT_INPUT, "an imported file has at most 16 MiB");
    check_import(folder, "gone", EXIT_INPUT, "there is no module `gone`");
    check_import(folder, "x.gone", EXIT_INPUT, "there is no module `x.gone`");
    check_import(folder, "empty", EXIT_INPUT, "nothing in scope is named `f`");
    check_import(folder, "nul", EXIT_INPUT, "lib/nul.fk:1:11: error[bad-char]");
    check_import(folder, "utf", EXIT_INPUT, "lib/utf.fk:1:11: error[bad-utf8]");
    check_import(folder, "part", EXIT_INPUT, "lib/part.fk:1:");
    folder_free(folder);
}

Test(tools_inputs, imports_in_circles) {
    char *folder = folder_new();
    check_line(folder,
               "mkdir lib && cd lib; echo 'import me; fn f(x) = x;' >me.fk\n"
               "echo 'import b; fn f(x) = g(x);' >a.fk; echo 'import a; fn g(x) = x;' >b.fk\n"
               "echo 'import d; fn f(x) = g(x);' >c.fk; echo 'import c; fn g(x) = f(x);' >d.fk",
               0, "");
    check_import(folder, "me", EXIT_OK, "");
    check_import(folder, "a", EXIT_OK, "");
    check_import(folder, "c", EXIT_INPUT, "error[recursion]: `f` needs itself");
    check_line(folder,
               "echo 'import self; kernel k(x: f32[N]) -> (y: f32[N]) { y = x; }' >self.fk; "
               "$F self.fk -I . --emit=tile",
               EXIT_OK, "kernel k(");
    folder_free(folder);
}

// A chain and a list of 10000 modules.
Test(tools_inputs, imports_without_end) {
    char *folder = folder_new();
    check_line(folder,
               "mkdir lib; i=0; while [ $i -lt 10000 ]; do\n"
               "echo \"import m$((i + 1)); fn g$i (x) = x;\" >lib/m$i.fk; echo \"import m$i;\"; "
               "i=$((i + 1)); done "
               ">wide.fk\n"
               "echo 'kernel k(x: f32[N]) -> (y: f32[N]) { y = g0(x); }' >>wide.fk",
               0, "");
    check_line(folder, "$F wide.fk -I lib --emit=tile", EXIT_INPUT,
               "a file imports at most 4096 modules");
    check_line(
        folder, "(echo 'import m0;'; tail -1 wide.fk) >deep.fk; $F deep.fk -I lib --emit=tile",
        EXIT_INPUT, "lib/m4093.fk:1:1: error[too-many]: a file imports at most 4096 modules");
    folder_free(folder);
}
