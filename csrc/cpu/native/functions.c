/* The table of functions, and how one becomes a part of a body. */
#include "functions.h"

#include "lower_convert.h"

#include "../../base/math/math.h"

/* What a step does beside the operations on lanes. */
enum {
#define LANE(name, ...) NAT_STEP_##name = NAT_##name,
#define SAME LANE
#include "lanes.def"
#undef SAME
#undef LANE
  NAT_STEP_ARGUMENT = NAT_LANES, /* `number`: which */
  NAT_STEP_CONSTANT,
  NAT_STEP_SELECT, /* mask, yes, no */
  NAT_STEP_RESIZE,
  NAT_STEP_SINE, /* of any f32 */
  NAT_STEP_COSINE,
  NAT_STEP_JOIN,  /* parts to a complex number */
  NAT_STEP_TABLE, /* of table `number` what the low four bits of the operand say */
  NAT_STEP_INNER, /* another function, `number`: of which opcode; and one of f64 */
  NAT_STEP_WHOLE,
  NAT_STEP_INNER_POWER, /* the one with three operands */
  NAT_STEP_CALLED_SINE, /* libm's, called for the vector: sine and cosine together */
  NAT_STEP_CALLED_COSINE,
  NAT_STEP_CALLED_ATAN2,
  NAT_STEPS
};

/* There are thousands: they are short. wide: lanes have 8 bytes, not 4. in: of a constant, the low and the high byte of
 * its place among nat_numbers. last: the number, or of steps with three operands the third one. */
typedef struct nat_step {
  uint8_t op : 7, wide : 1, in[2], last;
} nat_step;
_Static_assert(NAT_STEPS <= 128 && sizeof(nat_step) == 4, "steps are short");

static const uint64_t nat_numbers[] = {
#define NAT_NUMBER(bits) bits,
#define NAT_TABLE(...)
#define FUNCTION(...)
#include "functions.def"
#undef NAT_TABLE
#undef NAT_NUMBER
};

static const uint32_t nat_tables[][16] = {
#define NAT_NUMBER(bits)
#define NAT_TABLE(...) {__VA_ARGS__},
#include "functions.def"
#undef NAT_TABLE
#undef FUNCTION
};

#define NAT_TABLE(...)
#define STEP(op, width, number, a, b, c) {NAT_STEP_##op, width == 8, {a, b}, (number) + (c)},
#define FUNCTION(type, code, place, widest, first, n, ...) __VA_ARGS__
static const nat_step nat_steps[] = {
#include "functions.def"
};
#undef FUNCTION
#undef STEP

/* By numbers, not by addresses, of which each would be one more to relocate. */
typedef struct nat_function_row {
  uint16_t first; /* among nat_steps */
  uint8_t n, widest;
} nat_function_row;

static const nat_function_row nat_functions[] = {
    {0, 0, 0}, /* where there is none */
#define FUNCTION(type, code, place, widest, first, n, ...) {first, n, widest},
#include "functions.def"
#undef FUNCTION
};

static const uint8_t nat_function_places[NAT_FUNCTION_TYPES][SCALAR_CODES] = {
#define FUNCTION(type, code, place, widest, first, n, ...) [NAT_##type][SCALAR_##code] = place,
#include "functions.def"
#undef FUNCTION
#undef NAT_TABLE
#undef NAT_NUMBER
};
_Static_assert(sizeof nat_functions / sizeof *nat_functions <= 256, "places are bytes");

static const nat_function_row *nat_function_of(nat_function_type t, scalar_code opcode) {
  return &nat_functions[nat_function_places[t][opcode]];
}

const uint32_t *nat_table_half(uint64_t half) {
  assert(half < 2 * sizeof nat_tables / sizeof *nat_tables);
  return nat_tables[half / 2] + half % 2 * 8;
}

/* A register of AVX-512 holds a table, one of AVX2 half of it: bit 3 of the place chooses between two. */
static uint32_t nat_pick(nat_body *b, uint32_t table, uint32_t place) {
  if (b->failed || !nat_has(b, NAT_PERM, 4)) return b->failed = true, 0;
  uint32_t lower = nat_op2(b, NAT_PERM, 4, place, nat_table(b, 2 * table));
  if (b->target->masks) return lower;
  uint32_t upper = nat_op2(b, NAT_PERM, 4, place, nat_table(b, 2 * table + 1));
  return nat_op(b, NAT_BLEND, 4, lower, upper, nat_shift(b, NAT_SHL, 4, place, 28), 0);
}

uint32_t nat_function_width(nat_function_type t, scalar_code opcode) {
  return nat_function_of(t, opcode)->widest;
}

/* in[1]: where the cosines go. libm's own, as complex functions have them. */
static void nat_sines_and_cosines(const scalar_loop *l, int64_t n, const void *const *in, void *out) {
  const double *x = in[0];
  double *sines = out, *cosines = (double *)(uintptr_t)in[1];
  (void)l;
  for (int64_t i = 0; i < n; i++) {
    double v = x[i];
    sines[i] = sin(v), cosines[i] = cos(v);
  }
}
static void nat_angles(const scalar_loop *l, int64_t n, const void *const *in, void *out) {
  const double *y = in[0], *x = in[1];
  double *angles = out;
  (void)l;
  for (int64_t i = 0; i < n; i++) angles[i] = atan2(y[i], x[i]);
}

static bool nat_step_takes_three(const nat_step *s) {
  static const uint8_t three[] = {NAT_FMA, NAT_FMS, NAT_FNMA, NAT_FNMS, NAT_STEP_SELECT, NAT_STEP_INNER_POWER};
  return memchr(three, s->op, sizeof three) != NULL;
}

/* in: the values of the step's operands. */
static uint32_t nat_function_step(nat_body *b, const nat_step *s, const uint32_t *in) {
  uint32_t width = s->wide ? 8 : 4;
  bool takes_three = nat_step_takes_three(s);
  switch (s->op) {
    case NAT_STEP_SELECT:
      return nat_select(b, in[0], in[1], in[2]);
    case NAT_STEP_MASK_AND:
      return nat_mask_op(b, NAT_AND, in[0], in[1]);
    case NAT_STEP_MASK_OR:
      return nat_mask_op(b, NAT_OR, in[0], in[1]);
    case NAT_STEP_MASK_NOT:
      return nat_mask_not(b, in[0]);
    case NAT_STEP_IEQ:
    case NAT_STEP_SGT:
      return nat_compare_ints(b, width, true, s->op == NAT_STEP_IEQ ? SCALAR_EQ : SCALAR_GT, in[0], in[1]);
    case NAT_STEP_SINE:
    case NAT_STEP_COSINE:
      return nat_turned(b, s->op == NAT_STEP_SINE ? SCALAR_SINE : SCALAR_COSINE, in[0]);
    case NAT_STEP_JOIN:
      return nat_join(b, (nat_parts){in[0], in[1]});
    case NAT_STEP_TABLE:
      return nat_pick(b, s->last, in[0]);
    case NAT_STEP_INNER:
      return nat_function(b, NAT_INNER, (scalar_code)s->last, in);
    case NAT_STEP_INNER_POWER:
      return nat_function(b, NAT_INNER, SCALAR_POWER, in);
    case NAT_STEP_WHOLE:
      return nat_function(b, NAT_F8, (scalar_code)s->last, in);
    case NAT_STEP_CALLED_SINE:
    case NAT_STEP_CALLED_COSINE:
      return nat_call_both(b, (uintptr_t)nat_sines_and_cosines, in[0], s->op == NAT_STEP_CALLED_COSINE);
    case NAT_STEP_CALLED_ATAN2:
      return nat_call(b, (uintptr_t)nat_angles, in[0], in[1]);
    case NAT_STEP_RESIZE:
      return nat_resize(b, in[0], width, false);
    case NAT_STEP_FSQRT:
    case NAT_STEP_FROUND:
    case NAT_STEP_SHL:
    case NAT_STEP_SHR:
    case NAT_STEP_SAR:
    case NAT_STEP_F4_F8:
    case NAT_STEP_F8_F4:
    case NAT_STEP_S4_F:
    case NAT_STEP_F4_S4:
    case NAT_STEP_F8_S4:
    case NAT_STEP_SX4:
    case NAT_STEP_ZX4:
      return nat_shift(b, (nat_lane)s->op, width, in[0], s->last);
    default:
      return nat_op(b, (nat_lane)s->op, width, in[0], in[1], takes_three ? in[2] : NAT_NONE, takes_three ? 0 : s->last);
  }
}

uint32_t nat_function(nat_body *b, nat_function_type t, scalar_code opcode, const uint32_t *arguments) {
  const nat_function_row *f = nat_function_of(t, opcode);
  uint32_t values[256];
  assert(f->n > 0 && f->first + f->n <= (int)(sizeof nat_steps / sizeof *nat_steps));
  for (uint32_t i = 0; i < f->n; i++) {
    const nat_step *s = &nat_steps[f->first + i];
    uint32_t in[3] = {0, 0, 0};
    if (s->op == NAT_STEP_ARGUMENT) {
      values[i] = arguments[s->last];
    } else if (s->op == NAT_STEP_CONSTANT) {
      values[i] = nat_constant(b, s->wide ? 8 : 4, nat_numbers[s->in[0] + 256u * s->in[1]]);
    } else {
      for (uint32_t j = 0; j < 2; j++) in[j] = values[s->in[j]];
      if (nat_step_takes_three(s)) in[2] = values[s->last];
      values[i] = nat_function_step(b, s, in);
    }
  }
  return values[f->n - 1];
}

void nat_far_run(const void *x, void *r, int64_t which, int64_t n) {
  static const uint8_t codes[] = {SCALAR_SINE, SCALAR_COSINE, SCALAR_TAN};
  bool wide = which >= NAT_FAR_F64;
  scalar_loop_fn *fn = wide ? scalar_loops_f64[codes[which - NAT_FAR_F64]] : scalar_loops_f32[codes[which]];
  nat_loop_run(x, r, wide ? 64 : 32, n, NULL, fn);
}

/* Loops of one type read nothing else of what they are given. */
void nat_loop_run(const void *x, void *r, int64_t bits, int64_t n, const void *y, scalar_loop_fn *fn) {
  const void *in[3] = {x, y, NULL};
  const scalar_loop l = {.fn = fn, .bits = (uint8_t)bits};
  fn(&l, n, in, r);
}
