/* Attributes and properties of the sdy dialect in bytecode, in Shardy's own encoding.
 *
 * Shardy writes some parts (axes of meshes, sub-axes, factor maps) as attributes of their own; they are no
 * attributes here and are read where they are used. Whatever is read is a struct of ir/sdy/sdy.h in the module's
 * arena. */
#include "sdy.h"

/* --- parts --- */

/* An sdy attribute that is data here. */
static int bc_sdy_of(bc_cursor *c, sdy_kind kind, const void **out) {
  assert(kind > SDY_NONE && kind < SDY_KINDS);
  bc_cursor at = *c;
  const ir_mattr *a;
  TRY(bc_attr(c, &a));
  *out = sdy_of(a, kind);
  return *out ? 0 : BC_BAD(&at, "expected #sdy.%s", sdy_kind_name(kind));
}

/* Those that are attributes in bytecode alone are read where they are used: the cursor on what follows the code. */
static int bc_sdy_inside(bc_cursor *c, uint64_t index, unsigned code, const char *what, bc_cursor *in) {
  bc_reader *r = c->r;
  uint64_t found = 0;
  const bc_entry *e = index < r->n_attrs ? &r->attrs[index] : NULL;
  bool own = e && e->custom && r->dialects[e->dialect].known == BC_SDY;
  if (own) {
    *in = (bc_cursor){r, e->p, e->p + e->n};
    TRY(bc_varint(in, &found));
  }
  return own && found == code ? bc_weigh(c, 1) : BC_BAD(c, "expected %s of the dialect sdy", what);
}

/* Every attribute must use up its bytes. */
static int bc_sdy_end(const bc_cursor *in) {
  assert(in->p <= in->end);
  return in->p == in->end ? 0 : BC_BAD(in, "an attribute of the sdy dialect goes on");
}

/* A count, and that many of `size` bytes in the module's arena. Counted as parts of the attribute, since lists can
 * be used over and over. */
static int bc_sdy_list(bc_cursor *c, size_t size, uint32_t *n, void **out) {
  assert(size > 0);
  TRY(bc_count(c, 1, n));
  TRY(bc_weigh(c, *n));
  *out = base_arena_array(&c->r->m->arena, (size_t)*n + 1, size);
  return *out ? 0 : bc_no_memory(c->r);
}

/*   n, then n zigzag numbers */
static int bc_sdy_ints(bc_cursor *c, sdy_ints *out) {
  void *list;
  TRY(bc_sdy_list(c, sizeof *out->v, &out->n, &list));
  int64_t *v = list;
  for (uint32_t i = 0; i < out->n; i++) TRY(bc_signed(c, &v[i]));
  out->v = v;
  return 0;
}

/* Numbers of factors. */
static int bc_sdy_factors(bc_cursor *c, sdy_ints *out) {
  TRY(bc_sdy_ints(c, out));
  for (uint32_t i = 0; i < out->n; i++)
    if (out->v[i] < 0) return BC_BAD(c, "factor %lld of a sharding rule", (long long)out->v[i]);
  return 0;
}

/* Each is an attribute. */
static int bc_sdy_axes(bc_cursor *c, sdy_axes *out) {
  void *list;
  TRY(bc_sdy_list(c, sizeof *out->v, &out->n, &list));
  sdy_axis *v = list;
  for (uint32_t i = 0; i < out->n; i++) {
    const void *axis;
    TRY(bc_sdy_of(c, SDY_AXIS, &axis));
    v[i] = *(const sdy_axis *)axis;
  }
  out->v = v;
  return 0;
}

/* --- one for each kind that is an attribute here --- */

/*   #sdy<manual_axes{"x", "y"}> */
static int bc_sdy_manual_axes(bc_cursor *c, void *out) {
  sdy_names *to = out;
  void *list;
  TRY(bc_sdy_list(c, sizeof *to->v, &to->n, &list));
  const base_istr **v = list;
  for (uint32_t i = 0; i < to->n; i++) {
    const ir_mattr *a;
    TRY(bc_attr_of(c, IR_M_STRING, "an axis's name", &a));
    v[i] = a->str;
  }
  to->v = v;
  return 0;
}

/*   ["x"=2, "y"=4]: n, then n entries of name and size */
static int bc_sdy_mesh_axes(bc_cursor *c, sdy_mesh *to) {
  void *list;
  TRY(bc_sdy_list(c, sizeof *to->axes, &to->n_axes, &list));
  sdy_mesh_axis *v = list;
  for (uint32_t i = 0; i < to->n_axes; i++) {
    bc_cursor in;
    uint64_t index = 0;
    TRY(bc_varint(c, &index));
    TRY(bc_sdy_inside(c, index, BC_SDY_MESH_AXIS, "an axis of a mesh", &in));
    TRY(bc_read_string(&in, &v[i].name));
    TRY(bc_signed(&in, &v[i].size));
    TRY(bc_sdy_end(&in));
  }
  to->axes = v;
  return 0;
}

/* Ids in their usual order are dropped, as in text. */
static int bc_sdy_mesh(bc_cursor *c, void *out) {
  sdy_mesh *to = out;
  sdy_ints ids;
  char fault[200];
  TRY(bc_sdy_mesh_axes(c, to));
  TRY(bc_sdy_ints(c, &ids));
  to->n_ids = ids.n;
  to->ids = ids.v;
  if (sdy_mesh_is_broken(to, fault, sizeof fault)) return BC_BAD(c, "%s", fault);
  if (sdy_mesh_ids_are_iota(to)) to->n_ids = 0;
  return 0;
}

/* A name, and where the flag is set the sub-axis. */
static int bc_sdy_axis(bc_cursor *c, void *out) {
  sdy_axis *to = out;
  bc_cursor in;
  uint64_t index = 0;
  bool part = false;
  TRY(bc_read_string(c, &to->name));
  TRY(bc_flagged(c, &index, &part));
  if (!part) return 0;
  TRY(bc_sdy_inside(c, index, BC_SDY_SUB_AXIS, "a sub-axis", &in));
  TRY(bc_signed(&in, &to->pre));
  TRY(bc_signed(&in, &to->size));
  if (to->pre < 1 || to->size < 1) return BC_BAD(&in, "a sub-axis (%lld)%lld", (long long)to->pre, (long long)to->size);
  return bc_sdy_end(&in);
}

/* Axes, whether it is closed, and the priority, if there is one. */
static int bc_sdy_dim(bc_cursor *c, void *out) {
  sdy_dim *to = out;
  uint8_t closed = 0;
  uint64_t priority = 0;
  bool given = false;
  TRY(bc_sdy_axes(c, &to->axes));
  TRY(bc_byte(c, &closed));
  TRY(bc_flagged(c, &priority, &given));
  if (closed > 1 || priority > INT64_MAX) return BC_BAD(c, "the sharding of a dimension is not readable");
  to->open = !closed;
  to->priority = given ? (int64_t)priority : -1;
  return 0;
}

/* A mesh or the name of one, the dimensions, the axes that are replicated on purpose. */
static int bc_sdy_sharding(bc_cursor *c, void *out) {
  sdy_sharding *to = out;
  bc_cursor at = *c;
  const ir_mattr *mesh;
  void *list;
  TRY(bc_attr(c, &mesh));
  if (mesh->kind == IR_M_SYMBOL && mesh->v.list->n == 1) {
    to->mesh_name = mesh->v.list->v[0]->str;
  } else if (!(to->mesh = sdy_of(mesh, SDY_MESH))) {
    return BC_BAD(&at, "expected a mesh or its name");
  }
  TRY(bc_sdy_list(c, sizeof *to->dims, &to->n_dims, &list));
  sdy_dim *dims = list;
  for (uint32_t i = 0; i < to->n_dims; i++) {
    const void *dim;
    TRY(bc_sdy_of(c, SDY_DIM, &dim));
    dims[i] = *(const sdy_dim *)dim;
  }
  to->dims = dims;
  return bc_sdy_axes(c, &to->replicated);
}

/* The code for a sharding with unreduced axes: the sharding's parts, then these axes. */
static int bc_sdy_unreduced(bc_cursor *c, void *out) {
  TRY(bc_sdy_sharding(c, out));
  return bc_sdy_axes(c, &((sdy_sharding *)out)->unreduced);
}

/*   #sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{}]>]> */
static int bc_sdy_shardings(bc_cursor *c, void *out) {
  sdy_shardings *to = out;
  void *list;
  TRY(bc_sdy_list(c, sizeof *to->v, &to->n, &list));
  const sdy_sharding **v = list;
  for (uint32_t i = 0; i < to->n; i++) {
    const void *sharding;
    TRY(bc_sdy_of(c, SDY_SHARDING, &sharding));
    v[i] = sharding;
  }
  to->v = v;
  return 0;
}

static int bc_sdy_axis_list(bc_cursor *c, void *out) {
  return bc_sdy_axes(c, out);
}

/*   [{"x"}, {"y", "z"}] */
static int bc_sdy_axis_lists(bc_cursor *c, void *out) {
  sdy_axis_lists *to = out;
  void *list;
  TRY(bc_sdy_list(c, sizeof *to->v, &to->n, &list));
  sdy_axes *v = list;
  for (uint32_t i = 0; i < to->n; i++) {
    const void *axes;
    TRY(bc_sdy_of(c, SDY_AXES, &axes));
    v[i] = *(const sdy_axes *)axes;
  }
  to->v = v;
  return 0;
}

/* An all-to-all's: axes, from which dimension, to which. */
static int bc_sdy_param(bc_cursor *c, void *out) {
  sdy_param *to = out;
  TRY(bc_sdy_axes(c, &to->axes));
  TRY(bc_signed(c, &to->from));
  return bc_signed(c, &to->to);
}

/*   [{"x"}: 0->2, {"y"}: 1->3] */
static int bc_sdy_params(bc_cursor *c, void *out) {
  sdy_params *to = out;
  void *list;
  TRY(bc_sdy_list(c, sizeof *to->v, &to->n, &list));
  sdy_param *v = list;
  for (uint32_t i = 0; i < to->n; i++) {
    const void *param;
    TRY(bc_sdy_of(c, SDY_PARAM, &param));
    v[i] = *(const sdy_param *)param;
  }
  to->v = v;
  return 0;
}

/* --- sharding rules --- */

/*   [i, jk] of a sharding rule: for each dimension its factors, by their numbers */
static int bc_sdy_tensor_map(bc_cursor *c, sdy_tensor_map *to) {
  void *list;
  TRY(bc_sdy_list(c, sizeof *to->dims, &to->n_dims, &list));
  sdy_ints *v = list;
  for (uint32_t i = 0; i < to->n_dims; i++) {
    bc_cursor in;
    uint64_t index = 0;
    TRY(bc_varint(c, &index));
    TRY(bc_sdy_inside(c, index, BC_SDY_DIM_MAP, "the factors of a dimension", &in));
    TRY(bc_sdy_factors(&in, &v[i]));
    TRY(bc_sdy_end(&in));
  }
  to->dims = v;
  return 0;
}

/* The maps of all operands, or of all results. */
static int bc_sdy_maps(bc_cursor *c, uint32_t *n, const sdy_tensor_map **out) {
  void *list;
  TRY(bc_sdy_list(c, sizeof **out, n, &list));
  sdy_tensor_map *v = list;
  for (uint32_t i = 0; i < *n; i++) {
    bc_cursor in;
    uint64_t index = 0;
    TRY(bc_varint(c, &index));
    TRY(bc_sdy_inside(c, index, BC_SDY_TENSOR_MAP, "the factors of a tensor", &in));
    TRY(bc_sdy_tensor_map(&in, &v[i]));
    TRY(bc_sdy_end(&in));
  }
  *out = v;
  return 0;
}

/* Sizes, operands, results, lists of special factors, and whether the rule is custom. */
static int bc_sdy_rule(bc_cursor *c, void *out) {
  sdy_rule *to = out;
  uint8_t custom = 0;
  TRY(bc_sdy_ints(c, &to->sizes));
  TRY(bc_sdy_maps(c, &to->n_operands, &to->operands));
  TRY(bc_sdy_maps(c, &to->n_results, &to->results));
  TRY(bc_sdy_factors(c, &to->reduction));
  TRY(bc_sdy_factors(c, &to->need_replication));
  TRY(bc_sdy_factors(c, &to->permutation));
  TRY(bc_sdy_factors(c, &to->blocked));
  TRY(bc_byte(c, &custom));
  to->custom = custom == 1;
  return custom < 2 ? 0 : BC_BAD(c, "expected a bool, found %u", custom);
}

/* --- any --- */

static const struct {
  int (*read)(bc_cursor *c, void *out);
  uint8_t kind, size;
} bc_sdy_kinds[BC_SDY_COUNT] = {
    [BC_SDY_MANUAL_AXES] = {bc_sdy_manual_axes, SDY_MANUAL_AXES, sizeof(sdy_names)},
    [BC_SDY_MESH] = {bc_sdy_mesh, SDY_MESH, sizeof(sdy_mesh)},
    [BC_SDY_AXIS] = {bc_sdy_axis, SDY_AXIS, sizeof(sdy_axis)},
    [BC_SDY_DIM] = {bc_sdy_dim, SDY_DIM, sizeof(sdy_dim)},
    [BC_SDY_SHARDING] = {bc_sdy_sharding, SDY_SHARDING, sizeof(sdy_sharding)},
    [BC_SDY_SHARDINGS] = {bc_sdy_shardings, SDY_SHARDINGS, sizeof(sdy_shardings)},
    [BC_SDY_RULE] = {bc_sdy_rule, SDY_RULE, sizeof(sdy_rule)},
    [BC_SDY_AXES] = {bc_sdy_axis_list, SDY_AXES, sizeof(sdy_axes)},
    [BC_SDY_AXIS_LISTS] = {bc_sdy_axis_lists, SDY_AXIS_LISTS, sizeof(sdy_axis_lists)},
    [BC_SDY_PARAM] = {bc_sdy_param, SDY_PARAM, sizeof(sdy_param)},
    [BC_SDY_PARAMS] = {bc_sdy_params, SDY_PARAMS, sizeof(sdy_params)},
    [BC_SDY_SHARDING_UNREDUCED] = {bc_sdy_unreduced, SDY_SHARDING, sizeof(sdy_sharding)},
    [BC_SDY_SHARDINGS_UNREDUCED] = {bc_sdy_shardings, SDY_SHARDINGS, sizeof(sdy_shardings)},
};

/* Kinds that are attributes here have a row in bc_sdy_kinds. */
int bc_sdy_attr(bc_cursor *c, const ir_mattr **out) {
  bc_cursor at = *c;
  uint64_t code = 0;
  TRY(bc_varint(c, &code));
  if (code >= BC_SDY_COUNT || !bc_sdy_kinds[code].read)
    return BC_BAD(&at, "an attribute of the dialect sdy with code %llu can't stand here", (unsigned long long)code);
  void *to = base_arena_zalloc(&c->r->m->arena, bc_sdy_kinds[code].size);
  if (!to) return bc_no_memory(c->r);
  TRY(bc_sdy_kinds[code].read(c, to));
  TRY(bc_sdy_end(c));
  *out = sdy_attr(c->r->m, (sdy_kind)bc_sdy_kinds[code].kind, to);
  return bc_made(c, *out);
}

/* --- ops --- */

/* The selection of the next name costs a pass over the row, which has few of them. */
const ir_mattr_spec *bc_sdy_next_spec(const ir_mlir_info *op, const ir_mattr_spec *last) {
  assert(op);
  const ir_mattr_spec *next = NULL;
  for (const ir_mattr_spec *spec = op->attrs; spec && spec->name; spec++) {
    bool after = !last || strcmp(spec->name, last->name) > 0;
    if (after && (!next || strcmp(spec->name, next->name) < 0)) next = spec;
  }
  return next;
}

/* Optional ones at the end may be missing: a version of Shardy may not have had them. */
static int bc_sdy_property(bc_cursor *c, const ir_mattr_spec *spec, const ir_mattr **out) {
  bc_cursor at = *c;
  *out = NULL;
  if (spec->flags & IR_REQUIRED) {
    TRY(bc_attr(c, out));
  } else if (c->p < c->end) {
    TRY(bc_optional_attr(c, out));
  }
  return !*out || bc_fits(spec, *out) ? 0 : BC_BAD(&at, "property %s is of the wrong kind", spec->name);
}

/* In the order of their names, as MLIR generates it. */
int bc_sdy_properties(bc_cursor *c, const ir_mlir_info *op, const ir_mdict **attrs) {
  ir_module *m = c->r->m;
  for (const ir_mattr_spec *s = NULL; (s = bc_sdy_next_spec(op, s));) {
    const ir_mattr *value;
    TRY(bc_sdy_property(c, s, &value));
    if (value && !(*attrs = ir_mdict_with(m, *attrs, s->name, value))) return bc_no_memory(c->r);
  }
  return c->p == c->end ? 0 : BC_BAD(c, "the properties of op %s go on", op->name);
}
