/* "dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {...}": the syntax of convolution. */
#include "read_custom.h"

/* One of "[b, 0, f]": what the two letters and the numbers stand at. */
typedef struct mlir_conv_part {
  int64_t first, second;
  uint32_t n;
  int64_t spatial[IR_MAX_RANK];
} mlir_conv_part;

/* a and b are the letters of the two non-spatial dimensions. */
static int mlir_read_conv_part(mlir_reader *r, char a, char b, mlir_conv_part *p) {
  const char *at = r->lx.p;
  *p = (mlir_conv_part){.first = -1, .second = -1};
  for (int i = 0; i < IR_MAX_RANK; i++) p->spatial[i] = -1;
  TRY(mlir_want(r, "["));
  int64_t position = 0;
  do {
    int64_t d;
    char c = *r->lx.p;
    if (c == a || c == b) {
      int64_t *place = c == a ? &p->first : &p->second;
      if (*place >= 0) return mlir_fail(r, r->lx.p, XLAC_E_BAD_ATTRIBUTE, "Unexpected dimension %c: duplicated", c);
      *place = position;
      r->lx.p++;
      text_skip(&r->lx);
    } else if (c == '?') {
      return mlir_fail(r, r->lx.p, XLAC_E_BAD_ATTRIBUTE, "a dimension of unknown meaning");
    } else {
      TRY(mlir_read_int(r, &d));
      if (d < 0 || d >= IR_MAX_RANK || p->spatial[d] >= 0)
        return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "Duplicate entries for spatial dimension %lld", (long long)d);
      p->spatial[d] = position;
      p->n++;
    }
    if (++position > IR_MAX_RANK) return mlir_expected(r, "fewer dimensions");
  } while (mlir_eat(r, ","));
  TRY(mlir_want(r, "]"));
  if (p->first < 0 || p->second < 0)
    return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "Expected dimension %c not specified", p->first < 0 ? a : b);
  for (uint32_t i = 0; i < p->n; i++)
    if (p->spatial[i] < 0)
      return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "Expected spatial dimension %u not specified", i);
  return 0;
}

static int mlir_conv_fields(mlir_reader *r, const mlir_conv_part *in, const mlir_conv_part *kernel,
                            const mlir_conv_part *result, const ir_mattr **out) {
  ir_mentry e[9];
  TRY(mlir_field(r, &e[0], "input_batch_dimension", ir_m_i64(r->m, in->first)));
  TRY(mlir_field(r, &e[1], "input_feature_dimension", ir_m_i64(r->m, in->second)));
  TRY(mlir_field(r, &e[2], "input_spatial_dimensions", ir_m_i64s(r->m, in->n, in->spatial)));
  TRY(mlir_field(r, &e[3], "kernel_input_feature_dimension", ir_m_i64(r->m, kernel->first)));
  TRY(mlir_field(r, &e[4], "kernel_output_feature_dimension", ir_m_i64(r->m, kernel->second)));
  TRY(mlir_field(r, &e[5], "kernel_spatial_dimensions", ir_m_i64s(r->m, kernel->n, kernel->spatial)));
  TRY(mlir_field(r, &e[6], "output_batch_dimension", ir_m_i64(r->m, result->first)));
  TRY(mlir_field(r, &e[7], "output_feature_dimension", ir_m_i64(r->m, result->second)));
  TRY(mlir_field(r, &e[8], "output_spatial_dimensions", ir_m_i64s(r->m, result->n, result->spatial)));
  *out = ir_m_struct(r->m, "stablehlo", "conv", 9, e);
  return *out ? 0 : mlir_no_memory(r);
}

/* "raw<input_batch_dimension = 0, ...>": the fields by name. */
static int mlir_read_conv_raw(mlir_reader *r, const ir_mattr **out) {
  const ir_struct_info *info = ir_struct_find("stablehlo", 9, "conv", 4);
  ir_mentry e[9];
  uint32_t n = 0;
  bool angle = mlir_eat(r, "<"); /* MLIR prints raw<...>, older texts leave the brackets out */
  for (const ir_field_info *f = info->fields; f->name; f++) {
    if (n && !mlir_eat(r, ",")) return mlir_expected(r, "','");
    TRY(mlir_want_key(r, f->name));
    const ir_mattr *value;
    if (f->kind == IR_F_I64) {
      int64_t v;
      TRY(mlir_read_int(r, &v));
      value = ir_m_i64(r->m, v);
    } else {
      uint32_t from;
      TRY(mlir_read_dims(r, &from));
      value = ir_m_i64s(r->m, r->ints.n - from, r->ints.items + from);
      r->ints.n = from;
    }
    TRY(mlir_field(r, &e[n++], f->name, value));
  }
  *out = ir_m_struct(r->m, "stablehlo", "conv", n, e);
  if (!*out) return mlir_no_memory(r);
  return angle ? mlir_want(r, ">") : 0;
}

/* "[b, 0, f]x[0, i, o]->[b, 0, f]" at the cursor; empty where it does not end soon. */
static base_slice mlir_conv_text(const mlir_reader *r) {
  const char *p = r->lx.p, *e = p;
  while (e - p < 60 && *e && *e != '>') e++;
  while (e - p < 60 && *e && *e != ']') e++;
  return *e == ']' ? (base_slice){p, (size_t)(e + 1 - p)} : (base_slice){0};
}

static int mlir_read_new_conv_dims(mlir_reader *r, const ir_mattr **out) {
  mlir_conv_part in, kernel, result;
  TRY(mlir_read_conv_part(r, 'b', 'f', &in));
  TRY(mlir_want(r, "x"));
  TRY(mlir_read_conv_part(r, 'i', 'o', &kernel));
  TRY(mlir_want(r, "->"));
  TRY(mlir_read_conv_part(r, 'b', 'f', &result));
  return mlir_conv_fields(r, &in, &kernel, &result, out);
}

int mlir_read_conv_dims(mlir_reader *r, const ir_mattr **out) {
  if (mlir_eat_word(r, "raw")) return mlir_read_conv_raw(r, out);
  base_slice seen = mlir_conv_text(r);
  mlir_memo *place;
  if ((*out = mlir_recall(r, MLIR_MEMO_CONV, seen, &place))) {
    mlir_pass(r, seen);
    return 0;
  }
  TRY(mlir_read_new_conv_dims(r, out));
  mlir_remember(r, place, MLIR_MEMO_CONV, seen, *out);
  return 0;
}

/* "[[2, 3], [2, 3]]" at the cursor; empty where it does not end soon. */
static base_slice mlir_pad_text(const mlir_reader *r) {
  const char *p = r->lx.p, *e = p;
  if (*p != '[') return (base_slice){0};
  while (e - p < 60 && *e && !(e[0] == ']' && e[1] == ']')) e++;
  return *e == ']' ? (base_slice){p, (size_t)(e + 2 - p)} : (base_slice){0};
}

static int mlir_read_new_pad(mlir_reader *r, const ir_mattr **out) {
  uint32_t from = r->ints.n, rows = 0;
  TRY(mlir_want(r, "["));
  if (*r->lx.p != ']') {
    do {
      uint32_t at;
      TRY(mlir_read_dims(r, &at));
      if (r->ints.n - at != 2) return mlir_expected(r, "two numbers of padding for each dimension");
      rows++;
    } while (mlir_eat(r, ","));
  }
  TRY(mlir_want(r, "]"));
  int64_t dims[2] = {rows, 2};
  *out = ir_m_dense_i64(r->m, 2, dims, r->ints.items + from);
  r->ints.n = from;
  return *out ? 0 : mlir_no_memory(r);
}

static int mlir_read_window_pad(mlir_reader *r) {
  base_slice seen = mlir_pad_text(r);
  mlir_memo *place;
  const ir_mattr *a = mlir_recall(r, MLIR_MEMO_PAD, seen, &place);
  if (a) {
    mlir_pass(r, seen);
  } else {
    TRY(mlir_read_new_pad(r, &a));
    mlir_remember(r, place, MLIR_MEMO_PAD, seen, a);
  }
  return mlir_add_attr(r, "padding", a);
}

static int mlir_read_new_reverse(mlir_reader *r, const ir_mattr **out) {
  uint32_t from = r->ints.n;
  TRY(mlir_want(r, "["));
  while (*r->lx.p != ']') {
    int64_t v = mlir_eat_word(r, "true") || mlir_eat_word(r, "1");
    if (!v && !mlir_eat_word(r, "false") && !mlir_eat_word(r, "0")) return mlir_expected(r, "true or false");
    if (!BASE_VEC_PUSH(r->alloc, &r->ints, v)) return mlir_no_memory(r);
    if (!mlir_eat(r, ",")) break;
  }
  TRY(mlir_want(r, "]"));
  *out = ir_m_bools(r->m, r->ints.n - from, r->ints.items + from);
  r->ints.n = from;
  return *out ? 0 : mlir_no_memory(r);
}

static int mlir_read_window_reverse(mlir_reader *r) {
  base_slice seen = mlir_list_text(r);
  mlir_memo *place;
  const ir_mattr *a = mlir_recall(r, MLIR_MEMO_REVERSE, seen, &place);
  if (a) {
    mlir_pass(r, seen);
  } else {
    TRY(mlir_read_new_reverse(r, &a));
    mlir_remember(r, place, MLIR_MEMO_REVERSE, seen, a);
  }
  return mlir_add_attr(r, "window_reversal", a);
}

static int mlir_read_window_item(mlir_reader *r, unsigned *seen) {
  static const struct {
    const char *word, *attr;
  } items[] = {{"stride", "window_strides"},
               {"pad", NULL},
               {"lhs_dilate", "lhs_dilation"},
               {"rhs_dilate", "rhs_dilation"},
               {"reverse", NULL}};
  for (unsigned i = 0; i < 5; i++) {
    if (!mlir_eat_word(r, items[i].word)) continue;
    if (*seen & 1u << i)
      return mlir_fail(r, r->lx.p, XLAC_E_BAD_ATTRIBUTE, "'%s' is given twice in the window", items[i].word);
    *seen |= 1u << i;
    TRY(mlir_want(r, "="));
    if (i == 1) return mlir_read_window_pad(r);
    if (i == 4) return mlir_read_window_reverse(r);
    const ir_mattr *list;
    TRY(mlir_read_bare_ints(r, false, &list));
    return mlir_add_attr(r, items[i].attr, list);
  }
  return mlir_expected(r, "stride, pad, lhs_dilate, rhs_dilate or reverse");
}

int mlir_read_convolution(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_read_parenthesised(r, s));
  const ir_mattr *dims;
  TRY(mlir_want_key(r, "dim_numbers"));
  TRY(mlir_read_conv_dims(r, &dims));
  TRY(mlir_add_attr(r, "dimension_numbers", dims));
  TRY(mlir_want(r, ","));
  TRY(mlir_want_key(r, "window"));
  TRY(mlir_want(r, "{"));
  unsigned seen = 0;
  if (!mlir_eat(r, "}")) {
    do TRY(mlir_read_window_item(r, &seen));
    while (mlir_eat(r, ","));
    TRY(mlir_want(r, "}"));
  }
  return 0;
}
