/* The registry of passes, above all passes, and the runs of several as a pipeline. One thread a module; the table is
 * constant. A pass is one row in passes.def: its name, its function, the form of module that it works on, its options
 * and what documentation says of it. */
#ifndef XLAC_PIPELINE_PIPELINE_H
#define XLAC_PIPELINE_PIPELINE_H

#include "../passes/pass.h"

/* All passes, from passes.def; ends with a NULL name. */
extern const opt_pass_info pipeline_passes[];
/* The pass of that name for modules of `form`; where there is none, one of that name for the other form, else NULL. */
const opt_pass_info *pipeline_pass_find(const char *name, size_t n, uint8_t form);

typedef struct opt_pipeline_options {
  /* Called after each pass with its name and place; nonzero stops the run with that status (and err filled). May be
   * NULL. */
  int (*after)(void *ctx, const char *pass, uint32_t index, ir_module *m, xlac_error *err);
  void *ctx;
  bool verify_each; /* verify after every pass */
  bool valid;       /* for passes that run others: the module is known to be valid, so it isn't verified before */
} opt_pipeline_options;

/* Verifies the module unless it is verified, then runs the passes on it in order. The whole text is checked first, also
 * that every pass works on the form the module has. Syntax: "a,b{opt=1 other=x}", "builtin.module(a,func.func(b))".
 * options may be NULL. */
XLAC_MUST_USE int pipeline_run_text(ir_module *m, const char *text, size_t n, const opt_pipeline_options *options,
                                    xlac_error *err);

#endif
