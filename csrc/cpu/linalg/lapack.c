/* LAPACK's routines as native custom calls. What they share, batches and scratch memory, is here; what tells them
 * apart is in lapack_rows.h. Matrices come column-major, as LAPACK has them and as JAX's layouts ask for. */
#include "lapack.h"

#include <math.h>
#include <stdlib.h>

#include "../../runtime/detached_call.h"
#include "factor.h"
#include "lapack_inside.h"
#include "lapack_rows.h"
#include "small.h"
#include "../own_calls.h"

/* LAPACK_PIECE_WORK: work of a thread at a time, in multiplications, roughly. */
enum {
  LAPACK_PIECE_WORK = 1 << 18,
  LAPACK_LONG = 1 << 24, /* work of an item that may take some ten milliseconds */
  LAPACK_TALL = 64       /* times as many rows: a panel takes long */
};

/* --- calls --- */

/* The address of the size or leading dimension that a letter means. Those that Fortran wants in 32 bits are put into
 * `numbers` first. */
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

/* The work memory that a letter means; NULL where it means none. */
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

/* Where the slot's array of this item is: the thread's copy, memory apart, or the frame's own. */
static void *lapack_slot_data(const lapack_job *j, const lapack_work *w, int slot, int64_t item) {
  assert(slot >= 0 && slot < LAPACK_SLOTS);
  if (j->routine->slots[slot].copied) return w->copy;
  if (w->slots[slot]) return w->slots[slot];
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

/* A call with sizes of -1 computes nothing and gives the sizes it wants at the beginning of each work array. */
static int lapack_ask_sizes(lapack_job *j) {
  const char *args = j->routine->args;
  double work[2] = {0, 0}, rwork[2] = {0, 0}, iwork[2] = {0, 0}, other[8] = {0};
  int32_t info = 0;
  if (!strchr(args, 'l')) return 0;
  lapack_work w = {.work = (char *)work,
                   .rwork = (char *)rwork,
                   .iwork = (char *)iwork,
                   .bwork = (char *)other,
                   .copy = (char *)other,
                   .left = (char *)other,
                   .right = (char *)other};
  j->lwork = j->lrwork = j->liwork = -1;
  lapack_call(j, &w, 0, &info);
  /* In floating-point numbers, as LAPACK gives them; the integer one as an integer. */
  double need = lapack_size_in(j, work), real = strchr(args, 'R') ? lapack_size_in(j, rwork) : 0;
  /* Written so that NaN is refused. */
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

/* Bytes of each part of the work, and in all. */
static size_t lapack_work_bytes(const lapack_job *j, size_t sizes[7]) {
  size_t part = j->is_double ? 8 : 4, total = 0;
  int64_t least = lapack_min(j->m, j->n), copied = 0, vectors = strchr(j->routine->args, 'p') ? j->n * j->n : 0;
  for (int i = 0; i < LAPACK_SLOTS; i++)
    if (j->routine->slots[i].copied) copied = j->items[i];
  sizes[0] = (size_t)j->lwork * j->element;
  sizes[1] = j->is_complex ? (size_t)lapack_real_work(j) * part : 0;
  sizes[2] = (size_t)(strchr(j->routine->args, 'I') ? j->liwork : 8 * least) * 4;
  sizes[3] = (size_t)j->n * 4;
  sizes[4] = (size_t)copied;
  sizes[5] = sizes[6] = (size_t)vectors * part;
  /* Each part of at least 64 bytes, so that none is at the address of another. */
  for (int i = 0; i < 7; i++) total += sizes[i] = (sizes[i] + 64) & ~(size_t)63;
  return total;
}

/* Cuts the block at p into the parts, which are aligned as p is. */
static void lapack_place_work(lapack_work *w, char *p, const size_t sizes[7]) {
  char **places[7] = {&w->work, &w->rwork, &w->iwork, &w->bwork, &w->copy, &w->left, &w->right};
  for (int i = 0; i < 7; i++) {
    *places[i] = p;
    p += sizes[i];
  }
}

/* Memory for a thread's work, until the frame's call is over; false when out of memory. */
static bool lapack_take_work(const lapack_job *j, lapack_work *w) {
  size_t sizes[7];
  char *p = j->frame->allocate(j->frame, lapack_work_bytes(j, sizes));
  if (p) lapack_place_work(w, p, sizes);
  return p != NULL;
}

/* --- eigenvectors of real matrices --- */

/* Pairs of conjugate eigenvalues share two columns, real and imaginary part of the eigenvector whose eigenvalue has the
 * positive imaginary part; the other is its conjugate. E.g. columns a, b of the pair 2 + i, 2 - i become a + bi and
 * a - bi. */
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

/* Left and right eigenvectors, those of them that were asked for. */
static void lapack_unpack(const lapack_job *j, const lapack_work *w, int64_t item) {
  assert(!j->is_complex);
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

/* Operands to where the routine will change them; zeros where it may leave something out. */
static void lapack_fill(const lapack_job *j, const lapack_work *w, int64_t item) {
  for (int i = 0; i < LAPACK_SLOTS && j->slots[i]; i++) {
    const lapack_slot *s = &j->routine->slots[i];
    char *to = lapack_slot_data(j, w, i, item);
    const char *operand =
        s->operand >= 0 ? (const char *)j->frame->operands[s->operand].data + item * j->items[i] : NULL;
    if (s->operand >= 0 && to != operand) memcpy(to, operand, (size_t)j->items[i]);
    if (s->operand < 0) memset(to, 0, (size_t)j->items[i]);
  }
}

/* Reads and writes nothing but w's memory and the item's arrays. */
static int32_t lapack_compute(lapack_job *j, const lapack_work *w, int64_t item) {
  int32_t info = 0;
  /* As LAPACK itself reports a bad argument number 4, the matrix. */
  if (strcmp(j->routine->name, "geev") == 0 && !lapack_is_finite(j, w->copy)) return -4;
  if (j->items[j->routine->main]) lapack_call(j, w, item, &info);
  if (strchr(j->routine->args, 'p')) lapack_unpack(j, w, item);
  return info;
}

/* Routines without a result for it keep it to themselves. */
static void lapack_put_info(const lapack_job *j, int64_t item, int32_t info) {
  assert(item >= 0);
  if (j->routine->info >= 0) memcpy((char *)j->frame->results[j->routine->info].data + item * 4, &info, sizeof info);
}

/* One item, from the frame's operands to its results. */
static void lapack_item(lapack_job *j, const lapack_work *w, int64_t item) {
  lapack_fill(j, w, item);
  lapack_put_info(j, item, lapack_compute(j, w, item));
}

/* Items begin to end, without the library. */
static void lapack_small_items(void *ctx, uint64_t begin, uint64_t end) {
  const lapack_job *j = ctx;
  const lapack_work none = {.work = NULL};
  for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) {
    lapack_fill(j, &none, i);
    void *second = j->slots[1] ? lapack_slot_data(j, &none, 1, i) : NULL;
    lapack_put_info(j, i, j->small(j, lapack_slot_data(j, &none, 0, i), second));
  }
}

/* Items begin to end, with work memory that they share. */
static void lapack_items(void *ctx, uint64_t begin, uint64_t end) {
  lapack_job *j = ctx;
  lapack_work w = {.work = NULL};
  if (!lapack_take_work(j, &w)) {
    (void)j->frame->fail(j->frame, "out of memory for LAPACK's work");
    return;
  }
  for (uint64_t i = begin; i < end; i++) lapack_item(j, &w, (int64_t)i);
}

/* --- items that take long: on threads of their own, so that the caller may leave --- */

/* An item on a thread of its own: nothing in it points into the frame's arrays, which may be gone before it ends. */
typedef struct lapack_apart {
  lapack_job job;
  lapack_work work;
  int32_t info;
} lapack_apart;

/* All that an item needs, in one block. */
static void *lapack_apart_begin(void *ctx, uint64_t i) {
  const lapack_job *j = ctx;
  size_t sizes[7], total = sizeof(lapack_apart) + 64 + lapack_work_bytes(j, sizes);
  for (int s = 0; s < LAPACK_SLOTS && j->slots[s]; s++)
    if (!j->routine->slots[s].copied) total += ((size_t)j->items[s] + 63) & ~(size_t)63;
  lapack_apart *a = malloc(total);
  if (!a) return NULL;
  *a = (lapack_apart){.job = *j};
  char *p = (char *)(((uintptr_t)(a + 1) + 63) & ~(uintptr_t)63);
  for (int s = 0; s < LAPACK_SLOTS && j->slots[s]; s++) {
    if (j->routine->slots[s].copied) continue;
    a->work.slots[s] = p;
    p += ((size_t)j->items[s] + 63) & ~(size_t)63;
  }
  lapack_place_work(&a->work, p, sizes);
  lapack_fill(j, &a->work, (int64_t)i);
  return a;
}

/* On that thread. */
static void lapack_apart_run(void *memory) {
  lapack_apart *a = memory;
  a->info = lapack_compute(&a->job, &a->work, 0);
}

/* Results to the frame, once the item is done and the caller is still there. */
static void lapack_apart_end(void *ctx, uint64_t i, void *memory) {
  assert(i < (uint64_t)((const lapack_job *)ctx)->batch);
  const lapack_job *j = ctx;
  const lapack_apart *a = memory;
  for (int s = 0; s < LAPACK_SLOTS && j->slots[s]; s++)
    if (j->routine->slots[s].result >= 0)
      memcpy((char *)j->slots[s]->data + (int64_t)i * j->items[s], a->work.slots[s], (size_t)j->items[s]);
  lapack_put_info(j, (int64_t)i, a->info);
}

/* Whether the caller is to leave: asked while items run. */
static bool lapack_apart_stops(void *ctx) {
  const lapack_job *j = ctx;
  return j->frame->interrupted(j->frame);
}

/* What there is no memory or thread for is done here, where nobody can interrupt it. */
static int lapack_run_apart(lapack_job *j, const cpu_blas *blas) {
  bool left = false;
  rt_aside a = {.n = (uint64_t)j->batch,
                .threads = j->frame->n_threads,
                .library = cpu_blas_library(blas),
                .begin = lapack_apart_begin,
                .run = lapack_apart_run,
                .end = lapack_apart_end,
                .stops = lapack_apart_stops,
                .ctx = j};
  uint64_t done = rt_aside_run(&a, &left);
  if (left) return j->frame->fail(j->frame, "it was to stop");
  if (done < a.n) lapack_items(j, done, a.n);
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

/* Those that have another way for large matrices. */
static bool lapack_is_factor(const lapack_routine *r) {
  return strcmp(r->name, "potrf") == 0 || strcmp(r->name, "getrf") == 0;
}

/* user is the rt_native: inside are the routine's row, its function and the library. The target's name has the
 * type. */
static int lapack_run(xlac_ffi_frame *frame) {
  const rt_native *native = frame->user;
  const lapack_routine *routine = native->inside[0];
  const cpu_blas *blas = native->inside[2];
  const char type = frame->target[7]; /* after "lapack_" */
  lapack_job j = {.frame = frame, .routine = routine};
  cpu_factor factor;
  memcpy(&j.fn, &native->inside[1], sizeof j.fn);
  j.is_complex = type == 'c' || type == 'z';
  j.is_double = type == 'd' || type == 'z';
  j.element = (size_t)(j.is_double ? 8 : 4) * (j.is_complex ? 2 : 1);
  bool empty = false;
  TRY(lapack_check(&j, &empty));
  if (empty && !j.batch) return 0;
  int64_t least = lapack_min(j.m, j.n), each = j.m * j.n / 2 * (least ? least : 1) + 64;
  /* Tall matrices are left to LAPACK: their panels alone are most of the work. */
  if (lapack_is_factor(routine) && !empty && least >= CPU_FACTOR_LEAST && j.m / LAPACK_TALL <= j.n &&
      cpu_factor_begin(&factor, blas, frame, type))
    return lapack_run_large(&j, &factor);
  j.small = empty ? NULL : lapack_small_of(&j);
  if (!empty && !j.small) TRY(lapack_ask_sizes(&j));
  /* The library can't be interrupted: the caller leaves, and the thread goes on to its end alone. */
  if (!empty && each >= LAPACK_LONG) return lapack_run_apart(&j, blas);
  uint64_t grain = each < LAPACK_PIECE_WORK ? (uint64_t)(LAPACK_PIECE_WORK / each) : 1;
  frame->parallel_for(frame, (uint64_t)j.batch, grain, j.small ? lapack_small_items : lapack_items, &j);
  return 0;
}

/* Only for these is the library worth opening. */
static bool lapack_is_target(const char *target) {
  return strncmp(target, "lapack_", 7) == 0;
}

/* "lapack_" type routine "_ffi" */
static bool lapack_find(const cpu_blas *b, const char *target, rt_native *out) {
  size_t n = strlen(target);
  if (n < 13 || n > 24 || !lapack_is_target(target) || strcmp(target + n - 4, "_ffi") != 0) return false;
  char name[16] = "", type = target[7];
  memcpy(name, target + 7, n - 11);
  bool real = type == 's' || type == 'd', is_complex = type == 'c' || type == 'z';
  /* Real and complex routines may differ in name, as orgqr and ungqr, or only in arguments, as gesdd. */
  for (size_t i = 0; i < sizeof lapack_routines / sizeof *lapack_routines; i++) {
    const lapack_routine *r = &lapack_routines[i];
    bool suits = r->numbers == '*' || (r->numbers == 'r' ? real : is_complex);
    if (!suits || !(real || is_complex) || strcmp(r->name, name + 1) != 0) continue;
    cpu_blas_fortran_fn *fn = cpu_blas_find(b, name);
    if (!fn) return false;
    *out = (rt_native){.run = lapack_run, .user = out, .inside = {r, NULL, b}};
    memcpy(&out->inside[1], &fn, sizeof fn);
    return true;
  }
  return false;
}

/* --- all that is built in --- */

static const struct {
  const char *target;
  xlac_ffi_fn *run;
} own_calls[] = {{"tridiagonal_solve_perturbed_ffi", cpu_own_tridiagonal},
                 {"cpu_csr_sparse_dense_ffi", cpu_own_csr_product}};

bool cpu_native(void *ctx, const char *target, rt_native *out) {
  const cpu_blas *blas = NULL;
  for (size_t i = 0; i < sizeof own_calls / sizeof *own_calls; i++)
    if (strcmp(own_calls[i].target, target) == 0) return *out = (rt_native){.run = own_calls[i].run}, true;
  if (!lapack_is_target(target) || cpu_blas_lazy_get(ctx, &blas, NULL) != 0) return false;
  return blas && lapack_find(blas, target, out);
}
