// The printer: one op a line, driven by the op's form; see ir.h for the forms.
//
// Input: a module. Output: text that ir_parse reads back to the same module. The generic form needs
// no op's form: `res = "op"(operands) <axes> {every attribute} : types`. Invariants: attributes
// come in row order, defaults are left out (except in the generic form), floats are the shortest
// that read back exactly. Layouts are declared before the kernels, one line for each text; names
// come from ir_layout_name, else l0, l1...
#include "ir/ir_impl.h"

#include <ctype.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

// --- the printer ---

typedef struct LayoutUse {
    const Kernel *kernel;
    const Layout *layout;
    Str text, name;
} LayoutUse;

typedef struct Printer {
    Text t;
    const Module *module;
    const Kernel *kernel;
    AxisOrder order; // of the kernel
    IrPrintOptions opts;
    int depth;
    LayoutUse *use;
    uint32_t nuse, use_cap;
} Printer;

static Str layout_known_name(const Printer *p, Str text) {
    const struct LayoutNames *names = p->module->layout_names;
    for (uint32_t i = 0; i < names->len; i++)
        if (names->data[i].text == text)
            return names->data[i].name;
    return NULL;
}

static bool layout_name_taken(const Printer *p, Str name) {
    const struct LayoutNames *names = p->module->layout_names;
    for (uint32_t i = 0; i < names->len; i++)
        if (names->data[i].name == name)
            return true;
    for (uint32_t i = 0; i < p->nuse; i++)
        if (p->use[i].name == name)
            return true;
    return false;
}

static Str layout_new_name(const Printer *p) {
    for (int i = 0;; i++) {
        char text[16];
        snprintf(text, sizeof text, "l%d", i);
        Str name = intern_cstr(p->module->interner, text);
        if (!layout_name_taken(p, name))
            return name;
    }
}

static void use_layout(Printer *p, const Layout *l) {
    for (uint32_t i = 0; i < p->nuse; i++)
        if (p->use[i].layout == l && p->use[i].kernel == p->kernel)
            return;
    Str text = intern_cstr(p->module->interner, layout_text(p->t.arena, p->kernel, &p->order, l));
    Str name = layout_known_name(p, text);
    for (uint32_t i = 0; i < p->nuse && !name; i++)
        if (p->use[i].text == text)
            name = p->use[i].name;
    if (!name)
        name = layout_new_name(p);
    if (p->nuse == p->use_cap) {
        p->use_cap = p->use_cap ? 2 * p->use_cap : 16;
        LayoutUse *grown = ARENA_ARRAY(p->t.arena, LayoutUse, p->use_cap);
        if (p->nuse)
            memcpy(grown, p->use, p->nuse * sizeof *grown);
        p->use = grown;
    }
    p->use[p->nuse++] = (LayoutUse){p->kernel, l, text, name};
}

static bool prints_regions(const Printer *p, const Op *op) {
    return !(p->opts.plan && op->kind == OP_LAUNCH);
}

static void use_arg_layouts(Printer *p, const Region *r) {
    for (int i = 0; i < r->narg; i++)
        if (r->arg[i]->type.layout)
            use_layout(p, r->arg[i]->type.layout);
}

static void use_op_layouts(Printer *p, const Op *op) {
    if (op->def_mem && op->def_mem->layout)
        use_layout(p, op->def_mem->layout);
    for (int i = 0; i < op->nres; i++)
        if (op->res[i]->type.layout)
            use_layout(p, op->res[i]->type.layout);
}

static void use_layouts(Printer *p, const Region *r) {
    use_arg_layouts(p, r);
    for (const Op *op = r->first; op; op = op->next) {
        use_op_layouts(p, op);
        for (int i = 0; prints_regions(p, op) && i < op->nregion; i++)
            use_layouts(p, op->region[i]);
    }
}

static void put_layout(Printer *p, const Layout *l) {
    for (uint32_t i = 0; i < p->nuse; i++) {
        if (p->use[i].layout == l && p->use[i].kernel == p->kernel) {
            text_format(&p->t, "#%s", p->use[i].name);
            return;
        }
    }
    text_str(&p->t, "#?");
}

static const char *axis_name(const Printer *p, uint16_t id) {
    return id < p->kernel->naxis ? p->kernel->axis[id]->name : "?";
}

static uint16_t axis_rank(const Printer *p, uint16_t id) {
    return id < p->kernel->naxis ? p->order.rank[id] : id;
}

// In order of declaration.
static void put_axes(Printer *p, AxisSet s) {
    if (s.n == 0)
        return;
    for (int i = 1; i < s.n; i++) {
        uint16_t id = s.id[i];
        int at = i;
        for (; at > 0 && axis_rank(p, s.id[at - 1]) > axis_rank(p, id); at--)
            s.id[at] = s.id[at - 1];
        s.id[at] = id;
    }
    text_str(&p->t, "[");
    for (int i = 0; i < s.n; i++)
        text_format(&p->t, "%s%s", i ? ", " : "", axis_name(p, s.id[i]));
    text_str(&p->t, "]");
}

static void put_type(Printer *p, Type type) {
    text_format(&p->t, "%s%s", type.is_async ? "async " : "", dtype_name(type.dtype));
    put_axes(p, type.axes);
    if (type.layout)
        put_layout(p, type.layout);
}

static void put_values(Printer *p, int n, Value *const *values, const char *before) {
    for (int i = 0; i < n; i++) {
        text_str(&p->t, i ? ", " : before);
        print_value(&p->t, values[i]);
    }
}

static void put_memref(Printer *p, const Op *op, int i) {
    const MemRef *r = &op->mem[i];
    text_format(&p->t, "@%s", r->mem->name);
    if (r->nidx) {
        put_values(p, r->nidx, op->in + r->first, "[");
        text_str(&p->t, "]");
    }
    if (r->pos >= 0 && r->pos < op->nin) {
        put_values(p, 1, &op->in[r->pos], "(");
        text_str(&p->t, ")");
    }
    for (int j = 0; j < r->nrename; j++)
        text_format(&p->t, "%s%s = %s", j ? ", " : "[", axis_name(p, r->rename[j].from),
                    axis_name(p, r->rename[j].to));
    if (r->nrename)
        text_str(&p->t, "]");
}

static void put_memrefs(Printer *p, const Op *op, int from) {
    for (int i = from; i < op->nmem; i++) {
        text_str(&p->t, i > from ? ", " : " ");
        put_memref(p, op, i);
    }
}

static void put_clause(Printer *p, const char *word, const Value *v) {
    text_format(&p->t, " %s ", word);
    print_value(&p->t, v);
}

// --- forms ---

static void put_bracket_axes(Printer *p, const Op *op) {
    text_str(&p->t, "[");
    for (int i = 0; i < op->naxes; i++)
        text_format(&p->t, "%s%s", i ? ", " : "", op->axes[i]->name);
    text_str(&p->t, "]");
}

static void put_range(Printer *p, const Value *lo, const Value *hi) {
    text_str(&p->t, " in ");
    print_value(&p->t, lo);
    text_str(&p->t, "..");
    print_value(&p->t, hi);
}

static void put_axis_clauses(Printer *p, const Axis *a) {
    if (a->like)
        text_format(&p->t, " like %s", a->like->name);
    if (a->size)
        text_format(&p->t, " by %u", a->size);
}

static void put_axis(Printer *p, const Op *op) {
    const Axis *a = op->axes[0];
    text_format(&p->t, " %s", a->name);
    if (a->of)
        text_format(&p->t, " of %s", a->of->name);
    if (op->nin == 2)
        put_range(p, op->in[0], op->in[1]);
    put_axis_clauses(p, a);
}

static int binder_operands(const Op *op) {
    int n = 0;
    for (int i = 0; i < op->nbinders; i++)
        n += op->binder[i].has_step ? 3 : 2;
    return n;
}

static void put_binders(Printer *p, const Op *op) {
    for (int i = 0; i < op->nbinders; i++) {
        const Binder *b = &op->binder[i];
        text_str(&p->t, i ? ", " : " ");
        if (b->axis)
            text_str(&p->t, b->axis->name);
        else
            text_format(&p->t, "%%%s", b->var->name);
        put_range(p, op->in[b->first], op->in[b->first + 1]);
        if (b->has_step)
            put_clause(p, "step", op->in[b->first + 2]);
    }
    for (int i = 0; i < op->ncarry; i++) {
        text_str(&p->t, i ? ", " : " carry (");
        print_value(&p->t, op_carry_arg(op, i));
        text_str(&p->t, " = ");
        print_value(&p->t, op_carry_init(op, i));
        text_str(&p->t, " : ");
        put_type(p, op_carry_arg(op, i)->type);
    }
    if (op->ncarry)
        text_str(&p->t, ")");
    int captured = op->nin - op->ncarry - binder_operands(op);
    if (captured <= 0 && !op->nmem)
        return;
    text_str(&p->t, " args(");
    put_values(p, captured, op->in + binder_operands(op), "");
    for (int i = 0; i < op->nmem; i++)
        text_format(&p->t, "%s@%s", i ? ", " : "; ", op->mem[i].mem->name);
    text_str(&p->t, ")");
}

static void put_fold(Printer *p, const Op *op) {
    int n = op_fold_values(op);
    put_bracket_axes(p, op);
    put_values(p, n, op->in, " ");
    if (op->has_else)
        put_values(p, op->nin - n, op->in + n, " else ");
    const Region *f = op->nregion ? op->region[0] : NULL;
    for (int i = 0; f && i < f->narg; i++) {
        text_str(&p->t, i ? ", " : " args(");
        print_value(&p->t, f->arg[i]);
        text_str(&p->t, ": ");
        put_type(p, f->arg[i]->type);
    }
    text_str(&p->t, ")");
}

static void put_copy(Printer *p, const Op *op) {
    static const char *const words[] = {" ", " to ", " signal "};
    for (int i = 0; i < op->nmem && i < 3; i++) {
        text_str(&p->t, words[i]);
        put_memref(p, op, i);
    }
}

static void put_mma(Printer *p, const Op *op) {
    MmaParts m = op_mma_parts(op);
    put_bracket_axes(p, op);
    text_str(&p->t, " ");
    if (m.a)
        print_value(&p->t, m.a);
    for (int i = 0; i < op->nmem; i++) {
        text_str(&p->t, i || m.a ? ", " : "");
        put_memref(p, op, i);
    }
    if (m.acc)
        put_values(p, 1, &m.acc, ", ");
}

static void put_operands(Printer *p, const Op *op) {
    switch (op_info(op->kind)->form) {
    case FORM_PLAIN:
    case FORM_IF:
        put_values(p, op->nin, op->in, " ");
        break;
    case FORM_ALONG:
    case FORM_DOT:
        put_bracket_axes(p, op);
        put_values(p, op->nin, op->in, " ");
        break;
    case FORM_FOLD:
        put_fold(p, op);
        break;
    case FORM_AXISREF:
        text_format(&p->t, " %s", op->axes[0]->name);
        break;
    case FORM_INSIDE:
        if (op->naxes)
            text_format(&p->t, " %s", op->axes[0]->name);
        put_memrefs(p, op, 0);
        break;
    case FORM_TAKE:
        put_values(p, 1, op->in, " ");
        for (int i = 0; i < op->naxes; i++) {
            text_format(&p->t, ", %s = ", op->axes[i]->name);
            print_value(&p->t, op->in[1 + i]);
        }
        if (op->has_else)
            put_clause(p, "else", op->in[op->nin - 1]);
        break;
    case FORM_LOAD:
        put_memrefs(p, op, 0);
        if (op->has_else)
            put_clause(p, "else", op->in[op->nin - 1]);
        break;
    case FORM_STORE:
        put_memrefs(p, op, 0);
        put_values(p, op->nin - op->mem[0].nidx, &op->in[op->mem[0].nidx], ", ");
        break;
    case FORM_PUT:
        put_memrefs(p, op, 0);
        put_values(p, 1, &op->in[op->nin - 1], ", ");
        break;
    case FORM_AXIS:
        put_axis(p, op);
        break;
    case FORM_BINDERS:
        put_binders(p, op);
        break;
    case FORM_YIELD:
        put_values(p, op->nin - op->has_stop, op->in, " ");
        if (op->has_stop)
            put_clause(p, "stop", op->in[op->nin - 1]);
        break;
    case FORM_TEMP:
    case FORM_BUF:
        break;
    case FORM_MEMREF:
    case FORM_CHAN:
    case FORM_CHANOP:
    case FORM_GET:
        put_memrefs(p, op, 0);
        break;
    case FORM_COPY:
        put_copy(p, op);
        break;
    case FORM_MMA:
        put_mma(p, op);
        break;
    }
}

// --- the generic form ---

// The operand that begins a memory reference, -1 when it has none.
static int memref_operand(const MemRef *r) {
    return r->nidx ? r->first : r->pos;
}

// The operands in their order, memory references among them.
static void put_generic_refs(Printer *p, const Op *op) {
    int fill = op_info(op->kind)->form == FORM_FOLD ? op_fold_values(op) : op->nin - 1;
    for (int at = 0, mem = 0; at < op->nin || mem < op->nmem;) {
        text_str(&p->t, at || mem ? ", " : "");
        const MemRef *r = mem < op->nmem ? &op->mem[mem] : NULL;
        if (r && (memref_operand(r) < 0 || memref_operand(r) == at || at == op->nin)) {
            put_memref(p, op, mem++);
            at += r->nidx + (r->pos >= 0);
            continue;
        }
        if (op->has_else && at == fill)
            text_str(&p->t, "else ");
        if (op->has_stop && at == op->nin - 1)
            text_str(&p->t, "stop ");
        print_value(&p->t, op->in[at++]);
    }
}

// <m, %i step>: an op's axes, or what its region binds.
static void put_generic_axes(Printer *p, const Op *op) {
    for (int i = 0; i < op->naxes; i++)
        text_format(&p->t, "%s%s", i ? ", " : " <", op->axes[i]->name);
    for (int i = 0; i < op->nbinders; i++) {
        const Binder *b = &op->binder[i];
        const char *sigil = b->axis ? "" : "%";
        text_format(&p->t, "%s%s%s%s", i ? ", " : " <", sigil,
                    b->axis ? b->axis->name : b->var->name, b->has_step ? " step" : "");
    }
    if (op->naxes || op->nbinders)
        text_str(&p->t, ">");
}

static void put_generic(Printer *p, const Op *op) {
    OpForm form = op_info(op->kind)->form;
    text_str(&p->t, "(");
    put_generic_refs(p, op);
    text_str(&p->t, ")");
    put_generic_axes(p, op);
    if (form == FORM_AXIS && op->axes[0]->of)
        text_format(&p->t, " of %s", op->axes[0]->of->name);
    if (form == FORM_AXIS)
        put_axis_clauses(p, op->axes[0]);
    const Region *r = op->nregion ? op->region[0] : NULL;
    int given = form == FORM_FOLD && r ? r->narg : op->ncarry;
    for (int i = 0; i < given; i++) {
        const Value *arg = r->arg[r->narg - given + i];
        text_str(&p->t, i ? ", " : " args(");
        print_value(&p->t, arg);
        text_str(&p->t, ": ");
        put_type(p, arg->type);
    }
    if (given)
        text_str(&p->t, ")");
}

// --- attributes, types ---

static void put_attr_value(Printer *p, AttrId id, const Attr *a) {
    Text *t = &p->t;
    int n = a ? a->n : 0;
    switch (attr_type(id)) {
    case ATTR_TYPE_INT:
        text_format(t, "%" PRId64, a ? a->i : attr_default(id));
        return;
    case ATTR_TYPE_BOOL:
        text_str(t, (a ? a->i : attr_default(id)) ? "true" : "false");
        return;
    case ATTR_TYPE_NAME:
        text_str(t, a ? a->s : "_");
        return;
    case ATTR_TYPE_STR:
        print_string(t, a ? a->s : "");
        return;
    case ATTR_TYPE_INTS:
        text_str(t, "[");
        for (int i = 0; i < n; i++)
            text_format(t, "%s%" PRId64, i ? ", " : "", a->ints[i]);
        break;
    case ATTR_TYPE_NAMES:
        text_str(t, "[");
        for (int i = 0; i < n; i++)
            text_format(t, "%s%s", i ? ", " : "", a->names[i]);
        break;
    case ATTR_TYPE_AXES:
        text_str(t, "[");
        for (int i = 0; i < n; i++)
            text_format(t, "%s%s", i ? ", " : "", a->axes[i]->name);
        break;
    }
    text_str(t, "]");
}

static void put_attrs(Printer *p, const Op *op) {
    const OpInfo *row = op_info(op->kind);
    bool any = false;
    if (p->opts.generic && row->kinds) {
        text_format(&p->t, " {kind = %s", row->kinds[op->sub]);
        any = true;
    }
    for (int i = 0; i < row->nattrs; i++) {
        const Attr *a = op_attr(op, row->attrs[i]);
        if (!a && !p->opts.generic)
            continue;
        text_format(&p->t, "%s%s = ", any ? ", " : " {", attr_name(row->attrs[i]));
        put_attr_value(p, row->attrs[i], a);
        any = true;
    }
    if (any)
        text_str(&p->t, "}");
}

static void put_mem_type(Printer *p, const Mem *m, OpForm form) {
    if (form == FORM_CHAN)
        return;
    text_format(&p->t, " : %s", dtype_name(m->dtype));
    if (form == FORM_BUF) {
        put_axes(p, m->axes);
        if (m->layout)
            put_layout(p, m->layout);
    } else if (m->rank && !p->opts.generic) {
        put_values(p, m->rank, m->dim, "[");
        text_str(&p->t, "]");
    }
}

static void put_header(Printer *p, const Op *op) {
    const OpInfo *row = op_info(op->kind);
    for (int i = 0; i < op->nres; i++)
        text_format(&p->t, "%s%%%s", i ? ", " : "", op->res[i]->name);
    if (op->def_mem)
        text_format(&p->t, "@%s", op->def_mem->name);
    if (op->nres || op->def_mem)
        text_str(&p->t, " = ");
    if (p->opts.generic)
        text_format(&p->t, "\"%s\"", row->text);
    else if (row->kinds)
        text_format(&p->t, "%s.%s", row->text, row->kinds[op->sub]);
    else
        text_str(&p->t, row->text);
    if (p->opts.generic)
        put_generic(p, op);
    else
        put_operands(p, op);
    put_attrs(p, op);
    for (int i = 0; i < op->nres; i++) {
        text_str(&p->t, i ? ", " : " : ");
        put_type(p, op->res[i]->type);
    }
    if (op->def_mem)
        put_mem_type(p, op->def_mem, row->form);
}

// --- regions and kernels ---

static void put_indent(Printer *p) {
    for (int i = 0; i < p->depth; i++)
        text_str(&p->t, "  ");
}

static void put_ops(Printer *p, const Region *r);

static void put_region(Printer *p, const Region *r) {
    text_str(&p->t, " {\n");
    p->depth++;
    put_ops(p, r);
    p->depth--;
    put_indent(p);
    text_str(&p->t, "}");
}

static void put_ops(Printer *p, const Region *r) {
    for (const Op *op = r->first; op; op = op->next) {
        put_indent(p);
        put_header(p, op);
        for (int i = 0; prints_regions(p, op) && i < op->nregion; i++)
            if (i == 0 || op->region[i]->first)
                put_region(p, op->region[i]);
        if (p->opts.spans && op->span.end > op->span.begin)
            text_format(&p->t, " !%u+%u", op->span.begin, op->span.end - op->span.begin);
        text_str(&p->t, "\n");
    }
}

static void put_mem_attrs(Printer *p, const Mem *m) {
    Text *t = &p->t;
    const char *sep = " {";
    if (m->align) {
        text_format(t, "%salign = %u", sep, m->align);
        sep = ", ";
    }
    if (m->inner >= 0) {
        text_format(t, "%sinner = %d", sep, m->inner);
        sep = ", ";
    }
    if (m->sdiv > 1) {
        text_format(t, "%ssdiv = %u", sep, m->sdiv);
        sep = ", ";
    }
    if (m->fits32) {
        text_format(t, "%sfits32 = true", sep);
        sep = ", ";
    }
    if (m->absent) {
        text_format(t, "%sabsent = true", sep);
        sep = ", ";
    }
    if (*sep == ',')
        text_str(t, "}");
}

static void put_param(Printer *p, const Param *param) {
    static const char *const modes[] = {"in", "out", "inout"};
    Text *t = &p->t;
    switch (param->kind) {
    case PARAM_DIM:
        text_format(t, "dim %s", param->axis->name);
        if (value_is_const(param->value))
            text_format(t, " = %" PRId64, param->value->u.i);
        break;
    case PARAM_SCALAR:
        text_format(t, "%%%s: %s", param->value->name, dtype_name(param->value->type.dtype));
        if (param->has_default && param->dflt)
            put_values(p, 1, &param->dflt, " = ");
        break;
    case PARAM_TENSOR:
        text_format(t, "%s%s @%s: %s", modes[param->mem->mode], param->mem->opt ? " opt" : "",
                    param->mem->name, dtype_name(param->mem->dtype));
        if (param->mem->rank) {
            put_values(p, param->mem->rank, param->mem->dim, "[");
            text_str(t, "]");
        }
        put_mem_attrs(p, param->mem);
        break;
    }
}

// Letters, digits, `_`, and dots between those; not a number.
static bool is_plain_name(const char *s) {
    if (!*s || isdigit((unsigned char)*s))
        return false;
    for (const char *c = s; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_' &&
            !(*c == '.' && c > s && (isalnum((unsigned char)c[1]) || c[1] == '_')))
            return false;
    return true;
}

static void put_kernel_name(Printer *p, const Kernel *k) {
    if (is_plain_name(k->name))
        text_str(&p->t, k->name);
    else
        print_string(&p->t, k->name);
}

static void set_kernel(Printer *p, const Kernel *k) {
    p->kernel = k;
    p->order = axis_order(p->t.arena, k);
}

static void put_kernel(Printer *p, const Kernel *k) {
    set_kernel(p, k);
    text_str(&p->t, "kernel ");
    put_kernel_name(p, k);
    text_str(&p->t, "(");
    for (int i = 0; i < k->nparam; i++) {
        if (i)
            text_str(&p->t, ", ");
        put_param(p, &k->param[i]);
    }
    text_str(&p->t, ")");
    if (k->variant_of) {
        text_str(&p->t, " of ");
        put_kernel_name(p, k->variant_of);
    }
    if (p->opts.spans && k->span.end > k->span.begin)
        text_format(&p->t, " !%u+%u", k->span.begin, k->span.end - k->span.begin);
    p->depth = 0;
    put_region(p, k->body);
    text_str(&p->t, "\n");
}

IrText ir_print(Arena *arena, const Module *m, IrPrintOptions opts) {
    locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    locale_t old = uselocale(c);
    Printer p = {.t = {.arena = arena}, .module = m, .opts = opts};
    text_reserve(&p.t, 256);
    if (!opts.kernel_only)
        text_format(&p.t, "tir %s %s\n", stage_name(m->stage), m->target);
    for (int i = 0; i < m->nkernel; i++) {
        set_kernel(&p, m->kernel[i]);
        use_layouts(&p, m->kernel[i]->body);
    }
    for (uint32_t i = 0; i < p.nuse; i++) {
        bool first = true;
        for (uint32_t j = 0; j < i; j++)
            first &= p.use[j].name != p.use[i].name;
        if (first)
            text_format(&p.t, "layout #%s = %s\n", p.use[i].name, p.use[i].text);
    }
    for (int i = 0; i < m->nkernel; i++)
        put_kernel(&p, m->kernel[i]);
    uselocale(old);
    freelocale(c);
    return (IrText){.data = p.t.data, .len = p.t.len};
}

void print_launch(Text *t, const Kernel *k, const Op *launch) {
    Printer p = {.t = *t, .module = k->module, .opts = {.spans = true}};
    set_kernel(&p, k);
    text_reserve(&p.t, 256);
    use_layouts(&p, launch->region[0]);
    for (uint32_t i = 0; i < p.nuse; i++)
        text_format(&p.t, "#%s = %s\n", p.use[i].name, p.use[i].text);
    put_binders(&p, launch);
    const OpInfo *row = op_info(launch->kind);
    for (int i = 0; i < row->nattrs; i++) {
        const Attr *a = op_attr(launch, row->attrs[i]);
        if (!a || a->id == ATTR_entry)
            continue;
        text_format(&p.t, " %s = ", attr_name(a->id));
        put_attr_value(&p, a->id, a);
    }
    put_region(&p, launch->region[0]);
    *t = p.t;
}

const char *op_text(Arena *arena, const Kernel *k, const Op *op) {
    Printer p = {.t = {.arena = arena}, .module = k->module};
    set_kernel(&p, k);
    text_reserve(&p.t, 64);
    use_op_layouts(&p, op);
    if (op->nregion)
        use_arg_layouts(&p, op->region[0]);
    put_header(&p, op);
    return p.t.data;
}
