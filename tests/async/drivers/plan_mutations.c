/* Plans of async programs that a careless planner might have made: the proof must find each of them, and pass the plan
 * as it is. Exits 0 when all are right. Compiled with the whole core. */
#include "xlac_all.c"

static const char text[] =
    "HloModule m, is_scheduled=true\n"
    "less { a = f32[] parameter(0)\n"
    "  b = f32[] parameter(1)\n"
    "  ROOT c = pred[] compare(a, b), direction=LT }\n"
    "wrapped { a = f32[64] parameter(0)\n"
    "  b = f32[64] parameter(1)\n"
    "  ROOT c = f32[64] add(a, b) }\n"
    "ENTRY e { x = f32[64] parameter(0)\n"
    "  y = f32[64] sort(x), dimensions={0}, to_apply=less\n"
    "  z = f32[64] reverse(x), dimensions={0}\n"
    "  s = ((f32[64], f32[64]), f32[64], u32[]) async-start(y, z), calls=wrapped\n"
    "  u = ((f32[64], f32[64]), f32[64], u32[]) async-update(s)\n"
    "  v = f32[64] reverse(x), dimensions={0}\n"
    "  w = f32[64] sort(v), dimensions={0}, to_apply=less\n"
    "  d = f32[64] async-done(u)\n"
    "  ROOT t = f32[] dot(d, w), lhs_contracting_dims={0}, rhs_contracting_dims={0} }\n";

typedef struct mutation_site {
  plan_program *p;
  plan_buffer *buffers;
  plan_step *start;
} mutation_site;

static plan_buffer *mutation_in(const mutation_site *m, uint32_t i) {
  return &m->buffers[m->start->in[i]];
}

/* Operand 0 ends with the start, as if the work were over at once. */
static void mutate_operand(mutation_site *m) {
  mutation_in(m, 0)->last = m->start->chain->start;
}
static void mutate_second_operand(mutation_site *m) {
  mutation_in(m, 1)->last = m->start->chain->done - 1;
}
static void mutate_result(mutation_site *m) {
  m->buffers[m->start->out[0]].last = m->start->chain->start;
}
static void mutate_frame(mutation_site *m) {
  m->buffers[m->start->frame].last = m->start->chain->start;
}
static void mutate_room(mutation_site *m) {
  m->buffers[m->start->frame].bytes = m->p->device.task_bytes - 1;
}
/* What is written meanwhile goes where the operand is, or the result, or the task. */
static plan_buffer *mutation_between(const mutation_site *m) {
  const plan_chain *c = m->start->chain;
  for (uint32_t i = 0; i < m->p->n_buffers; i++)
    if (m->buffers[i].place == PLAN_FRAME && m->buffers[i].type && m->buffers[i].first > c->start &&
        m->buffers[i].first < c->done)
      return &m->buffers[i];
  return NULL;
}
static void mutate_place_on_operand(mutation_site *m) {
  mutation_between(m)->offset = mutation_in(m, 0)->offset;
}
static void mutate_place_on_result(mutation_site *m) {
  mutation_between(m)->offset = m->buffers[m->start->out[0]].offset;
}
static void mutate_place_on_task(mutation_site *m) {
  mutation_between(m)->offset = m->buffers[m->start->frame].offset + 64;
}
/* The result is read by what comes before the done. */
static void mutate_reader(mutation_site *m) {
  const plan_chain *c = m->start->chain;
  for (uint32_t i = c->start + 1; i < c->done; i++) {
    plan_step *s = (plan_step *)(uintptr_t)&m->p->steps[i];
    if (s->n_in) ((uint32_t *)(uintptr_t)s->in)[0] = m->start->out[0];
  }
}
static void mutate_done(mutation_site *m) {
  ((plan_step *)(uintptr_t)&m->p->steps[m->start->chain->done])->kind = PLAN_UPDATE;
}

typedef void mutate_fn(mutation_site *m);
static mutate_fn *const mutations[] = {
    NULL,        mutate_operand,          mutate_second_operand,  mutate_result,        mutate_frame,
    mutate_room, mutate_place_on_operand, mutate_place_on_result, mutate_place_on_task, mutate_reader,
    mutate_done};

static bool mutation_site_of(const plan_program *p, mutation_site *m) {
  *m = (mutation_site){(plan_program *)(uintptr_t)p, (plan_buffer *)(uintptr_t)p->buffers, NULL};
  for (uint32_t i = 0; i < p->n_steps; i++)
    if (p->steps[i].kind == PLAN_START) m->start = (plan_step *)(uintptr_t)&p->steps[i];
  return m->start && mutation_between(m);
}

/* Whether the proof says what it should of the plan after `mutate`. */
static bool mutation_is_caught(mutate_fn *mutate) {
  xlac_error err = {.code = 0};
  xlac_module *m = NULL;
  xlac_executable *exe = NULL;
  mutation_site site;
  const xlac_compile_options options = {XLAC_OPTIONS(xlac_compile_options), .threads = 1, .no_blas = true,
                                        .no_passes = true};
  if (xlac_module_parse(&m, text, strlen(text), NULL, &err) || xlac_compile(m, &options, &exe, &err) ||
      !mutation_site_of(exe->rt->plan, &site)) {
    printf("no plan: %s\n", err.message);
    return false;
  }
  if (mutate) mutate(&site);
  int status = plan_check(site.p, base_alloc_libc, &err);
  if (status) printf("%s\n", err.message);
  xlac_executable_destroy(exe);
  xlac_module_destroy(m);
  return (status != 0) == (mutate != NULL);
}

int main(void) {
  int missed = 0;
  for (size_t i = 0; i < sizeof mutations / sizeof *mutations; i++) {
    if (mutation_is_caught(mutations[i])) continue;
    printf("mutation %zu was not told apart\n", i);
    missed++;
  }
  return missed;
}
