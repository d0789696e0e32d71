/* What steps cost, by shapes alone: opt_op_cost's figures, for a kernel those of its values times its iterations.
 * Bytes are what goes through memory once, caches aside. */
#include "cost.h"

/* Loads, constants, picks and indexes cost no arithmetic. */
plan_cost plan_value_cost(const kernel *k, uint32_t i) {
  assert(i < k->n_values);
  plan_cost none = {0};
  const kernel_value *v = &k->values[i];
  bool op = v->kind == KERNEL_OP || v->kind == KERNEL_SCAN;
  return op ? opt_elementwise_cost(scalar_opcode((scalar_code)v->op.code), (double)k->count) : none;
}

/* Arithmetic only: bytes are counted for the whole step. */
static void cost_add(plan_cost *sum, plan_cost c) {
  sum->flops += c.flops;
  sum->transcendentals += c.transcendentals;
}

/* Each buffer once, also where it is read in several places. */
static void cost_bytes(const plan_program *p, const plan_step *s, plan_cost *c) {
  for (uint32_t i = 0; i < s->n_in; i++) {
    bool again = false;
    for (uint32_t j = 0; j < i && s->n_in <= 64 && !again; j++) again = s->in[j] == s->in[i];
    if (!again) c->read += (double)p->buffers[s->in[i]].bytes;
  }
  for (uint32_t i = 0; i < s->n_out; i++)
    if (p->buffers[s->out[i]].type) c->written += (double)p->buffers[s->out[i]].bytes;
}

plan_cost plan_step_cost(const plan_program *p, const plan_step *s) {
  assert(p && s);
  plan_cost c = {0};
  if (s->kind == PLAN_KERNEL) {
    for (uint32_t i = 0; i < s->kernel->n_values; i++) cost_add(&c, plan_value_cost(s->kernel, i));
    for (uint32_t i = 0; i < s->kernel->n_stores; i++)
      if (s->kernel->stores[i].by)
        cost_add(&c, opt_elementwise_cost(scalar_opcode(s->kernel->stores[i].by), (double)s->kernel->count));
  } else if (s->kind == PLAN_ROUTINE) {
    c = opt_op_cost(s->op);
  }
  if (s->n_nested == 0 && s->kind != PLAN_DONE) cost_bytes(p, s, &c);
  return c;
}

/* In a tile, what only its steps need, and what was read before in it, is in the second cache; t NULL: no tile. */
static int64_t cost_extent(const plan_program *p, const plan_tile *t, uint32_t buffer) {
  const plan_buffer *b = &p->buffers[buffer];
  bool inside = t && b->first != UINT32_MAX && b->first >= t->first && b->first < t->first + t->n;
  return inside ? b->bytes / t->rows * t->at_a_time : b->bytes;
}

static double cost_cycles(const plan_program *p, const plan_tile *t, const plan_step *s) {
  enum { FEW = 32 };
  int64_t in[FEW], out[KERNEL_MAX_STORES];
  if (s->kind == PLAN_ROUTINE) return 0;
  assert(s->kind == PLAN_KERNEL && s->n_out <= KERNEL_MAX_STORES);
  if (s->n_in > FEW || !p->fusion) return 0;
  for (uint32_t i = 0; i < s->n_in; i++) in[i] = cost_extent(p, t, s->in[i]);
  for (uint32_t i = 0; i < s->n_out; i++) out[i] = cost_extent(p, t, s->out[i]);
  return fusion_kernel_cost(&p->fusion->model, s->kernel, in, out);
}

double plan_kernel_cycles(const plan_program *p, const plan_step *s) {
  return cost_cycles(p, NULL, s);
}

double plan_tile_cycles(const plan_program *p, const plan_tile *t) {
  double cycles = 0;
  for (uint32_t i = t->first; i < t->first + t->n; i++) cycles += cost_cycles(p, t, &p->steps[i]);
  return cycles;
}
