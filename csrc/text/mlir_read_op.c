/* Statements: values in scope, operands, the generic form, and ops coming into being. */
#include "mlir_read.h"

/* --- values in scope --- */

int mlir_bind(mlir_reader *r, const base_istr *name, ir_op *op, uint32_t index, uint32_t count) {
  uint64_t old;
  bool hides = base_map_get(&r->by_name, base_key(name), &old) && old;
  mlir_name n = {name, op, index, count, op->opcode == IR_OP_PARAMETER, hides ? (int64_t)old - 1 : -1};
  if (!BASE_VEC_PUSH(r->alloc, &r->names, n)) return mlir_no_memory(r);
  return base_map_set(&r->by_name, base_key(name), r->names.n) ? 0 : mlir_no_memory(r);
}

void mlir_unbind(mlir_reader *r, uint32_t mark) {
  while (r->names.n > mark) {
    mlir_name *n = &r->names.items[--r->names.n];
    /* The key is there already, so setting it can't fail. */
    bool set = base_map_set(&r->by_name, base_key(n->name), (uint64_t)(n->hidden + 1));
    assert(set);
    (void)set;
  }
}

/* "%name", interned with nothing before it. */
static int mlir_read_value_name(mlir_reader *r, const base_istr **out) {
  if (*r->lx.p != '%') return mlir_expected(r, "a value such as %0");
  const char *p = r->lx.p + 1, *e = p;
  while (text_is(*e, TEXT_NAME) || *e == '$') e++;
  if (e == p) return mlir_expected(r, "a value such as %0");
  if (e[-1] == '-') e--; /* "%0->" */
  *out = ir_intern(r->m, p, (size_t)(e - p));
  r->lx.p = e;
  text_skip(&r->lx);
  return *out ? 0 : mlir_no_memory(r);
}

static const mlir_name *mlir_find_value(const mlir_reader *r, const base_istr *name) {
  uint64_t at;
  if (!base_map_get(&r->by_name, base_key(name), &at) || at == 0 || at <= r->isolated_at) return NULL;
  return &r->names.items[at - 1];
}

int mlir_read_operand(mlir_reader *r) {
  const char *at = r->lx.p;
  const base_istr *name;
  TRY(mlir_read_value_name(r, &name));
  int64_t index = 0;
  if (*r->lx.p == '#' && text_is(r->lx.p[1], TEXT_DIGIT)) {
    r->lx.p++;
    TRY(mlir_read_int(r, &index));
  }
  const mlir_name *n = mlir_find_value(r, name);
  if (!n) return mlir_fail(r, at, XLAC_E_UNKNOWN_NAME, "use of undeclared SSA value name '%%%s'", name->s);
  if (index < 0 || index >= n->count)
    return mlir_fail(r, at, XLAC_E_UNKNOWN_NAME, "reference to invalid result number: %%%s has %u", name->s, n->count);
  ir_value v = {n->first, n->index + (uint32_t)index};
  return BASE_VEC_PUSH(r->alloc, &r->values, v) ? 0 : mlir_no_memory(r);
}

/* --- names of opcodes --- */

static bool mlir_has_dialect(const base_istr *name, const char *dialect) {
  size_t n = strlen(dialect);
  return name->n > n && memcmp(name->s, dialect, n) == 0 && name->s[n] == '.';
}

/* Ops of dialects that the specification's own tests lean on are kept as they are. */
static bool mlir_is_kept(const base_istr *name) {
  return mlir_has_dialect(name, "sdy") || mlir_has_dialect(name, "mhlo") || mlir_has_dialect(name, "shape") ||
         mlir_has_dialect(name, "tensor") || mlir_has_dialect(name, "arith") || mlir_has_dialect(name, "quant") ||
         mlir_has_dialect(name, "mpmd") || mlir_has_dialect(name, "interpreter") || mlir_has_dialect(name, "check");
}

static int mlir_find_opcode(mlir_reader *r, const char *at, const base_istr *name, mlir_op_state *s) {
  uint64_t known = 0;
  if (!base_map_get(&r->opcodes, base_key(name), &known)) {
    known = ir_opcode_from_mlir(name->s, name->n);
    if (!base_map_set(&r->opcodes, base_key(name), known)) return mlir_no_memory(r);
  }
  s->opcode = (ir_opcode)known;
  if (known) return 0;
  bool ours = mlir_has_dialect(name, "stablehlo") || mlir_has_dialect(name, "chlo") || mlir_has_dialect(name, "func");
  if (ours) {
    int status =
        mlir_fail(r, at, XLAC_E_UNKNOWN_OPCODE,
                  "unregistered operation '%s' found in dialect that does not allow unknown operations", name->s);
    return base_hint(r->err, status, "see docs/ops.md for the ops that there are");
  }
  if (!r->allow_unregistered && !mlir_is_kept(name)) {
    int status =
        mlir_fail(r, at, XLAC_E_UNKNOWN_OPCODE, "the op '%s' is of a dialect that xlac does not know", name->s);
    return base_hint(r->err, status, "parse with allow_unregistered=True to keep such ops as they are");
  }
  s->opcode = IR_OP_UNREGISTERED;
  s->unregistered = name;
  return 0;
}

/* --- checks of counts and inherent attributes --- */

static bool mlir_count_fits(int8_t wanted, uint32_t n) {
  return wanted == IR_VARIADIC || (uint32_t)wanted == n;
}

static const char *mlir_op_name(const mlir_op_state *s) {
  return s->opcode == IR_OP_UNREGISTERED ? s->unregistered->s : ir_op_table[s->opcode].mlir->name;
}

static int mlir_check_counts(mlir_reader *r, const mlir_op_state *s, uint32_t n_regions) {
  const ir_mlir_info *info = ir_op_table[s->opcode].mlir;
  if (!info) return 0;
  static const char *const words[] = {"operand", "result", "region"};
  int8_t wanted[] = {info->operands, info->results, info->regions};
  uint32_t found[] = {s->n_values, s->n_results, n_regions};
  for (int i = 0; i < 3; i++)
    if (!mlir_count_fits(wanted[i], found[i]))
      return mlir_fail(r, s->at, XLAC_E_VERIFY_OPERANDS, "'%s' op requires %d %s%s, but found %u", info->name,
                       wanted[i], words[i], wanted[i] == 1 ? "" : "s", found[i]);
  return 0;
}

static bool mlir_is_int_of(const ir_mattr *a, base_dtype t) {
  return a->kind == IR_M_INTEGER && a->type->kind == IR_TYPE_ELEMENT && a->type->dtype == t;
}

static bool mlir_list_of(const ir_mattr *a, ir_mattr_kind kind) {
  if (a->kind != IR_M_ARRAY) return false;
  for (uint32_t i = 0; i < a->v.list->n; i++)
    if (a->v.list->v[i]->kind != kind) return false;
  return true;
}

static bool mlir_dense_array_of(const ir_mattr *a, base_dtype t) {
  return a->kind == IR_M_DENSE_ARRAY && a->type->dtype == t;
}

static bool mlir_dense_of_i64(const ir_mattr *a) {
  return a->kind == IR_M_DENSE && a->type->dtype == XLAC_S64 && !a->type->text;
}

static bool mlir_named(const ir_mattr *a, ir_mattr_kind kind, const char *name) {
  return a->kind == kind && strcmp(a->name, name) == 0;
}

static bool mlir_constraint_holds(const ir_mattr_spec *spec, const ir_mattr *a) {
  switch ((ir_mattr_constraint)spec->constraint) {
    case IR_MC_I64:
      return mlir_is_int_of(a, XLAC_S64);
    case IR_MC_I32:
      return mlir_is_int_of(a, XLAC_S32);
    case IR_MC_F32:
      return a->kind == IR_M_FLOAT && a->type->dtype == XLAC_F32;
    case IR_MC_BOOL:
      return a->kind == IR_M_BOOL;
    case IR_MC_UNIT:
      return a->kind == IR_M_UNIT;
    case IR_MC_STRING:
      return a->kind == IR_M_STRING;
    case IR_MC_SYMBOL:
      return a->kind == IR_M_SYMBOL && a->v.list->n == 1;
    case IR_MC_SYMBOLS:
      return mlir_list_of(a, IR_M_SYMBOL);
    case IR_MC_I64S:
      return mlir_dense_array_of(a, XLAC_S64);
    case IR_MC_BOOLS:
      return mlir_dense_array_of(a, XLAC_PRED);
    case IR_MC_DENSE_I64:
      return mlir_dense_of_i64(a);
    case IR_MC_ELEMENTS:
      return a->kind == IR_M_DENSE || a->kind == IR_M_RESOURCE;
    case IR_MC_DICT:
      return a->kind == IR_M_DICT;
    case IR_MC_ARRAY:
      return a->kind == IR_M_ARRAY;
    case IR_MC_STRING_OR_DICT:
      return a->kind == IR_M_STRING || a->kind == IR_M_DICT;
    case IR_MC_TYPED:
      return a->type != NULL || a->kind == IR_M_BOOL;
    case IR_MC_ENUM:
      return mlir_named(a, IR_M_ENUM, spec->sub);
    case IR_MC_PRECISIONS:
      if (!mlir_list_of(a, IR_M_ENUM)) return false;
      for (uint32_t i = 0; i < a->v.list->n; i++)
        if (strcmp(a->v.list->v[i]->name, spec->sub) != 0) return false;
      return true;
    case IR_MC_STRUCT:
      return mlir_named(a, IR_M_STRUCT, spec->sub);
    case IR_MC_GROUPS:
      return mlir_dense_of_i64(a) || mlir_named(a, IR_M_STRUCT, "replica_group_mesh_axes");
    case IR_MC_LAYOUTS:
      return mlir_list_of(a, IR_M_DENSE);
    case IR_MC_TILINGS:
      return mlir_list_of(a, IR_M_ARRAY);
    case IR_MC_ALIASES:
      return mlir_list_of(a, IR_M_STRUCT);
  }
  return false;
}

static const char *mlir_constraint_text(const ir_mattr_spec *spec) {
  static const char *const texts[] = {
      [IR_MC_I64] = "64-bit signless integer attribute",
      [IR_MC_I32] = "32-bit signless integer attribute",
      [IR_MC_F32] = "32-bit float attribute",
      [IR_MC_BOOL] = "bool attribute",
      [IR_MC_UNIT] = "unit attribute",
      [IR_MC_STRING] = "string attribute",
      [IR_MC_SYMBOL] = "flat symbol reference attribute",
      [IR_MC_SYMBOLS] = "flat symbol ref array attribute",
      [IR_MC_I64S] = "i64 dense array attribute",
      [IR_MC_BOOLS] = "i1 dense array attribute",
      [IR_MC_DENSE_I64] = "64-bit signless integer elements attribute",
      [IR_MC_ELEMENTS] = "constant vector/tensor attribute",
      [IR_MC_DICT] = "dictionary of named attribute values",
      [IR_MC_ARRAY] = "array attribute",
      [IR_MC_STRING_OR_DICT] = "string attribute or dictionary of named attribute values",
      [IR_MC_TYPED] = "typed attribute",
      [IR_MC_ENUM] = "enum attribute",
      [IR_MC_PRECISIONS] = "Precision Config attribute",
      [IR_MC_STRUCT] = "structured attribute",
      [IR_MC_GROUPS] = "replica groups attribute",
      [IR_MC_LAYOUTS] = "Array of layout (1D tensor of index type) attributes",
      [IR_MC_TILINGS] = "Array of tiling attributes",
      [IR_MC_ALIASES] = "Aliasing attribute for outputs and operands of CustomCall"};
  return texts[spec->constraint];
}

static int mlir_check_attr(mlir_reader *r, const mlir_op_state *s, const ir_mattr_spec *spec, const ir_mattr *a) {
  if (!a && !(spec->flags & IR_REQUIRED)) return 0;
  const char *op = mlir_op_name(s);
  if (!a) return mlir_fail(r, s->at, XLAC_E_BAD_ATTRIBUTE, "'%s' op requires attribute '%s'", op, spec->name);
  bool holds = mlir_constraint_holds(spec, a);
  const char *more = "";
  if (holds && a->kind == IR_M_INTEGER && (spec->flags & IR_NON_NEGATIVE))
    holds = a->v.i >= 0, more = " whose value is non-negative";
  if (holds && a->kind == IR_M_INTEGER && (spec->flags & IR_POSITIVE))
    holds = a->v.i > 0, more = " whose value is positive";
  if (holds) return 0;
  return mlir_fail(r, s->at, XLAC_E_BAD_ATTRIBUTE, "'%s' op attribute '%s' failed to satisfy constraint: %s%s", op,
                   spec->name, mlir_constraint_text(spec), more);
}

static int mlir_check_attrs(mlir_reader *r, const mlir_op_state *s, const ir_mdict *d) {
  const ir_mlir_info *info = ir_op_table[s->opcode].mlir;
  if (!info) return 0;
  for (const ir_mattr_spec *spec = info->attrs; spec && spec->name; spec++)
    TRY(mlir_check_attr(r, s, spec, ir_mdict_get(d, spec->name)));
  return 0;
}

/* Older texts give array<i64> attributes as dense<> tensors of rank 1. */
static int mlir_modernise(mlir_reader *r, const mlir_op_state *s) {
  for (uint32_t i = s->entries; i < r->entries.n; i++) {
    ir_mentry *e = &r->entries.items[i];
    const ir_mattr_spec *spec = ir_mattr_spec_find(s->opcode, e->key->s, e->key->n);
    if (!spec || (spec->constraint != IR_MC_I64S && spec->constraint != IR_MC_BOOLS)) continue;
    if (e->value->kind != IR_M_DENSE || e->value->type->rank != 1) continue;
    uint32_t n;
    const int64_t *v = ir_m_ints(e->value, &r->m->arena, &n);
    if (!v) continue;
    e->value = spec->constraint == IR_MC_I64S ? ir_m_i64s(r->m, n, v) : ir_m_bools(r->m, n, v);
    if (!e->value) return mlir_no_memory(r);
  }
  return 0;
}

/* --- making the op --- */

int mlir_check_operand_types(mlir_reader *r, const mlir_op_state *s, uint32_t from, uint32_t n) {
  if (n != s->n_values)
    return mlir_fail(r, s->at, XLAC_E_VERIFY_OPERANDS, "'%s' op has %u operands, but %u operand types", mlir_op_name(s),
                     s->n_values, n);
  for (uint32_t i = 0; i < n; i++) {
    ir_value v = r->values.items[s->values + i];
    const ir_type *have = v.op->types[v.index], *want = r->types.items[from + i];
    if (have == want) continue;
    base_text text;
    base_text_init(&text, r->alloc);
    ir_put_type(&text, want, false);
    BASE_PUT(&text, " against ");
    ir_put_type(&text, have, false);
    const char *shown = base_text_cstr(&text);
    int status =
        mlir_fail(r, s->at, XLAC_E_VERIFY_OPERANDS, "use of value '%%%s' expects different type than prior uses: %s",
                  v.op->name->s, shown ? shown : "");
    base_text_free(&text);
    return status;
  }
  return 0;
}

static void mlir_adopt_regions(mlir_reader *r, const mlir_op_state *s, ir_op *op) {
  for (uint32_t i = 0; i < op->n_called; i++) {
    op->called[i] = r->regions.items[s->regions + i];
    op->called[i]->owner = op;
  }
  r->regions.n = s->regions;
}

int mlir_finish_op(mlir_reader *r, mlir_op_state *s, ir_computation *c, ir_op **out) {
  uint32_t n_regions = r->regions.n - s->regions;
  TRY(mlir_check_counts(r, s, n_regions));
  TRY(mlir_modernise(r, s));
  const ir_mdict *d;
  TRY(mlir_take_dict(r, s->entries, &d));
  TRY(mlir_check_attrs(r, s, d));
  if (s->n_results > UINT16_MAX) return mlir_fail(r, s->at, XLAC_E_TOO_LARGE, "an op of %u results", s->n_results);
  const base_istr *name = s->name ? s->name : ir_intern(r->m, "op", 2);
  ir_op *op = name ? ir_op_new_n(c, s->opcode, s->n_results, s->result_types, name, s->n_values, n_regions) : NULL;
  if (!op) return mlir_no_memory(r);
  for (uint32_t i = 0; i < s->n_values; i++) ir_set_operand(op, i, r->values.items[s->values + i]);
  r->values.n = s->values;
  r->types.n = s->types;
  mlir_adopt_regions(r, s, op);
  op->mlir = d;
  op->loc = s->loc;
  op->properties = s->properties;
  if (s->unregistered) op->u.name = s->unregistered;
  text_where(&r->lx, s->at, &op->line, &op->col);
  *out = op;
  return 0;
}

/* --- the generic form --- */

static int mlir_read_operand_list(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_want(r, "("));
  if (!mlir_eat(r, ")")) {
    do TRY(mlir_read_operand(r));
    while (mlir_eat(r, ","));
    TRY(mlir_want(r, ")"));
  }
  s->n_values = r->values.n - s->values;
  return 0;
}

static int mlir_read_region_list(mlir_reader *r, bool isolated) {
  if (!mlir_eat(r, "(")) return 0;
  do TRY(mlir_read_region(r, isolated));
  while (mlir_eat(r, ","));
  return mlir_want(r, ")");
}

static int mlir_read_generic_type(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_want(r, ":"));
  uint32_t from = r->types.n, inputs, results;
  const char *at = r->lx.p;
  if (*at != '(') return mlir_expected(r, "function type");
  TRY(mlir_read_function_type(r, &inputs, &results));
  TRY(mlir_check_operand_types(r, s, from, inputs));
  TRY(mlir_set_results(r, s, results, r->types.items + from + inputs));
  r->types.n = from;
  return 0;
}

static int mlir_read_generic(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_read_operand_list(r, s));
  if (mlir_eat(r, "[")) return mlir_fail(r, s->at, XLAC_E_SYNTAX, "ops with successor blocks are not supported");
  if (mlir_eat(r, "<")) {
    s->properties = true;
    TRY(mlir_read_entries(r));
    TRY(mlir_want(r, ">"));
  }
  TRY(mlir_read_region_list(r, s->opcode == IR_OP_SCAN));
  if (*r->lx.p == '{') TRY(mlir_read_entries(r));
  return mlir_read_generic_type(r, s);
}

/* --- statements --- */

/* The names left of "=": "%a, %b:2 =". Onto the stacks: names as entries with counts in ints. */
typedef struct mlir_result_names {
  uint32_t n, total, ints;
  const base_istr *names[64];
} mlir_result_names;

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

static int mlir_bind_results(mlir_reader *r, const mlir_result_names *names, const mlir_op_state *s, ir_op *op) {
  if (names->n && names->total != op->n_results)
    return mlir_fail(r, s->at, XLAC_E_SYNTAX, "operation defines %u results but was provided %u to bind", op->n_results,
                     names->total);
  uint32_t index = 0;
  for (uint32_t i = 0; i < names->n; i++) {
    uint32_t count = (uint32_t)r->ints.items[names->ints + i];
    const mlir_name *old = mlir_find_value(r, names->names[i]);
    if (old && old->first->parent == op->parent)
      return mlir_fail(r, s->at, XLAC_E_DUPLICATE_NAME, "redefinition of SSA value '%%%s'", names->names[i]->s);
    TRY(mlir_bind(r, names->names[i], op, index, count));
    index += count;
  }
  r->ints.n = names->ints;
  return 0;
}

static bool mlir_is_return(base_slice w) {
  return base_slice_is(w, "return") || base_slice_is(w, "func.return") || base_slice_is(w, "stablehlo.return") ||
         base_slice_is(w, "chlo.return") || base_slice_is(w, "sdy.return") || base_slice_is(w, "mhlo.return");
}

/* What a terminator gives becomes the computation's results. */
static int mlir_end_computation(mlir_reader *r, mlir_op_state *s, ir_computation *c, base_slice name) {
  uint32_t n = s->n_values;
  c->results = BASE_ARRAY(&r->m->arena, ir_value, n + 1u);
  if (!c->results) return mlir_no_memory(r);
  if (n) memcpy(c->results, r->values.items + s->values, n * sizeof *c->results);
  c->n_results = n;
  r->values.n = s->values;
  r->types.n = s->types;
  TRY(mlir_take_dict(r, s->entries, &c->return_mlir));
  c->return_loc = s->loc;
  bool usual =
      base_slice_is(name, "return") || base_slice_is(name, c->kind == IR_FUNCTION ? "func.return" : "stablehlo.return");
  if (!usual && !(c->return_name = ir_intern(r->m, name.p, name.n))) return mlir_no_memory(r);
  return 0;
}

static int mlir_read_pretty_return(mlir_reader *r, mlir_op_state *s) {
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

/* An op at module level that is no function gets a computation of its own. */
static ir_computation *mlir_symbol_computation(mlir_reader *r, const base_istr *name) {
  ir_computation *c = ir_computation_new(r->m, name->s, name->n);
  if (c) c->kind = IR_SYMBOL;
  return c;
}

static int mlir_read_op(mlir_reader *r, mlir_op_state *s, ir_computation *c, bool generic,
                        const mlir_result_names *names) {
  if (!c && !(c = mlir_symbol_computation(r, s->unregistered ? s->unregistered : ir_intern(r->m, "op", 2))))
    return mlir_no_memory(r);
  if (names->n) s->name = names->names[0];
  ir_computation *outer = r->into;
  r->into = c;
  TRY(generic ? mlir_read_generic(r, s) : mlir_read_form(r, s));
  TRY(mlir_read_trailing_loc(r, &s->loc));
  r->into = outer;
  ir_op *op;
  TRY(mlir_finish_op(r, s, c, &op));
  return mlir_bind_results(r, names, s, op);
}

/* The pretty name of an op; words without a dialect are func's. */
static const base_istr *mlir_pretty_name(mlir_reader *r, base_slice w) {
  if (base_slice_is(w, "call")) return ir_intern(r->m, "func.call", 9);
  return ir_intern(r->m, w.p, w.n);
}

int mlir_read_statement(mlir_reader *r, ir_computation *c, bool *ended) {
  mlir_result_names names = {0};
  names.ints = r->ints.n;
  if (*r->lx.p == '%') TRY(mlir_read_result_names(r, &names));
  mlir_op_state s = {
      .at = r->lx.p, .values = r->values.n, .types = r->types.n, .entries = r->entries.n, .regions = r->regions.n};
  bool generic = *r->lx.p == '"';
  const base_istr *name;
  base_slice w = {0};
  if (generic) {
    TRY(mlir_read_string(r, &name));
    w = (base_slice){name->s, name->n};
  } else {
    w = mlir_word(r);
    if (w.n == 0) return mlir_expected(r, "an op");
    mlir_skip_word(r, w);
    if (!(name = mlir_pretty_name(r, w))) return mlir_no_memory(r);
  }
  if (base_slice_is(w, "func.func") || (!generic && base_slice_is(w, "func"))) {
    if (c) return mlir_fail(r, s.at, XLAC_E_SYNTAX, "a function inside a function");
    return generic ? mlir_read_generic_func(r, s.at) : mlir_read_func(r, s.at);
  }
  if (c && mlir_is_return(w)) {
    *ended = true;
    return mlir_read_return(r, &s, c, w, generic);
  }
  TRY(mlir_find_opcode(r, s.at, name, &s));
  return mlir_read_op(r, &s, c, generic, &names);
}
