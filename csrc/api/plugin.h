/* What the PJRT plugin asks of a program that xlac.h has no function for. */
#ifndef XLAC_API_PLUGIN_H
#define XLAC_API_PLUGIN_H

#include "../base/export.h"
#include "../include/xlac.h"

/* How JAX wants an argument or result of StableHLO's main function to lie. NULL where nothing is said of it, and in
 * HLO; lists and texts are borrowed until the module is edited. */
typedef struct api_placement {
  const char *layout_mode; /* "default", "auto", "{0,1}": mhlo.layout_mode */
  const char *memory_kind; /* "pinned_host": mhlo.memory_kind */
  uint32_t rank;           /* how many there are in transpose */
  const int64_t
      *transpose; /* of a result that transposes another value: the permutation, as stablehlo.transpose has it */
} api_placement;
/* False past the end. Any thread, as xlac_module_alias. */
BASE_EXPORT bool api_module_placement(xlac_module *m, bool result, uint32_t index, api_placement *out);
/* Whether a custom call means something without a registration: ours, and LAPACK's, for which a run may still lack an
 * OpenBLAS. Any thread. */
BASE_EXPORT bool api_knows_custom_call(const char *target);

/* How the operand of a custom call is cut once shardings have spread, as XLA writes it ("{devices=[2,1]<=[2]}", ""
 * where it is whole); with the call's backend_config, which may have any bytes. Nonzero stops. */
typedef int api_inspection(void *ctx, const char *config, size_t n, const char *sharding, xlac_error *err);
/* Calls `fn`, which may be NULL, for each call of `target` in StableHLO, and takes those that nobody reads out of m. */
BASE_EXPORT int api_module_inspect(xlac_module *m, const char *target, api_inspection *fn, void *ctx, xlac_error *err);

#endif
