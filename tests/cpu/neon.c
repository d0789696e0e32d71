/* Runs kernels, given as text, by AArch64 code and by the reference: a line each, "same",
 * "not covered", or what differs. Built for that machine and run by test_neon.py. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "../../csrc/cpu/native/emit.h"
#include "../../csrc/cpu/native/neon.h"

/* Of the IR no more than the ops' names and numbers of operands: kernels here come from nowhere else. */
#define OP(code, name, operands, columns) [IR_OP_##code] = {.text = name, .arity = operands},
const ir_op_info ir_op_table[IR_OP_COUNT] = {
#include "../../csrc/ir/ops.def"
};
#undef OP
int64_t ir_get_int(const ir_op *op, ir_attr_key key, int64_t otherwise) {
  (void)op, (void)key, (void)otherwise, abort();
}
int ir_get_word(const ir_op *op, ir_attr_key key) {
  (void)op, (void)key, abort();
}
/* Code of emit.c's, for rows that end in part of a vector. */
bool nat_has_tail(const nat_body *b) {
  (void)b;
  return false;
}

enum { COUNT = 203, ROOM = (COUNT + 16) * 8, ARRAYS = 8 };

static uint64_t state = 88172645463325252u;
static uint64_t draw(void) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

/* Numbers of common sizes, and every eighth any bits. */
static void fill(void *at, base_dtype t) {
  for (int i = 0; i < COUNT + 16; i++) {
    double common = (double)(int64_t)draw() / 9.2e18 * (i % 3 ? 4 : 90);
    uint64_t bits = draw();
    if (t == XLAC_F32) ((float *)at)[i] = (float)common;
    if (t == XLAC_F64) ((double *)at)[i] = common;
    if (t == XLAC_S32) ((int32_t *)at)[i] = (int32_t)common;
    size_t bytes = (size_t)base_dtype_bytes(t);
    if (i % 8 == 5) memcpy((char *)at + i * bytes, &bits, bytes);
  }
}

static bool is_same(const void *a, const void *b, base_dtype t, int i) {
  size_t bytes = (size_t)base_dtype_bytes(t);
  if (memcmp((const char *)a + i * bytes, (const char *)b + i * bytes, bytes) == 0) return true;
  if (t == XLAC_F32)
    return ((const float *)a)[i] != ((const float *)a)[i] && ((const float *)b)[i] != ((const float *)b)[i];
  if (t == XLAC_F64)
    return ((const double *)a)[i] != ((const double *)a)[i] && ((const double *)b)[i] != ((const double *)b)[i];
  return false;
}

/* Whole vectors, past the end where there is a rest: arrays have room. */
static void run(const nat_body *b, const neon_words *code, void *const *in, void *const *out) {
  size_t n = code->n * sizeof *code->items;
  nat_arguments a = {.n = (COUNT + b->lanes - 1) / b->lanes * b->lanes, .rows = 1};
  void *pages = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(pages, code->items, n);
  mprotect(pages, n, PROT_READ | PROT_EXEC);
  __builtin___clear_cache((char *)pages, (char *)pages + n);
  for (uint32_t i = 0; i < b->n_streams; i++)
    a.at[i] = b->streams[i].output ? out[b->streams[i].buffer] : in[b->streams[i].buffer];
  ((nat_code_fn *)(uintptr_t)pages)(&a);
  munmap(pages, n);
}

/* --- reading: a value a line, "f32 load BUFFER STRIDE", "f32 constant X", "f32 add 0 1", "pred compare LT 0 1"; last
 * "store VALUE" --- */

typedef struct reader {
  kernel k;
  kernel_value values[256];
  kernel_index indexes[256];
  kernel_store store;
  uint8_t constants[256][8];
  uint8_t types[ARRAYS];
} reader;

static base_dtype type_named(const char *name) {
  return strcmp(name, "f32") == 0   ? XLAC_F32
         : strcmp(name, "f64") == 0 ? XLAC_F64
         : strcmp(name, "s32") == 0 ? XLAC_S32
                                    : XLAC_PRED;
}

static void read_load(reader *r, kernel_value *v, const char *rest) {
  int buffer, stride;
  kernel_index *index = &r->indexes[r->k.n_values];
  if (sscanf(rest, "%d %d", &buffer, &stride) != 2) abort();
  *index = (kernel_index){.offset = stride < 0 ? COUNT - 1 : 0, .strides = {stride}};
  v->kind = KERNEL_LOAD, v->buffer = (uint32_t)buffer, v->index = index;
  r->types[buffer] = v->dtype;
  if (r->k.n_inputs <= (uint32_t)buffer) r->k.n_inputs = (uint32_t)buffer + 1;
}

static void read_constant(reader *r, kernel_value *v, const char *rest) {
  double x = atof(rest);
  float narrow = (float)x;
  int32_t whole = (int32_t)x;
  uint8_t *to = r->constants[r->k.n_values];
  if (v->dtype == XLAC_F32) memcpy(to, &narrow, sizeof narrow);
  if (v->dtype == XLAC_F64) memcpy(to, &x, sizeof x);
  if (v->dtype == XLAC_S32) memcpy(to, &whole, sizeof whole);
  v->kind = KERNEL_CONSTANT, v->data = to;
}

static void read_op(kernel_value *v, const char *name, const char *rest) {
  static const char *const directions[] = {[SCALAR_EQ] = "EQ", [SCALAR_NE] = "NE", [SCALAR_GE] = "GE",
                                           [SCALAR_GT] = "GT", [SCALAR_LE] = "LE", [SCALAR_LT] = "LT"};
  char word[8];
  v->kind = KERNEL_OP;
  for (int code = 0; code < SCALAR_CODES; code++)
    if (code != SCALAR_NONE && strcmp(scalar_text((scalar_code)code), name) == 0) v->op.code = (uint8_t)code;
  if (strcmp(name, "compare") == 0) {
    if (sscanf(rest, "%7s", word) != 1) abort();
    for (int d = 0; d < 6; d++)
      if (strcmp(directions[d], word) == 0) v->op.direction = (uint8_t)d;
    rest = strchr(rest, word[0]) + strlen(word);
  }
  int n = sscanf(rest, "%u %u %u", &v->in[0], &v->in[1], &v->in[2]);
  v->n_in = (uint8_t)n;
}

/* From a line on; the place after the kernel. */
static const char *read_kernel(reader *r, const char *at) {
  char type[8], name[40];
  int n;
  *r = (reader){.k = {.rank = 1, .extents = {COUNT}, .count = COUNT, .n_stores = 1}};
  for (; sscanf(at, "%7s %39s%n", type, name, &n) == 2; at = strchr(at, '\n') + 1) {
    kernel_value *v = &r->values[r->k.n_values];
    if (strcmp(type, "store") == 0) break;
    v->dtype = (uint8_t)type_named(type);
    if (strcmp(name, "load") == 0)
      read_load(r, v, at + n);
    else if (strcmp(name, "constant") == 0)
      read_constant(r, v, at + n);
    else
      read_op(v, name, at + n);
    if (++r->k.n_values == 256) abort();
  }
  r->store = (kernel_store){.value = (uint32_t)atoi(name), .index = {.strides = {1}}, .by = SCALAR_NONE};
  r->k.values = r->values, r->k.stores = &r->store;
  return strchr(at, '\n') + 1;
}

static void check(const reader *r, base_arena *arena) {
  const kernel *k = &r->k;
  nat_body b;
  neon_words code = {0};
  void *in[ARRAYS], *out[ARRAYS], *want[ARRAYS];
  int64_t bytes[ARRAYS];
  xlac_error err = {0};
  if (!nat_lower(&b, k, &nat_neon, CPU_NATIVE_VALUES, arena) || !nat_neon_emit(&b, &code, arena)) {
    printf("not covered\n");
    return;
  }
  for (uint32_t i = 0; i < ARRAYS; i++) {
    bytes[i] = ROOM;
    in[i] = calloc(1, ROOM), out[i] = calloc(1, ROOM), want[i] = calloc(1, ROOM);
    if (i < k->n_inputs) fill(in[i], (base_dtype)r->types[i]);
  }
  if (kernel_eval(k, base_alloc_libc, (const void *const *)in, bytes, want, bytes, &err)) {
    printf("the reference fails: %s\n", err.message);
    exit(1);
  }
  run(&b, &code, in, out);
  for (uint32_t s = 0; s < k->n_stores; s++) {
    base_dtype t = (base_dtype)k->values[k->stores[s].value].dtype;
    uint32_t to = k->stores[s].buffer;
    for (int i = 0; i < COUNT; i++)
      if (!is_same(out[to], want[to], t, i)) {
        uint64_t got = 0, wanted = 0;
        size_t size = (size_t)base_dtype_bytes(t);
        memcpy(&got, (char *)out[to] + i * size, size), memcpy(&wanted, (char *)want[to] + i * size, size);
        printf("differs at %d: %llx, not %llx\n", i, (unsigned long long)got, (unsigned long long)wanted);
        return;
      }
  }
  printf("same\n");
}

int main(void) {
  static char text[1 << 20];
  static reader r;
  size_t n = fread(text, 1, sizeof text - 1, stdin);
  for (const char *at = text; at < text + n;) {
    base_arena arena;
    xlac_error err = {0};
    at = read_kernel(&r, at);
    if (kernel_verify(&r.k, &err)) {
      printf("not a kernel: %s\n", err.message);
      return 1;
    }
    base_arena_init(&arena, base_alloc_libc);
    check(&r, &arena);
    base_arena_free(&arena);
  }
  return 0;
}
