// The text of a layout: `reg(n:1, m:8) lane(n:2, 0) warp(m:16) rep(n:11)`, both ways.
//
// A column prints its offset along each axis, smallest first (`k:1^n:8`), a replica prints 0.
// Axis sizes are not written: the highest bit of the columns gives them, reps the odd factor.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ir/layout_draft.h"

static const char *const dim_name[IN_DIMS] = {"reg", "lane", "warp", "cta", "off"};

// --- print ---

typedef struct Out {
    char *buffer;
    size_t cap, length;
} Out;

__attribute__((format(printf, 2, 3))) static void out_text(Out *out, const char *format, ...) {
    size_t room = out->length < out->cap ? out->cap - out->length : 0;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(room > 0 ? out->buffer + out->length : NULL, room, format, args);
    va_end(args);
    out->length += n > 0 ? (size_t)n : 0;
}

static void out_column(Out *out, const Layout *l, unsigned dim, unsigned bit, LayoutAxisName name,
                       void *context) {
    uint32_t along[AXES_MAX];
    bool first = true;
    for (int i = 0; i < l->naxes; i++) {
        along[i] = layout_column(l, dim, bit, l->axis[i]);
    }
    for (;;) {
        int least = -1;
        for (int i = 0; i < l->naxes; i++) {
            if (along[i] != 0 && (least < 0 || along[i] < along[least])) {
                least = i;
            }
        }
        if (least < 0) {
            break;
        }
        out_text(out, "%s%s:%u", first ? "" : "^", name(context, l->axis[least]), along[least]);
        along[least] = 0;
        first = false;
    }
    if (first) {
        out_text(out, "0");
    }
}

size_t layout_print(const Layout *l, char *buffer, size_t cap, LayoutAxisName name, void *context) {
    Out out = {.buffer = buffer, .cap = cap};
    if (cap > 0) {
        buffer[0] = 0;
    }
    for (unsigned d = 0; d < IN_DIMS; d++) {
        for (unsigned b = 0; b < l->nin[d]; b++) {
            if (b == 0) {
                out_text(&out, "%s%s(", out.length == 0 ? "" : " ", dim_name[d]);
            }
            out_text(&out, "%s", b == 0 ? "" : ", ");
            out_column(&out, l, d, b, name, context);
            out_text(&out, "%s", b + 1 == l->nin[d] ? ")" : "");
        }
    }
    for (unsigned r = 0; r < l->nrep; r++) {
        out_text(&out, "%s%s:%u%s",
                 r > 0             ? ", "
                 : out.length == 0 ? "rep("
                                   : " rep(",
                 name(context, l->rep[r].axis), l->rep[r].count, r + 1 == l->nrep ? ")" : "");
    }
    return out.length;
}

// --- parse ---

enum { DIM_REP = IN_DIMS };

typedef struct Term {
    uint16_t axis;
    uint8_t dim, bit;
    uint32_t value;
} Term;

// Columns as terms until the sizes of all axes are known.
enum { TERMS_MAX = 256 };
typedef struct Reader {
    const char *text;
    size_t length, at;
    const char *error;
    LayoutAxisFind find;
    void *context;
    unsigned nterm;
    uint8_t nin[IN_DIMS + 1];
    Term term[TERMS_MAX];
} Reader;

static void read_space(Reader *r) {
    while (r->at < r->length && (r->text[r->at] == ' ' || r->text[r->at] == '\t')) {
        r->at++;
    }
}

static bool read_char(Reader *r, char c) {
    read_space(r);
    if (r->at < r->length && r->text[r->at] == c) {
        r->at++;
        return true;
    }
    return false;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.';
}

static size_t read_name(Reader *r, const char **name) {
    read_space(r);
    *name = r->text + r->at;
    size_t from = r->at;
    while (r->at < r->length && is_name(r->text[r->at])) {
        r->at++;
    }
    return r->at - from;
}

static bool fail(Reader *r, const char *message) {
    r->error = r->error == NULL ? message : r->error;
    return false;
}

static bool read_value(Reader *r, uint32_t *value) {
    uint64_t v = 0;
    read_space(r);
    size_t from = r->at;
    while (r->at < r->length && is_digit(r->text[r->at]) && v <= UINT32_MAX) {
        v = v * 10 + (uint64_t)(r->text[r->at++] - '0');
    }
    if (r->at == from || v == 0 || v > UINT32_MAX) {
        return fail(r, "expected a positive number");
    }
    *value = (uint32_t)v;
    return true;
}

// AXIS ":" INT
static bool read_term(Reader *r, unsigned dim) {
    const char *name;
    size_t n = read_name(r, &name);
    Term term = {.dim = (uint8_t)dim, .bit = r->nin[dim]};
    if (n == 0) {
        return fail(r, "expected an axis");
    }
    if (!r->find(r->context, name, n, &term.axis)) {
        r->at -= n;
        return fail(r, "unknown axis in layout");
    }
    if (!read_char(r, ':')) {
        return fail(r, "expected ':' behind the axis");
    }
    if (!read_value(r, &term.value)) {
        return false;
    }
    if (r->nterm == TERMS_MAX) {
        return fail(r, "layout too long");
    }
    r->term[r->nterm++] = term;
    return true;
}

static bool read_basis(Reader *r, unsigned dim) {
    unsigned limit = dim == DIM_REP ? (unsigned)LAYOUT_REPS_MAX : (unsigned)LAYOUT_BITS_MAX;
    if (r->nin[dim] == limit) {
        return fail(r, "too many bits in one dimension");
    }
    read_space(r);
    if (dim != DIM_REP && r->at < r->length && r->text[r->at] == '0') {
        r->at++;
    } else {
        if (!read_term(r, dim)) {
            return false;
        }
        while (dim != DIM_REP && read_char(r, '^')) {
            if (!read_term(r, dim)) {
                return false;
            }
        }
    }
    r->nin[dim]++;
    return true;
}

// The dimension whose name and "(" come next, or -1 without moving.
static int read_dim(Reader *r) {
    size_t from = r->at;
    const char *name;
    size_t n = read_name(r, &name);
    for (unsigned d = 0; d <= DIM_REP; d++) {
        const char *want = d == DIM_REP ? "rep" : dim_name[d];
        if (strlen(want) == n && memcmp(want, name, n) == 0 && read_char(r, '(')) {
            return (int)d;
        }
    }
    r->at = from;
    return -1;
}

static bool read_groups(Reader *r) {
    unsigned seen = 0;
    for (int d = read_dim(r); d >= 0; d = read_dim(r)) {
        if ((seen >> d & 1) != 0) {
            return fail(r, "dimension given twice");
        }
        seen |= 1u << d;
        if (read_char(r, ')')) {
            continue;
        }
        do {
            if (!read_basis(r, (unsigned)d)) {
                return false;
            }
        } while (read_char(r, ','));
        if (!read_char(r, ')')) {
            return fail(r, "expected ',' or ')' in layout");
        }
    }
    return true;
}

// Highest bit of an axis's columns and its odd factor, as a size.
static bool reader_size(const Reader *r, uint16_t axis, uint32_t *size) {
    uint32_t rep = 1, offsets = 0;
    for (unsigned i = 0; i < r->nterm; i++) {
        if (r->term[i].axis != axis) {
            continue;
        }
        if (r->term[i].dim != DIM_REP) {
            offsets |= r->term[i].value;
        } else if (rep != 1 || r->term[i].value % 2 == 0 || r->term[i].value == 1 ||
                   r->term[i].value > UINT16_MAX) {
            return false;
        } else {
            rep = r->term[i].value;
        }
    }
    unsigned bits = offsets == 0 ? 0 : 32u - (unsigned)__builtin_clz(offsets);
    if (((uint64_t)rep << bits) > UINT32_MAX) {
        return false;
    }
    *size = rep << bits;
    return true;
}

static bool reader_draft(Reader *r, Draft *draft) {
    for (unsigned i = 0; i < r->nterm; i++) {
        AxisSize size = {.axis = r->term[i].axis};
        if (layout_axis_index(&draft->l, size.axis) >= 0) {
            continue;
        }
        if (!reader_size(r, size.axis, &size.size)) {
            return fail(r, "a rep is odd, larger than 1 and given once an axis");
        }
        draft_axes(draft, &size, 1);
        if (draft->bad) {
            return fail(r, "too many axes or elements in layout");
        }
    }
    for (unsigned d = 0; d < IN_DIMS; d++) {
        draft_push_zero(draft, d, r->nin[d]);
    }
    for (unsigned i = 0; i < r->nterm; i++) {
        const Term *t = &r->term[i];
        if (t->dim != DIM_REP) {
            int index = layout_axis_index(&draft->l, t->axis);
            draft->l.col[t->dim][t->bit] ^= t->value << layout_axis_shift(&draft->l, index);
        }
    }
    return true;
}

const Layout *layout_parse(LayoutTable *table, const char *text, size_t length, size_t *at,
                           LayoutAxisFind find, void *context, const char **error) {
    Reader r = {.text = text, .length = length, .at = *at, .find = find, .context = context};
    Draft draft = {0};
    const Layout *l = NULL;
    if (read_groups(&r) && reader_draft(&r, &draft)) {
        l = draft_finish(table, &draft);
        if (l == NULL) {
            fail(&r, "layout leaves elements without a place");
        }
    }
    *at = r.at;
    *error = r.error;
    return l;
}
