/* What propagation did, and what is left to move, as JSON; and the way back: a sharding that a person chose is
 * written into the program. Values are listed once, in text order, under the names that the module's text gives them;
 * all other lists name values by their place in that list. */
#include "../../text/mlir/mlir.h"
#include "../common/common.h"
#include "../propagate/propagate.h"
#include "../round_trip/round_trip.h"
#include "explain.h"

/* What is being written, and where values are in it. Arrays by slot and id are the caller's. */
typedef struct tell {
  ir_module *m;
  base_text *out;
  const shard_state *s; /* or NULL: values have the shardings the module says */
  const ir_computation *main;
  uint32_t *places;    /* by slot: 1 + its place in "values" */
  uint32_t *op_places; /* by op id: 1 + the place of its first result */
  uint32_t n_values;
  bool first;
} tell;

/* JSON strings: quotes, backslashes and control characters are escaped; UTF-8 goes through as it is. */
static void tell_string(base_text *o, const char *s, size_t n) {
  base_putc(o, '"');
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)s[i];
    if (c == '"' || c == '\\') base_putc(o, '\\');
    if (c < 32)
      base_putf(o, "\\u%04x", c);
    else
      base_putc(o, (char)c);
  }
  base_putc(o, '"');
}

/* A comma before every element of a list but the first. */
static void tell_next(tell *e) {
  if (!e->first) BASE_PUT(e->out, ",\n  ");
  e->first = false;
}

/* Nested locations go down to the first file.
 * loc("f"("model.py":12:3)) is "model.py:12". */
void shard_put_source(base_text *o, const ir_mattr *loc) {
  for (uint32_t depth = 0; loc && loc->kind == IR_M_LOC && depth < 64; depth++) {
    const ir_mloc *l = loc->v.loc;
    if (l->kind == IR_LOC_FILE) {
      base_text text;
      base_text_init(&text, o->alloc);
      base_putf(&text, "%s:%u", l->name ? l->name->s : "", l->line);
      tell_string(o, text.s, text.n);
      base_text_free(&text);
      return;
    }
    if (l->kind == IR_LOC_FUSED)
      loc = l->parts && l->parts->n ? l->parts->v[0] : NULL;
    else
      loc = l->child;
  }
  BASE_PUT(o, "null");
}

/* Ops by their MLIR names; what a dialect unknown here calls itself for others. */
static const char *tell_opcode(const ir_op *op) {
  if (op->opcode == IR_OP_PARAMETER) return op->parent->kind == IR_FUNCTION ? "argument" : "block argument";
  const ir_mlir_info *info = ir_opcode_info(op->opcode)->mlir;
  return op->opcode == IR_OP_UNREGISTERED ? op->u.name->s : info ? info->name : "";
}

/* As the module's text has it, or null. */
static void tell_sharding(tell *e, const sdy_sharding *s) {
  const ir_mattr *a = s ? sdy_attr(e->m, SDY_SHARDING, s) : NULL;
  if (!a) {
    BASE_PUT(e->out, "null");
    return;
  }
  base_text text;
  base_text_init(&text, e->out->alloc);
  text_put_mlir_attr(&text, a);
  tell_string(e->out, text.s, text.n);
  base_text_free(&text);
}

/* Where the value is: in which function, by how many ops with regions around it, and in which named computation, which
 * is what becomes of a call of a function.
 * {"function": "main", "main": true, "depth": 1, "inside": 0} for an op in the body of a loop of main. */
static void tell_scope(tell *e, const ir_op *op) {
  assert(op->parent != NULL);
  const ir_computation *c = op->parent;
  const ir_op *named = NULL;
  uint32_t depth = 0;
  for (; c->owner; c = c->owner->parent, depth++)
    if (!named && c->owner->opcode == IR_OP_SDY_NAMED_COMPUTATION) named = c->owner;
  BASE_PUT(e->out, ", \"function\": ");
  tell_string(e->out, c->name->s, c->name->n);
  base_putf(e->out, ", \"main\": %s, \"depth\": %u, \"inside\": ", c == e->main ? "true" : "false", depth);
  base_putf(e->out, "%u", named ? named->id + 1 : 0);
}

/* The text, and for tensors the bytes of an element and the sizes; null for a dynamic one. */
static void tell_type(tell *e, const ir_type *t) {
  base_text text;
  base_text_init(&text, e->out->alloc);
  text_put_mlir_type(&text, t);
  BASE_PUT(e->out, ", \"type\": ");
  tell_string(e->out, text.s, text.n);
  base_text_free(&text);
  if (t->kind != IR_TYPE_TENSOR) return;
  base_putf(e->out, ", \"itemsize\": %u, \"shape\": [", (unsigned)base_dtype_bytes(t->dtype));
  for (uint32_t d = 0; d < t->rank; d++) {
    if (d) BASE_PUT(e->out, ", ");
    if (ir_dim_is_dynamic(t, d))
      BASE_PUT(e->out, "null");
    else
      base_putf(e->out, "%lld", (long long)t->dims[d]);
  }
  base_putc(e->out, ']');
}

/* Places of operands; ops without a place (meshes) are left out. */
static void tell_operands(tell *e, const ir_op *op) {
  BASE_PUT(e->out, ", \"operands\": [");
  bool first = true;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_use *use = &op->operands[i];
    assert(use->op->id < e->m->n_ids);
    uint32_t place = e->op_places[use->op->id];
    if (!place) continue;
    base_putf(e->out, "%s%u", first ? "" : ", ", place - 1 + use->index);
    first = false;
  }
  base_putc(e->out, ']');
}

/* Called for each value in text order. Ops that were added after the table was made have no slot, and are left out.
 * %0 = stablehlo.abs %a is {"name": "%0", "opcode": "stablehlo.abs", "line": 3, ..., "type": "tensor<8xf32>",
 * "itemsize": 4, "shape": [8], "operands": [0], "sharding": "#sdy.sharding<@m, [{\"x\"}]>"}. */
static int tell_value(void *ctx, ir_value v, const char *name, size_t n, xlac_error *err) {
  tell *e = ctx;
  assert(v.op->id < e->m->n_ids && v.index < v.op->n_results);
  (void)err;
  if (v.op->opcode == IR_OP_SDY_MESH || (e->s && v.op->id >= e->s->n_ids)) return 0;
  uint32_t slot = e->s ? shard_slot_of(e->s, v.op, v.index) : 0;
  if (e->s) e->places[slot] = e->n_values + 1;
  if (v.index == 0) e->op_places[v.op->id] = e->n_values + 1;
  e->n_values++;
  tell_next(e);
  BASE_PUT(e->out, "{\"name\": ");
  tell_string(e->out, name, n);
  base_putf(e->out, ", \"opcode\": \"%s\", \"line\": %u, \"col\": %u, \"index\": %u, \"results\": %u, \"source\": ",
            tell_opcode(v.op), v.op->line, v.op->col, v.index, v.op->n_results);
  shard_put_source(e->out, v.op->loc);
  tell_scope(e, v.op);
  tell_type(e, opt_type(v));
  tell_operands(e, v.op);
  if (e->s) base_putf(e->out, ", \"slot\": %u, \"home\": %d", slot, (int)shard_home(e->s, slot));
  BASE_PUT(e->out, ", \"sharding\": ");
  tell_sharding(e, e->s ? shard_now(e->s, slot) : sdy_get(v));
  base_putc(e->out, '}');
  return 0;
}

/* What the main function's results are annotated with. */
static void tell_results(tell *e) {
  const ir_computation *main = e->main = shc_main(e->m, true);
  BASE_PUT(e->out, "{\"results\": [");
  for (uint32_t i = 0; main && i < main->n_results; i++) {
    if (i) BASE_PUT(e->out, ", ");
    tell_sharding(e, sdy_get_result(main, i));
  }
  BASE_PUT(e->out, "],\n ");
}

/* {"results": ..., "values": [...  and leaves the object open for what follows.
 * op_places are needed while values are listed only: operands come before their readers in the text. */
static int tell_values(tell *e, xlac_error *err) {
  size_t bytes = ((size_t)e->m->n_ids + 1) * sizeof *e->op_places;
  e->op_places = base_malloc(e->m->alloc, bytes);
  if (!e->op_places) return base_oom(err, "an explanation");
  memset(e->op_places, 0, bytes);
  tell_results(e);
  BASE_PUT(e->out, "\"values\": [");
  e->first = true;
  int status = text_name_mlir_values(e->m, tell_value, e, err);
  base_free(e->m->alloc, e->op_places);
  return status;
}

/* "x" or, for a sub-axis, "x:(1)2". */
static void tell_axis(base_text *o, sdy_axis a) {
  assert(a.name != NULL);
  base_putc(o, '"');
  base_put(o, a.name->s, a.name->n);
  if (a.size) base_putf(o, ":(%lld)%lld", (long long)a.pre, (long long)a.size);
  base_putc(o, '"');
}

/* The value of a slot; null for results of functions, which are not values. */
static void tell_place(tell *e, uint32_t slot) {
  uint32_t place = slot == SHARD_NO_SLOT || slot >= e->s->n_values ? 0 : e->places[slot];
  if (place)
    base_putf(e->out, "%u", place - 1);
  else
    BASE_PUT(e->out, "null");
}

/* The letters of the attribute's text: i to z, then z_1, z_2, ... */
static void tell_factor(base_text *o, uint32_t factor) {
  if (factor < 18)
    base_putf(o, "\"%c\"", 'i' + (int)factor);
  else
    base_putf(o, "\"z_%u\"", factor - 17);
}

/* op NULL: between what the main function returns and its results. */
static void tell_op(tell *e, const ir_op *op) {
  if (!op) {
    BASE_PUT(e->out, "\"op\": null, \"opcode\": \"func.return\", \"line\": 0");
    return;
  }
  uint32_t slot = op->n_results && op->id < e->s->n_ids ? shard_slot_of(e->s, op, 0) : SHARD_NO_SLOT;
  BASE_PUT(e->out, "\"op\": ");
  tell_place(e, slot);
  base_putf(e->out, ", \"opcode\": \"%s\", \"line\": %u, \"source\": ", tell_opcode(op), op->line);
  shard_put_source(e->out, op->loc);
}

/* Every axis that a value got, in the order in which it happened.
 * A step is one visit of an op; the axes that it brought to several tensors share its number. */
static void tell_steps(tell *e, const shard_trace *t) {
  BASE_PUT(e->out, "],\n \"steps\": [");
  e->first = true;
  for (uint32_t i = 0; i < t->records.n; i++) {
    const shard_record *r = &t->records.items[i];
    tell_next(e);
    BASE_PUT(e->out, "{\"to\": ");
    tell_place(e, r->to_slot);
    base_putf(e->out, ", \"dim\": %u, \"axis\": ", r->dim);
    tell_axis(e->out, r->axis);
    BASE_PUT(e->out, ", \"from\": ");
    tell_place(e, r->from_slot);
    BASE_PUT(e->out, ", ");
    tell_op(e, r->op);
    BASE_PUT(e->out, ", \"factor\": ");
    tell_factor(e->out, r->factor);
    base_putf(e->out, ", \"step\": %u, \"level\": %d, \"priority\": %lld, \"strategy\": \"%s\"}", r->step, r->level,
              (long long)r->user_priority, r->strategy == SHARD_BASIC ? "basic" : "aggressive");
  }
}

/* Where axes were written by the program's author. */
static void tell_origins(tell *e, const shard_trace *t) {
  static const char *const names[] = {
      "argument", "result", "constraint", "manual computation's operand", "manual computation's result", "op"};
  BASE_PUT(e->out, "],\n \"origins\": [");
  e->first = true;
  for (uint32_t i = 0; i < t->origins.n; i++) {
    const shard_origin *o = &t->origins.items[i];
    assert(o->source < sizeof names / sizeof *names);
    tell_next(e);
    BASE_PUT(e->out, "{\"value\": ");
    tell_place(e, o->slot);
    BASE_PUT(e->out, ", \"axis\": ");
    tell_axis(e->out, o->axis);
    base_putf(e->out, ", \"origin\": \"%s %u\"}", names[o->source],
              o->source == SHARD_FROM_INPUT || o->source == SHARD_FROM_OUTPUT ? o->index : o->id);
  }
}

/* Axes that did not go on, and what was in their way.
 * The strings are for people; `reason` in shard_clash is the number behind them. */
static void tell_conflicts(tell *e, const shard_trace *t) {
  static const char *const reasons[] = {"another dimension has it",         "it is kept free there",
                                        "it is still to be added up there", "the dimension is closed there",
                                        "its size does not divide",         "tensors have different axes there"};
  BASE_PUT(e->out, "],\n \"conflicts\": [");
  e->first = true;
  for (uint32_t i = 0; i < t->conflicts.n; i++) {
    const shard_conflict *c = &t->conflicts.items[i];
    assert(c->reason < sizeof reasons / sizeof *reasons);
    tell_next(e);
    BASE_PUT(e->out, "{");
    tell_op(e, c->op);
    BASE_PUT(e->out, ", \"factor\": ");
    tell_factor(e->out, c->factor);
    BASE_PUT(e->out, ", \"axis\": ");
    tell_axis(e->out, c->axis);
    BASE_PUT(e->out, ", \"against\": ");
    tell_axis(e->out, c->against);
    BASE_PUT(e->out, ", \"value\": ");
    tell_place(e, c->slot);
    base_putf(e->out, ", \"reason\": \"%s\", \"level\": %d, \"priority\": %lld}", reasons[c->reason], c->level,
              (long long)c->user_priority);
  }
  BASE_PUT(e->out, "]}\n");
}

/* At the end of propagation, while the table of values is there: values are told with the shardings they have now.
 * The table's own arena serves for places: it is gone with the table. */
static int tell_done(void *ctx, shard_trace *trace, const shard_state *s, ir_computation *main, xlac_error *err) {
  (void)main;
  tell e = {.m = s->m, .out = ctx, .s = s};
  e.places = base_arena_zalloc((base_arena *)(uintptr_t)&s->arena, ((size_t)s->n_slots + 1) * sizeof *e.places);
  if (!e.places) return base_oom(err, "an explanation");
  TRY(tell_values(&e, err));
  tell_steps(&e, trace);
  tell_origins(&e, trace);
  tell_conflicts(&e, trace);
  return e.out->failed ? base_oom(err, "an explanation") : 0;
}

/* Options as the default pipeline has them. */
int shard_explain(ir_module *m, base_text *out, xlac_error *err) {
  shard_options o = {.strategy = SHARD_AGGRESSIVE, .by_op = true, .by_user = true, .keep_rules = true};
  shard_trace trace;
  shard_trace_init(&trace, m->alloc);
  trace.with_conflicts = true;
  int status = shard_propagate_traced(m, &o, &trace, tell_done, out, err);
  shard_trace_free(&trace);
  return status;
}

/* --- what is left to move --- */

/* What only says how to read the same data moves none. */
bool shard_moves_data(const ir_op *op) {
  bool renames = op->opcode == IR_OP_SDY_SHARDED_TO_UNREDUCED || op->opcode == IR_OP_SDY_REPLICATED_TO_UNREDUCED;
  return op->opcode == IR_OP_SDY_RESHARD || (sdy_is_collective(op) && !renames);
}

/* Into how many parts the sharding cuts a tensor; 1 without one. */
static int64_t tell_moves_shards(const ir_module *m, const sdy_sharding *s) {
  const sdy_mesh *mesh = s ? sdy_mesh_of(m, s) : NULL;
  int64_t n = 1;
  for (uint32_t d = 0; mesh && d < s->n_dims; d++) n *= sdy_axes_size(s->dims[d].axes, mesh);
  return n > 0 ? n : 1;
}

/* The bytes that a device must send, at least: for a ring of k devices that gather, (k - 1)/k of the larger of the two
 * local arrays; twice that to add up; what it holds to permute; nothing to slice.
 * A tensor of 1024 bytes cut into 4: to gather it a device sends 768; to add up a local array of 1024 bytes over 4
 * devices, 1536. */
int64_t shard_moved_bytes(const ir_module *m, const ir_op *op) {
  const ir_use *input = &op->operands[0];
  const sdy_sharding *from = sdy_get((ir_value){input->op, input->index});
  const sdy_sharding *to = sdy_get((ir_value){(ir_op *)(uintptr_t)op, 0});
  int64_t whole = ir_type_bytes(op->type), before = tell_moves_shards(m, from), after = tell_moves_shards(m, to);
  int64_t larger = whole / (before < after ? before : after);
  assert(before >= 1 && after >= 1);
  const sdy_mesh *mesh = to ? sdy_mesh_of(m, to) : NULL;
  const sdy_axes *axes = sdy_of(ir_mattr_of(op, "reduction_axes"), SDY_AXES);
  int64_t k = axes && mesh ? sdy_axes_size(*axes, mesh) : before > after ? before / after : after / before;
  switch (op->opcode) {
    case IR_OP_SDY_ALL_SLICE:
      return 0;
    case IR_OP_SDY_COLLECTIVE_PERMUTE:
      return larger;
    case IR_OP_SDY_ALL_REDUCE:
      return k > 1 ? 2 * (larger / k) * (k - 1) : 0;
    case IR_OP_SDY_ALL_TO_ALL:
      return larger / 2;
    case IR_OP_SDY_RESHARD:
      return before > after && k > 1 ? (larger / k) * (k - 1) : before == after ? larger : 0;
    default:
      return k > 1 ? (larger / k) * (k - 1) : larger;
  }
}

/* Counts places as tell_value does, so that "value" is the place in "values". */
static int tell_moves_op(void *ctx, ir_value v, const char *name, size_t n, xlac_error *err) {
  tell *e = ctx;
  (void)err;
  uint32_t place = e->n_values;
  if (v.op->opcode != IR_OP_SDY_MESH) e->n_values++;
  if (!shard_moves_data(v.op)) return 0;
  const ir_use *input = &v.op->operands[0];
  const sdy_sharding *from = sdy_get((ir_value){input->op, input->index}), *to = sdy_get(v);
  tell_next(e);
  base_putf(e->out, "{\"value\": %u, \"name\": ", place);
  tell_string(e->out, name, n);
  base_putf(e->out, ", \"opcode\": \"%s\", \"line\": %u, \"col\": %u, \"of\": \"%s\", \"bytes\": %lld, \"source\": ",
            tell_opcode(v.op), input->op->line, input->op->col, tell_opcode(input->op),
            (long long)shard_moved_bytes(e->m, v.op));
  shard_put_source(e->out, v.op->loc ? v.op->loc : input->op->loc);
  BASE_PUT(e->out, ", \"from\": ");
  tell_sharding(e, from);
  BASE_PUT(e->out, ", \"to\": ");
  tell_sharding(e, to);
  base_putc(e->out, '}');
  return 0;
}

/* Two walks over the same names: all values, then those that move data. */
int shard_list_reshards(ir_module *m, base_text *out, xlac_error *err) {
  tell e = {.m = m, .out = out};
  TRY(tell_values(&e, err));
  BASE_PUT(out, "],\n \"reshards\": [");
  e.first = true;
  e.n_values = 0;
  TRY(text_name_mlir_values(m, tell_moves_op, &e, err));
  BASE_PUT(out, "]}\n");
  return out->failed ? base_oom(err, "a list of reshards") : 0;
}

/* --- annotating --- */

/* Writing a sharding down on a value, as a program's author would: on arguments and results as attributes, on all
 * other values as constraints. */
typedef struct note_place {
  base_slice name, function; /* function: "": the main one, or the only one that has such a value */
  const ir_computation *main;
  ir_value found;
  uint32_t n_main, n; /* so many of that name, in the main function and in all */
  uint32_t lines[2];  /* of the first ones */
} note_place;

/* The function that the op is in, however deep. */
static const ir_computation *note_function(const ir_op *op) {
  const ir_computation *c = op->parent;
  while (c->owner) c = c->owner->parent;
  return c;
}

/* Names are those of the text, which regions side by side use again: the number found decides whether one was meant.
 * `found` is a candidate until note_check has seen the counts. */
static int note_find(void *ctx, ir_value v, const char *name, size_t n, xlac_error *err) {
  note_place *p = ctx;
  (void)err;
  if (n != p->name.n || memcmp(name, p->name.p, n) != 0 || v.op->opcode == IR_OP_SDY_MESH) return 0;
  const ir_computation *f = note_function(v.op);
  const bool named = p->function.n != 0;
  if (named && (f->name->n != p->function.n || memcmp(f->name->s, p->function.p, f->name->n) != 0)) return 0;
  bool main = f == p->main && !named;
  if (main ? p->n_main == 0 : p->n_main + p->n == 0) p->found = v;
  if (p->n < 2) p->lines[p->n] = v.op->line;
  p->n++;
  p->n_main += main;
  return 0;
}

/* "@f/%3": value %3 of the function @f. */
static note_place note_read_name(const ir_module *m, const char *value) {
  note_place p = {.name = {value, strlen(value)}, .main = shc_main(m, true)};
  const char *slash = value[0] == '@' ? strrchr(value, '/') : NULL;
  if (!slash) return p;
  p.function = (base_slice){value + 1, (size_t)(slash - value) - 1};
  p.name = (base_slice){slash + 1, p.name.n - (size_t)(slash - value) - 1};
  return p;
}

/* One in the main function is enough, for names without a function.
 * Lines of two candidates go into the message, so that the user sees which ones are meant. */
static int note_check(const note_place *p, const char *value, xlac_error *err) {
  if (p->n_main == 1 || p->n == 1) return 0;
  if (p->n == 0) {
    int status = base_fail(err, XLAC_E_BAD_ARGUMENT, "the program has no value %.80s", value);
    return base_hint(err, status,
                     "values are called %%3, %%3#1 or %%arg0 as in the text of the module, @f/%%3 in a "
                     "function other than main, or result 0");
  }
  int status = base_fail(err, XLAC_E_BAD_ARGUMENT, "%.80s is the name of %u values, in lines %u and %u among others",
                         value, (unsigned)(p->n_main ? p->n_main : p->n), p->lines[0], p->lines[1]);
  return base_hint(err, status,
                   "@f/%%3 is the value %%3 of the function @f; in regions side by side names are used "
                   "again, and can't be told apart");
}

/* "result 2": of the main function; -1 for other names. */
static int64_t note_result(const char *name, size_t n) {
  static const char word[] = "result ";
  int64_t i = 0;
  if (n <= sizeof word - 1 || n > sizeof word + 8 || memcmp(name, word, sizeof word - 1) != 0) return -1;
  for (size_t k = sizeof word - 1; k < n; k++) {
    if (name[k] < '0' || name[k] > '9') return -1;
    i = i * 10 + (name[k] - '0');
  }
  return i;
}

/* The entry function's results have attributes beside its type. NULL takes the sharding away. */
static int note_on_result(ir_module *m, int64_t i, const sdy_sharding *s, xlac_error *err) {
  assert(i >= 0);
  ir_computation *f = shc_main(m, true);
  if (!f || i >= f->n_results)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "the main function has no result %lld", (long long)i);
  if (s) return sdy_set_result(f, (uint32_t)i, s) ? 0 : base_oom(err, "a sharding");
  const ir_mdict *d = ir_mdict_with(m, ir_result_attrs(f, (uint32_t)i), "sdy.sharding", NULL);
  return d && ir_set_result_attrs(f, (uint32_t)i, d) ? 0 : base_oom(err, "a sharding");
}

/* All that read v read a constraint on it.
 * Right after the value, so that it comes before all its readers. */
static int note_constraint(opt_rewriter *rw, ir_value v, const sdy_sharding *s) {
  shc_at_value(rw, v);
  ir_value c = opt_make(rw, IR_OP_SDY_SHARDING_CONSTRAINT, opt_type(v), 1, &v);
  opt_set(rw, c, "sharding", sdy_attr(rw->m, SDY_SHARDING, s));
  shc_replace_value(rw, v, c, c.op);
  return opt_rewriter_status(rw);
}

/* s NULL: what the value has is taken away. A constraint that is named itself is changed, not constrained again. */
static int note_on_value(opt_rewriter *rw, ir_value v, const sdy_sharding *s) {
  assert(v.op != NULL);
  bool argument = v.op->opcode == IR_OP_PARAMETER && v.op->parent->kind == IR_FUNCTION && !v.op->parent->owner;
  const ir_mattr *a = s ? sdy_attr(rw->m, SDY_SHARDING, s) : NULL;
  if (s && !a) return base_oom(rw->err, "a sharding");
  if (argument) return ir_m_set(v.op, "sdy.sharding", a) ? 0 : base_oom(rw->err, "a sharding");
  if (v.op->opcode != IR_OP_SDY_SHARDING_CONSTRAINT) return s ? note_constraint(rw, v, s) : 0;
  if (s) return ir_m_set(v.op, "sharding", a) ? 0 : base_oom(rw->err, "a sharding");
  opt_replace_one(rw, v.op, opt_operand(v.op, 0));
  return opt_rewriter_status(rw);
}

/* "" is not a sharding; anything else must be the text of one. */
static int note_read(ir_module *m, const char *text, size_t n, const sdy_sharding **out, xlac_error *err) {
  const ir_mattr *a = NULL;
  *out = NULL;
  if (n == 0) return 0;
  TRY(text_parse_mlir_attr(m, text, n, &a, err));
  *out = sdy_of(a, SDY_SHARDING);
  return *out ? 0
              : base_fail(err, XLAC_E_BAD_ARGUMENT, "\"%.*s\" is no #sdy.sharding<...>", n < 80 ? (int)n : 80, text);
}

/* "@mesh": the mesh of that name gets other axes, or is there from now on. */
static int note_on_mesh(ir_module *m, const char *name, const char *text, xlac_error *err) {
  const ir_mattr *a = NULL;
  TRY(text_parse_mlir_attr(m, text, strlen(text), &a, err));
  const sdy_mesh *mesh = sdy_of(a, SDY_MESH);
  if (!mesh) return base_fail(err, XLAC_E_BAD_ARGUMENT, "\"%.80s\" is no #sdy.mesh<...>", text);
  bool found = false, ok = true;
  IR_FOR_COMPUTATIONS(c, m) {
    bool here = c->kind == IR_SYMBOL && c->first && c->first->opcode == IR_OP_SDY_MESH;
    if (!here || strcmp(ir_mattr_of(c->first, "sym_name")->str->s, name) != 0) continue;
    ok = ok && ir_m_set(c->first, "mesh", a);
    found = true;
  }
  if (!found) ok = shc_make_mesh(m, ir_intern(m, name, strlen(name)), mesh, NULL) != NULL;
  return ok ? shc_verify(m, err) : base_oom(err, "a mesh");
}

/* The text is read before anything is changed; what does not fit the value's type the verifier says at the end. */
int shard_annotate(ir_module *m, const char *value, const char *sharding, xlac_error *err) {
  opt_rewriter rw;
  const sdy_sharding *s = NULL;
  note_place p = note_read_name(m, value);
  int64_t result = note_result(value, strlen(value));
  if (value[0] == '@' && !strchr(value, '/')) return note_on_mesh(m, value + 1, sharding, err);
  TRY(note_read(m, sharding, strlen(sharding), &s, err));
  if (result >= 0) {
    TRY(note_on_result(m, result, s, err));
    return shc_verify(m, err);
  }
  TRY(text_name_mlir_values(m, note_find, &p, err));
  TRY(note_check(&p, value, err));
  TRY(opt_rewriter_init(&rw, m, err));
  int status = note_on_value(&rw, p.found, s);
  opt_rewriter_free(&rw);
  return status == 0 ? shc_verify(m, err) : status;
}
