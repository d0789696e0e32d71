/* Constant folding in MLIR form: what the passes that fold share. A folded program gives the same bits, since the
 * values come from the reference interpreter. */
#ifndef XLAC_PASSES_REWRITE_FOLD_H
#define XLAC_PASSES_REWRITE_FOLD_H

#include "rewrite.h"

/* What may be folded; of a pass's options. max_elements bounds what is computed and stored at compile time. */
typedef struct opt_folder {
  bool shapes_only; /* what computations of shapes are made of, on integers */
  bool no_floats;   /* nothing is computed on floats */
  bool assume_pure; /* calls and unknown ops have no effects unless they say so */
  int64_t max_elements;
} opt_folder;

/* Folds op if it may, on constants or by its type alone. */
XLAC_MUST_USE int opt_fold_op(opt_rewriter *rw, const opt_folder *f, ir_op *op, bool *changed);

#endif
