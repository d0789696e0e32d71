/* The assembler, inside: what is emitted as text, a line an instruction. Only called where text is wanted. */
#ifndef XLAC_CPU_NATIVE_X86_INSIDE_H
#define XLAC_CPU_NATIVE_X86_INSIDE_H

#include "x86.h"

/* What an instruction is besides its operands. */
typedef struct x86_manner {
  unsigned bytes, number, mask; /* of registers; the immediate byte; mask 0: none */
  bool zeros;
} x86_manner;
void x86_vector_text(x86_code *c, x86_op op, x86_manner how, unsigned to, unsigned a, x86_rm m);
void x86_gather_text(x86_code *c, x86_op op, unsigned bytes, unsigned to, x86_rm m, unsigned mask);
void x86_masks_text(x86_code *c, x86_op op, unsigned to, unsigned a, x86_rm m);
void x86_low_bits_text(x86_code *c, unsigned to, unsigned count);
void x86_fma_text(x86_code *c, x86_op op, unsigned bytes, unsigned result, unsigned to, unsigned a, x86_rm m);
void x86_general_text(x86_code *c, const char *mnemonic, unsigned reg, x86_rm m, bool memory_first);
void x86_number_text(x86_code *c, const char *mnemonic, x86_rm to, int32_t number);
void x86_product_text(x86_code *c, unsigned to, unsigned from, int32_t number);
void x86_zero_text(x86_code *c, unsigned reg);
void x86_wide_text(x86_code *c, unsigned to, uint64_t number);
void x86_call_text(x86_code *c);
void x86_plain_text(x86_code *c, const char *mnemonic, unsigned reg);
/* A jump to the place `target` of the code, and a place that the jump at `jump` goes to. */
void x86_jump_text(x86_code *c, x86_condition if_, uint32_t target);
void x86_label_text(x86_code *c, uint32_t jump);

#endif
