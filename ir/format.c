// Texts of `print`; see format.h.
#include "ir/format.h"

#include <stdio.h>
#include <string.h>

#include "lang/base/vec.h"

int format_count(const char *text) {
    int n = 0;
    for (const char *c = text; *c; c++) {
        if (*c != '{' && *c != '}')
            continue;
        bool twice = c[1] == *c, hole = c[0] == '{' && c[1] == '}';
        if (!twice && !hole)
            return -1;
        n += hole;
        c++;
    }
    return n;
}

static const char *format_spec(DType type) {
    switch (type) {
    case DT_F64:
        return "%.17g";
    case DT_F32:
        return "%.9g";
    case DT_F16:
        return "%.5g";
    case DT_BF16:
        return "%.4g";
    case DT_E4M3:
    case DT_E5M2:
        return "%.3g";
    default:
        return type == DT_U64 ? "%llu" : "%lld";
    }
}

typedef VEC(char) Text;

static void put(Arena *arena, Text *t, const char *s) {
    for (; *s; s++)
        vec_push(arena, t, *s);
}

const char *format_printf(Arena *arena, const char *text, const DType *types) {
    Text t = {0};
    int n = 0;
    for (const char *c = text; *c; c++) {
        bool pair = (*c == '{' || *c == '}') && c[1];
        if (*c == '%')
            put(arena, &t, "%%");
        else if (*c == '{' && c[1] == '}')
            put(arena, &t, format_spec(types[n++]));
        else
            vec_push(arena, &t, *c);
        c += pair;
    }
    put(arena, &t, "\n");
    vec_push(arena, &t, '\0');
    return t.data;
}

static void put_value(FILE *out, Scalar v) {
    if (dtype_is_float(v.dtype))
        fprintf(out, format_spec(v.dtype), v.u.f);
    else
        fprintf(out, format_spec(v.dtype), (long long)v.u.i);
}

void format_print(const char *text, const Scalar *values) {
    flockfile(stdout);
    for (const char *c = text; *c; c++) {
        bool pair = (*c == '{' || *c == '}') && c[1];
        if (*c == '{' && c[1] == '}')
            put_value(stdout, *values++);
        else
            fputc(*c, stdout);
        c += pair;
    }
    fputc('\n', stdout);
    funlockfile(stdout);
}
