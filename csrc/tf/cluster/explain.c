/* Explanations, worked out when asked for: nothing is recorded while clustering. */
#include "../../base/plural.h"
#include "explain.h"

#include "allow_list.h"
#include "resources.h"

/* By the interned name, so that nodes are compared by address. */
uint32_t tf_find_node(const tf_pass *p, const char *name) {
  const base_istr *known = base_intern_find(&p->def->strings, name, strlen(name));
  for (uint32_t i = 0; known && i < p->graph.nodes.n; i++)
    if (p->graph.nodes.items[i].name == known) return i;
  return TF_NO_EDGE;
}

/* "'name' (Op)"; source and sink have no op. */
static void tf_put_node(const tf_pass *p, uint32_t id, base_text *out) {
  assert(id < p->graph.nodes.n);
  const tf_node *n = &p->graph.nodes.items[id];
  base_putf(out, "'%s'", n->name->s);
  if (n->op) base_putf(out, " (%s)", n->op->name->s);
}

/* --- one node --- */

/* What the refusal's text leaves open: the node within a function, the device, the list, the types. */
static void tf_put_decider(const tf_pass *p, uint32_t id, const tf_verdict *v, base_text *out) {
  const tf_node *n = &p->graph.nodes.items[id];
  if (v->inside)
    base_putf(out, "; it is '%s' (%s): %s", v->inside->s, v->op->s, tf_refusal_text((tf_refusal)v->inside_why));
  if (v->why == TF_REFUSED_UNKNOWN_DEVICE || v->why == TF_REFUSED_NOT_ENABLED)
    base_putf(out, ": %s", n->device ? n->device->s : "none is assigned");
  if (v->why == TF_REFUSED_NOT_ENABLED) base_putf(out, ", jit level %lld", (long long)p->jit_level);
  if (v->why == TF_REFUSED_NOT_LISTED) base_putf(out, ": '%s'", p->flags.ops_to_cluster);
  if (v->why == TF_REFUSED_FUEL) base_putf(out, ": %lld", (long long)p->flags.clustering_fuel);
  if (v->why != TF_REFUSED_NO_KERNEL) return;
  BASE_PUT(out, ":");
  for (uint32_t i = 0; i < n->n_inputs + n->n_outputs; i++)
    base_putf(out, "%s%s", i == n->n_inputs ? " -> " : " ", tf_type_word(n->types[i]));
}

static const char *const tf_left_text[] = {
    [TF_LEFT_NOT] = "it is a Fill all of whose users are outside",
    [TF_LEFT_CONSTANT] =
        "the cluster would be compiled anew for each of its values, and nothing in the cluster feeds it",
    [TF_LEFT_SHAPE] = "it looks at the shape of something outside",
    [TF_LEFT_NOTHING] = "all its users are outside and take the copy that wants no way over the device",
};

/* Why a candidate is in no cluster in the end: the tests of tf_mark_clusters in their order, and what
 * PartiallyDeclusterPass took out again. */
static void tf_put_small(tf_pass *p, uint32_t id, base_text *out) {
  const tf_cluster *c = tf_cluster_of(p, id);
  if (!c) {
    base_puts(out, p->gave_up
                       ? "it is a candidate, but a loop of the graph would close a cycle, so that nothing is clustered"
                       : "it is a candidate, but nothing was clustered");
  } else if (!tf_should_compile(p, c->forced, c->devices->chosen)) {
    BASE_PUT(out, "it is a candidate, but clustering is not enabled for the device of its cluster");
  } else if (c->effective < p->flags.min_cluster_size && !c->functional && !c->forced) {
    base_putf(
        out,
        "it is a candidate, but its cluster has %u node%s, of which %u count%s (Const and Identity do not): fewer than "
        "min_cluster_size, %lld",
        c->size, base_plural(c->size), c->effective, c->effective == 1 ? "s" : "",
        (long long)p->flags.min_cluster_size);
  } else {
    BASE_PUT(out, "it was in a cluster and has left it: ");
    base_puts(out, tf_left_text[p->left[id]]);
  }
}

/* The cluster that it ended up in. */
static void tf_put_home(tf_pass *p, uint32_t id, base_text *out) {
  uint32_t size = tf_cluster_of(p, id)->size;
  base_putf(out, "it is in %s, with %u node%s", p->result[id]->s, size, base_plural(size));
}

int tf_explain_node(tf_pass *p, uint32_t id, base_text *out, xlac_error *err) {
  assert(id < p->graph.nodes.n);
  const tf_verdict *v = &p->verdicts[id];
  tf_put_node(p, id, out);
  BASE_PUT(out, ": ");
  if (id >= p->n_clustered) {
    BASE_PUT(out, "it is a copy outside the cluster, for users outside that want the value in the host's memory");
    return out->failed ? base_oom(err, "explaining a cluster") : 0;
  }
  if (p->already_clustered)
    BASE_PUT(out, "the graph has been clustered before: a node has attribute _XlaAlreadyClustered, or is a TPUExecute");
  else if (p->result[id])
    tf_put_home(p, id, out);
  else if (p->candidate[id])
    tf_put_small(p, id, out);
  else
    base_putf(out, "it is not a candidate, since %s", tf_refusal_text((tf_refusal)v->why));
  if (!p->already_clustered && !p->candidate[id]) tf_put_decider(p, id, v, out);
  return out->failed ? base_oom(err, "explaining a cluster") : 0;
}

/* --- two nodes --- */

/* The device that a cluster would be compiled for. */
static void tf_put_devices(const tf_pass *p, const tf_cluster *c, base_text *out) {
  uint32_t device = c->devices->chosen;
  base_puts(out, device == TF_NO_DEVICE ? "no device" : p->devices.items[device].name->s);
}

/* The other way from one cluster to the other, its middle left out where it is long. Vertices behind the nodes are
 * frames. */
static int tf_put_cycle(tf_pass *p, const tf_cluster *from, const tf_cluster *to, base_text *out, xlac_error *err) {
  uint32_t n = 0, room = p->cycles.v.n;
  uint32_t *path = base_malloc(p->graph.alloc, ((size_t)room + 1) * sizeof *path);
  int status =
      path ? tf_cycles_path(&p->cycles, from->vertex, to->vertex, path, room, &n, err) : base_oom(err, "explaining");
  if (n > 0) BASE_PUT(out, ": ");
  for (uint32_t i = 0; i < n && status == 0; i++) {
    if (i) BASE_PUT(out, " -> ");
    if (i == 8 && n > 12) {
      base_putf(out, "(%u more) -> ", n - 10);
      i = n - 2;
    }
    if (path[i] < p->graph.nodes.n)
      tf_put_node(p, path[i], out);
    else
      BASE_PUT(out, "a loop");
  }
  base_free(p->graph.alloc, path);
  return status;
}

/* Names one pair in the wrong order. It need not be the pair that was met first, but it is one of theirs. */
static void tf_put_resource_pair(tf_pass *p, const tf_cluster *from, const tf_cluster *to, base_text *out) {
  uint32_t before = TF_NO_EDGE, after = TF_NO_EDGE;
  for (uint32_t a = from->first; a != TF_NO_EDGE; a = p->next_node[a]) {
    tf_resource_use use = tf_resource_use_of(&p->graph.nodes.items[a]);
    if (use == TF_RESOURCE_WRITE || use == TF_RESOURCE_READ_WRITE) before = a;
  }
  for (uint32_t b = to->first; b != TF_NO_EDGE && after == TF_NO_EDGE; b = p->next_node[b]) {
    tf_resource_use use = tf_resource_use_of(&p->graph.nodes.items[b]);
    if (use == TF_RESOURCE_READ || use == TF_RESOURCE_READ_WRITE) after = b;
  }
  if (before == TF_NO_EDGE || after == TF_NO_EDGE) return;
  BASE_PUT(out, ": a cluster reads all variables first and writes them last, but ");
  tf_put_node(p, after, out);
  BASE_PUT(out, " comes after ");
  tf_put_node(p, before, out);
}

/* What the two sides of an obstacle are. */
static int tf_put_facts(tf_pass *p, const tf_cluster *from, const tf_cluster *to, tf_obstacle why, base_text *out,
                        xlac_error *err) {
  switch (why) {
    case TF_OBSTACLE_DEADNESS:
      BASE_PUT(out, ": ");
      tf_put_pred(out, from->deadness);
      BASE_PUT(out, " and ");
      tf_put_pred(out, to->deadness);
      return 0;
    case TF_OBSTACLE_DEVICE:
    case TF_OBSTACLE_NEIGHBOUR_DEVICE:
      BASE_PUT(out, ": ");
      tf_put_devices(p, from, out);
      BASE_PUT(out, " and ");
      tf_put_devices(p, to, out);
      return 0;
    case TF_OBSTACLE_SCOPE:
      base_putf(out, ": '%s' and '%s'", from->scope->s, to->scope->s);
      return 0;
    case TF_OBSTACLE_SIZE:
      base_putf(out, ": %u and %u, at most %lld", from->size, to->size, (long long)p->flags.max_cluster_size);
      return 0;
    case TF_OBSTACLE_RESOURCE:
      tf_put_resource_pair(p, from, to, out);
      return 0;
    case TF_OBSTACLE_CYCLE:
      return tf_put_cycle(p, from, to, out, err);
    default:
      return 0;
  }
}

/* The edge may run either way; it is asked about in its own direction. */
static int tf_put_obstacle(tf_pass *p, tf_cluster *from, tf_cluster *to, base_text *out, xlac_error *err) {
  tf_obstacle why = TF_OBSTACLE_NONE;
  bool ahead = tf_cycles_has(&p->cycles, from->vertex, to->vertex);
  if (!ahead && tf_cycles_has(&p->cycles, to->vertex, from->vertex)) {
    tf_cluster *swap = from;
    from = to;
    to = swap;
    ahead = true;
  }
  TRY(tf_find_obstacle(p, from, to, &why, err));
  if (!ahead && why == TF_OBSTACLE_NONE) {
    BASE_PUT(out, "no edge leads from one cluster to the other, and only neighbours become one");
    return 0;
  }
  base_puts(out, tf_obstacle_text(why));
  return tf_put_facts(p, from, to, why, out, err);
}

int tf_explain_pair(tf_pass *p, uint32_t a, uint32_t b, base_text *out, xlac_error *err) {
  assert(a < p->graph.nodes.n && b < p->graph.nodes.n);
  tf_cluster *from = tf_cluster_of(p, a), *to = tf_cluster_of(p, b);
  uint32_t refused = !p->candidate[a] ? a : b;
  if (!p->candidate[a] || !p->candidate[b] || !from || !to) return tf_explain_node(p, refused, out, err);
  tf_put_node(p, a, out);
  BASE_PUT(out, " and ");
  tf_put_node(p, b, out);
  BASE_PUT(out, ": ");
  if (from == to)
    base_putf(out, "they are in one cluster, of %u node%s", from->size, base_plural(from->size));
  else
    TRY(tf_put_obstacle(p, from, to, out, err));
  return out->failed ? base_oom(err, "explaining a cluster") : 0;
}

/* --- the table --- */

/* A tab, then the words with blanks between. */
static void tf_put_column(const tf_word *words, base_text *out) {
  base_putc(out, '\t');
  for (const tf_word *at = words; *at;) {
    if (at != words) base_putc(out, ' ');
    base_slice word = tf_next_word(&at);
    base_put(out, word.p, word.n);
  }
}

/* A tab between columns; "=" in the table means "the same types as on CPUs". */
void tf_put_op_list(base_text *out) {
  static const char *const uses[] = {"-", "read", "write", "read-write"};
  for (uint32_t i = 0; i < tf_op_row_count(); i++) {
    tf_op_row row = tf_op_row_at(i);
    if (!(row.flags & TF_OP_XLA)) continue;
    base_puts(out, row.name);
    tf_put_column(row.types[0], out);
    tf_put_column(row.types[tf_is_same_types(row.types[1]) ? 0 : 1], out);
    tf_put_column(row.const_args, out);
    base_putf(out, "\t%s\t", uses[row.resource]);
    const char *between = "";
    for (const tf_category *c = tf_categories; c->name; c++) {
      if (!tf_category_has_op(c, row.name)) continue;
      base_putf(out, "%s%s", between, c->name);
      between = ",";
    }
    base_putc(out, '\n');
  }
}
