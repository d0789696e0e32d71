/* Where code is kept, from its first byte until it is executable. */
#include "loop.h"
#include "native_inside.h"

#if defined(__x86_64__) && defined(__linux__)
#include <stdlib.h>
#include <sys/mman.h>

/* The target; NULL: there is to be no native code. FMA and F16C are older than AVX2 and there wherever it is, BMI2
 * wherever AVX-512 is. */
static const nat_target *cpu_native_wanted(void) {
  const char *off = getenv("XLAC_NATIVE");
  return off && strcmp(off, "0") == 0 ? NULL : nat_target_of();
}

int cpu_native_store_create(base_alloc alloc, cpu_native_store **out, xlac_error *err) {
  *out = NULL;
  const nat_target *target = cpu_native_wanted();
  if (!target) return 0;
  cpu_native_store *s = base_malloc(alloc, sizeof *s);
  if (!s) return base_oom(err, "native code");
  *s = (cpu_native_store){.alloc = alloc, .target = target, .maps = nat_map_wanted()};
  *out = s;
  return 0;
}

void cpu_native_store_use(cpu_native_store *s, const rt_saved_code *saved) {
  if (s) s->saved = saved;
}

static void store_forget(cpu_native_store *s) {
  BASE_VEC_FREE(s->alloc, &s->code);
  BASE_VEC_FREE(s->alloc, &s->key);
  BASE_VEC_FREE(s->alloc, &s->addresses);
  BASE_VEC_FREE(s->alloc, &s->known);
  BASE_VEC_FREE(s->alloc, &s->names);
  BASE_VEC_FREE(s->alloc, &s->texts);
}

void cpu_native_store_destroy(cpu_native_store *s) {
  if (!s) return;
  store_forget(s);
  if (s->pages) munmap(s->pages, s->n_pages);
  base_free(s->alloc, s);
}

/* Written first, then turned. */
void cpu_native_store_seal(cpu_native_store *s) {
  if (!s || s->pages || s->code.n == 0) return;
  nat_saved_put(s);
  size_t n = (s->code.n + 4095u) & ~(size_t)4095;
  void *pages = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages != MAP_FAILED) {
    memcpy(pages, s->code.items, s->code.n);
    s->n_pages = n;
    if (mprotect(pages, n, PROT_READ | PROT_EXEC) == 0)
      s->pages = pages;
    else
      munmap(pages, n);
  }
  s->saved = NULL;
  if (s->pages && s->maps) nat_map_write(s, s->pages);
  store_forget(s);
}

/* --- sharing --- */

static bool store_put(cpu_native_store *s, x86_bytes *to, const void *bytes, size_t n) {
  if (!BASE_VEC_RESERVE(s->alloc, to, to->n + n)) return false;
  if (n) memcpy(to->items + to->n, bytes, n);
  to->n += (uint32_t)n;
  return true;
}

/* All that decides about the code: values but for what they are for, streams, stores. Addresses as they are from the
 * library's beginning, since keys are saved. */
static bool store_put_key(cpu_native_store *s, const nat_body *b) {
  s->key.n = 0;
  bool ok = store_put(s, &s->key, &b->lanes, sizeof b->lanes);
  for (uint32_t i = 0; ok && i < b->n_values; i++) {
    nat_value v = b->values[i];
    v.from = 0;
    if (v.kind == NAT_CALL || (v.kind == NAT_FAR && v.bits)) v.bits -= nat_base();
    ok = store_put(s, &s->key, &v, sizeof v);
  }
  for (uint32_t i = 0; ok && i < b->n_streams; i++) {
    const nat_stream *t = &b->streams[i];
    int64_t facts[6] = {t->width, t->stride, t->output, t->number, t->gathers, t->spreads ? 1 + t->cycle : 0};
    ok = store_put(s, &s->key, facts, sizeof facts);
  }
  for (uint32_t i = 0; ok && i < b->n_patterns; i++) {
    const nat_pattern *p = b->patterns[i];
    bool goes_on = p->step != 0;
    ok = store_put(s, &s->key, p->at, b->trip * sizeof *p->at) && store_put(s, &s->key, &goes_on, sizeof goes_on);
  }
  uint32_t counts[4] = {nat_turns_of(b), b->n_folds, nat_short_row(b), b->trip};
  ok = ok && store_put(s, &s->key, counts, sizeof counts) &&
       store_put(s, &s->key, b->folds, b->n_folds * sizeof *b->folds);
  return ok && store_put(s, &s->key, b->stores, b->n_stores * sizeof *b->stores);
}

/* What is known of that key; NULL where it is new. */
static const cpu_native_known *store_find(const cpu_native_store *s, base_sum key) {
  for (uint32_t i = 0; i < s->known.n; i++) {
    const cpu_native_known *k = &s->known.items[i];
    if (k->key.a == key.a && k->key.b == key.b) return k;
  }
  return NULL;
}

/* The code ends at a multiple of NATIVE_ALIGN. */
static bool store_align(cpu_native_store *s) {
  static const uint8_t none[NATIVE_ALIGN] = {0};
  return store_put(s, &s->code, none, -s->code.n & (NATIVE_ALIGN - 1));
}

/* New code, from a multiple of NATIVE_ALIGN on: of a body, or of a loop. */
static uint32_t store_emit(cpu_native_store *s, const nat_body *b, const nat_loop *l, base_arena *scratch) {
  x86_code c;
  x86_init(&c, s->alloc);
  bool ok = l ? nat_loop_emit(l, &c, scratch, NULL) : nat_emit(b, &c, scratch);
  if (ok) x86_finish(&c);
  ok = ok && !c.failed && store_align(s);
  uint32_t entry = s->code.n, n_addresses = s->addresses.n + c.addresses.n;
  ok = ok && BASE_VEC_RESERVE(s->alloc, &s->addresses, n_addresses) && store_put(s, &s->code, c.bytes.items, c.bytes.n);
  for (uint32_t i = 0; ok && i < c.addresses.n; i++) s->addresses.items[s->addresses.n++] = c.addresses.items[i];
  x86_free(&c);
  return ok ? entry : NAT_NONE;
}

/* The place of the body's code, or NAT_NONE. */
static uint32_t store_code(cpu_native_store *s, const nat_body *b, base_arena *scratch) {
  if (!store_put_key(s, b) || !BASE_VEC_RESERVE(s->alloc, &s->known, s->known.n + 1) || !store_align(s))
    return NAT_NONE;
  base_sum key = base_sum_of((base_sum){0}, s->key.items, s->key.n);
  const cpu_native_known *known = store_find(s, key);
  if (known) return known->n_code ? known->entry : NAT_NONE;
  uint32_t entry = s->code.n, first = s->addresses.n;
  if (!nat_saved_take(s, key)) (void)store_emit(s, b, NULL, scratch);
  s->known.items[s->known.n++] = (cpu_native_known){key, entry, s->code.n - entry, first, s->addresses.n - first};
  return s->code.n > entry ? entry : NAT_NONE;
}

/* The first name of code that several kernels share is its name. */
void cpu_native_name(cpu_native_store *s, const cpu_native_kernel *n, const char *computation, const char *op) {
  if (!n || !s->maps) return;
  for (uint32_t i = 0; i < n->n_parts; i++) cpu_native_name(s, n->parts[i], computation, op);
  cpu_native_name(s, n->cycle, computation, op);
  if (n->entry == NAT_NONE) return;
  for (uint32_t i = 0; i < s->names.n; i++)
    if (s->names.items[i].entry == n->entry) return;
  uint32_t at = s->texts.n, n_code = 0;
  for (uint32_t i = 0; i < s->known.n; i++)
    if (s->known.items[i].entry == n->entry) n_code = s->known.items[i].n_code;
  assert(n_code > 0);
  bool ok = store_put(s, &s->texts, computation, strlen(computation)) && store_put(s, &s->texts, ": ", 2) &&
            store_put(s, &s->texts, op, strlen(op) + 1);
  if (!ok || !BASE_VEC_PUSH(s->alloc, &s->names, ((cpu_native_named){n->entry, n_code, at}))) s->texts.n = at;
}

/* --- kernels --- */

enum {
  NATIVE_MIN_COUNT = 16, /* iterations: below, the VM's way to the first op is the shorter one */
  NATIVE_MIN_ROW = 96,   /* of a row: the VM has ways to put shorter ones side by side */
  NATIVE_SHORT = 32,     /* elements of a row that are done in whole vectors, with a mask, or by the VM */
  NATIVE_SHORTEST = 8,   /* of a row by itself ... */
  NATIVE_MANY_CYCLES = 64,
  NATIVE_MIN_OPS = 32 /* ... and ops on all of them, from which on its beginning and end do not matter */
};

static cpu_native_kernel *cpu_native_of(cpu_native_store *s, const nat_body *b, uint32_t entry, base_arena *arena) {
  cpu_native_kernel *n = base_arena_alloc(arena, sizeof *n + b->n_streams * sizeof *n->streams);
  if (!n) return NULL;
  *n = (cpu_native_kernel){.store = s, .k = b->k, .entry = entry, .lanes = b->lanes, .n_streams = b->n_streams};
  n->sums = b->lanes * b->turns, n->way = (uint8_t)b->way, n->tail = nat_has_tail(b), n->trip = b->trip;
  for (uint32_t i = 0; i < b->n_streams; i++) {
    const nat_stream *t = &b->streams[i];
    /* what was made for the body goes with it */
    const kernel_index *index =
        t->sum || t->number || t->made ? base_arena_memdup(arena, t->index, sizeof *index) : t->index;
    if (!index) return NULL;
    int64_t inner = index->strides[b->k->rank - 1];
    int64_t step = t->number ? inner : (t->gathers ? inner : t->stride) * t->width;
    uint8_t width = t->number ? 1 : t->width;
    n->streams[i] = (cpu_native_stream){t->buffer, t->output,           t->sum,  width, t->number, t->stride,
                                        step,      t->cycle * t->width, t->room, index};
  }
  return n;
}

/* Whether vectors are mostly full where rows are short, and none has to be copied. The VM packs such rows, but is slow
 * on narrow types. */
static bool store_rows_are_vectors(const nat_body *b) {
  const kernel *k = b->k;
  int64_t row = k->extents[k->rank - 1], whole = (row + b->lanes - 1) / b->lanes * b->lanes;
  bool narrow = base_dtype_bytes((base_dtype)k->values[k->stores[0].value].dtype) < 4;
  if (k->rank == 1 || row >= NATIVE_SHORT) return true;
  return row == whole || (nat_has_tail(b) && (narrow || 4 * row >= 3 * whole));
}

/* NULL where it has no way, or not that one. */
static cpu_native_kernel *cpu_native_try(cpu_native_store *s, const kernel *k, cpu_native_way way, base_arena *arena) {
  base_arena scratch;
  nat_body b;
  cpu_native_kernel *n = NULL;
  base_arena_init(&scratch, s->alloc);
  if (nat_lower(&b, k, s->target, way, &scratch) && (way != CPU_NATIVE_LANES || nat_has_tail(&b)) &&
      store_rows_are_vectors(&b)) {
    uint32_t entry = store_code(s, &b, &scratch);
    if (entry != NAT_NONE) n = cpu_native_of(s, &b, entry, arena);
  }
  base_arena_free(&scratch);
  return n;
}

/* Whether rows that are short have enough to do: ops, and, where there are some, what combines their values; or are
 * combined many at a time (cpu_native_run_lanes), where the VM begins anew for each. */
static bool store_rows_are_worth(const kernel *k) {
  int64_t row = k->extents[k->rank - 1], ops = 0;
  if (k->reduction && nat_best_way(k) == CPU_NATIVE_LANES && row == k->reduction->reduced) return true;
  for (uint32_t i = 0; i < k->n_values; i++) ops += k->values[i].kind == KERNEL_OP;
  for (uint32_t i = 0, n = ops ? k->n_stores : 0; i < n; i++) ops += k->stores[i].by != SCALAR_NONE;
  return row >= NATIVE_SHORTEST && ops * row >= NATIVE_MIN_OPS;
}

/* n, which is k's code or NULL, with code for parts of k beside it; NULL where nothing does all of k. */
static cpu_native_kernel *store_cut(cpu_native_store *s, const kernel *k, cpu_native_kernel *n, base_arena *arena) {
  const kernel *parts[NAT_CUT_PARTS];
  const kernel_box *boxes = NULL;
  uint32_t m = k->reduction ? 0 : nat_cut(k, n ? n->lanes : 0, arena, &boxes, parts);
  if (!m) return n;
  cpu_native_kernel *all = n ? n : base_arena_alloc(arena, sizeof *all);
  const cpu_native_kernel **made = BASE_ARRAY(arena, const cpu_native_kernel *, m);
  if (!all || !made) return n;
  for (uint32_t i = 0; i < m; i++)
    if (!(made[i] = cpu_native_try(s, parts[i], CPU_NATIVE_VALUES, arena))) return n;
  if (!n)
    *all = (cpu_native_kernel){.store = s, .k = k, .entry = NAT_NONE, .lanes = 1, .sums = 1, .way = CPU_NATIVE_VALUES};
  all->n_parts = m, all->boxes = boxes, all->parts = made;
  return all;
}

static cpu_native_kernel *store_make(cpu_native_store *s, const kernel *k, bool short_rows, base_arena *arena) {
  cpu_native_way way = nat_best_way(k);
  /* a block must not go over the end of a row, and the VM's do where rows are short */
  if (way == CPU_NATIVE_LANES && short_rows && k->extents[k->rank - 1] != k->reduction->reduced)
    way = CPU_NATIVE_VALUES;
  cpu_native_kernel *n = cpu_native_try(s, k, way, arena);
  if (!n && way != CPU_NATIVE_VALUES) n = cpu_native_try(s, k, CPU_NATIVE_VALUES, arena);
  return store_cut(s, k, n, arena);
}

static bool store_is_short(const kernel *k) {
  return k->rank > 1 && k->extents[k->rank - 1] < NATIVE_MIN_ROW;
}

/* Code for k's cycles; or NULL. */
static const cpu_native_kernel *store_cycle(cpu_native_store *s, const kernel *k, base_arena *arena) {
  base_arena scratch;
  nat_body b;
  nat_cycle c;
  cpu_native_kernel *n = NULL;
  base_arena_init(&scratch, s->alloc);
  if (nat_cycle_of(k, s->target, arena, &c) && nat_lower_cycle(&b, &c, s->target, &scratch)) {
    uint32_t entry = store_code(s, &b, &scratch);
    if (entry != NAT_NONE) n = cpu_native_of(s, &b, entry, arena);
  }
  base_arena_free(&scratch);
  return n;
}

/* Whether little is left to others: rows are whole cycles, or many. */
static bool store_goes_by_cycles(const cpu_native_kernel *cycle) {
  int64_t row = cycle->k->extents[cycle->k->rank - 1];
  return row % cycle->trip == 0 || row / cycle->trip >= NATIVE_MANY_CYCLES;
}

/* Where rows are short, those of the same iterations may be longer, and most of them cycles. */
const cpu_native_kernel *cpu_native_make(cpu_native_store *s, const kernel *k, base_arena *arena) {
  if (!s || s->pages || k->count < NATIVE_MIN_COUNT) return NULL;
  k = nat_narrow(k, arena);
  bool short_rows = store_is_short(k);
  cpu_native_kernel *n = NULL;
  if (!short_rows || store_rows_are_worth(k)) n = store_make(s, k, short_rows, arena);
  if (n || !short_rows) return n;
  const cpu_native_kernel *cycle = store_cycle(s, k, arena);
  const kernel *flat = nat_flatten(k, s->target, cycle != NULL, arena);
  n = flat ? store_make(s, flat, true, arena) : NULL;
  if (!cycle) return n;
  if (!n && store_goes_by_cycles(cycle) && (n = base_arena_alloc(arena, sizeof *n)))
    *n = (cpu_native_kernel){.store = s, .k = k, .entry = NAT_NONE, .lanes = 1, .sums = 1, .way = CPU_NATIVE_VALUES};
  if (n) n->cycle = cycle;
  return n;
}

/* --- text --- */

static bool store_put_text(base_text *out, const kernel *k, const nat_target *target, cpu_native_way way,
                           base_alloc alloc) {
  base_arena scratch;
  nat_body b;
  x86_code c;
  size_t before = out->n;
  x86_init(&c, alloc);
  base_arena_init(&scratch, alloc);
  c.text = out;
  bool ok = nat_lower(&b, k, target, way, &scratch) && (way != CPU_NATIVE_LANES || nat_has_tail(&b)) &&
            store_rows_are_vectors(&b) && nat_emit(&b, &c, &scratch);
  base_arena_free(&scratch);
  x86_free(&c);
  if (!ok) out->n = before;
  return ok;
}

static bool store_put_kernel(base_text *out, const kernel *k, const nat_target *target, base_alloc alloc) {
  return store_put_text(out, k, target, nat_best_way(k), alloc) ||
         store_put_text(out, k, target, CPU_NATIVE_VALUES, alloc);
}

static bool store_put_cycle(base_text *out, const kernel *k, const nat_target *target, base_arena *scratch,
                            base_alloc alloc) {
  nat_body b;
  nat_cycle c;
  x86_code code;
  size_t before = out->n;
  x86_init(&code, alloc);
  code.text = out;
  bool ok = nat_cycle_of(k, target, scratch, &c);
  if (ok) base_putf(out, "# by cycles of %u iterations\n", c.trip);
  ok = ok && nat_lower_cycle(&b, &c, target, scratch) && nat_emit(&b, &code, scratch);
  x86_free(&code);
  if (!ok) out->n = before;
  return ok;
}

/* Of short rows the kernel that they become is said first. */
static bool store_put_flat(base_text *out, const kernel *k, const nat_target *target, base_alloc alloc) {
  base_arena scratch;
  size_t before = out->n;
  base_arena_init(&scratch, alloc);
  bool cycle = store_put_cycle(out, k, target, &scratch, alloc);
  k = nat_flatten(k, target, cycle, &scratch);
  if (k) BASE_PUT(out, "# by longer rows, as\n"), kernel_put(out, k);
  bool ok = k && store_put_kernel(out, k, target, alloc);
  base_arena_free(&scratch);
  if (!ok && !cycle) out->n = before;
  return ok || cycle;
}

bool cpu_native_put(base_text *out, const kernel *k, base_alloc alloc) {
  const nat_target *target = nat_target_of();
  base_arena scratch;
  if (!target) return false;
  base_arena_init(&scratch, alloc);
  k = nat_narrow(k, &scratch);
  bool is_short = store_is_short(k);
  bool ok = (!is_short || store_rows_are_worth(k)) && store_put_kernel(out, k, target, alloc);
  ok = ok || (is_short && store_put_flat(out, k, target, alloc));
  base_arena_free(&scratch);
  return ok;
}

bool cpu_native_does_all(const cpu_native_kernel *n) {
  return n->entry != NAT_NONE || n->n_parts;
}

bool cpu_native_is_ready(const cpu_native_kernel *n) {
  return n && n->store->pages && cpu_native_does_all(n);
}

bool cpu_native_has_cycles(const cpu_native_kernel *n) {
  return n && n->store->pages && n->cycle;
}

/* --- loops --- */

const nat_target *cpu_native_store_target(const cpu_native_store *s) {
  return s ? s->target : NULL;
}

const cpu_native_loop *cpu_native_loop_make(cpu_native_store *s, const nat_loop *l, base_arena *arena,
                                            const char *name) {
  base_arena scratch;
  cpu_native_loop *n = BASE_NEW(arena, cpu_native_loop);
  base_arena_init(&scratch, s->alloc);
  uint32_t entry = n && !s->pages ? store_emit(s, NULL, l, &scratch) : NAT_NONE;
  base_arena_free(&scratch);
  if (entry == NAT_NONE) return NULL;
  uint32_t at = s->texts.n;
  if (s->maps && (!store_put(s, &s->texts, name, strlen(name) + 1) ||
                  !BASE_VEC_PUSH(s->alloc, &s->names, ((cpu_native_named){entry, s->code.n - entry, at}))))
    s->texts.n = at;
  *n = (cpu_native_loop){s, entry};
  return n;
}

bool cpu_native_loop_is_ready(const cpu_native_loop *n) {
  return n && n->store->pages;
}

int64_t cpu_native_loop_poll(const cpu_native_poll *poll) {
  return poll->ask(poll->ctx);
}

typedef int64_t store_loop_fn(nat_arguments *a);
bool cpu_native_loop_run(const cpu_native_loop *l, const void *const *arrays, uint32_t n, const cpu_native_poll *poll) {
  nat_arguments a = {.n = NAT_LOOP_POLL};
  assert(n <= NAT_LOOP_ARRAYS && cpu_native_loop_is_ready(l));
  if (n) memcpy(a.at, arrays, n * sizeof *arrays);
  a.at[NAT_LOOP_ARRAYS] = poll;
  return ((store_loop_fn *)(uintptr_t)((char *)l->store->pages + l->entry))(&a) == 0;
}
#else
int cpu_native_store_create(base_alloc alloc, cpu_native_store **out, xlac_error *err) {
  (void)alloc;
  (void)err;
  *out = NULL;
  return 0;
}
void cpu_native_store_use(cpu_native_store *s, const rt_saved_code *saved) {
  (void)s, (void)saved;
}
void cpu_native_store_destroy(cpu_native_store *s) {
  assert(!s);
}
void cpu_native_store_seal(cpu_native_store *s) {
  assert(!s);
}
const cpu_native_kernel *cpu_native_make(cpu_native_store *s, const kernel *k, base_arena *arena) {
  assert(!s);
  (void)k;
  (void)arena;
  return NULL;
}
void cpu_native_name(cpu_native_store *s, const cpu_native_kernel *n, const char *computation, const char *op) {
  assert(!s && !n);
  (void)computation;
  (void)op;
}
bool cpu_native_is_ready(const cpu_native_kernel *n) {
  (void)n;
  return false;
}
bool cpu_native_has_cycles(const cpu_native_kernel *n) {
  (void)n;
  return false;
}
bool cpu_native_does_all(const cpu_native_kernel *n) {
  (void)n;
  return false;
}
const nat_target *cpu_native_store_target(const cpu_native_store *s) {
  (void)s;
  return NULL;
}
const cpu_native_loop *cpu_native_loop_make(cpu_native_store *s, const nat_loop *l, base_arena *arena,
                                            const char *name) {
  (void)s, (void)l, (void)arena, (void)name;
  return NULL;
}
bool cpu_native_loop_is_ready(const cpu_native_loop *n) {
  (void)n;
  return false;
}
int64_t cpu_native_loop_poll(const cpu_native_poll *poll) {
  return poll->ask(poll->ctx);
}
bool cpu_native_loop_run(const cpu_native_loop *l, const void *const *arrays, uint32_t n, const cpu_native_poll *poll) {
  (void)l, (void)arrays, (void)n, (void)poll;
  return false;
}
bool cpu_native_put(base_text *out, const kernel *k, base_alloc alloc) {
  (void)out, (void)k, (void)alloc;
  return false;
}
#endif

cpu_native_way cpu_native_way_of(const cpu_native_kernel *n) {
  return (cpu_native_way)n->way;
}

int64_t cpu_native_lanes(const cpu_native_kernel *n) {
  return n->sums;
}
