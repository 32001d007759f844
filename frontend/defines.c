/* `-D NAME=value` and `-D kernel.NAME=value`: what they bind, and those that bind nothing.
 *
 * Input: the defines and the kernels of the file. Output: the value for a name, or reports.
 * Invariant: a define that reaches no generic and no schedule entry of the file is an error, and so
 * are two values for one name. A name that only some of the kernels have is fine.
 */
#include "frontend/fe.h"
#include "lang/base/numeric.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A define in its parts; they point into the text. */
typedef struct Define {
    const char *kernel; /* NULL: of every kernel */
    const char *name, *value;
    size_t kernel_length, name_length;
} Define;

static bool define_split(const char *text, Define *out) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return false;
    const char *dot = memchr(text, '.', (size_t)(equals - text));
    *out = (Define){.name = dot ? dot + 1 : text, .value = equals + 1};
    out->name_length = (size_t)(equals - out->name);
    out->kernel = dot ? text : NULL;
    out->kernel_length = dot ? (size_t)(dot - text) : 0;
    return out->name_length > 0;
}

static bool is_text(const char *text, size_t length, const char *name) {
    return strlen(name) == length && !memcmp(text, name, length);
}

bool define_find(Fe *fe, Str kernel, Str name, const char **value) {
    const char *const *defines = fe->options->defines;
    bool found = false;
    for (size_t i = 0; defines && defines[i]; i++) {
        Define d;
        if (!define_split(defines[i], &d) || !is_text(d.name, d.name_length, name))
            continue;
        bool own = d.kernel && is_text(d.kernel, d.kernel_length, kernel);
        if (!own && (d.kernel || found))
            continue;
        *value = d.value;
        found = true;
        if (own)
            return true;
    }
    return found;
}

/* --- values --------------------------------------------------------------------------------- */

/* As in a text, with a sign: decimal without a leading 0, or 0x. */
bool define_integer(const char *text, DType type, int64_t *value) {
    bool negative = *text == '-';
    const char *digits = text + negative;
    bool hex = digits[0] == '0' && digits[1] == 'x';
    const char *set = hex ? "0123456789abcdefABCDEF" : "0123456789";
    digits += hex ? 2 : 0;
    if (!*digits || digits[strspn(digits, set)] || (!hex && digits[0] == '0' && digits[1]))
        return false;
    errno = 0;
    uint64_t size = strtoull(digits, NULL, hex ? 16 : 10);
    if (errno)
        return false;
    uint32_t bits = dtype_bits(type);
    uint64_t most = UINT64_MAX >> (64 - bits);
    if (dtype_is_signed(type))
        most = (most >> 1) + negative;
    else if (negative && size > 0)
        return false;
    *value = negative ? (int64_t)(0 - size) : (int64_t)size;
    return size <= most;
}

/* As in a text, with a sign; a number that the type would round to infinity is none. */
bool define_float(const char *text, DType type, double *value) {
    const char *digits = text + (*text == '-');
    locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    char *end;
    *value = c ? strtod_l(text, &end, c) : strtod(text, &end);
    if (c)
        freelocale(c);
    bool is_word = !strcmp(digits, "inf") || !strcmp(digits, "nan");
    bool is_number = (*digits >= '0' && *digits <= '9' && !strpbrk(digits, "xX")) || is_word;
    return is_number && !*end && (is_word || !isinf(numeric_round(type, *value)));
}

/* --- what can be defined -------------------------------------------------------------------- */

typedef struct Candidate {
    const char *name;
    int distance;
} Candidate;

typedef VEC(Candidate) CandidateVec;

static void add_candidate(Fe *fe, CandidateVec *list, const char *name, const char *wanted) {
    for (uint32_t i = 0; i < list->len; i++)
        if (!strcmp(list->data[i].name, name))
            return;
    vec_push(fe->arena, list, ((Candidate){name, name_distance(wanted, name)}));
}

static void add_names(Fe *fe, CandidateVec *list, const Decl *kernel, const char *wanted) {
    for (uint32_t i = 0; i < kernel->kernel.generics.len; i++)
        add_candidate(fe, list, kernel->kernel.generics.data[i].name.text, wanted);
    for (uint32_t i = 0; i < kernel->kernel.schedules.len; i++) {
        const AstSchedule *s = &kernel->kernel.schedules.data[i];
        for (uint32_t k = 0; k < s->entries.len; k++) {
            const AstEntry *e = &s->entries.data[k];
            const char *name = e->name.text;
            if (e->has_args && e->args.len == 1)
                name = arena_printf(fe->arena, "%s(%s)", name, e->args.data[0].text);
            add_candidate(fe, list, name, wanted);
        }
    }
}

/* "`D`, `T` or `warps`", the nearest to what was written first. */
static const char *candidates_text(Fe *fe, const CandidateVec *list) {
    enum { SHOWN = 12 };
    const char *text = "";
    uint32_t shown = list->len < SHOWN ? list->len : SHOWN;
    for (uint32_t i = 0; i < shown; i++) {
        uint32_t best = i;
        for (uint32_t k = i + 1; k < list->len; k++)
            if (list->data[k].distance < list->data[best].distance)
                best = k;
        Candidate nearest = list->data[best];
        memmove(&list->data[i + 1], &list->data[i], (best - i) * sizeof nearest);
        list->data[i] = nearest;
        const char *before = i == 0 ? "" : i + 1 == list->len ? " or " : ", ";
        text = arena_printf(fe->arena, "%s%s`%s`", text, before, nearest.name);
    }
    return shown < list->len ? arena_printf(fe->arena, "%s, ...", text) : text;
}

static bool has_name(const CandidateVec *list, const char *name) {
    for (uint32_t i = 0; i < list->len; i++)
        if (!strcmp(list->data[i].name, name))
            return true;
    return false;
}

/* --- reports -------------------------------------------------------------------------------- */

static void check_define(Fe *fe, const AstFile *file, const char *text, const Define *d) {
    CandidateVec names = {0}, kernels = {0};
    const char *name = arena_strndup(fe->arena, d->name, d->name_length);
    const char *kernel = d->kernel ? arena_strndup(fe->arena, d->kernel, d->kernel_length) : NULL;
    const Decl *own = NULL;
    for (uint32_t i = 0; i < file->decls.len; i++) {
        const Decl *decl = file->decls.data[i];
        if (decl->kind != DECL_KERNEL)
            continue;
        if (kernel)
            add_candidate(fe, &kernels, decl->name.text, kernel);
        if (kernel && strcmp(decl->name.text, kernel))
            continue;
        own = decl;
        add_names(fe, &names, decl, name);
    }
    if (kernel && !own) {
        Diag *e = fe_error(fe, DIAG_BAD_DEFINE, (Span){0}, "-D %s: the file has no kernel `%s`",
                           text, kernel);
        if (kernels.len > 0)
            diag_hint(fe->diags, e, "write %s", candidates_text(fe, &kernels));
        return;
    }
    if (has_name(&names, name))
        return;
    const char *whose = kernel ? arena_printf(fe->arena, "`%s` has", kernel) : "no kernel has";
    Diag *e = fe_error(fe, DIAG_BAD_DEFINE, kernel ? own->name.span : (Span){0},
                       "-D %s: %s %sgeneric or schedule entry `%s`", text, whose,
                       kernel ? "no " : "a ", name);
    if (names.len > 0)
        diag_hint(fe->diags, e, "write %s", candidates_text(fe, &names));
    else
        diag_hint(fe->diags, e, "there is nothing to define: no generics and no schedule");
}

static bool defines_differ(const char *a, const char *b) {
    size_t length = (size_t)(strchr(a, '=') - a) + 1;
    return !strncmp(a, b, length) && strcmp(a, b);
}

void defines_check(Fe *fe, const AstFile *file) {
    const char *const *defines = fe->options->defines;
    bool any = false;
    for (uint32_t i = 0; i < file->decls.len; i++)
        any |= file->decls.data[i]->kind == DECL_KERNEL;
    for (size_t i = 0; any && defines && defines[i]; i++) {
        Define d;
        if (!define_split(defines[i], &d)) {
            Diag *e = fe_error(fe, DIAG_BAD_DEFINE, (Span){0}, "-D %s: this gives no name a value",
                               defines[i]);
            diag_hint(fe->diags, e, "write `-D NAME=value`");
            continue;
        }
        size_t same = 0;
        while (same < i &&
               !(strchr(defines[same], '=') && defines_differ(defines[same], defines[i])))
            same++;
        if (same < i)
            fe_error(fe, DIAG_BAD_DEFINE, (Span){0}, "-D %s and -D %s are two values for one name",
                     defines[same], defines[i]);
        else
            check_define(fe, file, defines[i], &d);
    }
}
