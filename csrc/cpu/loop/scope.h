/* Programs of a loop while code is made of it. */
#ifndef XLAC_CPU_LOOP_SCOPE_H
#define XLAC_CPU_LOOP_SCOPE_H

#include "../native/loop.h"
#include "../threaded/list.h"
#include "loop.h"

enum {
  LOOP_CELLS = 16,       /* elements of an array that are values, one by one */
  LOOP_COUNT = 64,       /* iterations of a kernel, each of which is code of its own */
  LOOP_VALUES = 2400,    /* values of kernels, in all */
  LOOP_FEW_VALUES = 256, /* with which a loop may fit in few registers */
  LOOP_COPIED = 64,      /* elements of a copy */
  LOOP_MOVED = 128,      /* elements that go to a computed place, or come from one */
  LOOP_OPERAND = 256,    /* elements of a product's operand */
  LOOP_TERMS = 256       /* numbers that a product multiplies */
};

/* One program in its place. A buffer's elements are values of the body (`cells`), or lie in memory. */
typedef struct loop_scope loop_scope;
struct loop_scope {
  const plan_program *p;
  loop_memory frame;                     /* where its frame begins */
  const loop_memory *arguments, *spare;  /* by argument: its memory; by result: that of a value that doesn't stay */
  uint8_t *in_memory;                    /* by buffer */
  uint32_t *first, *cells;               /* by buffer: its first cell; values */
  uint32_t *last_argument, *last_result; /* by number: the buffer that was last written there */
  loop_scope *const **inner; /* by step: of a loop, its condition and its body; of a conditional, its branches */
};

typedef struct loop_make {
  const cpu_executable *exe;
  base_arena *arena; /* scratch */
  nat_loop code;
  uint32_t n_values;  /* of all kernels */
  bool failed;        /* no way, or out of memory */
  const ir_op *stops; /* the first for which there is no way; NULL: it is not one op */
  uint32_t n_written, n_arrays;
  loop_memory written[64], arrays[NAT_LOOP_ARRAYS];
} loop_make;

static inline bool loop_same_memory(const loop_memory *a, const loop_memory *b) {
  return a->area == b->area && a->at == b->at && a->fixed == b->fixed;
}
/* Where the buffer lies. */
loop_memory cpu_loop_memory_of(loop_make *x, const loop_scope *s, uint32_t buffer);

/* --- scan.c: which buffers are values and which memory; x->failed where there is no way --- */
/* Condition and body of step w, whose state lies there. */
void cpu_loop_scan(loop_make *x, const plan_step *w, const loop_memory *frames, const loop_memory *now,
                   const loop_memory *next, loop_scope **pair);
/* Whether result j lies in memory. */
bool cpu_loop_result_in_memory(const loop_scope *s, uint32_t j);
/* Whether a trip changes leaf i of the state. */
bool cpu_loop_changes(const loop_scope *body, uint32_t i);

/* --- write.c --- */
/* Element number `element` of a buffer, as it is now; and what it becomes. */
uint32_t cpu_loop_get(loop_make *x, const loop_scope *s, uint32_t buffer, int64_t element);
void cpu_loop_put_element(loop_make *x, loop_scope *s, uint32_t buffer, int64_t element, uint32_t value);
nat_type cpu_loop_type(const loop_scope *s, uint32_t buffer);
/* The place of elements that are `stride` apart, the first at `element`. */
nat_place cpu_loop_place(loop_make *x, loop_memory m, nat_type t, int64_t element, int64_t stride);
/* Both in memory: elements one after the other, by whole registers. */
void cpu_loop_copy(loop_make *x, nat_place from, uint32_t from_at, nat_place to, uint32_t to_at, int64_t bytes);
/* Whether so many elements of the two buffers are. */
bool cpu_loop_may_copy(const loop_scope *s, uint32_t from, const loop_scope *of, uint32_t to, int64_t n);
/* n elements, at most LOOP_COPIED unless they may be copied, read before the first is written. */
void cpu_loop_move_elements(loop_make *x, loop_scope *s, uint32_t from, loop_scope *to_scope, uint32_t to, int64_t n);
/* What lies at the place, at the index `at`, unless it is NAT_NONE. */
uint32_t cpu_loop_load(loop_make *x, const loop_scope *s, uint32_t buffer, nat_place p, uint32_t at);
/* The buffer has been written: it is what its argument's or result's memory has now. */
void cpu_loop_note(loop_scope *s, uint32_t buffer);
/* A computed index as an s32, clamped to 0..last; *inside, unless it is NULL: the mask of what needed no clamping. */
uint32_t cpu_loop_index(loop_make *x, nat_type t, uint32_t value, int64_t last, uint32_t *inside);
/* Code of a loop that `outer` has, or, where that is NULL, whose state lies in memory. */
void cpu_loop_write(loop_make *x, loop_scope *outer, const plan_step *w, loop_scope *const *pair);

/* A program's steps, whose arguments are there. */
void cpu_loop_write_program(loop_make *x, loop_scope *s);
/* Truth values are carried as bytes. */
static inline nat_type cpu_loop_carried(nat_type t) {
  return t.kind == NAT_PRED ? t : (nat_type){NAT_NO_TYPE, 0, 0, 0, 0};
}

/* --- kernel.c --- */
/* How many elements of leaf `leaf` of a loop's state are lanes of one value; 1: each has its own. */
unsigned cpu_loop_carried_lanes(const loop_scope *body, uint32_t leaf);
void cpu_loop_kernel(loop_make *x, loop_scope *s, const plan_step *t);

/* --- branch.c --- */
void cpu_loop_branch(loop_make *x, loop_scope *s, const plan_step *t, loop_scope *const *scopes);

/* --- window.c: dynamic-slice, dynamic-update-slice, gather and scatter of few elements --- */
/* Whether code has a way; notes which buffers must be memory. */
bool cpu_loop_may_move(loop_make *x, loop_scope *s, const plan_step *t);
void cpu_loop_move(loop_make *x, loop_scope *s, const plan_step *t);

/* --- arg.c: argmax and argmin --- */
bool cpu_loop_may_find(loop_make *x, const plan_step *t);
void cpu_loop_find(loop_make *x, loop_scope *s, const plan_step *t);

/* --- combine.c --- */
/* Whether code has a way for a kernel's reductions; and the results of one of them: `stored` has what all its stores
 * have of each iteration. */
bool cpu_loop_may_combine(const kernel *k);
void cpu_loop_combine(nat_loop *l, const kernel *k, uint32_t store, const uint32_t *stored, uint32_t init,
                      uint32_t *out);

/* Whether nothing wider than its lanes is needed for it. */
static inline bool cpu_loop_combines_lanes(scalar_code by) {
  return by == SCALAR_ADD || by == SCALAR_SUBTRACT || by == SCALAR_MULTIPLY || by == SCALAR_MAXIMUM ||
         by == SCALAR_MINIMUM || by == SCALAR_AND || by == SCALAR_OR || by == SCALAR_XOR;
}

typedef struct loop_extents {
  uint32_t n;
  int64_t extent[IR_MAX_RANK], stride[IR_MAX_RANK], count;
} loop_extents;
/* A dot whose operands and sums have one type. */
typedef struct loop_product {
  nat_type type;
  int64_t work;
  struct {
    loop_extents batch, terms, own;
  } of[2];
} loop_product;
bool cpu_loop_product_of(const ir_op *op, loop_product *out);
void cpu_loop_multiply(nat_loop *l, const loop_product *p, const uint32_t *x, const uint32_t *y, uint32_t *out);

#endif
