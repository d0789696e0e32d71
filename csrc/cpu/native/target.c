/* The targets: their instructions by lane operation and width. */
#include "../../base/isa/isa.h"
#include "body.h"

/* clang-format off */
static const uint8_t nat_avx2_ops[NAT_LANES][4] = {
#define SAME(name, b, w, d, q) [NAT_##name] = {X86_##b, X86_##w, X86_##d, X86_##q},
#define LANE(name, b, w, d, q, b5, w5, d5, q5) SAME(name, b, w, d, q)
#include "lanes.def"
#undef LANE
};
static const uint8_t nat_avx512_ops[NAT_LANES][4] = {
#define LANE(name, b, w, d, q, b5, w5, d5, q5) SAME(name, b5, w5, d5, q5)
#include "lanes.def"
#undef LANE
#undef SAME
};
_Static_assert((int)X86_OPS < (int)X86_NONE, "instructions are bytes");

const nat_target nat_avx2 = {.vector = 32, .registers = 16, .ops = nat_avx2_ops};
const nat_target nat_avx512 = {.vector = 64, .registers = 32, .masks = true, .ops = nat_avx512_ops};

const nat_target *nat_target_of(void) {
  base_isa best = base_isa_best();
  return best >= BASE_ISA_AVX512 ? &nat_avx512 : best >= BASE_ISA_AVX2 ? &nat_avx2 : NULL;
}
