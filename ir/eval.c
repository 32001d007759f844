// The reference evaluator's entry, its dispatch, failures and memory; see eval.h for the meaning
// and eval_impl.h for the parts.
#include "ir/eval_impl.h"
#include "ir/format.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

// --- failing and memory ---

_Noreturn void eval_fail(Eval *e, const Op *op, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(e->arena, format, args);
    va_end(args);
    e->failed = op;
    const char *where = "";
    if (op) {
        const OpInfo *info = op_info(op->kind);
        const char *kind = info->kinds ? info->kinds[op->sub] : NULL;
        const char *name = op->nres && op->res[0]->name ? op->res[0]->name : NULL;
        where = arena_printf(e->arena, "%s%s%s%s%s%s: ", name ? "%" : "", name ? name : "",
                             name ? " = " : "", info->text, kind ? "." : "", kind ? kind : "");
    }
    e->error = arena_printf(e->arena, "kernel %s: %s%s", e->kernel->name, where, text);
    longjmp(*e->stop, 1);
}

void eval_count_cells(Eval *e, const Op *op, int64_t count, int64_t each) {
    if (!e->opts.max_cells || count <= 0 || each <= 0)
        return;
    int64_t left = e->opts.max_cells - e->cells;
    if (count > left / each)
        eval_fail(e, op, "gave up after %lld elements", (long long)e->opts.max_cells);
    e->cells += count * each;
}

void *eval_calloc(Eval *e, const Op *op, int64_t count, int64_t size) {
    Block *block = NULL;
    eval_count_cells(e, op, count, 1);
    if (count >= 0 && count <= (INT64_C(1) << 44) / size)
        block = calloc(1, sizeof *block + (size_t)(count * size));
    if (!block)
        eval_fail(e, op, "not enough memory for %lld elements", (long long)count);
    block->next = e->blocks;
    if (e->blocks)
        e->blocks->prev = block;
    e->blocks = block;
    return block + 1;
}

void eval_free(Eval *e, void *data) {
    if (!data)
        return;
    Block *block = (Block *)data - 1;
    if (block->prev)
        block->prev->next = block->next;
    else
        e->blocks = block->next;
    if (block->next)
        block->next->prev = block->prev;
    free(block);
}

// --- ops ---

static void eval_require(Eval *e, const Op *op) {
    if (eval_int(e, op, op->in[0]))
        return;
    Str msg = op_attr_str(op, ATTR_msg);
    if (op->kind == OP_WHEN) {
        e->no_variant = true;
        eval_fail(e, op, "variant does not apply");
    }
    eval_fail(e, op, "%s", msg ? msg : "the condition does not hold");
}

// Holds where the operand's axes are inside their windows.
static void eval_assert(Eval *e, const Op *op) {
    const Tile *t = eval_value(e, op, op->in[0]);
    Str msg = op_attr_str(op, ATTR_msg);
    Walk w;
    walk_start(e, op, &w, t->axes);
    for (int64_t p = 0; p < w.count; p++, walk_next(&w)) {
        if (!walk_is_inside(&w) || (t->bad && t->bad[p] & BAD_UNKNOWN))
            continue;
        if (e->opts.check) {
            check_assert(e, op, t->cell[p].i, t->bad && t->bad[p], &w);
            continue;
        }
        if (t->bad && t->bad[p])
            eval_fail(e, op, "poison reaches the condition at %s", eval_point(e, w.axes, w.pos));
        if (!t->cell[p].i)
            eval_fail(e, op, "%s, at %s", msg ? msg : "failed", eval_point(e, w.axes, w.pos));
    }
}

// One line for each element inside the windows.
static void eval_print(Eval *e, const Op *op) {
    enum { VALUES_MAX = WALK_MAX };
    const Tile *tile[VALUES_MAX];
    AxisSet axes = axes_none();
    if (op->nin > VALUES_MAX)
        eval_fail(e, op, "has more than %d values", VALUES_MAX);
    for (int i = 0; i < op->nin; i++) {
        tile[i] = eval_value(e, op, op->in[i]);
        if (!axes_union(axes, tile[i]->axes, &axes))
            eval_fail(e, op, "has more than %d axes", AXES_MAX);
    }
    Walk w;
    walk_start(e, op, &w, axes);
    for (int i = 0; i < op->nin; i++)
        walk_tile(e, op, &w, tile[i]);
    for (int64_t p = 0; p < w.count; p++, walk_next(&w)) {
        uint8_t bad = 0;
        Scalar values[VALUES_MAX];
        for (int i = 0; i < op->nin; i++) {
            bad |= tile[i]->bad ? tile[i]->bad[w.at[i]] : 0;
            values[i] = cell_scalar(tile[i]->dtype, tile[i]->cell[w.at[i]]);
        }
        if (!walk_is_inside(&w) || bad & BAD_UNKNOWN)
            continue;
        if (bad && e->opts.check)
            check_undetermined(e, op, "what is printed", w.axes, w.pos);
        else if (bad)
            eval_fail(e, op, "poison is printed at %s", eval_point(e, w.axes, w.pos));
        format_print(op_attr_str(op, ATTR_msg), values);
    }
}

static void eval_bound(Eval *e, const Op *op) {
    Window w = eval_window(e, op, op->axes[0]);
    if (axis_slice(e, op->axes[0])) // it is still the whole axis
        w = (Window){.end = eval_int(e, op, op->axes[0]->extent)};
    eval_set_int(e, op, op->res[0], op->kind == OP_BEGIN ? w.begin : w.end);
}

static void eval_op(Eval *e, const Op *op) {
    switch (op->kind) {
    case OP_REQUIRE:
    case OP_WHEN:
        eval_require(e, op);
        return;
    case OP_TEMP:
        eval_temp(e, op);
        return;
    case OP_PARALLEL:
    case OP_LAUNCH:
        eval_parallel(e, op);
        return;
    case OP_FOR:
        eval_for(e, op);
        return;
    case OP_WHILE:
        eval_while(e, op);
        return;
    case OP_IF:
        eval_if(e, op);
        return;
    case OP_WITH:
        eval_with(e, op);
        return;
    case OP_YIELD: // read by the owner of its region
    case OP_BARRIER:
        return;
    case OP_ORDER:
        eval_order(e, op);
        return;
    case OP_SMS:
        eval_set_int(e, op, op->res[0], e->opts.sms);
        return;
    case OP_AXIS:
        eval_axis_op(e, op);
        return;
    case OP_BEGIN:
    case OP_END:
        eval_bound(e, op);
        return;
    case OP_INSIDE:
        eval_inside(e, op);
        return;
    case OP_PRESENT:
    case OP_EXTENT:
    case OP_STRIDE:
        eval_memory_fact(e, op);
        return;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_FMA:
    case OP_DIV:
    case OP_REM:
    case OP_CDIV:
    case OP_FLOORDIV:
    case OP_MOD:
    case OP_NEG:
    case OP_ABS:
    case OP_MIN:
    case OP_MAX:
    case OP_FMIN:
    case OP_FMAX:
    case OP_SELECT:
    case OP_SQRT:
    case OP_RSQRT:
    case OP_RCP:
    case OP_EXP2:
    case OP_LOG2:
    case OP_EXP:
    case OP_LOG:
    case OP_SIN:
    case OP_COS:
    case OP_TANH:
    case OP_ERF:
    case OP_POW:
    case OP_FLOOR:
    case OP_CEIL:
    case OP_TRUNC:
    case OP_ROUND:
    case OP_AND:
    case OP_OR:
    case OP_XOR:
    case OP_NOT:
    case OP_SHL:
    case OP_SHR:
    case OP_POPC:
    case OP_CLZ:
    case OP_CMP:
    case OP_CAST:
    case OP_BITCAST:
    case OP_RAND:
        eval_elementwise(e, op);
        return;
    case OP_ASM:
        eval_fail(e, op, "is PTX, which only a GPU runs");
    case OP_TAKE:
        eval_take(e, op);
        return;
    case OP_REDUCE:
        eval_reduce(e, op);
        return;
    case OP_ARGREDUCE:
        eval_argreduce(e, op);
        return;
    case OP_SCAN:
        eval_scan(e, op);
        return;
    case OP_FOLD:
    case OP_SCANFN:
        eval_fold(e, op);
        return;
    case OP_SORT:
    case OP_TOPK:
        eval_sort(e, op);
        return;
    case OP_HISTOGRAM:
        eval_histogram(e, op);
        return;
    case OP_DOT:
        eval_dot(e, op);
        return;
    case OP_LOAD:
        eval_load(e, op);
        return;
    case OP_STORE:
    case OP_SCATTER:
        eval_store(e, op);
        return;
    case OP_ATOMIC:
        eval_atomic(e, op);
        return;
    case OP_CONVERT:
        eval_set(e, op->res[0], tile_ref(eval_value(e, op, op->in[0])));
        return;
    case OP_BUF:
        eval_buf(e, op);
        return;
    case OP_GET:
        eval_get(e, op);
        return;
    case OP_PUT:
        eval_put(e, op);
        return;
    case OP_COPY:
        eval_copy(e, op);
        return;
    case OP_COPY_WAIT:
        eval_copy_wait(e, op);
        return;
    case OP_CHAN:
        eval_chan(e, op);
        return;
    case OP_ACQUIRE:
    case OP_COMMIT:
    case OP_WAIT:
    case OP_RELEASE:
        eval_chan_op(e, op);
        return;
    case OP_MMA_ISSUE:
        eval_mma(e, op);
        return;
    case OP_MMA_WAIT: // an issue computes at once
        eval_set(e, op->res[0], tile_ref(eval_value(e, op, op->in[0])));
        return;
    case OP_ROLES:
        eval_roles(e, op);
        return;
    case OP_ROLE: // by its `roles`
    case OP_FENCE:
        return;
    case OP_ASSERT:
        eval_assert(e, op);
        return;
    case OP_PRINT:
        eval_print(e, op);
        return;
    case OP_COUNT:
        break;
    }
    eval_fail(e, op, "is not implemented");
}

// Where a value is last used in its own region, counting a use inside a nested op as that op's.
// What a `yield` uses is read after it, so it lives to the region's end.
static void find_last_uses(Eval *e, const Region *r) {
    for (const Op *op = r->first; op; op = op->next) {
        for (int i = 0; i < op->nin; i++) {
            const Value *v = op->in[i];
            const Region *home = v->kind == VALUE_OP ? v->def->parent : NULL;
            const Op *user = op;
            while (home && user && user->parent != home)
                user = user->parent->owner;
            e->last_use[v->id] = home ? user : NULL;
        }
        for (int i = 0; i < op->nregion; i++)
            find_last_uses(e, op->region[i]);
    }
}

static void drop_used(Eval *e, const Op *op) {
    if (op->kind == OP_YIELD)
        return;
    for (int i = 0; i < op->nin; i++) {
        if (e->last_use[op->in[i]->id] == op)
            eval_set(e, op->in[i], NULL);
    }
}

void eval_region(Eval *e, const Region *r) {
    for (const Op *op = r->first; op; op = op->next) {
        eval_op(e, op);
        drop_used(e, op);
    }
}

void eval_region_end(Eval *e, const Region *r) {
    for (int i = 0; i < r->narg; i++)
        eval_set(e, r->arg[i], NULL);
    for (const Op *op = r->first; op; op = op->next) {
        for (int i = 0; i < op->nres; i++)
            eval_set(e, op->res[i], NULL);
    }
}

// --- arguments ---

static const Param *dim_param(const Kernel *k, const Value *v) {
    for (int i = 0; i < k->nparam; i++) {
        if (k->param[i].kind == PARAM_DIM && k->param[i].value == v)
            return &k->param[i];
    }
    return NULL;
}

static void bind_dim(Eval *e, const char *what, const Value *v, int64_t x) {
    const Param *dim = dim_param(e->kernel, v);
    if (dim && v->kind != VALUE_CONST && !e->value[v->id]) {
        eval_set_int(e, NULL, v, x);
        return;
    }
    if (!dim && v->kind != VALUE_CONST) // computed by the kernel, which has a `require` for it
        return;
    int64_t want = eval_int(e, NULL, v);
    if (want != x)
        eval_fail(e, NULL, "%s is %lld, but %s is %lld", what, (long long)x,
                  dim ? dim->name : "the dim", (long long)want);
}

static void check_guards(Eval *e, const Mem *m, const MemState *s) {
    const char *broken = NULL;
    int64_t last = 0;
    uint32_t bits = dtype_bits(m->dtype);
    if (m->absent && !s->absent)
        broken = "it is present";
    for (int d = 0; d < m->rank && !s->absent; d++) {
        int64_t stride = s->strides[d];
        last += (s->dims[d] - 1) * (stride < 0 ? -stride : stride);
        if (d == m->inner && stride != 1)
            broken = "its inner stride is not 1";
        if (d != m->inner && m->sdiv > 1 && stride % m->sdiv != 0)
            broken = "a stride is not a multiple of sdiv";
    }
    if (m->align > 1 && (uintptr_t)s->data % m->align != 0)
        broken = "its address is not aligned";
    if (m->fits32 && last * bits / 8 >= INT64_C(1) << 31)
        broken = "it is too large for 32-bit offsets";
    if (!broken)
        return;
    e->no_variant = true;
    eval_fail(e, NULL, "variant does not apply: @%s: %s", m->name, broken);
}

static void bind_tensor(Eval *e, const Mem *m, const EvalTensor *t) {
    MemState *s = &e->mem[m->id];
    *s = (MemState){.defined = true, .absent = !t || (!t->data && m->opt), .count = 1};
    if (s->absent) {
        if (!m->opt)
            eval_fail(e, NULL, "no argument for @%s", m->name);
        if (e->opts.check_guards)
            check_guards(e, m, s);
        return;
    }
    if (t->dtype != m->dtype || t->rank != m->rank)
        eval_fail(e, NULL, "@%s is %s of rank %d, the argument is %s of rank %d", m->name,
                  dtype_name(m->dtype), m->rank, dtype_name(t->dtype), t->rank);
    s->data = t->data;
    for (int d = 0; d < m->rank; d++) {
        s->dims[d] = t->dims[d];
        s->strides[d] = t->strides[d];
        s->count *= t->dims[d];
        bind_dim(e, arena_printf(e->arena, "dim %d of @%s", d, m->name), m->dim[d], t->dims[d]);
    }
    if (!s->data && s->count > 0)
        eval_fail(e, NULL, "the argument for @%s has no data", m->name);
    if (e->opts.check_guards)
        check_guards(e, m, s);
    if (m->mode == MODE_IN)
        return;
    s->written = arena_array(e->arena, (size_t)s->count, 1);
    if ((e->partial || e->opts.check) && m->mode == MODE_OUT) {
        s->bad = eval_calloc(e, NULL, s->count, 1);
        memset(s->bad, e->partial ? BAD_UNKNOWN : BAD_POISON, (size_t)s->count);
    }
}

static void bind_arguments(Eval *e, int nargs, const EvalArg *args) {
    const Kernel *k = e->kernel;
    int n = 0;
    for (int i = 0; i < k->nparam; i++)
        n += k->param[i].kind != PARAM_DIM;
    if (n != nargs)
        eval_fail(e, NULL, "takes %d arguments, got %d", n, nargs);
    for (int i = 0; i < e->opts.ndims; i++) {
        for (int j = 0; j < k->nparam; j++) {
            const Param *p = &k->param[j];
            if (p->kind == PARAM_DIM && strcmp(p->name, e->opts.dims[i].name) == 0)
                bind_dim(e, p->name, p->value, e->opts.dims[i].value);
        }
    }
    for (int i = 0, a = 0; i < k->nparam; i++) {
        const Param *p = &k->param[i];
        if (p->kind == PARAM_DIM)
            continue;
        const EvalArg *arg = &args[a++];
        if (p->kind == PARAM_TENSOR) {
            bind_tensor(e, p->mem, arg->tensor);
            continue;
        }
        if (arg->tensor || arg->scalar.dtype == DT_NONE)
            eval_fail(e, NULL, "the argument for %s must be a scalar", p->name);
        Tile *t = tile_new(e, NULL, p->value->type.dtype, axes_none());
        t->cell[0] = cell_from(scalar_cast(arg->scalar, p->value->type.dtype));
        eval_set(e, p->value, t);
    }
    for (int i = 0; i < k->nparam; i++) {
        const Param *p = &k->param[i];
        if (p->kind == PARAM_DIM && p->value->kind != VALUE_CONST && !e->value[p->value->id])
            eval_fail(e, NULL, "no argument carries the dim %s", p->name);
    }
}

static void make_report(const Eval *e, EvalReport *report) {
    const Kernel *k = e->kernel;
    *report = (EvalReport){.op = e->failed,
                           .no_variant = e->no_variant,
                           .programs = e->programs,
                           .programs_run = e->programs_run};
    if (e->failed)
        report->span = e->failed->span;
    report->written = ARENA_ARRAY(e->arena, EvalWritten, k->nparam);
    for (int i = 0; i < k->nparam; i++) {
        const Mem *m = k->param[i].mem;
        if (k->param[i].kind != PARAM_TENSOR || m->mode == MODE_IN)
            continue;
        const MemState *s = &e->mem[m->id];
        report->written[report->nwritten++] =
            (EvalWritten){m, s->absent ? 0 : s->count, s->written};
    }
}

bool eval_kernel(Arena *scratch, const Module *m, const Kernel *k, int nargs, const EvalArg *args,
                 const EvalOptions *opts, const char **error) {
    Eval *e = ARENA_NEW(scratch, Eval);
    e->arena = scratch;
    e->kernel = k;
    if (opts)
        e->opts = *opts;
    e->opts.check_races = e->opts.check_races || e->opts.check;
    e->partial = e->opts.max_programs > 0 || e->opts.nslices > 0;
    if (!e->opts.sms)
        e->opts.sms = 4;
    if (!e->opts.max_steps)
        e->opts.max_steps = INT64_C(1) << 40;
    e->exact = m->stage == STAGE_TENSOR || m->stage == STAGE_NESTS;
    e->value = ARENA_ARRAY(scratch, Tile *, k->nvalue);
    e->last_use = ARENA_ARRAY(scratch, const Op *, k->nvalue);
    find_last_uses(e, k->body);
    e->window = ARENA_ARRAY(scratch, Window, k->naxis);
    e->mem = ARENA_ARRAY(scratch, MemState, k->nmem);
    jmp_buf stop;
    e->stop = &stop;
    if (setjmp(stop) == 0) {
        if (e->opts.check && (!e->exact || e->partial))
            eval_fail(e, NULL, "checks are of all of a kernel at stage tensor or nests");
        bind_arguments(e, nargs, args);
        eval_region(e, k->body);
    }
    check_finish(e, !e->error);
    if (e->opts.report)
        make_report(e, e->opts.report);
    for (Block *b = e->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    *error = e->error;
    return !e->error;
}

EvalTensor eval_tensor(void *data, DType dtype, int rank, const int64_t *dims) {
    EvalTensor t = {.data = data, .dtype = dtype, .rank = rank};
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; d--) {
        t.dims[d] = dims[d];
        t.strides[d] = stride;
        stride *= dims[d];
    }
    return t;
}
