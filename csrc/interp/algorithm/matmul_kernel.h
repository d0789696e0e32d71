/* No include guard: the product kernels of one element type. Define MATMUL_T (the real type), MATMUL_NAME(x) (x with
 * the type's suffix), MATMUL_LANES (MATMUL_LANES * sizeof(MATMUL_T) is a vector of 16 bytes) and MATMUL_COMPLEX.
 *
 * A tile is MATMUL_ROWS rows by 2 * MATMUL_LANES columns. Left panels are packed [k][row], right panels [k][column];
 * complex ones have all real parts of a k before all imaginary parts. Sums start from zero and are stored to `tile`,
 * [row][column]. The accumulators are written out one by one, as not every compiler keeps an array of them in
 * registers. */
/* GCC's and clang's vector extension: 16 bytes, which every 64-bit CPU has. */
typedef MATMUL_T MATMUL_NAME(vec) __attribute__((vector_size(MATMUL_LANES * sizeof(MATMUL_T))));
#define MATMUL_VEC MATMUL_NAME(vec)
#define MATMUL_LOAD(v, from) memcpy(&(v), (from), sizeof(v))
#define MATMUL_SAVE(v, place) memcpy((char *)tile + (place) * sizeof(v), &(v), sizeof(v))

#if MATMUL_COMPLEX
static void MATMUL_NAME(matmul_tile)(int64_t k, const void *left, const void *right, void *tile) {
  enum { NR = 2 * MATMUL_LANES };
  const MATMUL_T *b0 = right;
  MATMUL_T *out = tile;
  for (int r = 0; r < MATMUL_ROWS; r++) {
    const MATMUL_T *a = (const MATMUL_T *)left + r, *b = b0;
    MATMUL_VEC re0 = {0}, re1 = {0}, im0 = {0}, im1 = {0}, br0, br1, bi0, bi1;
    for (int64_t p = 0; p < k; p++, a += 2 * MATMUL_ROWS, b += 2 * NR) {
      MATMUL_LOAD(br0, b);
      MATMUL_LOAD(br1, b + MATMUL_LANES);
      MATMUL_LOAD(bi0, b + NR);
      MATMUL_LOAD(bi1, b + NR + MATMUL_LANES);
      MATMUL_T x = a[0], y = a[MATMUL_ROWS];
      re0 += x * br0 - y * bi0;
      re1 += x * br1 - y * bi1;
      im0 += x * bi0 + y * br0;
      im1 += x * bi1 + y * br1;
    }
    for (int c = 0; c < MATMUL_LANES; c++) {
      MATMUL_T *first = out + 2 * (r * NR + c), *second = first + 2 * MATMUL_LANES;
      first[0] = re0[c];
      first[1] = im0[c];
      second[0] = re1[c];
      second[1] = im1[c];
    }
  }
}
#else
static void MATMUL_NAME(matmul_tile)(int64_t k, const void *left, const void *right, void *tile) {
  const MATMUL_T *a = left, *b = right;
  MATMUL_VEC s00 = {0}, s01 = {0}, s10 = {0}, s11 = {0}, s20 = {0}, s21 = {0}, s30 = {0}, s31 = {0}, v0, v1;
  _Static_assert(MATMUL_ROWS == 4, "the rows are written out");
  for (int64_t p = 0; p < k; p++, a += MATMUL_ROWS, b += 2 * MATMUL_LANES) {
    MATMUL_LOAD(v0, b);
    MATMUL_LOAD(v1, b + MATMUL_LANES);
    s00 += a[0] * v0;
    s01 += a[0] * v1;
    s10 += a[1] * v0;
    s11 += a[1] * v1;
    s20 += a[2] * v0;
    s21 += a[2] * v1;
    s30 += a[3] * v0;
    s31 += a[3] * v1;
  }
  MATMUL_SAVE(s00, 0);
  MATMUL_SAVE(s01, 1);
  MATMUL_SAVE(s10, 2);
  MATMUL_SAVE(s11, 3);
  MATMUL_SAVE(s20, 4);
  MATMUL_SAVE(s21, 5);
  MATMUL_SAVE(s30, 6);
  MATMUL_SAVE(s31, 7);
}
#endif

/* Packs n elements of `from` at base + places[i], INTERP_NOWHERE as zero, to to[i * step]; the imaginary part `part`
 * on. */
static void MATMUL_NAME(matmul_pack)(const void *from, int64_t base, const int64_t *places, int64_t n, void *to,
                                     int64_t step, int64_t part, bool holes) {
  const MATMUL_T *x = from;
  MATMUL_T *out = to;
#if MATMUL_COMPLEX
  for (int64_t i = 0; i < n; i++) {
    bool hole = holes && places[i] == INTERP_NOWHERE;
    int64_t at = hole ? 0 : 2 * (base + places[i]);
    out[i * step] = hole ? 0 : x[at];
    out[i * step + part] = hole ? 0 : x[at + 1];
  }
#else
  (void)part;
  if (holes)
    for (int64_t i = 0; i < n; i++) out[i * step] = places[i] == INTERP_NOWHERE ? 0 : x[base + places[i]];
  else
    for (int64_t i = 0; i < n; i++) out[i * step] = x[base + places[i]];
#endif
}

/* Adds the tile's rows x columns to the result, or stores them there when this is the first block of k. */
static void MATMUL_NAME(matmul_store)(const void *tile, int rows, int columns, bool first, void *out,
                                      const int64_t *out_m, const int64_t *out_n) {
  const MATMUL_T *t = tile;
  MATMUL_T *o = out;
  const int parts = MATMUL_COMPLEX ? 2 : 1;
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++)
      for (int part = 0; part < parts; part++) {
        MATMUL_T *at = &o[(out_m[r] + out_n[c]) * parts + part], v = t[(r * 2 * MATMUL_LANES + c) * parts + part];
        *at = first ? v : *at + v;
      }
}

static const matmul_kernels MATMUL_NAME(matmul_kernels) = {.columns = 2 * MATMUL_LANES,
                                                           .parts = MATMUL_COMPLEX ? 2 : 1,
                                                           .tile = MATMUL_NAME(matmul_tile),
                                                           .pack = MATMUL_NAME(matmul_pack),
                                                           .store = MATMUL_NAME(matmul_store)};

#undef MATMUL_T
#undef MATMUL_NAME
#undef MATMUL_LANES
#undef MATMUL_COMPLEX
#undef MATMUL_VEC
#undef MATMUL_LOAD
#undef MATMUL_SAVE
