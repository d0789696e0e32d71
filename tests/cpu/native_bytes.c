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
                                {.memory = true, .base = X86_RAX, .index = X86_NONE}};

/* Whether there is such an instruction: halves are registers of a fixed size, stores go to memory. */
static bool fits(x86_op op, bool wide, bool memory) {
  const x86_row *row = &x86_table[op];
  bool store = row->shape == X86_MR || row->shape == X86_MVR, mask = op == X86_MASKMOVPS || op == X86_MASKMOVPD;
  if (row->lane == 32 && !wide) return false;
  if (op >= X86_SHUFPS && op <= X86_MOVHPD && op != X86_INSERTHI && wide) return false;
  if (op >= X86_MOVQ && op <= X86_MOVSS_TO && (wide || !memory)) return false;
  if (op == X86_INSERTHI || op == X86_PERMD || op == X86_PERMQ) return wide;
  if ((op == X86_PINSRB || op == X86_PINSRW || op == X86_MOVHPD || mask || store) && !memory) return false;
  if (op == X86_BROADCASTSD && !wide) return false;
  if (op == X86_PTEST) return true;
  return row->shape != X86_SHIFT || !memory;
}

static void say_vectors(void) {
  for (int op = 0; op < X86_OPS; op++)
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
      for (int wide = 0; wide < 2; wide++) {
        unsigned to = (unsigned)(p * 5 + 1) % 16, a = (unsigned)(p * 7 + 2) % 16;
        x86_rm m = places[p];
        if (!fits((x86_op)op, wide, m.memory)) continue;
        if (x86_table[op].shape == X86_SHIFT) a = m.reg;
        if (x86_table[op].shape == X86_FMA) {
          x86_fma(&code, (x86_op)op, wide, p % 2 ? 2 : 0, to, a, m);
        } else {
          x86_vector(&code, (x86_op)op, wide, to, a, m, x86_table[op].shape == X86_RVMR ? 11 : 1);
        }
        say();
      }
}

static void say_general(void) {
  static const uint8_t regs[] = {X86_RAX, X86_RDX, X86_RBP, X86_R8, X86_R15};
  static const int32_t numbers[] = {8, -32, 4096, -4096};
  for (size_t r = 0; r < sizeof regs; r++) {
    unsigned reg = regs[r], other = regs[(r + 2) % sizeof regs];
    for (size_t p = 2; p < sizeof places / sizeof *places; p++) {
      x86_load(&code, reg, places[p]), say();
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
    x86_push(&code, reg), say();
    x86_pop(&code, reg), say();
  }
}

int main(void) {
  x86_init(&code, base_alloc_libc);
  base_text_init(&text, base_alloc_libc);
  code.text = &text;
  say_vectors();
  say_general();
  x86_free(&code);
  base_text_free(&text);
  return code.failed;
}
