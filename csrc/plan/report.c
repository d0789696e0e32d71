/* Plans as JSON: all programs, their buffers and steps, with what each step costs. The keys are public; numbers of
 * buffers and programs are places in their lists. */
#include "report.h"

/* --- all programs, each once --- */

/* list->n where p is not in it. */
uint32_t plan_list_find(const plan_list *list, const plan_program *p) {
  uint32_t i = 0;
  while (i < list->n && list->items[i] != p) i++;
  return i;
}

/* Breadth first from the entry; a program that several steps run is listed once. */
bool plan_list_programs(base_alloc alloc, const plan_program *p, plan_list *out) {
  assert(p && out);
  base_map seen;
  bool ok = true;
  base_map_init(&seen, alloc);
  *out = (plan_list){NULL, 0, 0};
  ok = BASE_VEC_PUSH(alloc, out, p) && base_map_set(&seen, base_key(p), 1);
  for (uint32_t at = 0; ok && at < out->n; at++) {
    p = out->items[at];
    for (uint32_t i = 0; ok && i < p->n_steps; i++)
      for (uint32_t j = 0; ok && j < p->steps[i].n_nested; j++) {
        const plan_program *callee = p->steps[i].nested[j];
        uint64_t known = 0;
        if (base_map_get(&seen, base_key(callee), &known)) continue;
        ok = BASE_VEC_PUSH(alloc, out, callee) && base_map_set(&seen, base_key(callee), 1);
      }
  }
  base_map_free(&seen);
  return ok;
}

/* --- JSON --- */

/* Names are any bytes, hence the JSON escapes. */
static void report_name(base_text *out, const char *key, const base_istr *s) {
  base_putf(out, "\"%s\": ", key);
  base_put_json(out, s->s, s->n);
}

static void report_ids(base_text *out, const char *key, uint32_t n, const uint32_t *ids) {
  base_putf(out, ", \"%s\": [", key);
  for (uint32_t i = 0; i < n; i++) base_putf(out, i ? ", %u" : "%u", ids[i]);
  BASE_PUT(out, "]");
}

static void report_cost(base_text *out, plan_cost c) {
  base_putf(out, ", \"flops\": %.0f, \"transcendentals\": %.0f", c.flops, c.transcendentals);
}

/* "lent" is the public word for a borrowed place. */
static void report_buffer(base_text *out, const plan_buffer *b) {
  static const char *const places[] = {"frame", "argument", "result", "spare", "constant", "tile"};
  char type[80];
  base_putf(out, "{\"place\": \"%s\", \"bytes\": %lld", places[b->place], (long long)b->bytes);
  if (b->place == PLAN_FRAME || b->place == PLAN_SPARE) base_putf(out, ", \"offset\": %lld", (long long)b->offset);
  if (b->place == PLAN_ARGUMENT || b->place == PLAN_RESULT || b->place == PLAN_SPARE)
    base_putf(out, ", \"number\": %u", b->number);
  if (b->borrowed) BASE_PUT(out, ", \"lent\": true");
  if (b->first != UINT32_MAX) base_putf(out, ", \"first\": %u", b->first);
  if (b->last != UINT32_MAX) base_putf(out, ", \"last\": %u", b->last);
  if (b->type) {
    BASE_PUT(out, ", \"type\": ");
    ir_type_text(b->type, type, sizeof type);
    base_put_json(out, type, strlen(type));
  }
  if (b->op) {
    BASE_PUT(out, ", ");
    report_name(out, "op", b->op->name);
  }
  BASE_PUT(out, "}");
}

/* One op of a kernel. */
static void report_op(base_text *out, const ir_op *op, plan_cost c) {
  BASE_PUT(out, "{");
  report_name(out, "name", op->name);
  base_putf(out, ", \"opcode\": \"%s\"", ir_opcode_text(op->opcode));
  report_cost(out, c);
  BASE_PUT(out, "}");
}

/* What all steps are told with: all programs, and the module's ops by id. */
typedef struct report_run {
  plan_list list;
  const ir_op **ops;
} report_run;

/* The ops that a kernel computes, each with its own part of the cost. */
static void report_kernel(base_text *out, const report_run *x, const plan_program *p, const plan_step *s) {
  const kernel *k = s->kernel;
  bool first = true;
  BASE_PUT(out, ", \"ops\": [");
  for (uint32_t i = 0; i < k->n_values; i++) {
    if (k->values[i].kind != KERNEL_OP) continue;
    if (!first) BASE_PUT(out, ", ");
    first = false;
    assert(x->ops[k->values[i].origin]);
    report_op(out, x->ops[k->values[i].origin], plan_value_cost(k, i));
  }
  for (uint32_t i = 0; i < k->n_stores; i++) {
    if (!k->stores[i].by) continue;
    const ir_op *reduce = p->buffers[s->out[k->stores[i].buffer]].op;
    if (!first) BASE_PUT(out, ", ");
    first = false;
    report_op(out, reduce, opt_op_cost(reduce));
  }
  base_putf(out, "], \"iterations\": %lld", (long long)k->count);
}

/* "in" and "out" are places in "buffers", "nested" in "programs". */
static void report_step(base_text *out, const report_run *x, const plan_program *p, const plan_step *s) {
  static const char *const kinds[] = {"kernel", "routine", "copy",   "while", "conditional",
                                      "call",   "start",   "update", "done"};
  plan_cost c = plan_step_cost(p, s);
  base_putf(out, "{\"kind\": \"%s\", \"by\": \"%s\", ", kinds[s->kind],
            s->kind == PLAN_ROUTINE ? s->routine->name : kinds[s->kind]);
  report_name(out, "op", s->op->name);
  base_putf(out, ", \"opcode\": \"%s\", \"line\": %u", ir_opcode_text(s->op->opcode), s->op->line);
  report_ids(out, "in", s->n_in, s->in);
  report_ids(out, "out", s->n_out, s->out);
  if (s->frame != UINT32_MAX) base_putf(out, ", \"scratch\": %u", s->frame);
  report_cost(out, c);
  base_putf(out, ", \"read\": %.0f, \"written\": %.0f", c.read, c.written);
  if (s->kind == PLAN_KERNEL) report_kernel(out, x, p, s);
  if (s->n_nested) {
    BASE_PUT(out, ", \"nested\": [");
    for (uint32_t i = 0; i < s->n_nested; i++)
      base_putf(out, i ? ", %u" : "%u", plan_list_find(&x->list, s->nested[i]));
    BASE_PUT(out, "]");
  }
  BASE_PUT(out, "}");
}

/* Peaks of orders that were not weighed are left out. */
static void report_order(base_text *out, const plan_program *p) {
  static const char *const orders[] = {"program", "list", "depth"};
  base_putf(out, ", \"order\": \"%s\", \"order_peaks\": {", orders[p->order]);
  for (uint32_t i = 0; i < PLAN_ORDERS && (i == 0 || p->order_peaks[i]); i++)
    base_putf(out, "%s\"%s\": %lld", i ? ", " : "", orders[i], (long long)p->order_peaks[i]);
  BASE_PUT(out, "}");
}

/* "why_interpreted" is null for programs with steps. */
static void report_program(base_text *out, const report_run *x, const plan_program *p) {
  BASE_PUT(out, "{");
  report_name(out, "name", p->computation->name);
  base_putf(out, ", \"frame_bytes\": %lld, \"peak_bytes\": %lld, \"why_interpreted\": ", (long long)p->frame_bytes,
            (long long)p->peak_bytes);
  if (p->interpreted)
    base_put_json(out, p->why, strlen(p->why));
  else
    BASE_PUT(out, "null");
  report_order(out, p);
  BASE_PUT(out, ", \"buffers\": [");
  for (uint32_t i = 0; i < p->n_buffers; i++) {
    if (i) BASE_PUT(out, ",\n ");
    report_buffer(out, &p->buffers[i]);
  }
  BASE_PUT(out, "], \"steps\": [");
  for (uint32_t i = 0; i < p->n_steps; i++) {
    if (i) BASE_PUT(out, ",\n ");
    report_step(out, x, p, &p->steps[i]);
  }
  BASE_PUT(out, "]}");
}

/* --- what all of it costs --- */

static double total_weight(const plan_cost *c) {
  return c->flops + 10 * c->transcendentals + c->read + c->written;
}

static void total_add(plan_cost *sum, const plan_cost *c) {
  sum->flops += c->flops;
  sum->transcendentals += c->transcendentals;
  sum->read += c->read;
  sum->written += c->written;
}

typedef struct total_run {
  plan_list list;
  plan_cost *of; /* by places in the list */
  bool *known;
} total_run;

/* Programs don't call each other in circles, and each is looked at once; as deep as they call each other. */
static const plan_cost *total_of(total_run *x, const plan_program *p) {
  uint32_t place = plan_list_find(&x->list, p);
  plan_cost *sum = &x->of[place];
  for (uint32_t i = 0; !x->known[place] && i < p->n_steps; i++) {
    const plan_step *s = &p->steps[i];
    plan_cost own = plan_step_cost(p, s), dearest = {0};
    total_add(sum, &own);
    for (uint32_t k = 0; k < s->n_nested; k++) {
      const plan_cost *inner = total_of(x, s->nested[k]);
      if (s->kind != PLAN_CONDITIONAL)
        total_add(sum, inner);
      else if (total_weight(inner) > total_weight(&dearest))
        dearest = *inner;
    }
    total_add(sum, &dearest);
  }
  x->known[place] = true;
  return sum;
}

int plan_total_cost(base_alloc alloc, const plan_program *p, plan_cost *out, xlac_error *err) {
  total_run x = {.known = NULL};
  size_t each = sizeof *x.of + sizeof *x.known;
  if (plan_list_programs(alloc, p, &x.list)) x.of = base_malloc(alloc, x.list.n * each);
  int status = x.of ? 0 : base_oom(err, "what a program costs");
  if (x.of) {
    memset(x.of, 0, x.list.n * each);
    x.known = (bool *)(x.of + x.list.n);
    *out = *total_of(&x, p);
  }
  BASE_VEC_FREE(alloc, &x.list);
  base_free(alloc, x.of);
  return status;
}

bool plan_put_json(base_text *out, base_alloc alloc, const plan_program *p) {
  assert(out && p);
  const ir_module *m = p->computation->module;
  report_run x = {.ops = base_malloc(alloc, ((size_t)m->n_ids + 1) * sizeof *x.ops)};
  bool ok = plan_list_programs(alloc, p, &x.list) && x.ops;
  IR_FOR_COMPUTATIONS(c, m)
  IR_FOR_OPS(op, c)
  if (ok) x.ops[op->id] = op;
  BASE_PUT(out, "{\"programs\": [");
  for (uint32_t i = 0; ok && i < x.list.n; i++) {
    if (i) BASE_PUT(out, ",\n");
    report_program(out, &x, x.list.items[i]);
  }
  BASE_PUT(out, "]}");
  BASE_VEC_FREE(alloc, &x.list);
  base_free(alloc, x.ops);
  return ok;
}
