/* An assembler for the part of x86-64 that kernels need: VEX-encoded vector instructions from the table x86.def, and
 * the few instructions on general registers that loops are made of. It writes bytes, and where asked the text that GNU
 * as would make the same bytes of (Intel's order of operands).
 *
 * A buffer is one thread's. Running out of memory sets `failed`, and what is emitted after that is lost. */
#ifndef XLAC_CPU_NATIVE_X86_H
#define XLAC_CPU_NATIVE_X86_H

#include "../../base/str.h"

typedef enum x86_op {
#define X86(name, mnemonic, prefix, map, w, opcode, shape, commutes, lane, from) X86_##name,
#include "x86.def"
#undef X86
  X86_OPS
} x86_op;

/* Which operands an instruction has, in the order of the text; m: a register or memory. */
typedef enum x86_shape {
  X86_RVM,   /* to, a, m */
  X86_RVMI,  /* to, a, m, number */
  X86_RM,    /* to, m */
  X86_RMI,   /* to, m, number */
  X86_SHIFT, /* to, register, number */
  X86_RVMR,  /* to, a, m, register */
  X86_FMA,   /* to, which is an operand too, a, m */
  X86_MRI,   /* m, from, number */
  X86_MR,    /* m, from */
  X86_MVR    /* m, a, from */
} x86_shape;

/* A row of x86.def. */
typedef struct x86_row {
  const char *mnemonic;
  uint8_t prefix, map, w, opcode, shape, commutes, lane, from;
} x86_row;
extern const x86_row x86_table[X86_OPS];

/* General registers by their numbers in the encoding. */
enum { X86_RAX, X86_RCX, X86_RDX, X86_RBX, X86_RSP, X86_RBP, X86_RSI, X86_RDI, X86_R8, X86_R9, X86_R10, X86_R11 };
enum { X86_R12 = 12, X86_R13, X86_R14, X86_R15, X86_NONE = 255 };

/* A vector register, or memory at base + index * scale + disp; or, with base X86_NONE, at place `disp` of the constants
 * that follow the code. */
typedef struct x86_rm {
  bool memory;
  uint8_t reg, base, index, scale; /* index X86_NONE: none */
  int32_t disp;
} x86_rm;
static inline x86_rm x86_reg(unsigned reg) {
  return (x86_rm){.reg = (uint8_t)reg};
}
static inline x86_rm x86_at(unsigned base, int32_t disp) {
  return (x86_rm){.memory = true, .base = (uint8_t)base, .index = X86_NONE, .disp = disp};
}
static inline x86_rm x86_constant(int32_t place) {
  return (x86_rm){.memory = true, .base = X86_NONE, .index = X86_NONE, .disp = place};
}

/* Where a displacement stands that is known only when the constants' place is. */
typedef struct x86_fixup {
  uint32_t at, place; /* of four bytes in the code, relative to their end; in the constants */
} x86_fixup;
BASE_VEC(x86_fixups, x86_fixup);
BASE_VEC(x86_bytes, uint8_t);

typedef struct x86_code {
  base_alloc alloc;
  bool failed;
  x86_bytes bytes, constants;
  x86_fixups fixups;
  base_text *text; /* NULL: none is wanted */
} x86_code;

void x86_init(x86_code *c, base_alloc alloc);
void x86_free(x86_code *c);

/* A vector instruction on ymm (wide) or xmm registers. to, a: registers; number: the immediate byte, or of X86_RVMR the
 * register. What a shape has not is 0. */
void x86_vector(x86_code *c, x86_op op, bool wide, unsigned to, unsigned a, x86_rm m, unsigned number);
/* The form of an X86_FMA that leaves its result in place of operand x (0) or z (2): 213 or 231. */
void x86_fma(x86_code *c, x86_op op, bool wide, unsigned result, unsigned to, unsigned a, x86_rm m);

/* --- general registers, all 64 bits --- */
void x86_load(x86_code *c, unsigned to, x86_rm from);
void x86_store(x86_code *c, x86_rm to, unsigned from);
void x86_lea(x86_code *c, unsigned to, x86_rm from);
void x86_move(x86_code *c, unsigned to, unsigned from);
void x86_add(x86_code *c, unsigned to, unsigned from);
void x86_subtract(x86_code *c, unsigned to, unsigned from);
void x86_compare(x86_code *c, unsigned a, unsigned b);
/* to = from * number. */
void x86_multiply_number(x86_code *c, unsigned to, unsigned from, int32_t number);
void x86_add_memory(x86_code *c, unsigned to, x86_rm from);
void x86_add_number(x86_code *c, unsigned to, int32_t number);
void x86_add_to_memory(x86_code *c, x86_rm to, int32_t number);
void x86_compare_number(x86_code *c, unsigned a, int32_t number);
void x86_and_number(x86_code *c, unsigned to, int32_t number);
void x86_zero(x86_code *c, unsigned to);
void x86_push(x86_code *c, unsigned reg);
void x86_pop(x86_code *c, unsigned reg);
/* Through rax. */
void x86_call(x86_code *c, uintptr_t function);
void x86_end(x86_code *c); /* vzeroupper, ret */

/* --- jumps --- */
typedef enum x86_condition {
  X86_ALWAYS = 11, /* in place of a condition that nothing here needs */
  X86_IF_NOT_EQUAL = 5,
  X86_IF_EQUAL = 4,
  X86_IF_LESS = 12,
  X86_IF_NOT_LESS,
  X86_IF_NOT_MORE,
  X86_IF_MORE
} x86_condition;
/* To `target`, a place before; and to one that follows, which x86_land makes the present one. */
void x86_jump_back(x86_code *c, x86_condition if_, uint32_t target);
uint32_t x86_jump_on(x86_code *c, x86_condition if_);
void x86_land(x86_code *c, uint32_t jump);
uint32_t x86_here(const x86_code *c);
/* The present place, as the target of a jump back. */
uint32_t x86_target(x86_code *c);
void x86_align(x86_code *c, uint32_t bytes);

/* n bytes of constants, a multiple of 32, to where they are aligned to 32; gives their place. */
uint32_t x86_add_constant(x86_code *c, const void *bytes, uint32_t n);
/* Puts the constants behind the code, at a multiple of 32. After that nothing is emitted. */
void x86_finish(x86_code *c);

#endif
