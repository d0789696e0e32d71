/* Reductions. Where one element of the result comes from a long run, lanes are partial results that are folded at the
 * end; where many results lie side by side, lanes are results. Long ranges for few results are cut into pieces whose
 * partial results are combined in order. All of this depends on the extents alone, so the bits are the same for any
 * number of threads. */
#include "vm_fold.h"

typedef struct vmr_run {
  const cpu_vm *vm;
  const void *const *in;
  void *const *out;
  char *partial;         /* [pieces][outer * inner] in the type of sums, or NULL */
  int64_t pieces, piece; /* reduced indexes in a piece */
  int64_t blocks;        /* of inner lanes */
  base_pool *pool;
} vmr_run;

enum { VMR_LANES = 1024, VMR_PATIENCE = 16 };

/* The type of the lanes that are reduced. */
static base_dtype vmr_lane(const cpu_vm *vm) {
  return (base_dtype)vm->insts[vm->k->stores[0].value].lane;
}

static size_t vmr_bytes(const cpu_vm *vm) {
  return base_dtype_bytes((base_dtype)vm->sum);
}

/* acc = combine(acc, value) over n lanes, the value's being of the kernel's type. */
static void vmr_combine(const vmr_run *r, int64_t n, char *acc, const void *value) {
  const cpu_vm *vm = r->vm;
  base_dtype t = vmr_lane(vm);
  char wide[VMR_LANES * sizeof(float)] __attribute__((aligned(64)));
  const void *in[2] = {acc, value};
  if (t != vm->sum) {
    base_convert((base_dtype)vm->sum, wide, t, value, (size_t)n);
    in[1] = wide;
  }
  interp_loop_run(&vm->combine, n, in, acc);
}

static void vmr_first(const vmr_run *r, int64_t n, char *acc, const void *value) {
  const cpu_vm *vm = r->vm;
  base_dtype t = vmr_lane(vm);
  if (t == vm->sum)
    memcpy(acc, value, (size_t)n * vmr_bytes(vm));
  else
    base_convert((base_dtype)vm->sum, acc, t, value, (size_t)n);
}

/* Partial results in `valid` lanes of `from` become one, in lane 0 of acc: halves are combined until one is left. */
static void vmr_fold(const vmr_run *r, int64_t valid, char *acc, const char *from) {
  size_t bytes = vmr_bytes(r->vm);
  while (valid > 1) {
    int64_t low = (valid + 1) / 2;
    const void *in[2] = {from, from + (size_t)low * bytes};
    interp_loop_run(&r->vm->combine, valid - low, in, acc);
    if (from != acc && valid - low < low)
      memcpy(acc + (size_t)(low - 1) * bytes, from + (size_t)(low - 1) * bytes, bytes);
    from = acc;
    valid = low;
  }
  if (from != acc) memcpy(acc, from, bytes);
}

/* n results in the type of sums: with the initial value they are the output, else they are partial. */
static void vmr_deliver(const vmr_run *r, const vm_block *b, int64_t piece, int64_t at, int64_t n, char *acc) {
  const kernel *k = r->vm->k;
  const kernel_reduction *red = k->reduction;
  size_t bytes = vmr_bytes(r->vm);
  base_dtype t = (base_dtype)k->values[k->stores[0].value].dtype;
  if (r->pieces > 1) {
    memcpy(r->partial + (size_t)(piece * red->outer * red->inner + at) * bytes, acc, (size_t)n * bytes);
    return;
  }
  char *to = (char *)r->out[r->vm->k->stores[0].buffer] + (size_t)at * base_dtype_bytes(t);
  vmr_combine(r, n, acc, b->values[red->init]);
  if (t == r->vm->sum)
    memcpy(to, acc, (size_t)n * bytes);
  else
    base_convert(t, to, (base_dtype)r->vm->sum, acc, (size_t)n);
}

/* Asked at every block; looks at every so many whether the run is to stop. */
static bool vmr_stops(const vmr_run *r, int64_t *until) {
  if (--*until) return false;
  *until = VMR_PATIENCE;
  return base_pool_stopping(r->pool);
}

/* n lanes of a block into acc. */
static void vmr_into(const vmr_run *r, int64_t n, const void *value, char *acc, int64_t *valid) {
  base_dtype t = vmr_lane(r->vm);
  char wide[VMR_LANES * sizeof(float)] __attribute__((aligned(64)));
  if (t != r->vm->sum) base_convert((base_dtype)r->vm->sum, wide, t, value, (size_t)n);
  r->vm->fold->some(n, t == r->vm->sum ? value : wide, acc, valid);
}

/* vmr_row where there is a fold. */
static void vmr_folded_row(const vmr_run *r, const vm_block *b, int64_t from, int64_t to, int64_t o, int64_t piece) {
  char acc[VM_FOLD_BYTES] __attribute__((aligned(64)));
  int64_t valid = 0, n = 0, until = VMR_PATIENCE;
  for (int64_t at = from; at < to && !vmr_stops(r, &until); at += n) {
    n = vm_next_block(r->vm, at, to);
    vm_compute(b, at, n);
    vmr_into(r, n, b->values[r->vm->k->stores[0].value], acc, &valid);
  }
  r->vm->fold->last(valid, acc);
  vmr_deliver(r, b, piece, o, 1, acc);
}

/* One result (or part of it) from a run of iterations. */
static void vmr_row(const vmr_run *r, const vm_block *b, int64_t unit) {
  const kernel_reduction *red = r->vm->k->reduction;
  char acc[VMR_LANES * 16] __attribute__((aligned(64)));
  int64_t o = unit / r->pieces, piece = unit % r->pieces, valid = 0, n = 0;
  int64_t from = o * red->reduced + piece * r->piece, to = from + r->piece;
  if (to > (o + 1) * red->reduced) to = (o + 1) * red->reduced;
  if (r->vm->fold) {
    vmr_folded_row(r, b, from, to, o, piece);
    return;
  }
  int64_t until = VMR_PATIENCE;
  for (int64_t at = from; at < to && !vmr_stops(r, &until); at += n) {
    n = vm_next_block(r->vm, at, to);
    vm_compute(b, at, n);
    const char *value = b->values[r->vm->k->stores[0].value];
    int64_t both = n < valid ? n : valid;
    base_dtype t = vmr_lane(r->vm);
    size_t bytes = base_dtype_bytes(t);
    if (n == to - from && t == r->vm->sum) { /* one block is the whole run */
      vmr_fold(r, n, acc, value);
      vmr_deliver(r, b, piece, o, 1, acc);
      return;
    }
    if (both) vmr_combine(r, both, acc, value);
    if (n > valid) vmr_first(r, n - valid, acc + (size_t)valid * vmr_bytes(r->vm), value + (size_t)valid * bytes);
    if (n > valid) valid = n;
  }
  vmr_fold(r, valid, acc, acc);
  vmr_deliver(r, b, piece, o, 1, acc);
}

/* Results side by side. */
static void vmr_columns(const vmr_run *r, const vm_block *b, int64_t unit) {
  const kernel_reduction *red = r->vm->k->reduction;
  char acc[VMR_LANES * 16] __attribute__((aligned(64)));
  int64_t block = unit % r->blocks, piece = unit / r->blocks % r->pieces, o = unit / r->blocks / r->pieces;
  int64_t lane = block * r->vm->lanes, n = red->inner - lane < r->vm->lanes ? red->inner - lane : r->vm->lanes;
  int64_t from = piece * r->piece, to = from + r->piece < red->reduced ? from + r->piece : red->reduced;
  int64_t until = VMR_PATIENCE;
  for (int64_t i = from; i < to && !vmr_stops(r, &until); i++) {
    int64_t start = (o * red->reduced + i) * red->inner + lane, done = 0;
    while (done < n) {
      int64_t m = vm_next_block(r->vm, start + done, start + n);
      char *part = acc + (size_t)done * vmr_bytes(r->vm);
      vm_compute(b, start + done, m);
      const void *value = b->values[r->vm->k->stores[0].value];
      if (i == from)
        vmr_first(r, m, part, value);
      else
        vmr_combine(r, m, part, value);
      done += m;
    }
  }
  vmr_deliver(r, b, piece, o * red->inner + lane, n, acc);
}

/* The most lanes that a block will have. */
static int64_t vmr_lanes(const vmr_run *r) {
  const kernel_reduction *red = r->vm->k->reduction;
  int64_t most = red->inner == 1 ? red->reduced : red->inner;
  return most < r->vm->lanes ? most : r->vm->lanes;
}

static void vmr_units(void *ctx, size_t begin, size_t end) {
  const vmr_run *r = ctx;
  VM_BLOCK(b, r->vm, r->in, r->out, vmr_lanes(r));
  for (size_t unit = begin; unit < end; unit++) {
    if (r->vm->k->reduction->inner == 1)
      vmr_row(r, &b, (int64_t)unit);
    else
      vmr_columns(r, &b, (int64_t)unit);
  }
}

/* Partial results in the order of their pieces, then the initial value. */
static void vmr_pieces(vmr_run *r) {
  const kernel_reduction *red = r->vm->k->reduction;
  int64_t n = red->outer * red->inner, pieces = r->pieces;
  size_t bytes = vmr_bytes(r->vm);
  VM_BLOCK(b, r->vm, r->in, r->out, r->vm->lanes);
  r->pieces = 1;
  for (int64_t at = 0; at < n; at += r->vm->lanes) {
    int64_t m = n - at < r->vm->lanes ? n - at : r->vm->lanes;
    char *acc = r->partial + (size_t)at * bytes;
    for (int64_t i = 1; i < pieces; i++) {
      const void *in[2] = {acc, r->partial + (size_t)(i * n + at) * bytes};
      interp_loop_run(&r->vm->combine, m, in, acc);
    }
    vmr_deliver(r, &b, 0, at, m, acc);
  }
}

/* Nothing to combine: all results are the initial value. */
static void vmr_nothing(const vmr_run *r) {
  const kernel_reduction *red = r->vm->k->reduction;
  VM_BLOCK(b, r->vm, r->in, r->out, r->vm->lanes);
  base_dtype t = (base_dtype)r->vm->k->values[red->init].dtype;
  size_t bytes = base_dtype_bytes(t);
  for (int64_t i = 0; i < red->outer * red->inner; i++)
    base_convert(t, (char *)r->out[r->vm->k->stores[0].buffer] + (size_t)i * bytes,
                 (base_dtype)r->vm->insts[red->init].lane, b.values[red->init], 1);
}

/* How the work is cut: into units of one piece of some results, of which so many make a range. */
static int64_t vmr_cut(vmr_run *r, int64_t *grain) {
  const cpu_vm *vm = r->vm;
  const kernel_reduction *red = vm->k->reduction;
  r->pieces = kernel_pieces(vm->k);
  r->piece = (red->reduced + r->pieces - 1) / r->pieces;
  r->pieces = (red->reduced + r->piece - 1) / r->piece; /* none is empty */
  r->blocks = red->inner == 1 ? 1 : (red->inner + vm->lanes - 1) / vm->lanes;
  int64_t each = r->piece * (red->inner < vm->lanes ? red->inner : vm->lanes);
  *grain = (1 << 16) / (each * vm->k->n_values + 1) + 1;
  return red->outer * r->pieces * r->blocks;
}

bool vm_reduce_is_divisible(const cpu_vm *vm) {
  vmr_run r = {.vm = vm};
  int64_t grain = 0;
  return vm->k->reduction->reduced > 0 && vmr_cut(&r, &grain) > grain;
}

void vm_reduce(const cpu_vm *vm, base_pool *pool, const void *const *in, void *const *out, void *scratch) {
  const kernel_reduction *red = vm->k->reduction;
  vmr_run r = {.vm = vm, .pool = pool, .in = in, .out = out, .partial = scratch};
  assert(vm->lanes <= VMR_LANES && (kernel_pieces(vm->k) == 1 || scratch));
  if (red->reduced == 0) {
    vmr_nothing(&r);
    return;
  }
  int64_t grain = 0, units = vmr_cut(&r, &grain);
  if (units <= grain)
    vmr_units(&r, 0, (size_t)units);
  else
    base_parallel_for(pool, (size_t)units, (size_t)grain, vmr_units, &r);
  if (r.pieces > 1 && !base_pool_is_partial(pool)) vmr_pieces(&r);
}

void vm_reduce_rows(const cpu_vm *vm, int64_t rows, int64_t begin, int64_t end, const void *const *in,
                    void *const *out) {
  const kernel_reduction *red = vm->k->reduction;
  vmr_run r = {.vm = vm, .in = in, .out = out, .pieces = 1, .piece = red->reduced};
  assert(red->reduced > 0 && red->outer % rows == 0 && kernel_pieces(vm->k) == 1);
  r.blocks = red->inner == 1 ? 1 : (red->inner + vm->lanes - 1) / vm->lanes;
  int64_t units = red->outer / rows * r.blocks;
  vmr_units(&r, (size_t)(begin * units), (size_t)(end * units));
}
