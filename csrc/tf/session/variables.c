/* Variables, and what a call that fails puts back.
 *
 * A call notes the value of a variable before it first changes it: the note holds the old value. When the call
 * ends well the notes are dropped, and else they are put back, the last one first. Numbers of calls tell whether
 * there is a note already. */
#include "../lower/tensor.h"
#include "random.h"
#include "run.h"

/* By its full name, container included, as an interned string: equal names are equal pointers. A type that is not
 * known (0) may be told later. */
int tfs_find_variable(tfs_session *s, const base_istr *name, unsigned tf_type, tfs_object **out, xlac_error *err) {
  assert(name);
  uint64_t at = 0;
  if (base_map_get(&s->variable_of, base_key(name), &at)) {
    *out = s->variables.items[at];
    if ((*out)->tf_type == 0) (*out)->tf_type = tf_base_type(tf_type);
    return 0;
  }
  tfs_object *v = tfs_object_new(s->alloc, TFS_VARIABLE);
  if (!v) return base_oom(err, "making a variable");
  v->name = name;
  v->tf_type = tf_base_type(tf_type);
  bool fine = BASE_VEC_PUSH(s->alloc, &s->variables, v);
  if (!fine) tfs_object_drop(v);
  if (!fine || !base_map_set(&s->variable_of, base_key(name), s->variables.n - 1))
    return base_oom(err, "making a variable");
  *out = v;
  return 0;
}

/* What has no element type here (a string, say) holds no array. */
int tfs_check_variable(const tfs_object *v, const interp_value *value, xlac_error *err) {
  assert(value);
  base_dtype wants = tfl_dtype_of(v->tf_type);
  if (wants == BASE_DTYPE_INVALID || wants == value->dtype) return 0;
  return base_fail(err, XLAC_E_ARGUMENT_TYPE, "variable '%.100s' has elements of type %s, not %s", v->name->s,
                   base_dtype_of(wants)->text, base_dtype_of((base_dtype)value->dtype)->text);
}

/* The new value is what later units of this call see, whatever becomes of the call. */
int tfs_set_variable(tfs_session *s, tfs_object *v, interp_value *value, xlac_error *err) {
  assert(v->kind == TFS_VARIABLE);
  if (v->saved_in != s->call) {
    tfs_saved old = {.variable = v, .value = v->value};
    if (!BASE_VEC_PUSH(s->alloc, &s->saved, old)) {
      interp_release(value);
      return base_oom(err, "setting a variable");
    }
    v->saved_in = s->call;
  } else {
    interp_release(v->value);
  }
  v->value = value;
  return 0;
}

/* Generators are put back like variables: a call that is made again draws the same numbers. */
int tfs_save_random(tfs_session *s, tfs_random *random, xlac_error *err) {
  assert(random);
  if (random->saved_in == s->call) return 0;
  tfs_saved old = {.random = random, .counter = {random->counter.low, random->counter.high}};
  if (!BASE_VEC_PUSH(s->alloc, &s->saved, old)) return base_oom(err, "drawing random numbers");
  random->saved_in = s->call;
  return 0;
}

/* Calls of functions within are part of the call, and don't come here. */
void tfs_begin_call(tfs_session *s) {
  s->call++;
  assert(s->saved.n == 0);
}

/* Last first, as a generator may have been noted after a variable that depends on it. */
void tfs_end_call(tfs_session *s, bool failed) {
  for (uint32_t i = s->saved.n; i-- > 0;) {
    tfs_saved *old = &s->saved.items[i];
    if (old->random) {
      if (failed) old->random->counter = (rng_counter){old->counter[0], old->counter[1]};
    } else if (failed) {
      interp_release(old->variable->value);
      old->variable->value = old->value;
    } else {
      interp_release(old->value);
    }
  }
  s->saved.n = 0;
  s->call++; /* changes from outside of calls are noted by nobody */
}
