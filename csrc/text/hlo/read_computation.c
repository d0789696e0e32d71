/* Computations: signature, body, parameters; and the lone instruction that is a module by itself.
 *
 *   %sum (a: f32[], b: f32[]) -> f32[] {
 *     %a = f32[] parameter(0)
 *     ...
 *     ROOT %add = f32[] add(%a, %b)
 *   }, execution_thread="main"
 * A computation's body is also read in place, as in to_apply={...}: text_read_body serves both. */
#include "read.h"

/* --- parameters --- */

/* Numbers must be 0 to n - 1, each once. They may be defined in any order; c->params is by number. Those of this
 * computation are on r->params from `first` on. */
static int collect_params(text_reader *r, ir_computation *c, uint32_t first) {
  assert(r->params.n >= first && c->n_params == 0);
  uint32_t n = r->params.n - first;
  ir_op **params = base_arena_zalloc(&r->m->arena, ((size_t)n + 1) * sizeof *params);
  if (!params) return text_no_memory(r);
  for (uint32_t i = 0; i < n; i++) {
    const text_param *p = &r->params.items[first + i];
    bool repeated = p->number < n && params[p->number];
    if (p->number < n && !repeated) {
      params[p->number] = p->op;
      continue;
    }
    return base_fail_at(r->err, XLAC_E_SYNTAX, p->op->line, p->op->col, p->op->name->s,
                        "parameter %lld %s; the %u parameters are numbered from 0 without gaps", (long long)p->number,
                        repeated ? "is there already" : "is beyond their count", n);
  }
  c->params = params;
  c->n_params = n;
  r->params.n = first;
  return 0;
}

/* The module's list is in the order in which computations end, as XLA's is. */
static void move_to_end(ir_computation *c) {
  ir_module *m = c->module;
  if (m->last == c) return;
  assert(c->next && c->next->prev == c);
  if (c->prev) {
    c->prev->next = c->next;
  } else {
    m->first = c->next;
  }
  c->next->prev = c->prev;
  c->prev = m->last;
  c->next = NULL;
  m->last->next = c;
  m->last = c;
}

/* `root` NULL: the last instruction is the root, as in XLA. */
int text_close_computation(text_reader *r, ir_computation *c, ir_op *root, uint32_t first_param, const char *at) {
  if (!c->last) return text_fail(r, at, XLAC_E_SYNTAX, "a computation needs at least one instruction");
  TRY(collect_params(r, c, first_param));
  move_to_end(c);
  return ir_set_root(c, root ? root : c->last) ? 0 : text_no_memory(r);
}

/* --- bodies --- */

/* Saves and restores the name of the op around it, so that errors after an inline body name the right one. */
int text_read_body(text_reader *r, const char *name, size_t n, const char *at, ir_computation **out) {
  uint32_t outer, first_hidden, first_param = r->params.n;
  const base_istr *outer_op = r->op_name;
  ir_op *root = NULL;
  TRY(text_deeper(r));
  ir_computation *c = ir_computation_new(r->m, name, n);
  if (!c) return text_no_memory(r);
  text_where(&r->lx, at, &c->line, &c->col);
  r->op_name = NULL;
  TRY(text_want(r, '{', "before a computation's instructions"));
  text_scope_open(r, &outer, &first_hidden);
  do TRY(text_read_instruction(r, c, &root));
  while (*r->lx.p != '}');
  TRY(text_close_computation(r, c, root, first_param, at));
  text_scope_close(r, outer, first_hidden);
  text_eat(&r->lx, '}');
  r->op_name = outer_op;
  r->depth--;
  assert(ir_root(c) && c->n_ops > 0);
  *out = c;
  return 0;
}

/*   -> */
static bool eat_arrow_token(text_reader *r) {
  if (r->lx.p[0] != '-' || r->lx.p[1] != '>') return false;
  r->lx.p += 2;
  text_skip(&r->lx);
  return true;
}

/* (x: f32[], y: s32[2]) -> f32[]: the parameters are only read past, the result must be the root's. */
static int read_signature(text_reader *r, const ir_type **result, const char **at) {
  TRY(text_want(r, '(', "before a computation's parameters"));
  if (*r->lx.p != ')') {
    do {
      text_symbol *name;
      const ir_type *t;
      TRY(text_read_name(r, "a parameter's name", &name));
      TRY(text_read_type(r, &t));
    } while (text_eat(&r->lx, ','));
  }
  TRY(text_want(r, ')', "after a computation's parameters"));
  if (!eat_arrow_token(r)) return text_expected(r, XLAC_E_SYNTAX, "'->' and the result's shape");
  *at = r->lx.p;
  return text_read_type(r, result);
}

/* Layouts may differ: ir_compatible compares shapes only. */
static int check_signature(text_reader *r, const ir_computation *c, const ir_type *result, const char *at) {
  const ir_type *t = ir_root(c)->type;
  if (ir_compatible(result, t)) return 0;
  char want[200], got[200];
  return text_fail(r, at, XLAC_E_BAD_SHAPE_TEXT, "computation '%s' is said to give %s, but its root '%s' is %s",
                   c->name->s, ir_type_text(result, want, sizeof want), ir_root(c)->name->s,
                   ir_type_text(t, got, sizeof got));
}

/* }, execution_thread="t" "main" is what no thread at all means, and kept as that. */
static int read_computation_attrs(text_reader *r, ir_computation *c) {
  bool seen = false;
  while (text_eat(&r->lx, ',')) {
    const char *at;
    base_slice key;
    TRY(text_read_key(r, &at, &key));
    if (!base_slice_is(key, "execution_thread") || seen)
      return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "a computation has one attribute, execution_thread, once");
    seen = true;
    TRY(text_read_string(r, &c->execution_thread));
    if (strcmp(c->execution_thread->s, "main") == 0) c->execution_thread = NULL;
  }
  return 0;
}

/* The keyword, unless it is a name: "ENTRY = ..." and "ENTRY: ..." are not keywords. */
static bool eat_entry(text_reader *r) {
  const char *p = r->lx.p;
  if (memcmp(p, "ENTRY", 5) != 0 || text_is(p[5], TEXT_NAME) || p[5] == '=' || p[5] == ':') return false;
  r->lx.p = p + 5;
  text_skip(&r->lx);
  return true;
}

/* A name may be taken only by one computation, and the name is defined after the body, which can't refer to itself. */
static int read_computation(text_reader *r, ir_computation **entry) {
  const char *entry_at = r->lx.p, *result_at = NULL;
  bool is_entry = eat_entry(r);
  const char *at = r->lx.p;
  const ir_type *result = NULL;
  text_symbol *name;
  ir_computation *c;
  TRY(text_read_name(r, "a computation's name", &name));
  if (*r->lx.p == '(') TRY(read_signature(r, &result, &result_at));
  TRY(text_read_body(r, name->name->s, name->name->n, at, &c));
  if (result) TRY(check_signature(r, c, result, result_at));
  TRY(read_computation_attrs(r, c));
  if (is_entry && *entry) return text_fail(r, entry_at, XLAC_E_SYNTAX, "a module has only one ENTRY");
  if (name->comp)
    return text_fail(r, at, XLAC_E_DUPLICATE_NAME, "computation '%s' is defined twice, first on line %u", name->name->s,
                     name->comp->line);
  name->comp = c;
  if (is_entry) *entry = c;
  return 0;
}

/* Without an ENTRY the last computation is the entry, as in XLA. */
int text_read_computations(text_reader *r) {
  ir_computation *entry = NULL;
  do TRY(read_computation(r, &entry));
  while (r->lx.p < r->lx.end);
  r->m->entry = entry ? entry : r->m->last;
  assert(r->scope == 0 && r->level == 0);
  return 0;
}

/* --- a lone instruction --- */

/* XLA adds the lone instruction's computation before those written inside it, so it gets its names first. For the
 * time of uniquifying it stands at the head of the list; then it goes back to the end. */
static int name_lone_first(text_reader *r, ir_computation *c) {
  ir_module *m = r->m;
  if (m->first == c) return 0;
  m->last = c->prev;
  m->last->next = NULL;
  c->prev = NULL;
  c->next = m->first;
  m->first->prev = c;
  m->first = c;
  int status = ir_uniquify_names(m, r->err);
  move_to_end(c);
  return status;
}

/* "%y = f32[] add(f32[] %a, f32[] %b)" or "f32[] add(f32[] %a, f32[] %b)": operands are declared by use and become
 * parameters in the order in which they are first seen. */
int text_read_lone(text_reader *r) {
  uint32_t outer, first_hidden;
  ir_op *root = NULL;
  ir_computation *c = ir_computation_new(r->m, "_", 1);
  if (!c) return text_no_memory(r);
  c->line = c->col = 1;
  text_scope_open(r, &outer, &first_hidden);
  if (text_at_type(r)) {
    text_symbol *name = text_symbol_of(r, "_", 1);
    if (!name) return text_no_memory(r);
    TRY(text_read_rhs(r, c, name, r->lx.p, &root));
  } else {
    TRY(text_read_instruction(r, c, &root));
  }
  if (r->lx.p != r->lx.end) {
    int status = text_expected(r, XLAC_E_SYNTAX, "the end of the text after a lone instruction");
    return base_hint(r->err, status, "a module begins with HloModule, ENTRY, or a name and '{'");
  }
  TRY(text_close_computation(r, c, root, 0, r->lx.text));
  text_scope_close(r, outer, first_hidden);
  r->m->entry = c;
  return name_lone_first(r, c);
}
