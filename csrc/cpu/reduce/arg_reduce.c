/* reduce where it is argmax or argmin: two operands, values and places, and a computation that
 * opt_arg_reduction_of knows. Where the places are the index along the dimension (an iota), they are not read, and
 * the step may not even have them. */
#include "arg_reduce.h"

#include "../../base/isa/isa.h"
#include "../../interp/algorithm/arrays.h"
#include "../../passes/hlo/arg_reduce.h"
#include "../routine.h"

enum { ARGR_PIECE = 1 << 16, ARGR_GROUP = 16, ARGR_SHORT = 24 /* elements of a row */ };

typedef struct argr_data {
  const argr_loops *loops;
  argr_coding coding;
  bool counts;
  int64_t outer, steps, inner; /* the operand, as stored */
  int64_t blocks, grain;       /* pieces of an outer index, units for a thread at a time */
  int64_t bytes, place_bytes;
} argr_data;

/* One run, as ranges see it: `row` has what is the same for all rows. */
typedef struct argr_work {
  const argr_data *x;
  argr_row row;
} argr_work;

/* Element i of row l becomes element l of row i, of so many rows. */
#define ARGR_TURN(U)                                                                                                \
  static void argr_turn_##U(void *to, const char *x, int64_t n) {                                                   \
    for (int64_t i = 0; i < n; i++) {                                                                               \
      U column[ARGR_GROUP];                                                                                         \
      for (int64_t l = 0; l < ARGR_GROUP; l++) memcpy(&column[l], x + (l * n + i) * (int64_t)sizeof(U), sizeof(U)); \
      memcpy((U *)to + i * ARGR_GROUP, column, sizeof column);                                                      \
    }                                                                                                               \
  }
ARGR_TURN(uint8_t)
ARGR_TURN(uint16_t)
ARGR_TURN(uint32_t)
ARGR_TURN(uint64_t)
#undef ARGR_TURN

static void argr_turn(void *to, const char *x, int64_t n, int64_t bytes) {
  assert(n <= ARGR_SHORT);
  switch (bytes) {
    case 1:
      argr_turn_uint8_t(to, x, n);
      break;
    case 2:
      argr_turn_uint16_t(to, x, n);
      break;
    case 4:
      argr_turn_uint32_t(to, x, n);
      break;
    default:
      argr_turn_uint64_t(to, x, n);
  }
}

/* Rows one after the other. Short ones are gone through side by side, as columns are, by a copy that has them so. */
static void argr_rows(const argr_data *x, argr_row row, size_t n) {
  uint64_t turned[ARGR_SHORT * ARGR_GROUP];
  int64_t apart = x->steps * x->bytes;
  bool few = x->counts && x->steps > 0 && x->steps <= ARGR_SHORT;
  for (size_t done = 0, m = 1; done < n; done += m) {
    m = few && n - done >= ARGR_GROUP ? ARGR_GROUP : 1;
    if (m == 1) {
      x->loops->row(&row);
    } else {
      argr_row side = row;
      argr_turn(turned, row.x, x->steps, x->bytes);
      side.x = (const char *)turned, side.stride = ARGR_GROUP;
      x->loops->columns(&side, ARGR_GROUP);
    }
    row.x += (int64_t)m * apart;
    if (row.places) row.places += (int64_t)m * x->steps * x->place_bytes;
    row.value += (int64_t)m * x->bytes;
    row.place += (int64_t)m * x->place_bytes;
  }
}

/* For rt_parallel_for. A unit is one row, or a block of ARGR_LANES neighbouring columns. */
static void argr_range(void *ctx, size_t begin, size_t end) {
  const argr_work *w = ctx;
  const argr_data *x = w->x;
  assert(begin <= end && x->loops && x->blocks > 0);
  for (size_t unit = begin, m = x->inner == 1 ? end - begin : 1; unit < end; unit += m) {
    int64_t outer = (int64_t)unit / x->blocks, lane = (int64_t)unit % x->blocks * ARGR_LANES;
    int64_t from = outer * x->steps * x->inner + lane, to = outer * x->inner + lane;
    argr_row row = w->row;
    row.x += from * x->bytes;
    if (row.places) row.places += from * x->place_bytes;
    row.value += to * x->bytes;
    row.place += to * x->place_bytes;
    if (x->inner == 1)
      argr_rows(x, row, m);
    else
      x->loops->columns(&row, interp_min(ARGR_LANES, x->inner - lane));
  }
}

/* Inputs are the values, the places, and the two initial values; the places are not an operand of the step where
 * nobody computes them, so the initial values are counted from the end. */
static int argr_run(const cpu_routine_run *r) {
  const argr_data *x = r->data;
  uint32_t n = r->step->n_in;
  argr_work w = {.x = x};
  assert(n == 4 || (n == 3 && x->counts));
  w.row = (argr_row){.coding = x->coding, .x = r->in[0], .places = x->counts ? NULL : r->in[1]};
  w.row.n = x->steps;
  w.row.stride = x->inner;
  w.row.place_bytes = x->place_bytes;
  w.row.init = r->in[n - 2];
  w.row.init_place = r->in[n - 1];
  w.row.value = r->out[0];
  w.row.place = r->out[1];
  size_t units = (size_t)(x->outer * x->blocks);
  if (units <= (size_t)x->grain)
    argr_range(&w, 0, units);
  else
    rt_parallel_for(r->run->exe->pool, units, (size_t)x->grain, argr_range, &w);
  return 0;
}

/* The smallest is the largest with flipped signs; of integers with all bits flipped, which reverses their order. */
static argr_coding argr_coding_of(base_dtype t, bool smallest) {
  argr_coding c = {.infinity = t == XLAC_F16 ? 0x7c00 : 0x7f80, .wide = base_isa_best() >= BASE_ISA_AVX2};
  uint64_t sign = (uint64_t)1 << (8 * base_dtype_bytes(t) - 1);
  if (smallest) c.flip = base_dtype_is_float(t) ? sign : sign | (sign - 1);
  return c;
}

/* Leaves x->code NULL where the reduction is none of these. outer, steps and inner are the extents before, of and
 * after the reduced dimension. */
int cpu_prepare_arg_reduce(cpu_prepare_run *x) {
  opt_arg_reduction a;
  if (!opt_arg_reduction_of(x->op, &a)) return 0;
  assert(ir_operand_type(x->op, 0)->rank > a.dim);
  const ir_type *t = ir_operand_type(x->op, 0);
  argr_data *data = BASE_NEW(x->arena, argr_data);
  if (!data) return base_oom(x->err, "a reduction");
  *data = (argr_data){.counts = a.counts, .outer = 1, .steps = t->dims[a.dim], .inner = 1};
  for (uint32_t d = 0; d < t->rank; d++)
    if (d != a.dim) *(d < a.dim ? &data->outer : &data->inner) *= t->dims[d];
  data->loops = cpu_arg_loops(t->dtype);
  data->coding = argr_coding_of(t->dtype, a.smallest);
  data->bytes = (int64_t)base_dtype_bytes(t->dtype);
  data->place_bytes = (int64_t)base_dtype_bytes(ir_operand_type(x->op, 1)->dtype);
  data->blocks = (data->inner + ARGR_LANES - 1) / ARGR_LANES;
  data->grain = interp_max(1, ARGR_PIECE / interp_max(1, data->steps * interp_min(data->inner, ARGR_LANES)));
  x->out->name = a.smallest ? "argmin" : "argmax";
  x->data = data;
  x->out->work = (uint64_t)t->count;
  x->out->stoppable = true;
  x->code = argr_run;
  return 0;
}
