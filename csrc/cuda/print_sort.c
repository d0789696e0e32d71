/* Sorts of lines that fit into shared memory: a block for each line sorts the numbers of its elements by a bitonic
 * network, and then moves all operands. Equal elements are ordered by their numbers, so the sort is stable, and has the
 * interpreter's bits for every order that is one: of integers, or of floats by the total order, by anything that is
 * computed of both sides alike. */
#include <stdio.h>

#include "routine.h"

enum {
  CU_SORT_MOST = 4096,   /* elements of a line */
  CU_SORT_THREADS = 256, /* of a block, at most */
  CU_SORT_OPERANDS = 8
};

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

/* What is less, or greater, by an order without NaNs that are neither. */
static bool cu_sort_is_order(const scalar_program *p) {
  if (!p || p->n_outs != 1 || p->n_params > 2 * CU_SORT_OPERANDS) return false;
  const scalar_value *v = &p->values[p->outs[0]];
  if (v->op.code != SCALAR_COMPARE || (v->op.direction != SCALAR_LT && v->op.direction != SCALAR_GT)) return false;
  base_dtype t = (base_dtype)p->values[v->in[0]].dtype;
  if (!base_dtype_is_integer(t) && v->op.order != SCALAR_ORDER_TOTAL) return false;
  return cu_sort_mirrors(p, v->in[0], v->in[1], 12) || cu_sort_mirrors(p, v->in[1], v->in[0], 12);
}

/* "<name>" is whether element `first` comes before element `second`. */
static void cu_sort_put_less(cuda_routine *r, const scalar_program *p, const char *name, const char *first,
                             const char *second, int64_t inner) {
  char parameters[2 * CU_SORT_OPERANDS][64];
  for (uint32_t i = 0; i < p->n_params; i++)
    snprintf(parameters[i], sizeof parameters[i], "((const %s *)in%u)[base + (idx)%s * %lld]",
             cuda_type((base_dtype)p->values[i].dtype), (unsigned)(i / 2), i % 2 ? second : first, (long long)inner);
  base_putf(r->print.out, "  bool %s;\n  {\n", name);
  cuda_body_put(&r->print, p, "f", parameters);
  base_putf(r->print.out, "  %s = f%u;\n  }\n", name, (unsigned)p->outs[0]);
}

/* The network: places past the line's end come last, since their numbers do. */
static void cu_sort_put_network(cuda_routine *r, const scalar_program *p, int64_t n, int64_t room, int64_t threads,
                                int64_t inner) {
  base_text *out = r->print.out;
  base_putf(out, "  for (int k = 2; k <= %lld; k *= 2)\n  for (int j = k / 2; j > 0; j /= 2) {\n", (long long)room);
  base_putf(out, "  for (int t = threadIdx.x; t < %lld; t += %lld) {\n", (long long)room / 2, (long long)threads);
  BASE_PUT(out, "  const int at = 2 * t - (t & (j - 1)), a = order[at], b = order[at + j];\n  bool before = b < a;\n");
  base_putf(out, "  if (a < %lld && b < %lld) {\n", (long long)n, (long long)n);
  cu_sort_put_less(r, p, "sooner", "b", "a", inner);
  cu_sort_put_less(r, p, "later", "a", "b", inner);
  BASE_PUT(out, "  before = sooner || (!later && before);\n  }\n");
  BASE_PUT(out,
           "  if (before == ((at & k) == 0)) { order[at] = b; order[at + j] = a; }\n  }\n  __syncthreads();\n  }\n");
}

static void cu_sort_put(cuda_routine *r, const scalar_program *p, int64_t lines, int64_t n, int64_t inner) {
  base_text *out = r->print.out;
  int64_t room = 2, threads = CU_SORT_THREADS;
  while (room < n) room *= 2;
  while (threads > 32 && threads > room / 2) threads /= 2;
  cuda_routine_head(r, r->op->n_operands, r->op->n_operands);
  base_putf(out, "  __shared__ int order[%lld];\n  const idx line = blockIdx.x, ", (long long)room);
  base_putf(out, "base = line / %lld * %lld + line %% %lld;\n", (long long)inner, (long long)(inner * n),
            (long long)inner);
  base_putf(out, "  for (int t = threadIdx.x; t < %lld; t += %lld) order[t] = t;\n  __syncthreads();\n",
            (long long)room, (long long)threads);
  cu_sort_put_network(r, p, n, room, threads, inner);
  base_putf(out, "  for (int t = threadIdx.x; t < %lld; t += %lld) {\n", (long long)n, (long long)threads);
  for (uint32_t i = 0; i < r->op->n_operands; i++) {
    const char *c = cuda_type((base_dtype)ir_operand_type(r->op, i)->dtype);
    base_putf(out, "  ((%s *)out%u)[base + (idx)t * %lld] = ((const %s *)in%u)[base + (idx)order[t] * %lld];\n", c,
              (unsigned)i, (long long)inner, c, (unsigned)i, (long long)inner);
  }
  BASE_PUT(out, "  }\n");
  r->launch->grid = lines;
  r->launch->block = (uint32_t)threads;
  cuda_routine_close(r, "a block for each line, in shared memory");
}

bool cuda_print_sort(cuda_routine *r) {
  const ir_op *op = r->op;
  const ir_type *t = ir_operand_type(op, 0);
  uint32_t along = (uint32_t)ir_get_ints(op, IR_ATTR_DIMENSIONS)->v[0];
  const scalar_program *p = cuda_body_program(r);
  int64_t inner = 1;
  if (op->n_operands > CU_SORT_OPERANDS || t->dims[along] > CU_SORT_MOST || !cu_sort_is_order(p)) return false;
  if (p->n_params != 2 * op->n_operands) return false;
  for (uint32_t d = along + 1; d < t->rank; d++) inner *= t->dims[d];
  for (uint32_t i = 0; i < op->n_operands; i++) {
    base_dtype own = (base_dtype)ir_operand_type(op, i)->dtype;
    if (p->values[2 * i].dtype != own || p->values[2 * i + 1].dtype != own) return false;
    if (base_dtype_is_complex(own)) cuda_print_needs(&r->print, cuda_type(own));
  }
  cu_sort_put(r, p, t->count / t->dims[along], t->dims[along], inner);
  return true;
}
