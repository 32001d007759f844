// Planted faults: placed text with one thing wrong, which the verifier, the protocol proof, code
// generation or the simulator has to report, with the place in the source.
//
// One row of sim_faults.def is a fault. Two kinds of text: tests/corpus/faults/product.fk as the
// pipeline places it for sm_80 (its ops carry spans of the .fk), and linear_gelu_sm90a.tir (each op
// gets the span of its own line). A simulated fault may show in several ways, by seed: every seed
// has to show one of them.
#include "tests/host_run.h"

#include "frontend/frontend.h"
#include "ir/pass.h"
#include "lang/parse.h"

enum { SEEDS = 2 };

typedef enum By { BY_VERIFY, BY_PROTOCOL, BY_BACKEND, BY_SIM } By;

typedef struct Edit {
    const char *from; // the nth (from 0) of the text
    int nth;
    const char *to; // NULL: the line goes
} Edit;

typedef struct Fault {
    const char *what;
    Edit edit[2]; // in order
    By by;
    const char *says; // alternatives with | between them
    const char *at;   // a part of the line of the source that is to blame; NULL: no place is known
} Fault;

typedef struct Text {
    Arena *arena;
    Interner *names;
    SourceMap *sources;
    const char *target, *file, *source; // name and text of what spans point at
    char *placed;
    const char *last; // report
    int64_t dims[3];
} Text;

// --- the texts ---

static Text text_new(const char *target, const char *file, const char *path) {
    Text t = {.arena = arena_new("faults"), .target = target, .file = file};
    t.names = interner_new(t.arena);
    t.sources = source_map_new(t.arena);
    size_t len;
    char *text = read_file(t.arena, path, &len);
    text[len] = 0;
    t.source = text;
    return t;
}

static Text product_text(void) {
    Text t = text_new("sim-sm_80", "product.fk", FUSE_SOURCE_DIR "/tests/corpus/faults/product.fk");
    FileId file = source_add(t.sources, t.file, t.source, strlen(t.source));
    Diags *diags = diags_new(t.arena, t.sources, NULL);
    AstFile *ast = lang_parse(t.arena, t.names, t.sources, file, diags);
    ScheduleList schedules = {0};
    Module *m = frontend_lower(t.arena, t.names, t.sources, ast, NULL, diags, &schedules);
    cr_assert(!diags_has_errors(diags), "%s", diags_text(diags, t.arena));
    m->target = intern_cstr(t.names, t.target);
    PassOptions options = {.nschedule = schedules.n, .schedule = schedules.items};
    PassCtx ctx = {.module = m,
                   .target = target_find(t.target),
                   .options = &options,
                   .scratch = arena_new("scratch"),
                   .scratch_bytes = lower_scratch_bytes,
                   .diags = diags};
    cr_assert(passes_run(&ctx), "%s", diags_text(diags, t.arena));
    arena_free(ctx.scratch);
    IrText text = ir_print(t.arena, m, (IrPrintOptions){.spans = true});
    t.placed = arena_strndup(t.arena, text.data, text.len);
    memcpy(t.dims, (int64_t[]){70, 168, 72}, sizeof t.dims);
    return t;
}

// Appends the span of its line to each op without a region.
static char *with_spans(Text *t, uint32_t base) {
    char *out = arena_alloc(t->arena, 2 * strlen(t->source) + 8192), *to = out;
    for (const char *line = t->source; *line;) {
        const char *end = strchr(line, '\n');
        size_t n = (size_t)(end - line);
        bool closes = line[strspn(line, " ")] == '}';
        bool is_op = line[0] == ' ' && end[-1] != '{' && !closes;
        to += sprintf(to, "%.*s", (int)n, line);
        if (is_op)
            to += sprintf(to, " !%u+%u", base + (uint32_t)(line - t->source) + 2, (unsigned)n - 2);
        *to++ = '\n';
        line = end + 1;
    }
    *to = 0;
    return out;
}

static Text roles_text(void) {
    Text t = text_new("sim-sm_90a", "linear_gelu_sm90a.tir",
                      FUSE_SOURCE_DIR "/tests/corpus/placed/linear_gelu_sm90a.tir");
    FileId file = source_add(t.sources, t.file, t.source, strlen(t.source));
    t.placed = with_spans(&t, source_span(t.sources, file).begin);
    // More steps than slots, and a program with two tiles (four run at once).
    memcpy(t.dims, (int64_t[]){16, 200, 1032}, sizeof t.dims);
    return t;
}

static char *edited(Text *t, const char *text, const Edit *e, const char *what) {
    const char *at = text;
    for (int i = 0; (at = strstr(at, e->from)) && i < e->nth; i++)
        at += strlen(e->from);
    cr_assert(at, "%s: no `%s` in\n%s", what, e->from, t->placed);
    if (e->to)
        return arena_printf(t->arena, "%.*s%s%s", (int)(at - text), text, e->to,
                            at + strlen(e->from));
    while (at > text && at[-1] != '\n')
        at--;
    return arena_printf(t->arena, "%.*s%s", (int)(at - text), text, strchr(at, '\n') + 1);
}

// --- reports ---

static bool says_one_of(const char *report, const char *alternatives) {
    for (const char *a = alternatives; *a;) {
        size_t n = strcspn(a, "|");
        char part[256];
        snprintf(part, sizeof part, "%.*s", (int)n, a);
        if (strstr(report, part))
            return true;
        a += n + (a[n] == '|');
    }
    return false;
}

static void expect_report(Text *t, const Fault *f, const char *report, bool *placed) {
    t->last = report;
    cr_expect(report && *report, "%s: not reported", f->what);
    if (!report || !*report)
        return;
    cr_expect(says_one_of(report, f->says), "%s: `%s` lacks `%s`", f->what, report, f->says);
    if (!f->at)
        return;
    const char *at = strstr(t->source, f->at);
    cr_assert(at, "%s: no `%s`", f->what, f->at);
    int line = 1;
    for (const char *p = t->source; p < at; p++)
        line += *p == '\n';
    *placed = *placed || strstr(report, arena_printf(t->arena, "%s:%d:", t->file, line));
}

static const char *protocol_report(Text *t, Module *m) {
    Diags *diags = diags_new(t->arena, t->sources, NULL);
    PassOptions options = {.passes = "protocol"};
    PassCtx ctx = {.module = m,
                   .target = target_find(t->target),
                   .options = &options,
                   .scratch = arena_new("scratch"),
                   .scratch_bytes = lower_scratch_bytes,
                   .diags = diags};
    bool ok = passes_run(&ctx);
    arena_free(ctx.scratch);
    return ok ? "" : diags_text(diags, t->arena);
}

// Of the first variant whose guards hold.
static const char *report_of_run(Text *t, Module *m, HostModule *host, uint64_t seed) {
    for (int i = 0; i < m->nkernel; i++) {
        Data *data = make_data(t->arena, m->kernel[i], t->dims, false);
        Run r = {.arena = t->arena,
                 .host = host,
                 .k = m->kernel[i],
                 .threads = 1,
                 .seed = seed,
                 .what = t->file};
        if (run_kernel(&r, data, t->dims))
            return r.message ? r.message : "";
    }
    return "no variant runs";
}

static void simulate(Text *t, const Fault *f, Module *m, bool *placed) {
    Diags *diags = diags_new(t->arena, t->sources, NULL);
    BackendOptions options = {.sources = t->sources};
    HostModule *host = host_jit(t->arena, m, target_find(t->target), &options, diags);
    if (f->by == BY_BACKEND) {
        cr_expect(!host, "%s: compiled", f->what);
        expect_report(t, f, diags_text(diags, t->arena), placed);
        return;
    }
    cr_assert(host, "%s: %s", f->what, diags_text(diags, t->arena));
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        expect_report(t, f, report_of_run(t, m, host, seed), placed);
    host_module_free(host);
}

static void run_fault(Text *t, const Fault *f) {
    char *text = t->placed;
    bool placed = false;
    for (int i = 0; i < 2 && f->edit[i].from; i++)
        text = edited(t, text, &f->edit[i], f->what);
    const char *error = NULL;
    Module *m = ir_parse(t->arena, t->names, text, strlen(text), &error);
    cr_assert(m, "%s: %s", f->what, error);
    bool sound = ir_verify(t->arena, m, &error);
    if (f->by == BY_VERIFY) {
        cr_expect(!sound, "%s: verified", f->what);
        expect_report(t, f, sound ? "" : error, &placed);
        return;
    }
    cr_assert(sound, "%s: %s", f->what, error);
    if (f->by == BY_PROTOCOL)
        expect_report(t, f, protocol_report(t, m), &placed);
    else
        simulate(t, f, m, &placed);
    cr_expect(placed || !f->at, "%s: not at `%s`: %s", f->what, f->at, t->last);
}

static void run_faults(Text *t, const Fault *faults, size_t n) {
    const char *only = getenv("FUSE_TEST_FAULT");
    for (size_t i = 0; i < n; i++)
        if (!only || strstr(faults[i].what, only))
            run_fault(t, &faults[i]);
    arena_free(t->arena);
}

// --- without a fault there is no report ---

static void expect_sound(Text *t) {
    const char *error = NULL;
    Module *m = ir_parse(t->arena, t->names, t->placed, strlen(t->placed), &error);
    cr_assert(m && ir_verify(t->arena, m, &error), "%s", error);
    cr_expect_str_eq(protocol_report(t, m), "");
    Diags *diags = diags_new(t->arena, t->sources, NULL);
    BackendOptions options = {.sources = t->sources};
    HostModule *host = host_jit(t->arena, m, target_find(t->target), &options, diags);
    cr_assert(host, "%s", diags_text(diags, t->arena));
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        cr_expect_str_eq(report_of_run(t, m, host, seed), "");
    host_module_free(host);
}

static const Fault product_faults[] = {
#define PRODUCT(...) {__VA_ARGS__},
#define ROLES(...)
#include "tests/sim_faults.def"
};
static const Fault roles_faults[] = {
#define PRODUCT(...)
#define ROLES(...) {__VA_ARGS__},
#include "tests/sim_faults.def"
};

Test(sim_faults, product, .timeout = 600) {
    Text t = product_text();
    expect_sound(&t);
    run_faults(&t, product_faults, sizeof product_faults / sizeof *product_faults);
}
Test(sim_faults, roles, .timeout = 600) {
    Text t = roles_text();
    expect_sound(&t);
    run_faults(&t, roles_faults, sizeof roles_faults / sizeof *roles_faults);
}
