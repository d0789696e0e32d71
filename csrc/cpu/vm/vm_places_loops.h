/* No include guard: the loops of vm_places.c for one instruction set. The includer defines PLACES(name), undefined at
 * the end. at: n offsets in elements, each of which gets its place, clamped to 0..last, times the stride; all fit an
 * int32_t. */
static void PLACES(s32)(int64_t n, int32_t stride, int32_t last, const void *places, int32_t *at) {
  const int32_t *p = places;
  for (int64_t i = 0; i < n; i++) {
    int32_t v = p[i] > 0 ? p[i] : 0;
    at[i] += (v < last ? v : last) * stride;
  }
}

static void PLACES(u32)(int64_t n, int32_t stride, int32_t last, const void *places, int32_t *at) {
  const uint32_t *p = places;
  for (int64_t i = 0; i < n; i++) at[i] += (int32_t)(p[i] < (uint32_t)last ? p[i] : (uint32_t)last) * stride;
}

/* Where neighbours along the run are `stride` apart. */
static void PLACES(begin)(int64_t n, int32_t first, int32_t stride, int32_t *at) {
  for (int32_t i = 0; i < (int32_t)n; i++) at[i] = first + i * stride;
}
#undef PLACES
