/* Throws random, mostly malformed ops at ir_infer: wrong operand counts and types, attributes missing or out of range,
 * sizes up to 2^63 - 1, computations that do not fit. Built with ASan and UBSan by test_fuzz_infer.py; finding nothing
 * is passing. Usage: fuzz_infer SEED ROUNDS. Prints how many ops got a type and how many an error. */
#include <stdio.h>
#include <stdlib.h>

#include "../../csrc/ir/infer/infer.h"

#define N_TYPES 48
#define N_COMPUTATIONS 12

static uint64_t state;

static uint64_t draw(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}
static uint32_t below(uint32_t n) {
  return (uint32_t)(draw() % n);
}

static int64_t draw_number(void) {
  static const int64_t extremes[] = {INT64_MAX, INT64_MIN, INT64_MIN + 1, INT64_MAX - 1, INT32_MAX, INT64_C(1) << 40,
                                     -1,        100};
  uint32_t k = below(24);
  return k < 8 ? extremes[k] : (int64_t)below(5) - (k == 9);
}

static const ir_type *draw_tensor(ir_module *m) {
  int64_t dims[8];
  bool dynamic[8];
  uint32_t rank = below(6) ? below(5) : below(8);
  for (uint32_t i = 0; i < rank; i++) {
    dims[i] = below(12) ? below(5) : draw_number();
    if (dims[i] < 0) dims[i] = IR_UNBOUNDED;
    dynamic[i] = dims[i] == IR_UNBOUNDED || below(8) == 0;
  }
  base_dtype dtype = (base_dtype)(below(3) ? (below(2) ? XLAC_F32 : XLAC_S32) : 1 + below(BASE_DTYPE_COUNT - 1));
  const ir_layout *layout = below(4) ? ir_layout_default(m, rank) : NULL;
  if (layout && rank > 1 && below(3) == 0) {
    int64_t order[8];
    for (uint32_t i = 0; i < rank; i++) order[i] = draw_number();
    ir_layout odd = {
        .rank = below(2) ? rank : rank - 1, .minor_to_major = order, .tail_padding = 1, .element_bits = below(2) * 4};
    layout = ir_layout_intern(m, &odd);
  }
  const ir_type *t = ir_tensor(m, dtype, rank, dims, dynamic, layout, NULL);
  return t ? t : ir_scalar(m, XLAC_F32);
}

static const ir_type *draw_type(ir_module *m, const ir_type *const *pool, uint32_t n) {
  const ir_type *few[4];
  uint32_t k = below(10);
  if (k == 0) return ir_token(m);
  if (k == 1) return ir_opaque(m);
  if (k == 2) return ir_buffer(m, draw_tensor(m));
  if (k > 4 || n == 0) return draw_tensor(m);
  uint32_t arity = below(5);
  for (uint32_t i = 0; i < arity; i++) few[i] = pool[below(n)];
  const ir_type *t = NULL;
  return ir_infer_tuple_of(m, arity, few, &t, NULL) == 0 ? t : draw_tensor(m);
}

static const ir_ints *draw_ints(ir_module *m) {
  int64_t v[6];
  uint32_t n = below(5);
  for (uint32_t i = 0; i < n; i++) v[i] = below(4) ? (int64_t)i : draw_number();
  return ir_ints_make(m, n, v);
}

static const ir_window *draw_window(ir_module *m) {
  uint32_t n = below(5);
  ir_window *w = base_arena_zalloc(&m->arena, sizeof *w + n * sizeof w->v[0]);
  w->n = n;
  for (uint32_t i = 0; i < n; i++) {
    w->v[i] = (ir_window_dim){1 + below(3), 1, 0, 0, 1, 1, false};
    if (below(2))
      w->v[i] = (ir_window_dim){draw_number(), 1 + below(3), draw_number(), draw_number(), 1, draw_number(), true};
  }
  return w;
}

static const ir_conv_dims *draw_conv(ir_module *m) {
  ir_conv_dims *c = BASE_NEW(&m->arena, ir_conv_dims);
  c->n_spatial = below(4);
  int64_t *v = BASE_ARRAY(&m->arena, int64_t, 3 * c->n_spatial + 1);
  for (uint32_t i = 0; i < 3 * c->n_spatial; i++) v[i] = below(9) ? 1 + i % c->n_spatial : draw_number();
  c->input_spatial = v;
  c->kernel_spatial = v + c->n_spatial;
  c->output_spatial = v + 2 * c->n_spatial;
  c->input_feature = c->output_feature = c->kernel_output_feature = c->n_spatial + 1;
  if (below(6) == 0) c->input_batch = draw_number();
  return c;
}

static ir_attr draw_attr(ir_module *m, ir_attr_key key) {
  static const char *const words[] = {"RFFT", "IRFFT", "FFT", "TRANSPOSE", "NO_TRANSPOSE", "odd", ""};
  ir_attr a = ir_attr_make(key);
  uint32_t n = below(5);
  switch (a.kind) {
    case IR_KIND_BOOL:
      a.v.b = below(2);
      break;
    case IR_KIND_INT:
      a.v.i = below(3) ? below(3) : draw_number();
      break;
    case IR_KIND_INTS:
      a.v.ints = draw_ints(m);
      break;
    case IR_KIND_NAME: {
      const char *w = words[below(7)];
      a.v.str = ir_intern(m, w, strlen(w));
      break;
    }
    case IR_KIND_WINDOW:
      a.v.window = draw_window(m);
      break;
    case IR_KIND_CONV_DIMS:
      a.v.conv = draw_conv(m);
      break;
    case IR_KIND_PADDING: {
      ir_padding *p = base_arena_zalloc(&m->arena, sizeof *p + n * sizeof p->v[0]);
      p->n = n;
      for (uint32_t i = 0; i < n; i++) p->v[i] = (ir_padding_dim){draw_number(), draw_number(), draw_number()};
      a.v.padding = p;
      break;
    }
    case IR_KIND_SLICE: {
      ir_slice *s = base_arena_zalloc(&m->arena, sizeof *s + n * sizeof s->v[0]);
      s->n = n;
      for (uint32_t i = 0; i < n; i++) s->v[i] = (ir_slice_dim){draw_number(), draw_number(), draw_number()};
      a.v.slice = s;
      break;
    }
    case IR_KIND_GROUPS: {
      ir_groups *g = BASE_NEW(&m->arena, ir_groups);
      g->iota = true;
      g->n_dims = below(3);
      int64_t *dims = BASE_ARRAY(&m->arena, int64_t, 3);
      for (uint32_t i = 0; i < 3; i++) dims[i] = draw_number();
      g->dims = dims;
      a.v.groups = g;
      break;
    }
    default:
      a.key = IR_ATTR_NONE;
      break;
  }
  return a;
}

static ir_op *add_op(ir_computation *c, ir_opcode opcode, ir_op *const *values, uint32_t n_values) {
  ir_module *m = c->module;
  int arity = ir_opcode_info(opcode)->arity;
  uint32_t n = arity >= 0 && below(10) ? (uint32_t)arity : below(7);
  if (n_values == 0) n = 0;
  uint32_t n_called = below(6) ? below(3) : 0;
  ir_op *op = ir_op_new(c, opcode, below(3) ? NULL : draw_tensor(m), ir_intern(m, "x", 1), n, n_called);
  for (uint32_t i = 0; i < n; i++) {
    /* Often the same operand again, as random types rarely fit each other. */
    ir_op *v = i && below(3) ? ir_operand(op, i - 1) : values[below(n_values)];
    ir_set_operand(op, i, (ir_value){v, 0});
  }
  for (const ir_attr_spec *s = ir_opcode_info(opcode)->attrs; s && s->key; s++) {
    if (below(12) == 0) continue;
    ir_attr a = draw_attr(m, s->key);
    if (a.key != IR_ATTR_NONE && !ir_attr_set(op, a)) abort();
  }
  return op;
}

static void fill_computation(ir_computation *c, ir_computation **others, uint32_t n_others, size_t *good, size_t *bad) {
  ir_module *m = c->module;
  const ir_type *types[N_TYPES];
  ir_op *values[2 * N_TYPES];
  uint32_t n_values = 0, n_params = below(7);
  for (uint32_t i = 0; i < N_TYPES; i++) types[i] = draw_type(m, types, i);
  for (uint32_t i = 0; i < n_params; i++) {
    /* Reducers of scalars are what most callers want. */
    const ir_type *t = below(2) ? ir_scalar(m, below(2) ? XLAC_F32 : XLAC_S32) : types[below(N_TYPES)];
    ir_op *p = ir_op_new(c, IR_OP_PARAMETER, t, ir_intern(m, "p", 1), 0, 0);
    if (below(20) && !ir_set_parameter(p, i)) abort();
    values[n_values++] = p;
  }
  for (uint32_t i = 0; i < N_TYPES; i++)
    values[n_values++] = ir_op_new(c, IR_OP_CONSTANT, types[i], ir_intern(m, "c", 1), 0, 0);
  for (uint32_t round = 0; round < 200; round++) {
    ir_op *op = add_op(c, (ir_opcode)(1 + below(IR_OP_COUNT - 1)), values, n_values);
    for (uint32_t i = 0; i < op->n_called; i++) op->called[i] = n_others && below(30) ? others[below(n_others)] : NULL;
    xlac_error err = {0};
    const ir_type *t = NULL;
    int status = ir_infer(m, op, &t, &err);
    if ((status == 0) != (t != NULL) || (status != 0 && (status != -err.code || !err.message[0]))) abort();
    if (ir_infer(m, op, &t, NULL) != status) abort();
    *(status == 0 ? good : bad) += 1;
    if (status != 0) continue;
    ir_set_type(op, t);
    if (n_values < 2 * N_TYPES) values[n_values++] = op;
  }
  if (below(10) && !ir_set_root(c, values[below(n_values)])) abort();
  if (n_params && below(2) && !ir_set_root(c, values[0])) abort();
}

int main(int argc, char **argv) {
  state = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * UINT64_C(0x9E3779B97F4A7C15) + 1;
  uint32_t rounds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 20;
  size_t good = 0, bad = 0;
  for (uint32_t r = 0; r < rounds; r++) {
    ir_module *m = NULL;
    if (ir_module_create(&m, "fuzz", base_alloc_libc, NULL) != 0) abort();
    m->config.replica_count = draw_number();
    m->config.num_partitions = draw_number();
    ir_computation *all[N_COMPUTATIONS];
    for (uint32_t i = 0; i < N_COMPUTATIONS; i++) {
      all[i] = ir_computation_new(m, "f", 1);
      fill_computation(all[i], all, i, &good, &bad);
    }
    ir_module_destroy(m);
  }
  printf("%zu typed, %zu refused\n", good, bad);
  return 0;
}
