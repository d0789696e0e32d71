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
  nat_type t = cpu_loop_type(s, buffer);
  uint32_t value = nat_loop_load(&x->code, p, p.width == 16 ? t.width : p.width, at, lwrite_is_still(x, &m));
  return nat_unpack(&x->code.body, value, t);
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
    t = (nat_type){NAT_SIGNED, 4, 4, 0, 0};
  }
  uint32_t most = nat_constant(b, t.width, (uint64_t)last), near = value;
  if (t.kind == NAT_SIGNED) near = nat_extreme(b, t, near, nat_constant(b, t.width, 0), true);
  near = nat_extreme(b, t, near, most, false);
  if (inside && !b->failed) *inside = nat_compare_ints(b, t.width, false, SCALAR_EQ, near, value);
  return nat_resize(b, near, 4, false);
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

void cpu_loop_move_elements(loop_make *x, loop_scope *s, uint32_t from, loop_scope *to_scope, uint32_t to, int64_t n) {
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
  cpu_loop_multiply(&x->code, &p, in[0], in[1], out);
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
    nat_loop_line(&x->code, t->op->name->s);
    if (t->kind == PLAN_KERNEL)
      cpu_loop_kernel(x, s, t);
    else if (t->kind == PLAN_COPY)
      cpu_loop_move_elements(x, s, t->in[0], s, t->out[0], p->buffers[t->in[0]].type->count);
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
  uint32_t *carries; /* by cell of the body: what it has in a trip; where elements are lanes, by the first of them */
  uint8_t *lanes;    /* by leaf: how many elements are lanes of one carry */
} lwrite_state;

static uint32_t lwrite_first(lwrite_state *g, uint32_t leaf, int64_t element) {
  loop_make *x = g->x;
  if (g->outer) return cpu_loop_get(x, g->outer, g->w->in[leaf], element);
  nat_type t = cpu_loop_type(g->pair[1], leaf);
  nat_place p = cpu_loop_place(x, (loop_memory){.area = LOOP_NOW, .at = leaf}, t, element, 0);
  return nat_unpack(&x->code.body, nat_loop_load(&x->code, p, p.width, NAT_NONE, true), t);
}

static void lwrite_begin_leaf(lwrite_state *g, uint32_t leaf, const uint32_t *first) {
  loop_make *x = g->x;
  loop_scope *condition = g->pair[0], *body = g->pair[1];
  nat_type t = cpu_loop_type(body, leaf);
  bool changes = cpu_loop_changes(body, leaf);
  int64_t n = body->p->buffers[leaf].type->count;
  unsigned lanes = g->lanes[leaf] = changes ? (uint8_t)cpu_loop_carried_lanes(body, leaf) : 1;
  for (int64_t e = 0; e < n && !x->failed; e++) {
    uint32_t value = first[e], cell = body->first[leaf] + (uint32_t)e, *carry = &g->carries[cell - e % lanes];
    if (changes && e % lanes == 0) *carry = nat_loop_carry(&x->code, value, lanes > 1);
    if (changes)
      value = lanes > 1 ? nat_loop_lane(&x->code, *carry, (unsigned)(e % lanes))
                        : nat_unpack(&x->code.body, *carry, cpu_loop_carried(t));
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
        cpu_loop_move_elements(x, g->outer, g->w->in[i], g->outer, g->w->out[i], type->count);
    } else {
      for (int64_t e = 0; e < type->count; e++) {
        uint32_t value = lwrite_first(g, i, e);
        bool pack = cpu_loop_changes(body, i);
        if (x->failed || x->code.body.failed) return first;
        if (pack) value = nat_pack(&x->code.body, value, cpu_loop_carried(cpu_loop_type(body, i)));
        first[i * LOOP_COPIED + e] = nat_loop_spread(&x->code, value);
      }
      unsigned lanes = cpu_loop_changes(body, i) ? cpu_loop_carried_lanes(body, i) : 1;
      for (int64_t e = 0; lanes > 1 && e < type->count && !x->failed && !x->code.body.failed; e += lanes)
        first[i * LOOP_COPIED + e] = nat_loop_pack(&x->code, &first[i * LOOP_COPIED + e],
                                                   type->count - e < lanes ? (unsigned)(type->count - e) : lanes);
    }
  }
  if (!first || x->code.body.failed) x->failed = true;
  return first;
}

static void lwrite_end_leaf(lwrite_state *g, uint32_t leaf, uint32_t from) {
  loop_make *x = g->x;
  const loop_scope *body = g->pair[1];
  nat_type t = cpu_loop_carried(cpu_loop_type(body, leaf));
  int64_t n = body->p->buffers[leaf].type->count;
  unsigned lanes = g->lanes[leaf], some = 1;
  uint32_t values[4];
  for (int64_t e = 0; e < n && !x->failed; e += lanes) {
    some = n - e < lanes ? (unsigned)(n - e) : lanes;
    for (unsigned k = 0; k < some; k++) values[k] = cpu_loop_get(x, body, from, e + k);
    if (x->failed || x->code.body.failed) return;
    uint32_t value = lanes > 1 ? nat_loop_pack(&x->code, values, some) : nat_pack(&x->code.body, values[0], t);
    nat_loop_carry_to(&x->code, g->carries[body->first[leaf] + e], value);
  }
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
    lwrite_end_leaf(g, i, from);
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
      unsigned lane = (unsigned)(e % g->lanes[i]);
      uint32_t cell = body->first[i] + (uint32_t)e - lane;
      uint32_t value = changes ? nat_loop_result(&x->code, g->carries[cell]) : lwrite_first(g, i, e);
      if (changes && g->lanes[i] > 1)
        value = nat_loop_lane(&x->code, value, lane);
      else if (changes)
        value = nat_unpack(&x->code.body, value, cpu_loop_carried(t));
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
  g.lanes = base_arena_zalloc(x->arena, w->n_in + 1);
  g.carries = BASE_ARRAY(x->arena, uint32_t, pair[1]->first[w->n_in ? w->n_in - 1 : 0] + cells + LOOP_CELLS);
  if (!g.carries || !g.lanes) x->failed = true;
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
