/* Nodes that call functions: their bodies run by the same executor, so that ops with effects and ops of the host
 * work within.
 *
 * A body is made ready once for each set of attributes it is called with, and kept by the session. Depth is
 * bounded by TFS_MOST_DEPTH, which tfs_run_program checks: functions may call themselves. */
#include "run.h"

/* Runs a body on args; results are the caller's. Fills `results` also in part where it fails, for the caller to
 * drop; they must be nothing at first. */
static int tfs_call_body(tfs_call *c, const tf_callee *callee, uint32_t n_args, const tfs_value *args,
                         uint32_t n_results, tfs_value *results) {
  assert(callee && (results || n_results == 0));
  tfs_context *ctx = tfs_context_of(c->run);
  tfs_program *p = NULL;
  TRY(tfs_body_program(ctx->session, callee, &p, c->err));
  if (p->n_args != n_args || p->n_results != n_results)
    return tfs_fail(c, XLAC_E_ARGUMENT_COUNT, "function '%.100s' takes %u values and gives %u, not %u and %u",
                    callee->function->name->s, p->n_args, p->n_results, n_args, n_results);
  TRY(tfs_run_program(ctx, p, args, results));
  for (uint32_t i = 0; i < n_results; i++)
    if (results[i].kind == TFS_NONE)
      return tfs_fail(c, XLAC_E_EVAL, "result %u of function '%.100s' was never computed", i,
                      callee->function->name->s);
  return 0;
}

static void tfs_drop_all(uint32_t n, tfs_value *values) {
  assert(values || n == 0);
  for (uint32_t i = 0; i < n; i++) tfs_drop(&values[i]);
}

/* The state lies in the node's outputs from the beginning: what is there when it fails is dropped by who runs the
 * node. The inputs are moved and not copied, so that a body may write lists and arrays in place from the first
 * turn on. */
static int tfs_run_while(tfs_call *c, const tf_callees *callees) {
  assert(callees->kind == TF_CALL_WHILE);
  tfs_context *ctx = tfs_context_of(c->run);
  tfs_value *state = c->out; /* a While has as many outputs as inputs */
  if (c->n_in != c->n_out || callees->n < 2)
    return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "a loop needs cond and body, and as many results as inputs");
  tfs_value *next = base_malloc(c->alloc, (c->n_in + (size_t)1) * sizeof *next);
  if (!next) return tfs_oom(c);
  memset(next, 0, (c->n_in + (size_t)1) * sizeof *next);
  for (uint32_t i = 0; i < c->n_in; i++) {
    state[i] = c->in[i];
    c->in[i].kind = TFS_NONE;
  }
  int status = 0;
  for (bool go = true; status == 0;) {
    tfs_value cond = {.kind = TFS_NONE};
    if ((status = tfs_tick(ctx)) != 0) break;
    status = tfs_call_body(c, &callees->list[0], c->n_in, state, 1, &cond);
    if (status == 0) status = tfs_is_true(c, &cond, &go);
    tfs_drop(&cond);
    if (status || !go) break;
    status = tfs_call_body(c, &callees->list[1], c->n_in, state, c->n_in, next);
    for (uint32_t i = 0; i < c->n_in && status == 0; i++) {
      tfs_drop(&state[i]);
      state[i] = next[i];
      next[i].kind = TFS_NONE;
    }
  }
  tfs_drop_all(c->n_in, next);
  base_free(c->alloc, next);
  return status;
}

/* Which branch an If or a Case takes. A Case beyond its branches takes the last one, as TensorFlow does. */
static int tfs_choose(tfs_call *c, const tf_callees *callees, uint32_t *out) {
  int64_t i = 0;
  bool yes = false;
  if (callees->cut) return tfs_fail(c, XLAC_E_TOO_LARGE, "more than %d branches", TF_MOST_CALLEES);
  if (c->n_in == 0 || callees->n == 0) return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "it has no branches");
  if (callees->kind == TF_CALL_IF) {
    TRY(tfs_is_true(c, &c->in[0], &yes));
    *out = yes ? 0 : 1;
    return 0;
  }
  TRY(tfs_int_in(c, 0, &i));
  *out = i < 0 || i >= callees->n ? callees->n - 1 : (uint32_t)i;
  return 0;
}

/* The functions that the node calls, found once. Freed with the unit. */
static int tfs_callees_of(tfs_call *c, const tf_callees **out) {
  tf_callees *found = c->unit->callees;
  if (!found) {
    if (!(found = base_malloc(c->alloc, sizeof *found))) return tfs_oom(c);
    int status = tf_find_callees(&tfs_context_of(c->run)->session->pass->bodies, c->node, found, c->err);
    if (status) {
      base_free(c->alloc, found);
      return status;
    }
    c->unit->callees = found;
  }
  *out = found;
  return 0;
}

/* The first input of an If or a Case chooses and is not passed on. */
int tfs_run_functions(tfs_call *c) {
  const tf_callees *callees = NULL;
  uint32_t chosen = 0;
  TRY(tfs_callees_of(c, &callees));
  if (tf_node_is(c->node, "SymbolicGradient"))
    return tfs_fail(c, XLAC_E_LOWER, "gradients of functions are not computed here; TensorFlow 2 writes them out");
  switch (callees->kind) {
    case TF_CALL_WHILE:
      return tfs_run_while(c, callees);
    case TF_CALL_IF:
    case TF_CALL_CASE:
      TRY(tfs_choose(c, callees, &chosen));
      return tfs_call_body(c, &callees->list[chosen], c->n_in - 1, c->in + 1, c->n_out, c->out);
    case TF_CALL_DIRECT:
      return tfs_call_body(c, &callees->list[0], c->n_in, c->in, c->n_out, c->out);
    case TF_CALL_NONE:
      break;
  }
  return tfs_fail(c, XLAC_E_INTERNAL, "it calls no function");
}
