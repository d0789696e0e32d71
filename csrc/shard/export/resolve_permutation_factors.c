/* sdy-resolve-permutation-factors: dimensions along which an op moves data (slices, paddings, windows, reversals) need
 * data of other devices when they are sharded. Reversals exchange it; all other ops get such dimensions whole, and
 * reshards around them.
 * Requires: one sharding for every op (sdy-insert-explicit-reshards). Preserves: what the program computes. Source:
 * Shardy's answers (2026-06): newer ones exchange more. */
#include "../common/common.h"
#include "../reshard/explicit.h"
#include "../../base/list.h"

typedef struct perm_mesh {
  const sdy_mesh *mesh;
  const base_istr *name;
} perm_mesh;
BASE_VEC(perm_meshes, perm_mesh);
/* The explicit-reshard machinery (reshard/explicit.h) with other choices: shardings are given up along permutation
 * factors rather than made compatible. */
typedef struct perm_pass {
  explicit_pass e;
  shc_names names;    /* of symbols, for new meshes */
  perm_meshes meshes; /* of the module, those made here too */
} perm_pass;

/* A reverse of sharded dimensions, for sdy-resolve-permutation-factors: every device reverses its own part, on a mesh
 * whose devices stand the other way round. Where a dimension does not divide, it is padded at its end first, and each
 * device gives its neighbour as many elements as were padded, so that the padding ends where the reverse puts it last.
 * Source: Shardy's answers (2026-06), but for pairs of devices, which here are those of the whole mesh. */

enum { PERM_MAX_DEVICES = 1 << 20 };

/* 10 elements over 4 devices, a reverse of the only dimension:
 *    padded to 12, 3 each    [0 1 2] [3 4 5] [6 7 8] [9 . .]
 *    the last 2 to the next  [. . 0] [1 2 3] [4 5 6] [7 8 9]
 *    mirrored and reversed   [9 8 7] [6 5 4] [3 2 1] [0 . .]
 *    cut to 10               [9 8 7] [6 5 4] [3 2 1] [0] */
typedef struct permrev {
  perm_pass *p;
  ir_op *op;
  const sdy_sharding *s;
  const sdy_mesh *mesh;
  const ir_type *type;
  int64_t n_devices;
  uint32_t n_axes; /* that shard reversed dimensions */
  sdy_axis *axes;
  bool uneven;
  bool padded[IR_MAX_RANK];  /* dimensions that get padding, */
  int64_t dims[IR_MAX_RANK]; /* and the sizes they have then */
  uint32_t n_manual;
  const base_istr **manual; /* axes of those, in the order of the mesh */
} permrev;

/* How many parts dimension d is in. */
static int64_t permrev_shards(const permrev *x, uint32_t d) {
  assert(d < x->s->n_dims);
  return sdy_axes_size(x->s->dims[d].axes, x->mesh);
}

/* Dimensions and axes; false: more padding than a device has elements, so that one neighbour is not enough. */
static bool permrev_read(permrev *x, const int64_t *reversed, uint32_t n) {
  for (uint32_t d = 0; d < x->type->rank; d++) {
    x->dims[d] = x->type->dims[d];
    int64_t shards = permrev_shards(x, d);
    if (!base_list_has(reversed, n, d) || shards <= 1) continue;
    for (uint32_t i = 0; i < x->s->dims[d].axes.n; i++) x->axes[x->n_axes++] = x->s->dims[d].axes.v[i];
    int64_t over = x->dims[d] % shards;
    if (over == 0) continue;
    x->padded[d] = x->uneven = true;
    x->dims[d] += shards - over;
    if (shards - over > x->dims[d] / shards) return false;
  }
  return true;
}

/* Whether the axis shards a dimension that gets padding: only such ones need the exchange between neighbours. */
static bool permrev_shards_padded(const permrev *x, const base_istr *name) {
  for (uint32_t d = 0; d < x->type->rank; d++)
    for (uint32_t i = 0; x->padded[d] && i < x->s->dims[d].axes.n; i++)
      if (x->s->dims[d].axes.v[i].name == name) return true;
  return false;
}

/* In mesh order, as manual_axes must be. */
static void permrev_find_manual(permrev *x) {
  for (uint32_t i = 0; i < x->mesh->n_axes; i++)
    if (permrev_shards_padded(x, x->mesh->axes[i].name)) x->manual[x->n_manual++] = x->mesh->axes[i].name;
}

/* The list is as short as the mesh has axes. */
static bool permrev_is_manual(const permrev *x, const base_istr *name) {
  for (uint32_t i = 0; i < x->n_manual; i++)
    if (x->manual[i] == name) return true;
  return false;
}

/* --- devices: places in the mesh, row-major --- */

/* How far apart neighbours along the axis stand: the product of the sizes of all axes minor to it, and for a sub-axis
 * of what is minor to it in its own axis.
 * On <["a"=2, "b"=4]> "a" has the stride 4, "b" 1, and "b":(1)2 has 2. */
static int64_t permrev_stride(const sdy_mesh *mesh, sdy_axis a) {
  assert(sdy_mesh_find(mesh, a.name) >= 0);
  int64_t stride = 1;
  for (int i = sdy_mesh_find(mesh, a.name) + 1; i < (int)mesh->n_axes; i++) stride *= mesh->axes[i].size;
  int at = sdy_mesh_find(mesh, a.name);
  return stride * (mesh->axes[at].size / sdy_axis_end(a, mesh));
}

/* A mesh without ids has its devices in order. */
static int64_t permrev_device(const sdy_mesh *mesh, int64_t place) {
  return mesh->n_ids ? mesh->ids[place] : place;
}

/* The mesh with the devices along the axes the other way round. NULL when out of memory. */
static const sdy_mesh *permrev_mirrored(const permrev *x) {
  ir_module *m = x->p->e.rw.m;
  int64_t *ids = BASE_ARRAY(&m->arena, int64_t, (size_t)x->n_devices);
  sdy_mesh *mesh = BASE_NEW(&m->arena, sdy_mesh);
  bool in_order = true;
  if (!ids || !mesh) return NULL;
  for (int64_t i = 0; i < x->n_devices; i++) {
    /* The digit k of an axis of size n becomes n - 1 - k. */
    int64_t place = i;
    for (uint32_t k = 0; k < x->n_axes; k++) {
      int64_t stride = permrev_stride(x->mesh, x->axes[k]), size = sdy_axis_size(x->axes[k], x->mesh);
      place += (size - 1 - 2 * (i / stride % size)) * stride;
    }
    ids[i] = permrev_device(x->mesh, place);
    in_order = in_order && ids[i] == i;
  }
  *mesh = (sdy_mesh){x->mesh->n_axes, in_order ? 0 : (uint32_t)x->n_devices, x->mesh->axes, in_order ? NULL : ids};
  return mesh;
}

/* The name of a mesh op that is like it; a new one at the front where there is none. NULL when out of memory.
 * From the last to the first: meshes made here come after those of the program, and are the likely ones. */
static const base_istr *permrev_named(permrev *x, const sdy_mesh *mesh) {
  perm_pass *p = x->p;
  ir_module *m = p->e.rw.m;
  for (uint32_t i = p->meshes.n; i-- > 0;)
    if (sdy_mesh_equal(p->meshes.items[i].mesh, mesh)) return p->meshes.items[i].name;
  const base_istr *old = x->s->mesh_name;
  char *stem = base_arena_alloc(&p->e.rw.arena, (size_t)old->n + 10);
  if (!stem) return NULL;
  memcpy(stem, old->s, old->n);
  memcpy(stem + old->n, "_reversed", 9);
  const base_istr *name = shc_fresh(&p->names, stem, (size_t)old->n + 9);
  bool ok = shc_make_mesh(m, name, mesh, NULL) && BASE_VEC_PUSH(m->alloc, &p->meshes, ((perm_mesh){mesh, name}));
  return ok ? name : NULL;
}

/* --- ops --- */

/* Out of memory, which is all that can go wrong once the rewrite has begun. */
static void permrev_fail(permrev *x) {
  x->p->e.rw.failed = true;
}

/* Gives v a sharding, if it is there. */
static ir_value permrev_sharded(permrev *x, ir_value v, const sdy_sharding *s) {
  if (!v.op || !s || !sdy_set(v, s)) permrev_fail(x);
  return v;
}

/* With zeros at the ends. They come back to the ends after the reverse, where the slice takes them off. */
static ir_value permrev_pad(permrev *x, ir_value v) {
  opt_rewriter *rw = &x->p->e.rw;
  int64_t high[IR_MAX_RANK] = {0}, none[IR_MAX_RANK] = {0};
  uint32_t rank = x->type->rank;
  for (uint32_t d = 0; d < rank; d++) high[d] = x->dims[d] - x->type->dims[d];
  base_dtype dtype = (base_dtype)x->type->dtype;
  ir_value both[] = {v, opt_splat(rw, opt_tensor(rw, dtype, 0, NULL), 0)};
  ir_value made = opt_make(rw, IR_OP_PAD, opt_tensor(rw, dtype, rank, x->dims), 2, both);
  opt_set(rw, made, "edge_padding_low", ir_m_i64s(rw->m, rank, none));
  opt_set(rw, made, "edge_padding_high", ir_m_i64s(rw->m, rank, high));
  opt_set(rw, made, "interior_padding", ir_m_i64s(rw->m, rank, none));
  return permrev_sharded(x, made, x->s);
}

/* v from `from` to `to` along d, all of other dimensions. */
static ir_value permrev_part(permrev *x, ir_value v, uint32_t d, int64_t from, int64_t to, const sdy_sharding *s) {
  assert(from <= to);
  int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK] = {0}, strides[IR_MAX_RANK];
  const ir_type *t = opt_type(v);
  for (uint32_t i = 0; t && i < t->rank; i++) {
    limits[i] = i == d ? to : t->dims[i];
    strides[i] = 1;
  }
  starts[d] = from;
  return t ? permrev_sharded(x, opt_slice(&x->p->e.rw, v, starts, limits, strides), s) : v;
}

/* Every device but the last along the dimension, and the one after it. NULL when out of memory.
 * Counting up in the digits of the axes, minor first; a carry out of the major one: the last device, which has no
 * next. */
static const ir_mattr *permrev_pairs(permrev *x, uint32_t d) {
  sdy_axes axes = x->s->dims[d].axes;
  ir_module *m = x->p->e.rw.m;
  int64_t *v = BASE_ARRAY(&x->p->e.rw.arena, int64_t, 2 * (size_t)x->n_devices), n = 0;
  for (int64_t i = 0; v && i < x->n_devices; i++) {
    int64_t to = i;
    bool carry = true;
    for (uint32_t k = axes.n; k-- > 0 && carry;) {
      int64_t stride = permrev_stride(x->mesh, axes.v[k]), size = sdy_axis_size(axes.v[k], x->mesh);
      carry = i / stride % size + 1 == size;
      to += carry ? -(size - 1) * stride : stride;
    }
    if (carry) continue;
    v[2 * n] = permrev_device(x->mesh, i);
    v[2 * n++ + 1] = permrev_device(x->mesh, to);
  }
  int64_t dims[] = {n, 2};
  return v ? ir_m_dense_i64(m, 2, dims, v) : NULL;
}

/* The last `n` elements along d of every device go before the first of the next.
 * The first device along the dimension receives nothing, and collective_permute gives it zeros. */
static ir_value permrev_shift(permrev *x, ir_value v, uint32_t d, int64_t n, const sdy_sharding *local) {
  opt_rewriter *rw = &x->p->e.rw;
  const ir_type *t = opt_type(v);
  if (!t) return v;
  int64_t rest = t->dims[d] - n;
  assert(rest >= 0);
  ir_value last = rest ? permrev_part(x, v, d, rest, t->dims[d], local) : v;
  ir_value moved = opt_make(rw, IR_OP_COLLECTIVE_PERMUTE, opt_type(last), 1, &last);
  opt_set(rw, moved, "source_target_pairs", permrev_pairs(x, d));
  permrev_sharded(x, moved, local);
  if (rest == 0 || rw->failed) return moved;
  ir_value both[] = {moved, permrev_part(x, v, d, 0, rest, local)};
  return permrev_sharded(x, opt_concatenate(rw, 2, both, d, t), local);
}

/* The sharding inside: without the manual axes. */
static const sdy_sharding *permrev_local(permrev *x) {
  ir_module *m = x->p->e.rw.m;
  sdy_sharding *to = base_arena_memdup(&m->arena, x->s, sizeof *to);
  sdy_dim *dims = to ? base_arena_memdup(&m->arena, x->s->dims, x->s->n_dims * sizeof *dims) : NULL;
  for (uint32_t d = 0; dims && d < to->n_dims; d++) {
    sdy_axes all = x->s->dims[d].axes;
    sdy_axis *v = BASE_ARRAY(&m->arena, sdy_axis, (size_t)all.n + 1);
    uint32_t n = 0;
    if (!v) return NULL;
    for (uint32_t i = 0; i < all.n; i++)
      if (!permrev_is_manual(x, all.v[i].name)) v[n++] = all.v[i];
    dims[d].axes = (sdy_axes){n, v};
  }
  if (!dims) return NULL;
  to->dims = dims;
  return to;
}

/* Local along manual axes, global along all others. */
static const ir_type *permrev_local_type(permrev *x) {
  int64_t dims[IR_MAX_RANK] = {0};
  for (uint32_t d = 0; d < x->type->rank; d++) {
    dims[d] = x->dims[d];
    for (uint32_t i = 0; i < x->s->dims[d].axes.n; i++)
      if (permrev_is_manual(x, x->s->dims[d].axes.v[i].name))
        dims[d] /= sdy_axis_size(x->s->dims[d].axes.v[i], x->mesh);
  }
  return opt_tensor(&x->p->e.rw, (base_dtype)x->type->dtype, x->type->rank, dims);
}

/* The body of the manual computation: one shift for each padded dimension, of as many elements as were padded. */
static void permrev_fill(permrev *x, ir_op *manual) {
  opt_rewriter *rw = &x->p->e.rw;
  const sdy_sharding *local = permrev_local(x);
  ir_computation *c = opt_region(rw, manual, 0), *into = rw->into;
  ir_op *before = rw->before;
  if (!c || !local || !(c->return_name = ir_intern(rw->m, "sdy.return", 10))) {
    permrev_fail(x);
    return;
  }
  ir_value v = opt_region_argument(rw, c, permrev_local_type(x));
  opt_at_end(rw, c, x->op);
  for (uint32_t d = 0; d < x->type->rank && !rw->failed; d++)
    if (x->padded[d]) v = permrev_shift(x, v, d, x->dims[d] - x->type->dims[d], local);
  if (!rw->failed) opt_set_results(rw, c, 1, &v);
  rw->into = into;
  rw->before = before;
}

/* The padding goes from the ends of the dimensions to their beginnings. */
static ir_value permrev_exchange(permrev *x, ir_value v) {
  opt_rewriter *rw = &x->p->e.rw;
  const ir_type *type = opt_type(v);
  ir_op *op = type ? opt_make_n(rw, IR_OP_SDY_MANUAL_COMPUTATION, 1, &type, 1, &v, 1) : NULL;
  ir_value made = {op, 0};
  const ir_mattr *list = sdy_attr(rw->m, SDY_SHARDINGS, sdy_shardings_make(rw->m, 1, &x->s));
  opt_set(rw, made, "in_shardings", list);
  opt_set(rw, made, "out_shardings", list);
  opt_set(rw, made, "manual_axes", sdy_attr(rw->m, SDY_MANUAL_AXES, sdy_names_make(rw->m, x->n_manual, x->manual)));
  if (op && !rw->failed) permrev_fill(x, op);
  return made;
}

/* Padding at the ends moves to the beginnings (exchange), so that the reverse puts it at the ends again, where a
 * slice drops it. */
static void permrev_rewrite(permrev *x) {
  opt_rewriter *rw = &x->p->e.rw;
  ir_op *op = x->op;
  ir_value v = opt_operand(op, 0), result = {op, 0};
  opt_at(rw, op);
  if (x->uneven) v = permrev_exchange(x, permrev_pad(x, v));
  const sdy_mesh *mesh = permrev_mirrored(x);
  const base_istr *name = mesh ? permrev_named(x, mesh) : NULL;
  if (!name || !v.op || rw->failed) {
    permrev_fail(x);
    return;
  }
  sdy_sharding mirrored = *x->s;
  mirrored.mesh_name = name;
  v = explicit_reshard(&x->p->e, v, &mirrored);
  ir_set_operand(op, 0, v);
  permrev_sharded(x, result, x->s);
  if (!x->uneven) return;
  const ir_type *type = opt_type(v);
  opt_set_types(rw, op, &type);
  explicit_after(&x->p->e, result);
  int64_t starts[IR_MAX_RANK] = {0}, strides[IR_MAX_RANK];
  for (uint32_t d = 0; d < x->type->rank; d++) strides[d] = 1;
  ir_value cut = permrev_sharded(x, opt_slice(rw, result, starts, x->type->dims, strides), x->s);
  if (!rw->failed) explicit_replace(&x->p->e, result, cut);
}

/* The mirrored mesh needs a name of its own, so the mesh must have one. */
static bool permrev_has_mesh(permrev *x) {
  if (x->s->mesh_name) return true;
  explicit_pass *e = &x->p->e;
  int status = base_fail_at(e->err, XLAC_E_VERIFY_SHARDING, x->op->line, x->op->col, "stablehlo.reverse",
                            "a sharding with its mesh written in place can't be resharded: expected @mesh");
  explicit_fail(e, base_hint(e->err, status, "run sdy-lift-inlined-meshes first"));
  return false;
}

/* A reverse along dimensions that are sharded: what is on the last device goes to the first. false: it is left to the
 * general way; else done, or nothing to do. */
static bool perm_reverse(perm_pass *p, ir_op *op) {
  explicit_pass *e = &p->e;
  permrev x = {.p = p, .op = op, .s = explicit_get(e, opt_operand(op, 0)), .type = op->type};
  if (explicit_is_replicated(x.s) || !shc_is_static(x.type)) return true;
  x.mesh = explicit_mesh(e, x.s);
  if (!x.mesh || sdy_mesh_is_maximal(x.mesh) || x.s->n_dims != x.type->rank) return true;
  x.n_devices = sdy_mesh_size(x.mesh);
  if (x.type->quant || x.n_devices > PERM_MAX_DEVICES) return false;
  uint32_t n = 0, n_axes = 0;
  const int64_t *reversed = ir_m_ints(ir_mattr_of(op, "dimensions"), &e->rw.arena, &n);
  for (uint32_t d = 0; d < x.s->n_dims; d++) n_axes += x.s->dims[d].axes.n;
  x.axes = BASE_ARRAY(&e->rw.arena, sdy_axis, (size_t)n_axes + 1);
  x.manual = BASE_ARRAY(&e->rw.arena, const base_istr *, (size_t)x.mesh->n_axes + 1);
  if (!x.axes || !x.manual) {
    explicit_fail(e, base_oom(e->err, "sdy-resolve-permutation-factors"));
    return true;
  }
  /* More padding than one neighbour can take: whole tensors then. */
  if (!permrev_read(&x, reversed, n)) return false;
  permrev_find_manual(&x);
  if (x.n_axes == 0 || !permrev_has_mesh(&x)) return true;
  x.s = sdy_sharding_make(e->rw.m, x.s); /* it may lie in the pool */
  if (x.s)
    permrev_rewrite(&x);
  else
    e->rw.failed = true;
  if (e->status == 0 && e->rw.failed) explicit_fail(e, base_oom(e->err, "sdy-resolve-permutation-factors"));
  return true;
}

/* --- The pass --- */

/* Only StableHLO's ops have permutation factors to resolve; ops of the dialect are left to other passes. */
static bool permfac_is_stablehlo(const ir_op *op) {
  const ir_mlir_info *info = op->opcode == IR_OP_PARAMETER ? NULL : ir_opcode_info(op->opcode)->mlir;
  return info && strncmp(info->name, "stablehlo.", 10) == 0;
}

/* A slice from the start of a dimension that leaves every device a part of its own. */
static bool permfac_slice_stays(explicit_op *x, uint32_t d) {
  const ir_op *op = x->op;
  const sdy_sharding *s = x->shardings[0], *result = x->shardings[op->n_operands];
  const ir_type *in = opt_type(opt_operand(op, 0)), *out = op->type;
  static const sdy_axes none = {0, NULL};
  if (!sdy_axes_equal(s && d < s->n_dims ? s->dims[d].axes : none,
                      result && d < result->n_dims ? result->dims[d].axes : none))
    return false;
  if (!s || d >= s->n_dims) return true;
  const sdy_mesh *mesh = explicit_mesh(x->pass, s);
  int64_t shards = mesh ? sdy_axes_size(s->dims[d].axes, mesh) : 1;
  if (shards <= 1) return true;
  uint32_t n_starts = 0, n_strides = 0;
  base_arena *arena = &x->pass->rw.arena;
  const int64_t *starts = ir_m_ints(ir_mattr_of(op, "start_indices"), arena, &n_starts);
  const int64_t *strides = ir_m_ints(ir_mattr_of(op, "strides"), arena, &n_strides);
  if (d >= n_starts || d >= n_strides || starts[d] != 0 || strides[d] != 1) return false;
  if (!shc_is_static(in) || !shc_is_static(out)) return false;
  int64_t before = in->dims[d] / shards + (in->dims[d] % shards != 0);
  return before == out->dims[d] / shards + (out->dims[d] % shards != 0);
}

/* No tensor keeps axes along the factor. */
static void permfac_clear(explicit_op *x, uint32_t factor, bool *updated) {
  assert(factor < x->rule->sizes.n);
  for (uint32_t t = 0; t < x->p.n_tensors; t++) {
    shard_part *part = shard_part_of(&x->p.tensors[t], factor);
    if (!part || (part->axes.n == 0 && part->overflow.n == 0)) continue;
    part->axes = part->overflow = (shard_axes){0, NULL};
    updated[t] = true;
  }
}

/* All other ops: the tensors lose the axes of permutation factors, with reshards before and after the op.
 * A slice that leaves every device a part of its own is left as it is. */
static void permfac_replicate(explicit_pass *e, ir_op *op) {
  explicit_op x;
  if (!explicit_prepare(&x, e, op, false, false)) return;
  bool *updated = shard_pool_alloc(x.p.pool, x.p.n_tensors + 1), any = false;
  if (!updated) {
    explicit_fail(e, base_oom(e->err, "sdy-resolve-permutation-factors"));
    return;
  }
  memset(updated, 0, x.p.n_tensors);
  for (uint32_t i = 0; i < x.rule->permutation.n; i++) {
    uint32_t factor = (uint32_t)x.rule->permutation.v[i];
    if (op->opcode == IR_OP_SLICE && permfac_slice_stays(&x, factor)) continue;
    permfac_clear(&x, factor, updated);
  }
  for (uint32_t t = 0; t < x.p.n_tensors; t++) any = any || updated[t];
  if (any) explicit_insert(&x, updated);
}

/* The sizes that shards divide.
 * Whether any dimension grows. */
static bool permfac_padded(explicit_pass *e, const ir_type *t, const sdy_sharding *s, int64_t *dims) {
  assert(t->kind == IR_TYPE_TENSOR);
  const sdy_mesh *mesh = s && s->n_dims == t->rank ? explicit_mesh(e, s) : NULL;
  bool grows = false;
  for (uint32_t d = 0; d < t->rank; d++) {
    int64_t shards = mesh ? sdy_axes_size(s->dims[d].axes, mesh) : 1, over = t->dims[d] % shards;
    dims[d] = over ? t->dims[d] + shards - over : t->dims[d];
    grows = grows || over;
  }
  return grows;
}

/* A reshape may move elements between devices: where its shardings do not go together, or where dimensions that do not
 * divide into their shards are padded within others. */
static bool permfac_reshape_stays(explicit_pass *e, const ir_op *op) {
  const ir_type *in = opt_type(opt_operand(op, 0)), *out = op->type;
  const sdy_sharding *s = explicit_get(e, opt_operand(op, 0));
  const sdy_sharding *to = explicit_get(e, (ir_value){(ir_op *)(uintptr_t)op, 0});
  int64_t a[IR_MAX_RANK] = {0}, b[IR_MAX_RANK] = {0};
  if (!shc_is_static(in) || !shc_is_static(out) || (explicit_is_replicated(s) && explicit_is_replicated(to)))
    return true;
  bool grows = permfac_padded(e, in, s, a);
  grows = permfac_padded(e, out, to, b) || grows;
  if (grows && !shc_reshape_keeps(in, a, out, b)) return false;
  const sdy_mesh *mesh = explicit_mesh(e, s ? s : to);
  return !mesh || shc_reshape_is_local(&e->rw.arena, mesh, in->rank, a, s, out->rank, b, to);
}

/* A reshape that would move elements between devices is done on whole tensors. */
static void permfac_reshape(explicit_pass *e, ir_op *op) {
  explicit_op x;
  if (permfac_reshape_stays(e, op) || !explicit_prepare(&x, e, op, false, false)) return;
  bool *updated = shard_pool_alloc(x.p.pool, x.p.n_tensors + 1);
  if (!updated) {
    explicit_fail(e, base_oom(e->err, "sdy-resolve-permutation-factors"));
    return;
  }
  memset(updated, 0, x.p.n_tensors);
  for (uint32_t i = 0; i < x.rule->sizes.n; i++) permfac_clear(&x, i, updated);
  explicit_insert(&x, updated);
}

/* exchange (enable-halo-exchange): reversals exchange data between devices; without it they get whole tensors too. */
static void permfac_visit(perm_pass *p, ir_op *op, bool exchange) {
  if (!permfac_is_stablehlo(op)) return;
  explicit_pass *e = &p->e;
  shard_pool_empty(&e->pool);
  const sdy_rule *rule = explicit_rule(e, op);
  if (!rule || e->status) return;
  if (op->opcode == IR_OP_RESHAPE) permfac_reshape(e, op);
  if (rule->permutation.n == 0 || e->status) return;
  if (exchange && op->opcode == IR_OP_REVERSE && perm_reverse(p, op)) return;
  if (e->status == 0) permfac_replicate(e, op);
}

/* Inner ops first; what is put in is not visited. Regions nest no deeper than the verifier allows. */
static void permfac_walk(perm_pass *p, ir_computation *c, bool exchange) {
  for (ir_op *op = c->first, *next = NULL; op && p->e.status == 0; op = next) {
    next = op->next;
    for (uint32_t i = 0; i < op->n_called; i++)
      if (op->called[i]->owner == op) permfac_walk(p, op->called[i], exchange);
    if (p->e.status == 0) permfac_visit(p, op, exchange);
  }
}

/* Once for the module: every reverse looks for a mesh like its own, mirrored. */
static bool permfac_find_meshes(perm_pass *p, ir_module *m) {
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_SYMBOL || !c->first || c->first->opcode != IR_OP_SDY_MESH) continue;
    perm_mesh row = {sdy_of(ir_mattr_of(c->first, "mesh"), SDY_MESH), ir_mattr_of(c->first, "sym_name")->str};
    if (!BASE_VEC_PUSH(m->alloc, &p->meshes, row)) return false;
  }
  return true;
}

/* Functions as they stand in the module; those with an owner are regions, which the walk enters. */
int shard_resolve_permutation(ir_module *m, const opt_args *args, xlac_error *err) {
  bool exchange = opt_get(args, "enable-halo-exchange");
  perm_pass p = {.meshes = {.n = 0}};
  TRY(explicit_begin(&p.e, m, err));
  if (!shc_names_init(&p.names, m) || !permfac_find_meshes(&p, m))
    explicit_fail(&p.e, base_oom(err, "sdy-resolve-permutation-factors"));
  for (ir_computation *c = m->first; c && p.e.status == 0; c = c->next)
    if (c->kind == IR_FUNCTION && !c->owner && !c->declaration) permfac_walk(&p, c, exchange);
  shc_names_free(&p.names);
  BASE_VEC_FREE(m->alloc, &p.meshes);
  return explicit_end(&p.e);
}
