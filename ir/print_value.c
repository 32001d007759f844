// The small parts of the printer: text that grows, constants, values, strings.
//
// Floats are the shortest that read back exactly; the caller has set the locale of numbers.
#include "ir/ir_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- growing text ---

void text_reserve(Text *t, size_t more) {
    if (t->len + more + 1 <= t->cap)
        return;
    t->cap = 2 * (t->len + more) + 128;
    char *grown = arena_alloc(t->arena, t->cap);
    if (t->len)
        memcpy(grown, t->data, t->len);
    t->data = grown;
}

void text_add(Text *t, const char *s, size_t len) {
    text_reserve(t, len);
    memcpy(t->data + t->len, s, len);
    t->len += len;
    t->data[t->len] = 0;
}

void text_str(Text *t, const char *s) {
    text_add(t, s, strlen(s));
}

void text_format(Text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char small[256];
    int n = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof small) {
        text_add(t, small, (size_t)n);
        return;
    }
    va_start(args, format);
    text_str(t, arena_vprintf(t->arena, format, args));
    va_end(args);
}

// --- constants and references ---

// 1e+06 -> 1e6, 1e-05 -> 1e-5, 5 -> 5.0
static void float_tidy(const char *from, char *to) {
    const char *e = strchr(from, 'e');
    size_t head = e ? (size_t)(e - from) : strlen(from);
    memcpy(to, from, head);
    to[head] = 0;
    if (!e) {
        if (!strchr(to, '.'))
            strcat(to, ".0");
        return;
    }
    char *at = to + head;
    *at++ = 'e';
    if (e[1] == '-')
        *at++ = '-';
    e += 1 + (e[1] == '-' || e[1] == '+');
    while (*e == '0' && e[1])
        e++;
    strcpy(at, e);
}

static void print_float(Text *t, DType dtype, double f) {
    if (isnan(f)) {
        text_str(t, "nan");
        return;
    }
    if (isinf(f)) {
        text_str(t, f < 0 ? "-inf" : "inf");
        return;
    }
    char raw[48], tidy[48];
    if (f == trunc(f) && fabs(f) < 1e6) {
        snprintf(raw, sizeof raw, "%.0f", f);
    } else {
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(raw, sizeof raw, "%.*g", digits, f);
            if (ir_round(dtype, strtod(raw, NULL)) == f)
                break;
        }
    }
    float_tidy(raw, tidy);
    text_str(t, tidy);
}

static void print_const(Text *t, const Value *v) {
    DType dtype = v->type.dtype;
    if (dtype == DT_BOOL) {
        text_str(t, v->u.i ? "true" : "false");
        return;
    }
    if (dtype_is_float(dtype))
        print_float(t, dtype, v->u.f);
    else if (dtype == DT_U64)
        text_format(t, "%" PRIu64, (uint64_t)v->u.i);
    else
        text_format(t, "%" PRId64, v->u.i);
    if (dtype != DT_INDEX)
        text_format(t, ":%s", dtype_name(dtype));
}

void print_value(Text *t, const Value *v) {
    if (!v)
        text_str(t, "?");
    else if (v->kind == VALUE_CONST)
        print_const(t, v);
    else if (v->kind == VALUE_IOTA)
        text_str(t, v->axis->name);
    else
        text_format(t, "%%%s", v->name ? v->name : "?");
}

void print_string(Text *t, const char *s) {
    text_str(t, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            text_format(t, "\\%c", c);
        else if (c == '\n')
            text_str(t, "\\n");
        else if (c == '\t')
            text_str(t, "\\t");
        else if (c < 0x20 || c == 0x7f)
            text_format(t, "\\x%02x", c);
        else
            text_add(t, s, 1);
    }
    text_str(t, "\"");
}
