/* Calls with arguments as they lie. */
#include "api.h"
#include "leaf.h"
#include "variant.h"

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

/* The lowest address of an array with strides. */
static void *at_lowest(const xlac_argument *a, const ir_type *t) {
  char *low = a->data;
  for (uint32_t d = 0; d < t->rank; d++)
    if (a->strides[d] < 0) low += (t->dims[d] - 1) * a->strides[d];
  return low;
}

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
