/* HLO's typed attributes as StableHLO's inherent ones.
 *
 *   dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 *   stablehlo.dot_general: dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1],
 *                                                                 rhs_contracting_dimensions = [0]>
 *
 * The table of pairs (attr_pairs.c) says what is what; this file makes the values. What StableHLO requires is always
 * made, with HLO's default where HLO leaves it out. */
#include "../text/hlo/print.h"
#include "from_hlo.h"

#include <stdlib.h>

enum { FROM_HLO_MAX_FIELDS = 16 };

/* Enums and structs belong to the dialect of the op that has them. */
static const char *from_hlo_dialect(unsigned opcode) {
  assert(opcode < IR_OP_COUNT && ir_op_table[opcode].mlir);
  return strncmp(ir_op_table[opcode].mlir->name, "chlo.", 5) == 0 ? "chlo" : "stablehlo";
}

/* A field of a struct; NULL when out of memory. */
static int from_hlo_field(from_hlo_op *x, ir_mentry *e, const char *name, const ir_mattr *value) {
  e->key = ir_intern(x->t->to, name, strlen(name));
  e->value = value;
  return e->key && value ? 0 : from_hlo_no_memory(x->t);
}

/* --- words --- */

/* An enum's value, of the enum that the target op's attribute wants: the pair names the attribute, its spec the
 * enum. */
static const ir_mattr *from_hlo_word(from_hlo_op *x, const attr_pair *pair, int word) {
  const ir_mattr_spec *spec = ir_mattr_spec_find(x->target, pair->name, strlen(pair->name));
  assert(spec && spec->sub);
  return ir_m_enum(x->t->to, from_hlo_dialect(x->target), spec->sub, word);
}

/* The number of operands that precisions are given for is always two.
 *   operand_precision={highest,default}    precision_config = [HIGHEST, DEFAULT] */
static const ir_mattr *from_hlo_precision(from_hlo_op *x) {
  const ir_attr *a = ir_attr_find(x->op, IR_ATTR_OPERAND_PRECISION);
  const ir_mattr *words[2];
  for (uint32_t i = 0; i < 2; i++) {
    int precision = a && i < a->v.ints->n ? (int)a->v.ints->v[i] : IR_PRECISION_DEFAULT;
    if (!(words[i] = ir_m_enum(x->t->to, from_hlo_dialect(x->target), "precision", precision))) return NULL;
  }
  return ir_m_array(x->t->to, 2, words);
}

/* --- dot algorithms --- */

/* The type that a word of attr_algorithms stands for, as a type attribute. */
static const ir_mattr *from_hlo_number_type(from_hlo_op *x, const char *name) {
  if (strcmp(name, "f8") == 0) name = "f8e5m2"; /* any will do, says XLA's name of it */
  const ir_type *t = strcmp(name, "tf32") == 0 ? ir_other_type(x->t->to, name, 4)
                                               : ir_element(x->t->to, base_dtype_from_text(name, strlen(name)), NULL);
  return t ? ir_m_type(x->t->to, t) : NULL;
}

/*   algorithm=dot_bf16_bf16_f32_x3
 *   #stablehlo.dot_algorithm<lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32,
 *       lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3,
 *       allow_imprecise_accumulation = false> */
static int from_hlo_algorithm(from_hlo_op *x, ir_op *made) {
  const ir_dot algorithm = (ir_dot)ir_get_word(x->op, IR_ATTR_ALGORITHM);
  const attr_algorithm *a = attr_algorithms;
  ir_mentry fields[7];
  if (algorithm == IR_DOT_UNSET) return 0;
  while (a->operands && a->algorithm != algorithm) a++;
  assert(a->operands);
  TRY(from_hlo_field(x, &fields[0], "lhs_precision_type", from_hlo_number_type(x, a->operands)));
  TRY(from_hlo_field(x, &fields[1], "rhs_precision_type", from_hlo_number_type(x, a->operands)));
  TRY(from_hlo_field(x, &fields[2], "accumulation_type", from_hlo_number_type(x, a->accumulation)));
  TRY(from_hlo_field(x, &fields[3], "lhs_component_count", ir_m_i64(x->t->to, 1)));
  TRY(from_hlo_field(x, &fields[4], "rhs_component_count", ir_m_i64(x->t->to, 1)));
  TRY(from_hlo_field(x, &fields[5], "num_primitive_operations", ir_m_i64(x->t->to, a->products)));
  TRY(from_hlo_field(x, &fields[6], "allow_imprecise_accumulation", ir_m_bool(x->t->to, a->imprecise)));
  return from_hlo_put(x, made, "algorithm", ir_m_struct(x->t->to, "stablehlo", "dot_algorithm", 7, fields));
}

/*   result_accuracy={mode=highest}    #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>
 *   result_accuracy={tolerance={atol=0,rtol=0,ulps=2}}    ... ulps = 2, mode TOLERANCE
 *
 * Without the attribute, as nearly always, StableHLO's is left out too. */
static int from_hlo_accuracy(from_hlo_op *x, ir_op *made) {
  const ir_attr *a = ir_attr_find(x->op, IR_ATTR_RESULT_ACCURACY);
  ir_module *m = x->t->to;
  const ir_type *f64 = ir_element(m, XLAC_F64, NULL);
  ir_mentry fields[4];
  if (!a) return 0;
  if (!f64) return from_hlo_no_memory(x->t);
  TRY(from_hlo_field(x, &fields[0], "atol", ir_m_float(m, f64, a->v.accuracy->atol)));
  TRY(from_hlo_field(x, &fields[1], "rtol", ir_m_float(m, f64, a->v.accuracy->rtol)));
  TRY(from_hlo_field(x, &fields[2], "ulps", ir_m_i64(m, a->v.accuracy->ulps)));
  TRY(from_hlo_field(x, &fields[3], "mode", ir_m_enum(m, "stablehlo", "result_accuracy_mode", a->v.accuracy->mode)));
  return from_hlo_put(x, made, "result_accuracy", ir_m_struct(m, "stablehlo", "result_accuracy", 4, fields));
}

/* --- windows and such --- */

/*   dim_labels=b01f_01io->b01f
 *
 * Nine fields: for input, kernel and output each two numbers, then the list of spatial dimensions. */
static const ir_mattr *from_hlo_conv_dims(from_hlo_op *x) {
  const ir_conv_dims *d = ir_get_conv_dims(x->op);
  assert(d && d->n_spatial <= IR_MAX_RANK);
  ir_module *m = x->t->to;
  const struct {
    const char *name;
    int64_t v;
    const int64_t *list;
  } rows[] = {{"input_batch_dimension", d->input_batch, NULL},
              {"input_feature_dimension", d->input_feature, NULL},
              {"input_spatial_dimensions", 0, d->input_spatial},
              {"kernel_input_feature_dimension", d->kernel_input_feature, NULL},
              {"kernel_output_feature_dimension", d->kernel_output_feature, NULL},
              {"kernel_spatial_dimensions", 0, d->kernel_spatial},
              {"output_batch_dimension", d->output_batch, NULL},
              {"output_feature_dimension", d->output_feature, NULL},
              {"output_spatial_dimensions", 0, d->output_spatial}};
  ir_mentry fields[9];
  for (int i = 0; i < 9; i++) {
    bool list = i % 3 == 2;
    const ir_mattr *v = list ? ir_m_i64s(m, d->n_spatial, rows[i].list) : ir_m_i64(m, rows[i].v);
    if (from_hlo_field(x, &fields[i], rows[i].name, v) != 0) return NULL;
  }
  return ir_m_struct(m, "stablehlo", "conv", 9, fields);
}

/* One member of every window dimension as a list; padding gives pairs. HLO has one record a dimension, StableHLO one
 * list a member. `offset` is the member's place in the record; low and high padding stand next to one another there,
 * and go together as a row of two. */
static int from_hlo_window_list(from_hlo_op *x, ir_op *made, const char *name, const ir_window *w, size_t offset) {
  int64_t list[2 * IR_MAX_RANK], dims[2];
  uint32_t n = w ? w->n : 0, each = 1;
  if (!name) return 0;
  assert(n <= IR_MAX_RANK);
  if (offset == offsetof(ir_window_dim, padding_low)) each = 2;
  for (uint32_t i = 0; i < n; i++) memcpy(&list[each * i], (const char *)&w->v[i] + offset, each * sizeof *list);
  dims[0] = n;
  dims[1] = 2;
  const ir_mattr *a = each == 2 ? ir_m_dense_i64(x->t->to, 2, dims, list) : ir_m_i64s(x->t->to, n, list);
  return from_hlo_put(x, made, name, a);
}

/*   window={size=2x2 stride=2x2 pad=0_0x0_1}
 *   window_dimensions = [2, 2], window_strides = [2, 2], padding = [[0, 0], [0, 1]]
 *
 * A convolution's sizes are its kernel's and are not said; its dilations have names of their own. select_and_scatter
 * has no dilations. A reduce-window without a window has rank 0. */
int from_hlo_window(from_hlo_op *x, ir_op *made) {
  bool conv = x->op->opcode == IR_OP_CONVOLUTION, scatter = x->op->opcode == IR_OP_SELECT_AND_SCATTER;
  const ir_window *w = ir_get_window(x->op);
  const struct {
    const char *name;
    size_t offset;
  } rows[] = {{conv ? NULL : "window_dimensions", offsetof(ir_window_dim, size)},
              {"window_strides", offsetof(ir_window_dim, stride)},
              {"padding", offsetof(ir_window_dim, padding_low)},
              {scatter ? NULL
               : conv  ? "lhs_dilation"
                       : "base_dilations",
               offsetof(ir_window_dim, base_dilation)},
              {scatter ? NULL
               : conv  ? "rhs_dilation"
                       : "window_dilations",
               offsetof(ir_window_dim, window_dilation)}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    TRY(from_hlo_window_list(x, made, rows[i].name, w, rows[i].offset));
  if (!conv) return 0;
  int64_t reversal[IR_MAX_RANK];
  for (uint32_t i = 0; w && i < w->n; i++) reversal[i] = w->v[i].reversal;
  return from_hlo_put(x, made, "window_reversal", ir_m_bools(x->t->to, w ? w->n : 0, reversal));
}

/* The i-th member of each of n triples as an array. */
static const ir_mattr *from_hlo_column(from_hlo_op *x, uint32_t n, const void *triples, uint32_t i) {
  assert(i < 3);
  int64_t list[IR_MAX_RANK];
  assert(n <= IR_MAX_RANK);
  for (uint32_t k = 0; k < n; k++) memcpy(&list[k], (const int64_t *)triples + 3 * (size_t)k + i, sizeof *list);
  return ir_m_i64s(x->t->to, n, list);
}

/*   padding=0_1x2_3_1    edge_padding_low = [0, 2], edge_padding_high = [1, 3], interior_padding = [0, 1] */
int from_hlo_padding(from_hlo_op *x, ir_op *made) {
  const ir_padding *p = ir_attr_find(x->op, IR_ATTR_PADDING)->v.padding;
  assert(p->n == x->op->type->rank);
  TRY(from_hlo_put(x, made, "edge_padding_low", from_hlo_column(x, p->n, p->v, 0)));
  TRY(from_hlo_put(x, made, "edge_padding_high", from_hlo_column(x, p->n, p->v, 1)));
  return from_hlo_put(x, made, "interior_padding", from_hlo_column(x, p->n, p->v, 2));
}

/*   slice={[0:4],[2:8:2]}    start_indices = [0, 2], limit_indices = [4, 8], strides = [1, 2] */
int from_hlo_slice(from_hlo_op *x, ir_op *made) {
  const ir_slice *s = ir_attr_find(x->op, IR_ATTR_SLICE)->v.slice;
  assert(s->n == x->op->type->rank);
  TRY(from_hlo_put(x, made, "start_indices", from_hlo_column(x, s->n, s->v, 0)));
  TRY(from_hlo_put(x, made, "limit_indices", from_hlo_column(x, s->n, s->v, 1)));
  return from_hlo_put(x, made, "strides", from_hlo_column(x, s->n, s->v, 2));
}

/* --- collectives --- */

/* Lists of equal length as a matrix; shorter ones end in -1.
 *   {{0,1,2},{3}}    dense<[[0, 1, 2], [3, -1, -1]]> : tensor<2x3xi64>
 *
 * `columns` is the least width; 2 for source-target pairs, so that none gives tensor<0x2xi64>. */
static const ir_mattr *from_hlo_matrix(from_hlo_op *x, const ir_int_lists *lists, uint32_t columns) {
  for (uint32_t i = 0; i < lists->n; i++)
    if (lists->v[i]->n > columns) columns = lists->v[i]->n;
  size_t n = (size_t)lists->n * columns;
  int64_t *v = BASE_ARRAY(&x->t->to->arena, int64_t, n + 1), dims[2] = {lists->n, columns};
  for (size_t i = 0; v && i < n; i++) {
    const ir_ints *row = lists->v[i / columns];
    v[i] = i % columns < row->n ? row->v[i % columns] : -1;
  }
  return v ? ir_m_dense_i64(x->t->to, 2, dims, v) : NULL;
}

/* "{{0,1},{2,3}}", which we have printed ourselves: every list ends in a brace. */
static const ir_int_lists *from_hlo_read_lists(from_hlo *t, const base_text *text) {
  assert(text->n >= 2 && text->s[0] == '{');
  uint32_t rows = 0, most = 0;
  for (size_t i = 0; i < text->n; i++) {
    rows += text->s[i] == '{';
    most += text->s[i] == ',';
  }
  ir_int_lists *lists = base_arena_zalloc(&t->to->arena, sizeof *lists + rows * sizeof *lists->v);
  int64_t *row = BASE_ARRAY(&t->to->arena, int64_t, most + 2u);
  if (!lists || !row) return NULL;
  for (const char *p = text->s + 1; *p == '{'; p += p[1] == ',' ? 2 : 1) {
    uint32_t n = 0;
    for (p++; *p != '}';) {
      char *after;
      assert(n <= most && lists->n < rows);
      row[n++] = strtoll(*p == ',' ? p + 1 : p, &after, 10);
      p = after;
    }
    if (!(lists->v[lists->n++] = ir_ints_make(t->to, n, row))) return NULL;
  }
  return lists;
}

/* Groups by iota ([2,4]<=[8]) or by mesh axes are written out by the printer and read back, which keeps one place
 * that knows what they mean. */
int from_hlo_groups(const from_hlo_op *x, const ir_int_lists **out) {
  const ir_attr *a = ir_attr_find(x->op, IR_ATTR_REPLICA_GROUPS);
  *out = a ? a->v.groups->lists : NULL;
  if (!a || (!a->v.groups->iota && !a->v.groups->mesh_text)) return 0;
  base_text text;
  base_text_init(&text, x->t->to->alloc);
  text_put_groups(&text, a->v.groups, true);
  *out = text.failed || text.n < 2 ? NULL : from_hlo_read_lists(x->t, &text);
  base_text_free(&text);
  return *out ? 0 : from_hlo_no_memory(x->t);
}

const ir_mattr *from_hlo_groups_attr(from_hlo_op *x) {
  const ir_int_lists *lists, none = {0};
  if (from_hlo_groups(x, &lists) != 0) return NULL;
  return from_hlo_matrix(x, lists ? lists : &none, 0);
}

/* #stablehlo.channel_handle<handle = 1, type = 0>. The type is 0 for collectives; see from_hlo_transfer for the
 * others. */
const ir_mattr *from_hlo_channel(from_hlo *t, int64_t handle, int64_t type) {
  const char *names[2] = {"handle", "type"};
  const int64_t values[2] = {handle, type};
  ir_mentry fields[2];
  for (int i = 0; i < 2; i++) {
    fields[i].key = ir_intern(t->to, names[i], strlen(names[i]));
    fields[i].value = ir_m_i64(t->to, values[i]);
    if (!fields[i].key || !fields[i].value) return NULL;
  }
  return ir_m_struct(t->to, "stablehlo", "channel_handle", 2, fields);
}

/* --- literals --- */

/* A literal of one value everywhere is kept as that one value, a splat: dense<1.0> : tensor<1024xf32>. Compared by
 * bytes: the elements all equal the first if each equals its neighbour. */
const ir_mattr *from_hlo_literal(from_hlo *t, const ir_type *type, const ir_literal *l) {
  if (type->count == 0) {
    const ir_literal *none = ir_literal_new(t->to, type);
    return none ? ir_m_dense(t->to, type, none, false) : NULL;
  }
  size_t size = base_dtype_bytes((base_dtype)type->dtype), n = (size_t)type->count * size;
  const char *data = l->data;
  bool splat = n == size || memcmp(data, data + size, n - size) == 0;
  const ir_type *held = splat ? ir_tensor(t->to, (base_dtype)type->dtype, 0, NULL, NULL, NULL, NULL) : type;
  ir_literal *copy = held ? ir_literal_new(t->to, held) : NULL;
  if (!copy) return NULL;
  memcpy(copy->data, data, splat ? size : n);
  return ir_m_dense(t->to, type, copy, splat);
}

/* --- the table --- */

/* The value of one attribute (or field) that StableHLO always has. NULL when out of memory. */
static const ir_mattr *from_hlo_pair(from_hlo_op *x, const attr_pair *p) {
  const ir_op *op = x->op;
  ir_module *m = x->t->to;
  const ir_ints *ints = NULL;
  const ir_type *f32 = ir_element(m, XLAC_F32, NULL);
  switch ((attr_pair_kind)p->kind) {
    case PAIR_INT:
      return ir_m_i64(m, ir_get_int(op, (ir_attr_key)p->key, 0));
    case PAIR_I32:
      return ir_m_i32(m, ir_get_int(op, (ir_attr_key)p->key, 0));
    case PAIR_COUNT:
      return ir_m_i64(m, ir_get_int(op, (ir_attr_key)p->key, 1));
    case PAIR_DIM:
      ints = ir_get_ints(op, (ir_attr_key)p->key);
      return ir_m_i64(m, ints->n ? ints->v[0] : 0);
    case PAIR_INTS:
    case PAIR_SPARSE:
      ints = ir_get_ints(op, (ir_attr_key)p->key);
      return ir_m_i64s(m, ints->n, ints->v);
    case PAIR_BOOL:
    case PAIR_FLAG:
      return ir_m_bool(m, ir_get_bool(op, (ir_attr_key)p->key, false));
    case PAIR_F32:
      return f32 ? ir_m_float(m, f32, ir_get_float(op, (ir_attr_key)p->key, 0)) : NULL;
    case PAIR_WORD:
      return from_hlo_word(x, p, ir_get_word(op, (ir_attr_key)p->key));
    case PAIR_PRECISION:
      return from_hlo_precision(x);
    case PAIR_CONV_DIMS:
      return from_hlo_conv_dims(x);
    case PAIR_GROUPS:
      return from_hlo_groups_attr(x);
    case PAIR_TARGETS:
      return from_hlo_matrix(x, ir_attr_find(op, (ir_attr_key)p->key)->v.lists, 2);
    default:
      return NULL;
  }
}

/* Attributes that are there or not. *done says whether the pair is of this kind; if not, from_hlo_pair is to make
 * it. */
static int from_hlo_optional_pair(from_hlo_op *x, ir_op *made, const attr_pair *p, bool *done) {
  int64_t channel = 0;
  *done = true;
  switch ((attr_pair_kind)p->kind) {
    case PAIR_ALGORITHM:
      return from_hlo_algorithm(x, made);
    case PAIR_ACCURACY:
      return from_hlo_accuracy(x, made);
    case PAIR_UNIT:
      if (!ir_get_bool(x->op, (ir_attr_key)p->key, false)) return 0;
      return from_hlo_put(x, made, p->name, ir_m_unit(x->t->to));
    case PAIR_CHANNEL:
      channel = ir_get_int(x->op, (ir_attr_key)p->key, 0);
      return channel ? from_hlo_put(x, made, p->name, from_hlo_channel(x->t, channel, 0)) : 0;
    default:
      *done = false;
      return 0;
  }
}

/* All fields of one struct; *p is moved to its last. */
static int from_hlo_struct(from_hlo_op *x, ir_op *made, const attr_pair **p) {
  ir_mentry fields[FROM_HLO_MAX_FIELDS];
  uint32_t n = 0;
  const attr_pair *row = *p;
  const char *name = row->name;
  const ir_mattr_spec *spec = ir_mattr_spec_find(x->target, name, strlen(name));
  assert(spec && spec->sub);
  for (; row->name && row->field && strcmp(row->name, name) == 0; row++) {
    assert(n < FROM_HLO_MAX_FIELDS);
    TRY(from_hlo_field(x, &fields[n++], row->field, from_hlo_pair(x, row)));
  }
  *p = row - 1;
  return from_hlo_put(x, made, name, ir_m_struct(x->t->to, from_hlo_dialect(x->target), spec->sub, n, fields));
}

/* Runs through the rows of the op that was made, which need not be the op that HLO has: what all-gather-start
 * becomes is an all_gather. */
int from_hlo_attrs(from_hlo_op *x, ir_op *made) {
  x->target = made->opcode;
  for (const attr_pair *p = attr_pairs(made->opcode); p->name; p++) {
    bool done = false;
    if (p->field) {
      TRY(from_hlo_struct(x, made, &p));
      continue;
    }
    TRY(from_hlo_optional_pair(x, made, p, &done));
    if (!done) TRY(from_hlo_put(x, made, p->name, from_hlo_pair(x, p)));
  }
  return 0;
}
