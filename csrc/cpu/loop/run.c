/* Making code of loops, and running it. */
#include "../../interp/interp.h"
#include "scope.h"

static const cpu_loop *loop_finish(loop_make *x, const plan_step *s, void *ctx) {
  cpu_executable *exe = ctx;
  if (x->failed) return NULL;
  const cpu_native_loop *code = cpu_native_loop_make(exe->native, &x->code, &exe->arena, s->op->name->s);
  cpu_loop *l = BASE_NEW(&exe->arena, cpu_loop);
  const loop_memory *arrays = base_arena_memdup(&exe->arena, x->arrays, (x->n_arrays + 1) * sizeof *x->arrays);
  if (!code || !l || !arrays) return NULL;
  *l = (cpu_loop){.code = code, .n_arrays = x->n_arrays, .arrays = arrays};
  return l;
}

/* What becomes of the loop once it is written, or has failed. */
typedef const cpu_loop *loop_end(loop_make *x, const plan_step *s, void *ctx);

static const cpu_loop *loop_write(const cpu_executable *exe, const plan_step *s, const nat_target *target,
                                  base_arena *scratch, loop_end *end, void *ctx) {
  loop_make x = {.exe = exe, .arena = scratch};
  loop_memory frames[2] = {{.area = LOOP_CONDITION_FRAME}, {.area = LOOP_BODY_FRAME}};
  loop_memory *now = BASE_ARRAY(scratch, loop_memory, s->n_in + 1);
  loop_memory *next = BASE_ARRAY(scratch, loop_memory, s->n_in + 1);
  loop_scope *pair[2] = {NULL, NULL};
  const cpu_loop *l = NULL;
  if (!now || !next) return NULL;
  for (uint32_t i = 0; i < s->n_in; i++) {
    now[i] = next[i] = (loop_memory){.area = LOOP_NOW, .at = i};
    if (!s->nested[1]->stays[i]) next[i].area = LOOP_NEXT;
  }
  cpu_loop_scan(&x, s, frames, now, next, pair);
  if (x.failed) return end(&x, s, ctx);
  if (nat_loop_begin(&x.code, target, scratch)) {
    cpu_loop_write(&x, NULL, s, pair);
    x.code.body.n_streams = x.n_arrays;
    if (!nat_loop_settle(&x.code)) x.failed = true;
    l = end(&x, s, ctx);
  }
  nat_loop_free(&x.code);
  return l;
}

static const cpu_loop *loop_weigh(loop_make *x, const plan_step *s, void *ctx) {
  nat_loop_weight *weight = ctx;
  x86_code c;
  (void)s;
  weight->fits = false;
  if (x->failed || x->n_values > LOOP_FEW_VALUES) return NULL;
  x86_init(&c, x->exe->alloc);
  if (!nat_loop_emit(&x->code, &c, x->arena, weight)) weight->fits = false;
  x86_free(&c);
  return NULL;
}

/* Truth values in mask registers take longer from a comparison to what is selected by it, which is what small loops
 * wait for: where the older instructions have registers enough, and are not many more, they are used. */
static const nat_target *loop_target(const cpu_executable *exe, const plan_step *s, base_arena *scratch) {
  const nat_target *best = cpu_native_store_target(exe->native);
  nat_loop_weight older = {.fits = false}, newer = older;
  if (!best->masks) return best;
  (void)loop_write(exe, s, &nat_avx2, scratch, loop_weigh, &older);
  if (older.fits) (void)loop_write(exe, s, best, scratch, loop_weigh, &newer);
  return older.fits && 8 * older.steps <= 9 * newer.steps ? &nat_avx2 : best;
}

static const cpu_loop *loop_make_of(const cpu_executable *exe, const plan_step *s, loop_end *end, void *ctx) {
  base_arena scratch;
  if (!cpu_native_store_target(exe->native) || s->n_in == 0) return NULL;
  base_arena_init(&scratch, exe->alloc);
  const cpu_loop *l = loop_write(exe, s, loop_target(exe, s, &scratch), &scratch, end, ctx);
  base_arena_free(&scratch);
  return l;
}

const cpu_loop *cpu_loop_make(cpu_executable *exe, const plan_step *s) {
  return loop_make_of(exe, s, loop_finish, exe);
}

/* --- text --- */

typedef struct loop_text {
  base_text *out;
  bool done;
} loop_text;

static const cpu_loop *loop_put(loop_make *x, const plan_step *s, void *ctx) {
  loop_text *t = ctx;
  size_t before = t->out->n;
  x86_code c;
  (void)s;
  if (x->failed) return NULL;
  x86_init(&c, x->exe->alloc);
  c.text = t->out;
  t->done = nat_loop_emit(&x->code, &c, x->arena, NULL);
  if (!t->done) t->out->n = before;
  x86_free(&c);
  return NULL;
}

bool cpu_loop_put(base_text *out, const cpu_executable *exe, const plan_step *s) {
  loop_text t = {.out = out};
  if (s->kind == PLAN_WHILE) (void)loop_make_of(exe, s, loop_put, &t);
  return t.done;
}

static const cpu_loop *loop_note_why(loop_make *x, const plan_step *s, void *ctx) {
  const ir_op **why = ctx;
  (void)s;
  *why = x->failed ? x->stops : NULL;
  return NULL;
}

const ir_op *cpu_loop_stops(const cpu_executable *exe, const plan_step *s) {
  const ir_op *why = NULL;
  (void)loop_make_of(exe, s, loop_note_why, &why);
  return why;
}

/* --- running --- */

typedef struct loop_asked {
  cpu_run *run;
  int status;
} loop_asked;

static int64_t loop_ask(void *ctx) {
  loop_asked *a = ctx;
  a->status = interp_tick(&a->run->ctx, NAT_LOOP_POLL);
  return a->status ? 0 : NAT_LOOP_POLL;
}

int cpu_loop_run_code(cpu_run *run, const cpu_loop *l, char *condition_frame, char *body_frame, void *const *now,
                      void *const *next) {
  const void *arrays[NAT_LOOP_ARRAYS];
  loop_asked asked = {.run = run, .status = 0};
  cpu_native_poll poll = {loop_ask, &asked};
  for (uint32_t i = 0; i < l->n_arrays; i++) {
    const loop_memory *m = &l->arrays[i];
    const void *const from[] = {[LOOP_NOW] = now[m->area <= LOOP_NEXT ? m->at : 0],
                                [LOOP_NEXT] = next[m->area <= LOOP_NEXT ? m->at : 0],
                                [LOOP_CONDITION_FRAME] = condition_frame + m->at,
                                [LOOP_BODY_FRAME] = body_frame + m->at,
                                [LOOP_FIXED] = m->fixed};
    arrays[i] = from[m->area];
  }
  run->ran.loops++;
  return cpu_native_loop_run(l->code, arrays, l->n_arrays, &poll) ? 0 : asked.status;
}
