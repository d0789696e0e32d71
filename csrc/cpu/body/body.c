/* Called computations made ready for the CPU: blocks of lanes by the loops of scalar/lanes.c, and for one lane a list
 * of instructions. What is not a scalar program is refused, which is no error: the interpreter evaluates it then. */
#include "body.h"

enum { BODYM_MAX_VALUES = 512 /* memory to run one is on the stack */ };

static size_t bodym_round(size_t bytes) {
  return (bytes + 63) & ~(size_t)63;
}

/* On one lane an op takes over the one before, where nobody else wants the result of that: two ops of floats are
 * then one instruction (cpu_list_pair). An op that has taken one over is not taken over itself. */
static void bodym_pair(const scalar_program *p, cpu_body_inst *insts, const uint8_t *uses) {
  uint32_t last = UINT32_MAX;
  for (uint32_t i = p->n_params; i < p->n_values; i++) {
    const scalar_value *v = &p->values[i];
    if (!v->n_in) continue;
    uint32_t one = last;
    last = i;
    if (one == UINT32_MAX || v->n_in != 2 || p->values[one].n_in != 2 || insts[one].takes != UINT32_MAX ||
        uses[one] != 1)
      continue;
    if (v->in[0] != one && v->in[1] != one) continue;
    uint32_t both = cpu_list_pair(insts[one].code, insts[i].code, v->in[1] == one);
    if (both == LIST_CALL) continue;
    insts[i].code = both;
    insts[i].takes = one;
    insts[one].taken = true;
  }
}

/* What runs on one lane. NULL when out of memory. */
static cpu_body_inst *bodym_instructions(const scalar_program *p, const scalar_lanes *lanes, base_arena *arena) {
  cpu_body_inst *insts = base_arena_zalloc(arena, ((size_t)p->n_values + 1) * sizeof *insts);
  uint8_t uses[BODYM_MAX_VALUES] = {0}; /* up to 2; results count twice, so that nobody takes them over */
  assert(p->n_values <= BODYM_MAX_VALUES);
  for (uint32_t i = 0; insts && i < p->n_values; i++) {
    const scalar_value *v = &p->values[i];
    insts[i].takes = UINT32_MAX;
    if (v->n_in) insts[i].code = cpu_list_scalar(&v->op, &lanes->loops[i]);
    for (uint32_t k = 0; k < v->n_in; k++)
      if (uses[v->in[k]] < 2) uses[v->in[k]]++;
  }
  for (uint32_t j = 0; j < p->n_outs; j++) uses[p->outs[j]] = 2;
  if (insts) bodym_pair(p, insts, uses);
  return insts;
}

/* NULL when out of memory. */
static cpu_body *bodym_make(const scalar_program *p, base_arena *arena) {
  cpu_body *b = BASE_NEW(arena, cpu_body);
  const scalar_lanes *lanes = scalar_lanes_make(p, arena);
  cpu_body_inst *insts = lanes ? bodym_instructions(p, lanes, arena) : NULL;
  if (!b || !insts) return NULL;
  b->program = p;
  b->lanes = lanes;
  b->insts = insts;
  for (uint32_t j = 0; j < p->n_outs; j++) b->passes = b->passes || p->outs[j] < p->n_params;
  b->one_bytes = bodym_round((size_t)p->n_values * SCALAR_BYTES) + bodym_round((p->n_ops + 1) * sizeof(list_inst));
  return b;
}

int cpu_body_make(const ir_computation *c, base_arena *arena, const cpu_body **out, xlac_error *err) {
  const scalar_program *p = NULL;
  *out = NULL;
  TRY(scalar_program_make(c, arena, &p, err));
  if (!p || p->n_values > BODYM_MAX_VALUES) return 0;
  *out = bodym_make(p, arena);
  return *out ? 0 : base_oom(err, "a called computation");
}

/* --- one lane --- */

/* The functions of ops that have no instruction of their own (LIST_CALL). */
static void bodyr_one_loop(const list_inst *i) {
  scalar_loop_run(i->data, 1, i->in, i->out);
}

static void bodyr_one_simple(const list_inst *i) {
  const scalar_loop *l = i->data;
  l->fn(l, 1, i->in, i->out);
}

/* Value i's instruction; where it does the op before as well, that op's operands are the first two, its other one
 * the third. */
static list_inst bodyr_instruction(const cpu_body_one *x, uint32_t i) {
  const scalar_value *v = &x->body->program->values[i];
  const cpu_body_inst *own = &x->body->insts[i];
  const scalar_loop *l = &x->body->lanes->loops[i];
  assert(v->n_in > 0 && !own->taken);
  list_inst inst = {.code = own->code, .n = 1, .data = l, .out = cpu_body_slot(x, i)};
  inst.fn = l->work || l->wraps ? bodyr_one_loop : bodyr_one_simple;
  for (uint32_t k = 0; k < 3; k++) inst.in[k] = cpu_body_slot(x, v->in[k < v->n_in ? k : 0]);
  if (own->takes == UINT32_MAX) return inst;
  inst.in[2] = inst.in[v->in[0] == own->takes];
  for (uint32_t k = 0; k < 2; k++) inst.in[k] = cpu_body_slot(x, x->body->program->values[own->takes].in[k]);
  return inst;
}

/* A slot a value, then the instructions. */
void cpu_body_one_begin(cpu_body_one *x, const cpu_body *b, char *memory) {
  const scalar_program *p = b->program;
  uint32_t n = 0;
  *x = (cpu_body_one){b, memory, NULL};
  x->insts = (list_inst *)(void *)(memory + bodym_round((size_t)p->n_values * SCALAR_BYTES));
  memset(memory, 0, (size_t)p->n_values * SCALAR_BYTES);
  for (uint32_t i = p->n_params; i < p->n_values; i++) {
    const scalar_value *v = &p->values[i];
    if (v->constant) cpu_body_copy(v->bytes, cpu_body_slot(x, i), v->element);
    if (v->n_in && !b->insts[i].taken) x->insts[n++] = bodyr_instruction(x, i);
  }
  assert(n <= p->n_ops);
  x->insts[n] = (list_inst){.code = LIST_END};
}

/* By way of a copy where a result is a parameter: its slot may be written before it is read. */
void cpu_body_one_feed(const cpu_body_one *x) {
  const scalar_program *p = x->body->program;
  char few[8][SCALAR_BYTES], *all = few[0];
  assert(p->n_outs <= p->n_params);
  if (!x->body->passes) {
    for (uint32_t j = 0; j < p->n_outs; j++)
      cpu_body_copy(p->values[j].bytes, cpu_body_slot(x, j), cpu_body_result(x, j));
    return;
  }
  if (p->n_outs > 8) all = __builtin_alloca(p->n_outs * (size_t)SCALAR_BYTES);
  for (uint32_t j = 0; j < p->n_outs; j++) memcpy(all + j * (size_t)SCALAR_BYTES, cpu_body_result(x, j), SCALAR_BYTES);
  memcpy(x->slots, all, p->n_outs * (size_t)SCALAR_BYTES);
}
