// libfusec's one entry: source text in, artefact and diagnostics out.
//
// Input: options and the text of a .fk file, or of tile IR (it begins with `tir `: a compilation
// can be taken up from the middle). Output: a FuseResult that owns everything in one arena. Every
// step returns false once an error was reported; nothing prints.
#include "include/fusec.h"

#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/backend.h"
#include "backend/host/host.h"
#include "frontend/frontend.h"
#include "driver/result.h"
#include "ir/deterministic.h"
#include "ir/pass.h"
#include "lang/base/guard.h"
#include "lang/ast_print.h"
#include "lang/parse.h"

static const char default_target[] = "sm_80";

// --- messages ---

void result_say(void *user, const char *text, size_t len) {
    FuseResult *r = user;
    if (r->options.message) {
        r->options.message(r->options.user, text, len);
        return;
    }
    size_t need = r->nmessages + len + 1;
    if (need > r->message_room) {
        r->message_room = need > 2 * r->message_room ? need : 2 * r->message_room;
        char *all = arena_alloc(r->arena, r->message_room);
        memcpy(all, r->messages, r->nmessages);
        r->messages = all;
    }
    memcpy(r->messages + r->nmessages, text, len);
    r->nmessages += len;
    r->messages[r->nmessages] = 0;
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void result_time(FuseResult *r, const char *what, double since) {
    if (!r->options.time)
        return;
    char *line = arena_printf(r->arena, "%-16s %8.3f ms\n", what, (seconds_now() - since) * 1e3);
    result_say(r, line, strlen(line));
}

// --- front end ---

static bool text_is_ir(const char *text, size_t len) {
    return len > 4 && memcmp(text, "tir ", 4) == 0;
}

static bool read_ir(FuseResult *r, const char *text, size_t len) {
    r->step = "reader of tile IR";
    const char *error = NULL;
    r->module = ir_parse(r->arena, r->interner, text, len, &error);
    bool ok = r->module && ir_verify_text(r->scratch, r->module, text, &error);
    if (!ok)
        diag_add(r->diags, DIAG_BAD_IR, (Span){0}, "%s:%s", r->name, error);
    arena_reset(r->scratch);
    return ok;
}

static const char *target_names(FuseResult *r) {
    const char *names = "";
    for (int i = 0; target_at(i); i++)
        names = arena_printf(r->arena, "%s%s%s", names, i ? ", " : "", target_at(i)->name);
    return names;
}

// A clause for a target that does not exist would never count.
static void check_schedule_targets(FuseResult *r) {
    for (uint32_t i = 0; i < r->ast->decls.len; i++) {
        const Decl *decl = r->ast->decls.data[i];
        for (uint32_t k = 0; decl->kind == DECL_KERNEL && k < decl->kernel.schedules.len; k++) {
            const Name *target = &decl->kernel.schedules.data[k].target;
            if (!target->text || target_find(target->text))
                continue;
            Diag *d = diag_add(r->diags, DIAG_BAD_SCHEDULE, target->span,
                               "there is no target named `%s`", target->text);
            diag_hint(r->diags, d, "the targets are %s", target_names(r));
        }
    }
}

static bool read_source(FuseResult *r, const char *text, size_t len) {
    double start = seconds_now();
    r->step = "parser";
    guard_fault_point("parser");
    FileId file = source_add(r->sources, r->name, text, len);
    if (file == 0) {
        diag_add(r->diags, DIAG_FILE_SIZE, (Span){0}, "%s is too large", r->name);
        return false;
    }
    r->ast = lang_parse(r->arena, r->interner, r->sources, file, r->diags);
    result_time(r, "parse", start);
    if (r->options.emit == FUSE_EMIT_AST)
        return !diags_has_errors(r->diags);
    // After a syntax error too: what is wrong elsewhere in the file is said in the same run.
    start = seconds_now();
    r->step = "front end";
    FrontendOptions options = {.defines = r->options.defines,
                               .includes = r->options.includes,
                               .target = r->target->models,
                               .kernel = r->options.kernel};
    r->module = frontend_lower(r->arena, r->interner, r->sources, r->ast, &options, r->diags,
                               &r->schedules);
    check_schedule_targets(r);
    result_time(r, "front end", start);
    if (diags_has_errors(r->diags))
        return false;
    if (r->module->nkernel > 0)
        return true;
    diag_add(r->diags, DIAG_NO_KERNEL, source_span(r->sources, file),
             r->options.kernel ? "this file has no kernel named `%s`" : "this file has no kernel",
             r->options.kernel);
    return false;
}

// The IR carries the name of the target that it is made for.
static bool check_module(FuseResult *r) {
    r->step = "verifier";
    r->module->target = intern_cstr(r->interner, r->target->name);
    const char *error = NULL;
    if (ir_verify(r->scratch, r->module, &error)) {
        arena_reset(r->scratch);
        return true;
    }
    diag_add(r->diags, DIAG_INTERNAL, (Span){0}, "invalid IR at stage %s: %s",
             stage_name(r->module->stage), error);
    r->internal = true;
    return false;
}

// --- middle and back ---

// `text` is that of the IR, NULL for source.
static bool run_passes(FuseResult *r, const char *text) {
    const FuseOptions *o = &r->options;
    PassOptions options = {.no_fuse = o->no_fuse,
                           .fast_math = o->fast_math,
                           .debug = o->debug,
                           .explain = o->explain,
                           .dump = o->dump,
                           .stop_after = o->stop_after,
                           .passes = o->passes,
                           .time = o->time,
                           .nschedule = r->schedules.n,
                           .schedule = r->schedules.items};
    if (o->dump && strcmp(o->dump, "generic") == 0) {
        options.dump = "all";
        options.dump_generic = true;
    }
    PassCtx *ctx = ARENA_NEW(r->arena, PassCtx);
    r->passes = ctx;
    *ctx = (PassCtx){.module = r->module,
                     .target = r->target,
                     .options = &options,
                     .scratch = r->scratch,
                     .scratch_bytes = lower_scratch_bytes,
                     .text = r->module->stage >= STAGE_SCHEDULED ? text : NULL,
                     .text_name = r->name,
                     .diags = r->diags,
                     .sink = result_say,
                     .user = r};
    double start = seconds_now();
    r->step = "passes";
    guard_fault_point("passes");
    bool ok = passes_run(ctx);
    result_time(r, "passes", start);
    return ok && !diags_has_errors(r->diags);
}

static bool emit_code(FuseResult *r) {
    const FuseOptions *o = &r->options;
    r->step = "code generation";
    BackendOptions options = {.opt_level = o->opt_level,
                              .line_info = o->line_info,
                              .debug = o->debug,
                              .fast_math = o->fast_math,
                              .time = o->time,
                              .sources = r->sources,
                              .message = result_say,
                              .user = r};
    double start = seconds_now();
    if (o->emit == FUSE_EMIT_HOST) {
        r->host = host_jit(r->arena, r->module, r->target, &options, r->diags);
        if (r->host)
            r->plan = host_module_plan(r->host, &r->nplan);
        result_time(r, "code", start);
        return r->host != NULL;
    }
    options.emit = o->emit == FUSE_EMIT_LLVM  ? BACKEND_LLVM
                   : o->emit == FUSE_EMIT_OBJ ? BACKEND_OBJECT
                                              : BACKEND_PTX;
    BackendOutput out = {0};
    bool ok = backend_emit(r->arena, r->module, r->target, &options, &out, r->diags);
    result_time(r, "code", start);
    r->output = out.data;
    r->noutput = out.len;
    r->plan = out.plan;
    r->nplan = out.plan_len;
    return ok;
}

static void emit_tile(FuseResult *r) {
    IrText text = ir_print(r->arena, r->module, (IrPrintOptions){0});
    r->output = text.data;
    r->noutput = text.len;
}

static bool emit_fits_target(FuseResult *r) {
    FuseEmit e = r->options.emit;
    bool gpu = r->target->family == TARGET_NVPTX;
    bool fits = e == FUSE_EMIT_PTX ? gpu : e == FUSE_EMIT_OBJ || e == FUSE_EMIT_HOST ? !gpu : true;
    if (!fits)
        diag_add(r->diags, DIAG_BAD_TARGET, (Span){0}, "target %s makes no %s", r->target->name,
                 e == FUSE_EMIT_PTX ? "PTX" : "host code");
    return fits;
}

static bool check_fits_emit(FuseResult *r) {
    if (!r->options.check || r->options.emit == FUSE_EMIT_EVAL)
        return true;
    Diag *d = diag_add(r->diags, DIAG_UNSUPPORTED, (Span){0},
                       "compiled code has no checks: the evaluator makes them");
    diag_hint(r->diags, d, "run the kernel on the device `eval`");
    return false;
}

// Source for `cpu` that runs at once is compiled for this very machine; text of the IR has its
// tiles and vectors already.
static void choose_machine(FuseResult *r, bool is_ir) {
    bool is_any = r->target->family == TARGET_CPU && !r->target->triple;
    if (is_any && !is_ir && r->options.emit == FUSE_EMIT_HOST)
        r->target = host_target_of_machine();
}

static bool compile_steps(FuseResult *r, const char *text, size_t len) {
    const FuseOptions *o = &r->options;
    r->target = target_find(o->target ? o->target : default_target);
    if (!r->target) {
        Diag *d = diag_add(r->diags, DIAG_BAD_TARGET, (Span){0}, "there is no target named `%s`",
                           o->target);
        diag_hint(r->diags, d, "the targets are %s", target_names(r));
        return false;
    }
    if (!emit_fits_target(r) || !check_fits_emit(r))
        return false;
    bool is_ir = text_is_ir(text, len);
    choose_machine(r, is_ir);
    if (!(is_ir ? read_ir(r, text, len) : read_source(r, text, len)))
        return false;
    if (o->emit == FUSE_EMIT_AST) {
        if (is_ir) {
            diag_add(r->diags, DIAG_BAD_IR, (Span){0}, "%s is tile IR, it has no syntax tree",
                     r->name);
            return false;
        }
        r->output = ast_print_file(r->arena, r->ast);
        r->noutput = strlen(r->output);
        return true;
    }
    if (!check_module(r))
        return false;
    if (o->deterministic && !check_deterministic(r->module, r->diags))
        return false;
    if (o->emit == FUSE_EMIT_EVAL || (o->emit == FUSE_EMIT_TILE && !o->passes && !o->stop_after)) {
        emit_tile(r);
        r->plan = r->output;
        r->nplan = r->noutput;
        return true;
    }
    if (!run_passes(r, is_ir ? text : NULL))
        return false;
    if (o->emit == FUSE_EMIT_TILE) {
        emit_tile(r);
        return true;
    }
    return emit_code(r);
}

typedef struct Compilation {
    FuseResult *result;
    const char *name, *text;
    size_t len;
} Compilation;

static void compile_guarded(void *user) {
    Compilation *c = user;
    FuseResult *r = c->result;
    r->ok = compile_steps(r, c->text, c->len) && !diags_has_errors(r->diags);
}

// A crash of ours is a report like any other: the process goes on. Numbers are read and printed as
// in C, whatever the locale of the program that called.
static void compile_caught(Compilation *c) {
    FuseResult *r = c->result;
    GuardReport crash;
    locale_t numbers = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    locale_t before = uselocale(numbers);
    bool ok = guard_run(compile_guarded, c, &crash);
    uselocale(before);
    if (numbers)
        freelocale(numbers);
    if (ok)
        return;
    r->ok = false;
    arena_limit(r->arena, SIZE_MAX); // for the report
    const PassCtx *p = r->passes;
    bool in_pass = p && p->running && strcmp(r->step, "passes") == 0;
    const char *where = in_pass ? arena_printf(r->arena, "pass `%s` on `%s`", p->running, p->kernel)
                                : arena_printf(r->arena, "the %s", r->step);
    Diag *d = diag_add(r->diags, crash.out_of_memory ? DIAG_TOO_LARGE : DIAG_INTERNAL, (Span){0},
                       "%s stopped for target %s: %s", where, r->target ? r->target->name : "?",
                       crash.reason);
    if (crash.out_of_memory)
        diag_hint(r->diags, d, "make %s smaller: fewer calls of large functions, smaller tiles",
                  in_pass ? "the kernel" : r->name);
    else
        diag_hint(r->diags, d, "please report it with %s", r->name);
}

static void note_internal(FuseResult *r) {
    for (uint32_t i = 0; i < diags_count(r->diags); i++)
        r->internal |= diag_id(diags_at(r->diags, i)) == DIAG_INTERNAL;
}

// Gives the first flag that names nothing, or NULL.
static const char *warning_levels(const FuseOptions *o, DiagOptions *out) {
    *out = (DiagOptions){0};
    if (o->no_perf_notes)
        diag_options_flag(out, "no-perf");
    for (int i = 0; o->warnings && o->warnings[i]; i++)
        if (!diag_options_flag(out, o->warnings[i]))
            return o->warnings[i];
    return NULL;
}

static void compile_begin(Compilation *c) {
    FuseResult *r = c->result;
    r->arena = arena_new("result");
    r->scratch = arena_new("scratch");
    r->name = arena_strdup(r->arena, c->name ? c->name : "<source>");
    r->messages = arena_strdup(r->arena, "");
    r->interner = interner_new(r->arena);
    r->sources = source_map_new(r->arena);
    r->step = "driver";
}

static void compile_all(void *user) {
    Compilation *c = user;
    FuseResult *r = c->result;
    compile_begin(c);
    const char *wrong = warning_levels(&r->options, &r->levels);
    r->diags = diags_new(r->arena, r->sources, &r->levels);
    if (wrong)
        diag_add(r->diags, DIAG_BAD_WARNING, (Span){0}, "-W%s names no warning or performance note",
                 wrong);
    else
        compile_caught(c);
    if (!r->ok)
        r->noutput = 0;
    arena_limit(r->arena, SIZE_MAX); // messages are bounded by their number
    diags_print(r->diags, result_say, r);
    note_internal(r);
    arena_reset(r->scratch);
}

FuseResult *fuse_compile(const FuseOptions *options, const char *name, const char *source,
                         size_t len) {
    FuseResult *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->options = options ? *options : (FuseOptions){.emit = FUSE_EMIT_PTX, .opt_level = 2};
    Compilation c = {r, name, source ? source : "", source ? len : 0};
    GuardReport end;
    if (guard_memory(compile_all, &c, &end))
        return r;
    free(r); // its arenas are freed already
    return NULL;
}
