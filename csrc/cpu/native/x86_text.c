/* What the assembler writes for readers: Intel's syntax as GNU as takes it, so that a test can assemble the text and
 * compare bytes. Constants are `const+place[rip]`, places in the code `.Lplace`. */
#include <assert.h>

#include "x86_inside.h"

static const char *const x86_names[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                          "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

static const char *const x86_halves[16] = {"eax", "ecx", "edx",  "ebx",  "esp",  "ebp",  "esi",  "edi",
                                           "r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d", "r15d"};

static void x86_put_vector(base_text *t, unsigned bytes, unsigned reg) {
  base_putc(t, bytes == 64 ? 'z' : bytes == 32 ? 'y' : 'x');
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

/* bytes: of a vector register; 0: one of the general ones. */
static void x86_put_rm(base_text *t, unsigned bytes, x86_rm m) {
  if (m.memory)
    x86_put_memory(t, m);
  else if (bytes == 0)
    base_puts(t, x86_names[m.reg]);
  else
    x86_put_vector(t, bytes, m.reg);
  if (m.splat) base_putf(t, "{1to%u}", bytes / m.splat);
}

/* --- how long the operands' registers are --- */

static bool x86_gives_half(x86_op op) {
  return op == X86_CVTPD2PS || op == X86_CVTTPD2DQ || op == X86_CVTTPD2UDQ || op == X86_CVTQQ2PS || op == X86_CVTUQQ2PS;
}

static unsigned x86_part(unsigned bytes, unsigned by) {
  return bytes / by < 16 ? 16 : bytes / by;
}

/* What is narrower than the result is shorter. */
static unsigned x86_last_bytes(x86_op op, unsigned bytes) {
  const x86_row *row = &x86_table[op];
  bool broadcast = op >= X86_BROADCASTB && op <= X86_BROADCASTSD;
  if (op == X86_INSERTHI || op == X86_INSERT16 || op == X86_EXTRACTHI || broadcast) return 16;
  if (op == X86_CVTPS2PH) return x86_part(bytes, 2);
  bool shorter = (row->shape == X86_RM || row->shape == X86_NARROW) && row->lane && row->from < row->lane;
  return shorter ? x86_part(bytes, row->lane / row->from) : bytes;
}

/* Where memory does not show it. */
static const char *x86_size(x86_op op, unsigned bytes, x86_rm m) {
  if (m.splat) return m.splat == 4 ? "dword ptr " : "qword ptr ";
  if (!m.memory || !x86_gives_half(op)) return "";
  return bytes == 64 ? "zmmword ptr " : bytes == 32 ? "ymmword ptr " : "xmmword ptr ";
}

static void x86_put_mask(base_text *t, x86_manner how) {
  if (how.mask) base_putf(t, "{k%u}", how.mask);
  if (how.zeros) BASE_PUT(t, "{z}");
}

static bool x86_has_second(x86_shape s) {
  bool masks = s == X86_KVM || s == X86_KVMI;
  return masks || s == X86_RVM || s == X86_RVMI || s == X86_RVMR || s == X86_SHIFT || s == X86_FMA || s == X86_BLEND;
}

static void x86_vector_operands(base_text *t, x86_op op, x86_manner how, unsigned to, unsigned a, x86_rm m) {
  const x86_shape shape = (x86_shape)x86_table[op].shape;
  if (shape == X86_KVM || shape == X86_KVMI)
    base_putf(t, "k%u", to);
  else
    x86_put_vector(t, x86_gives_half(op) ? x86_part(how.bytes, 2) : how.bytes, to);
  x86_put_mask(t, how);
  if (x86_has_second(shape)) {
    BASE_PUT(t, ", ");
    x86_put_vector(t, how.bytes, a);
  }
  if (shape == X86_SHIFT) return;
  base_putf(t, ", %s", x86_size(op, how.bytes, m));
  x86_put_rm(t, x86_last_bytes(op, how.bytes), m);
}

static void x86_memory_first(base_text *t, x86_op op, x86_manner how, unsigned to, unsigned a, x86_rm m) {
  x86_put_rm(t, x86_last_bytes(op, how.bytes), m);
  x86_put_mask(t, how);
  BASE_PUT(t, ", ");
  if (x86_table[op].shape == X86_MVR) {
    x86_put_vector(t, how.bytes, a);
    BASE_PUT(t, ", ");
  }
  x86_put_vector(t, how.bytes, to);
}

/* Whether an assembler would take VEX for what is EVEX here. */
static bool x86_is_ambiguous(const x86_code *c, x86_op op, x86_manner how, unsigned to, unsigned a, x86_rm m) {
  const x86_row *row = &x86_table[op];
  bool high = to >= 16 || (x86_has_second((x86_shape)row->shape) && a >= 16) || (!m.memory && m.reg >= 16);
  if (row->shape == X86_GR) return c->evex && to < 16;
  return c->evex && (row->encoding == X86_ANY || op == X86_EMOVQ || op == X86_EMOVQ_TO) && how.bytes < 64 &&
         !how.mask && !m.splat && !high;
}

void x86_vector_text(x86_code *c, x86_op op, x86_manner how, unsigned to, unsigned a, x86_rm m) {
  const x86_row *row = &x86_table[op];
  const x86_shape shape = (x86_shape)row->shape;
  base_text *t = c->text;
  base_putf(t, "  %s%s ", x86_is_ambiguous(c, op, how, to, a, m) ? "{evex} " : "", row->mnemonic);
  if (shape == X86_GR)
    base_putf(t, "%s, xmm%u", row->w ? x86_names[m.reg] : x86_halves[m.reg], to);
  else if (shape == X86_MR || shape == X86_MRI || shape == X86_MVR || shape == X86_NARROW)
    x86_memory_first(t, op, how, to, a, m);
  else
    x86_vector_operands(t, op, how, to, a, m);
  if (shape == X86_RVMR) {
    BASE_PUT(t, ", ");
    x86_put_vector(t, how.bytes, how.number);
  } else if (shape == X86_RVMI || shape == X86_RMI || shape == X86_SHIFT || shape == X86_MRI || shape == X86_KVMI) {
    base_putf(t, ", %u", how.number);
  }
  base_putc(t, '\n');
}

/* The index of lanes of 8 bytes is half as long. */
void x86_gather_text(x86_code *c, x86_op op, unsigned bytes, unsigned to, x86_rm m, unsigned mask) {
  base_text *t = c->text;
  base_putf(t, "  %s ", x86_table[op].mnemonic);
  x86_put_vector(t, bytes, to);
  if (c->evex) base_putf(t, "{k%u}", mask);
  base_putf(t, ", [%s+", x86_names[m.base]);
  x86_put_vector(t, x86_table[op].from == 8 ? x86_part(bytes, 2) : bytes, m.index);
  base_putf(t, "*%d", m.scale);
  if (m.disp) base_putf(t, "%+d", m.disp);
  base_putc(t, ']');
  if (!c->evex) {
    BASE_PUT(t, ", ");
    x86_put_vector(t, bytes, mask);
  }
  base_putc(t, '\n');
}

void x86_masks_text(x86_code *c, x86_op op, unsigned to, unsigned a, x86_rm m) {
  const x86_row *row = &x86_table[op];
  base_text *t = c->text;
  base_putf(t, "  %s ", row->mnemonic);
  if (row->shape == X86_GK)
    base_putf(t, "%s, ", x86_names[to]);
  else if (row->shape != X86_MK)
    base_putf(t, "k%u, ", to);
  if (row->shape == X86_KKK) base_putf(t, "k%u, ", a);
  if (row->shape == X86_KG || m.memory)
    x86_put_rm(t, 0, m);
  else
    base_putf(t, "k%u", m.reg);
  if (row->shape == X86_MK) base_putf(t, ", k%u", to);
  base_putc(t, '\n');
}

void x86_fma_text(x86_code *c, x86_op op, unsigned bytes, unsigned result, unsigned to, unsigned a, x86_rm m) {
  const char *name = x86_table[op].mnemonic, *form = strstr(name, "231");
  x86_manner how = {.bytes = bytes};
  assert(form);
  base_putf(c->text, "  %s%.*s%s%s ", x86_is_ambiguous(c, op, how, to, a, m) ? "{evex} " : "", (int)(form - name), name,
            result == 2 ? "231" : "213", form + 3);
  x86_vector_operands(c->text, op, how, to, a, m);
  base_putc(c->text, '\n');
}

void x86_low_bits_text(x86_code *c, unsigned to, unsigned count) {
  base_putf(c->text, "  bzhi %s, %s, %s\n", x86_names[to], x86_names[to], x86_names[count]);
}

void x86_general_text(x86_code *c, const char *mnemonic, unsigned reg, x86_rm m, bool memory_first) {
  base_text *t = c->text;
  base_putf(t, "  %s ", mnemonic);
  if (!memory_first) base_putf(t, "%s, ", x86_names[reg]);
  x86_put_rm(t, 0, m);
  if (memory_first) base_putf(t, ", %s", x86_names[reg]);
  base_putc(t, '\n');
}

void x86_number_text(x86_code *c, const char *mnemonic, x86_rm to, int32_t number) {
  base_putf(c->text, "  %s %s", mnemonic, to.memory ? "qword ptr " : "");
  x86_put_rm(c->text, 0, to);
  base_putf(c->text, ", %d\n", number);
}

void x86_product_text(x86_code *c, unsigned to, unsigned from, int32_t number) {
  base_putf(c->text, "  imul %s, %s, %d\n", x86_names[to], x86_names[from], number);
}

void x86_zero_text(x86_code *c, unsigned reg) {
  base_putf(c->text, "  xor %s, %s\n", x86_halves[reg], x86_halves[reg]);
}

void x86_wide_text(x86_code *c, unsigned to, uint64_t number) {
  base_putf(c->text, "  movabs %s, %lld\n", x86_names[to], (long long)number);
}

void x86_call_text(x86_code *c) {
  BASE_PUT(c->text, "  call rax\n");
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
