/* Unique names by XLA's rule: "x" taken twice becomes "x" and "x.1"; a numeric suffix counts as such a number. */
#ifndef XLAC_IR_NAMES_H
#define XLAC_IR_NAMES_H

#include "ir.h"

/* What the text can spell as a name: letters, digits, '_', '-' and '.', beginning with a letter or '_'. */
static inline bool ir_name_takes(char c, bool first) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_') return true;
  return !first && ((c >= '0' && c <= '9') || c == '.' || c == '-');
}
enum { IR_LONGEST_WORD = 24 }; /* "last_tile_dim_replicate", and a byte more */
/* Names are bytes; these are pure functions. */
bool ir_is_name(const char *s, size_t n);
/* Names XLA keeps for itself: those of types, and what begins with "__" but not with "__xla_". */
bool ir_name_is_reserved(const char *s, size_t n);
/* Words of the text, which can't be names unless '%' stands before them, as it does not everywhere. */
bool ir_name_is_word(const char *s, size_t n);
/* The name for a thing that the bytes s are to call, by XLA's rule: what no name has becomes '_', "__" loses its first
 * underscore to an 'a', types' names and the text's words get an underscore. NULL when out of memory. */
const base_istr *ir_legal_name(ir_module *m, const char *s, size_t n);

/* One name space. Thread-compatible, and it touches its module (interning). */
typedef struct ir_uniquer ir_uniquer;

ir_uniquer *ir_uniquer_create(ir_module *m, base_alloc alloc); /* NULL when out of memory */
/* Names that were taken stay interned. */
void ir_uniquer_destroy(ir_uniquer *u);
/* The name to use for one that wants to be called `wanted`; taken from now on. NULL when out of memory. */
const base_istr *ir_uniquer_take(ir_uniquer *u, const base_istr *wanted);

#endif
