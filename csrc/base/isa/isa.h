/* The vector instructions to use, found at run time. */
#ifndef XLAC_BASE_ISA_ISA_H
#define XLAC_BASE_ISA_ISA_H

#include <stdbool.h>

/* Each has what those before it have. */
typedef enum base_isa {
  BASE_ISA_PORTABLE,
  BASE_ISA_AVX2,       /* with FMA */
  BASE_ISA_AVX512,     /* F, BW, DQ, VL */
  BASE_ISA_AVX512_VNNI /* and products of bytes */
} base_isa;

/* The best that this CPU has, but no more than the environment's XLAC_MAX_ISA names: "portable", "avx2", "avx512",
 * "avx512_vnni"; any other text, as "amx", says nothing. It is read at each call, and what was chosen stays
 * with what was compiled. Thread-safe unless the environment is changed meanwhile. */
base_isa base_isa_best(void);

/* Whether the compiler knows AMX's instructions: GCC 11, Clang 12. */
#if defined(__x86_64__) && defined(__linux__) && (defined(__clang__) ? __clang_major__ >= 12 : __GNUC__ >= 11)
#define BASE_ISA_KNOWS_AMX 1
#else
#define BASE_ISA_KNOWS_AMX 0
#endif

/* Beyond the last of these, where the environment allows for it. */
typedef enum base_isa_narrow {
  BASE_ISA_NO_NARROW,
  BASE_ISA_BF16, /* AVX512-BF16, where it is faster than products of f32 */
  BASE_ISA_AMX   /* tiles of bf16 and of bytes, which the system lets this process use */
} base_isa_narrow;
base_isa_narrow base_isa_narrow_products(void);

#endif
