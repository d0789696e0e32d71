/* Attributes of ops: which are allowed, and the value of each kind; and text_parse_attr, which sets one attribute of
 * an op that is there already.
 *
 * Which attributes an opcode takes, and of which kind each is, comes from ir/ops.def and ir/attrs/attrs.def: a new
 * attribute of a kind that exists needs nothing here. Values pile up on r->attrs, called computations on r->comps
 * and control predecessors on r->ops, above the marks of text_attr_scope; text_make_op takes them from there. */
#include "read.h"

#include <stdio.h>

/* Every op may have these. */
static const uint16_t common_attrs[] = {IR_ATTR_SHARDING,       IR_ATTR_FRONTEND_ATTRIBUTES,  IR_ATTR_STATISTICS,
                                        IR_ATTR_METADATA,       IR_ATTR_CONTROL_PREDECESSORS, IR_ATTR_ORIGIN,
                                        IR_ATTR_BACKEND_CONFIG, IR_ATTR_PARAMETER_REPLICATION};
enum { N_COMMON = sizeof common_attrs / sizeof *common_attrs };

/* --- which are allowed --- */

static bool is_common(unsigned key) {
  for (size_t i = 0; i < N_COMMON; i++)
    if (common_attrs[i] == key) return true;
  return false;
}

/* The attributes of conditional depend on its first operand. A conditional on a pred has true_computation and
 * false_computation, or branch_computations of two; one on an index has branch_computations alone. XLA's parser
 * decides by the operand's type, and so does this. */
static bool fits_conditional(const text_attr_scope *s, unsigned key) {
  if (s->opcode != IR_OP_CONDITIONAL) return true;
  bool of_pred = key == IR_ATTR_TRUE_COMPUTATION || key == IR_ATTR_FALSE_COMPUTATION;
  return s->pred ? key != IR_ATTR_BRANCH_COMPUTATIONS : !of_pred;
}

/* Sugar such as "add-start" takes the attributes of both add and async-start. Updates and dones may repeat those of
 * their start, unless reading is strict: XLA refuses that. */
static bool is_own(const text_reader *r, const text_attr_scope *s, unsigned key) {
  if (s->sugar && key == IR_ATTR_ASYNC_THREAD) return true;
  if (s->sugar == TEXT_SUGAR_START && key == IR_ATTR_OUTPUT_TO_OPERAND_ALIASING) return true;
  if (s->sugar > TEXT_SUGAR_START && r->strict) return false;
  if (key == IR_ATTR_RESULT_ACCURACY && ir_opcode_has(s->opcode, IR_HAS_ACCURACY)) return true;
  return ir_opcode_takes(s->opcode, (ir_attr_key)key, NULL) && fits_conditional(s, key);
}

/* Whether an op of this opcode may have the attribute. */
bool text_takes_attr(const text_reader *r, const text_attr_scope *s, unsigned key) {
  assert(key < IR_ATTR_COUNT && s->opcode > IR_OP_INVALID && s->opcode < IR_OP_COUNT);
  return is_common(key) || is_own(r, s, key);
}

/* The names of all attributes the op may have, as far as there is room. */
static int refuse_attr(text_reader *r, const text_attr_scope *s, const char *at, const base_istr *name) {
  char allowed[240] = "";
  for (unsigned key = 1; key < IR_ATTR_COUNT; key++)
    if (is_own(r, s, key)) text_append_word(allowed, sizeof allowed, ir_attr_table[key].text);
  for (size_t i = 0; i < N_COMMON; i++) text_append_word(allowed, sizeof allowed, ir_attr_table[common_attrs[i]].text);
  static const char *const parts[] = {"", "-start", "-update", "-done"};
  int status = text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "%s%s has no attribute '%s'", ir_opcode_text(s->opcode),
                         parts[s->sugar], name->s);
  return base_hint(r->err, status, "allowed are %s", allowed);
}

/* Attributes that XLA reads and forgets. */
static bool is_forgotten(const text_attr_scope *s, const base_istr *name) {
  bool reduces =
      s->opcode == IR_OP_ALL_REDUCE || s->opcode == IR_OP_ALL_REDUCE_START || s->opcode == IR_OP_REDUCE_SCATTER;
  if (reduces && strcmp(name->s, "mode") == 0) return true;
  return s->opcode == IR_OP_RAGGED_ALL_TO_ALL && strcmp(name->s, "dimensions") == 0;
}

/* A list of integers or a single word. */
static int skip_forgotten(text_reader *r) {
  const ir_ints *ints;
  if (*r->lx.p == '{') return text_read_int_list(r, &ints);
  const char *e = text_name_end(r->lx.p);
  if (!text_is(*r->lx.p, TEXT_ALPHA)) return text_expected(r, XLAC_E_BAD_ATTRIBUTE, "a word");
  r->lx.p = e;
  text_skip(&r->lx);
  return 0;
}

/* "key=" in one piece: XLA's lexer takes the '=' along with the name, so that no blank may stand between. */
int text_read_key(text_reader *r, const char **at, base_slice *out) {
  const char *p = r->lx.p, *e = text_name_end(p);
  if (!text_is(*p, TEXT_ALPHA) || *e != '=')
    return text_expected(r, XLAC_E_BAD_ATTRIBUTE, "an attribute, name=value without blanks");
  *at = p;
  *out = (base_slice){p, (size_t)(e - p)};
  r->lx.p = e + 1;
  text_skip(&r->lx);
  return 0;
}

/* slice_sizes is two attributes under one name: gather's is a list, collective-permute's a list of lists. */
static int read_attr(text_reader *r, text_attr_scope *s) {
  const char *at;
  base_slice word;
  TRY(text_read_key(r, &at, &word));
  text_symbol *y = text_symbol_of(r, word.p, word.n);
  if (!y) return text_no_memory(r);
  text_classify(y);
  if (is_forgotten(s, y->name)) return skip_forgotten(r);
  unsigned key = y->attr;
  if (key == IR_ATTR_SLICE_SIZES && s->opcode != IR_OP_GATHER) key = IR_ATTR_PERMUTE_SLICE_SIZES;
  if (!is_common(key) && (key == IR_ATTR_NONE || !is_own(r, s, key))) return refuse_attr(r, s, at, y->name);
  if (s->seen[key / 64] >> (key % 64) & 1)
    return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "attribute '%s' is given twice", y->name->s);
  s->seen[key / 64] |= UINT64_C(1) << (key % 64);
  ir_attr a = ir_attr_make((ir_attr_key)key);
  TRY(text_read_value(r, s, &a));
  assert(a.key == IR_ATTR_NONE || a.key == key);
  if (a.key == IR_ATTR_NONE) return 0;
  return BASE_VEC_PUSH(r->alloc, &r->attrs, a) ? 0 : text_no_memory(r);
}

/* The attributes that follow the operands, each after a comma. */
int text_read_attrs(text_reader *r, text_attr_scope *s) {
  while (text_eat(&r->lx, ',')) TRY(read_attr(r, s));
  return 0;
}

/* An attribute may stand once. */
static bool was_seen(const text_attr_scope *s, unsigned key) {
  return s->seen[key / 64] >> (key % 64) & 1;
}

/* Required by ops.def; and for a conditional those that its first operand asks for. */
int text_check_required(text_reader *r, const text_attr_scope *s, const char *at) {
  const ir_attr_spec *spec = ir_opcode_info(s->opcode)->attrs;
  if (s->sugar > TEXT_SUGAR_START) return 0;
  for (; spec && spec->key; spec++)
    if (spec->flags & IR_REQUIRED && !was_seen(s, spec->key))
      return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "%s needs the attribute '%s'", ir_opcode_text(s->opcode),
                       ir_attr_table[spec->key].text);
  if (s->opcode != IR_OP_CONDITIONAL) return 0;
  unsigned first = s->pred ? IR_ATTR_TRUE_COMPUTATION : IR_ATTR_BRANCH_COMPUTATIONS;
  unsigned missing = !was_seen(s, first)                                  ? first
                     : s->pred && !was_seen(s, IR_ATTR_FALSE_COMPUTATION) ? IR_ATTR_FALSE_COMPUTATION
                                                                          : 0;
  if (!missing) return 0;
  return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "a conditional on %s needs the attribute '%s'",
                   s->pred ? "a pred" : "an index", ir_attr_table[missing].text);
}

/* --- words --- */

/* Unknown words are refused by listing the known ones. `of` is whose words they are. */
int text_read_word(text_reader *r, const char *const *words, const char *of, int64_t *out) {
  const char *p = r->lx.p, *e = text_name_end(p);
  size_t n = (size_t)(e - p);
  if (!text_is(*p, TEXT_ALPHA)) return text_expected(r, XLAC_E_BAD_ATTRIBUTE, "a word");
  *out = ir_word_number(words, p, n);
  if (*out < 0) {
    int status = text_fail(r, p, XLAC_E_BAD_ATTRIBUTE, "'%.*s' is not a value of '%s'", (int)(n < 60 ? n : 60), p, of);
    return base_hint(r->err, status, "one of %s", ir_words_text(words, (char[320]){0}, 320));
  }
  r->lx.p = e;
  text_skip(&r->lx);
  return 0;
}

/*   {high,default} */
static int read_words(text_reader *r, ir_attr_key key, unsigned opcode, const ir_ints **out) {
  uint32_t first = r->ints.n;
  TRY(text_want(r, '{', "before a list of words"));
  if (*r->lx.p != '}') {
    do {
      int64_t word;
      TRY(text_read_word(r, ir_attr_words(opcode, key), ir_attr_table[key].text, &word));
      if (!BASE_VEC_PUSH(r->alloc, &r->ints, word)) return text_no_memory(r);
    } while (text_eat(&r->lx, ','));
  }
  TRY(text_want(r, '}', "after a list of words"));
  *out = ir_ints_make(r->m, r->ints.n - first, r->ints.items + first);
  r->ints.n = first;
  return *out ? 0 : text_no_memory(r);
}

/* --- computations and ops --- */

/* A computation's name, or its body in place. A name must be that of a computation that stands before this one: HLO
 * text has no forward references, which is why no recursion can be written. */
static int read_called(text_reader *r, ir_computation **out) {
  const char *at = r->lx.p;
  if (*at == '{' && r->no_bodies) return text_expected(r, XLAC_E_BAD_ATTRIBUTE, "a computation's name");
  if (*at == '{') return text_read_body(r, "_", 1, at, out);
  text_symbol *y;
  TRY(text_read_name(r, "a computation's name", &y));
  if (y->comp) return *out = y->comp, 0;
  int status = text_fail(r, at, XLAC_E_UNKNOWN_NAME, "no computation '%s' has been defined", y->name->s);
  return base_hint(r->err, status, "computations are defined before they are used, so none can call itself");
}

/* Puts c at place `slot` of the op's called computations. Attributes come in any order ("body=..., condition=..."),
 * so that a place before it may still be empty (NULL). */
static int put_called(text_reader *r, const text_attr_scope *s, uint32_t slot, ir_computation *c) {
  assert(c && r->comps.n >= s->first_called);
  while (r->comps.n <= s->first_called + slot)
    if (!BASE_VEC_PUSH(r->alloc, &r->comps, NULL)) return text_no_memory(r);
  r->comps.items[s->first_called + slot] = c;
  return 0;
}

/*   {%a, %b} */
static int read_called_list(text_reader *r, const text_attr_scope *s) {
  uint32_t n = 0;
  TRY(text_want(r, '{', "before a list of computations"));
  if (*r->lx.p != '}') {
    do {
      ir_computation *c;
      TRY(read_called(r, &c));
      TRY(put_called(r, s, n++, c));
    } while (text_eat(&r->lx, ','));
  }
  return text_want(r, '}', "after a list of computations");
}

/* Where two attributes name one computation each, the second in the order of ir_op.called is body, scatter or
 * false_computation. A custom-call's to_apply takes the place of called_computations read before it. */
static int read_called_attr(text_reader *r, const text_attr_scope *s, unsigned key) {
  ir_computation *c;
  if (key == IR_ATTR_BRANCH_COMPUTATIONS || key == IR_ATTR_CALLED_COMPUTATIONS) return read_called_list(r, s);
  TRY(read_called(r, &c));
  if (s->opcode == IR_OP_CUSTOM_CALL) r->comps.n = s->first_called;
  bool second = key == IR_ATTR_BODY || key == IR_ATTR_SCATTER || key == IR_ATTR_FALSE_COMPUTATION;
  return put_called(r, s, second, c);
}

/* {a, b}: pushed on r->ops, each once. The stamp tells which ops this list has had, without a set. */
static int read_predecessors(text_reader *r) {
  uint32_t stamp = ++r->stamp;
  assert(stamp != 0);
  TRY(text_want(r, '{', "before a list of ops"));
  do {
    const char *at = r->lx.p;
    text_symbol *y;
    TRY(text_read_name(r, "an op's name", &y));
    ir_op *op = text_op_named(r, y);
    if (!op)
      return text_fail(r, at, XLAC_E_UNKNOWN_NAME, "no op '%s' has been defined in this computation", y->name->s);
    if (y->stamp == stamp) continue;
    y->stamp = stamp;
    if (!BASE_VEC_PUSH(r->alloc, &r->ops, op)) return text_no_memory(r);
  } while (text_eat(&r->lx, ','));
  return text_want(r, '}', "after a list of ops");
}

/* --- values --- */

/*   {true,false} */
static int read_bools(text_reader *r, const ir_ints **out) {
  uint32_t first = r->ints.n;
  TRY(text_want(r, '{', "before a list of true and false"));
  if (*r->lx.p != '}') {
    do {
      bool v;
      TRY(text_read_bool(r, &v));
      TRY(text_push_int(r, v));
    } while (text_eat(&r->lx, ','));
  }
  TRY(text_want(r, '}', "after a list of true and false"));
  *out = text_make_ints(r, first);
  return *out ? 0 : text_no_memory(r);
}

/* {{0,1},{1,2}}: source_target_pairs. */
static int read_int_pairs(text_reader *r, const ir_int_lists **out) {
  const char *at = r->lx.p;
  TRY(text_read_int_lists(r, out));
  for (uint32_t i = 0; i < (*out)->n; i++)
    if ((*out)->v[i]->n != 2)
      return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "entry %u has %u integers; each is a pair", i, (*out)->v[i]->n);
  return 0;
}

/* {f32[2]{0}, f32[]}: operand_layout_constraints. */
static int read_types(text_reader *r, const ir_types **out) {
  uint32_t first = r->types.n;
  TRY(text_want(r, '{', "before a list of shapes"));
  if (*r->lx.p != '}') {
    do {
      const ir_type *t;
      TRY(text_read_type(r, &t));
      if (!BASE_VEC_PUSH(r->alloc, &r->types, t)) return text_no_memory(r);
    } while (text_eat(&r->lx, ','));
  }
  TRY(text_want(r, '}', "after a list of shapes"));
  assert(r->types.n >= first);
  uint32_t n = r->types.n - first;
  ir_types *types = base_arena_alloc(&r->m->arena, sizeof *types + n * sizeof types->v[0]);
  if (!types) return text_no_memory(r);
  types->n = n;
  if (n) memcpy((void *)types->v, r->types.items + first, n * sizeof types->v[0]);
  r->types.n = first;
  *out = types;
  return 0;
}

/* A quoted string or a JSON object; a string that is such an object is kept as one. An empty string is not a config.
 * XLA prints a JSON object without quotes and everything else quoted; `raw` says which of the two it will be. */
static int read_config(text_reader *r, ir_attr *a) {
  ir_config_text *c = BASE_NEW(&r->m->arena, ir_config_text);
  if (!c) return text_no_memory(r);
  a->v.config = c;
  if (*r->lx.p == '{') {
    c->raw = true;
    return text_read_braces(r, &c->text);
  }
  TRY(text_read_string(r, &c->text));
  if (c->text->n == 0) a->key = IR_ATTR_NONE;
  text_lexer inside = {.p = c->text->s, .text = c->text->s, .end = c->text->s + c->text->n};
  c->raw = c->text->s[0] == '{' && text_braces_end(&inside, inside.p) == inside.end;
  return 0;
}

/* Braces kept as they are; empty ones say nothing. */
static int read_verbatim(text_reader *r, ir_attr *a) {
  TRY(text_read_braces(r, &a->v.str));
  if (a->v.str->n == 2) a->key = IR_ATTR_NONE;
  return 0;
}

/* XLA keeps these attributes (epsilon of batch-norm, for one) as 32-bit floats: rounded here, so that they print the
 * same. */
static int read_float32(text_reader *r, double *out) {
  const char *at = r->lx.p;
  TRY(text_read_double(r, out));
  if (__builtin_isfinite(*out) && !__builtin_isfinite((float)*out))
    return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "a number beyond 32-bit floats");
  *out = (double)(float)*out;
  return 0;
}

/* Where the value belongs elsewhere than in the op's list of attributes (called computations, control predecessors,
 * an empty string), a->key becomes IR_ATTR_NONE and the caller adds nothing. */
int text_read_value(text_reader *r, text_attr_scope *s, ir_attr *a) {
  ir_attr_key key = (ir_attr_key)a->key;
  switch ((ir_attr_kind)a->kind) {
    case IR_KIND_BOOL:
      return text_read_bool(r, &a->v.b);
    case IR_KIND_INT:
      return text_read_int(r, &a->v.i);
    case IR_KIND_FLOAT:
      return read_float32(r, &a->v.f);
    case IR_KIND_STRING:
      return text_read_string(r, &a->v.str);
    case IR_KIND_NAME:
      return text_read_word(r, ir_attr_words(s->opcode, key), ir_attr_table[key].text, &a->v.i);
    case IR_KIND_NAMES:
      return read_words(r, key, s->opcode, &a->v.ints);
    case IR_KIND_INTS:
      return text_read_int_list(r, &a->v.ints);
    case IR_KIND_BOOLS:
      return read_bools(r, &a->v.ints);
    case IR_KIND_INT_LISTS:
      return text_read_int_lists(r, &a->v.lists);
    case IR_KIND_PAIRS:
      return read_int_pairs(r, &a->v.lists);
    case IR_KIND_TYPE:
      return text_read_type(r, &a->v.type);
    case IR_KIND_TYPES:
      return read_types(r, &a->v.types);
    case IR_KIND_WINDOW:
      return text_read_window(r, &a->v.window);
    case IR_KIND_CONV_DIMS:
      return text_read_conv_dims(r, &a->v.conv);
    case IR_KIND_PADDING:
      return text_read_padding(r, &a->v.padding);
    case IR_KIND_SLICE:
      return text_read_slice(r, &a->v.slice);
    case IR_KIND_GROUPS:
      return text_read_groups(r, &a->v.groups);
    case IR_KIND_SHARDING:
      return text_read_sharding(r, &a->v.sharding);
    case IR_KIND_METADATA:
      return text_read_metadata(r, &a->v.metadata);
    case IR_KIND_CONFIG:
      return read_config(r, a);
    case IR_KIND_DICT:
      return text_read_dict(r, &a->v.dict);
    case IR_KIND_STATISTICS:
      return text_read_statistics(r, &a->v.dict);
    case IR_KIND_ACCURACY:
      return text_read_accuracy(r, &a->v.accuracy);
    case IR_KIND_ORIGIN:
      return key == IR_ATTR_ORIGIN ? text_read_origin(r, &a->v.str) : read_verbatim(r, a);
    case IR_KIND_ALIASING:
      return text_read_aliasing(r, &a->v.aliasing);
    case IR_KIND_LITERAL:
      return text_read_typed_literal(r, &a->v.literal);
    case IR_KIND_DOMAIN:
      return text_read_domain(r, &a->v.domain);
    case IR_KIND_CALLED:
      a->key = IR_ATTR_NONE;
      return read_called_attr(r, s, key);
    case IR_KIND_OPS:
      a->key = IR_ATTR_NONE;
      return read_predecessors(r);
    case IR_KIND_NONE:
      break;
  }
  return text_fail(r, r->lx.p, XLAC_E_BAD_ATTRIBUTE, "'%s' can't be given here", ir_attr_table[key].text);
}

/* ---- Setting one attribute of an op from text, for editors: text_parse_attr. */

/* --- names of the module and the computation --- */

/* Names mean what they mean in the finished module here: there is no order of definition to keep to. */
static int know_computations(text_reader *r) {
  IR_FOR_COMPUTATIONS(c, r->m) {
    text_symbol *y = text_symbol_of(r, c->name->s, c->name->n);
    if (!y) return text_no_memory(r);
    y->comp = c;
  }
  return 0;
}

/* For the text of one attribute: names of the op's computation, as if they had been read. */
static int know_ops(text_reader *r, const ir_computation *c) {
  IR_FOR_OPS(op, c) {
    text_symbol *y = text_symbol_of(r, op->name->s, op->name->n);
    if (!y) return text_no_memory(r);
    y->op = op;
    y->scope = r->scope;
  }
  return 0;
}

/* --- cycles --- */

/* Pushes what has not been seen yet. r->pointers is the stack of a depth-first search; both searches below leave it
 * empty. */
static int push_new(text_reader *r, base_map *seen, const void *p) {
  uint64_t known;
  if (base_map_get(seen, base_key(p), &known)) return 0;
  if (!base_map_set(seen, base_key(p), 1) || !BASE_VEC_PUSH(r->alloc, &r->pointers, p)) return text_no_memory(r);
  return 0;
}

/* Whether `from` calls `wanted`, through any number of calls. */
static int calls_computation(text_reader *r, base_map *seen, const ir_computation *from, const ir_computation *wanted,
                             bool *found) {
  TRY(push_new(r, seen, from));
  while (r->pointers.n) {
    const ir_computation *c = r->pointers.items[--r->pointers.n];
    *found = *found || c == wanted;
    IR_FOR_OPS(op, c) {
      for (uint32_t i = 0; i < op->n_called; i++) TRY(push_new(r, seen, op->called[i]));
    }
  }
  return 0;
}

/* Whether `from` comes after `wanted`, through operands and control predecessors. */
static int follows_op(text_reader *r, base_map *seen, const ir_op *from, const ir_op *wanted, bool *found) {
  TRY(push_new(r, seen, from));
  while (r->pointers.n) {
    const ir_op *op = r->pointers.items[--r->pointers.n];
    *found = *found || op == wanted;
    for (uint32_t i = 0; i < op->n_operands; i++) TRY(push_new(r, seen, op->operands[i].op));
    IR_FOR_CONTROL_PREDS(e, op) TRY(push_new(r, seen, e->pred));
  }
  return 0;
}

/* Text can't express recursion, but an edit could: a body that reaches the op's own computation is refused. */
static int check_new_calls(text_reader *r, base_map *seen, const ir_op *op, const text_attr_scope *s) {
  for (uint32_t i = s->first_called; i < r->comps.n; i++) {
    const ir_computation *c = r->comps.items[i];
    bool found = false;
    if (!c) continue;
    base_map_clear(seen);
    TRY(calls_computation(r, seen, c, op->parent, &found));
    if (found)
      return text_fail(r, r->lx.text, XLAC_E_EDIT, "'%s' would call itself through '%s'", op->parent->name->s,
                       c->name->s);
  }
  return 0;
}

/* Control dependencies that are set on an op must leave an order in which all can run. */
static int check_preds(text_reader *r, base_map *seen, const ir_op *op) {
  bool found = false;
  for (uint32_t i = 0; i < r->ops.n; i++) TRY(follows_op(r, seen, r->ops.items[i], op, &found));
  if (!found) return 0;
  return text_fail(r, r->lx.text, XLAC_E_EDIT, "'%s' would have to run before itself", op->name->s);
}

/* An edit must leave the module acyclic, since everything that walks it relies on that. */
static int check_cycles(text_reader *r, const ir_op *op, const text_attr_scope *s) {
  base_map seen;
  base_map_init(&seen, r->alloc);
  int status = check_new_calls(r, &seen, op, s);
  base_map_clear(&seen);
  if (status == 0) status = check_preds(r, &seen, op);
  base_map_free(&seen);
  return status;
}

/* --- setting --- */

/* Replaces the list by a new one. `list`: the attribute gives all called computations; else only those that it
 * names, and the op's others stay. */
static int set_called(text_reader *r, ir_op *op, const text_attr_scope *s, bool list) {
  assert(r->comps.n >= s->first_called);
  uint32_t n = r->comps.n - s->first_called, total = list || n > op->n_called ? n : op->n_called;
  ir_computation **called = BASE_ARRAY(&r->m->arena, ir_computation *, (size_t)total + 1);
  if (!called) return text_no_memory(r);
  for (uint32_t i = 0; i < total; i++) {
    ir_computation *given = i < n ? r->comps.items[s->first_called + i] : NULL;
    called[i] = given || i >= op->n_called ? given : op->called[i];
    if (!called[i]) return text_fail(r, r->lx.text, XLAC_E_EDIT, "set the computation before this one first");
  }
  ir_set_all_called(op, total, called);
  return 0;
}

/* Keys whose value is a list of computations; others name one. */
static bool is_called_list(unsigned key) {
  return key == IR_ATTR_BRANCH_COMPUTATIONS || key == IR_ATTR_CALLED_COMPUTATIONS;
}

/* Nothing of the op changes before everything has been read and checked. */
static int set_from_text(text_reader *r, ir_op *op, unsigned key) {
  text_attr_scope s = {.opcode = op->opcode, .type = op->type};
  ir_attr a = ir_attr_make((ir_attr_key)key);
  s.pred = op->n_operands > 0 && ir_operand_type(op, 0)->dtype == XLAC_PRED;
  r->op_name = op->name;
  r->no_bodies = true;
  if (!text_takes_attr(r, &s, key))
    return text_fail(r, r->lx.text, XLAC_E_BAD_ATTRIBUTE, "%s has no attribute '%s'", ir_opcode_text(op->opcode),
                     ir_attr_table[key].text);
  if (a.kind == IR_KIND_CALLED) TRY(know_computations(r));
  if (a.kind == IR_KIND_OPS) TRY(know_ops(r, op->parent));
  unsigned kind = a.kind;
  TRY(text_read_value(r, &s, &a));
  if (r->lx.p != r->lx.end) return text_expected(r, XLAC_E_SYNTAX, "nothing more");
  TRY(check_cycles(r, op, &s));
  if (kind == IR_KIND_CALLED) return set_called(r, op, &s, is_called_list(key));
  if (kind == IR_KIND_OPS) return ir_set_control_preds(op, r->ops.n, r->ops.items) ? 0 : text_no_memory(r);
  if (a.key != IR_ATTR_NONE) return ir_attr_set(op, a) ? 0 : text_no_memory(r);
  ir_attr_remove(op, (ir_attr_key)key); /* an empty value is none */
  return 0;
}

/* One attribute from text, for tools that set attributes by name; the op is changed only if this succeeds. */
int text_parse_attr(ir_op *op, const char *key, size_t key_n, const char *text, size_t n, xlac_error *err) {
  assert(op->parent);
  ir_module *m = op->parent->module;
  unsigned attr = ir_attr_from_text(key, key_n);
  text_reader r;
  if (attr == IR_ATTR_SLICE_SIZES && op->opcode != IR_OP_GATHER) attr = IR_ATTR_PERMUTE_SLICE_SIZES;
  if (attr == IR_ATTR_NONE)
    return base_fail(err, XLAC_E_BAD_ATTRIBUTE, "there is no attribute '%.*s'", (int)(key_n < 60 ? key_n : 60), key);
  int status = text_reader_open(&r, m, m->alloc, text, n, NULL, err);
  if (status == 0) status = set_from_text(&r, op, attr);
  text_reader_close(&r);
  return status;
}
