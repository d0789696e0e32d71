// What sorts by radix are made of, as CUDA C++, packed as tensor.cuh is: a digit of 8 bits at a time, the least significant first, each pass in the
// order of the one before. A block of T threads has T * I elements, a warp 32 * I neighbours of them: those of lane l are l, l + 32, l + 64, ...

// The sum of a warp's lanes up to this one.
static __device__ __forceinline__ int sort_scan(int own) {
#pragma unroll
  for (int far = 1; far < 32; far *= 2) {
    const int other = __shfl_up_sync(~0u, own, far);
    if (threadIdx.x % 32 >= far) own += other;
  }
  return own;
}

// The sum of the threads before this one.
template <int W> static __device__ __forceinline__ int sort_before(int own, int (&sums)[W]) {
  const int warp = threadIdx.x / 32;
  int all = sort_scan(own);
  if (threadIdx.x % 32 == 31) sums[warp] = all;
  __syncthreads();
  all -= own;
  for (int w = 0; w < warp; w++) all += sums[w];
  return all;
}

// at[i]: the place of the thread's element i among the block's by their digits alone, of which `digit(i)` is one. Lanes of one digit find each other by
// ballots, bit by bit (a digit is kept with the place so far, or else registers would hold where its counter lies); the first of them counts them, for the warp; then a thread sums up what the warps have of its digits, and stand before them.
template <int T, int I, class D> static __device__ __forceinline__ void sort_rank(int (&at)[I], uint16_t (&count)[T / 32][256], int (&sums)[T / 32], D digit) {
  constexpr int W = T / 32, E = T < 256 ? 256 / T : 1;
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  ((pack<uint16_t, 8> *)count[warp])[lane] = {};
  __syncwarp();
#pragma unroll
  for (int i = 0; i < I; i++) {
    const uint32_t d = digit(i);
    uint32_t same = ~0u;
#pragma unroll
    for (int b = 0; b < 8; b++) {
      uint32_t alike;
      asm volatile("{.reg .pred p; and.b32 %0, %1, %2; setp.ne.u32 p, %0, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; @!p not.b32 %0, %0;}" : "=r"(alike) : "r"(d), "r"(1u << b));
      same &= alike;
    }
    const int before = __popc(same & ((1u << lane) - 1)), old = count[warp][d];
    at[i] = (old + before) | d << 16;
    __syncwarp();
    if (before == 0) count[warp][d] = old + __popc(same);
    __syncwarp();
  }
  __syncthreads();
  int each[E][W], own = 0;
  if (t * E < 256) {
#pragma unroll
    for (int e = 0; e < E; e++)
#pragma unroll
      for (int w = 0; w < W; w++) {
        each[e][w] = own;
        own += count[w][t * E + e];
      }
  }
  const int all = sort_before(own, sums);
  if (t * E < 256) {
#pragma unroll
    for (int e = 0; e < E; e++)
#pragma unroll
      for (int w = 0; w < W; w++) count[w][t * E + e] = all + each[e][w];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < I; i++) at[i] = (at[i] & 65535) + count[warp][at[i] >> 16];
}

// Each element to its place, by way of shared memory with room for all.
template <int T, int I, class V> static __device__ __forceinline__ void sort_move(V (&x)[I], V *room, const int (&at)[I]) {
  const int first = threadIdx.x / 32 * 32 * I + threadIdx.x % 32;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < I; i++) room[at[i]] = x[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < I; i++) x[i] = room[first + 32 * i];
}

// counts[d * step]: how many of the block's elements have digit d; -1 is none.
template <int T, int I, class D> static __device__ __forceinline__ void sort_count(int (&count)[256], int *counts, int step, D digit) {
  for (int d = threadIdx.x; d < 256; d += T) count[d] = 0;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < I; i++) {
    const int d = digit(i), first = __shfl_sync(~0u, d, 0);
    const bool one = __all_sync(~0u, d == first);
    if (d >= 0 && (!one || threadIdx.x % 32 == 0)) atomicAdd(&count[d], one ? 32 : 1);
  }
  __syncthreads();
  for (int d = threadIdx.x; d < 256; d += T) counts[(int64_t)d * step] = count[d];
}

// A row of n counts becomes what stands before each of them, by a warp.
static __device__ __forceinline__ void sort_sum(int *row, int n, int *total) {
  const int lane = threadIdx.x % 32;
  int before = 0;
  for (int first = 16 * lane; first - 16 * lane < n; first += 512) {
    int part[16], own = 0;
#pragma unroll
    for (int j = 0; j < 16; j++) {
      part[j] = first + j < n ? row[first + j] : 0;
      own += part[j];
    }
    const int all = sort_scan(own);
    int sum = before + all - own;
#pragma unroll
    for (int j = 0; j < 16; j++) {
      if (first + j < n) row[first + j] = sum;
      sum += part[j];
    }
    before += __shfl_sync(~0u, all, 31);
  }
  if (lane == 0) *total = before;
}

// A round of a longer line, of whose n elements a block has 4096: `load(place, x, self)` and `store(place, x, self)`, with an element's number where
// it goes along (WITH). No block waits for another, so their order matters to nothing.
template <bool WITH, class V, class L, class D, class S> static __device__ __forceinline__ void sort_round(V (&room)[4096], int phase, int n, int tile, int tiles, int *totals, int *counts, uint16_t (&count)[8][256], int (&start)[256], int (&sums)[8], L load, D digit, S store) {
  if (phase == 1) {
    for (int d = tile * 8 + threadIdx.x / 32; d < 256; d += 8 * tiles) sort_sum(counts + (int64_t)d * tiles, tiles, totals + d);
    return;
  }
  const int first = tile * 4096 + threadIdx.x / 32 * 512 + threadIdx.x % 32;
  V x[16] = {};
  int to[16], self[16] = {};
#pragma unroll
  for (int i = 0; i < 16; i++)
    if (first + 32 * i < n) load(first + 32 * i, x[i], self[i]);
  if (phase == 0) {
    sort_count<256, 16>(start, counts + tile, tiles, [&](int i) { return first + 32 * i < n ? digit(x[i]) : -1; });
    return;
  }
  sort_rank<256, 16>(to, count, sums, [&](int i) { return first + 32 * i < n ? digit(x[i]) : 255; });
  sort_move<256, 16>(x, room, to);
  if constexpr (WITH) sort_move<256, 16>(self, (int *)room, to);
  const int d = threadIdx.x, before = sort_before(totals[d], sums);
  start[d] = before + counts[(int64_t)d * tiles + tile] - count[0][d] - tile * 4096;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 16; i++)
    if (first + 32 * i < n) store(start[digit(x[i])] + first + 32 * i, x[i], self[i]);
}
