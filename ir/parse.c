// The parser of textual IR: ops by form, regions, kernels, modules.
//
// Input: text. Output: a module in the given arena, or "line:col: message" of the first error. The
// parser checks what it needs to build the IR (names, forms, attributes of the row, number of
// types); ir_verify checks the rest.
#include "ir/parse_impl.h"

#include <locale.h>
#include <string.h>

enum { DEPTH_MAX = 200, LIST_MAX = 20000, ENTITY_MAX = 60000 };

// What is known about an op before it is built.
typedef struct OpDraft {
    const OpInfo *row;
    OpInit init;
    Tok at;
    bool generic; // the op's name was quoted
    StrVec res;   // names of results
    Str mem;      // name of the memory that it defines
    ValueVec in;
    AxisVec axes;
    MemRefVec mems;
    BinderVec binders;
    StrVec vars, carry, params; // names of scalar binder variables, carried values, arguments of
                                // a function
    TypeVec carry_types, param_types, types;
    ValueVec inits, captured;
    MemVec captured_mems;
    AttrVec attrs;
    Type mem_type;
} OpDraft;

static void add_in(Parser *p, OpDraft *d, Value *v) {
    if (d->in.len >= LIST_MAX)
        parse_fail(p, &p->tok, "too many operands");
    vec_push(p->scratch, &d->in, v);
}

// --- forms ---

static void read_refs(Parser *p, OpDraft *d) {
    do
        add_in(p, d, parse_ref(p));
    while (parse_take(p, ','));
}

static bool starts_ref(Tok t) {
    return t.kind == TOK_VAL || t.kind == TOK_INT || t.kind == TOK_FLOAT || t.kind == TOK_NAME;
}

static void read_bracket_axes(Parser *p, OpDraft *d) {
    parse_expect(p, '[');
    do
        vec_push(p->scratch, &d->axes, parse_axis(p));
    while (parse_take(p, ','));
    parse_expect(p, ']');
    if (d->axes.len > AXES_MAX)
        parse_fail(p, &d->at, "more than %d axes", AXES_MAX);
}

static void read_memref(Parser *p, OpDraft *d) {
    vec_push(p->scratch, &d->mems, parse_memref(p, &d->in));
}

static void read_else(Parser *p, OpDraft *d) {
    if (!parse_take_name(p, "else"))
        return;
    d->init.has_else = true;
    add_in(p, d, parse_ref(p));
}

static void read_take(Parser *p, OpDraft *d) {
    add_in(p, d, parse_ref(p));
    while (parse_take(p, ',')) {
        vec_push(p->scratch, &d->axes, parse_axis(p));
        parse_expect(p, '=');
        add_in(p, d, parse_ref(p));
    }
    read_else(p, d);
    if (d->axes.len > AXES_MAX)
        parse_fail(p, &d->at, "more than %d axes", AXES_MAX);
}

static void read_range(Parser *p, OpDraft *d) {
    parse_expect_name(p, "in");
    add_in(p, d, parse_ref(p));
    if (p->tok.kind == TOK_DOTS)
        parse_next(p);
    else
        parse_fail(p, &p->tok, "`..` is expected");
    add_in(p, d, parse_ref(p));
}

static void read_axis(Parser *p, OpDraft *d) {
    Kernel *k = p->kernel;
    Tok at = p->tok;
    Str name = parse_text(p, TOK_NAME, "an axis");
    if (!p->error && ir_find_axis(k, name))
        parse_fail(p, &at, "axis `%s` is declared twice", name);
    if (!p->error && k->naxis >= ENTITY_MAX)
        parse_fail(p, &at, "too many axes");
    Axis *of = NULL, *like = NULL;
    int64_t size = 0;
    if (d->generic)
        parse_expect(p, '>');
    for (bool more = true; more;) {
        if (parse_take_name(p, "of"))
            of = parse_axis(p);
        else if (parse_take_name(p, "like"))
            like = parse_axis(p);
        else if (parse_take_name(p, "by"))
            size = parse_int(p, 1, UINT32_MAX);
        else if (!d->generic && parse_is_name(p, "in") && d->in.len == 0)
            read_range(p, d);
        else
            more = false;
    }
    if (p->error)
        return;
    Axis *a = axis_new(k, name);
    if (a->name != name)
        parse_fail(p, &at, "`%s` cannot name an axis", name);
    a->of = of;
    a->like = like;
    a->size = (uint32_t)size;
    a->lo = d->in.len == 2 ? d->in.data[0] : NULL;
    a->hi = d->in.len == 2 ? d->in.data[1] : NULL;
    vec_push(p->scratch, &d->axes, a);
}

static void read_binder(Parser *p, OpDraft *d) {
    Binder b = {.first = (uint16_t)d->in.len};
    if (p->tok.kind == TOK_VAL) {
        vec_push(p->scratch, &d->vars, p->tok.text);
        parse_next(p);
    } else {
        b.axis = parse_axis(p);
    }
    read_range(p, d);
    if (parse_take_name(p, "step")) {
        b.has_step = true;
        add_in(p, d, parse_ref(p));
    }
    vec_push(p->scratch, &d->binders, b);
}

static void read_carry(Parser *p, OpDraft *d) {
    parse_expect(p, '(');
    do {
        vec_push(p->scratch, &d->carry, parse_text(p, TOK_VAL, "a value"));
        parse_expect(p, '=');
        vec_push(p->scratch, &d->inits, parse_ref(p));
        parse_expect(p, ':');
        vec_push(p->scratch, &d->carry_types, parse_type(p));
    } while (parse_take(p, ',') && d->carry.len < LIST_MAX);
    parse_expect(p, ')');
}

// args(%M, %N; @x, @y)
static void read_args(Parser *p, OpDraft *d) {
    parse_expect(p, '(');
    if (starts_ref(p->tok)) {
        do
            vec_push(p->scratch, &d->captured, parse_ref(p));
        while (parse_take(p, ',') && d->captured.len < LIST_MAX);
    }
    if (p->tok.kind == TOK_NL) { // `;`
        parse_next(p);
        do
            vec_push(p->scratch, &d->captured_mems, parse_mem(p));
        while (parse_take(p, ',') && d->captured_mems.len < LIST_MAX);
    }
    parse_expect(p, ')');
}

// (%a: f32, %b: f32)
static void read_params(Parser *p, StrVec *names, TypeVec *types) {
    parse_expect(p, '(');
    do {
        vec_push(p->scratch, names, parse_text(p, TOK_VAL, "a value"));
        parse_expect(p, ':');
        vec_push(p->scratch, types, parse_type(p));
    } while (parse_take(p, ',') && names->len < LIST_MAX);
    parse_expect(p, ')');
}

// v, ... [else id, ...] args(%a: f32, ..., %b: f32, ...)
static void read_fold(Parser *p, OpDraft *d) {
    read_bracket_axes(p, d);
    read_refs(p, d);
    if (parse_take_name(p, "else")) {
        d->init.has_else = true;
        read_refs(p, d);
    }
    parse_expect_name(p, "args");
    read_params(p, &d->params, &d->param_types);
    d->init.nregion = 1;
}

static bool one_scalar_binder(Parser *p, const OpDraft *d) {
    if (d->binders.len != 1 || d->vars.len != 1)
        parse_fail(p, &d->at, "a launch has one scalar binder");
    if (d->carry.len)
        parse_fail(p, &d->at, "a launch carries nothing");
    return !p->error;
}

static void read_binders(Parser *p, OpDraft *d) {
    bool word = parse_is_name(p, "carry") || parse_is_name(p, "args");
    bool binder = p->tok.kind == TOK_VAL || (p->tok.kind == TOK_NAME && !word) ||
                  (word && p->ahead.kind == TOK_NAME);
    if (binder) {
        do
            read_binder(p, d);
        while (parse_take(p, ',') && d->binders.len < LIST_MAX);
    }
    if (parse_take_name(p, "carry"))
        read_carry(p, d);
    if (parse_is_name(p, "args") && d->row == op_info(OP_LAUNCH)) {
        parse_next(p);
        read_args(p, d);
    }
    if (d->row == op_info(OP_LAUNCH) && !one_scalar_binder(p, d))
        return;
    for (uint32_t i = 0; i < d->inits.len; i++)
        add_in(p, d, d->inits.data[i]);
    d->init.ncarry = (uint16_t)d->inits.len;
    d->init.nregion = 1;
}

static void read_yield(Parser *p, OpDraft *d) {
    if (starts_ref(p->tok) && !(parse_is_name(p, "stop") && starts_ref(p->ahead)))
        read_refs(p, d);
    if (parse_take_name(p, "stop")) {
        d->init.has_stop = true;
        add_in(p, d, parse_ref(p));
    }
}

static void read_copy(Parser *p, OpDraft *d) {
    read_memref(p, d);
    parse_expect_name(p, "to");
    read_memref(p, d);
    if (parse_take_name(p, "signal"))
        read_memref(p, d);
}

// Operands in registers and buffers; @b(p) also names a slot whose `in` is its position.
static void read_mma(Parser *p, OpDraft *d) {
    read_bracket_axes(p, d);
    do {
        if (p->tok.kind == TOK_MEM)
            read_memref(p, d);
        else
            add_in(p, d, parse_ref(p));
    } while (parse_take(p, ','));
}

static void read_operands(Parser *p, OpDraft *d) {
    switch (d->row->form) {
    case FORM_PLAIN:
        if (starts_ref(p->tok))
            read_refs(p, d);
        break;
    case FORM_IF:
        add_in(p, d, parse_ref(p));
        d->init.nregion = 2;
        break;
    case FORM_ALONG:
    case FORM_DOT:
        read_bracket_axes(p, d);
        read_refs(p, d);
        break;
    case FORM_FOLD:
        read_fold(p, d);
        break;
    case FORM_AXISREF:
        vec_push(p->scratch, &d->axes, parse_axis(p));
        break;
    case FORM_INSIDE:
        if (p->tok.kind == TOK_MEM)
            read_memref(p, d);
        else
            vec_push(p->scratch, &d->axes, parse_axis(p));
        break;
    case FORM_TAKE:
        read_take(p, d);
        break;
    case FORM_LOAD:
        read_memref(p, d);
        read_else(p, d);
        break;
    case FORM_STORE:
    case FORM_PUT:
        read_memref(p, d);
        parse_expect(p, ',');
        read_refs(p, d);
        break;
    case FORM_AXIS:
        read_axis(p, d);
        break;
    case FORM_BINDERS:
        read_binders(p, d);
        break;
    case FORM_YIELD:
        read_yield(p, d);
        break;
    case FORM_TEMP:
    case FORM_BUF:
        break;
    case FORM_CHAN:
        do
            read_memref(p, d);
        while (parse_take(p, ',') && d->mems.len < LIST_MAX);
        break;
    case FORM_MEMREF:
    case FORM_CHANOP:
    case FORM_GET:
        read_memref(p, d);
        break;
    case FORM_COPY:
        read_copy(p, d);
        break;
    case FORM_MMA:
        read_mma(p, d);
        break;
    }
}

// --- the generic form ---

// What the rest of the parser, the printer and the verifier take for granted about an op of a form.
static const struct {
    uint8_t axes_min, axes_max, mems_min, mems_max, in_min;
    bool has_else, whole_mems; // memories without index and position
} shapes[] = {
    [FORM_ALONG] = {.axes_max = AXES_MAX},
    [FORM_FOLD] = {.axes_max = AXES_MAX, .has_else = true},
    [FORM_DOT] = {.axes_max = AXES_MAX},
    [FORM_AXISREF] = {.axes_min = 1, .axes_max = 1},
    [FORM_INSIDE] = {.axes_max = 1, .mems_max = 1},
    [FORM_MEMREF] = {.mems_min = 1, .mems_max = 1, .whole_mems = true},
    [FORM_TAKE] = {.axes_max = AXES_MAX, .in_min = 1, .has_else = true},
    [FORM_LOAD] = {.mems_min = 1, .mems_max = 1, .has_else = true},
    [FORM_STORE] = {.mems_min = 1, .mems_max = 1, .in_min = 1},
    [FORM_AXIS] = {.axes_min = 1, .axes_max = 1},
    [FORM_BINDERS] = {.mems_max = 255, .whole_mems = true},
    [FORM_IF] = {.in_min = 1},
    [FORM_CHAN] = {.mems_min = 1, .mems_max = 255, .whole_mems = true},
    [FORM_CHANOP] = {.mems_min = 1, .mems_max = 1},
    [FORM_GET] = {.mems_min = 1, .mems_max = 1},
    [FORM_PUT] = {.mems_min = 1, .mems_max = 1, .in_min = 1},
    [FORM_COPY] = {.mems_min = 2, .mems_max = 3},
    [FORM_MMA] = {.axes_max = AXES_MAX, .mems_max = 3},
};

static void check_shape(Parser *p, const OpDraft *d) {
    OpForm form = d->row->form;
    bool fits = d->axes.len >= shapes[form].axes_min && d->axes.len <= shapes[form].axes_max &&
                d->mems.len >= shapes[form].mems_min && d->mems.len <= shapes[form].mems_max &&
                d->in.len >= shapes[form].in_min;
    if (d->mems.len && d->row->form == FORM_BINDERS && d->row != op_info(OP_LAUNCH))
        fits = false;
    for (uint32_t i = 0; i < d->mems.len && shapes[form].whole_mems; i++)
        fits &= d->mems.data[i].nidx == 0 && d->mems.data[i].pos < 0;
    fits &= !d->init.has_else || shapes[form].has_else;
    fits &= !d->init.has_stop || form == FORM_YIELD;
    if (form == FORM_TAKE)
        fits &= d->in.len == 1 + d->axes.len + d->init.has_else;
    uint32_t bound = 0;
    for (uint32_t i = 0; i < d->binders.len; i++)
        bound += d->binders.data[i].has_step ? 3 : 2;
    fits &= bound + d->carry.len <= d->in.len;
    if (!fits)
        parse_fail(p, &d->at, "the operands are not those of `%s`", d->row->text);
}

static void read_generic_ref(Parser *p, OpDraft *d) {
    if (p->tok.kind == TOK_MEM) {
        read_memref(p, d);
        return;
    }
    bool word = starts_ref(p->ahead);
    d->init.has_else |= word && parse_take_name(p, "else");
    d->init.has_stop |= word && parse_take_name(p, "stop");
    add_in(p, d, parse_ref(p));
}

static void read_generic_binder(Parser *p, OpDraft *d, uint16_t *first) {
    Binder b = {.first = *first};
    if (p->tok.kind == TOK_VAL) {
        vec_push(p->scratch, &d->vars, p->tok.text);
        parse_next(p);
    } else {
        b.axis = parse_axis(p);
    }
    b.has_step = parse_take_name(p, "step");
    *first = (uint16_t)(*first + (b.has_step ? 3 : 2));
    vec_push(p->scratch, &d->binders, b);
}

static void read_generic_axes(Parser *p, OpDraft *d) {
    if (!parse_take(p, '<'))
        return;
    if (d->row->form == FORM_AXIS) {
        read_axis(p, d);
        return;
    }
    uint16_t first = 0;
    do {
        if (d->row->form == FORM_BINDERS)
            read_generic_binder(p, d, &first);
        else
            vec_push(p->scratch, &d->axes, parse_axis(p));
    } while (parse_take(p, ',') && d->binders.len < LIST_MAX && d->axes.len <= AXES_MAX);
    parse_expect(p, '>');
}

// args(%a: f32, ...): arguments of the region, which a loop carries or a function takes.
static void read_generic_args(Parser *p, OpDraft *d) {
    bool function = d->row->form == FORM_FOLD;
    if ((function || d->row->form == FORM_BINDERS) && parse_take_name(p, "args"))
        read_params(p, function ? &d->params : &d->carry,
                    function ? &d->param_types : &d->carry_types);
    d->init.ncarry = (uint16_t)d->carry.len;
}

static void read_generic(Parser *p, OpDraft *d) {
    parse_expect(p, '(');
    if (!parse_is(p, ')')) {
        do
            read_generic_ref(p, d);
        while (parse_take(p, ',') && d->in.len < LIST_MAX);
    }
    parse_expect(p, ')');
    read_generic_axes(p, d);
    read_generic_args(p, d);
    OpForm form = d->row->form;
    d->init.nregion = form == FORM_IF ? 2 : form == FORM_BINDERS || form == FORM_FOLD ? 1 : 0;
    check_shape(p, d);
    if (d->row == op_info(OP_LAUNCH))
        one_scalar_binder(p, d);
}

// --- op names, results, types ---

static bool find_row(const char *name, size_t len, OpKind *kind) {
    for (int i = 0; i < OP_COUNT; i++) {
        const char *text = op_info((OpKind)i)->text;
        if (strlen(text) == len && memcmp(text, name, len) == 0) {
            *kind = (OpKind)i;
            return true;
        }
    }
    return false;
}

static bool find_op(const char *name, bool quoted, OpKind *kind, uint8_t *sub) {
    *sub = 0;
    if (find_row(name, strlen(name), kind))
        return quoted || !op_info(*kind)->kinds;
    const char *dot = strrchr(name, '.');
    if (!dot || !find_row(name, (size_t)(dot - name), kind))
        return false;
    const char *const *kinds = op_info(*kind)->kinds;
    for (int i = 0; kinds && kinds[i]; i++) {
        if (strcmp(kinds[i], dot + 1) == 0) {
            *sub = (uint8_t)i;
            return true;
        }
    }
    return false;
}

static void read_results(Parser *p, OpDraft *d) {
    if (p->tok.kind == TOK_MEM) {
        d->mem = p->tok.text;
        if (ir_find_mem(p->kernel, d->mem))
            parse_fail(p, &p->tok, "`@%s` is defined twice", d->mem);
        parse_next(p);
        parse_expect(p, '=');
        return;
    }
    if (p->tok.kind != TOK_VAL)
        return;
    do
        vec_push(p->scratch, &d->res, parse_text(p, TOK_VAL, "a value"));
    while (parse_take(p, ',') && d->res.len < LIST_MAX);
    parse_expect(p, '=');
}

// `: f32[%M, %N]` of a temp, `: bf16[m, k]#a` of a buffer.
static void read_mem_type(Parser *p, OpDraft *d) {
    parse_expect(p, ':');
    if (d->row->form == FORM_BUF) {
        d->mem_type = parse_type(p);
        return;
    }
    d->mem_type.dtype = parse_dtype(p);
    if (!parse_take(p, '['))
        return;
    do
        add_in(p, d, parse_ref(p));
    while (parse_take(p, ','));
    parse_expect(p, ']');
    if (d->in.len > RANK_MAX)
        parse_fail(p, &d->at, "more than %d dims", RANK_MAX);
}

static void read_types(Parser *p, OpDraft *d) {
    if (parse_take(p, ':')) {
        do
            vec_push(p->scratch, &d->types, parse_type(p));
        while (parse_take(p, ',') && d->types.len < LIST_MAX);
    }
    if (d->types.len != d->res.len)
        parse_fail(p, &d->at, "%u results and %u types", d->res.len, d->types.len);
}

// --- building ---

static void apply_attrs(Parser *p, const OpDraft *d, Op *op) {
    for (uint32_t i = 0; i < d->attrs.len; i++) {
        const Attr *a = &d->attrs.data[i];
        switch (attr_type(a->id)) {
        case ATTR_TYPE_INT:
        case ATTR_TYPE_BOOL:
            op_set_int(p->kernel, op, a->id, a->i);
            break;
        case ATTR_TYPE_NAME:
        case ATTR_TYPE_STR:
            op_set_str(p->kernel, op, a->id, a->s);
            break;
        case ATTR_TYPE_INTS:
            op_set_ints(p->kernel, op, a->id, a->n, a->ints);
            break;
        case ATTR_TYPE_NAMES:
            op_set_names(p->kernel, op, a->id, a->n, a->names);
            break;
        case ATTR_TYPE_AXES:
            op_set_axes(p->kernel, op, a->id, a->n, a->axes);
            break;
        }
    }
}

static void define_mem(Parser *p, const OpDraft *d, Op *op) {
    static const MemKind kinds[] = {
        [FORM_TEMP] = MEM_TEMP, [FORM_BUF] = MEM_BUF, [FORM_CHAN] = MEM_CHAN};
    Kernel *k = p->kernel;
    if (k->nmem >= ENTITY_MAX) {
        parse_fail(p, &d->at, "too many memories");
        return;
    }
    Mem *m = mem_new(k, kinds[d->row->form], d->mem, d->mem_type.dtype);
    m->def = op;
    m->span = op->span;
    m->mode = MODE_INOUT;
    op->def_mem = m;
    if (m->kind == MEM_TEMP) {
        m->space = SPACE_GLOBAL;
        m->rank = (uint8_t)op->nin;
        for (int i = 0; i < op->nin; i++)
            m->dim[i] = op->in[i];
        m->inner = (int8_t)(m->rank - 1);
        return;
    }
    bool local = m->kind == MEM_BUF && op->sub == BUF_LOCAL;
    m->space = local ? SPACE_LOCAL : SPACE_SHARED;
    m->axes = d->mem_type.axes;
    m->layout = d->mem_type.layout;
    m->nbufs = op->nmem;
    m->bufs = ARENA_ARRAY(kernel_arena(k), Mem *, op->nmem);
    for (int i = 0; i < op->nmem; i++)
        m->bufs[i] = op->mem[i].mem;
}

// Names are those of the text, or they were taken.
static void check_names(Parser *p, const OpDraft *d, const Op *op) {
    for (int i = 0; i < op->nres; i++)
        if (op->res[i]->name != d->res.data[i])
            parse_fail(p, &d->at, "`%%%s` is defined twice", d->res.data[i]);
    const Region *r = op->nregion ? op->region[0] : NULL;
    for (uint32_t i = 0; r && i < d->vars.len; i++)
        if (r->arg[i]->name != d->vars.data[i])
            parse_fail(p, &d->at, "`%%%s` is defined twice", d->vars.data[i]);
    for (uint32_t i = 0; i < d->carry.len; i++)
        if (op_carry_arg(op, (int)i)->name != d->carry.data[i])
            parse_fail(p, &d->at, "`%%%s` is defined twice", d->carry.data[i]);
    for (uint32_t i = 0; i < d->params.len; i++)
        if (r->arg[i]->name != d->params.data[i])
            parse_fail(p, &d->at, "`%%%s` is defined twice", d->params.data[i]);
}

static Op *build(Parser *p, Builder *b, OpDraft *d) {
    if (d->res.len && d->row->rule == RULE_NONE)
        parse_fail(p, &d->at, "`%s` has no result", d->row->text);
    if (p->error)
        return NULL;
    OpInit *init = &d->init;
    if (init->ncarry && d->types.len != init->ncarry) {
        parse_fail(p, &d->at, "%u carried values and %u results", init->ncarry, d->types.len);
        return NULL;
    }
    if (d->params.len && d->params.len != 2 * d->types.len) {
        parse_fail(p, &d->at, "%u arguments and %u results", d->params.len, d->types.len);
        return NULL;
    }
    StrVec hints = {0};
    for (uint32_t i = 0; i < d->vars.len; i++)
        vec_push(p->scratch, &hints, d->vars.data[i]);
    for (uint32_t i = 0; i < d->carry.len; i++)
        vec_push(p->scratch, &hints, d->carry.data[i]);
    for (uint32_t i = 0; i < d->params.len; i++)
        vec_push(p->scratch, &hints, d->params.data[i]);
    init->nin = (uint16_t)d->in.len;
    init->in = d->in.data;
    init->nres = (uint16_t)d->res.len;
    init->types = d->types.data;
    init->names = d->res.data;
    init->naxes = (uint16_t)d->axes.len;
    init->axes = d->axes.data;
    init->nmem = (uint16_t)d->mems.len;
    init->mem = d->mems.data;
    init->nbinders = (uint16_t)d->binders.len;
    init->binder = d->binders.data;
    init->arg_names = hints.data;
    Op *op = ir_build(b, init);
    for (int i = 0; i < op->ncarry; i++)
        op_carry_arg(op, i)->type = d->carry_types.data[i];
    for (uint32_t i = 0; i < d->params.len; i++)
        op->region[0]->arg[i]->type = d->param_types.data[i];
    check_names(p, d, op);
    if (op->kind == OP_LAUNCH && !d->generic)
        ir_launch_args(p->kernel, op, (int)d->captured_mems.len, d->captured_mems.data,
                       (int)d->captured.len, d->captured.data);
    apply_attrs(p, d, op);
    if (d->mem)
        define_mem(p, d, op);
    return op;
}

// --- regions ---

static void parse_op(Parser *p, Builder *b);

static bool starts_region(const Parser *p) {
    return parse_is(p, '{') && p->ahead.kind == TOK_NL;
}

static void parse_region(Parser *p, Region *r) {
    if (++p->depth > DEPTH_MAX)
        parse_fail(p, &p->tok, "regions nest too deep");
    parse_expect(p, '{');
    if (!parse_newlines(p))
        parse_fail(p, &p->tok, "a newline is expected");
    Builder b = ir_builder_at_end(p->kernel, r);
    while (!p->error && !parse_is(p, '}')) {
        if (p->tok.kind == TOK_EOF)
            parse_fail(p, &p->tok, "`}` is expected");
        else
            parse_op(p, &b);
    }
    parse_expect(p, '}');
    p->depth--;
}

static Span parse_span(Parser *p) {
    Span s = {0};
    if (!parse_take(p, '!'))
        return s;
    s.begin = (uint32_t)parse_int(p, 0, UINT32_MAX);
    parse_expect(p, '+');
    s.end = s.begin + (uint32_t)parse_int(p, 0, UINT32_MAX - s.begin);
    return s;
}

static void parse_op(Parser *p, Builder *b) {
    OpDraft d = {.at = p->tok};
    uint32_t start = p->tok.at;
    read_results(p, &d);
    d.at = p->tok;
    bool quoted = p->tok.kind == TOK_STR;
    Str name = parse_text(p, quoted ? TOK_STR : TOK_NAME, "an op");
    if (p->error)
        return;
    if (!find_op(name, quoted, &d.init.kind, &d.init.sub)) {
        parse_fail(p, &d.at, "no op has the name `%s`", name);
        return;
    }
    d.row = op_info(d.init.kind);
    bool defines = d.row->form == FORM_TEMP || d.row->form == FORM_BUF || d.row->form == FORM_CHAN;
    if (defines != (d.mem != NULL)) {
        parse_fail(p, &d.at, "`%s` %s a memory", d.row->text,
                   defines ? "defines" : "does not define");
        return;
    }
    d.generic = quoted;
    if (quoted)
        read_generic(p, &d);
    else
        read_operands(p, &d);
    parse_attrs(p, d.row, &d.init.sub, &d.attrs);
    if (d.row->form == FORM_TEMP || d.row->form == FORM_BUF)
        read_mem_type(p, &d);
    else
        read_types(p, &d);
    Op *op = build(p, b, &d);
    if (!op)
        return;
    op->text_at = start;
    for (int i = 0; i < op->nregion; i++)
        if (starts_region(p) || (i == 0 && op->kind != OP_LAUNCH))
            parse_region(p, op->region[i]);
    op->span = parse_span(p);
    if (op->def_mem)
        op->def_mem->span = op->span;
    if (!parse_newlines(p) && !parse_is(p, '}'))
        parse_fail(p, &p->tok, "the end of the line is expected");
}

// --- kernels ---

static void parse_kernel(Parser *p, StrVec *variant_of) {
    Tok at = p->tok;
    Str name = parse_text(p, p->tok.kind == TOK_STR ? TOK_STR : TOK_NAME, "a kernel");
    if (p->error)
        return;
    if (ir_find_kernel(p->module, name))
        parse_fail(p, &at, "kernel `%s` is defined twice", name);
    if (p->module->nkernel >= 10000)
        parse_fail(p, &at, "too many kernels");
    if (p->error)
        return;
    p->kernel = ir_kernel_new(p->module, name, (Span){0});
    p->kernel->text_at = at.at;
    parse_params(p);
    Str of = NULL;
    if (parse_take_name(p, "of"))
        of = parse_text(p, p->tok.kind == TOK_STR ? TOK_STR : TOK_NAME, "a kernel");
    vec_push(p->scratch, variant_of, of);
    p->kernel->span = parse_span(p);
    parse_region(p, p->kernel->body);
    if (!parse_newlines(p) && p->tok.kind != TOK_EOF)
        parse_fail(p, &p->tok, "the end of the line is expected");
}

static void parse_layout_line(Parser *p) {
    Tok at = p->tok;
    LayoutDecl d = {.name = parse_text(p, TOK_LAY, "a layout")};
    for (uint32_t i = 0; i < p->layouts.len; i++)
        if (p->layouts.data[i].name == d.name)
            parse_fail(p, &at, "layout #%s is declared twice", d.name);
    parse_expect(p, '=');
    parse_rest_of_line(p, &d.at, &d.len);
    vec_push(p->scratch, &p->layouts, d);
    if (!parse_newlines(p) && p->tok.kind != TOK_EOF)
        parse_fail(p, &p->tok, "the end of the line is expected");
}

static void parse_head(Parser *p) {
    parse_newlines(p);
    parse_expect_name(p, "tir");
    Tok at = p->tok;
    Str stage = parse_text(p, TOK_NAME, "a stage");
    int i = 0;
    while (i < STAGE_COUNT && strcmp(stage_name((Stage)i), stage) != 0)
        i++;
    if (i == STAGE_COUNT)
        parse_fail(p, &at, "`%s` is not a stage", stage);
    else
        p->module->stage = (Stage)i;
    p->module->target = parse_text(p, TOK_NAME, "a target");
    if (!parse_newlines(p) && p->tok.kind != TOK_EOF)
        parse_fail(p, &p->tok, "the end of the line is expected");
}

static void parse_module(Parser *p) {
    StrVec variant_of = {0};
    parse_start(p);
    parse_head(p);
    while (p->tok.kind != TOK_EOF) {
        if (parse_take_name(p, "layout"))
            parse_layout_line(p);
        else if (parse_take_name(p, "kernel"))
            parse_kernel(p, &variant_of);
        else
            parse_fail(p, &p->tok, "`kernel` or `layout` is expected");
    }
    for (uint32_t i = 0; i < variant_of.len && !p->error; i++) {
        if (!variant_of.data[i])
            continue;
        p->module->kernel[i]->variant_of = ir_find_kernel(p->module, variant_of.data[i]);
        if (!p->module->kernel[i]->variant_of)
            parse_fail(p, &p->tok, "no kernel has the name `%s`", variant_of.data[i]);
    }
}

Module *ir_parse(Arena *arena, Interner *interner, const char *text, size_t len,
                 const char **error) {
    if (len > UINT32_MAX / 2) {
        *error = "1:1: the text is too long";
        return NULL;
    }
    locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    locale_t old = uselocale(c);
    Arena *scratch = arena_new("parse");
    Parser p = {.arena = arena, .scratch = scratch, .text = text, .len = (uint32_t)len};
    p.module = ir_module_new(arena, interner, "none");
    parse_module(&p);
    arena_free(scratch);
    uselocale(old);
    freelocale(c);
    *error = p.error;
    return p.error ? NULL : p.module;
}
