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
template <class E, int ROWS, int ALONG, class AT> static __device__ __forceinline__ void tensor_take(pack<E, 16 / sizeof(E)> (&parts)[ROWS / 64], int64_t row, int64_t rows, int64_t term, int64_t terms, AT at) {
  constexpr int V = 16 / sizeof(E);
#pragma unroll
  for (int i = 0; i < ROWS / 64; i++) {
    const int n = threadIdx.x + 256 * i;
    const int64_t r = row + (ALONG == 2 ? n % (ROWS / V) * V : n / 4), t = term + (ALONG == 2 ? n / (ROWS / V) : n % 4 * V);
    pack<E, V> part = {};
    if constexpr (ALONG != 0) {
      if (r < rows && t < terms) part = *(const pack<E, V> *)at(r, t);
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

// The words of lane 4 g + t that are the fragment of 16 rows from `row` on, and of 8 columns.
template <int N> static __device__ __forceinline__ void tensor_left(uint32_t (&left)[4], const uint32_t (&stage)[N], int row, int word) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < 4; i++) left[i] = stage[(row + g + i % 2 * 8) * 20 + word + t + i / 2 * 4];
}

template <int N> static __device__ __forceinline__ void tensor_right(uint32_t (&right)[2], const uint32_t (&stage)[N], int column, int word) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < 2; i++) right[i] = stage[(column + g) * 20 + word + t + i * 4];
}

// A block of 256 threads makes TILE by TILE results from row and column on: 2 by 4 warps, each 2 (4) fragments down and across. While a stage is
// multiplied, the next one is on its way. `store` is given each row, column and sum, also outside of the result.
template <int KIND, class E, class S, int TILE, int LEFT, int RIGHT, class A, class B, class STORE>
static __device__ __forceinline__ void tensor_product(uint32_t (&lefts)[2][TILE * 20], uint32_t (&rights)[2][TILE * 20], int64_t row, int64_t rows, int64_t column, int64_t columns, int64_t terms, A a, B b, STORE store) {
  constexpr int N = TILE / 32, DEPTH = 64 / sizeof(E);
  const int down = threadIdx.x / 128 * (TILE / 2), across = threadIdx.x / 32 % 4 * (TILE / 4);
  pack<E, 16 / sizeof(E)> x[TILE / 64], y[TILE / 64];
  S sums[N][N][4] = {};
  uint32_t left[N][4], right[2];
  int now = 0;
  tensor_take<E, TILE, LEFT>(x, row, rows, 0, terms, a);
  tensor_take<E, TILE, RIGHT>(y, column, columns, 0, terms, b);
  for (int64_t from = 0; from < terms; from += DEPTH, now ^= 1) {
    tensor_put<KIND, E, TILE, LEFT>(lefts[now], x);
    tensor_put<KIND, E, TILE, RIGHT>(rights[now], y);
    __syncthreads();
    tensor_take<E, TILE, LEFT>(x, row, rows, from + DEPTH, terms, a);
    tensor_take<E, TILE, RIGHT>(y, column, columns, from + DEPTH, terms, b);
#pragma unroll
    for (int word = 0; word < 16; word += 8) {
#pragma unroll
      for (int i = 0; i < N; i++) tensor_left(left[i], lefts[now], down + 16 * i, word);
#pragma unroll
      for (int j = 0; j < N; j++) {
        tensor_right(right, rights[now], across + 8 * j, word);
#pragma unroll
        for (int i = 0; i < N; i++) tensor_mma<KIND>(sums[i][j], left[i], right);
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
