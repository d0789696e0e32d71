/* Code of loops from the plan's steps, in their order. */
#include "scope.h"

nat_type cpu_loop_type(const loop_scope *s, uint32_t buffer) {
  return nat_type_of((base_dtype)s->p->buffers[buffer].type->dtype);
}

/* --- elements --- */

/* Where the memory's pointer is. */
static uint32_t lwrite_array(loop_make *x, loop_memory m) {
  for (uint32_t i = 0; i < x->n_arrays; i++)
    if (loop_same_memory(&x->arrays[i], &m)) return i;
  if (x->n_arrays == NAT_LOOP_ARRAYS) return x->failed = true, 0;
  x->arrays[x->n_arrays] = m;
  return x->n_arrays++;
}

/* Whether nothing in the loop writes there: memory of frames is used for several things. */
static bool lwrite_is_still(const loop_make *x, const loop_memory *m) {
  if (m->area == LOOP_FIXED) return true;
  for (uint32_t i = 0; i < x->n_written; i++)
    if (loop_same_memory(&x->written[i], m)) return false;
  return m->area == LOOP_NOW;
}

nat_place cpu_loop_place(loop_make *x, loop_memory m, nat_type t, int64_t element, int64_t stride) {
  nat_place p = {.width = t.bytes, .offset = element * t.bytes, .stride = stride * t.bytes};
  if (p.offset != (int32_t)p.offset || p.stride != (int32_t)p.stride) x->failed = true;
  p.array = lwrite_array(x, m);
  return p;
}

uint32_t cpu_loop_load(loop_make *x, const loop_scope *s, uint32_t buffer, nat_place p, uint32_t at) {
  loop_memory m = x->arrays[p.array];
  return nat_unpack(&x->code.body, nat_loop_load(&x->code, p, at, lwrite_is_still(x, &m)), cpu_loop_type(s, buffer));
}

static uint32_t lwrite_literal(loop_make *x, const plan_buffer *b, int64_t element) {
  nat_lower_run r = {.b = &x->code.body};
  size_t bytes = base_dtype_bytes((base_dtype)b->type->dtype);
  kernel_value v = {.kind = KERNEL_CONSTANT, .dtype = (uint8_t)b->type->dtype};
  v.data = (const char *)b->literal->data + (size_t)element * bytes;
  return nat_lower_constant(&r, &v);
}

uint32_t cpu_loop_get(loop_make *x, const loop_scope *s, uint32_t buffer, int64_t element) {
  const plan_buffer *b = &s->p->buffers[buffer];
  if (x->failed || x->code.body.failed || !cpu_loop_type(s, buffer).width) return x->failed = true, 0;
  assert(element >= 0 && element < b->type->count);
  if (b->place == PLAN_CONSTANT && b->literal) return lwrite_literal(x, b, element);
  if (s->in_memory[buffer]) {
    nat_place p = cpu_loop_place(x, cpu_loop_memory_of(x, s, buffer), cpu_loop_type(s, buffer), element, 0);
    return cpu_loop_load(x, s, buffer, p, NAT_NONE);
  }
  uint32_t value = s->cells[s->first[buffer] + element];
  if (value == NAT_NONE) x->failed = true;
  return value;
}

void cpu_loop_note(loop_scope *s, uint32_t buffer) {
  const plan_buffer *b = &s->p->buffers[buffer];
  if (b->place == PLAN_ARGUMENT) s->last_argument[b->number] = buffer;
  if (b->place == PLAN_RESULT) s->last_result[b->number] = buffer;
}

void cpu_loop_put_element(loop_make *x, loop_scope *s, uint32_t buffer, int64_t element, uint32_t value) {
  if (x->failed || x->code.body.failed) return;
  cpu_loop_note(s, buffer);
  if (!s->in_memory[buffer]) {
    s->cells[s->first[buffer] + element] = value;
    return;
  }
  nat_type t = cpu_loop_type(s, buffer);
  nat_place p = cpu_loop_place(x, cpu_loop_memory_of(x, s, buffer), t, element, 0);
  nat_loop_put(&x->code, p, NAT_NONE, nat_pack(&x->code.body, value, t));
}

/* --- indices --- */

uint32_t cpu_loop_index(loop_make *x, nat_type t, uint32_t value, int64_t last, uint32_t *inside) {
  nat_body *b = &x->code.body;
  if (b->failed || (t.kind != NAT_SIGNED && t.kind != NAT_UNSIGNED) || last > INT32_MAX) return x->failed = true, 0;
  if (t.width < 4) {
    value = nat_resize(b, value, 4, t.kind == NAT_SIGNED);
    t = (nat_type){NAT_SIGNED, 4, 4};
  }
  uint32_t most = nat_constant(b, t.width, (uint64_t)last), near = value;
  if (t.kind == NAT_SIGNED) near = nat_extreme(b, t, near, nat_constant(b, t.width, 0), true);
  near = nat_extreme(b, t, near, most, false);
  if (inside && !b->failed) *inside = nat_compare_ints(b, t.width, false, SCALAR_EQ, near, value);
  return nat_resize(b, near, 4, false);
}

/* --- kernels --- */

/* One iteration of a kernel. */
typedef struct lwrite_kernel {
  loop_make *x;
  loop_scope *s;
  const plan_step *t;
  nat_lower_run lower;
  int64_t index[KERNEL_MAX_RANK];
} lwrite_kernel;

static int64_t lwrite_at(const lwrite_kernel *w, const kernel_index *index) {
  int64_t at = index->offset;
  for (uint32_t d = 0; d < w->t->kernel->rank; d++) at += index->strides[d] * w->index[d];
  return at;
}

static bool lwrite_is_in(const lwrite_kernel *w, const kernel_box *box) {
  for (uint32_t d = 0; d < w->t->kernel->rank; d++)
    if (w->index[d] < box->from[d] || w->index[d] >= box->to[d]) return false;
  return true;
}

static uint32_t lwrite_number(lwrite_kernel *w, const kernel_value *v, int64_t number) {
  char element[16] = {0};
  kernel_value constant = {.kind = KERNEL_CONSTANT, .dtype = v->dtype, .data = element};
  base_convert((base_dtype)v->dtype, element, XLAC_S64, &number, 1);
  return nat_lower_constant(&w->lower, &constant);
}

/* From a place that is computed: elements by one index, or the sum of several. */
static uint32_t lwrite_computed_load(lwrite_kernel *w, const kernel_value *v) {
  loop_make *x = w->x;
  nat_body *b = &x->code.body;
  uint32_t buffer = w->t->in[v->buffer], sum = NAT_NONE;
  int64_t stride = v->n_in == 1 ? v->bases[0].stride : 1;
  for (uint32_t j = 0; j < v->n_in && !x->failed; j++) {
    nat_type t = nat_type_of((base_dtype)w->t->kernel->values[v->in[j]].dtype);
    uint32_t part = cpu_loop_index(x, t, w->lower.values[v->in[j]], v->bases[j].last, NULL);
    if (v->n_in > 1) part = nat_op2(b, NAT_IMUL, 4, part, nat_constant(b, 4, (uint64_t)v->bases[j].stride));
    sum = sum == NAT_NONE ? part : nat_op2(b, NAT_IADD, 4, sum, part);
  }
  if (x->failed || b->failed || w->s->p->buffers[buffer].type->count > INT32_MAX) return x->failed = true, 0;
  loop_memory m = cpu_loop_memory_of(x, w->s, buffer);
  nat_place p = cpu_loop_place(x, m, cpu_loop_type(w->s, buffer), lwrite_at(w, v->index), stride);
  return x->failed ? 0 : cpu_loop_load(x, w->s, buffer, p, sum);
}

static uint32_t lwrite_value(lwrite_kernel *w, uint32_t i) {
  const kernel_value *v = &w->t->kernel->values[i];
  switch ((kernel_kind)v->kind) {
    case KERNEL_LOAD:
      if (v->box && !lwrite_is_in(w, v->box)) return lwrite_number(w, v, 0);
      if (v->n_in) return lwrite_computed_load(w, v);
      return cpu_loop_get(w->x, w->s, w->t->in[v->buffer], lwrite_at(w, v->index));
    case KERNEL_COUNT_UP:
      return lwrite_number(w, v, lwrite_at(w, v->index));
    case KERNEL_CONSTANT:
      return nat_lower_constant(&w->lower, v);
    case KERNEL_PICK:
      return w->lower.values[v->in[lwrite_is_in(w, v->pick) ? 0 : 1]];
    default:
      return nat_lower_op(&w->lower, v);
  }
}

static void lwrite_next_index(lwrite_kernel *w) {
  const kernel *k = w->t->kernel;
  for (uint32_t d = k->rank; d-- > 0;) {
    if (++w->index[d] < k->extents[d]) return;
    w->index[d] = 0;
  }
}

/* What a store of a kernel combines. */
static void lwrite_combined(lwrite_kernel *w, uint32_t store, const uint32_t *stored) {
  const kernel *k = w->t->kernel;
  uint32_t out[LOOP_COUNT];
  cpu_loop_combine(&w->x->code.body, k, store, stored, w->lower.values[k->stores[store].init], out);
  for (int64_t i = 0; i < k->reduction->outer * k->reduction->inner; i++)
    cpu_loop_put_element(w->x, w->s, w->t->out[k->stores[store].buffer], i, out[i]);
}

/* All iterations, then their stores: an output may be the memory of an input. */
static void lwrite_kernel_step(loop_make *x, loop_scope *s, const plan_step *t) {
  const kernel *k = t->kernel;
  size_t n = (size_t)k->n_stores * (size_t)k->count;
  lwrite_kernel w = {.x = x, .s = s, .t = t, .lower = {.b = &x->code.body}};
  uint32_t *stored = BASE_ARRAY(x->arena, uint32_t, n + 1);
  int64_t *at = BASE_ARRAY(x->arena, int64_t, n + 1);
  w.lower.values = BASE_ARRAY(x->arena, uint32_t, k->n_values + 1);
  x->code.body.k = k;
  if (!stored || !at || !w.lower.values) x->failed = true;
  for (int64_t i = 0; i < k->count && !x->failed; i++, lwrite_next_index(&w)) {
    for (uint32_t j = 0; j < k->n_values && !x->failed && !x->code.body.failed; j++)
      w.lower.values[j] = lwrite_value(&w, j);
    for (uint32_t j = 0; j < k->n_stores; j++) {
      stored[i * k->n_stores + j] = w.lower.values[k->stores[j].value];
      at[i * k->n_stores + j] = lwrite_at(&w, &k->stores[j].index);
    }
    if (x->code.body.failed) x->failed = true;
  }
  for (size_t i = 0; i < n && !x->failed; i++)
    if (!k->stores[i % k->n_stores].by)
      cpu_loop_put_element(x, s, t->out[k->stores[i % k->n_stores].buffer], at[i], stored[i]);
  for (uint32_t i = 0; i < k->n_stores && !x->failed; i++)
    if (k->stores[i].by) lwrite_combined(&w, i, stored);
}

/* --- moves --- */

void cpu_loop_copy(loop_make *x, nat_place from, uint32_t from_at, nat_place to, uint32_t to_at, int64_t bytes) {
  if (!x->failed && bytes <= NAT_LOOP_COPY)
    nat_loop_copy(&x->code, from, from_at, to, to_at, (uint32_t)bytes);
  else
    x->failed = true;
}

bool cpu_loop_may_copy(const loop_scope *s, uint32_t from, const loop_scope *of, uint32_t to, int64_t n) {
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)s->p->buffers[from].type->dtype);
  return s->in_memory[from] && of->in_memory[to] && n > LOOP_CELLS && n <= NAT_LOOP_COPY / bytes &&
         !(s->p->buffers[from].place == PLAN_CONSTANT && !s->p->buffers[from].literal);
}

/* n elements, read before the first is written. */
static void lwrite_move(loop_make *x, loop_scope *s, uint32_t from, loop_scope *to_scope, uint32_t to, int64_t n) {
  uint32_t values[LOOP_COPIED];
  if (cpu_loop_may_copy(s, from, to_scope, to, n)) {
    nat_type t = cpu_loop_type(s, from);
    nat_place a = cpu_loop_place(x, cpu_loop_memory_of(x, s, from), t, 0, 0);
    nat_place b = cpu_loop_place(x, cpu_loop_memory_of(x, to_scope, to), t, 0, 0);
    cpu_loop_copy(x, a, NAT_NONE, b, NAT_NONE, n * t.bytes);
    cpu_loop_note(to_scope, to);
    return;
  }
  assert(n <= LOOP_COPIED);
  for (int64_t i = 0; i < n; i++) values[i] = cpu_loop_get(x, s, from, i);
  for (int64_t i = 0; i < n; i++) cpu_loop_put_element(x, to_scope, to, i, values[i]);
}

static void lwrite_concatenate(loop_make *x, loop_scope *s, const plan_step *t) {
  uint32_t d = (uint32_t)ir_get_ints(t->op, IR_ATTR_DIMENSIONS)->v[0], n = 0, values[LOOP_COPIED];
  const ir_type *to = t->op->type;
  int64_t outer = 1, inner = 1;
  for (uint32_t i = 0; i < to->rank; i++) *(i < d ? &outer : &inner) *= i == d ? 1 : to->dims[i];
  for (int64_t o = 0; o < outer; o++)
    for (uint32_t i = 0; i < t->n_in; i++) {
      int64_t part = ir_operand_type(t->op, i)->dims[d] * inner;
      for (int64_t j = 0; j < part; j++) values[n++] = cpu_loop_get(x, s, t->in[i], o * part + j);
    }
  assert(n == to->count);
  for (uint32_t i = 0; i < n; i++) cpu_loop_put_element(x, s, t->out[0], i, values[i]);
}

static void lwrite_product(loop_make *x, loop_scope *s, const plan_step *t) {
  uint32_t in[2][LOOP_OPERAND], out[LOOP_COPIED];
  loop_product p;
  if (!cpu_loop_product_of(t->op, &p)) x->failed = true;
  for (uint32_t i = 0; i < 2; i++)
    for (int64_t j = 0; j < ir_operand_type(t->op, i)->count && !x->failed; j++)
      in[i][j] = cpu_loop_get(x, s, t->in[i], j);
  if (x->failed || x->code.body.failed) return;
  cpu_loop_multiply(&x->code.body, &p, in[0], in[1], out);
  for (int64_t i = 0; i < t->op->type->count; i++) cpu_loop_put_element(x, s, t->out[0], i, out[i]);
}

static void lwrite_routine(loop_make *x, loop_scope *s, const plan_step *t) {
  if (t->op->opcode == IR_OP_DOT)
    lwrite_product(x, s, t);
  else if (t->op->opcode == IR_OP_CONCATENATE)
    lwrite_concatenate(x, s, t);
  else if (t->op->opcode == IR_OP_REDUCE)
    cpu_loop_find(x, s, t);
  else
    cpu_loop_move(x, s, t);
}

/* --- programs --- */

void cpu_loop_write_program(loop_make *x, loop_scope *s) {
  const plan_program *p = s->p;
  for (uint32_t i = 0; i < p->n_steps && !x->failed; i++) {
    const plan_step *t = &p->steps[i];
    if (t->kind == PLAN_KERNEL)
      lwrite_kernel_step(x, s, t);
    else if (t->kind == PLAN_COPY)
      lwrite_move(x, s, t->in[0], s, t->out[0], p->buffers[t->in[0]].type->count);
    else if (t->kind == PLAN_WHILE)
      cpu_loop_write(x, s, t, s->inner[i]);
    else if (t->kind == PLAN_CONDITIONAL)
      cpu_loop_branch(x, s, t, s->inner[i]);
    else
      lwrite_routine(x, s, t);
    if (x->code.body.failed) x->failed = true;
  }
}

/* --- loops --- */

/* The state of one loop while it is written. */
typedef struct lwrite_state {
  loop_make *x;
  loop_scope *outer; /* NULL: of the outermost loop, whose state lies in memory before and after */
  const plan_step *w;
  loop_scope *const *pair;
  uint32_t *carries; /* by cell of the body: what it has in a trip, or NAT_NONE */
} lwrite_state;

static uint32_t lwrite_first(lwrite_state *g, uint32_t leaf, int64_t element) {
  loop_make *x = g->x;
  if (g->outer) return cpu_loop_get(x, g->outer, g->w->in[leaf], element);
  nat_type t = cpu_loop_type(g->pair[1], leaf);
  nat_place p = cpu_loop_place(x, (loop_memory){.area = LOOP_NOW, .at = leaf}, t, element, 0);
  return nat_unpack(&x->code.body, nat_loop_load(&x->code, p, NAT_NONE, true), t);
}

static void lwrite_begin_leaf(lwrite_state *g, uint32_t leaf, const uint32_t *first) {
  loop_make *x = g->x;
  loop_scope *condition = g->pair[0], *body = g->pair[1];
  nat_type t = cpu_loop_type(body, leaf);
  bool changes = cpu_loop_changes(body, leaf);
  for (int64_t e = 0; e < body->p->buffers[leaf].type->count && !x->failed; e++) {
    uint32_t value = first[e], cell = body->first[leaf] + (uint32_t)e;
    if (changes) {
      g->carries[cell] = nat_loop_carry(&x->code, value);
      value = nat_unpack(&x->code.body, g->carries[cell], cpu_loop_carried(t));
    }
    body->cells[cell] = condition->cells[condition->first[leaf] + e] = value;
  }
}

/* What leaves have before the first trip: read outside of the loop. */
static uint32_t *lwrite_begin(lwrite_state *g) {
  loop_make *x = g->x;
  const loop_scope *body = g->pair[1];
  uint32_t *first = BASE_ARRAY(x->arena, uint32_t, (size_t)g->w->n_in *LOOP_COPIED + 1);
  for (uint32_t i = 0; first && i < g->w->n_in && !x->failed; i++) {
    const ir_type *type = body->p->buffers[i].type;
    if (!type) { /* a token */
      x->failed = true;
    } else if (body->in_memory[i]) {
      if (!g->outer) continue;
      loop_memory from = cpu_loop_memory_of(x, g->outer, g->w->in[i]),
                  to = cpu_loop_memory_of(x, g->outer, g->w->out[i]);
      bool there = g->outer->in_memory[g->w->in[i]] && loop_same_memory(&from, &to);
      if (there) continue;
      if (type->count > LOOP_COPIED && !cpu_loop_may_copy(g->outer, g->w->in[i], g->outer, g->w->out[i], type->count))
        x->failed = true;
      else
        lwrite_move(x, g->outer, g->w->in[i], g->outer, g->w->out[i], type->count);
    } else {
      for (int64_t e = 0; e < type->count; e++) {
        uint32_t value = lwrite_first(g, i, e);
        bool pack = cpu_loop_changes(body, i);
        first[i * LOOP_COPIED + e] =
            pack ? nat_pack(&x->code.body, value, cpu_loop_carried(cpu_loop_type(body, i))) : value;
      }
    }
  }
  if (!first) x->failed = true;
  return first;
}

/* What a trip leaves, and what the loop comes to. */
static void lwrite_end(lwrite_state *g) {
  loop_make *x = g->x;
  loop_scope *body = g->pair[1];
  for (uint32_t i = 0; i < g->w->n_in && !x->failed; i++) {
    if (body->in_memory[i] || !cpu_loop_changes(body, i)) continue;
    uint32_t from = body->p->stays[i] ? body->last_argument[i] : body->last_result[i];
    if (from == UINT32_MAX) {
      x->failed = true;
      return;
    }
    nat_type t = cpu_loop_carried(cpu_loop_type(body, i));
    for (int64_t e = 0; e < body->p->buffers[i].type->count && !x->failed; e++) {
      uint32_t value = nat_pack(&x->code.body, cpu_loop_get(x, body, from, e), t);
      nat_loop_carry_to(&x->code, g->carries[body->first[i] + e], value);
    }
  }
}

static void lwrite_results(lwrite_state *g) {
  loop_make *x = g->x;
  const loop_scope *body = g->pair[1];
  for (uint32_t i = 0; i < g->w->n_in && !x->failed; i++) {
    bool changes = cpu_loop_changes(body, i);
    if (body->in_memory[i] || (!changes && !g->outer)) continue;
    nat_type t = cpu_loop_type(body, i);
    for (int64_t e = 0; e < body->p->buffers[i].type->count && !x->failed; e++) {
      uint32_t cell = body->first[i] + (uint32_t)e;
      uint32_t value = changes ? nat_loop_result(&x->code, g->carries[cell]) : lwrite_first(g, i, e);
      if (changes) value = nat_unpack(&x->code.body, value, cpu_loop_carried(t));
      if (g->outer) {
        cpu_loop_put_element(x, g->outer, g->w->out[i], e, value);
      } else {
        nat_place p = cpu_loop_place(x, (loop_memory){.area = LOOP_NOW, .at = i}, t, e, 0);
        nat_loop_put(&x->code, p, NAT_NONE, nat_pack(&x->code.body, value, t));
      }
    }
  }
}

/* Parts of `pair` are written once: a program has one place in the loop. */
void cpu_loop_write(loop_make *x, loop_scope *outer, const plan_step *w, loop_scope *const *pair) {
  lwrite_state g = {.x = x, .outer = outer, .w = w, .pair = pair};
  uint32_t cells = 1, flag = 0;
  for (uint32_t i = 0; i < w->n_in; i++)
    if (!pair[1]->in_memory[i] && pair[1]->p->buffers[i].type) cells += (uint32_t)pair[1]->p->buffers[i].type->count;
  const uint32_t *first = lwrite_begin(&g);
  g.carries = BASE_ARRAY(x->arena, uint32_t, pair[1]->first[w->n_in ? w->n_in - 1 : 0] + cells + LOOP_CELLS);
  if (!g.carries) x->failed = true;
  if (x->failed) return;
  nat_loop_enter(&x->code, false);
  for (uint32_t i = 0; i < w->n_in && !x->failed; i++)
    if (!pair[1]->in_memory[i]) lwrite_begin_leaf(&g, i, first + i * LOOP_COPIED);
  cpu_loop_write_program(x, pair[0]);
  flag = pair[0]->last_result[0];
  if (flag == UINT32_MAX) x->failed = true;
  if (!x->failed) nat_loop_exit_unless(&x->code, cpu_loop_get(x, pair[0], flag, 0));
  if (!x->failed) cpu_loop_write_program(x, pair[1]);
  if (!x->failed) lwrite_end(&g);
  if (x->failed) return;
  nat_loop_leave(&x->code);
  lwrite_results(&g);
}
