/* From the condition and the body of a loop to instructions. */
#include "loop.h"

#include "vm_inside.h"

enum {
  LOOP_MAX_LANES = 1024,
  LOOP_MAX_BYTES = 32 << 10, /* of what a kernel's values take */
  LOOP_MAX_KEPT = 16 << 10,  /* of all that is written once */
  LOOP_MAX_VALUES = 128
};

BASE_VEC(loop_codes, loop_code);
BASE_VEC(loop_parts, loop_part);

typedef struct loop_make {
  base_alloc alloc;
  loop_codes once, codes;
  loop_parts parts;
  uint8_t area;   /* of the program's buffers */
  uint32_t first; /* instruction of the present part */
  uint32_t kept, scratch, scratch_most;
  uint64_t work;
} loop_make;

/* --- instructions, not bound yet --- */

static void loop_run_lanes(const loop_inst *i) {
  interp_loop_run(i->data, i->n, i->in, i->out);
}
static void loop_run_simple(const loop_inst *i) {
  const interp_loop *l = i->data;
  l->fn(l, i->n, i->in, i->out);
}
static void loop_run_gather(const loop_inst *i) {
  vm_gather(i->of, i->data, i->in[0], 0, i->n, i->out);
}
static void loop_run_index(const loop_inst *i) {
  vm_count_up(i->of, i->data, 0, i->n, i->out);
}
static void loop_run_fill(const loop_inst *i) {
  const kernel_value *v = i->data;
  vm_fill(base_dtype_bytes((base_dtype)v->dtype), i->in[0], i->n, i->out);
}

static bool loop_emit(loop_make *x, loop_code c) {
  return BASE_VEC_PUSH(x->alloc, &x->codes, c);
}

static uint32_t loop_room(int64_t n, const kernel_value *v) {
  int64_t bytes = n * (int64_t)base_dtype_bytes((base_dtype)v->dtype);
  return (uint32_t)(bytes <= 16 ? 16 : (bytes + 63) & ~(int64_t)63);
}

static loop_cell loop_new_scratch(loop_make *x, int64_t n, const kernel_value *v) {
  loop_cell c = {.area = LOOP_SCRATCH, .at = x->scratch};
  x->scratch += loop_room(n, v);
  if (x->scratch > x->scratch_most) x->scratch_most = x->scratch;
  return c;
}

/* Written before the first trip, the same at each. */
static bool loop_keep(loop_make *x, const kernel *k, const kernel_value *v, loop_cell *out) {
  loop_code c = {.inst = {.n = k->count, .data = v, .of = k, .fn = loop_run_index}};
  if (v->kind == KERNEL_CONSTANT) {
    c.inst.fn = loop_run_fill;
    c.inst.in[0] = v->data;
    c.n_in = 1;
    c.in[0].area = LOOP_FIXED;
  }
  c.out = *out = (loop_cell){.area = LOOP_KEPT, .at = x->kept};
  x->kept += loop_room(k->count, v);
  return BASE_VEC_PUSH(x->alloc, &x->once, c);
}

static bool loop_load(loop_make *x, const plan_step *s, const kernel_value *v, loop_cell *out) {
  const kernel *k = s->kernel;
  bool same = kernel_is_constant(k, v->index), here = k->count == 1 || (!same && kernel_is_dense(k, v->index));
  loop_cell from = {.area = x->area, .at = s->in[v->buffer]};
  loop_code c = {.inst = {.n = k->count, .data = v, .of = k, .fn = same ? loop_run_fill : loop_run_gather}, .n_in = 1};
  if (here || same) from.offset = v->index->offset * (int64_t)base_dtype_bytes((base_dtype)v->dtype);
  c.in[0] = *out = from;
  if (here) return true;
  c.out = *out = loop_new_scratch(x, k->count, v);
  return loop_emit(x, c);
}

static bool loop_op(loop_make *x, const plan_step *s, uint32_t i, const loop_cell *where, loop_cell *out) {
  const kernel *k = s->kernel;
  const kernel_value *v = &k->values[i];
  const interp_loop *l = &((const cpu_vm *)s->code)->insts[i].loop;
  loop_code c = {.inst = {.n = k->count, .data = l}, .n_in = v->n_in};
  loop_fn *scalar = k->count == 1 ? cpu_loop_scalar(v->op, l) : NULL;
  c.inst.fn = scalar ? scalar : l->work || l->wraps ? loop_run_lanes : loop_run_simple;
  for (uint32_t j = 0; j < v->n_in; j++) {
    c.in[j] = where[v->in[j]];
    if (c.in[j].area == LOOP_FIXED) c.inst.in[j] = k->values[v->in[j]].data;
  }
  c.out = *out;
  return loop_emit(x, c);
}

static bool loop_value(loop_make *x, const plan_step *s, uint32_t i, loop_cell *where) {
  const kernel *k = s->kernel;
  const kernel_value *v = &k->values[i];
  const kernel_store *store = &k->stores[0];
  switch ((kernel_kind)v->kind) {
    case KERNEL_LOAD:
      return loop_load(x, s, v, &where[i]);
    case KERNEL_CONSTANT:
      where[i].area = LOOP_FIXED;
      return k->count == 1 || loop_keep(x, k, v, &where[i]);
    case KERNEL_COUNT_UP:
      return loop_keep(x, k, v, &where[i]);
    case KERNEL_OP:
      break;
  }
  if (store->value == i && i + 1 == k->n_values)
    where[i] = (loop_cell){.area = x->area,
                           .at = s->out[0],
                           .offset = store->index.offset * (int64_t)base_dtype_bytes((base_dtype)v->dtype)};
  else
    where[i] = loop_new_scratch(x, k->count, v);
  return loop_op(x, s, i, where, &where[i]);
}

static bool loop_copy(loop_make *x, const loop_cell *from, const void *fixed, loop_cell to, int64_t bytes) {
  loop_code c = {.inst = {.fn = cpu_loop_copy(bytes), .n = bytes, .in = {fixed, NULL, NULL}}, .n_in = 1, .out = to};
  c.in[0] = *from;
  return loop_emit(x, c);
}

static bool loop_kernel(loop_make *x, const plan_step *s) {
  const kernel *k = s->kernel;
  const kernel_store *store = &k->stores[0];
  loop_cell where[LOOP_MAX_VALUES];
  memset(where, 0, sizeof where);
  x->scratch = 0;
  x->work += (uint64_t)k->count / 16 + 1;
  for (uint32_t i = 0; i < k->n_values; i++)
    if (!loop_value(x, s, i, where)) return false;
  const kernel_value *v = &k->values[store->value];
  if (v->kind == KERNEL_OP && store->value + 1 == k->n_values) return true;
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)v->dtype);
  loop_cell to = {.area = x->area, .at = s->out[0], .offset = store->index.offset * bytes};
  return loop_copy(x, &where[store->value], v->data, to, k->count * bytes);
}

/* Kernels whose values all fit into little memory. */
static bool loop_is_small(const loop_make *x, const plan_step *s) {
  if (s->kind != PLAN_KERNEL) return false;
  const kernel *k = s->kernel;
  if (k->reduction || k->count < 1 || k->count > LOOP_MAX_LANES || k->n_values > LOOP_MAX_VALUES) return false;
  if (!kernel_is_dense(k, &k->stores[0].index) || k->n_stores != 1) return false;
  uint64_t bytes = 0, kept = x->kept;
  for (uint32_t i = 0; i < k->n_values; i++) {
    uint32_t room = loop_room(k->count, &k->values[i]);
    if (k->values[i].kind == KERNEL_CONSTANT || k->values[i].kind == KERNEL_COUNT_UP)
      kept += k->count > 1 || k->values[i].kind == KERNEL_COUNT_UP ? room : 0;
    else
      bytes += room;
  }
  return bytes <= LOOP_MAX_BYTES && kept <= LOOP_MAX_KEPT;
}

static bool loop_end_part(loop_make *x, const plan_step *s) {
  loop_part part = {.first = x->first, .n = x->codes.n - x->first, .step = s};
  x->first = x->codes.n;
  return (part.n == 0 && !s) || BASE_VEC_PUSH(x->alloc, &x->parts, part);
}

static bool loop_program(loop_make *x, const plan_program *p, loop_area area) {
  x->area = (uint8_t)area;
  for (uint32_t i = 0; i < p->n_steps; i++) {
    const plan_step *s = &p->steps[i];
    bool ok = true;
    if (s->kind == PLAN_COPY && p->buffers[s->in[0]].bytes <= LOOP_MAX_BYTES) {
      loop_cell from = {.area = x->area, .at = s->in[0]}, to = {.area = x->area, .at = s->out[0]};
      ok = loop_copy(x, &from, NULL, to, p->buffers[s->in[0]].bytes);
    } else {
      ok = loop_is_small(x, s) ? loop_kernel(x, s) : loop_end_part(x, s);
    }
    if (!ok) return false;
  }
  return loop_end_part(x, NULL);
}

/* Instructions run once come first; the parts' numbers move accordingly. */
static bool loop_finish(loop_make *x, const plan_program *body, uint32_t n_condition, base_arena *arena, cpu_loop *l) {
  uint32_t once = x->once.n, all = once + x->codes.n;
  loop_code *codes = BASE_ARRAY(arena, loop_code, (size_t)all + 1);
  loop_part *parts = base_arena_memdup(arena, x->parts.items, x->parts.n * sizeof *parts);
  if (!codes || !parts) return false;
  if (once) memcpy(codes, x->once.items, once * sizeof *codes);
  if (x->codes.n) memcpy(codes + once, x->codes.items, x->codes.n * sizeof *codes);
  for (uint32_t i = 0; i < x->parts.n; i++) parts[i].first += once;
  *l = (cpu_loop){.n_codes = all, .n_once = once, .codes = codes, .n_parts = x->parts.n, .n_condition = n_condition};
  l->parts = parts;
  l->kept_bytes = x->kept;
  l->scratch_bytes = x->scratch_most;
  l->work = x->work + 1;
  for (uint32_t i = 0; i < body->n_results; i++) l->swaps = l->swaps || !body->stays[i];
  return true;
}

int cpu_loop_make(const plan_step *s, base_arena *arena, const cpu_loop **out, xlac_error *err) {
  loop_make x = {.alloc = arena->alloc};
  cpu_loop *l = BASE_NEW(arena, cpu_loop);
  assert(s->kind == PLAN_WHILE && s->n_nested == 2);
  bool ok = l && loop_program(&x, s->nested[0], LOOP_CONDITION);
  uint32_t n_condition = x.parts.n;
  ok = ok && loop_program(&x, s->nested[1], LOOP_BODY) && loop_finish(&x, s->nested[1], n_condition, arena, l);
  BASE_VEC_FREE(x.alloc, &x.once);
  BASE_VEC_FREE(x.alloc, &x.codes);
  BASE_VEC_FREE(x.alloc, &x.parts);
  *out = l;
  return ok ? 0 : base_oom(err, "a loop");
}
