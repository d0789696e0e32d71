/* Tridiagonal systems for one number type: TD_NUMBER, its real type TD_REAL, and the names made by TD_NAME(x). The
 * method of LAPACK's xLAGTF and xLAGTS, fused: LU with row exchanges, the right sides going along; pivots that are so
 * small that dividing by them overflows are moved away from zero by a multiple of the rounding error of U. So singular
 * systems have a solution too, which is what inverse iteration wants. */

/* The three diagonals of U from the main one up, a row each. */
typedef struct TD_NAME(row) {
  TD_NUMBER at[3];
} TD_NAME(row);

/* The system of one item: n rows, k right sides, columns apart by n. */
typedef struct TD_NAME(system) {
  int64_t n, k;
  const TD_NUMBER *below, *main, *above, *right;
  TD_NUMBER *x;
  TD_NAME(row) * u;
} TD_NAME(system);

/* Takes the right sides of row i into row `to` of x, less `factor` of row `with` of x (where with is not negative). */
static void TD_NAME(take)(const TD_NAME(system) * s, int64_t i, int64_t with, TD_NUMBER factor) {
  for (int64_t c = 0; c < s->k; c++) {
    TD_NUMBER v = s->right[c * s->n + i];
    s->x[c * s->n + i] = with < 0 ? v : v - factor * s->x[c * s->n + with];
  }
}

/* Rows i and i + 1 change places, and the first is eliminated from what was there. */
static void TD_NAME(take_exchanged)(const TD_NAME(system) * s, int64_t i, TD_NUMBER factor) {
  for (int64_t c = 0; c < s->k; c++) {
    TD_NUMBER *x = s->x + c * s->n + i, v = s->right[c * s->n + i + 1];
    x[1] = x[0] - factor * v;
    x[0] = v;
  }
}

/* Row i + 1 becomes the pivot row, and what was row i, less a multiple of it, is row i + 1: U gets a second
 * diagonal there. */
static void TD_NAME(exchange)(const TD_NAME(system) * s, int64_t i) {
  TD_NUMBER *u = s->u[i].at, *next = s->u[i + 1].at;
  const TD_NUMBER factor = u[0] / s->below[i + 1], old = u[1];
  u[0] = s->below[i + 1];
  u[1] = s->main[i + 1];
  next[0] = old - factor * s->main[i + 1];
  if (i < s->n - 2) {
    u[2] = s->above[i + 1];
    next[1] = -factor * s->above[i + 1];
  }
  TD_NAME(take_exchanged)(s, i, factor);
}

/* Without an exchange: row i stays the pivot row. */
static void TD_NAME(eliminate)(const TD_NAME(system) * s, int64_t i) {
  TD_NUMBER *u = s->u[i].at, *next = s->u[i + 1].at;
  const TD_NUMBER factor = s->below[i + 1] / u[0];
  next[0] -= factor * u[1];
  next[1] = s->above[i + 1];
  TD_NAME(take)(s, i + 1, i, factor);
}

/* U, and x as L leaves the right sides. Gives the largest element of U. */
static TD_REAL TD_NAME(factor)(const TD_NAME(system) * s) {
  TD_NAME(row) *u = s->u;
  memset(u, 0, (size_t)s->n * sizeof *u);
  u[0].at[0] = s->main[0];
  u[0].at[1] = s->above[0];
  TD_NAME(take)(s, 0, -1, 0);
  TD_REAL first = TD_ABS(u[0].at[0]), second = TD_ABS(u[0].at[1]);
  TD_REAL most = first < second ? second : first, scale = first + second;
  for (int64_t i = 0; i < s->n - 1; i++) {
    TD_REAL below = TD_ABS(s->below[i + 1]);
    TD_REAL scale_next = below + TD_ABS(s->main[i + 1]) + (i < s->n - 2 ? TD_ABS(s->above[i + 1]) : 0);
    u[i + 1].at[0] = s->main[i + 1];
    if (s->below[i + 1] == 0) {
      scale = scale_next;
      u[i + 1].at[1] = s->above[i + 1];
      TD_NAME(take)(s, i + 1, -1, 0);
    } else if (below / scale_next <= (u[i].at[0] == 0 ? 0 : TD_ABS(u[i].at[0]) / scale)) {
      scale = scale_next;
      TD_NAME(eliminate)(s, i);
    } else {
      TD_NAME(exchange)(s, i);
      scale = TD_ABS(u[i + 1].at[0]) + TD_ABS(u[i + 1].at[1]);
    }
    for (int d = 0; i < s->n - 2 && d < 3; d++) most = most < TD_ABS(u[i].at[d]) ? TD_ABS(u[i].at[d]) : most;
  }
  TD_REAL last = TD_ABS(u[s->n - 1].at[0]);
  return most < last ? last : most;
}

/* A pivot by which row i of x can be divided; the row is scaled where the pivot is. */
static TD_NUMBER TD_NAME(pivot)(const TD_NAME(system) * s, int64_t i, TD_NUMBER pivot, TD_REAL perturb) {
  const TD_REAL least = TD_LEAST, most = 1 / least;
  TD_REAL largest = 0;
  for (int64_t c = 0; c < s->k; c++) {
    TD_REAL v = TD_ABS(s->x[c * s->n + i]);
    largest = largest < v ? v : largest;
  }
  perturb = perturb < least ? least : perturb; /* zero would go on for ever */
  if (signbit(TD_RE(pivot))) perturb = -perturb;
  for (TD_REAL size = TD_ABS(pivot); size < 1; size = TD_ABS(pivot)) {
    if (size < least ? size == 0 || largest * least > size : largest > size * most) {
      pivot += perturb;
      perturb *= 2;
      continue;
    }
    if (size >= least) break;
    for (int64_t c = 0; c < s->k; c++) s->x[c * s->n + i] *= most;
    return pivot * most;
  }
  return pivot;
}

/* Factors, then substitutes backwards. One right side of one equation is divided, all others are multiplied with
 * the inverse pivot. */
static void TD_NAME(solve)(const TD_NAME(system) * s) {
  const TD_REAL perturb = TD_EPSILON * TD_NAME(factor)(s);
  for (int64_t i = s->n - 1; i >= 0; i--) {
    for (int64_t c = 0; c < s->k; c++) {
      TD_NUMBER *x = s->x + c * s->n + i;
      if (i + 1 < s->n) *x -= s->u[i].at[1] * x[1];
      if (i + 2 < s->n) *x -= s->u[i].at[2] * x[2];
    }
    const TD_NUMBER p = TD_NAME(pivot)(s, i, s->u[i].at[0], perturb), inverse = 1 / p;
    for (int64_t c = 0; c < s->k; c++) {
      TD_NUMBER *x = s->x + c * s->n + i;
      *x = s->n == 1 ? *x / p : *x * inverse;
    }
  }
}

/* Systems begin .. end of the batch. memory: n rows of U. */
static void TD_NAME(items)(const tridiagonal_job *j, char *memory, uint64_t begin, uint64_t end) {
  TD_NAME(system) s = {.n = j->n, .k = j->k, .u = (TD_NAME(row) *)(void *)memory};
  for (uint64_t i = begin; i < end; i++) {
    const uint64_t at = i * (uint64_t)j->n;
    s.below = (const TD_NUMBER *)j->frame->operands[0].data + at;
    s.main = (const TD_NUMBER *)j->frame->operands[1].data + at;
    s.above = (const TD_NUMBER *)j->frame->operands[2].data + at;
    s.right = (const TD_NUMBER *)j->frame->operands[3].data + at * (uint64_t)j->k;
    s.x = (TD_NUMBER *)j->frame->results[0].data + at * (uint64_t)j->k;
    TD_NAME(solve)(&s);
  }
}

#undef TD_NUMBER
#undef TD_REAL
#undef TD_NAME
#undef TD_ABS
#undef TD_RE
#undef TD_LEAST
#undef TD_EPSILON
