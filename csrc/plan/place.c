/* Places in the frame: step by step, freed places are given again to what fits best, and results take the place of
 * operands that die where the step allows it.
 *
 * Memory is the frame, which grows as needed, and the spare arguments, which do not. Gaps between what is alive are
 * kept in a sorted list whose entries never touch; a gap that ends at the top of the frame may be extended. Where the
 * result has too many holes (1/32 of it, and at least 256 kB), all places are found anew at once (pack.c).
 *
 * Offsets in the frame are multiples of PLAN_ALIGN, a cache line. */
#include "borrow.h"
#include "pack.h"

enum {
  PLACE_HOLES = 32,        /* the frame's part that may be holes */
  PLACE_LEAST = 256 << 10, /* bytes of a frame whose holes matter */
  PLACE_MAX_BLOCKS = 2048  /* that are packed all at once */
};

/* Where something begins. Memory 0 is the frame, memory k + 1 spare number k. */
typedef struct place_spot {
  uint32_t memory;
  int64_t offset;
} place_spot;
/* Free bytes within what has been in use before. */
typedef struct place_gap {
  place_spot at;
  int64_t bytes;
} place_gap;
BASE_VEC(place_gaps, place_gap);
BASE_VEC(place_ends, uint32_t);

/* One program whose buffers get places. Gaps, top and live change step by step. */
typedef struct place_run {
  plan_program *p;
  plan_step *steps;
  plan_buffer *buffers;
  base_alloc alloc;
  place_gaps gaps; /* by memory and offset; none touches another */
  int64_t top, live, peak;
  uint32_t *ends, *next;  /* by step, the first buffer that dies there; by buffer, the next such */
  uint8_t *given;         /* by buffer: its place has passed on */
  uint32_t *after;        /* by buffer: whose place it has, or UINT32_MAX */
  const uint32_t *spares; /* by number: the argument's buffer, which is that of its leaf */
  plan_lenders lenders;
  uint32_t *seen; /* by buffer: how often it is among the present step's inputs */
} place_run;

static int64_t place_round(int64_t bytes) {
  assert(bytes >= 0);
  return (bytes + PLAN_ALIGN - 1) & ~(int64_t)(PLAN_ALIGN - 1);
}

/* Gaps stay sorted. */
static void place_drop_gap(place_run *x, uint32_t i) {
  memmove(x->gaps.items + i, x->gaps.items + i + 1, (x->gaps.n - i - 1) * sizeof *x->gaps.items);
  x->gaps.n--;
}

/* Where the gap ends. */
static place_spot place_behind(const place_gap *g) {
  return (place_spot){g->at.memory, g->at.offset + g->bytes};
}

static bool place_is_same(place_spot a, place_spot b) {
  return a.memory == b.memory && a.offset == b.offset;
}

/* By memory, then by offset: the order of the list. */
static bool place_is_after(place_spot a, place_spot b) {
  return a.memory != b.memory ? a.memory > b.memory : a.offset > b.offset;
}

/* At the end of the frame; the gap there grows. Gaps of spares come after those of the frame. */
static place_spot place_append(place_run *x, int64_t bytes) {
  assert(bytes >= 0);
  uint32_t n = x->gaps.n;
  while (n > 0 && x->gaps.items[n - 1].at.memory) n--;
  if (n && place_is_same(place_behind(&x->gaps.items[n - 1]), (place_spot){0, x->top})) {
    x->top = x->gaps.items[n - 1].at.offset;
    place_drop_gap(x, n - 1);
  }
  x->top += bytes;
  return (place_spot){0, x->top - bytes};
}

/* spare: memory of arguments will do, which is aligned to PLAN_SPARE_ALIGN only. Best fit: the smallest gap that is
 * large enough; the top of the frame where there is none. */
static place_spot place_take(place_run *x, int64_t bytes, bool spare) {
  assert(bytes >= 0);
  uint32_t best = UINT32_MAX;
  for (uint32_t i = 0; i < x->gaps.n; i++) {
    const place_gap *g = &x->gaps.items[i];
    if (g->bytes < bytes || (!spare && g->at.memory)) continue;
    if (best == UINT32_MAX || g->bytes < x->gaps.items[best].bytes) best = i;
  }
  if (best == UINT32_MAX) return place_append(x, bytes);
  place_gap *g = &x->gaps.items[best];
  place_spot at = g->at;
  g->at.offset += bytes;
  g->bytes -= bytes;
  if (g->bytes == 0) place_drop_gap(x, best);
  return at;
}

/* Merges with both neighbours. False when out of memory. */
static bool place_give(place_run *x, place_spot from, int64_t bytes) {
  assert(bytes >= 0);
  uint32_t at = x->gaps.n;
  while (at > 0 && place_is_after(x->gaps.items[at - 1].at, from)) at--;
  if (bytes == 0) return true;
  if (at > 0 && place_is_same(place_behind(&x->gaps.items[at - 1]), from)) {
    x->gaps.items[at - 1].bytes += bytes;
  } else {
    if (!BASE_VEC_PUSH(x->alloc, &x->gaps, ((place_gap){from, bytes}))) return false;
    memmove(x->gaps.items + at + 1, x->gaps.items + at, (x->gaps.n - 1 - at) * sizeof *x->gaps.items);
    x->gaps.items[at] = (place_gap){from, bytes};
    at++;
  }
  place_gap *g = x->gaps.items + at - 1;
  if (at < x->gaps.n && place_is_same(place_behind(g), g[1].at)) {
    g->bytes += g[1].bytes;
    place_drop_gap(x, at);
  }
  return true;
}

/* The spare that argument `buffer` is, or UINT32_MAX. */
static uint32_t place_spare_of(const place_run *x, uint32_t buffer) {
  for (uint32_t k = 0; k < x->p->n_spares; k++)
    if (x->spares[k] == buffer) return k;
  return UINT32_MAX;
}

/* Whether an argument is one of those donated. */
static bool place_is_spare(const place_run *x, uint32_t buffer) {
  return place_spare_of(x, buffer) != UINT32_MAX;
}

/* Where a buffer lies that has its place in the frame or in a spare argument, or that is one. */
static place_spot place_spot_of(const place_run *x, uint32_t buffer) {
  const plan_buffer *b = &x->buffers[buffer];
  if (b->place == PLAN_ARGUMENT) return (place_spot){place_spare_of(x, buffer) + 1, 0};
  return (place_spot){b->place == PLAN_SPARE ? b->number + 1 : 0, b->offset};
}

static void place_put(place_run *x, uint32_t buffer, place_spot at) {
  assert(at.offset >= 0);
  plan_buffer *b = &x->buffers[buffer];
  b->place = at.memory ? PLAN_SPARE : PLAN_FRAME;
  if (at.memory) b->number = at.memory - 1;
  b->offset = at.offset;
}

/* What the buffer has of its place. Spare room ends where the argument does. */
static int64_t place_room(const place_run *x, uint32_t buffer) {
  const plan_buffer *b = &x->buffers[buffer];
  place_spot at = place_spot_of(x, buffer);
  bool whole = at.memory && at.offset == 0 && b->bytes == x->buffers[x->spares[at.memory - 1]].bytes;
  return whole ? b->bytes & ~(int64_t)(PLAN_ALIGN - 1) : place_round(b->bytes);
}

/* A dying operand whose place output number `out` can have: that of its number, but for kernels, starts, calls and
 * branches. What takes over a place takes all of it: sizes are equal (plan_may_overwrite_input). */
static bool place_reuse(place_run *x, uint32_t step, uint32_t out) {
  assert(out < x->steps[step].n_out);
  plan_step *s = &x->steps[step];
  bool any = s->kind == PLAN_KERNEL || s->kind == PLAN_START || s->kind == PLAN_CALL || s->kind == PLAN_CONDITIONAL;
  for (uint32_t i = any ? 0 : out; i < s->n_in && (any || i == out); i++) {
    plan_buffer *from = &x->buffers[s->in[i]];
    bool elsewhere = x->lenders.of[s->in[i]] != UINT32_MAX;
    bool has_place = from->place == PLAN_FRAME || from->place == PLAN_SPARE || elsewhere || place_is_spare(x, s->in[i]);
    if (!has_place || from->last != plan_end_of(s, step) || x->given[s->in[i]] || !from->type) continue;
    if (!plan_may_overwrite_input(s, x->buffers, i, out, x->seen[s->in[i]])) continue;
    if (elsewhere && !plan_borrow_on(&x->lenders, x->p, x->buffers, s->in[i], s->out[out])) continue;
    if (!elsewhere) place_put(x, s->out[out], place_spot_of(x, s->in[i]));
    x->after[s->out[out]] = s->in[i];
    x->given[s->in[i]] = 1;
    return true;
  }
  return false;
}

static void place_new(place_run *x, uint32_t buffer) {
  place_put(x, buffer, place_take(x, place_round(x->buffers[buffer].bytes), x->buffers[buffer].type != NULL));
  if (x->buffers[buffer].place == PLAN_FRAME) x->live += x->buffers[buffer].bytes;
}

/* Room for what later products of a tile that begins here read packed. */
static void place_tile(place_run *x, uint32_t step) {
  const plan_tile *t = plan_tile_at(x->p, step);
  for (uint32_t i = step + 1; t && i < t->first + t->n; i++)
    if (x->steps[i].kind == PLAN_ROUTINE && x->buffers[x->steps[i].frame].first == step)
      place_new(x, x->steps[i].frame);
}

/* First the places of what the step writes, while what it reads still has its own; then the places of what dies are
 * given back. */
static bool place_step(place_run *x, uint32_t step) {
  assert(step < x->p->n_steps);
  const plan_step *s = &x->p->steps[step];
  for (uint32_t i = 0; i < s->n_in; i++) x->seen[s->in[i]]++;
  for (uint32_t i = 0; i <= s->n_out; i++) {
    uint32_t b = i < s->n_out ? s->out[i] : s->frame;
    if (b == UINT32_MAX || x->buffers[b].place != PLAN_FRAME || x->buffers[b].first != step) continue;
    if (i < s->n_out && place_reuse(x, step, i)) continue;
    if (plan_borrow(&x->lenders, x->p, x->buffers, b)) continue;
    place_new(x, b);
  }
  place_tile(x, step);
  for (uint32_t i = 0; i < s->n_in; i++) x->seen[s->in[i]] = 0;
  if (x->live > x->peak) x->peak = x->live;
  for (uint32_t b = x->ends[step]; b != UINT32_MAX; b = x->next[b]) {
    if (x->given[b] || x->buffers[b].borrowed) continue;
    if (x->buffers[b].place == PLAN_FRAME) x->live -= x->buffers[b].bytes;
    if (!place_give(x, place_spot_of(x, b), place_room(x, b))) return false;
  }
  return true;
}

/* Which buffers die at which step. Lists through x->next, one for each step. */
static void place_list_ends(place_run *x) {
  for (uint32_t s = 0; s < x->p->n_steps; s++) x->ends[s] = UINT32_MAX;
  for (uint32_t b = 0; b < x->p->n_buffers; b++) {
    bool made = x->buffers[b].place == PLAN_FRAME && x->buffers[b].first != UINT32_MAX;
    if (!made && !(place_is_spare(x, b) && x->buffers[b].last != UINT32_MAX)) continue;
    assert(x->buffers[b].last < x->p->n_steps);
    x->next[b] = x->ends[x->buffers[b].last];
    x->ends[x->buffers[b].last] = b;
  }
}

/* Arguments that nobody reads are room from the start. False when out of memory. */
static bool place_begin_spares(place_run *x) {
  bool ok = true;
  for (uint32_t k = 0; k < x->p->n_spares && ok; k++) {
    uint32_t b = x->spares[k];
    if (x->buffers[b].last == UINT32_MAX) ok = place_give(x, place_spot_of(x, b), place_room(x, b));
  }
  return ok;
}

/* Up to where each spare argument is used. */
static int64_t place_spare_bytes(const place_run *x) {
  int64_t all = 0;
  for (uint32_t k = 0; k < x->p->n_spares; k++) {
    int64_t most = 0;
    for (uint32_t b = 0; b < x->p->n_buffers; b++) {
      const plan_buffer *in = &x->buffers[b];
      if (in->place == PLAN_SPARE && in->number == k && in->offset + in->bytes > most) most = in->offset + in->bytes;
    }
    all += most;
  }
  return all;
}

/* Buffers that have each other's place are one block. */
static uint32_t place_blocks(const place_run *x, plan_block *blocks, uint32_t *block) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < x->p->n_buffers; i++) {
    const plan_buffer *b = &x->buffers[i];
    block[i] = UINT32_MAX;
    if (b->place != PLAN_FRAME || b->first == UINT32_MAX) continue;
    if (x->after[i] != UINT32_MAX && block[x->after[i]] != UINT32_MAX) {
      block[i] = block[x->after[i]];
      if (b->last > blocks[block[i]].last) blocks[block[i]].last = b->last;
      continue;
    }
    blocks[n] = (plan_block){.bytes = place_round(b->bytes), .first = b->first, .last = b->last, .number = n};
    block[i] = n++;
  }
  return n;
}

/* All places anew, where that makes the frame smaller. false when out of memory. Blocks that are too many are left as
 * they are: packing takes time square in them. */
static bool place_pack(place_run *x, int64_t begin, base_arena *scratch) {
  assert(begin >= 0);
  plan_block *blocks = BASE_ARRAY(scratch, plan_block, (size_t)x->p->n_buffers + 1);
  uint32_t *block = BASE_ARRAY(scratch, uint32_t, (size_t)x->p->n_buffers + 1);
  if (!blocks || !block) return false;
  uint32_t n = place_blocks(x, blocks, block);
  if (n > PLACE_MAX_BLOCKS) return true;
  int64_t top = plan_pack(blocks, n, begin, scratch);
  if (top < 0) return false;
  if (top >= x->top) return true;
  for (uint32_t i = 0; i < x->p->n_buffers; i++)
    if (block[i] != UINT32_MAX) x->buffers[i].offset = blocks[block[i]].offset;
  x->top = top;
  return true;
}

/* Times and sizes of buffers are given; place, number, offset, and in_place of steps are set. */
int plan_place_buffers(plan_program *p, plan_step *steps, plan_buffer *buffers, base_alloc alloc, xlac_error *err) {
  assert(p && steps && buffers);
  place_run x = {.p = p, .steps = steps, .buffers = buffers, .alloc = alloc};
  base_arena scratch;
  base_arena_init(&scratch, alloc);
  x.ends = BASE_ARRAY(&scratch, uint32_t, (size_t)p->n_steps + 1);
  x.next = BASE_ARRAY(&scratch, uint32_t, (size_t)p->n_buffers + 1);
  x.after = BASE_ARRAY(&scratch, uint32_t, (size_t)p->n_buffers + 1);
  x.given = base_arena_zalloc(&scratch, (size_t)p->n_buffers + 1);
  x.seen = base_arena_zalloc(&scratch, ((size_t)p->n_buffers + 1) * sizeof *x.seen);
  bool ok = x.ends && x.next && x.after && x.given && x.seen && plan_find_lenders(&x.lenders, p, buffers, &scratch);
  int64_t begin = place_round((int64_t)p->n_buffers * p->device.buffer_bytes);
  x.top = begin;
  x.spares = p->spares; /* the buffers of arguments have the numbers of their leaves */
  if (ok) ok = place_begin_spares(&x);
  if (ok) place_list_ends(&x);
  if (ok) memset(x.after, 0xFF, (size_t)p->n_buffers * sizeof *x.after);
  for (uint32_t s = 0; ok && s < p->n_steps; s++) ok = place_step(&x, s);
  if (ok && x.top - begin > x.peak + x.peak / PLACE_HOLES && x.peak >= PLACE_LEAST)
    ok = place_pack(&x, begin, &scratch);
  p->frame_bytes = x.top;
  p->peak_bytes = x.peak;
  p->spare_bytes = place_spare_bytes(&x);
  BASE_VEC_FREE(alloc, &x.gaps);
  base_arena_free(&scratch);
  return ok ? 0 : base_oom(err, "a plan");
}
