/* Running a module in the reference interpreter. */
#include "api.h"

/* Verifies and counts the module as running, so that nobody edits it meanwhile. */
static int begin_run(xlac_module *m, xlac_error *err) {
  api_lock(m);
  int status = api_check_whole(m->ir, err);
  if (status == 0 && !m->ir->verified) {
    ir_verify_options strict = {.xla_compat = false};
    status = ir_verify(m->ir, &strict, err);
  }
  if (status == 0) m->running++;
  return api_done(m, status);
}

static void end_run(xlac_module *m) {
  api_lock(m);
  assert(m->running > 0);
  m->running--;
  api_unlock(m);
}

/* --- arguments --- */

/* "argument 1 (x)" into buf. */
static const char *argument_name(const ir_computation *entry, uint32_t number, char *buf, size_t size) {
  snprintf(buf, size, "argument %u (%s)", number, entry->params[number]->name->s);
  return buf;
}

static void value_text(const interp_value *v, char *buf, size_t size) {
  base_text t;
  base_text_init(&t, base_alloc_libc);
  if (v->kind == INTERP_TUPLE) base_putf(&t, "a tuple of %u", v->n_elements);
  if (v->kind == INTERP_TOKEN) base_puts(&t, "a token");
  if (v->kind == INTERP_ARRAY) {
    base_putf(&t, "%s[", base_dtype_of((base_dtype)v->dtype)->text);
    for (uint32_t d = 0; d < v->rank; d++) base_putf(&t, d ? ",%lld" : "%lld", (long long)v->dims[d]);
    base_putc(&t, ']');
  }
  const char *s = base_text_cstr(&t);
  snprintf(buf, size, "%s", s ? s : "?");
  base_text_free(&t);
}

static bool dims_fit(const ir_type *t, const interp_value *v) {
  if (t->rank != v->rank) return false;
  for (uint32_t d = 0; d < t->rank; d++) {
    bool dynamic = ir_dim_is_dynamic(t, d);
    if (!dynamic && v->dims[d] != t->dims[d]) return false;
    if (dynamic && t->dims[d] != IR_UNBOUNDED && v->dims[d] > t->dims[d]) return false;
  }
  return true;
}

/* `what` names the argument, with the path into it for tuples. */
static int check_argument(const char *what, const ir_type *t, const interp_value *v, uint32_t depth, xlac_error *err) {
  char expected[160], found[160];
  ir_type_text(t, expected, sizeof expected);
  value_text(v, found, sizeof found);
  if (t->kind == IR_TYPE_TUPLE && v->kind == INTERP_TUPLE) {
    if (t->n_elements != v->n_elements)
      return base_fail(err, XLAC_E_ARGUMENT_COUNT, "%s: expected a tuple of %u, found %s", what, t->n_elements, found);
    for (uint32_t i = 0; i < t->n_elements; i++) {
      char path[200];
      snprintf(path, sizeof path, "%s[%u]", what, i);
      if (depth < 64) TRY(check_argument(path, t->elements[i], v->elements[i], depth + 1, err));
    }
    return 0;
  }
  if (t->kind == IR_TYPE_TOKEN && v->kind == INTERP_TOKEN) return 0;
  if (t->kind != IR_TYPE_TENSOR || v->kind != INTERP_ARRAY || t->dtype != v->dtype)
    return base_fail(err, XLAC_E_ARGUMENT_TYPE, "%s: expected %s, found %s", what, expected, found);
  if (!dims_fit(t, v))
    return base_fail(err, XLAC_E_ARGUMENT_SHAPE, "%s: expected %s, found %s", what, expected, found);
  return 0;
}

static int check_arguments(const ir_module *ir, uint32_t n_args, xlac_value *const *args, xlac_error *err) {
  const ir_computation *entry = ir->entry;
  if (n_args != entry->n_params)
    return base_fail(err, XLAC_E_ARGUMENT_COUNT, "%s takes %u argument%s, found %u", entry->name->s, entry->n_params,
                     entry->n_params == 1 ? "" : "s", n_args);
  for (uint32_t i = 0; i < n_args; i++) {
    char what[140];
    argument_name(entry, i, what, sizeof what);
    TRY(check_argument(what, entry->params[i]->type, api_value(args[i]), 0, err));
  }
  return 0;
}

static int run_checked(xlac_module *m, const xlac_interpret_options *options, uint32_t n_args, xlac_value *const *args,
                       xlac_value **out, xlac_error *err) {
  TRY(check_arguments(m->ir, n_args, args, err));
  interp_options inner = {.alloc = base_alloc_libc};
  if (options) {
    inner.interrupted = options->interrupted;
    inner.interrupt_ctx = options->interrupt_ctx;
    inner.seed = options->seed;
    inner.replica = options->replica;
    inner.partition = options->partition;
  }
  interp_value *result = NULL;
  TRY(interp_run(m->ir, &inner, n_args, (interp_value *const *)(const void *)args, &result, err));
  TRY(api_value_own(result, &result, err));
  *out = api_value_out(result);
  return 0;
}

int xlac_interpret(xlac_module *m, const xlac_interpret_options *options, uint32_t n_args, xlac_value *const *args,
                   xlac_value **out, xlac_error *err) {
  TRY(begin_run(m, err));
  int status = run_checked(m, options, n_args, args, out, err);
  end_run(m);
  return status;
}
