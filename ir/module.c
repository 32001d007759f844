// Modules, kernels, parameters, constants and names.
//
// Input: calls of the builder's users. Output: entities in the module's arena. Invariants: names
// are unique per kind (values, axes, memories) within a kernel; equal constants of a kernel are one
// value; ids are dense in order of making.
#include "ir/ir_impl.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

// --- names ---

static uint32_t str_slot(const StrMap *map, Str key) {
    uint64_t h = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;
    uint32_t i = (uint32_t)(h >> 32) & (map->cap - 1);
    while (map->key[i] && map->key[i] != key)
        i = (i + 1) & (map->cap - 1);
    return i;
}

void *strmap_get(const StrMap *map, Str key) {
    return map->cap && key ? map->value[str_slot(map, key)] : NULL;
}

void strmap_put(Arena *arena, StrMap *map, Str key, void *value) {
    if (4 * (map->len + 1) > 3 * map->cap) {
        StrMap grown = {.cap = map->cap ? 2 * map->cap : 32, .len = map->len};
        grown.key = ARENA_ARRAY(arena, Str, grown.cap);
        grown.value = ARENA_ARRAY(arena, void *, grown.cap);
        for (uint32_t i = 0; i < map->cap; i++) {
            if (map->key[i]) {
                uint32_t at = str_slot(&grown, map->key[i]);
                grown.key[at] = map->key[i];
                grown.value[at] = map->value[i];
            }
        }
        *map = grown;
    }
    uint32_t at = str_slot(map, key);
    if (!map->key[at]) {
        map->key[at] = key;
        map->len++;
    }
    map->value[at] = value;
}

static bool name_char(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

// A name that the text form can read: letters, digits, `_`, and `.` between those.
static char *name_clean(Arena *arena, const char *hint) {
    char *s = arena_strdup(arena, *hint ? hint : "v");
    for (char *c = s; *c; c++)
        if (!name_char(*c) && !(*c == '.' && c > s && c[-1] != '.' && name_char(c[1])))
            *c = '_';
    return s;
}

Str name_unique(Kernel *k, const StrMap *map, const char *hint) {
    Arena *arena = kernel_arena(k);
    Interner *interner = k->module->interner;
    char *clean = name_clean(arena, hint);
    Str name = intern_cstr(interner, clean);
    if (!strmap_get(map, name))
        return name;
    // s.3 -> base s
    char *dot = strrchr(clean, '.');
    if (dot && dot > clean && dot[1] && strspn(dot + 1, "0123456789") == strlen(dot + 1))
        *dot = 0;
    Str base = intern_cstr(interner, clean);
    uintptr_t n = (uintptr_t)strmap_get(&k->names->suffix, base);
    do {
        char *text = arena_printf(arena, "%s.%llu", base, (unsigned long long)++n);
        name = intern_cstr(interner, text);
    } while (strmap_get(map, name));
    strmap_put(arena, &k->names->suffix, base, (void *)n);
    return name;
}

static Str name_find(const Kernel *k, const char *name) {
    return intern_find(k->module->interner, name, strlen(name));
}

Value *ir_find_value(const Kernel *k, const char *name) {
    return strmap_get(&k->names->values, name_find(k, name));
}

Axis *ir_find_axis(const Kernel *k, const char *name) {
    return strmap_get(&k->names->axes, name_find(k, name));
}

Mem *ir_find_mem(const Kernel *k, const char *name) {
    return strmap_get(&k->names->mems, name_find(k, name));
}

Kernel *ir_find_kernel(const Module *m, const char *name) {
    for (int i = 0; i < m->nkernel; i++)
        if (strcmp(m->kernel[i]->name, name) == 0)
            return m->kernel[i];
    return NULL;
}

// ".v0" of a variant's name, NULL of another.
static const char *variant_suffix(const Kernel *k) {
    const char *dot = strrchr(k->name, '.');
    if (!dot || dot[1] != 'v' || dot[2] == 0)
        return NULL;
    return dot[2 + strspn(dot + 2, "0123456789")] == 0 ? dot : NULL;
}

Str kernel_base_name(const Kernel *k) {
    const char *suffix = variant_suffix(k);
    return suffix ? intern(k->module->interner, k->name, (size_t)(suffix - k->name)) : k->name;
}

bool kernel_is_most_special(const Kernel *k) {
    const char *suffix = variant_suffix(k);
    return !suffix || strcmp(suffix, ".v0") == 0;
}

const char *written_name(Arena *arena, const char *name) {
    const char *dot = strrchr(name, '.');
    bool numbered = dot && dot != name && dot[1] != 0;
    for (const char *p = numbered ? dot + 1 : ""; *p; p++)
        numbered &= isdigit((unsigned char)*p) != 0;
    return numbered ? arena_strndup(arena, name, (size_t)(dot - name)) : name;
}

// --- modules and kernels ---

Module *ir_module_new(Arena *arena, Interner *interner, Str target) {
    Module *m = ARENA_NEW(arena, Module);
    m->arena = arena;
    m->interner = interner;
    m->layouts = layout_table_new(arena);
    m->target = intern_cstr(interner, target);
    m->layout_names = ARENA_NEW(arena, struct LayoutNames);
    return m;
}

// Doubles an array of pointers with a 16-bit capacity.
static void *grow_pointers(Arena *arena, void *data, uint16_t len, uint16_t *cap) {
    if (len < *cap)
        return data;
    *cap = (uint16_t)(*cap ? (*cap < 0x8000 ? 2 * *cap : 0xffff) : 8);
    void **grown = ARENA_ARRAY(arena, void *, *cap);
    if (len)
        memcpy(grown, data, len * sizeof *grown);
    return grown;
}

Region *region_new(Kernel *k, Op *owner) {
    Region *r = ARENA_NEW(kernel_arena(k), Region);
    r->owner = owner;
    return r;
}

Kernel *ir_kernel_new(Module *module, const char *name, Span span) {
    Kernel *k = ARENA_NEW(module->arena, Kernel);
    k->module = module;
    k->name = intern_cstr(module->interner, name);
    k->span = span;
    k->names = ARENA_NEW(module->arena, struct NameTable);
    k->consts = ARENA_NEW(module->arena, struct ConstTable);
    k->body = region_new(k, NULL);
    module->kernel =
        grow_pointers(module->arena, module->kernel, module->nkernel, &module->kernel_cap);
    module->kernel[module->nkernel++] = k;
    return k;
}

// --- values, axes, memories ---

Value *value_new(Kernel *k, ValueKind kind, Type type) {
    Value *v = ARENA_NEW(kernel_arena(k), Value);
    v->kind = kind;
    v->id = k->nvalue++;
    v->type = type;
    return v;
}

Value *value_named(Kernel *k, ValueKind kind, Type type, const char *hint) {
    Value *v = value_new(k, kind, type);
    v->name = name_unique(k, &k->names->values, hint);
    strmap_put(kernel_arena(k), &k->names->values, v->name, v);
    return v;
}

// Names that a reference would read as a constant, and names that start like a number.
static bool axis_name_taken(const char *name) {
    return isdigit((unsigned char)name[0]) || !strcmp(name, "true") || !strcmp(name, "false") ||
           !strcmp(name, "inf") || !strcmp(name, "nan");
}

Axis *axis_new(Kernel *k, const char *name) {
    Arena *arena = kernel_arena(k);
    Axis *a = ARENA_NEW(arena, Axis);
    a->id = k->naxis;
    if (axis_name_taken(name))
        name = arena_printf(arena, "_%s", name);
    a->name = name_unique(k, &k->names->axes, name);
    strmap_put(arena, &k->names->axes, a->name, a);
    k->axis = grow_pointers(arena, k->axis, k->naxis, &k->axis_cap);
    k->axis[k->naxis++] = a;
    a->iota = value_new(k, VALUE_IOTA, type_tile(DT_INDEX, axes_of(a)));
    a->iota->axis = a;
    return a;
}

Mem *mem_new(Kernel *k, MemKind kind, const char *name, DType dtype) {
    Arena *arena = kernel_arena(k);
    Mem *m = ARENA_NEW(arena, Mem);
    m->kind = kind;
    m->id = k->nmem;
    m->dtype = dtype;
    m->inner = -1;
    m->name = name_unique(k, &k->names->mems, name);
    strmap_put(arena, &k->names->mems, m->name, m);
    k->mem = grow_pointers(arena, k->mem, k->nmem, &k->mem_cap);
    k->mem[k->nmem++] = m;
    return m;
}

// --- parameters ---

Param *param_new(Kernel *k, ParamKind kind, const char *name) {
    Param *grown = ARENA_ARRAY(kernel_arena(k), Param, (size_t)k->nparam + 1);
    if (k->nparam)
        memcpy(grown, k->param, k->nparam * sizeof *grown);
    k->param = grown;
    Param *p = &k->param[k->nparam++];
    p->kind = kind;
    p->name = intern_cstr(k->module->interner, name);
    return p;
}

static Axis *param_dim(Kernel *k, const char *name, Value *extent) {
    Axis *a = axis_new(k, name);
    a->is_dim = true;
    a->extent = extent ? extent : value_named(k, VALUE_PARAM, type_scalar(DT_INDEX), name);
    a->lo = ir_index(k, 0);
    a->hi = a->extent;
    Param *p = param_new(k, PARAM_DIM, name);
    p->axis = a;
    p->value = a->extent;
    return a;
}

Axis *ir_param_dim(Kernel *k, const char *name) {
    return param_dim(k, name, NULL);
}

Axis *ir_param_dim_fixed(Kernel *k, const char *name, int64_t extent) {
    Axis *a = param_dim(k, name, ir_index(k, extent));
    // `%D` reads as the constant
    strmap_put(kernel_arena(k), &k->names->values, name_unique(k, &k->names->values, name),
               a->extent);
    return a;
}

Value *ir_param_scalar(Kernel *k, const char *name, DType dtype) {
    Value *v = value_named(k, VALUE_PARAM, type_scalar(dtype), name);
    Param *p = param_new(k, PARAM_SCALAR, name);
    p->value = v;
    return v;
}

Mem *ir_param_tensor(Kernel *k, const char *name, MemMode mode, bool opt, DType dtype, int rank,
                     Value **dims) {
    Mem *m = mem_new(k, MEM_PARAM, name, dtype);
    m->space = SPACE_GLOBAL;
    m->mode = mode;
    m->opt = opt;
    m->rank = (uint8_t)(rank < RANK_MAX ? rank : RANK_MAX);
    for (int i = 0; i < m->rank; i++)
        m->dim[i] = dims[i];
    Param *p = param_new(k, PARAM_TENSOR, name);
    p->mem = m;
    return m;
}

// --- constants ---

static uint64_t const_bits(const Value *v) {
    uint64_t bits;
    memcpy(&bits, &v->u, sizeof bits);
    return bits;
}

static uint32_t const_slot(const struct ConstTable *t, DType dtype, uint64_t bits) {
    uint64_t h = (bits ^ ((uint64_t)dtype << 57)) * 0x9e3779b97f4a7c15u;
    uint32_t i = (uint32_t)(h >> 32) & (t->cap - 1);
    while (t->slot[i] && !(t->slot[i]->type.dtype == dtype && const_bits(t->slot[i]) == bits))
        i = (i + 1) & (t->cap - 1);
    return i;
}

static Value *const_get(Kernel *k, DType dtype, uint64_t bits) {
    struct ConstTable *t = k->consts;
    if (4 * (t->len + 1) > 3 * t->cap) {
        struct ConstTable grown = {.cap = t->cap ? 2 * t->cap : 16, .len = t->len};
        grown.slot = ARENA_ARRAY(kernel_arena(k), Value *, grown.cap);
        for (uint32_t i = 0; i < t->cap; i++)
            if (t->slot[i])
                grown.slot[const_slot(&grown, t->slot[i]->type.dtype, const_bits(t->slot[i]))] =
                    t->slot[i];
        *t = grown;
    }
    uint32_t at = const_slot(t, dtype, bits);
    if (!t->slot[at]) {
        Value *v = value_new(k, VALUE_CONST, type_scalar(dtype));
        memcpy(&v->u, &bits, sizeof bits);
        t->slot[at] = v;
        t->len++;
    }
    return t->slot[at];
}

int64_t ir_wrap(DType dtype, int64_t i) {
    uint32_t bits = dtype == DT_BOOL ? 1 : dtype_bits(dtype);
    if (bits == 0 || bits >= 64)
        return i;
    uint64_t u = (uint64_t)i << (64 - bits);
    return dtype_is_signed(dtype) ? (int64_t)u >> (64 - bits) : (int64_t)(u >> (64 - bits));
}

static double round_bits(double f, int mantissa, int min_exponent, double max, bool saturate) {
    if (isnan(f) || f == 0.0)
        return f;
    if (isinf(f))
        return saturate ? copysign(max, f) : f;
    int e;
    frexp(f, &e);
    e = e - 1 < min_exponent ? min_exponent : e - 1;
    double unit = ldexp(1.0, e - mantissa);
    double r = rint(f / unit) * unit;
    if (fabs(r) > max)
        return copysign(saturate ? max : (double)INFINITY, f);
    return r;
}

double ir_round(DType dtype, double f) {
    if (dtype == DT_F32)
        return (double)(float)f;
    if (dtype == DT_F16)
        return round_bits(f, 10, -14, 65504.0, false);
    if (dtype == DT_BF16)
        return round_bits(f, 7, -126, 0x1.fep127, false);
    if (dtype == DT_E4M3)
        return round_bits(f, 3, -6, 448.0, true);
    if (dtype == DT_E5M2)
        return round_bits(f, 2, -14, 57344.0, true);
    return f;
}

Value *ir_int(Kernel *k, DType dtype, int64_t i) {
    if (dtype_is_float(dtype))
        return ir_float(k, dtype, (double)i);
    return const_get(k, dtype, (uint64_t)ir_wrap(dtype, i));
}

Value *ir_index(Kernel *k, int64_t i) {
    return const_get(k, DT_INDEX, (uint64_t)i);
}

Value *ir_float(Kernel *k, DType dtype, double f) {
    if (!dtype_is_float(dtype))
        return ir_int(k, dtype, fabs(f) < 0x1p63 ? (int64_t)f : 0);
    double r = isnan(f) ? (double)NAN : ir_round(dtype, f);
    uint64_t bits;
    memcpy(&bits, &r, sizeof bits);
    return const_get(k, dtype, bits);
}

Value *ir_bool(Kernel *k, bool b) {
    return const_get(k, DT_BOOL, b);
}

Value *const_clone(Kernel *to, const Value *v) {
    return const_get(to, v->type.dtype, const_bits(v));
}

bool value_is_const(const Value *v) {
    return v->kind == VALUE_CONST;
}

bool value_is_int(const Value *v, int64_t i) {
    return v->kind == VALUE_CONST && !dtype_is_float(v->type.dtype) && v->u.i == i;
}

// --- names of layouts ---

static void order_region(const Region *r, AxisOrder *o, bool *seen, uint16_t *n) {
    for (const Op *op = r->first; op; op = op->next) {
        if (op->kind == OP_AXIS && op->naxes && !seen[op->axes[0]->id]) {
            seen[op->axes[0]->id] = true;
            o->id[(*n)++] = op->axes[0]->id;
        }
        for (int i = 0; i < op->nregion; i++)
            order_region(op->region[i], o, seen, n);
    }
}

AxisOrder axis_order(Arena *arena, const Kernel *k) {
    AxisOrder o = {.rank = ARENA_ARRAY(arena, uint16_t, k->naxis),
                   .id = ARENA_ARRAY(arena, uint16_t, k->naxis)};
    bool *seen = ARENA_ARRAY(arena, bool, k->naxis);
    uint16_t n = 0;
    for (int i = 0; i < k->nparam; i++) {
        if (k->param[i].kind == PARAM_DIM) {
            seen[k->param[i].axis->id] = true;
            o.id[n++] = k->param[i].axis->id;
        }
    }
    order_region(k->body, &o, seen, &n);
    for (uint16_t id = 0; id < k->naxis; id++) // declared nowhere
        if (!seen[id])
            o.id[n++] = id;
    for (uint16_t i = 0; i < n; i++)
        o.rank[o.id[i]] = i;
    return o;
}

typedef struct AxisNames {
    const Kernel *kernel;
    const uint16_t *id; // by rank; NULL: ids are ids
} AxisNames;

static const char *axis_name_of(void *context, uint16_t axis) {
    const AxisNames *names = context;
    if (axis >= names->kernel->naxis)
        return "?";
    return names->kernel->axis[names->id ? names->id[axis] : axis]->name;
}

static bool in_order(const AxisOrder *order, const Layout *l) {
    for (int i = 1; i < l->naxes; i++)
        if (order->rank[l->axis[i - 1]] > order->rank[l->axis[i]])
            return false;
    return true;
}

// The layout over ranks in place of ids: its terms are sorted as the text has the axes.
static const Layout *layout_ranked(Arena *arena, const AxisOrder *order, const Layout *l) {
    enum { SPARE = 0xff00 };
    LayoutTable *table = layout_table_new(arena);
    const Layout *r = layout_intern(table, l);
    for (int i = 0; i < l->naxes && r; i++)
        r = layout_rename(table, r, l->axis[i], (uint16_t)(SPARE + i));
    for (int i = 0; i < l->naxes && r; i++)
        r = layout_rename(table, r, (uint16_t)(SPARE + i), order->rank[l->axis[i]]);
    return r;
}

const char *layout_text(Arena *arena, const Kernel *k, const AxisOrder *order, const Layout *l) {
    AxisNames names = {.kernel = k};
    bool known = true;
    for (int i = 0; i < l->naxes; i++)
        known &= l->axis[i] < k->naxis;
    if (known && !in_order(order, l)) {
        const Layout *ranked = layout_ranked(arena, order, l);
        if (ranked) {
            l = ranked;
            names.id = order->id;
        }
    }
    size_t len = layout_print(l, NULL, 0, axis_name_of, &names);
    char *text = arena_alloc(arena, len + 1);
    layout_print(l, text, len + 1, axis_name_of, &names);
    return text;
}

// Enters a name; one that is taken by another text gets longer.
static void layout_name_add(Module *m, Str text, const char *name) {
    struct LayoutNames *t = m->layout_names;
    Str key = intern_cstr(m->interner, name_clean(m->arena, name));
    for (uint32_t i = 0; i < t->len; i++) {
        if (t->data[i].text == text)
            return;
        if (t->data[i].name == key) {
            key = intern_cstr(m->interner, arena_printf(m->arena, "%s_", key));
            i = (uint32_t)-1;
        }
    }
    if (t->len == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 8;
        LayoutName *grown = ARENA_ARRAY(m->arena, LayoutName, t->cap);
        if (t->len)
            memcpy(grown, t->data, t->len * sizeof *grown);
        t->data = grown;
    }
    t->data[t->len++] = (LayoutName){.text = text, .name = key};
}

void ir_layout_name(Kernel *k, const Layout *layout, const char *name) {
    Module *m = k->module;
    AxisOrder order = axis_order(m->arena, k);
    layout_name_add(m, intern_cstr(m->interner, layout_text(m->arena, k, &order, layout)), name);
}

void layout_names_copy(Module *to, const Module *from) {
    for (uint32_t i = 0; to != from && i < from->layout_names->len; i++)
        layout_name_add(to, intern_cstr(to->interner, from->layout_names->data[i].text),
                        from->layout_names->data[i].name);
}
