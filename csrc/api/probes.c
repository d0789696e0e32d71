/* Probes: public functions over the interpreter's own. */
#include "api.h"

static interp_probes *probes_in(xlac_probes *p) {
  return (interp_probes *)p;
}

int xlac_probes_create(xlac_probes **out, xlac_error *err) {
  interp_probes *p = NULL;
  TRY(interp_probes_create(&p, base_alloc_libc, err));
  *out = (xlac_probes *)p;
  return 0;
}

void xlac_probes_destroy(xlac_probes *p) {
  interp_probes_destroy(probes_in(p));
}

uint32_t xlac_probes_count(xlac_probes *p) {
  return interp_probes_count(probes_in(p));
}

int xlac_probes_get(xlac_probes *p, uint32_t i, const char **id, xlac_value **value, xlac_error *err) {
  uint32_t n = interp_probes_count(probes_in(p));
  if (i >= n) return base_fail(err, XLAC_E_BAD_ARGUMENT, "there is no number %u among %u probed values", i, n);
  *value = api_value_out(interp_retain(interp_probes_get(probes_in(p), i, id)));
  return 0;
}
