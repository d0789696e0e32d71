/* Chains: ops one after another, each alone in using the one before, such as the terms of a polynomial. Their
 * values stay in vector registers from the first to the last, so that nothing but the first operand, the other
 * operands and the result is in memory. The bits are those of the ops one after another, each rounded. */
#ifndef XLAC_CPU_VM_VM_CHAIN_H
#define XLAC_CPU_VM_VM_CHAIN_H

#include "vm_inside.h"

enum { VM_MAX_CHAIN = 32, VM_MIN_CHAIN = 3 };

/* What a link does: x is the chain's value, y the lanes (_V) or the number (_N) that it has of its own. */
typedef enum vm_link_kind {
  VM_LINK_ADD_V,
  VM_LINK_ADD_N,
  VM_LINK_MULTIPLY_V,
  VM_LINK_MULTIPLY_N,
  VM_LINK_SUBTRACT_V, /* x - y */
  VM_LINK_SUBTRACT_N,
  VM_LINK_FROM_V, /* y - x */
  VM_LINK_FROM_N,
  VM_LINK_NO_LESS,    /* y where x <= y, else x: a maximum */
  VM_LINK_LESS,       /* y where x < y: a maximum with -0 */
  VM_LINK_NO_MORE,    /* y where x >= y: a minimum */
  VM_LINK_MORE,       /* y where x > y: a minimum with +0 */
  VM_LINK_UNLESS_NAN, /* x where that is NaN, else y, which is NaN */
  VM_LINK_ALWAYS,     /* y */
  VM_LINK_END,        /* stores */
  VM_LINKS,
  VM_LINK_MAXIMUM, /* which of those depends on the number, as for all that follow: math_max(x, y) */
  VM_LINK_MINIMUM,
  VM_LINK_MAXIMUM_OF, /* math_max(y, x) */
  VM_LINK_MINIMUM_OF
} vm_link_kind;

/* One op of a chain, when the kernel is made ready. */
typedef struct vm_link {
  uint8_t kind;
  bool number;
  uint32_t value; /* y */
} vm_link;

typedef void vm_step_fn(void);
/* A link at work: code is of the type that it is called with. */
typedef struct vm_step {
  vm_step_fn *code;
  const char *from; /* y; of the last: where the result goes */
  uint8_t link;
  bool number;
} vm_step;

/* n lanes from `from`; the last step is the end. */
typedef void vm_chain_fn(int64_t n, const void *from, uint32_t n_steps, vm_step *steps);
/* Immutable, like the cpu_vm that has it. */
struct vm_chain {
  uint32_t from, n; /* the value that goes in; links */
  bool is_double;
  vm_chain_fn *run;
  vm_link of[];
};

vm_chain_fn vm_chain_f32_avx2_run, vm_chain_f64_avx2_run, vm_chain_f32_avx512_run, vm_chain_f64_avx512_run;

#endif
