/* Shardings and replica groups, in every form. What is read is put in XLA's normal form (sharding_normal.c).
 *
 *   {replicated}   {maximal device=1}   {manual}   {unknown}   {unreduced}
 *   {devices=[2,2]0,1,2,3}   {devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}
 *   {devices=[2,2]<=[4] last_tile_dims={manual}}   {{replicated}, {devices=[2]<=[2]}}   {mesh[...], ...}
 * Groups: {{0,1},{2,3}}, [2,2]<=[4], mesh['a'=2] {'a'}. Source: XLA's HloParserImpl::ParseSingleSharding. */
#include "read.h"

#include <stdio.h>

/* --- device assignments --- */

/* [2,2] */
static int read_dims(text_reader *r, uint32_t *n, const int64_t **out) {
  uint32_t from;
  bool ok = true;
  TRY(text_read_ints(r, '[', ',', ']', &from));
  *n = r->ints.n - from;
  *out = text_take_ints(r, from, &ok);
  return ok ? 0 : text_no_memory(r);
}

/* Whether perm is a permutation of 0 to n - 1; n is at most IR_MAX_RANK, which fits in the 64 bits. */
static bool orders_all(const int64_t *perm, uint32_t n) {
  uint64_t seen = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (perm[i] < 0 || perm[i] >= (int64_t)n || (seen >> perm[i] & 1)) return false;
    seen |= UINT64_C(1) << perm[i];
  }
  return true;
}

/* After "<=": [4] or [2,2]T(1,0); normalised. A list of one dimension needs no order: T may be left out there only.
 * perm is NULL for one dimension. */
static int read_iota(text_reader *r, uint32_t *n, const int64_t **reshape, const int64_t **perm) {
  const char *at = r->lx.p;
  uint32_t from, perm_from;
  bool ok = true;
  TRY(text_read_ints(r, '[', ',', ']', &from));
  uint32_t count = r->ints.n - from;
  if (count == 0 || count > IR_MAX_RANK)
    return text_fail(r, at, XLAC_E_BAD_SHARDING_TEXT, "an iota needs 1 to %d dimensions", IR_MAX_RANK);
  if (count > 1) {
    const char *perm_at = r->lx.p;
    if (*perm_at != 'T' || text_is(perm_at[1], TEXT_NAME))
      return text_expected(r, XLAC_E_BAD_SHARDING_TEXT, "T(...), the order of the iota's dimensions");
    text_eat(&r->lx, 'T');
    TRY(text_read_ints(r, '(', ',', ')', &perm_from));
    if (r->ints.n - perm_from != count || !orders_all(r->ints.items + perm_from, count))
      return text_fail(r, perm_at, XLAC_E_BAD_SHARDING_TEXT, "T(...) must order the %u dimensions of the iota", count);
    text_normal_iota(&count, r->ints.items + from, r->ints.items + perm_from);
    assert(count >= 1 && perm_from + count <= r->ints.n);
    r->ints.n = perm_from + count;
    *perm = text_take_ints(r, perm_from, &ok);
    r->ints.n = from + count;
  }
  if (count == 1) *perm = NULL;
  *n = count;
  *reshape = text_take_ints(r, from, &ok);
  return ok ? 0 : text_no_memory(r);
}

/*   <= */
static bool eat_arrow(text_reader *r) {
  if (r->lx.p[0] != '<' || r->lx.p[1] != '=') return false;
  r->lx.p += 2;
  text_skip(&r->lx);
  return true;
}

/* The product of dims, saturating; negative ones give -1. Saturating is enough: counts that large fit no list of
 * devices. */
static int64_t count_tiles(const int64_t *dims, uint32_t n) {
  int64_t count = 1;
  for (uint32_t i = 0; i < n; i++) {
    if (dims[i] < 0) return -1;
    if (!base_mul_i64(count, dims[i], &count)) return INT64_MAX;
  }
  return count;
}

/* Devices in the order of the tiles, row-major: {devices=[2,2]0,2,1,3}. */
static int read_device_list(text_reader *r, ir_sharding *s) {
  uint32_t from = r->ints.n;
  bool ok = true;
  const char *at = r->lx.p;
  do {
    int64_t v;
    TRY(text_read_int(r, &v));
    TRY(text_push_int(r, v));
  } while (text_eat(&r->lx, ','));
  int64_t given = r->ints.n - from, want = count_tiles(s->dims, s->n_dims);
  if (given <= 1) return text_fail(r, at, XLAC_E_BAD_SHARDING_TEXT, "a tiled sharding needs more than one device");
  /* XLA takes missing devices as 0, for its verifier to find; of too many it writes past the end of its array. */
  if (given > want)
    return text_fail(r, at, XLAC_E_BAD_SHARDING_TEXT, "%lld devices for %lld tiles", (long long)given, (long long)want);
  if (want > INT32_MAX) return text_fail(r, at, XLAC_E_TOO_LARGE, "a tile assignment of %lld tiles", (long long)want);
  if (given < want) TRY(text_charge(r, at, (size_t)(want - given) * sizeof(int64_t)));
  for (; given < want; given++) TRY(text_push_int(r, 0));
  assert(r->ints.n - from == (uint32_t)want);
  s->n_devices = (uint32_t)want;
  s->devices = text_take_ints(r, from, &ok);
  return ok ? 0 : text_no_memory(r);
}

/* s->iota tells the two forms apart. */
static int read_tiles_and_devices(text_reader *r, ir_sharding *s) {
  const char *at = r->lx.p;
  TRY(read_dims(r, &s->n_dims, &s->dims));
  if (s->n_dims == 0 || s->n_dims > IR_MAX_RANK || count_tiles(s->dims, s->n_dims) < 0)
    return text_fail(r, at, XLAC_E_BAD_SHARDING_TEXT, "a tile assignment needs 1 to %d dimensions, none negative",
                     IR_MAX_RANK);
  s->kind = IR_SHARDING_TILED;
  s->iota = eat_arrow(r);
  return s->iota ? read_iota(r, &s->n_reshape, &s->reshape, &s->perm) : read_device_list(r, s);
}

/* --- one sharding --- */

static const struct {
  const char *word;
  uint8_t kind;
} sharding_words[] = {{"replicated", IR_SHARDING_REPLICATED},
                      {"maximal", IR_SHARDING_MAXIMAL},
                      {"manual", IR_SHARDING_MANUAL},
                      {"unknown", IR_SHARDING_UNKNOWN},
                      {"unreduced", IR_SHARDING_UNREDUCED}};
enum { N_SHARDING_WORDS = sizeof sharding_words / sizeof *sharding_words };

/* The index of the kind word of n bytes at p, or -1. */
static int kind_word(const char *p, size_t n) {
  for (int i = 0; i < N_SHARDING_WORDS; i++)
    if (strlen(sharding_words[i].word) == n && memcmp(p, sharding_words[i].word, n) == 0) return i;
  return -1;
}

/* last_tile_dims={manual, replicated}: what the last tile dimensions, which split no data, mean. */
static int read_subgroups(text_reader *r, ir_sharding *s) {
  uint8_t kinds[IR_MAX_RANK];
  uint32_t n = 0;
  TRY(text_want(r, '{', "before the kinds of the last tile dimensions"));
  while (*r->lx.p != '}') {
    const char *p = r->lx.p, *e = text_name_end(p);
    int word = kind_word(p, (size_t)(e - p));
    if (word < 0 || sharding_words[word].kind == IR_SHARDING_UNKNOWN || n == IR_MAX_RANK)
      return text_expected(r, XLAC_E_BAD_SHARDING_TEXT, "replicated, manual, maximal or unreduced");
    kinds[n++] = sharding_words[word].kind;
    r->lx.p = e;
    text_skip(&r->lx);
    if (!text_eat(&r->lx, ',')) break;
  }
  TRY(text_want(r, '}', "after the kinds of the last tile dimensions"));
  s->n_subgroups = n;
  s->subgroups = n ? base_arena_memdup(&r->m->arena, kinds, n) : NULL;
  return !n || s->subgroups ? 0 : text_no_memory(r);
}

/* metadata={op_name="a"} or metadata={{op_name="a"}, {op_name="b"}}. */
static int read_metadata_list(text_reader *r, ir_sharding *s) {
  uint32_t first = r->pointers.n;
  text_lexer ahead = r->lx;
  bool list = text_eat(&ahead, '{') && *ahead.p == '{';
  if (list) r->lx = ahead;
  do {
    const ir_metadata *m;
    TRY(text_read_metadata(r, &m));
    if (!BASE_VEC_PUSH(r->alloc, &r->pointers, (const void *)m)) return text_no_memory(r);
  } while (list && text_eat(&r->lx, ','));
  if (list) TRY(text_want(r, '}', "after a list of metadata"));
  assert(r->pointers.n > first);
  s->n_metadata = r->pointers.n - first;
  s->metadata =
      base_arena_memdup(&r->m->arena, (const void *)(r->pointers.items + first), s->n_metadata * sizeof(void *));
  r->pointers.n = first;
  return s->metadata ? 0 : text_no_memory(r);
}

/* What has been said of a sharding so far; several kind words are allowed, the first in XLA's order counts. */
typedef struct sharding_facts {
  bool kinds[N_SHARDING_WORDS];
  bool has_device;
} sharding_facts;

/* One "key=value" of a sharding. */
static int read_pair(text_reader *r, ir_sharding *s, sharding_facts *f) {
  base_slice key;
  const char *at;
  TRY(text_read_key(r, &at, &key));
  if (base_slice_is(key, "device")) {
    f->has_device = true;
    return text_read_int(r, &s->device);
  }
  if (base_slice_is(key, "devices")) return read_tiles_and_devices(r, s);
  if (base_slice_is(key, "metadata")) return read_metadata_list(r, s);
  if (base_slice_is(key, "last_tile_dims")) return read_subgroups(r, s);
  return text_fail(r, at, XLAC_E_BAD_SHARDING_TEXT,
                   "expected device=, devices=, metadata= or last_tile_dims=, found '%.*s='",
                   (int)(key.n < 40 ? key.n : 40), key.p);
}

/* shard_as and shard_like tie the shardings of one group_id together; shard_as is the stronger one. */
static int read_item(text_reader *r, ir_sharding *s, sharding_facts *f) {
  const char *p = r->lx.p, *e = text_name_end(p);
  size_t n = (size_t)(e - p);
  if (!text_is(*p, TEXT_ALPHA)) return text_expected(r, XLAC_E_BAD_SHARDING_TEXT, "a sharding");
  if (*e == '=') return read_pair(r, s, f);
  int word = kind_word(p, n);
  bool as = n == 8 && memcmp(p, "shard_as", 8) == 0, like = n == 10 && memcmp(p, "shard_like", 10) == 0;
  bool last = n == 23 && memcmp(p, "last_tile_dim_replicate", 23) == 0;
  if (word < 0 && !as && !like && !last) return text_expected(r, XLAC_E_BAD_SHARDING_TEXT, "a sharding");
  r->lx.p = e;
  text_skip(&r->lx);
  if (word >= 0) f->kinds[word] = true;
  if (last) s->replicate_on_last_dim = true;
  if (!as && !like) return 0;
  s->group = like && s->group != 1 ? 2 : 1;
  return text_read_int(r, &s->group_id);
}

/* Decides the kind, and checks that what was said fits together. A kind word leaves only what such a sharding may
 * have: XLA drops the rest, as this does. */
static int settle(text_reader *r, ir_sharding *s, const sharding_facts *f, const char *at) {
  assert(!s->named_text && s->n_elements == 0);
  bool tiled = s->kind == IR_SHARDING_TILED && s->n_dims > 0;
  for (int i = 0; i < N_SHARDING_WORDS; i++) {
    if (!f->kinds[i]) continue;
    uint8_t kind = sharding_words[i].kind;
    if (kind == IR_SHARDING_MAXIMAL ? !f->has_device : f->has_device || s->n_devices)
      return text_fail(
          r, at, XLAC_E_BAD_SHARDING_TEXT,
          kind == IR_SHARDING_MAXIMAL ? "a maximal sharding needs one device=" : "a %s sharding has no devices",
          sharding_words[i].word);
    *s = (ir_sharding){.kind = kind,
                       .device = s->device,
                       .group = s->group,
                       .group_id = s->group_id,
                       .n_metadata = s->n_metadata,
                       .metadata = s->metadata};
    return 0;
  }
  if (!tiled)
    return text_fail(r, at, XLAC_E_BAD_SHARDING_TEXT,
                     "a sharding must be replicated, manual, maximal, unknown, unreduced or have devices=[...]");
  if (s->replicate_on_last_dim && s->n_subgroups)
    return text_fail(r, at, XLAC_E_BAD_SHARDING_TEXT, "last_tile_dim_replicate and last_tile_dims exclude each other");
  int64_t tiles = count_tiles(s->dims, s->n_dims);
  if (s->n_subgroups + s->replicate_on_last_dim > s->n_dims)
    return text_fail(r, at, XLAC_E_BAD_SHARDING_TEXT, "%u kinds for the last of %u tile dimensions", s->n_subgroups,
                     s->n_dims);
  bool has_kinds = s->n_subgroups || s->replicate_on_last_dim; /* else XLA lets [2]<=[4] pass */
  if (s->iota && (s->n_reshape > 1 || has_kinds) && count_tiles(s->reshape, s->n_reshape) != tiles)
    return text_fail(r, at, XLAC_E_BAD_SHARDING_TEXT, "the iota has %lld devices, the tile assignment %lld",
                     (long long)count_tiles(s->reshape, s->n_reshape), (long long)tiles);
  return has_kinds ? text_normal_subgroups(r, at, s) : 0;
}

/* The mesh-axes form: kept as text, blanks and all. */
static int read_named(text_reader *r, const char *open, ir_sharding *s) {
  const char *e = text_braces_end(&r->lx, open);
  if (!e) return text_fail(r, open, XLAC_E_BAD_SHARDING_TEXT, "a sharding opens here that never closes");
  s->kind = IR_SHARDING_TILED;
  s->named_text = ir_intern(r->m, open, (size_t)(e - open));
  r->lx.p = e;
  text_skip(&r->lx);
  return s->named_text ? 0 : text_no_memory(r);
}

/* A sharding by names of axes begins with a mesh. */
static bool at_mesh(const text_reader *r) {
  const char *p = r->lx.p, *e = text_name_end(p);
  size_t n = (size_t)(e - p);
  return (n == 4 && memcmp(p, "mesh", 4) == 0) || (n == 12 && memcmp(p, "maximal_mesh", 12) == 0);
}

/* The brace at `open` has been taken. */
static int read_single(text_reader *r, const char *open, const ir_sharding **out) {
  ir_sharding *s = BASE_NEW(&r->m->arena, ir_sharding);
  sharding_facts f = {0};
  const char *at = r->lx.p;
  if (!s) return text_no_memory(r);
  *out = s;
  if (at_mesh(r)) return read_named(r, open, s);
  while (*r->lx.p != '}') TRY(read_item(r, s, &f));
  text_eat(&r->lx, '}');
  return settle(r, s, &f, at);
}

/* Flat: one element for each leaf, in order, whatever the tuple's nesting. {} is the sharding of an empty tuple. */
static int read_tuple_sharding(text_reader *r, const ir_sharding **out) {
  uint32_t first = r->shardings.n;
  if (*r->lx.p != '}') {
    do {
      const ir_sharding *element;
      const char *open = r->lx.p;
      TRY(text_want(r, '{', "before an element of a tuple sharding"));
      TRY(read_single(r, open, &element));
      if (!BASE_VEC_PUSH(r->alloc, &r->shardings, element)) return text_no_memory(r);
    } while (text_eat(&r->lx, ','));
  }
  TRY(text_want(r, '}', "after a tuple sharding"));
  ir_sharding *s = BASE_NEW(&r->m->arena, ir_sharding);
  if (!s) return text_no_memory(r);
  s->kind = IR_SHARDING_TUPLE;
  s->n_elements = r->shardings.n - first;
  if (s->n_elements)
    s->elements = base_arena_memdup(&r->m->arena, r->shardings.items + first, s->n_elements * sizeof *s->elements);
  r->shardings.n = first;
  *out = s;
  return s->elements || !s->n_elements ? 0 : text_no_memory(r);
}

/*   {replicated}      {{replicated}, {maximal device=0}}      {} of an empty tuple */
int text_read_sharding(text_reader *r, const ir_sharding **out) {
  const char *open = r->lx.p;
  TRY(text_want(r, '{', "before a sharding"));
  if (*r->lx.p == '{' || *r->lx.p == '}') return read_tuple_sharding(r, out);
  return read_single(r, open, out);
}

/* --- replica groups --- */

/* mesh['a'=2,'b'=4] {'b'}: kept as text. Quoted names may hold braces: strings are skipped whole. A string that
 * never ends moves e to an empty text, which ends both loops. */
static int read_mesh_groups(text_reader *r, ir_groups *g) {
  const char *p = r->lx.p, *e = p;
  while (*e && *e != '{') e = *e == '"' || *e == '\'' ? text_string_end(&r->lx, e) : e + 1, e = e ? e : "";
  if (*e == '{') {
    while (*e && *e != '}') e = *e == '"' || *e == '\'' ? text_string_end(&r->lx, e) : e + 1, e = e ? e : "";
  }
  if (*e != '}')
    return text_fail(r, p, XLAC_E_BAD_ATTRIBUTE,
                     "mesh-axes replica groups need the axes in braces, as in mesh['a'=2] {'a'}");
  g->mesh_text = ir_intern(r->m, p, (size_t)(e + 1 - p));
  r->lx.p = e + 1;
  text_skip(&r->lx);
  return g->mesh_text ? 0 : text_no_memory(r);
}

/* [groups,size]<=[...]: rows of the reshaped list are the groups. */
static int read_iota_groups(text_reader *r, ir_groups *g) {
  const char *at = r->lx.p;
  g->iota = true;
  TRY(read_dims(r, &g->n_dims, &g->dims));
  if (!eat_arrow(r)) return text_expected(r, XLAC_E_BAD_ATTRIBUTE, "'<=' and an iota");
  TRY(read_iota(r, &g->n_reshape, &g->reshape, &g->perm));
  if (g->n_dims != 2)
    return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE,
                     "replica groups as an iota have two dimensions: [groups,size]<=[...]");
  int64_t slots = count_tiles(g->dims, 2), devices = count_tiles(g->reshape, g->n_reshape);
  if (slots != devices || slots < 0 || slots == INT64_MAX)
    return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "the groups have %lld slots for %lld devices", (long long)slots,
                     (long long)devices);
  return 0;
}

/* An absent list, {}, means one group of all participants; that it is `lists` of no entries says so. */
int text_read_groups(text_reader *r, const ir_groups **out) {
  ir_groups *g = BASE_NEW(&r->m->arena, ir_groups);
  if (!g) return text_no_memory(r);
  *out = g;
  if (*r->lx.p == '{') return text_read_int_lists(r, &g->lists);
  if (at_mesh(r)) return read_mesh_groups(r, g);
  if (*r->lx.p == '[') return read_iota_groups(r, g);
  return text_expected(r, XLAC_E_BAD_ATTRIBUTE, "replica groups: {{0,1},{2,3}} or [2,2]<=[4]");
}
