/* An assembler for the part of x86-64 that kernels need: vector instructions from the table x86.def, VEX- or
 * EVEX-encoded, and the few instructions on general registers that loops are made of. It writes bytes, and where asked
 * the text that GNU as would make the same bytes of (Intel's order of operands).
 *
 * A buffer is one thread's. Running out of memory sets `failed`, and what is emitted after that is lost. */
#ifndef XLAC_CPU_NATIVE_X86_H
#define XLAC_CPU_NATIVE_X86_H

#include "../../base/str.h"

typedef enum x86_op {
#define X86(name, encoding, mnemonic, prefix, map, w, opcode, shape, commutes, lane, from) X86_##name,
#include "x86.def"
#undef X86
  X86_OPS
} x86_op;

/* Which operands an instruction has, in the order of the text; m: a register or memory. */
typedef enum x86_shape {
  X86_RVM,    /* to, a, m */
  X86_RVMI,   /* to, a, m, number */
  X86_RM,     /* to, m */
  X86_RMI,    /* to, m, number */
  X86_SHIFT,  /* to, register, number */
  X86_RVMR,   /* to, a, m, register */
  X86_FMA,    /* to, which is an operand too, a, m */
  X86_MRI,    /* m, from, number */
  X86_MR,     /* m, from */
  X86_MVR,    /* m, a, from */
  X86_NARROW, /* register m, from */
  X86_BLEND,  /* to, a, m, under a mask */
  X86_KEEP,   /* to, m, perhaps under a mask */
  X86_KVM,    /* mask, a, m */
  X86_KVMI,   /* mask, a, m, number */
  X86_KKK,    /* masks */
  X86_KK,     /* mask, mask or memory */
  X86_MK,     /* memory, mask */
  X86_KG,     /* mask, general register */
  X86_GK,     /* general register, mask */
  X86_GR,     /* general register m, from */
  X86_GATHER  /* to, memory at each lane of an index register, under a mask */
} x86_shape;

typedef enum x86_encoding { X86_ANY, X86_VEX, X86_EVEX, X86_MASK } x86_encoding;

/* A row of x86.def. */
typedef struct x86_row {
  const char *mnemonic;
  uint8_t encoding, prefix, map, w, opcode, shape, commutes, lane, from;
} x86_row;
extern const x86_row x86_table[X86_OPS];
/* Whether the operand in memory may be one lane for all, where the instruction is EVEX-encoded. */
static inline bool x86_can_splat(const x86_row *row) {
  bool reads = row->shape != X86_NARROW && row->shape != X86_MRI && row->shape != X86_MR && row->shape != X86_KEEP;
  return reads && row->shape != X86_GATHER && row->encoding != X86_VEX && row->lane == row->from &&
         (row->lane == 4 || row->lane == 8);
}

/* General registers by their numbers in the encoding. */
enum { X86_RAX, X86_RCX, X86_RDX, X86_RBX, X86_RSP, X86_RBP, X86_RSI, X86_RDI, X86_R8, X86_R9, X86_R10, X86_R11 };
enum { X86_R12 = 12, X86_R13, X86_R14, X86_R15, X86_NONE = 255 };

/* A vector register, or memory at base + index * scale + disp; or, with base X86_NONE, at place `disp` of the constants
 * that follow the code. */
typedef struct x86_rm {
  bool memory;
  uint8_t reg, base, index, scale; /* index X86_NONE: none */
  uint8_t splat;                   /* bytes of one lane in memory that all lanes are; 0: a lane each */
  bool places;                     /* index is a vector register of s32, of places that are each a lane's own */
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
BASE_VEC(x86_words, uint32_t);

typedef struct x86_code {
  base_alloc alloc;
  bool failed;
  bool evex; /* vector instructions are AVX-512's, on 32 registers of up to 64 bytes */
  x86_bytes bytes, constants;
  x86_fixups fixups;
  x86_words addresses; /* where eight bytes of the code are an address, of x86_address and x86_call */
  base_text *text;     /* NULL: none is wanted */
} x86_code;

void x86_init(x86_code *c, base_alloc alloc);
void x86_free(x86_code *c);

/* A vector instruction on registers of so many bytes: 16, 32 or 64. to, a: registers; number: the immediate byte, or of
 * X86_RVMR the register. What a shape has not is 0. */
void x86_vector(x86_code *c, x86_op op, unsigned bytes, unsigned to, unsigned a, x86_rm m, unsigned number);
/* The same under mask register `mask`, 1 to 7, of AVX-512 alone: lanes whose bit is not set are left as they are, or
 * become zeros; of a blend they are those of a. */
void x86_masked(x86_code *c, x86_op op, unsigned bytes, unsigned to, unsigned a, x86_rm m, unsigned mask, bool zeros);
/* Lanes from m, whose index is a vector, where the mask is set: a mask register 1 to 7 with AVX-512, else a vector
 * register. It is cleared. The mask, the result and the index are different registers. */
void x86_gather(x86_code *c, x86_op op, unsigned bytes, unsigned to, x86_rm m, unsigned mask);
/* An instruction on mask registers: shapes KKK, KK, MK, KG. */
void x86_on_masks(x86_code *c, x86_op op, unsigned to, unsigned a, x86_rm m);
/* The form of an X86_FMA that leaves its result in place of operand x (0) or z (2): 213 or 231. */
void x86_fma(x86_code *c, x86_op op, unsigned bytes, unsigned result, unsigned to, unsigned a, x86_rm m);

/* --- general registers, all 64 bits --- */
void x86_load(x86_code *c, unsigned to, x86_rm from);
void x86_load_s32(x86_code *c, unsigned to, x86_rm from); /* with its sign */
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
void x86_number(x86_code *c, unsigned to, uint64_t number);
/* Of a function of this library. */
void x86_address(x86_code *c, unsigned to, uintptr_t function);
/* The lowest `count` bits of to, fewer than 64; the others become 0. */
void x86_low_bits(x86_code *c, unsigned to, unsigned count);
void x86_push(x86_code *c, unsigned reg);
void x86_pop(x86_code *c, unsigned reg);
/* Through rax. */
void x86_call(x86_code *c, uintptr_t function);
/* vzeroupper: without it, code for older processors, as libm's may be, waits for upper halves. */
void x86_clear_upper(x86_code *c);
void x86_end(x86_code *c); /* the same, and ret */

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

/* n bytes of constants, a power of 2 of at most 64, to where they are aligned to n; gives their place. */
uint32_t x86_add_constant(x86_code *c, const void *bytes, uint32_t n);
/* Puts the constants behind the code, at a multiple of 64. After that nothing is emitted. */
void x86_finish(x86_code *c);

#endif
