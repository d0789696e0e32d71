/* The module's structure: symbols, regions with all their parts, uses after definitions and within reach. */
#include "verify.h"
#include "../verify/check.h"

#define SV_MAX_DEPTH 512

static int sv_fail_at(const ir_computation *c, xlac_error *err, const char *what) {
  return base_fail_at(err, XLAC_E_VERIFY_STRUCTURE, c->line, c->col, c->name ? c->name->s : "", "%s %s",
                      c->kind == IR_FUNCTION ? "the function" : "a region", what);
}

static int sv_check_parts(const ir_computation *c, xlac_error *err) {
  for (uint32_t i = 0; i < c->n_params; i++)
    if (!c->params[i] || !c->params[i]->type) return sv_fail_at(c, err, "lacks a parameter");
  for (uint32_t i = 0; i < c->n_results; i++) {
    const ir_value *r = &c->results[i];
    if (!r->op || r->index >= r->op->n_results || !r->op->types || !r->op->types[r->index])
      return sv_fail_at(c, err, "returns no value");
  }
  IR_FOR_OPS(op, c) {
    for (uint32_t i = 0; i < op->n_results; i++)
      if (!op->types || !op->types[i])
        return ir_check_stamp(op, base_fail(err, XLAC_E_VERIFY_STRUCTURE, "a result has no type"), err);
    for (uint32_t i = 0; i < op->n_operands; i++) {
      const ir_use *u = &op->operands[i];
      if (!u->op || u->index >= u->op->n_results || !u->op->types || !u->op->types[u->index])
        return ir_check_stamp(op, base_fail(err, XLAC_E_VERIFY_STRUCTURE, "operand %u is no value", i), err);
    }
    for (uint32_t i = 0; i < op->n_called; i++)
      if (!op->called[i])
        return ir_check_stamp(op, base_fail(err, XLAC_E_VERIFY_STRUCTURE, "region %u is missing", i), err);
  }
  return 0;
}

/* Numbers ops in text order; where a region is inside its op comes after it. */
typedef struct sv_order {
  uint32_t *place; /* by op id; 0: not reached */
  uint32_t next;
} sv_order;

static int sv_number_ops(const ir_computation *c, sv_order *order, uint32_t depth, xlac_error *err) {
  if (depth > SV_MAX_DEPTH) return base_fail_at(err, XLAC_E_TOO_DEEP, c->line, c->col, "", "regions nest too deep");
  IR_FOR_OPS(op, c) {
    order->place[op->id] = order->next++;
    for (uint32_t i = 0; i < op->n_called; i++)
      if (op->called[i]->owner == op) TRY(sv_number_ops(op->called[i], order, depth + 1, err));
  }
  return 0;
}

bool sv_is_isolated(const ir_op *op) {
  const sv_rule *r = sv_rule_of(op->opcode);
  return r && (r->traits & SV_ISOLATED);
}

/* Whether code at place `at` of computation c may use def: c or one around it holds it, before. */
static const char *sv_use_error(const ir_op *def, const ir_computation *c, uint32_t at, const sv_order *order) {
  const ir_op *inside = NULL;
  bool isolated = false;
  while (c && c != def->parent) {
    inside = c->owner;
    isolated = isolated || (inside && sv_is_isolated(inside));
    c = inside ? inside->parent : NULL;
  }
  if (!c) return "uses a value of another region";
  if (isolated) return "uses a value from outside its region, which is isolated from above";
  if (order->place[def->id] >= at || inside == def) return "uses a value that is not defined before it";
  return NULL;
}

static int sv_check_uses(const ir_computation *c, const sv_order *order, xlac_error *err) {
  IR_FOR_OPS(op, c) {
    for (uint32_t i = 0; i < op->n_operands; i++) {
      const char *what = sv_use_error(op->operands[i].op, c, order->place[op->id], order);
      if (what) return ir_check_stamp(op, base_fail(err, XLAC_E_VERIFY_STRUCTURE, "operand %u %s", i, what), err);
    }
    for (uint32_t i = 0; i < op->n_called; i++)
      if (op->called[i]->owner == op) TRY(sv_check_uses(op->called[i], order, err));
  }
  for (uint32_t i = 0; i < c->n_results; i++) {
    uint32_t end = c->last ? order->place[c->last->id] + 1 : c->owner ? order->place[c->owner->id] : 0;
    const char *what = sv_use_error(c->results[i].op, c, end, order);
    if (what) return sv_fail_at(c, err, what);
  }
  return 0;
}

static int sv_check_order(ir_module *m, xlac_error *err) {
  sv_order order = {.next = 1};
  size_t bytes;
  if (!base_mul(m->n_ids + (size_t)1, sizeof *order.place, &bytes)) return base_oom(err, "the order of ops");
  order.place = base_malloc(m->alloc, bytes);
  if (!order.place) return base_oom(err, "the order of ops");
  memset(order.place, 0, bytes);
  int status = 0;
  for (const ir_computation *c = m->first; c && status == 0; c = c->next)
    if (!c->owner) status = sv_number_ops(c, &order, 0, err);
  for (const ir_computation *c = m->first; c && status == 0; c = c->next)
    if (!c->owner) status = sv_check_uses(c, &order, err);
  base_free(m->alloc, order.place);
  return status;
}

int sv_check_module(ir_module *m, sv_functions *functions, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, m) {
    TRY(sv_check_parts(c, err));
    if (c->kind != IR_FUNCTION || c->owner) continue;
    if (base_map_ptr(&functions->by_name, c->name)) return sv_fail_at(c, err, "has the name of another one");
    if (!base_map_set(&functions->by_name, base_key(c->name), base_key(c)))
      return base_oom(err, "the functions' names");
  }
  return sv_check_order(m, err);
}

const ir_computation *sv_function(const sv *v, const ir_mattr *symbol) {
  if (symbol->kind != IR_M_SYMBOL || symbol->v.list->n != 1) return NULL;
  const base_istr *s = symbol->v.list->v[0]->str;
  if (v->functions) return base_map_ptr(&v->functions->by_name, s);
  IR_FOR_COMPUTATIONS(c, v->m)
  if (c->kind == IR_FUNCTION && !c->owner && c->name == s) return c;
  return NULL;
}

int sv_check_callable(const sv *v, const ir_computation *f, const char *id) {
  if (!ir_returns_otherwise(f)) return 0;
  return sv_fail_code(v, XLAC_E_VERIFY_CALLED, id,
                      "calls @%s, whose last op does not give what it declares; expected func.return", f->name->s);
}

bool sv_symbol_exists(const sv *v, const char *name) {
  IR_FOR_COMPUTATIONS(c, v->m) {
    if (c->owner) continue;
    if (c->name && strcmp(c->name->s, name) == 0) return true;
    if (c->kind == IR_SYMBOL && c->first && strcmp(ir_m_get_str(c->first, "sym_name"), name) == 0) return true;
  }
  return false;
}
