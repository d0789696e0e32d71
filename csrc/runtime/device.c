/* What every device, queue and executable has in common: arguments checked, then the device's own function. */
#include "device.h"
#include "../base/export.h"

#include <stdio.h>

/* --- devices --- */

/* Facts that a device leaves alone: one unit, no memory yet, calls that are not on the host. */
void rt_device_init(rt_device *d, const rt_device_vtable *vtable, const char *kind, uint32_t ordinal) {
  assert(vtable->destroy && vtable->allocate && vtable->release && vtable->queue && vtable->begin);
  memset(d, 0, sizeof *d);
  d->vtable = vtable;
  atomic_init(&d->refs, 1);
  d->facts.kind = kind;
  d->facts.ordinal = ordinal;
  d->facts.units = 1;
}

/* Whoever drops the last reference must see all that others did with the device before they dropped theirs. */
void rt_device_release(rt_device *d) {
  assert(!d || atomic_load(&d->refs) > 0);
  if (!d || atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) != 1) return;
  d->vtable->destroy(d);
}

/* Kinds are words of the code's own, so a name always has room. */
void rt_device_name(const rt_device *d, char name[32]) {
  snprintf(name, 32, "%.20s:%u", d->facts.kind, (unsigned)d->facts.ordinal);
}

/* Devices need not check the numbers of spaces: no function of theirs is called with another one. */
static int device_check_space(const rt_device *d, uint32_t space, xlac_error *err) {
  char name[32];
  assert(d->facts.n_spaces > 0 && d->facts.n_spaces <= RT_MOST_SPACES);
  if (space < d->facts.n_spaces) return 0;
  rt_device_name(d, name);
  return base_fail(err, XLAC_E_BAD_ARGUMENT, "%s has %u memory spaces; there is no number %u", name,
                   (unsigned)d->facts.n_spaces, (unsigned)space);
}

int rt_allocate(rt_device *d, uint32_t space, size_t bytes, void **out, xlac_error *err) {
  TRY(device_check_space(d, space, err));
  int status = d->vtable->allocate(d, space, bytes, out, err);
  assert(status || (uintptr_t)*out % 64 == 0);
  return status;
}

void rt_release(rt_device *d, uint32_t space, void *memory) {
  assert(space < d->facts.n_spaces);
  if (memory) d->vtable->release(d, space, memory);
}

int rt_copy_now(rt_device *d, const rt_copy *copy, xlac_error *err) {
  assert(d->vtable->copy && !rt_device_is_host(d));
  return d->vtable->copy(d, copy, err);
}

int rt_join(rt_device *d, uint64_t stream, xlac_error *err) {
  return d->vtable->join ? d->vtable->join(d, stream, err) : 0;
}

/* --- queues --- */

BASE_EXPORT int rt_queue_create(rt_device *d, rt_queue **out, xlac_error *err) {
  int status = d->vtable->queue(d, out, err);
  assert(status || (*out)->device == d);
  return status;
}

/* The device goes last: what ends a queue may need it. */
BASE_EXPORT void rt_queue_destroy(rt_queue *q) {
  if (!q) return;
  rt_device *d = q->device;
  q->vtable->destroy(q);
  rt_device_release(d);
}

BASE_EXPORT int rt_queue_wait_for(rt_queue *q, rt_event *e, xlac_error *err) {
  return q->vtable->wait_for(q, e, err);
}

int rt_queue_copy(rt_queue *q, const rt_copy *copy, rt_event **done, xlac_error *err) {
  if (copy->to_space != RT_HOST) TRY(device_check_space(q->device, copy->to_space, err));
  if (copy->from_space != RT_HOST) TRY(device_check_space(q->device, copy->from_space, err));
  return q->vtable->copy(q, copy, done, err);
}

BASE_EXPORT int rt_queue_host_call(rt_queue *q, int (*fn)(void *ctx, xlac_error *err), void *ctx, rt_event **done,
                                   xlac_error *err) {
  assert(fn);
  return q->vtable->host_call(q, fn, ctx, done, err);
}

/* What can be said at once is an error here; what only the run knows fails the event. */
int rt_queue_execute(rt_queue *q, const rt_executable *exe, const rt_call_options *options, void *const *arguments,
                     void *const *results, rt_event **done, xlac_error *err) {
  char own[32], its[32];
  if (exe->device != q->device) {
    rt_device_name(q->device, own);
    rt_device_name(exe->device, its);
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "a program of %s can't run on a queue of %s", its, own);
  }
  if (exe->on_values)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "this program runs on values only: a shape is known only when it runs");
  return q->vtable->execute(q, exe, options, arguments, results, done, err);
}

int rt_queue_record(rt_queue *q, rt_event **done, xlac_error *err) {
  assert(done);
  return q->vtable->record(q, done, err);
}

BASE_EXPORT void rt_queue_help(rt_queue *q, rt_event *until) {
  if (q->vtable->help) q->vtable->help(q, until);
}

/* A record, and a wait for it: the event is nobody else's. */
BASE_EXPORT int rt_queue_drain(rt_queue *q, bool (*interrupted)(void *ctx), void *ctx, xlac_error *err) {
  rt_event *all = NULL;
  TRY(rt_queue_record(q, &all, err));
  int status = rt_event_wait(all, interrupted, ctx, err);
  rt_event_release(all);
  return status;
}

/* --- building --- */

int rt_build_begin(rt_device *d, const rt_build_options *options, rt_build **out, xlac_error *err) {
  int status = d->vtable->begin(d, options, out, err);
  assert(status || (*out)->vtable->finish);
  return status;
}

/* The module is the executable's from here on. */
int rt_build_finish(rt_build *b, ir_module *m, const struct plan_program *plan, rt_executable **out, xlac_error *err) {
  assert(m->form == IR_FORM_HLO && m->entry);
  return b->vtable->finish(b, m, m, plan, out, err);
}

/* The module and the plan stay the caller's: the device prepares now what it would have prepared while planning. */
int rt_build_finish_shared(rt_build *b, const ir_module *m, const struct plan_program *plan, rt_executable **out,
                           xlac_error *err) {
  assert(m->form == IR_FORM_HLO && m->entry);
  return b->vtable->finish(b, NULL, m, plan, out, err);
}

void rt_build_abandon(rt_build *b) {
  if (b) b->vtable->abandon(b);
}

/* --- executables --- */

/* Depth is that of a type, which is bounded. */
static void device_add_types(const ir_type *t, const ir_type **types, uint32_t *n) {
  if (!ir_is_tuple(t)) {
    types[(*n)++] = t;
    return;
  }
  for (uint32_t i = 0; i < t->n_elements; i++) device_add_types(t->elements[i], types, n);
}

/* Leaves are numbered depth first over all parameters, as plans and callers number them. */
int rt_executable_describe(rt_executable *exe, const ir_module *m, base_arena *arena, xlac_error *err) {
  const ir_computation *entry = m->entry;
  const ir_type *result = ir_root(entry)->type;
  uint32_t n = ir_type_leaves(result), at = 0;
  for (uint32_t i = 0; i < entry->n_params; i++) n += ir_type_leaves(entry->params[i]->type);
  const ir_type **types = BASE_ARRAY(arena, const ir_type *, (size_t)n + 1);
  if (!types) return base_oom(err, "an executable");
  for (uint32_t i = 0; i < entry->n_params; i++) device_add_types(entry->params[i]->type, types, &at);
  exe->module = m;
  exe->n_arguments = at;
  exe->argument_types = types;
  exe->result_types = types + at;
  device_add_types(result, types, &at);
  exe->n_results = at - exe->n_arguments;
  assert(at == n);
  return 0;
}

/* As with queues, the device goes last. */
void rt_executable_destroy(rt_executable *exe) {
  if (!exe) return;
  rt_device *d = exe->device;
  exe->vtable->destroy(exe);
  rt_device_release(d);
}

int rt_run_values(const rt_executable *exe, const rt_call_options *options, uint32_t n,
                  struct interp_value *const *arguments, struct interp_value **out, const rt_trace *trace,
                  xlac_error *err) {
  return exe->vtable->run(exe, options, n, arguments, out, trace, err);
}

/* The rest is for people, and a device may have nothing to say. */
bool rt_executable_lane(const rt_executable *exe, uint32_t index, xlac_lane *out) {
  return exe->vtable->lane && exe->vtable->lane(exe, index, out);
}

const char *rt_executable_library(const rt_executable *exe) {
  return exe->vtable->library ? exe->vtable->library(exe) : "";
}

int rt_executable_print(const rt_executable *exe, base_text *out, xlac_error *err) {
  if (exe->vtable->print) return exe->vtable->print(exe, out, err);
  BASE_PUT(out, "  the module is run whole\n");
  return 0;
}
