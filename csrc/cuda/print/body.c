/* Ops that apply a computation on scalars: reductions of several arrays, windows, scatter of rows. A thread goes
 * through what belongs to its result in the interpreter's order, so the bits are the interpreter's. */
#include <stdio.h>

#include "../../passes/hlo/arg_reduce.h"
#include "routine.h"

/* --- computations on scalars --- */

static const scalar_program *cu_body_called(cuda_routine *r, uint32_t i) {
  const scalar_program *p = NULL;
  xlac_error err;
  return scalar_program_make(r->op->called[i], r->scratch, &p, &err) ? NULL : p;
}

const scalar_program *cuda_body_program(cuda_routine *r) {
  return r->op->n_called == 1 ? cu_body_called(r, 0) : NULL;
}

static void cu_body_put_value(cuda_print *x, const scalar_program *p, uint32_t i, const char *name) {
  const scalar_value *v = &p->values[i];
  char names[3][32];
  const char *in[3] = {"", "", ""};
  uint8_t types[3] = {0, 0, 0};
  scalar_loop l;
  if (v->constant) {
    cuda_print_constant(x, (base_dtype)v->dtype, v->element);
    return;
  }
  for (uint32_t j = 0; j < v->n_in; j++) {
    snprintf(names[j], sizeof names[j], "%s%u", name, (unsigned)v->in[j]);
    in[j] = names[j];
    types[j] = p->values[v->in[j]].dtype;
  }
  if (scalar_loop_of(&v->op, v->n_in, types, v->dtype, &l))
    cuda_print_op(x, &v->op, &l, in);
  else
    x->strange = true;
}

void cuda_body_put(cuda_print *x, const scalar_program *p, const char *name, char (*parameters)[64]) {
  for (uint32_t i = 0; i < p->n_values; i++) {
    base_dtype t = (base_dtype)p->values[i].dtype;
    if (base_dtype_is_complex(t)) cuda_print_needs(x, cuda_type(t));
    base_putf(x->out, "  const %s %s%u = ", cuda_type(t), name, (unsigned)i);
    if (i < p->n_params)
      base_puts(x->out, parameters[i]);
    else
      cu_body_put_value(x, p, i, name);
    BASE_PUT(x->out, ";\n");
  }
}

/* --- reductions --- */

enum { CU_BODY_MOST = 8 /* arrays reduced at a time */ };

/* Whether the body has the operands' types: n results so far, then n values. */
static bool cu_body_fits(const cuda_routine *r, const scalar_program *p, uint32_t n) {
  if (!p || p->n_params != 2 * n || p->n_outs != n || n > CU_BODY_MOST) return false;
  for (uint32_t i = 0; i < n; i++) {
    uint8_t t = ir_operand_type(r->op, i)->dtype;
    if (p->values[i].dtype != t || p->values[n + i].dtype != t || p->values[p->outs[i]].dtype != t) return false;
    if (ir_operand_type(r->op, n + i)->dtype != t) return false;
  }
  return true;
}

/* A single op on narrow floats is rounded at the end, as the interpreter has it; other computations after each step. */
static base_dtype cu_body_sum_type(const scalar_program *p, uint32_t i) {
  base_dtype t = (base_dtype)p->values[i].dtype;
  return scalar_program_single(p) ? cuda_sum_type(t) : t;
}

/* "acc0", ... begin as the initial values. */
static void cu_body_put_inits(cuda_routine *r, const scalar_program *p, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    base_dtype t = (base_dtype)p->values[i].dtype;
    char first[64];
    if (base_dtype_is_complex(t)) cuda_print_needs(&r->print, cuda_type(t));
    snprintf(first, sizeof first, "((const %s *)in%u)[0]", cuda_type(t), (unsigned)(n + i));
    base_putf(r->print.out, "  %s acc%u = ", cuda_type(cu_body_sum_type(p, i)), (unsigned)i);
    cuda_print_convert(&r->print, cu_body_sum_type(p, i), t, first);
    BASE_PUT(r->print.out, ";\n");
  }
}

/* The one op, with the element at `from`. */
static void cu_body_put_single(cuda_routine *r, const scalar_program *p) {
  base_dtype t = (base_dtype)p->values[0].dtype, sum = cu_body_sum_type(p, 0);
  char element[64];
  snprintf(element, sizeof element, "((const %s *)in0)[from]", cuda_type(t));
  base_putf(r->print.out, "  const %s value = ", cuda_type(sum));
  cuda_print_convert(&r->print, sum, t, element);
  BASE_PUT(r->print.out, ";\n  acc0 = ");
  cuda_print_combine(&r->print, scalar_program_single(p), sum, "acc0", "value");
  BASE_PUT(r->print.out, ";\n");
}

/* The values at element `from` of each array are combined with what there is. */
static void cu_body_put_step(cuda_routine *r, const scalar_program *p, uint32_t n) {
  char parameters[2 * CU_BODY_MOST][64];
  if (scalar_program_single(p)) {
    cu_body_put_single(r, p);
    return;
  }
  for (uint32_t i = 0; i < n; i++) {
    snprintf(parameters[i], sizeof parameters[i], "acc%u", (unsigned)i);
    snprintf(parameters[n + i], sizeof parameters[n + i], "((const %s *)in%u)[from]",
             cuda_type((base_dtype)p->values[n + i].dtype), (unsigned)i);
  }
  cuda_body_put(&r->print, p, "b", parameters);
  for (uint32_t i = 0; i < n; i++) base_putf(r->print.out, "  acc%u = b%u;\n", (unsigned)i, (unsigned)p->outs[i]);
}

static void cu_body_put_results(cuda_routine *r, const scalar_program *p, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    base_dtype t = (base_dtype)p->values[i].dtype;
    char sum[16];
    snprintf(sum, sizeof sum, "acc%u", (unsigned)i);
    base_putf(r->print.out, "  ((%s *)out%u)[n] = ", cuda_type(t), (unsigned)i);
    cuda_print_convert(&r->print, t, cu_body_sum_type(p, i), sum);
    BASE_PUT(r->print.out, ";\n");
  }
}

/* --- the place of the largest --- */

enum { CU_BODY_SHORT = 64 /* elements that a thread goes through by itself */, CU_BODY_EACH = 8 };

/* Threads of a block have parts of the line that lie one behind the other, and are combined in their order: so the
 * first of several NaNs, and the last of equal zeros, is what it is in one go. */
static void cu_body_put_line(cuda_routine *r, const scalar_program *p, uint32_t n, int64_t length, int64_t stride) {
  char parameters[2 * CU_BODY_MOST][64];
  base_text *out = r->print.out;
  long long lanes = r->launch->block, part = (length + lanes - 1) / lanes;
  base_putf(out,
            "  const int lane = threadIdx.x;\n  const idx begin = lane * %lld, end = begin + %lld < %lld ? begin + "
            "%lld : %lld;\n",
            part, part, (long long)length, part, (long long)length);
  base_putf(
      out,
      "  for (idx i = begin; i < end; i++) {\n  const idx from = start + i * %lld;\n  if (i == begin && lane > 0) {\n",
      (long long)stride);
  for (uint32_t i = 0; i < n; i++)
    base_putf(out, "  acc%u = ((const %s *)in%u)[from];\n", (unsigned)i, cuda_type((base_dtype)p->values[i].dtype),
              (unsigned)i);
  BASE_PUT(out, "  continue;\n  }\n");
  cu_body_put_step(r, p, n);
  BASE_PUT(out, "  }\n");
  for (uint32_t i = 0; i < n; i++) {
    base_putf(out, "  __shared__ %s s%u[%lld];\n  s%u[lane] = acc%u;\n", cuda_type((base_dtype)p->values[i].dtype),
              (unsigned)i, lanes, (unsigned)i, (unsigned)i);
    snprintf(parameters[i], sizeof parameters[i], "acc%u", (unsigned)i);
    snprintf(parameters[n + i], sizeof parameters[n + i], "s%u[lane + far]", (unsigned)i);
  }
  base_putf(out, "  __syncthreads();\n  for (int far = 1; far < %lld; far *= 2) {\n", lanes);
  base_putf(out, "  if (lane %% (2 * far) == 0 && lane + far < %lld) {\n", (length + part - 1) / part);
  cuda_body_put(&r->print, p, "b", parameters);
  for (uint32_t i = 0; i < n; i++)
    base_putf(out, "  s%u[lane] = acc%u = b%u;\n", (unsigned)i, (unsigned)i, (unsigned)p->outs[i]);
  BASE_PUT(out, "  }\n  __syncthreads();\n  }\n  if (lane > 0) return;\n");
}

/* argmax and the like along dimension d of the operands. */
static bool cu_body_put_places(cuda_routine *r, const scalar_program *p, uint32_t n, uint32_t along) {
  const ir_op *op = r->op;
  const ir_type *t = ir_operand_type(op, 0);
  int64_t own[IR_MAX_RANK];
  cuda_routine_strides(t, own);
  r->launch->block = CUDA_BLOCK_THREADS;
  while (r->launch->block > 32 && r->launch->block * CU_BODY_EACH > t->dims[along]) r->launch->block /= 2;
  cuda_routine_head(r, 2 * n, n);
  BASE_PUT(r->print.out, "  const idx n = blockIdx.x;\n");
  cuda_routine_indexes(r, op->type->elements[0], "o");
  cu_body_put_inits(r, p, n);
  BASE_PUT(r->print.out, "  const idx start = 0");
  for (uint32_t d = 0, kept = 0; d < t->rank; d++)
    if (d != along) base_putf(r->print.out, " + o%u * %lld", (unsigned)kept++, (long long)own[d]);
  BASE_PUT(r->print.out, ";\n");
  cu_body_put_line(r, p, n, t->dims[along], own[along]);
  cu_body_put_results(r, p, n);
  r->launch->grid = op->type->elements[0]->count;
  cuda_routine_close(r, "a block for each result, whose threads have parts one behind the other");
  return true;
}

/* "kept" and "reduced" parts of the place, in the operand's order of dimensions. */
bool cuda_print_reduce_body(cuda_routine *r) {
  const ir_op *op = r->op;
  uint32_t n = op->n_operands / 2, kept = 0;
  const ir_type *t = ir_operand_type(op, 0), *result = ir_is_tuple(op->type) ? op->type->elements[0] : op->type;
  const ir_ints *list = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  const scalar_program *p = cuda_body_program(r);
  int64_t own[IR_MAX_RANK];
  bool reduced[IR_MAX_RANK] = {false};
  opt_arg_reduction place;
  if (!cu_body_fits(r, p, n)) return false;
  if (n == 2 && !scalar_program_single(p) && opt_arg_reduction_of(op, &place) && t->dims[place.dim] > CU_BODY_SHORT)
    return cu_body_put_places(r, p, n, place.dim);
  for (uint32_t i = 0; i < list->n; i++) reduced[list->v[i]] = true;
  cuda_routine_strides(t, own);
  cuda_routine_open(r, 2 * n, n, result->count);
  cuda_routine_indexes(r, result, "o");
  cu_body_put_inits(r, p, n);
  BASE_PUT(r->print.out, "  const idx start = 0");
  for (uint32_t d = 0; d < t->rank; d++)
    if (!reduced[d]) base_putf(r->print.out, " + o%u * %lld", (unsigned)kept++, (long long)own[d]);
  BASE_PUT(r->print.out, ";\n");
  for (uint32_t d = 0; d < t->rank; d++)
    if (reduced[d])
      base_putf(r->print.out, "  for (idx r%u = 0; r%u < %lld; r%u++)\n", (unsigned)d, (unsigned)d,
                (long long)t->dims[d], (unsigned)d);
  BASE_PUT(r->print.out, "  {\n  const idx from = start");
  for (uint32_t d = 0; d < t->rank; d++)
    if (reduced[d]) base_putf(r->print.out, " + r%u * %lld", (unsigned)d, (long long)own[d]);
  BASE_PUT(r->print.out, ";\n");
  cu_body_put_step(r, p, n);
  BASE_PUT(r->print.out, "  }\n");
  cu_body_put_results(r, p, n);
  cuda_routine_close(r, "a thread for each result");
  return true;
}

/* --- windows --- */

/* Padding adds nothing: the initial value is there once, and what lies outside is not looked at. */
bool cuda_print_reduce_window(cuda_routine *r) {
  const ir_op *op = r->op;
  uint32_t n = op->n_operands / 2;
  const ir_type *t = ir_operand_type(op, 0), *result = ir_is_tuple(op->type) ? op->type->elements[0] : op->type;
  const ir_attr *window = ir_attr_find(op, IR_ATTR_WINDOW);
  const scalar_program *p = cuda_body_program(r);
  int64_t own[IR_MAX_RANK];
  if (!cu_body_fits(r, p, n) || !window || window->v.window->n != t->rank) return false;
  if (cuda_print_scan(r)) return true;
  cuda_routine_strides(t, own);
  cuda_routine_open(r, 2 * n, n, result->count);
  cuda_routine_indexes(r, result, "o");
  cu_body_put_inits(r, p, n);
  for (uint32_t d = 0; d < t->rank; d++) {
    const ir_window_dim *w = &window->v.window->v[d];
    base_putf(r->print.out, "  for (idx w%u = 0; w%u < %lld; w%u++) {\n", d, d, (long long)w->size, d);
    base_putf(r->print.out, "  const idx p%u = o%u * %lld + w%u * %lld - (idx)%lld;\n", d, d, (long long)w->stride, d,
              (long long)w->window_dilation, (long long)w->padding_low);
    base_putf(r->print.out, "  if (p%u < 0 || p%u %% %lld != 0 || p%u / %lld >= %lld) continue;\n", d, d,
              (long long)w->base_dilation, d, (long long)w->base_dilation, (long long)t->dims[d]);
  }
  BASE_PUT(r->print.out, "  {\n  const idx from = 0");
  for (uint32_t d = 0; d < t->rank; d++)
    base_putf(r->print.out, " + p%u / %lld * %lld", d, (long long)window->v.window->v[d].base_dilation,
              (long long)own[d]);
  BASE_PUT(r->print.out, ";\n");
  cu_body_put_step(r, p, n);
  for (uint32_t d = 0; d <= t->rank; d++) BASE_PUT(r->print.out, "  }\n");
  cu_body_put_results(r, p, n);
  cuda_routine_close(r, "a thread for each result");
  return true;
}

/* --- select-and-scatter --- */

static bool cu_body_is_pair(const scalar_program *p, uint8_t t, uint8_t result) {
  return p && p->n_params == 2 && p->n_outs == 1 && p->values[0].dtype == t && p->values[1].dtype == t &&
         scalar_out_dtype(p, 0) == result;
}

/* Loops over the windows that have element o of the operand in them, first to last. */
static void cu_body_put_windows(cuda_routine *r, const ir_window *window, const ir_type *source) {
  for (uint32_t d = 0; d < window->n; d++) {
    const ir_window_dim *w = &window->v[d];
    long long stride = (long long)w->stride, low = (long long)w->padding_low,
              before = low - (long long)w->size + stride;
    base_putf(r->print.out, "  for (idx s%u = o%u + %lld < 0 ? 0 : (o%u + %lld) / %lld; ", d, d, before, d, before,
              stride);
    base_putf(r->print.out, "s%u < %lld && s%u * %lld <= o%u + %lld; s%u++)\n", d, (long long)source->dims[d], d,
              stride, d, low, d);
  }
}

/* "best": the element that window s selects, by its number. */
static void cu_body_put_choice(cuda_routine *r, const scalar_program *p, const ir_window *window) {
  const ir_type *t = ir_operand_type(r->op, 0);
  int64_t own[IR_MAX_RANK];
  char parameters[2][64];
  const char *names[2] = {"best", "at"};
  cuda_routine_strides(t, own);
  BASE_PUT(r->print.out, "  idx best = -1;\n");
  for (uint32_t d = 0; d < window->n; d++) {
    const ir_window_dim *w = &window->v[d];
    base_putf(r->print.out, "  for (idx w%u = 0; w%u < %lld; w%u++) {\n", d, d, (long long)w->size, d);
    base_putf(r->print.out,
              "  const idx p%u = s%u * %lld + w%u - (idx)%lld;\n  if (p%u < 0 || p%u >= %lld) continue;\n", d, d,
              (long long)w->stride, d, (long long)w->padding_low, d, d, (long long)t->dims[d]);
  }
  BASE_PUT(r->print.out, "  const idx at = 0");
  for (uint32_t d = 0; d < window->n; d++) base_putf(r->print.out, " + p%u * %lld", d, (long long)own[d]);
  BASE_PUT(r->print.out, ";\n  if (best < 0) { best = at; continue; }\n");
  for (uint32_t i = 0; i < 2; i++)
    snprintf(parameters[i], sizeof parameters[i], "((const %s *)in0)[%s]", cuda_type((base_dtype)t->dtype), names[i]);
  cuda_body_put(&r->print, p, "c", parameters);
  base_putf(r->print.out, "  if (!c%u) best = at;\n", (unsigned)p->outs[0]);
  for (uint32_t d = 0; d < window->n; d++) BASE_PUT(r->print.out, "  }\n");
}

/* A thread for each element asks the windows around it whether they select it, in the order of the source. */
bool cuda_print_select_and_scatter(cuda_routine *r) {
  const ir_op *op = r->op;
  const ir_type *t = ir_operand_type(op, 0), *source = ir_operand_type(op, 1);
  const ir_window *window = ir_get_window(op);
  int64_t own[IR_MAX_RANK];
  char parameters[2][64];
  const scalar_program *choose = cu_body_called(r, 0), *add = cu_body_called(r, 1);
  if (!window || window->n != t->rank || source->dtype != t->dtype || ir_operand_type(op, 2)->dtype != t->dtype)
    return false;
  if (!cu_body_is_pair(choose, t->dtype, XLAC_PRED) || !cu_body_is_pair(add, t->dtype, t->dtype)) return false;
  for (uint32_t d = 0; d < window->n; d++)
    if (window->v[d].base_dilation != 1 || window->v[d].window_dilation != 1) return false;
  const char *c = cuda_type((base_dtype)t->dtype);
  if (base_dtype_is_complex((base_dtype)t->dtype)) cuda_print_needs(&r->print, c);
  cuda_routine_open(r, 3, 1, op->type->count);
  cuda_routine_indexes(r, t, "o");
  base_putf(r->print.out, "  %s acc = ((const %s *)in2)[0];\n", c, c);
  cu_body_put_windows(r, window, source);
  BASE_PUT(r->print.out, "  {\n");
  cu_body_put_choice(r, choose, window);
  cuda_routine_strides(source, own);
  BASE_PUT(r->print.out, "  if (best != n) continue;\n  const idx from = 0");
  for (uint32_t d = 0; d < window->n; d++) base_putf(r->print.out, " + s%u * %lld", d, (long long)own[d]);
  BASE_PUT(r->print.out, ";\n");
  snprintf(parameters[0], sizeof parameters[0], "acc");
  snprintf(parameters[1], sizeof parameters[1], "((const %s *)in1)[from]", c);
  cuda_body_put(&r->print, add, "b", parameters);
  base_putf(r->print.out, "  acc = b%u;\n  }\n  ((%s *)out0)[n] = acc;\n", (unsigned)add->outs[0], c);
  cuda_routine_close(r, "a thread for each element");
  return true;
}
