/* Bodies of functions, imported once and kept. */
#include "../cluster/pass.h"

const char *tf_refusal_text(tf_refusal why) {
  static const char *const texts[] = {
#define REFUSAL(name, text) text,
#include "../cluster/refusals.def"
#undef REFUSAL
  };
  assert(why < sizeof texts / sizeof *texts);
  return texts[why];
}

void tf_bodies_init(tf_bodies *b, tf_graph_def *def) {
  *b = (tf_bodies){.def = def, .alloc = def->arena.alloc};
  base_map_init(&b->by_function, b->alloc);
  base_map_init(&b->verdicts, b->alloc);
  base_map_init(&b->constants, b->alloc);
}

void tf_bodies_free(tf_bodies *b) {
  for (uint32_t i = 0; i < b->by_function.cap; i++) {
    if (b->by_function.slots[i].key == 0) continue;
    tf_graph *g = (tf_graph *)(uintptr_t)b->by_function.slots[i].value;
    if (!g) continue;
    tf_graph_free(g);
    base_free(b->alloc, g);
  }
  base_map_free(&b->by_function);
  base_map_free(&b->verdicts);
  base_map_free(&b->constants);
}

/* A body that can't be read is one that can't be compiled; only running out of memory is an error here. */
static int tf_import_body(tf_bodies *b, const tf_function *fn, tf_attrs call, tf_graph **out, xlac_error *err) {
  xlac_error why = {.code = 0};
  tf_graph *g = base_malloc(b->alloc, sizeof *g);
  *out = NULL;
  if (!g) return base_oom(err, "reading a function");
  int status = tf_graph_import_function(g, b->def, fn, call, &why);
  if (status == 0) {
    *out = g;
    return 0;
  }
  base_free(b->alloc, g);
  return status == -XLAC_E_OUT_OF_MEMORY ? base_oom(err, "reading a function") : 0;
}

int tf_body_fails(tf_bodies *b, const tf_function *fn, tf_attrs call, xlac_error *err) {
  tf_graph g;
  TRY(tf_graph_import_function(&g, b->def, fn, call, err));
  tf_graph_free(&g);
  return 0;
}

const tf_function *tf_bodies_find(const tf_bodies *b, base_slice name) {
  const base_istr *known = base_intern_find(&b->def->strings, name.p, name.n);
  return known ? tf_find_function(b->def, known) : NULL;
}

static uint64_t tf_mix(uint64_t hash, base_slice s) {
  for (size_t i = 0; i < s.n; i++) hash = (hash ^ (uint8_t)s.p[i]) * 0x100000001B3u;
  return hash;
}

uint64_t tf_call_key(const tf_function *fn, tf_attrs call) {
  uint64_t hash = 0xCBF29CE484222325u;
  if (!(fn->signature->flags & TF_OP_OPEN)) return base_key(fn);
  for (uint32_t i = 0; i < call.n; i++) {
    hash = tf_mix(hash, (base_slice){call.v[i].key->s, call.v[i].key->n});
    hash = tf_mix(hash, call.v[i].value);
  }
  return hash ^ base_key(fn);
}

int tf_body_of(tf_bodies *b, const tf_function *fn, tf_attrs call, const tf_graph **out, xlac_error *err) {
  uint64_t known = 0, key = tf_call_key(fn, call);
  if (base_map_get(&b->by_function, key, &known)) {
    *out = (const tf_graph *)(uintptr_t)known;
    return 0;
  }
  tf_graph *g = NULL;
  *out = NULL;
  TRY(tf_import_body(b, fn, call, &g, err));
  if (!base_map_set(&b->by_function, key, base_key(g))) {
    if (g) tf_graph_free(g);
    base_free(b->alloc, g);
    return base_oom(err, "reading a function");
  }
  *out = g;
  return 0;
}
