// Wrong IR: the exact message for each text in tests/corpus/ir/wrong.txt, from the parser, the
// verifier or the proof of the protocol; and that each message of the verifier has such a text.
#include "ir_corpus.h"

#include "ir/pass.h"
#include "lang/base/vec.h"

typedef VEC(char *) TextVec;

static Arena *kept;
static TextVec messages; // that the corpus gives

static const char *message_of(Arena *arena, const char *title, const char *text) {
    const char *error = NULL;
    Module *m = ir_parse(arena, interner_new(arena), text, strlen(text), &error);
    if (!m || !ir_verify(arena, m, &error))
        return error;
    Diags *diags = diags_new(arena, source_map_new(arena), NULL);
    PassOptions options = {0};
    PassCtx ctx = {.module = m, .options = &options, .scratch = arena, .diags = diags};
    for (int i = 0; i < m->nkernel; i++)
        if (!pass_protocol(&ctx, m->kernel[i]))
            return diag_message(diags_at(diags, 0));
    cr_expect(false, "%s is accepted", title);
    return "";
}

static CorpusGot wrong(Arena *arena, const char *title, const char *text) {
    const char *message = message_of(arena, title, text);
    vec_push(kept, &messages, arena_strdup(kept, message));
    return (CorpusGot){NULL, arena_printf(arena, "%s\n", message)};
}

// --- the messages of the sources ---

// What only IR that is built wrong gives, or a text of many thousand lines.
static const char *const built[] = {
    "a result is not a value of this kernel",
    "%%%s is defined twice",
    "axis %s is declared twice",
    "@%s is not a memory of this kernel",
    "@%s is defined twice",
    "a type is missing",
    "a type names an axis of another kernel",
    "%d values are expected",
    "the operands of a binder are out of place",
    "%d regions are expected",
    "a region has the wrong arguments",
    "a launch has one scalar binder and no result",
    "a result does not know its op",
    "regions nest too deep",
    "the op is not linked into its region",
    "a dim without an axis",
    "a tensor parameter is malformed",
    "a parameter is malformed",
    "an operand is missing",
    "an operand is of another kernel",
    "axis %s is of another kernel",
    "an operand is malformed",
    "an axis is of another kernel",
    "a renamed axis is of another kernel",
    "two memories are expected",
    "@%s takes a position, not an index",
    "a channel has buffers",
    "one memory is expected",
    "the axis does not know its window",
    "the tensor is malformed",
    "the tensor does not know its dims",
    "the buffer is malformed",
    "the stop condition is missing",
    "one index per axis is needed",
    "no such form",
    "`%s` has no attribute `%s`",
    "the op has no result",
    "a result is missing",
    "the kind is out of range",
    "the op defines %s memory",
    "no such rule",
    // Limits of the parser.
    "too many operands",
    "too many axes",
    "too many memories",
    "too many kernels",
};

static bool is_built(const char *format) {
    for (size_t i = 0; i < sizeof built / sizeof *built; i++)
        if (strcmp(built[i], format) == 0)
            return true;
    return false;
}

// The message has the format's fixed parts, in their order, and ends with the last one (`tail`: or
// goes on).
static bool matches(const char *format, const char *message, bool tail) {
    const char *at = message;
    while (*format) {
        if (*format == '%' && format[1] != '%') {
            format += 2;
            continue;
        }
        char part[256];
        size_t n = 0;
        while (*format && !(*format == '%' && format[1] != '%') && n + 1 < sizeof part) {
            format += *format == '%';
            part[n++] = *format++;
        }
        part[n] = 0;
        at = strstr(at, part);
        if (!at)
            return false;
        at += n;
        if (!*format && *at && !tail)
            return false;
    }
    return true;
}

// The string literal at `at`, pieces joined; NULL when there is none.
static char *literal(Arena *arena, const char *at) {
    VEC(char) text = {0};
    while (*at == '"') {
        for (at++; *at != '"'; at++)
            vec_push(arena, &text, *at);
        for (at++; *at == ' ' || *at == '\n';)
            at++;
    }
    vec_push(arena, &text, 0);
    return text.len > 1 ? text.data : NULL;
}

// Every message that follows a `call` in the source.
static int check_source(const char *path, const char *call, bool tail) {
    Arena *arena = arena_new("source");
    int count = 0;
    for (const char *at = corpus_read(arena, path); (at = strstr(at, call));) {
        at += strlen(call);
        at += strspn(at, " \n");
        const char *format = literal(arena, at);
        if (!format || strcmp(format, "%s") == 0)
            continue;
        bool found = is_built(format);
        for (uint32_t i = 0; i < messages.len && !found; i++)
            found = matches(format, messages.data[i], tail);
        cr_expect(found, "%s: no wrong text for `%s`", path, format);
        count++;
    }
    arena_free(arena);
    return count;
}

Test(ir_wrong, messages) {
    kept = arena_new("messages");
    corpus_run("tests/corpus/ir/wrong.txt", wrong);
    cr_expect(check_source("ir/verify.c", "verify_fail(v,", false) > 30);
    cr_expect(check_source("ir/verify_op.c", "verify_fail(v,", false) > 50);
    cr_expect(check_source("ir/infer.c", "refuse(why,", false) > 20);
    static const char *const rules[] = {"A2", "C1", "C2", "C4", "C5", "C6", "R1"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char call[16];
        snprintf(call, sizeof call, ", \"%s\",", rules[i]);
        cr_expect(check_source("ir/pass_protocol.c", call, true) > 0);
    }
    static const char *const fences[] = {"A2", "F1", "F2", "F3"};
    for (size_t i = 0; i < sizeof fences / sizeof *fences; i++) {
        char call[16];
        snprintf(call, sizeof call, ", \"%s\",", fences[i]);
        cr_expect(check_source("ir/protocol_fences.c", call, true) > 0);
    }
    static const char *const shown[] = {"B2", "C3", "R2"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        char call[16];
        snprintf(call, sizeof call, ", \"%s\",", shown[i]);
        cr_expect(check_source("ir/protocol_static.c", call, true) > 0);
    }
    arena_free(kept);
}

// The same of the parser. Its limits are no messages that a short text gives.
Test(ir_wrong, unread) {
    static const char *const files[] = {"ir/lex.c", "ir/parse.c", "ir/parse_param.c",
                                        "ir/parse_ref.c"};
    static const char *const calls[] = {"parse_fail(p, &p->tok,", "parse_fail(p, &at,",
                                        "parse_fail(p, &d->at,",  "parse_fail(p, &d.at,",
                                        "parse_fail(p, at,",      "parse_fail(p, t,",
                                        "parse_fail(p, &t,"};
    kept = arena_new("messages");
    messages = (TextVec){0};
    corpus_run("tests/corpus/ir/unread.txt", wrong);
    int count = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        for (size_t j = 0; j < sizeof calls / sizeof *calls; j++)
            count += check_source(files[i], calls[j], false);
    cr_expect(count > 50);
    arena_free(kept);
}

// The proof accepts what is right: a kernel with roles, and the examples of the ops.
static CorpusGot right(Arena *arena, const char *title, const char *text) {
    const char *error = NULL;
    Module *m = ir_parse(arena, interner_new(arena), text, strlen(text), &error);
    cr_assert(m, "%s: %s", title, error);
    Diags *diags = diags_new(arena, source_map_new(arena), NULL);
    PassOptions options = {0};
    PassCtx ctx = {.module = m, .options = &options, .scratch = arena, .diags = diags};
    bool ok = pass_protocol(&ctx, m->kernel[0]);
    cr_expect(ok, "%s: %s", title, ok ? "" : diag_message(diags_at(diags, 0)));
    return (CorpusGot){NULL, NULL};
}

Test(ir_wrong, accepted) {
    Arena *arena = arena_new("test");
    right(arena, "linear_gelu", corpus_read(arena, "tests/corpus/placed/linear_gelu_sm90a.tir"));
    int count = 0;
    for (char *rest = corpus_cut(corpus_read(arena, "tests/corpus/ir/placed.txt"), "=== "); rest;) {
        char *title = rest, *text = corpus_cut(title, "\n");
        rest = corpus_cut(text, "\n=== ");
        corpus_cut(text, "\n---\n");
        right(arena, title, text);
        count++;
    }
    cr_expect(count > 10);
    arena_free(arena);
}
