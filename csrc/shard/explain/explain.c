/* Notes as JSON. */
#include "explain.h"

#include "../../text/mlir/mlir.h"
#include "../common/common.h"
#include "../propagate/propagate.h"

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

static void tell_next(tell *e) {
  if (!e->first) BASE_PUT(e->out, ",\n  ");
  e->first = false;
}

/* The file and line that an op comes from; nested locations go down to the first file. */
static void tell_source(base_text *o, const ir_mattr *loc) {
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

static const char *tell_opcode(const ir_op *op) {
  if (op->opcode == IR_OP_PARAMETER) return op->parent->kind == IR_FUNCTION ? "argument" : "block argument";
  const ir_mlir_info *info = ir_opcode_info(op->opcode)->mlir;
  return op->opcode == IR_OP_UNREGISTERED ? op->u.name->s : info ? info->name : "";
}

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
 * is what becomes of a call of a function. */
static void tell_scope(tell *e, const ir_op *op) {
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

static void tell_operands(tell *e, const ir_op *op) {
  BASE_PUT(e->out, ", \"operands\": [");
  bool first = true;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_use *use = &op->operands[i];
    uint32_t place = e->op_places[use->op->id];
    if (!place) continue;
    base_putf(e->out, "%s%u", first ? "" : ", ", place - 1 + use->index);
    first = false;
  }
  base_putc(e->out, ']');
}

static int tell_value(void *ctx, ir_value v, const char *name, size_t n, xlac_error *err) {
  tell *e = ctx;
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
  tell_source(e->out, v.op->loc);
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

static void tell_axis(base_text *o, sdy_axis a) {
  base_putc(o, '"');
  base_put(o, a.name->s, a.name->n);
  if (a.size) base_putf(o, ":(%lld)%lld", (long long)a.pre, (long long)a.size);
  base_putc(o, '"');
}

static void tell_place(tell *e, uint32_t slot) {
  uint32_t place = slot == SHARD_NO_SLOT || slot >= e->s->n_values ? 0 : e->places[slot];
  if (place)
    base_putf(e->out, "%u", place - 1);
  else
    BASE_PUT(e->out, "null");
}

static void tell_factor(base_text *o, uint32_t factor) {
  if (factor < 18)
    base_putf(o, "\"%c\"", 'i' + (int)factor);
  else
    base_putf(o, "\"z_%u\"", factor - 17);
}

static void tell_op(tell *e, const ir_op *op) {
  if (!op) {
    BASE_PUT(e->out, "\"op\": null, \"opcode\": \"func.return\", \"line\": 0");
    return;
  }
  uint32_t slot = op->n_results && op->id < e->s->n_ids ? shard_slot_of(e->s, op, 0) : SHARD_NO_SLOT;
  BASE_PUT(e->out, "\"op\": ");
  tell_place(e, slot);
  base_putf(e->out, ", \"opcode\": \"%s\", \"line\": %u, \"source\": ", tell_opcode(op), op->line);
  tell_source(e->out, op->loc);
}

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

static void tell_origins(tell *e, const shard_trace *t) {
  static const char *const names[] = {
      "argument", "result", "constraint", "manual computation's operand", "manual computation's result", "op"};
  BASE_PUT(e->out, "],\n \"origins\": [");
  e->first = true;
  for (uint32_t i = 0; i < t->origins.n; i++) {
    const shard_origin *o = &t->origins.items[i];
    tell_next(e);
    BASE_PUT(e->out, "{\"value\": ");
    tell_place(e, o->slot);
    BASE_PUT(e->out, ", \"axis\": ");
    tell_axis(e->out, o->axis);
    base_putf(e->out, ", \"origin\": \"%s %u\"}", names[o->source],
              o->source == SHARD_FROM_INPUT || o->source == SHARD_FROM_OUTPUT ? o->index : o->id);
  }
}

static void tell_conflicts(tell *e, const shard_trace *t) {
  static const char *const reasons[] = {"another dimension has it",         "it is kept free there",
                                        "it is still to be added up there", "the dimension is closed there",
                                        "its size does not divide",         "tensors have different axes there"};
  BASE_PUT(e->out, "],\n \"conflicts\": [");
  e->first = true;
  for (uint32_t i = 0; i < t->conflicts.n; i++) {
    const shard_conflict *c = &t->conflicts.items[i];
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
static bool tell_moves_data(const ir_op *op) {
  bool renames = op->opcode == IR_OP_SDY_SHARDED_TO_UNREDUCED || op->opcode == IR_OP_SDY_REPLICATED_TO_UNREDUCED;
  return op->opcode == IR_OP_SDY_RESHARD || (sdy_is_collective(op) && !renames);
}

static int64_t tell_moves_shards(const ir_module *m, const sdy_sharding *s) {
  const sdy_mesh *mesh = s ? sdy_mesh_of(m, s) : NULL;
  int64_t n = 1;
  for (uint32_t d = 0; mesh && d < s->n_dims; d++) n *= sdy_axes_size(s->dims[d].axes, mesh);
  return n > 0 ? n : 1;
}

/* The bytes that a device must send, at least: for a ring of k devices that gather, (k - 1)/k of the larger of the two
 * local arrays; twice that to add up; what it holds to permute; nothing to slice. */
static int64_t tell_moves_bytes(const ir_module *m, const ir_op *op, const sdy_sharding *from, const sdy_sharding *to) {
  int64_t whole = ir_type_bytes(op->type), before = tell_moves_shards(m, from), after = tell_moves_shards(m, to);
  int64_t larger = whole / (before < after ? before : after);
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

static int tell_moves_op(void *ctx, ir_value v, const char *name, size_t n, xlac_error *err) {
  tell *e = ctx;
  (void)err;
  uint32_t place = e->n_values;
  if (v.op->opcode != IR_OP_SDY_MESH) e->n_values++;
  if (!tell_moves_data(v.op)) return 0;
  const ir_use *input = &v.op->operands[0];
  const sdy_sharding *from = sdy_get((ir_value){input->op, input->index}), *to = sdy_get(v);
  tell_next(e);
  base_putf(e->out, "{\"value\": %u, \"name\": ", place);
  tell_string(e->out, name, n);
  base_putf(e->out, ", \"opcode\": \"%s\", \"line\": %u, \"col\": %u, \"of\": \"%s\", \"bytes\": %lld, \"source\": ",
            tell_opcode(v.op), input->op->line, input->op->col, tell_opcode(input->op),
            (long long)tell_moves_bytes(e->m, v.op, from, to));
  tell_source(e->out, v.op->loc ? v.op->loc : input->op->loc);
  BASE_PUT(e->out, ", \"from\": ");
  tell_sharding(e, from);
  BASE_PUT(e->out, ", \"to\": ");
  tell_sharding(e, to);
  base_putc(e->out, '}');
  return 0;
}

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
