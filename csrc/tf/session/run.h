/* One run of a program: by units that are ready, with the frames and iterations of TensorFlow's first control
 * flow. Also what host ops have at hand: their inputs, outputs and attributes, checked as they are asked for, and
 * errors without the node's name. */
#ifndef XLAC_TF_SESSION_RUN_H
#define XLAC_TF_SESSION_RUN_H

#include "session.h"

enum { TFS_MOST_DEPTH = 64 }; /* calls within calls */

/* What a call and all calls within it share. One for each call of a step; functions within have the same. A host
 * op reaches it by tfs_context_of(c->run). */
typedef struct tfs_context {
  tfs_session *session;
  rt_call_options options;
  uint32_t depth;
  uint64_t ticks; /* units run, to ask now and then whether to stop */
  xlac_error *err;
} tfs_context;

typedef struct tfs_run tfs_run;

/* args are borrowed, p->n_args of them; results, p->n_results, are the caller's: zeroed, and filled also in part where
 * the run fails. */
XLAC_MUST_USE int tfs_run_program(tfs_context *ctx, tfs_program *p, const tfs_value *args, tfs_value *results);
tfs_context *tfs_context_of(tfs_run *run);
/* Nonzero: the caller wants to stop. */
XLAC_MUST_USE int tfs_tick(tfs_context *ctx);

/* --- unit.c --- */
/* Runs a compiled unit on c->in, compiling it first where the policy wants that. */
XLAC_MUST_USE int tfs_run_compute(tfs_call *c);
void tfs_compiled_free(tfs_compiled *list, base_alloc alloc);
uint32_t tfs_count_signatures(const tfs_unit *u);
/* --- functions.c --- */
XLAC_MUST_USE int tfs_run_functions(tfs_call *c);

/* --- compile.c: a StableHLO module to what the executor runs; takes m --- */
XLAC_MUST_USE int tfs_compile_module(tfs_session *s, ir_module *m, rt_executable **out, xlac_error *err);

/* --- for host ops: host_common.c --- */
/* Fails unless input i is a tensor: numbers, or what a reference shows. */
XLAC_MUST_USE int tfs_tensor_in(tfs_call *c, uint32_t i, interp_value **out);
/* Input i, a single integer of any integer type. */
XLAC_MUST_USE int tfs_int_in(tfs_call *c, uint32_t i, int64_t *out);
/* Input i, an object of that kind; borrowed. */
XLAC_MUST_USE int tfs_object_in(tfs_call *c, uint32_t i, tfs_object_kind kind, tfs_object **out);
/* Takes v; NULL is out of memory. */
XLAC_MUST_USE int tfs_give_tensor(tfs_call *c, uint32_t i, interp_value *v);
XLAC_MUST_USE int tfs_give_object(tfs_call *c, uint32_t i, tfs_object *o);
XLAC_MUST_USE int tfs_give_int(tfs_call *c, uint32_t i, int64_t v); /* of the output's type */
/* Attributes by name, with the op's defaults; what is absent or of another kind gives `otherwise`, false, "" or
 * INVALID. */
int64_t tfs_attr_int(const tfs_call *c, const char *name, int64_t otherwise);
bool tfs_attr_bool(const tfs_call *c, const char *name);
base_slice tfs_attr_str(const tfs_call *c, const char *name);
/* The element type of output i; INVALID where it is not a tensor of numbers, or is not there. */
base_dtype tfs_out_dtype(const tfs_call *c, uint32_t i);
/* The same of an output that must be integers. */
XLAC_MUST_USE int tfs_index_type(tfs_call *c, uint32_t i, base_dtype *out);
/* Whether one value, as a condition, holds. */
XLAC_MUST_USE int tfs_is_true(tfs_call *c, const tfs_value *v, bool *out);
/* Both give the error's negative code. */
int tfs_fail(tfs_call *c, base_code code, const char *format, ...) BASE_PRINTF(3, 4);
int tfs_oom(tfs_call *c);

base_dtype tfs_attr_dtype(const tfs_call *c, const char *name);
/* Input i, a list of sizes, into dims (IR_MAX_RANK of them). */
XLAC_MUST_USE int tfs_dims_in(tfs_call *c, uint32_t i, uint32_t *rank, int64_t *dims);
/* Fails for negative sizes, and where their product is too large. */
XLAC_MUST_USE int tfs_check_dims(tfs_call *c, uint32_t rank, const int64_t *dims);
/* "[1 2 3...]": at most `most` elements, all where it is negative. */
void tfs_put_summary(base_text *t, const tfs_value *v, int64_t most);

#define HOST(op, fn, arg) tfs_host_fn fn;
#define HOST_VARIANT(op, fn, arg) tfs_host_fn fn;
#define HOST_STRING(op, fn, arg) tfs_host_fn fn;
#include "host.def"
#undef HOST
#undef HOST_VARIANT
#undef HOST_STRING

#endif
