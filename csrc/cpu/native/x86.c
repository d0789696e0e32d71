/* The assembler: prefixes, ModRM and displacements. An instruction is written to a few bytes on the stack and then
 * appended, so that running out of memory is seen in one place. */
#include "x86_inside.h"

#include <assert.h>

const x86_row x86_table[X86_OPS] = {
#define X86(name, encoding, mnemonic, prefix, map, w, opcode, shape, commutes, lane, from) \
  [X86_##name] = {mnemonic, X86_##encoding, prefix, map, w, opcode, X86_##shape, commutes, lane, from},
#include "x86.def"
#undef X86
};

void x86_init(x86_code *c, base_alloc alloc) {
  *c = (x86_code){.alloc = alloc};
}

void x86_free(x86_code *c) {
  BASE_VEC_FREE(c->alloc, &c->bytes);
  BASE_VEC_FREE(c->alloc, &c->constants);
  BASE_VEC_FREE(c->alloc, &c->fixups);
  BASE_VEC_FREE(c->alloc, &c->addresses);
}

static void x86_put(x86_code *c, const uint8_t *bytes, uint32_t n) {
  if (c->failed || !BASE_VEC_RESERVE(c->alloc, &c->bytes, (size_t)c->bytes.n + n)) {
    c->failed = true;
    return;
  }
  if (n) memcpy(c->bytes.items + c->bytes.n, bytes, n);
  c->bytes.n += n;
}

/* One instruction on its way; the longest has 15 bytes. */
typedef struct x86_inst {
  uint8_t bytes[16];
  uint32_t n;
} x86_inst;

static void x86_byte(x86_inst *i, unsigned byte) {
  assert(i->n < sizeof i->bytes);
  i->bytes[i->n++] = (uint8_t)byte;
}

static void x86_four(x86_inst *i, int32_t number) {
  for (int k = 0; k < 4; k++) x86_byte(i, (uint32_t)number >> 8 * k & 255);
}

/* ModRM, SIB and displacement. rbp and r13 as a base always have a displacement, rsp and r12 a SIB. `more`: bytes of
 * the instruction that follow, from whose end constants are reached. unit: a displacement of one byte counts so many;
 * 1 but with EVEX. */
static void x86_modrm(x86_code *c, x86_inst *i, unsigned reg, x86_rm m, uint32_t more, int32_t unit) {
  unsigned r = (reg & 7) << 3;
  if (!m.memory) {
    x86_byte(i, 0xC0 | r | (m.reg & 7));
  } else if (m.base == X86_NONE) {
    assert(more <= 4);
    x86_byte(i, r | 5);
    if (!BASE_VEC_PUSH(c->alloc, &c->fixups, ((x86_fixup){c->bytes.n + i->n, (uint32_t)m.disp}))) c->failed = true;
    x86_four(i, (int32_t)more);
  } else {
    bool sib = m.index != X86_NONE || (m.base & 7) == X86_RSP;
    bool small = m.disp % unit == 0 && m.disp / unit == (int8_t)(m.disp / unit);
    unsigned mod = m.disp == 0 && (m.base & 7) != X86_RBP ? 0 : small ? 0x40 : 0x80;
    x86_byte(i, mod | r | (sib ? 4 : m.base & 7));
    unsigned scale = m.scale ? (unsigned)__builtin_ctz(m.scale) << 6 : 0;
    if (sib) x86_byte(i, scale | (m.index == X86_NONE ? 4 << 3 : (m.index & 7) << 3) | (m.base & 7));
    if (mod == 0x40) x86_byte(i, (uint8_t)(m.disp / unit));
    if (mod == 0x80) x86_four(i, m.disp);
  }
}

/* Bit n of the registers in m: 3 is X and B of a prefix, 4 is EVEX's X of a register. */
static unsigned x86_index_bit(x86_rm m) {
  return m.memory && m.index != X86_NONE && (m.index >> 3 & 1);
}
static unsigned x86_base_bit(x86_rm m) {
  return m.memory ? m.base != X86_NONE && m.base >= 8 : m.reg >> 3 & 1;
}

/* In two bytes where nothing needs the third. v: the register that only the prefix names; 0 where there is none. */
static void x86_vex(x86_inst *i, const x86_row *row, unsigned w, bool wide, unsigned reg, unsigned v, x86_rm m) {
  unsigned r = reg < 8, x = !x86_index_bit(m), b = !x86_base_bit(m);
  unsigned last = (~v & 15) << 3 | (wide ? 4 : 0) | row->prefix;
  assert(reg < 16 && v < 16 && (m.memory || m.reg < 16));
  if (x && b && !w && row->map == 1) {
    x86_byte(i, 0xC5);
    x86_byte(i, r << 7 | last);
  } else {
    x86_byte(i, 0xC4);
    x86_byte(i, r << 7 | x << 6 | b << 5 | row->map);
    x86_byte(i, w << 7 | last);
  }
}

/* Four bytes; all bits of registers are inverted. */
static void x86_evex(x86_inst *i, const x86_row *row, x86_manner how, unsigned reg, unsigned v, x86_rm m) {
  unsigned x = m.memory ? x86_index_bit(m) : m.reg >> 4 & 1;
  bool digit = row->shape == X86_SHIFT, w = row->from == 8 || (!digit && row->w);
  assert(reg < 32 && v < 32 && how.mask < 8);
  x86_byte(i, 0x62);
  x86_byte(i, (~reg >> 3 & 1) << 7 | !x << 6 | !x86_base_bit(m) << 5 | (~reg >> 4 & 1) << 4 | row->map);
  x86_byte(i, (unsigned)w << 7 | (~v & 15) << 3 | 4 | row->prefix);
  unsigned length = how.bytes == 64 ? 2 : how.bytes == 32 ? 1 : 0;
  x86_byte(i, (unsigned)how.zeros << 7 | length << 5 | (unsigned)(m.splat != 0) << 4 | (~v >> 4 & 1) << 3 | how.mask);
}

/* Bytes that the instruction reads from memory: of a register's, or what a row says. */
static int32_t x86_unit(const x86_row *row, unsigned bytes, x86_rm m) {
  if (m.splat) return m.splat;
  if (row->from == 0) return (int32_t)bytes;
  bool lanes = row->lane > 0 && row->lane <= 8;
  return lanes ? (int32_t)(bytes * row->from / row->lane) : row->from;
}

/* reg, v, m: as they are encoded. number: of the immediate byte, or -1. */
static void x86_vector_bytes(x86_code *c, const x86_row *row, unsigned opcode, x86_manner how, unsigned reg, unsigned v,
                             x86_rm m, int number) {
  x86_inst i = {.n = 0};
  bool evex = row->encoding == X86_EVEX || (row->encoding == X86_ANY && c->evex);
  assert(evex || (!how.mask && !m.splat && how.bytes <= 32));
  if (evex)
    x86_evex(&i, row, how, reg, v, m);
  else
    x86_vex(&i, row, row->shape == X86_SHIFT ? 0 : row->w, how.bytes == 32, reg, v, m);
  x86_byte(&i, opcode);
  x86_modrm(c, &i, reg, m, number >= 0, evex ? x86_unit(row, how.bytes, m) : 1);
  if (number >= 0) x86_byte(&i, (unsigned)number);
  x86_put(c, i.bytes, i.n);
}

static void x86_any_vector(x86_code *c, x86_op op, x86_manner how, unsigned to, unsigned a, x86_rm m) {
  const x86_row *row = &x86_table[op];
  int none = -1;
  assert(op < X86_OPS && row->shape != X86_FMA && row->shape != X86_GATHER && row->encoding != X86_MASK);
  if (c->text) x86_vector_text(c, op, how, to, a, m);
  if (op == X86_MOVUPS && !c->evex && !m.memory && m.reg >= 8 && to < 8) { /* the store's form is shorter */
    x86_vector_bytes(c, row, row->opcode + 1u, how, m.reg, 0, x86_reg(to), none);
    return;
  }
  switch ((x86_shape)row->shape) {
    case X86_RVM:
    case X86_BLEND:
    case X86_KVM:
    case X86_MVR:
      x86_vector_bytes(c, row, row->opcode, how, to, a, m, none);
      break;
    case X86_RVMI:
    case X86_KVMI:
      x86_vector_bytes(c, row, row->opcode, how, to, a, m, (int)how.number);
      break;
    case X86_RM:
    case X86_KEEP:
    case X86_MR:
    case X86_NARROW:
    case X86_GR:
      x86_vector_bytes(c, row, row->opcode, how, to, 0, m, none);
      break;
    case X86_RMI:
    case X86_MRI:
      x86_vector_bytes(c, row, row->opcode, how, to, 0, m, (int)how.number);
      break;
    case X86_SHIFT:
      x86_vector_bytes(c, row, row->opcode, how, row->w, to, x86_reg(a), (int)how.number);
      break;
    case X86_RVMR:
      x86_vector_bytes(c, row, row->opcode, how, to, a, m, (int)(how.number << 4));
      break;
    default:
      break;
  }
}

void x86_vector(x86_code *c, x86_op op, unsigned bytes, unsigned to, unsigned a, x86_rm m, unsigned number) {
  x86_any_vector(c, op, (x86_manner){.bytes = bytes, .number = number}, to, a, m);
}

void x86_masked(x86_code *c, x86_op op, unsigned bytes, unsigned to, unsigned a, x86_rm m, unsigned mask, bool zeros) {
  assert(mask > 0);
  x86_any_vector(c, op, (x86_manner){.bytes = bytes, .mask = mask, .zeros = zeros}, to, a, m);
}

/* 231 is to += a * m, 213 is to = a * to + m. */
void x86_fma(x86_code *c, x86_op op, unsigned bytes, unsigned result, unsigned to, unsigned a, x86_rm m) {
  const x86_row *row = &x86_table[op];
  assert(row->shape == X86_FMA && (result == 0 || result == 2));
  if (c->text) x86_fma_text(c, op, bytes, result, to, a, m);
  unsigned opcode = result == 2 ? row->opcode : row->opcode - 0x10u;
  x86_vector_bytes(c, row, opcode, (x86_manner){.bytes = bytes}, to, a, m, -1);
}

/* The prefix's own register is the mask, or with EVEX the last bit of the index. */
void x86_gather(x86_code *c, x86_op op, unsigned bytes, unsigned to, x86_rm m, unsigned mask) {
  const x86_row *row = &x86_table[op];
  assert(row->shape == X86_GATHER && m.places && to != m.index && (!c->evex || (mask > 0 && mask < 8)));
  if (c->text) x86_gather_text(c, op, bytes, to, m, mask);
  unsigned v = c->evex ? m.index & 16 : mask;
  x86_vector_bytes(c, row, row->opcode, (x86_manner){.bytes = bytes, .mask = c->evex ? mask : 0}, to, v, m, -1);
}

/* VEX with 64 bits; of three masks, its length bit is set. */
void x86_on_masks(x86_code *c, x86_op op, unsigned to, unsigned a, x86_rm m) {
  const x86_row *row = &x86_table[op];
  x86_inst i = {.n = 0};
  assert(row->encoding == X86_MASK && to < 8 && a < 8);
  if (c->text) x86_masks_text(c, op, to, a, m);
  x86_vex(&i, row, row->w, row->shape == X86_KKK, to, a, m);
  x86_byte(&i, row->opcode);
  x86_modrm(c, &i, to, m, 0, 1);
  x86_put(c, i.bytes, i.n);
}

/* --- general registers --- */

/* REX.W, opcode, ModRM. */
static void x86_general(x86_code *c, x86_inst *i, unsigned opcode, unsigned reg, x86_rm m) {
  x86_byte(i, 0x48 | (reg >= 8 ? 4 : 0) | x86_index_bit(m) << 1 | x86_base_bit(m));
  x86_byte(i, opcode);
  x86_modrm(c, i, reg, m, 0, 1);
}

static void x86_two(x86_code *c, const char *mnemonic, unsigned opcode, unsigned reg, x86_rm m, bool memory_first) {
  x86_inst i = {.n = 0};
  if (c->text) x86_general_text(c, mnemonic, reg, m, memory_first);
  x86_general(c, &i, opcode, reg, m);
  x86_put(c, i.bytes, i.n);
}

void x86_load(x86_code *c, unsigned to, x86_rm from) {
  x86_two(c, "mov", 0x8B, to, from, false);
}
void x86_load_s32(x86_code *c, unsigned to, x86_rm from) {
  x86_two(c, "movsxd", 0x63, to, from, false);
}
void x86_store(x86_code *c, x86_rm to, unsigned from) {
  x86_two(c, "mov", 0x89, from, to, true);
}
void x86_lea(x86_code *c, unsigned to, x86_rm from) {
  x86_two(c, "lea", 0x8D, to, from, false);
}
void x86_move(x86_code *c, unsigned to, unsigned from) {
  x86_two(c, "mov", 0x89, from, x86_reg(to), true);
}
void x86_add(x86_code *c, unsigned to, unsigned from) {
  x86_two(c, "add", 0x01, from, x86_reg(to), true);
}
void x86_subtract(x86_code *c, unsigned to, unsigned from) {
  x86_two(c, "sub", 0x29, from, x86_reg(to), true);
}
void x86_compare(x86_code *c, unsigned a, unsigned b) {
  x86_two(c, "cmp", 0x39, b, x86_reg(a), true);
}

void x86_add_memory(x86_code *c, unsigned to, x86_rm from) {
  x86_two(c, "add", 0x03, to, from, false);
}

/* With four bytes of the number. */
void x86_multiply_number(x86_code *c, unsigned to, unsigned from, int32_t number) {
  x86_inst i = {.n = 0};
  if (c->text) x86_product_text(c, to, from, number);
  x86_general(c, &i, number == (int8_t)number ? 0x6B : 0x69, to, x86_reg(from));
  if (number == (int8_t)number)
    x86_byte(&i, (uint8_t)number);
  else
    x86_four(&i, number);
  x86_put(c, i.bytes, i.n);
}

/* In one byte where it fits. digit: which of the eight operations. */
static void x86_by_number(x86_code *c, const char *mnemonic, unsigned digit, x86_rm to, int32_t number) {
  x86_inst i = {.n = 0};
  bool small = number == (int8_t)number;
  if (c->text) x86_number_text(c, mnemonic, to, number);
  if (!small && !to.memory && to.reg == X86_RAX) { /* has a form of its own */
    x86_byte(&i, 0x48);
    x86_byte(&i, digit << 3 | 5);
  } else {
    x86_general(c, &i, small ? 0x83 : 0x81, digit, to);
  }
  if (small)
    x86_byte(&i, (uint8_t)number);
  else
    x86_four(&i, number);
  x86_put(c, i.bytes, i.n);
}
void x86_add_number(x86_code *c, unsigned to, int32_t number) {
  x86_by_number(c, "add", 0, x86_reg(to), number);
}
void x86_add_to_memory(x86_code *c, x86_rm to, int32_t number) {
  x86_by_number(c, "add", 0, to, number);
}
void x86_compare_number(x86_code *c, unsigned a, int32_t number) {
  x86_by_number(c, "cmp", 7, x86_reg(a), number);
}
void x86_and_number(x86_code *c, unsigned to, int32_t number) {
  x86_by_number(c, "and", 4, x86_reg(to), number);
}

/* By its 32 bits, which clears the others. */
void x86_zero(x86_code *c, unsigned to) {
  x86_inst i = {.n = 0};
  if (c->text) x86_zero_text(c, to);
  if (to >= 8) x86_byte(&i, 0x45);
  x86_byte(&i, 0x31);
  x86_byte(&i, 0xC0 | (to & 7) << 3 | (to & 7));
  x86_put(c, i.bytes, i.n);
}

void x86_number(x86_code *c, unsigned to, uint64_t number) {
  x86_inst i = {.bytes = {to >= 8 ? 0x49 : 0x48, (uint8_t)(0xB8 | (to & 7))}, .n = 2};
  for (int k = 0; k < 8; k++) x86_byte(&i, (unsigned)(number >> 8 * k & 255));
  if (c->text) x86_wide_text(c, to, number);
  x86_put(c, i.bytes, i.n);
}

void x86_address(x86_code *c, unsigned to, uintptr_t function) {
  c->failed = !BASE_VEC_PUSH(c->alloc, &c->addresses, c->bytes.n + 2) || c->failed;
  x86_number(c, to, function);
}

/* bzhi */
void x86_low_bits(x86_code *c, unsigned to, unsigned count) {
  static const x86_row bzhi = {.map = 2, .w = 1};
  x86_inst i = {.n = 0};
  if (c->text) x86_low_bits_text(c, to, count);
  x86_vex(&i, &bzhi, 1, false, to, count, x86_reg(to));
  x86_byte(&i, 0xF5);
  x86_modrm(c, &i, to, x86_reg(to), 0, 1);
  x86_put(c, i.bytes, i.n);
}

static void x86_stack(x86_code *c, const char *mnemonic, unsigned opcode, unsigned reg) {
  x86_inst i = {.n = 0};
  if (c->text) x86_plain_text(c, mnemonic, reg);
  if (reg >= 8) x86_byte(&i, 0x41);
  x86_byte(&i, opcode | (reg & 7));
  x86_put(c, i.bytes, i.n);
}
void x86_push(x86_code *c, unsigned reg) {
  x86_stack(c, "push", 0x50, reg);
}
void x86_pop(x86_code *c, unsigned reg) {
  x86_stack(c, "pop", 0x58, reg);
}

void x86_call(x86_code *c, uintptr_t function) {
  static const uint8_t call[] = {0xFF, 0xD0};
  x86_address(c, X86_RAX, function);
  if (c->text) x86_call_text(c);
  x86_put(c, call, sizeof call);
}

void x86_clear_upper(x86_code *c) {
  static const uint8_t zero[] = {0xC5, 0xF8, 0x77};
  if (c->text) x86_plain_text(c, "vzeroupper", X86_NONE);
  x86_put(c, zero, sizeof zero);
}

void x86_end(x86_code *c) {
  static const uint8_t back[] = {0xC3};
  x86_clear_upper(c);
  if (c->text) x86_plain_text(c, "ret", X86_NONE);
  x86_put(c, back, sizeof back);
}

/* --- jumps --- */

uint32_t x86_here(const x86_code *c) {
  return c->bytes.n;
}

uint32_t x86_target(x86_code *c) {
  if (c->text) x86_label_text(c, c->bytes.n);
  return c->bytes.n;
}

/* With 32 bits of displacement. */
static void x86_jump(x86_code *c, x86_condition if_, int32_t distance) {
  x86_inst i = {.n = 0};
  if (if_ == X86_ALWAYS) {
    x86_byte(&i, 0xE9);
    distance += if_ == X86_ALWAYS && distance ? 1 : 0; /* a byte shorter */
  } else {
    x86_byte(&i, 0x0F);
    x86_byte(&i, 0x80 | if_);
  }
  x86_four(&i, distance);
  x86_put(c, i.bytes, i.n);
}

void x86_jump_back(x86_code *c, x86_condition if_, uint32_t target) {
  int32_t distance = (int32_t)target - (int32_t)(c->bytes.n + 2);
  assert(c->failed || target <= c->bytes.n);
  if (c->text) x86_jump_text(c, if_, target);
  if (distance < -128) {
    x86_jump(c, if_, distance - 4);
    return;
  }
  uint8_t few[2] = {if_ == X86_ALWAYS ? 0xEB : (uint8_t)(0x70 | if_), (uint8_t)distance};
  x86_put(c, few, sizeof few);
}

/* The place of its displacement. */
uint32_t x86_jump_on(x86_code *c, x86_condition if_) {
  if (c->text) x86_jump_text(c, if_, x86_here(c) + 2);
  x86_jump(c, if_, 0);
  return c->bytes.n - 4;
}

void x86_land(x86_code *c, uint32_t jump) {
  if (c->failed) return;
  int32_t distance = (int32_t)(c->bytes.n - jump - 4);
  memcpy(c->bytes.items + jump, &distance, sizeof distance);
  if (c->text) x86_label_text(c, jump);
}

/* The long forms of an instruction that does nothing, as the manuals have them. */
void x86_align(x86_code *c, uint32_t bytes) {
  static const uint8_t nothing[9][9] = {{0x90},
                                        {0x66, 0x90},
                                        {0x0F, 0x1F, 0x00},
                                        {0x0F, 0x1F, 0x40, 0},
                                        {0x0F, 0x1F, 0x44, 0, 0},
                                        {0x66, 0x0F, 0x1F, 0x44, 0, 0},
                                        {0x0F, 0x1F, 0x80, 0, 0, 0, 0},
                                        {0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0},
                                        {0x66, 0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0}};
  for (uint32_t n = -c->bytes.n & (bytes - 1); n > 0 && !c->failed; n = -c->bytes.n & (bytes - 1))
    x86_put(c, nothing[(n < 9 ? n : 9) - 1], n < 9 ? n : 9);
}

/* --- constants --- */

uint32_t x86_add_constant(x86_code *c, const void *bytes, uint32_t n) {
  assert(n > 0 && n <= 64 && (n & (n - 1)) == 0);
  for (uint32_t at = 0; at + n <= c->constants.n; at += n)
    if (memcmp(c->constants.items + at, bytes, n) == 0) return at;
  uint32_t had = c->constants.n, at = (had + n - 1) & ~(n - 1), end = at + n;
  if (!BASE_VEC_RESERVE(c->alloc, &c->constants, (size_t)end)) {
    c->failed = true;
    return 0;
  }
  if (at > had) memset(c->constants.items + had, 0, at - had);
  memcpy(c->constants.items + at, bytes, n);
  c->constants.n = end;
  return at;
}

void x86_finish(x86_code *c) {
  x86_align(c, 64);
  uint32_t start = c->bytes.n;
  x86_put(c, c->constants.items, c->constants.n);
  for (uint32_t i = 0; i < c->fixups.n && !c->failed; i++) {
    const x86_fixup *f = &c->fixups.items[i];
    int32_t more;
    memcpy(&more, c->bytes.items + f->at, sizeof more);
    int32_t distance = (int32_t)(start + f->place) - (int32_t)(f->at + 4) - more;
    memcpy(c->bytes.items + f->at, &distance, sizeof distance);
  }
}
