/* Plans as text: one line a step with its buffers and where they are, nested programs indented. For tests and for
 * people; nothing reads it back. */
#include "../base/plural.h"
#include "plan.h"

/* "frame+64 f32[8]", "argument 0 f32[8]", "in result 1 ..." for a borrowed place. */
static void put_buffer(base_text *out, const plan_buffer *b) {
  char type[80];
  static const char *const places[] = {"frame", "argument", "result", "spare", "constant", "tile"};
  base_putf(out, " %s%s", b->borrowed ? "in " : "", places[b->place]);
  if (b->place == PLAN_ARGUMENT || b->place == PLAN_RESULT || b->place == PLAN_SPARE) base_putf(out, " %u", b->number);
  if (b->place == PLAN_FRAME || b->place == PLAN_SPARE) base_putf(out, "+%lld", (long long)b->offset);
  if (b->type) base_putf(out, " %s", ir_type_text(b->type, type, sizeof type));
}

static void put_step(base_text *out, const plan_program *p, uint32_t i, uint32_t depth);

/* `depth` is the indentation, in blanks. */
static void put_program(base_text *out, const plan_program *p, uint32_t depth) {
  base_putf(out, "%*sprogram %s", (int)depth, "", p->computation->name->s);
  if (p->interpreted) {
    base_putf(out, ": interpreted, since %s\n", p->why);
    return;
  }
  base_putf(out, ": %u step%s, frame of %lld bytes, peak %lld\n", p->n_steps, base_plural(p->n_steps),
            (long long)p->frame_bytes, (long long)p->peak_bytes);
  for (uint32_t i = 0; i < p->n_steps; i++) put_step(out, p, i, depth + 2);
}

/* Results first, as in HLO's text. */
static void put_step(base_text *out, const plan_program *p, uint32_t i, uint32_t depth) {
  assert(i < p->n_steps);
  static const char *const kinds[] = {"kernel", "routine", "copy",   "while", "conditional",
                                      "call",   "start",   "update", "done"};
  const plan_step *s = &p->steps[i];
  base_putf(out, "%*s%u %s %s %s:", (int)depth, "", i, s->kind == PLAN_ROUTINE ? s->routine->name : kinds[s->kind],
            ir_opcode_text(s->op->opcode), s->op->name->s);
  for (uint32_t j = 0; j < s->n_out; j++) put_buffer(out, &p->buffers[s->out[j]]);
  BASE_PUT(out, " <-");
  for (uint32_t j = 0; j < s->n_in; j++) put_buffer(out, &p->buffers[s->in[j]]);
  BASE_PUT(out, "\n");
  for (uint32_t j = 0; j < s->n_nested; j++) put_program(out, s->nested[j], depth + 2);
}

void plan_put(base_text *out, const plan_program *p) {
  put_program(out, p, 0);
}
