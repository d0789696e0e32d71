/* Internal to the IR: the tables behind interned types, and layout equality. */
#ifndef XLAC_IR_TYPES_TYPE_TABLE_H
#define XLAC_IR_TYPES_TYPE_TABLE_H

#include "type.h"

/* Of an open-addressing set; the hash is kept, so that growing and most misses look at no type. */
typedef struct ir_pointer_slot {
  uint32_t hash;
  const void *p; /* NULL: empty */
} ir_pointer_slot;

typedef struct ir_pointer_set {
  ir_pointer_slot *slots;
  uint32_t n, cap; /* cap is a power of two or 0 */
} ir_pointer_set;

/* A module's; defaults: row-major layouts by rank, made when first asked for. */
struct ir_type_table {
  ir_pointer_set types, layouts;
  const ir_layout *defaults[IR_MAX_RANK + 1];
};

/* Nonzero when out of memory. */
int ir_type_table_create(ir_module *m);
/* The tables alone: types live in the arena. */
void ir_type_table_destroy(ir_module *m);
/* The interned type equal to `key`, whose parts are copied when it is new. NULL when out of memory. */
const ir_type *ir_type_intern(ir_module *m, ir_type *key);
/* Sets *count (0 when unbounded), or says why these dims can't be. */
int ir_count_elements(base_dtype dtype, uint32_t rank, const int64_t *dims, int64_t *count, xlac_error *err);
/* What values of a storage type of at most 32 bits go from and to. */
void ir_own_range(base_dtype storage, int64_t *low, int64_t *high);
/* A range that a storage type may be restricted to; a scale, which is positive and among the numbers of the expressed
 * type. */
XLAC_MUST_USE int ir_check_range(base_dtype storage, int64_t low, int64_t high, xlac_error *err);
XLAC_MUST_USE int ir_check_scale(base_dtype expressed, double scale, xlac_error *err);
/* NULL has the hash 0; a copy lives in m's arena. */
uint64_t ir_quant_hash(const ir_quant *q);
const ir_quant *ir_quant_copy(ir_module *m, const ir_quant *q);
/* By value, across modules too (physical shapes by pointer). NULL equals NULL only. */
bool ir_same_layout(const ir_layout *a, const ir_layout *b);

#endif
