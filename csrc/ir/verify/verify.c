/* The verifier of HLO form: its order of business, and the rules of modules as wholes.
 *
 * First the structure, on which everything else relies; then every op in text order, so that the first error reported
 * is the first in the text: its type against the inferred one, the rules of all ops, its opcode's own rule (VERIFY in
 * ops.def); then what concerns several ops at once. Rules are XLA's HloVerifier's; where xlac is stricter, because
 * XLA lets something pass that nothing can run, the option xla_compat takes that away. */
#include "../../base/heed.h"
#include "verify.h"

/* "<opcode> <message>", with op's position and name. */
int ir_verify_fail(const ir_op *op, base_code code, xlac_error *err, const char *format, ...) {
  assert(op && op->name);
  va_list args;
  va_start(args, format);
  char message[sizeof err->message];
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return base_fail_at(err, code, op->line, op->col, op->name->s, "%s %s", ir_opcode_text(op->opcode), message);
}

/* XLA takes the declared element type of contractions as the preferred one, within the same kind of number. */
static bool declares_dtype(unsigned opcode) {
  return opcode == IR_OP_DOT || opcode == IR_OP_CONVOLUTION || opcode == IR_OP_RAGGED_DOT || opcode == IR_OP_SCALED_DOT;
}

/* Opcodes whose result is a value that is there already, so that its element type can't be another. */
static bool keeps_dtype(unsigned opcode) {
  switch (opcode) {
    case IR_OP_ASYNC_DONE:
    case IR_OP_ASYNC_UPDATE:
    case IR_OP_BITCAST:
    case IR_OP_CALL:
    case IR_OP_CONDITIONAL:
    case IR_OP_CONSTANT:
    case IR_OP_COPY_DONE:
    case IR_OP_COPY_START:
    case IR_OP_CUSTOM_CALL:
    case IR_OP_DYNAMIC_UPDATE_SLICE:
    case IR_OP_FUSION:
    case IR_OP_GET_TUPLE_ELEMENT:
    case IR_OP_INFEED:
    case IR_OP_OUTFEED:
    case IR_OP_OPT_BARRIER:
    case IR_OP_PARAMETER:
    case IR_OP_RECV:
    case IR_OP_RECV_DONE:
    case IR_OP_SEND:
    case IR_OP_SEND_DONE:
    case IR_OP_TUPLE:
    case IR_OP_WHILE:
      return true;
    default:
      return false;
  }
}

/* XLA verifies with mixed precision allowed while its passes still move precisions about: any float type for another.
 */
static int check_declared_type(const ir_op *op, const ir_type *inferred, const ir_verify_options *options,
                               xlac_error *err) {
  assert(op->type && inferred);
  if (op->opcode == IR_OP_SCAN) return 0; /* a lone result may stand for a tuple of one: its own rule knows */
  bool mixed = options->mixed_floats && !keeps_dtype(op->opcode);
  bool fits = declares_dtype(op->opcode) ? ir_compatible_ignoring_dtype(op->type, inferred)
              : mixed                    ? ir_compatible_ignoring_float(op->type, inferred)
                                         : ir_compatible(op->type, inferred);
  if (fits) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "is declared as %s; its operands and attributes give %s",
                        IR_SHOW(op->type), IR_SHOW(inferred));
}

/* Layouts and bounds first, since inference may use the declared type. An op whose type does not follow from anything
 * passes: its own rule judges it. */
static int check_result_type(ir_module *m, const ir_op *op, const ir_verify_options *options, xlac_error *err) {
  TRY(ir_check_stamp(op, ir_verify_layouts(op->type, err), err));
  if (!m->unbounded && ir_is_unbounded(op->type))
    return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "has the type %s; HLO has bounded dimensions only",
                          IR_SHOW(op->type));
  TRY(ir_check_stamp(op, ir_check_op(op, err), err));
  xlac_error local = {0};
  const ir_type *inferred = NULL;
  int status = ir_infer(m, op, &inferred, &local);
  if (status == 0) return check_declared_type(op, inferred, options, err);
  if (local.code == XLAC_E_CANNOT_INFER) return 0;
  if (err) *err = local;
  return status;
}

/* Attributes that any op may have. */
static int check_common_attrs(const ir_op *op, xlac_error *err) {
  const ir_sharding *s = ir_get_sharding(op);
  if (s) TRY(ir_verify_sharding(op, s, err));
  if (ir_attr_find(op, IR_ATTR_RESULT_ACCURACY) && !ir_opcode_has(op->opcode, IR_HAS_ACCURACY))
    return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err, "has result_accuracy, which only unary functions take");
  TRY(ir_verify_words(op, err));
  return ir_verify_origin(op, err);
}

/* Needs the structure to have been verified. Also called for single ops that an editor has changed. */
int ir_verify_op(ir_module *m, const ir_op *op, const ir_verify_options *options, xlac_error *err) {
  assert(op->opcode > IR_OP_INVALID && op->opcode < IR_OP_COUNT);
  TRY(check_result_type(m, op, options, err));
  if (!options->mixed_floats) TRY(ir_check_stamp(op, ir_check_mixed_floats(op, err), err));
  TRY(ir_verify_elementwise(op, err));
  TRY(check_common_attrs(op, err));
  TRY(ir_verify_async_op(op, options, err));
  ir_verify_fn *own = ir_opcode_info(op->opcode)->verify;
  return own ? ir_check_stamp(op, own(m, op, options, err), err) : 0;
}

/* The module remembers the level that was reached, so that a pass pipeline verifies an unchanged module once. With
 * mixed_floats nothing is remembered: it is a weaker promise. Stops early when the caller wants the call interrupted.
 */
int ir_verify(ir_module *m, const ir_verify_options *options, xlac_error *err) {
  assert(m && m->form == IR_FORM_HLO);
  static const ir_verify_options strict = {0};
  if (!options) options = &strict;
  ir_verified level = options->xla_compat ? IR_VERIFIED_LENIENTLY : IR_VERIFIED;
  if (ir_verified_as(m) >= level) return 0;
  TRY(ir_verify_structure(m, err));
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      TRY(ir_verify_op(m, op, options, err));
      if (base_heed_tick(8)) return base_interrupted(err);
    }
  }
  TRY(ir_verify_aliases(m, options, err));
  TRY(ir_verify_together(m, options, err));
  if (!options->mixed_floats) ir_note_verified(m, level);
  return 0;
}

/* --- async chains --- */

/* A computation belongs to one async chain only. `starts`: computation to the first start that wraps it. */
static int note_chain(const ir_op *op, base_map *starts, xlac_error *err) {
  assert(op->opcode == IR_OP_ASYNC_START && op->n_called == 1);
  const ir_op *other = base_map_ptr(starts, op->called[0]);
  if (other)
    return base_hint(
        err,
        ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err, "wraps %s, which %s wraps too; a computation belongs to one chain",
                       op->called[0]->name->s, other->name->s),
        "give each chain a copy of the computation");
  return base_map_set(starts, base_key(op->called[0]), base_key(op)) ? 0 : base_oom(err, "a table of async chains");
}

/* `starts` is filled for all computations before any transfer is looked at. */
static int note_chains(const ir_module *m, base_map *starts, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      if (op->opcode == IR_OP_ASYNC_START) TRY(note_chain(op, starts, err));
    }
  }
  return 0;
}

/* A send or recv ends in its done; tuples may carry it to one of another computation; alone it is the root of a wrapped
 * one. */
static int check_transfer(const ir_op *op, const base_map *starts, xlac_error *err) {
  assert(op->opcode == IR_OP_SEND || op->opcode == IR_OP_RECV);
  /* The entry is called by the caller of the program too, where no chain waits. */
  bool called = op->parent == op->parent->module->entry;
  bool wrapped = !called && op == ir_root(op->parent) && base_map_ptr(starts, op->parent);
  if (wrapped) return 0;
  unsigned done = ir_opcode_info(op->opcode)->done;
  uint32_t n = ir_use_count(op);
  if (n != 1)
    return base_hint(err,
                     ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err, "needs exactly one consumer, its %s; found %u",
                                    ir_opcode_text(done), n),
                     n ? "wait once and use the done's result" : "add the op that waits for it");
  const ir_op *user = op->uses->user;
  if (user->opcode == done || user->opcode == IR_OP_TUPLE) return 0;
  return base_hint(
      err,
      ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err, "is used by %s (%s); expected %s, or a tuple that carries it there",
                     user->name->s, ir_opcode_text(user->opcode), ir_opcode_text(done)),
      "use the done's result instead");
}

/* Both absent counts as the same. */
static bool same_attr(const ir_op *a, const ir_op *b, ir_attr_key key) {
  const ir_attr *x = ir_attr_find(a, key), *y = ir_attr_find(b, key);
  return x && y ? ir_attr_equal(x, y) : x == y;
}

/* Host transfers over one channel are the same transfer, so they must be alike. `hosts`: channel to the first of them.
 */
static int check_host_channel(const ir_op *op, base_map *hosts, xlac_error *err) {
  const ir_attr *channel = ir_attr_find(op, IR_ATTR_CHANNEL_ID);
  uint64_t found;
  if (!channel || !ir_get_bool(op, IR_ATTR_IS_HOST_TRANSFER, false)) return 0;
  if (!base_map_get(hosts, (uint64_t)channel->v.i, &found))
    return base_map_set(hosts, (uint64_t)channel->v.i, base_key(op)) ? 0 : base_oom(err, "a table of channels");
  const ir_op *other = (const ir_op *)(uintptr_t)found;
  if (other->opcode == op->opcode && ir_same_bare(other->type, op->type) &&
      same_attr(op, other, IR_ATTR_FRONTEND_ATTRIBUTES))
    return 0;
  return ir_verify_fail(
      op, XLAC_E_VERIFY_COLLECTIVE, err,
      "transfers %s over channel %lld, over which %s (%s) transfers %s; type and frontend_attributes must be the same",
      IR_SHOW(op->type), (long long)channel->v.i, other->name->s, ir_opcode_text(other->opcode), IR_SHOW(other->type));
}

/* send and recv only; their dones are found from them. */
static int check_transfers(const ir_module *m, const base_map *starts, base_map *hosts, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      if (op->opcode != IR_OP_SEND && op->opcode != IR_OP_RECV) continue;
      TRY(check_transfer(op, starts, err));
      TRY(check_host_channel(op, hosts, err));
    }
  }
  return 0;
}

/* Linear in the module: each op is met twice, and the maps are by computation and by channel. */
static int check_chains(const ir_module *m, xlac_error *err) {
  base_map starts, hosts;
  base_map_init(&starts, m->alloc);
  base_map_init(&hosts, m->alloc);
  int status = note_chains(m, &starts, err);
  if (status == 0) status = check_transfers(m, &starts, &hosts, err);
  base_map_free(&starts);
  base_map_free(&hosts);
  return status;
}

/* --- all-reduces --- */

/* XLA refuses modules where some all-reduces constrain their layouts and others don't. */
static int check_constrained(const ir_module *m, xlac_error *err) {
  const ir_op *constrained = NULL, *free_op = NULL;
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      if (op->opcode != IR_OP_ALL_REDUCE && op->opcode != IR_OP_ALL_REDUCE_START) continue;
      const ir_op **slot = ir_get_bool(op, IR_ATTR_CONSTRAIN_LAYOUT, false) ? &constrained : &free_op;
      if (!*slot) *slot = op;
      if (constrained && free_op)
        return ir_verify_fail(op, XLAC_E_VERIFY_COLLECTIVE, err,
                              "%s constrain_layout but %s does %s; either all all-reduces of a module do or none",
                              constrained == op ? "has" : "lacks",
                              constrained == op ? free_op->name->s : constrained->name->s,
                              constrained == op ? "not" : "so");
    }
  }
  return 0;
}

/* --- the header --- */

/* Errors of the header are at line 1, where it stands. */
static int fail_header(const ir_module *m, base_code code, xlac_error *err, const char *format, ...) BASE_PRINTF(4, 5);
static int fail_header(const ir_module *m, base_code code, xlac_error *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char message[sizeof err->message];
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return base_fail_at(err, code, 1, 1, m->entry->name->s, "%s", message);
}

/* A layout of the header, which stands on the first line. */
static int check_header_layout(const ir_module *m, const ir_type *t, xlac_error *err) {
  xlac_error local = {0};
  int status = ir_verify_layouts(t, &local);
  return status ? fail_header(m, XLAC_E_VERIFY_LAYOUT, err, "entry_computation_layout: %s", local.message) : 0;
}

/* XLA's parser keeps any entry_computation_layout; its verifier wants the entry's types. */
static int check_entry_layout(const ir_module *m, xlac_error *err) {
  assert(m->entry);
  const ir_config *config = &m->config;
  const ir_computation *entry = m->entry;
  if (!config->has_entry_layout) return 0;
  if (config->n_entry_params != entry->n_params)
    return fail_header(m, XLAC_E_VERIFY_SHAPE, err,
                       "entry_computation_layout has %u parameters, but the entry %s has %u", config->n_entry_params,
                       entry->name->s, entry->n_params);
  for (uint32_t i = 0; i < entry->n_params; i++) {
    TRY(check_header_layout(m, config->entry_params[i], err));
    if (!ir_compatible(config->entry_params[i], ir_param_type(entry, i)))
      return fail_header(m, XLAC_E_VERIFY_SHAPE, err, "entry_computation_layout has %s as parameter %u, but %s is %s",
                         IR_SHOW(config->entry_params[i]), i, entry->params[i]->name->s,
                         IR_SHOW(ir_param_type(entry, i)));
  }
  TRY(check_header_layout(m, config->entry_result, err));
  if (ir_compatible(config->entry_result, ir_result_type(entry))) return 0;
  return fail_header(m, XLAC_E_VERIFY_SHAPE, err, "entry_computation_layout has the result %s, but the entry gives %s",
                     IR_SHOW(config->entry_result), IR_SHOW(ir_result_type(entry)));
}

/* The reader takes any number; 0 or less would be no device. */
static int check_counts(const ir_module *m, xlac_error *err) {
  const ir_config *config = &m->config;
  if (config->replica_count >= 1 && config->num_partitions >= 1) return 0;
  return fail_header(m, XLAC_E_VERIFY_STRUCTURE, err,
                     "replica_count is %lld and num_partitions %lld; both must be positive",
                     (long long)config->replica_count, (long long)config->num_partitions);
}

/* Structure and ops have been verified: called computations are whole and types are there. */
int ir_verify_together(const ir_module *m, const ir_verify_options *options, xlac_error *err) {
  TRY(check_chains(m, err));
  TRY(check_constrained(m, err));
  TRY(ir_verify_fusions(m, err));
  TRY(ir_verify_buffers(m, options, err));
  TRY(check_counts(m, err));
  return options->xla_compat ? 0 : check_entry_layout(m, err);
}
