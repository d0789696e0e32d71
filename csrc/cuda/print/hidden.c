/* Scores that a mask hides: x = select(mask, what is made of the scores, what is not), where the mask compares numbers
 * of rows with numbers of columns. Of a block of rows and columns the corners then say whether all of it is hidden, and
 * so whether the kernel has to look at its columns at all. What is left of x there follows from the row alone, or from
 * the column alone. */
#include "dot.h"

enum {
  HIDDEN_ROW = 1, /* what a value follows from */
  HIDDEN_COLUMN = 2,
  HIDDEN_SUM = 4,
  HIDDEN_ALL = 7,
  HIDDEN_ROWS = 64,     /* of a block, and more than there are columns of one at a time: powers of 2 */
  HIDDEN_FAR = 1 << 24, /* numbers below are exact in f32, and sums of them do not wrap */
  HIDDEN_DEEP = 8       /* ops one within another, of a mask */
};

typedef struct cu_hidden {
  const cuda_between *of;
  const kernel *k;
  uint32_t n_operands;           /* inputs behind them are sums */
  uint8_t from[KERNEL_MAX_RANK]; /* what each dimension counts, */
  bool alone[KERNEL_MAX_RANK];   /* and whether it is all of that */
  int64_t turns;                 /* rows after which the innermost dimension of them begins anew; 0: never */
} cu_hidden;

/* row * its number + column * its number + constant */
typedef struct cu_line {
  int64_t row, column, constant;
} cu_line;

static void cu_hidden_number(cu_hidden *x) {
  int64_t inside = 1, columns = x->of->columns, rows = x->of->rows;
  for (uint32_t d = x->k->rank; d-- > 0; inside *= x->k->extents[d]) {
    int64_t n = x->k->extents[d], row = inside / columns;
    bool column = inside * n <= columns, of_rows = inside % columns == 0;
    x->from[d] = column ? HIDDEN_COLUMN : !of_rows ? HIDDEN_ROW | HIDDEN_COLUMN : row % rows == 0 ? 0 : HIDDEN_ROW;
    bool turns = of_rows && row == 1 && n < rows && n % HIDDEN_ROWS == 0;
    x->alone[d] = column ? n == columns : of_rows && row == 1 && (n == rows || turns);
    if (turns && !column) x->turns = n;
  }
}

static uint8_t cu_hidden_walks(const cu_hidden *x, const kernel_index *index) {
  uint8_t from = 0;
  for (uint32_t d = 0; d < x->k->rank; d++)
    if (index->strides[d] && x->k->extents[d] > 1) from |= x->from[d];
  return from;
}

/* What value `i` follows from where the mask, value `mask`, is `when`. */
static uint8_t cu_hidden_follows(const cu_hidden *x, uint32_t i, uint32_t mask, bool when, const uint8_t *before) {
  const kernel_value *v = &x->k->values[i];
  uint8_t from = 0;
  if (v->kind == KERNEL_CONSTANT) return 0;
  if (v->kind == KERNEL_COUNT_UP) return cu_hidden_walks(x, v->index);
  if (v->kind == KERNEL_LOAD) {
    if (v->box || v->n_in) return HIDDEN_ALL;
    return v->buffer >= x->n_operands ? HIDDEN_SUM : cu_hidden_walks(x, v->index);
  }
  if (v->kind != KERNEL_OP) return HIDDEN_ALL;
  if (v->op.code == SCALAR_SELECT && v->in[0] == mask) return before[v->in[when ? 1 : 2]];
  for (uint32_t j = 0; j < v->n_in; j++) from |= before[v->in[j]];
  return from;
}

/* --- the mask --- */

static bool cu_line_is_near(const cu_hidden *x, const cu_line *l) {
  int64_t most = HIDDEN_FAR;
  int64_t row = l->row < 0 ? -l->row : l->row, column = l->column < 0 ? -l->column : l->column;
  return row < most && column < most && l->constant < most && l->constant > -most &&
         row * x->of->rows + column * x->of->columns < most;
}

static bool cu_line_of(const cu_hidden *x, uint32_t i, uint32_t deep, cu_line *out) {
  const kernel_value *v = &x->k->values[i];
  base_dtype t = (base_dtype)v->dtype;
  cu_line a = {0}, b = {0};
  if (deep == 0 || (t != XLAC_S32 && t != XLAC_S64 && t != XLAC_F32)) return false;
  if (v->kind == KERNEL_CONSTANT) {
    double number = base_load_f64(t, v->data);
    if (!(number > -HIDDEN_FAR && number < HIDDEN_FAR)) return false;
    a.constant = (int64_t)number;
    if ((double)a.constant != number) return false;
  } else if (v->kind == KERNEL_COUNT_UP) {
    a.constant = v->index->offset;
    for (uint32_t d = 0; d < x->k->rank; d++) {
      int64_t stride = x->k->extents[d] > 1 ? v->index->strides[d] : 0;
      if (stride && !x->alone[d]) return false;
      *(x->from[d] == HIDDEN_ROW ? &a.row : &a.column) += stride;
    }
  } else {
    if (v->kind != KERNEL_OP || !cu_line_of(x, v->in[0], deep - 1, &a)) return false;
    int64_t by = v->op.code == SCALAR_SUBTRACT ? -1 : 1;
    if (v->op.code == SCALAR_ADD || v->op.code == SCALAR_SUBTRACT) {
      if (!cu_line_of(x, v->in[1], deep - 1, &b)) return false;
      a = (cu_line){a.row + by * b.row, a.column + by * b.column, a.constant + by * b.constant};
    } else if (v->op.code != SCALAR_CONVERT && v->op.code != SCALAR_COPY) {
      return false;
    }
  }
  *out = a;
  return cu_line_is_near(x, &a);
}

/* The least that the line comes to in the block, or the most. */
static void cu_line_put(const cu_line *l, bool most, base_text *out) {
  base_putf(out, "%lld", (long long)l->constant);
  if (l->row) base_putf(out, " + %lld * %s", (long long)l->row, (l->row > 0) == most ? "last_at" : "at");
  if (l->column)
    base_putf(out, " + %lld * %s", (long long)l->column, (l->column > 0) == most ? "last_column" : "column");
}

static bool cu_hidden_put_compare(const cu_hidden *x, const kernel_value *v, bool truth, base_text *out) {
  static const uint8_t inverse[] = {[SCALAR_EQ] = SCALAR_NE, [SCALAR_NE] = SCALAR_EQ, [SCALAR_GE] = SCALAR_LT,
                                    [SCALAR_GT] = SCALAR_LE, [SCALAR_LE] = SCALAR_GT, [SCALAR_LT] = SCALAR_GE};
  static const char *const signs[] = {[SCALAR_GE] = ">=", [SCALAR_GT] = ">", [SCALAR_LE] = "<=", [SCALAR_LT] = "<"};
  uint8_t how = truth ? v->op.direction : inverse[v->op.direction];
  cu_line a, b;
  if (how == SCALAR_EQ || !cu_line_of(x, v->in[0], HIDDEN_DEEP, &a) || !cu_line_of(x, v->in[1], HIDDEN_DEEP, &b))
    return false;
  a = (cu_line){a.row - b.row, a.column - b.column, a.constant - b.constant};
  if (!out) return true;
  bool most = how == SCALAR_LT || how == SCALAR_LE || how == SCALAR_NE;
  cu_line_put(&a, most, out);
  base_putf(out, " %s 0", how == SCALAR_NE ? "<" : signs[how]);
  if (how == SCALAR_NE) {
    BASE_PUT(out, " || ");
    cu_line_put(&a, false, out);
    BASE_PUT(out, " > 0");
  }
  return true;
}

/* An expression that is true only where predicate `i` is `truth` in all of the block; false: there is none. Without
 * `out`, whether there is one. */
static bool cu_hidden_put_whole(const cu_hidden *x, uint32_t i, bool truth, uint32_t deep, base_text *out) {
  const kernel_value *v = &x->k->values[i];
  if (v->kind != KERNEL_OP || v->dtype != XLAC_PRED || deep == 0) return false;
  if (v->op.code == SCALAR_COMPARE) return cu_hidden_put_compare(x, v, truth, out);
  if (v->op.code == SCALAR_NOT) return cu_hidden_put_whole(x, v->in[0], !truth, deep - 1, out);
  if (v->op.code != SCALAR_AND && v->op.code != SCALAR_OR) return false;
  bool both = (v->op.code == SCALAR_AND) == truth;
  bool left = cu_hidden_put_whole(x, v->in[0], truth, deep - 1, NULL);
  bool right = cu_hidden_put_whole(x, v->in[1], truth, deep - 1, NULL);
  if (both ? !(left && right) : !(left || right)) return false;
  if (!out) return true;
  BASE_PUT(out, "(");
  if (left) cu_hidden_put_whole(x, v->in[0], truth, deep - 1, out);
  if (left && right) base_puts(out, both ? ") && (" : ") || (");
  if (right) cu_hidden_put_whole(x, v->in[1], truth, deep - 1, out);
  BASE_PUT(out, ")");
  return true;
}

/* Whether x, where the mask is `when`, follows from the row alone, or from the column alone. */
static bool cu_hidden_is_bare(const cu_hidden *x, uint32_t mask, bool when, base_arena *scratch, bool by_columns) {
  uint8_t *from = BASE_ARRAY(scratch, uint8_t, x->k->n_values + 1u);
  for (uint32_t i = 0; from && i < x->k->n_values; i++) from[i] = cu_hidden_follows(x, i, mask, when, from);
  uint8_t of = from ? from[x->k->stores[0].value] : HIDDEN_ALL;
  return of == 0 || of == HIDDEN_ROW || (by_columns && of == HIDDEN_COLUMN);
}

bool cuda_between_put_hidden(cuda_routine *r, const cuda_between *of, bool by_columns, const char *head) {
  cu_hidden x = {.of = of, .k = of->k, .n_operands = r->op->n_operands};
  if (!of->k) return false;
  cu_hidden_number(&x);
  for (uint32_t i = 0; i < x.k->n_values; i++) {
    const kernel_value *v = &x.k->values[i];
    if (v->kind != KERNEL_OP || v->op.code != SCALAR_SELECT) continue;
    for (int when = 0; when < 2; when++) {
      if (!cu_hidden_put_whole(&x, v->in[0], when, HIDDEN_DEEP, NULL) ||
          !cu_hidden_is_bare(&x, v->in[0], when, r->scratch, by_columns))
        continue;
      if (head) {
        base_puts(r->print.out, head);
        if (x.turns) base_putf(r->print.out, " last_at -= at; at %%= %lld; last_at += at;", (long long)x.turns);
        BASE_PUT(r->print.out, " return ");
        cu_hidden_put_whole(&x, v->in[0], when, HIDDEN_DEEP, r->print.out);
        BASE_PUT(r->print.out, "; },\n");
      }
      return true;
    }
  }
  return false;
}
