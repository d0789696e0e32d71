/* Loads whose places are each iteration's own: what a gather is inside of a kernel. First the offsets of all lanes, as
 * vectors: the affine part, and for each place its clamped value times its stride. Then the elements, one by one.
 *
 *    v3 = f32[] load in0[0 + 512*v1 up to 511 + 1*v2 up to 511]      image[y, x], for y and x of every iteration
 *
 * Offsets are 32 bits wide where the array allows that; where it does not, or where places are of rarer types, each
 * lane finds its own. */
#include "../../base/isa/isa.h"
#include "vm_walk.h"

enum { PLACES_LANES = 256 /* offsets at a time */ };

typedef void vm_place_fn(int64_t n, int32_t stride, int32_t last, const void *places, int32_t *at);
struct vm_place_loops {
  vm_place_fn *s32, *u32;
  void (*begin)(int64_t n, int32_t first, int32_t stride, int32_t *at);
};

#define PLACES(name) places_any_##name
#include "vm_places_loops.h"
#if defined(__x86_64__)
#include "../../base/isa/isa_avx2_begin.h"
#define PLACES(name) places_avx2_##name
#include "vm_places_loops.h"
#include "../../base/isa/isa_end.h"

#include "../../base/isa/isa_avx512_begin.h"
#define PLACES(name) places_avx512_##name
#include "vm_places_loops.h"
#include "../../base/isa/isa_end.h"
#endif

const vm_place_loops *vm_find_place_loops(void) {
#define PLACES_ROW(isa) {places_##isa##_s32, places_##isa##_u32, places_##isa##_begin}
  static const vm_place_loops table[] = {
      PLACES_ROW(any),
#if defined(__x86_64__)
      PLACES_ROW(avx2), PLACES_ROW(avx512), PLACES_ROW(avx512), /* with VNNI */
#endif
  };
#undef PLACES_ROW
  return &table[base_isa_best()];
}

/* One load at work. */
typedef struct places_run {
  const vm_place_loops *loops;
  const kernel *k;
  const kernel_value *v;
  const char *from;
  const void *const *lanes;
  uint8_t ones;
  bool narrow; /* offsets fit 32 bits, and places are of 32 bits */
} places_run;

static base_dtype places_type(const places_run *x, uint32_t j) {
  return (base_dtype)x->k->values[x->v->in[j]].dtype;
}

/* Lane number i of place j. */
static const void *places_lane(const places_run *x, uint32_t j, int64_t i) {
  if (x->ones >> j & 1) return x->lanes[j];
  return (const char *)x->lanes[j] + i * (int64_t)base_dtype_bytes(places_type(x, j));
}

static bool places_are_narrow(const places_run *x) {
  int64_t least = 0, most = 0;
  if (!kernel_load_reach(x->k, x->v, &least, &most) || most > INT32_MAX) return false;
  for (uint32_t j = 0; j < x->v->n_in; j++)
    if (places_type(x, j) != XLAC_S32 && places_type(x, j) != XLAC_U32) return false;
  return true;
}

/* Elements are moved as integers of their size. */
#define PLACES_TAKE(type)                                \
  do {                                                   \
    const type *f = (const type *)(const void *)x->from; \
    type *t = (type *)(void *)to;                        \
    for (int64_t i = 0; i < n; i++) t[i] = f[at[i]];     \
  } while (0)

static void places_take(const places_run *x, int64_t n, const int32_t *at, char *to) {
  switch (base_dtype_bytes((base_dtype)x->v->dtype)) {
    case 1:
      PLACES_TAKE(uint8_t);
      break;
    case 2:
      PLACES_TAKE(uint16_t);
      break;
    case 4:
      PLACES_TAKE(uint32_t);
      break;
    case 8:
      PLACES_TAKE(uint64_t);
      break;
    default:
      PLACES_TAKE(vm_16);
  }
}

/* n lanes from number `lane` on, whose affine parts begin at `first` and are `stride` apart. */
static void places_run_narrow(const places_run *x, int64_t lane, int64_t n, int64_t first, int64_t stride, char *to) {
  int32_t at[PLACES_LANES] __attribute__((aligned(64)));
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)x->v->dtype);
  for (int64_t some; n > 0; n -= some, lane += some, first += some * stride, to += some * bytes) {
    some = n < PLACES_LANES ? n : PLACES_LANES;
    int64_t begin = first;
    for (uint32_t j = 0; j < x->v->n_in; j++)
      if (x->ones >> j & 1) begin += kernel_base_at(&x->v->bases[j], places_type(x, j), x->lanes[j]);
    x->loops->begin(some, (int32_t)begin, (int32_t)stride, at);
    for (uint32_t j = 0; j < x->v->n_in; j++) {
      if (x->ones >> j & 1) continue;
      vm_place_fn *add = places_type(x, j) == XLAC_S32 ? x->loops->s32 : x->loops->u32;
      add(some, (int32_t)x->v->bases[j].stride, (int32_t)x->v->bases[j].last, places_lane(x, j, lane), at);
    }
    places_take(x, some, at, to);
  }
}

/* The same, lane by lane. */
static void places_run_wide(const places_run *x, int64_t lane, int64_t n, int64_t first, int64_t stride, char *to) {
  size_t bytes = base_dtype_bytes((base_dtype)x->v->dtype);
  for (int64_t i = 0; i < n; i++, to += bytes) {
    int64_t at = first + i * stride;
    for (uint32_t j = 0; j < x->v->n_in; j++)
      at += kernel_base_at(&x->v->bases[j], places_type(x, j), places_lane(x, j, lane + i));
    memcpy(to, x->from + at * (int64_t)bytes, bytes);
  }
}

static void places_load_run(const places_run *x, int64_t lane, int64_t n, int64_t first, int64_t stride, char *to) {
  (x->narrow ? places_run_narrow : places_run_wide)(x, lane, n, first, stride, to);
}

/* Whether only places say where: then all lanes are one run. */
static bool places_have_no_affine(const kernel *k, const kernel_value *v) {
  return !v->box && kernel_is_constant(k, v->index);
}

/* Run by run along the innermost dimension, of each the part in the load's box. */
void vm_load_places(const vm_place_loops *loops, const kernel *k, const kernel_value *v, const char *from,
                    const void *const *lanes, uint8_t ones, int64_t at, int64_t n, char *to) {
  assert(v->kind == KERNEL_LOAD && v->n_in > 0 && n >= 0);
  places_run x = {loops, k, v, from, lanes, ones, false};
  x.narrow = places_are_narrow(&x);
  if (places_have_no_affine(k, v)) {
    places_load_run(&x, 0, n, v->index->offset, 0, to);
    return;
  }
  int64_t index[KERNEL_MAX_RANK], bytes = (int64_t)base_dtype_bytes((base_dtype)v->dtype);
  uint32_t inner = k->rank - 1;
  vm_locate(k, at, index);
  for (int64_t lane = 0; lane < n;) {
    int64_t run = k->extents[inner] - index[inner], first = 0, end = 0, stride = v->index->strides[inner];
    if (run > n - lane) run = n - lane;
    if (vm_run_in_box(k, v->box, index, run, &first, &end))
      places_load_run(&x, lane + first, end - first, vm_offset(k, v->index, index) + first * stride, stride,
                      to + (lane + first) * bytes);
    lane += run;
    index[inner] += run;
    vm_carry(k, index);
  }
}

/* A place that is the same along the block is one number, wherever its lanes are. */
void vm_load_each(const vm_block *b, uint32_t i, int64_t at, int64_t n, char *to) {
  const kernel_value *v = &b->vm->k->values[i];
  const void *lanes[3] = {NULL, NULL, NULL};
  uint8_t ones = 0;
  assert(b->vm->insts[i].gathers && b->vm->places);
  for (uint32_t j = 0; j < v->n_in; j++) {
    uint8_t place = b->vm->insts[v->in[j]].place;
    lanes[j] = b->values[v->in[j]];
    ones |= (uint8_t)((place == VM_SPLAT || place == VM_ONE) << j);
  }
  vm_load_places(b->vm->places, b->vm->k, v, b->in[v->buffer], lanes, ones, at, n, to);
}
