/* Strings: borrowed slices, interned strings, and a growable text buffer for printers. */
#ifndef XLAC_BASE_STR_H
#define XLAC_BASE_STR_H

#include "memory.h"
#include "status.h"

/* A borrowed run of bytes, not terminated. */
typedef struct base_slice {
  const char *p;
  size_t n;
} base_slice;

#define BASE_SLICE(literal) ((base_slice){(literal), sizeof(literal) - 1})
/* Borrows a terminated string. */
static inline base_slice base_slice_of(const char *s) {
  return (base_slice){s, strlen(s)};
}
/* Byte by byte; s is terminated. */
static inline bool base_slice_is(base_slice a, const char *s) {
  return strlen(s) == a.n && memcmp(a.p, s, a.n) == 0;
}

/* An interned, immutable string: within one table equal strings are one pointer. s is terminated by 0 (and may hold
 * others). */
typedef struct base_istr {
  uint32_t n;
  uint32_t hash;
  char s[];
} base_istr;

/* A search goes over the hashes alone, and looks at strings only where these are equal. */
typedef struct base_interner {
  base_arena *arena;       /* the strings live here */
  uint32_t *hashes;        /* 0: an empty slot */
  const base_istr **slots; /* in one block with the hashes */
  uint32_t n, cap;         /* cap is a power of two */
} base_interner;

/* The table borrows the arena: strings live as long as that, whatever becomes of the table. */
void base_interner_init(base_interner *t, base_arena *arena);
void base_interner_free(base_interner *t); /* the table; the strings go with the arena */
/* Makes room for n strings in all, so that a table whose size is foreseen does not grow in steps. */
bool base_interner_reserve(base_interner *t, uint32_t n);
/* NULL when out of memory. */
const base_istr *base_intern(base_interner *t, const char *s, size_t n);
/* The same where the string's base_name_hash is known. s is not NULL, and under 4 GB long. */
const base_istr *base_intern_hashed(base_interner *t, const char *s, size_t n, uint32_t hash);
/* Of a string as tables of strings have it: base_istr's hash. */
uint32_t base_name_hash(const char *s, size_t n);
/* NULL when absent. */
const base_istr *base_intern_find(const base_interner *t, const char *s, size_t n);
/* Of n bytes; the same on every machine of one byte order. */
uint32_t base_hash(const char *s, size_t n);

/* A growable text buffer. An allocation failure sets `failed` and later writes are dropped, so that printers check
 * once. */
typedef struct base_text {
  base_alloc alloc;
  char *s; /* not terminated until base_text_cstr */
  size_t n, cap;
  bool failed;
} base_text;

/* Empty, without memory; base_text_free releases it and leaves it empty. */
void base_text_init(base_text *t, base_alloc alloc);
void base_text_free(base_text *t);
bool base_text_grow(base_text *t, size_t more);
static inline void base_put(base_text *t, const char *s, size_t n) {
  if (t->cap - t->n <= n && !base_text_grow(t, n)) return; /* <= also keeps memcpy from a NULL buffer when n is 0 */
  memcpy(t->s + t->n, s, n);
  t->n += n;
}
static inline void base_putc(base_text *t, char c) {
  if (t->cap == t->n && !base_text_grow(t, 1)) return;
  t->s[t->n++] = c;
}
static inline void base_puts(base_text *t, const char *s) {
  base_put(t, s, strlen(s));
}
#define BASE_PUT(t, literal) base_put((t), (literal), sizeof(literal) - 1)
/* Numbers in decimal, without a locale. */
void base_put_i64(base_text *t, int64_t v);
void base_put_u64(base_text *t, uint64_t v);
/* As printf; the text may be of any length. */
void base_putf(base_text *t, const char *format, ...) BASE_PRINTF(2, 3);
/* A JSON string: quoted, with escapes. */
void base_put_json(base_text *t, const char *s, size_t n);
/* Terminates and returns the text, or NULL when a write failed; the buffer still owns it. */
char *base_text_cstr(base_text *t);

#endif
