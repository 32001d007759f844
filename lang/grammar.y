/* The grammar of .fk text, for Bison: LALR(1) without conflicts.
 *
 * Actions are single calls of tree builders (ast_build.h). No types, no symbol tables, no feedback
 * to the scanner. Recovery: at a statement, at a declaration, and inside brackets, which are always
 * balanced (brackets.h). lang/SPEC.md has the same grammar for people.
 */
%require "3.8"
%define api.prefix {lang_yy}
%define api.token.prefix {TOK_}
%define api.pure full
%define api.value.type {TokenValue}
%define api.location.type {Span}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param {ParseContext *ctx}

%code requires {
#include "lang/parse_context.h"
}

%code {
#include "lang/ast_build.h"
#include "lang/brackets.h"
#include "lang/syntax_error.h"

/* Deep nesting ends in a report, not in a crash. */
#define YYMAXDEPTH 5000
/* The text of a rule: its parts without the empty ones. */
#define YYLLOC_DEFAULT(current, rhs, n) ((current) = ast_span_of(&YYRHSLOC(rhs, 0), (n)))
#define RESTART(at)                                                                                \
    do {                                                                                           \
        if (lang_restart(ctx, (at)))                                                               \
            yyerrok;                                                                               \
    } while (0)
}

%token KERNEL "kernel" FN "fn" CONST "const" IMPORT "import" INOUT "inout" WHERE "where"
%token SCHEDULE "schedule" LET "let" VAR "var" AXIS "axis" TEMP "temp" PARALLEL "parallel"
%token FOR "for" WHILE "while" IF "if" ELSE "else" BREAK "break" CONTINUE "continue"
%token RETURN "return" ATOMIC "atomic" SCATTER "scatter" IN "in" AS "as"
%token TRUE "true" FALSE "false" INF "inf" NAN "nan"
%token <name> TILES "tiles"
%token LPAREN "(" RPAREN ")" LBRACKET "[" RBRACKET "]" LBRACE "{" RBRACE "}"
%token COMMA "," SEMICOLON ";" COLON ":" DOT "." DOTDOT ".." ARROW "->" QUESTION "?"
%token ASSIGN "=" ADDEQ "+=" SUBEQ "-=" MULEQ "*=" DIVEQ "/=" MODEQ "%=" ANDEQ "&=" OREQ "|="
%token XOREQ "^=" SHLEQ "<<=" SHREQ ">>="
%token OROR "||" ANDAND "&&" OR "|" XOR "^" AND "&" EQ "==" NE "!=" LT "<" GT ">" LE "<=" GE ">="
%token SHL "<<" SHR ">>" PLUS "+" MINUS "-" STAR "*" SLASH "/" PERCENT "%" NOT "!" TILDE "~"
%token YYEOF 0 "end of file"
%token <name> IDENT "a name" TYPE "an element type"
%token <expr> INT "an integer" FLOAT "a number" STRING "a string"

%type <decl> decl
%type <generics> generics glist
%type <generic> generic
%type <params> params paramlist fparams fparamlist results
%type <param> param fparam
%type <names> names axparams dotted
%type <flag> opt inout
%type <type> type elt ftype fret
%type <pattern> pattern
%type <decl> clauses
%type <name> target
%type <scheds> sched
%type <sched> spec
%type <alts> alts altlist
%type <alt> alt
%type <block> block
%type <stmts> stmts
%type <stmt> stmt kwstmt ifstmt
%type <lets> lets
%type <let> letone
%type <vars> vars temps
%type <var> varone tempone
%type <binders> binders
%type <binder> binder
%type <range> range trange
%type <assign> assignop atomicop
%type <exprs> exprs
%type <expr> expr or and bor bxor band eq rel sh add mul cast unary postfix primary def pdef fdef
%type <entries> indices
%type <entry> index
%type <args> args arglist
%type <arg> arg

%%

file:
    %empty
  | file decl                                   { ast_file_push(ctx, $2); }
  | file error decl                             { ast_file_push(ctx, $3); }
  | file error ";"                              { yyerrok; }
  | file error block                            { yyerrok; }
  ;

decl:
    kw_kernel IDENT generics params results clauses block
                                                { $$ = ast_kernel(ctx, @$, $2, $3, $4, $5, $6, $7); }
  | kw_fn IDENT generics axparams fparams fret "=" expr ";"
                                                { $$ = ast_fn(ctx, @$, $2, $3, $4, $5, $6, $8, NULL); }
  | kw_fn IDENT generics axparams fparams fret block
                                                { $$ = ast_fn(ctx, @$, $2, $3, $4, $5, $6, NULL, $7); }
  | kw_const IDENT ":" TYPE "=" expr ";"         { $$ = ast_const(ctx, @$, $2, $4, $6); }
  | kw_import dotted ";"                         { $$ = ast_import(ctx, @$, $2); }
  ;

dotted:
    IDENT                                       { $$ = ast_names_push(ctx, (NameVec){0}, $1); }
  | dotted "." IDENT                            { $$ = ast_names_push(ctx, $1, $3); }
  ;

names:
    IDENT                                       { $$ = ast_names_push(ctx, (NameVec){0}, $1); }
  | names "," IDENT                             { $$ = ast_names_push(ctx, $1, $3); }
  ;

generics:
    %empty                                      { $$ = (GenericVec){0}; }
  | "<" glist ">"                               { $$ = $2; }
  ;
glist:
    generic                                     { $$ = ast_generics_push(ctx, (GenericVec){0}, $1); }
  | glist "," generic                           { $$ = ast_generics_push(ctx, $1, $3); }
  ;
generic:
    IDENT ":" IDENT def                         { $$ = ast_generic(ctx, @$, $1, GENERIC_TYPE, $3, $4); }
  | IDENT ":" TYPE def                          { $$ = ast_generic(ctx, @$, $1, GENERIC_VALUE, $3, $4); }
  | IDENT ":" "fn" def                          { $$ = ast_generic(ctx, @$, $1, GENERIC_FN, ast_word(ctx, @3, "fn"), $4); }
  ;
def:
    %empty                                      { $$ = NULL; }
  | "=" unary                                   { $$ = $2; }
  ;

params:
    "(" ")"                                     { $$ = (ParamVec){0}; }
  | "(" paramlist ")"                           { $$ = $2; }
  | "(" error ")"                               { $$ = (ParamVec){0}; }
  ;
results:
    %empty                                      { $$ = (ParamVec){0}; }
  | "->" "(" paramlist ")"                      { $$ = $3; }
  | "->" "(" error ")"                          { $$ = (ParamVec){0}; }
  ;
paramlist:
    param                                       { $$ = ast_params_push(ctx, (ParamVec){0}, $1); }
  | paramlist "," param                         { $$ = ast_params_push(ctx, $1, $3); }
  ;
param:
    inout IDENT ":" type opt pdef               { $$ = ast_param(ctx, @$, $1, ast_pattern_name(ctx, $2), $4, $5, $6); }
  ;
inout:
    %empty                                      { $$ = false; }
  | "inout"                                     { $$ = true; }
  ;
opt:
    %empty                                      { $$ = false; }
  | "?"                                         { $$ = true; }
  ;
pdef:
    def
  ;

axparams:
    %empty                                      { $$ = (NameVec){0}; }
  | "[" names "]"                               { $$ = $2; }
  | "[" error "]"                               { $$ = (NameVec){0}; }
  ;
fparams:
    "(" ")"                                     { $$ = (ParamVec){0}; }
  | "(" fparamlist ")"                          { $$ = $2; }
  | "(" error ")"                               { $$ = (ParamVec){0}; }
  ;
fparamlist:
    fparam                                      { $$ = ast_params_push(ctx, (ParamVec){0}, $1); }
  | fparamlist "," fparam                       { $$ = ast_params_push(ctx, $1, $3); }
  ;
fparam:
    pattern fdef                                { $$ = ast_param(ctx, @$, false, $1, NULL, false, $2); }
  | pattern ftype opt fdef                      { $$ = ast_param(ctx, @$, false, $1, $2, $3, $4); }
  ;
ftype:
    ":" type                                    { $$ = $2; }
  ;
fdef:
    %empty                                      { $$ = NULL; }
  | "=" expr                                    { $$ = $2; }
  ;
fret:
    %empty                                      { $$ = NULL; }
  | "->" type                                   { $$ = $2; }
  ;
pattern:
    IDENT                                       { $$ = ast_pattern_name(ctx, $1); }
  | "(" names ")"                               { $$ = ast_pattern_tuple(@$, $2); }
  ;

type:
    elt
  | elt "[" exprs "]"                           { $$ = ast_type_dims(@$, $1, $3); }
  | elt "[" error "]"                           { $$ = $1; }
  ;
elt:
    TYPE                                        { $$ = ast_type(ctx, $1); }
  | IDENT                                       { $$ = ast_type(ctx, $1); }
  ;

clauses:
    %empty                                      { $$ = ast_clauses(ctx); }
  | clauses "where" exprs                       { $$ = ast_clause_where(ctx, $1, $3); }
  | clauses "schedule" target "{" sched "}"     { $$ = ast_clause_schedule(ctx, $1, span_join(@2, @6), $3, $5); }
  | clauses "schedule" target "{" sched error "}"
                                                { $$ = ast_clause_schedule(ctx, $1, span_join(@2, @7), $3, $5); yyerrok; }
  ;
target:
    %empty                                      { $$ = (Name){0}; }
  | IDENT
  ;
sched:
    %empty                                      { $$ = (ScheduleEntryVec){0}; }
  | sched spec "=" alts ";"                     { $$ = ast_scheds_push(ctx, $1, span_join(@2, @5), $2, $4); }
  | sched error ";"                             { $$ = $1; yyerrok; }
  ;
spec:
    IDENT                                       { $$ = ast_sched(ctx, @$, $1, false, (NameVec){0}); }
  | IDENT "(" names ")"                         { $$ = ast_sched(ctx, @$, $1, true, $3); }
  ;
alts:
    alt                                         { $$ = ast_alts_push(ctx, (ScheduleAltVec){0}, $1); }
  | alts "|" alt                                { $$ = ast_alts_push(ctx, $1, $3); }
  ;
altlist:
    alt                                         { $$ = ast_alts_push(ctx, (ScheduleAltVec){0}, $1); }
  | altlist "," alt                             { $$ = ast_alts_push(ctx, $1, $3); }
  ;
alt:
    INT                                         { $$ = ast_alt_int(ctx, @$, $1, false); }
  | "-" INT                                     { $$ = ast_alt_int(ctx, @$, $2, true); }
  | "true"                                      { $$ = ast_alt_bool(ctx, @$, true); }
  | "false"                                     { $$ = ast_alt_bool(ctx, @$, false); }
  | IDENT                                       { $$ = ast_alt_name(ctx, @$, $1); }
  | IDENT "(" altlist ")"                       { $$ = ast_alt_call(ctx, @$, $1, $3); }
  ;

block:
    "{" stmts "}"                               { $$ = ast_block(ctx, @$, $2); }
  | "{" stmts error "}"                         { $$ = ast_block(ctx, @$, $2); yyerrok; }
  ;
stmts:
    %empty                                      { $$ = (StmtVec){0}; }
  | stmts stmt                                  { $$ = ast_stmts_push(ctx, $1, $2); }
  | stmts error kwstmt                          { $$ = ast_stmts_push(ctx, $1, $3); }
  | stmts error block                           { $$ = ast_stmts_push(ctx, $1, ast_stmt_block(ctx, @3, $3)); yyerrok; }
  | stmts error ";"                             { $$ = $1; yyerrok; }
  ;
stmt:
    kwstmt
  | postfix assignop expr ";"                   { $$ = ast_assign(ctx, @$, STMT_ASSIGN, $1, $2, @2, $3); }
  | postfix ";"                                 { $$ = ast_stmt_expr(ctx, @$, $1); }
  | block                                       { $$ = ast_stmt_block(ctx, @$, $1); }
  ;
kwstmt:
    kw_let lets ";"                              { $$ = ast_let(ctx, @$, $2); }
  | kw_var vars ";"                              { $$ = ast_vars(ctx, @$, STMT_VAR, $2); }
  | kw_axis binders ";"                          { $$ = ast_axis(ctx, @$, $2); }
  | kw_temp temps ";"                            { $$ = ast_vars(ctx, @$, STMT_TEMP, $2); }
  | kw_parallel binders block                    { $$ = ast_loop(ctx, @$, STMT_PARALLEL, $2, $3); }
  | kw_for binders block                         { $$ = ast_loop(ctx, @$, STMT_FOR, $2, $3); }
  | kw_while expr block                          { $$ = ast_while(ctx, @$, $2, $3); }
  | ifstmt
  | kw_break ";"                                 { $$ = ast_jump(ctx, @$, STMT_BREAK); }
  | kw_continue ";"                              { $$ = ast_jump(ctx, @$, STMT_CONTINUE); }
  | kw_return expr ";"                           { $$ = ast_return(ctx, @$, $2); }
  | kw_atomic postfix atomicop expr ";"          { $$ = ast_assign(ctx, @$, STMT_ATOMIC, $2, $3, @3, $4); }
  | kw_scatter postfix "=" expr ";"              { $$ = ast_assign(ctx, @$, STMT_SCATTER, $2, ASSIGN_SET, @3, $4); }
  ;
ifstmt:
    kw_if expr block                             { $$ = ast_if(ctx, @$, $2, $3, NULL); }
  | kw_if expr block "else" block                { $$ = ast_if(ctx, @$, $2, $3, ast_stmt_block(ctx, @5, $5)); }
  | kw_if expr block "else" ifstmt               { $$ = ast_if(ctx, @$, $2, $3, $5); }
  ;
lets:
    letone                                      { $$ = ast_lets_push(ctx, (LetItemVec){0}, $1); }
  | lets "," letone                             { $$ = ast_lets_push(ctx, $1, $3); }
  ;
letone:
    pattern "=" expr                            { $$ = ast_let_item(ctx, @$, $1, NULL, ASSIGN_SET, $3); }
  | pattern "=" "atomic" postfix atomicop expr  { $$ = ast_let_item(ctx, @$, $1, $4, $5, $6); }
  ;
vars:
    varone                                      { $$ = ast_vars_push(ctx, (VarItemVec){0}, $1); }
  | vars "," varone                             { $$ = ast_vars_push(ctx, $1, $3); }
  ;
varone:
    IDENT "=" expr                              { $$ = ast_var_item(ctx, @$, $1, NULL, $3); }
  | IDENT ":" type "=" expr                     { $$ = ast_var_item(ctx, @$, $1, $3, $5); }
  ;
temps:
    tempone                                     { $$ = ast_vars_push(ctx, (VarItemVec){0}, $1); }
  | temps "," tempone                           { $$ = ast_vars_push(ctx, $1, $3); }
  ;
tempone:
    IDENT ":" type                              { $$ = ast_var_item(ctx, @$, $1, $3, NULL); }
  | IDENT ":" type "=" expr                     { $$ = ast_var_item(ctx, @$, $1, $3, $5); }
  ;
atomicop:
    assignop
  | IDENT "="                                   { $$ = ast_atomic_op(ctx, $1); }
  ;
assignop:
    "="                                         { $$ = ASSIGN_SET; }
  | "+="                                        { $$ = ASSIGN_ADD; }
  | "-="                                        { $$ = ASSIGN_SUB; }
  | "*="                                        { $$ = ASSIGN_MUL; }
  | "/="                                        { $$ = ASSIGN_DIV; }
  | "%="                                        { $$ = ASSIGN_MOD; }
  | "&="                                        { $$ = ASSIGN_BITAND; }
  | "|="                                        { $$ = ASSIGN_BITOR; }
  | "^="                                        { $$ = ASSIGN_BITXOR; }
  | "<<="                                       { $$ = ASSIGN_SHL; }
  | ">>="                                       { $$ = ASSIGN_SHR; }
  ;
binders:
    binder                                      { $$ = ast_binders_push(ctx, (BinderVec){0}, $1); }
  | binders "," binder                          { $$ = ast_binders_push(ctx, $1, $3); }
  ;
binder:
    IDENT "in" range                            { $$ = ast_binder(ctx, @$, $1, $3); }
  ;
range:
    expr                                        { $$ = ast_range(@$, RANGE_WHOLE, NULL, $1); }
  | expr ".." expr                              { $$ = ast_range(@$, RANGE_SPAN, $1, $3); }
  | expr ".." expr IDENT expr                   { $$ = ast_range_step(ctx, @$, $1, $3, $4, $5); }
  | "tiles" "(" trange ")"                      { $$ = ast_range_tiles(@$, $3, NULL); }
  | "tiles" "(" trange "," expr ")"             { $$ = ast_range_tiles(@$, $3, $5); }
  | "tiles" "(" error ")"                       { $$ = ast_range(@$, RANGE_TILES, NULL, ast_error(ctx, @3)); }
  ;
trange:
    expr                                        { $$ = ast_range(@$, RANGE_TILES, NULL, $1); }
  | expr ".." expr                              { $$ = ast_range(@$, RANGE_TILES, $1, $3); }
  ;

exprs:
    expr                                        { $$ = ast_exprs_push(ctx, (ExprVec){0}, $1); }
  | exprs "," expr                              { $$ = ast_exprs_push(ctx, $1, $3); }
  ;
expr:
    or
  | or "?" expr ":" expr                        { $$ = ast_cond(ctx, @$, $1, $3, $5); }
  ;
or:
    and
  | or "||" and                                 { $$ = ast_binary(ctx, @$, BINARY_OR, @2, $1, $3); }
  ;
and:
    bor
  | and "&&" bor                                { $$ = ast_binary(ctx, @$, BINARY_AND, @2, $1, $3); }
  ;
bor:
    bxor
  | bor "|" bxor                                { $$ = ast_binary(ctx, @$, BINARY_BITOR, @2, $1, $3); }
  ;
bxor:
    band
  | bxor "^" band                               { $$ = ast_binary(ctx, @$, BINARY_BITXOR, @2, $1, $3); }
  ;
band:
    eq
  | band "&" eq                                 { $$ = ast_binary(ctx, @$, BINARY_BITAND, @2, $1, $3); }
  ;
eq:
    rel
  | eq "==" rel                                 { $$ = ast_binary(ctx, @$, BINARY_EQ, @2, $1, $3); }
  | eq "!=" rel                                 { $$ = ast_binary(ctx, @$, BINARY_NE, @2, $1, $3); }
  ;
rel:
    sh
  | rel "<" sh                                  { $$ = ast_binary(ctx, @$, BINARY_LT, @2, $1, $3); }
  | rel ">" sh                                  { $$ = ast_binary(ctx, @$, BINARY_GT, @2, $1, $3); }
  | rel "<=" sh                                 { $$ = ast_binary(ctx, @$, BINARY_LE, @2, $1, $3); }
  | rel ">=" sh                                 { $$ = ast_binary(ctx, @$, BINARY_GE, @2, $1, $3); }
  ;
sh:
    add
  | sh "<<" add                                 { $$ = ast_binary(ctx, @$, BINARY_SHL, @2, $1, $3); }
  | sh ">>" add                                 { $$ = ast_binary(ctx, @$, BINARY_SHR, @2, $1, $3); }
  ;
add:
    mul
  | add "+" mul                                 { $$ = ast_binary(ctx, @$, BINARY_ADD, @2, $1, $3); }
  | add "-" mul                                 { $$ = ast_binary(ctx, @$, BINARY_SUB, @2, $1, $3); }
  ;
mul:
    cast
  | mul "*" cast                                { $$ = ast_binary(ctx, @$, BINARY_MUL, @2, $1, $3); }
  | mul "/" cast                                { $$ = ast_binary(ctx, @$, BINARY_DIV, @2, $1, $3); }
  | mul "%" cast                                { $$ = ast_binary(ctx, @$, BINARY_MOD, @2, $1, $3); }
  ;
cast:
    unary
  | cast "as" elt                               { $$ = ast_cast(ctx, @$, $1, $3); }
  ;
unary:
    postfix
  | postfix "else" unary                        { $$ = ast_else(ctx, @$, $1, $3); }
  | "-" unary                                   { $$ = ast_unary(ctx, @$, UNARY_NEG, $2); }
  | "!" unary                                   { $$ = ast_unary(ctx, @$, UNARY_NOT, $2); }
  | "~" unary                                   { $$ = ast_unary(ctx, @$, UNARY_BITNOT, $2); }
  ;
postfix:
    primary
  | postfix "[" indices "]"                     { $$ = ast_index(ctx, @$, $1, $3); }
  | postfix "[" error "]"                       { $$ = ast_error(ctx, @$); }
  | postfix "(" args ")"                        { $$ = ast_call(ctx, @$, $1, $3); }
  | postfix "(" error ")"                       { $$ = ast_error(ctx, @$); }
  ;
indices:
    index                                       { $$ = ast_entries_push(ctx, (IndexEntryVec){0}, $1); }
  | indices "," index                           { $$ = ast_entries_push(ctx, $1, $3); }
  ;
index:
    expr                                        { $$ = ast_entry(ctx, @$, INDEX_EXPR, (Name){0}, $1); }
  | ":"                                         { $$ = ast_entry(ctx, @$, INDEX_ALL, (Name){0}, NULL); }
  | IDENT "=" expr                              { $$ = ast_entry(ctx, @$, INDEX_NAMED, $1, $3); }
  ;
args:
    %empty                                      { $$ = (ArgVec){0}; }
  | arglist
  ;
arglist:
    arg                                         { $$ = ast_args_push(ctx, (ArgVec){0}, $1); }
  | arglist "," arg                             { $$ = ast_args_push(ctx, $1, $3); }
  ;
arg:
    expr                                        { $$ = ast_arg(ctx, @$, (Name){0}, $1); }
  | TYPE                                        { $$ = ast_arg(ctx, @$, (Name){0}, ast_name(ctx, @$, (Name){0}, $1)); }
  | IDENT "=" expr                              { $$ = ast_arg(ctx, @$, $1, $3); }
  ;
primary:
    IDENT                                       { $$ = ast_name(ctx, @$, (Name){0}, $1); }
  | IDENT "." IDENT                             { $$ = ast_name(ctx, @$, $1, $3); }
  | INT
  | FLOAT
  | STRING
  | "true"                                      { $$ = ast_bool(ctx, @$, true); }
  | "false"                                     { $$ = ast_bool(ctx, @$, false); }
  | "inf"                                       { $$ = ast_leaf(ctx, @$, EXPR_INF); }
  | "nan"                                       { $$ = ast_leaf(ctx, @$, EXPR_NAN); }
  | "(" expr ")"                                { $$ = $2; }
  | "(" exprs "," expr ")"                      { $$ = ast_tuple(ctx, @$, ast_exprs_push(ctx, $2, $4)); }
  | "(" error ")"                               { $$ = ast_error(ctx, @$); }
  ;


/* A keyword at the start of a line ends an earlier error. */
kw_kernel: "kernel" { RESTART(@1); } ;
kw_fn: "fn" { RESTART(@1); } ;
kw_const: "const" { RESTART(@1); } ;
kw_import: "import" { RESTART(@1); } ;
kw_let: "let" { RESTART(@1); } ;
kw_var: "var" { RESTART(@1); } ;
kw_axis: "axis" { RESTART(@1); } ;
kw_temp: "temp" { RESTART(@1); } ;
kw_parallel: "parallel" { RESTART(@1); } ;
kw_for: "for" { RESTART(@1); } ;
kw_while: "while" { RESTART(@1); } ;
kw_break: "break" { RESTART(@1); } ;
kw_continue: "continue" { RESTART(@1); } ;
kw_return: "return" { RESTART(@1); } ;
kw_atomic: "atomic" { RESTART(@1); } ;
kw_scatter: "scatter" { RESTART(@1); } ;
kw_if: "if" { RESTART(@1); } ;

%%

/* Reports what Bison cannot parse; texts are made in syntax_error.c. */
static int yyreport_syntax_error(const yypcontext_t *yyctx, ParseContext *ctx) {
    enum { MOST = YYNTOKENS };
    yysymbol_kind_t expected[MOST];
    int count = yypcontext_expected_tokens(yyctx, expected, MOST);
    SyntaxError error = {.at = yypcontext_token(yyctx) == YYSYMBOL_YYEMPTY
                                   ? (Span){0}
                                   : *yypcontext_location(yyctx)};
    for (int i = 0; i < count; i++)
        syntax_error_expect(&error, yysymbol_name(expected[i]));
    syntax_error_report(ctx, &error);
    return 0;
}
