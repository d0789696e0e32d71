/* Kernels as data: indexes, their text, and what must hold of them. */
#include "kernel.h"

static bool kernel_mergeable(const kernel *k, uint32_t d, uint32_t n, kernel_index *const *indexes) {
  for (uint32_t i = 0; i < n; i++)
    if (indexes[i]->strides[d] != indexes[i]->strides[d + 1] * k->extents[d + 1]) return false;
  return true;
}

static void kernel_drop_dim(kernel *k, uint32_t d, uint32_t n, kernel_index *const *indexes) {
  k->rank--;
  for (uint32_t j = d; j < k->rank; j++) k->extents[j] = k->extents[j + 1];
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = d; j < k->rank; j++) indexes[i]->strides[j] = indexes[i]->strides[j + 1];
}

void kernel_collapse(kernel *k, uint32_t n, kernel_index *const *indexes) {
  if (k->count == 0) return;
  for (uint32_t d = k->rank; d-- > 0;)
    if (k->extents[d] == 1) kernel_drop_dim(k, d, n, indexes);
  for (uint32_t d = k->rank; d-- > 1;) {
    if (!kernel_mergeable(k, d - 1, n, indexes)) continue;
    int64_t inner = k->extents[d];
    for (uint32_t i = 0; i < n; i++) indexes[i]->strides[d - 1] = indexes[i]->strides[d];
    kernel_drop_dim(k, d, n, indexes);
    k->extents[d - 1] *= inner;
  }
}

bool kernel_is_dense(const kernel *k, const kernel_index *index) {
  int64_t stride = 1;
  for (uint32_t d = k->rank; d-- > 0;) {
    if (k->extents[d] != 1 && index->strides[d] != stride) return false;
    stride *= k->extents[d];
  }
  return true;
}

bool kernel_is_constant(const kernel *k, const kernel_index *index) {
  for (uint32_t d = 0; d < k->rank; d++)
    if (k->extents[d] != 1 && index->strides[d] != 0) return false;
  return true;
}

enum { KERNEL_PIECE = 1 << 15, KERNEL_MAX_PIECES = 32, KERNEL_LANES = 1024 };

int64_t kernel_pieces(const kernel *k) {
  const kernel_reduction *r = k->reduction;
  if (!r || r->reduced == 0) return 1;
  int64_t busy = r->inner == 1 ? r->outer : r->outer * ((r->inner + KERNEL_LANES - 1) / KERNEL_LANES);
  if (busy >= KERNEL_MAX_PIECES) return 1;
  int64_t pieces = r->reduced * (r->inner < KERNEL_LANES ? r->inner : KERNEL_LANES) / KERNEL_PIECE;
  if (pieces > KERNEL_MAX_PIECES) pieces = KERNEL_MAX_PIECES;
  if (pieces > r->reduced) pieces = r->reduced;
  return pieces < 1 ? 1 : pieces;
}

int64_t kernel_scratch_bytes(const kernel *k) {
  int64_t pieces = kernel_pieces(k);
  if (pieces == 1) return 0;
  /* narrow floats are summed in f32 */
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)k->values[k->stores[0].value].dtype);
  return pieces * k->reduction->outer * k->reduction->inner * (bytes < 4 ? 4 : bytes);
}

static void kernel_put_index(base_text *out, const kernel *k, const kernel_index *index) {
  base_putf(out, "[%lld", (long long)index->offset);
  for (uint32_t d = 0; d < k->rank; d++)
    if (index->strides[d]) base_putf(out, " + %lld*i%u", (long long)index->strides[d], d);
  BASE_PUT(out, "]");
}

static void kernel_put_value(base_text *out, const kernel *k, uint32_t i) {
  const kernel_value *v = &k->values[i];
  base_putf(out, "v%u %s = ", i, base_dtype_table[v->dtype].text);
  switch ((kernel_kind)v->kind) {
    case KERNEL_LOAD:
      base_putf(out, "load in%u ", v->buffer);
      kernel_put_index(out, k, v->index);
      break;
    case KERNEL_COUNT_UP:
      BASE_PUT(out, "index ");
      kernel_put_index(out, k, v->index);
      break;
    case KERNEL_CONSTANT: {
      bool pair = base_dtype_of((base_dtype)v->dtype)->kind == BASE_KIND_COMPLEX;
      base_putf(out, "constant %g%s", base_load_f64((base_dtype)v->dtype, v->data), pair ? " and i times some" : "");
      break;
    }
    case KERNEL_OP:
      base_putf(out, "%s", ir_opcode_text(v->op->opcode));
      for (uint32_t j = 0; j < v->n_in; j++) base_putf(out, "%s v%u", j ? "," : "", v->in[j]);
      break;
  }
  BASE_PUT(out, "\n");
}

void kernel_put(base_text *out, const kernel *k) {
  BASE_PUT(out, "kernel [");
  for (uint32_t d = 0; d < k->rank; d++) base_putf(out, "%s%lld", d ? "," : "", (long long)k->extents[d]);
  base_putf(out, "] from %u input%s\n", k->n_inputs, k->n_inputs == 1 ? "" : "s");
  for (uint32_t i = 0; i < k->n_values; i++) kernel_put_value(out, k, i);
  if (k->reduction)
    base_putf(out, "reduce v%u by %s from v%u over [%lld, (%lld), %lld]\n", k->stores[0].value,
              ir_opcode_text(k->reduction->body->opcode), k->reduction->init, (long long)k->reduction->outer,
              (long long)k->reduction->reduced, (long long)k->reduction->inner);
  for (uint32_t i = 0; i < k->n_stores; i++) {
    base_putf(out, "store out%u ", k->stores[i].buffer);
    kernel_put_index(out, k, &k->stores[i].index);
    base_putf(out, " v%u\n", k->stores[i].value);
  }
}

static int kernel_verify_value(const kernel *k, uint32_t i, xlac_error *err) {
  const kernel_value *v = &k->values[i];
  interp_loop l;
  if (v->dtype == BASE_DTYPE_INVALID || v->dtype >= BASE_DTYPE_COUNT)
    return base_fail(err, XLAC_E_INTERNAL, "kernel value v%u has no element type", i);
  if (v->kind == KERNEL_LOAD && (v->buffer >= k->n_inputs || !v->index))
    return base_fail(err, XLAC_E_INTERNAL, "kernel value v%u loads from input %u of %u", i, v->buffer, k->n_inputs);
  if (v->kind != KERNEL_OP) return 0;
  if (!v->op || !interp_loop_of(v->op, &l) || l.n_in != v->n_in || l.out != v->dtype)
    return base_fail(err, XLAC_E_INTERNAL, "kernel value v%u has no loop of its type", i);
  for (uint32_t j = 0; j < v->n_in; j++)
    if (v->in[j] >= i || k->values[v->in[j]].dtype != l.in[j])
      return base_fail(err, XLAC_E_INTERNAL, "kernel value v%u uses v%u, which is none of its type before it", i,
                       v->in[j]);
  return 0;
}

int kernel_verify(const kernel *k, xlac_error *err) {
  int64_t count = 1;
  if (k->rank > KERNEL_MAX_RANK || k->n_stores == 0 || k->n_stores > KERNEL_MAX_STORES)
    return base_fail(err, XLAC_E_INTERNAL, "a kernel of rank %u with %u stores", k->rank, k->n_stores);
  for (uint32_t d = 0; d < k->rank; d++)
    if (k->extents[d] < 0 || !base_mul_i64(count, k->extents[d], &count))
      return base_fail(err, XLAC_E_INTERNAL, "a kernel's extent %u is %lld", d, (long long)k->extents[d]);
  if (count != k->count) return base_fail(err, XLAC_E_INTERNAL, "a kernel's count is not that of its extents");
  for (uint32_t i = 0; i < k->n_values; i++) TRY(kernel_verify_value(k, i, err));
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (k->stores[i].value >= k->n_values)
      return base_fail(err, XLAC_E_INTERNAL, "store %u of a kernel has no value", i);
  const kernel_reduction *r = k->reduction;
  if (r && (r->init >= k->n_values || r->outer * r->reduced * r->inner != k->count))
    return base_fail(err, XLAC_E_INTERNAL, "a kernel's reduction does not cover its iterations");
  return 0;
}
