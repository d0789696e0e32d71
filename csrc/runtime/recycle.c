/* Freed blocks are kept by size class, four classes to a power of two, so at most a quarter of a block is
 * wasted. A program that runs again finds the blocks of its last run, already mapped and with their pages
 * present: taking one costs a lock and a pop. What is kept is limited; the class that was not taken from
 * for longest gives first. */
#include "recycle.h"

#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

enum {
  RECYCLE_FIRST = 6, /* 2^6 bytes: the smallest class */
  RECYCLE_CLASSES = (47 - RECYCLE_FIRST) * 4,
  RECYCLE_HUGE = 2 << 20, /* blocks from here on are mapped, on pages of this size */
  RECYCLE_PAGE = 4096,
  RECYCLE_SPINS = 100
};

/* Before every block. */
typedef struct recycle_block {
  rt_recycler *owner;
  struct recycle_block *next; /* in its class's list */
  void *raw;                  /* what the allocator gave, or NULL: mapped */
  uint32_t class;
  char prefix[RT_BLOCK_PREFIX] __attribute__((aligned(32)));
} recycle_block;
_Static_assert(sizeof(recycle_block) == RT_BLOCK_ALIGN, "a block follows its header without a gap");

typedef struct recycle_class {
  recycle_block *_Atomic first;
  uint64_t used; /* the time of its last taking */
} recycle_class;

/* The lock lies on a page that is empty in a child after fork: what another thread held there is held by nobody. Each
 * change of a list is one store, so lists are whole whenever that happens. */
struct rt_recycler {
  base_alloc alloc;
  atomic_uint *lock;
  _Atomic uint64_t refs;
  uint64_t time;
  rt_recycler_info info;
  recycle_class classes[RECYCLE_CLASSES];
};

static void recycle_lock(rt_recycler *r) {
  for (int spins = 0; atomic_exchange_explicit(r->lock, 1, memory_order_acquire); spins++)
    if (spins > RECYCLE_SPINS) sched_yield();
}

static void recycle_unlock(rt_recycler *r) {
  atomic_store_explicit(r->lock, 0, memory_order_release);
}

/* --- classes --- */

/* 64, 80, 96, 112, 128, 160, ... */
static uint64_t recycle_class_bytes(uint32_t class) {
  assert(class < RECYCLE_CLASSES);
  return (uint64_t)(4 + class % 4) << (class / 4 + RECYCLE_FIRST - 2);
}

/* The smallest class of so many bytes, or RECYCLE_CLASSES. */
static uint32_t recycle_class_of(size_t bytes) {
  if (bytes <= 1u << RECYCLE_FIRST) return 0;
  uint32_t top = 63 - (uint32_t)__builtin_clzll(bytes - 1); /* 2^top < bytes <= 2^(top + 1) */
  if (top >= RECYCLE_FIRST + RECYCLE_CLASSES / 4 - 1) return RECYCLE_CLASSES;
  uint32_t quarter = (uint32_t)((bytes - 1) >> (top - 2)) & 3; /* rounded down: the class after it is large enough */
  uint32_t class = (top - RECYCLE_FIRST) * 4 + quarter + 1;
  assert(recycle_class_bytes(class) >= bytes && (class == 0 || recycle_class_bytes(class - 1) < bytes));
  return class;
}

/* --- memory of the system --- */

#if defined(__linux__)
static size_t recycle_mapped_bytes(uint32_t class) {
  return (recycle_class_bytes(class) + sizeof(recycle_block) + RECYCLE_PAGE - 1) & ~(size_t)(RECYCLE_PAGE - 1);
}

/* On a border of huge pages: more is mapped than needed, and both ends given back. */
static void *recycle_map(uint32_t class) {
  size_t bytes = recycle_mapped_bytes(class), all = bytes + RECYCLE_HUGE;
  char *p = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return NULL;
  char *at = (char *)(((uintptr_t)p + RECYCLE_HUGE - 1) & ~(uintptr_t)(RECYCLE_HUGE - 1));
  if (at > p) (void)munmap(p, (size_t)(at - p));
  if (p + all > at + bytes) (void)munmap(at + bytes, (size_t)(p + all - at - bytes));
#ifdef MADV_HUGEPAGE
  (void)madvise(at, bytes, MADV_HUGEPAGE); /* a wish: without it all is as usual */
#endif
  return at;
}

static void recycle_unmap(recycle_block *b) {
  (void)munmap(b, recycle_mapped_bytes(b->class));
}

static atomic_uint *recycle_make_lock(base_alloc alloc) {
  (void)alloc;
  void *p = mmap(NULL, RECYCLE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return NULL;
#ifdef MADV_WIPEONFORK
  (void)madvise(p, RECYCLE_PAGE, MADV_WIPEONFORK);
#endif
  return p;
}

static void recycle_free_lock(base_alloc alloc, atomic_uint *lock) {
  (void)alloc;
  (void)munmap(lock, RECYCLE_PAGE);
}
#else
static void *recycle_map(uint32_t class) {
  (void)class;
  return NULL;
}

static void recycle_unmap(recycle_block *b) {
  (void)b;
}

static atomic_uint *recycle_make_lock(base_alloc alloc) {
  atomic_uint *lock = base_malloc(alloc, sizeof *lock);
  if (lock) atomic_init(lock, 0);
  return lock;
}

static void recycle_free_lock(base_alloc alloc, atomic_uint *lock) {
  base_free(alloc, lock);
}
#endif

/* Large blocks are mapped on huge pages where the system has them; where mapping fails, the allocator is
 * asked. */
static recycle_block *recycle_new(rt_recycler *r, uint32_t class) {
  uint64_t bytes = recycle_class_bytes(class);
  recycle_block *b = bytes >= RECYCLE_HUGE ? recycle_map(class) : NULL;
  if (b) {
    b->raw = NULL;
  } else {
    void *raw = base_malloc(r->alloc, bytes + sizeof *b + RT_BLOCK_ALIGN);
    if (!raw) return NULL;
    b = (recycle_block *)(((uintptr_t)raw + RT_BLOCK_ALIGN - 1) & ~(uintptr_t)(RT_BLOCK_ALIGN - 1));
    b->raw = raw;
  }
  b->owner = r;
  b->class = class;
  return b;
}

static void recycle_free_list(rt_recycler *r, recycle_block *b) {
  while (b) {
    recycle_block *next = b->next;
    if (b->raw)
      base_free(r->alloc, b->raw);
    else
      recycle_unmap(b);
    b = next;
  }
}

/* --- the recycler --- */

/* An eighth of the machine's memory. */
static uint64_t recycle_usual_limit(void) {
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 8 : (uint64_t)1 << 30;
}

int rt_recycler_create(rt_recycler **out, base_alloc alloc, xlac_error *err) {
  rt_recycler *r = base_malloc(alloc, sizeof *r);
  atomic_uint *lock = r ? recycle_make_lock(alloc) : NULL;
  if (!lock) {
    base_free(alloc, r);
    return base_oom(err, "a pool of memory");
  }
  memset(r, 0, sizeof *r);
  r->alloc = alloc;
  r->lock = lock;
  r->info.limit_bytes = recycle_usual_limit();
  atomic_init(&r->refs, 1);
  *out = r;
  return 0;
}

rt_recycler *rt_recycler_retain(rt_recycler *r) {
  atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
  return r;
}

void rt_recycler_release(rt_recycler *r) {
  if (!r || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1) return;
  assert(r->info.live == 0);
  for (uint32_t i = 0; i < RECYCLE_CLASSES; i++) recycle_free_list(r, atomic_load(&r->classes[i].first));
  recycle_free_lock(r->alloc, r->lock);
  base_free(r->alloc, r);
}

/* Under the lock. */
static recycle_block *recycle_pop(rt_recycler *r, uint32_t class) {
  recycle_block *b = atomic_load_explicit(&r->classes[class].first, memory_order_relaxed);
  if (!b) return NULL;
  atomic_store_explicit(&r->classes[class].first, b->next, memory_order_release);
  r->info.kept--;
  r->info.kept_bytes -= recycle_class_bytes(class);
  return b;
}

/* Under the lock. */
static void recycle_count_taken(rt_recycler *r, uint32_t class) {
  r->classes[class].used = ++r->time;
  r->info.taken++;
  r->info.live++;
  r->info.live_bytes += recycle_class_bytes(class);
  if (r->info.live_bytes > r->info.peak_bytes) r->info.peak_bytes = r->info.live_bytes;
}

/* Undoes recycle_count_taken. */
static void recycle_count_failed(rt_recycler *r, uint32_t class) {
  recycle_lock(r);
  r->info.taken--;
  r->info.live--;
  r->info.live_bytes -= recycle_class_bytes(class);
  recycle_unlock(r);
}

/* Before giving up, everything that is kept goes back to the system: it may be what is lacking. */
void *rt_recycler_take(rt_recycler *r, size_t bytes) {
  uint32_t class = recycle_class_of(bytes);
  if (class >= RECYCLE_CLASSES) return NULL;
  recycle_lock(r);
  recycle_block *b = recycle_pop(r, class);
  r->info.reused += b != NULL;
  recycle_count_taken(r, class);
  recycle_unlock(r);
  if (!b) b = recycle_new(r, class);
  if (!b && rt_recycler_trim(r, 0)) b = recycle_new(r, class);
  if (!b) {
    recycle_count_failed(r, class);
    return NULL;
  }
  rt_recycler_retain(r);
  return b + 1;
}

/* Under the lock: the class with something kept that nobody has taken from for longest, the one just given to last. */
static uint32_t recycle_stalest(const rt_recycler *r, uint32_t but) {
  uint32_t best = but;
  for (uint32_t i = 0; i < RECYCLE_CLASSES; i++) {
    bool kept = atomic_load_explicit(&r->classes[i].first, memory_order_relaxed) != NULL;
    if (i != but && kept && (best == but || r->classes[i].used < r->classes[best].used)) best = i;
  }
  return best;
}

/* Under the lock: takes blocks out of the lists until no more than `keep` bytes are kept; they are to be freed. */
static recycle_block *recycle_shrink(rt_recycler *r, uint64_t keep, uint32_t but) {
  recycle_block *out = NULL;
  while (r->info.kept_bytes > keep) {
    recycle_block *b = recycle_pop(r, recycle_stalest(r, but));
    if (!b) break; /* after a fork in the midst of a change the count may be over what is there */
    b->next = out;
    out = b;
  }
  return out;
}

void rt_recycler_give(void *block) {
  if (!block) return;
  recycle_block *b = (recycle_block *)block - 1, *surplus = NULL;
  rt_recycler *r = b->owner;
  uint64_t bytes = recycle_class_bytes(b->class);
  recycle_lock(r);
  r->info.live--;
  r->info.live_bytes -= bytes;
  r->info.kept++;
  r->info.kept_bytes += bytes;
  b->next = atomic_load_explicit(&r->classes[b->class].first, memory_order_relaxed);
  atomic_store_explicit(&r->classes[b->class].first, b, memory_order_release);
  if (r->info.kept_bytes > r->info.limit_bytes) surplus = recycle_shrink(r, r->info.limit_bytes, b->class);
  recycle_unlock(r);
  recycle_free_list(r, surplus);
  rt_recycler_release(r);
}

/* Freeing happens without the lock. */
uint64_t rt_recycler_trim(rt_recycler *r, uint64_t keep) {
  recycle_lock(r);
  uint64_t before = r->info.kept_bytes;
  recycle_block *list = recycle_shrink(r, keep, 0);
  uint64_t freed = before - r->info.kept_bytes;
  recycle_unlock(r);
  recycle_free_list(r, list);
  return freed;
}

void rt_recycler_limit(rt_recycler *r, uint64_t bytes) {
  recycle_lock(r);
  r->info.limit_bytes = bytes;
  recycle_unlock(r);
  (void)rt_recycler_trim(r, bytes);
}

void rt_recycler_get(rt_recycler *r, rt_recycler_info *out) {
  recycle_lock(r);
  *out = r->info;
  recycle_unlock(r);
}
