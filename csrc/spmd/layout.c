/* Where shards lie in whole arrays, and copies between the two. */
#include "../shard/local/local.h"
#include "../scalar/loops/loops.h"
#include "../text/mlir/mlir.h"
#include "spmd.h"

/* The offset of each device's shard; the array has been checked to be cut evenly. */
static int layout_offsets(spmd_leaf *leaf, spmd_program *p, const sdy_sharding *s, const sdy_mesh *mesh,
                          xlac_error *err) {
  int64_t *places = BASE_ARRAY(&p->arena, int64_t, (size_t)p->partitions + 1), stride = 1;
  if (!places) return base_oom(err, "shards");
  assert(sdy_mesh_size(mesh) == p->partitions || sdy_mesh_size(mesh) == 1);
  for (uint32_t d = leaf->rank; d-- > 0; stride *= leaf->dims[d]) {
    if (s->dims[d].axes.n == 0) continue;
    local_places(mesh, s->dims[d].axes, places);
    for (uint32_t i = 0; i < p->n_devices; i++) leaf->offsets[i] += places[i % p->partitions] * leaf->shard[d] * stride;
  }
  return 0;
}

/* The index of each device's first element in the whole. */
static int layout_starts(spmd_leaf *leaf, spmd_program *p, xlac_error *err) {
  leaf->starts = BASE_ARRAY(&p->arena, int64_t, (size_t)p->n_devices * leaf->rank + 1);
  if (!leaf->starts) return base_oom(err, "shards");
  for (uint32_t i = 0; i < p->n_devices; i++) {
    int64_t offset = leaf->offsets[i];
    for (uint32_t d = leaf->rank; d-- > 0;) {
      int64_t size = leaf->dims[d] > 0 ? leaf->dims[d] : 1;
      leaf->starts[(size_t)i * leaf->rank + d] = offset % size;
      offset /= size;
    }
    assert(offset == 0);
  }
  return 0;
}

/* As sdy writes it, with its mesh in place of the mesh's name. */
static int layout_name(spmd_leaf *leaf, spmd_program *p, const ir_module *m, const sdy_sharding *s,
                       const sdy_mesh *mesh, xlac_error *err) {
  sdy_sharding own = *s;
  base_text text;
  own.mesh_name = NULL;
  own.mesh = mesh;
  const ir_mattr *a = sdy_attr((ir_module *)(uintptr_t)m, SDY_SHARDING, &own);
  base_text_init(&text, p->arena.alloc);
  if (a) text_put_mlir_attr(&text, a);
  if (a && !text.failed) leaf->sharding = base_arena_strndup(&p->arena, text.s, text.n);
  base_text_free(&text);
  return leaf->sharding ? 0 : base_oom(err, "shards");
}

/* Only the outermost dimension that is longer than 1 is cut. */
static bool layout_is_contiguous(const spmd_leaf *leaf) {
  uint32_t d = 0;
  while (d < leaf->rank && leaf->shard[d] == 1) d++;
  for (d++; d < leaf->rank; d++)
    if (leaf->shard[d] != leaf->dims[d]) return false;
  return true;
}

static void layout_find_first(spmd_leaf *leaf, uint32_t n) {
  assert(n > 0 && leaf->offsets[0] >= 0);
  for (uint32_t i = 0; i < n; i++) {
    leaf->first[i] = true;
    for (uint32_t k = 0; k < i && leaf->first[i]; k++)
      leaf->first[i] = leaf->offsets[k] != leaf->offsets[i] || (leaf->part && leaf->part[k] != leaf->part[i]);
  }
}

/* Which part each device has, counted along the unreduced axes in the order of the mesh. */
static int layout_sums(spmd_leaf *leaf, spmd_program *p, const sdy_sharding *s, const sdy_mesh *mesh, xlac_error *err) {
  sdy_axis *axes = BASE_ARRAY(&p->arena, sdy_axis, (size_t)s->unreduced.n + 1);
  int64_t *places = BASE_ARRAY(&p->arena, int64_t, (size_t)p->partitions + 1);
  leaf->part = BASE_ARRAY(&p->arena, uint32_t, p->n_devices);
  if (!axes || !places || !leaf->part) return base_oom(err, "shards");
  memcpy(axes, s->unreduced.v, s->unreduced.n * sizeof *axes);
  sdy_axes sorted = {sdy_axes_sort_and_merge(axes, s->unreduced.n, mesh), axes};
  leaf->n_parts = (uint32_t)sdy_axes_size(sorted, mesh);
  leaf->reduction = s->reduction;
  local_places(mesh, sorted, places);
  for (uint32_t i = 0; i < p->n_devices; i++) leaf->part[i] = (uint32_t)places[i % p->partitions];
  return 0;
}

/* How large the shards are, and by which sharding. */
static int layout_measure(spmd_leaf *leaf, spmd_program *p, const ir_module *m, const ir_type *t, const sdy_sharding *s,
                          const sdy_mesh *mesh, xlac_error *err) {
  leaf->rank = t->rank;
  leaf->bytes = (uint32_t)base_dtype_bytes((base_dtype)t->dtype);
  if (t->rank) memcpy(leaf->dims, t->dims, t->rank * sizeof *leaf->dims);
  memcpy(leaf->shard, leaf->dims, sizeof leaf->shard);
  for (uint32_t d = 0; mesh && d < t->rank && d < s->n_dims; d++) {
    int64_t n = sdy_axes_size(s->dims[d].axes, mesh);
    assert(n > 0 && t->dims[d] % n == 0);
    leaf->shard[d] /= n;
    leaf->split = leaf->split || n > 1;
  }
  return mesh && s->n_dims == t->rank ? layout_name(leaf, p, m, s, mesh, err) : 0;
}

int spmd_leaf_make(spmd_leaf *leaf, spmd_program *p, const ir_module *m, const ir_type *t, const sdy_sharding *s,
                   xlac_error *err) {
  const sdy_mesh *mesh = s ? sdy_mesh_of(m, s) : NULL;
  bool sized = ir_is_tensor(t) && !t->has_dynamic;
  memset(leaf, 0, sizeof *leaf);
  leaf->n_parts = 1;
  if (sized) TRY(layout_measure(leaf, p, m, t, s, mesh, err));
  leaf->contiguous = layout_is_contiguous(leaf);
  if (p->rehearsal) return 0;
  leaf->offsets = BASE_ARRAY(&p->arena, int64_t, p->n_devices);
  leaf->first = BASE_ARRAY(&p->arena, bool, p->n_devices);
  if (!leaf->offsets || !leaf->first) return base_oom(err, "shards");
  memset(leaf->offsets, 0, p->n_devices * sizeof *leaf->offsets);
  if (leaf->split) TRY(layout_offsets(leaf, p, s, mesh, err));
  if (sized && mesh && s->unreduced.n) TRY(layout_sums(leaf, p, s, mesh, err));
  layout_find_first(leaf, p->n_devices);
  return layout_starts(leaf, p, err);
}

int64_t spmd_shard_bytes(const spmd_leaf *leaf) {
  int64_t n = leaf->bytes;
  for (uint32_t d = 0; d < leaf->rank; d++) n *= leaf->shard[d];
  return n;
}

/* Rows of the shard: the longest run that is contiguous in the whole, too. */
typedef struct layout_walk {
  uint32_t rank;                                        /* dimensions that are walked */
  int64_t dims[IR_MAX_RANK], strides[IR_MAX_RANK], row; /* strides of the whole, and a row, in bytes */
} layout_walk;

static layout_walk layout_rows(const spmd_leaf *leaf) {
  layout_walk w = {.row = leaf->bytes};
  uint32_t d = leaf->rank;
  int64_t stride = leaf->bytes;
  while (d > 0 && leaf->shard[d - 1] == leaf->dims[d - 1]) w.row *= leaf->dims[--d];
  if (d > 0) w.row *= leaf->shard[d - 1], d--;
  w.rank = d;
  for (uint32_t i = leaf->rank; i-- > 0; stride *= leaf->dims[i]) {
    if (i >= d) continue;
    w.dims[i] = leaf->shard[i];
    w.strides[i] = stride;
  }
  return w;
}

typedef enum layout_way { LAYOUT_SPLITS, LAYOUT_JOINS, LAYOUT_ADDS } layout_way;

static void layout_row(layout_way way, const scalar_loop *sum, size_t bytes, uint32_t each, char *shard, char *whole) {
  const void *in[2] = {whole, shard};
  if (way == LAYOUT_SPLITS)
    memcpy(shard, whole, bytes);
  else if (way == LAYOUT_JOINS)
    memcpy(whole, shard, bytes);
  else
    scalar_loop_run(sum, (int64_t)(bytes / each), in, whole);
}

/* Rows in the order of the shard; `whole` is where its first element is. */
static void layout_copy(const spmd_leaf *leaf, char *shard, char *whole, layout_way way, const scalar_loop *sum) {
  layout_walk w = layout_rows(leaf);
  assert(leaf->bytes > 0); /* tokens have no shards */
  int64_t at[IR_MAX_RANK] = {0}, rows = 1, offset = 0;
  for (uint32_t d = 0; d < w.rank; d++) rows *= w.dims[d];
  for (int64_t i = 0; w.row && i < rows; i++, shard += w.row) {
    layout_row(way, sum, (size_t)w.row, leaf->bytes, shard, whole + offset);
    for (uint32_t d = w.rank; d-- > 0;) {
      offset += w.strides[d];
      if (++at[d] < w.dims[d]) break;
      offset -= w.strides[d] * w.dims[d];
      at[d] = 0;
    }
  }
}

void spmd_split(const spmd_leaf *leaf, uint32_t device, void *shard, const void *whole) {
  layout_copy(leaf, shard, (char *)(uintptr_t)whole + leaf->offsets[device] * leaf->bytes, LAYOUT_SPLITS, NULL);
}

void spmd_join(const spmd_leaf *leaf, uint32_t device, void *whole, const void *shard) {
  layout_copy(leaf, (char *)(uintptr_t)shard, (char *)whole + leaf->offsets[device] * leaf->bytes, LAYOUT_JOINS, NULL);
}

void spmd_add(const spmd_leaf *leaf, const ir_type *t, uint32_t device, void *whole, const void *shard) {
  scalar_loop sum;
  scalar_code code = leaf->reduction == SDY_MAX   ? SCALAR_MAXIMUM
                     : leaf->reduction == SDY_MIN ? SCALAR_MINIMUM
                     : t->dtype == XLAC_PRED      ? SCALAR_OR
                                                  : SCALAR_ADD;
  bool there = scalar_loop_binary(code, (base_dtype)t->dtype, &sum);
  assert(there && leaf->part);
  if (there)
    layout_copy(leaf, (char *)(uintptr_t)shard, (char *)whole + leaf->offsets[device] * leaf->bytes, LAYOUT_ADDS, &sum);
}
