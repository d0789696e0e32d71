/* Times of steps. Totals by step are kept for the whole run, single events only up to CPU_PROFILE_EVENTS, so that
 * a loop of millions of trips can't fill the memory. Lanes' threads add to one profile, so all that changes is
 * under its lock. */
#include "threaded/list.h"

#include <time.h>

/* In seconds; monotonic, with nanoseconds in the last digits of the double. */
static double profile_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double cpu_profile_now(const cpu_profile *x) {
  return profile_clock() - x->start;
}

/* Totals lie in two arrays over the steps of all programs: those of program i begin at first[i]. */
int cpu_profile_begin(cpu_profile *x, base_alloc alloc, const cpu_executable *exe, bool lanes, xlac_error *err) {
  *x = (cpu_profile){.alloc = alloc, .exe = exe, .lanes = lanes};
  pthread_mutex_init(&x->lock, NULL);
  size_t steps = 0;
  bool ok = plan_list_programs(alloc, exe->base.plan, &x->programs);
  x->first = ok ? base_malloc(alloc, x->programs.n * sizeof *x->first) : NULL;
  for (uint32_t i = 0; x->first && i < x->programs.n; i++) {
    x->first[i] = (uint32_t)steps;
    steps += x->programs.items[i]->n_steps;
  }
  x->seconds = base_malloc(alloc, steps * sizeof *x->seconds);
  x->times = base_malloc(alloc, steps * sizeof *x->times);
  if (!ok || !x->first || !x->seconds || !x->times || steps > UINT32_MAX) {
    cpu_profile_end(x);
    return base_oom(err, "a profile");
  }
  memset(x->seconds, 0, steps * sizeof *x->seconds);
  memset(x->times, 0, steps * sizeof *x->times);
  x->start = profile_clock();
  return 0;
}

void cpu_profile_end(cpu_profile *x) {
  pthread_mutex_destroy(&x->lock);
  BASE_VEC_FREE(x->alloc, &x->programs);
  base_free(x->alloc, x->first);
  base_free(x->alloc, x->seconds);
  base_free(x->alloc, x->times);
  base_free(x->alloc, x->events);
}

/* Programs change seldom from one event to the next. */
static uint32_t profile_program(cpu_profile *x, const plan_program *p) {
  if (x->programs.items[x->last] != p) x->last = plan_list_find(&x->programs, p);
  assert(x->last < x->programs.n);
  return x->last;
}

/* Room for one more event; false where there are enough, or out of memory: both only cut the list of events. */
static bool profile_room(cpu_profile *x) {
  void *events = x->events;
  if (x->n_events >= CPU_PROFILE_EVENTS) return false;
  if (x->n_events < x->cap_events) return true;
  if (!base_vec_grow(x->alloc, &events, &x->cap_events, sizeof *x->events, (size_t)x->n_events + 1)) return false;
  x->events = events;
  return true;
}

/* The time of an async task counts as an event alone: its start's total is the time that the caller spent in it. */
void cpu_profile_add(cpu_profile *x, const plan_program *p, const plan_step *s, cpu_event e) {
  assert(s >= p->steps && s < p->steps + p->n_steps);
  e.seconds = cpu_profile_now(x) - e.start;
  pthread_mutex_lock(&x->lock);
  e.program = profile_program(x, p);
  e.step = (uint32_t)(s - p->steps);
  uint32_t at = x->first[e.program] + e.step;
  if (!e.task) {
    x->seconds[at] += e.seconds;
    x->times[at]++;
  }
  x->cut = x->cut || !profile_room(x);
  if (!x->cut) x->events[x->n_events++] = e;
  pthread_mutex_unlock(&x->lock);
}

uint32_t cpu_profile_serial(cpu_profile *x) {
  pthread_mutex_lock(&x->lock);
  uint32_t serial = ++x->serials;
  pthread_mutex_unlock(&x->lock);
  return serial;
}

static void profile_put_event(const cpu_profile *x, const cpu_event *e, base_text *out) {
  base_putf(out, "[%u, %u, %u, %.0f, %.0f", e->program, e->step, e->depth, 1e9 * e->start, 1e9 * e->seconds);
  if (x->lanes) base_putf(out, ", %u, %u, %d", e->lane, e->serial, e->task);
  BASE_PUT(out, "]");
}

static void profile_put_unit(base_text *out, bool *first, uint32_t program, uint32_t step, uint32_t n,
                             const char *kind) {
  base_putf(out, "%s[%u, %u, %u, \"%s\"]", *first ? "" : ", ", program, step, n, kind);
  *first = false;
}

/* What runs as one though it is several steps, or is none by itself: [program, first step, steps, "list" or
 * "group"]. */
static void profile_put_units(const cpu_profile *x, base_text *out) {
  bool first = true;
  BASE_PUT(out, ", \"units\": [");
  for (uint32_t i = 0; i < x->programs.n; i++) {
    const cpu_list *l = cpu_code_of(x->exe, x->programs.items[i])->list;
    for (uint32_t k = 0; l && k < l->n_parts; k++) {
      const list_part *part = &l->parts[k];
      if (part->n_steps) profile_put_unit(out, &first, i, part->at, part->n_steps, "list");
      if (part->group)
        profile_put_unit(out, &first, i, cpu_group_first(part->group), cpu_group_steps(part->group), "group");
    }
  }
  base_putc(out, ']');
}

static void profile_put_head(const cpu_profile *x, base_text *out) {
  const cpu_units *r = &x->ran;
  base_putf(out, "{\"ns\": %.0f, \"cut\": %s, \"ran\": {\"kernels\": %llu, \"groups\": %llu", 1e9 * cpu_profile_now(x),
            x->cut ? "true" : "false", (unsigned long long)r->kernels, (unsigned long long)r->groups);
  base_putf(out, ", \"lists\": %llu, \"loops\": %llu}", (unsigned long long)r->lists, (unsigned long long)r->loops);
}

/* JSON by hand: there are numbers and fixed words in it, nothing that would have to be escaped. */
void cpu_profile_put(const cpu_profile *x, base_text *out) {
  bool first = true;
  profile_put_head(x, out);
  profile_put_units(x, out);
  BASE_PUT(out, ", \"steps\": [");
  for (uint32_t i = 0; i < x->programs.n; i++)
    for (uint32_t s = 0; s < x->programs.items[i]->n_steps; s++) {
      uint32_t at = x->first[i] + s;
      if (!x->times[at]) continue;
      base_putf(out, "%s[%u, %u, %llu, %.0f]", first ? "" : ", ", i, s, (unsigned long long)x->times[at],
                1e9 * x->seconds[at]);
      first = false;
    }
  BASE_PUT(out, "], \"events\": [");
  for (uint32_t i = 0; i < x->n_events; i++) {
    if (i) BASE_PUT(out, ",\n");
    profile_put_event(x, &x->events[i], out);
  }
  BASE_PUT(out, "]}");
}

void cpu_profile_tell(const cpu_profile *x, const rt_call_options *options) {
  for (uint32_t i = 0; i < x->n_events; i++) {
    const cpu_event *e = &x->events[i];
    const ir_op *op = x->programs.items[e->program]->steps[e->step].op;
    const ir_metadata *m = ir_get_metadata(op);
    assert(op->name && e->start >= 0 && e->seconds >= 0);
    options->step(options->step_ctx, op->name->s, m && m->op_name ? m->op_name->s : "", (int64_t)(1e9 * e->start),
                  (int64_t)(1e9 * e->seconds));
  }
}
