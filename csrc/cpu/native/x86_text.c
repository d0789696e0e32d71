/* What the assembler writes for readers: Intel's syntax as GNU as takes it, so that a test can assemble the text and
 * compare bytes. Constants are `const+place[rip]`, places in the code `.Lplace`. */
#include <assert.h>

#include "x86_inside.h"

static const char *const x86_names[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                          "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

static void x86_put_vector(base_text *t, bool wide, unsigned reg) {
  base_putc(t, wide ? 'y' : 'x');
  BASE_PUT(t, "mm");
  base_put_u64(t, reg);
}

static void x86_put_memory(base_text *t, x86_rm m) {
  if (m.base == X86_NONE) {
    base_putf(t, "const[rip+%d]", m.disp);
    return;
  }
  base_putf(t, "[%s", x86_names[m.base]);
  if (m.index != X86_NONE) base_putf(t, "+%s*%d", x86_names[m.index], m.scale ? m.scale : 1);
  if (m.disp) base_putf(t, "%+d", m.disp);
  base_putc(t, ']');
}

/* `general`: a register is one of the general ones. */
static void x86_put_rm(base_text *t, bool wide, bool general, x86_rm m) {
  if (m.memory)
    x86_put_memory(t, m);
  else if (general)
    base_puts(t, x86_names[m.reg]);
  else
    x86_put_vector(t, wide, m.reg);
}

/* Operands that are xmm even where the instruction is of ymm: what is half as wide, or narrower, as the result. */
static bool x86_takes_half(x86_op op) {
  const x86_row *row = &x86_table[op];
  if (op == X86_INSERTHI || (op >= X86_BROADCASTB && op <= X86_BROADCASTSD)) return true;
  return row->shape == X86_RM && row->from && row->from < row->lane;
}
static bool x86_gives_half(x86_op op) {
  return op == X86_CVTPD2PS || op == X86_CVTTPD2DQ;
}

static const char *x86_size(x86_op op, bool wide, x86_rm m) {
  if (!m.memory || (op != X86_CVTPD2PS && op != X86_CVTTPD2DQ)) return "";
  return wide ? "ymmword ptr " : "xmmword ptr ";
}

static void x86_vector_operands(base_text *t, x86_op op, bool wide, unsigned to, unsigned a, x86_rm m) {
  const x86_shape shape = (x86_shape)x86_table[op].shape;
  x86_put_vector(t, wide && !x86_gives_half(op), to);
  if (shape == X86_RVM || shape == X86_RVMI || shape == X86_RVMR || shape == X86_SHIFT || shape == X86_FMA) {
    BASE_PUT(t, ", ");
    x86_put_vector(t, wide, a);
  }
  if (shape == X86_SHIFT) return;
  base_putf(t, ", %s", x86_size(op, wide, m));
  x86_put_rm(t, wide && !x86_takes_half(op), false, m);
}

void x86_vector_text(x86_code *c, x86_op op, bool wide, unsigned to, unsigned a, x86_rm m, unsigned number) {
  const x86_row *row = &x86_table[op];
  base_text *t = c->text;
  base_putf(t, "  %s ", row->mnemonic);
  if (row->shape == X86_MR || row->shape == X86_MRI || row->shape == X86_MVR) {
    x86_put_rm(t, wide && op != X86_EXTRACTHI && op != X86_CVTPS2PH, false, m);
    BASE_PUT(t, ", ");
    if (row->shape == X86_MVR) {
      x86_put_vector(t, wide, a);
      BASE_PUT(t, ", ");
    }
    x86_put_vector(t, wide, to);
  } else {
    x86_vector_operands(t, op, wide, to, a, m);
  }
  if (row->shape == X86_RVMR) {
    BASE_PUT(t, ", ");
    x86_put_vector(t, wide, number);
  } else if (row->shape == X86_RVMI || row->shape == X86_RMI || row->shape == X86_SHIFT || row->shape == X86_MRI) {
    base_putf(t, ", %u", number);
  }
  base_putc(t, '\n');
}

void x86_fma_text(x86_code *c, x86_op op, bool wide, unsigned result, unsigned to, unsigned a, x86_rm m) {
  const char *name = x86_table[op].mnemonic, *form = strstr(name, "231");
  assert(form);
  base_putf(c->text, "  %.*s%s%s ", (int)(form - name), name, result == 2 ? "231" : "213", form + 3);
  x86_vector_operands(c->text, op, wide, to, a, m);
  base_putc(c->text, '\n');
}

void x86_general_text(x86_code *c, const char *mnemonic, unsigned reg, x86_rm m, bool memory_first) {
  base_text *t = c->text;
  base_putf(t, "  %s ", mnemonic);
  if (!memory_first) base_putf(t, "%s, ", x86_names[reg]);
  x86_put_rm(t, false, true, m);
  if (memory_first) base_putf(t, ", %s", x86_names[reg]);
  base_putc(t, '\n');
}

void x86_number_text(x86_code *c, const char *mnemonic, x86_rm to, int32_t number) {
  base_putf(c->text, "  %s %s", mnemonic, to.memory ? "qword ptr " : "");
  x86_put_rm(c->text, false, true, to);
  base_putf(c->text, ", %d\n", number);
}

void x86_product_text(x86_code *c, unsigned to, unsigned from, int32_t number) {
  base_putf(c->text, "  imul %s, %s, %d\n", x86_names[to], x86_names[from], number);
}

void x86_zero_text(x86_code *c, unsigned reg) {
  static const char *const halves[16] = {"eax", "ecx", "edx",  "ebx",  "esp",  "ebp",  "esi",  "edi",
                                         "r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d", "r15d"};
  base_putf(c->text, "  xor %s, %s\n", halves[reg], halves[reg]);
}

void x86_call_text(x86_code *c, uintptr_t function) {
  base_putf(c->text, "  movabs rax, %lld\n  call rax\n", (long long)function);
}

void x86_plain_text(x86_code *c, const char *mnemonic, unsigned reg) {
  base_putf(c->text, "  %s%s%s\n", mnemonic, reg == X86_NONE ? "" : " ", reg == X86_NONE ? "" : x86_names[reg]);
}

static const char *x86_condition_name(x86_condition if_) {
  switch (if_) {
    case X86_ALWAYS:
      return "jmp";
    case X86_IF_NOT_EQUAL:
      return "jne";
    case X86_IF_EQUAL:
      return "je";
    case X86_IF_LESS:
      return "jl";
    case X86_IF_NOT_LESS:
      return "jge";
    case X86_IF_NOT_MORE:
      return "jle";
    case X86_IF_MORE:
      return "jg";
  }
  return "j?";
}

void x86_jump_text(x86_code *c, x86_condition if_, uint32_t target) {
  base_putf(c->text, "  %s .L%u\n", x86_condition_name(if_), target);
}

void x86_label_text(x86_code *c, uint32_t jump) {
  base_putf(c->text, ".L%u:\n", jump);
}
