/* Plans of one program for other layouts of its arguments. */
#ifndef XLAC_API_VARIANT_H
#define XLAC_API_VARIANT_H

#include "../plan/plan.h"
#include "../runtime/device.h"

/* Thread-safe. Owned by its executable, freed before it. */
typedef struct api_variants api_variants;

XLAC_MUST_USE int api_variants_create(api_variants **out, xlac_error *err);
void api_variants_free(api_variants *all);
/* What runs with these arguments, borrowed from exe. packed, by leaf: it must be dense, and is not. */
const rt_executable *api_variant_of(const xlac_executable *exe, const xlac_argument *arguments, bool *packed);

#endif
