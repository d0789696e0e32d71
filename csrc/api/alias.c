/* Donation: input_output_alias and buffer_donor of the module header, read and edited; and what became of them in a
 * compiled program.
 *
 * xlac_alias is one struct for both lists of the header. In HLO's words, `{0}: (1, {2}, must-alias)`:
 * output index {0} may lie in the memory of leaf {2} of parameter 1. A donor, `(1, {2})`, names the memory
 * only, and the compiler chooses the result. Both lists are kept sorted, so that the printed header does
 * not depend on the order of the edits. */
#include "api.h"
#include "../plan/plan.h"

/* --- input_output_alias and buffer_donor of the module header, read and edited. --- */

/* A donor has no output index. */
static const ir_ints no_path = {0};

/* Alias number `index` in order of its output index. The paths that *out points to are the module's, and
 * live as long as it. False past the end. */
bool xlac_module_alias(xlac_module *m, uint32_t index, xlac_alias *out) {
  assert(m && out);
  api_lock(m);
  const ir_config *c = &m->ir->config;
  bool found = index < c->n_aliases;
  if (found) {
    const ir_alias *a = &c->aliases[index];
    *out = (xlac_alias){a->output->n, a->index->n, a->output->v, a->operand, a->index->v, a->must};
  }
  api_unlock(m);
  return found;
}

/* Donor number `index`, ordered by parameter and then path; n_output is 0. False past the end. */
bool xlac_module_donor(xlac_module *m, uint32_t index, xlac_alias *out) {
  assert(m && out);
  api_lock(m);
  const ir_config *c = &m->ir->config;
  bool found = index < c->n_donors;
  if (found) {
    const ir_donor *d = &c->donors[index];
    *out = (xlac_alias){0, d->index->n, no_path.v, d->parameter, d->index->v, false};
  }
  api_unlock(m);
  return found;
}

/* <0, 0, >0 as index paths are listed: element by element, a prefix first. {} < {0} < {0,1} < {1}. */
static int order_paths(const ir_ints *a, const ir_ints *b) {
  for (uint32_t i = 0; i < a->n && i < b->n; i++)
    if (a->v[i] != b->v[i]) return a->v[i] < b->v[i] ? -1 : 1;
  return (a->n > b->n) - (a->n < b->n);
}

static int oom(xlac_error *err) {
  return base_oom(err, "an alias");
}

/* An output index has at most one alias: a second one for the same index takes the first one's place. The
 * list is copied into the arena when it grows; what it was before is freed with the module. */
static int insert_alias(ir_module *ir, ir_alias alias, xlac_error *err) {
  assert(alias.output && alias.index);
  ir_config *c = ir_edit_config(ir);
  uint32_t at = 0;
  while (at < c->n_aliases && order_paths(c->aliases[at].output, alias.output) < 0) at++;
  bool same = at < c->n_aliases && order_paths(c->aliases[at].output, alias.output) == 0;
  if (!same) {
    ir_alias *grown = BASE_ARRAY(&ir->arena, ir_alias, (size_t)c->n_aliases + 1);
    if (!grown) return oom(err);
    if (at) memcpy(grown, c->aliases, at * sizeof *grown);
    if (c->n_aliases > at) memcpy(grown + at + 1, c->aliases + at, (c->n_aliases - at) * sizeof *grown);
    c->aliases = grown;
    c->n_aliases++;
  }
  c->aliases[at] = alias;
  return 0;
}

/* Copies the caller's paths into the module. Whether the indices exist and the shapes agree is for the
 * verifier to say: the header may be written before the entry is complete. */
static int set_alias_locked(ir_module *ir, const xlac_alias *a, xlac_error *err) {
  ir_alias alias = {.output = ir_ints_make(ir, a->n_output, a->output),
                    .operand = a->parameter,
                    .index = ir_ints_make(ir, a->n_index, a->index),
                    .must = a->must};
  if (!alias.output || !alias.index) return oom(err);
  return insert_alias(ir, alias, err);
}

/* Fails with XLAC_E_EDIT while the module is being run. */
int xlac_module_set_alias(xlac_module *m, const xlac_alias *alias, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  return api_done(m, set_alias_locked(m->ir, alias, err));
}

/* By parameter, then by path. */
static int order_donors(const ir_donor *a, const ir_donor *b) {
  if (a->parameter != b->parameter) return a->parameter < b->parameter ? -1 : 1;
  return order_paths(a->index, b->index);
}

/* Adding what is there already changes nothing. */
int api_add_donor(ir_module *ir, const xlac_alias *a, xlac_error *err) {
  assert(ir && a && (a->index || a->n_index == 0));
  ir_config *c = ir_edit_config(ir);
  ir_donor donor = {a->parameter, ir_ints_make(ir, a->n_index, a->index)};
  if (!donor.index) return oom(err);
  uint32_t at = 0;
  while (at < c->n_donors && order_donors(&c->donors[at], &donor) < 0) at++;
  if (at < c->n_donors && order_donors(&c->donors[at], &donor) == 0) return 0;
  ir_donor *grown = BASE_ARRAY(&ir->arena, ir_donor, (size_t)c->n_donors + 1);
  if (!grown) return oom(err);
  if (at) memcpy(grown, c->donors, at * sizeof *grown);
  if (c->n_donors > at) memcpy(grown + at + 1, c->donors + at, (c->n_donors - at) * sizeof *grown);
  grown[at] = donor;
  c->donors = grown;
  c->n_donors++;
  return 0;
}

int xlac_module_add_donor(xlac_module *m, const xlac_alias *donor, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  return api_done(m, api_add_donor(m->ir, donor, err));
}

/* Drops aliases and donors together. The lists stay in the arena, unreachable. */
int xlac_module_clear_aliases(xlac_module *m, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  ir_config *config = ir_edit_config(m->ir);
  config->n_aliases = 0;
  config->n_donors = 0;
  return api_done(m, 0);
}

/* --- Donated parameters of compiled programs. --- */

/* Of nested tuples; deeper ones are refused with an error, so the path has a fixed size. */
enum { DONATE_MAX_DEPTH = 64 };

/* Whether the header aliases this very leaf already, so that it need not be a donor. */
static bool donate_is_aliased(const ir_module *ir, int64_t parameter, uint32_t n, const int64_t *path) {
  assert(n == 0 || path);
  for (uint32_t i = 0; i < ir->config.n_aliases; i++) {
    const ir_alias *a = &ir->config.aliases[i];
    if (a->operand == parameter && a->index->n == n && (n == 0 || memcmp(a->index->v, path, n * sizeof *path) == 0))
      return true;
  }
  return false;
}

/* Leaves below t, which is at path[0..n). Tokens and other types without elements are passed over: they
 * have no memory to give. */
static int donate_leaves(ir_module *ir, int64_t parameter, const ir_type *t, int64_t *path, uint32_t n,
                         xlac_error *err) {
  assert(n <= DONATE_MAX_DEPTH);
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

/* xlac_compile_options.donate names whole parameters by number, as JAX's donate_argnums does; XLA's header
 * names leaves. */
int api_add_donors(ir_module *ir, const xlac_compile_options *options, xlac_error *err) {
  assert(ir->entry);
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

/* Runs the prover of plan/check.c once more on a finished plan: no step writes
 * over what is still to be read. */
int xlac_executable_check(const xlac_executable *exe, xlac_error *err) {
  return plan_check(api_executable_plan(exe), base_alloc_libc, err);
}

/* UINT32_MAX as index asks for all donations, one a line. */
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

/* result is UINT32_MAX where the memory serves as scratch only. */
bool xlac_executable_donation(const xlac_executable *exe, uint32_t index, xlac_donation *out) {
  assert(exe && out);
  const plan_program *p = api_executable_plan(exe);
  if (index >= p->n_donations) return false;
  const plan_donation *d = &p->donations[index];
  *out = (xlac_donation){d->argument, d->result, d->must, d->in_place};
  return true;
}
