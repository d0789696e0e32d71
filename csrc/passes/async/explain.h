/* What explain("async") says, as data. */
#ifndef XLAC_PASSES_ASYNC_EXPLAIN_H
#define XLAC_PASSES_ASYNC_EXPLAIN_H

#include "model.h"

/* {"scheduled": bool, "computations": [{"name", "ops", "makespan", "work", "exposed", "chains": [...]}]} with every
 * computation that has chains, callees first. Times are nanoseconds of the model. The module is verified. */
XLAC_MUST_USE int async_put_json(base_text *out, ir_module *m, const async_model *model, xlac_error *err);

#endif
