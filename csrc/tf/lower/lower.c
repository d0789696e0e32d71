/* tfl_lower: the module around the graph, its parameters and results. Inputs become parameters of main or
 * constants; results become main's results, constants of the caller, or inputs passed through; variables that were
 * written become further results. At the end everything that nobody reads goes, parameters included, and the
 * module is verified. */
#include "lower.h"

#include "../../ir/stablehlo/stablehlo.h"
#include "build.h"

/* --- inputs --- */

/* The type of an input. Errors name its number. */
static int lower_type_of(const tfl_build *b, uint32_t i, const tfl_shape *s, const ir_type **out) {
  xlac_error why = {.code = 0};
  *out = NULL;
  if (s->rank > TFL_MOST_DIMS)
    return base_fail(b->err, XLAC_E_LOWER, "input %u has %u dimensions: at most %d work", i, s->rank, TFL_MOST_DIMS);
  *out = ir_tensor(b->rw.m, s->dtype, s->rank, s->dims, NULL, NULL, &why);
  if (*out) return 0;
  return why.code == XLAC_E_OUT_OF_MEMORY ? base_oom(b->err, "lowering")
                                          : base_fail(b->err, XLAC_E_LOWER, "input %u: %.300s", i, why.message);
}

static ir_value lower_parameter(tfl_build *b, uint32_t i, const ir_type *type) {
  assert(b->rw.failed || b->rw.m->entry->n_params == b->out->n_params);
  b->out->params[b->out->n_params++] = i;
  return opt_region_argument(&b->rw, b->rw.m->entry, type);
}

/* A variable's value is a parameter from the start; lower_drop_parameters removes it where nobody reads it. */
static int lower_resource(tfl_build *b, uint32_t i, const tfl_input *in, tfl_value *v) {
  tfl_resource *r = BASE_NEW(&b->out->arena, tfl_resource);
  if (!r || !BASE_VEC_PUSH(b->out->arena.alloc, &b->resources, r)) return base_oom(b->err, "lowering");
  r->input = (int32_t)i;
  r->value.input = -1;
  *v = (tfl_value){.kind = TFL_HANDLE, .input = (int32_t)i, .number = b->resources.n - 1};
  if (in->unset || in->shape.dtype == BASE_DTYPE_INVALID) return 0;
  const ir_type *type = NULL;
  TRY(lower_type_of(b, i, &in->shape, &type));
  r->value = (tfl_value){.kind = TFL_TENSOR, .type = type, .v = lower_parameter(b, i, type), .input = -1};
  return 0;
}

/* What has no element type (a string, a variant) is TFL_NONE: only passing it through works. */
static int lower_one_input(tfl_build *b, uint32_t i, const tfl_input *in, tfl_value *v) {
  const ir_type *type = NULL;
  *v = (tfl_value){.kind = TFL_NONE, .input = (int32_t)i};
  if (in->resource) return lower_resource(b, i, in, v);
  if (in->shape.dtype == BASE_DTYPE_INVALID) return 0;
  TRY(lower_type_of(b, i, &in->shape, &type));
  v->kind = TFL_TENSOR;
  v->type = type;
  if (!in->data) {
    v->v = lower_parameter(b, i, type);
    return 0;
  }
  size_t size = (size_t)type->count * base_dtype_bytes(in->shape.dtype);
  char *copy = base_arena_aligned(&b->out->arena, size + 1, 64);
  if (!copy) return base_oom(b->err, "lowering");
  if (size) memcpy(copy, in->data, size);
  v->data = copy;
  v->fixed = true;
  return 0;
}

/* --- outputs --- */

/* The other way: a type of the module as a shape for the caller. */
static int lower_shape_of(const tfl_build *b, const ir_type *t, tfl_shape *s) {
  if (t->rank > TFL_MOST_DIMS)
    return base_fail(b->err, XLAC_E_LOWER, "a result has %u dimensions: at most %d work", t->rank, TFL_MOST_DIMS);
  *s = (tfl_shape){.dtype = (base_dtype)t->dtype, .rank = t->rank};
  if (t->rank) memcpy(s->dims, t->dims, t->rank * sizeof *s->dims);
  return 0;
}

/* main's results, as they come up. */
typedef struct lower_ends {
  ir_value *results;
  uint32_t n;
} lower_ends;

/* In this order: an input as it is, a handle of an input, data that is known, else a result of main. Small fixed
 * values are evaluated, so that shapes stay known from one cluster to the next. */
static int lower_output(tfl_build *b, uint32_t i, tfl_value *v, lower_ends *ends) {
  assert(i < b->out->n_outputs);
  tfl_output *o = &b->out->outputs[i];
  *o = (tfl_output){.result = -1, .input = v->input};
  if (v->kind == TFL_TENSOR) TRY(lower_shape_of(b, v->type, &o->shape));
  if (v->input >= 0) return 0;
  if (v->kind == TFL_HANDLE) o->input = b->resources.items[v->number]->input;
  if (o->input >= 0) return 0;
  if (v->kind != TFL_TENSOR)
    return base_fail(b->err, XLAC_E_LOWER, "result %u is not a tensor, and none of the inputs", i);
  if (v->type->count <= TFL_SMALL) TRY(tfl_evaluate(b, v, &o->data));
  o->data = v->data;
  if (o->data) return 0;
  o->result = (int32_t)ends->n;
  ends->results[ends->n++] = v->v;
  return 0;
}

/* Only resources that were inputs and got a new value have an update: what the graph made itself is gone at the
 * end. */
static int lower_update(tfl_build *b, tfl_resource *r, lower_ends *ends) {
  assert(r->written && r->input >= 0);
  tfl_update *u = &b->out->updates[b->out->n_updates];
  if (r->value.kind != TFL_TENSOR)
    return base_fail(b->err, XLAC_E_LOWER, "the variable of input %d gets a value that is not a tensor", r->input);
  *u = (tfl_update){.input = (uint32_t)r->input, .result = ends->n};
  TRY(lower_shape_of(b, r->value.type, &u->shape));
  ends->results[ends->n++] = tfl_use_value(b, &r->value);
  b->out->n_updates++;
  return 0;
}

/* Results first, then updates in the order of the resources, which is that of the inputs. */
static int lower_ends_of(tfl_build *b, tfl_value *rets) {
  tfl_lowered *out = b->out;
  lower_ends ends = {BASE_ARRAY(&out->arena, ir_value, (size_t)out->n_outputs + b->resources.n + 1), 0};
  out->outputs = BASE_ARRAY(&out->arena, tfl_output, (size_t)out->n_outputs + 1);
  out->updates = BASE_ARRAY(&out->arena, tfl_update, (size_t)b->resources.n + 1);
  if (!ends.results || !out->outputs || !out->updates) return base_oom(b->err, "lowering");
  for (uint32_t i = 0; i < out->n_outputs; i++) TRY(lower_output(b, i, &rets[i], &ends));
  for (uint32_t i = 0; i < b->resources.n; i++)
    if (b->resources.items[i]->written && b->resources.items[i]->input >= 0)
      TRY(lower_update(b, b->resources.items[i], &ends));
  opt_set_results(&b->rw, b->rw.m->entry, ends.n, ends.results);
  return opt_rewriter_status(&b->rw);
}

/* --- what nobody reads goes --- */

/* `uses` is the list of readers; results are not readers. */
static bool lower_is_dead(const ir_op *op, const uint8_t *is_result) {
  return !op->uses && !is_result[op->id] && op->opcode != IR_OP_PARAMETER && opt_is_pure(op);
}

/* Backward, so that an op whose last reader has just gone is seen after it. The bit of a result is by op. */
static int lower_drop_unused(tfl_build *b) {
  ir_computation *main = b->rw.m->entry;
  uint8_t *is_result = base_arena_zalloc(&b->out->arena, b->rw.m->n_ids + 1);
  if (!is_result) return base_oom(b->err, "lowering");
  IR_FOR_COMPUTATIONS(c, b->rw.m)
  for (uint32_t i = 0; i < c->n_results; i++) is_result[c->results[i].op->id] = 1;
  for (ir_op *op = main->last, *before = NULL; op; op = before) {
    before = op->prev;
    if (lower_is_dead(op, is_result)) {
      for (uint32_t i = 0; i < op->n_called; i++) ir_computation_remove(op->called[i]);
      op->n_called = 0;
      ir_op_remove(op);
    }
  }
  return 0;
}

/* params keeps the numbers of the inputs that stay, in order. */
static void lower_drop_parameters(tfl_build *b) {
  assert(b->rw.m->entry->n_params == b->out->n_params);
  ir_computation *main = b->rw.m->entry;
  uint32_t kept = 0;
  for (uint32_t i = 0, at = 0; i < b->out->n_params; i++) {
    if (opt_is_used(&b->rw, main->params[at])) {
      b->out->params[kept++] = b->out->params[i];
      at++;
    } else {
      opt_erase_parameter(&b->rw, main, at);
    }
  }
  b->out->n_params = kept;
}

/* --- all of it --- */

/* Results are numbered by attribute `index`, so the number is one more than the largest; a graph with a wild index
 * is refused, not given a list of that length. */
static int lower_count_rets(tfl_build *b, const tf_graph *g) {
  uint32_t *numbers = NULL;
  TRY(tfl_number_ends(g, &b->out->arena, &numbers, b->err));
  for (uint32_t id = 0; id < g->nodes.n; id++)
    if (g->nodes.items[id].role == TF_ROLE_RETVAL && numbers[id] >= b->out->n_outputs)
      b->out->n_outputs = numbers[id] + 1;
  if (b->out->n_outputs <= g->nodes.n) return 0;
  return base_fail(b->err, XLAC_E_LOWER, "a result has the number %u, there are fewer nodes", b->out->n_outputs - 1);
}

/* The stages in their order; *out is filled as they go. */
static int lower_all(tfl_build *b, const tf_graph *graph, uint32_t n_inputs, const tfl_input *inputs) {
  tfl_lowered *out = b->out;
  TRY(lower_count_rets(b, graph));
  out->params = BASE_ARRAY(&out->arena, uint32_t, (size_t)n_inputs + 1);
  tfl_value *args = BASE_ARRAY(&out->arena, tfl_value, (size_t)n_inputs + 1);
  tfl_value *rets = BASE_ARRAY(&out->arena, tfl_value, (size_t)out->n_outputs + 1);
  if (!out->params || !args || !rets) return base_oom(b->err, "lowering");
  for (uint32_t i = 0; i < n_inputs; i++) TRY(lower_one_input(b, i, &inputs[i], &args[i]));
  opt_at_end(&b->rw, b->rw.m->entry, NULL);
  TRY(tfl_lower_graph(b, graph, NULL, 0, n_inputs, args, out->n_outputs, rets));
  b->rw.origin = NULL;
  TRY(lower_ends_of(b, rets));
  TRY(lower_drop_unused(b));
  lower_drop_parameters(b);
  TRY(opt_rewriter_status(&b->rw));
  return stablehlo_verify(b->rw.m, b->err);
}

/* A module in MLIR form with an empty main. */
static int lower_begin(tfl_build *b, xlac_error *err) {
  TRY(ir_module_create(&b->out->module, "lowered", b->out->arena.alloc, err));
  b->out->module->form = IR_FORM_MLIR;
  ir_computation *main = ir_computation_new(b->out->module, "main", 4);
  if (!main) return base_oom(err, "lowering");
  main->kind = IR_FUNCTION;
  return opt_rewriter_init(&b->rw, b->out->module, err);
}

/* On failure *out keeps what it has for tfl_lowered_free, and needs_data, which decides what the caller tries
 * next. */
int tfl_lower(tfl_lowered *out, tf_bodies *bodies, const tf_graph *graph, uint32_t n_inputs, const tfl_input *inputs,
              xlac_error *err) {
  assert(n_inputs == 0 || inputs != NULL);
  tfl_build b = {.out = out, .bodies = bodies, .err = err};
  *out = (tfl_lowered){.module = NULL};
  base_arena_init(&out->arena, bodies->alloc);
  base_map_init(&b.rows, bodies->alloc);
  TRY(lower_begin(&b, err));
  int status = lower_all(&b, graph, n_inputs, inputs);
  opt_rewriter_free(&b.rw);
  base_map_free(&b.rows);
  BASE_VEC_FREE(bodies->alloc, &b.resources);
  return status;
}

/* The module too, where nobody has taken it. */
void tfl_lowered_free(tfl_lowered *l) {
  assert(l != NULL);
  if (l->module) ir_module_destroy(l->module);
  base_arena_free(&l->arena);
  *l = (tfl_lowered){.module = NULL};
}
