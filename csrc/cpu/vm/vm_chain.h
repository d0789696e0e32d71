/* Chains: ops one after another, each alone in using the one before, such as the terms of a polynomial. Their
 * values stay in vector registers from the first to the last, so that nothing but the first operand, the other
 * operands and the result is in memory. The bits are those of the ops one after another, each rounded. */
#ifndef XLAC_CPU_VM_VM_CHAIN_H
#define XLAC_CPU_VM_VM_CHAIN_H

#include "../../scalar/links.h"
#include "vm_inside.h"

enum { VM_MAX_CHAIN = 32, VM_MIN_CHAIN = 3 };

/* Links that choose between x and y, which is a number: CHOICE(name, when it is y). What math_max and math_min give
 * depends on the number (chain_extreme). */
#define VM_LINK_CHOICES(CHOICE)                              \
  CHOICE(no_less, x <= y)    /* a maximum */                 \
  CHOICE(less, x < y)        /* a maximum with -0 */         \
  CHOICE(no_more, x >= y)    /* a minimum */                 \
  CHOICE(more, x > y)        /* a minimum with +0 */         \
  CHOICE(unless_nan, x == x) /* of y that is NaN, but x's */ \
  CHOICE(always, (y == y) | (y != y))
/* What a link does: x is the chain's value, y the lanes (_v) or the number (_n) that it has of its own. */
#define VM_LINK_BOTH(name, code, side, expr) VM_LINK_##name##_v, VM_LINK_##name##_n,
#define VM_LINK_CHOICE(name, when) VM_LINK_##name,
typedef enum vm_link_kind {
  SCALAR_LINKS(VM_LINK_BOTH)                   /* two for each scalar_link */
  VM_LINK_CHOICES(VM_LINK_CHOICE) VM_LINK_END, /* stores */
  VM_LINKS,
  VM_LINK_MAXIMUM, /* a choice that depends on the number, as for all that follow: math_max(x, y) */
  VM_LINK_MINIMUM,
  VM_LINK_MAXIMUM_OF, /* math_max(y, x) */
  VM_LINK_MINIMUM_OF
} vm_link_kind;
#undef VM_LINK_BOTH
#undef VM_LINK_CHOICE

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
