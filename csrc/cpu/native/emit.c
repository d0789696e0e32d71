/* Registers are given out while code is emitted, in one pass over the body's instructions: a value gets a register when
 * it is computed and gives it up with its last use. Where none is free, the value whose next use is furthest away
 * loses its own: a constant, a steady value or a load is read again where it lies, anything else is stored in the
 * frame. An instruction takes what is in no register from memory, if it can.
 *
 * The code: steady values first, which are kept in the frame; then the loop over whole vectors, and for what is left
 * the body again, with masked loads and stores. */
#include "emit.h"

#include "functions.h"

enum {
  EMIT_REGISTERS = 16,
  EMIT_FRAME = 4096,                        /* bytes: a slot a vector */
  EMIT_SLOTS = EMIT_FRAME / NAT_VECTOR - 1, /* the first has the caller's stack pointer, and ... */
  EMIT_MASK_4 = 1,
  EMIT_MASK_8 = 2, /* ... of these the masks of the last vector */
  EMIT_COUNT = 3,  /* the numbers of the present iterations */
  EMIT_SAVED = 4,  /* all registers, around a call */
  EMIT_FIRST_SLOT = EMIT_SAVED + EMIT_REGISTERS,
  EMIT_CALLS = 64, /* of far functions */
  EMIT_POINTERS = 11,
  EMIT_MASK_REGISTER = 15
};

/* General registers: rdi the arguments, rcx the iteration, rdx the last at which a whole vector begins, rax for
 * anything. The others have the pointers of the first streams; from the sixth on they are the caller's, too. */
static const uint8_t emit_pointers[EMIT_POINTERS] = {X86_RSI, X86_R8,  X86_R9,  X86_R10, X86_R11, X86_RBX,
                                                     X86_RBP, X86_R12, X86_R13, X86_R14, X86_R15};
enum { EMIT_FREE_POINTERS = 5 };

/* A step of a section: a value that is computed, or a store. */
typedef struct emit_step {
  uint32_t value, store; /* store: number, or NAT_NONE */
  uint32_t next[3];      /* by operand: the step that uses it next, or NAT_NONE */
} emit_step;

/* Where a value is while a section is emitted. */
typedef struct emit_place {
  uint8_t reg;   /* or EMIT_REGISTERS */
  uint16_t slot; /* of the frame; 0: none */
  uint32_t next; /* step of its next use, or NAT_NONE */
} emit_place;

/* A call that is hardly ever needed: behind the code. */
typedef struct emit_call {
  uint32_t jump, back; /* where it is jumped to, and goes on */
  uint8_t x, to, which;
} emit_call;

typedef struct emit_run {
  const nat_body *b;
  uint32_t n_calls;
  emit_call calls[EMIT_CALLS];
  x86_code *c;
  emit_place *places; /* by value */
  emit_step *steps;
  uint32_t n_steps, now;
  uint32_t held[EMIT_REGISTERS]; /* the value in it, or NAT_NONE */
  uint16_t pinned;               /* registers that the present instruction reads */
  uint16_t n_slots;
  uint8_t n_registers; /* that there are for values */
  bool masked, steady, stored, failed;
  uint8_t mask_width; /* of the mask in its register */
  uint32_t said;      /* the kernel's value that the text is at */
} emit_run;

/* Whether it is a load whose lanes are not neighbours. */
static bool emit_is_gather(const emit_run *e, const nat_value *v) {
  return v->kind == NAT_LOAD && !v->steady && e->b->streams[v->bits].stride != 1;
}

static uint32_t emit_bytes(const emit_run *e, uint32_t value) {
  return e->b->values[value].width * e->b->lanes;
}

/* --- memory --- */

/* Where the stream's pointer is among the arguments. */
static x86_rm emit_pointer(uint32_t stream) {
  return x86_at(X86_RDI, (int32_t)(offsetof(nat_arguments, at) + stream * sizeof(void *)));
}

/* Element 0 of the present vector in the stream's run. */
static x86_rm emit_stream(emit_run *e, uint32_t stream) {
  const nat_stream *s = &e->b->streams[stream];
  unsigned base = X86_RAX;
  if (s->number) return emit_pointer(stream);
  if (stream < EMIT_POINTERS)
    base = emit_pointers[stream];
  else
    x86_load(e->c, X86_RAX, emit_pointer(stream));
  if (s->stride == 0) return x86_at(base, 0);
  assert(s->stride == 1);
  return (x86_rm){.memory = true, .base = (uint8_t)base, .index = X86_RCX, .scale = s->width};
}

static x86_rm emit_slot(unsigned slot) {
  return x86_at(X86_RSP, (int32_t)(slot * NAT_VECTOR));
}

/* A move of `bytes` between a register and memory. */
static void emit_move(emit_run *e, uint32_t bytes, unsigned reg, x86_rm m, bool store) {
  bool wide = bytes == 32;
  x86_op op = bytes >= 16 ? X86_MOVUPS : bytes == 8 ? X86_MOVQ : X86_MOVSS;
  assert(bytes >= 4);
  x86_vector(e->c, (x86_op)(op + (store ? 1 : 0)), wide, reg, 0, m, 0);
}

/* The mask of the last vector's lanes, by width. */
static void emit_need_mask(emit_run *e, uint32_t width) {
  assert(width == 4 || width == 8);
  if (e->mask_width == width) return;
  emit_move(e, NAT_VECTOR, EMIT_MASK_REGISTER, emit_slot(width == 4 ? EMIT_MASK_4 : EMIT_MASK_8), false);
  e->mask_width = (uint8_t)width;
}

static void emit_masked(emit_run *e, uint32_t width, unsigned reg, x86_rm m, bool store) {
  bool wide = width * e->b->lanes == 32;
  x86_op op = width == 4 ? (store ? X86_MASKMOVPS_TO : X86_MASKMOVPS) : store ? X86_MASKMOVPD_TO : X86_MASKMOVPD;
  emit_need_mask(e, width);
  x86_vector(e->c, op, wide, reg, EMIT_MASK_REGISTER, m, 0);
}

static x86_rm emit_constant(emit_run *e, const nat_value *v) {
  uint8_t bytes[NAT_VECTOR];
  for (uint32_t i = 0; i < NAT_VECTOR; i += v->width) memcpy(bytes + i, &v->bits, v->width);
  return x86_constant((int32_t)x86_add_constant(e->c, bytes, NAT_VECTOR));
}

/* --- registers --- */

static uint16_t emit_new_slot(emit_run *e) {
  if (e->n_slots == EMIT_SLOTS) {
    e->failed = true;
    return EMIT_FIRST_SLOT;
  }
  return e->n_slots++;
}

/* What can be had again from where it lies: loads only as long as nothing was stored, since an output may be the
 * memory of an input. */
static bool emit_lies_there(const emit_run *e, uint32_t value) {
  const nat_value *v = &e->b->values[value];
  return v->kind == NAT_CONSTANT || v->kind == NAT_COUNT || e->places[value].slot ||
         (v->kind == NAT_LOAD && !emit_is_gather(e, v) && (!e->stored || v->steady));
}

static void emit_evict(emit_run *e, unsigned reg) {
  uint32_t value = e->held[reg];
  emit_place *p = &e->places[value];
  assert(p->reg == reg && p->next != NAT_NONE);
  if (!emit_lies_there(e, value)) {
    p->slot = emit_new_slot(e);
    emit_move(e, emit_bytes(e, value) < 16 ? 16 : emit_bytes(e, value), reg, emit_slot(p->slot), true);
  }
  p->reg = EMIT_REGISTERS;
  e->held[reg] = NAT_NONE;
}

/* A register for the value; the one whose value is used last is emptied where none is free. */
static unsigned emit_take(emit_run *e, uint32_t value) {
  unsigned best = EMIT_REGISTERS;
  for (unsigned r = 0; r < e->n_registers; r++) {
    if (e->pinned >> r & 1) continue;
    if (e->held[r] == NAT_NONE) {
      best = r;
      break;
    }
    if (best == EMIT_REGISTERS || e->places[e->held[r]].next > e->places[e->held[best]].next) best = r;
  }
  assert(best < EMIT_REGISTERS);
  if (e->held[best] != NAT_NONE) emit_evict(e, best);
  e->held[best] = value;
  if (value != NAT_NONE) e->places[value].reg = (uint8_t)best;
  return best;
}

static void emit_steady_load(emit_run *e, const nat_value *v, unsigned reg) {
  static const uint8_t by_width[] = {
      [1] = X86_BROADCASTB, [2] = X86_BROADCASTW, [4] = X86_BROADCASTSS, [8] = X86_BROADCASTSD};
  x86_vector(e->c, (x86_op)by_width[v->width], true, reg, 0, emit_stream(e, (uint32_t)v->bits), 0);
}

/* Lanes from..from + n, each where it lies in memory, to the low half of reg. at: of lane 0. */
static void emit_gather_half(emit_run *e, const nat_stream *s, unsigned reg, x86_rm at, uint32_t from, uint32_t n) {
  x86_code *c = e->c;
  if (s->width < 4) x86_vector(c, X86_XORB, false, reg, reg, x86_reg(reg), 0);
  for (uint32_t j = 0; j < n; j++) {
    x86_rm m = at;
    m.disp += (int32_t)((from + j) * s->stride * s->width);
    if (s->width < 4)
      x86_vector(c, s->width == 1 ? X86_PINSRB : X86_PINSRW, false, reg, reg, m, j);
    else if (j == 0)
      x86_vector(c, s->width == 4 ? X86_MOVSS : X86_MOVQ, false, reg, 0, m, 0);
    else if (s->width == 4)
      x86_vector(c, X86_INSERTPS, false, reg, reg, m, j << 4);
    else
      x86_vector(c, X86_MOVHPD, false, reg, reg, m, 0);
  }
}

/* A load whose lanes are apart. */
static void emit_gather(emit_run *e, const nat_value *v, unsigned reg) {
  const nat_stream *s = &e->b->streams[v->bits];
  uint32_t half = 16 / s->width, lanes = e->b->lanes;
  x86_multiply_number(e->c, X86_RAX, X86_RCX, (int32_t)(s->stride * s->width));
  x86_add_memory(e->c, X86_RAX, emit_pointer((uint32_t)v->bits));
  x86_rm at = x86_at(X86_RAX, 0);
  emit_gather_half(e, s, reg, at, 0, lanes < half ? lanes : half);
  if (lanes <= half) return;
  e->pinned |= (uint16_t)(1u << reg);
  unsigned high = emit_take(e, NAT_NONE);
  emit_gather_half(e, s, high, at, half, half);
  x86_vector(e->c, X86_INSERTHI, true, reg, reg, x86_reg(high), 1);
}

/* The value in a register, which it keeps as long as there is room. */
static unsigned emit_in_register(emit_run *e, uint32_t value) {
  const nat_value *v = &e->b->values[value];
  emit_place *p = &e->places[value];
  if (p->reg < EMIT_REGISTERS) return p->reg;
  unsigned reg = emit_take(e, value);
  if (p->slot)
    emit_move(e, emit_bytes(e, value) < 16 ? 16 : emit_bytes(e, value), reg, emit_slot(p->slot), false);
  else if (v->kind == NAT_CONSTANT)
    emit_move(e, emit_bytes(e, value) < 16 ? 16 : emit_bytes(e, value), reg, emit_constant(e, v), false);
  else if (v->kind == NAT_COUNT)
    emit_move(e, NAT_VECTOR, reg, emit_slot(EMIT_COUNT), false);
  else if (v->steady)
    emit_steady_load(e, v, reg);
  else if (emit_is_gather(e, v))
    emit_gather(e, v, reg);
  else if (e->masked)
    emit_masked(e, v->width, reg, emit_stream(e, (uint32_t)v->bits), false);
  else
    emit_move(e, emit_bytes(e, value), reg, emit_stream(e, (uint32_t)v->bits), false);
  return reg;
}

/* Bytes that the instruction reads where its last operand is memory. */
static uint32_t emit_memory_bytes(const emit_run *e, const x86_row *row, bool wide) {
  if (row->from && row->from < row->lane) return e->b->lanes * row->from;
  return wide ? 32 : 16;
}

/* Whether the operand can be read from memory: it is in no register, and lies there as long as is read. A load that is
 * used again is better in a register. */
static bool emit_can_read(const emit_run *e, const x86_row *row, bool wide, uint32_t value, bool last) {
  const nat_value *v = &e->b->values[value];
  const emit_place *p = &e->places[value];
  if (p->reg < EMIT_REGISTERS || row->lane == 32) return false;
  if (p->slot || v->kind == NAT_CONSTANT) return true;
  if (v->kind != NAT_LOAD || v->steady || e->masked || !last || emit_is_gather(e, v)) return false;
  return emit_memory_bytes(e, row, wide) == emit_bytes(e, value);
}

static x86_rm emit_operand(emit_run *e, const x86_row *row, bool wide, uint32_t value, bool last) {
  if (!emit_can_read(e, row, wide, value, last)) {
    unsigned reg = emit_in_register(e, value);
    e->pinned |= (uint16_t)(1u << reg);
    return x86_reg(reg);
  }
  if (e->places[value].slot) return emit_slot(e->places[value].slot);
  const nat_value *v = &e->b->values[value];
  return v->kind == NAT_CONSTANT ? emit_constant(e, v) : emit_stream(e, (uint32_t)v->bits);
}

static unsigned emit_pin(emit_run *e, uint32_t value) {
  unsigned reg = emit_in_register(e, value);
  e->pinned |= (uint16_t)(1u << reg);
  return reg;
}

/* The step's uses are over: operands that have no other give up their registers. */
static void emit_release(emit_run *e, const emit_step *s, const uint32_t *in, uint32_t n) {
  for (uint32_t j = 0; j < n; j++) {
    emit_place *p = &e->places[in[j]];
    p->next = s->next[j];
    if (p->next != NAT_NONE || p->reg == EMIT_REGISTERS) continue;
    e->held[p->reg] = NAT_NONE;
    e->pinned &= (uint16_t)~(1u << p->reg);
    p->reg = EMIT_REGISTERS;
  }
}

/* --- instructions --- */

static bool emit_is_wide(const emit_run *e, const nat_value *v) {
  uint32_t lane = x86_table[v->op].lane;
  if (lane == 0) return false;
  return e->b->lanes * (lane > v->width ? lane : v->width) >= NAT_VECTOR;
}

static bool emit_dies(const emit_run *e, const emit_step *s, const nat_value *v, uint32_t j) {
  for (uint32_t i = 0; i < v->n_in; i++)
    if (i != j && v->in[i] == v->in[j]) return false;
  return s->next[j] == NAT_NONE && e->places[v->in[j]].reg < EMIT_REGISTERS;
}

/* The value in a register that may be overwritten: it is not dead, so what is in a register already is copied. */
static unsigned emit_copy(emit_run *e, uint32_t value, bool wide) {
  emit_place *p = &e->places[value];
  if (p->reg == EMIT_REGISTERS) {
    unsigned reg = emit_pin(e, value);
    p->reg = EMIT_REGISTERS;
    e->held[reg] = NAT_NONE;
    return reg;
  }
  e->pinned |= (uint16_t)(1u << p->reg);
  unsigned to = emit_take(e, NAT_NONE);
  x86_vector(e->c, X86_MOVUPS, wide, to, 0, x86_reg(p->reg), 0);
  return to;
}

/* x * y + z over whichever operand is not needed any more; over a copy of z where all are. */
static void emit_fma(emit_run *e, const emit_step *s, const nat_value *v, bool wide) {
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
  x86_rm last = emit_operand(e, row, wide, v->in[m], s->next[m] == NAT_NONE);
  if (!dies) to = emit_copy(e, v->in[2], wide);
  x86_fma(e->c, (x86_op)v->op, wide, over == 2 ? 2 : 0, to, x, last);
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

static void emit_op(emit_run *e, const emit_step *s) {
  const nat_value *v = &e->b->values[s->value];
  const x86_row *row = &x86_table[v->op];
  bool wide = emit_is_wide(e, v);
  if (row->shape == X86_FMA) {
    emit_fma(e, s, v, wide);
    return;
  }
  uint32_t a = 0, m = v->n_in > 1 ? 1 : 0;
  if (emit_swaps(e, row, v)) a = 1, m = 0;
  unsigned number = v->number, first = 0;
  if (row->shape == X86_RVMR) number = emit_pin(e, v->in[2]);
  if (v->n_in > 1) first = emit_pin(e, v->in[a]);
  bool only_registers = row->shape == X86_SHIFT || row->shape == X86_MRI;
  x86_rm last =
      only_registers ? x86_reg(emit_pin(e, v->in[m])) : emit_operand(e, row, wide, v->in[m], s->next[m] == NAT_NONE);
  emit_release(e, s, v->in, v->n_in);
  unsigned to = emit_take(e, s->value);
  if (row->shape == X86_SHIFT)
    x86_vector(e->c, (x86_op)v->op, wide, to, last.reg, last, number);
  else if (row->shape == X86_MRI)
    x86_vector(e->c, (x86_op)v->op, wide, last.reg, 0, x86_reg(to), number);
  else
    x86_vector(e->c, (x86_op)v->op, wide, to, first, last, number);
}

/* The near value, unless the mask has a lane. */
static void emit_far(emit_run *e, const emit_step *s) {
  const nat_value *v = &e->b->values[s->value];
  bool wide = e->b->lanes * 4 >= NAT_VECTOR;
  unsigned near = emit_pin(e, v->in[0]), x = emit_pin(e, v->in[1]), far = emit_pin(e, v->in[2]);
  unsigned to = emit_take(e, s->value);
  x86_vector(e->c, X86_MOVUPS, wide, to, 0, x86_reg(near), 0);
  x86_vector(e->c, X86_PTEST, wide, far, 0, x86_reg(far), 0);
  if (e->n_calls == EMIT_CALLS) {
    e->failed = true;
    return;
  }
  uint32_t jump = x86_jump_on(e->c, X86_IF_NOT_EQUAL);
  e->calls[e->n_calls++] = (emit_call){jump, x86_target(e->c), (uint8_t)x, (uint8_t)to, v->number};
  emit_release(e, s, v->in, v->n_in);
}

/* All registers that the callee may change are saved; it reads and writes them where they are. */
static void emit_far_call(emit_run *e, const emit_call *call) {
  static const uint8_t kept[] = {X86_RDI, X86_RSI, X86_RDX, X86_RCX, X86_R8, X86_R9, X86_R10, X86_R11};
  enum { KEPT = sizeof kept };
  x86_code *c = e->c;
  x86_land(c, call->jump);
  for (unsigned r = 0; r < EMIT_REGISTERS; r++) emit_move(e, NAT_VECTOR, r, emit_slot(EMIT_SAVED + r), true);
  for (unsigned i = 0; i < KEPT; i++) x86_push(c, kept[i]);
  x86_lea(c, X86_RDI, x86_at(X86_RSP, (int32_t)(KEPT * 8 + (EMIT_SAVED + call->x) * NAT_VECTOR)));
  x86_lea(c, X86_RSI, x86_at(X86_RSP, (int32_t)(KEPT * 8 + (EMIT_SAVED + call->to) * NAT_VECTOR)));
  x86_zero(c, X86_RDX);
  x86_add_number(c, X86_RDX, call->which);
  x86_zero(c, X86_RCX);
  x86_add_number(c, X86_RCX, (int32_t)e->b->lanes);
  x86_call(c, (uintptr_t)nat_far_run);
  for (unsigned i = KEPT; i-- > 0;) x86_pop(c, kept[i]);
  for (unsigned r = 0; r < EMIT_REGISTERS; r++) emit_move(e, NAT_VECTOR, r, emit_slot(EMIT_SAVED + r), false);
  x86_jump_back(c, X86_ALWAYS, call->back);
}

static void emit_store(emit_run *e, const emit_step *s) {
  const nat_store *store = &e->b->stores[s->store];
  uint32_t value = store->value;
  unsigned reg = emit_pin(e, value);
  x86_rm to = emit_stream(e, store->stream);
  if (e->masked)
    emit_masked(e, e->b->values[value].width, reg, to, true);
  else
    emit_move(e, emit_bytes(e, value), reg, to, true);
  emit_release(e, s, &value, 1);
  e->stored = true;
}

/* In the text, what the instructions that follow are for. */
static void emit_say(emit_run *e, const emit_step *s) {
  const nat_value *v = &e->b->values[s->value];
  if (!e->c->text || (s->store == NAT_NONE && v->from == e->said)) return;
  e->said = s->store == NAT_NONE ? v->from : NAT_NONE;
  const kernel_value *of = &e->b->k->values[v->from];
  if (s->store != NAT_NONE)
    base_putf(e->c->text, "# store out%u\n", e->b->k->stores[s->store].buffer);
  else if (of->kind == KERNEL_OP)
    base_putf(e->c->text, "# v%u = %s\n", v->from, scalar_text((scalar_code)of->op.code));
  else
    base_putf(e->c->text, "# v%u\n", v->from);
}

/* A steady value to its slot. */
static void emit_keep(emit_run *e, uint32_t value) {
  emit_place *p = &e->places[value];
  unsigned reg = emit_in_register(e, value);
  if (!p->slot) {
    p->slot = emit_new_slot(e);
    emit_move(e, NAT_VECTOR, reg, emit_slot(p->slot), true);
  }
  if (p->next != NAT_NONE) return;
  e->held[reg] = NAT_NONE;
  p->reg = EMIT_REGISTERS;
}

static void emit_section(emit_run *e) {
  for (unsigned r = 0; r < EMIT_REGISTERS; r++) e->held[r] = NAT_NONE;
  e->n_registers = EMIT_REGISTERS - e->masked;
  e->mask_width = 0;
  e->stored = false;
  e->said = NAT_NONE;
  for (e->now = 0; e->now < e->n_steps && !e->failed; e->now++) {
    const emit_step *s = &e->steps[e->now];
    e->pinned = 0;
    emit_say(e, s);
    if (s->store != NAT_NONE)
      emit_store(e, s);
    else if (e->b->values[s->value].kind == NAT_FAR)
      emit_far(e, s);
    else if (e->b->values[s->value].kind == NAT_OP)
      emit_op(e, s);
    if (e->steady) emit_keep(e, s->value);
  }
}

/* --- sections --- */

/* Where each operand is used next, from the last step to the first; then e->places has each value's first use. */
static void emit_find_uses(emit_run *e) {
  for (uint32_t i = 0; i < e->b->n_values; i++) {
    emit_place *p = &e->places[i];
    *p = (emit_place){EMIT_REGISTERS, e->b->values[i].steady ? p->slot : 0, NAT_NONE};
  }
  for (uint32_t i = e->n_steps; i-- > 0;) {
    emit_step *s = &e->steps[i];
    const nat_value *v = &e->b->values[s->value];
    const uint32_t *in = s->store == NAT_NONE ? v->in : &s->value;
    uint32_t n = s->store == NAT_NONE ? v->n_in : 1;
    for (uint32_t j = 0; j < n; j++) s->next[j] = e->places[in[j]].next;
    for (uint32_t j = 0; j < n; j++) e->places[in[j]].next = i;
  }
}

/* By value: whether a store needs it, itself or by way of others. NULL when out of memory. */
static uint8_t *emit_find_needed(const nat_body *b, base_arena *scratch) {
  uint8_t *needed = base_arena_zalloc(scratch, b->n_values + 1);
  if (!needed) return NULL;
  for (uint32_t i = 0; i < b->n_stores; i++) needed[b->stores[i].value] = 1;
  for (uint32_t i = b->n_values; i-- > 0;)
    for (uint32_t j = 0; needed[i] && j < b->values[i].n_in; j++) needed[b->values[i].in[j]] = 1;
  return needed;
}

static void emit_add_step(emit_run *e, uint32_t value, uint32_t store) {
  e->steps[e->n_steps++] = (emit_step){.value = value, .store = store, .next = {NAT_NONE, NAT_NONE, NAT_NONE}};
}

/* The last value that reads a load: no store may come before. */
static uint32_t emit_last_reader(const nat_body *b, const uint8_t *needed) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < b->n_values; i++)
    for (uint32_t j = 0; needed[i] && j < b->values[i].n_in; j++)
      if (b->values[b->values[i].in[j]].kind == NAT_LOAD && !b->values[b->values[i].in[j]].steady) last = i;
  return last;
}

/* The loop's steps: stores come as early as they may. A store of a load or of a steady value comes at the end. */
static void emit_plan_body(emit_run *e, const uint8_t *needed) {
  const nat_body *b = e->b;
  uint32_t last = emit_last_reader(b, needed), late = 0;
  for (uint32_t s = 0; s < b->n_stores; s++) late |= (b->values[b->stores[s].value].kind == NAT_LOAD) ? 1 : 0;
  e->n_steps = 0;
  for (uint32_t i = 0; i < b->n_values; i++) {
    if (!needed[i] || b->values[i].steady || b->values[i].kind < NAT_OP) continue;
    emit_add_step(e, i, NAT_NONE);
    for (uint32_t s = 0; !late && s < b->n_stores; s++) {
      uint32_t of = b->stores[s].value;
      if (!b->values[of].steady && (of == i ? i >= last : i == last && of < i)) emit_add_step(e, of, s);
    }
  }
  for (uint32_t s = 0; s < b->n_stores; s++) {
    uint32_t of = b->stores[s].value;
    bool done = !late && !b->values[of].steady;
    if (!done) emit_add_step(e, of, s);
  }
}

/* What the loop needs of steady values: computed ones and loads, since a broadcast is no operand of an instruction. */
static void emit_plan_steady(emit_run *e, const uint8_t *needed) {
  e->n_steps = 0;
  for (uint32_t i = 0; i < e->b->n_values; i++) {
    const nat_value *v = &e->b->values[i];
    if (needed[i] && v->steady && v->kind != NAT_CONSTANT) emit_add_step(e, i, NAT_NONE);
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

/* --- the whole --- */

static uint32_t emit_pushes(const nat_body *b) {
  uint32_t n = b->n_streams < EMIT_POINTERS ? b->n_streams : EMIT_POINTERS;
  return n > EMIT_FREE_POINTERS ? n - EMIT_FREE_POINTERS : 0;
}

static void emit_enter(emit_run *e) {
  x86_code *c = e->c;
  for (uint32_t i = 0; i < emit_pushes(e->b); i++) x86_push(c, emit_pointers[EMIT_FREE_POINTERS + i]);
  x86_move(c, X86_RAX, X86_RSP);
  x86_add_number(c, X86_RSP, -EMIT_FRAME);
  x86_and_number(c, X86_RSP, -NAT_VECTOR);
  x86_store(c, x86_at(X86_RSP, 0), X86_RAX);
  x86_load(c, X86_RDX, x86_at(X86_RDI, offsetof(nat_arguments, n)));
  for (uint32_t i = 0; i < e->b->n_streams && i < EMIT_POINTERS; i++) x86_load(c, emit_pointers[i], emit_pointer(i));
}

static void emit_leave(emit_run *e) {
  x86_load(e->c, X86_RSP, x86_at(X86_RSP, 0));
  for (uint32_t i = emit_pushes(e->b); i-- > 0;) x86_pop(e->c, emit_pointers[EMIT_FREE_POINTERS + i]);
  x86_end(e->c);
}

static bool emit_counts(const nat_body *b) {
  for (uint32_t i = 0; i < b->n_values; i++)
    if (b->values[i].kind == NAT_COUNT) return true;
  return false;
}

/* The numbers of the first iterations, and those of the next ones: between sections all registers are free. */
static void emit_count_start(emit_run *e) {
  static const int32_t first[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  if (!emit_counts(e->b)) return;
  emit_move(e, NAT_VECTOR, 0, x86_constant((int32_t)x86_add_constant(e->c, first, sizeof first)), false);
  emit_move(e, NAT_VECTOR, 0, emit_slot(EMIT_COUNT), true);
}
static void emit_count_on(emit_run *e) {
  const int32_t n = (int32_t)e->b->lanes, by[8] = {n, n, n, n, n, n, n, n};
  if (!emit_counts(e->b)) return;
  emit_move(e, NAT_VECTOR, 0, emit_slot(EMIT_COUNT), false);
  x86_vector(e->c, X86_PADDD, true, 0, 0, x86_constant((int32_t)x86_add_constant(e->c, by, sizeof by)), 0);
  emit_move(e, NAT_VECTOR, 0, emit_slot(EMIT_COUNT), true);
}

/* While a whole vector is left. */
static void emit_loop(emit_run *e) {
  x86_code *c = e->c;
  int32_t lanes = (int32_t)e->b->lanes;
  emit_count_start(e);
  x86_zero(c, X86_RCX);
  x86_add_number(c, X86_RDX, -lanes);
  x86_compare(c, X86_RCX, X86_RDX);
  uint32_t none = x86_jump_on(c, X86_IF_MORE);
  x86_align(c, 32);
  uint32_t loop = x86_target(c);
  emit_section(e);
  emit_count_on(e);
  x86_add_number(c, X86_RCX, lanes);
  x86_compare(c, X86_RCX, X86_RDX);
  x86_jump_back(c, X86_IF_NOT_MORE, loop);
  x86_land(c, none);
}

/* The widths of all streams' lanes, as bits. */
static uint32_t emit_widths(const nat_body *b) {
  uint32_t widths = 0;
  for (uint32_t i = 0; i < b->n_streams; i++)
    if (b->streams[i].stride) widths |= b->streams[i].width;
  return widths;
}

/* Masks are of neighbours. */
bool nat_has_tail(const nat_body *b) {
  for (uint32_t i = 0; i < b->n_streams; i++)
    if (b->streams[i].stride != 0 && b->streams[i].stride != 1) return false;
  return (emit_widths(b) & 3) == 0 && b->lanes <= 8;
}

/* What is left, n - rcx iterations, fewer than lanes. The masks are read from bytes of ones, then zeros, such that so
 * many lanes are ones. */
static void emit_tail(emit_run *e) {
  x86_code *c = e->c;
  static const uint32_t ones_then_zeros[16] = {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
  x86_rm zeros = x86_constant((int32_t)x86_add_constant(c, ones_then_zeros, sizeof ones_then_zeros) + NAT_VECTOR);
  x86_add_number(c, X86_RDX, (int32_t)e->b->lanes);
  x86_move(c, X86_RAX, X86_RCX);
  x86_subtract(c, X86_RAX, X86_RDX);
  uint32_t none = x86_jump_on(c, X86_IF_EQUAL);
  x86_move(c, X86_RDX, X86_RAX);
  x86_lea(c, X86_RAX, zeros);
  for (uint32_t width = 4; width <= 8; width *= 2) {
    if (!(emit_widths(e->b) & width)) continue;
    x86_rm mask = {.memory = true, .base = X86_RAX, .index = X86_RDX, .scale = (uint8_t)width};
    emit_move(e, NAT_VECTOR, EMIT_MASK_REGISTER, mask, false);
    emit_move(e, NAT_VECTOR, EMIT_MASK_REGISTER, emit_slot(width == 4 ? EMIT_MASK_4 : EMIT_MASK_8), true);
  }
  e->masked = true;
  emit_section(e);
  x86_land(c, none);
}

static bool emit_all(emit_run *e, uint8_t *needed) {
  emit_enter(e);
  emit_steady(e, needed);
  uint16_t steady_slots = e->n_slots;
  emit_plan_body(e, needed);
  emit_find_uses(e);
  emit_loop(e);
  e->n_slots = steady_slots;
  emit_find_uses(e);
  if (nat_has_tail(e->b)) emit_tail(e);
  emit_leave(e);
  for (uint32_t i = 0; i < e->n_calls && !e->failed; i++) emit_far_call(e, &e->calls[i]);
  return !e->failed && !e->c->failed;
}

bool nat_emit(const nat_body *b, x86_code *c, base_arena *scratch) {
  emit_run e = {.b = b, .c = c, .n_slots = EMIT_FIRST_SLOT};
  uint8_t *needed = emit_find_needed(b, scratch);
  e.places = base_arena_zalloc(scratch, b->n_values * sizeof *e.places);
  e.steps = BASE_ARRAY(scratch, emit_step, (size_t)b->n_values + KERNEL_MAX_STORES);
  assert(b->n_values > 0 && c->bytes.n == 0);
  return needed && e.places && e.steps && emit_all(&e, needed);
}
