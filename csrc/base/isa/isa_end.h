/* No include guard: the end of what isa_*_begin.h begins. */
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
