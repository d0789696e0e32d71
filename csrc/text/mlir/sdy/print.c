/* Meshes, axes, shardings, rules and edges, as Shardy prints them; and the pretty forms of sdy's ops.
 *
 *   <["x"=2, "y"=4]>                                        a mesh
 *   <@mesh, [{"x", ?}p1, {"y":(1)2}], replicated={"z"}>      a sharding: open, with priority, sub-axis
 *   <([i, kj])->([i]) {i=2, j=4, k=2} reduction={k}>         a rule */
#include "print.h"

/* Before every element but the first. */
static void sdy_comma(base_text *o, uint32_t i) {
  if (i) BASE_PUT(o, ", ");
}

/*   "x" */
static void sdy_put_name(base_text *o, const base_istr *name) {
  assert(name);
  mprint_quoted(o, name->s, name->n);
}

/*   "x"   "x":(1)2 */
static void sdy_put_axis(base_text *o, sdy_axis a) {
  sdy_put_name(o, a.name);
  if (!a.size) return;
  BASE_PUT(o, ":(");
  base_put_i64(o, a.pre);
  base_putc(o, ')');
  base_put_i64(o, a.size);
}

/*   "x", "y":(2)4 */
static void sdy_put_axes(base_text *o, sdy_axes a) {
  for (uint32_t i = 0; i < a.n; i++) {
    sdy_comma(o, i);
    sdy_put_axis(o, a.v[i]);
  }
}

/*   {"x", "y"} */
static void sdy_put_braces(base_text *o, sdy_axes a) {
  base_putc(o, '{');
  sdy_put_axes(o, a);
  base_putc(o, '}');
}

/* Device ids only where they are not 0, 1, 2, ... */
static void sdy_put_mesh(base_text *o, const sdy_mesh *mesh) {
  BASE_PUT(o, "<[");
  for (uint32_t i = 0; i < mesh->n_axes; i++) {
    sdy_comma(o, i);
    sdy_put_name(o, mesh->axes[i].name);
    base_putc(o, '=');
    base_put_i64(o, mesh->axes[i].size);
  }
  base_putc(o, ']');
  if (mesh->n_ids) {
    BASE_PUT(o, ", device_ids=[");
    for (uint32_t i = 0; i < mesh->n_ids; i++) {
      sdy_comma(o, i);
      base_put_i64(o, mesh->ids[i]);
    }
    base_putc(o, ']');
  }
  base_putc(o, '>');
}

/* --- shardings --- */

/* '?' marks a dimension that may be sharded further; priority -1 is none. */
static void sdy_put_dim(base_text *o, const sdy_dim *d) {
  base_putc(o, '{');
  sdy_put_axes(o, d->axes);
  if (d->open) base_puts(o, d->axes.n ? ", ?" : "?");
  base_putc(o, '}');
  if (d->priority < 0) return;
  base_putc(o, 'p');
  base_put_i64(o, d->priority);
}

/* The mesh is a name or stands in place; a reduction other than sum stands before the axes that are unreduced. */
static void sdy_put_sharding(base_text *o, const sdy_sharding *s) {
  assert((s->mesh_name || s->mesh) && s->reduction <= SDY_MIN);
  base_putc(o, '<');
  if (s->mesh_name) {
    mprint_symbol(o, s->mesh_name->s, s->mesh_name->n);
  } else {
    BASE_PUT(o, "mesh");
    sdy_put_mesh(o, s->mesh);
  }
  BASE_PUT(o, ", [");
  for (uint32_t i = 0; i < s->n_dims; i++) {
    sdy_comma(o, i);
    sdy_put_dim(o, &s->dims[i]);
  }
  base_putc(o, ']');
  if (s->replicated.n) {
    BASE_PUT(o, ", replicated=");
    sdy_put_braces(o, s->replicated);
  }
  if (s->unreduced.n) {
    static const char *const words[] = {[SDY_SUM] = "", [SDY_MAX] = "max", [SDY_MIN] = "min"};
    BASE_PUT(o, ", unreduced=");
    base_puts(o, words[s->reduction]);
    sdy_put_braces(o, s->unreduced);
  }
  base_putc(o, '>');
}

/*   [<@mesh, [{"x"}]>, <@mesh, [{}]>] */
void mlir_sdy_print_list(base_text *o, const sdy_shardings *list) {
  base_putc(o, '[');
  for (uint32_t i = 0; i < list->n; i++) {
    sdy_comma(o, i);
    sdy_put_sharding(o, list->v[i]);
  }
  base_putc(o, ']');
}

/* The same in angle brackets, as the attribute has it. */
static void sdy_put_shardings(base_text *o, const sdy_shardings *list) {
  base_putc(o, '<');
  mlir_sdy_print_list(o, list);
  base_putc(o, '>');
}

/* --- rules --- */

/*   i, j, ... z, z_1, z_2, ... */
static void sdy_put_factor(base_text *o, int64_t factor) {
  if (factor <= 'z' - 'i') {
    base_putc(o, (char)('i' + factor));
    return;
  }
  BASE_PUT(o, "z_");
  base_put_i64(o, factor - ('z' - 'i'));
}

/* The factors of each dimension, major to minor, without anything between: [i, kj]. */
static void sdy_put_map(base_text *o, const sdy_tensor_map *map) {
  base_putc(o, '[');
  for (uint32_t i = 0; i < map->n_dims; i++) {
    sdy_comma(o, i);
    for (uint32_t k = 0; k < map->dims[i].n; k++) sdy_put_factor(o, map->dims[i].v[k]);
  }
  base_putc(o, ']');
}

/*   ([i, j], [j, k]) */
static void sdy_put_maps(base_text *o, uint32_t n, const sdy_tensor_map *maps) {
  base_putc(o, '(');
  for (uint32_t i = 0; i < n; i++) {
    sdy_comma(o, i);
    sdy_put_map(o, &maps[i]);
  }
  base_putc(o, ')');
}

/*    reduction={k} */
static void sdy_put_factors(base_text *o, const char *word, sdy_ints factors) {
  if (!factors.n) return;
  base_putc(o, ' ');
  base_puts(o, word);
  BASE_PUT(o, "={");
  for (uint32_t i = 0; i < factors.n; i++) {
    sdy_comma(o, i);
    sdy_put_factor(o, factors.v[i]);
  }
  base_putc(o, '}');
}

/* Sizes are listed in the order of the factors. */
static void sdy_put_rule(base_text *o, const sdy_rule *rule) {
  base_putc(o, '<');
  sdy_put_maps(o, rule->n_operands, rule->operands);
  BASE_PUT(o, "->");
  sdy_put_maps(o, rule->n_results, rule->results);
  if (rule->sizes.n) BASE_PUT(o, " {");
  for (uint32_t i = 0; i < rule->sizes.n; i++) {
    sdy_comma(o, i);
    sdy_put_factor(o, i);
    base_putc(o, '=');
    base_put_i64(o, rule->sizes.v[i]);
  }
  if (rule->sizes.n) base_putc(o, '}');
  sdy_put_factors(o, "reduction", rule->reduction);
  sdy_put_factors(o, "need_replication", rule->need_replication);
  sdy_put_factors(o, "permutation", rule->permutation);
  sdy_put_factors(o, "blocked_propagation", rule->blocked);
  if (rule->custom) BASE_PUT(o, ", custom");
  base_putc(o, '>');
}

/* --- lists, parameters, names, edges --- */

/*   [{"x"}, {"y", "z"}] */
static void sdy_put_axis_lists(base_text *o, const sdy_axis_lists *lists) {
  base_putc(o, '[');
  for (uint32_t i = 0; i < lists->n; i++) {
    sdy_comma(o, i);
    sdy_put_braces(o, lists->v[i]);
  }
  base_putc(o, ']');
}

/*   {"x"}: 0->2 */
static void sdy_put_param(base_text *o, const sdy_param *param) {
  sdy_put_braces(o, param->axes);
  BASE_PUT(o, ": ");
  base_put_i64(o, param->from);
  BASE_PUT(o, "->");
  base_put_i64(o, param->to);
}

/*   [{"x"}: 0->2, {"y"}: 1->3] */
static void sdy_put_params(base_text *o, const sdy_params *params) {
  base_putc(o, '[');
  for (uint32_t i = 0; i < params->n; i++) {
    sdy_comma(o, i);
    sdy_put_param(o, &params->v[i]);
  }
  base_putc(o, ']');
}

/*   {"x", "y"} */
static void sdy_put_names(base_text *o, const sdy_names *names) {
  base_putc(o, '{');
  for (uint32_t i = 0; i < names->n; i++) {
    sdy_comma(o, i);
    sdy_put_name(o, names->v[i]);
  }
  base_putc(o, '}');
}

/*   operand-0      result-1 */
static void sdy_put_edge_value(base_text *o, sdy_edge_value v) {
  base_puts(o, v.result ? "result-" : "operand-");
  base_put_i64(o, v.index);
}

/*   {"y" = operand-1 -> [operand-0, result-0]} */
static void sdy_put_edge(base_text *o, const sdy_edge *e) {
  base_putc(o, '{');
  sdy_put_axis(o, e->axis);
  BASE_PUT(o, " = ");
  sdy_put_edge_value(o, e->from);
  BASE_PUT(o, " -> [");
  for (uint32_t i = 0; i < e->n; i++) {
    sdy_comma(o, i);
    sdy_put_edge_value(o, e->to[i]);
  }
  BASE_PUT(o, "]}");
}

/*   <[{step-0 = [{...}, {...}]}]> */
static void sdy_put_edges(base_text *o, const sdy_edges *edges) {
  BASE_PUT(o, "<[");
  for (uint32_t i = 0; i < edges->n; i++) {
    sdy_comma(o, i);
    BASE_PUT(o, "{step-");
    base_put_i64(o, edges->v[i].index);
    BASE_PUT(o, " = [");
    for (uint32_t k = 0; k < edges->v[i].n; k++) {
      sdy_comma(o, k);
      sdy_put_edge(o, &edges->v[i].edges[k]);
    }
    BASE_PUT(o, "]}");
  }
  BASE_PUT(o, "]>");
}

/* `what` is the record of that kind, as sdy_of gives it. */
void mlir_sdy_print_bare(base_text *o, sdy_kind kind, const void *what) {
  assert(what);
  switch (kind) {
    case SDY_MESH:
      sdy_put_mesh(o, what);
      return;
    case SDY_SHARDING:
      sdy_put_sharding(o, what);
      return;
    case SDY_SHARDINGS:
      sdy_put_shardings(o, what);
      return;
    case SDY_RULE:
      sdy_put_rule(o, what);
      return;
    case SDY_AXIS:
      sdy_put_axis(o, *(const sdy_axis *)what);
      return;
    case SDY_AXES:
      sdy_put_braces(o, *(const sdy_axes *)what);
      return;
    case SDY_AXIS_LISTS:
      sdy_put_axis_lists(o, what);
      return;
    case SDY_PARAM:
      sdy_put_param(o, what);
      return;
    case SDY_PARAMS:
      sdy_put_params(o, what);
      return;
    case SDY_MANUAL_AXES:
      sdy_put_names(o, what);
      return;
    case SDY_EDGES:
      sdy_put_edges(o, what);
      return;
    case SDY_DIM:
      sdy_put_dim(o, what);
      return;
    case SDY_NONE:
    case SDY_KINDS:
      break;
  }
}

/* MLIR puts the name inside the brackets where the body does not begin with one. */
void mlir_sdy_print_attr(base_text *o, const ir_mattr *a) {
  sdy_kind kind = (sdy_kind)a->sub;
  bool angle =
      kind == SDY_MESH || kind == SDY_SHARDING || kind == SDY_SHARDINGS || kind == SDY_RULE || kind == SDY_EDGES;
  base_puts(o, angle ? "#sdy." : "#sdy<");
  base_puts(o, sdy_kind_name(kind));
  mlir_sdy_print_bare(o, kind, a->v.sdy);
  if (!angle) base_putc(o, '>');
}

/* ---- The pretty forms of sdy ops that no string describes. Each prints its own blanks. */

/*   @mesh */
void mlir_sdy_print_name(mprint *p, const ir_op *op, const char *form) {
  (void)form;
  const ir_mattr *name = ir_mattr_of(op, "sym_name");
  base_putc(p->out, ' ');
  if (name && name->str) mprint_symbol(p->out, name->str->s, name->str->n);
}

/*    allowed_direction=FORWARD */
void mlir_sdy_print_direction(mprint *p, const ir_op *op, const char *form) {
  static const char *const words[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};
  (void)form;
  BASE_PUT(p->out, " allowed_direction=");
  base_puts(p->out, words[ir_m_get_int(op, "allowed_direction", 0) & 3]);
}

/*    max   or nothing for sum */
void mlir_sdy_print_reduction(mprint *p, const ir_op *op, const char *form) {
  static const char *const words[] = {"", " max", " min"};
  int64_t which = ir_m_get_int(op, "reduction_op", SDY_SUM);
  (void)form;
  if (which > 0 && which <= SDY_MIN) base_puts(p->out, words[which]);
}

/*    in_shardings=[<...>, <...>] */
static void sdy_print_stripped(mprint *p, const ir_op *op, const char *key) {
  const sdy_shardings *list = sdy_of(ir_mattr_of(op, key), SDY_SHARDINGS);
  if (!list) return;
  base_putc(p->out, ' ');
  base_puts(p->out, key);
  base_putc(p->out, '=');
  mlir_sdy_print_list(p->out, list);
}

/*   (%a, %b) */
static void sdy_print_operands(mprint *p, const ir_op *op) {
  base_putc(p->out, '(');
  mprint_operands(p, op, 0, op->n_operands);
  base_putc(p->out, ')');
}

/* " (%arg1: t) {...} {attributes} : (t) -> t" */
static void sdy_print_body(mprint *p, const ir_op *op, const char *form) {
  assert(op->n_called == 1);
  const ir_computation *c = op->called[0];
  BASE_PUT(p->out, " (");
  for (uint32_t i = 0; i < c->n_params; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_argument(p, c->params[i]);
  }
  BASE_PUT(p->out, ") ");
  mprint_region(p, c, false);
  mprint_rest(p, op, form, false);
  BASE_PUT(p->out, " : ");
  mprint_function_type(p, op);
}

/*   (%0) in_shardings=[...] out_shardings=[...] manual_axes={"x"} (%arg1: t) { ... } : (t) -> t */
void mlir_sdy_print_manual(mprint *p, const ir_op *op, const char *form) {
  sdy_print_operands(p, op);
  sdy_print_stripped(p, op, "in_shardings");
  sdy_print_stripped(p, op, "out_shardings");
  BASE_PUT(p->out, " manual_axes=");
  mlir_sdy_print_bare(p->out, SDY_MANUAL_AXES, ir_mattr_of(op, "manual_axes")->v.sdy);
  sdy_print_body(p, op, form);
}

/*   <"name">(%a) in_shardings=[...] out_shardings=[...] (%arg0: t) { ... } */
void mlir_sdy_print_named_computation(mprint *p, const ir_op *op, const char *form) {
  const ir_mattr *name = ir_mattr_of(op, "name");
  base_putc(p->out, '<');
  if (name && name->str) mprint_quoted(p->out, name->str->s, name->str->n);
  base_putc(p->out, '>');
  sdy_print_operands(p, op);
  sdy_print_stripped(p, op, "in_shardings");
  sdy_print_stripped(p, op, "out_shardings");
  sdy_print_body(p, op, form);
}

/* Whether the number is one of 0 to `most`, which have words. */
static bool sdy_number_has_word(const ir_op *op, const char *key, int64_t most) {
  int64_t v = ir_m_get_int(op, key, 0);
  return v >= 0 && v <= most;
}

/* Numbers that no word stands for can only be said in the generic form. */
bool mlir_sdy_is_sayable(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_SDY_MANUAL_COMPUTATION:
    case IR_OP_SDY_NAMED_COMPUTATION:
      return op->n_called == 1 && !op->called[0]->declaration;
    case IR_OP_SDY_PROPAGATION_BARRIER:
      return sdy_number_has_word(op, "allowed_direction", 3);
    case IR_OP_SDY_ALL_REDUCE:
    case IR_OP_SDY_REDUCE_SCATTER:
      return sdy_number_has_word(op, "reduction_op", SDY_MIN);
    default:
      return true;
  }
}
