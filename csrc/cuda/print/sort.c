/* Sorts, and the first of each line: which comparators are orders, and lines that radix.c leaves. A block for each of
 * these sorts the numbers of its elements by a bitonic network in shared memory, and then moves all operands. Equal
 * elements are ordered by their numbers, so sorts are stable, and have the interpreter's bits for every order that is
 * one: of integers, or of floats by the total order, by anything that is computed of both sides alike. */
#include <stdio.h>

#include "sort.h"

enum {
  CU_SORT_MOST = 4096,  /* elements of a line in shared memory */
  CU_SORT_THREADS = 256 /* of a block, at most */
};

/* --- which comparators are orders --- */

/* Whether v is computed of the right side's parameters as u is of the left's: 2i and 2i + 1. The depth is that of the
 * program, which `left` bounds. */
static bool cu_sort_mirrors(const scalar_program *p, uint32_t u, uint32_t v, int left) {
  const scalar_value *x = &p->values[u], *y = &p->values[v];
  if (left == 0 || x->dtype != y->dtype) return false;
  if (u < p->n_params || v < p->n_params) return u < p->n_params && u % 2 == 0 && v == u + 1;
  if (x->constant || y->constant)
    return x->constant && y->constant && memcmp(x->element, y->element, sizeof x->element) == 0;
  bool same = memcmp(&x->op, &y->op, sizeof x->op) == 0 && x->n_in == y->n_in;
  for (uint32_t i = 0; same && i < x->n_in; i++) same = cu_sort_mirrors(p, x->in[i], y->in[i], left - 1);
  return same;
}

/* A comparison of both sides by an order without NaNs that are neither. *left: the operand that is the left side's. */
static bool cu_sort_compares(const scalar_program *p, const scalar_value *v, uint32_t *left) {
  if (v->op.code != SCALAR_COMPARE) return false;
  base_dtype t = (base_dtype)p->values[v->in[0]].dtype;
  if (!base_dtype_is_integer(t) && v->op.order != SCALAR_ORDER_TOTAL) return false;
  *left = cu_sort_mirrors(p, v->in[0], v->in[1], 12) ? 0 : 1;
  return *left == 0 || cu_sort_mirrors(p, v->in[1], v->in[0], 12);
}

/* What is less, or greater, which is a key; or is equal in that and then comes before by another order: a < b or
 * (a = b and ...). */
static bool cu_sort_is_order(cu_sort *s, uint32_t value, int depth) {
  const scalar_program *p = s->p;
  const scalar_value *v = &p->values[value];
  uint32_t left = 0, before = s->n_keys;
  if (depth == 0 || v->op.code != SCALAR_OR) {
    bool strict = v->op.direction == SCALAR_LT || v->op.direction == SCALAR_GT;
    if (before == CU_SORT_KEYS || !strict || !cu_sort_compares(p, v, &left)) return false;
    s->keys[s->n_keys++] = (cu_sort_key){v->in[left], (v->op.direction == SCALAR_GT) != (left == 1)};
    return true;
  }
  for (uint32_t i = 0; i < 4; i++, s->n_keys = before) {
    const scalar_value *a = &p->values[v->in[i & 1]], *both = &p->values[v->in[1 - (i & 1)]];
    if (both->op.code != SCALAR_AND || !cu_sort_is_order(s, v->in[i & 1], 0)) continue;
    const scalar_value *e = &p->values[both->in[i / 2]];
    bool same = (a->in[0] == e->in[0] && a->in[1] == e->in[1]) || (a->in[0] == e->in[1] && a->in[1] == e->in[0]);
    if (same && e->op.direction == SCALAR_EQ && cu_sort_compares(p, e, &left) &&
        cu_sort_is_order(s, both->in[1 - i / 2], depth - 1))
      return true;
  }
  return false;
}

/* --- text --- */

/* "less": whether element `a` comes before element `b` of the line at `base`. */
static void cu_sort_put_less(cuda_routine *r, const cu_sort *s) {
  char parameters[2 * CU_SORT_OPERANDS][64];
  for (uint32_t i = 0; i < s->p->n_params; i++)
    snprintf(parameters[i], sizeof parameters[i], "((const %s *)in%u)[base + %s * %lld]",
             cuda_type((base_dtype)s->p->values[i].dtype), (unsigned)(i / 2), i % 2 ? "b" : "a", (long long)s->inner);
  BASE_PUT(r->print.out, "  auto less = [&](idx a, idx b) -> bool {\n");
  cuda_body_put(&r->print, s->p, "f", parameters);
  base_putf(r->print.out, "  return f%u;\n  };\n", (unsigned)s->p->outs[0]);
}

void cuda_sort_put_base(cuda_routine *r, const cu_sort *s) {
  base_putf(r->print.out, "  const idx base = line / %lld * %lld + line %% %lld;\n", (long long)s->inner,
            (long long)(s->inner * s->n), (long long)s->inner);
}

void cuda_sort_put_move(cuda_routine *r, const cu_sort *s, uint32_t i, const char *self, const char *at) {
  base_text *out = r->print.out;
  const char *c = cuda_type((base_dtype)ir_operand_type(r->op, i)->dtype);
  if (s->first) {
    base_putf(out, "  if (%s < %lld) ((%s *)out0)[line * %lld + %s] = ((const %s *)in0)[base + %s];\n", at,
              (long long)s->first, c, (long long)s->first, at, c, self);
    base_putf(out, "  if (%s < %lld) ((%s *)out1)[line * %lld + %s] = %s;\n", at, (long long)s->first,
              cuda_type((base_dtype)r->op->type->elements[1]->dtype), (long long)s->first, at, self);
    return;
  }
  base_putf(out, "  ((%s *)out%u)[base + (idx)%s * %lld] = ((const %s *)in%u)[base + (idx)%s * %lld];\n", c,
            (unsigned)i, at, (long long)s->inner, c, (unsigned)i, self, (long long)s->inner);
}

void cuda_sort_put_moves(cuda_routine *r, const cu_sort *s, const char *self, const char *at) {
  for (uint32_t i = 0; i < r->op->n_operands; i++) cuda_sort_put_move(r, s, i, self, at);
}

/* The network: places past the line's end come last, since their numbers do. */
static void cu_sort_put_network(cuda_routine *r, const cu_sort *s) {
  base_text *out = r->print.out;
  base_putf(out, "  for (int k = 2; k <= %lld; k *= 2)\n  for (int j = k / 2; j > 0; j /= 2) {\n", (long long)s->room);
  base_putf(out, "  for (int t = threadIdx.x; t < %lld; t += %lld) {\n", (long long)s->room / 2, (long long)s->threads);
  BASE_PUT(out, "  const int at = 2 * t - (t & (j - 1)), a = order[at], b = order[at + j];\n  bool before = b < a;\n");
  base_putf(out, "  if (a < %lld && b < %lld) before = less(b, a) || (!less(a, b) && before);\n", (long long)s->n,
            (long long)s->n);
  BASE_PUT(out,
           "  if (before == ((at & k) == 0)) { order[at] = b; order[at + j] = a; }\n  }\n  __syncthreads();\n  }\n");
}

static void cu_sort_put_short(cuda_routine *r, cu_sort *s, uint32_t n_out) {
  base_text *out = r->print.out;
  for (s->room = 2; s->room < s->n;) s->room *= 2;
  for (s->threads = CU_SORT_THREADS; s->threads > 32 && s->threads > s->room / 2;) s->threads /= 2;
  cuda_routine_head(r, r->op->n_operands, n_out);
  base_putf(out, "  __shared__ int order[%lld];\n  const idx line = blockIdx.x;\n", (long long)s->room);
  cuda_sort_put_base(r, s);
  cu_sort_put_less(r, s);
  base_putf(out, "  for (int t = threadIdx.x; t < %lld; t += %lld) order[t] = t;\n  __syncthreads();\n",
            (long long)s->room, (long long)s->threads);
  cu_sort_put_network(r, s);
  base_putf(out, "  for (int t = threadIdx.x; t < %lld; t += %lld) {\n", (long long)(s->first ? s->first : s->n),
            (long long)s->threads);
  cuda_sort_put_moves(r, s, "order[t]", "t");
  BASE_PUT(out, "  }\n");
  r->launch->grid = s->lines;
  r->launch->block = (uint32_t)s->threads;
  cuda_routine_close(r, "a block for each line, in shared memory");
}

uint32_t cuda_sort_levels(int64_t n) {
  uint32_t levels = 1;
  while (((int64_t)16 << (levels - 1)) < n) levels++;
  return levels;
}

/* Runs of 16 are ranked one element against the others; then each element finds its place in two runs that become one
 * by its own place in its run and how many of the other run come before it. */
void cuda_sort_put_merge(base_text *out, int64_t n) {
  base_putf(out, "  const idx N = %lld;\n", (long long)n);
  BASE_PUT(out,
           "  idx self = p, at = p & ~(idx)15;\n"
           "  if (level == 0) {\n"
           "    for (idx j = at, e = at + 16 < N ? at + 16 : N; j < e; j++)\n"
           "      if (j != p) at += j < p ? !less(p, j) : less(j, p);\n"
           "  } else {\n"
           "    const idx width = (idx)16 << (level - 1), two = p & ~(2 * width - 1);\n"
           "    const bool right = p & width;\n"
           "    idx low = right ? two : two + width, high = low + width;\n"
           "    if (low > N) low = N;\n"
           "    if (high > N) high = N;\n"
           "    at = (right ? p - width : p) - low;\n"
           "    self = from[p];\n"
           "    while (low < high) {\n"
           "      const idx middle = (low + high) / 2, other = from[middle];\n"
           "      if (right ? !less(self, other) : less(other, self)) low = middle + 1; else high = middle;\n"
           "    }\n"
           "    at += low;\n"
           "  }\n");
}

static bool cu_sort_put(cuda_routine *r, cu_sort *s, uint32_t n_out) {
  for (uint32_t i = 0; i < r->op->n_operands; i++) {
    base_dtype own = (base_dtype)ir_operand_type(r->op, i)->dtype;
    if (base_dtype_is_complex(own)) cuda_print_needs(&r->print, cuda_type(own));
  }
  if (cuda_sort_put_radix(r, s, n_out)) return true;
  if (s->n > CU_SORT_MOST) return cuda_sort_put_radix_rounds(r, s, n_out);
  cu_sort_put_short(r, s, n_out);
  return true;
}

bool cuda_print_sort(cuda_routine *r) {
  const ir_op *op = r->op;
  const ir_type *t = ir_operand_type(op, 0);
  uint32_t along = (uint32_t)ir_get_ints(op, IR_ATTR_DIMENSIONS)->v[0];
  cu_sort s = {.p = cuda_body_program(r), .n = t->dims[along], .lines = t->count / t->dims[along], .inner = 1};
  if (op->n_operands > CU_SORT_OPERANDS || !s.p || s.p->n_outs != 1 || s.p->n_params != 2 * op->n_operands)
    return false;
  if (!cu_sort_is_order(&s, s.p->outs[0], CU_SORT_KEYS - 1)) return false;
  for (uint32_t d = along + 1; d < t->rank; d++) s.inner *= t->dims[d];
  for (uint32_t i = 0; i < op->n_operands; i++) {
    uint8_t own = ir_operand_type(op, i)->dtype;
    if (s.p->values[2 * i].dtype != own || s.p->values[2 * i + 1].dtype != own) return false;
  }
  return cu_sort_put(r, &s, op->n_operands);
}

/* As the interpreter has it: by the total order, equal ones in theirs. */
bool cuda_print_topk(cuda_routine *r) {
  const ir_op *op = r->op;
  const ir_type *t = ir_operand_type(op, 0);
  bool largest = ir_get_bool(op, IR_ATTR_LARGEST, true);
  scalar_value v[3] = {{.dtype = t->dtype}, {.dtype = t->dtype}, {.dtype = XLAC_PRED, .n_in = 2, .in = {0, 1}}};
  uint32_t out = 2;
  v[2].op =
      (scalar_op){.code = SCALAR_COMPARE, .direction = largest ? SCALAR_GT : SCALAR_LT, .order = SCALAR_ORDER_TOTAL};
  scalar_program p = {.n_params = 2, .n_outs = 1, .n_values = 3, .n_ops = 1, .values = v, .outs = &out};
  cu_sort s = {.p = &p, .n = t->dims[t->rank - 1], .inner = 1, .first = ir_get_int(op, IR_ATTR_K, 0)};
  s.keys[s.n_keys++] = (cu_sort_key){0, largest};
  if (base_dtype_is_complex((base_dtype)t->dtype) || s.n == 0) return false;
  s.lines = t->count / s.n;
  return cu_sort_put(r, &s, 2);
}
