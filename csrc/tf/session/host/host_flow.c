/* Host ops that pass values on: inputs, constants, identities, the first control flow, checks. */
#include <math.h>
#include <stdio.h>

#include "../../lower/tensor.h"
#include "../run.h"

/* A feed takes the place of the node, so one that runs was not fed. */
int tfs_host_placeholder(tfs_call *c) {
  return base_hint(c->err, tfs_fail(c, XLAC_E_ARGUMENT_COUNT, "it needs a value: nothing feeds it"),
                   "add '%.100s' to feeds", c->node->name->s);
}

/* NoOp and the like: only their order counts. */
int tfs_host_nothing(tfs_call *c) {
  (void)c;
  return 0;
}

/* Moves input i to output k; what is a reference there and no reference here is read. Moving instead of keeping
 * leaves one holder, so that what comes next may write in place. */
static int tfs_move(tfs_call *c, uint32_t i, uint32_t k) {
  assert(i < c->n_in && k < c->n_out);
  bool reference = tfs_is_object(&c->in[i], TFS_VARIABLE) && tf_input_type(c->node, i) != TF_RESOURCE;
  if (!reference || tf_output_type(c->node, k) >= TF_REF) {
    c->out[k] = c->in[i];
    c->in[i].kind = TFS_NONE;
    return 0;
  }
  interp_value *v = NULL;
  TRY(tfs_tensor_in(c, i, &v));
  c->out[k] = tfs_of_tensor(interp_retain(v));
  return 0;
}

/* As many outputs as inputs, or fewer. */
int tfs_host_same(tfs_call *c) {
  for (uint32_t i = 0; i < c->n_out && i < c->n_in; i++) TRY(tfs_move(c, i, i));
  return 0;
}

/* The first input alone: what else there is only orders. */
int tfs_host_pass(tfs_call *c) {
  return tfs_move(c, 0, 0);
}

/* --- constants --- */

/* Field 8 of a TensorProto: strings; fewer than the shape has are repeated. *out is set as soon as there is
 * something to drop. */
static int tfs_read_strings(tfs_call *c, base_slice message, tfs_object **out) {
  tf_raw_field shape;
  tfs_object *o = tfs_object_new(c->alloc, TFS_STRINGS);
  int64_t count = 1;
  bool known = true;
  size_t bytes = 0, n = 0;
  if (!o) return tfs_oom(c);
  *out = o;
  if (tf_raw_find(message, 2, &shape)) TRY(tfl_read_shape(shape.bytes, &known, &o->rank, o->dims, c->err));
  TRY(tfs_check_dims(c, o->rank, o->dims));
  for (uint32_t d = 0; d < o->rank; d++) count *= o->dims[d];
  const char *at = message.p, *end = message.p + message.n;
  for (tf_raw_field f; tf_raw_next(&at, end, &f);)
    if (f.number == 8 && f.wire == 2) bytes += f.bytes.n, n++;
  if (!known || count > INT32_MAX) return tfs_fail(c, XLAC_E_BAD_ATTRIBUTE, "its strings have no shape");
  o->n_strings = count;
  o->strings = base_malloc(c->alloc, (size_t)(count + 1) * sizeof *o->strings + bytes);
  if (!o->strings) return tfs_oom(c);
  char *to = (char *)(o->strings + count);
  int64_t k = 0;
  at = message.p;
  for (tf_raw_field f; k < count && tf_raw_next(&at, end, &f);) {
    if (f.number != 8 || f.wire != 2) continue;
    if (f.bytes.n) memcpy(to, f.bytes.p, f.bytes.n);
    o->strings[k++] = (base_slice){to, f.bytes.n};
    to += f.bytes.n;
  }
  base_slice last = k ? o->strings[k - 1] : (base_slice){"", 0};
  for (; k < count; k++) o->strings[k] = last;
  return 0;
}

/* All ways that a TensorProto has to write them (tfl_read_tensor). */
static int tfs_read_numbers(tfs_call *c, base_slice message, tfs_value *out) {
  base_arena arena;
  tfl_shape shape;
  void *data = NULL;
  base_arena_init(&arena, c->alloc);
  int status = tfl_read_tensor(message, &arena, &shape, &data, c->err);
  if (status == 0) {
    interp_value *v = tfs_new_tensor(c->alloc, shape.dtype, shape.rank, shape.dims);
    if (!v) status = tfs_oom(c);
    if (v && v->count) memcpy(v->data, data, interp_bytes(v));
    if (v) *out = tfs_of_tensor(v);
  }
  base_arena_free(&arena);
  return status;
}

/* Read once and kept by the unit: loops meet their constants again and again. */
int tfs_host_const(tfs_call *c) {
  tfs_value *known = &c->unit->constant;
  base_slice message;
  if (known->kind == TFS_NONE) {
    if (!tf_attr_tensor(tf_attr_find(c->node->def->attrs, "value"), &message))
      return tfs_fail(c, XLAC_E_BAD_ATTRIBUTE, "it has no value");
    if (tf_output_type(c->node, 0) == TF_STRING) {
      tfs_object *o = NULL;
      int status = tfs_read_strings(c, message, &o);
      if (status) {
        tfs_object_drop(o);
        return status;
      }
      *known = tfs_of_object(o);
    } else {
      TRY(tfs_read_numbers(c, message, known));
    }
  }
  if (known->kind == TFS_TENSOR && known->tensor->dtype != tfs_out_dtype(c, 0))
    return tfs_fail(c, XLAC_E_BAD_ATTRIBUTE, "its value is %s, not what its dtype says",
                    base_dtype_of((base_dtype)known->tensor->dtype)->text);
  c->out[0] = tfs_keep(*known);
  return 0;
}

/* --- switches and merges --- */

/* Switch (0): false or true; _SwitchN (1): a number, the last output for all beyond. All outputs but one are dead. */
int tfs_host_switch(tfs_call *c) {
  interp_value *which = NULL;
  TRY(tfs_tensor_in(c, 1, &which));
  if (which->count != 1) return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "what chooses is not a scalar");
  int64_t i = tfs_int_at(which, 0);
  if (c->unit->host->arg == 1 && (i < 0 || i >= c->n_out)) i = (int64_t)c->n_out - 1;
  if (c->unit->host->arg == 0) i = i != 0;
  for (uint32_t k = 0; k < c->n_out; k++) c->out[k].kind = TFS_DEAD;
  return tfs_move(c, 0, (uint32_t)i);
}

/* The input that is there, and which it was. A merge runs as soon as one is, so there is just one. */
int tfs_host_merge(tfs_call *c) {
  uint32_t i = 0;
  while (i < c->n_in && c->in[i].kind == TFS_NONE) i++;
  if (i == c->n_in) return tfs_fail(c, XLAC_E_INTERNAL, "none of its inputs is alive");
  TRY(tfs_move(c, i, 0));
  return tfs_give_int(c, 1, i);
}

/* --- checks --- */

/* The message has what the program gave for it. */
int tfs_host_assert(tfs_call *c) {
  bool fine = false;
  TRY(tfs_is_true(c, &c->in[0], &fine));
  if (fine) return 0;
  base_text t;
  base_text_init(&t, c->alloc);
  for (uint32_t i = 1; i < c->n_in; i++) {
    if (i > 1) base_putc(&t, ' ');
    tfs_put_summary(&t, &c->in[i], tfs_attr_int(c, "summarize", 3));
  }
  const char *text = base_text_cstr(&t);
  int status = tfs_fail(c, XLAC_E_CHECK, "assertion failed: %.300s", text ? text : "");
  base_text_free(&t);
  return status;
}

/* Fails for what is infinite or no number; else the input is the output. */
int tfs_host_check_numerics(tfs_call *c) {
  interp_value *v = NULL;
  TRY(tfs_tensor_in(c, 0, &v));
  size_t size = base_dtype_bytes((base_dtype)v->dtype);
  base_slice message = tfs_attr_str(c, "message");
  bool nan = false, inf = false;
  for (int64_t i = 0; i < v->count && base_dtype_is_float((base_dtype)v->dtype); i++) {
    double x = base_load_f64((base_dtype)v->dtype, (const char *)v->data + (size_t)i * size);
    nan |= isnan(x) != 0;
    inf |= isinf(x) != 0;
  }
  if (nan || inf)
    return tfs_fail(c, XLAC_E_CHECK, "%.*s : Tensor had %s values", (int)(message.n < 200 ? message.n : 200), message.p,
                    nan && inf ? "Inf and NaN"
                    : nan      ? "NaN"
                               : "Inf");
  return tfs_move(c, 0, 0);
}

/* Print passes its input on, PrintV2 writes a string. */
int tfs_host_print(tfs_call *c) {
  bool v2 = c->unit->host->arg == 1;
  base_slice end = v2 ? tfs_attr_str(c, "end") : (base_slice){"\n", 1}, to = tfs_attr_str(c, "output_stream");
  base_slice message = v2 ? (base_slice){"", 0} : tfs_attr_str(c, "message");
  base_text t;
  base_text_init(&t, c->alloc);
  base_put(&t, message.p, message.n);
  for (uint32_t i = !v2; i < c->n_in; i++) {
    tfs_object *o = tfs_is_object(&c->in[i], TFS_STRINGS) ? c->in[i].object : NULL;
    if (v2 && o && o->n_strings)
      base_put(&t, o->strings[0].p, o->strings[0].n);
    else
      tfs_put_summary(&t, &c->in[i], tfs_attr_int(c, "summarize", 3));
  }
  base_put(&t, end.p, end.n);
  if (!t.failed) fwrite(t.s, 1, t.n, base_slice_is(to, "stdout") ? stdout : stderr);
  base_text_free(&t);
  return v2 ? 0 : tfs_move(c, 0, 0);
}
