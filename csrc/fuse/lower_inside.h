/* The walk from roots to their producers, inside. */
#ifndef XLAC_FUSE_LOWER_INSIDE_H
#define XLAC_FUSE_LOWER_INSIDE_H

#include "fuse.h"

/* An op's index as functions of the iteration: dimension d is offset[d] + sum over k of coef[d * rank + k] * i_k. */
typedef struct lower_map {
  uint32_t n; /* dimensions of the op */
  int64_t *offset, *coef;
} lower_map;

typedef struct lower_entry {
  const ir_op *op;
  const lower_map *map;
  uint32_t value; /* good for the iterations in which it is defined */
} lower_entry;

BASE_VEC(lower_entries, lower_entry);
BASE_VEC(lower_values, kernel_value);
BASE_VEC(lower_inputs, fusion_input);
BASE_VEC(lower_boxes, kernel_box *);

/* In what order a reduction is iterated. */
typedef enum lower_way {
  LOWER_AS_STORED, /* inner dimensions are results that lie side by side */
  LOWER_BY_ROWS,   /* what is reduced of short rows as stored in memory */
  LOWER_ALONG      /* reduced dimensions innermost */
} lower_way;

typedef struct lower_run {
  const fusion_plan *f;
  base_arena *arena, *scratch; /* of the kernel; of what is needed while it is made */
  base_alloc alloc;
  const ir_op *root;
  lower_way way;
  uint32_t rank; /* of the iteration before it is collapsed */
  uint32_t place[KERNEL_MAX_RANK];
  const ir_type *space;  /* whose dimensions are iterated */
  kernel *k;             /* so far: rank and extents */
  const kernel_box *box; /* the iterations that are wanted; NULL: all */
  lower_boxes boxes;     /* of all values, each once */
  lower_entries done;
  lower_values values;
  lower_inputs inputs;
  xlac_error *err;
} lower_run;

/* --- lower.c --- */
int lower_no_memory(const lower_run *x);
/* Of n dimensions, all at 0. */
lower_map *lower_new_map(lower_run *x, uint32_t n);
/* Dimension `to` of m is step * (dimension `from` of of) + start. */
void lower_set(const lower_run *x, lower_map *m, uint32_t to, const lower_map *of, uint32_t from, int64_t start,
               int64_t step);
/* The map as an index into row-major memory of type t. */
kernel_index *lower_index(lower_run *x, const ir_type *t, const lower_map *map);
/* The number of the input that is op; last: as in fusion_input. */
XLAC_MUST_USE int lower_number_input(lower_run *x, const ir_op *op, int32_t last, uint32_t *number);
/* lower_add appends v as op's value; lower_note records an existing value as op's. */
XLAC_MUST_USE int lower_add(lower_run *x, const ir_op *op, const lower_map *map, const kernel_value *v,
                            uint32_t *value);
XLAC_MUST_USE int lower_note(lower_run *x, const ir_op *op, const lower_map *map, uint32_t value);
/* op's value at the map. */
XLAC_MUST_USE int lower_value(lower_run *x, const ir_op *op, const lower_map *map, uint32_t *value);

/* --- lower_copy.c: operands that are copied beforehand --- */
/* The dimension of op that the kernel's lanes go along, where they should read a copy that has it last; else -1. */
int32_t lower_last_of(const lower_run *x, const ir_op *op, const lower_map *map);
/* lower_index of such a copy. */
kernel_index *lower_index_of_copy(lower_run *x, const ir_type *t, uint32_t last, const lower_map *map);

/* --- lower_edges.c: values that are there in some iterations only, or from a place that is computed --- */
XLAC_MUST_USE int lower_pad(lower_run *x, const ir_op *op, const lower_map *map, uint32_t *value);
XLAC_MUST_USE int lower_concatenate(lower_run *x, const ir_op *op, const lower_map *map, uint32_t *value);
XLAC_MUST_USE int lower_dynamic_slice(lower_run *x, const ir_op *op, const lower_map *map, uint32_t *value);

/* --- lower_count.c --- */
/* Whether v, an op on integers, is an index as a number: that of each iteration. */
bool lower_is_count(const lower_run *x, const kernel_value *v, kernel_index *to);

/* --- lower_gather.c --- */
XLAC_MUST_USE int lower_gather(lower_run *x, const ir_op *op, const lower_map *map, uint32_t *value);

#endif
