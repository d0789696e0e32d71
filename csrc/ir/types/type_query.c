/* Questions about types: equality across modules, sizes, paths, text.
 *
 * Recursions over tuples are as deep as the type, which readers bound by IR_MAX_TYPE_DEPTH. */
#include "type.h"
#include "type_table.h"

typedef enum match_flags { IGNORE_DYNAMIC = 1, IGNORE_DTYPE = 2, IGNORE_FLOAT_DTYPE = 4 } match_flags;

/* IGNORE_FLOAT_DTYPE is ShapeUtil::CompatibleIgnoringFpPrecision's rule. */
static bool match_dtype(const ir_type *a, const ir_type *b, int flags) {
  if (a->dtype == b->dtype || (flags & IGNORE_DTYPE)) return true;
  return (flags & IGNORE_FLOAT_DTYPE) && base_dtype_is_float(a->dtype) && base_dtype_is_float(b->dtype);
}

/* By bytes, since the texts may be of two modules. */
static bool match_text(const base_istr *a, const base_istr *b) {
  if (a == b || !a || !b) return a == b;
  return a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
}

/* With IGNORE_DYNAMIC a bound stands for its dimension (f32[<=3] fits f32[3]), and an unbounded one fits any. */
static bool match_tensor(const ir_type *a, const ir_type *b, int flags) {
  assert(ir_is_tensor(a) && ir_is_tensor(b));
  if (!match_dtype(a, b, flags) || a->rank != b->rank) return false;
  if (!(flags & IGNORE_DTYPE) && !ir_quant_equal(a->quant, b->quant)) return false;
  if (flags == 0 && (!match_text(a->text, b->text) || !match_text(a->encoding, b->encoding))) return false;
  for (uint32_t i = 0; i < a->rank; i++) {
    bool open = (flags & IGNORE_DYNAMIC) && (a->dims[i] == IR_UNBOUNDED || b->dims[i] == IR_UNBOUNDED);
    if (a->dims[i] != b->dims[i] && !open) return false;
    if (!(flags & IGNORE_DYNAMIC) && ir_dim_is_dynamic(a, i) != ir_dim_is_dynamic(b, i)) return false;
  }
  return true;
}

/* Type nesting is bounded by the readers' depth limit. */
static bool match_type(const ir_type *a, const ir_type *b, int flags) {
  if (a == b) return true;
  if (a->kind != b->kind || a->n_elements != b->n_elements) return false;
  if (a->kind == IR_TYPE_TENSOR) return match_tensor(a, b, flags);
  if (a->kind == IR_TYPE_BUFFER) return match_type(a->inner, b->inner, flags);
  for (uint32_t i = 0; i < a->n_elements; i++)
    if (!match_type(a->elements[i], b->elements[i], flags)) return false;
  return true;
}

/* Within one module equal bare pointers decide; the walk is for types of two modules. */
bool ir_same_bare(const ir_type *a, const ir_type *b) {
  return a->bare == b->bare || match_type(a, b, 0);
}
bool ir_compatible(const ir_type *a, const ir_type *b) {
  return a->bare == b->bare || match_type(a, b, IGNORE_DYNAMIC);
}
bool ir_compatible_ignoring_dtype(const ir_type *a, const ir_type *b) {
  return a->bare == b->bare || match_type(a, b, IGNORE_DYNAMIC | IGNORE_DTYPE);
}
bool ir_compatible_ignoring_float(const ir_type *a, const ir_type *b) {
  return a->bare == b->bare || match_type(a, b, IGNORE_DYNAMIC | IGNORE_FLOAT_DTYPE);
}

/* has_dynamic, kept for each type, makes this one test for nearly all. */
bool ir_is_unbounded(const ir_type *t) {
  if (!t->has_dynamic) return false;
  for (uint32_t i = 0; ir_is_tensor(t) && i < t->rank; i++)
    if (t->dims[i] == IR_UNBOUNDED) return true;
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (ir_is_unbounded(t->elements[i])) return true;
  return false;
}

/* A tensor's product was checked when it was made; the sum of a tuple saturates. */
int64_t ir_type_bytes(const ir_type *t) {
  assert(t);
  if (t->kind == IR_TYPE_TENSOR) return t->count * (int64_t)base_dtype_bytes(t->dtype);
  if (t->kind == IR_TYPE_BUFFER) return ir_type_bytes(t->inner);
  int64_t sum = 0;
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (!base_add_i64(sum, ir_type_bytes(t->elements[i]), &sum)) return INT64_MAX;
  return sum;
}

/* Elements of less than 8 bits are packed only where the layout says so; a last byte may be partly used. */
int64_t ir_type_xla_bytes(const ir_type *t) {
  if (t->kind == IR_TYPE_BUFFER) return ir_type_xla_bytes(t->inner);
  if (t->kind == IR_TYPE_TUPLE) return (int64_t)t->n_elements * 8;
  if (t->kind != IR_TYPE_TENSOR) return 0;
  int64_t bits = t->layout ? t->layout->element_bits : 0;
  if (bits == 0 || bits % 8 == 0) return ir_type_bytes(t);
  int64_t per_byte = bits < 8 ? 8 / bits : 1;
  return t->count / per_byte + (t->count % per_byte != 0);
}

/* n == 0 gives t itself. */
const ir_type *ir_type_at(const ir_type *t, const int64_t *path, size_t n) {
  assert(t && (path || n == 0));
  for (size_t i = 0; i < n; i++) {
    if (t->kind != IR_TYPE_TUPLE || path[i] < 0 || path[i] >= (int64_t)t->n_elements) return NULL;
    t = t->elements[path[i]];
  }
  return t;
}

/* An empty tuple has none; everything that is not a tuple is one. */
uint32_t ir_type_leaves(const ir_type *t) {
  if (t->kind != IR_TYPE_TUPLE) return 1;
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->n_elements; i++) n += ir_type_leaves(t->elements[i]);
  return n;
}

/* XLA's spelling: f32[?,<=4,3]. */
static void put_dims(base_text *out, const ir_type *t) {
  base_putc(out, '[');
  for (uint32_t i = 0; i < t->rank; i++) {
    if (i) base_putc(out, ',');
    if (t->dims[i] == IR_UNBOUNDED) {
      base_putc(out, '?');
      continue;
    }
    if (ir_dim_is_dynamic(t, i)) BASE_PUT(out, "<=");
    base_put_i64(out, t->dims[i]);
  }
  base_putc(out, ']');
}

/* What tells layouts apart in practice; the exact text of all suffixes is the printer's (text/hlo). */
static void put_short_layout(base_text *out, const ir_layout *l) {
  base_putc(out, '{');
  for (uint32_t i = 0; i < l->rank; i++) {
    if (i) base_putc(out, ',');
    base_put_i64(out, l->minor_to_major[i]);
  }
  if (l->n_tiles || l->memory_space || l->element_bits) base_putc(out, ':');
  for (uint32_t i = 0; i < l->n_tiles; i++) {
    base_puts(out, i ? "(" : "T(");
    for (uint32_t d = 0; d < l->tiles[i].rank; d++) {
      if (d) base_putc(out, ',');
      if (l->tiles[i].dims[d] == IR_TILE_COMBINE) {
        base_putc(out, '*');
      } else {
        base_put_i64(out, l->tiles[i].dims[d]);
      }
    }
    base_putc(out, ')');
  }
  if (l->element_bits) base_putf(out, "E(%lld)", (long long)l->element_bits);
  if (l->memory_space) base_putf(out, "S(%lld)", (long long)l->memory_space);
  base_putc(out, '}');
}

/* Elements from..to-1 in parentheses. */
static void put_elements(base_text *out, const ir_type *t, uint32_t from, uint32_t to, bool layouts) {
  assert(from <= to && to <= t->n_elements);
  base_putc(out, '(');
  for (uint32_t i = from; i < to; i++) {
    if (i > from) BASE_PUT(out, ", ");
    ir_put_type(out, t->elements[i], layouts);
  }
  base_putc(out, ')');
}

/* Enough of a quantised type to tell it from another: "quant<s8:f32, 0.5:3>". */
static void put_quant(base_text *out, const ir_quant *q) {
  base_putf(out, "quant<%s:%s", base_dtype_of(q->storage)->text, base_dtype_of(q->expressed)->text);
  if (q->axis != -1) base_putf(out, ":%d", q->axis);
  for (uint32_t i = 0; i < q->n && i < 4; i++)
    base_putf(out, ", %.17g:%lld", q->scales[i], (long long)q->zero_points[i]);
  base_puts(out, q->n > 4 ? ", ...>" : ">");
}

/* An element type that is not a dtype of ours is spelled as it was read. */
static void put_element_type(base_text *out, const ir_type *t) {
  if (t->text) {
    base_put(out, t->text->s, t->text->n);
  } else if (t->quant) {
    put_quant(out, t->quant);
  } else {
    base_puts(out, base_dtype_of(t->dtype)->text);
  }
}

void ir_put_type(base_text *out, const ir_type *t, bool layouts) {
  switch ((ir_type_kind)t->kind) {
    case IR_TYPE_TENSOR:
      put_element_type(out, t);
      put_dims(out, t);
      if (layouts && t->layout && t->rank) put_short_layout(out, t->layout);
      break;
    case IR_TYPE_TOKEN:
      BASE_PUT(out, "token[]");
      break;
    case IR_TYPE_OPAQUE:
      BASE_PUT(out, "opaque[]");
      break;
    case IR_TYPE_BUFFER:
      BASE_PUT(out, "b(");
      ir_put_type(out, t->inner, layouts);
      base_putc(out, ')');
      break;
    case IR_TYPE_UNRANKED:
      put_element_type(out, t);
      BASE_PUT(out, "[*]");
      break;
    case IR_TYPE_ELEMENT:
    case IR_TYPE_OTHER:
      put_element_type(out, t);
      break;
    case IR_TYPE_FUTURE:
      BASE_PUT(out, "future");
      put_elements(out, t, 0, t->n_elements, layouts);
      break;
    case IR_TYPE_FUNCTION:
      put_elements(out, t, 0, t->n_inputs, layouts);
      BASE_PUT(out, " -> ");
      put_elements(out, t, t->n_inputs, t->n_elements, layouts);
      break;
    case IR_TYPE_TUPLE:
      put_elements(out, t, 0, t->n_elements, layouts);
      break;
  }
}

/* Out of memory gives an empty text: this is for messages, and one failure is being reported already. */
char *ir_type_text(const ir_type *t, char *buf, size_t size) {
  assert(size >= 8);
  base_text out;
  base_text_init(&out, base_alloc_libc);
  ir_put_type(&out, t, false);
  size_t n = out.failed ? 0 : out.n;
  bool cut = n >= size;
  if (cut) n = size > 4 ? size - 4 : 0;
  if (n) memcpy(buf, out.s, n);
  memcpy(buf + n, cut ? "..." : "", cut ? 4 : 1);
  base_text_free(&out);
  return buf;
}
