// What the assembler found out about the functions of a result's PTX: spilled registers.
//
// Input: for each function its registers and the local memory that a thread takes, from ptxas or
// from the driver. Output: a performance note for each launch of a most special variant that
// spills; with --explain a remark for each function. PTX alone has neither: its registers have no
// number yet.
#include <string.h>

#include "driver/result.h"
#include "ir/remark.h"

// --- the function in the PTX ---

static const char *find_in(const char *from, const char *end, const char *text) {
    return memmem(from, (size_t)(end - from), text, strlen(text));
}

// From its name to its end; false: there is none.
static bool find_function(const FuseResult *r, const char *entry, const char **from,
                          const char **end) {
    static const char mark[] = ".entry ";
    const char *last = r->output + r->noutput;
    size_t len = strlen(entry);
    for (const char *at = r->output; (at = find_in(at, last, mark)) != NULL;) {
        at += sizeof mark - 1;
        if (strncmp(at, entry, len) != 0 || (at[len] != '(' && at[len] != '\n'))
            continue;
        const char *close = find_in(at, last, "\n}");
        *from = at;
        *end = close ? close : last;
        return true;
    }
    return false;
}

// Bytes of a thread that stand for registers. 0 where that cannot be told: a function with arrays
// of its own in local memory, or with calls (of `print` and `assert`), which have a stack.
static int spilled_bytes(const FuseResult *r, const FuseFunctionUse *use) {
    const char *from, *end;
    bool found = find_function(r, use->entry, &from, &end);
    return found && !find_in(from, end, ".local ") && !find_in(from, end, "call") ? use->local_bytes
                                                                                  : 0;
}

// --- the launch in the IR ---

typedef struct Search {
    const char *entry;
    const Op *launch;
} Search;

static void find_launch(void *user, Op *op) {
    Search *s = user;
    Str entry = op->kind == OP_LAUNCH ? op_attr_str(op, ATTR_entry) : NULL;
    if (entry && !s->launch && strcmp(entry, s->entry) == 0)
        s->launch = op;
}

static void find_windows(void *user, Op *op) {
    const Op **windows = user;
    if (op->kind == OP_WITH && !*windows)
        *windows = op;
}

// The largest axis of a program's tile; NULL: none is to be made smaller.
static const Axis *largest_axis(const Op *launch) {
    const Op *windows = NULL;
    const Axis *largest = NULL;
    ir_walk(launch->region[0], find_windows, &windows);
    for (int i = 0; windows && i < windows->nbinders; i++) {
        const Axis *a = windows->binder[i].axis;
        if (a && a->size > 1 && (!largest || a->size > largest->size))
            largest = a;
    }
    return largest;
}

// A schedule may name the dim that an axis walks; in a statement on whole tensors it has to.
static const char *schedule_name(Arena *arena, const Axis *a) {
    while (a->of)
        a = a->of;
    return written_axis(arena, a);
}

static void hint_schedule(FuseResult *r, Diag *d, const Op *launch) {
    enum { ALL_REGISTERS_WARPS = 8 }; // from here on more threads have fewer registers each
    int64_t warps = op_attr_int(launch, ATTR_warps);
    const Axis *a = largest_axis(launch);
    const char *entries = "";
    if (a)
        entries = arena_printf(r->arena, " %s = %u;", schedule_name(r->arena, a), a->size / 2);
    if (warps < ALL_REGISTERS_WARPS || (!a && 2 * warps <= r->target->max_warps))
        entries = arena_printf(r->arena, "%s warps = %d;", entries, (int)(2 * warps));
    if (*entries)
        diag_hint(r->diags, d, "%s leave a thread less to hold: `schedule {%s }`%s",
                  !a                            ? "more warps"
                  : warps < ALL_REGISTERS_WARPS ? "smaller tiles or more warps"
                                                : "smaller tiles",
                  entries, a ? ", or a smaller size in `tiles(...)`" : "");
}

// --- the reports ---

static void note_spill(FuseResult *r, Diags *out, const Kernel *k, const Op *launch,
                       const FuseFunctionUse *use, int spilled) {
    Span span = span_is_none(launch->span) ? k->span : launch->span;
    if (!kernel_is_most_special(k) || perf_is_told(r->diags, DIAG_SPILLS, k, span))
        return;
    Diag *d = diag_add(r->diags, DIAG_SPILLS, span,
                       "`%s` spills: %d bytes of each thread do not fit in its %d registers and go "
                       "through memory",
                       use->entry, spilled, use->registers);
    perf_place(r->diags, d, k, span, r->target->name);
    hint_schedule(r, d, launch);
    diag_copy(out, d);
}

static void remark_use(FuseResult *r, Diags *out, const Kernel *k, const Op *launch,
                       const FuseFunctionUse *use, int spilled) {
    const char *memory = spilled ? arena_printf(r->arena, " and %d bytes of memory", spilled) : "";
    if (r->options.explain)
        diag_add(out, DIAG_SCHEDULED, launch->span, "%s: each thread takes %d registers%s", k->name,
                 use->registers, memory);
}

bool fuse_result_note_use(FuseResult *r, int n, const FuseFunctionUse *uses) {
    Diags *out = diags_new(r->arena, r->sources, &r->levels);
    for (int i = 0; r->ok && r->options.emit == FUSE_EMIT_PTX && i < n; i++) {
        if (uses[i].registers <= 0)
            continue;
        Search s = {.entry = uses[i].entry};
        for (int j = 0; j < r->module->nkernel; j++) {
            const Kernel *k = r->module->kernel[j];
            ir_walk(k->body, find_launch, &s);
            if (!s.launch)
                continue;
            int spilled = spilled_bytes(r, &uses[i]);
            if (spilled > 0)
                note_spill(r, out, k, s.launch, &uses[i], spilled);
            remark_use(r, out, k, s.launch, &uses[i], spilled);
            break;
        }
    }
    diags_print(out, result_say, r);
    r->ok = r->ok && !diags_has_errors(out);
    return r->ok;
}
