// What the files of the IR's core share; nobody else includes this.
#ifndef FUSE_IR_IR_IMPL_H
#define FUSE_IR_IR_IMPL_H

#include "ir/ir.h"

#include <stddef.h>

// A hash table from interned strings to pointers.
typedef struct StrMap {
    Str *key;
    void **value;
    uint32_t len, cap;
} StrMap;
void *strmap_get(const StrMap *map, Str key);
void strmap_put(Arena *arena, StrMap *map, Str key, void *value);

struct NameTable {
    StrMap values, axes, mems;
    StrMap suffix; // base name -> last suffix that was tried
};

struct ConstTable {
    Value **slot;
    uint32_t len, cap;
};

typedef struct LayoutName {
    Str text; // canonical text, with names of axes
    Str name;
} LayoutName;
struct LayoutNames {
    LayoutName *data;
    uint32_t len, cap;
};

static inline Arena *kernel_arena(const Kernel *k) {
    return k->module->arena;
}

// The hint itself when free, else its base with the next free suffix. Not entered into the map.
Str name_unique(Kernel *k, const StrMap *map, const char *hint);
Value *value_new(Kernel *k, ValueKind kind, Type type);
// With a unique name; `hint` is not NULL.
Value *value_named(Kernel *k, ValueKind kind, Type type, const char *hint);
Axis *axis_new(Kernel *k, const char *name);
Mem *mem_new(Kernel *k, MemKind kind, const char *name, DType dtype);
Value *const_clone(Kernel *to, const Value *v);
Param *param_new(Kernel *k, ParamKind kind, const char *name);

Region *region_new(Kernel *k, Op *owner);
void op_insert(Builder *b, Op *op);
// The type that the row's rule gives result `i`; false with a reason when the operands break it.
// The axes that a reference to a buffer walks: its own, renamed.
AxisSet memref_axes(const MemRef *r);
bool op_infer(const Kernel *k, const Op *op, int i, Type *out, const char **why);
// The kernel's axes in order of their declarations in the text. Passes declare axes in other places
// than the order of ids says; the text must not show it, or it would read back as another text.
typedef struct AxisOrder {
    uint16_t *rank; // by id
    uint16_t *id;   // by rank
} AxisOrder;
AxisOrder axis_order(Arena *arena, const Kernel *k);
// Text of a layout with the kernel's axis names.
const char *layout_text(Arena *arena, const Kernel *k, const AxisOrder *order, const Layout *l);
void layout_names_copy(Module *to, const Module *from);

// --- a growing string in an arena ---
typedef struct Text {
    Arena *arena;
    char *data;
    size_t len, cap;
} Text;
void text_reserve(Text *t, size_t more);
void text_add(Text *t, const char *s, size_t len);
void text_str(Text *t, const char *s);
void text_format(Text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

// --- pieces of the text form (print.c) ---
void print_value(Text *t, const Value *v);
void print_string(Text *t, const char *s); // in quotes, escaped
// Everything of a launch but its name, with spans.
void print_launch(Text *t, const Kernel *k, const Op *launch);
// The op's header without its regions, on one line: for messages.
const char *op_text(Arena *arena, const Kernel *k, const Op *op);

#endif
