/* Which vector instructions this CPU has, and may use. */
#include "isa.h"

#include <stdlib.h>
#include <string.h>

/* AVX-512 means the parts that all server CPUs since Skylake have. */
static base_isa isa_of_cpu(void) {
#if defined(__x86_64__)
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) return __builtin_cpu_supports("avx512vnni") ? BASE_ISA_AVX512_VNNI : BASE_ISA_AVX512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return BASE_ISA_AVX2;
#endif
  return BASE_ISA_PORTABLE;
}

bool base_isa_has_bf16(void) {
#if defined(__x86_64__)
  const char *most = getenv("XLAC_MAX_ISA");
  if (most && strcmp(most, "avx512_vnni") == 0) return false;
  return base_isa_best() == BASE_ISA_AVX512_VNNI && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

/* A name that is better than the CPU changes nothing. */
base_isa base_isa_best(void) {
  static const char *const names[] = {"portable", "avx2", "avx512", "avx512_vnni"};
  const char *most = getenv("XLAC_MAX_ISA");
  base_isa best = isa_of_cpu();
  for (int i = 0; most && i < (int)best; i++)
    if (strcmp(most, names[i]) == 0) return (base_isa)i;
  return best;
}
