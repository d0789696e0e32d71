/* Optionals: variants that hold values, or none. */
#include "../run.h"

enum { TFS_MOST_NESTED = 64 }; /* optionals within optionals */

/* OptionalNone, OptionalFromValue (arg 1): also of no values, hence one place more than needed. */
int tfs_host_optional_new(tfs_call *c) {
  tfs_object *o = tfs_object_new(c->alloc, TFS_OPTIONAL);
  bool holds = c->unit->host->arg == 1;
  if (!o) return tfs_oom(c);
  int status = 0;
  if (holds) {
    o->parts = base_malloc(c->alloc, (c->n_in + (size_t)1) * sizeof *o->parts);
    status = o->parts ? 0 : tfs_oom(c);
    o->nested = 1;
  }
  for (uint32_t i = 0; holds && i < c->n_in && status == 0; i++) {
    uint32_t inner = tfs_is_object(&c->in[i], TFS_OPTIONAL) ? c->in[i].object->nested + 1 : 1;
    if (inner > TFS_MOST_NESTED)
      status = tfs_fail(c, XLAC_E_TOO_DEEP, "optionals nest deeper than %d", TFS_MOST_NESTED);
    if (inner > o->nested) o->nested = inner;
    if (status == 0) o->parts[o->n_parts++] = tfs_keep(c->in[i]);
  }
  if (status == 0) return tfs_give_object(c, 0, o);
  tfs_object_drop(o);
  return status;
}

/* Whether it was made from values, of which there may be none. */
int tfs_host_optional_has(tfs_call *c) {
  tfs_object *o = NULL;
  TRY(tfs_object_in(c, 0, TFS_OPTIONAL, &o));
  uint8_t has = o->parts != NULL;
  return tfs_give_tensor(c, 0, tfs_new_scalar(c->alloc, XLAC_PRED, &has));
}

/* The values stay in the optional. */
int tfs_host_optional_get(tfs_call *c) {
  tfs_object *o = NULL;
  TRY(tfs_object_in(c, 0, TFS_OPTIONAL, &o));
  if (!o->parts) return tfs_fail(c, XLAC_E_EVAL, "the optional has no value");
  if (o->n_parts != c->n_out)
    return tfs_fail(c, XLAC_E_ARGUMENT_COUNT, "the optional has %u values, not %u", o->n_parts, c->n_out);
  for (uint32_t i = 0; i < c->n_out; i++) c->out[i] = tfs_keep(o->parts[i]);
  return 0;
}
