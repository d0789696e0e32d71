/* argmax and argmin of few elements in a loop's code: pairs of a value and its place meet as leaves of a tree, left
 * before right, which gives what they give in order: the larger value, of equal ones the right one's bits and the
 * lesser place, and the first NaN. */
#include "../../passes/hlo/arg_reduce.h"
#include "scope.h"

typedef struct larg_pair {
  uint32_t value, place;
} larg_pair;

typedef struct larg {
  nat_body *b;
  nat_type value, place;
  bool smallest;
} larg;

bool cpu_loop_may_find(loop_make *x, const plan_step *t) {
  opt_arg_reduction a;
  if (!opt_arg_reduction_of(t->op, &a)) return false;
  int64_t n = ir_operand_type(t->op, 0)->count;
  if (n < 1 || n > LOOP_COUNT) return false;
  x->n_values += 4 * (uint32_t)n;
  return x->n_values <= LOOP_VALUES;
}

/* x > y, or of argmin x < y; or x = y. */
static uint32_t larg_compare(const larg *g, bool equal, uint32_t x, uint32_t y) {
  nat_body *b = g->b;
  bool swaps = !equal && !g->smallest;
  if (b->failed) return 0;
  if (g->value.kind >= NAT_FLOAT)
    return nat_op(b, NAT_FCMP, g->value.width, swaps ? y : x, swaps ? x : y, NAT_NONE, equal ? 0 : 1);
  return nat_compare_ints(b, g->value.width, g->value.kind == NAT_SIGNED, equal ? SCALAR_EQ : SCALAR_LT, swaps ? y : x,
                          swaps ? x : y);
}

static larg_pair larg_meet(const larg *g, larg_pair x, larg_pair y) {
  nat_body *b = g->b;
  uint32_t keeps = larg_compare(g, false, x.value, y.value), equal = larg_compare(g, true, x.value, y.value);
  uint32_t before = b->failed ? 0 : nat_compare_ints(b, g->place.width, true, SCALAR_LT, x.place, y.place);
  if (b->failed) return x;
  if (g->value.kind >= NAT_FLOAT)
    keeps = nat_mask_op(b, NAT_OR, keeps, nat_op(b, NAT_FCMP, g->value.width, x.value, x.value, NAT_NONE, 3));
  uint32_t stays = nat_mask_op(b, NAT_OR, keeps, nat_mask_op(b, NAT_AND, equal, before));
  if (b->failed) return x;
  return (larg_pair){nat_select(b, keeps, x.value, y.value), nat_select(b, stays, x.place, y.place)};
}

/* Neighbours meet until one is left. */
static larg_pair larg_tree(const larg *g, larg_pair *p, int64_t n) {
  for (; n > 1; n = (n + 1) / 2)
    for (int64_t i = 0; i < n; i += 2) p[i / 2] = i + 1 < n ? larg_meet(g, p[i], p[i + 1]) : p[i];
  return p[0];
}

void cpu_loop_find(loop_make *x, loop_scope *s, const plan_step *t) {
  opt_arg_reduction a;
  const ir_type *type = ir_operand_type(t->op, 0);
  larg g = {.b = &x->code.body, .value = cpu_loop_type(s, t->in[0]), .place = cpu_loop_type(s, t->out[1])};
  larg_pair pairs[LOOP_COUNT + 1], results[LOOP_COUNT];
  if (!opt_arg_reduction_of(t->op, &a)) x->failed = true;
  if (x->failed) return;
  g.smallest = a.smallest;
  int64_t inner = 1, n = type->dims[a.dim];
  for (uint32_t d = a.dim + 1; d < type->rank; d++) inner *= type->dims[d];
  for (int64_t i = 0; i < type->count / n; i++) {
    int64_t first = i / inner * n * inner + i % inner;
    pairs[0].value = cpu_loop_get(x, s, t->in[t->n_in - 2], 0);
    pairs[0].place = cpu_loop_get(x, s, t->in[t->n_in - 1], 0);
    for (int64_t r = 0; r < n && !x->failed && !g.b->failed; r++) {
      pairs[r + 1].value = cpu_loop_get(x, s, t->in[0], first + r * inner);
      pairs[r + 1].place =
          a.counts ? nat_constant(g.b, g.place.width, (uint64_t)r) : cpu_loop_get(x, s, t->in[1], first + r * inner);
    }
    if (x->failed || g.b->failed) return;
    results[i] = larg_tree(&g, pairs, n + 1);
  }
  for (int64_t i = 0; i < type->count / n; i++) {
    cpu_loop_put_element(x, s, t->out[0], i, results[i].value);
    cpu_loop_put_element(x, s, t->out[1], i, results[i].place);
  }
}
