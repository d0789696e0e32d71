/* The arguments of one call as buffers, each lent or donated.
 *
 * An xlac_input collects buffers leaf by leaf, then runs once. Lent buffers are opened as views, so nobody
 * can take them while they are held; donated ones are taken at once, and given back if the run never
 * begins. Leaves are numbered depth first over all parameters. */
#include "../plan/plan.h"
#include "api.h"
#include "leaf.h"
#include "variant.h"

typedef struct input_leaf {
  xlac_buffer *buffer; /* a reference; NULL: not given yet */
  bool given;
  xlac_memory memory; /* of what is donated */
  xlac_buffer *moved; /* a copy that the program can read, where it can't read the buffer's memory; or NULL */
} input_leaf;

/* Of one thread at a time. */
struct xlac_input {
  const xlac_executable *exe;
  uint32_t n;
  input_leaf leaves[];
};

/* The executable must outlive it. */
int xlac_input_create(xlac_input **out, const xlac_executable *exe, xlac_error *err) {
  assert(out && exe);
  const plan_program *p = api_executable_plan(exe);
  if (p->interpreted)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "the interpreter runs this program whole, on values, since %s", p->why);
  size_t size = sizeof(xlac_input) + p->n_arguments * sizeof(input_leaf);
  xlac_input *in = base_malloc(base_alloc_libc, size);
  if (!in) return base_oom(err, "the arguments of a call");
  memset(in, 0, size);
  in->exe = exe;
  in->n = p->n_arguments;
  *out = in;
  return 0;
}

/* Undoes a lend or a donation; after a run only borrowed leaves are left to drop. */
static void input_drop(input_leaf *l) {
  if (!l->buffer) return;
  if (l->given)
    xlac_buffer_give_back(l->buffer);
  else
    xlac_buffer_close(l->buffer);
  xlac_buffer_release(l->buffer);
  xlac_buffer_release(l->moved);
  *l = (input_leaf){NULL, false, {NULL, NULL, NULL}, NULL};
}

void xlac_input_destroy(xlac_input *in) {
  if (!in) return;
  for (uint32_t i = 0; i < in->n; i++) input_drop(&in->leaves[i]);
  base_free(base_alloc_libc, in);
}

/* The leaf's type, where b is such an array and the leaf is free. Dimensions must match exactly; strides
 * are free, since runs take arguments as stored. */
static int input_check(const xlac_input *in, uint32_t leaf, xlac_buffer *b, xlac_error *err) {
  const ir_type *t = leaf < in->n ? api_argument_type(in->exe, leaf) : NULL;
  xlac_buffer_info info;
  if (!t) return base_fail(err, XLAC_E_BAD_ARGUMENT, "argument %u is given; the program has %u", leaf, in->n);
  if (in->leaves[leaf].buffer) return base_fail(err, XLAC_E_BAD_ARGUMENT, "argument %u is given twice", leaf);
  xlac_buffer_get(b, &info);
  if (!ir_is_tensor(t) || info.dtype != t->dtype)
    return base_fail(err, XLAC_E_ARGUMENT_TYPE, "argument %u has elements of type %s, which are not the parameter's",
                     leaf, xlac_dtype_text(info.dtype));
  bool same = info.rank == t->rank;
  for (uint32_t d = 0; d < t->rank && same; d++) same = info.dims[d] == t->dims[d];
  if (!same) return base_fail(err, XLAC_E_ARGUMENT_SHAPE, "argument %u has not the parameter's dimensions", leaf);
  return 0;
}

/* Holds two references: the view's, and its own for the drop. */
int xlac_input_lend(xlac_input *in, uint32_t leaf, xlac_buffer *b, xlac_error *err) {
  TRY(input_check(in, leaf, b, err));
  TRY(xlac_buffer_open(b, err));
  in->leaves[leaf].buffer = xlac_buffer_retain(b);
  return 0;
}

/* Fails without taking anything where the memory can't serve as a result: results are dense. Whether a
 * result wants it, the plan has decided; if none does, the memory is released after the run. */
int xlac_input_donate(xlac_input *in, uint32_t leaf, xlac_buffer *b, xlac_error *err) {
  xlac_buffer_info info;
  TRY(input_check(in, leaf, b, err));
  xlac_buffer_get(b, &info);
  if (!info.deleted && !(info.dense && info.aligned))
    return base_fail(err, XLAC_E_DONATION_UNUSABLE,
                     "argument %u can't be donated: layout: it is not contiguous and aligned", leaf);
  if (info.device && info.device != xlac_executable_memory(in->exe))
    return base_fail(err, XLAC_E_DONATION_UNUSABLE,
                     "argument %u can't be donated: it lies in memory of another device than the program's", leaf);
  TRY(xlac_buffer_take(b, &in->leaves[leaf].memory, err));
  in->leaves[leaf].buffer = xlac_buffer_retain(b);
  in->leaves[leaf].given = true;
  return 0;
}

/* --- running --- */

typedef struct input_run {
  xlac_input *in;
  const plan_program *p;
  xlac_argument *arguments;
  void **results;
  xlac_buffer **buffers; /* of the results */
} input_run;

/* A buffer for result i: on the memory of an argument that is given to it, which it then owns, or a new
 * one. over[i], the argument whose memory result i lies in, is UINT32_MAX where it has its own. The buffer
 * borrows at first: if preparing fails, the argument is given back and must still own its memory. */
static int input_result(input_run *x, uint32_t i, xlac_error *err) {
  assert(i < x->p->n_results);
  const ir_type *t = api_result_type(x->in->exe, i);
  uint32_t from = x->p->over ? x->p->over[i] : UINT32_MAX;
  xlac_counters *counters = api_executable_counters(x->in->exe);
  xlac_buffer_info info;
  if (!ir_is_tensor(t)) return 0;
  if (from != UINT32_MAX && x->in->leaves[from].given) {
    xlac_buffer_get(x->in->leaves[from].buffer, &info);
    xlac_layout layout = {.dtype = t->dtype, .rank = t->rank, .dims = t->dims, .device = info.device};
    const xlac_memory borrowed = {x->in->leaves[from].memory.data, NULL, NULL};
    TRY(xlac_buffer_wrap(&x->buffers[i], counters, &layout, &borrowed, err));
  } else if (xlac_executable_memory(x->in->exe)) {
    TRY(xlac_buffer_create_on(&x->buffers[i], xlac_executable_memory(x->in->exe), counters, t->dtype, t->rank, t->dims,
                              err));
  } else {
    xlac_runtime *rt = api_executable_runtime(x->in->exe);
    TRY(xlac_buffer_create(&x->buffers[i], rt, counters, t->dtype, t->rank, t->dims, err));
  }
  xlac_buffer_get(x->buffers[i], &info);
  x->results[i] = info.data;
  return 0;
}

/* A lent buffer in memory that the program can't read, or can't read in strides, is copied to where it can. */
static int input_reach(input_run *x, input_leaf *l, xlac_buffer_info *info, xlac_error *err) {
  const xlac_device *own = xlac_executable_memory(x->in->exe);
  if (!info->device || (info->device == own && info->dense && info->aligned)) return 0;
  assert(!l->given && !l->moved);
  TRY(xlac_buffer_copy_on(&l->moved, own, api_executable_runtime(x->in->exe), l->buffer, err));
  xlac_buffer_get(l->moved, info);
  return 0;
}

/* Leaves that are tokens need no buffer. */
static int input_prepare(input_run *x, xlac_error *err) {
  for (uint32_t i = 0; i < x->in->n; i++) {
    input_leaf *l = &x->in->leaves[i];
    xlac_buffer_info info;
    if (!l->buffer && ir_is_tensor(api_argument_type(x->in->exe, i)))
      return base_fail(err, XLAC_E_ARGUMENT_COUNT, "argument %u is missing", i);
    if (!l->buffer) continue;
    xlac_buffer_get(l->buffer, &info);
    if (!l->given) TRY(input_reach(x, l, &info, err));
    if (l->given)
      x->arguments[i] = (xlac_argument){l->memory.data, NULL, true};
    else
      x->arguments[i] = (xlac_argument){info.data, info.dense && info.aligned ? NULL : info.strides, false};
  }
  for (uint32_t i = 0; i < x->p->n_results; i++) TRY(input_result(x, i, err));
  return 0;
}

/* The run has begun: results own what was given to them, and the rest is released. Also after a run that
 * failed: it may have written over what was donated, so that is gone in any case. */
static void input_settle(input_run *x) {
  for (uint32_t i = 0; i < x->p->n_results; i++) {
    uint32_t from = x->p->over ? x->p->over[i] : UINT32_MAX;
    if (!x->buffers[i] || from == UINT32_MAX || !x->in->leaves[from].given) continue;
    api_buffer_own(x->buffers[i], &x->in->leaves[from].memory);
    x->in->leaves[from].memory.release = NULL;
  }
  for (uint32_t i = 0; i < x->in->n; i++) {
    input_leaf *l = &x->in->leaves[i];
    if (!l->given) continue;
    if (l->memory.release) l->memory.release(l->memory.ctx);
    xlac_buffer_taken_by(l->buffer, "it was donated to a run");
    xlac_buffer_release(l->buffer);
    *l = (input_leaf){NULL, false, {NULL, NULL, NULL}, NULL};
  }
}

/* Before the call nothing has been changed that input_drop does not undo. */
static int input_run_all(input_run *x, const xlac_interpret_options *options, xlac_error *err) {
  TRY(input_prepare(x, err));
  int status = xlac_executable_call_at(x->in->exe, options, x->arguments, x->results, err);
  input_settle(x);
  return status;
}

/* One allocation for three lists: arguments, result pointers, result buffers. The input is empty
 * afterwards, whatever happened, and can be filled again. */
int xlac_executable_run_input(const xlac_executable *exe, const xlac_interpret_options *given, xlac_input *in,
                              xlac_buffer **results, xlac_error *err) {
  const plan_program *p = api_executable_plan(exe);
  input_run x = {.in = in, .p = p};
  xlac_interpret_options options;
  TRY(api_read_interpret_options(&options, given, err)); /* before anything is taken */
  if (in->exe != exe) return base_fail(err, XLAC_E_BAD_ARGUMENT, "these arguments were made for another program");
  size_t n = in->n * sizeof *x.arguments + p->n_results * (sizeof *x.results + sizeof *x.buffers);
  x.arguments = base_malloc(base_alloc_libc, n + 1);
  if (!x.arguments) return base_oom(err, "a call");
  memset(x.arguments, 0, n + 1);
  x.results = (void **)(void *)(x.arguments + in->n);
  x.buffers = (xlac_buffer **)(void *)(x.results + p->n_results);
  int status = input_run_all(&x, &options, err);
  for (uint32_t i = 0; i < p->n_results; i++) {
    if (status == 0)
      results[i] = x.buffers[i];
    else
      xlac_buffer_release(x.buffers[i]);
  }
  for (uint32_t i = 0; i < in->n; i++) input_drop(&in->leaves[i]);
  base_free(base_alloc_libc, x.arguments);
  return status;
}

/* --- Calls with arguments as stored. --- */

typedef struct at_run {
  const xlac_executable *exe;
  const xlac_argument *arguments;
  uint32_t n;
  void **pointers;
  xlac_buffer **copies; /* dense ones, where needed */
  bool *packed;
} at_run;

/* The type of leaf `leaf` of t; *leaf counts down. Depth is that of a type, which is bounded. */
static const ir_type *at_type(const ir_type *t, uint32_t *leaf) {
  if (!ir_is_tuple(t)) return (*leaf)-- == 0 ? t : NULL;
  for (uint32_t i = 0; i < t->n_elements; i++) {
    const ir_type *found = at_type(t->elements[i], leaf);
    if (found) return found;
  }
  return NULL;
}

const ir_type *api_argument_type(const xlac_executable *exe, uint32_t leaf) {
  const ir_computation *entry = api_executable_rt(exe)->module->entry;
  const ir_type *t = NULL;
  for (uint32_t i = 0; i < entry->n_params && !t; i++) t = at_type(entry->params[i]->type, &leaf);
  return t;
}

const ir_type *api_result_type(const xlac_executable *exe, uint32_t leaf) {
  return at_type(ir_root(api_executable_rt(exe)->module->entry)->type, &leaf);
}

/* The plan wants it dense, or can't take such strides: copied into memory of the runtime, and counted. */
static int at_pack(at_run *x, uint32_t i, const ir_type *t, xlac_error *err) {
  xlac_layout layout = {
      .dtype = t->dtype, .rank = t->rank, .dims = t->dims, .strides = x->arguments[i].strides, .readonly = true};
  xlac_memory memory = {x->arguments[i].data, NULL, NULL};
  xlac_buffer *lent = NULL;
  xlac_buffer_info info;
  xlac_runtime *rt = api_executable_runtime(x->exe);
  TRY(xlac_buffer_wrap(&lent, NULL, &layout, &memory, err));
  int status = xlac_buffer_copy(&x->copies[i], rt, lent, err);
  xlac_buffer_release(lent);
  if (status) return status;
  xlac_buffer_get(x->copies[i], &info);
  x->pointers[i] = info.data;
  xlac_counters_add(api_executable_counters(x->exe), XLAC_COUNT_COPIES_IN, 1);
  xlac_counters_add(api_executable_counters(x->exe), XLAC_COUNT_BYTES_COPIED_IN, (int64_t)info.bytes);
  return 0;
}

/* The lowest address of an array with strides. The plan sees dense memory
 * that begins there, and reverses the dimensions that run backwards (plan/strided.c). */
static void *at_lowest(const xlac_argument *a, const ir_type *t) {
  assert(a->strides);
  char *low = a->data;
  for (uint32_t d = 0; d < t->rank; d++)
    if (a->strides[d] < 0) low += (t->dims[d] - 1) * a->strides[d];
  return low;
}

/* Which plan serves is decided first, from strides and donations alone: variant.c. */
static int at_call(at_run *x, const xlac_interpret_options *options, void *const *results, xlac_error *err) {
  const rt_executable *variant = api_variant_of(x->exe, x->arguments, x->packed);
  rt_call_options inner;
  TRY(api_read_call_options(&inner, options, err));
  for (uint32_t i = 0; i < x->n; i++) {
    x->pointers[i] = x->arguments[i].data;
    if (!x->arguments[i].strides) continue;
    const ir_type *t = api_argument_type(x->exe, i);
    if (x->packed[i])
      TRY(at_pack(x, i, t, err));
    else
      x->pointers[i] = at_lowest(&x->arguments[i], t);
  }
  return rt_call(variant, &inner, x->pointers, results, err);
}

/* Arguments in strides where they have some; results dense. Nothing is taken: what `given` says of an
 * argument is a promise that its memory may be written over. */
int xlac_executable_call_at(const xlac_executable *exe, const xlac_interpret_options *options,
                            const xlac_argument *arguments, void *const *results, xlac_error *err) {
  const plan_program *p = api_executable_plan(exe);
  at_run x = {.exe = exe, .arguments = arguments, .n = p->n_arguments};
  if (p->interpreted)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "the interpreter runs this program whole, on values, since %s", p->why);
  size_t each = sizeof *x.pointers + sizeof *x.copies + sizeof *x.packed, size = (x.n + 1u) * each;
  if (!(x.pointers = base_malloc(base_alloc_libc, size))) return base_oom(err, "a call");
  memset(x.pointers, 0, size);
  x.copies = (xlac_buffer **)(void *)(x.pointers + x.n + 1);
  x.packed = (bool *)(x.copies + x.n + 1);
  int status = at_call(&x, options, results, err);
  for (uint32_t i = 0; i < x.n; i++) xlac_buffer_release(x.copies[i]);
  base_free(base_alloc_libc, x.pointers);
  return status;
}
