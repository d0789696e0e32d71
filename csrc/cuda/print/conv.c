/* Convolutions, directly: a thread for each element of the result, which goes through the window and the features. */
#include "../../interp/algorithm/matmul.h"
#include "routine.h"

typedef struct cu_conv {
  const ir_type *input, *kernel;
  const ir_conv_dims *dims;
  const ir_window *window;
  int64_t feature_groups, batch_groups;
  int64_t in[IR_MAX_RANK], of_kernel[IR_MAX_RANK]; /* strides */
} cu_conv;

static int64_t cu_conv_number(const ir_op *op, ir_attr_key key) {
  const ir_attr *a = ir_attr_find(op, key);
  return a ? a->v.i : 1;
}

/* false where the window is not the one that the dimensions ask for. */
static bool cu_conv_make(const ir_op *op, cu_conv *x) {
  const ir_attr *dims = ir_attr_find(op, IR_ATTR_DIM_LABELS), *window = ir_attr_find(op, IR_ATTR_WINDOW);
  if (op->n_operands != 2 || !dims) return false;
  *x = (cu_conv){.input = ir_operand_type(op, 0), .kernel = ir_operand_type(op, 1), .dims = dims->v.conv};
  x->window = window ? window->v.window : NULL;
  x->feature_groups = cu_conv_number(op, IR_ATTR_FEATURE_GROUP_COUNT);
  x->batch_groups = cu_conv_number(op, IR_ATTR_BATCH_GROUP_COUNT);
  cuda_routine_strides(x->input, x->in);
  cuda_routine_strides(x->kernel, x->of_kernel);
  return x->dims->n_spatial == 0 || (x->window && x->window->n == x->dims->n_spatial);
}

/* One loop for each dimension of the window, and where its element lies. Outside of the input there is nothing. */
static void cu_conv_put_window(cuda_routine *r, const cu_conv *x) {
  for (uint32_t s = 0; s < x->dims->n_spatial; s++) {
    const ir_window_dim *w = &x->window->v[s];
    unsigned d = (unsigned)s;
    base_putf(r->print.out, "  for (idx w%u = 0; w%u < %lld; w%u++) {\n", d, d, (long long)w->size, d);
    base_putf(r->print.out, "  const idx p%u = o%u * %lld + w%u * %lld - (idx)%lld;\n", d,
              (unsigned)x->dims->output_spatial[s], (long long)w->stride, d, (long long)w->window_dilation,
              (long long)w->padding_low);
    base_putf(r->print.out, "  if (p%u < 0 || p%u %% %lld != 0 || p%u / %lld >= %lld) continue;\n", d, d,
              (long long)w->base_dilation, d, (long long)w->base_dilation,
              (long long)x->input->dims[x->dims->input_spatial[s]]);
  }
}

static void cu_conv_put_places(cuda_routine *r, const cu_conv *x) {
  const ir_conv_dims *d = x->dims;
  base_text *out = r->print.out;
  base_putf(out, "  const idx from = batch * %lld + (group * %lld + feature) * %lld", (long long)x->in[d->input_batch],
            (long long)x->kernel->dims[d->kernel_input_feature], (long long)x->in[d->input_feature]);
  for (uint32_t s = 0; s < d->n_spatial; s++)
    base_putf(out, " + p%u / %lld * %lld", (unsigned)s, (long long)x->window->v[s].base_dilation,
              (long long)x->in[d->input_spatial[s]]);
  base_putf(out, ";\n  const idx with = feature * %lld + o%u * %lld", (long long)x->of_kernel[d->kernel_input_feature],
            (unsigned)d->output_feature, (long long)x->of_kernel[d->kernel_output_feature]);
  for (uint32_t s = 0; s < d->n_spatial; s++) {
    const ir_window_dim *w = &x->window->v[s];
    long long stride = (long long)x->of_kernel[d->kernel_spatial[s]];
    if (w->reversal)
      base_putf(out, " + (%lld - w%u) * %lld", (long long)w->size - 1, (unsigned)s, stride);
    else
      base_putf(out, " + w%u * %lld", (unsigned)s, stride);
  }
  BASE_PUT(out, ";\n");
}

static void cu_conv_put_sum(cuda_routine *r, const cu_conv *x, base_dtype t) {
  base_dtype a = (base_dtype)x->input->dtype, b = (base_dtype)x->kernel->dtype;
  const char *c = cuda_type(t);
  base_putf(r->print.out, "  const %s left = ((const %s *)in0)[from];\n", cuda_type(a), cuda_type(a));
  base_putf(r->print.out, "  const %s right = ((const %s *)in1)[with];\n", cuda_type(b), cuda_type(b));
  base_putf(r->print.out, "  const %s x = ", c);
  cuda_print_convert(&r->print, t, a, "left");
  base_putf(r->print.out, ";\n  const %s y = ", c);
  cuda_print_convert(&r->print, t, b, "right");
  base_putf(r->print.out, ";\n  const %s product = ", c);
  cuda_print_combine(&r->print, SCALAR_MULTIPLY, t, "x", "y");
  BASE_PUT(r->print.out, ";\n  sum = ");
  cuda_print_combine(&r->print, SCALAR_ADD, t, "sum", "product");
  BASE_PUT(r->print.out, ";\n");
}

bool cuda_print_convolution(cuda_routine *r) {
  cu_conv x;
  base_dtype result = (base_dtype)r->op->type->dtype;
  if (!cu_conv_make(r->op, &x) || x.input->count == 0 || x.kernel->count == 0) return false;
  const ir_conv_dims *d = x.dims;
  long long features = (long long)r->op->type->dims[d->output_feature];
  long long batches = (long long)x.input->dims[d->input_batch] / x.batch_groups;
  base_dtype t = cuda_sum_type(interp_product_type((base_dtype)x.input->dtype, (base_dtype)x.kernel->dtype, result));
  if (base_dtype_is_complex(t)) cuda_print_needs(&r->print, cuda_type(t));
  cuda_routine_open(r, 2, 1, r->op->type->count);
  cuda_routine_indexes(r, r->op->type, "o");
  base_putf(r->print.out, "  const idx batch = o%u + o%u / %lld * %lld;\n", (unsigned)d->output_batch,
            (unsigned)d->output_feature, features / x.batch_groups, batches);
  base_putf(r->print.out, "  const idx group = o%u / %lld;\n  %s sum = {};\n", (unsigned)d->output_feature,
            features / x.feature_groups, cuda_type(t));
  base_putf(r->print.out, "  for (idx feature = 0; feature < %lld; feature++) {\n",
            (long long)x.kernel->dims[d->kernel_input_feature]);
  cu_conv_put_window(r, &x);
  cu_conv_put_places(r, &x);
  cu_conv_put_sum(r, &x, t);
  for (uint32_t s = 0; s <= d->n_spatial; s++) BASE_PUT(r->print.out, "  }\n");
  base_putf(r->print.out, "  ((%s *)out0)[n] = ", cuda_type(result));
  cuda_print_convert(&r->print, result, t, "sum");
  BASE_PUT(r->print.out, ";\n");
  cuda_routine_close(r, "a thread for each element");
  return true;
}
