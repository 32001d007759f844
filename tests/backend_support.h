// Placed IR text to PTX, and ptxas where the machine has it. Included by the back end's tests.
#ifndef FUSE_TESTS_BACKEND_SUPPORT_H
#define FUSE_TESTS_BACKEND_SUPPORT_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"

typedef struct Emitted {
    Arena *arena;
    const char *text; // NULL: failed
    const char *messages;
    const char *plan;
} Emitted;

static inline Emitted emit_text(const char *ir, const char *target, BackendOptions options) {
    Emitted e = {.arena = arena_new("test")};
    Interner *names = interner_new(e.arena);
    const char *error = NULL;
    Module *m = ir_parse(e.arena, names, ir, strlen(ir), &error);
    cr_assert(m, "parse: %s", error ? error : "?");
    cr_assert(ir_verify(e.arena, m, &error), "verify: %s", error ? error : "?");
    SourceMap *sources = source_map_new(e.arena);
    Diags *diags = diags_new(e.arena, sources, NULL);
    const TargetDesc *desc = target_find(target);
    cr_assert(desc);
    BackendOutput out;
    if (backend_emit(e.arena, m, desc, &options, &out, diags)) {
        e.text = out.data;
        e.plan = out.plan;
    }
    e.messages = diags_text(diags, e.arena);
    return e;
}

static inline Emitted emit_ptx(const char *ir, const char *target) {
    Emitted e = emit_text(ir, target, (BackendOptions){.emit = BACKEND_PTX, .opt_level = 2});
    cr_assert(e.text, "%s", e.messages);
    const char *dump = getenv("FUSE_TEST_DUMP");
    if (dump) {
        FILE *f = fopen(dump, "w");
        fwrite(e.text, 1, strlen(e.text), f);
        fclose(f);
    }
    return e;
}

static inline int count_of(const char *text, const char *part) {
    int n = 0;
    for (const char *p = strstr(text, part); p; p = strstr(p + 1, part))
        n++;
    return n;
}

// Assembles and returns ptxas's report; NULL (and a message) where there is no ptxas.
static inline char *assemble(Emitted *e, const char *target) {
    const char *ptxas = "/usr/local/cuda/bin/ptxas";
    if (access(ptxas, X_OK) != 0) {
        fprintf(stderr, "no ptxas here: PTX is not assembled\n");
        return NULL;
    }
    char name[] = "/tmp/fuse-ptx-XXXXXX";
    int fd = mkstemp(name);
    cr_assert(fd >= 0);
    cr_assert(write(fd, e->text, strlen(e->text)) == (ssize_t)strlen(e->text));
    close(fd);
    char *command =
        arena_printf(e->arena, "%s -arch=%s -v %s -o /dev/null 2>&1", ptxas, target, name);
    FILE *pipe = popen(command, "r");
    cr_assert(pipe);
    char *report = arena_alloc(e->arena, 65536);
    size_t n = fread(report, 1, 65535, pipe);
    report[n] = 0;
    int status = pclose(pipe);
    unlink(name);
    cr_assert(status == 0, "ptxas: %s", report);
    return report;
}

static inline void no_spills(const char *report) {
    if (!report)
        return;
    cr_assert(strstr(report, "0 bytes stack frame, 0 bytes spill stores"), "%s", report);
    cr_assert(!strstr(report, "C75"), "%s", report);
}

#endif
