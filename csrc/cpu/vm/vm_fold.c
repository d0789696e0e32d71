/* Which folds there are, and those for plain CPUs. Vectors of 64 bytes are written in terms of the compiler's
 * vector extension, so every instruction set adds the same lanes in the same order. */
#include "vm_fold.h"

#include "../../base/isa/isa.h"
#include "../../base/math/math.h"

#define T float
#define S int32_t
#define INF 0x7F800000
#define FOLD(name) vm_fold_f32_plain_##name
#define FOLD_TABLE vm_fold_f32_plain
#include "vm_fold_loops.h"

#define T double
#define S int64_t
#define INF 0x7FF0000000000000
#define FOLD(name) vm_fold_f64_plain_##name
#define FOLD_TABLE vm_fold_f64_plain
#include "vm_fold_loops.h"

static const vm_fold *vm_fold_table(bool f64) {
#if defined(__x86_64__)
  base_isa isa = base_isa_best();
  if (isa >= BASE_ISA_AVX512) return f64 ? vm_fold_f64_avx512 : vm_fold_f32_avx512;
  if (isa >= BASE_ISA_AVX2) return f64 ? vm_fold_f64_avx2 : vm_fold_f32_avx2;
#endif
  return f64 ? vm_fold_f64_plain : vm_fold_f32_plain;
}

const vm_fold *vm_fold_of(scalar_code op, base_dtype t) {
#define FOLD_CODE(name, code) SCALAR_##code,
  static const uint8_t codes[VM_FOLD_OPS] = {VM_FOLDS(FOLD_CODE)};
#undef FOLD_CODE
  if (t != XLAC_F32 && t != XLAC_F64) return NULL;
  for (int i = 0; i < VM_FOLD_OPS; i++)
    if (codes[i] == op) return &vm_fold_table(t == XLAC_F64)[i];
  return NULL;
}
