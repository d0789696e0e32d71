/* Async ops as they are read: the sugar "add-start" makes a hidden computation of parameters and one op, updates and
 * dones are checked against their start, and threads and shared attributes go where XLA puts them.
 *
 *   %s = ((f32[8], f32[8]), f32[8]) add-start(%x, %y), async_execution_thread="t"
 * reads as
 *   %async_wrapped { ROOT %add = f32[8] add(%async_param, %async_param.1) }, execution_thread="t"
 *   %s = ((f32[8], f32[8]), f32[8]) async-start(%x, %y), async_execution_thread="t", calls=%async_wrapped
 * Source: XLA's hlo_parser.cc and HloInstruction::CreateAsyncStart. */
#include "../../ir/check/check.h"
#include "read.h"

#include <stdio.h>

/* --- types --- */

/* The shape XLA's documentation writes for plain operands, (operands..., outputs, contexts...), as ((operands...),
 * ...). */
const ir_type *text_async_nested(text_reader *r, const ir_type *flat, uint32_t n) {
  uint32_t first = r->types.n;
  const ir_type *operands = ir_tuple(r->m, n, flat->elements);
  if (!operands || !BASE_VEC_PUSH(r->alloc, &r->types, operands)) return NULL;
  for (uint32_t i = n; i < flat->n_elements; i++)
    if (!BASE_VEC_PUSH(r->alloc, &r->types, flat->elements[i])) return NULL;
  const ir_type *t = ir_tuple(r->m, r->types.n - first, r->types.items + first);
  r->types.n = first;
  return t;
}

/* Whether `flat` is `nested` with its operands not in a tuple: f32[8], f32[8] against (f32[8]), f32[8]. */
bool text_async_flat_equal(const ir_type *flat, const ir_type *nested) {
  if (!ir_is_tuple(flat) || !ir_is_tuple(nested) || nested->n_elements == 0 || !ir_is_tuple(nested->elements[0]))
    return false;
  const ir_type *operands = nested->elements[0];
  if (flat->n_elements != operands->n_elements + nested->n_elements - 1) return false;
  for (uint32_t i = 0; i < flat->n_elements; i++) {
    const ir_type *t =
        i < operands->n_elements ? operands->elements[i] : nested->elements[i - operands->n_elements + 1];
    if (!ir_compatible(flat->elements[i], t)) return false;
  }
  return true;
}

/* Leaves in d->type the nested form, or fails. Only the shape's outline is looked at: the verifier compares the
 * parts. */
static int settle_start_type(text_reader *r, text_draft *d) {
  const ir_type *t = d->type;
  if (ir_is_start_type(t)) return 0;
  if (!r->strict && t && ir_is_tuple(t) && t->n_elements > d->n_operands && d->n_operands > 0) {
    d->type = text_async_nested(r, t, d->n_operands);
    return d->type ? 0 : text_no_memory(r);
  }
  char found[200] = "nothing";
  if (t) ir_type_text(t, found, sizeof found);
  int status = text_fail(r, d->opcode_at, XLAC_E_SYNTAX,
                         "an async start's shape is ((operands...), outputs, contexts...), not %s", found);
  return base_hint(r->err, status, "one operand f32[8] and one output f32[8] give ((f32[8]), f32[8])%s",
                   r->strict ? "; the flat form is read where strict reading is not asked for" : "");
}

/* --- the hidden computation --- */

/* Attributes of the sugar that belong to the start, not to the op it wraps. The rest describes the work and moves
 * into the hidden computation. */
static bool stays_on_start(const text_draft *d, unsigned key) {
  if (key == IR_ATTR_OUTPUT_TO_OPERAND_ALIASING) return !ir_opcode_takes(d->attrs.opcode, key, NULL);
  return key == IR_ATTR_ASYNC_THREAD || key == IR_ATTR_SHARDING || key == IR_ATTR_PARAMETER_REPLICATION;
}

/* Attributes that the start and the op it wraps share. */
static bool is_shared(unsigned key) {
  return key == IR_ATTR_METADATA || key == IR_ATTR_BACKEND_CONFIG || key == IR_ATTR_FRONTEND_ATTRIBUTES ||
         key == IR_ATTR_STATISTICS || key == IR_ATTR_ORIGIN;
}

/* Moves the attributes of the wrapped op to the end of the list; *first is where they begin. */
static int split_attrs(text_reader *r, const text_draft *d, uint32_t *first) {
  uint32_t n = r->attrs.n, kept = d->attrs.first;
  *first = n;
  for (uint32_t i = d->attrs.first; i < n; i++) {
    ir_attr a = r->attrs.items[i];
    if (!stays_on_start(d, a.key) && !is_shared(a.key) && !BASE_VEC_PUSH(r->alloc, &r->attrs, a))
      return text_no_memory(r);
  }
  for (uint32_t i = d->attrs.first; i < n; i++) {
    ir_attr a = r->attrs.items[i];
    if (stays_on_start(d, a.key) || is_shared(a.key)) r->attrs.items[kept++] = a;
  }
  assert(r->attrs.n >= n && kept <= n);
  uint32_t moved = r->attrs.n - n;
  if (moved) memmove(r->attrs.items + kept, r->attrs.items + n, moved * sizeof *r->attrs.items);
  r->attrs.n = kept + moved;
  *first = kept;
  return 0;
}

/* One parameter for each operand; whether the start's shape agrees is for the verifier. */
static int add_hidden_params(text_reader *r, ir_computation *c, const text_draft *d) {
  const base_istr *name = ir_intern(r->m, "async_param", 11);
  if (!name) return text_no_memory(r);
  for (uint32_t i = 0; i < d->n_operands; i++) {
    ir_op *p = ir_op_new(c, IR_OP_PARAMETER, r->ops.items[d->first_operand + i]->type, name, 0, 0);
    text_param param = {p, i};
    if (!p || !BASE_VEC_PUSH(r->alloc, &r->params, param) || !BASE_VEC_PUSH(r->alloc, &r->ops, p))
      return text_no_memory(r);
    p->u.number = i;
    text_where(&r->lx, d->at, &p->line, &p->col);
  }
  return 0;
}

/* The computation that holds the wrapped op, whose called computations and own attributes are taken from d. The
 * draft `w` is the wrapped op's: its operands are the new parameters, its type the start's second part. */
static int make_hidden(text_reader *r, text_draft *d, ir_computation **out) {
  uint32_t first_param = r->params.n, ops = r->ops.n;
  ir_computation *c = ir_computation_new(r->m, "async_wrapped", 13);
  const char *text = ir_opcode_text(d->attrs.opcode);
  const base_istr *name = ir_intern(r->m, text, strlen(text));
  if (!c || !name) return text_no_memory(r);
  c->hidden = true;
  text_draft w = {
      .c = c, .name = name, .at = d->at, .opcode_at = d->opcode_at, .type = d->type->elements[1], .first_operand = ops};
  w.attrs = d->attrs;
  w.attrs.sugar = TEXT_SUGAR_NONE;
  TRY(split_attrs(r, d, &w.attrs.first));
  TRY(add_hidden_params(r, c, d));
  w.n_operands = r->ops.n - ops;
  w.attrs.first_pred = r->ops.n;
  TRY(text_check_counts(r, &w));
  ir_op *root;
  TRY(text_make_op(r, &w, &root));
  TRY(text_close_computation(r, c, root, first_param, d->at));
  text_where(&r->lx, d->at, &c->line, &c->col);
  *out = c;
  return 0;
}

/* --- updates and dones --- */

/* XLA's name for the thread of a start that names none is "main". */
static const char *thread_name(const ir_op *start) {
  const ir_attr *a = ir_attr_find(start, IR_ATTR_ASYNC_THREAD);
  return a ? a->v.str->s : "main";
}

/* The operand of an update or done and the start of its chain, which chain_starts has for every async op read so
 * far. */
static int chain_operand(text_reader *r, const text_draft *d, ir_op **operand, ir_op **start) {
  ir_op *op = d->n_operands == 1 ? r->ops.items[d->first_operand] : NULL;
  bool async = op && (op->opcode == IR_OP_ASYNC_START || op->opcode == IR_OP_ASYNC_UPDATE);
  if (!async) {
    int status =
        text_fail(r, d->opcode_at, XLAC_E_SYNTAX, "an async update or done has one operand, an async start or update");
    return base_hint(r->err, status, "a chain can't go through tuples, parameters or calls");
  }
  *operand = op;
  *start = base_map_ptr(&r->chain_starts, op);
  assert(*start && (*start)->n_called == 1);
  return 0;
}

/* What an update or done may repeat of its start must be the same. */
static int check_chain_repeats(text_reader *r, const text_draft *d, const ir_op *start) {
  ir_computation *wrapped = start->called[0];
  ir_op *root = ir_root(wrapped);
  if (d->attrs.sugar && root->opcode != d->attrs.opcode)
    return text_fail(r, d->opcode_at, XLAC_E_SYNTAX, "the chain's start wraps %s, not %s", ir_opcode_text(root->opcode),
                     ir_opcode_text(d->attrs.opcode));
  for (uint32_t i = d->attrs.first; i < r->attrs.n; i++) {
    const ir_attr *a = &r->attrs.items[i], *own = ir_attr_find(root, a->key);
    if (a->key == IR_ATTR_ASYNC_THREAD && strcmp(a->v.str->s, thread_name(start)) != 0)
      return text_fail(r, d->at, XLAC_E_BAD_ATTRIBUTE, "the chain runs on thread \"%s\", not \"%s\"",
                       thread_name(start), a->v.str->s);
    bool repeats = d->attrs.sugar && ir_opcode_takes(d->attrs.opcode, a->key, NULL);
    if (repeats && !(own && ir_attr_equal(own, a)))
      return text_fail(r, d->at, XLAC_E_BAD_ATTRIBUTE, "'%s' is not what the chain's start says",
                       ir_attr_table[a->key].text);
  }
  for (uint32_t i = d->attrs.first_called; i < r->comps.n; i++)
    if (!d->attrs.sugar && r->comps.items[i] != wrapped)
      return text_fail(r, d->at, XLAC_E_BAD_ATTRIBUTE, "the chain's start calls '%s', not '%s'", wrapped->name->s,
                       r->comps.items[i]->name->s);
  return 0;
}

/* An update or done keeps only what is its own. XLA's updates and dones have no attributes of the wrapped op, nor a
 * list of called computations. */
static void drop_repeats(text_reader *r, text_draft *d) {
  uint32_t kept = d->attrs.first;
  for (uint32_t i = d->attrs.first; i < r->attrs.n; i++) {
    ir_attr a = r->attrs.items[i];
    if (a.key == IR_ATTR_SHARDING || a.key == IR_ATTR_PARAMETER_REPLICATION || is_shared(a.key))
      r->attrs.items[kept++] = a;
  }
  r->attrs.n = kept;
  r->comps.n = d->attrs.first_called;
}

/* An update or a done. An update has its operand's type; a done's is left to the verifier. */
static int draft_follower(text_reader *r, text_draft *d, bool update) {
  ir_op *operand = NULL, *start = NULL;
  TRY(chain_operand(r, d, &operand, &start));
  TRY(check_chain_repeats(r, d, start));
  drop_repeats(r, d);
  if (!update) return 0;
  if (!r->strict && d->type && !ir_is_start_type(d->type) && text_async_flat_equal(d->type, operand->type))
    d->type = operand->type;
  return settle_start_type(r, d);
}

/* Called between reading an instruction and making its op; turns sugar into the generic opcode. Leaves other ops
 * alone. */
int text_async_draft(text_reader *r, text_draft *d) {
  unsigned opcode = d->attrs.opcode;
  if (d->attrs.sugar) opcode = IR_OP_ASYNC_START + (unsigned)d->attrs.sugar - TEXT_SUGAR_START;
  if (opcode == IR_OP_ASYNC_UPDATE || opcode == IR_OP_ASYNC_DONE)
    TRY(draft_follower(r, d, opcode == IR_OP_ASYNC_UPDATE));
  if (opcode == IR_OP_ASYNC_START) {
    TRY(settle_start_type(r, d));
    if (d->attrs.sugar) {
      ir_computation *c = NULL;
      TRY(make_hidden(r, d, &c));
      if (!BASE_VEC_PUSH(r->alloc, &r->comps, c)) return text_no_memory(r);
    }
  }
  d->attrs.opcode = (uint16_t)opcode;
  return 0;
}

/* --- once the op is there --- */

/* Runs `c` and what it calls on `thread` (NULL: main). A nested start that names its own thread keeps it, against
 * XLA, which rewrites it; one that names none follows. r->comps serves as the work list; a computation whose thread
 * is right already is not entered again, so that this ends. */
static int set_thread(text_reader *r, ir_computation *c, const base_istr *thread) {
  uint32_t first = r->comps.n;
  c->execution_thread = thread;
  if (!BASE_VEC_PUSH(r->alloc, &r->comps, c)) return text_no_memory(r);
  while (r->comps.n > first) {
    c = r->comps.items[--r->comps.n];
    IR_FOR_OPS(op, c) {
      if (op->opcode == IR_OP_ASYNC_START) {
        if (!thread || ir_attr_find(op, IR_ATTR_ASYNC_THREAD)) continue;
        ir_attr a = ir_attr_make(IR_ATTR_ASYNC_THREAD);
        a.v.str = thread;
        if (!ir_attr_set(op, a)) return text_no_memory(r);
      }
      for (uint32_t i = 0; i < op->n_called; i++) {
        if (op->called[i]->execution_thread == thread) continue;
        op->called[i]->execution_thread = thread;
        if (!BASE_VEC_PUSH(r->alloc, &r->comps, op->called[i])) return text_no_memory(r);
      }
    }
  }
  return 0;
}

/* The thread of a start; "main" is not kept as an attribute. */
static const base_istr *start_thread(ir_op *op) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_ASYNC_THREAD);
  const base_istr *thread = a ? a->v.str : NULL;
  if (!thread || strcmp(thread->s, "main") != 0) return thread;
  ir_attr_remove(op, IR_ATTR_ASYNC_THREAD);
  return NULL;
}

/* A wrapped computation belongs to one start only: XLA's async ops find their start through it. */
static int start_made(text_reader *r, const text_draft *d, ir_op *op) {
  assert(op->n_called == 1);
  ir_computation *c = op->called[0];
  const ir_op *other = base_map_ptr(&r->wrapped_by, c);
  if (other)
    return text_fail(r, d->at, XLAC_E_SYNTAX, "computation '%s' belongs to the async start '%s' already", c->name->s,
                     other->name->s);
  if (!base_map_set(&r->wrapped_by, base_key(c), base_key(op))) return text_no_memory(r);
  return set_thread(r, c, start_thread(op));
}

/* Remembers the chain and copies the shared attributes onto the wrapped op, where passes look for them. */
int text_async_made(text_reader *r, const text_draft *d, ir_op *op) {
  if (op->opcode < IR_OP_ASYNC_START || op->opcode > IR_OP_ASYNC_DONE) return 0;
  ir_op *start = op;
  if (op->opcode == IR_OP_ASYNC_START) {
    TRY(start_made(r, d, op));
  } else {
    start = base_map_ptr(&r->chain_starts, ir_operand(op, 0));
  }
  assert(start && start->n_called == 1);
  if (!base_map_set(&r->chain_starts, base_key(op), base_key(start))) return text_no_memory(r);
  ir_op *root = ir_root(start->called[0]);
  for (uint32_t i = 0; i < op->n_attrs; i++)
    if (is_shared(op->attrs[i].key) && !ir_attr_set(root, op->attrs[i])) return text_no_memory(r);
  return 0;
}
