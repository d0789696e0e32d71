// What kernels on tensor cores are made of, as CUDA C++: prelude.py packs it with the functions on elements, behind them. A definition stands
// between empty lines, and comments are left out.
//
// Operands are staged in shared memory as rows of 32-bit words, 16 of them with 4 between, so that the words of a fragment lie in banks of their
// own. Rows are those of the left operand and the columns of the right one, so both are read along the terms. Counted in words, fragments of all
// types lie alike (PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type" and those of .tf32 and .s8; tests/cuda/driver/ptx.c has the
// table): of a step of 8 words, lane 4 g + t has words t and t + 4 of rows g and g + 8 of the left operand, words t and t + 4 of column g of the
// right one, and columns 2 t and 2 t + 1 of rows g and g + 8 of the sums.

// sums += left * right. KIND: 0 f16, 1 bf16, 2 tf32, 3 s8.
template <int KIND, class S> static __device__ __forceinline__ void tensor_mma(S (&sums)[4], const uint32_t (&left)[4], const uint32_t (&right)[2]) {
  if constexpr (KIND == 0)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
  if constexpr (KIND == 1)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
  if constexpr (KIND == 2)
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
  if constexpr (KIND == 3)
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

// f32 as tf32, whose last 13 bits are zeros.
template <int KIND, class E> static __device__ __forceinline__ E tensor_rounded(E x) {
  if constexpr (KIND == 2) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(*(uint32_t *)&x) : "f"(x));
  return x;
}

// A thread's part of ROWS rows by 64 bytes of terms, of an operand that has `rows` and `terms`, as pieces of 16 bytes; what is outside is 0. `at`
// gives an element's address. ALONG: what lies together, 1 terms, 2 rows, 0 neither.
template <class E, int ROWS, int ALONG, class AT> static __device__ __forceinline__ void tensor_take(pack<E, 16 / sizeof(E)> (&parts)[ROWS / 64], int row, int rows, int term, int terms, AT at) {
  constexpr int V = 16 / sizeof(E);
#pragma unroll
  for (int i = 0; i < ROWS / 64; i++) {
    const int n = threadIdx.x + 256 * i;
    const int r = row + (ALONG == 2 ? n % (ROWS / V) * V : n / 4), t = term + (ALONG == 2 ? n / (ROWS / V) : n % 4 * V);
    pack<E, V> part = {};
    if constexpr (ALONG != 0) {
      if ((rows % ROWS == 0 || r < rows) && (terms % (4 * V) == 0 ? term < terms : t < terms)) part = *(const pack<E, V> *)at(r, t);
    } else {
      for (int j = 0; j < V; j++)
        if (r < rows && t + j < terms) part.e[j] = *at(r, t + j);
    }
    parts[i] = part;
  }
}

// The same part to shared memory.
template <int KIND, class E, int ROWS, int ALONG> static __device__ __forceinline__ void tensor_put(uint32_t (&stage)[ROWS * 20], pack<E, 16 / sizeof(E)> (&parts)[ROWS / 64]) {
  constexpr int V = 16 / sizeof(E);
#pragma unroll
  for (int i = 0; i < ROWS / 64; i++) {
    const int n = threadIdx.x + 256 * i;
#pragma unroll
    for (int j = 0; j < V; j++) parts[i].e[j] = tensor_rounded<KIND>(parts[i].e[j]);
    if constexpr (ALONG == 2) {
#pragma unroll
      for (int j = 0; j < V; j++) ((E *)stage)[(n % (ROWS / V) * V + j) * 80 / sizeof(E) + n / (ROWS / V)] = parts[i].e[j];
    } else {
      *(pack<E, V> *)&stage[n / 4 * 20 + n % 4 * 4] = parts[i];
    }
  }
}

// Four matrices of 8 rows of 16 bytes, of which the lane names a row's beginning: lanes 0 to 7 those of the first one, and so on.
static __device__ __forceinline__ void tensor_matrices(uint32_t (&low)[2], uint32_t (&high)[2], const uint32_t *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(low[0]), "=r"(low[1]), "=r"(high[0]), "=r"(high[1]) : "l"(__cvta_generic_to_shared(row)) : "memory");
}

// The same, turned.
static __device__ __forceinline__ void tensor_turned(uint32_t (&low)[2], uint32_t (&high)[2], const uint32_t *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(low[0]), "=r"(low[1]), "=r"(high[0]), "=r"(high[1]) : "l"(__cvta_generic_to_shared(row)) : "memory");
}

// The fragment of 16 rows from `row` on, where a row has W words.
template <int W, int N> static __device__ __forceinline__ void tensor_left(uint32_t (&left)[4], const uint32_t (&stage)[N], int row, int word) {
  uint32_t low[2], high[2];
  tensor_matrices(low, high, &stage[(row + threadIdx.x % 16) * W + word + threadIdx.x % 32 / 16 * 4]);
#pragma unroll
  for (int i = 0; i < 4; i++) left[i] = i < 2 ? low[i] : high[i - 2];
}

// Those of 8 columns, and of the 8 next.
template <int W, int N> static __device__ __forceinline__ void tensor_right(uint32_t (&low)[2], uint32_t (&high)[2], const uint32_t (&stage)[N], int column, int word) {
  tensor_matrices(low, high, &stage[(column + threadIdx.x % 32 / 16 * 8 + threadIdx.x % 8) * W + word + threadIdx.x % 16 / 8 * 4]);
}

// A block of 256 threads makes TILE by TILE results from row and column on: 2 by 4 warps, each 2 (4) fragments down and across. While a stage is
// multiplied, the next one is on its way. `store` is given each row, column and sum, also outside of the result.
template <int KIND, class E, class S, int TILE, int LEFT, int RIGHT, class A, class B, class STORE>
static __device__ __forceinline__ void tensor_product(uint32_t (&lefts)[2][TILE * 20], uint32_t (&rights)[2][TILE * 20], int row, int rows, int column, int columns, int terms, A a, B b, STORE store) {
  constexpr int N = TILE / 32, DEPTH = 64 / sizeof(E);
  const int down = threadIdx.x / 128 * (TILE / 2), across = threadIdx.x / 32 % 4 * (TILE / 4);
  pack<E, 16 / sizeof(E)> x[TILE / 64], y[TILE / 64];
  S sums[N][N][4] = {};
  uint32_t left[N][4], low[2], high[2];
  int now = 0;
  tensor_take<E, TILE, LEFT>(x, row, rows, 0, terms, a);
  tensor_take<E, TILE, RIGHT>(y, column, columns, 0, terms, b);
  for (int from = 0; from < terms; from += DEPTH, now ^= 1) {
    tensor_put<KIND, E, TILE, LEFT>(lefts[now], x);
    tensor_put<KIND, E, TILE, RIGHT>(rights[now], y);
    __syncthreads();
    tensor_take<E, TILE, LEFT>(x, row, rows, from + DEPTH, terms, a);
    tensor_take<E, TILE, RIGHT>(y, column, columns, from + DEPTH, terms, b);
#pragma unroll
    for (int word = 0; word < 16; word += 8) {
#pragma unroll
      for (int i = 0; i < N; i++) tensor_left<20>(left[i], lefts[now], down + 16 * i, word);
#pragma unroll
      for (int j = 0; j < N; j += 2) {
        tensor_right<20>(low, high, rights[now], across + 8 * j, word);
#pragma unroll
        for (int i = 0; i < N; i++) {
          tensor_mma<KIND>(sums[i][j], left[i], low);
          tensor_mma<KIND>(sums[i][j + 1], left[i], high);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < N; i++)
#pragma unroll
    for (int j = 0; j < N; j++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        store(row + down + 16 * i + threadIdx.x % 32 / 4 + e / 2 * 8, column + across + 8 * j + threadIdx.x % 4 * 2 + e % 2, sums[i][j][e]);
}

// ---- attention: softmax(x(q k)) v, by a block of 128 threads for 64 rows. A warp has 16 of them, whose scores and sums lie in registers as mma leaves
// them: a thread has columns 2 t and 2 t + 1 of rows g and g + 8. Keys come KEYS at a time; what was summed so far is scaled to each new maximum. ----

// exp, for weights that are rounded to 16 bits by the GPU's own, which gives 0 below 2^-126.
template <int KIND> static __device__ __forceinline__ float attention_exp(float x) {
  if constexpr (KIND < 2) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 0x1.715476p+0f));
    return power;
  }
  return op_EXP_F32(x);
}

// x / y within 2 units of the last place, for what is rounded to 16 bits.
static __device__ __forceinline__ float attention_divide(float x, float y) {
  float quotient;
  asm("div.full.f32 %0, %1, %2;" : "=f"(quotient) : "f"(x), "f"(y));
  return quotient;
}

// Two floats as 16 bits each, the first one below.
template <int KIND> static __device__ __forceinline__ uint32_t attention_pair(float low, float high) {
  uint32_t pair;
  if constexpr (KIND == 0) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  if constexpr (KIND == 1) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// Pieces of an operand's ROWS rows of TERMS terms, 16 bytes of neighbours where ALONG says that there are some, shared by 128 threads.
template <class E, int ROWS, int TERMS, int ALONG> struct attention_part {
  static constexpr int V = ALONG ? 16 / sizeof(E) : 1, PIECES = ROWS * TERMS / V, EACH = (PIECES + 127) / 128;
  pack<E, V> pieces[EACH];
  static __device__ __forceinline__ int row(int n) { return ALONG == 2 ? n % (ROWS / V) * V : n / (TERMS / V); }
  static __device__ __forceinline__ int term(int n) { return ALONG == 2 ? n / (ROWS / V) : n % (TERMS / V) * V; }
};

// A thread's part, on its way while what came before it is multiplied; what is outside of the operand is 0.
template <class E, int ROWS, int TERMS, int ALONG, class AT> static __device__ __forceinline__ void attention_take(attention_part<E, ROWS, TERMS, ALONG> &part, int row, int rows, int terms, AT at) {
  typedef attention_part<E, ROWS, TERMS, ALONG> P;
#pragma unroll
  for (int i = 0; i < P::EACH; i++) {
    const int n = threadIdx.x + 128 * i, r = row + P::row(n), t = P::term(n);
    pack<E, P::V> piece = {};
    if ((P::PIECES % 128 == 0 || n < P::PIECES) && (rows % ROWS == 0 ? row < rows : r < rows) && (terms == TERMS || t < terms)) piece = *(const pack<E, P::V> *)at(r, t);
    part.pieces[i] = piece;
  }
}

// The same to shared memory, as rows of terms with 4 words between.
template <int KIND, class E, int ROWS, int TERMS, int ALONG> static __device__ __forceinline__ void attention_put(uint32_t (&stage)[ROWS * (TERMS * sizeof(E) / 4 + 4)], attention_part<E, ROWS, TERMS, ALONG> &part) {
  typedef attention_part<E, ROWS, TERMS, ALONG> P;
  constexpr int W = (TERMS * sizeof(E) / 4 + 4) * 4 / sizeof(E);
#pragma unroll
  for (int i = 0; i < P::EACH; i++) {
    const int n = threadIdx.x + 128 * i, r = P::row(n), t = P::term(n);
    if (P::PIECES % 128 && n >= P::PIECES) break;
#pragma unroll
    for (int j = 0; j < P::V; j++) part.pieces[i].e[j] = tensor_rounded<KIND>(part.pieces[i].e[j]);
    if constexpr (ALONG == 2) {
#pragma unroll
      for (int j = 0; j < P::V; j++) ((E *)stage)[(r + j) * W + t] = part.pieces[i].e[j];
    } else {
      *(pack<E, P::V> *)&((E *)stage)[r * W + t] = part.pieces[i];
    }
  }
}

// Whether one of a thread's numbers is inf or NaN, which show even where nothing but 0 is multiplied by them.
template <int KIND, class E, int ROWS, int TERMS, int ALONG> static __device__ __forceinline__ bool attention_strange(const attention_part<E, ROWS, TERMS, ALONG> &part) {
  typedef attention_part<E, ROWS, TERMS, ALONG> P;
  bool strange = false;
#pragma unroll
  for (int i = 0; i < P::EACH; i++)
#pragma unroll
    for (int j = 0; j < P::V; j++)
      if constexpr (KIND == 0) strange |= (part.pieces[i].e[j] & 0x7c00) == 0x7c00;
      else if constexpr (KIND == 1) strange |= (part.pieces[i].e[j] & 0x7f80) == 0x7f80;
      else strange |= (__float_as_uint(part.pieces[i].e[j]) & 0x7f800000) == 0x7f800000;
  return strange;
}

// Scores of 16 rows and KEYS keys, by single multiplications.
template <int D, int KEYS, class Q> static __device__ __forceinline__ void attention_scores(float (&scores)[KEYS / 8][4], const uint32_t (&keys)[KEYS * (D + 4)], int row, int rows, int depth, Q q) {
  const int t = threadIdx.x % 4;
  for (int d = 0; d < depth; d++) {
    const float low = row < rows ? *q(row, d) : 0, high = row + 8 < rows ? *q(row + 8, d) : 0;
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) scores[j][e] = fmaf(e < 2 ? low : high, ((const float *)keys)[(8 * j + 2 * t + e % 2) * (D + 4) + d], scores[j][e]);
  }
}

// Weights times values, likewise: a row's weights lie in four lanes.
template <int DV, int KEYS> static __device__ __forceinline__ void attention_sums(float (&sums)[DV / 8][4], const float (&weights)[KEYS / 8][4], const uint32_t (&values)[KEYS * (DV + 4)]) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
    for (int n = 0; n < 8; n++) {
      const int lane = threadIdx.x % 32 / 4 * 4 + n / 2;
      const float low = __shfl_sync(0xffffffffu, weights[j][n % 2], lane), high = __shfl_sync(0xffffffffu, weights[j][2 + n % 2], lane);
#pragma unroll
      for (int i = 0; i < DV / 8; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) sums[i][e] = fmaf(e < 2 ? low : high, ((const float *)values)[(8 * j + n) * (DV + 4) + 8 * i + 2 * t + e % 2], sums[i][e]);
    }
}

// The same on tensor cores. Of 16 bits, weights are a left operand as they lie, and values come by columns; of tf32 keys 0, 2, 4, 6, 1, 3, 5, 7 are
// taken for terms 0 to 7, so that weights are one, too.
template <int KIND, class E, int DV, int KEYS> static __device__ __forceinline__ void attention_mma(float (&sums)[DV / 8][4], const float (&weights)[KEYS / 8][4], const uint32_t (&values)[KEYS * (DV * sizeof(E) / 4 + 4)]) {
  constexpr int W = DV * sizeof(E) / 4 + 4;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  uint32_t left[4], low[2], high[2];
#pragma unroll
  for (int j = 0; j < KEYS / 8; j += 4 / sizeof(E)) {
#pragma unroll
    for (int i = 0; i < 4; i++)
      if constexpr (KIND == 2) left[i] = __float_as_uint(tensor_rounded<KIND>(weights[j][i % 2 * 2 + i / 2]));
      else left[i] = attention_pair<KIND>(weights[j + i / 2][i % 2 * 2], weights[j + i / 2][i % 2 * 2 + 1]);
#pragma unroll
    for (int i = 0; i < DV / 8; i += 2) {
      if constexpr (KIND == 2) {
#pragma unroll
        for (int n = 0; n < 2; n++) {
          low[n] = values[(8 * j + 2 * t + n) * W + 8 * i + g];
          high[n] = values[(8 * j + 2 * t + n) * W + 8 * i + 8 + g];
        }
      } else {
        tensor_turned(low, high, &values[(8 * j + threadIdx.x % 16) * W + 4 * (i + threadIdx.x % 32 / 16)]);
      }
      tensor_mma<KIND>(sums[i], left, low);
      tensor_mma<KIND>(sums[i + 1], left, high);
    }
  }
}

// A thread's words of 16 rows of a left operand, whose upper one is `row`, in registers.
template <int KIND, class E, int D, class Q> static __device__ __forceinline__ void attention_left(uint32_t (&left)[D * sizeof(E) / 32][4], int row, int rows, int depth, Q q) {
  constexpr int P = 4 / sizeof(E), STEPS = D / P / 8;
#pragma unroll
  for (int n = 0; n < STEPS; n++)
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int e = 0; e < P; e++) {
        const int r = row + i % 2 * 8, d = P * (8 * n + threadIdx.x % 4 + i / 2 * 4) + e;
        if (r < rows && d < depth) ((E *)left[n])[P * i + e] = tensor_rounded<KIND>(*q(r, d));
      }
}

// Scores of these rows and KEYS keys.
template <int KIND, class E, int D, int KEYS> static __device__ __forceinline__ void attention_products(float (&scores)[KEYS / 8][4], const uint32_t (&left)[D * sizeof(E) / 32][4], const uint32_t (&keys)[KEYS * (D * sizeof(E) / 4 + 4)]) {
  constexpr int W = D * sizeof(E) / 4 + 4, STEPS = D * sizeof(E) / 32;
  uint32_t low[2], high[2];
#pragma unroll
  for (int n = 0; n < STEPS; n++)
#pragma unroll
    for (int j = 0; j < KEYS / 8; j += 2) {
      tensor_right<W>(low, high, keys, 8 * j, 8 * n);
      tensor_mma<KIND>(scores[j], left[n], low);
      tensor_mma<KIND>(scores[j + 1], left[n], high);
    }
}

// x of one or two products (D1 is 0) times values, where x may be a gradient and each of its factors' terms is to be computed again: a block has 64
// rows and goes through what it sums over as attention does. Without values (DV is 0) x itself is combined by v, from `none` on; V_ALONG 3 says that
// `values` is `keys` or `others`, whose operand is the same. HIDES as in attention: hidden is what is 0 times values there, and counts where x is not 0.
template <int KIND, class E, int D, int D1, int DV, int KEYS, int ALONG, int ALONG1, int V_ALONG, int HIDES, class Q, class K, class Q1, class K1, class V, class X, class H, class STORE>
static __device__ __forceinline__ void recomputed(uint32_t (&keys)[KEYS * (D * sizeof(E) / 4 + 4)], uint32_t (&others)[KEYS * (D1 * sizeof(E) / 4 + 4)], uint32_t (&values)[KEYS * (DV * sizeof(E) / 4 + 4)], int row, int rows, int all, int depth, int depth1, int width, float none, Q q, K k, Q1 q1, K1 k1, V v, X x, H hidden, STORE store) {
  constexpr bool OWN = DV > 0 && V_ALONG < 3;
  const int t = threadIdx.x % 4, top = row;
  bool last = false;
  float sums[DV ? DV / 8 : 1][4] = {}, total[2] = {none, none};
  uint32_t left[D * sizeof(E) / 32][4] = {}, left1[D1 ? D1 * sizeof(E) / 32 : 1][4] = {};
  row += threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  attention_left<KIND, E, D>(left, row, rows, depth, q);
  if constexpr (D1 > 0) attention_left<KIND, E, D1>(left1, row, rows, depth1, q1);
  attention_part<E, KEYS, D, ALONG> key_part;
  attention_part<E, KEYS, D1 ? D1 : 16, ALONG1> other_part;
  attention_part<E, KEYS, DV ? DV : 16, OWN ? V_ALONG : 0> value_part;
  const auto take = [&](int from) {
    attention_take(key_part, from, all, depth, k);
    if constexpr (D1 > 0) attention_take(other_part, from, all, depth1, k1);
    if constexpr (OWN) attention_take(value_part, from, all, width, v);
  };
  const auto next = [&](int from) {
    if constexpr (HIDES > 0) while (from < all && hidden(top, from) != last) from += KEYS;
    return from;
  };
  const auto counts = [&]() {
    bool some = false;
    for (int far = 0; far < all; far += KEYS) {
      const int r = top + threadIdx.x % 64, key = far + threadIdx.x % KEYS;
      if (!hidden(top, far)) continue;
      if (r < rows && key < all) some |= !(x(r, key, 0.0f, 0.0f) == 0);
      if constexpr (HIDES == 1) {
        take(far);
        if constexpr (OWN) some |= attention_strange<KIND>(value_part);
        else some |= attention_strange<KIND>(key_part);
        if constexpr (!OWN && D1 > 0) some |= attention_strange<KIND>(other_part);
      }
    }
    return some;
  };
  int from = next(0);
  take(from);
  while (true) {
    if (from >= all) {
      if constexpr (HIDES == 0) break;
      else if (last || !__syncthreads_or(counts())) break;
      last = true;
      from = next(0);
      take(from);
    }
    float scores[KEYS / 8][4] = {}, more[KEYS / 8][4] = {};
    __syncthreads();
    attention_put<KIND>(keys, key_part);
    if constexpr (D1 > 0) attention_put<KIND>(others, other_part);
    if constexpr (OWN) attention_put<KIND>(values, value_part);
    __syncthreads();
    const int then = next(from + KEYS);
    take(then);
    attention_products<KIND, E, D, KEYS>(scores, left, keys);
    if constexpr (D1 > 0) attention_products<KIND, E, D1, KEYS>(more, left1, others);
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int r = row + e / 2 * 8, key = from + 8 * j + 2 * t + e % 2;
        scores[j][e] = (rows % 64 == 0 || r < rows) && (all % KEYS == 0 || key < all) ? x(r, key, scores[j][e], more[j][e]) : none;
        if constexpr (DV == 0) total[e / 2] = v(total[e / 2], scores[j][e]);
      }
    if constexpr (DV > 0) attention_mma<KIND, E, DV, KEYS>(sums, scores, values);
    from = then;
  }
  if constexpr (DV == 0) {
#pragma unroll
    for (int far = 1; far <= 2; far *= 2)
#pragma unroll
      for (int i = 0; i < 2; i++) total[i] = v(total[i], __shfl_xor_sync(0xffffffffu, total[i], far));
    if (t == 0) store(row, 0, total[0]);
    if (t == 0) store(row + 8, 0, total[1]);
  } else {
#pragma unroll
    for (int j = 0; j < DV / 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) store(row + e / 2 * 8, 8 * j + 2 * t + e % 2, sums[j][e]);
  }
}

// KIND as in tensor_mma, or 4: f32 without tensor cores. There are `rows` of `depth` terms, `all` keys, values of `width`; D and DV are depth and
// width in multiples of 16. Maxima begin at -inf, which no term is scaled by: a row without a number is 0 / 0 at the end, as the program has it.
// HIDES: a mask hides all of some blocks of keys, from which x does not follow then. They are left for the end, and are gone through only if one has a
// weight that is not 0, or, if HIDES is 1, a value that is inf or NaN.
template <int KIND, class E, int D, int DV, int KEYS, int K_ALONG, int V_ALONG, int HIDES, class Q, class K, class V, class X, class H, class STORE, class ROWS>
static __device__ __forceinline__ void attention(uint32_t (&keys)[KEYS * (D * sizeof(E) / 4 + 4)], uint32_t (&values)[KEYS * (DV * sizeof(E) / 4 + 4)], int row, int rows, int all, int depth, int width, Q q, K k, V v, X x, H hidden, STORE store, ROWS rows_of) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, top = row;
  bool last = false;
  const float none = __int_as_float(0xff800000);
  float sums[DV / 8][4] = {}, most[2] = {none, none}, total[2] = {};
  uint32_t left[D * sizeof(E) / 32][4] = {};
  row += threadIdx.x / 32 * 16 + g;
  if constexpr (KIND < 4) attention_left<KIND, E, D>(left, row, rows, depth, q);
  attention_part<E, KEYS, D, K_ALONG> key_part;
  attention_part<E, KEYS, DV, V_ALONG> value_part;
  const auto take = [&](int from) {
    attention_take(key_part, from, all, depth, k);
    attention_take(value_part, from, all, width, v);
  };
  const auto next = [&](int from) {
    if constexpr (HIDES > 0) while (from < all && hidden(top, from) != last) from += KEYS;
    return from;
  };
  const auto counts = [&]() {
    bool some = false;
    for (int far = 0; far < all; far += KEYS) {
      if (!hidden(top, far)) continue;
      for (int i = 0; i < 2; i++) {
        const float score = row + 8 * i < rows ? x(row + 8 * i, far, 0.0f) : none, now = fmaxf(most[i], score);
        some |= !(attention_exp<KIND>(score - (now == none ? 0 : now)) == 0);
      }
      if constexpr (HIDES == 1) {
        attention_take(value_part, far, all, width, v);
        some |= attention_strange<KIND>(value_part);
      }
    }
    return some;
  };
  int from = next(0);
  take(from);
  while (true) {
    if (from >= all) {
      if constexpr (HIDES == 0) break;
      else if (last || !__syncthreads_or(counts())) break;
      last = true;
      from = next(0);
      take(from);
    }
    float scores[KEYS / 8][4] = {}, now[2] = {most[0], most[1]}, base[2], scale[2];
    __syncthreads();
    attention_put<KIND>(keys, key_part);
    attention_put<KIND>(values, value_part);
    __syncthreads();
    const int then = next(from + KEYS);
    take(then);
    if constexpr (KIND < 4) attention_products<KIND, E, D, KEYS>(scores, left, keys);
    else attention_scores<D, KEYS>(scores, keys, row, rows, depth, q);
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int r = row + e / 2 * 8, key = from + 8 * j + 2 * t + e % 2;
        scores[j][e] = (rows % 64 == 0 || r < rows) && (all % KEYS == 0 || key < all) ? x(r, key, scores[j][e]) : none;
        now[e / 2] = fmaxf(now[e / 2], scores[j][e]);
      }
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
      for (int far = 1; far <= 2; far *= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, now[i], far);
        now[i] = fmaxf(now[i], other);
      }
      base[i] = now[i] == none ? 0 : now[i];
      scale[i] = attention_exp<KIND>(most[i] - base[i]);
      most[i] = now[i];
      total[i] *= scale[i];
    }
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        scores[j][e] = attention_exp<KIND>(scores[j][e] - base[e / 2]);
        total[e / 2] += scores[j][e];
      }
#pragma unroll
    for (int j = 0; j < DV / 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) sums[j][e] *= scale[e / 2];
    if constexpr (KIND < 4) attention_mma<KIND, E, DV, KEYS>(sums, scores, values);
    else attention_sums<DV, KEYS>(sums, scores, values);
    from = then;
  }
#pragma unroll
  for (int far = 1; far <= 2; far *= 2)
#pragma unroll
    for (int i = 0; i < 2; i++) total[i] += __shfl_xor_sync(0xffffffffu, total[i], far);
#pragma unroll
  for (int i = 0; i < 2; i++)
    if (t == 0 && row + 8 * i < rows) rows_of(row + 8 * i, most[i], total[i]);
#pragma unroll
  for (int j = 0; j < DV / 8; j++)
#pragma unroll
    for (int e = 0; e < 4; e++) store(row + e / 2 * 8, 8 * j + 2 * t + e % 2, KIND < 2 ? attention_divide(sums[j][e], total[e / 2]) : sums[j][e] / total[e / 2]);
}
