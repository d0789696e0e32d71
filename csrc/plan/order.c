/* The order of steps. Three are weighed, and the first of those with the least peak is taken: the program's own; a list
 * schedule, which of all ops that could come next takes the one after which least is alive; and depth first, an operand
 * at a time with all it needs, those first that need most beyond what they leave. Weighed are units, ops whose values
 * go to memory; everything else is computed within them or is a name. */
#include "order.h"

#include <stdlib.h>

enum {
  LOW_SMALL = 256 << 10, /* bytes: a peak that is not worth a thought */
  LOW_LOOK = 64          /* ops after a product that are looked at */
};

/* One computation. Units are numbered in the program's order, operands before readers. */
typedef struct low_run {
  base_arena *scratch;
  const fusion_plan *f;
  const ir_computation *c;
  uint32_t n, n_units, n_edges;
  ir_op **ops;
  uint32_t *unit;         /* by op id: the unit's number plus one */
  ir_op **of;             /* by unit: its op */
  int64_t *bytes;         /* what it leaves in the frame: nothing for results */
  bool *over;             /* a kernel, which may write over an operand of its size */
  uint32_t *first, *in;   /* operands of unit u: in[first[u]] .. in[first[u + 1]] */
  uint32_t *users, *left; /* number of units that read it, all and those still to come */
  bool failed;
} low_run;

/* Of all leaves. */
static int64_t low_type_bytes(const ir_type *t) {
  int64_t bytes = 0;
  if (!ir_is_tuple(t)) return ir_is_tensor(t) ? ir_type_bytes(t) : 0;
  for (uint32_t i = 0; i < t->n_elements; i++) bytes += low_type_bytes(t->elements[i]);
  return bytes;
}

/* Ops that only name a value which is in memory. */
static bool low_is_name(const ir_op *op) {
  return op->opcode == IR_OP_RESHAPE || op->opcode == IR_OP_OPT_BARRIER || op->opcode == IR_OP_DOMAIN ||
         op->opcode == IR_OP_GET_TUPLE_ELEMENT;
}

/* Whether the op's value gets memory of its own. */
static bool low_has_memory(const low_run *x, const ir_op *op) {
  uint8_t role = x->f->of[op->id].role;
  if (op->opcode == IR_OP_PARAMETER || op->opcode == IR_OP_CONSTANT || low_is_name(op)) return false;
  return role == FUSION_NO || role == FUSION_ROOT || (role == FUSION_CHEAP && x->f->of[op->id].needed);
}

/* The op in whose memory the value is, or NULL: an argument's, a constant's, or nobody's. */
static const ir_op *low_owner(const low_run *x, const ir_op *op) {
  while (!x->unit[op->id]) {
    uint8_t role = x->f->of[op->id].role;
    if (op->opcode == IR_OP_GET_TUPLE_ELEMENT && ir_operand(op, 0)->opcode == IR_OP_TUPLE)
      op = ir_operand(ir_operand(op, 0), (uint32_t)ir_get_int(op, IR_ATTR_INDEX, 0));
    else if (low_is_name(op) || (role == FUSION_CHEAP && op->opcode == IR_OP_BROADCAST))
      op = ir_operand(op, 0);
    else
      return NULL;
  }
  return op;
}

/* n + 2 elements: callers use one place beyond the last. */
static void *low_zeros(low_run *x, size_t n, size_t size) {
  void *p = base_arena_zalloc(x->scratch, (n + 2) * size);
  x->failed = x->failed || !p;
  return p;
}

/* Sets what is known of each unit by itself. */
static void low_number_units(low_run *x) {
  for (uint32_t i = 0; i < x->n; i++)
    if (low_has_memory(x, x->ops[i])) x->unit[x->ops[i]->id] = ++x->n_units;
  x->of = low_zeros(x, x->n_units, sizeof *x->of);
  x->bytes = low_zeros(x, x->n_units, sizeof *x->bytes);
  x->over = low_zeros(x, x->n_units, sizeof *x->over);
  x->first = low_zeros(x, x->n_units, sizeof *x->first);
  x->users = low_zeros(x, x->n_units, sizeof *x->users);
  x->left = low_zeros(x, x->n_units, sizeof *x->left);
  for (uint32_t i = 0; !x->failed && i < x->n; i++) {
    uint32_t u = x->unit[x->ops[i]->id];
    if (!u) continue;
    x->of[u - 1] = x->ops[i];
    if (x->ops[i]->opcode != IR_OP_TUPLE) x->bytes[u - 1] = low_type_bytes(x->ops[i]->type);
    x->over[u - 1] = x->f->of[x->ops[i]->id].role == FUSION_ROOT && x->ops[i]->opcode != IR_OP_REDUCE;
  }
}

/* The unit that computes op, or 0. */
static uint32_t low_computer(const low_run *x, const ir_op *op) {
  bool inner = x->f->of[op->id].role == FUSION_INNER;
  return x->unit[inner ? x->f->of[op->id].root->id : op->id];
}

/* Those that an operand of `reader` is, or is computed from inside of it. Depth is bounded by that of cheap ops. */
static void low_each_read(low_run *x, uint32_t reader, const ir_op *op,
                          void (*take)(low_run *x, uint32_t reader, uint32_t read)) {
  if (x->f->of[op->id].role == FUSION_CHEAP && !x->unit[op->id]) {
    for (uint32_t k = 0; k < op->n_operands; k++) low_each_read(x, reader, ir_operand(op, k), take);
    return;
  }
  const ir_op *owner = low_owner(x, op);
  if (owner && x->unit[owner->id] != reader) take(x, reader - 1, x->unit[owner->id] - 1);
}

/* Calls take(x, reader, read) for pairs of units, some of them several times. */
static void low_each_edge(low_run *x, void (*take)(low_run *x, uint32_t reader, uint32_t read)) {
  for (uint32_t i = 0; i < x->n; i++) {
    const ir_op *op = x->ops[i];
    uint32_t reader = low_computer(x, op);
    for (uint32_t k = 0; reader && k < op->n_operands; k++) low_each_read(x, reader, ir_operand(op, k), take);
  }
}

/* Counted at reader + 1, so that sums become beginnings. */
static void low_count_edge(low_run *x, uint32_t reader, uint32_t read) {
  (void)read;
  x->first[reader + 1]++;
  x->n_edges++;
}

/* low_count_edge has made room; `left` counts how far each list is filled. */
static void low_put_edge(low_run *x, uint32_t reader, uint32_t read) {
  x->in[x->first[reader] + x->left[reader]++] = read;
}

/* Each operand once. */
static void low_unique_edges(low_run *x) {
  uint32_t *seen = low_zeros(x, x->n_units, sizeof *seen), to = 0, from = 0;
  for (uint32_t u = 0; !x->failed && u < x->n_units; u++) {
    uint32_t end = x->first[u + 1];
    x->first[u] = to;
    for (; from < end; from++) {
      uint32_t read = x->in[from];
      if (seen[read] == u + 1) continue;
      seen[read] = u + 1;
      x->in[to++] = read;
      x->users[read]++;
    }
  }
  if (!x->failed) x->first[x->n_units] = to;
}

/* Counts, then fills, then drops repetitions: three passes, no list grows. */
static void low_find_edges(low_run *x) {
  if (x->failed) return;
  low_each_edge(x, low_count_edge);
  for (uint32_t u = 0; u < x->n_units; u++) x->first[u + 1] += x->first[u];
  x->in = low_zeros(x, x->n_edges, sizeof *x->in);
  if (x->failed) return;
  low_each_edge(x, low_put_edge);
  low_unique_edges(x);
}

/* Results lie in memory of the caller, to the end. */
static void low_mark_results(low_run *x) {
  const ir_op *root = low_owner(x, ir_root(x->c));
  if (!root) return;
  x->bytes[x->unit[root->id] - 1] = 0;
  for (uint32_t i = 0; root->opcode == IR_OP_TUPLE && i < root->n_operands; i++) {
    const ir_op *owner = low_owner(x, ir_operand(root, i));
    if (owner) x->bytes[x->unit[owner->id] - 1] = 0;
  }
}

/* --- weighing --- */

/* What is read for the last time by u: all of it, and whether the result may take the place of some. */
static int64_t low_freed(const low_run *x, uint32_t u, bool *over) {
  assert(u < x->n_units);
  int64_t freed = 0;
  *over = false;
  for (uint32_t i = x->first[u]; i < x->first[u + 1]; i++) {
    if (x->left[x->in[i]] != 1) continue;
    freed += x->bytes[x->in[i]];
    *over = *over || (x->over[u] && x->bytes[x->in[i]] == x->bytes[u]);
  }
  return freed;
}

/* The most that is alive at a time in that order. x->left is used up. */
static int64_t low_peak(low_run *x, const uint32_t *order) {
  assert(x->n_units > 0);
  int64_t live = 0, peak = 0;
  memcpy(x->left, x->users, x->n_units * sizeof *x->left);
  for (uint32_t i = 0; i < x->n_units; i++) {
    uint32_t u = order[i];
    bool over = false;
    int64_t freed = low_freed(x, u, &over), most = live + (over ? 0 : x->bytes[u]);
    if (most > peak) peak = most;
    live += x->bytes[u] - freed;
    for (uint32_t k = x->first[u]; k < x->first[u + 1]; k++) x->left[x->in[k]]--;
  }
  return peak;
}

/* --- the list schedule --- */

/* An op of the list schedule that could come next. */
typedef struct low_entry {
  int64_t grows; /* what is alive, by doing it next */
  uint32_t unit;
} low_entry;
BASE_VEC(low_heap, low_entry);

/* Ties go to the program's order, so that the result depends on nothing else. */
static bool low_before(low_entry a, low_entry b) {
  return a.grows != b.grows ? a.grows < b.grows : a.unit < b.unit;
}

/* A binary heap, the best on top. */
static bool low_push(base_alloc alloc, low_heap *h, low_entry e) {
  if (!BASE_VEC_PUSH(alloc, h, e)) return false;
  uint32_t at = h->n - 1;
  for (; at > 0 && low_before(e, h->items[(at - 1) / 2]); at = (at - 1) / 2) h->items[at] = h->items[(at - 1) / 2];
  h->items[at] = e;
  return true;
}

static low_entry low_pop(low_heap *h) {
  assert(h->n > 0);
  low_entry top = h->items[0], last = h->items[--h->n];
  uint32_t at = 0;
  for (uint32_t child = 1; child < h->n; child = 2 * at + 1) {
    if (child + 1 < h->n && low_before(h->items[child + 1], h->items[child])) child++;
    if (!low_before(h->items[child], last)) break;
    h->items[at] = h->items[child];
    at = child;
  }
  if (h->n) h->items[at] = last;
  return top;
}

/* The list schedule's state. An entry of the heap may be out of date: a unit is offered again when its choice has
 * become better, and the later entry is passed over once it is done. */
typedef struct low_list {
  low_run *x;
  low_heap ready;
  uint32_t *waits;       /* by unit: operands that are not there yet; UINT32_MAX: it is done */
  uint32_t *readers;     /* by unit: exclusive or of those to come, so that the last one is known */
  uint32_t *at, *out_of; /* users of unit u: out_of[at[u]] .. out_of[at[u + 1]] */
} low_list;

/* Its key is what would be alive more by doing it now. */
static bool low_offer(low_list *l, uint32_t u) {
  assert(u < l->x->n_units);
  bool over = false;
  low_entry e = {l->x->bytes[u] - low_freed(l->x, u, &over), u};
  return low_push(l->x->scratch->alloc, &l->ready, e);
}

/* Who is the only one left to read an operand frees it: a better choice than before. */
static bool low_do(low_list *l, uint32_t u) {
  assert(l->waits[u] == 0);
  low_run *x = l->x;
  l->waits[u] = UINT32_MAX;
  for (uint32_t k = x->first[u]; k < x->first[u + 1]; k++) {
    uint32_t read = x->in[k];
    l->readers[read] ^= u;
    if (--x->left[read] == 1 && l->waits[l->readers[read]] == 0 && !low_offer(l, l->readers[read])) return false;
  }
  for (uint32_t k = l->at[u]; k < l->at[u + 1]; k++)
    if (--l->waits[l->out_of[k]] == 0 && !low_offer(l, l->out_of[k])) return false;
  return true;
}

/* Fills the users' lists from the operands' lists, backwards, by counting `left` down. */
static bool low_list_init(low_list *l) {
  low_run *x = l->x;
  l->waits = low_zeros(x, x->n_units, sizeof *l->waits);
  l->readers = low_zeros(x, x->n_units, sizeof *l->readers);
  l->at = low_zeros(x, x->n_units, sizeof *l->at);
  l->out_of = low_zeros(x, x->n_edges, sizeof *l->out_of);
  if (x->failed) return false;
  for (uint32_t u = 0; u < x->n_units; u++) l->at[u + 1] = l->at[u] + x->users[u];
  for (uint32_t u = 0; u < x->n_units; u++) {
    l->waits[u] = x->first[u + 1] - x->first[u];
    for (uint32_t k = x->first[u]; k < x->first[u + 1]; k++) {
      l->readers[x->in[k]] ^= u;
      l->out_of[l->at[x->in[k]] + --x->left[x->in[k]]] = u;
    }
  }
  memcpy(x->left, x->users, x->n_units * sizeof *x->left);
  return true;
}

/* False when out of memory. */
static bool low_by_list(low_run *x, uint32_t *order) {
  low_list l = {.x = x};
  uint32_t n = 0;
  memcpy(x->left, x->users, x->n_units * sizeof *x->left);
  bool ok = low_list_init(&l);
  for (uint32_t u = 0; ok && u < x->n_units; u++)
    if (l.waits[u] == 0) ok = low_offer(&l, u);
  while (ok && l.ready.n) {
    low_entry e = low_pop(&l.ready);
    if (l.waits[e.unit] == UINT32_MAX) continue; /* it was a better choice since, and is done */
    order[n++] = e.unit;
    ok = low_do(&l, e.unit);
  }
  BASE_VEC_FREE(x->scratch->alloc, &l.ready);
  assert(!ok || n == x->n_units);
  return ok;
}

/* --- depth first --- */

typedef struct low_need {
  int64_t need, leaves; /* bytes: at most on the way to it, and of itself */
  uint32_t unit;
} low_need;

/* need - leaves is what a subtree takes beyond what stays: Sethi and Ullman's order, with bytes for registers. */
static int low_compare(const void *a, const void *b) {
  const low_need *l = a, *r = b;
  int64_t x = l->need - l->leaves, y = r->need - r->leaves;
  if (x != y) return x > y ? -1 : 1;
  return l->unit < r->unit ? -1 : l->unit > r->unit;
}

/* Sorts the operands of all units, those first that need most beyond what they leave. As if it were a tree. */
static bool low_sort_operands(low_run *x) {
  int64_t *need = low_zeros(x, x->n_units, sizeof *need);
  uint32_t most = 0;
  for (uint32_t u = 0; u < x->n_units; u++)
    if (x->first[u + 1] - x->first[u] > most) most = x->first[u + 1] - x->first[u];
  low_need *few = low_zeros(x, most, sizeof *few);
  for (uint32_t u = 0; !x->failed && u < x->n_units; u++) {
    uint32_t n = x->first[u + 1] - x->first[u], *in = x->in + x->first[u];
    int64_t there = 0;
    for (uint32_t k = 0; k < n; k++) few[k] = (low_need){need[in[k]], x->bytes[in[k]], in[k]};
    qsort(few, n, sizeof *few, low_compare);
    for (uint32_t k = 0; k < n; k++) {
      in[k] = few[k].unit;
      if (there + few[k].need > need[u]) need[u] = there + few[k].need;
      there += few[k].leaves;
    }
    if (there + x->bytes[u] > need[u]) need[u] = there + x->bytes[u];
  }
  return !x->failed;
}

/* `left` is the next operand to go to; a unit that is done has UINT32_MAX. */
static bool low_by_depth(low_run *x, uint32_t *order) {
  uint32_t *stack = low_zeros(x, x->n_units, sizeof *stack), n = 0;
  if (x->failed || !low_sort_operands(x)) return false;
  for (uint32_t u = 0; u < x->n_units; u++) x->left[u] = x->first[u];
  for (uint32_t last = x->n_units; last-- > 0;) {
    uint32_t top = 0;
    if (x->users[last] || x->left[last] == UINT32_MAX) continue; /* from those that nobody reads */
    stack[top++] = last;
    while (top) {
      uint32_t u = stack[top - 1];
      if (x->left[u] == x->first[u + 1]) {
        x->left[u] = UINT32_MAX;
        order[n++] = u;
        top--;
        continue;
      }
      uint32_t next = x->in[x->left[u]++];
      if (x->left[next] != UINT32_MAX) stack[top++] = next;
    }
  }
  assert(n == x->n_units);
  return true;
}

/* --- from units back to ops --- */

/* start, after all it needs that does not stand yet. `unit` is the next operand to go to; UINT32_MAX: it stands. */
static uint32_t low_put_op(low_run *x, ir_op *start, ir_op **stack, ir_op **out, uint32_t n) {
  uint32_t top = 0;
  if (x->unit[start->id] != UINT32_MAX) stack[top++] = start;
  while (top) {
    ir_op *op = stack[top - 1];
    if (x->unit[op->id] == op->n_operands) {
      x->unit[op->id] = UINT32_MAX;
      out[n++] = op;
      top--;
      continue;
    }
    ir_op *next = ir_operand(op, x->unit[op->id]++);
    if (x->unit[next->id] != UINT32_MAX) stack[top++] = next;
  }
  return n;
}

/* Names, and what is computed inside, stand before the first unit that needs them, or at the end. x->unit is used for
 * the operands' places from here on. */
static bool low_emit(low_run *x, const uint32_t *order) {
  ir_op **out = low_zeros(x, x->n, sizeof *out), **stack = low_zeros(x, x->n, sizeof *stack);
  uint32_t n = 0;
  if (x->failed) return false;
  for (uint32_t i = 0; i < x->n; i++) x->unit[x->ops[i]->id] = 0;
  for (uint32_t i = 0; i < x->n_units; i++) n = low_put_op(x, x->of[order[i]], stack, out, n);
  for (uint32_t i = 0; i < x->n; i++) n = low_put_op(x, x->ops[i], stack, out, n);
  assert(n == x->n);
  memcpy(x->ops, out, n * sizeof *out);
  return true;
}

/* Control edges, async chains and tokens fix an order that weighing does not know. */
static bool low_is_free(const low_run *x) {
  for (uint32_t i = 0; i < x->n; i++) {
    const ir_op *op = x->ops[i];
    if (op->n_control_preds || ir_opcode_has(op->opcode, IR_ASYNC_START) || ir_opcode_has(op->opcode, IR_ASYNC_DONE) ||
        ir_opcode_has(op->opcode, IR_ASYNC_UPDATE) || ir_is_token(op->type))
      return false;
  }
  return true;
}

/* Another order must save at least 1/32 to be taken: neighbours in the program's order share caches. */
static bool low_choose(low_run *x, plan_program *p) {
  assert(x->n_units > 0);
  uint32_t *orders[PLAN_ORDERS];
  for (uint32_t i = 0; i < PLAN_ORDERS; i++) orders[i] = low_zeros(x, x->n_units, sizeof *orders[i]);
  if (x->failed) return false;
  for (uint32_t u = 0; u < x->n_units; u++) orders[PLAN_ORDER_PROGRAM][u] = u;
  p->order_peaks[PLAN_ORDER_PROGRAM] = low_peak(x, orders[PLAN_ORDER_PROGRAM]);
  if (p->order_peaks[PLAN_ORDER_PROGRAM] <= LOW_SMALL) return true;
  if (!low_by_list(x, orders[PLAN_ORDER_LIST]) || !low_by_depth(x, orders[PLAN_ORDER_DEPTH])) return false;
  for (uint32_t i = 1; i < PLAN_ORDERS; i++) {
    p->order_peaks[i] = low_peak(x, orders[i]);
    int64_t best = p->order_peaks[p->order];
    if (p->order_peaks[i] < best - best / 32) p->order = (uint8_t)i; /* less would not be worth other neighbours */
  }
  return p->order == PLAN_ORDER_PROGRAM || low_emit(x, orders[p->order]);
}

/* --- products --- */

/* Whether the op follows from what is marked. */
static bool low_follows(const ir_op *op, const uint32_t *marks) {
  for (uint32_t k = 0; k < op->n_operands; k++)
    if (marks[ir_operand(op, k)->id]) return true;
  return false;
}

/* Marks what follows from the product at ops[i]; the place after the last such op that is looked at, or after the next
 * product among them. */
static uint32_t low_mark_followers(uint32_t n, ir_op *const *ops, uint32_t i, uint32_t *marks) {
  uint32_t end = i + 1;
  marks[ops[i]->id] = 1;
  for (uint32_t j = i + 1; j < n && j < i + LOW_LOOK; j++) {
    bool lists = ops[j]->opcode == IR_OP_TUPLE && !ops[j]->uses; /* the list of results is not made of it */
    if (lists || !low_follows(ops[j], marks)) continue;
    marks[ops[j]->id] = 1;
    end = j + 1;
    if (ops[j]->opcode == IR_OP_DOT) break;
  }
  return end;
}

/* A tile can have a product only if what is made of it comes right after it (plan/tile.c), so whatever else would come
 * in between, masks and other operands, comes before; unless that is larger than the product and so better late. */
static void low_gather(const low_run *x, uint32_t i) {
  uint32_t n = x->n, *marks = x->unit;
  ir_op *own[LOW_LOOK], **ops = x->ops;
  uint32_t end = low_mark_followers(n, ops, i, marks), front = i, kept = 0;
  bool fits = true;
  for (uint32_t j = i; j < end; j++)
    fits = fits && (marks[ops[j]->id] || !low_has_memory(x, ops[j]) ||
                    low_type_bytes(ops[j]->type) <= low_type_bytes(ops[i]->type));
  for (uint32_t j = i; fits && j < end; j++) {
    if (marks[ops[j]->id])
      own[kept++] = ops[j];
    else
      ops[front++] = ops[j];
  }
  for (uint32_t j = i; j < i + LOW_LOOK && j < n; j++) marks[ops[j]->id] = 0;
  for (uint32_t j = 0; j < kept; j++) {
    ops[front + j] = own[j];
    marks[own[j]->id] = 0;
  }
}

/* --- results over arguments --- */

/* Units have their numbers again after low_emit, and `left` is their place. */
static void low_place_units(low_run *x) {
  for (uint32_t u = 0; u < x->n_units; u++) x->unit[x->of[u]->id] = u + 1;
  for (uint32_t i = 0; i < x->n; i++)
    if (x->unit[x->ops[i]->id]) x->left[x->unit[x->ops[i]->id] - 1] = i;
}

/* Whether the result in unit u, a kernel, is computed while others still read the argument whose memory it is to have,
 * could as well be computed after them, and keeps no more alive till then than the copy that it needs otherwise. */
static bool low_is_too_early(const low_run *x, uint32_t u, const ir_op *argument) {
  const ir_use *only = x->of[u]->uses;
  int64_t kept = 0;
  bool early = false;
  assert(u < x->n_units && argument->opcode == IR_OP_PARAMETER);
  if (!x->over[u] || !only || only->next || only->user != ir_root(x->c)) return false;
  for (uint32_t k = x->first[u]; k < x->first[u + 1]; k++) kept += x->bytes[x->in[k]];
  IR_FOR_USES(use, argument) {
    uint32_t reader = low_computer(x, use->user);
    early = early || (reader && x->left[reader - 1] > x->left[u] && use->user != ir_root(x->c));
  }
  return early && kept <= low_type_bytes(x->of[u]->type) && !x->of[u]->control_succs;
}

/* Results that an alias writes over an argument come last, before the root, where others would read it later. */
static void low_delay_results(low_run *x) {
  const ir_op *root = ir_root(x->c);
  const ir_config *config = &x->c->module->config;
  uint32_t n = 0, n_late = 0;
  if (x->c != x->c->module->entry || config->n_aliases == 0 || root->opcode != IR_OP_TUPLE) return;
  bool *late = low_zeros(x, x->n_units, sizeof *late);
  ir_op **delayed = low_zeros(x, x->n_units, sizeof *delayed), **out = low_zeros(x, x->n, sizeof *out);
  if (x->failed) return;
  low_place_units(x);
  for (uint32_t i = 0; i < config->n_aliases; i++) {
    const ir_alias *a = &config->aliases[i];
    bool flat = a->output->n == 1 && a->index->n == 0 && a->operand >= 0 && a->operand < x->c->n_params;
    if (!flat || a->output->v[0] < 0 || a->output->v[0] >= root->n_operands) continue;
    uint32_t u = x->unit[ir_operand(root, (uint32_t)a->output->v[0])->id];
    if (u && low_is_too_early(x, u - 1, x->c->params[a->operand])) late[u - 1] = true;
  }
  for (uint32_t i = 0; i < x->n; i++) {
    uint32_t u = x->unit[x->ops[i]->id];
    if (u && late[u - 1]) delayed[n_late++] = x->ops[i];
    if (u && late[u - 1]) continue;
    if (x->ops[i] == root && n_late) memcpy(out + n, delayed, n_late * sizeof *out);
    if (x->ops[i] == root) n += n_late;
    out[n++] = x->ops[i];
  }
  assert(n == x->n);
  memcpy(x->ops, out, n * sizeof *out);
  for (uint32_t u = 0; u < x->n_units; u++) x->unit[x->of[u]->id] = 0;
}

/* Computations of two units or fewer have nothing to choose. */
int plan_order_ops(plan_program *p, const fusion_plan *f, uint32_t n, ir_op **ops, uint32_t *by_id, base_arena *scratch,
                   xlac_error *err) {
  assert(p && f && ops && by_id);
  low_run x = {.scratch = scratch, .f = f, .c = p->computation, .n = n, .ops = ops, .unit = by_id};
  bool ok = true;
  if (!low_is_free(&x)) return 0;
  low_number_units(&x);
  if (x.n_units > 2) {
    low_find_edges(&x);
    if (!x.failed) low_mark_results(&x);
    ok = !x.failed && low_choose(&x, p);
  }
  for (uint32_t i = 0; i < n; i++) by_id[ops[i]->id] = 0;
  for (uint32_t i = n; ok && i-- > 0;)
    if (ops[i]->opcode == IR_OP_DOT) low_gather(&x, i);
  if (ok && x.n_units > 2) low_delay_results(&x);
  return ok && !x.failed ? 0 : base_oom(err, "a plan");
}
