/* Donated parameters of compiled programs. */
#include "../plan/plan.h"
#include "api.h"

enum { DONATE_MAX_DEPTH = 64 };

static bool donate_is_aliased(const ir_module *ir, int64_t parameter, uint32_t n, const int64_t *path) {
  for (uint32_t i = 0; i < ir->config.n_aliases; i++) {
    const ir_alias *a = &ir->config.aliases[i];
    if (a->operand == parameter && a->index->n == n && (n == 0 || memcmp(a->index->v, path, n * sizeof *path) == 0))
      return true;
  }
  return false;
}

/* Leaves below t, which is at path[0..n). */
static int donate_leaves(ir_module *ir, int64_t parameter, const ir_type *t, int64_t *path, uint32_t n,
                         xlac_error *err) {
  if (!ir_is_tuple(t)) {
    const xlac_alias donor = {.parameter = parameter, .n_index = n, .index = path};
    return ir_is_tensor(t) && !donate_is_aliased(ir, parameter, n, path) ? api_add_donor(ir, &donor, err) : 0;
  }
  if (n == DONATE_MAX_DEPTH)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "parameter %lld is a tuple nested too deep to be donated",
                     (long long)parameter);
  for (uint32_t i = 0; i < t->n_elements; i++) {
    path[n] = i;
    TRY(donate_leaves(ir, parameter, t->elements[i], path, n + 1, err));
  }
  return 0;
}

int api_add_donors(ir_module *ir, const xlac_compile_options *options, xlac_error *err) {
  int64_t path[DONATE_MAX_DEPTH + 1];
  for (uint32_t i = 0; i < options->n_donate; i++) {
    uint32_t p = options->donate[i];
    if (p >= ir->entry->n_params)
      return base_fail(err, XLAC_E_BAD_ARGUMENT, "parameter %u is to be donated; the program has %u", p,
                       ir->entry->n_params);
    TRY(donate_leaves(ir, p, ir->entry->params[p]->type, path, 0, err));
  }
  return 0;
}

int xlac_executable_check(const xlac_executable *exe, xlac_error *err) {
  return plan_check(api_executable_plan(exe), base_alloc_libc, err);
}

int xlac_executable_explain_donation(const xlac_executable *exe, uint32_t index, char **text, size_t *n,
                                     xlac_error *err) {
  const plan_program *p = api_executable_plan(exe);
  base_text t;
  if (index != UINT32_MAX && index >= p->n_donations)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "donation %u is asked for; there are %u", index, p->n_donations);
  base_text_init(&t, base_alloc_libc);
  if (index == UINT32_MAX)
    plan_explain_donations(&t, p);
  else
    plan_put_donation(&t, p, &p->donations[index]);
  return api_give_text(&t, text, n, err);
}

bool xlac_executable_donation(const xlac_executable *exe, uint32_t index, xlac_donation *out) {
  const plan_program *p = api_executable_plan(exe);
  if (index >= p->n_donations) return false;
  const plan_donation *d = &p->donations[index];
  *out = (xlac_donation){d->argument, d->result, d->must, d->in_place};
  return true;
}
