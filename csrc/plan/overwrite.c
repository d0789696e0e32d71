/* Whether a step may write a result over one of its inputs. */
#include "borrow.h"

/* Whether an operand of v is the input itself. A sum of products reads these when the other stores have been made. */
static bool overwrite_reads(const kernel *k, const kernel_value *v, uint32_t input) {
  for (uint32_t j = 0; v->kind == KERNEL_OP && j < v->n_in; j++) {
    const kernel_value *from = &k->values[v->in[j]];
    if (from->kind == KERNEL_PICK || (from->kind == KERNEL_LOAD && from->buffer == input)) return true;
  }
  return false;
}

/* What the kernel reads of input `input` for an iteration is the element of that number, which has so many bytes. Of a
 * block of iterations all is computed before anything is stored, so that only what is stored as it was loaded must not
 * be written over before. Arrays of as many bytes need not have as many elements: a load may be there in some
 * iterations only. */
static bool overwrite_loads_same(const kernel *k, uint32_t input, size_t bytes) {
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    bool same = v->kind != KERNEL_LOAD || v->buffer != input ||
                (v->index->offset == 0 && v->n_in == 0 && base_dtype_bytes((base_dtype)v->dtype) == bytes &&
                 kernel_is_dense(k, v->index));
    if (!same) return false;
  }
  for (uint32_t i = 0; k->n_stores > 1 && i < k->n_stores; i++) {
    const kernel_value *v = &k->values[k->stores[i].value];
    if (v->kind == KERNEL_PICK || (v->kind == KERNEL_LOAD && v->buffer == input)) return false;
    if (k->stores[i].by && overwrite_reads(k, v, input)) return false;
  }
  return true;
}

/* The bytes of the output's elements, where that of an iteration is the one of that number; else 0. */
static size_t overwrite_stores_same(const kernel *k, uint32_t output) {
  for (uint32_t i = 0; i < k->n_stores; i++) {
    const kernel_store *s = &k->stores[i];
    if (s->buffer != output) continue;
    bool same = !s->by && s->index.offset == 0 && kernel_is_dense(k, &s->index);
    return same ? base_dtype_bytes((base_dtype)k->values[s->value].dtype) : 0;
  }
  return 0;
}

static bool overwrite_by_elements(const plan_step *s, uint32_t in, uint32_t out) {
  size_t bytes = overwrite_stores_same(s->kernel, out);
  for (uint32_t i = 0; i < s->n_in && bytes; i++)
    if (s->in[i] == s->in[in] && !overwrite_loads_same(s->kernel, i, bytes)) return false;
  return bytes > 0;
}

/* Whether each program that gets the buffer may compute its result `out` over it, and has it under no other name. */
static bool overwrite_passes_on(const plan_step *s, uint32_t buffer, uint32_t out) {
  uint32_t first = s->kind == PLAN_CONDITIONAL;
  if (first && s->in[0] == buffer) return false;
  for (uint32_t n = 0; n < s->n_nested; n++) {
    const plan_program *p = s->nested[n];
    uint32_t times = 0, at = 0;
    for (uint32_t i = 0; i < p->n_arguments; i++)
      if (s->in[first + i] == buffer) times++, at = i;
    if (times > 1 || (times && (!p->over || p->over[out] != at))) return false;
    first += p->n_arguments;
  }
  return true;
}

/* Whether output number `out` may lie over input number `in`, which is `seen` times among the inputs. Whether the
 * step allows it, whatever the buffers' lives; `in` and `out` are numbers among the step's. */
bool plan_may_overwrite_input(const plan_step *s, const plan_buffer *buffers, uint32_t in, uint32_t out,
                              uint32_t seen) {
  assert(in < s->n_in && out < s->n_out);
  const plan_buffer *from = &buffers[s->in[in]], *to = &buffers[s->out[out]];
  if (from->bytes != to->bytes || from->bytes == 0) return false;
  switch ((plan_step_kind)s->kind) {
    case PLAN_KERNEL:
      return overwrite_by_elements(s, in, out);
    case PLAN_WHILE:
      return in == out && seen == 1;
    case PLAN_ROUTINE:
      return in == out && in < 64 && seen == 1 && (s->routine->in_place >> in & 1);
    case PLAN_START:
      return s->chain->over && s->chain->over[out] == in && seen == 1;
    case PLAN_CALL:
    case PLAN_CONDITIONAL:
      return overwrite_passes_on(s, s->in[in], out);
    default:
      return false;
  }
}

/* A buffer may be several inputs at once; the one at out's own number is preferred. */
bool plan_may_overwrite(const plan_step *s, const plan_buffer *buffers, uint32_t in, uint32_t out) {
  assert(s && buffers);
  uint32_t seen = 0, at = UINT32_MAX;
  for (uint32_t i = 0; i < s->n_in; i++) {
    if (s->in[i] != in) continue;
    if (i < s->n_out && s->out[i] == out) at = i;
    if (at == UINT32_MAX) at = i;
    seen++;
  }
  for (uint32_t j = 0; j < s->n_out; j++)
    if (s->out[j] == out) return at != UINT32_MAX && plan_may_overwrite_input(s, buffers, at, j, seen);
  return false;
}
