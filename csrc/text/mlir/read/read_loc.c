/* Locations: loc("f":1:2), loc("name"(child)), loc(callsite(a at b)), loc(fused<m>[a, b]), loc(unknown), loc(#loc3). */
#include "read.h"

static int mlir_read_loc_inner(mlir_reader *r, const ir_mattr **out);

/* Equal locations are one attribute: ir_m_loc interns them. */
static int mlir_make_loc(mlir_reader *r, const ir_mloc *l, const ir_mattr **out) {
  *out = ir_m_loc(r->m, l);
  return *out ? 0 : mlir_no_memory(r);
}

/* A line or column; MLIR has 32 bits for each. */
static int mlir_read_place(mlir_reader *r, uint32_t *out) {
  const char *at = r->lx.p;
  int64_t v;
  TRY(mlir_read_int(r, &v));
  if (v < 0 || v > UINT32_MAX)
    return mlir_fail(r, at, XLAC_E_SYNTAX, "expected integer line number in FileLineColRange, of 32 bits");
  *out = (uint32_t)v;
  return 0;
}

/* " to :col" or " to line:col" after a file's line and column. */
static int mlir_read_range(mlir_reader *r, ir_mloc *l) {
  if (!mlir_eat_word(r, "to")) return 0;
  l->range = true;
  l->end_line = l->line;
  if (*r->lx.p != ':') TRY(mlir_read_place(r, &l->end_line));
  TRY(mlir_want(r, ":"));
  return mlir_read_place(r, &l->end_col);
}

/*   "f.py":1:2   "f.py":1:2 to :9   "name"   "name"("f.py":1:2) */
static int mlir_read_named(mlir_reader *r, const ir_mattr **out) {
  ir_mloc l = {.kind = IR_LOC_NAME};
  TRY(mlir_read_string(r, &l.name));
  if (mlir_eat(r, ":")) {
    l.kind = IR_LOC_FILE;
    TRY(mlir_read_place(r, &l.line));
    TRY(mlir_want(r, ":"));
    TRY(mlir_read_place(r, &l.col));
    TRY(mlir_read_range(r, &l));
  } else if (mlir_eat(r, "(")) {
    TRY(mlir_read_loc_inner(r, &l.child));
    TRY(mlir_want(r, ")"));
  }
  return mlir_make_loc(r, &l, out);
}

/*   callsite(callee at caller) */
static int mlir_read_callsite(mlir_reader *r, const ir_mattr **out) {
  ir_mloc l = {.kind = IR_LOC_CALLSITE};
  TRY(mlir_want(r, "("));
  TRY(mlir_read_loc_inner(r, &l.child));
  if (!mlir_eat_word(r, "at")) return mlir_expected(r, "at");
  TRY(mlir_read_loc_inner(r, &l.caller));
  TRY(mlir_want(r, ")"));
  return mlir_make_loc(r, &l, out);
}

/*   fused<metadata>["a", "b"] */
static int mlir_read_fused(mlir_reader *r, const ir_mattr **out) {
  ir_mloc l = {.kind = IR_LOC_FUSED};
  uint32_t from = r->attrs.n;
  if (mlir_eat(r, "<")) {
    TRY(mlir_read_attr(r, &l.metadata));
    TRY(mlir_want(r, ">"));
  }
  TRY(mlir_want(r, "["));
  do {
    const ir_mattr *part;
    TRY(mlir_read_loc_inner(r, &part));
    if (!BASE_VEC_PUSH(r->alloc, &r->attrs, part)) return mlir_no_memory(r);
  } while (mlir_eat(r, ","));
  TRY(mlir_want(r, "]"));
  const ir_mattr *list = ir_m_array(r->m, r->attrs.n - from, r->attrs.items + from);
  r->attrs.n = from;
  if (!list) return mlir_no_memory(r);
  l.parts = list->v.list;
  return mlir_make_loc(r, &l, out);
}

/* Nested locations stand without "loc(", but may have it. */
static int mlir_read_loc_body(mlir_reader *r, const ir_mattr **out) {
  const char *at = r->lx.p;
  if (*at == '"') return mlir_read_named(r, out);
  if (*at == '#') {
    TRY(mlir_read_attr(r, out));
    return (*out)->kind == IR_M_LOC ? 0
                                    : mlir_fail(r, at, XLAC_E_SYNTAX, "expected location, but found something else");
  }
  if (mlir_eat_word(r, "callsite")) return mlir_read_callsite(r, out);
  if (mlir_eat_word(r, "fused")) return mlir_read_fused(r, out);
  if (mlir_eat_word(r, "loc")) {
    TRY(mlir_want(r, "("));
    TRY(mlir_read_loc_inner(r, out));
    return mlir_want(r, ")");
  }
  if (!mlir_eat_word(r, "unknown")) return mlir_expected(r, "a location");
  return mlir_make_loc(r, &(ir_mloc){.kind = IR_LOC_UNKNOWN}, out);
}

/* The depth is bounded, as locations nest. */
static int mlir_read_loc_inner(mlir_reader *r, const ir_mattr **out) {
  TRY(mlir_enter(r, r->lx.p));
  int status = mlir_read_loc_body(r, out);
  mlir_leave(r);
  return status;
}

/*   loc("a.py":3:4) */
int mlir_read_loc(mlir_reader *r, const ir_mattr **out) {
  if (!mlir_eat_word(r, "loc")) return mlir_expected(r, "loc");
  TRY(mlir_want(r, "("));
  TRY(mlir_read_loc_inner(r, out));
  return mlir_want(r, ")");
}

/* "loc" without a parenthesis is an op's name or an attribute, not a location. */
int mlir_read_trailing_loc(mlir_reader *r, const ir_mattr **out) {
  const char *p = r->lx.p;
  return p[0] == 'l' && p[1] == 'o' && p[2] == 'c' && p[3] == '(' ? mlir_read_loc(r, out) : 0;
}
