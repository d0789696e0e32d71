/* Making names unique as XLA's NameUniquer does when it adds a computation to a module.
 *
 * A name is a root and a number: "add.3" is number 3 of "add", "add" is number 0. A root remembers which of its numbers
 * are taken; a name whose number is taken gets the next free one. */
#include "../base/number/number.h"
#include "names.h"

/* The numbers taken under one root: bit i of `low` is number i; others are in the uniquer's set. */
typedef struct name_root {
  const char *s;
  uint32_t n, hash;
  int64_t next;
  uint64_t low;
} name_root;

struct ir_uniquer {
  ir_module *m;
  base_alloc alloc;
  name_root *roots;
  uint32_t n_roots, roots_cap;
  uint32_t *slots; /* index into roots plus one, 0 empty */
  uint32_t cap;    /* a power of two */
  base_map taken;  /* (root, number) mixed to a key -> the number, to be sure */
  base_text text;
};

ir_uniquer *ir_uniquer_create(ir_module *m, base_alloc alloc) {
  ir_uniquer *u = base_malloc(alloc, sizeof *u);
  if (!u) return NULL;
  *u = (ir_uniquer){.m = m, .alloc = alloc};
  base_map_init(&u->taken, alloc);
  base_text_init(&u->text, alloc);
  return u;
}

void ir_uniquer_destroy(ir_uniquer *u) {
  base_free(u->alloc, u->roots);
  base_free(u->alloc, u->slots);
  base_map_free(&u->taken);
  base_text_free(&u->text);
  base_free(u->alloc, u);
}

/* Doubles the table of roots and puts all back; at most half of it is ever in use. */
static bool grow_root_slots(ir_uniquer *u) {
  uint32_t cap = u->cap ? u->cap * 2 : 256;
  uint32_t *slots = base_malloc(u->alloc, (size_t)cap * sizeof *slots);
  if (!slots || cap == 0) return false;
  memset(slots, 0, (size_t)cap * sizeof *slots);
  for (uint32_t i = 0; i < u->n_roots; i++) {
    uint32_t at = u->roots[i].hash & (cap - 1);
    while (slots[at]) at = (at + 1) & (cap - 1);
    slots[at] = i + 1;
  }
  base_free(u->alloc, u->slots);
  u->slots = slots;
  u->cap = cap;
  return true;
}

/* The root's index; its text must live as long as the module does. -1 when out of memory. */
static int64_t find_root(ir_uniquer *u, const char *s, uint32_t n) {
  assert((u->cap & (u->cap - 1)) == 0);
  if (u->n_roots * (uint64_t)2 >= u->cap && !grow_root_slots(u)) return -1;
  uint32_t hash = base_hash(s, n), at = hash & (u->cap - 1);
  for (; u->slots[at]; at = (at + 1) & (u->cap - 1)) {
    const name_root *k = &u->roots[u->slots[at] - 1];
    if (k->hash == hash && k->n == n && memcmp(k->s, s, n) == 0) return u->slots[at] - 1;
  }
  if (u->n_roots == u->roots_cap &&
      !base_vec_grow(u->alloc, (void **)&u->roots, &u->roots_cap, sizeof *u->roots, (size_t)u->n_roots + 1))
    return -1;
  u->roots[u->n_roots] = (name_root){.s = s, .n = n, .hash = hash};
  u->slots[at] = ++u->n_roots;
  return u->n_roots - 1;
}

/* false when taken already; *ok false when out of memory. A key holds 32 bits of root and 32 of number: numbers that
 * need more share keys, which costs at most an unneeded renaming. */
static bool take_number(ir_uniquer *u, uint32_t root, int64_t number, bool *ok) {
  assert(root < u->n_roots);
  name_root *k = &u->roots[root];
  if (number >= 0 && number < 64) {
    bool is_new = !(k->low >> number & 1);
    k->low |= UINT64_C(1) << number;
    return is_new;
  }
  uint64_t key = (uint64_t)root << 32 | (uint32_t)(number ^ (number >> 32)), had;
  if (base_map_get(&u->taken, key, &had)) return false;
  *ok = *ok && base_map_set(&u->taken, key, 1);
  return true;
}

/* "add.3" is "add" and 3, true. "add", "add.", ".3" and "add.x" are roots as a whole, 0 and false. The number a name
 * ends in after its last dot, and the length of what stands before. */
static bool split_name(const base_istr *name, uint32_t *root_n, int64_t *number) {
  assert(name && root_n && number);
  *root_n = name->n;
  *number = 0;
  uint32_t dot = name->n;
  while (dot > 0 && name->s[dot - 1] != '.') dot--;
  if (dot < 2 || dot == name->n) return false;
  const char *digits = name->s + dot, *end = name->s + name->n;
  if (base_parse_i64(digits, end, number) != end) {
    *number = 0;
    return false;
  }
  *root_n = dot - 1;
  return true;
}

/* "root.number", the given string itself where it says just that. */
static const base_istr *numbered(ir_uniquer *u, const base_istr *wanted, uint32_t root_n, int64_t number) {
  assert(root_n <= wanted->n);
  u->text.n = 0;
  base_put(&u->text, wanted->s, root_n);
  base_putc(&u->text, '.');
  base_put_i64(&u->text, number);
  if (u->text.failed) return NULL;
  if (u->text.n == wanted->n && memcmp(u->text.s, wanted->s, wanted->n) == 0) return wanted;
  return ir_intern(u->m, u->text.s, u->text.n);
}

const base_istr *ir_uniquer_take(ir_uniquer *u, const base_istr *wanted) {
  assert(u && wanted);
  uint32_t root_n;
  int64_t number;
  bool has_number = split_name(wanted, &root_n, &number), ok = true, given = true;
  int64_t root = find_root(u, wanted->s, root_n);
  if (root < 0) return NULL;
  assert(root_n > 0 || wanted->n == 0);
  if (!take_number(u, (uint32_t)root, number, &ok)) {
    /* From where the last search of this root ended: n equal names cost n look-ups in all. */
    int64_t *next = &u->roots[root].next;
    while (ok && !take_number(u, (uint32_t)root, *next, &ok)) ++*next;
    number = (*next)++;
    given = false;
  }
  if (!ok) return NULL;
  char first = has_number ? wanted->s[root_n + 1] : '1'; /* "x.03" is "x.3", "x.-0" is "x.0" */
  bool spelt = given && first >= '1' && first <= '9';
  return spelt ? wanted : numbered(u, wanted, root_n, number);
}

/* Every byte may stand in a name; the empty string is none. */
bool ir_is_name(const char *s, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!ir_name_takes(s[i], i == 0)) return false;
  return n > 0;
}

/* No type or keyword has more letters, or a dot, as most names of ops have. */
static bool may_be_word(const char *s, size_t n) {
  return n <= IR_LONGEST_WORD && !memchr(s, '.', n);
}

/* Words that are types in HLO text, which nothing can be called. */
static bool names_type(const char *s, size_t n) {
  return base_dtype_from_text(s, n) != BASE_DTYPE_INVALID || (n == 5 && memcmp(s, "token", 5) == 0) ||
         (n == 6 && memcmp(s, "opaque", 6) == 0);
}

/* Words of the text that are not types. */
static bool is_keyword(const char *s, size_t n) {
  static const struct {
    const char *word;
    uint8_t n;
  } keywords[] = {
#define KEYWORD(word) {word, sizeof(word) - 1}
      KEYWORD("true"),
      KEYWORD("false"),
      KEYWORD("inf"),
      KEYWORD("nan"),
      KEYWORD("HloModule"),
      KEYWORD("ENTRY"),
      KEYWORD("ROOT"),
      KEYWORD("FileNames"),
      KEYWORD("manual"),
      KEYWORD("maximal"),
      KEYWORD("FunctionNames"),
      KEYWORD("FileLocations"),
      KEYWORD("shard_as"),
      KEYWORD("unknown"),
      KEYWORD("shard_like"),
      KEYWORD("StackFrames"),
      KEYWORD("replicated"),
      KEYWORD("unreduced"),
      KEYWORD("last_tile_dim_replicate"),
#undef KEYWORD
  };
  for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
    if (keywords[i].n == n && memcmp(keywords[i].word, s, n) == 0) return true;
  return false;
}

/* XLA keeps names with two underscores for itself, but lets users have "__xla_...". */
static bool is_internal(const char *s, size_t n) {
  return n >= 2 && memcmp(s, "__", 2) == 0 && !(n >= 6 && memcmp(s, "__xla_", 6) == 0);
}

bool ir_name_is_reserved(const char *s, size_t n) {
  return (may_be_word(s, n) && names_type(s, n)) || is_internal(s, n);
}

bool ir_name_is_word(const char *s, size_t n) {
  return may_be_word(s, n) && (names_type(s, n) || is_keyword(s, n));
}

/* At most one byte longer than s, hence n + 2 bytes with room for one more. */
const base_istr *ir_legal_name(ir_module *m, const char *s, size_t n) {
  assert(m && (s || n == 0));
  char *text = base_malloc(m->alloc, n + 2);
  if (!text) return NULL;
  for (size_t i = 0; i < n; i++) text[i] = ir_name_takes(s[i], i == 0) ? s[i] : '_';
  if (n == 0 || ir_name_is_word(text, n)) text[n++] = '_';
  if (is_internal(text, n)) text[0] = 'a';
  const base_istr *name = ir_intern(m, text, n);
  base_free(m->alloc, text);
  return name;
}

/* Computations have one name space, and the ops of all computations together another, as in XLA's text. */
static bool uniquify_computation(ir_uniquer *comps, ir_uniquer *ops, ir_computation *c) {
  bool reserved = ir_name_is_reserved(c->name->s, c->name->n); /* an op's is refused when it is read */
  const base_istr *name = reserved ? ir_legal_name(c->module, c->name->s, c->name->n) : c->name;
  if (!name || !(c->name = ir_uniquer_take(comps, name))) return false;
  IR_FOR_OPS(op, c) {
    if (!(op->name = ir_uniquer_take(ops, op->name))) return false;
  }
  return true;
}

/* In text order: of two equal names the later one changes. Fails only when out of memory; names may then have changed
 * in part, and are valid all the same. */
int ir_uniquify_names(ir_module *m, xlac_error *err) {
  assert(m);
  ir_uniquer *comps = ir_uniquer_create(m, m->alloc), *ops = ir_uniquer_create(m, m->alloc);
  bool ok = comps && ops;
  for (ir_computation *c = m->first; ok && c; c = c->next) ok = uniquify_computation(comps, ops, c);
  if (comps) ir_uniquer_destroy(comps);
  if (ops) ir_uniquer_destroy(ops);
  return ok ? 0 : base_oom(err, "unique names");
}
