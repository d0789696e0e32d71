/* Every instruction of the native assembler with several operands: a line each, its bytes and its text. Built and run
 * by test_native.py. */
#include "../../csrc/cpu/native/x86.c"
#include "../../csrc/cpu/native/x86_text.c"

#include <stdio.h>

static x86_code code;
static base_text text;

/* What was emitted since the last call. */
static void say(void) {
  static uint32_t at;
  for (; at < code.bytes.n; at++) printf("%02x", code.bytes.items[at]);
  printf(" %s", base_text_cstr(&text));
  text.n = 0;
}

static const x86_rm places[] = {{.reg = 3},
                                {.reg = 12},
                                {.memory = true, .base = X86_RSI, .index = X86_RCX, .scale = 4},
                                {.memory = true, .base = X86_R13, .index = X86_RCX, .scale = 8},
                                {.memory = true, .base = X86_RSP, .index = X86_NONE, .disp = 96},
                                {.memory = true, .base = X86_R12, .index = X86_NONE, .disp = 4064},
                                {.memory = true, .base = X86_RBP, .index = X86_R9, .scale = 1, .disp = -128},
                                {.memory = true, .base = X86_RAX, .index = X86_NONE},
                                {.reg = 21}, /* of AVX-512 alone, as what follows */
                                {.reg = 30},
                                {.memory = true, .base = X86_R15, .index = X86_R12, .scale = 2, .disp = 8128},
                                {.memory = true, .base = X86_RDX, .index = X86_NONE, .disp = -8192},
                                {.memory = true, .base = X86_R9, .index = X86_NONE, .disp = 60}};
enum { OLD_PLACES = 8, PLACES = sizeof places / sizeof *places };

/* Whether there is such an instruction: halves are registers of a fixed size, stores go to memory. */
static bool fits(x86_op op, unsigned bytes, bool memory) {
  const x86_row *row = &x86_table[op];
  x86_shape shape = row->shape;
  bool store = shape == X86_MR || shape == X86_MVR, mask = op == X86_MASKMOVPS || op == X86_MASKMOVPD;
  if (row->shape == X86_GATHER) return false; /* say_gathers */
  if (row->encoding == X86_MASK || (row->encoding == X86_VEX && code.evex) || (row->encoding == X86_EVEX && !code.evex))
    return false;
  if (bytes == 64 && !code.evex) return false;
  if (shape == X86_GR) return false; /* say_back */
  if (op == X86_PEXTRB || op == X86_PEXTRW) return memory && bytes == 16;
  if (op == X86_INSERT16) return bytes > 16;
  if (op == X86_INSERTHI || op == X86_EXTRACTHI) return bytes == 32;
  if (op >= X86_SHUFPS && op <= X86_MOVHPD && bytes > 16) return false;
  if (((op >= X86_MOVQ && op <= X86_MOVSS_TO) || op == X86_EMOVQ || op == X86_EMOVQ_TO) && (bytes > 16 || !memory))
    return false;
  if ((op == X86_PINSRB || op == X86_PINSRW || op == X86_MOVHPD || mask || store) && !memory) return false;
  if ((op == X86_BROADCASTSD || op == X86_PERMD || op == X86_PERMQ || op == X86_PERMHALVES) && bytes == 16)
    return false;
  return (shape != X86_SHIFT && shape != X86_NARROW && shape != X86_MRI) || !memory || (shape == X86_MRI && !code.evex);
}

/* Whether one lane in memory can be all lanes of the operand. */
static bool splats(x86_op op) {
  const x86_row *row = &x86_table[op];
  x86_shape s = row->shape;
  return code.evex && x86_can_splat(row) && s != X86_SHIFT;
}

static void say_one(x86_op op, unsigned bytes, size_t p, uint8_t splat) {
  unsigned registers = code.evex ? 32 : 16, to = (unsigned)(p * 5 + 1) % registers,
           a = (unsigned)(p * 7 + 2) % registers;
  x86_shape shape = x86_table[op].shape;
  x86_rm m = places[p];
  m.splat = splat;
  if (shape == X86_SHIFT) a = m.reg;
  if (shape == X86_KVM || shape == X86_KVMI) to = 1 + to % 6;
  if (shape == X86_FMA)
    x86_fma(&code, op, bytes, p % 2 ? 2 : 0, to, a, m);
  else if (shape == X86_BLEND || (shape == X86_KEEP && p % 2))
    x86_masked(&code, op, bytes, to, a, m, 1 + p % 7, shape == X86_KEEP);
  else if (shape == X86_MR && p % 2 && x86_table[op].encoding == X86_EVEX && x86_table[op].lane)
    x86_masked(&code, op, bytes, to, a, m, 1 + p % 7, false);
  else
    x86_vector(&code, op, bytes, to, a, m, shape == X86_RVMR ? 11 : 1);
  say();
}

static void say_vectors(void) {
  for (int op = 0; op < X86_OPS; op++)
    for (size_t p = 0; p < (code.evex ? PLACES : OLD_PLACES); p++)
      for (unsigned bytes = 16; bytes <= 64; bytes *= 2) {
        if (!fits((x86_op)op, bytes, places[p].memory)) continue;
        say_one((x86_op)op, bytes, p, 0);
        if (places[p].memory && splats((x86_op)op)) say_one((x86_op)op, bytes, p, x86_table[op].lane);
      }
}

/* Indexes of all kinds, with and without a displacement of a byte. */
static void say_gathers(void) {
  static const uint8_t bases[] = {X86_RSI, X86_R13, X86_RBP, X86_RAX, X86_R12};
  static const uint8_t indexes[] = {1, 9, 13, 20, 31};
  for (unsigned p = 0; p < 5; p++)
    for (unsigned bytes = 16; bytes <= (code.evex ? 64 : 32); bytes *= 2) {
      unsigned index = code.evex ? indexes[p] : indexes[p % 3];
      x86_rm m = {.memory = true, .base = bases[p], .index = (uint8_t)index, .places = true, .disp = p % 2 ? 0 : 64};
      m.scale = 4, x86_gather(&code, X86_GATHERD, bytes, code.evex ? 29 - 6 * p : 2 * p + 2, m, code.evex ? 1 + p : 15),
      say();
      m.scale = 8, x86_gather(&code, X86_GATHERQ, bytes, code.evex ? 28 - 5 * p : 3 * p, m, code.evex ? 7 - p : 14),
      say();
    }
}

/* To general registers. */
static void say_back(void) {
  for (unsigned from = 1; from < (code.evex ? 32 : 16); from += 6) {
    x86_vector(&code, X86_MOVD_BACK, 16, from, 0, x86_reg(from % 16), 0), say();
    x86_vector(&code, X86_MOVQ_BACK, 16, from, 0, x86_reg(from % 16), 0), say();
  }
}

static void say_masks(void) {
  for (int op = 0; op < X86_OPS; op++) {
    x86_shape shape = x86_table[op].shape;
    if (x86_table[op].encoding != X86_MASK) continue;
    for (size_t p = 0; p < PLACES; p++) {
      bool memory = places[p].memory;
      x86_rm m = places[p];
      if (shape != X86_KG && !memory) m.reg &= 7;
      if (memory ? op != X86_KMOV && op != X86_KMOV_TO : shape == X86_MK || m.reg >= 16) continue;
      x86_on_masks(&code, (x86_op)op, 1 + p % 7, shape == X86_KKK ? 1 + p % 5 : 0, m), say();
    }
  }
}

static void say_general(void) {
  static const uint8_t regs[] = {X86_RAX, X86_RDX, X86_RBP, X86_R8, X86_R15};
  static const int32_t numbers[] = {8, -32, 4096, -4096};
  for (size_t r = 0; r < sizeof regs; r++) {
    unsigned reg = regs[r], other = regs[(r + 2) % sizeof regs];
    for (size_t p = 2; p < OLD_PLACES; p++) {
      x86_load(&code, reg, places[p]), say();
      x86_load_s32(&code, reg, places[p]), say();
      x86_store(&code, places[p], reg), say();
      x86_lea(&code, reg, places[p]), say();
      x86_add_to_memory(&code, places[p], numbers[r % 4]), say();
    }
    x86_move(&code, reg, other), say();
    x86_add(&code, reg, other), say();
    x86_subtract(&code, reg, other), say();
    x86_compare(&code, reg, other), say();
    for (int n = 0; n < 4; n++) {
      x86_add_number(&code, reg, numbers[n]), say();
      x86_compare_number(&code, reg, numbers[n]), say();
      x86_and_number(&code, reg, numbers[n]), say();
    }
    x86_multiply_number(&code, reg, other, numbers[r % 4]), say();
    x86_add_memory(&code, reg, places[5]), say();
    x86_zero(&code, reg), say();
    x86_number(&code, reg, 0x123456789ABCDEF0 >> 8 * (r % 2)), say();
    x86_low_bits(&code, reg, other), say();
    x86_push(&code, reg), say();
    x86_pop(&code, reg), say();
  }
}

int main(void) {
  x86_init(&code, base_alloc_libc);
  base_text_init(&text, base_alloc_libc);
  code.text = &text;
  say_vectors();
  say_gathers();
  say_back();
  code.evex = true;
  say_vectors();
  say_gathers();
  say_back();
  say_masks();
  say_general();
  x86_free(&code);
  base_text_free(&text);
  return code.failed;
}
