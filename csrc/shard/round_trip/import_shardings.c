/* xla-sdy-import-shardings: XLA's shardings (mhlo.sharding, as JAX writes them for GSPMD) become those of sdy, on one
 * mesh that has an axis for every piece into which any of them cuts the devices: "_axis_0", "_axis_1", ...; maximal
 * ones on meshes of their device. What is manual is as if it were replicated, as in XLA's own pass. Where no sharding
 * names devices nothing is done. Requires: nothing. Preserves: all else. */
#include <stdio.h>
#include <stdlib.h>

#include "../../text/text.h"
#include "round_trip.h"

BASE_VEC(trip_devices, int64_t);
/* axes: the sizes of the mesh found so far, refined with every sharding; maximal: devices that single-device
 * shardings name. */
typedef struct trip_import {
  opt_rewriter rw;
  base_map read; /* the string of an mhlo.sharding to its ir_sharding */
  uint32_t n_axes;
  int64_t axes[TRIP_MAX_AXES];
  trip_devices maximal;
  const sdy_mesh *mesh;
  const base_istr *mesh_name;
} trip_import;

static int trip_import_oom(trip_import *x) {
  return base_oom(x->rw.err, "xla-sdy-import-shardings");
}

/* Reads a value's mhlo.sharding; *out NULL where it has none.
 * Each distinct string is parsed once. The parser's message goes into the error at op. */
static int trip_read(trip_import *x, const ir_op *op, const ir_mdict *d, const ir_sharding **out) {
  const ir_mattr *a = ir_mdict_get(d, "mhlo.sharding");
  xlac_error inner = {0};
  *out = NULL;
  if (!a || a->kind != IR_M_STRING) return 0;
  *out = base_map_ptr(&x->read, a->str);
  if (*out) return 0;
  if (text_parse_sharding(x->rw.m, a->str->s, a->str->n, out, &inner) != 0)
    return opt_rewrite_fail(&x->rw, op, XLAC_E_VERIFY_ATTRIBUTE, "mhlo.sharding = \"%.100s\" is not a sharding: %.200s",
                            a->str->s, inner.message);
  return base_map_set(&x->read, base_key(a->str), base_key(*out)) ? 0 : trip_import_oom(x);
}

/* --- the mesh --- */

/* Each device once. */
static int trip_note_maximal(trip_import *x, int64_t device) {
  for (uint32_t i = 0; i < x->maximal.n; i++)
    if (x->maximal.items[i] == device) return 0;
  return BASE_VEC_PUSH(x->rw.m->alloc, &x->maximal, device) ? 0 : trip_import_oom(x);
}

/* The common cut of all shardings so far and this one: [8] and [2, 4] give axes of 2 and 4. */
static int trip_note_one(trip_import *x, const ir_op *op, const ir_sharding *s) {
  trip_tiles tiles;
  int64_t sizes[TRIP_MAX_AXES], cut[TRIP_MAX_AXES];
  if (s->kind == IR_SHARDING_MAXIMAL) return trip_note_maximal(x, s->device);
  if (s->kind != IR_SHARDING_TILED) return 0;
  if (!trip_analyze(s, &tiles))
    return opt_rewrite_fail(&x->rw, op, XLAC_E_VERIFY_ATTRIBUTE,
                            "the devices of an mhlo.sharding are in no order that axes of a mesh could have");
  for (uint32_t i = 0; i < tiles.n; i++) sizes[i] = tiles.v[i].size;
  uint32_t n = x->n_axes ? trip_common_cut(tiles.n, sizes, x->n_axes, x->axes, cut) : tiles.n;
  assert(tiles.n <= TRIP_MAX_AXES);
  if (n == 0)
    return opt_rewrite_fail(
        &x->rw, op, XLAC_E_VERIFY_ATTRIBUTE,
        "mhlo.sharding cuts the devices in a way that goes with no mesh of the shardings before it");
  memcpy(x->axes, x->n_axes ? cut : sizes, n * sizeof *x->axes);
  x->n_axes = n;
  return 0;
}

/* A tuple's elements are noted one by one. */
static int trip_note(trip_import *x, const ir_op *op, const ir_mdict *d) {
  const ir_sharding *s = NULL;
  TRY(trip_read(x, op, d, &s));
  if (!s) return 0;
  if (s->kind != IR_SHARDING_TUPLE) return trip_note_one(x, op, s);
  for (uint32_t i = 0; i < s->n_elements; i++) TRY(trip_note_one(x, op, s->elements[i]));
  return 0;
}

static int trip_note_op(void *ctx, ir_op *op) {
  return trip_note(ctx, op, op->mlir);
}

/* Arguments, results, then all ops: only what names devices counts. */
static int trip_note_function(trip_import *x, ir_computation *f) {
  for (uint32_t i = 0; i < f->n_params; i++) TRY(trip_note(x, f->params[i], f->params[i]->mlir));
  for (uint32_t i = 0; i < f->n_results; i++) TRY(trip_note(x, f->results[i].op, ir_result_attrs(f, i)));
  return shc_walk(f, false, trip_note_op, x);
}

static int trip_by_number(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

/* Names are XLA's; a leading underscore tells dedup-meshes that nobody chose them. */
static sdy_mesh *trip_mesh_of_axes(trip_import *x) {
  ir_module *m = x->rw.m;
  sdy_mesh *mesh = BASE_NEW(&m->arena, sdy_mesh);
  sdy_mesh_axis *axes = BASE_ARRAY(&m->arena, sdy_mesh_axis, (size_t)x->n_axes + 1);
  if (!mesh || !axes) return NULL;
  for (uint32_t i = 0; i < x->n_axes; i++) {
    char name[24];
    int n = snprintf(name, sizeof name, "_axis_%u", i);
    axes[i] = (sdy_mesh_axis){ir_intern(m, name, (size_t)n), x->axes[i]};
    if (!axes[i].name) return NULL;
  }
  *mesh = (sdy_mesh){.n_axes = x->n_axes, .axes = axes};
  return mesh;
}

/* The same name as sdy-lift-inlined-meshes would give. */
static const base_istr *trip_maximal_name(ir_module *m, int64_t device) {
  char name[40];
  int n = snprintf(name, sizeof name, "maximal_mesh_%lld", (long long)device);
  return ir_intern(m, name, (size_t)n);
}

/* The mesh of all axes first, then those of single devices by number, all before the functions. */
static int trip_make_meshes(trip_import *x) {
  ir_module *m = x->rw.m;
  ir_computation *first = m->first;
  shc_names names;
  bool ok = shc_names_init(&names, m);
  x->mesh = trip_mesh_of_axes(x);
  x->mesh_name = ok ? shc_fresh(&names, "mesh", 4) : NULL;
  shc_names_free(&names);
  ok = x->mesh && x->mesh_name && trip_make_mesh(m, x->mesh_name, x->mesh, first);
  if (x->maximal.n > 1) qsort(x->maximal.items, x->maximal.n, sizeof *x->maximal.items, trip_by_number);
  for (uint32_t i = 0; ok && i < x->maximal.n; i++) {
    const base_istr *name = trip_maximal_name(m, x->maximal.items[i]);
    sdy_mesh one = {.n_ids = 1, .ids = base_arena_memdup(&m->arena, &x->maximal.items[i], sizeof(int64_t))};
    const sdy_mesh *mesh = one.ids ? base_arena_memdup(&m->arena, &one, sizeof one) : NULL;
    ok = name && mesh && trip_make_mesh(m, name, mesh, first);
  }
  return ok ? 0 : trip_import_oom(x);
}

/* --- the shardings --- */

/* Pieces of the mesh that are one local axis, after those in v. at, pre: the mesh axis at hand and how much of it is
 * taken. */
static uint32_t trip_take_axes(const trip_import *x, uint32_t *at, int64_t *pre, int64_t size, sdy_axis *v,
                               uint32_t n) {
  while (size > 1 && *at < x->n_axes) {
    int64_t whole = x->axes[*at], piece = whole / *pre;
    assert(whole % *pre == 0);
    if (piece > size) piece = size;
    sdy_axis axis = {.name = x->mesh->axes[*at].name};
    if (piece < whole) axis = (sdy_axis){axis.name, *pre, piece};
    v[n++] = axis;
    *pre *= piece;
    size /= piece;
    if (*pre == whole) {
      ++*at;
      *pre = 1;
    }
  }
  return n;
}

/* The axes of dimension `dim`, major first. Local axes are in the order of devices; `part` counts from the minor end.
 */
static bool trip_dim_axes(const trip_import *x, const trip_tiles *t, uint32_t dim, sdy_axes *out) {
  assert(t->n <= TRIP_MAX_AXES);
  sdy_axis all[2 * TRIP_MAX_AXES], list[2 * TRIP_MAX_AXES];
  uint32_t first[TRIP_MAX_AXES], count[TRIP_MAX_AXES], at = 0, n = 0, k = 0;
  int64_t pre = 1;
  for (uint32_t i = 0; i < t->n; i++) {
    first[i] = n;
    n = trip_take_axes(x, &at, &pre, t->v[i].size, all, n);
    count[i] = n - first[i];
  }
  for (uint32_t part = TRIP_MAX_AXES; part-- > 0;)
    for (uint32_t i = 0; i < t->n; i++)
      if (t->v[i].dim == dim && t->v[i].part == part)
        for (uint32_t j = 0; j < count[i]; j++) list[k++] = all[first[i] + j];
  return sdy_axes_make(x->rw.m, (sdy_axes){k, list}, out);
}

/* Unknown shardings are open, all others closed. Replicated, manual and unreduced parts of the tiles name no
 * dimension. */
static const sdy_sharding *trip_tiled(trip_import *x, const ir_sharding *from, uint32_t rank, sdy_sharding *s) {
  trip_tiles tiles = {.n = 0};
  sdy_dim *dims = BASE_ARRAY(&x->rw.m->arena, sdy_dim, (size_t)rank + 1);
  bool open = from->kind == IR_SHARDING_UNKNOWN;
  if (!dims || (from->kind == IR_SHARDING_TILED && !trip_analyze(from, &tiles))) return NULL;
  for (uint32_t d = 0; d < rank; d++) {
    dims[d] = (sdy_dim){.open = open, .priority = -1};
    if (!trip_dim_axes(x, &tiles, d, &dims[d].axes)) return NULL;
  }
  s->n_dims = rank;
  s->dims = dims;
  return sdy_sharding_make(x->rw.m, s);
}

/* NULL: out of memory; trip_note_one has refused what can't be converted. */
static const sdy_sharding *trip_convert(trip_import *x, const ir_sharding *from, uint32_t rank) {
  sdy_sharding s = {.mesh_name = x->mesh_name};
  if (from->kind == IR_SHARDING_MAXIMAL) {
    s.mesh_name = trip_maximal_name(x->rw.m, from->device);
    return s.mesh_name ? sdy_sharding_make(x->rw.m, &s) : NULL;
  }
  return trip_tiled(x, from, rank, &s);
}

/* An argument's or result's. */
static int trip_import_value(trip_import *x, const ir_op *op, const ir_type *type, const ir_mdict **d) {
  const ir_sharding *s = NULL;
  TRY(trip_read(x, op, *d, &s));
  if (!s) return 0;
  if (s->kind == IR_SHARDING_TUPLE)
    return opt_rewrite_fail(&x->rw, op, XLAC_E_VERIFY_ATTRIBUTE,
                            "mhlo.sharding of one value is a list of shardings; expected one");
  const sdy_sharding *to = trip_convert(x, s, sdy_rank(type));
  const ir_mdict *with = to ? ir_mdict_with(x->rw.m, *d, "sdy.sharding", sdy_attr(x->rw.m, SDY_SHARDING, to)) : NULL;
  with = with ? ir_mdict_with(x->rw.m, with, "mhlo.sharding", NULL) : NULL;
  if (!with) return trip_import_oom(x);
  *d = with;
  return 0;
}

/* One sharding stands for a single result; several need a tuple. */
static int trip_import_op(void *ctx, ir_op *op) {
  trip_import *x = ctx;
  const ir_sharding *s = NULL;
  TRY(trip_read(x, op, op->mlir, &s));
  if (!s) return 0;
  bool tuple = s->kind == IR_SHARDING_TUPLE;
  if ((tuple ? s->n_elements : 1) != op->n_results)
    return opt_rewrite_fail(&x->rw, op, XLAC_E_VERIFY_ATTRIBUTE, "mhlo.sharding is of %u values; the op has %u results",
                            tuple ? s->n_elements : 1, op->n_results);
  const sdy_sharding **v = BASE_ARRAY(&x->rw.arena, const sdy_sharding *, (size_t)op->n_results + 1);
  for (uint32_t i = 0; v && i < op->n_results; i++)
    if (!(v[i] = trip_convert(x, tuple ? s->elements[i] : s, sdy_rank(op->types[i])))) return trip_import_oom(x);
  const sdy_shardings *list = v ? sdy_shardings_make(x->rw.m, op->n_results, v) : NULL;
  return list && sdy_set_list(op, list) && ir_m_set(op, "mhlo.sharding", NULL) ? 0 : trip_import_oom(x);
}

/* mhlo.sharding goes wherever it was converted. */
static int trip_import_function(trip_import *x, ir_computation *f) {
  for (uint32_t i = 0; i < f->n_params; i++)
    TRY(trip_import_value(x, f->params[i], f->params[i]->type, &f->params[i]->mlir));
  for (uint32_t i = 0; i < f->n_results; i++) {
    const ir_mdict *old = ir_result_attrs(f, i), *d = old;
    TRY(trip_import_value(x, f->results[i].op, f->results[i].op->types[f->results[i].index], &d));
    if (d != old && !ir_set_result_attrs(f, i, d)) return trip_import_oom(x);
  }
  return shc_walk(f, false, trip_import_op, x);
}

/* Regions have shardings too, but no signature. */
static int trip_for_functions(trip_import *x, int (*fn)(trip_import *x, ir_computation *f)) {
  IR_FOR_COMPUTATIONS(c, x->rw.m)
  if (c->kind == IR_FUNCTION && !c->owner) TRY(fn(x, c));
  return 0;
}

/* Two walks: the mesh must be known before the first sharding is converted. */
int shard_import_shardings(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  trip_import x = {.n_axes = 0};
  TRY(opt_rewriter_init(&x.rw, m, err));
  base_map_init(&x.read, m->alloc);
  int status = trip_for_functions(&x, trip_note_function);
  if (status == 0 && (x.n_axes || x.maximal.n)) {
    status = trip_make_meshes(&x);
    if (status == 0) status = trip_for_functions(&x, trip_import_function);
  }
  base_map_free(&x.read);
  BASE_VEC_FREE(m->alloc, &x.maximal);
  opt_rewriter_free(&x.rw);
  return status;
}
