/* Reductions and products of few numbers as code of a loop. Reductions have the vector VM's order (vm/vm_reduce.c), so
 * a kernel's bits are the same inside of a loop's code and outside; products the interpreter's (gemm/dot_small.c). */
#include "../vm/vm.h"
#include "scope.h"

/* --- reductions --- */

bool cpu_loop_may_combine(const kernel *k) {
  const kernel_reduction *red = k->reduction;
  if (red->reduced < 1 || kernel_pieces(k) != 1) return false;
  for (uint32_t i = 0; i < k->n_stores; i++) {
    nat_type t = nat_type_of((base_dtype)k->values[k->stores[i].value].dtype);
    if (k->stores[i].by && (!t.width || t.kind == NAT_BF16 || t.kind == NAT_F16)) return false;
  }
  return true;
}

/* How many partial results there are of each, into which values go in turn. */
static int64_t lcombine_lanes(const kernel_reduction *red, nat_type t) {
  if (red->inner > 1) return cpu_vm_runs_of(red, red->reduced);
  return red->outer > 1 && red->reduced < CPU_VM_SHORT_RUN ? 1 : CPU_NATIVE_FOLD_BYTES / t.width;
}

/* n values combined with as many others: to[i] becomes that of to[i] and from[i]. Where they are lanes already, several
 * at once. */
static void lcombine_some(nat_loop *l, scalar_code by, nat_type t, uint32_t *to, const uint32_t *from, int64_t n) {
  unsigned lanes = t.bytes == t.width && t.width >= 4 && cpu_loop_combines_lanes(by) ? 16 / t.width : 1, m = 0;
  for (int64_t i = 0; i < n && !l->body.failed; i += m) {
    m = n - i < lanes ? (unsigned)(n - i) : lanes;
    bool together = m > 1 && nat_loop_pack_cost(l, to + i, m) + nat_loop_pack_cost(l, from + i, m) < m;
    if (!together) m = 1;
    uint32_t x = together ? nat_loop_pack(l, to + i, m) : to[i], y = together ? nat_loop_pack(l, from + i, m) : from[i];
    uint32_t both = nat_combine(&l->body, by, t, x, y);
    for (unsigned k = 0; k < m && !l->body.failed; k++) to[i + k] = together ? nat_loop_lane(l, both, k) : both;
  }
}

/* All results side by side: row r of the values, `results` of them, has number r of what each of them combines. */
void cpu_loop_combine(nat_loop *l, const kernel *k, uint32_t store, const uint32_t *stored, uint32_t init,
                      uint32_t *out) {
  const kernel_reduction *red = k->reduction;
  const kernel_store *s = &k->stores[store];
  nat_type t = nat_type_of((base_dtype)k->values[s->value].dtype);
  scalar_code by = (scalar_code)s->by;
  int64_t results = red->outer * red->inner, n = red->reduced, lanes = lcombine_lanes(red, t);
  uint32_t v[LOOP_COUNT];
  assert(s->by && k->count <= LOOP_COUNT && n > 0);
  for (int64_t i = 0; i < k->count; i++) {
    int64_t outer = i / (n * red->inner), r = i / red->inner % n;
    v[r * results + outer * red->inner + i % red->inner] = stored[i * k->n_stores + store];
  }
  for (int64_t i = lanes; i < n; i += lanes)
    lcombine_some(l, by, t, v, v + i * results, (n - i < lanes ? n - i : lanes) * results);
  for (int64_t valid = n < lanes ? n : lanes, low = 0; valid > 1; valid = low) {
    low = (valid + 1) / 2;
    lcombine_some(l, by, t, v, v + low * results, (valid - low) * results);
  }
  for (int64_t i = 0; i < results; i++) out[i] = init;
  lcombine_some(l, by, t, v, out, results);
  memcpy(out, v, (size_t)results * sizeof *out);
}

/* --- products --- */

/* Those of an operand's dimensions that are in `dims`, or (NULL) in neither list, as they follow each other. */
static void lcombine_dims(loop_extents *to, const ir_type *t, const ir_ints *dims, const ir_ints *batch,
                          const ir_ints *contracting) {
  int64_t stride[IR_MAX_RANK + 1] = {0};
  stride[t->rank] = 1;
  for (uint32_t d = t->rank; d-- > 0;) stride[d] = stride[d + 1] * t->dims[d];
  to->count = 1;
  for (uint32_t i = 0; i < (dims ? dims->n : t->rank); i++) {
    uint32_t d = dims ? (uint32_t)dims->v[i] : i;
    if (!dims && (ir_ints_has(batch, d) || ir_ints_has(contracting, d))) continue;
    to->extent[to->n] = t->dims[d];
    to->stride[to->n++] = stride[d + 1];
    to->count *= t->dims[d];
  }
}

static int64_t lcombine_place(const loop_extents *e, int64_t i) {
  int64_t at = 0;
  for (uint32_t d = e->n; d-- > 0; i /= e->extent[d]) at += i % e->extent[d] * e->stride[d];
  return at;
}

bool cpu_loop_product_of(const ir_op *op, loop_product *out) {
  if (op->opcode != IR_OP_DOT || op->n_operands != 2 || op->type->count < 1) return false;
  const ir_type *a = ir_operand_type(op, 0), *b = ir_operand_type(op, 1);
  const ir_ints *ab = ir_get_ints(op, IR_ATTR_LHS_BATCH_DIMS), *bb = ir_get_ints(op, IR_ATTR_RHS_BATCH_DIMS);
  const ir_ints *ac = ir_get_ints(op, IR_ATTR_LHS_CONTRACTING_DIMS);
  const ir_ints *bc = ir_get_ints(op, IR_ATTR_RHS_CONTRACTING_DIMS);
  nat_type t = nat_type_of((base_dtype)op->type->dtype);
  if (a->dtype != op->type->dtype || b->dtype != op->type->dtype || t.width < 4 || t.kind == NAT_BF16 ||
      t.kind == NAT_F16)
    return false;
  *out = (loop_product){.type = t};
  for (int i = 0; i < 2; i++) {
    const ir_type *type = i ? b : a;
    const ir_ints *batch = i ? bb : ab, *contracting = i ? bc : ac;
    lcombine_dims(&out->of[i].batch, type, batch, batch, contracting);
    lcombine_dims(&out->of[i].terms, type, contracting, batch, contracting);
    lcombine_dims(&out->of[i].own, type, NULL, batch, contracting);
  }
  out->work = op->type->count * out->of[0].terms.count;
  return out->of[0].terms.count > 0;
}

/* Results that are lanes of one: m of them, `step` apart. */
typedef struct lcombine_block {
  const loop_product *p;
  const uint32_t *in[2];
  int64_t first, step;
  unsigned m;
} lcombine_block;

/* Term k of each of them: what they have of operand `which`. */
static void lcombine_term(const lcombine_block *g, unsigned which, int64_t k, uint32_t *to) {
  const loop_product *p = g->p;
  int64_t m = p->of[0].own.count, n = p->of[1].own.count;
  for (unsigned lane = 0; lane < g->m; lane++) {
    int64_t i = g->first + lane * g->step, own = which ? i % n : i / n % m;
    to[lane] = g->in[which][lcombine_place(&p->of[which].batch, i / (m * n)) + lcombine_place(&p->of[which].own, own) +
                            lcombine_place(&p->of[which].terms, k)];
  }
}

/* Terms of a single result from number k on that are multiplied as lanes of one, where they are lanes already. */
static unsigned lcombine_terms(nat_loop *l, const lcombine_block *g, int64_t k, uint32_t *terms) {
  uint32_t x[4], y[4];
  int64_t lanes = 16 / g->p->type.width, left = g->p->of[0].terms.count - k;
  unsigned n = g->m == 1 ? (unsigned)(left < lanes ? left : lanes) : 1;
  if (n == 1) return 0;
  for (unsigned i = 0; i < n; i++) {
    lcombine_term(g, 0, k + i, &x[i]);
    lcombine_term(g, 1, k + i, &y[i]);
  }
  if (nat_loop_pack_cost(l, x, n) + nat_loop_pack_cost(l, y, n) > 0) return 0;
  uint32_t u = nat_loop_pack(l, x, n), v = nat_loop_pack(l, y, n);
  uint32_t all = nat_combine(&l->body, SCALAR_MULTIPLY, g->p->type, u, v);
  for (unsigned i = 0; i < n && !l->body.failed; i++) terms[i] = nat_loop_lane(l, all, i);
  return n;
}

/* Term by term, in their order. */
static void lcombine_products(nat_loop *l, const lcombine_block *g, uint32_t *out) {
  nat_type t = g->p->type;
  uint32_t sum = nat_constant(&l->body, t.width, 0), x[4], y[4];
  for (int64_t k = 0; k < g->p->of[0].terms.count && !l->body.failed;) {
    uint32_t terms[4];
    unsigned n = lcombine_terms(l, g, k, terms);
    for (unsigned i = 0; i < n && !l->body.failed; i++) sum = nat_combine(&l->body, SCALAR_ADD, t, sum, terms[i]);
    k += n ? n : 1;
    if (n || l->body.failed) continue;
    lcombine_term(g, 0, k - 1, x);
    lcombine_term(g, 1, k - 1, y);
    uint32_t u = nat_loop_pack(l, x, g->m), v = nat_loop_pack(l, y, g->m);
    sum = nat_combine(&l->body, SCALAR_ADD, t, sum, nat_combine(&l->body, SCALAR_MULTIPLY, t, u, v));
  }
  for (unsigned lane = 0; lane < g->m && !l->body.failed; lane++)
    out[g->first + lane * g->step] = nat_loop_lane(l, sum, lane);
}

/* What making lanes costs beyond what it saves. */
static int64_t lcombine_cost(nat_loop *l, const lcombine_block *g) {
  int64_t cost = g->m;
  uint32_t x[4], y[4];
  for (int64_t k = 0; k < g->p->of[0].terms.count && !l->body.failed; k++) {
    lcombine_term(g, 0, k, x);
    lcombine_term(g, 1, k, y);
    cost += (int64_t)nat_loop_pack_cost(l, x, g->m) + nat_loop_pack_cost(l, y, g->m) - 2 * ((int64_t)g->m - 1);
  }
  return cost;
}

/* Results of a row are lanes, or those of a column, or each is one by itself: what costs least. */
void cpu_loop_multiply(nat_loop *l, const loop_product *p, const uint32_t *x, const uint32_t *y, uint32_t *out) {
  int64_t rows = p->of[0].batch.count * p->of[0].own.count, n = p->of[1].own.count, lanes = 16 / p->type.width;
  lcombine_block row = {.p = p, .in = {x, y}, .step = 1, .m = (unsigned)(n < lanes ? n : lanes)}, column = row;
  column.step = n, column.m = (unsigned)(rows < lanes ? rows : lanes);
  int64_t by_row = lcombine_cost(l, &row), by_column = lcombine_cost(l, &column);
  bool columns = by_column * row.m < by_row * column.m;
  unsigned most = (columns ? by_column : by_row) < 0 ? columns ? column.m : row.m : 1;
  lcombine_block g = columns ? column : row;
  for (int64_t i = 0; i < (columns ? n : rows); i++)
    for (int64_t j = 0, end = columns ? rows : n; j < end; j += most) {
      g.first = columns ? j * n + i : i * n + j;
      g.m = end - j < most ? (unsigned)(end - j) : most;
      lcombine_products(l, &g, out);
    }
}
