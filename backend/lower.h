// What the lowering files share: placed tile IR to LLVM IR through a Target.
//
// One file per op family; lower.c walks the regions. Every value of the launch has a Tile: one Lane
// per register of its layout, or one Uni for scalars. Invariant: a Tile has exactly
// layout_registers(type.layout) registers, in the order of the layout's register bits.
#ifndef FUSE_BACKEND_LOWER_H
#define FUSE_BACKEND_LOWER_H

#include "backend/target.h"

typedef struct Tile {
    LLVMValueRef *reg; // Lanes; of a scalar one Uni
    int n;             // 0: not computed
} Tile;

// The window [begin, end) that an axis is bound to, i64.
typedef struct Window {
    Uni begin, end;
    uint32_t divisor;     // a power of two that divides begin
    uint32_t end_divisor; // and one that divides end; 0: none known
    bool nonneg;          // begin >= 0 is known,
    bool wraps;           // unless arithmetic has left 64 bits
    bool moderate;        // end <= 2^62 is known
    int bits;             // |begin|, |end| <= 2^bits; 64 or more: they may be any numbers
} Window;

typedef struct Lower {
    Target *t;
    Kernel *kernel;
    const Op *launch;
    Arena *arena;
    LayoutTable *layouts;
    Tile *tile;              // by value id
    Window *window;          // by axis id
    Uni *pointer;            // by memory id: global base
    Uni (*stride)[RANK_MAX]; // by memory id, elements, i64
    bool *written;           // by memory id: some op of the launch writes it
    bool *async;             // by memory id: buffers that cp.async fills
    uint32_t *fact;          // by value id: known divisor (require, when); 0 = none
    int scratch_at;          // byte offset of the scratch area
    int loop_depth;
    bool single;      // one thread of the role runs alone
    bool stores_bulk; // the role has outgoing bulk copies
    int store_warps;  // by one thread of each group of that many warps; 0: of all
    int nmap;         // tensor maps of the launch
    const AbiMap *map;
    Uni *map_pointer;
    bool scratch_used; // since the start of the launch
} Lower;

// --- lower.c ---
bool lower_launch(Target *t, Kernel *kernel, const Op *launch, const char *symbol);
const Op *lower_region(Lower *l, const Region *region); // its yield, or NULL
void lower_op(Lower *l, const Op *op);
Tile *lower_result(Lower *l, const Value *v); // fresh registers, to be filled in
Uni lower_uni(Lower *l, const Value *v);      // a scalar
Uni lower_index(Lower *l, const Value *v);    // a scalar integer as i64
Lane lower_lane(Lower *l, const Value *v, int reg);
int type_registers(Type type); // 1 for scalars

// --- lower_axis.c ---
// XOR over the set bits of x of col[bit].
Uni uni_linear(Lower *l, Uni x, int n, const uint32_t *col);
Lane lane_linear(Lower *l, Lane x, int n, const uint32_t *col);

// Coordinate of a lane along an axis: (warp + lane ^ (register & overlap)) + (register & ~overlap).
typedef struct Coord {
    Uni warp;         // i32; NULL: 0
    Lane lane;        // i32; NULL: 0
    uint32_t overlap; // bits of the register's part that share a bit with the lane's
    uint32_t divisor; // a power of two that divides warp and lane parts
} Coord;
Coord coord_of(Lower *l, const Layout *layout, uint16_t axis);
uint32_t coord_register(const Layout *layout, uint16_t axis, uint32_t reg);
Lane coord_lane(Lower *l, const Coord *c, uint32_t reg_coord, uint32_t *rest); // i32 or NULL

Window lower_window(Lower *l, const Axis *axis);
uint32_t axis_size_of(const Axis *axis);
// A power of two that divides the value; facts, constants, windows.
uint32_t lower_divisor(Lower *l, const Value *v);
bool lower_nonneg(Lower *l, const Value *v); // where no sum or product has left 64 bits
bool lower_nonneg_exact(Lower *l, const Value *v);
// |v| <= 2^bits; 64 or more: it may be any number.
int lower_bits(Lower *l, const Value *v);
bool lower_is_moderate(Lower *l, const Value *v); // v <= 2^62 is known
int window_bits(Lower *l, const Value *lo, const Value *hi);
// i32 min(x, INT32_MAX), at least -1; x is i64.
Uni lower_clamp_i32(Lower *l, Uni x);
// lane + rest < left, in i32; lane may be NULL.
Lane lower_below(Lower *l, Lane lane, int64_t rest, Uni left);
Uni lower_sub(Lower *l, Uni a, Uni b);
// Lanes whose copies count (free lane and warp bits are 0); NULL when all do.
Lane lower_active(Lower *l, const Layout *layout);

// --- lower_elementwise.c ---
// An operand seen from registers of `full`: constants and scalars broadcast, iotas are computed,
// tiles are sliced.
typedef struct Operand {
    const Value *value;
    const Layout *full, *part;
    Lane splat; // scalars and constants
    Coord coord;
    Lane iota; // begin + warp + lane, i64; without overlap
    uint16_t axis;
    uint32_t *map; // register of full -> register of the operand; NULL: the same
} Operand;
Operand operand_of(Lower *l, const Value *v, const Layout *full);
Lane operand_lane(Lower *l, const Operand *o, uint32_t reg);
void lower_elementwise(Lower *l, const Op *op);
// Lowers `op` and the elementwise ops behind it part by part, where whole tiles between them would
// not fit into registers; the number of ops, 0: none.
int lower_elementwise_run(Lower *l, const Op *op);
void lower_inside(Lower *l, const Op *op);
// The function of a fold or scanfn for one register: x in front of y, op->nres values each.
void lower_function(Lower *l, const Op *op, const Lane *x, const Lane *y, Lane *out);
// All registers of `v` in `type`'s layout, broadcast if needed; a scalar's one Uni.
void lower_flatten(Lower *l, const Value *v, Type type, LLVMValueRef *out);

// --- lower_control.c ---
void lower_for(Lower *l, const Op *op);
void lower_while(Lower *l, const Op *op);
void lower_if(Lower *l, const Op *op);
void lower_with(Lower *l, const Op *op);
void lower_axis(Lower *l, const Op *op);
void lower_order(Lower *l, const Op *op);

// --- lower_memory.c ---
// Addresses and predicates of a tile access of a tensor, register by register.
typedef struct IndexTerm {
    uint16_t axis;
    int64_t coeff;
    Coord coord;
} IndexTerm;
typedef struct IndexDim {
    bool affine, unit; // unit: stride 1
    bool check;
    bool nonneg,
        wraps;   // uniform and terms are not negative; unless it `wraps`, for which bits count
    int bits;    // |uniform| <= 2^bits
    Uni uniform; // i64: all that no lane and register changes
    int nterm;
    IndexTerm term[AXES_MAX];
    Operand operand;          // not affine
    bool operand_wide;        // its dtype is 64-bit already
    uint32_t divisor;         // of uniform, lane and register parts above the vector
    Uni stride, extent, left; // left: i32 min(extent - uniform)
} IndexDim;
typedef struct GuardTerm {
    uint16_t axis;
    Coord coord;
    Uni left; // i32: end - begin
} GuardTerm;
typedef struct TileAccess {
    const Layout *layout;
    Mem *mem;
    int rank, nguard;
    int bytes;   // of an element; 1 of a packed one: then the unit of all of this is a nibble
    bool packed; // i4, u4
    Uni nibble;  // packed: uniform part of the address
    IndexDim dim[RANK_MAX];
    GuardTerm guard[AXES_MAX];
    Uni base;
    Lane offset;    // when no term overlaps
    bool is_simple; // offset is the same for all registers
    int vector_log2;
    uint8_t reg_bits[LAYOUT_BITS_MAX];
    int align;        // bytes (packed: nibbles)
    Uni aligned_ends; // i1: extents and ends are multiples of the vector; NULL: known to be
    uint16_t run_axis;
} TileAccess;
// `op`'s reference `ref` walked by `layout`; check and guard are the op's attributes. max_bytes
// bounds the vector.
TileAccess access_of(Lower *l, const Op *op, const MemRef *ref, const Layout *layout,
                     int max_bytes);
// Address and predicate (NULL: always) of register `reg`; of a packed tensor see packed_load.
Ptr access_pointer(Lower *l, TileAccess *a, uint32_t reg);
Ptr access_units(Lower *l, TileAccess *a, uint32_t reg, Uni *uniform);
Lane access_predicate(Lower *l, TileAccess *a, uint32_t reg);
uint32_t access_element(const TileAccess *a, uint32_t base,
                        uint32_t i);                    // register of element i of a vector
bool access_is_base(const TileAccess *a, uint32_t reg); // first of a vector
Access access_plain(Lower *l, const TileAccess *a, int width, const Op *op);
AxisSet access_axes(const Op *op, const MemRef *ref); // that the indices walk
// The layout that walks a store of `v`: the value's, with the axes that only the indices have.
const Layout *access_blocked(Lower *l, AxisSet axes); // of nothing in particular
const Layout *access_store_layout(Lower *l, const Op *op, const MemRef *ref, const Value *v);
void lower_load(Lower *l, const Op *op);
void lower_store(Lower *l, const Op *op);

// --- lower_packed.c: a vector of a packed tensor, from register `reg` on. Where `pred` is false a
// load gives zeros and a store does nothing ---
enum { PACKED_WIDTH_MAX = 64 }; // elements of a vector
void packed_load(Lower *l, const Op *op, TileAccess *a, uint32_t reg, Lane pred, Lane *out);
void packed_store(Lower *l, const Op *op, TileAccess *a, uint32_t reg, Lane pred,
                  const Lane *value);

// --- lower_atomic.c ---
void lower_atomic(Lower *l, const Op *op);
int64_t atomic_scratch(const Op *op);

// --- lower_debug.c ---
void lower_print(Lower *l, const Op *op);
void lower_assert(Lower *l, const Op *op);

// --- lower_reduce.c ---
void lower_reduce(Lower *l, const Op *op);
void lower_argreduce(Lower *l, const Op *op);
Tile reduce_tile(Lower *l, ReduceKind kind, DType dtype, const Layout *from, const Layout *to,
                 const LLVMValueRef *in);
int64_t reduce_scratch(const Layout *from, const Layout *to, DType dtype, int values);

// --- lower_convert.c ---
void lower_convert(Lower *l, const Op *op);
int64_t convert_scratch(const Op *op);

// --- lower_notes.c ---
void lower_note_access(Lower *l, const Op *op, const TileAccess *a);
void lower_note_conversion(Lower *l, const Op *op); // through shared memory

// --- lower_dot.c ---
void lower_dot(Lower *l, const Op *op);

// --- lower_late.c: what computes a value is moved to the end of the block, in front of its first
// user ---
typedef struct Late Late;
// What there is in the block may be moved, where its order is free; loads of global memory if
// `far`.
Late *late_begin(Lower *l, bool far);
void late_move(const Late *late, Lane x);

// --- lower_shared.c ---
// Registers of `regs` in a buffer of layout `buffer` at byte offset `base`: all of them, in the
// widest vectors.
void shared_read(Lower *l, DType dtype, const Mem *mem, const Layout *regs, const Layout *buffer,
                 Uni base, LLVMValueRef *out);
void shared_write(Lower *l, DType dtype, const Mem *mem, const Layout *regs, const Layout *buffer,
                  Uni base, const LLVMValueRef *in);
// Layout of the referenced buffer under the reference's axes; byte offset of its slot.
const Layout *buffer_layout(Lower *l, const MemRef *ref);
Uni buffer_base(Lower *l, const Op *op, const MemRef *ref);
int storage_bytes(DType dtype); // of one element in memory
// A barrier before the scratch area is written again; none for its first use.
void scratch_begin(Lower *l);
void lower_get(Lower *l, const Op *op);
void lower_put(Lower *l, const Op *op);
void lower_copy(Lower *l, const Op *op);
void lower_channel(Lower *l, const Op *op); // acquire, commit, wait, release

// --- lower_roles.c ---
void lower_roles(Lower *l, const Op *op);
void lower_barrier(Lower *l, const Op *op);
void lower_fence(Lower *l, const Op *op);
void lower_mbarrier(Lower *l, const Op *op); // acquire .. release of such a channel
void lower_mbarriers_init(Lower *l);         // of all channels of the launch
Shared mbarrier_full(Lower *l, const Mem *chan, Uni position);
// One thread of each group of `warps` warps of the role (of the launch outside of roles; 0: one of
// all) does what is between the two.
typedef struct Elected {
    bool on;
    IfState warp, lane;
} Elected;
int group_warps(Lower *l, const Op *op); // its attribute `warps`, or all
void elected_begin(Lower *l, Elected *e, int warps);
void elected_end(Lower *l, Elected *e);

// --- lower_tma.c ---
bool copy_is_tma(const Op *op);
void lower_tma_copy(Lower *l, const Op *op);
void lower_copy_wait(Lower *l, const Op *op);
// Gives the launch the attribute `maps` that its copies need.
void lower_find_maps(Target *t, Kernel *kernel, Op *launch);

// --- lower_wgmma.c ---
void lower_mma_issue(Lower *l, const Op *op);
void lower_mma_wait(Lower *l, const Op *op);

// --- lower_scan.c, lower_sort.c, lower_take.c ---
void lower_scan(Lower *l, const Op *op);
void lower_fold(Lower *l, const Op *op); // and scanfn
int64_t scan_scratch(const Op *op);
void lower_sort(Lower *l, const Op *op); // and topk
int64_t sort_scratch(const Op *op);
void lower_take(Lower *l, const Op *op);
int64_t take_scratch(const Op *op);

#endif
