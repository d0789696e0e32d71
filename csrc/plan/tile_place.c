/* Places of buffers, with tiles that have products in mind. Such a tile is found as if each buffer had memory of its
 * own; then what its steps read and write lives until its end, so that none of it gets another's place in between, and
 * what only the tile reads gets no place at all: of the scores of an attention, or of a layer before its activation,
 * there are never more than some rows. When all else has its place, each tile is looked at once more, since results may
 * lie in arguments' memory; should one not hold, the program has none with products. */
#include "build.h"

typedef struct tpl_run {
  plan_program *p;
  plan_step *steps;
  plan_buffer *buffers;
  const fusion_model *m;
  base_arena *arena;
  xlac_error *err;
} tpl_run;

static void tpl_lay_apart(const tpl_run *x) {
  int64_t at = 0;
  for (uint32_t i = 0; i < x->p->n_buffers; i++) {
    if (x->buffers[i].place != PLAN_FRAME) continue;
    x->buffers[i].offset = at;
    at += x->buffers[i].bytes;
  }
}

/* What the tile's steps read or write lives to its end. */
static void tpl_keep(const tpl_run *x, uint32_t buffer, uint32_t end) {
  plan_buffer *b = &x->buffers[buffer];
  if (b->last != UINT32_MAX && b->last < end) b->last = end;
}

/* Lives as long as the tile, and with room for what is packed. */
static void tpl_widen_scratch(const tpl_run *x, const plan_step *s, const plan_tile *t) {
  assert(s->frame != UINT32_MAX);
  plan_buffer *b = &x->buffers[s->frame];
  b->bytes = t->batches ? 0 : s->routine->lines.packed;
  b->first = t->first;
  b->last = t->first + t->n - 1;
}

static void tpl_enter(const tpl_run *x, const plan_tile *t) {
  for (uint32_t i = t->first; i < t->first + t->n; i++) {
    const plan_step *s = &x->steps[i];
    for (uint32_t j = 0; j < s->n_out; j++)
      if (x->buffers[s->out[j]].place == PLAN_FRAME && plan_tile_keeps(x->p, t, i, s->out[j]))
        x->buffers[s->out[j]].place = PLAN_TILE;
    if (s->kind == PLAN_ROUTINE) tpl_widen_scratch(x, s, t);
  }
  for (uint32_t i = t->first; i < t->first + t->n; i++) {
    const plan_step *s = &x->steps[i];
    for (uint32_t j = 0; j < s->n_in; j++) tpl_keep(x, s->in[j], t->first + t->n - 1);
    for (uint32_t j = 0; j < s->n_out; j++) tpl_keep(x, s->out[j], t->first + t->n - 1);
  }
}

/* Lives as the steps have them; but scratch memory of products is theirs as long as the tile runs. */
static void tpl_restore_lives(const tpl_run *x, const plan_buffer *before) {
  for (uint32_t i = 0; i < x->p->n_buffers; i++)
    if (before[i].type) x->buffers[i].last = before[i].last;
}

static bool tpl_all_hold(const tpl_run *x) {
  for (uint32_t i = 0; i < x->p->n_tiles; i++)
    if (!plan_tile_holds(x->p, &x->p->tiles[i])) return false;
  return true;
}

/* As if each buffer of the frame had memory of its own. */
static int tpl_find(const tpl_run *x, const plan_buffer *before) {
  tpl_lay_apart(x);
  TRY(plan_find_tiles(x->p, x->m, true, x->arena, x->err));
  memcpy(x->buffers, before, x->p->n_buffers * sizeof *before);
  return 0;
}

/* Around the tiles of p. */
static int tpl_place_around(const tpl_run *x, const plan_buffer *before) {
  for (uint32_t i = 0; i < x->p->n_tiles; i++) tpl_enter(x, &x->p->tiles[i]);
  TRY(plan_place_buffers(x->p, x->steps, x->buffers, x->arena->alloc, x->err));
  tpl_restore_lives(x, before);
  if (tpl_all_hold(x)) return 0;
  memcpy(x->buffers, before, x->p->n_buffers * sizeof *before);
  x->p->n_tiles = 0;
  return plan_place_buffers(x->p, x->steps, x->buffers, x->arena->alloc, x->err);
}

static bool tpl_may_have_products(const tpl_run *x) {
  for (uint32_t i = 0; i < x->p->n_steps; i++)
    if (x->steps[i].kind == PLAN_ROUTINE && x->steps[i].routine->lines.n) return true;
  return false;
}

int plan_place_with_tiles(plan_program *p, plan_step *steps, plan_buffer *buffers, const fusion_model *m,
                          base_arena *arena, xlac_error *err) {
  tpl_run x = {p, steps, buffers, m, arena, err};
  base_arena scratch;
  if (!tpl_may_have_products(&x)) {
    TRY(plan_place_buffers(p, steps, buffers, arena->alloc, err));
    return plan_find_tiles(p, m, false, arena, err);
  }
  base_arena_init(&scratch, arena->alloc);
  const plan_buffer *before = base_arena_memdup(&scratch, buffers, p->n_buffers * sizeof *before);
  int status = before ? 0 : base_oom(err, "a plan");
  if (status == 0) status = tpl_find(&x, before);
  if (status == 0) status = tpl_place_around(&x, before);
  if (status == 0) status = plan_find_tiles(p, m, false, arena, err);
  base_arena_free(&scratch);
  return status;
}
