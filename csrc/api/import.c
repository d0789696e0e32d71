/* Copying a computation, with what it calls, into another module (or its own). */
#include "api.h"

/* One import: old computations and ops to new ones. */
typedef struct import_map {
  ir_module *to;
  base_map map;
} import_map;

static const char *name_for(ir_module *to, const char *name) {
  const base_istr *fresh = ir_fresh_name(to, name);
  return fresh ? fresh->s : NULL;
}

/* The names of another module's ops may be taken here; within a module, cloning renames by itself. */
static bool clone_op(import_map *im, const ir_op *op, ir_computation *to) {
  bool foreign = op->parent->module != im->to;
  const base_istr *fresh = foreign ? ir_fresh_name(im->to, op->name->s) : NULL;
  if (foreign && fresh == NULL) return false;
  ir_op *copy = ir_op_clone(op, to, &im->map);
  if (copy && foreign) copy->name = fresh;
  return copy && base_map_set(&im->map, base_key(op), base_key(copy));
}

static bool clone_ops(import_map *im, const ir_computation *from, ir_computation *to) {
  base_arena scratch;
  base_arena_init(&scratch, im->to->alloc);
  uint32_t n = 0;
  ir_op **order = ir_post_order(from, &scratch, &n);
  bool ok = order != NULL;
  for (uint32_t i = 0; ok && i < n; i++) ok = clone_op(im, order[i], to);
  base_arena_free(&scratch);
  return ok;
}

static int import_one(import_map *im, const ir_computation *from, xlac_error *err) {
  const char *name = name_for(im->to, from->name->s);
  ir_computation *to = name ? ir_computation_new(im->to, name, strlen(name)) : NULL;
  if (!to || !clone_ops(im, from, to)) return base_oom(err, "a copy of a computation");
  if (from->execution_thread) {
    to->execution_thread = ir_intern(im->to, from->execution_thread->s, from->execution_thread->n);
    if (!to->execution_thread) return base_oom(err, "a copy of a computation");
  }
  to->hidden = from->hidden;
  ir_op *root = base_map_ptr(&im->map, ir_root(from));
  if (!root || !ir_set_root(to, root)) return base_oom(err, "a copy of a computation");
  return base_map_set(&im->map, base_key(from), base_key(to)) ? 0 : base_oom(err, "a copy of a computation");
}

/* Callees first, so that every called computation has its copy; calls can't be cyclic in a verified module, and the
 * order's search ends on any. */
static int import_reachable(import_map *im, const ir_module *from, const ir_computation *c, xlac_error *err) {
  base_arena scratch;
  base_arena_init(&scratch, im->to->alloc);
  base_map needed;
  base_map_init(&needed, im->to->alloc);
  uint32_t n = 0;
  ir_computation **order = ir_computation_order(from, &scratch, &n);
  int status = order ? 0 : base_oom(err, "an order of computations");
  bool ok = base_map_set(&needed, base_key(c), 1);
  for (uint32_t i = n; status == 0 && ok && i-- > 0;) {
    uint64_t want;
    if (!base_map_get(&needed, base_key(order[i]), &want)) continue;
    IR_FOR_OPS(op, order[i]) {
      for (uint32_t k = 0; k < op->n_called; k++) ok = ok && base_map_set(&needed, base_key(op->called[k]), 1);
    }
  }
  for (uint32_t i = 0; status == 0 && ok && i < n; i++) {
    uint64_t want;
    if (base_map_get(&needed, base_key(order[i]), &want)) status = import_one(im, order[i], err);
  }
  base_map_free(&needed);
  base_arena_free(&scratch);
  if (status == 0 && !ok) status = base_oom(err, "a table of computations");
  return status;
}

/* Both modules are locked in the order of their addresses, so that two imports in opposite directions can't wait for
 * each other. */
static int lock_both(xlac_module *m, xlac_module *from, xlac_error *err) {
  if (m == from) return api_lock_edit(m, err);
  if (from < m) api_lock(from);
  int status = api_lock_edit(m, err);
  if (status != 0 && from < m) api_unlock(from);
  if (status == 0 && from > m) api_lock(from);
  return status;
}

int xlac_computation_import(xlac_computation **out, xlac_module *m, xlac_module *from, xlac_computation *c,
                            xlac_error *err) {
  TRY(lock_both(m, from, err));
  ir_computation *entry = m->ir->entry;
  import_map im = {.to = m->ir};
  base_map_init(&im.map, m->ir->alloc);
  int status = api_check_whole(from->ir, err);
  if (status == 0) status = api_check_live_computation(api_computation(c), err);
  if (status == 0) status = import_reachable(&im, from->ir, api_computation(c), err);
  if (status == 0) *out = api_computation_out(base_map_ptr(&im.map, api_computation(c)));
  m->ir->entry = entry; /* the first computation of a module becomes its entry; an imported one is there to be called */
  base_map_free(&im.map);
  if (m != from) api_unlock(from);
  return api_done(m, status);
}
