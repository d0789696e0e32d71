/* Whether a loop can be code, and what of it is in registers. */
#include "scope.h"

loop_memory cpu_loop_memory_of(loop_make *x, const loop_scope *s, uint32_t buffer) {
  const plan_buffer *b = &s->p->buffers[buffer];
  loop_memory m = {.area = LOOP_FIXED};
  switch ((plan_place)b->place) {
    case PLAN_FRAME:
      m = s->frame;
      m.at += b->offset;
      break;
    case PLAN_ARGUMENT:
      m = s->arguments[b->number];
      break;
    case PLAN_RESULT:
      if (s->spare) m = s->spare[b->number];
      break;
    case PLAN_CONSTANT:
      m.fixed = b->literal ? b->literal->data : NULL;
      break;
    case PLAN_SPARE:
    case PLAN_TILE:
      break;
  }
  if (m.area == LOOP_FIXED && !m.fixed) x->failed = true;
  return m;
}

static int64_t lscan_count(const plan_buffer *b) {
  return b->type ? b->type->count : 0;
}

/* By its size and its type; and where it is, since all that is computed there is. */
static bool lscan_is_large(const plan_buffer *b) {
  return lscan_count(b) > LOOP_CELLS;
}

static void lscan_fail_unless(loop_make *x, bool ok) {
  if (!ok) x->failed = true;
}

/* --- steps --- */

static bool lscan_value(loop_make *x, loop_scope *s, const plan_step *t, const kernel_value *v) {
  const kernel *k = t->kernel;
  if (!nat_type_of((base_dtype)v->dtype).width) return false;
  switch ((kernel_kind)v->kind) {
    case KERNEL_LOAD:
      if (v->n_in) s->in_memory[t->in[v->buffer]] = 1;
      return true;
    case KERNEL_COUNT_UP:
    case KERNEL_CONSTANT:
    case KERNEL_PICK:
      return true;
    case KERNEL_OP:
      return nat_op_width(k, v) > 0;
    case KERNEL_SCAN:
      break;
  }
  (void)x;
  return false;
}

static bool lscan_kernel(loop_make *x, loop_scope *s, const plan_step *t) {
  const kernel *k = t->kernel;
  if (k->count < 1 || k->count > LOOP_COUNT || (k->reduction && !cpu_loop_may_combine(k))) return false;
  x->n_values += (uint32_t)k->count * k->n_values;
  if (x->n_values > LOOP_VALUES) return false;
  for (uint32_t i = 0; i < k->n_values; i++)
    if (!lscan_value(x, s, t, &k->values[i])) return false;
  return true;
}

static bool lscan_product(loop_make *x, const plan_step *t) {
  loop_product p;
  if (!cpu_loop_product_of(t->op, &p) || p.work > LOOP_TERMS) return false;
  for (uint32_t i = 0; i < 2; i++)
    if (ir_operand_type(t->op, i)->count > LOOP_OPERAND) return false;
  x->n_values += 2 * (uint32_t)p.work;
  return t->op->type->count <= LOOP_COPIED && x->n_values <= LOOP_VALUES;
}

/* A product, a concatenation, argmax and argmin, or elements at a computed place. */
static bool lscan_routine(loop_make *x, loop_scope *s, const plan_step *t) {
  if (t->op->opcode == IR_OP_DOT) return lscan_product(x, t);
  if (t->op->opcode == IR_OP_CONCATENATE)
    return lscan_count(&s->p->buffers[t->out[0]]) <= LOOP_COPIED &&
           ir_operand_type(t->op, 0)->dtype == t->op->type->dtype;
  return t->op->opcode == IR_OP_REDUCE ? cpu_loop_may_find(x, t) : cpu_loop_may_move(x, s, t);
}

/* The state of a loop in the loop: leaf i is the memory of result i of the step. */
static bool lscan_inner(loop_make *x, loop_scope *s, const plan_step *t, uint32_t step) {
  uint32_t n = t->n_in, scratch = n;
  loop_memory *now = BASE_ARRAY(x->arena, loop_memory, n + 1), *next = BASE_ARRAY(x->arena, loop_memory, n + 1);
  loop_memory frames[2];
  loop_scope **pair = BASE_ARRAY(x->arena, loop_scope *, 2);
  if (!now || !next || !pair) return false;
  for (uint32_t i = 0; i < n; i++) {
    now[i] = cpu_loop_memory_of(x, s, t->out[i]);
    next[i] = t->nested[1]->stays[i] ? now[i] : cpu_loop_memory_of(x, s, t->out[scratch++]);
  }
  frames[0] = frames[1] = cpu_loop_memory_of(x, s, t->frame);
  frames[1].at += (t->nested[0]->frame_bytes + PLAN_ALIGN - 1) & ~(int64_t)(PLAN_ALIGN - 1);
  if (x->failed) return false;
  cpu_loop_scan(x, t, frames, now, next, pair);
  s->inner[step] = pair;
  for (uint32_t i = 0; i < n && !x->failed; i++)
    if (pair[1]->in_memory[i]) s->in_memory[t->out[i]] = 1;
  return !x->failed;
}

/* Where its memory is, if it has any that is known before a run: a value needs none. */
static loop_memory lscan_memory(const loop_make *x, const loop_scope *s, uint32_t buffer) {
  loop_make asks = *x;
  return cpu_loop_memory_of(&asks, s, buffer);
}

bool cpu_loop_result_in_memory(const loop_scope *s, uint32_t j) {
  for (uint32_t b = 0; b < s->p->n_buffers; b++)
    if (s->p->buffers[b].place == PLAN_RESULT && s->p->buffers[b].number == j && s->in_memory[b]) return true;
  return false;
}

/* A result that is memory in one branch is memory in all. */
static void lscan_agree_on_results(loop_scope *s, const plan_step *t, loop_scope *const *scopes) {
  for (uint32_t j = 0; j < t->n_out; j++) {
    bool memory = false;
    for (uint32_t k = 0; k < t->n_nested; k++) memory = memory || cpu_loop_result_in_memory(scopes[k], j);
    if (!memory) continue;
    s->in_memory[t->out[j]] = 1;
    for (uint32_t k = 0; k < t->n_nested; k++)
      for (uint32_t b = 0; b < scopes[k]->p->n_buffers; b++)
        if (scopes[k]->p->buffers[b].place == PLAN_RESULT && scopes[k]->p->buffers[b].number == j)
          scopes[k]->in_memory[b] = 1;
  }
}

static loop_scope *lscan_program(loop_make *x, const plan_program *p, loop_memory frame, const loop_memory *arguments,
                                 const loop_memory *spare);
static void lscan_note_written(loop_make *x, const loop_scope *s);

/* A branch, whose arguments are operands number `first` and on. Its results are those of the step. */
static loop_scope *lscan_branch(loop_make *x, loop_scope *s, const plan_step *t, uint32_t k, uint32_t first) {
  const plan_program *p = t->nested[k];
  loop_memory *in = BASE_ARRAY(x->arena, loop_memory, p->n_arguments + 1);
  loop_memory *out = BASE_ARRAY(x->arena, loop_memory, t->n_out + 1);
  if (!in || !out) return NULL;
  for (uint32_t i = 0; i < p->n_arguments; i++)
    if (p->buffers[i].type)
      in[i] = lscan_memory(x, s, t->in[first + i]);
    else
      return NULL;
  for (uint32_t j = 0; j < t->n_out; j++) out[j] = lscan_memory(x, s, t->out[j]);
  loop_scope *scope = lscan_program(x, p, cpu_loop_memory_of(x, s, t->frame), in, out);
  for (uint32_t i = 0; i < p->n_arguments && !x->failed; i++)
    if (scope->in_memory[i]) s->in_memory[t->in[first + i]] = 1;
  return scope;
}

static bool lscan_conditional(loop_make *x, loop_scope *s, const plan_step *t, uint32_t step) {
  loop_scope **scopes = BASE_ARRAY(x->arena, loop_scope *, t->n_nested + 1);
  if (!scopes) return false;
  for (uint32_t j = 0; j < t->n_out; j++)
    if (!s->p->buffers[t->out[j]].type || !nat_type_of((base_dtype)s->p->buffers[t->out[j]].type->dtype).width)
      return false;
  for (uint32_t k = 0, first = 1; k < t->n_nested && !x->failed; k++) {
    if (!(scopes[k] = lscan_branch(x, s, t, k, first))) return false;
    first += t->nested[k]->n_arguments;
  }
  if (!x->failed) lscan_agree_on_results(s, t, scopes);
  for (uint32_t k = 0; k < t->n_nested && !x->failed; k++) lscan_note_written(x, scopes[k]);
  s->inner[step] = scopes;
  return !x->failed;
}

static bool lscan_step(loop_make *x, loop_scope *s, uint32_t step) {
  const plan_step *t = &s->p->steps[step];
  switch ((plan_step_kind)t->kind) {
    case PLAN_KERNEL:
      return lscan_kernel(x, s, t);
    case PLAN_COPY:
      return lscan_count(&s->p->buffers[t->in[0]]) <= LOOP_COPIED ||
             cpu_loop_may_copy(s, t->in[0], s, t->out[0], lscan_count(&s->p->buffers[t->in[0]]));
    case PLAN_ROUTINE:
      return lscan_routine(x, s, t);
    case PLAN_WHILE:
      return lscan_inner(x, s, t, step);
    case PLAN_CONDITIONAL:
      return lscan_conditional(x, s, t, step);
    default:
      return false;
  }
}

/* --- programs --- */

static bool lscan_begin(loop_make *x, loop_scope *s) {
  const plan_program *p = s->p;
  uint32_t cells = 0;
  s->in_memory = base_arena_zalloc(x->arena, p->n_buffers + 1);
  s->first = BASE_ARRAY(x->arena, uint32_t, p->n_buffers + 1);
  s->last_argument = BASE_ARRAY(x->arena, uint32_t, p->n_arguments + 1);
  s->last_result = BASE_ARRAY(x->arena, uint32_t, p->n_results + 1);
  s->inner = base_arena_zalloc(x->arena, (p->n_steps + 1) * sizeof *s->inner);
  if (!s->in_memory || !s->first || !s->last_argument || !s->last_result || !s->inner) return false;
  for (uint32_t i = 0; i < p->n_arguments; i++) s->last_argument[i] = i;
  for (uint32_t i = 0; i < p->n_results; i++) s->last_result[i] = UINT32_MAX;
  for (uint32_t i = 0; i < p->n_buffers; i++) {
    s->in_memory[i] = lscan_is_large(&p->buffers[i]);
    s->first[i] = cells;
    cells += s->in_memory[i] ? 0 : (uint32_t)lscan_count(&p->buffers[i]);
  }
  s->cells = BASE_ARRAY(x->arena, uint32_t, cells + 1);
  for (uint32_t i = 0; s->cells && i < cells; i++) s->cells[i] = NAT_NONE;
  return s->cells != NULL;
}

static loop_scope *lscan_program(loop_make *x, const plan_program *p, loop_memory frame, const loop_memory *arguments,
                                 const loop_memory *spare) {
  loop_scope *s = BASE_NEW(x->arena, loop_scope);
  if (!s || p->interpreted) return x->failed = true, NULL;
  *s = (loop_scope){.p = p, .frame = frame, .arguments = arguments, .spare = spare};
  lscan_fail_unless(x, lscan_begin(x, s));
  for (uint32_t i = 0; i < p->n_steps && !x->failed; i++) {
    lscan_fail_unless(x, lscan_step(x, s, i));
    if (x->failed && !x->stops) x->stops = p->steps[i].op;
  }
  return s;
}

bool cpu_loop_changes(const loop_scope *body, uint32_t i) {
  const plan_program *p = body->p;
  if (!p->stays[i]) return true;
  for (uint32_t j = 0; j < p->n_steps; j++)
    for (uint32_t k = 0; k < p->steps[j].n_out; k++) {
      const plan_buffer *b = &p->buffers[p->steps[j].out[k]];
      if (b->place == PLAN_ARGUMENT && b->number == i) return true;
    }
  return false;
}

/* All buffers that lie in leaf i are memory. */
static void lscan_to_memory(loop_scope *s, uint32_t i) {
  for (uint32_t b = 0; b < s->p->n_buffers; b++)
    if (s->p->buffers[b].place == PLAN_ARGUMENT && s->p->buffers[b].number == i) s->in_memory[b] = 1;
}

/* The condition's result is a cell; what is in memory anywhere is so everywhere, and then it must stay. */
static void lscan_agree(loop_make *x, const plan_step *w, loop_scope *const *pair) {
  for (uint32_t i = 0; i < w->n_in && !x->failed; i++) {
    bool memory = pair[0]->in_memory[i] || pair[1]->in_memory[i];
    for (int k = 0; memory && k < 2; k++) lscan_to_memory(pair[k], i);
    lscan_fail_unless(x, !memory || pair[1]->p->stays[i]);
  }
}

/* All that is written to memory. */
static void lscan_note_written(loop_make *x, const loop_scope *s) {
  for (uint32_t i = 0; i < s->p->n_steps; i++)
    for (uint32_t k = 0; k < s->p->steps[i].n_out; k++) {
      uint32_t out = s->p->steps[i].out[k];
      if (!s->in_memory[out] || !s->p->buffers[out].type) continue;
      if (x->n_written == sizeof x->written / sizeof *x->written) {
        x->failed = true;
        return;
      }
      x->written[x->n_written++] = cpu_loop_memory_of(x, s, out);
    }
}

void cpu_loop_scan(loop_make *x, const plan_step *w, const loop_memory *frames, const loop_memory *now,
                   const loop_memory *next, loop_scope **pair) {
  assert(w->kind == PLAN_WHILE && w->n_nested == 2);
  pair[0] = lscan_program(x, w->nested[0], frames[0], now, NULL);
  if (!x->failed) pair[1] = lscan_program(x, w->nested[1], frames[1], now, next);
  if (!x->failed) lscan_agree(x, w, pair);
  for (int i = 0; i < 2 && !x->failed; i++) lscan_note_written(x, pair[i]);
}
