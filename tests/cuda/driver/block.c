/* Blocks, one after the other; the threads of a block are coroutines that run until they wait: for the block at a
 * barrier, or for lanes of their warp at a shuffle, a vote or a __syncwarp. A thread that never waits leaves its stack
 * to the next, so that kernels without barriers cost a switch per thread. With a seed, blocks and threads come in
 * another order. */
#include "sim.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 1024, STACK_BYTES = 256 << 10, GUARD = 4096 };
enum { THREAD_READY, THREAD_AT_BARRIER, THREAD_IN_WARP, THREAD_DONE };

typedef struct fiber {
  char *stack; /* STACK_BYTES above a guard */
  void *at;    /* its stack pointer where it waits */
} fiber;

typedef struct thread {
  uint8_t state;
  fiber *fiber; /* NULL: not begun, or done */
  uint32_t line, mask, kind, source;
  uint64_t value;
} thread;

/* What kernels see as threadIdx and so on: written at each switch. */
EXPORT uint32_t cuda_thread_idx[3], cuda_block_idx[3], cuda_block_dim[3], cuda_grid_dim[3];
EXPORT _Alignas(4096) char cuda_dynamic_shared[(232448 + 4095) / 4096 * 4096 + 4096];

static struct {
  void *scheduler; /* its stack pointer while a thread runs */
  fiber fibers[THREADS];
  fiber *spare[THREADS];
  uint32_t n_fibers, n_spare;
  thread threads[THREADS];
  uint32_t n, n_done, n_waiting, now;
  uint32_t warp_epochs[THREADS / 32];
  sim_launch *launch;
  allocation *dynamic;
  int error;
  uint64_t random;
  bool fenced;        /* a thread of this launch has made a fence: atomics may order blocks */
  uint64_t *acquired; /* by the running block: a bit for each block that is ordered before it */
  uint32_t words;
  struct release {
    address at;
    uint64_t *blocks;
  } *releases; /* what atomics behind fences have told */
  uint32_t n_releases;
  int barrier_result;
} now;

/* ---- switching stacks ---- */

void sim_switch(void **save, void *to);
#if defined(__x86_64__)
__asm__(
    ".text\n.globl sim_switch\n.hidden sim_switch\n.type sim_switch,@function\nsim_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size sim_switch,.-sim_switch\n");
enum { SAVED = 6 };
#elif defined(__aarch64__)
__asm__(
    ".text\n.globl sim_switch\n.hidden sim_switch\n.type sim_switch,@function\nsim_switch:\n"
    "sub sp,sp,#176\nstp x19,x20,[sp,#16]\nstp x21,x22,[sp,#32]\nstp x23,x24,[sp,#48]\nstp x25,x26,[sp,#64]\n"
    "stp x27,x28,[sp,#80]\nstp x29,x30,[sp,#96]\nstp d8,d9,[sp,#112]\nstp d10,d11,[sp,#128]\nstp d12,d13,[sp,#144]\n"
    "stp d14,d15,[sp,#160]\nmov x9,sp\nstr x9,[x0]\nmov sp,x1\n"
    "ldp x19,x20,[sp,#16]\nldp x21,x22,[sp,#32]\nldp x23,x24,[sp,#48]\nldp x25,x26,[sp,#64]\n"
    "ldp x27,x28,[sp,#80]\nldp x29,x30,[sp,#96]\nldp d8,d9,[sp,#112]\nldp d10,d11,[sp,#128]\nldp d12,d13,[sp,#144]\n"
    "ldp d14,d15,[sp,#160]\nadd sp,sp,#176\nret\n"
    ".size sim_switch,.-sim_switch\n");
#else
#error "switching stacks is written for x86-64 and AArch64"
#endif

static void back_to_scheduler(void) {
  sim_switch(&now.threads[now.now].fiber->at, now.scheduler);
}

_Noreturn void block_abort(int error) {
  now.error = error;
  void *lost;
  sim_switch(&lost, now.scheduler);
  abort();
}

static void thread_main(void) {
  for (;;) { /* the stack's next thread begins where the last one ended */
    now.launch->kernel->call(now.launch->parameters);
    now.threads[now.now].state = THREAD_DONE;
    back_to_scheduler();
  }
}

static void prepare_fiber(fiber *f) {
  if (f->stack == NULL) {
    char *m = mmap(NULL, STACK_BYTES + GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED || mprotect(m + GUARD, STACK_BYTES, PROT_READ | PROT_WRITE) != 0) abort();
    f->stack = m + GUARD;
  }
  uintptr_t *top = (uintptr_t *)(f->stack + STACK_BYTES - 64);
#if defined(__x86_64__)
  *--top = 0;
  *--top = (uintptr_t)thread_main;
  for (int i = 0; i < SAVED; i++) *--top = 0;
#else
  top -= 22;
  memset(top, 0, 176);
  top[13] = (uintptr_t)thread_main; /* x30 */
#endif
  f->at = top;
}

static fiber *take_fiber(void) {
  if (now.n_spare > 0) return now.spare[--now.n_spare];
  assert(now.n_fibers < THREADS);
  fiber *f = &now.fibers[now.n_fibers++];
  prepare_fiber(f);
  return f;
}

/* After an error: whatever threads were at is dropped, kernels own nothing. */
static void reset_fibers(void) {
  for (uint32_t i = 0; i < now.n_fibers; i++) {
    prepare_fiber(&now.fibers[i]);
    now.spare[i] = &now.fibers[i];
  }
  now.n_spare = now.n_fibers;
}

/* ---- barriers and warps ---- */

static void name_thread(uint32_t i, char *out, size_t bytes) {
  const uint32_t *b = now.launch->block, *k = cuda_block_idx;
  snprintf(out, bytes, "thread (%u, %u, %u) of block (%u, %u, %u)", i % b[0], i / b[0] % b[1], i / b[0] / b[1], k[0],
           k[1], k[2]);
}

int sim_mark_thread_text(const sim_mark *m, char *out, size_t bytes) {
  out[0] = 0;
  if (touch.kernel == NULL) return 0;
  const uint32_t *b = now.launch->block, *g = now.launch->grid, i = m->thread & MARK_THREAD;
  return snprintf(out, bytes, ", thread (%u, %u, %u) of block (%u, %u, %u),", i % b[0], i / b[0] % b[1],
                  i / b[0] / b[1], m->block % g[0], m->block / g[0] % g[1], m->block / g[0] / g[1]);
}

static void use_thread(uint32_t i) {
  const uint32_t *b = now.launch->block;
  now.now = i;
  cuda_thread_idx[0] = i % b[0];
  cuda_thread_idx[1] = i / b[0] % b[1];
  cuda_thread_idx[2] = i / b[0] / b[1];
  touch.mark.thread = (uint16_t)i;
  touch.mark.warp_epoch = (uint16_t)now.warp_epochs[i / 32];
  touch.stack_low = (address)(uintptr_t)now.threads[i].fiber->stack;
  touch.stack_high = touch.stack_low + STACK_BYTES;
}

static void release_barrier(void) {
  touch.mark.epoch++;
  now.n_waiting = 0;
  uint64_t all = 1, any = 0, count = 0;
  for (uint32_t i = 0; i < now.n; i++) {
    thread *t = &now.threads[i];
    all &= t->value != 0, any |= t->value != 0, count += t->value != 0;
  }
  for (uint32_t i = 0; i < now.n; i++) {
    thread *t = &now.threads[i];
    t->state = THREAD_READY;
    t->value = t->kind == 0 ? 0 : t->kind == 1 ? count : t->kind == 2 ? all : any;
  }
}

static int check_barrier(void) {
  char a[96], b[96];
  for (uint32_t i = 1; i < now.n; i++) {
    const thread *t = &now.threads[i], *first = &now.threads[0];
    if (t->line == first->line && t->kind == first->kind) continue;
    name_thread(0, a, sizeof a);
    name_thread(i, b, sizeof b);
    return report(LAUNCH_FAILED,
                  "barrier divergence: in kernel %s, %s waits at the barrier of line %u, %s at that of line %u",
                  now.launch->kernel->name, a, first->line, b, t->line);
  }
  return SUCCESS;
}

/* kind 0: __syncthreads; 1, 2, 3: with the count, the conjunction, the disjunction of `predicate`. */
EXPORT int cuda_barrier(uint32_t line, uint32_t kind, int predicate) {
  thread *t = &now.threads[now.now];
  t->state = THREAD_AT_BARRIER;
  t->line = line;
  t->kind = kind;
  t->value = predicate != 0;
  if (++now.n_waiting < now.n) {
    back_to_scheduler();
    return (int)t->value;
  }
  int error = check_barrier();
  if (error != SUCCESS) block_abort(error);
  release_barrier();
  return (int)t->value;
}

enum { WARP_SYNC, WARP_SHUFFLE, WARP_BALLOT, WARP_MATCH, WARP_MMA };

static uint64_t warp_result(const thread *warp, uint32_t lanes, uint32_t lane, const uint64_t *values) {
  const thread *t = &warp[lane];
  uint32_t result = 0;
  switch (t->kind) {
    case WARP_SHUFFLE:
      return (lanes >> (t->source & 31) & 1) != 0 ? values[t->source & 31] : 0xfff7fbfdfff7fbfdu;
    case WARP_BALLOT:
      for (uint32_t i = 0; i < 32; i++) result |= (uint32_t)((lanes >> i & 1) != 0 && values[i] != 0) << i;
      return result;
    case WARP_MATCH:
      for (uint32_t i = 0; i < 32; i++) result |= (uint32_t)((lanes >> i & 1) != 0 && values[i] == values[lane]) << i;
      return result;
    default:
      return 0;
  }
}

/* All lanes run the same instruction on tensor cores: what is wrong is noted, and ends the kernel. */
static void run_mma(uint32_t lanes, const uint64_t *values) {
  const sim_instruction *all[32];
  bool same = lanes == 0xffffffffu;
  for (uint32_t i = 0; i < 32 && same; i++) {
    all[i] = (const sim_instruction *)(uintptr_t)values[i];
    same = strcmp(all[i]->text, all[0]->text) == 0;
  }
  if (!same)
    now.error =
        report(LAUNCH_FAILED, "warp divergence: in kernel %s, not all lanes of a warp run the same %.3s",
               now.launch->kernel->name, ((const sim_instruction *)(uintptr_t)values[__builtin_ctz(lanes)])->text);
  else if (ptx_mma(all) != 0 && ptx_ldmatrix(all) != 0)
    now.error = report(LAUNCH_FAILED, "kernel %s has an instruction that is not simulated: %s",
                       now.launch->kernel->name, all[0]->text);
}

/* True where all lanes that the mask names wait for each other, or have ended: then they go on. */
static bool resolve_warp(uint32_t first, const thread *like) {
  uint32_t lanes = 0, ended = 0;
  for (uint32_t i = 0; i < 32 && first + i < now.n; i++) {
    const thread *t = &now.threads[first + i];
    if ((like->mask >> i & 1) == 0) continue;
    if (t->state == THREAD_DONE)
      ended |= 1u << i;
    else if (t->state != THREAD_IN_WARP || t->mask != like->mask || t->kind != like->kind)
      return false;
    else
      lanes |= 1u << i;
  }
  uint64_t values[32] = {0}, results[32] = {0};
  thread *warp = &now.threads[first];
  for (uint32_t i = 0; i < 32; i++)
    if ((lanes >> i & 1) != 0) values[i] = warp[i].value;
  if (like->kind == WARP_MMA) run_mma(lanes, values);
  for (uint32_t i = 0; i < 32; i++)
    if ((lanes >> i & 1) != 0) results[i] = warp_result(warp, lanes, i, values);
  for (uint32_t i = 0; i < 32; i++)
    if ((lanes >> i & 1) != 0) warp[i].state = THREAD_READY, warp[i].value = results[i];
  now.warp_epochs[first / 32]++;
  touch.mark.warp_epoch = (uint16_t)now.warp_epochs[now.now / 32];
  return true;
}

EXPORT uint64_t cuda_warp(uint32_t line, uint32_t kind, uint32_t mask, uint64_t value, uint32_t source) {
  thread *t = &now.threads[now.now];
  if ((mask >> (now.now % 32) & 1) == 0) {
    char who[96];
    name_thread(now.now, who, sizeof who);
    block_abort(report(LAUNCH_FAILED, "warp divergence: in kernel %s, line %u, %s is not in its own mask 0x%08x",
                       now.launch->kernel->name, line, who, mask));
  }
  t->state = THREAD_IN_WARP;
  t->line = line;
  t->kind = kind;
  t->mask = mask;
  t->value = value;
  t->source = source;
  if (!resolve_warp(now.now / 32 * 32, t)) back_to_scheduler();
  return t->value;
}

void cuda_touch(const void *at, uint32_t bytes, int write); /* checks.c */

/* An asm statement of the running thread's. */
EXPORT void cuda_run_ptx(uint32_t line, const sim_instruction *x) {
  if (ptx_alone(x)) return;
  if (strcmp(x->text,
             "{.reg .pred p; and.b32 %0, %1, %2; setp.ne.u32 p, %0, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; "
             "@!p not.b32 %0, %0;}") == 0) {
    uint32_t bit = *(const uint32_t *)x->operands[1] & *(const uint32_t *)x->operands[2];
    uint32_t with = (uint32_t)cuda_warp(line, WARP_BALLOT, 0xffffffffu, bit != 0, 0);
    *(uint32_t *)x->operands[0] = bit != 0 ? with : ~with;
    return;
  }
  address row = ptx_row(x, now.now % 32);
  if (row) cuda_touch((const void *)(uintptr_t)row, 16, 0);
  if (strncmp(x->text, "mma.", 4) != 0 && strncmp(x->text, "ldmatrix.", 9) != 0)
    block_abort(report(LAUNCH_FAILED, "kernel %s, line %u, has an instruction that is not simulated: %s",
                       now.launch->kernel->name, line, x->text));
  cuda_warp(line, WARP_MMA, 0xffffffffu, (uint64_t)(uintptr_t)x, 0);
  if (now.error != SUCCESS) block_abort(now.error);
}

EXPORT uint32_t cuda_active(void) {
  uint32_t mask = 0, first = now.now / 32 * 32;
  for (uint32_t i = 0; i < 32 && first + i < now.n; i++)
    mask |= (uint32_t)(now.threads[first + i].state != THREAD_DONE) << i;
  return mask;
}

/* ---- order between blocks ---- */

EXPORT void cuda_fence(void) {
  now.fenced = true;
}

/* A fence and an atomic tell whoever updates the same place later what this block has done, and been told. */
void block_atomic(address at) {
  if (!now.fenced) return;
  struct release *r = NULL;
  for (uint32_t i = 0; i < now.n_releases && r == NULL; i++)
    if (now.releases[i].at == at) r = &now.releases[i];
  if (r == NULL) {
    now.releases = realloc(now.releases, (now.n_releases + 1) * sizeof *now.releases);
    r = &now.releases[now.n_releases++];
    *r = (struct release){.at = at, .blocks = calloc(now.words, sizeof *r->blocks)};
  }
  r->blocks[touch.mark.block / 64] |= 1ull << (touch.mark.block % 64);
  for (uint32_t i = 0; i < now.words; i++) now.acquired[i] = r->blocks[i] |= now.acquired[i];
  touch.acquired = now.acquired;
}

static void begin_order(void) {
  const uint32_t *g = now.launch->grid;
  now.words = (uint32_t)(((uint64_t)g[0] * g[1] * g[2] + 63) / 64);
  now.acquired = calloc(now.words, sizeof *now.acquired);
  now.fenced = false;
}

static void end_order(void) {
  for (uint32_t i = 0; i < now.n_releases; i++) free(now.releases[i].blocks);
  now.n_releases = 0;
  free(now.acquired);
}

/* ---- running ---- */

static uint64_t next_random(void) {
  now.random = now.random * 6364136223846793005u + 1442695040888963407u;
  return now.random >> 33;
}

static void run_thread(uint32_t i) {
  thread *t = &now.threads[i];
  if (t->fiber == NULL) t->fiber = take_fiber();
  use_thread(i);
  sim_switch(&now.scheduler, t->fiber->at);
  if (t->state != THREAD_DONE) return;
  now.spare[now.n_spare++] = t->fiber;
  t->fiber = NULL;
  now.n_done++;
}

static bool resolve_all_warps(void) {
  bool any = false;
  for (uint32_t i = 0; i < now.n; i++)
    if (now.threads[i].state == THREAD_IN_WARP) any |= resolve_warp(i / 32 * 32, &now.threads[i]);
  return any;
}

static int report_stuck(void) {
  char a[96], b[96];
  uint32_t waiting = 0, other = 0;
  while (now.threads[waiting].state == THREAD_DONE) waiting++;
  const thread *t = &now.threads[waiting];
  while (other + 1 < now.n && now.threads[other].state == t->state && now.threads[other].line == t->line) other++;
  name_thread(waiting, a, sizeof a);
  name_thread(other, b, sizeof b);
  const char *states[] = {"runs", "waits at a barrier", "waits for lanes of its warp", "has ended"};
  return report(LAUNCH_FAILED, "%s divergence: in kernel %s, %s %s in line %u, but %s %s%s",
                t->state == THREAD_AT_BARRIER ? "barrier" : "warp", now.launch->kernel->name, a, states[t->state],
                t->line, b, states[now.threads[other].state],
                now.threads[other].state == THREAD_DONE ? "" : " elsewhere");
}

static int run_block(void) {
  memset(now.threads, 0, now.n * sizeof *now.threads);
  memset(now.warp_epochs, 0, sizeof now.warp_epochs);
  now.n_done = now.n_waiting = 0;
  touch.mark.epoch = 0;
  memset(now.acquired, 0, now.words * sizeof *now.acquired);
  touch.acquired = NULL;
  while (now.n_done < now.n) {
    bool progress = false;
    uint32_t start = sim.seed != 0 ? (uint32_t)(next_random() % now.n) : 0;
    bool down = sim.seed != 0 && (next_random() & 1) != 0;
    for (uint32_t k = 0; k < now.n; k++) {
      uint32_t i = (start + (down ? now.n - k : k)) % now.n;
      if (now.threads[i].state != THREAD_READY) continue;
      run_thread(i);
      if (now.error != SUCCESS) return now.error;
      progress = true;
    }
    if (!progress && !resolve_all_warps()) return report_stuck();
  }
  return SUCCESS;
}

static void use_block(uint32_t linear) {
  const uint32_t *g = now.launch->grid;
  cuda_block_idx[0] = linear % g[0];
  cuda_block_idx[1] = linear / g[0] % g[1];
  cuda_block_idx[2] = linear / g[0] / g[1];
  touch.mark.block = linear;
}

/* A step that is prime to n: all blocks are met once, in an order of no kind. */
static uint64_t stride(uint64_t n) {
  for (uint64_t s = next_random() % n + 1;; s++) {
    uint64_t a = s, b = n;
    while (b != 0) {
      uint64_t r = a % b;
      a = b, b = r;
    }
    if (a == 1) return s;
  }
}

static void set_dynamic(uint32_t bytes) {
  if (now.dynamic == NULL) {
    now.dynamic = calloc(1, sizeof *now.dynamic);
    *now.dynamic = (allocation){
        .at = (address)(uintptr_t)cuda_dynamic_shared, .bytes = sizeof cuda_dynamic_shared, .kind = MEMORY_SHARED};
    shadow_add(now.dynamic);
  }
  now.dynamic->bytes = bytes;
}

int block_run_grid(sim_launch *l) {
  now.launch = l;
  now.error = SUCCESS;
  now.n = l->block[0] * l->block[1] * l->block[2];
  now.random = sim.seed ^ l->work.op->id;
  memcpy(cuda_block_dim, l->block, sizeof l->block);
  memcpy(cuda_grid_dim, l->grid, sizeof l->grid);
  set_dynamic(l->shared_bytes);
  touch.op = l->work.op;
  touch.kernel = l->kernel;
  touch.mark = (sim_mark){.op = l->work.op->id};
  touch.accesses = 0;
  begin_order();
  uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
  uint64_t step = sim.seed != 0 ? stride(blocks) : 1, at = sim.seed != 0 ? next_random() % blocks : 0;
  int result = SUCCESS;
  for (uint64_t i = 0; i < blocks && result == SUCCESS; i++, at = (at + step) % blocks) {
    use_block((uint32_t)at);
    result = run_block();
  }
  if (result != SUCCESS) reset_fibers();
  end_order();
  touch.kernel = NULL;
  touch.stack_low = touch.stack_high = 0;
  return result;
}
