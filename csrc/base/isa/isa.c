/* Which vector instructions this CPU has, and may use. */
#include "isa.h"

#include <stdlib.h>
#include <string.h>
#if BASE_ISA_KNOWS_AMX
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

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

#if defined(__x86_64__)
/* Linux saves the tiles of those processes only that have asked for it once (its page "XSTATE features in user space").
 * It refuses where a thread's stack for signals has no room for them. */
static bool isa_has_amx(void) {
#if BASE_ISA_KNOWS_AMX
  enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25, ASK = 0x1023, TILES = 18 };
  unsigned a, b, c, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  unsigned all = AMX_BF16 | AMX_TILE | AMX_INT8;
  return (d & all) == all && syscall(SYS_arch_prctl, ASK, TILES) == 0;
#else
  return false;
#endif
}
#endif

/* Intel's CPUs take two steps for what AVX512-BF16 sums at a time, so that products of f32 are as fast there; it is
 * used where it is asked for by name. */
base_isa_narrow base_isa_narrow_products(void) {
#if defined(__x86_64__)
  const char *most = getenv("XLAC_MAX_ISA");
  bool vectors = most && strcmp(most, "avx512_bf16") == 0;
  if (base_isa_best() != BASE_ISA_AVX512_VNNI || (most && strcmp(most, "avx512_vnni") == 0)) return BASE_ISA_NO_NARROW;
  if (!vectors && isa_has_amx()) return BASE_ISA_AMX;
  if (__builtin_cpu_supports("avx512bf16") && (vectors || !__builtin_cpu_is("intel"))) return BASE_ISA_BF16;
#endif
  return BASE_ISA_NO_NARROW;
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
