/* What travels along the edges of a graph that runs. */
#ifndef XLAC_TF_SESSION_VALUE_H
#define XLAC_TF_SESSION_VALUE_H

#include "../../runtime/recycle.h"
#include "../../base/str.h"
#include "../../interp/interp.h"

/* NONE and DEAD differ: a dead value makes its users dead, none is an error where one is needed. */
typedef enum tfs_kind {
  TFS_NONE,   /* nothing: control only */
  TFS_DEAD,   /* of a branch that is not taken */
  TFS_TENSOR, /* numbers */
  TFS_OBJECT
} tfs_kind;

/* What is not an array of numbers. */
typedef enum tfs_object_kind {
  TFS_VARIABLE, /* a handle of one, or a reference to it */
  TFS_STRINGS,  /* a tensor of strings */
  TFS_LIST,     /* a TensorList: a value like a tensor, never changed while somebody else holds it */
  TFS_ARRAY,    /* a TensorArray: a thing that has a state */
  TFS_STACK,
  TFS_OPTIONAL /* holds values, or none */
} tfs_object_kind;

/* Reference counted, within the lock of its session. */
typedef struct tfs_object tfs_object;
/* Which fields mean something depends on the kind, as the headings say; the others are 0. */
struct tfs_object {
  uint32_t refs;
  uint8_t kind;  /* tfs_object_kind */
  uint8_t dtype; /* a base_dtype: of elements; INVALID where nothing says it */
  base_alloc alloc;
  /* VARIABLE */
  const base_istr *name;
  interp_value *value; /* NULL: it has none yet */
  unsigned tf_type;
  uint64_t saved_in; /* the call that has noted its value before */
  /* LIST, ARRAY, STACK */
  interp_value **items; /* entries may be NULL: not written */
  uint32_t n, cap;
  int64_t limit;                 /* most elements; -1 for any number */
  bool grows;                    /* ARRAY: dynamic_size */
  bool rank_known;               /* of an element */
  bool sums;                     /* ARRAY of gradients: what is written twice is added */
  base_slice source;             /* ARRAY of gradients: whose */
  tfs_object *gradients, *other; /* ARRAY: of it, held; the next of the same array */
  tfs_object *like;              /* ARRAY of gradients: elements of the shapes that its own have; held */
  /* STRINGS; LIST, ARRAY: of an element, -1 where unknown */
  uint32_t rank;
  int64_t dims[IR_MAX_RANK];
  base_slice *strings; /* one block with their bytes */
  int64_t n_strings;
  /* OPTIONAL; LIST of variants */
  struct tfs_value *parts; /* of an optional NULL: it has none */
  uint32_t n_parts, nested;
  bool of_variants;
};

/* Passed by value; who has one counts as a holder, unless it is said to be borrowed. */
typedef struct tfs_value {
  uint8_t kind; /* tfs_kind */
  union {
    interp_value *tensor;
    tfs_object *object;
  };
} tfs_value;

tfs_object *tfs_object_new(base_alloc alloc, tfs_object_kind kind); /* NULL when out of memory */
void tfs_object_drop(tfs_object *o);
/* One more holder. */
static inline tfs_value tfs_keep(tfs_value v) {
  if (v.kind == TFS_TENSOR) interp_retain(v.tensor);
  if (v.kind == TFS_OBJECT) v.object->refs++;
  return v;
}
/* One holder less; *v is nothing then. */
void tfs_drop(tfs_value *v);
static inline tfs_value tfs_of_tensor(interp_value *v) {
  return (tfs_value){.kind = TFS_TENSOR, .tensor = v};
}
static inline tfs_value tfs_of_object(tfs_object *o) {
  return (tfs_value){.kind = TFS_OBJECT, .object = o};
}
static inline bool tfs_is_object(const tfs_value *v, tfs_object_kind kind) {
  return v->kind == TFS_OBJECT && v->object->kind == kind;
}
/* Room for n more items; false when out of memory. */
bool tfs_object_reserve(tfs_object *o, uint32_t n);

/* A new array; NULL when out of memory. */
interp_value *tfs_new_tensor(base_alloc alloc, base_dtype dtype, uint32_t rank, const int64_t *dims);
interp_value *tfs_new_scalar(base_alloc alloc, base_dtype dtype, const void *data);
interp_value *tfs_copy_tensor(base_alloc alloc, const interp_value *v);
/* Whether the memory belongs to a caller, who may change it; the executor's blocks don't. */
static inline bool tfs_is_lent(const interp_value *v) {
  const interp_value *owner = v->base ? v->base : v;
  return owner->lent && owner->release != rt_recycler_give;
}
/* Whether who asks holds all of it: it may be given away, or changed. */
bool tfs_is_sole(const interp_value *v);
/* The same elements under other sizes; shares v's memory. */
interp_value *tfs_reshaped(base_alloc alloc, interp_value *v, uint32_t rank, const int64_t *dims);
/* The value of element i of an array of integers or of booleans. */
static inline int64_t tfs_int_at(const interp_value *v, int64_t i) {
  return base_load_i64((base_dtype)v->dtype,
                       (const char *)v->data + (size_t)i * base_dtype_bytes((base_dtype)v->dtype));
}

#endif
