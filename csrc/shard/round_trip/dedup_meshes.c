/* xla-sdy-round-trip-dedup-meshes: of meshes with the same devices in the same order one stays, with the most axes that
 * have names (those XLA makes up begin with "_"); shardings on the others name its axes, or parts of them.
 * Requires: nothing. Preserves: what every device has. */
#include "round_trip.h"

/* A mesh that goes: for each of its axes, those of the mesh that stays. */
typedef struct trip_same {
  const base_istr *name;
  const sdy_mesh *mesh;
  const base_istr *main_name;
  const sdy_mesh *main; /* NULL: this one stays */
  sdy_axes *axes;       /* by axis of `mesh` */
} trip_same;
BASE_VEC(trip_sames, trip_same);
typedef struct trip_dedup {
  ir_module *m;
  trip_sames rows;
  base_map named; /* meshes that ops name by themselves, as groups of devices may */
} trip_dedup;

/* XLA's importer names axes "_axis_0", ... */
static bool trip_made_up(const sdy_mesh *mesh) {
  return mesh->n_axes && mesh->axes[0].name->s[0] == '_';
}

/* Axes of size 1 say nothing of devices. */
static uint32_t trip_real_axes(const sdy_mesh *mesh) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < mesh->n_axes; i++) n += mesh->axes[i].size > 1;
  return n;
}

/* The same devices in the same order, however they are cut into axes. */
static bool trip_same_devices(const sdy_mesh *a, const sdy_mesh *b) {
  if (!a->n_axes != !b->n_axes || a->n_ids != b->n_ids || sdy_mesh_size(a) != sdy_mesh_size(b)) return false;
  return a->n_ids == 0 || memcmp(a->ids, b->ids, a->n_ids * sizeof *a->ids) == 0;
}

/* The sizes, ones left out. */
static uint32_t trip_sizes(const sdy_mesh *mesh, int64_t *out) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < mesh->n_axes && n < TRIP_MAX_AXES; i++)
    if (mesh->axes[i].size > 1) out[n++] = mesh->axes[i].size;
  return n;
}

/* Where a piece of the mesh's devices is: it goes from `pre` on for `size` in axis `at`. */
static sdy_axis trip_next_piece(const sdy_mesh *mesh, uint32_t *at, int64_t *pre, int64_t size) {
  assert(*at < mesh->n_axes && size > 1);
  while (mesh->axes[*at].size == 1) ++*at;
  sdy_axis axis = {.name = mesh->axes[*at].name};
  if (size < mesh->axes[*at].size) axis = (sdy_axis){axis.name, *pre, size};
  *pre *= size;
  if (*pre == mesh->axes[*at].size) {
    ++*at;
    *pre = 1;
  }
  return axis;
}

/* The axes of `row` in terms of those of its main mesh: both are cut into common pieces, and each piece has a name in
 * either. With <["a"=4, "b"=2]> as main, <["x"=8]> is x = ["a", "b"]; with <["x"=8]> as main a = ["x":(1)4], b =
 * ["x":(4)2]. false: they do not go together (or no memory, *failed). */
static bool trip_map_mesh(trip_dedup *x, trip_same *row, bool *failed) {
  assert(row->main != NULL);
  int64_t a[TRIP_MAX_AXES], b[TRIP_MAX_AXES], cut[TRIP_MAX_AXES], pre = 1, main_pre = 1;
  uint32_t n = trip_common_cut(trip_sizes(row->mesh, a), a, trip_sizes(row->main, b), b, cut), at = 0, main_at = 0;
  row->axes = base_arena_zalloc(&x->m->arena, ((size_t)row->mesh->n_axes + 1) * sizeof *row->axes);
  *failed = !row->axes;
  if (!n && row->mesh->n_axes && sdy_mesh_size(row->mesh) > 1) return false;
  for (uint32_t i = 0; i < n && !*failed;) {
    sdy_axis list[TRIP_MAX_AXES];
    uint32_t k = 0;
    while (row->mesh->axes[at].size == 1) at++;
    uint32_t axis = at;
    while (i < n && at == axis) {
      list[k++] = trip_next_piece(row->main, &main_at, &main_pre, cut[i]);
      (void)trip_next_piece(row->mesh, &at, &pre, cut[i++]);
    }
    *failed = !sdy_axes_make(x->m, (sdy_axes){k, list}, &row->axes[axis]);
  }
  return !*failed;
}

/* The row of a mesh that goes; NULL for one that stays. */
static const trip_same *trip_same_of(const trip_dedup *x, const base_istr *name) {
  for (uint32_t i = 0; i < x->rows.n; i++)
    if (x->rows.items[i].name == name) return x->rows.items[i].main ? &x->rows.items[i] : NULL;
  return NULL;
}

/* `old`, of row's mesh, after those in v, merged where they meet. UINT32_MAX: it is cut as no axes of the main are. */
static uint32_t trip_same_axis(const trip_same *row, sdy_axis old, sdy_axis *v, uint32_t n) {
  int at = sdy_mesh_find(row->mesh, old.name);
  int64_t before = old.size ? old.pre : 1, left = old.size ? old.size : sdy_axis_size(old, row->mesh);
  sdy_axes parts = at < 0 ? (sdy_axes){0, NULL} : row->axes[at];
  for (uint32_t i = 0; i < parts.n && left > 1; i++) {
    int64_t size = sdy_axis_size(parts.v[i], row->main);
    assert(size > 0);
    if (before >= size) {
      if (before % size) return UINT32_MAX;
      before /= size;
      continue;
    }
    int64_t take = size / before < left ? size / before : left;
    if (size % before || left % take || (size / before) % take) return UINT32_MAX;
    int64_t start = before * sdy_axis_pre(parts.v[i]);
    n = sdy_axes_append(v, n, sdy_axis_span(parts.v[i].name, start, start * take, row->main), row->main);
    before = 1;
    left /= take;
  }
  return n;
}

/* Replaces the list by one on the main mesh. false: it can't be said there. */
static bool trip_same_axes(trip_dedup *x, const trip_same *row, sdy_axes *axes) {
  sdy_axis v[4 * TRIP_MAX_AXES];
  uint32_t n = 0;
  for (uint32_t i = 0; i < axes->n && n < 3 * TRIP_MAX_AXES; i++) {
    n = trip_same_axis(row, axes->v[i], v, n);
    if (n == UINT32_MAX) return false;
  }
  return sdy_axes_make(x->m, (sdy_axes){n, v}, axes);
}

/* Called for each sharding of the module once (shc_map). */
static const sdy_sharding *trip_same_sharding(void *ctx, const sdy_sharding *s) {
  trip_dedup *x = ctx;
  const trip_same *row = s->mesh_name ? trip_same_of(x, s->mesh_name) : NULL;
  if (!row) return s;
  sdy_sharding to = *s;
  sdy_dim *dims = base_arena_memdup(&x->m->arena, s->dims, ((size_t)s->n_dims) * sizeof *dims);
  if (s->n_dims && !dims) return NULL;
  to.mesh_name = row->main_name;
  to.dims = dims;
  bool ok = trip_same_axes(x, row, &to.replicated) && trip_same_axes(x, row, &to.unreduced);
  for (uint32_t d = 0; ok && d < s->n_dims; d++) ok = trip_same_axes(x, row, &dims[d].axes);
  return ok ? sdy_sharding_make(x->m, &to) : s; /* what can't be said there is left: its mesh stays then */
}

/* The mesh that a manual computation's shardings are on. */
static const base_istr *trip_manual_mesh(const ir_op *op) {
  const char *const keys[] = {"in_shardings", "out_shardings"};
  for (uint32_t k = 0; k < 2; k++) {
    const sdy_shardings *list = sdy_of(ir_mattr_of(op, keys[k]), SDY_SHARDINGS);
    for (uint32_t i = 0; list && i < list->n; i++)
      if (list->v[i]->mesh_name) return list->v[i]->mesh_name;
  }
  return NULL;
}

/* Manual axes are whole axes: parts of one axis are named once. */
static int trip_same_manual(void *ctx, ir_op *op) {
  trip_dedup *x = ctx;
  if (op->opcode != IR_OP_SDY_MANUAL_COMPUTATION) return 0;
  const base_istr *mesh = trip_manual_mesh(op);
  const trip_same *row = mesh ? trip_same_of(x, mesh) : NULL;
  const sdy_names *old = sdy_of(ir_mattr_of(op, "manual_axes"), SDY_MANUAL_AXES);
  const base_istr *v[TRIP_MAX_AXES];
  uint32_t n = 0;
  for (uint32_t i = 0; row && i < old->n; i++) {
    int at = sdy_mesh_find(row->mesh, old->v[i]);
    for (uint32_t k = 0; at >= 0 && k < row->axes[at].n; k++) {
      sdy_axis a = row->axes[at].v[k];
      if (n < TRIP_MAX_AXES && (n == 0 || v[n - 1] != a.name)) v[n++] = a.name;
    }
  }
  const sdy_names *to = row ? sdy_names_make(x->m, n, v) : NULL;
  return !row || (to && ir_m_set(op, "manual_axes", sdy_attr(x->m, SDY_MANUAL_AXES, to))) ? 0 : -XLAC_E_OUT_OF_MEMORY;
}

/* A row for each mesh op, in text order. */
static bool trip_find_meshes(trip_dedup *x) {
  IR_FOR_COMPUTATIONS(c, x->m) {
    if (c->kind != IR_SYMBOL || !c->first || c->first->opcode != IR_OP_SDY_MESH) continue;
    trip_same row = {.name = ir_mattr_of(c->first, "sym_name")->str,
                     .mesh = sdy_of(ir_mattr_of(c->first, "mesh"), SDY_MESH)};
    if (!BASE_VEC_PUSH(x->m->alloc, &x->rows, row)) return false;
  }
  return true;
}

/* The row that stays for the devices of row i: names that people chose before those made up, then the most axes, then
 * the first in the text. */
static const trip_same *trip_main_of(const trip_dedup *x, uint32_t i) {
  assert(i < x->rows.n);
  const trip_same *best = NULL;
  for (uint32_t k = 0; k < x->rows.n; k++) {
    const trip_same *row = &x->rows.items[k];
    if (!trip_same_devices(row->mesh, x->rows.items[i].mesh)) continue;
    bool fake = trip_made_up(row->mesh), best_fake = best && trip_made_up(best->mesh);
    if (!best || (!fake && best_fake) || (fake == best_fake && trip_real_axes(row->mesh) > trip_real_axes(best->mesh)))
      best = row;
  }
  return best;
}

/* A mesh that can't be mapped stays, with the shardings on it. */
static bool trip_map_meshes(trip_dedup *x) {
  for (uint32_t i = 0; i < x->rows.n; i++) {
    trip_same *row = &x->rows.items[i];
    const trip_same *best = trip_main_of(x, i);
    bool failed = false;
    if (best == row) continue;
    row->main = best->mesh;
    row->main_name = best->name;
    if (!trip_map_mesh(x, row, &failed)) row->main = NULL;
    if (failed) return false;
  }
  return true;
}

/* Out of memory is noted by m = NULL, for the callback has no status. */
static void trip_note_named(void *ctx, const base_istr *name) {
  trip_dedup *x = ctx;
  if (!base_map_set(&x->named, base_key(name), 1)) x->m = NULL;
}

/* What still names a mesh keeps it. */
static const sdy_sharding *trip_note_sharding(void *ctx, const sdy_sharding *s) {
  trip_dedup *x = ctx;
  return !s->mesh_name || base_map_set(&x->named, base_key(s->mesh_name), 1) ? s : NULL;
}

/* Only duplicates go, and only where no symbol reference outside shardings names them. */
static int trip_drop_meshes(trip_dedup *x, xlac_error *err) {
  ir_module *m = x->m;
  uint64_t named;
  IR_FOR_COMPUTATIONS(c, m) IR_FOR_OPS(op, c) opt_for_symbols(op, trip_note_named, x);
  if (!x->m) return base_oom(err, "xla-sdy-round-trip-dedup-meshes");
  TRY(shc_map(m, trip_note_sharding, x, err));
  for (ir_computation *c = m->first, *next = NULL; c; c = next) {
    next = c->next;
    const ir_mattr *name = c->kind == IR_SYMBOL && c->first && c->first->opcode == IR_OP_SDY_MESH
                               ? ir_mattr_of(c->first, "sym_name")
                               : NULL;
    if (!name || !trip_same_of(x, name->str) || base_map_get(&x->named, base_key(name->str), &named)) continue;
    ir_computation_remove(c);
  }
  return 0;
}

/* Manual axes first: names of axes in them are those of the mesh that is about to go. */
int shard_dedup_meshes(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  trip_dedup x = {.m = m};
  base_map_init(&x.named, m->alloc);
  bool ok = trip_find_meshes(&x) && trip_map_meshes(&x);
  int status = ok ? shc_walk_module(m, false, trip_same_manual, &x) : -XLAC_E_OUT_OF_MEMORY;
  if (status != 0) status = base_oom(err, "xla-sdy-round-trip-dedup-meshes");
  if (status == 0) status = shc_map(m, trip_same_sharding, &x, err);
  if (status == 0) status = trip_drop_meshes(&x, err);
  base_map_free(&x.named);
  BASE_VEC_FREE(m->alloc, &x.rows);
  return status == 0 ? shc_verify(m, err) : status;
}
