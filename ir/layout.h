// Layouts: where the elements of a tile live, as linear maps over F2 named by axis.
//
// A layout maps (register, lane, warp, cta) bits, or the bits of a buffer offset, to an element:
// the element's flattened coordinate is the XOR of the columns of the set input bits. Sizes that
// are not powers of two have an odd factor that is counted by registers (or offsets) above the
// bits: size along an axis = 2^bits * rep.
//
// Canonical form, kept by every function here and checked by `layout_intern`:
//   axes are sorted by id; an axis of size 1 is left out; reps are odd and sorted by axis;
//   a register layout has no zero register columns (one register serves all).
// Interned layouts are compared by pointer. All functions are pure; only the table grows. A
// constructor or operation returns NULL when the request does not fit (more than 20 bits in a
// dimension, more than 31 in all, an axis twice, a tile smaller than the matrix unit).
//
// Thread-safety: a table belongs to one thread; layouts are immutable.
#ifndef FUSE_IR_LAYOUT_H
#define FUSE_IR_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lang/base/arena.h"

enum { IN_REG, IN_LANE, IN_WARP, IN_CTA, IN_OFF, IN_DIMS };
#ifndef AXES_MAX
#define AXES_MAX 12
#endif
enum { LAYOUT_BITS_MAX = 20, LAYOUT_REPS_MAX = 4 };

typedef struct LayoutRep {
    uint16_t axis, count;
} LayoutRep;

typedef struct Layout {
    uint8_t naxes;
    uint16_t axis[AXES_MAX];
    uint8_t bits[AXES_MAX]; // log2 of the block along each; flattened bit = prefix sum
    uint8_t nin[IN_DIMS];   // input bits per dimension
    uint32_t col[IN_DIMS][LAYOUT_BITS_MAX]; // XOR mask of flattened output bits; 0 = replicated
    uint8_t nrep;                           // odd factors, rep[0] the fastest digit
    LayoutRep rep[LAYOUT_REPS_MAX];
} Layout;

typedef struct LayoutTable LayoutTable;

// An axis of a tile and its number of elements.
typedef struct AxisSize {
    uint16_t axis;
    uint32_t size;
} AxisSize;

// --- table (layout.c) ---
LayoutTable *layout_table_new(Arena *arena);
// The unique layout equal to `draft`, brought to canonical form; NULL if draft is malformed.
const Layout *layout_intern(LayoutTable *table, const Layout *draft);
bool layout_equal(const Layout *a, const Layout *b);
uint64_t layout_hash(const Layout *l);

// --- queries (layout.c) ---
int layout_axis_index(const Layout *l, uint16_t axis);  // position in axis[], -1 = size 1
unsigned layout_axis_shift(const Layout *l, int index); // flattened bit of the axis's bit 0
unsigned layout_axis_bits(const Layout *l, uint16_t axis);
uint32_t layout_axis_rep(const Layout *l, uint16_t axis); // odd factor, 1 if none
uint32_t layout_size(const Layout *l, uint16_t axis);     // 2^bits * rep; 1 if absent
uint32_t layout_reps(const Layout *l);                    // product of all reps
uint32_t layout_elements(const Layout *l);                // product of all sizes
uint32_t layout_registers(const Layout *l);               // per thread, 2^nin[IN_REG] * reps
uint32_t layout_offsets(const Layout *l);                 // of a buffer, 2^nin[IN_OFF] * reps
// Offset along `axis` that input bit `bit` of `dim` contributes.
uint32_t layout_column(const Layout *l, unsigned dim, unsigned bit, uint16_t axis);
// Coordinates of the element at `in` along l->axis[0..naxes). Digits of in[IN_REG] (or of
// in[IN_OFF]) above nin bits count the reps.
void layout_apply(const Layout *l, const uint32_t in[IN_DIMS], uint32_t coord[AXES_MAX]);
// The same for one axis; 0 for an absent axis.
uint32_t layout_coord(const Layout *l, const uint32_t in[IN_DIMS], uint16_t axis);
// Mask of the zero columns of `dim`: bits over which copies are held. `store`, `put`, `atomic` and
// `print` run only where these bits are 0.
uint32_t layout_free_bits(const Layout *l, unsigned dim);
// Bits of `dim` that move along any of the given axes; *mixed those that also move along others (a
// reduction needs none). In registers rep digits come on top: see layout_axis_rep.
uint32_t layout_axis_inputs(const Layout *l, unsigned dim, const uint16_t *axes, unsigned naxes,
                            uint32_t *mixed);
// log2 of the run of consecutive elements along `axis` held by a thread, aligned to its length:
// register bit reg_bits[i] steps by 2^i. reg_bits may be NULL, else holds LAYOUT_BITS_MAX.
unsigned layout_run(const Layout *l, uint16_t axis, uint8_t *reg_bits);

// --- constructors for registers (layout_blocked.c); axes fastest first ---
// vec elements a thread along the first axis, then lanes, then warps, then the rest in registers.
// Surplus lane and warp bits are replicas. vec, lanes, warps are powers of two.
const Layout *layout_blocked(LayoutTable *table, const AxisSize *axes, unsigned naxes, uint32_t vec,
                             uint32_t lanes, uint32_t warps);
// Lanes along the first axis, then warps, then registers: for a vector machine.
const Layout *layout_blocked_lane_first(LayoutTable *table, const AxisSize *axes, unsigned naxes,
                                        uint32_t lanes, uint32_t warps);
// Every thread holds every element.
const Layout *layout_uniform(LayoutTable *table, const AxisSize *axes, unsigned naxes,
                             uint32_t lanes, uint32_t warps);

// --- constructors for matrix units (layout_mma.c) ---
typedef enum MmaUnit {
    MMA_M16N8K16,     // 16-bit operands
    MMA_M16N8K8,      // 16-bit operands
    MMA_M16N8K8_TF32, // 32-bit operands
    MMA_M16N8K32,     // 8-bit operands
    MMA_M8N8K4,       // f64
} MmaUnit;
// A dot's tile: matrix rows, columns and contraction as axes, lowest bits first. Batch axes are
// counted by the outermost registers. warps_rows * warps_cols warps (warp groups for wgmma) cut
// the highest bits of rows and cols.
typedef struct DotTile {
    const AxisSize *rows, *cols, *ks, *batch;
    uint8_t nrows, ncols, nks, nbatch;
    uint32_t warps_rows, warps_cols;
} DotTile;
const Layout *layout_mma_a(LayoutTable *table, MmaUnit unit, const DotTile *tile);
const Layout *layout_mma_b(LayoutTable *table, MmaUnit unit, const DotTile *tile);
const Layout *layout_mma_c(LayoutTable *table, MmaUnit unit, const DotTile *tile);
// Result of m64nNk*: 4 warps of a group hold 16 rows each.
const Layout *layout_wgmma_d(LayoutTable *table, const DotTile *tile);
// A operand in registers, element width 8, 16 or 32.
const Layout *layout_wgmma_a(LayoutTable *table, const DotTile *tile, unsigned element_bits);
// A dot without a matrix unit: a thread holds tm x tn elements at a time.
typedef struct FmaSplit {
    uint32_t tm, tn;                 // thread tile
    uint32_t lanes_rows, lanes_cols; // lanes in the warp
    bool lane_first;                 // lanes on the lowest columns (vector machine)
} FmaSplit;
const Layout *layout_fma_c(LayoutTable *table, const FmaSplit *split, const DotTile *tile);
// Operands of such a dot: the slice of its result with the contraction in the lowest registers.
const Layout *layout_fma_a(LayoutTable *table, const Layout *c, const DotTile *tile);
const Layout *layout_fma_b(LayoutTable *table, const Layout *c, const DotTile *tile);

// --- constructors for buffers (layout_shared.c); axes fastest first ---
const Layout *layout_shared_linear(LayoutTable *table, const AxisSize *axes, unsigned naxes);
// Rows of the first axis, 16-byte chunks XORed by the row: for cp.async, plain copies, ldmatrix.
// swizzle is 0, 32, 64 or 128 bytes and is cut to the row's bytes.
const Layout *layout_shared(LayoutTable *table, const AxisSize *axes, unsigned naxes,
                            unsigned element_bits, unsigned swizzle);
// The first axis is cut into rows of `swizzle` bytes, the remainder is outermost: what TMA boxes
// write and wgmma descriptors read (address bits [4..] ^= [7..]).
const Layout *layout_shared_box(LayoutTable *table, const AxisSize *axes, unsigned naxes,
                                unsigned element_bits, unsigned swizzle);

// The form of a buffer layout that an engine can address: the arguments that make it.
typedef struct LayoutBox {
    AxisSize axes[AXES_MAX]; // fastest first
    uint8_t naxes;
    unsigned swizzle; // bytes; 0 = none
    uint32_t span;    // elements of axes[0] in one row; its remainder is outermost
} LayoutBox;
// Finds box so that buffer == layout_shared_box(table, box->axes, ..., box->swizzle).
bool layout_box_of(LayoutTable *table, const Layout *buffer, unsigned element_bits, LayoutBox *box);

// --- operations (layout_ops.c) ---
// Without the axis: its bits become replicas, registers that held copies vanish.
const Layout *layout_slice(LayoutTable *table, const Layout *l, uint16_t axis);
// Keeps only the given axes.
const Layout *layout_slice_to(LayoutTable *table, const Layout *l, const uint16_t *axes,
                              unsigned naxes);
// `part` is the slice of `full` over the axes that it lacks, up to the order of registers.
bool layout_is_slice(const Layout *full, const Layout *part);
// Register of `part` that holds what register `reg` of `full` needs (a broadcast's operand).
// Precondition: layout_is_slice(full, part).
uint32_t layout_slice_register(const Layout *full, const Layout *part, uint32_t reg);
// Adds axes in new outermost registers, so that the slice back is `l`.
const Layout *layout_expand(LayoutTable *table, const Layout *l, const AxisSize *axes,
                            unsigned naxes);
// The first 2^bits elements along the axis.
const Layout *layout_restrict(LayoutTable *table, const Layout *l, uint16_t axis, unsigned bits);
// The first `size` elements (a power of two) along `from`, as axis `to`; those that `from` lacks
// are in new registers, above the others. Registers keep their order.
const Layout *layout_first(LayoutTable *table, const Layout *l, uint16_t from, uint16_t to,
                           uint32_t size);
const Layout *layout_rename(LayoutTable *table, const Layout *l, uint16_t from, uint16_t to);
// Every size rounded up to a power of two: the digits of odd factors are register bits above the
// others, rep[0]'s the lowest.
const Layout *layout_round_up(LayoutTable *table, const Layout *l);
// Register of `l` that is register `reg` of layout_round_up(l); -1: of elements that l lacks.
int layout_rounded_register(const Layout *l, uint32_t reg);
// `inner` repeated by `outer`: outer's inputs and outputs above inner's.
const Layout *layout_product(LayoutTable *table, const Layout *inner, const Layout *outer);

// --- maps between layouts (layout_convert.c) ---
// A map from the inputs of one layout to the inputs of another, linear on the bits; rep digits
// are passed through.
typedef struct LayoutMap {
    uint8_t nin[IN_DIMS], nout[IN_DIMS];
    uint32_t col[IN_DIMS][LAYOUT_BITS_MAX][IN_DIMS];
    uint8_t nrep;
    uint32_t rep_count[LAYOUT_REPS_MAX];  // digits in the order of the inputs
    uint32_t rep_stride[LAYOUT_REPS_MAX]; // weight of each in the output, above nout bits
} LayoutMap;
typedef enum ConvertClass {
    CONVERT_NOTHING,   // the identity
    CONVERT_REGISTERS, // other register numbers, the same in all threads
    CONVERT_SELECTS,   // same thread, register chosen by lane or warp bits
    CONVERT_LANES,     // same warp
    CONVERT_WARPS,     // same CTA: shared memory
    CONVERT_CTA,       // cluster shared memory
} ConvertClass;
// C with src(C(x)) = dst(x): where to read what the inputs x of dst hold. src or dst may be a
// buffer (rep digits are written to both out[IN_REG] and out[IN_OFF]: read the one that exists).
// Free bits of src keep dst's own, so copies are read from the same thread where it has one. False
// when the two do not cover the same elements.
bool layout_convert(const Layout *src, const Layout *dst, LayoutMap *map);
void layout_map_apply(const LayoutMap *map, const uint32_t in[IN_DIMS], uint32_t out[IN_DIMS]);
// b after a; a's outputs are b's inputs.
void layout_map_compose(const LayoutMap *b, const LayoutMap *a, LayoutMap *out);
ConvertClass layout_map_class(const LayoutMap *map);
// Source register of a map that stays in the warp: the one that the register bits give, XORed with
// reg[i] in the threads where parity(lane & lanes[i]) ^ parity(warp & warps[i]) is 1. Hence one
// result register is 2^n shuffles (none if the lane stays) and 2^n - 1 selects.
typedef struct LayoutChoice {
    uint8_t n;
    uint32_t reg[LAYOUT_BITS_MAX], lanes[LAYOUT_BITS_MAX], warps[LAYOUT_BITS_MAX];
} LayoutChoice;
LayoutChoice layout_map_choice(const LayoutMap *map);
// Inputs at which the element with coordinates along l->axis[] is held; free bits are 0. The rep
// digits are written to both in[IN_REG] and in[IN_OFF].
void layout_locate(const Layout *l, const uint32_t coord[AXES_MAX], uint32_t in[IN_DIMS]);

// --- shared memory access (layout_access.c) ---
// Offset of the element with coordinates along l->axis[].
uint32_t layout_offset_of(const Layout *buffer, const uint32_t coord[AXES_MAX]);
// log2 of the elements that one thread moves between consecutive registers and consecutive
// offsets, at most max_bits; register bit reg_bits[i] steps by 2^i offsets. reg_bits may be NULL.
unsigned layout_vector(const Layout *regs, const Layout *buffer, unsigned max_bits,
                       uint8_t *reg_bits);
// Wavefronts of one warp-wide access of 2^vector_bits elements a lane, divided by the least
// possible for its width: 1 = no conflict. (32 banks of 4 bytes; 8 and 16 byte accesses go by
// half and quarter warps.)
unsigned layout_bank_conflicts(const Layout *regs, const Layout *buffer, unsigned element_bits,
                               unsigned vector_bits);
// Shared-memory wavefronts a warp spends to move all its registers at the widest vectors.
unsigned layout_wavefronts(const Layout *regs, const Layout *buffer, unsigned element_bits);
// ldmatrix / stmatrix can move this fragment. trans: by the .trans form (16-bit elements only).
typedef struct LayoutMatrix {
    bool ok, trans;
    uint8_t pair[2]; // register bits inside one 32-bit register, lowest first
    uint8_t npair;
    uint8_t nmatrix; // other register bits: 2^nmatrix * reps matrices a warp
    uint8_t matrix[LAYOUT_BITS_MAX];
} LayoutMatrix;
LayoutMatrix layout_matrix_access(const Layout *regs, const Layout *buffer, unsigned element_bits);
// What a conversion costs one warp, in cycles of the shared-memory pipe (a shuffle takes one, as a
// wavefront does), and whether the cheaper way leads through shared memory.
typedef struct LayoutPrice {
    ConvertClass class;
    bool shared;
    unsigned cycles;
} LayoutPrice;
LayoutPrice layout_convert_price(LayoutTable *table, const Layout *src, const Layout *dst,
                                 unsigned element_bits);
// A buffer layout through which src's registers become dst's with the fewest wavefronts.
const Layout *layout_swizzle_best(LayoutTable *table, const Layout *src, const Layout *dst,
                                  unsigned element_bits);

// --- text (layout_text.c) ---
typedef const char *(*LayoutAxisName)(void *context, uint16_t axis);
typedef bool (*LayoutAxisFind)(void *context, const char *name, size_t length, uint16_t *axis);
// `reg(n:1, m:8) lane(n:2, 0) warp(m:16) rep(n:11)`. Writes at most cap bytes with the final 0;
// returns the length without it (as snprintf).
size_t layout_print(const Layout *l, char *buffer, size_t cap, LayoutAxisName name, void *context);
// Reads as many `dim(...)` groups as follow each other from text[*at]; leaves *at behind the last.
// On error returns NULL, *error a static message and *at where.
const Layout *layout_parse(LayoutTable *table, const char *text, size_t length, size_t *at,
                           LayoutAxisFind find, void *context, const char **error);

#endif
