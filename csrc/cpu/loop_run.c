/* Runs loops. Where leaves of the state have two places in turn, there are two bindings: of odd and of even trips. */
#include "loop.h"

enum {
  LOOPR_POLL = 1 << 16, /* work between looks at the clock and at interruptions */
  LOOPR_FEW = 4096      /* bytes on the stack; what needs more is allocated once a loop */
};

typedef struct loopr_binding {
  void **condition, **body; /* the programs' buffers */
  loop_inst *insts;
} loopr_binding;

typedef struct loopr_run {
  cpu_run *run;
  const plan_step *s;
  const cpu_loop *l;
  char *kept, *scratch;
  loopr_binding bindings[2];
  unsigned char go_on;
} loopr_run;

static char *loopr_address(const loopr_run *x, const loopr_binding *b, const loop_cell *c) {
  switch ((loop_area)c->area) {
    case LOOP_CONDITION:
      return (char *)b->condition[c->at] + c->offset;
    case LOOP_BODY:
      return (char *)b->body[c->at] + c->offset;
    case LOOP_KEPT:
      return x->kept + c->at;
    case LOOP_SCRATCH:
    case LOOP_FIXED:
      break;
  }
  return x->scratch + c->at;
}

static void loopr_bind_codes(const loopr_run *x, const loopr_binding *b) {
  for (uint32_t i = 0; i < x->l->n_codes; i++) {
    const loop_code *c = &x->l->codes[i];
    loop_inst *to = &b->insts[i];
    *to = c->inst;
    for (uint32_t j = 0; j < c->n_in; j++)
      if (c->in[j].area != LOOP_FIXED) to->in[j] = loopr_address(x, b, &c->in[j]);
    to->out = loopr_address(x, b, &c->out);
  }
}

static void loopr_bind(loopr_run *x, uint32_t which, char *condition_frame, char *body_frame, void *const *now,
                       void *const *next) {
  loopr_binding *b = &x->bindings[which];
  const plan_program *condition = x->s->nested[0], *body = x->s->nested[1];
  void *flag = &x->go_on;
  cpu_bind_frame(condition, condition_frame, b->condition);
  cpu_bind_interface(condition, now, &flag, b->condition);
  cpu_bind_frame(body, body_frame, b->body);
  cpu_bind_interface(body, now, next, b->body);
  loopr_bind_codes(x, b);
}

static int loopr_part(loopr_run *x, const loopr_binding *b, const loop_part *part, const plan_program *p,
                      void *const *pointers) {
  const loop_inst *i = b->insts + part->first, *end = i + part->n;
  for (; i < end; i++) i->fn(i);
  return part->step ? cpu_run_step(x->run, p, part->step, pointers) : 0;
}

static int loopr_trips(loopr_run *x, uint32_t *odd) {
  const cpu_loop *l = x->l;
  const plan_program *condition = x->s->nested[0], *body = x->s->nested[1];
  int64_t poll = LOOPR_POLL / (int64_t)(l->work < LOOPR_POLL ? l->work : LOOPR_POLL), left = poll;
  for (;;) {
    const loopr_binding *b = &x->bindings[*odd];
    for (uint32_t i = 0; i < l->n_condition; i++) TRY(loopr_part(x, b, &l->parts[i], condition, b->condition));
    if (!x->go_on) return 0;
    for (uint32_t i = l->n_condition; i < l->n_parts; i++) TRY(loopr_part(x, b, &l->parts[i], body, b->body));
    if (l->swaps) *odd ^= 1;
    if (--left) continue;
    TRY(interp_tick(&x->run->ctx, (uint64_t)poll * l->work));
    left = poll;
  }
}

static size_t loopr_round(size_t bytes) {
  return (bytes + 63) & ~(size_t)63;
}

/* What a binding takes. */
static size_t loopr_layout(const loopr_run *x, char *memory, loopr_binding *b) {
  size_t c = loopr_round(x->s->nested[0]->n_buffers * sizeof(void *));
  size_t n = c + loopr_round(x->s->nested[1]->n_buffers * sizeof(void *));
  if (memory) {
    b->condition = (void **)(void *)memory;
    b->body = (void **)(void *)(memory + c);
    b->insts = (loop_inst *)(void *)(memory + n);
  }
  return n + loopr_round(x->l->n_codes * sizeof(loop_inst));
}

int cpu_loop_run(cpu_run *run, const plan_step *s, char *condition_frame, char *body_frame, void *const *now,
                 void *const *next, bool *swapped) {
  char few[LOOPR_FEW] __attribute__((aligned(64))), *memory = few, *own = NULL;
  loopr_run x = {.run = run, .s = s, .l = s->code};
  uint32_t odd = 0;
  size_t each = loopr_layout(&x, NULL, NULL),
         registers = loopr_round(x.l->kept_bytes) + loopr_round(x.l->scratch_bytes);
  size_t bytes = each * (x.l->swaps ? 2 : 1) + registers;
  if (bytes > sizeof few) {
    if (!(own = base_malloc(run->exe->alloc, bytes + 64))) return base_oom(run->ctx.err, "a loop");
    memory = (char *)(((uintptr_t)own + 63) & ~(uintptr_t)63);
  }
  x.kept = memory;
  x.scratch = memory + loopr_round(x.l->kept_bytes);
  memory += registers;
  loopr_layout(&x, memory, &x.bindings[0]);
  loopr_bind(&x, 0, condition_frame, body_frame, now, next);
  if (x.l->swaps) {
    loopr_layout(&x, memory + each, &x.bindings[1]);
    loopr_bind(&x, 1, condition_frame, body_frame, next, now);
  }
  for (uint32_t i = 0; i < x.l->n_once; i++) x.bindings[0].insts[i].fn(&x.bindings[0].insts[i]);
  int status = loopr_trips(&x, &odd);
  base_free(run->exe->alloc, own);
  *swapped = odd != 0;
  return status;
}
