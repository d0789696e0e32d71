/* What runs together. Everything that decides it stands behind this header; its inputs are the module, the facts of
 * the device's units (rt_compute_facts) and a cost model made from them, and its results are data: which ops are one
 * kernel, which values are computed anew by each kernel that reads them, which kernels store several values, which
 * kernels go through memory tile by tile together, each with its reason and what it was expected to cost. A plan is
 * built from that, a device runs what the plan says, and explain("fusion") reads it.
 *
 *   fusion_make, fusion_decide   for each op, whether a kernel ends at it (a root), whether it is computed inside the
 *                                kernel of its one root, or inside every kernel that uses it
 *   fusion_merge                 which roots share a kernel, on the final order of steps
 *   fusion_lower                 the kernel of a root, in the loop IR
 *   fusion_goes_by_rows, ...     which kernels, one after another, may run tile by tile; the plan, which knows where
 *                                values lie, puts them together (plan/tile.c)
 *
 * Fusion does not change the module, and no decision changes a bit of a result. Threads: a fusion_plan is filled by one
 * thread, and read by any number afterwards. Functions that can fail do so only when out of memory. */
#ifndef XLAC_FUSE_FUSE_H
#define XLAC_FUSE_FUSE_H

#include "../base/str.h"
#include "../kernel/kernel.h"
#include "../runtime/device.h"

/* --- fusion_cost.c: what things cost, in cycles of one unit --- */

/* Made once from a device's facts. All figures are of one thread and rough: they compare two ways to the same end. */
typedef struct fusion_model {
  rt_compute_facts facts; /* complete: where the device knew nothing stands what is usual */
  double op;              /* arithmetic on 4 bytes, all lanes of a vector in use */
  double level[4];        /* reading a byte from each level of the cache, and from memory */
  uint32_t devices;       /* that run the same program, on shards of their own; at least 1 */
} fusion_model;

/* facts: NULL where nothing is known of the device. */
void fusion_model_make(fusion_model *out, const rt_compute_facts *facts);
/* Of op, which is elementwise, on one element. */
double fusion_op_cost(const fusion_model *m, const ir_op *op);
/* Of an index as a number (iota). */
double fusion_count_cost(const fusion_model *m);
/* Of reading, or writing, one byte of an array of so many bytes that all of it is gone through. */
double fusion_read_cost(const fusion_model *m, int64_t bytes);
double fusion_write_cost(const fusion_model *m, int64_t bytes);
/* Of all of a kernel on one thread. in, out: bytes of memory that it goes through for each input and output: those of
 * the array, or of a tile of it. */
double fusion_kernel_cost(const fusion_model *m, const kernel *k, const int64_t *in, const int64_t *out);
/* As people are told: "12.5 us", at 3 GHz. */
void fusion_put_time(base_text *out, double cycles);

/* --- fusion.c: which ops are one kernel --- */

typedef enum fusion_role {
  FUSION_NO,    /* no kernel computes it */
  FUSION_ROOT,  /* the end of a kernel: its value goes to memory */
  FUSION_INNER, /* inside the kernel of its root alone */
  FUSION_CHEAP  /* inside every kernel that uses it: broadcasts, iotas, scalars, and what takes less time to compute
                   anew than to store and to read; it may be a root as well (see needed) */
} fusion_role;

/* What was decided of one op. */
typedef struct fusion_op {
  uint8_t role;        /* fusion_role */
  uint8_t edges;       /* ROOT: values of its kernel that are picked from two */
  uint8_t scans;       /* ROOT: along which dimension its kernel has scans, and which way: 0 for none */
  bool needed;         /* CHEAP: some op outside kernels uses it too, so that it has a buffer */
  bool identity_map;   /* ROOT, INNER: no move stands between the kernel's iterations and its elements */
  bool splits_dim;     /* INNER: a dimension of it follows from several of the kernel's */
  uint32_t size;       /* ROOT: ops in its kernel */
  ir_op *root;         /* INNER: the root; ROOT: itself */
  const char *why;     /* ROOT: why the value is in memory; static */
  ir_op *merged_first; /* ROOT: the root whose kernel stores it, and which is listed first of those; itself as a rule */
  ir_op *merged_next;  /* ROOT: the next that the kernel stores, or NULL */
  ir_op *anchor;       /* ROOT that is merged_first: the op among them where the kernel stands in the order */
  const char *merge_reason; /* ROOT: why it is stored by a kernel that stores others too, or why by no such; or NULL;
                               static */
  float stored, anew;       /* cycles for all that read it: if it is stored; if each computes it. Both 0: there was
                               nothing to weigh */
} fusion_op;

/* By op id of the module; entries of other computations' ops are zero. In the arena that fusion_make was given. */
typedef struct fusion_plan {
  fusion_op *of;
  fusion_model model;
  uint32_t *waits;   /* how many async operations are waited for before the op; NULL: the module has none */
  bool skips_places; /* nobody reads the places of an argmax that only count (passes/hlo/arg_reduce.h) */
} fusion_plan;

/* An elementwise op with a loop, or one that only moves indexes, on static arrays. */
bool fusion_is_candidate(const ir_op *op);
/* The operands are read at other indexes, which a kernel can do: broadcast, slice, reverse, transpose; reshapes of
 * which no dimension is a part of several; pads and concatenations; slices and elements from places that are computed.
 * fusion_moves.c */
bool fusion_moves_index(const ir_op *op);
/* Those that are not kernels by themselves: a view, or a routine, unless others are in the kernel. */
bool fusion_is_soft(const ir_op *op);
/* Pads and concatenations: a value that is there in some iterations only. */
bool fusion_has_edges(const ir_op *op);
/* A reshape that makes several dimensions of one. */
bool fusion_splits(const ir_op *op);
/* A gather of single elements from places that a load has room for, by indexes of integers. fusion_gather.c */
bool fusion_gathers(const ir_op *op);
/* The dimensions of such a gather's result that are those of its indexes, in their order and without the index
 * vector's: returns how many. */
uint32_t fusion_gather_batch(const ir_op *op, uint32_t *to);
/* Dimension d of a reshape's operand is dimensions from[d] to to[d] - 1 of its result: false where it is not. */
bool fusion_reshape_groups(const ir_op *op, uint32_t *from, uint32_t *to);
/* A reduce of one array whose body is one op that a kernel can do lane by lane; that op, or NULL. */
const ir_op *fusion_reduction(const ir_op *op);
/* A reduce-window that gives each element combined with all before it along one dimension (back: with all after it), by
 * an op as fusion_reduction's; that op, or NULL. */
const ir_op *fusion_scan(const ir_op *op, uint32_t *along, bool *back);
/* f is made for all of the module once, then filled for each computation, whose ops come in `order`. Linear in the
 * operands. facts: NULL where nothing is known of the device. */
XLAC_MUST_USE bool fusion_make(fusion_plan *f, const ir_module *m, const rt_compute_facts *facts, base_arena *arena);
void fusion_decide(fusion_plan *f, const ir_computation *c, uint32_t n, ir_op *const *order);
/* fusion_merge.c: after fusion_decide, makes one kernel of several that iterate over the same elements and read the
 * same memory, or each other's values, where the order of steps allows it. `order` is that of the steps; numbers: by op
 * id, zeros, and zeros again after. false when out of memory. */
XLAC_MUST_USE bool fusion_merge(fusion_plan *f, uint32_t n, ir_op *const *order, uint32_t *numbers,
                                base_arena *scratch);
/* Whether the dimensions of what op (a reduction) reduces, in their order, are kept ones, reduced ones, kept ones, so
 * that a kernel can go through it in that order. */
bool fusion_reduces_in_order(const ir_op *op);
enum { FUSION_SHORT = 64 /* elements that are too few to reduce side by side */ };

/* --- fusion_tile.c: kernels that go through memory together, some rows at a time --- */

/* Whether the kernel by itself can go by so many rows: its stores are dense, it has no scan, its reduction is in one
 * piece and within rows. */
bool fusion_goes_by_rows(const kernel *k, int64_t rows);
/* Whether what the index reads in a row is in the same row of an array of so many elements. k goes by those rows. */
bool fusion_reads_own_row(const kernel *k, const kernel_index *index, int64_t elements, int64_t rows);
/* Bytes that kernels must go through in all for tiles to be worth it: less stays in the first cache anyway, but where
 * the device says otherwise. */
int64_t fusion_least_in_tiles(const fusion_model *m);
/* Bytes that a tile goes through, about. */
int64_t fusion_tile_bytes(const fusion_model *m);
/* How many of the rows make a tile, where all kernels together go through so many bytes of each; 0: tiles are not worth
 * it, or a row is too long for one. at_once: with products among them, which want so many or a multiple; else 0. whole:
 * bytes that products read whole for each tile. */
int64_t fusion_rows_at_a_time(const fusion_model *m, int64_t rows, int64_t row_bytes, int64_t at_once, int64_t whole);

/* --- attention.c: softmax(x) v, with x elementwise of a product --- */

typedef struct fusion_attention {
  ir_op *scores;     /* the first product */
  ir_op *x;          /* what the softmax is of: the scores themselves, or elementwise of them */
  ir_op *most, *sum; /* reductions of its rows */
  ir_op *out;        /* the second product */
  uint32_t side;     /* which operand of it the softmax is */
  int64_t keys;      /* elements of a row */
} fusion_attention;
/* Whether out is the second product of one, or a tuple of that, `most` and `sum`. */
bool fusion_attention_of(ir_op *out, fusion_attention *a);
/* Whether the device computes the fusion op, which nobody uses yet. */
typedef bool fusion_wants_fn(void *ctx, const ir_op *fusion);
/* Has an attention that ends at `out`, and of which nobody needs what lies between, computed by a fusion op in its
 * place, if it is wanted: its computation has the attention's ops. The old ones stay, unused. *changed: the module may
 * have been, and is to be verified again. */
XLAC_MUST_USE int fusion_outline_attention(ir_module *m, ir_op *out, fusion_wants_fn *wants, void *ctx, bool *changed,
                                           xlac_error *err);

/* The same of x, which is elementwise of a product alone: a->out is x, too. And with a dot, and all that is elementwise
 * of it. */
bool fusion_product_of(ir_op *x, fusion_attention *a);
XLAC_MUST_USE int fusion_outline_product(ir_module *m, ir_op *dot, fusion_wants_fn *wants, void *ctx, bool *changed,
                                         xlac_error *err);

/* And with sums of rows and products of what is elementwise of the dot, and of others that it meets there, as weights
 * and their gradients are: if all that leads out of there is wanted, each is a fusion op that computes the scores
 * again, so that they have no memory. An attention among them gives the maxima and sums of its rows, too: its
 * computation's root then is a tuple of three. The call may stand behind what reads it: sort the computation. */
XLAC_MUST_USE int fusion_outline_recomputed(ir_module *m, ir_op *dot, fusion_wants_fn *wants, void *ctx, bool *changed,
                                            xlac_error *err);
/* Puts each op behind its operands. */
XLAC_MUST_USE int fusion_sort_computation(ir_computation *c, xlac_error *err);
/* How many neighbours a reduction takes the sum or the maximum of; 0: it is another one. */
int64_t fusion_row_length(const ir_op *op);

/* --- lower.c: from a fusion to its kernel --- */

/* What a kernel loads: op's value, an array of one result, as it is in memory; or a copy of it that has dimension
 * `last` last, so that the lanes which read it along that one read neighbours. */
typedef struct fusion_input {
  const ir_op *op;
  int32_t last; /* -1: as it is */
} fusion_input;

/* The kernel of `root` and of all that are stored with it (merged_next), one output each in that order, in `arena`;
 * *inputs gets what it loads, by number of input. */
XLAC_MUST_USE int fusion_lower(const fusion_plan *f, const ir_op *root, base_arena *arena, kernel **out,
                               const fusion_input **inputs, xlac_error *err);
/* The kernel that makes such a copy of op's value. */
XLAC_MUST_USE int fusion_lower_copy(const fusion_input *input, base_arena *arena, kernel **out, xlac_error *err);

#endif
