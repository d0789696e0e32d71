/* Ops, blocks and regions.
 *
 *   %3:2 = "stablehlo.case"(%0) ({ ... }, { ... }) {a = 1} : (tensor<i32>) -> (tensor<f32>, tensor<f32>) loc(#loc4)
 * An op is printed in its pretty form where that says all of it, else in the generic form, which says anything.
 * Whether it does is asked first (mprint_is_sayable, mprint_known), so that whatever the module holds reads back. */
#include "print.h"

/* Stems stand in the order of mprint_stem. Numbers follow %arg directly, other stems behind an underscore. */
static void mprint_put_name(base_text *o, mprint_name name) {
  assert(name.stem < MPRINT_OTHER);
  static const char *const stems[] = {"",           "arg",          "c",      "cst",        "iterArg",   "input",
                                      "carry",      "output_state", "output", "batch_mean", "batch_var", "grad_operand",
                                      "grad_scale", "grad_offset",  "values", "indices",    "head",      "tail"};
  base_putc(o, '%');
  base_puts(o, stems[name.stem]);
  if (name.number == MPRINT_PLAIN) return;
  if (name.stem > MPRINT_ARG) base_putc(o, '_');
  base_put_u64(o, name.number);
}

/*   %c7_i32   %c7_i32_0 */
static void mprint_put_other(mprint *p, mprint_name name) {
  assert(name.number < p->others.n);
  const mprint_other *other = &p->others.items[name.number];
  base_putc(p->out, '%');
  base_put(p->out, other->text, other->n);
  if (other->suffix == MPRINT_PLAIN) return;
  base_putc(p->out, '_');
  base_put_u64(p->out, other->suffix);
}

/* A result of several is %3#1, unless every result has a name of its own. */
void mprint_value(mprint *p, ir_value v) {
  assert(p->names && v.op);
  mprint_name name = p->names[v.op->id];
  if (name.stem == MPRINT_OTHER) {
    mprint_put_other(p, name);
    return;
  }
  if (name.stem == MPRINT_EACH) {
    mprint_put_name(p->out, p->each.items[name.number + v.index]);
    return;
  }
  mprint_put_name(p->out, name);
  if (v.op->n_results <= 1) return;
  base_putc(p->out, '#');
  base_put_u64(p->out, v.index);
}

/* Operands from `from` up to, but not including, `to`. */
void mprint_operands(mprint *p, const ir_op *op, uint32_t from, uint32_t to) {
  assert(to <= op->n_operands);
  for (uint32_t i = from; i < to; i++) {
    if (i > from) BASE_PUT(p->out, ", ");
    mprint_value(p, mprint_operand(op, i));
  }
}

/*   tensor<f32>, tensor<i32> */
void mprint_operand_types(mprint *p, const ir_op *op) {
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_type(p->out, ir_operand_type(op, i));
  }
}

/* One type stands bare, unless it is a function type. */
static void mprint_result_list(base_text *o, uint32_t n, const ir_type *const *types) {
  bool bare = n == 1 && types[0]->kind != IR_TYPE_FUNCTION;
  if (!bare) base_putc(o, '(');
  mprint_types(o, n, types);
  if (!bare) base_putc(o, ')');
}

/*   (tensor<f32>, tensor<i32>) -> tensor<f32>      () -> ()      (tensor<f32>) -> (tensor<f32>, tensor<f32>) */
void mprint_function_type(mprint *p, const ir_op *op) {
  base_putc(p->out, '(');
  mprint_operand_types(p, op);
  BASE_PUT(p->out, ") -> ");
  mprint_result_list(p->out, op->n_results, op->types);
}

/* Its location stands as it is, not as an alias: MLIR prints arguments' that way. */
void mprint_argument(mprint *p, const ir_op *param) {
  assert(param->opcode == IR_OP_PARAMETER);
  mprint_value(p, (ir_value){(ir_op *)param, 0});
  BASE_PUT(p->out, ": ");
  mprint_type(p->out, param->type);
  if (param->mlir && param->mlir->n) {
    base_putc(p->out, ' ');
    mprint_dict(p, param->mlir);
  }
  mprint_trailing_loc(p, param->loc, false);
}

/* --- terminators --- */

/* The types of what a terminator returns. */
static void mprint_result_types(mprint *p, const ir_computation *c) {
  for (uint32_t i = 0; i < c->n_results; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_type(p->out, c->results[i].op->types[c->results[i].index]);
  }
}

/* What the region returns: %a, %b. */
static void mprint_result_values(mprint *p, const ir_computation *c) {
  for (uint32_t i = 0; i < c->n_results; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_value(p, c->results[i]);
  }
}

/* Attributes of the return itself, which hardly any program has. */
static void mprint_return_dict(mprint *p, const ir_computation *c) {
  if (!c->return_mlir || c->return_mlir->n == 0) return;
  base_putc(p->out, ' ');
  mprint_dict(p, c->return_mlir);
}

/*   "stablehlo.return"(%0) : (tensor<f32>) -> () */
static void mprint_generic_return(mprint *p, const ir_computation *c, const char *name) {
  base_putc(p->out, '"');
  base_puts(p->out, name);
  BASE_PUT(p->out, "\"(");
  mprint_result_values(p, c);
  base_putc(p->out, ')');
  mprint_return_dict(p, c);
  BASE_PUT(p->out, " : (");
  mprint_result_types(p, c);
  BASE_PUT(p->out, ") -> ()");
}

/* func's and sdy's: attributes first. */
static void mprint_func_return(mprint *p, const ir_computation *c, const char *name) {
  base_puts(p->out, name);
  mprint_return_dict(p, c);
  if (c->n_results == 0) return;
  base_putc(p->out, ' ');
  mprint_result_values(p, c);
  BASE_PUT(p->out, " : ");
  mprint_result_types(p, c);
}

/* StableHLO's: attributes behind the values. */
static void mprint_plain_return(mprint *p, const ir_computation *c, const char *name) {
  base_puts(p->out, name);
  base_putc(p->out, ' ');
  mprint_result_values(p, c);
  mprint_return_dict(p, c);
  if (c->n_results == 0) return;
  BASE_PUT(p->out, " : ");
  mprint_result_types(p, c);
}

/* A yield of nothing, which pretty forms leave out. The generic form says every terminator. */
bool mprint_is_silent_return(const mprint *p, const ir_computation *c) {
  if (p->generic || c->n_results || c->return_mlir || !c->return_name) return false;
  return strcmp(c->return_name->s, "shape.assuming_yield") == 0;
}

/* Terminators are not ops here; the computation says what it returns and under which name. */
static void mprint_return(mprint *p, const ir_computation *c) {
  const char *usual = c->kind == IR_FUNCTION ? "func.return" : "stablehlo.return";
  const char *name = c->return_name ? c->return_name->s : usual;
  bool yields = strcmp(name, "shape.assuming_yield") == 0;
  if (c->open_end || mprint_is_silent_return(p, c)) return;
  mprint_spaces(p);
  if (!p->generic && strcmp(name, "func.return") == 0)
    mprint_func_return(p, c, p->in_func ? "return" : "func.return");
  else if (!p->generic && strcmp(name, "sdy.return") == 0)
    mprint_func_return(p, c, name);
  else if (!p->generic && (strcmp(name, "stablehlo.return") == 0 || yields))
    mprint_plain_return(p, c, name);
  else
    mprint_generic_return(p, c, name);
  mprint_trailing_loc(p, c->return_loc, true);
  base_putc(p->out, '\n');
}

/* --- blocks and regions --- */

/*   ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>): */
static void mprint_block_header(mprint *p, const ir_computation *c) {
  mprint_spaces(p);
  BASE_PUT(p->out, "^bb0");
  for (uint32_t i = 0; i < c->n_params; i++) {
    base_puts(p->out, i ? ", " : "(");
    mprint_value(p, (ir_value){c->params[i], 0});
    BASE_PUT(p->out, ": ");
    mprint_type(p->out, c->params[i]->type);
    mprint_trailing_loc(p, c->params[i]->loc, false);
  }
  if (c->n_params) base_putc(p->out, ')');
  BASE_PUT(p->out, ":\n");
}

/* One op a line, two blanks deeper than what is about it; then the return, which is not an op here. */
void mprint_block(mprint *p, const ir_computation *c, bool header) {
  if (header) mprint_block_header(p, c);
  p->indent += 2;
  IR_FOR_OPS(op, c) {
    if (op->opcode == IR_OP_PARAMETER) continue;
    mprint_spaces(p);
    mprint_op(p, op);
    base_putc(p->out, '\n');
  }
  mprint_return(p, c);
  assert(p->indent >= 2);
  p->indent -= 2;
}

/* Readers bound how deep regions nest. An empty region prints as "{" and "}" on two lines. */
void mprint_region(mprint *p, const ir_computation *c, bool arguments) {
  bool in_func = p->in_func;
  p->in_func = c->kind == IR_FUNCTION;
  BASE_PUT(p->out, "{\n");
  if (!c->declaration) mprint_block(p, c, arguments && c->n_params);
  mprint_spaces(p);
  base_putc(p->out, '}');
  p->in_func = in_func;
}

/* --- ops --- */

/* Inherent attributes are properties, which generic text has in <{...}>. */
static bool mprint_is_inherent(const ir_op *op, const base_istr *key) {
  if (op->opcode == IR_OP_UNREGISTERED) return mprint_is_property(op, key);
  if (ir_mattr_spec_find(op->opcode, key->s, key->n)) return true;
  if (op->opcode == IR_OP_CALL) {
    static const char *const more[] = {"arg_attrs", "no_inline", "res_attrs"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
      if (strcmp(key->s, more[i]) == 0) return true;
  }
  return op->opcode == IR_OP_SCAN &&
         (strcmp(key->s, "operandSegmentSizes") == 0 || strcmp(key->s, "resultSegmentSizes") == 0);
}

/* MLIR adds the empty configuration where there is none; it comes first in the order of names. */
static bool mprint_config_default(mprint *p, const ir_op *op, const char *open) {
  const char *name = op->opcode == IR_OP_INFEED ? "infeed_config" : "outfeed_config";
  if ((op->opcode != IR_OP_INFEED && op->opcode != IR_OP_OUTFEED) || ir_mattr_of(op, name)) return false;
  base_puts(p->out, open);
  base_puts(p->out, name);
  BASE_PUT(p->out, " = \"\"");
  return true;
}

/* The inherent ones, or all others. */
static void mprint_entries(mprint *p, const ir_op *op, bool inherent, const char *open, const char *close) {
  bool some = inherent && mprint_config_default(p, op, open);
  for (uint32_t i = 0; op->mlir && i < op->mlir->n; i++) {
    if (mprint_is_inherent(op, op->mlir->v[i].key) != inherent) continue;
    base_puts(p->out, some ? ", " : open);
    some = true;
    mprint_entry(p, &op->mlir->v[i]);
  }
  if (some) base_puts(p->out, close);
}

/*   stablehlo.add      "my_dialect.op" for what xlac does not know
 *
 * Ops without a MLIR name (HLO's own) have their HLO name. */
static const char *mprint_op_name(const ir_op *op) {
  if (op->opcode == IR_OP_UNREGISTERED) return op->u.name->s;
  const ir_op_info *info = ir_opcode_info(op->opcode);
  return info->mlir ? info->mlir->name : info->text;
}

/*   "name"(operands) <{properties}> ({regions}) {attributes} : (types) -> types */
void mprint_generic_op(mprint *p, const ir_op *op, bool name) {
  if (name) {
    const char *s = mprint_op_name(op);
    mprint_quoted(p->out, s, strlen(s));
  }
  base_putc(p->out, '(');
  mprint_operands(p, op, 0, op->n_operands);
  base_putc(p->out, ')');
  mprint_entries(p, op, true, " <{", "}>");
  for (uint32_t i = 0; i < op->n_called; i++) {
    base_puts(p->out, i ? ", " : " (");
    mprint_region(p, op->called[i], true);
  }
  if (op->n_called) base_putc(p->out, ')');
  mprint_entries(p, op, false, " {", "}");
  BASE_PUT(p->out, " : ");
  mprint_function_type(p, op);
}

/* "%3:2 = " */
static void mprint_results(mprint *p, const ir_op *op) {
  if (op->n_results == 0) return;
  mprint_name name = p->names[op->id];
  if (name.stem == MPRINT_EACH) {
    for (uint32_t i = 0; i < op->n_results; i++) {
      if (i) BASE_PUT(p->out, ", ");
      mprint_put_name(p->out, p->each.items[name.number + i]);
    }
  } else if (name.stem == MPRINT_OTHER) {
    mprint_put_other(p, name);
  } else {
    mprint_put_name(p->out, name);
    if (op->n_results > 1) {
      base_putc(p->out, ':');
      base_put_u64(p->out, op->n_results);
    }
  }
  BASE_PUT(p->out, " = ");
}

/* Inside of a function, a call has no dialect in front. */
void mprint_op(mprint *p, const ir_op *op) {
  mprint_results(p, op);
  const ir_mlir_info *info = ir_opcode_info(op->opcode)->mlir;
  if (p->generic || !info || !info->form[0] || !mprint_is_sayable(p, op)) {
    if (p->generic || !mprint_known(p, op)) mprint_generic_op(p, op, true);
  } else {
    bool short_name = op->opcode == IR_OP_CALL && p->in_func;
    base_puts(p->out, short_name ? "call" : info->name);
    mprint_form(p, op, info->form);
  }
  mprint_trailing_loc(p, op->loc, true);
}
