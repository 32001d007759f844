// `fusec run --check=tiles`; see run_tiles.h.
//
// A run that differs is made smaller: each axis goes back to whole, and the iterations to their
// order, while the difference stays. What is left is what makes it.
#include "tools/run_tiles.h"

#include <string.h>

#include "ir/random.h"
#include "tools/compare.h"
#include "tools/run_report.h"

enum { MOST_AXES = 32, MIXED_RUNS = 6 };
static const int64_t whole = 0; // windows of that size are the whole range

typedef struct Tiles {
    Arena *arena;
    const TilesRequest *request;
    const Module *nests;
    const RunBinding *inputs, *want;
    int count;
    const char *axis[MOST_AXES];
    int runs;
    ToolError *error;
} Tiles;

typedef struct Trial {
    int64_t size[MOST_AXES];
    uint64_t seed; // 0: iterations in order
} Trial;

// --- the axes ---

static void add_axis(Tiles *t, const Axis *axis) {
    if (!axis || axis->size || t->count == MOST_AXES)
        return;
    for (int i = 0; i < t->count; i++)
        if (strcmp(t->axis[i], axis->name) == 0)
            return;
    t->axis[t->count++] = axis->name;
}

static void find_axes(Tiles *t, const Region *region) {
    for (const Op *op = region->first; op; op = op->next) {
        for (int i = 0; i < op->nbinders; i++)
            add_axis(t, op->binder[i].axis);
        for (int i = 0; i < op->nregion; i++)
            find_axes(t, op->region[i]);
    }
}

// --- one run ---

static bool evaluate(Tiles *t, const RunBinding *binding, const Trial *trial) {
    EvalWindow windows[MOST_AXES];
    for (int i = 0; i < t->count; i++)
        windows[i] = (EvalWindow){t->axis[i], trial->size[i]};
    Arena *scratch = arena_new("tiles");
    bool ok = run_eval_kernel(
        scratch, t->nests, binding,
        (EvalOptions){.seed = trial->seed, .nwindows = t->count, .windows = windows}, t->error);
    arena_free(scratch);
    t->runs++;
    return ok;
}

static const char *describe(const Tiles *t, const Trial *trial) {
    const char *text = "";
    for (int i = 0; i < t->count; i++)
        if (trial->size[i] != whole)
            text = arena_printf(t->arena, "%s%s%s = %lld", text, *text ? ", " : "", t->axis[i],
                                (long long)trial->size[i]);
    if (!trial->seed)
        return arena_printf(t->arena, "the tile size %s", text);
    const char *order = arena_printf(t->arena, "the order of iterations (seed %llu)",
                                     (unsigned long long)trial->seed);
    return *text ? arena_printf(t->arena, "%s with the tile size %s", order, text) : order;
}

// Where the outputs differ by more than is allowed; NULL where they do not.
static const char *compare(const Tiles *t, const RunBinding *got, const Trial *trial) {
    for (int i = 0; i < got->count; i++) {
        const RunArgument *ours = &got->arguments[i], *theirs = &t->want->arguments[i];
        if (!ours->is_output || !ours->is_given)
            continue;
        CompareResult r = tensor_compare(&ours->tensor, &theirs->tensor);
        double allowed = t->request->tolerance;
        if (allowed < 0)
            allowed = run_usual_tolerance(ours->tensor.dtype);
        if (compare_error(&r) <= allowed)
            continue;
        char place[96];
        tensor_index_text(&theirs->tensor, r.worst, place, sizeof place);
        return arena_printf(t->arena,
                            "%s changes %lld of %lld elements of '%s', most at %s: %.7g, with "
                            "whole axes %.7g",
                            describe(t, trial), (long long)r.differing, (long long)r.elements,
                            ours->param->name, place,
                            scalar_to_f64(tensor_get(&ours->tensor, r.worst)),
                            scalar_to_f64(tensor_get(&theirs->tensor, r.worst)));
    }
    return NULL;
}

// False where the run fails.
static bool try_sizes(Tiles *t, const Trial *trial, const char **difference) {
    RunBinding copy = {0};
    *difference = NULL;
    bool ok = run_binding_copy(t->arena, t->inputs, &copy, t->error) && evaluate(t, &copy, trial);
    if (ok)
        *difference = compare(t, &copy, trial);
    run_binding_free(&copy);
    return ok;
}

// --- all runs ---

static bool shrink(Tiles *t, Trial trial, const char **difference) {
    for (int i = 0; i <= t->count; i++) {
        Trial smaller = trial;
        const char *still;
        if (i < t->count)
            smaller.size[i] = whole;
        else
            smaller.seed = 0;
        if (memcmp(&smaller, &trial, sizeof trial) == 0)
            continue;
        if (!try_sizes(t, &smaller, &still))
            return false;
        if (still) {
            *difference = still;
            trial = smaller;
        }
    }
    return true;
}

// Trial number i: another order only; each axis in two sizes; all axes in two; mixed.
static bool make_trial(const Tiles *t, int i, Trial *out) {
    static const int64_t small[] = {1, 3}, mixed[] = {1, 2, 3, 5, 7, 16, INT64_C(1) << 30, whole};
    *out = (Trial){.seed = t->request->seed + (uint64_t)i + 1};
    if (i == 0)
        return true;
    if (--i < 2 * t->count) {
        out->size[i / 2] = small[i % 2];
        return true;
    }
    i -= 2 * t->count;
    if (t->count == 0 || i >= 2 + MIXED_RUNS)
        return t->count == 0 && i < MIXED_RUNS;
    for (int a = 0; a < t->count; a++) {
        uint64_t at = random_below(out->seed, (uint64_t)a, sizeof mixed / sizeof *mixed);
        out->size[a] = i < 2 ? small[i] : mixed[at];
    }
    return true;
}

static bool try_all(Tiles *t, const char **difference) {
    Trial trial;
    *difference = NULL;
    for (int i = 0; !*difference && make_trial(t, i, &trial); i++)
        if (!try_sizes(t, &trial, difference))
            return false;
    return !*difference || shrink(t, trial, difference);
}

bool run_tiles(Arena *arena, const TilesRequest *request, RunBinding *binding, TilesResult *out,
               ToolError *error) {
    Tiles t = {.arena = arena, .request = request, .want = binding, .error = error};
    RunBinding inputs = {0};
    *out = (TilesResult){.axes = ""};
    t.nests = run_eval_nests(arena, request->options, request->source, request->length, error);
    const Kernel *kernel = t.nests ? run_eval_find(t.nests, binding, error) : NULL;
    if (!kernel)
        return false;
    find_axes(&t, kernel->body);
    t.inputs = &inputs;
    bool ok = run_binding_copy(arena, binding, &inputs, error) &&
              evaluate(&t, binding, &(Trial){0}) && try_all(&t, &out->difference);
    run_binding_free(&inputs);
    out->runs = t.runs - 1; // without the reference
    for (int i = 0; i < t.count; i++)
        out->axes = arena_printf(arena, "%s%s%s", out->axes, i ? ", " : "", t.axis[i]);
    return ok;
}
