/* Lanes of a cycle (cycle.c) from where they lie: whole vectors that a permutation puts in order, of two where one is
 * too short; or where the target has none for such lanes, 16 bytes at a time. What does not go on with the cycles is
 * read under a mask, since an array may end there; else the caller knows where (nat_spreads). */
#include "emit_inside.h"

enum { SPREAD_PART = 16 };

/* Elements that are read at a time, and how many of them become lanes. */
typedef struct spread_way {
  bool permutes;
  uint32_t unit, lanes;
} spread_way;

static spread_way spread_way_of(const nat_body *b, uint32_t width) {
  bool permutes = b->target->masks && width > 1 && width * b->lanes >= 2 * SPREAD_PART;
  uint32_t unit = permutes ? b->lanes : SPREAD_PART / width;
  return (spread_way){permutes, unit, unit < b->lanes ? unit : b->lanes};
}

static void spread_range(const int64_t *at, uint32_t n, int64_t *least, int64_t *most) {
  *least = *most = at[0];
  for (uint32_t i = 1; i < n; i++) {
    if (at[i] < *least) *least = at[i];
    if (at[i] > *most) *most = at[i];
  }
}

bool nat_spreads(const nat_body *b, const nat_pattern *p, uint32_t width, int64_t *room) {
  spread_way way = spread_way_of(b, width);
  bool goes_on = p->step != 0;
  int64_t least = 0, most = 0;
  *room = INT64_MAX;
  if (!goes_on && !b->target->masks) return false;
  for (uint32_t i = 0; i < b->trip; i += way.lanes) {
    spread_range(p->at + i, way.lanes, &least, &most);
    if (most - least >= (goes_on ? 2 : 1) * (int64_t)way.unit) return false;
    int64_t end = least + way.unit > most + 1 ? least + way.unit : most + 1;
    if (goes_on && p->last + 1 - end < *room) *room = p->last + 1 - end;
  }
  return true;
}

/* A unit from element `from` on, of which the first n are needed. */
static void spread_read(emit_run *e, const nat_value *v, const nat_pattern *p, uint32_t bytes, unsigned reg,
                        int64_t from, int64_t n) {
  x86_rm m = x86_at(emit_pointers[(uint32_t)v->bits], (int32_t)(from * v->width));
  if (p->step) {
    emit_move(e, bytes, reg, m, false);
    return;
  }
  assert(n > 0 && n <= 64);
  x86_number(e->c, X86_RAX, UINT64_MAX >> (64 - n));
  x86_on_masks(e->c, X86_KMOV_FROM, EMIT_LANES_MASK - EMIT_MASKS, 0, x86_reg(X86_RAX));
  emit_under(e, v->width, EMIT_LANES_MASK, reg, m, false);
}

/* All lanes by one permutation. */
static void spread_permuted(emit_run *e, const nat_value *v, const nat_pattern *p, const int64_t *at, unsigned to) {
  static const x86_op one[] = {[2] = X86_PERMW, [4] = X86_PERMD, [8] = X86_PERMQ};
  static const x86_op two[] = {[2] = X86_PERMT2W, [4] = X86_PERMT2D, [8] = X86_PERMT2Q};
  uint32_t lanes = e->b->lanes, bytes = lanes * v->width;
  uint8_t which[NAT_VECTOR] = {0};
  int64_t least = 0, most = 0;
  bool in_order = true;
  spread_range(at, lanes, &least, &most);
  int64_t second = most + 1 - lanes;
  bool both = most - least >= lanes;
  for (uint32_t j = 0; j < lanes; j++) {
    int64_t place = at[j] - least;
    in_order = in_order && place == j;
    which[j * v->width] = (uint8_t)(place < lanes ? place : lanes + at[j] - second);
  }
  spread_read(e, v, p, bytes, to, least, most - least + 1);
  if (in_order) return;
  unsigned index = emit_take(e, NAT_NONE);
  emit_move(e, bytes, index, x86_constant((int32_t)x86_add_constant(e->c, which, bytes)), false);
  x86_rm more = x86_at(emit_pointers[(uint32_t)v->bits], (int32_t)(second * v->width));
  x86_vector(e->c, (both ? two : one)[v->width], bytes, to, index, both ? more : x86_reg(to), 0);
  e->held[index] = NAT_NONE;
}

/* n lanes, from the units that begin with the first of them and end with the last. */
static void spread_part(emit_run *e, const nat_value *v, const nat_pattern *p, const int64_t *at, uint32_t n,
                        unsigned to, unsigned other) {
  int64_t least = 0, most = 0, unit = SPREAD_PART / v->width;
  spread_range(at, n, &least, &most);
  for (int64_t from = least, had = 0; had < 2; had++, from = most + 1 - unit) {
    uint8_t which[SPREAD_PART];
    unsigned reg = had ? other : to;
    memset(which, 0x80, sizeof which);
    for (uint32_t j = 0; j < n * v->width; j++) {
      int64_t place = at[j / v->width];
      if ((place - least >= unit) == (had != 0)) which[j] = (uint8_t)((place - from) * v->width + j % v->width);
    }
    spread_read(e, v, p, SPREAD_PART, reg, from, most - least + 1);
    x86_rm order = x86_constant((int32_t)x86_add_constant(e->c, which, SPREAD_PART));
    x86_vector(e->c, X86_PSHUFB, SPREAD_PART, reg, reg, order, 0);
    if (had) x86_vector(e->c, X86_XORD, SPREAD_PART, to, to, x86_reg(other), 0);
    if (most - least < unit) return;
  }
}

static void spread_shuffled(emit_run *e, const nat_value *v, const nat_pattern *p, const int64_t *at, unsigned to) {
  spread_way way = spread_way_of(e->b, v->width);
  unsigned other = emit_take(e, NAT_NONE);
  e->pinned |= 1ull << other;
  unsigned more = way.lanes < e->b->lanes ? emit_take(e, NAT_NONE) : to;
  spread_part(e, v, p, at, way.lanes, to, other);
  for (uint32_t from = way.lanes; from < e->b->lanes; from += way.lanes) {
    spread_part(e, v, p, at + from, way.lanes, more, other);
    x86_op insert = e->target->masks ? X86_INSERT16 : X86_INSERTHI;
    x86_vector(e->c, insert, e->target->vector, to, to, x86_reg(more), from / way.lanes);
  }
  e->held[other] = NAT_NONE;
  if (more != to) e->held[more] = NAT_NONE;
}

void emit_spread(emit_run *e, const emit_step *s) {
  const nat_value *v = &e->b->values[s->value];
  const nat_pattern *p = e->b->patterns[v->bits >> 32];
  const int64_t *at = p->at + (size_t)s->turn * e->b->lanes;
  if ((uint32_t)v->bits >= EMIT_POINTERS) {
    e->failed = true;
    return;
  }
  unsigned to = emit_take(e, s->value);
  e->pinned |= 1ull << to;
  if (spread_way_of(e->b, v->width).permutes)
    spread_permuted(e, v, p, at, to);
  else
    spread_shuffled(e, v, p, at, to);
}

void emit_numbers(emit_run *e, const emit_step *s) {
  const nat_value *v = &e->b->values[s->value];
  const nat_pattern *p = e->b->patterns[v->bits];
  uint32_t bytes = e->b->lanes * v->width < 16 ? 16 : e->b->lanes * v->width;
  uint8_t numbers[NAT_VECTOR] = {0};
  for (uint32_t j = 0; j < e->b->lanes; j++)
    memcpy(numbers + j * v->width, &p->at[(size_t)s->turn * e->b->lanes + j], v->width);
  emit_move(e, bytes, emit_take(e, s->value), x86_constant((int32_t)x86_add_constant(e->c, numbers, bytes)), false);
}

/* Pointers go on to the next cycle. */
void emit_cycle_on(emit_run *e) {
  for (uint32_t i = 0; i < e->b->n_streams; i++) {
    const nat_stream *s = &e->b->streams[i];
    int64_t by = s->cycle * s->width;
    if (!s->spreads || !by) continue;
    e->failed = e->failed || i >= EMIT_POINTERS || by != (int32_t)by;
    if (!e->failed) x86_add_number(e->c, emit_pointers[i], (int32_t)by);
  }
}
