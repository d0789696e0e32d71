/* cuBLASLt's entry points: products of matrices on the host, a term after the other, as the reference interpreter adds
 * them. Matrices lie by columns. What is read and written is checked as any other access, the workspace, too. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

enum { TYPE_F32 = 0, TYPE_F64 = 1, TYPE_F16 = 2, TYPE_S8 = 3, TYPE_S32 = 10, TYPE_BF16 = 14 };
enum { COMPUTE_F32 = 68, COMPUTE_F64 = 70, COMPUTE_S32 = 72, COMPUTE_TF32 = 77 };
enum { BLAS_SUCCESS = 0, BLAS_INVALID = 7, BLAS_UNSUPPORTED = 15, WORKSPACE = 512 };
enum { OBJECT_MATMUL = 1, OBJECT_LAYOUT, OBJECT_PREFERENCE };

typedef struct blas_object {
  int kind, compute, scale, type;
  int32_t transposed[2], batch;
  uint64_t rows, columns, workspace;
  int64_t leading, stride;
  uint32_t alignment[4];
} blas_object;

typedef struct blas_choice {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} blas_choice;

typedef struct product_work {
  sim_work work;
  blas_object matmul, layouts[3];
  address at[3], workspace;
  double alpha;
} product_work;

static blas_object *new_object(int kind) {
  blas_object *o = calloc(1, sizeof *o);
  o->kind = kind;
  o->batch = 1;
  return o;
}

static int drop(blas_object *o, int kind) {
  if (o == NULL || o->kind != kind) return BLAS_INVALID;
  o->kind = 0;
  free(o);
  return BLAS_SUCCESS;
}

EXPORT int cublasLtCreate(void **handle) {
  ENTER_DEVICE(cublasLtCreate, NULL);
  *handle = calloc(1, 1);
  return BLAS_SUCCESS;
}

EXPORT int cublasLtDestroy(void *handle) {
  free(handle);
  return BLAS_SUCCESS;
}

EXPORT int cublasLtMatmulDescCreate(blas_object **out, int compute, int scale) {
  ENTER(cublasLtMatmulDescCreate);
  *out = new_object(OBJECT_MATMUL);
  (*out)->compute = compute;
  (*out)->scale = scale;
  return BLAS_SUCCESS;
}

EXPORT int cublasLtMatmulDescDestroy(blas_object *o) {
  return drop(o, OBJECT_MATMUL);
}

EXPORT int cublasLtMatmulDescSetAttribute(blas_object *o, int attribute, const void *value, size_t bytes) {
  ENTER(cublasLtMatmulDescSetAttribute);
  if (o == NULL || o->kind != OBJECT_MATMUL || bytes != sizeof(int32_t) || attribute < 3 || attribute > 4)
    return BLAS_INVALID;
  memcpy(&o->transposed[attribute - 3], value, bytes);
  return BLAS_SUCCESS;
}

EXPORT int cublasLtMatrixLayoutCreate(blas_object **out, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  ENTER(cublasLtMatrixLayoutCreate);
  *out = new_object(OBJECT_LAYOUT);
  (*out)->type = type;
  (*out)->rows = rows;
  (*out)->columns = columns;
  (*out)->leading = leading;
  return BLAS_SUCCESS;
}

EXPORT int cublasLtMatrixLayoutDestroy(blas_object *o) {
  return drop(o, OBJECT_LAYOUT);
}

EXPORT int cublasLtMatrixLayoutSetAttribute(blas_object *o, int attribute, const void *value, size_t bytes) {
  ENTER(cublasLtMatrixLayoutSetAttribute);
  if (o == NULL || o->kind != OBJECT_LAYOUT) return BLAS_INVALID;
  if (attribute == 5 && bytes == sizeof o->batch) return memcpy(&o->batch, value, bytes), BLAS_SUCCESS;
  if (attribute == 6 && bytes == sizeof o->stride) return memcpy(&o->stride, value, bytes), BLAS_SUCCESS;
  return BLAS_INVALID;
}

EXPORT int cublasLtMatmulPreferenceCreate(blas_object **out) {
  ENTER(cublasLtMatmulPreferenceCreate);
  *out = new_object(OBJECT_PREFERENCE);
  for (int i = 0; i < 4; i++) (*out)->alignment[i] = 256;
  return BLAS_SUCCESS;
}

EXPORT int cublasLtMatmulPreferenceDestroy(blas_object *o) {
  return drop(o, OBJECT_PREFERENCE);
}

EXPORT int cublasLtMatmulPreferenceSetAttribute(blas_object *o, int attribute, const void *value, size_t bytes) {
  ENTER(cublasLtMatmulPreferenceSetAttribute);
  if (o == NULL || o->kind != OBJECT_PREFERENCE) return BLAS_INVALID;
  if (attribute == 1 && bytes == sizeof o->workspace) return memcpy(&o->workspace, value, bytes), BLAS_SUCCESS;
  if (attribute < 5 || attribute > 8 || bytes != sizeof(uint32_t)) return BLAS_INVALID;
  memcpy(&o->alignment[attribute - 5], value, bytes);
  return BLAS_SUCCESS;
}

/* ---- what fits together ---- */

static size_t bytes_of(int type) {
  return type == TYPE_F64 ? 8 : type == TYPE_F32 || type == TYPE_S32 ? 4 : type == TYPE_S8 ? 1 : 2;
}

static bool is_type(int type) {
  return type == TYPE_F32 || type == TYPE_F64 || type == TYPE_F16 || type == TYPE_S8 || type == TYPE_S32 ||
         type == TYPE_BF16;
}

static bool is_layout(const blas_object *o) {
  return o != NULL && o->kind == OBJECT_LAYOUT && is_type(o->type) && o->rows > 0 && o->columns > 0 && o->batch > 0 &&
         o->leading >= (int64_t)o->rows;
}

static uint64_t rows_of(const blas_object *o, bool transposed) {
  return transposed ? o->columns : o->rows;
}

/* What the documentation of cublasLtMatmul says of its kernels on s8 with plain matrices: the left one is transposed,
 * the other one is not, and rows, terms and strides are multiples of 4. */
static bool fits_s8(const blas_object *m, const blas_object *a, const blas_object *b, const blas_object *c) {
  int64_t all = (int64_t)c->rows | (int64_t)a->rows | a->leading | b->leading | c->leading | a->stride | b->stride;
  return m->transposed[0] && !m->transposed[1] && all % 4 == 0 && c->type == TYPE_S32 && m->scale == TYPE_S32 &&
         m->compute == COMPUTE_S32;
}

static bool fits(const blas_object *m, const blas_object *a, const blas_object *b, const blas_object *c) {
  if (m == NULL || m->kind != OBJECT_MATMUL || !is_layout(a) || !is_layout(b) || !is_layout(c)) return false;
  bool ta = m->transposed[0], tb = m->transposed[1], wide = a->type == TYPE_F64;
  if (rows_of(a, ta) != c->rows || rows_of(b, !tb) != c->columns || rows_of(a, !ta) != rows_of(b, tb)) return false;
  if (a->batch != c->batch || b->batch != c->batch || a->type != b->type) return false;
  if (a->type == TYPE_S8) return fits_s8(m, a, b, c);
  if (a->type == TYPE_S32) return false;
  if (c->type != a->type && (c->type != TYPE_F32 || wide)) return false;
  if (m->compute == COMPUTE_F64) return wide && m->scale == TYPE_F64;
  if (m->compute == COMPUTE_TF32 && a->type != TYPE_F32) return false;
  return !wide && m->scale == TYPE_F32 && (m->compute == COMPUTE_F32 || m->compute == COMPUTE_TF32);
}

EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, const blas_object *m, const blas_object *a,
                                          const blas_object *b, const blas_object *c, const blas_object *d,
                                          const blas_object *preference, int wanted, blas_choice *out, int *n) {
  ENTER_DEVICE(cublasLtMatmulAlgoGetHeuristic, NULL);
  *n = 0;
  if (handle == NULL || c != d || wanted < 1 || preference == NULL || preference->kind != OBJECT_PREFERENCE)
    return BLAS_INVALID;
  if (!fits(m, a, b, c)) return BLAS_UNSUPPORTED;
  *out = (blas_choice){.workspace = preference->workspace >= WORKSPACE ? WORKSPACE : 0};
  for (int i = 0; i < 4; i++) out->algorithm[i] = preference->alignment[i];
  *n = 1;
  return BLAS_SUCCESS;
}

/* ---- products ---- */

static double load(int type, address at) {
  uint16_t half;
  uint32_t bits;
  float f;
  double d;
  switch (type) {
    case TYPE_S8:
      return (double)*(const int8_t *)(uintptr_t)at;
    case TYPE_F64:
      memcpy(&d, (const void *)(uintptr_t)at, sizeof d);
      return d;
    case TYPE_F32:
      memcpy(&f, (const void *)(uintptr_t)at, sizeof f);
      return (double)f;
    case TYPE_BF16:
      memcpy(&half, (const void *)(uintptr_t)at, sizeof half);
      bits = (uint32_t)half << 16;
      memcpy(&f, &bits, sizeof f);
      return (double)f;
    default: {
      _Float16 h;
      memcpy(&h, (const void *)(uintptr_t)at, sizeof h);
      return (double)h;
    }
  }
}

static uint16_t to_bf16(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if (f != f) return (uint16_t)(bits >> 16 | 64);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void store(int type, address at, double value) {
  void *to = (void *)(uintptr_t)at;
  float f = (float)value;
  _Float16 h = (_Float16)f;
  uint16_t b = to_bf16(f);
  int32_t n = type == TYPE_S32 ? (int32_t)value : 0;
  memcpy(to,
         type == TYPE_F64   ? (void *)&value
         : type == TYPE_S32 ? (void *)&n
         : type == TYPE_F32 ? (void *)&f
         : type == TYPE_F16 ? (void *)&h
                            : &b,
         bytes_of(type));
}

static address place(const blas_object *o, address at, int64_t batch, uint64_t row, uint64_t column) {
  return at + ((uint64_t)(batch * o->stride) + column * (uint64_t)o->leading + row) * bytes_of(o->type);
}

/* Columns of all matrices of one side. */
static int check_side(const blas_object *o, address at, access_kind kind) {
  int result = SUCCESS;
  for (int32_t i = 0; i < o->batch; i++)
    for (uint64_t j = 0; j < o->columns && result == SUCCESS; j++)
      result = shadow_range(place(o, at, i, 0, j), o->rows * bytes_of(o->type), kind);
  return result;
}

/* In f32, or f64, each product and each sum rounded; f64 has all sums of s8. */
static double term_sum(const product_work *w, int32_t batch, uint64_t row, uint64_t column) {
  const blas_object *a = &w->layouts[0], *b = &w->layouts[1];
  bool ta = w->matmul.transposed[0], tb = w->matmul.transposed[1];
  double sum = 0;
  for (uint64_t k = 0; k < rows_of(a, !ta); k++) {
    double x = load(a->type, place(a, w->at[0], batch, ta ? k : row, ta ? row : k)),
           y = load(b->type, place(b, w->at[1], batch, tb ? column : k, tb ? k : column));
    sum = a->type == TYPE_F64 || a->type == TYPE_S8 ? sum + x * y : (double)((float)sum + (float)x * (float)y);
  }
  return sum;
}

static int run_product(sim_work *work) {
  const product_work *w = (const product_work *)work;
  const blas_object *c = &w->layouts[2];
  touch.op = work->op;
  touch.kernel = NULL;
  touch.acquired = NULL;
  touch.mark = (sim_mark){.op = work->op->id};
  int result = check_side(&w->layouts[0], w->at[0], ACCESS_READ);
  if (result == SUCCESS) result = check_side(&w->layouts[1], w->at[1], ACCESS_READ);
  if (result == SUCCESS && w->workspace != 0) result = shadow_range(w->workspace, WORKSPACE, ACCESS_WRITE);
  if (result == SUCCESS) result = check_side(c, w->at[2], ACCESS_WRITE);
  if (result != SUCCESS) return result;
  if (w->workspace != 0) memset((void *)(uintptr_t)w->workspace, 0x5a, WORKSPACE);
  for (int32_t i = 0; i < c->batch; i++)
    for (uint64_t column = 0; column < c->columns; column++)
      for (uint64_t row = 0; row < c->rows; row++)
        store(c->type, place(c, w->at[2], i, row, column), w->alpha * term_sum(w, i, row, column));
  return SUCCESS;
}

static double scalar(int type, const void *at) {
  return type == TYPE_F64   ? *(const double *)at
         : type == TYPE_S32 ? (double)*(const int32_t *)at
                            : (double)*(const float *)at;
}

EXPORT int cublasLtMatmul(void *handle, const blas_object *m, const void *alpha, address a, const blas_object *a_layout,
                          address b, const blas_object *b_layout, const void *beta, address c,
                          const blas_object *c_layout, address d, const blas_object *d_layout,
                          const uint64_t *algorithm, address workspace, size_t workspace_bytes, void *stream) {
  ENTER_DEVICE(cublasLtMatmul, NULL);
  const address at[3] = {a, b, d};
  if (handle == NULL || !fits(m, a_layout, b_layout, c_layout) || c_layout != d_layout || c != d) return BLAS_INVALID;
  if (scalar(m->scale, beta) != 0) return BLAS_UNSUPPORTED;
  if (workspace % 256 != 0) return BLAS_INVALID; /* also where it isn't used */
  if (workspace_bytes != 0 && (workspace_bytes != WORKSPACE || workspace == 0)) return BLAS_INVALID;
  for (int i = 0; i < 3; i++)
    if (at[i] % algorithm[i] != 0)
      return report(MISALIGNED_ADDRESS, "a matrix at 0x%llx, which the choice took to be aligned to %llu bytes",
                    (unsigned long long)at[i], (unsigned long long)algorithm[i]);
  pthread_mutex_lock(&sim.lock);
  sim_stream *s = stream_find(stream);
  int result = INVALID_HANDLE;
  if (s != NULL) {
    product_work *w = calloc(1, sizeof *w);
    *w = (product_work){.work = {.execute = run_product},
                        .matmul = *m,
                        .layouts = {*a_layout, *b_layout, *d_layout},
                        .at = {a, b, d},
                        .workspace = workspace_bytes != 0 ? workspace : 0,
                        .alpha = scalar(m->scale, alpha)};
    result = stream_enqueue(s, &w->work, "product", "");
  }
  pthread_mutex_unlock(&sim.lock);
  return result;
}
