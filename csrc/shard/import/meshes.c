/* Meshes: written in place or named, and the passes that turn one into the other. Named meshes are sdy.mesh ops, each
 * in a computation of its own that stands for the symbol. */
#include <stdio.h>

#include "../common/common.h"

/* sdy-lift-inlined-meshes: meshes written in place become named ones, of equal ones the first stays, and each says what
 * it is in StableHLO's words too (stablehlo.mesh).
 * Requires: nothing. Preserves: all but names of meshes. */

/* A mesh of the module, or a name that stood for one: what is called so now. */
typedef struct imp_mesh {
  const sdy_mesh *mesh; /* NULL: the row is for a name */
  const base_istr *old, *name;
  bool foreign; /* it was written in StableHLO's words, which Shardy keeps apart */
} imp_mesh;
BASE_VEC(imp_mesh_list, imp_mesh);

/* New mesh ops go after the last one that was there, so that meshes stay together at the front of the module. */
typedef struct imp_meshes {
  ir_module *m;
  shc_names names;
  imp_mesh_list rows;
  ir_computation *last; /* the mesh op that new ones go after; NULL: to the front */
} imp_meshes;

/* A linear search: programs have a handful of meshes. */
static const imp_mesh *imp_mesh_like(const imp_meshes *x, const sdy_mesh *mesh, bool foreign) {
  for (uint32_t i = 0; i < x->rows.n; i++) {
    const imp_mesh *row = &x->rows.items[i];
    if (row->mesh && row->foreign == foreign && sdy_mesh_equal(row->mesh, mesh)) return row;
  }
  return NULL;
}

/* What a name that went is called now, or NULL. */
static const base_istr *imp_mesh_renamed(const imp_meshes *x, const base_istr *old) {
  for (uint32_t i = 0; i < x->rows.n; i++)
    if (x->rows.items[i].old == old) return x->rows.items[i].name;
  return NULL;
}

static bool imp_mesh_note(imp_meshes *x, imp_mesh row) {
  return BASE_VEC_PUSH(x->m->alloc, &x->rows, row);
}

/* A mesh op for `mesh`. NULL when out of memory.
 * Names are Shardy's: maximal_mesh_<device>, empty_mesh, else mesh, mesh_0, ... */
static const base_istr *imp_mesh_make(imp_meshes *x, const sdy_mesh *mesh, bool foreign) {
  char stem[48] = "mesh";
  if (sdy_mesh_is_maximal(mesh)) snprintf(stem, sizeof stem, "maximal_mesh_%lld", (long long)mesh->ids[0]);
  if (sdy_mesh_is_empty(mesh) && !foreign) strcpy(stem, "empty_mesh");
  const base_istr *name = shc_fresh(&x->names, stem, strlen(stem));
  ir_computation *c = shc_make_mesh(x->m, name, mesh, x->last ? x->last->next : NULL);
  if (!c) return NULL;
  x->last = c;
  return imp_mesh_note(x, (imp_mesh){mesh, NULL, name, foreign}) ? name : NULL;
}

/* By name now: an inlined mesh and a name together would be two answers. */
static const sdy_sharding *imp_mesh_rename(ir_module *m, const sdy_sharding *s, const base_istr *name) {
  sdy_sharding *to = base_arena_memdup(&m->arena, s, sizeof *s);
  if (!to) return NULL;
  to->mesh_name = name;
  to->mesh = NULL;
  return to;
}

/* A mesh written in place is looked up among all there are, named ones of the program too. */
static const sdy_sharding *imp_mesh_map(void *ctx, const sdy_sharding *s) {
  assert(s->mesh_name || s->mesh);
  imp_meshes *x = ctx;
  if (s->mesh_name) {
    const base_istr *renamed = imp_mesh_renamed(x, s->mesh_name);
    return renamed ? imp_mesh_rename(x->m, s, renamed) : s;
  }
  const imp_mesh *row = imp_mesh_like(x, s->mesh, false);
  const base_istr *name = row ? row->name : imp_mesh_make(x, s->mesh, false);
  return name ? imp_mesh_rename(x->m, s, name) : NULL;
}

static bool imp_is_mesh(const ir_computation *c) {
  return c->kind == IR_SYMBOL && c->first && c->first->opcode == IR_OP_SDY_MESH;
}

/* Takes a note of the meshes there are; equal ones go. */
static bool imp_meshes_find(imp_meshes *x) {
  for (ir_computation *c = x->m->first, *next = NULL; c; c = next) {
    next = c->next;
    if (!imp_is_mesh(c)) continue;
    const sdy_mesh *mesh = sdy_of(ir_mattr_of(c->first, "mesh"), SDY_MESH);
    const base_istr *name = ir_mattr_of(c->first, "sym_name")->str;
    const imp_mesh *row = imp_mesh_like(x, mesh, false);
    imp_mesh note = row ? (imp_mesh){NULL, name, row->name, false} : (imp_mesh){mesh, NULL, name, false};
    if (!imp_mesh_note(x, note)) return false;
    if (!row) x->last = c;
    if (!row) continue;
    ir_computation_remove(c);
  }
  return true;
}

/* --- meshes of replica groups --- */

/* #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>]>. NULL when out of memory. */
static const sdy_mesh *imp_foreign_mesh(ir_module *m, const ir_mattr *a) {
  const ir_mattr *list = ir_m_field(a, "axes");
  uint32_t n = list && list->kind == IR_M_ARRAY ? list->v.list->n : 0;
  sdy_mesh *mesh = BASE_NEW(&m->arena, sdy_mesh);
  sdy_mesh_axis *axes = BASE_ARRAY(&m->arena, sdy_mesh_axis, n + (size_t)1);
  if (!mesh || !axes) return NULL;
  *mesh = (sdy_mesh){.axes = axes};
  for (uint32_t i = 0; i < n; i++) {
    const ir_mattr *name = ir_m_field(list->v.list->v[i], "name"), *size = ir_m_field(list->v.list->v[i], "size");
    if (name && name->str && size && size->kind == IR_M_INTEGER)
      axes[mesh->n_axes++] = (sdy_mesh_axis){name->str, size->v.i};
  }
  return mesh;
}

/* The name that groups on `mesh` should have it by, or NULL where they have that already. */
static int imp_groups_mesh(imp_meshes *x, const ir_mattr *mesh, const base_istr **out, xlac_error *err) {
  const sdy_mesh *own = sdy_of(mesh, SDY_MESH);
  bool foreign = mesh->kind == IR_M_STRUCT && strcmp(mesh->name, "mesh") == 0;
  *out = NULL;
  if (mesh->kind == IR_M_SYMBOL) *out = imp_mesh_renamed(x, mesh->v.list->v[0]->str);
  if (!own && !foreign) return 0;
  if (foreign && !(own = imp_foreign_mesh(x->m, mesh))) return base_oom(err, "sdy-lift-inlined-meshes");
  const imp_mesh *row = imp_mesh_like(x, own, foreign);
  *out = row ? row->name : imp_mesh_make(x, own, foreign);
  return *out ? 0 : base_oom(err, "sdy-lift-inlined-meshes");
}

/* #stablehlo.replica_group_mesh_axes: replica groups said by axes of a mesh, which may be written in place too. */
static int imp_groups_lift(imp_meshes *x, ir_op *op, xlac_error *err) {
  const ir_mattr *groups = ir_mattr_of(op, "replica_groups");
  const ir_mattr *mesh = groups && groups->kind == IR_M_STRUCT ? ir_m_field(groups, "mesh") : NULL;
  const base_istr *name = NULL;
  if (!mesh) return 0;
  TRY(imp_groups_mesh(x, mesh, &name, err));
  if (!name) return 0;
  const ir_mentry fields[] = {{ir_intern(x->m, "mesh", 4), ir_m_symbol(x->m, name->s, name->n)},
                              {ir_intern(x->m, "axes", 4), ir_m_field(groups, "axes")}};
  bool ok = fields[0].key && fields[0].value && fields[1].key && fields[1].value;
  const ir_mattr *to = ok ? ir_m_struct(x->m, "stablehlo", groups->name, 2, fields) : NULL;
  return to && ir_m_set(op, "replica_groups", to) ? 0 : base_oom(err, "sdy-lift-inlined-meshes");
}

/* Kind by kind, as Shardy does: that is the order of new names. */
static int imp_lift_groups(imp_meshes *x, xlac_error *err) {
  static const ir_opcode kinds[] = {IR_OP_ALL_GATHER, IR_OP_ALL_REDUCE, IR_OP_REDUCE_SCATTER, IR_OP_ALL_TO_ALL,
                                    IR_OP_COLLECTIVE_BROADCAST};
  for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (!shc_has(x->m, kinds[i])) continue;
    IR_FOR_COMPUTATIONS(c, x->m)
    IR_FOR_OPS(op, c)
    if (op->opcode == kinds[i]) TRY(imp_groups_lift(x, op, err));
  }
  return 0;
}

/* --- */

/* {axes = [{name = "x", size = 2 : i64}], device_ids = dense<...>} */
static const ir_mattr *imp_mesh_words(ir_module *m, const sdy_mesh *mesh) {
  const ir_mattr **axes = BASE_ARRAY(&m->arena, const ir_mattr *, (size_t)mesh->n_axes + 1);
  if (!axes) return NULL;
  for (uint32_t i = 0; i < mesh->n_axes; i++) {
    const base_istr *name = mesh->axes[i].name;
    const ir_mentry entries[] = {{ir_intern(m, "name", 4), ir_m_string(m, name->s, name->n)},
                                 {ir_intern(m, "size", 4), ir_m_i64(m, mesh->axes[i].size)}};
    if (!entries[0].key || !entries[1].key || !entries[0].value || !entries[1].value) return NULL;
    axes[i] = ir_m_dict(m, ir_mdict_make(m, 2, entries));
    if (!axes[i]) return NULL;
  }
  int64_t n = mesh->n_ids;
  const ir_mentry entries[] = {{ir_intern(m, "axes", 4), ir_m_array(m, mesh->n_axes, axes)},
                               {ir_intern(m, "device_ids", 10), n ? ir_m_dense_i64(m, 1, &n, mesh->ids) : NULL}};
  if (!entries[0].key || !entries[1].key || !entries[0].value || (n && !entries[1].value)) return NULL;
  return ir_m_dict(m, ir_mdict_make(m, n ? 2 : 1, entries));
}

/* Only meshes that do not say so yet: the pass can run twice. */
static bool imp_meshes_describe(ir_module *m) {
  IR_FOR_COMPUTATIONS(c, m) {
    if (!imp_is_mesh(c) || ir_mattr_of(c->first, "stablehlo.mesh")) continue;
    const ir_mattr *words = imp_mesh_words(m, sdy_of(ir_mattr_of(c->first, "mesh"), SDY_MESH));
    if (!words || !ir_m_set(c->first, "stablehlo.mesh", words)) return false;
  }
  return true;
}

int shard_lift_inlined_meshes(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  imp_meshes x = {.m = m};
  bool ok = imp_meshes_find(&x);
  ok = shc_names_init(&x.names, m) && ok; /* names of meshes that have gone are free again */
  int status = ok ? shc_map(m, imp_mesh_map, &x, err) : base_oom(err, "sdy-lift-inlined-meshes");
  if (status == 0) status = imp_lift_groups(&x, err);
  if (status == 0 && !imp_meshes_describe(m)) status = base_oom(err, "sdy-lift-inlined-meshes");
  BASE_VEC_FREE(m->alloc, &x.rows);
  shc_names_free(&x.names);
  return status;
}

/* sdy-inline-meshes: shardings hold their meshes, and no mesh has a name any more.
 * Requires: nothing else that names meshes; replica groups would be left without theirs, which is an error. Preserves:
 * all else. */

/* A name that no mesh has stays: the verifier names the place. */
static const sdy_sharding *exp_inline_map(void *ctx, const sdy_sharding *s) {
  ir_module *m = ctx;
  const sdy_mesh *mesh = s->mesh_name ? sdy_mesh_named(m, s->mesh_name) : NULL;
  if (!mesh) return s;
  sdy_sharding *to = base_arena_memdup(&m->arena, s, sizeof *s);
  if (!to) return NULL;
  to->mesh_name = NULL;
  to->mesh = mesh;
  return to;
}

int shard_inline_meshes(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  TRY(shc_map(m, exp_inline_map, m, err));
  shc_drop_meshes(m);
  return shc_verify(m, err);
}
