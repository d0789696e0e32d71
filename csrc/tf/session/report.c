/* What a step has run, compiled and fallen back from, as JSON: "units" of the step's own program, "inside" those of
 * clusters that ran node by node and of functions. */
#include "run.h"

/* One unit as an object. Of a part, the nodes are counted without its ends. */
static void tfs_put_unit(base_text *t, const tfs_unit *u) {
  assert(u->kind <= TFS_UNIT_RESULT);
  static const char *const kinds[] = {"host", "function", "compiled", "feed", "fetch"};
  const tfs_unit_stats *s = &u->stats;
  const char *op = u->node ? u->node->op->name->s : "";
  BASE_PUT(t, "{\"name\": ");
  base_put_json(t, u->name->s, u->name->n);
  base_putf(t, ", \"kind\": \"%s\", \"op\": ", u->is_cluster ? "cluster" : kinds[u->kind]);
  base_put_json(t, op, strlen(op));
  base_putf(t, ", \"nodes\": %u, \"runs\": %llu, \"dead\": %llu, \"seconds\": %.6f",
            u->cut ? u->part.graph.nodes.n - 2 - u->part.n_inputs - u->part.n_outputs : 1, (unsigned long long)s->runs,
            (unsigned long long)s->dead, s->run_seconds);
  if (u->kind == TFS_UNIT_COMPUTE) {
    base_putf(t, ", \"compiles\": %llu, \"hits\": %llu, \"compiled_runs\": %llu, \"fallen_back\": %llu",
              (unsigned long long)s->compiles, (unsigned long long)s->hits, (unsigned long long)s->compiled_runs,
              (unsigned long long)s->fallen_back);
    base_putf(t, ", \"compile_seconds\": %.6f, \"signatures\": %u, \"megamorphic\": %s, \"why\": ", s->compile_seconds,
              tfs_count_signatures(u), u->megamorphic ? "true" : "false");
    base_put_json(t, u->why ? u->why : "", u->why ? strlen(u->why) : 0);
  }
  base_putc(t, '}');
}

/* All units but feeds and fetches; *first: no comma yet. */
static void tfs_put_program(base_text *t, const tfs_program *p, bool *first) {
  for (uint32_t k = 0; k < p->n_units; k++) {
    const tfs_unit *u = &p->units[k];
    if (u->kind == TFS_UNIT_ARG || u->kind == TFS_UNIT_RESULT) continue;
    if (!*first) BASE_PUT(t, ",\n ");
    *first = false;
    tfs_put_unit(t, u);
  }
}

/* Which feeds and fetches are strings, by number. */
static void tfs_put_strings(base_text *t, const tfs_step *step) {
  bool first = true, past = false;
  BASE_PUT(t, "\"string_feeds\": [");
  for (uint32_t i = 0; tfs_step_feed(step, i); i++) {
    if (!tfs_step_feed(step, i)->strings) continue;
    base_putf(t, first ? "%u" : ", %u", i);
    first = false;
  }
  BASE_PUT(t, "], \"string_fetches\": [");
  first = true;
  for (uint32_t i = 0; !past; i++) {
    if (!tfs_step_gives_strings(step, i, &past)) continue;
    base_putf(t, first ? "%u" : ", %u", i);
    first = false;
  }
  BASE_PUT(t, "], ");
}

/* Functions are listed for the whole session: their programs are shared by its steps. */
void tfs_step_report(const tfs_step *step, base_text *out) {
  tfs_step_view v = tfs_step_look(step);
  bool first = true;
  base_putc(out, '{');
  tfs_put_strings(out, step);
  base_putf(out, "\"runs\": %llu, \"failures\": %llu, \"seconds\": %.6f, \"units\": [", (unsigned long long)v.runs,
            (unsigned long long)v.failures, v.seconds);
  tfs_put_program(out, v.program, &first);
  BASE_PUT(out, "],\n\"inside\": [");
  first = true;
  for (uint32_t k = 0; k < v.program->n_units; k++)
    if (v.program->units[k].nodes) tfs_put_program(out, v.program->units[k].nodes, &first);
  for (const tfs_program *p = v.program->session->bodies; p; p = p->next) tfs_put_program(out, p, &first);
  BASE_PUT(out, "]}\n");
}
