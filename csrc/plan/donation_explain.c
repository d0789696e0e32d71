/* What becomes of the entry's arguments when they are donated, as text: one line an argument, for
 * Executable.explain("donation") and for the report of a call. The decisions are those of donation.c (who may be
 * given to which result) and results.c (whether that result is computed over it or copied there). */
#include "plan.h"

/* The argument itself, not what is written in its memory. NULL where the program does not name it. */
static const plan_buffer *explain_argument(const plan_program *p, uint32_t leaf) {
  for (uint32_t i = 0; i < p->n_interface; i++) {
    const plan_buffer *b = &p->buffers[p->interface[i]];
    if (b->place == PLAN_ARGUMENT && b->number == leaf && b->first == UINT32_MAX) return b;
  }
  return NULL;
}

void plan_put_donation(base_text *out, const plan_program *p, const plan_donation *d) {
  assert(out && p && d);
  const plan_buffer *b = explain_argument(p, d->argument);
  switch ((plan_donation_why)d->why) {
    case PLAN_DONATION_USED:
      base_putf(out, "result %u is computed over it", d->result);
      return;
    case PLAN_DONATION_NO_RESULT:
      base_putf(out, "no output of that size: no result has its %lld bytes", b ? (long long)b->bytes : 0);
      return;
    case PLAN_DONATION_TAKEN:
      base_putf(out, "no output of that size is left: argument %u has it", d->rival);
      return;
    case PLAN_DONATION_LATER:
      base_putf(out, "live later: %s reads it after %s has computed result %u, which is copied there at the end",
                d->reader->name->s, d->made->name->s, d->result);
      return;
    case PLAN_DONATION_ELSEWHERE:
      base_putf(out, "%s reads other elements of it than it writes: result %u is copied there at the end",
                d->made->name->s, d->result);
      return;
    case PLAN_DONATION_OTHER:
      base_putf(out, "result %u is not a new value: it is copied there at the end", d->result);
      return;
  }
}

/* "argument 2, p.1, f32[8]: " */
static void explain_put_argument(base_text *out, const plan_program *p, uint32_t leaf) {
  const plan_buffer *b = explain_argument(p, leaf);
  base_putf(out, "argument %u", leaf);
  if (b) base_putf(out, ", %s, ", b->op->name->s);
  if (b) ir_put_type(out, b->type, false);
  BASE_PUT(out, ": ");
}

static bool explain_is_listed(const plan_program *p, uint32_t leaf) {
  for (uint32_t i = 0; i < p->n_donations; i++)
    if (p->donations[i].argument == leaf) return true;
  return false;
}

/* Whether a result of its type has memory of its own. */
static bool explain_has_use(const plan_program *p, uint32_t leaf) {
  const plan_buffer *from = explain_argument(p, leaf);
  for (uint32_t i = 0; from && from->bytes && i < p->n_interface; i++) {
    const plan_buffer *b = &p->buffers[p->interface[i]];
    bool is_free = b->place == PLAN_RESULT && (!p->over || p->over[b->number] == UINT32_MAX);
    if (is_free && b->type && from->type && b->type->dtype == from->type->dtype && ir_same_bare(b->type, from->type))
      return true;
  }
  return false;
}

/* Donated arguments first, then those for which it would be worth it. */
void plan_explain_donations(base_text *out, const plan_program *p) {
  assert(out && p);
  if (p->interpreted) {
    base_putf(out, "no argument can be donated: the interpreter runs the program whole, since %s\n", p->why);
    return;
  }
  for (uint32_t i = 0; i < p->n_donations; i++) {
    explain_put_argument(out, p, p->donations[i].argument);
    plan_put_donation(out, p, &p->donations[i]);
    base_putf(out, "%s\n", p->donations[i].must ? " (must-alias)" : "");
  }
  for (uint32_t leaf = 0; leaf < p->n_arguments; leaf++) {
    if (explain_is_listed(p, leaf) || !explain_has_use(p, leaf)) continue;
    explain_put_argument(out, p, leaf);
    BASE_PUT(out, "not donated, though a result has its type: compile(donate=...) or input_output_alias would do it\n");
  }
}
