/* A short list: programs register a handful. */
#include "custom_calls.h"

#include "../base/memory.h"

typedef struct registry_entry {
  char *target;
  rt_custom_call_fn *fn;
  void *ctx;
  rt_native native; /* where fn is NULL */
} registry_entry;
BASE_VEC(registry_entries, registry_entry);

struct rt_registry {
  base_alloc alloc;
  registry_entries entries;
};

int rt_registry_create(rt_registry **out, base_alloc alloc, xlac_error *err) {
  rt_registry *r = base_malloc(alloc, sizeof *r);
  if (!r) return base_oom(err, "a custom-call registry");
  memset(r, 0, sizeof *r);
  r->alloc = alloc;
  *out = r;
  return 0;
}

void rt_registry_destroy(rt_registry *r) {
  if (!r) return;
  base_alloc alloc = r->alloc;
  for (uint32_t i = 0; i < r->entries.n; i++) base_free(alloc, r->entries.items[i].target);
  BASE_VEC_FREE(alloc, &r->entries);
  base_free(alloc, r);
}

/* Borrowed until the next entry is added. */
static registry_entry *registry_entry_of(const rt_registry *r, const char *target) {
  for (uint32_t i = 0; i < r->entries.n; i++) {
    if (strcmp(r->entries.items[i].target, target) == 0) return &r->entries.items[i];
  }
  return NULL;
}

/* Replaces an entry of that name. On failure the registry is as it was. */
static int registry_put(rt_registry *r, const char *target, registry_entry what, xlac_error *err) {
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

int rt_registry_add(rt_registry *r, const char *target, rt_custom_call_fn *fn, void *ctx, xlac_error *err) {
  assert(target && fn);
  return registry_put(r, target, (registry_entry){.fn = fn, .ctx = ctx}, err);
}

int rt_registry_add_native(rt_registry *r, const char *target, rt_native native, xlac_error *err) {
  assert(target && native.run);
  return registry_put(r, target, (registry_entry){.native = native}, err);
}

/* r may be NULL: nothing is registered. */
rt_custom_call_fn *rt_registry_find(const rt_registry *r, const char *target, void **ctx, rt_native *native) {
  registry_entry *e = r ? registry_entry_of(r, target) : NULL;
  if (!e) return NULL;
  *ctx = e->ctx;
  *native = e->native;
  return e->fn;
}
