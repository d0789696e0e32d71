/* What partitioning comes to, written down for explanations: the places of ops, and what moves between devices. */
#include "../shard/common/common.h"
#include "../shard/explain/explain.h"
#include "../shard/local/local.h"
#include "inside.h"

static const char *note_keep(spmd_program *p, const base_text *t) {
  return t->failed ? NULL : base_arena_strndup(&p->arena, t->s ? t->s : "", t->n);
}

static const char *note_name(const ir_op *op) {
  const ir_mlir_info *info = ir_opcode_info(op->opcode)->mlir;
  return info ? info->name : op->name->s;
}

bool spmd_place_of(spmd_program *p, const ir_op *op, spmd_place *out) {
  base_text t;
  const char *name = note_name(op);
  base_text_init(&t, p->arena.alloc);
  shard_put_source(&t, op->loc);
  *out = (spmd_place){base_arena_strndup(&p->arena, name, strlen(name)), note_keep(p, &t), op->line, op->col};
  base_text_free(&t);
  return out->op && out->source;
}

/* --- moves --- */

static void note_axes(base_text *t, sdy_axes axes) {
  for (uint32_t i = 0; i < axes.n; i++) {
    const sdy_axis *a = &axes.v[i];
    base_putf(t, "%s%s", t->n ? ", " : "", a->name->s);
    if (a->size) base_putf(t, ":(%lld)%lld", (long long)a->pre, (long long)a->size);
  }
}

static void note_lists(base_text *t, const sdy_axis_lists *lists) {
  for (uint32_t d = 0; lists && d < lists->n; d++) note_axes(t, lists->v[d]);
}

/* Of a permutation: those of the dimensions that are cut otherwise before. */
static void note_changed(base_text *t, const ir_op *op) {
  const ir_use *input = &op->operands[0];
  const sdy_sharding *from = sdy_get((ir_value){input->op, input->index});
  const sdy_sharding *to = sdy_get((ir_value){(ir_op *)(uintptr_t)op, 0});
  for (uint32_t d = 0; from && to && d < from->n_dims && d < to->n_dims; d++)
    if (!sdy_axes_equal(from->dims[d].axes, to->dims[d].axes)) note_axes(t, to->dims[d].axes);
}

static void note_axes_of(base_text *t, const ir_op *op) {
  const sdy_axes *added = sdy_of(ir_mattr_of(op, "reduction_axes"), SDY_AXES);
  const sdy_params *params = sdy_of(ir_mattr_of(op, "params"), SDY_PARAMS);
  note_lists(t, sdy_of(ir_mattr_of(op, "gathering_axes"), SDY_AXIS_LISTS));
  note_lists(t, sdy_of(ir_mattr_of(op, "slicing_axes"), SDY_AXIS_LISTS));
  note_lists(t, sdy_of(ir_mattr_of(op, "reduce_scatter_axes"), SDY_AXIS_LISTS));
  const sdy_axes *along = sdy_of(ir_mattr_of(op, LOCAL_ALONG), SDY_AXES);
  if (added) note_axes(t, *added);
  if (along) note_axes(t, *along);
  for (uint32_t i = 0; params && i < params->n; i++) note_axes(t, params->v[i].axes);
  if (op->opcode == IR_OP_SDY_COLLECTIVE_PERMUTE) note_changed(t, op);
}

/* What the chain of collectives that op is in begins with; NULL: a value that an op with regions hands to them. */
static const ir_op *note_source(const ir_op *op) {
  while (sdy_is_collective(op)) op = op->operands[0].op;
  return op;
}

/* And what first reads its end; NULL: nobody but the function that returns it. */
static const ir_op *note_reader(const ir_op *op) {
  do {
    op = op->uses ? op->uses->user : NULL;
  } while (op && (sdy_is_collective(op) || op->opcode == IR_OP_SDY_RESHARD));
  return op;
}

/* The program's own collectives move what they take. */
static int64_t note_bytes(const ir_module *m, const ir_op *op) {
  int64_t bytes = 0;
  if (sdy_is_op(op)) return shard_moved_bytes(m, op);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_type *t = opt_type(opt_operand(op, i));
    if (shc_is_static(t)) bytes += ir_type_bytes(t);
  }
  return bytes;
}

typedef struct note_run {
  spmd_program *p;
  ir_module *m;
} note_run;

static int note_move(void *ctx, ir_op *op) {
  note_run *x = ctx;
  spmd_program *p = x->p;
  spmd_move move = {.bytes = 0};
  base_text t;
  bool own = ir_opcode_has(op->opcode, IR_COLLECTIVE) && op->opcode != IR_OP_PARTITION_ID;
  if (!own && !(sdy_is_op(op) && shard_moves_data(op))) return 0;
  assert(op->n_operands > 0);
  base_text_init(&t, p->arena.alloc);
  note_axes_of(&t, op);
  const char *kind = note_name(op);
  const char *dot = strchr(kind, '.');
  if (dot) kind = dot + 1;
  move.kind = base_arena_strndup(&p->arena, kind, strlen(kind));
  move.axes = note_keep(p, &t);
  move.bytes = note_bytes(x->m, op);
  base_text_free(&t);
  const ir_op *reader = note_reader(op);
  bool ok = move.kind && move.axes && spmd_place_of(p, own ? op : note_source(op), &move.at) &&
            (!reader || spmd_place_of(p, reader, &move.reader));
  return ok && BASE_VEC_PUSH(p->arena.alloc, &p->moves, move) ? 0 : -XLAC_E_OUT_OF_MEMORY;
}

/* What an op exchanges within its local form: no other op reads it. */
static int note_exchange(void *ctx, ir_op *op) {
  note_run *x = ctx;
  const ir_mattr *within = ir_mattr_of(op, LOCAL_WITHIN);
  if (!within) return 0;
  TRY(note_move(ctx, op));
  spmd_move *move = &x->p->moves.items[x->p->moves.n - 1];
  move->at.op = base_arena_strndup(&x->p->arena, within->str->s, within->str->n);
  move->reader = move->at;
  return move->at.op && ir_m_set(op, LOCAL_WITHIN, NULL) && ir_m_set(op, LOCAL_ALONG, NULL) ? 0 : -XLAC_E_OUT_OF_MEMORY;
}

int spmd_note_exchanges(spmd_program *p, ir_module *m, xlac_error *err) {
  note_run x = {p, m};
  int status = shc_walk_module(m, false, note_exchange, &x);
  return status == -XLAC_E_OUT_OF_MEMORY ? base_oom(err, "notes on what moves between devices") : status;
}

int spmd_note_moves(spmd_program *p, ir_module *m, xlac_error *err) {
  note_run x = {p, m};
  int status = shc_walk_module(m, false, note_move, &x);
  return status == -XLAC_E_OUT_OF_MEMORY ? base_oom(err, "notes on what moves between devices") : status;
}
