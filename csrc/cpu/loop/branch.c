/* Conditionals in a loop's code. Branches of a few cheap ops are all computed, and their results selected; others are
 * regions that run once or not at all, one after the other; each gives the results or leaves them as they are. */
#include "../../passes/op_cost.h"
#include "scope.h"

enum { LBRANCH_CHEAP = 48 /* additions that take less time than a branch which was not foreseen */ };

/* --- what it costs to compute all branches --- */

static double lbranch_kernel_cost(const kernel *k) {
  double sum = 0;
  for (uint32_t i = 0; i < k->n_values; i++)
    if (k->values[i].kind == KERNEL_OP) sum += opt_op_weight(scalar_opcode((scalar_code)k->values[i].op.code));
  return sum * (double)k->count;
}

static double lbranch_cost(const plan_program *p) {
  double sum = 0;
  for (uint32_t i = 0; i < p->n_steps; i++) {
    const plan_step *t = &p->steps[i];
    if (t->kind == PLAN_KERNEL)
      sum += lbranch_kernel_cost(t->kernel);
    else if (t->kind == PLAN_CONDITIONAL)
      for (uint32_t j = 0; j < t->n_nested; j++) sum += lbranch_cost(t->nested[j]);
    else if (t->kind != PLAN_COPY)
      return LBRANCH_CHEAP + 1;
  }
  return sum;
}

/* Whether nothing but values comes of it. */
static bool lbranch_is_cheap(const plan_step *t, loop_scope *const *scopes) {
  double sum = 0;
  for (uint32_t k = 0; k < t->n_nested; k++) {
    sum += lbranch_cost(t->nested[k]);
    for (uint32_t b = 0; b < t->nested[k]->n_buffers; b++)
      if (t->nested[k]->buffers[b].place == PLAN_RESULT && scopes[k]->in_memory[b]) return false;
  }
  return sum <= LBRANCH_CHEAP;
}

/* --- one branch --- */

typedef struct lbranch {
  loop_make *x;
  loop_scope *s;
  const plan_step *t;
  loop_scope *const *scopes;
  uint32_t n; /* results that are values, element by element */
} lbranch;

/* Its arguments are operands number `first` and on of the step. */
static void lbranch_arguments(const lbranch *g, uint32_t k, uint32_t first) {
  loop_scope *to = g->scopes[k];
  for (uint32_t i = 0; i < to->p->n_arguments && !g->x->failed; i++)
    for (int64_t e = 0; !to->in_memory[i] && e < to->p->buffers[i].type->count; e++)
      to->cells[to->first[i] + e] = cpu_loop_get(g->x, g->s, g->t->in[first + i], e);
}

static void lbranch_results(const lbranch *g, uint32_t k, uint32_t *values) {
  const loop_scope *of = g->scopes[k];
  for (uint32_t j = 0, n = 0; j < g->t->n_out && !g->x->failed; j++) {
    uint32_t from = of->last_result[j];
    if (from == UINT32_MAX) {
      g->x->failed = true;
      return;
    }
    for (int64_t e = 0; !of->in_memory[from] && e < of->p->buffers[from].type->count && !g->x->failed; e++)
      values[n++] = cpu_loop_get(g->x, of, from, e);
  }
}

/* To the step's results; packed: as carries are. */
static void lbranch_put(const lbranch *g, const uint32_t *values, bool packed) {
  for (uint32_t j = 0, n = 0; j < g->t->n_out && !g->x->failed; j++) {
    const loop_scope *of = g->scopes[0];
    uint32_t from = of->last_result[j];
    nat_type t = cpu_loop_carried(cpu_loop_type(g->s, g->t->out[j]));
    if (of->in_memory[from]) {
      cpu_loop_note(g->s, g->t->out[j]);
      continue;
    }
    for (int64_t e = 0; e < of->p->buffers[from].type->count && !g->x->failed; e++, n++)
      cpu_loop_put_element(g->x, g->s, g->t->out[j], e,
                           packed ? nat_unpack(&g->x->code.body, values[n], t) : values[n]);
  }
}

/* Branch k is taken. */
static uint32_t lbranch_mask(const lbranch *g, uint32_t k) {
  nat_body *b = &g->x->code.body;
  uint32_t selector = cpu_loop_get(g->x, g->s, g->t->in[0], 0), last = g->t->n_nested - 1;
  nat_type t = cpu_loop_type(g->s, g->t->in[0]);
  if (g->x->failed || b->failed) return 0;
  if (t.kind == NAT_PRED) return k == 0 ? selector : nat_mask_not(b, selector);
  if (last == 0) return nat_mask_constant(b, true);
  bool rest = k == last;
  return nat_compare_ints(b, t.width, false, rest ? SCALAR_GE : SCALAR_EQ, selector, nat_constant(b, t.width, k));
}

/* --- all of them --- */

/* `no` as wide as `yes`: truth values of two branches are in lanes of what each compared. */
static uint32_t lbranch_alike(nat_body *b, uint32_t yes, uint32_t no) {
  uint32_t width = b->values[yes].width;
  return b->values[no].width == width ? no : nat_mask(b, no, width);
}

static void lbranch_select(const lbranch *g, uint32_t *all) {
  nat_body *b = &g->x->code.body;
  for (uint32_t k = g->t->n_nested, first = g->t->n_in; k-- > 0 && !g->x->failed;) {
    uint32_t *values = all + (k + 1 < g->t->n_nested) * g->n;
    first -= g->scopes[k]->p->n_arguments;
    lbranch_arguments(g, k, first);
    cpu_loop_write_program(g->x, g->scopes[k]);
    lbranch_results(g, k, values);
    if (values == all || g->x->failed) continue;
    uint32_t mask = lbranch_mask(g, k);
    for (uint32_t i = 0; i < g->n && !b->failed; i++)
      all[i] = nat_select(b, mask, values[i], lbranch_alike(b, values[i], all[i]));
  }
  lbranch_put(g, all, false);
}

/* The region of branch k: values[] is what the results were, and then what they are. */
static void lbranch_region(const lbranch *g, uint32_t k, uint32_t first, uint32_t *values, uint32_t *carries) {
  loop_make *x = g->x;
  uint32_t mask = lbranch_mask(g, k);
  if (x->failed || x->code.body.failed) return;
  for (uint32_t i = 0; i < g->n; i++) values[i] = nat_loop_spread(&x->code, values[i]);
  nat_loop_enter(&x->code, true);
  nat_loop_exit_unless(&x->code, mask);
  for (uint32_t i = 0; i < g->n && !x->code.body.failed; i++) carries[i] = nat_loop_carry(&x->code, values[i], false);
  lbranch_arguments(g, k, first);
  cpu_loop_write_program(x, g->scopes[k]);
  lbranch_results(g, k, values);
  for (uint32_t j = 0, n = 0; j < g->t->n_out && !x->failed; j++) {
    uint32_t from = g->scopes[k]->last_result[j];
    nat_type t = cpu_loop_carried(cpu_loop_type(g->s, g->t->out[j]));
    if (g->scopes[k]->in_memory[from]) continue;
    for (int64_t e = 0; e < g->scopes[k]->p->buffers[from].type->count && !x->code.body.failed; e++, n++)
      nat_loop_carry_to(&x->code, carries[n], nat_pack(&x->code.body, values[n], t));
  }
  if (x->failed || x->code.body.failed) return;
  nat_loop_leave(&x->code);
  for (uint32_t i = 0; i < g->n && !x->code.body.failed; i++) values[i] = nat_loop_result(&x->code, carries[i]);
}

static void lbranch_regions(const lbranch *g, uint32_t *values) {
  uint32_t n = 0, first = 1;
  for (uint32_t j = 0; j < g->t->n_out && !g->x->failed; j++) {
    const plan_buffer *b = &g->s->p->buffers[g->t->out[j]];
    nat_type t = cpu_loop_type(g->s, g->t->out[j]);
    bool memory = cpu_loop_result_in_memory(g->scopes[0], j);
    for (int64_t e = 0; !memory && e < b->type->count; e++)
      values[n++] = nat_constant(&g->x->code.body, t.kind == NAT_PRED ? 1 : t.width, 0);
  }
  for (uint32_t k = 0; k < g->t->n_nested && !g->x->failed && !g->x->code.body.failed; k++) {
    lbranch_region(g, k, first, values, values + g->n);
    first += g->scopes[k]->p->n_arguments;
  }
  lbranch_put(g, values, true);
}

void cpu_loop_branch(loop_make *x, loop_scope *s, const plan_step *t, loop_scope *const *scopes) {
  lbranch g = {.x = x, .s = s, .t = t, .scopes = scopes};
  for (uint32_t j = 0; j < t->n_out; j++)
    if (!cpu_loop_result_in_memory(scopes[0], j)) g.n += (uint32_t)s->p->buffers[t->out[j]].type->count;
  uint32_t *values = BASE_ARRAY(x->arena, uint32_t, 2 * (size_t)g.n + 1);
  if (!values) x->failed = true;
  if (x->failed) return;
  if (lbranch_is_cheap(t, scopes))
    lbranch_select(&g, values);
  else
    lbranch_regions(&g, values);
}
