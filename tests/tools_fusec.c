// `fusec` and `fusec run` from end to end: real kernels, real files, exit codes, nothing left
// behind.
#include <criterion/criterion.h>

#include "tests/command.h"
#include "tools/npy.h"
#include "tools/opts.h"
#include "tools/safetensors.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char kernels[] =
    "kernel axpy<T: float>(a: f32, x: T[N], y: T[N]) -> (z: T[N]) { z = a * x + y; }\n"
    "kernel scale(s: f32) -> (inout v: f32[M, N]) { v = v * s; }\n"
    "kernel halve(x: f32[M, N]) -> (y: f32[U, N]) where U == M / 2 {\n"
    "    parallel u in 0..U { y[u, :] = x[2*u, :] + x[2*u + 1, :]; }\n"
    "}\n";

// A folder of its own for each test, removed at the end.
static char *folder_new(void) {
    char *path = folder_make(), name[128];
    snprintf(name, sizeof name, "%s/k.fk", path);
    FILE *file = fopen(name, "w");
    cr_assert(file);
    fputs(kernels, file);
    fclose(file);
    return path;
}

static int folder_count(const char *path) {
    DIR *folder = opendir(path);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

// Runs "fusec ARGS" in the folder; checks the code and that the output has `expect`.
static void check_fusec(const char *folder, const char *args, int code, const char *expect) {
    char command[1024], *text;
    snprintf(command, sizeof command, "cd %s && " FUSEC_PROGRAM " 2>&1 %s", folder, args);
    int got = run_command(command, &text);
    cr_expect(got == code, "fusec %s: exit code %d, expected %d:\n%s", args, got, code, text);
    cr_expect(strstr(text, expect), "fusec %s: expected '%s' in:\n%s", args, expect, text);
    free(text);
}

static HostTensor make(DType dtype, int rank, const int64_t *dims, double first, double step) {
    HostTensor t;
    ToolError error;
    cr_assert(tensor_alloc(&t, dtype, rank, dims, &error), "%s", error.text);
    for (int64_t i = 0; i < tensor_elements(&t); i++)
        tensor_put(&t, i, scalar_float(DT_F64, first + step * (double)i));
    return t;
}

static void write_npy(const char *folder, const char *name, HostTensor t) {
    char path[128];
    ToolError error;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cr_assert(npy_write(path, &t, false, &error), "%s", error.text);
    tensor_free(&t);
}

// Element i of the file is first + step * i.
static void check_npy(const char *folder, const char *name, DType dtype, int64_t elements,
                      double first, double step) {
    char path[128];
    ToolError error;
    HostTensor t;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cr_assert(npy_read(path, &t, &error), "%s", error.text);
    cr_expect(t.dtype == dtype && tensor_elements(&t) == elements, "%s: %s, %ld elements", name,
              dtype_name(t.dtype), (long)tensor_elements(&t));
    for (int64_t i = 0; i < tensor_elements(&t) && i < elements; i++)
        cr_expect_eq(scalar_to_f64(tensor_get(&t, i)), first + step * (double)i, "%s[%ld]", name,
                     (long)i);
    tensor_free(&t);
}

static void write_text(const char *folder, const char *name, const char *text, int mode) {
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert(file);
    fputs(text, file);
    fclose(file);
    cr_assert_eq(chmod(path, (mode_t)mode), 0);
}

// -W is the same for compiling and running: each id alone, all warnings, all performance notes.
Test(tools_fusec, warning_flags) {
    char *folder = folder_new();
    write_text(folder, "w.fk",
               "kernel k(x: f32[M, N], w: f32[N, K]) -> (y: f32[M, K]) {\n"
               "    let unused = x * 2;\n"
               "    y = dot[N](x, w);\n"
               "}\n",
               0644);
    const char *const commands[] = {"w.fk --target=sm_80 -o w.ptx %s",
                                    "run w.fk --device=cpu --random M=8,N=8,K=8 %s"};
    for (int i = 0; i < 2; i++) {
        char line[256];
        const char *const warned[] = {"", "-Werror -Wunused-name", "-Wno-perf"};
        for (int k = 0; k < 3; k++) {
            snprintf(line, sizeof line, commands[i], warned[k]);
            check_fusec(folder, line, EXIT_OK, "w.fk:2:9: warning[unused-name]: ");
        }
        const char *const failed[] = {"-Werror", "-Werror=unused-name", "-Wunused-name -Werror"};
        for (int k = 0; k < 3; k++) {
            snprintf(line, sizeof line, commands[i], failed[k]);
            check_fusec(folder, line, EXIT_INPUT, "w.fk:2:9: error[unused-name]: ");
        }
        snprintf(line, sizeof line, commands[i], "-Wno-unused-name -Wno-perf -Werror | wc -l");
        check_fusec(folder, line, EXIT_OK, i == 0 ? "0\n" : "");
        snprintf(line, sizeof line, commands[i], "-Wno-race");
        check_fusec(folder, line, EXIT_USAGE, "-Wno-race names nothing");
    }
    const char *perf = "w.fk --emit=tile --stop-after=layouts --target=sm_80 -Wno-unused-name ";
    char line[256];
    snprintf(line, sizeof line, "%s%s", perf, "-Werror=no-matrix-unit");
    check_fusec(folder, line, EXIT_INPUT, "error[no-matrix-unit]");
    snprintf(line, sizeof line, "%s%s", perf,
             "-Werror=perf -Wno-no-matrix-unit >/dev/null | wc -l");
    check_fusec(folder, line, EXIT_OK, "0\n");
    folder_free(folder);
}

Test(tools_fusec, compiles_to_every_form) {
    char *folder = folder_new();
    check_fusec(folder, "k.fk --emit=ast", EXIT_OK, "kernel axpy");
    check_fusec(folder, "k.fk --emit=tile --kernel=scale", EXIT_OK, "inout @v: f32[%M, %N]");
    check_fusec(folder, "k.fk --target=sm_80 --emit=ptx --kernel=scale", EXIT_OK, ".entry");
    check_fusec(folder, "k.fk --target=sm_80 --emit=llvm --kernel=scale", EXIT_OK, "define ");
    check_fusec(folder, "- --emit=ast <k.fk", EXIT_OK, "kernel scale");
    check_fusec(folder, "k.fk --target=cpu", EXIT_USAGE, "binary output needs a place");
    check_fusec(folder, "k.fk --target=cpu --emit=ptx", EXIT_USAGE, "target cpu has no ptx");
    cr_expect_eq(folder_count(folder), 1, "nothing was written");
    check_fusec(folder, "k.fk --target=sm_80 --kernel=scale -o k.ptx", EXIT_OK, "");
    check_fusec(folder, "k.fk --target=cpu --kernel=scale -o k.o", EXIT_OK, "");
    cr_expect_eq(folder_count(folder), 3);
    char args[400]; // a name as long as the file system takes
    snprintf(args, sizeof args, "k.fk --target=sm_80 --kernel=scale -o ./%0255d", 1);
    check_fusec(folder, args, EXIT_OK, "");
    cr_expect_eq(folder_count(folder), 4);
    folder_free(folder);
}

Test(tools_fusec, errors_leave_nothing) {
    char *folder = folder_new();
    check_fusec(folder, "- --target=sm_80 -o out.ptx </dev/null", EXIT_INPUT, "no kernel");
    check_fusec(folder, "- --target=sm_80 -o out.ptx <" FUSE_SOURCE_DIR "/LICENSE", EXIT_INPUT,
                "<stdin>:");
    check_fusec(folder, "k.fk --target=sm_80 -o none/out.ptx", EXIT_IO, "No such file");
    check_fusec(folder, "none.fk -o out.ptx", EXIT_IO, "none.fk: No such file");
    check_fusec(folder, "k.fk --kernel=none --target=sm_80 -o out.ptx", EXIT_INPUT, "none");
    cr_expect_eq(folder_count(folder), 1);
    folder_free(folder);
}

static void check_devices(const char *device) {
    char *folder = folder_new();
    char args[256];
    const int64_t n = 37, square[] = {4, 6};
    write_npy(folder, "x.npy", make(DT_F32, 1, &n, 1, 1));
    write_npy(folder, "y.npy", make(DT_F64, 1, &n, 10, 0));
    snprintf(args, sizeof args, "run k.fk:axpy --device=%s a=0.5 x=x.npy y=y.npy z=z.npy", device);
    check_fusec(folder, args, EXIT_OK, "axpy");
    check_npy(folder, "z.npy", DT_F32, n, 10.5, 0.5);

    write_npy(folder, "m.npy", make(DT_F32, 2, square, 0, 1));
    snprintf(args, sizeof args, "run k.fk:halve --device=%s x=m.npy y=h.npy", device);
    check_fusec(folder, args, EXIT_OK, "halve");
    char path[128];
    HostTensor t;
    ToolError error;
    snprintf(path, sizeof path, "%s/h.npy", folder);
    cr_assert(npy_read(path, &t, &error), "%s", error.text);
    cr_expect(t.rank == 2 && t.dims[0] == 2 && t.dims[1] == 6);
    cr_expect_eq(tensor_get(&t, 7).u.f, 13 + 19);
    tensor_free(&t);

    snprintf(args, sizeof args, "run k.fk:scale --device=%s s=3 v=m.npy", device);
    check_fusec(folder, args, EXIT_OK, "scale");
    check_npy(folder, "m.npy", DT_F32, 24, 0, 3);
    folder_free(folder);
}

Test(tools_fusec, runs_on_the_evaluator) {
    check_devices("eval");
}

Test(tools_fusec, runs_on_the_cpu) {
    check_devices("cpu");
}

Test(tools_fusec, runs_on_the_simulator) {
    check_devices("sim");
}

Test(tools_fusec, safetensors_and_types) {
    char *folder = folder_new();
    char path[128];
    ToolError error;
    const int64_t n = 5;
    HostTensor x = make(DT_BF16, 1, &n, 1, 1), y = make(DT_BF16, 1, &n, 2, 0);
    SafeTensors *set = safetensors_new();
    snprintf(path, sizeof path, "%s/m.safetensors", folder);
    cr_assert(safetensors_put(set, "a.x", &x, &error) && safetensors_put(set, "y", &y, &error) &&
                  safetensors_write(set, path, &error),
              "%s", error.text);
    safetensors_close(set);
    tensor_free(&x);
    tensor_free(&y);

    // bf16 from the file's type; as it is into .safetensors, as f32 into .npy
    check_fusec(folder,
                "run k.fk:axpy --device=eval a=2 x=m.safetensors:a.x y=m.safetensors "
                "z=o.safetensors:z",
                EXIT_OK, "axpy.bf16");
    snprintf(path, sizeof path, "%s/o.safetensors", folder);
    set = safetensors_open(path, &error);
    cr_assert(set && safetensors_read(set, "z", &x, &error), "%s", error.text);
    cr_expect(x.dtype == DT_BF16 && tensor_get(&x, 4).u.f == 12);
    tensor_free(&x);
    safetensors_close(set);
    check_fusec(folder,
                "run k.fk:axpy --device=eval a=2 x=m.safetensors:a.x y=m.safetensors z=z.npy",
                EXIT_OK, "axpy.bf16");
    check_npy(folder, "z.npy", DT_F32, n, 4, 2);
    // -D decides against the file
    check_fusec(folder,
                "run k.fk:axpy --device=eval -D T=f16 a=2 x=m.safetensors:a.x y=m.safetensors "
                "z=z.npy",
                EXIT_OK, "axpy.f16");
    check_npy(folder, "z.npy", DT_F16, n, 4, 2);
    // without a file an output is shown
    check_fusec(folder, "run k.fk:axpy --device=eval a=2 x=m.safetensors:a.x y=m.safetensors",
                EXIT_OK, "z: bf16[5] = 4 6 8 10 12\n");
    folder_free(folder);
}

Test(tools_fusec, random_inputs_compare_with_the_evaluator) {
    char *folder = folder_new();
    check_fusec(folder, "run k.fk:axpy --device=cpu --random=N=1000 --compare", EXIT_OK, " ok");
    check_fusec(folder, "run k.fk:halve --device=sim --random=M=6,N=40 --compare", EXIT_OK, " ok");
    check_fusec(folder, "run k.fk:axpy --device=cpu -D T=bf16 --random=N=77 --compare --seed=9",
                EXIT_OK, "bf16");
    folder_free(folder);
}

Test(tools_fusec, checks) {
    char *folder = folder_new();
    char name[128];
    snprintf(name, sizeof name, "%s/c.fk", folder);
    FILE *file = fopen(name, "w");
    fputs("kernel divide(a: i32[N], b: i32[N]) -> (y: i32[N]) { y = a / b; }\n"
          "kernel shift(x: f32[N]) -> (y: f32[N]) {\n"
          "    parallel n in tiles(N) { let v = x[n]; y[n] = v[n = n - 1]; }\n"
          "}\n"
          "kernel chunks(x: f32[N]) -> (y: f32[N]) {\n"
          "    parallel n in tiles(N, 4) { let v = x[n]; y[n] = v[n = n - 1]; }\n"
          "}\n"
          "kernel late(x: i32[N]) -> (inout c: i32[1], y: i32[N]) {\n"
          "    parallel n in 0..N { let old = atomic c[0] += 1; y[n] = old + x[n]; }\n"
          "}\n"
          "kernel add(i: i32[N], x: f32[N]) -> (inout y: f32[B]) {\n"
          "    axis n in N;\n"
          "    atomic y[i[n]] += x[n];\n"
          "}\n",
          file);
    fclose(file);
    check_fusec(folder, "run c.fk:divide --random N=8 --check", EXIT_INPUT,
                "c.fk:1:54: error[undetermined]: `y[");
    check_fusec(folder, "run c.fk:divide --random N=8 --check", EXIT_INPUT,
                "fusec: error: divide: the checks found 1 error\n");
    check_fusec(folder, "run k.fk:halve --random M=8,N=9 --check", EXIT_OK, "y: f32[4x9] =");
    check_fusec(folder, "run k.fk:scale s=2 --random M=9,N=9 --check=tiles", EXIT_OK,
                "13 runs with other orders of iterations and tile sizes of m, n: the result is the "
                "same\n");
    check_fusec(folder, "run c.fk:chunks --random N=10 --check=tiles", EXIT_OK,
                "7 runs with other orders of iterations: the result is the same\n");
    check_fusec(folder, "run c.fk:shift --random N=10 --check=tiles", EXIT_INPUT,
                "fusec: error: the tile size n = 1 changes 9 of 10 elements of 'y', most at [");
    check_fusec(folder, "run c.fk:late --random N=10 --check=tiles --seed=5", EXIT_INPUT,
                "fusec: error: the order of iterations (seed 6) changes ");
    check_fusec(folder, "run c.fk:add --random N=500,B=4 --check=tiles --check", EXIT_OK,
                "the result is the same");
    check_fusec(folder, "run c.fk:add --random N=500,B=4 --check=tiles --tolerance=0", EXIT_INPUT,
                "the order of iterations (seed ");
    check_fusec(folder, "run c.fk:divide --random N=8 --check --device=cpu", EXIT_USAGE,
                "--check is of the evaluator, not of the device cpu");
    check_fusec(folder, "run c.fk:divide --random N=8 --check --compare", EXIT_USAGE,
                "--check runs the evaluator, which --compare compares with");
    check_fusec(folder, "c.fk --kernel=add --deterministic --emit=tile", EXIT_INPUT,
                "c.fk:13:5: error[not-deterministic]: ");
    check_fusec(folder, "run c.fk:add --random N=8,B=4 --deterministic --device=cpu", EXIT_INPUT,
                "c.fk:13:5: error[not-deterministic]: ");
    folder_free(folder);
}

Test(tools_fusec, outputs_do_not_overwrite_what_is_read) {
    char *folder = folder_new();
    char path[128];
    snprintf(path, sizeof path, "%s/two.fk", folder);
    FILE *file = fopen(path, "w");
    cr_assert(file);
    fputs("kernel two(x: f32[N], inout v: f32[N]) -> (p: f32[N], q: f32[N]) {\n"
          "    p = x + 1; q = x + 2; v = x + 3;\n"
          "}\n",
          file);
    fclose(file);
    const int64_t n = 3;
    write_npy(folder, "x.npy", make(DT_F32, 1, &n, 0, 1));
    write_npy(folder, "v.npy", make(DT_F32, 1, &n, 0, 1));
    static const struct {
        const char *args;
        int code;
        const char *expect;
    } rows[] = {
        {"x=x.npy v=v.npy p=x.npy", EXIT_USAGE,
         "'p' would overwrite x.npy, from which 'x' is read"},
        {"x=x.npy v=v.npy p=./x.npy", EXIT_USAGE, "'p' would overwrite ./x.npy"},
        {"x=x.npy v=x.npy", EXIT_USAGE, "'v' would overwrite x.npy"},
        {"x=x.npy v=v.npy p=o.npy q=o.npy", EXIT_USAGE, "'q' and 'p' are written to one place"},
        {"x=x.npy v=v.npy p=o.safetensors:a q=o.safetensors:a", EXIT_USAGE, "one place"},
        {"x=x.npy v=v.npy p=o.safetensors:x q=o.safetensors:v", EXIT_OK, "1 launch"},
        {"x=o.safetensors:x v=v.npy p=o.safetensors:p", EXIT_USAGE, "'p' would overwrite o.safe"},
        // An inout keeps what else is in its file.
        {"x=o.safetensors:x v=o.safetensors:v p=o.safetensors:p", EXIT_OK, ""},
        {"x=o.safetensors:x v=o.safetensors:v q=o.safetensors:p", EXIT_OK, "p: f32[3]"},
        {"x=o.safetensors:x v=o.safetensors:v p=o.safetensors:x", EXIT_USAGE, "overwrite"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char args[256];
        snprintf(args, sizeof args, "run two.fk --device=eval %s", rows[i].args);
        check_fusec(folder, args, rows[i].code, rows[i].expect);
    }
    cr_expect_eq(folder_count(folder), 5);
    folder_free(folder);
}

Test(tools_fusec, wrong_arguments_of_run) {
    char *folder = folder_new();
    const int64_t n = 3, m = 4;
    write_npy(folder, "x.npy", make(DT_F32, 1, &n, 0, 1));
    write_npy(folder, "y.npy", make(DT_F32, 1, &m, 0, 1));
    static const struct {
        const char *args;
        int code;
        const char *expect;
    } rows[] = {
        {"run k.fk", EXIT_INPUT, "FILE.fk:NAME chooses one of axpy, scale, halve"},
        {"run k.fk:none", EXIT_INPUT, "no kernel 'none'"},
        {"run k.fk:axpy --device=eval q=3", EXIT_USAGE, "no parameter 'q'; it has a, x, y, z"},
        {"run k.fk:axpy --device=eval a=x.npy", EXIT_USAGE, "'a' is a scalar, not a tensor"},
        {"run k.fk:axpy --device=eval x=3", EXIT_USAGE, "'x' is a tensor, not a number"},
        {"run k.fk:axpy --device=eval x=x.npy y=x.npy", EXIT_USAGE, "'a' is not given"},
        {"run k.fk:axpy --device=eval a=1 x=x.npy", EXIT_USAGE, "'y' is not given: y=FILE.npy"},
        {"run k.fk:axpy --device=eval a=1 x=x.npy y=y.npy", EXIT_INPUT, "N"},
        {"run k.fk:axpy --device=eval a=1 x=none.npy y=y.npy", EXIT_IO, "none.npy: No such file"},
        {"run k.fk:axpy --device=eval --random=Q=3", EXIT_USAGE, "no dim 'Q'"},
        {"run k.fk:axpy --device=eval --random=N=3 --shape=x=4", EXIT_USAGE, "given as 3 and as 4"},
        {"run k.fk:axpy --device=eval --shape=x=4,5", EXIT_USAGE, "declared with 1 dims, not 2"},
        {"run k.fk:scale --device=eval s=1 v=x.npy", EXIT_INPUT, "has 1 dims, 2 are declared"},
        {"run k.fk:axpy --device=cpu --target=sm_80 a=1", EXIT_USAGE, "does not run on device cpu"},
        {"run k.fk:scale --device=eval --random=M=2,N=2 s=x", EXIT_USAGE, "neither a number"},
        {"run /dev/zero", EXIT_INPUT, "256 MiB"},
        {"k.fk -o k.fk", EXIT_USAGE, "-o k.fk would overwrite the input"},
        {"k.fk -o o.ptx -MF k.fk", EXIT_USAGE, "rule in k.fk would overwrite the input"},
        {"k.fk -o o.d -MD", EXIT_USAGE, "rule in o.d would overwrite the output"},
        {"k.fk -o ./k.fk", EXIT_USAGE, "would overwrite the input"},
        {"run k.fk:axpy --tolerance=1 a=1", EXIT_USAGE, "--tolerance is for --compare"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_fusec(folder, rows[i].args, rows[i].code, rows[i].expect);
    if (access("/dev/nvidiactl", F_OK) != 0)
        check_fusec(folder, "run k.fk:axpy --device=cuda --random=N=3", EXIT_DEVICE, "");
    cr_expect_eq(folder_count(folder), 3);
    folder_free(folder);
}

// ptxas is a script here: what it is given, what is made of its file, and that nothing stays
// behind.
Test(tools_fusec, cubin) {
    char *folder = folder_new();
    write_text(folder, "ptxas",
               "#!/bin/sh\n[ $1 = -arch=sm_80 ] && [ $2 = -o ] && grep -q 'entry axpy' $4 && "
               "printf '\\177ELF' >$3\n",
               0755);
    check_fusec(folder, "--target=sm_80 -DT=f32 --emit=cubin k.fk", EXIT_USAGE, "-o FILE");
    cr_expect_eq(folder_count(folder), 2);
    setenv("TMPDIR", folder, 1);
    char path[4096];
    snprintf(path, sizeof path, "%s:%s", folder, getenv("PATH"));
    setenv("PATH", path, 1);
    check_fusec(folder, "--target=sm_80 -DT=f32 --emit=cubin k.fk -o k.cubin", EXIT_OK, "");
    cr_expect_eq(folder_count(folder), 3);
    check_fusec(folder, "--version; tail -n 1 k.cubin; head -c 28 k.cubin | tail -c 24", 0,
                "//! at 0000000000000004\n//! fuse 1 sm_80 ");
    write_text(
        folder, "ptxas",
        "#!/bin/sh\necho \"ptxas $4, line $(grep -n 'entry scale' $4 | cut -d: -f1); error : "
        "bad\"; exit 255\n",
        0755);
    check_fusec(folder, "--target=sm_80 -DT=f32 --emit=cubin k.fk -o other.cubin", EXIT_INTERNAL,
                "ptxas refuses kernel scale_v0__0 (");
    cr_expect_eq(folder_count(folder), 3);
    folder_free(folder);
}

// What ptxas reports of a function: spills are a note, or an error and no file. Reports of a form
// that is not known, and frames without spills, are none.
Test(tools_fusec, cubin_with_spills) {
    char *folder = folder_new();
    const char *script = "#!/bin/sh\n[ \"$5\" = -v ] && printf '\\177ELF' >$3 && cat <<END\n"
                         "ptxas info    : 0 bytes gmem\n"
                         "ptxas info    : Compiling entry function 'scale_v1__0' for 'sm_80'\n"
                         "    80 bytes stack frame, 100 bytes spill stores, 100 bytes spill loads\n"
                         "ptxas info    : Used 255 registers, used 0 barriers\n"
                         "ptxas info    : Compiling entry function 'scale_v0__0' for 'sm_80'\n"
                         "ptxas info    : Function properties for scale_v0__0\n"
                         "    %s\n"
                         "ptxas info    : Used 128 registers, used 1 barriers, 376 bytes cmem[0]\n"
                         "END\n";
    static const struct {
        const char *line, *flags;
        int code;
        const char *expect;
    } rows[] = {
        {"16 bytes stack frame, 20 bytes spill stores, 0 bytes spill loads", "", EXIT_OK,
         "perf[spills]: `scale_v0__0` spills: 16 bytes of each thread do not fit in its 128 "
         "registers and go through memory\n"},
        {"16 bytes stack frame, 0 bytes spill stores, 24 bytes spill loads", "-Werror=perf",
         EXIT_INPUT, "error[spills]: `scale_v0__0` spills: 16 bytes"},
        {"16 bytes stack frame, 20 bytes spill stores, 0 bytes spill loads", "-Wno-perf", 0, "0\n"},
        {"16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", "-Werror=perf", 0,
         "0\n"},
        {"16 bytes of frame, 20 of spills", "-Werror=perf", 0, "0\n"},
        {"0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", "--explain", EXIT_OK,
         "note[schedule]: scale.v0: each thread takes 128 registers\n"},
    };
    char path[4096], text[2048], args[256];
    snprintf(path, sizeof path, "%s:%s", folder, getenv("PATH"));
    setenv("PATH", path, 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool silent = strcmp(rows[i].expect, "0\n") == 0;
        snprintf(text, sizeof text, script, rows[i].line);
        write_text(folder, "ptxas", text, 0755);
        snprintf(args, sizeof args,
                 "--target=sm_80 --kernel=scale --emit=cubin %s k.fk -o k%zu.cubin%s",
                 rows[i].flags, i, silent ? " | wc -c" : "");
        check_fusec(folder, args, rows[i].code, rows[i].expect);
    }
    cr_expect_eq(folder_count(folder), 2 + 5, "the error alone leaves no file");
    folder_free(folder);
}

Test(tools_fusec, cubin_without_ptxas) {
    char *folder = folder_new();
    if (access("/usr/local/cuda/bin/ptxas", X_OK) != 0) {
        setenv("PATH", folder, 1);
        setenv("CUDA_HOME", "/nowhere", 1);
        check_fusec(folder, "--target=sm_80 -DT=f32 --emit=cubin k.fk -o k.cubin", EXIT_IO,
                    "none on PATH, in $CUDA_HOME/bin (/nowhere/bin) or in /usr/local/cuda/bin");
    }
    folder_free(folder);
}

Test(tools_fusec, make_rules) {
    char *folder = folder_new();
    check_fusec(folder, "--version; mkdir inc", 0, "");
    write_text(folder, "inc/my lib.fk", "fn twice(x) = 2 * x;\n", 0644);
    write_text(folder, "inc/lib.fk", "fn thrice(x) = 3 * x;\n", 0644);
    write_text(folder, "a.fk",
               "import std.nn;\nimport lib;\nkernel f(x: f32[N]) -> (y: f32[N]) { y = "
               "relu(thrice(x)); }\n",
               0644);
    check_fusec(folder, "--target=sm_80 -I inc -MD a.fk -o a.out.ptx && cat a.out.d", EXIT_OK,
                "a.out.ptx: a.fk \\\n  inc/lib.fk\n\ninc/lib.fk:\n");
    check_fusec(folder, "--target=sm_80 -I inc -MF 'd $x' a.fk -o 'a b.ptx' && cat 'd $x'", EXIT_OK,
                "a\\ b.ptx: a.fk \\\n  inc/lib.fk\n");
    check_fusec(folder, "--target=sm_80 -I inc -MD a.fk", EXIT_USAGE, "-MD and -MF need -o FILE");
    // Nothing on a failure.
    check_fusec(folder, "--target=sm_80 -MF fail.d a.fk -o fail.ptx; ls", EXIT_OK,
                "no module `lib`");
    cr_expect_eq(folder_count(folder), 7);
    folder_free(folder);
}
