// Rows that LANES threads have, of which each has combined its own part: all of it, for each of them, with the same bits whatever is combined. Of a
// row's warps each has a place in shared memory.
template <int LANES, class T, class F> static __device__ __forceinline__ T row_sum(pack<T, (LANES + 31) / 32> *warps, T sum, F by) {
  constexpr int N = LANES < 32 ? LANES : 32;
#pragma unroll
  for (int far = 1; far < N; far *= 2) {
    const T other = __shfl_xor_sync(~0u, sum, far);
    sum = by(sum, other);
  }
  if constexpr (LANES <= 32) {
    sum = __shfl_sync(~0u, sum, threadIdx.x % 32 / N * N);
  } else {
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / LANES].e[threadIdx.x % LANES / 32] = sum;
    __syncthreads();
    const pack<T, LANES / 32> all = warps[threadIdx.x / LANES];
    sum = all.e[0];
#pragma unroll
    for (int w = 1; w < LANES / 32; w++) sum = by(sum, all.e[w]);
  }
  return sum;
}
