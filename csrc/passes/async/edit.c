/* What passes on chains need: roles of computations, and lists of opcodes in options. */
#include "async.h"

int async_oom(const async_edit *e) {
  return base_oom(e->err, "a pass on async ops");
}

bool async_is_free(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_PARAMETER:
    case IR_OP_CONSTANT:
    case IR_OP_TUPLE:
    case IR_OP_GET_TUPLE_ELEMENT:
    case IR_OP_BITCAST:
    case IR_OP_AFTER_ALL:
    case IR_OP_ADD_DEPENDENCY:
    case IR_OP_OPT_BARRIER:
    case IR_OP_PARTITION_ID:
    case IR_OP_REPLICA_ID:
      return true;
    default:
      return false;
  }
}

/* Whether what op calls runs op by op where op itself does. */
static bool async_calls_sequences(const ir_op *op) {
  return op->opcode == IR_OP_WHILE || op->opcode == IR_OP_CONDITIONAL || op->opcode == IR_OP_CALL;
}

/* Callers before callees: a callee's role is known once all its callers have been looked at. */
static void async_find_roles(async_edit *e) {
  uint8_t *roles = e->roles, *inside = roles + e->n_computations;
  roles[e->m->entry->id] = ASYNC_ROLE_SEQUENCE;
  for (uint32_t i = e->facts.n_order; i-- > 0;) {
    const ir_computation *c = e->facts.order[i];
    if (inside[c->id]) roles[c->id] = ASYNC_ROLE_INSIDE; /* also called by an op that wants it whole */
    IR_FOR_OPS(op, c) {
      bool follows = ir_opcode_has(op->opcode, IR_ASYNC_UPDATE) || ir_opcode_has(op->opcode, IR_ASYNC_DONE);
      for (uint32_t k = 0; k < op->n_called && !follows; k++) {
        uint32_t id = op->called[k]->id;
        e->callers[id]++;
        if (op->opcode == IR_OP_ASYNC_START) {
          roles[id] = ASYNC_ROLE_WRAPPED;
        } else if (async_calls_sequences(op) && roles[c->id] != ASYNC_ROLE_INSIDE) {
          roles[id] = ASYNC_ROLE_SEQUENCE;
        } else {
          inside[id] = 1;
        }
      }
    }
  }
}

int async_edit_begin(async_edit *e, ir_module *m, xlac_error *err) {
  *e = (async_edit){.m = m, .err = err};
  TRY(opt_facts_make(&e->facts, m, err));
  e->n_computations = m->n_computation_ids;
  size_t n = (size_t)e->n_computations;
  e->roles = base_arena_zalloc(&e->facts.arena, 2 * n + 1);
  e->callers = base_arena_zalloc(&e->facts.arena, (n + 1) * sizeof *e->callers);
  if (!e->roles || !e->callers) {
    async_edit_end(e);
    return async_oom(e);
  }
  async_find_roles(e);
  return 0;
}

void async_edit_end(async_edit *e) {
  opt_facts_free(&e->facts);
}

int async_each(async_edit *e, async_visit_fn *fn, void *ctx) {
  for (uint32_t i = 0; i < e->facts.n_order; i++)
    if (e->roles[e->facts.order[i]->id] == ASYNC_ROLE_SEQUENCE) TRY(fn(e, e->facts.order[i], ctx));
  return 0;
}

/* Takes the first name off the list. */
static base_slice async_list_next(base_slice *list) {
  while (list->n && (*list->p == ',' || *list->p == ' ')) list->p++, list->n--;
  base_slice name = {list->p, 0};
  while (name.n < list->n && name.p[name.n] != ',' && name.p[name.n] != ' ') name.n++;
  list->p += name.n;
  list->n -= name.n;
  return name;
}

bool async_list_has(base_slice list, const char *name) {
  for (base_slice next = async_list_next(&list); next.n; next = async_list_next(&list))
    if (base_slice_is(next, name)) return true;
  return false;
}

int async_check_opcodes(base_slice list, const char *pass, xlac_error *err) {
  for (base_slice next = async_list_next(&list); next.n; next = async_list_next(&list)) {
    if (ir_opcode_from_text(next.p, next.n) != IR_OP_INVALID) continue;
    int n = next.n < 80 ? (int)next.n : 80;
    int status = base_fail(err, XLAC_E_BAD_PIPELINE, "%s: there is no opcode \"%.*s\"", pass, n, next.p);
    return base_hint(err, status, "names are those of HLO text, with commas between: ops=dot,all-reduce");
  }
  return 0;
}
