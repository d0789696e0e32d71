/* Every sharding of a module through one function. */
#include "common.h"

typedef struct shc_mapper {
  ir_module *m;
  shc_map_fn *fn;
  void *ctx;
  base_map done; /* a sharding, a list of them, an attribute or a dictionary, to what became of it */
  bool failed;
} shc_mapper;

static const sdy_sharding *shc_map_one(shc_mapper *p, const sdy_sharding *s) {
  const sdy_sharding *to = base_map_ptr(&p->done, s);
  if (to) return to;
  to = p->fn(p->ctx, s);
  if (!to || !base_map_set(&p->done, base_key(s), base_key(to))) p->failed = true;
  return to;
}

static const sdy_shardings *shc_map_list(shc_mapper *p, const sdy_shardings *list) {
  const sdy_shardings *known = base_map_ptr(&p->done, list);
  if (known) return known;
  const sdy_sharding **v = NULL;
  for (uint32_t i = 0; i < list->n && !p->failed; i++) {
    const sdy_sharding *to = shc_map_one(p, list->v[i]);
    if (to == list->v[i]) continue;
    if (!v) v = base_arena_memdup(&p->m->arena, list->v, list->n * sizeof *v);
    if (v) v[i] = to;
    p->failed = p->failed || !v;
  }
  sdy_shardings *to = v ? BASE_NEW(&p->m->arena, sdy_shardings) : NULL;
  if (to) *to = (sdy_shardings){list->n, v};
  if ((v && !to) || !base_map_set(&p->done, base_key(list), base_key(v ? to : list))) p->failed = true;
  return v ? to : list;
}

/* The attribute with its sharding or shardings mapped; itself where none changes. */
static const ir_mattr *shc_map_attr(shc_mapper *p, const ir_mattr *a) {
  const ir_mattr *known = base_map_ptr(&p->done, a);
  if (known) return known;
  const void *to = a->v.sdy;
  if (a->sub == SDY_SHARDING) to = shc_map_one(p, a->v.sdy);
  if (a->sub == SDY_SHARDINGS) to = shc_map_list(p, a->v.sdy);
  if (to == a->v.sdy || p->failed) return a;
  const ir_mattr *made = sdy_attr(p->m, (sdy_kind)a->sub, to);
  p->failed = !made || !base_map_set(&p->done, base_key(a), base_key(made));
  return made;
}

/* The dictionary, changed where a sharding is. Keys stay, so the order does. `but`: a key to leave alone, or NULL. */
static const ir_mdict *shc_map_dict(shc_mapper *p, const ir_mdict *d, const char *but) {
  ir_mdict *to = d && !but ? base_map_ptr(&p->done, d) : NULL;
  if (to) return to;
  for (uint32_t i = 0; d && i < d->n && !p->failed; i++) {
    if (d->v[i].value->kind != IR_M_SDY || (but && strcmp(d->v[i].key->s, but) == 0)) continue;
    const ir_mattr *a = shc_map_attr(p, d->v[i].value);
    if (a == d->v[i].value || p->failed) continue;
    if (!to) to = base_arena_memdup(&p->m->arena, d, sizeof *d + d->n * sizeof *d->v);
    p->failed = !to;
    if (to) to->v[i].value = a;
  }
  if (to && !but && !base_map_set(&p->done, base_key(d), base_key(to))) p->failed = true;
  return to ? to : d;
}

static void shc_map_signature(shc_mapper *p, ir_computation *f) {
  for (uint32_t i = 0; i < f->n_params; i++) f->params[i]->mlir = shc_map_dict(p, f->params[i]->mlir, NULL);
  for (uint32_t i = 0; i < ir_function_results(f) && !p->failed; i++) {
    const ir_mdict *old = ir_result_attrs(f, i), *d = shc_map_dict(p, old, NULL);
    if (d != old && !ir_set_result_attrs(f, i, d)) p->failed = true;
  }
}

static int shc_map_op(void *ctx, ir_op *op) {
  shc_mapper *p = ctx;
  /* One on a computation, which has lists of its own, says nothing, and is nobody's to change. */
  bool own = op->opcode == IR_OP_SDY_NAMED_COMPUTATION || op->opcode == IR_OP_SDY_MANUAL_COMPUTATION;
  op->mlir = shc_map_dict(p, op->mlir, own ? "sdy.sharding" : NULL);
  return p->failed ? -XLAC_E_OUT_OF_MEMORY : 0;
}

int shc_map(ir_module *m, shc_map_fn *fn, void *ctx, xlac_error *err) {
  shc_mapper p = {.m = m, .fn = fn, .ctx = ctx};
  base_map_init(&p.done, m->alloc);
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_FUNCTION || c->owner || p.failed) continue;
    shc_map_signature(&p, c);
    if (shc_walk(c, false, shc_map_op, &p) != 0) p.failed = true;
  }
  base_map_free(&p.done);
  m->verified = IR_UNVERIFIED;
  return p.failed ? base_oom(err, "the shardings of a module") : 0;
}
