/* Registers for good: those that no trip needs have folds, then what is the same in all trips. */
#include "emit_inside.h"

enum {
  KEEP_SPARE = 4, /* registers beside living values: an instruction's operands from memory, and its result */
  KEEP_USES = 1   /* of a value in a trip, from which on it is worth a register */
};

/* Whether the value takes a register of the trip's from its first step to its last use. */
static bool keep_lives(const nat_value *v) {
  return v->width > 0 && !v->steady && v->kind != NAT_CONSTANT && v->kind != NAT_ACC;
}

uint32_t emit_pressure(const emit_run *e, uint8_t *lives) {
  uint32_t now = 0, most = 0;
  for (uint32_t i = 0; i < e->n_steps; i++) {
    const emit_step *s = &e->steps[i];
    if (s->value == NAT_NONE) continue; /* a copy */
    const nat_value *v = &e->b->values[s->value];
    const uint32_t *in = s->kind == EMIT_VALUE ? v->in : &s->value;
    uint32_t n = s->kind == EMIT_VALUE ? v->n_in : 1;
    if (s->kind == EMIT_VALUE && keep_lives(v) && !lives[s->value]) lives[s->value] = 1, now++;
    for (uint32_t j = 0; j < n; j++)
      if (keep_lives(&e->b->values[in[j]]) && !lives[in[j]]) lives[in[j]] = 1, now++;
    if (now > most) most = now;
    for (uint32_t j = 0; j < n; j++)
      if (s->next[j] == NAT_NONE && lives[in[j]]) lives[in[j]] = 0, now--;
  }
  return most + KEEP_SPARE;
}

/* Folds first: a register for each vector of the trip, or none. */
static void keep_folds(emit_run *e, uint32_t *free) {
  for (uint32_t f = 0; f < e->b->n_folds && *free >= e->b->turns; f++, *free -= e->b->turns)
    for (uint32_t j = 0; j < e->b->turns; j++)
      e->homes[f].reg[j] = (uint8_t)(e->target->registers - 1 - e->n_residents++);
}

/* How often a trip reads each value that is the same in all trips. NULL when out of memory. */
static uint32_t *keep_count(const emit_run *e, base_arena *scratch) {
  uint32_t *uses = base_arena_zalloc(scratch, (e->b->n_values + 1) * sizeof *uses);
  for (uint32_t i = 0; uses && i < e->n_steps; i++) {
    if (e->steps[i].kind != EMIT_VALUE) continue;
    const nat_value *v = &e->b->values[e->steps[i].value];
    for (uint32_t j = 0; j < v->n_in; j++) {
      const nat_value *x = &e->b->values[v->in[j]];
      if (x->width > 0 && x->kind != NAT_TABLE && (x->steady || x->kind == NAT_CONSTANT)) uses[v->in[j]]++;
    }
  }
  return uses;
}

/* Those that are read most, the first of equals. */
static void keep_values(emit_run *e, uint32_t *uses, uint32_t free) {
  for (; free > 0; free--) {
    uint32_t best = 0;
    for (uint32_t i = 0; i < e->b->n_values; i++)
      if (uses[i] > uses[best]) best = i;
    if (uses[best] < KEEP_USES) return;
    uses[best] = 0;
    e->kept_in[e->n_kept] = (uint8_t)(e->target->registers - 1 - e->n_residents++);
    e->kept[e->n_kept++] = best;
  }
}

bool emit_choose_kept(emit_run *e, uint32_t free, base_arena *scratch) {
  uint32_t *uses = keep_count(e, scratch);
  if (uses) keep_values(e, uses, free);
  return uses != NULL;
}

/* Whether functions are called for each vector: around calls all that is in registers is saved. */
static bool keep_calls(const nat_body *b) {
  for (uint32_t i = 0; i < b->n_values; i++)
    if (b->values[i].kind == NAT_CALL) return true;
  return false;
}

bool emit_choose_residents(emit_run *e, uint32_t pressure, base_arena *scratch) {
  uint32_t free = pressure < e->target->registers ? e->target->registers - pressure : 0;
  keep_folds(e, &free);
  return keep_calls(e->b) || emit_choose_kept(e, free, scratch);
}

/* Where masks are vectors, that of the last vector takes the register of one. */
static bool keep_loses(const emit_run *e, uint32_t i) {
  return !e->target->masks && e->kept_in[i] == EMIT_MASK_REGISTER;
}

/* What stays from row to row. */
static bool keep_stays(const emit_run *e, uint32_t i) {
  return e->b->values[e->kept[i]].kind == NAT_CONSTANT && !keep_loses(e, i);
}

bool emit_is_there(const emit_run *e, uint32_t i) {
  return e->in_loop || keep_stays(e, i) || (e->masked && !keep_loses(e, i));
}

void emit_load_kept(emit_run *e, bool once) {
  for (uint32_t i = 0; i < e->n_kept; i++)
    if (keep_stays(e, i) == once) emit_load(e, e->kept[i], e->kept_in[i]);
}

void emit_load_residents(emit_run *e) {
  emit_load_kept(e, false);
  for (uint32_t f = 0; f < e->b->n_folds; f++)
    for (uint32_t j = 0; j < e->b->turns; j++) {
      uint8_t reg = e->homes[f].reg[j];
      emit_load(e, e->b->folds[f].first, reg < EMIT_REGISTERS ? reg : 0);
      if (reg == EMIT_REGISTERS) emit_move(e, e->target->vector, 0, emit_fold_slot(e, f, j), true);
    }
}

void emit_save_folds(emit_run *e) {
  for (uint32_t f = 0; f < e->b->n_folds; f++)
    for (uint32_t j = 0; j < e->b->turns; j++)
      if (e->homes[f].reg[j] < EMIT_REGISTERS)
        emit_move(e, e->target->vector, e->homes[f].reg[j], emit_fold_slot(e, f, j), true);
}
