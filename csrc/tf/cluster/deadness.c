/* Deadness analysis: an abstract interpretation of switches and merges, producers first. A loop's merge is a symbol on
 * the first visit; on the second, what comes back along the loop shows whether it is a recurrence. Loops are tried
 * first with one symbol for all merges of a frame, and, where that does not work out, again with one each. */
#include "deadness.h"

BASE_VEC(tf_pred_inputs, const tf_pred *);
BASE_VEC(tf_node_ids, uint32_t);

/* The analysis of one graph (DeadnessAnalysisImpl). `inputs` is scratch: the operands of the formula being put
 * together. */
typedef struct tf_dead {
  tf_deadness *d;
  const tf_graph *g;
  const tf_frame_info *frames;
  uint8_t *revisit;
  tf_pred_inputs inputs;
  base_map representative; /* frame -> the first merge seen in it */
  uint32_t *order, n_order;
  bool optimistic, marking; /* marking: changes make consumers to be visited again */
  xlac_error *err;
} tf_dead;

static int tf_dead_oom(tf_dead *s) {
  return base_oom(s->err, "finding out what may be dead");
}

/* --- what is known --- */

/* When the value or the control signal of an edge is alive; NULL as long as its producer was not visited. */
static const tf_pred *tf_pred_of(const tf_dead *s, const tf_edge *e) {
  const tf_pred **values = s->d->values[e->src];
  return e->src_output == TF_CONTROL || !values ? s->d->control[e->src] : values[e->src_output];
}

/* Consumers are only told in the second round, after back edges have been visited once. */
static void tf_note_change(tf_dead *s, const tf_node *n) {
  if (s->marking) TF_EACH_OUT(s->g, n, e) s->revisit[s->g->edges.items[e].dst] = 1;
}

/* NULL is "out of memory" in every function that makes formulas, so it is caught here, at the one place that
 * stores them. */
static int tf_set_control(tf_dead *s, uint32_t id, const tf_pred *p) {
  if (!p) return tf_dead_oom(s);
  if (s->d->control[id] && s->d->control[id] != p) tf_note_change(s, &s->g->nodes.items[id]);
  s->d->control[id] = p;
  return 0;
}

/* Outputs of a switch differ; for them a list is made. One more than the outputs, so that it is never empty. */
static int tf_set_value(tf_dead *s, uint32_t id, uint32_t output, const tf_pred *p) {
  assert(output < s->g->nodes.items[id].n_outputs);
  const tf_node *n = &s->g->nodes.items[id];
  if (!p) return tf_dead_oom(s);
  if (!s->d->values[id]) {
    s->d->values[id] = base_arena_zalloc(&s->d->arena, (n->n_outputs + 1) * sizeof(tf_pred *));
    if (!s->d->values[id]) return tf_dead_oom(s);
  }
  const tf_pred **at = &s->d->values[id][output];
  if (*at && *at != p) tf_note_change(s, n);
  *at = p;
  return 0;
}

typedef enum tf_which { TF_DATA_AND_CONTROL, TF_DATA_ONLY } tf_which;

/* What the inputs of a node need, in the order of its edges, into s->inputs. */
static int tf_collect_inputs(tf_dead *s, const tf_node *n, tf_which which) {
  s->inputs.n = 0;
  TF_EACH_IN(s->g, n, k) {
    const tf_edge *e = &s->g->edges.items[k];
    if (which == TF_DATA_ONLY && e->dst_input == TF_CONTROL) continue;
    const tf_pred *p = tf_pred_of(s, e);
    if (!p)
      return base_fail(s->err, XLAC_E_BAD_ARGUMENT,
                       "node '%.120s' is visited before its input '%.120s': the graph has a cycle", n->name->s,
                       s->g->nodes.items[e->src].name->s);
    if (!BASE_VEC_PUSH(s->g->alloc, &s->inputs, p)) return tf_dead_oom(s);
  }
  return 0;
}

/* All inputs and `more`; s->inputs is left as it was, so that the next output can use it. */
static const tf_pred *tf_and_with(tf_dead *s, const tf_pred *more) {
  if (!more || !BASE_VEC_PUSH(s->g->alloc, &s->inputs, more)) return NULL;
  const tf_pred *p = tf_pred_and(&s->d->factory, s->inputs.items, s->inputs.n);
  s->inputs.n--;
  return p;
}

/* --- switches --- */

/* The value of a constant scalar of bool or int32. Fields of TensorProto: 4 is tensor_content (little endian), 11
 * bool_val, 7 int_val, packed or not. A tensor without a value is 0. */
static bool tf_const_scalar(const tf_node *n, int64_t *out) {
  base_slice tensor;
  tf_raw_field f;
  if (n->role != TF_ROLE_CONST || !tf_attr_tensor(tf_attr_find(n->def->attrs, "value"), &tensor)) return false;
  *out = 0;
  if (tf_raw_find(tensor, 4, &f) && f.wire == 2 && f.bytes.n > 0) {
    for (size_t i = 0; i < f.bytes.n && i < 4; i++) *out |= (int64_t)(uint8_t)f.bytes.p[i] << (8 * i);
  } else if (tf_raw_find(tensor, 11, &f) || tf_raw_find(tensor, 7, &f)) {
    const char *at = f.bytes.p;
    uint64_t v = f.wire == 0 ? f.value : 0;
    for (unsigned shift = 0; f.wire == 2 && at < f.bytes.p + f.bytes.n && shift < 64; shift += 7, at++) {
      v |= (uint64_t)(*at & 0x7F) << shift;
      if (!(*at & 0x80)) break;
    }
    *out = (int64_t)v;
  }
  return true;
}

/* "The value is alive and true", or "alive and equal to `value`". value < 0 asks for a bool, else for an int32 of
 * that value (_SwitchN). A constant selector decides it at once, which is what lets TensorFlow cluster code behind
 * tf.cond with a constant predicate. */
static const tf_pred *tf_switch_symbol(tf_dead *s, const tf_node *n, int32_t value) {
  int32_t output = 0;
  int64_t constant = 0;
  const tf_node *from = &s->g->nodes.items[tf_producer(s->g, n, 1, &output)];
  if (tf_is_op(from) && tf_const_scalar(from, &constant)) {
    bool holds = value < 0 ? constant != 0 : constant == value;
    return holds ? tf_pred_true(&s->d->factory) : tf_pred_false(&s->d->factory);
  }
  return tf_pred_symbol(&s->d->factory, from->name, output, value < 0, value);
}

/* Output 0 is alive where the selector is false, output 1 where it is true; what waits for the switch by control
 * needs its inputs alone. */
static int tf_visit_switch(tf_dead *s, uint32_t id) {
  const tf_node *n = &s->g->nodes.items[id];
  TRY(tf_collect_inputs(s, n, TF_DATA_AND_CONTROL));
  const tf_pred *is_true = tf_switch_symbol(s, n, -1);
  const tf_pred *is_false = is_true ? tf_pred_not(&s->d->factory, is_true) : NULL;
  TRY(tf_set_value(s, id, 0, tf_and_with(s, is_false)));
  if (n->n_outputs > 1) TRY(tf_set_value(s, id, 1, tf_and_with(s, is_true)));
  return tf_set_control(s, id, tf_pred_and(&s->d->factory, s->inputs.items, s->inputs.n));
}

/* One of several: each output alive if the number is its own, the last if it is none of the others'. What follows by
 * control is taken to be alive with the last one, as TensorFlow has it. */
static int tf_visit_switch_n(tf_dead *s, uint32_t id) {
  const tf_node *n = &s->g->nodes.items[id];
  TRY(tf_collect_inputs(s, n, TF_DATA_AND_CONTROL));
  for (uint32_t i = 0; i + 1 < n->n_outputs; i++) {
    const tf_pred *is = tf_switch_symbol(s, n, (int32_t)i);
    TRY(tf_set_value(s, id, i, tf_and_with(s, is)));
    const tf_pred *is_not = tf_pred_not(&s->d->factory, is);
    if (!is_not || !BASE_VEC_PUSH(s->g->alloc, &s->inputs, is_not)) return tf_dead_oom(s);
  }
  const tf_pred *last = tf_pred_and(&s->d->factory, s->inputs.items, s->inputs.n);
  if (n->n_outputs > 0) TRY(tf_set_value(s, id, n->n_outputs - 1, last));
  return tf_set_control(s, id, last);
}

/* --- merges --- */

/* The edge from NextIteration that makes a Merge the head of a loop; TF_NO_EDGE for a Merge of branches. */
static int tf_find_back_edge(tf_dead *s, const tf_node *n, uint32_t *out) {
  *out = TF_NO_EDGE;
  TF_EACH_IN(s->g, n, e) {
    if (s->g->nodes.items[s->g->edges.items[e].src].role != TF_ROLE_NEXT_ITERATION) continue;
    if (*out != TF_NO_EDGE)
      return base_fail(s->err, XLAC_E_BAD_ARGUMENT,
                       "Multiple NextIteration inputs to merge node '%.120s': a Merge can have at most one",
                       n->name->s);
    *out = e;
  }
  return 0;
}

/* The names of the frames around a node, the innermost first: "inner;outer". Recurrences of different frames must
 * never be equal, and frame names are unique only within their parent. */
static const base_istr *tf_full_frame(tf_dead *s, uint32_t id) {
  base_text t;
  base_text_init(&t, s->g->alloc);
  for (const tf_frame_info *f = &s->frames[id]; f->frame; f = &s->frames[f->parent]) {
    if (t.n) base_putc(&t, ';');
    base_put(&t, f->frame->s, f->frame->n);
    if (f->parent == TF_SOURCE) break;
  }
  const base_istr *name = t.failed ? NULL : base_intern(&s->g->def->strings, t.s ? t.s : "", t.n);
  base_text_free(&t);
  return name;
}

/* A Merge of branches is alive if one input is. A loop's Merge is not known yet: it gets a symbol of its own or,
 * on the optimistic try, the symbol of the frame's first Merge. */
static int tf_begin_merge(tf_dead *s, uint32_t id, bool loops) {
  const tf_node *n = &s->g->nodes.items[id];
  if (loops) {
    uint64_t first = id;
    const base_istr *frame = s->frames[id].frame;
    if (s->optimistic && frame && !base_map_get(&s->representative, base_key(frame), &first) &&
        !base_map_set(&s->representative, base_key(frame), first))
      return tf_dead_oom(s);
    return tf_set_control(s, id, tf_pred_symbol(&s->d->factory, s->g->nodes.items[first].name, 0, false, -1));
  }
  TRY(tf_collect_inputs(s, n, TF_DATA_ONLY));
  return tf_set_control(s, id, tf_pred_or(&s->d->factory, s->inputs.items, s->inputs.n));
}

/* If the loop brings back "symbol & X", X without the symbol, then X; else NULL, without an error. */
static int tf_find_step(tf_dead *s, const tf_pred *symbol, const tf_pred *back, const tf_pred **step) {
  bool found = false;
  *step = NULL;
  if (!back || back->kind != TF_PRED_AND) return 0;
  s->inputs.n = 0;
  for (uint32_t i = 0; i < back->n; i++) {
    if (back->operands[i] == symbol) {
      found = true;
      continue;
    }
    if (tf_pred_contains(&s->d->factory, back->operands[i], symbol)) return 0;
    if (!BASE_VEC_PUSH(s->g->alloc, &s->inputs, back->operands[i])) return tf_dead_oom(s);
  }
  if (found) *step = tf_pred_and(&s->d->factory, s->inputs.items, s->inputs.n);
  return s->d->factory.failed ? tf_dead_oom(s) : 0;
}

/* The second visit. A Merge whose back edge brings "symbol & step" is {start,&,step}: alive in iteration i if it
 * was alive at the start and the step held in all iterations before. If it brings anything else it stays a symbol. */
static int tf_close_merge(tf_dead *s, uint32_t id) {
  const tf_node *n = &s->g->nodes.items[id];
  const tf_pred *symbol = s->d->control[id], *step = NULL;
  uint32_t back = TF_NO_EDGE;
  if (symbol->kind != TF_PRED_SYMBOL) return 0;
  TRY(tf_find_back_edge(s, n, &back));
  if (back == TF_NO_EDGE) return 0;
  TRY(tf_find_step(s, symbol, tf_pred_of(s, &s->g->edges.items[back]), &step));
  if (!step) return 0;
  s->inputs.n = 0;
  TF_EACH_IN(s->g, n, e) {
    const tf_pred *p = tf_pred_of(s, &s->g->edges.items[e]);
    if (e != back && (!p || !BASE_VEC_PUSH(s->g->alloc, &s->inputs, p))) return tf_dead_oom(s);
  }
  const tf_pred *start = tf_pred_or(&s->d->factory, s->inputs.items, s->inputs.n);
  const base_istr *frame = tf_full_frame(s, id);
  if (!start || !frame) return tf_dead_oom(s);
  return tf_set_control(s, id, tf_pred_recurrence(&s->d->factory, start, step, frame));
}

/* It loops if a back edge has no formula yet. A Merge that was visited once has one, and is closed. */
static int tf_visit_merge(tf_dead *s, uint32_t id) {
  const tf_node *n = &s->g->nodes.items[id];
  bool loops = false;
  if (s->d->control[id]) return tf_close_merge(s, id);
  TF_EACH_IN(s->g, n, k) {
    const tf_edge *e = &s->g->edges.items[k];
    if (e->dst_input != TF_CONTROL && s->g->nodes.items[e->src].role == TF_ROLE_NEXT_ITERATION)
      loops = loops || !tf_pred_of(s, e);
  }
  return tf_begin_merge(s, id, loops);
}

/* --- any node --- */

/* A ControlTrigger is always alive. A _Recv may get a dead value from elsewhere, which nobody here can know: a
 * symbol. */
static int tf_visit_dead(tf_dead *s, uint32_t id) {
  assert(id < s->g->nodes.n);
  const tf_node *n = &s->g->nodes.items[id];
  tf_pred_factory *f = &s->d->factory;
  switch (n->role) {
    case TF_ROLE_SWITCH:
      return tf_visit_switch(s, id);
    case TF_ROLE_SWITCH_N:
      return tf_visit_switch_n(s, id);
    case TF_ROLE_MERGE:
      return tf_visit_merge(s, id);
    case TF_ROLE_CONTROL_TRIGGER:
      return tf_set_control(s, id, tf_pred_true(f));
    case TF_ROLE_RECV:
      TRY(tf_collect_inputs(s, n, TF_DATA_AND_CONTROL));
      return tf_set_control(s, id, tf_and_with(s, tf_pred_symbol(f, n->name, 0, false, -1)));
    default:
      TRY(tf_collect_inputs(s, n, TF_DATA_AND_CONTROL));
      return tf_set_control(s, id, tf_pred_and(f, s->inputs.items, s->inputs.n));
  }
}

/* --- order: a loop of the outermost level in one piece, from its Enters to its Exits --- */

/* The order of visits (GetFrameBasedTopologicalOrder). */
typedef struct tf_dead_order {
  tf_dead *s;
  uint32_t *ready_inputs;
  tf_node_ids enters, exits; /* ready, but not yet to be visited */
  base_map n_enters;         /* frame -> how many Enters it has */
  uint32_t head;
} tf_dead_order;

/* Whether a node is an Enter, or Exit, of an outermost loop. */
static bool tf_is_root(const tf_dead *s, uint32_t id, tf_role role) {
  return s->g->nodes.items[id].role == role && tf_in_root_frame(&s->frames[id]);
}

/* Counts the Enters of each root frame, and takes back edges as ready from the start: a Merge does not wait for
 * them. */
static int tf_count_loops(tf_dead_order *o) {
  const tf_graph *g = o->s->g;
  for (uint32_t i = TF_SINK + 1; i < g->nodes.n; i++) {
    uint64_t n = 0;
    const base_istr *frame = o->s->frames[i].frame;
    if (tf_is_root(o->s, i, TF_ROLE_ENTER)) {
      (void)base_map_get(&o->n_enters, base_key(frame), &n);
      if (!base_map_set(&o->n_enters, base_key(frame), n + 1)) return tf_dead_oom(o->s);
    }
    if (g->nodes.items[i].role != TF_ROLE_MERGE) continue;
    TF_EACH_IN(g, &g->nodes.items[i], e)
    o->ready_inputs[i] += g->nodes.items[g->edges.items[e].src].role == TF_ROLE_NEXT_ITERATION;
  }
  return 0;
}

/* Root Enters and Exits wait in lists of their own until the loop can be visited in one piece; others are next at
 * once. */
static int tf_make_ready(tf_dead_order *o, uint32_t id) {
  tf_node_ids *list = tf_is_root(o->s, id, TF_ROLE_ENTER)  ? &o->enters
                      : tf_is_root(o->s, id, TF_ROLE_EXIT) ? &o->exits
                                                           : NULL;
  if (list) return BASE_VEC_PUSH(o->s->g->alloc, list, id) ? 0 : tf_dead_oom(o->s);
  o->s->order[o->s->n_order++] = id;
  return 0;
}

static int tf_ready_consumers(tf_dead_order *o, uint32_t id) {
  assert(id < o->s->g->nodes.n);
  const tf_graph *g = o->s->g;
  bool next = g->nodes.items[id].role == TF_ROLE_NEXT_ITERATION;
  TF_EACH_OUT(g, &g->nodes.items[id], e) {
    uint32_t out = g->edges.items[e].dst;
    const tf_node *n = &g->nodes.items[out];
    if ((next && n->role == TF_ROLE_MERGE) || !tf_is_op(n)) continue;
    if (++o->ready_inputs[out] == n->n_in) TRY(tf_make_ready(o, out));
  }
  return 0;
}

/* The Enters of the first frame all of whose Enters are ready. */
static void tf_release_enters(tf_dead_order *o) {
  tf_dead *s = o->s;
  for (uint32_t i = 0; i < o->enters.n; i++) {
    const base_istr *frame = s->frames[o->enters.items[i]].frame;
    uint64_t total = 0;
    uint32_t here = 0, kept = 0;
    for (uint32_t k = i; k < o->enters.n; k++) here += s->frames[o->enters.items[k]].frame == frame;
    (void)base_map_get(&o->n_enters, base_key(frame), &total);
    if (here != total) continue;
    for (uint32_t k = 0; k < o->enters.n; k++) {
      uint32_t id = o->enters.items[k];
      if (s->frames[id].frame == frame)
        s->order[s->n_order++] = id;
      else
        o->enters.items[kept++] = id;
    }
    o->enters.n = kept;
    return;
  }
}

/* Goes on as long as anything is ready: plain nodes first, then all Exits that wait, then one frame's Enters. */
static int tf_order_by_frames(tf_dead_order *o) {
  tf_dead *s = o->s;
  TRY(tf_count_loops(o));
  s->order[s->n_order++] = TF_SOURCE;
  while (o->head < s->n_order) {
    TRY(tf_ready_consumers(o, s->order[o->head++]));
    if (o->head < s->n_order) continue;
    for (uint32_t i = 0; i < o->exits.n; i++) s->order[s->n_order++] = o->exits.items[i];
    bool exits = o->exits.n > 0;
    o->exits.n = 0;
    if (!exits) tf_release_enters(o);
  }
  if (o->enters.n == 0 && o->exits.n == 0) return 0;
  return base_fail(s->err, XLAC_E_BAD_ARGUMENT, "node '%.120s' is never reached: the graph's loops are malformed",
                   s->g->nodes.items[o->enters.items[0]].name->s);
}

static int tf_find_dead_order(tf_dead *s) {
  tf_dead_order o = {.s = s};
  base_map_init(&o.n_enters, s->g->alloc);
  o.ready_inputs = base_malloc(s->g->alloc, (size_t)s->g->nodes.n * sizeof *o.ready_inputs);
  int status = o.ready_inputs ? 0 : tf_dead_oom(s);
  if (status == 0) {
    memset(o.ready_inputs, 0, (size_t)s->g->nodes.n * sizeof *o.ready_inputs);
    status = tf_order_by_frames(&o);
  }
  base_map_free(&o.n_enters);
  BASE_VEC_FREE(s->g->alloc, &o.enters);
  BASE_VEC_FREE(s->g->alloc, &o.exits);
  base_free(s->g->alloc, o.ready_inputs);
  return status;
}

/* --- a root frame at a time --- */

/* Two rounds over the nodes of one piece in order: the first gives every node a formula, the second visits again
 * what a back edge or a changed formula has marked. */
static int tf_visit_all(tf_dead *s, const uint32_t *order, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) s->revisit[order[i]] = 0;
  s->marking = false;
  for (uint32_t i = 0; i < n; i++) {
    const tf_node *node = &s->g->nodes.items[order[i]];
    TRY(tf_visit_dead(s, order[i]));
    if (node->role != TF_ROLE_NEXT_ITERATION) continue;
    TF_EACH_OUT(s->g, node, e) {
      uint32_t dst = s->g->edges.items[e].dst;
      if (s->g->nodes.items[dst].role == TF_ROLE_MERGE) s->revisit[dst] = 1;
    }
  }
  s->marking = true;
  for (uint32_t i = 0; i < n; i++)
    if (s->revisit[order[i]]) TRY(tf_visit_dead(s, order[i]));
  return 0;
}

/* Whether the merges of each frame that loops have become one and the same recurrence. */
static int tf_has_converged(tf_dead *s, const uint32_t *order, uint32_t n, bool *out) {
  base_map of_frame;
  int status = 0;
  *out = true;
  base_map_init(&of_frame, s->g->alloc);
  for (uint32_t i = 0; i < n && *out && status == 0; i++) {
    const tf_node *node = &s->g->nodes.items[order[i]];
    uint32_t back = TF_NO_EDGE;
    if (node->role != TF_ROLE_MERGE) continue;
    status = tf_find_back_edge(s, node, &back);
    if (status != 0 || back == TF_NO_EDGE) continue;
    const tf_pred *p = s->d->control[order[i]];
    uint64_t key = base_key(s->frames[order[i]].frame), seen = base_key(p);
    *out = p->kind == TF_PRED_RECURRENCE && (!base_map_get(&of_frame, key, &seen) || seen == base_key(p));
    if (!base_map_set(&of_frame, key, base_key(p))) status = tf_dead_oom(s);
  }
  base_map_free(&of_frame);
  return status;
}

/* A loop is tried with one symbol for all of its Merges first; if they do not all become one recurrence,
 * everything found is forgotten and it is done again with a symbol each. */
static int tf_visit_frame(tf_dead *s, const uint32_t *order, uint32_t n, bool loop) {
  bool converged = false;
  if (loop) {
    s->optimistic = true;
    TRY(tf_visit_all(s, order, n));
    TRY(tf_has_converged(s, order, n, &converged));
    for (uint32_t i = 0; i < n && !converged; i++) {
      s->d->control[order[i]] = NULL;
      s->d->values[order[i]] = NULL;
    }
  }
  s->optimistic = false;
  return converged ? 0 : tf_visit_all(s, order, n);
}

/* Cuts the order into runs of nodes with the same root frame. */
static int tf_visit_frames_in_order(tf_dead *s) {
  for (uint32_t from = 0; from < s->n_order;) {
    const base_istr *frame = tf_root_frame(s->frames, s->order[from]);
    uint32_t to = from + 1;
    while (to < s->n_order && tf_root_frame(s->frames, s->order[to]) == frame) to++;
    TRY(tf_visit_frame(s, s->order + from, to - from, frame != NULL));
    from = to;
  }
  return 0;
}

/* Import connects every node with the source, so only a malformed loop leaves one out. */
static int tf_check_reached(const tf_dead *s) {
  for (uint32_t i = TF_SINK + 1; i < s->g->nodes.n; i++)
    if (!s->frames[i].reached)
      return base_fail(s->err, XLAC_E_BAD_ARGUMENT, "node '%.120s' can't be reached from the source",
                       s->g->nodes.items[i].name->s);
  return 0;
}

int tf_find_deadness(tf_deadness *d, const tf_graph *g, const tf_frame_info *frames, xlac_error *err) {
  assert(g->nodes.n > TF_SINK);
  tf_dead s = {.d = d, .g = g, .frames = frames, .err = err};
  size_t n = g->nodes.n;
  *d = (tf_deadness){.control = NULL};
  base_arena_init(&d->arena, g->alloc);
  tf_pred_init(&d->factory, &d->arena, g->alloc);
  base_map_init(&s.representative, g->alloc);
  d->control = base_malloc(g->alloc, n * sizeof *d->control);
  d->values = base_malloc(g->alloc, n * sizeof *d->values);
  s.order = base_malloc(g->alloc, n * sizeof *s.order);
  s.revisit = base_malloc(g->alloc, n);
  int status = d->control && d->values && s.order && s.revisit ? tf_check_reached(&s) : tf_dead_oom(&s);
  if (status == 0) {
    memset(d->control, 0, n * sizeof *d->control);
    memset(d->values, 0, n * sizeof *d->values);
    memset(s.revisit, 0, n);
    status = tf_find_dead_order(&s);
  }
  if (status == 0) status = tf_visit_frames_in_order(&s);
  base_map_free(&s.representative);
  BASE_VEC_FREE(g->alloc, &s.inputs);
  base_free(g->alloc, s.order);
  base_free(g->alloc, s.revisit);
  return status;
}

/* Takes a struct that is all zeros, too. */
void tf_deadness_free(tf_deadness *d, base_alloc alloc) {
  tf_pred_free(&d->factory);
  base_free(alloc, d->control);
  base_free(alloc, d->values);
  base_arena_free(&d->arena);
}
