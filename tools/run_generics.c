// Which kernel `fusec run` means and which types its generics take, by the files that are given.
// Input: source text, defines, the types of the files. Output: RunKernel.
// Invariant: a define of the user is never overridden.
#include "tools/run_generics.h"

#include <string.h>

#include "lang/parse.h"

// --- The kernel ---

static const Decl *find_kernel(const AstFile *file, const char *wanted, ToolError *error) {
    const Decl *found = NULL;
    char names[256] = "";
    size_t used = 0, count = 0;
    for (uint32_t i = 0; i < file->decls.len; i++) {
        const Decl *decl = file->decls.data[i];
        if (decl->kind != DECL_KERNEL)
            continue;
        if (!wanted || strcmp(decl->name.text, wanted) == 0)
            found = decl;
        if (used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", count ? ", " : "",
                                     decl->name.text);
        count++;
    }
    if (count == 0)
        tool_fail(error, "the file has no kernel");
    else if (!found)
        tool_fail(error, "no kernel '%s'; there %s %s", wanted, count == 1 ? "is" : "are", names);
    else if (!wanted && count > 1)
        tool_fail(error, "which kernel? FILE.fk:NAME chooses one of %s", names);
    else
        return found;
    return NULL;
}

// --- Types ---

// Whether a define "NAME=..." or "kernel.NAME=..." is there.
static bool is_defined(const char *const *defines, const char *kernel, const char *name) {
    size_t kernel_length = strlen(kernel), length = strlen(name);
    for (; defines && *defines; defines++) {
        const char *at = *defines;
        if (strncmp(at, kernel, kernel_length) == 0 && at[kernel_length] == '.')
            at += kernel_length + 1;
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return true;
    }
    return false;
}

// Of results only those that are read too: a file that stands where an output goes says nothing.
static DType given_in(const ParamVec *params, const char *type, bool only_inout, GivenDType *given,
                      void *user) {
    for (uint32_t i = 0; i < params->len; i++) {
        const Param *param = &params->data[i];
        if ((only_inout && !param->is_inout) || !param->type ||
            strcmp(param->type->name.text, type) != 0)
            continue;
        DType dtype = given(user, param_name(param).text);
        if (dtype != DT_NONE)
            return dtype;
    }
    return DT_NONE;
}

// The member of a class that a file's type stands for: doubles are what NumPy makes unasked.
static DType in_class(const char *class_name, DType dtype) {
    bool narrow = strcmp(class_name, "float") == 0;
    return narrow && dtype == DT_F64 ? DT_F32 : dtype;
}

static DType usual_of(const char *class_name) {
    static const struct {
        const char *name;
        DType dtype;
    } rows[] = {{"float", DT_F32}, {"fp8", DT_E4M3}, {"integer", DT_I32}, {"numeric", DT_F32}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, class_name) == 0)
            return rows[i].dtype;
    return DT_NONE;
}

static const char **complete_defines(Arena *arena, const Decl *kernel, const char *const *defines,
                                     bool assume, GivenDType *given, void *user) {
    size_t count = 0;
    while (defines && defines[count])
        count++;
    const GenericVec *generics = &kernel->kernel.generics;
    const char **out = ARENA_ARRAY(arena, const char *, count + generics->len + 1);
    for (size_t i = 0; i < count; i++)
        out[i] = defines[i];
    for (uint32_t i = 0; i < generics->len; i++) {
        const Generic *generic = &generics->data[i];
        const char *name = generic->name.text;
        if (generic->kind != GENERIC_TYPE || is_defined(defines, kernel->name.text, name))
            continue;
        DType dtype = given_in(&kernel->kernel.params, name, false, given, user);
        if (dtype == DT_NONE)
            dtype = given_in(&kernel->kernel.results, name, true, given, user);
        if (dtype != DT_NONE)
            dtype = in_class(generic->bound.text, dtype);
        else if (assume && !generic->value)
            dtype = usual_of(generic->bound.text);
        if (dtype != DT_NONE)
            out[count++] = arena_printf(arena, "%s=%s", name, dtype_name(dtype));
    }
    return out;
}

bool run_kernel_find(Arena *arena, const char *source, size_t length, const char *wanted,
                     const char *const *defines, bool assume, GivenDType *given, void *user,
                     RunKernel *out, ToolError *error) {
    *out = (RunKernel){0};
    SourceMap *sources = source_map_new(arena);
    FileId id = source_add(sources, "source", source, length);
    if (id == 0)
        return tool_fail(error, "the source is too large");
    Diags *diags = diags_new(arena, sources, NULL);
    const AstFile *file = lang_parse(arena, interner_new(arena), sources, id, diags);
    if (file->has_errors)
        return true;
    const Decl *kernel = find_kernel(file, wanted, error);
    if (!kernel)
        return false;
    out->name = kernel->name.text;
    out->defines = complete_defines(arena, kernel, defines, assume, given, user);
    return true;
}
