/* Running lowered computations. The memory is laid out anew by whoever begins: for lanes a table of pointers, then
 * a block of lanes for each constant and op; for one lane a slot a value, then the instructions. */
#include "body.h"

#include "../vm/vm_inside.h"

/* --- many lanes --- */

void cpu_body_lanes_begin(cpu_body_lanes *x, const cpu_body *b, char *memory) {
  *x = (cpu_body_lanes){b, (char **)(void *)memory};
  memory += (b->n_values * sizeof(char *) + 63) & ~(size_t)63;
  for (uint32_t i = 0; i < b->n_params; i++) x->at[i] = NULL;
  for (uint32_t i = b->n_params; i < b->n_values; i++) {
    const cpu_body_value *v = &b->values[i];
    x->at[i] = memory;
    if (v->constant) vm_fill(v->bytes, v->constant, b->lanes, memory);
    memory += ((size_t)b->lanes * v->bytes + 63) & ~(size_t)63;
  }
}

/* All ops over n lanes, in order. */
static void bodyr_block(cpu_body_lanes *x, int64_t n) {
  assert(n > 0 && n <= x->body->lanes);
  const cpu_body *b = x->body;
  for (uint32_t i = b->n_params; i < b->n_values; i++) {
    const cpu_body_value *v = &b->values[i];
    const void *in[3] = {NULL, NULL, NULL};
    if (!v->n_in) continue;
    for (uint32_t k = 0; k < v->n_in; k++) in[k] = x->at[v->in[k]];
    interp_loop_run(&v->loop, n, in, x->at[i]);
  }
}

/* Results that ops compute are written where they belong, each value once. */
static void bodyr_aim(cpu_body_lanes *x, int64_t at, void *const *out) {
  const cpu_body *b = x->body;
  for (uint32_t j = b->n_outs; j-- > 0;) {
    const cpu_body_value *v = &b->values[b->outs[j]];
    if (v->n_in) x->at[b->outs[j]] = (char *)out[j] + at * v->bytes;
  }
}

/* In blocks of b->lanes. Results that are a parameter or a constant, or are given twice, are copied at the end. */
void cpu_body_lanes_run(cpu_body_lanes *x, int64_t n, const void *const *in, void *const *out) {
  const cpu_body *b = x->body;
  for (int64_t at = 0; at < n; at += b->lanes) {
    int64_t m = n - at < b->lanes ? n - at : b->lanes;
    for (uint32_t i = 0; i < b->n_params; i++)
      x->at[i] = in[i] ? (char *)(uintptr_t)in[i] + at * b->values[i].bytes : NULL; /* only ever read */
    bodyr_aim(x, at, out);
    bodyr_block(x, m);
    for (uint32_t j = 0; j < b->n_outs; j++) {
      size_t bytes = b->values[b->outs[j]].bytes;
      char *to = (char *)out[j] + (size_t)at * bytes;
      if (x->at[b->outs[j]] != to) memcpy(to, x->at[b->outs[j]], (size_t)m * bytes);
    }
  }
}

/* --- one --- */

/* The functions of ops that have no instruction of their own (LIST_CALL). */
static void bodyr_one_loop(const list_inst *i) {
  interp_loop_run(i->data, 1, i->in, i->out);
}

static void bodyr_one_simple(const list_inst *i) {
  const interp_loop *l = i->data;
  l->fn(l, 1, i->in, i->out);
}

/* Value i's instruction; where it does the op before as well, that op's operands are the first two, its other one
 * the third. */
static list_inst bodyr_instruction(const cpu_body_one *x, uint32_t i) {
  const cpu_body_value *v = &x->body->values[i], *before = v->takes != UINT32_MAX ? &x->body->values[v->takes] : NULL;
  assert(v->n_in > 0 && !v->taken);
  list_inst inst = {.code = v->one, .n = 1, .data = &v->loop, .out = cpu_body_slot(x, i)};
  inst.fn = v->loop.work || v->loop.wraps ? bodyr_one_loop : bodyr_one_simple;
  for (uint32_t k = 0; k < 3; k++) inst.in[k] = cpu_body_slot(x, v->in[k < v->n_in ? k : 0]);
  if (!before) return inst;
  inst.in[2] = inst.in[v->in[0] == v->takes];
  for (uint32_t k = 0; k < 2; k++) inst.in[k] = cpu_body_slot(x, before->in[k]);
  return inst;
}

void cpu_body_one_begin(cpu_body_one *x, const cpu_body *b, char *memory) {
  uint32_t n = 0;
  *x = (cpu_body_one){b, memory, NULL};
  x->insts = (list_inst *)(void *)(memory + (((size_t)b->n_values * CPU_BODY_SLOT + 63) & ~(size_t)63));
  memset(memory, 0, (size_t)b->n_values * CPU_BODY_SLOT);
  for (uint32_t i = b->n_params; i < b->n_values; i++) {
    const cpu_body_value *v = &b->values[i];
    if (v->constant) cpu_body_copy(v->bytes, cpu_body_slot(x, i), v->constant);
    if (v->n_in && !v->taken) x->insts[n++] = bodyr_instruction(x, i);
  }
  assert(n <= b->n_ops);
  x->insts[n] = (list_inst){.code = LIST_END};
}

/* By way of a copy where a result is a parameter: its slot may be written before it is read. */
void cpu_body_one_feed(const cpu_body_one *x) {
  const cpu_body *b = x->body;
  char few[8][CPU_BODY_SLOT], *all = few[0];
  assert(b->n_outs <= b->n_params);
  if (!b->passes) {
    for (uint32_t j = 0; j < b->n_outs; j++)
      cpu_body_copy(b->values[j].bytes, cpu_body_slot(x, j), cpu_body_result(x, j));
    return;
  }
  if (b->n_outs > 8) all = __builtin_alloca(b->n_outs * (size_t)CPU_BODY_SLOT);
  for (uint32_t j = 0; j < b->n_outs; j++)
    memcpy(all + j * (size_t)CPU_BODY_SLOT, cpu_body_result(x, j), CPU_BODY_SLOT);
  memcpy(x->slots, all, b->n_outs * (size_t)CPU_BODY_SLOT);
}
