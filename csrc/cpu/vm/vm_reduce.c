/* Reductions, several at once, and beside them stores of every iteration's value. Where one element of a result
 * comes from a long run (inner == 1), lanes are partial results that are folded at the end; where many results lie
 * side by side, lanes are results. Long ranges for few results are cut into pieces whose partial results are
 * combined in order. All of this depends on the extents alone, so the bits are the same for any number of threads,
 * and whatever else the kernel stores.
 *
 * A unit of work is one piece of one row, or one piece of one block of columns; units are what threads share.
 * Narrow floats are combined in f32 (vm_sum.type) and rounded once. */
#include "vm_fold.h"

/* One reduction at work, as its ranges see it. */
typedef struct vmr_run {
  const cpu_vm *vm;
  const void *const *in;
  void *const *out;
  char *partial;  /* of each reducing store: [pieces][outer * inner] in the type of sums; or NULL */
  int64_t pieces; /* vm->cut.pieces; 1 when all have been combined */
  rt_pool *pool;
  cpu_vm_ahead *ahead; /* or NULL */
} vmr_run;

/* What a store has combined so far. */
typedef struct vmr_acc {
  const kernel_store *store;
  const vm_sum *sum;
  base_dtype value, lane; /* the types of the stored value and of the lanes that there are of it */
  size_t bytes;           /* of a lane in the type of sums */
  char *lanes, *partial;
  int64_t valid;
} vmr_acc;

typedef struct vmr_accs {
  uint32_t n;
  vmr_acc of[KERNEL_MAX_STORES];
} vmr_accs;

enum {
  VMR_LANES = 1024,
  VMR_PATIENCE = 16,
  VMR_TOGETHER = 32, /* rows of plain arrays */
  VMR_FEW = 64,      /* results side by side that are not a block by themselves ... */
  VMR_WIDE = 256     /* ... but together with others, up to so many lanes */
};

/* Whether native code does some of the combining itself, and leaves lanes of the type of sums. */
static bool vmr_is_folded(const cpu_vm *vm) {
  return cpu_native_is_ready(vm->native) && cpu_native_way_of(vm->native) != CPU_NATIVE_VALUES;
}

/* An accumulator for each store that reduces, without room for lanes yet. Partial results of stores follow each
 * other in the step's scratch memory. */
static void vmr_list(const vmr_run *r, vmr_accs *all) {
  const kernel *k = r->vm->k;
  assert(k->reduction && k->n_stores <= KERNEL_MAX_STORES);
  char *partial = r->partial;
  all->n = 0;
  bool folded = vmr_is_folded(r->vm);
  for (uint32_t i = 0; i < k->n_stores; i++) {
    const kernel_store *s = &k->stores[i];
    if (!s->by) continue;
    const vm_sum *sum = &r->vm->sums[i];
    all->of[all->n++] = (vmr_acc){.store = s,
                                  .sum = sum,
                                  .value = (base_dtype)k->values[s->value].dtype,
                                  .lane = (base_dtype)(folded ? sum->type : r->vm->insts[s->value].lane),
                                  .bytes = base_dtype_bytes((base_dtype)sum->type),
                                  .partial = partial};
    if (partial) partial += kernel_partial_bytes(k, s);
  }
}

/* Bytes of lanes that an accumulator may need. */
static size_t vmr_acc_bytes(const vmr_run *r, const vmr_acc *a) {
  size_t lanes = r->vm->cut.runs > 1 && r->vm->lanes < VMR_WIDE ? VMR_WIDE : r->vm->lanes, bytes = lanes * a->bytes;
  return ((bytes < VM_FOLD_BYTES ? VM_FOLD_BYTES : bytes) + 63) & ~(size_t)63;
}

/* Of all accumulators of a range. */
static size_t vmr_accs_bytes(const vmr_run *r, const vmr_accs *all) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < all->n; i++) bytes += vmr_acc_bytes(r, &all->of[i]);
  return bytes;
}

/* memory: vmr_accs_bytes, aligned to 64. */
static void vmr_give_lanes(const vmr_run *r, vmr_accs *all, char *memory) {
  for (uint32_t i = 0; i < all->n; i++) {
    all->of[i].lanes = memory;
    memory += vmr_acc_bytes(r, &all->of[i]);
  }
}

/* n lanes of the value in the type of sums: as they are, or converted in `wide`, which has room for a block of
 * f32. */
static const void *vmr_widen(const vmr_acc *a, int64_t n, const void *value, char *wide) {
  if (a->lane == a->sum->type) return value;
  base_convert((base_dtype)a->sum->type, wide, a->lane, value, (size_t)n);
  return wide;
}

/* acc = combine(acc, value) over n lanes, the value's being of the type of lanes. */
static void vmr_combine(const vmr_acc *a, int64_t n, char *acc, const void *value) {
  assert(n <= VMR_LANES);
  char wide[VMR_LANES * sizeof(float)] __attribute__((aligned(64)));
  const void *in[2] = {acc, vmr_widen(a, n, value, wide)};
  scalar_loop_run(&a->sum->combine, n, in, acc);
}

/* acc = value: the first of what is combined. The initial value comes last, in vmr_deliver. */
static void vmr_first(const vmr_acc *a, int64_t n, char *acc, const void *value) {
  const void *wide = vmr_widen(a, n, value, acc);
  if (wide != acc) memcpy(acc, wide, (size_t)n * a->bytes);
}

/* Partial results in `valid` lanes of `from` become one, in lane 0 of acc: halves are combined until one is left. Of
 * truth values one decides. */
static void vmr_fold(const vmr_acc *a, int64_t valid, char *acc, const char *from) {
  assert(acc && from);
  bool or_ = a->store->by == SCALAR_OR;
  if (a->value == XLAC_PRED && a->sum->type == XLAC_PRED && (or_ || a->store->by == SCALAR_AND)) {
    acc[0] = (char)((memchr(from, or_, (size_t)valid) != NULL) == or_);
    return;
  }
  while (valid > 1) {
    int64_t low = (valid + 1) / 2;
    const void *in[2] = {from, from + (size_t)low * a->bytes};
    scalar_loop_run(&a->sum->combine, valid - low, in, acc);
    if (from != acc && valid - low < low)
      memcpy(acc + (size_t)(low - 1) * a->bytes, from + (size_t)(low - 1) * a->bytes, a->bytes);
    from = acc;
    valid = low;
  }
  if (from != acc) memcpy(acc, from, a->bytes);
}

/* n results from number `at` on, in the type of sums, to the output. */
static void vmr_store(const vmr_run *r, const vmr_acc *a, int64_t at, int64_t n, const char *from) {
  char *to = (char *)r->out[a->store->buffer] + (size_t)at * base_dtype_bytes(a->value);
  if (a->value == a->sum->type)
    memcpy(to, from, (size_t)n * a->bytes);
  else
    base_convert(a->value, to, (base_dtype)a->sum->type, from, (size_t)n);
}

/* n results from number `at` on, in the type of sums: with the initial value they are the output, else, where
 * ranges are cut, they are partial. */
static void vmr_deliver(const vmr_run *r, const vm_block *b, const vmr_acc *a, int64_t piece, int64_t at, int64_t n,
                        char *acc) {
  const kernel_reduction *red = r->vm->k->reduction;
  assert(at >= 0 && at + n <= red->outer * red->inner);
  if (r->pieces > 1) {
    memcpy(a->partial + (size_t)(piece * red->outer * red->inner + at) * a->bytes, acc, (size_t)n * a->bytes);
    return;
  }
  vmr_acc last = *a; /* the initial value is not a sum */
  last.lane = (base_dtype)r->vm->insts[a->store->init].lane;
  vmr_combine(&last, n, acc, b->values[a->store->init]);
  vmr_store(r, a, at, n, acc);
}

/* Asked at every block; looks at every VMR_PATIENCE of them whether the run is to stop. */
static bool vmr_stops(const vmr_run *r, int64_t *until) {
  if (--*until) return false;
  *until = VMR_PATIENCE;
  return rt_pool_stopping(r->pool);
}

/* Iterations at..at+n, and what each of them stores. */
static void vmr_compute(const vm_block *b, int64_t at, int64_t n) {
  if (b->sums) {
    cpu_native_run(b->vm->native, b->in, b->out, b->sums, at, at + n);
    return;
  }
  vm_compute(b, at, n);
  for (uint32_t i = 0; i < b->vm->k->n_stores; i++)
    if (!b->vm->k->stores[i].by) vm_store(b, i, at, n);
}

/* A block of a row into the accumulator's lanes: as a sum of products, by the fold of its op, or lane by lane.
 * all: it is the whole row, which then is folded where it is. Native code may leave fewer lanes than the block has,
 * in which those that come after are combined already. */
static void vmr_take(const vm_block *b, vmr_acc *a, int64_t n, bool all) {
  if (b->way == CPU_NATIVE_LANES && n > cpu_native_lanes(b->vm->native)) n = cpu_native_lanes(b->vm->native);
  if (a->sum->products && !b->sums) {
    a->sum->products(n, b->values[a->sum->in[0]], b->values[a->sum->in[1]], a->lanes, &a->valid);
    return;
  }
  const char *value = b->sums ? b->sums[a->store - b->vm->k->stores] : b->values[a->store->value];
  if (a->sum->fold) {
    char wide[VMR_LANES * sizeof(float)] __attribute__((aligned(64)));
    a->sum->fold->some(n, vmr_widen(a, n, value, wide), a->lanes, &a->valid);
    return;
  }
  if (all && a->lane == a->sum->type) {
    vmr_fold(a, n, a->lanes, value);
    a->valid = 1;
    return;
  }
  int64_t both = n < a->valid ? n : a->valid;
  size_t bytes = base_dtype_bytes(a->lane);
  if (both) vmr_combine(a, both, a->lanes, value);
  if (n > a->valid) {
    vmr_first(a, n - a->valid, a->lanes + (size_t)a->valid * a->bytes, value + (size_t)a->valid * bytes);
    a->valid = n;
  }
}

/* Whole blocks of an array as it lies, from iteration `at` on: gives where they end, at or before `to`. */
static int64_t vmr_plain_blocks(const vmr_run *r, const vm_block *b, vmr_acc *a, int64_t at, int64_t to) {
  int64_t each = r->vm->lanes, some = VMR_PATIENCE * each;
  while (!r->ahead && to - at >= 2 * each && !rt_pool_stopping(r->pool)) {
    int64_t n = (to - at < some ? to - at : some) / each * each;
    vm_compute(b, at, each);
    a->sum->fold->blocks(n, each, b->values[a->store->value], a->lanes, &a->valid);
    at += n;
  }
  return at;
}

/* The sums of whole rows of an array as it lies that are longer than a block, as lanes one after the other. */
static const char *vmr_plain_lanes(const vmr_run *r, const vm_block *b, const vmr_acc *a, int64_t row, int64_t n,
                                   char *lanes) {
  int64_t reduced = r->vm->k->reduction->reduced;
  assert(reduced > r->vm->lanes && n <= VMR_TOGETHER);
  for (int64_t i = 0; i < n; i++) {
    vmr_acc one = *a;
    one.lanes = lanes + i * VM_FOLD_BYTES;
    one.valid = 0;
    int64_t to = (row + i + 1) * reduced, at = vmr_plain_blocks(r, b, &one, to - reduced, to);
    for (int64_t m = 0; at < to; at += m) {
      m = vm_next_block(r->vm, at, to);
      vm_compute(b, at, m);
      vmr_take(b, &one, m, false);
    }
  }
  return lanes;
}

/* Whole rows of an array as it lies to results begin .. end: some at a time by the fold for many rows. */
static void vmr_plain_rows(const vmr_run *r, const vm_block *b, const vmr_acc *a, int64_t begin, int64_t end) {
  int64_t reduced = r->vm->k->reduction->reduced, some = r->ahead ? 1 : VMR_TOGETHER;
  bool is_long = reduced > r->vm->lanes;
  char init[16] __attribute__((aligned(16))), lanes[VMR_TOGETHER * VM_FOLD_BYTES] __attribute__((aligned(64)));
  assert(r->pieces == 1);
  base_convert((base_dtype)a->sum->type, init, (base_dtype)r->vm->insts[a->store->init].lane, b->values[a->store->init],
               1);
  for (int64_t at = begin, n = 0; at < end && !rt_pool_stopping(r->pool); at += n) {
    n = some < end - at ? some : end - at;
    if (!is_long) vm_compute(b, at * reduced, reduced);
    const char *from = is_long ? vmr_plain_lanes(r, b, a, at, n, lanes) : b->values[a->store->value];
    a->sum->fold->many(n, is_long ? VM_FOLD_BYTES / (int64_t)a->bytes : reduced, from, init, a->lanes);
    vmr_store(r, a, at, n, a->lanes);
  }
}

/* One result (or a piece of it) of each store from a run of iterations. A run that is to stop ends early; what it
 * then delivers nobody reads. */
static void vmr_row(const vmr_run *r, const vm_block *b, vmr_accs *all, int64_t unit) {
  const kernel_reduction *red = r->vm->k->reduction;
  assert(red->inner == 1);
  int64_t o = unit / r->pieces, piece = unit % r->pieces, n = 0, until = VMR_PATIENCE;
  int64_t from = o * red->reduced + piece * r->vm->cut.piece, to = from + r->vm->cut.piece;
  if (to > (o + 1) * red->reduced) to = (o + 1) * red->reduced;
  for (uint32_t i = 0; i < all->n; i++) all->of[i].valid = 0;
  for (int64_t at = r->vm->plain ? vmr_plain_blocks(r, b, &all->of[0], from, to) : from;
       at < to && !vmr_stops(r, &until); at += n) {
    n = vm_next_block(r->vm, at, to);
    vmr_compute(b, at, n);
    for (uint32_t i = 0; i < all->n; i++) vmr_take(b, &all->of[i], n, n == to - from);
  }
  for (uint32_t i = 0; i < all->n; i++) {
    vmr_acc *a = &all->of[i];
    if (a->sum->fold)
      a->sum->fold->last(a->valid, a->lanes);
    else
      vmr_fold(a, a->valid, a->lanes, a->lanes);
    vmr_deliver(r, b, a, piece, o, 1, a->lanes);
  }
}

/* Whether native code may do several rows at a time, each of which is a block and gives one result. */
static bool vmr_goes_by_rows(const vmr_run *r, const vm_block *b) {
  const kernel *k = r->vm->k;
  int64_t reduced = k->reduction->reduced;
  return b->sums && b->way == CPU_NATIVE_LANES && r->pieces == 1 && reduced <= r->vm->lanes &&
         reduced == k->extents[k->rank - 1];
}

/* The lanes that native code left of each of n rows become results `at`.. of the accumulator's store. */
static void vmr_fold_lanes(const vmr_run *r, const vm_block *b, const vmr_acc *a, int64_t at, int64_t n) {
  int64_t lanes = cpu_native_lanes(b->vm->native), reduced = r->vm->k->reduction->reduced;
  const char *from = b->sums[a->store - r->vm->k->stores];
  if (lanes > reduced) lanes = reduced;
  if (a->sum->fold && lanes * (int64_t)a->bytes == VM_FOLD_BYTES) { /* rows without gaps */
    char init[16] __attribute__((aligned(16)));
    base_convert((base_dtype)a->sum->type, init, (base_dtype)r->vm->insts[a->store->init].lane,
                 b->values[a->store->init], 1);
    a->sum->fold->many(n, lanes, from, init, a->lanes);
    vmr_store(r, a, at, n, a->lanes);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    char acc[VM_FOLD_BYTES] __attribute__((aligned(64)));
    vmr_fold(a, lanes, acc, from + i * VM_FOLD_BYTES);
    memcpy(a->lanes + (size_t)i * a->bytes, acc, a->bytes);
  }
  vmr_deliver(r, b, a, 0, at, n, a->lanes);
}

/* Results begin..end, as many at a time as there is room for lanes. */
static void vmr_rows(const vmr_run *r, const vm_block *b, vmr_accs *all, int64_t begin, int64_t end) {
  int64_t reduced = r->vm->k->reduction->reduced, some = r->vm->lanes * 16 / VM_FOLD_BYTES, until = VMR_PATIENCE;
  if (some > reduced) some = reduced; /* what is the same everywhere is there in so many lanes */
  assert(some > 0 && some <= r->vm->lanes);
  for (int64_t at = begin, n = 0; at < end && !vmr_stops(r, &until); at += n) {
    n = some < end - at ? some : end - at;
    cpu_native_run_lanes(b->vm->native, b->in, b->out, b->sums, at * reduced, n);
    for (uint32_t i = 0; i < all->n; i++) vmr_fold_lanes(r, b, &all->of[i], at, n);
  }
}

/* By native code, what is computed goes to the accumulators at once: `done` lanes of which are done. */
static void vmr_point_columns(const vm_block *b, const vmr_accs *all, int64_t done) {
  for (uint32_t j = 0; j < all->n; j++) {
    const vmr_acc *a = &all->of[j];
    b->sums[a->store - b->vm->k->stores] = a->lanes + (size_t)done * a->bytes;
  }
}

/* m lanes of a block into the accumulators, from lane `done` on. */
static void vmr_take_columns(const vm_block *b, const vmr_accs *all, int64_t done, int64_t m, bool first) {
  for (uint32_t j = 0; j < all->n; j++) {
    const vmr_acc *a = &all->of[j];
    (first ? vmr_first : vmr_combine)(a, m, a->lanes + (size_t)done * a->bytes, b->values[a->store->value]);
  }
}

/* n results side by side from `start` on, the first of their iterations, of which each has `rows` as far apart as rows
 * of the kernel are; in as many runs. */
static void vmr_run_columns(const vmr_run *r, const vm_block *b, const vmr_accs *all, int64_t start, int64_t n,
                            int64_t rows) {
  int64_t row = r->vm->k->reduction->inner, some = VMR_PATIENCE * r->vm->cut.runs;
  vmr_point_columns(b, all, 0);
  for (int64_t i = 0, m = 0; i < rows && !rt_pool_stopping(r->pool); i += m) {
    m = rows - i < some ? rows - i : some;
    cpu_native_run_columns(b->vm->native, b->in, b->out, b->sums, start + i * row, n, m, r->vm->cut.runs);
  }
}

/* What changes nothing, in n lanes of each accumulator that native code combines into. */
static void vmr_begin_columns(const vmr_accs *all, int64_t n) {
  for (uint32_t j = 0; j < all->n; j++) cpu_native_begin(all->of[j].store->by, all->of[j].value, n, all->of[j].lanes);
}

/* Results side by side: for one block of them, each reduced index adds a run of lanes, which may be several blocks
 * of the kernel where rows end in between. */
static void vmr_columns(const vmr_run *r, const vm_block *b, vmr_accs *all, int64_t unit) {
  const kernel_reduction *red = r->vm->k->reduction;
  int64_t block = unit % r->vm->cut.blocks, piece = unit / r->vm->cut.blocks % r->pieces,
          o = unit / r->vm->cut.blocks / r->pieces;
  int64_t lane = block * r->vm->lanes, n = red->inner - lane < r->vm->lanes ? red->inner - lane : r->vm->lanes;
  int64_t from = piece * r->vm->cut.piece,
          to = from + r->vm->cut.piece < red->reduced ? from + r->vm->cut.piece : red->reduced;
  assert(n > 0 && from < to);
  int64_t until = VMR_PATIENCE, begin = (o * red->reduced + from) * red->inner + lane;
  bool folded = b->way == CPU_NATIVE_COLUMNS, whole = folded && r->vm->k->extents[r->vm->k->rank - 1] == red->inner;
  if (folded) vmr_begin_columns(all, n);
  if (whole) vmr_run_columns(r, b, all, begin, n, to - from);
  for (int64_t i = from; !whole && i < to && !vmr_stops(r, &until); i++) {
    int64_t start = (o * red->reduced + i) * red->inner + lane, m = 0;
    for (int64_t done = 0; done < n; done += m) {
      m = vm_next_block(r->vm, start + done, start + n);
      if (folded) vmr_point_columns(b, all, done);
      vmr_compute(b, start + done, m);
      if (!folded) vmr_take_columns(b, all, done, m, i == from);
    }
  }
  for (uint32_t j = 0; j < all->n; j++)
    vmr_deliver(r, b, &all->of[j], piece, o * red->inner + lane, n, all->of[j].lanes);
}

/* rows elements that are n apart, side by side. */
#define VMR_COLUMN(T)                                                           \
  do {                                                                          \
    for (int64_t i = 0; i < rows; i++) ((T *)to)[i] = ((const T *)from)[i * n]; \
  } while (0)
static void vmr_column(int64_t rows, int64_t n, size_t bytes, const void *from, void *to) {
  switch (bytes) {
    case 1:
      VMR_COLUMN(uint8_t);
      return;
    case 2:
      VMR_COLUMN(uint16_t);
      return;
    case 4:
      VMR_COLUMN(uint32_t);
      return;
    case 8:
      VMR_COLUMN(uint64_t);
      return;
    default:
      for (int64_t i = 0; i < rows; i++)
        memcpy((char *)to + (size_t)i * bytes, (const char *)from + (size_t)(i * n) * bytes, bytes);
  }
}
#undef VMR_COLUMN

/* n elements, those at even places and those at odd ones. */
#define VMR_APART(T)                                                                           \
  do {                                                                                         \
    for (int64_t i = 0; i < n / 2; i++)                                                        \
      ((T *)even)[i] = ((const T *)from)[2 * i], ((T *)odd)[i] = ((const T *)from)[2 * i + 1]; \
  } while (0)
static void vmr_apart(int64_t n, size_t bytes, const void *from, void *restrict even, void *restrict odd) {
  switch (bytes) {
    case 1:
      VMR_APART(uint8_t);
      return;
    case 2:
      VMR_APART(uint16_t);
      return;
    case 4:
      VMR_APART(uint32_t);
      return;
    default:
      assert(bytes == 8);
      VMR_APART(uint64_t);
  }
}
#undef VMR_APART

/* Of rows of as many elements as a power of 2, where the order does not matter: neighbours are combined, then those. */
static bool vmr_fold_pairs(const vmr_acc *a, int64_t rows, int64_t n, const char *from) {
  char even[VMR_LANES * 4] __attribute__((aligned(64))), odd[VMR_LANES * 4] __attribute__((aligned(64)));
  base_dtype t = (base_dtype)a->sum->type;
  if (n < 2 || (n & (n - 1)) || !(base_dtype_is_integer(t) || t == XLAC_PRED) || a->bytes > 8) return false;
  for (; n > 1; n /= 2, from = a->lanes) {
    vmr_apart(rows * n, a->bytes, from, even, odd);
    const void *in[2] = {even, odd};
    scalar_loop_run(&a->sum->combine, rows * n / 2, in, a->lanes);
  }
  return true;
}

/* Rows of a block to a result each, in the order of their elements. */
static void vmr_fold_rows(const vmr_acc *a, int64_t rows, int64_t n, const char *value) {
  char wide[VMR_LANES * sizeof(float)] __attribute__((aligned(64))), next[VMR_LANES * 16] __attribute__((aligned(64)));
  assert(n > 0 && rows * n <= VMR_LANES);
  const char *from = vmr_widen(a, rows * n, value, wide);
  if (a->sum->fold) {
    a->sum->fold->rows(rows, n, from, a->lanes);
    return;
  }
  if (vmr_fold_pairs(a, rows, n, from)) return;
  for (int64_t j = 0; j < n; j++) {
    char *to = j ? next : a->lanes;
    vmr_column(rows, n, a->bytes, from + (size_t)j * a->bytes, to);
    const void *in[2] = {a->lanes, next};
    if (j) scalar_loop_run(&a->sum->combine, rows, in, a->lanes);
  }
}

/* Whether results come from rows so short that a block has several. */
static bool vmr_is_short(const cpu_vm *vm) {
  const kernel_reduction *red = vm->k->reduction;
  return red->inner == 1 && red->outer > 1 && red->reduced < CPU_VM_SHORT_RUN && red->reduced <= vm->lanes;
}

/* Results begin .. end of short rows, as many at a time as fill a block. */
static void vmr_short(const vmr_run *r, const vm_block *b, vmr_accs *all, int64_t begin, int64_t end) {
  int64_t reduced = r->vm->k->reduction->reduced, some = r->vm->lanes / reduced, until = VMR_PATIENCE;
  assert(some > 0 && r->pieces == 1 && !r->vm->rows);
  for (int64_t at = begin, n = 0; at < end && !vmr_stops(r, &until); at += n) {
    n = some < end - at ? some : end - at;
    vmr_compute(b, at * reduced, n * reduced);
    for (uint32_t i = 0; i < all->n; i++) {
      vmr_fold_rows(&all->of[i], n, reduced, b->values[all->of[i].store->value]);
      vmr_deliver(r, b, &all->of[i], 0, at, n, all->of[i].lanes);
    }
  }
}

/* n lanes of a block, which begins `at` iterations after the unit, into the accumulator, whose lanes come round every
 * `wide`. */
static void vmr_take_runs(const vm_block *b, const vmr_acc *a, int64_t at, int64_t n, int64_t wide) {
  assert(wide <= VMR_WIDE);
  const char *value = b->values[a->store->value];
  for (int64_t done = 0, m = 0; done < n; done += m) {
    int64_t lane = (at + done) % wide;
    m = wide - lane < n - done ? wide - lane : n - done;
    const char *from = value + (size_t)done * base_dtype_bytes(a->lane);
    (at + done < wide ? vmr_first : vmr_combine)(a, m, a->lanes + (size_t)lane * a->bytes, from);
  }
}

/* Few results side by side: lanes are several runs of them, and so partial results, which are folded by halves in the
 * end. Sums over many points of 3 coordinates each are blocks of 192 lanes, and not of 3. */
static void vmr_narrow(const vmr_run *r, const vm_block *b, vmr_accs *all, int64_t unit) {
  const kernel_reduction *red = r->vm->k->reduction;
  int64_t o = unit / r->pieces, piece = unit % r->pieces, n = 0, until = VMR_PATIENCE;
  int64_t from = piece * r->vm->cut.piece,
          to = from + r->vm->cut.piece < red->reduced ? from + r->vm->cut.piece : red->reduced;
  int64_t begin = (o * red->reduced + from) * red->inner, end = (o * red->reduced + to) * red->inner;
  bool folded = b->way == CPU_NATIVE_COLUMNS;
  assert(from < to && r->vm->cut.runs > 1);
  if (folded) {
    vmr_begin_columns(all, r->vm->cut.runs * red->inner);
    vmr_run_columns(r, b, all, begin, red->inner, to - from);
  }
  for (int64_t at = begin; !folded && at < end && !vmr_stops(r, &until); at += n) {
    n = vm_next_block(r->vm, at, end);
    vmr_compute(b, at, n);
    for (uint32_t i = 0; i < all->n; i++) vmr_take_runs(b, &all->of[i], at - begin, n, r->vm->cut.runs * red->inner);
  }
  for (uint32_t i = 0; i < all->n; i++) {
    const vmr_acc *a = &all->of[i];
    for (int64_t runs = r->vm->cut.runs < to - from ? r->vm->cut.runs : to - from, low = 0; runs > 1; runs = low) {
      low = (runs + 1) / 2;
      const void *in[2] = {a->lanes, a->lanes + (size_t)(low * red->inner) * a->bytes};
      scalar_loop_run(&a->sum->combine, (runs - low) * red->inner, in, a->lanes);
    }
    vmr_deliver(r, b, a, piece, o * red->inner, red->inner, a->lanes);
  }
}

int64_t cpu_vm_runs_of(const kernel_reduction *red, int64_t piece) {
  int64_t runs = 1;
  while (red->inner > 1 && red->inner <= VMR_FEW && 2 * runs * red->inner <= VMR_WIDE && 2 * runs <= piece) runs *= 2;
  return runs;
}

/* The most lanes that a block will have. */
static int64_t vmr_lanes(const vmr_run *r) {
  const kernel_reduction *red = r->vm->k->reduction;
  int64_t most = vmr_is_short(r->vm)   ? r->vm->lanes
                 : red->inner == 1     ? red->reduced
                 : r->vm->cut.runs > 1 ? r->vm->cut.piece * red->inner
                                       : red->inner;
  return most < r->vm->lanes ? most : r->vm->lanes;
}

/* Lanes of initial values: results that are delivered at once. */
static int64_t vmr_init_lanes(const vmr_run *r) {
  const kernel_reduction *red = r->vm->k->reduction;
  int64_t lanes = vmr_lanes(r), results = red->outer * red->inner;
  return results < lanes ? results : lanes;
}

/* Bytes of the values that native code leaves for one store: a block of the widest lanes. */
static size_t vmr_sum_bytes(const cpu_vm *vm) {
  return ((size_t)vm->lanes * 16 + 63) & ~(size_t)63;
}

/* Where native code leaves values, in `memory`: there the folds find them. */
static void vmr_take_native(vm_block *b, char **sums, char *memory) {
  const kernel *k = b->vm->k;
  for (uint32_t i = 0; i < k->n_stores; i++, memory += vmr_sum_bytes(b->vm)) {
    sums[i] = memory;
    if (k->stores[i].by) b->values[k->stores[i].value] = memory;
  }
  b->sums = sums;
  b->way = (uint8_t)cpu_native_way_of(b->vm->native);
  assert((int)CPU_NATIVE_FOLD_BYTES == (int)VM_FOLD_BYTES);
}

/* For rt_parallel_for. Each range fills its own registers and has its own accumulators, on its stack. */
static void vmr_units(void *ctx, size_t begin, size_t end) {
  const vmr_run *r = ctx;
  vmr_accs all;
  VM_ROOM(b, r->vm, r->in, r->out);
  char *sums[KERNEL_MAX_STORES];
  b.ahead = r->ahead;
  bool native = cpu_native_is_ready(r->vm->native);
  if (native) vmr_take_native(&b, sums, __builtin_alloca_with_align(r->vm->k->n_stores * vmr_sum_bytes(r->vm), 512));
  if (native || r->vm->cut.loads) {
    vm_fill_inits(&b, vmr_init_lanes(r));
  } else {
    vm_fill_splats(&b, vmr_lanes(r));
  }
  vmr_list(r, &all);
  vmr_give_lanes(r, &all, __builtin_alloca_with_align(vmr_accs_bytes(r, &all), 512));
  if (vmr_is_short(r->vm)) {
    vmr_short(r, &b, &all, (int64_t)begin, (int64_t)end);
    return;
  }
  if (vmr_goes_by_rows(r, &b)) {
    vmr_rows(r, &b, &all, (int64_t)begin, (int64_t)end);
    return;
  }
  if (r->vm->plain && r->pieces == 1) {
    vmr_plain_rows(r, &b, &all.of[0], (int64_t)begin, (int64_t)end);
    return;
  }
  for (size_t unit = begin; unit < end; unit++) {
    if (r->vm->k->reduction->inner == 1)
      vmr_row(r, &b, &all, (int64_t)unit);
    else if (r->vm->cut.runs > 1)
      vmr_narrow(r, &b, &all, (int64_t)unit);
    else
      vmr_columns(r, &b, &all, (int64_t)unit);
  }
}

/* Partial results in the order of their pieces, then the initial value. On the caller's thread: there are few
 * results where a range was cut. */
static void vmr_pieces(vmr_run *r) {
  const kernel_reduction *red = r->vm->k->reduction;
  int64_t n = red->outer * red->inner, pieces = r->pieces;
  assert(r->partial && pieces > 1);
  vmr_accs all;
  VM_BLOCK(b, r->vm, r->in, r->out, r->vm->lanes);
  vmr_list(r, &all);
  r->pieces = 1;
  for (uint32_t j = 0; j < all.n; j++) {
    const vmr_acc *a = &all.of[j];
    for (int64_t at = 0; at < n; at += r->vm->lanes) {
      int64_t m = n - at < r->vm->lanes ? n - at : r->vm->lanes;
      char *acc = a->partial + (size_t)at * a->bytes;
      for (int64_t i = 1; i < pieces; i++) {
        const void *in[2] = {acc, a->partial + (size_t)(i * n + at) * a->bytes};
        scalar_loop_run(&a->sum->combine, m, in, acc);
      }
      vmr_deliver(r, &b, a, 0, at, m, acc);
    }
  }
}

/* Nothing to combine: all results are the initial value, as XLA has it for a dimension of extent 0. */
static void vmr_nothing(const vmr_run *r) {
  const kernel_reduction *red = r->vm->k->reduction;
  vmr_accs all;
  VM_BLOCK(b, r->vm, r->in, r->out, r->vm->lanes);
  vmr_list(r, &all);
  for (uint32_t j = 0; j < all.n; j++) {
    const vmr_acc *a = &all.of[j];
    char *to = r->out[a->store->buffer];
    for (int64_t i = 0; i < red->outer * red->inner; i++)
      base_convert(a->value, to + (size_t)i * base_dtype_bytes(a->value), (base_dtype)r->vm->insts[a->store->init].lane,
                   b.values[a->store->init], 1);
  }
}

/* Whether no block needs lanes that are filled before it: all that is combined are loads, beside initial values. */
static bool vmr_combines_loads(const cpu_vm *vm) {
  for (uint32_t i = 0; i < vm->k->n_values; i++) {
    bool init = false, filled = vm->insts[i].place == VM_SPLAT || vm->insts[i].place == VM_CYCLE;
    for (uint32_t j = 0; j < vm->k->n_stores; j++) init = init || (vm->k->stores[j].by && vm->k->stores[j].init == i);
    if (vm->k->values[i].kind != KERNEL_LOAD && !init) return false;
    if (filled && !init) return false;
  }
  for (uint32_t i = 0; i < vm->k->n_stores; i++)
    if (vm->insts[vm->k->stores[i].value].place == VM_SPLAT) return false;
  return true;
}

bool vm_reduce_is_plain(const cpu_vm *vm) {
  const kernel *k = vm->k;
  if (!k->reduction || k->n_stores != 1 || k->reduction->inner != 1 || !vmr_combines_loads(vm)) return false;
  const vm_inst *inst = &vm->insts[k->stores[0].value];
  const vm_sum *sum = &vm->sums[0];
  bool rows = k->reduction->reduced == k->extents[k->rank - 1]; /* blocks end where rows do, if at all */
  bool as_it_lies = rows && inst->place == VM_MEMORY && !inst->edged && !inst->widens && inst->lane == sum->type;
  return as_it_lies && sum->fold && sum->fold->blocks && !sum->products;
}

vm_cut vm_reduce_cut(const cpu_vm *vm) {
  const kernel_reduction *red = vm->k->reduction;
  vm_cut c = {.pieces = kernel_pieces(vm->k), .loads = vmr_combines_loads(vm)};
  if (red->reduced == 0) return c;
  c.piece = (red->reduced + c.pieces - 1) / c.pieces;
  c.pieces = (red->reduced + c.piece - 1) / c.piece; /* none is empty */
  c.runs = cpu_vm_runs_of(red, c.piece);
  c.blocks = red->inner == 1 || c.runs > 1 ? 1 : (red->inner + vm->lanes - 1) / vm->lanes;
  int64_t each = c.piece * (red->inner < vm->lanes ? red->inner : vm->lanes);
  c.grain = (1 << 16) / (each * vm->k->n_values + 1) + 1;
  int64_t rows = red->reduced <= vm->lanes ? VMR_TOGETHER : VMR_TOGETHER / 2;
  if (vm->plain && c.pieces == 1 && red->outer >= 4 * rows) c.grain = (c.grain + rows - 1) / rows * rows;
  c.units = red->outer * c.pieces * c.blocks;
  return c;
}

/* Whether the cut gives more than one range. */
bool vm_reduce_is_divisible(const cpu_vm *vm) {
  return vm->k->reduction->reduced > 0 && vm->cut.units > vm->cut.grain;
}

/* Where a call runs only one part of the ranges (rt_stop.parts), the part that is the last combines all pieces. */
void vm_reduce(const cpu_vm *vm, rt_pool *pool, const void *const *in, void *const *out, void *scratch) {
  const kernel_reduction *red = vm->k->reduction;
  vmr_run r = {.vm = vm, .pool = pool, .in = in, .out = out, .partial = scratch, .pieces = vm->cut.pieces};
  const vm_cut *c = &vm->cut;
  assert(vm->lanes <= VMR_LANES && (kernel_pieces(vm->k) == 1 || scratch));
  if (red->reduced == 0) {
    vmr_nothing(&r);
    return;
  }
  if (c->units <= c->grain)
    vmr_units(&r, 0, (size_t)c->units);
  else
    rt_parallel_for(pool, (size_t)c->units, (size_t)c->grain, vmr_units, &r);
  if (r.pieces > 1 && !rt_pool_is_partial(pool)) vmr_pieces(&r);
}

/* For groups: rows of results whose reduced range is in one piece. */
void vm_reduce_rows(const cpu_vm *vm, int64_t rows, int64_t begin, int64_t end, const void *const *in, void *const *out,
                    cpu_vm_ahead *ahead) {
  const kernel_reduction *red = vm->k->reduction;
  vmr_run r = {.vm = vm, .in = in, .out = out, .pieces = 1, .ahead = ahead};
  assert(red->reduced > 0 && red->outer % rows == 0 && vm->cut.pieces == 1);
  int64_t units = red->outer / rows * vm->cut.blocks;
  vmr_units(&r, (size_t)(begin * units), (size_t)(end * units));
}
