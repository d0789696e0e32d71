/* MLIR types.
 *
 *   tensor<2x?xf32, #stablehlo.bounds<?, 5>>   f32   index   tuple<a, b>
 *   (a) -> b   !stablehlo.token   !quant.uniform<i8:f32, 0.5>
 *
 * Types that xlac computes with are taken apart; any other that MLIR has is kept as its text (IR_TYPE_OTHER). Types
 * are interned by the module. The texts of tensor types are remembered, since programs repeat a few of them. */
#include "read.h"

/* complex<f32> and complex<f64> are dtypes here; other complex types are kept as text. */
base_dtype mlir_read_dtype(mlir_reader *r) {
  base_slice w = mlir_word(r);
  if (base_slice_is(w, "complex")) {
    const char *p = w.p + w.n;
    bool wide = strncmp(p, "<f64>", 5) == 0;
    if (!wide && strncmp(p, "<f32>", 5) != 0) return (base_dtype)0;
    r->lx.p = p + 5;
    text_skip(&r->lx);
    return wide ? XLAC_C128 : XLAC_C64;
  }
  base_dtype t = base_dtype_from_mlir(w.p, w.n);
  if (t) mlir_skip_word(r, w);
  return t;
}

/* --- tensors --- */

/* What stands between the brackets of a tensor, but for its encoding. */
typedef struct mlir_tensor {
  uint32_t rank;
  int64_t dims[IR_MAX_RANK];
  bool dynamic[IR_MAX_RANK];
  bool any_dynamic, unranked;
  base_dtype dtype;
  const ir_quant *quant;
  const base_istr *text;
} mlir_tensor;

/* "2x?x3x": the dimensions up to the element type. No blanks are allowed inside, which keeps 3xf32 apart from names. */
static int mlir_read_shape(mlir_reader *r, mlir_tensor *t) {
  assert(t->rank == 0);
  if (mlir_eat(r, "*")) {
    t->unranked = true;
    return mlir_want(r, "x");
  }
  for (;;) {
    const char *p = r->lx.p;
    bool dynamic = *p == '?';
    if (!dynamic && !text_is(*p, TEXT_DIGIT)) return 0;
    if (t->rank == IR_MAX_RANK)
      return mlir_fail(r, p, XLAC_E_TOO_LARGE, "a shape of more than %d dimensions", IR_MAX_RANK);
    int64_t v = 0;
    const char *e = p + 1;
    if (!dynamic) {
      for (e = p; text_is(*e, TEXT_DIGIT); e++)
        if (!base_mul_i64(v, 10, &v) || !base_add_i64(v, *e - '0', &v))
          return mlir_fail(r, p, XLAC_E_BAD_SHAPE_TEXT, "a dimension beyond 2^63 - 1");
    }
    r->lx.p = e;
    text_skip(&r->lx);
    if (*r->lx.p != 'x') return mlir_expected(r, "x after a dimension");
    r->lx.p++;
    text_skip(&r->lx);
    t->dims[t->rank] = dynamic ? IR_UNBOUNDED : v;
    t->dynamic[t->rank++] = dynamic;
    t->any_dynamic = t->any_dynamic || dynamic;
  }
}

/* A name and, where brackets follow, what they enclose, as one interned text. */
static int mlir_verbatim_until(mlir_reader *r, const char *p, const base_istr **out) {
  const char *e = p;
  while (text_is(*e, TEXT_NAME) || *e == '$' || *e == '!' || *e == '#') e++;
  if (*e == '<' && !(e = mlir_balanced_end(r, e))) return mlir_fail(r, p, XLAC_E_SYNTAX, "brackets that never close");
  *out = ir_intern(r->m, p, (size_t)(e - p));
  r->lx.p = e;
  text_skip(&r->lx);
  return *out ? 0 : mlir_no_memory(r);
}

/* complex<...> of what xlac has no complex numbers of is kept as its text, if MLIR has them. */
static int mlir_check_complex(mlir_reader *r, const char *at) {
  static const char complex_word[] = "complex<";
  size_t n = sizeof complex_word - 1;
  if (strncmp(at, complex_word, n) != 0 || strchr("fibu", at[n])) return 0;
  return mlir_fail(r, at, XLAC_E_BAD_SHAPE_TEXT, "invalid element type for complex");
}

/* A builtin type of MLIR that xlac computes nothing with: integers of any width, others by name. */
static bool mlir_is_other_type(base_slice w) {
  static const char *const others[] = {"index", "none", "tf32", "memref", "vector", "f80", "f128", "complex"};
  bool known = w.n > 1 && (w.p[0] == 'i' || (w.p[1] == 'i' && w.n > 2)) && text_is(w.p[w.n - 1], TEXT_DIGIT);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) known = known || base_slice_is(w, others[i]);
  return known;
}

/* Elements of types that are not a dtype keep their text; their dtype says s64, which is what index would be. */
static int mlir_read_element(mlir_reader *r, mlir_tensor *t) {
  const char *at = r->lx.p;
  if (*at == '!') {
    const ir_type *element;
    TRY(mlir_read_type(r, &element));
    if (element->kind == IR_TYPE_ELEMENT) {
      t->dtype = (base_dtype)element->dtype;
      t->quant = element->quant;
      return 0;
    }
    if (element->kind != IR_TYPE_OTHER) return mlir_fail(r, at, XLAC_E_BAD_SHAPE_TEXT, "invalid tensor element type");
    t->text = element->text;
    t->dtype = XLAC_S64;
    return 0;
  }
  if ((t->dtype = mlir_read_dtype(r))) return 0;
  base_slice w = mlir_word(r);
  if (w.n == 0) return mlir_expected(r, "an element type");
  TRY(mlir_check_complex(r, at));
  if (!mlir_is_other_type(w) && !(w.p[0] == 'f' && w.n > 1 && text_is(w.p[1], TEXT_DIGIT)))
    return base_hint(r->err, mlir_fail(r, at, XLAC_E_BAD_SHAPE_TEXT, "invalid tensor element type"),
                     "types are such as f32, bf16, i32, ui8 and i1 (HLO's s32, u8 and pred)");
  t->dtype = XLAC_S64;
  return mlir_verbatim_until(r, at, &t->text);
}

/* Bounds of dynamic dimensions, `?` elsewhere.
 *   <?, 5>   or   <bounds = [?, 5]>
 * A bound replaces the unknown size of its dimension in t->dims; `dynamic` still marks it. */
static int mlir_read_bounds(mlir_reader *r, mlir_tensor *t, const char *at) {
  assert(t->rank <= IR_MAX_RANK);
  const char *close = *r->lx.p == '[' ? "]" : ">";
  bool bracket = mlir_eat(r, "[");
  for (uint32_t i = 0; i < t->rank; i++) {
    if (i && !mlir_eat(r, ",")) return mlir_expected(r, "a bound for each dimension");
    if (mlir_eat(r, "?")) continue;
    int64_t bound;
    TRY(mlir_read_int(r, &bound));
    if (bound < 0) continue; /* MLIR's own "?" is a negative number */
    if (!t->dynamic[i])
      return mlir_fail(r, at, XLAC_E_BAD_SHAPE_TEXT,
                       "Static dimension %u cannot have a bound, use ? to indicate a missing bound", i);
    t->dims[i] = bound;
  }
  if (*r->lx.p != *close)
    return mlir_fail(r, at, XLAC_E_BAD_SHAPE_TEXT, "Bounds length is not the rank of the type, %u", t->rank);
  return bracket ? mlir_want(r, "]") : 0;
}

/* The encoding after the comma. Bounds go into the dims, anything else is kept verbatim. Bounds that bound nothing
 * are an encoding like any other. */
static int mlir_read_encoding(mlir_reader *r, mlir_tensor *t, const base_istr **encoding) {
  const char *at = r->lx.p;
  const char *saved = at;
  if (mlir_eat(r, "#stablehlo.bounds<") || mlir_eat(r, "#mhlo.type_extensions<bounds") ||
      mlir_eat(r, "#stablehlo.type_extensions<bounds")) {
    mlir_eat(r, "=");
    TRY(mlir_read_bounds(r, t, at));
    TRY(mlir_want(r, ">"));
    bool bounded = false;
    for (uint32_t i = 0; i < t->rank; i++) bounded = bounded || (t->dynamic[i] && t->dims[i] != IR_UNBOUNDED);
    if (bounded) return 0;
    *encoding = ir_intern(r->m, saved, (size_t)(r->lx.p - saved));
    return *encoding ? 0 : mlir_no_memory(r);
  }
  const ir_mattr *a;
  TRY(mlir_read_attr(r, &a));
  if (a->kind == IR_M_OPAQUE && !a->hex) { /* what an alias stands for */
    base_text t;
    base_text_init(&t, r->alloc);
    text_put_mlir_attr(&t, a);
    *encoding = t.failed ? NULL : ir_intern(r->m, t.s, t.n);
    base_text_free(&t);
    return *encoding ? 0 : mlir_no_memory(r);
  }
  const char *e = r->lx.p;
  while (e > saved && text_is(e[-1], TEXT_SPACE)) e--;
  *encoding = ir_intern(r->m, saved, (size_t)(e - saved));
  return *encoding ? 0 : mlir_no_memory(r);
}

/* Cursor after "tensor". */
static int mlir_read_new_tensor(mlir_reader *r, const ir_type **out) {
  mlir_tensor t = {0};
  const base_istr *encoding = NULL;
  const char *at = r->lx.p;
  TRY(mlir_want(r, "<"));
  TRY(mlir_read_shape(r, &t));
  TRY(mlir_read_element(r, &t));
  if (mlir_eat(r, ",")) TRY(mlir_read_encoding(r, &t, &encoding));
  TRY(mlir_want(r, ">"));
  if (t.unranked) {
    *out = ir_unranked(r->m, t.dtype, t.quant, t.text);
    return *out ? 0 : mlir_no_memory(r);
  }
  xlac_error inner = {0};
  *out = ir_tensor_mlir(r->m, t.dtype, t.quant, t.text, t.rank, t.dims, t.any_dynamic ? t.dynamic : NULL, encoding,
                        &inner);
  return *out ? 0 : mlir_fail(r, at, (base_code)inner.code, "%s", inner.message);
}

/* "<...>" at the cursor, where it has no brackets or aliases inside; else empty. */
static base_slice mlir_tensor_text(const mlir_reader *r) {
  const char *p = r->lx.p, *e = p + 1;
  if (*p != '<') return (base_slice){0};
  while (text_is(*e, TEXT_NAME) || *e == '?') e++;
  return *e == '>' ? (base_slice){p, (size_t)(e + 1 - p)} : (base_slice){0};
}

/* Only texts without commas or brackets are remembered: those are most of them. */
static int mlir_read_tensor(mlir_reader *r, const ir_type **out) {
  base_slice text = mlir_tensor_text(r);
  mlir_memo *place;
  if ((*out = mlir_recall(r, MLIR_MEMO_TENSOR, text, &place))) {
    mlir_pass(r, text);
    return 0;
  }
  TRY(mlir_read_new_tensor(r, out));
  mlir_remember(r, place, MLIR_MEMO_TENSOR, text, *out);
  return 0;
}

/* --- lists, functions, tuples --- */

/* Types of a list are collected on r->types. */
static int mlir_push_type(mlir_reader *r) {
  const ir_type *t;
  TRY(mlir_read_type(r, &t));
  return BASE_VEC_PUSH(r->alloc, &r->types, t) ? 0 : mlir_no_memory(r);
}

/* The bracket that opens the list has been taken. */
static int mlir_read_types_until(mlir_reader *r, const char *close, uint32_t *n) {
  uint32_t from = r->types.n;
  if (!mlir_eat(r, close)) {
    do TRY(mlir_push_type(r));
    while (mlir_eat(r, ","));
    TRY(mlir_want(r, close));
  }
  *n = r->types.n - from;
  return 0;
}

/*   (tensor<f32>, tensor<i32>) */
int mlir_read_type_list(mlir_reader *r, uint32_t *n) {
  TRY(mlir_want(r, "("));
  return mlir_read_types_until(r, ")", n);
}

/*   tensor<f32>      (tensor<f32>, tensor<i32>)      () */
static int mlir_read_result_types(mlir_reader *r, uint32_t *n) {
  if (*r->lx.p == '(') return mlir_read_type_list(r, n);
  *n = 1;
  return mlir_push_type(r);
}

/* Parentheses may be left out around one type. */
int mlir_read_function_type(mlir_reader *r, uint32_t *n_inputs, uint32_t *n_results) {
  if (*r->lx.p == '(') {
    TRY(mlir_read_type_list(r, n_inputs));
  } else {
    *n_inputs = 1;
    TRY(mlir_push_type(r));
  }
  TRY(mlir_want(r, "->"));
  return mlir_read_result_types(r, n_results);
}

/*   (a, b) -> c */
static int mlir_read_function(mlir_reader *r, const ir_type **out) {
  uint32_t from = r->types.n, inputs, results;
  TRY(mlir_read_function_type(r, &inputs, &results));
  *out = ir_function_type(r->m, inputs, results, r->types.items + from, r->types.items + from + inputs);
  r->types.n = from;
  return *out ? 0 : mlir_no_memory(r);
}

/* tuple<...> or !stablehlo.future<...>. */
static int mlir_read_tuple(mlir_reader *r, bool future, const ir_type **out) {
  uint32_t from = r->types.n, n;
  const char *at = r->lx.p;
  TRY(mlir_want(r, "<"));
  TRY(mlir_read_types_until(r, ">", &n));
  for (uint32_t i = 0; future && i < n; i++)
    if (!ir_is_tensor(r->types.items[from + i]))
      return mlir_fail(r, at, XLAC_E_BAD_SHAPE_TEXT, "element %u of a future must be a ranked tensor", i);
  const ir_type *const *elements = n ? r->types.items + from : NULL;
  *out = future ? ir_future(r->m, n, elements) : ir_tuple(r->m, n, elements);
  r->types.n = from;
  return *out ? 0 : mlir_no_memory(r);
}

/* --- dialect types and aliases --- */

/* Reads the definition at its first use, as mlir_read_attr_alias does for attributes. */
static int mlir_read_alias(mlir_reader *r, const char *at, base_slice name, const ir_type **out) {
  const base_istr *key = base_intern_find(&r->m->strings, name.p, name.n);
  uint64_t index;
  if (!key || !base_map_get(&r->type_aliases, base_key(key), &index))
    return mlir_fail(r, at, XLAC_E_UNKNOWN_NAME, "undefined symbol alias id '%.*s'", (int)name.n, name.p);
  mlir_alias *a = &r->aliases.items[index];
  if (a->busy) return mlir_fail(r, at, XLAC_E_SYNTAX, "the alias !%.*s is defined by itself", (int)name.n, name.p);
  if (!a->type) {
    const char *back = r->lx.p;
    a->busy = true;
    r->lx.p = a->value;
    text_skip(&r->lx);
    const ir_type *type;
    TRY(mlir_read_type(r, &type));
    a = &r->aliases.items[index];
    assert(a->busy);
    a->type = type;
    a->busy = false;
    r->lx.p = back;
    text_skip(&r->lx);
  }
  *out = a->type;
  return 0;
}

/* A name without a dot is an alias; quantised types are element types. */
static int mlir_read_dialect_type(mlir_reader *r, const ir_type **out) {
  const char *at = r->lx.p;
  r->lx.p++;
  base_slice w = mlir_word(r);
  if (memchr(w.p, '.', w.n) == NULL) {
    mlir_skip_word(r, w);
    if (*r->lx.p == '<')
      return mlir_fail(r, at, XLAC_E_SYNTAX, "the dialect type !%.*s<...> is not known", (int)w.n, w.p);
    return mlir_read_alias(r, at, w, out);
  }
  mlir_skip_word(r, w);
  if (base_slice_is(w, "stablehlo.token") || base_slice_is(w, "mhlo.token")) {
    *out = ir_token(r->m);
  } else if (base_slice_is(w, "stablehlo.future")) {
    return mlir_read_tuple(r, true, out);
  } else if (base_slice_is(w, "quant.uniform") &&
             strncmp(r->lx.p, "<si", 3) != 0) { /* si8 is not a storage type of an op */
    const ir_quant *q;
    TRY(mlir_read_quant(r, &q));
    *out = ir_element(r->m, (base_dtype)q->storage, q);
  } else if (w.n > 10 && memcmp(w.p, "stablehlo.", 10) == 0) {
    return mlir_fail(r, at, XLAC_E_BAD_SHAPE_TEXT, "unknown stablehlo type: %.*s", (int)(w.n - 10), w.p + 10);
  } else {
    const base_istr *text;
    TRY(mlir_verbatim_until(r, at, &text));
    *out = ir_other_type(r->m, text->s, text->n);
  }
  return *out ? 0 : mlir_no_memory(r);
}

/* Builtin types begin with a word. Integers of any width are types, also those that nothing here computes with. */
static int mlir_read_word_type(mlir_reader *r, const ir_type **out) {
  const char *at = r->lx.p;
  base_slice w = mlir_word(r);
  if (base_slice_is(w, "tensor")) {
    mlir_skip_word(r, w);
    return mlir_read_tensor(r, out);
  }
  if (base_slice_is(w, "tuple")) {
    mlir_skip_word(r, w);
    return mlir_read_tuple(r, false, out);
  }
  base_dtype t = mlir_read_dtype(r);
  if (t) {
    *out = ir_element(r->m, t, NULL);
    return *out ? 0 : mlir_no_memory(r);
  }
  if (!mlir_is_other_type(w)) return mlir_expected(r, "a type");
  TRY(mlir_check_complex(r, at));
  const base_istr *text;
  TRY(mlir_verbatim_until(r, at, &text));
  *out = ir_other_type(r->m, text->s, text->n);
  return *out ? 0 : mlir_no_memory(r);
}

/* The depth is bounded, as types nest. */
int mlir_read_type(mlir_reader *r, const ir_type **out) {
  TRY(mlir_enter(r, r->lx.p));
  int status;
  if (*r->lx.p == '(') {
    status = mlir_read_function(r, out);
  } else if (*r->lx.p == '!') {
    status = mlir_read_dialect_type(r, out);
  } else {
    status = mlir_read_word_type(r, out);
  }
  mlir_leave(r);
  return status;
}
