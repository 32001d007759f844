// The parser of a kernel's parameters: dims, scalars, tensors with what is promised about them.
#include "ir/parse_impl.h"

#include <string.h>

static void parse_mem_attrs(Parser *p, Mem *m) {
    if (!parse_take(p, '{'))
        return;
    do {
        Tok at = p->tok;
        Str name = parse_text(p, TOK_NAME, "an attribute");
        parse_expect(p, '=');
        if (!strcmp(name, "align")) {
            m->align = (uint32_t)parse_int(p, 0, 1 << 20);
        } else if (!strcmp(name, "inner")) {
            m->inner = (int8_t)parse_int(p, 0, RANK_MAX - 1);
        } else if (!strcmp(name, "sdiv")) {
            m->sdiv = (uint32_t)parse_int(p, 0, UINT32_MAX);
        } else if (!strcmp(name, "fits32") || !strcmp(name, "absent")) {
            bool on = parse_take_name(p, "true");
            if (!on)
                parse_expect_name(p, "false");
            *(name[0] == 'f' ? &m->fits32 : &m->absent) = on;
        } else {
            parse_fail(p, &at, "a tensor has no attribute `%s`", name);
        }
    } while (parse_take(p, ','));
    parse_expect(p, '}');
}

static void parse_dim(Parser *p) {
    Tok at = p->tok;
    Str name = parse_text(p, TOK_NAME, "a dim");
    if (p->error)
        return;
    if (ir_find_axis(p->kernel, name) || ir_find_value(p->kernel, name)) {
        parse_fail(p, &at, "`%s` is declared twice", name);
        return;
    }
    const Axis *a = parse_take(p, '=')
                        ? ir_param_dim_fixed(p->kernel, name, parse_int(p, 0, INT64_MAX))
                        : ir_param_dim(p->kernel, name);
    if (a->name != name)
        parse_fail(p, &at, "`%s` cannot name a dim", name);
}

static void parse_scalar(Parser *p) {
    Tok at = p->tok;
    Str name = parse_text(p, TOK_VAL, "a value");
    parse_expect(p, ':');
    DType dtype = parse_dtype(p);
    if (!p->error && ir_find_value(p->kernel, name))
        parse_fail(p, &at, "`%%%s` is defined twice", name);
    if (p->error)
        return;
    ir_param_scalar(p->kernel, name, dtype);
    if (!parse_take(p, '='))
        return;
    Param *param = &p->kernel->param[p->kernel->nparam - 1];
    at = p->tok;
    param->dflt = parse_ref(p);
    param->has_default = true;
    if (!value_is_const(param->dflt))
        parse_fail(p, &at, "a default is a constant");
}

static void parse_tensor(Parser *p) {
    MemMode mode = parse_take_name(p, "inout") ? MODE_INOUT : MODE_OUT;
    if (mode == MODE_OUT && parse_take_name(p, "in"))
        mode = MODE_IN;
    else if (mode == MODE_OUT)
        parse_expect_name(p, "out");
    bool opt = parse_take_name(p, "opt");
    Tok at = p->tok;
    Str name = parse_text(p, TOK_MEM, "a tensor");
    parse_expect(p, ':');
    DType dtype = parse_dtype(p);
    ValueVec dims = {0};
    if (parse_take(p, '[')) {
        do
            vec_push(p->scratch, &dims, parse_ref(p));
        while (parse_take(p, ','));
        parse_expect(p, ']');
    }
    if (dims.len > RANK_MAX)
        parse_fail(p, &at, "more than %d dims", RANK_MAX);
    if (!p->error && ir_find_mem(p->kernel, name))
        parse_fail(p, &at, "`@%s` is defined twice", name);
    if (p->error)
        return;
    Mem *m = ir_param_tensor(p->kernel, name, mode, opt, dtype, (int)dims.len, dims.data);
    parse_mem_attrs(p, m);
}

void parse_params(Parser *p) {
    parse_expect(p, '(');
    if (!parse_is(p, ')')) {
        do {
            if (parse_take_name(p, "dim"))
                parse_dim(p);
            else if (p->tok.kind == TOK_VAL)
                parse_scalar(p);
            else
                parse_tensor(p);
        } while (parse_take(p, ',') && p->kernel->nparam < 5000);
    }
    parse_expect(p, ')');
}
