// The IR op by op: for each row of ops.def, at each stage that it admits, with each of its kinds
// and attributes, an example in tests/corpus/ir that verifies, prints as it is written, reads back
// from the short and the generic form, clones, and runs on the evaluator with the results that
// stand there. A row, kind or attribute without an example fails.
#include "ir_corpus.h"
#include "ir_equal.h"

#include "ir/eval.h"

#include <math.h>

// --- what the corpus has ---

static struct {
    unsigned stages, host, evaluated; // bit per stage
    unsigned kinds;                   // bit per kind
    bool attr[ATTR_COUNT];
} seen[OP_COUNT];

typedef struct Seeing {
    Stage stage;
    bool evaluated;
} Seeing;

static void see_region(const Seeing *s, const Region *r, bool inside) {
    for (const Op *op = r->first; op; op = op->next) {
        unsigned stage = 1u << s->stage;
        seen[op->kind].stages |= stage;
        seen[op->kind].kinds |= 1u << op->sub;
        if (!inside)
            seen[op->kind].host |= stage;
        if (s->evaluated)
            seen[op->kind].evaluated |= stage;
        for (int i = 0; i < op->nattr; i++)
            seen[op->kind].attr[op->attr[i].id] = true;
        bool grid = op->kind == OP_PARALLEL || op->kind == OP_LAUNCH;
        for (int i = 0; i < op->nregion; i++)
            see_region(s, op->region[i], inside || grid);
    }
}

// --- running an example ---

// Dims of the examples: the first is 4, the others 2.
static int64_t extent_of(const Kernel *k, const Value *dim) {
    if (value_is_const(dim))
        return dim->u.i;
    return k->param[0].value == dim ? 4 : 2;
}

// Element i of the parameter at that place.
static Scalar element(DType t, int place, int64_t i) {
    int64_t x = (i * 3 + place * place) % 7 - 2;
    if (dtype_is_float(t))
        return scalar_float(t, (double)x + (i % 2 ? 0.5 : 0.0));
    return scalar_int(t, dtype_is_signed(t) || t == DT_INDEX ? x : x + 2);
}

static EvalTensor *tensor_of(Arena *arena, const Kernel *k, int place) {
    const Mem *m = k->param[place].mem;
    int64_t dims[RANK_MAX], count = 1;
    for (int d = 0; d < m->rank; d++)
        count *= dims[d] = extent_of(k, m->dim[d]);
    void *data = arena_alloc(arena, (size_t)dtype_bytes(m->dtype, (uint64_t)count) + 1);
    EvalTensor *t = ARENA_NEW(arena, EvalTensor);
    *t = eval_tensor(data, m->dtype, m->rank, dims);
    for (int64_t i = 0; i < count; i++)
        scalar_store(data, i,
                     m->mode == MODE_IN ? element(m->dtype, place, i) : scalar_int(m->dtype, 0));
    return t;
}

static void put_results(FILE *out, const Mem *m, const EvalTensor *t) {
    int64_t count = 1;
    for (int d = 0; d < t->rank; d++)
        count *= t->dims[d];
    int64_t row = t->rank > 1 ? count / t->dims[0] : count;
    for (int64_t i = 0; i < count; i++) {
        if (i % row == 0 && t->rank > 1)
            fprintf(out, "%s@%s[%lld] =", i ? "\n" : "", m->name, (long long)(i / row));
        else if (i == 0)
            fprintf(out, "@%s =", m->name);
        Scalar x = scalar_load(t->dtype, t->data, i);
        if (dtype_is_float(t->dtype) && isnan(x.u.f))
            fprintf(out, " nan");
        else if (dtype_is_float(t->dtype))
            fprintf(out, " %.9g", x.u.f);
        else
            fprintf(out, " %lld", (long long)x.u.i);
    }
    fprintf(out, "\n");
}

// The outputs, or the evaluator's message.
static const char *evaluate(Arena *arena, const Module *m, bool *ok) {
    const Kernel *k = m->kernel[0];
    EvalArg *args = ARENA_ARRAY(arena, EvalArg, k->nparam);
    EvalDim *dims = ARENA_ARRAY(arena, EvalDim, k->nparam);
    EvalOptions options = {.dims = dims};
    int nargs = 0;
    for (int i = 0; i < k->nparam; i++) {
        const Param *p = &k->param[i];
        if (p->kind == PARAM_DIM)
            dims[options.ndims++] = (EvalDim){p->name, extent_of(k, p->value)};
        else if (p->kind == PARAM_TENSOR)
            args[nargs++].tensor = p->mem->opt ? NULL : tensor_of(arena, k, i);
        else
            args[nargs++].scalar = dtype_is_float(p->value->type.dtype)
                                       ? scalar_float(DT_F64, i ? -2.5 : 1.75)
                                       : scalar_int(DT_I64, i ? -5 : 13);
    }
    const char *error = NULL;
    *ok = eval_kernel(arena, m, k, nargs, args, &options, &error);
    if (!*ok)
        return arena_printf(arena, "error: %s\n", error);
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    nargs = 0;
    for (int i = 0; i < k->nparam; i++) {
        const EvalTensor *t = k->param[i].kind == PARAM_DIM ? NULL : args[nargs++].tensor;
        if (t && k->param[i].mem->mode != MODE_IN)
            put_results(out, k->param[i].mem, t);
    }
    fclose(out);
    const char *results = arena_strdup(arena, text);
    free(text);
    return results;
}

// --- one example ---

static Module *read_back(Arena *arena, const char *title, const char *text) {
    const char *error = NULL;
    Module *m = ir_parse(arena, interner_new(arena), text, strlen(text), &error);
    cr_assert(m, "%s: %s in\n%s", title, error, text);
    cr_assert(m->nkernel == 1, "%s: one kernel", title);
    return m;
}

static void expect_equal(Arena *arena, const char *title, const char *form, const Module *a,
                         const Module *b) {
    const Op *where = NULL;
    cr_expect(equal_kernel(arena, a->kernel[0], b->kernel[0], &where), "%s: %s differs at `%s`",
              title, form, where ? op_text(arena, a->kernel[0], where) : "its parameters");
}

static void check_forms(Arena *arena, const char *title, const Module *m, const char *text) {
    expect_equal(arena, title, "the short form", m, read_back(arena, title, text));
    IrText generic = ir_print(arena, m, (IrPrintOptions){.generic = true});
    Module *again = read_back(arena, title, generic.data);
    expect_equal(arena, title, "the generic form", m, again);
    cr_expect_str_eq(ir_print(arena, again, (IrPrintOptions){0}).data, text, "%s: generic form",
                     title);
    cr_expect_str_eq(ir_print(arena, again, (IrPrintOptions){.generic = true}).data, generic.data,
                     "%s: generic form", title);
    Module *to = ir_module_new(arena, interner_new(arena), m->target);
    to->stage = m->stage;
    layout_names_copy(to, m);
    ir_clone_kernel(to, m->kernel[0], m->kernel[0]->name);
    expect_equal(arena, title, "a clone", m, to);
}

// Texts with one byte changed are read or refused, verified or refused, never more than that.
static void check_damaged(const char *text, size_t first) {
    static const char bytes[] = "{}[]()<>%@#:=,.;\n\"-0m 1";
    size_t len = strlen(text);
    char *copy = strdup(text);
    for (size_t i = first; i < len; i += 61) {
        Arena *arena = arena_new("damaged");
        copy[i] = bytes[(i / 61 + first) % (sizeof bytes - 1)];
        const char *error = NULL;
        Module *m = ir_parse(arena, interner_new(arena), copy, len, &error);
        cr_expect(m || error);
        if (m) {
            ir_verify(arena, m, &error);
            ir_print(arena, m, (IrPrintOptions){0});
            ir_print(arena, m, (IrPrintOptions){.generic = true});
        }
        copy[i] = text[i];
        arena_free(arena);
    }
    free(copy);
}

// Results by title: the same example gives the same at every stage.
static struct { char title[96], result[4096]; } known[128];

static void expect_known(const char *title, const char *result) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!*known[i].title) {
            snprintf(known[i].title, sizeof known[i].title, "%s", title);
            snprintf(known[i].result, sizeof known[i].result, "%s", result);
            return;
        }
        if (strcmp(known[i].title, title) == 0) {
            cr_expect_str_eq(result, known[i].result, "%s: another stage gives another result",
                             title);
            return;
        }
    }
    cr_assert(false, "too many examples");
}

static CorpusGot example(Arena *arena, const char *title, const char *text) {
    Module *m = read_back(arena, title, text);
    const char *error = NULL;
    bool right = ir_verify(arena, m, &error);
    cr_expect(right, "%s: %s", title, right ? "" : error);
    const char *printed = ir_print(arena, m, (IrPrintOptions){0}).data;
    if (!corpus_updates())
        cr_expect_str_eq(printed, text, "%s", title);
    check_forms(arena, title, m, printed);
    check_damaged(printed, strlen(title) % 61);
    check_damaged(ir_print(arena, m, (IrPrintOptions){.generic = true}).data, strlen(title) % 59);
    Seeing s = {.stage = m->stage};
    const char *result = right ? evaluate(arena, m, &s.evaluated) : "";
    if (!corpus_updates())
        expect_known(title, result);
    see_region(&s, m->kernel[0]->body, false);
    return (CorpusGot){printed, result};
}

// --- nothing is left out ---

// Rows that the evaluator refuses, and why.
static bool not_evaluated(OpKind kind) {
    return kind == OP_ASM; // PTX, which only a GPU runs
}

static void expect_row(OpKind kind) {
    const OpInfo *row = op_info(kind);
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        unsigned bit = 1u << stage;
        const char *name = stage_name((Stage)stage);
        if (!(row->stages & bit))
            continue;
        cr_expect(seen[kind].stages & bit, "no example of `%s` at stage %s", row->text, name);
        if (row->host)
            cr_expect(seen[kind].host & bit, "no example of `%s` in the host region at stage %s",
                      row->text, name);
        if (!not_evaluated(kind))
            cr_expect(seen[kind].evaluated & bit, "no example of `%s` that runs at stage %s",
                      row->text, name);
    }
    for (int i = 0; row->kinds && row->kinds[i]; i++)
        cr_expect(seen[kind].kinds >> i & 1, "no example of `%s.%s`", row->text, row->kinds[i]);
    for (int i = 0; i < row->nattrs; i++)
        cr_expect(seen[kind].attr[row->attrs[i]], "no example of `%s` with `%s`", row->text,
                  attr_name(row->attrs[i]));
}

Test(ir_ops, examples) {
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        char path[64];
        snprintf(path, sizeof path, "tests/corpus/ir/%s.txt", stage_name((Stage)stage));
        cr_expect(corpus_run(path, example) > 10);
    }
    for (int i = 0; i < OP_COUNT; i++)
        expect_row((OpKind)i);
}
