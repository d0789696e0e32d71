/* Buffers: who owns an array's memory, who looks at it, and who may take it. Shape and memory never change after
 * creation; all that does is one word, the state. Whoever wants to look counts himself into it, whoever wants to take
 * the memory sets a bit in it that is set once: so of a viewer and a taker one comes too late, and knows it.
 *
 * The life of a buffer's state word: 0 is alive and unseen; n is alive with n views (xlac_buffer_open, and
 * closed as often); the top bit alone is taken or deleted, from where only xlac_buffer_give_back leads
 * back. So one compare-and-swap from 0 decides between a donation and a view, without a lock. Strides are
 * in bytes, steps in elements; both may be negative, and those of dimensions of size 1 are set to what a
 * dense array has, because producers of arrays put anything there. */
#include <stdatomic.h>
#include <stdio.h>
#include "api.h"
#include "leaf.h"
#include "../driver/copy.h"
#include "../runtime/host.h"
#include "../base/plural.h"

/* In the state, above the number of views. */
#define BUFFER_DELETED_BIT ((uint64_t)1 << 63)

struct xlac_buffer {
  _Atomic uint64_t refs, state;
  uint32_t dtype, rank;
  xlac_memory memory;
  rt_device *device; /* a reference; NULL: the host */
  xlac_counters *counters;
  char *_Atomic taken_by;
  int64_t count;
  size_t bytes;
  bool readonly, dense, aligned, stepped; /* stepped: strides are whole numbers of elements */
  int64_t dims[];                         /* then the strides, then the steps, `rank` each */
};

/* In bytes. */
static int64_t *buffer_strides(xlac_buffer *b) {
  return b->dims + b->rank;
}
/* In elements; meaningful only where `stepped`. */
static int64_t *buffer_steps(xlac_buffer *b) {
  return b->dims + 2 * (size_t)b->rank;
}

/* --- layout --- */

/* NULL strides mean dense, row-major. Sets dense and stepped, too. Empty arrays count as dense: nobody
 * reads through their strides. */
static void buffer_fill_strides(xlac_buffer *b, const int64_t *strides) {
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)b->dtype), step = 1, *out = buffer_strides(b);
  int64_t *steps = buffer_steps(b);
  b->dense = b->stepped = true;
  for (uint32_t d = b->rank; d-- > 0;) {
    int64_t usual = step * bytes;
    bool given = strides && b->dims[d] > 1 && b->count > 0;
    out[d] = given ? strides[d] : usual;
    b->dense = b->dense && out[d] == usual;
    b->stepped = b->stepped && out[d] % bytes == 0;
    steps[d] = out[d] / bytes;
    if (b->count > 0) step *= b->dims[d];
  }
}

/* Sound strides lead to addresses that exist. low and high are the offsets in bytes of the lowest and of
 * the end of the highest element from data. Computed with overflow checks, since dims and strides come
 * from other libraries. */
static int buffer_check_span(xlac_buffer *b, xlac_error *err) {
  assert(b->rank <= IR_MAX_RANK);
  int64_t low = 0, high = (int64_t)base_dtype_bytes((base_dtype)b->dtype), *strides = buffer_strides(b);
  bool fits = true;
  for (uint32_t d = 0; d < b->rank && b->count > 0; d++) {
    int64_t last;
    fits = fits && base_mul_i64(b->dims[d] - 1, strides[d], &last);
    if (fits) fits = last < 0 ? base_add_i64(low, last, &low) : base_add_i64(high, last, &high);
  }
  uintptr_t at = (uintptr_t)b->memory.data;
  fits = fits && low > INT64_MIN && at >= (uintptr_t)-low && at <= UINTPTR_MAX - (uintptr_t)high;
  if (fits || b->count == 0) return 0;
  return base_fail(err, XLAC_E_BAD_ARGUMENT, "the array's strides lead out of the address space");
}

/* What a C compiler aligns such elements to: parts of complex numbers count. */
static bool buffer_is_aligned(xlac_buffer *b) {
  uint64_t align = base_dtype_bytes(base_dtype_real_part((base_dtype)b->dtype)), all = (uintptr_t)b->memory.data;
  for (uint32_t d = 0; d < b->rank; d++) all |= (uint64_t)buffer_strides(b)[d];
  return b->count == 0 || all % align == 0;
}

/* Zeros first: the product of the others may not fit where one of them is 0. That it fits otherwise,
 * api_array_bytes has seen to. */
static int64_t buffer_count(uint32_t rank, const int64_t *dims) {
  int64_t n = 1;
  for (uint32_t d = 0; d < rank; d++)
    if (dims[d] == 0) return 0;
  for (uint32_t d = 0; d < rank; d++) n *= dims[d];
  return n;
}

/* Without memory. The struct with three arrays of `rank` numbers behind it; its memory is still NULL. */
static xlac_buffer *buffer_new(const xlac_layout *l, size_t bytes) {
  assert(l->rank <= IR_MAX_RANK && l->dtype < BASE_DTYPE_COUNT);
  xlac_buffer *b = base_malloc(base_alloc_libc, sizeof *b + 3 * sizeof *b->dims * (size_t)l->rank);
  if (!b) return NULL;
  memset(b, 0, sizeof *b);
  atomic_init(&b->refs, 1);
  atomic_init(&b->state, 0);
  b->dtype = l->dtype;
  b->rank = l->rank;
  b->bytes = bytes;
  b->readonly = l->readonly;
  b->count = buffer_count(l->rank, l->dims);
  for (uint32_t d = 0; d < l->rank; d++) b->dims[d] = l->dims[d];
  buffer_fill_strides(b, l->strides);
  return b;
}

/* n is 1 or -1. */
static void buffer_count_live(const xlac_buffer *b, int64_t n) {
  assert(n == 1 || n == -1);
  xlac_counters_add(b->counters, XLAC_COUNT_LIVE_BUFFERS, n);
  xlac_counters_add(b->counters, XLAC_COUNT_LIVE_BYTES, n * (int64_t)b->bytes);
}

/* --- creation --- */

/* The memory stays the caller's if this fails; afterwards memory->release(ctx) is called once, by whoever
 * drops the last reference, on any thread. release may be NULL: borrowed memory that outlives the buffer.
 * counters may be NULL. */
int xlac_buffer_wrap(xlac_buffer **out, xlac_counters *counters, const xlac_layout *layout, const xlac_memory *memory,
                     xlac_error *err) {
  size_t bytes = 0;
  TRY(api_array_bytes(layout->dtype, layout->rank, layout->dims, &bytes, err));
  if (memory->data == NULL && bytes)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "the array has %zu bytes but no data", bytes);
  xlac_buffer *b = buffer_new(layout, bytes);
  if (!b) return base_oom(err, "making a buffer");
  b->memory = *memory;
  assert(!layout->device || !rt_device_is_host(api_device(layout->device)));
  int status = buffer_check_span(b, err);
  if (status) {
    base_free(base_alloc_libc, b);
    return status;
  }
  b->aligned = buffer_is_aligned(b);
  if (layout->device) b->device = rt_device_retain(api_device(layout->device));
  b->counters = xlac_counters_retain(counters);
  buffer_count_live(b, 1);
  *out = b;
  return 0;
}

/* Memory of the runtime, not zeroed, aligned to 64 bytes. It may outlive the runtime: a block keeps its
 * pool alive. */
int xlac_buffer_create(xlac_buffer **out, xlac_runtime *rt, xlac_counters *counters, uint32_t dtype, uint32_t rank,
                       const int64_t *dims, xlac_error *err) {
  size_t bytes = 0;
  TRY(api_array_bytes(dtype, rank, dims, &bytes, err));
  void *block = xlac_runtime_take(rt, bytes);
  if (!block) return base_fail(err, XLAC_E_OUT_OF_MEMORY, "out of memory: a buffer of %zu bytes", bytes);
  xlac_layout layout = {.dtype = dtype, .rank = rank, .dims = dims};
  xlac_memory memory = {block, xlac_runtime_give, block};
  int status = xlac_buffer_wrap(out, counters, &layout, &memory, err);
  if (status) xlac_runtime_give(block);
  return status;
}

xlac_buffer *xlac_buffer_retain(xlac_buffer *b) {
  atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
  return b;
}

/* The release function is the owner's, which may take its own locks: no lock is held here. */
static void buffer_free_memory(const xlac_buffer *b) {
  if (b->memory.release) b->memory.release(b->memory.ctx);
}

/* A deleted buffer has been counted out and its memory released or handed on already. Only the struct is
 * left then. */
void xlac_buffer_release(xlac_buffer *b) {
  if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
  uint64_t state = atomic_load_explicit(&b->state, memory_order_relaxed);
  assert((state & ~BUFFER_DELETED_BIT) == 0); /* views hold references */
  if (!(state & BUFFER_DELETED_BIT)) {
    buffer_count_live(b, -1);
    buffer_free_memory(b);
  }
  rt_device_release(b->device);
  xlac_counters_release(b->counters);
  base_free(base_alloc_libc, atomic_load_explicit(&b->taken_by, memory_order_relaxed));
  base_free(base_alloc_libc, b);
}

/* A snapshot: `views` and `deleted` may have changed by the time the caller looks. To rely on data, open a
 * view first. */
void xlac_buffer_get(xlac_buffer *b, xlac_buffer_info *out) {
  assert(b && out);
  uint64_t state = atomic_load_explicit(&b->state, memory_order_acquire);
  bool deleted = (state & BUFFER_DELETED_BIT) != 0;
  *out = (xlac_buffer_info){.dtype = b->dtype,
                            .rank = b->rank,
                            .dims = b->dims,
                            .strides = b->rank ? buffer_strides(b) : NULL,
                            .steps = b->stepped ? buffer_steps(b) : NULL,
                            .data = deleted ? NULL : b->memory.data,
                            .count = b->count,
                            .bytes = b->bytes,
                            .dense = b->dense,
                            .aligned = b->aligned,
                            .readonly = b->readonly,
                            .deleted = deleted,
                            .views = (uint32_t)state,
                            .device = (const xlac_device *)b->device};
}

/* For results in an argument's memory: the buffer is made first, on borrowed memory, and becomes the owner
 * when the run has begun and the argument is gone. */
void api_buffer_own(xlac_buffer *b, const xlac_memory *memory) {
  assert(b->memory.release == NULL);
  b->memory.release = memory->release;
  b->memory.ctx = memory->ctx;
}

xlac_counters *api_buffer_counters(const xlac_buffer *b) {
  return b->counters;
}

const xlac_memory *api_buffer_memory(const xlac_buffer *b) {
  return &b->memory;
}

/* --- errors --- */

/* "f32[2,3]", cut where it is long. */
static void buffer_describe(const xlac_buffer *b, char *text, size_t size) {
  size_t n = (size_t)snprintf(text, size, "%s[", base_dtype_table[b->dtype].text);
  for (uint32_t d = 0; d < b->rank && n < size; d++)
    n += (size_t)snprintf(text + n, size - n, d ? ",%lld" : "%lld", (long long)b->dims[d]);
  if (n < size) snprintf(text + n, size - n, "]");
}

/* taken_by, where it is set, is a phrase like "it was donated to a run"; it is set after the bit, so it
 * may be missing for a moment. */
static int buffer_fail_deleted(xlac_buffer *b, xlac_error *err) {
  char text[128];
  buffer_describe(b, text, sizeof text);
  const char *where = atomic_load_explicit(&b->taken_by, memory_order_acquire);
  if (where) return base_fail(err, XLAC_E_BUFFER_DELETED, "this buffer, %s, is gone: %s", text, where);
  return base_fail(err, XLAC_E_BUFFER_DELETED, "this buffer, %s, was donated or deleted", text);
}

static int buffer_fail_viewed(xlac_buffer *b, uint64_t views, xlac_error *err) {
  char text[128];
  buffer_describe(b, text, sizeof text);
  int status = base_fail(err, XLAC_E_BUFFER_VIEWED, "%llu view%s of this buffer, %s, %s alive",
                         (unsigned long long)views, base_plural(views), text, views == 1 ? "is" : "are");
  return base_hint(err, status, "drop the arrays, memoryviews and tensors made of it, or give a copy");
}

/* --- views and takers --- */

/* A view holds a reference, too: the struct cannot go while one is open. Acquire pairs with the release of
 * xlac_buffer_give_back. */
int xlac_buffer_open(xlac_buffer *b, xlac_error *err) {
  uint64_t state = atomic_load_explicit(&b->state, memory_order_relaxed);
  do {
    if (state & BUFFER_DELETED_BIT) return buffer_fail_deleted(b, err);
  } while (
      !atomic_compare_exchange_weak_explicit(&b->state, &state, state + 1, memory_order_acquire, memory_order_relaxed));
  xlac_counters_add(b->counters, XLAC_COUNT_LIVE_VIEWS, 1);
  xlac_buffer_retain(b);
  return 0;
}

/* Release: what the view read or wrote happens before a taker sees the count at 0. */
void xlac_buffer_close(xlac_buffer *b) {
  uint64_t before = atomic_fetch_sub_explicit(&b->state, 1, memory_order_release);
  assert((before & ~BUFFER_DELETED_BIT) > 0 && !(before & BUFFER_DELETED_BIT));
  (void)before;
  xlac_counters_add(b->counters, XLAC_COUNT_LIVE_VIEWS, -1);
  xlac_buffer_release(b);
}

/* Sets the bit, if nobody looks and nobody has. */
static int buffer_claim(xlac_buffer *b, xlac_error *err) {
  uint64_t state = 0;
  if (!atomic_compare_exchange_strong_explicit(&b->state, &state, BUFFER_DELETED_BIT, memory_order_acq_rel,
                                               memory_order_acquire))
    return state & BUFFER_DELETED_BIT ? buffer_fail_deleted(b, err) : buffer_fail_viewed(b, state, err);
  buffer_count_live(b, -1);
  return 0;
}

/* The memory and its release function are the caller's from here on; the buffer only says that it is gone.
 * Fails, and changes nothing, while views are open. */
int xlac_buffer_take(xlac_buffer *b, xlac_memory *out, xlac_error *err) {
  if (b->readonly) {
    char text[128];
    buffer_describe(b, text, sizeof text);
    return base_fail(err, XLAC_E_BUFFER_READONLY, "this buffer, %s, is read-only: its memory can't be donated", text);
  }
  TRY(buffer_claim(b, err));
  *out = b->memory;
  xlac_counters_add(b->counters, XLAC_COUNT_TAKEN, 1);
  xlac_counters_add(b->counters, XLAC_COUNT_BYTES_TAKEN, (int64_t)b->bytes);
  return 0;
}

/* Undoes a take whose call did not begin. Only the taker may call it, and no one else can have changed the
 * word meanwhile: with the bit set, opening and claiming both fail. */
void xlac_buffer_give_back(xlac_buffer *b) {
  xlac_counters_add(b->counters, XLAC_COUNT_TAKEN, -1);
  xlac_counters_add(b->counters, XLAC_COUNT_BYTES_TAKEN, -(int64_t)b->bytes);
  buffer_count_live(b, 1);
  uint64_t before = atomic_exchange_explicit(&b->state, 0, memory_order_release);
  assert(before == BUFFER_DELETED_BIT);
  (void)before;
}

/* The first reason stays. Without memory for it the message is a shorter one, which is no reason to fail. */
void xlac_buffer_taken_by(xlac_buffer *b, const char *where) {
  size_t n = strlen(where) + 1;
  char *copy = base_malloc(base_alloc_libc, n), *none = NULL;
  if (!copy) return;
  memcpy(copy, where, n);
  if (!atomic_compare_exchange_strong_explicit(&b->taken_by, &none, copy, memory_order_acq_rel, memory_order_relaxed))
    base_free(base_alloc_libc, copy);
}

/* Releases the memory at once; handles stay valid and say that it is gone. */
int xlac_buffer_delete(xlac_buffer *b, xlac_error *err) {
  TRY(buffer_claim(b, err));
  buffer_free_memory(b);
  return 0;
}

/* --- Dense copies of buffers of any strides. --- */

enum { BUFFER_COPY_ALONE = 1 << 20 }; /* bytes: fewer are copied without asking for threads */

/* `to` has room for info.bytes. The view keeps the buffer from being donated while it is read; rt may be
 * NULL: this thread alone. */
int xlac_buffer_copy_to(xlac_buffer *b, xlac_runtime *rt, void *to, xlac_error *err) {
  assert(b && to);
  xlac_buffer_info info;
  rt_pool *pool = NULL;
  int status = 0;
  TRY(xlac_buffer_open(b, err));
  xlac_buffer_get(b, &info);
  if (rt && !info.device && info.bytes >= BUFFER_COPY_ALONE)
    status = rt_host_pool(rt_device_set_home(api_devices(rt)), 0, &pool, err);
  if (status == 0) status = info.device ? api_buffer_fetch(&info, to, err) : driver_copy_dense(&info, pool, to, err);
  xlac_buffer_close(b);
  return status;
}

/* A dense, writable buffer with the same counters as b's. Fails with XLAC_E_BUFFER_DELETED where b is
 * gone. */
int xlac_buffer_copy(xlac_buffer **out, xlac_runtime *rt, xlac_buffer *b, xlac_error *err) {
  xlac_buffer_info info, copied;
  xlac_buffer *copy = NULL;
  xlac_buffer_get(b, &info);
  if (info.device) return xlac_buffer_copy_on(out, info.device, rt, b, err);
  TRY(xlac_buffer_create(&copy, rt, api_buffer_counters(b), info.dtype, info.rank, info.dims, err));
  xlac_buffer_get(copy, &copied);
  int status = xlac_buffer_copy_to(b, rt, copied.data, err);
  if (status)
    xlac_buffer_release(copy);
  else
    *out = copy;
  return status;
}
