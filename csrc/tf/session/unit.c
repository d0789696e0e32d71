/* Compiled units: a cluster, or one node. What is compiled depends on the shapes and types of the inputs and on the
 * values of those that must be constants; TensorFlow's policy says when that is worth it. Source: reference notes,
 * section 10; the behaviour of device_compilation_profiler.cc. */
#include <time.h>

#include "../lower/lower.h"
#include "run.h"

/* The numbers of TensorFlow's policy, but for the last two, which bound what a signature may take. */
enum {
  TFS_COMPILE_THRESHOLD = 2, /* requests of one signature */
  TFS_MEGAMORPHIC_COMPILES = 10,
  TFS_MEGAMORPHIC_RUNS = 50, /* for each compilation, at least */
  TFS_MOST_KNOWN = 1024,     /* elements of integers that are part of a signature */
  TFS_MOST_KNOWN_NUMBERS = 16
};

/* Where an output of the unit comes from: a result of the executable, an input as it is, or a value that was known
 * at compile time. */
typedef struct tfs_compiled_out {
  int32_t result, input; /* as in tfl_output */
  interp_value *known;   /* where it is neither */
} tfs_compiled_out;
/* The variable behind input `input` gets result `result`. */
typedef struct tfs_compiled_update {
  uint32_t input, result;
} tfs_compiled_update;

/* One signature of a unit: types, shapes and the known values of its inputs, and what was compiled for it.
 * `failed` ones are never tried again. */
struct tfs_compiled {
  tfs_compiled *next;
  uint64_t hash, uses;
  char *signature;
  size_t n;
  uint32_t requests;
  bool ready, failed;
  rt_executable *exe; /* NULL where nothing is left to compute */
  uint32_t n_params, n_outputs, n_updates;
  uint32_t *params; /* inputs that the executable takes */
  tfs_compiled_out *outputs;
  tfs_compiled_update *updates;
};

/* All but the signature. */
static void tfs_compiled_clear(tfs_compiled *e, base_alloc alloc) {
  for (uint32_t i = 0; e->outputs && i < e->n_outputs; i++) interp_release(e->outputs[i].known);
  base_free(alloc, e->outputs);
  rt_executable_destroy(e->exe);
  e->outputs = NULL;
  e->exe = NULL;
}

static void tfs_compiled_drop(tfs_compiled *e, base_alloc alloc) {
  assert(e);
  tfs_compiled_clear(e, alloc);
  base_free(alloc, e->signature);
  base_free(alloc, e);
}

/* All signatures of a unit. */
void tfs_compiled_free(tfs_compiled *list, base_alloc alloc) {
  for (tfs_compiled *next = NULL; list; list = next) {
    next = list->next;
    tfs_compiled_drop(list, alloc);
  }
}

/* Also those that were never compiled. */
uint32_t tfs_count_signatures(const tfs_unit *u) {
  uint32_t n = 0;
  for (const tfs_compiled *e = u->compiled; e; e = e->next) n++;
  return n;
}

/* --- what the inputs are --- */

/* By the type of the part's argument: a handle of a variable, and not a reference to it. */
static bool tfs_input_is_resource(const tfs_unit *u, uint32_t i) {
  assert(i < u->part.n_inputs);
  return tf_output_type(&u->part.graph.nodes.items[TF_SINK + 1 + i], 0) == TF_RESOURCE;
}

/* The array behind input i: a tensor, a variable's value (NULL where it has none). */
static int tfs_array_of(tfs_call *c, uint32_t i, interp_value **out) {
  assert(i < c->n_in);
  const tfs_value *v = &c->in[i];
  *out = NULL;
  if (v->kind == TFS_TENSOR) {
    *out = v->tensor;
    return 0;
  }
  if (!tfs_is_object(v, TFS_VARIABLE)) {
    int status =
        tfs_fail(c, XLAC_E_LOWER,
                 "input %u is neither a tensor of numbers nor a variable: xlac has no other code for this op", i);
    return base_hint(c->err, status,
                     "what a checkpoint or a table would give can be fed, or set as the variables' values");
  }
  *out = v->object->value;
  if (*out || tfs_input_is_resource(c->unit, i)) return 0;
  return tfs_fail(c, XLAC_E_EVAL, "variable '%.100s' has no value yet", v->object->name->s);
}

/* Its value is part of what is compiled. Constants come first among a part's inputs. Where a unit needs more,
 * small inputs count as known; large ones would make a signature of each value. */
static bool tfs_is_known(const tfs_unit *u, uint32_t i, const interp_value *v) {
  assert(i < u->n_in);
  if (i < u->part.n_constants) return true;
  if (!u->needs_data || tfs_input_is_resource(u, i)) return false;
  return v->count <= (base_dtype_is_integer((base_dtype)v->dtype) ? TFS_MOST_KNOWN : TFS_MOST_KNOWN_NUMBERS);
}

static void tfs_put_bytes(base_text *t, const void *p, size_t n) {
  base_put(t, p, n);
}

/* The signature as bytes, in the order of the inputs: 0xFF for the rank of what is not set. */
static int tfs_sign(tfs_call *c, base_text *t) {
  for (uint32_t i = 0; i < c->n_in; i++) {
    interp_value *v = NULL;
    TRY(tfs_array_of(c, i, &v));
    uint8_t head[2] = {v ? v->dtype : 0, v ? (uint8_t)v->rank : 0xFF};
    tfs_put_bytes(t, head, sizeof head);
    if (!v) continue;
    tfs_put_bytes(t, v->dims, v->rank * sizeof *v->dims);
    if (tfs_is_known(c->unit, i, v)) tfs_put_bytes(t, v->data, interp_bytes(v));
  }
  return t->failed ? tfs_oom(c) : 0;
}

/* The entry of that signature, new where there is none. A list will do: there are few, and beyond some the unit
 * counts as megamorphic. */
static int tfs_find_compiled(tfs_call *c, base_text *t, tfs_compiled **out) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t i = 0; i < t->n; i++) hash = (hash ^ (uint8_t)t->s[i]) * 0x100000001B3u;
  for (tfs_compiled *e = c->unit->compiled; e; e = e->next) {
    if (e->hash != hash || e->n != t->n || (t->n && memcmp(e->signature, t->s, t->n) != 0)) continue;
    *out = e;
    return 0;
  }
  tfs_compiled *e = base_malloc(c->alloc, sizeof *e);
  if (!e) return tfs_oom(c);
  *e = (tfs_compiled){.hash = hash, .n = t->n, .next = c->unit->compiled};
  e->signature = base_malloc(c->alloc, t->n);
  if (!e->signature) {
    base_free(c->alloc, e);
    return tfs_oom(c);
  }
  if (t->n) memcpy(e->signature, t->s, t->n);
  c->unit->compiled = e;
  *out = e;
  return 0;
}

/* --- whether to compile --- */

/* A cluster is compiled when it first runs, and later for signatures that come again; one that is given ever new
 * signatures is given up. Single nodes always are, since nobody else can run them. */
static bool tfs_wants_compiling(const tfs_session *s, tfs_unit *u, const tfs_compiled *e) {
  uint64_t runs = u->stats.runs + 1;
  if (!u->is_cluster || s->options.compile_at_once) return true;
  if (s->options.always_defer) return false;
  if (u->stats.compiles > TFS_MEGAMORPHIC_COMPILES && runs < TFS_MEGAMORPHIC_RUNS * u->stats.compiles)
    u->megamorphic = true;
  if (u->megamorphic) return false;
  return runs == 1 || e->requests >= TFS_COMPILE_THRESHOLD;
}

/* --- compiling --- */

/* Data are borrowed: lowering copies what it keeps. */
static int tfs_describe_inputs(tfs_call *c, tfl_input *inputs) {
  for (uint32_t i = 0; i < c->n_in; i++) {
    interp_value *v = NULL;
    TRY(tfs_array_of(c, i, &v));
    inputs[i] = (tfl_input){.resource = tfs_input_is_resource(c->unit, i), .unset = v == NULL};
    if (!v) continue;
    if (v->rank > TFL_MOST_DIMS) return tfs_fail(c, XLAC_E_TOO_LARGE, "input %u has rank %u", i, v->rank);
    inputs[i].shape.dtype = (base_dtype)v->dtype;
    inputs[i].shape.rank = v->rank;
    if (v->rank) memcpy(inputs[i].shape.dims, v->dims, v->rank * sizeof *v->dims);
    if (tfs_is_known(c->unit, i, v)) inputs[i].data = v->data;
  }
  return 0;
}

/* What is needed of it beside the module, in one block. Known outputs become tensors of the unit's own. */
static int tfs_keep_lowered(tfs_call *c, tfs_compiled *e, const tfl_lowered *low) {
  assert(e->outputs == NULL);
  size_t outputs = (low->n_outputs + (size_t)1) * sizeof *e->outputs, updates = low->n_updates * sizeof *e->updates;
  char *block = base_malloc(c->alloc, outputs + updates + low->n_params * sizeof *e->params);
  if (!block) return tfs_oom(c);
  memset(block, 0, outputs);
  e->outputs = (tfs_compiled_out *)(void *)block;
  e->updates = (tfs_compiled_update *)(void *)(block + outputs);
  e->params = (uint32_t *)(void *)(block + outputs + updates);
  e->n_params = low->n_params;
  e->n_outputs = low->n_outputs;
  e->n_updates = low->n_updates;
  if (low->n_params) memcpy(e->params, low->params, low->n_params * sizeof *e->params);
  for (uint32_t i = 0; i < low->n_updates; i++)
    e->updates[i] = (tfs_compiled_update){low->updates[i].input, low->updates[i].result};
  for (uint32_t i = 0; i < low->n_outputs; i++) {
    const tfl_output *o = &low->outputs[i];
    e->outputs[i] = (tfs_compiled_out){.result = o->result, .input = o->input};
    if (o->result >= 0 || o->input >= 0) continue;
    interp_value *v = tfs_new_tensor(c->alloc, o->shape.dtype, o->shape.rank, o->shape.dims);
    if (!v) return tfs_oom(c);
    if (v->count) memcpy(v->data, o->data, interp_bytes(v));
    e->outputs[i].known = v;
  }
  return 0;
}

/* Whether anything is left for an executable to do. */
static bool tfs_computes(const tfs_compiled *e) {
  bool any = e->n_updates > 0;
  for (uint32_t i = 0; i < e->n_outputs; i++) any = any || e->outputs[i].result >= 0;
  return any;
}

/* Takes the module out of `low`. */
static int tfs_compile_lowered(tfs_call *c, tfs_compiled *e, tfl_lowered *low) {
  TRY(tfs_keep_lowered(c, e, low));
  if (!tfs_computes(e)) return 0;
  ir_module *m = low->module;
  low->module = NULL;
  return tfs_compile_module(tfs_context_of(c->run)->session, m, &e->exe, c->err);
}

/* *again: it fails because it must know more of its inputs. */
static int tfs_lower_unit(tfs_call *c, tfs_compiled *e, bool *again) {
  assert(c->unit->cut);
  tfs_session *s = tfs_context_of(c->run)->session;
  tfl_input *inputs = base_malloc(c->alloc, (c->n_in + (size_t)1) * sizeof *inputs);
  if (!inputs) return tfs_oom(c);
  int status = tfs_describe_inputs(c, inputs);
  if (status == 0) {
    tfl_lowered low;
    status = tfl_lower(&low, &s->pass->bodies, &c->unit->part.graph, c->n_in, inputs, c->err);
    *again = status && low.needs_data && !c->unit->is_cluster && !c->unit->needs_data;
    if (status == 0) status = tfs_compile_lowered(c, e, &low);
    tfl_lowered_free(&low);
  }
  base_free(c->alloc, inputs);
  return status;
}

/* Times are counted for failures, too; a failed entry is empty again. */
static int tfs_compile_unit(tfs_call *c, tfs_compiled *e, bool *again) {
  assert(!e->ready);
  struct timespec from, to;
  clock_gettime(CLOCK_MONOTONIC, &from);
  int status = tfs_lower_unit(c, e, again);
  clock_gettime(CLOCK_MONOTONIC, &to);
  c->unit->stats.compile_seconds += (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
  c->unit->stats.compiles += status == 0;
  e->ready = status == 0;
  if (status) tfs_compiled_clear(e, c->alloc);
  return status;
}

/* --- running --- */

/* An input that is an output is passed on as a handle where the output is one, and else by its value. */
static int tfs_give_outputs(tfs_call *c, const tfs_compiled *e, interp_value *const *results) {
  uint32_t first = c->unit->part.graph.nodes.n - c->n_out;
  for (uint32_t i = 0; i < c->n_out; i++) {
    const tfs_compiled_out *o = &e->outputs[i];
    if (o->result >= 0) {
      c->out[i] = tfs_of_tensor(interp_retain(results[o->result]));
    } else if (o->input < 0) {
      c->out[i] = tfs_of_tensor(interp_retain(o->known));
    } else {
      unsigned type = tf_input_type(&c->unit->part.graph.nodes.items[first + i], 0);
      interp_value *v = NULL;
      TRY(tfs_array_of(c, (uint32_t)o->input, &v));
      bool handle = type == TF_RESOURCE || type >= TF_REF;
      c->out[i] = handle || !v ? tfs_keep(c->in[o->input]) : tfs_of_tensor(interp_retain(v));
    }
  }
  return 0;
}

/* After the outputs were made: those may be values of before. */
static int tfs_give_updates(tfs_call *c, const tfs_compiled *e, interp_value *const *results) {
  tfs_session *s = tfs_context_of(c->run)->session;
  for (uint32_t i = 0; i < e->n_updates; i++) {
    const tfs_compiled_update *u = &e->updates[i];
    if (!tfs_is_object(&c->in[u->input], TFS_VARIABLE))
      return tfs_fail(c, XLAC_E_INTERNAL, "input %u gets a new value but is not a variable", u->input);
    TRY(tfs_set_variable(s, c->in[u->input].object, interp_retain(results[u->result]), c->err));
  }
  return 0;
}

/* *out is the caller's. Arguments are borrowed: variables keep their values during the run. */
static int tfs_run_executable(tfs_call *c, const tfs_compiled *e, interp_value **out) {
  assert(e->exe);
  const tfs_context *ctx = tfs_context_of(c->run);
  interp_value **args = base_malloc(c->alloc, (e->n_params + (size_t)1) * sizeof *args);
  int status = args ? 0 : tfs_oom(c);
  for (uint32_t i = 0; i < e->n_params && status == 0; i++) {
    status = tfs_array_of(c, e->params[i], &args[i]);
    if (status == 0 && !args[i]) status = tfs_fail(c, XLAC_E_EVAL, "a variable has no value yet");
  }
  if (status == 0) status = rt_run_values(e->exe, &ctx->options, e->n_params, args, out, NULL, c->err);
  base_free(c->alloc, args);
  return status;
}

/* One result comes bare, several as a tuple. */
static int tfs_run_compiled(tfs_call *c, tfs_compiled *e) {
  assert(e->ready);
  interp_value *out = NULL;
  if (e->exe) TRY(tfs_run_executable(c, e, &out));
  interp_value *const *results = out && out->kind == INTERP_TUPLE ? out->elements : &out;
  int status = tfs_give_outputs(c, e, results);
  if (status == 0) status = tfs_give_updates(c, e, results);
  interp_release(out);
  e->uses++;
  c->unit->stats.compiled_runs++;
  return status;
}

/* The cluster's nodes, each by the host or compiled by itself. */
static int tfs_run_by_nodes(tfs_call *c) {
  tfs_context *ctx = tfs_context_of(c->run);
  tfs_program *p = NULL;
  TRY(tfs_unit_nodes(ctx->session, c->unit, &p, c->err));
  c->unit->stats.fallen_back++;
  return tfs_run_program(ctx, p, c->in, c->out);
}

/* The first reason is kept, for the report. */
static void tfs_note_why(tfs_call *c, tfs_compiled *e) {
  e->failed = true;
  if (c->unit->why || !c->err) return;
  size_t n = strlen(c->err->message);
  c->unit->why = base_malloc(c->alloc, n + 1);
  if (c->unit->why) memcpy(c->unit->why, c->err->message, n + 1);
}

/* A cluster that can't be signed or compiled runs by nodes; what is not a cluster fails, and so does everything when
 * memory is out. */
static int tfs_run_signed(tfs_call *c, bool *again) {
  tfs_session *s = tfs_context_of(c->run)->session;
  tfs_compiled *e = NULL;
  base_text t;
  base_text_init(&t, c->alloc);
  int status = tfs_sign(c, &t);
  if (status == 0) status = tfs_find_compiled(c, &t, &e);
  base_text_free(&t);
  if (status) return c->unit->is_cluster && status == -XLAC_E_LOWER ? tfs_run_by_nodes(c) : status;
  e->requests++;
  c->unit->stats.hits += e->ready;
  if (!e->ready && !e->failed && tfs_wants_compiling(s, c->unit, e)) {
    status = tfs_compile_unit(c, e, again);
    if (status && (!c->unit->is_cluster || status == -XLAC_E_OUT_OF_MEMORY)) return status;
    if (status) tfs_note_why(c, e);
  }
  return e->ready ? tfs_run_compiled(c, e) : tfs_run_by_nodes(c);
}

/* Once more where lowering asked for values of inputs: from then on they are part of the signature. */
int tfs_run_compute(tfs_call *c) {
  assert(c->unit->kind == TFS_UNIT_COMPUTE);
  bool again = false;
  int status = tfs_run_signed(c, &again);
  if (!again) return status;
  c->unit->needs_data = true;
  return tfs_run_signed(c, &again);
}
