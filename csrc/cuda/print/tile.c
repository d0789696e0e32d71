/* Arrays that are read across: one load goes through memory along another dimension than the stores do. Tiles of 32 by
 * 32 come by way of shared memory, whose rows have one element more, so that both sides are read and written in their
 * order and no two threads of a warp want the same bank. */
#include "print.h"

enum {
  CU_TILE = 32,
  CU_TILE_LEAST = 16,      /* extents of both dimensions */
  CU_TILE_BYTES = 40 << 10 /* of shared memory */
};

static bool cu_tile_takes_load(const kernel *k, const kernel_value *v, uint32_t across) {
  uint32_t last = k->rank - 1;
  return v->kind == KERNEL_LOAD && !v->box && v->n_in == 0 && v->index->strides[across] == 1 &&
         v->index->strides[last] != 1 && v->index->strides[last] != 0;
}

bool cuda_print_is_tiled(const cuda_print *x, uint32_t i) {
  return x->across && cu_tile_takes_load(x->k, &x->k->values[i], x->across - 1);
}

/* Bytes of all tiles; 0: none is read across that dimension. */
static size_t cu_tile_bytes(const kernel *k, uint32_t across) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < k->n_values; i++)
    if (cu_tile_takes_load(k, &k->values[i], across))
      bytes += CU_TILE * (CU_TILE + 1) * base_dtype_bytes((base_dtype)k->values[i].dtype);
  return bytes;
}

void cuda_print_choose_tile(cuda_print *x) {
  const kernel *k = x->k;
  if (k->rank < 2 || k->reduction || k->extents[k->rank - 1] < CU_TILE_LEAST) return;
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (k->stores[i].index.strides[k->rank - 1] != 1) return;
  for (uint32_t d = 0; d + 1 < k->rank; d++) {
    size_t bytes = k->extents[d] < CU_TILE_LEAST ? 0 : cu_tile_bytes(k, d);
    if (bytes == 0 || bytes > CU_TILE_BYTES) continue;
    x->across = d + 1;
    x->pack = 0;
    return;
  }
}

/* The indexes that are the same in all of a tile. */
static void cu_tile_put_others(cuda_print *x, int64_t tiles) {
  const kernel *k = x->k;
  int64_t inside = tiles;
  for (uint32_t d = k->rank - 1; d-- > 0;) {
    if (d == x->across - 1) continue;
    base_putf(x->out, "  const idx i%u = blockIdx.x / %lld %% %lld;\n", (unsigned)d, (long long)inside,
              (long long)k->extents[d]);
    inside *= k->extents[d];
  }
}

/* A loop over the tile's rows of threads: along the one dimension by threads, along the other by rows. */
static void cu_tile_put_rows(cuda_print *x, uint32_t rows, uint32_t threads) {
  base_putf(x->out, "#pragma unroll\n  for (int j = 0; j < %d; j += %d) {\n  const int r = threadIdx.x / %d + j;\n",
            CU_TILE, CUDA_BLOCK_THREADS / CU_TILE, CU_TILE);
  base_putf(x->out, "  const idx i%u = tile%u + r, i%u = tile%u + t;\n", (unsigned)rows, (unsigned)rows,
            (unsigned)threads, (unsigned)threads);
  base_putf(x->out, "  if (i%u < %lld && i%u < %lld) {\n", (unsigned)rows, (long long)x->k->extents[rows],
            (unsigned)threads, (long long)x->k->extents[threads]);
}

static void cu_tile_put_fetch(cuda_print *x) {
  for (uint32_t i = 0; i < x->k->n_values; i++) {
    const kernel_value *v = &x->k->values[i];
    if (!cuda_print_is_tiled(x, i)) continue;
    base_putf(x->out, "  t%u[r][t] = ((const %s *)in%u)[", (unsigned)i, cuda_type((base_dtype)v->dtype),
              (unsigned)v->buffer);
    cuda_print_index(x, v->index, "idx");
    BASE_PUT(x->out, "];\n");
  }
}

int64_t cuda_print_tiles(cuda_print *x) {
  const kernel *k = x->k;
  uint32_t p = x->across - 1, q = k->rank - 1;
  int64_t down = (k->extents[p] + CU_TILE - 1) / CU_TILE, along = (k->extents[q] + CU_TILE - 1) / CU_TILE;
  assert(x->across && p != q);
  for (uint32_t i = 0; i < k->n_values; i++) {
    base_dtype t = (base_dtype)k->values[i].dtype;
    if (!cuda_print_is_tiled(x, i)) continue;
    if (base_dtype_is_complex(t)) cuda_print_needs(x, cuda_type(t));
    base_putf(x->out, "  __shared__ %s t%u[%d][%d];\n", cuda_type(t), (unsigned)i, CU_TILE, CU_TILE + 1);
  }
  base_putf(x->out, "  const int t = threadIdx.x %% %d;\n", CU_TILE);
  base_putf(x->out, "  const idx tile%u = blockIdx.x / %lld %% %lld * %d, tile%u = blockIdx.x %% %lld * %d;\n",
            (unsigned)p, (long long)along, (long long)down, CU_TILE, (unsigned)q, (long long)along, CU_TILE);
  cu_tile_put_others(x, down * along);
  cu_tile_put_rows(x, q, p);
  cu_tile_put_fetch(x);
  BASE_PUT(x->out, "  }\n  }\n  __syncthreads();\n");
  cu_tile_put_rows(x, p, q);
  cuda_print_body(x, NULL);
  BASE_PUT(x->out, "  }\n  }\n");
  return k->count / k->extents[p] / k->extents[q] * down * along;
}
