/* Tridiagonal systems for one number type: NUMBER, its real type REAL, and the names made by NAME(x). The method of
 * LAPACK's xLAGTF and xLAGTS, fused: LU with row exchanges, the right sides going along; pivots that are so small that
 * dividing by them overflows are moved away from zero by a multiple of the rounding error of U. So singular systems
 * have a solution too, which is what inverse iteration wants. */

/* The three diagonals of U from the main one up, a row each. */
typedef struct NAME(row) {
  NUMBER at[3];
} NAME(row);

/* The system of one item: n rows, k right sides, columns apart by n. */
typedef struct NAME(system) {
  int64_t n, k;
  const NUMBER *below, *main, *above, *right;
  NUMBER *x;
  NAME(row) * u;
} NAME(system);

/* Takes the right sides of row i into row `to` of x, less `factor` of row `with` of x (where with is not negative). */
static void NAME(take)(const NAME(system) * s, int64_t i, int64_t with, NUMBER factor) {
  for (int64_t c = 0; c < s->k; c++) {
    NUMBER v = s->right[c * s->n + i];
    s->x[c * s->n + i] = with < 0 ? v : v - factor * s->x[c * s->n + with];
  }
}

/* Rows i and i + 1 change places, and the first is eliminated from what was there. */
static void NAME(take_exchanged)(const NAME(system) * s, int64_t i, NUMBER factor) {
  for (int64_t c = 0; c < s->k; c++) {
    NUMBER *x = s->x + c * s->n + i, v = s->right[c * s->n + i + 1];
    x[1] = x[0] - factor * v;
    x[0] = v;
  }
}

static void NAME(exchange)(const NAME(system) * s, int64_t i) {
  NUMBER *u = s->u[i].at, *next = s->u[i + 1].at;
  const NUMBER factor = u[0] / s->below[i + 1], old = u[1];
  u[0] = s->below[i + 1];
  u[1] = s->main[i + 1];
  next[0] = old - factor * s->main[i + 1];
  if (i < s->n - 2) {
    u[2] = s->above[i + 1];
    next[1] = -factor * s->above[i + 1];
  }
  NAME(take_exchanged)(s, i, factor);
}

static void NAME(eliminate)(const NAME(system) * s, int64_t i) {
  NUMBER *u = s->u[i].at, *next = s->u[i + 1].at;
  const NUMBER factor = s->below[i + 1] / u[0];
  next[0] -= factor * u[1];
  next[1] = s->above[i + 1];
  NAME(take)(s, i + 1, i, factor);
}

/* U, and x as L leaves the right sides. Gives the largest element of U. */
static REAL NAME(factor)(const NAME(system) * s) {
  NAME(row) *u = s->u;
  memset(u, 0, (size_t)s->n * sizeof *u);
  u[0].at[0] = s->main[0];
  u[0].at[1] = s->above[0];
  NAME(take)(s, 0, -1, 0);
  REAL first = ABS(u[0].at[0]), second = ABS(u[0].at[1]);
  REAL most = first < second ? second : first, scale = first + second;
  for (int64_t i = 0; i < s->n - 1; i++) {
    REAL below = ABS(s->below[i + 1]);
    REAL scale_next = below + ABS(s->main[i + 1]) + (i < s->n - 2 ? ABS(s->above[i + 1]) : 0);
    u[i + 1].at[0] = s->main[i + 1];
    if (s->below[i + 1] == 0) {
      scale = scale_next;
      u[i + 1].at[1] = s->above[i + 1];
      NAME(take)(s, i + 1, -1, 0);
    } else if (below / scale_next <= (u[i].at[0] == 0 ? 0 : ABS(u[i].at[0]) / scale)) {
      scale = scale_next;
      NAME(eliminate)(s, i);
    } else {
      NAME(exchange)(s, i);
      scale = ABS(u[i + 1].at[0]) + ABS(u[i + 1].at[1]);
    }
    for (int d = 0; i < s->n - 2 && d < 3; d++) most = most < ABS(u[i].at[d]) ? ABS(u[i].at[d]) : most;
  }
  REAL last = ABS(u[s->n - 1].at[0]);
  return most < last ? last : most;
}

/* A pivot by which row i of x can be divided; the row is scaled where the pivot is. */
static NUMBER NAME(pivot)(const NAME(system) * s, int64_t i, NUMBER pivot, REAL perturb) {
  const REAL least = LEAST, most = 1 / least;
  REAL largest = 0;
  for (int64_t c = 0; c < s->k; c++) {
    REAL v = ABS(s->x[c * s->n + i]);
    largest = largest < v ? v : largest;
  }
  perturb = perturb < least ? least : perturb; /* zero would go on for ever */
  if (signbit(RE(pivot))) perturb = -perturb;
  for (REAL size = ABS(pivot); size < 1; size = ABS(pivot)) {
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

static void NAME(solve)(const NAME(system) * s) {
  const REAL perturb = EPSILON * NAME(factor)(s);
  for (int64_t i = s->n - 1; i >= 0; i--) {
    for (int64_t c = 0; c < s->k; c++) {
      NUMBER *x = s->x + c * s->n + i;
      if (i + 1 < s->n) *x -= s->u[i].at[1] * x[1];
      if (i + 2 < s->n) *x -= s->u[i].at[2] * x[2];
    }
    const NUMBER p = NAME(pivot)(s, i, s->u[i].at[0], perturb), inverse = 1 / p;
    for (int64_t c = 0; c < s->k; c++) {
      NUMBER *x = s->x + c * s->n + i;
      *x = s->n == 1 ? *x / p : *x * inverse;
    }
  }
}

static void NAME(items)(const tridiagonal_job *j, char *memory, uint64_t begin, uint64_t end) {
  NAME(system) s = {.n = j->n, .k = j->k, .u = (NAME(row) *)(void *)memory};
  for (uint64_t i = begin; i < end; i++) {
    const uint64_t at = i * (uint64_t)j->n;
    s.below = (const NUMBER *)j->frame->operands[0].data + at;
    s.main = (const NUMBER *)j->frame->operands[1].data + at;
    s.above = (const NUMBER *)j->frame->operands[2].data + at;
    s.right = (const NUMBER *)j->frame->operands[3].data + at * (uint64_t)j->k;
    s.x = (NUMBER *)j->frame->results[0].data + at * (uint64_t)j->k;
    NAME(solve)(&s);
  }
}

#undef NUMBER
#undef REAL
#undef NAME
#undef ABS
#undef RE
#undef LEAST
#undef EPSILON
