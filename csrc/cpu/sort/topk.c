/* topk: a heap of the k first elements met so far, the last of them on top. Most elements don't get past it: of f32,
 * blocks are compared with it as a whole. Rows are shared between threads. */
#include "../../interp/algorithm/sort_keys.h"
#include "../routine.h"

enum { TOPK_SLOTS = 16, TOPK_BLOCK = 32, TOPK_PIECE = 1 << 15, TOPK_POLL = 1 << 14 };

typedef struct topk_data {
  uint8_t dtype, place; /* types of the values, of the places */
  bool largest;
  int64_t rows, n, k, grain;
} topk_data;

typedef struct topk_work {
  const topk_data *x;
  const char *from;
  char *values, *places;
  interp_keyed *heaps;
  rt_pool *pool;
} topk_work;

/* Asked for every step i, of which some thousands take a millisecond: short rows have none that looks. */
static bool topk_stops(const topk_work *w, int64_t i) {
  return i && i % TOPK_POLL == 0 && rt_pool_stopping(w->pool);
}

static inline bool topk_after(const interp_keyed *a, const interp_keyed *b) {
  return a->key != b->key ? a->key > b->key : a->at > b->at;
}

static void topk_sink(interp_keyed *heap, int64_t n, int64_t i) {
  interp_keyed x = heap[i];
  for (int64_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && topk_after(&heap[child + 1], &heap[child])) child++;
    if (!topk_after(&heap[child], &x)) break;
    heap[i] = heap[child];
  }
  heap[i] = x;
}

static void topk_in_order(const topk_work *w, interp_keyed *heap) {
  for (int64_t i = w->x->k - 1; i > 0 && !topk_stops(w, i); i--) {
    interp_keyed last = heap[0];
    heap[0] = heap[i];
    heap[i] = last;
    topk_sink(heap, i, 0);
  }
}

/* The bits of a float as an integer in total order. */
static inline int32_t topk_order(uint32_t bits) {
  return (int32_t)(bits ^ ((uint32_t)((int32_t)bits >> 31) & 0x7fffffffu));
}

/* Whether any element of a block of f32 comes before the heap's top. */
static bool topk_any(const char *from, uint64_t top, bool largest) {
  uint32_t key = (uint32_t)(largest ? ~top : top) ^ 0x80000000u;
  int32_t flip = largest ? 0 : -1, limit = (int32_t)key ^ flip;
  uint32_t any = 0;
  for (int i = 0; i < TOPK_BLOCK; i++) {
    uint32_t bits;
    memcpy(&bits, from + 4 * i, sizeof bits);
    any |= (topk_order(bits) ^ flip) > limit;
  }
  return any;
}

static void topk_block(const topk_data *x, interp_keyed *heap, int64_t first, int64_t n, const interp_keyed *v) {
  for (int64_t i = 0; i < n; i++) {
    if (v[i].key >= heap[0].key) continue; /* an equal one comes later */
    heap[0] = (interp_keyed){v[i].key, first + v[i].at};
    topk_sink(heap, x->k, 0);
  }
}

/* The heap's places are always some of the row's, also where it stops. */
static void topk_find(const topk_work *w, const char *from, interp_keyed *heap) {
  interp_keyed v[TOPK_BLOCK];
  const topk_data *x = w->x;
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)x->dtype);
  bool plain = x->dtype == XLAC_F32;
  interp_sort_keys((base_dtype)x->dtype, from, x->k, false, x->largest, heap);
  for (int64_t i = x->k / 2; i-- > 0 && !topk_stops(w, i);) topk_sink(heap, x->k, i);
  for (int64_t i = x->k; i < x->n && !topk_stops(w, i - x->k); i += TOPK_BLOCK) {
    int64_t n = interp_min(TOPK_BLOCK, x->n - i);
    if (plain && n == TOPK_BLOCK && !topk_any(from + i * bytes, heap[0].key, x->largest)) continue;
    interp_sort_keys((base_dtype)x->dtype, from + i * bytes, n, false, x->largest, v);
    topk_block(x, heap, i, n, v);
  }
  topk_in_order(w, heap);
}

/* The heap, in order, is the row's result. */
static void topk_put(const topk_work *w, int64_t row, const char *from, const interp_keyed *heap) {
  const topk_data *x = w->x;
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)x->dtype);
  int64_t place_bytes = (int64_t)base_dtype_bytes((base_dtype)x->place);
  for (int64_t i = 0; i < x->k; i++) {
    char *place = w->places + (row * x->k + i) * place_bytes;
    int32_t at = (int32_t)heap[i].at;
    memcpy(w->values + (row * x->k + i) * bytes, from + heap[i].at * bytes, (size_t)bytes);
    if (x->place == XLAC_S32)
      memcpy(place, &at, sizeof at);
    else
      base_store_i64((base_dtype)x->place, place, heap[i].at);
  }
}

static void topk_rows(void *ctx, size_t begin, size_t end) {
  const topk_work *w = ctx;
  const topk_data *x = w->x;
  interp_keyed *heap = w->heaps + (int64_t)begin / x->grain * x->k;
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)x->dtype), rows = interp_max(1, TOPK_POLL / x->n), asked = rows;
  for (int64_t row = (int64_t)begin; row < (int64_t)end; row++) {
    const char *from = w->from + row * x->n * bytes;
    topk_find(w, from, heap);
    if (--asked == 0 && rt_pool_stopping(w->pool)) return;
    if (asked == 0) asked = rows;
    topk_put(w, row, from, heap);
  }
}

static int topk_run(const cpu_routine_run *r) {
  const topk_data *x = r->data;
  topk_work w = {x, r->in[0], r->out[0], r->out[1], r->scratch, r->run->exe->pool};
  if (x->rows == 0 || x->k == 0) return 0;
  rt_parallel_for(r->run->exe->pool, (size_t)x->rows, (size_t)x->grain, topk_rows, &w);
  return 0;
}

/* The k largest (or smallest) of each row of op's operand; op gives values and places. */
static int topk_prepare(cpu_prepare_run *x, int64_t k, bool largest) {
  const ir_op *op = x->op;
  const ir_type *t = ir_operand_type(op, 0);
  const ir_type *values = op->type->elements[0], *places = op->type->elements[1];
  int64_t n = t->dims[t->rank - 1];
  if (values->dtype != t->dtype || !base_dtype_is_integer(places->dtype) || values->dims[t->rank - 1] != k) return 0;
  topk_data data = {.dtype = t->dtype, .place = places->dtype, .largest = largest};
  data.n = n;
  data.k = k;
  data.rows = n ? t->count / n : 0;
  data.grain = interp_max((data.rows + TOPK_SLOTS - 1) / TOPK_SLOTS, TOPK_PIECE / interp_max(1, n));
  data.grain = interp_max(1, data.grain);
  x->out->name = "heap";
  x->data = base_arena_memdup(x->arena, &data, sizeof data);
  x->out->scratch_bytes = (data.rows + data.grain - 1) / data.grain * k * (int64_t)sizeof(interp_keyed);
  x->out->work = (uint64_t)t->count;
  x->out->stoppable = true;
  x->code = topk_run;
  return x->data ? 0 : base_oom(x->err, "a top-k");
}

static bool topk_is_plain(const ir_op *op) {
  const ir_type *t = ir_operand_type(op, 0);
  return ir_is_tuple(op->type) && op->type->n_elements == 2 && ir_is_tensor(t) && t->rank > 0 &&
         interp_sort_keyable(t->dtype);
}

int cpu_prepare_topk(cpu_prepare_run *x) {
  if (!topk_is_plain(x->op)) return 0;
  const ir_type *t = ir_operand_type(x->op, 0);
  int64_t k = interp_min(ir_get_int(x->op, IR_ATTR_K, 0), t->dims[t->rank - 1]);
  return topk_prepare(x, k, ir_get_bool(x->op, IR_ATTR_LARGEST, true));
}

/* --- the custom call of that name, unless something is registered under it --- */

static bool topk_call_fits(const ir_op *op) {
  if (op->n_operands != 1 || !topk_is_plain(op)) return false;
  const ir_type *t = ir_operand_type(op, 0), *values = op->type->elements[0], *places = op->type->elements[1];
  if (!ir_is_tensor(values) || !ir_is_tensor(places) || values->rank != t->rank || places->rank != t->rank)
    return false;
  for (uint32_t d = 0; d < t->rank; d++) {
    bool fits = d + 1 < t->rank ? values->dims[d] == t->dims[d] : values->dims[d] <= t->dims[d];
    if (!fits || values->dims[d] != places->dims[d]) return false;
  }
  return true;
}

static int topk_call_run(const cpu_routine_run *r) {
  return cpu_builtin_is_registered(r) ? cpu_run_eval(r->run, r->step, r->pointers) : topk_run(r);
}

int cpu_prepare_topk_call(cpu_prepare_run *x) {
  if (!topk_call_fits(x->op)) return 0;
  const ir_type *t = ir_operand_type(x->op, 0);
  TRY(topk_prepare(x, x->op->type->elements[0]->dims[t->rank - 1], true));
  if (x->code) x->code = topk_call_run;
  return 0;
}
