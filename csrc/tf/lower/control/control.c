/* What branches and loops share. */
#include "../control.h"

/* --- values with several tensors --- */

uint32_t tfl_count_leaves(const tfl_value *v) {
  uint32_t n = v->kind == TFL_TENSOR;
  for (uint32_t i = 0; v->kind == TFL_LIST && i < v->n_parts; i++) n += v->parts[i].kind == TFL_TENSOR;
  return n;
}

/* v's tensors as values at the cursor. */
uint32_t tfl_put_leaves(tfl_op *x, tfl_value *v, ir_value *out) {
  uint32_t n = 0;
  if (v->kind == TFL_TENSOR) out[n++] = tfl_use(x, v);
  for (uint32_t i = 0; v->kind == TFL_LIST && i < v->n_parts; i++) {
    tfl_value part = v->parts[i];
    if (part.kind == TFL_TENSOR) out[n++] = tfl_use(x, &part);
  }
  return n;
}

uint32_t tfl_leaf_types(const tfl_value *v, const ir_type **out) {
  uint32_t n = 0;
  if (v->kind == TFL_TENSOR) out[n++] = v->type;
  for (uint32_t i = 0; v->kind == TFL_LIST && i < v->n_parts; i++)
    if (v->parts[i].kind == TFL_TENSOR) out[n++] = v->parts[i].type;
  return n;
}

static tfl_value control_tensor(const ir_type *type, ir_value v) {
  return (tfl_value){.kind = TFL_TENSOR, .type = type, .v = v, .input = -1};
}

/* What v becomes where its tensors are `from`: of an op's results or a region's arguments. */
int tfl_take_leaves(tfl_op *x, tfl_value *v, const ir_value *from, uint32_t *used) {
  *used = tfl_count_leaves(v);
  if (v->kind == TFL_TENSOR) *v = control_tensor(v->type, from[0]);
  if (v->kind != TFL_LIST) return 0;
  tfl_value *parts = BASE_ARRAY(x->arena, tfl_value, (size_t)v->n_parts + 1);
  if (!parts) return x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0, k = 0; i < v->n_parts; i++) {
    parts[i] = v->parts[i];
    if (parts[i].kind == TFL_TENSOR) parts[i] = control_tensor(parts[i].type, from[k++]);
  }
  v->parts = parts;
  return 0;
}

/* Whether both have the same form: kinds, types, handles. */
bool tfl_values_alike(const tfl_value *a, const tfl_value *b) {
  if (a->kind != b->kind || (a->kind == TFL_HANDLE && a->number != b->number)) return false;
  if (a->kind == TFL_TENSOR) return a->type == b->type;
  if (a->kind != TFL_LIST) return true;
  if (a->n_parts != b->n_parts) return false;
  for (uint32_t i = 0; i < a->n_parts; i++)
    if (a->parts[i].kind != b->parts[i].kind || a->parts[i].type != b->parts[i].type) return false;
  return true;
}

int tfl_misfit(tfl_op *x, const char *what, uint32_t i, const tfl_value *a, const tfl_value *b) {
  char one[80] = "something else than a tensor", other[80] = "something else than a tensor";
  if (a->kind == TFL_TENSOR) ir_type_text(a->type, one, sizeof one);
  if (b->kind == TFL_TENSOR) ir_type_text(b->type, other, sizeof other);
  return tfl_fail(x, "%s %u is %s and then %s", what, i, one, other);
}

/* --- resources --- */

tfl_resource *tfl_save_resources(tfl_op *x) {
  const tfl_resource_list *all = &x->b->resources;
  tfl_resource *saved = BASE_ARRAY(x->arena, tfl_resource, (size_t)all->n + 1);
  if (!saved) x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0; saved && i < all->n; i++) saved[i] = *all->items[i];
  return saved;
}

void tfl_restore_resources(tfl_op *x, const tfl_resource *saved, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) *x->b->resources.items[i] = saved[i];
}

/* --- nodes that name functions --- */

int tfl_named_callee(tfl_op *x, const char *attr, tf_callee *out) {
  base_slice name = {attr, 0}, message = {attr, 0};
  (void)tf_attr_func(tf_attr_find(x->node->def->attrs, attr), &name, &message);
  *out = (tf_callee){.name = name, .function = tf_bodies_find(x->b->bodies, name)};
  if (out->function) return 0;
  return tfl_fail(x, "attribute '%s' names no function of the library", attr);
}

/* XlaWhile and XlaIf, which clustering does not look into. */
static int control_xla_callees(tfl_op *x, tf_callees *callees) {
  bool loop = tf_node_is(x->node, "XlaWhile");
  if (!loop && !tf_node_is(x->node, "XlaIf")) return 0;
  callees->n = 2;
  TRY(tfl_named_callee(x, loop ? "cond" : "then_branch", &callees->list[0]));
  return tfl_named_callee(x, loop ? "body" : "else_branch", &callees->list[1]);
}

int tfl_callees(tfl_op *x, tf_callees *callees, uint32_t least) {
  x->status = tf_find_callees(x->b->bodies, x->node, callees, x->err);
  if (x->status) return x->status;
  if (callees->kind == TF_CALL_NONE) TRY(control_xla_callees(x, callees));
  if (callees->cut) return tfl_fail(x, "it has more than %d branches", TF_MOST_CALLEES);
  if (callees->n < least || x->n_in < 1) return tfl_fail(x, "it names %u functions", callees->n);
  return 0;
}

/* What counts as true: a scalar that is not 0, another tensor that is not empty. */
ir_value tfl_truth(tfl_op *x, tfl_value *v) {
  const ir_type *t = v->kind == TFL_TENSOR ? v->type : NULL;
  if (t && t->rank > 0) return tfl_scalar(x, XLAC_PRED, t->count > 0);
  ir_value p = tfl_use(x, v);
  return !p.op || t->dtype == XLAC_PRED ? p : tfl_compare(x, "NE", p, tfl_like(x, p, 0));
}
