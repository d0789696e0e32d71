/* From a computation to its program: buffers for leaves, a step for each kernel, product, loop, branch and call, and
 * the interpreter's evaluator for the rest.
 *
 * The way of a computation: ops in post-order without those that nobody needs; async chains put in order; fusion
 * decides which ops are one kernel; an order of least memory is chosen (order.c); kernels over the same memory are
 * merged; each op becomes a step or a name for buffers that are there; results get their memory (results.c); at last
 * every buffer gets its place (place.c).
 *
 * f32[4]{...} (p, q) in a tuple has leaves 0 and 1; get-tuple-element takes one of them and makes no step. */
#include "build.h"

#include "order.h"

static int build_no_memory(const plan_build *x) {
  return base_oom(x->err, "a plan");
}

/* --- leaves --- */

/* The same buffers under another name. */
static void build_append_leaves(plan_build *x, plan_leaves from) {
  assert(from.at + from.n <= x->leaves.n || x->failed);
  for (uint32_t i = 0; i < from.n; i++)
    x->failed = x->failed || !BASE_VEC_PUSH(x->alloc, &x->leaves, x->leaves.items[from.at + i]);
}

/* A tuple is the list of its elements' leaves. */
static plan_leaves build_tuple(plan_build *x, const ir_op *op) {
  uint32_t at = x->leaves.n;
  for (uint32_t i = 0; i < op->n_operands; i++) build_append_leaves(x, x->values[ir_operand(op, i)->id]);
  return (plan_leaves){at, x->leaves.n - at};
}

/* A part of the operand's range: nothing is copied, not even the list. */
static plan_leaves build_element(const plan_build *x, const ir_op *op) {
  assert(op->n_operands == 1);
  plan_leaves all = x->values[ir_operand(op, 0)->id];
  const ir_type *t = ir_operand_type(op, 0);
  uint32_t at = all.at, index = (uint32_t)ir_get_int(op, IR_ATTR_INDEX, 0);
  if (t->depth == 1) return (plan_leaves){at + index, 1}; /* wide tuples are flat as a rule */
  for (uint32_t i = 0; i < index; i++) at += ir_type_leaves(t->elements[i]);
  return (plan_leaves){at, ir_type_leaves(op->type)};
}

/* A leaf of a tuple constant is a constant of its own. */
static void build_constant_leaves(plan_build *x, const ir_op *op, const ir_literal *l) {
  assert(l && l->type);
  if (ir_is_tuple(l->type)) {
    for (uint32_t i = 0; i < l->type->n_elements; i++) build_constant_leaves(x, op, l->elements[i]);
    return;
  }
  plan_buffer b = {.place = PLAN_CONSTANT, .literal = ir_is_tensor(l->type) ? l : NULL, .type = l->type, .op = op};
  b.bytes = ir_is_tensor(l->type) ? ir_type_bytes(l->type) : 0;
  uint32_t id = plan_new_buffer(x, b);
  x->failed = x->failed || !BASE_VEC_PUSH(x->alloc, &x->leaves, id);
}

/* --- steps --- */

/* Depth is that of a type, which is bounded. */
static uint64_t build_type_bytes(const ir_type *t) {
  uint64_t bytes = ir_is_tensor(t) ? (uint64_t)ir_type_bytes(t) : 0;
  for (uint32_t i = 0; ir_is_tuple(t) && i < t->n_elements; i++) bytes += build_type_bytes(t->elements[i]);
  return bytes;
}

/* Ops that change a part of their first operand can do it in place. */
void plan_eval_routine(const ir_op *op, plan_routine *out) {
  bool updates = op->opcode == IR_OP_DYNAMIC_UPDATE_SLICE || op->opcode == IR_OP_SCATTER;
  uint64_t work = build_type_bytes(op->type);
  for (uint32_t i = 0; i < op->n_operands; i++) work += build_type_bytes(ir_operand_type(op, i));
  *out = (plan_routine){.number = out->number, .name = "eval", .work = work, .interpreted = true};
  out->calls = op->n_called > 0;
  out->in_place = updates && ir_is_tensor(op->type);
}

static int build_prepare(plan_build *x, const ir_op *op, plan_routine *routine) {
  const plan_target *target = x->options->target;
  routine->number = x->numbers_given->routines++;
  routine->name = "";
  if (target && target->prepare) return target->prepare(target->ctx, op, routine, x->err);
  plan_eval_routine(op, routine);
  return 0;
}

/* By the device's algorithm, or by the interpreter. */
static int build_routine(plan_build *x, const ir_op *op) {
  plan_routine routine = {.number = 0};
  TRY(build_prepare(x, op, &routine));
  plan_routine *own = base_arena_memdup(x->arena, &routine, sizeof routine);
  plan_step s = {.kind = PLAN_ROUTINE, .op = op, .routine = own, .frame = UINT32_MAX};
  s.in = plan_operand_buffers(x, op, 0, &s.n_in);
  s.out = plan_result_buffers(x, op, 0, &s.n_out);
  if (routine.scratch_bytes || routine.lines.n)
    s.frame = plan_new_buffer(x, (plan_buffer){.place = PLAN_FRAME, .bytes = routine.scratch_bytes, .op = op});
  return x->failed || !own ? build_no_memory(x) : plan_add_step(x, s);
}

/* A buffer for each root that the kernel stores. */
static const uint32_t *build_kernel_outputs(plan_build *x, const ir_op *first, uint32_t n) {
  uint32_t *ids = plan_ids(x, n), one = 0;
  for (uint32_t i = 0; ids && i < n; i++, first = x->fusion.of[first->id].merged_next) {
    const uint32_t *id = plan_result_buffers(x, first, 0, &one);
    if (x->failed) return NULL;
    assert(one == 1);
    ids[i] = *id;
  }
  return ids;
}

/* The buffer of the copy, which is made by a step of its own before the first kernel that loads it. */
static int build_copy(plan_build *x, const fusion_input *input, uint32_t *buffer) {
  for (uint32_t i = 0; i < x->copies.n; i++)
    if (x->copies.items[i].of.op == input->op && x->copies.items[i].of.last == input->last) {
      *buffer = x->copies.items[i].buffer;
      return 0;
    }
  plan_step s = {.kind = PLAN_KERNEL, .op = input->op, .n_in = 1, .n_out = 1, .frame = UINT32_MAX};
  kernel *k = NULL;
  TRY(fusion_lower_copy(input, x->arena, &k, x->err));
  assert(kernel_verify(k, x->err) == 0);
  uint32_t *ids = plan_ids(x, 2);
  plan_buffer b = {.place = PLAN_FRAME, .bytes = ir_type_bytes(input->op->type), .op = input->op};
  plan_copy made = {*input, *buffer = plan_new_buffer(x, b)};
  if (x->failed || !BASE_VEC_PUSH(x->alloc, &x->copies, made)) return build_no_memory(x);
  ids[0] = x->leaves.items[x->values[input->op->id].at];
  ids[1] = *buffer;
  s.kernel = k;
  s.in = ids;
  s.out = ids + 1;
  return plan_add_step(x, s);
}

/* The buffers of what the kernel loads. */
static int build_kernel_inputs(plan_build *x, uint32_t n, const fusion_input *inputs, const uint32_t **out) {
  uint32_t *in = plan_ids(x, n);
  *out = in;
  for (uint32_t i = 0; in && i < n; i++) {
    assert(x->values[inputs[i].op->id].n == 1);
    in[i] = x->leaves.items[x->values[inputs[i].op->id].at];
    if (inputs[i].last >= 0) TRY(build_copy(x, &inputs[i], &in[i]));
  }
  return in ? 0 : build_no_memory(x);
}

/* One output for each root that is stored with op, in that order. */
static int build_kernel(plan_build *x, const ir_op *op) {
  assert(op && x->fusion.of[op->id].role != FUSION_NO);
  kernel *k = NULL;
  const fusion_input *inputs = NULL;
  TRY(fusion_lower(&x->fusion, op, x->arena, &k, &inputs, x->err));
  assert(kernel_verify(k, x->err) == 0);
  plan_step s = {.kind = PLAN_KERNEL, .op = op, .kernel = k, .n_in = k->n_inputs, .frame = UINT32_MAX};
  TRY(build_kernel_inputs(x, k->n_inputs, inputs, &s.in));
  s.n_out = k->n_stores;
  s.out = build_kernel_outputs(x, op, s.n_out);
  int64_t scratch = kernel_scratch_bytes(k);
  if (scratch) s.frame = plan_new_buffer(x, (plan_buffer){.place = PLAN_FRAME, .bytes = scratch, .op = op});
  return x->failed ? build_no_memory(x) : plan_add_step(x, s);
}

/* pred and types below 8 bits use part of their byte: other bits of it would come to light. */
static bool build_is_whole(base_dtype t) {
  return t != XLAC_PRED && base_dtype_of(t)->bits >= 8;
}

/* Elements of types that use all bits of their bytes, as many of as many bytes. */
static bool build_keeps_bytes(const ir_type *from, const ir_type *to) {
  if (!ir_is_tensor(from) || !ir_is_tensor(to) || from->count != to->count) return false;
  base_dtype a = (base_dtype)from->dtype, b = (base_dtype)to->dtype;
  return build_is_whole(a) && build_is_whole(b) && base_dtype_bytes(a) == base_dtype_bytes(b);
}

/* Ops that are nothing but another view of what is there. A barrier gives the value it gets, and row-major memory does
 * not know of reshapes. */
static bool build_is_view(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_RESHAPE:
    case IR_OP_OPT_BARRIER:
    case IR_OP_DOMAIN:
      return op->n_operands == 1;
    case IR_OP_BITCAST_CONVERT:
      return build_keeps_bytes(ir_operand_type(op, 0), op->type);
    default:
      return false;
  }
}

/* A transposition of what is in memory: the interpreter's goes through it in blocks. */
static bool build_is_transposition(const plan_build *x, const ir_op *op) {
  if (op->opcode != IR_OP_TRANSPOSE) return false;
  uint8_t role = x->fusion.of[ir_operand(op, 0)->id].role;
  return role == FUSION_NO || role == FUSION_ROOT;
}

/* A kernel that is nothing but a transposition is none. */
static bool build_is_kernel(const plan_build *x, const ir_op *op) {
  uint8_t role = x->fusion.of[op->id].role;
  return (role == FUSION_ROOT || (role == FUSION_CHEAP && x->fusion.of[op->id].needed)) &&
         !build_is_transposition(x, op);
}

/* A fusion that the device has one routine for. */
static bool build_is_taken(const plan_build *x, const ir_op *op) {
  const plan_target *t = x->options->target;
  return op->opcode == IR_OP_FUSION && t && t->takes && t->takes(t->ctx, op);
}

/* Views and names come before roles: fusion may have called a reshape a root. */
static int build_op(plan_build *x, const ir_op *op) {
  assert(op->id < x->m->n_ids);
  uint8_t role = x->fusion.of[op->id].role;
  if (role == FUSION_INNER) return 0;
  if (build_is_view(op)) {
    x->values[op->id] = x->values[ir_operand(op, 0)->id];
    return 0;
  }
  switch (op->opcode) {
    case IR_OP_PARAMETER:
      return 0;
    case IR_OP_TUPLE:
      x->values[op->id] = build_tuple(x, op);
      return x->failed ? build_no_memory(x) : 0;
    case IR_OP_GET_TUPLE_ELEMENT:
      x->values[op->id] = build_element(x, op);
      return 0;
    case IR_OP_AFTER_ALL: /* a token: a constant without bytes */
      x->values[op->id] = plan_new_leaves(x, op, (plan_buffer){.place = PLAN_CONSTANT});
      return x->failed ? build_no_memory(x) : 0;
    case IR_OP_ADD_DEPENDENCY:
      x->values[op->id] = x->values[ir_operand(op, 0)->id];
      return 0;
    case IR_OP_CONSTANT:
      x->values[op->id].at = x->leaves.n;
      build_constant_leaves(x, op, op->u.literal);
      x->values[op->id].n = x->leaves.n - x->values[op->id].at;
      return x->failed ? build_no_memory(x) : 0;
    default:
      break;
  }
  if (role == FUSION_CHEAP && !x->fusion.of[op->id].needed) return 0;
  if (build_is_kernel(x, op)) {
    const ir_op *first = role == FUSION_ROOT ? x->fusion.of[op->id].merged_first : op;
    return x->fusion.of[first->id].anchor == op ? build_kernel(x, first) : 0;
  }
  bool known = false;
  if (build_is_taken(x, op)) return build_routine(x, op);
  TRY(plan_build_nested(x, op, &known));
  if (!known) TRY(plan_build_async(x, op, &known));
  if (known) return 0;
  return build_routine(x, op);
}

/* --- arguments --- */

/* Leaves are numbered over all parameters. Arguments' buffers come first, so their numbers are those of their leaves:
 * other files rely on that. */
static void build_arguments(plan_build *x, const ir_computation *c) {
  assert(x->buffers.n == 0);
  uint32_t number = 0;
  for (uint32_t i = 0; i < c->n_params; i++) {
    uint32_t at = x->leaves.n;
    plan_add_leaves(x, c->params[i], c->params[i]->type, (plan_buffer){.place = PLAN_ARGUMENT}, &number);
    x->values[c->params[i]->id] = (plan_leaves){at, x->leaves.n - at};
  }
  x->p->n_arguments = number;
}

/* --- whole computations --- */

/* Arrays and tokens, at any depth: what buffers can hold. */
static bool build_type_is_plain(const ir_type *t) {
  if (ir_is_tuple(t)) {
    for (uint32_t i = 0; i < t->n_elements; i++)
      if (!build_type_is_plain(t->elements[i])) return false;
    return true;
  }
  return ir_is_token(t) || (ir_is_tensor(t) && !t->has_dynamic && !t->quant && !t->text);
}

/* Why the interpreter must run the whole computation, or NULL. */
static const char *build_obstacle(const plan_build *x, const ir_computation *c) {
  IR_FOR_OPS(op, c) {
    if ((opt_op_facts(x->facts, op) & OPT_EFFECT) && op->opcode != IR_OP_ASYNC_START) return "it has side effects";
    if (!build_type_is_plain(op->type)) return "a shape or type is known only when it runs";
    if (op == ir_root(c) && ir_opcode_has(op->opcode, IR_ASYNC_START | IR_ASYNC_UPDATE))
      return "its result is an async operation that nobody waits for";
    if (plan_is_async(op)) continue;
    if (ir_opcode_has(op->opcode, IR_ASYNC_START) || ir_opcode_has(op->opcode, IR_ASYNC_DONE) ||
        ir_opcode_has(op->opcode, IR_ASYNC_UPDATE))
      return "it has async operations";
    if (op->opcode == IR_OP_CONSTANT && op->u.literal->elided) return "a constant's values are elided";
  }
  return NULL;
}

enum { BUILD_FEW = 64 /* elements of what may be computed early */ };

/* Small values that follow from arguments and constants through ops that do nothing else. */
static bool build_is_early(const ir_op *op, const uint8_t *early) {
  bool name = op->opcode == IR_OP_GET_TUPLE_ELEMENT || op->opcode == IR_OP_PARAMETER || op->opcode == IR_OP_CONSTANT;
  bool small = ir_is_tensor(op->type) && op->type->count <= BUILD_FEW;
  if (op->n_control_preds || !(name || (small && (op->opcode == IR_OP_RESHAPE || fusion_is_candidate(op)))))
    return false;
  for (uint32_t k = 0; k < op->n_operands; k++)
    if (!early[ir_operand(op, k)->id]) return false;
  return true;
}

/* Those first, so that kernels of many elements follow one another and can be grouped. `early`: by op id, zero. */
static void build_order(uint32_t n, ir_op **order, uint8_t *early, base_arena *scratch) {
  ir_op **rest = BASE_ARRAY(scratch, ir_op *, (size_t)n + 1);
  uint32_t front = 0, back = 0;
  if (!rest) return; /* a wish */
  for (uint32_t i = 0; i < n; i++) {
    early[order[i]->id] = build_is_early(order[i], early);
    if (early[order[i]->id])
      order[front++] = order[i];
    else
      rest[back++] = order[i];
  }
  memcpy(order + front, rest, back * sizeof *rest);
  for (uint32_t i = 0; i < n; i++) early[order[i]->id] = 0;
}

/* What must happen whoever needs its result: obstacles but for async chains. */
static bool build_is_effect(const plan_build *x, const ir_op *op) {
  const ir_op *start = op->opcode == IR_OP_ASYNC_DONE ? ir_async_start_of(op) : NULL;
  return start && (opt_op_facts(x->facts, start) & OPT_EFFECT);
}

/* The ops that the root or the world needs, in order. Marks are zero before and after. */
static uint32_t build_needed(const plan_build *x, const ir_computation *c, uint32_t n, ir_op **order) {
  uint32_t kept = 0;
  uint8_t *marks = x->marks;
  marks[ir_root(c)->id] = 1;
  for (uint32_t i = 0; i < n; i++)
    if (build_is_effect(x, order[i])) marks[order[i]->id] = 1;
  for (uint32_t i = n; i-- > 0;)
    for (uint32_t k = 0; marks[order[i]->id] && k < order[i]->n_operands; k++) marks[ir_operand(order[i], k)->id] = 1;
  for (uint32_t i = 0; i < n; i++) {
    bool needed = marks[order[i]->id];
    marks[order[i]->id] = 0;
    if (needed) order[kept++] = order[i];
  }
  return kept;
}

/* Everything up to the results. */
static int build_steps(plan_build *x, const ir_computation *c) {
  uint32_t n = 0, kept = 0;
  base_arena scratch;
  base_arena_init(&scratch, x->alloc);
  ir_op **order = ir_post_order(c, &scratch, &n);
  int status = order ? 0 : build_no_memory(x);
  if (status == 0) kept = build_needed(x, c, n, order);
  if (status == 0 && !plan_order_async(x, c, kept, order, &scratch)) status = build_no_memory(x);
  if (status == 0 && !x->options->no_fusion) {
    x->fusion.skips_places = x->options->target && x->options->target->skips_places;
    build_order(kept, order, x->marks, &scratch);
    fusion_decide(&x->fusion, c, kept, order);
    status = plan_order_ops(x->p, &x->fusion, kept, order, x->numbers, &scratch, x->err);
    if (status == 0 && !fusion_merge(&x->fusion, kept, order, x->numbers, &scratch)) status = build_no_memory(x);
  }
  for (uint32_t i = 0; status == 0 && i < kept; i++) status = build_op(x, order[i]);
  base_arena_free(&scratch);
  return status;
}

/* Buffers that are arguments or results; of each result the one that is written last is final. */
static int build_interface(const plan_build *x, plan_buffer *buffers) {
  plan_program *p = x->p;
  uint32_t *interface = BASE_ARRAY(x->arena, uint32_t, (size_t)p->n_buffers + 1);
  uint32_t *latest = BASE_ARRAY(x->arena, uint32_t, (size_t)p->n_results + 1);
  if (!interface || !latest) return build_no_memory(x);
  for (uint32_t i = 0; i < p->n_results; i++) latest[i] = UINT32_MAX;
  for (uint32_t i = 0; i < p->n_buffers; i++) {
    const plan_buffer *b = &buffers[i];
    if (b->place != PLAN_ARGUMENT && b->place != PLAN_RESULT) continue;
    interface[p->n_interface++] = i;
    if (b->place == PLAN_ARGUMENT) continue;
    assert(b->number < p->n_results);
    uint32_t *last = &latest[b->number];
    if (*last == UINT32_MAX || buffers[*last].first < b->first) *last = i;
  }
  for (uint32_t i = 0; i < p->n_results; i++)
    if (latest[i] != UINT32_MAX) buffers[latest[i]].final = !buffers[latest[i]].borrowed;
  p->interface = interface;
  return 0;
}

/* Vectors become arrays in the plan's arena; from now on nothing changes but places. */
static int build_finish(plan_build *x) {
  assert(x->buffers.n >= x->p->n_arguments);
  plan_program *p = x->p;
  p->n_buffers = x->buffers.n;
  p->n_steps = x->steps.n;
  plan_buffer *buffers = base_arena_memdup(x->arena, x->buffers.items, x->buffers.n * sizeof *x->buffers.items);
  plan_step *steps = base_arena_memdup(x->arena, x->steps.items, x->steps.n * sizeof *x->steps.items);
  if (!buffers || !steps) return build_no_memory(x);
  p->buffers = buffers;
  p->steps = steps;
  if (x->options->no_fusion)
    TRY(plan_place_buffers(p, steps, buffers, x->alloc, x->err));
  else
    TRY(plan_place_with_tiles(p, steps, buffers, &x->fusion.model, x->arena, x->err));
  return build_interface(x, buffers);
}

/* The parts of `outer` that all programs of a module share are lent to the inner one. A computation has one program,
 * and one more as a loop's body. */
int plan_build_program(const plan_build *outer, const ir_computation *c, bool body, plan_program **out) {
  plan_program **made = &outer->made[(size_t)c->id * 2 + body];
  if (*made) {
    *out = *made;
    return 0;
  }
  plan_build x = *outer;
  x.buffers = (plan_buffers){NULL, 0, 0};
  x.steps = (plan_steps){NULL, 0, 0};
  x.leaves = (plan_leaf_ids){NULL, 0, 0};
  x.chains = (plan_open_chains){NULL, 0, 0};
  x.copies = (plan_copies){NULL, 0, 0};
  x.donations = NULL;
  x.body = body;
  x.depth++;
  x.p = BASE_NEW(x.arena, plan_program);
  if (!x.p) return build_no_memory(&x);
  x.p->number = x.numbers_given->programs++;
  if (x.options->target) x.p->device = x.options->target->device;
  x.p->computation = c;
  x.p->fusion = x.explained;
  x.p->why = x.depth > PLAN_MAX_DEPTH ? "calls are nested too deep" : build_obstacle(&x, c);
  x.p->interpreted = x.p->why != NULL;
  int status = 0;
  if (!x.p->interpreted) {
    build_arguments(&x, c);
    x.p->over = x.over;
    x.over = NULL;
    if (x.depth == 1) plan_find_donations(&x);
    status = x.failed ? build_no_memory(&x) : build_steps(&x, c);
    if (status == 0) status = plan_build_results(&x, c);
    if (status == 0) status = x.failed ? build_no_memory(&x) : build_finish(&x);
  }
  BASE_VEC_FREE(x.alloc, &x.buffers);
  BASE_VEC_FREE(x.alloc, &x.steps);
  BASE_VEC_FREE(x.alloc, &x.leaves);
  BASE_VEC_FREE(x.alloc, &x.chains);
  BASE_VEC_FREE(x.alloc, &x.copies);
  *out = *made = x.p;
  return status;
}

/* Tables by op id are shared by all programs: a computation's ops are its own. */
int plan_make(const ir_module *m, const plan_options *options, base_arena *arena, plan_program **out, xlac_error *err) {
  assert(options && out);
  plan_numbers numbers = {0};
  plan_build x = {.m = m, .options = options, .arena = arena, .alloc = arena->alloc, .err = err};
  x.numbers_given = &numbers;
  opt_facts facts;
  assert(m->form == IR_FORM_HLO && m->entry);
  x.values = base_arena_zalloc(arena, ((size_t)m->n_ids + 1) * sizeof *x.values);
  x.made = base_arena_zalloc(arena, ((size_t)m->n_computation_ids * 2 + 2) * sizeof *x.made);
  x.marks = base_arena_zalloc(arena, (size_t)m->n_ids + 1);
  x.numbers = base_arena_zalloc(arena, ((size_t)m->n_ids + 1) * sizeof *x.numbers);
  if (!x.values || !x.made || !x.marks || !x.numbers ||
      !fusion_make(&x.fusion, m, options->target ? options->target->compute : NULL, arena))
    return base_oom(err, "a plan");
  if (!options->no_fusion && !(x.explained = base_arena_memdup(arena, &x.fusion, sizeof x.fusion)))
    return base_oom(err, "a plan");
  TRY(opt_facts_make(&facts, m, err));
  x.facts = &facts;
  int status = plan_build_program(&x, m->entry, false, out);
  opt_facts_free(&facts);
  if (status) return status;
  (*out)->n_programs = numbers.programs;
  (*out)->n_routines = numbers.routines;
  return 0;
}

int plan_make_whole(const ir_module *m, const char *why, base_arena *arena, plan_program **out, xlac_error *err) {
  plan_program *p = BASE_NEW(arena, plan_program);
  assert(m->entry && why);
  if (!p) return base_oom(err, "a plan");
  p->n_programs = 1;
  p->computation = m->entry;
  p->interpreted = true;
  p->why = why;
  *out = p;
  return 0;
}
