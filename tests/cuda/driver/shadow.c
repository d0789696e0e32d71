/* Shadow memory: for each cell of 4 bytes (or 2, or 1, once something so small is touched) of every allocation, which
 * thread of which op wrote it last, and which read it since. Two accesses of one cell, one of them a write, are a race
 * unless one is ordered before the other: by streams, events and the host between ops (clocks.c); by barriers and warps
 * within a block; by atomics behind a fence between blocks. Addresses are found by a table of two levels over pages of
 * 4096 bytes. Under sim.executing, but for shadow_add and shadow_find, which only need sim.lock. */
#include "sim.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BITS = 12, PAGE = 1 << PAGE_BITS, LOW_BITS = 18, HIGH_BITS = 18 };
static sim_page **tables[1 << HIGH_BITS];
toucher touch;

/* ---- sets of ops that read a cell and are not ordered ---- */

enum { SET = 0x80000000u };
typedef struct reader_set {
  uint32_t n, *ids;
} reader_set;
static struct {
  reader_set *sets;
  uint32_t n, room;
  uint32_t from, op, to; /* what was asked last: the set `from` with `op` is `to` */
} readers;

static uint32_t set_of(const uint32_t *ids, uint32_t n) {
  for (uint32_t i = readers.n > 64 ? readers.n - 64 : 0; i < readers.n; i++)
    if (readers.sets[i].n == n && memcmp(readers.sets[i].ids, ids, n * sizeof *ids) == 0) return SET | i;
  if (readers.n == readers.room) {
    readers.room = readers.room * 2 + 64;
    readers.sets = realloc(readers.sets, readers.room * sizeof *readers.sets);
  }
  reader_set *s = &readers.sets[readers.n];
  s->n = n;
  s->ids = malloc(n * sizeof *ids);
  memcpy(s->ids, ids, n * sizeof *ids);
  return SET | readers.n++;
}

static const uint32_t *members(const uint32_t *id, uint32_t *n) {
  *n = 1;
  if ((*id & SET) == 0) return id;
  const reader_set *s = &readers.sets[*id & ~SET];
  *n = s->n;
  return s->ids;
}

/* The readers of a cell when `op` is one more: those that are ordered before it are forgotten. */
static uint32_t with_reader(uint32_t id, sim_op *op) {
  if (readers.from == id && readers.op == op->id) return readers.to;
  uint32_t n, kept = 0, ids[64];
  const uint32_t *old = members(&id, &n);
  for (uint32_t i = 0; i < n && kept < 63; i++)
    if (!clock_before(old[i], op)) ids[kept++] = old[i];
  ids[kept++] = op->id;
  uint32_t result = kept == 1 ? op->id : set_of(ids, kept);
  readers.from = id, readers.op = op->id, readers.to = result;
  return result;
}

/* ---- pages ---- */

sim_page *shadow_page(address at) {
  sim_page **table =
      __atomic_load_n(&tables[(at >> (PAGE_BITS + LOW_BITS)) & ((1 << HIGH_BITS) - 1)], __ATOMIC_ACQUIRE);
  if (table == NULL) return NULL;
  sim_page *page = __atomic_load_n(&table[(at >> PAGE_BITS) & ((1 << LOW_BITS) - 1)], __ATOMIC_ACQUIRE);
  return page != NULL && !page->gone ? page : NULL;
}

static sim_page **slot_of(address at) {
  sim_page ***table = &tables[(at >> (PAGE_BITS + LOW_BITS)) & ((1 << HIGH_BITS) - 1)];
  if (*table == NULL) __atomic_store_n(table, calloc(1 << LOW_BITS, sizeof(sim_page *)), __ATOMIC_RELEASE);
  return &(*table)[(at >> PAGE_BITS) & ((1 << LOW_BITS) - 1)];
}

void shadow_add(allocation *a) {
  address last = a->at + (a->bytes > 0 ? a->bytes - 1 : 0);
  for (address p = a->at & ~(address)(PAGE - 1); p <= last; p += PAGE) {
    sim_page **slot = slot_of(p);
    if (*slot != NULL) { /* an address that is used again, or a page in which two pieces of pinned memory meet */
      if (!(*slot)->owner->freed) continue;
      free((*slot)->cells);
      free(*slot);
    }
    sim_page *page = calloc(1, sizeof *page);
    page->owner = a;
    page->shift = 2;
    __atomic_store_n(slot, page, __ATOMIC_RELEASE);
  }
}

/* Its cells are not needed any more; its pages stay, to say that it is gone. */
void shadow_remove(allocation *a) {
  address last = a->at + (a->bytes > 0 ? a->bytes - 1 : 0);
  for (address p = a->at & ~(address)(PAGE - 1); p <= last; p += PAGE) {
    sim_page *page = shadow_page(p);
    if (page == NULL || page->owner != a) continue;
    free(page->cells);
    page->cells = NULL;
    page->shift = 2;
  }
}

void shadow_forget(address at, size_t bytes) {
  for (address p = at & ~(address)(PAGE - 1); p < at + bytes; p += PAGE) {
    sim_page *page = shadow_page(p);
    if (page != NULL && page->owner->freed) page->gone = true;
  }
}

allocation *shadow_find(address at) {
  sim_page *page = shadow_page(at);
  if (page == NULL || at < page->owner->at || at >= page->owner->at + (page->owner->bytes > 0 ? page->owner->bytes : 1))
    return NULL;
  return page->owner;
}

static void make_cells(sim_page *page, uint32_t shift) {
  sim_cell *cells = calloc((size_t)PAGE >> shift, sizeof *cells);
  if (page->cells != NULL) {
    for (uint32_t i = 0; i < (uint32_t)PAGE >> shift; i++) cells[i] = page->cells[i >> (page->shift - shift)];
    free(page->cells);
  }
  page->cells = cells;
  page->shift = (uint8_t)shift;
}

static void fit_cells(sim_page *page, address at, uint32_t bytes) {
  uint32_t shift = page->shift;
  while (shift > 0 && ((at | bytes) & ((1u << shift) - 1)) != 0) shift--;
  if (page->cells == NULL || shift < page->shift) make_cells(page, shift);
}

/* ---- races ---- */

static bool same_launch_conflict(const sim_mark *m) {
  const sim_mark *now = &touch.mark;
  if (m->block != now->block || (m->thread & MARK_BLOCKS) != 0)
    return touch.acquired == NULL || (m->thread & MARK_BLOCKS) != 0 ||
           (touch.acquired[m->block / 64] >> (m->block % 64) & 1) == 0;
  if (m->epoch < now->epoch) return false;
  uint32_t other = m->thread & MARK_THREAD, mine = now->thread & MARK_THREAD;
  if (other == mine && (m->thread & (MARK_MANY | MARK_WARPS)) == 0) return false;
  if (other / 32 == mine / 32 && (m->thread & MARK_WARPS) == 0 && m->warp_epoch != now->warp_epoch) return false;
  return true;
}

static bool conflict(const sim_mark *m, uint32_t *with) {
  if (m->op == 0) return false;
  if (m->op == touch.op->id) return *with = m->op, same_launch_conflict(m);
  uint32_t n;
  const uint32_t *ids = members(&m->op, &n);
  for (uint32_t i = 0; i < n; i++) {
    *with = ids[i];
    if (ids[i] == touch.op->id ? same_launch_conflict(m) : !clock_before(ids[i], touch.op)) return true;
  }
  return false;
}

static const char *verb(access_kind kind) {
  return kind == ACCESS_READ ? "reads" : kind == ACCESS_WRITE ? "writes" : "updates";
}

static void place(address at, const allocation *a, char *out, size_t bytes) {
  const char *kinds[] = {"device memory", "pinned host memory", "shared memory"};
  const sim_shared *v =
      a->kind == MEMORY_SHARED && touch.kernel != NULL ? module_shared(touch.kernel->module, at) : NULL;
  if (v != NULL)
    snprintf(out, bytes, "byte %llu of shared '%s' of %zu bytes", (unsigned long long)(at - v->at), v->name, v->bytes);
  else
    snprintf(out, bytes, "byte %lld of the %zu bytes of %s at 0x%llx (allocation %llu)", (long long)(at - a->at),
             a->bytes, kinds[a->kind], (unsigned long long)a->at, (unsigned long long)a->number);
}

static int report_race(address at, const allocation *a, access_kind kind, const sim_mark *m, uint32_t with,
                       bool wrote) {
  char first[256], then[256], where[160], who[64] = "", other[64] = "";
  place(at, a, where, sizeof where);
  sim_mark_thread_text(&touch.mark, who, sizeof who);
  if (with == touch.op->id) sim_mark_thread_text(m, other, sizeof other);
  return report(LAUNCH_FAILED, "race: %s%s %s %s, which %s%s %s; nothing orders them",
                clock_text(touch.op->id, then, sizeof then), who, verb(kind), where,
                with == touch.op->id ? "another thread" : clock_text(with, first, sizeof first), other,
                wrote ? "writes" : "reads");
}

static void note_read(sim_mark *m) {
  const sim_mark *now = &touch.mark;
  if (m->op == now->op && m->block == now->block && m->epoch == now->epoch) {
    uint32_t other = m->thread & MARK_THREAD, mine = now->thread & MARK_THREAD;
    if (other / 32 != mine / 32) m->thread |= MARK_WARPS;
    if (other != mine) m->thread |= MARK_MANY;
    m->warp_epoch = now->warp_epoch;
    return;
  }
  bool blocks = m->op == now->op && (m->block != now->block || (m->thread & MARK_BLOCKS) != 0);
  uint32_t op = m->op == 0 || m->op == now->op ? now->op : with_reader(m->op, touch.op);
  *m = *now;
  m->op = op;
  if (blocks) m->thread |= MARK_BLOCKS;
}

static void note_write(sim_cell *c, access_kind kind) {
  sim_mark mark = touch.mark;
  if (kind == ACCESS_ATOMIC) {
    mark.thread |= MARK_ATOMIC;
    const sim_mark *m = &c->write;
    if (m->op == mark.op && (m->thread & MARK_ATOMIC) != 0) { /* a later plain access has to be after all of them */
      if (m->block != mark.block)
        mark.thread |= MARK_BLOCKS;
      else if (m->epoch == mark.epoch && (m->thread & MARK_THREAD) != (mark.thread & MARK_THREAD))
        mark.thread |= MARK_MANY | MARK_WARPS;
      mark.thread |= m->thread & MARK_BLOCKS;
    }
  }
  c->write = mark;
  c->read.op = 0;
}

static int touch_cell(sim_page *page, sim_cell *c, address at, access_kind kind) {
  uint32_t with = 0;
  const allocation *a = page->owner;
  bool atomics = kind == ACCESS_ATOMIC && (c->write.thread & MARK_ATOMIC) != 0 && c->write.op == touch.op->id;
  if (!atomics && conflict(&c->write, &with)) return report_race(at, a, kind, &c->write, with, true);
  if (kind == ACCESS_READ) return note_read(&c->read), SUCCESS;
  if (conflict(&c->read, &with)) return report_race(at, a, kind, &c->read, with, false);
  note_write(c, kind);
  return SUCCESS;
}

/* Shared memory is new in each block: marks of others are as good as none. */
static int touch_shared(sim_page *page, sim_cell *c, address at, access_kind kind) {
  const sim_mark *now = &touch.mark;
  if (c->write.op != now->op || c->write.block != now->block) memset(c, 0, sizeof *c);
  if (c->read.op != now->op || c->read.block != now->block) memset(&c->read, 0, sizeof c->read);
  if (c->write.op == 0 && kind != ACCESS_WRITE) {
    char text[256], where[160], who[64];
    place(at, page->owner, where, sizeof where);
    sim_mark_thread_text(now, who, sizeof who);
    return report(LAUNCH_FAILED, "uninitialised shared memory: %s%s %s %s, which nothing in this block has written",
                  clock_text(touch.op->id, text, sizeof text), who, verb(kind), where);
  }
  return touch_cell(page, c, at, kind);
}

static int touch_cells(sim_page *page, address at, uint32_t bytes, access_kind kind) {
  fit_cells(page, at, bytes);
  uint32_t first = (uint32_t)(at & (PAGE - 1)) >> page->shift,
           last = (uint32_t)((at + bytes - 1) & (PAGE - 1)) >> page->shift;
  for (uint32_t i = first; i <= last; i++) {
    sim_cell *c = &page->cells[i];
    address place_of = (at & ~(address)(PAGE - 1)) + ((address)i << page->shift);
    if (sim.uninitialised && kind == ACCESS_READ && c->write.op == 0 && page->owner->kind == MEMORY_DEVICE) {
      char text[256];
      return report(LAUNCH_FAILED, "uninitialised memory: %s reads 0x%llx, which nothing has written",
                    clock_text(touch.op->id, text, sizeof text), (unsigned long long)place_of);
    }
    int result = page->owner->kind == MEMORY_SHARED ? touch_shared(page, c, place_of, kind)
                                                    : touch_cell(page, c, place_of, kind);
    if (result != SUCCESS) return result;
  }
  return SUCCESS;
}

/* ---- bounds ---- */

static int outside(address at, size_t bytes, access_kind kind, const allocation *a) {
  char text[256], who[64], where[160] = "no allocation is there";
  sim_mark_thread_text(&touch.mark, who, sizeof who);
  if (a != NULL) place(at, a, where, sizeof where);
  return report(ILLEGAL_ADDRESS, "out of bounds: %s%s %s %zu bytes at 0x%llx: %s",
                clock_text(touch.op->id, text, sizeof text), who, verb(kind), bytes, (unsigned long long)at, where);
}

static int check_alive(address at, size_t bytes, access_kind kind, allocation *a) {
  char text[256], other[256], who[64];
  sim_mark_thread_text(&touch.mark, who, sizeof who);
  if (a->freed)
    return report(ILLEGAL_ADDRESS,
                  "use after free: %s%s %s %zu bytes at 0x%llx, in an allocation of %zu bytes that was freed by %s",
                  clock_text(touch.op->id, text, sizeof text), who, verb(kind), bytes, (unsigned long long)at, a->bytes,
                  a->gone != 0 ? clock_text(a->gone, other, sizeof other) : "the host");
  if (a->made != 0 && a->made != touch.op->id && !clock_before(a->made, touch.op))
    return report(ILLEGAL_ADDRESS, "use before allocation: %s%s %s 0x%llx, which %s makes; nothing orders them",
                  clock_text(touch.op->id, text, sizeof text), who, verb(kind), (unsigned long long)at,
                  clock_text(a->made, other, sizeof other));
  return SUCCESS;
}

/* Variables in shared memory lie in one section, with guards between. */
static int check_variable(address at, uint32_t bytes, access_kind kind) {
  if (touch.kernel == NULL || touch.kernel->module->section == NULL) return SUCCESS;
  const allocation *section = touch.kernel->module->section;
  if (at < section->at || at >= section->at + section->bytes) return SUCCESS;
  const sim_shared *v = module_shared(touch.kernel->module, at);
  if (v != NULL && at >= v->at && at + bytes <= v->at + v->bytes) return SUCCESS;
  return outside(at, bytes, kind, section);
}

/* A kernel sees the memory of its own device: nobody here asks for access to a peer's. */
static int check_own(address at, const allocation *a) {
  int device = touch.kernel->module->device->ordinal;
  if (a->kind != MEMORY_DEVICE || a->device == device) return SUCCESS;
  return report(ILLEGAL_ADDRESS, "of another device: kernel %s on device %d touches 0x%llx of device %d",
                touch.kernel->name, device, (unsigned long long)at, a->device);
}

int shadow_access(address at, uint32_t bytes, access_kind kind) {
  if (at >= touch.stack_low && at < touch.stack_high) return SUCCESS;
  if (++touch.accesses > touch.most_accesses && touch.most_accesses > 0)
    return report(LAUNCH_TIMEOUT, "no end: kernel %s has touched memory %llu times", touch.kernel->name,
                  (unsigned long long)touch.accesses);
  sim_page *page = shadow_page(at);
  if (page == NULL || (at < page->owner->at && page->owner->kind == MEMORY_SHARED))
    return touch.kernel != NULL && module_holds(touch.kernel->module, at) ? SUCCESS : outside(at, bytes, kind, NULL);
  allocation *a = page->owner;
  if (at < a->at || at + bytes > a->at + a->bytes) {
    if (a->kind == MEMORY_SHARED && module_holds(touch.kernel->module, at)) return SUCCESS;
    return outside(at, bytes, kind, a);
  }
  int result = a->kind == MEMORY_SHARED ? check_variable(at, bytes, kind) : check_own(at, a);
  if (result == SUCCESS && (a->freed || a->made >= touch.op->floor)) result = check_alive(at, bytes, kind, a);
  if (result != SUCCESS) return result;
  uint32_t in_page = PAGE - (uint32_t)(at & (PAGE - 1));
  if (bytes <= in_page) return touch_cells(page, at, bytes, kind);
  result = touch_cells(page, at, in_page, kind);
  return result != SUCCESS ? result : touch_cells(shadow_page(at + in_page), at + in_page, bytes - in_page, kind);
}

int shadow_range(address at, size_t bytes, access_kind kind) {
  if (bytes == 0) return SUCCESS;
  allocation *a = shadow_find(at);
  if (a == NULL || at + bytes > a->at + a->bytes) {
    sim_page *page = shadow_page(at);
    return outside(at, bytes, kind, page != NULL ? page->owner : NULL);
  }
  int result = check_alive(at, bytes, kind, a);
  while (result == SUCCESS && bytes > 0) {
    size_t n = PAGE - (at & (PAGE - 1));
    if (n > bytes) n = bytes;
    result = touch_cells(shadow_page(at), at, (uint32_t)n, kind);
    at += n;
    bytes -= n;
  }
  return result;
}
