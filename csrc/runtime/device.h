/* The device interface: all that the rooms above know of what runs programs.
 *
 * A device has memory, queues on which work goes on in order, and turns programs into executables. The CPU (cpu/), the
 * reference interpreter (interp/) and every device to come stand behind these four tables of functions; what is asked
 * of each is written here, and tests/device/ checks it. Each object begins with its table and its facts, and a device
 * puts what it needs itself behind them.
 *
 * Ownership: devices, queues and executables are reference counted or have one owner, as said below. Each keeps what it
 * needs, so they may be released in any order; only memory has to be given back while somebody holds its device.
 * Threads: all functions, any thread, at the same time, but for those that end an object.
 * Errors: functions that can fail return 0 or a negative code and fill err (base/status.h). A failed call leaves its
 * arguments as they were, and gives nothing. OUT_OF_MEMORY comes from all of them; other codes are named.
 * No two devices share anything that changes, even of one kind. */
#ifndef XLAC_RUNTIME_DEVICE_H
#define XLAC_RUNTIME_DEVICE_H

#include <stdatomic.h>

#include "../base/str.h"
#include "../ir/ir.h"
#include "custom_calls.h"
#include "event.h"
#include "threads.h"

typedef struct rt_device rt_device;
typedef struct rt_queue rt_queue;
typedef struct rt_build rt_build;
typedef struct rt_executable rt_executable;

/* Parts of rooms above, which pass through here unseen. */
struct interp_probes;
struct interp_value;
struct plan_program;
struct plan_target;

/* --- facts --- */

enum { RT_MOST_SPACES = 4 };

/* A memory space of a device, known by its number. Number 0 is where arguments and results lie. */
typedef struct rt_space {
  const char *name;
  bool host_visible; /* the host reads and writes its memory by the same addresses */
  uint64_t bytes;    /* how much there is at most; a device may have less to give */
} rt_space;

/* What deciding about kernels goes by (fuse/). 0: nobody knows. */
typedef struct rt_compute_facts {
  uint32_t vector_bytes;   /* of a vector register */
  uint64_t cache_bytes[3]; /* for data, of the first, the second and the last level: the last is shared by units */
  uint64_t tiles_from;     /* bytes that steps by the same rows go through in all, to be worth running together */
  bool native;             /* kernels become machine code: values between ops stay in registers */
} rt_compute_facts;

/* They never change while the device lives. */
typedef struct rt_device_facts {
  const char *kind;   /* "cpu"; static */
  uint32_t ordinal;   /* among those of its kind in the same set of devices */
  uint32_t units;     /* that work in parallel: CPUs, multiprocessors */
  bool calls_on_host; /* rt_call runs on the caller's thread; else it enqueues and waits */
  bool whole;         /* it runs modules whole: its builds have no target, and need no optimised program */
  rt_compute_facts compute;
  uint32_t n_spaces; /* at least 1 */
  rt_space spaces[RT_MOST_SPACES];
} rt_device_facts;

/* What a device has done with memory so far; all zero where it doesn't count. */
typedef struct rt_memory_stats {
  uint64_t live, live_bytes, peak_bytes; /* allocations that are out */
} rt_memory_stats;

/* --- calls --- */

/* What goes for one call. */
typedef struct rt_call_options {
  bool (*interrupted)(void *ctx); /* asked about every 50 ms, on a thread of the call's; true stops it. May be NULL */
  void *interrupt_ctx;
  const rt_registry *registry; /* custom calls; NULL: the built-in ones */
  uint64_t seed;               /* of rng */
  int64_t replica, partition;
  struct rt_communicator *communicator; /* where its collectives meet others (communicator.h); NULL: it is alone */
  struct interp_probes *probes;         /* NULL: probes pass their operand on */
  uint8_t async_order;                  /* an interp_async_order */
  uint64_t async_seed;
  void (*step)(void *ctx, const char *op, const char *op_name, int64_t start, int64_t ns); /* as xlac.h has it */
  void *step_ctx;
} rt_call_options;

/* What is told of a call, where somebody asks: JSON as docs/executor.md has it. */
typedef enum rt_trace_kind {
  RT_TRACE_COUNTS, /* what ran, without a clock */
  RT_TRACE_STEPS,  /* the time of each step, async work where it starts */
  RT_TRACE_LANES   /* the same while async work goes on beside it */
} rt_trace_kind;
typedef struct rt_trace {
  rt_trace_kind kind;
  base_text *json; /* empty; filled where the call succeeds */
} rt_trace;

/* What calls have copied, for the one who counts. Copies of at most 32 KB don't count. */
typedef struct rt_tally {
  int64_t copies, bytes;                /* because the plan says so */
  int64_t protecting, protecting_bytes; /* of arguments that the program would change, and that are only borrowed */
  int64_t reused, reused_bytes;         /* results in the memory of arguments */
} rt_tally;

/* --- devices --- */

typedef struct rt_copy {
  void *to;
  const void *from;
  size_t bytes;
  uint32_t to_space, from_space; /* of the queue's device; RT_HOST: memory of the host's */
} rt_copy;
enum { RT_HOST = UINT32_MAX };
#define RT_ALL_STREAMS UINT64_MAX

/* Machine code of a program between builds of it by the same library for the same instructions: bytes whose owner
 * answers for them, since they are run. */
typedef struct rt_saved_code {
  const char *bytes; /* what an earlier build left; any bytes do, of which those are used that fit */
  size_t n;
  base_text *out; /* gets what this build has; NULL: nobody wants it */
} rt_saved_code;

/* How a program is to be built. */
typedef struct rt_build_options {
  uint32_t threads;      /* at most; 0: as many as the device has units; 1: none but the caller's */
  bool no_blas;          /* no library for products */
  const char *blas_path; /* NULL: the usual names */
  bool fast;             /* numerics: floats may be contracted, approximated and kept wide */
  uint32_t n_lanes;      /* of async work; "": those of all threads that are not named */
  const xlac_lane *lanes;
  uint64_t async_work;                             /* elements: what is less runs where it starts; 0: some thousands */
  void (*count)(void *ctx, const rt_tally *tally); /* told after each call, on its thread; NULL: nobody */
  void *count_ctx;
  const rt_saved_code *saved; /* NULL: none. Devices that make no code on the host leave it */
} rt_build_options;

typedef struct rt_device_vtable {
  void (*destroy)(rt_device *d); /* the last reference is gone */
  /* Memory of that space, aligned to 64, not cleared; for 0 bytes some address, too. BAD_ARGUMENT: no such space. */
  int (*allocate)(rt_device *d, uint32_t space, size_t bytes, void **out, xlac_error *err);
  void (*release)(rt_device *d, uint32_t space, void *memory); /* NULL is fine; when no work uses it */
  void (*stats)(rt_device *d, rt_memory_stats *out);
  int (*queue)(rt_device *d, rt_queue **out, xlac_error *err);
  /* Begins to build a program: the caller's, for rt_build_finish. */
  int (*begin)(rt_device *d, const rt_build_options *options, rt_build **out, xlac_error *err);
  /* Of devices whose space 0 the host doesn't see; NULL for others. Copies on the caller's thread. */
  int (*copy)(rt_device *d, const rt_copy *copy, xlac_error *err);
  /* Waits for the work of another library's stream, or of all (RT_ALL_STREAMS); NULL where there are no streams. */
  int (*join)(rt_device *d, uint64_t stream, xlac_error *err);
} rt_device_vtable;

struct rt_device {
  const rt_device_vtable *vtable;
  atomic_uint refs;
  rt_device_facts facts;
};

static inline rt_device *rt_device_retain(rt_device *d) {
  atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
  return d;
}
/* NULL is fine. Not on a thread of the device's. */
void rt_device_release(rt_device *d);
/* "cpu:0" */
void rt_device_name(const rt_device *d, char name[32]);
/* Whether the host reads and writes the memory of arguments and results by their addresses. */
static inline bool rt_device_is_host(const rt_device *d) {
  return d->facts.spaces[0].host_visible;
}
XLAC_MUST_USE int rt_allocate(rt_device *d, uint32_t space, size_t bytes, void **out, xlac_error *err);
void rt_release(rt_device *d, uint32_t space, void *memory);
/* For devices whose memory the host doesn't see; from or to space 0, when nothing else uses the blocks. */
XLAC_MUST_USE int rt_copy_now(rt_device *d, const rt_copy *copy, xlac_error *err);
/* Waits for what others have enqueued on the stream of that number, or on all: RT_ALL_STREAMS. */
XLAC_MUST_USE int rt_join(rt_device *d, uint64_t stream, xlac_error *err);

/* --- queues: work in order --- */

/* Pieces of work on one queue run one after another, in the order in which they were enqueued; those on different
 * queues, in any order that events allow. A piece that fails fails its own event; the queue goes on. What depends on a
 * failed piece says so by rt_queue_wait_for: it isn't run, and fails with the same error. So an error reaches all that
 * depends on what failed, and nothing else.
 *
 * A queue has one owner. `done`, where it is not NULL, receives a new reference to an event for the piece. */
typedef struct rt_queue_vtable {
  void (*destroy)(rt_queue *q); /* when all of its work is over, which this waits for */
  int (*wait_for)(rt_queue *q, rt_event *e, xlac_error *err);
  int (*copy)(rt_queue *q, const rt_copy *copy, rt_event **done, xlac_error *err);
  int (*host_call)(rt_queue *q, int (*fn)(void *ctx, xlac_error *err), void *ctx, rt_event **done, xlac_error *err);
  int (*execute)(rt_queue *q, const rt_executable *exe, const rt_call_options *options, void *const *arguments,
                 void *const *results, rt_event **done, xlac_error *err);
  int (*record)(rt_queue *q, rt_event **done, xlac_error *err);
  void (*help)(rt_queue *q, rt_event *until); /* NULL: the host's threads do none of its work */
} rt_queue_vtable;

struct rt_queue {
  const rt_queue_vtable *vtable;
  rt_device *device; /* a reference */
};

XLAC_MUST_USE int rt_queue_create(rt_device *d, rt_queue **out, xlac_error *err);
/* Waits until its work is over. Not from that work; NULL is fine. */
void rt_queue_destroy(rt_queue *q);
/* The next piece begins when e is ready; where e has failed it is not run. Several events: all of them. */
XLAC_MUST_USE int rt_queue_wait_for(rt_queue *q, rt_event *e, xlac_error *err);
/* Both blocks stay until it is over. Memory of another device that the host sees counts as the host's; any other goes
 * through the host. BAD_ARGUMENT: no such space. */
XLAC_MUST_USE int rt_queue_copy(rt_queue *q, const rt_copy *copy, rt_event **done, xlac_error *err);
/* fn(ctx) on a thread of the queue's, or of the driver's: it may set events and enqueue on other queues, and takes no
 * locks that the caller may hold. What it returns is how the piece ends. */
XLAC_MUST_USE int rt_queue_host_call(rt_queue *q, int (*fn)(void *ctx, xlac_error *err), void *ctx, rt_event **done,
                                     xlac_error *err);
/* rt_call as a piece of work. The two lists and the options are copied; executable, memory and what options point to
 * stay until it is over. BAD_ARGUMENT: the executable is of another device, or has no leaves (on_values). */
XLAC_MUST_USE int rt_queue_execute(rt_queue *q, const rt_executable *exe, const rt_call_options *options,
                                   void *const *arguments, void *const *results, rt_event **done, xlac_error *err);
/* An event for all that was enqueued so far: ready when that is over, failed with the first error since the last
 * record. */
XLAC_MUST_USE int rt_queue_record(rt_queue *q, rt_event **done, xlac_error *err);
/* For who is about to wait for `until`: where the queue's own thread has not begun, the pieces are run on this thread,
 * in their order, until the event is over or a piece has to wait for another event. Never waits; not from a piece of
 * work. */
void rt_queue_help(rt_queue *q, rt_event *until);
/* Waits for all that was enqueued so far, and gives the error that a record would. INTERRUPTED: it goes on. */
XLAC_MUST_USE int rt_queue_drain(rt_queue *q, bool (*interrupted)(void *ctx), void *ctx, xlac_error *err);

/* --- building programs --- */

/* What a device makes of one program: the driver asks what it wants, a plan or the module alone, has the plan made, and
 * hands both over. Used by one thread. */
typedef struct rt_build_vtable {
  int (*finish)(rt_build *b, ir_module *owned, const ir_module *m, const struct plan_program *plan, rt_executable **out,
                xlac_error *err);
  void (*abandon)(rt_build *b);
} rt_build_vtable;
struct rt_build {
  const rt_build_vtable *vtable;
  const struct plan_target *target; /* for whom the plan is to be made (plan/plan.h); NULL: it wants the module alone */
  base_arena arena;                 /* where the plan is to be made: the executable's later */
};

XLAC_MUST_USE int rt_build_begin(rt_device *d, const rt_build_options *options, rt_build **out, xlac_error *err);
/* Ends the build, and takes m, also on failure: m is verified and in HLO form, the plan one for b->target, in b->arena.
 * BAD_ARGUMENT: the plan was made for another target. */
XLAC_MUST_USE int rt_build_finish(rt_build *b, ir_module *m, const struct plan_program *plan, rt_executable **out,
                                  xlac_error *err);
/* The same with a module and a plan of somebody else's, which outlive the executable: several can share one plan. */
XLAC_MUST_USE int rt_build_finish_shared(rt_build *b, const ir_module *m, const struct plan_program *plan,
                                         rt_executable **out, xlac_error *err);
void rt_build_abandon(rt_build *b); /* NULL is fine */

/* --- executables --- */

/* One of several calls that go in turns. */
typedef struct rt_turn {
  rt_call_options options;
  void *const *arguments, *const *results; /* as rt_call's */
  const bool *unread; /* by result: nobody reads it there, since another turn's memory has it; NULL: none */
} rt_turn;
enum { RT_NO_TURNS = UINT32_MAX };

typedef struct rt_executable_vtable {
  void (*destroy)(rt_executable *exe);
  int (*call)(const rt_executable *exe, const rt_call_options *options, void *const *arguments, void *const *results,
              const rt_trace *trace, xlac_error *err);
  /* n calls on the pool's threads (NULL: on the caller's alone), all participants of one communicator of turns
   * (communicator.h): each runs up to its next collective, then the next call does; none goes on before all are there.
   * trace is of the first; *failed: whose error it is. Only where the executable's `meetings` say that it can. NULL:
   * the device can't. */
  int (*call_in_turns)(const rt_executable *exe, rt_pool *pool, uint32_t n, const rt_turn *turns, const rt_trace *trace,
                       uint32_t *failed, xlac_error *err);
  int (*run)(const rt_executable *exe, const rt_call_options *options, uint32_t n,
             struct interp_value *const *arguments, struct interp_value **out, const rt_trace *trace, xlac_error *err);
  bool (*lane)(const rt_executable *exe, uint32_t index, xlac_lane *out);  /* NULL: it has none */
  const char *(*library)(const rt_executable *exe);                        /* NULL: it uses none */
  int (*print)(const rt_executable *exe, base_text *out, xlac_error *err); /* NULL: the module is run as it is */
} rt_executable_vtable;

/* A program on a device: immutable, run by any number of threads at the same time. It has one owner. */
struct rt_executable {
  const rt_executable_vtable *vtable;
  rt_device *device; /* a reference */
  const ir_module *module;
  const struct plan_program *plan; /* what it runs; NULL: there is none */
  uint32_t n_devices;              /* that run it together, with arguments and results whole; 0: its device alone */
  bool on_values;                  /* it has no leaves of known size: rt_run_values only */
  uint32_t n_arguments, n_results; /* leaves: arrays and tokens of the parameters and of the root, depth first */
  const ir_type *const *argument_types, *const *result_types;
  uint64_t work;      /* elements a call goes through, roughly; UINT64_MAX where that isn't known before it runs */
  uint64_t turn_work; /* the same of what is between two meetings, one after another: with one trip of each loop that
                         has some */
  uint32_t meetings;  /* collectives between which calls can go in turns; RT_NO_TURNS: they can't */
};

void rt_executable_destroy(rt_executable *exe); /* when no call is going on; NULL is fine */
/* One call on bare memory of space 0, a pointer a leaf (NULL for tokens), row-major and dense; returns when it is over.
 * Results are written, aligned to their elements, and overlap neither each other nor an argument, but where the plan's
 * donations say so. Allocates nothing where no step does. Not where exe->on_values. INTERRUPTED, EVAL, ... */
XLAC_MUST_USE static inline int rt_call(const rt_executable *exe, const rt_call_options *options,
                                        void *const *arguments, void *const *results, xlac_error *err) {
  assert(!exe->on_values && "such programs take values");
  return exe->vtable->call(exe, options, arguments, results, NULL, err);
}
/* One call on values of the host's, one for each parameter, which are checked: ARGUMENT_COUNT, ARGUMENT_TYPE,
 * ARGUMENT_SHAPE. Arguments are borrowed, *out is a new reference. trace may be NULL. */
XLAC_MUST_USE int rt_run_values(const rt_executable *exe, const rt_call_options *options, uint32_t n,
                                struct interp_value *const *arguments, struct interp_value **out, const rt_trace *trace,
                                xlac_error *err);
bool rt_executable_lane(const rt_executable *exe, uint32_t index, xlac_lane *out);
/* What the library that it uses says of itself; "" where it uses none. */
const char *rt_executable_library(const rt_executable *exe);
/* What the device runs, for people: a line for each of its pieces. */
XLAC_MUST_USE int rt_executable_print(const rt_executable *exe, base_text *out, xlac_error *err);

/* --- for devices: what is the same in many (device.c, host_queue.c) --- */

void rt_device_init(rt_device *d, const rt_device_vtable *vtable, const char *kind, uint32_t ordinal);
/* exe->argument_types and so on, of m's entry, in `arena`. */
XLAC_MUST_USE int rt_executable_describe(rt_executable *exe, const ir_module *m, base_arena *arena, xlac_error *err);
/* A queue with one thread of its own, which starts with the first piece of work, for devices whose memory the host
 * sees: copies are memcpy, executables are called. rt_queue_create's `queue`. */
XLAC_MUST_USE int rt_host_queue_create(rt_device *d, base_alloc alloc, rt_queue **out, xlac_error *err);

#endif
