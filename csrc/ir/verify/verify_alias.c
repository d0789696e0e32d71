/* input_output_alias and buffer_donor against the entry: XLA's rules (HloInputOutputAliasConfig::Verify), with our
 * words. Donors get the rules of HloBufferDonorConfig::Verify, which XLA's CPU pipeline does not run. */
#include "verify.h"

static int fail_entry(const ir_module *m, xlac_error *err, const char *format, ...) BASE_PRINTF(3, 4);
static int fail_entry(const ir_module *m, xlac_error *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char message[sizeof err->message];
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return base_fail_at(err, XLAC_E_VERIFY_ALIAS, 1, 1, m->entry->name->s, "%s", message);
}

/* The tensor at parameter p, path index; NULL and an error when there is none. */
static const ir_type *param_leaf(const ir_module *m, const char *what, int64_t p, const ir_ints *index,
                                 xlac_error *err) {
  const ir_computation *e = m->entry;
  if (p < 0 || p >= e->n_params) {
    fail_entry(m, err, "%s names parameter %lld; the entry has %u", what, (long long)p, e->n_params);
    return NULL;
  }
  const ir_type *t = ir_type_at(e->params[p]->type, index->v, index->n);
  if (!t || !ir_is_tensor(t)) {
    fail_entry(m, err, "%s: index %s of parameter %lld (%s) is no array", what, IR_SHOW_INTS(index->n, index->v),
               (long long)p, IR_SHOW(e->params[p]->type));
    return NULL;
  }
  return t;
}

static int64_t space_of(const ir_type *t) {
  return t->layout ? t->layout->memory_space : 0;
}

static int check_pair(const ir_module *m, const ir_alias *a, const ir_type *out, const ir_type *in, xlac_error *err) {
  assert(ir_is_tensor(out) && ir_is_tensor(in));
  const char *where = IR_SHOW_INTS(a->output->n, a->output->v);
  if (a->must && (!ir_same_bare(out, in) || space_of(out) != space_of(in)))
    return fail_entry(m, err,
                      "output %s (%s, space %lld) must alias parameter %lld (%s, space %lld): shape, element type and "
                      "memory space must be the same",
                      where, IR_SHOW(out), (long long)space_of(out), (long long)a->operand, IR_SHOW(in),
                      (long long)space_of(in));
  if (ir_type_xla_bytes(out) != ir_type_xla_bytes(in))
    return fail_entry(m, err, "output %s (%s, %lld bytes) can't alias parameter %lld (%s, %lld bytes): sizes differ",
                      where, IR_SHOW(out), (long long)ir_type_xla_bytes(out), (long long)a->operand, IR_SHOW(in),
                      (long long)ir_type_xla_bytes(in));
  return 0;
}

static bool same_path(const ir_ints *a, const ir_ints *b) {
  return a->n == b->n && (a->n == 0 || memcmp(a->v, b->v, a->n * sizeof *a->v) == 0);
}

uint64_t ir_verify_path_key(int64_t number, const ir_ints *path) {
  assert(path);
  uint64_t key = ir_verify_path_start(number);
  for (uint32_t i = 0; i < path->n; i++) key = ir_verify_path_step(key, path->v[i]);
  return key;
}

static int check_unique(const ir_module *m, const ir_alias *a, uint32_t i, base_map *seen, xlac_error *err) {
  uint64_t other, key = ir_verify_path_key(a[i].operand, a[i].index);
  if (base_map_get(seen, key, &other) && a[other].operand == a[i].operand && same_path(a[other].index, a[i].index))
    return fail_entry(m, err, "parameter %lld %s is aliased with output %s and again with output %s",
                      (long long)a[i].operand, IR_SHOW_INTS(a[i].index->n, a[i].index->v),
                      IR_SHOW_INTS(a[other].output->n, a[other].output->v),
                      IR_SHOW_INTS(a[i].output->n, a[i].output->v));
  return base_map_set(seen, key, i) ? 0 : base_oom(err, "a table of aliases");
}

static int check_aliases(const ir_module *m, base_map *seen, xlac_error *err) {
  const ir_config *config = &m->config;
  const ir_type *result = ir_result_type(m->entry);
  for (uint32_t i = 0; i < config->n_aliases; i++) {
    const ir_alias *a = &config->aliases[i];
    const ir_type *out = ir_type_at(result, a->output->v, a->output->n);
    if (!out || !ir_is_tensor(out))
      return fail_entry(m, err, "input_output_alias: index %s of the result (%s) is no array",
                        IR_SHOW_INTS(a->output->n, a->output->v), IR_SHOW(result));
    const ir_type *in = param_leaf(m, "input_output_alias", a->operand, a->index, err);
    if (!in) return -XLAC_E_VERIFY_ALIAS;
    TRY(check_pair(m, a, out, in, err));
    TRY(check_unique(m, config->aliases, i, seen, err));
  }
  return 0;
}

/* XLA's own verifier of donors refuses what stands in both lists, as the same buffer can't go two ways. `seen`: aliases
 * by leaf. */
static int check_donor(const ir_module *m, const ir_donor *d, const base_map *seen, xlac_error *err) {
  uint64_t i;
  if (!param_leaf(m, "buffer_donor", d->parameter, d->index, err)) return -XLAC_E_VERIFY_ALIAS;
  if (!base_map_get(seen, ir_verify_path_key(d->parameter, d->index), &i)) return 0;
  return fail_entry(m, err, "parameter %lld %s is a buffer_donor and aliased with output %s; it can be one of them",
                    (long long)d->parameter, IR_SHOW_INTS(d->index->n, d->index->v),
                    IR_SHOW_INTS(m->config.aliases[i].output->n, m->config.aliases[i].output->v));
}

static int check_donors(const ir_module *m, const base_map *seen, xlac_error *err) {
  for (uint32_t i = 0; i < m->config.n_donors; i++) TRY(check_donor(m, &m->config.donors[i], seen, err));
  return 0;
}

int ir_verify_aliases(const ir_module *m, const ir_verify_options *options, xlac_error *err) {
  base_map seen;
  base_map_init(&seen, m->alloc);
  int status = check_aliases(m, &seen, err);
  if (status == 0 && !options->xla_compat) status = check_donors(m, &seen, err);
  base_map_free(&seen);
  return status;
}
