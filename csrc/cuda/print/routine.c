/* Which printer has an op, and what they share. */
#include "routine.h"

static cuda_routine_printer *const cu_routine_printers[IR_OP_COUNT] = {
    [IR_OP_TRANSPOSE] = cuda_print_move,
    [IR_OP_REVERSE] = cuda_print_move,
    [IR_OP_SLICE] = cuda_print_move,
    [IR_OP_BROADCAST] = cuda_print_move,
    [IR_OP_COPY] = cuda_print_move,
    [IR_OP_BITCAST_CONVERT] = cuda_print_bitcast,
    [IR_OP_CONCATENATE] = cuda_print_concatenate,
    [IR_OP_DYNAMIC_SLICE] = cuda_print_dynamic_slice,
    [IR_OP_REDUCE] = cuda_print_reduce,
    [IR_OP_REDUCE_WINDOW] = cuda_print_reduce_window,
    [IR_OP_CONVOLUTION] = cuda_print_convolution,
    [IR_OP_DOT] = cuda_print_dot,
    [IR_OP_FUSION] = cuda_print_fusion,
    [IR_OP_GATHER] = cuda_print_gather,
    [IR_OP_SCATTER] = cuda_print_scatter,
    [IR_OP_SORT] = cuda_print_sort,
    [IR_OP_TOPK] = cuda_print_topk,
    [IR_OP_CHOLESKY] = cuda_print_cholesky,
    [IR_OP_TRIANGULAR_SOLVE] = cuda_print_triangular_solve,
    [IR_OP_FFT] = cuda_print_fft,
    [IR_OP_RNG_BIT_GENERATOR] = cuda_print_rng_bits,
    [IR_OP_SELECT_AND_SCATTER] = cuda_print_select_and_scatter,
    [IR_OP_PAD] = cuda_print_pad,
    [IR_OP_DYNAMIC_UPDATE_SLICE] = cuda_print_dynamic_update_slice,
};

void cuda_routine_strides(const ir_type *t, int64_t *strides) {
  int64_t stride = 1;
  for (uint32_t d = t->rank; d-- > 0; stride *= t->dims[d]) strides[d] = stride;
}

void cuda_routine_indexes(cuda_routine *r, const ir_type *t, const char *name) {
  int64_t strides[IR_MAX_RANK];
  cuda_routine_strides(t, strides);
  for (uint32_t d = 0; d < t->rank; d++)
    base_putf(r->print.out, "  const idx %s%u = n / %lld %% %lld;\n", name, (unsigned)d, (long long)strides[d],
              (long long)t->dims[d]);
}

void cuda_routine_head(cuda_routine *r, uint32_t n_in, uint32_t n_out) {
  base_putf(r->print.out, "\nextern \"C\" __global__ void __launch_bounds__(%u", (unsigned)r->launch->block);
  if (r->blocks)
    base_putf(r->print.out, ", " CUDA_SOURCE_BLOCKS " ? %u : %u", (unsigned)(r->blocks + 1) / 2, (unsigned)r->blocks);
  else
    BASE_PUT(r->print.out, ", " CUDA_SOURCE_BLOCKS);
  base_putf(r->print.out, ") k%u(", (unsigned)r->launch->number);
  for (uint32_t i = 0; i < n_in; i++) base_putf(r->print.out, "%sconst char *in%u", i ? ", " : "", (unsigned)i);
  for (uint32_t i = 0; i < n_out; i++) base_putf(r->print.out, "%schar *out%u", n_in + i ? ", " : "", (unsigned)i);
  if (r->launch->scratch) BASE_PUT(r->print.out, ", char *scratch");
  if (r->launch->rounds) BASE_PUT(r->print.out, ", int round");
  BASE_PUT(r->print.out, ") {\n  typedef int64_t idx;\n");
}

void cuda_routine_open(cuda_routine *r, uint32_t n_in, uint32_t n_out, int64_t count) {
  assert(count > 0 && count < INT64_MAX - CUDA_BLOCK_THREADS);
  cuda_routine_head(r, n_in, n_out);
  base_putf(r->print.out, "  const idx n = (idx)blockIdx.x * %d + threadIdx.x;\n  if (n >= %lld) return;\n",
            CUDA_BLOCK_THREADS, (long long)count);
  r->launch->grid = (count + CUDA_BLOCK_THREADS - 1) / CUDA_BLOCK_THREADS;
}

void cuda_routine_close(cuda_routine *r, const char *how) {
  BASE_PUT(r->print.out, "}\n");
  r->launch->how = how;
  r->source->n_kernels++;
}

bool cuda_routine_kernel(cuda_routine *r, const kernel *k) {
  return k && cuda_print_kernel(r->source, k, r->launch);
}

/* An array of a known size, or several. */
static bool cu_routine_gives_arrays(const ir_type *t) {
  if (!ir_is_tuple(t)) return ir_is_tensor(t) && !t->has_dynamic && t->count > 0;
  bool plain = t->n_elements > 0;
  for (uint32_t i = 0; i < t->n_elements && plain; i++)
    plain = ir_is_tensor(t->elements[i]) && !t->elements[i]->has_dynamic && t->elements[i]->count > 0;
  return plain;
}

static bool cu_routine_is_plain(const ir_op *op) {
  bool plain = cu_routine_gives_arrays(op->type);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_type *t = ir_operand_type(op, i);
    plain = plain && ir_is_tensor(t) && !t->has_dynamic;
  }
  return plain;
}

/* Without elements in the result there is nothing to do, but dimensions of none to divide by. */
bool cuda_print_routine(cuda_source *s, const ir_op *op, base_arena *scratch, cuda_launch *out) {
  cuda_routine r = {.source = s, .print = {.s = s, .out = &s->body}, .op = op, .scratch = scratch, .launch = out};
  size_t before = s->body.n;
  uint32_t kernels = s->n_kernels;
  *out = (cuda_launch){.number = s->n_kernels, .block = CUDA_BLOCK_THREADS, .how = "a thread for each element"};
  if (!cu_routine_printers[op->opcode] || !cu_routine_is_plain(op)) return false;
  bool printed = cu_routine_printers[op->opcode](&r) && !r.print.strange && out->grid < INT32_MAX;
  assert(!printed || s->n_kernels == kernels + 1);
  if (!printed) {
    s->body.n = before;
    s->n_kernels = kernels;
  }
  return printed;
}
