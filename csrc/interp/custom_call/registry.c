/* The custom-call registry: target name to function. A short list: programs register a handful. */
#include "../interp.h"

typedef struct registry_entry {
  char *target;
  interp_custom_call_fn *fn;
  void *ctx;
  interp_native native; /* where fn is NULL */
} registry_entry;
BASE_VEC(registry_entries, registry_entry);

struct interp_registry {
  base_alloc alloc;
  registry_entries entries;
};

int interp_registry_create(interp_registry **out, base_alloc alloc, xlac_error *err) {
  interp_registry *r = base_malloc(alloc, sizeof *r);
  if (!r) return base_oom(err, "a custom-call registry");
  memset(r, 0, sizeof *r);
  r->alloc = alloc;
  *out = r;
  return 0;
}

void interp_registry_destroy(interp_registry *r) {
  if (!r) return;
  base_alloc alloc = r->alloc;
  for (uint32_t i = 0; i < r->entries.n; i++) base_free(alloc, r->entries.items[i].target);
  BASE_VEC_FREE(alloc, &r->entries);
  base_free(alloc, r);
}

/* Borrowed until the next entry is added. */
static registry_entry *registry_entry_of(const interp_registry *r, const char *target) {
  for (uint32_t i = 0; i < r->entries.n; i++) {
    if (strcmp(r->entries.items[i].target, target) == 0) return &r->entries.items[i];
  }
  return NULL;
}

/* Replaces an entry of that name. On failure the registry is as it was. */
static int registry_put(interp_registry *r, const char *target, registry_entry what, xlac_error *err) {
  assert(target);
  registry_entry *e = registry_entry_of(r, target);
  if (!e) {
    registry_entry fresh = {.target = base_malloc(r->alloc, strlen(target) + 1)};
    if (!fresh.target) return base_oom(err, "a custom-call registry");
    memcpy(fresh.target, target, strlen(target) + 1);
    if (!BASE_VEC_PUSH(r->alloc, &r->entries, fresh)) {
      base_free(r->alloc, fresh.target);
      return base_oom(err, "a custom-call registry");
    }
    e = &r->entries.items[r->entries.n - 1];
  }
  what.target = e->target;
  *e = what;
  return 0;
}

int interp_registry_add(interp_registry *r, const char *target, interp_custom_call_fn *fn, void *ctx, xlac_error *err) {
  assert(target && fn);
  return registry_put(r, target, (registry_entry){.fn = fn, .ctx = ctx}, err);
}

int interp_registry_add_native(interp_registry *r, const char *target, interp_native native, xlac_error *err) {
  assert(target && native.run);
  return registry_put(r, target, (registry_entry){.native = native}, err);
}

/* r may be NULL: nothing is registered. */
interp_custom_call_fn *interp_registry_find(const interp_registry *r, const char *target, void **ctx,
                                            interp_native *native) {
  registry_entry *e = r ? registry_entry_of(r, target) : NULL;
  if (!e) return NULL;
  *ctx = e->ctx;
  *native = e->native;
  return e->fn;
}
