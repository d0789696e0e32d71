/* Shapes and layouts.
 *
 *   f32[2,<=3]{1,0:T(8,128)S(1)}   (f32[], s32[2])   token[]   opaque[]   b(f32[8])   f32[?,4]
 * A program repeats a few shapes thousands of times. The text of an array's shape, where it has no blanks, is a key
 * into a small memo of types read before; only shapes that are new, or spelled otherwise, are taken apart. Types and
 * layouts are interned by the module: equal shapes are one pointer. */
#include "read.h"

/* Tiles of one layout: XLA's own have one or two. */
enum { MAX_TILES = 64 };

/* Whether the word at p is followed by c, blanks aside. Looks ahead on a copy of the lexer; the cursor stays. */
static bool word_then(const text_reader *r, const char *e, char c) {
  text_lexer ahead = r->lx;
  ahead.p = e;
  text_skip(&ahead);
  return *ahead.p == c;
}

/* Tells "f32[2] add(...)" from "add(...)": a shape begins with '(' or with a word and '['. Blanks may stand before
 * the bracket only after an element type's name, so that no instruction's name can be meant. */
bool text_at_type(text_reader *r) {
  const char *p = r->lx.p;
  if (*p == '(') return true;
  if (!text_is(*p, TEXT_ALPHA)) return false;
  const char *e = text_name_end(p);
  if (*e == '[') return true;
  if (e - p == 1 && *p == 'b') return word_then(r, e, '(');
  if (!text_is(*e, TEXT_SPACE)) return false;
  text_symbol *y = text_symbol_of(r, p, (size_t)(e - p));
  return y && y->reserved && word_then(r, e, '[');
}

/* --- layouts --- */

/* S(1): a number in parentheses. */
static int layout_number(text_reader *r, int64_t *out, const char *what) {
  TRY(text_want(r, '(', what));
  TRY(text_read_int(r, out));
  return text_want(r, ')', what);
}

/* '*' combines a dimension with the next more minor one before tiling, as XLA's Tile::kCombineDimension does. */
static int one_tile_dim(text_reader *r) {
  if (text_eat(&r->lx, '*')) return text_push_int(r, IR_TILE_COMBINE);
  int64_t v;
  const char *at = r->lx.p;
  TRY(text_read_int(r, &v));
  if (v < 0) return text_fail(r, at, XLAC_E_BAD_SHAPE_TEXT, "a tile dimension is negative (%lld)", (long long)v);
  return text_push_int(r, v);
}

/* T(8,128)(2,1): ranks in r->ints too, one before the dims of each tile. */
static int read_tiles(text_reader *r, uint32_t *n) {
  do {
    uint32_t rank_at = r->ints.n;
    if (++*n > MAX_TILES) return text_fail(r, r->lx.p, XLAC_E_TOO_LARGE, "a layout with more than %d tiles", MAX_TILES);
    TRY(text_push_int(r, 0));
    if (*r->lx.p == '}') break; /* XLA reads a bare T as T() */
    TRY(text_want(r, '(', "before a tile's dimensions"));
    if (*r->lx.p != ')') {
      do TRY(one_tile_dim(r));
      while (text_eat(&r->lx, ','));
    }
    TRY(text_want(r, ')', "after a tile's dimensions"));
    assert(r->ints.n > rank_at);
    r->ints.items[rank_at] = r->ints.n - rank_at - 1;
  } while (*r->lx.p == '(');
  return 0;
}

/* SC(0:4)(1:2,3): per split its dimension, its count, its indices. */
static int read_splits(text_reader *r, uint32_t *n) {
  do {
    int64_t v;
    if (++*n > MAX_TILES)
      return text_fail(r, r->lx.p, XLAC_E_TOO_LARGE, "a layout with more than %d splits", MAX_TILES);
    TRY(text_want(r, '(', "before a split"));
    TRY(text_read_int(r, &v));
    TRY(text_push_int(r, v));
    uint32_t count_at = r->ints.n;
    TRY(text_push_int(r, 0));
    TRY(text_want(r, ':', "after a split's dimension"));
    if (*r->lx.p != ')') {
      do {
        TRY(text_read_int(r, &v));
        TRY(text_push_int(r, v));
      } while (text_eat(&r->lx, ','));
    }
    TRY(text_want(r, ')', "after a split"));
    assert(r->ints.n > count_at);
    r->ints.items[count_at] = r->ints.n - count_at - 1;
  } while (*r->lx.p == '(');
  return 0;
}

/* D(D,C+,S~): checked, then forgotten, as XLA forgets them. */
static int skip_levels(text_reader *r) {
  TRY(text_want(r, '(', "before dimension levels"));
  do {
    char c = *r->lx.p;
    if (!c || !strchr("DCSH", c) || text_is(r->lx.p[1], TEXT_NAME))
      return text_expected(r, XLAC_E_BAD_SHAPE_TEXT, "a dimension level: D, C, S or H");
    text_eat(&r->lx, c);
    text_eat(&r->lx, '+');
    text_eat(&r->lx, '~');
  } while (text_eat(&r->lx, ','));
  return text_want(r, ')', "after dimension levels");
}

/* #(u32) or *(u16) Types of a sparse array's indices and pointers; XLA still reads and prints them. */
static int read_index_type(text_reader *r, base_dtype *out) {
  TRY(text_want(r, '(', "before an index type"));
  const char *p = r->lx.p, *e = text_name_end(p);
  base_dtype t = base_dtype_from_text(p, (size_t)(e - p));
  if (!base_dtype_is_unsigned(t)) return text_expected(r, XLAC_E_BAD_SHAPE_TEXT, "an unsigned integer type");
  *out = t;
  r->lx.p = e;
  text_skip(&r->lx);
  return text_want(r, ')', "after an index type");
}

/* Takes the word if it is next, with '(' behind it. */
static bool eat_suffix(text_reader *r, const char *word) {
  const char *p = r->lx.p, *e = text_name_end(p);
  size_t n = strlen(word);
  if ((size_t)(e - p) != n || memcmp(p, word, n) != 0) return false;
  r->lx.p = e;
  text_skip(&r->lx);
  return true;
}

/* How many parts of a layout were collected. */
typedef struct suffixes {
  uint32_t n_tiles, n_splits;
} suffixes;

/* Each letter at most once and in this order, as in XLA's parser. P(...) belonged to sparse arrays, which XLA has
 * dropped. */
static int read_suffixes(text_reader *r, ir_layout *l, suffixes *s) {
  if (eat_suffix(r, "D")) TRY(skip_levels(r));
  if (eat_suffix(r, "T")) TRY(read_tiles(r, &s->n_tiles));
  if (eat_suffix(r, "L")) TRY(layout_number(r, &l->tail_padding, "of L(n)"));
  if (text_eat(&r->lx, '#')) TRY(read_index_type(r, &l->index_type));
  if (text_eat(&r->lx, '*')) TRY(read_index_type(r, &l->pointer_type));
  if (eat_suffix(r, "E")) TRY(layout_number(r, &l->element_bits, "of E(n)"));
  if (eat_suffix(r, "S")) TRY(layout_number(r, &l->memory_space, "of S(n)"));
  if (eat_suffix(r, "SC")) TRY(read_splits(r, &s->n_splits));
  if (*r->lx.p == 'P' && r->lx.p[1] == '(')
    return text_fail(r, r->lx.p, XLAC_E_BAD_SHAPE_TEXT, "a physical shape P(...); only sparse arrays had them");
  if (eat_suffix(r, "M")) TRY(layout_number(r, &l->metadata_prefix_bytes, "of M(n)"));
  return 0;
}

/* Points l at what read_tiles and read_splits left in r->ints, and interns it. What the layout points at until it is
 * interned lies on r->ints and on the stack here: interning copies. */
static int intern_layout(text_reader *r, ir_layout *l, const suffixes *s, uint32_t first, const ir_layout **out) {
  ir_tile tiles[MAX_TILES];
  ir_split splits[MAX_TILES];
  assert(s->n_tiles <= MAX_TILES && s->n_splits <= MAX_TILES);
  const int64_t *v = r->ints.items + first;
  l->minor_to_major = v;
  v += l->rank;
  for (uint32_t i = 0; i < s->n_tiles; i++) {
    tiles[i] = (ir_tile){(uint32_t)v[0], v + 1};
    v += v[0] + 1;
  }
  for (uint32_t i = 0; i < s->n_splits; i++) {
    splits[i] = (ir_split){v[0], (uint32_t)v[1], v + 2};
    v += v[1] + 2;
  }
  l->n_tiles = s->n_tiles;
  l->n_splits = s->n_splits;
  l->tiles = tiles;
  l->splits = splits;
  r->ints.n = first;
  *out = ir_layout_intern(r->m, l);
  return *out ? 0 : text_no_memory(r);
}

/* '{' minor to major (':' suffixes)? '}' */
static int read_layout(text_reader *r, uint32_t rank, const ir_layout **out) {
  const char *at = r->lx.p;
  uint32_t first = r->ints.n;
  ir_layout l = {.tail_padding = 1};
  suffixes s = {0};
  TRY(text_want(r, '{', "before a layout"));
  if (*r->lx.p != ':') {
    do {
      int64_t v;
      TRY(text_read_int(r, &v));
      TRY(text_push_int(r, v));
    } while (text_eat(&r->lx, ','));
  }
  l.rank = r->ints.n - first;
  if (text_eat(&r->lx, ':')) TRY(read_suffixes(r, &l, &s));
  if (*r->lx.p != '}') {
    int status = text_expected(r, XLAC_E_BAD_SHAPE_TEXT, "'}' at the end of a layout");
    return base_hint(r->err, status, "suffixes come in the order D T L # * E S SC M, each at most once");
  }
  text_eat(&r->lx, '}');
  if (l.rank != rank)
    return text_fail(r, at, XLAC_E_BAD_SHAPE_TEXT, "a layout orders %u dimensions, but the shape has %u", l.rank, rank);
  return intern_layout(r, &l, &s, first, out);
}

/* The brace after a shape opens a layout if an integer or a colon follows it; else it opens a computation's body.
 *   f32[2]{1,0}   f32[]{:S(1)}   but   -> f32[] { %a = ... } */
static bool at_layout(const text_reader *r) {
  if (*r->lx.p != '{') return false;
  text_lexer ahead = r->lx;
  text_eat(&ahead, '{');
  return *ahead.p == ':' || text_is(*ahead.p, TEXT_DIGIT) || (*ahead.p == '-' && text_is(ahead.p[1], TEXT_DIGIT));
}

/* --- shapes --- */

/*   3   <=3   ?
 * "<=3" is bounded: at most 3, the size is known when the program runs. "?" has no bound. */
static int read_dim(text_reader *r, uint32_t rank, bool *dynamic) {
  int64_t v = IR_UNBOUNDED;
  const char *at = r->lx.p;
  if (rank >= IR_MAX_RANK)
    return text_fail(r, at, XLAC_E_TOO_LARGE, "a shape has more than %d dimensions", IR_MAX_RANK);
  dynamic[rank] = *at == '?' || (*at == '<' && at[1] == '=');
  if (!text_eat(&r->lx, '?')) {
    if (dynamic[rank]) {
      r->lx.p += 2;
      text_skip(&r->lx);
    }
    at = r->lx.p;
    TRY(text_read_int(r, &v));
    if (v < 0) return text_fail(r, at, XLAC_E_BAD_SHAPE_TEXT, "a dimension is negative (%lld)", (long long)v);
  }
  return text_push_int(r, v);
}

/* What follows the element type's name. Without a layout the default one, which makes the last dimension minor-most:
 * {1,0} of rank 2. */
static int read_tensor(text_reader *r, base_dtype dtype, const char *at, const ir_type **out) {
  bool dynamic[IR_MAX_RANK];
  uint32_t first = r->ints.n;
  TRY(text_want(r, '[', "before a shape's dimensions"));
  if (*r->lx.p != ']') {
    do TRY(read_dim(r, r->ints.n - first, dynamic));
    while (text_eat(&r->lx, ','));
  }
  TRY(text_want(r, ']', "after a shape's dimensions"));
  uint32_t rank = r->ints.n - first;
  assert(rank <= IR_MAX_RANK);
  const ir_layout *layout = NULL;
  if (at_layout(r)) {
    TRY(read_layout(r, rank, &layout));
  } else if (!(layout = ir_layout_default(r->m, rank))) {
    return text_no_memory(r);
  }
  r->ints.n = first;
  xlac_error why = {0};
  *out = ir_tensor(r->m, dtype, rank, r->ints.items + first, dynamic, layout, &why);
  return *out ? 0 : text_fail(r, at, why.code ? (base_code)why.code : XLAC_E_OUT_OF_MEMORY, "%s", why.message);
}

/*   (f32[2]{0}, s32[]) */
static int read_tuple(text_reader *r, const ir_type **out) {
  uint32_t first = r->types.n;
  TRY(text_deeper(r));
  TRY(text_want(r, '(', "before a tuple's elements"));
  if (*r->lx.p != ')') {
    do {
      const ir_type *t;
      TRY(text_read_type(r, &t));
      if (!BASE_VEC_PUSH(r->alloc, &r->types, t)) return text_no_memory(r);
    } while (text_eat(&r->lx, ','));
  }
  TRY(text_want(r, ')', "after a tuple's elements"));
  *out = ir_tuple(r->m, r->types.n - first, r->types.items + first);
  r->types.n = first;
  r->depth--;
  return *out ? 0 : text_no_memory(r);
}

/*   b(f32[2]{0}) */
static int read_buffer(text_reader *r, const ir_type **out) {
  const ir_type *inner;
  TRY(text_deeper(r));
  TRY(text_want(r, '(', "before a buffer's shape"));
  const char *at = r->lx.p;
  TRY(text_read_type(r, &inner));
  if (!ir_is_tensor(inner)) return text_fail(r, at, XLAC_E_BAD_SHAPE_TEXT, "a buffer holds an array, nothing else");
  TRY(text_want(r, ')', "after a buffer's shape"));
  r->depth--;
  *out = ir_buffer(r->m, inner);
  return *out ? 0 : text_no_memory(r);
}

/* token[] and opaque[] */
static int read_bare_kind(text_reader *r, bool token, const ir_type **out) {
  TRY(text_want(r, '[', "after token or opaque"));
  TRY(text_want(r, ']', "as token and opaque have no dimensions"));
  *out = token ? ir_token(r->m) : ir_opaque(r->m);
  return *out ? 0 : text_no_memory(r);
}

/* An element type as NumPy writes it, n bytes at p: its name here, or NULL. */
static const char *type_of_numpy(const char *p, size_t n) {
  for (int i = 0; i < BASE_DTYPE_COUNT; i++) {
    const base_dtype_info *d = &base_dtype_table[i];
    if (d->numpy && strlen(d->numpy) == n && memcmp(d->numpy, p, n) == 0) return d->text;
  }
  return NULL;
}

/* Whatever stands at the cursor, without the memo. */
static int read_type_slow(text_reader *r, const ir_type **out) {
  const char *p = r->lx.p;
  if (*p == '(') return read_tuple(r, out);
  const char *e = text_name_end(p);
  size_t n = (size_t)(e - p);
  bool token = n == 5 && memcmp(p, "token", 5) == 0, opaque = n == 6 && memcmp(p, "opaque", 6) == 0;
  bool buffer = n == 1 && *p == 'b';
  base_dtype dtype = text_is(*p, TEXT_ALPHA) ? base_dtype_from_text(p, n) : BASE_DTYPE_INVALID;
  if (dtype == BASE_DTYPE_INVALID && !token && !opaque && !buffer) {
    int status = text_expected(r, XLAC_E_BAD_SHAPE_TEXT, "a shape");
    const char *near = type_of_numpy(p, n);
    return near ? base_hint(r->err, status, "did you mean '%s'?", near) : status;
  }
  r->lx.p = e;
  text_skip(&r->lx);
  if (buffer) return read_buffer(r, out);
  return dtype ? read_tensor(r, dtype, p, out) : read_bare_kind(r, token, out);
}

/* The end of the array shape at p where it is written without blanks, so that equal shapes have equal text; else
 * NULL.
 *
 * Gives up on what could be longer than the lexer's padding allows to look at without checks. */
static const char *plain_extent(const char *p) {
  const char *limit = p + TEXT_PADDING - 1;
  while (text_is(*p, TEXT_NAME)) p++;
  if (*p++ != '[') return NULL;
  while (text_is(*p, TEXT_DIGIT) || *p == ',') p++;
  if (*p++ != ']') return NULL;
  if (*p == '{') {
    for (p++; *p != '}'; p++)
      if (!*p || *p == '{' || *p == '\n' || *p == 'P' || p >= limit) return NULL;
    return p + 1;
  }
  return *p == ' ' && p[1] == '{' ? NULL : p;
}

/* A memo is filled only where reading ended just where plain_extent said, trailing blanks aside; and used only where
 * no layout follows behind a blank. */
int text_read_type(text_reader *r, const ir_type **out) {
  const char *p = r->lx.p, *e = text_is(*p, TEXT_ALPHA) ? plain_extent(p) : NULL;
  if (!e || e - p > TEXT_PADDING) return read_type_slow(r, out);
  uint32_t n = (uint32_t)(e - p), at = base_hash(p, n) & (TEXT_TYPE_MEMOS - 1);
  if (!r->memos) {
    r->memos = base_malloc(r->alloc, TEXT_TYPE_MEMOS * sizeof *r->memos);
    if (!r->memos) return text_no_memory(r);
    memset(r->memos, 0, TEXT_TYPE_MEMOS * sizeof *r->memos);
  }
  text_type_memo *memo = &r->memos[at];
  if (memo->n == n && memcmp(memo->s, p, n) == 0) {
    r->lx.p = e;
    text_skip(&r->lx);
    if (e[-1] == '}' || !at_layout(r)) {
      *out = memo->type;
      return 0;
    }
    r->lx.p = p;
    return read_type_slow(r, out);
  }
  TRY(read_type_slow(r, out));
  const char *used = r->lx.p;
  while (used > e && text_is(used[-1], TEXT_SPACE)) used--;
  if (used == e) *memo = (text_type_memo){p, n, *out};
  return 0;
}

/* --- inferred types --- */

/* What a type costs those who walk it: nodes of its tree, and its depth. */
typedef struct type_cost {
  uint64_t nodes, depth;
} type_cost;
enum { COST_SHIFT = 40 };

/* Each tuple type is measured once; the answer is kept as depth << COST_SHIFT | nodes. */
static type_cost measure_type(text_reader *r, const ir_type *t) {
  type_cost cost = {1, 1};
  uint64_t known;
  if (!ir_is_tuple(t)) return cost;
  if (base_map_get(&r->tree_sizes, base_key(t), &known))
    return (type_cost){known & ((UINT64_C(1) << COST_SHIFT) - 1), known >> COST_SHIFT};
  for (uint32_t i = 0; i < t->n_elements; i++) {
    type_cost e = measure_type(r, t->elements[i]);
    cost.nodes += e.nodes;
    if (cost.nodes >> (COST_SHIFT - 1)) cost.nodes = UINT64_C(1) << (COST_SHIFT - 1);
    if (cost.depth <= e.depth) cost.depth = e.depth + 1;
  }
  /* Forgetting a cost when memory is short is not an error: it is measured again. */
  (void)!base_map_set(&r->tree_sizes, base_key(t), cost.depth << COST_SHIFT | cost.nodes);
  return cost;
}

/* The result type of "tuple(%t, %t)" doubles with every op: twenty lines give a tree of a million nodes that no text
 * spells out. Types that are written cost their own text. */
int text_charge_type(text_reader *r, const char *at, const ir_type *t) {
  if (!ir_is_tuple(t)) return 0;
  type_cost cost = measure_type(r, t);
  assert(cost.nodes >= 1 && cost.depth >= 1);
  if (cost.depth > r->max_depth)
    return text_fail(r, at, XLAC_E_TOO_DEEP, "the tuple type that follows here is nested deeper than %u levels",
                     r->max_depth);
  return text_charge(r, at, cost.nodes);
}
