/* The loops base_convert is made of: each converts n elements. dst and src may be unaligned but not overlap.
 * The native types are those of C: pred and the integers of 8 to 64 bits, f32, f64. Every other type has a native one
 * next to it that holds its values: f32 for the narrow floats, s8 and u8 for the integers of 1 to 4 bits, the part for
 * complex. */
#ifndef XLAC_BASE_NUMBER_CONVERT_LOOPS_H
#define XLAC_BASE_NUMBER_CONVERT_LOOPS_H

#include "../dtype.h"

typedef void (*base_loop)(void *restrict dst, const void *restrict src, size_t n);

/* Element types at any address, whatever else lives there. */
#define BASE_LOOSE __attribute__((aligned(1), may_alias))
typedef uint8_t BASE_LOOSE base_loose_u8;
typedef int8_t BASE_LOOSE base_loose_s8;
typedef uint16_t BASE_LOOSE base_loose_u16;
typedef int16_t BASE_LOOSE base_loose_s16;
typedef uint32_t BASE_LOOSE base_loose_u32;
typedef int32_t BASE_LOOSE base_loose_s32;
typedef uint64_t BASE_LOOSE base_loose_u64;
typedef int64_t BASE_LOOSE base_loose_s64;
typedef float BASE_LOOSE base_loose_f32;
typedef double BASE_LOOSE base_loose_f64;

base_dtype base_native_type(base_dtype t);
/* Between native types, by value. */
base_loop base_native_loop(base_dtype to, base_dtype from);
/* From t to its native type, and back; NULL for native types. `clamp`: an integer too wide for t gives t's nearest
 * value, not its low bits. */
base_loop base_widen_loop(base_dtype t);
base_loop base_narrow_loop(base_dtype t, bool clamp);
/* From a native type to f32, rounded to odd where f32 can't hold it, so that narrowing the result rounds but once. NULL
 * where f32 always can. */
base_loop base_odd_loop(base_dtype from);

#endif
