// What CUDA C++ means to the host's compiler: put before each source by compile.c. A kernel is a function, its blocks and threads are
// run by block.c, which also writes threadIdx and the rest; nothing of the standard library is included, as NVRTC includes nothing.
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define XLAC_CUDA_SIM 1
typedef __SIZE_TYPE__ size_t;

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__ __restrict
// Variables of a block lie in one section, each behind a guard that nothing may touch.
#define CUDA_JOIN_(a, b) a##b
#define CUDA_JOIN(a, b) CUDA_JOIN_(a, b)
#define CUDA_IN_SHARED __attribute__((section("cuda_shared"), used))
#define __shared__                                                                                     \
  static CUDA_IN_SHARED __attribute__((aligned(16))) char CUDA_JOIN(cuda_guard_, __COUNTER__)[64]; \
  static CUDA_IN_SHARED

// Functions of this header are not checked by the compiler's calls: they call the checks where they touch memory.
#if defined(__clang__)
#define CUDA_OWN static inline __attribute__((no_sanitize("thread", "undefined"), unused))
#else
#define CUDA_OWN static inline __attribute__((no_sanitize("thread", "undefined"), unused, noinline))
#endif
#define CUDA_SMALL static inline __attribute__((always_inline, unused))

extern "C" {
int cuda_barrier(unsigned line, unsigned kind, int predicate);
unsigned long long cuda_warp(unsigned line, unsigned kind, unsigned mask, unsigned long long value, unsigned source);
unsigned cuda_active();
void cuda_fence();
void cuda_touch(const void *at, unsigned bytes, int write);
void cuda_atomic(const void *at, unsigned bytes);
[[noreturn]] void cuda_trap(unsigned line);
extern char cuda_dynamic_shared[];
int printf(const char *, ...) noexcept;
}

// ---- vectors ----

#define CUDA_VECTOR(type, name, align2, align4)                                                                                  \
  struct name##1 { type x; };                                                                                                    \
  struct __attribute__((aligned(align2))) name##2 { type x, y; };                                                                \
  struct name##3 { type x, y, z; };                                                                                              \
  struct __attribute__((aligned(align4))) name##4 { type x, y, z, w; };                                                          \
  CUDA_SMALL name##1 make_##name##1(type x) { return {x}; }                                                                      \
  CUDA_SMALL name##2 make_##name##2(type x, type y) { return {x, y}; }                                                           \
  CUDA_SMALL name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                                                \
  CUDA_SMALL name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
CUDA_VECTOR(signed char, char, 2, 4)
CUDA_VECTOR(unsigned char, uchar, 2, 4)
CUDA_VECTOR(short, short, 4, 8)
CUDA_VECTOR(unsigned short, ushort, 4, 8)
CUDA_VECTOR(int, int, 8, 16)
CUDA_VECTOR(unsigned, uint, 8, 16)
CUDA_VECTOR(long long, longlong, 16, 16)
CUDA_VECTOR(unsigned long long, ulonglong, 16, 16)
CUDA_VECTOR(float, float, 8, 16)
CUDA_VECTOR(double, double, 16, 16)
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

// Constant for a thread: the driver writes them when it switches.
extern "C" const uint3 cuda_thread_idx, cuda_block_idx, cuda_block_dim, cuda_grid_dim;
#define threadIdx cuda_thread_idx
#define blockIdx cuda_block_idx
#define blockDim cuda_block_dim
#define gridDim cuda_grid_dim
#define warpSize 32

struct cuda_dynamic {
  template <class T>
  operator T *() const {
    return (T *)cuda_dynamic_shared;
  }
};

// ---- barriers and warps ----

#define __syncthreads() cuda_barrier(__LINE__, 0, 0)
#define __syncthreads_count(p) cuda_barrier(__LINE__, 1, (p) != 0)
#define __syncthreads_and(p) cuda_barrier(__LINE__, 2, (p) != 0)
#define __syncthreads_or(p) cuda_barrier(__LINE__, 3, (p) != 0)
CUDA_SMALL void cuda_syncwarp(unsigned line, unsigned mask = 0xffffffffu) { cuda_warp(line, 0, mask, 0, 0); }
#define __syncwarp(...) cuda_syncwarp(__LINE__ __VA_OPT__(, ) __VA_ARGS__)
#define __activemask() cuda_active()
#define __threadfence() cuda_fence()
#define __threadfence_block() ((void)0)
#define __threadfence_system() cuda_fence()
#define __trap() cuda_trap(__LINE__)
#define __nanosleep(n) ((void)(n))
#define __builtin_assume(x) ((void)0)
#define __assume(x) ((void)0)

CUDA_SMALL unsigned cuda_lane() { return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) & 31; }
template <class T>
CUDA_SMALL unsigned long long cuda_to_bits(T v) {
  static_assert(sizeof(T) <= 8, "a warp exchanges values of at most 8 bytes");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &v, sizeof v);
  return bits;
}
template <class T>
CUDA_SMALL T cuda_from_bits(unsigned long long bits) {
  T v;
  __builtin_memcpy(&v, &bits, sizeof v);
  return v;
}
template <class T>
CUDA_SMALL T cuda_shuffle(unsigned line, unsigned mask, T v, unsigned source) {
  return cuda_from_bits<T>(cuda_warp(line, 1, mask, cuda_to_bits(v), source));
}
template <class T>
CUDA_SMALL T cuda_shfl(unsigned line, unsigned mask, T v, int lane, int width = 32) {
  return cuda_shuffle(line, mask, v, (cuda_lane() & ~(unsigned)(width - 1)) | ((unsigned)lane & (unsigned)(width - 1)));
}
template <class T>
CUDA_SMALL T cuda_shfl_up(unsigned line, unsigned mask, T v, unsigned delta, int width = 32) {
  unsigned lane = cuda_lane(), at = lane & (unsigned)(width - 1);
  return cuda_shuffle(line, mask, v, at >= delta ? lane - delta : lane);
}
template <class T>
CUDA_SMALL T cuda_shfl_down(unsigned line, unsigned mask, T v, unsigned delta, int width = 32) {
  unsigned lane = cuda_lane(), at = lane & (unsigned)(width - 1);
  return cuda_shuffle(line, mask, v, at + delta < (unsigned)width ? lane + delta : lane);
}
template <class T>
CUDA_SMALL T cuda_shfl_xor(unsigned line, unsigned mask, T v, int bits, int width = 32) {
  unsigned lane = cuda_lane(), other = lane ^ (unsigned)bits;
  return cuda_shuffle(line, mask, v, (other & ~(unsigned)(width - 1)) <= (lane | (unsigned)(width - 1)) ? other : lane);
}
#define __shfl_sync(...) cuda_shfl(__LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) cuda_shfl_up(__LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) cuda_shfl_down(__LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) cuda_shfl_xor(__LINE__, __VA_ARGS__)
#define __ballot_sync(mask, p) ((unsigned)cuda_warp(__LINE__, 2, mask, (p) != 0, 0))
#define __any_sync(mask, p) (cuda_warp(__LINE__, 2, mask, (p) != 0, 0) != 0)
#define __all_sync(mask, p) (cuda_warp(__LINE__, 2, mask, (p) == 0, 0) == 0)
#define __match_any_sync(mask, v) ((unsigned)cuda_warp(__LINE__, 3, mask, cuda_to_bits(v), 0))

template <class T, class F>
CUDA_SMALL T cuda_reduce(unsigned line, unsigned mask, T v, F f) {
  T result{};
  bool any = false;
  for (unsigned i = 0; i < 32; i++) {
    if ((mask >> i & 1) == 0) continue;
    T other = cuda_shuffle(line, mask, v, i);
    result = any ? f(result, other) : other;
    any = true;
  }
  return result;
}
#define __reduce_add_sync(mask, v) cuda_reduce(__LINE__, mask, v, [](auto a, auto b) { return a + b; })
#define __reduce_min_sync(mask, v) cuda_reduce(__LINE__, mask, v, [](auto a, auto b) { return b < a ? b : a; })
#define __reduce_max_sync(mask, v) cuda_reduce(__LINE__, mask, v, [](auto a, auto b) { return a < b ? b : a; })
#define __reduce_and_sync(mask, v) cuda_reduce(__LINE__, mask, v, [](auto a, auto b) { return a & b; })
#define __reduce_or_sync(mask, v) cuda_reduce(__LINE__, mask, v, [](auto a, auto b) { return a | b; })
#define __reduce_xor_sync(mask, v) cuda_reduce(__LINE__, mask, v, [](auto a, auto b) { return a ^ b; })

// An asm statement, which compile.c makes a call of: the instruction's text, then its operands, of 32 bits, or addresses.
CUDA_SMALL size_t __cvta_generic_to_shared(const void *p) { return (size_t)p; }
struct cuda_instruction {
  const char *text;
  void *operands[16];
  unsigned n;
};
extern "C" void cuda_run_ptx(unsigned line, const cuda_instruction *x);
template <class... T>
CUDA_OWN void cuda_ptx(unsigned line, const char *text, T &&...operands) {
  static_assert(sizeof...(T) <= 16 && ((sizeof(T) == 4 || sizeof(T) == sizeof(void *)) && ...), "operands of 32 or 64 bits, 16 at most");
  const cuda_instruction x = {text, {(void *)&operands...}, sizeof...(T)};
  cuda_run_ptx(line, &x);
}

// ---- memory ----

template <class T> struct cuda_same_ { typedef T type; };
template <class T> using cuda_same = typename cuda_same_<T>::type;
template <class T> CUDA_SMALL T __ldg(const T *p) { return *p; }
template <class T> CUDA_SMALL T __ldca(const T *p) { return *p; }
template <class T> CUDA_SMALL T __ldcg(const T *p) { return *p; }
template <class T> CUDA_SMALL T __ldcs(const T *p) { return *p; }
template <class T> CUDA_SMALL T __ldlu(const T *p) { return *p; }
template <class T> CUDA_SMALL T __ldcv(const T *p) { return *p; }
template <class T> CUDA_SMALL void __stwb(T *p, cuda_same<T> v) { *p = v; }
template <class T> CUDA_SMALL void __stcg(T *p, cuda_same<T> v) { *p = v; }
template <class T> CUDA_SMALL void __stcs(T *p, cuda_same<T> v) { *p = v; }
template <class T> CUDA_SMALL void __stwt(T *p, cuda_same<T> v) { *p = v; }

CUDA_OWN void *cuda_memcpy(void *to, const void *from, size_t n) {
  cuda_touch(from, (unsigned)n, 0);
  cuda_touch(to, (unsigned)n, 1);
  return __builtin_memcpy(to, from, n);
}
CUDA_OWN void *cuda_memset(void *to, int value, size_t n) {
  cuda_touch(to, (unsigned)n, 1);
  return __builtin_memset(to, value, n);
}
#define memcpy cuda_memcpy
#define memset cuda_memset

// One thread runs at a time: an atomic is a check and the plain operation.
#define CUDA_ATOMIC(name, expression)                       \
  template <class T>                                        \
  CUDA_OWN T name(T *p, cuda_same<T> v) {                   \
    cuda_atomic(p, sizeof *p);                              \
    T old = *p;                                             \
    *p = expression;                                        \
    return old;                                             \
  }                                                         \
  template <class T>                                        \
  CUDA_SMALL T name##_block(T *p, cuda_same<T> v) {         \
    return name(p, v);                                      \
  }                                                         \
  template <class T>                                        \
  CUDA_SMALL T name##_system(T *p, cuda_same<T> v) {        \
    return name(p, v);                                      \
  }
CUDA_ATOMIC(atomicAdd, (T)(old + v))
CUDA_ATOMIC(atomicSub, (T)(old - v))
CUDA_ATOMIC(atomicExch, v)
CUDA_ATOMIC(atomicMin, v < old ? v : old)
CUDA_ATOMIC(atomicMax, old < v ? v : old)
CUDA_ATOMIC(atomicAnd, old &v)
CUDA_ATOMIC(atomicOr, old | v)
CUDA_ATOMIC(atomicXor, old ^ v)
CUDA_ATOMIC(atomicInc, old >= v ? 0 : old + 1)
CUDA_ATOMIC(atomicDec, old == 0 || old > v ? v : old - 1)
template <class T>
CUDA_OWN T atomicCAS(T *p, cuda_same<T> compare, cuda_same<T> v) {
  cuda_atomic(p, sizeof *p);
  T old = *p;
  *p = old == compare ? v : old;
  return old;
}

// ---- mathematics ----

extern "C" {
#define CUDA_MATH_1(name)          \
  double name(double) noexcept;    \
  float name##f(float) noexcept;
#define CUDA_MATH_2(name)                 \
  double name(double, double) noexcept;   \
  float name##f(float, float) noexcept;
CUDA_MATH_1(fabs) CUDA_MATH_1(sqrt) CUDA_MATH_1(cbrt) CUDA_MATH_1(exp) CUDA_MATH_1(exp2) CUDA_MATH_1(expm1) CUDA_MATH_1(log) CUDA_MATH_1(log2)
CUDA_MATH_1(log10) CUDA_MATH_1(log1p) CUDA_MATH_1(sin) CUDA_MATH_1(cos) CUDA_MATH_1(tan) CUDA_MATH_1(asin) CUDA_MATH_1(acos) CUDA_MATH_1(atan)
CUDA_MATH_1(sinh) CUDA_MATH_1(cosh) CUDA_MATH_1(tanh) CUDA_MATH_1(asinh) CUDA_MATH_1(acosh) CUDA_MATH_1(atanh) CUDA_MATH_1(erf) CUDA_MATH_1(erfc)
CUDA_MATH_1(tgamma) CUDA_MATH_1(lgamma) CUDA_MATH_1(floor) CUDA_MATH_1(ceil) CUDA_MATH_1(trunc) CUDA_MATH_1(round) CUDA_MATH_1(rint)
CUDA_MATH_1(nearbyint) CUDA_MATH_1(logb)
CUDA_MATH_2(pow) CUDA_MATH_2(fmod) CUDA_MATH_2(remainder) CUDA_MATH_2(atan2) CUDA_MATH_2(hypot) CUDA_MATH_2(copysign) CUDA_MATH_2(nextafter)
CUDA_MATH_2(fmin) CUDA_MATH_2(fmax) CUDA_MATH_2(fdim)
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
double ldexp(double, int) noexcept;
float ldexpf(float, int) noexcept;
double scalbn(double, int) noexcept;
float scalbnf(float, int) noexcept;
double frexp(double, int *) noexcept;
float frexpf(float, int *) noexcept;
double modf(double, double *) noexcept;
float modff(float, float *) noexcept;
int ilogb(double) noexcept;
int ilogbf(float) noexcept;
long lrint(double) noexcept;
long lrintf(float) noexcept;
long long llrint(double) noexcept;
long long llrintf(float) noexcept;
int abs(int) noexcept;
}
// C++ has these by overloading, too.
#define CUDA_OVERLOAD_1(name) CUDA_SMALL float name(float x) { return name##f(x); }
#define CUDA_OVERLOAD_2(name) CUDA_SMALL float name(float x, float y) { return name##f(x, y); }
CUDA_OVERLOAD_1(fabs) CUDA_OVERLOAD_1(sqrt) CUDA_OVERLOAD_1(cbrt) CUDA_OVERLOAD_1(exp) CUDA_OVERLOAD_1(exp2) CUDA_OVERLOAD_1(expm1)
CUDA_OVERLOAD_1(log) CUDA_OVERLOAD_1(log2) CUDA_OVERLOAD_1(log10) CUDA_OVERLOAD_1(log1p) CUDA_OVERLOAD_1(sin) CUDA_OVERLOAD_1(cos)
CUDA_OVERLOAD_1(tan) CUDA_OVERLOAD_1(asin) CUDA_OVERLOAD_1(acos) CUDA_OVERLOAD_1(atan) CUDA_OVERLOAD_1(sinh) CUDA_OVERLOAD_1(cosh)
CUDA_OVERLOAD_1(tanh) CUDA_OVERLOAD_1(asinh) CUDA_OVERLOAD_1(acosh) CUDA_OVERLOAD_1(atanh) CUDA_OVERLOAD_1(erf) CUDA_OVERLOAD_1(erfc)
CUDA_OVERLOAD_1(tgamma) CUDA_OVERLOAD_1(lgamma) CUDA_OVERLOAD_1(floor) CUDA_OVERLOAD_1(ceil) CUDA_OVERLOAD_1(trunc) CUDA_OVERLOAD_1(round)
CUDA_OVERLOAD_1(rint) CUDA_OVERLOAD_1(nearbyint)
CUDA_OVERLOAD_2(pow) CUDA_OVERLOAD_2(fmod) CUDA_OVERLOAD_2(atan2) CUDA_OVERLOAD_2(hypot) CUDA_OVERLOAD_2(copysign) CUDA_OVERLOAD_2(fmin)
CUDA_OVERLOAD_2(fmax)
CUDA_SMALL float fma(float x, float y, float z) { return fmaf(x, y, z); }
CUDA_SMALL float abs(float x) { return fabsf(x); }
CUDA_SMALL double abs(double x) { return fabs(x); }
CUDA_SMALL long long abs(long long x) { return x < 0 ? -x : x; }
CUDA_SMALL float rsqrtf(float x) { return 1.0f / sqrtf(x); }
CUDA_SMALL double rsqrt(double x) { return 1.0 / sqrt(x); }
CUDA_SMALL float exp10f(float x) { return powf(10.0f, x); }
CUDA_SMALL double exp10(double x) { return pow(10.0, x); }
CUDA_SMALL void sincosf(float x, float *s, float *c) { *s = sinf(x), *c = cosf(x); }
CUDA_SMALL void sincos(double x, double *s, double *c) { *s = sin(x), *c = cos(x); }
CUDA_SMALL float ldexp(float x, int e) { return ldexpf(x, e); } /* so that ldexp(1, e) is refused, as by NVRTC */
CUDA_SMALL bool isnan(double x) { return __builtin_isnan(x); }
CUDA_SMALL bool isnan(float x) { return __builtin_isnan(x); }
CUDA_SMALL bool isinf(double x) { return __builtin_isinf(x); }
CUDA_SMALL bool isinf(float x) { return __builtin_isinf(x); }
CUDA_SMALL bool isfinite(double x) { return __builtin_isfinite(x); }
CUDA_SMALL bool isfinite(float x) { return __builtin_isfinite(x); }
CUDA_SMALL bool signbit(double x) { return __builtin_signbit(x); }
CUDA_SMALL bool signbit(float x) { return __builtin_signbit(x); }
#define CUDA_MIN_MAX(type)                                           \
  CUDA_SMALL type min(type x, type y) { return y < x ? y : x; }      \
  CUDA_SMALL type max(type x, type y) { return x < y ? y : x; }
CUDA_MIN_MAX(int) CUDA_MIN_MAX(unsigned) CUDA_MIN_MAX(long) CUDA_MIN_MAX(unsigned long) CUDA_MIN_MAX(long long) CUDA_MIN_MAX(unsigned long long)
CUDA_SMALL float min(float x, float y) { return fminf(x, y); }
CUDA_SMALL float max(float x, float y) { return fmaxf(x, y); }
CUDA_SMALL double min(double x, double y) { return fmin(x, y); }
CUDA_SMALL double max(double x, double y) { return fmax(x, y); }

// ---- intrinsics ----

CUDA_SMALL float __fadd_rn(float x, float y) { return x + y; }
CUDA_SMALL float __fsub_rn(float x, float y) { return x - y; }
CUDA_SMALL float __fmul_rn(float x, float y) { return x * y; }
CUDA_SMALL float __fdiv_rn(float x, float y) { return x / y; }
CUDA_SMALL float __fsqrt_rn(float x) { return sqrtf(x); }
CUDA_SMALL float __frcp_rn(float x) { return 1.0f / x; }
CUDA_SMALL float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
CUDA_SMALL double __dadd_rn(double x, double y) { return x + y; }
CUDA_SMALL double __dsub_rn(double x, double y) { return x - y; }
CUDA_SMALL double __dmul_rn(double x, double y) { return x * y; }
CUDA_SMALL double __ddiv_rn(double x, double y) { return x / y; }
CUDA_SMALL double __dsqrt_rn(double x) { return sqrt(x); }
CUDA_SMALL double __drcp_rn(double x) { return 1.0 / x; }
CUDA_SMALL double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
CUDA_SMALL float __expf(float x) { return expf(x); }
CUDA_SMALL float __logf(float x) { return logf(x); }
CUDA_SMALL float __log2f(float x) { return log2f(x); }
CUDA_SMALL float __sinf(float x) { return sinf(x); }
CUDA_SMALL float __cosf(float x) { return cosf(x); }
CUDA_SMALL float __powf(float x, float y) { return powf(x, y); }
CUDA_SMALL float __fdividef(float x, float y) { return x / y; }
CUDA_SMALL float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1.0f : 0.0f; }
CUDA_SMALL int __float_as_int(float x) { return cuda_from_bits<int>(cuda_to_bits(x)); }
CUDA_SMALL unsigned __float_as_uint(float x) { return cuda_from_bits<unsigned>(cuda_to_bits(x)); }
CUDA_SMALL float __int_as_float(int x) { return cuda_from_bits<float>(cuda_to_bits(x)); }
CUDA_SMALL float __uint_as_float(unsigned x) { return cuda_from_bits<float>(cuda_to_bits(x)); }
CUDA_SMALL long long __double_as_longlong(double x) { return cuda_from_bits<long long>(cuda_to_bits(x)); }
CUDA_SMALL double __longlong_as_double(long long x) { return cuda_from_bits<double>(cuda_to_bits(x)); }
CUDA_SMALL int __double2hiint(double x) { return (int)(cuda_to_bits(x) >> 32); }
CUDA_SMALL int __double2loint(double x) { return (int)cuda_to_bits(x); }
CUDA_SMALL double __hiloint2double(int h, int l) {
  return cuda_from_bits<double>((unsigned long long)(unsigned)h << 32 | (unsigned)l);
}

// Conversions round as their name says and saturate; NaN becomes 0.
template <class I>
CUDA_SMALL I cuda_saturated(double x) {
  const I least = I(-1) < I(0) ? I(1ull << (8 * sizeof(I) - 1)) : I(0), most = I(~least);
  if (x != x) return 0;
  if (x <= (double)least) return least;
  return x >= (double)most ? most : (I)x;
}
#define CUDA_CONVERT(from, name, to, result)                                                        \
  CUDA_SMALL result __##name##2##to##_rn(from x) { return cuda_saturated<result>(rint((double)x)); }  \
  CUDA_SMALL result __##name##2##to##_rz(from x) { return cuda_saturated<result>(trunc((double)x)); } \
  CUDA_SMALL result __##name##2##to##_rd(from x) { return cuda_saturated<result>(floor((double)x)); } \
  CUDA_SMALL result __##name##2##to##_ru(from x) { return cuda_saturated<result>(ceil((double)x)); }
CUDA_CONVERT(float, float, int, int)
CUDA_CONVERT(float, float, uint, unsigned)
CUDA_CONVERT(float, float, ll, long long)
CUDA_CONVERT(float, float, ull, unsigned long long)
CUDA_CONVERT(double, double, int, int)
CUDA_CONVERT(double, double, uint, unsigned)
CUDA_CONVERT(double, double, ll, long long)
CUDA_CONVERT(double, double, ull, unsigned long long)
CUDA_SMALL float __int2float_rn(int x) { return (float)x; }
CUDA_SMALL float __uint2float_rn(unsigned x) { return (float)x; }
CUDA_SMALL float __ll2float_rn(long long x) { return (float)x; }
CUDA_SMALL float __ull2float_rn(unsigned long long x) { return (float)x; }
CUDA_SMALL float __double2float_rn(double x) { return (float)x; }
CUDA_SMALL double __int2double_rn(int x) { return x; }
CUDA_SMALL double __uint2double_rn(unsigned x) { return x; }
CUDA_SMALL double __ll2double_rn(long long x) { return (double)x; }
CUDA_SMALL double __ull2double_rn(unsigned long long x) { return (double)x; }

CUDA_SMALL int __popc(unsigned x) { return __builtin_popcount(x); }
CUDA_SMALL int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
CUDA_SMALL int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
CUDA_SMALL int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
CUDA_SMALL int __ffs(int x) { return __builtin_ffs(x); }
CUDA_SMALL int __ffsll(long long x) { return __builtin_ffsll(x); }
CUDA_SMALL unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; i++) r = r << 1 | (x >> i & 1);
  return r;
}
CUDA_SMALL unsigned long long __brevll(unsigned long long x) { return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32)); }
CUDA_SMALL unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  unsigned long long both = (unsigned long long)y << 32 | x;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) r |= (unsigned)(both >> (8 * (s >> (4 * i) & 7)) & 0xff) << (8 * i);
  return r;
}
CUDA_SMALL unsigned __funnelshift_l(unsigned low, unsigned high, unsigned n) {
  return (unsigned)(((unsigned long long)high << 32 | low) << (n & 31) >> 32);
}
CUDA_SMALL unsigned __funnelshift_r(unsigned low, unsigned high, unsigned n) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (n & 31));
}
CUDA_SMALL int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
CUDA_SMALL unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
CUDA_SMALL long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
CUDA_SMALL unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
CUDA_SMALL int __mul24(int x, int y) { return (int)((unsigned)(x << 8 >> 8) * (unsigned)(y << 8 >> 8)); }

// ---- kernels by name ----

struct cuda_kernel {
  const char *name;
  void (*call)(void **parameters);
  const unsigned *sizes;
  unsigned n, most_threads;
};
struct cuda_call_in_order {
  template <class... A>
  __attribute__((no_sanitize("thread", "undefined"))) cuda_call_in_order(void (*f)(A...), A... a) {
    f(a...);
  }
};
template <class... A>
CUDA_OWN void cuda_invoke(void (*f)(A...), void **p) {
  int i = 0;
  cuda_call_in_order{f, *(A *)p[i++]...};
  (void)i;
}
template <class... A>
struct cuda_parameters {
  static constexpr unsigned sizes[sizeof...(A) + 1] = {sizeof(A)...};
};
template <class... A>
constexpr unsigned cuda_count(void (*)(A...)) {
  return sizeof...(A);
}
template <class... A>
constexpr const unsigned *cuda_sizes(void (*)(A...)) {
  return cuda_parameters<A...>::sizes;
}
template <class T>
constexpr unsigned cuda_first(T first, ...) {
  return (unsigned)first;
}
#define CUDA_KERNELS_BEGIN extern "C" __attribute__((visibility("default"), used)) const cuda_kernel cuda_image[] = {
#define CUDA_KERNEL(name, ...) \
  {#name, [](void **p) { cuda_invoke(name, p); }, cuda_sizes(name), cuda_count(name), cuda_first(__VA_ARGS__)},
#define CUDA_KERNELS_END \
  {}                     \
  }                      \
  ;
