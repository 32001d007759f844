// PTX to a cubin: finds ptxas, runs it on temporary files, and puts the launch plan behind its
// result.
//
// Input: PTX text whose first lines, `//! `, are the plan. Output: ptxas' ELF file, those lines,
// and a last line that says where they begin; and what ptxas reports of each function:
//
//   <ELF> //! fuse 1 sm_90a 9f3c..  //! tir placed sm_90a  ..  //! at 0000000000012345
//
// What follows an ELF file does not disturb the driver or the vendor's tools, and the run time
// finds the plan from the end. Invariant: no temporary file outlives the call.
#include "tools/cubin.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/fileio.h"

extern char **environ;

static bool cubin_fail(Cubin *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool cubin_fail(Cubin *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (vasprintf(&out->error, format, args) < 0)
        out->error = NULL;
    va_end(args);
    return false;
}

// --- ptxas ---

static bool is_program(char *path, size_t size, const char *folder, size_t len) {
    return snprintf(path, size, "%.*s/ptxas", (int)len, folder) < (int)size &&
           access(path, X_OK) == 0;
}

// On PATH, then in $CUDA_HOME/bin, then where CUDA is installed.
static bool find_ptxas(char *path, size_t size, Cubin *out) {
    for (const char *at = getenv("PATH"); at && *at;) {
        size_t len = strcspn(at, ":");
        if (len > 0 && is_program(path, size, at, len))
            return true;
        at += len + (at[len] == ':');
    }
    const char *home = getenv("CUDA_HOME");
    char bin[4096] = "";
    if (home && *home && snprintf(bin, sizeof bin, "%s/bin", home) < (int)sizeof bin &&
        is_program(path, size, bin, strlen(bin)))
        return true;
    static const char usual[] = "/usr/local/cuda/bin";
    if (is_program(path, size, usual, strlen(usual)))
        return true;
    out->no_tools = true;
    return cubin_fail(out,
                      "a cubin needs ptxas of the CUDA toolkit, and there is none on PATH, in "
                      "$CUDA_HOME/bin (%s) or in %s; --emit=ptx needs nothing",
                      *bin ? bin : "CUDA_HOME is not set", usual);
}

// --- one run ---

typedef struct Work {
    char folder[4096];
    char ptx[4200], cubin[4200], log[4200];
} Work;

static bool work_begin(Work *w, Cubin *out) {
    const char *base = getenv("TMPDIR");
    if (snprintf(w->folder, sizeof w->folder, "%s/fusec-XXXXXX", base && *base ? base : "/tmp") >=
            (int)sizeof w->folder ||
        !mkdtemp(w->folder)) {
        int reason = errno;
        *w->folder = 0;
        out->no_tools = true;
        return cubin_fail(out, "no temporary folder for ptxas in %s: %s",
                          base && *base ? base : "/tmp", strerror(reason));
    }
    snprintf(w->ptx, sizeof w->ptx, "%s/k.ptx", w->folder);
    snprintf(w->cubin, sizeof w->cubin, "%s/k.cubin", w->folder);
    snprintf(w->log, sizeof w->log, "%s/log", w->folder);
    return true;
}

static void work_end(Work *w) {
    if (!*w->folder)
        return;
    unlink(w->ptx);
    unlink(w->cubin);
    unlink(w->log);
    rmdir(w->folder);
}

static bool write_file(const char *path, const char *data, size_t len, Cubin *out) {
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(data, 1, len, f) == len;
    ok = f && fclose(f) == 0 && ok;
    return ok || cubin_fail(out, "%s: %s", path, strerror(errno));
}

// The exit status of the program, or -1 where it could not be run or was killed.
static int run_program(char *const argv[], const char *log) {
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    pid_t child;
    int failed = posix_spawn(&child, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return -1;
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// --- what went wrong ---

// The entry that holds line `number` of the PTX: the last one that begins at or above it.
static void entry_at_line(const char *ptx, size_t len, long number, char *name, size_t size) {
    static const char mark[] = ".entry ";
    *name = 0;
    const char *at = ptx, *end = ptx + len;
    for (long line = 1; at < end && line <= number; line++) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((nl ? nl : end) - at);
        const char *entry = memmem(at, n, mark, sizeof mark - 1);
        if (entry) {
            entry += sizeof mark - 1;
            size_t word = strspn(entry, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789_$");
            snprintf(name, size, "%.*s", (int)word, entry);
        }
        at += n + 1;
    }
}

static bool report_failure(const Work *w, const char *program, int status, const char *ptx,
                           size_t len, Cubin *out) {
    char *log = NULL, name[256] = "";
    size_t size;
    ToolError error;
    if (!file_read_all(w->log, &log, &size, &error))
        log = NULL;
    const char *line = log ? strstr(log, ", line ") : NULL;
    if (line)
        entry_at_line(ptx, len, strtol(line + 7, NULL, 10), name, sizeof name);
    const char *text = log && *log ? log : "it printed nothing";
    if (status < 0)
        cubin_fail(out, "%s did not finish%s%s", program, log && *log ? ":\n" : "",
                   log && *log ? log : "");
    else
        cubin_fail(out, "ptxas refuses %s%s (%s, exit code %d):\n%s", *name ? "kernel " : "the PTX",
                   name, program, status, text);
    free(log);
    return false;
}

// --- what it reports of the functions ---

static bool add_function(Cubin *out, const char *name, size_t len) {
    FuseFunctionUse *all = realloc(out->function, sizeof *all * (size_t)(out->nfunction + 1));
    char *copy = all ? strndup(name, len) : NULL;
    if (all)
        out->function = all;
    if (copy)
        all[out->nfunction++] = (FuseFunctionUse){.entry = copy};
    return copy != NULL;
}

// One line of `ptxas -v`; of a line in other words nothing is known.
static void read_report_line(Cubin *out, const char *line) {
    static const char begins[] = "Compiling entry function '";
    const char *name = strstr(line, begins), *used = strstr(line, "Used ");
    if (name) {
        name += sizeof begins - 1;
        add_function(out, name, strcspn(name, "'\n"));
        return;
    }
    FuseFunctionUse *last = out->nfunction ? &out->function[out->nfunction - 1] : NULL;
    int frame, stores, loads, registers;
    if (!last)
        return;
    if (sscanf(line, " %d bytes stack frame, %d bytes spill stores, %d bytes spill loads", &frame,
               &stores, &loads) == 3)
        last->local_bytes = stores || loads ? frame : 0;
    if (used && sscanf(used, "Used %d registers", &registers) == 1)
        last->registers = registers;
}

static void read_report(const Work *w, Cubin *out) {
    char *log;
    size_t size;
    ToolError error;
    if (!file_read_all(w->log, &log, &size, &error))
        return;
    char *rest = log;
    for (const char *line; (line = strsep(&rest, "\n")) != NULL;)
        read_report_line(out, line);
    free(log);
}

// --- the file ---

static size_t plan_length(const char *ptx, size_t len) {
    size_t at = 0;
    while (at + 3 <= len && memcmp(ptx + at, "//!", 3) == 0) {
        const char *nl = memchr(ptx + at, '\n', len - at);
        at = nl ? (size_t)(nl - ptx) + 1 : len;
    }
    return at;
}

static bool add_plan(const char *ptx, size_t len, Cubin *out) {
    size_t plan = plan_length(ptx, len);
    char *all = realloc(out->data, out->size + plan + 64);
    if (!all)
        return cubin_fail(out, "out of memory");
    out->data = all;
    size_t at = out->size;
    memcpy(all + at, ptx, plan);
    out->size += plan;
    out->size += (size_t)sprintf(all + out->size, "//! at %016zx\n", at);
    return true;
}

bool cubin_make(const char *ptx, size_t len, const char *target, bool line_info, Cubin *out) {
    *out = (Cubin){0};
    char program[4200], arch[64];
    if (!find_ptxas(program, sizeof program, out))
        return false;
    Work *w = calloc(1, sizeof *w);
    if (!w)
        return cubin_fail(out, "out of memory");
    bool ok = work_begin(w, out) && write_file(w->ptx, ptx, len, out);
    if (ok) {
        snprintf(arch, sizeof arch, "-arch=%s", target);
        char *argv[] = {program, arch, "-o", w->cubin, w->ptx, "-v", line_info ? "-lineinfo" : NULL,
                        NULL};
        int status = run_program(argv, w->log);
        ok = status == 0 || report_failure(w, program, status, ptx, len, out);
    }
    ToolError error;
    if (ok && !file_read_all(w->cubin, &out->data, &out->size, &error))
        ok = cubin_fail(out, "%s", error.text);
    ok = ok && add_plan(ptx, len, out);
    if (ok)
        read_report(w, out);
    work_end(w);
    free(w);
    return ok;
}

void cubin_free(Cubin *cubin) {
    for (int i = 0; i < cubin->nfunction; i++)
        free((char *)cubin->function[i].entry);
    free(cubin->function);
    free(cubin->data);
    free(cubin->error);
    *cubin = (Cubin){0};
}
