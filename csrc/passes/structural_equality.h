/* Structural equality of ops and computations: what cse merges. Names, metadata and origins don't count. */
#ifndef XLAC_PASSES_STRUCTURAL_EQUALITY_H
#define XLAC_PASSES_STRUCTURAL_EQUALITY_H

#include "effects.h"

/* Equal computations have one class. Filled callees first. */
typedef struct same_classes {
  base_map by_hash;       /* hash -> computation of the newest class with it */
  ir_computation **other; /* by computation id: an older class of the same hash */
  uint32_t *class_of;     /* by computation id: the id of the class's first computation */
  uint32_t *number;       /* by op id: place in its computation's order */
  base_arena *arena;
} same_classes;

XLAC_MUST_USE bool same_classes_make(same_classes *s, const ir_module *m, base_arena *arena);
void same_classes_free(same_classes *s);
/* Gives c its class; all that it calls have theirs. c must not change after. */
XLAC_MUST_USE bool same_classify(same_classes *s, ir_computation *c);

/* Opcode, types, attributes, callees, literals and operands; operands are the same if they are the same op, or with
 * `by_place` if they are in the same place of their computations. */
uint64_t same_hash(const same_classes *s, const ir_op *op, bool by_place);
bool same_ops(const same_classes *s, const ir_op *a, const ir_op *b, bool by_place);

#endif
