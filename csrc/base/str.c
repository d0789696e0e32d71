/* Interned strings and the text buffer of printers.
 *
 * The interner is an open-addressing table of hashes beside a table of pointers: a search walks over the hashes, four
 * bytes each, and looks at a string only where its hash is equal. Tables are at most half full. */
#include "str.h"

#include <stdio.h>

enum { FIRST_SLOTS = 64, FIRST_TEXT = 256 };
#define LONGEST (UINT32_MAX - sizeof(base_istr)) /* strings are shorter */

/* From any address. */
static uint64_t load_u64(const char *p) {
  uint64_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

/* Both halves of the product, so that every bit of both factors counts. */
static uint64_t fold_product(uint64_t a, uint64_t b) {
  unsigned __int128 p = (unsigned __int128)a * b;
  return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* The last n < 8 bytes as one number, without reading past them. */
static uint64_t load_tail(const char *p, size_t n) {
  assert(n < 8);
  uint64_t v = 0;
  memcpy(&v, p, n);
  return v;
}

/* Not for input that an enemy chooses: equal hashes only cost time. */
uint32_t base_hash(const char *s, size_t n) {
  assert(s || n == 0);
  const uint64_t k = 0xA0761D6478BD642Fu, mix = 0xE7037ED1A0B428DBu;
  uint64_t h = k ^ n;
  for (; n >= 8; n -= 8, s += 8) h = fold_product(h ^ load_u64(s), mix);
  h = fold_product(h ^ load_tail(s, n), k);
  return (uint32_t)(h ^ (h >> 32));
}

/* What an interner's table holds. Programs number their values: names that differ in their last digit differ here in
 * the low bits only, so that ten names of a row meet in one cache line. Never 0, which means an empty slot. */
uint32_t base_name_hash(const char *s, size_t n) {
  uint32_t h = n ? (base_hash(s, n - 1) & ~15u) | ((unsigned char)s[n - 1] & 15) : 0;
  return h ? h : 16;
}

void base_interner_init(base_interner *t, base_arena *arena) {
  *t = (base_interner){.arena = arena};
}

void base_interner_free(base_interner *t) {
  base_free(t->arena->alloc, (void *)t->slots);
  *t = (base_interner){.arena = t->arena};
}

/* The slot with the string, or the empty one where it belongs. */
static uint32_t slot_for_text(const base_interner *t, const char *s, size_t n, uint32_t hash) {
  assert(t->cap && (t->cap & (t->cap - 1)) == 0);
  uint32_t i = hash & (t->cap - 1);
  for (; t->hashes[i]; i = (i + 1) & (t->cap - 1)) {
    if (t->hashes[i] != hash) continue;
    const base_istr *e = t->slots[i];
    if (e->n == n && memcmp(e->s, s, n) == 0) break;
  }
  return i;
}

/* Pointers and hashes in one block; strings stay where they are. */
static bool resize_interner(base_interner *t, uint32_t cap) {
  assert((cap & (cap - 1)) == 0 && cap > t->n);
  const base_istr **slots = base_malloc(t->arena->alloc, cap * (sizeof *slots + sizeof(uint32_t)));
  if (!slots) return false;
  uint32_t *hashes = (uint32_t *)(slots + cap);
  memset(hashes, 0, cap * sizeof *hashes);
  for (uint32_t i = 0; i < t->cap; ++i) {
    if (!t->hashes[i]) continue;
    uint32_t j = t->hashes[i] & (cap - 1);
    while (hashes[j]) j = (j + 1) & (cap - 1);
    hashes[j] = t->hashes[i];
    slots[j] = t->slots[i];
  }
  base_free(t->arena->alloc, (void *)t->slots);
  t->slots = slots;
  t->hashes = hashes;
  t->cap = cap;
  return true;
}

static bool grow_interner(base_interner *t) {
  return t->cap <= UINT32_MAX / 4 && resize_interner(t, t->cap ? t->cap * 2 : FIRST_SLOTS);
}

bool base_interner_reserve(base_interner *t, uint32_t n) {
  uint32_t cap = FIRST_SLOTS;
  while (cap / 2 <= n && cap <= UINT32_MAX / 4) cap *= 2;
  return cap <= t->cap || resize_interner(t, cap);
}

static base_istr *new_istr(base_arena *arena, const char *s, size_t n, uint32_t hash) {
  assert(n < UINT32_MAX);
  base_istr *e = base_arena_aligned(arena, sizeof(base_istr) + n + 1, _Alignof(base_istr));
  if (!e) return NULL;
  e->n = (uint32_t)n;
  e->hash = hash;
  if (n) memcpy(e->s, s, n);
  e->s[n] = 0;
  return e;
}

/* Copied: s may be anybody's. */
const base_istr *base_intern_hashed(base_interner *t, const char *s, size_t n, uint32_t hash) {
  assert(t->arena && n < LONGEST && hash == base_name_hash(s, n));
  if (t->n >= t->cap / 2 && !grow_interner(t)) return NULL;
  uint32_t i = slot_for_text(t, s, n, hash);
  if (t->hashes[i]) return t->slots[i];
  base_istr *e = new_istr(t->arena, s, n, hash);
  if (!e) return NULL;
  t->slots[i] = e;
  t->hashes[i] = hash;
  t->n++;
  assert(t->n < t->cap);
  return e;
}

const base_istr *base_intern(base_interner *t, const char *s, size_t n) {
  if (n >= LONGEST) return NULL;
  if (!s) s = "";
  return base_intern_hashed(t, s, n, base_name_hash(s, n));
}

/* Adds nothing. */
const base_istr *base_intern_find(const base_interner *t, const char *s, size_t n) {
  if (t->n == 0) return NULL;
  if (!s) s = "";
  uint32_t i = slot_for_text(t, s, n, base_name_hash(s, n));
  return t->hashes[i] ? t->slots[i] : NULL;
}

void base_text_init(base_text *t, base_alloc alloc) {
  *t = (base_text){.alloc = alloc};
}

void base_text_free(base_text *t) {
  base_free(t->alloc, t->s);
  *t = (base_text){.alloc = t->alloc};
}

/* Closing the spare room sends every later write here, where it is dropped: the text never has a hole. */
static bool fail_text(base_text *t) {
  t->failed = true;
  t->cap = t->n;
  return false;
}

/* At least doubles. more == 0 comes from empty writes to a buffer without memory, and is nothing to do. */
bool base_text_grow(base_text *t, size_t more) {
  assert(t->n <= t->cap);
  if (more == 0) return false;
  size_t need;
  if (t->failed || !base_add(t->n, more, &need) || need > PTRDIFF_MAX) return fail_text(t);
  size_t doubled = t->cap < PTRDIFF_MAX / 2 ? t->cap * 2 : PTRDIFF_MAX;
  size_t cap = doubled > need ? doubled : need;
  if (cap < FIRST_TEXT) cap = FIRST_TEXT;
  char *s = base_realloc(t->alloc, t->s, cap);
  if (!s) return fail_text(t);
  t->s = s;
  t->cap = cap;
  return true;
}

void base_put_i64(base_text *t, int64_t v) {
  if (v < 0) base_putc(t, '-');
  base_put_u64(t, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void base_put_u64(base_text *t, uint64_t v) {
  char digits[20], *p = digits + sizeof digits;
  do {
    *--p = (char)('0' + v % 10);
    v /= 10;
  } while (v);
  base_put(t, p, (size_t)(digits + sizeof digits - p));
}

/* Into the room that is there, and again where that was too little. */
static void put_formatted(base_text *t, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  size_t room = t->cap - t->n;
  int n = vsnprintf(room ? t->s + t->n : NULL, room, format, args);
  if (n < 0) {
    fail_text(t);
  } else if ((size_t)n < room) {
    t->n += (size_t)n;
  } else if (base_text_grow(t, (size_t)n + 1)) { /* snprintf wants room for its 0 too */
    vsnprintf(t->s + t->n, t->cap - t->n, format, again);
    t->n += (size_t)n;
  }
  va_end(again);
}

/* "%s" and decimals without a width, by far the most: what stands behind it; NULL: another one. */
__attribute__((cold)) static const char *put_item(base_text *t, const char *item, va_list *args) {
  const bool wide = item[1] == 'l' && item[2] == 'l';
  const char *s;
  switch (item[wide ? 3 : 1]) {
    case 's':
      if (wide) return NULL;
      s = va_arg(*args, const char *);
      base_puts(t, s ? s : "(null)");
      break;
    case 'd':
      base_put_i64(t, wide ? va_arg(*args, long long) : va_arg(*args, int));
      break;
    case 'u':
      base_put_u64(t, wide ? va_arg(*args, unsigned long long) : va_arg(*args, unsigned));
      break;
    default:
      return NULL;
  }
  return item + (wide ? 4 : 2);
}

/* What is simple is written here: printf takes many times as long where a library in the process has conversions of its
 * own, as Fortran's for quadruple precision, which NumPy brings along. */
void base_putf(base_text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  for (;;) {
    size_t n = strcspn(format, "%");
    base_put(t, format, n);
    if (!format[n]) break;
    const char *behind = put_item(t, format + n, &args);
    if (!behind) {
      put_formatted(t, format + n, args);
      break;
    }
    format = behind;
  }
  va_end(args);
}

/* The 0 lies behind the text and is written over by the next write. */
char *base_text_cstr(base_text *t) {
  if (t->failed) return NULL;
  if (t->cap == t->n && !base_text_grow(t, 1)) return NULL;
  t->s[t->n] = 0;
  return t->s;
}

/* Bytes above 0x7F go through as they are. */
void base_put_json(base_text *t, const char *s, size_t n) {
  assert(s || n == 0);
  base_putc(t, '"');
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)s[i];
    if (c == '"' || c == '\\')
      base_putf(t, "\\%c", c);
    else if (c < 0x20)
      base_putf(t, "\\u%04x", c);
    else
      base_putc(t, (char)c);
  }
  base_putc(t, '"');
}
