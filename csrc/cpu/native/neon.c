/* AArch64 code for bodies: one loop over whole vectors, whose values stay in registers from load to store. Nothing is
 * put into memory between: a body with more values at a time than registers is not covered. Constants are loaded where
 * they are used.
 *
 * x0: the arguments, x1: iterations, from x2 on: where each stream is. v0 to v27 have values, but for v8 to v15, which
 * are the caller's; v28 to v31 operands at hand. */
#if defined(__aarch64__) || defined(XLAC_TEST_NEON)
#include "emit.h"
#include "neon.h"

enum {
  NEON_STREAMS = 14, /* x2 to x15 */
  NEON_VALUES = 28,
  NEON_KEPT = 0xFF00, /* v8 to v15 */
  NEON_TEMP = 28,     /* and from the next one on operands */
  NEON_OPERANDS = 3,
  NEON_NO_REG = 255,
  NEON_RET = (int)0xD65F03C0u
};

typedef enum neon_form {
  NEON_NONE,
  NEON_X,
  NEON_XY,
  NEON_YX,
  NEON_LESSER,
  NEON_LARGER,
  NEON_COMPARE,
  NEON_ROUND,
  NEON_SUM,
  NEON_SUM_LESS,
  NEON_BLEND,
  NEON_LEFT,
  NEON_RIGHT,
  NEON_WIDENED,
  NEON_NARROWED,
  NEON_MOVE
} neon_form;

typedef struct neon_row {
  uint8_t form;
  uint32_t word[2]; /* of 4 and 8 bytes */
} neon_row;
static const neon_row neon_table[NAT_LANES] = {
#define NEON(name, form, four, eight) [NAT_##name] = {NEON_##form, {four, eight}},
#include "neon.def"
#undef NEON
};

/* Operations on bits are the same for narrower lanes, which these bodies have none of. */
static const uint8_t neon_ops[NAT_LANES][4] = {
#define NEON(name, form, four, eight) \
  [NAT_##name] = {X86_NONE, X86_NONE, (four) ? NAT_##name : X86_NONE, (eight) ? NAT_##name : X86_NONE},
#include "neon.def"
#undef NEON
};
_Static_assert((int)NAT_LANES < (int)X86_NONE, "lane operations are bytes");
const nat_target nat_neon = {.vector = 16, .registers = 32, .ops = neon_ops};

typedef struct neon_literal {
  uint32_t at; /* of the instruction that loads it */
  uint64_t bits;
  uint8_t width;
} neon_literal;
BASE_VEC(neon_literals, neon_literal);

typedef struct neon_run {
  const nat_body *b;
  neon_words *out;
  base_alloc alloc;
  neon_literals literals;
  uint32_t *last;  /* by value: the last value or store that reads it; NAT_NONE: nobody does */
  uint8_t *reg;    /* by value */
  uint32_t in_use; /* registers, by bits */
  bool failed;
} neon_run;

static void neon_put(neon_run *e, uint32_t word) {
  e->failed = !BASE_VEC_PUSH(e->alloc, e->out, word) || e->failed;
}
static void neon_xy(neon_run *e, uint32_t word, unsigned to, unsigned x, unsigned y) {
  neon_put(e, word | y << 16 | x << 5 | to);
}
static void neon_x(neon_run *e, uint32_t word, unsigned to, unsigned x) {
  neon_xy(e, word, to, x, 0);
}
static void neon_move(neon_run *e, unsigned to, unsigned x) {
  if (to != x) neon_xy(e, 0x4EA01C00u, to, x, x); /* orr */
}
static void neon_not(neon_run *e, unsigned to) {
  neon_x(e, 0x6E205800u, to, to);
}
/* to: a mask, becomes yes where it is set, else no. */
static void neon_select(neon_run *e, unsigned to, unsigned yes, unsigned no) {
  neon_xy(e, 0x6E601C00u, to, yes, no); /* bsl */
}

/* --- operands --- */

/* The register of operand j: a constant is loaded into one of its own. */
static unsigned neon_operand(neon_run *e, const nat_value *v, unsigned j) {
  const nat_value *x = &e->b->values[v->in[j]];
  unsigned reg = e->reg[v->in[j]];
  assert(j < NEON_OPERANDS);
  if (x->kind != NAT_CONSTANT) return reg == NEON_NO_REG ? (e->failed = true, 0u) : reg;
  reg = NEON_TEMP + 1 + j;
  neon_literal literal = {e->out->n, x->bits, x->width};
  e->failed = !BASE_VEC_PUSH(e->alloc, &e->literals, literal) || e->failed;
  neon_put(e, 0x9C000000u | reg); /* ldr, 16 bytes from here on */
  return reg;
}

/* Those whose last reader is `now` are free again. */
static void neon_release(neon_run *e, const nat_value *v, uint32_t now) {
  for (uint32_t j = 0; j < v->n_in; j++) {
    uint32_t in = v->in[j];
    if (e->last[in] == now && e->reg[in] != NEON_NO_REG) e->in_use &= ~(1u << e->reg[in]);
  }
}

static unsigned neon_take(neon_run *e, uint32_t value) {
  unsigned reg = 0;
  while (reg < NEON_VALUES && e->in_use >> reg & 1) reg++;
  if (reg == NEON_VALUES) {
    e->failed = true;
    return 0;
  }
  e->in_use |= 1u << reg;
  e->reg[value] = (uint8_t)reg;
  return reg;
}

/* --- operations: each into NEON_TEMP, as an operand's register may be the result's --- */

/* Numbers as x86 has them (cmpps): of every pair one is the other's opposite. */
static void neon_compare(neon_run *e, uint32_t equal, unsigned number, unsigned x, unsigned y) {
  enum { AT_LEAST = 0x20000000, MORE = 0x20800000 };
  unsigned kind = number & 15;
  if (kind == 0 || kind == 4)
    neon_xy(e, equal, NEON_TEMP, x, y);
  else if (kind == 1 || kind == 5)
    neon_xy(e, equal + MORE, NEON_TEMP, y, x);
  else if (kind == 2 || kind == 6)
    neon_xy(e, equal + AT_LEAST, NEON_TEMP, y, x);
  else if (kind == 13 || kind == 9)
    neon_xy(e, equal + AT_LEAST, NEON_TEMP, x, y);
  else if (kind == 14 || kind == 10)
    neon_xy(e, equal + MORE, NEON_TEMP, x, y);
  else if (kind == 3 || kind == 7) {
    unsigned other = NEON_TEMP + NEON_OPERANDS; /* comparisons have two operands */
    neon_xy(e, equal, NEON_TEMP, x, x);
    neon_xy(e, equal, other, y, y);
    neon_xy(e, 0x4E201C00u, NEON_TEMP, NEON_TEMP, other);
  } else
    e->failed = true;
  if (kind == 3 || kind == 4 || kind == 5 || kind == 6 || kind == 9 || kind == 10) neon_not(e, NEON_TEMP);
}

static void neon_shift(neon_run *e, const nat_value *v, uint32_t word, bool left, unsigned x) {
  unsigned bits = 8u * v->width, by = v->number;
  if (by >= bits || (!left && by == 0)) /* x86 gives 0 or signs there; bodies do not ask for it */
    e->failed = true;
  else
    neon_x(e, word | (left ? by : 2 * bits - by) << 16, NEON_TEMP, x);
}

/* The nearest, the next below, the next above, towards zero. */
static void neon_round(neon_run *e, uint32_t word, unsigned number, unsigned x) {
  static const uint32_t more[] = {0, 0x00001000, 0x00800000, 0x00801000};
  neon_x(e, word + more[number & 3], NEON_TEMP, x);
}

/* z + x * y; with `less` the third operand is negated first. */
static void neon_sum(neon_run *e, const nat_value *v, uint32_t word, bool less, const unsigned *in) {
  if (less)
    neon_x(e, v->width == 8 ? 0x6EE0F800u : 0x6EA0F800u, NEON_TEMP, in[2]); /* fneg */
  else
    neon_move(e, NEON_TEMP, in[2]);
  neon_xy(e, word, NEON_TEMP, in[0], in[1]);
}

static void neon_op(neon_run *e, const nat_value *v) {
  const neon_row *row = &neon_table[v->op];
  uint32_t word = row->word[v->width == 8];
  unsigned in[NEON_OPERANDS] = {0, 0, 0};
  for (unsigned j = 0; j < v->n_in; j++) in[j] = neon_operand(e, v, j);
  switch ((neon_form)row->form) {
    case NEON_X:
      neon_x(e, word, NEON_TEMP, in[0]);
      break;
    case NEON_XY:
      neon_xy(e, word, NEON_TEMP, in[0], in[1]);
      break;
    case NEON_YX:
      neon_xy(e, word, NEON_TEMP, in[1], in[0]);
      break;
    case NEON_LESSER:
      neon_xy(e, word, NEON_TEMP, in[1], in[0]);
      neon_select(e, NEON_TEMP, in[0], in[1]);
      break;
    case NEON_LARGER:
      neon_xy(e, word, NEON_TEMP, in[0], in[1]);
      neon_select(e, NEON_TEMP, in[0], in[1]);
      break;
    case NEON_COMPARE:
      neon_compare(e, word, v->number, in[0], in[1]);
      break;
    case NEON_ROUND:
      neon_round(e, word, v->number, in[0]);
      break;
    case NEON_SUM:
    case NEON_SUM_LESS:
      neon_sum(e, v, word, row->form == NEON_SUM_LESS, in);
      break;
    case NEON_BLEND:
      neon_x(e, word, NEON_TEMP, in[2]);
      neon_select(e, NEON_TEMP, in[1], in[0]);
      break;
    case NEON_LEFT:
    case NEON_RIGHT:
      neon_shift(e, v, word, row->form == NEON_LEFT, in[0]);
      break;
    case NEON_WIDENED:
      if (v->width == 8) neon_x(e, 0x0F20A400u, NEON_TEMP, in[0]); /* sxtl */
      neon_x(e, word, NEON_TEMP, v->width == 8 ? NEON_TEMP : in[0]);
      break;
    case NEON_NARROWED:
      neon_x(e, word, NEON_TEMP, in[0]);
      neon_x(e, 0x0EA14800u, NEON_TEMP, NEON_TEMP); /* sqxtn */
      break;
    case NEON_MOVE:
      neon_move(e, NEON_TEMP, in[0]);
      break;
    case NEON_NONE:
      e->failed = true;
  }
}

/* --- loads and stores --- */

/* ldr or str of so many bytes at a stream's place. */
static void neon_memory(neon_run *e, bool store, uint32_t bytes, unsigned reg, uint32_t stream) {
  static const uint32_t words[] = {0xBD000000u, 0xFD000000u, 0x3D800000u}; /* str s, d, q */
  assert(bytes == 4 || bytes == 8 || bytes == 16);
  neon_put(e, (words[bytes / 8] | (store ? 0 : 0x00400000u)) | (2 + stream) << 5 | reg);
}

static void neon_load(neon_run *e, const nat_value *v, unsigned reg) {
  const nat_stream *s = &e->b->streams[v->bits];
  bool splat = s->stride == 0;
  if (v->n_in || s->gathers || s->number || s->begins || (s->stride != 1 && !splat))
    e->failed = true;
  else if (splat)
    neon_put(e, (v->width == 8 ? 0x4D40CC00u : 0x4D40C800u) | (2 + (uint32_t)v->bits) << 5 | reg); /* ld1r */
  else
    neon_memory(e, false, e->b->lanes * v->width, reg, (uint32_t)v->bits);
}

static void neon_value(neon_run *e, uint32_t i) {
  const nat_value *v = &e->b->values[i];
  if (e->last[i] == NAT_NONE || v->kind == NAT_CONSTANT) return;
  if ((v->width != 4 && v->width != 8) || (v->kind != NAT_OP && v->kind != NAT_LOAD)) {
    e->failed = true;
    return;
  }
  if (v->kind == NAT_LOAD) {
    neon_load(e, v, neon_take(e, i));
    return;
  }
  neon_op(e, v);
  neon_release(e, v, i);
  neon_move(e, neon_take(e, i), NEON_TEMP);
}

static void neon_stores(neon_run *e) {
  for (uint32_t i = 0; i < e->b->n_stores; i++) {
    const nat_store *s = &e->b->stores[i];
    const nat_value of = {.n_in = 1, .in = {s->value, NAT_NONE, NAT_NONE}};
    uint8_t width = e->b->values[s->value].width;
    if (e->b->streams[s->stream].stride != 1 || width != e->b->streams[s->stream].width) e->failed = true;
    if (!e->failed) neon_memory(e, true, e->b->lanes * width, neon_operand(e, &of, 0), s->stream);
  }
}

/* --- the whole --- */

/* Who reads each value last; a store reads at the end. */
static void neon_find_uses(neon_run *e) {
  const nat_body *b = e->b;
  for (uint32_t i = 0; i < b->n_values; i++) e->last[i] = NAT_NONE, e->reg[i] = NEON_NO_REG;
  for (uint32_t i = 0; i < b->n_stores; i++) e->last[b->stores[i].value] = b->n_values;
  for (uint32_t i = b->n_values; i-- > 0;)
    for (uint32_t j = 0; e->last[i] != NAT_NONE && j < b->values[i].n_in; j++)
      if (e->last[b->values[i].in[j]] == NAT_NONE) e->last[b->values[i].in[j]] = i;
}

/* Pointers are loaded, and moved by a vector a trip. */
static void neon_begin(neon_run *e) {
  enum { N = offsetof(nat_arguments, n) / 8, AT = offsetof(nat_arguments, at) / 8 };
  neon_put(e, 0xF9400001u | N << 10); /* ldr x1, [x0, n] */
  for (uint32_t i = 0; i < e->b->n_streams; i++) neon_put(e, 0xF9400000u | (AT + i) << 10 | (2 + i));
}
static void neon_advance(neon_run *e) {
  for (uint32_t i = 0; i < e->b->n_streams; i++) {
    const nat_stream *s = &e->b->streams[i];
    uint32_t bytes = e->b->lanes * s->width;
    if (s->stride == 1) neon_put(e, 0x91000000u | bytes << 10 | (2 + i) << 5 | (2 + i)); /* add */
  }
}

/* subs x1, x1, lanes; and a jump where that is less than 0, or not: to a place of the code. */
static uint32_t neon_count(neon_run *e, bool less) {
  neon_put(e, 0xF1000021u | e->b->lanes << 10);
  neon_put(e, 0x54000000u | (less ? 11u : 10u));
  return e->out->n - 1;
}
static void neon_jump(neon_run *e, uint32_t from, uint32_t to) {
  if (!e->failed) e->out->items[from] |= ((to - from) & 0x7FFFFu) << 5;
}

/* One after the other, each at a multiple of 16 bytes, all lanes the same. */
static void neon_literals_put(neon_run *e) {
  for (uint32_t i = 0; i < e->literals.n && !e->failed; i++) {
    const neon_literal *l = &e->literals.items[i];
    while (e->out->n % 4) neon_put(e, 0);
    if (e->failed) return;
    neon_jump(e, l->at, e->out->n);
    for (uint32_t j = 0; j < 4; j++) neon_put(e, (uint32_t)(l->width == 8 && j % 2 ? l->bits >> 32 : l->bits));
  }
}

static void neon_all(neon_run *e) {
  neon_begin(e);
  uint32_t none = neon_count(e, true), top = e->out->n;
  for (uint32_t i = 0; i < e->b->n_values && !e->failed; i++) neon_value(e, i);
  neon_stores(e);
  neon_advance(e);
  neon_jump(e, neon_count(e, false), top);
  neon_jump(e, none, e->out->n);
  neon_put(e, (uint32_t)NEON_RET);
  neon_literals_put(e);
}

bool nat_neon_emit(const nat_body *b, neon_words *out, base_arena *scratch) {
  neon_run e = {.b = b, .out = out, .alloc = scratch->alloc, .in_use = NEON_KEPT};
  e.last = BASE_ARRAY(scratch, uint32_t, b->n_values + 1);
  e.reg = BASE_ARRAY(scratch, uint8_t, b->n_values + 1);
  if (!e.last || !e.reg || b->n_streams > NEON_STREAMS || b->n_folds) return false;
  neon_find_uses(&e);
  neon_all(&e);
  BASE_VEC_FREE(e.alloc, &e.literals);
  return !e.failed;
}
#else
typedef int neon_is_empty; /* a file of nothing is not a C */
#endif
