/* Kernels as text: what parse.c reads back to an equal kernel. Zero strides and whole dimensions of boxes are left
 * out. */
#include "../text/text.h"
#include "../base/plural.h"
#include "kernel.h"

/* [offset + stride*i0 + ...] */
static void kput_index(base_text *out, const kernel *k, const kernel_index *index) {
  base_putf(out, "[%lld", (long long)index->offset);
  for (uint32_t d = 0; d < k->rank; d++)
    if (index->strides[d]) base_putf(out, " + %lld*i%u", (long long)index->strides[d], d);
  BASE_PUT(out, "]");
}

/* Nothing where the box has all iterations; `word` stands before the first part. */
static void kput_box(base_text *out, const kernel *k, const char *word, const kernel_box *box) {
  for (uint32_t d = 0; box && d < k->rank; d++) {
    if (box->from[d] == 0 && box->to[d] == k->extents[d]) continue;
    base_putf(out, "%s%lld <= i%u < %lld", word, (long long)box->from[d], d, (long long)box->to[d]);
    word = ", ";
  }
}

/* Beside the affine part the places that values say, each up to its last. */
static void kput_load(base_text *out, const kernel *k, const kernel_value *v) {
  base_putf(out, "load in%u[%lld", v->buffer, (long long)v->index->offset);
  for (uint32_t d = 0; d < k->rank; d++)
    if (v->index->strides[d]) base_putf(out, " + %lld*i%u", (long long)v->index->strides[d], d);
  for (uint32_t j = 0; j < v->n_in; j++)
    base_putf(out, " + %lld*v%u up to %lld", (long long)v->bases[j].stride, v->in[j], (long long)v->bases[j].last);
  BASE_PUT(out, "]");
}

/* By the HLO printer, which spells every element type so that it reads back to the same bits. */
static void kput_constant(base_text *out, uint8_t dtype, const void *data) {
  assert(data);
  const ir_type scalar = {.kind = IR_TYPE_TENSOR, .dtype = dtype, .count = 1};
  const ir_literal literal = {.type = &scalar, .data = (void *)(uintptr_t)data};
  BASE_PUT(out, "constant(");
  text_put_literal(out, &literal, true);
  BASE_PUT(out, ")");
}

/* add(v0, v1), and what the op has beside its operands: direction=LT of a compare, and the like. */
static void kput_op(base_text *out, const scalar_op *op, uint32_t n_in, const uint32_t *in) {
  base_putf(out, "%s(", scalar_text((scalar_code)op->code));
  for (uint32_t j = 0; j < n_in; j++) base_putf(out, "%sv%u", j ? ", " : "", in[j]);
  BASE_PUT(out, ")");
  scalar_put_immediates(out, op);
}

/* One line for each value, which is what lets the reader hand lines to HLO's. */
static void kput_value(base_text *out, const kernel *k, uint32_t i) {
  assert(i < k->n_values);
  const kernel_value *v = &k->values[i];
  base_putf(out, "v%u = %s[] ", i, base_dtype_table[v->dtype].text);
  switch ((kernel_kind)v->kind) {
    case KERNEL_LOAD:
      kput_load(out, k, v);
      break;
    case KERNEL_PICK:
      base_putf(out, "pick(v%u, v%u)", v->in[0], v->in[1]);
      kput_box(out, k, " if ", v->pick);
      break;
    case KERNEL_SCAN:
      base_putf(out, "scan(v%u, v%u) by %s along ", v->in[0], v->in[1], scalar_text((scalar_code)v->op.code));
      kput_index(out, k, v->index);
      break;
    case KERNEL_COUNT_UP:
      BASE_PUT(out, "index");
      kput_index(out, k, v->index);
      break;
    case KERNEL_CONSTANT:
      kput_constant(out, v->dtype, v->data);
      break;
    case KERNEL_OP:
      kput_op(out, &v->op, v->n_in, v->in);
      break;
  }
  kput_box(out, k, " where ", v->box);
  BASE_PUT(out, "\n");
}

void kernel_put(base_text *out, const kernel *k) {
  assert(out && k);
  BASE_PUT(out, "kernel [");
  for (uint32_t d = 0; d < k->rank; d++) base_putf(out, "%s%lld", d ? "," : "", (long long)k->extents[d]);
  base_putf(out, "] from %u input%s\n", k->n_inputs, base_plural(k->n_inputs));
  for (uint32_t i = 0; i < k->n_values; i++) kput_value(out, k, i);
  if (k->reduction)
    base_putf(out, "over [%lld,(%lld),%lld]\n", (long long)k->reduction->outer, (long long)k->reduction->reduced,
              (long long)k->reduction->inner);
  for (uint32_t i = 0; i < k->n_stores; i++) {
    base_putf(out, "store out%u", k->stores[i].buffer);
    kput_index(out, k, &k->stores[i].index);
    base_putf(out, " v%u", k->stores[i].value);
    if (k->stores[i].by) base_putf(out, " by %s from v%u", scalar_text(k->stores[i].by), k->stores[i].init);
    BASE_PUT(out, "\n");
  }
}

void kernel_put_program(base_text *out, const scalar_program *p) {
  assert(out && p);
  BASE_PUT(out, "program (");
  for (uint32_t i = 0; i < p->n_params; i++)
    base_putf(out, "%s%s[]", i ? ", " : "", base_dtype_table[p->values[i].dtype].text);
  BASE_PUT(out, ")\n");
  for (uint32_t i = p->n_params; i < p->n_values; i++) {
    const scalar_value *v = &p->values[i];
    base_putf(out, "v%u = %s[] ", i, base_dtype_table[v->dtype].text);
    if (v->constant)
      kput_constant(out, v->dtype, v->element);
    else
      kput_op(out, &v->op, v->n_in, v->in);
    BASE_PUT(out, "\n");
  }
  BASE_PUT(out, "give (");
  for (uint32_t j = 0; j < p->n_outs; j++) base_putf(out, "%sv%u", j ? ", " : "", p->outs[j]);
  BASE_PUT(out, ")\n");
}
