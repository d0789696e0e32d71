/* The plan's tiles made ready to run: scratch memory for what only the tile's steps read, and what of the next tile is
 * fetched meanwhile. */
#include "group_inside.h"

/* The buffer of the group's output number `output`, over all its steps. */
static uint32_t rows_output(const plan_program *p, const cpu_group *g, uint32_t output) {
  uint32_t i = g->first;
  for (; output >= p->steps[i].n_out; i++) output -= p->steps[i].n_out;
  assert(i < g->first + g->n);
  return p->steps[i].out[output];
}

/* Whether output number n, of step number `step`, can't have the place of an earlier one's: it is not dead, and not
 * written over element by element. */
static bool rows_is_busy(const plan_program *p, const cpu_group *g, uint32_t n, uint32_t other, uint32_t step) {
  uint32_t buffer = rows_output(p, g, other), last = p->buffers[buffer].last;
  return last > step ||
         (last == step && !plan_may_overwrite(&p->steps[step], p->buffers, buffer, rows_output(p, g, n)));
}

static bool rows_is_taken(const plan_program *p, const cpu_group *g, uint32_t n, int64_t at, uint32_t step) {
  for (uint32_t i = 0; i < n; i++)
    if (g->at[i] == at && rows_is_busy(p, g, n, i, step)) return true;
  return false;
}

/* Room for output number n, which that step writes: an earlier one's of the same size, or new. */
static int64_t rows_find_room(const plan_program *p, cpu_group *g, uint32_t n, uint32_t step) {
  int64_t bytes = p->buffers[rows_output(p, g, n)].bytes, at = g->scratch;
  for (uint32_t i = 0; i < n; i++)
    if (g->at[i] >= 0 && p->buffers[rows_output(p, g, i)].bytes == bytes && !rows_is_taken(p, g, n, g->at[i], step))
      return g->at[i];
  g->scratch += ((bytes / g->rows * g->tile) + 63) & ~(int64_t)63;
  return at;
}

/* Values of the group that nobody reads after it. */
static void rows_find_inner(const plan_program *p, const plan_tile *t, cpu_group *g) {
  uint32_t n = 0;
  for (uint32_t step = g->first; step < g->first + g->n; step++)
    for (uint32_t j = 0; j < p->steps[step].n_out; j++, n++)
      g->at[n] = plan_tile_keeps(p, t, step, p->steps[step].out[j]) ? rows_find_room(p, g, n, step) : -1;
}

/* What comes from memory is fetched in the passes of all steps but the first. */
static void rows_find_read(const plan_program *p, const cpu_code *code, cpu_group *g) {
  int64_t passes = 0, bytes = 0;
  for (uint32_t i = 1; i < g->n; i++)
    if (p->steps[g->first + i].kind == PLAN_KERNEL)
      passes += cpu_vm_passes(code->steps[g->first + i], g->rows, g->tile);
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

/* Products of a tile have as many ranges each (tile_batches). */
static void rows_find_packed(const plan_program *p, const plan_tile *t, cpu_group *g) {
  g->batches = t->batches;
  for (uint32_t i = g->first; t->batches && i < g->first + g->n; i++)
    if (p->steps[i].kind == PLAN_ROUTINE) g->packed += cpu_group_packed_bytes(&p->steps[i]);
}

static uint32_t rows_outputs(const plan_program *p, uint32_t first, uint32_t n) {
  uint32_t outputs = 0;
  for (uint32_t i = first; i < first + n; i++) outputs += p->steps[i].n_out;
  return outputs;
}

int cpu_group_make(const plan_program *p, const cpu_code *code, const plan_tile *t, base_arena *arena,
                   const cpu_group **out, xlac_error *err) {
  cpu_group *g = base_arena_zalloc(arena, sizeof *g + rows_outputs(p, t->first, t->n) * sizeof *g->at);
  *out = NULL;
  if (!g) return base_oom(err, "a group of kernels");
  g->first = t->first;
  g->n = t->n;
  g->rows = t->rows;
  g->tile = t->at_a_time;
  assert(g->tile > 0 && g->n >= 2 && g->first + g->n <= p->n_steps);
  rows_find_inner(p, t, g);
  rows_find_packed(p, t, g);
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
