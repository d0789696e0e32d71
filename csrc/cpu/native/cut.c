/* Kernels with edges, cut into parts: most iterations of a stencil are inside of all of its boxes, and of the parts of
 * a concatenation each is computed by ops of its own. Between the edges of boxes every box has all iterations or none,
 * so there loads are plain ones and a pick is one of its two values. The parts are boxes of the same iterations, and
 * have code of their own; what is in none of them is done by the code of the whole kernel, whose boxes are masks. */
#include "native_inside.h"

enum {
  CUT_EDGES = 24, /* of a dimension: with more, it is not cut */
  CUT_SHARE = 16, /* the least part of an outer dimension, of its extent */
  CUT_LEAST = 8   /* of the innermost one, in vectors: a call takes as long as some of them */
};

typedef struct cut_edges {
  uint32_t n;
  int64_t at[CUT_EDGES]; /* ascending, from 0 to the extent */
} cut_edges;

static bool cut_add(cut_edges *e, int64_t edge) {
  uint32_t i = 0;
  while (i < e->n && e->at[i] < edge) i++;
  if (i < e->n && e->at[i] == edge) return true;
  if (e->n == CUT_EDGES) return false;
  memmove(e->at + i + 1, e->at + i, (e->n++ - i) * sizeof *e->at);
  e->at[i] = edge;
  return true;
}

static bool cut_add_box(cut_edges *edges, const kernel *k, const kernel_box *box) {
  for (uint32_t d = 0; box && d < k->rank; d++)
    if (box->from[d] >= box->to[d] || box->from[d] < 0 || box->to[d] > k->extents[d] ||
        !cut_add(&edges[d], box->from[d]) || !cut_add(&edges[d], box->to[d]))
      return false;
  return true;
}

/* All edges, by dimension; false where there are none, or too many, or what is computed goes across them. */
static bool cut_find(const kernel *k, cut_edges *edges) {
  bool any = false;
  for (uint32_t d = 0; d < k->rank; d++) edges[d] = (cut_edges){2, {0, k->extents[d]}};
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    if (v->kind == KERNEL_SCAN || !cut_add_box(edges, k, v->box)) return false;
    if (v->kind == KERNEL_PICK && !cut_add_box(edges, k, v->pick)) return false;
  }
  for (uint32_t d = 0; d < k->rank; d++) any = any || edges[d].n > 2;
  return any;
}

static bool cut_has(const kernel *k, const kernel_box *box, const kernel_box *part) {
  for (uint32_t d = 0; d < k->rank; d++)
    if (box->from[d] > part->from[d] || box->to[d] < part->to[d]) return false;
  return true;
}

static bool cut_misses(const kernel *k, const kernel_box *box, const kernel_box *part) {
  for (uint32_t d = 0; d < k->rank; d++)
    if (box->from[d] >= part->to[d] || box->to[d] <= part->from[d]) return true;
  return false;
}

/* Where in the part there is v: its box may end within it. */
static kernel_box cut_asked(const kernel *k, const kernel_value *v, const kernel_box *part) {
  kernel_box asked = *part;
  for (uint32_t d = 0; v->box && d < k->rank; d++) {
    if (v->box->from[d] > asked.from[d]) asked.from[d] = v->box->from[d];
    if (v->box->to[d] < asked.to[d]) asked.to[d] = v->box->to[d];
  }
  return asked;
}

/* The value that v is within the part, which may be another one; NAT_NONE where it is not there. */
static uint32_t cut_resolve(const kernel *k, const kernel_box *part, const uint32_t *is, uint32_t i) {
  const kernel_value *v = &k->values[i];
  if (v->box && cut_misses(k, v->box, part)) return NAT_NONE;
  kernel_box asked = cut_asked(k, v, part);
  if (v->kind == KERNEL_PICK && cut_has(k, v->pick, &asked)) return is[v->in[0]];
  if (v->kind == KERNEL_PICK && cut_misses(k, v->pick, &asked)) return is[v->in[1]];
  for (uint32_t j = 0; j < v->n_in; j++)
    if (is[v->in[j]] == NAT_NONE) return NAT_NONE;
  return i;
}

/* What is left of a box within the part: NULL where all is. Edges that are not the part's are not asked for. */
static const kernel_box *cut_rest(const kernel *k, const kernel_box *box, const kernel_box *part, base_arena *arena,
                                  bool *failed) {
  if (!box || cut_has(k, box, part)) return NULL;
  kernel_box *rest = base_arena_memdup(arena, box, sizeof *box);
  *failed = *failed || !rest;
  for (uint32_t d = 0; rest && d < k->rank; d++)
    if (box->from[d] <= part->from[d] && box->to[d] >= part->to[d]) rest->from[d] = 0, rest->to[d] = k->extents[d];
  return rest;
}

/* k within the part alone: the values that its stores need there. NULL when out of memory, or one is not there. */
static const kernel *cut_kernel(const kernel *k, const kernel_box *part, base_arena *arena) {
  uint32_t *is = BASE_ARRAY(arena, uint32_t, k->n_values), *to = BASE_ARRAY(arena, uint32_t, k->n_values), n = 0;
  kernel *own = base_arena_memdup(arena, k, sizeof *k);
  kernel_value *values = BASE_ARRAY(arena, kernel_value, k->n_values);
  kernel_store *stores = base_arena_memdup(arena, k->stores, k->n_stores * sizeof *stores);
  bool failed = !is || !to || !own || !values || !stores;
  if (failed) return NULL;
  for (uint32_t i = 0; i < k->n_values; i++) is[i] = cut_resolve(k, part, is, i), to[i] = 0;
  for (uint32_t i = 0; i < k->n_stores; i++) {
    if (is[stores[i].value] == NAT_NONE) return NULL;
    to[is[stores[i].value]] = 1;
  }
  for (uint32_t i = k->n_values; i-- > 0;)
    for (uint32_t j = 0; to[i] && j < k->values[i].n_in; j++) to[is[k->values[i].in[j]]] = 1;
  for (uint32_t i = 0; i < k->n_values; i++) {
    if (!to[i]) continue;
    values[n] = k->values[i];
    values[n].box = cut_rest(k, k->values[i].box, part, arena, &failed);
    if (values[n].kind == KERNEL_PICK) values[n].pick = cut_rest(k, k->values[i].pick, part, arena, &failed);
    for (uint32_t j = 0; j < values[n].n_in; j++) values[n].in[j] = to[is[k->values[i].in[j]]];
    to[i] = n++;
  }
  for (uint32_t i = 0; i < k->n_stores; i++) stores[i].value = to[is[stores[i].value]];
  own->values = values, own->n_values = n, own->stores = stores;
  return failed ? NULL : own;
}

/* Parts so far, in the order of their iterations in a row. */
typedef struct cut_run {
  const kernel *k;
  cut_edges edges[KERNEL_MAX_RANK];
  int64_t lanes; /* of the whole kernel's code, whose vectors are not cut; 0: it has none */
  kernel_box boxes[NAT_CUT_PARTS];
  uint32_t n;
  int64_t count; /* iterations in parts */
} cut_run;

/* The interval of dimension d from edge i on, without what the whole kernel's code does as well; false where it is too
 * short. */
static bool cut_interval(const cut_run *c, uint32_t d, uint32_t i, int64_t *from, int64_t *to) {
  bool last = d + 1 == c->k->rank;
  *from = c->edges[d].at[i], *to = c->edges[d].at[i + 1];
  if (last && c->lanes && *from > 0) *from = (*from + c->lanes - 1) / c->lanes * c->lanes;
  if (last && c->lanes && *to < c->k->extents[d]) *to = *to / c->lanes * c->lanes;
  if (last && c->edges[d].n == 2) return true;
  int64_t least = last ? CUT_LEAST * c->lanes : c->k->extents[d] / CUT_SHARE;
  return c->lanes ? *to - *from >= (least > 0 ? least : 1) : *to > *from;
}

/* All boxes of intervals, the innermost fastest; false where they are too many. */
static bool cut_boxes(cut_run *c, kernel_box *box, uint32_t d) {
  if (d == c->k->rank) {
    int64_t n = 1;
    if (c->n == NAT_CUT_PARTS) return false;
    for (uint32_t i = 0; i < d; i++) n *= box->to[i] - box->from[i];
    c->count += n;
    c->boxes[c->n++] = *box;
    return true;
  }
  for (uint32_t i = 0; i + 1 < c->edges[d].n; i++)
    if (cut_interval(c, d, i, &box->from[d], &box->to[d]) && !cut_boxes(c, box, d + 1)) return false;
  return true;
}

uint32_t nat_cut(const kernel *k, int64_t lanes, base_arena *arena, const kernel_box **boxes, const kernel **parts) {
  kernel_box box = {.from = {0}};
  cut_run c = {.k = k, .lanes = lanes};
  assert(!k->reduction);
  if (!cut_find(k, c.edges)) return 0;
  /* Short rows stay whole: masks along them are less work than calls. */
  uint32_t last = k->rank - 1, n = 0;
  if (k->extents[last] < 2 * CUT_LEAST * lanes) c.edges[last] = (cut_edges){2, {0, k->extents[last]}};
  for (uint32_t d = 0; d <= last; d++) n += c.edges[d].n > 2;
  if (n == 0 || !cut_boxes(&c, &box, 0) || (lanes ? c.count < k->count / 2 : c.count < k->count)) return 0;
  *boxes = base_arena_memdup(arena, c.boxes, c.n * sizeof *c.boxes);
  for (uint32_t i = 0; i < c.n; i++)
    if (!*boxes || !(parts[i] = cut_kernel(k, &c.boxes[i], arena))) return 0;
  return c.n;
}
