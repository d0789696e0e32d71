/* StableHLO's attributes as HLO's typed ones.
 *
 *   #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>
 *   lhs_contracting_dims={1}, rhs_contracting_dims={0}
 *
 * The table of pairs (attr_pairs.c) says what is what; this file makes the values. What HLO would read as its
 * default is left out, as XLA prints it. StableHLO's verifier has been here: required attributes are there and of
 * their kind. */
#include "../ir/sdy/sdy.h"
#include "to_hlo.h"

/* array<i64: ...>, dense<...> or a lone number as a list; *n is 0 and the list empty for NULL. */
static const int64_t *attr_ints(to_hlo_op *x, const ir_mattr *a, uint32_t *n) {
  return ir_m_ints(a, &x->t->to->arena, n);
}

static int put_ints(to_hlo_op *x, ir_op *made, const ir_mattr *a, ir_attr_key key) {
  uint32_t n;
  const int64_t *v = attr_ints(x, a, &n);
  return ir_set_ints(made, key, n, v) ? 0 : to_hlo_no_memory(x->t);
}

/* False is HLO's default, and left out. */
int to_hlo_flag(to_hlo_op *x, ir_op *made, const char *name, ir_attr_key key) {
  if (!ir_m_get_bool(x->op, name)) return 0;
  return ir_set_bool(made, key, true) ? 0 : to_hlo_no_memory(x->t);
}

/* --- precision, algorithm, accuracy --- */

/*   precision_config = [HIGH, DEFAULT]    operand_precision={high,default}
 *
 * All DEFAULT is left out. */
int to_hlo_precision(to_hlo_op *x, ir_op *made) {
  const ir_mattr *a = ir_mattr_of(x->op, "precision_config");
  uint32_t n = a ? a->v.list->n : 0;
  bool any = false;
  int64_t *words = BASE_ARRAY(&x->t->to->arena, int64_t, (size_t)n + 1);
  if (!words) return to_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < n; i++) {
    words[i] = a->v.list->v[i]->v.i;
    any = any || words[i] != IR_PRECISION_DEFAULT;
  }
  if (!any) return 0;
  ir_attr attr = ir_attr_make(IR_ATTR_OPERAND_PRECISION);
  attr.v.ints = ir_ints_make(x->t->to, n, words);
  return attr.v.ints && ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(x->t);
}

/* How attr_algorithms writes the type. */
static const char *type_word(const ir_type *t) {
  if (t->kind == IR_TYPE_OTHER) return t->text->s; /* tf32 */
  return base_dtype_of((base_dtype)t->dtype)->text;
}

/* XLA names a set of algorithms: lhs, rhs and accumulation types, then how many products. UNSET: none is like this. */
static ir_dot algorithm_of(const char *lhs, const char *rhs, const char *acc, int64_t products, bool imprecise) {
  bool f8 = strncmp(lhs, "f8", 2) == 0 && strncmp(rhs, "f8", 2) == 0;
  if (f8) lhs = rhs = "f8";
  if (f8 && strcmp(acc, "f32") != 0) acc = "f8";
  for (const attr_algorithm *a = attr_algorithms; a->operands; a++)
    if (strcmp(lhs, a->operands) == 0 && strcmp(rhs, lhs) == 0 && strcmp(acc, a->accumulation) == 0 &&
        (f8 ? imprecise == a->imprecise : products == a->products))
      return a->algorithm;
  return IR_DOT_UNSET;
}

/*   lhs_precision_type = bf16, ..., num_primitive_operations = 3    algorithm=dot_bf16_bf16_f32_x3 */
static int to_hlo_algorithm(to_hlo_op *x, ir_op *made) {
  const ir_mattr *a = ir_mattr_of(x->op, "algorithm");
  if (!a) return 0;
  const ir_mattr *products = ir_m_field(a, "num_primitive_operations"),
                 *imprecise = ir_m_field(a, "allow_imprecise_accumulation");
  const ir_dot algorithm = algorithm_of(
      type_word(ir_m_field(a, "lhs_precision_type")->type), type_word(ir_m_field(a, "rhs_precision_type")->type),
      type_word(ir_m_field(a, "accumulation_type")->type), products->v.i, imprecise->v.b);
  if (algorithm == IR_DOT_UNSET)
    return to_hlo_fail(x->t, x->op, XLAC_E_VERIFY_ATTRIBUTE, "HLO has no name for this dot algorithm");
  return ir_set_word(made, IR_ATTR_ALGORITHM, algorithm) ? 0 : to_hlo_no_memory(x->t);
}

/* Only of functions that HLO has an accuracy for; a mode of DEFAULT is left out. */
static int to_hlo_accuracy(to_hlo_op *x, ir_op *made) {
  const ir_mattr *a = ir_mattr_of(x->op, "result_accuracy");
  if (!a || a->kind != IR_M_STRUCT || !ir_opcode_has(made->opcode, IR_HAS_ACCURACY)) return 0;
  const ir_mattr *mode = ir_m_field(a, "mode"), *atol = ir_m_field(a, "atol"), *rtol = ir_m_field(a, "rtol"),
                 *ulps = ir_m_field(a, "ulps");
  const ir_accuracy_mode word = mode && mode->kind == IR_M_ENUM ? (ir_accuracy_mode)mode->v.i : IR_ACCURACY_TOLERANCE;
  if (word == IR_ACCURACY_DEFAULT) return 0;
  ir_accuracy *v = BASE_NEW(&x->t->to->arena, ir_accuracy);
  if (!v) return to_hlo_no_memory(x->t);
  v->mode = (uint8_t)word;
  v->atol = atol ? atol->v.f : 0;
  v->rtol = rtol ? rtol->v.f : 0;
  v->ulps = ulps ? ulps->v.i : 0;
  ir_attr attr = ir_attr_make(IR_ATTR_RESULT_ACCURACY);
  attr.v.accuracy = v;
  return ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(x->t);
}

/* --- windows --- */

/*   [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]    dim_labels=b01f_01io->b01f */
static int to_hlo_conv_dims(to_hlo_op *x, ir_op *made) {
  const ir_mattr *a = ir_mattr_of(x->op, "dimension_numbers");
  ir_conv_dims *d = BASE_NEW(&x->t->to->arena, ir_conv_dims);
  if (!d) return to_hlo_no_memory(x->t);
  uint32_t n;
  d->input_spatial = attr_ints(x, ir_m_field(a, "input_spatial_dimensions"), &n);
  d->n_spatial = n;
  d->kernel_spatial = attr_ints(x, ir_m_field(a, "kernel_spatial_dimensions"), &n);
  assert(n == d->n_spatial);
  d->output_spatial = attr_ints(x, ir_m_field(a, "output_spatial_dimensions"), &n);
  assert(n == d->n_spatial);
  d->input_batch = ir_m_field(a, "input_batch_dimension")->v.i;
  d->input_feature = ir_m_field(a, "input_feature_dimension")->v.i;
  d->kernel_input_feature = ir_m_field(a, "kernel_input_feature_dimension")->v.i;
  d->kernel_output_feature = ir_m_field(a, "kernel_output_feature_dimension")->v.i;
  d->output_batch = ir_m_field(a, "output_batch_dimension")->v.i;
  d->output_feature = ir_m_field(a, "output_feature_dimension")->v.i;
  ir_attr attr = ir_attr_make(IR_ATTR_DIM_LABELS);
  attr.v.conv = d;
  return ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(x->t);
}

/* An empty list where `name` is NULL. */
static const int64_t *named_ints(to_hlo_op *x, const char *name, uint32_t *n) {
  *n = 0;
  return name ? attr_ints(x, ir_mattr_of(x->op, name), n) : NULL;
}

/* Lists that are left out are of HLO's defaults: strides and dilations 1, padding 0, no reversal. Padding has two
 * numbers a dimension. */
int to_hlo_window(to_hlo_op *x, ir_op *made, uint32_t n, const int64_t *sizes, const to_hlo_window_names *names) {
  assert(n <= IR_MAX_RANK && (n == 0 || sizes));
  ir_window *w = base_arena_zalloc(&x->t->to->arena, sizeof *w + n * sizeof *w->v);
  if (!w) return to_hlo_no_memory(x->t);
  uint32_t ns, nb, nw, np, nr;
  const int64_t *strides = named_ints(x, names->strides, &ns), *base = named_ints(x, names->base_dilation, &nb);
  const int64_t *window = named_ints(x, names->window_dilation, &nw), *padding = named_ints(x, names->padding, &np);
  const int64_t *reversal = named_ints(x, names->reversal, &nr);
  w->n = n;
  for (uint32_t i = 0; i < n; i++) {
    ir_window_dim *d = &w->v[i];
    d->size = sizes[i];
    d->stride = i < ns ? strides[i] : 1;
    d->base_dilation = i < nb ? base[i] : 1;
    d->window_dilation = i < nw ? window[i] : 1;
    d->padding_low = 2 * i + 1 < np ? padding[2 * i] : 0;
    d->padding_high = 2 * i + 1 < np ? padding[2 * i + 1] : 0;
    d->reversal = i < nr && reversal[i];
  }
  ir_attr attr = ir_attr_make(IR_ATTR_WINDOW);
  attr.v.window = w;
  return ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(x->t);
}

/*   low = [0, 2], high = [1, 3], interior = [0, 1]    padding=0_1x2_3_1 */
int to_hlo_padding(to_hlo_op *x, ir_op *made) {
  uint32_t n, m;
  const int64_t *low = named_ints(x, "edge_padding_low", &n), *high = named_ints(x, "edge_padding_high", &m);
  const int64_t *interior = named_ints(x, "interior_padding", &m);
  assert(m == n);
  ir_padding *p = base_arena_zalloc(&x->t->to->arena, sizeof *p + n * sizeof *p->v);
  if (!p) return to_hlo_no_memory(x->t);
  p->n = n;
  for (uint32_t i = 0; i < n; i++) p->v[i] = (ir_padding_dim){low[i], high[i], interior[i]};
  ir_attr attr = ir_attr_make(IR_ATTR_PADDING);
  attr.v.padding = p;
  return ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(x->t);
}

/*   [0:4, 2:8:2]    slice={[0:4],[2:8:2]} */
int to_hlo_slice(to_hlo_op *x, ir_op *made) {
  uint32_t n, m;
  const int64_t *start = named_ints(x, "start_indices", &n), *limit = named_ints(x, "limit_indices", &m);
  const int64_t *stride = named_ints(x, "strides", &m);
  assert(m == n);
  ir_slice *s = base_arena_zalloc(&x->t->to->arena, sizeof *s + n * sizeof *s->v);
  if (!s) return to_hlo_no_memory(x->t);
  s->n = n;
  for (uint32_t i = 0; i < n; i++) s->v[i] = (ir_slice_dim){start[i], limit[i], stride[i]};
  ir_attr attr = ir_attr_make(IR_ATTR_SLICE);
  attr.v.slice = s;
  return ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(x->t);
}

/* --- collectives --- */

/* Rows of a rank-2 tensor as lists; -1 fills up short rows.
 *   dense<[[0, 1], [2, -1]]>    {{0,1},{2}} */
static const ir_int_lists *rows_of(to_hlo_op *x, const ir_mattr *a, bool skip_fill) {
  uint32_t n;
  const int64_t *v = attr_ints(x, a, &n);
  uint32_t rows = a && a->type->rank == 2 ? (uint32_t)a->type->dims[0] : 0, cols = rows ? n / rows : 0;
  assert(rows == 0 || n % rows == 0);
  ir_int_lists *lists = base_arena_alloc(&x->t->to->arena, sizeof *lists + rows * sizeof *lists->v);
  if (!lists) return NULL;
  lists->n = rows;
  for (uint32_t i = 0; i < rows; i++) {
    uint32_t count = cols;
    while (skip_fill && count && v[i * cols + count - 1] < 0) count--;
    if (!(lists->v[i] = ir_ints_make(x->t->to, count, v + (size_t)i * cols))) return NULL;
  }
  return lists;
}

int to_hlo_put_groups(to_hlo_op *x, ir_op *made, const ir_mattr *groups) {
  ir_groups *g = BASE_NEW(&x->t->to->arena, ir_groups);
  if (!g || !(g->lists = rows_of(x, groups, true))) return to_hlo_no_memory(x->t);
  ir_attr attr = ir_attr_make(IR_ATTR_REPLICA_GROUPS);
  attr.v.groups = g;
  return ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(x->t);
}

/* 0 where there is no such field. */
static int64_t to_hlo_field_int(const ir_mattr *a, const char *key) {
  const ir_mattr *v = a ? ir_m_field(a, key) : NULL;
  return v && v->kind == IR_M_INTEGER ? v->v.i : 0;
}

/* An axis, or a part of one: of sdy, or #stablehlo.axis_ref. */
static bool to_hlo_put_axis(base_text *out, const ir_mattr *a) {
  const sdy_axis *own = sdy_of(a, SDY_AXIS);
  const ir_mattr *name = own ? NULL : ir_m_field(a, "name"), *part = own ? NULL : ir_m_field(a, "sub_axis_info");
  const base_istr *s = own ? own->name : name ? name->str : NULL;
  int64_t pre = own ? own->pre : to_hlo_field_int(part, "pre_size"),
          size = own ? own->size : to_hlo_field_int(part, "size");
  if (!s) return false;
  base_putf(out, "'%s'", s->s);
  if (size) base_putf(out, ":(%lld)%lld", (long long)pre, (long long)size);
  return true;
}

/* A mesh of the module's by its name, or one that is written in place: #stablehlo.mesh. */
static bool to_hlo_put_mesh(to_hlo_op *x, base_text *out, const ir_mattr *a) {
  bool named = a && a->kind == IR_M_SYMBOL;
  const sdy_mesh *mesh = named ? sdy_mesh_named(x->t->from, a->v.list->v[0]->str) : sdy_of(a, SDY_MESH);
  const ir_mattr *own = mesh ? NULL : ir_m_field(a, "axes");
  uint32_t n = mesh ? mesh->n_axes : own && own->kind == IR_M_ARRAY ? own->v.list->n : 0;
  BASE_PUT(out, "mesh[");
  for (uint32_t i = 0; i < n; i++) {
    const ir_mattr *axis = mesh ? NULL : own->v.list->v[i], *name = axis ? ir_m_field(axis, "name") : NULL;
    if (axis && !name) return false;
    base_putf(out, "%s'%s'=%lld", i ? "," : "", mesh ? mesh->axes[i].name->s : name->str->s,
              (long long)(mesh ? mesh->axes[i].size : to_hlo_field_int(axis, "size")));
  }
  BASE_PUT(out, "]");
  for (uint32_t i = 0; mesh && i < mesh->n_ids; i++)
    base_putf(out, i ? ",%lld" : ", device_ids=(%lld", (long long)mesh->ids[i]);
  if (mesh && mesh->n_ids) BASE_PUT(out, ")");
  return mesh || own;
}

/* #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = ["x", "y":(1)2]>, which HLO keeps as text:
 *   mesh['x'=4,'y'=2] {'x','y':(1)2} */
static bool to_hlo_put_mesh_groups(to_hlo_op *x, base_text *out, const ir_mattr *a) {
  const ir_mattr *axes = ir_m_field(a, "axes");
  bool ok = axes && axes->kind == IR_M_ARRAY && to_hlo_put_mesh(x, out, ir_m_field(a, "mesh"));
  for (uint32_t i = 0; ok && i < axes->v.list->n; i++) {
    base_puts(out, i ? "," : " {");
    ok = to_hlo_put_axis(out, axes->v.list->v[i]);
  }
  base_puts(out, ok && axes->v.list->n == 0 ? " {}" : "}");
  return ok;
}

static int to_hlo_mesh_groups(to_hlo_op *x, ir_op *made, const ir_mattr *a) {
  ir_groups *g = BASE_NEW(&x->t->to->arena, ir_groups);
  base_text text;
  base_text_init(&text, x->t->to->alloc);
  bool known = to_hlo_put_mesh_groups(x, &text, a);
  if (g && known && !text.failed) g->mesh_text = ir_intern(x->t->to, text.s, text.n);
  base_text_free(&text);
  if (!known)
    return to_hlo_fail(x->t, x->op, XLAC_E_VERIFY_ATTRIBUTE,
                       "replica groups are axes of a mesh that the module does not have");
  ir_attr attr = ir_attr_make(IR_ATTR_REPLICA_GROUPS);
  attr.v.groups = g;
  return g && g->mesh_text && ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(x->t);
}

static int to_hlo_groups(to_hlo_op *x, ir_op *made) {
  const ir_mattr *a = ir_mattr_of(x->op, "replica_groups");
  return a && a->kind == IR_M_STRUCT ? to_hlo_mesh_groups(x, made, a) : to_hlo_put_groups(x, made, a);
}

/* No filling here: a pair has two members. */
static int to_hlo_targets(to_hlo_op *x, ir_op *made) {
  ir_attr attr = ir_attr_make(IR_ATTR_SOURCE_TARGET_PAIRS);
  attr.v.lists = rows_of(x, ir_mattr_of(x->op, "source_target_pairs"), false);
  return attr.v.lists && ir_attr_set(made, attr) ? 0 : to_hlo_no_memory(x->t);
}

/* HLO's channels begin at 1; a handle of 0 is none. StableHLO's channel type follows from the op in HLO. */
int to_hlo_channel(to_hlo_op *x, ir_op *made) {
  const ir_mattr *handle = ir_m_field(ir_mattr_of(x->op, "channel_handle"), "handle");
  if (!handle || handle->v.i <= 0) return 0;
  return ir_set_int(made, IR_ATTR_CHANNEL_ID, handle->v.i) ? 0 : to_hlo_no_memory(x->t);
}

/* --- the table --- */

/* A count of 1 is HLO's default; a dimension is a list of one in HLO. */
static int to_hlo_number(to_hlo_op *x, ir_op *made, const attr_pair *p, const ir_mattr *a) {
  ir_attr_key key = (ir_attr_key)p->key;
  int64_t v = a ? a->v.i : p->kind == PAIR_COUNT ? 1 : 0;
  bool ok = p->kind == PAIR_DIM ? ir_set_ints(made, key, 1, &v)
                                : (p->kind == PAIR_COUNT && v == 1) || ir_set_int(made, key, v);
  return ok ? 0 : to_hlo_no_memory(x->t);
}

/* One row of the table. */
static int to_hlo_pair(to_hlo_op *x, ir_op *made, const attr_pair *p) {
  const ir_mattr *a = ir_mattr_of(x->op, p->name);
  ir_attr_key key = (ir_attr_key)p->key;
  uint32_t n;
  if (p->field) a = ir_m_field(a, p->field);
  switch ((attr_pair_kind)p->kind) {
    case PAIR_INT:
    case PAIR_I32:
    case PAIR_DIM:
    case PAIR_COUNT:
      return to_hlo_number(x, made, p, a);
    case PAIR_INTS:
      return put_ints(x, made, a, key);
    case PAIR_SPARSE:
      attr_ints(x, a, &n);
      return n ? put_ints(x, made, a, key) : 0;
    case PAIR_BOOL:
      return ir_set_bool(made, key, ir_m_get_bool(x->op, p->name)) ? 0 : to_hlo_no_memory(x->t);
    case PAIR_FLAG:
    case PAIR_UNIT:
      return to_hlo_flag(x, made, p->name, key);
    case PAIR_F32:
      return ir_set_float(made, key, a->v.f) ? 0 : to_hlo_no_memory(x->t);
    case PAIR_WORD: /* the same number in both forms */
      return ir_set_word(made, key, ir_m_get_word(x->op, p->name)) ? 0 : to_hlo_no_memory(x->t);
    case PAIR_PRECISION:
      return to_hlo_precision(x, made);
    case PAIR_ALGORITHM:
      return to_hlo_algorithm(x, made);
    case PAIR_CONV_DIMS:
      return to_hlo_conv_dims(x, made);
    case PAIR_GROUPS:
      return to_hlo_groups(x, made);
    case PAIR_TARGETS:
      return to_hlo_targets(x, made);
    case PAIR_CHANNEL:
      return to_hlo_channel(x, made);
    case PAIR_ACCURACY:
      return to_hlo_accuracy(x, made);
  }
  return 0;
}

/* By the opcode that was made: its row names the attributes that the source op is looked at for. */
int to_hlo_attrs(to_hlo_op *x, ir_op *made) {
  for (const attr_pair *p = attr_pairs(made->opcode); p->name; p++) TRY(to_hlo_pair(x, made, p));
  return 0;
}
