/* Arguments that may be donated: those of input_output_alias, and donors, each of which gets the first result of its
 * size that no other argument goes to. Whoever is donated or not, a program is the same: where the caller lends the
 * argument, the result has memory of its own. */
#include "build.h"

/* The leaf at `path` of t, or UINT32_MAX. */
static uint32_t donation_leaf(const ir_type *t, const ir_ints *path) {
  uint32_t leaf = 0;
  for (uint32_t i = 0; i < path->n; i++) {
    if (!ir_is_tuple(t) || path->v[i] < 0 || path->v[i] >= t->n_elements) return UINT32_MAX;
    for (int64_t k = 0; k < path->v[i]; k++) leaf += ir_type_leaves(t->elements[k]);
    t = t->elements[path->v[i]];
  }
  return ir_is_tuple(t) ? UINT32_MAX : leaf;
}

/* Leaves are counted over all parameters. */
static uint32_t donation_argument(const ir_computation *entry, int64_t parameter, const ir_ints *path) {
  uint32_t before = 0;
  if (parameter < 0 || parameter >= entry->n_params) return UINT32_MAX;
  for (int64_t i = 0; i < parameter; i++) before += ir_type_leaves(entry->params[i]->type);
  uint32_t leaf = donation_leaf(entry->params[parameter]->type, path);
  return leaf == UINT32_MAX ? leaf : before + leaf;
}

/* `all` and `over` become the program's. */
typedef struct donation_run {
  const ir_computation *entry;
  plan_donation *all;
  uint32_t n, *over, n_results;
  const ir_type **results; /* by leaf */
  const plan_build *x;
} donation_run;

/* The types of all leaves, in their order. */
static void donation_collect(const ir_type *t, const ir_type **out, uint32_t *n) {
  if (!ir_is_tuple(t)) {
    out[(*n)++] = t;
    return;
  }
  for (uint32_t i = 0; i < t->n_elements; i++) donation_collect(t->elements[i], out, n);
}

/* Linear: donated arguments are few, and this runs once for each. */
static bool donation_is_known(const donation_run *r, uint32_t argument) {
  for (uint32_t i = 0; i < r->n; i++)
    if (r->all[i].argument == argument) return true;
  return false;
}

/* Of an argument without a result. */
static void donation_say_why(const donation_run *r, plan_donation *d) {
  int64_t bytes = r->x->buffers.items[d->argument].bytes;
  d->why = PLAN_DONATION_NO_RESULT;
  for (uint32_t i = 0; i < r->n_results; i++) {
    if (r->over[i] == UINT32_MAX || !ir_is_tensor(r->results[i]) || ir_type_bytes(r->results[i]) != bytes) continue;
    d->why = PLAN_DONATION_TAKEN;
    d->rival = r->over[i];
    return;
  }
}

/* An argument is given once: the first that names it counts, and a result that is taken is not taken again. */
static void donation_add(donation_run *r, uint32_t argument, uint32_t result, bool must) {
  assert(result == UINT32_MAX || result < r->n_results);
  if (argument == UINT32_MAX || donation_is_known(r, argument)) return;
  if (result != UINT32_MAX && r->over[result] != UINT32_MAX) result = UINT32_MAX;
  if (result != UINT32_MAX) r->over[result] = argument;
  plan_donation d = {.argument = argument, .result = result, .must = must, .rival = UINT32_MAX};
  d.parameter = r->x->buffers.items[argument].op;
  if (result == UINT32_MAX) donation_say_why(r, &d);
  r->all[r->n++] = d;
}

/* The first result of the donor's size that is nobody's, of the same type if there is one. */
static uint32_t donation_find(const donation_run *r, uint32_t argument) {
  const plan_buffer *from = &r->x->buffers.items[argument]; /* arguments' buffers are their numbers */
  uint32_t fits = UINT32_MAX;
  for (uint32_t i = r->n_results; i-- > 0;) {
    const ir_type *t = r->results[i];
    if (r->over[i] != UINT32_MAX || !ir_is_tensor(t) || ir_type_bytes(t) != from->bytes) continue;
    bool same = from->type->dtype == t->dtype && ir_same_bare(from->type, t);
    if (same || fits == UINT32_MAX || !ir_same_bare(from->type, r->results[fits])) fits = i;
  }
  return fits;
}

/* As another plan has it, but for arguments that lie otherwise here. */
static void donation_repeat(donation_run *r, const plan_options *options) {
  for (uint32_t i = 0; i < options->n_donations; i++) {
    const plan_donation *d = &options->donations[i];
    const ir_type *t = d->result == UINT32_MAX ? NULL : r->results[d->result];
    if (t && ir_is_tensor(t) && ir_type_bytes(t) == r->x->buffers.items[d->argument].bytes)
      donation_add(r, d->argument, d->result, d->must);
  }
}

/* Aliases before donors: they say which result, donors take what is left. */
static void donation_all(donation_run *r, const ir_config *config) {
  for (uint32_t i = 0; i < config->n_aliases; i++) {
    const ir_alias *a = &config->aliases[i];
    uint32_t result = donation_leaf(ir_root(r->entry)->type, a->output);
    if (result != UINT32_MAX) donation_add(r, donation_argument(r->entry, a->operand, a->index), result, a->must);
  }
  for (uint32_t i = 0; i < config->n_donors; i++) {
    uint32_t argument = donation_argument(r->entry, config->donors[i].parameter, config->donors[i].index);
    if (argument != UINT32_MAX) donation_add(r, argument, donation_find(r, argument), false);
  }
}

/* Arguments that are donated in every call, and lie under no result. Smaller ones than a cache line are not worth
 * a place. */
static void donation_list_spares(const donation_run *r, const bool *given) {
  const plan_build *x = r->x;
  plan_program *p = x->p;
  uint32_t *spares = BASE_ARRAY(x->arena, uint32_t, (size_t)p->n_arguments + 1);
  if (!spares) return; /* a wish */
  for (uint32_t i = 0; i < p->n_arguments; i++) {
    bool is_free = given[i] && x->buffers.items[i].bytes >= PLAN_ALIGN;
    for (uint32_t k = 0; k < r->n_results && is_free && r->over; k++) is_free = r->over[k] != i;
    if (is_free) spares[p->n_spares++] = i;
  }
  p->spares = spares;
}

/* Only for the entry. Without any donation p->over stays NULL, which costs nothing later. */
void plan_find_donations(plan_build *x) {
  assert(x->p && (x->failed || x->buffers.n >= x->p->n_arguments));
  const ir_config *config = &x->m->config;
  const ir_computation *entry = x->m->entry;
  donation_run r = {.entry = entry, .x = x, .n_results = ir_type_leaves(ir_root(entry)->type)};
  const plan_options *options = x->options;
  size_t most = options->has_donations ? options->n_donations : (size_t)config->n_aliases + config->n_donors;
  if (x->failed) return;
  if (most == 0) {
    if (options->given) donation_list_spares(&r, options->given);
    return;
  }
  r.all = BASE_ARRAY(x->arena, plan_donation, most);
  r.over = BASE_ARRAY(x->arena, uint32_t, (size_t)r.n_results + 1);
  r.results = BASE_ARRAY(x->arena, const ir_type *, (size_t)r.n_results + 1);
  if (!r.all || !r.over || !r.results) {
    x->failed = true;
    return;
  }
  uint32_t n = 0;
  donation_collect(ir_root(entry)->type, r.results, &n);
  for (uint32_t i = 0; i < n; i++) r.over[i] = UINT32_MAX;
  if (options->has_donations)
    donation_repeat(&r, options);
  else
    donation_all(&r, config);
  x->p->n_donations = r.n;
  x->p->donations = x->donations = r.all;
  x->p->over = r.over;
  if (options->given) donation_list_spares(&r, options->given);
}
