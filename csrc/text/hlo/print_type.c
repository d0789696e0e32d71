/* Prints types: "f32[2,<=3]{1,0:T(8,128)S(1)}", tuples with an index comment before every fifth element. */
#include "print.h"

/* Deeper types come from nobody's text; the printer fails rather than overflow its stack. */
enum { MAX_TYPE_DEPTH = 4096, COMMENT_EVERY = 5 };

static void print_type_at(base_text *out, const ir_type *t, bool layouts, unsigned depth);

void text_put_index_comment(base_text *out, uint32_t i) {
  if (i == 0 || i % COMMENT_EVERY != 0) return;
  BASE_PUT(out, "/*index=");
  base_put_u64(out, i);
  BASE_PUT(out, "*/");
}

/* Most numbers in types are short. */
static void put_type_dim(base_text *out, int64_t v) {
  if (v >= 0 && v < 10)
    base_putc(out, (char)('0' + v));
  else
    base_put_i64(out, v);
}

static void put_layout_tiles(base_text *out, const ir_layout *l) {
  if (l->n_tiles == 0) return;
  base_putc(out, 'T');
  for (uint32_t i = 0; i < l->n_tiles; i++) {
    const ir_tile *tile = &l->tiles[i];
    base_putc(out, '(');
    for (uint32_t d = 0; d < tile->rank; d++) {
      if (d) base_putc(out, ',');
      if (tile->dims[d] == IR_TILE_COMBINE)
        base_putc(out, '*');
      else
        put_type_dim(out, tile->dims[d]);
    }
    base_putc(out, ')');
  }
}

static void put_number_suffix(base_text *out, const char *tag, int64_t v, int64_t otherwise) {
  if (v == otherwise) return;
  base_puts(out, tag);
  base_putc(out, '(');
  base_put_i64(out, v);
  base_putc(out, ')');
}

static void put_dtype_suffix(base_text *out, char tag, base_dtype t) {
  if (t == BASE_DTYPE_INVALID) return;
  base_putc(out, tag);
  base_putc(out, '(');
  base_puts(out, base_dtype_of(t)->text);
  base_putc(out, ')');
}

static void put_layout_splits(base_text *out, const ir_layout *l) {
  if (l->n_splits == 0) return;
  BASE_PUT(out, "SC");
  for (uint32_t i = 0; i < l->n_splits; i++) {
    base_putc(out, '(');
    put_type_dim(out, l->splits[i].dimension);
    base_putc(out, ':');
    text_put_ints(out, l->splits[i].indices, l->splits[i].n);
    base_putc(out, ')');
  }
}

/* Sparse levels, D(...), are not shown: XLA reads them for old texts' sake and drops them. */
static void put_layout_suffixes(base_text *out, const ir_layout *l, unsigned depth) {
  put_layout_tiles(out, l);
  put_number_suffix(out, "L", l->tail_padding, 1);
  put_dtype_suffix(out, '#', l->index_type);
  put_dtype_suffix(out, '*', l->pointer_type);
  put_number_suffix(out, "E", l->element_bits, 0);
  put_number_suffix(out, "S", l->memory_space, 0);
  put_layout_splits(out, l);
  if (l->physical) {
    BASE_PUT(out, "P(");
    print_type_at(out, l->physical, true, depth + 1);
    base_putc(out, ')');
  }
  put_number_suffix(out, "M", l->metadata_prefix_bytes, 0);
}

/* A scalar's layout shows only when it says something. */
static void put_type_layout(base_text *out, const ir_layout *l, unsigned depth) {
  size_t start = out->n;
  base_putc(out, '{');
  for (uint32_t i = 0; i < l->rank; i++) {
    if (i) base_putc(out, ',');
    put_type_dim(out, l->minor_to_major[i]);
  }
  size_t colon = out->n;
  base_putc(out, ':');
  size_t suffixes = out->n;
  put_layout_suffixes(out, l, depth);
  if (out->n == suffixes) out->n = colon;
  if (l->rank == 0 && out->n == colon)
    out->n = start;
  else
    base_putc(out, '}');
}

static void put_tensor_type(base_text *out, const ir_type *t, bool layouts, unsigned depth) {
  base_puts(out, base_dtype_of((base_dtype)t->dtype)->text);
  base_putc(out, '[');
  for (uint32_t d = 0; d < t->rank; d++) {
    if (d) base_putc(out, ',');
    if (t->dims[d] == IR_UNBOUNDED) {
      base_putc(out, '?');
      continue;
    }
    if (ir_dim_is_dynamic(t, d)) BASE_PUT(out, "<=");
    put_type_dim(out, t->dims[d]);
  }
  base_putc(out, ']');
  if (layouts && t->layout) put_type_layout(out, t->layout, depth);
}

static void put_type_elements(base_text *out, const ir_type *t, bool layouts, unsigned depth) {
  base_putc(out, '(');
  for (uint32_t i = 0; i < t->n_elements; i++) {
    if (i) BASE_PUT(out, ", ");
    text_put_index_comment(out, i);
    print_type_at(out, t->elements[i], layouts, depth + 1);
  }
  base_putc(out, ')');
}

static void print_type_at(base_text *out, const ir_type *t, bool layouts, unsigned depth) {
  assert(t);
  if (depth > MAX_TYPE_DEPTH) {
    out->failed = true;
    return;
  }
  switch (t->kind) {
    case IR_TYPE_TENSOR:
      put_tensor_type(out, t, layouts, depth);
      return;
    case IR_TYPE_TUPLE:
      put_type_elements(out, t, layouts, depth);
      return;
    case IR_TYPE_TOKEN:
      BASE_PUT(out, "token[]");
      return;
    case IR_TYPE_OPAQUE:
      BASE_PUT(out, "opaque[]");
      return;
    case IR_TYPE_BUFFER:
      BASE_PUT(out, "b(");
      print_type_at(out, t->inner, layouts, depth + 1);
      base_putc(out, ')');
      return;
    case IR_TYPE_FUTURE:
      BASE_PUT(out, "future");
      put_type_elements(out, t, layouts, depth);
      return;
    default: /* what HLO does not have and only compiled programs hold: as MLIR writes it, for people to read */
      ir_put_type(out, t, false);
  }
}

void text_put_type(base_text *out, const ir_type *t, bool layouts) {
  print_type_at(out, t, layouts, 0);
}

/* Copies a part of the text itself, which may move while it grows. */
static void repeat_text(base_text *out, size_t at, size_t n) {
  assert(at + n <= out->n);
  if (out->cap - out->n < n && !base_text_grow(out, n)) return;
  memcpy(out->s + out->n, out->s + at, n);
  out->n += n;
}

void text_write_type(text_printer *p, const ir_type *t) {
  base_text *out = p->out;
  uint64_t place;
  if (base_map_get(&p->type_places, base_key(t), &place)) {
    repeat_text(out, (size_t)(place >> 24), (size_t)(place & 0xFFFFFF));
    return;
  }
  size_t at = out->n;
  print_type_at(out, t, true, 0);
  size_t n = out->n - at;
  /* Only a cache: what does not fit, for want of memory too, is printed again. */
  if (n <= 0xFFFFFF && !out->failed && at < (uint64_t)1 << 40)
    (void)base_map_set(&p->type_places, base_key(t), (uint64_t)at << 24 | n);
}
