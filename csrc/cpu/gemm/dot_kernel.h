/* No include guard: the tile of one sum type and instruction set. Define GEMM_NAME, GEMM_TARGET, GEMM_VEC (a
 * vector), GEMM_SUM (its element), GEMM_SPREAD(p) (the step of A at p in all lanes), GEMM_MADD(s, x, y) (s + x *
 * y), and GEMM_EACH(X), which is X(0) X(1) ... for each row of two vectors. Sums are written out one by one: not
 * every compiler keeps an array of them in registers. */
GEMM_TARGET static void GEMM_NAME(int64_t steps, const char *a, const char *b, char *c, bool first) {
  GEMM_VEC b0, b1;
/* For row r: its two sums, one step of them, the sums of earlier blocks of k, and their way back to memory. */
#define GEMM_ZERO(r) GEMM_VEC s##r##0 = {0}, s##r##1 = {0};
#define GEMM_STEP(r)                                    \
  {                                                     \
    GEMM_VEC x = GEMM_SPREAD(a + (r) * GEMM_ROW_BYTES); \
    s##r##0 = GEMM_MADD(s##r##0, x, b0);                \
    s##r##1 = GEMM_MADD(s##r##1, x, b1);                \
  }
/* Earlier blocks' sums are added after the block, not before: blocks' sums are added in turn. */
#define GEMM_LOAD(r)                                                    \
  {                                                                     \
    GEMM_VEC old0, old1;                                                \
    memcpy(&old0, c + (r) * GEMM_ROW_BYTES, sizeof old0);               \
    memcpy(&old1, c + (r) * GEMM_ROW_BYTES + sizeof old0, sizeof old1); \
    s##r##0 += old0;                                                    \
    s##r##1 += old1;                                                    \
  }
#define GEMM_SAVE(r)                                          \
  memcpy(c + (r) * GEMM_ROW_BYTES, &s##r##0, sizeof s##r##0); \
  memcpy(c + (r) * GEMM_ROW_BYTES + sizeof s##r##0, &s##r##1, sizeof s##r##1);
  GEMM_EACH(GEMM_ZERO)
  for (int64_t p = 0; p < steps; p++, a += sizeof(GEMM_SUM), b += 2 * sizeof(GEMM_VEC)) {
    memcpy(&b0, b, sizeof b0);
    memcpy(&b1, b + sizeof b0, sizeof b1);
    GEMM_EACH(GEMM_STEP)
  }
  if (!first) {
    GEMM_EACH(GEMM_LOAD)
  }
  GEMM_EACH(GEMM_SAVE)
}
#undef GEMM_ZERO
#undef GEMM_STEP
#undef GEMM_LOAD
#undef GEMM_SAVE
#undef GEMM_NAME
#undef GEMM_VEC
#undef GEMM_SUM
#undef GEMM_SPREAD
#undef GEMM_MADD
