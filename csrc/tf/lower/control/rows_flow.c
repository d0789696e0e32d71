/* Constants, what passes its inputs on, variables, and calls: of functions and of StableHLO modules within a node. */
#include "../build.h"
#include "../tensor.h"
#include "../../../pipeline/pipeline.h"
#include "../../../text/mlir/mlir.h"
#include "../windows.h"

/* --- constants, variables, calls of functions --- */

/* The data is kept beside the value: whether it becomes a constant op is decided where it is used. */
int tfl_row_const(tfl_op *x) {
  base_slice message = {NULL, 0};
  tfl_shape shape;
  xlac_error why = {.code = 0};
  void *data = NULL;
  if (!tf_attr_tensor(tf_attr_find(x->node->def->attrs, "value"), &message))
    return tfl_fail(x, "attribute 'value' is not a tensor");
  int status = tfl_read_tensor(message, x->arena, &shape, &data, &why);
  if (status == -XLAC_E_OUT_OF_MEMORY) return x->status = base_oom(x->err, "lowering");
  if (status) return tfl_fail(x, "%s", why.message);
  tfl_value v = {.kind = TFL_TENSOR,
                 .fixed = true,
                 .type = tfl_type(x, shape.dtype, shape.rank, shape.dims),
                 .data = data,
                 .input = -1};
  if (v.type) tfl_out_value(x, 0, &v);
  return x->status;
}

/* Identity, IdentityN, StopGradient and others that change nothing at run time. */
int tfl_row_same(tfl_op *x) {
  for (uint32_t i = 0; i < x->n_out; i++) tfl_out_same(x, i, i);
  return x->status;
}

/* NoOp, Assert and others that leave no outputs. */
int tfl_row_nothing(tfl_op *x) {
  return x->status;
}

/* What a branch gives in place of what only another one computes. Its attribute shape is not to be trusted: it has no
 * value, and the op with the branches makes one. */
int tfl_row_fake_param(tfl_op *x) {
  return x->status;
}

/* The CPU's place in the list. DeviceIndex: Case runs the branch for the device that it names; without a CPU the
 * default branch, the last. */
int tfl_row_device_index(tfl_op *x) {
  tf_raw_field list, f = {.number = 0};
  const char *at = NULL;
  int32_t index = -1, n = 0;
  base_slice value = tf_attr_find(x->node->def->attrs, "device_names");
  if (!value.p || !tf_raw_find(value, 1, &list) || list.wire != 2)
    return tfl_fail(x, "attribute 'device_names' is not a list");
  for (at = list.bytes.p; tf_raw_next(&at, list.bytes.p + list.bytes.n, &f);) {
    if (f.number != 2) continue;
    if (index < 0 && f.bytes.n == 3 && memcmp(f.bytes.p, "CPU", 3) == 0) index = n;
    n++;
  }
  if (index < 0) index = n;
  tfl_out_data(x, 0, XLAC_S32, 0, NULL, &index);
  return x->status;
}

/* --- variables --- */

/* Reading a variable before it is assigned is an error of the program, which the session reports as TensorFlow
 * does. */
static bool flow_has_value(tfl_op *x, const tfl_resource *r) {
  if (r && r->value.kind == TFL_TENSOR) return true;
  tfl_fail(x, "the variable has no value yet");
  return false;
}

/* The value as it is now: nodes are visited in an order that control edges set. */
int tfl_row_read_variable(tfl_op *x) {
  tfl_resource *r = tfl_in_resource(x, 0);
  if (r && flow_has_value(x, r)) tfl_out_value(x, 0, &r->value);
  return x->status;
}

/* The shape may change, the element type may not. */
int tfl_row_assign_variable(tfl_op *x) {
  tfl_resource *r = tfl_in_resource(x, 0);
  if (!r || x->in[1]->kind != TFL_TENSOR) return tfl_in_type(x, 1), x->status;
  if (r->value.kind == TFL_TENSOR && r->value.type->dtype != x->in[1]->type->dtype)
    return tfl_fail(x, "the variable has elements of %s, the value of %s",
                    base_dtype_of((base_dtype)r->value.type->dtype)->text,
                    base_dtype_of((base_dtype)x->in[1]->type->dtype)->text);
  tfl_value v = *x->in[1];
  v.input = -1;
  tfl_assign_value(x, r, &v);
  return x->status;
}

/* AssignAdd and AssignSub; arg is the opcode. */
int tfl_row_update_variable(tfl_op *x) {
  tfl_resource *r = tfl_in_resource(x, 0);
  if (!r || !flow_has_value(x, r)) return x->status;
  ir_value old = tfl_use(x, &r->value), by = tfl_in(x, 1);
  if (old.op && by.op && opt_type(old) != opt_type(by))
    return tfl_fail(x, "the variable and what changes it have different shapes or element types");
  x->fixed = false;
  tfl_assign(x, r, opt_binary(x->rw, (ir_opcode)x->row->arg, old, by));
  return x->status;
}

int tfl_row_is_initialized(tfl_op *x) {
  const tfl_resource *r = tfl_in_resource(x, 0);
  bool has = r && r->value.kind != TFL_NONE;
  if (r) tfl_out_data(x, 0, XLAC_PRED, 0, NULL, &has);
  return x->status;
}

/* --- calls --- */

/* Inlines the body. Functions without a value for an output leave it TFL_NONE. */
int tfl_row_call(tfl_op *x) {
  tf_callees callees;
  x->status = tf_find_callees(x->b->bodies, x->node, &callees, x->err);
  if (x->status) return x->status;
  if (callees.n != 1) return tfl_fail(x, "it names no function");
  tfl_value *args = BASE_ARRAY(x->arena, tfl_value, (size_t)x->n_in + 1);
  tfl_value *rets = BASE_ARRAY(x->arena, tfl_value, (size_t)x->n_out + 1);
  if (!args || !rets) return x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0; i < x->n_in; i++) args[i] = *x->in[i];
  TRY(tfl_lower_body(x, &callees.list[0], x->n_in, args, x->n_out, rets));
  for (uint32_t i = 0; i < x->n_out; i++) tfl_out_value(x, i, &rets[i]);
  return x->status;
}

/* --- XlaCallModule --- */

/* XlaCallModule: a StableHLO module within a node, as jax2tf writes it. Its functions become one, whose ops are
 * copied to the cursor. Where main's arguments leave sizes open they get those of the inputs first. */
typedef struct callm_run {
  ir_module *from, *to;
  base_map copies; /* op of `from` -> its copy */
} callm_run;

enum { CALLM_DEEPEST = 100 };

static bool callm_copy_ops(callm_run *c, const ir_computation *from, ir_computation *to, uint32_t depth);

static bool callm_copy_region(callm_run *c, ir_op *copy, uint32_t which, const ir_computation *from, uint32_t depth) {
  assert(which < copy->n_called);
  ir_computation *to = depth < CALLM_DEEPEST ? ir_computation_new(c->to, "region", 6) : NULL;
  if (!to) return false;
  to->kind = IR_REGION;
  to->owner = copy;
  copy->called[which] = to;
  return callm_copy_ops(c, from, to, depth + 1);
}

/* false when out of memory, or too deep. */
static bool callm_copy_ops(callm_run *c, const ir_computation *from, ir_computation *to, uint32_t depth) {
  assert(to->results == NULL);
  IR_FOR_OPS(op, from) {
    ir_op *copy = ir_op_clone(op, to, &c->copies);
    if (!copy || !base_map_set(&c->copies, base_key(op), base_key(copy))) return false;
    for (uint32_t i = 0; i < op->n_called; i++)
      if (!callm_copy_region(c, copy, i, op->called[i], depth)) return false;
  }
  to->results = BASE_ARRAY(&c->to->arena, ir_value, (size_t)from->n_results + 1);
  for (uint32_t i = 0; to->results && i < from->n_results; i++)
    to->results[i] = (ir_value){base_map_ptr(&c->copies, from->results[i].op), from->results[i].index};
  to->n_results = to->results ? from->n_results : 0;
  return to->results != NULL;
}

/* NULL where the module has no function of that name. */
static ir_computation *callm_main(const ir_module *m) {
  for (ir_computation *f = m->first; f; f = f->next)
    if (f->kind == IR_FUNCTION && strcmp(f->name->s, "main") == 0) return f;
  return NULL;
}

/* --- arguments --- */

/* Types of the module's own for the arguments; several platforms put their number in front. The passes that
 * jax.export documents for it: refine the arguments, then shapes, then what became static. */
static int callm_refine(tfl_op *x, ir_module *m, uint32_t first) {
  base_text t;
  xlac_error why = {.code = 0};
  base_text_init(&t, m->alloc);
  BASE_PUT(&t, "stablehlo-refine-arguments{types=");
  for (uint32_t i = 0; i < first; i++) BASE_PUT(&t, "tensor<i32>,");
  for (uint32_t i = 0; i < x->n_in; i++) {
    if (i) base_putc(&t, ',');
    text_put_mlir_type(&t, tfl_in_type(x, i));
  }
  BASE_PUT(&t, "},stablehlo-refine-shapes,stablehlo-canonicalize-dynamism");
  int status = x->status ? x->status : t.failed ? base_oom(x->err, "lowering") : 0;
  if (status == 0 && pipeline_run_text(m, t.s, t.n, NULL, &why) != 0)
    status = tfl_fail(x, "its module does not take inputs of these shapes: %.300s", why.message);
  base_text_free(&t);
  return x->status = status;
}

/* Whether no argument leaves a size open. */
static bool callm_is_static(const ir_computation *f) {
  for (uint32_t i = 0; i < f->n_params; i++)
    if (!opt_is_static(f->params[i]->type)) return false;
  return true;
}

/* Arguments: maybe the platform's number, of which the CPU's place is known, then the inputs. */
static int callm_arguments(tfl_op *x, const ir_computation *f, uint32_t first, uint32_t platform, ir_value *args) {
  if (f->n_params != x->n_in + first)
    return tfl_fail(x, "its module takes %u arguments, there are %u inputs", f->n_params, x->n_in);
  if (first) args[0] = tfl_scalar(x, XLAC_S32, platform);
  for (uint32_t i = 0; i < x->n_in; i++) args[first + i] = tfl_in(x, i);
  for (uint32_t i = 0; i < f->n_params && !x->status; i++)
    if (!args[i].op || opt_type(args[i]) != f->params[i]->type) {
      char one[80] = "", other[80] = "";
      ir_type_text(f->params[i]->type, one, sizeof one);
      if (args[i].op) ir_type_text(opt_type(args[i]), other, sizeof other);
      return tfl_fail(x, "argument %u of its module is %s, not %s", i, one, other);
    }
  return x->status;
}

/* --- the row --- */

/* Bytecode (portable artifacts, too) or text. Composites and calls are resolved at once. */
static int callm_read(tfl_op *x, ir_module **out) {
  base_slice bytes = tfl_attr_str(x, "module");
  const bytecode_parse_options binary = {.alloc = x->rw->m->alloc};
  const mlir_parse_options text = {.alloc = x->rw->m->alloc};
  static const char plain[] = "stablehlo-legalize-composite-to-call,inline";
  xlac_error why = {.code = 0};
  TRY(x->status);
  int status = text_is_bytecode(bytes.p, bytes.n) ? text_parse_bytecode(out, bytes.p, bytes.n, &binary, &why)
                                                  : text_parse_mlir(out, bytes.p, bytes.n, &text, &why);
  if (status == 0) status = pipeline_run_text(*out, plain, sizeof plain - 1, NULL, &why);
  return status ? tfl_fail(x, "its module: %.300s", why.message) : 0;
}

/* More than one platform: main's first argument says which. */
static int callm_platform(tfl_op *x, uint32_t *first, uint32_t *place) {
  const base_slice *names = NULL;
  uint32_t n = 0;
  *first = *place = 0;
  TRY(tfl_attr_strings(x, "platforms", &names, &n));
  *first = n > 1;
  for (uint32_t i = 0; i < n; i++)
    if (base_slice_is(names[i], "CPU") || base_slice_is(names[i], "cpu")) {
      *place = i;
      return 0;
    }
  return n ? tfl_fail(x, "its module is for other platforms than CPUs") : 0;
}

/* Copies main as a function of this module, inlines that at the cursor, and removes it. */
static int callm_copy(tfl_op *x, ir_module *from, const ir_computation *main, uint32_t first, uint32_t platform) {
  assert(main != NULL);
  callm_run c = {.from = from, .to = x->rw->m};
  ir_value *args = BASE_ARRAY(x->arena, ir_value, (size_t)main->n_params + 1);
  ir_value *out = BASE_ARRAY(x->arena, ir_value, (size_t)main->n_results + 1);
  const base_istr *name = ir_fresh_name(c.to, "call_module");
  ir_computation *f = name ? ir_computation_new(c.to, name->s, strlen(name->s)) : NULL;
  if (!args || !out || !f) return x->status = base_oom(x->err, "lowering");
  f->kind = IR_FUNCTION;
  base_map_init(&c.copies, c.to->alloc);
  bool fine = callm_copy_ops(&c, main, f, 0);
  base_map_free(&c.copies);
  if (!fine) return x->status = base_oom(x->err, "lowering");
  TRY(callm_arguments(x, f, first, platform, args));
  opt_inline(x->rw, f, args, out);
  TRY(opt_rewriter_status(x->rw));
  for (uint32_t i = 0; i < x->n_out; i++) {
    if (i >= f->n_results || !opt_is_static(opt_type(out[i])) || opt_type(out[i])->dtype != tfl_out_dtype(x, i))
      return tfl_fail(x, "result %u of its module is not what the node says, or of no static shape", i);
    tfl_out(x, i, out[i]);
  }
  ir_computation_remove(f);
  return x->status;
}

/* The parsed module lives for this call only. */
int tfl_row_call_module(tfl_op *x) {
  ir_module *m = NULL;
  uint32_t first = 0, platform = 0;
  TRY(callm_platform(x, &first, &platform));
  int status = callm_read(x, &m);
  const ir_computation *main = status ? NULL : callm_main(m);
  if (status == 0 && !main) status = tfl_fail(x, "its module has no function 'main'");
  if (status == 0 && main->n_params == x->n_in + first && !callm_is_static(main)) {
    status = callm_refine(x, m, first);
    main = status ? NULL : callm_main(m);
  }
  x->fixed = false;
  if (status == 0) status = callm_copy(x, m, main, first, platform);
  if (m) ir_module_destroy(m);
  return x->status = status;
}
