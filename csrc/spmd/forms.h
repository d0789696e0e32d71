/* Forms of ops along sharded dimensions, inside: what forms.c and orders.c share. A form replaces an op by ops that
 * move less than gathering its operands. It works on whole arrays: each new value says how it is sharded. Out of memory
 * is x->rw->failed, which is looked at when an op is done. */
#ifndef XLAC_SPMD_FORMS_H
#define XLAC_SPMD_FORMS_H

#include "../passes/rewrite/rewrite.h"
#include "inside.h"

typedef struct form_pass {
  opt_rewriter *rw;
  ir_op *op;
  const sdy_sharding *s; /* of what is looked at, */
  const ir_type *t;      /* its type, */
  uint32_t dim;          /* and the dimension that is cut into so many shards */
  int64_t shards;
} form_pass;

/* --- forms.c --- */
/* Reads the sharding of operand 0 and its number of shards along dim. false: not cut there, or not simply. */
bool spmd_form_begin(form_pass *x, uint32_t dim);
/* A value with that sharding; `s` NULL: out of memory. */
ir_value spmd_form_give(form_pass *x, ir_value v, const sdy_sharding *s);
ir_value spmd_form_reshard(form_pass *x, ir_value v, const sdy_sharding *s);
/* x's sharding with n dimensions in place of its `dim`, of which number `cut` has its axes (n: none has). */
const sdy_sharding *spmd_form_spread(form_pass *x, uint32_t n, uint32_t cut);
/* v with n dimensions of these sizes in place of x's `dim`, of which v has `from`; sharded as spmd_form_spread says. */
ir_value spmd_form_reshape(form_pass *x, ir_value v, uint32_t from, uint32_t n, const int64_t *sizes, uint32_t cut);

/* --- orders.c --- */
/* A sort along a dimension that is cut, where no other dimension has room for its axes. */
bool spmd_form_sort_fits(form_pass *x);
void spmd_form_sort(form_pass *x);
/* chlo.top_k along a dimension that is cut, where the k largest of a shard and their places are less than all of it. */
bool spmd_form_top_k_fits(form_pass *x);
void spmd_form_top_k(form_pass *x);

#endif
