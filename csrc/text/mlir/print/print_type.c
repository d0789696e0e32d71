/* Types in MLIR's words.
 *
 *   tensor<2x?xf32, #stablehlo.bounds<?, 5>>   tuple<f32, i1>   !stablehlo.token   (a, b) -> c   !quant.uniform<i8:f32,
 * 0.5>
 */
#include "print.h"

/* Signless names for signed integers: StableHLO means i32 where it says integer. */
static const char *mprint_dtype_text(base_dtype t) {
  assert(t < BASE_DTYPE_COUNT);
  const char *word = base_dtype_of(t)->mlir;
  return word ? word : "none";
}

/*   0.5:10 */
static void mprint_quant_number(base_text *o, const ir_quant *q, uint32_t i) {
  assert(i < q->n);
  mprint_f64(o, q->scales[i]);
  if (q->zero_points[i] == 0) return;
  base_putc(o, ':');
  base_put_i64(o, q->zero_points[i]);
}

/*   i8<-127:127> */
static void mprint_quant_storage(base_text *o, const ir_quant *q) {
  if (base_dtype_is_float(q->storage)) { /* which the verifier refuses */
    base_puts(o, mprint_dtype_text(q->storage));
  } else {
    base_putc(o, base_dtype_is_unsigned(q->storage) ? 'u' : 'i');
    base_put_u64(o, base_dtype_of(q->storage)->bits);
  }
  if (!q->has_range) return;
  base_putc(o, '<');
  base_put_i64(o, q->storage_min);
  base_putc(o, ':');
  base_put_i64(o, q->storage_max);
  base_putc(o, '>');
}

/* The nested list of a blockwise type's scales: a brace opens and closes with each row of the grid. */
static void mprint_quant_grid(base_text *o, const ir_quant *q) {
  for (uint32_t i = 0; i < q->n; i++) {
    uint64_t row = 1;
    uint32_t opens = 0, closes = 0;
    for (uint32_t d = q->grid_rank; d-- > 0;) {
      row *= (uint64_t)q->grid_dims[d];
      opens += row && i % row == 0;
      closes += row && (i + 1) % row == 0;
    }
    if (i) BASE_PUT(o, ", ");
    while (opens--) base_putc(o, '{');
    mprint_quant_number(o, q, i);
    while (closes--) base_putc(o, '}');
  }
}

/*   {0:2, 1:4} */
static void mprint_quant_blocks(base_text *o, const ir_quant *q) {
  base_putc(o, '{');
  for (uint32_t i = 0; i < q->n_blocks; i++) {
    if (i) BASE_PUT(o, ", ");
    base_put_i64(o, q->block_axes[i]);
    base_putc(o, ':');
    base_put_i64(o, q->block_sizes[i]);
  }
  base_putc(o, '}');
}

/* Scales per tensor, per axis or by blocks: axis is -1, the axis, or -2. */
static void mprint_quant(base_text *o, const ir_quant *q) {
  BASE_PUT(o, "!quant.uniform<");
  mprint_quant_storage(o, q);
  base_putc(o, ':');
  base_puts(o, mprint_dtype_text(q->expressed));
  if (q->axis == -1) {
    BASE_PUT(o, ", ");
    mprint_quant_number(o, q, 0);
  } else if (q->axis == -2) {
    base_putc(o, ':');
    mprint_quant_blocks(o, q);
    BASE_PUT(o, ", ");
    mprint_quant_grid(o, q);
  } else {
    base_putc(o, ':');
    base_put_i64(o, q->axis);
    BASE_PUT(o, ", {");
    for (uint32_t i = 0; i < q->n; i++) {
      if (i) base_putc(o, ',');
      mprint_quant_number(o, q, i);
    }
    base_putc(o, '}');
  }
  base_putc(o, '>');
}

/* A quantised type, a type of which only the text is known (index), or a number type. */
void mprint_element_type(base_text *o, const ir_type *t) {
  if (t->quant)
    mprint_quant(o, t->quant);
  else if (t->text)
    base_put(o, t->text->s, t->text->n);
  else
    base_puts(o, mprint_dtype_text(t->dtype));
}

/* '?' where the size is not known. */
static void mprint_dim(base_text *o, int64_t extent, bool known) {
  if (known)
    base_put_i64(o, extent);
  else
    base_putc(o, '?');
}

/* A dynamic dimension whose largest size is known. */
static bool mprint_is_bounded(const ir_type *t, uint32_t d) {
  return ir_dim_is_dynamic(t, d) && t->dims[d] != IR_UNBOUNDED;
}

/* An encoding of the tensor that lists the bounds; nothing where there are none. */
static void mprint_bounds(base_text *o, const ir_type *t) {
  assert(t->has_dynamic && !t->encoding);
  bool any = false;
  for (uint32_t d = 0; d < t->rank; d++) any = any || mprint_is_bounded(t, d);
  if (!any) return;
  BASE_PUT(o, ", #stablehlo.bounds<");
  for (uint32_t d = 0; d < t->rank; d++) {
    if (d) BASE_PUT(o, ", ");
    mprint_dim(o, t->dims[d], mprint_is_bounded(t, d));
  }
  base_putc(o, '>');
}

/*   tensor<2x?xf32>      tensor<?xf32, #stablehlo.bounds<5>>      tensor<f32>      tensor<4x!quant.uniform<i8:f32,
 * 0.5>>
 *
 * An encoding that is not bounds is kept as the text that it was. */
static void mprint_tensor(base_text *o, const ir_type *t) {
  BASE_PUT(o, "tensor<");
  for (uint32_t d = 0; d < t->rank; d++) {
    mprint_dim(o, t->dims[d], !ir_dim_is_dynamic(t, d));
    base_putc(o, 'x');
  }
  mprint_element_type(o, t);
  if (t->encoding) {
    BASE_PUT(o, ", ");
    base_put(o, t->encoding->s, t->encoding->n);
  } else if (t->has_dynamic) {
    mprint_bounds(o, t);
  }
  base_putc(o, '>');
}

/* With commas between. */
void mprint_types(base_text *o, uint32_t n, const ir_type *const *types) {
  for (uint32_t i = 0; i < n; i++) {
    if (i) BASE_PUT(o, ", ");
    mprint_type(o, types[i]);
  }
}

/*   (a, b) -> c   (a) -> (b, c) */
static void mprint_callable(base_text *o, const ir_type *t) {
  assert(t->n_inputs <= t->n_elements);
  uint32_t n = t->n_elements - t->n_inputs;
  const ir_type *const *results = t->elements + t->n_inputs;
  base_putc(o, '(');
  mprint_types(o, t->n_inputs, t->elements);
  BASE_PUT(o, ") -> ");
  bool bare = n == 1 && results[0]->kind != IR_TYPE_FUNCTION;
  if (!bare) base_putc(o, '(');
  mprint_types(o, n, results);
  if (!bare) base_putc(o, ')');
}

/* Recursion ends: types nest no deeper than IR_MAX_TYPE_DEPTH. */
void mprint_type(base_text *o, const ir_type *t) {
  assert(t);
  switch ((ir_type_kind)t->kind) {
    case IR_TYPE_TENSOR:
      mprint_tensor(o, t);
      return;
    case IR_TYPE_TUPLE:
      BASE_PUT(o, "tuple<");
      mprint_types(o, t->n_elements, t->elements);
      base_putc(o, '>');
      return;
    case IR_TYPE_TOKEN:
      BASE_PUT(o, "!stablehlo.token");
      return;
    case IR_TYPE_OPAQUE:
      BASE_PUT(o, "!stablehlo.opaque");
      return;
    case IR_TYPE_BUFFER:
      BASE_PUT(o, "memref<");
      for (uint32_t d = 0; d < t->inner->rank; d++) {
        mprint_dim(o, t->inner->dims[d], !ir_dim_is_dynamic(t->inner, d));
        base_putc(o, 'x');
      }
      mprint_element_type(o, t->inner);
      base_putc(o, '>');
      return;
    case IR_TYPE_FUTURE:
      BASE_PUT(o, "!stablehlo.future<");
      mprint_types(o, t->n_elements, t->elements);
      base_putc(o, '>');
      return;
    case IR_TYPE_UNRANKED:
      BASE_PUT(o, "tensor<*x");
      mprint_element_type(o, t);
      base_putc(o, '>');
      return;
    case IR_TYPE_ELEMENT:
      mprint_element_type(o, t);
      return;
    case IR_TYPE_FUNCTION:
      mprint_callable(o, t);
      return;
    case IR_TYPE_OTHER:
      base_put(o, t->text->s, t->text->n);
      return;
  }
}

void text_put_mlir_type(base_text *out, const ir_type *t) {
  mprint_type(out, t);
}
