/* dense<...>, dense_resource<...>, and the section of the resources' data. */
#include "print.h"

/* Lists longer than this are printed as bytes. */
enum { MPRINT_LONGEST_LIST = 100 };

typedef void mprint_put_fn(mprint *p, const ir_mattr *a, int64_t i);

static void mprint_put_element(mprint *p, const ir_mattr *a, int64_t i) {
  const ir_literal *l = a->v.literal;
  mprint_element(p->out, l->type->dtype, (const char *)l->data + (size_t)i * base_dtype_bytes(l->type->dtype));
}

static void mprint_put_string(mprint *p, const ir_mattr *a, int64_t i) {
  const base_istr *s = a->v.list->v[i]->str;
  mprint_quoted(p->out, s->s, s->n);
}

/* The elements in nested brackets: at each, as many open or close as there are dimensions whose row begins or ends. */
static void mprint_nested(mprint *p, const ir_mattr *a, mprint_put_fn *put) {
  const ir_type *t = a->type;
  int64_t count = t->count, innermost = t->rank ? t->dims[t->rank - 1] : 1;
  for (int64_t i = 0; i < count; i++) {
    uint32_t opens = 0, closes = 0;
    if (t->rank && (i % innermost == 0 || (i + 1) % innermost == 0)) {
      int64_t row = 1;
      for (uint32_t d = t->rank; d-- > 0;) {
        row *= t->dims[d];
        opens += i % row == 0;
        closes += (i + 1) % row == 0;
      }
    }
    if (i) BASE_PUT(p->out, ", ");
    while (opens--) base_putc(p->out, '[');
    put(p, a, i);
    while (closes--) base_putc(p->out, ']');
  }
}

/* MLIR stores, and so prints, equal elements once. */
static bool mprint_all_equal(const ir_literal *l) {
  size_t size = base_dtype_bytes(l->type->dtype), n = (size_t)l->type->count;
  const char *data = l->data;
  return n == 1 || memcmp(data, data + size, (n - 1) * size) == 0;
}

/* Types narrower than a byte are sign-extended in memory, but not in MLIR's bytes. */
static void mprint_bytes(base_text *o, const ir_literal *l) {
  const base_dtype_info *info = base_dtype_of(l->type->dtype);
  size_t n = (size_t)l->type->count;
  base_putc(o, '"');
  BASE_PUT(o, "0x");
  if (info->bits < 8 && info->kind == BASE_KIND_SINT)
    for (size_t i = 0; i < n; i++) {
      uint8_t low = ((const uint8_t *)l->data)[i] & ((1u << info->bits) - 1);
      mprint_hex(o, &low, 1);
    }
  else
    mprint_hex(o, l->data, n * info->bytes);
  base_putc(o, '"');
}

static void mprint_dense_body(mprint *p, const ir_mattr *a) {
  const ir_literal *l = a->v.literal;
  if (!l || !l->data || l->type->count == 0) return;
  if (a->splat || mprint_all_equal(l))
    mprint_put_element(p, a, 0);
  else if (l->type->count > MPRINT_LONGEST_LIST)
    mprint_bytes(p->out, l);
  else
    mprint_nested(p, a, mprint_put_element);
}

static void mprint_dense_strings(mprint *p, const ir_mattr *a) {
  const ir_mattrs *list = a->v.list;
  if (!list || list->n == 0) return;
  bool same = true;
  for (uint32_t i = 1; i < list->n; i++) same = same && ir_mattr_equal(list->v[0], list->v[i]);
  if (same || (int64_t)list->n < a->type->count)
    mprint_put_string(p, a, 0);
  else
    mprint_nested(p, a, mprint_put_string);
}

static bool mprint_elides(const mprint *p, const ir_mattr *a) {
  if (!p->elide_over || a->kind == IR_M_RESOURCE) return false;
  if (!a->type || a->type->count <= (int64_t)p->elide_over) return false;
  return a->kind == IR_M_DENSE && !a->splat && a->v.literal && a->v.literal->data && !mprint_all_equal(a->v.literal);
}

static void mprint_note_resource(mprint *p, const ir_mattr *a) {
  if (!a->v.literal || !p->names) return;
  if (base_map_ptr(&p->resource_keys, a->str)) return;
  if (!base_map_set(&p->resource_keys, base_key(a->str), 1) || !BASE_VEC_PUSH(p->alloc, &p->resources, a))
    p->failed = true;
}

void mprint_dense(mprint *p, const ir_mattr *a) {
  if (mprint_elides(p, a)) {
    BASE_PUT(p->out, "dense_resource<__elided__>");
    return;
  }
  if (a->kind == IR_M_RESOURCE) {
    BASE_PUT(p->out, "dense_resource<");
    mprint_keyword(p->out, a->str);
    base_putc(p->out, '>');
    mprint_note_resource(p, a);
    return;
  }
  BASE_PUT(p->out, "dense<");
  if (a->kind == IR_M_DENSE)
    mprint_dense_body(p, a);
  else
    mprint_dense_strings(p, a);
  base_putc(p->out, '>');
}

/* A resource is its alignment, four bytes, and its data. */
static void mprint_resource(mprint *p, const ir_mattr *a) {
  const ir_literal *l = a->v.literal;
  uint32_t align = (uint32_t)(a->bits ? a->bits : base_dtype_bytes(base_dtype_real_part(l->type->dtype)));
  BASE_PUT(p->out, "      ");
  mprint_keyword(p->out, a->str);
  BASE_PUT(p->out, ": \"0x");
  mprint_hex(p->out, &align, sizeof align);
  if (l->data) mprint_hex(p->out, l->data, (size_t)l->type->count * base_dtype_bytes(l->type->dtype));
  base_putc(p->out, '"');
}

void mprint_resources(mprint *p) {
  if (p->resources.n == 0) return;
  BASE_PUT(p->out, "\n{-#\n  dialect_resources: {\n    builtin: {\n");
  for (uint32_t i = 0; i < p->resources.n; i++) {
    if (i) BASE_PUT(p->out, ",\n");
    mprint_resource(p, p->resources.items[i]);
  }
  BASE_PUT(p->out, "\n    }\n  }\n#-}\n");
}
