/* stablehlo-refine-arguments: gives the parameters of @main (or of the only function) more specific types.
 * Requires: a type for each parameter. Preserves: the body, which sees the old types through custom calls until
 * stablehlo-refine-shapes has gone over it. */
#include "../../ir/stablehlo/verify.h"
#include "../../text/mlir/mlir.h"
#include "refine.h"

#include <stdio.h>

int opt_refine_fail(const opt_rewriter *rw, const ir_computation *c, base_code code, const char *format, ...) {
  char message[400];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return base_fail_at(rw->err, code, c->line, c->col, "func.func", "@%s %s", c->name->s, message);
}

int opt_refine_target(ir_module *m, ir_computation **out, xlac_error *err) {
  ir_computation *only = NULL, *main = NULL;
  uint32_t n = 0;
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_FUNCTION) continue;
    only = c;
    n++;
    if (strcmp(c->name->s, "main") == 0) main = c;
  }
  *out = n == 1 ? only : main;
  if (!*out)
    return base_fail(err, XLAC_E_VERIFY_STRUCTURE,
                     "the module has %u functions and no @main, which would be the one to refine", n);
  if ((*out)->declaration)
    return base_fail_at(err, XLAC_E_VERIFY_STRUCTURE, (*out)->line, (*out)->col, "func.func",
                        "@%s has no body to refine", (*out)->name->s);
  return 0;
}

static bool arguments_same_element(const ir_type *a, const ir_type *b) {
  return a->dtype == b->dtype && a->text == b->text && ir_quant_equal(a->quant, b->quant);
}

/* NULL where `to` refines `from`, else what is wrong. */
static const char *arguments_problem(const ir_type *from, const ir_type *to) {
  bool from_shaped = ir_is_tensor(from) || from->kind == IR_TYPE_UNRANKED;
  bool to_shaped = ir_is_tensor(to) || to->kind == IR_TYPE_UNRANKED;
  if (from == to) return NULL;
  if (!from_shaped || !to_shaped) return "both are expected to be tensors";
  if (!arguments_same_element(from, to)) return "expected the same element type";
  if (!ir_is_tensor(to)) return "expected a type with a rank";
  if (!ir_is_tensor(from)) return NULL;
  if (from->rank != to->rank) return "expected the same rank";
  for (uint32_t d = 0; d < to->rank; d++)
    if (!ir_dim_is_dynamic(from, d) && (ir_dim_is_dynamic(to, d) || from->dims[d] != to->dims[d]))
      return "expected known sizes to stay";
  return NULL;
}

static int arguments_check(const opt_rewriter *rw, const ir_computation *c, uint32_t n, const ir_type *const *types) {
  if (n != c->n_params)
    return opt_refine_fail(rw, c, XLAC_E_ARGUMENT_COUNT, "has %u arguments; %u types were given", c->n_params, n);
  for (uint32_t i = 0; i < n; i++) {
    const char *problem = arguments_problem(c->params[i]->type, types[i]);
    if (!problem) continue;
    return opt_refine_fail(rw, c, XLAC_E_ARGUMENT_TYPE, "can't have argument %u of %s refined to %s: %s", i,
                           SV_SHOW(c->params[i]->type), SV_SHOW(types[i]), problem);
  }
  return 0;
}

/* The call that stands between the parameter of the new type and its users, who expect the old one. */
static void arguments_wrap(opt_rewriter *rw, ir_computation *c, ir_op *parameter, const ir_type *type) {
  const ir_type *before = parameter->type;
  int64_t sizes[IR_MAX_RANK], one = 1, index = 1;
  for (uint32_t d = 0; d < type->rank; d++) sizes[d] = ir_dim_is_dynamic(type, d) ? INT64_MIN : type->dims[d];
  opt_at_start(rw, c);
  rw->origin = parameter;
  ir_value both[] = {{parameter, 0}, opt_i64s(rw, type->rank, sizes)};
  ir_value call = opt_make(rw, IR_OP_CUSTOM_CALL, before, 2, both);
  opt_set(rw, call, "call_target_name", ir_m_string(rw->m, OPT_REFINE_WRAPPER, strlen(OPT_REFINE_WRAPPER)));
  opt_set(rw, call, "indices_of_shape_operands", ir_m_dense_i64(rw->m, 1, &one, &index));
  if (rw->failed) return;
  opt_replace_results(rw, parameter, &call);
  ir_set_operand(call.op, 0, (ir_value){parameter, 0});
  opt_set_type(rw, (ir_value){parameter, 0}, type);
}

int opt_refine_parameters(opt_rewriter *rw, ir_computation *c, uint32_t n, const ir_type *const *types) {
  TRY(arguments_check(rw, c, n, types));
  for (uint32_t i = n; i-- > 0 && !rw->failed;)
    if (c->params[i]->type != types[i]) arguments_wrap(rw, c, c->params[i], types[i]);
  return opt_rewriter_status(rw);
}

/* The next type of the list: to the comma that is in no brackets. */
static base_slice arguments_next(base_slice *rest) {
  uint32_t depth = 0;
  size_t i = 0;
  for (; i < rest->n; i++) {
    char ch = rest->p[i];
    bool arrow = ch == '>' && i > 0 && rest->p[i - 1] == '-';
    if (ch == '<' || ch == '(' || ch == '[' || ch == '{') depth++;
    if (depth && !arrow && (ch == '>' || ch == ')' || ch == ']' || ch == '}')) depth--;
    if (ch == ',' && depth == 0) break;
  }
  base_slice one = {rest->p, i};
  size_t gone = i < rest->n ? i + 1 : i;
  *rest = (base_slice){rest->p + gone, rest->n - gone};
  return one;
}

int opt_refine_arguments(ir_module *m, const opt_args *args, xlac_error *err) {
  opt_rewriter rw;
  ir_computation *target = NULL;
  base_slice rest = opt_get_text(args, "types");
  TRY(opt_refine_target(m, &target, err));
  TRY(opt_rewriter_init(&rw, m, err));
  const ir_type **types = BASE_ARRAY(&rw.arena, const ir_type *, rest.n + 1);
  uint32_t n = 0;
  int status = types ? 0 : base_oom(err, "a pass");
  while (status == 0 && rest.n) {
    base_slice text = arguments_next(&rest);
    status = text_parse_mlir_type(m, text.p, text.n, &types[n++], err);
  }
  if (status == 0) status = opt_refine_parameters(&rw, target, n, types);
  opt_rewriter_free(&rw);
  return status;
}
