/* Plans of one program for arguments that lie otherwise, or whose memory is free: made at first sight, and kept.
 *
 * A plan is made for dense arguments that stay the caller's. A call whose arguments have strides, or give
 * memory away that no result takes, gets a plan of its own: the compiled module with slices in front of
 * such parameters (plan_lay_out), planned again. At most VARIANT_MAX of them; further combinations, and
 * those that can't be planned, are called with dense copies. */
#include "executable.h"

#include "../driver/compile.h"
#include "../plan/plan.h"
#include "api.h"

enum { VARIANT_MAX = 8 };

/* What tells variants apart: for each leaf whether it is dense (0), donated (1), or has strides (2), which follow,
 * in elements. */
BASE_VEC(variant_key, int64_t);

typedef struct variant_plan {
  variant_key key;
  rt_executable *rt; /* NULL: it can't be made */
} variant_plan;

/* Only added to, so what was found stays good without the lock. */
struct api_variants {
  pthread_mutex_t lock;
  uint32_t n;
  variant_plan v[VARIANT_MAX];
};

int api_variants_create(api_variants **out, xlac_error *err) {
  api_variants *all = base_malloc(base_alloc_libc, sizeof *all);
  if (!all) return base_oom(err, "an executable");
  memset(all, 0, sizeof *all);
  pthread_mutex_init(&all->lock, NULL);
  *out = all;
  return 0;
}

void api_variants_free(api_variants *all) {
  if (!all) return;
  for (uint32_t i = 0; i < all->n; i++) {
    rt_executable_destroy(all->v[i].rt);
    BASE_VEC_FREE(base_alloc_libc, &all->v[i].key);
  }
  pthread_mutex_destroy(&all->lock);
  base_free(base_alloc_libc, all);
}

/* --- what a call asks for --- */

/* The parameter that is leaf `leaf` as a whole, or NULL. Leaves inside of tuples are never laid out
 * otherwise. */
static ir_op *variant_parameter(const ir_module *m, uint32_t leaf) {
  assert(m->entry);
  uint32_t at = 0;
  for (uint32_t i = 0; i < m->entry->n_params && at <= leaf; i++) {
    ir_op *p = m->entry->params[i];
    if (at == leaf && ir_is_tensor(p->type)) return p;
    at += ir_type_leaves(p->type);
  }
  return NULL;
}

/* The strides in elements; false where they are none, or can't be planned for. */
static bool variant_steps(const ir_module *m, uint32_t leaf, const int64_t *strides, int64_t *steps) {
  const ir_op *p = variant_parameter(m, leaf);
  if (!p) return false;
  int64_t size = base_dtype_bytes((base_dtype)p->type->dtype);
  for (uint32_t d = 0; d < p->type->rank; d++) {
    if (strides[d] % size) return false;
    steps[d] = strides[d] / size;
  }
  return plan_is_strided(p->type, steps);
}

/* Donated, but taken by no result: its memory may serve as scratch. */
static bool variant_is_spare(const plan_program *p, uint32_t leaf) {
  for (uint32_t i = 0; i < p->n_donations; i++)
    if (p->donations[i].argument == leaf) return p->donations[i].result == UINT32_MAX;
  return false;
}

/* packed[i] is set for arguments that must be copied. False when out of memory. *plain: the executable's
 * own plan serves. The key is a list like 0 2 1 64 1: leaf 0 dense, leaf 1 with strides 1 and 64, leaf 2
 * donated. */
static bool variant_key_of(const xlac_executable *exe, const xlac_argument *arguments, bool *packed, variant_key *key,
                           bool *plain) {
  const rt_executable *whole = api_executable_rt(exe);
  const plan_program *p = whole->plan;
  const ir_module *m = whole->module;
  bool ok = true;
  *plain = true;
  for (uint32_t i = 0; i < p->n_arguments && ok; i++) {
    const xlac_argument *a = &arguments[i];
    int64_t steps[IR_MAX_RANK];
    bool strided = a->strides && variant_steps(m, i, a->strides, steps);
    bool spare = a->given && !a->strides && (uintptr_t)a->data % PLAN_SPARE_ALIGN == 0 && variant_is_spare(p, i);
    packed[i] = a->strides && !strided;
    *plain = *plain && !strided && !spare;
    ok = BASE_VEC_PUSH(base_alloc_libc, key, strided ? 2 : spare);
    for (uint32_t d = 0; ok && strided && d < variant_parameter(m, i)->type->rank; d++)
      ok = BASE_VEC_PUSH(base_alloc_libc, key, steps[d]);
  }
  return ok;
}

/* --- making --- */

/* Lays out the parameters of m as the key says. given: by leaf; keeps: donations that still hold. */
static int variant_lay_out(const plan_program *p, ir_module *m, const variant_key *key, bool *given,
                           plan_donation *keeps, uint32_t *n_keeps, xlac_error *err) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < p->n_arguments; i++) {
    int64_t kind = key->items[at++];
    given[i] = kind == 1;
    for (uint32_t k = 0; k < p->n_donations && kind == 0; k++)
      if (p->donations[k].argument == i) keeps[(*n_keeps)++] = p->donations[k];
    if (kind != 2) continue;
    ir_op *parameter = variant_parameter(m, i);
    uint32_t rank = parameter->type->rank;
    TRY(plan_lay_out(m, parameter, &key->items[at], err));
    at += rank;
  }
  return 0;
}

/* Schedule and aliases are the old plan's; keeps and given say what still holds. */
static int variant_module(const xlac_executable *exe, const variant_key *key, bool *given, plan_donation *keeps,
                          uint32_t *n_keeps, ir_module **out, xlac_error *err) {
  const rt_executable *whole = api_executable_rt(exe);
  ir_module *m = NULL;
  TRY(ir_module_clone(&m, whole->module, err));
  ir_config *config = ir_edit_config(m);
  config->is_scheduled = false;
  config->n_aliases = config->n_donors = 0;
  config->has_entry_layout = false;
  int status = variant_lay_out(whole->plan, m, key, given, keeps, n_keeps, err);
  if (status) {
    ir_module_destroy(m);
    return status;
  }
  *out = m;
  return 0;
}

/* The module has been through the passes; what is left to do is the clean-up that new layouts of
 * parameters allow. Lanes and async work are not repeated: variants run on the caller's thread. */
static int variant_compile(const xlac_executable *exe, ir_module *m, const plan_options *plan, rt_executable **out,
                           xlac_error *err) {
  driver_options line = {.devices = exe->devices,
                         .device = exe->rt->device,
                         .build = api_build_options(exe),
                         .plan = *plan,
                         .passes = "algebraic-simplification,cse,dce"};
  line.no_passes = line.plan.no_fusion = exe->options.no_fusion;
  return driver_finish(m, &line, NULL, out, err);
}

static int variant_make(const xlac_executable *exe, const variant_key *key, rt_executable **out, xlac_error *err) {
  const plan_program *p = api_executable_plan(exe);
  bool *given = base_malloc(base_alloc_libc, p->n_arguments + 1u);
  plan_donation *keeps = base_malloc(base_alloc_libc, (p->n_donations + 1u) * sizeof *keeps);
  ir_module *m = NULL;
  uint32_t n_keeps = 0;
  int status = given && keeps ? variant_module(exe, key, given, keeps, &n_keeps, &m, err) : base_oom(err, "a plan");
  if (status == 0) {
    plan_options plan = {.has_donations = true, .n_donations = n_keeps, .donations = keeps, .given = given};
    status = variant_compile(exe, m, &plan, out, err);
  }
  base_free(base_alloc_libc, given);
  base_free(base_alloc_libc, keeps);
  return status;
}

static bool variant_same(const variant_key *a, const variant_key *b) {
  assert(a && b);
  return a->n == b->n && memcmp(a->items, b->items, a->n * sizeof *a->items) == 0;
}

/* The plan for the key, which it takes; NULL where there is none. Made under the lock: another thread that
 * wants the same one waits for it. A failure is kept, too, so that it is not tried at every call. */
static const rt_executable *variant_get(const xlac_executable *exe, variant_key *key) {
  api_variants *all = exe->variants;
  const rt_executable *found = NULL;
  uint32_t i = 0;
  pthread_mutex_lock(&all->lock);
  while (i < all->n && !variant_same(&all->v[i].key, key)) i++;
  if (i == all->n && i < VARIANT_MAX) {
    xlac_error unused;
    variant_plan made = {.key = *key};
    *key = (variant_key){NULL, 0, 0};
    if (variant_make(exe, &made.key, &made.rt, &unused) != 0) made.rt = NULL;
    all->v[all->n++] = made;
  }
  if (i < all->n) found = all->v[i].rt;
  pthread_mutex_unlock(&all->lock);
  BASE_VEC_FREE(base_alloc_libc, key);
  return found;
}

/* Never fails: the worst case is the executable's own plan, with copies. */
const rt_executable *api_variant_of(const xlac_executable *exe, const xlac_argument *arguments, bool *packed) {
  variant_key key = {NULL, 0, 0};
  const rt_executable *own = api_executable_rt(exe), *found = NULL;
  const plan_program *p = own->plan;
  bool plain = true;
  if (own->n_devices || !variant_key_of(exe, arguments, packed, &key, &plain) || plain) {
    BASE_VEC_FREE(base_alloc_libc, &key);
    found = own;
  } else {
    found = variant_get(exe, &key);
  }
  for (uint32_t i = 0; i < p->n_arguments && (!found || found == own); i++) packed[i] = arguments[i].strides != NULL;
  return found ? found : own;
}

/* Bytes of leaf `leaf` that a run would use as scratch if it were donated; makes the plan for that. */
int64_t xlac_executable_spare(const xlac_executable *exe, uint32_t leaf) {
  const plan_program *p = api_executable_plan(exe);
  variant_key key = {NULL, 0, 0};
  bool ok = !p->interpreted && variant_is_spare(p, leaf);
  for (uint32_t i = 0; i < p->n_arguments && ok; i++) ok = BASE_VEC_PUSH(base_alloc_libc, &key, i == leaf);
  const rt_executable *found = ok ? variant_get(exe, &key) : NULL;
  if (!ok) BASE_VEC_FREE(base_alloc_libc, &key);
  return found ? found->plan->spare_bytes : 0;
}
