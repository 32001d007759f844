// What the files of the evaluator share; nobody else includes this.
//
// All memory of a run but its tables is blocks on one list, so that a failure (eval_fail, which
// does not return) frees whatever was in use. Tiles are counted: `value[id]` holds a reference,
// dropped when the region that defines the value is left or defines it again.
#ifndef FUSE_IR_EVAL_IMPL_H
#define FUSE_IR_EVAL_IMPL_H

#include <setjmp.h>

#include "ir/eval.h"

typedef union Cell {
    int64_t i; // integers and bool
    double f;  // floats
} Cell;

// What is known of an element.
enum {
    BAD_POISON = 1,  // may be anything
    BAD_UNKNOWN = 2, // depends on what sampling or slicing left out
};

// Dense, row-major in order of the axes' ids.
typedef struct Tile Tile;
struct Tile {
    int refs;
    DType dtype;
    AxisSet axes;
    int64_t n[AXES_MAX];
    int64_t count;
    Cell *cell;
    uint8_t *bad; // per element, NULL where all are good
};

typedef struct Window {
    bool bound;
    int64_t begin, end;
    int64_t n; // positions of a tile, at least end - begin
} Window;

// A tensor, buffer or channel during the run.
typedef struct Slot {
    Cell *cell;
    uint8_t *bad;
    int64_t position; // of the fill it holds; -1: none
    bool busy;        // acquired and not yet released
} Slot;

typedef struct MemState {
    bool defined, absent;
    // tensors
    uint8_t *data;
    int64_t dims[RANK_MAX], strides[RANK_MAX];
    int64_t count;
    uint8_t *bad;                     // temps: per element in row-major order
    uint8_t *written;                 // outputs: the same
    uint32_t *writer;                 // check_races: last iteration that wrote the element
    uint32_t *stamp;                  // and the store
    uint32_t *reader, *reader_before; // the last two different iterations that read it
    // buffers
    int nslot;
    Slot *slot;
    AxisSet axes;
    int64_t n[AXES_MAX], slot_count;
    const Mem *chan; // the channel that it belongs to
    bool late;       // outgoing copies leave at copy.wait
    // channels
    int64_t *group; // per slot: number of the commit of its fill, -1 before it
} MemState;

// A copy that was issued and has not arrived.
typedef struct Pending Pending;
struct Pending {
    Pending *next;
    const Op *op;
    const Mem *buf;
    bool outgoing;
    int64_t position;
    // incoming: what the slot will hold
    Cell *cell;
    uint8_t *bad;
    // outgoing: where each element of the slot goes; -1 = nowhere
    int64_t *offset, *linear;
    const Mem *to;
};

typedef struct Block Block;
struct Block {
    _Alignas(16) Block *prev;
    Block *next;
};

typedef struct Access Access;
typedef struct Finding Finding;
typedef struct Iteration Iteration;

typedef struct Eval {
    Arena *arena;
    const Kernel *kernel;
    EvalOptions opts;
    bool exact;           // tiles have no padding: stages tensor and nests
    Tile **value;         // by Value.id
    Window *window;       // by Axis.id
    MemState *mem;        // by Mem.id
    Block *blocks;        // all live ones
    Pending *pending;     // in order of issue
    bool partial;         // sampled or sliced: something is left out
    uint32_t iteration;   // running one of the grid, counted over the run; 0: none
    uint32_t iterations;  // so far
    uint32_t grid_first;  // the grid's first
    uint32_t store;       // stores so far
    Op const **last_use;  // by Value.id: the op after which it is dropped, if that is in its region
    int64_t commits;      // by channels whose copies complete in groups
    int64_t steps, cells; // against max_steps, max_cells
    uint64_t draws;       // random numbers used
    int64_t programs, programs_run;
    const Op *failed;
    bool no_variant;
    const char *error;
    jmp_buf *stop;       // where failures go
    struct Roles *roles; // that are running
    // with opts.check
    Finding *findings;
    Iteration *log; // of iterations 1, 2, ...
    uint32_t iteration_cap;
} Eval;

// --- failing (eval.c) ---
_Noreturn void eval_fail(Eval *e, const Op *op, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void eval_region(Eval *e, const Region *r);     // runs every op but a final yield
void eval_region_end(Eval *e, const Region *r); // drops the values that it defined
void *eval_calloc(Eval *e, const Op *op, int64_t count, int64_t size);     // zeroed
void eval_free(Eval *e, void *block);                                      // NULL is allowed
void eval_count_cells(Eval *e, const Op *op, int64_t count, int64_t each); // against max_cells

// --- tiles and values (eval_tile.c) ---
Tile *tile_new(Eval *e, const Op *op, DType dtype, AxisSet axes); // one reference
Tile *tile_ref(Tile *t);
void tile_drop(Eval *e, Tile *t);                        // NULL is allowed
uint8_t *tile_bad(Eval *e, const Op *op, Tile *t);       // makes the map
Tile *eval_value(Eval *e, const Op *op, const Value *v); // borrowed
Tile *tile_broadcast(Eval *e, const Op *op, Tile *t,
                     Type type);                 // a new reference, with exactly the type's axes
void eval_set(Eval *e, const Value *v, Tile *t); // takes the reference
void eval_set_int(Eval *e, const Op *op, const Value *v, int64_t i);
int64_t eval_int(Eval *e, const Op *op, const Value *v); // a good scalar
Window eval_window(Eval *e, const Op *op, const Axis *axis);
Axis *eval_axis(Eval *e, uint16_t id);
const EvalSlice *axis_slice(const Eval *e, const Axis *axis); // NULL: it is whole
bool axes_sliced(const Eval *e, const Op *op); // one of the op's bracket axes is sliced
const char *eval_point(Eval *e, AxisSet axes, const int64_t *pos); // "m = 3, n = 5"

// Visits the points of a domain in row-major order with the offsets of several tiles along.
enum { WALK_MAX = AXES_MAX + 3 };
typedef struct Walk {
    AxisSet axes;
    int64_t n[AXES_MAX], count, pos[AXES_MAX];
    int64_t left[AXES_MAX]; // positions inside the windows
    int ntile;
    int64_t step[WALK_MAX][AXES_MAX], at[WALK_MAX];
} Walk;
void walk_start(Eval *e, const Op *op, Walk *w, AxisSet axes);
// Follows a tile whose axes are among the domain's; its offset is w->at[result].
int walk_tile(Eval *e, const Op *op, Walk *w, const Tile *t);
// The same for a tile with other axes too, which stay at their first position.
int walk_part(Eval *e, const Op *op, Walk *w, const Tile *t);
void walk_next(Walk *w);            // after the last point comes the first
void walk_seek(Walk *w, int64_t p); // to the p-th point
bool walk_is_inside(const Walk *w); // no axis is beyond its window's end
void tile_strides(const Tile *t, int64_t *stride);

// --- roles (eval_roles.c) ---
typedef struct Roles Roles;
void eval_roles(Eval *e, const Op *op);
void roles_wait(Eval *e,
                const Op *op); // only in a role: lets the others run, or reports a deadlock
void roles_went_on(Eval *e);   // a role has changed what others may wait for

// --- one per family ---
void eval_elementwise(Eval *e, const Op *op); // eval_math.c
void eval_take(Eval *e, const Op *op);        // eval_along.c
void eval_reduce(Eval *e, const Op *op);
void eval_argreduce(Eval *e, const Op *op);
void eval_scan(Eval *e, const Op *op);
// A walk over the op's axes in the order written, the last fastest: offsets in `v` in at[0].
void walk_along(Eval *e, const Op *op, Walk *w, const Tile *v);
// Marks a result; poison in an inside element is an error.
void result_bad(Eval *e, const Op *op, Tile *out, const Walk *w, int64_t p, uint8_t bad);
void eval_fold(Eval *e, const Op *op); // eval_fold.c; and scanfn
void eval_sort(Eval *e, const Op *op); // eval_sort.c; and topk
void eval_histogram(Eval *e, const Op *op);
void eval_dot(Eval *e, const Op *op);  // eval_dot.c
void eval_mma(Eval *e, const Op *op);  // mma.issue
void eval_temp(Eval *e, const Op *op); // eval_memory.c
void eval_load(Eval *e, const Op *op);
void eval_store(Eval *e, const Op *op); // and scatter
void eval_atomic(Eval *e, const Op *op);
void eval_inside(Eval *e, const Op *op);
void eval_memory_fact(Eval *e, const Op *op); // present, extent, stride
void eval_buf(Eval *e, const Op *op);         // eval_staging.c
void eval_chan(Eval *e, const Op *op);
void eval_chan_op(Eval *e, const Op *op);
void eval_get(Eval *e, const Op *op);
// What the slot holds, as a tile over the reference's axes; a new reference.
Tile *eval_slot(Eval *e, const Op *op, const MemRef *ref);
void eval_put(Eval *e, const Op *op);
void eval_copy(Eval *e, const Op *op);
void eval_copy_wait(Eval *e, const Op *op);
void staging_finish(Eval *e);              // at the end of a program
void eval_parallel(Eval *e, const Op *op); // eval_region.c; and launch
void eval_for(Eval *e, const Op *op);
void eval_while(Eval *e, const Op *op);
void eval_if(Eval *e, const Op *op);
void eval_with(Eval *e, const Op *op);
void eval_axis_op(Eval *e, const Op *op);
void eval_order(Eval *e, const Op *op);

// Where the points of an access to a tensor lie.
typedef enum Place {
    PLACE_IN,
    PLACE_OUT,     // the fill is read, nothing is written
    PLACE_POISON,  // some element, or the fill
    PLACE_PADDING, // an element, but the point is padding
    PLACE_UNKNOWN, // sampling left out what the index needs
} Place;
struct Access {
    const Op *op;
    const Mem *mem;
    MemState *state;
    Walk walk;
    const Tile *index[RANK_MAX];
    int at[RANK_MAX];
    uint32_t checked, guarded; // bits of dims; bits of the domain's axes
    int outside;               // PLACE_OUT: the dim whose index is outside, -1: a guarded axis
    int64_t offset, linear;    // of the current point: in strides, and row-major
};
// `ref` is a tensor; `axes` the domain. The walk is at its start; walk_tile may be called for more
// tiles.
void access_start(Eval *e, const Op *op, Access *a, const MemRef *ref, AxisSet axes);
Place access_place(Eval *e, Access *a);
// The points of the access in the order that the seed picks; NULL: as the walk goes.
int64_t *access_order(Eval *e, const Access *a);
// check_races: an element is read or written by the running iteration.
void race_read(Eval *e, const Op *op, const Mem *m, int64_t linear);
void race_write(Eval *e, const Op *op, const Mem *m, int64_t linear);
Cell cell_load(const Mem *m, const MemState *s, int64_t offset);
void cell_store(const Mem *m, MemState *s, int64_t offset, int64_t linear, Cell c);
// Stores at the current point, with the rules for poison and padding.
void access_store(Eval *e, Access *a, Cell c, uint8_t bad);

// --- checks (eval_check.c): nothing is done without opts.check where not said otherwise ---
// Counts an occurrence; where it is the first at that op, the place for its text. Only with check.
const char **check_found(Eval *e, const Op *op, DiagId id);
const char *check_element(Eval *e, const Mem *m, int64_t linear);   // "`y[2, 3]`"
void check_iteration_start(Eval *e, const Op *op, uint32_t around); // its binders are bound
const char *check_iteration(Eval *e, uint32_t iteration);           // "m = 3, n = 5"
const char *check_where(Eval *e, AxisSet axes, const int64_t *pos); // ", at m = 3", or ""
// Only with check: `what` is poison; memory of poison is read; an index is outside.
void check_undetermined(Eval *e, const Op *op, const char *what, AxisSet axes, const int64_t *pos);
void check_unwritten(Eval *e, const Access *a);
void check_outside(Eval *e, const Access *a, bool is_read);
void check_overflow(Eval *e, const Op *op, DType dtype, const char *what, AxisSet axes,
                    const int64_t *pos);
void check_assert(Eval *e, const Op *op, bool holds, bool is_bad, const Walk *w);
void check_elementwise(Eval *e, const Op *op, Tile *out, const Tile *const *in);
// A sum in 64 bits, `lost` where it left them, becomes a `dtype` at the walk's point.
void check_sum(Eval *e, const Op *op, DType dtype, int64_t sum, bool lost, const Walk *w);
void check_segment(Eval *e, const Op *op, const Value *lo, const Value *hi);
void check_step(Eval *e, const Op *op); // of 0
void check_finish(Eval *e, bool ran);   // gives the reports to opts.check

// Arithmetic on single cells, shared by elementwise ops, reductions and atomics (eval_math.c).
Cell cell_binary(OpKind kind, DType dtype, Cell a, Cell b);
// What an element's badness follows from; `select` and bool `and`, `or` look only at what decides.
uint8_t cell_bad(const Op *op, const Cell c[3], const uint8_t bad[3]);
Cell cell_from(Scalar s);
Scalar cell_scalar(DType dtype, Cell c);

#endif
