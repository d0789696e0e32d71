/* What a step is in instructions. */
#include "emit_inside.h"
#include "functions.h"

/* Bytes of the registers that the value's instruction works on. */
static unsigned emit_length(const emit_run *e, const nat_value *v) {
  uint32_t lane = x86_table[v->op].lane, most = e->target->vector;
  if (v->n_in == 2 && e->b->values[v->in[1]].kind == NAT_TABLE) return e->target->masks ? 64 : 32;
  uint32_t bytes = e->b->lanes * (lane > v->width ? lane : v->width);
  return lane == 0 || bytes < 16 ? 16 : bytes > most ? most : bytes;
}

/* Whether the operand's register may be overwritten. */
static bool emit_dies(const emit_run *e, const emit_step *s, const nat_value *v, uint32_t j) {
  const emit_place *p = &e->places[v->in[j]];
  for (uint32_t i = 0; i < v->n_in; i++)
    if (i != j && v->in[i] == v->in[j]) return false;
  return s->next[j] == NAT_NONE && p->reg < EMIT_REGISTERS && !p->resident;
}

/* The value in a register that may be overwritten: it is not dead, so what is in a register already is copied. */
static unsigned emit_copy(emit_run *e, uint32_t value, unsigned bytes) {
  emit_place *p = &e->places[value];
  if (p->reg == EMIT_REGISTERS) {
    unsigned reg = emit_pin(e, value);
    p->reg = EMIT_REGISTERS;
    e->held[reg] = NAT_NONE;
    return reg;
  }
  e->pinned |= 1ull << p->reg;
  unsigned to = emit_take(e, NAT_NONE);
  x86_vector(e->c, X86_MOVUPS, bytes, to, 0, x86_reg(p->reg), 0);
  return to;
}

/* x * y + z over whichever operand is not needed any more; over a copy of z where all are. */
static void emit_fma(emit_run *e, const emit_step *s, const nat_value *v, unsigned bytes) {
  const x86_row *row = &x86_table[v->op];
  uint32_t over = 2, a = 0, m = 1;
  if (!emit_dies(e, s, v, 2)) {
    if (emit_dies(e, s, v, 0))
      over = 0, a = 1, m = 2;
    else if (emit_dies(e, s, v, 1))
      over = 1, a = 0, m = 2;
  }
  bool dies = emit_dies(e, s, v, over);
  if (over == 2 && e->places[v->in[0]].reg == EMIT_REGISTERS && e->places[v->in[1]].reg < EMIT_REGISTERS) a = 1, m = 0;
  unsigned to = dies ? emit_pin(e, v->in[over]) : 0, x = emit_pin(e, v->in[a]);
  x86_rm last = emit_operand(e, row, bytes, v->in[m], s->next[m] == NAT_NONE);
  if (!dies) to = emit_copy(e, v->in[2], bytes);
  x86_fma(e->c, (x86_op)v->op, bytes, over == 2 ? 2 : 0, to, x, last);
  emit_release(e, s, v->in, v->n_in);
  e->held[to] = s->value;
  e->places[s->value].reg = (uint8_t)to;
}

/* Two operands that may change places: what is in no register comes last. */
static bool emit_swaps(const emit_run *e, const x86_row *row, const nat_value *v) {
  if (v->n_in != 2 || !row->commutes) return false;
  bool first = e->places[v->in[0]].reg < EMIT_REGISTERS, second = e->places[v->in[1]].reg < EMIT_REGISTERS;
  return !first && (second || e->b->values[v->in[0]].kind == NAT_CONSTANT);
}

/* Masks alone. */
static void emit_mask_op(emit_run *e, const emit_step *s, const nat_value *v) {
  unsigned a = emit_pin(e, v->in[0]) - EMIT_MASKS, m = v->n_in > 1 ? emit_pin(e, v->in[1]) - EMIT_MASKS : a;
  emit_release(e, s, v->in, v->n_in);
  unsigned to = emit_take(e, s->value) - EMIT_MASKS;
  x86_on_masks(e->c, (x86_op)v->op, to, v->n_in > 1 ? a : 0, x86_reg(m));
}

/* Under a mask, which is the last operand: no, yes, mask, or what is kept, mask. */
static void emit_chosen(emit_run *e, const emit_step *s, const nat_value *v, unsigned bytes) {
  const x86_row *row = &x86_table[v->op];
  bool keep = row->shape == X86_KEEP;
  unsigned mask = emit_pin(e, v->in[keep ? 1 : 2]) - EMIT_MASKS, a = keep ? 0 : emit_pin(e, v->in[0]);
  uint32_t j = keep ? 0 : 1;
  x86_rm last = emit_operand(e, row, bytes, v->in[j], s->next[j] == NAT_NONE);
  emit_release(e, s, v->in, v->n_in);
  x86_masked(e->c, (x86_op)v->op, bytes, emit_take(e, s->value), a, last, mask, keep);
}

/* to, and if there are two, a, and the last, which may be memory. */
static void emit_plain(emit_run *e, const emit_step *s, const nat_value *v, unsigned bytes) {
  const x86_row *row = &x86_table[v->op];
  x86_shape shape = (x86_shape)row->shape;
  uint32_t a = 0, m = v->n_in > 1 ? 1 : 0;
  if (emit_swaps(e, row, v)) a = 1, m = 0;
  unsigned number = v->number, first = 0;
  if (shape == X86_RVMR) number = emit_pin(e, v->in[2]);
  if (v->n_in > 1) first = emit_pin(e, v->in[a]);
  bool to_last = shape == X86_MRI || shape == X86_NARROW;
  x86_rm last = to_last || shape == X86_SHIFT ? x86_reg(emit_pin(e, v->in[m]))
                                              : emit_operand(e, row, bytes, v->in[m], s->next[m] == NAT_NONE);
  emit_release(e, s, v->in, v->n_in);
  unsigned to = emit_take(e, s->value);
  if (shape == X86_SHIFT)
    x86_vector(e->c, (x86_op)v->op, bytes, to, last.reg, last, number);
  else if (to_last)
    x86_vector(e->c, (x86_op)v->op, bytes, last.reg, 0, x86_reg(to), number);
  else
    x86_vector(e->c, (x86_op)v->op, bytes, to >= EMIT_MASKS ? to - EMIT_MASKS : to, first, last, number);
}

void emit_op(emit_run *e, const emit_step *s) {
  const nat_value *v = &e->b->values[s->value];
  const x86_row *row = &x86_table[v->op];
  unsigned bytes = emit_length(e, v);
  if (row->encoding == X86_MASK)
    emit_mask_op(e, s, v);
  else if (row->shape == X86_FMA)
    emit_fma(e, s, v, bytes);
  else if (row->shape == X86_BLEND || row->shape == X86_KEEP)
    emit_chosen(e, s, v, bytes);
  else
    emit_plain(e, s, v, bytes);
}

/* --- calls --- */

/* Registers that have a value, or are some value's for good. */
static uint64_t emit_live(const emit_run *e) {
  uint64_t live = 0;
  for (unsigned r = 0; r < EMIT_REGISTERS; r++)
    if (e->held[r] != NAT_NONE || (r >= e->n_registers && r < e->target->registers)) live |= 1ull << r;
  return e->masked ? live | 1ull << EMIT_LANES_MASK : live;
}

/* A jump to what is written when all else is, and back. */
static void emit_jump_out(emit_run *e, x86_condition if_, emit_call call) {
  if (e->n_calls == EMIT_CALLS) {
    e->failed = true;
    return;
  }
  call.jump = x86_jump_on(e->c, if_);
  call.back = x86_target(e->c);
  call.live = emit_live(e);
  e->calls[e->n_calls++] = call;
}

/* The flag says whether some lane of the mask is set. */
static void emit_test_mask(emit_run *e, unsigned mask, unsigned bytes) {
  if (e->target->masks)
    x86_on_masks(e->c, X86_KORTEST, mask - EMIT_MASKS, 0, x86_reg(mask - EMIT_MASKS));
  else
    x86_vector(e->c, X86_PTEST, bytes, mask, 0, x86_reg(mask), 0);
}

/* How many lanes of the value a function is to compute: of loops, where they are the same, one. */
static uint8_t emit_called_lanes(const emit_run *e, const nat_value *v) {
  bool differs = false;
  for (uint32_t j = 0; j < v->n_in; j++) differs = differs || e->b->values[v->in[j]].lanes == NAT_LANES_DIFFER;
  return (uint8_t)(differs ? 16 / v->width : e->b->lanes);
}

/* The near value, unless the mask has a lane. */
void emit_far(emit_run *e, const emit_step *s) {
  const nat_value *v = &e->b->values[s->value];
  unsigned near = emit_pin(e, v->in[0]), x = emit_pin(e, v->in[1]), far = emit_pin(e, v->in[2]);
  unsigned to = emit_take(e, s->value), bytes = e->b->lanes * v->width < 16 ? 16 : e->b->lanes * v->width;
  x86_vector(e->c, X86_MOVUPS, bytes, to, 0, x86_reg(near), 0);
  emit_test_mask(e, far, bytes);
  emit_call call = {.x = (uint8_t)x, .y = (uint8_t)x, .to = (uint8_t)to, .which = v->number};
  call.lanes = emit_called_lanes(e, v);
  if (v->bits) { /* of complex numbers, a lane or two each */
    call.fn = v->bits, call.which = v->number ? 128 : 64, call.lanes = (uint8_t)(e->b->lanes >> v->number);
    if (v->n_in > 3) call.y = (uint8_t)emit_pin(e, v->in[3]);
  }
  emit_jump_out(e, X86_IF_NOT_EQUAL, call);
  emit_release(e, s, v->in, v->n_in);
}

void emit_loop_call(emit_run *e, const emit_step *s) {
  const nat_value *v = &e->b->values[s->value];
  unsigned x = emit_pin(e, v->in[0]), y = v->n_in > 1 ? emit_pin(e, v->in[1]) : x, to = emit_take(e, s->value);
  emit_call call = {.x = (uint8_t)x, .y = (uint8_t)y, .to = (uint8_t)to, .which = (uint8_t)(8 * v->width)};
  call.fn = v->bits, call.lanes = emit_called_lanes(e, v);
  if (v->number) call.y = (uint8_t)(EMIT_SECOND - EMIT_SAVED + s->turn);
  emit_jump_out(e, X86_ALWAYS, call);
  emit_release(e, s, v->in, v->n_in);
}

/* Where the call has just left it. */
void emit_second(emit_run *e, const emit_step *s) {
  const nat_value *v = &e->b->values[s->value];
  emit_release(e, s, v->in, v->n_in);
  emit_move(e, e->target->vector, emit_take(e, s->value), emit_slot(e, EMIT_SECOND + s->turn), false);
}

/* Registers that are live, between them and the frame. */
void emit_save(emit_run *e, uint64_t live, bool store) {
  for (unsigned r = 0; r < e->target->registers; r++)
    if (live >> r & 1) emit_move(e, e->target->vector, r, emit_slot(e, EMIT_SAVED + r), store);
  for (unsigned k = 1; e->target->masks && k < 8; k++) {
    if (!(live >> (EMIT_MASKS + k) & 1)) continue;
    x86_rm m = emit_slot(e, EMIT_SAVED_MASKS);
    m.disp += (int32_t)(8 * k);
    x86_on_masks(e->c, store ? X86_KMOV_TO : X86_KMOV, k, 0, m);
  }
}

/* All registers that the callee may change are saved; it reads and writes them where they are. */
void emit_call_out(emit_run *e, const emit_call *call) {
  static const uint8_t kept[] = {X86_RDI, X86_RSI, X86_RDX, X86_RCX, X86_R8, X86_R9, X86_R10, X86_R11};
  enum { KEPT = sizeof kept };
  x86_code *c = e->c;
  x86_land(c, call->jump);
  emit_save(e, call->live, true);
  x86_rm x = emit_slot(e, EMIT_SAVED + call->x), y = emit_slot(e, EMIT_SAVED + call->y),
         to = emit_slot(e, EMIT_SAVED + call->to);
  x.disp += KEPT * 8, y.disp += KEPT * 8, to.disp += KEPT * 8;
  for (unsigned i = 0; i < KEPT; i++) x86_push(c, kept[i]);
  x86_lea(c, X86_RDI, x);
  x86_lea(c, X86_RSI, to);
  x86_zero(c, X86_RDX);
  x86_add_number(c, X86_RDX, call->which);
  x86_zero(c, X86_RCX);
  x86_add_number(c, X86_RCX, call->lanes);
  if (call->fn) {
    x86_lea(c, X86_R8, y);
    x86_address(c, X86_R9, call->fn);
  }
  x86_clear_upper(c);
  x86_call(c, call->fn ? (uintptr_t)nat_loop_run : (uintptr_t)nat_far_run);
  for (unsigned i = KEPT; i-- > 0;) x86_pop(c, kept[i]);
  emit_save(e, call->live, false);
  x86_jump_back(c, X86_ALWAYS, call->back);
}

/* --- reads under masks --- */

/* A mask of its own, which the instruction clears: the value's, or that of the vector's lanes. */
static unsigned emit_gather_mask(emit_run *e, const nat_value *v) {
  unsigned from = v->n_in > 1 ? emit_pin(e, v->in[1]) : EMIT_REGISTERS, bytes = e->target->vector;
  if (e->target->masks) {
    unsigned to = EMIT_GATHER_MASK - EMIT_MASKS, lanes = from < EMIT_REGISTERS ? from : EMIT_LANES_MASK;
    if (from < EMIT_REGISTERS || e->masked)
      x86_on_masks(e->c, X86_KMOV, to, 0, x86_reg(lanes - EMIT_MASKS));
    else
      x86_on_masks(e->c, X86_KXNOR, to, to, x86_reg(to));
    return to;
  }
  unsigned to = emit_take(e, NAT_NONE);
  e->pinned |= 1ull << to;
  if (from < EMIT_REGISTERS)
    emit_move(e, bytes, to, x86_reg(from), false);
  else if (e->masked)
    emit_move(e, bytes, to, emit_slot(e, v->width == 4 ? EMIT_MASK_4 : EMIT_MASK_8), false);
  else
    x86_vector(e->c, X86_PCMPEQD, bytes, to, to, x86_reg(to), 0);
  return to;
}

/* The result begins as zeros, so that it waits for nothing. */
void emit_gather(emit_run *e, const emit_step *s) {
  const nat_value *v = &e->b->values[s->value];
  uint32_t stream = (uint32_t)v->bits;
  unsigned base = stream < EMIT_POINTERS ? emit_pointers[stream] : X86_RAX, index = emit_pin(e, v->in[0]);
  unsigned mask = emit_gather_mask(e, v), to = emit_take(e, s->value), bytes = v->width * e->b->lanes;
  if (base == X86_RAX) x86_load(e->c, X86_RAX, emit_pointer(stream));
  x86_vector(e->c, X86_XORD, 16, to, to, x86_reg(to), 0);
  x86_rm m = {.memory = true, .base = (uint8_t)base, .index = (uint8_t)index, .places = true};
  m.scale = e->b->streams[stream].width;
  x86_gather(e->c, v->width == 4 ? X86_GATHERD : X86_GATHERQ, bytes, to, m, mask);
  emit_release(e, s, v->in, v->n_in);
}

/* Where no lane is there, nothing is read at all: processors take hundreds of cycles to find that masked lanes lie in
 * pages that are not there. */
void emit_part(emit_run *e, const emit_step *s) {
  const nat_value *v = &e->b->values[s->value];
  unsigned mask = emit_pin(e, v->in[0]), bytes = e->b->lanes * v->width, to = emit_take(e, s->value);
  x86_rm m = emit_stream(e, (uint32_t)v->bits, s->turn);
  x86_vector(e->c, X86_XORD, 16, to, to, x86_reg(to), 0);
  emit_test_mask(e, mask, bytes < 16 ? 16 : bytes);
  uint32_t none = x86_jump_on(e->c, X86_IF_EQUAL);
  emit_under(e, v->width, mask, to, m, false);
  x86_land(e->c, none);
  emit_release(e, s, v->in, v->n_in);
}

/* All lanes are there, of a last vector too. */
void emit_near(emit_run *e, const emit_step *s) {
  const nat_value *v = &e->b->values[s->value];
  if (v->bits >= EMIT_POINTERS) {
    e->failed = true;
    return;
  }
  x86_vector(e->c, X86_MOVD_BACK, 16, emit_pin(e, v->in[0]), 0, x86_reg(X86_RAX), 0);
  emit_release(e, s, v->in, v->n_in);
  x86_rm m = {.memory = true, .base = emit_pointers[v->bits], .index = X86_RAX, .scale = v->width};
  emit_move(e, emit_bytes(e, s->value), emit_take(e, s->value), m, false);
}

/* --- lanes of 16 bytes --- */

void emit_half(emit_run *e, const emit_step *s) {
  const nat_value *v = &e->b->values[s->value];
  x86_rm m = emit_stream(e, (uint32_t)v->bits, s->turn);
  m.disp += (int32_t)(v->number * e->target->vector);
  emit_move(e, e->target->vector, emit_take(e, s->value), m, false);
}

/* By one instruction, whose index says which lanes of both. */
static void emit_weave_by_index(emit_run *e, unsigned which, unsigned to, unsigned x, unsigned y) {
  uint64_t index[NAT_VECTOR / 8];
  for (uint64_t i = 0, lanes = NAT_VECTOR / 8; i < lanes; i++)
    index[i] = which < 2 ? (i + which * lanes) / 2 + i % 2 * lanes : 2 * i + which - 2;
  emit_move(e, NAT_VECTOR, to, x86_constant((int32_t)x86_add_constant(e->c, index, sizeof index)), false);
  x86_vector(e->c, X86_PERMI2Q, NAT_VECTOR, to, x, x86_reg(y), 0);
}

/* Halves of registers, and lanes within them, trade places. */
static void emit_weave_by_halves(emit_run *e, unsigned which, unsigned to, unsigned x, unsigned y) {
  e->pinned |= 1ull << to;
  unsigned more = emit_take(e, NAT_NONE), bytes = e->target->vector;
  if (which < 2) {
    x86_vector(e->c, X86_UNPCKLPD, bytes, to, x, x86_reg(y), 0);
    x86_vector(e->c, X86_UNPCKHPD, bytes, more, x, x86_reg(y), 0);
    x86_vector(e->c, X86_PERMHALVES, bytes, to, to, x86_reg(more), which ? 0x31 : 0x20);
  } else {
    x86_vector(e->c, X86_PERMHALVES, bytes, to, x, x86_reg(y), 0x20);
    x86_vector(e->c, X86_PERMHALVES, bytes, more, x, x86_reg(y), 0x31);
    x86_vector(e->c, which == 2 ? X86_UNPCKLPD : X86_UNPCKHPD, bytes, to, to, x86_reg(more), 0);
  }
  e->held[more] = NAT_NONE;
}

void emit_weave(emit_run *e, const emit_step *s) {
  const nat_value *v = &e->b->values[s->value];
  unsigned x = emit_pin(e, v->in[0]), y = emit_pin(e, v->in[1]), to = emit_take(e, s->value);
  assert(e->b->lanes * 8 == e->target->vector);
  if (e->target->masks)
    emit_weave_by_index(e, v->number, to, x, y);
  else
    emit_weave_by_halves(e, v->number, to, x, y);
  emit_release(e, s, v->in, v->n_in);
}

/* --- stores --- */

void emit_store(emit_run *e, const emit_step *s) {
  const nat_store *store = &e->b->stores[s->number];
  uint32_t value = s->value;
  unsigned reg = emit_pin(e, value);
  x86_rm to = emit_stream(e, store->stream, s->turn);
  to.disp += (int32_t)(store->half * e->target->vector);
  if (e->masked)
    emit_masked(e, e->b->values[value].width, reg, to, true);
  else
    emit_move(e, emit_bytes(e, value), reg, to, true);
  emit_release(e, s, &value, 1);
  e->stored = true;
}

/* What a fold becomes. Lanes that a masked vector has not stay as they are. */
void emit_fold(emit_run *e, const emit_step *s) {
  uint32_t value = s->value;
  unsigned reg = emit_pin(e, value), home = e->in_loop ? e->homes[s->number].reg[s->turn] : EMIT_REGISTERS;
  if (home == EMIT_REGISTERS && e->masked)
    emit_masked(e, e->b->values[value].width, reg, emit_fold_slot(e, s->number, s->turn), true);
  else if (home == EMIT_REGISTERS)
    emit_move(e, e->target->vector, reg, emit_fold_slot(e, s->number, s->turn), true);
  else if (e->masked)
    emit_merge(e, e->b->values[value].width, home, reg);
  else if (home != reg)
    x86_vector(e->c, X86_MOVUPS, e->target->vector, home, 0, x86_reg(reg), 0);
  emit_release(e, s, &value, 1);
}
