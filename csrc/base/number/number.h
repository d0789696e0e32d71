/* Text to numbers and back: fast and correctly rounded, independent of the C locale. Thread-safe. */
#ifndef XLAC_BASE_NUMBER_NUMBER_H
#define XLAC_BASE_NUMBER_NUMBER_H

#include "../dtype.h"
#include "../str.h"

/* Reads decimal "-12.5e3" (no leading '+'; digits required before '.', but for "-.5", which XLA reads) from [p, end).
 * Returns the byte after the number, or NULL when there is none. *out is the correctly rounded f64 (overflow gives
 * infinity, underflow 0). "inf" and "nan" are the caller's business. */
const char *base_parse_f64(const char *p, const char *end, double *out);
/* The same, correctly rounded straight to f32: no double rounding. */
const char *base_parse_f32(const char *p, const char *end, float *out);
/* Signed decimal; NULL when there is no number or it does not fit in 64 bits. A leading '-' is accepted by both; the
 * unsigned reader wraps negative values (XLA accepts -1 as u64). */
const char *base_parse_i64(const char *p, const char *end, int64_t *out);
const char *base_parse_u64(const char *p, const char *end, uint64_t *out);

/* Prints v of float type t as XLA does: f32 and f64 with C's "%.<digits10>g" (6, 15) if that reads back as the same
 * value, else "%.<max_digits10>g" (9, 17); narrower types always with max_digits10 digits (bf16 4, f16 5, f8e4m3 3,
 * f8e5m2 2); inf, -inf, -0 as "-0"; NaN as "nan" or "-nan", with its payload where there is one that is not the
 * usual: "nan(0x1)". Bits are the raw bits of one element. Returns the length (< 32), not terminated. out is not
 * terminated, so that printers append to it what follows. */
size_t base_print_float(base_dtype t, uint64_t bits, char out[32]);

#endif
