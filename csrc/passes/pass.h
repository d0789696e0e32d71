/* Passes and the pipelines that run them.
 *
 * A pass edits a module in place; who wants the old one clones it first. It may rely on the module being valid, and
 * leaves it valid: use lists, control edges, aliases, donors and (where the module is scheduled) the order of ops
 * included. Every edit clears module->verified. A pass that fails has left the module in some valid state, or out of
 * memory. */
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

/* All passes, from passes.def; ends with a NULL name. */
extern const opt_pass_info opt_pass_table[];
/* The pass of that name for modules of `form`; where there is none, one of that name for the other form, else NULL. */
const opt_pass_info *opt_pass_find(const char *name, size_t n, uint8_t form);

typedef struct opt_pipeline_options {
  /* Called after each pass with its name and place; nonzero stops the run with that status (and err filled). May be
   * NULL. */
  int (*after)(void *ctx, const char *pass, uint32_t index, ir_module *m, xlac_error *err);
  void *ctx;
  bool verify_each; /* verify after every pass */
} opt_pipeline_options;

/* Verifies the module unless it is verified, then runs the passes on it in order. The whole text is checked first, also
 * that every pass works on the form the module has. Syntax: "a,b{opt=1 other=x}", "builtin.module(a,func.func(b))".
 * options may be NULL. */
XLAC_MUST_USE int opt_run_pipeline(ir_module *m, const char *text, size_t n, const opt_pipeline_options *options,
                                   xlac_error *err);

#endif
