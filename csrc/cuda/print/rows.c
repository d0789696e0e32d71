/* Kernels that go through the same rows one after another, as softmax and normalisations do, as one. Some threads have
 * a row, each its part of it in registers, as accesses of 16 bytes, from the first step that reads it to the last: so
 * memory is read once, and what only these steps need is never written. Sums of a row are combined by shuffles, and
 * where it has several warps by way of shared memory; each of its threads then has them.
 *
 * Rows that are too long for registers, or whose steps have too many ops to be printed out for each access, stay in
 * memory: the threads of a row go through all of it once for each step. Each has the same elements every time, so that
 * none waits for what another one writes, and a row that was read a moment ago is still in the GPU's cache.
 *
 * An array is named for its number: its memory is "a3"; a part of it "h3[j]"; its one element of a row "r3". */
#include "print.h"

enum {
  CU_ROWS_BYTES = 64, /* of a row's arrays that a thread has, */
  CU_ROWS_WARP = 128, /* where so many in 32 threads are all of the row, which then needs no barrier, */
  CU_ROWS_MOST = 192, /* and where there are no more threads than */
  CU_ROWS_THREADS = 512,
  CU_ROWS_BLOCK = 256,
  CU_ROWS_SMALL = 64,
  CU_ROWS_BLOCKS = 512,   /* that keep a GPU busy: blocks are of CU_ROWS_SMALL threads and more, so that there are */
  CU_ROWS_OPS = 1024,     /* of a step, that are printed out for a thread, roughly */
  CU_ROWS_RESIDENT = 768, /* threads of a multiprocessor that there are to be registers for */
  CU_ROWS_UNROLLED = 4,   /* accesses of a thread that are on their way at a time, where rows stay in memory */
  CU_ROWS_FEW = 64,       /* blocks that are too few for rows so long: */
  CU_ROWS_LONG = 1 << 13
};

typedef struct cu_rows {
  cuda_source *s;
  const cuda_rows *r;
  int64_t length;       /* elements of a row */
  int64_t lanes, width; /* threads of a row, rows of a block */
  int64_t parts, whole; /* accesses of a thread, and those of them that all lanes have */
  uint32_t pack;
  bool passes; /* rows stay in memory */
} cu_rows;

/* --- what is taken --- */

static int64_t cu_rows_elements(const cuda_rows *r, uint32_t step) {
  return r->steps[step].k->count / r->rows;
}

/* Whether the step has what a row's threads can do by themselves. */
static bool cu_rows_has_form(const cuda_rows *r, const kernel *k) {
  kernel_scans scans;
  if (k->count % r->rows || k->count == 0 || kernel_find_scans(k, &scans) || !cuda_print_is_plain(k)) return false;
  return !k->reduction || (k->reduction->inner == 1 && k->reduction->outer == r->rows);
}

/* Where an array lies whose elements the index finds, in a step that has `length` elements of a row: in parts, where
 * iterations go through it in its order; as one element of each row; in memory, where all rows have the same. */
static cuda_place cu_rows_place(const kernel *k, const kernel_index *index, int64_t length) {
  int64_t inside = 1, unit = 1;
  bool parts = index->offset == 0, one = parts, same = true;
  for (uint32_t d = k->rank; d-- > 0;) {
    int64_t stride = index->strides[d];
    if (k->extents[d] == 1) continue;
    if (inside < length) {
      parts = parts && stride == inside;
      one = one && stride == 0;
      inside *= k->extents[d];
    } else {
      parts = parts && stride == length * unit;
      one = one && stride == unit;
      same = same && stride == 0;
      unit *= k->extents[d];
    }
  }
  if (inside != length) return CUDA_NOWHERE;
  if (one) return CUDA_AS_ONE;
  return parts ? CUDA_IN_PARTS : same ? CUDA_IN_MEMORY : CUDA_NOWHERE;
}

/* An array lies in one place for all steps. */
static bool cu_rows_note(cuda_rows_array *a, cuda_place place, base_dtype t) {
  bool fits = place != CUDA_NOWHERE && (a->place == CUDA_NOWHERE || a->place == place);
  a->place = (uint8_t)place;
  a->dtype = (uint8_t)t;
  return fits && !(a->written && place == CUDA_IN_MEMORY);
}

static bool cu_rows_takes_loads(const cuda_rows *r, uint32_t step) {
  const cuda_rows_step *own = &r->steps[step];
  for (uint32_t i = 0; i < own->k->n_values; i++) {
    const kernel_value *v = &own->k->values[i];
    if (v->kind != KERNEL_LOAD) continue;
    cuda_rows_array *a = &r->arrays[own->in[v->buffer]];
    if (v->box || v->n_in ||
        !cu_rows_note(a, cu_rows_place(own->k, v->index, cu_rows_elements(r, step)), (base_dtype)v->dtype))
      return false;
    a->last = step + 1;
  }
  return true;
}

/* What a step writes nobody has read before: then it is another array in the same memory. */
static bool cu_rows_takes_stores(const cuda_rows *r, uint32_t step) {
  const cuda_rows_step *own = &r->steps[step];
  for (uint32_t i = 0; i < own->k->n_stores; i++) {
    const kernel_store *s = &own->k->stores[i];
    base_dtype t = (base_dtype)own->k->values[s->value].dtype;
    cuda_rows_array *a = &r->arrays[own->out[i]];
    cuda_place place = s->by ? CUDA_AS_ONE : cu_rows_place(own->k, &s->index, cu_rows_elements(r, step));
    if (a->place != CUDA_NOWHERE || place == CUDA_IN_MEMORY || !cu_rows_note(a, place, t)) return false;
    if (s->by && base_dtype_is_complex(cuda_sum_type(t))) return false;
    a->written = true;
    a->first = step + 1;
  }
  return true;
}

/* Steps have all of the row or one element of it. Those with one come behind a sum, whose barrier keeps them from
 * writing over what another thread has still to read. */
static bool cu_rows_takes(cu_rows *x) {
  const cuda_rows *r = x->r;
  bool sums = false;
  for (uint32_t i = 0; i < r->n_steps; i++) {
    if (!cu_rows_has_form(r, r->steps[i].k)) return false;
    if (cu_rows_elements(r, i) > x->length) x->length = cu_rows_elements(r, i);
  }
  for (uint32_t i = 0; i < r->n_steps; i++) {
    int64_t n = cu_rows_elements(r, i);
    bool sum = r->steps[i].k->reduction != NULL;
    if (n != x->length && (n != 1 || sum || !sums)) return false;
    sums = sums || sum;
    if (!cu_rows_takes_loads(r, i) || !cu_rows_takes_stores(r, i)) return false;
  }
  return r->rows > 1 && x->length > 1;
}

/* --- sharing out --- */

/* Of an element of the row, in all arrays that are there at a time. */
static int64_t cu_rows_bytes(const cuda_rows *r) {
  int64_t most = 4;
  for (uint32_t step = 0; step < r->n_steps; step++) {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < r->n_arrays; i++)
      if (r->arrays[i].place == CUDA_IN_PARTS && r->arrays[i].first <= step && step < r->arrays[i].last)
        bytes += base_dtype_bytes((base_dtype)r->arrays[i].dtype);
    most = bytes > most ? bytes : most;
  }
  return most;
}

/* As many neighbours as each step has an access for. */
static void cu_rows_choose_pack(cu_rows *x) {
  x->pack = 8;
  for (uint32_t i = 0; i < x->r->n_steps; i++) {
    cuda_print own = {.s = x->s, .k = x->r->steps[i].k};
    if (cu_rows_elements(x->r, i) == 1) continue;
    cuda_print_choose_pack(&own);
    if (own.pack < x->pack) x->pack = own.pack;
  }
  while (x->pack > 1 && x->length % x->pack) x->pack /= 2;
  if (x->pack < 1) x->pack = 1;
}

/* Whether a step's ops, printed out for so many accesses, are too many. */
static bool cu_rows_is_large(const cu_rows *x, int64_t accesses) {
  for (uint32_t i = 0; i < x->r->n_steps; i++)
    if (accesses * x->pack * x->r->steps[i].k->n_values > CU_ROWS_OPS) return true;
  return false;
}

/* Threads of a row: as few as have it in registers, or as many as there may be. */
static void cu_rows_choose_lanes(cu_rows *x, int64_t bytes) {
  for (x->lanes = 1; x->lanes < CU_ROWS_THREADS && 2 * x->lanes * x->pack <= x->length; x->lanes *= 2)
    if (!x->passes && bytes <= x->lanes * (x->lanes == 32 ? CU_ROWS_WARP : CU_ROWS_BYTES)) break;
  x->whole = x->length / (x->lanes * x->pack);
  x->parts = (x->length + x->lanes * x->pack - 1) / (x->lanes * x->pack);
  assert(x->whole > 0);
}

static bool cu_rows_share(cu_rows *x) {
  int64_t bytes = cu_rows_bytes(x->r) * x->length;
  cu_rows_choose_pack(x);
  cu_rows_choose_lanes(x, bytes);
  x->passes = bytes > x->lanes * CU_ROWS_MOST || cu_rows_is_large(x, x->parts);
  if (x->passes) cu_rows_choose_lanes(x, bytes);
  x->width = x->lanes < CU_ROWS_BLOCK ? CU_ROWS_BLOCK / x->lanes : 1;
  while (x->width > 1 && x->width * x->lanes > CU_ROWS_SMALL && x->r->rows / x->width < CU_ROWS_BLOCKS) x->width /= 2;
  for (uint32_t i = 0; x->passes && i < x->r->n_arrays; i++)
    if (x->r->arrays[i].place == CUDA_IN_PARTS) x->r->arrays[i].kept = false;
  return !cu_rows_is_large(x, 1) && ((x->r->rows + x->width - 1) / x->width >= CU_ROWS_FEW || x->length < CU_ROWS_LONG);
}

/* --- printing --- */

void cuda_print_held_one(cuda_print *x, uint32_t i, base_dtype t) {
  if (!x->held->arrays[x->held->out[i]].kept)
    base_putf(x->out, "  if (lane == 0 && there) ((%s *)a%u)[row] = r%u;\n", cuda_type(t), (unsigned)x->held->out[i],
              (unsigned)x->held->out[i]);
}

/* Around what a thread does with each of its accesses: "step" is where in the row it is. How many there are is no bound
 * of memory, and one too many would be no register: tests that put faults into bounds leave it. */
static void cu_rows_open(const cu_rows *x, base_text *out) {
  if (x->passes)
    base_putf(out, "#pragma unroll %d\n", cu_rows_is_large(x, CU_ROWS_UNROLLED) ? 1 : CU_ROWS_UNROLLED);
  else
    BASE_PUT(out, "#pragma unroll\n");
  base_putf(out, "  for (int j = 0; j != %lld; j++) {\n  const idx step = (lane + j * %lld) * %u;\n",
            (long long)x->parts, (long long)x->lanes, (unsigned)x->pack);
  if (x->whole < x->parts)
    base_putf(out, "  if (j < %lld || step < %lld) {\n", (long long)x->whole, (long long)x->length);
}

static void cu_rows_close(const cu_rows *x, base_text *out) {
  base_puts(out, x->whole < x->parts ? "  }\n  }\n" : "  }\n");
}

/* Threads without a row read nothing: row 0, which they go through, may be written in place. */
static void cu_rows_put_access(const cu_rows *x, uint32_t i, base_text *out) {
  const char *c = cuda_type((base_dtype)x->r->arrays[i].dtype);
  if (x->r->rows % x->width) base_putf(out, "!there ? pack<%s, %u>{} : ", c, (unsigned)x->pack);
  base_putf(out, "*(const pack<%s, %u> *)&((const %s *)a%u)[row * %lld + step];\n", c, (unsigned)x->pack, c,
            (unsigned)i, (long long)x->length);
}

/* The access of each array that the step reads in parts, where they stay in memory. */
static void cu_rows_put_accesses(const cu_rows *x, const cuda_rows_step *step, base_text *out) {
  for (uint32_t i = 0; x->passes && i < step->k->n_inputs; i++) {
    const cuda_rows_array *a = &x->r->arrays[step->in[i]];
    bool before = false;
    for (uint32_t j = 0; j < i; j++) before = before || step->in[j] == step->in[i];
    if (before || a->place != CUDA_IN_PARTS) continue;
    base_putf(out, "  const pack<%s, %u> h%u = ", cuda_type((base_dtype)a->dtype), (unsigned)x->pack,
              (unsigned)step->in[i]);
    cu_rows_put_access(x, step->in[i], out);
  }
}

/* Arrays that are there before the first step are read. */
static void cu_rows_put_arrays(const cu_rows *x, base_text *out) {
  for (uint32_t i = 0; i < x->r->n_arrays; i++) {
    const cuda_rows_array *a = &x->r->arrays[i];
    const char *c = cuda_type((base_dtype)a->dtype);
    if (a->place == CUDA_AS_ONE)
      base_putf(out, a->written ? "  %s r%u;\n" : "  const %s r%u = there ? ((const %s *)a%u)[row] : %s{};\n", c,
                (unsigned)i, c, (unsigned)i, c);
    if (a->place != CUDA_IN_PARTS || x->passes) continue;
    base_putf(out, "  pack<%s, %u> h%u[%lld] = {};\n", c, (unsigned)x->pack, (unsigned)i, (long long)x->parts);
    if (a->written) continue;
    cu_rows_open(x, out);
    base_putf(out, "  h%u[j] = ", (unsigned)i);
    cu_rows_put_access(x, i, out);
    cu_rows_close(x, out);
  }
}

static void cu_rows_put_step(cu_rows *x, uint32_t step, bool *strange) {
  const cuda_rows_step *own = &x->r->steps[step];
  base_text *out = &x->s->body;
  cuda_held held = {own->in, own->out, x->r->arrays, cu_rows_elements(x->r, step), x->lanes, x->width, x->passes};
  cuda_print p = {.s = x->s, .k = own->k, .out = out, .held = &held, .pack = held.length > 1 ? x->pack : 0};
  BASE_PUT(out, "  {\n");
  for (uint32_t i = 0; i < own->k->n_inputs; i++)
    if (x->r->arrays[own->in[i]].place == CUDA_IN_MEMORY)
      base_putf(out, "  const char *const in%u = a%u;\n", (unsigned)i, (unsigned)own->in[i]);
  if (own->k->reduction) {
    cuda_print_held_sums(&p);
    cu_rows_open(x, out);
    cu_rows_put_accesses(x, own, out);
    cuda_print_iterations(&p, "", cuda_print_held_add);
    cu_rows_close(x, out);
    cuda_print_held_results(&p);
  } else if (held.length > 1) {
    cu_rows_open(x, out);
    cu_rows_put_accesses(x, own, out);
    cuda_print_iterations(&p, "", NULL);
    cu_rows_close(x, out);
  } else {
    cuda_print_iterations(&p, "", NULL);
  }
  BASE_PUT(out, "  }\n");
  *strange = *strange || p.strange;
}

static void cu_rows_put(cu_rows *x, bool *strange) {
  base_text *out = &x->s->body;
  bool small = true;
  for (uint32_t i = 0; i < x->r->n_steps; i++) small = small && cuda_print_is_small(x->r->steps[i].k);
  for (uint32_t i = 0, some = 0; i < x->r->n_arrays; i++)
    if (!x->r->arrays[i].kept) base_putf(out, "%schar *a%u", some++ ? ", " : "", (unsigned)i);
  base_putf(out, ") {\n  typedef %s idx;\n  const idx own = (idx)blockIdx.x * %lld + threadIdx.x / %lld;\n",
            small ? "int32_t" : "int64_t", (long long)x->width, (long long)x->lanes);
  base_putf(out, "  const int lane = threadIdx.x %% %lld;\n", (long long)x->lanes);
  if (x->r->rows % x->width)
    base_putf(out, "  const bool there = own < %lld;\n  const idx row = there ? own : 0;\n", (long long)x->r->rows);
  else
    BASE_PUT(out, "  const bool there = true;\n  const idx row = own;\n");
  cu_rows_put_arrays(x, out);
  for (uint32_t i = 0; i < x->r->n_steps; i++) cu_rows_put_step(x, i, strange);
  BASE_PUT(out, "}\n");
}

bool cuda_print_rows(cuda_source *s, const cuda_rows *r, cuda_launch *out) {
  cu_rows x = {.s = s, .r = r};
  size_t before = s->body.n;
  bool strange = false;
  if (!cu_rows_takes(&x) || !cu_rows_share(&x)) return false;
  int64_t block = x.lanes * x.width;
  *out = (cuda_launch){.number = s->n_kernels,
                       .block = (uint32_t)block,
                       .grid = (r->rows + x.width - 1) / x.width,
                       .how = x.passes ? "threads for each row of several steps, which go through it once for each"
                                       : "threads for each row of several steps, in registers"};
  base_putf(&s->body, "\nextern \"C\" __global__ void __launch_bounds__(%lld, %lld) k%u(", (long long)block,
            (long long)(CU_ROWS_RESIDENT / block), (unsigned)out->number);
  cu_rows_put(&x, &strange);
  if (strange || out->grid >= INT32_MAX) {
    s->body.n = before;
    return false;
  }
  s->n_kernels++;
  return true;
}
