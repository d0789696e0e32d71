/* Registers are given out while code is emitted, in one pass over the body's instructions: a value gets a register when
 * it is computed and gives it up with its last use. Where none is free, the value whose next use is furthest away
 * loses its own: a constant, a steady value or a load is read again where it is, anything else is stored in the
 * frame. An instruction takes what is in no register from memory, if it can. Registers that a trip never needs have
 * constants and steady values for good.
 *
 * The code, row by row: steady values first, which are kept in the frame; then the loop over whole vectors, and for
 * what is left the body again, with masked loads and stores. */
#include "emit_inside.h"

enum {
  EMIT_FREE_POINTERS = 5,
  /* Vectors of a trip where nothing says how many. Of a body of EMIT_LONG values and more, a processor's window holds
   * few trips: one long chain of operations would wait for itself. */
  EMIT_FEW = 2,
  EMIT_MANY = 4,
  EMIT_LONG = 24,
  EMIT_STEPS = 800, /* of vectors whose steps alternate, at most */
  /* Vectors of a row that are written one after the other, and values of all of them. */
  EMIT_SHORT = 8,
  EMIT_SHORT_VALUES = 512
};

/* The kernel's output that the store is of. */
static uint32_t emit_output(const emit_run *e, uint32_t store) {
  const nat_stream *to = &e->b->streams[e->b->stores[store].stream];
  return to->sum ? e->b->k->stores[to->buffer].buffer : to->buffer;
}

/* In the text, what the instructions that follow are for. */
static void emit_say(emit_run *e, const emit_step *s) {
  const nat_value *v = &e->b->values[s->value];
  if (!e->c->text || (s->kind != EMIT_STORE && v->from == e->said)) return;
  e->said = s->kind == EMIT_STORE ? NAT_NONE : v->from;
  const kernel_value *of = &e->b->k->values[v->from];
  if (s->kind == EMIT_STORE)
    base_putf(e->c->text, "# store out%u\n", emit_output(e, s->number));
  else if (of->kind == KERNEL_OP)
    base_putf(e->c->text, "# v%u = %s\n", v->from, scalar_text((scalar_code)of->op.code));
  else
    base_putf(e->c->text, "# v%u\n", v->from);
}

static void emit_value(emit_run *e, const emit_step *s) {
  switch ((nat_kind)e->b->values[s->value].kind) {
    case NAT_OP:
      emit_op(e, s);
      break;
    case NAT_GATHER:
      emit_gather(e, s);
      break;
    case NAT_PART:
      emit_part(e, s);
      break;
    case NAT_NEIGHBOURS:
      emit_near(e, s);
      break;
    case NAT_CALL:
      emit_loop_call(e, s);
      break;
    case NAT_SECOND:
      emit_second(e, s);
      break;
    case NAT_SPREAD:
      emit_spread(e, s);
      break;
    case NAT_NUMBERS:
      emit_numbers(e, s);
      break;
    case NAT_FAR:
      emit_far(e, s);
      break;
    case NAT_HALF:
      emit_half(e, s);
      break;
    case NAT_WEAVE:
      emit_weave(e, s);
      break;
    default: /* had from where it is */
      break;
  }
}

static void emit_section(emit_run *e) {
  for (unsigned r = 0; r < EMIT_REGISTERS; r++) e->held[r] = NAT_NONE;
  bool vector_mask = e->masked && !e->target->masks; /* in the first resident's register */
  e->n_registers = (uint8_t)(e->target->registers - (vector_mask && !e->n_residents ? 1 : e->n_residents));
  e->mask_width = 0;
  if (!e->steady) e->n_slots = e->n_steady_slots;
  e->stored = false;
  e->said = NAT_NONE;
  for (e->now = 0; e->now < e->n_steps && !e->failed; e->now++) {
    const emit_step *s = &e->steps[e->now];
    e->pinned = 0;
    emit_say(e, s);
    if (s->kind == EMIT_STORE)
      emit_store(e, s);
    else if (s->kind == EMIT_FOLD)
      emit_fold(e, s);
    else
      emit_value(e, s);
    if (e->steady) emit_keep(e, s->value);
  }
}

/* --- sections --- */

/* Where each operand is used next, from the last step to the first; then e->places has each value's first use. */
static void emit_find_uses(emit_run *e) {
  for (uint32_t i = 0; i < e->b->n_values; i++) {
    const nat_value *v = &e->b->values[i];
    emit_place *p = &e->places[i];
    uint8_t reg = e->in_loop && v->kind == NAT_ACC ? e->homes[v->bits].reg[v->turn] : EMIT_REGISTERS;
    *p = (emit_place){reg, reg < EMIT_REGISTERS, v->steady ? p->slot : 0, NAT_NONE};
  }
  for (uint32_t i = 0; i < e->n_kept; i++) {
    if (!emit_is_there(e, i)) continue;
    e->places[e->kept[i]].reg = e->kept_in[i];
    e->places[e->kept[i]].resident = true;
  }
  for (uint32_t i = e->n_steps; i-- > 0;) {
    emit_step *s = &e->steps[i];
    const nat_value *v = &e->b->values[s->value];
    const uint32_t *in = s->kind == EMIT_VALUE ? v->in : &s->value;
    uint32_t n = s->kind == EMIT_VALUE ? v->n_in : 1;
    for (uint32_t j = 0; j < n; j++) s->next[j] = e->places[in[j]].next;
    for (uint32_t j = 0; j < n; j++) e->places[in[j]].next = i;
  }
}

/* By value: whether a trip needs it, itself or by way of others; or with `results` what is stored when all trips are
 * over. NULL when out of memory. */
static uint8_t *emit_find_needed(const nat_body *b, bool results, base_arena *scratch) {
  uint8_t *needed = base_arena_zalloc(scratch, b->n_values + 1);
  if (!needed) return NULL;
  for (uint32_t i = 0; i < b->n_stores; i++)
    if ((b->stores[i].result != 0) == results) needed[b->stores[i].value] = 1;
  for (uint32_t i = 0; !results && i < b->n_folds; i++) needed[b->folds[i].value] = 1;
  for (uint32_t i = b->n_values; i-- > 0;)
    for (uint32_t j = 0; needed[i] && j < b->values[i].n_in; j++) needed[b->values[i].in[j]] = 1;
  return needed;
}

/* Of vector number `turn`, where it is not steady. value: of the first one's. */
static void emit_add_step(emit_run *e, emit_kind kind, uint32_t value, uint32_t number, uint32_t turn) {
  if (!e->b->values[value].steady) value += turn * e->b->n_once;
  e->steps[e->n_steps++] = (emit_step){.kind = (uint8_t)kind,
                                       .turn = (uint8_t)turn,
                                       .value = value,
                                       .number = number,
                                       .next = {NAT_NONE, NAT_NONE, NAT_NONE, NAT_NONE}};
}

/* Whether memory is read when the value is computed. */
static bool emit_reads(const nat_body *b, const nat_value *v) {
  if (v->steady) return false;
  if (v->kind == NAT_GATHER || v->kind == NAT_PART || v->kind == NAT_NEIGHBOURS || v->kind == NAT_HALF) return true;
  if (v->kind == NAT_SPREAD) return true;
  for (uint32_t j = 0; j < v->n_in; j++)
    if (b->values[v->in[j]].kind == NAT_LOAD && !b->values[v->in[j]].steady) return true;
  return false;
}

/* The last value that reads memory: no store may come before. */
static uint32_t emit_last_reader(const nat_body *b, const uint8_t *needed) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < b->n_once; i++)
    if (needed[i] && emit_reads(b, &b->values[i])) last = i;
  return last;
}

/* A range of the vectors of a trip. */
typedef struct emit_turns {
  uint32_t from, end;
} emit_turns;

/* The value's steps, and the folds that become it: nothing reads what they had after that. */
static void emit_plan_value(emit_run *e, uint32_t value, emit_turns turns) {
  const nat_body *b = e->b;
  for (uint32_t t = turns.from; t < turns.end; t++) {
    emit_add_step(e, EMIT_VALUE, value, 0, t);
    for (uint32_t f = 0; f < b->n_folds; f++)
      if (b->folds[f].value == value) emit_add_step(e, EMIT_FOLD, value, f, t);
  }
}

static void emit_plan_store(emit_run *e, uint32_t store, emit_turns turns) {
  for (uint32_t t = turns.from; t < turns.end; t++) emit_add_step(e, EMIT_STORE, e->b->stores[store].value, store, t);
}

/* The loop's steps, value by value those of all the vectors: stores come as early as they may. A store of a load or of
 * a steady value comes at the end. */
static void emit_plan_body(emit_run *e, const uint8_t *needed, emit_turns turns) {
  const nat_body *b = e->b;
  uint32_t last = emit_last_reader(b, needed), late = 0;
  for (uint32_t s = 0; s < b->n_stores; s++) late |= (b->values[b->stores[s].value].kind == NAT_LOAD) ? 1 : 0;
  e->n_steps = 0;
  for (uint32_t i = 0; i < b->n_once; i++) {
    if (!needed[i] || b->values[i].steady || b->values[i].kind < NAT_OP) continue;
    emit_plan_value(e, i, turns);
    for (uint32_t s = 0; !late && s < b->n_stores; s++) {
      uint32_t of = b->stores[s].value;
      if (!b->stores[s].result && !b->values[of].steady && (of == i ? i >= last : i == last && of < i))
        emit_plan_store(e, s, turns);
    }
  }
  for (uint32_t s = 0; s < b->n_stores; s++) {
    bool done = !late && !b->values[b->stores[s].value].steady;
    if (!done && !b->stores[s].result) emit_plan_store(e, s, turns);
  }
  emit_find_uses(e);
}

/* What folds come to. */
static void emit_plan_results(emit_run *e, const uint8_t *needed, uint32_t turn) {
  const nat_body *b = e->b;
  e->n_steps = 0;
  for (uint32_t i = 0; i < b->n_once; i++)
    if (needed[i] && b->values[i].kind >= NAT_OP) emit_add_step(e, EMIT_VALUE, i, 0, turn);
  for (uint32_t s = 0; s < b->n_stores; s++)
    if (b->stores[s].result) emit_add_step(e, EMIT_STORE, b->stores[s].value, s, turn);
  emit_find_uses(e);
}

/* What the loop needs of steady values: computed ones and loads, since no instruction has a broadcast operand. */
static void emit_plan_steady(emit_run *e, const uint8_t *needed) {
  e->n_steps = 0;
  for (uint32_t i = 0; i < e->b->n_once; i++) {
    const nat_value *v = &e->b->values[i];
    if (needed[i] && v->steady && v->kind != NAT_CONSTANT && v->kind != NAT_TABLE)
      emit_add_step(e, EMIT_VALUE, i, 0, 0);
  }
}

/* Before the loop: each such value goes to a slot. */
static void emit_steady(emit_run *e, const uint8_t *needed) {
  emit_plan_steady(e, needed);
  emit_find_uses(e);
  e->steady = true;
  emit_section(e);
  e->steady = false;
}

/* Runs that begin at a place that is known by now. */
static void emit_begin_runs(emit_run *e, const uint8_t *needed) {
  for (uint32_t i = 0; i < e->b->n_once; i++) {
    const nat_value *v = &e->b->values[i];
    if (!needed[i] || v->kind != NAT_LOAD || !v->n_in) continue;
    if (v->bits >= EMIT_POINTERS) {
      e->failed = true;
      return;
    }
    unsigned base = emit_pointers[v->bits];
    x86_load_s32(e->c, X86_RAX, emit_slot(e, e->places[v->in[0]].slot));
    x86_lea(e->c, base, (x86_rm){.memory = true, .base = (uint8_t)base, .index = X86_RAX, .scale = v->width});
  }
}

/* --- the whole --- */

static uint32_t emit_pushes(const nat_body *b) {
  uint32_t n = b->n_streams < EMIT_POINTERS ? b->n_streams : EMIT_POINTERS;
  return n > EMIT_FREE_POINTERS ? n - EMIT_FREE_POINTERS : 0;
}

static void emit_load_pointers(emit_run *e) {
  for (uint32_t i = 0; i < e->b->n_streams && i < EMIT_POINTERS; i++) x86_load(e->c, emit_pointers[i], emit_pointer(i));
}

/* Whether a row leaves its pointers as they were: no run begins elsewhere (emit_begin_runs), or goes on by cycles. */
static bool emit_keeps_pointers(const nat_body *b) {
  if (b->trip) return false;
  for (uint32_t i = 0; i < b->n_values; i++)
    if (b->values[i].kind == NAT_LOAD && b->values[i].n_in) return false;
  return true;
}

uint32_t emit_enter(emit_run *e) {
  x86_code *c = e->c;
  for (uint32_t i = 0; i < emit_pushes(e->b); i++) x86_push(c, emit_pointers[EMIT_FREE_POINTERS + i]);
  x86_move(c, X86_RAX, X86_RSP);
  x86_add_number(c, X86_RSP, -(int32_t)((e->most_slots + 1u) * e->target->vector));
  x86_and_number(c, X86_RSP, -(int32_t)e->target->vector);
  x86_store(c, x86_at(X86_RSP, 0), X86_RAX);
  emit_load_kept(e, true);
  bool once = emit_keeps_pointers(e->b);
  if (once) emit_load_pointers(e);
  uint32_t row = x86_target(c);
  x86_load(c, X86_RDX, x86_at(X86_RDI, offsetof(nat_arguments, n)));
  if (!once) emit_load_pointers(e);
  return row;
}

/* If there is one more row, to `again`. */
static void emit_next_row(emit_run *e, uint32_t again) {
  x86_code *c = e->c;
  x86_add_to_memory(c, x86_at(X86_RDI, offsetof(nat_arguments, rows)), -1);
  uint32_t none = x86_jump_on(c, X86_IF_EQUAL);
  bool kept = emit_keeps_pointers(e->b);
  for (uint32_t i = 0; i < e->b->n_streams; i++) {
    x86_rm by = x86_at(X86_RDI, (int32_t)(offsetof(nat_arguments, by) + i * sizeof(int64_t)));
    if (kept && i < EMIT_POINTERS && !e->b->streams[i].number) {
      x86_add_memory(c, emit_pointers[i], by); /* nothing waits for what was stored just before */
      continue;
    }
    x86_load(c, X86_RAX, emit_pointer(i));
    x86_add_memory(c, X86_RAX, by);
    x86_store(c, emit_pointer(i), X86_RAX);
  }
  x86_jump_back(c, X86_ALWAYS, again);
  x86_land(c, none);
}

void emit_leave(emit_run *e) {
  x86_load(e->c, X86_RSP, x86_at(X86_RSP, 0));
  for (uint32_t i = emit_pushes(e->b); i-- > 0;) x86_pop(e->c, emit_pointers[EMIT_FREE_POINTERS + i]);
  x86_end(e->c);
}

static bool emit_counts(const nat_body *b) {
  for (uint32_t i = 0; i < b->n_values; i++)
    if (b->values[i].kind == NAT_COUNT && !b->values[i].steady) return true;
  return false;
}

x86_rm emit_lane_numbers(emit_run *e, uint32_t first) {
  int32_t numbers[NAT_VECTOR / 4];
  for (uint32_t i = 0; i < NAT_VECTOR / 4; i++) numbers[i] = (int32_t)(i + first);
  return x86_constant((int32_t)x86_add_constant(e->c, numbers, e->target->vector));
}

/* The numbers of the first iterations, and those of the next ones: between sections register 0 is free. */
static void emit_count_start(emit_run *e) {
  uint32_t bytes = e->target->vector;
  for (uint32_t t = 0; emit_counts(e->b) && t < e->b->turns; t++) {
    emit_move(e, bytes, 0, emit_lane_numbers(e, t * e->b->lanes), false);
    emit_move(e, bytes, 0, emit_slot(e, EMIT_COUNT + t), true);
  }
}
static void emit_count_on(emit_run *e, uint32_t vectors) {
  int32_t by[NAT_VECTOR / 4];
  uint32_t bytes = e->target->vector;
  for (uint32_t i = 0; i < NAT_VECTOR / 4; i++) by[i] = (int32_t)(vectors * e->b->lanes);
  for (uint32_t t = 0; emit_counts(e->b) && t < vectors; t++) {
    emit_move(e, bytes, 0, emit_slot(e, EMIT_COUNT + t), false);
    x86_vector(e->c, X86_PADDD, bytes, 0, 0, x86_constant((int32_t)x86_add_constant(e->c, by, bytes)), 0);
    emit_move(e, bytes, 0, emit_slot(e, EMIT_COUNT + t), true);
  }
}

/* Vectors `from` to `end` of the present trip. */
static void emit_turns_of(emit_run *e, const uint8_t *needed, emit_turns turns) {
  for (uint32_t t = turns.from; t < turns.end && !e->failed; t += e->together) {
    uint32_t end = t + e->together < turns.end ? t + e->together : turns.end;
    emit_plan_body(e, needed, (emit_turns){t, end});
    emit_section(e);
  }
}

/* While a whole trip is left. */
static void emit_loop(emit_run *e, const uint8_t *needed) {
  x86_code *c = e->c;
  int32_t lanes = (int32_t)(e->b->lanes * e->b->turns);
  emit_count_start(e);
  e->in_loop = true;
  emit_load_residents(e);
  x86_zero(c, X86_RCX);
  x86_add_number(c, X86_RDX, -lanes);
  x86_compare(c, X86_RCX, X86_RDX);
  uint32_t none = x86_jump_on(c, X86_IF_MORE);
  x86_align(c, 32);
  uint32_t loop = x86_target(c);
  emit_turns_of(e, needed, (emit_turns){0, e->b->turns});
  emit_count_on(e, e->b->turns);
  emit_cycle_on(e);
  x86_add_number(c, X86_RCX, lanes);
  x86_compare(c, X86_RCX, X86_RDX);
  x86_jump_back(c, X86_IF_NOT_MORE, loop);
  x86_land(c, none);
  e->in_loop = false;
  emit_save_folds(e);
}

/* The widths of all streams' lanes, as bits; gathers read at least 4 bytes for each. */
static uint32_t emit_widths(const nat_body *b) {
  uint32_t widths = 0;
  for (uint32_t i = 0; i < b->n_streams; i++) {
    const nat_stream *s = &b->streams[i];
    if (s->stride || s->gathers) widths |= s->gathers && s->width < 4 ? 4 : s->width;
  }
  for (uint32_t i = 0; i < b->n_folds; i++) widths |= b->values[b->folds[i].first].width;
  return widths;
}

/* Masks are of neighbours, none for lanes of 16 bytes; where they are vectors, of 4 or 8 bytes a lane. */
bool nat_has_tail(const nat_body *b) {
  for (uint32_t i = 0; i < b->n_streams; i++)
    if ((b->streams[i].stride != 0 && b->streams[i].stride != 1) || b->streams[i].width == 16) return false;
  return b->target->masks || ((emit_widths(b) & 3) == 0 && b->lanes <= 8);
}

/* Read from bytes of ones, then zeros, such that the first rdx lanes are ones. */
static void emit_vector_masks(emit_run *e) {
  static const uint32_t ones_then_zeros[16] = {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
  int32_t place = (int32_t)x86_add_constant(e->c, ones_then_zeros, sizeof ones_then_zeros);
  x86_lea(e->c, X86_RAX, x86_constant(place + 32));
  for (uint32_t width = 4; width <= 8; width *= 2) {
    if (!(emit_widths(e->b) & width)) continue;
    x86_rm mask = {.memory = true, .base = X86_RAX, .index = X86_RDX, .scale = (uint8_t)width};
    emit_move(e, 32, EMIT_MASK_REGISTER, mask, false);
    emit_move(e, 32, EMIT_MASK_REGISTER, emit_slot(e, width == 4 ? EMIT_MASK_4 : EMIT_MASK_8), true);
  }
}

/* rdx = the number of iterations that the next vector has, of those that are left: n - rcx. */
static void emit_tail_lanes(emit_run *e) {
  x86_code *c = e->c;
  x86_subtract(c, X86_RDX, X86_RCX);
  if (e->b->turns == 1) return;
  x86_compare_number(c, X86_RDX, (int32_t)e->b->lanes);
  uint32_t fewer = x86_jump_on(c, X86_IF_NOT_MORE);
  x86_zero(c, X86_RDX);
  x86_add_number(c, X86_RDX, (int32_t)e->b->lanes);
  x86_land(c, fewer);
}

/* Masks of the first rdx lanes. */
static void emit_tail_masks(emit_run *e) {
  x86_code *c = e->c;
  x86_zero(c, X86_RAX);
  if (e->target->masks) {
    x86_add_number(c, X86_RAX, -1);
    x86_low_bits(c, X86_RAX, X86_RDX);
    x86_on_masks(c, X86_KMOV_FROM, EMIT_LANES_MASK - EMIT_MASKS, 0, x86_reg(X86_RAX));
  } else {
    x86_subtract(c, X86_RAX, X86_RDX);
    x86_move(c, X86_RDX, X86_RAX);
    emit_vector_masks(e);
  }
}

/* What is left, fewer iterations than a trip: vector by vector, the last one masked as all are. */
static void emit_tail(emit_run *e, const uint8_t *needed) {
  x86_code *c = e->c;
  bool several = e->b->turns > 1, drifts = several && e->b->n_folds > 0;
  x86_load(c, X86_RDX, x86_at(X86_RDI, offsetof(nat_arguments, n)));
  x86_compare(c, X86_RCX, X86_RDX);
  uint32_t none = x86_jump_on(c, X86_IF_EQUAL);
  if (drifts) {
    x86_zero(c, X86_RAX);
    x86_store(c, emit_slot(e, EMIT_TURN), X86_RAX);
  }
  uint32_t again = several ? x86_target(c) : 0;
  emit_tail_lanes(e);
  emit_tail_masks(e);
  e->masked = true;
  e->adrift = drifts;
  emit_plan_body(e, needed, (emit_turns){0, 1});
  emit_section(e);
  emit_count_on(e, 1);
  e->masked = e->adrift = false;
  if (drifts) x86_add_to_memory(c, emit_slot(e, EMIT_TURN), (int32_t)e->target->vector);
  if (several) {
    x86_load(c, X86_RDX, x86_at(X86_RDI, offsetof(nat_arguments, n)));
    x86_add_number(c, X86_RCX, (int32_t)e->b->lanes);
    x86_compare(c, X86_RCX, X86_RDX);
    x86_jump_back(c, X86_IF_LESS, again);
  }
  x86_land(c, none);
}

/* Folds to their results, each vector of a trip's after the other's. */
static void emit_results(emit_run *e, const uint8_t *needed) {
  for (uint32_t t = 0; e->b->n_folds && t < e->b->turns && !e->failed; t++) {
    emit_plan_results(e, needed, t);
    emit_section(e);
  }
}

/* --- short rows --- */

uint32_t nat_short_row(const nat_body *b) {
  int64_t row = b->k->extents[b->k->rank - 1], vectors = (row + b->lanes - 1) / b->lanes;
  if (b->way != CPU_NATIVE_LANES || !b->target->masks || row != b->k->reduction->reduced) return 0;
  return vectors <= EMIT_SHORT && vectors * b->n_once <= EMIT_SHORT_VALUES ? (uint32_t)row : 0;
}

/* Whether what a short row comes to stays in registers: then its vectors follow each other without a loop, the last one
 * under a mask, and nothing goes through the frame. */
static bool emit_is_short(const emit_run *e) {
  for (uint32_t f = 0; f < e->b->n_folds; f++)
    for (uint32_t j = 0; j < e->b->turns; j++)
      if (e->homes[f].reg[j] == EMIT_REGISTERS) return false;
  return e->n_short > 0;
}

/* All of a row. */
static void emit_short_row(emit_run *e, const uint8_t *needed, const uint8_t *at_end) {
  uint32_t lanes = e->b->lanes, trip = lanes * e->b->turns;
  uint32_t row = e->n_short, rest = row % trip, more = rest % lanes;
  emit_count_start(e);
  e->in_loop = true;
  emit_load_residents(e);
  x86_zero(e->c, X86_RCX);
  for (uint32_t i = 0; i < row / trip; i++) {
    emit_turns_of(e, needed, (emit_turns){0, e->b->turns});
    emit_count_on(e, e->b->turns);
    if (i + 1 < row / trip || rest) x86_add_number(e->c, X86_RCX, (int32_t)trip);
  }
  emit_turns_of(e, needed, (emit_turns){0, rest / lanes});
  if (more) {
    x86_zero(e->c, X86_RDX);
    x86_add_number(e->c, X86_RDX, (int32_t)more);
    emit_tail_masks(e);
    e->masked = true;
    emit_turns_of(e, needed, (emit_turns){rest / lanes, rest / lanes + 1});
    e->masked = false;
  }
  emit_results(e, at_end);
  e->in_loop = false;
}

static void emit_place_folds(emit_run *e) {
  for (uint32_t i = 0; i < e->b->n_folds; i++) {
    memset(e->homes[i].reg, EMIT_REGISTERS, sizeof e->homes[i].reg);
    e->homes[i].slot = emit_new_slot(e);
    for (uint32_t j = 1; j < e->b->turns; j++) (void)emit_new_slot(e);
  }
}

/* How many vectors' steps alternate: as many as leave room for folds and for some of what is the same in all trips.
 * AVX-512's instructions repeat constants from memory, and it has twice the registers: there alternating is worth more
 * than such room. false when out of memory. */
static bool emit_choose_together(emit_run *e, const uint8_t *needed, base_arena *scratch) {
  uint8_t *lives = base_arena_zalloc(scratch, e->b->n_values + 1);
  uint32_t all = e->target->registers, most = e->target->masks ? all : all * 3 / 4, pressure = 0;
  if (!lives) return false;
  for (e->together = e->b->turns;; e->together /= 2) {
    emit_plan_body(e, needed, (emit_turns){0, e->together});
    pressure = emit_pressure(e, lives);
    if (e->together == 1 || (pressure + e->b->n_folds * e->b->turns <= most && e->n_steps <= EMIT_STEPS)) break;
  }
  return emit_choose_residents(e, pressure, scratch);
}

static bool emit_all(emit_run *e, nat_body *own, uint8_t *needed, uint8_t *at_end, base_arena *scratch) {
  emit_place_folds(e);
  if (!emit_choose_together(e, needed, scratch)) return false;
  uint32_t row = emit_enter(e);
  emit_steady(e, needed);
  emit_begin_runs(e, needed);
  e->n_steady_slots = e->n_slots;
  if (e->failed) return false; /* no room for what is steady */
  if (own->way != CPU_NATIVE_LANES && !own->trip) own->turns = e->together;
  bool is_short = emit_is_short(e);
  uint32_t parts = 0, done = 0;
  if (is_short) { /* but where a call does a part of it */
    x86_compare_number(e->c, X86_RDX, (int32_t)e->n_short);
    parts = x86_jump_on(e->c, X86_IF_NOT_EQUAL);
    emit_short_row(e, needed, at_end);
    done = x86_jump_on(e->c, X86_ALWAYS);
    x86_land(e->c, parts);
  }
  emit_loop(e, needed);
  if (nat_has_tail(e->b) && !own->trip) emit_tail(e, needed);
  emit_results(e, at_end);
  if (is_short) x86_land(e->c, done);
  emit_next_row(e, row);
  emit_leave(e);
  for (uint32_t i = 0; i < e->n_calls && !e->failed; i++) emit_call_out(e, &e->calls[i]);
  return !e->failed && !e->c->failed;
}

/* No more than a row has whole vectors of. */
uint32_t nat_turns_of(const nat_body *b) {
  if (b->way == CPU_NATIVE_LANES || b->trip) return b->turns;
  if (!nat_has_tail(b)) return 1;
  uint32_t turns = b->n_values < EMIT_LONG ? EMIT_FEW : EMIT_MANY;
  while (turns > 1 && b->k->extents[b->k->rank - 1] < (int64_t)turns * b->lanes) turns /= 2;
  return turns;
}

bool nat_emit(const nat_body *b, x86_code *c, base_arena *scratch) {
  nat_body own = *b; /* with the values of all vectors of a trip */
  emit_home homes[NAT_MAX_FOLDS];
  emit_run e = {.b = &own, .target = b->target, .c = c, .n_slots = EMIT_FIRST_SLOT, .homes = homes};
  e.most_slots = EMIT_FRAME_SLOTS, e.n_short = nat_short_row(b);
  uint8_t *needed = emit_find_needed(b, false, scratch), *at_end = emit_find_needed(b, true, scratch);
  uint32_t turns = nat_turns_of(b);
  c->evex = b->target->masks;
  for (uint32_t i = 0; i < b->n_streams; i++) e.gathers = e.gathers || b->streams[i].gathers;
  assert(b->n_values > 0 && c->bytes.n == 0);
  if (!needed || !at_end || !nat_repeat(&own, turns, scratch)) return false;
  e.places = base_arena_zalloc(scratch, own.n_values * sizeof *e.places);
  e.steps = BASE_ARRAY(scratch, emit_step, own.n_values + turns * (2 * KERNEL_MAX_STORES + NAT_MAX_FOLDS));
  return e.places && e.steps && emit_all(&e, &own, needed, at_end, scratch);
}
