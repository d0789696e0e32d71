/* Prints what follows an op's operands: its own attributes in the order of ops.def, its called computations, then
 * the attributes that any op may have. Defaults are left out where XLA leaves them out.
 *
 *   dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={...}, metadata={...}
 * Source: HloInstruction::PrintExtraAttributes and the PrintExtraAttributesImpl of each subclass. */
#include "print.h"

/*   , key= */
static void write_key(text_printer *p, const char *key) {
  BASE_PUT(p->out, ", ");
  base_puts(p->out, key);
  base_putc(p->out, '=');
}

/* --- defaults --- */

/*   operand_precision={default,default} is not printed */
static bool is_default_precision(const ir_ints *precisions) {
  for (uint32_t i = 0; i < precisions->n; i++)
    if (precisions->v[i] != IR_PRECISION_DEFAULT) return false;
  return true;
}

/* XLA infers the type of a comparison from its operands and prints it only where it is another. */
static bool is_default_comparison(const ir_op *op, const ir_attr *type) {
  const ir_type *t = op->n_operands ? ir_operand_type(op, 0) : NULL;
  if (!t || !ir_is_tensor(t)) return false;
  switch (base_dtype_of((base_dtype)t->dtype)->kind) {
    case BASE_KIND_SINT:
      return type->v.i == IR_COMPARISON_SIGNED;
    case BASE_KIND_UINT:
    case BASE_KIND_PRED:
      return type->v.i == IR_COMPARISON_UNSIGNED;
    default:
      return type->v.i == IR_COMPARISON_FLOAT;
  }
}

/* Numbers that XLA does not print. */
static bool is_default_int(const ir_attr *a) {
  switch (a->key) {
    case IR_ATTR_FEATURE_GROUP_COUNT:
    case IR_ATTR_BATCH_GROUP_COUNT:
      return a->v.i == 1;
    case IR_ATTR_INFERRED_DIMENSION:
      return a->v.i == -1;
    default:
      return false;
  }
}

/* Words that XLA does not print. */
static bool is_default_name(const ir_op *op, const ir_attr *a) {
  switch (a->key) {
    case IR_ATTR_TYPE:
      return is_default_comparison(op, a);
    case IR_ATTR_ALGORITHM:
      return op->opcode != IR_OP_RNG_BIT_GENERATOR && a->v.i == IR_DOT_UNSET;
    case IR_ATTR_SCHEDULE:
      return a->v.i == IR_SCHEDULE_NONE;
    case IR_ATTR_API_VERSION:
      return a->v.i == IR_API_ORIGINAL;
    case IR_ATTR_TRANSPOSE_A:
      return a->v.i == IR_TRANSPOSE_INVALID;
    case IR_ATTR_PADDING_TYPE:
      return a->v.i == IR_PADDING_INVALID;
    default:
      return false;
  }
}

/* The main thread, and empty strings. A custom call's target is always printed. */
static bool is_default_string(const ir_attr *a) {
  if (a->key == IR_ATTR_ASYNC_THREAD) return !a->v.str || strcmp(a->v.str->s, "main") == 0;
  return a->key != IR_ATTR_CUSTOM_CALL_TARGET && (!a->v.str || a->v.str->n == 0);
}

/* The values that XLA does not print, by the attribute's kind. */
static bool is_default_value(const ir_op *op, const ir_attr *a) {
  switch (a->kind) {
    case IR_KIND_BOOL:
      return !a->v.b;
    case IR_KIND_INT:
      return is_default_int(a);
    case IR_KIND_NAME:
      return is_default_name(op, a);
    case IR_KIND_STRING:
      return is_default_string(a);
    case IR_KIND_NAMES:
      return is_default_precision(a->v.ints);
    case IR_KIND_INTS:
      return a->v.ints->n == 0;
    case IR_KIND_INT_LISTS:
      return a->v.lists->n == 0;
    case IR_KIND_WINDOW:
      return a->v.window->n == 0;
    case IR_KIND_ALIASING:
      return a->v.aliasing->n == 0;
    default:
      return false;
  }
}

/* --- own attributes --- */

/* A required-in-print attribute that the op does not carry. IR_ALWAYS in ops.def: XLA prints the attribute even
 * where it says nothing, "replica_groups={}". */
static void write_absent(text_printer *p, const ir_op *op, unsigned key) {
  base_text *out = p->out;
  switch (key) {
    case IR_ATTR_REPLICA_GROUPS:
    case IR_ATTR_LHS_CONTRACTING_DIMS:
    case IR_ATTR_RHS_CONTRACTING_DIMS:
      write_key(p, ir_attr_table[key].text);
      BASE_PUT(out, "{}");
      return;
    case IR_ATTR_IS_ASSOCIATIVE:
      BASE_PUT(out, ", is_associative=false");
      return;
    case IR_ATTR_OUTFEED_SHAPE:
      if (op->n_operands == 0) return;
      BASE_PUT(out, ", outfeed_shape=");
      text_write_type(p, ir_operand_type(op, 0));
      return;
    case IR_ATTR_DIMENSIONS: /* of map: all of them */
      if (op->opcode != IR_OP_MAP || !op->type) return;
      BASE_PUT(out, ", dimensions={");
      for (uint32_t d = 0; d < op->type->rank; d++) {
        if (d) base_putc(out, ',');
        base_put_u64(out, d);
      }
      base_putc(out, '}');
      return;
    default:
      return; /* the verifier refuses the op */
  }
}

/* is_composite stands behind to_apply, so that it is written along with the called computations. */
static bool is_called_key(unsigned key) {
  return ir_attr_table[key].kind == IR_KIND_CALLED || key == IR_ATTR_IS_COMPOSITE;
}

/* Some modes leave out what the program does not depend on. */
static bool is_hidden_by_mode(const text_printer *p, unsigned key) {
  switch (key) {
    case IR_ATTR_INFEED_CONFIG:
    case IR_ATTR_OUTFEED_CONFIG:
      return !p->io_config;
    case IR_ATTR_PARAMETER_REPLICATION:
      return !p->ids;
    default:
      return false;
  }
}

/* A row's attributes in the row's order, which is XLA's. */
void text_write_own_attributes(text_printer *p, const ir_op *op) {
  const ir_attr_spec *spec = ir_opcode_info(op->opcode)->attrs;
  for (; spec && spec->key; spec++) {
    if (is_called_key(spec->key) || is_hidden_by_mode(p, spec->key)) continue;
    const ir_attr *a = ir_attr_find(op, (ir_attr_key)spec->key);
    if (!a) {
      if (spec->flags & IR_ALWAYS) write_absent(p, op, spec->key);
      continue;
    }
    if (!(spec->flags & IR_ALWAYS) && is_default_value(op, a)) continue;
    write_key(p, ir_attr_table[spec->key].text);
    text_write_attr_value(p, op, a);
  }
}

/* --- called computations --- */

/* A conditional on a truth value names its computations true_ and false_computation, one on a number
 * branch_computations. */
static bool is_conditional_on_pred(const ir_op *op) {
  const ir_type *t = op->n_operands ? ir_operand_type(op, 0) : NULL;
  return op->n_called == 2 && t && ir_is_tensor(t) && t->dtype == XLAC_PRED;
}

/* A called-computation key that names one computation: "to_apply=%add", or its body in the canonical modes. */
static void write_called_one(text_printer *p, const char *key, const ir_computation *c) {
  assert(c);
  write_key(p, key);
  if (p->bodies) {
    base_putc(p->out, '\n');
    text_write_body(p, c);
  } else {
    text_write_name(p, c->name);
  }
}

/*   branch_computations={%a, %b} */
static void write_called_braced(text_printer *p, const char *key, const ir_op *op) {
  write_key(p, key);
  base_puts(p->out, p->bodies ? "{\n" : "{");
  for (uint32_t i = 0; i < op->n_called; i++) {
    if (i) base_puts(p->out, p->bodies ? ",\n" : ", ");
    if (p->bodies)
      text_write_body(p, op->called[i]);
    else
      text_write_name(p, op->called[i]->name);
  }
  base_puts(p->out, p->bodies ? "\n}" : "}");
}

/* Some ops name their computation to_apply, but show its body under calls. */
static const char *apply_key(const text_printer *p, const ir_op *op) {
  bool shows_calls = op->opcode == IR_OP_REDUCE_SCATTER || op->opcode == IR_OP_SCAN;
  return p->bodies && shows_calls ? "calls" : "to_apply";
}

/* Sugar says it all: the computation is shown in the canonical modes only. */
static void write_async_called(text_printer *p, const ir_op *op) {
  bool is_sugar = false;
  if (op->opcode != IR_OP_ASYNC_START) return;
  assert(op->n_called > 0);
  (void)text_async_start(p, op, &is_sugar);
  if (p->bodies || !is_sugar) write_called_one(p, "calls", op->called[0]);
}

/* The key depends on the opcode alone, but for conditionals on a pred. */
void text_write_called(text_printer *p, const ir_op *op) {
  if (op->n_called == 0) return;
  switch (op->opcode) {
    case IR_OP_WHILE:
    case IR_OP_SELECT_AND_SCATTER:
      write_called_one(p, op->opcode == IR_OP_WHILE ? "condition" : "select", op->called[0]);
      if (op->n_called > 1) write_called_one(p, op->opcode == IR_OP_WHILE ? "body" : "scatter", op->called[1]);
      return;
    case IR_OP_CONDITIONAL:
      if (is_conditional_on_pred(op)) {
        write_called_one(p, "true_computation", op->called[0]);
        write_called_one(p, "false_computation", op->called[1]);
      } else {
        write_called_braced(p, "branch_computations", op);
      }
      return;
    case IR_OP_CUSTOM_CALL:
      write_called_braced(p, "called_computations", op);
      return;
    case IR_OP_ASYNC_START:
    case IR_OP_ASYNC_UPDATE:
    case IR_OP_ASYNC_DONE:
      write_async_called(p, op);
      return;
    case IR_OP_FUSION:
      write_called_one(p, "calls", op->called[0]);
      return;
    default:
      write_called_one(p, apply_key(p, op), op->called[0]);
  }
}

/* --- attributes of any op --- */

/* XLA prints metadata={...} when one of these fields says something. */
static bool is_shown_metadata(const ir_metadata *m, const text_printer *p) {
  bool has_frame = m->stack_frame_id && p->module && m->stack_frame_id <= p->module->sources.n_frames;
  return has_frame || (m->op_type && m->op_type->n) || (m->op_name && m->op_name->n) ||
         (m->source_file && m->source_file->n) || (m->scheduling_name && m->scheduling_name->n);
}

/* Empty values and modes that hide an attribute. */
static bool is_shown_common(const text_printer *p, const ir_attr *a) {
  switch (a->key) {
    case IR_ATTR_FRONTEND_ATTRIBUTES:
    case IR_ATTR_STATISTICS:
      return a->v.dict->n > 0;
    case IR_ATTR_RESULT_ACCURACY:
      return a->v.accuracy->mode != IR_ACCURACY_DEFAULT;
    case IR_ATTR_METADATA:
      return p->metadata && is_shown_metadata(a->v.metadata, p);
    case IR_ATTR_BACKEND_CONFIG:
      return p->backend_config && a->v.config->text->n > 0;
    default:
      return true;
  }
}

/* What any op may have: sharding, metadata and such. */
static void write_common(text_printer *p, const ir_op *op, ir_attr_key key) {
  const ir_attr *a = ir_attr_find(op, key);
  if (!a || !is_shown_common(p, a)) return;
  write_key(p, ir_attr_table[key].text);
  text_write_attr_value(p, op, a);
}

/* control-predecessors={%a, %b}: edges are not attributes in the IR; a made-up one prints them. */
static void write_control_edges(text_printer *p, const ir_op *op) {
  if (!p->control_deps || op->n_control_preds == 0) return;
  ir_attr a = ir_attr_make(IR_ATTR_CONTROL_PREDECESSORS);
  write_key(p, "control-predecessors");
  text_write_attr_value(p, op, &a);
}

/* Which of the attributes that any op may have are there, in one pass: most ops have one or none. */
static const uint8_t common_bits[IR_ATTR_COUNT] = {
    [IR_ATTR_SHARDING] = 1 << 0,       [IR_ATTR_FRONTEND_ATTRIBUTES] = 1 << 1,
    [IR_ATTR_STATISTICS] = 1 << 2,     [IR_ATTR_RESULT_ACCURACY] = 1 << 3,
    [IR_ATTR_ORIGIN] = 1 << 4,         [IR_ATTR_METADATA] = 1 << 5,
    [IR_ATTR_BACKEND_CONFIG] = 1 << 6,
};

/* Which of these the op has, as bits, so that ops without any (most) are quickly done. */
static unsigned common_attributes(const ir_op *op) {
  unsigned bits = 0;
  for (uint32_t i = 0; i < op->n_attrs; i++) bits |= common_bits[op->attrs[i].key];
  return bits;
}

/* In the order in which XLA prints them, whatever the order in which they were set. */
static void write_if_there(text_printer *p, const ir_op *op, unsigned there, ir_attr_key key) {
  assert(common_bits[key]);
  if (there & common_bits[key]) write_common(p, op, key);
}

/* What the opcode's row has. */
static void write_own_part(text_printer *p, const ir_op *op) {
  text_write_own_attributes(p, op);
  text_write_called(p, op);
  if (op->opcode == IR_OP_CALL && ir_get_bool(op, IR_ATTR_IS_COMPOSITE, false)) BASE_PUT(p->out, ", is_composite=true");
}

/* What sugar shows of the wrapped op. The reader gives it the start's frontend attributes and statistics, so that those
 * need not stand twice. */
static void write_wrapped_part(text_printer *p, const ir_op *root, const ir_op *start) {
  write_own_part(p, root);
  write_common(p, root, IR_ATTR_SHARDING);
  if (!ir_attr_find(start, IR_ATTR_FRONTEND_ATTRIBUTES)) write_common(p, root, IR_ATTR_FRONTEND_ATTRIBUTES);
  if (!ir_attr_find(start, IR_ATTR_STATISTICS)) write_common(p, root, IR_ATTR_STATISTICS);
  write_common(p, root, IR_ATTR_RESULT_ACCURACY);
}

/* A start's own attributes stand around those of the op it wraps. */
static void write_async_part(text_printer *p, const ir_op *op) {
  bool is_sugar = false;
  const ir_attr *thread = ir_attr_find(op, IR_ATTR_ASYNC_THREAD);
  const ir_attr *aliasing = ir_attr_find(op, IR_ATTR_OUTPUT_TO_OPERAND_ALIASING);
  const ir_op *start = text_async_start(p, op, &is_sugar);
  if (op->opcode != IR_OP_ASYNC_START) return;
  if (thread && !is_default_string(thread)) {
    write_key(p, "async_execution_thread");
    text_put_raw_quoted(p->out, thread->v.str);
  }
  if (is_sugar) write_wrapped_part(p, ir_root(start->called[0]), start);
  if (aliasing && !is_default_value(op, aliasing)) write_common(p, op, IR_ATTR_OUTPUT_TO_OPERAND_ALIASING);
  text_write_called(p, op);
}

/* The order of the common attributes is XLA's. */
void text_write_attributes(text_printer *p, const ir_op *op) {
  bool is_async = op->opcode == IR_OP_ASYNC_START || op->opcode == IR_OP_ASYNC_UPDATE || op->opcode == IR_OP_ASYNC_DONE;
  unsigned there = common_attributes(op);
  if (is_async)
    write_async_part(p, op);
  else
    write_own_part(p, op);
  write_if_there(p, op, there, IR_ATTR_SHARDING);
  write_if_there(p, op, there, IR_ATTR_FRONTEND_ATTRIBUTES);
  write_control_edges(p, op);
  write_if_there(p, op, there, IR_ATTR_STATISTICS);
  write_if_there(p, op, there, IR_ATTR_RESULT_ACCURACY);
  write_if_there(p, op, there, IR_ATTR_ORIGIN);
  write_if_there(p, op, there, IR_ATTR_METADATA);
  write_if_there(p, op, there, IR_ATTR_BACKEND_CONFIG);
}
