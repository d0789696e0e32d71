/* What a call of LAPACK must be like: numbers, types, shapes and layouts of its arrays, and its attributes. */
#include "lapack_inside.h"

/* Dimensions from the fastest on: rows, columns, then the batch's from the last to the first. Those of extent 1 may be
 * anywhere. */
bool lapack_is_column_major(const xlac_ffi_buffer *b) {
  int64_t last = (int64_t)b->rank - 1, at = 0;
  if (b->rank < 2 || b->count <= 1) return true;
  for (uint32_t i = 0; i < b->rank; i++) {
    int64_t d = b->minor_to_major[i], expected = 0;
    if (b->dims[d] == 1) continue;
    do {
      expected = at == 0 ? last - 1 : at == 1 ? last : last - at;
      at++;
    } while (b->dims[expected] == 1);
    if (d != expected) return false;
  }
  return true;
}

/* Rows and columns of a slot's item; columns are 1 for vectors. */
static void lapack_shape_of(const lapack_job *j, char shape, int64_t *rows, int64_t *columns) {
  int64_t least = lapack_min(j->m, j->n), order = j->letters['S'] == 'L' ? j->m : j->n;
  *columns = 1;
  switch (shape) {
    case 'M':
    case 'Q':
      *rows = j->m, *columns = j->n;
      return;
    case 'u':
      *rows = j->m, *columns = j->letters['J'] == 'S' ? least : j->m;
      return;
    case 'v':
      *rows = j->letters['J'] == 'S' ? least : j->n, *columns = j->n;
      return;
    case 's':
      *rows = *columns = order;
      return;
    case 'q':
      *rows = j->letters['X'] == 'L' ? j->m : j->n, *columns = j->k;
      return;
    default:
      *rows = shape == 'x' ? least : shape == 'm' ? j->m : shape == 'n' ? j->n : shape == 'k' ? j->k : 1;
      if (shape == 'e') *rows = j->n > 0 ? j->n - 1 : 0;
  }
}

static uint32_t lapack_dtype_of(const lapack_job *j, char type) {
  if (type == 'i') return XLAC_FFI_S32;
  bool complex_ = type == 'c' || (type == 't' && j->is_complex);
  if (complex_) return j->is_double ? XLAC_FFI_C128 : XLAC_FFI_C64;
  return j->is_double ? XLAC_FFI_F64 : XLAC_FFI_F32;
}

/* Whether b is a batch of arrays of that shape and type. ormqr takes matrices with columns to spare. */
static bool lapack_fits(const lapack_job *j, const lapack_slot *s, const xlac_ffi_buffer *b) {
  int64_t rows = 0, columns = 0;
  bool matrix = strchr("MQuvsq", s->shape) != NULL;
  uint32_t rank = j->slots[j->routine->main]->rank - 2 + (matrix ? 2 : s->shape != '1');
  lapack_shape_of(j, s->shape, &rows, &columns);
  if (b->dtype != lapack_dtype_of(j, s->type) || b->rank != rank) return false;
  for (uint32_t d = 0; d + 2 < j->slots[j->routine->main]->rank; d++)
    if (b->dims[d] != j->slots[j->routine->main]->dims[d]) return false;
  /* No vectors are computed then. */
  if (j->letters['J'] == 'N' && (s->shape == 'u' || s->shape == 'v')) return true; /* not looked at */
  if (!matrix) return s->shape == '1' || b->dims[rank - 1] == rows;
  if (b->dims[rank - 2] != rows || (s->shape == 'q' ? b->dims[rank - 1] < columns : b->dims[rank - 1] != columns))
    return false;
  return lapack_is_column_major(b);
}

/* The frame's failure for an operand or result that doesn't fit. */
static int lapack_misfit(const lapack_job *j, const char *what, int number) {
  return j->frame->fail(j->frame, "%s %d is not what LAPACK's %s takes here: shape, type or column-major layout", what,
                        number, j->routine->name);
}

/* Both of slot i, operand and result; then where its array is, with the size of an item and its leading dimension. */
static int lapack_check_slot(lapack_job *j, int i) {
  assert(i >= 0 && i < LAPACK_SLOTS && j->batch >= 0);
  const lapack_slot *s = &j->routine->slots[i];
  const xlac_ffi_frame *f = j->frame;
  if (s->operand >= 0 && !lapack_fits(j, s, &f->operands[s->operand])) return lapack_misfit(j, "operand", s->operand);
  if (s->result >= 0 && !lapack_fits(j, s, &f->results[s->result])) return lapack_misfit(j, "result", s->result);
  j->slots[i] = s->result >= 0 ? &f->results[s->result] : &f->operands[s->operand];
  const xlac_ffi_buffer *b = j->slots[i];
  j->items[i] = j->batch ? (int64_t)b->bytes / j->batch : 0;
  int64_t ld = b->rank >= 2 ? b->dims[b->rank - 2] : 1;
  j->ld[i] = ld > 0 ? (int32_t)ld : 1;
  return 0;
}

/* What the routines themselves would refuse, by printing. */
static bool lapack_sizes_fit(const lapack_job *j) {
  const char *name = j->routine->name;
  if (strcmp(name + 2, "gqr") == 0) return j->n <= j->m && j->k <= j->n;
  if (strcmp(name + 2, "mqr") == 0) return j->k <= (j->letters['X'] == 'L' ? j->m : j->n);
  if (strcmp(name, "gehrd") == 0) return j->low >= 1 && j->low <= j->high && j->high <= j->n;
  return true;
}

/* m, n and the batch from the main matrix, k from the reflectors' scalars, which are operand 1 wherever there is a k.
 */
static int lapack_read_sizes(lapack_job *j) {
  assert(j->routine->main < LAPACK_SLOTS);
  const lapack_slot *s = &j->routine->slots[j->routine->main];
  const xlac_ffi_buffer *a = &j->frame->operands[s->operand];
  if (a->rank < 2) return lapack_misfit(j, "operand", s->operand);
  j->slots[j->routine->main] = a;
  j->m = a->dims[a->rank - 2], j->n = a->dims[a->rank - 1], j->batch = 1;
  for (uint32_t d = 0; d + 2 < a->rank; d++) j->batch *= a->dims[d];
  if (strchr(j->routine->args, 'k')) {
    const xlac_ffi_buffer *tau = &j->frame->operands[1];
    j->k = tau->rank ? tau->dims[tau->rank - 1] : 0;
  }
  /* Before anything is cast to Fortran's integers. */
  if (j->m > INT32_MAX || j->n > INT32_MAX || j->k > INT32_MAX)
    return j->frame->fail(j->frame, "LAPACK's sizes have 32 bits");
  if (s->shape == 'Q' && j->m != j->n) return lapack_misfit(j, "operand", s->operand);
  return 0;
}

/* An attribute of one character, given as its number. */
static int lapack_read_letter(lapack_job *j, char letter, const char *name, const char *allowed) {
  const xlac_ffi_attr *a = xlac_ffi_find(j->frame, name);
  if (!a || a->kind != XLAC_FFI_INT || a->i <= 0 || a->i > 127 || !strchr(allowed, (int)a->i))
    return j->frame->fail(j->frame, "its attribute %s must be one of the characters %s", name, allowed);
  j->letters[(unsigned char)letter] = (char)a->i;
  return 0;
}

/* Attributes that the routine has an argument for; others are not looked at. */
static int lapack_read_attrs(lapack_job *j) {
  static const struct {
    char letter;
    const char *name, *allowed;
  } known[] = {{'U', "uplo", "LU"}, {'J', "mode", "NVAS"},   {'L', "compute_left", "NV"}, {'V', "compute_right", "NV"},
               {'S', "side", "LR"}, {'T', "trans_x", "NTC"}, {'D', "diag", "NU"},         {'O', "sort", "N"}};
  const char *args = j->routine->args;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strchr(args, known[i].letter)) TRY(lapack_read_letter(j, known[i].letter, known[i].name, known[i].allowed));
  const xlac_ffi_attr *left = xlac_ffi_find(j->frame, "left"), *transpose = xlac_ffi_find(j->frame, "transpose");
  const xlac_ffi_attr *low = xlac_ffi_find(j->frame, "low"), *high = xlac_ffi_find(j->frame, "high");
  if (strchr(args, 'X')) {
    if (!left || !transpose) return j->frame->fail(j->frame, "it needs the attributes left and transpose");
    j->letters['X'] = left->i ? 'L' : 'R';
    j->letters['Y'] = !transpose->i ? 'N' : j->is_complex ? 'C' : 'T';
  }
  if (strchr(args, 'h')) {
    if (!low || !high) return j->frame->fail(j->frame, "it needs the attributes low and high");
    j->low = (int32_t)low->i, j->high = (int32_t)high->i;
  }
  /* gesdd takes A, S and N, as gesvd does; the eigenvalue routines N and V. */
  bool vectors =
      strncmp(j->routine->name, "ges", 3) == 0 && j->routine->name[3] != 0 && strchr("dv", j->routine->name[3]);
  if (j->letters['J'] && strchr(vectors ? "V" : "AS", j->letters['J']))
    return j->frame->fail(j->frame, "its mode %c is none of %s", j->letters['J'], j->routine->name);
  return 0;
}

/* Comes first: later checks index operands and results by the routine's row. */
static int lapack_check_counts(const lapack_job *j) {
  const xlac_ffi_frame *f = j->frame;
  const lapack_routine *r = j->routine;
  if (f->n_operands != r->n_operands || f->n_results != r->n_results)
    return j->frame->fail(j->frame, "it takes %d operands and gives %d results, not %u and %u", r->n_operands,
                          r->n_results, f->n_operands, f->n_results);
  if (r->info >= 0 && f->results[r->info].dtype != XLAC_FFI_S32) return lapack_misfit(j, "result", r->info);
  return 0;
}

/* In this order: each check relies on those before it. */
int lapack_check(lapack_job *j, bool *empty) {
  TRY(lapack_check_counts(j));
  TRY(lapack_read_attrs(j));
  TRY(lapack_read_sizes(j));
  for (int i = 0; i < LAPACK_SLOTS && j->routine->slots[i].shape; i++) TRY(lapack_check_slot(j, i));
  int info = j->routine->info;
  if (info >= 0 && j->frame->results[info].count != j->batch) return lapack_misfit(j, "result", info);
  *empty = j->m == 0 || j->n == 0 || j->batch == 0;
  if (!*empty && !lapack_sizes_fit(j))
    return j->frame->fail(j->frame, "its sizes don't fit LAPACK's %s", j->routine->name);
  return 0;
}
