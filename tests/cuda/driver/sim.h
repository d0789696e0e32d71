/* A CUDA driver that simulates: the driver API's and NVRTC's entry points on host memory, so that what is written for
 * NVIDIA's GPUs is tested on any machine, and with checks that hardware does not make. One process-wide state, `sim`,
 * under one lock; what is executed (kernels, copies, fills) runs under another, one piece at a time: races are found by
 * clocks (clocks.c, shadow.c), not by luck.
 *
 *   api.c devices.c memory.c copies.c streams.c modules.c graphs.c compile.c   the entry points
 *   blas.c      cuBLASLt's entry points
 *   nccl.c      NCCL's entry points
 *   clocks.c    which piece of work is ordered before which
 *   shadow.c    which thread of which piece of work read and wrote each cell of memory last
 *   block.c     the threads of a block, as coroutines; barriers and warps
 *   ptx.c       instructions of inline PTX: tensor cores
 *   protect.c   the host does not reach device memory
 *   checks.c    what compiled kernels call before they touch memory
 *   cuda_host.cuh what CUDA C++ means to the host's compiler */
#ifndef CUDA_DRIVER_SIM_H
#define CUDA_DRIVER_SIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* CUresult, of the public documentation */
enum {
  LEFT_OUT = -1, /* none: the call is to do nothing */
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  NOT_FOUND = 500,
  INVALID_HANDLE = 400,
  NOT_READY = 600,
  ILLEGAL_ADDRESS = 700,
  LAUNCH_OUT_OF_RESOURCES = 701,
  LAUNCH_TIMEOUT = 702,
  MISALIGNED_ADDRESS = 716,
  LAUNCH_FAILED = 719,
  NOT_SUPPORTED = 801,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901,
  CAPTURE_MERGE = 902,
  CAPTURE_UNMATCHED = 903,
  CAPTURE_UNJOINED = 904,
  CAPTURE_ISOLATION = 905,
  GRAPH_UPDATE_FAILURE = 910
};

typedef uint64_t address;

/* ---- clocks.c: order ---- */

/* A piece of work that touches memory: a launch, a copy, an allocation. Never freed while marks may name it. */
typedef struct sim_op {
  uint32_t id;                   /* position in the table of all; 0: none */
  uint32_t lane, tick;           /* the tick-th of its lane; lane 0 is the host, another a stream */
  uint32_t floor;                /* all ops with smaller ids are ordered before this one */
  uint32_t n_seen;               /* seen[l]: the last tick of lane l that is ordered before this */
  const uint32_t *seen;          /* shared between ops of a lane */
  const struct sim_order *order; /* of a graph's launch: which node comes after which; or NULL */
  uint32_t run, node;            /* the graph's launch, its node */
  uint32_t known;                /* an op that is known to be ordered before: what was asked last */
  const char *what, *name;       /* "kernel", "add_3"; interned */
  int stream;
} sim_op;

/* The nodes of a graph: bit i of row j is set where i is ordered before j. Kept for as long as the process. */
typedef struct sim_order {
  uint32_t n, words;
  uint64_t bits[];
} sim_order;

/* A point in time: everything up to (lane, tick), and what that had seen. */
typedef struct sim_point {
  uint32_t lane, tick, n_seen;
  const uint32_t *seen;
} sim_point;

uint32_t clock_new_lane(void);
void clock_free_lane(uint32_t lane);
/* A new op at the end of a lane, after all that the host has done so far. `stream` is for messages. */
sim_op *clock_op(uint32_t lane, int stream, const char *what, const char *name);
/* A node of a graph's launch, which is `launch`. */
sim_op *clock_node(const sim_op *launch, const sim_order *order, uint32_t node, const char *what, const char *name);
/* What a node of a graph's launch runs by its condition: before what it runs later. */
sim_op *clock_within(const sim_op *node, const char *what, const char *name);
sim_point clock_now(uint32_t lane);
/* What comes on the lane from here on is after `point`. */
void clock_join(uint32_t lane, sim_point point);
sim_op *clock_find(uint32_t id);
bool clock_before(uint32_t id, sim_op *then);
const char *clock_text(uint32_t id, char *out, size_t bytes);
const char *intern(const char *text);

/* ---- memory ---- */

typedef enum { MEMORY_DEVICE, MEMORY_HOST, MEMORY_SHARED } memory_kind;

typedef struct allocation {
  address at;
  size_t bytes;
  memory_kind kind;
  int device;
  bool freed, owned;   /* owned: mapped by us, unmapped by us */
  uint32_t made, gone; /* the ops that allocated and freed it; 0: before and after everything */
  void *mapping;
  size_t mapped;
  struct sim_pool *pool;
  struct allocation *next, *previous; /* of all that live */
  uint64_t number;
  uint32_t dying; /* a stream-ordered free is enqueued */
} allocation;

typedef struct sim_mark {
  uint32_t op, block, epoch;
  uint16_t thread; /* its number in the block, and flags */
  uint16_t warp_epoch;
} sim_mark;
enum { MARK_THREAD = 0x3ff, MARK_MANY = 0x400, MARK_WARPS = 0x800, MARK_BLOCKS = 0x1000, MARK_ATOMIC = 0x2000 };
typedef struct sim_cell {
  sim_mark write, read;
} sim_cell;

/* What is known of 4096 bytes. Made when an allocation is; cells when they are first touched. */
typedef struct sim_page {
  allocation *owner;
  sim_cell *cells;
  uint8_t shift; /* a cell is of 1 << shift bytes: 4, until something smaller is touched */
  bool gone;     /* given back to the host: as if there were no page */
} sim_page;

typedef enum { ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC } access_kind;

/* Who touches memory: one at a time, under sim.executing. */
typedef struct toucher {
  sim_op *op;
  sim_mark mark;
  address stack_low, stack_high; /* of the running thread: its own */
  struct sim_kernel *kernel;     /* NULL: a copy or the like */
  const uint64_t *acquired;      /* blocks whose work is ordered before this by atomics; NULL: none */
  uint32_t line;
  uint64_t accesses, most_accesses;
} toucher;
extern toucher touch;

void shadow_add(allocation *a);
void shadow_remove(allocation *a);
/* The addresses are the host's again: nothing there was ever the device's. */
void shadow_forget(address at, size_t bytes);
sim_page *shadow_page(address at);
allocation *shadow_find(address at);
/* 0, or the error, which is reported. One access of a kernel's thread, at most 16 bytes. */
int shadow_access(address at, uint32_t bytes, access_kind kind);
/* The same of a range, by a copy or a fill, or by the free of an allocation. */
int shadow_range(address at, size_t bytes, access_kind kind);

/* ---- protect.c ---- */
void protect_begin(void);
/* Of a new allocation, filled. */
void protect_new(const allocation *a);
/* Around what is executed, by its thread, under sim.executing. */
void protect_enter(void);
void protect_leave(void);

/* ---- state ---- */

typedef struct sim_device {
  int ordinal, retained;
  int sticky; /* the error that broke its context */
  size_t total, used;
  struct sim_stream *legacy, *per_thread;
} sim_device;

enum { DEVICES_MAX = 16 };
typedef struct sim_state {
  pthread_mutex_t lock;      /* all of this */
  pthread_cond_t changed;    /* something was finished, or a queue has got work */
  pthread_mutex_t executing; /* touch, shadow memory; taken without `lock` held, or before it */
  bool begun;
  int n_devices;
  int capability; /* 10 * major + minor */
  sim_device devices[DEVICES_MAX];
  struct sim_stream *streams;
  allocation *allocations;
  uint64_t n_allocations;
  uint64_t n_streams, n_events, n_modules, n_graphs, n_pools, n_cliques; /* that live */
  int next_stream;
  uint64_t seed;      /* 0: blocks and threads in order */
  bool uninitialised; /* reads of global memory that nothing wrote are errors */
} sim_state;
extern sim_state sim;

/* ---- api.c: what every entry point begins with; findings ---- */

/* 0, or the result to return at once: the n-th call that shall fail. */
int api_enter(const char *name);
/* Also: the library is begun, a context is current, its device works. The device in *out, if wanted. */
int api_enter_device(const char *name, sim_device **out);
#define ENTER(name)                                                         \
  do {                                                                      \
    int result_ = api_enter(#name);                                         \
    if (result_ != SUCCESS) return result_ == LEFT_OUT ? SUCCESS : result_; \
  } while (0)
#define ENTER_DEVICE(name, device)                                          \
  do {                                                                      \
    int result_ = api_enter_device(#name, device);                          \
    if (result_ != SUCCESS) return result_ == LEFT_OUT ? SUCCESS : result_; \
  } while (0)
/* A finding: logged, kept, and the text of the error until the next. Returns `error`. */
int report(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
long setting(const char *name, long otherwise);
sim_device *current_device(void);
void device_uuid(unsigned char uuid[16], int device); /* of all machines' GPUs */

/* ---- streams.c ---- */

typedef struct sim_work {
  struct sim_work *next;
  int (*execute)(
      struct sim_work *work); /* with sim.executing held, not sim.lock; NULL: an event, a wait or a call of the host */
  void (*release)(struct sim_work *work); /* or NULL; the memory of the work itself is freed after it */
  sim_op *op;
  uint8_t kind;
  struct sim_event *event;
  uint64_t generation;
  void (*function)(void *);
  void *context;
} sim_work;
enum { WORK_EXECUTE, WORK_RECORD, WORK_WAIT, WORK_CALL, WORK_MEET, WORK_END };

typedef struct sim_event {
  uint64_t magic;
  uint64_t recorded, done; /* generations */
  sim_point point;         /* of the last record */
  unsigned flags;
  uint64_t nanoseconds;
  int references;
  struct sim_graph *capture; /* recorded in a stream that captures: the nodes it stands for */
  uint32_t capture_stream, n_capture_after;
  uint32_t *capture_after;
} sim_event;

typedef struct sim_stream {
  uint64_t magic;
  int number;
  sim_device *device;
  unsigned flags;
  uint32_t lane;
  pthread_t thread;
  sim_work *first, **last;
  uint64_t enqueued, finished;
  struct sim_stream *next;
  struct sim_graph *capture; /* what is captured, or NULL */
  bool capture_origin;
  int capture_error;
  uint32_t *after, n_after; /* the nodes that the next one captured comes after */
} sim_stream;

/* The stream of a handle (0: the legacy stream, 1 and 2 the names of the two that always are), or NULL. sim.lock held.
 */
sim_stream *stream_find(void *handle);
/* Puts work at a stream's end, or into the graph it captures; owns it. `what` and `name` are its op's. sim.lock held.
 */
int stream_enqueue(sim_stream *s, sim_work *work, const char *what, const char *name);
/* The parts of it, for what is not a single piece of work. The op of the work; it is appended even while the stream
 * captures. */
sim_op *stream_add(sim_stream *s, sim_work *work, const char *what, const char *name);
void stream_record_event(sim_stream *s, sim_event *e);
void stream_wait_event(sim_stream *s, sim_event *e);
/* Waits until all that is enqueued is done; the host is then after it. sim.lock held, given up meanwhile. */
int stream_wait(sim_stream *s);
void streams_wait_all(sim_device *d);
void streams_end(sim_device *d);

/* ---- block.c, modules.c ---- */

typedef struct sim_kernel {
  const char *name;
  void (*call)(void **parameters);
  uint32_t n_parameters;
  const uint32_t *sizes;
  uint32_t most_threads; /* __launch_bounds__; 0: not said */
  uint32_t static_shared, dynamic_most;
  struct sim_module *module;
  struct sim_kernel *next;
} sim_kernel;

typedef struct sim_shared { /* a variable in shared memory */
  address at;
  size_t bytes;
  char name[64];
} sim_shared;

typedef struct sim_module {
  uint64_t magic;
  void *library;
  sim_device *device;
  sim_kernel *kernels;
  address low, high; /* its image */
  sim_shared *shared;
  uint32_t n_shared;
  allocation *section;
  struct sim_module *next;
} sim_module;

typedef struct sim_launch {
  sim_work work;
  sim_kernel *kernel;
  uint32_t grid[3], block[3], shared_bytes;
  void **parameters; /* n, into bytes behind them */
} sim_launch;

int block_run_grid(sim_launch *launch);
/* A launch as a piece of work that is the caller's; what is wrong with it is reported. */
int launch_make(sim_kernel *k, const unsigned grid[3], const unsigned block[3], unsigned shared, void **parameters,
                sim_work **out);
/* A copy within device memory, likewise. copies.c */
sim_work *copy_make(address to, address from, size_t bytes);
/* Ends the running kernel with an error: does not return. */
_Noreturn void block_abort(int error);
bool module_holds(const sim_module *m, address at);
const sim_shared *module_shared(const sim_module *m, address at);
/* Where what is compiled is kept; made. compile.c */
void cache_folder(char *out, size_t bytes);
/* ", thread (x, y, z) of block (x, y, z)," of a mark of the running kernel; "" where none runs. */
int sim_mark_thread_text(const sim_mark *mark, char *out, size_t bytes);

/* ---- ptx.c ---- */
/* An asm statement of a kernel's: its text, and where its n operands lie: of 32 bits, addresses of 64. */
enum { PTX_OPERANDS = 16 };
typedef struct sim_instruction {
  const char *text;
  void *operands[PTX_OPERANDS];
  uint32_t n;
} sim_instruction;
/* A product of matrices by a warp's 32 lanes; nonzero: it is not one that is simulated. */
int ptx_mma(const sim_instruction *const *lanes);
/* Rows of matrices from shared memory, likewise; and where this lane reads one of 16 bytes, or 0. */
int ptx_ldmatrix(const sim_instruction *const *lanes);
address ptx_row(const sim_instruction *x, uint32_t lane);
/* What a lane does by itself; false: it is not such an instruction. */
bool ptx_alone(const sim_instruction *x);

/* ---- nccl.c ---- */
/* A stream has come to a rank's part of NCCL's operations. sim.lock held, given up meanwhile. */
void nccl_meet(sim_stream *s, sim_work *work);
/* Whether this thread has begun a group of NCCL's that it has not ended, which is a finding of whoever waits. */
bool nccl_is_open(const char *call);

/* ---- graphs.c ---- */
int graph_capture(sim_stream *s, sim_work *work, const char *what, const char *name);
int graph_capture_record(sim_stream *s, sim_event *e);
int graph_capture_wait(sim_stream *s, sim_event *e);

#endif
