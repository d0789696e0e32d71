/* Ops and types: walking and reading.
 *
 * Reading takes the lock for the time of one function; texts and lists handed out are the module's unless
 * they are said to be the caller's. Handles of removed ops answer what they still know, and say that they
 * are not live. */
#include "api.h"

/* --- Ops: walking and reading. --- */

int api_check_live(const ir_op *op, xlac_error *err) {
  if (api_op_live(op)) return 0;
  return base_fail_at(err, XLAC_E_EDIT, op->line, op->col, op->name->s, "%s has been removed from its module",
                      op->name->s);
}

/* NULL begins at c's first op, and is the end: text order, which need not be an order of execution. */
xlac_op *xlac_op_next(xlac_module *m, xlac_computation *c, xlac_op *op) {
  api_lock(m);
  ir_op *next = op ? api_op(op)->next : api_computation(c)->first;
  api_unlock(m);
  return api_op_out(next);
}

/* Interned names are compared by address. */
static ir_op *find_op_in(const ir_computation *c, const base_istr *name) {
  IR_FOR_OPS(op, c) {
    if (op->name == name) return op;
  }
  return NULL;
}

/* In one computation, or in the whole module where c is NULL. */
xlac_op *xlac_op_find(xlac_module *m, xlac_computation *c, const char *name) {
  ir_op *found = NULL;
  api_lock(m);
  const base_istr *s = name ? base_intern_find(&m->ir->strings, name, strlen(name)) : NULL;
  if (s && c) found = find_op_in(api_computation(c), s);
  if (s && !c) {
    IR_FOR_COMPUTATIONS(each, m->ir) {
      if (!found) found = find_op_in(each, s);
    }
  }
  api_unlock(m);
  return api_op_out(found);
}

bool xlac_op_is_live(xlac_module *m, xlac_op *op) {
  api_lock(m);
  bool live = api_op_live(api_op(op));
  api_unlock(m);
  return live;
}

/* More than any elementwise op has; tuples and concatenates have more. */
#define FEW_OPERANDS 16

/* Whether `use` is the first one of its user: of users with few operands the one of the lowest slot, of others the
 * first in the list, by a table, so that a constant used everywhere does not cost a square. Without memory for the
 * table a user may count more than once. */
static bool is_first_use(const ir_op *op, const ir_use *use, base_map *seen) {
  const ir_op *user = use->user;
  if (user->n_operands > FEW_OPERANDS) {
    uint64_t had;
    if (base_map_get(seen, base_key(user), &had)) return false;
    (void)base_map_set(seen, base_key(user), 1);
    return true;
  }
  for (uint32_t i = 0; i < use->slot; i++)
    if (user->operands[i].op == op) return false;
  return true;
}

/* Writes up to `cap` distinct users and returns how many there are. Call it with cap 0 to count. */
static uint32_t list_users(const ir_op *op, xlac_op **users, uint32_t cap) {
  assert(users || cap == 0);
  uint32_t n = 0;
  base_map seen;
  base_map_init(&seen, base_alloc_libc);
  IR_FOR_USES(use, op) {
    if (!is_first_use(op, use, &seen)) continue;
    if (n < cap) users[n] = api_op_out(use->user);
    n++;
  }
  base_map_free(&seen);
  return n;
}

uint32_t xlac_op_users(xlac_module *m, xlac_op *handle, xlac_op **users, uint32_t cap) {
  api_lock(m);
  uint32_t n = list_users(api_op(handle), users, cap);
  api_unlock(m);
  return n;
}

/* The type of ops without results. */
static const ir_type no_results = {.kind = IR_TYPE_TUPLE, .bare = &no_results};

/* What a removed op once had as operands may be gone, so they count as none. */
void xlac_op_get(xlac_module *m, xlac_op *handle, xlac_op_info *out) {
  const ir_op *op = api_op(handle);
  api_lock(m);
  bool live = api_op_live(op);
  *out = (xlac_op_info){
      .name = op->name->s,
      .opcode = ir_opcode_text(op->opcode),
      .type = api_type_out(op->type ? op->type : &no_results),
      .computation = live ? api_computation_out(op->parent) : NULL,
      .id = op->id,
      .n_operands = live ? op->n_operands : 0,
      .n_called = op->n_called,
      .n_control_predecessors = op->n_control_preds,
      .n_attrs = op->n_attrs,
      .parameter = op->opcode == IR_OP_PARAMETER ? op->u.number : -1,
      .line = op->line,
      .col = op->col,
  };
  api_unlock(m);
}

/* NULL past the end. */
xlac_op *xlac_op_operand(xlac_module *m, xlac_op *handle, uint32_t index) {
  const ir_op *op = api_op(handle);
  api_lock(m);
  ir_op *operand = index < op->n_operands ? op->operands[index].op : NULL;
  api_unlock(m);
  return api_op_out(operand);
}

/* In the op's own order: while has condition, then body. */
xlac_computation *xlac_op_called(xlac_module *m, xlac_op *handle, uint32_t index) {
  const ir_op *op = api_op(handle);
  api_lock(m);
  ir_computation *c = index < op->n_called ? op->called[index] : NULL;
  api_unlock(m);
  return api_computation_out(c);
}

uint32_t xlac_op_control_predecessors(xlac_module *m, xlac_op *handle, xlac_op **before, uint32_t cap) {
  uint32_t n = 0;
  api_lock(m);
  IR_FOR_CONTROL_PREDS(edge, api_op(handle)) {
    if (n < cap) before[n] = api_op_out(edge->pred);
    n++;
  }
  api_unlock(m);
  return n;
}

/* --- attributes --- */

/* Attributes that are set, without called computations and control predecessors. */
const char *xlac_op_attr_key(xlac_module *m, xlac_op *handle, uint32_t index) {
  const ir_op *op = api_op(handle);
  api_lock(m);
  const char *key = index < op->n_attrs ? ir_attr_table[op->attrs[index].key].text : NULL;
  api_unlock(m);
  return key;
}

/* "slice_sizes" is the text of two keys. */
static const ir_attr *find_attr_by_text(const ir_op *op, const char *text) {
  for (uint32_t i = 0; i < op->n_attrs; i++)
    if (strcmp(ir_attr_table[op->attrs[i].key].text, text) == 0) return &op->attrs[i];
  return NULL;
}

/* `%name`, or `{%a, %b}` with braces. */
static void put_computation_names(base_text *t, const ir_op *op, uint32_t from, uint32_t to, bool braces) {
  assert(from <= to && to <= op->n_called);
  if (braces) base_putc(t, '{');
  for (uint32_t i = from; i < to; i++) {
    if (i > from) BASE_PUT(t, ", ");
    base_putc(t, '%');
    base_put(t, op->called[i]->name->s, op->called[i]->name->n);
  }
  if (braces) base_putc(t, '}');
}

/* Which of two named computations `key` is. */
static bool called_is(const ir_op *op, const char *key, const char *first, const char *second, uint32_t *slot) {
  if (strcmp(key, first) == 0)
    *slot = 0;
  else if (second && strcmp(key, second) == 0)
    *slot = 1;
  else
    return false;
  return *slot < op->n_called;
}

/* Writes the called computations that stand under `key`; false when there are none. */
static bool put_called_names(base_text *t, const ir_op *op, const char *key) {
  uint32_t slot = 0;
  bool list = false, found = false;
  switch (op->opcode) {
    case IR_OP_WHILE:
      found = called_is(op, key, "condition", "body", &slot);
      break;
    case IR_OP_SELECT_AND_SCATTER:
      found = called_is(op, key, "select", "scatter", &slot);
      break;
    case IR_OP_CONDITIONAL:
      list = strcmp(key, "branch_computations") == 0;
      found = list ? op->n_called > 0 : called_is(op, key, "true_computation", "false_computation", &slot);
      break;
    case IR_OP_CUSTOM_CALL:
      list = strcmp(key, "called_computations") == 0 && op->n_called > 0;
      found = list || (op->n_called == 1 && strcmp(key, "to_apply") == 0);
      break;
    default: {
      uint16_t flags;
      ir_attr_key k = ir_attr_from_text(key, strlen(key));
      found = op->n_called == 1 && ir_attr_table[k].kind == IR_KIND_CALLED && ir_opcode_takes(op->opcode, k, &flags);
    }
  }
  if (found) put_computation_names(t, op, list ? 0 : slot, list ? op->n_called : slot + 1, list);
  return found;
}

/* `{%a, %b}`; false where there are none. */
static bool put_control(base_text *t, const ir_op *op) {
  if (op->n_control_preds == 0) return false;
  base_putc(t, '{');
  IR_FOR_CONTROL_PREDS(e, op) {
    if (e != op->control_preds) BASE_PUT(t, ", ");
    base_putc(t, '%');
    base_put(t, e->pred->name->s, e->pred->name->n);
  }
  base_putc(t, '}');
  return true;
}

/* As HLO's text has it behind `key=`. */
static bool put_attr(base_text *t, const ir_op *op, const char *key) {
  const ir_attr *a = find_attr_by_text(op, key);
  if (a) {
    text_put_attr_value(t, op, a);
    return true;
  }
  if (strcmp(key, "control-predecessors") == 0) return put_control(t, op);
  return put_called_names(t, op, key);
}

/* *text is NULL where op has no such attribute, which is no error. */
int xlac_op_attr(xlac_module *m, xlac_op *op, const char *key, char **text, xlac_error *err) {
  base_text t;
  TRY(api_check_text(key, "the attribute's key", err));
  base_text_init(&t, base_alloc_libc);
  api_lock(m);
  bool found = put_attr(&t, api_op(op), key);
  api_unlock(m);
  if (found) return api_give_text(&t, text, NULL, err);
  base_text_free(&t);
  *text = NULL;
  return 0;
}

/* --- constants --- */

/* Text printed without large constants has {...} in their place. */
static bool literal_is_whole(const ir_literal *l) {
  if (l->elided) return false;
  for (uint32_t i = 0; l->elements && i < l->type->n_elements; i++)
    if (!literal_is_whole(l->elements[i])) return false;
  return true;
}

/* A copy that does not point into the module. Nesting is a type's, which the reader limits. */
static int copy_literal(const ir_literal *l, xlac_value **out, xlac_error *err) {
  const ir_type *t = l->type;
  if (t->kind == IR_TYPE_TENSOR) return xlac_value_copy(out, t->dtype, t->rank, t->dims, l->data, err);
  if (t->kind != IR_TYPE_TUPLE) return xlac_value_token(out, err);
  xlac_value **elements = base_malloc(base_alloc_libc, (t->n_elements + 1u) * sizeof *elements);
  if (elements == NULL) return base_oom(err, "reading a constant");
  uint32_t n = 0;
  int status = 0;
  while (status == 0 && n < t->n_elements) {
    status = copy_literal(l->elements[n], &elements[n], err);
    if (status == 0) n++;
  }
  if (status == 0) status = xlac_value_tuple(out, n, elements, err);
  for (uint32_t i = 0; i < n; i++) xlac_value_release(elements[i]);
  base_free(base_alloc_libc, elements);
  return status;
}

/* An element written once stands for all. `dense<0.0> : tensor<8x8xf32>`
 * keeps a single element in the module. */
static int copy_splat(const ir_type *t, const void *element, xlac_value **out, xlac_error *err) {
  xlac_value_info info;
  TRY(xlac_value_copy(out, t->dtype, t->rank, t->dims, NULL, err));
  xlac_value_get(*out, &info);
  uint8_t *data = (uint8_t *)(uintptr_t)info.data; /* nobody else has seen it yet */
  size_t size = base_dtype_bytes((base_dtype)t->dtype);
  for (size_t at = 0; at < info.bytes; at += size) memcpy(data + at, element, size);
  return 0;
}

/* In MLIR form the values are an attribute, dense<...>. What is neither dense nor a resource with its
 * bytes has no values here. */
static int copy_dense(const ir_op *op, xlac_value **out, xlac_error *err) {
  const ir_mattr *value = ir_mattr_of(op, "value");
  const ir_literal *l = value && (value->kind == IR_M_DENSE || value->kind == IR_M_RESOURCE) ? value->v.literal : NULL;
  if (l == NULL || !ir_is_tensor(value->type) || !ir_is_tensor(l->type))
    return base_fail_at(err, XLAC_E_BAD_ARGUMENT, op->line, op->col, op->name->s,
                        "the values of %s are not in the module", op->name->s);
  return value->splat ? copy_splat(value->type, l->data, out, err) : copy_literal(l, out, err);
}

/* HLO form has a literal, MLIR form an attribute. */
static int constant_locked(const ir_op *op, xlac_value **out, xlac_error *err) {
  if (op->opcode != IR_OP_CONSTANT)
    return base_fail_at(err, XLAC_E_BAD_ARGUMENT, op->line, op->col, op->name->s, "%s is a %s, not a constant",
                        op->name->s, ir_opcode_text(op->opcode));
  if (op->u.literal == NULL) return copy_dense(op, out, err);
  if (!literal_is_whole(op->u.literal))
    return base_hint(err,
                     base_fail_at(err, XLAC_E_BAD_ARGUMENT, op->line, op->col, op->name->s,
                                  "the values of %s were elided in the text", op->name->s),
                     "print the program with large constants");
  return copy_literal(op->u.literal, out, err);
}

int xlac_op_constant(xlac_module *m, xlac_op *op, xlac_value **out, xlac_error *err) {
  api_lock(m);
  return api_done(m, constant_locked(api_op(op), out, err));
}

/* --- Types: immutable, so no lock. --- */

_Static_assert((int)XLAC_TYPE_TENSOR == IR_TYPE_TENSOR && (int)XLAC_TYPE_TUPLE == IR_TYPE_TUPLE &&
                   (int)XLAC_TYPE_TOKEN == IR_TYPE_TOKEN && (int)XLAC_TYPE_OPAQUE == IR_TYPE_OPAQUE &&
                   (int)XLAC_TYPE_BUFFER == IR_TYPE_BUFFER && (int)XLAC_TYPE_FUTURE == IR_TYPE_FUTURE &&
                   (int)XLAC_TYPE_UNRANKED == IR_TYPE_UNRANKED && (int)XLAC_TYPE_ELEMENT == IR_TYPE_ELEMENT &&
                   (int)XLAC_TYPE_FUNCTION == IR_TYPE_FUNCTION && (int)XLAC_TYPE_OTHER == IR_TYPE_OTHER,
               "public and inner kinds are the same numbers");

void xlac_type_get(const xlac_type *type, xlac_type_info *out) {
  const ir_type *t = api_type(type);
  bool tensor = t->kind == IR_TYPE_TENSOR;
  *out = (xlac_type_info){.kind = t->kind,
                          .dtype = tensor || t->kind == IR_TYPE_UNRANKED || t->kind == IR_TYPE_ELEMENT ? t->dtype : 0,
                          .rank = tensor ? t->rank : 0,
                          .dims = tensor ? t->dims : NULL,
                          .dynamic = tensor ? t->dynamic : NULL,
                          .n_elements = t->kind == IR_TYPE_BUFFER ? 1 : t->n_elements};
}

/* Of a tuple, or the type inside of a buffer; NULL past the end. */
const xlac_type *xlac_type_element(const xlac_type *type, uint32_t index) {
  const ir_type *t = api_type(type);
  if (t->kind == IR_TYPE_BUFFER) return index == 0 ? api_type_out(t->inner) : NULL;
  return index < t->n_elements ? api_type_out(t->elements[index]) : NULL;
}

/* The caller's, freed with xlac_free; NULL when out of memory. `layouts` adds {1,0}. */
char *xlac_type_print(const xlac_type *type, bool layouts) {
  base_text t;
  base_text_init(&t, base_alloc_libc);
  ir_put_type(&t, api_type(type), layouts);
  char *text = NULL;
  return api_give_text(&t, &text, NULL, NULL) == 0 ? text : NULL;
}
