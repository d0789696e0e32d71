/* reduce to few results: one element after another, as the computation says. Many computations leave the
 * accumulators as they are for most elements, an arg-max for nearly all: so blocks of elements are tried at once,
 * all with the present accumulators. Where none of them would change these, the block is done; else all up to the
 * first that does. Equal to evaluating one after another, for any reducer.
 *
 * A guess that fails early costs a block's work for an element or two. After BFEW_PATIENCE of those, elements are
 * taken one by one for a while, then one more guess is made. */
#include "reduce_body.h"

enum {
  BFEW_GUESS = 64,   /* elements that are tried at once */
  BFEW_GOOD = 8,     /* so many at least make a guess worth its while */
  BFEW_PATIENCE = 3, /* bad guesses before elements are taken one by one, BFEW_REST of them */
  BFEW_REST = 1 << 11,
  BFEW_POLL = 1 << 16 /* elements between two looks at whether to stop */
};

/* What computes one result. The accumulators are in the slots of the first parameters; for a guess they are
 * repeated in `same`, and what the body gives is in `fresh`. */
typedef struct bfew_state {
  const cpu_reduction *x;
  const void *const *operands;
  cpu_body_one one;
  uint32_t n_reads;
  cpu_body_read *reads;
  scalar_lanes_run lanes;
  const void **in; /* accumulators, repeated, then elements */
  void **same, **fresh;
  bool repeated; /* what is in `same` is what the slots have */
  int patience;
  int64_t rest; /* elements to take one by one */
} bfew_state;

/* Lays f out at `memory`, and gives the bytes; memory NULL: only these. */
static int64_t bfew_memory(const cpu_reduction *x, char *memory, bfew_state *f) {
  int64_t used = 0, lists = (int64_t)(x->n * sizeof(void *));
  char *one = cpu_share_take(&memory, &used, (int64_t)x->body->one_bytes);
  char *lanes = cpu_share_take(&memory, &used, (int64_t)x->body->lanes->bytes);
  f->reads = cpu_share_take(&memory, &used, (int64_t)(x->n * sizeof *f->reads));
  f->in = cpu_share_take(&memory, &used, 2 * lists);
  f->same = cpu_share_take(&memory, &used, lists);
  f->fresh = cpu_share_take(&memory, &used, lists);
  for (uint32_t i = 0; i < x->n; i++) {
    void *same = cpu_share_take(&memory, &used, BFEW_GUESS * SCALAR_BYTES);
    void *fresh = cpu_share_take(&memory, &used, BFEW_GUESS * SCALAR_BYTES);
    if (!memory) continue;
    f->same[i] = same;
    f->fresh[i] = fresh;
  }
  if (!memory) return used;
  cpu_body_one_begin(&f->one, x->body, one);
  scalar_lanes_begin(&f->lanes, x->body->lanes, lanes);
  return used;
}

/* The layout is the same code that lays the memory out. */
int64_t cpu_reduce_few_bytes(const cpu_reduction *x) {
  bfew_state f;
  return bfew_memory(x, NULL, &f);
}

/* The elements that the computation reads: an operand whose parameter it ignores is never looked at. */
static void bfew_find_reads(bfew_state *f) {
  const cpu_reduction *x = f->x;
  f->n_reads = 0;
  for (uint32_t i = 0; i < x->n; i++)
    if (x->body->program->values[x->n + i].read)
      f->reads[f->n_reads++] =
          (cpu_body_read){x->bytes[i], f->operands[i], x->bytes[i], cpu_body_slot(&f->one, x->n + i)};
}

/* n elements from `at` on, `stride` apart. */
static void bfew_one_by_one(bfew_state *f, int64_t at, int64_t stride, int64_t n) {
  assert(at >= 0 && n >= 0);
  for (int64_t k = 0; k < n; k++, at += stride) {
    cpu_body_fetch(f->n_reads, f->reads, at);
    cpu_body_one_run(&f->one);
    cpu_body_one_feed(&f->one);
  }
  f->repeated = false;
}

/* Whether the results of a lane are the accumulators, bit by bit. */
static bool bfew_is_same(const bfew_state *f, int64_t lane) {
  for (uint32_t i = 0; i < f->x->n; i++) {
    size_t bytes = f->x->bytes[i];
    if (memcmp((char *)f->fresh[i] + (size_t)lane * bytes, f->same[i], bytes) != 0) return false;
  }
  return true;
}

/* How many of n lanes, from the first on, leave the accumulators as they are. Bits are compared: NaN is the same
 * as itself. */
static int64_t bfew_count_same(const bfew_state *f, int64_t n) {
  bool all = true;
  for (uint32_t i = 0; i < f->x->n && all; i++) all = memcmp(f->fresh[i], f->same[i], (size_t)n * f->x->bytes[i]) == 0;
  if (all) return n;
  int64_t lane = 0;
  while (bfew_is_same(f, lane)) lane++;
  return lane;
}

/* Elements from `at` on, which lie together: at most BFEW_GUESS. The first lane that changes an accumulator is
 * right, too: all before it have changed nothing. Returns how many elements are done, which is at least one. */
static int64_t bfew_guess(bfew_state *f, int64_t at, int64_t n) {
  assert(n > 0 && f->rest <= 0);
  const cpu_reduction *x = f->x;
  n = interp_min(n, BFEW_GUESS);
  for (uint32_t i = 0; i < x->n; i++) {
    if (!f->repeated) vm_fill(x->bytes[i], cpu_body_slot(&f->one, i), BFEW_GUESS, f->same[i]);
    f->in[i] = f->same[i];
    f->in[x->n + i] = (const char *)f->operands[i] + at * x->bytes[i];
  }
  f->repeated = true;
  scalar_lanes_go(&f->lanes, 0, n, f->in, f->fresh);
  int64_t same = bfew_count_same(f, n);
  if (same >= BFEW_GOOD || same == n)
    f->patience = BFEW_PATIENCE;
  else if (--f->patience <= 0)
    f->rest = BFEW_REST;
  if (same == n) return n;
  for (uint32_t i = 0; i < x->n; i++)
    memcpy(cpu_body_slot(&f->one, i), (char *)f->fresh[i] + same * x->bytes[i], x->bytes[i]);
  f->repeated = false;
  return same + 1;
}

/* n elements along the innermost reduced dimension; guesses are made only where they are neighbours. */
static void bfew_row(bfew_state *f, int64_t at, int64_t stride, int64_t n) {
  for (int64_t done = 0; done < n;) {
    int64_t left = n - done, here = at + done * stride;
    if (stride == 1 && f->rest <= 0 && left >= BFEW_GOOD) {
      done += bfew_guess(f, here, left);
      continue;
    }
    if (stride == 1 && f->rest > 0) left = interp_min(left, f->rest);
    bfew_one_by_one(f, here, stride, left);
    f->rest -= left;
    f->patience = 1; /* one more try */
    done += left;
  }
}

/* One result from its initial values on. A run that is to stop leaves it unwritten. */
static void bfew_result(const cpu_reduce_work *w, bfew_state *f, int64_t result) {
  assert(result >= 0 && result < w->x->results);
  const cpu_reduction *x = w->x;
  int64_t from = cpu_reduce_place(x->n_kept, x->kept, x->kept_stride, result);
  int64_t inner = x->n_reduced ? x->reduced[x->n_reduced - 1] : 1;
  int64_t stride = x->n_reduced ? x->reduced_stride[x->n_reduced - 1] : 0;
  for (uint32_t i = 0; i < x->n; i++) cpu_body_copy(x->bytes[i], cpu_body_slot(&f->one, i), w->r->in[x->n + i]);
  f->repeated = false;
  f->patience = BFEW_PATIENCE;
  f->rest = 0;
  for (int64_t s = 0; s < x->steps;) {
    int64_t at = from + cpu_reduce_place(x->n_reduced, x->reduced, x->reduced_stride, s);
    int64_t row = interp_min(BFEW_POLL, inner - s % inner);
    if (rt_pool_stopping(w->r->run->exe->pool)) return;
    bfew_row(f, at, stride, row);
    s += row;
  }
  for (uint32_t i = 0; i < x->n; i++)
    cpu_body_copy(x->bytes[i], (char *)w->r->out[i] + result * x->bytes[i], cpu_body_slot(&f->one, i));
}

/* One state serves all results of a range. */
void cpu_reduce_few(void *ctx, size_t begin, size_t end) {
  const cpu_reduce_work *w = ctx;
  bfew_state f = {.x = w->x, .operands = w->r->in};
  (void)bfew_memory(w->x, cpu_share_memory(&w->x->share, w->r->scratch, begin), &f);
  bfew_find_reads(&f);
  assert(begin <= end && end <= (size_t)w->x->results);
  for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) bfew_result(w, &f, i);
}
