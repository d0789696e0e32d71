/* Where values are while code is emitted, and how they get into registers. */
#include "emit_inside.h"
#include "functions.h"

/* General registers: rdi the arguments, rcx the iteration, rdx the last at which a whole vector begins, rax for
 * anything. The others have the pointers of the first streams; from the sixth on they are the caller's, too. */
const uint8_t emit_pointers[EMIT_POINTERS] = {X86_RSI, X86_R8,  X86_R9,  X86_R10, X86_R11, X86_RBX,
                                              X86_RBP, X86_R12, X86_R13, X86_R14, X86_R15};

bool emit_is_apart(const emit_run *e, const nat_value *v) {
  return v->kind == NAT_LOAD && !v->steady && e->b->streams[v->bits].stride != 1;
}

uint32_t emit_bytes(const emit_run *e, uint32_t value) {
  return e->b->values[value].width * e->b->lanes;
}

static bool emit_is_mask(const emit_run *e, uint32_t value) {
  return value != NAT_NONE && e->b->values[value].width == 0;
}

/* --- memory --- */

x86_rm emit_pointer(uint32_t stream) {
  return x86_at(X86_RDI, (int32_t)(offsetof(nat_arguments, at) + stream * sizeof(void *)));
}

x86_rm emit_stream(emit_run *e, uint32_t stream, uint32_t turn) {
  const nat_stream *s = &e->b->streams[stream];
  unsigned base = X86_RAX;
  int32_t ahead = (int32_t)(turn * e->b->lanes * s->width);
  if (s->number) return emit_pointer(stream);
  if (stream < EMIT_POINTERS)
    base = emit_pointers[stream];
  else
    x86_load(e->c, X86_RAX, emit_pointer(stream));
  if (s->stride == 0) return x86_at(base, s->output ? ahead : 0);
  assert(s->stride == 1);
  if (s->width == 16) { /* an index counts 8 at most */
    x86_lea(e->c, X86_RAX, (x86_rm){.memory = true, .base = (uint8_t)base, .index = X86_RCX, .scale = 8});
    return (x86_rm){.memory = true, .base = X86_RAX, .index = X86_RCX, .scale = 8, .disp = ahead};
  }
  return (x86_rm){.memory = true, .base = (uint8_t)base, .index = X86_RCX, .scale = s->width, .disp = ahead};
}

x86_rm emit_fold_slot(emit_run *e, uint32_t fold, uint32_t turn) {
  x86_rm m = emit_slot(e, e->homes[fold].slot + turn);
  assert(!e->in_loop || e->homes[fold].reg[turn] == EMIT_REGISTERS);
  if (!e->adrift) return m;
  x86_load(e->c, X86_RAX, emit_slot(e, EMIT_TURN));
  m.index = X86_RAX, m.scale = 1;
  return m;
}

x86_rm emit_slot(const emit_run *e, unsigned slot) {
  return x86_at(X86_RSP, (int32_t)(slot * e->target->vector));
}

void emit_move(emit_run *e, uint32_t bytes, unsigned reg, x86_rm m, bool store) {
  x86_op eight = e->c->evex ? X86_EMOVQ : X86_MOVQ, op = bytes >= 16 ? X86_MOVUPS : bytes == 8 ? eight : X86_MOVSS;
  assert(bytes >= 4);
  x86_vector(e->c, (x86_op)(op + (store ? 1 : 0)), bytes < 16 ? 16 : bytes, reg, 0, m, 0);
}

/* The mask of the last vector's lanes, by width, where masks are vectors. */
static void emit_need_mask(emit_run *e, uint32_t width) {
  assert(width == 4 || width == 8);
  if (e->mask_width == width) return;
  emit_move(e, 32, EMIT_MASK_REGISTER, emit_slot(e, width == 4 ? EMIT_MASK_4 : EMIT_MASK_8), false);
  e->mask_width = (uint8_t)width;
}

static const uint8_t emit_moves[] = {[1] = X86_MOVDQU8, [2] = X86_MOVDQU16, [4] = X86_MOVDQU32, [8] = X86_MOVDQU64};

void emit_merge(emit_run *e, uint32_t width, unsigned to, unsigned from) {
  unsigned mask = EMIT_LANES_MASK - EMIT_MASKS;
  x86_masked(e->c, (x86_op)emit_moves[width], e->target->vector, to, 0, x86_reg(from), mask, false);
}

void emit_under(emit_run *e, uint32_t width, unsigned mask, unsigned reg, x86_rm m, bool store) {
  uint32_t bytes = width * e->b->lanes;
  if (bytes < 16) bytes = 16;
  if (e->target->masks) {
    x86_masked(e->c, (x86_op)(emit_moves[width] + (store ? 1 : 0)), bytes, reg, 0, m, mask - EMIT_MASKS, !store);
    return;
  }
  x86_op op = width == 4 ? (store ? X86_MASKMOVPS_TO : X86_MASKMOVPS) : store ? X86_MASKMOVPD_TO : X86_MASKMOVPD;
  x86_vector(e->c, op, bytes, reg, mask, m, 0);
}

void emit_masked(emit_run *e, uint32_t width, unsigned reg, x86_rm m, bool store) {
  if (!e->target->masks) emit_need_mask(e, width);
  emit_under(e, width, e->target->masks ? EMIT_LANES_MASK : EMIT_MASK_REGISTER, reg, m, store);
}

/* One lane where the instruction splats it, else a vector. */
static x86_rm emit_constant(emit_run *e, const nat_value *v, bool splat) {
  uint8_t bytes[NAT_VECTOR] = {0};
  uint32_t n = splat ? v->width : e->target->vector;
  for (uint32_t i = 0; i < n; i += v->width) memcpy(bytes + i, &v->bits, v->width);
  x86_rm m = x86_constant((int32_t)x86_add_constant(e->c, bytes, n));
  if (splat) m.splat = v->width;
  return m;
}

/* In memory behind the code always: registers are not saved in their whole length around calls of loops. */
static x86_rm emit_table(emit_run *e, const nat_value *v) {
  return x86_constant((int32_t)x86_add_constant(e->c, nat_table_half(v->bits), e->target->masks ? 64 : 32));
}

/* --- registers --- */

uint16_t emit_new_slot(emit_run *e) {
  if (e->n_slots == e->most_slots) {
    e->failed = true;
    return EMIT_FIRST_SLOT;
  }
  return e->n_slots++;
}

/* Between a register of either kind and the value's slot. */
static void emit_to_slot(emit_run *e, uint32_t value, unsigned reg, bool store) {
  x86_rm m = emit_slot(e, e->places[value].slot);
  uint32_t bytes = emit_bytes(e, value);
  if (emit_is_mask(e, value))
    x86_on_masks(e->c, store ? X86_KMOV_TO : X86_KMOV, reg - EMIT_MASKS, 0, m);
  else
    emit_move(e, bytes < 16 ? 16 : bytes, reg, m, store);
}

/* What can be had again from where it is: loads only as long as nothing was stored, since an output may be the
 * memory of an input. */
static bool emit_lies_there(const emit_run *e, uint32_t value) {
  const nat_value *v = &e->b->values[value];
  return v->kind == NAT_CONSTANT || v->kind == NAT_COUNT || v->kind == NAT_ACC || e->places[value].slot ||
         (v->kind == NAT_LOAD && !emit_is_apart(e, v) && (!e->stored || v->steady));
}

static void emit_evict(emit_run *e, unsigned reg) {
  uint32_t value = e->held[reg];
  emit_place *p = &e->places[value];
  assert(p->reg == reg && p->next != NAT_NONE && !p->resident);
  if (!emit_lies_there(e, value)) {
    p->slot = emit_new_slot(e);
    emit_to_slot(e, value, reg, true);
  }
  p->reg = EMIT_REGISTERS;
  e->held[reg] = NAT_NONE;
}

/* The register of the fold that becomes the value, where it has one of its own: what it had is not read again. A masked
 * vector changes only its lanes. */
static unsigned emit_own_register(emit_run *e, uint32_t value) {
  const nat_body *b = e->b;
  if (!e->in_loop || e->masked || value == NAT_NONE) return EMIT_REGISTERS;
  if (e->into) {
    const emit_home *h = e->into[value] == NAT_NONE ? NULL : &e->homes[e->into[value]];
    return h && e->now > e->exit && e->places[h->acc].next == NAT_NONE ? h->reg[0] : EMIT_REGISTERS;
  }
  for (uint32_t f = 0, once = value % b->n_once; f < b->n_folds; f++)
    if (b->folds[f].value == once) return e->homes[f].reg[b->values[value].turn];
  return EMIT_REGISTERS;
}

unsigned emit_take(emit_run *e, uint32_t value) {
  unsigned own = emit_own_register(e, value);
  if (own < EMIT_REGISTERS) {
    e->places[value].reg = (uint8_t)own;
    e->places[value].resident = true;
    return own;
  }
  bool mask = emit_is_mask(e, value);
  unsigned first = mask ? EMIT_FIRST_MASK : 0, end = mask ? EMIT_LANES_MASK - e->gathers : e->n_registers,
           best = EMIT_REGISTERS;
  for (unsigned r = first; r < end; r++) {
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

static const uint8_t emit_splat_ops[] = {
    [1] = X86_BROADCASTB, [2] = X86_BROADCASTW, [4] = X86_BROADCASTSS, [8] = X86_BROADCASTSD};

static void emit_constant_load(emit_run *e, uint32_t value, unsigned reg) {
  const nat_value *v = &e->b->values[value];
  if (v->width == 0) {
    unsigned mask = reg - EMIT_MASKS;
    x86_on_masks(e->c, v->bits ? X86_KXNOR : X86_KXOR, mask, mask, x86_reg(mask));
  } else if (e->target->masks) {
    x86_rm m = emit_constant(e, v, true);
    m.splat = 0; /* that is what the instruction does */
    x86_vector(e->c, (x86_op)emit_splat_ops[v->width], e->target->vector < 32 ? 32 : e->target->vector, reg, 0, m, 0);
  } else {
    uint32_t bytes = emit_bytes(e, value);
    emit_move(e, bytes < 16 ? 16 : bytes, reg, emit_constant(e, v, false), false);
  }
}

static void emit_steady_load(emit_run *e, const nat_value *v, unsigned reg) {
  x86_rm m = emit_stream(e, (uint32_t)v->bits, 0);
  x86_vector(e->c, (x86_op)emit_splat_ops[v->width], e->target->vector, reg, 0, m, 0);
}

/* --- loads whose lanes are apart --- */

enum { EMIT_PART = 16 }; /* bytes that one shuffle of bytes works on */

/* n lanes of a byte from the vectors in which they lie, the last of which ends where the last lane does: each is
 * shuffled so that its lanes are where they belong, and zeros elsewhere. at: of the first lane. */
static void emit_bytes_apart(emit_run *e, const nat_stream *s, unsigned reg, x86_rm at, uint32_t n) {
  int64_t apart = s->stride < 0 ? -s->stride : s->stride, end = (n - 1) * apart + 1, begins = 0;
  if (s->stride < 0) at.disp -= (int32_t)(end - 1);
  uint64_t pinned = e->pinned;
  e->pinned |= 1ull << reg;
  unsigned part = emit_take(e, NAT_NONE);
  e->pinned = pinned;
  for (int64_t had = 0; had < end; had = begins + EMIT_PART) {
    uint8_t which[EMIT_PART];
    begins = had + EMIT_PART < end ? had : end - EMIT_PART;
    for (int64_t i = 0; i < EMIT_PART; i++) {
      int64_t place = (s->stride < 0 ? n - 1 - i : i) * apart;
      bool here = i < n && place >= had && place < begins + EMIT_PART;
      which[i] = here ? (uint8_t)(place - begins) : 0x80;
    }
    x86_rm from = at, order = x86_constant((int32_t)x86_add_constant(e->c, which, EMIT_PART));
    from.disp += (int32_t)begins;
    emit_move(e, EMIT_PART, had ? part : reg, from, false);
    x86_vector(e->c, X86_PSHUFB, EMIT_PART, had ? part : reg, had ? part : reg, order, 0);
    if (had) x86_vector(e->c, X86_XORD, EMIT_PART, reg, reg, x86_reg(part), 0);
  }
  e->held[part] = NAT_NONE;
}

/* Whether that takes fewer instructions than lanes one by one, and reads nothing beside them. */
static bool emit_shuffles_bytes(const nat_stream *s, uint32_t n) {
  int64_t end = (int64_t)(n - 1) * (s->stride < 0 ? -s->stride : s->stride) + 1;
  return s->width == 1 && end >= EMIT_PART && 3 * ((end + EMIT_PART - 1) / EMIT_PART) < 2 * (int64_t)n;
}

/* Lanes from..from + n, each where it is in memory, to the first 16 bytes of reg. at: of lane 0. */
static void emit_apart_some(emit_run *e, const nat_stream *s, unsigned reg, x86_rm at, uint32_t from, uint32_t n) {
  x86_code *c = e->c;
  if (emit_shuffles_bytes(s, n)) {
    at.disp += (int32_t)(from * s->stride);
    emit_bytes_apart(e, s, reg, at, n);
    return;
  }
  if (s->width < 4) x86_vector(c, X86_XORD, 16, reg, reg, x86_reg(reg), 0);
  for (uint32_t j = 0; j < n; j++) {
    x86_rm m = at;
    m.disp += (int32_t)((from + j) * s->stride * s->width);
    if (s->width < 4)
      x86_vector(c, s->width == 1 ? X86_PINSRB : X86_PINSRW, 16, reg, reg, m, j);
    else if (j == 0)
      emit_move(e, s->width, reg, m, false);
    else if (s->width == 4)
      x86_vector(c, X86_INSERTPS, 16, reg, reg, m, j << 4);
    else
      x86_vector(c, X86_MOVHPD, 16, reg, reg, m, 0);
  }
}

enum { EMIT_MOST_APART = 32 /* bytes: beyond, as many vectors as are read take longer than lanes one by one */ };

/* Whether they are taken from whole vectors: as many as lanes are elements apart, the last of which ends where the last
 * lane does, so that nothing beside the run is read. */
static bool emit_is_permuted(const emit_run *e, const nat_stream *s) {
  uint32_t bytes = e->b->lanes * s->width;
  int64_t apart = s->stride < 0 ? -s->stride : s->stride;
  return e->target->masks && s->width > 1 && bytes >= 32 && apart * s->width <= EMIT_MOST_APART;
}

/* reg's lanes that lie in vector number k of them, of which vector 0 is in reg. at: of the first element in memory. */
static void emit_permute(emit_run *e, const nat_stream *s, unsigned reg, unsigned index, x86_rm at, int64_t k) {
  static const x86_op one[] = {[2] = X86_PERMW, [4] = X86_PERMD, [8] = X86_PERMQ};
  static const x86_op two[] = {[2] = X86_PERMT2W, [4] = X86_PERMT2D, [8] = X86_PERMT2Q};
  uint8_t which[NAT_VECTOR] = {0};
  int64_t lanes = e->b->lanes, apart = s->stride < 0 ? -s->stride : s->stride;
  uint32_t bytes = (uint32_t)lanes * s->width;
  int64_t begins = k && k == apart - 1 ? (lanes - 1) * (apart - 1) : k * lanes;
  for (int64_t i = 0; i < lanes; i++) {
    int64_t place = (s->stride < 0 ? lanes - 1 - i : i) * apart, of = place / lanes, lane = 0;
    if (of < k || k == 0)
      lane = k > 1 ? i : place; /* where it was put before, or in vector 0 as it was read */
    else if (of == k)
      lane = lanes + place - begins;
    assert(lane >= 0 && lane < 2 * lanes);
    which[i * s->width] = (uint8_t)lane;
  }
  emit_move(e, bytes, index, x86_constant((int32_t)x86_add_constant(e->c, which, bytes)), false);
  at.disp += (int32_t)(begins * s->width);
  x86_vector(e->c, (apart == 1 ? one : two)[s->width], bytes, reg, index, at, 0);
}

static void emit_permuted(emit_run *e, const nat_stream *s, unsigned reg, x86_rm at) {
  uint32_t bytes = e->b->lanes * s->width;
  int64_t apart = s->stride < 0 ? -s->stride : s->stride;
  if (s->stride < 0) at.disp -= (int32_t)((int64_t)(e->b->lanes - 1) * apart * s->width);
  e->pinned |= 1ull << reg;
  unsigned index = emit_take(e, NAT_NONE);
  if (apart > 1) emit_move(e, bytes, reg, at, false);
  for (int64_t k = apart > 1 ? 1 : 0; k < apart; k++) emit_permute(e, s, reg, index, at, k);
  e->held[index] = NAT_NONE;
}

static void emit_apart(emit_run *e, const nat_value *v, unsigned reg) {
  const nat_stream *s = &e->b->streams[v->bits];
  uint32_t part = 16 / s->width, lanes = e->b->lanes;
  x86_multiply_number(e->c, X86_RAX, X86_RCX, (int32_t)(s->stride * s->width));
  if (v->bits < EMIT_POINTERS)
    x86_add(e->c, X86_RAX, emit_pointers[v->bits]);
  else
    x86_add_memory(e->c, X86_RAX, emit_pointer((uint32_t)v->bits));
  x86_rm at = x86_at(X86_RAX, 0);
  if (emit_is_permuted(e, s)) {
    emit_permuted(e, s, reg, at);
    return;
  }
  emit_apart_some(e, s, reg, at, 0, lanes < part ? lanes : part);
  if (lanes <= part) return;
  e->pinned |= 1ull << reg;
  unsigned more = emit_take(e, NAT_NONE);
  for (uint32_t from = part; from < lanes; from += part) {
    emit_apart_some(e, s, more, at, from, part);
    bool wide = e->target->masks;
    x86_vector(e->c, wide ? X86_INSERT16 : X86_INSERTHI, e->target->vector, reg, reg, x86_reg(more), from / part);
  }
  e->held[more] = NAT_NONE;
}

/* --- operands --- */

void emit_load(emit_run *e, uint32_t value, unsigned reg) {
  const nat_value *v = &e->b->values[value];
  if (e->places[value].slot)
    emit_to_slot(e, value, reg, false);
  else if (v->kind == NAT_CONSTANT)
    emit_constant_load(e, value, reg);
  else if (v->kind == NAT_ACC)
    emit_move(e, e->target->vector, reg, emit_fold_slot(e, (uint32_t)v->bits, v->turn), false);
  else if (v->kind == NAT_COUNT && v->steady)
    emit_move(e, e->target->vector, reg, emit_lane_numbers(e, 0), false);
  else if (v->kind == NAT_COUNT)
    emit_move(e, e->target->vector, reg, emit_slot(e, EMIT_COUNT + v->turn), false);
  else if (v->steady)
    emit_steady_load(e, v, reg);
  else if (emit_is_apart(e, v))
    emit_apart(e, v, reg);
  else if (e->masked)
    emit_masked(e, v->width, reg, emit_stream(e, (uint32_t)v->bits, v->turn), false);
  else
    emit_move(e, emit_bytes(e, value), reg, emit_stream(e, (uint32_t)v->bits, v->turn), false);
}

unsigned emit_pin(emit_run *e, uint32_t value) {
  unsigned reg = e->places[value].reg;
  if (reg == EMIT_REGISTERS) {
    reg = emit_take(e, value);
    emit_load(e, value, reg);
  }
  e->pinned |= 1ull << reg;
  return reg;
}

/* Whether the operand can be read from memory: it is in no register, and lies there as long as is read. A load that is
 * used again is better in a register. */
static bool emit_can_read(const emit_run *e, const x86_row *row, unsigned bytes, uint32_t value, bool last) {
  const nat_value *v = &e->b->values[value];
  const emit_place *p = &e->places[value];
  if (v->kind == NAT_TABLE) return true;
  if (p->reg < EMIT_REGISTERS || row->lane == 32 || row->lane == 64) return false;
  if (p->slot) return v->width > 0;
  if (v->kind == NAT_CONSTANT) return !e->target->masks || (x86_can_splat(row) && row->lane == v->width);
  if (v->kind != NAT_LOAD || v->steady || e->masked || !last || emit_is_apart(e, v)) return false;
  uint32_t read = row->from && row->from < row->lane ? e->b->lanes * row->from : bytes;
  return read == emit_bytes(e, value);
}

x86_rm emit_operand(emit_run *e, const x86_row *row, unsigned bytes, uint32_t value, bool last) {
  if (!emit_can_read(e, row, bytes, value, last)) return x86_reg(emit_pin(e, value));
  if (e->places[value].slot) return emit_slot(e, e->places[value].slot);
  const nat_value *v = &e->b->values[value];
  if (v->kind == NAT_TABLE) return emit_table(e, v);
  return v->kind == NAT_CONSTANT ? emit_constant(e, v, e->target->masks) : emit_stream(e, (uint32_t)v->bits, v->turn);
}

void emit_release(emit_run *e, const emit_step *s, const uint32_t *in, uint32_t n) {
  for (uint32_t j = 0; j < n; j++) {
    emit_place *p = &e->places[in[j]];
    p->next = s->next[j];
    if (p->next != NAT_NONE || p->reg == EMIT_REGISTERS || p->resident) continue;
    e->held[p->reg] = NAT_NONE;
    e->pinned &= ~(1ull << p->reg);
    p->reg = EMIT_REGISTERS;
  }
}

void emit_keep(emit_run *e, uint32_t value) {
  emit_place *p = &e->places[value];
  unsigned reg = emit_pin(e, value);
  if (!p->slot) {
    p->slot = emit_new_slot(e);
    if (emit_is_mask(e, value))
      emit_to_slot(e, value, reg, true);
    else
      emit_move(e, e->target->vector, reg, emit_slot(e, p->slot), true);
  }
  if (p->next != NAT_NONE) return;
  e->held[reg] = NAT_NONE;
  p->reg = EMIT_REGISTERS;
}
