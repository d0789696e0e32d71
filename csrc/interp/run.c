/* The door of the interpreter: checks and cleans the arguments, runs the entry, and gives back values that own their
 * data. */
#include <stdio.h>
#include <string.h>

#include "../base/plural.h"
#include "blocks.h"
#include "sizes.h"

/* --- arguments --- */

/* "argument 0 (x) must be f32[2,3], found f32[3,2]" */
static int run_bad_array(const ir_op *param, const ir_type *t, const interp_value *arg, base_code code,
                         xlac_error *err) {
  char want[160], have[160];
  size_t at = (size_t)snprintf(have, sizeof have, "%s[", base_dtype_table[arg->dtype].text);
  for (uint32_t i = 0; i < arg->rank && at + 24 < sizeof have; i++) {
    at += (size_t)snprintf(have + at, sizeof have - at, "%s%lld", i ? "," : "", (long long)arg->dims[i]);
  }
  return base_fail_at(err, code, param->line, param->col, param->name->s, "argument %lld (%s) must be %s, found %s]",
                      (long long)param->u.number, param->name->s, ir_type_text(t, want, sizeof want), have);
}

static int run_bad_type(const ir_op *param, const ir_type *t, const interp_value *arg, xlac_error *err) {
  const base_dtype_info *d = &base_dtype_table[t->dtype];
  int status = run_bad_array(param, t, arg, XLAC_E_ARGUMENT_TYPE, err);
  if (!d->numpy) return base_hint(err, status, "element types are never converted silently");
  const char *module = !d->numpy_has ? "ml_dtypes." : t->dtype == XLAC_PRED ? "" : "np."; /* NumPy 1.26: no np.bool */
  return base_hint(err, status, "element types are never converted silently: pass %s.astype(%s%s)", param->name->s,
                   module, d->numpy);
}

/* Types exactly, sizes up to a dynamic dimension's bound. */
static int run_check_array(const ir_op *param, const ir_type *t, const interp_value *arg, xlac_error *err) {
  if (arg->dtype != t->dtype) return run_bad_type(param, t, arg, err);
  return interp_dims_fit(t, arg) ? 0 : run_bad_array(param, t, arg, XLAC_E_ARGUMENT_SHAPE, err);
}

/* Tuples nest no deeper than types do, which the IR limits. */
static int run_check_arg(const ir_op *param, const ir_type *t, const interp_value *arg, xlac_error *err) {
  interp_kind want = ir_is_tensor(t) ? INTERP_ARRAY : ir_is_tuple(t) ? INTERP_TUPLE : INTERP_TOKEN;
  if (arg->kind != want || (want == INTERP_TUPLE && arg->n_elements != t->n_elements)) {
    char text[160];
    return base_fail_at(err, XLAC_E_ARGUMENT_SHAPE, param->line, param->col, param->name->s,
                        "argument %lld (%s) must be %s, found %s", (long long)param->u.number, param->name->s,
                        ir_type_text(t, text, sizeof text),
                        arg->kind == INTERP_ARRAY   ? "an array"
                        : arg->kind == INTERP_TUPLE ? "a tuple of another length or in the wrong place"
                                                    : "a token");
  }
  if (want == INTERP_ARRAY) return run_check_array(param, t, arg, err);
  for (uint32_t i = 0; i < arg->n_elements; i++) TRY(run_check_arg(param, t->elements[i], arg->elements[i], err));
  return 0;
}

/* "expected 2 arguments (x, y), found 3". */
static int run_bad_count(const ir_computation *entry, uint32_t n_args, xlac_error *err) {
  char names[300] = "none";
  size_t at = 0;
  for (uint32_t i = 0; i < entry->n_params && at + 80 < sizeof names; i++)
    at += (size_t)snprintf(names + at, sizeof names - at, "%s%.60s", i ? ", " : "", entry->params[i]->name->s);
  return base_fail(err, XLAC_E_ARGUMENT_COUNT, "expected %u argument%s (%s), found %u", entry->n_params,
                   base_plural(entry->n_params), names, n_args);
}

int interp_check_args(const ir_computation *entry, uint32_t n_args, interp_value *const *args, xlac_error *err) {
  if (n_args != entry->n_params) return run_bad_count(entry, n_args, err);
  for (uint32_t i = 0; i < n_args; i++) TRY(run_check_arg(entry->params[i], entry->params[i]->type, args[i], err));
  return 0;
}

/* Bits above a narrow type's width are whatever the lender left there; a pred may be any byte. */
typedef struct cleaning {
  const base_dtype_info *type;
  uint8_t *data;
  uint8_t dirt; /* bits that are not as they should be */
} cleaning;

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif

/* Bits that must be zero, ORed: no branch, and one mask for all bytes, so that it goes at the speed of memory. */
static uint8_t look_above(const uint8_t *data, int64_t n, uint8_t mask) {
  uint8_t dirt = 0;
  for (int64_t i = 0; i < n; i++) dirt |= (uint8_t)(data[i] & mask);
  return dirt;
}

/* The same of signed numbers, whose high bits are all the sign's: 2 to the power of bits - 1 is added, and then they
 * must be zero. */
static uint8_t look_beside(const uint8_t *data, int64_t n, unsigned bits) {
  uint8_t dirt = 0, half = (uint8_t)(1u << (bits - 1));
  for (int64_t i = 0; i < n; i++) dirt |= (uint8_t)(data[i] + half);
  return dirt >> bits;
}

/* Bits that count are kept, and the sign's copied above them; of unsigned numbers `sign` is 0. */
static void clean_numbers(uint8_t *data, int64_t n, uint8_t mask, uint8_t sign) {
  for (int64_t i = 0; i < n; i++) data[i] = (uint8_t)(((data[i] & mask) ^ sign) - sign);
}

static void clean_preds(uint8_t *data, int64_t n) {
  for (int64_t i = 0; i < n; i++) data[i] = data[i] != 0;
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

/* A pred has one bit that counts. */
static void look_for_dirt(void *ctx, int64_t begin, int64_t end) {
  cleaning *c = ctx;
  unsigned bits = c->type->kind == BASE_KIND_PRED ? 1 : c->type->bits;
  const uint8_t *data = c->data + begin;
  assert(bits < 8 && begin <= end);
  c->dirt |= c->type->kind == BASE_KIND_SINT ? look_beside(data, end - begin, bits)
                                             : look_above(data, end - begin, (uint8_t)(0xFFu << bits));
}

static void clean_bytes(void *ctx, int64_t begin, int64_t end) {
  const cleaning *c = ctx;
  const base_dtype_info *t = c->type;
  if (t->kind == BASE_KIND_PRED) return clean_preds(c->data + begin, end - begin);
  uint8_t mask = (uint8_t)((1u << t->bits) - 1), sign = t->kind == BASE_KIND_SINT ? (uint8_t)(1u << (t->bits - 1)) : 0;
  clean_numbers(c->data + begin, end - begin, mask, sign);
}

/* Misaligned memory counts as unclean. Wider types have no bits that mean nothing. */
static int is_clean(interp_ctx *ctx, const interp_value *v, bool *clean) {
  const base_dtype_info *t = base_dtype_of((base_dtype)v->dtype);
  cleaning c = {.type = t, .data = v->data};
  *clean = (uintptr_t)v->data % (t->kind == BASE_KIND_COMPLEX ? t->bytes / 2u : t->bytes) == 0;
  if (!*clean || t->bits >= 8) return 0;
  TRY(interp_in_blocks(ctx, v->count, look_for_dirt, &c));
  *clean = c.dirt == 0;
  return 0;
}

static int clean_copy(interp_ctx *ctx, interp_value *copy, const interp_value *v) {
  cleaning c = {.type = base_dtype_of((base_dtype)v->dtype), .data = copy->data};
  TRY(interp_copy_bytes(ctx, copy->data, v->data, interp_bytes(v)));
  return c.type->bits < 8 ? interp_in_blocks(ctx, v->count, clean_bytes, &c) : 0;
}

/* NULL: out of memory or interrupted, with the error filled. */
static interp_value *clean_array(interp_ctx *ctx, interp_value *v) {
  bool clean = false;
  if (is_clean(ctx, v, &clean) != 0) return NULL;
  if (clean) return interp_retain(v);
  interp_value *copy = interp_array(ctx, v->dtype, v->rank, v->dims);
  if (!copy || clean_copy(ctx, copy, v) == 0) return copy;
  interp_release(copy);
  return NULL;
}

/* A new reference to v, or to a copy without what evaluators need not reckon with. */
interp_value *interp_clean(interp_ctx *ctx, interp_value *v) {
  if (v->kind == INTERP_ARRAY) return clean_array(ctx, v);
  if (v->kind != INTERP_TUPLE) return interp_retain(v);
  interp_value *copy = interp_tuple(ctx, v->n_elements, v->elements);
  for (uint32_t i = 0; copy && i < v->n_elements; i++) {
    interp_value *e = interp_clean(ctx, v->elements[i]);
    if (!e) {
      interp_release(copy);
      return NULL;
    }
    interp_release(copy->elements[i]);
    copy->elements[i] = e;
  }
  return copy;
}

/* --- results --- */

/* Consumes v; gives a value that shares data with no argument, no literal and no other part of the result. */
interp_value *interp_own(interp_ctx *ctx, interp_value *v) {
  v = interp_make_unique(ctx, v);
  if (!v || v->kind != INTERP_TUPLE) return v;
  for (uint32_t i = 0; i < v->n_elements; i++) {
    v->elements[i] = interp_own(ctx, v->elements[i]);
    if (!v->elements[i]) {
      interp_release(v);
      return NULL;
    }
  }
  return v;
}

/* The clean arguments are this function's references: what the entry uses last it may overwrite, unless
 * the caller holds it, too. */
static int run_entry(interp_ctx *ctx, const ir_computation *entry, interp_value *const *args, interp_value **out) {
  uint32_t n = entry->n_params;
  int status = 0;
  interp_value **clean = base_arena_zalloc(&ctx->arena, (size_t)n * sizeof *clean), *result = NULL;
  if (!clean) return base_oom(ctx->err, "the arguments");
  for (uint32_t i = 0; i < n && !status; i++) {
    clean[i] = interp_clean(ctx, args[i]);
    if (!clean[i]) status = interp_failed(ctx);
  }
  if (!status) status = interp_call_move(ctx, entry, n, clean, &result);
  for (uint32_t i = 0; i < n; i++) interp_release(clean[i]);
  if (status) return status;
  result = interp_own(ctx, result);
  if (!result) return interp_failed(ctx);
  *out = result;
  return 0;
}

int interp_run_in(interp_ctx *ctx, const ir_computation *c, uint32_t n_args, interp_value *const *args,
                  interp_value **out) {
  TRY(interp_check_args(c, n_args, args, ctx->err));
  return run_entry(ctx, c, args, out);
}

/* Verifying costs nothing where the module has not changed since it was verified. */
int interp_run(ir_module *m, const interp_options *options, uint32_t n_args, interp_value *const *args,
               interp_value **out, xlac_error *err) {
  assert(m->entry);
  interp_ctx ctx;
  const ir_verify_options lenient = {.xla_compat = true};
  TRY(ir_verify(m, &lenient, err));
  TRY(interp_check_args(m->entry, n_args, args, err));
  TRY(interp_begin(&ctx, m, options, err));
  int status = run_entry(&ctx, m->entry, args, out);
  interp_end(&ctx);
  return status;
}
