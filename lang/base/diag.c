/* Collecting diagnostics: see diag.h. Printing is in diag_print.c. */
#include "lang/base/diag_impl.h"

#include <string.h>

enum { DIAG_ERROR_LIMIT = 50, DIAG_OTHER_LIMIT = 500 };

typedef struct DiagRow {
    const char *name;
    DiagSeverity severity;
    const char *title;
} DiagRow;

static const DiagRow rows[] = {
#define DIAG(id, text, severity, title) [DIAG_##id] = {text, DIAG_SEVERITY_##severity, title},
#include "lang/base/diags.def"
#undef DIAG
};

typedef struct Explanation {
    const char *text, *wrong, *right;
} Explanation;

static const Explanation explanations[DIAG_COUNT_] = {
#define EXPLAIN(id, text, wrong, right) [DIAG_##id] = {text, wrong, right},
#include "lang/base/explanations.def"
#undef EXPLAIN
};

const char *diag_id_explanation(DiagId id) {
    return explanations[id].text;
}

const char *diag_id_example(DiagId id, bool right) {
    return right ? explanations[id].right : explanations[id].wrong;
}

const char *diag_id_name(DiagId id) {
    return rows[id].name;
}

const char *diag_id_title(DiagId id) {
    return rows[id].title;
}

DiagSeverity diag_id_severity(DiagId id) {
    return rows[id].severity;
}

bool diag_id_parse(const char *name, DiagId *id) {
    for (uint32_t i = 0; i < DIAG_COUNT_; i++)
        if (strcmp(rows[i].name, name) == 0) {
            *id = (DiagId)i;
            return true;
        }
    return false;
}

const char *diag_severity_name(DiagSeverity severity) {
    switch (severity) {
    case DIAG_SEVERITY_ERROR:
        return "error";
    case DIAG_SEVERITY_WARNING:
        return "warning";
    case DIAG_SEVERITY_PERF:
        return "perf";
    case DIAG_SEVERITY_NOTE:
        return "note";
    }
    return "error";
}

Diags *diags_new(Arena *arena, const SourceMap *sources, const DiagOptions *options) {
    Diags *diags = ARENA_NEW(arena, Diags);
    diags->arena = arena;
    diags->sources = sources;
    if (options)
        diags->options = *options;
    if (diags->options.error_limit == 0)
        diags->options.error_limit = DIAG_ERROR_LIMIT;
    return diags;
}

/* --- options -------------------------------------------------------------------------------- */

static bool has_level(DiagId id) {
    return rows[id].severity == DIAG_SEVERITY_WARNING || rows[id].severity == DIAG_SEVERITY_PERF;
}

static bool set_levels(DiagOptions *options, const char *name, DiagLevel level) {
    DiagId id;
    if (diag_id_parse(name, &id)) {
        if (has_level(id))
            options->level[id] = level;
        return has_level(id);
    }
    if (strcmp(name, "perf") != 0)
        return false;
    for (uint32_t i = 0; i < DIAG_COUNT_; i++)
        if (rows[i].severity == DIAG_SEVERITY_PERF)
            options->level[i] = level;
    return true;
}

bool diag_options_flag(DiagOptions *options, const char *flag) {
    if (strncmp(flag, "error=", 6) == 0)
        return set_levels(options, flag + 6, DIAG_LEVEL_ERROR);
    if (strncmp(flag, "no-", 3) == 0 && set_levels(options, flag + 3, DIAG_LEVEL_OFF))
        return true;
    if (strcmp(flag, "error") != 0)
        return set_levels(options, flag, DIAG_LEVEL_ON); /* the id may start with `no-` itself */
    for (uint32_t i = 0; i < DIAG_COUNT_; i++)
        if (rows[i].severity == DIAG_SEVERITY_WARNING && options->level[i] == DIAG_LEVEL_ON)
            options->level[i] = DIAG_LEVEL_ERROR;
    return true;
}

/* --- reports -------------------------------------------------------------------------------- */

static DiagSeverity severity_under_options(const DiagOptions *options, DiagId id) {
    return options->level[id] == DIAG_LEVEL_ERROR ? DIAG_SEVERITY_ERROR : rows[id].severity;
}

static bool is_known(const Diags *diags, const Diag *diag) {
    for (uint32_t i = 0; i < diags->list.len; i++) {
        const Diag *other = diags->list.data[i];
        if (other->id == diag->id && other->span.begin == diag->span.begin &&
            other->span.end == diag->span.end && strcmp(other->message, diag->message) == 0)
            return true;
    }
    return false;
}

Diag *diag_vadd(Diags *diags, DiagId id, Span span, const char *format, va_list args) {
    Diag *diag = ARENA_NEW(diags->arena, Diag);
    diag->id = id;
    diag->span = span;
    diag->severity = severity_under_options(&diags->options, id);
    diag->order = diags->list.len;
    diag->message = arena_vprintf(diags->arena, format, args);
    if (diags->options.level[id] == DIAG_LEVEL_OFF || is_known(diags, diag))
        return diag;
    if (diag->severity == DIAG_SEVERITY_ERROR) {
        if (diags->errors++ >= diags->options.error_limit)
            return diag;
    } else if (diags->others++ >= DIAG_OTHER_LIMIT) {
        return diag;
    }
    vec_push(diags->arena, &diags->list, diag);
    return diag;
}

Diag *diag_add(Diags *diags, DiagId id, Span span, const char *format, ...) {
    va_list args;
    va_start(args, format);
    Diag *diag = diag_vadd(diags, id, span, format, args);
    va_end(args);
    return diag;
}

void diag_note(Diags *diags, Diag *diag, Span span, const char *format, ...) {
    va_list args;
    va_start(args, format);
    DiagExtra note = {.span = span, .text = arena_vprintf(diags->arena, format, args)};
    va_end(args);
    vec_push(diags->arena, &diag->notes, note);
}

void diag_hint(Diags *diags, Diag *diag, const char *format, ...) {
    va_list args;
    va_start(args, format);
    DiagExtra hint = {.text = arena_vprintf(diags->arena, format, args)};
    va_end(args);
    vec_push(diags->arena, &diag->hints, hint);
}

void diag_copy(Diags *diags, const Diag *diag) {
    Diag *copy = diag_add(diags, diag->id, diag->span, "%s", diag->message);
    for (uint32_t i = 0; i < diag->notes.len; i++)
        diag_note(diags, copy, diag->notes.data[i].span, "%s", diag->notes.data[i].text);
    for (uint32_t i = 0; i < diag->hints.len; i++)
        diag_hint(diags, copy, "%s", diag->hints.data[i].text);
}

Span diag_noted(const Diag *diag) {
    return diag->notes.len > 0 ? diag->notes.data[0].span : (Span){0};
}

bool diags_has(const Diags *diags, DiagId id, Span span, Span noted) {
    for (uint32_t i = 0; i < diags->list.len; i++) {
        const Diag *d = diags->list.data[i];
        if (d->id == id && d->span.begin == span.begin && diag_noted(d).begin == noted.begin)
            return true;
    }
    return false;
}

uint32_t diags_error_count(const Diags *diags) {
    return diags->errors;
}

uint32_t diags_count(const Diags *diags) {
    return diags->list.len;
}

bool diags_has_errors(const Diags *diags) {
    return diags->errors > 0;
}

bool diags_full(const Diags *diags) {
    return diags->errors > diags->options.error_limit;
}

const Diag *diags_at(const Diags *diags, uint32_t i) {
    return diags->list.data[i];
}

DiagId diag_id(const Diag *diag) {
    return diag->id;
}

DiagSeverity diag_severity(const Diag *diag) {
    return diag->severity;
}

Span diag_span(const Diag *diag) {
    return diag->span;
}

const char *diag_message(const Diag *diag) {
    return diag->message;
}
