/* Meshes, axes and shardings, and the pretty forms of sdy's ops. Errors stand where MLIR's do: at the token that is
 * not what it should be.
 *
 *   <@mesh, [{"x", ?}p1, {"y":(1)2}, {}], replicated={"z"}, unreduced=max{"w"}>
 * Every kind of attribute is a struct of ir/sdy/sdy.h; its size and its function are rows of two tables by sdy_kind.
 * Lists grow in the arena by doubling: what they outgrow is not freed before the module. */
#include "read.h"
#include "../read/read.h"

/* Lists hold 4, 8, 16 ... elements: n alone tells whether there is room. */
int mlir_sdy_more(mlir_reader *r, void **items, uint32_t n, size_t size) {
  assert(size > 0 && (*items || n == 0));
  bool full = n == 0 || (n >= 4 && (n & (n - 1)) == 0);
  if (!full) return 0;
  void *to = base_arena_array(&r->m->arena, n < 4 ? 4 : (size_t)n * 2, size);
  if (!to) return mlir_no_memory(r);
  if (n) memcpy(to, *items, n * size);
  *items = to;
  return 0;
}

/* --- axes --- */

/*   "x" */
static int sdy_read_axis_name(mlir_reader *r, const base_istr **out) {
  if (*r->lx.p != '"') return mlir_fail(r, r->lx.p, XLAC_E_SYNTAX, "expected string: the name of an axis");
  return mlir_read_string(r, out);
}

/* "x" or "x":(pre)size. size 0 in the struct means the whole axis. */
int mlir_sdy_read_axis(mlir_reader *r, sdy_axis *out) {
  *out = (sdy_axis){0};
  TRY(sdy_read_axis_name(r, &out->name));
  if (!mlir_eat(r, ":")) return 0;
  TRY(mlir_want(r, "("));
  TRY(mlir_read_int(r, &out->pre));
  TRY(mlir_want(r, ")"));
  const char *at = r->lx.p;
  TRY(mlir_read_int(r, &out->size));
  /* Sizes of 0 or less would mean the whole axis here; the verifier refuses 1 too. */
  if (out->size < 1 || out->pre < 1)
    return mlir_fail(
        r, at, XLAC_E_BAD_ATTRIBUTE,
        out->pre < 1 ? "sub-axis pre-size must be at least 1: %lld" : "sub-axis sizes must be greater than 1: %lld",
        (long long)(out->pre < 1 ? out->pre : out->size));
  return 0;
}

/* {} is no axes. */
int mlir_sdy_read_axes_in_braces(mlir_reader *r, sdy_axes *out) {
  sdy_axis *v = NULL;
  uint32_t n = 0;
  TRY(mlir_want(r, "{"));
  if (!mlir_eat(r, "}")) {
    do {
      TRY(SDY_MORE(r, v, n));
      TRY(mlir_sdy_read_axis(r, &v[n++]));
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "}"));
  }
  *out = (sdy_axes){n, v};
  return 0;
}

/* The same with at least one axis. */
static int sdy_read_some_axes(mlir_reader *r, sdy_axes *out) {
  const char *at = r->lx.p + 1;
  TRY(mlir_sdy_read_axes_in_braces(r, out));
  return out->n ? 0 : mlir_fail(r, at, XLAC_E_SYNTAX, "expected string: the name of an axis");
}

/* --- meshes --- */

/*   ["x"=2, "y"=4] */
static int sdy_read_mesh_axes(mlir_reader *r, sdy_mesh *out) {
  sdy_mesh_axis *v = NULL;
  uint32_t n = 0;
  TRY(mlir_want(r, "["));
  if (!mlir_eat(r, "]")) {
    do {
      TRY(SDY_MORE(r, v, n));
      TRY(sdy_read_axis_name(r, &v[n].name));
      TRY(mlir_want(r, "="));
      TRY(mlir_read_int(r, &v[n++].size));
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "]"));
  }
  out->axes = v;
  out->n_axes = n;
  return 0;
}

/* Ids in their usual order are dropped, so that equal meshes are equal. A mesh that breaks Shardy's rules is refused
 * here, as its attribute can't be made. */
static int sdy_read_mesh(mlir_reader *r, sdy_mesh *out) {
  const char *at = r->lx.p;
  char fault[200];
  *out = (sdy_mesh){0};
  TRY(mlir_want(r, "<"));
  TRY(sdy_read_mesh_axes(r, out));
  if (mlir_eat(r, ",")) {
    uint32_t from;
    if (!mlir_eat_word(r, "device_ids")) return mlir_expected(r, "'device_ids'");
    TRY(mlir_want(r, "="));
    TRY(mlir_read_dims(r, &from));
    out->n_ids = r->ints.n - from;
    out->ids = base_arena_memdup(&r->m->arena, r->ints.items + from, out->n_ids * sizeof *out->ids);
    r->ints.n = from;
    if (!out->ids) return mlir_no_memory(r);
    if (sdy_mesh_ids_are_iota(out)) out->n_ids = 0;
  }
  TRY(mlir_want(r, ">"));
  bool broken = sdy_mesh_is_broken(out, fault, sizeof fault);
  return broken ? mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "%s", fault) : 0;
}

/* --- dimensions --- */

/* "p3" */
static int sdy_read_priority(mlir_reader *r, sdy_dim *out) {
  base_slice w = mlir_word(r);
  const char *at = r->lx.p, *digits = at + 1;
  if (w.n == 0) return 0;
  bool plain = w.n >= 2 && *at == 'p';
  for (size_t i = 1; i < w.n; i++) plain = plain && text_is(at[i], TEXT_DIGIT);
  if (!plain)
    return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "expecting priority in format 'p<number>', got: %.*s", (int)w.n, at);
  if (*digits == '0' && w.n > 2)
    return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "priorities with leading zeros are not allowed, got: %.*s", (int)w.n,
                     at);
  if (!base_parse_i64(digits, at + w.n, &out->priority))
    return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "expecting integer priority that fits 64 bits, got: %.*s", (int)w.n,
                     at);
  mlir_skip_word(r, w);
  return 0;
}

/*   {"x", "y":(1)2, ?}p3 */
static int sdy_read_dim(mlir_reader *r, sdy_dim *out) {
  sdy_axis *v = NULL;
  uint32_t n = 0;
  *out = (sdy_dim){.priority = -1};
  TRY(mlir_want(r, "{"));
  while (!mlir_eat(r, "}")) {
    if (n) TRY(mlir_want(r, ","));
    if (mlir_eat(r, "?")) {
      out->open = true;
      TRY(mlir_want(r, "}"));
      break;
    }
    TRY(SDY_MORE(r, v, n));
    TRY(mlir_sdy_read_axis(r, &v[n++]));
  }
  out->axes = (sdy_axes){n, v};
  return sdy_read_priority(r, out);
}

/* --- shardings --- */

/*   @mesh   or   mesh<["x"=2]> */
static int sdy_read_mesh_or_name(mlir_reader *r, sdy_sharding *out) {
  if (mlir_eat_word(r, "mesh")) {
    sdy_mesh *mesh = BASE_NEW(&r->m->arena, sdy_mesh);
    if (!mesh) return mlir_no_memory(r);
    out->mesh = mesh;
    return sdy_read_mesh(r, mesh);
  }
  if (*r->lx.p != '@') return mlir_expected(r, "a mesh: @name, or mesh<[...]>");
  return mlir_read_symbol_name(r, &out->mesh_name);
}

/* "sum", "max" or "min"; false where there is another word, or none. */
static bool sdy_eat_reduction(mlir_reader *r, uint8_t *out) {
  static const char *const words[] = {[SDY_SUM] = "sum", [SDY_MAX] = "max", [SDY_MIN] = "min"};
  for (uint8_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (!mlir_eat_word(r, words[i])) continue;
    *out = i;
    return true;
  }
  return false;
}

/* ", replicated={...}" and ", unreduced={...}" in any order, each once. */
static int sdy_read_other_axes(mlir_reader *r, sdy_sharding *out) {
  while (mlir_eat(r, ",")) {
    if (out->replicated.n == 0 && mlir_eat_word(r, "replicated")) {
      TRY(mlir_want(r, "="));
      TRY(sdy_read_some_axes(r, &out->replicated));
    } else if (out->unreduced.n == 0 && mlir_eat_word(r, "unreduced")) {
      out->reduction = SDY_SUM;
      if (mlir_eat(r, "=")) (void)sdy_eat_reduction(r, &out->reduction);
      TRY(sdy_read_some_axes(r, &out->unreduced));
    } else {
      return mlir_fail(r, r->lx.p, XLAC_E_SYNTAX,
                       "expected valid named axis list after comma: replicated={...} or unreduced={...}, each once");
    }
  }
  if (out->unreduced.n == 0) out->reduction = SDY_SUM;
  return 0;
}

/* One pair of braces for each dimension. */
static int sdy_read_dims(mlir_reader *r, sdy_sharding *out) {
  sdy_dim *v = NULL;
  uint32_t n = 0;
  TRY(mlir_want(r, "["));
  if (!mlir_eat(r, "]")) {
    do {
      TRY(SDY_MORE(r, v, n));
      TRY(sdy_read_dim(r, &v[n++]));
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "]"));
  }
  out->n_dims = n;
  out->dims = v;
  return 0;
}

/*   <@mesh, [{"x"}, {?}], replicated={"y"}> */
static int sdy_read_sharding(mlir_reader *r, sdy_sharding *out) {
  *out = (sdy_sharding){0};
  TRY(mlir_want(r, "<"));
  TRY(sdy_read_mesh_or_name(r, out));
  TRY(mlir_want(r, ","));
  TRY(sdy_read_dims(r, out));
  TRY(sdy_read_other_axes(r, out));
  return mlir_want(r, ">");
}

/* "[<...>, <...>]" */
int mlir_sdy_read_sharding_list(mlir_reader *r, sdy_shardings *out) {
  const sdy_sharding **v = NULL;
  uint32_t n = 0;
  TRY(mlir_want(r, "["));
  if (!mlir_eat(r, "]")) {
    do {
      const ir_mattr *a;
      TRY(SDY_MORE(r, v, n));
      TRY(mlir_sdy_read_bare(r, SDY_SHARDING, &a));
      v[n++] = a->v.sdy;
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "]"));
  }
  *out = (sdy_shardings){n, v};
  return 0;
}

/*   <[<@mesh, [{"x"}]>]> */
static int sdy_read_shardings(mlir_reader *r, sdy_shardings *out) {
  TRY(mlir_want(r, "<"));
  TRY(mlir_sdy_read_sharding_list(r, out));
  return mlir_want(r, ">");
}

/* --- lists of axes --- */

/*   [{"x"}, {"y", "z"}] */
static int sdy_read_axis_lists(mlir_reader *r, sdy_axis_lists *out) {
  sdy_axes *v = NULL;
  uint32_t n = 0;
  TRY(mlir_want(r, "["));
  if (!mlir_eat(r, "]")) {
    do {
      TRY(SDY_MORE(r, v, n));
      TRY(mlir_sdy_read_axes_in_braces(r, &v[n++]));
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "]"));
  }
  *out = (sdy_axis_lists){n, v};
  return 0;
}

/* "{"x"}: 0->2" */
static int sdy_read_param(mlir_reader *r, sdy_param *out) {
  TRY(sdy_read_some_axes(r, &out->axes));
  TRY(mlir_want(r, ":"));
  TRY(mlir_read_int(r, &out->from));
  TRY(mlir_want(r, "->"));
  return mlir_read_int(r, &out->to);
}

/*   [{"x"}: 0->2] */
static int sdy_read_params(mlir_reader *r, sdy_params *out) {
  sdy_param *v = NULL;
  uint32_t n = 0;
  TRY(mlir_want(r, "["));
  if (!mlir_eat(r, "]")) {
    do {
      TRY(SDY_MORE(r, v, n));
      TRY(sdy_read_param(r, &v[n++]));
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "]"));
  }
  *out = (sdy_params){n, v};
  return 0;
}

/*   {"x", "y"} */
static int sdy_read_names(mlir_reader *r, sdy_names *out) {
  const base_istr **v = NULL;
  uint32_t n = 0;
  TRY(mlir_want(r, "{"));
  if (!mlir_eat(r, "}")) {
    do {
      TRY(SDY_MORE(r, v, n));
      TRY(sdy_read_axis_name(r, &v[n++]));
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "}"));
  }
  *out = (sdy_names){n, v};
  return 0;
}

/* --- any kind --- */

/* `to` points at a zeroed struct of that kind. */
static int sdy_read_struct(mlir_reader *r, sdy_kind kind, void *to) {
  switch (kind) {
    case SDY_MESH:
      return sdy_read_mesh(r, to);
    case SDY_SHARDING:
      return sdy_read_sharding(r, to);
    case SDY_SHARDINGS:
      return sdy_read_shardings(r, to);
    case SDY_RULE:
      return mlir_sdy_read_rule(r, to);
    case SDY_AXIS:
      return mlir_sdy_read_axis(r, to);
    case SDY_AXES:
      return mlir_sdy_read_axes_in_braces(r, to);
    case SDY_AXIS_LISTS:
      return sdy_read_axis_lists(r, to);
    case SDY_PARAM:
      return sdy_read_param(r, to);
    case SDY_PARAMS:
      return sdy_read_params(r, to);
    case SDY_MANUAL_AXES:
      return sdy_read_names(r, to);
    case SDY_EDGES:
      return mlir_sdy_read_edges(r, to);
    case SDY_DIM:
      return sdy_read_dim(r, to);
    case SDY_NONE:
    case SDY_KINDS:
      break;
  }
  return mlir_expected(r, "an attribute of the dialect sdy");
}

static const size_t sdy_struct_sizes[SDY_KINDS] = {[SDY_MESH] = sizeof(sdy_mesh),
                                                   [SDY_SHARDING] = sizeof(sdy_sharding),
                                                   [SDY_SHARDINGS] = sizeof(sdy_shardings),
                                                   [SDY_RULE] = sizeof(sdy_rule),
                                                   [SDY_AXIS] = sizeof(sdy_axis),
                                                   [SDY_AXES] = sizeof(sdy_axes),
                                                   [SDY_AXIS_LISTS] = sizeof(sdy_axis_lists),
                                                   [SDY_PARAM] = sizeof(sdy_param),
                                                   [SDY_PARAMS] = sizeof(sdy_params),
                                                   [SDY_MANUAL_AXES] = sizeof(sdy_names),
                                                   [SDY_EDGES] = sizeof(sdy_edges),
                                                   [SDY_DIM] = sizeof(sdy_dim)};

/* Reads an attribute and makes it, without looking for an equal one. */
static int sdy_read_new(mlir_reader *r, sdy_kind kind, const ir_mattr **out) {
  assert(kind > SDY_NONE && kind < SDY_KINDS);
  void *to = base_arena_zalloc(&r->m->arena, sdy_struct_sizes[kind]);
  if (!to) return mlir_no_memory(r);
  TRY(sdy_read_struct(r, kind, to));
  *out = sdy_attr(r->m, kind, to);
  return *out ? 0 : mlir_no_memory(r);
}

/* The text of a "<...>" without strings that hold brackets, up to what a memo holds. A bracket in a string would
 * only make the text shorter or longer than what is read, and then it is not remembered. */
static base_slice sdy_angle_text(const mlir_reader *r) {
  const char *p = r->lx.p;
  uint32_t open = 0;
  for (const char *e = p; e - p < 64 && *e && *e != '\\'; e++) {
    if (*e == '<') open++;
    if (*e == '>' && e[-1] != '-' && --open == 0) return (base_slice){p, (size_t)(e + 1 - p)};
  }
  return (base_slice){0};
}

/* The whole attribute where only its body is asked for: "#sdy.sharding<...>". */
static int sdy_read_whole(mlir_reader *r, sdy_kind kind, const ir_mattr **out) {
  const char *at = r->lx.p;
  TRY(mlir_read_attr(r, out));
  if ((*out)->kind == IR_M_SDY && (*out)->sub == kind) return 0;
  return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "expected an attribute #sdy.%s", sdy_kind_name(kind));
}

/* Shardings are said thousands of times. */
int mlir_sdy_read_bare(mlir_reader *r, sdy_kind kind, const ir_mattr **out) {
  if (*r->lx.p == '#') return sdy_read_whole(r, kind, out);
  if ((kind != SDY_SHARDING && kind != SDY_SHARDINGS) || *r->lx.p != '<') return sdy_read_new(r, kind, out);
  mlir_memo_kind memo = kind == SDY_SHARDING ? MLIR_MEMO_SDY_SHARDING : MLIR_MEMO_SDY_SHARDINGS;
  base_slice seen = sdy_angle_text(r);
  mlir_memo *place;
  if ((*out = mlir_recall(r, memo, seen, &place))) {
    mlir_pass(r, seen);
    return 0;
  }
  TRY(sdy_read_new(r, kind, out));
  /* What was read may itself have remembered something here. */
  (void)mlir_recall(r, memo, seen, &place);
  mlir_remember(r, place, memo, seen, *out);
  return 0;
}

/*   #sdy.sharding<...>, with the cursor behind "sdy." */
int mlir_sdy_read_named(mlir_reader *r, const char *at, base_slice name, const ir_mattr **out) {
  assert(*at == '#');
  sdy_kind kind = sdy_kind_find(name.p, name.n);
  if (!kind)
    return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "unknown attribute `%.*s` in dialect `sdy`", (int)name.n, name.p);
  mlir_skip_word(r, name);
  return mlir_sdy_read_bare(r, kind, out);
}

/* ---- The pretty forms of sdy ops that no string describes. */

/* The "@mesh" of sdy.mesh. */
int mlir_sdy_read_symbol(mlir_reader *r) {
  const base_istr *name;
  TRY(mlir_read_symbol_name(r, &name));
  return mlir_add_attr(r, "sym_name", ir_m_string(r->m, name->s, name->n));
}

/* An optional word out of a list, as its number. */
static int sdy_read_word_of(mlir_reader *r, const char *key, uint32_t n, const char *const *words, bool *found) {
  assert(key && n > 0);
  *found = false;
  for (uint32_t i = 0; i < n && !*found; i++) {
    if (!mlir_eat_word(r, words[i])) continue;
    *found = true;
    TRY(mlir_add_attr(r, key, ir_m_i32(r->m, i)));
  }
  return 0;
}

/* "allowed_direction=FORWARD" */
int mlir_sdy_read_direction(mlir_reader *r) {
  static const char *const words[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};
  bool found;
  TRY(mlir_want_word(r, "allowed_direction"));
  TRY(mlir_want(r, "="));
  TRY(sdy_read_word_of(r, "allowed_direction", 4, words, &found));
  return found ? 0 : mlir_expected(r, "NONE, FORWARD, BACKWARD or BOTH");
}

/* "max", where there is a word. */
int mlir_sdy_read_reduction(mlir_reader *r) {
  static const char *const words[] = {"sum", "max", "min"};
  bool found;
  return sdy_read_word_of(r, "reduction_op", 3, words, &found);
}

/* "in_shardings=[<...>, <...>]" */
static int sdy_read_stripped(mlir_reader *r, const char *word) {
  TRY(mlir_want_word(r, word));
  TRY(mlir_want(r, "="));
  sdy_shardings list;
  TRY(mlir_sdy_read_sharding_list(r, &list));
  return mlir_add_attr(r, word, sdy_attr(r->m, SDY_SHARDINGS, sdy_shardings_make(r->m, list.n, list.v)));
}

/* "(%arg1: t, %arg2: t) {...}": arguments in front of the block, from where outer values are not seen. */
static int sdy_read_region(mlir_reader *r) {
  ir_computation *c = mlir_new_region(r);
  if (!c) return mlir_no_memory(r);
  uint32_t mark = r->names.n, outer = r->isolated_at;
  r->isolated_at = mark;
  TRY(mlir_want(r, "("));
  if (!mlir_eat(r, ")")) {
    do TRY(mlir_read_arg(r, c, true));
    while (mlir_eat(r, ","));
    TRY(mlir_want(r, ")"));
  }
  TRY(mlir_read_region_body(r, c));
  assert(r->names.n >= mark);
  mlir_unbind(r, mark);
  r->isolated_at = outer;
  return BASE_VEC_PUSH(r->alloc, &r->regions, c) ? 0 : mlir_no_memory(r);
}

/* Region, dictionary, types. */
static int sdy_read_body(mlir_reader *r, mlir_op_state *s) {
  TRY(sdy_read_region(r));
  TRY(mlir_read_own_attrs(r, s));
  return mlir_read_op_type(r, s);
}

/*   (%0) in_shardings=[<...>] out_shardings=[<...>] manual_axes={"x"} (%arg1: t) { ... } : (t) -> t */
int mlir_sdy_read_manual(mlir_reader *r, mlir_op_state *s) {
  const ir_mattr *axes;
  TRY(mlir_read_operand_list(r, s));
  TRY(sdy_read_stripped(r, "in_shardings"));
  TRY(sdy_read_stripped(r, "out_shardings"));
  TRY(mlir_want_word(r, "manual_axes"));
  TRY(mlir_want(r, "="));
  TRY(mlir_sdy_read_bare(r, SDY_MANUAL_AXES, &axes));
  TRY(mlir_add_attr(r, "manual_axes", axes));
  return sdy_read_body(r, s);
}

/* Whether the next word is this one, which stays. */
static bool sdy_word_is(mlir_reader *r, const char *word) {
  return base_slice_is(mlir_word(r), word);
}

/*   <"name">(%0) in_shardings=[...] out_shardings=[...] (%arg1: t) { ... } : (t) -> t
 * Shardings may be left out. */
int mlir_sdy_read_named_computation(mlir_reader *r, mlir_op_state *s) {
  const base_istr *name;
  TRY(mlir_want(r, "<"));
  TRY(mlir_read_string(r, &name));
  TRY(mlir_add_attr(r, "name", ir_m_string(r->m, name->s, name->n)));
  TRY(mlir_want(r, ">"));
  TRY(mlir_read_operand_list(r, s));
  if (sdy_word_is(r, "in_shardings")) TRY(sdy_read_stripped(r, "in_shardings"));
  if (sdy_word_is(r, "out_shardings")) TRY(sdy_read_stripped(r, "out_shardings"));
  return sdy_read_body(r, s);
}
