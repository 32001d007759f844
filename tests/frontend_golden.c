/* Tensor IR of the examples, and of kernels beside the goldens, compared with
 * tests/corpus/frontend/<name>.tir.
 *
 * With FUSE_UPDATE set the goldens are written anew; read the difference before committing it.
 */
#include "frontend_support.h"

#include <dirent.h>

typedef struct Golden {
    const char *name; /* of the golden, and of <name>.fk in examples/ or beside the golden */
    const char *defines[6];
} Golden;

static const Golden goldens[] = {
    {"axpy", {"T=bf16"}},          {"softmax", {"T=f32"}},
    {"linear_gelu", {"T=bf16"}},   {"layernorm", {"T=f16"}},
    {"bias_gelu", {"T=f32"}},      {"attention", {"T=bf16", "causal=true"}},
    {"conv_relu_pool", {"T=f16"}}, {"matmul", {"T=f16"}},
    {"gather", {"T=f32"}},         {"cross_entropy", {"T=bf16"}},
    {"segments", {"T=f32"}},       {"builtins", {NULL}},
    {"atomics", {NULL}},           {"debug", {NULL}},
    {"control", {NULL}},           {"precision", {NULL}},
    {"scan", {"T=f16"}},           {"assembler", {NULL}},
    {"topk", {"T=f16"}},
};

static void check_golden(const Golden *g) {
    Front f = front_new();
    char *text = front_read(f.arena, arena_printf(f.arena, "examples/%s.fk", g->name));
    if (!text)
        text = front_read(f.arena, arena_printf(f.arena, "tests/corpus/frontend/%s.fk", g->name));
    cr_assert_not_null(text, "%s", g->name);
    FrontendOptions options = {.defines = g->defines, .target = "sm_80"};
    front_lower(&f, arena_printf(f.arena, "%s.fk", g->name), text, &options);
    cr_assert_eq(diags_count(f.diags), 0, "%s", diags_text(f.diags, f.arena));
    IrText out = ir_print(f.arena, f.module, (IrPrintOptions){0});
    char *path = arena_printf(f.arena, "tests/corpus/frontend/%s.tir", g->name);
    char *expected = front_read(f.arena, path);
    if (front_updates())
        front_write(f.arena, path, out.data);
    else
        cr_expect(expected && !strcmp(out.data, expected), "%s has changed:\n%s", path, out.data);
    front_free(&f);
}

Test(frontend_golden, examples) {
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++)
        check_golden(&goldens[i]);
}

/* Every kernel of the parser's corpus lowers to IR that verifies and reads back. */
Test(frontend_golden, corpus_verifies) {
    static const char *const files[] = {"attention", "conv", "linear", "loss", "norm", "scatter"};
    static const char *const values[] = {"D=64", "PS=16", "R=8",        "causal=true", "S=16",
                                         "N=64", "T=f16", "inter=true", NULL};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        Front f = front_new();
        char *path = arena_printf(f.arena, "tests/corpus/parse/%s.fk", files[i]);
        char *text = front_read(f.arena, path);
        cr_assert_not_null(text, "%s", path);
        const char *defines[9] = {0};
        for (int k = 0, n = 0; values[k]; k++) {
            const char *name =
                arena_strndup(f.arena, values[k], (size_t)(strchr(values[k], '=') - values[k]));
            if (strstr(text, arena_printf(f.arena, "<%s: ", name)) ||
                strstr(text, arena_printf(f.arena, ", %s: ", name)))
                defines[n++] = values[k];
        }
        FrontendOptions options = {.defines = defines};
        front_lower(&f, path, text, &options);
        for (uint32_t k = 0; k < diags_count(f.diags); k++)
            cr_expect(diag_id(diags_at(f.diags, k)) == DIAG_UNSUPPORTED, "%s: %s", path,
                      diag_message(diags_at(f.diags, k)));
        cr_expect(f.module->nkernel > 0, "%s", path);
        front_free(&f);
    }
}

/* No warning fires on what is meant as it stands. */
static void check_quiet(const char *folder, const char *name) {
    static const char *const values[] = {"D=64", "PS=16", "R=8", "causal=true",
                                         "S=16", "N=64",  "E=8", "CH=64"};
    Front f = front_new();
    char *path = arena_printf(f.arena, "%s/%s", folder, name);
    char *text = front_read(f.arena, path);
    cr_assert_not_null(text, "%s", path);
    const char *defines[9] = {0};
    for (int k = 0, n = 0; k < 8; k++) {
        const char *start =
            arena_strndup(f.arena, values[k], (size_t)(strchr(values[k], '=') - values[k]));
        if (strstr(text, arena_printf(f.arena, "<%s: ", start)) ||
            strstr(text, arena_printf(f.arena, ", %s: ", start)))
            defines[n++] = values[k];
    }
    front_lower(&f, path, text, &(FrontendOptions){.defines = defines});
    for (uint32_t k = 0; k < diags_count(f.diags); k++) {
        const Diag *d = diags_at(f.diags, k);
        cr_expect(diag_severity(d) != DIAG_SEVERITY_WARNING, "%s: %s: %s", path,
                  diag_id_name(diag_id(d)), diag_message(d));
    }
    front_free(&f);
}

Test(frontend_golden, nothing_warns) {
    static const char *const folders[] = {"examples", "stdlib/std", "tests/corpus/parse",
                                          "tests/corpus/frontend"};
    int files = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[512];
        snprintf(path, sizeof path, FUSE_SOURCE_DIR "/%s", folders[i]);
        DIR *dir = opendir(path);
        cr_assert_not_null(dir, "%s", path);
        for (struct dirent *e; (e = readdir(dir));) {
            /* features.fk is for the parser alone: its names mean nothing. */
            if (strlen(e->d_name) < 4 || strcmp(e->d_name + strlen(e->d_name) - 3, ".fk") ||
                !strcmp(e->d_name, "features.fk"))
                continue;
            check_quiet(folders[i], e->d_name);
            files++;
        }
        closedir(dir);
    }
    cr_expect(files >= 25, "%d files", files);
}

Test(frontend_golden, instances_and_names) {
    Front f = front_new();
    front_lower(&f, "t.fk",
                "kernel a<T: float>(x: T[N]) -> (y: T[N]) { y = x; }\n"
                "kernel b(x: f32[N]) -> (y: f32[N]) { y = x; }\n",
                NULL);
    cr_assert_eq(f.module->nkernel, 4);
    static const char *const names[] = {"a.f16", "a.bf16", "a.f32", "b"};
    for (int i = 0; i < 4; i++)
        cr_expect_str_eq(f.module->kernel[i]->name, names[i]);
    front_free(&f);
    f = front_new();
    FrontendOptions only = {.kernel = "b"};
    front_lower(&f, "t.fk",
                "kernel a<T: float>(x: T[N]) -> (y: T[N]) { y = x; }\n"
                "kernel b(x: f32[N]) -> (y: f32[N]) { y = x; }\n",
                &only);
    cr_assert_eq(f.module->nkernel, 1);
    cr_expect_str_eq(f.module->kernel[0]->name, "b");
    front_free(&f);
}

static const ScheduleEntry *entry_of(const Schedule *s, const char *name) {
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->entry[i].name, name))
            return &s->entry[i];
    return NULL;
}

Test(frontend_golden, schedules) {
    static const char text[] =
        "kernel g(x: f32[M, K], w: f32[K, N]) -> (y: f32[M, N])\n"
        "    schedule { M = 128 | 64; warps = 4; order = grouped(8); split(K) = 4 | 2; }\n"
        "    schedule sm_90a { M = 256; persistent = true; }\n"
        "{ y = dot[K](x, w); }\n";
    Front f = front_new();
    front_lower(&f, "t.fk", text, &(FrontendOptions){.target = "sm_80"});
    cr_assert_eq(f.schedules.n, 1);
    cr_expect_eq(entry_of(&f.schedules.items[0], "M")->value, 128);
    cr_expect_str_eq(entry_of(&f.schedules.items[0], "order")->word, "grouped");
    cr_expect_eq(entry_of(&f.schedules.items[0], "order")->value, 8);
    cr_expect_str_eq(entry_of(&f.schedules.items[0], "split")->of, "K");
    cr_expect_eq(entry_of(&f.schedules.items[0], "split")->value, 4);
    cr_expect_null(entry_of(&f.schedules.items[0], "persistent"));
    front_free(&f);
    f = front_new();
    static const char *const defines[] = {"g.warps=8", NULL};
    front_lower(&f, "t.fk", text, &(FrontendOptions){.target = "sm_90a", .defines = defines});
    cr_expect_eq(entry_of(&f.schedules.items[0], "M")->value, 256);
    cr_expect_eq(entry_of(&f.schedules.items[0], "warps")->value, 8);
    cr_expect_eq(entry_of(&f.schedules.items[0], "persistent")->value, 1);
    front_free(&f);
}

static void count_stores(void *user, Op *op) {
    int *counts = user;
    if (op->kind != OP_STORE)
        return;
    bool in_nest = false;
    for (const Region *r = op->parent; r->owner; r = r->owner->parent)
        in_nest |= r->owner->kind == OP_PARALLEL;
    counts[in_nest ? 0 : 2]++;
    counts[1] += in_nest && op_attr(op, ATTR_det);
}

Test(frontend_golden, identities_accepted) {
    Front f = front_new();
    char *text = front_read(f.arena, "tests/corpus/frontend/identities.fk");
    cr_assert_not_null(text);
    front_lower(&f, "identities.fk", text, NULL);
    cr_expect(diags_count(f.diags) == 0, "%s", diags_text(f.diags, f.arena));
    front_free(&f);
}

/* Every store of a nest that is accepted carries its proof. */
Test(frontend_golden, races_accepted) {
    Front f = front_new();
    char *text = front_read(f.arena, "tests/corpus/frontend/races_accepted.fk");
    front_lower(&f, "races_accepted.fk", text, NULL);
    cr_assert_eq(diags_count(f.diags), 0, "%s", diags_text(f.diags, f.arena));
    int counts[3] = {0};
    for (int i = 0; i < f.module->nkernel; i++)
        ir_walk(f.module->kernel[i]->body, count_stores, counts);
    cr_expect_eq(counts[0], counts[1]);
    cr_expect(counts[0] >= 14);
    cr_expect(counts[2] >= 3);
    front_free(&f);
}

/* A resolver that knows two modules with one name in common. */
static bool two_modules(void *user, Arena *arena, const char *dotted, const char **name,
                        const char **text, size_t *len) {
    (void)user, (void)arena;
    if (strcmp(dotted, "my.a") && strcmp(dotted, "my.b"))
        return false;
    *name = dotted;
    *text = dotted[3] == 'a' ? "fn f(x) = x + 1;\n" : "import my.a;\nfn f(x) = a.f(x) * 2;\n";
    *len = strlen(*text);
    return true;
}

Test(frontend_golden, imports) {
    FrontendOptions options = {.import = two_modules};
    Front f = front_new();
    front_lower(&f, "t.fk",
                "import my.a;\nimport my.b;\n"
                "kernel k(x: f32[N]) -> (y: f32[N]) { y = a.f(x) + b.f(x); }\n",
                &options);
    cr_assert_eq(diags_count(f.diags), 0, "%s", diags_text(f.diags, f.arena));
    front_free(&f);
    f = front_new();
    front_lower(&f, "t.fk",
                "import my.a;\nimport my.b;\n"
                "kernel k(x: f32[N]) -> (y: f32[N]) { y = f(x); }\n",
                &options);
    cr_assert_eq(diags_count(f.diags), 1);
    cr_expect_eq(diag_id(diags_at(f.diags, 0)), DIAG_AMBIGUOUS);
    front_free(&f);
    f = front_new();
    front_lower(&f, "t.fk",
                "import my.a;\nfn f(x) = x;\n"
                "kernel k(x: f32[N]) -> (y: f32[N]) { y = f(x); }\n",
                &options);
    cr_assert_eq(diags_count(f.diags), 0, "%s", diags_text(f.diags, f.arena));
    front_free(&f);
}

Test(frontend_golden, import_folders) {
    static const char *const folders[] = {FUSE_SOURCE_DIR "/tests/corpus/frontend", NULL};
    FrontendOptions options = {.includes = folders};
    Front f = front_new();
    front_lower(&f, "t.fk",
                "import lib.shapes;\n"
                "kernel k(x: f32[N]) -> (y: f32[N]) { y = thrice(x); }\n",
                &options);
    cr_assert_eq(diags_count(f.diags), 0, "%s", diags_text(f.diags, f.arena));
    front_free(&f);
}

/* Every function of the library lowers, for every type of `float`. */
Test(frontend_golden, library) {
    Front f = front_new();
    char *text = front_read(f.arena, "tests/corpus/frontend/library.fk");
    front_lower(&f, "library.fk", text, NULL);
    cr_expect_eq(diags_count(f.diags), 0, "%s", diags_text(f.diags, f.arena));
    cr_expect_eq(f.module->nkernel, 11);
    front_free(&f);
}

/* One kernel with `-D`s: how many instances, or which report. */
static void check_defines(const char *define, int kernels, DiagId report) {
    const char *defines[] = {define, "k.D=8", "D=4", NULL};
    FrontendOptions options = {.defines = defines};
    Front f = front_new();
    front_lower(&f, "t.fk",
                "import std.nn;\n"
                "kernel k<T: float, D: i32, act: fn = relu>(x: T[N, D]) -> (y: T[N]) {\n"
                "    static_assert(D == 8);\n"
                "    y = act(sum[D](x));\n"
                "}\n",
                &options);
    cr_expect_eq(f.module->nkernel, kernels, "%s: %s", define, diags_text(f.diags, f.arena));
    if (kernels == 0)
        cr_expect_eq(diag_id(diags_at(f.diags, 0)), report, "%s", define);
    front_free(&f);
}

Test(frontend_golden, defines) {
    check_defines("T=f64", 1, DIAG_INTERNAL);
    check_defines("k.T=bf16", 1, DIAG_INTERNAL);
    check_defines("act=gelu", 3, DIAG_INTERNAL);
    check_defines("T=i32", 0, DIAG_BAD_DEFINE);
    check_defines("k.D=8", 3, DIAG_INTERNAL);
    check_defines("k.D=x", 0, DIAG_BAD_DEFINE); /* another is k.D=8 */
    check_defines("act=PI", 0, DIAG_BAD_DEFINE);
}

static void check_define_report(const char *first, const char *second, const char *expected) {
    const char *defines[] = {first, second, NULL};
    FrontendOptions options = {.defines = defines};
    Front f = front_new();
    front_lower(&f, "t.fk",
                "kernel f<T: float, D: i32 = 4>(x: T[N]) -> (y: T[N])\n"
                "    schedule { n = 64; } schedule cpu { warps = 1; }\n"
                "{ parallel n in tiles(N) { y[n] = x[n]; } }\n"
                "kernel g(x: f32[N]) -> (y: f32[N]) { y = x; }\n",
                &options);
    const char *text = diags_text(f.diags, f.arena);
    cr_expect_str_eq(text, expected, "-D %s:\n%s", first, text);
    front_free(&f);
}

/* What a define could have meant; it need not reach every kernel. */
Test(frontend_golden, defines_that_reach_nothing) {
    check_define_report("T=f16", "f.n=32", "");
    check_define_report("warps=2", "T=f32", ""); /* an entry for another target */
    check_define_report("T=f16", "T=f16", "");
    check_define_report("T=f16", "f.T=f32", "");
    check_define_report("DD=8", NULL,
                        "error[bad-define]: -D DD=8: no kernel has a generic or schedule entry "
                        "`DD`\n"
                        "hint: write `D`, `T`, `n` or `warps`\n");
    check_define_report("g.T=f16", NULL,
                        "t.fk:4:8: error[bad-define]: -D g.T=f16: `g` has no generic or schedule "
                        "entry `T`\n"
                        "    4 | kernel g(x: f32[N]) -> (y: f32[N]) { y = x; }\n"
                        "      |        ^\n"
                        "hint: there is nothing to define: no generics and no schedule\n");
    check_define_report("gg.T=f16", NULL,
                        "error[bad-define]: -D gg.T=f16: the file has no kernel `gg`\n"
                        "hint: write `g` or `f`\n");
    check_define_report("f.warp=2", NULL,
                        "t.fk:1:8: error[bad-define]: -D f.warp=2: `f` has no generic or schedule "
                        "entry `warp`\n"
                        "    1 | kernel f<T: float, D: i32 = 4>(x: T[N]) -> (y: T[N])\n"
                        "      |        ^\n"
                        "hint: write `warps`, `T`, `D` or `n`\n");
    check_define_report("D=8", "D=9",
                        "error[bad-define]: -D D=8 and -D D=9 are two values for one name\n");
    check_define_report("D", NULL,
                        "error[bad-define]: -D D: this gives no name a value\n"
                        "hint: write `-D NAME=value`\n");
    /* Where it puts a value into the schedule, that is checked as one in the text. */
    check_define_report("n=44", "T=f16",
                        "t.fk:2:16: error[bad-schedule]: `n`: -D n=44: a tile size is a power "
                        "of two, or 3, 5 or 7 times one\n"
                        "    2 |     schedule { n = 64; } schedule cpu { warps = 1; }\n"
                        "      |                ^~~~~~~\n");
    check_define_report("f.warps=8x", NULL,
                        "t.fk:2:41: error[bad-schedule]: `warps`: -D warps=8x: write a number\n"
                        "    2 |     schedule { n = 64; } schedule cpu { warps = 1; }\n"
                        "      |                                         ^~~~~~~~~~\n");
}
