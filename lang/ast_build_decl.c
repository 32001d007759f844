/* Builders of declarations and schedules: see ast_build.h. */
#include "lang/ast_build.h"

#include "lang/scan.h"

GenericVec ast_generics_push(ParseContext *ctx, GenericVec list, const Generic *generic) {
    if (ast_list_has_room(ctx, list.len, AST_LIST_MAX))
        vec_push(ctx->arena, &list, *generic);
    return list;
}

ParamVec ast_params_push(ParseContext *ctx, ParamVec list, const Param *param) {
    if (ast_list_has_room(ctx, list.len, AST_LIST_MAX))
        vec_push(ctx->arena, &list, *param);
    return list;
}

ScheduleAltVec ast_alts_push(ParseContext *ctx, ScheduleAltVec list, const ScheduleAlt *alt) {
    if (ast_list_has_room(ctx, list.len, AST_LIST_MAX))
        vec_push(ctx->arena, &list, *alt);
    return list;
}

ScheduleEntryVec ast_scheds_push(ParseContext *ctx, ScheduleEntryVec list, Span span,
                                 ScheduleEntry *entry, ScheduleAltVec alts) {
    entry->span = span;
    entry->alts = alts;
    if (ast_list_has_room(ctx, list.len, AST_LIST_MAX))
        vec_push(ctx->arena, &list, *entry);
    return list;
}

Generic *ast_generic(ParseContext *ctx, Span span, Name name, GenericKind kind, Name bound,
                     Expr *value) {
    Generic *generic = ARENA_NEW(ctx->arena, Generic);
    *generic = (Generic){
        .span = span,
        .name = name,
        .kind = kind,
        .bound = bound,
        .dtype = kind == GENERIC_VALUE ? dtype_parse_cstr(bound.text) : DT_NONE,
        .value = value,
    };
    return generic;
}

Param *ast_param(ParseContext *ctx, Span span, bool is_inout, Pattern pattern, TypeRef *type,
                 bool is_optional, Expr *value) {
    Param *param = ARENA_NEW(ctx->arena, Param);
    *param = (Param){
        .span = span,
        .doc = scan_doc_take(ctx, span.begin),
        .is_inout = is_inout,
        .pattern = pattern,
        .type = type,
        .is_optional = is_optional,
        .value = value,
    };
    return param;
}

Decl *ast_clauses(ParseContext *ctx) {
    return ARENA_NEW(ctx->arena, Decl);
}

Decl *ast_clause_where(ParseContext *ctx, Decl *kernel, ExprVec conditions) {
    for (uint32_t i = 0; i < conditions.len; i++)
        vec_push(ctx->arena, &kernel->kernel.where, conditions.data[i]);
    return kernel;
}

Decl *ast_clause_schedule(ParseContext *ctx, Decl *kernel, Span span, Name target,
                          ScheduleEntryVec entries) {
    Schedule schedule = {.span = span, .target = target, .entries = entries};
    vec_push(ctx->arena, &kernel->kernel.schedules, schedule);
    return kernel;
}

static void decl_init(ParseContext *ctx, Decl *decl, DeclKind kind, Span span, Name name) {
    decl->kind = kind;
    decl->span = span;
    decl->name = name;
    decl->doc = scan_doc_take(ctx, span.begin);
}

Decl *ast_kernel(ParseContext *ctx, Span span, Name name, GenericVec generics, ParamVec params,
                 ParamVec results, Decl *clauses, Block *body) {
    decl_init(ctx, clauses, DECL_KERNEL, span, name);
    clauses->kernel.generics = generics;
    clauses->kernel.params = params;
    clauses->kernel.results = results;
    clauses->kernel.body = body;
    return clauses;
}

Decl *ast_fn(ParseContext *ctx, Span span, Name name, GenericVec generics, NameVec axes,
             ParamVec params, TypeRef *result, Expr *value, Block *body) {
    Decl *decl = ARENA_NEW(ctx->arena, Decl);
    decl_init(ctx, decl, DECL_FN, span, name);
    decl->fn.generics = generics;
    decl->fn.axes = axes;
    decl->fn.params = params;
    decl->fn.result = result;
    decl->fn.value = value;
    decl->fn.body = body;
    return decl;
}

Decl *ast_const(ParseContext *ctx, Span span, Name name, Name type, Expr *value) {
    Decl *decl = ARENA_NEW(ctx->arena, Decl);
    decl_init(ctx, decl, DECL_CONST, span, name);
    decl->constant.type = ast_type(ctx, type);
    decl->constant.value = value;
    return decl;
}

Decl *ast_import(ParseContext *ctx, Span span, NameVec path) {
    Decl *decl = ARENA_NEW(ctx->arena, Decl);
    *decl = (Decl){.kind = DECL_IMPORT, .span = span, .name = vec_last(&path)};
    decl->import.path = path;
    const char *dotted = path.data[0].text;
    for (uint32_t i = 1; i < path.len; i++)
        dotted = arena_printf(ctx->arena, "%s.%s", dotted, path.data[i].text);
    decl->import.dotted = intern_cstr(ctx->interner, dotted);
    return decl;
}

ScheduleEntry *ast_sched(ParseContext *ctx, Span span, Name name, bool has_args, NameVec args) {
    ScheduleEntry *entry = ARENA_NEW(ctx->arena, ScheduleEntry);
    *entry = (ScheduleEntry){.span = span, .name = name, .has_args = has_args, .args = args};
    return entry;
}

static ScheduleAlt *alt_new(ParseContext *ctx, Span span, AltKind kind) {
    ScheduleAlt *alt = ARENA_NEW(ctx->arena, ScheduleAlt);
    alt->span = span;
    alt->kind = kind;
    return alt;
}

ScheduleAlt *ast_alt_int(ParseContext *ctx, Span span, const Expr *literal, bool negative) {
    ScheduleAlt *alt = alt_new(ctx, span, ALT_INT);
    uint64_t value = literal->integer.value;
    if (value > INT64_MAX)
        diag_add(ctx->diags, DIAG_NUMBER_RANGE, span, "this integer does not fit in 63 bits");
    else
        alt->integer = negative ? -(int64_t)value : (int64_t)value;
    return alt;
}

ScheduleAlt *ast_alt_bool(ParseContext *ctx, Span span, bool value) {
    ScheduleAlt *alt = alt_new(ctx, span, ALT_BOOL);
    alt->boolean = value;
    return alt;
}

ScheduleAlt *ast_alt_name(ParseContext *ctx, Span span, Name name) {
    ScheduleAlt *alt = alt_new(ctx, span, ALT_NAME);
    alt->name = name;
    return alt;
}

ScheduleAlt *ast_alt_call(ParseContext *ctx, Span span, Name name, ScheduleAltVec args) {
    ScheduleAlt *alt = alt_new(ctx, span, ALT_CALL);
    alt->name = name;
    alt->args = args;
    return alt;
}

void ast_file_push(ParseContext *ctx, Decl *decl) {
    vec_push(ctx->arena, &ctx->file->decls, decl);
}
