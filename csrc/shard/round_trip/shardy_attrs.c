/* Shardings that travel through HLO as text in frontend attributes: the passes that write them and read them back,
 * and the helpers that other passes of the round trip share. An op with sdy.sharding =
 * #sdy.sharding_per_value<[<@mesh, [{"x"}]>]> gets mhlo.frontend_attributes = {xla.sdy.sharding =
 * "#sdy.sharding_per_value<[<@mesh, [{\"x\"}]>]>"}. */
#include "../../text/mlir/mlir.h"
#include "round_trip.h"

/* Frontend attributes, and small makers. */

/* The frontend attributes of an op, argument or module; NULL where there are none. */
static const ir_mdict *trip_front_dict(const ir_mdict *d) {
  const ir_mattr *a = ir_mdict_get(d, "mhlo.frontend_attributes");
  return a && a->kind == IR_M_DICT ? a->v.dict : NULL;
}

const base_istr *trip_front(const ir_mdict *d, const char *key) {
  const ir_mattr *a = ir_mdict_get(trip_front_dict(d), key);
  return a && a->kind == IR_M_STRING ? a->str : NULL;
}

/* Dictionaries are immutable: both the inner and the outer one are made anew. */
static bool trip_front_with(ir_module *m, const ir_mdict **d, const char *key, const ir_mattr *value) {
  assert(d != NULL);
  const ir_mdict *old = trip_front_dict(*d);
  if (!value && !old) return true;
  const ir_mdict *inner = ir_mdict_with(m, old, key, value);
  const ir_mattr *a = inner && inner->n ? ir_m_dict(m, inner) : NULL;
  if (!inner || (inner->n && !a)) return false;
  const ir_mdict *to = ir_mdict_with(m, *d, "mhlo.frontend_attributes", a);
  if (to) *d = to;
  return to != NULL;
}

bool trip_front_set(ir_op *op, const char *key, const ir_mattr *value) {
  const ir_mdict *d = op->mlir;
  if (!trip_front_with(op->parent->module, &d, key, value)) return false;
  ir_set_mlir(op, d);
  return true;
}

bool trip_front_set_module(ir_module *m, const char *key, const ir_mattr *value) {
  const ir_mdict *d = m->mlir;
  if (!trip_front_with(m, &d, key, value)) return false;
  ir_set_module_attrs(m, d);
  return true;
}

/* What trip_front_read reads back. */
const ir_mattr *trip_words(ir_module *m, const ir_mattr *a) {
  if (!a || a->kind == IR_M_STRING) return a;
  base_text text;
  base_text_init(&text, m->alloc);
  text_put_mlir_attr(&text, a);
  const ir_mattr *made = text.failed ? NULL : ir_m_string(m, text.s, text.n);
  base_text_free(&text);
  return made;
}

/* What a string that was escaped once more stands for, as HLO's text may leave it: \" and \\ without the backslash. */
static size_t trip_unescape(const char *s, size_t n, char *out) {
  assert(out != NULL);
  size_t k = 0;
  for (size_t i = 0; i < n; i++) {
    if (s[i] == '\\' && i + 1 < n && (s[i + 1] == '"' || s[i + 1] == '\\')) i++;
    out[k++] = s[i];
  }
  return k;
}

/* At op, or (NULL) of the module itself. */
static int trip_front_fail(opt_rewriter *rw, const ir_op *op, const char *key, const char *what, const char *detail) {
  static const char format[] = "the frontend attribute %s is no %s%.200s";
  if (op) return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_ATTRIBUTE, format, key, what, detail);
  return base_fail(rw->err, XLAC_E_VERIFY_ATTRIBUTE, format, key, what, detail);
}

/* The text is unescaped once more, since HLO's text has been through two escapings. */
int trip_front_read(opt_rewriter *rw, const ir_op *op, const ir_mdict *d, const char *key, const ir_mattr **out) {
  const base_istr *text = trip_front(d, key);
  xlac_error inner = {0};
  *out = NULL;
  if (!text) return 0;
  char *plain = base_arena_alloc(&rw->arena, text->n + 1);
  if (!plain) return base_oom(rw->err, "a frontend attribute");
  size_t n = trip_unescape(text->s, text->n, plain);
  if (text_parse_mlir_attr(rw->m, plain, n, out, &inner) == 0) return 0;
  return trip_front_fail(rw, op, key, "attribute of MLIR: ", inner.message);
}

/* The text of the attribute is parsed, so what users wrote there may be anything. */
int trip_front_read_sdy(opt_rewriter *rw, const ir_op *op, const ir_mdict *d, const char *key, sdy_kind kind,
                        const void **out) {
  const ir_mattr *a = NULL;
  *out = NULL;
  TRY(trip_front_read(rw, op, d, key, &a));
  if (!a) return 0;
  *out = sdy_of(a, kind);
  if (*out) return 0;
  return trip_front_fail(rw, op, key, "#sdy.", sdy_kind_name(kind));
}

/* JAX's host callbacks, on CPU and GPU; the list is XLA's. */
bool trip_is_callback(const ir_op *op) {
  static const char *const names[] = {"xla_python_cpu_callback", "xla_ffi_python_cpu_callback",
                                      "xla_python_gpu_callback", "xla_ffi_python_gpu_callback"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (trip_calls(op, names[i])) return true;
  return false;
}

/* The export may have appended a number, and XLA's clones add suffixes. */
bool trip_is_body(const base_istr *name) {
  return strstr(name->s, "xla.sdy.manual_computation_body") != NULL;
}

/* A symbol is a computation with one op here. */
bool trip_make_mesh(ir_module *m, const base_istr *name, const sdy_mesh *mesh, ir_computation *before) {
  const base_istr *none = ir_intern(m, "", 0);
  ir_computation *c = name && none ? ir_computation_new(m, name->s, name->n) : NULL;
  ir_op *op = c ? ir_op_new_n(c, IR_OP_SDY_MESH, 0, NULL, none, 0, 0) : NULL;
  if (!op) return false;
  ir_set_kind(c, IR_SYMBOL);
  ir_computation_move(c, before);
  return ir_m_set(op, "sym_name", ir_m_string(m, name->s, name->n)) &&
         ir_m_set(op, "mesh", sdy_attr(m, SDY_MESH, mesh));
}

ir_op *trip_make_custom_call(opt_rewriter *rw, const char *target, uint32_t n_results, const ir_type *const *types,
                             uint32_t n, const ir_value *operands) {
  assert(target != NULL);
  ir_op *op = opt_make_n(rw, IR_OP_CUSTOM_CALL, n_results, types, n, operands, 0);
  if (!op || !ir_m_set(op, "call_target_name", ir_m_string(rw->m, target, strlen(target)))) return NULL;
  return op;
}

/* To HLO and back: xla-sdy-round-trip-export-ops makes custom calls of constraints, groups and barriers;
 * xla-sdy-round-trip-export-shardy-attrs writes meshes, shardings and rules down as strings in frontend attributes,
 * those of results in a custom call before the return; both leave sdy.sharding for xla-sdy-stablehlo-export-shardings.
 * Requires: nothing. Preserves: what the program computes. */

static int trip_out_oom(const opt_rewriter *rw) {
  return base_oom(rw->err, "shardings on their way to HLO");
}

/* --- ops --- */

/* A custom call can't take tensors of index, which StableHLO has for sizes only. */
static int trip_out_takes(const opt_rewriter *rw, const ir_op *at, const ir_type *type) {
  assert(type != NULL);
  if (!type->text || type->quant) return 0;
  return opt_rewrite_fail(rw, at, XLAC_E_LEGALIZE,
                          "the sharding of a value of element type %s goes to HLO in a custom call, which takes no "
                          "such values",
                          type->text->s);
}

/* A custom call in op's place, with its attributes but its own.
 * Attributes other than `own` stay on the call. */
static ir_op *trip_out_call(opt_rewriter *rw, ir_op *op, const char *target, const char *own) {
  ir_value in = opt_operand(op, 0);
  opt_at(rw, op);
  ir_op *call = trip_make_custom_call(rw, target, op->n_results, op->types, 1, &in);
  const ir_mdict *d = op->mlir;
  for (uint32_t i = 0; call && d && i < d->n; i++)
    if (strcmp(d->v[i].key->s, own) != 0 && !ir_m_set(call, d->v[i].key->s, d->v[i].value)) return NULL;
  return call;
}

/* A group has no results, and nothing reads it. */
static int trip_out_replace(opt_rewriter *rw, ir_op *op, ir_op *call) {
  if (call->n_results)
    opt_replace_one(rw, op, (ir_value){call, 0});
  else
    opt_erase(rw, op);
  return opt_rewriter_status(rw);
}

/* has_side_effect where axes are unreduced: XLA would take the call for a copy and drop it. */
static int trip_out_constraint(opt_rewriter *rw, ir_op *op) {
  assert(op->n_results == 1);
  TRY(trip_out_takes(rw, op, op->type));
  const sdy_sharding *s = sdy_get((ir_value){op, 0});
  ir_op *call = trip_out_call(rw, op, "Sharding", "sharding");
  const sdy_shardings *list = call ? sdy_shardings_make(rw->m, 1, &s) : NULL;
  bool ok = list && ir_m_set(call, "sdy.sharding", sdy_attr(rw->m, SDY_SHARDINGS, list)) &&
            (s->unreduced.n == 0 || ir_m_set(call, "has_side_effect", ir_m_bool(rw->m, true)));
  return ok ? trip_out_replace(rw, op, call) : trip_out_oom(rw);
}

/* A group or barrier: its number goes into a frontend attribute. */
static int trip_out_number(opt_rewriter *rw, ir_op *op, const char *target, const char *own, const char *key) {
  TRY(trip_out_takes(rw, op, ir_operand_type(op, 0)));
  const ir_mattr *text = trip_words(rw->m, ir_mattr_of(op, own));
  ir_op *call = trip_out_call(rw, op, target, own);
  bool ok =
      call && text && ir_m_set(call, "has_side_effect", ir_m_bool(rw->m, true)) && trip_front_set(call, key, text);
  return ok ? trip_out_replace(rw, op, call) : trip_out_oom(rw);
}

/* Other ops keep their attributes, which the next pass writes as text. */
static int trip_out_op(void *ctx, ir_op *op) {
  opt_rewriter *rw = ctx;
  switch (op->opcode) {
    case IR_OP_SDY_CONSTANT:
      ir_set_opcode(op, IR_OP_CONSTANT);
      return 0;
    case IR_OP_SDY_SHARDING_CONSTRAINT:
      return trip_out_constraint(rw, op);
    case IR_OP_SDY_SHARDING_GROUP:
      return trip_out_number(rw, op, "xla.sdy.ShardingGroup", "group_id", "xla.sdy.sharding_group_id");
    case IR_OP_SDY_PROPAGATION_BARRIER:
      return trip_out_number(rw, op, "xla.sdy.PropagationBarrier", "allowed_direction", "xla.sdy.allowed_direction");
    default:
      return 0;
  }
}

/* Inner ops first, so that an op is replaced after what it contains. */
int shard_round_trip_export_ops(ir_module *m, const opt_args *args, xlac_error *err) {
  opt_rewriter rw;
  (void)args;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = shc_walk_module(m, true, trip_out_op, &rw);
  opt_rewriter_free(&rw);
  return status;
}

/* --- attributes --- */

/* Arguments have attributes of their own in HLO too. */
static int trip_out_argument(opt_rewriter *rw, ir_op *p) {
  const sdy_sharding *s = sdy_get((ir_value){p, 0});
  if (!s) return 0;
  const ir_mattr *text = trip_words(rw->m, sdy_attr(rw->m, SDY_SHARDING, s));
  return text && trip_front_set(p, "xla.sdy.sharding", text) ? 0 : trip_out_oom(rw);
}

/* Results have none, so each with a sharding goes through a custom call before the return. */
static int trip_out_result(opt_rewriter *rw, ir_computation *f, uint32_t i) {
  const sdy_sharding *s = sdy_get_result(f, i);
  ir_value v = f->results[i];
  if (!s) return 0;
  opt_at_end(rw, f, v.op);
  const ir_type *type = opt_type(v);
  TRY(trip_out_takes(rw, v.op, type));
  ir_op *call = trip_make_custom_call(rw, "xla.sdy.FuncResultSharding", 1, &type, 1, &v);
  const sdy_shardings *list = sdy_shardings_make(rw->m, 1, &s);
  const ir_mattr *text = list ? trip_words(rw->m, sdy_attr(rw->m, SDY_SHARDINGS, list)) : NULL;
  bool ok = call && text && ir_m_set(call, "has_side_effect", ir_m_bool(rw->m, true)) &&
            trip_front_set(call, "xla.sdy.sharding", text);
  if (!ok) return trip_out_oom(rw);
  ir_set_result(f, i, (ir_value){call, 0});
  return 0;
}

/* The rule goes from the op; the sharding stays, for xla-sdy-stablehlo-export-shardings. */
static int trip_out_attrs(void *ctx, ir_op *op) {
  opt_rewriter *rw = ctx;
  const ir_mattr *list = ir_mattr_of(op, "sdy.sharding"), *rule = ir_mattr_of(op, "sdy.sharding_rule");
  if (list && !trip_front_set(op, "xla.sdy.sharding", trip_words(rw->m, list))) return trip_out_oom(rw);
  if (!rule) return 0;
  const ir_mattr *text = trip_words(rw->m, rule);
  bool ok = text && trip_front_set(op, "xla.sdy.sharding_rule", text) && ir_m_set(op, "sdy.sharding_rule", NULL);
  return ok ? 0 : trip_out_oom(rw);
}

/* Signature first, then ops, inner ones after those around them. */
static int trip_out_function(opt_rewriter *rw, ir_computation *f) {
  for (uint32_t i = 0; i < f->n_params; i++) TRY(trip_out_argument(rw, f->params[i]));
  for (uint32_t i = 0; i < f->n_results; i++) TRY(trip_out_result(rw, f, i));
  return shc_walk(f, false, trip_out_attrs, rw);
}

/* {mesh = #sdy.mesh<["x"=2]>}, as a string.
 * All meshes on the module, by name: shardings name them. */
static int trip_out_meshes(opt_rewriter *rw) {
  ir_module *m = rw->m;
  const ir_mdict *all = ir_mdict_make(m, 0, NULL);
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_SYMBOL || !c->first || c->first->opcode != IR_OP_SDY_MESH) continue;
    const ir_mattr *mesh = ir_mattr_of(c->first, "mesh");
    all = all ? ir_mdict_with(m, all, ir_mattr_of(c->first, "sym_name")->str->s, mesh) : NULL;
  }
  if (!all) return trip_out_oom(rw);
  if (all->n == 0) return 0;
  const ir_mattr *text = trip_words(m, ir_m_dict(m, all));
  return text && trip_front_set_module(m, "xla.sdy.meshes", text) ? 0 : trip_out_oom(rw);
}

/* Functions first: they use the meshes that are written last. */
int shard_export_attrs(ir_module *m, const opt_args *args, xlac_error *err) {
  opt_rewriter rw;
  int status = 0;
  (void)args;
  TRY(opt_rewriter_init(&rw, m, err));
  IR_FOR_COMPUTATIONS(c, m)
  if (c->kind == IR_FUNCTION && !c->owner && status == 0) status = trip_out_function(&rw, c);
  if (status == 0) status = trip_out_meshes(&rw);
  opt_rewriter_free(&rw);
  return status;
}

/* xla-sdy-round-trip-import-shardy-attrs: meshes, shardings and rules come back from the strings in frontend attributes
 * that they travelled through HLO in; those of results from custom calls that stood before the return. XLA's own
 * shardings, which went beside them, go.
 * Requires: nothing. Preserves: what the program computes. */

BASE_VEC(trip_calls_found, ir_op *);
typedef struct trip_back {
  opt_rewriter rw;
  trip_calls_found results; /* @xla.sdy.FuncResultSharding of the function at hand */
} trip_back;

static int trip_back_oom(trip_back *x) {
  return base_oom(x->rw.err, "xla-sdy-round-trip-import-shardy-attrs");
}

/* --- meshes --- */

/* Mesh ops come back before everything else, in the order of the dictionary, which is that of names. */
static int trip_back_meshes(trip_back *x) {
  ir_module *m = x->rw.m;
  const ir_mattr *a = NULL;
  ir_computation *first = m->first;
  TRY(trip_front_read(&x->rw, NULL, m->mlir, "xla.sdy.meshes", &a));
  for (uint32_t i = 0; a && a->kind == IR_M_DICT && i < a->v.dict->n; i++) {
    const ir_mentry *e = &a->v.dict->v[i];
    const sdy_mesh *mesh = sdy_of(e->value, SDY_MESH);
    if (!mesh)
      return base_fail(x->rw.err, XLAC_E_VERIFY_ATTRIBUTE, "xla.sdy.meshes has %s, which is not a mesh", e->key->s);
    if (!trip_make_mesh(m, e->key, mesh, first)) return trip_back_oom(x);
  }
  return trip_front_set_module(m, "xla.sdy.meshes", NULL) ? 0 : trip_back_oom(x);
}

/* Lists for the whole signature of the main function, on the module: XLA had made tuples of its arguments or results.
 */
static int trip_back_signature(trip_back *x, const char *key, bool results) {
  ir_module *m = x->rw.m;
  ir_computation *f = shc_main(m, false);
  const void *found = NULL;
  if (!f) return 0;
  TRY(trip_front_read_sdy(&x->rw, NULL, m->mlir, key, SDY_SHARDINGS, &found));
  const sdy_shardings *list = found;
  if (!list) return 0;
  uint32_t n = results ? f->n_results : f->n_params;
  assert(list->v != NULL || list->n == 0);
  if (list->n != n)
    return base_fail(x->rw.err, XLAC_E_VERIFY_ATTRIBUTE, "%s has %u shardings for %u values of the main function", key,
                     list->n, n);
  for (uint32_t i = 0; i < n; i++)
    if (results ? !sdy_set_result(f, i, list->v[i]) : !sdy_set((ir_value){f->params[i], 0}, list->v[i]))
      return trip_back_oom(x);
  return trip_front_set_module(m, key, NULL) ? 0 : trip_back_oom(x);
}

/* --- functions --- */

/* mhlo.sharding says the same in XLA's words, and goes. */
static int trip_back_argument(trip_back *x, ir_op *p) {
  const void *found = NULL;
  TRY(trip_front_read_sdy(&x->rw, p, p->mlir, "xla.sdy.sharding", SDY_SHARDING, &found));
  if (found && (!sdy_set((ir_value){p, 0}, found) || !trip_front_set(p, "xla.sdy.sharding", NULL)))
    return trip_back_oom(x);
  if (!ir_mdict_get(p->mlir, "mhlo.sharding")) return 0;
  return ir_m_set(p, "mhlo.sharding", NULL) ? 0 : trip_back_oom(x);
}

/* Ops that XLA passes on unchanged. */
static bool trip_back_keeps_sharding(const ir_op *op) {
  return op->opcode == IR_OP_SEND || op->opcode == IR_OP_RECV || op->opcode == IR_OP_AFTER_ALL ||
         trip_calls(op, "Sharding") || trip_is_callback(op);
}

/* What XLA makes of other ops may have their attributes but not their shapes: only some give theirs back. */
static int trip_back_op(void *ctx, ir_op *op) {
  trip_back *x = ctx;
  ir_module *m = x->rw.m;
  const void *rule = NULL, *list = NULL;
  if (op->opcode != IR_OP_INFEED && op->opcode != IR_OP_OUTFEED && ir_mattr_of(op, "mhlo.sharding") &&
      !ir_m_set(op, "mhlo.sharding", NULL))
    return trip_back_oom(x);
  TRY(trip_front_read_sdy(&x->rw, op, op->mlir, "xla.sdy.sharding_rule", SDY_RULE, &rule));
  bool ok = !rule || (ir_m_set(op, "sdy.sharding_rule", sdy_attr(m, SDY_RULE, rule)) &&
                      trip_front_set(op, "xla.sdy.sharding_rule", NULL));
  if (!ok) return trip_back_oom(x);
  if (trip_calls(op, "xla.sdy.FuncResultSharding"))
    return BASE_VEC_PUSH(m->alloc, &x->results, op) ? 0 : trip_back_oom(x);
  if (trip_back_keeps_sharding(op)) {
    TRY(trip_front_read_sdy(&x->rw, op, op->mlir, "xla.sdy.sharding", SDY_SHARDINGS, &list));
    if (list && !sdy_set_list(op, list)) return trip_back_oom(x);
  }
  return trip_front_set(op, "xla.sdy.sharding", NULL) ? 0 : trip_back_oom(x);
}

/* --- results --- */

/* The X64Combine that both halves of a 64-bit result go to, or NULL. */
static ir_op *trip_back_combine(const ir_op *call) {
  ir_op *user = NULL;
  uint32_t n = 0;
  IR_FOR_USES(use, call) {
    if (user && use->user != user) return NULL;
    user = use->user;
    n++;
  }
  return call->n_results == 2 && n == 2 && user && trip_calls(user, "X64Combine") ? user : NULL;
}

/* An open constraint in the call's place: the sharding was a function's result's, and not this value's. */
static bool trip_back_open(trip_back *x, ir_op *call, const sdy_sharding *s, ir_value *out) {
  assert(call->n_operands > 0);
  sdy_sharding open = *s;
  sdy_dim *dims = base_arena_memdup(&x->rw.m->arena, s->dims, s->n_dims * sizeof *dims);
  if (s->n_dims && !dims) return false;
  for (uint32_t i = 0; i < s->n_dims; i++) dims[i].open = true;
  open.dims = dims;
  const sdy_sharding *made = sdy_sharding_make(x->rw.m, &open);
  ir_value in = opt_operand(call, 0);
  opt_at(&x->rw, call);
  *out = opt_make(&x->rw, IR_OP_SDY_SHARDING_CONSTRAINT, opt_type(in), 1, &in);
  opt_set(&x->rw, *out, "sharding", sdy_attr(x->rw.m, SDY_SHARDING, made));
  return out->op != NULL;
}

/* The function returns `v` here and there: those results are sharded so. */
static bool trip_back_returned(ir_computation *f, const ir_op *by, const sdy_sharding *s) {
  for (uint32_t i = 0; i < f->n_results; i++)
    if (f->results[i].op == by && !sdy_set_result(f, i, s)) return false;
  return true;
}

/* Of a function that was inlined the calls are left where other ops use them: as constraints, open ones. */
static int trip_back_result(trip_back *x, ir_computation *f, ir_op *call) {
  const void *found = NULL;
  TRY(trip_front_read_sdy(&x->rw, call, call->mlir, "xla.sdy.sharding", SDY_SHARDINGS, &found));
  const sdy_shardings *list = found;
  if (!list || list->n == 0 || call->n_operands == 0 || call->n_operands < call->n_results)
    return opt_rewrite_fail(&x->rw, call, XLAC_E_VERIFY_ATTRIBUTE,
                            "@xla.sdy.FuncResultSharding needs an operand and its xla.sdy.sharding");
  ir_op *combine = trip_back_combine(call), *by = call;
  bool other = call->uses != NULL && !combine;
  if (combine && !sdy_set_list(combine, list)) return trip_back_oom(x);
  if (combine) by = combine;
  if (!combine && !call->uses && !opt_is_used(&x->rw, call)) by = opt_operand(call, 0).op; /* of no elements */
  if (!trip_back_returned(f, by, list->v[0])) return trip_back_oom(x);
  ir_value *values = BASE_ARRAY(&x->rw.arena, ir_value, (size_t)call->n_results + 1);
  if (!values) return trip_back_oom(x);
  for (uint32_t i = 0; i < call->n_results; i++) values[i] = opt_operand(call, i);
  if (other && call->n_results == 1 && !trip_back_open(x, call, list->v[0], &values[0])) return trip_back_oom(x);
  opt_replace_op(&x->rw, call, values);
  return opt_rewriter_status(&x->rw);
}

/* Results after the walk: their custom calls are found by it. */
static int trip_back_function(trip_back *x, ir_computation *f) {
  ir_module *m = x->rw.m;
  for (uint32_t i = 0; i < f->n_params; i++) TRY(trip_back_argument(x, f->params[i]));
  for (uint32_t i = 0; i < f->n_results; i++) {
    const ir_mdict *d = ir_result_attrs(f, i);
    if (!ir_mdict_get(d, "mhlo.sharding")) continue;
    d = ir_mdict_with(m, d, "mhlo.sharding", NULL);
    if (!d || !ir_set_result_attrs(f, i, d)) return trip_back_oom(x);
  }
  x->results.n = 0;
  TRY(shc_walk(f, true, trip_back_op, x));
  for (uint32_t i = 0; i < x->results.n; i++) TRY(trip_back_result(x, f, x->results.items[i]));
  return 0;
}

/* The module's attributes first: shardings in functions name the meshes. */
static int trip_back_all(trip_back *x) {
  TRY(trip_back_meshes(x));
  TRY(trip_back_signature(x, "xla.sdy.tuple_args_shardings", false));
  TRY(trip_back_signature(x, "xla.sdy.tuple_results_shardings", true));
  IR_FOR_COMPUTATIONS(c, x->rw.m)
  if (c->kind == IR_FUNCTION && !c->owner) TRY(trip_back_function(x, c));
  return 0;
}

int shard_import_attrs(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  trip_back x = {.results = {0}};
  TRY(opt_rewriter_init(&x.rw, m, err));
  int status = trip_back_all(&x);
  BASE_VEC_FREE(m->alloc, &x.results);
  opt_rewriter_free(&x.rw);
  return status == 0 ? shc_verify(m, err) : status; /* strings may say anything */
}
