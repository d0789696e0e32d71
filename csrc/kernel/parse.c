/* The text of kernels. Its lines of constants and ops are HLO, so the whole is rewritten, line by line, as an HLO
 * computation whose parameters are the loads: the HLO reader and verifier know all ops and types, and lines and columns
 * are still those of the kernel's text. */
#include "../base/number/number.h"
#include "../text/text.h"
#include "kernel.h"

/* What the text says of a value beyond what the HLO reader makes of its line. */
typedef struct kread_value {
  uint32_t line;
  uint8_t kind; /* LOAD, COUNT_UP, PICK; OP: what HLO says, an op or a constant */
  uint8_t n_in; /* of an op that HLO has no text for, whose line is a parameter too */
  ir_opcode foreign;
  uint32_t in[3];
  uint32_t buffer; /* LOAD */
  kernel_index *index;
  kernel_base *bases;
  kernel_box *box, *pick;
  base_slice name; /* SCAN: of the op that combines, whose line is the value's own */
} kread_value;
BASE_VEC(kread_values, kread_value);

/* The text is read line by line: p moves from line_at to end of the present one. `hlo` gets a line for each line. */
typedef struct kread_run {
  base_arena *arena;
  base_alloc alloc;
  const char *p, *end, *line_at; /* of the present line */
  uint32_t line, n_params, stores[KERNEL_MAX_STORES], reduce_line;
  bool begun;
  kernel *k;
  kernel_reduction *reduction;
  uint32_t n_reducing; /* stores that reduce, each of which is a line of HLO after the values' */
  bool reduces[KERNEL_MAX_STORES];
  kread_values values;
  base_text hlo;
  xlac_error *err;
} kread_run;

/* At the place where reading stopped. */
static int kread_fail(const kread_run *x, const char *what) {
  return base_fail_at(x->err, XLAC_E_SYNTAX, x->line, (uint32_t)(x->p - x->line_at) + 1, "", "%s", what);
}

static int kread_no_memory(const kread_run *x) {
  return base_oom(x->err, "the text of a kernel");
}

static void kread_blanks(kread_run *x) {
  while (x->p < x->end && (*x->p == ' ' || *x->p == '\t' || *x->p == '\r')) x->p++;
}

/* Skips blanks, then the word if it is there. */
static bool kread_takes(kread_run *x, const char *word) {
  assert(x->p <= x->end);
  size_t n = strlen(word);
  kread_blanks(x);
  if ((size_t)(x->end - x->p) < n || memcmp(x->p, word, n) != 0) return false;
  x->p += n;
  return true;
}

static int kread_expect(kread_run *x, const char *word) {
  if (kread_takes(x, word)) return 0;
  return base_fail_at(x->err, XLAC_E_SYNTAX, x->line, (uint32_t)(x->p - x->line_at) + 1, "",
                      "expected \"%s\" in a kernel", word);
}

/* Signed, within [least, most]. */
static int kread_number(kread_run *x, int64_t least, int64_t most, int64_t *out) {
  kread_blanks(x);
  const char *after = base_parse_i64(x->p, x->end, out);
  if (!after) return kread_fail(x, "expected a number in a kernel");
  if (*out < least || *out > most) return kread_fail(x, "a kernel's number is out of range");
  x->p = after;
  return 0;
}

/* A number of things or of a thing, from 0. */
static int kread_small(kread_run *x, int64_t most, uint32_t *out) {
  assert(most <= UINT32_MAX);
  int64_t v = 0;
  TRY(kread_number(x, 0, most, &v));
  *out = (uint32_t)v;
  return 0;
}

/* Nothing but blanks may follow. */
static int kread_line_ends(kread_run *x) {
  kread_blanks(x);
  return x->p == x->end ? 0 : kread_fail(x, "a kernel's line goes on where it should end");
}

/* v3 up to 7, after its stride. v: the load, or NULL where such can't be. */
static int kread_base(kread_run *x, int64_t stride, kread_value *v) {
  if (!v || v->n_in == 3) return kread_fail(x, "only a load's place depends on values, and on at most 3");
  if (!v->bases && !(v->bases = base_arena_zalloc(x->arena, 3 * sizeof *v->bases))) return kread_no_memory(x);
  TRY(kread_small(x, UINT32_MAX, &v->in[v->n_in]));
  TRY(kread_expect(x, "up to"));
  v->bases[v->n_in].stride = stride;
  return kread_number(x, 0, INT64_MAX, &v->bases[v->n_in++].last);
}

/* [3 + 2*i0 + -1*i2] */
static int kread_index(kread_run *x, kernel_index *index, kread_value *v) {
  TRY(kread_expect(x, "["));
  TRY(kread_number(x, INT64_MIN, INT64_MAX, &index->offset));
  while (kread_takes(x, "+")) {
    int64_t stride = 0;
    uint32_t d = 0;
    TRY(kread_number(x, INT64_MIN, INT64_MAX, &stride));
    TRY(kread_expect(x, "*"));
    if (kread_takes(x, "v")) {
      TRY(kread_base(x, stride, v));
      continue;
    }
    TRY(kread_expect(x, "i"));
    TRY(kread_small(x, INT32_MAX, &d));
    if (d >= x->k->rank) return kread_fail(x, "the kernel has no such dimension");
    if (!base_add_i64(index->strides[d], stride, &index->strides[d])) return kread_fail(x, "a stride overflows");
  }
  return kread_expect(x, "]");
}

/* kernel [4,3] from 2 inputs */
static int kread_header(kread_run *x) {
  kernel *k = x->k;
  TRY(kread_expect(x, "kernel"));
  TRY(kread_expect(x, "["));
  k->count = 1;
  while (!kread_takes(x, "]")) {
    if (k->rank == KERNEL_MAX_RANK) return kread_fail(x, "a kernel has at most 12 dimensions");
    if (k->rank) TRY(kread_expect(x, ","));
    TRY(kread_number(x, 0, INT64_MAX, &k->extents[k->rank]));
    if (!base_mul_i64(k->count, k->extents[k->rank++], &k->count)) return kread_fail(x, "the iterations are too many");
  }
  TRY(kread_expect(x, "from"));
  TRY(kread_small(x, 1 << 20, &k->n_inputs));
  TRY(kread_expect(x, k->n_inputs == 1 ? "input" : "inputs"));
  x->begun = true;
  BASE_PUT(&x->hlo, "HloModule kernel ENTRY e {");
  return kread_line_ends(x);
}

/* chlo.erf_inv(v1) */
static int kread_foreign(kread_run *x, kread_value *v) {
  kread_blanks(x);
  const char *name = x->p, *end = memchr(name, '(', (size_t)(x->end - name));
  if (!end || !memchr(name, '.', (size_t)(end - name))) return 0; /* HLO's opcodes have no dots */
  v->foreign = ir_opcode_from_mlir(name, (size_t)(end - name));
  if (v->foreign == IR_OP_INVALID) return kread_fail(x, "unknown opcode");
  x->p = end + 1;
  while (!kread_takes(x, ")")) {
    if (v->n_in == 3) return kread_fail(x, "a kernel's op has at most 3 operands");
    if (v->n_in) TRY(kread_expect(x, ","));
    TRY(kread_expect(x, "v"));
    TRY(kread_small(x, UINT32_MAX, &v->in[v->n_in]));
    if (v->in[v->n_in++] >= x->values.n) return kread_fail(x, "values are used after they are made");
  }
  return kread_line_ends(x);
}

/* Of a load, an index or a scan. */
static int kread_place(kread_run *x, kread_value *v) {
  v->index = BASE_NEW(x->arena, kernel_index);
  if (!v->index) return kread_no_memory(x);
  TRY(kread_index(x, v->index, v->kind == KERNEL_LOAD ? v : NULL));
  return kread_line_ends(x);
}

/* 1 <= i0 < 9, 0 <= i2 < 4 */
static int kread_box(kread_run *x, kernel_box **out) {
  kernel_box *b = *out = BASE_NEW(x->arena, kernel_box);
  if (!b) return kread_no_memory(x);
  memcpy(b->to, x->k->extents, sizeof b->to);
  do {
    int64_t from = 0;
    uint32_t d = 0;
    TRY(kread_number(x, 0, INT64_MAX, &from));
    TRY(kread_expect(x, "<="));
    TRY(kread_expect(x, "i"));
    TRY(kread_small(x, INT32_MAX, &d));
    if (d >= x->k->rank) return kread_fail(x, "the kernel has no such dimension");
    TRY(kread_expect(x, "<"));
    TRY(kread_number(x, 0, INT64_MAX, &b->to[d]));
    b->from[d] = from;
  } while (kread_takes(x, ","));
  return kread_line_ends(x);
}

/* (v1, v2) */
static int kread_two_values(kread_run *x, kread_value *v) {
  v->n_in = 2;
  TRY(kread_expect(x, "(v"));
  TRY(kread_small(x, UINT32_MAX, &v->in[0]));
  TRY(kread_expect(x, ","));
  TRY(kread_expect(x, "v"));
  TRY(kread_small(x, UINT32_MAX, &v->in[1]));
  return kread_expect(x, ")");
}

/* (v1, v2) if 2 <= i0 < 7 */
static int kread_pick(kread_run *x, kread_value *v) {
  TRY(kread_two_values(x, v));
  TRY(kread_expect(x, "if "));
  return kread_box(x, &v->pick);
}

/* (v1, v2) by add along [0 + 1*i1]: the op that combines is a line of HLO, as a store's. */
static int kread_scan(kread_run *x, kread_value *v) {
  const char *name = NULL;
  TRY(kread_two_values(x, v));
  TRY(kread_expect(x, "by"));
  kread_blanks(x);
  for (name = x->p; x->p < x->end && ((*x->p >= 'a' && *x->p <= 'z') || *x->p == '-');) x->p++;
  v->name = (base_slice){name, (size_t)(x->p - name)};
  TRY(kread_expect(x, "along"));
  if (v->in[0] >= x->values.n || v->in[1] >= x->values.n) return kread_fail(x, "values are used after they are made");
  return kread_place(x, v);
}

/* Where the value is defined stands at the end of its line. */
static int kread_where(kread_run *x, kread_value *v) {
  static const char word[] = " where ";
  const char *line_end = x->end, *start = x->p, *at = NULL;
  for (const char *p = start; p + sizeof word - 1 < line_end; p++)
    if (memcmp(p, word, sizeof word - 1) == 0) at = p;
  if (!at) return 0;
  x->p = at + sizeof word - 1;
  TRY(kread_box(x, &v->box));
  x->p = start;
  x->end = at;
  return 0;
}

/* What follows the word that says the kind. */
static int kread_rest(kread_run *x, kread_value *v) {
  switch ((kernel_kind)v->kind) {
    case KERNEL_PICK:
      return kread_pick(x, v);
    case KERNEL_SCAN:
      return kread_scan(x, v);
    case KERNEL_OP:
      return kread_foreign(x, v);
    default:
      return kread_place(x, v);
  }
}

/* Loads and indexes become parameters, the rest stands as it is. v3 = f32[] add(v1, v2) */
static int kread_value_line(kread_run *x) {
  kread_value v = {.line = x->line, .kind = KERNEL_OP};
  const char *line = x->p, *type = NULL;
  uint32_t number = 0;
  TRY(kread_where(x, &v));
  TRY(kread_expect(x, "v"));
  TRY(kread_small(x, UINT32_MAX, &number));
  if (number != x->values.n || number >= KERNEL_MAX_VALUES)
    return kread_fail(x, "values are v0, v1, ... in this order");
  TRY(kread_expect(x, "="));
  kread_blanks(x);
  for (type = x->p; x->p < x->end && *x->p != '[' && *x->p != ' ';) x->p++;
  base_slice dtype = {type, (size_t)(x->p - type)};
  TRY(kread_expect(x, "[]"));
  if (kread_takes(x, "load in")) {
    v.kind = KERNEL_LOAD;
    TRY(kread_small(x, UINT32_MAX, &v.buffer));
  } else if (kread_takes(x, "index")) {
    v.kind = KERNEL_COUNT_UP;
  } else if (kread_takes(x, "pick")) {
    v.kind = KERNEL_PICK;
  } else if (kread_takes(x, "scan")) {
    v.kind = KERNEL_SCAN;
  }
  TRY(kread_rest(x, &v));
  if (v.kind == KERNEL_SCAN)
    base_putf(&x->hlo, "v%u = %.*s[] %.*s(v%u, v%u)", number, (int)dtype.n, dtype.p, (int)v.name.n, v.name.p, v.in[0],
              v.in[1]);
  else if (v.kind == KERNEL_OP && v.foreign == IR_OP_INVALID)
    base_put(&x->hlo, line, (size_t)(x->end - line));
  else
    base_putf(&x->hlo, "v%u = %.*s[] parameter(%u)", number, (int)dtype.n, dtype.p, x->n_params++);
  return BASE_VEC_PUSH(x->alloc, &x->values, v) ? 0 : kread_no_memory(x);
}

/* over [4,(3),1] */
static int kread_over_line(kread_run *x) {
  kernel_reduction *r = BASE_NEW(x->arena, kernel_reduction);
  if (!r) return kread_no_memory(x);
  if (x->reduction) return kread_fail(x, "a kernel has one \"over\" for all its reductions");
  x->reduction = r;
  x->reduce_line = x->line;
  TRY(kread_expect(x, "["));
  TRY(kread_number(x, 0, INT64_MAX, &r->outer));
  TRY(kread_expect(x, ","));
  TRY(kread_expect(x, "("));
  TRY(kread_number(x, 0, INT64_MAX, &r->reduced));
  TRY(kread_expect(x, ")"));
  TRY(kread_expect(x, ","));
  TRY(kread_number(x, 0, INT64_MAX, &r->inner));
  TRY(kread_expect(x, "]"));
  return kread_line_ends(x);
}

/* by add from v3: of the combination an op is made, as of any other line. */
static int kread_combination(kread_run *x, kernel_store *s) {
  const char *name = NULL;
  kread_blanks(x);
  for (name = x->p; x->p < x->end && ((*x->p >= 'a' && *x->p <= 'z') || *x->p == '-');) x->p++;
  base_slice opcode = {name, (size_t)(x->p - name)};
  TRY(kread_expect(x, "from"));
  TRY(kread_expect(x, "v"));
  TRY(kread_small(x, UINT32_MAX, &s->init));
  if (s->value >= x->values.n || s->init >= x->values.n) return kread_fail(x, "a reduction's values stand before it");
  x->reduces[x->k->n_stores - 1] = true;
  base_putf(&x->hlo, "r%u = %.*s(v%u, v%u)", x->n_reducing++, (int)opcode.n, opcode.p, s->value, s->init);
  return kread_line_ends(x);
}

/* store out1[0 + 1*i0] v2 by add from v3 */
static int kread_store_line(kread_run *x) {
  kernel *k = x->k;
  if (k->n_stores == KERNEL_MAX_STORES) return kread_fail(x, "a kernel has at most 8 stores");
  kernel_store *s = &k->stores[k->n_stores];
  x->stores[k->n_stores++] = x->line;
  TRY(kread_expect(x, "out"));
  TRY(kread_small(x, UINT32_MAX, &s->buffer));
  TRY(kread_index(x, &s->index, NULL));
  TRY(kread_expect(x, "v"));
  TRY(kread_small(x, UINT32_MAX, &s->value));
  return kread_takes(x, "by ") ? kread_combination(x, s) : kread_line_ends(x);
}

/* Blank lines and comments (//) count as lines too, so that numbers agree. */
static int kread_line(kread_run *x) {
  kread_blanks(x);
  if (x->p == x->end || kread_takes(x, "//")) return 0;
  if (!x->begun) return kread_header(x);
  if (kread_takes(x, "over ")) return kread_over_line(x);
  if (kread_takes(x, "store ")) return kread_store_line(x);
  return *x->p == 'v' ? kread_value_line(x) : kread_fail(x, "expected a value, \"over\" or \"store\" in a kernel");
}

/* A reduction's op has the type of its value, which its own line of HLO leaves out. */
static int kread_lines(kread_run *x, const char *text, size_t n) {
  const char *all_end = text + n;
  for (const char *at = text; at < all_end || x->line == 0;) {
    const char *newline = at < all_end ? memchr(at, '\n', (size_t)(all_end - at)) : NULL;
    x->line++;
    x->p = x->line_at = at;
    x->end = newline ? newline : all_end;
    TRY(kread_line(x));
    BASE_PUT(&x->hlo, "\n");
    at = newline ? newline + 1 : all_end;
  }
  x->p = x->line_at = x->end;
  if (!x->begun) return kread_fail(x, "expected \"kernel\"");
  if (x->k->n_stores == 0) return kread_fail(x, "a kernel stores something");
  BASE_PUT(&x->hlo, "}\n");
  return x->hlo.failed ? kread_no_memory(x) : 0;
}

static int kread_take_op(kread_run *x, ir_op **ops, uint32_t i, kernel_value *v) {
  assert(i < x->values.n);
  const kread_value *read = &x->values.items[i];
  const ir_op *op = ops[i];
  x->line = read->line;
  x->p = x->line_at;
  if (op->line != read->line || !ir_is_tensor(op->type) || op->type->rank || op->n_operands > 3 || op->n_called)
    return kread_fail(x, "a kernel's values are scalars, one on a line");
  *v = (kernel_value){.kind = read->kind,
                      .dtype = op->type->dtype,
                      .buffer = read->buffer,
                      .index = read->index,
                      .bases = read->bases,
                      .box = read->box,
                      .pick = read->pick};
  if (read->kind == KERNEL_SCAN) v->op.code = (uint8_t)scalar_code_of((ir_opcode)op->opcode);
  if (read->foreign != IR_OP_INVALID) v->op.code = (uint8_t)scalar_code_of(read->foreign);
  if (read->kind != KERNEL_OP || read->foreign != IR_OP_INVALID) {
    v->n_in = read->n_in;
    memcpy(v->in, read->in, sizeof v->in);
    return 0;
  }
  if (op->opcode == IR_OP_CONSTANT) {
    v->kind = KERNEL_CONSTANT;
    if (!op->u.literal || op->u.literal->elided) return 0; /* which the kernel's verifier refuses */
    v->data = base_arena_memdup(x->arena, op->u.literal->data, base_dtype_bytes((base_dtype)v->dtype));
    return v->data ? 0 : kread_no_memory(x);
  }
  if (!scalar_op_of(op, &v->op)) v->op.code = SCALAR_NONE; /* which the kernel's verifier refuses */
  v->n_in = (uint8_t)op->n_operands;
  for (uint32_t j = 0; j < op->n_operands; j++) {
    int64_t number = -1;
    const base_istr *name = ir_operand(op, j)->name;
    if (!base_parse_i64(name->s + 1, name->s + name->n, &number)) return kread_fail(x, "no operand of that name");
    v->in[j] = (uint32_t)number;
  }
  return 0;
}

/* HLO ops come in the order of their lines: one for each value, then one for each reducing store. */
static int kread_take_ops(kread_run *x, const ir_module *m) {
  uint32_t n = x->values.n + x->n_reducing, found = 0, next = x->values.n;
  kernel_value *values = BASE_ARRAY(x->arena, kernel_value, (size_t)n + 1);
  ir_op **ops = BASE_ARRAY(x->arena, ir_op *, (size_t)n + 1);
  if (!values || !ops) return kread_no_memory(x);
  IR_FOR_OPS(op, m->entry) {
    if (found < n) ops[found] = op;
    found++;
  }
  for (uint32_t i = 0; i < x->values.n && i < found; i++) TRY(kread_take_op(x, ops, i, &values[i]));
  if (found != n || m->entry->next || m->entry->prev) return kread_fail(x, "a kernel has one value on a line");
  for (uint32_t i = 0; i < x->k->n_stores; i++)
    if (x->reduces[i]) x->k->stores[i].by = scalar_code_of((ir_opcode)ops[next++]->opcode);
  x->k->n_values = x->values.n;
  x->k->values = values;
  x->k->reduction = x->reduction;
  return 0;
}

/* The fault's line, where HLO has no word on it. */
static int kread_verify(kread_run *x) {
  kernel_part part = KERNEL_SPACE;
  uint32_t number = 0;
  int status = kernel_find_fault(x->k, &part, &number, x->err);
  if (status && x->err) {
    x->err->line = part == KERNEL_VALUE       ? x->values.items[number].line
                   : part == KERNEL_STORE     ? x->stores[number]
                   : part == KERNEL_REDUCTION ? x->reduce_line
                                              : 1;
    x->err->col = 1;
  }
  return status;
}

/* The HLO reader reports faults of constants and ops, the HLO verifier those of types, the kernel's verifier the
 * rest. */
static int kread_all(kread_run *x, ir_module **ops, const char *text, size_t n) {
  const text_parse_options options = {.alloc = x->alloc};
  TRY(kread_lines(x, text, n));
  TRY(text_parse_hlo(ops, x->hlo.s, x->hlo.n, &options, x->err));
  TRY(ir_verify(*ops, NULL, x->err));
  TRY(kread_take_ops(x, *ops));
  return kread_verify(x);
}

/* *out is not to be used after a failure. */
int kernel_parse(kernel **out, base_arena *arena, const char *text, size_t n, xlac_error *err) {
  assert(out && arena && (text || n == 0));
  ir_module *ops = NULL;
  kread_run x = {.arena = arena, .alloc = arena->alloc, .err = err, .k = BASE_NEW(arena, kernel)};
  base_text_init(&x.hlo, x.alloc);
  if (x.k) x.k->stores = base_arena_zalloc(arena, KERNEL_MAX_STORES * sizeof *x.k->stores);
  int status = x.k && x.k->stores ? kread_all(&x, &ops, text, n) : kread_no_memory(&x);
  base_text_free(&x.hlo);
  BASE_VEC_FREE(x.alloc, &x.values);
  ir_module_destroy(ops);
  *out = x.k;
  return status;
}
