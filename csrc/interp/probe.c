/* interpreter.probe: passes its operand on, and keeps it for whoever asked for the run.
 *
 * A registry of what probes saw, in the order of time, by probe id; shared by all participants of a
 * parallel run, so it has a lock. Values are copies that share memory with nothing. */
#include "probe.h"

#include <pthread.h>

#include "algorithm/arrays.h"

typedef struct probe_record {
  char *id;
  interp_value *value;
} probe_record;
BASE_VEC(probe_records, probe_record);

struct interp_probes {
  base_alloc alloc;
  pthread_mutex_t lock;
  probe_records records;
};

int interp_probes_create(interp_probes **out, base_alloc alloc, xlac_error *err) {
  interp_probes *p = base_malloc(alloc, sizeof *p);
  if (!p) return base_oom(err, "probes");
  *p = (interp_probes){.alloc = alloc};
  if (pthread_mutex_init(&p->lock, NULL) != 0) {
    base_free(alloc, p);
    return base_oom(err, "probes");
  }
  *out = p;
  return 0;
}

void interp_probes_destroy(interp_probes *p) {
  if (!p) return;
  for (uint32_t i = 0; i < p->records.n; i++) {
    base_free(p->alloc, p->records.items[i].id);
    interp_release(p->records.items[i].value);
  }
  BASE_VEC_FREE(p->alloc, &p->records);
  pthread_mutex_destroy(&p->lock);
  base_free(p->alloc, p);
}

uint32_t interp_probes_count(interp_probes *p) {
  pthread_mutex_lock(&p->lock);
  uint32_t n = p->records.n;
  pthread_mutex_unlock(&p->lock);
  return n;
}

/* Borrowed: records are never removed before the registry goes. */
interp_value *interp_probes_get(interp_probes *p, uint32_t i, const char **id) {
  pthread_mutex_lock(&p->lock);
  assert(i < p->records.n);
  probe_record found = p->records.items[i];
  pthread_mutex_unlock(&p->lock);
  *id = found.id;
  return found.value;
}

/* Takes v, also on failure. */
int interp_probes_add(interp_probes *p, const base_istr *id, interp_value *v, xlac_error *err) {
  probe_record record = {base_malloc(p->alloc, id->n + 1u), v};
  bool ok = record.id != NULL;
  if (ok) {
    memcpy(record.id, id->s, id->n);
    record.id[id->n] = 0;
    pthread_mutex_lock(&p->lock);
    ok = BASE_VEC_PUSH(p->alloc, &p->records, record);
    pthread_mutex_unlock(&p->lock);
  }
  if (ok) return 0;
  base_free(p->alloc, record.id);
  interp_release(v);
  return base_oom(err, "what a probe saw");
}

/* What the probe `id` saw at its `iteration`-th time, from 0; NULL where there is none. Borrowed. */
interp_value *interp_probes_find(interp_probes *p, const base_istr *id, uint64_t iteration) {
  interp_value *found = NULL;
  uint64_t seen = 0;
  pthread_mutex_lock(&p->lock);
  for (uint32_t i = 0; i < p->records.n && !found; i++)
    if (strcmp(p->records.items[i].id, id->s) == 0 && seen++ == iteration) found = p->records.items[i].value;
  pthread_mutex_unlock(&p->lock);
  return found;
}

/* StableHLO's interpreter.probe writes the value to a file; here the caller of the run reads it. */
int interp_probe(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const ir_mattr *id = ir_mattr_of(op, "probe_id");
  if (op->n_operands != 1 || !id || id->kind != IR_M_STRING)
    return interp_fail(ctx, op, XLAC_E_EVAL, "interpreter.probe needs one operand and a probe_id");
  if (ctx->options.probes) {
    interp_value *kept = interp_own(ctx, interp_retain(operands[0]));
    if (!kept) return interp_failed(ctx);
    TRY(interp_probes_add(ctx->options.probes, id->str, kept, ctx->err));
  }
  *out = interp_retain(operands[0]);
  return 0;
}
