/* Scalar programs on many lanes: each op's loop over a block, whose values lie in short arrays. The memory is laid out
 * anew by whoever begins: two tables of pointers, then a block of lanes for each constant and op. */
#include "program.h"

enum { LANES_BYTES = 1 << 15, LANES_LEAST = 64, LANES_MOST = 512 };

static size_t lanes_round(size_t bytes) {
  return (bytes + 63) & ~(size_t)63;
}

/* A block has as many lanes as keep all values in a first-level cache. */
static void lanes_measure(scalar_lanes *s) {
  const scalar_program *p = s->program;
  size_t inside = 0;
  for (uint32_t i = p->n_params; i < p->n_values; i++) inside += p->values[i].bytes;
  size_t lanes = LANES_BYTES / (inside + 1) / LANES_LEAST * LANES_LEAST;
  s->lanes = (uint32_t)(lanes < LANES_LEAST ? LANES_LEAST : lanes > LANES_MOST ? LANES_MOST : lanes);
  s->bytes = 2 * lanes_round(p->n_values * sizeof(char *));
  for (uint32_t i = p->n_params; i < p->n_values; i++) s->bytes += lanes_round((size_t)s->lanes * p->values[i].bytes);
}

const scalar_lanes *scalar_lanes_make(const scalar_program *p, base_arena *arena) {
  scalar_lanes *s = BASE_NEW(arena, scalar_lanes);
  if (!s || !(s->loops = BASE_ARRAY(arena, scalar_loop, (size_t)p->n_values + 1))) return NULL;
  s->program = p;
  for (uint32_t i = 0; i < p->n_values; i++) {
    const scalar_value *v = &p->values[i];
    uint8_t in[3] = {0, 0, 0};
    for (uint32_t k = 0; k < v->n_in; k++) in[k] = p->values[v->in[k]].dtype;
    bool found = !v->n_in || scalar_loop_of(&v->op, v->n_in, in, v->dtype, &s->loops[i]);
    assert(found && "the program is verified");
    (void)found;
  }
  lanes_measure(s);
  return s;
}

/* n copies of one element. */
static void lanes_fill(size_t bytes, const void *from, uint32_t n, char *to) {
  for (uint32_t i = 0; i < n; i++) memcpy(to + i * bytes, from, bytes);
}

void scalar_lanes_begin(scalar_lanes_run *x, const scalar_lanes *code, char *memory) {
  const scalar_program *p = code->program;
  size_t table = lanes_round(p->n_values * sizeof(char *));
  *x = (scalar_lanes_run){code, (char **)(void *)memory, (char **)(void *)(memory + table)};
  memory += 2 * table;
  for (uint32_t i = 0; i < p->n_params; i++) x->at[i] = x->own[i] = NULL;
  for (uint32_t i = p->n_params; i < p->n_values; i++) {
    const scalar_value *v = &p->values[i];
    x->at[i] = x->own[i] = memory;
    if (v->constant) lanes_fill(v->bytes, v->element, code->lanes, memory);
    memory += lanes_round((size_t)code->lanes * v->bytes);
  }
}

/* Whether results may be computed where they belong: what is written there must not be an operand that is still to be
 * read. One op reads each lane before it writes it. */
static bool lanes_may_aim(const scalar_program *p, const void *const *in, void *const *out) {
  for (uint32_t i = 0; i < p->n_params && p->n_outs == 1; i++)
    if (in[i] == out[0]) return p->n_ops == 1;
  return true;
}

/* All ops over n lanes, in order. Most loops need nothing done before or after. */
static void lanes_block(const scalar_lanes_run *x, int64_t n) {
  const scalar_program *p = x->code->program;
  const scalar_value *values = p->values;
  const scalar_loop *loops = x->code->loops;
  char *const *at = x->at;
  assert(n > 0 && n <= x->code->lanes);
  for (uint32_t i = p->n_params, end = p->n_values; i < end; i++) {
    const scalar_value *v = &values[i];
    const scalar_loop *l = &loops[i];
    if (!v->n_in) continue;
    const void *in[3] = {at[v->in[0]], at[v->in[1]], at[v->in[2]]}; /* what there is not is value 0 */
    if (l->work || l->wraps)
      scalar_loop_run(l, n, in, at[i]);
    else
      l->fn(l, n, in, at[i]);
  }
}

/* Lanes at..at+n. A result that is an op's is computed where it belongs, each value once; what is a parameter or a
 * constant, or is given twice, is copied at the end. */
static void lanes_part(scalar_lanes_run *x, bool aim, int64_t at, int64_t n, const void *const *in, void *const *out) {
  const scalar_program *p = x->code->program;
  for (uint32_t i = 0; i < p->n_params; i++)
    x->at[i] = in[i] ? (char *)(uintptr_t)in[i] + at * p->values[i].bytes : NULL; /* only ever read */
  for (uint32_t j = p->n_outs; j-- > 0;) {
    uint32_t v = p->outs[j];
    if (p->values[v].n_in) x->at[v] = aim ? (char *)out[j] + at * p->values[v].bytes : x->own[v];
  }
  lanes_block(x, n);
  for (uint32_t j = 0; j < p->n_outs; j++) {
    int64_t bytes = p->values[p->outs[j]].bytes;
    char *to = (char *)out[j] + at * bytes;
    if (x->at[p->outs[j]] != to) memmove(to, x->at[p->outs[j]], (size_t)(n * bytes));
  }
}

void scalar_lanes_go(scalar_lanes_run *x, int64_t begin, int64_t end, const void *const *in, void *const *out) {
  assert(begin >= 0);
  int64_t lanes = x->code->lanes;
  bool aim = lanes_may_aim(x->code->program, in, out);
  for (int64_t at = begin; at < end; at += lanes) lanes_part(x, aim, at, end - at < lanes ? end - at : lanes, in, out);
}
