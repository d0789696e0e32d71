/* stablehlo-aggressive-simplification, stablehlo-aggressive-folder, stablehlo-target-independent-optimization and
 * canonicalize: pattern sets, run until none fits.
 * Require: nothing. Preserve: every bit of what the program computes, effects, and the interface of functions. */
#include "mlir_simplify.h"

#include "../rewrite/fold.h"

/* Not where the types differ: a more specific type can't replace a less specific one without a cast. */
int opt_simplify_to(opt_rewriter *rw, ir_op *op, ir_value v, bool *changed) {
  TRY(opt_rewriter_status(rw));
  if (!v.op) return (rw->failed = true), opt_rewriter_status(rw);
  if (opt_type(v) != op->type || v.op == op) return 0;
  opt_replace_one(rw, op, v);
  *changed = true;
  return opt_rewriter_status(rw);
}

/* Two dictionaries of frontend attributes as one; op's win, but what names the op that survives stays its own. */
static const ir_mattr *simplify_frontend(opt_rewriter *rw, const ir_mattr *own, const ir_mattr *from) {
  assert(from != NULL);
  if (!own || own->kind != IR_M_DICT || from->kind != IR_M_DICT) return from;
  const ir_mdict *d = own->v.dict;
  for (uint32_t i = 0; d && i < from->v.dict->n; i++) {
    const char *key = from->v.dict->v[i].key->s;
    /* xla_metadata_payload identifies an op for profilers. */
    bool identity = strcmp(key, "xla_metadata_payload") == 0 && ir_mdict_get(d, key);
    if (!identity) d = ir_mdict_with(rw->m, d, key, from->v.dict->v[i].value);
  }
  return d ? ir_m_dict(rw->m, d) : NULL;
}

/* The attributes of op that are not its opcode's own go to `to` too.
 * Parameters are not touched: their attributes are the function's interface. */
static void simplify_merge(opt_rewriter *rw, const ir_op *op, ir_op *to) {
  if (to->opcode == IR_OP_PARAMETER) return;
  for (uint32_t i = 0; op->mlir && i < op->mlir->n; i++) {
    const base_istr *key = op->mlir->v[i].key;
    const ir_mattr *value = op->mlir->v[i].value;
    if (ir_mattr_spec_find(op->opcode, key->s, key->n) || ir_mattr_spec_find(to->opcode, key->s, key->n)) continue;
    if (strcmp(key->s, "mhlo.frontend_attributes") == 0) value = simplify_frontend(rw, ir_mattr_of(to, key->s), value);
    opt_set(rw, (ir_value){to, 0}, key->s, value);
  }
}

int opt_simplify_into(opt_rewriter *rw, ir_op *op, ir_value v, bool *changed) {
  if (opt_type(v) == op->type && v.op != op) simplify_merge(rw, op, v.op);
  return opt_simplify_to(rw, op, v, changed);
}

int opt_simplify_to_new(opt_rewriter *rw, ir_op *op, ir_value v, bool *changed) {
  if (v.op) simplify_merge(rw, op, v.op);
  return opt_simplify_to(rw, op, v, changed);
}

bool opt_is_int(ir_value v, int64_t value) {
  const void *p = opt_uniform(v);
  base_dtype dtype = p ? (base_dtype)opt_type(v)->dtype : BASE_DTYPE_INVALID;
  return p && (dtype == XLAC_PRED || base_dtype_is_integer(dtype)) && base_load_i64(dtype, p) == value;
}

const int64_t *opt_ints(opt_rewriter *rw, const ir_op *op, const char *key, uint32_t *n) {
  return ir_m_ints(ir_mattr_of(op, key), &rw->arena, n);
}

/* As opt_is_used, of one result. */
bool opt_is_result_used(const opt_rewriter *rw, ir_value v) {
  assert(v.index < v.op->n_results);
  IR_FOR_USES(use, v.op)
  if (use->index == v.index) return true;
  const ir_computation *home = v.op->parent;
  for (uint32_t i = 0; i < home->n_results; i++)
    if (opt_same_value(home->results[i], v)) return true;
  for (uint32_t k = 0; k < rw->n_leaks; k++)
    for (uint32_t i = 0; i < rw->leaks[k]->n_results; i++)
      if (opt_same_value(rw->leaks[k]->results[i], v)) return true;
  return false;
}

/* A use by a region's result counts as another one. */
bool opt_has_one_use(const opt_rewriter *rw, const ir_op *op) {
  if (!op->uses || op->uses->next) return false;
  for (uint32_t i = 0; i < op->parent->n_results; i++)
    if (op->parent->results[i].op == op) return false;
  for (uint32_t k = 0; k < rw->n_leaks; k++)
    for (uint32_t i = 0; i < rw->leaks[k]->n_results; i++)
      if (rw->leaks[k]->results[i].op == op) return false;
  return true;
}

/* --- the passes --- */

enum { SIMPLIFY_MAX_PATTERNS = 192 };

/* Appends one file's patterns; the order is that in which they are tried. */
static uint32_t simplify_add(opt_pattern *all, uint32_t n, const opt_pattern *more) {
  for (; more->fn; more++) {
    assert(n < SIMPLIFY_MAX_PATTERNS);
    all[n++] = *more;
  }
  return n;
}

/* Equal constants become one at the end, as MLIR's driver leaves them. */
static int simplify_run(ir_module *m, const opt_folder *folder, bool simplify, bool fold, xlac_error *err) {
  opt_pattern all[SIMPLIFY_MAX_PATTERNS];
  uint32_t n = 0;
  opt_rewriter rw;
  if (fold) n = simplify_add(all, n, opt_fold_patterns);
  if (simplify) {
    n = simplify_add(all, n, opt_math_patterns);
    n = simplify_add(all, n, opt_shape_patterns);
    n = simplify_add(all, n, opt_movement_patterns);
    n = simplify_add(all, n, opt_region_patterns);
    n = simplify_add(all, n, opt_dynamic_patterns);
    n = simplify_add(all, n, opt_sdy_collective_patterns);
    n = simplify_add(all, n, opt_sdy_reuse_patterns);
    n = simplify_add(all, n, opt_sdy_reshard_patterns);
    n = simplify_add(all, n, opt_sdy_computation_patterns);
  }
  TRY(opt_rewriter_init(&rw, m, err));
  rw.folder = folder;
  int status = opt_rewrite(&rw, n, all);
  if (status == 0) status = opt_merge_same(&rw, true);
  opt_rewriter_free(&rw);
  return status;
}

/* Options of upstream's passes, by their names. */
static opt_folder simplify_options(const opt_args *args) {
  return (opt_folder){.assume_pure = opt_get(args, "assume-no-undeclared-side-effects") != 0,
                      .no_floats = opt_get(args, "optimize-float") == 0,
                      .max_elements = opt_get(args, "fold-op-element-limit")};
}

int opt_aggressive_folder(ir_module *m, const opt_args *args, xlac_error *err) {
  opt_folder folder = simplify_options(args);
  return simplify_run(m, &folder, false, true, err);
}

int opt_aggressive_simplification(ir_module *m, const opt_args *args, xlac_error *err) {
  opt_folder folder = {.max_elements = opt_get(args, "fold-op-element-limit")};
  return simplify_run(m, &folder, true, false, err);
}

int opt_target_independent(ir_module *m, const opt_args *args, xlac_error *err) {
  opt_folder folder = simplify_options(args);
  return simplify_run(m, &folder, true, true, err);
}

/* Only the patterns that a label of Shardy's names. */
static int simplify_labelled(ir_module *m, base_slice label, xlac_error *err) {
  bool reshards = base_slice_is(label, "sdy-reshard");
  opt_rewriter rw;
  if (!reshards && !base_slice_is(label, "sdy-collective"))
    return base_fail(err, XLAC_E_BAD_PIPELINE,
                     "canonicalize has no patterns called \"%.*s\": sdy-reshard, sdy-collective",
                     label.n < 80 ? (int)label.n : 80, label.p);
  TRY(opt_rewriter_init(&rw, m, err));
  const opt_pattern *patterns = reshards ? opt_sdy_reshard_patterns : opt_sdy_collective_patterns;
  uint32_t n = 0;
  while (patterns[n].fn) n++;
  int status = opt_hoist_constants(&rw);
  if (status == 0) status = opt_rewrite(&rw, n, patterns);
  opt_rewriter_free(&rw);
  return status;
}

/* What MLIR's own canonicalize does on these dialects: StableHLO has no patterns for it, Shardy's ops have theirs, and
 * constants go to the front. stablehlo-aggressive-simplification is the pass that works on StableHLO. */
int opt_canonicalize(ir_module *m, const opt_args *args, xlac_error *err) {
  base_slice label = opt_get_text(args, "enable-patterns");
  if (label.n) return simplify_labelled(m, label, err);
  opt_pattern all[SIMPLIFY_MAX_PATTERNS];
  opt_rewriter rw;
  uint32_t n = simplify_add(all, 0, opt_sdy_collective_patterns);
  n = simplify_add(all, n, opt_sdy_reuse_patterns);
  n = simplify_add(all, n, opt_sdy_reshard_patterns);
  n = simplify_add(all, n, opt_sdy_computation_patterns);
  TRY(opt_rewriter_init(&rw, m, err));
  int status = opt_hoist_constants(&rw);
  if (status == 0) status = opt_rewrite(&rw, n, all);
  opt_rewriter_free(&rw);
  return status;
}
