/* The plan's tiles made ready to run: scratch memory for what only the tile's steps read, and what of the next tile is
 * fetched meanwhile. */
#include "group_inside.h"

/* Values of the group that nobody reads after it. */
static void rows_find_inner(const plan_program *p, const plan_tile *t, cpu_group *g) {
  int64_t *room = g->room;
  for (uint32_t i = 0; i < g->n; i++) {
    const plan_step *s = &p->steps[g->first + i];
    for (uint32_t j = 0; j < s->n_out; j++, room++) {
      const plan_buffer *b = &p->buffers[s->out[j]];
      bool inner = plan_tile_keeps(p, t, g->first + i, s->out[j]);
      *room = inner ? ((b->bytes / g->rows * g->tile) + 63) & ~(int64_t)63 : 0;
      g->scratch += *room;
    }
  }
}

/* What comes from memory is fetched in the passes of all steps but the first. */
static void rows_find_read(const plan_program *p, const cpu_code *code, cpu_group *g) {
  int64_t passes = 0, bytes = 0;
  for (uint32_t i = 1; i < g->n; i++) passes += cpu_vm_passes(code->steps[g->first + i], g->rows, g->tile);
  const plan_step *s = &p->steps[g->first];
  for (uint32_t j = 0; j < s->n_in && g->n_read < CPU_VM_MAX_AHEAD; j++) {
    int64_t row = p->buffers[s->in[j]].bytes / g->rows;
    if (row < 64 || !plan_reads_by_rows(p, s, s->in[j], g->rows)) continue;
    g->read[g->n_read] = s->in[j];
    g->read_bytes[g->n_read++] = row;
    bytes = row * g->tile > bytes ? row * g->tile : bytes;
  }
  if (passes && g->n_read) g->ahead = (bytes / passes + 64) & ~(int64_t)63;
}

static uint32_t rows_outputs(const plan_program *p, uint32_t first, uint32_t n) {
  uint32_t outputs = 0;
  for (uint32_t i = first; i < first + n; i++) outputs += p->steps[i].n_out;
  return outputs;
}

int cpu_group_make(const plan_program *p, const cpu_code *code, const plan_tile *t, base_arena *arena,
                   const cpu_group **out, xlac_error *err) {
  cpu_group *g = base_arena_zalloc(arena, sizeof *g + rows_outputs(p, t->first, t->n) * sizeof *g->room);
  *out = NULL;
  if (!g) return base_oom(err, "a group of kernels");
  g->first = t->first;
  g->n = t->n;
  g->rows = t->rows;
  g->tile = t->at_a_time;
  assert(g->tile > 0 && g->n >= 2 && g->first + g->n <= p->n_steps);
  rows_find_inner(p, t, g);
  rows_find_read(p, code, g);
  *out = g;
  return 0;
}

uint32_t cpu_group_steps(const cpu_group *g) {
  return g->n;
}

uint32_t cpu_group_first(const cpu_group *g) {
  return g->first;
}
