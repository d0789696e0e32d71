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

/* n values, which it changes, and the initial one. */
static uint32_t lcombine_all(nat_body *b, scalar_code by, nat_type t, uint32_t *v, int64_t n, int64_t lanes,
                             uint32_t init) {
  for (int64_t i = lanes; i < n; i++) v[i % lanes] = nat_combine(b, by, t, v[i % lanes], v[i]);
  for (int64_t valid = n < lanes ? n : lanes, low = 0; valid > 1; valid = low) {
    low = (valid + 1) / 2;
    for (int64_t j = 0; j < valid - low; j++) v[j] = nat_combine(b, by, t, v[j], v[low + j]);
  }
  return nat_combine(b, by, t, v[0], init);
}

void cpu_loop_combine(nat_body *b, const kernel *k, uint32_t store, const uint32_t *stored, uint32_t init,
                      uint32_t *out) {
  const kernel_reduction *red = k->reduction;
  const kernel_store *s = &k->stores[store];
  nat_type t = nat_type_of((base_dtype)k->values[s->value].dtype);
  uint32_t values[LOOP_COUNT];
  assert(s->by && k->count <= LOOP_COUNT && red->reduced > 0);
  for (int64_t i = 0; i < red->outer * red->inner; i++) {
    int64_t first = i / red->inner * red->reduced * red->inner + i % red->inner;
    for (int64_t r = 0; r < red->reduced; r++) values[r] = stored[(first + r * red->inner) * k->n_stores + store];
    out[i] = lcombine_all(b, s->by, t, values, red->reduced, lcombine_lanes(red, t), init);
  }
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
    bool listed = false;
    for (uint32_t j = 0; !dims && j < batch->n; j++) listed |= batch->v[j] == d;
    for (uint32_t j = 0; !dims && j < contracting->n; j++) listed |= contracting->v[j] == d;
    if (listed) continue;
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

void cpu_loop_multiply(nat_body *b, const loop_product *p, const uint32_t *x, const uint32_t *y, uint32_t *out) {
  int64_t m = p->of[0].own.count, n = p->of[1].own.count, all = p->of[0].batch.count * m * n;
  for (int64_t i = 0; i < all; i++) {
    int64_t batch = i / (m * n),
            left = lcombine_place(&p->of[0].batch, batch) + lcombine_place(&p->of[0].own, i / n % m);
    int64_t right = lcombine_place(&p->of[1].batch, batch) + lcombine_place(&p->of[1].own, i % n);
    out[i] = nat_constant(b, p->type.width, 0);
    for (int64_t k = 0; k < p->of[0].terms.count && !b->failed; k++) {
      uint32_t u = x[left + lcombine_place(&p->of[0].terms, k)], v = y[right + lcombine_place(&p->of[1].terms, k)];
      out[i] = nat_combine(b, SCALAR_ADD, p->type, out[i], nat_combine(b, SCALAR_MULTIPLY, p->type, u, v));
    }
  }
}
