/* Machine code for AArch64: the seam between bodies and targets, by a second target. Elementwise bodies on lanes of
 * f32, f64 and s32, whose loads and stores are neighbours or one element for all. */
#ifndef XLAC_CPU_NATIVE_NEON_H
#define XLAC_CPU_NATIVE_NEON_H

#include "body.h"

/* Lane operations are their own numbers; registers of 16 bytes, truth values in lanes. */
extern const nat_target nat_neon;
BASE_VEC(neon_words, uint32_t);

/* Appends the code, a nat_code_fn (emit.h) for whole vectors of one row, to out: instructions, then constants. false
 * where the body has something that is not covered, or memory is short; then out is to be thrown away. */
bool nat_neon_emit(const nat_body *b, neon_words *out, base_arena *scratch);

#endif
