/* Rows: which kernels can go through memory together, some rows at a time, and how many at a time. For softmax over
 * [1000,512] these are the kernels
 *
 *    m = max(x) by row       [1000]
 *    e = exp(x - m)          [1000,512]   s = sum(e) by row
 *    y = e / s               [1000,512]
 *
 * whose iterations are all cut into the same 1000 rows: a tile of rows goes through all of them before the next tile
 * begins, so that what one writes the next finds in the cache. What is asked here is asked of one kernel, or of one
 * index; whether the memory of several allows it the plan knows (plan/tile.c). */
#include "fusion_inside.h"

enum {
  TILE_MIN_ROWS = 16,
  TILE_LANES = 1024,       /* a tile of more rows has a multiple of it: rows may be single elements */
  TILE_LEAST = 32 << 10,   /* bytes of a tile: ... */
  TILE_MOST = 128 << 10,   /* ... its scratch memory is on the stack */
  TILE_PRODUCTS = 3 << 20, /* bytes in all that a product must be among: what is less is in the caches anyway, where a
                              product by itself is faster; of the devices of a group each has a part of them */
  TILE_SHARERS = 4,        /* of many devices: so many at most are at the same step */
  TILE_OF_SECOND_LEVEL = 8 /* a tile takes that part of the second cache: others go through it, too */
};

/* The rows of a kernel: the first `whole` dimensions count `before` of them, and dimension `whole` each `parts` more.
 */
typedef struct tile_cut {
  uint32_t whole;
  int64_t parts;
} tile_cut;

/* How `rows` rows cut the kernel's dimensions from the outermost on; false where the cut would not be by whole
 * indexes. */
static bool tile_cut_of(const kernel *k, int64_t rows, tile_cut *cut) {
  assert(rows > 0 && k->count > 0);
  int64_t before = 1;
  uint32_t d = 0;
  while (d < k->rank && rows % (before * k->extents[d]) == 0 && before < rows) before *= k->extents[d++];
  cut->whole = d;
  cut->parts = rows / before;
  if (before == rows) return true;
  return d < k->rank && rows % before == 0 && k->extents[d] % cut->parts == 0;
}

bool fusion_reads_own_row(const kernel *k, const kernel_index *index, int64_t elements, int64_t rows) {
  tile_cut cut = {0, 1};
  if (elements % rows || !tile_cut_of(k, rows, &cut)) return false;
  int64_t row = elements / rows, stride = row, low = index->offset, high = index->offset;
  for (uint32_t d = cut.whole; d < k->rank; d++) {
    int64_t n = d == cut.whole ? k->extents[d] / cut.parts : k->extents[d], reach = (n - 1) * index->strides[d];
    low += reach < 0 ? reach : 0;
    high += reach > 0 ? reach : 0;
  }
  if (low < 0 || high >= row) return false;
  if (cut.parts > 1) {
    if (index->strides[cut.whole] * (k->extents[cut.whole] / cut.parts) != row) return false;
    stride *= cut.parts;
  }
  for (uint32_t d = cut.whole; d-- > 0;) {
    if (k->extents[d] != 1 && index->strides[d] != stride) return false;
    stride *= k->extents[d];
  }
  return true;
}

bool fusion_goes_by_rows(const kernel *k, int64_t rows) {
  tile_cut cut;
  kernel_scans scans;
  if (rows < TILE_MIN_ROWS || k->count == 0 || k->count % rows || kernel_pieces(k) != 1) return false;
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (!k->stores[i].by && (k->stores[i].index.offset || !kernel_is_dense(k, &k->stores[i].index))) return false;
  if (kernel_find_scans(k, &scans)) return false;
  if (k->reduction) return k->reduction->reduced > 0 && k->reduction->outer % rows == 0;
  return tile_cut_of(k, rows, &cut);
}

int64_t fusion_least_in_tiles(const fusion_model *m) {
  return (int64_t)(m->facts.tiles_from ? m->facts.tiles_from : 2 * m->facts.cache_bytes[0]);
}

/* Where a tile is one launch it has no scratch memory. */
int64_t fusion_tile_bytes(const fusion_model *m) {
  int64_t tile = (int64_t)m->facts.cache_bytes[1] / TILE_OF_SECOND_LEVEL;
  if (tile < TILE_LEAST) return TILE_LEAST;
  return tile > TILE_MOST && !m->facts.tiles_from ? TILE_MOST : tile;
}

/* Rows of a product are worth their while where they stay in the second cache, which other things go through, too.
 * Where each tile reads the other operand from farther away, what tiles save must be more than that operand. */
static int64_t tile_of_products(const fusion_model *m, int64_t rows, int64_t n, int64_t row_bytes, int64_t at_once,
                                int64_t whole) {
  bool near = whole <= (int64_t)m->facts.cache_bytes[1] / 2;
  uint32_t sharers = !near ? 1 : m->devices < TILE_SHARERS ? m->devices : TILE_SHARERS;
  int64_t bytes = row_bytes * rows;
  if (bytes < TILE_PRODUCTS / sharers || (!near && bytes < whole)) return 0;
  n = n < at_once ? at_once : n / at_once * at_once;
  if (n > rows || n * row_bytes > (int64_t)m->facts.cache_bytes[1] / 4 * 3) return 0;
  return n;
}

int64_t fusion_rows_at_a_time(const fusion_model *m, int64_t rows, int64_t row_bytes, int64_t at_once, int64_t whole) {
  assert(rows > 0 && row_bytes >= 0 && at_once >= 0);
  int64_t tile = fusion_tile_bytes(m);
  if (row_bytes == 0 || row_bytes * rows < fusion_least_in_tiles(m)) return 0;
  int64_t n = tile / row_bytes < rows / 4 ? tile / row_bytes : rows / 4;
  if (at_once) return tile_of_products(m, rows, n, row_bytes, at_once, whole);
  return n > TILE_LANES ? n / TILE_LANES * TILE_LANES : n;
}
