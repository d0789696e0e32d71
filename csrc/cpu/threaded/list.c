/* From programs to lists of instructions. A step that is a small kernel becomes one instruction for each of its
 * values; a step that is not ends the present part of the list and runs by itself, or as a group. In a kernel of
 * one iteration an op is an instruction of its own (list_scalar.c), without a call.
 *
 * Operands are cells here: places that are not known before a run. `where` holds the cell of each value of the
 * present kernel. Constants and iotas are the same in every run: they are written here, once. */
#include "list.h"

#include "../vm/vm_fold.h"

enum {
  LIST_MAX_LANES = 1024,
  LIST_MAX_BYTES = 32 << 10, /* of what a kernel's values take */
  LIST_MAX_FIXED = 16 << 10, /* of a program's constants and iotas, written once */
  LIST_MAX_VALUES = 128,
  LIST_CODE_INPUTS = 16,
  LIST_CODE_WORK = 32 /* lanes times ops from which on a kernel's machine code is faster than calls */
};

BASE_VEC(list_codes, list_code);
BASE_VEC(list_parts, list_part);

/* A list in the making. */
typedef struct list_make {
  base_alloc alloc;
  const cpu_executable *exe;
  const cpu_code *code; /* of the program */
  base_arena *arena;    /* the executable's */
  bool body;
  list_codes codes;
  list_parts parts;
  uint32_t first;                               /* instruction of the present part */
  uint32_t at, step;                            /* the first step of the present part, the present step */
  uint32_t last;                                /* the value whose op is the latest instruction */
  uint8_t uses[LIST_MAX_VALUES];                /* of the present kernel's values: how often they are read, at most 2 */
  uint32_t fixed, scratch, scratch_most, calls; /* bytes */
  uint64_t work;
  const cpu_native_kernel *left; /* the code that left the values which are combined; or NULL */
} list_make;

/* --- instructions, not bound yet --- */

/* The functions of instructions with code LIST_CALL. This one is for loops that work in another type or wrap. */
static void list_run_lanes(const list_inst *i) {
  scalar_loop_run(i->data, i->n, i->in, i->out);
}
/* For all other loops: the loop's function itself. */
static void list_run_simple(const list_inst *i) {
  const scalar_loop *l = i->data;
  l->fn(l, i->n, i->in, i->out);
}
static void list_run_gather(const list_inst *i) {
  vm_gather(i->of, i->data, i->in[0], 0, i->n, i->out);
}
/* in: the buffer, then the values that its place depends on. */
static void list_run_load_at(const list_inst *i) {
  const kernel_value *v = i->data;
  const char *from = vm_input(i->of, v, i->in[0], i->in + 1);
  size_t bytes = base_dtype_bytes((base_dtype)v->dtype);
  if (kernel_is_dense(i->of, v->index) && !v->box)
    memcpy(i->out, from + v->index->offset * (int64_t)bytes, (size_t)i->n * bytes);
  else if (i->of->rank)
    vm_gather(i->of, v, from, 0, i->n, i->out);
  else
    memcpy(i->out, from + v->index->offset * (int64_t)bytes, bytes);
}
/* The same from a place of each lane's own. */
static void list_run_load_each(const list_inst *i) {
  vm_load_places(vm_find_place_loops(), i->of, i->data, i->in[0], i->in + 1, 0, 0, i->n, i->out);
}
static void list_run_index(const list_inst *i) {
  vm_count_up(i->of, i->data, 0, i->n, i->out);
}
static void list_run_copy(const list_inst *i) {
  memmove(i->out, i->in[0], (size_t)i->n);
}
static void list_run_fill(const list_inst *i) {
  const kernel_value *v = i->data;
  vm_fill(base_dtype_bytes((base_dtype)v->dtype), i->in[0], i->n, i->out);
}

/* A row of memory, whose beginning depends on an index: out of an array, and into one. */
static void list_run_slice(const list_inst *i) {
  const cpu_dynamic_row *row = i->data;
  const char *from = (const char *)i->in[0] + cpu_dynamic_row_at(row, i->in[1]);
  if (row->bytes == 4)
    memcpy(i->out, from, 4);
  else
    memmove(i->out, from, (size_t)row->bytes);
}
static void list_run_update(const list_inst *i) {
  const cpu_dynamic_row *row = i->data;
  char *to = (char *)i->out + cpu_dynamic_row_at(row, i->in[1]);
  if (row->bytes == 4)
    memcpy(to, i->in[0], 4);
  else
    memmove(to, i->in[0], (size_t)row->bytes);
}

/* Bytes for n lanes of v; in multiples of a cache line, but for single elements. */
__attribute__((noinline)) static uint32_t list_room(int64_t n, const kernel_value *v) {
  int64_t bytes = n * (int64_t)base_dtype_bytes((base_dtype)v->dtype);
  return (uint32_t)(bytes <= 16 ? 16 : (bytes + 63) & ~(int64_t)63);
}

/* The arrays of a kernel that is machine code. */
typedef struct list_arrays {
  const void *in[LIST_CODE_INPUTS];
  void *out[KERNEL_MAX_STORES];
} list_arrays;
static void list_find_arrays(const plan_step *s, void *const *pointers, list_arrays *a) {
  for (uint32_t j = 0; j < s->n_in; j++) a->in[j] = pointers[s->in[j]];
  for (uint32_t j = 0; j < s->n_out; j++) a->out[j] = pointers[s->out[j]];
}

/* A kernel that is machine code, where it takes several calls: data is its step, of is not needed, in[0] the table of
 * pointers, in[1] its cpu_vm. */
static void list_run_code(const list_inst *i) {
  list_arrays a;
  list_find_arrays(i->data, i->in[0], &a);
  cpu_vm_run(i->in[1], NULL, a.in, a.out, NULL, false);
}
/* ... and where it takes one, which is bound. */
static void list_run_call(const list_inst *i) {
  cpu_native_call_run(i->out);
}

/* What combines values that no code has left: where the system refuses code, the VM runs the kernel whole. */
static void list_run_nothing(const list_inst *i) {
  (void)i;
}

/* Bytes of what code leaves of a store that reduces: its values, or the lanes of folds. */
static uint32_t list_sum_room(const kernel *k, const kernel_store *s) {
  uint32_t room = list_room(k->count, &k->values[s->value]);
  return room < CPU_NATIVE_FOLD_BYTES ? CPU_NATIVE_FOLD_BYTES : room;
}

/* Where code leaves the values of a store that reduces: in[2] is the first's place. */
static void list_find_sums(const kernel *k, char *at, char **sums) {
  for (uint32_t i = 0; i < k->n_stores; i++) {
    sums[i] = at;
    if (k->stores[i].by) at += list_sum_room(k, &k->stores[i]);
  }
}

void cpu_list_bind_call(const list_code *c, list_inst *to, void *const *pointers, char *calls) {
  bool ready = cpu_native_is_ready(c->native);
  list_arrays a;
  char *sums[KERNEL_MAX_STORES];
  if (c->inst.fn != list_run_code) {
    if (!ready) to->code = LIST_CALL, to->fn = list_run_nothing;
    return;
  }
  if (!ready || !cpu_native_call_bytes(c->native)) return;
  const plan_step *s = c->inst.data;
  list_find_arrays(s, pointers, &a);
  if (s->kernel->reduction) list_find_sums(s->kernel, (char *)(uintptr_t)to->in[2], sums);
  to->fn = list_run_call;
  to->out = calls + c->call;
  cpu_native_call_bind(c->native, a.in, a.out, s->kernel->reduction ? sums : NULL, to->out);
}

/* A row combined to one element, and several short ones to one each: as the VM has them. data: the folds. */
static void list_run_fold(const list_inst *i) {
  const vm_fold *fold = i->data;
  char lanes[VM_FOLD_BYTES] __attribute__((aligned(64)));
  int64_t valid = 0;
  fold->some(i->n, i->in[0], lanes, &valid);
  fold->last(valid, lanes);
  memcpy(i->out, lanes, 8);
}
static void list_run_fold_rows(const list_inst *i) {
  ((const vm_fold *)i->data)->rows(i->of->reduction->outer, i->of->reduction->reduced, i->in[0], i->out);
}

/* false when out of memory, as in all functions here that give a bool and are not named as a question. */
__attribute__((noinline)) static bool list_emit(list_make *x, const list_code *c) {
  return BASE_VEC_PUSH(x->alloc, &x->codes, *c);
}

/* Scratch memory is used anew by every kernel: the list needs as much as the largest. */
__attribute__((noinline)) static list_cell list_take_scratch(list_make *x, uint32_t bytes) {
  list_cell c = {.area = LIST_SCRATCH, .at = x->scratch};
  x->scratch += bytes;
  if (x->scratch > x->scratch_most) x->scratch_most = x->scratch;
  return c;
}
static list_cell list_new_scratch(list_make *x, int64_t n, const kernel_value *v) {
  return list_take_scratch(x, list_room(n, v));
}

/* A constant or an iota, written now. A program that runs once may have more of them than are worth their memory:
 * those are written in scratch memory at each run. In the body of a loop there are no others (list_is_small). */
static bool list_fixed(list_make *x, const kernel *k, const kernel_value *v, list_cell *out) {
  bool constant = v->kind == KERNEL_CONSTANT;
  uint32_t room = list_room(k->count, v);
  list_code c = {.inst = {.n = k->count, .data = v, .of = k}, .n_in = constant};
  c.inst.fn = constant ? list_run_fill : list_run_index;
  c.in[0] = (list_cell){.area = LIST_FIXED, .fixed = v->data};
  assert(constant || v->kind == KERNEL_COUNT_UP);
  if (x->fixed + room > LIST_MAX_FIXED) {
    assert(!x->body);
    c.out = *out = list_new_scratch(x, k->count, v);
    return list_emit(x, &c);
  }
  void *to = base_arena_aligned(x->arena, room, 64);
  if (!to) return false;
  x->fixed += room;
  c.inst.in[0] = v->data;
  c.inst.out = to;
  c.inst.fn(&c.inst);
  *out = (list_cell){.area = LIST_FIXED, .fixed = to};
  return true;
}

/* A load that begins at a computed place. */
static bool list_load_at(list_make *x, const plan_step *s, const kernel_value *v, const list_cell *where,
                         list_cell *out) {
  const kernel *k = s->kernel;
  list_code c = {.inst = {.n = k->count, .data = v, .of = k, .fn = list_run_load_at}, .n_in = (uint8_t)(1 + v->n_in)};
  c.in[0] = (list_cell){.area = LIST_BUFFER, .at = s->in[v->buffer]};
  if (kernel_is_gather(k, v)) c.inst.fn = list_run_load_each;
  for (uint32_t j = 0; j < v->n_in; j++) c.in[1 + j] = where[v->in[j]];
  c.out = *out = list_new_scratch(x, k->count, v);
  return list_emit(x, &c);
}

/* A load from a fixed place: read in place if it is dense, filled if it is one number, else gathered. */
static bool list_load(list_make *x, const plan_step *s, const kernel_value *v, list_cell *out) {
  const kernel *k = s->kernel;
  bool same = kernel_is_constant(k, v->index), here = k->count == 1 || (!same && kernel_is_dense(k, v->index));
  list_cell from = {.area = LIST_BUFFER, .at = s->in[v->buffer]};
  list_code c = {.inst = {.n = k->count, .data = v, .of = k, .fn = same ? list_run_fill : list_run_gather}, .n_in = 1};
  if (here || same) from.offset = v->index->offset * (int64_t)base_dtype_bytes((base_dtype)v->dtype);
  c.in[0] = *out = from;
  if (here) return true;
  c.out = *out = list_new_scratch(x, k->count, v);
  return list_emit(x, &c);
}

/* The latest instruction takes over what c does with its result, where nobody else wants that: `t = x * y; u = t +
 * z` is one instruction of three operands. Only ops on f32 and f64 have such pairs. */
static bool list_join(list_make *x, const kernel_value *v, const list_code *c) {
  list_code *before = x->codes.n > x->first ? &x->codes.items[x->codes.n - 1] : NULL;
  if (!before || v->n_in != 2 || v->in[0] == v->in[1] || x->last == UINT32_MAX || x->uses[x->last] != 1) return false;
  bool right = v->in[1] == x->last;
  if (!right && v->in[0] != x->last) return false;
  uint32_t code = cpu_list_pair(before->inst.code, c->inst.code, right);
  if (code == LIST_CALL) return false;
  before->inst.code = code;
  before->in[2] = c->in[!right];
  before->n_in = 3;
  before->out = c->out;
  return true;
}

/* An elementwise op. Constants need no memory: their address is in the instruction. */
static bool list_op(list_make *x, const plan_step *s, uint32_t i, const list_cell *where, list_cell *out) {
  const kernel *k = s->kernel;
  const kernel_value *v = &k->values[i];
  const scalar_loop *l = &((const cpu_vm *)x->code->steps[x->step])->insts[i].loop;
  assert(v->kind == KERNEL_OP && v->n_in <= 3);
  list_code c = {.inst = {.n = k->count, .data = l}, .n_in = v->n_in};
  c.inst.fn = l->work || l->wraps ? list_run_lanes : list_run_simple;
  if (k->count == 1) c.inst.code = cpu_list_scalar(&v->op, l);
  for (uint32_t j = 0; j < v->n_in; j++) c.in[j] = where[v->in[j]];
  c.out = *out;
  bool joined = list_join(x, v, &c);
  x->last = joined ? UINT32_MAX : i;
  return joined || list_emit(x, &c);
}

/* The store of the last value, which is computed where it is stored; NULL: none is, since another store's value
 * lies in an input, which may be the same memory. Values before the last are not: what is computed after them may
 * read an input that the store would overwrite. */
static const kernel_store *list_direct(const kernel *k) {
  const kernel_store *direct = NULL;
  for (uint32_t i = 0; i < k->n_stores; i++) {
    const kernel_store *s = &k->stores[i];
    uint8_t kind = k->values[s->value].kind;
    if (kind == KERNEL_LOAD || k->reduction) return NULL;
    if (kind == KERNEL_OP && s->value + 1 == k->n_values) direct = s;
  }
  return direct;
}

/* The instruction of value i, if it needs one, and its cell. */
static bool list_value(list_make *x, const plan_step *s, uint32_t i, list_cell *where) {
  const kernel *k = s->kernel;
  const kernel_value *v = &k->values[i];
  const kernel_store *store = list_direct(k);
  switch ((kernel_kind)v->kind) {
    case KERNEL_LOAD:
      return v->n_in ? list_load_at(x, s, v, where, &where[i]) : list_load(x, s, v, &where[i]);
    case KERNEL_CONSTANT:
      where[i] = (list_cell){.area = LIST_FIXED, .fixed = v->data};
      return k->count == 1 || list_fixed(x, k, v, &where[i]);
    case KERNEL_COUNT_UP:
      return list_fixed(x, k, v, &where[i]);
    case KERNEL_PICK: /* of no small kernel */
    case KERNEL_SCAN:
    case KERNEL_OP:
      break;
  }
  if (store && store->value == i)
    where[i] = (list_cell){.area = LIST_BUFFER,
                           .at = s->out[store->buffer],
                           .offset = store->index.offset * (int64_t)base_dtype_bytes((base_dtype)v->dtype)};
  else
    where[i] = list_new_scratch(x, k->count, v);
  return list_op(x, s, i, where, &where[i]);
}

__attribute__((noinline)) static bool list_copy(list_make *x, const list_cell *from, list_cell to, int64_t bytes) {
  list_code c = {.inst = {.code = cpu_list_copy(bytes), .fn = list_run_copy, .n = bytes}, .n_in = 1, .out = to};
  c.in[0] = *from;
  x->last = UINT32_MAX;
  return list_emit(x, &c);
}

static bool list_store(list_make *x, const plan_step *s, const kernel_store *store, const list_cell *where) {
  const kernel_value *v = &s->kernel->values[store->value];
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)v->dtype);
  list_cell to = {.area = LIST_BUFFER, .at = s->out[store->buffer], .offset = store->index.offset * bytes};
  return list_copy(x, &where[store->value], to, s->kernel->count * bytes);
}

/* How often values are read, up to 2. What is stored counts twice, so that nobody takes its place; places of loads
 * are uses, too. */
static void list_count_uses(list_make *x, const kernel *k) {
  memset(x->uses, 0, sizeof x->uses);
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    for (uint32_t j = 0; (v->kind == KERNEL_OP || v->kind == KERNEL_LOAD) && j < v->n_in; j++)
      if (x->uses[v->in[j]] < 2) x->uses[v->in[j]]++;
  }
  for (uint32_t i = 0; i < k->n_stores; i++) x->uses[k->stores[i].value] = 2;
}

/* --- reductions: the VM's order (vm_reduce.c) --- */

static list_cell list_further(list_cell c, int64_t bytes) {
  if (c.area == LIST_BUFFER) c.offset += bytes;
  if (c.area == LIST_SCRATCH) c.at += (uint32_t)bytes;
  return c;
}

/* n lanes of x and y, combined as the store has it. */
static bool list_combine(list_make *x, uint32_t store, const list_cell *in, int64_t n, list_cell out) {
  const cpu_vm *vm = x->code->steps[x->step];
  const scalar_loop *l = &vm->sums[store].combine;
  list_code c = {.inst = {.n = n, .data = l, .fn = l->work || l->wraps ? list_run_lanes : list_run_simple}, .n_in = 2};
  c.in[0] = in[0], c.in[1] = in[1], c.out = out;
  c.native = x->left;
  return list_emit(x, &c);
}

/* Values of results side by side: `wide` lanes of partial results, which are several runs of them. */
static bool list_columns(list_make *x, const plan_step *s, uint32_t store, list_cell *from, list_cell to) {
  const kernel_reduction *red = s->kernel->reduction;
  const cpu_vm *vm = x->code->steps[x->step];
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)vm->sums[store].type), runs = vm->cut.runs;
  int64_t wide = runs * red->inner, n = red->reduced * red->inner;
  list_cell first = *from;
  for (int64_t at = wide, m = 0; at < n; at += m) {
    list_cell in[2] = {*from, list_further(first, at * bytes)};
    m = wide < n - at ? wide : n - at;
    if (!list_combine(x, store, in, m, to)) return false;
    list_cell rest = list_further(first, m * bytes);
    if (at == wide && m < wide && !list_copy(x, &rest, list_further(to, m * bytes), (wide - m) * bytes)) return false;
    *from = to;
  }
  for (; runs > 1; runs /= 2, *from = to) {
    int64_t half = runs / 2 * red->inner;
    list_cell in[2] = {*from, list_further(*from, half * bytes)};
    assert(runs % 2 == 0);
    if (!list_combine(x, store, in, half, to)) return false;
  }
  return true;
}

/* Combines the store's values; *from becomes the place of what they come to. */
static bool list_reduce(list_make *x, const plan_step *s, uint32_t store, list_cell *from) {
  const kernel *k = s->kernel;
  const kernel_value *v = &k->values[k->stores[store].value];
  const cpu_vm *vm = x->code->steps[x->step];
  list_cell to = list_new_scratch(x, k->count, v);
  if (k->reduction->inner > 1) return list_columns(x, s, store, from, to);
  list_code c = {.inst = {.data = vm->sums[store].fold, .of = k, .fn = list_run_fold_rows}, .n_in = 1, .out = to};
  if (k->reduction->outer == 1) c.inst.fn = list_run_fold, c.inst.n = k->count;
  if (x->left && cpu_native_way_of(x->left) == CPU_NATIVE_LANES && cpu_native_lanes(x->left) < k->count)
    c.inst.n = cpu_native_lanes(x->left);
  c.in[0] = *from;
  c.native = x->left;
  *from = to;
  return list_emit(x, &c);
}

/* The initial value in as many lanes as there are results. */
static bool list_initial(list_make *x, const plan_step *s, uint32_t store, list_cell *out) {
  const kernel *k = s->kernel;
  const kernel_value *v = &k->values[k->stores[store].init];
  int64_t n = k->reduction->outer * k->reduction->inner;
  list_code c = {.inst = {.n = n, .data = v, .fn = list_run_fill}, .n_in = 1};
  c.in[0] = (list_cell){.area = LIST_FIXED, .fixed = v->data};
  if (v->kind == KERNEL_LOAD) {
    int64_t offset = v->index->offset * (int64_t)base_dtype_bytes((base_dtype)v->dtype);
    c.in[0] = (list_cell){.area = LIST_BUFFER, .at = s->in[v->buffer], .offset = offset};
  }
  *out = c.in[0];
  if (n == 1) return true;
  c.out = *out = list_new_scratch(x, n, v);
  return list_emit(x, &c);
}

/* Partial results of all stores that reduce, and their initial values. */
typedef struct list_partial {
  list_cell of[KERNEL_MAX_STORES][2];
} list_partial;

/* where: by value, or of what code left by store. */
static bool list_reduce_all(list_make *x, const plan_step *s, const list_cell *where, list_partial *p) {
  const kernel *k = s->kernel;
  for (uint32_t i = 0; k->reduction && i < k->n_stores; i++) {
    if (!k->stores[i].by) continue;
    p->of[i][0] = x->left ? where[i] : where[k->stores[i].value];
    if (!list_reduce(x, s, i, &p->of[i][0]) || !list_initial(x, s, i, &p->of[i][1])) return false;
  }
  return true;
}

/* The results: last of all, since they may be the memory of an input. */
static bool list_deliver(list_make *x, const plan_step *s, const list_partial *p) {
  const kernel *k = s->kernel;
  for (uint32_t i = 0; k->reduction && i < k->n_stores; i++) {
    list_cell out = {.area = LIST_BUFFER, .at = s->out[k->stores[i].buffer]};
    int64_t n = k->reduction->outer * k->reduction->inner;
    if (k->stores[i].by && !list_combine(x, i, p->of[i], n, out)) return false;
  }
  return true;
}

/* Whether a store's values are combined by instructions. */
static bool list_can_reduce(const kernel *k, const cpu_vm *vm, uint32_t store) {
  const kernel_store *s = &k->stores[store];
  const kernel_value *v = &k->values[s->value], *init = &k->values[s->init];
  const kernel_reduction *red = k->reduction;
  bool same = vm->sums[store].type == v->dtype && vm->insts[s->value].lane == v->dtype;
  if (!same || init->dtype != v->dtype || vm->insts[s->init].lane != v->dtype || v->kind == KERNEL_CONSTANT)
    return false;
  if (init->kind != KERNEL_CONSTANT &&
      (init->kind != KERNEL_LOAD || init->n_in || init->box || !kernel_is_constant(k, init->index)))
    return false;
  if (red->inner > 1) return red->outer == 1;
  if (!vm->sums[store].fold || base_dtype_bytes((base_dtype)v->dtype) > 8) return false;
  return red->outer == 1 ? k->rank == 1 && k->count <= vm->lanes : red->reduced < CPU_VM_SHORT_RUN;
}

/* A small reduction in a loop. */
static bool list_is_reduction(const list_make *x, const plan_step *s) {
  if (!x->body || s->kind != PLAN_KERNEL || !s->kernel->reduction) return false;
  const kernel *k = s->kernel;
  const cpu_vm *vm = x->code->steps[x->step];
  if (k->reduction->reduced == 0 || vm->cut.pieces != 1 || vm->scanning) return false;
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (k->stores[i].by && !list_can_reduce(k, vm, i)) return false;
  return true;
}

/* All of a small kernel: its values in order, then the stores that no value was computed into. */
static bool list_kernel(list_make *x, const plan_step *s) {
  const kernel *k = s->kernel;
  const kernel_store *direct = list_direct(k);
  assert(k->n_values <= LIST_MAX_VALUES);
  list_cell where[LIST_MAX_VALUES];
  list_partial partial;
  memset(where, 0, sizeof where);
  x->scratch = 0;
  x->left = NULL;
  x->last = UINT32_MAX;
  list_count_uses(x, k);
  x->work += (uint64_t)k->count / 16 + 1;
  for (uint32_t i = 0; i < k->n_values; i++)
    if (!list_value(x, s, i, where)) return false;
  x->last = UINT32_MAX;
  if (!list_reduce_all(x, s, where, &partial)) return false;
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (&k->stores[i] != direct && !k->stores[i].by && !list_store(x, s, &k->stores[i], where)) return false;
  return list_deliver(x, s, &partial);
}

/* Whether the machine code of the present step, a reduction, combines values itself, more than one result's. */
static bool list_has_own_way(const list_make *x) {
  const cpu_native_kernel *n = ((const cpu_vm *)x->code->steps[x->step])->native;
  return n && !cpu_native_call_bytes(n);
}

/* Kernels whose values all fit into little memory, and that need nothing which only the VM can do. */
static bool list_is_small(const list_make *x, const plan_step *s) {
  if (s->kind != PLAN_KERNEL) return false;
  const kernel *k = s->kernel;
  if (k->reduction && (!list_is_reduction(x, s) || list_has_own_way(x))) return false;
  if (k->count < 1 || k->count > LIST_MAX_LANES || k->n_values > LIST_MAX_VALUES) return false;
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (!k->stores[i].by && !kernel_is_dense(k, &k->stores[i].index)) return false;
  for (uint32_t i = 0; i < k->n_values; i++)
    if (k->values[i].kind == KERNEL_PICK || k->values[i].kind == KERNEL_SCAN ||
        (k->values[i].kind == KERNEL_LOAD && k->values[i].n_in > 2))
      return false;
  uint64_t bytes = 0, fixed = x->fixed;
  for (uint32_t i = 0; k->reduction && i < k->n_stores; i++)
    bytes += 2 * list_room(k->count, &k->values[k->stores[i].value]);
  for (uint32_t i = 0; i < k->n_values; i++) {
    uint32_t room = list_room(k->count, &k->values[i]);
    if (x->body && (k->values[i].kind == KERNEL_CONSTANT || k->values[i].kind == KERNEL_COUNT_UP))
      fixed += k->count > 1 || k->values[i].kind == KERNEL_COUNT_UP ? room : 0;
    else
      bytes += room;
  }
  return bytes <= LIST_MAX_BYTES && fixed <= LIST_MAX_FIXED;
}

/* Whether it is better off as machine code: a call of it instead of a call an op. */
static bool list_is_code(const list_make *x, const plan_step *s) {
  if (s->kind != PLAN_KERNEL || s->kernel->count <= 1 || s->n_in > LIST_CODE_INPUTS) return false;
  if (s->kernel->reduction && (!list_is_reduction(x, s) || list_has_own_way(x))) return false;
  const kernel *k = s->kernel;
  const cpu_vm *vm = x->code->steps[x->step];
  int64_t ops = 0;
  for (uint32_t i = 0; i < k->n_values; i++) {
    if (k->values[i].kind == KERNEL_SCAN) return false;
    ops += k->values[i].kind == KERNEL_OP || k->values[i].kind == KERNEL_PICK;
  }
  return vm->native && !vm->scalar && k->count <= LIST_MAX_LANES && ops * k->count >= LIST_CODE_WORK;
}

static bool list_code_of(list_make *x, const plan_step *s) {
  const kernel *k = s->kernel;
  const cpu_vm *vm = x->code->steps[x->step];
  list_code c = {.inst = {.fn = list_run_code, .data = s}, .n_in = 3, .native = vm->native, .call = x->calls};
  list_cell sums[KERNEL_MAX_STORES];
  list_partial partial;
  c.in[0].area = c.in[2].area = c.out.area = LIST_POINTERS;
  c.in[1] = (list_cell){.area = LIST_FIXED, .fixed = vm};
  if (k->reduction) c.in[2] = (list_cell){.area = LIST_SCRATCH};
  x->scratch = 0;
  x->left = vm->native;
  for (uint32_t i = 0; k->reduction && i < k->n_stores; i++)
    if (k->stores[i].by) sums[i] = list_take_scratch(x, list_sum_room(k, &k->stores[i]));
  x->calls += (uint32_t)(cpu_native_call_bytes(vm->native) + 15) & ~15u;
  x->last = UINT32_MAX;
  x->work += (uint64_t)k->count / 16 + 1;
  return list_emit(x, &c) && list_reduce_all(x, s, sums, &partial) && list_deliver(x, s, &partial);
}

/* Ends the present part with the step or the group that follows its instructions; both NULL at the program's end. */
static bool list_end_part(list_make *x, const plan_step *s, const cpu_group *g) {
  if (x->codes.n > x->first && !list_emit(x, &(list_code){.inst = {.code = LIST_END}})) return false;
  list_part part = {.first = x->first, .n = x->codes.n - x->first, .step = s, .group = g};
  part.at = x->at;
  part.n_steps = x->step - x->at;
  x->at = x->step + (g ? cpu_group_steps(g) : 1);
  x->first = x->codes.n;
  return (part.n == 0 && !s && !g) || BASE_VEC_PUSH(x->alloc, &x->parts, part);
}

/* Whether two buffers begin at the same place. */
static bool list_same_memory(const plan_program *p, uint32_t a, uint32_t b) {
  const plan_buffer *x = &p->buffers[a], *y = &p->buffers[b];
  return a == b || (x->place == y->place && x->number == y->number && x->offset == y->offset);
}

/* A row that a loop takes out of an array, or puts into one where it is: `x[i]` of a scan over the leading
 * dimension, and its result `y[i]`. *done is false where s is no such step. */
static bool list_row(list_make *x, const plan_program *p, const plan_step *s, bool *done) {
  cpu_dynamic_row row;
  *done = false;
  if (s->kind != PLAN_ROUTINE || !cpu_dynamic_row_of(x->exe, s, &row) || row.bytes > LIST_MAX_BYTES) return true;
  bool update = s->op->opcode == IR_OP_DYNAMIC_UPDATE_SLICE;
  if (update && !list_same_memory(p, s->in[0], s->out[0])) return true;
  *done = true;
  list_code c = {.inst = {.fn = update ? list_run_update : list_run_slice}, .n_in = 2};
  c.in[0] = (list_cell){.area = LIST_BUFFER, .at = s->in[update]};
  c.in[1] = (list_cell){.area = LIST_BUFFER, .at = s->in[row.operand]};
  c.out = (list_cell){.area = LIST_BUFFER, .at = s->out[0]};
  c.inst.data = base_arena_memdup(x->arena, &row, sizeof row);
  x->last = UINT32_MAX;
  x->work += (uint64_t)row.bytes / 64 + 1;
  return c.inst.data && list_emit(x, &c);
}

/* Instructions where the step is small, else a part that ends with it. */
static bool list_step(list_make *x, const plan_program *p, const plan_step *s) {
  bool done = false;
  if (x->body && !list_row(x, p, s, &done)) return false;
  if (done) return true;
  if (x->body && list_is_code(x, s)) return list_code_of(x, s);
  if (s->kind != PLAN_COPY || p->buffers[s->in[0]].bytes > LIST_MAX_BYTES)
    return list_is_small(x, s) ? list_kernel(x, s) : list_end_part(x, s, NULL);
  list_cell from = {.area = LIST_BUFFER, .at = s->in[0]}, to = {.area = LIST_BUFFER, .at = s->out[0]};
  return list_copy(x, &from, to, p->buffers[s->in[0]].bytes);
}

/* Groups come first: a kernel that could be a list of instructions may still be better off as a part of one. */
static bool list_program(list_make *x, const plan_program *p) {
  for (uint32_t i = 0; i < p->n_steps; i++) {
    const cpu_group *g = NULL;
    const plan_tile *t = plan_tile_at(p, i);
    x->step = i;
    if (t && cpu_group_make(p, x->code, t, x->arena, &g, NULL)) return false;
    if (!(g ? list_end_part(x, NULL, g) : list_step(x, p, &p->steps[i]))) return false;
    if (g) i += cpu_group_steps(g) - 1;
  }
  x->step = p->n_steps;
  return list_end_part(x, NULL, NULL);
}

/* The list as it stays. */
static bool list_finish(list_make *x, cpu_list *l) {
  list_code *codes = BASE_ARRAY(x->arena, list_code, (size_t)x->codes.n + 1);
  list_part *parts = base_arena_memdup(x->arena, x->parts.items, x->parts.n * sizeof *parts);
  if (!codes || !parts) return false;
  if (x->codes.n) memcpy(codes, x->codes.items, x->codes.n * sizeof *codes);
  *l = (cpu_list){.n_codes = x->codes.n, .codes = codes, .n_parts = x->parts.n, .parts = parts};
  l->scratch_bytes = x->scratch_most, l->call_bytes = x->calls;
  l->work = x->work + 1;
  return true;
}

/* *out is set in any case; after a failure it lies unused in the arena. */
int cpu_list_make(cpu_executable *exe, const plan_program *p, bool body, const cpu_list **out, xlac_error *err) {
  base_arena *arena = &exe->arena;
  list_make x = {.alloc = arena->alloc, .exe = exe, .code = cpu_code_of(exe, p), .arena = arena, .body = body};
  cpu_list *l = BASE_NEW(arena, cpu_list);
  bool ok = l && list_program(&x, p) && list_finish(&x, l);
  BASE_VEC_FREE(x.alloc, &x.codes);
  BASE_VEC_FREE(x.alloc, &x.parts);
  *out = l;
  return ok ? 0 : base_oom(err, "a program");
}
