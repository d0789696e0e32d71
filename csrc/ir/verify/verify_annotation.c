/* What ops are annotated with besides their semantics: shardings, layouts, origins, and words out of a fixed list.
 *
 * A sharding fits its type when it tiles as many dimensions as there are, has a device for each tile and none twice:
 * f32[8,4] with devices=[2,2]<=[4] is cut into 4 tiles of f32[4,2]. */
#include "verify.h"

static int fail_sharding(const ir_op *op, xlac_error *err, const char *format, ...) BASE_PRINTF(3, 4);
static int fail_sharding(const ir_op *op, xlac_error *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char message[sizeof err->message];
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return ir_verify_fail(op, XLAC_E_VERIFY_SHARDING, err, "has a sharding that does not fit: %s", message);
}

/* `seen` maps a device to its place in the list, for the message. */
static int check_unique_devices(const ir_op *op, const ir_sharding *s, base_map *seen, xlac_error *err) {
  for (uint32_t i = 0; i < s->n_devices; i++) {
    uint64_t other;
    if (s->devices[i] < 0) return fail_sharding(op, err, "device %lld is negative", (long long)s->devices[i]);
    if (base_map_get(seen, (uint64_t)s->devices[i], &other))
      return fail_sharding(op, err, "device %lld stands at places %llu and %u", (long long)s->devices[i],
                           (unsigned long long)other, i);
    if (!base_map_set(seen, (uint64_t)s->devices[i], i)) return base_oom(err, "a table of devices");
  }
  return 0;
}

/* Product of the tile dims, or -1 on overflow or a size below 1. An empty list has the product 1. */
static int64_t product_of(uint32_t n, const int64_t *dims) {
  assert(dims || n == 0);
  int64_t product = 1;
  for (uint32_t i = 0; i < n; i++)
    if (dims[i] < 1 || !base_mul_i64(product, dims[i], &product)) return -1;
  return product;
}

/* The iota form lists 0 to n-1 in some order, so only its count can be wrong. */
static int check_devices(const ir_op *op, const ir_sharding *s, xlac_error *err) {
  int64_t tiles = product_of(s->n_dims, s->dims);
  if (tiles < 0) return fail_sharding(op, err, "tile sizes must be positive and their product must fit");
  if (s->iota) {
    if (product_of(s->n_reshape, s->reshape) == tiles) return 0;
    return fail_sharding(op, err, "%lld tiles but another number of devices in the iota", (long long)tiles);
  }
  if (s->n_devices != tiles) return fail_sharding(op, err, "%lld tiles but %u devices", (long long)tiles, s->n_devices);
  base_map seen;
  base_map_init(&seen, op->parent->module->alloc);
  int status = check_unique_devices(op, s, &seen, err);
  base_map_free(&seen);
  return status;
}

/* Trailing dims of the tile assignment are subgroups or the replicated rest, not dimensions of the type. Shardings by
 * mesh axes are kept as text and not looked into. */
static int check_tiled(const ir_op *op, const ir_sharding *s, const ir_type *t, xlac_error *err) {
  if (s->kind == IR_SHARDING_MAXIMAL && s->device < 0)
    return fail_sharding(op, err, "device %lld is negative", (long long)s->device);
  if (s->kind != IR_SHARDING_TILED || s->named_text) return 0;
  uint32_t extra = s->n_subgroups + (s->replicate_on_last_dim ? 1 : 0);
  if (ir_is_tensor(t) && s->n_dims - extra != t->rank)
    return fail_sharding(op, err, "it tiles %u dimensions; %s has %u", s->n_dims - extra, IR_SHOW(t), t->rank);
  return check_devices(op, s, err);
}

/* Shardings of a tuple are listed leaf by leaf; an empty tuple counts as one leaf. */
static int check_leaves(const ir_op *op, const ir_sharding *s, const ir_type *t, uint32_t *next, xlac_error *err) {
  assert(*next <= s->n_elements);
  if (!ir_is_tuple(t)) return *next < s->n_elements ? check_tiled(op, s->elements[(*next)++], t, err) : 0;
  for (uint32_t i = 0; i < t->n_elements; i++) TRY(check_leaves(op, s, t->elements[i], next, err));
  return 0;
}

/* One sharding for a tuple type applies to all its leaves and is not compared with them: HLO allows it. */
int ir_verify_sharding(const ir_op *op, const ir_sharding *s, xlac_error *err) {
  assert(op->type && s);
  if (s->kind != IR_SHARDING_TUPLE) return ir_is_tuple(op->type) ? 0 : check_tiled(op, s, op->type, err);
  /* Ops with side effects are sharded by what they move, which their own rules know better. */
  if (ir_opcode_has(op->opcode, IR_SIDE_EFFECT)) return 0;
  uint32_t leaves = ir_type_leaves(op->type), next = 0;
  if (leaves == 0) leaves = 1;
  if (s->n_elements != leaves)
    return fail_sharding(op, err, "%u shardings for the %u leaves of %s", s->n_elements, leaves, IR_SHOW(op->type));
  return check_leaves(op, s, op->type, &next, err);
}

/* --- comparing --- */

/* Device i, row-major over the tile dims, of an assignment in iota form: reshape transposed by perm, or as it is. For
 * [4,2]<=[2,4]T(1,0): reshape {2,4}, perm {1,0}; tile 1 is device 4. */
static int64_t iota_device(const ir_sharding *s, int64_t i) {
  assert(s->iota && i >= 0);
  int64_t device = 0;
  for (uint32_t k = s->n_reshape; k-- > 0;) {
    int64_t axis = s->perm ? s->perm[k] : k, stride = 1;
    for (int64_t a = axis + 1; a < s->n_reshape; a++) stride *= s->reshape[a];
    device += i % s->reshape[axis] * stride;
    i /= s->reshape[axis];
  }
  return device;
}

/* NULL lists only where n is 0. */
static bool same_int_lists(uint32_t n, const int64_t *a, const int64_t *b) {
  return n == 0 || memcmp(a, b, n * sizeof *a) == 0;
}

/* perm NULL is the identity; written out it counts as another spelling. */
static bool same_iota(const ir_sharding *a, const ir_sharding *b) {
  if (a->n_reshape != b->n_reshape || !same_int_lists(a->n_reshape, a->reshape, b->reshape)) return false;
  if (!a->perm || !b->perm) return a->perm == b->perm;
  return same_int_lists(a->n_reshape, a->perm, b->perm);
}

/* Both have the same tile dims, and ir_verify_sharding has found as many devices as tiles. */
static bool same_devices(const ir_sharding *a, const ir_sharding *b) {
  assert(a->n_dims == b->n_dims);
  if (a->iota && b->iota) return same_iota(a, b);
  if (!a->iota && !b->iota) return a->n_devices == b->n_devices && same_int_lists(a->n_devices, a->devices, b->devices);
  const ir_sharding *listed = a->iota ? b : a, *iota = a->iota ? a : b;
  if (product_of(iota->n_reshape, iota->reshape) != (int64_t)listed->n_devices) return false;
  for (uint32_t i = 0; i < listed->n_devices; i++)
    if (iota_device(iota, i) != listed->devices[i]) return false;
  return true;
}

/* Mesh-axes texts are interned: one module, one pointer. */
static bool same_tiled(const ir_sharding *a, const ir_sharding *b) {
  if (a->named_text || b->named_text) return a->named_text == b->named_text;
  return a->n_dims == b->n_dims && same_int_lists(a->n_dims, a->dims, b->dims) &&
         a->replicate_on_last_dim == b->replicate_on_last_dim && a->n_subgroups == b->n_subgroups &&
         (a->n_subgroups == 0 || memcmp(a->subgroups, b->subgroups, a->n_subgroups) == 0) && same_devices(a, b);
}

/* Metadata does not count. */
bool ir_verify_sharding_same(const ir_sharding *a, const ir_sharding *b) {
  assert(a && b);
  if (a->kind != b->kind || a->group != b->group || a->group_id != b->group_id) return false;
  if (a->kind == IR_SHARDING_TILED) return same_tiled(a, b);
  if (a->kind == IR_SHARDING_MAXIMAL) return a->device == b->device;
  if (a->kind != IR_SHARDING_TUPLE) return true;
  if (a->n_elements != b->n_elements) return false;
  for (uint32_t i = 0; i < a->n_elements; i++)
    if (!ir_verify_sharding_same(a->elements[i], b->elements[i])) return false;
  return true;
}

/* --- layouts: {minor_to_major:T(tiles)...} against the shape they belong to --- */
static int fail_layout(const ir_type *t, xlac_error *err, const char *what) {
  return base_fail(err, XLAC_E_VERIFY_LAYOUT, "layout of %s: %s", IR_SHOW(t), what);
}

/* The rank limit was checked when the type was made. */
static int check_order(const ir_type *t, const ir_layout *l, xlac_error *err) {
  assert(t->rank <= IR_MAX_RANK);
  if (l->rank != t->rank) return fail_layout(t, err, "minor_to_major must list every dimension once");
  bool seen[IR_MAX_RANK] = {false};
  for (uint32_t i = 0; i < l->rank; i++) {
    int64_t d = l->minor_to_major[i];
    if (d < 0 || d >= t->rank) return fail_layout(t, err, "minor_to_major names a dimension that does not exist");
    if (seen[d]) return fail_layout(t, err, "minor_to_major names a dimension twice");
    seen[d] = true;
  }
  return 0;
}

/* "*" combines with the next dimension and has no size. */
static int check_tiles(const ir_type *t, const ir_layout *l, xlac_error *err) {
  for (uint32_t i = 0; i < l->n_tiles; i++)
    for (uint32_t d = 0; d < l->tiles[i].rank; d++)
      if (l->tiles[i].dims[d] != IR_TILE_COMBINE && l->tiles[i].dims[d] <= 0)
        return fail_layout(t, err, "tile sizes must be positive");
  return 0;
}

/* Split indices cut a dimension: strictly rising, strictly inside. */
static int check_splits(const ir_type *t, const ir_layout *l, xlac_error *err) {
  assert(l->rank == t->rank);
  for (uint32_t i = 0; i < l->n_splits; i++) {
    const ir_split *s = &l->splits[i];
    if (s->dimension < 0 || s->dimension >= t->rank)
      return fail_layout(t, err, "a split names a dimension that does not exist");
    int64_t last = 0;
    for (uint32_t k = 0; k < s->n; k++) {
      if (s->indices[k] <= last || s->indices[k] >= t->dims[s->dimension])
        return fail_layout(t, err, "split indices must rise strictly inside the dimension");
      last = s->indices[k];
    }
  }
  return 0;
}

/* No levels at all means dense. */
static bool is_dense(const ir_layout *l) {
  for (uint32_t i = 0; l->levels && i < l->rank; i++)
    if (l->levels[i].form != 'D') return false;
  return true;
}

/* No layout at all is fine: MLIR form has none. */
static int check_tensor_layout(const ir_type *t, xlac_error *err) {
  const ir_layout *l = t->layout;
  if (!l) return 0;
  TRY(check_order(t, l, err));
  TRY(check_tiles(t, l, err));
  TRY(check_splits(t, l, err));
  if (is_dense(l) && (l->index_type || l->pointer_type))
    return fail_layout(t, err, "index and pointer types are for sparse layouts");
  if (l->tail_padding <= 0) return fail_layout(t, err, "tail padding L(n) must be positive");
  return l->physical ? ir_verify_layouts(l->physical, err) : 0;
}

/* Types nest at most IR_MAX_TYPE_DEPTH deep. */
int ir_verify_layouts(const ir_type *t, xlac_error *err) {
  assert(t);
  if (t->kind == IR_TYPE_TENSOR) return check_tensor_layout(t, err);
  if (t->kind == IR_TYPE_BUFFER) return ir_verify_layouts(t->inner, err);
  for (uint32_t i = 0; i < t->n_elements; i++) TRY(ir_verify_layouts(t->elements[i], err));
  return 0;
}

/* --- origin={...}: which values of the original program an op stands for, one for each leaf of its type ---
 *
 * Kept as text, so the text's parentheses are held against the type's: (f32[], (f32[])) goes with {({"a"}, ({"b"}))}.
 */
static const char *skip_blanks(const char *p) {
  return p + strspn(p, " \t\r\n");
}

/* After the '}' that ends a leaf; quoted strings may hold braces. NULL when there is none. */
static const char *skip_leaf(const char *p) {
  assert(*p == '{');
  uint32_t depth = 0;
  for (bool quoted = false; *p; p++) {
    if (quoted && *p == '\\' && p[1]) {
      p++;
    } else if (*p == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      depth += *p == '{';
      if (*p == '}' && --depth == 0) return p + 1;
    }
  }
  return NULL;
}

/* *text stands at a '(' or '{' and moves behind what belongs to t. IR_MAX_TYPE_DEPTH bounds the recursion. */
static bool origin_fits(const char **text, const ir_type *t) {
  assert(text && *text && t);
  const char *p = skip_blanks(*text);
  if (!ir_is_tuple(t)) {
    if (*p != '{') return false;
    *text = skip_leaf(p);
    return *text != NULL;
  }
  if (*p != '(') return false;
  p = skip_blanks(p + 1);
  for (uint32_t i = 0; i < t->n_elements; i++) {
    if (i > 0 && *p++ != ',') return false;
    if (!origin_fits(&p, t->elements[i])) return false;
    p = skip_blanks(p);
  }
  if (*p != ')') return false;
  *text = p + 1;
  return true;
}

/* Nothing to check without the attribute. */
int ir_verify_origin(const ir_op *op, xlac_error *err) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_ORIGIN);
  if (!a || !a->v.str) return 0;
  const char *p = skip_blanks(a->v.str->s);
  if (*p == '{') p = skip_blanks(p + 1);
  if (*p == '[' || *p == '}' || *p == 0) return 0; /* a synthetic call, or nothing */
  if (origin_fits(&p, op->type)) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err, "has an origin of another tuple structure than its type %s",
                        IR_SHOW(op->type));
}

/* --- words: readers refuse most wrong ones already; builders and editors can set any --- */
/* Words that readers know but that stand for no meaning. */
static bool says_invalid(const ir_attr *a, int64_t number) {
  return (a->key == IR_ATTR_DISTRIBUTION && number == IR_DISTRIBUTION_INVALID) ||
         (a->key == IR_ATTR_TRANSPOSE_A && number == IR_TRANSPOSE_INVALID);
}

static int check_word(const ir_op *op, const ir_attr *a, int64_t number, xlac_error *err) {
  const char *word = ir_attr_word(op->opcode, (ir_attr_key)a->key, number);
  if (*word && !says_invalid(a, number)) return 0;
  return base_hint(err,
                   ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err, "has %s=%s, which is not a value of that attribute",
                                  ir_attr_table[a->key].text, word),
                   "one of %s", ir_words_text(ir_attr_words(op->opcode, (ir_attr_key)a->key), (char[320]){0}, 320));
}

/* All attributes of the op, whether its row lists them or not. */
int ir_verify_words(const ir_op *op, xlac_error *err) {
  for (uint32_t i = 0; i < op->n_attrs; i++) {
    const ir_attr *a = &op->attrs[i];
    assert(a->key < IR_ATTR_COUNT);
    if (a->kind == IR_KIND_NAME) TRY(check_word(op, a, a->v.i, err));
    for (uint32_t k = 0; a->kind == IR_KIND_NAMES && k < a->v.ints->n; k++)
      TRY(check_word(op, a, a->v.ints->v[k], err));
  }
  return 0;
}
