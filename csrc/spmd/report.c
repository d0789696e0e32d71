/* What partitioning came to, as JSON: how arguments and results are cut, what is computed whole and why, what moves. */
#include "spmd.h"

typedef struct report_words {
  const char *why, *remedy;
} report_words;

static const report_words report_causes[] = {
    [SPMD_NO_RULE] = {"nothing says how its dimensions go together",
                      "give it an sdy.sharding_rule, or constrain its operands to be replicated where that is cheap"},
    [SPMD_DRAWS] = {"devices would draw other numbers than one does",
                    "draw with a counter-based generator written as elementwise ops, such as threefry"},
    [SPMD_MOVES] = {"it moves elements along a sharded dimension", "shard another dimension of it"},
    [SPMD_NEEDS_WHOLE] = {"it needs all of a sharded dimension at once", "shard another dimension of it"},
    [SPMD_DISAGREES] = {"its tensors are cut differently along one dimension",
                        "constrain them to the same sharding before it"},
    [SPMD_UNEVEN] = {"a dimension is not a multiple of its shards", "pad that dimension to a multiple"},
    [SPMD_DYNAMIC] = {"a size is known only when it runs", "compile for known sizes"},
    [SPMD_MESHES] = {"its tensors are on meshes that differ", "use one mesh"},
    [SPMD_UNCOMBINED] = {"no all-reduce makes its result of partial ones",
                         "begin the reduction with its neutral value, or shard a dimension that is not reduced"},
    [SPMD_RESHAPES] = {"it would put elements onto other devices",
                       "shard the outermost of the dimensions that it joins or splits"},
    [SPMD_WRITES_PART] = {"it writes a part of a sharded dimension",
                          "shard another dimension, or write all of that one"},
};
_Static_assert(sizeof report_causes / sizeof *report_causes == SPMD_CAUSES, "each cause in words");

static void report_string(base_text *t, const char *key, const char *s) {
  base_putf(t, "\"%s\": ", key);
  base_put_json(t, s, strlen(s));
}

/* why NULL: it is not so. */
static void report_reason(base_text *t, const char *key, const char *why) {
  if (why)
    report_string(t, key, why);
  else
    base_putf(t, "\"%s\": null", key);
  BASE_PUT(t, ", ");
}

static void report_sizes(base_text *t, const char *key, uint32_t n, const int64_t *v) {
  base_putf(t, "\"%s\": [", key);
  for (uint32_t i = 0; i < n; i++) base_putf(t, "%s%lld", i ? ", " : "", (long long)v[i]);
  base_putc(t, ']');
}

static void report_place(base_text *t, const spmd_place *at) {
  report_string(t, "op", at->op);
  base_putf(t, ", \"line\": %u, \"col\": %u, \"source\": %s", at->line, at->col, at->source);
}

static void report_gather(base_text *t, const spmd_gather *g) {
  assert(g->cause < SPMD_CAUSES);
  base_putc(t, '{');
  report_place(t, &g->at);
  base_putf(t, ", \"bytes\": %lld, ", (long long)g->bytes);
  report_string(t, "why", report_causes[g->cause].why);
  BASE_PUT(t, ", ");
  report_string(t, "remedy", report_causes[g->cause].remedy);
  if (g->dim == UINT32_MAX)
    BASE_PUT(t, ", \"tensor\": null, \"dim\": null}");
  else
    base_putf(t, ", \"tensor\": %u, \"dim\": %u}", g->tensor, g->dim);
}

static void report_move(base_text *t, const spmd_move *m) {
  base_putc(t, '{');
  report_string(t, "kind", m->kind);
  BASE_PUT(t, ", ");
  report_string(t, "axes", m->axes);
  base_putf(t, ", \"bytes\": %lld, ", (long long)m->bytes);
  report_place(t, &m->at);
  BASE_PUT(t, ", \"reader\": ");
  if (m->reader.op) {
    base_putc(t, '{');
    report_place(t, &m->reader);
    BASE_PUT(t, "}}");
  } else {
    BASE_PUT(t, "null}");
  }
}

static void report_leaf(base_text *t, const spmd_leaf *leaf) {
  base_putc(t, '{');
  report_sizes(t, "dims", leaf->rank, leaf->dims);
  BASE_PUT(t, ", ");
  report_sizes(t, "shard", leaf->rank, leaf->shard);
  base_putf(t, ", \"bytes\": %lld, \"view\": %s, \"sharding\": ", (long long)spmd_shard_bytes(leaf),
            leaf->contiguous ? "true" : "false");
  if (leaf->sharding)
    base_put_json(t, leaf->sharding, strlen(leaf->sharding));
  else
    BASE_PUT(t, "null");
  base_putc(t, '}');
}

static void report_leaves(base_text *t, const char *key, uint32_t n, const spmd_leaf *v) {
  base_putf(t, ", \"%s\": [", key);
  for (uint32_t i = 0; i < n; i++) {
    if (i) BASE_PUT(t, ", ");
    report_leaf(t, &v[i]);
  }
  base_putc(t, ']');
}

void spmd_put_report(base_text *t, const spmd_program *p, const char *way) {
  base_putf(t, "{\"devices\": %u, \"replicas\": %lld, \"partitions\": %lld, ", p->n_devices, (long long)p->replicas,
            (long long)p->partitions);
  if (way) {
    report_string(t, "run", way);
    BASE_PUT(t, ", ");
  }
  report_reason(t, "whole", p->whole);
  report_reason(t, "summed", p->summed);
  BASE_PUT(t, "\"gathers\": [");
  for (uint32_t i = 0; i < p->gathers.n; i++) {
    if (i) BASE_PUT(t, ", ");
    report_gather(t, &p->gathers.items[i]);
  }
  BASE_PUT(t, "], \"moves\": [");
  for (uint32_t i = 0; i < p->moves.n; i++) {
    if (i) BASE_PUT(t, ", ");
    report_move(t, &p->moves.items[i]);
  }
  base_putc(t, ']');
  report_leaves(t, "arguments", p->n_arguments, p->arguments);
  report_leaves(t, "results", p->n_results, p->results);
  base_putc(t, '}');
}
