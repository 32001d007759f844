/* The entry of the front end: loads imported modules, checks the top level, lowers each kernel.
 *
 * Input: the parsed file. Output: the module. Imports are looked for by the caller's resolver, in
 * the include folders, then in the library; std.prelude is imported everywhere.
 */
#include "frontend/fe.h"
#include "lang/parse.h"
#include "stdlib/library.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SOURCE_MAX = 16 << 20, MODULES_MAX = 4096 };

/* --- finding text --------------------------------------------------------------------------- */

typedef enum Found { FOUND, NOT_THERE, UNREADABLE } Found;

/* What `file` is, or why it cannot be a module. */
static const char *file_problem(int file, size_t *size) {
    struct stat info;
    if (fstat(file, &info) != 0)
        return strerror(errno);
    if (!S_ISREG(info.st_mode)) /* a pipe could keep us waiting, a device may have no end */
        return S_ISDIR(info.st_mode) ? "it is a directory" : "it is not a regular file";
    if (info.st_size > SOURCE_MAX)
        return "an imported file has at most 16 MiB";
    *size = (size_t)info.st_size;
    return NULL;
}

/* Where there is a file that cannot be read, `why` says what is wrong with it. */
static Found read_file(Fe *fe, const char *path, const char **text, size_t *len, const char **why) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        *why = strerror(errno);
        bool gone = errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG;
        return gone ? NOT_THERE : UNREADABLE;
    }
    size_t size = 0, used = 0;
    *why = file_problem(file, &size);
    char *data = arena_alloc(fe->arena, size + 1);
    while (!*why && used < size) {
        ssize_t n = read(file, data + used, size - used);
        if (n < 0 && errno != EINTR)
            *why = strerror(errno);
        else if (n == 0) /* it has become shorter */
            size = used;
        else if (n > 0)
            used += (size_t)n;
    }
    close(file);
    *text = data;
    *len = used;
    return *why ? UNREADABLE : FOUND;
}

static const char *import_path(Fe *fe, const char *folder, const char *dotted) {
    char *path = arena_printf(fe->arena, "%s/%s.fk", folder, dotted);
    size_t start = strlen(folder) + 1, end = start + strlen(dotted);
    for (size_t i = start; i < end; i++)
        if (path[i] == '.')
            path[i] = '/';
    return path;
}

static Found find_import(Fe *fe, const char *dotted, const char **name, const char **text,
                         size_t *len, const char **why) {
    const FrontendOptions *o = fe->options;
    if (o->import && o->import(o->import_user, fe->arena, dotted, name, text, len))
        return FOUND;
    for (size_t i = 0; o->includes && o->includes[i]; i++) {
        *name = import_path(fe, o->includes[i], dotted);
        Found found = read_file(fe, *name, text, len, why);
        if (found != NOT_THERE)
            return found;
    }
    *name = arena_printf(fe->arena, "<%s>", dotted);
    return library_find(dotted, text, len) ? FOUND : NOT_THERE;
}

/* --- modules -------------------------------------------------------------------------------- */

static SourceModule *module_known(Fe *fe, Str dotted) {
    for (uint32_t i = 0; i < fe->modules.len; i++)
        if (fe->modules.data[i]->dotted == dotted)
            return fe->modules.data[i];
    return NULL;
}

static SourceModule *module_add(Fe *fe, Str dotted, AstFile *ast) {
    SourceModule *m = ARENA_NEW(fe->arena, SourceModule);
    const char *dot = dotted ? strrchr(dotted, '.') : NULL;
    m->dotted = dotted;
    m->last = dotted ? intern_cstr(fe->interner, dot ? dot + 1 : dotted) : NULL;
    m->ast = ast;
    module_index(fe, m);
    vec_push(fe->arena, &fe->modules, m);
    return m;
}

static void module_missing(Fe *fe, Str dotted, Span span) {
    const char *text;
    size_t len;
    Diag *d = fe_error(fe, DIAG_NO_MODULE, span, "there is no module `%s`", dotted);
    const char *own = arena_printf(fe->arena, "std.%s", dotted);
    if (library_find(own, &text, &len))
        diag_hint(fe->diags, d, "write `import %s;`", own);
    else
        diag_hint(fe->diags, d,
                  "the library has std.nn, std.conv, std.math, std.linalg and std.quant; `-I "
                  "folder` adds yours");
}

static SourceModule *module_load(Fe *fe, Str dotted, Span span) {
    SourceModule *m = module_known(fe, dotted);
    if (m)
        return m;
    if (fe->modules.len >= MODULES_MAX) {
        fe_error(fe, DIAG_TOO_MANY, span, "a file imports at most %d modules, directly or not",
                 MODULES_MAX);
        return NULL;
    }
    const char *name = NULL, *text = NULL, *why = NULL;
    size_t len = 0;
    switch (find_import(fe, dotted, &name, &text, &len, &why)) {
    case FOUND:
        break;
    case NOT_THERE:
        module_missing(fe, dotted, span);
        return NULL;
    case UNREADABLE:
        fe_error(fe, DIAG_NO_MODULE, span, "the module `%s` cannot be read from %s: %s", dotted,
                 name, why);
        return NULL;
    }
    FileId file = source_add(fe->sources, name, text, len);
    if (file == 0) {
        fe_error(fe, DIAG_FILE_SIZE, span, "with `%s` the files have more than 4 GiB", dotted);
        return NULL;
    }
    return module_add(fe, dotted,
                      lang_parse(fe->arena, fe->interner, fe->sources, file, fe->diags));
}

static void module_imports(Fe *fe, SourceModule *m) {
    if (fe->prelude && m != fe->prelude)
        vec_push(fe->arena, &m->imports, fe->prelude);
    for (uint32_t i = 0; i < m->ast->decls.len; i++) {
        const Decl *d = m->ast->decls.data[i];
        if (d->kind != DECL_IMPORT)
            continue;
        SourceModule *other = module_load(fe, d->import.dotted, d->span);
        bool have = false;
        for (uint32_t k = 0; k < m->imports.len; k++)
            have |= m->imports.data[k] == other;
        if (other && other != m && !have)
            vec_push(fe->arena, &m->imports, other);
    }
}

static void load_modules(Fe *fe, AstFile *file) {
    fe->main = module_add(fe, NULL, file);
    fe->prelude = module_load(fe, intern_cstr(fe->interner, "std.prelude"), (Span){0});
    /* The list grows while it is walked. */
    for (uint32_t i = 0; i < fe->modules.len; i++)
        module_imports(fe, fe->modules.data[i]);
}

/* A declaration with a syntax error has lost a part of its text. */
static bool has_error_in(const Fe *fe, Span span) {
    for (uint32_t i = 0; fe->incomplete && i < diags_count(fe->diags); i++) {
        const Diag *d = diags_at(fe->diags, i);
        if (diag_severity(d) == DIAG_SEVERITY_ERROR && diag_span(d).begin >= span.begin &&
            diag_span(d).begin <= span.end)
            return true;
    }
    return false;
}

Module *frontend_lower(Arena *arena, Interner *interner, SourceMap *sources, AstFile *file,
                       const FrontendOptions *options, Diags *diags, ScheduleList *schedules) {
    static const FrontendOptions none = {0};
    Fe *fe = ARENA_NEW(arena, Fe);
    fe->arena = arena;
    fe->interner = interner;
    fe->sources = sources;
    fe->diags = diags;
    fe->options = options ? options : &none;
    fe->schedules = schedules;
    if (schedules)
        *schedules = (ScheduleList){0};
    fe->module =
        ir_module_new(arena, interner,
                      intern_cstr(interner, fe->options->target ? fe->options->target : "sm_80"));
    load_modules(fe, file);
    for (uint32_t i = 0; i < fe->modules.len; i++)
        fe->incomplete |= fe->modules.data[i]->ast->has_errors;
    if (!file->has_errors)
        defines_check(fe, file);
    bool found = false;
    for (uint32_t i = 0; i < file->decls.len; i++) {
        const Decl *d = file->decls.data[i];
        if (d->kind != DECL_KERNEL ||
            (fe->options->kernel && strcmp(fe->options->kernel, d->name.text)))
            continue;
        found = true;
        if (!has_error_in(fe, d->span))
            kernel_lower(fe, d);
    }
    if (fe->options->kernel && !found && !file->has_errors)
        fe_error(fe, DIAG_UNKNOWN_NAME, (Span){0}, "the file has no kernel `%s`",
                 fe->options->kernel);
    if (!fe->options->kernel && !fe->incomplete)
        fns_check(fe, file);
    if (!diags_has_errors(diags))
        unused_check(fe, file);
    return fe->module;
}
