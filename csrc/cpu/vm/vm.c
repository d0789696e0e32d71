/* Kernels made ready to run, and maps. An instruction is an op over a block of some hundred lanes (iterations);
 * between instructions, values live in registers, which are short arrays on the stack. Values need none where they
 * are loaded from dense memory (they are read there), or where they are the same at every iteration (a register
 * that is filled once).
 *
 * Making a kernel ready goes through its values several times, each pass deciding one thing: loops, places, sums,
 * chains and fast loops, outputs, registers, and in the end how many lanes a block has. Nothing of it depends on
 * the pool, so the bits are the same for any number of threads. */
#include "../../base/stream.h"
#include "../../passes/op_cost.h"
#include "vm_chain.h"
#include "vm_fold.h"

enum {
  VM_SCRATCH =
      16 * 1024, /* bytes of registers to aim at: half of a first-level cache, through which memory goes, too */
  VM_MIN_LANES = 16,
  VM_COUNT_LANES = 16 * 1024, /* of an iota that is stored as it is */
  VM_MAX_SCALAR = 64,         /* values of a kernel of one iteration */
  VM_MIN_ROW = 64,            /* shorter rows are gathered, several to a block */
  VM_MAX_CYCLE = 512,         /* rows that are short enough to be repeated in a register */
  VM_CYCLE_VALUES = 24,       /* in a kernel with such: registers are on the stack, and longer then */
  VM_AHEAD_BYTES = 1 << 20,   /* of a load; and ... */
  VM_AHEAD_WORK = 3,          /* ... passes over each block, from which on it pays to fetch the next one meanwhile */
  VM_STREAM_ROOM = 1 << 13, /* of results that are streamed together: larger ones push what is read out of the cache */
  VM_STREAM_BYTES = 12 << 20, /* of a store; and ... */
  VM_STREAM_WORK = 2,         /* ... passes over each block: one alone writes where it reads anyway */
  VM_LONG_ROW = 1024,         /* elements: beyond, where a row begins and ends does not matter */
  VM_SHORT_MOVE = 64,         /* bytes of a row that is not copied by itself */
  VM_CYCLE_BLOCKS = 64,       /* in a range, where rows are repeated, but ... */
  VM_SHARES = 16,             /* ... so many ranges for threads first */
  VM_GRAIN_WORK = 1 << 16     /* element operations that a thread should have */
};

/* The same at every iteration: constants, loads from one place, and ops on nothing but such values. */
static bool vm_is_splat(const cpu_vm *vm, const kernel_value *v) {
  assert(v->n_in <= 3);
  if (v->kind == KERNEL_COUNT_UP || v->kind == KERNEL_PICK || v->kind == KERNEL_SCAN) return false;
  if (v->kind == KERNEL_LOAD && (v->box || !kernel_is_constant(vm->k, v->index))) return false;
  for (uint32_t j = 0; j < v->n_in; j++)
    if (vm->insts[v->in[j]].place != VM_SPLAT) return false;
  return true;
}

/* The index of a load that is the same in every row: a bias added to each row of a matrix is one. */
static bool vm_is_cyclic(const kernel *k, const kernel_index *x) {
  for (uint32_t d = 0; d + 1 < k->rank; d++)
    if (x->strides[d]) return false;
  return true;
}

/* Whether all loads are dense, the same everywhere or the same in every (short) row, with some of the last: then
 * blocks need not end where rows do, since the row is repeated in a register as often as a block needs. With rows
 * of 10 elements, a block of 256 that ended with its row would be one of 10. */
static bool vm_is_of_cycles(const kernel *k) {
  uint32_t cyclic = 0;
  if (k->reduction || k->rank < 2 || k->count == 0 || k->n_values > VM_CYCLE_VALUES ||
      k->extents[k->rank - 1] > VM_MAX_CYCLE)
    return false;
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    if (v->kind == KERNEL_PICK || v->kind == KERNEL_SCAN || v->box || (v->kind == KERNEL_LOAD && v->n_in)) return false;
    if (v->kind != KERNEL_LOAD || kernel_is_constant(k, v->index) || kernel_is_dense(k, v->index)) continue;
    if (!vm_is_cyclic(k, v->index)) return false;
    cyclic++;
  }
  return cyclic > 0;
}

/* A load of which some place is not the same at every iteration. */
static bool vm_gathers(const cpu_vm *vm, const kernel_value *v) {
  for (uint32_t j = 0; v->kind == KERNEL_LOAD && j < v->n_in; j++)
    if (vm->insts[v->in[j]].place != VM_SPLAT) return true;
  return false;
}

/* Where the lanes of v are to be. Loads that are not dense over all iterations may still be dense, or the same,
 * along the innermost dimension: blocks that end where rows end then read them where they are. */
static vm_place vm_place_of(const cpu_vm *vm, const kernel_value *v) {
  const kernel *k = vm->k;
  if (vm_is_splat(vm, v)) return VM_SPLAT;
  if (v->kind != KERNEL_LOAD || vm_gathers(vm, v)) return VM_REGISTER;
  if (kernel_is_dense(k, v->index)) return VM_MEMORY;
  if (vm->cycle) return VM_CYCLE;
  int64_t stride = k->rank ? v->index->strides[k->rank - 1] : 0;
  return !vm->rows || stride > 1 || stride < 0 ? VM_REGISTER : stride == 1 ? VM_ROW : VM_ONE;
}

/* The type of each value's lanes, and of each op its loop, which a kernel's ops always have. */
static void vm_choose_loops(cpu_vm *vm) {
  for (uint32_t i = 0; i < vm->k->n_values; i++) {
    vm->insts[i].lane = vm->k->values[i].dtype;
    vm->insts[i].edged = vm->k->values[i].box != NULL;
    vm->edges = vm->edges || vm->insts[i].edged || vm->k->values[i].kind == KERNEL_PICK;
    if (vm->k->values[i].kind == KERNEL_OP) (void)kernel_loop_of(vm->k, i, &vm->insts[i].loop);
  }
}

/* In order, since a value is a splat only if its operands are. */
static void vm_choose_places(cpu_vm *vm) {
  const kernel *k = vm->k;
  vm->cycle = vm_is_of_cycles(k) ? k->extents[k->rank - 1] : 0;
  vm->rows = !vm->cycle && k->rank > 1 && k->extents[k->rank - 1] >= VM_MIN_ROW;
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    vm->insts[i].place = vm_place_of(vm, v);
    vm->insts[i].gathers = vm_gathers(vm, v);
    if (vm->insts[i].gathers && !vm->places) vm->places = vm_find_place_loops();
    vm->insts[i].n_in = v->n_in;
    memcpy(vm->insts[i].in, v->in, sizeof v->in);
  }
}

/* All values that an instruction reads: room for VM_MAX_CHAIN + 1 of them. Returns how many. */
static uint32_t vm_operands(const vm_inst *inst, uint32_t *out) {
  if (inst->chain) return vm_chain_operands(inst->chain, out);
  memcpy(out, inst->in, inst->n_in * sizeof *out);
  return inst->n_in;
}

/* What may be seen where an input lies: loads, and picks, which may show a load. */
static bool vm_may_be_memory(const cpu_vm *vm, uint32_t v) {
  uint8_t kind = vm->k->values[v].kind;
  return (kind == KERNEL_LOAD && vm->insts[v].place != VM_SPLAT) || kind == KERNEL_PICK;
}

/* Whether a value after v reads inputs where they are: an output may be the memory of one, and writing v there
 * block by block would then change what is still to be read of the block. */
static bool vm_reads_memory_after(const cpu_vm *vm, uint32_t v) {
  for (uint32_t i = v + 1; i < vm->k->n_values; i++) {
    const vm_inst *inst = &vm->insts[i];
    if (inst->place == VM_INSIDE || inst->place == VM_SPLAT) continue;
    if (vm->k->values[i].kind == KERNEL_LOAD) return true;
    uint32_t in[VM_MAX_CHAIN + 1], n = vm_operands(inst, in);
    for (uint32_t j = 0; j < n; j++)
      if (vm_may_be_memory(vm, in[j])) return true;
  }
  for (uint32_t i = 0; i < vm->k->n_stores; i++)
    if (vm_may_be_memory(vm, vm->k->stores[i].value)) return true;
  return false;
}

/* Values that are stored where every iteration has an element are computed there, which saves the copy at the end.
 * The first such store gets the value; lanes must have the output's type. */
static void vm_choose_outputs(cpu_vm *vm) {
  const kernel *k = vm->k;
  for (uint32_t i = 0; i < k->n_stores; i++) {
    const kernel_store *s = &k->stores[i];
    vm_inst *inst = &vm->insts[s->value];
    if (s->by || inst->place != VM_REGISTER || k->values[s->value].kind == KERNEL_PICK || inst->to_output ||
        !kernel_is_dense(k, &s->index))
      continue;
    if (inst->lane != k->values[s->value].dtype || vm_reads_memory_after(vm, s->value)) continue;
    inst->to_output = (uint8_t)(i + 1);
  }
}

/* By place. Results that are written straight to their output need none, unless stores go past the cache. */
static bool vm_needs_register(const cpu_vm *vm, const vm_inst *inst) {
  if (inst->place == VM_SPLAT) return !inst->number || inst->n_in > 0 || inst->widens;
  if (inst->place == VM_ONE) return !inst->number || inst->widens;
  if (inst->place == VM_MEMORY || inst->place == VM_ROW) return inst->widens || inst->edged;
  return inst->place == VM_CYCLE || (inst->place == VM_REGISTER && (!inst->to_output || vm->streams));
}

/* What is filled once, before the first block. */
static bool vm_is_kept(const vm_inst *inst) {
  return inst->place == VM_SPLAT || inst->place == VM_CYCLE;
}

/* Where rows of products are summed up, and nobody else needs the products, they are computed by the fold: a dot
 * product of two rows is then one loop over both. */
static void vm_choose_products(cpu_vm *vm, const uint32_t *uses) {
  const kernel *k = vm->k;
  for (uint32_t i = 0; i < k->n_stores; i++) {
    const kernel_store *s = &k->stores[i];
    const kernel_value *v = &k->values[s->value];
    vm_inst *inst = &vm->insts[s->value];
    vm_sum *sum = &vm->sums[i];
    bool product = s->by && sum->fold && v->kind == KERNEL_OP && v->op.code == SCALAR_MULTIPLY;
    bool short_rows = k->reduction->outer > 1 && k->reduction->reduced < CPU_VM_SHORT_RUN; /* see vmr_short */
    if (!product || uses[s->value] != 1 || inst->place != VM_REGISTER || inst->widens || k->reduction->inner != 1 ||
        short_rows)
      continue;
    if (vm->insts[v->in[0]].lane != sum->type || vm->insts[v->in[1]].lane != sum->type || inst->lane != sum->type)
      continue;
    sum->products = sum->fold->products;
    if (!sum->products) continue;
    memcpy(sum->in, v->in, sizeof sum->in);
    inst->place = VM_INSIDE;
  }
}

/* Linear allocation: `last` is the last value that reads each value, and a register is free again after that. What
 * is stored, summed up in products, or seen through a pick stays until the end, or as long as the pick; splats and
 * cycles keep their registers, since they are filled only once. An operand that dies gives its register to later
 * values only, never to the one that is computed from it. false when out of memory. */
static bool vm_choose_registers(cpu_vm *vm, base_arena *scratch) {
  const kernel *k = vm->k;
  uint32_t *last = BASE_ARRAY(scratch, uint32_t, k->n_values), *pool = BASE_ARRAY(scratch, uint32_t, k->n_values);
  uint32_t n_pool = 0;
  assert(k->n_values > 0 && vm->n_regs == 0);
  if (!last || !pool) return false;
  for (uint32_t i = 0; i < k->n_values; i++) {
    last[i] = i;
    if (vm->insts[i].place == VM_INSIDE) continue;
    uint32_t in[VM_MAX_CHAIN + 1], n = vm_operands(&vm->insts[i], in);
    for (uint32_t j = 0; j < n; j++) last[in[j]] = i;
  }
  for (uint32_t i = 0; i < k->n_stores; i++) last[k->stores[i].value] = UINT32_MAX;
  for (uint32_t i = 0; k->reduction && i < k->n_stores; i++)
    if (vm->sums[i].products) last[vm->sums[i].in[0]] = last[vm->sums[i].in[1]] = UINT32_MAX;
  for (uint32_t i = k->n_values; i-- > 0;) { /* what is picked from may be seen where it is */
    const kernel_value *v = &k->values[i];
    for (uint32_t j = 0; v->kind == KERNEL_PICK && j < v->n_in; j++)
      if (last[v->in[j]] < last[i]) last[v->in[j]] = last[i];
  }
  for (uint32_t i = 0; i < k->n_values; i++) {
    vm_inst *inst = &vm->insts[i];
    if (inst->place == VM_INSIDE) continue;
    if (vm_needs_register(vm, inst)) inst->reg = !vm_is_kept(inst) && n_pool ? pool[--n_pool] : vm->n_regs++;
    uint32_t in[VM_MAX_CHAIN + 1], n = vm_operands(inst, in);
    for (uint32_t j = 0; j < n; j++) {
      uint32_t v = in[j];
      bool again = false;
      for (uint32_t l = 0; l < j; l++) again = again || in[l] == v;
      bool frees = !vm_is_kept(&vm->insts[v]) && vm_needs_register(vm, &vm->insts[v]);
      if (last[v] == i && !again && frees) pool[n_pool++] = vm->insts[v].reg;
    }
  }
  return true;
}

/* How each store that reduces combines. Narrow floats are summed in f32 and rounded once. The fold may be NULL
 * (integers, logical ops): then it goes by the interpreter's loop, halving lanes. false when out of memory. */
static bool vm_choose_sums(cpu_vm *vm, base_arena *arena) {
  const kernel *k = vm->k;
  vm->sums = base_arena_zalloc(arena, k->n_stores * sizeof *vm->sums);
  for (uint32_t i = 0; vm->sums && i < k->n_stores; i++) {
    if (!k->stores[i].by) continue;
    base_dtype t = (base_dtype)k->values[k->stores[i].value].dtype;
    bool narrow = base_dtype_is_float(t) && t != XLAC_F32 && t != XLAC_F64;
    vm_sum *sum = &vm->sums[i];
    sum->type = (uint8_t)(narrow ? XLAC_F32 : t);
    bool found = scalar_loop_binary(k->stores[i].by, (base_dtype)sum->type, &sum->combine);
    assert(found);
    (void)found;
    sum->fold = vm_fold_of(k->stores[i].by, (base_dtype)sum->type);
  }
  return vm->sums != NULL;
}

/* An iota by itself, made where it is stored: no register is in use, and nothing has to stay in a cache, so blocks
 * may be long. */
static bool vm_only_counts(const cpu_vm *vm) {
  const kernel *k = vm->k;
  return k->n_values == 1 && k->values[0].kind == KERNEL_COUNT_UP && vm->insts[0].place == VM_REGISTER &&
         vm->insts[0].to_output && !vm->insts[0].widens && !vm->streams && !k->reduction;
}

/* As many lanes as keep all registers in the first-level cache, between 64 and VM_MAX_LANES; fewer, down to
 * VM_MIN_LANES, only where the registers would not fit on the stack. */
static void vm_choose_lanes(cpu_vm *vm) {
  size_t widest = 1, regs = vm->n_regs ? vm->n_regs : 1;
  for (uint32_t i = 0; i < vm->k->n_values; i++) {
    size_t bytes = base_dtype_bytes((base_dtype)vm->insts[i].lane);
    if (bytes > widest) widest = bytes;
  }
  size_t lanes = VM_SCRATCH / (regs * widest) & ~(size_t)63;
  if (lanes > VM_MAX_LANES) lanes = VM_MAX_LANES;
  if (lanes < 64) lanes = 64;
  size_t more = (size_t)vm->cycle; /* a block may begin anywhere in a row */
  while (lanes > VM_MIN_LANES && (lanes + more) * regs * widest > VM_MAX_SCRATCH) lanes /= 2;
  vm->lanes = (uint32_t)lanes;
  vm->reg_bytes = ((lanes + more) * widest + 63) & ~(size_t)63;
  assert(vm->lanes >= VM_MIN_LANES && vm->reg_bytes % 64 == 0);
  if (vm_only_counts(vm)) vm->lanes = VM_COUNT_LANES;
}

/* One iteration of few values, as in the conditions of loops: it needs no blocks and no registers. */
static bool vm_is_scalar(const kernel *k) {
  if (k->count != 1 || k->reduction || k->n_values > VM_MAX_SCALAR) return false;
  for (uint32_t i = 0; i < k->n_values; i++)
    if (k->values[i].kind == KERNEL_COUNT_UP || k->values[i].kind == KERNEL_SCAN) return false;
  return true;
}

/* Whether what is stored is more than a cache keeps until somebody reads it. Stores past the cache save reading
 * each line before it is overwritten. */
static bool vm_is_streaming(const cpu_vm *vm) {
  const kernel *k = vm->k;
  int64_t bytes = 0;
  if (k->reduction) return false;
  for (uint32_t i = 0; i < k->n_stores; i++) {
    const kernel_value *v = &k->values[k->stores[i].value];
    /* functions take so long that reading the lines costs nothing */
    if (v->kind == KERNEL_OP && opt_elementwise_cost(scalar_opcode((scalar_code)v->op.code), 1).transcendentals > 0)
      return false;
  }
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (!base_mul_i64(k->count, (int64_t)base_dtype_bytes((base_dtype)k->values[k->stores[i].value].dtype), &bytes) ||
        bytes >= VM_STREAM_BYTES)
      return true;
  return false;
}

/* What goes through memory while several passes are made over each block: large dense loads, whose next block is
 * fetched during the passes over this one. */
static void vm_choose_ahead(cpu_vm *vm) {
  const kernel *k = vm->k;
  for (uint32_t i = 0; i < k->n_values; i++) {
    const vm_inst *inst = &vm->insts[i];
    int64_t bytes = 0;
    if (inst->place != VM_MEMORY || k->values[i].box || k->values[i].n_in) continue;
    if (!base_mul_i64(k->count, (int64_t)base_dtype_bytes((base_dtype)k->values[i].dtype), &bytes)) continue;
    if (bytes >= VM_AHEAD_BYTES && vm->n_dense < CPU_VM_MAX_AHEAD) vm->dense[vm->n_dense++] = i;
  }
  if (vm->n_work < VM_AHEAD_WORK) vm->n_dense = 0;
}

/* The values that each block looks at: all but those that are filled once or computed by others. false when out of
 * memory. */
static bool vm_choose_visits(cpu_vm *vm, base_arena *arena) {
  vm->visits = BASE_ARRAY(arena, uint32_t, vm->k->n_values);
  for (uint32_t i = 0; vm->visits && i < vm->k->n_values; i++)
    if (vm->insts[i].place != VM_SPLAT && vm->insts[i].place != VM_INSIDE) vm->visits[vm->n_visits++] = i;
  return vm->visits != NULL;
}

/* How often each value is needed, by other values, stores and initial values. NULL when out of memory. */
static uint32_t *vm_count_uses(const kernel *k, base_arena *scratch) {
  uint32_t *uses = base_arena_zalloc(scratch, ((size_t)k->n_values + 1) * sizeof *uses);
  for (uint32_t i = 0; uses && i < k->n_values; i++)
    for (uint32_t j = 0; j < k->values[i].n_in; j++) uses[k->values[i].in[j]]++;
  for (uint32_t i = 0; uses && i < k->n_stores; i++) {
    uses[k->stores[i].value]++;
    if (k->stores[i].by) uses[k->stores[i].init]++;
  }
  return uses;
}

/* Loops that do more than one op at a time. Sums of products come first, then chains, and what is left may
 * become a fast loop. false when out of memory. */
static bool vm_select_fused_loops(cpu_vm *vm, base_arena *scratch, base_arena *arena) {
  uint32_t *uses = vm_count_uses(vm->k, scratch);
  if (!uses) return false;
  if (vm->k->reduction) vm_choose_products(vm, uses);
  if (!vm_choose_chains(vm, uses, arena)) return false;
  vm_choose_fast(vm);
  return true;
}

/* The order matters: lanes' types decide which loops fit, places decide what is in memory, and chains and products
 * remove values before registers are given out. */
int cpu_vm_make(const kernel *k, bool fast, base_arena *arena, cpu_vm **out, xlac_error *err) {
  assert(k->n_values > 0 && k->n_stores > 0);
  cpu_vm *vm = base_arena_zalloc(arena, sizeof *vm + (size_t)k->n_values * sizeof *vm->insts);
  base_arena scratch;
  base_arena_init(&scratch, arena->alloc);
  bool ok = vm != NULL;
  if (ok) {
    vm->k = k;
    vm->fast = fast;
    vm->scalar = vm_is_scalar(k);
    vm_choose_loops(vm);
    vm_choose_scans(vm);
    ok = !fast || vm->scalar || vm_choose_wide(vm, arena);
    vm_choose_places(vm);
    ok = ok && (!k->reduction || vm_choose_sums(vm, arena)) && vm_select_fused_loops(vm, &scratch, arena);
    for (uint32_t i = 0; i < k->n_values; i++) vm->n_work += vm->insts[i].place == VM_REGISTER;
    vm->streams = vm_is_streaming(vm);
    vm_choose_outputs(vm);
    ok = ok && vm_choose_registers(vm, &scratch) && vm_choose_visits(vm, arena) && vm_choose_move(vm, arena);
  }
  base_arena_free(&scratch);
  if (!ok) return base_oom(err, "a kernel");
  assert(vm->n_visits <= k->n_values);
  vm_choose_lanes(vm);
  vm->plain = vm_reduce_is_plain(vm);
  if (k->reduction) vm->cut = vm_reduce_cut(vm);
  vm_choose_ahead(vm);
  *out = vm;
  return 0;
}

/* Whether some load is dense along a row alone. */
static bool vm_reads_rows(const cpu_vm *vm) {
  for (uint32_t i = 0; i < vm->k->n_values; i++)
    if (vm->insts[i].place == VM_ROW || vm->insts[i].place == VM_ONE) return true;
  return false;
}

/* Whether the lanes of rows are combined for many short rows at a time: the VM begins anew for each. */
static bool vm_has_many_rows(const cpu_vm *vm, const cpu_native_kernel *native) {
  const kernel_reduction *r = vm->k->reduction;
  return r && native && !vm->plain && r->inner == 1 && r->outer > 1 && r->reduced <= VM_LONG_ROW &&
         cpu_native_way_of(native) == CPU_NATIVE_LANES;
}

void cpu_vm_set_native(cpu_vm *vm, const cpu_native_kernel *native) {
  /* what only moves, or combines loads or their products once, the VM does in one pass already */
  vm->native = vm->n_work || vm_has_many_rows(vm, native) ? native : NULL;
  if (vm->native && !cpu_native_does_all(native)) vm->native = NULL;
  vm->cycles = vm->native ? NULL : native;
  const kernel_reduction *r = vm->k->reduction;
  /* The lanes of results side by side do not depend on where blocks end. */
  if (!vm->native && r && r->inner > 1) vm->rows = vm->rows && vm_reads_rows(vm);
}

bool cpu_vm_is_native(const cpu_vm *vm) {
  return cpu_native_is_ready(vm->native);
}

/* Iterations of a range for one thread: whole blocks of some 65 thousand element operations. Ranges begin with
 * filling registers, which takes as long as some blocks where rows are repeated in them, so these get longer
 * ranges. */
static int64_t vm_grain(const cpu_vm *vm) {
  int64_t grain = VM_GRAIN_WORK / vm->k->n_values, most = vm->k->count / VM_SHARES;
  if (vm->cycle && grain < VM_CYCLE_BLOCKS * vm->lanes)
    grain = most < VM_CYCLE_BLOCKS * vm->lanes ? (most > grain ? most : grain) : VM_CYCLE_BLOCKS * vm->lanes;
  return grain < vm->lanes ? vm->lanes : grain / vm->lanes * vm->lanes;
}

/* --- maps --- */

/* One run of a map, as its ranges see it. */
typedef struct vm_map {
  const cpu_vm *vm;
  const void *const *in;
  void *const *out;
  bool streams;
  cpu_vm_ahead *ahead; /* what the caller wants to be fetched; or NULL */
} vm_map;

/* Whether this run may go past the cache: where a result lies over an operand, its lines are in the cache already. */
static bool vm_may_stream(const cpu_vm *vm, const void *const *in, void *const *out) {
  for (uint32_t i = 0; vm->streams && i < vm->k->n_inputs; i++)
    for (uint32_t j = 0; j < vm->k->n_stores; j++)
      if (in[i] == out[j]) return false;
  return vm->streams;
}

/* Nothing is left to do where the value was computed at its output. Narrow floats that were kept wide are rounded
 * here. */
void vm_store(const vm_block *b, uint32_t i, int64_t at, int64_t n) {
  const kernel_store *s = &b->vm->k->stores[i];
  assert(i < b->vm->k->n_stores && !s->by);
  base_dtype t = (base_dtype)b->vm->k->values[s->value].dtype, lane = (base_dtype)b->vm->insts[s->value].lane;
  int64_t bytes = (int64_t)base_dtype_bytes(t);
  if (b->vm->insts[s->value].to_output == i + 1 && !b->streams) return;
  char *to = (char *)b->out[s->buffer] + (s->index.offset + at) * bytes;
  if (t == lane && b->streams)
    base_stream(to, b->values[s->value], (size_t)(n * bytes));
  else if (t == lane && to != b->values[s->value])
    memcpy(to, b->values[s->value], (size_t)(n * bytes));
  else if (t != lane)
    base_convert(t, to, lane, b->values[s->value], (size_t)n);
}

/* The inputs of the block at `at`, to be fetched while the one before is computed: a share of them in every
 * instruction. */
static void vm_look_ahead(const vm_block *b, cpu_vm_ahead *a, int64_t at, int64_t n) {
  const kernel *k = b->vm->k;
  a->n = b->vm->n_dense;
  a->at = a->bytes = 0;
  for (uint32_t i = 0; i < a->n; i++) {
    const kernel_value *v = &k->values[b->vm->dense[i]];
    int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)v->dtype);
    a->from[i] = (const char *)b->in[v->buffer] + (v->index->offset + at) * bytes;
    if (n * bytes > a->bytes) a->bytes = n * bytes;
  }
  a->step = (a->bytes / b->vm->n_work + 64) & ~(int64_t)63;
}

/* Whether each store has a buffer of its own. */
static bool vm_has_own_buffers(const kernel *k) {
  for (uint32_t i = 0; i < k->n_stores; i++)
    for (uint32_t j = 0; j < i; j++)
      if (k->stores[i].buffer == k->stores[j].buffer) return false;
  return true;
}

/* Machine code and stores past the cache: its results of some lines at a time stay in the nearest cache, from where
 * they are streamed. A store's iteration i is its element i, so where it writes is moved to the lines' room. */
static void vm_stream_native(const vm_map *m, int64_t begin, int64_t end) {
  const kernel *k = m->vm->k;
  int64_t bytes[KERNEL_MAX_STORES], each = VM_STREAM_ROOM / k->n_stores & ~(int64_t)63, n = INT64_MAX;
  char room[VM_STREAM_ROOM] __attribute__((aligned(64)));
  void *out[KERNEL_MAX_STORES];
  for (uint32_t i = 0; i < k->n_stores; i++) {
    bytes[i] = (int64_t)base_dtype_bytes((base_dtype)k->values[k->stores[i].value].dtype);
    if (each / bytes[i] < n) n = each / bytes[i];
  }
  assert(n > 0 && vm_has_own_buffers(k));
  for (int64_t at = begin; at < end; at += n) {
    if (at + n > end) n = end - at;
    for (uint32_t i = 0; i < k->n_stores; i++)
      out[k->stores[i].buffer] = room + i * each - (k->stores[i].index.offset + at) * bytes[i];
    cpu_native_run(m->vm->native, m->in, out, NULL, at, at + n);
    for (uint32_t i = 0; i < k->n_stores; i++)
      base_stream((char *)m->out[k->stores[i].buffer] + (k->stores[i].index.offset + at) * bytes[i], room + i * each,
                  (size_t)(n * bytes[i]));
  }
  base_end_stream();
}

/* Iterations begin .. last, block by block. */
static void vm_map_blocks(const vm_map *m, int64_t begin, int64_t last, bool streams) {
  const cpu_vm *vm = m->vm;
  int64_t n = last - begin;
  VM_BLOCK(b, vm, m->in, m->out, n < vm->lanes ? n : vm->lanes);
  cpu_vm_ahead ahead = {0};
  b.streams = streams;
  b.ahead = m->ahead ? m->ahead : vm->n_dense ? &ahead : NULL;
  for (int64_t at = begin; at < last; at += n) {
    n = vm_next_block(vm, at, last);
    if (b.ahead == &ahead && at + n < last) vm_look_ahead(&b, &ahead, at + n, n < last - at - n ? n : last - at - n);
    vm_compute(&b, at, n);
    for (uint32_t i = 0; i < vm->k->n_stores; i++) vm_store(&b, i, at, n);
  }
  if (b.streams) base_end_stream();
}

/* Iterations begin .. end: for rt_parallel_for, and for rows of a group. */
static void vm_map_range(void *ctx, size_t begin, size_t end) {
  const vm_map *m = ctx;
  const cpu_vm *vm = m->vm;
  assert(begin <= end && end <= (size_t)vm->k->count);
  bool cycles = cpu_native_has_cycles(vm->cycles);
  if (cpu_native_is_ready(vm->native) && (!m->streams || vm_has_own_buffers(vm->k))) {
    if (m->streams)
      vm_stream_native(m, (int64_t)begin, (int64_t)end);
    else
      cpu_native_run(vm->native, m->in, m->out, NULL, (int64_t)begin, (int64_t)end);
    return;
  }
  int64_t last = (int64_t)end;
  for (int64_t at = (int64_t)begin, from = last, next = last; at < last; at = next, next = from = last) {
    if (cycles) next = cpu_native_run_cycles(vm->cycles, m->in, m->out, at, last, &from);
    if (at < from) vm_map_blocks(m, at, from, m->streams && !cycles);
  }
}

/* One iteration: operands are read where they are, and a loop runs over one lane. Stores come last, since an
 * output may be the memory of an input. */
static void vm_run_scalar(const cpu_vm *vm, const void *const *in, void *const *out) {
  const kernel *k = vm->k;
  const void *values[VM_MAX_SCALAR];
  char regs[VM_MAX_SCALAR][16] __attribute__((aligned(16)));
  assert(k->n_values <= VM_MAX_SCALAR);
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    size_t bytes = base_dtype_bytes((base_dtype)v->dtype);
    const void *args[3] = {NULL, NULL, NULL};
    for (uint32_t j = 0; j < v->n_in; j++) args[j] = values[v->in[j]];
    if (v->kind == KERNEL_OP) scalar_loop_run(&vm->insts[i].loop, 1, args, regs[i]);
    values[i] = v->kind == KERNEL_OP         ? regs[i]
                : v->kind == KERNEL_CONSTANT ? v->data
                : v->kind == KERNEL_PICK     ? args[0]
                                             : vm_input(k, v, in[v->buffer], args) + v->index->offset * (int64_t)bytes;
  }
  for (uint32_t i = 0; i < k->n_stores; i++) {
    const kernel_store *s = &k->stores[i];
    size_t bytes = base_dtype_bytes((base_dtype)k->values[s->value].dtype);
    memmove((char *)out[s->buffer] + s->index.offset * (int64_t)bytes, values[s->value], bytes);
  }
}

/* Whether rows are so short that copying each takes longer than machine code for many. */
static bool vm_moves_by_cycles(const cpu_vm *vm) {
  const kernel *k = vm->k;
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)k->values[k->stores[0].value].dtype);
  bool has = cpu_native_has_cycles(vm->native) || cpu_native_has_cycles(vm->cycles);
  return has && k->extents[k->rank - 1] * bytes <= VM_SHORT_MOVE;
}

/* One way to run for each kind of kernel. Small maps don't ask the pool at all. */
void cpu_vm_run(const cpu_vm *vm, rt_pool *pool, const void *const *in, void *const *out, void *scratch, bool last) {
  int64_t count = vm->k->count, grain = vm_grain(vm);
  vm_map m = {vm, in, out, last && vm->n_work >= VM_STREAM_WORK && vm_may_stream(vm, in, out), NULL};
  if (vm->move && !vm_moves_by_cycles(vm) && vm_all_moved(vm, pool, in, out)) return;
  if (vm->scalar)
    vm_run_scalar(vm, in, out);
  else if (vm->k->reduction)
    vm_reduce(vm, pool, in, out, scratch);
  else if (vm->scanning)
    vm_scan_run(vm, pool, in, out);
  else if (count <= grain)
    vm_map_range(&m, 0, (size_t)count);
  else
    rt_parallel_for(pool, (size_t)count, (size_t)grain, vm_map_range, &m);
}

/* By the same cuts that the runs make: a kernel of one range would be run by one part alone. */
bool cpu_vm_is_divisible(const cpu_vm *vm) {
  if (vm->scalar || vm->move) return false;
  if (vm->scanning) return vm_scan_is_divisible(vm);
  return vm->k->reduction ? vm_reduce_is_divisible(vm) : vm->k->count > vm_grain(vm);
}

/* Blocks in so many rows, times the instructions of each: vm_compute takes a step of `ahead` after every
 * instruction. */
int64_t cpu_vm_passes(const cpu_vm *vm, int64_t rows, int64_t n) {
  assert(rows > 0 && n >= 0);
  const kernel *k = vm->k;
  int64_t whole = k->reduction && k->reduction->inner == 1 ? k->reduction->reduced
                  : k->rank && (vm->rows || k->reduction)  ? k->extents[k->rank - 1]
                                                           : k->count;
  int64_t each = whole < vm->lanes ? whole : vm->lanes;
  return (k->count / rows * n / (each ? each : 1) + 1) * vm->n_work;
}

void cpu_vm_run_rows(const cpu_vm *vm, int64_t rows, int64_t begin, int64_t end, const void *const *in,
                     void *const *out, bool last, cpu_vm_ahead *ahead) {
  int64_t row = vm->k->count / rows;
  assert(rows > 0 && begin >= 0 && begin <= end && end <= rows);
  vm_map m = {vm, in, out, last && vm_may_stream(vm, in, out), ahead};
  assert(vm->k->count % rows == 0);
  if (vm->k->reduction)
    vm_reduce_rows(vm, rows, begin, end, in, out, ahead);
  else
    vm_map_range(&m, (size_t)(begin * row), (size_t)(end * row));
}
