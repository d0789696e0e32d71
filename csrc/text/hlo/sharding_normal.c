/* XLA's normal forms of device assignments: what it prints is what it keeps, so equal shardings look equal.
 *
 * An iota [reshape]T(perm) loses dimensions of size one, and dimensions that stay neighbours merge. A tiled sharding
 * with subgroups (kinds for its last tile dimensions) loses subgroups of size one, sorts the rest (manual, unreduced,
 * replicated) and merges equal ones; within a replicated subgroup the devices are in ascending order. */
#include "read.h"

#include <stdlib.h>

/* Bounds on what a sharding's devices are taken apart into, and on how many are looked at one by one. */
enum { MAX_PARTS = 2 * IR_MAX_RANK, MAX_EXPANDED = 1 << 20 };

/* Drops the dimensions of size one.
 *   [2,1,4]T(1,2,0)   becomes   [2,4]T(1,0) */
static void drop_ones(uint32_t *n, int64_t *reshape, int64_t *perm) {
  int64_t renumber[MAX_PARTS];
  uint32_t kept = 0, at = 0;
  for (uint32_t i = 0; i < *n; i++) {
    renumber[i] = reshape[i] == 1 ? -1 : (int64_t)kept;
    if (reshape[i] != 1) reshape[kept++] = reshape[i];
  }
  for (uint32_t i = 0; i < *n; i++)
    if (renumber[perm[i]] >= 0) perm[at++] = renumber[perm[i]];
  assert(at == kept);
  *n = kept;
}

/* Merges runs of dimensions that follow one another both before and after; true if any did.
 *   [2,2,3]T(2,0,1)   becomes   [4,1,3]T(2,0,1), whose 1 the next drop_ones takes away: [4,3]T(1,0) */
static bool merge_runs(uint32_t n, int64_t *reshape, const int64_t *perm) {
  bool changed = false;
  for (uint32_t i = 1, base = 0; i < n; i++) {
    /* A product beyond int64 is not a number of devices: it stays in parts, for the verifier to count. */
    bool follows = perm[base] + (int64_t)(i - base) == perm[i];
    int64_t product;
    if (!follows || !base_mul_i64(reshape[perm[base]], reshape[perm[i]], &product)) {
      base = i;
      continue;
    }
    reshape[perm[base]] = product;
    reshape[perm[i]] = 1;
    changed = true;
  }
  return changed;
}

/* Dropping may make new neighbours, so that both steps alternate until nothing changes. An iota of one device keeps
 * one dimension. */
void text_normal_iota(uint32_t *n, int64_t *reshape, int64_t *perm) {
  assert(*n <= MAX_PARTS);
  if (*n <= 1) return;
  do drop_ones(n, reshape, perm);
  while (merge_runs(*n, reshape, perm));
  if (*n == 0) {
    *n = 1;
    reshape[0] = 1;
    perm[0] = 0;
  }
}

/* --- subgroups --- */

/* A tile assignment being rearranged: either an iota of at most MAX_PARTS parts or explicit devices. */
typedef struct assignment {
  uint32_t n_parts;
  int64_t parts[MAX_PARTS], order[MAX_PARTS]; /* reshape and perm */
  int64_t *devices;                           /* explicit, or NULL */
  int64_t count;
} assignment;

/* The number of devices, saturating: a count so large fails every comparison that follows. */
static int64_t product(const int64_t *v, uint32_t n) {
  int64_t p = 1;
  for (uint32_t i = 0; i < n; i++)
    if (!base_mul_i64(p, v[i], &p)) return INT64_MAX;
  return p;
}

/* Only an iota has parts; a list's devices are copied by expand(). */
static void from_sharding(const ir_sharding *s, assignment *a) {
  a->n_parts = s->n_reshape;
  a->count = product(s->dims, s->n_dims);
  for (uint32_t i = 0; i < s->n_reshape; i++) {
    a->parts[i] = s->reshape[i];
    a->order[i] = s->perm ? s->perm[i] : i;
  }
}

/* Writes the devices out, in assignment order. Device i of the assignment is the iota's element at the transposed
 * index of i. */
static int expand(text_reader *r, const char *at, const ir_sharding *s, assignment *a) {
  if (a->count > MAX_EXPANDED)
    return text_fail(r, at, XLAC_E_TOO_LARGE, "a sharding of %lld devices that only an explicit list can express",
                     (long long)a->count);
  TRY(text_charge(r, at, (size_t)a->count * sizeof *a->devices));
  a->devices = BASE_ARRAY(&r->m->arena, int64_t, (size_t)a->count + 1);
  if (!a->devices) return text_no_memory(r);
  if (!s->iota) {
    if (a->count) memcpy(a->devices, s->devices, (size_t)a->count * sizeof *a->devices);
    return 0;
  }
  for (int64_t i = 0; i < a->count; i++) {
    int64_t rest = i, index[MAX_PARTS], device = 0;
    for (uint32_t d = a->n_parts; d-- > 0; rest /= a->parts[a->order[d]])
      index[a->order[d]] = rest % a->parts[a->order[d]];
    for (uint32_t d = 0; d < a->n_parts; d++) device = device * a->parts[d] + index[d];
    a->devices[i] = device;
  }
  return 0;
}

/* Splits the part that stands at position `at` in assignment order into an outer one and an inner one of size
 * `inner`.
 *
 *   parts [8], order (0), inner 2   becomes   parts [4,2], order (0,1) */
static bool split_part(assignment *a, uint32_t at, int64_t inner) {
  assert(at < a->n_parts && inner > 0);
  int64_t part = a->order[at];
  if (a->n_parts == MAX_PARTS || a->parts[part] % inner != 0) return false;
  memmove(a->parts + part + 2, a->parts + part + 1, (a->n_parts - (uint32_t)part - 1) * sizeof *a->parts);
  memmove(a->order + at + 2, a->order + at + 1, (a->n_parts - at - 1) * sizeof *a->order);
  a->parts[part] /= inner;
  a->parts[part + 1] = inner;
  a->n_parts++;
  for (uint32_t i = 0; i < a->n_parts; i++)
    if (i != at + 1 && a->order[i] > part) a->order[i]++;
  a->order[at + 1] = part + 1;
  return true;
}

/* Cuts the parts, from the last on, so that the tile dimensions are runs of whole parts. runs[d] gets the number of
 * parts of tile dimension d. false when sizes don't divide. */
static bool cut_at_dims(assignment *a, const int64_t *dims, uint32_t n, uint32_t *runs) {
  uint32_t at = a->n_parts;
  for (uint32_t d = n; d-- > 0;) {
    int64_t left = dims[d];
    runs[d] = 0;
    while (left > 1) {
      if (at == 0 || left == 0) return false;
      int64_t size = a->parts[a->order[at - 1]];
      if (size > left) {
        if (size % left != 0 || !split_part(a, at - 1, left)) return false;
        at++;
        size = left;
      }
      if (size == 0 || left % size != 0) return false;
      left /= size;
      at--;
      runs[d]++;
    }
  }
  return true;
}

/* The tile dimensions dims reordered by perm: of an iota by moving its parts, of a list by moving devices. */
static bool transpose_iota(assignment *a, const int64_t *dims, uint32_t n, const uint32_t *perm) {
  uint32_t runs[IR_MAX_RANK], starts[IR_MAX_RANK], at = 0;
  assignment cut = *a;
  if (!cut_at_dims(&cut, dims, n, runs)) return false;
  uint32_t skipped = cut.n_parts;
  for (uint32_t d = 0; d < n; d++) skipped -= runs[d];
  at = skipped; /* leading parts of size one */
  for (uint32_t d = 0; d < n; at += runs[d++]) starts[d] = at;
  *a = cut;
  at = skipped;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < runs[perm[i]]; k++) a->order[at++] = cut.order[starts[perm[i]] + k];
  text_normal_iota(&a->n_parts, a->parts, a->order);
  return true;
}

/* moved[i] is the device at the index that i has in the reordered dimensions. */
static int transpose_list(text_reader *r, assignment *a, const int64_t *dims, uint32_t n, const uint32_t *perm) {
  assert(a->devices && product(dims, n) == a->count);
  int64_t strides[IR_MAX_RANK], stride = 1;
  int64_t *moved = BASE_ARRAY(&r->m->arena, int64_t, (size_t)a->count + 1);
  if (!moved) return text_no_memory(r);
  for (uint32_t d = n; d-- > 0; stride *= dims[d]) strides[d] = stride;
  for (int64_t i = 0; i < a->count; i++) {
    int64_t rest = i, from = 0;
    for (uint32_t k = n; k-- > 0; rest /= dims[perm[k]]) from += rest % dims[perm[k]] * strides[perm[k]];
    moved[i] = a->devices[from];
  }
  a->devices = moved;
  return 0;
}

/* Ascending. */
static int compare_devices(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* At most MAX_PARTS of them. */
static void sort_numbers(int64_t *v, uint32_t n) {
  for (uint32_t i = 1; i < n; i++)
    for (uint32_t j = i; j > 0 && v[j - 1] > v[j]; j--) {
      int64_t t = v[j];
      v[j] = v[j - 1];
      v[j - 1] = t;
    }
}

/* Puts each group of `size` neighbours, which hold the same data, in ascending order. An iota whose last parts make
 * up the group is sorted by putting those parts in their original order; only where that is impossible are the
 * devices written out. */
static int sort_groups(text_reader *r, const char *at, const ir_sharding *s, assignment *a, int64_t size) {
  if (!a->devices) {
    uint32_t runs[2];
    assignment cut = *a;
    if (a->parts[a->order[a->n_parts - 1]] == size) return 0;
    if (cut_at_dims(&cut, (int64_t[]){1, size}, 2, runs)) {
      *a = cut;
      sort_numbers(a->order + a->n_parts - runs[1], runs[1]);
      text_normal_iota(&a->n_parts, a->parts, a->order);
      return 0;
    }
    ir_sharding iota = {.iota = true, .n_dims = s->n_dims, .dims = s->dims};
    TRY(expand(r, at, &iota, a));
  }
  for (int64_t i = 0; i + size <= a->count; i += size)
    qsort(a->devices + i, (size_t)size, sizeof *a->devices, compare_devices);
  return 0;
}

/* Subgroup kinds in XLA's order. */
static const uint8_t kind_order[] = {IR_SHARDING_MAXIMAL, IR_SHARDING_MANUAL, IR_SHARDING_UNREDUCED,
                                     IR_SHARDING_REPLICATED};

/* The new tile dimensions and kinds; perm says where each old dimension goes (those of size one last). */
typedef struct merged {
  uint32_t n_dims, n_kinds, n_perm;
  int64_t dims[IR_MAX_RANK];
  uint8_t kinds[IR_MAX_RANK];
  uint32_t perm[IR_MAX_RANK];
} merged;

/* The data dimensions stay in front; then one dimension for each kind that occurs, in XLA's order. */
static void merge_kinds(const ir_sharding *s, const uint8_t *kinds, uint32_t n_kinds, merged *m) {
  assert(n_kinds <= s->n_dims && s->n_dims <= IR_MAX_RANK);
  uint32_t data = s->n_dims - n_kinds;
  *m = (merged){.n_dims = data, .n_perm = data};
  for (uint32_t i = 0; i < data; i++) {
    m->dims[i] = s->dims[i];
    m->perm[i] = i;
  }
  for (uint32_t k = 0; k < sizeof kind_order; k++) {
    int64_t size = 1;
    for (uint32_t i = 0; i < n_kinds; i++) {
      if (kinds[i] != kind_order[k] || s->dims[data + i] == 1) continue;
      m->perm[m->n_perm++] = data + i;
      size *= s->dims[data + i];
    }
    if (size == 1) continue;
    m->kinds[m->n_kinds++] = kind_order[k];
    m->dims[m->n_dims++] = size;
  }
  for (uint32_t i = 0; i < n_kinds; i++)
    if (s->dims[data + i] == 1) m->perm[m->n_perm++] = data + i;
}

/* A transposition that moves nothing. */
static bool is_identity(const uint32_t *perm, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (perm[i] != i) return false;
  return true;
}

/* One replicated subgroup is XLA's older form, last_tile_dim_replicate. */
static int store_assignment(text_reader *r, ir_sharding *s, const assignment *a, const merged *m) {
  base_arena *arena = &r->m->arena;
  s->n_dims = m->n_dims;
  s->dims = base_arena_memdup(arena, m->dims, m->n_dims * sizeof *m->dims);
  s->replicate_on_last_dim = m->n_kinds == 1 && m->kinds[0] == IR_SHARDING_REPLICATED;
  s->n_subgroups = s->replicate_on_last_dim ? 0 : m->n_kinds;
  s->subgroups = s->n_subgroups ? base_arena_memdup(arena, m->kinds, m->n_kinds) : NULL;
  if (!s->dims || (s->n_subgroups && !s->subgroups)) return text_no_memory(r);
  if (a->devices) {
    s->iota = false;
    s->n_reshape = 0;
    s->reshape = s->perm = NULL;
    s->devices = a->devices;
    s->n_devices = (uint32_t)a->count;
    return 0;
  }
  s->n_reshape = a->n_parts;
  s->reshape = base_arena_memdup(arena, a->parts, a->n_parts * sizeof *a->parts);
  s->perm = a->n_parts > 1 ? base_arena_memdup(arena, a->order, a->n_parts * sizeof *a->order) : NULL;
  return s->reshape && (s->perm || a->n_parts <= 1) ? 0 : text_no_memory(r);
}

/* A sharding that splits no data dimension is of its subgroups' one kind. */
static void collapse(ir_sharding *s, uint8_t kind) {
  assert(s->kind == IR_SHARDING_TILED);
  *s = (ir_sharding){
      .kind = kind, .group = s->group, .group_id = s->group_id, .n_metadata = s->n_metadata, .metadata = s->metadata};
}

/* Follows XLA's HloSharding::Subgroup: subgroups of one kind over a single data tile collapse first, then the kinds
 * are merged, the devices moved along, replicated groups sorted, and what is left is looked at again. */
int text_normal_subgroups(text_reader *r, const char *at, ir_sharding *s) {
  static const uint8_t replicated[] = {IR_SHARDING_REPLICATED};
  const uint8_t *kinds = s->replicate_on_last_dim ? replicated : s->subgroups;
  uint32_t n_kinds = s->replicate_on_last_dim ? 1 : s->n_subgroups;
  bool same = true;
  for (uint32_t i = 1; i < n_kinds; i++) same = same && kinds[i] == kinds[0];
  if (same && kinds[0] != IR_SHARDING_MAXIMAL && product(s->dims, s->n_dims - n_kinds) == 1)
    return collapse(s, kinds[0]), 0;
  assignment a = {0};
  merged m;
  from_sharding(s, &a);
  merge_kinds(s, kinds, n_kinds, &m);
  if (!s->iota) TRY(expand(r, at, s, &a));
  if (a.count > 0 && !is_identity(m.perm, m.n_perm)) {
    if (!a.devices && !transpose_iota(&a, s->dims, s->n_dims, m.perm)) TRY(expand(r, at, s, &a));
    if (a.devices) TRY(transpose_list(r, &a, s->dims, s->n_dims, m.perm));
  }
  if (a.count > 0 && m.n_kinds && m.kinds[m.n_kinds - 1] == IR_SHARDING_REPLICATED)
    TRY(sort_groups(r, at, s, &a, m.dims[m.n_dims - 1]));
  if (m.n_kinds == 1 && m.kinds[0] != IR_SHARDING_UNREDUCED && a.count == m.dims[m.n_dims - 1])
    return collapse(s, m.kinds[0]), 0;
  return store_assignment(r, s, &a, &m);
}
