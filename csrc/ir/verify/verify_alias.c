#include "verify.h"

/* --- the entry: input_output_alias and buffer_donor ---
 *
 * XLA's rules (HloInputOutputAliasConfig::Verify), with our words. Donors get the rules of
 * HloBufferDonorConfig::Verify, which XLA's CPU pipeline does not run. {0}: (1, {}, must-alias) gives output 0 the
 * memory of parameter 1. */
static int fail_entry(const ir_module *m, xlac_error *err, const char *format, ...) BASE_PRINTF(3, 4);
static int fail_entry(const ir_module *m, xlac_error *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char message[sizeof err->message];
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return base_fail_at(err, XLAC_E_VERIFY_ALIAS, 1, 1, m->entry->name->s, "%s", message);
}

/* The tensor at parameter p, path index; NULL and an error when there is none. */
static const ir_type *param_leaf(const ir_module *m, const char *what, int64_t p, const ir_ints *index,
                                 xlac_error *err) {
  const ir_computation *e = m->entry;
  if (p < 0 || p >= e->n_params) {
    fail_entry(m, err, "%s names parameter %lld; the entry has %u", what, (long long)p, e->n_params);
    return NULL;
  }
  const ir_type *t = ir_type_at(e->params[p]->type, index->v, index->n);
  if (!t || !ir_is_tensor(t)) {
    fail_entry(m, err, "%s: index %s of parameter %lld (%s) is not an array", what, IR_SHOW_INTS(index->n, index->v),
               (long long)p, IR_SHOW(e->params[p]->type));
    return NULL;
  }
  return t;
}

/* 0, the default space, where the type says nothing. */
static int64_t space_of(const ir_type *t) {
  return t->layout ? t->layout->memory_space : 0;
}

/* may-alias asks for equal sizes only, must-alias for the same array. */
static int check_pair(const ir_module *m, const ir_alias *a, const ir_type *out, const ir_type *in, xlac_error *err) {
  assert(ir_is_tensor(out) && ir_is_tensor(in));
  const char *where = IR_SHOW_INTS(a->output->n, a->output->v);
  if (a->must && (!ir_same_bare(out, in) || space_of(out) != space_of(in)))
    return fail_entry(m, err,
                      "output %s (%s, space %lld) must alias parameter %lld (%s, space %lld): shape, element type and "
                      "memory space must be the same",
                      where, IR_SHOW(out), (long long)space_of(out), (long long)a->operand, IR_SHOW(in),
                      (long long)space_of(in));
  if (ir_type_xla_bytes(out) != ir_type_xla_bytes(in))
    return fail_entry(m, err, "output %s (%s, %lld bytes) can't alias parameter %lld (%s, %lld bytes): sizes differ",
                      where, IR_SHOW(out), (long long)ir_type_xla_bytes(out), (long long)a->operand, IR_SHOW(in),
                      (long long)ir_type_xla_bytes(in));
  return 0;
}

static bool same_path(const ir_ints *a, const ir_ints *b) {
  return a->n == b->n && (a->n == 0 || memcmp(a->v, b->v, a->n * sizeof *a->v) == 0);
}

/* Equal paths have equal keys; that different ones differ is only likely. */
uint64_t ir_verify_path_key(int64_t number, const ir_ints *path) {
  assert(path);
  uint64_t key = ir_verify_path_start(number);
  for (uint32_t i = 0; i < path->n; i++) key = ir_verify_path_step(key, path->v[i]);
  return key;
}

/* A parameter's memory can become one output only. The key is a hash, so a hit is compared in full. */
static int check_unique(const ir_module *m, const ir_alias *a, uint32_t i, base_map *seen, xlac_error *err) {
  assert(seen);
  uint64_t other, key = ir_verify_path_key(a[i].operand, a[i].index);
  if (base_map_get(seen, key, &other) && a[other].operand == a[i].operand && same_path(a[other].index, a[i].index))
    return fail_entry(m, err, "parameter %lld %s is aliased with output %s and again with output %s",
                      (long long)a[i].operand, IR_SHOW_INTS(a[i].index->n, a[i].index->v),
                      IR_SHOW_INTS(a[other].output->n, a[other].output->v),
                      IR_SHOW_INTS(a[i].output->n, a[i].output->v));
  return base_map_set(seen, key, i) ? 0 : base_oom(err, "a table of aliases");
}

/* `seen` has afterwards every aliased parameter leaf, for check_donor. */
static int check_aliases(const ir_module *m, base_map *seen, xlac_error *err) {
  const ir_config *config = &m->config;
  const ir_type *result = ir_result_type(m->entry);
  for (uint32_t i = 0; i < config->n_aliases; i++) {
    const ir_alias *a = &config->aliases[i];
    const ir_type *out = ir_type_at(result, a->output->v, a->output->n);
    if (!out || !ir_is_tensor(out))
      return fail_entry(m, err, "input_output_alias: index %s of the result (%s) is not an array",
                        IR_SHOW_INTS(a->output->n, a->output->v), IR_SHOW(result));
    const ir_type *in = param_leaf(m, "input_output_alias", a->operand, a->index, err);
    if (!in) return -XLAC_E_VERIFY_ALIAS;
    TRY(check_pair(m, a, out, in, err));
    TRY(check_unique(m, config->aliases, i, seen, err));
  }
  return 0;
}

/* XLA's own verifier of donors refuses what stands in both lists, as the same buffer can't go two ways. `seen`: aliases
 * by leaf. */
static int check_donor(const ir_module *m, const ir_donor *d, const base_map *seen, xlac_error *err) {
  uint64_t i;
  if (!param_leaf(m, "buffer_donor", d->parameter, d->index, err)) return -XLAC_E_VERIFY_ALIAS;
  if (!base_map_get(seen, ir_verify_path_key(d->parameter, d->index), &i)) return 0;
  return fail_entry(m, err, "parameter %lld %s is a buffer_donor and aliased with output %s; it can be one of them",
                    (long long)d->parameter, IR_SHOW_INTS(d->index->n, d->index->v),
                    IR_SHOW_INTS(m->config.aliases[i].output->n, m->config.aliases[i].output->v));
}

/* After the aliases, whose table it uses. */
static int check_donors(const ir_module *m, const base_map *seen, xlac_error *err) {
  for (uint32_t i = 0; i < m->config.n_donors; i++) TRY(check_donor(m, &m->config.donors[i], seen, err));
  return 0;
}

int ir_verify_aliases(const ir_module *m, const ir_verify_options *options, xlac_error *err) {
  assert(m && m->entry && options);
  base_map seen;
  base_map_init(&seen, m->alloc);
  int status = check_aliases(m, &seen, err);
  if (status == 0 && !options->xla_compat) status = check_donors(m, &seen, err);
  base_map_free(&seen);
  return status;
}

/* --- values of buffer type, b(f32[8]) ---
 *
 * Where they may stand, that a custom-call which takes one gives it back, and that each is written at most once.
 * Tuples only pass buffers on, so every buffer leaf is followed to where it was made. One begins by a custom-call to
 * Pin (of a tensor) or CreateBuffer, custom-calls and dynamic-update-slice write it in place, each giving its
 * successor, and a custom-call to Unpin makes it a tensor again. */
static bool has_buffer(const ir_type *t) {
  if (t->kind == IR_TYPE_BUFFER) return true;
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (has_buffer(t->elements[i])) return true;
  return false;
}

/* Nearly no op does: the rest of the work is for those that do. */
static bool touches_buffers(const ir_op *op) {
  if (has_buffer(op->type)) return true;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (has_buffer(ir_operand_type(op, i))) return true;
  return false;
}

/* --- custom-calls --- */

/* How often output_to_operand_aliasing names each place; places by ir_verify_path_key, outputs as operand -1. */
static int count_names(const ir_op *op, base_map *counts, xlac_error *err) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_OUTPUT_TO_OPERAND_ALIASING);
  for (uint32_t i = 0; a && i < a->v.aliasing->n; i++) {
    const ir_alias *alias = &a->v.aliasing->v[i];
    uint64_t keys[2] = {ir_verify_path_key(alias->operand, alias->index), ir_verify_path_key(-1, alias->output)};
    for (uint32_t k = 0; k < 2; k++) {
      uint64_t times = 0;
      base_map_get(counts, keys[k], &times);
      if (!base_map_set(counts, keys[k], times + 1)) return base_oom(err, "a table of aliases");
    }
  }
  return 0;
}

/* `key` is that of the path to t, which has *leaf leaves before it. */
static int check_buffer_leaves(const ir_op *op, int64_t operand, const ir_type *t, uint64_t key, uint32_t *leaf,
                               const base_map *counts, xlac_error *err) {
  for (uint32_t i = 0; i < t->n_elements; i++)
    TRY(check_buffer_leaves(op, operand, t->elements[i], ir_verify_path_step(key, i), leaf, counts, err));
  if (ir_is_tuple(t)) return 0;
  uint64_t times = 0;
  uint32_t at = (*leaf)++;
  if (t->kind != IR_TYPE_BUFFER || (base_map_get(counts, key, &times) && times == 1)) return 0;
  char where[32] = "its result";
  if (operand >= 0) snprintf(where, sizeof where, "operand %lld", (long long)operand);
  int status =
      ir_verify_fail(op, XLAC_E_VERIFY_ALIAS, err,
                     "has a buffer in %s (leaf %u) that output_to_operand_aliasing names %llu times; expected once",
                     where, at, (unsigned long long)times);
  return base_hint(err, status, "a buffer that a custom-call takes is one that it gives, and the other way round");
}

/* Operand -1 stands for the result. */
static int check_named_buffers(const ir_op *op, base_map *counts, xlac_error *err) {
  TRY(count_names(op, counts, err));
  for (int64_t i = -1; i < (int64_t)op->n_operands; i++) {
    const ir_type *t = i < 0 ? op->type : ir_operand_type(op, (uint32_t)i);
    uint32_t leaf = 0;
    TRY(check_buffer_leaves(op, i, t, ir_verify_path_start(i), &leaf, counts, err));
  }
  return 0;
}

static int check_passed_buffers(const ir_op *op, xlac_error *err) {
  assert(op->opcode == IR_OP_CUSTOM_CALL);
  base_map counts;
  base_map_init(&counts, op->parent->module->alloc);
  int status = check_named_buffers(op, &counts, err);
  base_map_free(&counts);
  return status;
}

/* One message for all three targets, with what was found. */
static int fail_pin(const ir_op *op, const char *expected, xlac_error *err) {
  return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err, "%s has %u operands, the first %s, and gives %s; expected %s",
                        ir_get_str(op, IR_ATTR_CUSTOM_CALL_TARGET), op->n_operands,
                        op->n_operands ? IR_SHOW(ir_operand_type(op, 0)) : "none", IR_SHOW(op->type), expected);
}

/* b(f32[8]) of f32[8], dynamic dimensions aside. */
static bool is_buffer_of(const ir_type *buffer, const ir_type *t) {
  assert(buffer && t);
  return buffer->kind == IR_TYPE_BUFFER && ir_is_tensor(t) && ir_compatible(buffer->inner, t);
}

/* Any other target passes. */
int ir_verify_pins(const ir_op *op, xlac_error *err) {
  assert(op->opcode == IR_OP_CUSTOM_CALL);
  const char *target = ir_get_str(op, IR_ATTR_CUSTOM_CALL_TARGET);
  const ir_attr *a = ir_attr_find(op, IR_ATTR_OUTPUT_TO_OPERAND_ALIASING);
  bool one = op->n_operands == 1 && a && a->v.aliasing->n == 1;
  if (strcmp(target, "CreateBuffer") == 0 && (op->n_operands != 0 || op->type->kind != IR_TYPE_BUFFER))
    return fail_pin(op, "no operand and a buffer", err);
  if (strcmp(target, "Pin") == 0 && !(one && is_buffer_of(op->type, ir_operand_type(op, 0))))
    return fail_pin(op, "a tensor, aliased with a buffer of it", err);
  if (strcmp(target, "Unpin") == 0 && !(one && is_buffer_of(ir_operand_type(op, 0), op->type)))
    return fail_pin(op, "a buffer, aliased with a tensor of it", err);
  return 0;
}

static bool starts_or_ends_buffer(const ir_op *op) {
  const char *target = ir_get_str(op, IR_ATTR_CUSTOM_CALL_TARGET);
  return strcmp(target, "CreateBuffer") == 0 || strcmp(target, "Pin") == 0 || strcmp(target, "Unpin") == 0;
}

/* --- where buffers may stand --- */

/* XLA's annotation of a computation that runs on a stream of its own. */
static bool streams(const ir_op *op) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_FRONTEND_ATTRIBUTES);
  for (uint32_t i = 0; a && i < a->v.dict->n; i++)
    if (strcmp(a->v.dict->v[i].key->s, "_xla_stream_annotation") == 0) return true;
  return false;
}

/* Opcodes that take or give buffers; all others have none. */
static int check_place(const ir_op *op, const ir_verify_options *options, xlac_error *err) {
  switch (op->opcode) {
    case IR_OP_CUSTOM_CALL:
      return starts_or_ends_buffer(op) ? 0 : check_passed_buffers(op, err);
    case IR_OP_WHILE:
    case IR_OP_TUPLE:
    case IR_OP_GET_TUPLE_ELEMENT:
    case IR_OP_ASYNC_START:
    case IR_OP_ASYNC_UPDATE:
    case IR_OP_ASYNC_DONE:
    case IR_OP_DYNAMIC_UPDATE_SLICE: /* of which inference lets only operand 0 and the result be buffers */
      return 0;
    case IR_OP_PARAMETER:
      if (op->parent != op->parent->module->entry || options->xla_compat) return 0;
      break;
    case IR_OP_CALL:
      if (streams(op)) return 0;
      break;
    default:
      break;
  }
  return base_hint(
      err,
      ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err, "takes or gives a buffer (%s), which it can't",
                     IR_SHOW(op->type)),
      "buffers are made by Pin and CreateBuffer, changed by custom-calls and dynamic-update-slice, and end by Unpin");
}

/* --- one writer --- */

typedef struct buffer_state {
  base_arena *arena;
  uint32_t **origins;    /* by op id: the number of each leaf's buffer, or NULL */
  const ir_op **writers; /* by buffer number */
  uint8_t *is_body;      /* by computation id: of a while */
  uint32_t n_buffers, capacity;
} buffer_state;

/* A loop writes to what its body gives back. */
static bool is_writer(const buffer_state *s, const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_TUPLE:
      return s->is_body[op->parent->id] && ir_root(op->parent) == op;
    case IR_OP_CUSTOM_CALL:
    case IR_OP_FUSION:
    case IR_OP_CALL:
    case IR_OP_ASYNC_START:
    case IR_OP_WHILE:
    case IR_OP_CONDITIONAL:
    case IR_OP_DYNAMIC_UPDATE_SLICE:
      return true;
    default:
      return false;
  }
}

/* `at` counts leaves, as in the origins of the operand. */
static int note_writes(buffer_state *s, const ir_op *op, const ir_type *t, const uint32_t *origins, uint32_t *at,
                       xlac_error *err) {
  assert(s->writers && origins);
  for (uint32_t i = 0; i < t->n_elements; i++) TRY(note_writes(s, op, t->elements[i], origins, at, err));
  if (ir_is_tuple(t)) return 0;
  uint32_t number = origins[(*at)++];
  if (t->kind != IR_TYPE_BUFFER) return 0;
  const ir_op **writer = &s->writers[number];
  if (*writer && *writer != op)
    return ir_verify_fail(op, XLAC_E_VERIFY_ALIAS, err,
                          "writes to a buffer that %s writes to; a buffer is written once", (*writer)->name->s);
  *writer = op;
  return 0;
}

/* The place of an element's first leaf among all leaves of the tuple. */
static uint32_t leaves_before(const ir_type *t, uint32_t element) {
  assert(ir_is_tuple(t) && element <= t->n_elements);
  uint32_t n = 0;
  for (uint32_t i = 0; i < element; i++) n += ir_type_leaves(t->elements[i]);
  return n;
}

/* Leaves of a tuple op are its operands' leaves; those of get-tuple-element a part of its operand's. */
static void pass_origins(buffer_state *s, const ir_op *op, uint32_t *origins) {
  uint32_t at = 0;
  for (uint32_t i = 0; op->opcode == IR_OP_TUPLE && i < op->n_operands; i++) {
    uint32_t n = ir_type_leaves(ir_operand_type(op, i));
    const uint32_t *from = s->origins[ir_operand(op, i)->id];
    for (uint32_t k = 0; from && k < n; k++) origins[at + k] = from[k];
    at += n;
  }
  if (op->opcode != IR_OP_GET_TUPLE_ELEMENT) return;
  const ir_type *whole = ir_operand_type(op, 0);
  const uint32_t *from = s->origins[ir_operand(op, 0)->id];
  assert(from);
  from += leaves_before(whole, (uint32_t)ir_get_int(op, IR_ATTR_INDEX, 0));
  for (uint32_t k = 0; k < ir_type_leaves(op->type); k++) origins[k] = from[k];
}

/* Numbers of buffers grow with each op that makes one; doubling keeps that linear. */
static bool grow_buffers(buffer_state *s, uint32_t more) {
  assert(s->n_buffers <= s->capacity);
  if (s->n_buffers + more <= s->capacity) return true;
  uint32_t capacity = (s->n_buffers + more) * 2;
  const ir_op **writers = base_arena_alloc(s->arena, capacity * sizeof *writers);
  if (!writers) return false;
  memset((void *)writers, 0, capacity * sizeof *writers);
  if (s->n_buffers) memcpy((void *)writers, (const void *)s->writers, s->n_buffers * sizeof *writers);
  s->writers = writers;
  s->capacity = capacity;
  return true;
}

/* Every leaf gets a fresh number first; leaves that are passed on are then given their origin's. */
static int set_origins(buffer_state *s, const ir_op *op, xlac_error *err) {
  uint32_t n = ir_type_leaves(op->type);
  if (!has_buffer(op->type)) return 0;
  uint32_t *origins = base_arena_alloc(s->arena, n * sizeof *origins);
  if (!origins || !grow_buffers(s, n)) return base_oom(err, "a table of buffers");
  for (uint32_t i = 0; i < n; i++) origins[i] = s->n_buffers++;
  pass_origins(s, op, origins);
  s->origins[op->id] = origins;
  return 0;
}

/* Ops come in post-order, so the origins of operands are known. */
static int follow_buffers(buffer_state *s, const ir_op *op, const ir_verify_options *options, xlac_error *err) {
  if (!touches_buffers(op)) return 0;
  TRY(check_place(op, options, err));
  for (uint32_t i = 0; is_writer(s, op) && i < op->n_operands; i++) {
    const uint32_t *origins = s->origins[ir_operand(op, i)->id];
    uint32_t at = 0;
    if (origins) TRY(note_writes(s, op, ir_operand_type(op, i), origins, &at, err));
  }
  return set_origins(s, op, err);
}

/* Each computation by itself: a buffer parameter counts as made there. */
static int follow_in_module(buffer_state *s, const ir_module *m, const ir_verify_options *options, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, m) {
    uint32_t n = 0;
    ir_op **ops = ir_post_order(c, s->arena, &n);
    if (!ops && c->n_ops) return base_oom(err, "an order of ops");
    for (uint32_t i = 0; i < n; i++) TRY(follow_buffers(s, ops[i], options, err));
  }
  return 0;
}

/* The whole analysis is skipped where there are none, which is nearly always. */
static bool has_any_buffer(const ir_module *m) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      if (has_buffer(op->type)) return true;
    }
  }
  return false;
}

/* Zeroed: no op has origins yet. */
static int buffer_tables(buffer_state *s, const ir_module *m, xlac_error *err) {
  s->origins = base_arena_zalloc(s->arena, ((size_t)m->n_ids + 1) * sizeof *s->origins);
  s->is_body = base_arena_zalloc(s->arena, (size_t)m->n_computation_ids + 1);
  if (!s->origins || !s->is_body) return base_oom(err, "a table of buffers");
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      if (op->opcode == IR_OP_WHILE) s->is_body[op->called[1]->id] = 1;
    }
  }
  return 0;
}

int ir_verify_buffers(const ir_module *m, const ir_verify_options *options, xlac_error *err) {
  assert(m && options);
  if (!has_any_buffer(m)) return 0;
  base_arena arena;
  base_arena_init(&arena, m->alloc);
  buffer_state s = {.arena = &arena};
  int status = buffer_tables(&s, m, err);
  if (status == 0) status = follow_in_module(&s, m, options, err);
  base_arena_free(&arena);
  return status;
}
