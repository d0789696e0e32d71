/* Running clustered graphs.
 *
 * Sessions of one graph share a lock, since all of them make strings and function bodies in the graph's
 * memory. So steps of one session, and of its siblings, run one at a time. */
#include "../tf/session/session.h"

#include <stdlib.h>

#include "api.h"

struct xlac_session {
  pthread_mutex_t *lock; /* the clusters' */
  tfs_session *inner;
  char *blas_path;
};

struct xlac_step {
  xlac_session *session;
  tfs_step *inner;
};

/* Held for a whole step. */
static void session_lock(xlac_session *s) {
  int failed = pthread_mutex_lock(s->lock);
  assert(failed == 0);
  (void)failed;
}

static int session_done(xlac_session *s, int status) {
  pthread_mutex_unlock(s->lock);
  return status;
}

static void session_free(xlac_session *s) {
  free(s->blas_path);
  free(s);
}

/* The clusters must outlive it. */
int xlac_session_create(xlac_session **out, xlac_clusters *c, const xlac_session_options *given, xlac_error *err) {
  assert(out && c);
  xlac_session_options options;
  TRY(api_read_session_options(&options, given, err));
  if ((unsigned)options.numerics > XLAC_NUMERICS_FAST)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "numerics %d is neither strict (0) nor fast (1)", (int)options.numerics);
  xlac_session *s = calloc(1, sizeof *s);
  if (!s) return base_oom(err, "a session");
  if (options.blas_path && !(s->blas_path = strdup(options.blas_path))) {
    session_free(s);
    return base_oom(err, "a session");
  }
  tfs_options inner = {.compile_at_once = options.compile_at_once,
                       .always_defer = options.always_defer,
                       .seed = options.seed,
                       .devices = api_devices(options.runtime),
                       .build = {.threads = options.threads,
                                 .no_blas = options.no_blas,
                                 .blas_path = s->blas_path,
                                 .fast = options.numerics == XLAC_NUMERICS_FAST}};
  s->lock = api_clusters_lock(c);
  session_lock(s);
  int status = session_done(s, tfs_session_create(&s->inner, api_clusters_pass(c), &inner, err));
  if (status) {
    session_free(s);
    return status;
  }
  *out = s;
  return 0;
}

void xlac_session_destroy(xlac_session *s) {
  if (!s) return;
  session_lock(s);
  tfs_session_free(s->inner);
  (void)session_done(s, 0);
  session_free(s);
}

uint32_t xlac_session_variable_count(xlac_session *s) {
  session_lock(s);
  uint32_t n = s->inner->variables.n;
  (void)session_done(s, 0);
  return n;
}

/* value may be NULL: the name only. A variable that was never set gives a NULL value, which is no error. */
static int session_get_variable(const tfs_session *s, uint32_t number, const char **name, xlac_value **value,
                                xlac_error *err) {
  if (number >= s->variables.n)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "there are %u variables, none has number %u", s->variables.n, number);
  const tfs_object *v = s->variables.items[number];
  *name = v->name->s;
  if (!value) return 0;
  interp_value *copy = v->value ? tfs_copy_tensor(s->alloc, v->value) : NULL;
  if (v->value && !copy) return base_oom(err, "a variable's value");
  *value = api_value_out(copy);
  return 0;
}

int xlac_session_variable(xlac_session *s, uint32_t number, const char **name, xlac_value **value, xlac_error *err) {
  session_lock(s);
  return session_done(s, session_get_variable(s->inner, number, name, value, err));
}

/* Checked against the variable's type before anything changes. Begin and end of a call bracket the change
 * as a step's, so that failing leaves the old value. */
static int session_set_variable(tfs_session *s, const char *name, const interp_value *value, xlac_error *err) {
  tfs_object *v = NULL;
  if (value->kind != INTERP_ARRAY) return base_fail(err, XLAC_E_ARGUMENT_TYPE, "a variable's value is an array");
  const base_istr *key = base_intern(&s->pass->def->strings, name, strlen(name));
  interp_value *copy = key ? tfs_copy_tensor(s->alloc, value) : NULL;
  if (!copy) return base_oom(err, "setting a variable");
  int status = tfs_find_variable(s, key, 0, &v, err);
  if (status == 0) status = tfs_check_variable(v, value, err);
  if (status) {
    interp_release(copy);
    return status;
  }
  tfs_begin_call(s);
  status = tfs_set_variable(s, v, copy, err);
  tfs_end_call(s, status != 0);
  return status;
}

int xlac_session_set_variable(xlac_session *s, const char *name, const xlac_value *value, xlac_error *err) {
  TRY(api_check_text(name, "the variable's name", err));
  session_lock(s);
  return session_done(s, session_set_variable(s->inner, name, api_value(value), err));
}

/* --- steps --- */

/* Feeds and fetches by tensor name, "x:0", targets by node name; resolved and pruned once, here. */
int xlac_step_create(xlac_step **out, xlac_session *s, uint32_t n_feeds, const char *const *feeds, uint32_t n_fetches,
                     const char *const *fetches, uint32_t n_targets, const char *const *targets, xlac_error *err) {
  TRY(api_check_texts(n_feeds, feeds, "feed", err));
  TRY(api_check_texts(n_fetches, fetches, "fetch", err));
  TRY(api_check_texts(n_targets, targets, "target", err));
  xlac_step *step = calloc(1, sizeof *step);
  if (!step) return base_oom(err, "a step");
  step->session = s;
  session_lock(s);
  int status = session_done(
      s, tfs_step_create(&step->inner, s->inner, n_feeds, feeds, n_fetches, fetches, n_targets, targets, err));
  if (status)
    free(step);
  else
    *out = step;
  return status;
}

void xlac_step_destroy(xlac_step *step) {
  if (!step) return;
  session_lock(step->session);
  tfs_step_free(step->inner);
  (void)session_done(step->session, 0);
  free(step);
}

/* In the order of the arguments of a run; false past the end. */
bool xlac_step_feed(const xlac_step *step, uint32_t index, const char **name, uint32_t *dtype) {
  const tfs_feed_info *f = tfs_step_feed(step->inner, index);
  if (!f) return false;
  *name = f->name;
  *dtype = f->dtype;
  return true;
}

int xlac_step_run(xlac_step *step, const xlac_interpret_options *options, xlac_value *const *args, xlac_value **results,
                  xlac_error *err) {
  rt_call_options inner;
  TRY(api_read_call_options(&inner, options, err));
  session_lock(step->session);
  return session_done(step->session, tfs_step_run(step->inner, &inner, (interp_value *const *)(const void *)args,
                                                  (interp_value **)(void *)results, err));
}

/* What was run, compiled and fallen back, as JSON. */
int xlac_step_report(xlac_step *step, char **json, size_t *n, xlac_error *err) {
  base_text t;
  base_text_init(&t, base_alloc_libc);
  session_lock(step->session);
  tfs_step_report(step->inner, &t);
  (void)session_done(step->session, 0);
  return api_give_text(&t, json, n, err);
}
