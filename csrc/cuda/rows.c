/* The plan's tiles as kernels of rows: which arrays there are, and which of them nobody else needs. */
#include "executable.h"

/* Of a tile that is being made. */
typedef struct cu_rows_arrays {
  uint32_t n, *buffers; /* by array */
  cuda_rows_array *items;
} cu_rows_arrays;

static uint32_t cu_rows_number(cu_rows_arrays *x, uint32_t buffer) {
  uint32_t i = 0;
  while (i < x->n && x->buffers[i] != buffer) i++;
  if (i == x->n) x->buffers[x->n++] = buffer;
  return i;
}

/* Numbers of the step's arrays; those that it writes for the tile alone are kept. */
static void cu_rows_add(cu_rows_arrays *x, const plan_program *p, const plan_tile *t, uint32_t step, uint32_t *numbers,
                        cuda_rows_step *out) {
  const plan_step *s = &p->steps[step];
  *out = (cuda_rows_step){.k = s->kernel, .in = numbers, .out = numbers + s->n_in};
  for (uint32_t i = 0; i < s->n_in; i++) numbers[i] = cu_rows_number(x, s->in[i]);
  for (uint32_t i = 0; i < s->n_out; i++) {
    numbers[s->n_in + i] = cu_rows_number(x, s->out[i]);
    x->items[numbers[s->n_in + i]].kept = plan_tile_keeps(p, t, step, s->out[i]);
  }
}

/* The parameters, in order. */
static bool cu_rows_set(cuda_executable *exe, const cu_rows_arrays *x, cuda_kernel *k) {
  uint32_t *own = BASE_ARRAY(&exe->arena, uint32_t, x->n + 1u);
  for (uint32_t i = 0; own && i < x->n; i++)
    if (!x->items[i].kept) own[k->n_arrays++] = x->buffers[i];
  k->arrays = own;
  return own != NULL;
}

static bool cu_rows_make(cuda_executable *exe, const plan_program *p, const plan_tile *t, base_arena *scratch,
                         cuda_kernel *kernels) {
  uint32_t n = 0, at = 0;
  for (uint32_t i = 0; i < t->n; i++) n += p->steps[t->first + i].n_in + p->steps[t->first + i].n_out;
  cu_rows_arrays x = {.buffers = BASE_ARRAY(scratch, uint32_t, n + 1u),
                      .items = base_arena_zalloc(scratch, (n + 1u) * sizeof *x.items)};
  uint32_t *numbers = BASE_ARRAY(scratch, uint32_t, n + 1u);
  cuda_rows_step *steps = BASE_ARRAY(scratch, cuda_rows_step, t->n);
  if (!x.buffers || !x.items || !numbers || !steps) return false;
  for (uint32_t i = 0; i < t->n; i++) {
    const plan_step *s = &p->steps[t->first + i];
    cu_rows_add(&x, p, t, t->first + i, numbers + at, &steps[i]);
    at += s->n_in + s->n_out;
  }
  cuda_rows rows = {.rows = t->rows, .n_steps = t->n, .n_arrays = x.n, .steps = steps, .arrays = x.items};
  cuda_kernel *first = &kernels[t->first];
  bool printed = cuda_print_rows(&exe->source, &rows, &first->launch);
  cuda_source_settle(&exe->source, &first->launch);
  if (!printed || !cu_rows_set(exe, &x, first)) return false;
  for (uint32_t i = 0; i < t->n; i++) kernels[t->first + i].printed = true;
  for (uint32_t i = 1; i < t->n; i++)
    kernels[t->first + i].launch =
        (cuda_launch){.number = first->launch.number, .block = first->launch.block, .how = "with the step above"};
  return true;
}

bool cuda_rows_print(cuda_executable *exe, const plan_program *p, const plan_tile *t, cuda_kernel *kernels) {
  base_arena scratch;
  assert(t->n >= 2 && t->rows > 0);
  base_arena_init(&scratch, exe->alloc);
  bool made = cu_rows_make(exe, p, t, &scratch, kernels);
  base_arena_free(&scratch);
  return made;
}
