/* Frontend attributes, and small makers. */
#include "round_trip.h"

#include "../../text/mlir/mlir.h"

static const ir_mdict *rt_front_dict(const ir_mdict *d) {
  const ir_mattr *a = ir_mdict_get(d, "mhlo.frontend_attributes");
  return a && a->kind == IR_M_DICT ? a->v.dict : NULL;
}

const base_istr *rt_front(const ir_mdict *d, const char *key) {
  const ir_mattr *a = ir_mdict_get(rt_front_dict(d), key);
  return a && a->kind == IR_M_STRING ? a->str : NULL;
}

bool rt_front_set(ir_module *m, const ir_mdict **d, const char *key, const ir_mattr *value) {
  const ir_mdict *old = rt_front_dict(*d);
  if (!value && !old) return true;
  const ir_mdict *inner = ir_mdict_with(m, old, key, value);
  const ir_mattr *a = inner && inner->n ? ir_m_dict(m, inner) : NULL;
  if (!inner || (inner->n && !a)) return false;
  const ir_mdict *to = ir_mdict_with(m, *d, "mhlo.frontend_attributes", a);
  if (to) *d = to;
  return to != NULL;
}

const ir_mattr *rt_words(ir_module *m, const ir_mattr *a) {
  if (!a || a->kind == IR_M_STRING) return a;
  base_text text;
  base_text_init(&text, m->alloc);
  text_put_mlir_attr(&text, a);
  const ir_mattr *made = text.failed ? NULL : ir_m_string(m, text.s, text.n);
  base_text_free(&text);
  return made;
}

/* What a string that was escaped once more stands for, as HLO's text may leave it: \" and \\ without the backslash. */
static size_t rt_unescape(const char *s, size_t n, char *out) {
  size_t k = 0;
  for (size_t i = 0; i < n; i++) {
    if (s[i] == '\\' && i + 1 < n && (s[i + 1] == '"' || s[i + 1] == '\\')) i++;
    out[k++] = s[i];
  }
  return k;
}

/* At op, or (NULL) of the module itself. */
static int rt_front_fail(opt_rewriter *rw, const ir_op *op, const char *key, const char *what, const char *detail) {
  static const char format[] = "the frontend attribute %s is no %s%.200s";
  if (op) return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_ATTRIBUTE, format, key, what, detail);
  return base_fail(rw->err, XLAC_E_VERIFY_ATTRIBUTE, format, key, what, detail);
}

int rt_front_read(opt_rewriter *rw, const ir_op *op, const ir_mdict *d, const char *key, const ir_mattr **out) {
  const base_istr *text = rt_front(d, key);
  xlac_error inner = {0};
  *out = NULL;
  if (!text) return 0;
  char *plain = base_arena_alloc(&rw->arena, text->n + 1);
  if (!plain) return base_oom(rw->err, "a frontend attribute");
  size_t n = rt_unescape(text->s, text->n, plain);
  if (text_parse_mlir_attr(rw->m, plain, n, out, &inner) == 0) return 0;
  return rt_front_fail(rw, op, key, "attribute of MLIR: ", inner.message);
}

int rt_front_read_sdy(opt_rewriter *rw, const ir_op *op, const ir_mdict *d, const char *key, sdy_kind kind,
                      const void **out) {
  const ir_mattr *a = NULL;
  *out = NULL;
  TRY(rt_front_read(rw, op, d, key, &a));
  if (!a) return 0;
  *out = sdy_of(a, kind);
  if (*out) return 0;
  return rt_front_fail(rw, op, key, "#sdy.", sdy_kind_name(kind));
}

bool rt_is_callback(const ir_op *op) {
  static const char *const names[] = {"xla_python_cpu_callback", "xla_ffi_python_cpu_callback",
                                      "xla_python_gpu_callback", "xla_ffi_python_gpu_callback"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (rt_calls(op, names[i])) return true;
  return false;
}

bool rt_is_body(const base_istr *name) {
  return strstr(name->s, "xla.sdy.manual_computation_body") != NULL;
}

bool rt_make_mesh(ir_module *m, const base_istr *name, const sdy_mesh *mesh, ir_computation *before) {
  const base_istr *none = ir_intern(m, "", 0);
  ir_computation *c = name && none ? ir_computation_new(m, name->s, name->n) : NULL;
  ir_op *op = c ? ir_op_new_n(c, IR_OP_SDY_MESH, 0, NULL, none, 0, 0) : NULL;
  if (!op) return false;
  c->kind = IR_SYMBOL;
  shc_move(c, before);
  return ir_m_set(op, "sym_name", ir_m_string(m, name->s, name->n)) &&
         ir_m_set(op, "mesh", sdy_attr(m, SDY_MESH, mesh));
}

ir_op *rt_make_custom_call(opt_rewriter *rw, const char *target, uint32_t n_results, const ir_type *const *types,
                           uint32_t n, const ir_value *operands) {
  ir_op *op = opt_make_n(rw, IR_OP_CUSTOM_CALL, n_results, types, n, operands, 0);
  if (!op || !ir_m_set(op, "call_target_name", ir_m_string(rw->m, target, strlen(target)))) return NULL;
  return op;
}
