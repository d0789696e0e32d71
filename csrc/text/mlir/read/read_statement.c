/* Statements: "%a, %b:2 = ...", returns, and which op a name means.
 *
 * What the first word means (opcode, function, terminator, an op of another dialect) is found by a table over the
 * words of this text, in front of the tables of opcodes: a program has few kinds of ops and very many ops. */
#include "../../nearest.h"
#include "read.h"

/* --- names of opcodes --- */

/* Whether the name is "dialect.something". */
static bool mlir_has_dialect(const base_istr *name, const char *dialect) {
  size_t n = strlen(dialect);
  return name->n > n && memcmp(name->s, dialect, n) == 0 && name->s[n] == '.';
}

/* Ops of dialects that the specification's own tests lean on are kept as they are. */
static bool mlir_is_kept(const base_istr *name) {
  return mlir_has_dialect(name, "sdy") || mlir_has_dialect(name, "mhlo") || mlir_has_dialect(name, "shape") ||
         mlir_has_dialect(name, "tensor") || mlir_has_dialect(name, "arith") || mlir_has_dialect(name, "quant") ||
         mlir_has_dialect(name, "mpmd") || mlir_has_dialect(name, "llvm") || mlir_has_dialect(name, "interpreter") ||
         mlir_has_dialect(name, "check") || mlir_has_dialect(name, "cf");
}

/* Terminators of the regions that StableHLO programs have. They are not ops of the IR, but the end of a computation. */
static bool mlir_is_return(base_slice w) {
  return base_slice_is(w, "return") || base_slice_is(w, "func.return") || base_slice_is(w, "stablehlo.return") ||
         base_slice_is(w, "chlo.return") || base_slice_is(w, "sdy.return") || base_slice_is(w, "mhlo.return") ||
         base_slice_is(w, "shape.assuming_yield");
}

/* In the pretty form, words without a dialect are func's. */
static bool mlir_learn_word(mlir_reader *r, mlir_op_word *to, base_slice w, bool generic) {
  bool call = !generic && base_slice_is(w, "call");
  base_slice name = call ? BASE_SLICE("func.call") : w;
  to->text = w;
  to->kind = mlir_is_return(w) ? MLIR_WORD_RETURN : MLIR_WORD_OP;
  if (base_slice_is(w, "func.func") || (!generic && base_slice_is(w, "func"))) to->kind = MLIR_WORD_FUNC;
  to->opcode = (uint16_t)ir_opcode_from_mlir(name.p, name.n);
  to->unregistered = to->opcode ? NULL : ir_intern(r->m, name.p, name.n);
  to->foreign = to->unregistered ? mlir_foreign_find(to->unregistered->s) : NULL;
  return to->opcode || to->unregistered;
}

/* What word w means; NULL when out of memory. In the generic form w is an interned string. The two forms are told
 * apart in the hash, since "func" means a function in one of them only. When the table is full words are looked up
 * anew each time. */
static const mlir_op_word *mlir_find_word(mlir_reader *r, base_slice w, bool generic) {
  uint32_t hash = base_hash(w.p, w.n) * 2 + generic, i = hash % MLIR_OP_WORDS;
  for (; r->op_words[i].kind; i = (i + 1) % MLIR_OP_WORDS) {
    const mlir_op_word *have = &r->op_words[i];
    if (have->hash == hash && have->text.n == w.n && memcmp(have->text.p, w.p, w.n) == 0) return have;
  }
  bool full = r->n_op_words >= MLIR_OP_WORDS / 4 * 3;
  mlir_op_word *to = full ? &r->last_op_word : &r->op_words[i];
  if (!mlir_learn_word(r, to, w, generic)) {
    to->kind = MLIR_WORD_NONE;
    return NULL;
  }
  to->hash = hash;
  r->n_op_words += !full;
  return to;
}

static const char *mlir_name_of(ir_opcode op) {
  return ir_op_table[op].mlir ? ir_op_table[op].mlir->name : NULL;
}

/* The op's name nearest to one that nobody knows: what other systems call so, else one that begins so or is spelt
 * nearly so; NULL for none. */
static const char *nearest_op(const base_istr *name) {
  const char *bare = strchr(name->s, '.');
  ir_opcode meant = bare ? text_opcode_elsewhere(bare + 1, strlen(bare + 1)) : IR_OP_INVALID;
  if (!meant || !mlir_name_of(meant))
    meant = text_nearest_name(name->s, name->n, name->s[name->n - 1] != '.', mlir_name_of);
  return meant ? mlir_name_of(meant) : NULL;
}

/* Ops of StableHLO, CHLO and func must be known ones; ops of other dialects are kept where they may be. */
static int mlir_set_opcode(mlir_reader *r, const mlir_op_word *word, mlir_op_state *s) {
  assert(word->kind != MLIR_WORD_NONE);
  const base_istr *name = word->unregistered;
  s->opcode = (ir_opcode)word->opcode;
  if (s->opcode) return 0;
  bool ours = mlir_has_dialect(name, "stablehlo") || mlir_has_dialect(name, "chlo") || mlir_has_dialect(name, "func");
  bool deprecated = strcmp(name->s, "stablehlo.cross-replica-sum") == 0; /* old bytecode has it; a pass rewrites it */
  if (ours && !deprecated) {
    int status =
        mlir_fail(r, s->at, XLAC_E_UNKNOWN_OPCODE,
                  "unregistered operation '%s' found in dialect that does not allow unknown operations", name->s);
    const char *near = nearest_op(name);
    return near ? base_hint(r->err, status, "did you mean '%s'?", near)
                : base_hint(r->err, status, "see docs/ops.md for the ops that there are");
  }
  if (!r->allow_unregistered && !deprecated && !mlir_is_kept(name)) {
    int status =
        mlir_fail(r, s->at, XLAC_E_UNKNOWN_OPCODE, "the op '%s' is of a dialect that xlac does not know", name->s);
    if (!strchr(name->s, '.') && text_edit_distance(name->s, name->n, "module", 2) < 3)
      return base_hint(r->err, status, "did you mean 'module'?");
    return base_hint(r->err, status, "parse with allow_unregistered=True to keep such ops as they are");
  }
  s->opcode = IR_OP_UNREGISTERED;
  s->unregistered = name;
  s->foreign = word->foreign;
  return 0;
}

/* --- statements --- */

/* The names left of "=": "%a, %b:2 =". Onto the stacks: names as entries with counts in ints. `total` counts
 * results: "%a, %b:2" has two names and three of them. */
typedef struct mlir_result_names {
  const char *at;
  uint32_t n, total, ints;
  const base_istr *names[64];
} mlir_result_names;

/* "%a, %b:2 =", up to the equals sign. */
static int mlir_read_result_names(mlir_reader *r, mlir_result_names *out) {
  out->ints = r->ints.n;
  do {
    if (out->n == 64)
      return mlir_fail(r, r->lx.p, XLAC_E_TOO_LARGE,
                       "more than 64 result names in one statement; use a pack such as %%0:65");
    TRY(mlir_read_value_name(r, &out->names[out->n++]));
    int64_t count = 1;
    if (mlir_eat(r, ":")) TRY(mlir_read_int(r, &count));
    if (count < 1 || count > UINT16_MAX)
      return mlir_fail(r, r->lx.p, XLAC_E_SYNTAX, "expected named operation to have at least 1 result");
    out->total += (uint32_t)count;
    if (!BASE_VEC_PUSH(r->alloc, &r->ints, count)) return mlir_no_memory(r);
  } while (mlir_eat(r, ","));
  return mlir_want(r, "=");
}

/* The statement names all results of its op or none. */
static int mlir_bind_results(mlir_reader *r, const mlir_result_names *names, const mlir_op_state *s, ir_op *op) {
  assert(r->ints.n >= names->ints + names->n);
  if (names->n && names->total != op->n_results)
    return mlir_fail(r, s->at, XLAC_E_SYNTAX, "operation defines %u results but was provided %u to bind", op->n_results,
                     names->total);
  uint32_t index = 0;
  for (uint32_t i = 0; i < names->n; i++) {
    uint32_t count = (uint32_t)r->ints.items[names->ints + i];
    TRY(mlir_bind(r, names->at, names->names[i], op, index, count));
    index += count;
  }
  r->ints.n = names->ints;
  return 0;
}

/* What a terminator gives becomes the computation's results. `return_name` is kept only where it is another than the
 * usual one, so that it prints as it was. */
static int mlir_end_computation(mlir_reader *r, mlir_op_state *s, ir_computation *c, base_slice name) {
  assert(!c->results && r->values.n == s->values + s->n_values);
  uint32_t n = s->n_values;
  c->results = BASE_ARRAY(&r->m->arena, ir_value, n + 1u);
  if (!c->results) return mlir_no_memory(r);
  if (n) memcpy(c->results, r->values.items + s->values, n * sizeof *c->results);
  c->n_results = n;
  r->values.n = s->values;
  r->types.n = s->types;
  TRY(mlir_take_dict(r, s->entries, &c->return_mlir));
  c->return_loc = s->loc;
  text_where(&r->lx, s->at, &c->return_line, &c->return_col);
  bool usual =
      base_slice_is(name, "return") || base_slice_is(name, c->kind == IR_FUNCTION ? "func.return" : "stablehlo.return");
  r->plain_return = base_slice_is(name, "return");
  if (!usual && !(c->return_name = ir_intern(r->m, name.p, name.n))) return mlir_no_memory(r);
  return 0;
}

/* func's and sdy's have their attributes first, the others' after what is returned. */
static int mlir_read_pretty_return(mlir_reader *r, mlir_op_state *s) {
  if (*r->lx.p == '{') TRY(mlir_read_entries(r));
  if (*r->lx.p == '%') {
    do TRY(mlir_read_operand(r));
    while (mlir_eat(r, ","));
  }
  s->n_values = r->values.n - s->values;
  if (*r->lx.p == '{') TRY(mlir_read_entries(r));
  if (!mlir_eat(r, ":")) return s->n_values ? mlir_expected(r, "':' and the types of what is returned") : 0;
  uint32_t from = r->types.n;
  do {
    const ir_type *t;
    TRY(mlir_read_type(r, &t));
    if (!BASE_VEC_PUSH(r->alloc, &r->types, t)) return mlir_no_memory(r);
  } while (mlir_eat(r, ","));
  return mlir_check_operand_types(r, s, from, r->types.n - from);
}

/* Either form of a terminator; makes no op. */
static int mlir_read_return(mlir_reader *r, mlir_op_state *s, ir_computation *c, base_slice name, bool generic) {
  s->opcode = IR_OP_UNREGISTERED;
  s->unregistered = ir_intern(r->m, name.p, name.n);
  if (!s->unregistered) return mlir_no_memory(r);
  if (generic) {
    TRY(mlir_read_operand_list(r, s));
    if (mlir_eat(r, "<")) {
      TRY(mlir_read_entries(r));
      TRY(mlir_want(r, ">"));
    }
    if (*r->lx.p == '{') TRY(mlir_read_entries(r));
    TRY(mlir_read_generic_type(r, s));
  } else {
    TRY(mlir_read_pretty_return(r, s));
  }
  TRY(mlir_read_trailing_loc(r, &s->loc));
  return mlir_end_computation(r, s, c, name);
}

/* An op at module level that is not a function gets a computation of its own. */
static ir_computation *mlir_symbol_computation(mlir_reader *r, const base_istr *name) {
  ir_computation *c = ir_computation_new(r->m, name->s, name->n);
  if (c) c->kind = IR_SYMBOL;
  return c;
}

/* The op is made only after its regions, which go into computations of their own: r->into follows. */
static int mlir_read_op(mlir_reader *r, mlir_op_state *s, ir_computation *c, bool generic,
                        const mlir_result_names *names) {
  if (!c && !(c = mlir_symbol_computation(r, s->unregistered ? s->unregistered : ir_intern(r->m, "op", 2))))
    return mlir_no_memory(r);
  if (names->n) s->name = names->names[0];
  ir_computation *outer = r->into;
  r->into = c;
  TRY(generic ? mlir_read_generic(r, s) : mlir_read_form(r, s));
  TRY(mlir_read_trailing_loc(r, &s->loc));
  if (s->foreign) TRY(mlir_foreign_complete(r, s, s->foreign));
  r->into = outer;
  ir_op *op;
  TRY(mlir_finish_op(r, s, c, &op));
  const ir_mattr *symbol = c->kind == IR_SYMBOL ? ir_mattr_of(op, "sym_name") : NULL;
  if (symbol && symbol->kind == IR_M_STRING) TRY(mlir_check_new_symbol(r, s->at, symbol->str));
  return mlir_bind_results(r, names, s, op);
}

/* `c` NULL: at module level, where only functions and symbols may stand. *ended is set by a terminator. */
int mlir_read_statement(mlir_reader *r, ir_computation *c, bool *ended) {
  mlir_result_names names;
  names.at = r->lx.p;
  names.n = names.total = 0;
  names.ints = r->ints.n;
  if (*r->lx.p == '%') TRY(mlir_read_result_names(r, &names));
  mlir_op_state s = {
      .at = r->lx.p, .values = r->values.n, .types = r->types.n, .entries = r->entries.n, .regions = r->regions.n};
  bool generic = *r->lx.p == '"';
  base_slice w = {0};
  if (generic) {
    const base_istr *name;
    TRY(mlir_read_string(r, &name));
    w = (base_slice){name->s, name->n};
  } else {
    w = mlir_word(r);
    if (w.n == 0) return mlir_expected(r, "an op");
    mlir_skip_word(r, w);
  }
  const mlir_op_word *word = mlir_find_word(r, w, generic);
  if (!word) return mlir_no_memory(r);
  if (word->kind == MLIR_WORD_FUNC) {
    if (c) return mlir_fail(r, s.at, XLAC_E_SYNTAX, "a function inside a function");
    return generic ? mlir_read_generic_func(r, s.at) : mlir_read_func(r, s.at);
  }
  if (c && word->kind == MLIR_WORD_RETURN) {
    *ended = true;
    return mlir_read_return(r, &s, c, w, generic);
  }
  TRY(mlir_set_opcode(r, word, &s));
  return mlir_read_op(r, &s, c, generic, &names);
}
