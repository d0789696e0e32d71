/* A computation as a flat, immutable program: steps over buffers whose places are all fixed before anything runs.
 *
 * A program has arguments and results, one pointer for each leaf (array) of its parameters and of its root, and a
 * frame: a block of memory for everything in between. Bodies of loops and branches are programs of their own, whose
 * frames lie in a buffer of the step that runs them. Plans refer to the module they were made from, which must outlive
 * them. */
#ifndef XLAC_PLAN_PLAN_H
#define XLAC_PLAN_PLAN_H

#include "../fuse/fuse.h"

/* Where a buffer lies; fixed once the plan is made. */
typedef enum plan_place {
  PLAN_FRAME,    /* at `offset` of the frame */
  PLAN_ARGUMENT, /* argument `number` */
  PLAN_RESULT,   /* result `number`, memory of the caller */
  PLAN_SPARE,    /* at `offset` of the entry's spare `number`: of an argument that is donated */
  PLAN_CONSTANT, /* the value of `literal`, in the module */
  PLAN_TILE      /* in no memory of the program: only some rows of it are there at a time, while its tile runs */
} plan_place;

/* One array, or a block of scratch memory, with its place and its life in steps. */
typedef struct plan_buffer {
  uint8_t place; /* plan_place */
  bool borrowed; /* no argument or result, but a value that lies in the memory of one while that is free (borrow.c) */
  bool final;    /* a result, in whose memory nothing is written after it */
  int64_t bytes, offset;
  uint32_t number;
  const ir_literal *literal; /* of an array; NULL: a token, or no constant */
  const ir_type *type;       /* of the array in it; NULL: scratch memory */
  const ir_op *op;           /* whose value it is */
  uint32_t first, last;      /* steps: the one that writes it, the last that reads it */
} plan_buffer;

/* What a step does. in and out are buffers of its program. */
typedef enum plan_step_kind {
  PLAN_KERNEL,
  PLAN_ROUTINE,     /* an algorithm of the device's own: products, convolutions, sorts, ... or the interpreter's */
  PLAN_COPY,        /* in[0] to out[0] */
  PLAN_WHILE,       /* nested: condition, body; in: initial state, out: state, then scratch for the next state */
  PLAN_CONDITIONAL, /* nested: branches; in: selector, then all branches' operands */
  PLAN_CALL,        /* nested: the callee */
  PLAN_START,       /* begins what goes on until its chain's done; in: operands, out: results, nested: the program, or
                       none where the op is not a generic start or its program is the interpreter's */
  PLAN_UPDATE,      /* lets its chain go on by one part */
  PLAN_DONE         /* waits; in: all that its start reads and writes */
} plan_step_kind;

/* dot.c: the matrix product that op is, on the operands as stored. false where it is none, or its types differ.
 * C[b] = A[b] * B[b] for b < batch: row-major, C dense. A is m x k with leading dimension lda, or stored as its
 * transpose; so is B, k x n. Strides between batches are in elements. */
typedef struct plan_dot {
  uint8_t dtype;
  bool transpose_a, transpose_b;
  int64_t batch, m, n, k, lda, ldb, stride_a, stride_b;
} plan_dot;
bool plan_dot_of(const ir_op *op, plan_dot *dot);

/* A product whose result can be made some lines at a time, by whoever has packed the operand that all lines read. Line
 * l is the l-th part of the result's memory, of n equal ones. */
typedef struct plan_lines {
  int64_t n;       /* lines; 0: only the whole can be made */
  int64_t at_once; /* it is made best so many at a time, or a multiple */
  int64_t batches; /* the lines are so many ranges in turn, each of which reads a part of the other operand */
  int64_t packed;  /* bytes of all of that, once it is packed */
  uint64_t own;    /* bit i: of leaf i of the operands line l is made from the l-th part alone, of n equal ones */
  const char *why; /* n is 0: why; static. NULL: it is not a product */
} plan_lines;

/* What is to be known of an op that is neither a kernel nor a loop, but an algorithm of the device's. */
typedef struct plan_routine {
  uint32_t number;       /* among the routines of the plan: what the device makes of it is found by that */
  const char *name;      /* for explanations: "gemm"; static */
  int64_t scratch_bytes; /* memory it needs while it runs, aligned to PLAN_ALIGN */
  uint64_t in_place; /* bit i: may write leaf i of the result over leaf i of the operands, which then are one memory */
  uint64_t work;     /* elements it goes through, roughly */
  bool stoppable;   /* it may be cut short between pieces of rt_parallel_for, and then leaves anything in its results */
  bool divisible;   /* all of its work is one rt_parallel_for, whose ranges may be run by several calls
                       (rt_stop.parts); stoppable, too */
  bool calls;       /* it evaluates called computations, for which the interpreter must be made ready */
  bool interpreted; /* it is the interpreter's evaluator, which must be made ready */
  plan_lines lines;
} plan_routine;
/* The facts of the routine for op; out->number is there, the rest is zero. A device without an algorithm for op gives
 * what plan_eval_routine says. */
typedef int plan_prepare_fn(void *ctx, const ir_op *op, plan_routine *out, xlac_error *err);
/* The routine "eval": one op by the interpreter's evaluator. build.c */
void plan_eval_routine(const ir_op *op, plan_routine *out);

/* What starts at step `start` is over at step `done`. Between the two it may at any time read the start's inputs, and
 * read and write its outputs and its frame. One async chain: a start, its updates, its done. */
typedef struct plan_chain {
  uint32_t start, done, updates;
  const char *thread; /* the execution thread's name */
  /* By result leaf, the operand leaf that it may be written over: nobody else reads that before the done. UINT32_MAX:
   * none; NULL: no result has any. */
  const uint32_t *over;
  bool here; /* run on the thread that starts it, since it reads the state that earlier steps left */
} plan_chain;

typedef struct plan_program plan_program;
/* One thing to do, in the order of the program. */
typedef struct plan_step {
  uint8_t kind; /* plan_step_kind */
  const ir_op *op;
  uint32_t n_in, n_out;
  const uint32_t *in, *out; /* buffers */
  const kernel *kernel;
  const plan_routine *routine;
  uint32_t n_nested, frame; /* frame: the buffer of the nested programs' frames */
  const plan_program *const *nested;
  const plan_chain *chain; /* START, UPDATE, DONE */
} plan_step;

/* Kernels and products one after another that may run some rows at a time: steps first .. first + n - 1, whose
 * iterations are cut into the same `rows` rows, each row of a value made from the same row of others. Run one by one
 * they give the same, but where products are among them: then values that only the tile reads have no memory
 * (PLAN_TILE), and the products' `frame` buffers have room for what is packed before, from the first step to the last.
 */
typedef struct plan_tile {
  uint32_t first, n;
  bool products;
  int64_t rows, at_a_time; /* at_a_time: rows of a tile */
  int64_t batches;         /* rows are so many ranges, whose parts of products' operands are packed one range at a time,
                              by the thread that does it; 0: all is packed before */
  const char *ends;        /* why the step after it is not part of it; static */
} plan_tile;

/* Why no result is computed over an argument that may be donated. In explanations' words: donation_explain.c. */
typedef enum plan_donation_why {
  PLAN_DONATION_USED,      /* one is */
  PLAN_DONATION_NO_RESULT, /* no result has its size */
  PLAN_DONATION_TAKEN,     /* those that have it go to other arguments */
  PLAN_DONATION_LATER,     /* `reader` reads it after `made` has computed the result: that is copied there at the end */
  PLAN_DONATION_ELSEWHERE, /* `made` reads other elements of it than it writes: the same */
  PLAN_DONATION_OTHER      /* the result is not a new value, but an argument, a constant or another result: the same */
} plan_donation_why;

/* An argument of the entry that the caller may donate: then its memory is result `result`'s. */
typedef struct plan_donation {
  uint32_t argument, result; /* leaves; result is UINT32_MAX where it has none */
  bool must, in_place;       /* in_place: the result is computed over it; else it is copied there at the end */
  uint8_t why;               /* plan_donation_why */
  const ir_op *parameter, *made, *reader; /* NULL where there is none */
  uint32_t rival;                         /* TAKEN: the argument that got the result */
} plan_donation;

/* What a device keeps in frames for itself. Facts of the backend that decide sizes; the plan keeps them, so that
 * frames and tables agree. */
typedef struct plan_device {
  int64_t buffer_bytes; /* at the beginning of each frame, by buffer of its program */
  int64_t task_bytes;   /* at the beginning of the frame of an async start, before that of the program it runs */
} plan_device;

/* For whom a plan is made (rt_build.target). */
typedef struct plan_target {
  plan_device device;
  const rt_compute_facts *compute; /* of the device; NULL: nothing is known */
  plan_prepare_fn *prepare;        /* called for each routine, in the order of their numbers */
  /* Before the plan is made: puts ops that are one routine of the device's into fusions. And whether one is. Both NULL
   * where it has none such. */
  int (*outline)(void *ctx, ir_module *m, bool *changed, xlac_error *err);
  bool (*takes)(void *ctx, const ir_op *fusion);
  void *ctx;
  bool skips_places; /* its argmax counts places by itself: an array of them that only counts is not made for it */
} plan_target;

/* The orders that steps may be in (order.c). */
enum { PLAN_ORDER_PROGRAM, PLAN_ORDER_LIST, PLAN_ORDER_DEPTH, PLAN_ORDERS };

/* Immutable and shared: any number of calls may run it at once, each with a frame of its own. */
struct plan_program {
  /* Which program this is. */
  uint32_t number;                 /* among the programs of the plan; the entry is 0 */
  uint32_t n_programs, n_routines; /* of the entry: how many there are, all numbers being smaller */
  const ir_computation *computation;
  bool interpreted; /* no steps: the interpreter runs the computation whole, for the reason `why` */
  const char *why;
  /* What it does. Arrays lie in the arena that plan_make was given. */
  uint32_t n_arguments, n_results, n_buffers, n_steps;
  const plan_buffer *buffers;
  uint32_t n_interface;
  const uint32_t *interface; /* buffers that are arguments or results */
  const plan_step *steps;
  const fusion_plan *fusion; /* what was decided for the computation's ops; NULL: nothing */
  uint32_t n_tiles;
  const plan_tile *tiles; /* in the order of their steps, none of which is in two */
  /* Memory that it shares with its caller. */
  uint32_t n_donations;
  const plan_donation *donations; /* of the entry, by argument */
  const uint32_t *over; /* of the entry, by result: the argument whose memory it may be given, or UINT32_MAX */
  const bool *stays;    /* of a loop's body, by result: it is argument of that number, changed in place */
  uint32_t n_spares;    /* of the entry: arguments that are donated, and that no result lies in */
  const uint32_t *spares;
  int64_t spare_bytes; /* the most of their memory that is in use at a time */
  /* Its frame. */
  plan_device device;               /* whose frames they are */
  int64_t frame_bytes;              /* the device's table first, then the buffers */
  uint8_t order;                    /* of the steps */
  int64_t order_peaks[PLAN_ORDERS]; /* bytes that were expected of each order; 0: it was not weighed */
  int64_t peak_bytes;               /* of buffers alive at a time: frame_bytes without what alignment and gaps cost */
};

/* All zero is a plan without routines and donations of the caller's. */
typedef struct plan_options {
  const plan_target *target; /* NULL: one without routines of its own, that keeps nothing in frames */
  bool no_fusion;            /* every op is a step of its own (for tests, and to find the op that differs) */
  /* Instead of what the module's header says: which arguments are donated to which results, as another plan has it. */
  bool has_donations;
  uint32_t n_donations;
  const plan_donation *donations;
  const bool *given; /* by leaf of the arguments: donated in every call, and no result's: temporaries lie there */
} plan_options;

/* The program of the module's entry, with those of all it calls, in `arena`. m is verified and in HLO form. */
XLAC_MUST_USE int plan_make(const ir_module *m, const plan_options *options, base_arena *arena, plan_program **out,
                            xlac_error *err);
/* The plan of a device that runs the module whole: a program that is interpreted, for the reason `why`, a static text.
 */
XLAC_MUST_USE int plan_make_whole(const ir_module *m, const char *why, base_arena *arena, plan_program **out,
                                  xlac_error *err);
/* One line a step: kind, op, buffers with offsets. `out` notes a failure of memory; the caller checks once. */
void plan_put(base_text *out, const plan_program *p);
/* One line an op, for each computation: in whose kernel it is, or why it is in memory. explain.c */
XLAC_MUST_USE int plan_explain_fusion(base_text *out, const plan_program *p, xlac_error *err);

/* OUT_OF_MEMORY for a call of p, with what it takes and its largest values. out_of_memory.c */
int plan_out_of_memory(const plan_program *p, xlac_error *err);
/* A line for each argument that may be donated: which result takes its memory, or why none does; and for each that
 * could be. donation_explain.c */
void plan_explain_donations(base_text *out, const plan_program *p);
/* One of them by its number: "result 0 is computed over it". */
void plan_put_donation(base_text *out, const plan_program *p, const plan_donation *d);

/* strided.c: whether a program can read an array of type t where it is, with these strides in elements; and its
 * making: the parameter becomes dense memory that begins at the array's lowest address, and the array is computed
 * from it. The module is to be verified again. Strides may be negative or 0; elements may not overlap but by stride
 * 0. */
bool plan_is_strided(const ir_type *t, const int64_t *steps);
XLAC_MUST_USE int plan_lay_out(ir_module *m, ir_op *parameter, const int64_t *steps, xlac_error *err);

/* Whether nothing of p, or of the programs its steps run, writes over what is still to be read: INTERNAL, with step and
 * buffers, where it does. check.c */
XLAC_MUST_USE int plan_check(const plan_program *p, base_alloc alloc, xlac_error *err);

/* async.c: whether op is of a chain that plans know: any generic one, and pairs of copies and collectives. The chains
 * that have steps of their own in a plan. */
bool plan_is_async(const ir_op *op);
/* The type of what such a start's done gives. */
const ir_type *plan_async_result(const ir_op *start);

/* --- tile.c: kernels and products that run some rows at a time --- */
/* The tile that begins with that step, or NULL. */
static inline const plan_tile *plan_tile_at(const plan_program *p, uint32_t step) {
  uint32_t low = 0, high = p->n_tiles;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (p->tiles[middle].first < step)
      low = middle + 1;
    else
      high = middle;
  }
  return low < p->n_tiles && p->tiles[low].first == step ? &p->tiles[low] : NULL;
}
/* Whether nobody but the tile's steps needs the buffer, which that step of it writes. */
bool plan_tile_keeps(const plan_program *p, const plan_tile *t, uint32_t step, uint32_t buffer);
/* Whether all that the step (a kernel or a product) reads in the memory of `buffer` is of the same row, of so many. */
bool plan_reads_by_rows(const plan_program *p, const plan_step *s, uint32_t buffer, int64_t rows);

/* --- inside --- */
/* place.c: offsets of all buffers in the frame. `steps` and `buffers` are those of p, which are still to be changed. */
XLAC_MUST_USE int plan_place_buffers(plan_program *p, plan_step *steps, plan_buffer *buffers, base_alloc alloc,
                                     xlac_error *err);
/* Whether step may write `out` over `in`, which dies at it: all it reads of `in` for an element of `out` is that
 * element. Both are buffers of the step; false where one is not. */
bool plan_may_overwrite(const plan_step *step, const plan_buffer *buffers, uint32_t in, uint32_t out);
/* Bytes: of places in the frame, of places in spare arguments, which are only as aligned as NumPy's memory. */
enum { PLAN_ALIGN = 64, PLAN_SPARE_ALIGN = 16 };
/* Whether two buffers of one program lie in a frame, or in spare memory, and have bytes of it in common. False for
 * arguments and results: their memory is the caller's. */
static inline bool plan_places_overlap(const plan_buffer *a, const plan_buffer *b) {
  if (a->place != b->place || (a->place == PLAN_SPARE && a->number != b->number)) return false;
  return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}
/* The step at which what s reads is read for the last time by it: its done, for a start that is step number `step`. A
 * start's inputs and outputs are busy until its done. */
static inline uint32_t plan_end_of(const plan_step *s, uint32_t step) {
  return s->kind == PLAN_START ? s->chain->done : step;
}

#endif
