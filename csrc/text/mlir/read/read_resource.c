/* dense_resource<key>, and the section at the end of the text that has the data: {-# dialect_resources: ... #-}. */
#include "read.h"

/* Where the hex string of each key begins. Values are skipped as strings, so that a key is a word with a colon. */
static int mlir_find_resources(mlir_reader *r) {
  for (const char *p = r->resources; p && p < r->lx.end;) {
    if (!text_is(*p, TEXT_ALPHA) && *p != '"') {
      p++;
      continue;
    }
    const char *e = *p == '"' ? text_string_end(&r->lx, p) : text_name_end(p);
    if (!e) return 0;
    const char *v = e;
    while (*v == ' ' || *v == ':') v++;
    bool has_data = v > e && v[0] == '"' && v[1] == '0' && v[2] == 'x';
    bool quoted = *p == '"';
    const base_istr *key = has_data ? ir_intern(r->m, p + quoted, (size_t)(e - p) - 2u * quoted) : NULL;
    mlir_resource found = {.hex = v};
    if (has_data && (!key || !BASE_VEC_PUSH(r->alloc, &r->resource_list, found) ||
                     !base_map_set(&r->resource_rows, base_key(key), r->resource_list.n - 1)))
      return mlir_no_memory(r);
    p = e;
  }
  return 0;
}

/* The row of a key, or NULL; they are all found when the first is asked for. */
static int mlir_resource_row(mlir_reader *r, const base_istr *key, mlir_resource **out) {
  uint64_t row;
  if (r->resources && !r->resources_found) TRY(mlir_find_resources(r));
  r->resources_found = true;
  *out = base_map_get(&r->resource_rows, base_key(key), &row) ? &r->resource_list.items[row] : NULL;
  return 0;
}

static int mlir_hex_bytes(mlir_reader *r, const char *digits, size_t n, uint8_t **out) {
  uint8_t *bytes = base_malloc(r->alloc, n + 1);
  if (!bytes) return mlir_no_memory(r);
  for (size_t i = 0; i < n; i++)
    bytes[i] = (uint8_t)((unsigned)mlir_hex_digit(digits[2 * i]) << 4 | (unsigned)mlir_hex_digit(digits[2 * i + 1]));
  *out = bytes;
  return 0;
}

/* A resource that has all elements keeps all, also where they are alike. */
static int mlir_whole_literal(mlir_reader *r, const ir_mattr *dense, size_t n, ir_mattr *a) {
  const ir_type *type = a->type;
  size_t size = base_dtype_bytes((base_dtype)type->dtype);
  a->splat = dense->splat;
  a->v.literal = dense->v.literal;
  if (!dense->splat || type->count < 1 || n != (size_t)type->count * size) return 0;
  const ir_type *held = ir_tensor(r->m, (base_dtype)type->dtype, type->rank, type->dims, NULL, NULL, NULL);
  ir_literal *l = held ? ir_literal_new(r->m, held) : NULL;
  if (!l) return mlir_no_memory(r);
  for (int64_t i = 0; i < type->count; i++) memcpy((char *)l->data + (size_t)i * size, dense->v.literal->data, size);
  a->splat = false;
  a->v.literal = l;
  return 0;
}

/* The first four bytes are the alignment. */
static int mlir_fill_resource(mlir_reader *r, const char *at, const char *hex, ir_mattr *a) {
  const char *end = text_string_end(&r->lx, hex);
  if (!end || a->type->kind != IR_TYPE_TENSOR || a->type->has_dynamic || end - hex < 12 || (end - hex) % 2) return 0;
  size_t n = (size_t)(end - hex - 4) / 2;
  uint8_t *bytes = NULL;
  uint32_t alignment;
  const ir_mattr *dense;
  TRY(mlir_hex_bytes(r, hex + 3, n, &bytes));
  memcpy(&alignment, bytes, sizeof alignment);
  a->bits = alignment;
  int status = mlir_literal_of_bytes(r, at, a->type, bytes + 4, n - 4, &dense);
  if (status == 0) status = mlir_whole_literal(r, dense, n - 4, a);
  base_free(r->alloc, bytes);
  return status;
}

int mlir_read_resource(mlir_reader *r, const ir_mattr **out) {
  TRY(mlir_want(r, "<"));
  const char *at = r->lx.p;
  mlir_resource *row;
  const base_istr *key;
  if (*at == '"') {
    TRY(mlir_read_string(r, &key));
  } else {
    base_slice w = mlir_word(r);
    if (!w.n || !(key = ir_intern(r->m, w.p, w.n))) return mlir_expected(r, "a resource's key");
    mlir_skip_word(r, w);
  }
  TRY(mlir_want(r, ">"));
  TRY(mlir_want(r, ":"));
  const ir_type *type;
  TRY(mlir_read_type(r, &type));
  TRY(mlir_resource_row(r, key, &row));
  if (row && row->made && row->made->type == type) {
    *out = row->made;
    return 0;
  }
  ir_mattr *a = (ir_mattr *)(uintptr_t)ir_m_string(r->m, key->s, key->n);
  if (!a) return mlir_no_memory(r);
  a->kind = IR_M_RESOURCE;
  a->type = type;
  *out = a;
  if (!row) return 0;
  row->made = a;
  return mlir_fill_resource(r, at, row->hex, a);
}
