/* The cost model: cycles of one thread, from the facts of the device and from the COST column of ops.def. It is rough
 * on purpose. Decisions ask it which of two ways is shorter, and the two often differ by a factor: a subtraction is a
 * fraction of a cycle an element, a value that goes to memory and back is several where the array is larger than the
 * caches.
 *
 * f32[512,512,3] subtract(b0, b1), read by two kernels, on a CPU with vectors of 32 bytes and a cache of 32 MB:
 *    stored: 0.25 to compute, 0.9 to write and 2 * 0.5 to read an element;  anew: 2 * 0.25 */
#include "../passes/op_cost.h"
#include "fusion_inside.h"

/* What is usual, where a device says nothing of itself. */
static const rt_compute_facts cost_usual = {.vector_bytes = 32, .cache_bytes = {32 << 10, 1 << 20, 16 << 20}};

enum { COST_TYPES = 8 }; /* of an op that kernels hold: its result and at most three operands */

void fusion_model_make(fusion_model *out, const rt_compute_facts *facts) {
  assert(out);
  *out = (fusion_model){.facts = facts ? *facts : cost_usual, .level = {0.03, 0.06, 0.12, 0.35}, .devices = 1};
  if (!out->facts.vector_bytes) out->facts.vector_bytes = cost_usual.vector_bytes;
  for (uint32_t i = 0; i < 3; i++)
    if (!out->facts.cache_bytes[i]) out->facts.cache_bytes[i] = cost_usual.cache_bytes[i];
  /* Interpreted loops read and write the first cache for each op; machine code keeps values in registers. */
  out->op = (out->facts.native ? 0.75 : 2) * 4 / out->facts.vector_bytes;
}

/* Truth values and narrow numbers go through loops of their own in a machine without code, some of them lane by lane.
 */
static double cost_type(const fusion_model *m, base_dtype t, double *bytes) {
  double size = (double)base_dtype_bytes(t);
  if (size > *bytes) *bytes = size;
  return size < 4 && !m->facts.native ? FUSION_NARROW : 1;
}

/* A comparison works on its operands' lanes, so the widest counts. types: of the result and of the operands. */
static double cost_of(const fusion_model *m, ir_opcode opcode, uint32_t n, const base_dtype *types) {
  double bytes = 4, narrow = 1;
  for (uint32_t i = 0; i < n; i++) {
    double slow = cost_type(m, types[i], &bytes);
    if (slow > narrow) narrow = slow;
  }
  return m->op * opt_op_weight(opcode) * narrow * bytes / 4;
}

double fusion_op_cost(const fusion_model *m, const ir_op *op) {
  base_dtype types[COST_TYPES];
  uint32_t n = 0;
  if (ir_is_tensor(op->type)) types[n++] = (base_dtype)op->type->dtype;
  for (uint32_t i = 0; i < op->n_operands && n < COST_TYPES; i++)
    if (ir_is_tensor(ir_operand_type(op, i))) types[n++] = (base_dtype)ir_operand_type(op, i)->dtype;
  return cost_of(m, (ir_opcode)op->opcode, n, types);
}

static double cost_value(const fusion_model *m, const kernel *k, const kernel_value *v) {
  base_dtype types[COST_TYPES] = {(base_dtype)v->dtype};
  assert(v->n_in < COST_TYPES);
  for (uint32_t i = 0; i < v->n_in; i++) types[i + 1] = (base_dtype)k->values[v->in[i]].dtype;
  return cost_of(m, scalar_opcode(v->op.code), v->n_in + 1u, types);
}

double fusion_count_cost(const fusion_model *m) {
  return m->facts.native ? m->op : 4 * m->op;
}

/* In which level all of it fits with as much again: caches hold other things, too. */
static uint32_t cost_level(const fusion_model *m, int64_t bytes) {
  uint32_t level = 0;
  while (level < 3 && 2 * (uint64_t)bytes > m->facts.cache_bytes[level]) level++;
  return level;
}

double fusion_read_cost(const fusion_model *m, int64_t bytes) {
  return m->level[cost_level(m, bytes)];
}

/* Beyond the first two levels a line is read before it is written. */
double fusion_write_cost(const fusion_model *m, int64_t bytes) {
  uint32_t level = cost_level(m, bytes);
  return m->level[level] * (level < 2 ? 1 : 1.75);
}

/* A load whose innermost dimension is neither dense nor the same element takes one element at a time. The first cache's
 * share is that of the op which reads it. */
static double cost_load(const fusion_model *m, const kernel *k, const kernel_value *v, int64_t bytes) {
  int64_t stride = k->rank ? v->index->strides[k->rank - 1] : 0;
  double lanes = (double)k->count, size = (double)base_dtype_bytes((base_dtype)v->dtype);
  if (k->rank && k->extents[k->rank - 1] > 1 && stride != 0 && stride != 1) return lanes * (m->op + FUSION_GATHER);
  return stride ? lanes * size * fusion_read_cost(m, bytes) : lanes * m->op / 4;
}

double fusion_kernel_cost(const fusion_model *m, const kernel *k, const int64_t *in, const int64_t *out) {
  double cycles = 0;
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    if (v->kind == KERNEL_LOAD) cycles += cost_load(m, k, v, in[v->buffer]);
    if (v->kind == KERNEL_OP) cycles += (double)k->count * cost_value(m, k, v);
    if (v->kind == KERNEL_SCAN) cycles += (double)k->count * FUSION_GATHER;
    if (v->kind == KERNEL_PICK) cycles += (double)k->count * m->op;
    if (v->kind == KERNEL_COUNT_UP) cycles += (double)k->count * fusion_count_cost(m);
  }
  for (uint32_t i = 0; i < k->n_stores; i++) {
    const kernel_store *s = &k->stores[i];
    double bytes = (double)k->count * (double)base_dtype_bytes((base_dtype)k->values[s->value].dtype);
    cycles += s->by != SCALAR_NONE ? (double)k->count * m->op : bytes * fusion_write_cost(m, out[i]);
  }
  return cycles;
}

void fusion_put_time(base_text *out, double cycles) {
  double us = cycles / 3000;
  if (us < 1000)
    base_putf(out, "%.3g us", us);
  else
    base_putf(out, "%.3g ms", us / 1000);
}
