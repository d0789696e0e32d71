/* Convolutions as matrix products: rows are (batch, output position), k is (window position, input feature), columns
 * are output features; groups are batches of products. */
#include "conv.h"

#include "../interp/placement.h"

/* A copy may be so many times larger than what is read and written; the interpreter does without it. */
enum { CONV_MOST_HOLES = 32, CONV_FEW = 1 << 16 };

typedef struct conv_own {
  cpu_gemm g;
  bool exchanged, padded;
  cpu_conv_pad pad;
  int64_t pad_at, kernel_at, kernel_count; /* places of the copies in scratch memory; kernel_at -1: no copy */
  base_dtype kernel_from, kernel_to;
} conv_own;

static int conv_by_own(const cpu_routine_run *r) {
  const conv_own *c = r->data;
  base_pool *pool = r->run->exe->pool;
  const void *operands[2] = {r->in[0], r->in[1]};
  char *scratch = r->scratch;
  if (c->padded) {
    cpu_conv_pad_run(&c->pad, pool, r->in[0], scratch + c->pad_at);
    operands[0] = scratch + c->pad_at;
  }
  if (c->kernel_at >= 0) {
    cpu_gemm_convert(pool, c->kernel_to, scratch + c->kernel_at, c->kernel_from, r->in[1], c->kernel_count);
    operands[1] = scratch + c->kernel_at;
  }
  cpu_gemm_run(&c->g, pool, operands[c->exchanged], operands[!c->exchanged], r->out[0], scratch);
  return 0;
}

static const ir_window conv_windowless = {.n = 0};

static void conv_of(const ir_op *op, cpu_conv *c) {
  const ir_type *x = ir_operand_type(op, 0), *kernel = ir_operand_type(op, 1), *r = op->type;
  const ir_conv_dims *n = ir_get_conv_dims(op);
  int64_t in[IR_MAX_RANK], k[IR_MAX_RANK], out[IR_MAX_RANK];
  interp_strides(x->rank, x->dims, in);
  interp_strides(kernel->rank, kernel->dims, k);
  interp_strides(r->rank, r->dims, out);
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

/* The copy that makes windows plain strides. false where none is needed: no padding is ever read, no hole is there. */
static bool conv_needs_pad(const cpu_conv *c) {
  for (uint32_t d = 0; d < c->n; d++) {
    const ir_window_dim *w = &c->window->v[d];
    int64_t reach = (c->out_size[d] - 1) * w->stride + (w->size - 1) * w->window_dilation - w->padding_low;
    if (w->base_dilation != 1 || w->padding_low != 0 || reach >= c->in_size[d]) return true;
  }
  return false;
}

static void conv_pad_dim(cpu_conv_pad *p, uint32_t at, const ir_window_dim *w, int64_t out) {
  p->step[at] = w->base_dilation;
  p->low[at] = w->padding_low;
  p->out[at] = out > 0 && w->size > 0 ? (out - 1) * w->stride + (w->size - 1) * w->window_dilation + 1 : 0;
}

/* false where sizes are too large to count. */
static bool conv_make_pad(const ir_op *op, const cpu_conv *c, base_dtype to, cpu_conv_pad *p) {
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
  for (uint32_t d = 0; d < c->n; d++) conv_pad_dim(p, (uint32_t)n->input_spatial[d], &c->window->v[d], c->out_size[d]);
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

/* The dimensions of the product, with these strides of the input or its copy. */
static void conv_dims(const ir_op *op, const cpu_conv *c, const int64_t *strides, cpu_gemm *g) {
  const ir_conv_dims *n = ir_get_conv_dims(op);
  int64_t batch = strides[n->input_batch], feature = strides[n->input_feature];
  if (c->batch_groups > 1)
    cpu_gemm_add(&g->batch, c->batch_groups, c->batch * batch, c->outputs * c->kernel_out, c->outputs * c->out_feature);
  else
    cpu_gemm_add(&g->batch, c->feature_groups, c->features * feature, c->outputs * c->kernel_out,
                 c->outputs * c->out_feature);
  cpu_gemm_add(&g->m, c->batch, batch, 0, c->out_batch);
  for (uint32_t d = 0; d < c->n; d++) {
    const ir_window_dim *w = &c->window->v[d];
    int64_t in = strides[n->input_spatial[d]], kernel = c->kernel_stride[d];
    cpu_gemm_add(&g->m, c->out_size[d], in * w->stride, 0, c->out_stride[d]);
    cpu_gemm_add(&g->k, w->size, in * w->window_dilation, w->reversal ? -kernel : kernel, 0);
    if (w->reversal && w->size > 0) g->b_at += (w->size - 1) * kernel;
  }
  cpu_gemm_add(&g->k, c->features, feature, c->kernel_in, 0);
  cpu_gemm_add(&g->n, c->outputs, 0, c->kernel_out, c->out_feature);
}

static bool conv_take(int64_t *scratch, int64_t count, base_dtype t, int64_t *at) {
  int64_t bytes = 0;
  *at = *scratch = (*scratch + PLAN_ALIGN - 1) & ~(int64_t)(PLAN_ALIGN - 1);
  return base_mul_i64(count, (int64_t)base_dtype_bytes(t), &bytes) && base_add_i64(*scratch, bytes, scratch);
}

static bool conv_plan_own(const ir_op *op, const cpu_conv *c, conv_own *own, int64_t *scratch) {
  cpu_gemm *g = &own->g;
  int64_t strides[IR_MAX_RANK];
  bool moved = conv_needs_pad(c);
  interp_strides(ir_operand_type(op, 0)->rank, ir_operand_type(op, 0)->dims, strides);
  if (moved && !conv_make_pad(op, c, c->in_type, &own->pad)) return false;
  conv_dims(op, c, moved ? own->pad.out_stride : strides, g);
  cpu_gemm_types(g, c->in_type, c->kernel_type, c->out_type);
  own->padded = moved || (base_dtype)g->a_type != c->in_type;
  own->kernel_from = c->kernel_type;
  own->kernel_to = (base_dtype)g->b_type;
  own->kernel_count = ir_operand_type(op, 1)->count;
  own->kernel_at = -1;
  if (own->padded && !conv_make_pad(op, c, (base_dtype)g->a_type, &own->pad)) return false;
  if (own->padded && own->pad.count / CONV_MOST_HOLES > ir_operand_type(op, 0)->count + op->type->count + CONV_FEW)
    return false;
  if (own->padded) conv_merge_pad(&own->pad);
  if (!cpu_gemm_prepare(g, &own->exchanged)) return false;
  *scratch = g->scratch_bytes;
  if (own->padded && !conv_take(scratch, own->pad.count, own->pad.to, &own->pad_at)) return false;
  return own->kernel_from == own->kernel_to || conv_take(scratch, own->kernel_count, own->kernel_to, &own->kernel_at);
}

int cpu_prepare_convolution(cpu_prepare_run *x) {
  cpu_conv c;
  if (ir_operand_type(x->op, 0)->rank > GEMM_MAX_DIMS - 2) return 0;
  conv_of(x->op, &c);
  if (!conv_is_sound(x->op, &c)) return 0;
  TRY(cpu_conv_prepare_depthwise(x, &c));
  if (x->code) return 0;
  conv_own *own = BASE_NEW(x->arena, conv_own);
  if (!own) return base_oom(x->err, "a convolution");
  int64_t scratch = 0;
  if (!conv_plan_own(x->op, &c, own, &scratch)) return 0;
  const cpu_gemm *g = &own->g;
  x->out->name = "convolution";
  x->out->work = (uint64_t)x->op->type->count * (uint64_t)g->k.count / 4;
  x->out->scratch_bytes = scratch;
  x->out->data = own;
  x->code = conv_by_own;
  return 0;
}
