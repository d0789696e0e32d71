/* Lowering, inside. */
#ifndef XLAC_CPU_NATIVE_LOWER_INSIDE_H
#define XLAC_CPU_NATIVE_LOWER_INSIDE_H

#include "body.h"

typedef enum nat_type_kind {
  NAT_NO_TYPE,
  NAT_PRED,
  NAT_SIGNED,
  NAT_UNSIGNED,
  NAT_COMPLEX, /* of two f32, in lanes of 8 bytes, or of two f64, whose parts have lanes of their own: lower_complex.c
                */
  NAT_CODE,    /* floats of 8 bits and fewer, as they are in memory, in s32 lanes */
  NAT_FLOAT,
  NAT_BF16, /* these two: f32 lanes */
  NAT_F16
} nat_type_kind;
typedef struct nat_type {
  uint8_t kind, width, bytes; /* of a lane; of an element in memory */
  uint8_t of;                 /* NAT_CODE: the base_dtype */
  uint8_t bits;               /* of integers of fewer than 8, which fill their byte; else 0 */
} nat_type;
/* Width 0: native code has none. */
nat_type nat_lane_type_of(base_dtype t);
/* The same, but no type of fewer than 16 bits that is a float, or of fewer than 8, and no complex one. */
nat_type nat_type_of(base_dtype t);
static inline bool nat_is_float(nat_type t) {
  return t.kind >= NAT_FLOAT;
}

static inline bool nat_is_wide(nat_type t) {
  return t.bytes == 16;
}

/* One kernel on its way. values: by the kernel's, those of the body, which fails where native code has no way. */
typedef struct nat_lower_run {
  nat_body *b;
  uint32_t *values;
} nat_lower_run;

/* --- cycle.c --- */
/* A value of a cycle that is what the pattern says. */
uint32_t nat_lower_cycled(nat_lower_run *r, const kernel_value *v, const nat_pattern *p);

/* --- lower_op.c --- */
/* The widest lanes that the op needs inside, 0 where it has no way here. */
uint32_t nat_op_width(const kernel *k, const kernel_value *v);
/* The widest that a shift by lanes needs inside; 1 of other ops. */
uint32_t nat_shift_width(const nat_target *target, const kernel *k, const kernel_value *v);
/* The s32 as a number of another type. */
uint32_t nat_from_s32(nat_body *b, uint32_t x, nat_type to);
/* Of two values of type t. */
uint32_t nat_combine(nat_body *b, scalar_code by, nat_type t, uint32_t x, uint32_t y);
/* The op's value; where it has none, the body fails. */
uint32_t nat_lower_op(nat_lower_run *r, const kernel_value *v);

/* The larger or the lesser of two integers. */
uint32_t nat_extreme(nat_body *b, nat_type t, uint32_t x, uint32_t y, bool most);

/* --- lower.c --- */
/* Whether all types are those of lanes; and the widest. counts: places and edges are numbers. */
bool nat_types_fit(const kernel *k, const nat_target *target, bool counts, uint32_t *widest);
uint32_t nat_lower_constant(nat_lower_run *r, const kernel_value *v);
/* Memory's form to that of lanes, and back: preds are bytes 0 and 1. */
uint32_t nat_unpack(nat_body *b, uint32_t x, nat_type t);
uint32_t nat_pack(nat_body *b, uint32_t x, nat_type t);
uint32_t nat_stream_of(nat_body *b, const nat_stream *s);

/* --- lower_read.c: what loads and edges become --- */
uint32_t nat_lower_load(nat_lower_run *r, const kernel_value *v);
uint32_t nat_lower_count(nat_lower_run *r, const kernel_value *v);
uint32_t nat_lower_pick(nat_lower_run *r, const kernel_value *v);
/* Whether what is read lane by lane is read within arrays where a vector has fewer lanes than all. */
bool nat_reads_fit(const nat_body *b);

/* --- lower_near.c --- */
/* The lanes of load v, whose places come to `at`, of which `lead` is the first one's part; NAT_NONE where they are not
 * known to be near each other. s: v's stream. */
uint32_t nat_lower_near(nat_body *b, const kernel_value *v, nat_stream s, uint32_t lead, uint32_t at);

/* --- lower_fold.c --- */
/* A store that combines, given its value, by the body's way. */
void nat_lower_fold(nat_body *b, const kernel_store *s, uint32_t value);
/* Whether the lanes of all that is combined fit the room of a row, CPU_NATIVE_FOLD_BYTES. */
bool nat_folds_fit(const nat_body *b);

#endif
