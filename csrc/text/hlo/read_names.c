/* Words: one symbol per distinct word, scopes of op names, made-up names.
 *
 * A word is hashed once and found in an open-addressing table. Its symbol has room for every meaning the word may
 * have at once: "add" may be an opcode, the name of an op, and the name of a computation. A scope is not a table of
 * its own but a number in the symbol: leaving an inline computation restores from r->hiddens only those names that
 * it redefined. */
#include "../../ir/names.h"
#include "read.h"

#include <stdio.h>

/* Slots of a new table; a power of two, as all its sizes. */
enum { FIRST_SYMBOLS = 256 };
/* Odd: neighbours by base_name_hash, which an interner wants side by side, are far apart in this fuller table. */
#define SYMBOL_SPREAD 0x9E3779B1u

/* Whether the word is a dtype, and where it can't be a name. No dtype's name is longer than 13 bytes. */
static void describe_symbol(text_symbol *y, const char *s, size_t n) {
  y->dtype = n <= 13 ? (uint8_t)base_dtype_from_text(s, n) : 0;
  y->reserved = ir_name_is_word(s, n);
  y->illegal = ir_name_is_reserved(s, n);
}

/* Doubles the table, which is kept at most half full. */
static bool grow_symbols(text_reader *r) {
  uint32_t cap = r->cap ? r->cap * 2 : FIRST_SYMBOLS;
  if (cap == 0) return false;
  text_symbol_slot *slots = base_malloc(r->alloc, (size_t)cap * sizeof *slots);
  if (!slots) return false;
  memset(slots, 0, (size_t)cap * sizeof *slots);
  for (uint32_t i = 0; i < r->cap; i++) {
    if (!r->slots[i].symbol) continue;
    uint32_t at = r->slots[i].hash & (cap - 1);
    while (slots[at].symbol) at = (at + 1) & (cap - 1);
    slots[at] = r->slots[i];
  }
  base_free(r->alloc, r->slots);
  r->slots = slots;
  r->cap = cap;
  return true;
}

/* A new symbol in the first free slot of its probe sequence. Symbols live in the scratch arena, so that pointers to
 * them stay valid while the table grows. */
static text_symbol *add_symbol(text_reader *r, uint32_t name_hash, const char *s, size_t n) {
  if ((r->n_symbols + 1) * (uint64_t)2 > r->cap && !grow_symbols(r)) return NULL;
  text_symbol *y = BASE_NEW(&r->scratch, text_symbol);
  if (!y || !(y->name = base_intern_hashed(&r->m->strings, s, n, name_hash))) return NULL;
  describe_symbol(y, s, n);
  uint32_t hash = name_hash * SYMBOL_SPREAD, at = hash & (r->cap - 1);
  while (r->slots[at].symbol) at = (at + 1) & (r->cap - 1);
  r->slots[at] = (text_symbol_slot){hash, y};
  r->n_symbols++;
  return y;
}

/* The symbol of a name, made if it is new; NULL when out of memory. Open addressing: the next slot where one is
 * taken. */
text_symbol *text_symbol_of(text_reader *r, const char *s, size_t n) {
  assert((r->cap & (r->cap - 1)) == 0);
  uint32_t name_hash = base_name_hash(s, n), hash = name_hash * SYMBOL_SPREAD;
  for (uint32_t at = hash; r->cap; at++) {
    const text_symbol_slot *slot = &r->slots[at & (r->cap - 1)];
    if (!slot->symbol) break;
    if (slot->hash != hash) continue;
    const base_istr *name = slot->symbol->name;
    if (name->n == n && memcmp(name->s, s, n) == 0) return slot->symbol;
  }
  return add_symbol(r, name_hash, s, n);
}

/* Whether the last n bytes of the word are `suffix`, with something before them. */
static bool ends_with(const base_istr *word, const char *suffix, size_t n) {
  return word->n > n && memcmp(word->s + word->n - n, suffix, n) == 0;
}

/* The suffixes of async sugar are tried only where the whole word is not an opcode, so that "all-reduce-start" and
 * "copy-done", which are opcodes of their own, are not taken apart. */
void text_classify(text_symbol *y) {
  static const struct {
    const char *suffix;
    uint8_t n, sugar;
  } suffixes[] = {{"-start", 6, TEXT_SUGAR_START}, {"-update", 7, TEXT_SUGAR_UPDATE}, {"-done", 5, TEXT_SUGAR_DONE}};
  if (y->classified) return;
  assert(y->opcode == IR_OP_INVALID && y->sugar == TEXT_SUGAR_NONE);
  y->classified = true;
  y->attr = (uint16_t)ir_attr_from_text(y->name->s, y->name->n);
  y->opcode = (uint16_t)ir_opcode_from_text(y->name->s, y->name->n);
  for (size_t i = 0; y->opcode == IR_OP_INVALID && i < 3; i++) {
    if (!ends_with(y->name, suffixes[i].suffix, suffixes[i].n)) continue;
    unsigned wrapped = ir_opcode_from_text(y->name->s, y->name->n - suffixes[i].n);
    if (wrapped == IR_OP_INVALID) continue;
    y->opcode = (uint16_t)wrapped;
    y->sugar = suffixes[i].sugar;
  }
}

/* XLA's lexer makes "x=" one token, an attribute's name: a bare name and '=' without a blank is therefore an error,
 * while "%x=" is not. */
int text_read_name(text_reader *r, const char *what, text_symbol **out) {
  const char *p = r->lx.p, *s = p + (*p == '%');
  if (!text_is(*s, TEXT_ALPHA)) return text_expected(r, XLAC_E_SYNTAX, what);
  const char *e = text_name_end(s);
  text_symbol *y = text_symbol_of(r, s, (size_t)(e - s));
  if (!y) return text_no_memory(r);
  if (s == p) {
    if (*e == '=')
      return text_fail(r, p, XLAC_E_SYNTAX, "expected %s; '%s=' without a blank is an attribute", what, y->name->s);
    if (*e == ':') e++;
    if (y->reserved) {
      int status = text_expected(r, XLAC_E_SYNTAX, what);
      return base_hint(r->err, status, "'%s' is a word of the language; another name, say '%s_', would do", y->name->s,
                       y->name->s);
    }
  }
  r->lx.p = e;
  text_skip(&r->lx);
  *out = y;
  return 0;
}

/* --- scopes --- */

/* Scopes are numbered and numbers are never used again, so that names of a closed scope need no removing: no
 * symbol's `scope` will ever be equal to the current one again, unless it is restored on purpose. */
void text_scope_open(text_reader *r, uint32_t *outer, uint32_t *first_hidden) {
  *outer = r->scope;
  *first_hidden = r->hiddens.n;
  r->scope = ++r->n_scopes;
  r->level++;
}

/* Restores what inner definitions hid, newest first. */
void text_scope_close(text_reader *r, uint32_t outer, uint32_t first_hidden) {
  assert(r->hiddens.n >= first_hidden);
  while (r->hiddens.n > first_hidden) {
    text_hidden *h = &r->hiddens.items[--r->hiddens.n];
    h->symbol->op = h->op;
    h->symbol->scope = h->scope;
  }
  r->scope = outer;
  r->level--;
}

/* At level 1 nothing can be hidden: computations at module level follow one another, they don't nest. */
int text_define(text_reader *r, text_symbol *y, ir_op *op, const char *at) {
  assert(op && op->parent && r->level > 0);
  if (y->op && y->scope == r->scope) {
    return text_fail(r, at, XLAC_E_DUPLICATE_NAME, "'%s' is defined twice in this computation, first on line %u",
                     y->name->s, y->op->line);
  }
  if (y->op && r->level > 1) {
    text_hidden hidden = {y, y->op, y->scope};
    if (!BASE_VEC_PUSH(r->alloc, &r->hiddens, hidden)) return text_no_memory(r);
  }
  y->op = op;
  y->scope = r->scope;
  return 0;
}

/* --- made-up names --- */

/* Whether a name may collide with made-up ones.
 *   "add.anon", "add.anon.1": longer than ".anon" by at least the opcode. */
static bool is_anonymous(const base_istr *name) {
  return name->n > 5 && strstr(name->s, ".anon") != NULL;
}

/* Names read before the first made-up one count as taken too. */
static int take_known_names(text_reader *r) {
  r->uniquer = ir_uniquer_create(r->m, r->alloc);
  if (!r->uniquer) return text_no_memory(r);
  IR_FOR_COMPUTATIONS(c, r->m) {
    IR_FOR_OPS(op, c) {
      if (is_anonymous(op->name) && !ir_uniquer_take(r->uniquer, op->name)) return text_no_memory(r);
    }
  }
  return 0;
}

/* A name that looks like one of those that are made up ("add.anon") must not be made up again. */
int text_take_name(text_reader *r, const text_symbol *y) {
  if (!r->uniquer || !is_anonymous(y->name) || ir_uniquer_take(r->uniquer, y->name)) return 0;
  return text_no_memory(r);
}

/* What XLA calls a nested operand, which has no name in the text: "add.anon", then "add.anon.1" and so on. The
 * uniquer is made only when the first such name is needed. */
int text_anonymous(text_reader *r, ir_opcode opcode, text_symbol **out) {
  if (!r->uniquer) TRY(take_known_names(r));
  char stem[64];
  int n = snprintf(stem, sizeof stem, "%s.anon", ir_opcode_text(opcode));
  assert(n > 0 && (size_t)n < sizeof stem);
  const base_istr *wanted = ir_intern(r->m, stem, (size_t)n);
  const base_istr *name = wanted ? ir_uniquer_take(r->uniquer, wanted) : NULL;
  if (!name || !(*out = text_symbol_of(r, name->s, name->n))) return text_no_memory(r);
  return 0;
}

void text_names_close(text_reader *r) {
  if (r->uniquer) ir_uniquer_destroy(r->uniquer);
  r->uniquer = NULL;
}
