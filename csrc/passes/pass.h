/* What a pass is. The table of all passes, and what runs them, is pipeline/pipeline.h.
 *
 * A pass edits a module in place; who wants the old one clones it first. It may rely on the module being valid, and
 * leaves it valid: use lists, control edges, aliases, donors and (where the module is scheduled) the order of ops
 * included. Passes edit through ir.h alone, which counts edits. A pass that fails has left the module in some valid
 * state, or out of memory. */
#ifndef XLAC_PASSES_PASS_H
#define XLAC_PASSES_PASS_H

#include "../ir/ir.h"

typedef enum opt_option_kind { OPT_BOOL, OPT_INT, OPT_TEXT } opt_option_kind;

typedef struct opt_option_info {
  const char *name; /* NULL ends the list */
  uint8_t kind;     /* opt_option_kind */
  int64_t otherwise, min, max;
  const char *doc;
} opt_option_info;

typedef struct opt_args opt_args;
typedef int opt_pass_fn(ir_module *m, const opt_args *args, xlac_error *err);

typedef struct opt_pass_info {
  const char *name;
  opt_pass_fn *fn;
  uint8_t form; /* ir_form: what it works on */
  const opt_option_info *options;
  const char *doc;
} opt_pass_info;

enum { OPT_MAX_OPTIONS = 12 };

/* A pass with a value for each of its options. */
struct opt_args {
  const opt_pass_info *pass;
  int64_t values[OPT_MAX_OPTIONS];
  base_slice texts[OPT_MAX_OPTIONS]; /* OPT_TEXT: borrowed from the pipeline's text */
};

/* The value of an option that the pass declares in passes.def. */
int64_t opt_get(const opt_args *args, const char *name);
base_slice opt_get_text(const opt_args *args, const char *name);

#endif
