/* Walks from the source, breadth first: Enter opens a frame, Exit leaves it, every other node lies in the frame of
 * its inputs. Afterwards it is checked that each frame has one LoopCond and lies in one frame. */
#include "frames.h"

/* queue has room for every node, each of which goes in once. */
typedef struct tf_frame_walk {
  const tf_graph *g;
  tf_frame_info *info;
  uint32_t *queue, head, tail;
  xlac_error *err;
} tf_frame_walk;

/* The words before the colon are TensorFlow's, which users search for. */
static int tf_frame_fail(const tf_frame_walk *w, const tf_node *n, const char *what) {
  assert(n->op != NULL);
  return base_hint(w->err,
                   base_fail(w->err, XLAC_E_BAD_ARGUMENT, "Invalid loop structure: node '%.120s' (op %.60s): %s",
                             n->name->s, n->op->name->s, what),
                   "every value that enters a loop needs an Enter, every value that leaves it an Exit");
}

/* `inside` and `outer` are the Enter and the name of the frame that the Enter lies in. Several Enters of one name
 * open one frame; they must lie in the same one. */
static int tf_open_frame(tf_frame_walk *w, uint32_t out, uint32_t inside, const base_istr *outer) {
  assert(w->g->nodes.items[out].role == TF_ROLE_ENTER);
  const tf_node *n = &w->g->nodes.items[out];
  tf_frame_info *f = &w->info[out];
  if (f->reached) {
    const base_istr *around = f->parent == TF_SOURCE ? NULL : w->info[f->parent].frame;
    return around == outer ? 0 : tf_frame_fail(w, n, "its inputs come from different loops");
  }
  base_slice name = {NULL, 0};
  if (!tf_attr_string(tf_attr_find(n->def->attrs, "frame_name"), &name) || name.n == 0)
    return tf_frame_fail(w, n, "it has no frame_name");
  f->frame = base_intern(&w->g->def->strings, name.p, name.n);
  f->enter = out;
  f->parent = inside;
  return f->frame ? 0 : base_oom(w->err, "finding loops");
}

/* An Exit is itself in the frame that it leaves; what follows it is in the frame around. */
static int tf_visit_frames(tf_frame_walk *w, uint32_t id) {
  tf_frame_info in = w->info[id];
  if (w->g->nodes.items[id].role == TF_ROLE_EXIT) in = w->info[in.parent];
  TF_EACH_OUT(w->g, &w->g->nodes.items[id], e) {
    uint32_t out = w->g->edges.items[e].dst;
    const tf_node *n = &w->g->nodes.items[out];
    tf_frame_info *f = &w->info[out];
    if (!tf_is_op(n)) continue;
    if (n->role == TF_ROLE_ENTER) {
      TRY(tf_open_frame(w, out, in.enter, in.frame));
    } else if (f->reached && f->frame != in.frame) {
      return tf_frame_fail(w, n, "its inputs come from different loops");
    } else if (!f->reached) {
      *f = in;
      f->reached = false;
    }
    if (!f->reached) w->queue[w->tail++] = out;
    f->reached = true;
  }
  return 0;
}

/* TensorFlow's own gradient code makes loops with a second LoopCond that counts iterations; it lets those pass by
 * name. */
static bool tf_counts_loops(const tf_node *n) {
  return strstr(n->name->s, "LoopCounter") != NULL;
}

/* One LoopCond a frame, and one frame around each. */
static int tf_check_frames(const tf_frame_walk *w) {
  base_map conds, parents;
  int status = 0;
  base_map_init(&conds, w->g->alloc);
  base_map_init(&parents, w->g->alloc);
  for (uint32_t i = TF_SINK + 1; i < w->g->nodes.n && status == 0; i++) {
    const tf_node *n = &w->g->nodes.items[i];
    const tf_frame_info *f = &w->info[i];
    if (!f->reached) continue;
    const base_istr *around = f->parent == TF_SOURCE ? NULL : w->info[f->parent].frame;
    uint64_t other = 0;
    if (base_map_get(&parents, base_key(f->frame), &other)) {
      if (other != base_key(around)) status = tf_frame_fail(w, n, "its loop lies in two different loops");
    } else if (!base_map_set(&parents, base_key(f->frame), base_key(around))) {
      status = base_oom(w->err, "finding loops");
    }
    if (n->role != TF_ROLE_LOOP_COND || status != 0) continue;
    if (base_map_get(&conds, base_key(f->frame), &other) && !tf_counts_loops(n) &&
        !tf_counts_loops(&w->g->nodes.items[other]))
      status = base_fail(w->err, XLAC_E_BAD_ARGUMENT,
                         "Invalid loop structure: Loop \"%.80s\" has more than one LoopCond node: '%.80s' and '%.80s'",
                         f->frame ? f->frame->s : "", n->name->s, w->g->nodes.items[other].name->s);
    else if (!base_map_set(&conds, base_key(f->frame), i))
      status = base_oom(w->err, "finding loops");
  }
  base_map_free(&conds);
  base_map_free(&parents);
  return status;
}

/* Nodes that are not reached keep zeros, that is, the outermost frame and reached false. */
int tf_find_frames(const tf_graph *g, tf_frame_info *info, xlac_error *err) {
  assert(g->nodes.n > TF_SINK);
  tf_frame_walk w = {.g = g, .info = info, .err = err};
  w.queue = base_malloc(g->alloc, (size_t)g->nodes.n * sizeof *w.queue);
  if (!w.queue) return base_oom(err, "finding loops");
  memset(info, 0, (size_t)g->nodes.n * sizeof *info);
  w.queue[w.tail++] = TF_SOURCE;
  info[TF_SOURCE].reached = true;
  int status = 0;
  while (w.head < w.tail && status == 0) status = tf_visit_frames(&w, w.queue[w.head++]);
  base_free(g->alloc, w.queue);
  return status == 0 ? tf_check_frames(&w) : status;
}

/* A frame's Enters name it, so the walk outwards has as many steps as frames nest. */
const base_istr *tf_root_frame(const tf_frame_info *info, uint32_t node) {
  assert(info != NULL);
  const tf_frame_info *f = &info[node];
  while (f->parent != TF_SOURCE) f = &info[f->parent];
  return f->frame;
}
