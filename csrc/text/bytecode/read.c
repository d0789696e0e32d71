/* Portable artifacts of StableHLO to modules: the entry point, the module of the IR section, its functions and its
 * other symbols.
 *
 * VHLO's module is builtin's; functions are vhlo.func_v1, whose name, type and attributes are VHLO attributes.
 * Everything else that may stand in a module belongs to another dialect, such as sdy.mesh, and becomes a symbol. */
#include "../../ir/check/check.h"
#include "bytecode.h"
#include "ir.h"

/* Never reads more than four bytes. */
bool text_is_bytecode(const void *bytes, size_t n) {
  return n >= 4 && memcmp(bytes, "ML\xEFR", 4) == 0;
}

/* The IR comes last: it refers to everything else. */
static int bc_read_all(bc_reader *r) {
  TRY(bc_read_container(r));
  return bc_read_ir(r);
}

/* Errors are collected in a record of our own: readers of text inside of attributes may fill it, too. */
int text_parse_bytecode(ir_module **out, const void *bytes, size_t n, const bytecode_parse_options *options,
                        xlac_error *err) {
  base_alloc alloc = options && options->alloc.fn ? options->alloc : base_alloc_libc;
  xlac_error own = {0};
  ir_module *m;
  *out = NULL;
  TRY(ir_module_create(&m, "", alloc, err));
  m->form = IR_FORM_MLIR;
  base_arena_foresee(&m->arena, n < SIZE_MAX / 16 ? n * 16 : SIZE_MAX);
  bc_reader r = {.m = m, .err = &own, .base = bytes, .end = (const uint8_t *)bytes + n};
  r.max_depth = text_depth_limit(options ? options->max_depth : 0);
  base_arena_init(&r.scratch, alloc);
  int status = bc_read_all(&r);
  base_arena_free(&r.scratch);
  if (status != 0) {
    ir_module_destroy(m);
    if (err) *err = own;
    return status;
  }
  *out = m;
  return 0;
}

/* ---- The module of the IR section, its functions and its other symbols. */

/* --- functions --- */

/* The attributes of vhlo.func_v1; `args` and `results` may be NULL. */
typedef struct bc_func {
  const ir_mattr *name, *type, *visibility, *args, *results;
} bc_func;

/* NULL, or empty, where nothing is said. */
static int bc_check_visibility(const bc_cursor *c, const ir_mattr *a) {
  static const char *const words[] = {"", "public", "private", "nested"};
  if (!a) return 0;
  if (a->kind != IR_M_STRING) return BC_BAD(c, "a visibility that is not a string");
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (a->str->n == strlen(words[i]) && strcmp(a->str->s, words[i]) == 0) return 0;
  return BC_BAD(c, "a visibility '%.40s'; expected public, private or nested", a->str->s);
}

/* A module's own attributes are its name and visibility; all others belong to a dialect. */
static int bc_check_module_attrs(const bc_cursor *c, const ir_mdict *d) {
  for (uint32_t i = 0; d && i < d->n; i++) {
    const base_istr *key = d->v[i].key;
    if (strchr(key->s, '.') || strcmp(key->s, "sym_visibility") == 0 || strcmp(key->s, "sym_name") == 0) continue;
    return BC_BAD(c, "the module's attribute '%.60s' lacks the prefix of a dialect", key->s);
  }
  return bc_check_visibility(c, ir_mdict_get(d, "sym_visibility"));
}

/* The row in ops.def has them in this order. */
static int bc_func_attrs(const bc_cursor *c, const bc_op *op, bc_func *f) {
  assert(op->own.values && op->name->n_attrs >= 5);
  const ir_mattr *const *v = op->own.values; /* arg_attrs function_type res_attrs sym_name sym_visibility */
  *f = (bc_func){.args = v[0], .type = v[1], .results = v[2], .name = v[3], .visibility = v[4]};
  if (!f->name || f->name->kind != IR_M_STRING) return BC_BAD(c, "a function lacks a name");
  if (!f->type || f->type->kind != IR_M_TYPE || f->type->type->kind != IR_TYPE_FUNCTION)
    return BC_BAD(c, "function %.60s lacks a function type", f->name->str->s);
  return bc_check_visibility(c, f->visibility);
}

/* A list of dictionaries, one for each of n things; or an empty one. */
static int bc_dict_list(const bc_cursor *c, const ir_mattr *a, uint32_t n, bool *any) {
  *any = a && a->kind == IR_M_ARRAY && a->v.list->n;
  if (a && a->kind != IR_M_ARRAY) return BC_BAD(c, "expected a list of dictionaries");
  if (*any && a->v.list->n != n) return BC_BAD(c, "%u dictionaries for %u things", a->v.list->n, n);
  for (uint32_t i = 0; *any && i < n; i++)
    if (a->v.list->v[i]->kind != IR_M_DICT) return BC_BAD(c, "expected a dictionary");
  return 0;
}

/* An empty dictionary says nothing. */
static const ir_mdict *bc_dict_or_null(const ir_mattr *a) {
  assert(a->kind == IR_M_DICT);
  return a->v.dict->n ? a->v.dict : NULL;
}

enum { BC_MAX_DECLARED = 64 }; /* arguments of declarations a byte of the file: one type may stand for many of them */

/* A declaration has no block; the arguments it has in text come from its type. */
static int bc_declare(bc_ir *ir, const bc_cursor *c, const ir_type *type, ir_computation *to) {
  assert(type->kind == IR_TYPE_FUNCTION && to->n_params == 0);
  bc_reader *r = ir->r;
  ir_module *m = r->m;
  const base_istr *name = ir_intern(m, "arg", 3);
  to->function_type = type;
  r->n_declared += type->n_inputs;
  if (r->n_declared / BC_MAX_DECLARED > (uint64_t)(r->end - r->base))
    return BC_BAD(c, "declarations of %llu arguments in all", (unsigned long long)r->n_declared);
  for (uint32_t i = 0; i < type->n_inputs; i++) {
    ir_op *p = name ? ir_op_new(to, IR_OP_PARAMETER, type->elements[i], name, 0, 0) : NULL;
    if (!p || !ir_set_parameter(p, i)) return bc_no_memory(r);
  }
  return 0;
}

/* The type is written out in VHLO, and must be that of the body. */
static int bc_func_signature(bc_ir *ir, const bc_cursor *c, const bc_func *f, ir_computation *to) {
  const ir_type *type = f->type->type;
  uint32_t n_results = type->n_elements - type->n_inputs;
  bool has_args = false, has_results = false;
  TRY(bc_dict_list(c, f->args, type->n_inputs, &has_args));
  TRY(bc_dict_list(c, f->results, n_results, &has_results));
  if (has_results) {
    const ir_mdict **d = BASE_ARRAY(&ir->r->m->arena, const ir_mdict *, n_results);
    if (!d) return bc_no_memory(ir->r);
    for (uint32_t i = 0; i < n_results; i++) d[i] = bc_dict_or_null(f->results->v.list->v[i]);
    to->result_mlir = d;
  }
  if (to->declaration) TRY(bc_declare(ir, c, type, to));
  bool same = to->n_params == type->n_inputs && (to->declaration || to->n_results == n_results);
  for (uint32_t i = 0; same && i < to->n_params; i++) same = to->params[i]->type == type->elements[i];
  for (uint32_t i = 0; same && i < to->n_results; i++)
    same = to->results[i].op->types[to->results[i].index] == type->elements[type->n_inputs + i];
  if (!same) return BC_BAD(c, "the body of function %.60s is not of its type", f->name->str->s);
  for (uint32_t i = 0; has_args && i < to->n_params; i++) to->params[i]->mlir = bc_dict_or_null(f->args->v.list->v[i]);
  return 0;
}

/* The function's region becomes the computation itself. */
static int bc_function(bc_ir *ir, bc_cursor *c, const bc_op *op) {
  assert(op->name->row);
  bc_reader *r = ir->r;
  bc_func f;
  bc_cursor at = {r, op->at, c->end};
  TRY(bc_func_attrs(&at, op, &f));
  if (op->n_regions != 1 || op->n_results || op->n_operands) return BC_BAD(&at, "a function without one region");
  if (f.name->str->n == 0) return BC_BAD(&at, "a function without a name");
  ir_computation *to = ir_computation_new(r->m, f.name->str->s, f.name->str->n);
  if (!to) return bc_no_memory(r);
  to->kind = IR_FUNCTION;
  to->loc = op->loc;
  to->mlir = op->own.discardable;
  if (f.visibility && f.visibility->str->n &&
      !(to->mlir = ir_mdict_with(r->m, to->mlir, "sym_visibility", f.visibility)))
    return bc_no_memory(r);
  TRY(bc_op_regions(ir, c, op, NULL, &to));
  return bc_func_signature(ir, &at, &f, to);
}

/* --- the module --- */

/* An op of another dialect at module level, in a computation of its own. */
static int bc_symbol_op(bc_ir *ir, bc_cursor *c, const bc_op *head) {
  ir_computation *to = ir_computation_new(ir->r->m, "", 0);
  ir_op *op;
  if (!to) return bc_no_memory(ir->r);
  to->kind = IR_SYMBOL;
  if (head->n_results || head->n_operands) return BC_BAD(c, "an op of the module with results or operands");
  TRY(bc_add_op(ir, c, head, to, &op));
  const ir_mattr *name = ir_mattr_of(op, "sym_name");
  if (name && name->kind == IR_M_STRING) to->name = name->str;
  to->loc = op->loc;
  return 0;
}

/* `n` ops: functions, or symbols of dialects other than VHLO. */
static int bc_module_ops(bc_ir *ir, bc_cursor *c, uint64_t n) {
  for (uint64_t i = 0; i < n; i++) {
    bc_op head;
    TRY(bc_op_head(ir, c, &head));
    bc_cursor at = {ir->r, head.at, c->end};
    const bc_row *row = head.name->row;
    if (row && strcmp(row->name, "func_v1") == 0) {
      TRY(bc_function(ir, c, &head));
    } else if (row || head.name->opcode == IR_OP_INVALID) {
      return BC_BAD(&at, "op %.*s can't stand in a module", head.name->name.n < 60 ? (int)head.name->name.n : 60,
                    head.name->name.p);
    } else {
      TRY(bc_symbol_op(ir, c, &head));
    }
  }
  return 0;
}

/* From version 2 on an isolated region lies in a section of its own. */
static int bc_module_body(bc_ir *ir, bc_cursor *c) {
  bc_cursor body = *c;
  uint64_t n_blocks = 0, n_values = 0, n_ops = 0;
  bool args = false;
  if (ir->r->container >= BC_LAZY_REGIONS) {
    uint8_t id = 0;
    base_slice data = {0};
    TRY(bc_section(c, &id, &data));
    if (id != BC_S_IR) return BC_BAD(c, "expected an IR section, found section %u", id);
    body = bc_cursor_on(ir->r, data);
  }
  TRY(bc_varint(&body, &n_blocks));
  if (n_blocks != 1) return BC_BAD(&body, "a module of %llu blocks", (unsigned long long)n_blocks);
  TRY(bc_varint(&body, &n_values));
  TRY(bc_flagged(&body, &n_ops, &args));
  if (args || n_values) return BC_BAD(&body, "a module whose block has values");
  TRY(bc_module_ops(ir, &body, n_ops));
  if (body.p != body.end) return BC_BAD(&body, "the module goes on after its last op");
  return 0;
}

/* Its name and visibility are properties, each of which may be absent. */
static int bc_module_name(bc_ir *ir, bc_cursor *c, uint8_t mask, const ir_mattr **name) {
  bc_reader *r = ir->r;
  uint64_t index = 0;
  const ir_mattr *visibility = NULL;
  *name = NULL;
  if (r->container < BC_PROPERTIES) {
    *name = ir_mdict_get(r->m->mlir, "sym_name");
    if (*name && !(r->m->mlir = ir_mdict_with(r->m, r->m->mlir, "sym_name", NULL))) return bc_no_memory(r);
    return 0;
  }
  if (!(mask & BC_OP_PROPERTIES)) return 0;
  TRY(bc_varint(c, &index));
  if (index >= r->n_properties) return BC_BAD(c, "properties %llu of %u", (unsigned long long)index, r->n_properties);
  bc_cursor p = bc_cursor_on(r, r->properties[index].data);
  TRY(bc_optional_attr(&p, name));
  TRY(bc_optional_attr(&p, &visibility));
  if (visibility && !(r->m->mlir = ir_mdict_with(r->m, r->m->mlir, "sym_visibility", visibility)))
    return bc_no_memory(r);
  return 0;
}

/* The one op of the IR section. */
static int bc_module(bc_ir *ir, bc_cursor *c) {
  bc_reader *r = ir->r;
  uint64_t index = 0, n_regions = 0;
  uint8_t mask = 0;
  bool isolated = false;
  const ir_mattr *name;
  bc_cursor at = *c;
  TRY(bc_varint(c, &index));
  bool is_module = index < r->n_op_names && r->dialects[r->op_names[index].dialect].known == BC_BUILTIN &&
                   base_slice_is(r->op_names[index].name, "module");
  if (!is_module) return BC_BAD(&at, "expected builtin.module");
  TRY(bc_byte(c, &mask));
  if (mask & ~(BC_OP_ATTRS | BC_OP_PROPERTIES | BC_OP_REGIONS) || !(mask & BC_OP_REGIONS))
    return BC_BAD(&at, "a module with results, operands or successors, or without a region");
  TRY(bc_attr_of(c, IR_M_LOC, "a location", &r->m->loc));
  if (mask & BC_OP_ATTRS) TRY(bc_attr_dict(c, &r->m->mlir));
  TRY(bc_module_name(ir, c, mask, &name));
  TRY(bc_check_module_attrs(&at, r->m->mlir));
  TRY(bc_flagged(c, &n_regions, &isolated));
  if (n_regions != 1 || !isolated) return BC_BAD(&at, "a module without one region");
  if (name && name->kind != IR_M_STRING) return BC_BAD(&at, "a module's name is not a string");
  if (name) {
    r->m->named = true;
    r->m->name = name->str;
  }
  return bc_module_body(ir, c);
}

/* @main, else the first function. */
static void bc_choose_entry(ir_module *m) {
  ir_computation *first = NULL;
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_FUNCTION) continue;
    if (strcmp(c->name->s, "main") == 0) {
      m->entry = c;
      return;
    }
    if (!first) first = c;
  }
  if (first) m->entry = first;
}

/* The op list of the IR section holds one op, the module. */
int bc_read_ir(bc_reader *r) {
  bc_cursor c = bc_cursor_on(r, r->sections[BC_S_IR]);
  bc_ir ir = {.r = r};
  uint64_t n_ops = 0;
  bool args = false;
  ir_mloc unknown = {.kind = IR_LOC_UNKNOWN};
  r->unknown_loc = ir_m_loc(r->m, &unknown);
  r->nameless = ir_intern(r->m, "", 0);
  if (!r->unknown_loc || !r->nameless) return bc_no_memory(r);
  TRY(bc_flagged(&c, &n_ops, &args));
  if (n_ops != 1 || args) return BC_BAD(&c, "expected one module, found %llu ops", (unsigned long long)n_ops);
  int status = bc_module(&ir, &c);
  BASE_VEC_FREE(r->m->alloc, &ir.values);
  TRY(status);
  bc_choose_entry(r->m);
  return ir_check_symbols(r->m, r->err);
}
