/* Computations: walking, reading, making, editing.
 *
 * Handles are the inner structs, so they stay valid as long as the module, also after removal: the arena
 * keeps what was removed, and `live` tells. Functions named _locked run under the module's lock. */
#include "../ir/names.h"
#include "api.h"

/* NULL in a module that has no computation yet. */
xlac_computation *xlac_module_entry(xlac_module *m) {
  assert(m);
  api_lock(m);
  xlac_computation *c = api_computation_out(m->ir->entry);
  api_unlock(m);
  return c;
}

int api_check_live_computation(const ir_computation *c, xlac_error *err) {
  if (api_computation_live(c)) return 0;
  return base_fail(err, XLAC_E_EDIT, "computation %s has been removed from the module", c->name->s);
}

/* Any live computation may be the entry; that it is called by nobody is for the verifier. */
static int set_entry_locked(xlac_module *m, ir_computation *c, xlac_error *err) {
  assert(c->module == m->ir);
  TRY(api_check_live_computation(c, err));
  ir_set_entry(m->ir, c);
  return 0;
}

int xlac_module_set_entry(xlac_module *m, xlac_computation *c, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  return api_done(m, set_entry_locked(m, api_computation(c), err));
}

/* NULL begins at the first one, and is the end. */
xlac_computation *xlac_computation_next(xlac_module *m, xlac_computation *c) {
  api_lock(m);
  ir_computation *next = c ? api_computation(c)->next : m->ir->first;
  api_unlock(m);
  return api_computation_out(next);
}

/* By exact name; a name that nobody has interned is nobody's, so most misses cost one lookup. */
xlac_computation *xlac_computation_find(xlac_module *m, const char *name) {
  xlac_computation *found = NULL;
  api_lock(m);
  const base_istr *s = name ? base_intern_find(&m->ir->strings, name, strlen(name)) : NULL;
  if (s) {
    IR_FOR_COMPUTATIONS(c, m->ir) {
      if (c->name == s && !found) found = api_computation_out(c);
    }
  }
  api_unlock(m);
  return found;
}

/* `name` as it is when nobody has it, else with a number. A string nobody has interned is the name of nothing. */
static const base_istr *fresh_computation_name(ir_module *ir, const char *name) {
  const base_istr *s = base_intern_find(&ir->strings, name, strlen(name));
  bool taken = false;
  if (s) {
    IR_FOR_COMPUTATIONS(c, ir) taken |= c->name == s;
  }
  return s && !taken ? s : ir_fresh_name(ir, name);
}

/* Empty, without a root: the module can't be printed or run before xlac_computation_set_root. The name is
 * made legal ("my op" becomes "my_op") and unique. */
static int create_computation_locked(xlac_computation **out, xlac_module *m, const char *name, xlac_error *err) {
  TRY(api_check_text(name, "the name", err));
  const base_istr *legal = ir_legal_name(m->ir, name, strlen(name));
  const base_istr *fresh = legal ? fresh_computation_name(m->ir, legal->s) : NULL;
  ir_computation *c = fresh ? ir_computation_new(m->ir, fresh->s, fresh->n) : NULL;
  if (c == NULL) return base_oom(err, "making a computation");
  *out = api_computation_out(c);
  return 0;
}

int xlac_computation_create(xlac_computation **out, xlac_module *m, const char *name, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  return api_done(m, create_computation_locked(out, m, name, err));
}

/* The op that calls c, or NULL. Searches the whole module: removal is rare, and computations keep no list
 * of their callers. */
static const ir_op *find_caller(const ir_module *ir, const ir_computation *c) {
  assert(ir && c);
  IR_FOR_COMPUTATIONS(other, ir) {
    IR_FOR_OPS(op, other) {
      for (uint32_t i = 0; i < op->n_called; i++)
        if (op->called[i] == c) return op;
    }
  }
  return NULL;
}

/* Only what nobody calls, and not the entry, can go. */
static int remove_computation_locked(xlac_module *m, ir_computation *c, xlac_error *err) {
  TRY(api_check_live_computation(c, err));
  if (c == m->ir->entry)
    return base_fail(err, XLAC_E_EDIT, "computation %s is the entry and can't be removed", c->name->s);
  const ir_op *caller = find_caller(m->ir, c);
  if (caller)
    return base_fail_at(err, XLAC_E_EDIT, caller->line, caller->col, caller->name->s,
                        "computation %s can't be removed: %s calls it", c->name->s, caller->name->s);
  ir_computation_remove(c);
  return 0;
}

int xlac_computation_remove(xlac_module *m, xlac_computation *c, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  return api_done(m, remove_computation_locked(m, api_computation(c), err));
}

bool xlac_computation_is_live(xlac_module *m, xlac_computation *c) {
  api_lock(m);
  bool live = api_computation_live(api_computation(c));
  api_unlock(m);
  return live;
}

const char *xlac_computation_name(xlac_module *m, xlac_computation *c) {
  api_lock(m);
  const char *name = api_computation(c)->name->s;
  api_unlock(m);
  return name;
}

static int rename_computation_locked(xlac_module *m, ir_computation *c, const char *name, xlac_error *err) {
  TRY(api_check_live_computation(c, err));
  TRY(api_check_name(name, "a computation", err));
  const base_istr *s = ir_intern(m->ir, name, strlen(name));
  if (s == NULL) return base_oom(err, "renaming a computation");
  IR_FOR_COMPUTATIONS(other, m->ir) {
    if (other != c && other->name == s)
      return base_fail(err, XLAC_E_DUPLICATE_NAME, "there is a computation named %s already", name);
  }
  ir_set_computation_name(c, s);
  return 0;
}

int xlac_computation_rename(xlac_module *m, xlac_computation *c, const char *name, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  return api_done(m, rename_computation_locked(m, api_computation(c), name, err));
}

uint32_t xlac_computation_op_count(xlac_module *m, xlac_computation *c) {
  api_lock(m);
  uint32_t n = api_computation(c)->n_ops;
  api_unlock(m);
  return n;
}

uint32_t xlac_computation_param_count(xlac_module *m, xlac_computation *c) {
  api_lock(m);
  uint32_t n = api_computation(c)->n_params;
  api_unlock(m);
  return n;
}

xlac_op *xlac_computation_param(xlac_module *m, xlac_computation *handle, uint32_t number) {
  const ir_computation *c = api_computation(handle);
  api_lock(m);
  ir_op *op = number < c->n_params ? c->params[number] : NULL;
  api_unlock(m);
  return api_op_out(op);
}

xlac_op *xlac_computation_root(xlac_module *m, xlac_computation *c) {
  api_lock(m);
  ir_op *op = ir_root(api_computation(c));
  api_unlock(m);
  return api_op_out(op);
}

/* The root decides the computation's result type. */
static int set_root_locked(ir_computation *c, ir_op *op, xlac_error *err) {
  TRY(api_check_live(op, err));
  if (op->parent != c)
    return base_fail_at(err, XLAC_E_EDIT, op->line, op->col, op->name->s, "%s is of computation %s, not of %s",
                        op->name->s, op->parent->name->s, c->name->s);
  return ir_set_root(c, op) ? 0 : base_oom(err, "setting a root");
}

int xlac_computation_set_root(xlac_module *m, xlac_computation *c, xlac_op *op, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  return api_done(m, set_root_locked(api_computation(c), api_op(op), err));
}

/* "main" where HLO's text has no execution_thread. */
const char *xlac_computation_thread(xlac_module *m, xlac_computation *handle) {
  const ir_computation *c = api_computation(handle);
  api_lock(m);
  const char *name = c->execution_thread ? c->execution_thread->s : "main";
  api_unlock(m);
  return name;
}

/* In the text the module was read from, from 1; 0 for what was made or imported. */
void xlac_computation_position(xlac_module *m, xlac_computation *handle, uint32_t *line, uint32_t *col) {
  assert(line && col);
  const ir_computation *c = api_computation(handle);
  api_lock(m);
  *line = c->line;
  *col = c->col;
  api_unlock(m);
}

/* --- Copying a computation, with what it calls, into another module (or its own). --- */

/* One import: old computations and ops to new ones. */
typedef struct import_map {
  ir_module *to;
  base_map map;
} import_map;

/* The name itself where it is free, else with a number behind it. NULL when out of memory. */
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
  if (copy && foreign) ir_set_name(copy, fresh);
  return copy && base_map_set(&im->map, base_key(op), base_key(copy));
}

/* In post-order: operands have their copies before their users ask for them. */
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

/* All that it calls has been imported. The parameters are ops like any, and keep their numbers. */
static int import_one(import_map *im, const ir_computation *from, xlac_error *err) {
  const char *name = name_for(im->to, from->name->s);
  ir_computation *to = name ? ir_computation_new(im->to, name, strlen(name)) : NULL;
  if (!to || !clone_ops(im, from, to)) return base_oom(err, "a copy of a computation");
  if (from->execution_thread) {
    const base_istr *thread = ir_intern(im->to, from->execution_thread->s, from->execution_thread->n);
    if (!thread) return base_oom(err, "a copy of a computation");
    ir_set_execution_thread(to, thread);
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

/* Both modules are locked in the order of their addresses, so that two imports in opposite directions
 * can't wait for each other. On failure neither is locked. */
static int lock_both(xlac_module *m, xlac_module *from, xlac_error *err) {
  if (m == from) return api_lock_edit(m, err);
  if (from < m) api_lock(from);
  int status = api_lock_edit(m, err);
  if (status != 0 && from < m) api_unlock(from);
  if (status == 0 && from > m) api_lock(from);
  return status;
}

/* The copy and its callees get fresh names. If this fails midway, copies made so far stay in the module as
 * computations that nobody calls. */
int xlac_computation_import(xlac_computation **out, xlac_module *m, xlac_module *from, xlac_computation *c,
                            xlac_error *err) {
  assert(out && m && from && c);
  TRY(lock_both(m, from, err));
  ir_computation *entry = m->ir->entry;
  import_map im = {.to = m->ir};
  base_map_init(&im.map, m->ir->alloc);
  int status = api_check_whole(from->ir, err);
  if (status == 0) status = api_check_live_computation(api_computation(c), err);
  if (status == 0) status = import_reachable(&im, from->ir, api_computation(c), err);
  if (status == 0) *out = api_computation_out(base_map_ptr(&im.map, api_computation(c)));
  ir_set_entry(m->ir,
               entry); /* the first computation of a module becomes its entry; an imported one is there to be called */
  base_map_free(&im.map);
  if (m != from) api_unlock(from);
  return api_done(m, status);
}
