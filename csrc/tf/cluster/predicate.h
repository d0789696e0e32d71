/* Logical formulas that say when a value is alive, kept simple and each only once, so that equal ones are one pointer.
 * Which formulas become equal decides what may be clustered, so the simplifications and their order are TensorFlow's.
 * Source: reference notes, section 8; compiler/jit/deadness_analysis.cc's behaviour. */
#ifndef XLAC_TF_CLUSTER_PREDICATE_H
#define XLAC_TF_CLUSTER_PREDICATE_H

#include "../../base/map.h"
#include "../../base/str.h"

typedef enum tf_pred_kind { TF_PRED_AND, TF_PRED_OR, TF_PRED_NOT, TF_PRED_RECURRENCE, TF_PRED_SYMBOL } tf_pred_kind;

typedef struct tf_pred tf_pred;
/* Immutable but for `negated` and `alone`, which are caches. An AND without operands is true, an OR false. */
struct tf_pred {
  uint8_t kind;                   /* tf_pred_kind */
  bool must_be_true;              /* SYMBOL: alive and true, not just alive */
  uint32_t id;                    /* by creation */
  uint32_t n;                     /* operands: RECURRENCE has start and step */
  int32_t output;                 /* SYMBOL: of the node */
  int32_t value;                  /* SYMBOL: the value it must have; -1 for none */
  const base_istr *name;          /* SYMBOL: the node; RECURRENCE: the frames from within, joined by ';' */
  const tf_pred *negated, *alone; /* remembered: its negation, the conjunction of it alone */
  const tf_pred *operands[];
};

/* Owns the table; formulas lie in the arena. depth: calls of the simplifier on the stack now. */
typedef struct tf_pred_factory {
  base_arena *arena;
  base_alloc alloc;
  base_map interned; /* hash -> the first of a chain */
  uint32_t next_id, depth;
  bool failed; /* out of memory */
} tf_pred_factory;

void tf_pred_init(tf_pred_factory *f, base_arena *arena, base_alloc alloc);
void tf_pred_free(tf_pred_factory *f);
/* All of these return NULL when out of memory (f->failed). */
const tf_pred *tf_pred_and(tf_pred_factory *f, const tf_pred *const *operands, uint32_t n);
const tf_pred *tf_pred_or(tf_pred_factory *f, const tf_pred *const *operands, uint32_t n);
const tf_pred *tf_pred_not(tf_pred_factory *f, const tf_pred *p);
const tf_pred *tf_pred_symbol(tf_pred_factory *f, const base_istr *node, int32_t output, bool must_be_true,
                              int32_t value);
const tf_pred *tf_pred_recurrence(tf_pred_factory *f, const tf_pred *start, const tf_pred *step,
                                  const base_istr *frames);
static inline const tf_pred *tf_pred_true(tf_pred_factory *f) {
  return tf_pred_and(f, NULL, 0);
}
static inline const tf_pred *tf_pred_false(tf_pred_factory *f) {
  return tf_pred_or(f, NULL, 0);
}
/* Whether `inner` occurs in p, at any depth. */
bool tf_pred_contains(tf_pred_factory *f, const tf_pred *p, const tf_pred *inner);
/* "#true", "(*p:0 & ~q:0)", "{a:0,&,b:0}<frame>". */
void tf_put_pred(base_text *out, const tf_pred *p);

#endif
