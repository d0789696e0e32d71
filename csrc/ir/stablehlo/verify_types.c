/* Types by the rules of StableHLO: sets of them, compatibility, their text in messages.
 *
 * Two types are compatible ("fit") when both can be true of one value: ranks agree, sizes agree where both are known
 * and are within the other's bounds, element types agree; quantised ones may differ in scales and zero points. */
#include "verify.h"

#include <stdio.h>

/* A buffer of ours, or MLIR's memref, which is kept as text. */
bool sv_is_buffer(const ir_type *t) {
  if (t->kind == IR_TYPE_BUFFER) return true;
  return t->kind == IR_TYPE_OTHER && t->text && strncmp(t->text->s, "memref<", 7) == 0;
}

/* Has an element type that rules may ask for. */
bool sv_is_shaped(const ir_type *t) {
  return t->kind == IR_TYPE_TENSOR || t->kind == IR_TYPE_UNRANKED;
}

bool sv_element_is(const ir_type *t, base_dtype dtype) {
  return sv_is_shaped(t) && !t->quant && !t->text && t->dtype == dtype;
}

bool sv_is_scalar_of(const ir_type *t, base_dtype dtype) {
  return t->kind == IR_TYPE_TENSOR && t->rank == 0 && sv_element_is(t, dtype);
}

/* Neither quantised nor tf32, which is a text. */
bool sv_is_float(const ir_type *t) {
  return sv_is_shaped(t) && !t->quant && !t->text && base_dtype_is_float((base_dtype)t->dtype);
}

/* A broken type is in no set, and neither is one by blocks. */
static uint32_t sv_set_of_quant(const ir_type *t) {
  if (sv_quant_is_broken(t, NULL)) return 0;
  return t->quant->axis == -1 ? SV_QUANT : t->quant->axis >= 0 ? SV_QUANT_AXIS : 0;
}

/* The bits of sv_set that the element type alone decides. StableHLO has no 1-bit integers. */
static uint32_t sv_set_of_element(const ir_type *t) {
  if (t->quant) return sv_set_of_quant(t);
  if (t->text) return strcmp(t->text->s, "index") == 0 ? SV_INDEX : 0;
  switch (base_dtype_of((base_dtype)t->dtype)->kind) {
    case BASE_KIND_PRED:
      return SV_PRED;
    case BASE_KIND_SINT:
      return t->dtype == XLAC_S1 ? 0 : SV_SINT;
    case BASE_KIND_UINT:
      return t->dtype == XLAC_U1 ? 0 : SV_UINT;
    case BASE_KIND_FLOAT:
      return SV_FLOAT | (t->dtype == XLAC_F32 || t->dtype == XLAC_F64 ? SV_FLOAT32_64 : 0);
    case BASE_KIND_COMPLEX:
      return SV_COMPLEX;
    default:
      return 0;
  }
}

/* Exactly one dynamic dimension, and that has a bound. */
static bool sv_has_one_bounded_dim(const ir_type *t) {
  uint32_t dynamic = 0, bounded = 0;
  for (uint32_t i = 0; i < t->rank; i++) {
    dynamic += sv_dim(t, i) == SV_DYNAMIC;
    bounded += sv_bound(t, i) != SV_DYNAMIC;
  }
  return dynamic == 1 && bounded == 1;
}

/* A set may ask for a rank, for static dimensions, or for at most one bounded one. */
static bool sv_shape_in(const ir_type *t, uint32_t set) {
  if ((set & SV_RANK0) && t->rank != 0) return false;
  if ((set & SV_RANK1) && t->rank != 1) return false;
  if ((set & SV_RANK2) && t->rank != 2) return false;
  if ((set & SV_STATIC) && t->has_dynamic) return false;
  return !(set & SV_BOUNDED) || !t->has_dynamic || sv_has_one_bounded_dim(t);
}

/* Tuples nest; their depth is bounded by the maker of types. */
static bool sv_tuple_in(const ir_type *t) {
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (!sv_type_in(t->elements[i], SV_ANY | SV_TOKEN | SV_TUPLE | SV_BUFFER)) return false;
  return true;
}

bool sv_type_in(const ir_type *t, uint32_t set) {
  assert(t);
  switch (t->kind) {
    case IR_TYPE_TENSOR:
      return (sv_set_of_element(t) & set & SV_ELEMENTS) && sv_shape_in(t, set);
    case IR_TYPE_UNRANKED:
      return (set & SV_UNRANKED) && (sv_set_of_element(t) & set & SV_ELEMENTS);
    case IR_TYPE_TOKEN:
      return (set & SV_TOKEN) != 0;
    case IR_TYPE_TUPLE:
      return (set & SV_TUPLE) && sv_tuple_in(t);
    case IR_TYPE_FUTURE:
      return (set & SV_FUTURE) != 0;
    default:
      return (set & SV_BUFFER) && sv_is_buffer(t);
  }
}

static const struct {
  uint32_t set;
  const char *text;
} sv_set_words[] = {
    {SV_PRED, "i1"},
    {SV_INT, "integers"},
    {SV_SINT, "signless integers"},
    {SV_UINT, "unsigned integers"},
    {SV_FLOAT, "floats"},
    {SV_FLOAT32_64, "f32 or f64"},
    {SV_COMPLEX, "complex"},
    {SV_QUANT | SV_QUANT_AXIS, "quantised"},
    {SV_QUANT, "quantised per tensor"},
    {SV_QUANT_AXIS, "quantised per axis"},
    {SV_INDEX, "index"},
};
static const struct {
  uint32_t set;
  const char *text;
} sv_other_words[] = {{SV_TOKEN, "token"}, {SV_TUPLE, "tuple"}, {SV_BUFFER, "buffer"}, {SV_FUTURE, "future"}};

/* Cut where the buffer ends: messages only. */
static void sv_put_word(char *buf, size_t size, const char *separator, const char *word) {
  size_t n = strlen(buf);
  snprintf(buf + n, size - n, "%s%s", separator, word);
}

/* Larger groups of elements are named before the parts of them, and bits that a word has named are not named again. */
char *sv_set_text(uint32_t set, char *buf, size_t size) {
  assert(size > 0);
  uint32_t left = set & SV_ELEMENTS;
  const char *separator = "";
  buf[0] = 0;
  if (left) {
    const char *rank = set & SV_RANK0   ? "scalar of "
                       : set & SV_RANK1 ? "tensor of rank 1 of "
                       : set & SV_RANK2 ? "tensor of rank 2 of "
                                        : "tensor of ";
    sv_put_word(buf, size, set & SV_STATIC ? "static " : set & SV_BOUNDED ? "static or bounded " : "", rank);
  }
  for (size_t i = 0; i < sizeof sv_set_words / sizeof *sv_set_words; i++) {
    if ((left & sv_set_words[i].set) != sv_set_words[i].set) continue;
    left &= ~sv_set_words[i].set;
    sv_put_word(buf, size, separator, sv_set_words[i].text);
    separator = ", ";
  }
  for (size_t i = 0; i < sizeof sv_other_words / sizeof *sv_other_words; i++) {
    if (!(set & sv_other_words[i].set)) continue;
    sv_put_word(buf, size, separator[0] ? " or " : "", sv_other_words[i].text);
    separator = ", ";
  }
  return buf;
}

/* --- compatibility --- */

/* An unranked tensor fits any. */
bool sv_shapes_fit(const ir_type *a, const ir_type *b) {
  if (!sv_is_shaped(a) || !sv_is_shaped(b)) return false;
  if (a->kind == IR_TYPE_UNRANKED || b->kind == IR_TYPE_UNRANKED) return true;
  if (a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (!sv_dims_fit(sv_dim(a, i), sv_dim(b, i))) return false;
  return true;
}

/* a's known sizes against b's bounds. */
static bool sv_sizes_within(const ir_type *a, const ir_type *b) {
  for (uint32_t i = 0; i < a->rank; i++) {
    int64_t bound = sv_bound(b, i), size = sv_dim(a, i);
    if (bound != SV_DYNAMIC && size != SV_DYNAMIC && bound < size) return false;
  }
  return true;
}

/* tensor<8xf32> does not fit a dynamic dimension with the bound 4. */
bool sv_shapes_fit_bounds(const ir_type *a, const ir_type *b) {
  if (!sv_shapes_fit(a, b)) return false;
  if (a->kind == IR_TYPE_UNRANKED || b->kind == IR_TYPE_UNRANKED) return true;
  return sv_sizes_within(a, b) && sv_sizes_within(b, a);
}

/* All but the scales, the zero points and along which dimension. */
static bool sv_quant_fits(const ir_quant *a, const ir_quant *b) {
  return a->storage == b->storage && a->storage_min == b->storage_min && a->storage_max == b->storage_max &&
         a->expressed == b->expressed && (a->axis >= 0) == (b->axis >= 0);
}

/* Of types without a shape (tokens, tuples) the whole type counts. */
bool sv_elements_fit(const ir_type *a, const ir_type *b) {
  if (!sv_is_shaped(a) || !sv_is_shaped(b)) return a->bare == b->bare;
  if (a->quant && b->quant) return sv_quant_fits(a->quant, b->quant);
  return !a->quant && !b->quant && a->dtype == b->dtype && a->text == b->text;
}

/* Equal in scales and zero points too. */
bool sv_same_element(const ir_type *a, const ir_type *b) {
  if (!sv_is_shaped(a) || !sv_is_shaped(b)) return a->bare == b->bare;
  return a->dtype == b->dtype && a->text == b->text && ir_quant_equal(a->quant, b->quant);
}

/* What is not a tensor must be the same type. */
bool sv_types_fit(const ir_type *a, const ir_type *b) {
  if (sv_is_shaped(a) && sv_is_shaped(b)) return sv_shapes_fit_bounds(a, b) && sv_elements_fit(a, b);
  return a->bare == b->bare;
}

/* Of a quantised type those of its storage. */
int64_t sv_element_bits(const ir_type *t) {
  return base_dtype_of((base_dtype)(t->quant ? t->quant->storage : t->dtype))->bits;
}

/* --- text --- */

/* As MLIR spells them; of a per-axis type without its scales. */
static const char *sv_element_text(const ir_type *t, char *buf, size_t size) {
  if (t->text) return t->text->s;
  const base_dtype_info *d = base_dtype_of((base_dtype)(t->quant ? t->quant->storage : t->dtype));
  if (d->kind == BASE_KIND_PRED)
    snprintf(buf, size, "i1");
  else if (d->kind == BASE_KIND_SINT || d->kind == BASE_KIND_UINT)
    snprintf(buf, size, "%s%u", d->kind == BASE_KIND_UINT ? t->quant ? "u" : "ui" : "i", d->bits);
  else if (d->kind == BASE_KIND_COMPLEX)
    snprintf(buf, size, "complex<f%u>", d->bits / 2u);
  else
    snprintf(buf, size, "%s", d->text);
  if (!t->quant) return buf;
  char storage[24];
  snprintf(storage, sizeof storage, "%.20s", buf);
  const char *expressed = base_dtype_of((base_dtype)t->quant->expressed)->text;
  if (t->quant->axis >= 0)
    snprintf(buf, size, "!quant.uniform<%s:%s:%d>", storage, expressed, t->quant->axis);
  else
    snprintf(buf, size, "!quant.uniform<%s:%s, %g:%lld>", storage, expressed, t->quant->n ? t->quant->scales[0] : 0.0,
             t->quant->n ? (long long)t->quant->zero_points[0] : 0);
  return buf;
}

/* Dimensions are left off where the buffer would overflow. */
static char *sv_tensor_text(const ir_type *t, char *buf, size_t size) {
  char element[96];
  size_t at = (size_t)snprintf(buf, size, t->kind == IR_TYPE_UNRANKED ? "tensor<*x" : "tensor<");
  for (uint32_t i = 0; t->kind == IR_TYPE_TENSOR && i < t->rank && at + 40 < size; i++) {
    int64_t dim = sv_dim(t, i), bound = sv_bound(t, i);
    int k = dim != SV_DYNAMIC     ? snprintf(buf + at, size - at, "%lldx", (long long)dim)
            : bound != SV_DYNAMIC ? snprintf(buf + at, size - at, "?<=%lldx", (long long)bound)
                                  : snprintf(buf + at, size - at, "?x");
    at += (size_t)k;
  }
  snprintf(buf + at, size - at, "%s>", sv_element_text(t, element, sizeof element));
  return buf;
}

char *sv_type_text(const ir_type *t, char *buf, size_t size) {
  assert(size >= 64);
  switch (t->kind) {
    case IR_TYPE_TENSOR:
    case IR_TYPE_UNRANKED:
      return sv_tensor_text(t, buf, size);
    case IR_TYPE_TOKEN:
      snprintf(buf, size, "!stablehlo.token");
      return buf;
    case IR_TYPE_TUPLE:
      snprintf(buf, size, "a tuple of %u", t->n_elements);
      return buf;
    case IR_TYPE_FUTURE:
      snprintf(buf, size, "!stablehlo.future of %u", t->n_elements);
      return buf;
    case IR_TYPE_OTHER:
      snprintf(buf, size, "%.100s", t->text->s);
      return buf;
    default:
      return ir_type_text(t, buf, size);
  }
}

char *sv_ints_text(uint32_t n, const int64_t *v, char *buf, size_t size) {
  assert(size >= 40 && (v || n == 0));
  size_t at = 0;
  buf[at++] = '[';
  for (uint32_t i = 0; i < n; i++) {
    if (at + 32 > size) {
      at += (size_t)snprintf(buf + at, size - at, "...");
      break;
    }
    const char *separator = i ? ", " : "";
    at += (size_t)(v[i] == SV_DYNAMIC ? snprintf(buf + at, size - at, "%s?", separator)
                                      : snprintf(buf + at, size - at, "%s%lld", separator, (long long)v[i]));
  }
  snprintf(buf + at, size - at, "]");
  return buf;
}
