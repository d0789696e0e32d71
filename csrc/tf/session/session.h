/* Running clustered graphs: variables, what is compiled, steps. One thread at a time for a session and its steps:
 * nothing here locks, api/session.c does. */
#ifndef XLAC_TF_SESSION_SESSION_H
#define XLAC_TF_SESSION_SESSION_H

#include "../../runtime/devices.h"
#include "program.h"

/* cpu.runtime may be NULL: the session makes its own. */
typedef struct tfs_options {
  rt_build_options build;
  rt_device_set *devices; /* whose first runs it; NULL: a set of its own */
  bool compile_at_once;   /* each signature when it is first seen, and always: TensorFlow's must_compile */
  bool always_defer;      /* clusters are never compiled: tf_xla_always_defer_compilation */
  uint64_t seed;          /* of random ops that have none; 0: from the system */
} tfs_options;

/* What a call has changed, to be put back when it fails. Either a variable's or a generator's: `random` tells. */
typedef struct tfs_saved {
  tfs_object *variable;
  interp_value *value; /* before the call; may be NULL */
  struct tfs_random *random;
  uint64_t counter[2];
} tfs_saved;
BASE_VEC(tfs_saved_list, tfs_saved);
BASE_VEC(tfs_object_list, tfs_object *);

/* Everything is allocated by the pass's allocator. */
struct tfs_session {
  tf_pass *pass;
  base_alloc alloc;
  tfs_options options;
  rt_device_set *devices; /* a reference */
  base_map variable_of;   /* interned container, name -> place in variables */
  tfs_object_list variables;
  tfs_saved_list saved;
  uint64_t call;       /* its number; calls of functions within are part of it */
  uint64_t next_seed;  /* of ops without one */
  tfs_program *bodies; /* of functions */
  base_map body_of;    /* tf_call_key -> tfs_program */
};

/* pass must outlive the session. */
XLAC_MUST_USE int tfs_session_create(tfs_session **out, tf_pass *pass, const tfs_options *options, xlac_error *err);
void tfs_session_free(tfs_session *s); /* when its steps are gone */

/* --- variables.c --- */
/* The variable of that name, made where there is none; borrowed. */
XLAC_MUST_USE int tfs_find_variable(tfs_session *s, const base_istr *name, unsigned tf_type, tfs_object **out,
                                    xlac_error *err);
/* Fails unless the variable may hold arrays like value. */
XLAC_MUST_USE int tfs_check_variable(const tfs_object *variable, const interp_value *value, xlac_error *err);
/* Takes value, which may be NULL. The old one is noted while a call is going on. */
XLAC_MUST_USE int tfs_set_variable(tfs_session *s, tfs_object *variable, interp_value *value, xlac_error *err);
XLAC_MUST_USE int tfs_save_random(tfs_session *s, struct tfs_random *random, xlac_error *err);
void tfs_begin_call(tfs_session *s);
void tfs_end_call(tfs_session *s, bool failed);

/* --- step.c: a graph pruned to what some results need --- */
/* What an array for a feed must be. */
typedef struct tfs_feed_info {
  const char *name;
  base_dtype dtype;
  bool strings; /* their bytes lie along one dimension more, of u8: strings.h */
  bool rank_known;
  uint32_t rank;
  int64_t dims[IR_MAX_RANK]; /* -1: any */
} tfs_feed_info;
typedef struct tfs_step tfs_step;
/* For the report. */
typedef struct tfs_step_view {
  const tfs_program *program;
  uint64_t runs, failures;
  double seconds;
} tfs_step_view;
/* feeds and fetches are "node" or "node:output"; targets are nodes that shall run. */
XLAC_MUST_USE int tfs_step_create(tfs_step **out, tfs_session *s, uint32_t n_feeds, const char *const *feeds,
                                  uint32_t n_fetches, const char *const *fetches, uint32_t n_targets,
                                  const char *const *targets, xlac_error *err);
void tfs_step_free(tfs_step *step);
const tfs_feed_info *tfs_step_feed(const tfs_step *step, uint32_t i); /* NULL past the end */
/* Whether fetch i gives strings; *past says that there is none. */
bool tfs_step_gives_strings(const tfs_step *step, uint32_t i, bool *past);
/* args are borrowed, one for each feed; results, one for each fetch, are the caller's and share memory with nothing. A
 * call that fails leaves variables as they were. */
XLAC_MUST_USE int tfs_step_run(tfs_step *step, const rt_call_options *options, interp_value *const *args,
                               interp_value **results, xlac_error *err);
/* What was run, compiled and fallen back, as JSON. report.c */
void tfs_step_report(const tfs_step *step, base_text *out);
tfs_step_view tfs_step_look(const tfs_step *step);

#endif
