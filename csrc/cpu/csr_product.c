/* The custom call cpu_csr_sparse_dense_ffi, as jaxlib has it: a sparse matrix in compressed rows times a dense matrix
 * or vector. Operands: the values, where each row begins among them (rows + 1 numbers), the column of each, and the
 * dense one. */
#include <complex.h>
#include <stdatomic.h>

#include "../base/status.h"
#include "../include/xlac_ffi.h"
#include "own_calls.h"

/* One call. Rows are independent, and are shared between threads; starts[i] .. starts[i + 1] are row i's values. */
typedef struct csr_job {
  const xlac_ffi_buffer *values, *starts, *columns, *dense, *result;
  int64_t n; /* columns of the dense matrix */
} csr_job;

/* Element i of a list of s32 or s64 numbers. */
static int64_t csr_index(const xlac_ffi_buffer *b, int64_t i) {
  return b->dtype == XLAC_FFI_S32 ? ((const int32_t *)b->data)[i] : ((const int64_t *)b->data)[i];
}

/* All columns of one row together: the dense matrix is read by rows. Integers wrap. */
#define CSR_ROWS(name, type)                                                       \
  static void csr_rows_##name(const csr_job *j, uint64_t begin, uint64_t end) {    \
    const type *values = j->values->data, *dense = j->dense->data;                 \
    for (uint64_t row = begin; row < end; row++) {                                 \
      type *out = (type *)j->result->data + (int64_t)row * j->n;                   \
      for (int64_t c = 0; c < j->n; c++) out[c] = 0;                               \
      int64_t last = csr_index(j->starts, (int64_t)row + 1);                       \
      for (int64_t i = csr_index(j->starts, (int64_t)row); i < last; i++) {        \
        const type v = values[i], *from = dense + csr_index(j->columns, i) * j->n; \
        for (int64_t c = 0; c < j->n; c++) out[c] += v * from[c];                  \
      }                                                                            \
    }                                                                              \
  }
CSR_ROWS(f32, float)
CSR_ROWS(f64, double)
CSR_ROWS(c64, float complex)
CSR_ROWS(c128, double complex)
CSR_ROWS(s32, uint32_t)
CSR_ROWS(s64, uint64_t)
#undef CSR_ROWS

/* Rows begin .. end of the product, for one element type. */
typedef void csr_rows_fn(const csr_job *j, uint64_t begin, uint64_t end);

/* NULL: there is no such product. Signed integers go by the unsigned loops, which have the same bits. */
static csr_rows_fn *csr_rows_of(uint32_t dtype) {
  static const struct {
    uint32_t dtype;
    csr_rows_fn *fn;
  } table[] = {{XLAC_FFI_F32, csr_rows_f32},   {XLAC_FFI_F64, csr_rows_f64}, {XLAC_FFI_C64, csr_rows_c64},
               {XLAC_FFI_C128, csr_rows_c128}, {XLAC_FFI_S32, csr_rows_s32}, {XLAC_FFI_S64, csr_rows_s64}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].dtype == dtype) return table[i].fn;
  return NULL;
}

/* For parallel_for. */
static void csr_range(void *ctx, uint64_t begin, uint64_t end) {
  assert(begin <= end && csr_rows_of(((const csr_job *)ctx)->values->dtype));
  const csr_job *j = ctx;
  csr_rows_of(j->values->dtype)(j, begin, end);
}

/* Everything that can be said from types and layouts alone. */
static int csr_check_shapes(xlac_ffi_frame *f) {
  if (f->n_operands != 4 || f->n_results != 1) return f->fail(f, "%s takes 4 operands and gives 1 result", f->target);
  const xlac_ffi_buffer *v = &f->operands[0], *s = &f->operands[1], *c = &f->operands[2], *d = &f->operands[3];
  const xlac_ffi_buffer *r = &f->results[0];
  bool lists = v->rank == 1 && s->rank == 1 && c->rank == 1 && v->dims[0] == c->dims[0] && s->dims[0] >= 1;
  bool dense = (d->rank == 1 || d->rank == 2) && r->rank == d->rank && (d->rank == 1 || r->dims[1] == d->dims[1]);
  if (!lists || !dense || r->dims[0] != s->dims[0] - 1)
    return f->fail(f,
                   "%s takes values [e], row starts [m + 1], columns [e] and a dense [k] or [k, n], for [m] or [m, n]",
                   f->target);
  if (!csr_rows_of(v->dtype) || d->dtype != v->dtype || r->dtype != v->dtype)
    return f->fail(f, "%s is for one type of f32, f64, c64, c128, s32 and s64", f->target);
  if (s->dtype != c->dtype || (s->dtype != XLAC_FFI_S32 && s->dtype != XLAC_FFI_S64))
    return f->fail(f, "the row starts and columns of %s are both s32 or both s64", f->target);
  if (d->rank == 2 && (d->minor_to_major[0] != 1 || r->minor_to_major[0] != 1))
    return f->fail(f, "the matrices of %s are not row-major", f->target);
  return 0;
}

/* Numbers that would lead outside are an error here; jaxlib reads what is there. */
static int csr_check_indices(xlac_ffi_frame *f, const csr_job *j) {
  assert(j->starts->dims[0] == j->result->dims[0] + 1 && "csr_check_shapes has seen it");
  int64_t n = j->values->dims[0], rows = j->result->dims[0], at = csr_index(j->starts, 0);
  if (at < 0) return f->fail(f, "row 0 begins at %lld", (long long)at);
  for (int64_t i = 0; i < rows; i++) {
    int64_t next = csr_index(j->starts, i + 1);
    if (next < at || next > n)
      return f->fail(f, "row %lld is from %lld to %lld of %lld values", (long long)i, (long long)at, (long long)next,
                     (long long)n);
    at = next;
  }
  for (int64_t i = csr_index(j->starts, 0); i < at; i++) {
    int64_t column = csr_index(j->columns, i);
    if (column < 0 || column >= j->dense->dims[0])
      return f->fail(f, "value %lld is in column %lld of %lld", (long long)i, (long long)column,
                     (long long)j->dense->dims[0]);
  }
  return 0;
}

int cpu_own_csr_product(xlac_ffi_frame *f) {
  TRY(csr_check_shapes(f));
  csr_job j = {&f->operands[0], &f->operands[1], &f->operands[2], &f->operands[3], &f->results[0], 1};
  if (j.dense->rank == 2) j.n = j.dense->dims[1];
  TRY(csr_check_indices(f, &j));
  int64_t rows = j.result->dims[0];
  if (j.result->count == 0) return 0;
  int64_t each = (1 + j.values->dims[0] / rows) * j.n;
  f->parallel_for(f, (uint64_t)rows, (uint64_t)(1 + (1 << 14) / each), csr_range, &j);
  return 0;
}
