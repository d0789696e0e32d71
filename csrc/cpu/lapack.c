/* LAPACK's routines as native custom calls. What they share, batches, scratch memory, checks, is here; what tells them
 * apart is in lapack_table.h. Matrices come column-major, as LAPACK has them and as JAX's layouts ask for. */
#include "lapack.h"

#include <math.h>

#include "factor.h"
#include "lapack_table.h"

enum { LAPACK_MAX_ARGS = 20, LAPACK_PIECE_WORK = 1 << 18 };

/* Fortran passes pointers, and after them the lengths of the character arguments. All routines are called as one with
 * the most arguments: surplus ones are not looked at. */
typedef void lapack_fn(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                       void *, void *, void *, void *, void *, void *, void *, void *);

typedef struct lapack_job {
  xlac_ffi_frame *frame;
  const lapack_routine *routine;
  lapack_fn *fn;
  bool is_complex, is_double;
  int64_t batch, m, n, k;
  int32_t low, high;
  char letters[128]; /* by letter of args: the character of an attribute */
  size_t element;    /* bytes */
  const xlac_ffi_buffer *slots[LAPACK_SLOTS];
  int64_t items[LAPACK_SLOTS]; /* bytes of one item */
  int32_t ld[LAPACK_SLOTS];
  int32_t lwork, lrwork, liwork;
  bool failed; /* out of memory */
} lapack_job;

/* One thread's memory. */
typedef struct lapack_work {
  char *work, *rwork, *iwork, *bwork, *copy, *left, *right;
} lapack_work;

/* --- checks --- */

/* Dimensions from the fastest on: rows, columns, then the batch's from the last to the first. Those of extent 1 may be
 * anywhere. */
static bool lapack_is_column_major(const xlac_ffi_buffer *b) {
  int64_t last = (int64_t)b->rank - 1, at = 0;
  if (b->rank < 2 || b->count <= 1) return true;
  for (uint32_t i = 0; i < b->rank; i++) {
    int64_t d = b->minor_to_major[i], expected = 0;
    if (b->dims[d] == 1) continue;
    do {
      expected = at == 0 ? last - 1 : at == 1 ? last : last - at;
      at++;
    } while (b->dims[expected] == 1);
    if (d != expected) return false;
  }
  return true;
}

static int64_t lapack_min(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Rows and columns of a slot's item; columns are 1 for vectors. */
static void lapack_shape_of(const lapack_job *j, char shape, int64_t *rows, int64_t *columns) {
  int64_t least = lapack_min(j->m, j->n), order = j->letters['S'] == 'L' ? j->m : j->n;
  *columns = 1;
  switch (shape) {
    case 'M':
    case 'Q':
      *rows = j->m, *columns = j->n;
      return;
    case 'u':
      *rows = j->m, *columns = j->letters['J'] == 'S' ? least : j->m;
      return;
    case 'v':
      *rows = j->letters['J'] == 'S' ? least : j->n, *columns = j->n;
      return;
    case 's':
      *rows = *columns = order;
      return;
    case 'q':
      *rows = j->letters['X'] == 'L' ? j->m : j->n, *columns = j->k;
      return;
    default:
      *rows = shape == 'x' ? least : shape == 'm' ? j->m : shape == 'n' ? j->n : shape == 'k' ? j->k : 1;
      if (shape == 'e') *rows = j->n > 0 ? j->n - 1 : 0;
  }
}

static uint32_t lapack_dtype_of(const lapack_job *j, char type) {
  if (type == 'i') return XLAC_FFI_S32;
  bool complex_ = type == 'c' || (type == 't' && j->is_complex);
  if (complex_) return j->is_double ? XLAC_FFI_C128 : XLAC_FFI_C64;
  return j->is_double ? XLAC_FFI_F64 : XLAC_FFI_F32;
}

/* Whether b is a batch of arrays of that shape and type. ormqr takes matrices with columns to spare. */
static bool lapack_fits(const lapack_job *j, const lapack_slot *s, const xlac_ffi_buffer *b) {
  int64_t rows = 0, columns = 0;
  bool matrix = strchr("MQuvsq", s->shape) != NULL;
  uint32_t rank = j->slots[j->routine->main]->rank - 2 + (matrix ? 2 : s->shape != '1');
  lapack_shape_of(j, s->shape, &rows, &columns);
  if (b->dtype != lapack_dtype_of(j, s->type) || b->rank != rank) return false;
  for (uint32_t d = 0; d + 2 < j->slots[j->routine->main]->rank; d++)
    if (b->dims[d] != j->slots[j->routine->main]->dims[d]) return false;
  if (j->letters['J'] == 'N' && (s->shape == 'u' || s->shape == 'v')) return true; /* not looked at */
  if (!matrix) return s->shape == '1' || b->dims[rank - 1] == rows;
  if (b->dims[rank - 2] != rows || (s->shape == 'q' ? b->dims[rank - 1] < columns : b->dims[rank - 1] != columns))
    return false;
  return lapack_is_column_major(b);
}

static int lapack_misfit(const lapack_job *j, const char *what, int number) {
  return j->frame->fail(j->frame, "%s %d is not what LAPACK's %s takes here: shape, type or column-major layout", what,
                        number, j->routine->name);
}

static int lapack_check_slot(lapack_job *j, int i) {
  const lapack_slot *s = &j->routine->slots[i];
  const xlac_ffi_frame *f = j->frame;
  if (s->operand >= 0 && !lapack_fits(j, s, &f->operands[s->operand])) return lapack_misfit(j, "operand", s->operand);
  if (s->result >= 0 && !lapack_fits(j, s, &f->results[s->result])) return lapack_misfit(j, "result", s->result);
  j->slots[i] = s->result >= 0 ? &f->results[s->result] : &f->operands[s->operand];
  const xlac_ffi_buffer *b = j->slots[i];
  j->items[i] = j->batch ? (int64_t)b->bytes / j->batch : 0;
  int64_t ld = b->rank >= 2 ? b->dims[b->rank - 2] : 1;
  j->ld[i] = ld > 0 ? (int32_t)ld : 1;
  return 0;
}

/* What the routines themselves would refuse, by printing. */
static bool lapack_sizes_fit(const lapack_job *j) {
  const char *name = j->routine->name;
  if (strcmp(name + 2, "gqr") == 0) return j->n <= j->m && j->k <= j->n;
  if (strcmp(name + 2, "mqr") == 0) return j->k <= (j->letters['X'] == 'L' ? j->m : j->n);
  if (strcmp(name, "gehrd") == 0) return j->low >= 1 && j->low <= j->high && j->high <= j->n;
  return true;
}

static int lapack_read_sizes(lapack_job *j) {
  const lapack_slot *s = &j->routine->slots[j->routine->main];
  const xlac_ffi_buffer *a = &j->frame->operands[s->operand];
  if (a->rank < 2) return lapack_misfit(j, "operand", s->operand);
  j->slots[j->routine->main] = a;
  j->m = a->dims[a->rank - 2], j->n = a->dims[a->rank - 1], j->batch = 1;
  for (uint32_t d = 0; d + 2 < a->rank; d++) j->batch *= a->dims[d];
  if (strchr(j->routine->args, 'k')) {
    const xlac_ffi_buffer *tau = &j->frame->operands[1];
    j->k = tau->rank ? tau->dims[tau->rank - 1] : 0;
  }
  if (j->m > INT32_MAX || j->n > INT32_MAX || j->k > INT32_MAX)
    return j->frame->fail(j->frame, "LAPACK's sizes have 32 bits");
  if (s->shape == 'Q' && j->m != j->n) return lapack_misfit(j, "operand", s->operand);
  return 0;
}

static int lapack_read_letter(lapack_job *j, char letter, const char *name, const char *allowed) {
  const xlac_ffi_attr *a = xlac_ffi_find(j->frame, name);
  if (!a || a->kind != XLAC_FFI_INT || a->i <= 0 || a->i > 127 || !strchr(allowed, (int)a->i))
    return j->frame->fail(j->frame, "its attribute %s must be one of the characters %s", name, allowed);
  j->letters[(unsigned char)letter] = (char)a->i;
  return 0;
}

static int lapack_read_attrs(lapack_job *j) {
  static const struct {
    char letter;
    const char *name, *allowed;
  } known[] = {{'U', "uplo", "LU"}, {'J', "mode", "NVAS"},   {'L', "compute_left", "NV"}, {'V', "compute_right", "NV"},
               {'S', "side", "LR"}, {'T', "trans_x", "NTC"}, {'D', "diag", "NU"},         {'O', "sort", "N"}};
  const char *args = j->routine->args;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strchr(args, known[i].letter)) TRY(lapack_read_letter(j, known[i].letter, known[i].name, known[i].allowed));
  const xlac_ffi_attr *left = xlac_ffi_find(j->frame, "left"), *transpose = xlac_ffi_find(j->frame, "transpose");
  const xlac_ffi_attr *low = xlac_ffi_find(j->frame, "low"), *high = xlac_ffi_find(j->frame, "high");
  if (strchr(args, 'X')) {
    if (!left || !transpose) return j->frame->fail(j->frame, "it needs the attributes left and transpose");
    j->letters['X'] = left->i ? 'L' : 'R';
    j->letters['Y'] = !transpose->i ? 'N' : j->is_complex ? 'C' : 'T';
  }
  if (strchr(args, 'h')) {
    if (!low || !high) return j->frame->fail(j->frame, "it needs the attributes low and high");
    j->low = (int32_t)low->i, j->high = (int32_t)high->i;
  }
  bool vectors =
      strncmp(j->routine->name, "ges", 3) == 0 && j->routine->name[3] != 0 && strchr("dv", j->routine->name[3]);
  if (j->letters['J'] && strchr(vectors ? "V" : "AS", j->letters['J']))
    return j->frame->fail(j->frame, "its mode %c is none of %s", j->letters['J'], j->routine->name);
  return 0;
}

/* --- calls --- */

static void *lapack_number(lapack_job *j, char letter, int32_t *numbers) {
  switch (letter) {
    case 'm':
      return numbers[0] = (int32_t)j->m, &numbers[0];
    case 'n':
      return numbers[1] = (int32_t)j->n, &numbers[1];
    case 'k':
      return numbers[2] = (int32_t)j->k, &numbers[2];
    case 'N':
      return numbers[3] = j->n > 1 ? (int32_t)j->n : 1, &numbers[3];
    case 'l':
      return &j->lwork;
    case 'R':
      return &j->lrwork;
    case 'I':
      return &j->liwork;
    case 'h':
      return &j->low;
    case 'g':
      return &j->high;
    default:
      return letter >= 'a' && letter <= 'e' ? &j->ld[letter - 'a'] : NULL;
  }
}

static void *lapack_memory(const lapack_work *w, char letter) {
  switch (letter) {
    case 'w':
      return w->work;
    case 'r':
    case 'G':
      return w->rwork;
    case 'i':
      return w->iwork;
    case 'B':
      return w->bwork;
    case 'p':
      return w->left;
    case 'q':
      return w->right;
    default:
      return NULL;
  }
}

static void *lapack_slot_data(const lapack_job *j, const lapack_work *w, int slot, int64_t item) {
  if (j->routine->slots[slot].copied) return w->copy;
  return (char *)j->slots[slot]->data + item * j->items[slot];
}

/* The routine on one item of the batch, or a question for its work sizes. */
static void lapack_call(lapack_job *shared, const lapack_work *w, int64_t item, int32_t *info) {
  static const double ones[2] = {1, 0};
  static const float ones_f[2] = {1, 0};
  lapack_job j = *shared; /* Fortran gets pointers to numbers, a thread its own */
  int32_t numbers[4] = {0, 0, 0, 0};
  void *a[LAPACK_MAX_ARGS];
  int n = 0;
  for (const char *p = j.routine->args; *p; p++, n++) {
    assert(n < LAPACK_MAX_ARGS);
    if (*p >= '0' && *p <= '4')
      a[n] = lapack_slot_data(&j, w, *p - '0', item);
    else if (*p == '<')
      a[n] = (char *)lapack_slot_data(&j, w, 0, item) + j.element;
    else if (*p == 'f')
      a[n] = info;
    else if (*p == 'o')
      a[n] = j.is_double ? (void *)(uintptr_t)ones : (void *)(uintptr_t)ones_f;
    else if (j.letters[(unsigned char)*p])
      a[n] = &j.letters[(unsigned char)*p];
    else if (!(a[n] = lapack_memory(w, *p)))
      a[n] = lapack_number(&j, *p, numbers);
  }
  for (; n < LAPACK_MAX_ARGS; n++) a[n] = (void *)(uintptr_t)1; /* lengths of characters */
  j.fn(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15], a[16],
       a[17], a[18], a[19]);
}

/* Numbers in single precision are rounded: one that may be too small is made larger. */
static double lapack_size_in(const lapack_job *j, const void *p) {
  double d = 0;
  float f = 0;
  if (j->is_double) {
    memcpy(&d, p, sizeof d);
    return d;
  }
  memcpy(&f, p, sizeof f);
  return f < 16777216.0f ? (double)f : (double)f * (1 + 0x1p-22);
}

static int lapack_ask_sizes(lapack_job *j) {
  const char *args = j->routine->args;
  double work[2] = {0, 0}, rwork[2] = {0, 0}, iwork[2] = {0, 0}, other[8] = {0};
  int32_t info = 0;
  if (!strchr(args, 'l')) return 0;
  lapack_work w = {(char *)work,  (char *)rwork, (char *)iwork, (char *)other,
                   (char *)other, (char *)other, (char *)other};
  j->lwork = j->lrwork = j->liwork = -1;
  lapack_call(j, &w, 0, &info);
  double need = lapack_size_in(j, work), real = strchr(args, 'R') ? lapack_size_in(j, rwork) : 0;
  if (info != 0 || !(need < INT32_MAX) || !(real < INT32_MAX))
    return j->frame->fail(j->frame, "LAPACK's %s refuses these sizes (%d)", j->routine->name, (int)info);
  j->lwork = need < 1 ? 1 : (int32_t)need;
  j->lrwork = real < 1 ? 1 : (int32_t)real;
  memcpy(&j->liwork, iwork, sizeof j->liwork);
  if (j->liwork < 1 || !strchr(args, 'I')) j->liwork = 1;
  return 0;
}

/* Real numbers of work that the routines ask for without being asked. */
static int64_t lapack_real_work(const lapack_job *j) {
  int64_t most = j->m > j->n ? j->m : j->n, least = lapack_min(j->m, j->n);
  if (strchr(j->routine->args, 'R')) return j->lrwork;
  if (!strchr(j->routine->args, 'G')) return 5 * most + 1;
  int64_t a = 5 * least * least + 7 * least, b = 2 * most * least + 2 * least * least + least;
  return a > b ? a : b;
}

static bool lapack_take_work(const lapack_job *j, lapack_work *w) {
  size_t part = j->is_double ? 8 : 4, sizes[7] = {0};
  int64_t least = lapack_min(j->m, j->n), copied = 0, vectors = strchr(j->routine->args, 'p') ? j->n * j->n : 0;
  for (int i = 0; i < LAPACK_SLOTS; i++)
    if (j->routine->slots[i].copied) copied = j->items[i];
  sizes[0] = (size_t)j->lwork * j->element;
  sizes[1] = j->is_complex ? (size_t)lapack_real_work(j) * part : 0;
  sizes[2] = (size_t)(strchr(j->routine->args, 'I') ? j->liwork : 8 * least) * 4;
  sizes[3] = (size_t)j->n * 4;
  sizes[4] = (size_t)copied;
  sizes[5] = sizes[6] = (size_t)vectors * part;
  size_t total = 0;
  for (int i = 0; i < 7; i++) total += (sizes[i] + 64) & ~(size_t)63;
  char *p = j->frame->allocate(j->frame, total),
       **places[7] = {&w->work, &w->rwork, &w->iwork, &w->bwork, &w->copy, &w->left, &w->right};
  if (!p) return false;
  for (int i = 0; i < 7; i++) {
    *places[i] = p;
    p += (sizes[i] + 64) & ~(size_t)63;
  }
  return true;
}

/* --- eigenvectors of real matrices --- */

/* Pairs of conjugate eigenvalues share two columns, real and imaginary part. */
#define LAPACK_UNPACK(name, T)                                                               \
  static void name(int64_t n, const T *imaginary, const T *packed, T *to) {                  \
    for (int64_t c = 0; c < n; c++) {                                                        \
      bool pair = imaginary[c] != 0 && c + 1 < n;                                            \
      for (int64_t r = 0; r < n; r++) {                                                      \
        T re = packed[c * n + r], im = pair ? packed[(c + 1) * n + r] : 0, *at = to + 2 * r; \
        at[2 * c * n] = re;                                                                  \
        at[2 * c * n + 1] = im;                                                              \
        if (!pair) continue;                                                                 \
        at[2 * (c + 1) * n] = re;                                                            \
        at[2 * (c + 1) * n + 1] = -im;                                                       \
      }                                                                                      \
      c += pair;                                                                             \
    }                                                                                        \
  }
LAPACK_UNPACK(lapack_unpack_f64, double)
LAPACK_UNPACK(lapack_unpack_f32, float)
#undef LAPACK_UNPACK

static void lapack_unpack(const lapack_job *j, const lapack_work *w, int64_t item) {
  const void *imaginary = lapack_slot_data(j, w, 2, item);
  for (int side = 0; side < 2; side++) {
    void *to = lapack_slot_data(j, w, 3 + side, item);
    const char *from = side ? w->right : w->left;
    if (j->letters[side ? 'V' : 'L'] != 'V') continue;
    if (j->is_double)
      lapack_unpack_f64(j->n, imaginary, (const double *)(const void *)from, to);
    else
      lapack_unpack_f32(j->n, imaginary, (const float *)(const void *)from, to);
  }
}

/* The QR iteration does not end well on anything else. */
static bool lapack_is_finite(const lapack_job *j, const char *a) {
  int64_t n = j->n * j->n * (j->is_complex ? 2 : 1);
  bool finite = true;
  for (int64_t i = 0; i < n && finite; i++) {
    double d = 0;
    float f = 0;
    if (j->is_double)
      memcpy(&d, a + i * 8, 8);
    else
      memcpy(&f, a + i * 4, 4), d = (double)f;
    finite = isfinite(d);
  }
  return finite;
}

/* --- batches --- */

static void lapack_item(lapack_job *j, const lapack_work *w, int64_t item) {
  int32_t info = 0;
  bool run = true;
  for (int i = 0; i < LAPACK_SLOTS && j->slots[i]; i++) {
    const lapack_slot *s = &j->routine->slots[i];
    char *result = s->result >= 0 ? (char *)j->slots[i]->data + item * j->items[i] : w->copy;
    const char *operand =
        s->operand >= 0 ? (const char *)j->frame->operands[s->operand].data + item * j->items[i] : NULL;
    if (s->operand >= 0 && (s->result >= 0 || s->copied) && result != operand)
      memcpy(result, operand, (size_t)j->items[i]);
    if (s->operand < 0) memset(result, 0, (size_t)j->items[i]); /* what a mode leaves out */
  }
  if (strcmp(j->routine->name, "geev") == 0) run = lapack_is_finite(j, w->copy);
  if (!run)
    info = -4;
  else if (j->items[j->routine->main])
    lapack_call(j, w, item, &info);
  if (run && strchr(j->routine->args, 'p')) lapack_unpack(j, w, item);
  if (j->routine->info >= 0) memcpy((char *)j->frame->results[j->routine->info].data + item * 4, &info, sizeof info);
}

static void lapack_items(void *ctx, uint64_t begin, uint64_t end) {
  lapack_job *j = ctx;
  lapack_work w = {NULL, NULL, NULL, NULL, NULL, NULL, NULL};
  if (!lapack_take_work(j, &w)) {
    (void)j->frame->fail(j->frame, "out of memory for LAPACK's work");
    return;
  }
  for (uint64_t i = begin; i < end; i++) lapack_item(j, &w, (int64_t)i);
}

static int lapack_check_counts(const lapack_job *j) {
  const xlac_ffi_frame *f = j->frame;
  const lapack_routine *r = j->routine;
  if (f->n_operands != r->n_operands || f->n_results != r->n_results)
    return j->frame->fail(j->frame, "it takes %d operands and gives %d results, not %u and %u", r->n_operands,
                          r->n_results, f->n_operands, f->n_results);
  if (r->info >= 0 && f->results[r->info].dtype != XLAC_FFI_S32) return lapack_misfit(j, "result", r->info);
  return 0;
}

/* Large matrices one after another, each by all threads. */
static int lapack_run_large(lapack_job *j, cpu_factor *f) {
  bool cholesky = strcmp(j->routine->name, "potrf") == 0;
  for (int64_t item = 0; item < j->batch; item++) {
    char *a = (char *)j->slots[0]->data + item * j->items[0];
    const char *operand = (const char *)j->frame->operands[0].data + item * j->items[0];
    int32_t *pivots = cholesky ? NULL : (int32_t *)j->slots[1]->data + item * lapack_min(j->m, j->n);
    if (a != operand) memcpy(a, operand, (size_t)j->items[0]);
    int32_t info =
        cholesky ? cpu_factor_cholesky(f, j->letters['U'], j->n, a) : cpu_factor_lu(f, j->m, j->n, a, pivots);
    if (f->stopped) return j->frame->fail(j->frame, "it was to stop");
    memcpy((char *)j->frame->results[j->routine->info].data + item * 4, &info, sizeof info);
  }
  return 0;
}

/* fn: the routine, for matrices that are not large; blas: NULL where there is no other way. */
static int lapack_run_by(xlac_ffi_frame *frame, const lapack_routine *routine, cpu_blas_fortran_fn *fn,
                         const cpu_blas *blas) {
  const char type = frame->target[7]; /* after "lapack_" */
  lapack_job j = {.frame = frame, .routine = routine};
  cpu_factor factor;
  memcpy(&j.fn, &fn, sizeof j.fn);
  j.is_complex = type == 'c' || type == 'z';
  j.is_double = type == 'd' || type == 'z';
  j.element = (size_t)(j.is_double ? 8 : 4) * (j.is_complex ? 2 : 1);
  TRY(lapack_check_counts(&j));
  TRY(lapack_read_attrs(&j));
  TRY(lapack_read_sizes(&j));
  for (int i = 0; i < LAPACK_SLOTS && j.routine->slots[i].shape; i++) TRY(lapack_check_slot(&j, i));
  if (j.routine->info >= 0 && frame->results[j.routine->info].count != j.batch)
    return lapack_misfit(&j, "result", j.routine->info);
  bool empty = j.m == 0 || j.n == 0 || j.batch == 0;
  if (!empty && !lapack_sizes_fit(&j)) return frame->fail(frame, "its sizes don't fit LAPACK's %s", j.routine->name);
  int64_t least = lapack_min(j.m, j.n), each = j.m * j.n / 2 * (least ? least : 1) + 64;
  if (blas && !empty && least >= CPU_FACTOR_LEAST && cpu_factor_begin(&factor, blas, frame, type))
    return lapack_run_large(&j, &factor);
  if (!empty) TRY(lapack_ask_sizes(&j));
  uint64_t grain = each < LAPACK_PIECE_WORK ? (uint64_t)(LAPACK_PIECE_WORK / each) : 1;
  if (j.batch) frame->parallel_for(frame, (uint64_t)j.batch, grain, lapack_items, &j);
  return 0;
}

/* user is the interp_native: inside are the routine's row and its function. The target's name has the type. */
static int lapack_run(xlac_ffi_frame *frame) {
  const interp_native *native = frame->user;
  cpu_blas_fortran_fn *fn = NULL;
  memcpy(&fn, &native->inside[1], sizeof fn);
  return lapack_run_by(frame, native->inside[0], fn, NULL);
}

/* The same for routines that have another way for large matrices: inside is the library, which knows the function. */
static int lapack_run_factor(xlac_ffi_frame *frame) {
  const interp_native *native = frame->user;
  const lapack_routine *routine = native->inside[0];
  char name[16] = {frame->target[7]};
  memcpy(name + 1, routine->name, strlen(routine->name) + 1);
  return lapack_run_by(frame, routine, cpu_blas_find(native->inside[1], name), native->inside[1]);
}

/* "lapack_" type routine "_ffi" */
bool cpu_lapack_find(const cpu_blas *b, const char *target, interp_native *out) {
  size_t n = strlen(target);
  if (n < 13 || n > 24 || strncmp(target, "lapack_", 7) != 0 || strcmp(target + n - 4, "_ffi") != 0) return false;
  char name[16] = "", type = target[7];
  memcpy(name, target + 7, n - 11);
  bool real = type == 's' || type == 'd', is_complex = type == 'c' || type == 'z';
  for (size_t i = 0; i < sizeof lapack_routines / sizeof *lapack_routines; i++) {
    const lapack_routine *r = &lapack_routines[i];
    bool suits = r->numbers == '*' || (r->numbers == 'r' ? real : is_complex);
    if (!suits || !(real || is_complex) || strcmp(r->name, name + 1) != 0) continue;
    cpu_blas_fortran_fn *fn = cpu_blas_find(b, name);
    if (!fn) return false;
    *out = (interp_native){.run = lapack_run, .user = out, .inside = {r, NULL}};
    memcpy(&out->inside[1], &fn, sizeof fn);
    if (strcmp(r->name, "potrf") == 0 || strcmp(r->name, "getrf") == 0) {
      out->run = lapack_run_factor;
      out->inside[1] = b;
    }
    return true;
  }
  return false;
}

bool cpu_lapack_native(void *ctx, const char *target, interp_native *out) {
  return cpu_lapack_find(ctx, target, out);
}
