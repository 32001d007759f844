// The pass manager: runs passes over every kernel, verifies after each, dumps, times.
//
// Input: a module, options. Output: the module rewritten in place, diagnostics, text through the
// sink. Invariant: after each pass the IR is valid, or an internal error names the pass and the op
// and nothing else runs.
#include "ir/pass.h"

#include "ir/pipeline.h"

#include <string.h>
#include <time.h>

static const struct {
    const char *name, *what;
    PassFn run;
} passes[PASS_COUNT] = {
#define PASS(id, text) [PASS_##id] = {#id, text, pass_##id},
#include "ir/passes.def"
#undef PASS
};

const char *pass_name(PassId id) {
    return passes[id].name;
}

typedef struct Run {
    PassCtx *ctx;
    Arena *arena; // lives as long as the run
    double seconds[PASS_COUNT];
    int runs[PASS_COUNT];
} Run;

static bool find_pass(const char *name, size_t len, PassId *id) {
    for (int i = 0; i < PASS_COUNT; i++) {
        if (strlen(passes[i].name) == len && memcmp(passes[i].name, name, len) == 0) {
            *id = (PassId)i;
            return true;
        }
    }
    return false;
}

static bool known_pass(Run *run, const char *name, size_t len, PassId *id) {
    if (find_pass(name, len, id))
        return true;
    diag_add(run->ctx->diags, DIAG_UNSUPPORTED, (Span){0}, "no pass has the name `%.*s`", (int)len,
             name);
    return false;
}

static void emit(const Run *run, const char *text, size_t len) {
    if (run->ctx->sink)
        run->ctx->sink(run->ctx->user, text, len);
}

static void dump(Run *run, PassId id) {
    const PassOptions *o = run->ctx->options;
    if (!o->dump || (strcmp(o->dump, "all") != 0 && strcmp(o->dump, pass_name(id)) != 0))
        return;
    const char *head =
        arena_printf(run->arena, "// after %s: %s\n", pass_name(id), passes[id].what);
    emit(run, head, strlen(head));
    IrText text =
        ir_print(run->arena, run->ctx->module, (IrPrintOptions){.generic = o->dump_generic});
    emit(run, text.data, text.len);
}

static bool verify(Run *run, PassId id) {
    const char *error = NULL;
    if (ir_verify(run->ctx->scratch, run->ctx->module, &error)) {
        arena_reset(run->ctx->scratch);
        return true;
    }
    Diag *d = diag_add(run->ctx->diags, DIAG_INTERNAL, (Span){0}, "after pass `%s`: %s",
                       pass_name(id), error);
    diag_hint(run->ctx->diags, d, "see the IR with --dump=%s", pass_name(id));
    return false;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// One pass over the kernels that exist when it starts: those that it adds are already done.
static bool run_kernels(Run *run, PassId id) {
    PassCtx *ctx = run->ctx;
    int n = ctx->module->nkernel;
    Kernel **kernels = arena_copy(run->arena, ctx->module->kernel, (size_t)n * sizeof *kernels);
    for (int i = 0; i < n; i++) {
        uint32_t errors = diags_error_count(ctx->diags);
        ctx->running = pass_name(id);
        ctx->kernel = kernels[i]->name;
        bool ok = passes[id].run(ctx, kernels[i]);
        arena_reset(ctx->scratch);
        if (!ok && diags_error_count(ctx->diags) == errors)
            diag_add(ctx->diags, DIAG_INTERNAL, kernels[i]->span,
                     "pass `%s` failed on kernel `%s` without a message", pass_name(id),
                     kernels[i]->name);
        if (diags_error_count(ctx->diags) != errors)
            return false;
    }
    return true;
}

static bool run_pass(Run *run, PassId id, Stage after) {
    double start = now();
    bool ok = run_kernels(run, id);
    run->seconds[id] += now() - start;
    run->runs[id]++;
    if (run->ctx->module->stage < after)
        run->ctx->module->stage = after;
    dump(run, id);
    return ok && verify(run, id);
}

// The stage that the pass leaves the module in, wherever it runs.
static Stage stage_after(PassId id) {
    int n;
    const PipelineStep *steps = pipeline_steps(&n);
    for (int i = 0; i < n; i++)
        if (steps[i].pass == id)
            return steps[i].after;
    return STAGE_TENSOR;
}

static bool run_list(Run *run, const char *list, bool stops, PassId stop) {
    while (*list) {
        size_t len = strcspn(list, ",");
        PassId id;
        if (!known_pass(run, list, len, &id) || !run_pass(run, id, stage_after(id)))
            return false;
        if (stops && id == stop)
            return true;
        list += len + (list[len] == ',');
    }
    return true;
}

static bool run_pipeline(Run *run, bool stops, PassId stop) {
    int n, last = -1;
    const PipelineStep *steps = pipeline_steps(&n);
    for (int i = 0; i < n; i++) // a pass that runs several times stops after the first
        if (stops && steps[i].pass == stop && last < 0)
            last = i;
    Stage start = run->ctx->module->stage;
    for (int i = 0; i < n; i++) {
        if (start <= steps[i].until && start <= steps[i].after)
            if (!run_pass(run, steps[i].pass, steps[i].after))
                return false;
        if (i == last)
            break;
    }
    return true;
}

static void print_times(Run *run) {
    double total = 0.0;
    for (int i = 0; i < PASS_COUNT; i++)
        total += run->seconds[i];
    for (int i = 0; i < PASS_COUNT; i++) {
        if (!run->runs[i])
            continue;
        const char *line =
            arena_printf(run->arena, "%10.3f ms %5.1f%% %3d x %s\n", 1e3 * run->seconds[i],
                         total > 0.0 ? 100.0 * run->seconds[i] / total : 0.0, run->runs[i],
                         pass_name((PassId)i));
        emit(run, line, strlen(line));
    }
    const char *line = arena_printf(run->arena, "%10.3f ms all passes\n", 1e3 * total);
    emit(run, line, strlen(line));
}

bool passes_run(PassCtx *ctx) {
    const PassOptions *o = ctx->options;
    Run run = {.ctx = ctx, .arena = arena_new("passes")};
    PassId stop = PASS_simplify, unused;
    bool ok = !o->stop_after || known_pass(&run, o->stop_after, strlen(o->stop_after), &stop);
    if (o->dump && strcmp(o->dump, "all") != 0)
        ok = known_pass(&run, o->dump, strlen(o->dump), &unused) && ok;
    if (ok && o->passes)
        ok = run_list(&run, o->passes, o->stop_after != NULL, stop);
    else if (ok)
        ok = run_pipeline(&run, o->stop_after != NULL, stop);
    if (o->time)
        print_times(&run);
    arena_free(run.arena);
    return ok;
}
