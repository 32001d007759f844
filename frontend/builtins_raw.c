/* Built-in functions on bits: bitcast and the words that random numbers are made of.
 *
 * Input: a call with its values evaluated; an argument that is an element type is looked up here.
 * Output: its Val.
 */
#include "frontend/builtins.h"

DType builtin_type(Fe *fe, const BuiltinCall *c, uint32_t i) {
    const Expr *e = c->e->call.args.data[i].value;
    if (e->kind != EXPR_NAME || e->name.module.text) {
        if (e->kind != EXPR_ERROR) {
            Diag *d = fe_error(fe, DIAG_UNKNOWN_TYPE, e->span, "`%s` needs an element type here",
                               c->row->name);
            diag_hint(fe->diags, d, "write `%s`", c->row->shape);
        }
        return DT_NONE;
    }
    TypeRef type = {
        .span = e->span, .name = e->name.name, .dtype = dtype_parse_cstr(e->name.name.text)};
    return type_find(fe, &type);
}

/* A literal has the width of the result: an integer is unsigned, a float f32 or f64. */
static Val literal_bits(Fe *fe, const BuiltinCall *c, DType to) {
    static const DType integers[] = {DT_U8, DT_U16, DT_U32, DT_U64};
    Val v = c->arg[0];
    uint32_t bits = dtype_bits(to);
    if (v.choice || (v.is_float && bits < 32))
        return val_settle(fe, v);
    DType from = v.is_float ? (bits == 64 ? DT_F64 : DT_F32)
                            : integers[bits == 8    ? 0
                                       : bits == 16 ? 1
                                       : bits == 32 ? 2
                                                    : 3];
    return val_coerce(fe, v, from, true, builtin_span(c, 0), "the value");
}

/* $0 is the result, $1 to $n the values; the result has to be there. */
static bool check_text(Fe *fe, const Expr *e, uint32_t n) {
    bool result = false;
    if (e->kind != EXPR_STRING) {
        fe_error(fe, DIAG_TYPE_MISMATCH, e->span, "`asm` begins with a string");
        return false;
    }
    for (uint32_t i = 0; i < e->string.len; i++) {
        const char *c = &e->string.data[i];
        if (*c != '$' && *c != '\0')
            continue;
        bool known = *c == '$' && c[1] >= '0' && c[1] <= '9' && (uint32_t)(c[1] - '0') <= n &&
                     !(c[2] >= '0' && c[2] <= '9');
        if (!known) {
            fe_error(fe, DIAG_ARGUMENT_COUNT, e->span,
                     "in the text of `asm` stand `$0`, the result, and `$1` to `$%u`, the values",
                     n);
            return false;
        }
        result |= c[1] == '0';
    }
    if (!result)
        fe_error(fe, DIAG_ARGUMENT_COUNT, e->span,
                 "the text of `asm` does not set `$0`, its result");
    return result;
}

static bool is_register(DType t) {
    return t != DT_BOOL && dtype_bits(t) >= 16;
}

bool builtin_names_type(Fe *fe, const Expr *e) {
    if (e->kind != EXPR_NAME || e->name.module.text)
        return false;
    const Entry *entry = scope_find(fe, e->name.name.text);
    return entry ? entry->kind == ENTRY_TYPE : dtype_parse_cstr(e->name.name.text) != DT_NONE;
}

/* asm("text", x, ...) has the type of x, asm("text", x, ..., T) the type T. */
Val builtin_asm(Fe *fe, BuiltinCall *c) {
    bool typed = c->n > 2 && builtin_names_type(fe, c->e->call.args.data[c->n - 1].value);
    uint32_t n = c->n - 1 - typed;
    if (n > 3) {
        fe_error(fe, DIAG_ARGUMENT_COUNT, c->e->span, "`asm` takes at most three values");
        return val_poison();
    }
    if (!check_text(fe, c->e->call.args.data[0].value, n))
        return val_poison();
    Value *in[3];
    AxisSet axes = axes_none();
    for (uint32_t i = 0; i < n; i++) {
        Val v = val_settle(fe, c->arg[i + 1]);
        if (!is_register(val_dtype(v))) {
            Diag *d =
                fe_error(fe, DIAG_TYPE_MISMATCH, builtin_span(c, i + 1),
                         "`asm` takes values of 16, 32 or 64 bits, this is %s", val_text(fe, v));
            diag_hint(fe->diags, d, "write `%s`", cast_text(fe, builtin_span(c, i + 1), DT_U32));
            return val_poison();
        }
        if (!val_union(fe, v, (Val){.kind = VAL_VALUE, .axes = axes}, c->e->span, &axes))
            return val_poison();
        in[i] = val_spread(fe, v, builtin_span(c, i + 1));
    }
    DType to = typed ? builtin_type(fe, c, c->n - 1) : in[0]->type.dtype;
    if (!is_register(to)) {
        fe_error(fe, DIAG_TYPE_MISMATCH, c->e->span,
                 "`asm` gives a value of 16, 32 or 64 bits, %s is none", dtype_name(to));
        return val_poison();
    }
    Type type = type_tile(to, axes);
    const Expr *text = c->e->call.args.data[0].value;
    fe->b.span = c->e->span;
    Op *op = ir_build(&fe->b, &(OpInit){.kind = OP_ASM,
                                        .nin = (uint16_t)n,
                                        .in = in,
                                        .nres = 1,
                                        .types = &type,
                                        .names = &c->hint});
    op_set_str(fe->kernel, op, ATTR_msg,
               arena_strndup(fe->arena, text->string.data, text->string.len));
    return val_of(op->res[0]);
}

static bool has_bits(DType t) {
    return t != DT_BOOL && !dtype_is_packed(t);
}

Val builtin_bitcast(Fe *fe, BuiltinCall *c) {
    DType to = builtin_type(fe, c, 1);
    if (to == DT_NONE)
        return val_poison();
    Val v = c->arg[0];
    if (v.kind == VAL_LITERAL && has_bits(to))
        v = literal_bits(fe, c, to);
    if (!val_ok(v))
        return v;
    v = val_settle(fe, v);
    DType from = val_dtype(v);
    if (!has_bits(from) || !has_bits(to) || dtype_bits(from) != dtype_bits(to)) {
        Diag *d = fe_error(fe, DIAG_TYPE_MISMATCH, c->e->span,
                           "`bitcast` of %s to %s, which is no type of the same width",
                           val_text(fe, v), dtype_name(to));
        diag_hint(fe->diags, d, "a conversion of the value is written `%s`",
                  cast_text(fe, builtin_span(c, 0), to));
        return val_poison();
    }
    if (from == to)
        return v;
    Type type = type_tile(to, v.v->type.axes);
    fe->b.span = c->e->span;
    Op *op = ir_build(&fe->b, &(OpInit){.kind = OP_BITCAST,
                                        .nin = 1,
                                        .in = &v.v,
                                        .nres = 1,
                                        .types = &type,
                                        .names = &c->hint});
    return val_with_axes(op->res[0], v.axes);
}

static Value *random_word_of(Fe *fe, BuiltinCall *c, const char *hint, AxisSet *axes) {
    if (!builtin_integer(fe, c, 0) || !builtin_integer(fe, c, 1) ||
        !val_union(fe, c->arg[0], c->arg[1], c->e->span, axes))
        return NULL;
    Value *in[2] = {val_cast(fe, c->arg[0], DT_INDEX, builtin_span(c, 0)),
                    val_cast(fe, c->arg[1], DT_INDEX, builtin_span(c, 1))};
    fe->b.span = c->e->span;
    return ir_binary(&fe->b, OP_RAND, in[0], in[1], hint);
}

Val builtin_randbits(Fe *fe, BuiltinCall *c) {
    AxisSet axes;
    Value *word = random_word_of(fe, c, c->hint, &axes);
    return word ? val_with_axes(word, axes) : val_poison();
}

/* A word to [0, 1): its upper 24 bits. */
Val builtin_rand(Fe *fe, BuiltinCall *c) {
    AxisSet axes;
    Value *word = random_word_of(fe, c, NULL, &axes);
    if (!word)
        return val_poison();
    Value *high = ir_binary(&fe->b, OP_SHR, word, ir_int(fe->kernel, DT_U32, 8), NULL);
    Value *f = ir_cast(&fe->b, DT_F32, high, NULL);
    return val_with_axes(
        ir_binary(&fe->b, OP_MUL, f, ir_float(fe->kernel, DT_F32, 0x1p-24), c->hint), axes);
}
