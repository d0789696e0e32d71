/* The PJRT plugin: JAX's client sees xlac's devices, buffers and executables through the slots of abi.h.
 *
 * The room stands on xlac.h and runtime/device.h. Slots are called from any thread at the same time, most of them with
 * Python's lock released. What they give out is the client's until it destroys it; what they point to in their results
 * lives as long as the object that was asked. Getters can't fail: the client aborts the process where one does. So
 * whatever can go wrong goes wrong where objects are made.
 *
 * Owners: a client is kept by its buffers and executables, so that these may be destroyed after it. A buffer has a
 * block, which is memory with counts of its own: of those who need the bytes (users), and of those who only know the
 * block (lives). A run holds both for its arguments; that is how a deleted buffer's memory stays until running work and
 * external references are done, and how a donated one is known to be nobody else's. */
#ifndef XLAC_PJRT_PJRT_H
#define XLAC_PJRT_PJRT_H

#include <pthread.h>
#include <stdatomic.h>

#include "../runtime/device.h"
#include "abi.h"

/* --- errors: error.c --- */

/* A new error of the client's; there is always one to give, for want of memory a constant one. */
PJRT_Error *pjrt_fail(PJRT_Error_Code code, const char *format, ...) BASE_PRINTF(2, 3);
/* With a text of any length. */
PJRT_Error *pjrt_fail_with(PJRT_Error_Code code, const char *text);
/* What an error of the library's is to the client. */
PJRT_Error *pjrt_error_of(const xlac_error *err);
PJRT_Error *pjrt_out_of_memory(const char *what);
/* The other way round, for events: a code and a text of the client's. */
void pjrt_error_to(xlac_error *out, PJRT_Error_Code code, const char *message, size_t n);

#define PJRT_TRY(expr)                           \
  do {                                           \
    PJRT_Error *pjrt_error_ = (expr);            \
    if (pjrt_error_ != NULL) return pjrt_error_; \
  } while (0)

/* FNV-1a of a text, after what was hashed before it: at first PJRT_HASH_START. */
#define PJRT_HASH_START 0xcbf29ce484222325u
static inline uint64_t pjrt_hash(uint64_t hash, const char *text) {
  for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
  return hash;
}

static inline void *pjrt_alloc(size_t size) {
  void *p = base_malloc(base_alloc_libc, size);
  return p ? memset(p, 0, size) : NULL;
}
static inline void pjrt_free(void *p) {
  base_free(base_alloc_libc, p);
}
/* Terminated; NULL when out of memory. */
char *pjrt_copy_text(const char *s, size_t n);

/* --- events: event.c --- */

/* An event of the client's for what `e` stands for, which is retained; NULL: for what is over. NULL when out of memory.
 */
PJRT_Event *pjrt_event_make(rt_event *e);

/* --- queues: queue.c --- */

/* Work in order. Whoever enqueues holds the lock, so that a piece and what it waits for stay together. */
typedef struct pjrt_queue {
  rt_queue *queue;
  pthread_mutex_t lock;
  _Atomic int64_t expected; /* nanoseconds of what is enqueued and not over */
} pjrt_queue;

/* A piece of work with what it needs: `run` on the queue's thread once all of `waits` are ready, then, in any case,
 * `drop` on some thread, where the error of an event or of run has reached `done`. */
typedef struct pjrt_job {
  int (*run)(void *ctx, xlac_error *err);
  void (*drop)(void *ctx, const xlac_error *why);
  void *ctx;
  int64_t expected; /* nanoseconds; PJRT_UNKNOWN: nobody knows, or it may run on the queue's thread alone */
} pjrt_job;
#define PJRT_UNKNOWN INT64_C(1000000000)
XLAC_MUST_USE int pjrt_queue_init(pjrt_queue *q, rt_device *d, xlac_error *err);
void pjrt_queue_free(pjrt_queue *q);
/* In three steps, so that no lock is held where `drop` may be called: NULL when out of memory; by the holder of the
 * queue's lock; and by the one who has let go of it, whatever came of the second. What the events are waited for: those
 * that are NULL are ready. */
typedef struct pjrt_piece pjrt_piece;
pjrt_piece *pjrt_piece_make(const pjrt_job *job);
XLAC_MUST_USE int pjrt_piece_push(pjrt_piece *p, pjrt_queue *q, size_t n, rt_event *const *waits, xlac_error *err);
void pjrt_piece_watch(pjrt_piece *p);
/* All three, after one event. Takes the job where it succeeds. */
XLAC_MUST_USE int pjrt_enqueue(pjrt_queue *q, const pjrt_job *job, rt_event *wait, xlac_error *err);
/* For who is about to wait for `until`, which may be NULL: what a queue has is done on this thread, where it is short
 * and has not been begun. Two changes of threads take as long as a short program does. */
void pjrt_help(const pjrt_queue *q, rt_event *until);
/* Whether this thread is at work on a queue, and may not wait for another piece of it. */
bool pjrt_on_queue(void);
/* Says so of a thread that works for a piece of work, while it calls what may run programs; gives what was so before.
 */
bool pjrt_set_on_queue(bool on);

/* --- devices and memories: client.c, device.c --- */

enum { PJRT_MEMORY_KINDS = 3 }; /* "device", "pinned_host", "unpinned_host" */
enum { PJRT_DEVICES_MAX = 1024 };

struct PJRT_Memory {
  const void *vtable; /* NULL: nobody may hang data on it */
  PJRT_Device *device;
  int id;
  uint32_t kind;
  char text[64];
};

struct PJRT_DeviceDescription {
  int id, process;
  const char *kind; /* the client's or the topology's */
  char text[64];
};

struct PJRT_Device {
  PJRT_DeviceDescription description;
  PJRT_Client *client;
  PJRT_Memory memories[PJRT_MEMORY_KINDS];
  PJRT_Memory *memory_list[PJRT_MEMORY_KINDS];
  pjrt_queue work;
  _Atomic int64_t bytes, peak_bytes, allocations, largest;
};

typedef struct pjrt_world pjrt_world;

/* Of what a client is made, from the options of its creation; unknown ones are left alone. */
typedef struct pjrt_client_options {
  char platform[16]; /* decides what JAX lowers */
  char blas[1024];   /* path of an OpenBLAS; "": the usual names */
  uint32_t devices;
  uint32_t threads; /* of one program; 0: as many as there are CPUs to use */
  bool synchronous; /* runs are over when Execute returns */
  bool copy_host;   /* arrays of the host's are always copied */
  /* Calls a Python object with arrays: see callback.c. 0: nobody can. */
  int64_t python_call;
  /* Takes a program's custom_partitioning apart: see compile.c. 0: nobody can. */
  int64_t python_partition;
  uint32_t node, nodes; /* which process this is, of how many; 0 of 1 but with jax.distributed */
  /* Address of a PJRT_Xlac_Client_Slot, for as long as there are clients: see leave.c. 0: there is none. */
  int64_t slot;
} pjrt_client_options;

struct PJRT_TopologyDescription {
  pjrt_client_options options;
  uint32_t n;
  PJRT_DeviceDescription **list; /* borrowed from the client's devices where it has one */
  PJRT_DeviceDescription *own;   /* of a topology without a client */
  char *serialized;
};

struct PJRT_Client {
  atomic_uint refs;
  pjrt_client_options options;
  xlac_runtime *runtime;
  uint64_t memory_bytes;
  atomic_bool leaving; /* nothing is enqueued any more: runs are over when Execute returns */
  pjrt_queue copies;   /* between the host and buffers that are not ready */
  pjrt_queue groups;   /* programs of several devices: one after another, whichever devices they are for */
  bool has_copies, has_groups;
  pjrt_world *world;             /* the other processes; NULL: there is one */
  uint32_t n_devices;            /* of all processes, one process after another */
  uint32_t from, here;           /* of this one: only they have queues */
  uint32_t n_memories, n_queues; /* that were made */
  PJRT_Device *devices;
  PJRT_Device **device_list;
  PJRT_Memory **memory_list;
  PJRT_TopologyDescription topology;
};

PJRT_Client *pjrt_client_retain(PJRT_Client *c);
void pjrt_client_release(PJRT_Client *c);
/* Reads the options that are known; the text of a wrong one is the error. client.c */
PJRT_Error *pjrt_read_client_options(pjrt_client_options *out, const PJRT_NamedValue *values, size_t n);
const char *pjrt_platform_version(void);
/* Waits for what is enqueued, and for the owners of its memory; false where that takes longer. leave.c */
bool pjrt_client_drain(PJRT_Client *c, int64_t milliseconds);
/* Into the slot of its options, with a reference; and out of it, where it is still there. */
void pjrt_client_enter_slot(PJRT_Client *c);
void pjrt_client_leave_slot(PJRT_Client *c);
/* "device"; the number of a kind, or PJRT_MEMORY_KINDS. device.c */
const char *pjrt_memory_kind_name(uint32_t kind);
uint32_t pjrt_memory_kind(const char *name, size_t n);
void pjrt_describe_device(PJRT_DeviceDescription *out, const pjrt_client_options *options, uint32_t id,
                          uint32_t process);
PJRT_Error *pjrt_devices_create(PJRT_Client *c);
void pjrt_devices_destroy(PJRT_Client *c);
static inline bool pjrt_is_here(const PJRT_Device *d) {
  return d->description.process == (int)d->client->options.node;
}
static inline PJRT_Memory *pjrt_default_memory(PJRT_Device *d) {
  return &d->memories[0];
}
/* --- other processes: world.c --- */

/* Of what the client's table says of the others: how many devices each has. Blocks until all have said so. */
PJRT_Error *pjrt_world_join(pjrt_world **out, const pjrt_client_options *o, const PJRT_Client_Create_Args *args);
void pjrt_world_free(pjrt_world *w); /* NULL is fine */
uint32_t pjrt_world_devices(const pjrt_world *w, uint32_t process);
/* A program of devices of several processes, by device, becomes that of these processes, which have come to the same
 * place of theirs, or will. */
PJRT_Error *pjrt_world_share(pjrt_world *w, xlac_executable *exe, const char *label, const uint32_t *processes,
                             uint32_t n);

/* Topologies: topology.c */
PJRT_Error *pjrt_topology_init(PJRT_TopologyDescription *t, const pjrt_client_options *options, PJRT_Client *c);
void pjrt_topology_free(PJRT_TopologyDescription *t);

/* --- blocks: block.c --- */

typedef struct pjrt_block {
  atomic_uint lives, users;
  const pjrt_queue *queue; /* NULL: nobody counts; of a block that others know it stays what it is */
  atomic_uint queued;      /* of the users, runs on that queue; they are over in its order */
  atomic_bool readonly;    /* nobody may write to it, whoever else uses it */
  void *data;              /* NULL before it has memory, and once nobody needs it */
  size_t bytes;
  void (*release)(void *ctx); /* of the memory; NULL: nobody needs to know */
  void *ctx;
  PJRT_Device *device; /* where its bytes are counted; NULL: not ours */
} pjrt_block;

/* A block without memory, with one user who also keeps it. NULL when out of memory. */
pjrt_block *pjrt_block_create(void);
/* Gives it memory of the device's. */
XLAC_MUST_USE int pjrt_block_allocate(pjrt_block *b, PJRT_Device *d, size_t bytes, xlac_error *err);
/* Another user, who also keeps it; false where the memory is gone. */
bool pjrt_block_use(pjrt_block *b);
/* A user leaves; he no longer keeps it either. NULL is fine. */
void pjrt_block_leave(pjrt_block *b);
/* Keeps the block, not its memory. */
pjrt_block *pjrt_block_keep(pjrt_block *b);
void pjrt_block_forget(pjrt_block *b);
/* Moves the memory to a block that has none. Whoever still uses the old one knows the address, and is done before the
 * new one's first user is. */
void pjrt_block_move(pjrt_block *to, pjrt_block *from);

/* --- shapes and buffers: buffer.c --- */

typedef struct pjrt_shape {
  uint32_t dtype; /* of base/dtype.h; 0: a token */
  uint32_t rank;
  const int64_t *dims;
  const int64_t *minor_to_major; /* the layout; NULL: row-major */
} pjrt_shape;

struct PJRT_Buffer {
  PJRT_Memory *memory;
  pjrt_block *block; /* it knows it as long as it lives, and uses it until it is deleted */
  rt_event *ready;   /* NULL: it is ready */
  atomic_bool deleted;
  atomic_uint external; /* references: users of the block */
  uint32_t dtype, rank;
  size_t bytes;
  bool laid_out;           /* not row-major */
  int64_t *minor_to_major; /* the layout */
  int64_t dims[];          /* then minor_to_major */
};

/* The number of base/dtype.h; BASE_DTYPE_INVALID for a token and for no type. */
base_dtype pjrt_dtype(PJRT_Buffer_Type type);
PJRT_Buffer_Type pjrt_type(uint32_t dtype); /* 0: TOKEN */
/* Bytes of a dense array of that shape. INVALID_ARGUMENT: it is not a shape, or too large. */
PJRT_Error *pjrt_shape_bytes(const pjrt_shape *s, size_t *bytes);
/* The shape of arguments: checked. */
PJRT_Error *pjrt_read_shape(pjrt_shape *out, PJRT_Buffer_Type type, const int64_t *dims, size_t n);
/* "f32[2,3]", cut where it is long. */
void pjrt_describe_shape(const pjrt_shape *s, char text[96]);
/* A buffer on a block whose user it becomes; `ready` is retained, and may be NULL. NULL when out of memory: the block
 * is still the caller's. */
PJRT_Buffer *pjrt_buffer_make(PJRT_Memory *m, const pjrt_shape *s, size_t bytes, pjrt_block *block, rt_event *ready);
/* Its own, with the layout. */
static inline pjrt_shape pjrt_buffer_shape(const PJRT_Buffer *b) {
  return (pjrt_shape){b->dtype, b->rank, b->dims, b->laid_out ? b->minor_to_major : NULL};
}
/* Uses its block: INVALID_ARGUMENT where it was deleted or donated. */
PJRT_Error *pjrt_buffer_use(PJRT_Buffer *b, pjrt_block **out);
/* Takes the buffer's own use of its block, as deleting does; false where somebody else has. */
bool pjrt_buffer_take(PJRT_Buffer *b);
PJRT_Error *pjrt_buffer_deleted_error(const PJRT_Buffer *b);
/* Where it is to go, by a memory or a device, of which one is given. */
PJRT_Error *pjrt_place(PJRT_Memory **out, PJRT_Memory *memory, PJRT_Device *device);

/* --- layouts: layout.c --- */

bool pjrt_layout_is_row_major(const int64_t *minor_to_major, uint32_t rank);
/* In bytes, of a dense array. */
void pjrt_layout_strides(const pjrt_shape *s, int64_t *strides);
/* Copies an array with strides to dense memory in that layout, or row-major (NULL). */
XLAC_MUST_USE int pjrt_layout_copy(xlac_runtime *rt, const pjrt_shape *s, const int64_t *strides, const void *from,
                                   const int64_t *minor_to_major, void *to, xlac_error *err);
/* What the client asks for, as a permutation; NULL is row-major. UNIMPLEMENTED: it has tiles, or isn't dense. */
PJRT_Error *pjrt_layout_read(const PJRT_Buffer_MemoryLayout *layout, const pjrt_shape *s, int64_t *minor_to_major);

/* --- executables: compile.c, executable.c --- */

typedef struct pjrt_compile_options {
  uint32_t n_replicas, n_partitions;
  uint32_t n_devices; /* of the assignment; 0: none was given */
  int32_t *devices;
  bool fast; /* numerics */
  int64_t threads;
  bool no_fusion, no_passes;
} pjrt_compile_options;

/* Reads a CompileOptionsProto. Free it with pjrt_compile_options_free, also after an error. options.c */
PJRT_Error *pjrt_read_compile_options(pjrt_compile_options *out, const char *bytes, size_t n);
void pjrt_compile_options_free(pjrt_compile_options *o);

typedef struct pjrt_result {
  pjrt_shape shape;
  size_t bytes;
  uint32_t memory_kind;
  uint32_t donor; /* argument whose memory it takes; UINT32_MAX: none */
  bool taken;     /* by what the program says of its own aliases */
} pjrt_result;

typedef struct pjrt_parameter {
  pjrt_shape shape;
  size_t bytes;
  uint32_t memory_kind;
  bool donated; /* the program says that it may be donated */
} pjrt_parameter;

enum { EXECUTABLE_COSTS = 3 };

struct PJRT_Executable {
  atomic_uint refs;
  PJRT_Client *client; /* a reference; NULL: compiled for a topology */
  xlac_executable *exe;
  xlac_executable_info info;
  const char *name; /* of the module */
  char *options;    /* as given */
  size_t options_size;
  char *source; /* of a group, and where placed: the program as given, by which it is saved; else NULL */
  size_t source_size;
  uint32_t n_replicas, n_partitions, n_devices;
  int32_t *devices; /* ids, as the assignment has them */
  bool shared;      /* with other processes: its network is joined, under the lock */
  uint32_t n_parameters, n_results;
  pjrt_parameter *parameters;
  pjrt_result *results;
  bool group;           /* each device has its shards; else there is one device */
  bool gives;           /* some parameter is donated */
  bool values;          /* it runs on values: the interpreter runs it whole */
  bool calls;           /* it has custom calls that are the client's: runs need a registry */
  bool placed;          /* it names layouts or kinds of memory, which only its source tells */
  _Atomic int64_t took; /* nanoseconds of the last run; 0: it has not run */
  bool inline_;         /* so short that a queue would take longer */
  pthread_mutex_t lock;
  char *optimized; /* made when it is first asked for, under the lock */
  size_t optimized_size;
  const char **kinds; /* results', then parameters' */
  size_t *kind_sizes;
  int64_t *dims; /* of all results */
  size_t *ranks;
  PJRT_Buffer_Type *types;
  void **layouts;         /* the same, under the lock */
  const char **shardings; /* of results, then of parameters: OpSharding; static where there are no bytes: whole */
  size_t *sharding_sizes;
  char fingerprint[40];
  PJRT_NamedValue costs[EXECUTABLE_COSTS]; /* under the lock, made when they are first asked for */
  bool has_costs;
};

struct PJRT_LoadedExecutable {
  PJRT_Executable *executable; /* a reference */
  PJRT_Client *client;         /* a reference */
  uint32_t n_devices;          /* of this process, as what follows */
  PJRT_Device **devices;
  PJRT_LogicalDeviceIds *logical;
  atomic_bool deleted;
};

PJRT_Executable *pjrt_executable_retain(PJRT_Executable *e);
void pjrt_executable_release(PJRT_Executable *e);
/* Describes the compiled program; takes `exe`, also where it fails, and copies the options. `source` is what it was
 * compiled from, which tells where arguments and results lie; NULL: row-major in the devices' memory. executable.c */
PJRT_Error *pjrt_executable_make(PJRT_Executable **out, PJRT_Client *c, xlac_executable *exe, xlac_module *source,
                                 const pjrt_compile_options *o, const char *options, size_t options_size);
/* Where the program says that its arguments and results lie: layouts and kinds of memory. layout.c */
PJRT_Error *pjrt_executable_place(PJRT_Executable *e, xlac_module *m);
/* On the devices of its assignment; takes the caller's reference, also where it fails. compile.c */
PJRT_Error *pjrt_executable_load(PJRT_LoadedExecutable **out, PJRT_Client *c, PJRT_Executable *e);

/* How a leaf of a group's arguments or results is cut, as an OpSharding, the caller's to free; *text stays, and *n is
 * 0, where each device has all of it. sharding.c */
PJRT_Error *pjrt_sharding_make(const xlac_executable *exe, bool result, uint32_t leaf, const char **text, size_t *n);

/* --- profiles: tracing.c --- */

/* 0: nobody records, and what is given it is noted by nobody. */
int64_t pjrt_trace_now(void);
/* A run on these devices has taken from `start` until now. */
void pjrt_trace_run(const PJRT_Executable *e, PJRT_Device *const *devices, uint32_t n, int64_t start);
/* xlac_interpret_options.step, with the call that has the step: on which device, and since when. */
typedef struct pjrt_traced {
  const PJRT_Device *device;
  int64_t start;
} pjrt_traced;
void pjrt_trace_step(void *ctx, const char *op, const char *op_name, int64_t start, int64_t ns);
void pjrt_trace_compilation(const char *name, int64_t start);

/* --- custom calls that are the client's: ffi.c, callback.c, xla_ffi.c --- */

/* What callers attach to a run: FFI user data. */
enum { PJRT_USER_DATA_MAX = 16 };
struct PJRT_ExecuteContext {
  pthread_mutex_t lock;
  uint32_t n;
  struct {
    int64_t type_id;
    void *data;
  } data[PJRT_USER_DATA_MAX];
};

/* The Python callables of one run. */
typedef struct pjrt_callbacks {
  int64_t call; /* as pjrt_client_options.python_call */
  uint32_t n;
  void **callables;             /* PyObject *, which the client keeps while the run goes on */
  struct pjrt_meeting *meeting; /* of the devices of a group; NULL: there is one device */
  _Atomic(char *) told;         /* the whole of the first error, with Python's traceback; NULL: none */
} pjrt_callbacks;

/* Calls that each device of a group comes to, and one makes for all: meeting.c. One a run; calls on any thread. */
typedef struct pjrt_meeting pjrt_meeting;
enum { MEETING_ERROR = 8192 };
struct xlac_ffi_frame;
/* Fills error where it returns nonzero: what goes into an event, and behind its end the whole text. */
typedef int pjrt_meeting_fn(struct xlac_ffi_frame *frame, char error[MEETING_ERROR]);
pjrt_meeting *pjrt_meeting_create(uint32_t n_devices); /* NULL when out of memory */
void pjrt_meeting_destroy(pjrt_meeting *m);            /* NULL is fine */
/* What a custom call returns: on all devices the same, with the same results. */
int pjrt_meeting_call(pjrt_meeting *m, struct xlac_ffi_frame *frame, pjrt_meeting_fn *call);

/* Copies what the context says of callables; NULL: none. */
PJRT_Error *pjrt_callbacks_read(pjrt_callbacks *out, const PJRT_Client *c, uint32_t n_devices,
                                PJRT_ExecuteContext *context);
void pjrt_callbacks_free(pjrt_callbacks *b);
/* Handlers that were made for XLA. xla_ffi.c */
bool pjrt_ffi_has_handler(const char *target);
XLAC_MUST_USE int pjrt_ffi_add_handlers(xlac_registry *r, xlac_error *err);
/* Calls that the program has on one device, and that all of a group's come to, get a name of their own: before the
 * program is partitioned. */
XLAC_MUST_USE int pjrt_mark_single_calls(xlac_module *m, xlac_error *err);
/* Tells jax.debug.inspect_array_sharding's callbacks how arrays are cut, and takes their calls out. In a saved program
 * nobody is told: its functions were another process's. inspect.c */
XLAC_MUST_USE int pjrt_inspect_shardings(xlac_module *m, bool saved, xlac_error *err);
/* Whether the module calls what only the client knows: a run then needs a registry. UNIMPLEMENTED: it calls what nobody
 * knows. */
PJRT_Error *pjrt_check_calls(xlac_module *m, bool *needs_registry);
/* A registry for one run: the callables, which must outlive it, and all handlers that were registered. */
XLAC_MUST_USE int pjrt_registry_make(xlac_registry **out, pjrt_callbacks *callbacks, xlac_error *err);

#endif
