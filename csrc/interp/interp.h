/* The reference interpreter: every op, every type, plain loops on dense row-major arrays. The oracle of all executors.
 *
 * Values are reference counted (atomically); a value is immutable while its count is over 1, and its holder may write
 * in place while the count is 1 (interp_make_unique). Errors carry the op's name and line; the evaluator adds them. */
#ifndef XLAC_INTERP_INTERP_H
#define XLAC_INTERP_INTERP_H

#include <stdatomic.h>

#include "../ir/ir.h"
#include "../runtime/custom_calls.h"

typedef enum interp_kind { INTERP_ARRAY, INTERP_TUPLE, INTERP_TOKEN } interp_kind;

typedef struct interp_value interp_value;
struct interp_value {
  atomic_uint refs;
  uint8_t kind;  /* interp_kind */
  uint8_t dtype; /* base_dtype */
  uint32_t rank;
  int64_t *dims; /* actual sizes: a dynamic dimension's present size */
  int64_t count; /* product of dims */
  void *data;    /* row-major dense, base_dtype_bytes each, no padding; aligned to 64 when owned. interp_run copies
                    arguments that are misaligned or hold bytes their type has not (pred 2, s4 100): evaluators need
                    care for neither. Never NULL in an array, not even in one of no elements */
  bool lent;     /* data belongs to somebody else (an argument, a literal, a view's base): not to be written in place */
  void (*release)(void *ctx); /* called when a lent value dies, may be NULL; any thread */
  void *release_ctx;
  interp_value *base;  /* of a view: whose data it shows, itself no view */
  uint32_t n_elements; /* tuples */
  interp_value **elements;
  base_alloc alloc;
};

/* Built-in natives that the interpreter's user brings. Fills *out, or gives false. Thread-safe. */
typedef bool interp_find_native_fn(void *ctx, const char *target, rt_native *out);

/* What the probes of runs have seen, in order of time: interpreter.probe puts its operand here. Thread-safe. probe.c */
typedef struct interp_probes interp_probes;
XLAC_MUST_USE int interp_probes_create(interp_probes **out, base_alloc alloc, xlac_error *err);
void interp_probes_destroy(interp_probes *p);
uint32_t interp_probes_count(interp_probes *p);
/* Number i, borrowed. id is terminated. */
interp_value *interp_probes_get(interp_probes *p, uint32_t i, const char **id);

/* When the computation of an async start runs: its result is read at the done, and anything between is allowed. */
typedef enum interp_async_order {
  INTERP_ASYNC_EAGER,   /* at the start */
  INTERP_ASYNC_LAZY,    /* at the done, the newest chain first where several wait */
  INTERP_ASYNC_SHUFFLED /* at a step drawn from async_seed, from the start to the done */
} interp_async_order;

typedef struct interp_options {
  base_alloc alloc;
  /* Polled at least every ~50 ms of work; true stops the run with INTERRUPTED. May be NULL. */
  bool (*interrupted)(void *ctx);
  void *interrupt_ctx;
  const rt_registry *registry;    /* NULL: only the built-in custom calls */
  interp_find_native_fn *natives; /* asked for targets that are not registered; may be NULL */
  void *natives_ctx;
  uint64_t seed; /* of rng and rng-get-and-update-state */
  int64_t replica, partition;
  uint8_t async_order; /* an interp_async_order; runs with a hub are eager */
  uint64_t async_seed;
  interp_probes *probes;                /* NULL: probes pass their operand on, no more */
  struct rt_communicator *communicator; /* where the devices of a group meet (runtime/communicator.h); else NULL */
  struct interp_hub *hub;               /* where the participants of a parallel run meet (hub.h); else NULL */
} interp_options;

/* The state of one run; one thread. */
typedef struct interp_ctx {
  interp_options options;
  xlac_error *err;
  uint32_t depth; /* of nested computations; limited */
  uint64_t ticks; /* work since the last poll */
  uint64_t rng_state[2];
  struct interp_pending *pending;                 /* async starts whose computations have not run: async_order.c */
  uint32_t n_pending, pending_cap, outer_pending; /* outer_pending: those of the present frame's callers */
  uint64_t n_starts;                              /* async starts so far */
  /* The rest is the engine's. */
  struct interp_plan **plans; /* by computation id, made when first called */
  uint32_t *slot_of;          /* by op id, in its computation's plan */
  base_arena arena;           /* the plans */
  struct interp_heap *heap;   /* of big arrays */
  bool has_effects;           /* some op of the module has side effects */
  uint64_t dying;             /* operands of the present op that nobody reads after it: bit i for operand i */
  interp_value **slots;       /* of the present computation's values, and which of them are the present op's operands */
  const uint32_t *operand_slots;
  uint32_t n_args;
  interp_value **args; /* of the present computation; a parameter op takes its value out of here */
} interp_ctx;

/* Evaluates one op: operands are borrowed; *out receives a new reference. The op's module is verified. */
typedef int interp_eval_fn(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out);
extern interp_eval_fn *const interp_table[IR_OP_COUNT];

/* Runs the module's entry. args are borrowed, one per entry parameter; verifies the module first unless already
 * verified. *out: a new reference. engine.c */
XLAC_MUST_USE int interp_run(ir_module *m, const interp_options *options, uint32_t n_args, interp_value *const *args,
                             interp_value **out, xlac_error *err);
/* What interp_run does once a context is begun: checks args against c's parameters, calls it, and gives a value that
 * shares data with nothing. run.c */
XLAC_MUST_USE int interp_run_in(interp_ctx *ctx, const ir_computation *c, uint32_t n_args, interp_value *const *args,
                                interp_value **out);
/* Whether args are what entry's parameters take: run.c */
XLAC_MUST_USE int interp_check_args(const ir_computation *entry, uint32_t n_args, interp_value *const *args,
                                    xlac_error *err);
/* A new reference to an argument, or to a copy that is aligned and holds only bytes its type has. NULL when out of
 * memory. */
interp_value *interp_clean(interp_ctx *ctx, interp_value *v);
/* Consumes v; gives a value that shares data with no argument, no literal and no other value. NULL when out of memory.
 */
interp_value *interp_own(interp_ctx *ctx, interp_value *v);
/* Evaluates computation c on borrowed args. For ops with called computations. engine.c */
XLAC_MUST_USE int interp_call(interp_ctx *ctx, const ir_computation *c, uint32_t n_args, interp_value *const *args,
                              interp_value **out);
/* The same, but the references in args are the callee's (also on failure): what the callee uses last it may overwrite,
 * so that a loop's state is updated in place and not copied at every trip. Entries become NULL. */
XLAC_MUST_USE int interp_call_move(interp_ctx *ctx, const ir_computation *c, uint32_t n_args, interp_value **args,
                                   interp_value **out);
/* A context for calling computations of a verified module outside a run (constant folding). err is kept. engine.c */
XLAC_MUST_USE int interp_begin(interp_ctx *ctx, const ir_module *m, const interp_options *options, xlac_error *err);
/* The counter of random numbers as it is when a run begins: of the seed in its options. */
void interp_seed(interp_ctx *ctx);
void interp_end(interp_ctx *ctx);
/* Operand k with a new reference if the present op may overwrite its data and give it as the result (nobody else reads
 * it, now or later), else NULL. An evaluator asks before it makes its result and before any nested call. engine.c */
interp_value *interp_reuse(interp_ctx *ctx, interp_value *const *operands, uint32_t k);
/* Operand k with a reference that is the caller's: the frame's own where nobody reads the operand afterwards, so that a
 * callee it is passed to by interp_call_move may overwrite it. The same rule: before any nested call. engine.c */
interp_value *interp_take(interp_ctx *ctx, interp_value *const *operands, uint32_t k);
/* Fails ctx's run with an error about `op`. */
int interp_fail(interp_ctx *ctx, const ir_op *op, base_code code, const char *format, ...) BASE_PRINTF(4, 5);
/* Adds op's name and place to an error whose evaluator could not say where it was. Returns status. */
int interp_place_error(interp_ctx *ctx, const ir_op *op, int status);
/* Counts `work` element operations, polls for interruption now and then. Nonzero: stop. Call it in outer loops. */
int interp_tick(interp_ctx *ctx, uint64_t work);

/* --- applying a called computation to elements: apply.c ---
 * Reducers, comparators, scatter and map bodies work on scalars. interp_apply runs `c` elementwise on n lanes at once:
 * args[i] is an array of n scalars of parameter i's type (dims ignored, dense), outs[j] receives the n results of
 * result j (a tuple root's elements, or the one root). A body that is a scalar program (scalar/program.h) runs on
 * blocks of lanes; any other body is run lane by lane through interp_call; the results are the same. outs[j] may be one
 * of args, as a whole; otherwise nothing overlaps. */
typedef struct interp_body interp_body; /* a computation prepared for this, once per op evaluation */
XLAC_MUST_USE int interp_body_prepare(interp_ctx *ctx, const ir_computation *c, interp_body **out);
void interp_body_free(interp_body *b);
XLAC_MUST_USE int interp_apply(interp_ctx *ctx, interp_body *b, int64_t n, const void *const *args, void *const *outs);
/* If the body is exactly root = op(param0, param1) of the given operands in either order where commutative: its opcode;
 * for compare bodies the opcode is COMPARE. Else IR_OP_INVALID. For fast paths that give the same bits. */
ir_opcode interp_body_opcode(const interp_body *b);

/* What an evaluator returns after a NULL from one of the makers, which have filled the error. */
static inline int interp_failed(const interp_ctx *ctx) {
  return ctx->err && ctx->err->code ? -ctx->err->code : -XLAC_E_OUT_OF_MEMORY;
}

/* --- values: value.c --- NULL / nonzero when out of memory (err filled through ctx). */
interp_value *interp_array(interp_ctx *ctx, base_dtype dtype, uint32_t rank, const int64_t *dims); /* data not zeroed */
/* An array shaped like op's result type. */
interp_value *interp_array_for(interp_ctx *ctx, const ir_op *op);
interp_value *interp_tuple(interp_ctx *ctx, uint32_t n, interp_value *const *elements); /* takes new references */
interp_value *interp_token(interp_ctx *ctx);
interp_value *interp_from_literal(interp_ctx *ctx, const ir_literal *l); /* borrowed: the module owns the data */
/* Wraps memory of somebody else. */
interp_value *interp_lend(base_alloc alloc, base_dtype dtype, uint32_t rank, const int64_t *dims, void *data,
                          void (*release)(void *), void *release_ctx);
static inline interp_value *interp_retain(interp_value *v) {
  atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
  return v;
}
void interp_release(interp_value *v); /* NULL is fine */
/* v itself if nobody else holds it and it is not lent, else a copy; consumes the reference to v. */
interp_value *interp_make_unique(interp_ctx *ctx, interp_value *v);
/* Whether v's data may be written in place: nobody else holds it, nor what it is a view of, and it is not lent. */
bool interp_is_unique(const interp_value *v);
/* The same data under other dims (consumes no reference; shares data by holding v). */
interp_value *interp_view(interp_ctx *ctx, interp_value *v, base_dtype dtype, uint32_t rank, const int64_t *dims);

/* A value of type t with all elements zero, tuples and tokens too. NULL, with the error filled, when out of memory or
 * where a size is not known. arrays.c */
interp_value *interp_zeros(interp_ctx *ctx, const ir_type *t);
/* The result of a start op: (first, second, zeros of op's remaining element types). eval_async.c */
XLAC_MUST_USE int interp_async_tuple(interp_ctx *ctx, const ir_op *op, interp_value *first, interp_value *second,
                                     interp_value **out);
/* A collective of a parallel run whose result has type t. collective_many.c */
XLAC_MUST_USE int interp_collective_many(interp_ctx *ctx, const ir_op *op, const ir_type *t,
                                         interp_value *const *operands, interp_value **out);
/* Fails with PARTICIPANTS unless op's group is this participant alone. eval_collective.c */
XLAC_MUST_USE int interp_collective_alone(interp_ctx *ctx, const ir_op *op);

/* The built-in custom-call target "TopK". eval_custom_call.c */
interp_eval_fn interp_custom_topk;

/* Bytes of an array's data. */
static inline size_t interp_bytes(const interp_value *v) {
  return (size_t)v->count * base_dtype_bytes(v->dtype);
}
/* Row-major strides in elements of dims. */
void interp_strides(uint32_t rank, const int64_t *dims, int64_t *strides);

/* Whether the interpreter knows what target means without a registration. eval_custom_call.c */
bool interp_is_builtin_call(const char *target);

#endif
