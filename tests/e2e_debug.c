// What prints and assertions write: tests/corpus/frontend/debug.fk.
#include "tests/e2e_corpus.h"

enum { N = 301, M = 7, LINES = 400 };

static const Corpus debug = {.file = "debug.fk", .debug = true}, plain = {.file = "debug.fk"};

// Standard output of one launch, its lines sorted: their order is not specified.
typedef struct Output {
    FuseRtStatus status;
    int n;
    char *line[LINES];
    char *text;
} Output;

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static Output output_of(const Corpus *c, const char *kernel, const char *on, int nargs,
                        const FuseRtArg *args) {
    Output out = {.text = calloc(1, 1 << 16)};
    FILE *file = tmpfile();
    cr_assert(file);
    fflush(stdout);
    int keep = dup(1);
    dup2(fileno(file), 1);
    out.status = corpus_launch(c, kernel, on, nargs, args);
    fflush(stdout);
    dup2(keep, 1);
    close(keep);
    rewind(file);
    out.text[fread(out.text, 1, (1 << 16) - 1, file)] = '\0';
    fclose(file);
    for (char *s = strtok(out.text, "\n"); s && out.n < LINES; s = strtok(NULL, "\n"))
        out.line[out.n++] = s;
    qsort(out.line, (size_t)out.n, sizeof *out.line, by_text);
    return out;
}

static bool has_line(const Output *out, const char *line) {
    return bsearch(&line, out->line, (size_t)out->n, sizeof *out->line, by_text) != NULL;
}

Test(e2e_debug, one_line_for_each_element) {
    Array *x = array_new(DT_F32, N, -1, -1), *y = array_new(DT_F32, N, -1, -1);
    for (int i = 0; i < N; i++)
        array_set(x, i, i * 0.1);
    FOR_DEVICES(on) {
        Output out = output_of(&debug, "prints", on, ARGS(arg_tensor(x), arg_tensor(y)));
        cr_assert_eq(out.status, FUSE_RT_OK, "%s", fuse_rt_last_error());
        cr_assert_eq(out.n, N + 1, "%s: %d lines", on, out.n);
        cr_assert(has_line(&out, "N is 301 {braces} 100%"), "%s", on);
        for (int i = 0; i < N; i++) {
            char line[100];
            double v = 2 * array_get(x, i);
            snprintf(line, sizeof line, "n=%d v=%.9g big=%d", i, v, v > 4);
            cr_assert(has_line(&out, line), "%s: %s", on, line);
        }
        free(out.text);
    }
    free(x), free(y);
}

Test(e2e_debug, only_when_asked) {
    Array *x = array_new(DT_F32, N, -1, -1), *y = array_new(DT_F32, N, -1, -1);
    FOR_DEVICES(on) {
        bool evaluates = strcmp(on, "eval") == 0;
        Output out = output_of(&plain, "prints", on, ARGS(arg_tensor(x), arg_tensor(y)));
        cr_assert_eq(out.n, evaluates ? N + 1 : 0, "%s: %d lines", on, out.n);
        free(out.text);
    }
    free(x), free(y);
}

Test(e2e_debug, digits_of_types) {
    Array *h = array_new(DT_F16, 3, -1, -1), *b = array_new(DT_U8, 3, -1, -1);
    Array *w = array_new(DT_U64, 3, -1, -1), *y = array_new(DT_F16, 3, -1, -1);
    array_set(h, 0, 0.1);
    array_set(h, 1, -INFINITY);
    array_set(h, 2, 65504);
    array_set_int(b, 0, 255);
    array_set_int(w, 0, -1);
    FOR_DEVICES(on) {
        Output out = output_of(&debug, "halves_and_bytes", on,
                               ARGS(arg_tensor(h), arg_tensor(b), arg_tensor(w), arg_tensor(y)));
        cr_assert_eq(out.n, 3, "%s: %d lines", on, out.n);
        cr_expect(has_line(&out, "0.099976 255 18446744073709551615"), "%s: %s", on, out.line[1]);
        cr_expect(has_line(&out, "-inf 0 0"), "%s: %s", on, out.line[0]);
        cr_expect(has_line(&out, "65504 0 0"), "%s: %s", on, out.line[2]);
        free(out.text);
    }
    free(h), free(b), free(w), free(y);
}

// The report has the place, the text and the element, which eval has in the error.
Test(e2e_debug, assertions) {
    Array *x = array_new(DT_F32, M, N, -1), *y = array_new(DT_F32, M, N, -1);
    FOR_DEVICES(on) {
        Output out = output_of(&debug, "checked", on, ARGS(arg_tensor(x), arg_tensor(y)));
        cr_assert_eq(out.status, FUSE_RT_OK, "%s: %s", on, fuse_rt_last_error());
        cr_assert_eq(out.n, 0, "%s", on);
        free(out.text);
        array_set(x, 4 * N + 77, 10);
        out = output_of(&debug, "checked", on, ARGS(arg_tensor(x), arg_tensor(y)));
        const char *error = fuse_rt_last_error();
        cr_assert_neq(out.status, FUSE_RT_OK, "%s", on);
        cr_expect(strstr(error, "debug.fk:20") && strstr(error, "too large"), "%s: %s", on, error);
        if (strcmp(on, "eval") == 0)
            cr_expect(strstr(error, "N = 77, m = 4"), "%s: %s", on, error);
        else
            cr_expect(out.n == 1 && strstr(out.line[0], "debug.fk:20: assertion failed: too large, "
                                                        "at M = 4, N = 77"),
                      "%s: %d, %s", on, out.n, out.n ? out.line[0] : "");
        free(out.text);
        array_set(x, 4 * N + 77, 0);
    }
    free(x), free(y);
}

Test(e2e_debug, assertions_outside_nests) {
    Array *x = array_new(DT_F32, 3, 1, -1), *y = array_new(DT_F32, 3, 1, -1);
    Array *v = array_new(DT_F32, 5, -1, -1), *z = array_new(DT_F32, 5, -1, -1);
    for (int i = 0; i < 5; i++)
        array_set(v, i, 3 - i);
    FOR_DEVICES(on) {
        Output out = output_of(&debug, "checked", on, ARGS(arg_tensor(x), arg_tensor(y)));
        cr_assert_neq(out.status, FUSE_RT_OK, "%s", on);
        cr_expect(strstr(fuse_rt_last_error(), "too few columns"), "%s", fuse_rt_last_error());
        free(out.text);
        out = output_of(&debug, "logs", on, ARGS(arg_tensor(v), arg_tensor(z)));
        cr_assert_neq(out.status, FUSE_RT_OK, "%s", on);
        cr_expect(strstr(fuse_rt_last_error(), "not positive"), "%s", fuse_rt_last_error());
        free(out.text);
    }
    free(x), free(y), free(v), free(z);
}

Test(e2e_debug, ptx) {
    char *ptx = corpus_ptx(&debug, NULL);
    cr_expect(strstr(ptx, "vprintf") && strstr(ptx, "__assertfail"));
    free(ptx);
    ptx = corpus_ptx(&plain, NULL);
    cr_expect(!strstr(ptx, "vprintf") && !strstr(ptx, "__assertfail"));
    free(ptx);
}
