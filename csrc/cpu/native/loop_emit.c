/* From loops to machine code. Between sections - what is between two inner loops - values are in slots of the frame;
 * a loop without loops in it is one section, whose carries, and what is the same in all its trips, have registers for
 * good. All lanes of a value are the same, so that no instruction meets numbers that the program has not. */
#include "loop.h"

#include "emit_inside.h"
#include "native.h"

enum { LOOP_CALLS = 256, LOOP_STEPS_OF_WORK = 8 };

/* A place of code that something behind the code comes back to. */
typedef struct nloop_jump {
  uint32_t jump, back;
} nloop_jump;

typedef struct nloop_emit {
  emit_run e;
  const nat_loop *l;
  nat_body own; /* whose values are steady by section */
  base_arena *scratch;
  uint8_t *needed, *kept; /* by value; kept: it has a slot */
  uint8_t *late;          /* by value: it is to be computed where it is first used */
  uint32_t *section, *into;
  uint16_t *slot;
  uint32_t sections, now; /* how many are there; the present one */
  nat_loop_weight weight;
  uint32_t n_polls, n_exits;
  nloop_jump polls[LOOP_CALLS];
  uint32_t exits[LOOP_CALLS];
} nloop_emit;

static bool nloop_is_computed(const nat_value *v) {
  return v->kind == NAT_OP || v->kind == NAT_FAR || v->kind == NAT_CALL || v->kind == NAT_LOAD_AT;
}

/* --- what is needed, and where --- */

static bool nloop_need(nloop_emit *x, uint32_t value) {
  bool is_new = value != NAT_NONE && !x->needed[value];
  if (is_new) x->needed[value] = 1;
  return is_new;
}

static bool nloop_need_operands(nloop_emit *x, uint32_t value) {
  const nat_value *v = &x->own.values[value];
  bool more = false;
  for (uint32_t j = 0; j < v->n_in; j++) more |= nloop_need(x, v->in[j]);
  if (v->kind != NAT_ACC && v->kind != NAT_RESULT) return more;
  const nat_carry *c = &x->l->carries.items[v->bits];
  more |= nloop_need(x, c->acc);
  more |= nloop_need(x, c->first);
  return nloop_need(x, c->value) || more;
}

/* From what is stored, or ends loops, to what that needs, trip after trip. */
static void nloop_find_needed(nloop_emit *x) {
  bool more = true;
  for (uint32_t r = 0; r < x->l->regions.n; r++)
    for (uint32_t i = 0; i < x->l->regions.items[r].items.n; i++) {
      const nat_item *it = &x->l->regions.items[r].items.items[i];
      if (it->kind == NAT_ITEM_VALUE || it->kind == NAT_ITEM_LOOP) continue;
      nloop_need(x, it->value);
      if (it->kind != NAT_ITEM_EXIT) nloop_need(x, it->at);
    }
  while (more) {
    more = false;
    for (uint32_t i = x->own.n_values; i-- > 0;)
      if (x->needed[i]) more |= nloop_need_operands(x, i);
  }
}

/* A value that another section reads has a slot. */
static void nloop_read(nloop_emit *x, uint32_t value) {
  if (value == NAT_NONE || !nloop_is_computed(&x->own.values[value]) || x->section[value] == x->now) return;
  x->kept[value] = 1;
}

static void nloop_read_carries(nloop_emit *x, const nat_region *r, bool first) {
  for (uint32_t i = r->first_carry; i < r->first_carry + r->n_carries; i++) {
    const nat_carry *c = &x->l->carries.items[i];
    if (x->needed[c->acc]) nloop_read(x, first ? c->first : c->value);
  }
}

static void nloop_number_item(nloop_emit *x, const nat_item *it) {
  if (it->kind != NAT_ITEM_VALUE) {
    nloop_read(x, it->value);
    if (it->kind != NAT_ITEM_EXIT) nloop_read(x, it->at);
  } else if (x->needed[it->value]) {
    const nat_value *v = &x->own.values[it->value];
    for (uint32_t j = 0; j < v->n_in; j++) nloop_read(x, v->in[j]);
    x->section[it->value] = x->now;
  }
}

/* Sections in the order of the code. Regions are as deep as the plan's programs are. */
static void nloop_number(nloop_emit *x, uint32_t region) {
  const nat_region *r = &x->l->regions.items[region];
  x->now = x->sections++;
  for (uint32_t i = 0; i < r->items.n; i++) {
    const nat_item *it = &r->items.items[i];
    if (it->kind != NAT_ITEM_LOOP) {
      nloop_number_item(x, it);
      continue;
    }
    nloop_read_carries(x, &x->l->regions.items[it->value], true);
    nloop_number(x, it->value);
    x->now = x->sections++;
  }
  if (region) nloop_read_carries(x, r, false);
}

static bool nloop_give_slots(nloop_emit *x) {
  emit_run *e = &x->e;
  for (uint32_t i = 0; i < x->own.n_values; i++)
    if (x->kept[i]) x->slot[i] = emit_new_slot(e);
  for (uint32_t i = 0; i < x->l->carries.n; i++) {
    e->homes[i] = (emit_home){.acc = x->l->carries.items[i].acc};
    memset(e->homes[i].reg, EMIT_REGISTERS, sizeof e->homes[i].reg);
    if (x->needed[e->homes[i].acc]) e->homes[i].slot = emit_new_slot(e);
  }
  e->n_steady_slots = e->n_slots;
  return !e->failed;
}

/* --- sections --- */

static void nloop_step(nloop_emit *x, emit_kind kind, uint32_t value, uint32_t number) {
  x->e.steps[x->e.n_steps++] =
      (emit_step){.kind = (uint8_t)kind, .value = value, .number = number, .next = {NAT_NONE, NAT_NONE, NAT_NONE}};
}

/* A lane of a value, which has not been computed yet. */
static void nloop_now(nloop_emit *x, uint32_t value) {
  if (value == NAT_NONE || !x->late[value]) return;
  x->late[value] = 0;
  nloop_now(x, x->own.values[value].in[0]);
  nloop_step(x, EMIT_VALUE, value, 0);
}

/* A lane of a value waits until it is used, since it takes a register; what it is of has one anyway. */
static void nloop_plan_value(nloop_emit *x, uint32_t value) {
  const nat_value *v = &x->own.values[value];
  uint32_t of = 0;
  unsigned lane = 0;
  if (nat_loop_is_lane(v, &of, &lane)) {
    x->late[value] = 1;
    return;
  }
  for (uint32_t j = 0; j < v->n_in; j++) nloop_now(x, v->in[j]);
  nloop_step(x, EMIT_VALUE, value, 0);
}

/* The operands of a step; how many. */
static uint32_t nloop_operands(const nloop_emit *x, const nat_region *r, const emit_step *s, uint32_t *in) {
  const nat_value *v = s->kind == EMIT_VALUE ? &x->own.values[s->value] : NULL;
  uint32_t n = v ? v->n_in : s->value != NAT_NONE;
  for (uint32_t j = 0; j < n; j++) in[j] = v ? v->in[j] : s->value;
  if (s->kind != EMIT_STORE && s->kind != EMIT_COPY) return n;
  if (r->items.items[s->number].at != NAT_NONE) in[n++] = r->items.items[s->number].at;
  return n;
}

static void nloop_place_values(nloop_emit *x) {
  emit_run *e = &x->e;
  for (uint32_t i = 0; i < x->own.n_values; i++) {
    const nat_value *v = &x->own.values[i];
    bool carried = v->kind == NAT_ACC || v->kind == NAT_RESULT;
    uint8_t reg = e->in_loop && v->kind == NAT_ACC ? e->homes[v->bits].reg[0] : EMIT_REGISTERS;
    uint16_t slot = v->kind == NAT_RESULT ? e->homes[v->bits].slot : 0;
    if (!carried && x->kept[i] && x->section[i] != x->now) slot = x->slot[i];
    e->places[i] = (emit_place){reg, reg < EMIT_REGISTERS, slot, NAT_NONE};
  }
  for (uint32_t i = 0; e->in_loop && i < e->n_kept; i++) {
    e->places[e->kept[i]].reg = e->kept_in[i];
    e->places[e->kept[i]].resident = true;
  }
}

static void nloop_find_uses(nloop_emit *x, const nat_region *r) {
  emit_run *e = &x->e;
  nloop_place_values(x);
  for (uint32_t i = e->n_steps; i-- > 0;) {
    uint32_t in[3], n = nloop_operands(x, r, &e->steps[i], in);
    for (uint32_t j = 0; j < n; j++) e->steps[i].next[j] = e->places[in[j]].next;
    for (uint32_t j = 0; j < n; j++) e->places[in[j]].next = i;
  }
}

/* Steps that carries become their first values by, or their next ones. */
static void nloop_plan_carries(nloop_emit *x, const nat_region *r, bool first) {
  for (uint32_t i = r->first_carry; i < r->first_carry + r->n_carries; i++) {
    const nat_carry *c = &x->l->carries.items[i];
    if (!x->needed[c->acc] || (!first && c->value == c->acc)) continue;
    nloop_now(x, first ? c->first : c->value);
    nloop_step(x, EMIT_FOLD, first ? c->first : c->value, i);
  }
}

/* The section of the region that begins at an item: gives the item after its last. */
static uint32_t nloop_plan(nloop_emit *x, uint32_t region, uint32_t from) {
  const nat_region *r = &x->l->regions.items[region];
  emit_run *e = &x->e;
  e->n_steps = 0;
  e->exit = 0;
  uint32_t first = from;
  for (; from < r->items.n && r->items.items[from].kind != NAT_ITEM_LOOP; from++) {
    const nat_item *it = &r->items.items[from];
    if (it->kind != NAT_ITEM_VALUE) nloop_now(x, it->value);
    if (it->kind == NAT_ITEM_PUT || it->kind == NAT_ITEM_COPY) nloop_now(x, it->at);
    if (it->kind == NAT_ITEM_EXIT) e->exit = e->n_steps;
    if (it->kind == NAT_ITEM_VALUE && x->needed[it->value]) nloop_plan_value(x, it->value);
    if (it->kind == NAT_ITEM_PUT) nloop_step(x, EMIT_STORE, it->value, from);
    if (it->kind == NAT_ITEM_COPY) nloop_step(x, EMIT_COPY, it->value, from);
    if (it->kind == NAT_ITEM_EXIT) nloop_step(x, EMIT_EXIT, it->value, 0);
  }
  for (uint32_t i = first; i < from; i++) /* for other sections */
    if (r->items.items[i].kind == NAT_ITEM_VALUE) nloop_now(x, r->items.items[i].value);
  if (from < r->items.n)
    nloop_plan_carries(x, &x->l->regions.items[r->items.items[from].value], true);
  else if (region)
    nloop_plan_carries(x, r, false);
  nloop_find_uses(x, r);
  return from;
}

/* --- steps --- */

/* The place in memory; rax and rcx may be used for it. */
static x86_rm nloop_address(nloop_emit *x, const nat_place *p, uint32_t at) {
  emit_run *e = &x->e;
  unsigned base = p->array < EMIT_POINTERS ? emit_pointers[p->array] : X86_RCX;
  if (p->array >= EMIT_POINTERS) x86_load(e->c, X86_RCX, emit_pointer(p->array));
  x86_rm m = x86_at(base, (int32_t)p->offset);
  if (at == NAT_NONE) return m;
  unsigned reg = emit_pin(e, at);
  x86_vector(e->c, x->own.values[at].width == 8 ? X86_MOVQ_BACK : X86_MOVD_BACK, 16, reg, 0, x86_reg(X86_RAX), 0);
  bool scales = p->stride == 1 || p->stride == 2 || p->stride == 4 || p->stride == 8;
  if (!scales) x86_multiply_number(e->c, X86_RAX, X86_RAX, (int32_t)p->stride);
  m.index = X86_RAX, m.scale = scales ? (uint8_t)p->stride : 1;
  return m;
}

static void nloop_load(nloop_emit *x, const emit_step *s) {
  static const uint8_t ops[] = {
      [1] = X86_BROADCASTB, [2] = X86_BROADCASTW, [4] = X86_BROADCASTSS, [8] = X86_BROADCASTSD};
  const nat_value *v = &x->own.values[s->value];
  const nat_place *p = &x->l->places.items[(uint32_t)v->bits];
  x86_rm m = nloop_address(x, p, v->n_in ? v->in[0] : NAT_NONE);
  emit_release(&x->e, s, v->in, v->n_in);
  if (p->width == 16) {
    emit_move(&x->e, 16, emit_take(&x->e, s->value), m, false);
    return;
  }
  x86_vector(x->e.c, (x86_op)ops[p->width], p->width == 8 ? 32 : 16, emit_take(&x->e, s->value), 0, m, 0);
}

static void nloop_store(nloop_emit *x, const nat_region *r, const emit_step *s) {
  const nat_item *it = &r->items.items[s->number];
  const nat_place *p = &x->l->places.items[it->place];
  emit_run *e = &x->e;
  x86_rm m = nloop_address(x, p, it->at);
  unsigned reg = emit_pin(e, s->value);
  if (p->width >= 4)
    emit_move(e, p->width, reg, m, true);
  else
    x86_vector(e->c, p->width == 1 ? X86_PEXTRB : X86_PEXTRW, 16, reg, 0, m, 0);
  uint32_t in[3], n = nloop_operands(x, r, s, in);
  emit_release(e, s, in, n);
}

/* The place's address in a register, but for its offset. */
static x86_rm nloop_address_in(nloop_emit *x, unsigned to, const nat_place *p, uint32_t at) {
  emit_run *e = &x->e;
  bool loaded = p->array < EMIT_POINTERS;
  if (at != NAT_NONE) {
    x86_vector(e->c, x->own.values[at].width == 8 ? X86_MOVQ_BACK : X86_MOVD_BACK, 16, emit_pin(e, at), 0, x86_reg(to),
               0);
    if (p->stride != 1) x86_multiply_number(e->c, to, to, (int32_t)p->stride);
    if (loaded)
      x86_add(e->c, to, emit_pointers[p->array]);
    else
      x86_add_memory(e->c, to, emit_pointer(p->array));
  } else if (loaded) {
    to = emit_pointers[p->array];
  } else {
    x86_load(e->c, to, emit_pointer(p->array));
  }
  return x86_at(to, (int32_t)p->offset);
}

/* In whole registers; the last one lies over what is copied already. */
static void nloop_copy(nloop_emit *x, const nat_region *r, const emit_step *s) {
  const nat_item *it = &r->items.items[s->number];
  emit_run *e = &x->e;
  uint32_t most = e->c->evex ? 64 : 32, done = 0;
  x86_rm from = nloop_address_in(x, X86_RAX, &x->l->places.items[it->from], it->value);
  x86_rm to = nloop_address_in(x, X86_RCX, &x->l->places.items[it->place], it->at);
  unsigned reg = emit_take(e, NAT_NONE);
  while (most > it->bytes) most /= 2;
  while (done < it->bytes) {
    while (most / 2 >= it->bytes - done && most > 4) most /= 2;
    uint32_t at = done + most > it->bytes ? it->bytes - most : done;
    x86_rm a = from, b = to;
    a.disp += (int32_t)at, b.disp += (int32_t)at;
    emit_move(e, most, reg, a, false);
    emit_move(e, most, reg, b, true);
    done = at + most;
  }
  uint32_t in[3], n = nloop_operands(x, r, s, in);
  emit_release(e, s, in, n);
}

/* By the first lane. */
static void nloop_exit(nloop_emit *x, const emit_step *s) {
  emit_run *e = &x->e;
  unsigned reg = emit_pin(e, s->value);
  if (reg >= EMIT_MASKS)
    x86_on_masks(e->c, X86_KMOV_BACK, X86_RAX, 0, x86_reg(reg - EMIT_MASKS));
  else
    x86_vector(e->c, X86_MOVD_BACK, 16, reg, 0, x86_reg(X86_RAX), 0);
  x86_and_number(e->c, X86_RAX, 1);
  if (x->n_exits == LOOP_CALLS) {
    e->failed = true;
    return;
  }
  x->exits[x->n_exits++] = x86_jump_on(e->c, X86_IF_EQUAL);
  emit_release(e, s, &s->value, 1);
}

/* A value that other sections read goes to its slot. */
static void nloop_keep(nloop_emit *x, uint32_t value) {
  emit_run *e = &x->e;
  emit_place *p = &e->places[value];
  if (!x->kept[value]) return;
  unsigned reg = emit_pin(e, value);
  x86_rm m = emit_slot(e, x->slot[value]);
  p->slot = x->slot[value];
  if (reg >= EMIT_MASKS)
    x86_on_masks(e->c, X86_KMOV_TO, reg - EMIT_MASKS, 0, m);
  else
    emit_move(e, 16, reg, m, true);
  if (p->next != NAT_NONE || p->resident) return;
  e->held[reg] = NAT_NONE;
  p->reg = EMIT_REGISTERS;
}

static void nloop_value(nloop_emit *x, const emit_step *s) {
  const nat_value *v = &x->own.values[s->value];
  if (v->kind == NAT_LOAD_AT)
    nloop_load(x, s);
  else if (v->kind == NAT_FAR)
    emit_far(&x->e, s);
  else if (v->kind == NAT_CALL)
    emit_loop_call(&x->e, s);
  else
    emit_op(&x->e, s);
  nloop_keep(x, s->value);
}

/* In the text, the op that the instructions which follow are for. */
static void nloop_say(nloop_emit *x, const nat_region *r, const emit_step *s) {
  emit_run *e = &x->e;
  bool item = s->kind == EMIT_STORE || s->kind == EMIT_COPY;
  uint32_t line = item ? r->items.items[s->number].line : s->kind == EMIT_VALUE ? x->own.values[s->value].from : 0;
  if (!e->c->text || line == 0 || line == e->said) return;
  base_putf(e->c->text, "# %s\n", x->l->lines.items[line - 1]);
  e->said = line;
}

static void nloop_section(nloop_emit *x, const nat_region *r) {
  emit_run *e = &x->e;
  e->said = 0;
  for (unsigned i = 0; i < EMIT_REGISTERS; i++) e->held[i] = NAT_NONE;
  e->n_registers = (uint8_t)(e->target->registers - (e->in_loop ? e->n_residents : 0));
  e->n_slots = e->n_steady_slots;
  for (e->now = 0; e->now < e->n_steps && !e->failed; e->now++) {
    const emit_step *s = &e->steps[e->now];
    e->pinned = 0;
    nloop_say(x, r, s);
    if (s->kind == EMIT_STORE)
      nloop_store(x, r, s);
    else if (s->kind == EMIT_COPY)
      nloop_copy(x, r, s);
    else if (s->kind == EMIT_EXIT)
      nloop_exit(x, s);
    else if (s->kind == EMIT_FOLD)
      emit_fold(e, s);
    else
      nloop_value(x, s);
  }
  if (!e->in_loop) return;
  x->weight.steps += e->n_steps;
  if (e->n_slots != e->n_steady_slots) x->weight.fits = false;
}

/* --- loops --- */

/* Around a call all registers are saved, so that nothing is gained by those for good. */
static bool nloop_calls(const nloop_emit *x) {
  for (uint32_t i = 0; i < x->e.n_steps; i++)
    if (x->e.steps[i].kind == EMIT_VALUE && x->own.values[x->e.steps[i].value].kind == NAT_CALL) return true;
  return false;
}

/* Registers for good of a loop that has no other in it: for carries, then for what is the same in all trips. */
static void nloop_choose(nloop_emit *x, uint32_t region) {
  const nat_region *r = &x->l->regions.items[region];
  emit_run *e = &x->e;
  uint8_t *lives = base_arena_zalloc(x->scratch, x->own.n_values + 1);
  e->n_residents = 0, e->n_kept = 0;
  if (!lives) {
    e->failed = true;
    return;
  }
  for (uint32_t i = 0; i < x->own.n_values; i++) x->own.values[i].steady = x->l->owners.items[i] != region;
  for (uint32_t i = 0; i < r->n_carries; i++)
    x->into[x->l->carries.items[r->first_carry + i].value] = r->first_carry + i;
  nloop_plan(x, region, 0);
  uint32_t pressure = emit_pressure(e, lives), most = e->target->registers;
  uint32_t free = pressure < most && !nloop_calls(x) ? most - pressure : 0;
  for (uint32_t i = r->first_carry; free > 0 && i < r->first_carry + r->n_carries; i++)
    if (x->needed[e->homes[i].acc]) e->homes[i].reg[0] = (uint8_t)(most - 1u - e->n_residents++), free--;
  for (uint32_t i = r->first_carry; i < r->first_carry + r->n_carries; i++)
    if (x->needed[e->homes[i].acc] && e->homes[i].reg[0] == EMIT_REGISTERS) x->weight.fits = false;
  if (!emit_choose_kept(e, free, x->scratch)) e->failed = true;
}

/* Between the registers that carries have and their slots. */
static void nloop_move_carries(nloop_emit *x, const nat_region *r, bool store) {
  emit_run *e = &x->e;
  for (uint32_t i = r->first_carry; i < r->first_carry + r->n_carries; i++)
    if (e->homes[i].reg[0] < EMIT_REGISTERS)
      emit_move(e, 16, e->homes[i].reg[0], emit_slot(e, e->homes[i].slot), store);
}

/* What is left to do before the next look at interruptions is in rdx. */
static void nloop_poll(nloop_emit *x, const nat_region *r) {
  x86_code *c = x->e.c;
  x86_add_number(c, X86_RDX, -(int32_t)(r->items.n / LOOP_STEPS_OF_WORK + 1));
  if (x->n_polls == LOOP_CALLS) {
    x->e.failed = true;
    return;
  }
  uint32_t jump = x86_jump_on(c, X86_IF_NOT_MORE);
  x->polls[x->n_polls++] = (nloop_jump){jump, x86_target(c)};
}

static void nloop_region(nloop_emit *x, uint32_t region);
static void nloop_branch(nloop_emit *x, uint32_t region);

static void nloop_sections(nloop_emit *x, uint32_t region) {
  const nat_region *r = &x->l->regions.items[region];
  for (uint32_t i = 0;; i++) {
    x->now = x->sections++;
    i = nloop_plan(x, region, i);
    nloop_section(x, r);
    if (i >= r->items.n || x->e.failed) return;
    uint32_t inner = r->items.items[i].value;
    if (x->l->regions.items[inner].once)
      nloop_branch(x, inner);
    else
      nloop_region(x, inner);
  }
}

/* Its carries are in the frame all the time. */
static void nloop_branch(nloop_emit *x, uint32_t region) {
  uint32_t exits = x->n_exits;
  x->e.in_loop = false;
  nloop_sections(x, region);
  while (x->n_exits > exits) x86_land(x->e.c, x->exits[--x->n_exits]);
}

/* Sections have the numbers that nloop_number gave them. */
static void nloop_region(nloop_emit *x, uint32_t region) {
  const nat_region *r = &x->l->regions.items[region];
  emit_run *e = &x->e;
  x86_code *c = e->c;
  uint32_t exits = x->n_exits;
  bool inner = !r->has_loops;
  if (inner) {
    x->now = x->sections;
    nloop_choose(x, region);
    nloop_find_uses(x, r);
    for (uint32_t i = 0; i < e->n_kept; i++) emit_load(e, e->kept[i], e->kept_in[i]);
    nloop_move_carries(x, r, false);
    e->in_loop = true;
  }
  x86_align(c, 32);
  uint32_t top = x86_target(c);
  nloop_poll(x, r);
  nloop_sections(x, region);
  if (e->failed) return;
  x86_jump_back(c, X86_ALWAYS, top);
  while (x->n_exits > exits) x86_land(c, x->exits[--x->n_exits]);
  e->in_loop = false;
  if (!inner) return;
  nloop_move_carries(x, r, true);
  for (uint32_t i = r->first_carry; i < r->first_carry + r->n_carries; i++) e->homes[i].reg[0] = EMIT_REGISTERS;
  for (uint32_t i = 0; i < r->n_carries; i++) x->into[x->l->carries.items[r->first_carry + i].value] = NAT_NONE;
}

/* Whether to go on: all registers are saved around the call, which gives what may be done before the next. */
static void nloop_poll_call(nloop_emit *x, const nloop_jump *j) {
  static const uint8_t kept[] = {X86_RDX, X86_RDI, X86_RSI, X86_RCX, X86_R8, X86_R9, X86_R10, X86_R11};
  enum { KEPT = sizeof kept };
  x86_code *c = x->e.c;
  x86_land(c, j->jump);
  emit_save(&x->e, UINT64_MAX, true);
  for (unsigned i = KEPT; i-- > 0;) x86_push(c, kept[i]);
  x86_load(c, X86_RDI, emit_pointer(NAT_LOOP_ARRAYS));
  x86_call(c, (uintptr_t)cpu_native_loop_poll);
  x86_store(c, x86_at(X86_RSP, 0), X86_RAX);
  for (unsigned i = 0; i < KEPT; i++) x86_pop(c, kept[i]);
  emit_save(&x->e, UINT64_MAX, false);
  x86_compare_number(c, X86_RDX, 0);
  x86_jump_back(c, X86_IF_NOT_EQUAL, j->back);
  x86_zero(c, X86_RAX);
  x86_add_number(c, X86_RAX, 1);
  emit_leave(&x->e);
}

static bool nloop_emit_all(nloop_emit *x) {
  emit_run *e = &x->e;
  nloop_find_needed(x);
  nloop_number(x, 0);
  if (!nloop_give_slots(x)) return false;
  x->sections = 0;
  (void)emit_enter(e);
  nloop_sections(x, 0);
  x86_zero(e->c, X86_RAX);
  emit_leave(e);
  for (uint32_t i = 0; i < x->n_polls && !e->failed; i++) nloop_poll_call(x, &x->polls[i]);
  for (uint32_t i = 0; i < e->n_calls && !e->failed; i++) emit_call_out(e, &e->calls[i]);
  return !e->failed && !e->c->failed;
}

static bool nloop_emit_begin(nloop_emit *x, const nat_loop *l, base_arena *scratch) {
  uint32_t n = l->body.n_values, items = l->carries.n * 2;
  for (uint32_t i = 0; i < l->regions.n; i++) items += l->regions.items[i].items.n;
  x->needed = base_arena_zalloc(scratch, n + 1);
  x->kept = base_arena_zalloc(scratch, n + 1);
  x->late = base_arena_zalloc(scratch, n + 1);
  x->section = BASE_ARRAY(scratch, uint32_t, n + 1);
  x->into = BASE_ARRAY(scratch, uint32_t, n + 1);
  x->slot = base_arena_zalloc(scratch, (n + 1) * sizeof *x->slot);
  x->own.values = base_arena_memdup(scratch, l->body.values, (n + 1) * sizeof *l->body.values);
  x->e.places = base_arena_zalloc(scratch, (n + 1) * sizeof *x->e.places);
  x->e.steps = BASE_ARRAY(scratch, emit_step, items + 1);
  x->e.homes = BASE_ARRAY(scratch, emit_home, l->carries.n + 1);
  if (!x->needed || !x->kept || !x->late || !x->section || !x->into || !x->slot || !x->own.values) return false;
  if (!x->e.places || !x->e.steps || !x->e.homes) return false;
  memset(x->section, 255, (n + 1) * sizeof *x->section);
  memset(x->into, 255, (n + 1) * sizeof *x->into);
  x->e.into = x->into;
  return true;
}

bool nat_loop_emit(const nat_loop *l, x86_code *c, base_arena *scratch, nat_loop_weight *weight) {
  nloop_emit x = {.l = l, .own = l->body, .scratch = scratch, .weight = {.fits = true}};
  x.e = (emit_run){.b = &x.own, .target = l->body.target, .c = c, .n_slots = EMIT_FIRST_SLOT};
  x.e.most_slots = EMIT_LOOP_SLOTS;
  c->evex = l->body.target->masks;
  assert(!l->body.failed && l->now == 0 && c->bytes.n == 0 && l->body.target->vector == 16);
  bool done = nloop_emit_begin(&x, l, scratch) && nloop_emit_all(&x);
  if (weight) *weight = x.weight;
  return done;
}
