/* Literals: constant values. Immutable once an op holds them. */
#ifndef XLAC_IR_TYPES_LITERAL_H
#define XLAC_IR_TYPES_LITERAL_H

#include "type.h"

/* A tensor's elements row-major in logical order whatever the layout, base_dtype_bytes each, aligned to 16; or a tuple.
 */
typedef struct ir_literal ir_literal;
struct ir_literal {
  const ir_type *type;
  void *data;                        /* NULL for tuples, elided ones, and where count is 0 */
  const ir_literal *const *elements; /* type->n_elements of them, tuples only */
  bool elided; /* written as {...}: the values are not known. XLA invents some; xlac keeps it elided, and running it is
                  an error */
};

/* data is for the caller to fill (not zeroed). NULL when out of memory. */
ir_literal *ir_literal_new(ir_module *m, const ir_type *type);
/* One literal for each element of the tuple type, shared; m's. */
ir_literal *ir_literal_tuple(ir_module *m, const ir_type *type, const ir_literal *const *elements);
/* A copy in m of a literal of any module, type included. NULL when out of memory. */
const ir_literal *ir_literal_import(ir_module *m, const ir_literal *from);
/* By bits and without layouts, across modules too; hashes agree with it. */
bool ir_literal_equal(const ir_literal *a, const ir_literal *b);
uint64_t ir_literal_hash(const ir_literal *a);

#endif
