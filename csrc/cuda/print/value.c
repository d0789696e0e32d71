/* Values of a kernel as CUDA C++. An op is the interpreter's on one element: narrow floats by way of f32, integers of
 * fewer than 8 bits cut to their width. */
#include <stdio.h>

#include "print.h"

enum { CU_VALUE_ROOM = 200 /* characters of an operand */ };

/* "ADD": the middle of the names of functions in the prelude. */
#define SCALAR_COLUMN , 1
#include "../../ir/ops_columns.h"
#include "../../scalar/columns.h"
#define VALUE_NAME(code, ...) [SCALAR_##code] = #code,
#define OP(code, text, arity, columns) SCALAR_ROW(VALUE_NAME, SCALAR_NOTHING, code columns)
static const char *const cu_value_codes[SCALAR_CODES] = {
#include "../../ir/ops.def"
};
#undef OP
#undef VALUE_NAME
#undef SCALAR_COLUMN
#include "../../ir/ops_columns.h"

/* --- indexes --- */

void cuda_print_index(cuda_print *x, const kernel_index *index, const char *type) {
  bool some = index->offset != 0;
  if (some) base_putf(x->out, "(%s)%lld", type, (long long)index->offset);
  for (uint32_t d = 0; d < x->k->rank; d++) {
    if (index->strides[d] == 0 || x->k->extents[d] == 1) continue;
    if (some) BASE_PUT(x->out, " + ");
    if (index->strides[d] == 1)
      base_putf(x->out, "i%u", (unsigned)d);
    else
      base_putf(x->out, "(%s)%lld * i%u", type, (long long)index->strides[d], (unsigned)d);
    some = true;
  }
  if (!some) BASE_PUT(x->out, "0");
}

/* "i0 >= 2 && i0 < 10": only what the extents don't say. */
void cuda_print_box(cuda_print *x, const kernel_box *box) {
  bool some = false;
  for (uint32_t d = 0; d < x->k->rank; d++) {
    if (box->from[d] > 0)
      base_putf(x->out, "%si%u >= %lld", some ? " && " : "", (unsigned)d, (long long)box->from[d]), some = true;
    if (box->to[d] < x->k->extents[d])
      base_putf(x->out, "%si%u < %lld", some ? " && " : "", (unsigned)d, (long long)box->to[d]), some = true;
  }
  if (!some) BASE_PUT(x->out, "true");
}

/* A load's address within its array, with the places that are computed. */
static void cu_value_put_place(cuda_print *x, const kernel_value *v) {
  cuda_print_index(x, v->index, "idx");
  for (uint32_t j = 0; j < v->n_in; j++) {
    base_dtype t = (base_dtype)x->k->values[v->in[j]].dtype;
    const char *place = base_dtype_is_signed(t) ? "place_signed" : "place_unsigned";
    cuda_print_needs(x, place);
    base_putf(x->out, " + (idx)(%lldll * %s(v%u, %lldll))", (long long)v->bases[j].stride, place, (unsigned)v->in[j],
              (long long)v->bases[j].last);
  }
}

/* --- ops --- */

/* The type whose expressions op and operands of type t take. */
static base_dtype cu_value_class(base_dtype t) {
  const base_dtype_info *info = base_dtype_of(t);
  if (cuda_is_narrow_float(t)) return XLAC_F32;
  if (info->bits >= 8) return t;
  return info->kind == BASE_KIND_SINT ? XLAC_S8 : info->kind == BASE_KIND_UINT ? XLAC_U8 : t;
}

/* By name and type: "op_ADD_F32(a, b)", with the width where integers are concerned. */
static void cu_value_put_call(cuda_print *x, scalar_code code, base_dtype t, uint32_t n, const char *const *operands) {
  char name[80];
  snprintf(name, sizeof name, "op_%s_%s", cu_value_codes[code], cuda_dtype_name(cu_value_class(t)));
  cuda_print_needs(x, name);
  base_putf(x->out, "%s(", name);
  for (uint32_t j = 0; j < n; j++) base_putf(x->out, "%s%s", j ? ", " : "", operands[j]);
  if (base_dtype_is_integer(t)) base_putf(x->out, ", %u", (unsigned)base_dtype_of(t)->bits);
  BASE_PUT(x->out, ")");
}

void cuda_print_total(cuda_print *x, base_dtype t, const char *operand) {
  char bits[80];
  if (t == XLAC_F8E8M0FNU) {
    base_puts(x->out, operand);
    return;
  }
  cuda_print_needs(x, "total_order");
  snprintf(bits, sizeof bits, "bits_of_%s", cuda_dtype_name(t));
  bool wide = t == XLAC_F32 || t == XLAC_F64;
  if (wide) cuda_print_needs(x, bits);
  base_putf(x->out, "total_order(%s(%s), %u)", wide ? bits : "(uint64_t)", operand, (unsigned)base_dtype_of(t)->bits);
}

static void cu_value_put_compare(cuda_print *x, const scalar_op *op, const scalar_loop *l, const char *const *in) {
  static const char *const signs[SCALAR_DIRECTIONS] = {"==", "!=", ">=", ">", "<=", "<"};
  base_dtype t = (base_dtype)l->in[0];
  BASE_PUT(x->out, "(uint8_t)(");
  if (base_dtype_is_complex(t)) {
    base_putf(x->out, "%s((%s).re == (%s).re && (%s).im == (%s).im)", op->direction == SCALAR_NE ? "!" : "", in[0],
              in[1], in[0], in[1]);
  } else if (base_dtype_is_float(t) && op->order == SCALAR_ORDER_TOTAL) {
    cuda_print_total(x, t, in[0]);
    base_putf(x->out, " %s ", signs[op->direction]);
    cuda_print_total(x, t, in[1]);
  } else {
    base_putf(x->out, "%s %s %s", in[0], signs[op->direction], in[1]);
  }
  BASE_PUT(x->out, ")");
}

/* What is not a function of the prelude. false: it is one. */
static bool cu_value_put_own(cuda_print *x, const scalar_op *op, const scalar_loop *l, const char *const *in) {
  base_dtype t = l->work ? (base_dtype)l->work : (base_dtype)l->in[0];
  bool is_complex = base_dtype_is_complex(t);
  switch ((scalar_code)op->code) {
    case SCALAR_COMPARE:
      return cu_value_put_compare(x, op, l, in), true;
    case SCALAR_SELECT:
      return base_putf(x->out, "%s ? %s : %s", in[0], in[1], in[2]), true;
    case SCALAR_REAL:
      return base_putf(x->out, is_complex ? "(%s).re" : "%s", in[0]), true;
    case SCALAR_IMAG:
      return is_complex ? base_putf(x->out, "(%s).im", in[0]) : BASE_PUT(x->out, "0"), true;
    case SCALAR_COMPLEX:
      cuda_print_needs(x, cuda_type((base_dtype)l->out));
      return base_putf(x->out, "%s{%s, %s}", cuda_type((base_dtype)l->out), in[0], in[1]), true;
    case SCALAR_IS_FINITE:
      return base_putf(x->out, "(uint8_t)(%s - %s == 0)", in[0], in[0]), true;
    case SCALAR_REDUCE_PRECISION:
      cuda_print_needs(x, t == XLAC_F64 ? "reduced_f64" : "reduced_f32");
      return base_putf(x->out, "reduced_%s(%s, %u, %u)", t == XLAC_F64 ? "f64" : "f32", in[0], op->exponent_bits,
                       op->mantissa_bits),
             true;
    case SCALAR_CONVERT:
    case SCALAR_COPY:
      return cuda_print_convert(x, (base_dtype)l->out, (base_dtype)l->in[0], in[0]), true;
    default:
      return false;
  }
}

/* As scalar_loop_run has it. */
void cuda_print_op(cuda_print *x, const scalar_op *op, const scalar_loop *l, const char *const *operands) {
  char wide[3][CU_VALUE_ROOM], name[64];
  const char *in[3] = {operands[0], l->n_in > 1 ? operands[1] : "", l->n_in > 2 ? operands[2] : ""};
  base_dtype out = (base_dtype)l->out;
  for (uint32_t j = 0; l->work && j < l->n_in; j++) {
    if (!cuda_is_narrow_float((base_dtype)l->in[j])) continue;
    snprintf(name, sizeof name, "widen_%s", cuda_dtype_name((base_dtype)l->in[j]));
    cuda_print_needs(x, name);
    snprintf(wide[j], CU_VALUE_ROOM, "%s(%s)", name, in[j]);
    in[j] = wide[j];
  }
  bool narrowed = l->work && cuda_is_narrow_float(out);
  int unused = 8 - base_dtype_of(out)->bits;
  if (narrowed) {
    snprintf(name, sizeof name, "narrow_%s", cuda_dtype_name(out));
    cuda_print_needs(x, name);
    base_putf(x->out, "(%s)%s(", cuda_type(out), name);
  }
  if (l->wraps) base_putf(x->out, "(%s)((%s)((uint8_t)(", cuda_type(out), cuda_type(out));
  if (!cu_value_put_own(x, op, l, in))
    cu_value_put_call(x, (scalar_code)op->code, l->work ? (base_dtype)l->work : (base_dtype)l->in[0], l->n_in, in);
  if (l->wraps) base_putf(x->out, ") << %d) >> %d)", unused, unused);
  if (narrowed) BASE_PUT(x->out, ")");
}

void cuda_print_combine(cuda_print *x, scalar_code code, base_dtype t, const char *a, const char *b) {
  const scalar_op op = {.code = (uint8_t)code};
  const char *const operands[] = {a, b};
  scalar_loop l;
  if (scalar_loop_binary(code, t, &l))
    cuda_print_op(x, &op, &l, operands);
  else
    x->strange = true;
}

/* --- values --- */

static void cu_value_put_load(cuda_print *x, uint32_t i) {
  const kernel_value *v = &x->k->values[i];
  if (x->given && x->given <= v->buffer + 1) {
    base_putf(x->out, "given%s", x->given <= v->buffer ? "1" : "");
    return;
  }
  if (cuda_print_is_packed(x, i)) {
    base_putf(x->out, x->packs ? "p%u[w].e[u]" : "p%u.e[u]", (unsigned)i);
    return;
  }
  if (x->held && x->held->arrays[x->held->in[v->buffer]].place != CUDA_IN_MEMORY) {
    bool one = x->held->arrays[x->held->in[v->buffer]].place == CUDA_AS_ONE;
    base_putf(x->out, one ? "r%u" : x->held->passes ? "h%u.e[u]" : "h%u[j].e[u]", (unsigned)x->held->in[v->buffer]);
    return;
  }
  if (cuda_print_is_tiled(x, i)) {
    base_putf(x->out, "t%u[t][r]", (unsigned)i);
    return;
  }
  const char *c = cuda_type((base_dtype)v->dtype);
  if (v->box) {
    cuda_print_box(x, v->box);
    BASE_PUT(x->out, " ? ");
  }
  base_putf(x->out, "((const %s *)in%u)[", c, (unsigned)v->buffer);
  cu_value_put_place(x, v);
  BASE_PUT(x->out, "]");
  if (v->box) base_putf(x->out, " : %s{}", c);
}

/* The number of the iteration may be larger than an address. */
static void cu_value_put_count(cuda_print *x, const kernel_value *v) {
  base_text own, *out = x->out;
  base_text_init(&own, out->alloc);
  x->out = &own;
  BASE_PUT(x->out, "(int64_t)(");
  cuda_print_index(x, v->index, "int64_t");
  BASE_PUT(x->out, ")");
  x->out = out;
  const char *number = base_text_cstr(&own);
  if (number && own.n < CU_VALUE_ROOM)
    cuda_print_convert(x, (base_dtype)v->dtype, XLAC_S64, number);
  else
    x->strange = true;
  base_text_free(&own);
}

static void cu_value_put_op(cuda_print *x, uint32_t i) {
  const kernel_value *v = &x->k->values[i];
  char names[3][16];
  const char *in[3] = {"", "", ""};
  scalar_loop l;
  if (!kernel_loop_of(x->k, i, &l)) {
    x->strange = true;
    return;
  }
  for (uint32_t j = 0; j < v->n_in; j++) {
    snprintf(names[j], sizeof names[j], "v%u", (unsigned)v->in[j]);
    in[j] = names[j];
  }
  cuda_print_op(x, &v->op, &l, in);
}

/* The carry begins at the first iteration along the dimension. */
static void cu_value_put_scan(cuda_print *x, uint32_t i) {
  const kernel_value *v = &x->k->values[i];
  base_dtype t = (base_dtype)v->dtype, sum = cuda_sum_type(t);
  char carry[24], value[24], start[24];
  snprintf(carry, sizeof carry, "carry%u", (unsigned)i);
  snprintf(value, sizeof value, "v%u", (unsigned)v->in[0]);
  snprintf(start, sizeof start, "v%u", (unsigned)v->in[1]);
  base_putf(x->out, "  if (");
  cuda_print_index(x, v->index, "idx");
  base_putf(x->out, " == 0) %s = ", carry);
  cuda_print_convert(x, sum, t, start);
  base_putf(x->out, ";\n  const %s wide%u = ", cuda_type(sum), (unsigned)i);
  cuda_print_convert(x, sum, t, value);
  char wide[24];
  snprintf(wide, sizeof wide, "wide%u", (unsigned)i);
  base_putf(x->out, ";\n  %s = ", carry);
  cuda_print_combine(x, (scalar_code)v->op.code, sum, carry, wide);
  base_putf(x->out, ";\n  const %s v%u = ", cuda_type(t), (unsigned)i);
  cuda_print_convert(x, t, sum, carry);
  BASE_PUT(x->out, ";\n");
}

void cuda_print_value(cuda_print *x, uint32_t i) {
  const kernel_value *v = &x->k->values[i];
  if (base_dtype_is_complex((base_dtype)v->dtype)) cuda_print_needs(x, cuda_type((base_dtype)v->dtype));
  if (v->kind == KERNEL_SCAN) {
    x->strange = x->strange || v->box;
    cu_value_put_scan(x, i);
    return;
  }
  base_putf(x->out, "  const %s v%u = ", cuda_type((base_dtype)v->dtype), (unsigned)i);
  switch ((kernel_kind)v->kind) {
    case KERNEL_LOAD:
      cu_value_put_load(x, i);
      break;
    case KERNEL_COUNT_UP:
      cu_value_put_count(x, v);
      break;
    case KERNEL_CONSTANT:
      cuda_print_constant(x, (base_dtype)v->dtype, v->data);
      break;
    case KERNEL_PICK:
      cuda_print_box(x, v->pick);
      base_putf(x->out, " ? v%u : v%u", (unsigned)v->in[0], (unsigned)v->in[1]);
      break;
    case KERNEL_OP:
      cu_value_put_op(x, i);
      break;
    case KERNEL_SCAN:
      break;
  }
  BASE_PUT(x->out, ";\n");
}
