// The parser's small parts: references, types, layouts, memory references, attributes.
//
// Input: tokens. Output: entities of the kernel that is being read. Names must be defined before
// they are used.
#include "ir/parse_impl.h"

#include <math.h>
#include <string.h>

DType parse_dtype(Parser *p) {
    Tok at = p->tok;
    Str name = parse_text(p, TOK_NAME, "a type");
    DType t = dtype_parse_cstr(name);
    if (t == DT_NONE) {
        parse_fail(p, &at, "`%s` is not a type", name);
        return DT_INDEX;
    }
    return t;
}

// The dtype of a constant stands right behind it: `0.5:f32`; without one it is `index`.
static Value *parse_number(Parser *p) {
    Tok at = p->tok;
    parse_next(p);
    DType t = DT_INDEX;
    if (parse_is(p, ':') && p->tok.glued) {
        parse_next(p);
        t = parse_dtype(p);
    }
    if (dtype_is_float(t))
        return ir_float(p->kernel, t, at.f);
    if (at.kind == TOK_FLOAT)
        parse_fail(p, &at, "a number with a fraction needs a float type");
    return ir_int(p->kernel, t, (int64_t)at.i);
}

Axis *parse_axis(Parser *p) {
    Tok at = p->tok;
    Str name = parse_text(p, TOK_NAME, "an axis");
    Axis *a = ir_find_axis(p->kernel, name);
    if (!a) {
        parse_fail(p, &at, "no axis has the name `%s`", name);
        static const Axis none; // never written: parsing has failed
        return (Axis *)&none;
    }
    return a;
}

Value *parse_ref(Parser *p) {
    Kernel *k = p->kernel;
    Tok at = p->tok;
    if (at.kind == TOK_VAL) {
        Value *v = ir_find_value(k, at.text);
        if (!v) {
            parse_fail(p, &at, "no value has the name `%%%s`", at.text);
            return ir_index(k, 0);
        }
        parse_next(p);
        return v;
    }
    if (at.kind == TOK_INT || at.kind == TOK_FLOAT)
        return parse_number(p);
    if (parse_take_name(p, "true"))
        return ir_bool(k, true);
    if (parse_take_name(p, "false"))
        return ir_bool(k, false);
    bool inf = parse_is_name(p, "inf");
    if ((inf || parse_is_name(p, "nan")) && p->ahead.kind == TOK_CHAR && p->ahead.c == ':') {
        p->tok.kind = TOK_FLOAT;
        p->tok.f = inf ? (double)INFINITY : (double)NAN;
        return parse_number(p);
    }
    if (at.kind == TOK_NAME) {
        Axis *a = parse_axis(p);
        return p->error ? ir_index(k, 0) : a->iota;
    }
    parse_fail(p, &at, "a value is expected");
    return ir_index(k, 0);
}

Mem *parse_mem(Parser *p) {
    Tok at = p->tok;
    Str name = parse_text(p, TOK_MEM, "a memory");
    Mem *m = ir_find_mem(p->kernel, name);
    if (!m) {
        parse_fail(p, &at, "no memory has the name `@%s`", name);
        static const Mem none; // never written: parsing has failed
        return (Mem *)&none;
    }
    return m;
}

// --- layouts ---

static bool find_axis(void *context, const char *name, size_t length, uint16_t *axis) {
    const Parser *p = context;
    Str s = intern_find(p->module->interner, name, length);
    const Axis *a = s ? ir_find_axis(p->kernel, s) : NULL;
    if (a)
        *axis = a->id;
    return a != NULL;
}

static const Layout *read_layout(Parser *p, LayoutDecl *d, const Tok *at) {
    size_t pos = 0;
    const char *why = NULL;
    const char *text = arena_strndup(p->scratch, p->text + d->at, d->len);
    const Layout *l = layout_parse(p->module->layouts, text, d->len, &pos, find_axis, p, &why);
    while (l && pos < d->len && strchr(" \t\r", text[pos]))
        pos++;
    if (!l || pos < d->len) {
        parse_fail(p, at, "layout #%s: %s", d->name,
                   l     ? "text after the layout"
                   : why ? why
                         : "malformed");
        return NULL;
    }
    d->kernel = p->kernel;
    d->layout = l;
    ir_layout_name(p->kernel, l, d->name);
    return l;
}

const Layout *parse_layout(Parser *p) {
    if (p->tok.kind != TOK_LAY)
        return NULL;
    Tok at = p->tok;
    parse_next(p);
    for (uint32_t i = 0; i < p->layouts.len; i++) {
        LayoutDecl *d = &p->layouts.data[i];
        if (d->name == at.text)
            return d->kernel == p->kernel ? d->layout : read_layout(p, d, &at);
    }
    parse_fail(p, &at, "no layout has the name `#%s`", at.text);
    return NULL;
}

Type parse_type(Parser *p) {
    Type t = {0};
    t.is_async = parse_take_name(p, "async");
    t.dtype = parse_dtype(p);
    if (parse_take(p, '[')) {
        do {
            Tok at = p->tok;
            const Axis *a = parse_axis(p);
            if (!p->error && axes_has(t.axes, a->id))
                parse_fail(p, &at, "an axis twice");
            else if (!p->error && !axes_add(&t.axes, a->id))
                parse_fail(p, &at, "more than %d axes", AXES_MAX);
        } while (parse_take(p, ','));
        parse_expect(p, ']');
    }
    t.layout = parse_layout(p);
    return t;
}

// --- memory references ---

static void parse_renames(Parser *p, MemRef *r) {
    do {
        if (r->nrename == sizeof r->rename / sizeof *r->rename) {
            parse_fail(p, &p->tok, "too many renamed axes");
            return;
        }
        r->rename[r->nrename].from = parse_axis(p)->id;
        parse_expect(p, '=');
        r->rename[r->nrename++].to = parse_axis(p)->id;
    } while (parse_take(p, ','));
}

MemRef parse_memref(Parser *p, ValueVec *in) {
    MemRef r = memref(parse_mem(p));
    if (p->error)
        return r;
    if (parse_take(p, '(')) {
        r.pos = (int16_t)in->len;
        vec_push(p->scratch, in, parse_ref(p));
        parse_expect(p, ')');
    }
    if (!parse_take(p, '['))
        return r;
    if (r.mem->kind == MEM_BUF || r.mem->kind == MEM_CHAN) {
        parse_renames(p, &r);
    } else if (!parse_is(p, ']')) {
        r.first = (uint16_t)in->len;
        do {
            vec_push(p->scratch, in, parse_ref(p));
            r.nidx++;
        } while (parse_take(p, ',') && r.nidx < 64);
    }
    parse_expect(p, ']');
    return r;
}

// --- attributes ---

bool parse_has_attrs(const Parser *p) {
    return parse_is(p, '{') && p->ahead.kind == TOK_NAME;
}

// A list in brackets, or one element without them.
static void parse_list(Parser *p, AttrType type, Attr *a) {
    IntVec ints = {0};
    StrVec names = {0};
    AxisVec axes = {0};
    bool bracket = parse_take(p, '[');
    if (!(bracket && parse_is(p, ']'))) {
        do {
            if (type == ATTR_TYPE_INTS)
                vec_push(p->scratch, &ints, parse_int(p, INT64_MIN, INT64_MAX));
            else if (type == ATTR_TYPE_NAMES)
                vec_push(p->scratch, &names, parse_text(p, TOK_NAME, "a name"));
            else
                vec_push(p->scratch, &axes, parse_axis(p));
        } while (bracket && parse_take(p, ',') && axes.len + names.len + ints.len < 1000);
    }
    if (bracket)
        parse_expect(p, ']');
    a->n = (uint16_t)(ints.len + names.len + axes.len);
    a->ints = ints.data;
    a->names = names.data;
    a->axes = axes.data;
}

static Attr parse_attr(Parser *p, AttrId id) {
    Attr a = {.id = id};
    AttrType type = attr_type(id);
    switch (type) {
    case ATTR_TYPE_INT:
        a.i = parse_int(p, INT64_MIN, INT64_MAX);
        break;
    case ATTR_TYPE_BOOL:
        a.i = parse_take_name(p, "true");
        if (!a.i)
            parse_expect_name(p, "false");
        break;
    case ATTR_TYPE_NAME:
        a.s = parse_text(p, TOK_NAME, "a name");
        if (strcmp(a.s, "_") == 0)
            a.s = NULL;
        break;
    case ATTR_TYPE_STR:
        a.s = parse_text(p, TOK_STR, "a string");
        if (!*a.s)
            a.s = NULL;
        break;
    case ATTR_TYPE_INTS:
    case ATTR_TYPE_NAMES:
    case ATTR_TYPE_AXES:
        parse_list(p, type, &a);
        break;
    }
    return a;
}

static void parse_kind(Parser *p, const OpInfo *row, uint8_t *sub) {
    Tok at = p->tok;
    Str name = parse_text(p, TOK_NAME, "a kind");
    for (int i = 0; row->kinds && row->kinds[i]; i++) {
        if (strcmp(row->kinds[i], name) == 0) {
            *sub = (uint8_t)i;
            return;
        }
    }
    parse_fail(p, &at, "`%s` has no kind `%s`", row->text, name);
}

void parse_attrs(Parser *p, const OpInfo *row, uint8_t *sub, AttrVec *out) {
    if (!parse_has_attrs(p))
        return;
    parse_next(p);
    do {
        Tok at = p->tok;
        Str name = parse_text(p, TOK_NAME, "an attribute");
        parse_expect(p, '=');
        if (row->kinds && strcmp(name, "kind") == 0) {
            parse_kind(p, row, sub);
            continue;
        }
        int i = 0;
        while (i < row->nattrs && strcmp(attr_name(row->attrs[i]), name) != 0)
            i++;
        if (i == row->nattrs) {
            parse_fail(p, &at, "`%s` has no attribute `%s`", row->text, name);
            return;
        }
        Attr a = parse_attr(p, row->attrs[i]);
        vec_push(p->scratch, out, a);
    } while (parse_take(p, ','));
    parse_expect(p, '}');
}
