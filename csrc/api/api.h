/* The public handles over the inner layers. Every public function that takes a module holds its lock while it works; a
 * run of the interpreter holds no lock but counts as running, and edits wait for nobody: they fail while one is
 * running. */
#ifndef XLAC_API_API_H
#define XLAC_API_API_H

#include <pthread.h>

#include "../interp/interp.h"
#include "../ir/ir.h"
#include "../runtime/devices.h"
#include "../convert/convert.h"
#include "../text/mlir/mlir.h"
#include "../text/text.h"

struct xlac_module {
  ir_module *ir;
  pthread_mutex_t lock;
  uint32_t running; /* interpretations going on, under the lock */
};

/* Public parts are the inner structs under another name. */
static inline ir_op *api_op(const xlac_op *op) {
  return (ir_op *)(uintptr_t)op;
}
static inline xlac_op *api_op_out(const ir_op *op) {
  return (xlac_op *)(uintptr_t)op;
}
static inline ir_computation *api_computation(const xlac_computation *c) {
  return (ir_computation *)(uintptr_t)c;
}
static inline xlac_computation *api_computation_out(const ir_computation *c) {
  return (xlac_computation *)(uintptr_t)c;
}
static inline const ir_type *api_type(const xlac_type *t) {
  return (const ir_type *)t;
}
static inline const xlac_type *api_type_out(const ir_type *t) {
  return (const xlac_type *)t;
}
static inline interp_value *api_value(const xlac_value *v) {
  return (interp_value *)(uintptr_t)v;
}
static inline xlac_value *api_value_out(const interp_value *v) {
  return (xlac_value *)(uintptr_t)v;
}

static inline void api_lock(xlac_module *m) {
  int failed = pthread_mutex_lock(&m->lock);
  assert(failed == 0);
  (void)failed;
}
static inline void api_unlock(xlac_module *m) {
  pthread_mutex_unlock(&m->lock);
}

/* Locks for an edit; nonzero, and not locked, while the module is running. */
XLAC_MUST_USE int api_lock_edit(xlac_module *m, xlac_error *err);
/* Unlocks and passes `status` on. */
static inline int api_done(xlac_module *m, int status) {
  api_unlock(m);
  return status;
}
/* A handle that owns `ir`; frees `ir` on failure. */
XLAC_MUST_USE int api_wrap(xlac_module **out, ir_module *ir, xlac_error *err);
/* Whether the module can be printed, verified and run at all: an entry, and a root in every computation. */
XLAC_MUST_USE int api_check_whole(const ir_module *ir, xlac_error *err);
/* Fails, saying so, unless the module is in HLO form: `what` is for that form only. */
XLAC_MUST_USE int api_check_hlo(const ir_module *ir, const char *what, xlac_error *err);
/* The buffer's text as a terminated string of the caller's, and frees the buffer. */
XLAC_MUST_USE int api_give_text(base_text *t, char **text, size_t *n, xlac_error *err);
/* Whether the list a part stands in still holds it: what was removed keeps its own links, but nobody links to it. */
static inline bool api_computation_live(const ir_computation *c) {
  return (c->prev ? c->prev->next : c->module->first) == c;
}
static inline bool api_op_live(const ir_op *op) {
  return (op->prev ? op->prev->next : op->parent->first) == op && api_computation_live(op->parent);
}
/* Fails unless op is still part of the program. */
XLAC_MUST_USE int api_check_live(const ir_op *op, xlac_error *err);
XLAC_MUST_USE int api_check_live_computation(const ir_computation *c, xlac_error *err);

/* Fails for a text that is NULL; `what` names the argument. */
static inline int api_check_text(const char *text, const char *what, xlac_error *err) {
  return text ? 0 : base_fail(err, XLAC_E_BAD_ARGUMENT, "%s is NULL", what);
}
/* The same for each of n texts. module.c */
XLAC_MUST_USE int api_check_texts(uint32_t n, const char *const *texts, const char *what, xlac_error *err);
/* Fails for what HLO's text can't spell as a name. edit.c */
XLAC_MUST_USE int api_check_name(const char *name, const char *of, xlac_error *err);

/* Bytes of a dense array; fails for what is none, and beyond 2^63 bytes. value.c */
XLAC_MUST_USE int api_array_bytes(uint32_t dtype, uint32_t rank, const int64_t *dims, size_t *bytes, xlac_error *err);

/* Borrowed; may be NULL. buffer.c */
xlac_counters *api_buffer_counters(const xlac_buffer *b);
/* Public devices are those whose memory the host doesn't see. */
static inline rt_device *api_device(const xlac_device *d) {
  return (rt_device *)(uintptr_t)d;
}
static inline const xlac_device *api_device_out(const rt_device *d) {
  return rt_device_is_host(d) ? NULL : (const xlac_device *)(uintptr_t)d;
}
/* Borrowed. buffer.c */
const xlac_memory *api_buffer_memory(const xlac_buffer *b);
/* A dense copy in memory of the host's of a device's buffer, of any strides. device_buffer.c */
XLAC_MUST_USE int api_buffer_fetch(const xlac_buffer_info *b, void *to, xlac_error *err);

/* A caller's option struct of any version as one of this version. `given` may be NULL: all defaults. options.c */
XLAC_MUST_USE int api_options_convert(void *own, const void *given, uint32_t size, uint32_t align, const char *name,
                                      xlac_error *err);
#define API_READ_OPTIONS(type)                                                                                   \
  XLAC_MUST_USE static inline int api_read_##type(xlac_##type *own, const xlac_##type *given, xlac_error *err) { \
    *own = (xlac_##type){XLAC_OPTIONS(xlac_##type)};                                                             \
    if (given && given->struct_size != sizeof *own)                                                              \
      return api_options_convert(own, given, sizeof *own, _Alignof(xlac_##type), "xlac_" #type, err);            \
    if (given) *own = *given;                                                                                    \
    return 0;                                                                                                    \
  }
API_READ_OPTIONS(parse_options)
API_READ_OPTIONS(print_options)
API_READ_OPTIONS(verify_options)
API_READ_OPTIONS(pipeline_options)
API_READ_OPTIONS(interpret_options)
API_READ_OPTIONS(compile_options)
API_READ_OPTIONS(session_options)

/* A run's options as devices take them, from a caller's. interpret.c */
XLAC_MUST_USE int api_read_call_options(rt_call_options *out, const xlac_interpret_options *given, xlac_error *err);
/* buffer_donor of a module that nobody else sees, or that is locked. alias.c */
XLAC_MUST_USE int api_add_donor(ir_module *ir, const xlac_alias *a, xlac_error *err);
/* Donors for all leaves of the parameters that the options name. alias.c */
XLAC_MUST_USE int api_add_donors(ir_module *ir, const xlac_compile_options *options, xlac_error *err);
/* clusters.c */
struct tf_pass *api_clusters_pass(xlac_clusters *c);
pthread_mutex_t *api_clusters_lock(xlac_clusters *c); /* of all its sessions */
/* What it runs, on its device, and the plan of that, which each has. executable.c */
const rt_executable *api_executable_rt(const xlac_executable *exe);
const struct plan_program *api_executable_plan(const xlac_executable *exe);
/* Whose memory its arrays are made of; borrowed. executable.c */
xlac_runtime *api_executable_runtime(const xlac_executable *exe);
/* runtime.c */
void api_describe_device(rt_device *d, xlac_device_info *out);
/* A runtime is a set of devices under another name. */
static inline rt_device_set *api_devices(const xlac_runtime *rt) {
  return (rt_device_set *)(uintptr_t)rt;
}
/* The options that shape the plan of an executable. executable.c */
xlac_compile_options api_executable_options(const xlac_executable *exe);
/* Borrowed; may be NULL. executable.c */
xlac_counters *api_executable_counters(const xlac_executable *exe);
/* The interpreter's side of a registry; NULL for NULL. */
const rt_registry *api_registry(const xlac_registry *r);

#endif
