/* Evaluates values that follow from constants alone: what they are made of is copied to a module of its own, which
 * the interpreter runs. So shapes that a graph computes are known, whatever ops it computes them with:
 *   %n = shape(%x) ; %m = %n[0] * 4 ; reshape(%y, %m)   reads %m here */
#include "../../interp/interp.h"
#include "../../convert/convert.h"
#include "build.h"

/* The copy: a module with one function, `main`, whose result is the value that is asked for. */
typedef struct tfl_excerpt {
  ir_module *m;
  ir_computation *main;
  base_map copies; /* op -> its copy; region's ops, too */
  ir_op **stack;
  uint32_t n, cap, n_ops;
  bool stuck; /* something in it is not a constant: the value is not known */
  base_alloc alloc;
} tfl_excerpt;

/* False when out of memory. */
static bool slice_push(tfl_excerpt *s, ir_op *op) {
  assert(op != NULL);
  if (s->n == s->cap && !base_vec_grow(s->alloc, (void **)&s->stack, &s->cap, sizeof *s->stack, (size_t)s->n + 1))
    return false;
  s->stack[s->n++] = op;
  return true;
}

static bool slice_copy_region(tfl_excerpt *s, ir_op *copy, uint32_t which, const ir_computation *from, uint32_t depth);

/* A copy at the end of c. Its operands are copied already, or this is stuck. */
static ir_op *slice_copy_op(tfl_excerpt *s, const ir_op *op, ir_computation *c, uint32_t depth) {
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!base_map_ptr(&s->copies, op->operands[i].op)) return (s->stuck = true), NULL;
  ir_op *copy = ir_op_clone(op, c, &s->copies);
  if (!copy || !base_map_set(&s->copies, base_key(op), base_key(copy))) return NULL;
  for (uint32_t i = 0; i < op->n_called; i++)
    if (!slice_copy_region(s, copy, i, op->called[i], depth + 1)) return NULL;
  return copy;
}

/* `which` is the region's place in copy. Deep nests are given up rather than copied: recursion must end. */
static bool slice_copy_region(tfl_excerpt *s, ir_op *copy, uint32_t which, const ir_computation *from, uint32_t depth) {
  assert(which < copy->n_called);
  enum { DEEPEST = 8 };
  ir_computation *c = depth <= DEEPEST ? ir_computation_new(s->m, "region", 6) : NULL;
  s->stuck = s->stuck || depth > DEEPEST;
  if (!c) return false;
  c->kind = IR_REGION;
  c->owner = copy;
  copy->called[which] = c;
  IR_FOR_OPS(op, from)
  if (!slice_copy_op(s, op, c, depth)) return false;
  c->results = BASE_ARRAY(&s->m->arena, ir_value, (size_t)from->n_results + 1);
  if (!c->results) return false;
  for (uint32_t i = 0; i < from->n_results; i++) {
    c->results[i] = (ir_value){base_map_ptr(&s->copies, from->results[i].op), from->results[i].index};
    if (!c->results[i].op) return (s->stuck = true), false;
  }
  c->n_results = from->n_results;
  return true;
}

/* Copies what `root` is made of, producers first. False when out of memory or stuck. Depth first with a stack of
 * its own. Parameters are what makes a value unknown. */
static bool slice_copy(tfl_excerpt *s, ir_op *root) {
  if (!slice_push(s, root)) return false;
  while (s->n > 0) {
    ir_op *op = s->stack[s->n - 1], *missing = NULL;
    if (base_map_ptr(&s->copies, op)) {
      s->n--;
      continue;
    }
    s->stuck = op->opcode == IR_OP_PARAMETER || ++s->n_ops > TFL_MOST_FOLDED_OPS;
    if (s->stuck) return false;
    for (uint32_t i = 0; i < op->n_operands && !missing; i++)
      if (!base_map_ptr(&s->copies, op->operands[i].op)) missing = op->operands[i].op;
    if (missing ? !slice_push(s, missing) : !slice_copy_op(s, op, s->main, 0)) return false;
  }
  return true;
}

/* The module is freed by tfl_evaluate, after a failure too. */
static int slice_begin(tfl_excerpt *s, xlac_error *err) {
  base_map_init(&s->copies, s->alloc);
  TRY(ir_module_create(&s->m, "", s->alloc, err));
  s->m->form = IR_FORM_MLIR;
  s->main = ir_computation_new(s->m, "main", 4);
  if (!s->main) return base_oom(err, "lowering");
  s->main->kind = IR_FUNCTION;
  return 0;
}

/* *out stays NULL where the interpreter refuses. Errors of conversion and of the interpreter are dropped: the
 * value is then not known, which the caller reports. */
static int slice_run(tfl_excerpt *s, const ir_op *root, uint32_t index, interp_value **out, xlac_error *err) {
  const convert_to_hlo_options executable = {.executable = true};
  const interp_options options = {.alloc = s->alloc};
  ir_module *hlo = NULL;
  xlac_error own = {.code = 0};
  ir_value *result = BASE_NEW(&s->m->arena, ir_value);
  if (!result) return base_oom(err, "lowering");
  *result = (ir_value){base_map_ptr(&s->copies, root), index};
  s->main->results = result;
  s->main->n_results = 1;
  int status = convert_to_hlo(&hlo, s->m, &executable, &own);
  if (status == 0) status = interp_run(hlo, &options, 0, NULL, out, &own);
  if (hlo) ir_module_destroy(hlo);
  return status == -XLAC_E_OUT_OF_MEMORY ? base_oom(err, "lowering") : 0;
}

/* Copies the bytes into the result's arena, where the value's data lives. A result of another type is not taken. */
static int fold_keep(tfl_build *b, tfl_value *v, const interp_value *found) {
  size_t size = (size_t)v->type->count * base_dtype_bytes((base_dtype)v->type->dtype);
  if (!found || found->kind != INTERP_ARRAY || found->dtype != v->type->dtype || found->count != v->type->count)
    return 0;
  char *copy = base_arena_aligned(&b->out->arena, size + 1, 64);
  if (!copy) return base_oom(b->err, "lowering");
  if (size) memcpy(copy, found->data, size);
  v->data = copy;
  return 0;
}

/* The interpreter's run is bounded by TFL_MOST_FOLDED_OPS ops, but for loops, which only constant graphs have. */
int tfl_evaluate(tfl_build *b, tfl_value *v, const void **data) {
  assert(v->kind == TFL_TENSOR);
  *data = v->data;
  if (v->data || !v->fixed || !v->v.op) return 0;
  tfl_excerpt s = {.alloc = b->rw.m->alloc};
  interp_value *found = NULL;
  int status = slice_begin(&s, b->err);
  if (status == 0 && !slice_copy(&s, v->v.op) && !s.stuck) status = base_oom(b->err, "lowering");
  if (status == 0 && !s.stuck) status = slice_run(&s, v->v.op, v->v.index, &found, b->err);
  if (status == 0) status = fold_keep(b, v, found);
  interp_release(found);
  base_map_free(&s.copies);
  base_free(s.alloc, s.stack);
  if (s.m) ir_module_destroy(s.m);
  *data = v->data;
  if (!v->data) v->fixed = false; /* not asked again */
  return status;
}
