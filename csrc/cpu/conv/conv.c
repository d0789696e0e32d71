/* Convolutions as matrix products: rows are (batch, output position), k is (window position, input feature), columns
 * are output features; groups are batches of products. */
#include "conv.h"

#include "../../interp/algorithm/placement.h"

/* A copy may be so many times larger than what is read and written; the interpreter does without it. CONV_FEW:
 * elements, so few that the limit doesn't count them; a result of less than CONV_FEW / 64 isn't cut into phases
 * either. CONV_MAX_PARTS: products for all phases together. */
enum { CONV_MOST_HOLES = 32, CONV_FEW = 1 << 16, CONV_MAX_PARTS = 16 };

/* A product, and the operands in its order. */
typedef struct conv_part {
  cpu_gemm g;
  bool exchanged;
} conv_part;

/* What the routine runs: copies of input and kernel where they are needed, then one product after the other. A part
 * writes other outputs than the rest, so their order doesn't matter to the bits. */
typedef struct conv_own {
  uint32_t n_parts;
  conv_part *parts;
  bool padded;
  cpu_conv_pad pad;
  int64_t pad_at, kernel_at, kernel_count; /* places of the copies in scratch memory; kernel_at -1: no copy */
  base_dtype kernel_from, kernel_to;
} conv_own;

/* The routine. Scratch memory begins with what the products need, which is free again after each. */
static int conv_by_own(const cpu_routine_run *r) {
  const conv_own *c = r->data;
  rt_pool *pool = r->run->exe->pool;
  const void *operands[2] = {r->in[0], r->in[1]};
  char *scratch = r->scratch;
  /* The input first, converted on the way where the product wants another type. */
  if (c->padded) {
    cpu_conv_pad_run(&c->pad, pool, r->in[0], scratch + c->pad_at);
    operands[0] = scratch + c->pad_at;
  }
  if (c->kernel_at >= 0) {
    cpu_gemm_convert(pool, c->kernel_to, scratch + c->kernel_at, c->kernel_from, r->in[1], c->kernel_count);
    operands[1] = scratch + c->kernel_at;
  }
  for (uint32_t i = 0; i < c->n_parts; i++) {
    const conv_part *part = &c->parts[i];
    cpu_gemm_run(&part->g, pool, operands[part->exchanged], operands[!part->exchanged], r->out[0], scratch);
  }
  return 0;
}

/* For convolutions without spatial dimensions: plain products. */
static const ir_window conv_windowless = {.n = 0};

/* Reads sizes and strides from op by role, so that nothing after this asks how dimensions are numbered. Nothing is
 * checked: conv_is_sound does that. */
static void conv_of(const ir_op *op, cpu_conv *c) {
  assert(ir_get_conv_dims(op) != NULL);
  const ir_type *x = ir_operand_type(op, 0), *kernel = ir_operand_type(op, 1), *r = op->type;
  const ir_conv_dims *n = ir_get_conv_dims(op);
  int64_t in[IR_MAX_RANK], k[IR_MAX_RANK], out[IR_MAX_RANK];
  interp_strides(x->rank, x->dims, in);
  interp_strides(kernel->rank, kernel->dims, k);
  interp_strides(r->rank, r->dims, out);
  /* Without a window there are no spatial dimensions, or all of their defaults. */
  *c = (cpu_conv){.window = ir_get_window(op) ? ir_get_window(op) : &conv_windowless, .n = n->n_spatial};
  c->in_type = (base_dtype)x->dtype;
  c->kernel_type = (base_dtype)kernel->dtype;
  c->out_type = (base_dtype)r->dtype;
  for (uint32_t d = 0; d < c->n; d++) {
    c->in_size[d] = x->dims[n->input_spatial[d]];
    c->in_stride[d] = in[n->input_spatial[d]];
    c->kernel_size[d] = kernel->dims[n->kernel_spatial[d]];
    c->kernel_stride[d] = k[n->kernel_spatial[d]];
    c->out_size[d] = r->dims[n->output_spatial[d]];
    c->out_stride[d] = out[n->output_spatial[d]];
  }
  c->feature_groups = ir_get_int(op, IR_ATTR_FEATURE_GROUP_COUNT, 1);
  c->batch_groups = ir_get_int(op, IR_ATTR_BATCH_GROUP_COUNT, 1);
  c->batch = x->dims[n->input_batch] / c->batch_groups;
  c->features = kernel->dims[n->kernel_input_feature];
  c->outputs = kernel->dims[n->kernel_output_feature] / (c->feature_groups * c->batch_groups);
  c->in_batch = in[n->input_batch];
  c->in_feature = in[n->input_feature];
  c->kernel_in = k[n->kernel_input_feature];
  c->kernel_out = k[n->kernel_output_feature];
  c->out_batch = out[n->output_batch];
  c->out_feature = out[n->output_feature];
}

/* What the interpreter would refuse is left to it. */
static bool conv_is_sound(const ir_op *op, const cpu_conv *c) {
  const ir_type *x = ir_operand_type(op, 0), *kernel = ir_operand_type(op, 1);
  const ir_conv_dims *n = ir_get_conv_dims(op);
  if (c->window->n != c->n || c->feature_groups < 1 || c->batch_groups < 1) return false;
  if (c->feature_groups > 1 && c->batch_groups > 1) return false;
  for (uint32_t d = 0; d < c->n; d++)
    if (c->kernel_size[d] != c->window->v[d].size ||
        c->out_size[d] != interp_window_count(&c->window->v[d], c->in_size[d]))
      return false;
  return x->dims[n->input_feature] == c->features * c->feature_groups &&
         kernel->dims[n->kernel_output_feature] % (c->feature_groups * c->batch_groups) == 0 &&
         x->dims[n->input_batch] % c->batch_groups == 0;
}

/* What a product takes of a spatial dimension: outputs, elements of the window, and the elements of the copied input
 * that they meet (in_first for the first of both, in_step further for each output, k_in for each window element). */
typedef struct conv_axis {
  int64_t out_first, out_step, out_n, k_first, k_step, k_n, in_first, in_step, k_in;
} conv_axis;

/* The greatest common divisor. */
static int64_t conv_common(int64_t a, int64_t b) {
  while (b) {
    int64_t t = a % b;
    a = b;
    b = t;
  }
  return a;
}

/* Every base_dilation-th output meets the same elements of the window, without holes: a product for each phase. */
static bool conv_has_phases(const ir_window_dim *w) {
  return w->base_dilation > 1 && w->stride == 1 && conv_common(w->window_dilation, w->base_dilation) == 1;
}

/* How many of n things remain where every step-th is taken, from the first on. */
static int64_t conv_parts(int64_t n, int64_t step) {
  assert(step > 0);
  return n <= 0 ? 0 : (n - 1) / step + 1;
}

/* in_first is still an element of the input: negative in the padding. What the outputs phase, phase + base_dilation,
 * ... of spatial dimension d meet: window elements that are base_dilation apart too, from the first that falls on an
 * element instead of a hole. It exists, as the two dilations have no common divisor. */
static conv_axis conv_phase(const cpu_conv *c, uint32_t d, int64_t phase) {
  const ir_window_dim *w = &c->window->v[d];
  int64_t b = w->base_dilation;
  conv_axis x = {.out_first = phase, .out_step = b, .k_step = b, .in_step = 1, .k_in = w->window_dilation};
  /* The first element of the window that an element of the input stands under, not a hole. */
  while (x.k_first < b && (phase + x.k_first * w->window_dilation - w->padding_low) % b != 0) x.k_first++;
  assert(x.k_first < b);
  x.out_n = conv_parts(c->out_size[d] - phase, b);
  x.k_n = conv_parts(w->size - x.k_first, b);
  x.in_first = (phase + x.k_first * w->window_dilation - w->padding_low) / b;
  return x;
}

/* The copy that makes windows plain strides. false where none is needed: no padding is ever read, no hole is there.
 * Linear in the dimensions. */
static bool conv_needs_pad(const cpu_conv *c) {
  for (uint32_t d = 0; d < c->n; d++) {
    const ir_window_dim *w = &c->window->v[d];
    int64_t reach = (c->out_size[d] - 1) * w->stride + (w->size - 1) * w->window_dilation - w->padding_low;
    if (w->base_dilation != 1 || w->padding_low != 0 || reach >= c->in_size[d]) return true;
  }
  return false;
}

/* Dimension `at` of the copy, which is spatial dimension d. Of phases: what any of them reaches, without holes. */
static void conv_pad_dim(const cpu_conv *c, cpu_conv_pad *p, uint32_t at, uint32_t d, bool phases) {
  const ir_window_dim *w = &c->window->v[d];
  p->step[at] = w->base_dilation;
  p->low[at] = w->padding_low;
  p->out[at] = c->out_size[d] > 0 ? (c->out_size[d] - 1) * w->stride + (w->size - 1) * w->window_dilation + 1 : 0;
  if (!phases || !conv_has_phases(w)) return;
  /* All phases read one copy: from the lowest element that any of them reaches to the highest. */
  int64_t low = 0, high = 0;
  for (int64_t i = 0; i < w->base_dilation; i++) {
    conv_axis x = conv_phase(c, d, i);
    if (x.out_n == 0 || x.k_n == 0) continue;
    int64_t last = x.in_first + x.out_n - 1 + (x.k_n - 1) * x.k_in;
    low = x.in_first < low ? x.in_first : low;
    high = last >= high ? last + 1 : high;
  }
  p->step[at] = 1;
  p->low[at] = -low;
  p->out[at] = high - low;
}

/* Of an input that is not moved, only converted, the copy has all elements in their places: also those after the last
 * window. false where sizes are too large to count. `to`: the type of the copy's elements. Describes the copy only:
 * cpu_conv_pad_run makes it. */
static bool conv_make_pad(const ir_op *op, const cpu_conv *c, base_dtype to, bool moved, bool phases, cpu_conv_pad *p) {
  const ir_type *x = ir_operand_type(op, 0);
  const ir_conv_dims *n = ir_get_conv_dims(op);
  p->rank = x->rank;
  p->from = c->in_type;
  p->to = to;
  interp_strides(x->rank, x->dims, p->in_stride);
  for (uint32_t d = 0; d < x->rank; d++) {
    p->in[d] = p->out[d] = x->dims[d];
    p->step[d] = 1;
  }
  for (uint32_t d = 0; moved && d < c->n; d++) conv_pad_dim(c, p, (uint32_t)n->input_spatial[d], d, phases);
  p->count = 1;
  for (uint32_t d = 0; d < x->rank; d++)
    if (!base_mul_i64(p->count, p->out[d], &p->count)) return false;
  interp_strides(x->rank, p->out, p->out_stride);
  return true;
}

/* A last dimension that is copied whole becomes one with the one before: rows are then longer. */
static void conv_merge_pad(cpu_conv_pad *p) {
  while (p->rank > 1) {
    uint32_t last = p->rank - 1, before = last - 1;
    int64_t n = p->in[last];
    if (p->step[before] != 1 || p->step[last] != 1 || p->low[last] != 0 || p->out[last] != n || n == 0) return;
    p->in[before] *= n;
    p->out[before] *= n;
    p->low[before] *= n;
    p->in_stride[before] = 1;
    p->rank--;
  }
}

/* Spatial dimension d of part number `part`, which goes down to the number in the dimensions before. low: the copy's.
 */
static conv_axis conv_axis_of(const cpu_conv *c, uint32_t d, bool phases, int64_t *part, int64_t low) {
  const ir_window_dim *w = &c->window->v[d];
  if (!phases || !conv_has_phases(w))
    return (conv_axis){.out_step = 1,
                       .out_n = c->out_size[d],
                       .k_step = 1,
                       .k_n = w->size,
                       .in_step = w->stride,
                       .k_in = w->window_dilation};
  conv_axis x = conv_phase(c, d, *part % w->base_dilation);
  *part /= w->base_dilation;
  x.in_first = x.out_n && x.k_n ? x.in_first + low : 0;
  return x;
}

/* The dimensions of a product, with these strides of the input or its copy. part: the number of the phase, or -1
 * where the convolution is one product. */
static void conv_dims(const ir_op *op, const cpu_conv *c, const int64_t *strides, const cpu_conv_pad *pad, int64_t part,
                      cpu_gemm *g) {
  const ir_conv_dims *n = ir_get_conv_dims(op);
  int64_t batch = strides[n->input_batch], feature = strides[n->input_feature], b = c->outputs * c->kernel_out;
  bool by_batch = c->batch_groups > 1;
  cpu_gemm_add(&g->batch, by_batch ? c->batch_groups : c->feature_groups,
               by_batch ? c->batch * batch : c->features * feature, b, c->outputs * c->out_feature);
  cpu_gemm_add(&g->m, c->batch, batch, 0, c->out_batch);
  for (uint32_t d = 0; d < c->n; d++) {
    const ir_window_dim *w = &c->window->v[d];
    int64_t in = strides[n->input_spatial[d]], kernel = c->kernel_stride[d];
    conv_axis x = conv_axis_of(c, d, part >= 0, &part, pad->low[n->input_spatial[d]]);
    cpu_gemm_add(&g->m, x.out_n, in * x.in_step, 0, c->out_stride[d] * x.out_step);
    cpu_gemm_add(&g->k, x.k_n, in * x.k_in, x.k_step * (w->reversal ? -kernel : kernel), 0);
    g->a_at += x.in_first * in;
    g->b_at += (w->reversal ? w->size - 1 - x.k_first : x.k_first) * kernel;
    g->c_at += x.out_first * c->out_stride[d];
  }
  cpu_gemm_add(&g->k, c->features, feature, c->kernel_in, 0);
  cpu_gemm_add(&g->n, c->outputs, 0, c->kernel_out, c->out_feature);
}

/* Takes memory for `count` elements at the end of the scratch memory: *at says where. false where that is too much to
 * count. */
static bool conv_take(int64_t *scratch, int64_t count, base_dtype t, int64_t *at) {
  assert(*scratch >= 0);
  int64_t bytes = 0;
  *at = *scratch = (*scratch + PLAN_ALIGN - 1) & ~(int64_t)(PLAN_ALIGN - 1);
  return base_mul_i64(count, (int64_t)base_dtype_bytes(t), &bytes) && base_add_i64(*scratch, bytes, scratch);
}

/* Products that the convolution is made of where the input has holes; 1: it is not to be cut into phases. */
static uint32_t conv_count_parts(const cpu_conv *c) {
  int64_t n = 1;
  for (uint32_t d = 0; d < c->n; d++) {
    const ir_window_dim *w = &c->window->v[d];
    if (!conv_has_phases(w)) continue;
    if (w->base_dilation > CONV_MAX_PARTS / n) return 1;
    n *= w->base_dilation;
  }
  return (uint32_t)n;
}

/* The products, and the copy of the input that they read. The copy is described twice: its strides are needed before
 * the products are known, its type only after. Scratch memory is the most that one of them needs. false where a
 * product can't be made, or sizes are too large. */
static bool conv_plan_parts(const ir_op *op, const cpu_conv *c, conv_own *own, int64_t *scratch) {
  assert(own->n_parts >= 1 && own->n_parts <= CONV_MAX_PARTS);
  int64_t strides[IR_MAX_RANK];
  bool phases = own->n_parts > 1, moved = phases || conv_needs_pad(c);
  base_dtype to = c->in_type;
  interp_strides(ir_operand_type(op, 0)->rank, ir_operand_type(op, 0)->dims, strides);
  if (moved && !conv_make_pad(op, c, to, moved, phases, &own->pad)) return false;
  for (uint32_t i = 0; i < own->n_parts; i++) {
    conv_part *part = &own->parts[i];
    conv_dims(op, c, moved ? own->pad.out_stride : strides, &own->pad, phases ? (int64_t)i : -1, &part->g);
    cpu_gemm_types(&part->g, c->in_type, c->kernel_type, c->out_type, !phases);
    to = (base_dtype)part->g.a_type;
    own->kernel_to = (base_dtype)part->g.b_type;
    if (!cpu_gemm_prepare(&part->g, &part->exchanged)) return false;
    if (part->g.scratch_bytes > *scratch) *scratch = part->g.scratch_bytes;
  }
  own->padded = moved || to != c->in_type;
  return !own->padded || conv_make_pad(op, c, to, moved, phases, &own->pad);
}

/* All that the routine needs to know; false where the interpreter is to evaluate the op: a copy would be mostly
 * holes, or too large to count. */
static bool conv_plan_own(const ir_op *op, const cpu_conv *c, conv_own *own, int64_t *scratch) {
  if (!conv_plan_parts(op, c, own, scratch)) return false;
  own->kernel_from = c->kernel_type;
  own->kernel_count = ir_operand_type(op, 1)->count;
  own->kernel_at = -1;
  /* A copy of mostly zeros takes longer than the interpreter does without it. */
  if (own->padded && own->pad.count / CONV_MOST_HOLES > ir_operand_type(op, 0)->count + op->type->count + CONV_FEW)
    return false;
  if (own->padded) conv_merge_pad(&own->pad);
  if (own->padded && !conv_take(scratch, own->pad.count, own->pad.to, &own->pad_at)) return false;
  return own->kernel_from == own->kernel_to || conv_take(scratch, own->kernel_count, own->kernel_to, &own->kernel_at);
}

/* Convolutions that none of the ways is for are left to the interpreter: x->code stays NULL. */
int cpu_prepare_convolution(cpu_prepare_run *x) {
  cpu_conv c;
  if (ir_operand_type(x->op, 0)->rank > GEMM_MAX_DIMS - 2) return 0;
  conv_of(x->op, &c);
  if (!conv_is_sound(x->op, &c)) return 0;
  TRY(cpu_conv_prepare_depthwise(x, &c));
  if (!x->code) TRY(cpu_conv_prepare_direct(x, &c));
  if (x->code) return 0;
  conv_own *own = BASE_NEW(x->arena, conv_own);
  /* Small results are one product: several would cost more to begin than to run. */
  if (own) own->n_parts = x->op->type->count < CONV_FEW / 64 ? 1 : conv_count_parts(&c);
  if (own) own->parts = base_arena_zalloc(x->arena, own->n_parts * sizeof *own->parts);
  if (!own || !own->parts) return base_oom(x->err, "a convolution");
  int64_t scratch = 0;
  if (!conv_plan_own(x->op, &c, own, &scratch)) return 0;
  x->out->name = "convolution";
  x->out->work = (uint64_t)x->op->type->count * (uint64_t)own->parts[0].g.k.count / 4;
  x->out->scratch_bytes = scratch;
  x->data = own;
  x->out->stoppable = true;
  x->code = conv_by_own;
  return 0;
}
