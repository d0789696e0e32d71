/* Attributes and properties of the sdy dialect to bytecode, in Shardy's own encoding: what sdy.c reads. */
#include "sdy.h"
#include "write.h"
#include "../mlir/sdy/print.h"

/* --- parts --- */

/* Ends an attribute of sdy whose marks begin at `from`. */
static int bc_sdy_add(bc_writer *w, size_t from, uint32_t *out) {
  uint32_t dialect = 0;
  TRY(bc_pool_dialect(w, "sdy", 3, &dialect));
  return bc_pool_add(w, &w->attrs, dialect, true, from, out);
}

/* A part that is an attribute of its own here. */
static int bc_sdy_mark(bc_writer *w, sdy_kind kind, const void *what) {
  const ir_mattr a = {.kind = IR_M_SDY, .sub = (uint8_t)kind, .v = {.sdy = what}};
  return bc_mark_attr(w, true, &a);
}

/* A part that is one in bytecode only: what has been marked since `from`. */
static int bc_sdy_mark_made(bc_writer *w, size_t from) {
  uint32_t made = 0;
  TRY(bc_sdy_add(w, from, &made));
  bc_mark(w, BC_MARK_ATTR, made);
  return 0;
}

/*   n, then n zigzag numbers */
static void bc_sdy_mark_ints(bc_writer *w, sdy_ints list) {
  bc_mark(w, BC_MARK_VARINT, list.n);
  for (uint32_t i = 0; i < list.n; i++) bc_mark(w, BC_MARK_SIGNED, (uint64_t)list.v[i]);
}

/* Each axis is an attribute. */
static int bc_sdy_mark_axes(bc_writer *w, sdy_axes axes) {
  bc_mark(w, BC_MARK_VARINT, axes.n);
  for (uint32_t i = 0; i < axes.n; i++) TRY(bc_sdy_mark(w, SDY_AXIS, &axes.v[i]));
  return 0;
}

/* --- one for each kind --- */

/* Axes' names as MLIR's own strings. */
static int bc_sdy_put_manual_axes(bc_writer *w, const sdy_names *names) {
  bc_mark(w, BC_MARK_VARINT, BC_SDY_MANUAL_AXES);
  bc_mark(w, BC_MARK_VARINT, names->n);
  for (uint32_t i = 0; i < names->n; i++) {
    const ir_mattr name = {.kind = IR_M_STRING, .str = names->v[i]};
    TRY(bc_mark_attr(w, true, &name));
  }
  return 0;
}

/* The mesh's axes are attributes in bytecode. */
static int bc_sdy_put_mesh(bc_writer *w, const sdy_mesh *mesh) {
  bc_mark(w, BC_MARK_VARINT, BC_SDY_MESH);
  bc_mark(w, BC_MARK_VARINT, mesh->n_axes);
  for (uint32_t i = 0; i < mesh->n_axes; i++) {
    size_t from = w->marks.n;
    bc_mark(w, BC_MARK_VARINT, BC_SDY_MESH_AXIS);
    TRY(bc_mark_string(w, mesh->axes[i].name));
    bc_mark(w, BC_MARK_SIGNED, (uint64_t)mesh->axes[i].size);
    TRY(bc_sdy_mark_made(w, from));
  }
  bc_sdy_mark_ints(w, (sdy_ints){mesh->n_ids, mesh->ids});
  return 0;
}

/* A flag says whether a sub-axis follows. */
static int bc_sdy_put_axis(bc_writer *w, const sdy_axis *axis) {
  uint32_t part = 0;
  bc_mark(w, BC_MARK_VARINT, BC_SDY_AXIS);
  TRY(bc_mark_string(w, axis->name));
  if (!axis->size) return bc_mark(w, BC_MARK_VARINT, 0), 0;
  size_t from = w->marks.n;
  bc_mark(w, BC_MARK_VARINT, BC_SDY_SUB_AXIS);
  bc_mark(w, BC_MARK_SIGNED, (uint64_t)axis->pre);
  bc_mark(w, BC_MARK_SIGNED, (uint64_t)axis->size);
  TRY(bc_sdy_add(w, from, &part));
  bc_mark(w, BC_MARK_OPTIONAL, part);
  return 0;
}

/*   {"x", ?}p1: axes, whether closed, priority << 1 | 1 (0: none) */
static int bc_sdy_put_dim(bc_writer *w, const sdy_dim *dim) {
  bc_mark(w, BC_MARK_VARINT, BC_SDY_DIM);
  TRY(bc_sdy_mark_axes(w, dim->axes));
  bc_mark(w, BC_MARK_BYTE, !dim->open);
  bc_mark(w, BC_MARK_VARINT, dim->priority < 0 ? 0 : (uint64_t)dim->priority << 1 | 1);
  return 0;
}

/* A code of its own where there are unreduced axes, which older Shardy did not have. */
static int bc_sdy_put_sharding(bc_writer *w, const sdy_sharding *s) {
  bc_mark(w, BC_MARK_VARINT, s->unreduced.n ? BC_SDY_SHARDING_UNREDUCED : BC_SDY_SHARDING);
  if (s->mesh_name) {
    TRY(bc_mark_symbol_of(w, s->mesh_name));
  } else {
    TRY(bc_sdy_mark(w, SDY_MESH, s->mesh));
  }
  bc_mark(w, BC_MARK_VARINT, s->n_dims);
  for (uint32_t i = 0; i < s->n_dims; i++) TRY(bc_sdy_mark(w, SDY_DIM, &s->dims[i]));
  TRY(bc_sdy_mark_axes(w, s->replicated));
  return s->unreduced.n ? bc_sdy_mark_axes(w, s->unreduced) : 0;
}

/* The code tells whether any of them has unreduced axes, which older readers do not know. */
static int bc_sdy_put_shardings(bc_writer *w, const sdy_shardings *list) {
  bool unreduced = false;
  for (uint32_t i = 0; i < list->n; i++) unreduced = unreduced || list->v[i]->unreduced.n;
  bc_mark(w, BC_MARK_VARINT, unreduced ? BC_SDY_SHARDINGS_UNREDUCED : BC_SDY_SHARDINGS);
  bc_mark(w, BC_MARK_VARINT, list->n);
  for (uint32_t i = 0; i < list->n; i++) TRY(bc_sdy_mark(w, SDY_SHARDING, list->v[i]));
  return 0;
}

/*   {"x", "y"} */
static int bc_sdy_put_axis_list(bc_writer *w, const sdy_axes *axes) {
  bc_mark(w, BC_MARK_VARINT, BC_SDY_AXES);
  return bc_sdy_mark_axes(w, *axes);
}

/*   [{"x"}, {"y", "z"}] */
static int bc_sdy_put_axis_lists(bc_writer *w, const sdy_axis_lists *lists) {
  bc_mark(w, BC_MARK_VARINT, BC_SDY_AXIS_LISTS);
  bc_mark(w, BC_MARK_VARINT, lists->n);
  for (uint32_t i = 0; i < lists->n; i++) TRY(bc_sdy_mark(w, SDY_AXES, &lists->v[i]));
  return 0;
}

/*   {"x"}: 0->2 */
static int bc_sdy_put_param(bc_writer *w, const sdy_param *p) {
  bc_mark(w, BC_MARK_VARINT, BC_SDY_PARAM);
  TRY(bc_sdy_mark_axes(w, p->axes));
  bc_mark(w, BC_MARK_SIGNED, (uint64_t)p->from);
  bc_mark(w, BC_MARK_SIGNED, (uint64_t)p->to);
  return 0;
}

/*   [{"x"}: 0->2, {"y"}: 1->3] */
static int bc_sdy_put_params(bc_writer *w, const sdy_params *list) {
  bc_mark(w, BC_MARK_VARINT, BC_SDY_PARAMS);
  bc_mark(w, BC_MARK_VARINT, list->n);
  for (uint32_t i = 0; i < list->n; i++) TRY(bc_sdy_mark(w, SDY_PARAM, &list->v[i]));
  return 0;
}

/*   [i, jk]: for each dimension an entry of its factors */
static int bc_sdy_put_map(bc_writer *w, const sdy_tensor_map *map) {
  assert(map->dims || map->n_dims == 0);
  bc_mark(w, BC_MARK_VARINT, BC_SDY_TENSOR_MAP);
  bc_mark(w, BC_MARK_VARINT, map->n_dims);
  for (uint32_t i = 0; i < map->n_dims; i++) {
    size_t from = w->marks.n;
    bc_mark(w, BC_MARK_VARINT, BC_SDY_DIM_MAP);
    bc_sdy_mark_ints(w, map->dims[i]);
    TRY(bc_sdy_mark_made(w, from));
  }
  return 0;
}

/* The maps of all operands, or of all results. */
static int bc_sdy_mark_maps(bc_writer *w, uint32_t n, const sdy_tensor_map *maps) {
  bc_mark(w, BC_MARK_VARINT, n);
  for (uint32_t i = 0; i < n; i++) {
    size_t from = w->marks.n;
    TRY(bc_sdy_put_map(w, &maps[i]));
    TRY(bc_sdy_mark_made(w, from));
  }
  return 0;
}

/* Factors of dimensions and of tensors are attributes in bytecode. */
static int bc_sdy_put_rule(bc_writer *w, const sdy_rule *rule) {
  bc_mark(w, BC_MARK_VARINT, BC_SDY_RULE);
  bc_sdy_mark_ints(w, rule->sizes);
  TRY(bc_sdy_mark_maps(w, rule->n_operands, rule->operands));
  TRY(bc_sdy_mark_maps(w, rule->n_results, rule->results));
  bc_sdy_mark_ints(w, rule->reduction);
  bc_sdy_mark_ints(w, rule->need_replication);
  bc_sdy_mark_ints(w, rule->permutation);
  bc_sdy_mark_ints(w, rule->blocked);
  bc_mark(w, BC_MARK_BYTE, rule->custom);
  return 0;
}

/* --- any --- */

/* One entry's marks, by its kind. What has no encoding has gone as text (bc_sdy_is_text). */
static int bc_sdy_put(bc_writer *w, sdy_kind kind, const void *what) {
  assert(what);
  switch (kind) {
    case SDY_MESH:
      return bc_sdy_put_mesh(w, what);
    case SDY_SHARDING:
      return bc_sdy_put_sharding(w, what);
    case SDY_SHARDINGS:
      return bc_sdy_put_shardings(w, what);
    case SDY_RULE:
      return bc_sdy_put_rule(w, what);
    case SDY_AXIS:
      return bc_sdy_put_axis(w, what);
    case SDY_AXES:
      return bc_sdy_put_axis_list(w, what);
    case SDY_AXIS_LISTS:
      return bc_sdy_put_axis_lists(w, what);
    case SDY_PARAM:
      return bc_sdy_put_param(w, what);
    case SDY_PARAMS:
      return bc_sdy_put_params(w, what);
    case SDY_MANUAL_AXES:
      return bc_sdy_put_manual_axes(w, what);
    case SDY_DIM:
      return bc_sdy_put_dim(w, what);
    case SDY_NONE:
    case SDY_EDGES:
    case SDY_KINDS:
      break;
  }
  assert(false);
  return 0;
}

/* What Shardy's encoding has no form for goes by its text. */
static bool bc_sdy_is_text(const ir_mattr *a) {
  if (a->sub == SDY_EDGES) return true;
  if (a->sub == SDY_SHARDING) return ((const sdy_sharding *)a->v.sdy)->reduction != SDY_SUM;
  const sdy_shardings *list = sdy_of(a, SDY_SHARDINGS);
  for (uint32_t i = 0; list && i < list->n; i++)
    if (list->v[i]->reduction != SDY_SUM) return true;
  return false;
}

/* As sdy's text, which every version of Shardy that knows the attribute can read. */
static int bc_sdy_add_text(bc_writer *w, const ir_mattr *a, uint32_t *out) {
  base_text text;
  base_text_init(&text, w->m->alloc);
  mlir_sdy_print_attr(&text, a);
  char *copy = text.failed ? NULL : base_arena_strndup(&w->scratch, text.s, text.n);
  size_t n = text.n;
  base_text_free(&text);
  return copy ? bc_add_foreign(w, &w->attrs, copy, n, out) : bc_write_memory(w);
}

/* The attribute's number. Parts are entries of their own, so this recurs, to a bounded depth. */
int bc_add_sdy(bc_writer *w, const ir_mattr *a, uint32_t *out) {
  size_t from = w->marks.n;
  if (bc_sdy_is_text(a)) return bc_sdy_add_text(w, a, out);
  TRY(bc_write_deeper(w));
  TRY(bc_sdy_put(w, (sdy_kind)a->sub, a->v.sdy));
  w->depth--;
  return bc_sdy_add(w, from, out);
}

/* --- ops --- */

/* Attributes that newer versions of Shardy have are written only where they say something. */
int bc_add_sdy_properties(bc_writer *w, const ir_op *op, uint32_t *out, bool *any) {
  const ir_mlir_info *info = ir_opcode_info(op->opcode)->mlir;
  uint32_t values[8], n = 0;
  uint8_t marks[8];
  for (const ir_mattr_spec *s = NULL; (s = bc_sdy_next_spec(info, s)); n++) {
    const ir_mattr *a = ir_mdict_get(op->mlir, s->name);
    bool required = s->flags & IR_REQUIRED;
    assert(n < 8);
    if (!a && required) return bc_cant_write(w, "attribute %s is missing", s->name);
    values[n] = 0;
    marks[n] = a ? (required ? BC_MARK_ATTR : BC_MARK_OPTIONAL) : BC_MARK_VARINT;
    if (a) TRY(bc_add_attr(w, true, a, &values[n]));
    if (!a && strcmp(s->name, "reduction_op") == 0) n--;
  }
  size_t from = w->marks.n;
  for (uint32_t i = 0; i < n; i++) bc_mark(w, marks[i], values[i]);
  *any = n > 0;
  return n ? bc_pool_add(w, &w->properties, 0, false, from, out) : 0;
}
