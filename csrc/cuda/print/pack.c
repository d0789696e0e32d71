/* Iterations that a thread has together: neighbours along the last dimension, so that what they load and store is one
 * access of 16 bytes, or two. Arrays begin at multiples of 16 bytes (cuda_call sees to that). */
#include <stdio.h>

#include "print.h"

enum {
  CU_PACK_MOST = 8,
  CU_PACK_ACCESS = 16,
  CU_PACK_OPS = 256, /* that are printed out for a thread, roughly */
  CU_PACK_SEVERAL = 2,
  CU_PACK_LOADS = 4,   /* more take too many registers for several packs */
  CU_PACK_BLOCKS = 512 /* that are left to keep a GPU busy */
};

/* Whether n neighbours lie together, at a multiple of n. */
static bool cu_pack_lies(const kernel *k, const kernel_index *index, uint32_t n) {
  uint32_t last = k->rank - 1;
  if (index->strides[last] != 1 || index->offset % n) return false;
  for (uint32_t d = 0; d < last; d++)
    if (k->extents[d] > 1 && index->strides[d] % n) return false;
  return true;
}

/* Whether n neighbours are in it all or none. */
static bool cu_pack_is_whole(const kernel *k, const kernel_box *box, uint32_t n) {
  return !box || (box->from[k->rank - 1] % n == 0 && box->to[k->rank - 1] % n == 0);
}

static bool cu_pack_takes_load(const kernel *k, const kernel_value *v, uint32_t n) {
  return v->kind == KERNEL_LOAD && v->n_in == 0 && cu_pack_is_whole(k, v->box, n) && cu_pack_lies(k, v->index, n);
}

bool cuda_print_is_packed(const cuda_print *x, uint32_t i) {
  if (x->held && x->k->values[i].kind == KERNEL_LOAD &&
      x->held->arrays[x->held->in[x->k->values[i].buffer]].place != CUDA_IN_MEMORY)
    return false;
  return x->pack > 1 && cu_pack_takes_load(x->k, &x->k->values[i], x->pack);
}

/* The smallest and the largest element that is accessed so; false where a store can't be. */
static bool cu_pack_measure(const kernel *k, uint32_t n, size_t *least, size_t *most) {
  *least = SIZE_MAX;
  *most = 0;
  for (uint32_t i = 0; i < k->n_values + k->n_stores; i++) {
    const kernel_store *s = i < k->n_values ? NULL : &k->stores[i - k->n_values];
    const kernel_value *v = &k->values[s ? s->value : i];
    if (s && s->by) continue;
    if (s ? !cu_pack_lies(k, &s->index, n) : !cu_pack_takes_load(k, v, n)) {
      if (s) return false;
      continue;
    }
    size_t bytes = base_dtype_bytes((base_dtype)v->dtype);
    *least = bytes < *least ? bytes : *least;
    *most = bytes > *most ? bytes : *most;
  }
  return *most > 0;
}

void cuda_print_choose_pack(cuda_print *x) {
  const kernel *k = x->k;
  size_t least = 0, most = 0;
  uint32_t ops = 0;
  for (uint32_t i = 0; i < k->n_values; i++) ops += k->values[i].kind != KERNEL_LOAD;
  for (uint32_t n = CU_PACK_MOST; n > 1 && k->rank > 0 && k->count > 0; n /= 2) {
    if (k->extents[k->rank - 1] % n || n * ops > CU_PACK_OPS || !cu_pack_measure(k, n, &least, &most)) continue;
    if (n * least > CU_PACK_ACCESS || n * most > 2 * CU_PACK_ACCESS) continue;
    x->pack = n;
    return;
  }
}

/* --- printing --- */

/* Whether iterations are a thread's accesses. */
static bool cu_pack_is_on(const cuda_print *x) {
  return x->pack > 1 || (x->held && x->pack);
}

/* "pack<float, 4>" */
static void cu_pack_type(cuda_print *x, base_dtype t, char room[32]) {
  if (base_dtype_is_complex(t)) cuda_print_needs(x, cuda_type(t));
  snprintf(room, 32, "pack<%s, %u>", cuda_type(t), (unsigned)x->pack);
}

/* One access of each thread is less than a GPU's memory can have on its way while threads compute, too. */
void cuda_print_choose_packs(cuda_print *x) {
  uint32_t loads = 0, ops = 0;
  for (uint32_t i = 0; i < x->k->n_values; i++) {
    loads += cuda_print_is_packed(x, i);
    ops += x->k->values[i].kind != KERNEL_LOAD;
  }
  bool large = x->k->count / (CU_PACK_SEVERAL * CUDA_BLOCK_THREADS) >= (int64_t)CU_PACK_BLOCKS * x->pack;
  if (loads > 0 && loads <= CU_PACK_LOADS && large && CU_PACK_SEVERAL * x->pack * ops <= CU_PACK_OPS)
    x->packs = CU_PACK_SEVERAL;
  for (uint32_t i = 0; x->packs && i < x->k->n_values; i++) {
    char type[32];
    if (!cuda_print_is_packed(x, i)) continue;
    cu_pack_type(x, (base_dtype)x->k->values[i].dtype, type);
    base_putf(x->out, "  %s p%u[%u];\n", type, (unsigned)i, (unsigned)x->packs);
  }
}

static void cu_pack_put_loads(cuda_print *x) {
  char type[32];
  for (uint32_t i = 0; i < x->k->n_values; i++) {
    const kernel_value *v = &x->k->values[i];
    if (!cuda_print_is_packed(x, i)) continue;
    cu_pack_type(x, (base_dtype)v->dtype, type);
    if (!x->packs) base_putf(x->out, "  const %s p%u = ", type, (unsigned)i);
    if (x->packs) base_putf(x->out, "  p%u[w] = ", (unsigned)i);
    if (v->box) cuda_print_box(x, v->box);
    base_putf(x->out, "%s*(const %s *)&((const %s *)in%u)[", v->box ? " ? " : "", type, cuda_type((base_dtype)v->dtype),
              (unsigned)v->buffer);
    cuda_print_index(x, v->index, "idx");
    BASE_PUT(x->out, "]");
    if (v->box) base_putf(x->out, " : %s{}", type);
    BASE_PUT(x->out, ";\n");
  }
}

/* Stores that have an element for every iteration: into "q<number>", or to memory. */
static void cu_pack_put_stores(cuda_print *x) {
  for (uint32_t i = 0; i < x->k->n_stores; i++) {
    const kernel_store *s = &x->k->stores[i];
    if (s->by) continue;
    if (cu_pack_is_on(x)) {
      base_putf(x->out, "  q%u.e[u] = v%u;\n", (unsigned)i, (unsigned)s->value);
      continue;
    }
    if (x->held) {
      base_putf(x->out, "  r%u = v%u;\n", (unsigned)x->held->out[i], (unsigned)s->value);
      cuda_print_held_one(x, i, (base_dtype)x->k->values[s->value].dtype);
      continue;
    }
    base_putf(x->out, "  ((%s *)out%u)[", cuda_type((base_dtype)x->k->values[s->value].dtype), (unsigned)s->buffer);
    cuda_print_index(x, &s->index, "idx");
    base_putf(x->out, "] = v%u;\n", (unsigned)s->value);
  }
}

/* Before the iterations of a pack: declarations; behind them: to memory. */
static void cu_pack_put_packs(cuda_print *x, bool behind) {
  char type[32];
  for (uint32_t i = 0; i < x->k->n_stores; i++) {
    const kernel_store *s = &x->k->stores[i];
    base_dtype t = (base_dtype)x->k->values[s->value].dtype;
    if (s->by) continue;
    cu_pack_type(x, t, type);
    if (!behind) {
      base_putf(x->out, "  %s q%u;\n", type, (unsigned)i);
      continue;
    }
    if (x->held && !x->held->passes) base_putf(x->out, "  h%u[j] = q%u;\n", (unsigned)x->held->out[i], (unsigned)i);
    if (x->held && x->held->arrays[x->held->out[i]].kept) continue;
    base_putf(x->out, x->held ? "  if (there) *(%s *)&((%s *)a%u)[" : "  *(%s *)&((%s *)out%u)[", type, cuda_type(t),
              (unsigned)(x->held ? x->held->out[i] : s->buffer));
    cuda_print_index(x, &s->index, "idx");
    base_putf(x->out, "] = q%u;\n", (unsigned)i);
  }
}

void cuda_print_body(cuda_print *x, void (*each)(cuda_print *x)) {
  for (uint32_t i = 0; i < x->k->n_values; i++) cuda_print_value(x, i);
  cu_pack_put_stores(x);
  if (each) each(x);
}

void cuda_print_iterations(cuda_print *x, const char *n, void (*each)(cuda_print *x)) {
  unsigned last = x->k->rank ? x->k->rank - 1 : 0, pack = x->pack > 1 ? x->pack : 1;
  cuda_print_indexes(x, n);
  if (x->k->count == 0) cuda_print_zero_indexes(x);
  if (cu_pack_is_on(x)) {
    if (!x->loaded) cu_pack_put_loads(x);
    if (x->packs && !x->loaded) return;
    cu_pack_put_packs(x, false);
    base_putf(x->out, "  const idx first = i%u;\n#pragma unroll\n  for (int u = 0; u < %u; u++) {\n", last, pack);
    base_putf(x->out, "  const idx i%u = first + u;\n", last);
  }
  cuda_print_body(x, each);
  if (!cu_pack_is_on(x)) return;
  BASE_PUT(x->out, "  }\n");
  cu_pack_put_packs(x, true);
}
