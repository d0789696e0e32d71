/* Prints device lists of the form "iota, reshaped, transposed, reshaped": "<=[2,4]T(1,0)". The same list can be written
 * in many ways; XLA keeps the shortest, with dimensions of size one dropped and those that stay neighbours merged. */
#include "print.h"

typedef struct iota_form {
  uint32_t n;
  int64_t dims[IR_MAX_RANK];
  int64_t perm[IR_MAX_RANK]; /* perm[i]: which of dims stands at place i */
} iota_form;

/* Drops dimension d of f->dims, and its place. */
static void drop_iota_dim(iota_form *f, int64_t d) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < f->n; i++) {
    if (f->perm[i] == d) continue;
    f->perm[n++] = f->perm[i] - (f->perm[i] > d);
  }
  assert(n + 1 == f->n);
  for (uint32_t i = (uint32_t)d; i + 1 < f->n; i++) f->dims[i] = f->dims[i + 1];
  f->n = n;
}

static void drop_unit_dims(iota_form *f) {
  for (uint32_t d = f->n; d-- > 0;) {
    if (f->dims[d] == 1 && f->n > 1) drop_iota_dim(f, d);
  }
}

static void merge_neighbours(iota_form *f) {
  assert(f->n >= 1 && f->n <= IR_MAX_RANK);
  for (uint32_t i = 0; i + 1 < f->n;) {
    int64_t d = f->perm[i], product;
    if (f->perm[i + 1] != d + 1 || !base_mul_i64(f->dims[d], f->dims[d + 1], &product)) {
      i++;
      continue;
    }
    f->dims[d] = product;
    drop_iota_dim(f, d + 1);
  }
}

static bool is_permutation(const int64_t *perm, uint32_t n) {
  uint64_t seen = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (perm[i] < 0 || perm[i] >= n || (seen >> perm[i] & 1)) return false;
    seen |= (uint64_t)1 << perm[i];
  }
  return true;
}

static void put_iota_form(base_text *out, const int64_t *dims, const int64_t *perm, uint32_t n) {
  base_putc(out, '[');
  text_put_ints(out, dims, n);
  base_putc(out, ']');
  if (n < 2 || !perm) return;
  BASE_PUT(out, "T(");
  text_put_ints(out, perm, n);
  base_putc(out, ')');
}

uint32_t text_put_iota_dims(base_text *out, const int64_t *dims, const int64_t *perm, uint32_t n) {
  iota_form f = {.n = n};
  if (n == 0 || n > IR_MAX_RANK || (perm && !is_permutation(perm, n))) {
    put_iota_form(out, dims, perm, n); /* as written: the verifier will refuse it */
    return n;
  }
  for (uint32_t i = 0; i < n; i++) {
    f.dims[i] = dims[i];
    f.perm[i] = perm ? perm[i] : i;
  }
  drop_unit_dims(&f);
  merge_neighbours(&f);
  put_iota_form(out, f.dims, f.perm, f.n);
  return f.n;
}

void text_put_iota(base_text *out, const int64_t *dims, const int64_t *perm, uint32_t n) {
  BASE_PUT(out, "<=");
  (void)text_put_iota_dims(out, dims, perm, n);
}
